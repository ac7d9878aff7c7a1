# Run by `cmake --install`: copies the headers under CRIA_SOURCE to include/cria, by way of the folder CRIA_HEADERS, with
# their includes of each other spelled "cria/...". The command line's own headers stay here.
cmake_minimum_required(VERSION 3.25)

file(GLOB_RECURSE headers RELATIVE ${CRIA_SOURCE} ${CRIA_SOURCE}/*.h)
list(FILTER headers EXCLUDE REGEX "^cli/")

file(REMOVE_RECURSE ${CRIA_HEADERS})  # a header that is gone must not be installed
foreach(header IN LISTS headers)
  file(READ ${CRIA_SOURCE}/${header} text)
  string(REGEX MATCHALL "#include \"[^\"\n]+\"" includes "${text}")
  list(REMOVE_DUPLICATES includes)
  foreach(include IN LISTS includes)
    string(REGEX REPLACE "#include \"(.*)\"" "\\1" file "${include}")
    if(file IN_LIST headers)
      string(REPLACE "${include}" "#include \"cria/${file}\"" text "${text}")
    endif()
  endforeach()
  file(WRITE ${CRIA_HEADERS}/cria/${header} "${text}")
endforeach()
file(INSTALL ${CRIA_HEADERS}/cria DESTINATION ${CMAKE_INSTALL_PREFIX}/include)

# cria_one_of(OPTION choice...): OPTION's value is one of these, or configuring ends with a sentence.
function(cria_one_of option)
  set_property(CACHE ${option} PROPERTY STRINGS ${ARGN})
  if(NOT ${option} IN_LIST ARGN)
    list(JOIN ARGN ", " choices)
    message(FATAL_ERROR "${option}=${${option}} is none of its values: ${choices}.")
  endif()
endfunction()

# Writes the commit that a build is of to a header, when it changed: run at each build with
#   cmake -D SOURCE=<folder> -D HEADER=<file> -P commit.cmake
# "unknown" where the folder is no checkout of its own; "+" behind a commit that files differ from.
set(commit unknown)
find_program(GIT git)
if(GIT)
  execute_process(COMMAND ${GIT} --no-optional-locks -C ${SOURCE} rev-parse --show-toplevel
                  OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND ${GIT} --no-optional-locks -C ${SOURCE} rev-parse --short=12 HEAD
                  OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  file(REAL_PATH ${SOURCE} folder)
  if(head AND top STREQUAL folder)
    execute_process(COMMAND ${GIT} --no-optional-locks -C ${SOURCE} status --porcelain --untracked-files=no
                    OUTPUT_VARIABLE changes ERROR_QUIET)
    set(commit ${head})
    if(changes)
      string(APPEND commit +)
    endif()
  endif()
endif()

set(text "#define CRIA_COMMIT \"${commit}\"\n")
set(before "")
if(EXISTS ${HEADER})
  file(READ ${HEADER} before)
endif()
if(NOT text STREQUAL before)
  file(WRITE ${HEADER} "${text}")
endif()

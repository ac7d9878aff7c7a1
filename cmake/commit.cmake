# Writes a source file that tells the commit a build is of, when that changed: run at each build with
#   cmake -D SOURCE=<folder> -D OUTPUT=<file> -P commit.cmake
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

set(text "#include \"lab/describe_run.h\"

namespace cria {
std::string build_commit() { return \"${commit}\"; }
}  // namespace cria
")
set(before "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT text STREQUAL before)
  file(WRITE ${OUTPUT} "${text}")
endif()

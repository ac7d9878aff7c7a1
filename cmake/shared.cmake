# The library as a shared object, so that programs beside each other hold its kernels once. Programs look for
# it, and for what it needs, in lib/ beside them, and it looks beside itself: the folder can be moved.
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH "$ORIGIN/lib;$ORIGIN")
# One copy of CUDA's runtime too: what one copy has registered, another does not know.
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
# Without these, functions that another library could replace are not inlined, libraries that a program
# does not name look for their own by other paths, and LD_LIBRARY_PATH goes before the relative path.
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fno-semantic-interposition>")
add_link_options(-Wl,--disable-new-dtags -Wl,--as-needed)

# cria::flags: what every object of the project compiles with. Options for g++ and clang++ never reach nvcc.
# cria::isa: the CPU instruction set of every object but the portable build's kernels.
# Both are installed, for the kernels of other projects; warnings stay here.
include(CheckCXXCompilerFlag)
include(CheckCXXSourceCompiles)

# NOTE: clang 14 and 15 do not know std::source_location of g++'s library, g++ 11 does not know the builtin.
set(CMAKE_REQUIRED_FLAGS -std=c++20)
check_cxx_source_compiles("
  #include <source_location>
  typedef float Vector __attribute__((vector_size(16)));
  int main() {
    Vector v = {};
    v = __builtin_shufflevector(v, v, 0, 4, 1, 5);
    return static_cast<int>(v[0]) + static_cast<int>(std::source_location::current().line());
  }" CRIA_COMPILER_FITS)
unset(CMAKE_REQUIRED_FLAGS)
if(NOT CRIA_COMPILER_FITS)
  message(FATAL_ERROR "${CMAKE_CXX_COMPILER} (${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}) cannot compile cria: "
                      "name g++ 12, clang++ 16 or newer with -DCMAKE_CXX_COMPILER, in a new build folder.")
endif()

add_library(cria_flags INTERFACE)
add_library(cria::flags ALIAS cria_flags)
target_compile_features(cria_flags INTERFACE cxx_std_20)
target_include_directories(cria_flags INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<INSTALL_INTERFACE:include>)
set(CMAKE_CXX_EXTENSIONS OFF)

set(cria_cxx_flags -fno-math-errno -fno-trapping-math -ffp-contract=fast)
target_compile_options(cria_flags INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:${cria_cxx_flags}>"
  "$<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra>>"
  "$<BUILD_INTERFACE:$<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-unknown-pragmas>>")  # GCC ivdep

# One instruction set for all objects of a build, because the linker keeps one copy of each inline
# function. The portable build lowers it and isolates its kernels (kernels.cmake).
add_library(cria_isa INTERFACE)
add_library(cria::isa ALIAS cria_isa)
set(CRIA_WIDE_VECTORS "")
check_cxx_compiler_flag(-mprefer-vector-width=512 CRIA_HAS_VECTOR_WIDTH)
if(CRIA_HAS_VECTOR_WIDTH)
  set(CRIA_WIDE_VECTORS -mprefer-vector-width=512)
endif()
if(CRIA_PORTABLE)
  check_cxx_compiler_flag(-march=x86-64-v4 CRIA_HAS_X86_LEVELS)
  if(NOT CRIA_HAS_X86_LEVELS)
    message(FATAL_ERROR "CRIA_PORTABLE needs a compiler for x86-64 that knows -march=x86-64-v4.")
  endif()
  set(isa -march=x86-64-v2)
else()
  set(isa -march=native ${CRIA_WIDE_VECTORS})
endif()
target_compile_options(cria_isa INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${isa}>")

if(CRIA_HAVE_CUDA)
  # The standard is spelled out because CMake 3.25.1 knows CUDA only up to C++17.
  target_compile_options(cria_flags INTERFACE
    "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20;--expt-relaxed-constexpr;-lineinfo>"
    "$<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall>>")
endif()

if(CRIA_SANITIZE)
  # Three checks take long to compile and are left out: the address sanitizer stops at most of what null and
  # object-size are for, but at nothing that vptr is for.
  # Instrumented code makes -Wmaybe-uninitialized see ghosts in the standard library.
  target_compile_options(cria_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${CRIA_SANITIZE};\
-fno-sanitize=null,object-size,vptr;-fno-sanitize-recover=all;-fno-omit-frame-pointer;-Wno-maybe-uninitialized>")
  target_link_options(cria_flags INTERFACE -fsanitize=${CRIA_SANITIZE})
endif()

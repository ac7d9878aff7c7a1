# One kernel list x target per translation unit, or two: what the tour of `make run` launches, and the rest.
# All types of a unit are in it together: reading the headers takes longer than compiling most kernels. The
# calls of cria_kernels() are the only list of kernels there is: stubs, build and registration all follow
# from them.
#
#   cria_kernels(<stem> <List> <dtype>... [TOUR <target>:<dtype>...] [INTO <target>] [HEADER <header>])
#
# The tour launches every kernel in f32 on the CPU and in bf16 on a GPU, as far as these are among the
# dtypes; TOUR adds what it launches besides, and traces.
#
# For each target (cpu, trace, cuda) stubs that instantiate <List><type> from <header> for each dtype
# join `cria`, or the library or executable after INTO. List is looked up in cria::kernels, then in
# cria: cria::mine::MyKernels is written mine::MyKernels. The header defaults to "kernels/<stem>.h", with
# INTO to <stem>.h in the current folder.
#
# The kernels of `cria` are cria::kernel_registry(). Those of any other <target> are
# cria::<target>_kernels(), declared in "<target>_kernels.h", which the build writes.
#
# The paths of cria's headers begin with ${CRIA_INCLUDES}: nothing in this repository, cria/ where it is installed.
#
# A variant is a target, or in the portable build a target and an instruction set. All kernels of a
# variant are joined into one object that shows nothing but its register functions. The same
# templates are compiled for every variant, and the linker, which keeps one copy of each, would
# otherwise mix them: a tracer's function in a CPU kernel, or AVX-512 on a machine without it.

set(CRIA_DTYPES "" CACHE STRING "Memory types to build kernels for; empty builds all")
set(CRIA_KERNELS all CACHE STRING "Kernels to build: all, or only those that the tour of `make run` needs")
set_property(CACHE CRIA_KERNELS PROPERTY STRINGS all tour)
if(NOT CRIA_KERNELS MATCHES "^(all|tour)$")
  message(FATAL_ERROR "CRIA_KERNELS is '${CRIA_KERNELS}': it is all or tour.")
endif()

foreach(dtype IN LISTS CRIA_DTYPES)
  if(NOT dtype MATCHES "^(f32|bf16|f16)$")
    message(FATAL_ERROR "CRIA_DTYPES has ${dtype}, and the memory types are f32, bf16 and f16.")
  endif()
endforeach()

set(CRIA_TYPE_f32 float)
set(CRIA_TYPE_i32 int32_t)

# Joins objects. NOTE: with clang, CMAKE_LINKER may be lld, which has no --force-group-allocation.
find_program(CRIA_GNU_LD NAMES ld.bfd ld REQUIRED)
mark_as_advanced(CRIA_GNU_LD)

# The CPU variants: one for this machine, or one for each x86-64 level.
if(CRIA_PORTABLE)
  set(CRIA_CPU_VARIANTS cpu_v4 cpu_v3)
else()
  set(CRIA_CPU_VARIANTS cpu)
endif()
set(CRIA_KERNEL_VARIANTS ${CRIA_CPU_VARIANTS} trace)
if(CRIA_HAVE_CUDA)
  list(PREPEND CRIA_KERNEL_VARIANTS cuda)  # built first: some take minutes
endif()

if(CRIA_SANITIZE)
  add_library(cria_trace_checks INTERFACE)  # linked after cria::flags, whose option it takes back
  target_compile_options(cria_trace_checks INTERFACE -fno-sanitize=undefined)
endif()

function(cria_kernels stem list)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "INTO;HEADER" "TOUR")
  if(NOT arg_HEADER AND arg_INTO)
    set(arg_HEADER ${stem}.h)
  elseif(NOT arg_HEADER)
    set(arg_HEADER kernels/${stem}.h)
  endif()
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${arg_HEADER})
    set(arg_HEADER ${CMAKE_CURRENT_SOURCE_DIR}/${arg_HEADER})
  endif()
  if(NOT arg_INTO)
    set(arg_INTO cria)
  elseif(NOT TARGET ${arg_INTO})
    message(FATAL_ERROR "cria_kernels(${stem} ... INTO ${arg_INTO}): add the library or executable "
                        "${arg_INTO} first")
  endif()
  _cria_finish_later(${arg_INTO})
  foreach(variant IN LISTS CRIA_KERNEL_VARIANTS)
    _cria_kernel_objects(${arg_INTO} ${variant})
    string(REGEX REPLACE "_v[0-9]$" "" target ${variant})
    # The rest is a unit of its own, so that the tour's units are the same with and without it. Not for
    # nvcc, which would read the headers twice, at a cost.
    set(tour "")
    set(rest "")
    foreach(dtype IN LISTS arg_UNPARSED_ARGUMENTS)
      if("${target}:${dtype}" IN_LIST arg_TOUR OR "${target}:${dtype}" MATCHES "^(cpu:f32|cuda:bf16)$")
        list(APPEND tour ${dtype})
      else()
        list(APPEND rest ${dtype})
      endif()
    endforeach()
    if(NOT arg_INTO STREQUAL cria OR (CRIA_KERNELS STREQUAL all AND target STREQUAL cuda))
      list(APPEND tour ${rest})
      _cria_kernel_stub(${arg_INTO} ${variant} ${stem} ${list} "${tour}" ${arg_HEADER})
    else()
      _cria_kernel_stub(${arg_INTO} ${variant} ${stem} ${list} "${tour}" ${arg_HEADER})
      if(CRIA_KERNELS STREQUAL all)
        _cria_kernel_stub(${arg_INTO} ${variant} ${stem}_more ${list} "${rest}" ${arg_HEADER})
      endif()
    endif()
  endforeach()
endfunction()

# Writes one stub, if it has any types, and adds it to the objects of its variant.
function(_cria_kernel_stub library variant stem list dtypes header)
  string(REGEX REPLACE "_v[0-9]$" "" target ${variant})
  string(TOUPPER ${target} target_macro)
  set(calls "")
  foreach(dtype IN LISTS dtypes)
    if(CRIA_DTYPES AND NOT dtype IN_LIST CRIA_DTYPES)
      continue()
    endif()
    set(type ${dtype})
    if(DEFINED CRIA_TYPE_${dtype})
      set(type ${CRIA_TYPE_${dtype}})
    endif()
    string(APPEND calls "  instantiate<${list}<${type}>>(registry);\n")
  endforeach()
  if(NOT calls)
    return()
  endif()
  set(extension cpp)
  if(target STREQUAL cuda)
    set(extension cu)
  endif()
  set(function register_${stem}_${variant})
  set(stub ${PROJECT_BINARY_DIR}/kernels/${library}/${stem}_${variant}.${extension})
  file(CONFIGURE OUTPUT ${stub} @ONLY CONTENT [=[
#define CRIA_TARGET_@target_macro@ 1
#include "@header@"
#include "@CRIA_INCLUDES@kernels/bind/@target@.h"
#include "@CRIA_INCLUDES@kernels/instantiate.h"

namespace cria {
void @function@(KernelRegistry& registry);
void @function@(KernelRegistry& registry) {
  using namespace kernels;
@calls@}
}  // namespace cria
]=])
  target_sources(${library}_kernels_${variant} PRIVATE ${stub})
  set_property(TARGET ${library} APPEND PROPERTY CRIA_REGISTER_${variant} ${function})
endfunction()

# The object library of one variant, made on first use, and its joined object.
function(_cria_kernel_objects library variant)
  set(objects ${library}_kernels_${variant})
  if(TARGET ${objects})
    return()
  endif()
  add_library(${objects} OBJECT)
  target_link_libraries(${objects} PRIVATE cria::flags)
  # A "unique" symbol could not be hidden.
  target_compile_options(${objects} PRIVATE
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-gnu-unique> $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fno-gnu-unique>)
  target_include_directories(${objects} PRIVATE $<TARGET_PROPERTY:${library},INCLUDE_DIRECTORIES>)
  if(variant MATCHES "^cpu_(v[0-9])$")
    target_compile_options(${objects} PRIVATE -march=x86-64-${CMAKE_MATCH_1} ${CRIA_WIDE_VECTORS})
  else()
    target_link_libraries(${objects} PRIVATE cria::isa)
  endif()
  if(variant MATCHES "^cpu")
    # Or g++ takes clamps such as exp's apart and computes everything after them for each way out.
    target_compile_options(${objects} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-thread-jumps>)
  endif()
  if(variant STREQUAL trace)
    target_compile_options(${objects} PRIVATE -O1)  # analysed, not timed: cheap to build
  endif()
  if(library STREQUAL cria AND (variant MATCHES "^cpu" OR (variant STREQUAL trace AND CRIA_KERNELS STREQUAL all)))
    # Where there are many stubs, they all read the same headers.
    string(REGEX REPLACE "_v[0-9]$" "" target ${variant})
    string(TOUPPER ${target} target_macro)
    target_compile_definitions(${objects} PRIVATE CRIA_TARGET_${target_macro}=1)
    target_precompile_headers(${objects} PRIVATE ${PROJECT_SOURCE_DIR}/src/kernels/bind/${target}.h
                              ${PROJECT_SOURCE_DIR}/src/kernels/instantiate.h)
  endif()
  # CPU and tracer run the same bodies: each leaves out a check that the other makes, for the time to build.
  if(CRIA_SANITIZE MATCHES address AND variant MATCHES "^cpu")
    target_compile_options(${objects} PRIVATE -fno-sanitize-address-use-after-scope)
  elseif(CRIA_SANITIZE AND variant STREQUAL trace)
    target_link_libraries(${objects} PRIVATE cria_trace_checks)
  endif()

  set(joined ${PROJECT_BINARY_DIR}/kernels/${library}/${variant}.o)
  # NOTE: CMake counts a precompiled header among the objects of its library.
  set(parts "$<FILTER:$<TARGET_OBJECTS:${objects}>,EXCLUDE,\\.[gp]ch$>")
  add_custom_command(
    OUTPUT ${joined}
    COMMAND ${CRIA_GNU_LD} -r --force-group-allocation -o ${joined} "${parts}"
    COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=*cria*register_*_${variant}* ${joined}
    DEPENDS ${objects} "${parts}"
    COMMENT "Joining ${objects}"
    COMMAND_EXPAND_LISTS VERBATIM)
  add_custom_target(${objects}_joined DEPENDS ${joined})
  add_dependencies(${library} ${objects}_joined)
  target_sources(${library} PRIVATE ${joined})
  set_source_files_properties(${joined} TARGET_DIRECTORY ${library}
                              PROPERTIES GENERATED ON EXTERNAL_OBJECT ON)
endfunction()

# Once all cria_kernels() calls for a target are made: at the end of the folder that added it.
function(_cria_finish_later library)
  get_target_property(pending ${library} CRIA_KERNELS_PENDING)
  if(pending)
    return()
  endif()
  set_property(TARGET ${library} PROPERTY CRIA_KERNELS_PENDING ON)
  get_target_property(folder ${library} SOURCE_DIR)
  cmake_language(EVAL CODE
    "cmake_language(DEFER DIRECTORY [[${folder}]] CALL _cria_finish_kernels [[${library}]])")
endfunction()

# Writes the function that registers every kernel of the library, and the accessor of their registry.
function(_cria_finish_kernels library)
  set(folder ${PROJECT_BINARY_DIR}/kernels/${library})
  set(name register_all_kernels)
  set(accessor "")
  if(NOT library STREQUAL cria)
    string(MAKE_C_IDENTIFIER ${library} id)
    set(name register_${id}_kernels)
    set(accessor "
const KernelRegistry& ${id}_kernels() {
  static const KernelRegistry registry(${name});
  return registry;
}
")
    file(CONFIGURE OUTPUT ${folder}/include/${library}_kernels.h @ONLY CONTENT [=[
// Written by cria_kernels(): the kernels compiled into @library@.
#pragma once

#include "@CRIA_INCLUDES@runtime/kernel.h"

namespace cria {
const KernelRegistry& @id@_kernels();
}
]=])
    target_include_directories(${library} PUBLIC $<BUILD_INTERFACE:${folder}/include>)
  endif()
  set(declarations "")
  foreach(variant IN LISTS CRIA_KERNEL_VARIANTS)
    set(calls_${variant} "")
    get_target_property(functions ${library} CRIA_REGISTER_${variant})
    if(functions)
      foreach(function IN LISTS functions)
        string(APPEND declarations "void ${function}(KernelRegistry&);\n")
        string(APPEND calls_${variant} "  ${function}(registry);\n")
      endforeach()
    endif()
  endforeach()
  if(CRIA_PORTABLE)
    set(cpu_calls "  if (has_x86_64_v4()) {
${calls_cpu_v4}  } else if (has_x86_64_v3()) {
${calls_cpu_v3}  } else {
    fail(\"this CPU has no AVX2 and FMA, which cria's kernels need: use a newer machine\");
  }\n")
    set(cpu_checks "static bool has_x86_64_v3() {
  return __builtin_cpu_supports(\"avx2\") && __builtin_cpu_supports(\"fma\") &&
         __builtin_cpu_supports(\"bmi2\");
}
static bool has_x86_64_v4() {
  return has_x86_64_v3() && __builtin_cpu_supports(\"avx512f\") &&
         __builtin_cpu_supports(\"avx512bw\") && __builtin_cpu_supports(\"avx512cd\") &&
         __builtin_cpu_supports(\"avx512dq\") && __builtin_cpu_supports(\"avx512vl\");
}\n")
  else()
    set(cpu_calls "${calls_cpu}")
    set(cpu_checks "")
  endif()
  set(partial_call "")
  if(library STREQUAL cria AND CRIA_KERNELS STREQUAL tour)
    set(partial_call "  registry.mark_partial();\n")
  endif()
  set(list_file ${folder}/kernel_list.cpp)
  file(CONFIGURE OUTPUT ${list_file} @ONLY CONTENT [=[
#include "@CRIA_INCLUDES@base/error.h"
#include "@CRIA_INCLUDES@runtime/kernel.h"

namespace cria {
@declarations@@cpu_checks@
void @name@(KernelRegistry& registry);
void @name@([[maybe_unused]] KernelRegistry& registry) {
@cpu_calls@@calls_trace@@calls_cuda@@partial_call@}
@accessor@}  // namespace cria
]=])
  target_sources(${library} PRIVATE ${list_file})
endfunction()

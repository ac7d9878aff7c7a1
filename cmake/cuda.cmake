# Finds nvcc and turns the CUDA language on. Sets CRIA_HAVE_CUDA, which CMake files use to choose
# between a backend's sources and its stubs; no source file asks.
set(CRIA_HAVE_CUDA OFF)
# NOTE: cudaGetDriverEntryPointByVersion is of CUDA 12.5; C++20 came with 12.0. The Makefile reads this line.
set(CRIA_LEAST_CUDA 12.5)

if(NOT CRIA_CUDA STREQUAL OFF)
  set(without "")  # why there is no CUDA
  if(NOT CMAKE_CUDA_COMPILER)
    find_program(CRIA_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_HOME ENV CUDA_PATH
                 PATHS /usr/local/cuda PATH_SUFFIXES bin)
    if(CRIA_NVCC)
      set(CMAKE_CUDA_COMPILER ${CRIA_NVCC})
    endif()
  endif()
  if(CMAKE_CUDA_COMPILER)
    execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --version OUTPUT_VARIABLE version ERROR_QUIET)
    if(version MATCHES "release ([0-9]+\\.[0-9]+)" AND CMAKE_MATCH_1 VERSION_LESS CRIA_LEAST_CUDA)
      set(without "${CMAKE_CUDA_COMPILER} is of CUDA ${CMAKE_MATCH_1}, and cria needs ${CRIA_LEAST_CUDA} or newer")
    endif()
  else()
    set(without "nvcc was not found")
  endif()
  if(NOT without)
    # sm_80 code also runs on 86 and 89; sm_90a adds TMA and wgmma.
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES "80-real;90a-real" CACHE STRING "CUDA architectures")
    endif()
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    set(CRIA_HAVE_CUDA ON)
  elseif(CRIA_CUDA STREQUAL ON)
    message(FATAL_ERROR "CRIA_CUDA=ON but ${without}: install the CUDA toolkit, put its bin "
                        "folder on PATH, or configure with -DCRIA_CUDA=OFF.")
  elseif(CMAKE_CUDA_COMPILER)
    message(NOTICE "Building for the CPU alone: ${without}.")
    unset(CMAKE_CUDA_COMPILER)
  endif()
endif()

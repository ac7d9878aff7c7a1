# Finds nvcc and turns the CUDA language on. Sets CRIA_HAVE_CUDA, which CMake files use to choose
# between a backend's sources and its stubs; no source file asks.
set(CRIA_HAVE_CUDA OFF)
if(NOT CRIA_CUDA STREQUAL OFF)
  if(NOT CMAKE_CUDA_COMPILER)
    find_program(CRIA_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_HOME ENV CUDA_PATH
                 PATHS /usr/local/cuda PATH_SUFFIXES bin)
    if(CRIA_NVCC)
      set(CMAKE_CUDA_COMPILER ${CRIA_NVCC})
    endif()
  endif()
  if(CMAKE_CUDA_COMPILER)
    # sm_80 code also runs on 86 and 89; sm_90a adds TMA and wgmma.
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES "80-real;90a-real" CACHE STRING "CUDA architectures")
    endif()
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    set(CRIA_HAVE_CUDA ON)
  elseif(CRIA_CUDA STREQUAL ON)
    message(FATAL_ERROR "CRIA_CUDA=ON but nvcc was not found: install the CUDA toolkit, put its bin "
                        "folder on PATH, or configure with -DCRIA_CUDA=OFF.")
  endif()
endif()

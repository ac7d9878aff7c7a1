# Finds the libraries for products on the CPU: the targets cria::onednn and cria::openblas are there when they are.
# Installed too, so that a program that links cria finds them where they are on its machine.
find_path(DNNL_INCLUDE oneapi/dnnl/dnnl_config.h)
find_library(DNNL_LIBRARY dnnl)
find_path(OPENBLAS_INCLUDE cblas.h PATH_SUFFIXES openblas-pthread openblas openblas-openmp)
find_library(OPENBLAS_LIBRARY openblas)
mark_as_advanced(DNNL_INCLUDE DNNL_LIBRARY OPENBLAS_INCLUDE OPENBLAS_LIBRARY)

# One thread of oneDNN is used per worker of cria's pool: that can be arranged with OpenMP only.
if(DNNL_INCLUDE AND DNNL_LIBRARY AND NOT TARGET cria::onednn)
  file(STRINGS ${DNNL_INCLUDE}/oneapi/dnnl/dnnl_config.h cria_dnnl_threads
       REGEX "define DNNL_CPU_THREADING_RUNTIME DNNL_RUNTIME_(OMP|SEQ)")
  find_package(OpenMP QUIET COMPONENTS CXX)
  if(cria_dnnl_threads AND OpenMP_CXX_FOUND)
    add_library(cria::onednn INTERFACE IMPORTED)
    target_include_directories(cria::onednn INTERFACE ${DNNL_INCLUDE})
    target_link_libraries(cria::onednn INTERFACE ${DNNL_LIBRARY} $<LINK_ONLY:OpenMP::OpenMP_CXX>)
  endif()
endif()

if(OPENBLAS_INCLUDE AND OPENBLAS_LIBRARY AND NOT TARGET cria::openblas)
  add_library(cria::openblas INTERFACE IMPORTED)
  target_include_directories(cria::openblas INTERFACE ${OPENBLAS_INCLUDE})
  target_link_libraries(cria::openblas INTERFACE ${OPENBLAS_LIBRARY})
endif()

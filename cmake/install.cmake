# Makes find_package(cria) work: the library, its headers, and the means to compile kernels with it.
# The package is for this machine (or, when portable, for x86-64): the library holds compiled kernels.
#
# In this repository includes are relative to src/. Who uses cria writes "cria/base/error.h", as a folder called
# base/ on their path must not come between: installing spells the headers' own includes so, and the build
# tree offers the same spelling through a link.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(CRIA_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/cria)

file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/include)
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR}/include/cria SYMBOLIC)
target_include_directories(cria INTERFACE
  $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include> $<INSTALL_INTERFACE:include>)

set_target_properties(cria_flags PROPERTIES EXPORT_NAME flags)
set_target_properties(cria_isa PROPERTIES EXPORT_NAME isa)
install(TARGETS cria cria_flags cria_isa EXPORT cria ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT cria NAMESPACE cria:: FILE cria-targets.cmake DESTINATION ${CRIA_PACKAGE_DIR})
install(CODE "set(CRIA_SOURCE [[${PROJECT_SOURCE_DIR}/src]])
              set(CRIA_HEADERS [[${PROJECT_BINARY_DIR}/install/include]])")
install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/install_headers.cmake)
if(TARGET cria_cli)
  install(TARGETS cria_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

get_property(CRIA_CPU_PRODUCT_BUILT GLOBAL PROPERTY CRIA_CPU_PRODUCT)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/cria-config.cmake.in
  ${PROJECT_BINARY_DIR}/cria-config.cmake INSTALL_DESTINATION ${CRIA_PACKAGE_DIR})
# Semantic versions: before 1.0 each minor version may change what programs call.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cria-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cria-config.cmake ${PROJECT_BINARY_DIR}/cria-config-version.cmake
              ${CMAKE_CURRENT_LIST_DIR}/cpu_product.cmake ${CMAKE_CURRENT_LIST_DIR}/cuda.cmake
              ${CMAKE_CURRENT_LIST_DIR}/kernels.cmake
              ${CMAKE_CURRENT_LIST_DIR}/FindUtf8proc.cmake
        DESTINATION ${CRIA_PACKAGE_DIR})

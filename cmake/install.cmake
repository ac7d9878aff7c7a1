# Makes find_package(cria) work: the library, its headers, and the means to compile kernels with it.
# The package is for this machine (or, when portable, for x86-64): the library holds compiled kernels.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(CRIA_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/cria)

set_target_properties(cria_flags PROPERTIES EXPORT_NAME flags)
set_target_properties(cria_isa PROPERTIES EXPORT_NAME isa)
install(TARGETS cria cria_flags cria_isa EXPORT cria ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT cria NAMESPACE cria:: FILE cria-targets.cmake DESTINATION ${CRIA_PACKAGE_DIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/ DESTINATION include/cria FILES_MATCHING PATTERN "*.h"
        PATTERN cli EXCLUDE)
if(TARGET cria_cli)
  install(TARGETS cria_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/cria-config.cmake.in
  ${PROJECT_BINARY_DIR}/cria-config.cmake INSTALL_DESTINATION ${CRIA_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cria-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cria-config.cmake ${PROJECT_BINARY_DIR}/cria-config-version.cmake
              ${CMAKE_CURRENT_LIST_DIR}/cuda.cmake ${CMAKE_CURRENT_LIST_DIR}/kernels.cmake
              ${CMAKE_CURRENT_LIST_DIR}/FindUtf8proc.cmake
        DESTINATION ${CRIA_PACKAGE_DIR})

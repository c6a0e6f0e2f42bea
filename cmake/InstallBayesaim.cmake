# SPDX-License-Identifier: MIT
# cmake --install: library, headers, program with manual pages and completions, docs, examples, CMake package, pkg-config file.
# The tree may be moved afterwards; to another kind of processor unless it was built with BAYESAIM_NATIVE, and then the
# installation says so. Components are the packages of Packages.cmake.
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/bayesaim")
set(examples_dir "${CMAKE_INSTALL_DOCDIR}/examples")
set(zsh_dir site-functions)
if(BAYESAIM_DEBIAN)  # where Debian keeps what its packages install
    set(examples_dir "${CMAKE_INSTALL_DATADIR}/doc/libbayesaim-dev/examples")
    set(zsh_dir vendor-completions)
endif()
install(TARGETS bayesaim EXPORT bayesaim_targets
    ARCHIVE COMPONENT development
    LIBRARY COMPONENT development
    FILE_SET HEADERS COMPONENT development)
if(TARGET bayesaim_program)
    install(TARGETS bayesaim_program RUNTIME COMPONENT program)
    install(DIRECTORY "${documentation_dir}/man/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT program)
    install(DIRECTORY "${documentation_dir}/bash/"
        DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" COMPONENT program)
    install(DIRECTORY "${documentation_dir}/zsh/" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/${zsh_dir}" COMPONENT program)
    install(FILES "${PROJECT_SOURCE_DIR}/README.md" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT program)
    install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT program
        FILES_MATCHING PATTERN "*.md" PATTERN "images/*.png" PATTERN "site" EXCLUDE)
endif()
install(EXPORT bayesaim_targets
    FILE bayesaim-targets.cmake
    NAMESPACE bayesaim::
    DESTINATION "${package_dir}" COMPONENT development)

configure_package_config_file(
    "${PROJECT_SOURCE_DIR}/cmake/bayesaim-config.cmake.in"
    "${PROJECT_BINARY_DIR}/generated/bayesaim-config.cmake"
    INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file(
    "${PROJECT_BINARY_DIR}/generated/bayesaim-config-version.cmake"
    COMPATIBILITY SameMajorVersion)
install(FILES
    "${PROJECT_BINARY_DIR}/generated/bayesaim-config.cmake"
    "${PROJECT_BINARY_DIR}/generated/bayesaim-config-version.cmake"
    "${PROJECT_SOURCE_DIR}/cmake/FindOpenBLAS.cmake"
    "${PROJECT_SOURCE_DIR}/cmake/FindHDF5C.cmake"
    "${PROJECT_SOURCE_DIR}/cmake/FindLibZip.cmake"
    "${PROJECT_SOURCE_DIR}/cmake/FindOpenMPI.cmake"
    DESTINATION "${package_dir}" COMPONENT development)

file(GLOB examples CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/examples/*.cpp" "${PROJECT_SOURCE_DIR}/examples/*.toml")
install(FILES ${examples} DESTINATION "${examples_dir}" COMPONENT development)

# A static library does not carry its dependencies, so whoever links it must name them.
if(BUILD_SHARED_LIBS)
    set(pc_requires "eigen3 fmt")
    set(pc_libs "-lbayesaim")
else()
    set(pc_requires "eigen3 fmt openblas hdf5 libzip")
    if(OpenMPI_FOUND)
        string(APPEND pc_requires " ompi-c")
    endif()
    set(pc_libs "-lbayesaim -pthread")
endif()
set(pc_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
file(RELATIVE_PATH pc_to_prefix "${CMAKE_INSTALL_PREFIX}/${pc_dir}" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/bayesaim.pc.in" "${PROJECT_BINARY_DIR}/generated/bayesaim.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/generated/bayesaim.pc" DESTINATION "${pc_dir}" COMPONENT development)

if(BAYESAIM_NATIVE)
    set(remark "bayesaim: built with BAYESAIM_NATIVE, needs a processor like this one; cmake --preset portable does not")
    install(CODE "message([[${remark}]])")
endif()

# SPDX-License-Identifier: MIT
# cmake --install: library, headers, program, examples, CMake package, pkg-config file. The tree may be moved afterwards; to
# another kind of processor unless it was built with BAYESAIM_NATIVE, and then the installation says so.
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/bayesaim")
install(TARGETS bayesaim EXPORT bayesaim_targets FILE_SET HEADERS)
if(TARGET bayesaim_program)
    install(TARGETS bayesaim_program)
endif()
install(EXPORT bayesaim_targets
    FILE bayesaim-targets.cmake
    NAMESPACE bayesaim::
    DESTINATION "${package_dir}")

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
    DESTINATION "${package_dir}")

file(GLOB examples CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/examples/*.cpp" "${PROJECT_SOURCE_DIR}/examples/*.toml")
install(FILES ${examples} DESTINATION "${CMAKE_INSTALL_DOCDIR}/examples")

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
install(FILES "${PROJECT_BINARY_DIR}/generated/bayesaim.pc" DESTINATION "${pc_dir}")

if(BAYESAIM_NATIVE)
    set(remark "bayesaim: built with BAYESAIM_NATIVE, needs a processor like this one; cmake --preset portable does not")
    install(CODE "message([[${remark}]])")
endif()

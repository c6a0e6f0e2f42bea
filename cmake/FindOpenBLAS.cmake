# SPDX-License-Identifier: MIT
# Defines OpenBLAS::OpenBLAS: BLAS, LAPACK and the openblas_* functions from one library.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
    pkg_check_modules(PC_OpenBLAS QUIET openblas)
endif()

find_library(OpenBLAS_LIBRARY NAMES openblas HINTS ${PC_OpenBLAS_LIBRARY_DIRS})
find_path(OpenBLAS_INCLUDE_DIR NAMES openblas_config.h HINTS ${PC_OpenBLAS_INCLUDE_DIRS} PATH_SUFFIXES openblas)
mark_as_advanced(OpenBLAS_LIBRARY OpenBLAS_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenBLAS
    REQUIRED_VARS OpenBLAS_LIBRARY OpenBLAS_INCLUDE_DIR
    VERSION_VAR PC_OpenBLAS_VERSION)

if(OpenBLAS_FOUND AND NOT TARGET OpenBLAS::OpenBLAS)
    add_library(OpenBLAS::OpenBLAS UNKNOWN IMPORTED)
    set_target_properties(OpenBLAS::OpenBLAS PROPERTIES
        IMPORTED_LOCATION "${OpenBLAS_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${OpenBLAS_INCLUDE_DIR}")
endif()

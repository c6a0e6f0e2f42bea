# SPDX-License-Identifier: MIT
# Defines OpenMPI::OpenMPI, the C library of Open MPI. CMake's own FindMPI adds its compiler flags to every file.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
    pkg_check_modules(PC_OpenMPI QUIET ompi-c)
endif()

find_library(OpenMPI_LIBRARY NAMES mpi HINTS ${PC_OpenMPI_LIBRARY_DIRS})
find_path(OpenMPI_INCLUDE_DIR NAMES mpi.h HINTS ${PC_OpenMPI_INCLUDE_DIRS})
mark_as_advanced(OpenMPI_LIBRARY OpenMPI_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenMPI
    REQUIRED_VARS OpenMPI_LIBRARY OpenMPI_INCLUDE_DIR
    VERSION_VAR PC_OpenMPI_VERSION)

if(OpenMPI_FOUND AND NOT TARGET OpenMPI::OpenMPI)
    add_library(OpenMPI::OpenMPI UNKNOWN IMPORTED)
    set_target_properties(OpenMPI::OpenMPI PROPERTIES
        IMPORTED_LOCATION "${OpenMPI_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${OpenMPI_INCLUDE_DIR}")
endif()

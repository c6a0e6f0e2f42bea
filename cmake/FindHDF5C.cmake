# SPDX-License-Identifier: MIT
# Defines HDF5C::HDF5C, the C library of HDF5. CMake's own FindHDF5 needs a C compiler, also in projects that use ours.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
    pkg_check_modules(PC_HDF5C QUIET hdf5)
endif()

find_library(HDF5C_LIBRARY NAMES hdf5 hdf5_serial HINTS ${PC_HDF5C_LIBRARY_DIRS})
find_path(HDF5C_INCLUDE_DIR NAMES hdf5.h HINTS ${PC_HDF5C_INCLUDE_DIRS} PATH_SUFFIXES hdf5/serial)
mark_as_advanced(HDF5C_LIBRARY HDF5C_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(HDF5C
    REQUIRED_VARS HDF5C_LIBRARY HDF5C_INCLUDE_DIR
    VERSION_VAR PC_HDF5C_VERSION)

if(HDF5C_FOUND AND NOT TARGET HDF5C::HDF5C)
    add_library(HDF5C::HDF5C UNKNOWN IMPORTED)
    set_target_properties(HDF5C::HDF5C PROPERTIES
        IMPORTED_LOCATION "${HDF5C_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${HDF5C_INCLUDE_DIR}")
endif()

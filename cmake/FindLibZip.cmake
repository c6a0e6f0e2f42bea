# SPDX-License-Identifier: MIT
# Defines LibZip::LibZip. The CMake package of Debian's libzip-dev also wants the programs of libzip, which are in others.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
    pkg_check_modules(PC_LibZip QUIET libzip)
endif()

find_library(LibZip_LIBRARY NAMES zip HINTS ${PC_LibZip_LIBRARY_DIRS})
find_path(LibZip_INCLUDE_DIR NAMES zip.h HINTS ${PC_LibZip_INCLUDE_DIRS})
mark_as_advanced(LibZip_LIBRARY LibZip_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibZip
    REQUIRED_VARS LibZip_LIBRARY LibZip_INCLUDE_DIR
    VERSION_VAR PC_LibZip_VERSION)

if(LibZip_FOUND AND NOT TARGET LibZip::LibZip)
    add_library(LibZip::LibZip UNKNOWN IMPORTED)
    set_target_properties(LibZip::LibZip PROPERTIES
        IMPORTED_LOCATION "${LibZip_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${LibZip_INCLUDE_DIR}")
endif()

# SPDX-License-Identifier: MIT
# Defines TomlHeaders::TomlHeaders, toml++ as headers only: nobody who links the library needs it.
find_path(TomlHeaders_INCLUDE_DIR NAMES toml++/toml.h)
mark_as_advanced(TomlHeaders_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(TomlHeaders REQUIRED_VARS TomlHeaders_INCLUDE_DIR)

if(TomlHeaders_FOUND AND NOT TARGET TomlHeaders::TomlHeaders)
    add_library(TomlHeaders::TomlHeaders INTERFACE IMPORTED)
    set_target_properties(TomlHeaders::TomlHeaders PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${TomlHeaders_INCLUDE_DIR}")
endif()

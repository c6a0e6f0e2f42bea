# SPDX-License-Identifier: MIT
# The explorer: its page is bundled when the program is built, and becomes a part of it. Without the packages the program is
# built all the same, and its command `explore` says what is missing.
find_program(NODE_PROGRAM NAMES node nodejs)
find_program(ESBUILD_PROGRAM esbuild)
find_program(TSC_PROGRAM tsc)
find_path(NODE_MODULES NAMES d3-selection/package.json PATHS /usr/share/nodejs NO_DEFAULT_PATH)
find_path(KATEX_MODULE NAMES katex/package.json PATHS /usr/share/nodejs NO_DEFAULT_PATH)
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
    pkg_check_modules(HTTPLIB IMPORTED_TARGET cpp-httplib)
endif()

set(explorer_missing "")
foreach(need IN ITEMS NODE_PROGRAM:nodejs ESBUILD_PROGRAM:esbuild TSC_PROGRAM:node-typescript NODE_MODULES:node-d3
        KATEX_MODULE:katex HTTPLIB_FOUND:libcpp-httplib-dev)
    string(REPLACE ":" ";" need "${need}")
    list(GET need 0 found)
    list(GET need 1 package)
    if(NOT ${found})
        string(APPEND explorer_missing " ${package}")
    endif()
endforeach()
if(explorer_missing)
    message(STATUS "No explorer: it needs${explorer_missing}")
    set(BAYESAIM_EXPLORER OFF)
    return()
endif()
set(BAYESAIM_EXPLORER ON)

set(page_dir "${PROJECT_SOURCE_DIR}/apps/explorer/page")
file(GLOB page_sources CONFIGURE_DEPENDS
    "${page_dir}/*.ts" "${page_dir}/*.css" "${page_dir}/*.html" "${page_dir}/*.mjs" "${page_dir}/tsconfig.json")
set(page_source "${PROJECT_BINARY_DIR}/generated/explorer/page.cpp")
add_custom_command(OUTPUT "${page_source}"
    COMMAND "${CMAKE_COMMAND}" -E env "NODE_PATH=${NODE_MODULES}"
        "${NODE_PROGRAM}" "${page_dir}/build.mjs" "${TSC_PROGRAM}" "${ESBUILD_PROGRAM}" "${page_source}"
    DEPENDS ${page_sources}
    COMMENT "Bundling the page of the explorer"
    VERBATIM)
file(GLOB explorer_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/apps/explorer/*.cpp")
target_sources(bayesaim_program PRIVATE ${explorer_sources} "${page_source}")
target_compile_definitions(bayesaim_program PRIVATE BAYESAIM_WITH_EXPLORER)
target_link_libraries(bayesaim_program PRIVATE PkgConfig::HTTPLIB Threads::Threads)

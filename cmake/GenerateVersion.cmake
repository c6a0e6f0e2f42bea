# SPDX-License-Identifier: MIT
# Target bayesaim_version: fills version.cpp.in with the version and the git commit. Runs at every build,
# rewrites the file only when its contents change.
set(version_source "${PROJECT_BINARY_DIR}/generated/version.cpp")
add_custom_target(bayesaim_version
    COMMAND "${CMAKE_COMMAND}"
        "-DVERSION=${PROJECT_VERSION}"
        "-DSOURCE_DIR=${PROJECT_SOURCE_DIR}"
        "-DINPUT=${PROJECT_SOURCE_DIR}/src/bayesaim/core/version.cpp.in"
        "-DOUTPUT=${version_source}"
        -P "${PROJECT_SOURCE_DIR}/cmake/write_version.cmake"
    BYPRODUCTS "${version_source}"
    COMMENT "Reading the git commit"
    VERBATIM)

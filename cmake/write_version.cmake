# SPDX-License-Identifier: MIT
# cmake -DVERSION=.. -DSOURCE_DIR=.. -DINPUT=.. -DOUTPUT=.. -P write_version.cmake
# GIT_COMMIT: the hash, "+" appended when a tracked file is modified, "unknown" outside a git checkout of the project.
set(GIT_COMMIT "unknown")

function(git result_variable output_variable)
    execute_process(
        COMMAND git -C "${SOURCE_DIR}" ${ARGN}
        RESULT_VARIABLE result
        OUTPUT_VARIABLE output
        ERROR_QUIET
        OUTPUT_STRIP_TRAILING_WHITESPACE)
    set(${result_variable} "${result}" PARENT_SCOPE)
    set(${output_variable} "${output}" PARENT_SCOPE)
endfunction()

git(found top_level rev-parse --show-toplevel)
file(REAL_PATH "${SOURCE_DIR}" real_source_dir)
if(found STREQUAL "0" AND top_level STREQUAL real_source_dir)
    git(has_commit hash rev-parse --verify HEAD)
    if(has_commit STREQUAL "0")
        git(status_read changes status --porcelain --untracked-files=no)
        set(GIT_COMMIT "${hash}")
        if(NOT status_read STREQUAL "0" OR NOT changes STREQUAL "")
            string(APPEND GIT_COMMIT "+")
        endif()
    endif()
endif()

configure_file("${INPUT}" "${OUTPUT}" @ONLY)

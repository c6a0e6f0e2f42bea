# SPDX-License-Identifier: MIT
# Run by ctest as cmake -P, with the variables set in tests/CMakeLists.txt.
set(prefix "${WORK_DIR}/prefix")
set(expected_output "bayesaim ${VERSION}\nmmse 0.066541493")
file(REMOVE_RECURSE "${WORK_DIR}")
file(MAKE_DIRECTORY "${WORK_DIR}")

# run(command...): stops the test, with the output, unless the command succeeds. Sets `output`.
function(run)
    execute_process(
        COMMAND ${ARGN}
        RESULT_VARIABLE result
        OUTPUT_VARIABLE standard_output
        ERROR_VARIABLE standard_error
        OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT result STREQUAL "0")
        list(JOIN ARGN " " command)
        message(FATAL_ERROR "exit ${result}: ${command}\n${standard_output}\n${standard_error}")
    endif()
    set(output "${standard_output}" PARENT_SCOPE)
endfunction()

function(expect_output program)
    run("${program}")
    if(NOT output MATCHES "^${expected_output}(\n|$)")
        message(FATAL_ERROR "${program} printed '${output}', expected '${expected_output}'")
    endif()
endfunction()

run("${CMAKE_COMMAND}" --install "${BUILD_DIR}" --config "${CONFIG}" --prefix "${prefix}")
set(ENV{LD_LIBRARY_PATH} "${prefix}/${LIB_DIR}:$ENV{LD_LIBRARY_PATH}")  # for shared builds

# The program runs from where it was installed.
run("${prefix}/${BIN_DIR}/bayesaim" --help)

# find_package
run("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${WORK_DIR}/build" -G "${GENERATOR}"
    "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_CXX_COMPILER=${CXX}" "-DCMAKE_CXX_FLAGS=${CXX_FLAGS}"
    "-DCMAKE_BUILD_TYPE=${CONFIG}")
run("${CMAKE_COMMAND}" --build "${WORK_DIR}/build")
expect_output("${WORK_DIR}/build/outside")

# pkg-config
set(ENV{PKG_CONFIG_PATH} "${prefix}/${LIB_DIR}/pkgconfig:$ENV{PKG_CONFIG_PATH}")
run(pkg-config --cflags --libs bayesaim)
separate_arguments(package_flags UNIX_COMMAND "${output}")
separate_arguments(compiler_flags UNIX_COMMAND "${CXX_FLAGS}")
run("${CXX}" -std=c++20 ${compiler_flags} "${CMAKE_CURRENT_LIST_DIR}/outside.cpp"
    -o "${WORK_DIR}/outside_pkg_config" ${package_flags})
expect_output("${WORK_DIR}/outside_pkg_config")

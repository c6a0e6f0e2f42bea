# SPDX-License-Identifier: MIT
# expected_output(file variable): what the comment at the top of an example says that it prints.
function(expected_output file variable)
    file(READ "${file}" text)
    if(NOT text MATCHES "Prints:\n((//   [^\n]*\n)+)")
        message(FATAL_ERROR "${file} does not say what it prints")
    endif()
    string(REGEX REPLACE "(^|\n)//   " "\\1" text "${CMAKE_MATCH_1}")
    set(${variable} "${text}" PARENT_SCOPE)
endfunction()

# expect_output(program expected): stops unless the program succeeds and prints this.
function(expect_output program expected)
    execute_process(COMMAND "${program}" RESULT_VARIABLE result OUTPUT_VARIABLE output)
    if(NOT result STREQUAL "0" OR NOT output STREQUAL expected)
        message(FATAL_ERROR "exit ${result}: ${program} printed\n${output}expected\n${expected}")
    endif()
endfunction()

# As a script: cmake -DPROGRAM=... -DSOURCE=... -P expected_output.cmake
if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
    expected_output("${SOURCE}" expected)
    expect_output("${PROGRAM}" "${expected}")
endif()

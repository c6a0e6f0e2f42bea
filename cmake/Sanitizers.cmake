# SPDX-License-Identifier: MIT
# What tests need in a build with sanitizers, beside the environment of the test presets debug and threads.
# SANITIZED_TIMEOUT: how many times longer a test may take. SANITIZED_GUEST: the environment of the Python module, whose interpreter
# is not compiled with the sanitizer and must load its runtime first.
set(SANITIZED_TIMEOUT 1)
set(SANITIZED_GUEST "")
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=(address|thread)")
    string(SUBSTRING "${CMAKE_MATCH_1}" 0 1 letter)
    execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -print-file-name=lib${letter}san.so
        OUTPUT_VARIABLE runtime OUTPUT_STRIP_TRAILING_WHITESPACE)
    set(SANITIZED_TIMEOUT 6)
    # The interpreter never frees its modules: leaks are counted by test_leaks.py instead.
    set(SANITIZED_GUEST "LD_PRELOAD=${runtime}:libstdc++.so.6" "ASAN_OPTIONS=detect_leaks=0")
endif()

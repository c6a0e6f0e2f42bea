# SPDX-License-Identifier: MIT
# What a build with sanitizers needs, beside the environment of the test presets debug and threads.
# SANITIZED_TIMEOUT: how many times longer a test may take. SANITIZED_GUEST: the environment of the Python module, whose interpreter
# is not compiled with the sanitizer and must load its runtime first. The runtime is then a shared one in every program.
# SANITIZED_PRELOAD: that runtime. SANITIZED_INSTALLED: the environment of installed programs, which do not know where it is.
set(SANITIZED_TIMEOUT 1)
set(SANITIZED_PRELOAD "")
set(SANITIZED_GUEST "")
set(SANITIZED_INSTALLED "")
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=(address|thread)")
    string(SUBSTRING "${CMAKE_MATCH_1}" 0 1 letter)
    set(runtime lib${letter}san.so)
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
        set(runtime libclang_rt.${letter}san-${CMAKE_SYSTEM_PROCESSOR}.so)
        add_link_options(-shared-libsan)
    endif()
    execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -print-file-name=${runtime}
        OUTPUT_VARIABLE runtime OUTPUT_STRIP_TRAILING_WHITESPACE)
    cmake_path(GET runtime PARENT_PATH runtime_dir)
    list(APPEND CMAKE_BUILD_RPATH "${runtime_dir}")
    set(SANITIZED_INSTALLED "LD_LIBRARY_PATH=${runtime_dir}")
    set(SANITIZED_TIMEOUT 6)
    # The interpreter never frees its modules: leaks are counted by test_leaks.py instead.
    set(SANITIZED_PRELOAD "${runtime}:libstdc++.so.6")
    set(SANITIZED_GUEST "LD_PRELOAD=${SANITIZED_PRELOAD}" "ASAN_OPTIONS=detect_leaks=0")
endif()

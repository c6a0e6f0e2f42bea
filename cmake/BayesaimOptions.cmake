# SPDX-License-Identifier: MIT
# bayesaim_compile_options(target): language level, warnings and code generation of everything compiled here.
function(bayesaim_compile_options target)
    set_target_properties(${target} PROPERTIES CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
    # Before version 13, GCC sees uninitialized values and bounds crossed in its own AVX-512 intrinsics, wherever Eigen
    # uses them, and overlaps and overflows in moves of std::string. The sanitizers of the debug preset look for real ones.
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
        target_compile_options(${target} PRIVATE
            -Wno-maybe-uninitialized -Wno-uninitialized -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
    endif()
    if(BAYESAIM_WARNINGS_AS_ERRORS)
        target_compile_options(${target} PRIVATE -Werror)
        # What these report depends on the optimizer, hence on -march: shown, but they do not stop a build.
        if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
            target_compile_options(${target} PRIVATE
                -Wno-error=free-nonheap-object
                -Wno-error=stringop-overflow -Wno-error=stringop-overread)
        endif()
    endif()

    # Nobody reads errno after sqrt, and complex products need no C99 recovery of infinities. NaN, signed
    # zeros and the order of additions keep their meaning: no -ffast-math.
    target_compile_options(${target} PRIVATE -fno-math-errno $<$<CXX_COMPILER_ID:GNU>:-fcx-limited-range>)
    if(BAYESAIM_NATIVE)
        target_compile_options(${target} PRIVATE -march=native)
    endif()
endfunction()

# bayesaim_reuse_precompiled_headers(target): those of the library. They fit only what is compiled with the same options.
function(bayesaim_reuse_precompiled_headers target)
    target_compile_options(${target} PRIVATE -fPIC)
    target_compile_definitions(${target} PRIVATE $<TARGET_PROPERTY:Boost::headers,INTERFACE_COMPILE_DEFINITIONS>)
    target_precompile_headers(${target} REUSE_FROM bayesaim)
endfunction()

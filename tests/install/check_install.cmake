# SPDX-License-Identifier: MIT
# Run by ctest as cmake -P, with the variables set in tests/CMakeLists.txt. Installs the built tree, then compiles a program
# against it by find_package and by pkg-config, with and without optimization, for any processor and for newer ones. It has
# to print the same numbers each time: a type of ours whose layout followed -march would give others.
set(examples "${CMAKE_CURRENT_LIST_DIR}/../../examples")
include("${examples}/expected_output.cmake")
set(program "${examples}/first_curve.cpp")
expected_output("${program}" expected)

set(prefix "${WORK_DIR}/prefix")
file(REMOVE_RECURSE "${WORK_DIR}")
file(MAKE_DIRECTORY "${WORK_DIR}")

# run(command...): stops the test, with the output, unless the command succeeds. Sets `output` and `messages`.
function(run)
    execute_process(
        COMMAND ${ARGN}
        RESULT_VARIABLE result
        OUTPUT_VARIABLE standard_output
        ERROR_VARIABLE standard_error)
    if(NOT result STREQUAL "0")
        list(JOIN ARGN " " command)
        message(FATAL_ERROR "exit ${result}: ${command}\n${standard_output}\n${standard_error}")
    endif()
    set(output "${standard_output}" PARENT_SCOPE)
    set(messages "${standard_error}" PARENT_SCOPE)
endfunction()

run("${CMAKE_COMMAND}" --install "${BUILD_DIR}" --config "${CONFIG}" --prefix "${prefix}")

# The installation says, once, whether it needs a processor like this one.
file(STRINGS "${BUILD_DIR}/CMakeCache.txt" native REGEX "^BAYESAIM_NATIVE:BOOL=(ON|TRUE|YES|1)$")
string(REGEX MATCHALL "needs a processor like this one" said "${messages}")
list(LENGTH native expected_lines)
list(LENGTH said lines)
if(NOT lines EQUAL expected_lines)
    message(FATAL_ERROR "expected ${expected_lines} line(s) about the processor, got ${lines}:\n${messages}")
endif()

# A tree that is configured without options is for any processor. It needs no package of the tests.
run("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}/../.." -B "${WORK_DIR}/default" -G "${GENERATOR}"
    "-DCMAKE_CXX_COMPILER=${CXX}" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
    -DBAYESAIM_BUILD_TESTS=OFF -DBAYESAIM_BUILD_BENCH=OFF -DBAYESAIM_BUILD_PYTHON=OFF)
file(STRINGS "${WORK_DIR}/default/compile_commands.json" of_this_machine REGEX "-march=")
if(of_this_machine)
    message(FATAL_ERROR "compiled for one kind of processor unless told otherwise:\n${of_this_machine}")
endif()

set(ENV{LD_LIBRARY_PATH} "${prefix}/${LIB_DIR}:$ENV{LD_LIBRARY_PATH}")  # for shared builds

# The program runs from where it was installed.
run("${prefix}/${BIN_DIR}/bayesaim" --help)

# Manual pages and completions are where man, bash and zsh look for them.
foreach(file IN ITEMS man/man1/bayesaim.1.gz man/man1/bayesaim-theory.1.gz bash-completion/completions/bayesaim
        zsh/site-functions/_bayesaim doc/bayesaim/docs/guide.md)
    if(NOT EXISTS "${prefix}/share/${file}")
        message(FATAL_ERROR "not installed: share/${file}")
    endif()
endforeach()

# Which processors: those that this machine can run.
set(plain any)
set(newer native)
cmake_host_system_information(RESULT platform QUERY OS_PLATFORM)
if(platform STREQUAL "x86_64")
    list(APPEND plain x86-64-v2)
    file(READ /proc/cpuinfo processor_flags)
    if(processor_flags MATCHES " avx2 ")
        list(APPEND newer x86-64-v3)
    endif()
endif()

# find_package
function(check_find_package build_type)
    set(build "${WORK_DIR}/${build_type}")
    list(JOIN ARGN "," processors)
    run("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${build}" -G "${GENERATOR}"
        "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_CXX_COMPILER=${CXX}" "-DCMAKE_CXX_FLAGS=${CXX_FLAGS}"
        "-DCMAKE_BUILD_TYPE=${build_type}" "-DPROGRAM=${program}" "-DPROCESSORS=${processors}")
    run("${CMAKE_COMMAND}" --build "${build}")
    foreach(processor IN LISTS ARGN)
        expect_output("${build}/outside_${processor}" "${expected}")
    endforeach()
endfunction()
check_find_package(Release ${plain})
check_find_package(Debug ${newer})

# pkg-config
set(ENV{PKG_CONFIG_PATH} "${prefix}/${LIB_DIR}/pkgconfig:$ENV{PKG_CONFIG_PATH}")
run(pkg-config --cflags --libs bayesaim)
separate_arguments(package_flags UNIX_COMMAND "${output}")
separate_arguments(compiler_flags UNIX_COMMAND "${CXX_FLAGS}")
function(check_pkg_config processor source expected)
    cmake_path(GET source STEM name)
    set(executable "${WORK_DIR}/${name}_${processor}")
    set(march "-march=${processor}")
    if(processor STREQUAL "any")
        set(march "")
    endif()
    run("${CXX}" -std=c++20 ${compiler_flags} ${march} ${ARGN} "${source}" -o "${executable}" ${package_flags})
    expect_output("${executable}" "${expected}")
endfunction()
foreach(processor IN LISTS plain)
    check_pkg_config(${processor} "${program}" "${expected}" -g)
endforeach()
foreach(processor IN LISTS newer)
    check_pkg_config(${processor} "${program}" "${expected}" -O1 -DNDEBUG)
endforeach()

# A class of the outside program behind an interface of ours, and the checks of its promises.
expected_output("${examples}/own_channel.cpp" of_own_channel)
check_pkg_config(native "${examples}/own_channel.cpp" "${of_own_channel}" -O1)

# One header has them all.
file(WRITE "${WORK_DIR}/umbrella.cpp" "#include <bayesaim/bayesaim.hpp>\nint main() {}\n")
run("${CXX}" -std=c++20 -fsyntax-only "${WORK_DIR}/umbrella.cpp" ${package_flags})

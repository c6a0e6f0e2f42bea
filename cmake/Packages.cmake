# SPDX-License-Identifier: MIT
# The target `package`: three Debian packages in build/packages. What they contain is compiled for any processor and installed
# where Debian wants it, so they are made in a tree of their own, build/debian; elsewhere the target builds that tree.
if(NOT PROJECT_IS_TOP_LEVEL)
    return()
endif()
if(NOT BAYESAIM_DEBIAN)
    add_custom_target(package
        COMMAND "${CMAKE_COMMAND}" --preset debian
        COMMAND "${CMAKE_COMMAND}" --build --preset debian --target package
        WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
        COMMENT "Making the packages in build/debian, which is compiled for any processor"
        USES_TERMINAL VERBATIM)
    return()
endif()

if(BAYESAIM_NATIVE OR CMAKE_CXX_FLAGS MATCHES "-m(arch|cpu|tune)=" OR BUILD_SHARED_LIBS)
    message(FATAL_ERROR "packages are for any processor and have a static library: cmake --preset debian")
endif()
find_program(SHLIBDEPS_PROGRAM dpkg-shlibdeps)
foreach(need IN ITEMS BAYESAIM_EXPLORER OpenMPI_FOUND packaged_python_minor SHLIBDEPS_PROGRAM)
    if(NOT ${need})
        message(FATAL_ERROR "packages need what `./setup --with-tests --packages-only` installs (${need} is missing)")
    endif()
endforeach()

# ---- files that only packages have ---------------------------------------------------------------
set(maintainer "the bayesaim developers <bayesaim@bayesaim.invalid>")
# The date of the commit: the same commit gives the same package.
if(NOT DEFINED ENV{SOURCE_DATE_EPOCH})
    execute_process(COMMAND git -C "${PROJECT_SOURCE_DIR}" log -1 --format=%ct
        OUTPUT_VARIABLE seconds OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(seconds)
        set(ENV{SOURCE_DATE_EPOCH} "${seconds}")
    endif()
endif()
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
set(debian_dir "${PROJECT_BINARY_DIR}/generated/debian")
configure_file("${PROJECT_SOURCE_DIR}/cmake/debian/changelog.in" "${debian_dir}/changelog.Debian" @ONLY)
configure_file("${PROJECT_SOURCE_DIR}/cmake/debian/METADATA.in" "${debian_dir}/METADATA" @ONLY)
configure_file("${PROJECT_SOURCE_DIR}/CHANGELOG.md" "${debian_dir}/changelog" COPYONLY)
execute_process(COMMAND gzip -9nfk "${debian_dir}/changelog" "${debian_dir}/changelog.Debian" COMMAND_ERROR_IS_FATAL ANY)
install(FILES "${debian_dir}/METADATA"
    DESTINATION "lib/python3/dist-packages/bayesaim-${PROJECT_VERSION}.dist-info" COMPONENT python)

# The linker needs the symbols of a static library, and nothing else that the compiler wrote.
install(CODE "execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-debug --remove-section=.comment --remove-section=.note
    --enable-deterministic-archives \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/libbayesaim.a\"
    COMMAND_ERROR_IS_FATAL ANY)" COMPONENT development)

# ---- CPack ---------------------------------------------------------------------------------------
set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL program development python)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PACKAGE_CONTACT "${maintainer}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)

# bayesaim_package(COMPONENT name summary): the names, and the documents that every package has.
function(bayesaim_package component name description)
    install(FILES "${PROJECT_SOURCE_DIR}/cmake/debian/copyright" "${debian_dir}/changelog.gz" "${debian_dir}/changelog.Debian.gz"
        DESTINATION "share/doc/${name}" COMPONENT ${component})
    string(TOUPPER ${component} COMPONENT)
    set(CPACK_DEBIAN_${COMPONENT}_PACKAGE_NAME "${name}" PARENT_SCOPE)
    set(CPACK_DEBIAN_${COMPONENT}_DESCRIPTION "${description}" PARENT_SCOPE)
endfunction()

bayesaim_package(program bayesaim "errors of learning attention from data: theory and algorithms
How well attention layers can be learned from data: this program computes
the smallest error that any method can reach, runs algorithms that reach it,
and draws both. It fits data of your own, runs studies on one machine or on
many, and shows curves in a browser.")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS "gnuplot-nox | gnuplot")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "openmpi-bin, xdg-utils")

# A static library: its classes pass matrices of Eigen, so that programs are compiled against one version of it, and there is
# no binary interface to keep.
bayesaim_package(development libbayesaim-dev "errors of learning attention from data: C++ library
What the program bayesaim is made of, as a static library for C++20: priors,
channels, state evolution, approximate message passing. With headers, a
package for CMake, a file for pkg-config, and examples.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "libeigen3-dev, libfmt-dev, libopenblas-dev, libhdf5-dev, libzip-dev, libopenmpi-dev")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "cmake, pkg-config")

bayesaim_package(python python3-bayesaim "errors of learning attention from data: Python module
The theory and the algorithms of bayesaim as functions of numpy arrays: the
smallest error of learning attention layers, approximate message passing,
training, and fits of your own data. Priors, channels and callbacks may be
written in Python.")
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
math(EXPR next_minor "${packaged_python_minor} + 1")
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS
    "python3 (>= 3.${packaged_python_minor}~), python3 (<< 3.${next_minor}), python3-numpy")
set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS "python3-matplotlib, python3-mpi4py")
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA
    "${PROJECT_SOURCE_DIR}/cmake/debian/postinst" "${PROJECT_SOURCE_DIR}/cmake/debian/prerm")

include(CPack)

# SPDX-License-Identifier: MIT
"""Builds the extension module with CMake; everything else of the package is in pyproject.toml.

The module runs on any processor; BAYESAIM_CMAKE_ARGS=-DBAYESAIM_NATIVE=ON builds it for the one of this machine.
BAYESAIM_BUILD_DIR names a build tree to use instead of a new one, BAYESAIM_CMAKE_ARGS more arguments of CMake.
"""
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCE = Path(__file__).resolve().parent
VERSION = re.search(r"^\s*VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text(), re.MULTILINE).group(1)


class CMakeBuild(build_ext):
    def build_extension(self, extension):
        tree = Path(os.environ.get("BAYESAIM_BUILD_DIR") or Path(self.build_temp).resolve())
        if not (tree / "CMakeCache.txt").exists():
            subprocess.run(
                ["cmake", "-S", str(SOURCE), "-B", str(tree), "-DCMAKE_BUILD_TYPE=Release", "-DBAYESAIM_BUILD_PYTHON=ON",
                 "-DBAYESAIM_BUILD_TESTS=OFF", "-DBAYESAIM_BUILD_BENCH=OFF", f"-DPython_EXECUTABLE={sys.executable}",
                 *shlex.split(os.environ.get("BAYESAIM_CMAKE_ARGS", ""))],
                check=True,
            )
        subprocess.run(["cmake", "--build", str(tree), "--target", "bayesaim_python", "--parallel", str(os.cpu_count() or 1)],
                       check=True)
        built = list((tree / "python" / "bayesaim").glob("_core*.so"))
        if len(built) != 1:
            raise RuntimeError(f"expected one extension module in {tree}, found {len(built)}")
        target = Path(self.get_ext_fullpath(extension.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(built[0], target)


setup(
    version=VERSION,
    packages=["bayesaim"],
    package_dir={"": "python"},
    package_data={"bayesaim": ["py.typed", "*.pyi"]},
    ext_modules=[Extension("bayesaim._core", sources=[])],
    cmdclass={"build_ext": CMakeBuild},
)

# SPDX-License-Identifier: MIT
"""Which kernels OpenBLAS runs on.

A processor newer than OpenBLAS is taken for the oldest one, at a third of the speed. The choice is made when
OpenBLAS is loaded, and OPENBLAS_CORETYPE corrects it. The command-line program sets it and starts itself again; we
set it if numpy or another library has not loaded OpenBLAS before us. Kernels of another kind round
differently: results then agree with the program's to some 12 digits instead of to the last bit.
"""
from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

VARIABLE = "OPENBLAS_CORETYPE"
_QUESTION = "import sys; sys.path.insert(0, {!r}); import _core; print(_core.better_blas_kernels() or '')"


def _is_loaded() -> bool:
    try:
        return "libopenblas" in Path("/proc/self/maps").read_text()
    except OSError:
        return True  # unknown: change nothing


def _better_kernels() -> str:
    """Runs in another process, because the check loads OpenBLAS."""
    if not sys.executable:
        return ""
    command = [sys.executable, "-E", "-S", "-c", _QUESTION.format(os.path.dirname(os.path.abspath(__file__)))]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return run.stdout.strip()


@contextlib.contextmanager
def better_kernels() -> Iterator[None]:
    """Sets the variable while OpenBLAS is loaded, then restores the environment."""
    if VARIABLE in os.environ or _is_loaded():
        yield
        return
    kernels = _better_kernels()
    if kernels:
        os.environ[VARIABLE] = kernels
    try:
        yield
    finally:
        os.environ.pop(VARIABLE, None)


def warn_if_slow(better: str | None) -> None:
    if better and VARIABLE not in os.environ:
        warnings.warn(
            f"OpenBLAS was loaded before bayesaim with slow kernels: import bayesaim first, or set {VARIABLE}={better}",
            RuntimeWarning,
            stacklevel=3,
        )

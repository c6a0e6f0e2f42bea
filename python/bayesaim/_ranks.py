# SPDX-License-Identifier: MIT
"""Computations that several processes do together, by MPI."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import _core


@contextmanager
def over_ranks(communicator: Any) -> Iterator[None]:
    """Divides the samples of `generate`, `amp`, `gradient_descent`, `train`, `erm` and `fit` over the ranks of an mpi4py communicator.

    All ranks make the same calls, and all get the same result, with the bits of one process. `generate` keeps the tokens and
    outputs of its own rank (outputs of others are NaN); of arrays that you give, each rank reads its own samples only, so `numpy.load(..., mmap_mode="r")` reads
    a part of the file. Use it for one thread of Python at a time.

    >>> from mpi4py import MPI
    >>> with bayesaim.over_ranks(MPI.COMM_WORLD):
    ...     data = bayesaim.generate(bayesaim.Wishart(0.5), bayesaim.Softmax(2), dim=100, alpha=0.1)
    ...     result = bayesaim.amp(data, bayesaim.Wishart(0.5), bayesaim.Softmax(2))
    """
    try:
        from mpi4py import MPI
    except ImportError:
        raise ImportError("over_ranks needs mpi4py (python3-mpi4py)") from None
    if not isinstance(communicator, MPI.Comm):
        raise TypeError(f"communicator must be one of mpi4py, got {type(communicator).__name__}")
    _core.join_ranks(MPI._addressof(communicator))
    try:
        yield
    finally:
        _core.join_ranks(0)


__all__ = ["over_ranks"]

# SPDX-License-Identifier: MIT
"""Studies: many points, on disk, killed and resumed at any time."""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from . import _arguments as check
from . import _convergence, _core
from ._results import RerunResult, SweepPlan, SweepResult


def read_experiment(file: str | os.PathLike[str]) -> _core.Experiment:
    """A study from a TOML file (see docs/guide.md).

    >>> bayesaim.read_experiment("examples/study.toml").tasks[0]
    """
    return _core.read_experiment(os.fspath(file))


def parse_experiment(text: str, name: str = "study") -> _core.Experiment:
    """The same from a text.

    >>> bayesaim.parse_experiment('estimator = "theory"\\nalpha = "0.1,0.2"')
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be a str, got {check.kind_of(text)}")
    return _core.parse_experiment(text, name, "")


def _experiment(value: _core.Experiment | str | os.PathLike[str]) -> _core.Experiment:
    return value if isinstance(value, _core.Experiment) else read_experiment(value)


def _options(shard: str, retry_failed: bool, threads: int) -> _core.SweepOptions:
    if not isinstance(shard, str):
        raise TypeError(f"shard must be a text such as '1/3', got {check.kind_of(shard)}")
    return _core.SweepOptions(shard, bool(retry_failed), check.threads(threads))


def _status(point: dict[str, Any]) -> str:
    return f"failed ({point['reason']})" if point["status"] == "failed" else str(point["status"])


def _place(point: dict[str, Any]) -> str:
    """As in "is amp, alpha 0.1, width 0.5, dim 100, seed 3"."""
    settings = [f"{name} {point[name]}" for name in ("alpha", "width", "dim", "seed") if name in point]
    return ", ".join([f"is {point['estimator']}", *settings])


def sweep(
    experiment: _core.Experiment | str | os.PathLike[str],
    directory: str | os.PathLike[str],
    *,
    shard: str = "1/1",
    retry_failed: bool = False,
    threads: int = 0,
    progress: Any = None,
) -> SweepResult:
    """Computes the missing points of a study in a run directory, with the files and bytes of `bayesaim sweep`.

    Ctrl-C keeps the finished points; the same call continues from there. A ConvergenceWarning counts the points that
    failed or did not converge. Worker threads call `progress`.

    >>> bayesaim.sweep("examples/study.toml", "results/study").column("error")
    """
    result = SweepResult(
        **_core.run_sweep(
            _experiment(experiment),
            os.fspath(directory),
            _options(shard, retry_failed, threads),
            check.progress(progress),
        )
    )
    done = [point for point in result.points if "status" in point]
    if text := _convergence.lost_text("points", [_status(point) for point in done], lambda i: _place(done[i])):
        _convergence.warn(text)
    return result


def plan(
    experiment: _core.Experiment | str | os.PathLike[str],
    directory: str | os.PathLike[str],
    *,
    shard: str = "1/1",
    retry_failed: bool = False,
    threads: int = 0,
) -> SweepPlan:
    """The number of points that sweep would compute and the estimated time, as `bayesaim sweep --dry-run`.

    >>> bayesaim.plan("examples/study.toml", "results/study").seconds
    """
    return SweepPlan(
        **_core.plan_sweep(_experiment(experiment), os.fspath(directory), _options(shard, retry_failed, threads))
    )


def merge(directories: Sequence[str | os.PathLike[str]], output: str | os.PathLike[str]) -> SweepResult:
    """Joins the run directories of the shards of a study in `output`, as `bayesaim merge`.

    >>> bayesaim.merge(["results/study-1", "results/study-2"], "results/study")
    """
    if isinstance(directories, (str, bytes, os.PathLike)):
        raise TypeError(f"directories must be a list of directories, got {check.kind_of(directories)}")
    merged = _core.merge([os.fspath(one) for one in directories], os.fspath(output))
    return SweepResult(**merged, computed=0, stopped=False)


def rerun(
    provenance: str | os.PathLike[str], directory: str | os.PathLike[str], *, threads: int = 0, progress: Any = None
) -> RerunResult:
    """Repeats a study from its provenance.json in another directory, and compares the bits, as `bayesaim rerun`.

    >>> bayesaim.rerun("results/study/provenance.json", "results/again").same_bits
    """
    if os.path.realpath(os.path.dirname(os.path.abspath(provenance))) == os.path.realpath(directory):
        raise ValueError(f"directory must be other than that of the result, got {os.fspath(directory)!r}")
    options = _options("1/1", False, threads)
    return RerunResult(
        **_core.rerun(os.fspath(provenance), os.fspath(directory), options, check.progress(progress))
    )


__all__ = ["merge", "parse_experiment", "plan", "read_experiment", "rerun", "sweep"]

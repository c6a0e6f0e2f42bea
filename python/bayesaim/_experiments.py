# SPDX-License-Identifier: MIT
"""Studies: many points, on disk, killed and resumed at any time."""
from __future__ import annotations

import os
from typing import Any

from . import _arguments as check
from . import _core
from ._results import SweepResult


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


def sweep(
    experiment: _core.Experiment | str | os.PathLike[str],
    directory: str | os.PathLike[str],
    *,
    shard: str = "1/1",
    retry_failed: bool = False,
    threads: int = 0,
    progress: Any = None,
) -> SweepResult:
    """Does what is missing of a study in a run directory, with the same files and bytes as `bayesaim sweep`.

    Ctrl-C keeps what is finished: the same call goes on from there. `progress` is called from the threads that work.

    >>> bayesaim.sweep("examples/study.toml", "results/study").column("error")
    """
    if not isinstance(experiment, _core.Experiment):
        experiment = read_experiment(experiment)
    if not isinstance(shard, str):
        raise TypeError(f"shard must be a text such as '1/3', got {check.kind_of(shard)}")
    options = _core.SweepOptions()
    options.set_shard(shard)
    options.retry_failed = bool(retry_failed)
    options.threads = check.threads(threads)
    return SweepResult(
        **_core.run_sweep(experiment, os.fspath(directory), options, check.progress(progress))
    )

# SPDX-License-Identifier: MIT
"""State evolution: Bayes-optimal errors for large d, thresholds, trajectories."""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import _arguments as check
from . import _core
from ._arguments import Floats
from ._results import TheoryCurve, Thresholds


def _settings(
    limit: str | None,
    tolerance: float,
    max_iterations: int,
    integration_points: int,
    seed: int,
    threads: int,
) -> _core.TheorySettings:
    settings = _core.TheorySettings()
    if limit is not None:
        check.one_of("limit", limit, ["small-width"])
        settings.small_width = True
    settings.tolerance = check.number("tolerance", tolerance)
    settings.max_iterations = check.count("max_iterations", max_iterations, 1)
    settings.integration_points = check.count("integration_points", integration_points, 1)
    settings.seed = check.seed(seed)
    settings.threads = check.threads(threads)
    return settings


def theory(
    prior: _core.Prior,
    channel: _core.Channel,
    alpha: ArrayLike,
    *,
    branch: str = "optimal",
    limit: str | None = None,
    generalization: bool = False,
    free_entropy: bool = False,
    tolerance: float = 1e-12,
    max_iterations: int = 1000,
    integration_points: int = 128,
    seed: int = 0,
    threads: int = 0,
    progress: Any = None,
) -> TheoryCurve:
    """Errors at the fixed point of state evolution, for each alpha = n/d^2; as `bayesaim theory`.

        E = mmse(1/qhat),  qhat = 4 alpha F(Q - E)

    `branch` is the Bayes-optimal fixed point, or that reached from no data ("uninformed", what an algorithm can do) or
    from next to the truth ("informed"). `generalization` and `free_entropy` add columns that take time of their own.
    `limit="small-width"` takes width to 0, alpha then counts in widths.
    `integration_points` matter where expectations are sampled (hardmax with T > 2, channels of your own).

    >>> bayesaim.theory(bayesaim.Wishart(0.5), bayesaim.Softmax(2), [0.05, 0.1]).estimation_error
    """
    alphas, _ = check.line("alpha", alpha)
    if limit is not None and not isinstance(check.prior(prior), _core.Wishart):
        raise ValueError(f"prior with limit must be one of Wishart, got {check.kind_of(prior)}")
    columns = _core.theory_curve(
        check.prior(prior),
        check.channel(channel),
        alphas,
        check.one_of("branch", branch, ["optimal", "uninformed", "informed"]),
        bool(generalization),
        bool(free_entropy),
        _settings(limit, tolerance, max_iterations, integration_points, seed, threads),
        check.progress(progress),
    )
    columns["status"] = np.array(columns["status"], dtype=str)
    columns["iterations"] = np.array(columns["iterations"], dtype=np.int64)
    for name in columns:
        unwanted = (
            ("generalization" in name and not generalization)
            or (name == "free_entropy" and not free_entropy)
            or (name == "algorithmic_error" and branch != "optimal")
        )
        if unwanted:
            columns[name] = None
    return TheoryCurve(**columns)


def trajectory(
    prior: _core.Prior,
    channel: _core.Channel,
    alpha: float,
    iterations: int,
    *,
    start: str = "uninformed",
    limit: str | None = None,
    integration_points: int = 128,
    seed: int = 0,
    threads: int = 0,
) -> Floats:
    """Error E_t of the iterates of state evolution, which AMP follows without damping; E_0 is that of no data.

        E_(t+1) = mmse(1/qhat_t),  qhat_t = 4 alpha F(Q - E_t)

    >>> bayesaim.trajectory(bayesaim.Wishart(0.5), bayesaim.Softmax(2), 0.1, iterations=20)
    """
    return _core.trajectory(
        check.prior(prior),
        check.channel(channel),
        check.number("alpha", alpha),
        check.count("iterations", iterations),
        check.one_of("start", start, ["uninformed", "informed"]) == "informed",
        _settings(limit, 1e-12, 1000, integration_points, seed, threads),
    )


def thresholds(
    prior: _core.Prior,
    channel: _core.Channel,
    *,
    search: tuple[float, float] = (0.01, 10),
    seed: int = 0,
    threads: int = 0,
) -> Thresholds:
    """Where learning begins and where it is perfect, in alpha; as `bayesaim threshold`.

        weak recovery 1/(4 F(q = 0)),  strong recovery lim mmse(D)/D / (2 m) with m exact observations

    A first-order transition is looked for in `search`, except with sampled channels.

    >>> bayesaim.thresholds(bayesaim.Wishart(0.5), bayesaim.Softmax(2)).strong_recovery
    """
    return Thresholds(
        **_core.thresholds(
            check.prior(prior),
            check.channel(channel),
            *check.interval("search", search),
            _settings(None, 1e-12, 1000, 128, seed, threads),
        )
    )

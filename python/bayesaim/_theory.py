# SPDX-License-Identifier: MIT
"""State evolution: Bayes-optimal errors for large d, thresholds, trajectories."""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import _arguments as check
from . import _core
from ._arguments import Floats, Priors
from ._results import TheoryCurve, Thresholds


def _settings(
    limit: str | None = None,
    tolerance: float = 1e-12,
    max_iterations: int = 1000,
    method: str = "automatic",
    *,
    integration_points: int = 128,
    seed: int,
    threads: int,
) -> _core.TheorySettings:
    if limit is not None:
        check.one_of("limit", limit, ["small-width"])
    return _core.TheorySettings(
        limit is not None,
        check.number("tolerance", tolerance),
        check.count("max_iterations", max_iterations, 1),
        method,
        check.count("integration_points", integration_points, 1),
        check.seed(seed),
        check.threads(threads),
    )


def theory(
    prior: Priors,
    channel: _core.Channel,
    alpha: ArrayLike,
    *,
    branch: str = "optimal",
    limit: str | None = None,
    generalization: bool = False,
    free_entropy: bool = False,
    method: str = "automatic",
    tolerance: float = 1e-12,
    max_iterations: int = 1000,
    integration_points: int = 128,
    seed: int = 0,
    threads: int = 0,
    progress: Any = None,
) -> TheoryCurve:
    """Errors at the fixed point of state evolution, for each alpha = n/d^2; as `bayesaim theory`.

        C = E(1/qhat),  qhat = 4 alpha F(Q - C)

    E is the best error under noise of variance 1/qhat: mmse for one layer, layers.covariance for several, whose q, qhat and
    C are L x L. `prior` is one for all layers, or a list with one per layer.

    `branch` is "optimal" (the Bayes-optimal fixed point), "uninformed" (reached from no data, as an algorithm does) or
    "informed" (reached from next to the truth). `generalization` and `free_entropy` add columns and take more time.
    `limit="small-width"` takes the width to 0; alpha then counts in widths. `method` is "automatic", or how the fixed point
    is found: "bracketed" (one layer, exact observations), "monotone" (one layer) or "newton". `integration_points` matter
    where expectations are sampled: hardmax with T > 2, several layers (seconds a point), channels of your own.

    >>> bayesaim.theory(bayesaim.Wishart(0.5), bayesaim.Softmax(2), [0.05, 0.1]).estimation_error
    """
    alphas, _ = check.line("alpha", alpha)
    if limit is not None and not isinstance(prior, _core.Wishart):
        raise ValueError(f"prior with limit must be one of Wishart, got {check.kind_of(prior)}")
    rows = _core.theory_curve(
        check.model(prior, channel),
        alphas,
        check.one_of("branch", branch, ["optimal", "uninformed", "informed"]),
        bool(generalization),
        bool(free_entropy),
        _settings(
            limit, tolerance, max_iterations, method, integration_points=integration_points, seed=seed, threads=threads
        ),
        check.progress(progress),
    )
    columns: dict[str, Any] = {name: np.array([row[name] for row in rows])[:-1] for name in rows[-1]}
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
    prior: Priors,
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
    """Error C_t of the iterates of state evolution, which AMP follows without damping; C_0 is the error without data.

        C_(t+1) = E(1/qhat_t),  qhat_t = 4 alpha F(Q - C_t)

    Numbers for one layer; (iterations + 1, L, L) for several, whose traces are the errors.

    >>> bayesaim.trajectory(bayesaim.Wishart(0.5), bayesaim.Softmax(2), 0.1, iterations=20)
    """
    return _core.trajectory(
        check.model(prior, channel),
        check.number("alpha", alpha),
        check.count("iterations", iterations),
        check.one_of("start", start, ["uninformed", "informed"]) == "informed",
        _settings(limit, integration_points=integration_points, seed=seed, threads=threads),
    )


def thresholds(
    prior: Priors,
    channel: _core.Channel,
    *,
    search: tuple[float, float] = (0.01, 10),
    seed: int = 0,
    threads: int = 0,
) -> Thresholds:
    """Where learning begins and where it is perfect, in alpha; as `bayesaim threshold`.

        weak recovery 1/(4 F(q = 0)),  strong recovery sum_l lim mmse_l(D)/D / (2 m)

    m is the number of combinations of h that an output fixes (Channel.observed_combinations). A first-order transition is
    looked for in `search`, except with sampled channels.

    >>> bayesaim.thresholds(bayesaim.Wishart(0.5), bayesaim.Softmax(2)).strong_recovery
    """
    return Thresholds(
        **_core.thresholds(
            check.model(prior, channel), *check.interval("search", search), _settings(seed=seed, threads=threads)
        )
    )


__all__ = ["theory", "thresholds", "trajectory"]

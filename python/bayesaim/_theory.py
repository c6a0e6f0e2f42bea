# SPDX-License-Identifier: MIT
"""State evolution: Bayes-optimal errors for large d, thresholds, trajectories."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from . import _arguments as check
from . import _convergence, _core
from ._arguments import Floats, Priors
from ._results import PhaseDiagram, RequiredSamples, TheoryCurve, Thresholds, TrainedCurve, TrainedThresholds


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


def _erm_settings(
    loss: str | None, penalty: str, integration_points: int = 128, seed: int = 0, threads: int = 0
) -> _core.ErmSettings:
    points = check.count("integration_points", integration_points, 1)
    return _core.ErmSettings(loss, penalty, points, check.seed(seed), check.threads(threads))


def _shape(regularizations: list[float | None], single: bool, alphas: Floats) -> tuple[int, ...]:
    """A row for each regularization, unless there is but one number."""
    return alphas.shape if single else (len(regularizations), *alphas.shape)


def _columns(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The values of all points by name; the last row, of no point, has names and shapes."""
    return {name: np.array([row[name] for row in rows])[:-1] for name in rows[-1]}


def _trained(
    model: _core.Model, alphas: Floats, regularization: Any, settings: _core.ErmSettings, progress: Any
) -> TrainedCurve:
    values, single = check.regularizations(regularization)
    columns = _columns(_core.erm_curve([model], alphas, values, settings, check.progress(progress)))
    text = _convergence.lost_text(
        "points",
        columns["status"],
        lambda i: f"at alpha {columns['alpha'][i]:g}, regularization {columns['regularization'][i]:g}",
    )
    shape = _shape(values, single, alphas)
    if text:
        _convergence.warn(text, depth=4)
    return TrainedCurve(**{name: column.reshape(shape) for name, column in columns.items()})


@overload
def theory(
    prior: Priors,
    channel: _core.Channel,
    alpha: str | ArrayLike,
    *,
    estimator: Literal["bayes"] = ...,
    branch: str = ...,
    limit: str | None = ...,
    generalization: bool = ...,
    free_entropy: bool = ...,
    method: str = ...,
    tolerance: float = ...,
    max_iterations: int = ...,
    integration_points: int = ...,
    seed: int = ...,
    threads: int = ...,
    progress: Any = ...,
) -> TheoryCurve: ...
@overload
def theory(
    prior: Priors,
    channel: _core.Channel,
    alpha: str | ArrayLike,
    *,
    estimator: Literal["erm"],
    regularization: str | ArrayLike,
    loss: str | None = ...,
    penalty: str = ...,
    integration_points: int = ...,
    seed: int = ...,
    threads: int = ...,
    progress: Any = ...,
) -> TrainedCurve: ...
def theory(
    prior: Priors,
    channel: _core.Channel,
    alpha: str | ArrayLike,
    *,
    estimator: str = "bayes",
    loss: str | None = None,
    penalty: str = "trace",
    regularization: str | ArrayLike | None = None,
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
) -> Any:
    """Errors at the fixed point of state evolution, for each alpha = n/d^2; as `bayesaim theory`.

        C = E(1/qhat),  qhat = 4 alpha F(Q - C)

    E is the best error under noise of variance 1/qhat: mmse for one layer, layers.covariance for several, whose q, qhat and
    C are L x L. `prior` is one for all layers, or a list with one per layer. `alpha` is numbers, or a grid as on the
    command line: "0.1,0.2", "0.1:0.5:9", "log:0.1:10:9"; x counts in units of the strong-recovery threshold, "0.1x:1.1x:11".

    `branch` is "optimal" (the Bayes-optimal fixed point), "uninformed" (reached from no data, as an algorithm does) or
    "informed" (reached from next to the truth). `generalization` and `free_entropy` add columns and take more time.
    `limit="small-width"` takes the width to 0; alpha then counts in widths. `method` is "automatic", or how the fixed point
    is found: "bracketed" (one layer, exact observations), "monotone" (one layer) or "newton". `integration_points` matter
    where expectations are sampled: several layers (seconds a point), channels of your own. A
    ConvergenceWarning counts the points that did not converge.

    `estimator="erm"` is attention trained with weight decay instead, which does not know the prior: the minimum of a loss
    plus regularization d Tr S, as help(bayesaim.train) has it. The result is a TrainedCurve. `regularization` is a number,
    0 for the limit 0+, several (a row for each), a grid, or "optimal" for the best of each alpha.

    >>> bayesaim.theory(bayesaim.Wishart(0.5), bayesaim.Softmax(2), [0.05, 0.1]).estimation_error
    >>> bayesaim.theory(bayesaim.Wishart(0.5), bayesaim.Softmax(2), 0.12, estimator="erm", regularization=0.05).training_loss
    """
    unlike = {
        "erm": {"loss": (loss, None), "penalty": (penalty, "trace"), "regularization": (regularization, None)},
        "bayes": {
            "branch": (branch, "optimal"),
            "limit": (limit, None),
            "free_entropy": (free_entropy, False),
            "method": (method, "automatic"),
            "tolerance": (tolerance, 1e-12),
            "max_iterations": (max_iterations, 1000),
        },
    }
    if check.estimator(estimator, unlike) == "erm":
        model, settings = check.model(prior, channel), _settings(seed=seed, threads=threads)
        alphas = check.grid("alpha", alpha, lambda: _core.strong_recovery(model, settings))
        return _trained(
            model, alphas, regularization, _erm_settings(loss, penalty, integration_points, seed, threads), progress
        )
    if limit is not None and not isinstance(prior, _core.Wishart):
        raise ValueError(f"prior with limit must be one of Wishart, got {check.kind_of(prior)}")
    if limit is not None and "scale" in prior.parameters():
        raise ValueError("scale cannot be combined with limit")
    settings = _settings(
        limit, tolerance, max_iterations, method, integration_points=integration_points, seed=seed, threads=threads
    )
    model = check.model(prior, channel)
    alphas = check.grid("alpha", alpha, lambda: _core.strong_recovery(model, settings))
    rows = _core.theory_curve(
        [model],
        alphas,
        check.one_of("branch", branch, ["optimal", "uninformed", "informed"]),
        bool(generalization),
        bool(free_entropy),
        False,
        settings,
        check.progress(progress),
    )
    columns = _columns(rows)
    for name in columns:
        unwanted = (
            ("generalization" in name and not generalization)
            or (name == "free_entropy" and not free_entropy)
            or (name == "algorithmic_error" and branch != "optimal")
        )
        if unwanted:
            columns[name] = None
    if text := _convergence.lost_text("points", columns["status"], lambda i: f"at alpha {alphas[i]:g}"):
        _convergence.warn(text)
    return TheoryCurve(**columns)


def phase(
    channel: _core.Channel,
    alpha: str | ArrayLike,
    width: str | ArrayLike,
    *,
    prior: str | Callable[[float], _core.Prior] = "wishart",
    estimator: str = "bayes",
    loss: str | None = None,
    penalty: str = "trace",
    regularization: float | str | None = None,
    integration_points: int = 128,
    seed: int = 0,
    threads: int = 0,
    progress: Any = None,
) -> PhaseDiagram:
    """Bayes-optimal errors over a grid of alpha and width, or those of training; as `bayesaim phase`.

    `alpha` and `width` are numbers, or grids as in `theory`; x counts in units of the threshold of each width. `prior` is
    the name of a prior that has a width, or a function that makes a prior of this width. With `estimator="erm"` the errors
    and `strong_recovery` are those of training, as in `theory`, with one `regularization`, or the best of each point.

    >>> bayesaim.phase(bayesaim.Softmax(2), "0.01:0.3:30", "0.1:1.5:15").estimation_error
    """

    def make(one: float) -> _core.Prior:
        return check.prior(prior(one)) if callable(prior) else _core.make_prior(prior, width=one)

    unlike = {"erm": {"loss": (loss, None), "penalty": (penalty, "trace"), "regularization": (regularization, None)}}
    erm = check.estimator(estimator, unlike) == "erm"
    widths = check.grid("width", width)
    settings = _settings(integration_points=integration_points, seed=seed, threads=threads)
    models = [check.model(make(one), channel) for one in widths.tolist()]
    if not models:
        raise ValueError("width must have at least one value, got none")
    strong = [_core.strong_recovery(model, settings) for model in models]
    alphas = np.array([check.grid("alpha", alpha, lambda: one) for one in strong])
    if erm:
        values, single = check.regularizations(regularization)
        if not single:
            raise ValueError(f"regularization must be one number here, or 'optimal', got {len(values)} numbers")
        trained = _erm_settings(loss, penalty, integration_points, seed, threads)
        rows = _core.erm_curve(models, alphas.ravel(), values, trained, check.progress(progress))
        strong = [_core.erm_thresholds(model, trained)["strong_recovery"] for model in models]
    else:
        rows = _core.theory_curve(models, alphas.ravel(), "optimal", False, False, True, settings, check.progress(progress))
    columns = _columns(rows)
    flat = columns["status"]
    text = _convergence.lost_text(
        "points", flat, lambda i: f"at alpha {alphas.flat[i]:g}, width {widths[i // alphas.shape[1]]:g}"
    )
    if text:
        _convergence.warn(text)
    return PhaseDiagram(
        alpha=alphas,
        width=widths,
        strong_recovery=np.array([np.nan if one is None else one for one in strong]),
        **{name: columns[name].reshape(alphas.shape) for name in ("estimation_error", "standard_error", "status")},
    )


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


def samples(
    prior: Priors,
    channel: _core.Channel,
    target_error: float,
    dim: int = 1000,
    *,
    integration_points: int = 128,
    seed: int = 0,
    threads: int = 0,
) -> RequiredSamples:
    """How many samples reach an estimation error, to a relative accuracy of 1e-6; as `bayesaim samples`.

    alpha is the least one whose error is at most `target_error`; n = alpha d^2, or alpha d1 d2 if keys have another dimension.

    >>> bayesaim.samples(bayesaim.Wishart(0.5), bayesaim.Softmax(2), target_error=0.1, dim=1000).samples
    """
    target = check.number("target error", target_error)
    size = check.count("dim", dim, 2)
    settings = _settings(integration_points=integration_points, seed=seed, threads=threads)
    alpha = _core.required_samples(check.model(prior, channel), target, settings)
    if alpha is None:
        return RequiredSamples(alpha=None, samples=None, estimation_error=None, generalization_error=None)
    point = theory(
        prior, channel, [alpha], generalization=True, integration_points=integration_points, seed=seed, threads=threads
    )
    aspect = prior.parameters().get("aspect", 1) if isinstance(prior, _core.Prior) else 1
    return RequiredSamples(
        alpha=alpha,
        samples=math.ceil(alpha * (size * size * aspect)),
        estimation_error=float(point.estimation_error[0]),
        generalization_error=float(point.generalization_error[0]),
    )


@overload
def thresholds(
    prior: _core.Prior,
    channel: _core.Channel,
    *,
    estimator: Literal["bayes"] = ...,
    search: tuple[float, float] = ...,
    seed: int = ...,
    threads: int = ...,
) -> Thresholds: ...
@overload
def thresholds(
    prior: _core.Prior, channel: _core.Channel, *, estimator: Literal["erm"], loss: str | None = ..., penalty: str = ...
) -> TrainedThresholds: ...
@overload
def thresholds(
    prior: Sequence[_core.Prior],
    channel: _core.Channel,
    *,
    estimator: str = ...,
    loss: str | None = ...,
    penalty: str = ...,
    search: tuple[float, float] = ...,
    seed: int = ...,
    threads: int = ...,
) -> Any: ...  # one result for the layers of a network, a list for a family
def thresholds(
    prior: Priors,
    channel: _core.Channel,
    *,
    estimator: str = "bayes",
    loss: str | None = None,
    penalty: str = "trace",
    search: tuple[float, float] = (0.01, 10),
    seed: int = 0,
    threads: int = 0,
) -> Any:
    """Where learning begins and where it is perfect, in alpha; as `bayesaim threshold`.

        weak recovery 1/(4 F(q = 0)),  strong recovery sum_l lim mmse_l(D)/D / (2 m)

    m is the number of combinations of h that an output fixes (Channel.observed_combinations). A first-order transition is
    looked for in `search`, except with sampled channels. `prior` is one for all layers, or a list with one per layer; for
    a channel of one layer a list is a family, and the result a list with the thresholds of each prior. `threshold` is the
    same function. With `estimator="erm"` they are those of training with weak regularisation, `strong_recovery` of outputs
    without noise and `interpolation` of noisy ones; `loss` and `penalty` are those of `train`.

    >>> bayesaim.thresholds(bayesaim.Wishart(0.5), bayesaim.Softmax(2)).strong_recovery
    >>> bayesaim.thresholds(bayesaim.Wishart(0.5), bayesaim.Linear(2, 0.5), estimator="erm").interpolation
    >>> bayesaim.thresholds([bayesaim.Wishart(width) for width in (0.25, 0.5, 1)], bayesaim.Softmax(2))
    """
    unlike = {"erm": {"loss": (loss, None), "penalty": (penalty, "trace")}}
    erm = check.estimator(estimator, unlike) == "erm"
    ends, settings = check.interval("search", search), _settings(seed=seed, threads=threads)
    family = check.channel(channel).layers == 1 and isinstance(prior, (list, tuple)) and len(prior) > 0
    models = [check.model(one, channel) for one in (prior if family else [prior])]
    found: list[Any]
    if erm:
        trained = _erm_settings(loss, penalty, seed=seed, threads=threads)
        found = [TrainedThresholds(**_core.erm_thresholds(model, trained)) for model in models]
    else:
        found = [Thresholds(**_core.thresholds(model, *ends, settings)) for model in models]
    return found if family else found[0]


threshold = thresholds  # the name of the command

__all__ = ["phase", "samples", "theory", "threshold", "thresholds", "trajectory"]

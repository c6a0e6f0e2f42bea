# SPDX-License-Identifier: MIT
"""What training reaches: regularised losses, minimised on data, beside their theory; the spectrum of a trained matrix."""
from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import _arguments as check
from . import _convergence, _core
from ._data import Dataset, generate
from ._fit import _log_outputs
from ._results import TrainingResult, TrainingRuns
from ._spectral import _as_given
from ._theory import _erm_settings, _settings, _shape

_TRAINING = _core.TrainingOptions()
_LEAST = 1e-3  # stands for the limit 0+, which theory has and training has not


def _options(solver: str, tolerance: float, damping: float, max_iterations: int) -> _core.TrainingOptions:
    options = _core.TrainingOptions()
    options.solver = solver
    options.tolerance = check.number("tolerance", tolerance)
    options.damping = check.number("damping", damping)
    options.max_iterations = check.count("max_iterations", max_iterations, 1)
    return options


def train(
    tokens: Dataset | ArrayLike,
    outputs: ArrayLike | None = None,
    channel: _core.Channel | str = "softmax",
    *,
    regularization: float,
    loss: str | None = None,
    penalty: str = "trace",
    log_outputs: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    initial: ArrayLike | None = None,
    solver: str = _TRAINING.solver,
    tolerance: float = _TRAINING.tolerance,
    damping: float = _TRAINING.damping,
    max_iterations: int = _TRAINING.max_iterations,
    threads: int = 0,
    progress: Any = None,
) -> TrainingResult:
    """Trains one layer of tied attention to the end: the minimum over S of

        sum_samples loss(y, h) + regularization d penalty(S),  h_ab = (x_a' S x_b - delta_ab Tr S) / sqrt(d)

    `penalty` is "trace", Tr S over S >= 0, which is weight decay on W, S = W W'/sqrt(m d), of width m >= d; or "frobenius",
    Tr S^2/2, weight decay on the entries of S. `loss` is "square" (linear, the default there; softmax: of the outputs, not
    convex), for softmax also "logit" (default), "row-logit" or "cross-entropy". `tokens` is (n, T, d), `outputs` (n, T, T):
    probabilities for softmax, or `log_outputs`; or `tokens` is a Dataset. `channel` is "softmax", "linear", or one such as
    Softmax(2, beta=2). `weights` is S, if you know it. `solver` is "message-passing", "proximal-gradient" or "automatic",
    the first and where it fails the second; both end at the same minimum, `tolerance` from it. Training knows no prior,
    and learns nothing but S: see `fit` for that.

    >>> bayesaim.train(tokens, attention_maps, regularization=0.05).estimate
    """
    if isinstance(tokens, Dataset):
        for name, value in (("outputs", outputs), ("log_outputs", log_outputs), ("weights", weights)):
            if value is not None:
                raise ValueError(f"{name} cannot be combined with a Dataset, which has them")
        data = tokens
    else:
        if (outputs is None) == (log_outputs is None):
            raise ValueError("outputs or log_outputs must be given, one of them")
        name, given = ("outputs", outputs) if log_outputs is None else ("log_outputs", log_outputs)
        given = check.real(name, given)
        softmax = channel == "softmax" if isinstance(channel, str) else check.channel(channel).logarithmic_outputs()
        if softmax and log_outputs is None:
            given = _log_outputs(np.asarray(given, dtype=float))
        elif not softmax and log_outputs is not None:
            raise ValueError("log_outputs applies only to channel 'softmax'")
        data = Dataset(tokens, given, weights=weights)
    if isinstance(channel, str):
        check.one_of("channel", channel, ["softmax", "linear"])
        channel = _core.make_channel(channel, tokens=data._data.token_count)
    options = _options(solver, tolerance, damping, max_iterations)
    options.regularization = check.number("regularization", regularization)
    settings = _erm_settings(loss, penalty, threads=threads)
    result = TrainingResult(
        **_core.run_erm(data._data, check.channel(channel), settings, options, initial, check.progress(progress))
    )
    if _convergence.lost(result.status):
        _convergence.warn(
            f"training did not converge: {result.status} after {result.iterations} iterations, KKT residual "
            f"{result.kkt_residual:.1e}; more iterations or a larger regularization may help"
        )
    return result


class _Stage:
    """Shows the progress of one of several runs."""

    def __init__(self, callback: check.Progress | None, total: int) -> None:
        self.callback, self.total, self.done, self.stopped = callback, total, 0, False
        self.text = ""

    def __call__(self, done: float, total: float, text: str) -> bool:
        if self.callback is not None:
            self.stopped |= self.callback(self.done + done / total, self.total, f"{self.text}, {text}") is False
        return not self.stopped


def _mean(runs: list[dict[str, Any]], name: str, expected: float = math.nan) -> tuple[float, float, float]:
    """Mean, standard error and distance from the expected value in standard errors; NaN for what there is not."""
    mean, error, z = _core.mean_of([run[name] for run in runs], expected)
    return mean, math.nan if error is None else error, math.nan if z is None else z


def _summary(runs: list[dict[str, Any]], theory: dict[str, Any], bayes_error: float) -> dict[str, Any]:
    expected = theory["estimation_error"]
    error, standard_error, z_score = _mean(runs, "error", expected)
    loss, loss_error, _ = _mean(runs, "training_loss")
    zeros, zeros_error, _ = _mean(runs, "zero_fraction")
    statuses = [run["status"] for run in runs]
    test, test_error, _ = _mean(runs, "generalization_error")
    return {
        "seeds": len(runs),
        "mean_error": error,
        "standard_error": standard_error,
        "theory_error": expected,
        "z_score": z_score,
        "difference_percent": 100 * (error / expected - 1) if expected > 0 else math.nan,
        "bayes_error": bayes_error,
        "training_loss": loss,
        "training_loss_standard_error": loss_error,
        "theory_training_loss": theory["training_loss"],
        "zero_fraction": zeros,
        "zero_fraction_standard_error": zeros_error,
        "theory_zero_fraction": theory["zero_fraction"],
        "generalization_error": test,
        "generalization_standard_error": test_error,
        "theory_generalization_error": theory["generalization_error"],
        "kkt_residual": max(run["kkt_residual"] for run in runs),
        "iterations": _mean(runs, "iterations")[0],
        "seconds_per_iteration": _mean(runs, "seconds_per_iteration")[0],
        "status": next(filter(_convergence.lost, statuses), statuses[0]),
    }


def erm(
    prior: _core.Prior,
    channel: _core.Channel,
    alpha: str | ArrayLike,
    *,
    regularization: str | ArrayLike,
    loss: str | None = None,
    penalty: str = "trace",
    dim: int = 100,
    seeds: int = 1,
    test_samples: int = 0,
    solver: str = _TRAINING.solver,
    tolerance: float = _TRAINING.tolerance,
    damping: float = _TRAINING.damping,
    max_iterations: int = _TRAINING.max_iterations,
    token_storage: str = "memory",
    precision: str = "double",
    seed: int = 0,
    threads: int = 0,
    progress: Any = None,
) -> TrainingRuns:
    """Attention trained with weight decay on synthetic data, solved to its minimum, beside its theory; as `bayesaim erm`.

    A problem of `dim` is drawn for each of `seeds` seeds from `seed` on, and `train` minimises the regularised loss, of
    which help(bayesaim.train) has the formula. `alpha` is as in `theory`; `regularization` is a number, several, a grid, or
    "optimal": the best for large d at each alpha, at least 0.001. `test_samples` new samples measure the generalisation
    error. The same seed gives the bits of the program. A callback `progress` may return False to stop; finished points are
    kept, and the status of the others is "stopped".

    >>> bayesaim.erm(bayesaim.Wishart(0.5), bayesaim.Softmax(2), 0.12, regularization=0.05, seeds=4).mean_error
    """
    values, single = check.regularizations(regularization)
    for value in values:
        if value is not None and not value > 0:
            raise ValueError(f"regularization must be positive ({_LEAST:g} is close to the limit 0+), got {value:g}")
    settings = _settings(seed=0, threads=threads)
    model, trained = check.model(prior, channel), _erm_settings(loss, penalty, threads=threads)
    options = _options(solver, tolerance, damping, max_iterations)
    dim, count, first = check.count("dim", dim, 2), check.count("seeds", seeds, 1), check.seed(seed)
    test_samples = check.count("test_samples", test_samples)
    alphas = check.grid("alpha", alpha, lambda: _core.strong_recovery(model, settings))
    if not (alphas > 0).all():
        raise ValueError(f"alpha must be positive, got {alphas.min():g}")
    _core.erm_curve([model], alphas[:0], values, trained, None)  # refuses what cannot be trained
    stage = _Stage(check.progress(progress), len(values) * len(alphas) * count)
    bayes = _core.theory_curve([model], alphas, "uninformed", False, False, False, settings, None)

    def solve(at: float, wanted: float | None) -> dict[str, Any]:
        return _core.erm_curve([model], np.array([at]), [wanted], trained, None)[0]

    def run(at: float, used: float, number: int) -> dict[str, Any]:
        options.regularization = used
        stage.text = f"alpha {at:g}, lambda {used:g}, seed {number}"
        data = generate(
            prior, channel, dim=dim, alpha=at, seed=number, token_storage=token_storage, precision=precision, threads=threads
        )._data
        result = _core.run_erm(data, channel, trained, options, None, stage)
        steps = result["seconds"]
        result["iterations"] = len(steps)
        result["seconds_per_iteration"] = float(np.mean(steps)) if len(steps) else math.nan
        result["generalization_error"] = math.nan
        if test_samples and result["status"] != "stopped":
            result["generalization_error"] = _core.test_error(
                data, result["estimate"], channel, test_samples, number, check.threads(threads)
            )
        del result["estimate"]
        stage.done += 1
        return result

    names = [field.name for field in dataclasses.fields(TrainingRuns) if field.name != "dim"]
    rows: list[dict[str, Any]] = []
    for wanted in values:
        for at, optimum in zip(alphas.tolist(), bayes):
            used = math.nan if wanted is None else wanted
            row: dict[str, Any] = {**dict.fromkeys(names, math.nan), "seeds": 0, "status": "stopped"}
            if not stage.stopped:
                if wanted is None:
                    used = max(solve(at, None)["regularization"], _LEAST)
                runs: list[dict[str, Any]] = []
                while len(runs) < count and not stage.stopped:
                    one = run(at, used, first + len(runs))
                    if one["status"] == "stopped":  # a stopped run has no result
                        break
                    runs.append(one)
                if runs:
                    row = _summary(runs, solve(at, used), optimum["estimation_error"])
            rows.append({**row, "alpha": at, "regularization": used})
    shape = _shape(values, single, alphas)
    columns: dict[str, Any] = {name: np.array([row[name] for row in rows]).reshape(shape) for name in names}
    if not test_samples:
        columns.update(dict.fromkeys([name for name in columns if "generalization" in name]))
    text = _convergence.lost_text(
        "points",
        [row["status"] for row in rows],
        lambda i: f"at alpha {rows[i]['alpha']:g}, regularization {rows[i]['regularization']:g}",
    )
    if text:
        _convergence.warn(text)
    return TrainingRuns(dim=dim, **columns)


class TrainedSpectrum(_core.TrainedLaw):
    """Law of the eigenvalues of a trained matrix for large d, as `bayesaim spectrum --estimator erm`.

        trace: Shat = gain (S + sqrt(D) Xi - threshold)_+;  frobenius: Shat = gain (S + sqrt(D) Xi)

    `zero_fraction` of them are 0; `density` and `edges` are those of the rest. The other attributes are those of a point of
    `theory(.., estimator="erm")`. `regularization` is one number, 0 for the limit 0+, or "optimal"; `loss` and `penalty`
    are those of `train`.

    >>> bayesaim.TrainedSpectrum(bayesaim.Wishart(0.5), bayesaim.Softmax(2), 0.12, regularization=0.05).zero_fraction
    """

    alpha: float
    regularization: float
    estimation_error: float
    standard_error: float
    generalization_error: float
    training_loss: float
    zero_fraction: float
    overlap: float
    self_overlap: float
    trace: float
    objective: float
    noise_variance: float
    gain: float
    threshold: float
    iterations: int
    status: str

    def __init__(
        self,
        prior: _core.Prior,
        channel: _core.Channel,
        alpha: float,
        *,
        regularization: float | str,
        loss: str | None = None,
        penalty: str = "trace",
        integration_points: int = 128,
        seed: int = 0,
        threads: int = 0,
    ) -> None:
        values, single = check.regularizations(regularization)
        if not single:
            raise ValueError(f"regularization must be one number here, or 'optimal', got {len(values)} numbers")
        settings = _erm_settings(loss, penalty, integration_points, seed, threads)
        super().__init__(check.model(prior, channel), check.number("alpha", alpha), values[0], settings)
        vars(self).update(self.point)
        if _convergence.lost(self.status):
            _convergence.warn(f"the theory of training did not converge: {self.status} after {self.iterations} iterations")

    def density(self, eigenvalues: ArrayLike) -> Any:
        """Of the eigenvalues that are not 0; its integral is 1 - zero_fraction."""
        return _as_given(super().density(check.array("eigenvalues", eigenvalues)))

    def to_dict(self) -> dict[str, Any]:
        """Its numbers by name."""
        return {**self.point, "edges": self.edges}

    def __repr__(self) -> str:
        bulks = ", ".join(f"[{low:.6g}, {high:.6g}]" for low, high in self.edges)
        return (
            f"TrainedSpectrum at alpha {self.alpha:g}, regularization {self.regularization:.6g}\n"
            f"  zeros: {self.zero_fraction:.6g}\n  bulks: {bulks}\n  estimation_error: {self.estimation_error:.8g}"
        )


__all__ = ["TrainedSpectrum", "erm", "train"]

# SPDX-License-Identifier: MIT
"""Estimates of S from data: AMP and gradient descent; predictions of new outputs."""
from __future__ import annotations

import hashlib
import json
import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import _arguments as check
from . import _convergence, _core
from ._arguments import Priors
from ._results import AmpResult, Descent, DescentResult, Prediction, TrainingResult
from ._data import Dataset
from ._fit import FitResult


def _dataset(value: Any) -> _core.Dataset:
    if not isinstance(value, Dataset):
        raise TypeError(f"data must be a Dataset, got {check.kind_of(value)}")
    return value._data


_AMP = _core.AmpOptions()


def amp(
    data: Dataset,
    prior: Priors,
    channel: _core.Channel,
    *,
    max_iterations: int = _AMP.max_iterations,
    tolerance: float = _AMP.tolerance,
    damping: float = _AMP.damping,
    adaptive_damping: bool = _AMP.adaptive_damping,
    response: str = _AMP.response,
    initial: str | ArrayLike = "mean",
    initial_error: ArrayLike | None = None,
    seed: int = 0,
    threads: int = 0,
    progress: Any = None,
) -> AmpResult:
    """Approximate message passing, as in `bayesaim amp` and `bayesaim fit`.

        omega = htilde(Shat) - O g,  g = d log Z(y, omega, 2 C) / d omega,  qhat = (4/d^2) sum g g'
        R_l = Shat_l + sum_m (A^-1)_lm (2/d) sum g^m_ab Z_ab,  D = A^-1 qhat A^-1
        Shat, C = denoise(R, D),  O = 2 C D^-1 A^-1

    `prior` is one for all layers, or a list with one per layer. `response` chooses A: "power" (qhat), "slope" ((4/d^2)
    sum -dg/domega) or "automatic" (the slope for several layers, untied attention and few samples). `initial` is "mean" (kappa1 I), "prior"
    (a draw, of `seed`), "informed" (the known weights), a matrix, or a list of one for each layer; `initial_error` is its
    error C. Damping 0.2 suits hardmax; softmax and linear need 0.5. `progress` is a callback(done, total, text), which may
    return False to stop, or a tqdm bar. Ctrl-C stops after the current iteration.

    >>> bayesaim.amp(data, bayesaim.Wishart(0.5), bayesaim.Softmax(2)).error
    """
    core = _dataset(data)
    options = _core.AmpOptions()
    options.max_iterations = check.count("max_iterations", max_iterations, 1)
    options.tolerance = check.number("tolerance", tolerance)
    options.damping = check.number("damping", damping)
    options.adaptive_damping = bool(adaptive_damping)
    options.response = response
    result = _core.run_amp(
        core,
        check.model(prior, channel),
        options,
        initial,
        initial_error,
        check.seed(seed),
        check.threads(threads),
        check.progress(progress),
    )
    if _convergence.lost(result["status"]):
        diverged = result["status"] == "diverged"
        advice = "" if diverged else "more iterations may help, or "
        advice += "the data do not look like this model, see docs/transformers.md"
        _convergence.warn(f"AMP did not converge: {result['status']} after {len(result['changes'])} iterations; {advice}")
    estimates = result["estimates"]
    return AmpResult(estimate=estimates[0] if len(estimates) == 1 else None, **result)


def _description(
    data: _core.Dataset, channel: _core.Channel, settings: dict[str, Any], starts: int
) -> dict[str, Any]:
    """Everything that the bits of a descent depend on. The outputs stand for the tokens, of which they are a function."""
    outputs = b"" if data.outputs is None else np.ascontiguousarray(data.outputs).tobytes()
    return {
        "data": f"{data.samples} samples of dimension {data.dim}, {hashlib.sha256(outputs).hexdigest()}",
        "channel": {"name": channel.name(), **channel.parameters()},
        "starts": starts,
        **dict(sorted(settings.items())),
    }


def _checkpoint(
    file: str | os.PathLike[str] | None, every: int, resume: bool, settings: dict[str, Any]
) -> _core.Checkpoint:
    every = check.count("checkpoint_every", every, 1)
    if file is None:
        if resume:
            raise ValueError("resume must be used with a checkpoint, got none")
        return _core.Checkpoint("", "", every, False)
    file = os.fspath(file)
    if resume:
        try:
            made = json.loads(_core.checkpoint_settings(file))
        except json.JSONDecodeError:
            made = {}
        for name, value in settings.items():
            if made.get(name) != value:
                raise ValueError(f"checkpoint must be of the same {name}, {value}, got {made.get(name)}")
    elif os.path.exists(file):
        raise ValueError(f"checkpoint must be a new file, or used with resume=True, got {file!r}")
    return _core.Checkpoint(file, json.dumps(settings), every, bool(resume))


def gradient_descent(
    data: Dataset,
    channel: _core.Channel,
    *,
    width: float,
    starts: int = 1,
    steps: int = 1000,
    learning_rate: float = 0.1,
    optimizer: str = "adam",
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_decay: float = 0,
    batch_size: int = 0,
    gradient_tolerance: float = 0,
    loss_tolerance: float = 0,
    precision: str = "float",
    seed: int = 0,
    record_stride: int = 10,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 100,
    resume: bool = False,
    threads: int = 0,
    progress: Any = None,
) -> DescentResult:
    """Gradient descent on W (d x r, r = width d) from several random starts, and the average of S over them (AGD).

        L(W) = sum_samples sum_ab (y_ab - g(h)_ab)^2,  S = W W^T / sqrt(r d)

    `weight_decay` adds weight_decay ||W||_F^2. If r >= d, this is a penalty on Tr S: half the objective is L/2 + lambda d Tr S
    with lambda = (weight_decay/2) sqrt(r/d), the `regularization` of the result.

    For softmax and linear channels. Untied attention learns two factors, W = [W_Q | W_K] and S = W_Q W_K^T / sqrt(r d). The
    same seed gives the bits of `bayesaim gd`, for any number of threads. `checkpoint` is an HDF5 file, written at regular steps and when the run is stopped; with `resume` the same call continues from it
    and ends with the same bits.

    >>> bayesaim.gradient_descent(data, bayesaim.Softmax(2), width=0.5, starts=8).averaged_errors[-1]
    """
    core = _dataset(data)
    settings = {
        "width": _core.student_columns(check.number("width", width), core.dim),
        "plain": check.one_of("optimizer", optimizer, ["adam", "gd"]) == "gd",
        "single": check.one_of("precision", precision, ["float", "double"]) == "float",
        "learning_rate": check.number("learning_rate", learning_rate),
        "beta1": check.number("beta1", beta1),
        "beta2": check.number("beta2", beta2),
        "epsilon": check.number("epsilon", epsilon),
        "max_steps": check.count("steps", steps, 1),
        "batch_size": check.count("batch_size", batch_size),
        "gradient_tolerance": check.number("gradient_tolerance", gradient_tolerance),
        "loss_tolerance": check.number("loss_tolerance", loss_tolerance),
        "seed": check.seed(seed),
        "record_stride": check.count("record_stride", record_stride, 1),
    }
    if check.number("weight_decay", weight_decay) != 0:  # not stated without: checkpoints of before stay valid
        settings["weight_decay"] = check.number("weight_decay", weight_decay)
    check.channel(channel)
    starts = check.count("starts", starts, 1)
    result = _core.run_descent(
        core,
        channel,
        settings,
        starts,
        _checkpoint(checkpoint, checkpoint_every, resume, _description(core, channel, settings, starts)),
        check.threads(threads),
        check.progress(progress),
    )
    result["descents"] = [Descent(**one) for one in result["descents"]]
    # Without a tolerance, a run that took all its steps did what it was asked for.
    fixed_steps = settings["gradient_tolerance"] == settings["loss_tolerance"] == 0
    statuses = [one.status if not fixed_steps or one.status == "diverged" else "converged" for one in result["descents"]]
    if text := _convergence.lost_text("starts", statuses, lambda i: f"is start {i}"):
        _convergence.warn(text)
    return DescentResult(**result)


def predict(
    tokens: Dataset | ArrayLike,
    estimate: AmpResult | FitResult | TrainingResult | ArrayLike,
    channel: _core.Channel,
    *,
    error: ArrayLike | None = None,
    threads: int = 0,
) -> Prediction:
    """Outputs of new samples from an estimate Shat and its error C (default: the error that AMP predicts).

        E[g(htilde)], htilde ~ N(omega, 2 C);  plug-in: g(omega)

    Estimates of several layers are (L, d, d), their error is L x L. Outputs of softmax channels are probabilities. A trained
    estimate knows no error: both are g(omega).

    >>> bayesaim.predict(new_tokens, result, bayesaim.Softmax(2)).bayes_optimal
    """
    data = tokens if isinstance(tokens, Dataset) else Dataset(tokens)
    terms: tuple[Any, Any, float, float] | None = None
    if isinstance(estimate, FitResult):
        error = estimate.predicted_error_matrix if error is None else error
        terms = (estimate.query_term, estimate.key_term, estimate.diagonal_term, estimate.constant_term)
        estimate = estimate.estimate
    if isinstance(estimate, TrainingResult):
        error, estimate = 0.0 if error is None else error, estimate.estimate
    if isinstance(estimate, AmpResult):
        error = estimate.predicted_error_matrix if error is None else error
        estimate = estimate.estimates
    if error is None:
        raise TypeError("error must be given where the estimate is not a result of AMP, got None")
    return Prediction(*_core.predict(data._data, estimate, error, check.channel(channel), terms, check.threads(threads)))


__all__ = ["amp", "gradient_descent", "predict"]

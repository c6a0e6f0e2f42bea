# SPDX-License-Identifier: MIT
"""Estimates of S from data: AMP and gradient descent; predictions of new outputs."""
from __future__ import annotations

import hashlib
import json
import math
import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import _arguments as check
from . import _core
from ._results import AmpResult, Descent, DescentResult, Prediction
from ._data import Dataset


def _dataset(value: Any) -> _core.Dataset:
    if not isinstance(value, Dataset):
        raise TypeError(f"data must be a Dataset, got {check.kind_of(value)}")
    return value._data


def amp(
    data: Dataset,
    prior: _core.Prior,
    channel: _core.Channel,
    *,
    max_iterations: int = 200,
    tolerance: float = 1e-6,
    damping: float = 0.5,
    adaptive_damping: bool = False,
    initial: str | ArrayLike = "mean",
    initial_error: float | None = None,
    seed: int = 0,
    threads: int = 0,
    progress: Any = None,
) -> AmpResult:
    """Approximate message passing, as `bayesaim amp` and `bayesaim fit`.

        omega = tau (x_a' Shat x_b - delta_ab Tr Shat)/sqrt(d) - V g,  V = 2 C,  g = d log Z(y, omega, V) / d omega
        qhat = 4/d^2 sum g^2,  R = Shat + 2/(d qhat) sum g_ab Z_ab,  Shat = denoise(R, 1/qhat),  C = mmse(1/qhat)

    `initial` is "mean" (kappa1 I), "prior" (a draw, of `seed`), "informed" (the known weights) or a matrix. Damping 0.2
    suits hardmax; softmax and linear need 0.5. `progress` is a callback(done, total, text), which may return False to
    stop, or a tqdm bar. Ctrl-C stops after the iteration under way.

    >>> bayesaim.amp(data, bayesaim.Wishart(0.5), bayesaim.Softmax(2)).error
    """
    core = _dataset(data)
    options = _core.AmpOptions()
    options.max_iterations = check.count("max_iterations", max_iterations, 1)
    options.tolerance = check.number("tolerance", tolerance)
    options.damping = check.number("damping", damping)
    options.adaptive_damping = bool(adaptive_damping)
    check.prior(prior)
    start: Any = None
    if not isinstance(initial, str):
        start = initial
    elif check.one_of("initial", initial, ["mean", "prior", "informed"]) == "prior":
        start = prior.sample(core.dim, check.seed(seed), 1)
        options.initial_error = 2 * check.law_of(prior).variance()
    elif initial == "informed":
        if core.weights is None:
            raise ValueError("initial must be 'mean', 'prior' or a matrix where the weights are not known, got 'informed'")
        start = core.weights
        options.initial_error = 1e-6 * check.law_of(prior).variance()
    if initial_error is not None:
        options.initial_error = check.number("initial_error", initial_error)
    return AmpResult(
        **_core.run_amp(
            core, prior, check.channel(channel), options, start, check.threads(threads), check.progress(progress)
        )
    )


def _descent_settings(
    data: _core.Dataset, channel: _core.Channel, options: _core.DescentOptions, starts: int
) -> dict[str, Any]:
    """All that the bits of a descent depend on. The outputs tell of the tokens: they are a function of them."""
    names = [name for name in dir(options) if not name.startswith("_")]
    outputs = b"" if data.outputs is None else np.ascontiguousarray(data.outputs).tobytes()
    return {
        "data": f"{data.samples} samples of dimension {data.dim}, {hashlib.sha256(outputs).hexdigest()}",
        "channel": {"name": channel.name(), **channel.parameters()},
        "starts": starts,
        **{name: getattr(options, name) for name in names},
    }


def _checkpoint(
    file: str | os.PathLike[str] | None, every: int, resume: bool, settings: dict[str, Any]
) -> _core.Checkpoint:
    checkpoint = _core.Checkpoint()
    checkpoint.every = check.count("checkpoint_every", every, 1)
    if file is None:
        if resume:
            raise ValueError("resume must be used with a checkpoint, got none")
        return checkpoint
    checkpoint.file, checkpoint.resume = os.fspath(file), bool(resume)
    checkpoint.settings = json.dumps(settings)
    if resume:
        try:
            made = json.loads(_core.checkpoint_settings(checkpoint.file))
        except json.JSONDecodeError:
            made = {}
        for name, value in settings.items():
            if made.get(name) != value:
                raise ValueError(f"checkpoint must be of the same {name}, {value}, got {made.get(name)}")
    elif os.path.exists(checkpoint.file):
        raise ValueError(f"checkpoint must be a new file, or used with resume=True, got {checkpoint.file!r}")
    return checkpoint


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

    Softmax and linear channels. The same bits as `bayesaim gd` for the same seed, whatever the threads. `checkpoint` is an
    HDF5 file that keeps the descents every so many steps and when the run is stopped; with `resume` the same call goes on
    from it, to the same bits.

    >>> bayesaim.gradient_descent(data, bayesaim.Softmax(2), width=0.5, starts=8).averaged_errors[-1]
    """
    core = _dataset(data)
    options = _core.DescentOptions()
    columns = check.number("width", width) * core.dim
    if not 0.5 <= columns < 1e6 + 0.5:
        raise ValueError(f"width must be such that W has 1 to 1000000 columns, got {width}")
    options.width = math.floor(columns) + (columns % 1 >= 0.5)  # as std::round: a half goes up
    options.plain = check.one_of("optimizer", optimizer, ["adam", "gd"]) == "gd"
    options.single = check.one_of("precision", precision, ["float", "double"]) == "float"
    options.learning_rate = check.number("learning_rate", learning_rate)
    options.beta1 = check.number("beta1", beta1)
    options.beta2 = check.number("beta2", beta2)
    options.epsilon = check.number("epsilon", epsilon)
    options.max_steps = check.count("steps", steps, 1)
    options.batch_size = check.count("batch_size", batch_size)
    options.gradient_tolerance = check.number("gradient_tolerance", gradient_tolerance)
    options.loss_tolerance = check.number("loss_tolerance", loss_tolerance)
    options.seed = check.seed(seed)
    options.record_stride = check.count("record_stride", record_stride, 1)
    check.channel(channel)
    starts = check.count("starts", starts, 1)
    result = _core.run_descent(
        core,
        channel,
        options,
        starts,
        _checkpoint(checkpoint, checkpoint_every, resume, _descent_settings(core, channel, options, starts)),
        check.threads(threads),
        check.progress(progress),
    )
    result["descents"] = [Descent(**one) for one in result["descents"]]
    return DescentResult(**result)


def predict(
    tokens: Dataset | ArrayLike,
    estimate: AmpResult | ArrayLike,
    channel: _core.Channel,
    *,
    error: float | None = None,
    threads: int = 0,
) -> Prediction:
    """Outputs of new samples from an estimate Shat and its error C, by default what AMP predicted for it.

        E[g(htilde)], htilde ~ N(omega, 2 C);  plug-in: g(omega)

    Probabilities for softmax.

    >>> bayesaim.predict(new_tokens, result, bayesaim.Softmax(2)).bayes_optimal
    """
    data = tokens if isinstance(tokens, Dataset) else Dataset(tokens)
    if error is None:
        if not isinstance(estimate, AmpResult):
            raise TypeError("error must be a number where the estimate is not a result of AMP, got None")
        error = estimate.predicted_error
    matrix = estimate.estimate if isinstance(estimate, AmpResult) else check.real("estimate", estimate)
    return Prediction(
        *_core.predict(
            data._data, matrix, check.number("error", error), check.channel(channel), check.threads(threads)
        )
    )

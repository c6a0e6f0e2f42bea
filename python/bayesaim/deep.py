# SPDX-License-Identifier: MIT
"""Several layers of attention, weights S_1 .. S_L: theory, data, AMP, joint denoisers.

`prior` is one for all layers, or a list of one for each; the channel is a DeepAttention or a DeepSequence. Order
parameters are L x L, their traces are the errors.

>>> prior, channel = bayesaim.Wishart(0.5), bayesaim.DeepAttention(layers=2)
>>> result = bayesaim.deep.amp(bayesaim.deep.generate(prior, channel, dim=50, alpha=0.4), prior, channel)
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

import numpy as np
from numpy.typing import ArrayLike

from . import _arguments as check
from . import _core
from ._arguments import Floats
from ._data import Dataset, _synthetic_arguments
from ._estimators import _dataset
from ._results import (
    DeepAmpResult,
    DeepTheoryCurve,
    Encoded,
    JointlyDenoised,
    PolynomialEstimator,
    Prediction,
)
from ._theory import _settings

Priors = Union[_core.Prior, Sequence[_core.Prior]]


def _model(prior: Priors, channel: _core.Channel) -> tuple[list[_core.Prior], _core.Channel]:
    deep = check.channel(channel, deep=True)
    return check.priors(prior, deep.layers), deep


def theory(
    prior: Priors,
    channel: _core.Channel,
    alpha: ArrayLike,
    *,
    branch: str = "uninformed",
    generalization: bool = False,
    max_iterations: int = 1000,
    integration_points: int = 128,
    seed: int = 0,
    threads: int = 0,
    progress: Any = None,
) -> DeepTheoryCurve:
    """Errors at the fixed point of state evolution, for each alpha = n/d^2; as `bayesaim theory`.

        qhat = 4 alpha F(q, C),  C = covariance(prior, qhat),  q = Q - C

    F is sampled with `integration_points`: seconds a point, and a standard error. `branch` is the fixed point reached from
    no data, or from next to the truth ("informed"). Ctrl-C stops after the point under way.

    >>> bayesaim.deep.theory(bayesaim.Wishart(0.5), bayesaim.DeepAttention(2), [0.1, 0.2]).layer_errors
    """
    priors, deep = _model(prior, channel)
    alphas, _ = check.line("alpha", alpha)
    columns = _core.deep_theory_curve(
        priors,
        deep,
        alphas,
        check.one_of("branch", branch, ["uninformed", "informed"]) == "informed",
        bool(generalization),
        _settings(None, 1e-12, max_iterations, integration_points, seed, threads),
        check.progress(progress),
    )
    columns["status"] = np.array(columns["status"], dtype=str)
    columns["iterations"] = np.array(columns["iterations"], dtype=np.int64)
    if not generalization:
        columns["generalization_error"] = columns["plugin_generalization_error"] = None
    return DeepTheoryCurve(**columns)


def trajectory(
    prior: Priors,
    channel: _core.Channel,
    alpha: float,
    iterations: int,
    *,
    start: str = "uninformed",
    integration_points: int = 128,
    seed: int = 0,
    threads: int = 0,
) -> Floats:
    """C_t of the iterates of state evolution, (iterations + 1, L, L); C_0 is that of no data.

    >>> bayesaim.deep.trajectory(bayesaim.Wishart(0.5), bayesaim.DeepAttention(2), 0.2, iterations=10)
    """
    priors, deep = _model(prior, channel)
    return _core.deep_trajectory(
        priors,
        deep,
        check.number("alpha", alpha),
        check.count("iterations", iterations),
        check.one_of("start", start, ["uninformed", "informed"]) == "informed",
        _settings(None, 1e-12, 1000, integration_points, seed, threads),
    )


def strong_recovery(prior: Priors, channel: _core.Channel) -> float:
    """alpha from which the error is zero, as `bayesaim threshold`.

        sum_l (1 - sum of squared atom weights of prior l) / (2 (K - 1))

    >>> bayesaim.deep.strong_recovery(bayesaim.Wishart(0.5), bayesaim.DeepAttention(2))
    """
    return _core.deep_strong_recovery(*_model(prior, channel))


def recovery_growth_rate(
    prior: Priors, channel: _core.Channel, alpha: float, *, integration_points: int = 128, seed: int = 0, threads: int = 0
) -> float:
    """Tr C_(t+1) / Tr C_t of state evolution next to the truth: 1 at the threshold of strong recovery.

    >>> bayesaim.deep.recovery_growth_rate(bayesaim.Wishart(0.5), bayesaim.DeepAttention(2), alpha=0.375)
    """
    settings = _settings(None, 1e-12, 1000, integration_points, seed, threads)
    return _core.recovery_growth_rate(*_model(prior, channel), check.number("alpha", alpha), settings)


def generate(
    prior: Priors,
    channel: _core.Channel,
    *,
    dim: int = 100,
    alpha: float = 0.1,
    seed: int = 0,
    token_storage: str = "memory",
    precision: str = "double",
    test: bool = False,
    threads: int = 0,
) -> Dataset:
    """Each S_l from its prior, standard normal tokens, outputs from the channel; otherwise as bayesaim.generate.

    >>> bayesaim.deep.generate(bayesaim.Wishart(0.5), bayesaim.DeepAttention(2), dim=50, alpha=0.4, seed=1)
    """
    priors, deep = _model(prior, channel)
    options = _synthetic_arguments(dim, alpha, seed, token_storage, precision, test, threads)
    return Dataset._of(_core.deep_generate(priors, deep, *options))


def amp(
    data: Dataset,
    prior: Priors,
    channel: _core.Channel,
    *,
    max_iterations: int = 200,
    tolerance: float = 1e-5,
    damping: float = 0.4,
    threads: int = 0,
    progress: Any = None,
) -> DeepAmpResult:
    """Approximate message passing for several layers, as `bayesaim amp --channel deep-softmax`.

        omega = htilde(Shat) - O g,  g = damped g_out(y, omega, 2 C),  A = (4/d^2) sum -dg_out/domega
        R_l = Shat_l + sum_m (A^-1)_lm (2/d) sum g^m_ab Z_ab,  Delta = A^-1 [(4/d^2) sum g g'] A^-1
        Shat, C = denoise(R, Delta),  O = 2 C Delta^-1 A^-1

    `progress` and Ctrl-C as in bayesaim.amp.

    >>> np.trace(bayesaim.deep.amp(data, bayesaim.Wishart(0.5), bayesaim.DeepAttention(2)).error)
    """
    core = _dataset(data)
    return DeepAmpResult(
        **_core.run_deep_amp(
            core,
            *_model(prior, channel),
            check.count("max_iterations", max_iterations, 1),
            check.number("tolerance", tolerance),
            check.number("damping", damping),
            check.threads(threads),
            check.progress(progress),
        )
    )


def predict(
    tokens: Dataset | ArrayLike,
    estimate: DeepAmpResult | ArrayLike,
    channel: _core.Channel,
    *,
    error: ArrayLike | None = None,
    threads: int = 0,
) -> Prediction:
    """Outputs of new samples from estimates (L, d, d) and their error C, L x L, by default what AMP predicted for them.

    >>> bayesaim.deep.predict(new_tokens, result, bayesaim.DeepAttention(2)).bayes_optimal
    """
    data = tokens if isinstance(tokens, Dataset) else Dataset(tokens)
    if isinstance(estimate, DeepAmpResult):
        matrices = estimate.estimates
        error = estimate.predicted_error if error is None else error
    else:
        matrices = check.real("estimates", estimate)
    if error is None:
        raise TypeError("error must be a matrix where the estimate is not a result of AMP, got None")
    deep = check.channel(channel, deep=True)
    return Prediction(*_core.predict_deep(data._data, matrices, error, deep, check.threads(threads)))


def covariance(prior: Priors, precision: ArrayLike) -> Floats:
    """Posterior covariance C of the layers for large d at precision qhat = Delta^-1, L x L.

        c_j = mmse_j(1/qhat_jj),  C_11 = mmse_1(1/(qhat_11 - qhat_12^2 c_2)),  C_12 = -qhat_12 (C_11 c_2 + C_22 c_1)/2

    for two layers: each sees the Gaussian field of the other. Exact for Gaussian priors and to second order in couplings.

    >>> bayesaim.deep.covariance(bayesaim.Wishart(0.5), [[2, 0.3], [0.3, 2]])
    """
    qhat = check.array("precision", precision)
    return _core.cavity_covariance(check.priors(prior, len(qhat) if qhat.ndim else 1), qhat)


def denoise(
    prior: Priors,
    noisy: ArrayLike,
    noise_covariance: ArrayLike,
    *,
    method: str = "automatic",
    linear_outside_support: bool = False,
    seed: int = 0,
    threads: int = 0,
) -> JointlyDenoised:
    """Estimates of S_1 .. S_L from R_l = S_l + N_l, (L, d, d), Cov(N_l, N_k) = Delta_lk x GOE.

    "innovation" removes from each layer what the others tell of its noise, right for weak couplings; "combination" is the
    best linear combination of several such estimates; "automatic" takes it where a correlation of Delta exceeds 0.25.

    >>> bayesaim.deep.denoise(bayesaim.Wishart(0.5), noisy, [[0.5, 0.1], [0.1, 0.5]]).estimates
    """
    matrices = check.real("noisy matrices", noisy)
    return JointlyDenoised(
        *_core.denoise_jointly(
            check.priors(prior, len(matrices) if matrices.ndim else 1),
            matrices,
            noise_covariance,
            check.one_of("method", method, ["automatic", "innovation", "combination"]),
            bool(linear_outside_support),
            check.seed(seed),
            check.threads(threads),
        )
    )


def polynomial(
    prior: Priors, noise_covariance: ArrayLike, degree: int = 4, *, noisy: ArrayLike | None = None
) -> PolynomialEstimator:
    """The best polynomial estimator of S_1 .. S_L in R_1 .. R_L, and its error for large d, from free cumulants.

        coefficients = G^-1 b,  G_vw = tr(v w),  b_w = tr((S_k - mean_k) w)

    >>> bayesaim.deep.polynomial(bayesaim.Wishart(0.5), [[0.5, 0.1], [0.1, 0.5]], degree=3).errors[-1]
    """
    delta = check.array("noise covariance", noise_covariance)
    matrices = None if noisy is None else check.real("noisy matrices", noisy)
    priors = check.priors(prior, len(delta) if delta.ndim else 1)
    return PolynomialEstimator(
        **_core.polynomial_estimator(priors, delta, check.count("degree", degree, 1, 30), matrices)
    )


def free_cumulants(prior: _core.Prior | _core.SpectralLaw, count: int) -> Floats:
    """kappa_1 .. kappa_count of the law of the eigenvalues.

    >>> bayesaim.deep.free_cumulants(bayesaim.Wishart(0.5), 4)  # 0.5^(1 - n/2)
    """
    return _core.free_cumulants(check.law_of(prior), check.count("count", count, 1, 100))


class FreeMoments:
    """Limits of (1/d) Tr of words in X_l = S_l - mean_l + N_l, Cov(N) = Delta x GOE, for words up to a length.

    A word is a list of layers, from 0 on.

    >>> bayesaim.deep.FreeMoments(bayesaim.Wishart(0.5), [[0.5, 0.1], [0.1, 0.5]], longest=6).moment([0, 1, 0, 1])
    """

    def __init__(self, prior: Priors, noise_covariance: ArrayLike, longest: int) -> None:
        delta = check.array("noise covariance", noise_covariance)
        self.layers, self.longest = len(delta) if delta.ndim else 1, check.count("longest", longest, 1, 60)
        self._table = _core.FreeMoments(check.priors(prior, self.layers), delta, self.longest)

    def _word(self, word: Sequence[int]) -> list[int]:
        return [check.count("letter", letter, 0, self.layers - 1) for letter in word]

    def moment(self, word: Sequence[int]) -> float:
        """tr(w)"""
        return self._table.moment(self._word(word))

    def signal_moment(self, layer: int, word: Sequence[int]) -> float:
        """tr((S_layer - mean) w)"""
        return self._table.signal_moment(check.count("layer", layer, 0, self.layers - 1), self._word(word))

    def divergence(self, layer: int, word: Sequence[int]) -> float:
        """(1/d^2) div of w with respect to the noisy matrix of a layer: sum over its places of tr(before) tr(after)."""
        return self._table.divergence(check.count("layer", layer, 0, self.layers - 1), self._word(word))

    def __repr__(self) -> str:
        return f"FreeMoments(layers={self.layers}, longest={self.longest})"


def _samples(tokens: ArrayLike) -> tuple[Floats, bool]:
    """(n, T, d), and whether it was one sample, (T, d)."""
    array = check.array("tokens", tokens)
    if array.ndim not in (2, 3):
        raise ValueError(f"tokens must be (tokens, dimension) or (samples, tokens, dimension), got shape {array.shape}")
    return (array[None], True) if array.ndim == 2 else (array, False)


def encode(tokens: ArrayLike, weights: ArrayLike, *, beta: float = 1, residual: float = 1) -> Encoded:
    """An encoder with weights (L, d, d) run on tokens (n, T, d) or (T, d); attention[:, -1] is what DeepAttention shows.

        H_l = X_(l-1) S_l X_(l-1)^T/sqrt(d) - Tr(S_l)/sqrt(d) B_(l-1) B_(l-1)^T,  B_l = (residual + softmax(beta H_l)) B_(l-1)
        X_l = residual X_(l-1) + softmax(beta H_l) X_(l-1),  X_0 = tokens,  B_0 = 1

    >>> bayesaim.deep.encode(tokens, data.weights).attention[:, -1]
    """
    samples, single = _samples(tokens)
    arrays = _core.run_encoder(
        samples, check.real("weights", weights), check.number("beta", beta), check.number("residual", residual)
    )
    return Encoded(**{name: array[0] if single else array for name, array in arrays.items()})


def multi_head_attention(tokens: ArrayLike, heads: ArrayLike, *, beta: float = 1, averaging: str = "logits") -> Floats:
    """Attention (n, T, T) of heads (M, d, d) on tokens (n, T, d); (T, T) for one sample (T, d).

        "logits": softmax(beta mean_m h^m), which tells of the mean of the S_m alone (bayesaim.MultiHead)
        "attention": mean_m softmax(beta h^m), as transformers do

    >>> bayesaim.deep.multi_head_attention(tokens, [prior.sample(50, index=m) for m in range(4)])
    """
    samples, single = _samples(tokens)
    mean_attention = check.one_of("averaging", averaging, ["logits", "attention"]) == "attention"
    result = _core.multi_head_attention(samples, check.real("heads", heads), check.number("beta", beta), mean_attention)
    return np.asarray(result[0] if single else result)


__all__ = [
    "FreeMoments",
    "amp",
    "covariance",
    "denoise",
    "encode",
    "free_cumulants",
    "generate",
    "multi_head_attention",
    "polynomial",
    "predict",
    "recovery_growth_rate",
    "strong_recovery",
    "theory",
    "trajectory",
]

# SPDX-License-Identifier: MIT
"""Several layers at once: joint denoisers of weights S_1 .. S_L for large d, and networks run on tokens.

`prior` is one for all layers, or a list with one per layer; matrices between layers are L x L.

>>> bayesaim.layers.covariance(bayesaim.Wishart(0.5), [[2, 0.3], [0.3, 2]])
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from . import _arguments as check
from . import _core
from ._arguments import Floats, Priors
from ._results import Encoded, JointlyDenoised, PolynomialEstimator
from ._theory import _settings


def recovery_growth_rate(
    prior: Priors, channel: _core.Channel, alpha: float, *, integration_points: int = 128, seed: int = 0, threads: int = 0
) -> float:
    """Tr C_(t+1) / Tr C_t of state evolution next to the truth: 1 at the threshold of strong recovery.

    >>> bayesaim.layers.recovery_growth_rate(bayesaim.Wishart(0.5), bayesaim.DeepAttention(2), alpha=0.375)
    """
    settings = _settings(integration_points=integration_points, seed=seed, threads=threads)
    return _core.recovery_growth_rate(check.model(prior, channel), check.number("alpha", alpha), settings)


def covariance(prior: Priors, precision: ArrayLike) -> Floats:
    """Posterior covariance C of the layers for large d at precision qhat = Delta^-1, L x L.

        c_j = mmse_j(1/qhat_jj),  C_11 = mmse_1(1/(qhat_11 - qhat_12^2 c_2)),  C_12 = -qhat_12 (C_11 c_2 + C_22 c_1)/2

    for two layers: each sees the Gaussian field of the other. Exact for Gaussian priors and to second order in couplings.

    >>> bayesaim.layers.covariance(bayesaim.Wishart(0.5), [[2, 0.3], [0.3, 2]])
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

    "innovation" subtracts from each layer the noise predicted by the others, right for weak couplings; "combination" is the
    best linear combination of several such estimates; "automatic" takes it where a correlation of Delta exceeds 0.25.

    >>> bayesaim.layers.denoise(bayesaim.Wishart(0.5), noisy, [[0.5, 0.1], [0.1, 0.5]]).estimates
    """
    matrices = check.real("noisy matrices", noisy)
    return JointlyDenoised(
        *_core.denoise_jointly(
            check.priors(prior, len(matrices) if matrices.ndim == 3 else 1),
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

    >>> bayesaim.layers.polynomial(bayesaim.Wishart(0.5), [[0.5, 0.1], [0.1, 0.5]], degree=3).errors[-1]
    """
    delta = check.array("noise covariance", noise_covariance)
    matrices = None if noisy is None else check.real("noisy matrices", noisy)
    priors = check.priors(prior, len(delta) if delta.ndim else 1)
    return PolynomialEstimator(
        **_core.polynomial_estimator(priors, delta, check.count("degree", degree, 1, 30), matrices)
    )


def free_cumulants(prior: _core.Prior | _core.SpectralLaw, count: int) -> Floats:
    """kappa_1 .. kappa_count of the law of the eigenvalues.

    >>> bayesaim.layers.free_cumulants(bayesaim.Wishart(0.5), 4)  # 0.5^(1 - n/2)
    """
    return _core.free_cumulants(check.law_of(prior), check.count("count", count, 1, 100))


class FreeMoments:
    """Limits of (1/d) Tr of words in X_l = S_l - mean_l + N_l, Cov(N) = Delta x GOE, for words up to a length.

    A word is a list of layers, from 0 on.

    >>> bayesaim.layers.FreeMoments(bayesaim.Wishart(0.5), [[0.5, 0.1], [0.1, 0.5]], longest=6).moment([0, 1, 0, 1])
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
    """An encoder with weights (L, d, d) run on tokens (n, T, d) or (T, d); attention[:, -1] is the output of DeepAttention.

        H_l = X_(l-1) S_l X_(l-1)^T/sqrt(d) - Tr(S_l)/sqrt(d) B_(l-1) B_(l-1)^T,  B_l = (residual + softmax(beta H_l)) B_(l-1)
        X_l = residual X_(l-1) + softmax(beta H_l) X_(l-1),  X_0 = tokens,  B_0 = 1

    >>> bayesaim.layers.encode(tokens, data.weights).attention[:, -1]
    """
    samples, single = _samples(tokens)
    arrays = _core.run_encoder(
        samples, check.real("weights", weights), check.number("beta", beta), check.number("residual", residual)
    )
    return Encoded(**{name: array[0] if single else array for name, array in arrays.items()})


def multi_head_attention(tokens: ArrayLike, heads: ArrayLike, *, beta: float = 1, averaging: str = "logits") -> Floats:
    """Attention (n, T, T) of heads (M, d, d) on tokens (n, T, d); (T, T) for one sample (T, d).

        "logits": softmax(beta mean_m h^m), which depends on the mean of the S_m only (bayesaim.MultiHead)
        "attention": mean_m softmax(beta h^m), as transformers do

    >>> bayesaim.layers.multi_head_attention(tokens, [prior.sample(50, index=m) for m in range(4)])
    """
    samples, single = _samples(tokens)
    mean_attention = check.one_of("averaging", averaging, ["logits", "attention"]) == "attention"
    result = _core.multi_head_attention(samples, check.real("heads", heads), check.number("beta", beta), mean_attention)
    return np.asarray(result[0] if single else result)


__all__ = [
    "FreeMoments",
    "covariance",
    "denoise",
    "encode",
    "free_cumulants",
    "multi_head_attention",
    "polynomial",
    "recovery_growth_rate",
]

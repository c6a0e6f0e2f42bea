# SPDX-License-Identifier: MIT
"""Vectorised numerics: the spectrum of S + sqrt(D) Xi, Xi ~ GOE with spectrum on [-2, 2], and the estimate of S from it."""
from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from . import _arguments as check
from . import _core
from ._arguments import Floats
from ._results import Denoised


def _as_given(result: Floats) -> Any:
    return result if result.ndim else float(result)


class Spectrum(_core.FreeConvolution):
    """Law mu_D of the eigenvalues of S + sqrt(D) Xi for large d, by Biane's parametrisation.

    `prior` is a Prior or a SpectralLaw; D = noise_variance from 1e-10 to 1e10. Functions of eigenvalues take arrays of
    any shape.

    >>> bayesaim.Spectrum(bayesaim.Wishart(0.5), 0.1).density(np.linspace(0, 4, 100))
    """

    def __init__(self, prior: _core.Prior | _core.SpectralLaw, noise_variance: float) -> None:
        self._prior = prior
        self.noise_variance = check.number("noise variance", noise_variance)
        super().__init__(check.law_of(prior), self.noise_variance)

    def density(self, eigenvalues: ArrayLike) -> Any:
        """mu_D(lambda) = v/(pi D)"""
        return _as_given(super().density(check.array("eigenvalues", eigenvalues)))

    def hilbert(self, eigenvalues: ArrayLike) -> Any:
        """PV int mu_D(t) / (lambda - t) dt"""
        return _as_given(super().hilbert(check.array("eigenvalues", eigenvalues)))

    def denoised(self, eigenvalues: ArrayLike) -> Any:
        """f(lambda) = lambda - 2 D PV int mu_D(t) / (lambda - t) dt, the Bayes-optimal shrinkage."""
        return _as_given(super().denoised(check.array("eigenvalues", eigenvalues)))

    def to_dict(self) -> dict[str, Any]:
        """Its numbers by name."""
        names = ["noise_variance", "mmse", "mmse_derivative", "log_energy", "mean", "second_moment", "edges"]
        return {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        bulks = ", ".join(f"[{low:.6g}, {high:.6g}]" for low, high in self.edges)
        return f"Spectrum({self._prior!r}, {self.noise_variance:g})\n  bulks: {bulks}\n  mmse: {self.mmse:.8g}"


def log_normal_cdf(x: ArrayLike) -> Any:
    """log Phi(x), to relative accuracy also where Phi underflows; for scores of channels of your own.

    >>> bayesaim.log_normal_cdf([-40.0, 0.0])
    """
    return _as_given(_core.log_normal_cdf(check.array("x", x)))


def inverse_mills_ratio(x: ArrayLike) -> Any:
    """phi(x) / Phi(x) = d log Phi(x) / dx

    >>> bayesaim.inverse_mills_ratio(-40.0)
    """
    return _as_given(_core.inverse_mills_ratio(check.array("x", x)))


def mmse(prior: _core.Prior | _core.SpectralLaw, noise_variance: ArrayLike, *, threads: int = 0) -> Any:
    """Bayes-optimal error of estimating S from S + sqrt(D) Xi, per dimension; D may be an array.

        mmse(D) = D - (4 pi^2 D^2 / 3) int mu_D^3

    >>> bayesaim.mmse(bayesaim.Wigner(), [0.1, 1.0])  # D/(1 + D)
    """
    return _as_given(
        _core.mmse(check.law_of(prior), check.array("noise variance", noise_variance), check.threads(threads))
    )


def prior_free_entropy(
    prior: _core.Prior | _core.SpectralLaw, inverse_noise_variance: ArrayLike, *, threads: int = 0
) -> Any:
    """Free entropy of the prior per d^2 at inverse noise variance qhat, which may be an array.

        I_in(qhat) = kappa2 qhat/4 - log(qhat)/4 - Sigma(mu_(1/qhat))/2 - 1/8,  I_in' = (kappa2 - mmse)/4

    >>> bayesaim.prior_free_entropy(bayesaim.Wishart(0.5), 2.0)
    """
    qhat = check.array("inverse noise variance", inverse_noise_variance)
    return _as_given(_core.prior_free_entropy(check.law_of(prior), qhat, check.threads(threads)))


def denoise(
    prior: _core.Prior | _core.SpectralLaw,
    noisy: ArrayLike,
    noise_variance: float,
    *,
    linear_outside_support: bool = False,
    threads: int = 0,
) -> Denoised:
    """Bayes-optimal estimate of S from R = S + sqrt(D) Xi: eigenvectors are kept, eigenvalues become

        f(lambda) = lambda - 2 D PV int mu_D(t) / (lambda - t) dt.

    `linear_outside_support` continues f as a straight line beyond the edges, which steadies iterations at small d.

    >>> bayesaim.denoise(bayesaim.Wishart(0.5), noisy, 0.1).estimate
    """
    law, variance = check.law_of(prior), check.number("noise variance", noise_variance)
    return Denoised(*_core.denoise(law, noisy, variance, bool(linear_outside_support), check.threads(threads)))


def goe(dim: int, seed: int = 0, *, threads: int = 0) -> Floats:
    """Xi ~ GOE(d): symmetric, variance 1/d off the diagonal and 2/d on it; spectrum on [-2, 2].

    >>> noisy = bayesaim.Wishart(0.5).sample(500) + 0.1**0.5 * bayesaim.goe(500)
    """
    return _core.goe(check.count("dim", dim, 1), check.seed(seed), check.threads(threads))


__all__ = ["Spectrum", "denoise", "goe", "inverse_mills_ratio", "log_normal_cdf", "mmse", "prior_free_entropy"]

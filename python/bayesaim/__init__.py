# SPDX-License-Identifier: MIT
"""Bayes-optimal learning of attention: exact errors for large d, and the algorithms that reach them.

>>> import bayesaim
>>> bayesaim.theory(bayesaim.Wishart(0.5), bayesaim.Softmax(2), [0.05, 0.1]).estimation_error
"""
from typing import TYPE_CHECKING

from . import _blas

with _blas.better_kernels():
    from . import _core
_blas.warn_if_slow(_core.better_blas_kernels())

from . import testing  # noqa: E402
from ._core import (  # noqa: E402
    AtomicLaw,
    Channel,
    DeepAttention,
    DeepSequence,
    Experiment,
    Hardmax,
    HardmaxAsPrinted,
    Linear,
    MarchenkoPasturLaw,
    MultiHead,
    Prior,
    Softmax,
    SpectralLaw,
    UserSpectrum,
    Wigner,
    Wishart,
    blas_threads,
    channel_names,
    estimator_names,
    git_commit,
    make_channel,
    make_prior,
    pair_scales,
    prior_names,
)
from ._results import (  # noqa: E402
    AmpResult,
    Denoised,
    Descent,
    DescentResult,
    Encoded,
    JointlyDenoised,
    PolynomialEstimator,
    Prediction,
    RerunResult,
    Result,
    SweepPlan,
    SweepResult,
    TheoryCurve,
    Thresholds,
)
from ._data import Dataset, generate, read_dataset  # noqa: E402
from ._estimators import amp, gradient_descent, predict  # noqa: E402
from ._experiments import merge, parse_experiment, plan, read_experiment, rerun, sweep  # noqa: E402
from ._spectral import (  # noqa: E402
    Spectrum,
    denoise,
    goe,
    inverse_mills_ratio,
    log_normal_cdf,
    mmse,
    prior_free_entropy,
)
from ._theory import theory, thresholds, trajectory  # noqa: E402
from . import layers  # noqa: E402

if TYPE_CHECKING:
    from . import plot

__version__ = _core.version()


__all__ = [
    "amp",
    "AmpResult",
    "AtomicLaw",
    "blas_threads",
    "Channel",
    "channel_names",
    "Dataset",
    "DeepAttention",
    "DeepSequence",
    "denoise",
    "Denoised",
    "Descent",
    "DescentResult",
    "Encoded",
    "estimator_names",
    "Experiment",
    "generate",
    "git_commit",
    "goe",
    "gradient_descent",
    "Hardmax",
    "HardmaxAsPrinted",
    "inverse_mills_ratio",
    "JointlyDenoised",
    "layers",
    "Linear",
    "log_normal_cdf",
    "make_channel",
    "make_prior",
    "MarchenkoPasturLaw",
    "merge",
    "mmse",
    "MultiHead",
    "pair_scales",
    "parse_experiment",
    "plan",
    "PolynomialEstimator",
    "predict",
    "Prediction",
    "Prior",
    "prior_free_entropy",
    "prior_names",
    "read_dataset",
    "read_experiment",
    "rerun",
    "RerunResult",
    "Result",
    "Softmax",
    "SpectralLaw",
    "Spectrum",
    "sweep",
    "SweepPlan",
    "SweepResult",
    "testing",
    "theory",
    "TheoryCurve",
    "Thresholds",
    "thresholds",
    "trajectory",
    "UserSpectrum",
    "Wigner",
    "Wishart",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Imports bayesaim.plot at its first use: no other part needs matplotlib."""
        if name == "plot":
            import importlib

            return importlib.import_module("bayesaim.plot")
        raise AttributeError(f"module 'bayesaim' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), "plot"})

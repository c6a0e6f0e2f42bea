# SPDX-License-Identifier: MIT
"""Bayes-optimal learning of attention: exact errors for large d, and the algorithms that reach them.

>>> import bayesaim
>>> bayesaim.theory(bayesaim.Wishart(0.5), bayesaim.Softmax(2), [0.05, 0.1]).estimation_error
"""
from . import _blas

with _blas.better_kernels():
    from . import _core
_blas.warn_if_slow(_core.better_blas_kernels())

from . import testing  # noqa: E402
from ._core import (  # noqa: E402
    AtomicLaw,
    Channel,
    Experiment,
    Hardmax,
    HardmaxAsPrinted,
    Linear,
    MarchenkoPasturLaw,
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
    Prediction,
    Result,
    SweepResult,
    TheoryCurve,
    Thresholds,
)
from ._data import Dataset, generate, read_dataset  # noqa: E402
from ._estimators import amp, gradient_descent, predict  # noqa: E402
from ._experiments import parse_experiment, read_experiment, sweep  # noqa: E402
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

__version__ = _core.version()


def __getattr__(name: str) -> object:
    """bayesaim.plot needs matplotlib, which nothing else does: imported when it is used."""
    if name == "plot":
        import importlib

        return importlib.import_module("bayesaim.plot")
    raise AttributeError(f"module 'bayesaim' has no attribute {name!r}")


__all__ = [name for name in dir() if not name.startswith("_")]

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

from . import _convergence, _data, _estimators, _experiments, _fit, _results, _spectral, _theory, _training, layers, testing  # noqa: E402
from ._core import (  # noqa: E402
    AtomicLaw,
    Bilinear,
    Channel,
    DeepAttention,
    DeepSequence,
    Experiment,
    Ginibre,
    Hardmax,
    HardmaxAsPrinted,
    HardmaxSampled,
    Linear,
    MarchenkoPasturLaw,
    MultiHead,
    PowerLaw,
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
from ._convergence import *  # noqa: E402, F403
from ._data import *  # noqa: E402, F403
from ._estimators import *  # noqa: E402, F403
from ._experiments import *  # noqa: E402, F403
from ._fit import *  # noqa: E402, F403
from ._ranks import *  # noqa: E402, F403
from ._results import *  # noqa: E402, F403
from ._spectral import *  # noqa: E402, F403
from ._theory import *  # noqa: E402, F403
from ._training import *  # noqa: E402, F403

if TYPE_CHECKING:
    from . import plot

__version__ = _core.version()


__all__ = [
    "AtomicLaw",
    "Bilinear",
    "blas_threads",
    "Channel",
    "channel_names",
    "DeepAttention",
    "DeepSequence",
    "estimator_names",
    "Experiment",
    "Ginibre",
    "git_commit",
    "Hardmax",
    "HardmaxAsPrinted",
    "HardmaxSampled",
    "layers",
    "Linear",
    "make_channel",
    "make_prior",
    "MarchenkoPasturLaw",
    "MultiHead",
    "pair_scales",
    "PowerLaw",
    "Prior",
    "prior_names",
    "Softmax",
    "SpectralLaw",
    "testing",
    "UserSpectrum",
    "Wigner",
    "Wishart",
]
__all__ += _convergence.__all__
__all__ += _data.__all__
__all__ += _estimators.__all__
__all__ += _experiments.__all__
__all__ += _fit.__all__
__all__ += _ranks.__all__
__all__ += _results.__all__
__all__ += _spectral.__all__
__all__ += _theory.__all__
__all__ += _training.__all__

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Imports bayesaim.plot at its first use: no other part needs matplotlib."""
        if name == "plot":
            import importlib

            return importlib.import_module("bayesaim.plot")
        raise AttributeError(f"module 'bayesaim' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), "plot"})

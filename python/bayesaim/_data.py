# SPDX-License-Identifier: MIT
"""Tokens and outputs: your own arrays, synthetic ones, files."""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike, NDArray

from . import _arguments as check
from . import _core
from ._arguments import Floats


class Dataset:
    """What an estimator sees: tokens (n, T, d) and outputs (n, T, T), as the channel draws them.

    For softmax outputs are logarithms of probabilities. Tokens in C order, float64 or float32, are used where they
    are, without a copy: do not change them while an estimator runs. Everything else is copied once. `weights` is S, if
    you know it, (L, d, d) for several layers: estimators then measure their error.

    >>> bayesaim.Dataset(tokens, np.log(attention))
    """

    _data: _core.Dataset

    def __init__(
        self, tokens: ArrayLike, outputs: ArrayLike | None = None, *, weights: ArrayLike | None = None
    ) -> None:
        given = None if outputs is None else check.real("outputs", outputs)
        known = None if weights is None else check.real("weights", weights)
        self._data = _core.dataset_from_arrays(check.tokens(tokens), given, known)

    @classmethod
    def _of(cls, data: _core.Dataset) -> Dataset:
        result = cls.__new__(cls)
        result._data = data
        return result

    @property
    def tokens(self) -> NDArray[Any]:
        """(n, T, d): your array, or a view; a new array where none is kept in double precision."""
        return self._data.tokens

    @property
    def outputs(self) -> Floats | None:
        """(n, T, T), a view."""
        return self._data.outputs

    @property
    def weights(self) -> Floats | None:
        """S, where it is known, a view; (L, d, d) for several layers."""
        return self._data.weights

    @property
    def samples(self) -> int:
        """n"""
        return self._data.samples

    @property
    def dim(self) -> int:
        """d"""
        return self._data.dim

    @property
    def alpha(self) -> float:
        """n/d^2"""
        return self._data.alpha

    def check(self, channel: _core.Channel) -> None:
        """ValueError unless the outputs are such that the channel can have produced them.

        >>> data.check(bayesaim.Softmax(2))
        """
        self._data.check(check.channel(channel, deep=True))

    def attention_indices(self, weights: ArrayLike, *, threads: int = 0) -> Floats:
        """htilde_ab = tau_ab (x_a' S x_b - delta_ab Tr S) / sqrt(d) over the pairs a <= b, n x K.

        With weights (L, d, d) n x L K, layer by layer.

        >>> data.attention_indices(data.weights)
        """
        return self._data.attention_indices(check.real("weights", weights), check.threads(threads))

    def save(
        self,
        file: str | os.PathLike[str],
        prior: _core.Prior | Sequence[_core.Prior],
        channel: _core.Channel,
        *,
        precision: str = "double",
    ) -> None:
        """HDF5 file for `bayesaim fit` and read_dataset; the prior is a list where those of several layers differ.

        >>> data.save("data.h5", bayesaim.Wishart(0.5), bayesaim.Softmax(2))
        """
        single = check.one_of("precision", precision, ["double", "float"]) == "float"
        priors = check.priors(prior, check.channel(channel, deep=True).layers)
        _core.write_dataset(self._data, os.fspath(file), priors, channel, single)

    def to_dict(self) -> dict[str, Any]:
        return {"tokens": self.tokens, "outputs": self.outputs, "weights": self.weights}

    def __len__(self) -> int:
        return self.samples

    def __repr__(self) -> str:
        known = "" if self._data.weights is None else ", weights known"
        return (
            f"Dataset(samples={self.samples}, tokens={self._data.token_count}, dim={self.dim}, "
            f"alpha={self.alpha:.6g}{known})"
        )


def _synthetic_arguments(
    dim: int, alpha: float, seed: int, token_storage: str, precision: str, test: bool, threads: int
) -> tuple[int, float, int, bool, bool, bool, int]:
    return (
        check.count("dim", dim, 1),
        check.number("alpha", alpha),
        check.seed(seed),
        check.one_of("token_storage", token_storage, ["memory", "regenerate"]) == "regenerate",
        check.one_of("precision", precision, ["double", "float"]) == "float",
        bool(test),
        check.threads(threads),
    )


def generate(
    prior: _core.Prior,
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
    """S from the prior, standard normal tokens, outputs from the channel: n = alpha d^2 samples.

        y ~ P(y | h),  h_ab = (x_a' S x_b - delta_ab Tr S) / sqrt(d)

    The same seed gives the bits of `bayesaim generate`; `test` gives other samples of the same S.
    `token_storage="regenerate"` keeps no tokens in memory.

    >>> data = bayesaim.generate(bayesaim.Wishart(0.5), bayesaim.Softmax(2), dim=100, alpha=0.1, seed=1)
    """
    options = _synthetic_arguments(dim, alpha, seed, token_storage, precision, test, threads)
    return Dataset._of(_core.generate(check.prior(prior), check.channel(channel), *options))


def read_dataset(file: str | os.PathLike[str], channel: _core.Channel) -> Dataset:
    """A dataset file, checked as data of this channel.

    >>> data = bayesaim.read_dataset("data.h5", bayesaim.Softmax(2))
    """
    return Dataset._of(_core.read_dataset(os.fspath(file), check.channel(channel, deep=True)))

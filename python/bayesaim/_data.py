# SPDX-License-Identifier: MIT
"""Tokens and outputs: your own arrays, synthetic ones, files."""
from __future__ import annotations

import math
import os
from typing import Any

from numpy.typing import ArrayLike, NDArray

from . import _arguments as check
from . import _core
from ._arguments import Floats, Priors


class Dataset:
    """The input of an estimator: tokens (n, T, d) and outputs (n, T, T), as the channel draws them.

    Cross-attention has `key_tokens` too, (n, Tk, d), and outputs (n, T, Tk).

    For softmax, outputs are logarithms of probabilities. Tokens in C order, float64 or float32, are used without a
    copy: do not change them while an estimator runs. Everything else is copied once. `weights` is S, if
    you know it, (L, d, d) for several layers: estimators then measure their error.

    >>> bayesaim.Dataset(tokens, np.log(attention))
    """

    _data: _core.Dataset

    def __init__(
        self,
        tokens: ArrayLike,
        outputs: ArrayLike | None = None,
        *,
        weights: ArrayLike | None = None,
        key_tokens: ArrayLike | None = None,
    ) -> None:
        given = None if outputs is None else check.real("outputs", outputs)
        known = None if weights is None else check.real("weights", weights)
        keys = None if key_tokens is None else check.tokens(key_tokens, "key_tokens")
        self._data = _core.dataset_from_arrays(check.tokens(tokens), given, known, keys)

    @classmethod
    def _of(cls, data: _core.Dataset) -> Dataset:
        result = cls.__new__(cls)
        result._data = data
        return result

    @property
    def tokens(self) -> NDArray[Any]:
        """(n, T, d): your array, a view, or a new array if no double-precision tokens are in memory."""
        return self._data.tokens

    @property
    def key_tokens(self) -> NDArray[Any] | None:
        """(n, Tk, d2) of cross-attention, d2 = d unless the prior has an aspect; otherwise None."""
        return self._data.key_tokens

    @property
    def outputs(self) -> Floats | None:
        """(n, T, T), a view."""
        return self._data.outputs

    @property
    def weights(self) -> Floats | None:
        """S as a view, None if it is not known; (L, d, d) for several layers."""
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
        """n/d^2, or n/(d d2) if keys have another dimension"""
        return self._data.alpha

    def check(self, channel: _core.Channel) -> None:
        """Raises ValueError unless the channel can have produced these outputs.

        >>> data.check(bayesaim.Softmax(2))
        """
        self._data.check(check.channel(channel))

    def attention_indices(self, weights: ArrayLike, *, threads: int = 0) -> Floats:
        """htilde_ab = tau_ab (x_a' S x_b - delta_ab Tr S) / sqrt(d) over the pairs a <= b, n x K.

        For weights (L, d, d) the result is n x L K, layer by layer.

        >>> data.attention_indices(data.weights)
        """
        return self._data.attention_indices(check.real("weights", weights), check.threads(threads))

    def save(
        self,
        file: str | os.PathLike[str],
        prior: Priors,
        channel: _core.Channel,
        *,
        precision: str = "double",
    ) -> None:
        """Writes an HDF5 file, for `bayesaim fit` and read_dataset. The prior is a list if layers have different ones.

        >>> data.save("data.h5", bayesaim.Wishart(0.5), bayesaim.Softmax(2))
        """
        single = check.one_of("precision", precision, ["double", "float"]) == "float"
        _core.write_dataset(self._data, os.fspath(file), check.model(prior, channel), single)

    def to_dict(self) -> dict[str, Any]:
        """Its arrays by name."""
        return {"tokens": self.tokens, "outputs": self.outputs, "weights": self.weights}

    def __len__(self) -> int:
        return self.samples

    def __repr__(self) -> str:
        known = "" if self._data.weights is None else ", weights known"
        return (
            f"Dataset(samples={self.samples}, tokens={self._data.token_count}, dim={self.dim}, "
            f"alpha={self.alpha:.6g}{known})"
        )


def generate(
    prior: Priors,
    channel: _core.Channel,
    *,
    dim: int = 100,
    alpha: float | None = None,
    n: int | None = None,
    seed: int = 0,
    token_storage: str = "memory",
    precision: str = "double",
    test: bool = False,
    threads: int = 0,
) -> Dataset:
    """Draws S from the prior, standard normal tokens, and outputs from the channel: n samples.

        y ~ P(y | h),  h_ab = (x_a' S x_b - delta_ab Tr S) / sqrt(d)

    Give `n`, or `alpha` = n/d^2 (default 0.1); n/(d d2) if a prior with an aspect gives the keys the dimension d2. With several layers each S_l comes from its prior: one for all layers, or a
    list of one for each. The same seed gives the bits of `bayesaim generate`; `test` gives other samples of the same S.
    `token_storage="regenerate"` keeps no tokens in memory.

    >>> data = bayesaim.generate(bayesaim.Wishart(0.5), bayesaim.Softmax(2), dim=100, alpha=0.1, seed=1)
    """
    dim = check.count("dim", dim, 1)
    if n is not None:
        if alpha is not None:
            raise ValueError("n cannot be combined with alpha")
        aspect = prior.parameters().get("aspect", 1) if isinstance(prior, _core.Prior) else 1
        # times d1 d2 and rounded, this is n again
        alpha = check.count("n", n, 1) / (dim * max(1, math.floor(aspect * dim + 0.5)))
    return Dataset._of(
        _core.generate(
            check.model(prior, channel),
            dim,
            0.1 if alpha is None else check.number("alpha", alpha),
            check.seed(seed),
            check.one_of("token_storage", token_storage, ["memory", "regenerate"]) == "regenerate",
            check.one_of("precision", precision, ["double", "float"]) == "float",
            bool(test),
            check.threads(threads),
        )
    )


def read_dataset(file: str | os.PathLike[str], channel: _core.Channel) -> Dataset:
    """Reads a dataset file and checks it as data of this channel.

    >>> data = bayesaim.read_dataset("data.h5", bayesaim.Softmax(2))
    """
    return Dataset._of(_core.read_dataset(os.fspath(file), check.channel(channel)))


__all__ = ["Dataset", "generate", "read_dataset"]

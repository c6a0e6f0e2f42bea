# SPDX-License-Identifier: MIT
"""Fits of data of which little is known."""
from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _arguments as check
from . import _convergence, _core
from ._arguments import Floats
from ._data import Dataset
from ._results import Result

_FAMILIES = {
    None: ["weights", "gaussian", "smooth", "fine"],
    "wishart": ["weights"],
    "bilinear": ["weights"],
    "learn": ["gaussian", "smooth", "fine"],
}


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class FitResult(Result):
    """What `fit` found, and whether to believe it."""

    estimate: Floats  #: d x d, in the units of the tokens given: logits are x_a' estimate x_b / sqrt(d) + the terms
    predicted_error: float  #: E||Shat - S||^2/d, for white tokens
    error: float | None  #: the same measured, if the weights are known
    learned: dict[str, Any]  #: law, width, scale, label_noise, beta: those that were learned
    holdout_ratio: float | None  #: held-out residuals in units of what is promised; 1 for the right model
    holdout_z: float | None  #: its distance from 1 in standard errors; discrete outputs: of their log-probability
    holdout_error: float | None  #: ||Shat - S||^2/d as held-out outputs show it, whatever the prior
    training_ratio: float  #: power over slope of the scores; 1 for the right model, up to a few d/n
    spectral_misfit: float | None  #: d KS; about 2.5 for the right law, at most 4
    token_whiteness: float  #: z of the tokens as given; 0 +- 1 for white ones
    token_length_spread: float  #: gamma; 1 for normal tokens
    fits: bool
    verdict: str  #: "fits", or what is wrong and what to try
    status: str
    iterations: int
    candidates: list[dict[str, Any]]  #: each law with its held-out loss
    tokens_whitened: bool
    white_estimate: Floats  #: Shat for white tokens; the estimate itself if they were
    predicted_error_matrix: Floats
    learned_law: Floats | None  #: (k, 3) centre, weight and variance of bumps, where no family was assumed
    key_term: Floats | None  #: logits have + key_term . z_b / sqrt(d) (tied attention: of both tokens)
    query_term: Floats | None  #: the same of the query; a softmax does not see it
    diagonal_term: float  #: logits have + diagonal_term where a token attends to itself
    constant_term: float


def _log_outputs(probabilities: NDArray[Any]) -> NDArray[Any]:
    """Logarithms; a zero is an entry that a mask hides."""
    if np.any(probabilities < 0):
        raise ValueError(f"outputs must be probabilities, got {probabilities.min():.6g}; log_outputs= takes logarithms")
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


def fit(
    tokens: ArrayLike,
    outputs: ArrayLike | None = None,
    channel: str = "softmax",
    attention: str = "tied",
    prior: _core.Prior | str | None = None,
    *,
    log_outputs: ArrayLike | None = None,
    key_tokens: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    beta: float | str = 1.0,
    label_noise: float | str = 0.0,
    holdout: float | None = None,
    tokens_as_given: bool = False,
    max_iterations: int = 300,
    tolerance: float = 1e-6,
    damping: float | None = None,
    adaptive_damping: bool = False,
    seed: int = 0,
    threads: int = 0,
    progress: Any = None,
) -> FitResult:
    """Learns S from tokens (n, T, d) and outputs (n, T, T), and says whether the model fits.

        logits_ab = beta (x_a' S x_b / sqrt(d) + key_term . z_b / sqrt(d) + diagonal_term delta_ab + ..)

    `outputs` are probabilities for softmax, as a library returns them; `log_outputs` are their logarithms. `attention` is
    "tied", "cross", "masked", "self" or "causal"; cross-attention needs `key_tokens`. Without a `prior` the law of S is
    learned: of weights W W' (or W_Q W_K') with any width and scale, Gaussian, or any spectrum, whichever predicts held-out
    outputs best. `prior="wishart"` (untied: "bilinear") learns width and scale, "learn" the spectrum; a Prior is taken as
    it is. `beta="learn"` needs a prior of weights, whose scale is then 1; otherwise beta S is what can be learned.
    `label_noise="learn"` is for linear outputs. Tokens that are not white are made so unless `tokens_as_given`.
    `holdout` is the share of the samples held out for the verdict (default 0.1, at least 20 samples; 0 for none).

    >>> bayesaim.fit(tokens, attention_maps, attention="causal").estimate
    """
    check.one_of("channel", channel, ["softmax", "linear", "hardmax"])
    if (outputs is None) == (log_outputs is None):
        raise ValueError("outputs or log_outputs must be given, one of them")
    given = check.real("outputs" if log_outputs is None else "log_outputs", outputs if log_outputs is None else log_outputs)
    if channel == "softmax" and log_outputs is None:
        given = _log_outputs(np.asarray(given, dtype=float))
    elif channel != "softmax" and log_outputs is not None:
        raise ValueError(f"log_outputs cannot be combined with channel {channel!r}")
    data = Dataset(tokens, given, weights=weights, key_tokens=key_tokens)
    families, known = ["given"], None
    if prior is None or isinstance(prior, str):
        if prior is not None:
            check.one_of("prior", prior, ["wishart", "bilinear", "learn"])
        if prior == ("bilinear" if attention == "tied" else "wishart"):
            raise ValueError(f"prior {prior!r} cannot be combined with attention {attention!r}")
        families = _FAMILIES[prior]
    else:
        known = check.prior(prior)
    learn_beta = beta == "learn"
    if learn_beta:
        if channel != "softmax" or prior not in ("wishart", "bilinear", None):
            raise ValueError("beta 'learn' needs the channel softmax and a prior of weights, which fixes the scale of S")
        families = ["weights"]
    settings: dict[str, Any] = {"attention": attention}
    if channel == "softmax":
        settings["beta"] = 1.0 if learn_beta else check.number("beta", beta)
    if channel != "softmax" and beta != 1:
        raise ValueError(f"beta applies only to channel 'softmax' (channel is {channel!r})")
    if channel != "linear" and label_noise != 0:
        raise ValueError(f"label_noise applies only to channel 'linear' (channel is {channel!r})")
    if channel == "linear" and label_noise != "learn":
        settings["label_noise"] = check.number("label_noise", label_noise)
    if holdout is None:
        # A tenth, but at least 20 samples; none where nothing is learned from few.
        few = 0 if known is not None else 0.1
        holdout = 0.1 if data.samples >= 200 else 20 / data.samples if data.samples >= 60 else few
    result = _core.fit(
        data._data,
        channel,
        settings,
        families,
        known,
        {
            "learn_label_noise": label_noise == "learn",
            "learn_beta": learn_beta,
            "holdout": check.number("holdout", holdout),
            "seed": check.seed(seed),
            "tokens_as_given": bool(tokens_as_given),
            "max_iterations": check.count("max_iterations", max_iterations, 1),
            "tolerance": check.number("tolerance", tolerance),
            "damping": check.number("damping", damping if damping is not None else 0.2 if channel == "hardmax" else 0.5),
            "adaptive_damping": bool(adaptive_damping),
        },
        check.threads(threads),
        check.progress(progress),
    )
    if _convergence.lost(result["status"]):
        _convergence.warn(f"AMP did not converge: {result['status']} after {result['iterations']} iterations; {result['verdict']}")
    return FitResult(**result)


__all__ = ["FitResult", "fit"]

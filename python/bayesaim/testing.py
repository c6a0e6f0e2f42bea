# SPDX-License-Identifier: MIT
"""Checks that your own channels and priors keep their contract, as those of the library do."""
from __future__ import annotations

from . import _arguments as check
from . import _core

__all__ = ["check_channel", "check_prior"]


def check_channel(
    channel: _core.Channel,
    *,
    overlap: float = 0.9,
    error: float = 0.35,
    samples: int = 3000,
    prediction_samples: int = 20000,
    label_noise: bool = False,
    score_accuracy: float = 1e-9,
    seed: int = 11,
) -> list[str]:
    """One line for each promise that is broken; an empty list if all is well.

    Lines that differ only in numbers are one: the first, with their count.

    The score is the gradient of log Z, is centred, has E g g^T = -E dg/domega and commutes with permutations of tokens;
    score_power, information, generalization and predict agree with it and with samples. `label_noise` states that outputs
    have noise that predictions leave out; `score_accuracy` is the accuracy of the score.

    >>> assert not bayesaim.testing.check_channel(MyChannel())
    """
    return _core.check_channel(
        check.channel(channel),
        check.number("overlap", overlap),
        check.number("error", error),
        check.count("samples", samples, 100),
        check.count("prediction_samples", prediction_samples, 100),
        check.seed(seed),
        bool(label_noise),
        check.number("score_accuracy", score_accuracy),
    )


def check_prior(
    prior: _core.Prior,
    *,
    dim: int = 300,
    draws: int = 12,
    noise_variances: tuple[float, float] = (1e-10, 1e10),
) -> list[str]:
    """One line for each promise that is broken; an empty list if all is well.

    Samples are symmetric, repeat, differ, and have the moments and under noise the spectrum of the law; mmse increases
    from 0 to the prior's variance over the range of noise variances.

    >>> assert not bayesaim.testing.check_prior(MyPrior())
    """
    return _core.check_prior(
        check.prior(prior),
        check.count("dim", dim, 20),
        check.count("draws", draws, 2),
        *check.interval("noise_variances", noise_variances),
    )

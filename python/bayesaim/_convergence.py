# SPDX-License-Identifier: MIT
"""The warning of computations that ended before they converged."""
from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence


class ConvergenceWarning(UserWarning):
    """A computation ended before it converged. The result holds the best values found; `status` says how each ended.

    >>> warnings.simplefilter("error", bayesaim.ConvergenceWarning)  # an exception instead
    """


def lost(status: str) -> bool:
    """Whether a computation missed its goal. A caller who stopped it knows."""
    return status not in ("converged", "exact recovery", "stopped")


def warn(text: str, depth: int = 3) -> None:
    """Call from a public function: the warning names the line that called it. Deeper inside, `depth` is larger."""
    warnings.warn(text, ConvergenceWarning, stacklevel=depth)


def lost_text(what: str, statuses: Sequence[str], place: Callable[[int], str]) -> str:
    """One line with the number of lost ones and the first of them; empty if there is none."""
    those = [i for i, status in enumerate(statuses) if lost(status)]
    if not those:
        return ""
    first = those[0]
    return f"{len(those)} of {len(statuses)} {what} did not converge, the first {place(first)}: {statuses[first]}"


__all__ = ["ConvergenceWarning"]

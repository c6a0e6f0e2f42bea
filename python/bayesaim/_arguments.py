# SPDX-License-Identifier: MIT
"""Checks of arguments. A mistake raises a TypeError or a ValueError of one line, with the name and the value."""
from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core

Floats = NDArray[np.float64]
Progress = Callable[[float, float, str], Any]
Priors = Union[_core.Prior, Sequence[_core.Prior]]  # one for all layers, or one for each


def kind_of(value: object) -> str:
    return "None" if value is None else type(value).__name__


def number(name: str, value: Any) -> float:
    if isinstance(value, (str, bytes, bool, np.bool_)) or value is None:
        raise TypeError(f"{name} must be a number, got {kind_of(value)}")
    try:
        result = float(value)
    except OverflowError:
        raise ValueError(f"{name} must be below 1e308 in size, got more") from None
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, got {kind_of(value)}") from None
    if math.isnan(result):
        raise ValueError(f"{name} must be a number, got nan")
    return result


def count(name: str, value: Any, lowest: int = 0, highest: int = 2**31 - 1) -> int:
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be a whole number, got {kind_of(value)}")
    try:
        result = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, got {kind_of(value)}") from None
    if result < lowest:
        raise ValueError(f"{name} must be at least {lowest}, got {result}")
    if result > highest:
        raise ValueError(f"{name} must be at most {highest}, got {result}")
    return result


def seed(value: Any) -> int:
    return count("seed", value, 0, 2**64 - 1)


def threads(value: Any) -> int:
    return count("threads", value, 0, 1024)


def one_of(name: str, value: Any, known: Sequence[str]) -> str:
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")
    return str(value)


def real(name: str, value: Any) -> NDArray[Any]:
    """An array of real numbers of any type, from an array or a list."""
    if value is None:
        raise TypeError(f"{name} must be an array of numbers, got None")
    try:
        array = np.asarray(value)
    except ValueError:
        raise TypeError(f"{name} must be an array of numbers, got {kind_of(value)}") from None
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be real numbers, got dtype {array.dtype}")
    return array


def array(name: str, value: ArrayLike) -> Floats:
    """Finite doubles in C order, in the shape of the argument."""
    # ascontiguousarray turns a number into a one-dimensional array
    result = np.asarray(real(name, value), dtype=np.float64, order="C")
    if not np.isfinite(result).all():
        raise ValueError(f"{name} must be finite, got {result[~np.isfinite(result)].flat[0]}")
    return result


def line(name: str, value: ArrayLike) -> tuple[Floats, bool]:
    """A one-dimensional array, and whether the argument was a single number."""
    result = array(name, value)
    if result.ndim > 1:
        raise ValueError(f"{name} must be a number or a one-dimensional array, got shape {result.shape}")
    return np.atleast_1d(result), result.ndim == 0


def interval(name: str, value: Any) -> tuple[float, float]:
    """The same for positive numbers."""
    ends = real(name, value)
    if ends.shape != (2,) or not 0 < ends[0] < ends[1] < math.inf:
        given = ends.tolist() if ends.size <= 6 else f"shape {ends.shape}"
        raise ValueError(f"{name} must be (lowest, highest), 0 < lowest < highest < inf, got {given}")
    return float(ends[0]), float(ends[1])


def grid(name: str, value: str | ArrayLike, unit: Callable[[], float | None] | None = None) -> Floats:
    """Numbers, or a grid as on the command line, such as "0.1x:0.9x:9".

    `unit` is the strong-recovery threshold, in which x counts; only alpha has it, and only alpha may be 0.
    """
    if not isinstance(value, str):
        return line(name, value)[0]
    relative = "x" in value
    values = _core.grid(name, value, unit() if unit is not None and relative else 1.0, unit is not None)
    if relative and unit is None:
        raise ValueError(f"{name} must be absolute numbers, got numbers with x")
    return values


def regularizations(value: Any) -> tuple[list[float | None], bool]:
    """Numbers, or None for the best of each alpha; and whether the argument was a single one."""
    if value is None:
        raise TypeError("regularization must be a number such as 0.1, an array, a grid or 'optimal', got None")
    if not isinstance(value, str):
        values, single = line("regularization", value)
    elif value == "optimal":
        return [None], True
    else:
        values = _core.grid("regularization", value, 1.0, True)
        if "x" in value:
            raise ValueError("regularization must be absolute numbers, got numbers with x")
        single = len(values) == 1
    if len(values) == 0:
        raise ValueError("regularization must have at least one value, got none")
    return values.tolist(), single


def estimator(value: Any, unlike: dict[str, dict[str, tuple[Any, Any]]]) -> str:
    """"bayes" or "erm". An argument of the other one, given as (value, default), must have its default."""
    one_of("estimator", value, ["bayes", "erm"])
    for owner, arguments in unlike.items():
        for name, (given, default) in arguments.items():
            if owner != value and given is not default and given != default:
                raise ValueError(f"{name} applies only to estimator {owner!r} (estimator is {value!r})")
    return str(value)


def tokens(value: ArrayLike, name: str = "tokens") -> NDArray[Any]:
    """(n, T, d) in C order, float64 or float32; copied only if necessary."""
    result = real(name, value)
    if result.ndim != 3:
        raise ValueError(f"{name} must be an array (samples, tokens, dimension), got shape {result.shape}")
    if 0 in result.shape:
        raise ValueError(f"{name} must not be empty, got shape {result.shape}")
    native = np.float32 if result.dtype == np.float32 else np.float64
    return np.require(result, dtype=native, requirements=["C", "A"])


def prior(value: Any) -> _core.Prior:
    if not isinstance(value, _core.Prior):
        raise TypeError(f"prior must be a Prior, such as Wishart(0.5), got {kind_of(value)}")
    return value


def law_of(value: Any) -> _core.SpectralLaw:
    """The law of a prior, or the law itself."""
    if isinstance(value, _core.SpectralLaw):
        return value
    if not isinstance(value, _core.Prior):
        raise TypeError(f"prior must be a Prior or a SpectralLaw, got {kind_of(value)}")
    # Calls a method written in Python once. pybind11 would take a caller named `law` for that method itself.
    return _core.Prior.law(value)


def priors(value: Any, layers: int) -> list[_core.Prior]:
    """One prior per layer; a single prior serves every layer."""
    if isinstance(value, _core.Prior):
        return [value] * layers
    if not isinstance(value, (list, tuple)) or not all(isinstance(one, _core.Prior) for one in value):
        raise TypeError(f"prior must be a Prior such as Wishart(0.5), or a list of one for each layer, got {kind_of(value)}")
    if len(value) != layers:
        each = "" if layers == 1 else f", or one for each of the {layers} layers"
        raise ValueError(f"prior must be one{each}, got {len(value)}")
    return list(value)


def channel(value: Any) -> _core.Channel:
    if not isinstance(value, _core.Channel):
        raise TypeError(f"channel must be a Channel, such as Softmax(tokens=2), got {kind_of(value)}")
    return value


def model(prior: Priors, value: _core.Channel) -> _core.Model:
    return _core.Model(priors(prior, channel(value).layers), value)


def progress(value: Any) -> Progress | None:
    """callback(done, total, text), which may return False to stop; or a tqdm bar, whose total is set."""
    if value is None:
        return None
    if hasattr(value, "update") and hasattr(value, "total"):
        return _follow(value)
    if not callable(value):
        raise TypeError(f"progress must be a callback(done, total, text) or a tqdm bar, got {kind_of(value)}")
    callback: Progress = value
    return callback


def _follow(bar: Any) -> Progress:
    shown = 0.0

    def report(done: float, total: float, text: str) -> None:
        nonlocal shown
        bar.total = total
        if text and hasattr(bar, "set_postfix_str"):
            bar.set_postfix_str(text, refresh=False)
        bar.update(done - shown)
        shown = done

    return report

# SPDX-License-Identifier: MIT
"""Pictures with matplotlib; each function draws into `ax`, or into a new figure, and returns the axes."""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import _arguments as check
from ._arguments import Floats
from ._results import AmpResult, PhaseDiagram, TheoryCurve, TrainedCurve
from ._spectral import Spectrum
from ._training import TrainedSpectrum

BLUE, VERMILION, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#999999"  # safe for colour-blind readers


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    import matplotlib.pyplot  # type: ignore[import]

    return matplotlib.pyplot.subplots(figsize=(5.5, 3.8), layout="constrained")[1]


def _begin_at_zero(ax: Any) -> None:
    """The y axis begins at 0. Its limits are not set: they go on to follow what is drawn later."""
    ax.update_datalim([(0, 0)], updatex=False)
    ax.lines[-1].sticky_edges.y.append(0)  # no margin below 0
    ax.autoscale_view()


def _curve(ax: Any, x: Floats, y: Floats, standard_error: Floats | None, **style: Any) -> Any:
    """A line, in a band of two standard errors if it was sampled."""
    (line,) = ax.plot(x, y, **style)
    if standard_error is not None and standard_error.any():
        width = 2 * standard_error
        ax.fill_between(x, y - width, y + width, color=line.get_color(), alpha=0.2, lw=0)
    return line


def _lines(curve: TheoryCurve | TrainedCurve, label: str | None) -> list[tuple[str, dict[str, Any]]]:
    """Each line of a curve: its label and its columns. A trained curve may have several, one for each regularization."""
    if isinstance(curve, TheoryCurve):
        return [("Bayes-optimal" if label is None else label, curve.to_dict())]
    columns = {name: np.atleast_2d(column) for name, column in curve.to_dict().items()}
    columns["generalization_standard_error"] = np.zeros_like(columns["alpha"])
    lines = []
    for i, strengths in enumerate(columns["regularization"]):
        same = len(set(strengths.tolist())) == 1
        text = f"trained, λ = {strengths[0]:g}" if same else "trained, best λ"
        lines.append((text if label is None else label, {name: column[i] for name, column in columns.items()}))
    return lines


def theory(
    curve: TheoryCurve | TrainedCurve,
    *,
    generalization: bool | None = None,
    label: str | None = None,
    log: bool | None = None,
    ax: Any = None,
) -> Any:
    """Error against alpha, and the generalisation error dashed, if the curve has it; of a trained curve only if asked for.

    A trained curve has a line for each regularization. By default axes that show something keep their scale; new ones are logarithmic if all errors are positive and their
    largest ratio exceeds 30.

    >>> bayesaim.plot.theory(bayesaim.theory(prior, channel, np.linspace(0.01, 0.2, 100)))
    """
    if generalization and curve.generalization_error is None:
        raise ValueError("curve must be one with generalization=True, got one without")
    if generalization is None:
        generalization = isinstance(curve, TheoryCurve) and curve.generalization_error is not None
    ax = _axes(ax)
    errors = curve.estimation_error
    if log is None and not ax.has_data():
        positive = len(curve) > 0 and curve.alpha.min() > 0 and errors.min() > 0
        log = bool(positive and errors.max() > 30 * errors.min())
    if log is not None:
        scale = "log" if log else "linear"
        ax.set(xscale=scale, yscale=scale)
    for name, columns in _lines(curve, label):
        line = _curve(ax, columns["alpha"], columns["estimation_error"], columns["standard_error"], label=name)
        if generalization:
            style = {"ls": "--", "color": line.get_color(), "label": f"{name}, generalisation"}
            new = (columns["generalization_error"], columns["generalization_standard_error"])
            _curve(ax, columns["alpha"], *new, **style)
    if ax.get_yscale() == "linear":
        _begin_at_zero(ax)
    ax.set(xlabel="α = n/d²", ylabel="error" if generalization else "estimation error")
    ax.legend(frameon=False)
    return ax


def _traces(errors: Floats) -> Floats:
    """The error, summed over layers."""
    return np.asarray(np.trace(errors, axis1=1, axis2=2)) if errors.ndim == 3 else errors


def amp_trajectory(
    result: AmpResult,
    state_evolution: ArrayLike | None = None,
    *,
    bayes_optimal: float | None = None,
    ax: Any = None,
) -> Any:
    """Error of AMP, measured and predicted, against iterations, with the trajectory of state evolution.

    State evolution has no damping: run AMP with damping=0 to compare step by step, or give the fixed point alone.

    >>> bayesaim.plot.amp_trajectory(result, bayesaim.trajectory(prior, channel, alpha, result.iterations))
    """
    ax = _axes(ax)
    steps = np.arange(1, result.iterations + 1)
    if np.isfinite(result.true_errors).any():
        ax.plot(steps, _traces(result.true_errors), "o", ms=4, color=VERMILION, label="AMP, measured")
    ax.plot(steps, _traces(result.predicted_errors), "x", ms=5, color=GREEN, label="AMP, its own prediction")
    if state_evolution is not None:
        errors = _traces(check.array("state evolution", state_evolution))
        ax.plot(np.arange(len(errors)), errors, color=BLUE, label="state evolution")
    if bayes_optimal is not None:
        ax.axhline(bayes_optimal, color=GREY, ls="--", label="Bayes-optimal")
    ax.set(xlabel="iteration", ylabel="estimation error")
    _begin_at_zero(ax)
    ax.legend(frameon=False)
    return ax


def spectrum(
    spectrum: Spectrum | TrainedSpectrum,
    eigenvalues: ArrayLike | None = None,
    *,
    bins: int = 60,
    points: int = 400,
    ax: Any = None,
) -> Any:
    """Density of the eigenvalues of S + sqrt(D) Xi, over a histogram of the eigenvalues of a matrix.

    Of a trained matrix those that are 0 are left out of both.

    >>> bayesaim.plot.spectrum(bayesaim.Spectrum(prior, 0.1), np.linalg.eigvalsh(noisy))
    """
    ax = _axes(ax)
    if eigenvalues is not None:
        values, _ = check.line("eigenvalues", eigenvalues)
        shown = values
        if isinstance(spectrum, TrainedSpectrum) and spectrum.zero_fraction > 0:
            shown = values[values > 1e-9 * np.abs(values).max(initial=0)]  # zeros, up to the rounding of an eigensolver
        heights, ends = np.histogram(shown, bins=bins)
        heights = heights / (len(values) * np.diff(ends))
        ax.hist(ends[:-1], bins=ends, weights=heights, color=GREY, alpha=0.5, label=f"{len(shown)} eigenvalues")
    for number, (low, high) in enumerate(spectrum.edges):
        # dense at the edges, where the density is a square root
        x: Floats = low + (high - low) * (1 - np.cos(np.linspace(0, np.pi, points))) / 2
        ax.plot(x, spectrum.density(x), color=BLUE, label="theory" if number == 0 else None)
    ax.set(xlabel="eigenvalue", ylabel="density")
    _begin_at_zero(ax)
    ax.legend(frameon=False)
    return ax


def phase(diagram: PhaseDiagram, *, ax: Any = None) -> Any:
    """Heat map of the error over alpha and width, with the line of strong recovery.

    >>> bayesaim.plot.phase(bayesaim.phase(bayesaim.Softmax(2), "0.01:0.3:30", "0.1:1.5:15"))
    """
    ax = _axes(ax)
    widths = np.broadcast_to(diagram.width[:, None], diagram.alpha.shape)
    mesh = ax.pcolormesh(diagram.alpha, widths, diagram.estimation_error, shading="nearest", cmap="viridis")
    ax.figure.colorbar(mesh, ax=ax, label="estimation error")
    if np.isfinite(diagram.strong_recovery).any():
        ax.plot(diagram.strong_recovery, diagram.width, color="white", ls="--", scalex=False, label="strong recovery")
        ax.legend(frameon=False, labelcolor="white")
    ax.set(xlabel="α = n/d²", ylabel="width ρ = r/d")
    return ax


__all__ = ["amp_trajectory", "phase", "spectrum", "theory"]

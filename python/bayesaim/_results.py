# SPDX-License-Identifier: MIT
"""Results of computations: plain data and arrays."""
from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._arguments import Floats


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray) and (value.dtype.kind == "U" or (value.ndim == 1 and value.dtype.kind != "f")):
        kinds, counts = np.unique(value, return_counts=True)
        return ", ".join(f"{k} ({n})" if value.size > 1 else str(k) for k, n in zip(kinds, counts))
    if isinstance(value, np.ndarray) and value.ndim == 2 and value.size <= 9:
        return f"[{', '.join(map(_short, value))}]"
    if isinstance(value, np.ndarray) and value.ndim != 1:
        return f"<array {' x '.join(map(str, value.shape))}>"
    if isinstance(value, np.ndarray):
        shown = [f"{x:.6g}" for x in (value if value.size <= 6 else np.r_[value[:3], value[-1:]])]
        if value.size > 6:
            shown.insert(3, "...")
        return f"[{', '.join(shown)}]" + (f" ({value.size} values)" if value.size > 6 else "")
    if isinstance(value, list):
        return f"<{len(value)} of {type(value[0]).__name__}>" if value else "[]"
    return f"{value:.8g}" if isinstance(value, float) else repr(value)


class Result:
    """Fields by name; `print` shows a short form, `to_dict` returns all."""

    def _fields(self) -> Iterator[tuple[str, Any]]:
        for field in dataclasses.fields(self):
            yield field.name, getattr(self, field.name)

    def to_dict(self) -> dict[str, Any]:
        """All fields; results inside results become dictionaries too."""

        def plain(value: Any) -> Any:
            if isinstance(value, Result):
                return value.to_dict()
            return [plain(item) for item in value] if isinstance(value, list) else value

        return {name: plain(value) for name, value in self._fields()}

    def __repr__(self) -> str:
        lines = [f"  {name}: {_short(value)}" for name, value in self._fields() if value is not None]
        return f"{type(self).__name__}\n" + "\n".join(lines)


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class TheoryCurve(Result):
    """Errors for large d, one entry for each alpha (columns as of `bayesaim theory`).

    Matrices between layers are numbers for one layer, (n, L, L) for several.
    """

    alpha: Floats
    estimation_error: Floats  #: E||Shat - S||^2/d = Tr C, the sum over layers
    standard_error: Floats  #: of estimation_error, if an expectation was sampled; 0 otherwise
    overlap: Floats  #: q
    conjugate_overlap: Floats  #: qhat; infinite at exact recovery
    algorithmic_error: Floats | None  #: the error that AMP reaches; None unless branch is "optimal"
    generalization_error: Floats | None  #: of the Bayes-optimal prediction of a new output; None unless asked for
    generalization_standard_error: Floats | None
    plugin_generalization_error: Floats | None  #: of the prediction g(omega)
    free_entropy: Floats | None  #: -q qhat/4 + I_in(qhat) + alpha I_out(q), NaN if not known; None unless asked for
    status: NDArray[np.str_]
    iterations: NDArray[np.int64]
    layer_errors: Floats | None = None  #: E||Shat_l - S_l||^2/d, (n, L); None for one layer
    error_matrix: Floats | None = None  #: C = Q - q, (n, L, L); None for one layer

    def __len__(self) -> int:
        return len(self.alpha)


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class TrainedCurve(Result):
    """What training reaches for large d, one entry for each alpha (columns as of `bayesaim theory --estimator erm`).

    If several regularizations are asked for, every array has a row for each of them.
    """

    alpha: Floats
    regularization: Floats  #: lambda; 0 is the limit 0+
    estimation_error: Floats  #: ||Shat - S||^2/d
    standard_error: Floats  #: of estimation_error, from quadrature or sampling; 0 for closed forms
    generalization_error: Floats  #: of the prediction of a new output by Shat
    training_loss: Floats  #: mean loss of a sample at the minimum
    zero_fraction: Floats  #: of the eigenvalues of Shat
    overlap: Floats  #: m = tr Shat S
    self_overlap: Floats  #: q = tr Shat^2
    trace: Floats  #: tr Shat
    objective: Floats  #: the minimum per d^2, alpha training_loss + lambda penalty/d
    noise_variance: Floats  #: D of Shat = gain (S + sqrt(D) Xi - threshold)_+
    gain: Floats
    threshold: Floats
    status: NDArray[np.str_]
    iterations: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.alpha)


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class PhaseDiagram(Result):
    """Errors for large d: a row for each width, a column for each alpha."""

    alpha: Floats  #: W x A; rows differ if the grid counts in units of the threshold
    width: Floats  #: W
    estimation_error: Floats  #: W x A
    standard_error: Floats  #: of estimation_error, if an expectation was sampled; 0 otherwise
    status: NDArray[np.str_]  #: W x A
    strong_recovery: Floats  #: threshold of each width; NaN if the channel has none


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Thresholds(Result):
    """Thresholds in alpha; None for a threshold that does not exist."""

    weak_recovery_scaled: float | None  #: in alpha/width at small width; one layer
    strong_recovery: float | None  #: error zero from here on
    information_theoretic: float | None  #: where the optimal error vanishes or jumps
    algorithmic: float | None  #: the same for an efficient algorithm
    spinodal: float | None  #: where the informed fixed point of a first-order transition appears


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class RequiredSamples(Result):
    """What a target error takes; None if no number of samples reaches it."""

    alpha: float | None  #: samples per d^2
    samples: int | None  #: n
    estimation_error: float | None  #: there
    generalization_error: float | None  #: there


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class TrainedThresholds(Result):
    """Thresholds of training in alpha, as lambda -> 0+; None for a threshold that does not exist."""

    strong_recovery: float | None  #: outputs without noise: the error is zero from here on
    interpolation: float | None  #: noisy outputs: zero training loss up to here, where the error has its peak


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Denoised(Result):
    estimate: Floats  #: E[S | R]
    posterior_variance: float  #: mmse(D), the expected ||estimate - S||^2/d
    eigenvalues: Floats  #: of R, ascending
    shrunk: Floats  #: of the estimate, in the same order


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class AmpResult(Result):
    """The last iterate of AMP (the most consistent one if it diverged), and its history, an entry per iteration.

    Matrices between layers are numbers in the history of one layer, (iterations, L, L) arrays for several.
    """

    estimate: Floats | None  #: Shat of one layer; None for several
    estimates: Floats  #: Shat_l, (L, d, d)
    predicted_error: float  #: Tr C
    error: float | None  #: sum over layers of ||Shat_l - S_l||^2/d; None if S is not known
    predicted_error_matrix: Floats  #: C, L x L
    error_matrix: Floats | None  #: Tr (Shat_l - S_l)(Shat_k - S_k)/d; None if S is not known
    status: str
    true_errors: Floats  #: NaN if S is not known
    predicted_errors: Floats
    self_overlaps: Floats  #: Tr Shat_l Shat_k / d
    conjugate_overlaps: Floats  #: qhat
    responses: Floats  #: A
    noise_variances: Floats  #: D of R
    changes: Floats
    seconds: Floats

    @property
    def iterations(self) -> int:
        """Their number."""
        return len(self.changes)


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Descent(Result):
    """One start of gradient descent."""

    weights: Floats  #: W, d x r; of untied attention [W_Q | W_K], d x 2r
    factors: int  #: 1, or 2 for [W_Q | W_K]
    status: str
    steps: int
    recorded_steps: Floats
    losses: Floats
    gradient_norms: Floats
    true_errors: Floats
    seconds: float

    @property
    def estimate(self) -> Floats:
        """S = W W^T / sqrt(r d), or W_Q W_K^T / sqrt(r d)"""
        parts = np.split(self.weights, self.factors, axis=1)
        d, r = parts[0].shape
        return np.asarray(parts[0] @ parts[-1].T / np.sqrt(r * d))


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class DescentResult(Result):
    """Gradient descent from several starts and its average."""

    estimate: Floats | None  #: mean of S over the starts that did not diverge
    status: str  #: the worst of the starts
    errors: Floats  #: of each start, where S is known
    averaged_errors: Floats  #: of the mean over starts 0 .. m
    descents: list[Descent]
    #: with weight decay lambda of L/2 + lambda d Tr S, or d times the nuclear norm of S in untied attention
    regularization: float | None = None

    @property
    def training_objective(self) -> float:
        """The last recorded loss, penalty included; mean over the starts that did not diverge."""
        last = [one.losses[-1] for one in self.descents if one.status != "diverged" and len(one.losses)]
        return float(np.mean(last)) if last else float("nan")


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class TrainingResult(Result):
    """The minimum of a regularised loss, and the way to it, an entry per iteration."""

    estimate: Floats  #: Shat, d x d
    loss: str  #: its name
    training_loss: float  #: mean over the samples
    objective: float  #: the minimum divided by d^2
    zero_fraction: float  #: of the eigenvalues of Shat; exact zeros
    kkt_residual: float  #: distance from the minimum in units of a step; 0 exactly there
    error: float | None  #: ||Shat - S||^2/d; None if S is not known
    status: str
    true_errors: Floats  #: NaN if S is not known
    changes: Floats  #: ||S - previous||/||R||
    zero_fractions: Floats
    curvatures: Floats  #: A, or 1/step of the proximal gradient
    responses: Floats  #: V; 0 for the proximal gradient
    seconds: Floats

    @property
    def iterations(self) -> int:
        """Their number."""
        return len(self.changes)


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class TrainingRuns(Result):
    """Training on synthetic data beside its theory, one entry for each alpha (columns as of `bayesaim erm`).

    If several regularizations are asked for, every array has a row for each of them. Missing numbers are NaN.
    """

    alpha: Floats
    regularization: Floats
    dim: int
    seeds: NDArray[np.int64]  #: problems that were finished
    mean_error: Floats  #: mean over seeds of ||Shat - S||^2/d
    standard_error: Floats  #: of mean_error, from two seeds on
    theory_error: Floats  #: for large d
    z_score: Floats  #: from four seeds on
    difference_percent: Floats
    bayes_error: Floats  #: the Bayes-optimal error for large d
    training_loss: Floats
    training_loss_standard_error: Floats
    theory_training_loss: Floats
    zero_fraction: Floats
    zero_fraction_standard_error: Floats
    theory_zero_fraction: Floats
    generalization_error: Floats | None  #: on new samples; None without test_samples
    generalization_standard_error: Floats | None
    theory_generalization_error: Floats | None
    kkt_residual: Floats  #: the largest of the seeds
    iterations: Floats
    seconds_per_iteration: Floats
    status: NDArray[np.str_]  #: the first that is not a success

    def __len__(self) -> int:
        return len(self.alpha)


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Prediction(Result):
    bayes_optimal: Floats  #: E[g(htilde)], htilde ~ N(omega, 2 error), (n, T, T)
    plug_in: Floats  #: g(omega)


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class SweepResult(Result):
    """Points of a study, each a dictionary of settings and values."""

    points: list[dict[str, Any]]
    computed: int  #: by this call
    stopped: bool
    csv: str  #: as in results.csv
    summary: str  #: as in summary.csv, means over seeds

    def column(self, name: str) -> NDArray[Any]:
        """A setting or a value of every point; a missing number is NaN, a missing text "".

        >>> result.column("error")
        """
        if not any(name in point for point in self.points):
            known = sorted({key for point in self.points for key in point})
            raise ValueError(f"column must be one of {', '.join(known)}, got {name!r}")
        values = [point.get(name) for point in self.points]
        missing = "" if any(isinstance(value, str) for value in values) else np.nan
        return np.array([missing if value is None else value for value in values])

    def __repr__(self) -> str:
        done = sum("status" in point for point in self.points)
        counts = {name: value for name, value in self._fields() if name not in ("points", "csv", "summary")}
        lines = [f"  points: {len(self.points)}, {done} done", *(f"  {name}: {value}" for name, value in counts.items())]
        return f"{type(self).__name__}\n" + "\n".join(lines)


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class RerunResult(SweepResult):
    """A repeated study, compared with its first results."""

    compared: int  #: points with a result both times
    same_bits: int  #: of those


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class SweepPlan(Result):
    """The work that a sweep would do."""

    tasks: int  #: of the shard
    done: int
    failed: int
    missing: int
    seconds: float  #: estimate for the missing points
    measured: bool  #: from runs of this study, rather than from operation counts


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class JointlyDenoised(Result):
    estimates: Floats  #: Shat_l, (L, d, d)
    posterior_covariance: Floats  #: C, L x L
    method: str  #: "innovation" or "combination"


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class PolynomialEstimator(Result):
    """The best polynomial of a degree in the noisy matrices R_l, for large d.

    Shat_k = mean_k + sum_w coefficient_wk (w + w*)/2, words w in the letters x_l = (R_l - mean_l)/scale_l.
    """

    words: list[list[int]]
    coefficients: Floats  #: words x L
    means: Floats
    scales: Floats
    errors: Floats  #: C of degree 0, 1, .., (degree + 1, L, L)
    estimates: Floats | None  #: of the matrices that were given, (L, d, d)


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Encoded(Result):
    """All layers of an encoder on n samples; without the first axis for one sample."""

    logits: Floats  #: H_l, (n, L, T, T)
    attention: Floats  #: softmax(beta H_l)
    read_out: Floats  #: softmax(beta H_l) X_(l-1), (n, L, T, d)
    tokens: Floats  #: X_l = residual X_(l-1) + read_out


__all__ = [
    "AmpResult",
    "Denoised",
    "Descent",
    "DescentResult",
    "Encoded",
    "JointlyDenoised",
    "PhaseDiagram",
    "PolynomialEstimator",
    "Prediction",
    "RequiredSamples",
    "RerunResult",
    "Result",
    "SweepPlan",
    "SweepResult",
    "TheoryCurve",
    "Thresholds",
    "TrainedCurve",
    "TrainedThresholds",
    "TrainingResult",
    "TrainingRuns",
]

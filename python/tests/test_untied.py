# SPDX-License-Identifier: MIT
"""Separate queries and keys: self and causal attention, and arrays of one's own."""
import bayesaim
import numpy as np
import pytest

BILINEAR = bayesaim.Bilinear(0.5)


def test_theory_is_that_of_the_program(program):
    options = ["--attention", "self", "--width", 0.5, "--alpha", 0.2, "--format", "json"]
    (point,) = program("theory", *options)["points"]
    curve = bayesaim.theory(BILINEAR, bayesaim.make_channel("softmax", attention="self"), 0.2, generalization=True)
    for name in ["estimation_error", "standard_error", "layer_errors", "error_matrix", "generalization_error", "status"]:
        assert np.array_equal(point[name], getattr(curve, name)[0]), name
    assert curve.estimation_error[0] == pytest.approx(0.495869, abs=1e-5)
    causal = bayesaim.thresholds(BILINEAR, bayesaim.make_channel("softmax", tokens=4, attention="causal"))
    assert causal.strong_recovery == pytest.approx(0.75 / 6)


@pytest.mark.parametrize("attention", ["self", "causal"])
def test_own_arrays_are_fitted_and_predicted(attention):
    """Attention of a layer computed in numpy: S is found up to the error that theory says, S^T is not."""
    rng = np.random.default_rng(1)
    d, tokens, n = 60, 3, 1000
    w_q, w_k = rng.standard_normal((2, d, d // 2))
    s = w_q @ w_k.T / np.sqrt(d // 2 * d)
    x = rng.standard_normal((n + 500, tokens, d))
    h = (np.einsum("nai,ij,nbj->nab", x, s, x) - np.trace(s) * np.eye(tokens)) / np.sqrt(d)
    if attention == "causal":
        h[:, np.triu(np.ones((tokens, tokens), bool), 1)] = -np.inf
    y = np.exp(h) / np.exp(h).sum(axis=2, keepdims=True)
    with np.errstate(divide="ignore"):
        data = bayesaim.Dataset(x[:n], np.log(y[:n]), weights=s)
    channel = bayesaim.make_channel("softmax", tokens=tokens, attention=attention)
    result = bayesaim.amp(data, BILINEAR, channel, max_iterations=60)
    assert result.error < 1e-2  # alpha = 0.28, recovery is at 0.125 and 0.25
    assert np.sum((result.estimate.T - s) ** 2) / d > 1
    assert result.error_matrix.shape == (2, 2)
    prediction = bayesaim.predict(x[n:], result, channel)
    assert np.sum((prediction.bayes_optimal - y[n:]) ** 2) / 500 < 1e-2
    again = bayesaim.predict(x[n:], s, channel, error=0.0)
    assert np.allclose(again.plug_in, y[n:], atol=1e-10)


def test_gradient_descent_learns_both_factors():
    channel = bayesaim.make_channel("softmax", attention="self")
    data = bayesaim.generate(BILINEAR, channel, dim=30, alpha=0.8, seed=2)
    result = bayesaim.gradient_descent(data, channel, width=0.5, starts=2, steps=600)
    assert result.averaged_errors[-1] < 0.05
    assert result.descents[0].weights.shape == (30, 30)
    assert np.allclose(result.descents[0].estimate, result.descents[0].weights[:, :15] @ result.descents[0].weights[:, 15:].T / np.sqrt(450))

# SPDX-License-Identifier: MIT
"""Fits of arrays of which little is known."""
import bayesaim
import numpy as np
import pytest


def layer(n, d, tokens, rank, seed, causal=False, bias=0.5, mean=0.0):
    """Attention as a transformer computes it: logits q.k/sqrt(rank), biases, no subtraction of a trace."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, tokens, d)) + mean * rng.standard_normal(d)
    w_q, w_k = rng.standard_normal((2, d, rank)) / np.sqrt(d)
    b_q, b_k = bias * rng.standard_normal((2, rank))
    logits = np.einsum("nar,nbr->nab", x @ w_q + b_q, x @ w_k + b_k) / np.sqrt(rank)
    if causal:
        logits[:, np.triu(np.ones((tokens, tokens), bool), 1)] = -np.inf
    y = np.exp(logits - logits.max(axis=2, keepdims=True))
    return x, y / y.sum(axis=2, keepdims=True), w_q @ w_k.T * np.sqrt(d / rank)


def difference(estimate, truth):
    return np.linalg.norm(estimate - truth) / np.linalg.norm(truth)


@pytest.mark.parametrize("attention", ["self", "causal"])
def test_reads_a_head(attention):
    """Recovery is at 32 (self) and 64 (causal) sequences; the transpose, or S without the biases, is not the answer."""
    x, y, s = layer(128, 64, 8, 16, seed=1, causal=attention == "causal")
    result = bayesaim.fit(x, y, attention=attention, prior="bilinear")
    assert difference(result.estimate, s) < 1e-3
    assert difference(result.estimate.T, s) > 1
    assert result.fits and result.verdict == "fits"
    assert result.learned["width"] == pytest.approx(0.25, abs=0.06)


def test_the_fit_is_the_layer():
    """Its logits are those of the layer up to a number for each row, and predictions its outputs, of other tokens too."""
    x, y, _ = layer(160, 64, 8, 16, seed=3, mean=0.5)
    result = bayesaim.fit(x[:128], y[:128], attention="self", prior="bilinear")
    new = x[128:]
    logits = np.einsum("nai,ij,nbj->nab", new, result.estimate, new) / 8 + (new @ result.key_term / 8)[:, None, :]
    logits += result.diagonal_term * np.eye(8)
    found = np.exp(logits - logits.max(axis=2, keepdims=True))
    assert np.abs(found / found.sum(axis=2, keepdims=True) - y[128:]).max() < 2e-3
    channel = bayesaim.make_channel("softmax", tokens=8, attention="self")
    assert np.abs(bayesaim.predict(new, result, channel).plug_in - y[128:]).max() < 2e-3


def test_too_few_sequences_say_so():
    x, y, s = layer(64, 64, 8, 16, seed=1, causal=True)
    with pytest.warns(bayesaim.ConvergenceWarning):
        result = bayesaim.fit(x, y, attention="causal", prior="bilinear", max_iterations=100)
    assert difference(result.estimate, s) > 0.1
    assert not result.fits


def test_tokens_with_a_mean_are_made_white():
    x, y, s = layer(160, 64, 8, 16, seed=2, mean=0.7)
    result = bayesaim.fit(x, y, attention="self", prior="bilinear")
    assert result.tokens_whitened and abs(result.token_whiteness) > 10
    assert difference(result.estimate, s) < 2e-3


def test_finds_beta_and_the_law(tmp_path):
    """Softmax sees beta S: with weights whose scale is known, beta is what the scale is."""
    data = bayesaim.generate(bayesaim.Wishart(0.5), bayesaim.Softmax(2, beta=2.5), dim=80, alpha=0.14, seed=4)
    result = bayesaim.fit(data.tokens, log_outputs=data.outputs, prior="wishart", beta="learn", weights=data.weights)
    assert result.learned["beta"] == pytest.approx(2.5, rel=0.06)
    assert result.learned["width"] == pytest.approx(0.5, abs=0.1)
    known = bayesaim.amp(data, bayesaim.Wishart(0.5), bayesaim.Softmax(2, beta=2.5))
    assert np.sum((result.estimate - data.weights) ** 2) / 80 < 1.1 * known.error
    chosen = bayesaim.fit(data.tokens, log_outputs=data.outputs)
    assert [one["law"] for one in chosen.candidates] == ["weights", "gaussian", "smooth", "fine"]
    assert chosen.learned["law"] == "weights"


def test_a_given_prior_gets_a_verdict():
    data = bayesaim.generate(bayesaim.Wishart(0.5), bayesaim.Softmax(2), dim=80, alpha=0.14, seed=4)
    right = bayesaim.fit(data.tokens, np.exp(data.outputs), prior=bayesaim.Wishart(0.5), weights=data.weights)
    wrong = bayesaim.fit(data.tokens, np.exp(data.outputs), prior=bayesaim.Wishart(2.0), weights=data.weights)
    assert right.fits and right.learned == {}
    assert not wrong.fits and "prior learn" in wrong.verdict
    assert right.error < wrong.error


def test_bad_arguments_are_told():
    x, y, _ = layer(100, 10, 3, 4, seed=1)
    for message, call in {
        "outputs or log_outputs": lambda: bayesaim.fit(x),
        "must be probabilities": lambda: bayesaim.fit(x, -y),
        "cannot be combined with attention": lambda: bayesaim.fit(x, y, prior="bilinear"),
        "holdout|held-out": lambda: bayesaim.fit(x[:40], y[:40], attention="self"),
        "a tenth of the dimension": lambda: bayesaim.fit(np.ones((1, 3, 20)), y[:1], attention="self"),
        "different from sample to sample": lambda: bayesaim.fit(x, np.repeat(y[:1], 100, axis=0), attention="self"),
        "beta 'learn' needs": lambda: bayesaim.fit(x, y, attention="self", prior="learn", beta="learn"),
        "label_noise applies only": lambda: bayesaim.fit(x, y, attention="self", label_noise="learn"),
        "finite": lambda: bayesaim.fit(x * np.nan, y, attention="self"),
    }.items():
        with pytest.raises(ValueError, match=message):
            call()

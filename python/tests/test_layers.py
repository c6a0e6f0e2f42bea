# SPDX-License-Identifier: MIT
"""Several layers and heads."""
import bayesaim
import numpy as np
import pytest
from bayesaim import layers

DEEP = ["--channel", "deep-softmax", "--layers", 2, "--width", "0.4,0.8", "--format", "json", "--quiet"]


@pytest.fixture
def priors():
    return [bayesaim.Wishart(0.4), bayesaim.Wishart(0.8)]


@pytest.fixture
def channel():
    return bayesaim.DeepAttention(layers=2)


def test_theory_is_that_of_the_program(program, priors, channel):
    (point,) = program("theory", *DEEP, "--alpha", 0.2, "--integration-points", 16, "--seed", 3)["points"]
    curve = bayesaim.theory(priors, channel, 0.2, generalization=True, integration_points=16, seed=3)
    for name in ["alpha", "estimation_error", "standard_error", "layer_errors", "error_matrix", "overlap", "conjugate_overlap",
                 "generalization_error", "plugin_generalization_error", "status"]:  # fmt: skip
        assert np.array_equal(point[name], getattr(curve, name)[0]), name
    points = program("theory", *DEEP, "--alpha", 0.2, "--integration-points", 16, "--trajectory", 2)["points"]
    mine = bayesaim.trajectory(priors, channel, 0.2, 2, integration_points=16)
    assert np.array_equal([point["error_matrix"] for point in points], mine)
    assert program("threshold", *DEEP)["strong_recovery"] == bayesaim.thresholds(priors, channel).strong_recovery


def test_amp_is_that_of_the_program(program, priors, channel):
    (point,) = program("amp", *DEEP, "--alpha", 0.5, "--dim", 20, "--seed", 2, "--iterations", 8, status=(0, 2))["points"]
    data = bayesaim.generate(priors, channel, dim=20, alpha=0.5, seed=2)
    results = [bayesaim.amp(data, priors, channel, max_iterations=8, threads=threads) for threads in (1, 3)]
    assert np.array_equal(results[0].estimates, results[1].estimates)
    assert list(np.diag(results[0].error_matrix)) == point["layer_errors"]
    assert (results[0].iterations, results[0].status) == (point["iterations"], point["status"])
    assert np.array_equal(results[0].true_errors[-1], results[0].error_matrix)


def test_files_go_both_ways(program, priors, channel, tmp_path):
    theirs, mine = tmp_path / "theirs.h5", tmp_path / "mine.h5"
    program("generate", *DEEP[:6], "--dim", 20, "--alpha", 0.4, "--seed", 3, "--output", theirs, "--quiet")
    data = bayesaim.generate(priors, channel, dim=20, alpha=0.4, seed=3)
    data.save(mine, priors, channel)
    for file in (theirs, mine):
        for name, value in data.to_dict().items():
            assert np.array_equal(value, getattr(bayesaim.read_dataset(file, channel), name)), name
    options = ["--output", tmp_path / "estimate.h5", "--iterations", 5, "--format", "json", "--quiet"]
    (fit,) = program("fit", mine, *options, status=(0, 2))["points"]
    assert fit["measured_error"] == bayesaim.amp(data, priors, channel, max_iterations=5).error


def test_heads_are_those_of_the_program(program):
    options = ["--channel", "multi-head", "--heads", 3, "--width", 0.5, "--format", "json", "--quiet"]
    prior, softmax = bayesaim.MultiHead(heads=3, width=0.5), bayesaim.Softmax(2)
    (point,) = program("theory", *options, "--alpha", 0.1)["points"]
    assert point["estimation_error"] == bayesaim.theory(prior, softmax, 0.1).estimation_error[0]
    (point,) = program("amp", *options, "--alpha", 0.1, "--dim", 20, "--seed", 1, status=(0, 2))["points"]
    data = bayesaim.generate(prior, softmax, dim=20, alpha=0.1, seed=1)
    assert point["mean_error"] == bayesaim.amp(data, prior, softmax).error


def test_outputs_are_those_of_a_network_run_on_tokens(priors, channel):
    data = bayesaim.generate(priors, channel, dim=20, alpha=0.1, seed=4)
    assert data.weights.shape == (2, 20, 20)
    encoded = layers.encode(data.tokens, data.weights)
    np.testing.assert_allclose(encoded.attention[:, -1], np.exp(data.outputs), rtol=1e-10)
    assert np.array_equal(layers.encode(data.tokens[3], data.weights).tokens, encoded.tokens[3])
    np.testing.assert_allclose(encoded.tokens[:, 0], data.tokens + encoded.attention[:, 0] @ data.tokens, rtol=1e-12)
    sequence = bayesaim.generate(priors, bayesaim.DeepSequence(), dim=20, alpha=0.1, seed=4)
    np.testing.assert_allclose(sequence.outputs @ sequence.tokens, encoded.read_out[:, -1], rtol=1e-9, atol=1e-9)
    three = bayesaim.generate([bayesaim.Wishart(0.5)] * 3, bayesaim.DeepSequence(layers=3), dim=20, alpha=0.05, seed=4)
    encoded = layers.encode(three.tokens, three.weights)
    np.testing.assert_allclose(three.outputs @ three.tokens, encoded.read_out[:, -1], rtol=1e-9, atol=1e-9)
    index = data.attention_indices(data.weights)
    assert np.array_equal(index[:, 3:], data.attention_indices(data.weights[1]))
    assert np.array_equal(channel.draw(index), data.outputs.reshape(-1, 4))


def test_mean_logits_of_heads_are_one_layer(data):
    heads = [bayesaim.Wishart(0.5).sample(30, index=m) for m in range(3)]
    logits = layers.multi_head_attention(data.tokens, heads, beta=2)
    one = layers.encode(data.tokens, np.mean(heads, axis=0)[None], beta=2).attention[:, 0]
    np.testing.assert_allclose(logits, one, rtol=1e-10)
    mean = layers.multi_head_attention(data.tokens, heads, beta=2, averaging="attention")
    assert np.abs(mean - logits).max() > 0.1


def test_predictions_have_the_error_that_theory_says(channel):
    prior = bayesaim.Wishart(0.5)
    data, test = (bayesaim.generate(prior, channel, dim=70, alpha=0.15, seed=1, test=test) for test in (False, True))
    result = bayesaim.amp(data, prior, channel)
    theory = bayesaim.theory(prior, channel, 0.15, generalization=True, integration_points=32)
    assert result.error == pytest.approx(theory.estimation_error[0], rel=0.2)  # finite size
    prediction = bayesaim.predict(test, result, channel)
    measured = ((prediction.bayes_optimal - np.exp(test.outputs)) ** 2).sum(axis=(1, 2)).mean()
    assert measured == pytest.approx(theory.generalization_error[0], rel=0.2)
    plug_in = ((prediction.plug_in - np.exp(test.outputs)) ** 2).sum(axis=(1, 2)).mean()
    assert measured < plug_in


def test_joint_denoisers_reach_their_covariance():
    dim, delta = 300, np.array([[0.5, 0.1], [0.1, 0.4]])
    priors = [bayesaim.Wishart(0.5), bayesaim.Wigner()]
    s = np.array([prior.sample(dim, seed=l) for l, prior in enumerate(priors)])
    noise = np.array([bayesaim.goe(dim, seed=l) for l in range(2)])
    noisy = s + np.einsum("lk,kij->lij", np.linalg.cholesky(delta), noise)
    expected = layers.covariance(priors, np.linalg.inv(delta))
    polynomial = layers.polynomial(priors, delta, 4, noisy=noisy)
    for estimates in (layers.denoise(priors, noisy, delta).estimates, polynomial.estimates):
        measured = np.einsum("lij,kij->lk", estimates - s, estimates - s) / dim
        np.testing.assert_allclose(measured, expected, atol=0.01)  # finite size; without the coupling 0.04 in C_12
    np.testing.assert_allclose(polynomial.errors[-1], expected, atol=0.005)
    alone = bayesaim.denoise(priors[0], noisy[0], 0.5).estimate
    np.testing.assert_allclose(layers.denoise(priors[0], noisy[:1], 0.5).estimates[0], alone, atol=1e-12)
    assert layers.denoise(priors, noisy, delta, method="combination").method == "combination"


def test_free_moments_are_those_of_large_matrices():
    prior, delta, dim = bayesaim.Wishart(0.5), [[0.5, 0.1], [0.1, 0.4]], 800
    np.testing.assert_allclose(layers.free_cumulants(prior, 5), 0.5 ** (1 - np.arange(1, 6) / 2), rtol=1e-10)
    moments = layers.FreeMoments(prior, delta, longest=4)
    noise = [bayesaim.goe(dim, seed=l) for l in range(2)]
    root = np.linalg.cholesky(delta)
    s = [prior.sample(dim, seed=l) - 0.5**0.5 * np.eye(dim) for l in range(2)]
    x = [s[l] + root[l, 0] * noise[0] + root[l, 1] * noise[1] for l in range(2)]
    assert np.trace(x[0] @ x[1] @ x[0] @ x[1]) / dim == pytest.approx(moments.moment([0, 1, 0, 1]), abs=0.02)
    assert np.trace(x[0] @ x[0] @ x[1] @ x[1]) / dim == pytest.approx(moments.moment([0, 0, 1, 1]), abs=0.08)
    assert np.trace(s[0] @ x[0]) / dim == pytest.approx(moments.signal_moment(0, [0]), abs=0.02)
    assert moments.divergence(0, [0, 1, 0]) == pytest.approx(2 * moments.moment([1, 0]))


def test_growth_rate_is_one_at_the_threshold(channel):
    prior = bayesaim.Wishart(0.5)
    threshold = bayesaim.thresholds(prior, channel).strong_recovery
    assert threshold == pytest.approx(0.375, rel=1e-14)
    assert layers.recovery_growth_rate(prior, channel, threshold, integration_points=32) == pytest.approx(1, abs=0.05)


def test_starts(priors, channel):
    data = bayesaim.generate(priors, channel, dim=20, alpha=0.5, seed=3)
    draws = [prior.sample(20, seed=3, index=2 + l) for l, prior in enumerate(priors)]  # the teacher has 0 and 1
    error = 2 * np.diag([prior.law().variance() for prior in priors])
    first = bayesaim.amp(data, priors, channel, initial="prior", seed=3, max_iterations=1)
    again = bayesaim.amp(data, priors, channel, initial=draws, initial_error=error, max_iterations=1)
    assert np.array_equal(first.estimates, again.estimates)
    informed = bayesaim.amp(data, priors, channel, initial="informed", max_iterations=1)
    assert informed.error < 0.1 * first.error
    unknown = bayesaim.Dataset(data.tokens, data.outputs)
    with pytest.raises(ValueError, match="initial must be mean, prior or a matrix where the weights are not known, got informed"):
        bayesaim.amp(unknown, priors, channel, initial="informed")
    result = bayesaim.amp(unknown, priors, channel, initial="prior", seed=3, max_iterations=1)
    assert np.array_equal(first.estimates, result.estimates) and result.error is None
    assert np.isnan(result.true_errors).all() and result.true_errors.shape == (1, 2, 2)


def test_response(priors, channel):
    data = bayesaim.generate(priors, channel, dim=20, alpha=0.5, seed=3)
    automatic, power, slope = (bayesaim.amp(data, priors, channel, response=name, max_iterations=3) for name in ("automatic", "power", "slope"))
    assert np.array_equal(automatic.estimates, slope.estimates)
    assert np.array_equal(power.responses, power.conjugate_overlaps)
    for qhat, a, noise in zip(slope.conjugate_overlaps, slope.responses, slope.noise_variances):
        np.testing.assert_allclose(a @ noise @ a, qhat, rtol=1e-8)


def test_score_is_the_gradient_of_log_z(channel):
    variance = np.array([[0.6, 0.1], [0.1, 0.5]])
    omega, step = np.array([[0.2, -0.4, 0.1, 0.3, 0.5, -0.2]]), 1e-3
    outputs = channel.draw(omega + 0.3)
    g, _ = channel.score(outputs, omega, variance)
    for column in (0, 4):
        shift = np.eye(6)[column] * step
        up, down = (channel.score(outputs, omega + sign * shift, variance)[1][0] for sign in (1, -1))
        assert g[0, column] == pytest.approx((up - down) / (2 * step), abs=1e-4)


def test_progress_and_stop(priors, channel):
    data = bayesaim.generate(priors, channel, dim=20, alpha=0.5)
    seen = []
    result = bayesaim.amp(data, priors, channel, progress=lambda *report: seen.append(report) or len(seen) < 3)
    assert (result.status, result.iterations, len(seen)) == ("stopped", 3, 3)
    curve = bayesaim.theory(priors, channel, [0.1, 0.2], integration_points=2, progress=lambda *_: False)
    assert list(curve.status)[1] == "stopped" and np.isnan(curve.error_matrix[1]).all()


def test_mistakes_are_named(priors, channel, data, softmax):
    two_layers = bayesaim.generate(priors, channel, dim=20, alpha=0.5)
    for call, kind, text in [
        (lambda: bayesaim.theory(priors * 2, channel, 0.1), ValueError, "prior must be one, or one for each of the 2 layers, got 4"),
        (lambda: bayesaim.theory("wishart", channel, 0.1), TypeError, "prior must be a Prior such as Wishart(0.5), or a list of one for each layer, got str"),
        (lambda: bayesaim.theory(priors, softmax, 0.1), ValueError, "prior must be one, got 2"),
        (lambda: bayesaim.theory(priors, channel, 0.1, method="monotone"), ValueError, "method monotone is only available for one layer"),
        (lambda: bayesaim.amp(two_layers, priors, channel, initial=np.eye(20)), ValueError, "number of initial estimates must be of size 2, got 1"),
        (lambda: bayesaim.theory(priors, channel, -1), ValueError, "alpha must be non-negative"),
        (lambda: bayesaim.amp(data, priors, channel), ValueError, "layers of the channel must be of size 1, got 2"),
        (lambda: bayesaim.amp(two_layers, priors[0], softmax), ValueError, "layers of the channel must be of size 2, got 1"),
        (lambda: bayesaim.DeepAttention(layers=9), ValueError, "layers must be between 2 and 8, got 9"),
        (lambda: layers.covariance(priors, np.eye(3)), ValueError, "one for each of the 3 layers, got 2"),
        (lambda: layers.covariance(priors[0], np.eye(9)), ValueError, "layers must be between 1 and 8, got 9"),
        (lambda: layers.covariance(priors, [[1, 2], [2, 1]]), ValueError, "precision must be without negative eigenvalues"),
        (lambda: layers.covariance(priors, [[1, np.nan], [np.nan, 1]]), ValueError, "precision must be finite"),
        (lambda: layers.denoise(priors, np.zeros((2, 3, 4)), np.eye(2)), ValueError, "noisy matrices must be square"),
        (lambda: layers.denoise(priors, None, np.eye(2)), TypeError, "noisy matrices must be an array of numbers, got None"),
        (lambda: layers.encode(np.zeros(3), np.zeros((1, 3, 3))), ValueError, "tokens must be (tokens, dimension)"),
        (lambda: layers.encode(np.zeros((2, 3)), np.zeros((1, 4, 4))), ValueError, "weights must be 3 x 3, got 4 x 4"),
        (lambda: layers.FreeMoments(priors, np.eye(2), 3).moment([2]), ValueError, "letter must be at most 1, got 2"),
        (lambda: bayesaim.predict(two_layers, np.zeros((2, 20, 20)), channel), TypeError, "error must be given where the estimate is not a result of AMP, got None"),
        (lambda: channel.score(np.zeros((1, 4)), np.zeros((1, 6)), 0), ValueError, "variance must be positive, got 0"),
        (lambda: two_layers.save("x.h5", priors[:1], channel), ValueError, "prior must be one, or one for each of the 2 layers"),
    ]:
        with pytest.raises(kind) as error:
            call()
        assert text in str(error.value) and "\n" not in str(error.value), error.value

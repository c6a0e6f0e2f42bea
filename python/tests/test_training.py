# SPDX-License-Identifier: MIT
"""What training reaches: theory, thresholds, runs, spectra, and arrays of one's own."""
import bayesaim
import numpy as np
import pytest
from test_arguments import raises

CURVE = [
    "alpha", "regularization", "estimation_error", "standard_error", "generalization_error", "training_loss", "zero_fraction",
    "overlap", "self_overlap", "trace", "objective", "noise_variance", "gain", "threshold", "iterations", "status",
]  # fmt: skip


@pytest.mark.parametrize(
    "channel, options, settings",
    [
        (bayesaim.Softmax(2), [], {}),
        (bayesaim.Softmax(2, beta=2), ["--beta", 2, "--loss", "cross-entropy"], {"loss": "cross-entropy"}),
        (bayesaim.Softmax(2), ["--loss", "row-logit", "--penalty", "frobenius"], {"loss": "row-logit", "penalty": "frobenius"}),
        (bayesaim.Linear(2, 0.5), ["--channel", "linear", "--label-noise", 0.5], {}),
        (
            bayesaim.Softmax(3),
            ["--tokens", 3, "--loss", "cross-entropy", "--integration-points", 16, "--seed", 5],
            {"loss": "cross-entropy", "integration_points": 16, "seed": 5},
        ),
    ],
)
def test_theory_is_that_of_the_program(program, prior, channel, options, settings):
    points = program(
        "theory", "--estimator", "erm", "--width", 0.5, "--alpha", "0.05,0.12", "--regularization", "0,0.05", "--format", "json", *options
    )["points"]  # fmt: skip
    curve = bayesaim.theory(prior, channel, [0.05, 0.12], estimator="erm", regularization=[0, 0.05], **settings)
    assert curve.estimation_error.shape == (2, 2)
    for name in CURVE:
        assert [point[name] for point in points] == list(getattr(curve, name).ravel()), name
    one = bayesaim.theory(prior, channel, "0.05,0.12", estimator="erm", regularization=0.05, threads=1, **settings)
    assert np.array_equal(one.estimation_error, curve.estimation_error[1])


def test_the_best_regularization(program, prior):
    channel = bayesaim.Linear(2, 0.5)
    options = ["--estimator", "erm", "--channel", "linear", "--label-noise", 0.5, "--width", 0.5]
    points = program("theory", *options, "--alpha", "0.1,0.4", "--regularization", "optimal", "--format", "json")["points"]
    curve = bayesaim.theory(prior, channel, [0.1, 0.4], estimator="erm", regularization="optimal")
    for name in CURVE:
        assert [point[name] for point in points] == list(getattr(curve, name)), name
    around = bayesaim.theory(prior, channel, 0.1, estimator="erm", regularization=curve.regularization[0] * np.array([0.8, 1, 1.25]))
    assert np.argmin(around.estimation_error.ravel()) == 1


def test_thresholds_and_phase_are_those_of_the_program(program, prior, softmax):
    answer = program("threshold", "--estimator", "erm", "--width", 0.5, "--format", "json")
    assert bayesaim.thresholds(prior, softmax, estimator="erm").to_dict() == {name: answer[name] for name in ("strong_recovery", "interpolation")}
    noisy = program("threshold", "--estimator", "erm", "--channel", "linear", "--label-noise", 0.5, "--width", "0.5,1", "--format", "json")["points"]
    family = bayesaim.threshold([prior, bayesaim.Wishart(1)], bayesaim.Linear(2, 0.5), estimator="erm")
    assert [one.interpolation for one in family] == [point["interpolation"] for point in noisy]
    assert bayesaim.thresholds(prior, softmax, estimator="erm", penalty="frobenius").strong_recovery == 0.25
    options = ["--estimator", "erm", "--regularization", 0, "--alpha", "0.05,0.2", "--width", "0.25,0.5"]
    points = program("phase", *options, "--format", "json")["points"]
    diagram = bayesaim.phase(softmax, "0.05,0.2", "0.25,0.5", estimator="erm", regularization=0)
    assert [point["estimation_error"] for point in points] == list(diagram.estimation_error.ravel())
    assert diagram.strong_recovery[1] == answer["strong_recovery"]


def test_the_interpolation_threshold_solves_the_published_equation(prior):
    """Corollary 3.2 of arXiv:2509.24914, with noise variance 2 nu of each index: M2 is int_(x>0) x^2 of S + delta Xi."""
    tokens, label_noise = 2, 0.5
    nu = tokens**2 * label_noise / (tokens * (tokens + 1))

    def second_moment(delta):
        spectrum = bayesaim.Spectrum(prior, delta**2)
        nodes, weights = np.polynomial.legendre.leggauss(400)
        total = 0.0
        for low, high in spectrum.edges:
            first = np.arccos(np.clip((low + high) / (high - low), -1, 1))  # where x is 0, or the lower edge
            angle = first + (np.pi - first) * (nodes + 1) / 2
            x = (low + high) / 2 - (high - low) / 2 * np.cos(angle)
            total += (np.pi - first) / 2 * (weights * x**2 * spectrum.density(x) * (high - low) / 2 * np.sin(angle)).sum()
        return total

    def slope(delta, step=1e-4):
        return (second_moment(delta + step) - second_moment(delta - step)) / (2 * step)

    def excess(delta):
        return second_moment(delta) - delta / 2 * slope(delta) - prior.law().second_moment() - nu

    last, delta, before = 2.0, 3.0, excess(2.0)
    for _ in range(7):  # secants
        now = excess(delta)
        last, delta, before = delta, delta - now * (delta - last) / (now - before), now
    published = slope(delta) / (2 * delta * tokens * (tokens + 1))  # linear outputs fix T(T+1)/2 numbers, softmax one less
    ours = bayesaim.thresholds(prior, bayesaim.Linear(tokens, label_noise), estimator="erm").interpolation
    assert published == pytest.approx(ours, rel=1e-6)  # finite differences


def test_runs_are_those_of_the_program(program, prior, softmax):
    points = program(
        "erm", "--width", 0.5, "--alpha", "0.1,0.12", "--regularization", "0.05,0.2", "--dim", 30, "--seed", 3, "--seeds", 4,
        "--test-samples", 200, "--format", "json", "--quiet",
    )["points"]  # fmt: skip
    runs = bayesaim.erm(prior, softmax, [0.1, 0.12], regularization=[0.05, 0.2], dim=30, seed=3, seeds=4, test_samples=200)
    assert runs.mean_error.shape == (2, 2) and len(runs) == 2
    for name in points[0]:
        if name not in ("seconds_per_iteration", "dim"):
            assert [point[name] for point in points] == list(getattr(runs, name).ravel()), name
    (point,) = program(
        "erm", "--channel", "linear", "--label-noise", 0.5, "--width", 0.5, "--alpha", 0.2, "--regularization", "optimal",
        "--dim", 30, "--penalty", "frobenius", "--solver", "proximal-gradient", "--format", "json", "--quiet",
    )["points"]  # fmt: skip
    one = bayesaim.erm(
        prior, bayesaim.Linear(2, 0.5), 0.2, regularization="optimal", dim=30, penalty="frobenius", solver="proximal-gradient"
    )
    for name in ("regularization", "mean_error", "theory_error", "bayes_error", "training_loss", "kkt_residual", "iterations"):
        assert point[name] == getattr(one, name)[0], name
    assert one.generalization_error is None and np.isnan(one.standard_error[0]) and np.isnan(one.z_score[0])


def test_the_spectrum_is_that_of_the_program(program, prior):
    options = ["--channel", "linear", "--label-noise", 0.5, "--width", 0.5, "--alpha", 0.1, "--regularization", 0.2]
    answer = program("spectrum", "--estimator", "erm", *options, "--points", 50, "--format", "json")
    law = bayesaim.TrainedSpectrum(prior, bayesaim.Linear(2, 0.5), 0.1, regularization=0.2)
    x = np.array([point["x"] for point in answer["points"]])
    assert [point["density"] for point in answer["points"]] == list(law.density(x))
    assert [list(edge) for edge in law.edges] == answer["edges"]
    for name in CURVE:
        assert law.to_dict()[name] == answer[name] == getattr(law, name), name
    assert law.density(x.reshape(5, 10)).shape == (5, 10) and isinstance(law.density(1.0), float)
    assert "zeros: 0.591748" in repr(law)
    raises(ValueError, lambda: bayesaim.TrainedSpectrum(prior, bayesaim.Softmax(2), 0.25, regularization=0), "the spectrum is not available at exact recovery")
    raises(ValueError, lambda: bayesaim.TrainedSpectrum(prior, bayesaim.Softmax(2), 0.1, regularization=[0.1, 0.2]), "regularization must be one number here, or 'optimal', got 2 numbers")
    raises(ValueError, lambda: bayesaim.TrainedSpectrum(prior, bayesaim.Softmax(2), 0, regularization=0.1), "alpha must be positive")


def test_arrays_of_ones_own(prior, softmax):
    data = bayesaim.generate(prior, softmax, dim=30, alpha=0.15, seed=4)
    mine = bayesaim.train(data, channel=softmax, regularization=0.05)
    assert mine.status == "converged" and mine.kkt_residual <= 1e-8 and mine.loss == "logit"
    assert mine.iterations == len(mine.true_errors) == len(mine.zero_fractions)
    assert mine.error == pytest.approx(((mine.estimate - data.weights) ** 2).sum() / 30)
    assert np.array_equal(mine.estimate, mine.estimate.T)
    assert np.mean(np.linalg.eigvalsh(mine.estimate) < 1e-10) == pytest.approx(mine.zero_fraction)
    again = bayesaim.train(data.tokens, log_outputs=data.outputs, regularization=0.05, threads=3)
    assert np.array_equal(again.estimate, mine.estimate) and again.error is None and np.isnan(again.true_errors).all()
    rounded = bayesaim.train(data.tokens, np.exp(data.outputs), regularization=0.05, weights=data.weights)
    np.testing.assert_allclose(rounded.estimate, mine.estimate, atol=1e-6)
    slow = bayesaim.train(data, channel=softmax, regularization=0.05, solver="proximal-gradient")
    np.testing.assert_allclose(slow.estimate, mine.estimate, atol=1e-5)
    near = bayesaim.train(data, channel=softmax, regularization=0.05, initial=mine.estimate, solver="proximal-gradient")
    assert near.iterations < slow.iterations
    prediction = bayesaim.predict(data.tokens, mine, softmax)
    np.testing.assert_allclose(prediction.bayes_optimal, prediction.plug_in, atol=1e-12)
    np.testing.assert_allclose(prediction.plug_in, np.exp(data.outputs), atol=0.3)


def test_the_minimum_is_one_by_numpy_alone():
    """The objective written in numpy, at the minimum and next to it."""
    rng, dim, n, strength = np.random.default_rng(1), 8, 60, 0.1
    tokens, root = rng.standard_normal((n, 2, dim)), rng.standard_normal((dim, 4))
    truth = root @ root.T / np.sqrt(4 * dim)

    def logits(s):
        return (np.einsum("nai,ij,nbj->nab", tokens, s, tokens) - np.eye(2) * np.trace(s)) / np.sqrt(dim)

    def softmax(h):
        return np.exp(h) / np.exp(h).sum(axis=2, keepdims=True)

    attention, noisy = softmax(logits(truth)), logits(truth) + 0.1 * np.eye(2)

    def cross_entropy(s):
        return (attention * (np.log(attention) - np.log(softmax(logits(s))))).sum()

    def centred(s):
        e = logits(s) - logits(truth)
        return ((e - e.mean(axis=(1, 2), keepdims=True)) ** 2).sum() / 2

    cases = [
        (attention, "softmax", "cross-entropy", cross_entropy),
        (attention, "softmax", "logit", centred),
        (noisy, "linear", "square", lambda s: ((noisy - logits(s)) ** 2).sum() / 2),
    ]
    for outputs, channel, loss, value in cases:
        for penalty, weight in (("trace", np.trace), ("frobenius", lambda s: (s**2).sum() / 2)):
            found = bayesaim.train(tokens, outputs, channel, loss=loss, penalty=penalty, regularization=strength, tolerance=1e-10)
            least = value(found.estimate) + strength * dim * weight(found.estimate)
            assert found.training_loss == pytest.approx(value(found.estimate) / n), loss
            assert found.objective == pytest.approx(least / dim**2), loss
            for _ in range(20):
                step = 1e-3 * rng.standard_normal((dim, 3))
                other = found.estimate + step @ step.T if penalty == "trace" else found.estimate + step @ step[::-1].T
                other = (other + other.T) / 2
                assert value(other) + strength * dim * weight(other) >= least - 1e-9, (loss, penalty)


def test_what_cannot_be_trained(data, prior, softmax):
    def curve(**settings):
        return bayesaim.theory(prior, softmax, 0.1, **settings)

    raises(TypeError, lambda: curve(estimator="erm"), "regularization must be a number such as 0.1, an array, a grid or 'optimal', got None")
    raises(ValueError, lambda: curve(estimator="erm", regularization="best"), "regularization must be")
    raises(ValueError, lambda: curve(estimator="erm", regularization="0.1x"), "regularization must be absolute numbers, got numbers with x")
    raises(ValueError, lambda: curve(estimator="erm", regularization=-1), "regularization must be non-negative")
    raises(ValueError, lambda: curve(estimator="erm", regularization=[]), "regularization must have at least one value, got none")
    raises(ValueError, lambda: curve(estimator="ridge"), "estimator must be one of bayes, erm, got 'ridge'")
    raises(ValueError, lambda: curve(loss="logit"), "loss applies only to estimator 'erm' (estimator is 'bayes')")
    raises(ValueError, lambda: curve(regularization=0.1), "regularization applies only to estimator 'erm' (estimator is 'bayes')")
    raises(ValueError, lambda: curve(estimator="erm", regularization=0.1, branch="informed"), "branch applies only to estimator 'bayes' (estimator is 'erm')")
    raises(ValueError, lambda: curve(estimator="erm", regularization=0.1, loss="hinge"), "loss must be one of square, logit, row-logit, cross-entropy, got 'hinge'")
    raises(TypeError, lambda: curve(estimator="erm", regularization=0.1, loss=3), "loss must be a text, got int")
    raises(ValueError, lambda: curve(estimator="erm", regularization=0.1, penalty="nuclear"), "penalty must be one of trace, frobenius, got 'nuclear'")
    hardmax = bayesaim.Hardmax(2)
    raises(ValueError, lambda: bayesaim.theory(prior, hardmax, 0.1, estimator="erm", regularization=0.1), "must be linear or softmax, one layer of tied attention, got hardmax")
    raises(ValueError, lambda: bayesaim.thresholds(prior, softmax, estimator="erm", loss="square", penalty="l1"), "penalty must be one of")
    raises(ValueError, lambda: bayesaim.thresholds(prior, softmax, penalty="frobenius"), "penalty applies only to estimator 'erm'")
    raises(ValueError, lambda: bayesaim.phase(softmax, 0.1, 0.5, estimator="erm", regularization=[0, 1]), "regularization must be one number here, or 'optimal', got 2 numbers")
    raises(ValueError, lambda: bayesaim.erm(prior, softmax, 0.1, regularization=0), "regularization must be positive (0.001 is close to the limit 0+), got 0")
    raises(ValueError, lambda: bayesaim.erm(prior, softmax, 0, regularization=0.1), "alpha must be positive, got 0")
    raises(ValueError, lambda: bayesaim.erm(prior, hardmax, 0.1, regularization=0.1), "got hardmax")
    raises(ValueError, lambda: bayesaim.train(data, channel=softmax, regularization=0), "regularization must be positive")
    raises(TypeError, lambda: bayesaim.train(data, channel=softmax, regularization="optimal"), "regularization must be a number, got str")
    raises(ValueError, lambda: bayesaim.train(data, channel=softmax, regularization=0.1, damping=1), "damping must be below 1, got 1")
    raises(ValueError, lambda: bayesaim.train(data, channel=softmax, regularization=0.1, solver="lbfgs"), "solver must be one of automatic, message-passing, proximal-gradient, got 'lbfgs'")
    raises(ValueError, lambda: bayesaim.train(data, channel="hardmax", regularization=0.1), "channel must be one of softmax, linear, got 'hardmax'")
    raises(ValueError, lambda: bayesaim.train(data, data.outputs, regularization=0.1), "outputs cannot be combined with a Dataset")
    raises(ValueError, lambda: bayesaim.train(data.tokens, regularization=0.1), "outputs or log_outputs must be given, one of them")
    raises(ValueError, lambda: bayesaim.train(data.tokens, data.outputs, regularization=0.1), "outputs must be probabilities")
    raises(ValueError, lambda: bayesaim.train(data.tokens, np.round(np.exp(data.outputs)), regularization=0.1), "output")
    raises(ValueError, lambda: bayesaim.train(data.tokens, log_outputs=data.outputs, channel="linear", regularization=0.1), "log_outputs applies only to channel 'softmax'")
    raises(ValueError, lambda: bayesaim.train(data, regularization=0.1, initial=np.eye(3)), "initial estimate must be of size 30, got 3")


def test_progress_and_stopping(prior, softmax, data):
    seen = []
    bayesaim.train(data, channel=softmax, regularization=0.2, progress=lambda *report: seen.append(report))
    assert [done for done, _, _ in seen] == list(range(1, len(seen) + 1)) and seen[0][1] == 5000 and "change" in seen[0][2]
    stopped = bayesaim.train(data, channel=softmax, regularization=0.2, progress=lambda done, *_: done < 3)
    assert stopped.status == "stopped" and stopped.iterations == 3
    done = []
    bayesaim.theory(prior, softmax, np.linspace(0.05, 0.15, 10), estimator="erm", regularization=[0, 0.1], progress=lambda now, total, _: done.append((now, total)))
    assert done[-1] == (20, 20) and done == sorted(done)
    curve = bayesaim.theory(prior, softmax, [0.05, 0.1, 0.15], estimator="erm", regularization=0.1, threads=1, progress=lambda now, *_: now < 2)
    assert list(curve.status) == ["converged", "converged", "stopped"] and np.isnan(curve.estimation_error[2])
    reports = []

    def first_only(done, total, text):
        reports.append((done, total, text))
        return done < 1.01

    runs = bayesaim.erm(prior, softmax, [0.1, 0.12], regularization=0.2, dim=12, seeds=1, progress=first_only)
    assert list(runs.status) == ["converged", "stopped"] and list(runs.seeds) == [1, 0]
    assert runs.mean_error[0] > 0 and np.isnan(runs.mean_error[1]) and runs.alpha[1] == 0.12
    assert reports[0][1] == 2 and "alpha 0.1, lambda 0.2, seed 0" in reports[0][2]

    def fail(*_):
        raise KeyError("mine")

    for run in (
        lambda: bayesaim.train(data, channel=softmax, regularization=0.2, progress=fail),
        lambda: bayesaim.theory(prior, softmax, [0.1, 0.2], estimator="erm", regularization=0.2, progress=fail),
        lambda: bayesaim.erm(prior, softmax, 0.1, regularization=0.2, dim=12, progress=fail),
    ):
        with pytest.raises(KeyError, match="mine"):
            run()


def test_a_run_that_did_not_converge_warns(prior, softmax, data):
    with pytest.warns(bayesaim.ConvergenceWarning, match="training did not converge: iteration limit after 2 iterations, KKT residual"):
        bayesaim.train(data, channel=softmax, regularization=0.05, max_iterations=2)
    with pytest.warns(bayesaim.ConvergenceWarning, match="1 of 1 points did not converge, the first at alpha 0.1, regularization 0.05: iteration limit"):
        bayesaim.erm(prior, softmax, 0.1, regularization=0.05, dim=12, max_iterations=2)


def test_priors_of_ones_own_can_be_teachers(softmax):
    class Mine(bayesaim.Prior):
        def spectrum(self):
            return [0, 1, 2], [0.5, 0.25, 0.25]

    curve = bayesaim.theory(Mine(), softmax, [0.05, 0.12], estimator="erm", regularization=[0, 0.1], threads=2)
    same = bayesaim.theory(bayesaim.UserSpectrum([0, 1, 2], [0.5, 0.25, 0.25]), softmax, [0.05, 0.12], estimator="erm", regularization=[0, 0.1])
    np.testing.assert_allclose(curve.estimation_error, same.estimation_error, rtol=1e-9)
    assert curve.estimation_error[0, 1] < curve.estimation_error[0, 0] < 1.25

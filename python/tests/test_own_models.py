# SPDX-License-Identifier: MIT
"""Channels and priors written in Python work in theory, data and AMP, and break no promise."""
import concurrent.futures
import gc
import time
import weakref

import bayesaim
import numpy as np
import pytest
from own_models import NoisyLinear, OneBit, PythonWigner, Semicircle, TwoLayers, TwoLayersInClosedForm, TwoLevels


def test_contracts_hold():
    assert bayesaim.testing.check_channel(OneBit()) == []
    assert bayesaim.testing.check_channel(bayesaim.Hardmax(2), prediction_samples=2000) == []
    assert bayesaim.testing.check_prior(TwoLevels(), dim=150, noise_variances=(1e-3, 1e3)) == []
    assert bayesaim.testing.check_prior(PythonWigner(), dim=150, noise_variances=(1e-2, 1e2)) == []


@pytest.mark.parametrize("channel", [TwoLayers, TwoLayersInClosedForm])
def test_contracts_hold_for_two_layers(channel):
    assert bayesaim.testing.check_channel(channel(), label_noise=True, prediction_samples=1000) == []


def test_two_layers_in_python(data):
    """Gaussian priors, C = (1 + qhat)^-1: sum and difference of the layers decouple, with errors 1/(1 + 2 x) each.

    qhat = x_+ (1, 1)(1, 1)' + x_- (1, -1)(1, -1)'; V along either is 4/(1 + 2 x).
    """
    channel, prior, alpha = TwoLayersInClosedForm(0.1), bayesaim.Wigner(), 0.5
    x = np.zeros(2)
    for _ in range(200):
        x = 4 * alpha * np.array([2, 1]) / (4 / (1 + 2 * x) + np.array([1, 2]) * 0.1)
    curve = bayesaim.theory(prior, channel, alpha)
    assert curve.estimation_error[0] == pytest.approx(np.sum(1 / (1 + 2 * x)), rel=1e-9)
    qhat = np.array([[x[0] + x[1], x[0] - x[1]], [x[0] - x[1], x[0] + x[1]]])
    np.testing.assert_allclose(curve.conjugate_overlap[0], qhat, rtol=1e-6)
    np.testing.assert_allclose(curve.error_matrix[0], np.linalg.inv(np.eye(2) + qhat), rtol=1e-6)
    np.testing.assert_allclose(curve.layer_errors[0], np.diag(curve.error_matrix[0]))
    sampled = bayesaim.theory(prior, TwoLayers(0.1), alpha, integration_points=32)
    assert sampled.standard_error[0] > 0
    assert sampled.estimation_error[0] == pytest.approx(curve.estimation_error[0], abs=4 * sampled.standard_error[0])
    assert bayesaim.thresholds(prior, channel).strong_recovery is None

    known = bayesaim.generate(prior, channel, dim=50, alpha=alpha, seed=1)
    result = bayesaim.amp(known, [prior, prior], channel)
    assert result.status == "converged" and result.estimate is None and result.estimates.shape == (2, 50, 50)
    assert result.error == pytest.approx(curve.estimation_error[0], rel=0.25)  # finite size: 0.19 here, 0.02 at d = 200
    assert (result.error, result.predicted_error) == (np.trace(result.error_matrix), np.trace(result.predicted_error_matrix))
    small = bayesaim.generate(prior, channel, dim=12, alpha=alpha, seed=1)
    # the slope by finite differences is that of the closed form
    estimates = [bayesaim.amp(small, prior, one, max_iterations=5).estimates for one in (channel, TwoLayers(0.1))]
    np.testing.assert_allclose(estimates[0], estimates[1], atol=1e-6)
    with pytest.raises(ValueError, match="^outputs must be symmetric$"):
        bayesaim.Dataset(data.tokens, data.outputs).check(channel)
    with pytest.raises(ValueError, match="layers must be between 1 and 8, got 9"):
        bayesaim.Channel(2, layers=9)


def test_mistakes_in_methods_of_several_layers_are_named():
    class Wrong(TwoLayers):
        def score_power(self, overlap, error):
            return 1.0

    with pytest.raises(ValueError, match="score power must be an array of 2 dimensions"):
        bayesaim.theory(bayesaim.Wigner(), Wrong(), 0.5)


def test_contracts_hold_for_a_sampled_information_beside_a_score_power_in_closed_form():
    class WithLogZ(NoisyLinear):
        def score(self, outputs, omega, variance):
            g, spread = super().score(outputs, omega, variance), variance + bayesaim.pair_scales(2) ** 2 * self.label_noise
            return g, -0.5 * np.sum(g**2 * spread + np.log(2 * np.pi * spread), axis=1)

    assert [line for line in bayesaim.testing.check_channel(WithLogZ(0.5)) if "information" in str(line)] == []


def test_a_prior_may_change_the_law_that_it_gave(softmax):
    class Changes(bayesaim.Prior):
        def set(self, atoms):
            self._law = bayesaim.AtomicLaw(*atoms)

        def law(self):
            return self._law

    prior = Changes()
    prior.set(([-1, 1], [0.3, 0.7]))
    first = bayesaim.theory(prior, softmax, 0.1).estimation_error[0]
    prior.set(([-1, 1], [0.5, 0.5]))
    gc.collect()
    assert bayesaim.theory(prior, softmax, 0.1).estimation_error[0] == first  # asked for once


def test_contracts_see_mistakes():
    class Wrong(OneBit):
        def score(self, outputs, omega, variance):
            g, log_z = super().score(outputs, omega, variance)
            return 1.5 * g, log_z

    lines = bayesaim.testing.check_channel(Wrong(), prediction_samples=1000)
    assert lines[0].startswith("score_is_gradient: score of sample 0, pair 0, is ")
    assert lines[0].endswith(" (the first of 15 alike)")  # five samples of three pairs
    assert [line.split(":")[0] for line in lines] == ["score_is_gradient", "information"]
    lines = bayesaim.testing.check_channel(NoisyLinear(0.1), label_noise=True, prediction_samples=1000)
    assert lines[0] == "score_is_gradient: score does not give a finite log Z, of which it should be the gradient"
    assert bayesaim.testing.check_channel(bayesaim.HardmaxAsPrinted())

    class Asymmetric(TwoLevels):
        def sample(self, dim, seed, index):
            return np.eye(dim)

    assert any(line.startswith("moments") for line in bayesaim.testing.check_prior(Asymmetric(), dim=50, draws=3))


def test_channel_in_python_is_the_channel_in_cpp(prior):
    mine, ours = NoisyLinear(0.1), bayesaim.Linear(2, 0.1)
    alphas = [0.1, 0.3]
    # the closed form of the score power makes it exact: the fixed point is to the tolerance, 1e-12
    errors = [bayesaim.theory(prior, channel, alphas).estimation_error for channel in (mine, ours)]
    np.testing.assert_allclose(errors[0], errors[1], rtol=1e-10)
    data = [bayesaim.generate(prior, channel, dim=20, alpha=0.3, seed=2) for channel in (mine, ours)]
    np.testing.assert_allclose(data[0].outputs, data[1].outputs, rtol=0, atol=1e-13)
    # at few samples ours would take the slope, which mine has by finite differences only
    results = [bayesaim.amp(one, prior, channel, max_iterations=20, response="power") for one, channel in zip(data, (mine, ours))]
    np.testing.assert_allclose(results[0].estimate, results[1].estimate, rtol=0, atol=1e-9)


def test_amp_reaches_the_error_of_state_evolution(prior):
    channel = OneBit()
    curve = bayesaim.theory(prior, channel, 0.5, generalization=True)
    assert 0 < curve.standard_error[0] < 0.02 * curve.estimation_error[0]
    data = bayesaim.generate(prior, channel, dim=80, alpha=0.5, seed=1)
    result = bayesaim.amp(data, prior, channel, damping=0.2)
    assert result.status == "converged"
    # finite size: order 1/d of the prior's variance
    assert result.error == pytest.approx(curve.estimation_error[0], rel=0.15)
    test = bayesaim.generate(prior, channel, dim=80, alpha=0.5, seed=1, test=True)
    prediction = bayesaim.predict(test, result, channel)
    measured = ((prediction.bayes_optimal - test.outputs) ** 2).sum(axis=(1, 2)).mean()
    assert measured == pytest.approx(curve.generalization_error[0], rel=0.15)


def test_bits_do_not_depend_on_threads(prior):
    channel = OneBit()
    curves = [bayesaim.theory(prior, channel, [0.5], threads=n, integration_points=16).estimation_error for n in (1, 3)]
    assert curves[0] == curves[1]
    data = bayesaim.generate(prior, channel, dim=20, alpha=1.0)
    estimates = [bayesaim.amp(data, prior, channel, max_iterations=5, threads=n).estimate for n in (1, 3)]
    assert np.array_equal(*estimates)


def test_priors_in_python(softmax):
    ours = bayesaim.UserSpectrum([-1, 1], [0.3, 0.7])
    assert bayesaim.mmse(TwoLevels(), 0.3) == bayesaim.mmse(ours, 0.3)
    assert np.array_equal(TwoLevels().sample(20, seed=3), ours.sample(20, seed=3))
    mine, alpha = PythonWigner(), 0.1
    expected = bayesaim.theory(bayesaim.Wigner(), softmax, alpha).estimation_error
    np.testing.assert_allclose(bayesaim.theory(mine, softmax, alpha).estimation_error, expected, rtol=1e-9)
    data = bayesaim.generate(mine, softmax, dim=80, alpha=alpha)
    assert bayesaim.amp(data, mine, softmax).error == pytest.approx(expected[0], rel=0.15)  # finite size
    assert repr(TwoLevels()) == "TwoLevels()" and TwoLevels().name() == "TwoLevels"


@pytest.mark.parametrize(
    "method, returned, text",
    [
        ("draw", lambda *_: None, "outputs drawn must be an array of numbers, got None"),
        ("draw", lambda _, index, *__: index, "outputs drawn must be of shape (n, 4)"),
        ("draw", lambda _, index, *__: np.zeros((1, 4)), "rows of the outputs drawn must be of size"),
        ("score", lambda _, outputs, *__: np.full((len(outputs), 3), np.nan), "score must be finite, got nan"),
        ("score", lambda _, outputs, *__: (outputs, 1, 2), "score must return g or (g, log_z)"),
        ("score_power", lambda *_: -1, "score power must be"),
        ("score_power", lambda *_: "x", "score power must be a number"),
        ("generalization", lambda *_: 1.0, "what generalization returns must be (Bayes-optimal, plug-in), got float"),
        ("information", lambda *_: "x", "what information returns must be a number or None, got str"),
    ],
)
def test_mistakes_in_methods_are_named(prior, method, returned, text):
    wrong = type("Wrong", (OneBit,), {method: returned})()
    with pytest.raises((ValueError, TypeError)) as error:
        bayesaim.theory(prior, wrong, 1.0, generalization=True, free_entropy=True, integration_points=2)
    assert text in str(error.value)


@pytest.mark.parametrize(
    "method, returned, text",
    [
        ("mean", lambda _: None, "mean of the law must be a number, got None"),
        ("stieltjes", lambda _, z: z, "what stieltjes returns must be (value, derivative), got complex"),
        ("centred_support", lambda _: (-2, 2), "what centred_support returns must be [(low, high), ..], got tuple"),
        ("log_potential", lambda _, z: "x", "log potential of the law must be a number, got str"),
    ],
)
def test_mistakes_in_laws_are_named(method, returned, text):
    wrong = type("Wrong", (Semicircle,), {method: returned})()
    with pytest.raises(TypeError) as error:
        bayesaim.prior_free_entropy(wrong, 1.0)
    assert str(error.value) == text
    with pytest.raises(TypeError, match="^a law needs a method variance$"):
        bayesaim.mmse(type("Empty", (bayesaim.SpectralLaw,), {})(), 1.0)


def test_what_methods_raise_comes_back(prior, softmax):
    class Raises(OneBit):
        def score(self, outputs, omega, variance):
            raise ZeroDivisionError("mine")

    class NoSpectrum(bayesaim.Prior):
        pass

    for threads in (1, 3):
        with pytest.raises(ZeroDivisionError, match="mine"):
            bayesaim.theory(prior, Raises(), [1.0], threads=threads)
        data = bayesaim.generate(prior, Raises(), dim=20, alpha=1)
        with pytest.raises(ZeroDivisionError, match="mine"):
            bayesaim.amp(data, prior, Raises(), threads=threads)
    with pytest.raises(TypeError, match="a prior needs a method spectrum, or law and sample"):
        bayesaim.theory(NoSpectrum(), softmax, 0.1)
    with pytest.raises(TypeError, match="a channel needs a method draw"):
        bayesaim.generate(prior, bayesaim.Channel(2), dim=5)


def test_arrays_may_be_kept(prior):
    kept = []

    class Keeps(OneBit):
        def score(self, outputs, omega, variance):
            kept.append((omega, omega.copy()))
            return super().score(outputs, omega, variance)

    bayesaim.theory(prior, Keeps(), 1.0, integration_points=2)
    gc.collect()
    assert len(kept) > 3 and all(np.array_equal(*pair) for pair in kept)


def test_a_law_is_asked_for_once(data, softmax):
    class Counted(PythonWigner):
        asked = 0

        def law(self):
            self.asked += 1
            return super().law()

    prior = Counted()
    bayesaim.theory(prior, softmax, 0.1)
    bayesaim.Spectrum(prior, 1)
    assert bayesaim.mmse(prior, 1) == pytest.approx(0.5)
    bayesaim.amp(data, prior, softmax, initial="prior", max_iterations=1)
    assert prior.asked == 1


def test_threads_that_ask_a_prior_at_once_get_one_law(softmax):
    class Slow(bayesaim.Prior):
        laws = []

        def law(self):
            time.sleep(0.05)  # lets the other threads in
            self.laws.append(weakref.ref(found := bayesaim.AtomicLaw([-1, 1])))
            return found

    mine = Slow()
    expected = bayesaim.theory(bayesaim.UserSpectrum([-1, 1]), softmax, 0.1).estimation_error[0]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        errors = list(pool.map(lambda _: bayesaim.theory(mine, softmax, 0.1).estimation_error[0], range(4)))
    assert errors == [expected] * 4
    gc.collect()
    assert len(Slow.laws) > 1 and sum(law() is not None for law in Slow.laws) == 1


def test_a_law_that_refers_to_its_prior_is_collected(softmax):
    class Selfish(Semicircle):
        pass

    class Cyclic(PythonWigner):
        def law(self):
            found = Selfish()
            found.prior = self
            return found

    mine = Cyclic()
    watched = weakref.ref(mine)
    assert bayesaim.mmse(mine, 1.0) == pytest.approx(0.5)
    del mine
    gc.collect()
    assert watched() is None


def test_models_are_not_kept_alive(prior, softmax):
    channel, mine = OneBit(), TwoLevels()
    watched = [weakref.ref(channel), weakref.ref(mine)]
    bayesaim.theory(mine, channel, 1.0, integration_points=2)
    spectrum = bayesaim.Spectrum(mine, 0.1)
    del channel, mine
    gc.collect()
    assert watched[0]() is None
    assert spectrum.density(1.0) > 0  # it keeps its prior
    del spectrum
    gc.collect()
    assert watched[1]() is None

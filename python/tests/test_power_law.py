# SPDX-License-Identifier: MIT
"""Priors with power-law spectra."""
import bayesaim
import numpy as np
import pytest


def test_samples_have_the_eigenvalues_of_the_law():
    prior = bayesaim.PowerLaw(1.5, width=0.5, cutoff=0.1)
    values = np.sort(np.linalg.eigvalsh(prior.sample(40, seed=1)))[::-1]
    x = (np.arange(20) + 0.5) / 40
    shape = (x + 0.1) ** -1.5
    assert np.allclose(values[:20] / values[0], shape / shape[0])
    assert np.allclose(values[20:], 0, atol=1e-12)
    assert prior.law().second_moment() == pytest.approx(1, rel=1e-13)
    assert np.allclose(bayesaim.PowerLaw(1.5, 0.5, 0.1, scale=2).sample(40, seed=1), 2 * prior.sample(40, seed=1))


def test_error_is_a_power_of_alpha():
    curve = bayesaim.theory(bayesaim.PowerLaw(1, cutoff=1e-6), bayesaim.Linear(2), [1e-4, 1e-3])
    assert np.log10(curve.estimation_error[0] / curve.estimation_error[1]) == pytest.approx(1, abs=0.04)


def test_names_and_parameters_are_those_of_the_program(program):
    prior = bayesaim.make_prior("power-law", exponent=1.2, cutoff=0.01, width=0.5)
    assert prior.parameters() == {"width": 0.5, "exponent": 1.2, "cutoff": 0.01}
    assert repr(prior) == repr(bayesaim.PowerLaw(1.2, 0.5, 0.01))
    assert "power-law" in bayesaim.prior_names()
    told = program("theory", "--prior", "power-law", "--exponent", 1.2, "--cutoff", 0.01, "--width", 0.5, "--alpha", 0.05, "--format", "json")
    assert bayesaim.theory(prior, bayesaim.Softmax(2), 0.05).estimation_error[0] == told["points"][0]["estimation_error"]


def test_bad_arguments():
    with pytest.raises(ValueError, match="exponent must be positive"):
        bayesaim.PowerLaw(0)
    with pytest.raises(ValueError, match="width must be at most 1 for a power law, got 2"):
        bayesaim.PowerLaw(1, 2)
    with pytest.raises(ValueError, match="cutoff applies only to prior power-law"):
        bayesaim.make_prior("wishart", cutoff=0.1)

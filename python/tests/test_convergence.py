# SPDX-License-Identifier: MIT
"""A computation that did not converge says so; one that did, or that the caller stopped, is silent."""
import warnings

import bayesaim
import numpy as np
import pytest


@pytest.fixture
def silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def warned(call, text):
    with pytest.warns(bayesaim.ConvergenceWarning) as caught:
        result = call()
    assert len(caught) == 1 and caught[0].filename == __file__
    assert text in str(caught[0].message), str(caught[0].message)
    return result


def test_theory_counts_the_points_and_names_the_first(prior):
    settings = dict(method="monotone", max_iterations=1)
    curve = warned(
        lambda: bayesaim.theory(prior, bayesaim.Hardmax(2), [0.5, 0.7, 1], **settings),
        "3 of 3 points did not converge, the first at alpha 0.5: iteration limit",
    )
    assert set(curve.status) == {"iteration limit"}


def test_amp_that_stops_early_warns(data, prior, softmax):
    result = warned(
        lambda: bayesaim.amp(data, prior, softmax, max_iterations=2),
        "AMP did not converge: iteration limit after 2 iterations; more iterations may help, or",
    )
    assert result.status == "iteration limit"


def test_amp_on_data_of_another_model_warns(prior):
    channel = bayesaim.Softmax(3)
    data = bayesaim.generate(prior, channel, dim=30, alpha=0.2, seed=1)
    shuffled = bayesaim.Dataset(data.tokens, data.outputs[np.random.default_rng(0).permutation(len(data))])
    advice = "iterations; the data do not look like this model, see docs/transformers.md"
    assert warned(lambda: bayesaim.amp(shuffled, prior, channel), advice).status == "diverged"


def test_a_descent_of_so_many_steps_is_silent(data, softmax, silent):
    assert bayesaim.gradient_descent(data, softmax, width=0.5, steps=5).status == "iteration limit"


def test_a_descent_that_misses_its_tolerance_warns(data, softmax):
    settings = dict(width=0.5, starts=2, steps=5, loss_tolerance=1e-30)
    warned(
        lambda: bayesaim.gradient_descent(data, softmax, **settings),
        "2 of 2 starts did not converge, the first is start 0: iteration limit",
    )


def test_a_descent_that_diverges_warns(prior):
    channel = bayesaim.Linear(2)
    data = bayesaim.generate(prior, channel, dim=20)
    settings = dict(width=0.5, steps=50, optimizer="gd", learning_rate=1e9)
    call = lambda: bayesaim.gradient_descent(data, channel, **settings)  # noqa: E731
    assert warned(call, "1 of 1 starts did not converge, the first is start 0: diverged").status == "diverged"


def test_a_sweep_names_its_first_lost_point(tmp_path):
    study = bayesaim.parse_experiment('estimator = "amp"\nwidth = 0.5\nalpha = 0.1\ndim = 12\nseeds = 2\nmax_iterations = 2')
    text = "2 of 2 points did not converge, the first is amp, alpha 0.1, width 0.5, dim 12, seed 0: iteration limit"
    warned(lambda: bayesaim.sweep(study, tmp_path), text)


def test_what_converged_is_silent(data, prior, softmax, tmp_path, silent):
    assert set(bayesaim.theory(prior, softmax, [0.1, 0.3]).status) == {"converged", "exact recovery"}
    assert bayesaim.amp(bayesaim.generate(prior, softmax, dim=60, alpha=0.12, seed=1), prior, softmax).status == "converged"
    bayesaim.sweep(bayesaim.parse_experiment('estimator = "theory"\nalpha = "0.1,0.2"'), tmp_path)


def test_what_the_caller_stopped_is_silent(data, prior, softmax, silent):
    stop = lambda *_: False  # noqa: E731
    assert bayesaim.amp(data, prior, softmax, progress=stop).status == "stopped"
    assert "stopped" in bayesaim.theory(prior, softmax, np.linspace(0.01, 0.1, 50), progress=stop, threads=1).status

# SPDX-License-Identifier: MIT
"""Grids as text, phase diagrams, families of thresholds, data of n samples."""
import bayesaim
import numpy as np
import pytest
from test_arguments import raises


def test_grids_are_those_of_the_command_line(program, prior, softmax):
    threshold = bayesaim.thresholds(prior, softmax).strong_recovery
    for text, values in [
        ("0.1", [0.1]),
        ("0.1,0.2", [0.1, 0.2]),
        ("0.1:0.3:3", np.linspace(0.1, 0.3, 3)),
        ("log:0.1:10:5", np.geomspace(0.1, 10, 5)),
        ("0.1x:1.1x:11", threshold * np.linspace(0.1, 1.1, 11)),
    ]:
        curve = bayesaim.theory(prior, softmax, text)
        np.testing.assert_allclose(curve.alpha, values, rtol=1e-14)
        points = program("theory", "--width", 0.5, "--alpha", text, "--format", "json")["points"]
        for name in ("alpha", "estimation_error"):
            assert [point[name] for point in points] == list(getattr(curve, name)), (text, name)
    small = bayesaim.theory(bayesaim.Wishart(), softmax, "0.5x", limit="small-width").alpha
    assert list(small) == [point["alpha"] for point in program("theory", "--limit", "small-width", "--alpha", "0.5x", "--format", "json")["points"]]


def test_without_data_the_error_is_that_of_the_prior(prior, softmax):
    for alpha in ("0:0.2:3", np.linspace(0, 0.2, 3)):
        curve = bayesaim.theory(prior, softmax, alpha, generalization=True)
        assert curve.alpha[0] == 0 and curve.status[0] == "converged"
        assert curve.estimation_error[0] == pytest.approx(prior.law().variance())
        assert curve.estimation_error[1] < curve.estimation_error[0]
    assert bayesaim.phase(softmax, "0,0.1", 0.5).estimation_error[0, 0] == curve.estimation_error[0]


def test_a_sampled_generalisation_error_has_its_standard_error(prior):
    curve = bayesaim.theory(prior, bayesaim.HardmaxSampled(3), 0.2, generalization=True, integration_points=8)
    assert 0 < curve.generalization_standard_error[0] < 0.1 * curve.generalization_error[0]
    same = bayesaim.theory(
        prior, bayesaim.HardmaxSampled(3), 0.2, branch="uninformed", generalization=True, integration_points=8
    )
    assert same.generalization_standard_error[0] == curve.generalization_standard_error[0]


def test_grids_that_are_none(prior, softmax):
    raises(ValueError, lambda: bayesaim.theory(prior, softmax, "many"), "alpha must be")
    raises(ValueError, lambda: bayesaim.theory(prior, softmax, "0.2,0.1"), "alpha must be increasing, got '0.2,0.1'")
    raises(ValueError, lambda: bayesaim.theory(prior, bayesaim.Hardmax(2), "0.1x"), "alpha must be absolute, because this channel has no strong-recovery threshold")
    raises(ValueError, lambda: bayesaim.phase(softmax, 0.1, "0.5x"), "width must be absolute numbers, got numbers with x")


def test_phase_is_that_of_the_program(program, softmax):
    for alpha, width in [("0.05:0.2:4", "0.2,0.5,1"), ("0.2x,0.6x", "0.3,0.9")]:
        diagram = bayesaim.phase(softmax, alpha, width)
        points = program("phase", "--alpha", alpha, "--widths", width, "--format", "json")["points"]
        assert diagram.estimation_error.shape == diagram.alpha.shape == diagram.status.shape
        for name in ("alpha", "estimation_error", "status"):
            assert [point[name] for point in points] == list(getattr(diagram, name).ravel()), name
        assert [point["width"] for point in points] == list(np.repeat(diagram.width, diagram.alpha.shape[1]))


def test_phase_diagram(softmax):
    widths = [0.25, 0.5]
    diagram = bayesaim.phase(softmax, [0.05, 0.1, 0.3], widths)
    for row, width in enumerate(widths):
        curve = bayesaim.theory(bayesaim.Wishart(width), softmax, [0.05, 0.1, 0.3])
        np.testing.assert_allclose(diagram.estimation_error[row], curve.estimation_error, rtol=1e-12, atol=0)
        assert diagram.strong_recovery[row] == bayesaim.thresholds(bayesaim.Wishart(width), softmax).strong_recovery
    assert not diagram.standard_error.any()
    assert "PhaseDiagram\n" in repr(diagram) and "status: converged (4), exact recovery (2)" in repr(diagram)
    assert diagram.to_dict()["status"].shape == (2, 3)
    sampled = bayesaim.phase(bayesaim.HardmaxSampled(3), 0.5, widths, integration_points=2)
    assert (sampled.standard_error > 0).all() and np.isnan(sampled.strong_recovery).all()


def test_phase_of_other_priors(softmax):
    two_heads = bayesaim.phase(softmax, 0.1, 0.5, prior=lambda width: bayesaim.MultiHead(2, width))
    assert two_heads.estimation_error[0, 0] == bayesaim.theory(bayesaim.MultiHead(2, 0.5), softmax, 0.1).estimation_error[0]
    assert bayesaim.phase(softmax, 0.1, 0.5, prior=bayesaim.Wishart).to_dict() == bayesaim.phase(softmax, 0.1, 0.5).to_dict()
    raises(ValueError, lambda: bayesaim.phase(softmax, 0.1, 0.5, prior="wigner"), "width applies only to prior wishart")
    raises(TypeError, lambda: bayesaim.phase(softmax, 0.1, 0.5, prior=lambda width: width), "prior must be a Prior")
    raises(TypeError, lambda: bayesaim.phase("softmax", 0.1, 0.5), "channel must be a Channel")
    raises(ValueError, lambda: bayesaim.phase(softmax, 0.1, []), "width must have at least one value")


def test_phase_reports_all_points(softmax):
    seen = []
    bayesaim.phase(softmax, "0.05:0.1:4", "0.2,0.5,1", progress=lambda *report: seen.append(report))
    assert seen[-1][:2] == (12, 12)


def test_thresholds_of_a_family(prior, softmax):
    widths = [0.25, 0.5, 1]
    family = bayesaim.thresholds([bayesaim.Wishart(width) for width in widths], softmax)
    assert [one.strong_recovery for one in family] == pytest.approx([(width - width**2 / 2) / 2 for width in widths])
    assert [one.to_dict() for one in bayesaim.thresholds((prior,), softmax)] == [bayesaim.thresholds(prior, softmax).to_dict()]
    two = bayesaim.DeepAttention(2)  # the layers of one network
    assert isinstance(bayesaim.thresholds([prior, prior], two), bayesaim.Thresholds)
    assert bayesaim.threshold is bayesaim.thresholds
    raises(ValueError, lambda: bayesaim.thresholds([], softmax), "prior must be one, got 0")
    raises(TypeError, lambda: bayesaim.thresholds([prior, 0.5], softmax), "prior must be a Prior such as Wishart(0.5)")


def test_samples_are_those_of_the_program(prior, softmax, program):
    printed = program("samples", "--width", 0.5, "--dim", 300, "--target-error", 0.1, "--format", "json")
    found = bayesaim.samples(prior, softmax, target_error=0.1, dim=300)
    assert found.to_dict() == {name: printed[name] for name in ("alpha", "samples", "estimation_error", "generalization_error")}
    wide = bayesaim.samples(bayesaim.Bilinear(0.5, aspect=2), bayesaim.make_channel("softmax", attention="cross"), 0.1, dim=300)
    options = ["--attention", "cross", "--aspect", 2, "--width", 0.5, "--dim", 300, "--target-error", 0.1, "--format", "json"]
    assert wide.samples == program("samples", *options)["samples"]
    assert bayesaim.samples(prior, bayesaim.Linear(2, label_noise=1), 1e-9).samples is None
    raises(ValueError, lambda: bayesaim.samples(prior, softmax, -0.1), "target error must be non-negative and finite, got -0.1")


def test_data_of_n_samples(prior, softmax):
    for dim, n in [(7, 5), (30, 108), (33, 1), (49, 100)]:
        data = bayesaim.generate(prior, softmax, dim=dim, n=n)
        assert (len(data), data.alpha) == (n, n / dim**2)
    assert np.array_equal(bayesaim.generate(prior, softmax, dim=30, n=108).tokens, bayesaim.generate(prior, softmax, dim=30, alpha=0.12).tokens)
    assert len(bayesaim.generate(prior, softmax, dim=30)) == 90
    raises(ValueError, lambda: bayesaim.generate(prior, softmax, n=10, alpha=0.1), "n cannot be combined with alpha")
    raises(ValueError, lambda: bayesaim.generate(prior, softmax, n=0), "n must be at least 1, got 0")
    raises(TypeError, lambda: bayesaim.generate(prior, softmax, n=2.5), "n must be a whole number, got float")

# SPDX-License-Identifier: MIT
import bayesaim
import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    matplotlib.pyplot.close("all")


def test_theory_curve(prior, softmax, tmp_path):
    curve = bayesaim.theory(prior, softmax, np.linspace(0.01, 0.2, 30), generalization=True)
    ax = bayesaim.plot.theory(curve)
    assert ax.get_ylabel() == "error"
    assert len(bayesaim.plot.theory(curve, generalization=False).lines) == 1
    assert [len(line.get_xdata()) for line in ax.lines] == [30, 30]
    assert ax.get_xscale() == "linear"  # the error becomes 0
    ax.figure.savefig(tmp_path / "theory.png")
    curve = bayesaim.theory(prior, bayesaim.Hardmax(2), np.geomspace(0.1, 20, 5))
    assert bayesaim.plot.theory(curve).get_yscale() == "log"
    with pytest.raises(ValueError, match="generalization=True"):
        bayesaim.plot.theory(curve, generalization=True)


def grows(ax):
    """The y axis begins at 0 and follows what a user draws later."""
    low, high = ax.get_ylim()
    ax.plot([ax.get_xlim()[0]], [10 * high], "o")
    return low == 0 == ax.get_ylim()[0] and ax.get_ylim()[1] > 10 * high


def test_axes_are_not_frozen(prior, softmax, data):
    result = bayesaim.amp(data, prior, softmax, max_iterations=10)
    assert grows(bayesaim.plot.theory(bayesaim.theory(prior, softmax, np.linspace(0.05, 0.1, 5))))
    assert grows(bayesaim.plot.amp_trajectory(result))
    assert grows(bayesaim.plot.spectrum(bayesaim.Spectrum(prior, 0.1)))


@pytest.mark.filterwarnings("error")
def test_axes_that_show_something_keep_their_scale(prior, softmax, tmp_path):
    steep = bayesaim.theory(prior, bayesaim.Hardmax(2), np.geomspace(0.1, 20, 5))
    flat = bayesaim.theory(prior, softmax, [0.1, 0.12, 0.3])  # the last error is 0
    ax = bayesaim.plot.theory(flat, label="flat", ax=bayesaim.plot.theory(steep))
    assert ax.get_yscale() == "log"
    ax.plot([0.1], [50], "o")
    assert ax.get_ylim()[1] > 50
    ax.figure.savefig(tmp_path / "log.png")
    assert bayesaim.plot.theory(steep, ax=bayesaim.plot.theory(flat)).get_yscale() == "linear"
    assert bayesaim.plot.theory(flat, log=False, ax=ax).get_yscale() == "linear"


def test_phase_diagram(softmax, tmp_path):
    ax = bayesaim.plot.phase(bayesaim.phase(softmax, "0.02:0.3:6", "0.2:1.2:4"))
    assert len(ax.lines) == 1 and ax.collections[0].get_array().size == 24
    ax.figure.savefig(tmp_path / "phase.png")
    bayesaim.plot.phase(bayesaim.phase(softmax, "0.2x:1.2x:6", "0.2:1.2:4")).figure.savefig(tmp_path / "relative.png")


def test_amp_trajectory(prior, softmax, data, tmp_path):
    result = bayesaim.amp(data, prior, softmax, max_iterations=10)
    ax = bayesaim.plot.amp_trajectory(result, bayesaim.trajectory(prior, softmax, 0.12, 10), bayes_optimal=0.27)
    assert np.array_equal(ax.lines[0].get_ydata(), result.true_errors)
    ax.figure.savefig(tmp_path / "amp.png")


def test_several_layers(prior):
    channel = bayesaim.DeepAttention(2)
    result = bayesaim.amp(bayesaim.generate(prior, channel, dim=20, alpha=0.5), prior, channel, max_iterations=4)
    trajectory = bayesaim.trajectory(prior, channel, 0.5, 4, integration_points=2)
    ax = bayesaim.plot.amp_trajectory(result, trajectory)
    assert list(ax.lines[0].get_ydata()) == [np.trace(error) for error in result.true_errors]
    assert list(ax.lines[2].get_ydata()) == [np.trace(error) for error in trajectory]
    ax = bayesaim.plot.theory(bayesaim.theory(prior, channel, [0.1, 0.2], integration_points=2))
    assert len(ax.lines[0].get_xdata()) == 2


def test_spectrum_with_histogram(prior, tmp_path):
    noisy = prior.sample(100) + 0.002**0.5 * bayesaim.goe(100)
    spectrum = bayesaim.Spectrum(prior, 0.002)
    ax = bayesaim.plot.spectrum(spectrum, np.linalg.eigvalsh(noisy), bins=30)
    assert len(ax.lines) == len(spectrum.edges) == 2 and len(ax.patches) == 30
    area = sum(patch.get_height() * patch.get_width() for patch in ax.patches)
    assert area == pytest.approx(1)
    ax.figure.savefig(tmp_path / "spectrum.png")


def test_trained_attention(prior, softmax, tmp_path):
    curve = bayesaim.theory(prior, softmax, [0.05, 0.1, 0.15], estimator="erm", regularization=[0, 0.05])
    ax = bayesaim.plot.theory(curve, ax=bayesaim.plot.theory(bayesaim.theory(prior, softmax, [0.05, 0.1, 0.15])))
    assert [line.get_label() for line in ax.lines] == ["Bayes-optimal", "trained, λ = 0", "trained, λ = 0.05"]
    assert np.array_equal(ax.lines[2].get_ydata(), curve.estimation_error[1])
    best = bayesaim.theory(prior, bayesaim.Linear(2, 0.5), [0.1, 0.2], estimator="erm", regularization="optimal")
    ax = bayesaim.plot.theory(best, generalization=True)
    assert [line.get_label() for line in ax.lines] == ["trained, best λ", "trained, best λ, generalisation"]
    law = bayesaim.TrainedSpectrum(prior, softmax, 0.12, regularization=0.2)
    found = bayesaim.train(bayesaim.generate(prior, softmax, dim=60, alpha=0.12), channel=softmax, regularization=0.2)
    ax = bayesaim.plot.spectrum(law, np.linalg.eigvalsh(found.estimate), bins=20)
    area = sum(patch.get_height() * patch.get_width() for patch in ax.patches)
    assert area == pytest.approx(1 - found.zero_fraction), "zeros are no part of the picture"
    x, density = ax.lines[0].get_data()
    assert (np.diff(x) * (density[1:] + density[:-1]) / 2).sum() == pytest.approx(1 - law.zero_fraction, rel=1e-3)
    ax.figure.savefig(tmp_path / "trained.png")


def test_draws_into_axes_that_are_given(prior, softmax):
    _, ax = matplotlib.pyplot.subplots()
    assert bayesaim.plot.theory(bayesaim.theory(prior, softmax, [0.1, 0.15]), ax=ax) is ax

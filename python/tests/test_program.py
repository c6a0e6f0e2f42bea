# SPDX-License-Identifier: MIT
"""The module and the command-line program give the same bits for the same seed."""
import bayesaim
import numpy as np
import pytest

THEORY_COLUMNS = [
    "alpha", "estimation_error", "standard_error", "overlap", "generalization_error", "generalization_standard_error",
    "plugin_generalization_error", "algorithmic_error", "status",
]  # fmt: skip


@pytest.mark.parametrize(
    "channel, options",
    [
        (bayesaim.Softmax(2), ["--channel", "softmax"]),
        (bayesaim.Softmax(3, beta=2), ["--channel", "softmax", "--tokens", 3, "--beta", 2]),
        (bayesaim.Linear(2, 0.1), ["--channel", "linear", "--label-noise", 0.1]),
        (bayesaim.Hardmax(2), ["--channel", "hardmax"]),
        (bayesaim.Hardmax(4), ["--channel", "hardmax", "--tokens", 4]),
        (bayesaim.HardmaxSampled(3), ["--channel", "hardmax-sampled", "--tokens", 3, "--integration-points", 16, "--seed", 5]),
        (bayesaim.HardmaxAsPrinted(), ["--channel", "hardmax-as-printed"]),
    ],
)
def test_theory(program, prior, channel, options):
    points = program("theory", "--width", 0.5, "--alpha", "0.05,0.1,0.2", "--format", "json", *options)["points"]
    # the numbers of the grid, as its author wrote them
    curve = bayesaim.theory(prior, channel, [0.05, 0.1, 0.2], generalization=True, integration_points=16 if channel.sampled() else 128, seed=5)
    for name in THEORY_COLUMNS:
        assert [point[name] for point in points] == list(getattr(curve, name)), name


def test_small_width_limit_and_trajectory(program, prior, softmax):
    points = program("theory", "--limit", "small-width", "--alpha", "0.1,0.6", "--format", "json")["points"]
    curve = bayesaim.theory(bayesaim.Wishart(1), softmax, [0.1, 0.6], limit="small-width")
    assert [point["estimation_error"] for point in points] == list(curve.estimation_error)
    points = program("theory", "--width", 0.5, "--alpha", "0.1", "--trajectory", 8, "--format", "json")["points"]
    assert [point["estimation_error"] for point in points] == list(bayesaim.trajectory(prior, softmax, 0.1, 8))


@pytest.mark.parametrize("name", ["softmax", "hardmax", "linear"])
def test_thresholds(program, prior, name):
    answer = program("threshold", "--channel", name, "--width", 0.5, "--format", "json")
    mine = bayesaim.thresholds(prior, bayesaim.make_channel(name)).to_dict()
    for key in ["weak_recovery_scaled", "strong_recovery", "information_theoretic", "algorithmic"]:
        assert answer[key] == mine[key]


@pytest.mark.parametrize("initial", ["mean", "prior", "informed"])
def test_amp(program, prior, softmax, tmp_path, initial):
    record = tmp_path / "record.csv"
    (point,) = program(
        "amp", "--width", 0.5, "--alpha", 0.12, "--dim", 40, "--seed", 3, "--initial", initial, "--record", record,
        "--format", "json", "--quiet", status=(0, 2),
    )["points"]  # fmt: skip
    data = bayesaim.generate(prior, softmax, dim=40, alpha=0.12, seed=3)
    result = bayesaim.amp(data, prior, softmax, initial=initial, seed=3)
    assert (result.error, result.status, result.iterations) == (point["mean_error"], point["status"], point["iterations"])
    table = np.atleast_1d(np.genfromtxt(record, delimiter=",", names=True))
    assert list(table["true_error"]) == list(result.true_errors)
    assert list(table["predicted_error"]) == list(result.predicted_errors)


def test_gradient_descent(program, prior, softmax, tmp_path):
    (point,) = program(
        "gd", "--width", 0.5, "--alpha", 0.12, "--dim", 25, "--seed", 2, "--starts", 3, "--steps", 50, "--no-amp",
        "--starts-record", tmp_path / "starts.csv", "--format", "json", "--quiet",
    )["points"]  # fmt: skip
    # 12.5 columns: both take 13
    data = bayesaim.generate(prior, softmax, dim=25, alpha=0.12, seed=2)
    result = bayesaim.gradient_descent(data, softmax, width=0.5, starts=np.int64(3), steps=50, seed=2)
    assert point["averaged_error"] == result.averaged_errors[-1]
    table = np.genfromtxt(tmp_path / "starts.csv", delimiter=",", names=True, dtype=None, encoding=None)
    assert list(table["error"]) == list(result.errors)


def test_weight_decay(program, prior):
    linear = bayesaim.Linear(2, label_noise=0.5)
    answer = program(
        "gd", "--width", 0.5, "--alpha", 0.3, "--dim", 20, "--channel", "linear", "--label-noise", 0.5, "--student-width", 1.2,
        "--weight-decay", 0.8, "--starts", 2, "--steps", 40, "--no-amp", "--format", "json", "--quiet",
    )  # fmt: skip
    data = bayesaim.generate(prior, linear, dim=20, alpha=0.3)
    result = bayesaim.gradient_descent(data, linear, width=1.2, weight_decay=0.8, starts=2, steps=40)
    assert answer["points"][0]["training_objective"] == pytest.approx(result.training_objective, rel=1e-14)
    assert answer["points"][0]["averaged_error"] == result.averaged_errors[-1]
    assert answer["configuration"]["regularization"] == result.regularization == pytest.approx(0.4 * 1.2**0.5)
    plain = bayesaim.gradient_descent(data, linear, width=1.2, starts=2, steps=40)
    assert plain.regularization is None
    one = plain.descents[0]
    assert plain.training_objective == pytest.approx(np.mean([descent.losses[-1] for descent in plain.descents]))
    # The first objective of the penalised descent is that of the other one plus the penalty: the starts are the same.
    start = bayesaim.gradient_descent(data, linear, width=1.2, steps=1, learning_rate=1e-30, precision="double").descents[0]
    penalised = bayesaim.gradient_descent(
        data, linear, width=1.2, steps=1, learning_rate=1e-30, precision="double", weight_decay=0.8
    ).descents[0]
    assert penalised.losses[0] == pytest.approx(start.losses[0] + 0.8 * np.sum(start.weights**2), rel=1e-12)
    assert one.losses[-1] < one.losses[0]
    with pytest.raises(ValueError, match="weight decay must be"):
        bayesaim.gradient_descent(data, linear, width=1.2, weight_decay=-1)


def test_spectrum(program, prior):
    answer = program("spectrum", "--width", 0.5, "--noise-variance", 0.1, "--format", "json")
    spectrum = bayesaim.Spectrum(prior, 0.1)
    assert answer["mmse"] == spectrum.mmse
    x = [point["x"] for point in answer["points"]]
    assert [point["density"] for point in answer["points"]] == list(spectrum.density(x))
    assert [point["denoised"] for point in answer["points"]] == list(spectrum.denoised(x))


def test_files_go_both_ways(program, prior, softmax, tmp_path):
    theirs, mine = tmp_path / "theirs.h5", tmp_path / "mine.h5"
    program("generate", "--width", 0.5, "--alpha", 0.1, "--dim", 20, "--seed", 4, "--output", theirs, "--quiet")
    data = bayesaim.generate(prior, softmax, dim=20, alpha=0.1, seed=4)
    read = bayesaim.read_dataset(theirs, softmax)
    for name, value in data.to_dict().items():
        assert np.array_equal(value, getattr(read, name)), name
    data.save(mine, prior, softmax)
    (fit,) = program("fit", mine, "--output", tmp_path / "estimate.h5", "--format", "json", "--quiet", status=(0, 2))["points"]
    assert fit["measured_error"] == bayesaim.amp(data, prior, softmax).error


def test_studies(program, tmp_path):
    study = tmp_path / "study.toml"
    study.write_text('width = 0.5\n[[run]]\nestimator = "theory"\nalpha = "0.2x,0.6x"\n'
                     '[[run]]\nestimator = "amp"\nalpha = "0.5x"\ndim = 20\nseeds = 2\n')  # fmt: skip
    program("sweep", study, "--output", tmp_path / "theirs", "--quiet", status=(0, 2))
    result = bayesaim.sweep(study, tmp_path / "mine")
    assert result.computed == 4 and not result.stopped
    assert result.csv == (tmp_path / "theirs" / "results.csv").read_text()
    assert result.csv == (tmp_path / "mine" / "results.csv").read_text()
    assert bayesaim.sweep(study, tmp_path / "mine").computed == 0
    assert result.column("error").shape == (4,)
    assert result.column("initial").tolist() == ["", "", "mean", "mean"]
    assert np.array_equal(result.column("dim"), [np.nan, np.nan, 20, 20], equal_nan=True)


STUDY = 'estimator = "amp"\nwidth = 0.5\nalpha = "0.5x"\ndim = 12\nseeds = 3\n'


def test_shards_merged_and_done_again(program, tmp_path):
    study = tmp_path / "study.toml"
    study.write_text(STUDY)
    whole = bayesaim.sweep(study, tmp_path / "whole")
    plan = bayesaim.plan(study, tmp_path / "new", shard="1/2")
    assert (plan.tasks, plan.done, plan.missing) == (2, 0, 2) and plan.seconds > 0
    for shard in (1, 2):
        bayesaim.sweep(study, tmp_path / f"shard-{shard}", shard=f"{shard}/2")
    shards = [tmp_path / "shard-1", tmp_path / "shard-2"]
    merged = bayesaim.merge(shards, tmp_path / "mine")
    program("merge", *shards, "--output", tmp_path / "theirs", status=(0, 2))
    assert merged.csv == whole.csv and merged.summary == whole.summary
    for file in ("results.csv", "summary.csv"):
        assert (tmp_path / "mine" / file).read_bytes() == (tmp_path / "theirs" / file).read_bytes()
    again = bayesaim.rerun(tmp_path / "theirs" / "provenance.json", tmp_path / "again")
    assert (again.computed, again.compared, again.same_bits) == (3, 3, 3)
    changed = (tmp_path / "theirs" / "provenance.json").read_text().replace('"iterations":', '"iterations":1')
    (tmp_path / "theirs" / "provenance.json").write_text(changed)
    assert bayesaim.rerun(tmp_path / "theirs" / "provenance.json", tmp_path / "third").same_bits == 0
    with pytest.raises(ValueError, match="directory must be one in which something is left to do, got .*third"):
        bayesaim.rerun(tmp_path / "theirs" / "provenance.json", tmp_path / "third")
    with pytest.raises(ValueError, match="directory must be other than that of the result"):
        bayesaim.rerun(tmp_path / "mine" / "provenance.json", tmp_path / "shard-1" / ".." / "mine")
    with pytest.raises(TypeError, match="directories must be a list of directories, got str"):
        bayesaim.merge("mine", tmp_path / "other")


def test_untied_gradient_descent(program, tmp_path):
    (point,) = program(
        "gd", "--attention", "cross", "--key-tokens", 3, "--width", 0.5, "--alpha", 0.3, "--dim", 20, "--seed", 2,
        "--starts", 2, "--steps", 60, "--no-amp", "--format", "json", "--quiet",
    )["points"]  # fmt: skip
    channel = bayesaim.make_channel("softmax", attention="cross", key_tokens=3)
    data = bayesaim.generate(bayesaim.Bilinear(0.5), channel, dim=20, alpha=0.3, seed=2)
    settings = dict(width=0.5, starts=2, steps=60, seed=2)
    result = bayesaim.gradient_descent(data, channel, **settings)
    assert point["averaged_error"] == result.averaged_errors[-1]
    first = result.descents[0]
    assert first.factors == 2 and first.weights.shape == (20, 20)
    query, key = first.weights[:, :10], first.weights[:, 10:]
    np.testing.assert_allclose(first.estimate, query @ key.T / np.sqrt(200), rtol=1e-12)
    np.testing.assert_allclose((first.estimate + result.descents[1].estimate) / 2, result.estimate, rtol=1e-6, atol=1e-9)
    # stopped and resumed
    file = tmp_path / "descent.h5"
    stopped = bayesaim.gradient_descent(data, channel, **settings, checkpoint=file, progress=lambda done, *_: done < 30)
    assert stopped.status == "stopped"
    resumed = bayesaim.gradient_descent(data, channel, **settings, checkpoint=file, resume=True)
    assert np.array_equal(resumed.estimate, result.estimate)
    masked = bayesaim.make_channel("linear", tokens=3, attention="masked")
    data = bayesaim.generate(bayesaim.Bilinear(0.5), masked, dim=20, alpha=0.5, seed=2)
    losses = bayesaim.gradient_descent(data, masked, width=0.5, steps=60).descents[0].losses
    assert losses[-1] < 0.1 * losses[0]


def test_a_stopped_descent_goes_on_to_the_same_bits(program, prior, softmax, tmp_path):
    (point,) = program(
        "gd", "--width", 0.5, "--alpha", 0.12, "--dim", 20, "--seed", 2, "--starts", 2, "--steps", 60, "--no-amp",
        "--format", "json", "--quiet",
    )["points"]  # fmt: skip
    data = bayesaim.generate(prior, softmax, dim=20, alpha=0.12, seed=2)
    file = tmp_path / "descent.h5"
    settings = dict(width=0.5, starts=2, steps=60, seed=2, checkpoint=file)
    stopped = bayesaim.gradient_descent(data, softmax, **settings, progress=lambda done, *_: done < 30)
    assert stopped.status == "stopped" and stopped.descents[0].steps == 30
    with pytest.raises(ValueError, match="checkpoint must be a new file, or used with resume=True"):
        bayesaim.gradient_descent(data, softmax, **settings)
    with pytest.raises(ValueError, match="checkpoint must be of the same learning_rate, 0.2, got 0.1"):
        bayesaim.gradient_descent(data, softmax, **settings, learning_rate=0.2, resume=True)
    other = bayesaim.generate(prior, softmax, dim=20, alpha=0.12, seed=3)
    with pytest.raises(ValueError, match="checkpoint must be of the same data"):
        bayesaim.gradient_descent(other, softmax, **settings, resume=True)
    reports = []
    result = bayesaim.gradient_descent(data, softmax, **settings, resume=True, progress=lambda *report: reports.append(report[0]))
    assert reports[0] == 40
    assert result.averaged_errors[-1] == point["averaged_error"]
    # done: there is nothing to go on with
    again = bayesaim.gradient_descent(data, softmax, **settings, resume=True, progress=lambda *report: reports.append(None))
    assert again.averaged_errors[-1] == point["averaged_error"] and None not in reports

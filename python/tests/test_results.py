# SPDX-License-Identifier: MIT
"""Views, results, progress, stubs."""
import ast
import gc
import inspect
import pathlib
import re
import weakref

import bayesaim
import numpy as np
import pytest
from bayesaim import _core


def test_tokens_are_not_copied(data, prior, softmax):
    for kind in (np.float64, np.float32):
        tokens = np.array(data.tokens, dtype=kind)
        mine = bayesaim.Dataset(tokens, data.outputs)
        assert mine.tokens is tokens and np.shares_memory(mine.tokens, tokens)
    view = tokens.view()
    watch = weakref.ref(view)
    mine = bayesaim.Dataset(view, data.outputs)
    del view
    gc.collect()
    assert watch() is not None  # the dataset keeps it alive
    del mine
    gc.collect()
    assert watch() is None


def test_generated_data_are_views_that_keep_their_memory(prior, softmax):
    data = bayesaim.generate(prior, softmax, dim=20, alpha=0.2)
    assert np.shares_memory(data.tokens, data.tokens) and np.shares_memory(data.outputs, data.outputs)
    tokens, copy = data.tokens, np.array(data.tokens)
    del data
    gc.collect()
    assert np.array_equal(tokens, copy)
    with pytest.raises(ValueError, match="read-only"):
        tokens[0] = 0
    again = bayesaim.generate(prior, softmax, dim=20, alpha=0.2, token_storage="regenerate")
    assert np.array_equal(again.tokens, copy) and again.tokens.shape == copy.shape
    single = bayesaim.generate(prior, softmax, dim=20, alpha=0.2, precision="float")
    assert np.array_equal(single.tokens, copy.astype(np.float32))


def test_results_show_themselves_and_become_dictionaries(data, prior, softmax):
    result = bayesaim.amp(data, prior, softmax, max_iterations=10)
    assert "AmpResult\n  estimate: <array 30 x 30>" in repr(result) and "(10 values)" in repr(result)
    assert result.to_dict()["estimate"] is result.estimate
    assert np.array_equal(result.estimate, result.estimate.T) and np.array_equal(result.estimates[0], result.estimate)
    assert result.predicted_errors.shape == result.responses.shape == result.noise_variances.shape == (10,)
    descents = bayesaim.gradient_descent(data, softmax, width=0.5, starts=2, steps=5)
    assert isinstance(descents.to_dict()["descents"][0], dict)
    np.testing.assert_allclose((descents.descents[0].estimate + descents.descents[1].estimate) / 2, descents.estimate, rtol=1e-6)
    for shown in (bayesaim.thresholds(prior, softmax), bayesaim.theory(prior, softmax, 0.1), bayesaim.Spectrum(prior, 1), data, prior, softmax):
        assert "object at 0x" not in repr(shown)


def test_free_entropy_is_its_formula_at_the_fixed_point(prior):
    channel, alpha = bayesaim.Hardmax(2), 0.7
    curve = bayesaim.theory(prior, channel, alpha, free_entropy=True)
    q, qhat = curve.overlap[0], curve.conjugate_overlap[0]
    inner = bayesaim.prior_free_entropy(prior, qhat)
    total = prior.law().second_moment()
    expected = -q * qhat / 4 + inner + alpha * channel.information(q, total - q)
    assert curve.free_entropy[0] == pytest.approx(expected, rel=1e-12)


def test_denoiser_reaches_the_mmse(prior):
    s, noise_variance = prior.sample(300, seed=2), 0.3
    result = bayesaim.denoise(prior, s + noise_variance**0.5 * bayesaim.goe(300, seed=2), noise_variance)
    error = ((result.estimate - s) ** 2).sum() / 300
    assert error == pytest.approx(bayesaim.mmse(prior, noise_variance), rel=0.05)
    np.testing.assert_allclose(bayesaim.Spectrum(prior, noise_variance).denoised(result.eigenvalues), result.shrunk)


def test_spectral_engine_takes_arrays_of_any_shape(prior):
    x = np.linspace(0, 4, 12).reshape(2, 3, 2)
    spectrum = bayesaim.Spectrum(prior, 0.1)
    assert spectrum.density(x).shape == x.shape
    assert spectrum.density(x)[1, 2, 0] == spectrum.density(x[1, 2, 0])
    assert isinstance(spectrum.density(1.0), float)


class Bar:
    """What tqdm has."""

    def __init__(self):
        self.total, self.n, self.text = None, 0, ""

    def update(self, n):
        self.n += n

    def set_postfix_str(self, text, refresh=True):
        self.text = text


def test_progress(data, prior, softmax, tmp_path):
    seen = []
    bayesaim.amp(data, prior, softmax, max_iterations=5, progress=lambda *report: seen.append(report))
    assert [done for done, _, _ in seen] == [1, 2, 3, 4, 5] and seen[0][1] == 5 and "error" in seen[0][2]
    bar = Bar()
    bayesaim.amp(data, prior, softmax, max_iterations=5, progress=bar)
    assert (bar.n, bar.total) == (5, 5) and "error" in bar.text
    bar = Bar()
    bayesaim.gradient_descent(data, softmax, width=0.5, steps=30, progress=bar)
    assert (bar.n, bar.total) == (30, 30)
    bar = Bar()
    bayesaim.theory(prior, softmax, np.linspace(0.01, 0.1, 50), progress=bar)
    assert (bar.n, bar.total) == (50, 50)
    done = []  # threads overtake one another, reports do not
    bayesaim.theory(prior, softmax, np.linspace(0.01, 0.1, 300), threads=8, progress=lambda now, *_: done.append(now))
    assert done == sorted(done) and done[-1] == 300
    study = bayesaim.parse_experiment('estimator = "theory"\nalpha = "0.1,0.2"')
    bayesaim.sweep(study, tmp_path / "a", progress=seen.append and (lambda *report: seen.append(report)))
    assert seen[-1][1] == 2


def test_a_callback_stops_a_run(data, prior, softmax, tmp_path):
    stop_at_3 = lambda done, total, text: done < 3  # noqa: E731
    result = bayesaim.amp(data, prior, softmax, progress=stop_at_3)
    assert (result.status, result.iterations) == ("stopped", 3)
    curve = bayesaim.theory(prior, softmax, np.linspace(0.01, 0.1, 50), progress=stop_at_3, threads=1)
    assert list(curve.status[:3]) == ["converged"] * 3 and set(curve.status[3:]) == {"stopped"}
    study = bayesaim.parse_experiment('estimator = "theory"\nalpha = "0.1,0.2"')
    assert bayesaim.sweep(study, tmp_path, progress=lambda *_: False).stopped


def test_what_a_callback_raises_comes_back(data, prior, softmax, tmp_path):
    def fail(*_):
        raise KeyError("mine")

    study = bayesaim.parse_experiment('estimator = "theory"\nalpha = 0.1')
    for run in (
        lambda: bayesaim.amp(data, prior, softmax, progress=fail),
        lambda: bayesaim.theory(prior, softmax, [0.1, 0.2], progress=fail, threads=2),
        lambda: bayesaim.gradient_descent(data, softmax, width=0.5, progress=fail),
        lambda: bayesaim.sweep(study, tmp_path, progress=fail),
    ):
        with pytest.raises(KeyError, match="mine"):
            run()


def parameters_of(function):
    """Of a compiled function, from the signature that heads its docstring: [(name, has a default)]."""
    inside = re.search(r"\((.*)\) -> ", function.__doc__.splitlines()[0]).group(1)
    parts = re.split(r", (?=\w+: )", inside) if inside else []
    return [(part.split(":")[0], " = " in part) for part in parts]


def stubbed_parameters(node):
    names = [argument.arg for argument in node.args.args]
    defaults = len(node.args.defaults)
    return [(name, i >= len(names) - defaults) for i, name in enumerate(names)]


def check_stub(function, node, name):
    assert parameters_of(function) == stubbed_parameters(node), name


def test_stubs_name_what_is_there():
    tree = ast.parse((pathlib.Path(bayesaim.__file__).parent / "_core.pyi").read_text())
    public = lambda names: {name for name in names if not name.startswith("_")}  # noqa: E731
    stubbed = {node.name: node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    assert public(dir(_core)) == set(stubbed)
    for name, node in stubbed.items():
        thing = getattr(_core, name)
        if isinstance(node, ast.FunctionDef):
            check_stub(thing, node, name)
            continue
        methods = {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}
        attributes = {item.target.id for item in node.body if isinstance(item, ast.AnnAssign)}
        assert public({*methods, *attributes}) == public(vars(thing)), name
        for method, item in methods.items():
            if method == "__len__" or any(getattr(d, "id", "") == "property" for d in item.decorator_list):
                continue
            check_stub(getattr(thing, method), item, f"{name}.{method}")


def test_all_names_what_is_there():
    public = {name for name, thing in vars(bayesaim).items() if not name.startswith("_") and not inspect.ismodule(thing)}
    assert set(bayesaim.__all__) == (public - {"TYPE_CHECKING"}) | {"layers", "testing"}
    assert "plot" in dir(bayesaim)


def test_everything_public_is_documented_with_an_example():
    things = {name: getattr(bayesaim, name) for name in bayesaim.__all__}
    things.update({f"layers.{name}": getattr(bayesaim.layers, name) for name in bayesaim.layers.__all__})
    for name, thing in things.items():
        if inspect.ismodule(thing) or (inspect.isclass(thing) and issubclass(thing, (bayesaim.Result, bayesaim.Experiment))):
            continue
        # names, counts and commits need no example
        assert ">>>" in thing.__doc__ or name in ("channel_names", "prior_names", "estimator_names", "git_commit", "blas_threads"), name

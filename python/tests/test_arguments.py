# SPDX-License-Identifier: MIT
"""Whatever is passed gives the right result or one line that says what is wrong."""
import bayesaim
import numpy as np
import pytest


def raises(kind, call, text):
    with pytest.raises(kind) as error:
        call()
    message = str(error.value)
    assert text in message and "\n" not in message, message


def test_messages_name_the_argument_and_its_value(prior, softmax):
    raises(ValueError, lambda: bayesaim.Wishart(-1), "width must be")
    raises(ValueError, lambda: bayesaim.Softmax(2, beta=-1), "softmax channel: beta must be positive and finite, got -1")
    raises(ValueError, lambda: bayesaim.make_channel("sparsemax"), "channel must be one of linear, softmax, hardmax")
    raises(ValueError, lambda: bayesaim.theory(prior, softmax, -1), "alpha must be non-negative and finite, got -1")
    raises(ValueError, lambda: bayesaim.amp(bayesaim.generate(prior, softmax, dim=5), prior, softmax, damping=1), "damping must be below 1, got 1")
    raises(ValueError, lambda: bayesaim.parse_experiment("estimator = 3"), "study:1:")
    raises(ValueError, lambda: bayesaim.read_dataset("/no/such/file.h5", softmax), "/no/such/file.h5")


@pytest.mark.parametrize("wrong", [None, "1", 1j, [1, 2], object(), True, np.True_, b"1"])
def test_what_is_no_number(prior, softmax, wrong):
    raises(TypeError, lambda: bayesaim.Wishart(wrong), "width must be a number")
    raises(TypeError, lambda: bayesaim.Softmax(2, beta=wrong), "beta must be a number")
    raises(TypeError, lambda: bayesaim.Softmax(wrong), "tokens must be a whole number")
    raises(TypeError, lambda: bayesaim.Spectrum(prior, wrong), "noise variance must be a number")
    raises(TypeError, lambda: bayesaim.trajectory(prior, softmax, wrong, 3), "alpha must be a number")
    raises(TypeError, lambda: bayesaim.generate(prior, softmax, dim=wrong), "dim must be a whole number")


def test_methods_of_classes(prior, softmax):
    raises(TypeError, lambda: prior.sample("3"), "dim must be a whole number, got str")
    raises(ValueError, lambda: prior.sample(0), "dim must be at least 1, got 0")
    raises(ValueError, lambda: prior.sample(3, seed=-1), "seed must be between 0 and 2^64 - 1, got -1")
    raises(TypeError, lambda: prior.sample(3, seed=1.5), "seed must be a whole number, got float")
    raises(TypeError, lambda: softmax.draw([[0.0, 0, 0]], seed=None), "seed must be a whole number, got None")
    raises(ValueError, lambda: softmax.noise(0, 0, -1, 2), "rows must be at least 0, got -1")
    raises(ValueError, lambda: softmax.score([[0.0] * 4], [[0.0] * 3] * 2, 1), "rows of omega must be of size 1, got 2")
    raises(ValueError, lambda: softmax.score([[0.0] * 4], [[0.0] * 3], -1), "variance must be")
    raises(ValueError, lambda: softmax.score_power(0.5, np.nan), "error must be")
    raises(TypeError, lambda: bayesaim.make_channel(None), "channel must be a text, got None")
    raises(TypeError, lambda: bayesaim.make_prior(3), "prior must be a text, got int")


def test_models_by_name():
    assert repr(bayesaim.make_channel("deep-softmax", layers=3, tokens=2)).startswith("DeepAttention(")
    assert isinstance(bayesaim.make_channel("deep-seq2seq", residual=0.5), bayesaim.DeepSequence)
    assert repr(bayesaim.make_channel("deep-softmax", layers=1)) == repr(bayesaim.Softmax(2))
    assert repr(bayesaim.make_prior("multi-head", heads=3, width=0.5)) == repr(bayesaim.MultiHead(3, 0.5))
    raises(ValueError, lambda: bayesaim.make_channel("linear", beta=2), "beta applies only to channel softmax, deep-softmax, deep-seq2seq or multi-head (channel is linear)")
    raises(ValueError, lambda: bayesaim.make_prior("wigner", width=2), "width applies only to prior wishart, multi-head, bilinear or power-law (prior is wigner)")
    raises(TypeError, lambda: bayesaim.make_channel("deep-softmax", layers="2"), "layers must be a whole number, got str")
    for name in bayesaim.channel_names():
        assert isinstance(bayesaim.make_channel(name), bayesaim.Channel)


def test_methods_by_name(prior, softmax, data):
    curves = [bayesaim.theory(prior, softmax, 0.1, method=name).estimation_error[0] for name in ("automatic", "bracketed", "monotone", "newton")]
    np.testing.assert_allclose(curves, curves[0], rtol=1e-9)
    raises(ValueError, lambda: bayesaim.theory(prior, softmax, 0.1, method="fast"), "method must be one of automatic, bracketed, monotone, newton, got 'fast'")
    raises(TypeError, lambda: bayesaim.theory(prior, softmax, 0.1, method=3), "method must be a text, got int")
    raises(ValueError, lambda: bayesaim.amp(data, prior, softmax, response="fast"), "response must be one of power, slope, automatic")
    raises(ValueError, lambda: bayesaim.amp(data, prior, softmax, initial="truth"), "initial must be one of mean, prior, informed")


def test_width_of_the_student(data, softmax):
    raises(ValueError, lambda: bayesaim.gradient_descent(data, softmax, width=0), "width must be positive and finite, got 0")
    raises(ValueError, lambda: bayesaim.gradient_descent(data, softmax, width=1e6), "student width must be such that W has at most 1000000 columns")
    raises(ValueError, lambda: bayesaim.gradient_descent(data, bayesaim.DeepAttention(2), width=1), "layers of the channel must be of size 1, got 2")


def test_intervals(prior, softmax):
    wrong = "must be (lowest, highest), 0 < lowest < highest < inf, got "
    for value, shown in [(3, "3"), ((1, 2, 3), "[1, 2, 3]"), ([], "[]"), (np.zeros((9, 9)), "shape (9, 9)"), ((10, 0.01), "[10.0, 0.01]"), ((0, 1), "[0, 1]"), ((1, np.inf), "[1.0, inf]"), ((np.nan, 1), "[nan, 1.0]")]:
        raises(ValueError, lambda: bayesaim.thresholds(prior, softmax, search=value), "search " + wrong + shown)
        raises(ValueError, lambda: bayesaim.testing.check_prior(prior, noise_variances=value), "noise_variances " + wrong + shown)
    raises(TypeError, lambda: bayesaim.thresholds(prior, softmax, search=None), "search must be an array of numbers, got None")
    raises(TypeError, lambda: bayesaim.thresholds(prior, softmax, search="ab"), "search must be real numbers, got dtype <U2")


def test_arguments_that_do_not_fit(prior, softmax):
    raises(TypeError, lambda: bayesaim.Wishart(1, 2, 3), "arguments must be those of Wishart(width = 1, scale = 1), got (int, int, int)")
    raises(TypeError, lambda: bayesaim.Linear(noise=np.zeros((9, 9))), "Linear(tokens = 2, label_noise = 0), got (noise=ndarray)")
    raises(TypeError, lambda: prior.sample(), "sample(dim, seed = 0, index = 0, threads = 1), got ()")
    raises(TypeError, lambda: prior.name(None), "name(), got (None)")
    raises(TypeError, lambda: softmax.noise(1), "noise(seed, first_sample, rows, columns, uniform: bool = False), got (int)")
    raises(TypeError, lambda: prior.law().stieltjes("z"), "stieltjes(z: complex), got (str)")
    raises(TypeError, lambda: bayesaim.make_channel(), "make_channel(name, tokens = None, beta = None, label_noise = None, layers = None, residual = None, attention = None, key_tokens = None), got ()")
    raises(TypeError, lambda: bayesaim.blas_threads(1), "blas_threads(), got (int)")
    raises(TypeError, lambda: bayesaim.Experiment(), "No constructor")
    raises(TypeError, lambda: setattr(bayesaim._core.AmpOptions(), "damping", "x"), "got (str)")

    class NotReady(bayesaim.Prior):
        def __init__(self):
            pass

    raises(TypeError, lambda: NotReady(), "__init__() must be called")


def test_what_methods_in_python_raise_is_not_rewritten(prior):
    class Own(bayesaim.Prior):
        def spectrum(self):
            raise TypeError("f(): incompatible function\narguments")

    with pytest.raises(TypeError, match="^f\\(\\): incompatible function\narguments$"):
        Own().law()


def test_messages_that_are_not_utf8():
    class Own(bayesaim.Prior):
        def spectrum(self):
            raise TypeError("\udc80")

    with pytest.raises(TypeError, match="^\udc80$"):
        Own().law()
    with pytest.raises(UnicodeEncodeError):
        bayesaim.Wishart(**{"\udc80": 1})


def test_what_is_no_prior_or_channel_or_dataset(prior, softmax, data):
    raises(TypeError, lambda: bayesaim.theory(None, softmax, 0.1), "prior must be a Prior such as Wishart(0.5), or a list of one for each layer, got None")
    raises(TypeError, lambda: bayesaim.theory(prior, "softmax", 0.1), "channel must be a Channel")
    raises(TypeError, lambda: bayesaim.mmse(0.5, 1), "prior must be a Prior or a SpectralLaw, got float")
    raises(TypeError, lambda: bayesaim.amp(data.tokens, prior, softmax), "data must be a Dataset, got ndarray")
    raises(TypeError, lambda: bayesaim.theory(prior, softmax, 0.1, progress=3), "progress must be")
    raises(ValueError, lambda: bayesaim.amp(data, prior, bayesaim.Softmax(3)), "tokens of the data must be of size 3, got 2")


def test_nan_and_infinity(prior, softmax):
    for wrong in (np.nan, np.inf):
        raises(ValueError, lambda: bayesaim.theory(prior, softmax, [0.1, wrong]), f"alpha must be finite, got {wrong}")
        raises(ValueError, lambda: bayesaim.Wishart(wrong), "width must be")
        raises(ValueError, lambda: bayesaim.mmse(prior, wrong), "noise variance must be finite")
        tokens = np.zeros((3, 2, 4))
        tokens[1, 0, 2] = wrong
        raises(ValueError, lambda: bayesaim.Dataset(tokens), f"tokens of sample 1 must be a finite number, got {wrong}")
        raises(ValueError, lambda: bayesaim.Dataset(np.float32(tokens)), "tokens of sample 1 must be a finite number")
        raises(ValueError, lambda: bayesaim.Dataset(np.zeros((3, 2, 4)), np.full((3, 2, 2), wrong)), "outputs must be finite")
        raises(ValueError, lambda: bayesaim.denoise(prior, np.full((3, 3), wrong), 0.1), "noisy matrix must be finite")
        raises(ValueError, lambda: bayesaim.UserSpectrum([1, wrong]), "eigenvalues must be finite")
        raises(ValueError, lambda: softmax.draw([[wrong, 0, 0]]), "index must be finite")
    raises(ValueError, lambda: bayesaim.Dataset(np.full((3, 2, 4), 1e200)), "tokens of sample 0 must be between -1e+70 and 1e+70")
    raises(ValueError, lambda: bayesaim.Dataset(np.full((3, 2, 4), 2e15, np.float32)), "must be between -1e+15 and 1e+15")
    for largest in (np.full((3, 2, 4), -1e70), np.full((3, 2, 4), 1e15, np.float32)):
        assert (bayesaim.Dataset(largest).tokens == largest).all()


def test_wrong_dtypes(prior, softmax):
    raises(TypeError, lambda: bayesaim.theory(prior, softmax, ["a"]), "alpha must be real numbers, got dtype <U1")
    raises(TypeError, lambda: bayesaim.theory(prior, softmax, [0.1j]), "alpha must be real numbers, got dtype complex128")
    raises(TypeError, lambda: bayesaim.theory(prior, softmax, None), "alpha must be an array of numbers, got None")
    raises(TypeError, lambda: bayesaim.theory(prior, softmax, [[1], [1, 2]]), "alpha must be an array of numbers, got list")
    raises(TypeError, lambda: bayesaim.Dataset(np.zeros((2, 2, 2), complex)), "tokens must be real numbers")
    raises(TypeError, lambda: bayesaim.Dataset(np.full((2, 2, 2), None)), "tokens must be real numbers, got dtype object")
    raises(TypeError, lambda: bayesaim.Dataset(None), "tokens must be an array of numbers, got None")
    raises(TypeError, lambda: bayesaim.UserSpectrum("abc"), "eigenvalues must be real numbers")
    raises(TypeError, lambda: bayesaim.UserSpectrum(None), "eigenvalues must be an array of numbers, got None")
    raises(TypeError, lambda: bayesaim.denoise(prior, None, 0.1), "noisy matrix must be an array of numbers, got None")


def test_wrong_shapes(prior, softmax, data):
    tokens, outputs = data.tokens, data.outputs
    raises(ValueError, lambda: bayesaim.theory(prior, softmax, [[0.1]]), "one-dimensional array, got shape (1, 1)")
    raises(ValueError, lambda: bayesaim.Dataset(tokens[0]), "(samples, tokens, dimension), got shape (2, 30)")
    raises(ValueError, lambda: bayesaim.Dataset(tokens[:0]), "tokens must not be empty")
    raises(ValueError, lambda: bayesaim.Dataset(tokens, outputs[:-1]), "rows of the outputs must be of size 108, got 107")
    raises(ValueError, lambda: bayesaim.Dataset(tokens, outputs[:, :1]), "outputs must be of shape (n, 2, 2), got shape (108, 1, 2)")
    raises(ValueError, lambda: bayesaim.Dataset(np.ones((20, 32, 4)), np.ones((20, 5, 32))), "outputs must be of shape (n, 32, 32), got shape (20, 5, 32)")
    raises(ValueError, lambda: bayesaim.Dataset(tokens, outputs.ravel()), "outputs must be of shape (n, 2, 2), got shape (432,)")
    raises(ValueError, lambda: softmax.check_outputs([[0.0] * 3]), "outputs must be of shape (n, 2, 2), got shape (1, 3)")
    raises(ValueError, lambda: bayesaim.Dataset(tokens, weights=np.eye(29)), "weights must be 30 x 30, got 29 x 29")
    untied = bayesaim.Dataset(tokens, outputs, weights=np.triu(np.ones((30, 30))))  # which tied attention refuses
    raises(ValueError, lambda: bayesaim.amp(untied, bayesaim.Wishart(0.5), bayesaim.Softmax(2)), "weights must be symmetric")
    raises(ValueError, lambda: bayesaim.denoise(prior, np.ones((2, 3)), 0.1), "noisy matrix must be square")
    raises(ValueError, lambda: bayesaim.amp(data, prior, softmax, initial=np.eye(3)), "dimension of the initial estimate")
    raises(ValueError, lambda: bayesaim.predict(tokens, np.eye(3), softmax, error=0.1), "dimension of the estimate")
    raises(ValueError, lambda: softmax.draw([[1.0, 2.0]]), "index must be of shape (n, 3)")
    raises(ValueError, lambda: bayesaim.amp(bayesaim.Dataset(tokens), prior, softmax), "dataset must be one with outputs")
    raises(ValueError, lambda: bayesaim.amp(bayesaim.Dataset(tokens, np.exp(outputs)), prior, softmax), "logarithm")


def test_arrays_of_any_layout_give_the_same_result(prior, softmax, data):
    expected = bayesaim.amp(data, prior, softmax, max_iterations=3).estimate
    tokens, outputs, weights = (np.array(data.to_dict()[name]) for name in ["tokens", "outputs", "weights"])
    every_second = np.zeros((2 * len(tokens), *tokens.shape[1:]))[::2]
    every_second[:] = tokens
    unaligned = np.frombuffer(b"x" + tokens.tobytes(), dtype=np.uint8)[1:].view(np.float64).reshape(tokens.shape)
    read_only = tokens.copy()
    read_only.flags.writeable = False
    layouts = [tokens, every_second, np.asfortranarray(tokens), tokens.astype(">f8"), read_only, tokens[::-1][::-1], unaligned]
    for offset in range(8):  # wherever in a cache line the array begins
        layouts.append(np.empty(tokens.size + 8)[offset : offset + tokens.size].reshape(tokens.shape))
        layouts[-1][:] = tokens
    for layout in layouts:
        mine = bayesaim.Dataset(layout, np.asfortranarray(outputs), weights=weights)
        assert np.array_equal(bayesaim.amp(mine, prior, softmax, max_iterations=3).estimate, expected)
    whole = np.round(tokens)
    integers = [bayesaim.Dataset(whole.astype(kind), outputs) for kind in (np.float64, np.float32, np.int8)]
    indices = [one.attention_indices(weights) for one in integers]
    assert np.array_equal(indices[0], indices[1]) and np.array_equal(indices[0], indices[2])


def test_numbers_of_any_kind(prior, softmax):
    for kind in (float, np.float32, np.int64, np.array, int):
        assert bayesaim.mmse(bayesaim.Wigner(), kind(1)) == pytest.approx(0.5)
    alphas = np.linspace(0.05, 0.1, 6)
    expected = bayesaim.theory(prior, softmax, alphas).estimation_error
    for given in (list(alphas), alphas[::-1][::-1], alphas.astype(">f8")):
        assert np.array_equal(bayesaim.theory(prior, softmax, given).estimation_error, expected)
    assert len(bayesaim.theory(prior, softmax, [])) == 0
    assert bayesaim.Spectrum(prior, 0.1).density(np.ones((2, 0, 3))).shape == (2, 0, 3)
    raises(ValueError, lambda: bayesaim.generate(prior, softmax, seed=-1), "seed must be at least 0, got -1")
    raises(ValueError, lambda: bayesaim.Spectrum(prior, 10**400), "noise variance must be below 1e308 in size")
    raises(ValueError, lambda: bayesaim.Wishart(10**400), "width must be below 1e308 in size")
    raises(ValueError, lambda: bayesaim.Softmax(10**30), "tokens must be between -2147483647 and 2147483647")
    raises(ValueError, lambda: bayesaim.theory(prior, softmax, 0.1, threads=5000), "threads must be at most 1024")

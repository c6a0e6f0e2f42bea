# SPDX-License-Identifier: MIT
"""Cross-attention whose keys have another dimension than the queries."""
import bayesaim
import numpy as np
import pytest

CROSS = {"attention": "cross"}


def test_theory_has_the_published_numbers():
    one_index = bayesaim.make_channel("linear", tokens=1, key_tokens=1, **CROSS)
    curve = bayesaim.theory(bayesaim.Bilinear(0.5, aspect=2), one_index, [0.3, 0.6])
    assert np.allclose(curve.estimation_error, [0.590245391, 0.051176643], rtol=0, atol=2e-9)
    assert bayesaim.Bilinear(0.5, aspect=2).parameters() == {"width": 0.5, "aspect": 2}
    assert bayesaim.Bilinear(0.5).parameters() == {"width": 0.5}
    assert bayesaim.make_prior("bilinear", width=0.5, aspect=2).parameters() == {"width": 0.5, "aspect": 2}
    assert bayesaim.Ginibre(aspect=0.5).sample(10).shape == (10, 5)


def test_amp_has_the_bits_of_the_program(program, tmp_path):
    softmax = bayesaim.make_channel("softmax", **CROSS)
    prior = bayesaim.Bilinear(0.5, aspect=1.5)
    data = bayesaim.generate(prior, softmax, dim=20, n=120, seed=3)
    assert data.samples == 120
    assert data.key_tokens.shape == (120, 2, 30)
    assert data.weights.shape == (20, 30)
    assert data.alpha == pytest.approx(0.2)
    result = bayesaim.amp(data, prior, softmax, max_iterations=20)
    assert result.estimate.shape == (20, 30)
    data.save(tmp_path / "data.h5", prior, softmax)
    again = bayesaim.read_dataset(tmp_path / "data.h5", softmax)
    assert np.array_equal(again.key_tokens, data.key_tokens)
    point = program("fit", tmp_path / "data.h5", "--iterations", 20, "--output", tmp_path / "e.h5", "--format", "json")["points"][0]
    assert point["measured_error"] == result.error


def test_own_arrays(program):
    softmax = bayesaim.make_channel("softmax", **CROSS)
    prior = bayesaim.Bilinear(0.5, aspect=1.5)
    made = bayesaim.generate(prior, softmax, dim=20, alpha=0.2)
    own = bayesaim.Dataset(made.tokens, made.outputs, key_tokens=made.key_tokens)
    one, other = (bayesaim.amp(data, prior, softmax, max_iterations=5).estimate for data in (made, own))
    assert np.array_equal(one, other)
    with pytest.raises(ValueError, match="dimension of the key tokens must be of size 20, got 30"):
        bayesaim.amp(own, bayesaim.Bilinear(0.5), softmax)


def test_bad_arguments():
    with pytest.raises(ValueError, match="aspect must be positive"):
        bayesaim.Bilinear(0.5, aspect=0)
    with pytest.raises(ValueError, match="aspect must be 1 with masked attention"):
        bayesaim.theory(bayesaim.Bilinear(0.5, aspect=2), bayesaim.make_channel("softmax", tokens=3, attention="masked"), 0.1)

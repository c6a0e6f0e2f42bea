# SPDX-License-Identifier: MIT
"""The scale of priors, and laws from files."""
import bayesaim
import numpy as np
import pytest


def test_scale_multiplies_the_weights():
    softmax = bayesaim.Softmax(2)
    one, two = bayesaim.Wishart(0.5), bayesaim.Wishart(0.5, scale=2)
    errors = [bayesaim.theory(prior, softmax, 0.1).estimation_error for prior in (one, two)]
    assert np.allclose(errors[1], 4 * errors[0], rtol=1e-9)
    assert np.allclose(two.sample(20, seed=3), 2 * one.sample(20, seed=3))
    assert one.parameters() == {"width": 0.5}
    assert two.parameters() == {"width": 0.5, "scale": 2}
    assert bayesaim.Bilinear(0.5, aspect=2, scale=3).parameters() == {"width": 0.5, "aspect": 2, "scale": 3}
    assert bayesaim.make_prior("bilinear", width=0.5, scale=3).parameters() == {"width": 0.5, "scale": 3}


def test_spectrum_files_may_have_variances(tmp_path):
    file = tmp_path / "law.txt"
    file.write_text("0 1 1\n")
    prior = bayesaim.make_prior("spectrum", spectrum=str(file))
    assert prior.parameters() == {"bumps": 1, "mean": 0, "second_moment": 1}
    assert bayesaim.mmse(prior, 0.5) == pytest.approx(1 / 3, rel=1e-5)


def test_estimates_are_spectrum_files(program, tmp_path):
    program("generate", "--dim", 30, "--width", 0.5, "--scale", 2, "--alpha", 0.15, "--output", tmp_path / "data.h5")
    program("fit", tmp_path / "data.h5", "--output", tmp_path / "e.h5", "--format", "json")
    prior = bayesaim.make_prior("spectrum", spectrum=str(tmp_path / "e.h5"))
    assert prior.name() == "spectrum"
    assert prior.parameters() == {"width": 0.5, "scale": 2}


def test_bad_arguments():
    with pytest.raises(ValueError, match="scale must be positive"):
        bayesaim.Wishart(0.5, scale=0)
    with pytest.raises(ValueError, match="scale cannot be combined with limit"):
        bayesaim.theory(bayesaim.Wishart(0.5, scale=2), bayesaim.Softmax(2), 0.1, limit="small-width")

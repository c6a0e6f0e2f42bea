# SPDX-License-Identifier: MIT
# The headers below src/bayesaim that are installed: what the library promises to programs outside. Every header that
# one of them includes is here too, and nothing of HDF5, JSON or the inside of a channel (tests/unit/public_headers_test.cpp).
set(public_headers
    bayesaim.hpp

    core/attributes.hpp
    core/checks.hpp
    core/communicator.hpp
    core/outcome.hpp
    core/parallel.hpp
    core/precision.hpp
    core/random.hpp
    core/record.hpp
    core/shares.hpp
    core/version.hpp

    linalg/blas.hpp
    linalg/lower_product.hpp
    linalg/overlap.hpp
    linalg/random_matrix.hpp
    linalg/symmetric_eigen.hpp

    spectral/atomic_law.hpp
    spectral/bilinear_law.hpp
    spectral/bump_law.hpp
    spectral/free_convolution.hpp
    spectral/free_moments.hpp
    spectral/learned_laws.hpp
    spectral/marchenko_pastur_law.hpp
    spectral/power_law.hpp
    spectral/rectangular_curve.hpp
    spectral/rectangular_law.hpp
    spectral/scaled_law.hpp
    spectral/spectral_law.hpp

    priors/bilinear.hpp
    priors/ginibre.hpp
    priors/learned_spectrum.hpp
    priors/multi_head.hpp
    priors/power_law.hpp
    priors/prior.hpp
    priors/spectrum_file.hpp
    priors/table.hpp
    priors/user_spectrum.hpp
    priors/wigner.hpp
    priors/wishart.hpp

    denoisers/joint.hpp
    denoisers/polynomial.hpp
    denoisers/rotation_invariant.hpp
    denoisers/singular_values.hpp
    denoisers/soft_threshold.hpp

    channels/channel.hpp
    channels/geometry.hpp
    channels/hardmax.hpp
    channels/linear.hpp
    channels/rows/row_channel.hpp
    channels/score.hpp
    channels/softmax.hpp
    channels/table.hpp

    losses/loss.hpp
    losses/penalty.hpp
    losses/table.hpp

    model/model.hpp

    theory/bayes_optimal.hpp
    theory/erm.hpp
    theory/estimation_curve.hpp
    theory/free_entropy.hpp
    theory/required_samples.hpp
    theory/state_evolution.hpp
    theory/thresholds.hpp

    data/attention.hpp
    data/attributes.hpp
    data/dataset.hpp
    data/dataset_file.hpp
    data/encoder.hpp
    data/linear_terms.hpp
    data/token_statistics.hpp
    data/tokens.hpp
    data/whitening.hpp

    estimators/amp.hpp
    estimators/averaged_gradient_descent.hpp
    estimators/diagnostics.hpp
    estimators/erm.hpp
    estimators/fit.hpp
    estimators/gradient_descent.hpp
    estimators/learning.hpp
    estimators/prediction.hpp

    figures/gnuplot.hpp
    figures/line_figure.hpp

    testing/channel_contract.hpp
    testing/prior_contract.hpp
)
list(TRANSFORM public_headers PREPEND "${PROJECT_SOURCE_DIR}/src/bayesaim/")

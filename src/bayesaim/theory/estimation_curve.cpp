// SPDX-License-Identifier: MIT
#include "bayesaim/theory/estimation_curve.hpp"

#include <cmath>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/spectral/free_convolution.hpp"

namespace bayesaim::theory {

EstimationCurve::Point SpectralCurve::at(double noise_variance, Accuracy accuracy) const {
    const spectral::FreeConvolution spectrum(*law_, noise_variance,
                                             accuracy == Accuracy::full ? 1e-13 : 1e-8);
    return {spectrum.mmse(), spectrum.mmse_derivative()};
}

double SpectralCurve::free_entropy(double inverse_noise_variance) const {
    return spectral::prior_free_entropy(*law_, inverse_noise_variance);
}

EstimationCurve::Point SmallWidthCurve::at(double t, Accuracy) const {
    check_positive("noise variance", t);
    if (t >= 1) return {1, 0};
    return {t * (2 - t), 2 - 2 * t};
}

double SmallWidthCurve::free_entropy(double x) const {
    check_non_negative("inverse noise variance", x);
    return x > 1 ? (x - 2 * std::log(x) - 1 / x) / 4 : 0;
}

}  // namespace bayesaim::theory

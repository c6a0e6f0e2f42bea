// SPDX-License-Identifier: MIT
#include "bayesaim/theory/estimation_curve.hpp"

#include <cmath>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/denoisers/joint.hpp"
#include "bayesaim/denoisers/parts.hpp"
#include "bayesaim/spectral/free_convolution.hpp"

namespace bayesaim::theory {

Overlap EstimationCurve::covariance(const Overlap& precision) const {
    return linalg::scalar_overlap(at(1 / precision(0, 0)).error);
}

std::optional<denoisers::PartsPoint> EstimationCurve::parts_at(double, double) const { return std::nullopt; }

Overlap SpectralCurve::known_overlap() const {
    Eigen::VectorXd means(components());
    for (int l = 0; l < components(); ++l) means[l] = laws_[static_cast<std::size_t>(l)]->mean();
    return means * means.transpose();
}

Overlap SpectralCurve::prior_error() const {
    Overlap error = linalg::zero_overlap(components());
    for (int l = 0; l < components(); ++l) error(l, l) = laws_[static_cast<std::size_t>(l)]->variance();
    return error;
}

double SpectralCurve::recovery_ratio() const {
    double ratio = 0;
    for (const spectral::SpectralLaw* law : laws_) ratio += 1 - law->atomic_concentration();
    return ratio;
}

Overlap SpectralCurve::covariance(const Overlap& precision) const {
    if (components() == 1) return EstimationCurve::covariance(precision);
    return denoisers::cavity_covariance(laws_, precision);
}

double SpectralCurve::covariance_error(const Overlap& precision) const {
    return denoisers::cavity_error(laws_, precision);
}

const spectral::SpectralLaw& SpectralCurve::only_law() const {
    check_size("layers of the curve", components(), 1);
    return *laws_[0];
}

EstimationCurve::Point SpectralCurve::at(double noise_variance) const {
    return spectral::error_point(only_law(), noise_variance);
}

double SpectralCurve::free_entropy(double inverse_noise_variance) const {
    return spectral::prior_free_entropy(only_law(), inverse_noise_variance);
}

Overlap PartsCurve::prior_error() const {
    Overlap error = linalg::zero_overlap(2);
    error.diagonal().setConstant(0.5 * law_.variance());  // tr S S = 0
    return error;
}

double PartsCurve::recovery_ratio() const { return 2 * (1 - law_.atomic_concentration()); }

Overlap PartsCurve::covariance(const Overlap& precision) const {
    return denoisers::parts_covariance(law_, precision);
}

Overlap PartsCurve::covariance_bias(const Overlap& precision) const {
    return denoisers::parts_bias(law_, precision);
}

std::optional<denoisers::PartsPoint> PartsCurve::parts_at(double symmetric_noise,
                                                          double antisymmetric_noise) const {
    return denoisers::parts_point(law_, symmetric_noise, antisymmetric_noise);
}

EstimationCurve::Point PartsCurve::at(double) const {
    throw_unavailable("the error at one noise variance", "for self-attention, which has two");
}

double PartsCurve::free_entropy(double) const {
    throw_unavailable("the free entropy", "for self-attention with the diagonal");
}

std::unique_ptr<EstimationCurve> make_curve(Laws laws, const channels::Geometry& geometry) {
    if (geometry.parts() == 1) return std::make_unique<SpectralCurve>(laws);
    check_size("priors of self-attention", static_cast<long long>(laws.size()), 1);
    return std::make_unique<PartsCurve>(*laws[0]);
}

EstimationCurve::Point SmallWidthCurve::at(double t) const {
    check_positive("noise variance", t);
    if (t >= 1) return {1, 0};
    return {t * (2 - t), 2 - 2 * t};
}

double SmallWidthCurve::free_entropy(double x) const {
    check_non_negative("inverse noise variance", x);
    return x > 1 ? (x - 2 * std::log(x) - 1 / x) / 4 : 0;
}

}  // namespace bayesaim::theory

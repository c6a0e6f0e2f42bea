// SPDX-License-Identifier: MIT
#include "bayesaim/spectral/scaled_law.hpp"

#include <limits>

#include "bayesaim/core/checks.hpp"

namespace bayesaim::spectral {

ScaledLaw::ScaledLaw(std::shared_ptr<const SpectralLaw> law, double factor)
    : law_(std::move(law)), factor_(factor) {
    check_positive("factor of a law", factor);
}

std::vector<Interval> ScaledLaw::centred_support() const {
    std::vector<Interval> support = law_->centred_support();
    constexpr double infinity = std::numeric_limits<double>::infinity();
    for (Interval& interval : support) {
        const auto [low, high] = interval;
        interval = {factor_ * low, factor_ * high};
        // Rounded outwards, so that division by the factor leads no point outside to the inside.
        if (low == high) continue;
        while (!(interval.low / factor_ < low)) interval.low = std::nextafter(interval.low, -infinity);
        while (!(interval.high / factor_ > high)) interval.high = std::nextafter(interval.high, infinity);
    }
    return support;
}

std::vector<double> ScaledLaw::centred_peaks() const {
    std::vector<double> peaks = law_->centred_peaks();
    for (double& peak : peaks) peak *= factor_;
    return peaks;
}

Transform ScaledLaw::stieltjes(Complex z) const {
    const Transform g = law_->stieltjes(z / factor_);
    return {g.value / factor_, g.derivative / (factor_ * factor_)};
}

Transform ScaledLaw::moment_transform(Complex z) const {
    const Transform m = law_->moment_transform(z / factor_);
    return {m.value, m.derivative / factor_};
}

// With x = factor y and D = factor^2 D_0, all lengths of the noisy law scale with the factor.

std::optional<ErrorPoint> ScaledLaw::known_error(double noise_variance) const {
    auto point = law_->known_error(noise_variance / (factor_ * factor_));
    if (point) point->error *= factor_ * factor_;
    return point;
}

std::vector<CurveBulk> ScaledLaw::known_bulks(double noise_variance) const {
    std::vector<CurveBulk> bulks = law_->known_bulks(noise_variance / (factor_ * factor_));
    for (CurveBulk& bulk : bulks) {
        for (Interval* interval : {&bulk.u, &bulk.lambda}) {
            interval->low *= factor_;
            interval->high *= factor_;
        }
        for (CurveNode& node : bulk.nodes) {
            for (double* length : {&node.u, &node.v, &node.lambda, &node.weight, &node.denoised})
                *length *= factor_;
            node.variance *= factor_ * factor_;
        }
    }
    return bulks;
}

std::shared_ptr<const SpectralLaw> scaled(std::shared_ptr<const SpectralLaw> law, double factor) {
    check_positive("scale", factor);
    check_between("scale", factor, 1e-10, 1e10);  // noise variances, of the size of its square, end at 1e30
    if (factor == 1) return law;
    return std::make_shared<ScaledLaw>(std::move(law), factor);
}

}  // namespace bayesaim::spectral

// SPDX-License-Identifier: MIT
#include "bayesaim/spectral/scaled_law.hpp"

#include "bayesaim/core/checks.hpp"

namespace bayesaim::spectral {

ScaledLaw::ScaledLaw(std::shared_ptr<const SpectralLaw> law, double factor)
    : law_(std::move(law)), factor_(factor) {
    check_positive("factor of a law", factor);
}

std::vector<Interval> ScaledLaw::centred_support() const {
    std::vector<Interval> support = law_->centred_support();
    for (Interval& interval : support) {
        interval.low *= factor_;
        interval.high *= factor_;
    }
    return support;
}

Transform ScaledLaw::stieltjes(Complex z) const {
    const Transform g = law_->stieltjes(z / factor_);
    return {g.value / factor_, g.derivative / (factor_ * factor_)};
}

Transform ScaledLaw::moment_transform(Complex z) const {
    const Transform m = law_->moment_transform(z / factor_);
    return {m.value, m.derivative / factor_};
}

}  // namespace bayesaim::spectral

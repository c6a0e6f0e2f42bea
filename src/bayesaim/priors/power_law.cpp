// SPDX-License-Identifier: MIT
#include "bayesaim/priors/power_law.hpp"

#include "bayesaim/priors/rotated.hpp"
#include "bayesaim/priors/wishart.hpp"
#include "bayesaim/spectral/scaled_law.hpp"

namespace bayesaim::priors {

PowerLaw::PowerLaw(double exponent, double width, double cutoff, double scale)
    : exponent_(exponent),
      width_(width),
      cutoff_(cutoff),
      scale_(scale),
      law_(std::make_shared<spectral::PowerLaw>(exponent, width, cutoff)),
      scaled_(spectral::scaled(law_, scale)) {}

std::vector<std::pair<std::string, double>> PowerLaw::parameters() const {
    std::vector<std::pair<std::string, double>> result = {
        {"width", width_}, {"exponent", exponent_}, {"cutoff", cutoff_}};
    if (scale_ != 1) result.emplace_back("scale", scale_);
    return result;
}

linalg::Matrix PowerLaw::sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
                                ThreadPool& pool) const {
    const double nonzero = static_cast<double>(weight_columns(width_, dim)) / static_cast<double>(dim);
    const linalg::Vector values =
        quantiles(dim, [&](double x) { return x < nonzero ? scale_ * law_->eigenvalue(x) : 0; });
    return rotated(values, seed, index, pool);
}

}  // namespace bayesaim::priors

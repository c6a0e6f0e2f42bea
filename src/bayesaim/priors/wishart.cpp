// SPDX-License-Identifier: MIT
#include "bayesaim/priors/wishart.hpp"

#include <cmath>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/random.hpp"
#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/spectral/marchenko_pastur_law.hpp"
#include "bayesaim/spectral/scaled_law.hpp"

namespace bayesaim::priors {

Eigen::Index weight_columns(double width, Eigen::Index dim) {
    check_at_least("dimension", dim, 1);
    const double r = std::round(width * static_cast<double>(dim));
    if (r < 1)
        throw_invalid("width * dimension", "at least 0.5, so that W has a column",
                      width * static_cast<double>(dim));
    return static_cast<Eigen::Index>(r);
}

Wishart::Wishart(double width, double scale)
    : width_(width),
      scale_(scale),
      law_(spectral::scaled(std::make_shared<spectral::MarchenkoPasturLaw>(width), scale)) {}

std::vector<std::pair<std::string, double>> Wishart::parameters() const {
    if (scale_ == 1) return {{"width", width_}};
    return {{"width", width_}, {"scale", scale_}};
}

linalg::Matrix Wishart::sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
                               ThreadPool& pool) const {
    const Eigen::Index columns = weight_columns(width_, dim);
    const RandomStream stream(seed, Purpose::weights, index);
    return linalg::gram(scale_ / std::sqrt(static_cast<double>(columns) * static_cast<double>(dim)),
                        linalg::gaussian_matrix(dim, columns, stream, pool));
}

}  // namespace bayesaim::priors

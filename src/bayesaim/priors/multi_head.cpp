// SPDX-License-Identifier: MIT
#include "bayesaim/priors/multi_head.hpp"

#include <cmath>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/priors/wishart.hpp"
#include "bayesaim/spectral/marchenko_pastur_law.hpp"

namespace bayesaim::priors {
namespace {

spectral::ScaledLaw mean_of_heads(int heads, double width) {
    check_at_least("heads", heads, 1);
    return {std::make_shared<spectral::MarchenkoPasturLaw>(heads * width), 1 / std::sqrt(heads)};
}

}  // namespace

MultiHead::MultiHead(int heads, double width)
    : heads_(heads), width_(width), law_(mean_of_heads(heads, width)) {}

linalg::Matrix MultiHead::sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
                                 ThreadPool& pool) const {
    const Wishart head(width_);
    const auto count = static_cast<std::uint64_t>(heads_);
    linalg::Matrix mean = head.sample(dim, seed, index * count, pool);
    for (std::uint64_t m = 1; m < count; ++m) mean += head.sample(dim, seed, index * count + m, pool);
    return mean / heads_;
}

}  // namespace bayesaim::priors

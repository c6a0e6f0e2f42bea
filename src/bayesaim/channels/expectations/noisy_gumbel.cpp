// SPDX-License-Identifier: MIT
#include "bayesaim/channels/expectations/noisy_gumbel.hpp"

#include "bayesaim/numerics/gaussian.hpp"

namespace bayesaim::channels {

using Eigen::ArrayXd;

NoisyGumbel::NoisyGumbel(const ArrayXd& x, double deviation) : cdf(ArrayXd::Zero(x.size())), density(cdf) {
    constexpr double step = 0.25;
    if (deviation < 1) {
        for (const double z : Lattice(-8.5, 8.5, step).points()) {
            const ArrayXd e = (deviation * z - x).min(600.0).exp();
            const ArrayXd gumbel = step * numerics::normal_density(z) * (-e).exp();
            cdf += gumbel;
            density += gumbel * e;
        }
    } else {
        for (const double gumbel : Lattice(-left_reach(0), right_reach(0), step).points()) {
            const double weight = step * std::exp(-gumbel - std::exp(-gumbel));
            const ArrayXd z = (x - gumbel) / deviation;
            cdf += weight * z.unaryExpr(&numerics::normal_cdf);
            density += weight * z.unaryExpr(&numerics::normal_density) / deviation;
        }
    }
}

}  // namespace bayesaim::channels

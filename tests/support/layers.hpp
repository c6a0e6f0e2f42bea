// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>

#include "bayesaim/channels/channel.hpp"
#include "bayesaim/core/random.hpp"

namespace bayesaim::test {

/// The 2 x 2 matrix a, b; b, c.
inline linalg::Overlap overlap(double a, double b, double c) {
    linalg::Overlap result(2, 2);
    result << a, b, b, c;
    return result;
}

inline double determinant(const Eigen::Matrix2d& m) { return m(0, 0) * m(1, 1) - m(0, 1) * m(1, 0); }

/// Written out, so that tests of posteriors share no decomposition with them.
inline Eigen::Matrix2d inverse(const Eigen::Matrix2d& m) {
    Eigen::Matrix2d result;
    result << m(1, 1), -m(0, 1), -m(1, 0), m(0, 0);
    return result / determinant(m);
}

/// Samples (omega, htilde, y) with omega ~ N(0, 2q), htilde ~ N(omega, V).
struct Samples {
    channels::Rows omega, index, outputs;
};

inline Samples sample(const channels::Channel& channel, const linalg::Overlap& q,
                      const linalg::Overlap& variance, int count, std::uint64_t seed) {
    const Eigen::Index layers = channel.layers(), pairs = channel.pairs();
    Samples result{channels::Rows(count, layers * pairs), channels::Rows(count, layers * pairs),
                   channels::Rows(count, channel.tokens() * channel.tokens())};
    const linalg::Overlap known = linalg::lower_root(2 * q), rest = linalg::lower_root(variance);
    Eigen::MatrixXd z(pairs, 2 * layers);
    for (Eigen::Index i = 0; i < count; ++i) {
        RandomStream(seed, Purpose::tokens, static_cast<std::uint64_t>(i))
            .fill_normal({z.data(), static_cast<std::size_t>(z.size())});
        const Eigen::MatrixXd omega = z.leftCols(layers) * known.transpose(),
                              index = omega + z.rightCols(layers) * rest.transpose();
        result.omega.row(i) = omega.reshaped().transpose();
        result.index.row(i) = index.reshaped().transpose();
    }
    channel.draw(result.index, 0, 0, result.outputs);
    return result;
}

}  // namespace bayesaim::test

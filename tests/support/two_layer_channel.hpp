// SPDX-License-Identifier: MIT
#pragma once
#include <cmath>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "bayesaim/channels/channel.hpp"
#include "bayesaim/core/random.hpp"

namespace bayesaim::test {

/// Two layers in closed form: y = h^1 + 2 h^2 + sqrt(label_noise) z, z symmetric. With u = (1, 2) and
/// S_ab = u' V u + tau_ab^2 label_noise,
///   g^l_ab = u_l (tau_ab y_ab - omega^1_ab - 2 omega^2_ab) / S_ab,   F_lk = u_l u_k sum_ab 1/S_ab.
/// The layers differ, so that exchanged ones are seen.
class WeightedSum : public channels::Channel {
  public:
    using Rows = channels::Rows;
    using Overlap = linalg::Overlap;
    static constexpr double weight[] = {1, 2};

    explicit WeightedSum(double label_noise = 0) : label_noise_(label_noise) {}

    std::string name() const override { return "weighted-sum"; }
    std::vector<std::pair<std::string, double>> parameters() const override { return {}; }
    int tokens() const override { return 2; }
    int layers() const override { return 2; }

    void draw(const channels::ConstRowsRef& index, std::uint64_t seed, std::uint64_t first_sample,
              channels::RowsRef outputs) const override {
        for (Eigen::Index i = 0; i < index.rows(); ++i) {
            double z[3];
            RandomStream(seed, Purpose::label_noise, first_sample + static_cast<std::uint64_t>(i))
                .fill_normal(z);
            for (int a = 0; a < 2; ++a) {
                for (int b = a; b < 2; ++b) {
                    const int p = channels::pair_index(a, b, 2);
                    const double h = (index(i, p) + 2 * index(i, 3 + p)) / scale_[p];
                    outputs(i, 2 * a + b) = outputs(i, 2 * b + a) = h + std::sqrt(label_noise_) * z[p];
                }
            }
        }
    }

    void score(const channels::ConstRowsRef& outputs, const channels::ConstRowsRef& omega,
               const Overlap& variance, channels::RowsRef g,
               Eigen::Ref<Eigen::VectorXd> log_z) const override {
        if (log_z.size() > 0) log_z.setZero();
        for (int p = 0; p < 3; ++p) {
            const double spread = observation_variance(variance, p);
            const Eigen::VectorXd rest =
                scale_[p] * outputs.col(p == 2 ? 3 : p) - omega.col(p) - 2 * omega.col(3 + p);
            for (int l = 0; l < 2; ++l) g.col(3 * l + p) = weight[l] * rest / spread;
            if (log_z.size() > 0)
                log_z.array() -=
                    0.5 * rest.array().square() / spread + 0.5 * std::log(2 * std::numbers::pi * spread);
        }
    }

    /// S of pair p
    double observation_variance(const Overlap& variance, int pair) const {
        return variance(0, 0) + 4 * variance(0, 1) + 4 * variance(1, 1) +
               scale_[pair] * scale_[pair] * label_noise_;
    }

    Overlap exact_score_power(const channels::OrderParameters& parameters) const {
        double sum = 0;
        for (int p = 0; p < 3; ++p) sum += 1 / observation_variance(2 * parameters.error, p);
        Overlap result(2, 2);
        result << sum, 2 * sum, 2 * sum, 4 * sum;
        return result;
    }

  private:
    double label_noise_;
    Eigen::VectorXd scale_ = channels::pair_scales(2);
};

}  // namespace bayesaim::test

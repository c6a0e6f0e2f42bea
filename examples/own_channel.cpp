// SPDX-License-Identifier: MIT
// A channel of one's own, with draw and score only: of each token x we see the sign of h = (x' S x - Tr S)/sqrt(d). Its
// promises are checked; then state evolution runs on expectations that the library samples. Prints:
//   alpha 1  error 0.206
//   alpha 4  error 0.023
//   alpha 16  error 0.001
#include <cmath>
#include <cstdio>
#include <numbers>

#include "bayesaim/priors/wishart.hpp"
#include "bayesaim/testing/channel_contract.hpp"
#include "bayesaim/theory/state_evolution.hpp"

namespace {

using namespace bayesaim;

class Sign final : public channels::Channel {
  public:
    std::string name() const override { return "sign"; }
    std::vector<std::pair<std::string, double>> parameters() const override { return {}; }
    int tokens() const override { return 1; }

    void draw(const channels::ConstRowsRef& index, std::uint64_t, std::uint64_t,
              channels::RowsRef outputs) const override {
        outputs = index.unaryExpr([](double h) { return h < 0 ? -1.0 : 1.0; });
    }

    /// Z = P(y h > 0) for h ~ N(omega, V): the normal distribution function at y omega / sqrt(V).
    void score(const channels::ConstRowsRef& outputs, const channels::ConstRowsRef& omega,
               const linalg::Overlap& variance, channels::RowsRef g,
               Eigen::Ref<Eigen::VectorXd> log_z) const override {
        const double deviation = std::sqrt(variance(0, 0));
        for (Eigen::Index i = 0; i < omega.rows(); ++i) {
            const double y = outputs(i, 0), u = y * omega(i, 0) / deviation;
            const double probability = 0.5 * std::erfc(-u / std::numbers::sqrt2);
            const double density = std::exp(-0.5 * u * u) / std::sqrt(2 * std::numbers::pi);
            g(i, 0) = y * density / (deviation * probability);
            if (log_z.size() > 0) log_z[i] = std::log(probability);
        }
    }
};

}  // namespace

int main() {
    const Sign channel;
    const auto violations = testing::check_channel(channel);
    for (const auto& line : violations) std::printf("%s\n", line.c_str());

    const priors::Wishart prior(0.5);
    const theory::SpectralCurve curve(prior.law());
    for (const double alpha : {1, 4, 16}) {
        const auto point = theory::solve_state_evolution(curve, channel, alpha);
        std::printf("alpha %g  error %.3f\n", alpha, point.error());
    }
    return violations.empty() ? 0 : 1;
}

// SPDX-License-Identifier: MIT
#pragma once
#include <vector>

#include "bayesaim/channels/channel.hpp"

namespace bayesaim::numerics {
struct Estimate;
}

namespace bayesaim::channels {

class HardmaxRecursion;
namespace hardmax_pair {
enum class Score;
}

/// y_ab = 1 where h_ab is the largest entry of row a, else 0: the limit beta -> infinity of softmax, T = 2 to
/// 6. The score is in closed form for T = 2 (hardmax_pair), otherwise by the exact recursion
/// (HardmaxRecursion). Its averages are stored functions of (Q - q)/Q (hardmax_universal).
class Hardmax : public Channel {
  public:
    explicit Hardmax(int tokens);

    std::string name() const override { return "hardmax"; }
    std::vector<std::pair<std::string, double>> parameters() const override;
    int tokens() const override { return tokens_; }
    bool sampled() const override { return false; }
    bool fast_slope() const override;
    /// Each row has one 1 and zeros.
    void check_outputs(const ConstRowsRef& outputs) const override;
    void draw(const ConstRowsRef& index, std::uint64_t seed, std::uint64_t first_sample,
              RowsRef outputs) const override;
    void score(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance, RowsRef g,
               Eigen::Ref<Eigen::VectorXd> log_z) const override;
    void predict(const ConstRowsRef& omega, const Overlap& variance, RowsRef prediction) const override;
    Eigen::MatrixXd score_slope(const ConstRowsRef& output, const ConstRowsRef& omega,
                                const Overlap& variance) const override;
    Overlap score_with_slope(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance,
                             RowsRef g) const override;
    ScorePower score_power(const OrderParameters& parameters, const Integration& integration) const override;
    std::optional<double> information(const OrderParameters& parameters,
                                      const Integration& integration) const override;
    GeneralizationError generalization(const OrderParameters& parameters,
                                       const Integration& integration) const override;

  protected:
    Hardmax(int tokens, hardmax_pair::Score score);

  private:
    int tokens_;
    hardmax_pair::Score score_;
};

/// Hardmax with averages that are computed anew: quadrature for T = 2, otherwise a quasi-Monte Carlo sum over
/// omega, exact in the labels. Slow; an independent check of the stored functions.
class HardmaxSampled final : public Hardmax {
  public:
    explicit HardmaxSampled(int tokens);

    std::string name() const override { return "hardmax-sampled"; }
    bool sampled() const override { return tokens() > 2; }
    ScorePower score_power(const OrderParameters& parameters, const Integration& integration) const override;
    std::optional<double> information(const OrderParameters& parameters,
                                      const Integration& integration) const override;
    GeneralizationError generalization(const OrderParameters& parameters,
                                       const Integration& integration) const override;

  private:
    /// One label of each class under permutations of the tokens, and the size of the class.
    struct LabelClass {
        std::vector<int> labels;
        double size = 0;
    };
    static std::vector<LabelClass> label_classes(int tokens);
    template <class Function>
    double sum_over_labels(HardmaxRecursion& recursion, const Eigen::VectorXd& omega, Function f) const;
    template <class Function>
    numerics::Estimate average_over_labels(double ratio, const Integration& integration, Function f) const;

    std::vector<LabelClass> classes_;  // for T > 2
};

/// Hardmax with T = 2 and the score as printed in the paper, which has the density of two labels' thresholds
/// instead of the derivative of their distribution. It only serves to reproduce the published curve.
class HardmaxAsPrinted final : public Hardmax {
  public:
    explicit HardmaxAsPrinted(int tokens);

    std::string name() const override { return "hardmax-as-printed"; }
    ScorePower score_power(const OrderParameters& parameters, const Integration& integration) const override;
    std::optional<double> information(const OrderParameters&, const Integration&) const override {
        return std::nullopt;
    }
};

}  // namespace bayesaim::channels

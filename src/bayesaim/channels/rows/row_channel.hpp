// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/channels/channel.hpp"

namespace bayesaim::channels {

class WinningProbability;

/// Channels of untied attention whose rows are independent: cross-attention, and self-attention without the diagonal.
/// The indices of a sample are rows() x length() independent N(omega, V), V = Q - q, and each row of the output depends
/// on its own row of indices.
class RowChannel : public Channel {
  public:
    int tokens() const override { return geometry_.queries; }
    Geometry geometry() const override { return geometry_; }
    std::vector<std::pair<std::string, double>> parameters() const override;

  protected:
    /// Throws InvalidArgument, with the channel's name in the message, for tied attention, for fewer queries than 1, and
    /// for rows shorter than `shortest`.
    RowChannel(std::string_view channel, const Geometry& geometry, int shortest);

    int rows() const { return geometry_.queries; }
    int length() const { return geometry_.row_length(); }
    /// Column of the outputs where pair p stands.
    int place(int pair) const { return places_[static_cast<std::size_t>(pair)]; }
    /// The probability of each entry to win its row, with means scale * omega, at its place; 0 where nothing is seen.
    void predict_rows(WinningProbability law, double scale, const ConstRowsRef& omega,
                      RowsRef prediction) const;
    ScalarParameters scalars(const OrderParameters& parameters) const {
        return ScalarParameters(parameters, geometry_.variance_factor());
    }

  private:
    Geometry geometry_;
    std::vector<int> places_;
};

/// y = h with label noise of the given variance:  g = (y - omega)/(V + label_noise).
class RowLinear final : public RowChannel {
  public:
    explicit RowLinear(const Geometry& geometry, double label_noise = 0);

    std::string name() const override { return "linear"; }
    std::vector<std::pair<std::string, double>> parameters() const override;
    bool sampled() const override { return false; }
    bool fast_slope() const override { return true; }
    std::optional<SmoothOutput> smooth_output() const override { return SmoothOutput{}; }
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
    std::optional<int> exact_observations() const override;
    GeneralizationError generalization(const OrderParameters& parameters,
                                       const Integration& integration) const override;

  private:
    double label_noise_;
};

/// y = softmax(beta h) row by row. With r = log(y)/beta - omega,  g = (r - mean of r over the row)/V: the outputs fix
/// all of a row but a common shift.
class RowSoftmax final : public RowChannel {
  public:
    explicit RowSoftmax(const Geometry& geometry, double beta = 1);

    std::string name() const override { return "softmax"; }
    std::vector<std::pair<std::string, double>> parameters() const override;
    bool logarithmic_outputs() const override { return true; }
    bool sampled() const override { return false; }
    bool fast_slope() const override { return true; }
    std::optional<SmoothOutput> smooth_output() const override { return SmoothOutput{true, beta_}; }
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
    std::optional<int> exact_observations() const override { return rows() * (length() - 1); }
    GeneralizationError generalization(const OrderParameters& parameters,
                                       const Integration& integration) const override;

  private:
    double beta_;
};

/// y marks the largest h of each row: the limit beta -> infinity of softmax. Scores are one-dimensional integrals
/// for any length of a row (RowPosterior). Averages are stored functions of (Q - q)/Q for rows of 2 to 5 entries
/// (hardmax_universal::longest_row), and sampled for longer ones.
class RowHardmax final : public RowChannel {
  public:
    explicit RowHardmax(const Geometry& geometry);

    std::string name() const override { return "hardmax"; }
    bool sampled() const override;
    void check_outputs(const ConstRowsRef& outputs) const override;
    void draw(const ConstRowsRef& index, std::uint64_t seed, std::uint64_t first_sample,
              RowsRef outputs) const override;
    void score(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance, RowsRef g,
               Eigen::Ref<Eigen::VectorXd> log_z) const override;
    void predict(const ConstRowsRef& omega, const Overlap& variance, RowsRef prediction) const override;
    ScorePower score_power(const OrderParameters& parameters, const Integration& integration) const override;
    std::optional<double> information(const OrderParameters& parameters,
                                      const Integration& integration) const override;
    GeneralizationError generalization(const OrderParameters& parameters,
                                       const Integration& integration) const override;
};

}  // namespace bayesaim::channels

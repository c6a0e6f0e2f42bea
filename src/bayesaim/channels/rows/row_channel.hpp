// SPDX-License-Identifier: MIT
#pragma once
#include <functional>

#include "bayesaim/channels/channel.hpp"

namespace bayesaim::channels {

class WinningProbability;

/// Channels of untied attention: each row of the output depends on its own row of indices h. Given omega the entries of h
/// are normal. In cross-attention and without the diagonal they are independent, of variance V = Q - q. With the diagonal
/// (self, causal) there are two parts of S, V = 2 diag(E_s, E_a), and
///   Var h_aa = V_s,   Var h_ab = (V_s + V_a)/2,   Cov(h_ab, h_ba) = (V_s - V_a)/2;
/// of h_ab and h_ba a causal row shows one only, so that its rows are independent again.
class RowChannel : public Channel {
  public:
    int tokens() const override { return geometry_.queries; }
    Geometry geometry() const override { return geometry_; }
    std::vector<std::pair<std::string, double>> parameters() const override;

  protected:
    /// Throws InvalidArgument, with the channel's name in the message, for tied attention, for fewer queries than 1, and
    /// if no row has `shortest` entries.
    RowChannel(std::string_view channel, const Geometry& geometry, int shortest);

    /// One row of a sample. Entries are counted over the sample, row by row, those that are seen.
    struct Row {
        int first, length;
        int diagonal;  ///< position in the row of the token itself; -1 if it is not seen
    };
    const std::vector<Row>& rows() const { return rows_; }
    int entries() const { return static_cast<int>(places_.size()); }
    /// Column of the outputs where an entry stands.
    int place(int entry) const { return places_[static_cast<std::size_t>(entry)]; }
    /// Entries minus rows: what is left of the entries without a shift of each row.
    int differences() const { return entries() - static_cast<int>(rows_.size()); }
    bool coupled() const {
        return geometry_.attention == Attention::self;
    }  ///< whether rows depend on each other
    bool one_part() const { return geometry_.parts() == 1; }

    /// Variances of the entries, and the covariance of h_ab and h_ba.
    struct Spread {
        double diagonal, other, coupling;
        double of(const Row& row, int k) const { return k == row.diagonal ? diagonal : other; }
    };
    Spread spread(const Overlap& variance) const;

    /// h of the entries, from htilde. The result refers to `index` itself if they are the same.
    ConstRowsRef entries_of(const ConstRowsRef& index, Rows& storage) const;
    /// The score by components from that by entries.
    void to_components(const Rows& entries, RowsRef g) const;
    /// body(h of omega, g of the entries), converted from and to components.
    template <class Body>
    void on_entries(const ConstRowsRef& omega, RowsRef g, Body body) const {
        if (one_part()) {
            body(omega, g);
            return;
        }
        Rows storage, scores(omega.rows(), entries());
        body(entries_of(omega, storage), RowsRef(scores));
        to_components(scores, g);
    }
    /// F by components from sums over the entries: of g_aa^2, of g_ab^2 and of g_ab g_ba, a != b.
    Overlap power(double diagonal, double other, double product = 0) const;

    /// The probability of each entry to win its row, with means scale * omega, at its place; 0 where nothing is seen.
    /// law(length) is that of the noise of a row.
    void predict_rows(const std::function<WinningProbability(int)>& law, double scale,
                      const ConstRowsRef& omega, RowsRef prediction) const;

    /// Second moments of an entry of h, of its mean and of the rest. With two parts: the mean over a row of two entries,
    /// which decides all about the difference of these.
    struct Moments {
        double total, overlap, error;
    };
    Moments row_moments(const OrderParameters& parameters) const;
    int informative_rows() const;  ///< rows of more than one entry

    ScalarParameters scalars(const OrderParameters& parameters) const {
        return ScalarParameters(parameters, geometry_.variance_factor());
    }
    Overlap variance_at(const OrderParameters& parameters) const {
        return geometry_.variance_factor() * parameters.error;
    }

  private:
    Geometry geometry_;
    std::vector<Row> rows_;
    std::vector<int> places_;
};

/// y = h with label noise of the given variance D:  g = (y - omega)/(V + D); self-attention, by parts:
///   g = r_sym/(V_s + D) + r_anti/(V_a + D),   r = y - omega.
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
    std::optional<int> observed_combinations() const override;
    GeneralizationError generalization(const OrderParameters& parameters,
                                       const Integration& integration) const override;

  private:
    Overlap power_at(const Overlap& variance) const;

    double label_noise_;
};

/// y = softmax(beta h) row by row. The outputs fix all of a row but a common shift x_a. With r = log(y)/beta - omega and
/// the shift that is most likely,
///   one variance  g = (r - mean of r over the row)/V,
///   causal        w_b = 1/Var h_ab,  x_a = -sum_b w_b r_ab/sum_b w_b,  g_ab = w_b (r_ab + x_a),
///   self          p = 1/V_s, m = 1/V_a, k = (p - m)/(p + m),  x_a = -(sum_b r_ab + k sum_b r_ba - (k/T) sum r)/T,
///                 g = (p + m)/2 u + (p - m)/2 u',  u_ab = r_ab + x_a.
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
    std::optional<int> exact_observations() const override;
    std::optional<int> observed_combinations() const override { return differences(); }
    GeneralizationError generalization(const OrderParameters& parameters,
                                       const Integration& integration) const override;

  private:
    Overlap power_at(const Overlap& variance) const;
    double score_of_coupled_rows(const Eigen::MatrixXd& residual, const Overlap& variance, double* g) const;

    double beta_;
};

/// y marks the largest h of each row: the limit beta -> infinity of softmax. Scores are one-dimensional integrals
/// for any length of a row (RowPosterior). Averages are stored functions of (Q - q)/Q for rows of 2 to 5 entries
/// (hardmax_universal::longest_row), and sampled for longer ones; of causal attention they are sampled for T >= 3.
/// Rows of self-attention are coupled: two tokens only, by the bivariate normal law (hardmax_pair).
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

  private:
    std::size_t label(const ConstRowsRef& outputs, Eigen::Index sample, const Row& row) const;
    ScorePower sampled_power(const OrderParameters& parameters, const Integration& integration) const;
};

}  // namespace bayesaim::channels

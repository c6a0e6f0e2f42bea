// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>

#include "bayesaim/channels/score.hpp"
#include "bayesaim/core/parallel.hpp"

/// Output channels: how the observed y depends on the attention indices h.
///
/// Conventions. The K pairs (a, b) that the geometry shows are ordered row by row; in tied attention a <= b, K =
/// T(T+1)/2, and tau_ab = sqrt(2 - delta_ab), otherwise tau = 1. Channels see htilde_ab = tau_ab h_ab, which
/// before y is N(omega, V) with V = v (Q - q), independently over the pairs; v = 2 for tied attention and 1
/// otherwise (Geometry). One sample is one row; outputs have T x T columns (queries x keys), row by row.
///
/// With L layers htilde, omega and g have L K columns, layer by layer: pair p of layer l is column l K + p. V
/// is L x L, the covariance between layers of one pair. The two parts of S in self-attention (Geometry) stand like
/// two layers; layers and parts are called components.
namespace bayesaim::channels {

/// State evolution's view of an estimate: overlap q with the truth and error C = Q - q. Both are carried,
/// because q alone loses the digits of a small error.
struct OrderParameters {
    Overlap overlap;
    Overlap error;
};

/// The quasi-Monte Carlo behind expectations that have no quadrature.
struct Integration {
    int shifts = 8;    ///< independent random shifts, from which the standard error comes
    int points = 128;  ///< Sobol points per shift
    std::uint64_t seed = 0;
    ThreadPool* pool = nullptr;  ///< null: the calling thread works alone
};

/// An expectation over data; relative_error is one standard error divided by the value, 0 for quadratures.
struct ScorePower {
    Overlap value;
    double relative_error = 0;
    /// Relative size of jumps of the value between neighbouring parameters; positive if the integrals adapt.
    double roughness = 0;
};

/// Mean squared error of predicting the T x T output of a new sample.
struct GeneralizationError {
    double bayes_optimal = 0;  ///< E || E[g(h) | omega] - g(h) ||^2
    double plug_in = 0;        ///< E || g(omega) - g(h) ||^2
    double relative_error = 0;
};

/// How the outputs follow from h in a channel that gradient descent can learn:
/// y = softmax_beta(h) row by row, or y = h.
struct SmoothOutput {
    bool softmax = false;
    double beta = 1;
};

/// A user's channel must define its name, its parameters, the number of tokens, draw() and score(). The other
/// functions have defaults: expectations are averages over quasi-Monte Carlo points,
///   omega ~ N(0, v q),  htilde ~ N(omega, V),  y ~ P(y | htilde),
/// accurate to 1e-2 or 1e-3; relative_error is the estimate. Override them where a closed form is known.
/// Pinned by: ChannelDefaults.*, and the contract checks of bayesaim/testing/channel_contract.hpp.
///
///   class Doubled final : public bayesaim::channels::Channel {
///       ...  // draw: y = 2 h, score: g = (y/2 - omega)/V
///   };
///   const auto point = theory::solve_state_evolution(theory::SpectralCurve(prior.law()), Doubled(), alpha);
class Channel : public Score {
  public:
    virtual std::string name() const = 0;
    virtual std::vector<std::pair<std::string, double>> parameters() const = 0;
    virtual int tokens() const = 0;  ///< T
    /// Which pairs of tokens are seen; tied attention unless overridden.
    Geometry geometry() const override { return {Attention::tied, tokens(), tokens()}; }

    /// y ~ P(y | htilde). Sample i draws its noise from
    /// RandomStream(seed, Purpose::label_noise, first_sample + i).
    virtual void draw(const ConstRowsRef& index, std::uint64_t seed, std::uint64_t first_sample,
                      RowsRef outputs) const = 0;

    /// g = d/domega log Z(y, omega, V), Z = E[P(y | htilde)], htilde ~ N(omega, V). Fills log_z too unless
    /// its size is 0; log Z is defined up to a term that depends on y only.
    void score(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance, RowsRef g,
               Eigen::Ref<Eigen::VectorXd> log_z) const override = 0;

    /// Whether the outputs of draw() and score() are logarithms of the outputs of predict().
    virtual bool logarithmic_outputs() const { return false; }

    /// Throws InvalidArgument unless these can be outputs of the channel. The default accepts T^2 finite
    /// numbers; if they are logarithms, the exponentials of each row must sum to 1.
    virtual void check_outputs(const ConstRowsRef& outputs) const;

    /// E[y] over htilde ~ N(omega, V), without label noise: the best prediction of a new sample's output.
    /// V = 0 gives the output of omega itself, the plug-in rule. Softmax predicts probabilities, not their
    /// logarithms. The default averages draw(), so a channel with label noise must override it.
    virtual void predict(const ConstRowsRef& omega, const Overlap& variance, RowsRef prediction) const;

    /// dg/domega of one sample, a symmetric matrix. The default takes central differences of g.
    virtual Eigen::MatrixXd score_slope(const ConstRowsRef& output, const ConstRowsRef& omega,
                                        const Overlap& variance) const;

    /// The mean of the sum over data is the mean of g^l g^k. The default takes differences of g.
    Overlap score_with_slope(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance,
                             RowsRef g) const override;

    /// Whether score_with_slope() takes about as long as score().
    virtual bool fast_slope() const { return false; }

    /// F = E sum_pairs g g^T over data at these order parameters: state evolution is qhat = v^2 alpha F.
    virtual ScorePower score_power(const OrderParameters& parameters, const Integration& integration) const;

    /// I_out = E log Z, with dI_out/dq = v F/2; up to a constant. Returns std::nullopt if it is not known.
    virtual std::optional<double> information(const OrderParameters& parameters,
                                              const Integration& integration) const;

    /// Whether score() fills log_z with the logarithm of a normalised probability.
    virtual bool knows_log_z() const { return true; }

    /// The number m of combinations of htilde that y fixes exactly, if y depends on nothing else: then
    /// F = m/V at any error. Returns std::nullopt for other channels.
    virtual std::optional<int> exact_observations() const { return std::nullopt; }

    /// The number m of combinations of all htilde that y fixes once the error is small, Tr(V F) -> m. Then
    /// the error is zero from a finite alpha on. Returns std::nullopt if outputs are noisy or discrete.
    virtual std::optional<int> observed_combinations() const { return exact_observations(); }

    /// Whether score_power() and information() are sampled (and depend on Integration) rather than exact.
    virtual bool sampled() const { return true; }

    /// E ||g(htilde) - g(htilde')||^2 / 2 for two htilde that share omega, and E ||g(omega) - g(htilde)||^2
    /// for the plug-in rule, where g = predict(., V = 0).
    virtual GeneralizationError generalization(const OrderParameters& parameters,
                                               const Integration& integration) const;

    /// Returns std::nullopt if y has no useful gradient.
    virtual std::optional<SmoothOutput> smooth_output() const { return std::nullopt; }

  protected:
    /// Step of the differences in score_slope, in units of sqrt(V); larger if g itself is approximate.
    virtual double slope_step() const { return 1e-4; }
};

/// Position of the pair of a and b, in either order, among the K pairs of T tokens.
constexpr int pair_index(int a, int b, int tokens) {
    return a > b ? pair_index(b, a, tokens) : a * tokens - a * (a - 1) / 2 + b - a;
}

/// Rejects absurd sizes; the theory is used for far fewer tokens.
inline constexpr int max_tokens = 1000;

/// tau_ab = sqrt(2 - delta_ab) over the pairs; 1 to max_tokens tokens.
Eigen::VectorXd pair_scales(int tokens);

/// Converts outputs of draw() to the form of predict(): the exponential if they are logarithms.
Rows output_values(const Channel& channel, const ConstRowsRef& outputs);

/// to^l += sum_k root_lk z^k, with columns in blocks, one block per layer; root is a lower triangle.
void add_correlated(const Overlap& root, const Eigen::Ref<const Eigen::ArrayXXd>& z, Rows& to);

/// Throws InvalidArgument unless q and C are L x L with diagonals that an overlap and an error can have.
void check_parameters(const OrderParameters& parameters, int layers);

/// "output of sample 3, row 1", for messages.
std::string output_title(const char* what, Eigen::Index sample, int row);

/// Tolerance of check_outputs(): outputs may have been stored in single precision.
inline constexpr double output_tolerance = 1e-4;

/// The scalar order parameters of a channel with one layer.
struct ScalarParameters {
    explicit ScalarParameters(const OrderParameters& parameters, double variance_factor = 2);
    double overlap, error, total, variance;  ///< q, Q - q, Q, V = v (Q - q)
};

}  // namespace bayesaim::channels

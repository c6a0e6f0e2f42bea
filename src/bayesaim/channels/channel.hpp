// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>

#include "bayesaim/core/parallel.hpp"
#include "bayesaim/linalg/overlap.hpp"

/// Output channels: how the observed y depends on the attention indices h.
///
/// Conventions. Pairs a <= b of T tokens are ordered row by row, K = T(T+1)/2 of them; tau_ab = sqrt(2 -
/// delta_ab). Channels see htilde_ab = tau_ab h_ab, which before y is N(omega, V) with V = 2 (Q - q),
/// independently over the pairs. One sample is one row; outputs have T x T columns, row by row.
///
/// With L layers htilde, omega and g have L K columns, layer by layer: pair p of layer l is column l K + p. V
/// is L x L, the covariance between layers of one pair.
namespace bayesaim::channels {

using linalg::Overlap;
using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstRowsRef = Eigen::Ref<const Rows>;
using RowsRef = Eigen::Ref<Rows>;

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
    ThreadPool* pool = nullptr;  ///< none: the calling thread
};

/// An expectation over data; relative_error is one standard error divided by the value, 0 for quadratures.
struct ScorePower {
    Overlap value;
    double relative_error = 0;
    /// How far the value may jump between neighbouring parameters, relative; where integrals adapt.
    double roughness = 0;
};

/// Mean squared error of predicting the T x T output of a new sample.
struct GeneralizationError {
    double bayes_optimal = 0;  ///< E || E[g(h) | omega] - g(h) ||^2
    double plug_in = 0;        ///< E || g(omega) - g(h) ||^2
    double relative_error = 0;
};

class Channel {
  public:
    virtual ~Channel() = default;

    virtual std::string name() const = 0;
    virtual std::vector<std::pair<std::string, double>> parameters() const = 0;
    virtual int tokens() const = 0;           ///< T
    virtual int layers() const { return 1; }  ///< L
    int pairs() const { return tokens() * (tokens() + 1) / 2; }

    /// y ~ P(y | htilde). Sample i draws its noise from RandomStream(seed, Purpose::label_noise, first_sample
    /// + i).
    virtual void draw(const ConstRowsRef& index, std::uint64_t seed, std::uint64_t first_sample,
                      RowsRef outputs) const = 0;

    /// g = d/domega log Z(y, omega, V), Z = E[P(y | htilde)], htilde ~ N(omega, V); log_z too when its size
    /// is not 0, up to a term that depends on y only.
    virtual void score(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance,
                       RowsRef g, Eigen::Ref<Eigen::VectorXd> log_z) const = 0;

    /// E[y] over htilde ~ N(omega, V), without label noise: the best prediction of a new sample's output. V =
    /// 0 gives the output of omega itself, the plug-in rule. Probabilities for softmax, not their logarithms.
    virtual void predict(const ConstRowsRef& omega, const Overlap& variance, RowsRef prediction) const = 0;

    /// Whether draw() and score() have the logarithms of what predict() gives.
    virtual bool logarithmic_outputs() const { return false; }

    /// dg/domega of one sample, a symmetric matrix. By central differences of g unless a channel knows
    /// better.
    virtual Eigen::MatrixXd score_slope(const ConstRowsRef& output, const ConstRowsRef& omega,
                                        const Overlap& variance) const;

    /// g as score() gives it. Returns the L x L sum over samples and pairs of -dg^l/domega^k, whose mean over
    /// data is that of g^l g^k. From score_slope() unless a channel knows better.
    virtual Overlap score_with_slope(const ConstRowsRef& outputs, const ConstRowsRef& omega,
                                     const Overlap& variance, RowsRef g) const;

    /// F = E sum_pairs g g^T over data at these order parameters: state evolution is qhat = 4 alpha F.
    virtual ScorePower score_power(const OrderParameters& parameters,
                                   const Integration& integration) const = 0;

    /// I_out = E log Z, with dI_out/dq = F; up to a constant. Nothing where it is not known.
    virtual std::optional<double> information(const OrderParameters& parameters,
                                              const Integration& integration) const = 0;

    /// The number m of combinations of htilde that y fixes exactly while it tells nothing of the others: then
    /// F = m/V, and error zero is reached at finite alpha. Nothing for other channels.
    virtual std::optional<int> exact_observations() const { return std::nullopt; }

    /// Whether score_power and information are sampled (Integration counts) rather than quadratures.
    virtual bool sampled() const { return false; }

    virtual GeneralizationError generalization(const OrderParameters& parameters,
                                               const Integration& integration) const = 0;

  protected:
    /// Of the differences in score_slope, in units of sqrt(V): larger where g has an error of its own.
    virtual double slope_step() const { return 1e-4; }
};

/// Position of the pair (a, b), a <= b, among the K pairs of T tokens.
constexpr int pair_index(int a, int b, int tokens) { return a * tokens - a * (a - 1) / 2 + b - a; }

/// Far more tokens than any of the theory is used for; keeps sizes within reason.
inline constexpr int max_tokens = 1000;

/// tau_ab = sqrt(2 - delta_ab) over the pairs; 1 to max_tokens tokens.
Eigen::VectorXd pair_scales(int tokens);

/// The outputs of a channel as predict() gives them.
Rows output_values(const Channel& channel, const ConstRowsRef& outputs);

/// The scalar order parameters of a channel with one layer.
struct ScalarParameters {
    explicit ScalarParameters(const OrderParameters& parameters);
    double overlap, error, total, variance;  ///< q, Q - q, Q, V = 2 (Q - q)
};

}  // namespace bayesaim::channels

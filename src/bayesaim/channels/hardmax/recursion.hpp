// SPDX-License-Identifier: MIT
#pragma once
#include <array>
#include <span>
#include <vector>

#include <Eigen/Core>

namespace bayesaim::channels {

/// Likelihood of the hardmax labels of T tokens, exact for any T: a recursion over subsets in 1-D integrals.
///
/// Row a of the symmetric h has its largest entry in column j(a). With tau_ab = sqrt(2 - delta_ab) and
/// tau_ab h_ab ~ N(omega_ab, V) independent over the pairs a <= b,
///   log Z = log P( h_{a j(a)} >= h_ab for all a, b ),      g_ab = d log Z / d omega_ab.
///
/// The pair {a, j(a)} wins row a; every other pair is a loser. Given the winners' values u, a loser {a, b}
/// has to stay below the winners of its two rows, and a pair that wins only one of its rows has to stay below
/// the winner of the other. So only the order of the u matters. The integral over the smallest u comes last:
///   F_{}(t) = 1,   F_S(t) = sum_w int_t^inf K_{w,S}(u) F_{S-w}(u) du,   Z = F_W(-inf),
///   K_{w,S}(u) = N(u; omega_w/tau_w, V/tau_w^2) prod_p Phi((tau_p u - omega_p)/sqrt(V)),
/// with w over the winners in S that may be smallest, p over the losers that only w and members of S bound.
/// The gradient needs the same integrals from the other side,
///   A_W(t) = 1,    A_S(t) = sum_w int_{-inf}^t K_{w,S+w}(u) A_{S+w}(u) du:
/// A_S(u) K_{w,S}(u) F_{S-w}(u) / Z is the density of "w is at u, with exactly S-w above", and g is a mean
/// over this density.
///
/// All functions are kept as logarithms on Gauss panels around the most probable u, and a panel is integrated
/// as exponential x polynomial: cost and accuracy do not depend on V or on the depth of the tail.
/// Pinned by: HardmaxRecursion.LabelProbabilitiesSumToOne, TwoTokensAreTheBivariateNormal.
///
/// The object holds the workspace: evaluate() allocates nothing, and every thread needs its own object.
class HardmaxRecursion {
  public:
    static constexpr int max_tokens = 6;

    explicit HardmaxRecursion(int tokens);  ///< 2 <= tokens <= max_tokens

    int tokens() const { return tokens_; }
    int pairs() const { return tokens_ * (tokens_ + 1) / 2; }

    /// Whether Z > 0. The walk a -> j(a) never lowers the winner's value, and raises it unless {a, j(a)} wins
    /// both of its rows: labels are impossible if and only if the walk has a cycle of three or more tokens.
    bool possible(std::span<const int> labels) const;

    /// log Z of possible labels j(a) in 0..T-1. omega and g run over the pairs a <= b, row by row; if g is
    /// empty it is not computed. If Z is close to 1, the error of log Z is absolute.
    double evaluate(std::span<const int> labels, std::span<const double> omega, double variance,
                    std::span<double> g = {});

  private:
    static constexpr int panel_size = 16;  // 15 nodes, and the edge of the panel
    static constexpr int max_pairs = max_tokens * (max_tokens + 1) / 2;
    static constexpr unsigned max_subsets = 1u << max_tokens;
    using Subset = unsigned;  // a set of winners, one bit each
    using Panel = Eigen::Array<double, panel_size, 1>;

    struct Pair {
        int index = 0;     // in omega and g
        Subset above = 0;  // the winners it has to stay below
        double tau = 0;
        double centre = 0;  // omega/tau from a common origin, in units of sqrt(V), as are all values below
        double mode = 0;    // a winner: its value in the most probable h; a loser: its bound there
    };
    struct Winner : Pair {
        int first = 0, last = 0;  // panels that hold all of its mass
    };

    void read_labels(std::span<const int> labels);
    void place(std::span<const double> omega, double deviation);
    void find_modes();
    void lay_panels();
    void tabulate();
    double integrate_downwards();
    void integrate_upwards(double log_z, double deviation, std::span<double> g);

    Subset everyone() const { return (1u << winner_count_) - 1; }
    Panel log_factor(Subset set, int w, int panel) const;
    static auto at(auto& table, int panel, auto column) {
        return table.col(column).template segment<panel_size>(panel * panel_size);
    }

    int tokens_;
    int winner_count_ = 0, loser_count_ = 0, panel_count_ = 0;
    double panel_width_;
    double log_peak_ = 0;  // log of density(most probable h)/density(omega), the scale of all logarithms
    std::array<Winner, max_tokens> winners_;
    std::array<Pair, max_pairs> losers_;
    std::array<bool, max_subsets> reachable_{};      // by removing winner after winner, smallest first
    std::array<int, max_subsets> first_{}, last_{};  // panels where both A_S and F_S are positive
    std::vector<double> left_, width_, log_width_;   // of the panels
    Eigen::ArrayXd node_, scratch_;
    Eigen::ArrayXXd log_density_, log_below_, hazard_;  // points x winners, points x losers, points x losers
    Eigen::ArrayXXd log_upper_, log_lower_;             // log F_S, log A_S: points x subsets
};

}  // namespace bayesaim::channels

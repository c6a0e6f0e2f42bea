// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/channels/channel.hpp"

namespace bayesaim::channels {

/// A law on a lattice fine enough for interpolation to 1e-11.
struct TabulatedLaw {
    double step = 1;   ///< a quarter of the step of the integrals over it
    double start = 0;  ///< where the table starts; the distribution is 0 before the table and 1 after it
    Eigen::ArrayXd cdf, density;
};

/// The probabilities that each of T independent entries X_b + m_b is the largest of its row,
///   p_b = int f_b(x - m_b) prod_{j != b} F_j(x - m_j) dx,
/// where the diagonal entry of the row has one law and all other entries another. Computed by the trapezoidal
/// rule on a lattice: for any mean of an entry, one interpolation formula gives its law at all nodes.
/// Pinned by: WinningProbability.TwoNormalEntriesAreClosedForm, GumbelNoiseGivesTheMeanSoftmax.
class WinningProbability {
  public:
    /// Normal noise, as in hardmax: the deviation of the diagonal entry; its variance is `diagonal` times that of the
    /// others, 2 for tied attention.
    static WinningProbability normal(int tokens, double deviation, double diagonal = 2);
    /// Gumbel plus normal noise: then p is the mean of softmax(h), h normal with these deviations.
    static WinningProbability gumbel_and_normal(int tokens, double deviation, double diagonal = 2);

    /// p_b of the row whose diagonal entry is number `diagonal`; both of size T.
    void evaluate(const double* mean, int diagonal, double* probability);

  private:
    WinningProbability(int tokens, TabulatedLaw diagonal, TabulatedLaw other);

    int tokens_;
    TabulatedLaw diagonal_, other_;
    Eigen::ArrayXXd cdf_, density_;  // workspace: node, entry
    Eigen::ArrayXd before_, after_;
};

/// predict() of a channel whose output rows are such probabilities, with means scale * h.
void predict_winners(WinningProbability law, int tokens, double scale, const ConstRowsRef& omega,
                     RowsRef prediction);

}  // namespace bayesaim::channels

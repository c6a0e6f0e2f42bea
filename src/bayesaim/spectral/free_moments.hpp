// SPDX-License-Identifier: MIT
#pragma once
#include <span>
#include <vector>

#include "bayesaim/linalg/overlap.hpp"
#include "bayesaim/spectral/spectral_law.hpp"

namespace bayesaim::spectral {

/// Free cumulants kappa_1 .. kappa_count of a law. Moments of the centred law come from its moment transform
/// on a circle around the support, m_k = mean over angles of z^k M(z); then kappa_n = m_n - sum_{s<n} kappa_s
/// [x^(n-s)] (1 + sum_k m_k x^k)^s. kappa_1 is the mean; the other cumulants do not depend on it.
/// Pinned by: FreeCumulants.AreThoseOfTiedAttention.
std::vector<double> free_cumulants(const SpectralLaw& law, int count);

/// A word: letter i stands for the matrix of layer i.
using Word = std::vector<int>;

/// Limits for large d of (1/d) Tr of words in the centred matrices
///   X_i = S_i - kappa1_i + N_i,   S_i free of one another, N = Gaussian with covariance Delta_ij x GOE.
///
/// Every block of a non-crossing partition is a cumulant of one layer, or a pair of noises. Let i be the
/// first letter of w = i a_2 .. a_n, and B_k(i; v) the sum over the partitions in which a block of S_i that
/// already has k letters continues in v. Then
///   m(w) = B_1(i; a_2 .. a_n) + sum_p Delta_{i a_p} m(a_2 .. a_{p-1}) m(a_{p+1} .. a_n)
///   B_k(i; v) = kappa_k m(v) + sum_{p: v_p = i} m(v_1 .. v_{p-1}) B_{k+1}(i; v_{p+1} ..)
/// All words up to a length are tabulated, shortest first.
class FreeMoments {
  public:
    /// cumulants[i][n - 1] = kappa_n of layer i for n up to `longest`; kappa_1 is not used.
    FreeMoments(std::span<const std::vector<double>> cumulants, const linalg::Overlap& noise_covariance,
                int longest);

    double moment(const Word& word) const;                    ///< tr(w)
    double signal_moment(int layer, const Word& word) const;  ///< tr((S_layer - kappa1) w)

    /// (1/d^2) divergence of w with respect to the noisy matrix of a layer: the sum of m(before) m(after)
    /// over the places of its letter in w.
    double divergence(int layer, const Word& word) const;

  private:
    std::size_t position(int length, std::size_t code) const {
        return first_[static_cast<std::size_t>(length)] + code;
    }
    std::size_t code(const Word& word, int longest) const;
    std::vector<double>& block(int size, int layer) {
        const int place = (size - 1) * layers_ + layer;
        return blocks_[static_cast<std::size_t>(place)];
    }
    double part(int length, std::size_t word, int begin, int end) const;
    void fill(const std::vector<double>& kappa, int layer, int size, int length);

    int layers_, longest_;
    linalg::Overlap noise_;
    std::vector<std::size_t> powers_, first_;  // L^n; where words of length n begin
    std::vector<double> moments_;              // by length, then by the word read as a number in base L
    std::vector<std::vector<double>> blocks_;  // B_k(i; v) under (k - 1) L + i, by the place of v
};

}  // namespace bayesaim::spectral

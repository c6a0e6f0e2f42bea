// SPDX-License-Identifier: MIT
#pragma once
#include <vector>

#include <Eigen/Core>

#include "bayesaim/linalg/overlap.hpp"

namespace bayesaim::channels {

/// Posterior of the indices of two layers of two tokens, in the coordinates that count,
///   p = (h11 - h22)/sqrt(2),   r = (h11 - 2 h12 + h22)/2        (the two rows of informed_directions(2)).
struct TwoLayerMoments {
    Eigen::Vector2d mean[2];  ///< of (p, r), first and second layer
    double covariance[3];     ///< sum over p and r of Cov(1, 1), Cov(1, 2), Cov(2, 2)
    double log_z = 0;
    double error = 0;  ///< estimated, of the mean in posterior deviations
};

/// The integral over layer 1 that is left when y = softmax_beta(H_2) is known, m_a = log(y_ab/y_aa)/beta.
/// With u_1 = h12 - h11, u_2 = h12 - h22, s the logistic function, a = s(beta u_1), b = s(beta u_2) of layer
/// 1 and delta = c + 1 - a - b (det B = (c+1) delta), layer 2 is
///   u_1 = [m_1 (c+1-b) + m_2 a]/((c+1) delta^2),   u_2 = [m_1 b + m_2 (c+1-a)]/((c+1) delta^2),
/// and with z = (h^1 - omega^1)/sqrt(V_11), k = V_12/V_11
///   Z = int dz N(z) N(h^2; omega^2 + k (h^1 - omega^1), V_22 - k V_12) |delta|^-3.
///
/// Zoomed trapezoidal rule: a coarse grid of cells over |z| <= 7.5, those whose bound on the integrand is
/// within e^-cut of the maximum kept, their bounding box the next region; then the trapezoidal rule there,
/// which converges geometrically, refined until the rule on every other node agrees. Both logistic functions
/// are products of functions of p and of r: no exponential per node.
///
/// For c < 1 the curve delta = 0, r = r0(p), cuts the plane; next to it the integrand falls like
/// exp(-const/delta^4). Each side is integrated on its own with r = r0(p) +- sqrt(V_11) log(1 + e^t).
/// Pinned by: TwoLayerPosterior.*.
class TwoLayerPosterior {
  public:
    struct Options {
        int coarse_cells = 23;
        int nodes = 33;        ///< a side, of the first rule
        int most_nodes = 257;  ///< of the last; refinement doubles the number of steps
        double cut = 20;
        double tolerance = 1e-4;  ///< of the error
    };

    TwoLayerPosterior(double beta, double residual, const Options& options);
    TwoLayerPosterior(double beta, double residual) : TwoLayerPosterior(beta, residual, Options()) {}

    /// omega[l] = (p, r) of layer l. Not const: it works in memory of its own.
    TwoLayerMoments operator()(const Eigen::Vector2d& m, const Eigen::Vector2d omega[2],
                               const linalg::Overlap& variance);

  private:
    /// Which part of the plane: all of it, or one side of the curve delta = 0.
    enum class Side { both, above, below };
    struct Box {
        double low[2], high[2];
        double area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
    };
    struct Problem;
    struct Sums;

    double curve(double p) const;  // r0(p)
    void place(const Problem& problem, Side side, const Box& box, int first_count, int second_count,
               bool even_first);
    double log_density(const Problem& problem, Side side, double first, double second) const;
    double climb(const Problem& problem, Side side, const Box& box, double first, double second) const;
    void evaluate_cells(const Problem& problem, double& highest, int& first, int& second);
    bool zoom(const Problem& problem, Side side, Box& box, double& best);
    Box starting_box(const Problem& problem, Side side) const;
    Sums trapezoid(const Problem& problem, Side side, const Box& box, double best, int nodes);
    Sums integrate(const Problem& problem, Side side);

    /// Numbers that are treated together, in vector registers. Their number is fixed, so that results do not
    /// depend on where arrays happen to lie.
    using Chunk = Eigen::Array<double, 8, 1>;
    struct Node {  // along the first axis
        double p, r0, scale[2];
    };
    struct Terms;
    Terms terms(const Problem& problem, const Node& node, std::size_t chunk) const;

    double beta_, residual_;
    Options options_;
    std::vector<Node> first_;
    std::vector<Chunk> r_, scale_, jacobian_;  // along the second axis
    // At the nodes of the coarse grid: the logarithm of the integrand without the Gaussian of layer 2, and
    // the residual of layer 2.
    std::vector<double> base_, e1_, e2_;
};

}  // namespace bayesaim::channels

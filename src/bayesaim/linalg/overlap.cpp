// SPDX-License-Identifier: MIT
#include "bayesaim/linalg/overlap.hpp"

#include <algorithm>
#include <cmath>

#include <Eigen/Dense>

namespace bayesaim::linalg {
namespace {

/// Eigen 3.4 does not compile the eigendecomposition of matrices with DontAlign.
using Aligned = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor, max_layers, max_layers>;

}  // namespace

Overlap symmetric_part(const Overlap& matrix) { return 0.5 * (matrix + matrix.transpose()); }

Overlap inverse(const Overlap& matrix) {
    if (matrix.rows() == 1) return scalar_overlap(1 / matrix(0, 0));
    return Aligned(matrix).inverse();
}

bool positive_definite(const Overlap& symmetric) {
    return symmetric.allFinite() && Eigen::LLT<Aligned>(Aligned(symmetric)).info() == Eigen::Success;
}

double smallest_eigenvalue(const Overlap& symmetric) {
    return Eigen::SelfAdjointEigenSolver<Aligned>(Aligned(symmetric), Eigen::EigenvaluesOnly).eigenvalues()[0];
}

Overlap with_eigenvalues_above(const Overlap& symmetric, double bound) {
    if (symmetric.rows() == 1) return scalar_overlap(std::max(symmetric(0, 0), bound));
    const Eigen::SelfAdjointEigenSolver<Aligned> solver{Aligned(symmetric)};
    if (solver.eigenvalues()[0] >= bound) return symmetric;
    return solver.eigenvectors() * solver.eigenvalues().cwiseMax(bound).asDiagonal() *
           solver.eigenvectors().transpose();
}

Overlap lower_root(const Overlap& symmetric) {
    Overlap root = Overlap::Zero(symmetric.rows(), symmetric.cols());
    for (Eigen::Index j = 0; j < symmetric.cols(); ++j) {
        const double rest = symmetric(j, j) - root.row(j).head(j).squaredNorm();
        if (rest <= 1e-14 * symmetric(j, j)) continue;
        root(j, j) = std::sqrt(rest);
        for (Eigen::Index i = j + 1; i < symmetric.rows(); ++i) {
            const double largest = std::sqrt(std::max(symmetric(i, i) - root.row(i).head(j).squaredNorm(), 0.0));
            const double entry = (symmetric(i, j) - root.row(i).head(j).dot(root.row(j).head(j))) / root(j, j);
            root(i, j) = std::clamp(entry, -largest, largest);
        }
    }
    return root;
}

Eigen::VectorXd solve(const Overlap& positive, const Eigen::VectorXd& right_side) {
    return Aligned(positive).ldlt().solve(right_side);
}

Eigen::VectorXd solve_linear(const Eigen::MatrixXd& matrix, const Eigen::VectorXd& right_side) {
    return matrix.partialPivLu().solve(right_side);
}

}  // namespace bayesaim::linalg

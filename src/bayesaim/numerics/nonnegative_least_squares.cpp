// SPDX-License-Identifier: MIT
#include "bayesaim/numerics/nonnegative_least_squares.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "bayesaim/core/checks.hpp"

namespace bayesaim::numerics {
namespace {

using Eigen::Index;

class ActiveSet {
  public:
    ActiveSet(const Eigen::MatrixXd& matrix, const Eigen::VectorXd& target)
        : a_(matrix.rows(), matrix.cols() + 1), scale_(matrix.colwise().norm()) {
        for (Index j = 0; j < matrix.cols(); ++j) {
            const double divisor = scale_[j] > 0 ? scale_[j] : 1;
            a_.col(j) = matrix.col(j) / divisor;
            if (scale_[j] > 0) free_.push_back(j);
        }
        a_.col(matrix.cols()) = target;
        x_.setZero(matrix.cols());
        length_ = target.norm();
    }

    Eigen::VectorXd solve() {
        // Each round lowers |A x - b|, so no passive set comes twice; the limit is for round-off.
        const Index limit = 10 * a_.cols();
        for (Index round = 0; round < limit && enter(); ++round) {
            while (!step()) {
            }
        }
        for (Index j = 0; j < x_.size(); ++j) x_[j] = scale_[j] > 0 ? x_[j] / scale_[j] : 0;
        return x_;
    }

  private:
    static constexpr double independent =
        1e-10;                                 // least part of a column outside the span of the passive ones
    static constexpr double descends = 1e-12;  // least cosine between a column and b - A x, times |b|

    auto target() { return a_.col(a_.cols() - 1); }
    Index rank() const { return static_cast<Index>(passive_.size()); }

    /// Moves the column with the steepest descent to the passive set; false if there is none.
    bool enter() {
        const Index below = a_.rows() - rank();
        if (below == 0) return false;
        std::vector<std::pair<double, Index>> slopes;
        for (const Index j : free_) {
            const double slope = a_.col(j).tail(below).dot(target().tail(below));
            if (slope > descends * length_) slopes.emplace_back(slope, j);
        }
        std::sort(slopes.begin(), slopes.end(), std::greater<>());
        for (const auto& [slope, j] : slopes) {
            if (!(a_.col(j).tail(below).norm() > independent)) continue;
            reflect(j);
            free_.erase(std::find(free_.begin(), free_.end(), j));
            passive_.push_back(j);
            return true;
        }
        return false;
    }

    /// The reflection that makes column j zero below its entry number rank(), for b and all columns that are
    /// free.
    void reflect(Index j) {
        const Index below = a_.rows() - rank();
        Eigen::VectorXd normal = a_.col(j).tail(below);
        const double diagonal = normal[0] > 0 ? -normal.norm() : normal.norm();
        normal[0] -= diagonal;
        normal /= normal.norm();
        const auto apply = [&](auto column) { column -= 2 * normal.dot(column) * normal; };
        for (const Index k : free_) {
            if (k != j) apply(a_.col(k).tail(below));
        }
        apply(target().tail(below));
        a_.col(j).tail(below).setZero();
        a_(rank(), j) = diagonal;
    }

    /// Removes the passive column at a place; the later ones, Hessenberg then, become triangular again.
    void leave(Index place) {
        const Index j = passive_[static_cast<std::size_t>(place)];
        x_[j] = 0;
        passive_.erase(passive_.begin() + place);
        free_.push_back(j);
        for (Index row = place; row < rank(); ++row) {
            const Index pivot = passive_[static_cast<std::size_t>(row)];
            const double p = a_(row, pivot), q = a_(row + 1, pivot), length = std::hypot(p, q);
            const double c = p / length, s = q / length;
            const auto rotate = [&](Index column) {
                const double upper = a_(row, column), lower = a_(row + 1, column);
                a_(row, column) = c * upper + s * lower;
                a_(row + 1, column) = c * lower - s * upper;
            };
            for (Index k = row; k < rank(); ++k) rotate(passive_[static_cast<std::size_t>(k)]);
            for (const Index k : free_) rotate(k);
            rotate(a_.cols() - 1);
            a_(row + 1, pivot) = 0;
        }
    }

    /// Goes towards the minimum over the passive set; false if it was stopped by x_j = 0, and such columns
    /// left.
    bool step() {
        Eigen::VectorXd z = target().head(rank());
        for (Index i = rank(); i-- > 0;) {
            const Index j = passive_[static_cast<std::size_t>(i)];
            z[i] /= a_(i, j);
            z.head(i) -= z[i] * a_.col(j).head(i);
        }
        double part = 1;
        Index first = -1;
        for (Index i = 0; i < rank(); ++i) {
            const double x = x_[passive_[static_cast<std::size_t>(i)]];
            if (!(z[i] > 0) && (first < 0 || x / (x - z[i]) < part)) {
                part = std::min(part, x / (x - z[i]));
                first = i;
            }
        }
        for (Index i = 0; i < rank(); ++i) {
            double& x = x_[passive_[static_cast<std::size_t>(i)]];
            x += part * (z[i] - x);
        }
        if (first < 0) return true;
        x_[passive_[static_cast<std::size_t>(first)]] = 0;
        for (Index i = rank(); i-- > 0;) {
            if (!(x_[passive_[static_cast<std::size_t>(i)]] > 0)) leave(i);
        }
        return false;
    }

    Eigen::MatrixXd a_;  // the scaled columns and, last, b; transformed
    Eigen::VectorXd scale_, x_;
    std::vector<Index> passive_, free_;
    double length_ = 0;
};

}  // namespace

Eigen::VectorXd nonnegative_least_squares(const Eigen::MatrixXd& matrix, const Eigen::VectorXd& target) {
    check_size("target of a least-squares problem", target.size(), matrix.rows());
    check_finite("largest entry of a least-squares problem", matrix.size() > 0 ? matrix.cwiseAbs().sum() : 0);
    check_finite("largest entry of its target", target.cwiseAbs().sum());
    return ActiveSet(matrix, target).solve();
}

}  // namespace bayesaim::numerics

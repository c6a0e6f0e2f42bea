// SPDX-License-Identifier: MIT
#include "bayesaim/losses/two_token_means.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/losses/softmax_step.hpp"
#include "bayesaim/numerics/quasi_monte_carlo.hpp"

namespace bayesaim::losses {
namespace {

constexpr Eigen::Index batch_size = 256;
using Array = Eigen::Array<double, batch_size, 1>;
using Kind = SoftmaxLoss::Kind;

constexpr double root_half = std::numbers::sqrt2 / 2;

/// Sums over nodes with weights.
enum { mass, curvature, signal, power, loss, sum_count };

/// Nodes whose steps are found together: Newton's method in vector registers. Nodes that it does not finish go to
/// TwoTokenStep, and so do all where a step has several stationary points.
class Batch {
  public:
    Batch(Kind kind, double beta, const Alignment& at, double variance)
        : kind_(kind),
          beta_(beta),
          at_(at),
          variance_(variance),
          one_(kind, beta),
          together_(one_.convex(variance)) {}

    void add(double weight, const double omega[2], const double target[2]) {
        weight_[size_] = weight;
        for (int a = 0; a < 2; ++a) {
            omega_[a][size_] = omega[a];
            target_[a][size_] = target[a];
        }
        if (++size_ == batch_size) flush();
    }

    /// The sums over all nodes so far.
    const Eigen::VectorXd& sums() {
        flush();
        return sums_;
    }

  private:
    struct Row {
        Array u, p, y, slope, curvature;
    };

    void flush() {
        if (size_ == 0) return;
        if (together_) {
            for (Array* array : {&weight_, &omega_[0], &omega_[1], &target_[0], &target_[1]})
                array->tail(batch_size - size_) = 0;
            solve_together();
        } else {
            for (Eigen::Index i = 0; i < size_; ++i) solve_alone(i);
        }
        size_ = 0;
    }

    void solve_alone(Eigen::Index i) {
        const double omega[2] = {omega_[0][i], omega_[1][i]}, target[2] = {target_[0][i], target_[1][i]};
        one_.solve(target, omega, variance_);
        StepSums step = one_.sums();
        if (!together_) {
            const double *slope = one_.slope(), g_omega = -slope[0] * omega[0] - slope[1] * omega[1],
                         g_teacher = -slope[0] * target[0] - slope[1] * target[1],
                         determinant = 2 * (at_.self_overlap * at_.total - at_.overlap * at_.overlap);
            step.curvature = (at_.overlap * g_teacher - at_.total * g_omega) / determinant;
            step.signal = (at_.self_overlap * g_teacher - at_.overlap * g_omega) / determinant;
        }
        const double values[sum_count] = {1, step.curvature, step.signal, step.power, step.loss};
        for (int k = 0; k < sum_count; ++k) sums_[k] += weight_[i] * values[k];
    }

    Array sigmoid(const Array& x) const { return 1 / (1 + (-beta_ * x).exp()); }

    void differentiate(Row& row) const {
        row.p = sigmoid(row.u);
        row.curvature = row.p * (1 - row.p);  // for now
        if (kind_ == Kind::cross_entropy) {
            row.slope = beta_ * (row.p - row.y);
            row.curvature *= beta_ * beta_;
        } else {
            row.slope = 2 * beta_ * (row.p - row.y) * row.curvature;
            row.curvature *= 2 * beta_ * beta_ * (row.curvature + (row.p - row.y) * (1 - 2 * row.p));
        }
    }

    /// Newton on u - omega + V G l'(u) = 0. A step may not cross the transition of a sigmoid.
    void solve_together() {
        constexpr int most_steps = 20;
        const double v = variance_, guess = 0.2 * v * beta_ * beta_;
        for (int a = 0; a < 2; ++a) {
            row_[a].u = (omega_[a] + guess * target_[a]) / (1 + guess);
            row_[a].y = sigmoid(target_[a]);
        }
        Array length = Array::Zero();
        for (int step = 0; step < most_steps; ++step) {
            for (Row& row : row_) differentiate(row);
            const auto& [first, second] = row_;
            const Array r = first.u - omega_[0] + v * (1.5 * first.slope + 0.5 * second.slope),
                        s = second.u - omega_[1] + v * (0.5 * first.slope + 1.5 * second.slope);
            const Array determinant = 1 + 1.5 * v * (first.curvature + second.curvature) +
                                      2 * v * v * first.curvature * second.curvature;
            Array x = ((1 + 1.5 * v * second.curvature) * r - 0.5 * v * second.curvature * s) / determinant,
                  y = ((1 + 1.5 * v * first.curvature) * s - 0.5 * v * first.curvature * r) / determinant;
            length = x.abs().max(y.abs());
            const Array part = (3 / (beta_ * length)).min(1);
            row_[0].u -= part * x;
            row_[1].u -= part * y;
            length /= 1 + row_[0].u.abs().max(row_[1].u.abs());
            if (length.maxCoeff() <= TwoTokenStep::small_step) break;
        }
        for (Row& row : row_) differentiate(row);
        for (Eigen::Index i = 0; i < size_; ++i) {
            if (length[i] <= TwoTokenStep::small_step) continue;
            solve_alone(i);
            weight_[i] = 0;
        }
        add_all();
    }

    /// The sums of TwoTokenStep::sums() for all nodes.
    void add_all() {
        const auto& [first, second] = row_;
        const double v = variance_;
        const Array &a = first.curvature, &b = second.curvature;
        const Array trace = 1.5 * (a + b), det = 2 * a * b, whole = 1 + v * trace + v * v * det;
        Array mixed[2], value = Array::Zero();
        for (int i = 0; i < 2; ++i) {
            const Row& row = row_[i];
            mixed[i] = beta_ * beta_ * row.y * (1 - row.y);
            if (kind_ == Kind::cross_entropy) {
                const Array from = beta_ * target_[i], to = beta_ * row.u;
                value += softplus(to) - softplus(from) - row.y * (to - from);
            } else {
                mixed[i] *= 2 * row.p * (1 - row.p);
                value += (row.p - row.y).square();
            }
        }
        const auto sum = [&](const Array& values) { return (weight_ * values).sum(); };
        sums_[mass] += weight_.sum();
        sums_[curvature] += sum((trace + 2 * v * det) / whole);
        sums_[signal] += sum((1.5 * (mixed[0] + mixed[1]) + 2 * v * (b * mixed[0] + a * mixed[1])) / whole);
        sums_[power] +=
            sum(1.5 * (first.slope.square() + second.slope.square()) + first.slope * second.slope);
        sums_[loss] += sum(value);
    }

    static Array softplus(const Array& x) { return x.max(0) + (1 + (-x.abs()).exp()).log(); }

    Kind kind_;
    double beta_;
    Alignment at_;
    double variance_;
    TwoTokenStep one_;
    bool together_;
    Eigen::Index size_ = 0;
    Array weight_, omega_[2], target_[2];
    Row row_[2];
    Eigen::VectorXd sums_ = Eigen::VectorXd::Zero(sum_count);
};

/// u_1,2 of the combinations s and t
void add_node(Batch& batch, const Roots& roots, double weight, double s, double t, double x, double y) {
    const double omega[2] = {roots.omega * (s + root_half * t), roots.omega * (s - root_half * t)};
    const double sum = roots.shared * s + roots.rest * x,
                 difference = root_half * (roots.shared * t + roots.rest * y);
    const double target[2] = {sum + difference, sum - difference};
    batch.add(weight, omega, target);
}

/// Of |x|^2: a mass of 1e-9 is beyond.
constexpr double reach = 48;

/// Signs of s and of t do not matter: both sums start at half a step.
Eigen::VectorXd trapezoidal_sums(Batch& batch, const Roots& roots, double step) {
    const int side = static_cast<int>(std::ceil(std::sqrt(reach) / step));
    const auto node = [&](int k) { return (k + 0.5) * step; };
    std::vector<double> weights;  // of the nodes -side to side - 1
    for (int k = -side; k < side; ++k) weights.push_back(std::exp(-0.5 * node(k) * node(k)));
    const auto weight = [&](int k) { return weights[static_cast<std::size_t>(k + side)]; };
    for (int i = 0; i < side; ++i) {
        for (int j = 0; j < side; ++j) {
            const double first = node(i) * node(i) + node(j) * node(j);
            if (first > reach) break;
            for (int k = -side; k < side; ++k) {
                const double second = first + node(k) * node(k);
                if (second > reach) continue;
                for (int l = -side; l < side; ++l) {
                    if (second + node(l) * node(l) <= reach)
                        add_node(batch, roots, weight(i) * weight(j) * weight(k) * weight(l), node(i),
                                 node(j), node(k), node(l));
                }
            }
        }
    }
    return batch.sums();
}

}  // namespace

Roots::Roots(const Alignment& at)
    : omega(std::sqrt(2 * at.self_overlap)),
      shared(at.self_overlap > 0 ? at.overlap * std::sqrt(2 / at.self_overlap) : 0),
      rest(std::sqrt(std::max(2 * at.total - shared * shared, 0.0))) {}

ProximalMeans two_token_means(Kind kind, double beta, const Alignment& at, double variance,
                              const Integration& integration) {
    check_at_least("shifts of the integration", integration.shifts, 2);
    check_at_least("points of the integration", integration.points, 1);
    const Roots roots(at);
    const double deviation =
        beta * std::sqrt(1.5) * std::max(roots.omega, std::hypot(roots.shared, roots.rest));
    constexpr double default_points = 128, points_per_point = 256;
    const double points = points_per_point * integration.shifts * integration.points;
    const bool convex = TwoTokenStep(kind, beta).convex(variance);
    // Of a ball in four dimensions with `most` nodes in a quarter of it
    const auto step_of = [](double most) {
        return std::pow(0.125 * std::pow(std::numbers::pi * reach, 2) / most, 0.25);
    };
    const double exact = std::min(0.55, 1.7 / deviation) *
                         std::pow(default_points / static_cast<double>(integration.points), 0.25),
                 step = convex ? std::max(exact, step_of(2 * points)) : exact;
    if (convex ? step < 4 / deviation : step > step_of(points)) {
        Batch batch(kind, beta, at, variance);
        const Eigen::VectorXd sums = trapezoidal_sums(batch, roots, step) / batch.sums()[mass];
        return {sums[curvature], sums[signal], sums[power], sums[loss], 0};
    }
    const numerics::ShiftedSobol sobol(4, integration.shifts,
                                       static_cast<std::size_t>(points_per_point * integration.points),
                                       integration.seed);
    const auto estimates = sobol.averages(
        sum_count, 4096,
        [&](const Eigen::ArrayXXd& x, std::size_t, Eigen::VectorXd& sums) {
            Batch batch(kind, beta, at, variance);
            for (Eigen::Index i = 0; i < x.rows(); ++i)
                add_node(batch, roots, 1, x(i, 0), x(i, 1), x(i, 2), x(i, 3));
            sums += batch.sums();
        },
        integration.pool);
    ProximalMeans means{estimates[curvature].value, estimates[signal].value, estimates[power].value,
                        estimates[loss].value, 0};
    for (const auto& estimate : estimates)
        means.relative_error =
            std::max(means.relative_error, std::abs(estimate.standard_error / estimate.value));
    return means;
}

}  // namespace bayesaim::losses

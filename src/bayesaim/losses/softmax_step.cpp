// SPDX-License-Identifier: MIT
#include "bayesaim/losses/softmax_step.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "bayesaim/channels/channel.hpp"
#include "bayesaim/linalg/decompositions.hpp"

namespace bayesaim::losses {
namespace {

constexpr int max_steps = 100;
constexpr double infinity = std::numeric_limits<double>::infinity();

double sigmoid(double x) {
    const double e = std::exp(-std::abs(x));
    return (x >= 0 ? 1 : e) / (1 + e);
}

/// log(1 + e^x)
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

/// The start between omega and the teacher: a step of curvature beta^2/5.
double first_guess(double omega, double target, double variance, double beta) {
    const double t = 0.2 * variance * beta * beta;
    return (omega + t * target) / (1 + t);
}

}  // namespace

// ---- two tokens -------------------------------------------------------------------------------------------

void TwoTokenStep::derivatives(double u, double y, double& slope, double& curvature) const {
    const double p = sigmoid(beta_ * u), spread = p * (1 - p);
    if (kind_ == SoftmaxLoss::Kind::cross_entropy) {
        slope = beta_ * (p - y);
        curvature = beta_ * beta_ * spread;
    } else {
        slope = 2 * beta_ * (p - y) * spread;
        curvature = 2 * beta_ * beta_ * spread * (spread + (p - y) * (1 - 2 * p));
    }
}

double TwoTokenStep::value_at(const double u[2]) const {
    double sum = 0;
    for (int a = 0; a < 2; ++a) {
        if (kind_ == SoftmaxLoss::Kind::cross_entropy) {
            const double from = beta_ * target_[a], to = beta_ * u[a];
            sum += softplus(to) - softplus(from) - y_[a] * (to - from);
        } else {
            const double residual = sigmoid(beta_ * u[a]) - y_[a];
            sum += residual * residual;
        }
    }
    return sum;
}

/// ell(u) + (u - omega)' G^-1 (u - omega)/(2V),  G^-1 = [[3/4, -1/4], [-1/4, 3/4]]
double TwoTokenStep::merit(const double u[2]) const {
    const double a = u[0] - omega_[0], b = u[1] - omega_[1];
    return value_at(u) + (0.75 * (a * a + b * b) - 0.5 * a * b) / (2 * variance_);
}

/// Newton with halved steps, none longer than `longest`. Where the Hessian is not positive its indefinite part is left out.
void TwoTokenStep::descend(double u[2], double longest) const {
    double value = merit(u);
    for (int step = 0; step < max_steps; ++step) {
        double slope[2], curvature[2];
        for (int a = 0; a < 2; ++a) derivatives(u[a], y_[a], slope[a], curvature[a]);
        const double x = (u[0] - omega_[0]) / variance_, y = (u[1] - omega_[1]) / variance_;
        const double gradient[2] = {slope[0] + 0.75 * x - 0.25 * y, slope[1] + 0.75 * y - 0.25 * x};
        const double off = -0.25 / variance_;
        double first = curvature[0] + 0.75 / variance_, second = curvature[1] + 0.75 / variance_;
        if (!(first > 0 && first * second > off * off)) {
            first = std::max(curvature[0], 0.0) + 0.75 / variance_;
            second = std::max(curvature[1], 0.0) + 0.75 / variance_;
        }
        const double determinant = first * second - off * off;
        const double move[2] = {-(second * gradient[0] - off * gradient[1]) / determinant,
                                -(first * gradient[1] - off * gradient[0]) / determinant};
        const double length = std::abs(move[0]) + std::abs(move[1]),
                     size = 1 + std::abs(u[0]) + std::abs(u[1]);
        double part = std::min(1.0, longest / length);
        double next[2] = {u[0] + part * move[0], u[1] + part * move[1]};
        // Close to the minimum the merit is roundoff, and a whole step is right.
        if (length > 1e-3 * size) {
            double next_value = merit(next);
            while (!(next_value <= value) && part > 1e-6) {
                part *= 0.5;
                for (int a = 0; a < 2; ++a) next[a] = u[a] + part * move[a];
                next_value = merit(next);
            }
            value = next_value;
        }
        u[0] = next[0];
        u[1] = next[1];
        if (length * part <= small_step * size) break;
    }
}

/// The least second derivative of (sigma(beta u) - y)^2 is -0.12005 beta^2, at y = 0 or 1; the least of the quadratic part
/// is 1/(2V).
bool TwoTokenStep::convex(double variance) const {
    return kind_ == SoftmaxLoss::Kind::cross_entropy || 0.1201 * beta_ * beta_ * variance <= 0.5;
}

/// The place between u and the target where the square loss of a row is steepest, p = sigma(beta u) with
/// d/dp (y - p) p (1 - p) = 0; none if u is beyond it.
std::optional<double> TwoTokenStep::steepest(int a, double from) const {
    const double y = y_[a], root = std::sqrt((1 + y) * (1 + y) - 3 * y);
    // The roots of 3 p^2 - 2 (1 + y) p + y
    const double larger = (1 + y + root) / 3, p = target_[a] > from ? y / (3 * larger) : larger;
    const double u = std::log(p / (1 - p)) / beta_;
    if ((u - from) * (target_[a] - u) > 0) return u;
    return std::nullopt;
}

/// The square loss of a row has a valley around the target and is flat on both sides of it; its slope has one peak on each
/// side. So each of u_1 and u_2 stays next to omega or goes down into its valley from the steepest place, and draws the
/// other by a third of its way, perhaps beyond the valley of that one.
void TwoTokenStep::descend_everywhere() {
    double best = infinity;
    const auto start_at = [&](double first, double second) {
        double u[2] = {first, second};
        descend(u, 1 / beta_);
        if (const double value = merit(u); value < best) {
            best = value;
            std::copy(u, u + 2, u_);
        }
    };
    const auto second_after = [&](double first) {
        const double drawn = omega_[1] + (first - omega_[0]) / 3;
        start_at(first, drawn);
        if (const auto place = steepest(1, drawn)) start_at(first, *place);
    };
    second_after(omega_[0]);
    if (const auto first = steepest(0, omega_[0])) {
        second_after(*first);
        start_at(*first, target_[1]);
    }
    if (const auto second = steepest(1, omega_[1])) {
        const double drawn = omega_[0] + (*second - omega_[1]) / 3;
        start_at(drawn, *second);
        start_at(steepest(0, drawn).value_or(target_[0]), *second);
    }
}

void TwoTokenStep::solve(const double target[2], const double omega[2], double variance) {
    variance_ = variance;
    for (int a = 0; a < 2; ++a) {
        target_[a] = target[a];
        omega_[a] = omega[a];
        y_[a] = sigmoid(beta_ * target[a]);
        u_[a] = variance > 0 ? first_guess(omega[a], target[a], variance, beta_) : omega[a];
    }
    if (variance > 0) {
        convex(variance) ? descend(u_, infinity) : descend_everywhere();
    }
    for (int a = 0; a < 2; ++a) derivatives(u_[a], y_[a], slope_[a], curvature_[a]);
}

/// With X = G diag(l''), tr X (I + V X)^-1 = (tr X + 2 V det X)/(1 + V tr X + V^2 det X).
StepSums TwoTokenStep::sums() const {
    const double v = variance_, a = curvature_[0], b = curvature_[1];
    const double trace = 1.5 * (a + b), det = 2 * a * b, whole = 1 + v * trace + v * v * det;
    double mixed[2];  // -d l'/du* through y
    for (int i = 0; i < 2; ++i) {
        const double spread = y_[i] * (1 - y_[i]), p = sigmoid(beta_ * u_[i]);
        mixed[i] = beta_ * beta_ * spread * (kind_ == SoftmaxLoss::Kind::cross_entropy ? 1 : 2 * p * (1 - p));
    }
    StepSums sums;
    sums.curvature = (trace + 2 * v * det) / whole;
    sums.signal = (1.5 * (mixed[0] + mixed[1]) + 2 * v * (b * mixed[0] + a * mixed[1])) / whole;
    sums.power = 1.5 * (slope_[0] * slope_[0] + slope_[1] * slope_[1]) + slope_[0] * slope_[1];
    sums.loss = value_at(u_);
    return sums;
}

// ---- any number of tokens ---------------------------------------------------------------------------------

TokensStep::TokensStep(SoftmaxLoss::Kind kind, int tokens, double beta)
    : kind_(kind), tokens_(tokens), beta_(beta), scale_(channels::pair_scales(tokens)) {}

Eigen::VectorXd TokensStep::target_of(const double* log_outputs) const {
    const int last = tokens_ - 1;
    const auto phi = [&](int a, int b) {
        return log_outputs[a * tokens_ + b] - log_outputs[a * tokens_ + last];
    };
    Eigen::VectorXd target(scale_.size());
    for (int a = 0, p = 0; a < tokens_; ++a) {
        for (int b = a; b < tokens_; ++b, ++p)
            target[p] = scale_[p] * 0.5 * (phi(a, b) + phi(last, a) + phi(b, a) + phi(last, b)) / beta_;
    }
    return target;
}

double TokensStep::evaluate(const Eigen::VectorXd& z, Eigen::VectorXd& g, Eigen::MatrixXd* hessian) const {
    const Eigen::Index pairs = scale_.size();
    g.setZero(pairs);
    if (hessian != nullptr) hessian->setZero(pairs, pairs);
    double value = 0;
    Eigen::VectorXd p(tokens_), slope(tokens_);
    Eigen::MatrixXd curvature(tokens_, tokens_);
    for (int a = 0; a < tokens_; ++a) {
        const auto pair = [&](int b) { return channels::pair_index(a, b, tokens_); };
        for (int b = 0; b < tokens_; ++b) p[b] = beta_ * z[pair(b)] / scale_[pair(b)];
        const double largest = p.maxCoeff();
        const double log_sum = largest + std::log((p.array() - largest).exp().sum());
        // In the logits beta h of this row.
        if (kind_ == SoftmaxLoss::Kind::cross_entropy) {
            for (int b = 0; b < tokens_; ++b) value += y_(a, b) * (log_y_(a, b) - (p[b] - log_sum));
            p = (p.array() - log_sum).exp();
            slope = p - y_.row(a).transpose();
            if (hessian != nullptr) {
                curvature.noalias() = -p * p.transpose();
                curvature.diagonal() += p;
            }
        } else {
            p = (p.array() - log_sum).exp();
            const Eigen::VectorXd r = p - y_.row(a).transpose();
            value += 0.5 * r.squaredNorm();
            const double along = r.dot(p);
            slope = p.array() * (r.array() - along);
            if (hessian != nullptr) {
                // d(along)/d logit_c = p_c (p_c + r_c - sum_k p_k (p_k + r_k))
                const double sum = p.dot(p + r);
                const Eigen::VectorXd of_along = p.array() * (p.array() + r.array() - sum);
                curvature = -slope * p.transpose() - p * of_along.transpose();
                curvature -= p.cwiseProduct(p) * p.transpose();
                curvature.diagonal() += slope + p.cwiseProduct(p);
            }
        }
        for (int b = 0; b < tokens_; ++b) {
            g[pair(b)] -= beta_ * slope[b] / scale_[pair(b)];
            if (hessian == nullptr) continue;
            for (int c = 0; c < tokens_; ++c)
                (*hessian)(pair(b), pair(c)) +=
                    beta_ * beta_ * curvature(b, c) / (scale_[pair(b)] * scale_[pair(c)]);
        }
    }
    return value;
}

void TokensStep::descend(Eigen::VectorXd& z, double& merit) {
    Eigen::VectorXd g, next, unused;
    Eigen::MatrixXd hessian;
    const auto distance = [&](const Eigen::VectorXd& at) {
        return (at - omega_).squaredNorm() / (2 * variance_);
    };
    for (int step = 0; step < max_steps; ++step) {
        merit = evaluate(z, g, &hessian) + distance(z);
        const Eigen::VectorXd gradient = (z - omega_) / variance_ - g;
        Eigen::MatrixXd shifted = hessian;
        shifted.diagonal().array() += 1 / variance_;
        // A Hessian that is not positive gets a larger diagonal.
        for (double shift = 1e-3 * beta_ * beta_; !linalg::cholesky(shifted); shift *= 4)
            shifted.diagonal().array() += shift;
        const Eigen::VectorXd move = -linalg::solve_positive(shifted, gradient);
        const double length = move.norm(), size = 1 + z.norm();
        double part = 1;
        next = z + move;
        if (length > 1e-3 * size) {
            while (part > 1e-6 && !(evaluate(next, unused, nullptr) + distance(next) <= merit)) {
                part *= 0.5;
                next = z + part * move;
            }
        }
        z = next;
        if (length * part <= TwoTokenStep::small_step * size) break;
    }
    merit = evaluate(z, g, nullptr) + distance(z);
}

void TokensStep::solve(const double* log_outputs, const Eigen::VectorXd& target, const Eigen::VectorXd& omega,
                       double variance) {
    log_y_.resize(tokens_, tokens_);
    for (int a = 0; a < tokens_; ++a) {
        for (int b = 0; b < tokens_; ++b) log_y_(a, b) = log_outputs[a * tokens_ + b];
    }
    y_ = log_y_.array().exp();
    omega_ = omega;
    variance_ = variance;
    z_ = omega;
    if (variance > 0) {
        // The step leaves the direction tau alone, which no output shows.
        const Eigen::VectorXd shifted = target + scale_ * scale_.dot(omega - target) / scale_.squaredNorm();
        for (Eigen::Index p = 0; p < z_.size(); ++p)
            z_[p] = first_guess(omega[p], shifted[p], variance, beta_);
        double best = 0;
        descend(z_, best);
        if (kind_ == SoftmaxLoss::Kind::square) {
            for (const Eigen::VectorXd& start : {omega_, shifted}) {
                Eigen::VectorXd z = start;
                double merit = 0;
                descend(z, merit);
                if (merit < best) {
                    best = merit;
                    z_ = z;
                }
            }
        }
    }
    evaluate(z_, g_, &hessian_);
}

StepSums TokensStep::sums(bool with_signal) const {
    Eigen::VectorXd unused;
    StepSums sums;
    sums.loss = evaluate(z_, unused, nullptr);
    sums.power = g_.squaredNorm();
    // H is not symmetric to the last bit after rounding; solve_positive reads one triangle.
    Eigen::MatrixXd denominator = variance_ * hessian_;
    denominator.diagonal().array() += 1;
    sums.curvature = linalg::solve_general(denominator, hessian_).trace();
    if (with_signal) {
        // Cross-entropy: the gradient is beta (p - y), so that y enters as p does, and H* is H at the target.
        Eigen::MatrixXd teacher = Eigen::MatrixXd::Zero(hessian_.rows(), hessian_.cols());
        for (int a = 0; a < tokens_; ++a) {
            for (int b = 0; b < tokens_; ++b) {
                const int p = channels::pair_index(a, b, tokens_);
                for (int c = 0; c < tokens_; ++c) {
                    const int q = channels::pair_index(a, c, tokens_);
                    teacher(p, q) += beta_ * beta_ * ((b == c ? y_(a, b) : 0) - y_(a, b) * y_(a, c)) /
                                     (scale_[p] * scale_[q]);
                }
            }
        }
        sums.signal = linalg::solve_general(denominator, teacher).trace();
    }
    return sums;
}

}  // namespace bayesaim::losses

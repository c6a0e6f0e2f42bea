// SPDX-License-Identifier: MIT
#include "bayesaim/channels/posteriors/readout_posterior.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/numerics/quasi_monte_carlo.hpp"

namespace bayesaim::channels {
namespace {

constexpr double smallest_share = 1e-140;  // of a read-out: the square of its inverse is finite
constexpr double longest_logarithm = 340;  // of f: the square of f is finite
constexpr double nowhere = -std::numeric_limits<double>::infinity();  // log 0

/// (p, r) of u_1 = h12 - h11, u_2 = h12 - h22, and back.
Eigen::Vector2d to_coordinates(const Eigen::Vector2d& u) {
    return {half_root * (u[1] - u[0]), -0.5 * (u[0] + u[1])};
}
Eigen::Vector2d from_coordinates(const Eigen::Vector2d& h) {
    return {-half_root * h[0] - h[1], half_root * h[0] - h[1]};
}

/// B, the product of some layers of two tokens: its row sum and its off-diagonal entries.
struct Mixing {
    double rows = 1, across[2] = {0, 0};

    double determinant() const { return rows - across[0] - across[1]; }  // over the row sum
    double log_determinant() const { return std::log(std::abs(determinant())); }
    /// log |dH/dh| in the plane that counts.
    double log_volume() const { return 3 * log_determinant() + std::log(rows); }

    /// (p, r) of h = B^-1 H B^-T from the u of H, and back.
    Eigen::Vector2d to_index(const Eigen::Vector2d& u) const {
        const double d = determinant(), scale = 1 / (rows * d * d);
        return to_coordinates({scale * (u[0] * (rows - across[1]) + u[1] * across[0]),
                               scale * (u[0] * across[1] + u[1] * (rows - across[0]))});
    }
    Eigen::Vector2d from_index(const Eigen::Vector2d& h) const {
        const Eigen::Vector2d u = from_coordinates(h);
        return determinant() * Eigen::Vector2d((rows - across[0]) * u[0] - across[0] * u[1],
                                               (rows - across[1]) * u[1] - across[1] * u[0]);
    }

    /// B <- (total - 1 + A) B
    void multiply(double total, double a, double b) {
        const double first = (total - a) * across[0] + a * (rows - across[1]);
        across[1] = (total - b) * across[1] + b * (rows - across[0]);
        across[0] = first;
        rows *= total;
    }
};

/// A share a between 0 and min(1, 1/first, 1/second), and its distance to each bound.
struct BoundedShare {
    double value, to_one;        // a, 1 - a
    double to_first, to_second;  // 1/first - a, 1/second - a
    double logit;                // log a/(1-a)
    double slope;                // -d logit / d log f
};

/// 1/a as a smooth function of f from 0 to infinity that grows from max(1, X, Y), X = first, Y = second: the
/// larger root c of (c - X)(c - Y) = f^2, then the larger root of (1/a - c)(1/a - 1) = f^2. Far from the
/// bounds 1/a - 1 is proportional to f, as for a logistic function of -log f; differences are sums of
/// positive terms.
BoundedShare bounded_share(double f, double first, double second) {
    const double square = f * f;
    struct Roots {
        double own, other, middle;
    };
    const auto roots = [&](double gap) -> Roots {  // r and r + gap with r (r + gap) = f^2
        const double half = 0.5 * std::abs(gap), middle = std::sqrt(half * half + square);
        const double larger = half + middle, smaller = square / larger;
        return gap > 0 ? Roots{smaller, larger, middle} : Roots{larger, smaller, middle};
    };
    const auto [above_first, above_second, inner] = roots(first - second);
    const double c = first + above_first;
    const auto [above_c, above_one, outer] = roots(c - 1);
    const double inverse = 1 + above_one;
    // d(1/a)/df, with dc/df = f/inner
    const double slope = (0.5 * above_one * f / inner + f) / outer;
    return {1 / inverse,
            above_one / inverse,
            (above_c + above_first) / (first * inverse),
            (above_c + above_second) / (second * inverse),
            -std::log(above_one),
            f * slope / above_one};
}

/// log f of a share below its bounds: (1/a - c)(1/a - 1) = (c - X)(c - Y) is quadratic in c.
double log_of_share(double share, double first, double second) {
    const double inverse = 1 / share, above = inverse - 1;
    const double half = 0.5 * (first + second - above);
    const double c = half + std::sqrt(std::max(half * half + above * inverse - first * second, 0.0));
    return 0.5 * std::log((inverse - c) * above);
}

/// The indices closest to omega, in deviations, that give a read-out: the Levenberg-Marquardt method with a
/// growing penalty, in z, h - omega = V^1/2 z.
class NearestIndices {
  public:
    NearestIndices(const Eigen::Vector2d& logits, const Eigen::VectorXd& omega,
                   const linalg::Overlap& variance, double beta, double total)
        : logits_(logits), omega_(omega), root_(linalg::lower_root(variance)), beta_(beta), total_(total) {}

    Eigen::VectorXd indices(const Eigen::VectorXd& z) const {
        Eigen::VectorXd h = omega_;
        for (Eigen::Index l = 0; l < root_.rows(); ++l) {
            for (Eigen::Index j = 0; j <= l; ++j) h.segment<2>(2 * l) += root_(l, j) * z.segment<2>(2 * j);
        }
        return h;
    }

    Eigen::VectorXd from(Eigen::VectorXd z) const {
        double penalty = 1, damping = 1e-2;
        Eigen::Vector2d miss = misses(z);
        Eigen::Matrix2Xd jacobian = derivative(z, miss);
        for (int iteration = 0; iteration < 60; ++iteration) {
            Eigen::MatrixXd normal = penalty * jacobian.transpose().lazyProduct(jacobian);
            normal.diagonal().array() += 1 + damping;
            const Eigen::VectorXd gradient = z + penalty * jacobian.transpose().lazyProduct(miss);
            const Eigen::VectorXd next = z - linalg::solve_positive(normal, gradient);
            const Eigen::Vector2d there = misses(next);
            const double before = z.squaredNorm() + penalty * miss.squaredNorm();
            if (next.squaredNorm() + penalty * there.squaredNorm() <= before) {
                z = next;
                miss = there;
                jacobian = derivative(z, miss);
                damping = std::max(damping / 5, 1e-8);
                penalty = std::min(3 * penalty, 1e9);
                if (penalty > 1e8 && miss.squaredNorm() < 1e-14) break;
            } else {
                damping *= 8;
            }
        }
        return z;
    }

  private:
    Eigen::Vector2d misses(const Eigen::VectorXd& z) const {
        const Eigen::VectorXd h = indices(z);
        Mixing mixing;
        const Eigen::Index last = root_.rows() - 1;
        for (Eigen::Index l = 0;; ++l) {
            const Eigen::Vector2d u = beta_ * mixing.from_index(h.segment<2>(2 * l));
            const double a = logistic(u[0]), b = logistic(u[1]);
            if (l < last) {
                mixing.multiply(total_, a, b);
                continue;
            }
            const double d = mixing.determinant();
            const double first = mixing.across[0] + a * d, second = mixing.across[1] + b * d;
            return Eigen::Vector2d(std::log(first / (mixing.rows - first)),
                                   std::log(second / (mixing.rows - second))) -
                   logits_;
        }
    }

    Eigen::Matrix2Xd derivative(const Eigen::VectorXd& z, const Eigen::Vector2d& at_z) const {
        constexpr double step = 1e-6;
        Eigen::Matrix2Xd result(2, z.size());
        Eigen::VectorXd moved = z;
        for (Eigen::Index i = 0; i < z.size(); ++i) {
            moved[i] = z[i] + step;
            result.col(i) = (misses(moved) - at_z) / step;
            moved[i] = z[i];
        }
        return result;
    }

    Eigen::Vector2d logits_;
    const Eigen::VectorXd& omega_;
    linalg::Overlap root_;
    double beta_, total_;
};

/// The integrand for one choice of the signs of delta.
class ReadoutIntegrand final : public numerics::ImportanceTarget {
  public:
    ReadoutIntegrand(const Eigen::Vector4d& shares, const Eigen::VectorXd& omega,
                     const linalg::Overlap& variance, double beta, double residual, unsigned negative)
        : layers_(static_cast<int>(variance.rows())),
          beta_(beta),
          total_(residual + 1),
          omega_(omega),
          variances_(variance.diagonal()),
          whitening_(linalg::inverse(linalg::lower_root(variance))),
          negative_(negative),
          across_{shares[1], shares[2]},
          stay_{shares[0], shares[3]} {
        for (int l = 0; l < layers_ - 1; ++l) {
            reference_norm_ += std::log(half_root / (2 * std::numbers::pi * variances_[l] * beta_ * beta_));
        }
    }

    int dimension() const override { return 2 * (layers_ - 1); }

    Logarithms at(const Eigen::VectorXd& x) const override {
        Chain chain(*this);
        double log_reference = reference_norm_;
        Eigen::VectorXd h(2 * layers_);
        for (int l = 0; l < layers_ - 1; ++l) {
            const Eigen::Vector2d free = chain.mixing.to_index(x.segment<2>(2 * l) / beta_);
            log_reference -= 0.5 * (free - omega_.segment<2>(2 * l)).squaredNorm() / variances_[l];
            if (!chain.take(x.segment<2>(2 * l), l, h)) return {nowhere, log_reference - chain.log_volumes};
        }
        chain.finish(h);
        double distance = 0;
        for (int l = 0; l < layers_; ++l) {
            Eigen::Vector2d z = Eigen::Vector2d::Zero();
            for (int j = 0; j <= l; ++j) {
                z += whitening_(l, j) * (h.segment<2>(2 * j) - omega_.segment<2>(2 * j));
            }
            distance += z.squaredNorm();
        }
        return {chain.log_density - 0.5 * distance, log_reference - chain.log_volumes};
    }

    /// Draws layer after layer from its prior, as if the read-out did not confine it.
    Eigen::VectorXd draw_reference(const Eigen::VectorXd& normal) const override {
        Chain chain(*this);
        Eigen::VectorXd x(normal.size()), h(2 * layers_);
        for (int l = 0; l < layers_ - 1; ++l) {
            const Eigen::Vector2d free =
                omega_.segment<2>(2 * l) + std::sqrt(variances_[l]) * normal.segment<2>(2 * l);
            x.segment<2>(2 * l) = beta_ * chain.mixing.from_index(free);
            if (!chain.take(x.segment<2>(2 * l), l, h)) {
                x.tail(x.size() - 2 * l - 2).setZero();
                break;
            }
        }
        return x;
    }

    /// Adds the x of these indices, if they are on this side of every delta = 0.
    void start_at(const Eigen::VectorXd& indices) {
        Chain chain(*this);
        Eigen::VectorXd x(dimension()), h(2 * layers_);
        for (int l = 0; l < layers_ - 1; ++l) {
            const Eigen::Vector2d u = beta_ * chain.mixing.from_index(indices.segment<2>(2 * l));
            for (const int i : {0, 1}) {
                const bool below = (negative_ >> l & 1U) != 0;
                double first = total_ * chain.across[i], second = total_ * chain.stay[1 - i];
                if (below) {
                    first = 1 - first;
                    second = 1 - second;
                }
                const double log_f = log_of_share(logistic(below ? -u[i] : u[i]), 1 / first, 1 / second);
                x[2 * l + i] = below ? log_f : -log_f;
            }
            if (!x.segment<2>(2 * l).allFinite() || !chain.take(x.segment<2>(2 * l), l, h)) return;
        }
        starts_.conservativeResize(dimension(), starts_.cols() + 1);
        starts_.rightCols(1) = x;
    }

    Eigen::MatrixXd starts() const override { return starts_; }

    Eigen::VectorXd indices(const Eigen::VectorXd& x) const {
        Chain chain(*this);
        Eigen::VectorXd h(2 * layers_);
        for (int l = 0; l < layers_ - 1; ++l) chain.take(x.segment<2>(2 * l), l, h);
        chain.finish(h);
        return h;
    }

    /// log of int dh^1 .. dh^L N(h; omega, V) delta(Y - Y(h)) / int dx exp(target).
    double log_norm() const {
        return 2 * whitening_.diagonal().array().log().sum() - layers_ * std::log(2 * std::numbers::pi) +
               layers_ * std::log(half_root / (beta_ * beta_));
    }

  private:
    /// The read-out without the layers taken off so far, and the product B of these layers.
    struct Chain {
        explicit Chain(const ReadoutIntegrand& of)
            : given(of), across{of.across_[0], of.across_[1]}, stay{of.stay_[0], of.stay_[1]} {}

        /// Takes off layer l, given its numbers x. Returns false if the read-out excludes them.
        bool take(const Eigen::Vector2d& x, int l, Eigen::VectorXd& h) {
            const double total = given.total_;
            const bool negative = (given.negative_ >> l & 1U) != 0;
            double share[2], own[2], other[2], slopes = 1;
            Eigen::Vector2d u;
            for (const int i : {0, 1}) {
                double first = total * std::max(across[i], smallest_share),
                       second = total * std::max(stay[1 - i], smallest_share);
                if (negative) {  // the same for 1 - a
                    first = 1 - first;
                    second = 1 - second;
                    if (!(first > 0 && second > 0)) return false;
                }
                const double log_f = negative ? x[i] : -x[i];
                if (log_f < -longest_logarithm) return false;
                // For very large f the logit is -log f plus a constant.
                const double excess = std::max(log_f - longest_logarithm, 0.0);
                const BoundedShare a = bounded_share(std::exp(log_f - excess), 1 / first, 1 / second);
                const double logit = a.logit - excess;
                share[i] = negative ? a.to_one : a.value;
                u[i] = (negative ? -logit : logit) / given.beta_;
                own[i] = a.to_first;
                other[i] = a.to_second;
                slopes *= a.slope;
            }
            h.segment<2>(2 * l) = mixing.to_index(u);
            const double log_volume = mixing.log_volume();
            log_volumes += log_volume;
            log_density += std::log(slopes) - log_volume;
            const double delta = own[0] + other[1];
            across[0] = own[0] / delta;
            stay[0] = other[1] / delta;
            across[1] = own[1] / delta;
            stay[1] = other[0] / delta;
            mixing.multiply(total, share[0], share[1]);
            return delta > 0;
        }

        /// The last layer: its attention is the remaining read-out.
        void finish(Eigen::VectorXd& h) {
            h.tail<2>() = mixing.to_index(
                {std::log(across[0] / stay[0]) / given.beta_, std::log(across[1] / stay[1]) / given.beta_});
            log_density -= mixing.log_volume() + 2 * mixing.log_determinant() +
                           std::log(across[0] * stay[0]) + std::log(across[1] * stay[1]);
        }

        const ReadoutIntegrand& given;
        double across[2], stay[2];  // M_12, M_21 and M_11, M_22
        Mixing mixing;
        double log_density = 0, log_volumes = 0;
    };

    int layers_;
    double beta_, total_;
    Eigen::VectorXd omega_, variances_;
    linalg::Overlap whitening_;  // V^-1/2, lower triangle
    unsigned negative_;          // bit l: delta < 0 in layer l
    double across_[2], stay_[2];
    double reference_norm_ = 0;  // log density of the reference at h = omega, |dH/dh| = 1
    Eigen::MatrixXd starts_;
};

int checked_layers(int layers) {
    check_between("layers of the posterior", layers, 2, linalg::max_layers);
    return layers;
}

}  // namespace

ReadoutPosterior::ReadoutPosterior(int layers, double beta, double residual, int points, std::uint64_t seed)
    : layers_(checked_layers(layers)),
      beta_(beta),
      residual_(residual),
      integral_(2 * (layers - 1), points, seed) {
    starts_ = numerics::normal_points(2 * layers, 4, seed + 2);
    starts_.col(0).setZero();  // omega itself
}

std::unique_ptr<numerics::ImportanceTarget> ReadoutPosterior::integrand(const Eigen::Vector4d& shares,
                                                                        const Eigen::VectorXd& omega,
                                                                        const linalg::Overlap& variance,
                                                                        unsigned negative) const {
    return std::make_unique<ReadoutIntegrand>(shares, omega, variance, beta_, residual_, negative);
}

LayerMoments ReadoutPosterior::operator()(const Eigen::Vector4d& outputs, const Eigen::VectorXd& omega,
                                          const linalg::Overlap& variance) const {
    check_size("coordinates of omega", omega.size(), 2 * layers_);
    check_size("layers of the variance", variance.rows(), layers_);
    const double total_share = residual_ + 1;
    const Eigen::Vector4d shares =
        (outputs / std::pow(total_share, layers_ - 1)).cwiseMax(smallest_share).cwiseMin(1);
    const NearestIndices nearest({std::log(shares[1] / shares[0]), std::log(shares[2] / shares[3])}, omega,
                                 variance, beta_, total_share);
    std::vector<Eigen::VectorXd> starts;
    for (Eigen::Index n = 0; n < starts_.cols(); ++n) {
        starts.push_back(nearest.indices(nearest.from(starts_.col(n))));
    }
    std::vector<numerics::WeightedPoints> samples;
    std::vector<ReadoutIntegrand> integrands;
    double largest = nowhere;
    const unsigned choices = residual_ < 1 ? 1U << (layers_ - 1) : 1U;
    for (unsigned negative = 0; negative < choices; ++negative) {
        integrands.emplace_back(shares, omega, variance, beta_, residual_, negative);
        for (const Eigen::VectorXd& start : starts) integrands.back().start_at(start);
        samples.push_back(integral_(integrands.back()));
        largest = std::max(largest, samples.back().log_integral);
    }
    std::vector<double> weights;
    std::vector<Eigen::VectorXd> shifts;  // h - omega
    double total = 0, squares = 0;
    Eigen::VectorXd mean = Eigen::VectorXd::Zero(2 * layers_);
    for (std::size_t s = 0; s < samples.size(); ++s) {
        const double part = std::exp(samples[s].log_integral - largest);
        if (!(part > 0)) continue;
        for (Eigen::Index n = 0; n < samples[s].weights.size(); ++n) {
            const double weight = part * samples[s].weights[n];
            if (!(weight > 0)) continue;
            weights.push_back(weight);
            shifts.push_back(integrands[s].indices(samples[s].points.col(n)) - omega);
            total += weight;
            squares += weight * weight;
            mean += weight * shifts.back();
        }
    }
    if (!(total > 0)) {  // all weights vanish: the prior
        return {.mean = omega,
                .covariance = 2 * variance,
                .log_z = nowhere,
                .error = 1,
                .effective_samples = 1,
                .adaptive = true};
    }
    mean /= total;
    LayerMoments result{.mean = omega + mean, .covariance = linalg::zero_overlap(layers_), .adaptive = true};
    for (std::size_t n = 0; n < weights.size(); ++n) {
        const Eigen::Matrix2Xd off = (shifts[n] - mean).reshaped(2, layers_);
        result.covariance += weights[n] / total * off.transpose().lazyProduct(off);
    }
    result.log_z = largest + std::log(total) + integrands.front().log_norm();
    result.effective_samples = total * total / squares;
    result.error = 1 / std::sqrt(result.effective_samples);
    return result;
}

}  // namespace bayesaim::channels

// SPDX-License-Identifier: MIT
#include "bayesaim/channels/posteriors/two_layer_posterior.hpp"

#include <limits>
#include <numbers>

namespace bayesaim::channels {
namespace {

constexpr double farthest = 7.5;       // |z|: e^-28 of the prior is left out
constexpr double most_inverse = 1e50;  // bound on 1/|delta|, where the integrand has vanished

/// Products of four of these do not overflow.
double bounded_exp(double x) { return std::exp(std::clamp(x, -170.0, 170.0)); }

double softplus(double t) { return std::max(t, 0.0) + std::log1p(std::exp(-std::abs(t))); }
double inverse_softplus(double x) { return x > 30 ? x : std::log(std::expm1(x)); }

/// The prior of layer 1, and the prior of layer 2 given layer 1: N(offset + k h^1, v).
struct Conditioned {
    Conditioned(const Eigen::Vector4d& both, const linalg::Overlap& covariance)
        : omega(both.head<2>()),
          variance(covariance(0, 0)),
          deviation(std::sqrt(variance)),
          k(covariance(0, 1) / variance),
          offset(both.tail<2>() - k * omega),
          rest(covariance(1, 1) - k * covariance(0, 1)) {}

    Eigen::Vector2d omega;
    double variance, deviation, k;
    Eigen::Vector2d offset;
    double rest;
};

LayerMoments moments_of(const ZoomSums& sums, const Eigen::Vector4d& omega, const linalg::Overlap& variance) {
    const Conditioned given(omega, variance);
    const auto& s = sums.full;
    const double k = given.k, nothing = -std::numeric_limits<double>::infinity();
    // If the integrand vanishes at all nodes: the prior.
    if (!(s[0] > 0)) return {.mean = omega, .covariance = 2 * variance, .log_z = nothing, .error = 1};
    LayerMoments result{.mean = omega, .covariance = variance, .error = sums.error};
    const Eigen::Vector2d shift(s[1] / s[0], s[2] / s[0]), residual(s[3] / s[0], s[4] / s[0]);
    result.mean << omega.head<2>() + shift, omega.tail<2>() + residual + k * shift;
    const double own = ZoomSums::covariance(s, 1, 1, 5), mixed = ZoomSums::covariance(s, 1, 3, 6),
                 rest = ZoomSums::covariance(s, 3, 3, 7);
    result.covariance << own, mixed + k * own, mixed + k * own, rest + 2 * k * mixed + k * k * own;
    result.log_z =
        sums.scale + std::log(s[0]) - std::log(4 * std::numbers::pi * std::numbers::pi * given.rest);
    return result;
}

/// A part of the plane: all of it, or one side of the curve delta = 0.
enum class Side { both, above, below };

/// The integrand given y, over (z_p, z_r), or (z_p, t) on one side of the curve.
class AttentionIntegrand {
  public:
    AttentionIntegrand(const Eigen::Vector2d& m, const Conditioned& given, double beta, double residual,
                       Side side)
        : half_precision(0.5 / given.rest),
          m_(m),
          given_(given),
          beta_(beta),
          residual_(residual),
          side_(side) {}

    double half_precision;

    ZoomBox start() const {
        ZoomBox box{{-farthest, -farthest}, {farthest, farthest}};
        if (side_ == Side::both) return box;
        // Distance by which the prior reaches beyond the curve.
        double reach = 0;
        for (int i = 0; i <= 30; ++i) {
            const double p = given_.omega[0] + given_.deviation * (i / 15.0 - 1) * farthest;
            const double distance = (given_.omega[1] - curve(p)) / given_.deviation;
            reach = std::max(reach, farthest + (side_ == Side::above ? distance : -distance));
        }
        box.low[1] = -18;
        box.high[1] = reach > 1e-6 ? inverse_softplus(reach) : box.low[1];
        return box;
    }

    void place(const std::vector<double>& first, const std::vector<double>& second,
               const std::vector<double>& used) {
        nodes_.resize(first.size());
        for (std::size_t i = 0; i < first.size(); ++i) {
            const double p = given_.omega[0] + given_.deviation * first[i],
                         r0 = side_ == Side::both ? 0 : curve(p);
            nodes_[i] = {
                p,
                r0,
                {bounded_exp(beta_ * (r0 + half_root * p)), bounded_exp(beta_ * (r0 - half_root * p))}};
        }
        for (auto* array : {&r_, &scale_, &jacobian_}) array->resize(second.size() / lanes);
        for (std::size_t j = 0; j < second.size(); ++j) {
            const double r = side_ == Side::both ? given_.omega[1] + given_.deviation * second[j]
                                                 : signed_distance(second[j]);
            const std::size_t chunk = j / lanes;
            const auto lane = static_cast<Eigen::Index>(j % lanes);
            r_[chunk][lane] = r;
            scale_[chunk][lane] = bounded_exp(beta_ * r);
            jacobian_[chunk][lane] = used[j] * (side_ == Side::both ? 1 : logistic(second[j]));
        }
    }

    ZoomTerms terms(std::size_t i, std::size_t chunk) const {
        const Node& node = nodes_[i];
        const double total = residual_ + 1, m1 = m_[0], m2 = m_[1];
        const Chunk f1 = node.scale[0] * scale_[chunk], f2 = node.scale[1] * scale_[chunk];
        const Chunk g1 = 1 + f1, g2 = 1 + f2, product = g1 * g2, share = product.inverse();
        const Chunk a = g2 * share, b = g1 * share;
        // delta = (c - 1) + (1 - a) + (1 - b), no digits lost where a, b -> 1
        const Chunk inverse =
            (product / ((residual_ - 1) * product + f1 * g2 + f2 * g1)).abs().min(most_inverse);
        const Chunk square = inverse.square();
        const double p = node.p - given_.omega[0];
        ZoomTerms at;
        at.factor = square * inverse * jacobian_[chunk];
        at.e1 = (half_root / total) * square * ((m2 - m1) * total - 2 * m2 * a + 2 * m1 * b) -
                (given_.offset[0] + given_.k * node.p);
        at.e2 = -0.5 * (m1 + m2) * square - (given_.offset[1] + given_.k * node.r0) - given_.k * r_[chunk];
        at.p = Chunk::Constant(p);
        at.r = r_[chunk] + (node.r0 - given_.omega[1]);
        at.exponent = (-0.5 / given_.variance) * (p * p + at.r.square());
        return at;
    }

    double log_density(double first, double second) const {
        const double p = given_.omega[0] + given_.deviation * first, r0 = side_ == Side::both ? 0 : curve(p);
        const double r =
            side_ == Side::both ? given_.omega[1] + given_.deviation * second : r0 + signed_distance(second);
        const double total = residual_ + 1, f1 = bounded_exp(beta_ * (r + half_root * p)),
                     f2 = bounded_exp(beta_ * (r - half_root * p)), a = 1 / (1 + f1), b = 1 / (1 + f2);
        const double inverse = std::min(1 / std::abs((residual_ - 1) + f1 * a + f2 * b), most_inverse);
        const double square = inverse * inverse;
        const double e1 = half_root * square * ((m_[1] - m_[0]) - 2 * (m_[1] * a - m_[0] * b) / total) -
                          given_.offset[0] - given_.k * p;
        const double e2 = -0.5 * square * m_.sum() - given_.offset[1] - given_.k * r;
        const double z = (r - given_.omega[1]) / given_.deviation;
        return -0.5 * (first * first + z * z) - half_precision * (e1 * e1 + e2 * e2) + 3 * std::log(inverse) -
               (side_ == Side::both ? 0 : softplus(-second));
    }

  private:
    struct Node {
        double p, r0, scale[2];
    };

    double signed_distance(double t) const {
        return (side_ == Side::above ? 1 : -1) * given_.deviation * softplus(t);
    }

    /// delta = 0 where E = e^(beta r) solves K E^2 + 2 (K-1) cosh(beta p/sqrt(2)) E = 2 - K, K = c + 1.
    double curve(double p) const {
        const double total = residual_ + 1, product = total * (2 - total);
        const double x = std::min(std::abs(beta_ * p * half_root), 300.0);
        const double root = std::asinh((total - 1) * std::cosh(x) / std::sqrt(product));
        return (std::log(2 - total) - 0.5 * std::log(product) - root) / beta_;
    }

    Eigen::Vector2d m_;
    const Conditioned& given_;
    double beta_, residual_;
    Side side_;
    std::vector<Node> nodes_;
    std::vector<Chunk> r_, scale_, jacobian_;
};

/// The integrand given the read-out, over the coordinates t of a and b.
class SequenceIntegrand {
  public:
    /// delta > 0 or delta < 0.
    SequenceIntegrand(const Eigen::Vector2d& mu, const Conditioned& given, double beta, double residual,
                      bool positive)
        : half_precision(0.5 / given.rest),
          given_(given),
          beta_(beta),
          total_(residual + 1),
          sign_(positive ? 1 : -1) {
        for (const int i : {0, 1}) {
            // Bounds on a: mu_1 and K - mu_2; on b: mu_2 and K - mu_1. Upper bounds if delta > 0, else lower.
            const double own = mu[i], other = total_ - mu[1 - i];
            end_[i] = positive ? std::min({own, other, 1.0}) : std::max({own, other, 0.0});
            own_gap_[i] = std::abs(own - end_[i]);
            other_gap_[i] = std::abs(other - end_[i]);
        }
        centre_[0] = -half_root * given.omega[0] - given.omega[1];
        centre_[1] = half_root * given.omega[0] - given.omega[1];
        spread_ = std::sqrt(1.5) * given.deviation;  // of u
        // Towards an end layer 2 grows like -t/(beta delta^2). The box stops where the prior excludes it.
        const double excluded = given.offset.norm() + std::abs(given.k) * given.omega.norm() +
                                10 * (std::sqrt(given.rest) + std::abs(given.k) * given.deviation);
        lowest_ = -std::clamp(2 * beta * total_ * total_ * excluded, 40.0, 600.0);
    }

    double half_precision;

    ZoomBox start() const {
        ZoomBox box{{0, 0}, {0, 0}};
        for (const int i : {0, 1}) {
            if (!(end_[i] > 0 && end_[i] <= 1 && (sign_ > 0 || end_[i] < 1))) return box;
            if (unbounded(i)) {
                box.low[i] = -farthest;
                box.high[i] = farthest;
                continue;
            }
            const double reach = sign_ * (edge(i) - centre_[i]) / spread_ + farthest;
            box.low[i] = lowest_;
            box.high[i] = std::max(reach > 1e-3 ? inverse_softplus(reach) : -7.0, -7.0);
        }
        return box;
    }

    void place(const std::vector<double>& first, const std::vector<double>& second,
               const std::vector<double>& used) {
        first_.clear();
        for (const double t : first) first_.push_back(at(0, t));
        second_.resize(second.size() / lanes);
        for (std::size_t j = 0; j < second.size(); ++j) {
            second_[j / lanes].set(static_cast<Eigen::Index>(j % lanes), at(1, second[j]), used[j]);
        }
    }

    ZoomTerms terms(std::size_t i, std::size_t c) const { return evaluate(first_[i], second_[c]); }

    double log_density(double first, double second) const {
        const Point point = at(1, second);
        Points b;
        for (Eigen::Index lane = 0; lane < lanes; ++lane) b.set(lane, point, 1);
        const ZoomTerms f = evaluate(at(0, first), b);
        return std::log(std::max(f.factor[0], 1e-300)) + f.exponent[0] -
               half_precision * (f.e1[0] * f.e1[0] + f.e2[0] * f.e2[0]);
    }

  private:
    /// a or b, with its distances to mu_1 and K - mu_2 (mu_2 and K - mu_1).
    struct Point {
        double u, share, own, other, log_own, log_other, log_jacobian;
    };
    /// Several b, with their weights in the rule.
    struct Points {
        Chunk u, share, other, log_own, log_other, log_jacobian, weight;

        void set(Eigen::Index lane, const Point& point, double used) {
            u[lane] = point.u;
            share[lane] = point.share;
            other[lane] = point.other;
            log_own[lane] = point.log_own;
            log_other[lane] = point.log_other;
            log_jacobian[lane] = point.log_jacobian;
            weight[lane] = used;
        }
    };

    bool unbounded(int i) const { return sign_ > 0 && end_[i] >= 1; }
    double edge(int i) const { return std::log(end_[i] / (1 - end_[i])) / beta_; }

    Point at(int i, double t) const {
        Point point;
        const bool whole = unbounded(i);
        const double step = spread_ * softplus(t);
        point.u = whole ? centre_[i] + spread_ * t : edge(i) - sign_ * step;
        point.share = logistic(beta_ * point.u);
        double distance = logistic(-beta_ * point.u);  // 1 - share
        if (!whole) {
            // s(y) - s(y - z) = (1 - e^-z) s(y) (1 - s(y - z)), no digits lost next to the end
            distance = sign_ > 0 ? -std::expm1(-beta_ * step) * end_[i] * distance
                                 : -std::expm1(-beta_ * step) * point.share * (1 - end_[i]);
        }
        point.own = own_gap_[i] + distance;
        point.other = other_gap_[i] + distance;
        point.log_jacobian = std::log(spread_) - (whole ? 0 : softplus(-t));
        point.log_own = std::log(point.own);
        point.log_other = std::log(point.other);
        return point;
    }

    ZoomTerms evaluate(const Point& a, const Points& b) const {
        // |delta| = |mu_1 - a| + |K - mu_1 - b|
        const Chunk inverse = (a.own + b.other).inverse(), square = inverse.square();
        const Chunk m1 = (a.log_own - b.log_other) / beta_, m2 = (b.log_own - a.log_other) / beta_;
        ZoomTerms at;
        at.p = half_root * (b.u - a.u) - given_.omega[0];
        at.r = -0.5 * (b.u + a.u) - given_.omega[1];
        at.e1 = (half_root / total_) * square * (m2 * (total_ - 2 * a.share) - m1 * (total_ - 2 * b.share)) -
                (given_.offset[0] + given_.k * given_.omega[0]) - given_.k * at.p;
        at.e2 = -0.5 * square * (m1 + m2) - (given_.offset[1] + given_.k * given_.omega[1]) - given_.k * at.r;
        // |delta|^-5 / (A (1-A) A (1-A)) = |delta|^-1 / (distances); dp dr = du du / sqrt(2)
        at.factor = b.weight * inverse;
        at.exponent = (-0.5 / given_.variance) * (at.p.square() + at.r.square()) + b.log_jacobian -
                      b.log_own - b.log_other +
                      (a.log_jacobian - a.log_own - a.log_other +
                       std::log(0.5 / (total_ * given_.variance * beta_ * beta_)));
        return at;
    }

    const Conditioned& given_;
    double beta_, total_, sign_;
    double end_[2], own_gap_[2], other_gap_[2], centre_[2], spread_, lowest_;
    std::vector<Point> first_;
    std::vector<Points> second_;
};

}  // namespace

LayerMoments attention_posterior(const Eigen::Vector2d& m, const Eigen::Vector4d& omega,
                                 const linalg::Overlap& variance, double beta, double residual,
                                 const ZoomOptions& options) {
    const Conditioned given(omega, variance);
    const auto integrate = [&](Side side) {
        AttentionIntegrand integrand(m, given, beta, residual, side);
        return ZoomedRule(integrand, options).integrate();
    };
    if (residual >= 1) return moments_of(integrate(Side::both), omega, variance);
    return moments_of(integrate(Side::above) + integrate(Side::below), omega, variance);
}

LayerMoments sequence_posterior(const Eigen::Vector2d& mu, const Eigen::Vector4d& omega,
                                const linalg::Overlap& variance, double beta, double residual,
                                const ZoomOptions& options) {
    const Conditioned given(omega, variance);
    const auto integrate = [&](bool positive) {
        SequenceIntegrand integrand(mu, given, beta, residual, positive);
        return ZoomedRule(integrand, options).integrate();
    };
    if (residual >= 1) return moments_of(integrate(true), omega, variance);
    return moments_of(integrate(true) + integrate(false), omega, variance);
}

}  // namespace bayesaim::channels

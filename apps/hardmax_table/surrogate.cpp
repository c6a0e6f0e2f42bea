// SPDX-License-Identifier: MIT
#include "hardmax_table/surrogate.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <Eigen/Eigenvalues>

#include "bayesaim/channels/channel.hpp"
#include "bayesaim/numerics/gaussian.hpp"

namespace bayesaim::hardmax_table {
namespace {

using numerics::inverse_mills_ratio;
using numerics::normal_cdf;
constexpr double pi = std::numbers::pi, sqrt2 = std::numbers::sqrt2;

/// int f over the line, for an f that vanishes beyond 9.
template <class Function>
double line_integral(Function f, double reach = 9, double step = 0.02) {
    double sum = 0;
    for (double x = -reach; x <= reach; x += step) sum += f(x);
    return step * sum;
}

double binomial(int n, int k) {
    double result = 1;
    for (int i = 0; i < k; ++i) result *= static_cast<double>(n - i) / (i + 1);
    return result;
}

constexpr double cdf_reach = 9, cdf_step = 1.0 / 128;

}  // namespace

double tie_power(double k) { return inverse_mills_ratio(k) * inverse_mills_ratio(-k); }

double mean_tie_power(double s) {
    const double deviation = std::sqrt(2 * s);
    if (deviation == 0) return tie_power(0);
    const auto f = [&](double k) {
        return tie_power(k) * numerics::normal_density(k / deviation) / deviation;
    };
    const double reach = std::min(9.0, 9 * deviation);
    return line_integral(f, reach, reach / 1000);
}

// The density of the diagonal entries of h at unit V is n_1, of the others n_{1/2}; P are their distributions.

double tie_count(int tokens) {
    const double T = tokens;
    const auto n_d = [](double x) { return numerics::normal_density(x); };
    const auto n_e = [](double x) { return sqrt2 * numerics::normal_density(sqrt2 * x); };
    const auto P_d = [](double x) { return normal_cdf(x); };
    const auto P_e = [](double x) { return normal_cdf(sqrt2 * x); };
    const double diagonal = (T - 1) * std::sqrt(1.5) * line_integral([&](double x) {
                                return n_d(x) * n_e(x) * std::pow(P_e(x), tokens - 2);
                            });
    const double others = tokens < 3 ? 0 : binomial(tokens - 1, 2) * line_integral([&](double x) {
                                               return n_e(x) * n_e(x) * P_d(x) * std::pow(P_e(x), tokens - 3);
                                           });
    return std::sqrt(2 * pi) * T * (diagonal + others);
}

double value_without_error(int tokens) {
    return tie_count(tokens) * line_integral(tie_power) / std::sqrt(2 * pi);
}

double slope_without_error(int tokens) {
    // Integrals over two gaps of the power of both ties together, less those of each: shared winner against an
    // entry of each row (dd, de, ee: diagonal or not), a triangle, three entries of one row.
    constexpr double B_dd = -0.55199200571, B_de = -0.68138969369, B_ee = -0.84496106920,
                     B_tri = -3.79081683260, B_dee = 0.77845659903, B_eee = 0.62796681251;
    const double T = tokens;
    const auto integral = [&](int diagonals, int others, int power_d, double power_e, auto extra) {
        return line_integral([&](double x) {
            const double d = numerics::normal_density(x), e = sqrt2 * numerics::normal_density(sqrt2 * x);
            const double below_d = normal_cdf(x), below_e = std::max(normal_cdf(sqrt2 * x), 1e-300);
            return std::pow(d, diagonals) * std::pow(e, others) * std::pow(below_d, power_d) *
                   std::pow(below_e, power_e) * extra(below_d, below_e);
        });
    };
    const auto one = [](double, double) { return 1.0; };
    double winners = B_dd * integral(2, 1, 0, 2 * T - 4, one);
    if (tokens > 2) {
        winners += 2 * (T - 2) * B_de * integral(1, 2, 1, 2 * T - 5, one);
        winners += (T - 2) * B_ee * integral(0, 3, 2, 2 * T - 6, [&](double below_d, double below_e) {
                       return T - 2 - below_d * std::pow(below_e, tokens - 3);
                   });
    }
    double slope = binomial(tokens, 2) * winners;
    if (tokens > 2) {
        slope += binomial(tokens, 3) * B_tri * integral(0, 3, 3, 3 * T - 9, one);
        slope += T * binomial(tokens - 1, 2) * B_dee * integral(1, 2, 0, T - 3, one);
    }
    if (tokens > 3) slope += T * binomial(tokens - 1, 3) * B_eee * integral(0, 3, 1, T - 4, one);
    return slope;
}

Surrogate::Surrogate(int tokens) : tokens_(tokens) {
    constexpr int nodes = 20;  // Golub and Welsch
    Eigen::MatrixXd jacobi = Eigen::MatrixXd::Zero(nodes, nodes);
    for (int i = 1; i < nodes; ++i) jacobi(i, i - 1) = jacobi(i - 1, i) = std::sqrt(i);
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen(jacobi);
    for (int i = 0; i < nodes; ++i) {
        node_.push_back(eigen.eigenvalues()[i]);
        weight_.push_back(std::pow(eigen.eigenvectors()(0, i), 2));
    }
    for (double x = -cdf_reach; x <= cdf_reach + 2 * cdf_step; x += cdf_step) {
        cdf_.push_back(normal_cdf(x));
        density_.push_back(numerics::normal_density(x));
    }
}

/// Taylor from the nearest point of the grid: with d = x - x0,
///   Phi(x) = Phi + phi (d - x0 d^2/2 + (x0^2 - 1) d^3/6 - ...).
double Surrogate::cdf(double x) const {
    if (!(std::abs(x) < cdf_reach)) return x > 0 ? 1 : 0;
    const auto i = static_cast<std::size_t>((x + cdf_reach) / cdf_step + 0.5);
    const double x0 = static_cast<double>(i) * cdf_step - cdf_reach, d = x - x0;
    return cdf_[i] + density_[i] * d * (1 - 0.5 * d * (x0 - d * (x0 * x0 - 1) / 3));
}

template <class Power>
double Surrogate::sum(const double* omega, Power power) const {
    double total = 0;
    for (int row = 0; row < tokens_; ++row) {
        double mean[8], scale[8];
        int index[8];
        for (int b = 0; b < tokens_; ++b) {
            index[b] = channels::pair_index(row, b, tokens_);
            scale[b] = b == row ? 1 : sqrt2;
            mean[b] = omega[index[b]] / scale[b];
        }
        for (int p = 0; p < tokens_; ++p) {
            for (int q = p + 1; q < tokens_; ++q) {
                const double wp = scale[p] * scale[p], wq = scale[q] * scale[q];
                const double k = (mean[p] - mean[q]) / std::sqrt(1 / wp + 1 / wq);
                if (std::abs(k) > 7) continue;
                const double centre = (wp * mean[p] + wq * mean[q]) / (wp + wq),
                             deviation = 1 / std::sqrt(wp + wq);
                double below = 0;
                for (std::size_t i = 0; i < node_.size(); ++i) {
                    double product = weight_[i];
                    for (int b = 0; b < tokens_; ++b) {
                        if (b != p && b != q)
                            product *= cdf(scale[b] * (centre + deviation * node_[i] - mean[b]));
                    }
                    below += product;
                }
                if (below > 1e-12) total += below * power(k, index[p], index[q], scale[p] / scale[q]);
            }
        }
    }
    return total;
}

double Surrogate::of_all_labels(const double* omega) const {
    return sum(omega, [](double k, int, int, double) { return tie_power(k); });
}

double Surrogate::of_labels(const Eigen::VectorXd& omega, const Eigen::MatrixXd& x) const {
    return sum(omega.data(), [&](double k, int p, int q, double scale_ratio) {
        const double first = std::pow(inverse_mills_ratio(k), 2),
                     second = std::pow(inverse_mills_ratio(-k), 2);
        double total = 0;
        for (Eigen::Index draw = 0; draw < x.cols(); ++draw)
            total += x(p, draw) > scale_ratio * x(q, draw) ? first : second;
        return total;
    });
}

}  // namespace bayesaim::hardmax_table

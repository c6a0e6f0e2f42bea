// SPDX-License-Identifier: MIT
#include "hardmax_table/nodes.hpp"

#include <cmath>
#include <map>
#include <mutex>
#include <numbers>

#include <Eigen/QR>
#include <fmt/format.h>

#include "bayesaim/channels/channel.hpp"
#include "bayesaim/channels/hardmax/pair.hpp"
#include "bayesaim/numerics/quasi_monte_carlo.hpp"

#include "hardmax_table/label_sums.hpp"
#include "hardmax_table/no_data.hpp"
#include "hardmax_table/surrogate.hpp"

namespace bayesaim::hardmax_table {
namespace {

double ratio(double r) { return 0.5 * (1 / (r * r) - 1); }  // s

/// Four omega at a time; `add` receives the sums over labels and which lane belongs to which point.
class Batch {
  public:
    Batch(int tokens, double step) : sums_(tokens, step), omega_(lanes, tokens * (tokens + 1) / 2) {}
    LabelSums& sums() { return sums_; }
    template <class Evaluate>
    void push(const Eigen::VectorXd& omega, double weight, Evaluate evaluate) {
        omega_.row(count_) = omega.transpose().array();
        weight_[count_] = weight;
        if (++count_ == lanes) flush(evaluate);
    }
    template <class Evaluate>
    void flush(Evaluate evaluate) {
        if (count_ == 0) return;
        for (int i = count_; i < lanes; ++i) {
            omega_.row(i) = omega_.row(0);
            weight_[i] = 0;
        }
        count_ = 0;
        sums_.place(omega_);
        evaluate(sums_, omega_, weight_);
    }

  private:
    LabelSums sums_;
    Omegas omega_;
    Lanes weight_ = Lanes::Zero();
    int count_ = 0;
};

Node two_tokens(double r) {
    const auto value = channels::hardmax_pair::averages(ratio(r), channels::hardmax_pair::Score::exact);
    return {2, r, 0, 0, value.power / r, value.information};
}

/// T = 3 without sampling: the integrand is analytic, so equal steps in five dimensions converge
/// geometrically. The lattice Z x A2 x A2 is invariant under permutations of the tokens:
///   omega_aa = c n_a + x sqrt(2)/3,   omega_bc = c m_a - x/3,   n and m integer with sum 0.
Node three_tokens(double r) {
    const double s = ratio(r), h = 1 / std::sqrt(1 / (2 * s) + 1 / 1.2), c = h * std::sqrt(2.0 / 3),
                 radius = 6.7 * std::sqrt(2 * s);
    const double cell = h * std::pow(std::sqrt(3.0) * c * c, 2) / std::pow(4 * std::numbers::pi * s, 2.5);
    const auto labels = all_labels(3);
    Batch batch(3, 0.11);
    Node node{3, r, 0, 0, 0, 0};
    const auto add = [&](LabelSums& sums, const Omegas&, const Lanes& weight) {
        const auto value = sums.sum(labels);
        node.p += (weight * value.power).sum() / r;
        node.information += (weight * value.information).sum();
    };
    const int most = static_cast<int>(radius / c) + 1;
    Eigen::VectorXd omega(6);
    for (int n0 = -most; n0 <= most; ++n0) {
        for (int n1 = -most; n1 <= n0; ++n1) {
            const int n2 = -n0 - n1;
            if (n2 > n1) continue;
            for (int m0 = -most; m0 <= most; ++m0) {
                for (int m1 = -most; m1 <= most; ++m1) {
                    const int m2 = -m0 - m1;
                    if ((n0 == n1 && m1 > m0) || (n1 == n2 && m2 > m1)) continue;
                    const double squares =
                        c * c * (n0 * n0 + n1 * n1 + n2 * n2 + m0 * m0 + m1 * m1 + m2 * m2);
                    if (squares > radius * radius) continue;
                    const bool first = n0 == n1 && m0 == m1, second = n1 == n2 && m1 == m2;
                    const double orbit = first && second ? 1 : first || second ? 3 : 6;
                    const int last = static_cast<int>(std::sqrt(radius * radius - squares) / h);
                    for (int i = -last; i <= last; ++i) {
                        const double x = i * h, on = x * std::numbers::sqrt2 / 3, off = -x / 3;
                        omega << c * n0 + on, c * m2 + off, c * m1 + off, c * n1 + on, c * m0 + off,
                            c * n2 + on;
                        batch.push(omega, orbit * cell * std::exp(-(squares + x * x) / (4 * s)), add);
                    }
                }
            }
        }
    }
    batch.flush(add);
    return node;
}

/// Columns that span what is orthogonal to tau, the direction in which nothing changes.
Eigen::MatrixXd without_common_shift(int tokens) {
    const Eigen::VectorXd tau = channels::pair_scales(tokens);
    const Eigen::HouseholderQR<Eigen::MatrixXd> qr{Eigen::MatrixXd(tau)};
    return (qr.householderQ() * Eigen::MatrixXd::Identity(tau.size(), tau.size())).rightCols(tau.size() - 1);
}

/// T = 4, 5: a shifted Sobol net of omega, the sum over all labels less the surrogate.
Node all_labels_sampled(int tokens, double r, std::size_t points, int shift) {
    const double s = ratio(r), spread = std::sqrt(2 * s);
    static std::map<int, std::vector<Label>> labels;
    static std::mutex mutex;
    {
        const std::lock_guard lock(mutex);
        if (!labels.contains(tokens)) labels[tokens] = all_labels(tokens);
    }
    const Eigen::MatrixXd basis = without_common_shift(tokens);
    const Surrogate surrogate(tokens);
    Batch batch(tokens, tokens == 4 ? 0.125 : 0.14);
    double power = 0, information = 0;
    const auto add = [&](LabelSums& sums, const Omegas& omega, const Lanes& weight) {
        const auto value = sums.sum(labels.at(tokens));
        for (int i = 0; i < lanes; ++i) {
            if (weight[i] == 0) continue;
            const Eigen::VectorXd one = omega.row(i).transpose();
            power += value.power[i] - surrogate.of_all_labels(one.data());
            information += value.information[i];
        }
    };
    const numerics::ShiftedSobol sobol(static_cast<int>(basis.cols()), shift + 2, points, 1);
    Eigen::ArrayXXd normal(1, basis.cols());
    for (std::size_t i = 0; i < points; ++i) {
        sobol.fill_normal(shift, i, normal);
        batch.push(spread * basis * normal.matrix().transpose(), 1, add);
    }
    batch.flush(add);
    const double n = static_cast<double>(points);
    return {tokens,         r, points, shift, (tie_count(tokens) * mean_tie_power(s) + power / n) / r,
            information / n};
}

/// T = 6: omega and the noise from one net; the label of each point, moved to the representative of its class,
/// so that four points of one class are evaluated together.
Node drawn_labels(int tokens, double r, std::size_t points, int shift) {
    const double s = ratio(r), spread = std::sqrt(2 * s);
    static const LabelClasses classes(tokens);
    const Eigen::MatrixXd basis = without_common_shift(tokens);
    const Surrogate surrogate(tokens);
    const Eigen::Index pairs = basis.rows();
    std::vector<Label> labels;
    std::vector<Batch> batches;
    for (const auto& representative : classes.representatives) {
        labels.push_back(make_label(tokens, representative).front());
        batches.emplace_back(tokens, 0.14);
    }
    double power = 0, information = 0;
    const auto adder = [&](std::size_t kind) {
        return [&, kind](LabelSums& sums, const Omegas&, const Lanes& weight) {
            const auto value = sums.evaluate(labels[kind]);
            power += (weight > 0).select(value.power / value.probability, 0.0).sum();
            information += (weight > 0).select(value.probability.log(), 0.0).sum();
        };
    };
    const numerics::ShiftedSobol sobol(static_cast<int>(basis.cols() + pairs), shift + 2, points, 1);
    Eigen::ArrayXXd normal(1, basis.cols() + pairs);
    std::vector<int> winners(static_cast<std::size_t>(tokens));
    const Eigen::VectorXd scale = channels::pair_scales(tokens);
    for (std::size_t i = 0; i < points; ++i) {
        sobol.fill_normal(shift, i, normal);
        const Eigen::VectorXd all = normal.matrix().transpose();
        const Eigen::VectorXd omega = spread * basis * all.head(basis.cols()), x = omega + all.tail(pairs);
        for (int a = 0; a < tokens; ++a) {
            int& best = winners[static_cast<std::size_t>(a)] = 0;
            const auto h = [&](int b) {
                const int p = channels::pair_index(a, b, tokens);
                return x[p] / scale[p];
            };
            for (int b = 1; b < tokens; ++b) best = h(b) > h(best) ? b : best;
        }
        power -= surrogate.of_labels(omega.data(), x.data());
        const auto& [kind, permutation] = classes.member.at(winners);
        Eigen::VectorXd moved(pairs);
        for (int a = 0; a < tokens; ++a) {
            for (int b = a; b < tokens; ++b)
                moved[channels::pair_index(permutation[static_cast<std::size_t>(a)],
                                           permutation[static_cast<std::size_t>(b)], tokens)] =
                    omega[channels::pair_index(a, b, tokens)];
        }
        batches[kind].push(moved, 1, adder(kind));
    }
    for (std::size_t kind = 0; kind < batches.size(); ++kind) batches[kind].flush(adder(kind));
    const double n = static_cast<double>(points);
    return {tokens,         r, points, shift, (tie_count(tokens) * mean_tie_power(s) + power / n) / r,
            information / n};
}

}  // namespace

std::string Node::key() const { return fmt::format("{},{},{},{}", tokens, r, points, shift); }

std::vector<Node> plan(int tokens) {
    std::vector<Node> nodes;
    const auto add = [&](double r, std::size_t points, int shifts) {
        for (int i = 0; i < shifts; ++i) nodes.push_back({tokens, r, points, i, 0, 0});
    };
    if (tokens == 2) {
        for (int k = 0; k < 24; ++k) add(0.5 + 0.5 * std::cos((k + 0.5) * std::numbers::pi / 24), 0, 1);
    }
    if (tokens == 3) {
        for (const double r : {0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.45, 0.4, 0.35, 0.3}) add(r, 0, 1);
    }
    if (tokens == 4) {
        for (const double r : {0.3, 0.5}) add(r, 1 << 15, 16);
        for (const double r : {0.2, 0.4, 0.6, 0.75}) add(r, 1 << 14, 8);
        add(0.3, 1 << 17, 8);
        add(0.5, 1 << 17, 4);
    }
    if (tokens == 5) {
        for (const double r : {0.35, 0.6}) add(r, 1 << 14, 4);
        for (const double r : {0.25, 0.5}) add(r, 1 << 12, 8);
    }
    if (tokens == 6) {
        for (const double r : {0.4, 0.65}) add(r, 1 << 18, 16);
    }
    return nodes;
}

Node compute(const Node& node) {
    switch (node.tokens) {
        case 2:
            return two_tokens(node.r);
        case 3:
            return three_tokens(node.r);
        case 6:
            return drawn_labels(node.tokens, node.r, node.points, node.shift);
        default:
            return all_labels_sampled(node.tokens, node.r, node.points, node.shift);
    }
}

}  // namespace bayesaim::hardmax_table

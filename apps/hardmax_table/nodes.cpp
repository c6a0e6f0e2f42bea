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
#include "hardmax_table/surrogate.hpp"

namespace bayesaim::hardmax_table {
namespace {

double ratio(double r) { return 0.5 * (1 / (r * r) - 1); }  // s

/// Four omega at a time; `add` receives the sums over labels and which lane belongs to which point.
class Batch {
  public:
    static constexpr int lanes = 4;
    using Lanes = hardmax_table::Lanes<lanes>;
    using Omegas = hardmax_table::Omegas<lanes>;
    using Sums = LabelSums<lanes>;

    Batch(int tokens, double step) : sums_(tokens, step), omega_(lanes, tokens * (tokens + 1) / 2) {}
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
    Sums sums_;
    Omegas omega_;
    Lanes weight_ = Lanes::Zero();
    int count_ = 0;
};

Node two_tokens(double r) {
    const auto value = channels::hardmax_pair::tied_averages(ratio(r), channels::hardmax_pair::Score::exact);
    return {2, r, 0, 0, 0, value.power / r, value.information};
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
    Node node{3, r, 0, 0, 0, 0, 0};
    const auto add = [&](Batch::Sums& sums, const Batch::Omegas&, const Batch::Lanes& weight) {
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
Node all_labels_sampled(Node node) {
    const int tokens = node.tokens;
    const double s = ratio(node.r), spread = std::sqrt(2 * s);
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
    const auto add = [&](Batch::Sums& sums, const Batch::Omegas& omega, const Batch::Lanes& weight) {
        const auto value = sums.sum(labels.at(tokens));
        for (int i = 0; i < Batch::lanes; ++i) {
            if (weight[i] == 0) continue;
            const Eigen::VectorXd one = omega.row(i).transpose();
            power += value.power[i] - surrogate.of_all_labels(one.data());
            information += value.information[i];
        }
    };
    const numerics::ShiftedSobol sobol(static_cast<int>(basis.cols()), node.shift + 2, node.points, 1);
    Eigen::ArrayXXd normal(1, basis.cols());
    for (std::size_t i = 0; i < node.points; ++i) {
        sobol.fill_normal(node.shift, i, normal);
        batch.push(spread * basis * normal.matrix().transpose(), 1, add);
    }
    batch.flush(add);
    const double n = static_cast<double>(node.points);
    node.p = (tie_count(tokens) * mean_tie_power(s) + power / n) / node.r;
    node.information = information / n;
    return node;
}

/// T = 5, 6: several labels drawn at each omega, instead of all labels. Omega and the noise x - omega of the
/// draws come from one net; each draw has the noise of another shift. The scatter is that of the label, not of
/// omega, so that draws which share the grid and the surrogate of one omega are nearly free.
Node drawn_labels(Node node) {
    const int tokens = node.tokens;
    const double s = ratio(node.r), spread = std::sqrt(2 * s);
    const Eigen::MatrixXd basis = without_common_shift(tokens);
    const Eigen::Index pairs = basis.rows();
    const Surrogate surrogate(tokens);
    LabelSums<1> sums(tokens, 0.14);
    std::map<std::vector<int>, Label> labels;  // those that were met
    double power = 0, information = 0;
    const int first_shift = node.shift * node.draws;
    const numerics::ShiftedSobol sobol(static_cast<int>(basis.cols() + pairs), first_shift + node.draws + 1,
                                       node.points, 1);
    Eigen::ArrayXXd normal(1, basis.cols() + pairs);
    std::vector<int> winners(static_cast<std::size_t>(tokens));
    const Eigen::VectorXd scale = channels::pair_scales(tokens);
    Eigen::VectorXd omega;
    Eigen::MatrixXd x(pairs, node.draws);
    std::map<std::vector<int>, int> drawn;  // how often
    for (std::size_t i = 0; i < node.points; ++i) {
        drawn.clear();
        for (int draw = 0; draw < node.draws; ++draw) {
            sobol.fill_normal(first_shift + draw, i, normal);
            const Eigen::VectorXd all = normal.matrix().transpose();
            if (draw == 0) omega = spread * basis * all.head(basis.cols());
            x.col(draw) = omega + all.tail(pairs);
            for (int a = 0; a < tokens; ++a) {
                int& best = winners[static_cast<std::size_t>(a)] = 0;
                const auto h = [&](int b) {
                    const int p = channels::pair_index(a, b, tokens);
                    return x(p, draw) / scale[p];
                };
                for (int b = 1; b < tokens; ++b) best = h(b) > h(best) ? b : best;
            }
            ++drawn[winners];
        }
        power -= surrogate.of_labels(omega, x);
        sums.place(omega.transpose().array());
        for (const auto& [label, count] : drawn) {
            auto known = labels.find(label);
            if (known == labels.end()) known = labels.emplace(label, make_label(tokens, label).front()).first;
            const auto value = sums.evaluate(known->second);
            power += count * value.power[0] / value.probability[0];
            information += count * std::log(value.probability[0]);
        }
    }
    const double n = static_cast<double>(node.points) * node.draws;
    node.p = (tie_count(tokens) * mean_tie_power(s) + power / n) / node.r;
    node.information = information / n;
    return node;
}

}  // namespace

std::string Node::key() const { return fmt::format("{},{},{},{},{}", tokens, r, points, draws, shift); }

std::vector<Node> plan(int tokens) {
    std::vector<Node> nodes;
    const auto add = [&](double r, std::size_t points, int shifts, int draws = 0) {
        for (int i = 0; i < shifts; ++i) nodes.push_back({tokens, r, points, draws, i, 0, 0});
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
        for (const double r : {0.4, 0.65}) add(r, 1 << 17, 16, 16);
    }
    if (tokens == 6) {
        for (const double r : {0.4, 0.65}) add(r, 1 << 16, 32, 16);
    }
    return nodes;
}

Node compute(const Node& node) {
    if (node.tokens == 2) return two_tokens(node.r);
    if (node.tokens == 3) return three_tokens(node.r);
    return node.draws > 0 ? drawn_labels(node) : all_labels_sampled(node);
}

}  // namespace bayesaim::hardmax_table

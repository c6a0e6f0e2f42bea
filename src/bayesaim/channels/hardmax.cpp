// SPDX-License-Identifier: MIT
#include "bayesaim/channels/hardmax.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include "bayesaim/channels/expectations/output_disagreement.hpp"
#include "bayesaim/channels/expectations/winning_probability.hpp"
#include "bayesaim/channels/hardmax/pair.hpp"
#include "bayesaim/channels/hardmax/recursion.hpp"
#include "bayesaim/core/checks.hpp"
#include "bayesaim/numerics/gaussian.hpp"
#include "bayesaim/numerics/quasi_monte_carlo.hpp"

namespace bayesaim::channels {
namespace {

using Labels = std::array<int, HardmaxRecursion::max_tokens>;

/// The score of two tokens for a batch, exact or as printed. Returns the sum of the slopes of the exact one.
double score_pairs(const ConstRowsRef& outputs, const ConstRowsRef& omega, double variance,
                   hardmax_pair::Score kind, RowsRef g, Eigen::Ref<Eigen::VectorXd> log_z) {
    double slopes = 0;
    for (Eigen::Index i = 0; i < omega.rows(); ++i) {
        const Eigen::Vector3d w = omega.row(i);
        const auto at =
            hardmax_pair::evaluate(outputs(i, 0) > 0.5, outputs(i, 3) > 0.5, w.data(), variance, kind);
        g.row(i) << at.g[0], at.g[1], at.g[2];
        if (log_z.size() > 0) log_z[i] = at.log_z;
        slopes += at.slope;
    }
    return slopes;
}

/// Calls visit(labels) for every label that is plausible given omega at unit variance: each row's label is
/// within `margin` standard deviations of the row's largest entry. Makes no call if a single label is left,
/// which is then certain. Returns false without a call if there are more than `most`. The number of plausible
/// labels does not change when tokens are permuted.
template <class Visit>
bool for_plausible_labels(const Eigen::VectorXd& omega, int tokens, std::size_t most, Visit visit) {
    constexpr double margin = 7;
    std::vector<std::vector<int>> candidates(static_cast<std::size_t>(tokens));
    std::size_t count = 1;
    for (int a = 0; a < tokens; ++a) {
        const auto entry = [&](int b) {
            const double variance = a == b ? 1 : 0.5;
            return std::pair(omega[pair_index(a, b, tokens)] * std::sqrt(variance), variance);
        };
        auto [largest, largest_variance] = entry(0);
        for (int b = 1; b < tokens; ++b) {
            if (entry(b).first > largest) std::tie(largest, largest_variance) = entry(b);
        }
        auto& row = candidates[static_cast<std::size_t>(a)];
        for (int b = 0; b < tokens; ++b) {
            const auto [h, variance] = entry(b);
            if (largest - h <= margin * std::sqrt(variance + largest_variance)) row.push_back(b);
        }
        count *= row.size();
    }
    if (count > most) return false;
    if (count == 1) return true;
    std::vector<int> labels(candidates.size());
    for (std::size_t number = 0; number < count; ++number) {
        std::size_t rest = number;
        for (std::size_t a = 0; a < labels.size(); ++a) {
            labels[a] = candidates[a][rest % candidates[a].size()];
            rest /= candidates[a].size();
        }
        visit(labels);
    }
    return true;
}

/// The leading entry of a row of h and how far it may fall until the second one overtakes it.
struct Lead {
    int pair = 0;              // of the largest entry
    double threshold = 0;      // the value of z[pair] at which it ties with the second
    double gap_deviation = 0;  // of the gap of both given omega, in units of z[pair] times the spread
};

Lead lead(const Eigen::VectorXd& z, int row, int tokens) {
    const auto pair = [&](int b) { return pair_index(row, b, tokens); };
    const auto inverse_tau = [&](int b) { return b == row ? 1 : std::sqrt(0.5); };
    const auto h = [&](int b) { return z[pair(b)] * inverse_tau(b); };
    int first = 0, second = 1;
    if (h(second) > h(first)) std::swap(first, second);
    for (int b = 2; b < tokens; ++b) {
        if (h(b) > h(first)) {
            second = std::exchange(first, b);
        } else if (h(b) > h(second)) {
            second = b;
        }
    }
    const double unit = inverse_tau(first);
    return {pair(first), h(second) / unit, std::hypot(unit, inverse_tau(second)) / unit};
}

}  // namespace

Hardmax::Hardmax(int tokens) : Hardmax(tokens, hardmax_pair::Score::exact) {}

Hardmax::Hardmax(int tokens, hardmax_pair::Score score) : tokens_(tokens), score_(score) {
    check_at_least("hardmax channel: tokens", tokens, 2);
    if (tokens > HardmaxRecursion::max_tokens) throw_invalid("hardmax channel: tokens", "at most 6", tokens);
    if (tokens > 2) classes_ = label_classes(tokens);
}

std::vector<std::pair<std::string, double>> Hardmax::parameters() const { return {{"tokens", tokens_}}; }

bool Hardmax::fast_slope() const { return tokens_ == 2 && score_ == hardmax_pair::Score::exact; }

/// The law of omega does not change when tokens are permuted, so one label of each orbit stands for all of
/// it: j -> p j p^{-1}, 6 possible orbits of 27 labels for T = 3.
std::vector<Hardmax::LabelClass> Hardmax::label_classes(int tokens) {
    const HardmaxRecursion recursion(tokens);
    std::map<std::vector<int>, double> count;
    std::vector<int> labels(static_cast<std::size_t>(tokens), 0);
    while (true) {
        if (recursion.possible(labels)) {
            std::vector<int> permutation(labels.size()), smallest = labels, image(labels.size());
            std::iota(permutation.begin(), permutation.end(), 0);
            do {
                for (std::size_t a = 0; a < labels.size(); ++a) {
                    image[static_cast<std::size_t>(permutation[a])] =
                        permutation[static_cast<std::size_t>(labels[a])];
                }
                smallest = std::min(smallest, image);
            } while (std::next_permutation(permutation.begin(), permutation.end()));
            count[smallest] += 1;
        }
        std::size_t digit = 0;
        while (digit < labels.size() && ++labels[digit] == tokens) labels[digit++] = 0;
        if (digit == labels.size()) break;
    }
    std::vector<LabelClass> classes;
    for (const auto& [representative, size] : count) classes.push_back({representative, size});
    return classes;
}

void Hardmax::draw(const ConstRowsRef& index, std::uint64_t, std::uint64_t, RowsRef outputs) const {
    const Eigen::VectorXd scale = pair_scales(tokens_);
    outputs.setZero();
    for (Eigen::Index i = 0; i < index.rows(); ++i) {
        for (int a = 0; a < tokens_; ++a) {
            int winner = 0;
            double largest = -std::numeric_limits<double>::infinity();
            for (int b = 0; b < tokens_; ++b) {
                const int p = pair_index(a, b, tokens_);
                const double h = index(i, p) / scale[p];
                if (h > largest) {
                    largest = h;
                    winner = b;
                }
            }
            outputs(i, a * tokens_ + winner) = 1;
        }
    }
}

void Hardmax::score(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance,
                    RowsRef g, Eigen::Ref<Eigen::VectorXd> log_z) const {
    if (tokens_ == 2) {
        score_pairs(outputs, omega, variance(0, 0), score_, g, log_z);
        return;
    }
    HardmaxRecursion recursion(tokens_);
    Labels labels{};
    const auto count = static_cast<std::size_t>(pairs());
    for (Eigen::Index i = 0; i < omega.rows(); ++i) {
        for (int a = 0; a < tokens_; ++a) {
            const double* row = outputs.data() + i * outputs.outerStride() + a * tokens_;
            labels[a] = static_cast<int>(std::max_element(row, row + tokens_) - row);
        }
        const double value = recursion.evaluate({labels.data(), static_cast<std::size_t>(tokens_)},
                                                {omega.data() + i * omega.outerStride(), count},
                                                variance(0, 0), {g.data() + i * g.outerStride(), count});
        if (log_z.size() > 0) log_z[i] = value;
    }
}

void Hardmax::check_outputs(const ConstRowsRef& outputs) const {
    Channel::check_outputs(outputs);
    for (Eigen::Index i = 0; i < outputs.rows(); ++i) {
        for (int a = 0; a < tokens_; ++a) {
            const auto row = outputs.row(i).segment(a * tokens_, tokens_).array();
            const auto ones = ((row - 1).abs() <= output_tolerance).count(),
                       zeros = (row.abs() <= output_tolerance).count();
            if (ones != 1 || zeros != tokens_ - 1)
                throw_invalid(output_title("hardmax output", i, a), "one 1 and zeros",
                              fmt::format("sum {}", row.sum()));
        }
    }
}

void Hardmax::predict(const ConstRowsRef& omega, const Overlap& variance, RowsRef prediction) const {
    if (variance(0, 0) == 0) return draw(omega, 0, 0, prediction);
    predict_winners(WinningProbability::normal(tokens_, std::sqrt(variance(0, 0))), tokens_, 1, omega,
                    prediction);
}

Eigen::MatrixXd Hardmax::score_slope(const ConstRowsRef& output, const ConstRowsRef& omega,
                                     const Overlap& variance) const {
    if (!fast_slope()) return Channel::score_slope(output, omega, variance);
    const Eigen::Vector3d w = omega.row(0);
    return hardmax_pair::slope(output(0, 0) > 0.5, output(0, 3) > 0.5, w.data(), variance(0, 0));
}

Overlap Hardmax::score_with_slope(const ConstRowsRef& outputs, const ConstRowsRef& omega,
                                  const Overlap& variance, RowsRef g) const {
    if (!fast_slope()) return Channel::score_with_slope(outputs, omega, variance, g);
    Eigen::VectorXd no_log_z(0);
    return linalg::scalar_overlap(score_pairs(outputs, omega, variance(0, 0), score_, g, no_log_z));
}

/// sum_labels Z f(log Z, |g|^2) at omega and unit variance. If many labels are plausible, one label of each
/// class stands for the class, which does not change the average over omega.
template <class Function>
double Hardmax::sum_over_labels(HardmaxRecursion& recursion, const Eigen::VectorXd& omega, Function f) const {
    const auto size = static_cast<std::size_t>(pairs());
    std::vector<double> g(size);
    double sum = 0;
    const auto add = [&](const std::vector<int>& labels, double count) {
        const double log_z = recursion.evaluate(labels, {omega.data(), size}, 1, g);
        const double squares = std::inner_product(g.begin(), g.end(), g.begin(), 0.0);
        sum += count * std::exp(log_z) * f(log_z, squares);
    };
    const bool few =
        for_plausible_labels(omega, tokens_, 5 * classes_.size(), [&](const std::vector<int>& labels) {
            if (recursion.possible(labels)) add(labels, 1);
        });
    if (!few) {
        for (const LabelClass& labels : classes_) add(labels.labels, labels.size);
    }
    return sum;
}

/// E over omega ~ N(0, 2q/V) of sum_labels Z f(log Z, |g|^2) at unit variance: averages depend on q/V only.
///
/// Once q >> V, only those omega count in which the two largest entries of a row nearly tie. So besides each
/// normal point z, omega = z sqrt(2q/V), the point is used in which the leader of one row is drawn anew, from
/// a half-normal law above the second entry that is as wide as the integrand. Both kinds, rows in turn, are
/// weighted by the density of their mixture (the balance heuristic of Veach and Guibas).
template <class Function>
numerics::Estimate Hardmax::average_over_labels(double ratio, const Integration& integration,
                                                Function f) const {
    using numerics::normal_cdf;
    using numerics::normal_density;
    // phi^2 / (Phi (1 - Phi)), the shape of the integrand across a tie, is nearly normal with this deviation.
    constexpr double integrand_deviation = 1.2, widest = 0.8;
    if (ratio == 0) {
        HardmaxRecursion recursion(tokens_);
        return {sum_over_labels(recursion, Eigen::VectorXd::Zero(pairs()), f), 0};
    }
    const double spread = std::sqrt(2 * ratio);
    const auto width = [&](const Lead& leader) {
        return std::min(widest, integrand_deviation * leader.gap_deviation / spread);
    };
    // Density of the mixture relative to the normal one: 1, plus one term per row for its redrawn leader.
    const auto relative_density = [&](const Eigen::VectorXd& z) {
        double sum = 1;
        for (int row = 0; row < tokens_; ++row) {
            const Lead leader = lead(z, row, tokens_);
            const double value = z[leader.pair], scaled_gap = (value - leader.threshold) / width(leader);
            sum += normal_cdf(-leader.threshold) * 2 * normal_density(scaled_gap) /
                   (width(leader) * normal_density(value));
        }
        return sum / (1 + tokens_);
    };
    const auto draw_leader_anew = [&](Eigen::VectorXd& z, int row) {
        const Lead leader = lead(z, row, tokens_);
        // z[pair] is normal above the threshold: its level there becomes the level of the new gap.
        const double level = normal_cdf(-z[leader.pair]) / normal_cdf(-leader.threshold);
        z[leader.pair] = leader.threshold - width(leader) * numerics::normal_quantile(0.5 * level);
    };
    // The sum if only each row's leader and second entry mattered.
    const auto surrogate = [&](const Eigen::VectorXd& z) {
        double sum = 0;
        for (int row = 0; row < tokens_; ++row) {
            const Lead leader = lead(z, row, tokens_);
            const double k = spread * (z[leader.pair] - leader.threshold) / leader.gap_deviation;
            for (const double side : {k, -k}) {
                const double slope = numerics::inverse_mills_ratio(side);
                sum += normal_cdf(side) * f(numerics::log_normal_cdf(side), slope * slope);
            }
        }
        return sum;
    };
    const auto average = [&](int points_per_shift, auto make_value) {
        const numerics::ShiftedSobol points(pairs(), integration.shifts,
                                            static_cast<std::size_t>(points_per_shift), integration.seed);
        return points.average(
            [&](const Eigen::ArrayXXd& normal) {
                auto value = make_value();
                double sum = 0;
                for (Eigen::Index i = 0; i < normal.rows(); ++i) {
                    Eigen::VectorXd z = normal.row(i);
                    sum += value(z) / relative_density(z) / (1 + tokens_);
                    draw_leader_anew(z, static_cast<int>(i % tokens_));
                    sum += value(z) / relative_density(z) * tokens_ / (1 + tokens_);
                }
                return sum;
            },
            integration.pool);
    };
    // The surrogate is a thousand times cheaper: its average is taken over many more points, and the exact
    // sum only corrects it.
    const numerics::Estimate coarse = average(64 * integration.points, [&] { return surrogate; });
    const numerics::Estimate correction = average(integration.points, [&] {
        return [&, recursion = HardmaxRecursion(tokens_)](const Eigen::VectorXd& z) mutable {
            return sum_over_labels(recursion, spread * z, f) - surrogate(z);
        };
    });
    return {coarse.value + correction.value, std::hypot(coarse.standard_error, correction.standard_error)};
}

ScorePower Hardmax::score_power(const OrderParameters& parameters, const Integration& integration) const {
    const ScalarParameters p(parameters);
    const double ratio = p.overlap / p.variance;
    const numerics::Estimate power =
        tokens_ == 2
            ? numerics::Estimate{hardmax_pair::averages(ratio, score_).power, 0}
            : average_over_labels(ratio, integration, [](double, double squares) { return squares; });
    return {linalg::scalar_overlap(power.value / p.variance), power.standard_error / power.value};
}

std::optional<double> Hardmax::information(const OrderParameters& parameters,
                                           const Integration& integration) const {
    const ScalarParameters p(parameters);
    const double ratio = p.overlap / p.variance;
    if (tokens_ == 2) return hardmax_pair::averages(ratio, score_).information;
    return average_over_labels(ratio, integration, [](double log_z, double) { return log_z; }).value;
}

GeneralizationError Hardmax::generalization(const OrderParameters& parameters, const Integration&) const {
    const ScalarParameters p(parameters);
    // Two different rows have squared distance 2; the Bayes-optimal error is half the distance of two draws.
    const double optimal = hardmax_disagreement(tokens_, {p.total, p.total, p.overlap, 2 * p.error});
    const double plug_in = hardmax_disagreement(tokens_, {p.overlap, p.total, p.overlap, p.error});
    return {tokens_ * optimal, 2 * tokens_ * plug_in, 0};
}

HardmaxAsPrinted::HardmaxAsPrinted(int tokens) : Hardmax(2, hardmax_pair::Score::as_printed) {
    if (tokens != 2) throw_invalid("hardmax-as-printed channel: tokens", "2", tokens);
}

}  // namespace bayesaim::channels

// SPDX-License-Identifier: MIT
// HardmaxSampled: the averages of hardmax computed anew, as a check of the stored ones.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "bayesaim/channels/expectations/output_disagreement.hpp"
#include "bayesaim/channels/hardmax.hpp"
#include "bayesaim/channels/hardmax/pair.hpp"
#include "bayesaim/channels/hardmax/recursion.hpp"
#include "bayesaim/numerics/gaussian.hpp"
#include "bayesaim/numerics/quasi_monte_carlo.hpp"

namespace bayesaim::channels {
namespace {

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

HardmaxSampled::HardmaxSampled(int tokens) : Hardmax(tokens) {
    if (tokens > 2) classes_ = label_classes(tokens);
}

/// The law of omega does not change when tokens are permuted, so one label of each orbit stands for all of
/// it: j -> p j p^{-1}, 6 possible orbits of 27 labels for T = 3.
std::vector<HardmaxSampled::LabelClass> HardmaxSampled::label_classes(int tokens) {
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

/// sum_labels Z f(log Z, |g|^2) at omega and unit variance. If many labels are plausible, one label of each
/// class stands for the class, which does not change the average over omega.
template <class Function>
double HardmaxSampled::sum_over_labels(HardmaxRecursion& recursion, const Eigen::VectorXd& omega,
                                       Function f) const {
    const auto size = static_cast<std::size_t>(pairs());
    std::vector<double> g(size);
    double sum = 0;
    const auto add = [&](const std::vector<int>& labels, double count) {
        const double log_z = recursion.evaluate(labels, {omega.data(), size}, 1, g);
        const double squares = std::inner_product(g.begin(), g.end(), g.begin(), 0.0);
        sum += count * std::exp(log_z) * f(log_z, squares);
    };
    const bool few =
        for_plausible_labels(omega, tokens(), 5 * classes_.size(), [&](const std::vector<int>& labels) {
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
numerics::Estimate HardmaxSampled::average_over_labels(double ratio, const Integration& integration,
                                                       Function f) const {
    using numerics::normal_cdf;
    using numerics::normal_density;
    // phi^2 / (Phi (1 - Phi)), the shape of the integrand across a tie, is nearly normal with this deviation.
    constexpr double integrand_deviation = 1.2, widest = 0.8;
    if (ratio == 0) {
        HardmaxRecursion recursion(tokens());
        return {sum_over_labels(recursion, Eigen::VectorXd::Zero(pairs()), f), 0};
    }
    const double spread = std::sqrt(2 * ratio);
    const auto width = [&](const Lead& leader) {
        return std::min(widest, integrand_deviation * leader.gap_deviation / spread);
    };
    // Density of the mixture relative to the normal one: 1, plus one term per row for its redrawn leader.
    const auto relative_density = [&](const Eigen::VectorXd& z) {
        double sum = 1;
        for (int row = 0; row < tokens(); ++row) {
            const Lead leader = lead(z, row, tokens());
            const double value = z[leader.pair], scaled_gap = (value - leader.threshold) / width(leader);
            sum += normal_cdf(-leader.threshold) * 2 * normal_density(scaled_gap) /
                   (width(leader) * normal_density(value));
        }
        return sum / (1 + tokens());
    };
    const auto draw_leader_anew = [&](Eigen::VectorXd& z, int row) {
        const Lead leader = lead(z, row, tokens());
        // z[pair] is normal above the threshold: its level there becomes the level of the new gap.
        const double level = normal_cdf(-z[leader.pair]) / normal_cdf(-leader.threshold);
        z[leader.pair] = leader.threshold - width(leader) * numerics::normal_quantile(0.5 * level);
    };
    // The sum if only each row's leader and second entry mattered.
    const auto surrogate = [&](const Eigen::VectorXd& z) {
        double sum = 0;
        for (int row = 0; row < tokens(); ++row) {
            const Lead leader = lead(z, row, tokens());
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
                    sum += value(z) / relative_density(z) / (1 + tokens());
                    draw_leader_anew(z, static_cast<int>(i % tokens()));
                    sum += value(z) / relative_density(z) * tokens() / (1 + tokens());
                }
                return sum;
            },
            integration.pool);
    };
    // The surrogate is a thousand times cheaper: its average is taken over many more points, and the exact
    // sum only corrects it.
    const numerics::Estimate coarse = average(64 * integration.points, [&] { return surrogate; });
    const numerics::Estimate correction = average(integration.points, [&] {
        return [&, recursion = HardmaxRecursion(tokens())](const Eigen::VectorXd& z) mutable {
            return sum_over_labels(recursion, spread * z, f) - surrogate(z);
        };
    });
    return {coarse.value + correction.value, std::hypot(coarse.standard_error, correction.standard_error)};
}

ScorePower HardmaxSampled::score_power(const OrderParameters& parameters,
                                       const Integration& integration) const {
    const ScalarParameters p(parameters);
    const double ratio = p.overlap / p.variance;
    const numerics::Estimate power =
        tokens() == 2
            ? numerics::Estimate{hardmax_pair::tied_averages(ratio, hardmax_pair::Score::exact).power, 0}
            : average_over_labels(ratio, integration, [](double, double squares) { return squares; });
    return {linalg::scalar_overlap(power.value / p.variance), power.standard_error / power.value};
}

std::optional<double> HardmaxSampled::information(const OrderParameters& parameters,
                                                  const Integration& integration) const {
    const ScalarParameters p(parameters);
    const double ratio = p.overlap / p.variance;
    if (tokens() == 2) return hardmax_pair::tied_averages(ratio, hardmax_pair::Score::exact).information;
    return average_over_labels(ratio, integration, [](double log_z, double) { return log_z; }).value;
}

GeneralizationError HardmaxSampled::generalization(const OrderParameters& parameters,
                                                   const Integration&) const {
    const ScalarParameters p(parameters);
    const double optimal = hardmax_disagreement(tokens(), {p.total, p.total, p.overlap, 2 * p.error});
    const double plug_in = hardmax_disagreement(tokens(), {p.overlap, p.total, p.overlap, p.error});
    return {tokens() * optimal, 2 * tokens() * plug_in, 0};
}

}  // namespace bayesaim::channels

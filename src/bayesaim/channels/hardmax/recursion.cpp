// SPDX-License-Identifier: MIT
#include "bayesaim/channels/hardmax/recursion.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>

#include <boost/math/quadrature/gauss.hpp>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/numerics/gaussian.hpp"

namespace bayesaim::channels {
namespace {

constexpr int nodes = 15;
constexpr int edge = 15;  // the entry after the nodes: the edge t = 0 of a panel
constexpr double nothing = -std::numeric_limits<double>::infinity();
using Panel = Eigen::Array<double, nodes + 1, 1>;
using Matrix = Eigen::Matrix<double, nodes + 1, nodes + 1>;

bool has(unsigned set, int member) { return (set >> member & 1u) != 0; }
bool contains(unsigned set, unsigned part) { return (part & ~set) == 0; }

/// exp(x) with a floor, so that products do not become denormal numbers, which are slow.
Panel exp_floored(const Panel& x) { return x.max(-650.0).exp(); }

/// The values of the nodes in the opposite order; the edge stays.
Panel reversed(const Panel& x) {
    Panel result = x;
    result.head<nodes>() = x.head<nodes>().reverse();
    return result;
}

/// mantissa x exp(exponent), entry by entry.
struct Scaled {
    Panel mantissa, exponent;

    void add(const Scaled& other) {
        const Panel larger = exponent.max(other.exponent);
        mantissa *= exp_floored(exponent - larger);
        mantissa += other.mantissa * exp_floored(other.exponent - larger);
        exponent = larger;
    }

    /// The floor matters only at the far end of a window, where the cut-off tail is no longer exponential.
    Panel log() const { return mantissa.max(1e-30).log() + exponent; }
};

/// The integrals int_{t_i}^1 exp(f) dt over a panel [0, 1], from every Gauss node t_i and from the edge at 0,
/// for an f that is close to a straight line of any slope: exp(f) = exp(-beta t) s(t), and s is replaced by
/// its interpolating polynomial. f[edge] is not used.
class PanelRule {
  public:
    Panel node, log_weight;  // the edge has no weight

    PanelRule() {
        using Gauss = boost::math::quadrature::gauss<double, nodes>;
        node[edge] = 0;
        log_weight[edge] = nothing;
        for (int i = 0; i < nodes; ++i) {
            const int k = std::abs(i - nodes / 2);
            node[i] = 0.5 * (1 + (i < nodes / 2 ? -1 : 1) * Gauss::abscissa()[k]);
            log_weight[i] = std::log(0.5 * Gauss::weights()[k]);
        }
        constexpr double tiny = 1e-100;
        at_start_[edge] = at_end_[edge] = 0;
        derivative_.setZero();
        for (int j = 0; j < nodes; ++j) {
            at_start_[j] = basis(j, 0.0);
            at_end_[j] = basis(j, 1.0);
            for (int i = 0; i <= nodes; ++i) {
                derivative_(i, j) = basis(j, std::complex(node[i], tiny)).imag() / tiny;
            }
        }
        for (int k = 0; k <= steps; ++k) tail_[k] = tail_matrix(k * step);
    }

    Scaled integrals(const Panel& f) const {
        const double decay = (f[0] - f[nodes - 1]) / (node[nodes - 1] - node[0]);
        if (decay >= 0) return of_decaying(f, decay);
        // f rises: take the whole integral minus the integrals from the other side.
        const Scaled other = of_decaying(reversed(f), -decay);
        Panel part = other.mantissa * exp_floored(other.exponent - other.exponent[edge]);
        const double whole = part[edge];
        part[edge] = 0;
        return {whole - reversed(part), Panel::Constant(other.exponent[edge])};
    }

  private:
    static constexpr double step = 2;  // leaves at most exp(+-t) to the polynomial
    static constexpr int steps = 64;
    std::array<Matrix, steps + 1> tail_;  // for beta = 0, 2, 4, ... 128
    Matrix derivative_;                   // d/dt at the nodes and the edge
    Panel at_start_, at_end_;             // interpolation to t = 0 and to t = 1

    Scaled of_decaying(const Panel& f, double decay) const {
        const bool tabulated = decay < (steps + 0.5) * step;
        const int k = tabulated ? static_cast<int>(decay / step + 0.5) : 0;
        const double beta = tabulated ? k * step : decay;
        Panel s = f + beta * node;
        s[edge] = s[0];
        const double top = s.maxCoeff();
        s = exp_floored(s - top);
        return {tabulated ? Panel((tail_[k] * s.matrix()).array()) : of_steep(s, beta), top - beta * node};
    }

    /// y' = beta y - s, y(1) = 0, for a polynomial s and beta beyond the table:
    ///   y = v - exp(-beta (1 - t)) v(1),   v = sum_k s^(k) / beta^(k+1).
    Panel of_steep(Panel s, double beta) const {
        s[edge] = (at_start_ * s).sum();
        Panel v = s / beta;
        for (int k = 1; k < nodes; ++k) v = (s + (derivative_ * v.matrix()).array()) / beta;
        return v - (at_end_ * v).sum() * exp_floored(beta * (node - 1));
    }

    /// int_{t_i}^1 exp(-beta (t - t_i)) l_j(t) dt.
    Matrix tail_matrix(double beta) const {
        using Gauss = boost::math::quadrature::gauss<double, 40>;
        Matrix result = Matrix::Zero();
        for (int i = 0; i <= nodes; ++i) {
            for (int j = 0; j < nodes; ++j) {
                const auto f = [&](double t) { return std::exp(-beta * (t - node[i])) * basis(j, t); };
                result(i, j) = Gauss::integrate(f, node[i], 1.0);
            }
        }
        return result;
    }

    /// The Lagrange polynomial l_j of the nodes.
    template <class Number>
    Number basis(int j, Number t) const {
        Number product = 1;
        for (int i = 0; i < nodes; ++i) {
            if (i != j) product *= (t - node[i]) / (node[j] - node[i]);
        }
        return product;
    }
};

const PanelRule& panel_rule() {
    static const PanelRule rule;
    return rule;
}

/// Half the width of the window around a winner's mode, in units of sqrt(V)/tau. The law of h is a Gaussian
/// on a convex cone; away from its mode it decays at least as fast as the Gaussian, exp(-8.5^2/2) = 2e-16.
constexpr double half_window = 8.5;

}  // namespace

/// The logarithms of all functions on the panels are concave, with second derivatives down to -T^2/V: the
/// more tokens, the narrower the panels. The widths here leave 1e-15 in log Z.
HardmaxRecursion::HardmaxRecursion(int tokens) : tokens_(tokens), panel_width_(4.8 / (tokens + 1)) {
    check_at_least("tokens", tokens, 2);
    if (tokens > max_tokens) throw_invalid("tokens", "at most 6", tokens);
    const int panels = tokens * static_cast<int>(std::ceil(2 * half_window / panel_width_ + 1));
    for (auto* per_panel : {&left_, &width_, &log_width_}) per_panel->resize(panels);
    node_.resize(panels * panel_size);
    scratch_.resize(node_.size());
    log_density_.resize(node_.size(), tokens);
    for (auto* per_loser : {&log_below_, &hazard_}) per_loser->resize(node_.size(), pairs());
    for (auto* per_subset : {&log_upper_, &log_lower_}) per_subset->resize(node_.size(), 1 << tokens);
}

bool HardmaxRecursion::possible(std::span<const int> labels) const {
    check_size("labels", static_cast<long long>(labels.size()), tokens_);
    for (const int label : labels) {
        if (label < 0 || label >= tokens_) throw_invalid("labels", "between 0 and tokens - 1", label);
    }
    for (int a = 0; a < tokens_; ++a) {
        int b = a;
        for (int step = 0; step < tokens_; ++step) b = labels[b];  // b is now on the cycle that a leads to
        if (labels[labels[b]] != b) return false;
    }
    return true;
}

double HardmaxRecursion::evaluate(std::span<const int> labels, std::span<const double> omega, double variance,
                                  std::span<double> g) {
    if (!possible(labels)) throw_invalid("labels", "without a cycle of three or more tokens", "such a cycle");
    check_size("omega", static_cast<long long>(omega.size()), pairs());
    check_positive("variance", variance);
    if (!g.empty()) check_size("g", static_cast<long long>(g.size()), pairs());

    const double deviation = std::sqrt(variance);
    read_labels(labels);
    place(omega, deviation);
    find_modes();
    lay_panels();
    tabulate();
    const double log_z = integrate_downwards();
    if (!g.empty()) integrate_upwards(log_z, deviation, g);
    return std::min(log_z + log_peak_, 0.0);
}

void HardmaxRecursion::read_labels(std::span<const int> labels) {
    const auto wins = [&](int a, int b) { return labels[a] == b || labels[b] == a; };
    std::array<Subset, max_tokens> winner_of{};  // each as a subset of one winner
    winner_count_ = loser_count_ = 0;
    for (int a = 0; a < tokens_; ++a) {
        for (int b = a; b < tokens_; ++b) {
            if (!wins(a, b)) continue;
            if (labels[a] == b) winner_of[a] = 1u << winner_count_;
            if (labels[b] == a) winner_of[b] = 1u << winner_count_;
            ++winner_count_;
        }
    }
    for (int a = 0, index = 0, w = 0; a < tokens_; ++a) {
        for (int b = a; b < tokens_; ++b, ++index) {
            const Pair pair{index, winner_of[a] | winner_of[b], a == b ? 1 : std::numbers::sqrt2, 0, 0};
            if (wins(a, b)) {
                winners_[w] = {pair, 0, 0};
                winners_[w].above &= ~(1u << w);
                ++w;
            } else {
                losers_[loser_count_++] = pair;
            }
        }
    }
    for (Subset set = 0; set <= everyone(); ++set) {
        reachable_[set] = true;
        for (int w = 0; w < winner_count_; ++w) {
            if (has(set, w) && !contains(set, winners_[w].above)) reachable_[set] = false;
        }
    }
}

void HardmaxRecursion::place(std::span<const double> omega, double deviation) {
    const double origin = omega[winners_[0].index] / winners_[0].tau;
    const auto place_pair = [&](Pair& pair) {
        pair.centre = (omega[pair.index] / pair.tau - origin) / deviation;
        if (!(std::abs(pair.centre) < 1e12)) throw_invalid("omega/sqrt(variance)", "below 1e12", pair.centre);
    };
    std::for_each_n(winners_.begin(), winner_count_, place_pair);
    std::for_each_n(losers_.begin(), loser_count_, place_pair);
}

/// The most probable h is the projection of the centres on the cone of the labels, with weights tau^2: an
/// isotonic regression. Brunk's solution: take all sets of pairs that contain, with each pair, everything
/// above it. The set with the largest mean is tied to that mean; repeat with the remaining pairs.
void HardmaxRecursion::find_modes() {
    const auto higher = [](const Pair& p, const Pair& q) { return p.centre > q.centre; };
    std::sort(losers_.begin(), losers_.begin() + loser_count_, higher);
    for (Subset done = 0, best = 0; done != everyone(); done = best) {
        double highest = nothing;
        for (Subset set = done + 1; set <= everyone(); ++set) {
            if (!reachable_[set] || !contains(set, done)) continue;
            double weight = 0, sum = 0;
            const auto include = [&](const Pair& pair) {
                weight += pair.tau * pair.tau;
                sum += pair.tau * pair.tau * pair.centre;
            };
            for (int w = 0; w < winner_count_; ++w) {
                if (has(set & ~done, w)) include(winners_[w]);
            }
            for (int p = 0; p < loser_count_ && losers_[p].centre * weight > sum; ++p) {
                if (contains(set, losers_[p].above) && !contains(done, losers_[p].above)) include(losers_[p]);
            }
            if (sum > highest * weight) {
                highest = sum / weight;
                best = set;
            }
        }
        for (int w = 0; w < winner_count_; ++w) {
            if (has(best & ~done, w)) winners_[w].mode = highest;
        }
    }
    for (int p = 0; p < loser_count_; ++p) {
        losers_[p].mode = -nothing;
        for (int w = 0; w < winner_count_; ++w) {
            if (has(losers_[p].above, w)) losers_[p].mode = std::min(losers_[p].mode, winners_[w].mode);
        }
    }
}

/// The panels cover exactly the windows of all winners.
void HardmaxRecursion::lay_panels() {
    const auto low = [](const Winner& w) { return w.mode - half_window / w.tau; };
    const auto high = [](const Winner& w) { return w.mode + half_window / w.tau; };
    std::array<const Winner*, max_tokens> order{};
    for (int w = 0; w < winner_count_; ++w) {  // insertion by the lower end
        int i = w;
        for (; i > 0 && low(*order[i - 1]) > low(winners_[w]); --i) order[i] = order[i - 1];
        order[i] = &winners_[w];
    }
    panel_count_ = 0;
    for (int i = 0; i < winner_count_;) {
        const double begin = low(*order[i]);
        double end = high(*order[i]);
        for (++i; i < winner_count_ && low(*order[i]) <= end; ++i) end = std::max(end, high(*order[i]));
        const int count = static_cast<int>(std::ceil((end - begin) / panel_width_));
        for (int k = 0; k < count; ++k, ++panel_count_) {
            left_[panel_count_] = begin + k * (end - begin) / count;
            width_[panel_count_] = (end - begin) / count;
            log_width_[panel_count_] = std::log(width_[panel_count_]);
        }
    }
    std::fill_n(first_.begin(), everyone() + 1, 0);
    std::fill_n(last_.begin(), everyone() + 1, panel_count_ - 1);
    for (int w = 0; w < winner_count_; ++w) {
        Winner& winner = winners_[w];
        winner.first = 0;
        winner.last = panel_count_ - 1;
        while (left_[winner.first] + width_[winner.first] <= low(winner)) ++winner.first;
        while (left_[winner.last] >= high(winner)) --winner.last;
        for (Subset set = 0; set <= everyone(); ++set) {
            if (has(set, w)) {
                last_[set] = std::min(last_[set], winner.last);
            } else {
                first_[set] = std::max(first_[set], winner.first);
            }
        }
    }
}

/// The factors of K, divided by their values at the most probable h, so that no large exponents meet:
///   -z^2/2 becomes -(z - z0) (z + z0)/2 with z = tau (u - centre), z0 = tau (mode - centre);
/// for a loser, z and z0 enter only if they are negative.
void HardmaxRecursion::tabulate() {
    for (int k = 0; k < panel_count_; ++k) {
        node_.segment<panel_size>(k * panel_size) = left_[k] + width_[k] * panel_rule().node;
    }
    log_peak_ = 0;
    for (int w = 0; w < winner_count_; ++w) {
        const Winner& winner = winners_[w];
        const Eigen::Index begin = winner.first * panel_size, count = (winner.last + 1) * panel_size - begin;
        const auto u = node_.segment(begin, count);
        const double log_norm = std::log(winner.tau / std::sqrt(2 * std::numbers::pi));
        const double half_precision = 0.5 * winner.tau * winner.tau;
        log_density_.col(w).segment(begin, count) =
            log_norm - half_precision * (u - winner.mode) * (u + (winner.mode - 2 * winner.centre));
        log_peak_ -= half_precision * (winner.mode - winner.centre) * (winner.mode - winner.centre);
        for (int p = 0; p < loser_count_; ++p) {
            const Pair& loser = losers_[p];
            if (!has(loser.above, w)) continue;
            auto z = scratch_.segment(begin, count);
            auto log_below = log_below_.col(p).segment(begin, count);
            z = loser.tau * (u - loser.centre);
            const double z0 = loser.tau * std::min(loser.mode - loser.centre, 0.0);
            const auto size = static_cast<std::size_t>(count);
            numerics::scaled_log_normal_cdf({z.data(), size}, {log_below.data(), size},
                                            {hazard_.col(p).data() + begin, size});
            log_below -= 0.5 * (z.min(0.0) - z0) * (z.min(0.0) + z0);
        }
    }
    for (int p = 0; p < loser_count_; ++p) {
        const double z0 = losers_[p].tau * std::min(losers_[p].mode - losers_[p].centre, 0.0);
        log_peak_ -= 0.5 * z0 * z0;
    }
}

/// log K_{w,S} on a panel plus the log of the panel's width, so that integrals over u are integrals over t.
HardmaxRecursion::Panel HardmaxRecursion::log_factor(Subset set, int w, int panel) const {
    Panel result = at(log_density_, panel, w) + log_width_[panel];
    for (int p = 0; p < loser_count_; ++p) {
        if (has(losers_[p].above, w) && contains(set, losers_[p].above)) result += at(log_below_, panel, p);
    }
    return result;
}

/// F_S for all S, small S before large, each from right to left. Returns log F_W(-inf), which is log Z
/// without the peak.
double HardmaxRecursion::integrate_downwards() {
    log_upper_.col(0).head(panel_count_ * panel_size).setZero();
    double beyond = 0;  // log F_S at the right edge of the panel
    for (Subset set = 1; set <= everyone(); ++set) {
        if (!reachable_[set]) continue;
        beyond = nothing;
        for (int k = last_[set]; k >= first_[set]; --k) {
            Scaled sum{Panel::Ones(), Panel::Constant(beyond)};
            for (int w = 0; w < winner_count_; ++w) {
                const Subset rest = set & ~(1u << w);
                if (rest == set || !reachable_[rest] || k < winners_[w].first) continue;
                sum.add(panel_rule().integrals(log_factor(set, w, k) + at(log_upper_, k, rest)));
            }
            const Panel logs = sum.log();
            at(log_upper_, k, set) = logs;
            beyond = logs[edge];
        }
    }
    return beyond;
}

/// A_S for all S, large S before small, each from left to right, and the averages that make up g:
///   (tau u - omega)/V for a winner,   -phi(z)/Phi(z)/sqrt(V) with z = (tau u - omega)/sqrt(V) for a loser.
void HardmaxRecursion::integrate_upwards(double log_z, double deviation, std::span<double> g) {
    std::fill(g.begin(), g.end(), 0);
    double total = 0;
    log_lower_.col(everyone()).head(panel_count_ * panel_size).setZero();
    for (Subset set = everyone(); set-- > 0;) {
        if (!reachable_[set]) continue;
        double before = nothing;  // log A_S at the left edge of the panel
        for (int k = first_[set]; k <= last_[set]; ++k) {
            const auto u = node_.segment<panel_size>(k * panel_size);
            Scaled sum{Panel::Ones(), Panel::Constant(before)};
            for (int w = 0; w < winner_count_; ++w) {
                const Subset larger = set | (1u << w);
                if (larger == set || !reachable_[larger] || k > winners_[w].last) continue;
                const Panel f = log_factor(larger, w, k) + at(log_lower_, k, larger);
                const Panel log_mass = f + at(log_upper_, k, set) - log_z + panel_rule().log_weight;
                const Panel mass = exp_floored(log_mass);
                total += mass.sum();
                g[winners_[w].index] += winners_[w].tau * (mass * (u - winners_[w].centre)).sum();
                for (int p = 0; p < loser_count_; ++p) {
                    if (!has(losers_[p].above, w) || !contains(larger, losers_[p].above)) continue;
                    g[losers_[p].index] -= (mass * at(hazard_, k, p)).sum();
                }
                if (set != 0) sum.add(panel_rule().integrals(reversed(f)));
            }
            const Panel logs = reversed(sum.log());
            at(log_lower_, k, set) = logs;
            before = logs[edge];
        }
    }
    // Each winner counts once, so the masses add up to the number of winners. Rounding of steep exponents
    // violates this a little; the quotient repairs it.
    for (double& value : g) value *= winner_count_ / (total * deviation);
}

}  // namespace bayesaim::channels

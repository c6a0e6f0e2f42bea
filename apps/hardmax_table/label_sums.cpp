// SPDX-License-Identifier: MIT
#include "hardmax_table/label_sums.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <Eigen/LU>

#include "bayesaim/channels/channel.hpp"
#include "bayesaim/numerics/gaussian.hpp"

namespace bayesaim::hardmax_table {
namespace {

bool has(unsigned set, int member) { return (set >> member & 1u) != 0; }
bool contains(unsigned set, unsigned part) { return (part & ~set) == 0; }
double tau(int a, int b) { return a == b ? 1 : std::numbers::sqrt2; }

}  // namespace

std::vector<Label> make_label(int tokens, std::span<const int> winners) {
    const auto label = [&](int a) { return winners[static_cast<std::size_t>(a)]; };
    for (int a = 0; a < tokens; ++a) {  // impossible if the walk a -> j(a) has a cycle of three or more
        int b = a;
        for (int i = 0; i < tokens; ++i) b = label(b);
        if (label(label(b)) != b) return {};
    }
    std::vector<unsigned> winner_of(static_cast<std::size_t>(tokens), 0);
    std::vector<std::pair<int, unsigned>> won, lost;  // pair, and the winners it has to stay below
    const auto wins = [&](int a, int b) { return label(a) == b || label(b) == a; };
    int count = 0;
    for (int a = 0; a < tokens; ++a) {
        for (int b = a; b < tokens; ++b) {
            if (!wins(a, b)) continue;
            if (label(a) == b) winner_of[static_cast<std::size_t>(a)] = 1u << count;
            if (label(b) == a) winner_of[static_cast<std::size_t>(b)] = 1u << count;
            ++count;
        }
    }
    for (int a = 0; a < tokens; ++a) {
        for (int b = a; b < tokens; ++b) {
            const unsigned above =
                winner_of[static_cast<std::size_t>(a)] | winner_of[static_cast<std::size_t>(b)];
            const int pair = channels::pair_index(a, b, tokens);
            if (wins(a, b)) {
                won.emplace_back(pair, above & ~(1u << won.size()));
            } else {
                lost.emplace_back(pair, above);
            }
        }
    }
    Label result;
    result.everyone = (1u << count) - 1;
    const auto reachable = [&](unsigned set) {
        for (int w = 0; w < count; ++w) {
            if (has(set, w) && !contains(set, won[static_cast<std::size_t>(w)].second)) return false;
        }
        return true;
    };
    for (unsigned set = 1; set <= result.everyone; ++set) {
        if (!reachable(set)) continue;
        for (int w = 0; w < count; ++w) {
            const unsigned rest = set & ~(1u << w);
            if (rest == set || !reachable(rest)) continue;
            Label::Term term{set, rest, won[static_cast<std::size_t>(w)].first, {}};
            for (const auto& [pair, above] : lost) {
                if (has(above, w) && contains(set, above)) term.losers.push_back(pair);
            }
            result.terms.push_back(std::move(term));
        }
    }
    return {std::move(result)};
}

std::vector<Label> all_labels(int tokens) {
    std::vector<Label> labels;
    std::vector<int> winners(static_cast<std::size_t>(tokens), 0);
    while (true) {
        for (Label& label : make_label(tokens, winners)) labels.push_back(std::move(label));
        std::size_t digit = 0;
        while (digit < winners.size() && ++winners[digit] == tokens) winners[digit++] = 0;
        if (digit == winners.size()) return labels;
    }
}

template <int lanes>
LabelSums<lanes>::LabelSums(int tokens, double step)
    : tokens_(tokens), pairs_(tokens * (tokens + 1) / 2), step_(step) {
    for (auto* of_pairs : {&density_, &cdf_, &hazard_, &distance_})
        of_pairs->resize(static_cast<std::size_t>(pairs_));
    for (auto* of_sets : {&upper_, &lower_}) of_sets->resize(std::size_t{1} << tokens);
    gradient_.resize(static_cast<std::size_t>(pairs_));
    // int_0^1 of the polynomial through the eight points -3 .. 4.
    Eigen::MatrixXd powers(2 * margin, 2 * margin);
    Eigen::VectorXd integrals(2 * margin);
    for (int n = 0; n < 2 * margin; ++n) {
        for (int k = 0; k < 2 * margin; ++k) powers(n, k) = std::pow(k - margin + 1.0, n);
        integrals[n] = 1.0 / (n + 1);
    }
    const Eigen::VectorXd rule = powers.fullPivLu().solve(integrals);
    for (std::size_t k = 0; k < rule_.size(); ++k) rule_[k] = step_ * rule[static_cast<Eigen::Index>(k)];
}

template <int lanes>
void LabelSums<lanes>::place(const Omegas& omega) {
    constexpr double below = 6.4, above = 6.3;
    Lanes lowest = Lanes::Constant(1e300), highest = Lanes::Constant(-1e300);
    for (int a = 0; a < tokens_; ++a) {
        Lanes row = Lanes::Constant(-1e300);
        for (int b = 0; b < tokens_; ++b)
            row = row.max(omega.col(channels::pair_index(a, b, tokens_)) / tau(a, b));
        lowest = lowest.min(row);
        highest = highest.max(row);
    }
    points_ = static_cast<int>((highest - lowest).maxCoeff() / step_ + (below + above) / step_) + 2;
    size_ = points_ * lanes;
    const Eigen::Index whole = size_ + 2 * margin * lanes;
    for (auto* functions : {&density_, &cdf_, &hazard_, &distance_, &upper_, &lower_}) {
        for (Function& f : *functions) {
            if (f.size() < whole) f.resize(whole);
        }
    }
    for (Function* f : {&cell_, &sum_, &mass_}) {
        if (f->size() < whole) f->resize(whole);
    }
    const auto clear_ends = [&](Function& f) {
        f.head(margin * lanes).setZero();
        f.segment(margin * lanes + size_, margin * lanes).setZero();
    };
    clear_ends(sum_);
    for (int a = 0; a < tokens_; ++a) {
        for (int b = a; b < tokens_; ++b) {
            const auto p = static_cast<std::size_t>(channels::pair_index(a, b, tokens_));
            const double scale = tau(a, b);
            const Lanes start = scale * (lowest - below) - omega.col(static_cast<Eigen::Index>(p));
            Function& z = distance_[p];
            for (int i = 0; i < points_; ++i)
                z.template segment<lanes>((margin + i) * lanes) = start + scale * step_ * i;
            auto x = inside(z), d = inside(density_[p]), c = inside(cdf_[p]), r = inside(hazard_[p]);
            const auto size = static_cast<std::size_t>(size_);
            numerics::scaled_log_normal_cdf({x.data(), size}, {c.data(), size}, {r.data(), size});
            c = (c - 0.5 * x.min(0.0).square()).max(-700.0).exp();
            d = (scale / std::sqrt(2 * std::numbers::pi)) * (-0.5 * x.square()).max(-700.0).exp();
        }
    }
}

/// The integrals over the cells [u_i, u_{i+1}], i = -1 .. points - 1.
template <int lanes>
void LabelSums<lanes>::cells(const Function& f) {
    constexpr Eigen::Index L = lanes;
    const Eigen::Index first = (margin - 1) * L;
    // Cell i starts at point i; its rule begins three points before.
    auto cell = cell_.segment(first + L, size_);
    cell = rule_[0] * f.segment(first - 2 * L, size_) + rule_[1] * f.segment(first - L, size_) +
           rule_[2] * f.segment(first, size_) + rule_[3] * f.segment(first + L, size_) +
           rule_[4] * f.segment(first + 2 * L, size_) + rule_[5] * f.segment(first + 3 * L, size_) +
           rule_[6] * f.segment(first + 4 * L, size_) + rule_[7] * f.segment(first + 5 * L, size_);
}

template <int lanes>
void LabelSums<lanes>::integrate_from_right(const Function& f, Function& result) {
    cells(f);
    Lanes total = Lanes::Zero();
    for (int i = points_; i-- > 0;) {
        total += cell_.template segment<lanes>((margin + i) * lanes);
        result.template segment<lanes>((margin + i) * lanes) = total;
    }
}

template <int lanes>
void LabelSums<lanes>::integrate_from_left(const Function& f, Function& result) {
    cells(f);
    Lanes total = Lanes::Zero();
    for (int i = 0; i < points_; ++i) {
        result.template segment<lanes>((margin + i) * lanes) = total;
        total += cell_.template segment<lanes>((margin + i) * lanes);
    }
}

template <int lanes>
typename LabelSums<lanes>::Value LabelSums<lanes>::evaluate(const Label& label) {
    const std::size_t terms = label.terms.size();
    if (kernel_.size() < terms) kernel_.resize(terms);
    inside(upper_[0]).setOnes();
    for (std::size_t t = 0; t < terms;) {
        const unsigned set = label.terms[t].set;
        auto sum = inside(sum_);
        for (bool first = true; t < terms && label.terms[t].set == set; ++t, first = false) {
            const Label::Term& term = label.terms[t];
            Function& kernel = kernel_[t];
            if (kernel.size() < cell_.size()) kernel.resize(cell_.size());
            auto k = inside(kernel);
            const auto cdf = [&](std::size_t i) {
                return inside(cdf_[static_cast<std::size_t>(term.losers[i])]);
            };
            auto density = inside(density_[static_cast<std::size_t>(term.winner)]);
            std::size_t used = std::min<std::size_t>(term.losers.size(), 2);
            if (used == 0) k = density;
            if (used == 1) k = density * cdf(0);
            if (used == 2) k = density * cdf(0) * cdf(1);
            for (; used + 1 < term.losers.size(); used += 2) k *= cdf(used) * cdf(used + 1);
            if (used < term.losers.size()) k *= cdf(used);
            if (first) {
                sum = k * inside(upper_[term.rest]);
            } else {
                sum += k * inside(upper_[term.rest]);
            }
        }
        integrate_from_right(sum_, upper_[set]);
    }
    const Lanes z = upper_[label.everyone].template segment<lanes>(margin * lanes);
    constexpr double negligible = 1e-13;
    if ((z < negligible).all()) return {z.max(0.0), Lanes::Zero()};

    for (Lanes& g : gradient_) g.setZero();
    inside(lower_[label.everyone]).setOnes();
    // A_S of the rest comes after all terms that lead to it: terms by decreasing S.
    std::array<bool, 64> begun{};
    std::vector<Function>& pending = lower_;
    for (std::size_t t = terms; t-- > 0;) {
        const Label::Term& term = label.terms[t];
        const unsigned set = term.set;
        if (set != label.everyone && (t + 1 == terms || label.terms[t + 1].set != set)) {
            sum_.segment(margin * lanes, size_) = pending[set].segment(margin * lanes, size_);
            integrate_from_left(sum_, lower_[set]);
        }
        auto f = inside(mass_);
        f = inside(kernel_[t]) * inside(lower_[set]);
        if (term.rest != 0) {
            if (begun[term.rest]) {
                inside(pending[term.rest]) += f;
            } else {
                inside(pending[term.rest]) = f;
                begun[term.rest] = true;
            }
        }
        f *= inside(upper_[term.rest]);
        const auto total = [&](const Function& weight) {
            const Eigen::Index begin = margin * lanes;
            if constexpr (lanes == 1)
                return Lanes((mass_.segment(begin, size_) * weight.segment(begin, size_)).sum());
            Lanes sums[2] = {Lanes::Zero(), Lanes::Zero()};
            Eigen::Index i = 0;
            for (; i + 2 * lanes <= size_; i += 2 * lanes) {
                sums[0] +=
                    mass_.template segment<lanes>(begin + i) * weight.template segment<lanes>(begin + i);
                sums[1] += mass_.template segment<lanes>(begin + i + lanes) *
                           weight.template segment<lanes>(begin + i + lanes);
            }
            if (i < size_)
                sums[0] +=
                    mass_.template segment<lanes>(begin + i) * weight.template segment<lanes>(begin + i);
            return Lanes(sums[0] + sums[1]);
        };
        gradient_[static_cast<std::size_t>(term.winner)] +=
            total(distance_[static_cast<std::size_t>(term.winner)]);
        for (const int p : term.losers)
            gradient_[static_cast<std::size_t>(p)] -= total(hazard_[static_cast<std::size_t>(p)]);
    }
    Lanes squares = Lanes::Zero();
    for (const Lanes& g : gradient_) squares += g.square();
    const Lanes power = (z < negligible).select(Lanes::Zero(), step_ * step_ * squares / z.max(negligible));
    return {z.max(0.0), power};
}

template <int lanes>
typename LabelSums<lanes>::Sums LabelSums<lanes>::sum(std::span<const Label> labels) {
    Sums sums;
    for (const Label& label : labels) {
        const Value value = evaluate(label);
        sums.power += label.count * value.power;
        sums.information +=
            label.count *
            (value.probability > 0).select(value.probability * value.probability.max(1e-300).log(), 0.0);
        sums.mass += label.count * value.probability;
    }
    return sums;
}

template class LabelSums<1>;
template class LabelSums<4>;

}  // namespace bayesaim::hardmax_table

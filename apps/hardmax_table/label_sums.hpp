// SPDX-License-Identifier: MIT
#pragma once
#include <array>
#include <span>
#include <vector>

#include <Eigen/Core>

/// The recursion of channels/hardmax/recursion.hpp made for tables: V = 1, in linear space, on a grid of equal
/// steps, for four omega at once (one in each lane of a vector register) when all labels are wanted, or for one.
namespace bayesaim::hardmax_table {

template <int lanes>
using Lanes = Eigen::Array<double, lanes, 1>;
template <int lanes>  // one per row, pairs row by row
using Omegas = Eigen::Array<double, lanes, Eigen::Dynamic, lanes == 1 ? Eigen::RowMajor : Eigen::ColMajor>;

/// One label: its winners and losers, and the terms (S, w) of the recursion.
struct Label {
    struct Term {
        unsigned set, rest;
        int winner;               // a pair
        std::vector<int> losers;  // pairs below w and members of S only
    };
    std::vector<Term> terms;  // small S first
    unsigned everyone = 0;
    double count =
        1;  ///< how many labels are alike under permutations of the tokens, when one stands for all
};

/// The label j(a), or none if it is impossible.
std::vector<Label> make_label(int tokens, std::span<const int> winners);
/// All possible labels.
std::vector<Label> all_labels(int tokens);

template <int lanes>
class LabelSums {
  public:
    using Lanes = hardmax_table::Lanes<lanes>;
    using Omegas = hardmax_table::Omegas<lanes>;
    explicit LabelSums(int tokens, double step);

    /// Prepares the grid and the factors of all pairs for these omega.
    void place(const Omegas& omega);

    /// Z of a label and |grad Z|^2 / Z.
    struct Value {
        Lanes probability, power;
    };
    Value evaluate(const Label& label);

    /// sum over labels of |grad Z|^2/Z and of Z log Z, and of Z.
    struct Sums {
        Lanes power = Lanes::Zero(), information = Lanes::Zero(), mass = Lanes::Zero();
    };
    Sums sum(std::span<const Label> labels);

  private:
    using Function = Eigen::ArrayXd;  // point by point, four lanes each, with `margin` zeros at both ends
    static constexpr int margin = 4;

    auto inside(Function& f) const { return f.segment(margin * lanes, size_); }
    void integrate_from_right(const Function& f, Function& result);
    void integrate_from_left(const Function& f, Function& result);
    void cells(const Function& f);

    int tokens_, pairs_;
    double step_;
    std::array<double, 2 * margin> rule_{};
    int points_ = 0;
    Eigen::Index size_ = 0;
    std::vector<Function> density_, cdf_, hazard_, distance_;  // of the pairs; distance = tau (u - m)
    std::vector<Function> upper_, lower_, kernel_;             // F_S, A_S, K of the terms
    std::vector<Lanes, Eigen::aligned_allocator<Lanes>> gradient_;
    Function cell_, sum_, mass_;
};

}  // namespace bayesaim::hardmax_table

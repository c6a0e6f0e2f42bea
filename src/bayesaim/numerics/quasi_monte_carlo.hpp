// SPDX-License-Identifier: MIT
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <Eigen/Core>

#include "bayesaim/core/parallel.hpp"
#include "bayesaim/numerics/statistics.hpp"

namespace bayesaim::numerics {

/// The x with Phi(x) = probability, 0 < probability < 1, to 3e-16 of x.
double normal_quantile(double probability);

/// Points for integrals over independent standard normal variables: a Sobol net (Joe and Kuo's direction
/// numbers, in Gray code order), moved by independent random digital shifts and mapped by the normal
/// quantile. Every point of every shift is exactly normal, so the mean over one shift is unbiased, the shifts
/// are independent, and their scatter gives the error. A digital shift takes the exclusive or with a random
/// number instead of the sum modulo 1 (Cranley and Patterson 1976). The shifted points are still a net, and
/// the error is 2 to 6 times smaller.
///
/// The first Sobol point, the origin, belongs to the net and is used: once shifted, it is like any other. A
/// power of two as the number of points keeps the net balanced. A point depends only on (seed, shift, index).
class ShiftedSobol {
  public:
    static constexpr int max_dimension = 3667;

    /// Shift r is drawn from RandomStream(seed, Purpose::integration, r).
    ShiftedSobol(int dimension, int shifts, std::size_t points_per_shift, std::uint64_t seed);

    int dimension() const { return dimension_; }
    int shifts() const { return shifts_; }
    std::size_t points_per_shift() const { return points_; }

    /// Points first_point, first_point + 1, ... of a shift, one per row of `out`.
    void fill_normal(int shift, std::size_t first_point, Eigen::Ref<Eigen::ArrayXXd> out) const;

    /// E f(z) for z standard normal. sum_of_values takes a block of points, one per row, and returns the sum
    /// of f over them; all threads of the pool call it. The bits do not depend on the number of threads.
    Estimate average(const std::function<double(const Eigen::ArrayXXd&)>& sum_of_values,
                     ThreadPool* pool = nullptr) const;

    /// The same for several functions at once: `add` adds their values at a block of points to the sums. The
    /// points of all shifts are numbered from 0; the first point of the block has the number `first`.
    using AddValues =
        std::function<void(const Eigen::ArrayXXd& points, std::size_t first, Eigen::VectorXd& sums)>;
    std::vector<Estimate> averages(Eigen::Index functions, std::size_t points_per_block, const AddValues& add,
                                   ThreadPool* pool = nullptr) const;

  private:
    int dimension_, shifts_;
    std::size_t points_;
    std::uint64_t seed_;
    // Binary fractions of 64 bits. Point n is the exclusive or of the directions whose bit is set in the Gray
    // code of n.
    std::vector<std::vector<std::uint64_t>> directions_;
};

/// Standard normal Sobol points under the first shift of a seed, one per column.
Eigen::MatrixXd normal_points(int dimension, int points, std::uint64_t seed);

}  // namespace bayesaim::numerics

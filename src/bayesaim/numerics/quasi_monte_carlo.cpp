// SPDX-License-Identifier: MIT
#include "bayesaim/numerics/quasi_monte_carlo.hpp"

#include <bit>
#include <cmath>
#include <numbers>
#include <utility>

#include <boost/math/special_functions/erf.hpp>
#include <boost/random/sobol.hpp>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/random.hpp"

namespace bayesaim::numerics {
namespace {

constexpr std::size_t block_size = 256;

/// The middle of one of 2^52 equal cells of (0, 1): never 0 or 1, and symmetric about 1/2.
double to_open_unit(std::uint64_t fraction) { return (static_cast<double>(fraction >> 12) + 0.5) * 0x1p-52; }

std::vector<std::uint64_t> random_shift(int dimension, std::uint64_t seed, int shift) {
    const RandomStream stream(seed, Purpose::integration, static_cast<std::uint64_t>(shift));
    std::vector<std::uint64_t> result;
    for (std::uint64_t block = 0; result.size() < static_cast<std::size_t>(dimension); ++block) {
        const auto words = stream.words(block);
        result.insert(result.end(), words.begin(), words.end());
    }
    result.resize(static_cast<std::size_t>(dimension));
    return result;
}

void exclusive_or(std::vector<std::uint64_t>& point, const std::vector<std::uint64_t>& direction) {
    for (std::size_t j = 0; j < point.size(); ++j) point[j] ^= direction[j];
}

/// The Gray code of 2^r is 2^r + 2^(r-1): point 2^r is direction r xor direction r - 1.
std::vector<std::vector<std::uint64_t>> sobol_directions(int dimension, std::size_t points) {
    boost::random::sobol engine(static_cast<std::size_t>(dimension));
    std::vector<std::vector<std::uint64_t>> directions;
    const int bits = static_cast<int>(std::bit_width(points - 1));
    for (int r = 0; r < bits; ++r) {
        std::vector<std::uint64_t> direction(static_cast<std::size_t>(dimension));
        // The engine leaves out the origin: its first point is point 1 here.
        engine.seed((std::uint64_t{1} << r) - 1);
        engine.generate(direction.begin(), direction.end());
        if (r > 0) exclusive_or(direction, directions.back());
        directions.push_back(std::move(direction));
    }
    return directions;
}

}  // namespace

double normal_quantile(double probability) {
    if (!(probability > 0 && probability < 1)) throw_invalid("probability", "between 0 and 1", probability);
    using InDouble = boost::math::policies::policy<boost::math::policies::promote_double<false>>;
    return -std::numbers::sqrt2 * boost::math::erfc_inv(2 * probability, InDouble());
}

ShiftedSobol::ShiftedSobol(int dimension, int shifts, std::size_t points_per_shift, std::uint64_t seed)
    : dimension_(dimension), shifts_(shifts), points_(points_per_shift), seed_(seed) {
    check_at_least("dimension", dimension, 1);
    if (dimension > max_dimension) throw_invalid("dimension", "at most 3667", dimension);
    check_at_least("shifts", shifts, 2);
    check_at_least("points_per_shift", static_cast<long long>(points_per_shift), 1);
    directions_ = sobol_directions(dimension, points_per_shift);
}

void ShiftedSobol::fill_normal(int shift, std::size_t first_point, Eigen::Ref<Eigen::ArrayXXd> out) const {
    if (shift < 0 || shift >= shifts_) throw_invalid("shift", "one of the shifts", shift);
    check_size("columns of out", out.cols(), dimension_);
    const auto last_point = first_point + static_cast<std::size_t>(out.rows());
    if (last_point > points_)
        throw_invalid("last point", "at most points_per_shift", static_cast<double>(last_point));

    std::vector<std::uint64_t> point = random_shift(dimension_, seed_, shift);
    const std::size_t gray_code = first_point ^ (first_point >> 1);
    for (std::size_t r = 0; r < directions_.size(); ++r) {
        if ((gray_code >> r & 1) != 0) exclusive_or(point, directions_[r]);
    }
    for (Eigen::Index i = 0; i < out.rows(); ++i) {
        for (int j = 0; j < dimension_; ++j) {
            out(i, j) = normal_quantile(to_open_unit(point[static_cast<std::size_t>(j)]));
        }
        const std::size_t next = first_point + static_cast<std::size_t>(i) + 1;
        if (next < points_)
            exclusive_or(point, directions_[static_cast<std::size_t>(std::countr_zero(next))]);
    }
}

Estimate ShiftedSobol::average(const std::function<double(const Eigen::ArrayXXd&)>& sum_of_values,
                               ThreadPool* pool) const {
    return averages(
        1, block_size,
        [&](const Eigen::ArrayXXd& points, std::size_t, Eigen::VectorXd& sums) {
            sums[0] += sum_of_values(points);
        },
        pool)[0];
}

std::vector<Estimate> ShiftedSobol::averages(Eigen::Index functions, std::size_t points_per_block,
                                             const AddValues& add, ThreadPool* pool) const {
    const std::size_t blocks = block_count(points_, points_per_block),
                      shifts = static_cast<std::size_t>(shifts_);
    std::vector<Eigen::VectorXd> sums(shifts * blocks, Eigen::VectorXd::Zero(functions));
    ThreadPool calling_thread(1);
    (pool != nullptr ? *pool : calling_thread).for_each(sums.size(), [&](std::size_t task) {
        const std::size_t shift = task / blocks;
        const Range range = block_range(points_, points_per_block, task % blocks);
        Eigen::ArrayXXd points(static_cast<Eigen::Index>(range.size()), dimension_);
        fill_normal(static_cast<int>(shift), range.begin, points);
        add(points, shift * points_ + range.begin, sums[task]);
    });

    std::vector<Estimate> result;
    for (Eigen::Index f = 0; f < functions; ++f) {
        std::vector<double> means(shifts, 0.0);
        for (std::size_t task = 0; task < sums.size(); ++task) means[task / blocks] += sums[task][f];
        for (double& mean : means) mean /= static_cast<double>(points_);
        result.push_back(combine(means));
    }
    return result;
}

Eigen::MatrixXd normal_points(int dimension, int points, std::uint64_t seed) {
    Eigen::ArrayXXd rows(points, dimension);
    ShiftedSobol(dimension, 2, static_cast<std::size_t>(points), seed).fill_normal(0, 0, rows);
    return rows.transpose();
}

}  // namespace bayesaim::numerics

// SPDX-License-Identifier: MIT
#include "bayesaim/numerics/quasi_monte_carlo.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>

#include "bayesaim/core/parallel.hpp"
#include "bayesaim/numerics/gaussian.hpp"

#include "support/expect_invalid.hpp"
#include "support/tolerance.hpp"

namespace {

using namespace bayesaim;
using namespace bayesaim::numerics;
using bayesaim::test::expect_invalid;
using Eigen::ArrayXXd;

constexpr double monte_carlo = 4;  // standard errors

ArrayXXd all_points(const ShiftedSobol& sobol, int shift) {
    ArrayXXd points(static_cast<Eigen::Index>(sobol.points_per_shift()), sobol.dimension());
    sobol.fill_normal(shift, 0, points);
    return points;
}

TEST(NormalQuantile, InvertsTheCdf) {
    test::WorstError worst(5e-16);
    for (const double x : {-37.0, -20.0, -8.0, -3.0, -1.0, -0.1, -1e-3, 0.1, 0.5}) {
        // An error of x changes the logarithm of the cdf by its slope.
        const double p = normal_cdf(x), back = normal_quantile(p);
        const double rounding_of_p = test::epsilon / inverse_mills_ratio(x);
        worst.add(std::max(std::abs(back - x) - rounding_of_p, 0.0) / std::abs(x), std::to_string(x));
    }
    EXPECT_EQ(normal_quantile(0.5), 0);
    for (const double p : {0x1p-53, 0x1p-30, 0.125, 0.375})
        EXPECT_EQ(normal_quantile(1 - p), -normal_quantile(p));
    expect_invalid([] { normal_quantile(0); }, "probability must be between 0 and 1, got 0");
    expect_invalid([] { normal_quantile(std::nan("")); }, "probability must be");
}

// The first 2^m points fall into 2^m equal cells of each coordinate, one each: a lost first point, a wrong
// Gray code or a shift that breaks the net leaves cells empty.
TEST(ShiftedSobol, EveryCoordinateIsStratified) {
    constexpr int points = 1024, dimension = 40;
    const ArrayXXd normals = all_points(ShiftedSobol(dimension, 2, points, 7), 1);
    for (int j = 0; j < dimension; ++j) {
        std::vector<int> visits(points, 0);
        for (const double z : normals.col(j)) ++visits[static_cast<std::size_t>(normal_cdf(z) * points)];
        EXPECT_EQ(std::count(visits.begin(), visits.end(), 1), points) << "coordinate " << j;
    }
}

TEST(ShiftedSobol, FirstPointsAreTheKnownSequence) {
    // In eighths, before the shift.
    const std::vector<std::vector<int>> known = {{0, 4, 6, 2, 3, 7, 5, 1}, {0, 4, 2, 6, 3, 7, 1, 5}};
    const ArrayXXd normals = all_points(ShiftedSobol(2, 2, 8, 1), 0);
    const auto eighths = [&](int i, int j) { return static_cast<int>(8 * normal_cdf(normals(i, j))); };
    for (int j = 0; j < 2; ++j) {
        for (int i = 0; i < 8; ++i) {
            EXPECT_EQ(eighths(i, j) ^ eighths(0, j),
                      known[static_cast<std::size_t>(j)][static_cast<std::size_t>(i)])
                << i << ' ' << j;
        }
    }
}

TEST(ShiftedSobol, PointsDoNotDependOnTheBlockTheyAreMadeIn) {
    const ShiftedSobol sobol(5, 3, 300, 11);
    for (int shift = 0; shift < 3; ++shift) {
        const ArrayXXd all = all_points(sobol, shift);
        for (const std::size_t first : {0u, 1u, 63u, 128u, 299u}) {
            ArrayXXd part(std::min<Eigen::Index>(40, 300 - static_cast<Eigen::Index>(first)), 5);
            sobol.fill_normal(shift, first, part);
            EXPECT_TRUE((part == all.middleRows(static_cast<Eigen::Index>(first), part.rows())).all())
                << first;
        }
    }
}

TEST(ShiftedSobol, ShiftsAndSeedsDiffer) {
    const ShiftedSobol sobol(3, 2, 4, 1), other(3, 2, 4, 2);
    EXPECT_FALSE((all_points(sobol, 0) == all_points(sobol, 1)).any());
    EXPECT_FALSE((all_points(sobol, 0) == all_points(other, 0)).any());
}

TEST(ShiftedSobol, SameBitsForAnyNumberOfThreads) {
    const ShiftedSobol sobol(6, 4, 1000, 3);
    const auto integrand = [](const ArrayXXd& z) { return (0.3 * z.rowwise().sum()).exp().sum(); };
    ThreadPool three(3);
    const Estimate alone = sobol.average(integrand), together = sobol.average(integrand, &three);
    EXPECT_EQ(alone.value, together.value);
    EXPECT_EQ(alone.standard_error, together.standard_error);
}

// E cos(a . z) = exp(-|a|^2/2), in 2 to 40 dimensions; within 4 standard errors, and these below plain Monte
// Carlo's.
TEST(ShiftedSobol, IntegratesKnownGaussianIntegrals) {
    constexpr int shifts = 16, points = 2048;
    for (const int dimension : {2, 6, 40}) {
        const double a = 1 / std::sqrt(dimension), expected = std::exp(-0.5);
        const Estimate estimate = ShiftedSobol(dimension, shifts, points, 5).average([&](const ArrayXXd& z) {
            return (a * z.rowwise().sum()).cos().sum();
        });
        EXPECT_LT(std::abs(estimate.value - expected), monte_carlo * estimate.standard_error) << dimension;
        const double variance = 0.5 * (1 + std::exp(-2.0)) - std::exp(-1.0);
        const double gain = dimension == 2 ? 15 : dimension == 6 ? 5 : 1.5;
        EXPECT_LT(gain * estimate.standard_error, std::sqrt(variance / (shifts * points))) << dimension;
    }
}

// The squared errors of R averages over S shifts are chi-squared with R degrees of freedom, the claimed variances with
// R (S - 1): their ratio is 1 with variance 2/R + 2/(R (S - 1)). The integrand is bounded, so that averages are close
// to normal.
TEST(ShiftedSobol, StandardErrorIsThatOfManyRepetitions) {
    constexpr int repetitions = 4000, shifts = 8;
    double squares = 0, claimed = 0;
    for (int seed = 0; seed < repetitions; ++seed) {
        const Estimate estimate =
            ShiftedSobol(3, shifts, 64, static_cast<std::uint64_t>(seed)).average([](const ArrayXXd& z) {
                return z.rowwise().sum().cos().sum();
            });
        squares += std::pow(estimate.value - std::exp(-1.5), 2);
        claimed += estimate.standard_error * estimate.standard_error;
    }
    const double deviation = std::sqrt(2.0 / repetitions * (1 + 1.0 / (shifts - 1)));  // 0.024
    EXPECT_NEAR(squares / claimed, 1, monte_carlo * deviation);
}

TEST(ShiftedSobol, RejectsImpossibleRequests) {
    expect_invalid([] { ShiftedSobol(0, 2, 4, 0); }, "dimension must be at least 1, got 0");
    expect_invalid([] { ShiftedSobol(4000, 2, 4, 0); }, "dimension must be at most 3667, got 4000");
    expect_invalid([] { ShiftedSobol(2, 1, 4, 0); }, "shifts must be at least 2, got 1");
    expect_invalid([] { ShiftedSobol(2, 2, 0, 0); }, "points_per_shift must be at least 1, got 0");
    const ShiftedSobol sobol(2, 2, 4, 0);
    ArrayXXd narrow(4, 1), tall(5, 2), fits(4, 2);
    expect_invalid([&] { sobol.fill_normal(0, 0, narrow); }, "columns of out must be of size 2, got 1");
    expect_invalid([&] { sobol.fill_normal(0, 0, tall); }, "at most points_per_shift, got 5");
    expect_invalid([&] { sobol.fill_normal(2, 0, fits); }, "shift must be one of the shifts, got 2");
}

}  // namespace

// SPDX-License-Identifier: MIT
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>

#include <gtest/gtest.h>

namespace bayesaim::test {

constexpr double epsilon = std::numeric_limits<double>::epsilon();
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// |actual - expected| / scale; infinite if a NaN is involved, so that it fails every bound.
inline double scaled_error(double actual, double expected, double scale) {
    const double error = std::abs(actual - expected) / scale;
    return std::isnan(error) ? infinity : error;
}

inline double relative_error(double actual, double expected) {
    return actual == expected ? 0 : scaled_error(actual, expected, std::abs(expected));
}

/// The largest error over many cases and the case that has it; the destructor checks `bound` once.
class WorstError {
  public:
    explicit WorstError(double bound) : bound_(bound) {}
    WorstError(const WorstError&) = delete;
    WorstError& operator=(const WorstError&) = delete;
    ~WorstError() {
        ::testing::Test::RecordProperty("worst_error", std::to_string(error_ / bound_) + " of the bound");
        EXPECT_GT(cases_, 0) << "nothing was compared";
        EXPECT_LE(error_, bound_) << "at " << place_;
    }
    void add(double error, const std::string& place) {
        ++cases_;
        if (error > error_ || std::isnan(error)) {
            error_ = std::isnan(error) ? infinity : error;
            place_ = place;
        }
    }

  private:
    double bound_, error_ = 0;
    int cases_ = 0;
    std::string place_ = "no case";
};

/// A sample mean and its standard error.
struct Estimate {
    double mean = 0, standard_error = 0;
    /// Distance to a claimed value in standard errors: Monte Carlo tests bound it by 4.
    double deviation(double expected) const { return scaled_error(mean, expected, standard_error); }
};

inline Estimate estimate(std::span<const double> sample) {
    const auto n = static_cast<double>(sample.size());
    double sum = 0, squares = 0;
    for (const double x : sample) sum += x;
    for (const double x : sample) squares += (x - sum / n) * (x - sum / n);
    return {sum / n, std::sqrt(squares / (n - 1) / n)};
}

}  // namespace bayesaim::test

// SPDX-License-Identifier: MIT
#include "hardmax_table/rows.hpp"

#include <cmath>
#include <functional>
#include <map>
#include <numbers>
#include <vector>

#include <fmt/format.h>

#include "bayesaim/channels/rows/row_posterior.hpp"
#include "bayesaim/numerics/gaussian.hpp"

#include "hardmax_table/fit.hpp"
#include "hardmax_table/surrogate.hpp"

namespace bayesaim::hardmax_table {
namespace {

/// p(r) without sampling. Label 1 stands for all. V = 1: the gaps k_b = (omega_1 - omega_b)/sqrt(2), b = 2 .. M, are
/// normal with variance s = q/V and correlation 1/2. Equal steps in t, k = sinh t, resolve the scale 1 of a tie and the
/// scale sqrt(s) of omega; sorted gaps stand for their permutations.
double row_power(int length, double r, double step) {
    const int gaps = length - 1;
    const double s = 1 / (r * r) - 1, reach = 8.5 * std::sqrt(s);
    const double low = -std::asinh(std::min(reach, 12.0)), high = std::asinh(reach);
    std::vector<double> k, weight;
    const double fine = std::min(step, (high - low) / 40);
    for (double t = fine * std::floor(low / fine); t <= high; t += fine) {
        k.push_back(std::sinh(t));
        weight.push_back(fine * std::cosh(t));
    }
    std::vector<double> factorial{1};
    for (int i = 1; i <= gaps; ++i) factorial.push_back(factorial.back() * i);
    channels::RowPosterior posterior;
    const std::vector<double> variance(static_cast<std::size_t>(length), 1);
    std::vector<double> omega(variance.size(), 0), g(omega.size());
    // exp(-k' C^-1 k/2), C^-1 = (2/s) (1 - 11'/M), det C = (s/2)^(M-1) M
    const double norm = std::pow(std::numbers::pi * s, -0.5 * gaps) / std::sqrt(length);
    double sum = 0;
    const std::function<void(int, std::size_t, int, double, double, double)> add =
        [&](int depth, std::size_t first, int equal, double product, double total, double squares) {
            if (depth == gaps) {
                const double density = norm * std::exp(-(squares - total * total / length) / s);
                if (product * density < 1e-25) return;
                const double z = std::exp(posterior.evaluate(omega, 0, variance, g));
                double power = 0;
                for (const double entry : g) power += entry * entry;
                sum += product * density * z * power;
                return;
            }
            for (std::size_t i = first; i < k.size(); ++i) {
                const int now = i == first && depth > 0 ? equal + 1 : 1;
                omega[static_cast<std::size_t>(depth) + 1] = -std::numbers::sqrt2 * k[i];
                add(depth + 1, i, now, product * weight[i] / now, total + k[i], squares + k[i] * k[i]);
            }
        };
    add(0, 0, 0, factorial.back(), 0, 0);
    return length * sum / r;
}

double mean_of_largest(int length) {
    double sum = 0;
    constexpr double step = 0.01;
    for (double x = -10; x <= 10; x += step)
        sum +=
            step * length * x * numerics::normal_density(x) * std::pow(numerics::normal_cdf(x), length - 1);
    return sum;
}

}  // namespace

void report_row(int length) {
    // Coarser steps for longer rows: the number of points grows as 1/step^(M-1).
    constexpr double steps[] = {0.05, 0.08, 0.14, 0.22, 0.3, 0.36, 0.42};
    constexpr int sizes[] = {24, 22, 18, 14, 12, 10, 10};
    const double step = steps[length - 2];
    const int size = sizes[length - 2];
    std::vector<double> values;
    for (int i = 0; i < size; ++i)
        values.push_back(row_power(length, 0.5 + 0.5 * std::cos((i + 0.5) * std::numbers::pi / size), step));
    const std::vector<double> series = chebyshev_interpolation(values);
    double at_zero = 0, at_one = 0, integral = 0;
    for (int n = 0; n < size; ++n) {
        const double c = series[static_cast<std::size_t>(n)];
        at_one += c;
        at_zero += n % 2 == 0 ? c : -c;
        if (n % 2 == 0) integral += c / (1.0 - n * n);
    }
    const double m = mean_of_largest(length);
    double tie = 0;
    for (double x = -9; x <= 9; x += 0.01) tie += 0.01 * tie_power(x);
    fmt::print(
        "\nrow of {}: p(1) {:.12f} (exact {:.12f})  p(0) {:.12f} ({:.12f})  integral {:.12f} (log M "
        "{:.12f})\n",
        length, at_one, length * m * m / (length - 1), at_zero,
        0.5 * std::sqrt(std::numbers::pi) * m * 2 * tie / std::sqrt(2 * std::numbers::pi), integral,
        std::log(length));
    fmt::print("  r = 0.5 with the step, and with 1.2 times the step: {:.12f} {:.12f}\n",
               row_power(length, 0.5, step), row_power(length, 0.5, 1.2 * step));
    print_coefficients("row_power", length, series, 17);
}

}  // namespace bayesaim::hardmax_table

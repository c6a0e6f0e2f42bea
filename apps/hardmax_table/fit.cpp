// SPDX-License-Identifier: MIT
#include "hardmax_table/fit.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include <Eigen/QR>
#include <fmt/format.h>

#include "bayesaim/channels/expectations/output_disagreement.hpp"

#include "hardmax_table/no_data.hpp"
#include "hardmax_table/surrogate.hpp"

namespace bayesaim::hardmax_table {
namespace {

/// Rows of the linear conditions on the coefficients of sum_k c_k T_k(2r - 1).
struct Conditions {
    int size;
    Eigen::RowVectorXd value(double r) const {
        Eigen::RowVectorXd row(size);
        for (int k = 0; k < size; ++k) row[k] = std::cos(k * std::acos(std::clamp(2 * r - 1, -1.0, 1.0)));
        return row;
    }
    Eigen::RowVectorXd slope(bool at_one) const {
        Eigen::RowVectorXd row(size);
        for (int k = 0; k < size; ++k) row[k] = 2.0 * k * k * (at_one || k % 2 == 1 ? 1 : -1);
        return row;
    }
    Eigen::RowVectorXd curvature() const {  // at r = 1
        Eigen::RowVectorXd row(size);
        for (int k = 0; k < size; ++k) row[k] = 4.0 * k * k * (k * k - 1) / 3;
        return row;
    }
    Eigen::RowVectorXd integral(double to) const {  // from 0
        Eigen::RowVectorXd row(size);
        const double x = 2 * to - 1;
        const auto chebyshev = [](int k, double at) {
            return std::cos(k * std::acos(std::clamp(at, -1.0, 1.0)));
        };
        for (int k = 0; k < size; ++k) {
            const auto primitive = [&](double at) {
                if (k == 0) return at;
                if (k == 1) return 0.5 * at * at;
                return 0.5 * (chebyshev(k + 1, at) / (k + 1) - chebyshev(k - 1, at) / (k - 1));
            };
            row[k] = 0.5 * (primitive(x) - primitive(-1));
        }
        return row;
    }
};

/// One value of p_T(r) and of I_out with their errors: all shifts of all nets of one kind at this r.
struct Measured {
    double r = 0, p = 0, information = 0, error = 0, information_error = 0, correlation = 0;
    std::size_t points = 0;
    int draws = 0;
};

std::vector<Measured> gather(const std::vector<Node>& nodes, double exact_error) {
    std::map<std::pair<double, bool>, std::vector<Node>> groups;
    for (const Node& node : nodes) groups[{node.r, node.draws > 0}].push_back(node);
    std::vector<Measured> all;
    for (const auto& [key, group] : groups) {
        Measured at;
        at.r = key.first;
        at.draws = group[0].draws;
        if (group.size() == 1) {
            at.p = group[0].p;
            at.information = group[0].information;
            at.error = at.information_error = exact_error;
            all.push_back(at);
            continue;
        }
        // The variance falls nearly as 1/points^2 with all labels, as 1/points with drawn ones, hence these weights;
        // the scatter of the shifts gives the error.
        const auto weight = [](const Node& node) {
            const auto points = static_cast<double>(node.points);
            return node.draws > 0 ? points * node.draws : points * points;
        };
        double weights = 0;
        for (const Node& node : group) {
            const double w = weight(node);
            weights += w;
            at.points += node.points;
            at.p += w * node.p;
            at.information += w * node.information;
        }
        at.p /= weights;
        at.information /= weights;
        for (const Node& node : group) {
            const double w = weight(node) / weights;
            at.error += w * w * std::pow(node.p - at.p, 2);
            at.information_error += w * w * std::pow(node.information - at.information, 2);
            at.correlation += w * w * (node.p - at.p) * (node.information - at.information);
        }
        const double n = static_cast<double>(group.size());
        at.correlation /= std::sqrt(at.error * at.information_error);
        at.error = std::sqrt(at.error * n / (n - 1));
        at.information_error = std::sqrt(at.information_error * n / (n - 1));
        all.push_back(at);
    }
    return all;
}

struct Exact {
    double value_zero, slope_zero;
    NoData one;
};

/// Least squares in the measured values, subject to the exact numbers; the last exact number, p''(1), has an
/// error of its own. Returns the coefficients and the covariance of what was measured.
struct Fit {
    Eigen::VectorXd coefficients;
    Eigen::MatrixXd covariance;
    double chi_squared = 0;
    int degrees = 0;
};

Fit fit(int tokens, int size, const Exact& exact, const std::vector<Measured>& measured, int leave_out = -1) {
    const Conditions rows{size};
    Eigen::MatrixXd fixed(5, size);
    fixed << rows.value(0), rows.slope(false), rows.value(1), rows.slope(true), rows.integral(1);
    Eigen::VectorXd known(5);
    known << exact.value_zero, exact.slope_zero, exact.one.value, exact.one.slope, exact.one.entropy;
    if (leave_out >= 0) {
        for (int i = leave_out; i < 4; ++i) {
            fixed.row(i) = fixed.row(i + 1).eval();
            known[i] = known[i + 1];
        }
        fixed = fixed.topRows(4).eval();
        known = known.head(4).eval();
    }
    const auto with_information = [](const Measured& at) { return at.draws > 0; };
    const Eigen::Index count = static_cast<Eigen::Index>(measured.size()) + 1 +
                               std::count_if(measured.begin(), measured.end(), with_information);
    Eigen::MatrixXd design(count, size);
    Eigen::VectorXd target(count);
    // p''(1) is a limit of differences: each token costs it a digit.
    const double curvature_error = 2e-6 * std::pow(10, tokens - 3);
    design.row(0) = rows.curvature() / curvature_error;
    target[0] = exact.one.curvature / curvature_error;
    Eigen::Index i = 1;
    for (const Measured& at : measured) {
        design.row(i) = rows.value(at.r) / at.error;
        target[i] = at.p / at.error;
        if (with_information(at)) {
            // I_out = -int p was measured with the same labels. Nearly all of it is known from r = 0, so that it tells how
            // lucky the labels were: p and I_out enter with their correlation.
            design.row(i + 1) = -rows.integral(at.r) / at.information_error;
            target[i + 1] = at.information / at.information_error;
            const double independent = std::sqrt(1 - at.correlation * at.correlation);
            design.row(i) = (design.row(i) - at.correlation * design.row(i + 1)).eval() / independent;
            target[i] = (target[i] - at.correlation * target[i + 1]) / independent;
            ++i;
        }
        ++i;
    }
    // c = particular + null y
    const Eigen::CompleteOrthogonalDecomposition<Eigen::MatrixXd> constraint(fixed);
    const Eigen::VectorXd particular = constraint.solve(known);
    const Eigen::HouseholderQR<Eigen::MatrixXd> qr(fixed.transpose());
    const Eigen::MatrixXd null =
        (qr.householderQ() * Eigen::MatrixXd::Identity(size, size)).rightCols(size - fixed.rows());
    const Eigen::MatrixXd reduced = design * null;
    const Eigen::VectorXd rest = target - design * particular;
    const Eigen::VectorXd y = reduced.colPivHouseholderQr().solve(rest);
    Fit result;
    result.coefficients = particular + null * y;
    result.covariance = null *
                        (reduced.transpose() * reduced).completeOrthogonalDecomposition().pseudoInverse() *
                        null.transpose();
    result.chi_squared = (reduced * y - rest).squaredNorm();
    result.degrees = static_cast<int>(count - reduced.cols());
    return result;
}

}  // namespace

std::vector<double> chebyshev_interpolation(std::span<const double> values) {
    const std::size_t n = values.size();
    std::vector<double> result(n, 0);
    for (std::size_t j = 0; j < n; ++j) {
        for (std::size_t k = 0; k < n; ++k)
            result[j] += (j > 0 ? 2.0 : 1.0) / static_cast<double>(n) * values[k] *
                         std::cos(static_cast<double>(j) * (static_cast<double>(k) + 0.5) * std::numbers::pi /
                                  static_cast<double>(n));
    }
    return result;
}

void print_coefficients(const char* name, int tokens, std::span<const double> coefficients, int digits) {
    fmt::print("constexpr double {}_{}[] = {{", name, tokens);
    for (const double c : coefficients) fmt::print("{:.{}g}, ", c, digits);
    fmt::print("}};\n");
}

void report(int tokens, const std::vector<Node>& nodes) {
    const Exact exact{value_without_error(tokens), slope_without_error(tokens), without_data(tokens)};
    fmt::print(
        "\nT = {}: p(0) {:.12f}  p'(0) {:.10f}  p(1) {:.12f}  p'(1) {:.10f}  p''(1) {:.6f}  integral "
        "{:.12f}\n",
        tokens, exact.value_zero, exact.slope_zero, exact.one.value, exact.one.slope, exact.one.curvature,
        exact.one.entropy);
    if (tokens == 2) {  // all nodes are exact to 1e-13
        std::vector<double> values;
        std::map<double, double, std::greater<>> sorted;
        for (const Node& node : nodes) sorted[node.r] = node.p;
        for (const auto& [r, p] : sorted) values.push_back(p);
        const std::vector<double> series = chebyshev_interpolation(values);
        const Eigen::Map<const Eigen::VectorXd> c(series.data(), static_cast<Eigen::Index>(series.size()));
        fmt::print("  series at r = 0 {:.12f}, at r = 1 {:.12f}, last coefficient {:.1e}\n",
                   double(Conditions{24}.value(0) * c), c.sum(), series.back());
        print_coefficients("power", tokens, series, 17);
        return;
    }
    const auto measured = gather(nodes, 3e-8);
    for (const Measured& at : measured) {
        fmt::print(
            "  r {:<6g} p {:.9f} ({:.1e})  I_out {:.9f} ({:.1e})  correlation {:+.2f}  {} points, {}\n", at.r,
            at.p, at.error, at.information, at.information_error, at.correlation, at.points,
            at.draws > 0 ? "drawn labels" : "all labels");
    }
    constexpr int sizes[] = {11, 8, 7, 8};  // of T = 3 to 6
    const int size = sizes[tokens - 3];
    for (int n = std::max(6, size - 2); n <= size + 2; ++n) {
        const Fit result = fit(tokens, n, exact, measured);
        double error = 0, at = 0, difference = 0;
        for (double r = 0; r <= 1; r += 0.005) {
            const Eigen::RowVectorXd row = Conditions{n}.value(r);
            const double p = row * result.coefficients,
                         e = std::sqrt(std::max(0.0, double(row * result.covariance * row.transpose()))) / p;
            if (e > error) {
                error = e;
                at = r;
            }
            if (n != size) {
                const Fit chosen = fit(tokens, size, exact, measured);
                difference = std::max(difference,
                                      std::abs(p / (Conditions{size}.value(r) * chosen.coefficients)(0) - 1));
            }
        }
        fmt::print(
            "  {} coefficients: chi^2 {:.1f} for {}, largest relative standard error {:.1e} (r = {:.2f}), "
            "from the chosen {:.1e}\n",
            n, result.chi_squared, result.degrees, error, at, difference);
    }
    if (measured.size() > 4) {
        const char* names[] = {"p(0)", "p'(0)", "p(1)", "p'(1)", "integral"};
        for (int left = 0; left < 5; ++left) {
            const Fit result = fit(tokens, size, exact, measured, left);
            const Conditions rows{size};
            const Eigen::RowVectorXd row = left == 0   ? rows.value(0)
                                           : left == 1 ? rows.slope(false)
                                           : left == 2 ? rows.value(1)
                                           : left == 3 ? rows.slope(true)
                                                       : rows.integral(1);
            fmt::print("  {} from the others: {:.8f} +- {:.1e}\n", names[left],
                       double(row * result.coefficients),
                       std::sqrt(double(row * result.covariance * row.transpose())));
        }
    }
    const Fit result = fit(tokens, size, exact, measured);
    for (const Measured& at : measured) {
        const double p = Conditions{size}.value(at.r) * result.coefficients,
                     information = -(Conditions{size}.integral(at.r) * result.coefficients)(0);
        fmt::print("  r {:<6g} measured - table: p {:+.1e} ({:+.1f} s.e.)   I_out {:+.1e} ({:+.1f} s.e.)\n",
                   at.r, at.p - p, (at.p - p) / at.error, at.information - information,
                   (at.information - information) / at.information_error);
    }
    print_coefficients("power", tokens, {result.coefficients.data(), static_cast<std::size_t>(size)}, 12);
}

void report_disagreement(int tokens) {
    constexpr int size = 17;
    std::vector<double> values(size);
    for (int k = 0; k < size; ++k) {
        const double angle = std::numbers::pi / 4 * (1 + std::cos((k + 0.5) * std::numbers::pi / size)),
                     gap = 2 * std::pow(std::sin(angle / 2), 2);
        values[static_cast<std::size_t>(k)] =
            channels::hardmax_disagreement(tokens, {1, 1, 1 - gap, 2 * gap}) / angle;
    }
    print_coefficients("angle", tokens, chebyshev_interpolation(values), 17);
}

}  // namespace bayesaim::hardmax_table

// SPDX-License-Identifier: MIT
// Every row of the table of losses: values, gradients and proximal steps against the definition.
#include "support/losses.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "bayesaim/losses/table.hpp"

#include "support/expect_invalid.hpp"
#include "support/tolerance.hpp"

namespace bayesaim::losses {
namespace {

using channels::Rows;
using test::LossCase;

/// An estimate half as good as it can be.
constexpr Alignment half_learned{1.5, 0.9, 1.0};

std::vector<LossCase> all_cases() { return test::loss_cases({2, 3, 4}, {0.5, 1, 3}); }

struct Step {
    Rows g;
    Eigen::VectorXd log_z;
};
Step step(const Loss& loss, const Rows& outputs, const Rows& omega, double variance) {
    Step result{Rows(omega.rows(), omega.cols()), Eigen::VectorXd(omega.rows())};
    loss.score(outputs, omega, linalg::scalar_overlap(variance), result.g, result.log_z);
    return result;
}

/// All samples at once: f'(x) along each pair by the five-point rule.
template <class Function>
Rows differences(const Rows& at, double h, Function f) {
    Rows result(at.rows(), at.cols());
    for (Eigen::Index p = 0; p < at.cols(); ++p) {
        const auto moved = [&](double by) {
            Rows rows = at;
            rows.col(p).array() += by;
            return f(rows, p);
        };
        result.col(p) = (8 * (moved(h) - moved(-h)) - (moved(2 * h) - moved(-2 * h))) / (12 * h);
    }
    return result;
}

TEST(Losses, WithoutVarianceTheValueIsThatOfTheDefinition) {
    constexpr double roundoff = 1e-12;
    test::WorstError worst(roundoff);
    for (const LossCase& of : all_cases()) {
        const auto channel = of.make_channel();
        const auto loss = of.make_loss();
        const auto data = test::loss_samples(*channel, half_learned, 50, 1);
        const Step found = step(*loss, data.outputs, data.omega, 0);
        for (Eigen::Index i = 0; i < data.omega.rows(); ++i) {
            const double expected =
                test::loss_by_definition(of, data.outputs.row(i), data.teacher.row(i), data.omega.row(i));
            worst.add(test::scaled_error(-found.log_z[i], expected, 1 + expected), of.title());
        }
    }
}

TEST(Losses, WithoutVarianceTheStepIsMinusTheGradient) {
    constexpr double finite_difference = 1e-9;  // h^4, and 1e-15/h
    test::WorstError worst(finite_difference);
    for (const LossCase& of : all_cases()) {
        const auto channel = of.make_channel();
        const auto loss = of.make_loss();
        const auto data = test::loss_samples(*channel, half_learned, 20, 2);
        const Rows g = step(*loss, data.outputs, data.omega, 0).g;
        const Rows slope = differences(data.omega, 1e-3, [&](const Rows& omega, Eigen::Index) {
            Eigen::VectorXd values(omega.rows());
            for (Eigen::Index i = 0; i < omega.rows(); ++i)
                values[i] =
                    test::loss_by_definition(of, data.outputs.row(i), data.teacher.row(i), omega.row(i));
            return values;
        });
        worst.add((g + slope).cwiseAbs().maxCoeff(), of.title());
    }
}

TEST(Losses, TheProximalStepIsStationaryAndItsValueIsTheMerit) {
    constexpr double newton = 1e-9;  // steps end at 1e-10
    test::WorstError stationarity(newton), value(newton);
    for (const LossCase& of : all_cases()) {
        const auto channel = of.make_channel();
        const auto loss = of.make_loss();
        const auto data = test::loss_samples(*channel, half_learned, 50, 3);
        for (const double variance : {1e-6, 0.1, 1.0, 10.0, 1e3}) {
            const Step found = step(*loss, data.outputs, data.omega, variance);
            const Rows end = data.omega + variance * found.g, gradient = step(*loss, data.outputs, end, 0).g;
            const std::string place = fmt::format("{}, V {}", of.title(), variance);
            // z is known to 1e-10, and so is g = (z - omega)/V
            stationarity.add((gradient - found.g).cwiseAbs().maxCoeff(), place);
            for (Eigen::Index i = 0; i < end.rows(); ++i) {
                const double expected =
                    test::loss_by_definition(of, data.outputs.row(i), data.teacher.row(i), end.row(i)) +
                    0.5 * variance * found.g.row(i).squaredNorm();
                value.add(test::scaled_error(-found.log_z[i], expected, 1 + expected), place);
            }
        }
    }
}

TEST(Losses, SlopeIsThatOfTheSteps) {
    constexpr double finite_difference = 1e-7;
    test::WorstError worst(finite_difference), same(0);
    for (const LossCase& of : all_cases()) {
        const auto channel = of.make_channel();
        const auto loss = of.make_loss();
        const auto data = test::loss_samples(*channel, half_learned, 20, 4);
        for (const double variance : {0.0, 0.1, 3.0, 100.0}) {
            const Rows slopes = differences(data.omega, 1e-3, [&](const Rows& omega, Eigen::Index p) {
                return Eigen::VectorXd(step(*loss, data.outputs, omega, variance).g.col(p));
            });
            Rows g(data.omega.rows(), data.omega.cols());
            const double found =
                loss->score_with_slope(data.outputs, data.omega, linalg::scalar_overlap(variance), g)(0, 0);
            const std::string place = fmt::format("{}, V {}", of.title(), variance);
            worst.add(test::scaled_error(found, -slopes.sum(), 1 + std::abs(slopes.sum())), place);
            same.add((g - step(*loss, data.outputs, data.omega, variance).g).cwiseAbs().maxCoeff(), place);
        }
    }
}

}  // namespace
}  // namespace bayesaim::losses

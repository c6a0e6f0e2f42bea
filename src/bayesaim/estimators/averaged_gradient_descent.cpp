// SPDX-License-Identifier: MIT
#include "bayesaim/estimators/averaged_gradient_descent.hpp"

#include <algorithm>
#include <limits>

#include "bayesaim/core/checks.hpp"

namespace bayesaim::estimators {
namespace {

bool running(const Descent& descent) { return !descent.status; }

/// Advances every running descent by a few steps: one descent per thread, or all threads on one descent after
/// the other if there are fewer descents than threads. The bits are the same.
void advance_all(const GradientDescent& problem, std::vector<Descent>& descents, int steps,
                 ThreadPool& pool) {
    std::vector<Descent*> work;
    for (Descent& descent : descents) {
        if (running(descent)) work.push_back(&descent);
    }
    if (work.size() < pool.threads()) {
        for (Descent* descent : work) problem.advance(*descent, steps, &pool);
    } else {
        pool.for_each(work.size(), [&](std::size_t i) { problem.advance(*work[i], steps, nullptr); });
    }
}

Termination worst_status(const std::vector<Descent>& descents) {
    using enum Termination;
    for (const Termination bad : {diverged, stopped, iteration_limit}) {
        const auto has_it = [&](const Descent& descent) { return descent.status == bad; };
        if (std::any_of(descents.begin(), descents.end(), has_it)) return bad;
    }
    return converged;
}

}  // namespace

AveragedGradientDescentResult run_averaged_gradient_descent(const data::Dataset& data,
                                                            const channels::Channel& channel,
                                                            const AveragedGradientDescentOptions& options,
                                                            ThreadPool& pool) {
    check_at_least("starts", options.starts, 1);
    check_at_least("progress stride", options.progress_stride, 1);
    const auto problem = make_gradient_descent(data, channel, options.descent, pool);
    AveragedGradientDescentResult result;
    std::vector<Descent>& descents = result.descents;
    descents = options.resume;
    const int factors = channel.geometry().symmetric() ? 1 : 2;
    for (const Descent& descent : descents) {
        check_size("rows of a resumed student", descent.weights.rows(), data.tokens->dim());
        check_size("factors of a resumed student", descent.factors, factors);
        check_size("columns of a resumed student", descent.weights.cols(), options.descent.width * factors);
    }
    if (descents.empty()) {
        descents.resize(static_cast<std::size_t>(options.starts));
        pool.for_each(descents.size(), [&](std::size_t m) { descents[m] = problem->start(m); });
    }
    check_size("resumed starts", static_cast<long long>(descents.size()), options.starts);

    while (std::any_of(descents.begin(), descents.end(), running)) {
        advance_all(*problem, descents, options.progress_stride, pool);
        if (!options.progress || options.progress(descents)) continue;
        for (Descent& descent : descents) descent.status = descent.status.value_or(Termination::stopped);
    }
    result.status = worst_status(descents);
    measure_starts(descents, [&](const linalg::Matrix& mean) {
        result.estimate = mean;  // the last one measured is the mean over all starts
        return 0;
    });
    return result;
}

std::optional<double> training_objective(const std::vector<Descent>& descents) {
    double sum = 0, count = 0;
    for (const Descent& descent : descents) {
        if (descent.status == Termination::diverged || descent.record.empty()) continue;
        sum += descent.record.back().loss;
        ++count;
    }
    return count > 0 ? std::optional(sum / count) : std::nullopt;
}

StartErrors measure_starts(const std::vector<Descent>& descents,
                           const std::function<double(const linalg::Matrix&)>& measure) {
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    StartErrors errors;
    linalg::Matrix sum;
    double count = 0;
    for (const Descent& descent : descents) {
        const bool lost = descent.status == Termination::diverged;
        const linalg::Matrix estimate = lost ? linalg::Matrix() : descent.estimate();
        errors.each.push_back(lost ? none : measure(estimate));
        if (!lost) {
            sum = count == 0 ? estimate : linalg::Matrix(sum + estimate);
            ++count;
        }
        errors.averaged.push_back(count == 0 ? none : measure(sum / count));
    }
    return errors;
}

}  // namespace bayesaim::estimators

// SPDX-License-Identifier: MIT
#include "bayesaim/estimators/averaged_gradient_descent.hpp"

#include <algorithm>
#include <limits>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/data/saved_state.hpp"
#include "bayesaim/linalg/matrix_sum.hpp"

namespace bayesaim::estimators {
namespace {

bool running(const Descent& descent) { return !descent.status; }

/// Advances every running descent by a few steps: one descent per thread, or all threads on one descent after
/// the other if there are fewer descents than threads or the samples are on several ranks. The bits are the same.
void advance_all(const GradientDescent& problem, std::span<Descent> descents, int steps, ThreadPool& pool) {
    std::vector<Descent*> work;
    for (Descent& descent : descents) {
        if (running(descent)) work.push_back(&descent);
    }
    if (work.size() < pool.threads() || pool.ranks().size() > 1) {
        for (Descent* descent : work) problem.advance(*descent, steps, &pool);
    } else {
        pool.for_each(work.size(), [&](std::size_t i) { problem.advance(*work[i], steps, nullptr); });
    }
}

/// Calls use(bytes) for what changes from step to step. Reading, each part has its size from those before.
template <class Use>
void for_parts(Descent& descent, const Use& use) {
    std::size_t rows = descent.record.size();
    for (linalg::Matrix* matrix : {&descent.weights, &descent.first_moment, &descent.second_moment})
        use(linalg::bytes_of_matrix(*matrix));
    use(bytes_of(descent.step));
    use(bytes_of(descent.status));
    use(bytes_of(descent.seconds));
    use(bytes_of(rows));
    descent.record.resize(rows);
    use(bytes_of(descent.record.data(), rows));
}

/// The first rank gets the descents of the others.
void gather(std::vector<Descent>& descents, Communicator& ranks) {
    for (std::size_t m = 0; m < descents.size(); ++m) {
        const int from = owner_of(m, descents.size(), ranks);
        if (from == 0) continue;
        for_parts(descents[m], [&](std::span<std::byte> bytes) {
            if (ranks.first()) ranks.receive(bytes, from);
            if (ranks.rank() == from) ranks.send(bytes, 0);
        });
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
        check_size("factors of a resumed student", descent.factors, factors);
        check_between("step of a resumed student", descent.step, 0, options.descent.max_steps);
        const Eigen::Index dim = data.tokens->dim(), columns = options.descent.width * factors;
        const bool adam = options.descent.optimizer == Optimizer::adam;
        data::check_resumed("student", descent.weights, dim, columns);
        for (const linalg::Matrix* moment : {&descent.first_moment, &descent.second_moment})
            data::check_resumed("moment", *moment, adam ? dim : 0, adam ? columns : 0);
    }
    if (descents.empty()) {
        descents.resize(static_cast<std::size_t>(options.starts));
        pool.for_each(descents.size(), [&](std::size_t m) { descents[m] = problem->start(m); });
    }
    check_size("resumed starts", static_cast<long long>(descents.size()), options.starts);

    Communicator& ranks = options.starts_over != nullptr ? *options.starts_over : one_process();
    const Range part = own_part(descents.size(), ranks);
    const std::span<Descent> own = std::span(descents).subspan(part.begin, part.size());
    Communicator& agreeing = options.starts_over != nullptr ? ranks : pool.ranks();
    while (any_rank(agreeing, std::any_of(own.begin(), own.end(), running))) {
        advance_all(*problem, own, options.progress_stride, pool);
        gather(descents, ranks);
        if (proceed(options.progress, descents, agreeing)) continue;
        for (Descent& descent : descents) descent.status = descent.status.value_or(Termination::stopped);
    }
    for (Descent& descent : descents)
        for_parts(descent, [&](std::span<std::byte> bytes) { ranks.broadcast(bytes); });
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

// SPDX-License-Identifier: MIT
#include "program/dry_run.hpp"

#include <chrono>
#include <cmath>
#include <utility>

#include "bayesaim/estimators/amp.hpp"

namespace bayesaim::program {

using Clock = std::chrono::steady_clock;

experiments::ProblemSize problem_size(const model::Model& model, double dim, double samples,
                                      data::TokenStorage storage, data::Precision precision) {
    const channels::Channel& channel = model.channel();
    const channels::Geometry geometry = channel.geometry();
    const double columns =
        static_cast<double>(model.laws().front()->columns(static_cast<Eigen::Index>(std::llround(dim))));
    const bool kept = storage == data::TokenStorage::memory;
    return {.samples = std::max(1.0, samples),
            .dim = std::sqrt(dim * columns),
            .tokens = static_cast<double>(geometry.queries),
            .keys = geometry.separate_keys() ? static_cast<double>(geometry.keys) : 0,
            .pairs = static_cast<double>(channel.components() * channel.pairs()),
            .layers = static_cast<double>(channel.components()),
            .symmetric = geometry.symmetric(),
            .token_size = !kept                                           ? 0.0
                          : precision == data::Precision::float_precision ? 4.0
                                                                          : 8.0};
}

experiments::Trial trial_of(const model::Model& model, data::SyntheticOptions synthetic,
                            std::function<double(const data::Synthetic&, ThreadPool&)> iterate) {
    return [=, &model, iterate = std::move(iterate)](Eigen::Index samples, Eigen::Index dim,
                                                     ThreadPool& alone) mutable {
        synthetic.dim = dim;
        synthetic.alpha =
            static_cast<double>(samples) /
            (static_cast<double>(dim) * static_cast<double>(model.laws().front()->columns(dim)));
        const auto start = Clock::now();
        const data::Synthetic problem = make_synthetic(model.priors(), model.channel(), synthetic, alone);
        const std::chrono::duration<double> setup = Clock::now() - start;
        return experiments::TrialSeconds{setup.count(), iterate(problem, alone)};
    };
}

double amp_seconds(const model::Model& model, const data::Synthetic& problem, ThreadPool& pool) {
    const auto start = Clock::now();
    estimators::run_amp(problem.data, model.laws(), model.channel(), {.max_iterations = 1}, pool);
    return std::chrono::duration<double>(Clock::now() - start).count();
}

Record amp_forecast(const experiments::ProblemSize& size, double iterations, double runs,
                    const experiments::Trial& trial, ThreadPool& pool) {
    const double matrix = 8 * size.dim * size.dim * size.layers;
    const auto forecast =
        experiments::forecast(size, experiments::amp_operations_per_sample(size), matrix, trial, pool);
    const double bytes =
        experiments::amp_bytes(size, pool.threads(), static_cast<std::size_t>(pool.ranks().size()));
    return describe(size, forecast, bytes, iterations, runs, pool);
}

}  // namespace bayesaim::program

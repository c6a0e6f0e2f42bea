// SPDX-License-Identifier: MIT
// The contract checks, for channels and priors written in Python.
#include "bayesaim/testing/prior_contract.hpp"

#include "binding.hpp"

namespace bayesaim::python {
namespace {

/// The lines of all checks. Exceptions of Python code pass through: a traceback helps more than a line.
template <class Subject, class Check, class Options>
testing::Violations run_checks(const Subject& subject, const std::vector<Check>& checks,
                               const Options& options) {
    testing::Violations lines;
    Watch watch{py::none()};
    {
        const py::gil_scoped_release unlock;
        for (const Check& check : checks) {
            if (!watch.look()) break;
            const auto found = testing::summary(check.name, check.run(subject, options));
            lines.insert(lines.end(), found.begin(), found.end());
        }
    }
    watch.finish();
    return lines;
}

}  // namespace

void bind_testing(py::module_& module) {
    module.def(
        "check_channel",
        [](const channels::Channel& channel, double overlap, double error, Eigen::Index samples,
           Eigen::Index prediction_samples, std::uint64_t seed, bool label_noise, double score_accuracy) {
            return run_checks(channel, testing::channel_checks(),
                              testing::ChannelContractOptions{overlap, error, samples, prediction_samples,
                                                              seed, label_noise, score_accuracy});
        },
        "channel"_a, "overlap"_a, "error"_a, "samples"_a, "prediction_samples"_a, "seed"_a, "label_noise"_a,
        "score_accuracy"_a);
    module.def(
        "check_prior",
        [](const priors::Prior& prior, Eigen::Index dim, int draws, double smallest_noise_variance,
           double largest_noise_variance) {
            prior.law();  // with the lock
            return run_checks(
                prior, testing::prior_checks(),
                testing::PriorContractOptions{dim, draws, smallest_noise_variance, largest_noise_variance});
        },
        "prior"_a, "dim"_a, "draws"_a, "smallest_noise_variance"_a, "largest_noise_variance"_a);
}

}  // namespace bayesaim::python

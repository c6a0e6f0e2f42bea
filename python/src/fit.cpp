// SPDX-License-Identifier: MIT
// Fits of data of which little is known.
#include "bayesaim/estimators/fit.hpp"

#include <cmath>

#include <fmt/format.h>

#include "bayesaim/channels/table.hpp"
#include "bayesaim/core/checks.hpp"
#include "bayesaim/priors/prior.hpp"
#include "bayesaim/spectral/bump_law.hpp"

#include "dataset.hpp"

namespace bayesaim::python {
namespace {

using estimators::Family;

Family family_of(const std::string& name) {
    constexpr Family all[] = {Family::given, Family::weights, Family::gaussian, Family::smooth, Family::fine};
    for (const Family family : all) {
        if (to_string(family) == name) return family;
    }
    throw_invalid("family", "given, weights, gaussian, smooth or fine", name);
}

py::object optional_number(const std::optional<double>& value) {
    return value ? py::object(py::float_(*value)) : py::object(py::none());
}

py::object vector_or_none(const linalg::Vector& vector) {
    return vector.size() > 0 ? py::object(to_array(vector)) : py::object(py::none());
}

/// (k, 3) centres, weights and variances of the bumps of a learned law.
py::object bumps_of(const spectral::SpectralLaw* law) {
    const auto* bumps = dynamic_cast<const spectral::BumpLaw*>(law);
    if (bumps == nullptr) return py::none();
    const std::vector<spectral::Bump> all = bumps->bumps();
    channels::Rows table(static_cast<Eigen::Index>(all.size()), 3);
    for (std::size_t k = 0; k < all.size(); ++k)
        table.row(static_cast<Eigen::Index>(k)) << all[k].centre, all[k].weight, all[k].variance;
    return to_array(std::move(table));
}

py::dict fit(const PythonDataset& dataset, const std::string& channel_name, const py::dict& channel_settings,
             const std::vector<std::string>& families, const priors::Prior* prior, const py::dict& settings,
             std::size_t threads, const py::object& progress) {
    channels::ChannelOptions channel;
    channel.tokens = static_cast<int>(dataset.tokens().tokens());
    if (dataset.data.key_tokens) channel.key_tokens = static_cast<int>(dataset.data.keys().tokens());
    channel.attention =
        channels::parse_attention("attention", channel_settings["attention"].cast<std::string>());
    if (channel_settings.contains("beta")) channel.beta = channel_settings["beta"].cast<double>();
    if (channel_settings.contains("label_noise"))
        channel.label_noise = channel_settings["label_noise"].cast<double>();
    const auto channel_of = [&](double label_noise) -> std::shared_ptr<const channels::Channel> {
        channels::ChannelOptions options = channel;
        options.label_noise = label_noise;
        return channels::make_channel(channel_name, options);
    };
    estimators::FitOptions options;
    options.families.clear();
    for (const std::string& name : families) options.families.push_back(family_of(name));
    options.learn_label_noise = settings["learn_label_noise"].cast<bool>();
    options.learn_beta = settings["learn_beta"].cast<bool>();
    options.holdout = settings["holdout"].cast<double>();
    options.seed = settings["seed"].cast<std::uint64_t>();
    options.tokens_as_given = settings["tokens_as_given"].cast<bool>();
    options.amp.max_iterations = settings["max_iterations"].cast<int>();
    options.amp.tolerance = settings["tolerance"].cast<double>();
    options.amp.damping = settings["damping"].cast<double>();
    options.amp.adaptive_damping = settings["adaptive_damping"].cast<bool>();
    Watch watch(progress);
    options.amp.progress = [&](const estimators::AmpIteration& now) {
        return watch.report(now.iteration, options.amp.max_iterations,
                            fmt::format("predicted error {:.6f}", now.predicted_error.trace()));
    };
    std::vector<const spectral::SpectralLaw*> laws;
    if (prior != nullptr) laws.push_back(&prior->law());
    const auto used = channel_of(channel.label_noise);
    check_data(dataset, *used);
    const estimators::FitResult result = over_ranks(threads, [&](ThreadPool& pool) {
        return estimators::fit(dataset.data, channel_of, channel.label_noise, laws, options, pool);
    });
    watch.finish();
    py::dict learned;
    if (result.learned.family != Family::given)
        learned["law"] = std::string(to_string(result.learned.family));
    if (result.learned.width) {
        learned["width"] = *result.learned.width;
        if (!result.beta) learned["scale"] = *result.learned.scale;
    }
    if (result.beta) learned["beta"] = *result.beta;
    if (options.learn_label_noise) learned["label_noise"] = result.label_noise;
    py::list candidates;
    for (const estimators::Candidate& one : result.candidates)
        candidates.append(py::dict(
            "law"_a = std::string(to_string(one.family)), "loss"_a = one.held_out.loss,
            "ratio"_a = optional_number(one.held_out.ratio), "z"_a = optional_number(one.held_out.z),
            "predicted_error"_a = one.predicted_error, "status"_a = std::string(to_string(one.status))));
    const estimators::HeldOutFit held =
        result.candidates.empty() ? estimators::HeldOutFit{} : result.candidates[result.chosen].held_out;
    // Indices subtract the trace of the estimate where a token attends to itself; logits do not.
    const channels::Geometry geometry = used->geometry();
    double diagonal = result.terms.diagonal;
    if (geometry.symmetric() || geometry.parts() == 2)
        diagonal -= result.estimate.trace() / std::sqrt(static_cast<double>(result.estimate.rows()));
    py::dict out("estimate"_a = to_array(result.estimate), "status"_a = std::string(to_string(result.status)),
                 "predicted_error"_a = result.predicted_error.trace(),
                 "predicted_error_matrix"_a = to_array(result.predicted_error),
                 "white_estimate"_a = to_array(result.white_estimate),
                 "key_term"_a = vector_or_none(result.terms.key),
                 "query_term"_a = vector_or_none(result.terms.query), "diagonal_term"_a = diagonal,
                 "constant_term"_a = result.terms.constant, "learned"_a = learned,
                 "learned_law"_a = bumps_of(result.learned.law.get()), "candidates"_a = candidates,
                 "holdout_ratio"_a = optional_number(held.ratio), "holdout_z"_a = optional_number(held.z),
                 "holdout_error"_a = optional_number(held.error), "training_ratio"_a = result.training_ratio,
                 "spectral_misfit"_a = optional_number(result.spectral_misfit),
                 "token_whiteness"_a = result.tokens.queries.whiteness,
                 "token_length_spread"_a = result.tokens.queries.length_spread,
                 "tokens_whitened"_a = result.tokens.whitened, "iterations"_a = result.iterations,
                 "fits"_a = result.verdict.fits, "verdict"_a = result.verdict.text, "error"_a = py::none());
    if (!dataset.weights.empty())
        out["error"] = estimators::measured_error(result, *used, dataset.weights).trace();
    return out;
}

}  // namespace

void bind_fit(py::module_& module) {
    module.def("fit", &fit, "dataset"_a, "channel"_a, "channel_settings"_a, "families"_a,
               "prior"_a.none(true), "settings"_a, "threads"_a, "progress"_a.none(true));
}

}  // namespace bayesaim::python

// SPDX-License-Identifier: MIT
#include "bayesaim/estimators/amp.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/data/attention.hpp"
#include "bayesaim/data/saved_state.hpp"
#include "bayesaim/denoisers/parts.hpp"
#include "bayesaim/denoisers/singular_values.hpp"
#include "bayesaim/estimators/data_pass.hpp"

namespace bayesaim::estimators {
namespace {

using linalg::Matrix;
constexpr double infinity = std::numeric_limits<double>::infinity();

// Stopping rules; errors are relative to Tr C of the priors.
constexpr double vanishing_error = 1e-9;      // below: recovered, if the outputs are explained too
constexpr double explained_residual = 1e-6;   // below: the outputs are explained
constexpr double nothing_to_explain = 1e-20;  // power of scores: the estimates reproduce the outputs
constexpr double consistent_within = 0.5;     // Nishimori: the self-overlap is Q - C
constexpr double lost_beyond = 1e3;           // self-overlap in units of Q
constexpr double hopeless_noise = 1e20;       // scores of posteriors that were not resolved
constexpr double least_noise = 1e-29;
constexpr double dependent = 1e-8;    // independence of scores: below, a combination of layers has no data
constexpr double unresolved = 1e-13;  // independence of the noise: below, its inverse is roundoff
/// Below this many samples per dimension A from the power is too small by 10% and more (fitting: slope of R
/// on S).
constexpr double few_samples = 4;

/// d, or sqrt(d1 d2) if keys have another dimension. sqrt(d^2) is d to the last bit.
double dimension(const data::Dataset& data) {
    return std::sqrt(static_cast<double>(data.tokens->dim()) * static_cast<double>(data.keys().dim()));
}

bool use_slope(const data::Dataset& data, const channels::Channel& channel, const AmpOptions& options) {
    const Response response = options.response;
    if (options.learning.any()) return true;
    if (response != Response::automatic) return response == Response::slope;
    if (channel.layers() > 1) return true;
    // With the power a run of untied attention at twice the samples of recovery does not end.
    if (!channel.geometry().symmetric() && channel.fast_slope()) return true;
    return channel.fast_slope() && data.alpha() * dimension(data) < few_samples;
}

void check(const data::Dataset& data, Laws priors, const channels::Channel& channel,
           const AmpOptions& options) {
    if (priors.size() != static_cast<std::size_t>(channel.layers()))
        throw InvalidArgument(fmt::format("channel {} has {} layer(s), got {} prior(s)", channel.name(),
                                          channel.layers(), priors.size()));
    data::check_tokens(channel.geometry(), *data.tokens, data.keys());
    check_size("rows of the outputs", data.outputs.rows(), data.tokens->samples());
    if (channel.geometry().separate_keys())
        check_size("dimension of the key tokens", data.keys().dim(), priors[0]->columns(data.tokens->dim()));
    check_at_least("iterations", options.max_iterations, 1);
    check_positive("tolerance", options.tolerance);
    check_non_negative("damping", options.damping);
    if (options.damping >= 1) throw_invalid("damping", "below 1", options.damping);
    if (!options.initial_estimates.empty()) {
        check_size("number of initial estimates", static_cast<long long>(options.initial_estimates.size()),
                   channel.layers());
        for (const Matrix& estimate : options.initial_estimates)
            check_size("dimension of the initial estimate", estimate.rows(), data.tokens->dim());
        for (const Matrix& estimate : options.initial_estimates)
            check_size("columns of the initial estimate", estimate.cols(), data.keys().dim());
    }
    check_at_least("save stride", options.save_stride, 1);
    if (options.learning.any() && (options.save || options.resume))
        throw_unavailable("checkpoints", "for a model that is learned");
    if (options.initial_error)
        check_size("layers of the initial error", options.initial_error->rows(), channel.components());
}

/// The estimates and their predicted error.
struct Estimates {
    std::vector<Matrix> weights;
    Overlap error;
    // What had been learned with them.
    std::shared_ptr<const spectral::SpectralLaw> law{};
    double label_noise = 0;
    data::LinearTerms terms{};
};

/// Everything that the next iteration depends on.
struct Loop {
    int iteration = 0;  // the last one
    Estimates now, best;
    double best_inconsistency = infinity, last_change = infinity, damping = 0;
    Overlap onsager;
    Messages messages{};
    std::vector<AmpIteration> record{};
};

/// Without what is learned.
template <class Archive>
void visit(Archive& archive, Estimates& estimates) {
    archive("weights", estimates.weights);
    archive("error", estimates.error);
}

template <class Archive>
void visit(Archive& archive, Loop& loop) {
    archive("iteration", loop.iteration);
    archive("now", loop.now);
    archive("best", loop.best);
    archive("best_inconsistency", loop.best_inconsistency);
    archive("last_change", loop.last_change);
    archive("damping", loop.damping);
    archive("onsager", loop.onsager);
    archive("messages", loop.messages);
    archive("record", loop.record);
}

/// kappa1 of the components. A matrix that is not symmetric has none.
Eigen::VectorXd means(const channels::Geometry& geometry, Laws priors) {
    Eigen::VectorXd result =
        Eigen::VectorXd::Zero(static_cast<Eigen::Index>(priors.size()) * geometry.parts());
    for (std::size_t l = 0; l < priors.size() && geometry.parts() == 1; ++l)
        result[static_cast<Eigen::Index>(l)] = priors[l]->mean();
    return result;
}

/// The error without data: diag(kappa2 - kappa1^2), and half of it for each part of S.
Overlap prior_errors(const channels::Geometry& geometry, Laws priors) {
    const int parts = geometry.parts();
    Overlap result = linalg::zero_overlap(static_cast<Eigen::Index>(priors.size()) * parts);
    for (Eigen::Index l = 0; l < result.rows(); ++l)
        result(l, l) = priors[static_cast<std::size_t>(l / parts)]->variance() / parts;
    return result;
}

/// What the priors say without data.
struct WithoutData {
    WithoutData(const channels::Geometry& geometry, Laws priors)
        : error(prior_errors(geometry, priors)), trace(error.trace()), largest(error.diagonal().maxCoeff()) {
        const Eigen::VectorXd known = means(geometry, priors);
        total = known * known.transpose() + error;
    }
    Overlap error, total;  // C, and Q
    double trace, largest;
};

Estimates first_estimates(const channels::Geometry& geometry, Laws priors, Eigen::Index dim,
                          Eigen::Index key_dim, const AmpOptions& options) {
    Estimates first{data::components_of(geometry, options.initial_estimates),
                    options.initial_error.value_or(prior_errors(geometry, priors))};
    if (options.initial_estimates.empty()) {
        for (const double mean : means(geometry, priors))
            first.weights.emplace_back(mean * Matrix::Identity(dim, key_dim));
    }
    return first;
}

/// Throws InvalidArgument unless the loop can go on with these data.
void check_resumed(const Loop& loop, const data::Dataset& data, const channels::Channel& channel) {
    const Eigen::Index components = channel.components(), dim = data.tokens->dim(),
                       samples = data.tokens->samples(), columns = components * channel.pairs();
    check_at_least("resumed iteration", loop.iteration, 0);
    for (const Estimates* estimates : {&loop.now, &loop.best}) {
        check_size("number of resumed estimates", static_cast<long long>(estimates->weights.size()),
                   components);
        for (const Matrix& weights : estimates->weights)
            data::check_resumed("estimate", weights, dim, data.keys().dim());
        data::check_resumed("error", estimates->error, components, components);
    }
    data::check_resumed("onsager", loop.onsager, components, components);
    data::check_resumed("variance", loop.messages.variance, components, components);
    for (const channels::Rows* rows : {&loop.messages.omega, &loop.messages.g})
        data::check_resumed("messages", rows->transpose(), columns, samples);
}

/// The smallest eigenvalue of the correlations between layers; 0 if a layer has no variance.
double independence(const Overlap& covariance) {
    if (!covariance.allFinite() || !(covariance.diagonal().minCoeff() > 0)) return 0;
    const Eigen::VectorXd scale = covariance.diagonal().cwiseSqrt().cwiseInverse();
    return linalg::smallest_eigenvalue(scale.asDiagonal() * covariance * scale.asDiagonal());
}

/// Shat_l + sum_m (A^-1)_lm (v/d) pulled_m
std::vector<Matrix> noisy_estimates(const std::vector<Matrix>& estimates, const std::vector<Matrix>& pulled,
                                    const Overlap& gain, double v, double d) {
    std::vector<Matrix> noisy = estimates;
    for (std::size_t l = 0; l < noisy.size(); ++l) {
        for (std::size_t m = 0; m < noisy.size(); ++m)
            noisy[l] += v / d * gain(static_cast<Eigen::Index>(l), static_cast<Eigen::Index>(m)) * pulled[m];
    }
    return noisy;
}

denoisers::JointlyDenoised denoise(const channels::Geometry& geometry, Laws priors,
                                   const std::vector<Matrix>& noisy, const Overlap& noise_covariance,
                                   const AmpOptions& options, ThreadPool& pool) {
    if (geometry.symmetric())
        return denoisers::denoise_jointly(priors, noisy, noise_covariance, pool,
                                          {.linear_outside_support = options.linear_outside_support});
    const denoisers::DenoiseOptions shrinkage{.linear_outside_support = options.linear_outside_support};
    if (geometry.parts() == 2)
        return denoisers::denoise_parts(*priors[0], noisy, noise_covariance, pool, shrinkage);
    auto one =
        denoisers::denoise_singular_values(*priors[0], noisy[0], noise_covariance(0, 0), pool, shrinkage);
    denoisers::JointlyDenoised result{{}, linalg::scalar_overlap(one.posterior_variance)};
    result.estimates.push_back(std::move(one.estimate));
    return result;
}

}  // namespace

AmpResult run_amp(const data::Dataset& data, Laws priors, const channels::Channel& channel,
                  const AmpOptions& options, ThreadPool& pool) {
    check(data, priors, channel, options);
    const double d = dimension(data), samples = static_cast<double>(data.tokens->samples());
    const channels::Geometry geometry = channel.geometry();
    WithoutData without(geometry, priors);
    const double v = geometry.variance_factor();
    const bool slope = use_slope(data, channel, options);
    Learner learner(options.learning, data, priors, channel, pool);
    const double observed = channel.observed_combinations().value_or(channel.components() * channel.pairs());

    Loop loop;
    if (options.resume) {
        data::load(*options.resume, "amp", loop);
        check_resumed(loop, data, channel);
    } else {
        loop.now = first_estimates(geometry, priors, data.tokens->dim(), data.keys().dim(), options);
        loop.best = loop.now;
        loop.damping = options.damping;
        loop.onsager = v * loop.now.error;
    }
    Estimates& state = loop.now;
    Messages& messages = loop.messages;
    const Range own = data.shares().own_samples(pool.ranks());
    AmpResult result;
    const auto finish = [&](Termination status) {
        Estimates& last = status == Termination::diverged ? loop.best : state;
        result.status = status;
        result.record = std::move(loop.record);
        result.estimates = data::from_components(geometry, std::move(last.weights));
        result.predicted_error = last.error;
        result.law = last.law;
        result.label_noise = last.label_noise;
        result.terms = last.terms;
        return std::move(result);
    };
    const auto save = [&] {
        gather(messages, data.shares(), pool.ranks());
        data::SavedState saved;
        if (pool.ranks().first()) data::save(saved, "amp", loop);
        if (pool.ranks().first()) options.save(saved);
    };
    while (loop.iteration < options.max_iterations) {
        const auto start = std::chrono::steady_clock::now();
        if (!(state.error.trace() > 0)) return finish(Termination::exact_recovery);
        const bool first = messages.g.size() == 0;
        const data::LinearTerms terms = learner.terms();
        const Pass pass = pass_over_data(
            data, learner.channel(),
            {state.weights, v * state.error, loop.onsager, loop.damping, slope, learner.layout(), &terms},
            messages, pool);
        AmpIteration now;
        now.iteration = loop.iteration + 1;
        now.conjugate = v * v / (d * d) * pass.power;
        const double power = now.conjugate.trace();
        if (!now.conjugate.allFinite() || !pass.slope.allFinite()) return finish(Termination::diverged);
        if (power * without.trace < nothing_to_explain) return finish(Termination::exact_recovery);
        // If the outputs fix m combinations, they measure the error: residuals V g have variance v E.
        const double residual_error =
            (messages.variance * pass.power * messages.variance).trace() / (v * observed * samples);
        // Scores that are the same combination of the layers in each sample, as of y = sign(h^1 + h^2), tell
        // nothing about another combination. It gets next to no precision, as in state evolution.
        const bool blind = channel.components() > 1 && independence(now.conjugate) < dependent;
        const double next_to_none = std::max(1e-6 / without.largest, 1e-10 * power);
        const Overlap qhat =
            blind ? linalg::with_eigenvalues_above(now.conjugate, next_to_none) : now.conjugate;
        // The mean slope of a layer that is hardly observed may have any sign.
        const double least_slope = blind ? next_to_none : 1e-2 * std::min(1 / without.largest, power);
        now.response = slope ? linalg::with_eigenvalues_above(
                                   v * v / (d * d) * learner.freedom() * pass.slope, least_slope)
                             : qhat;
        if (!linalg::positive_definite(now.response)) return finish(Termination::diverged);
        Overlap gain = linalg::inverse(now.response);
        // Next to the truth R has hardly any noise: less than the spectral engine resolves.
        now.noise_covariance = linalg::with_eigenvalues_above(
            slope ? linalg::symmetric_part(gain * qhat * gain) : gain, least_noise);
        if (independence(now.noise_covariance) < unresolved || now.noise_covariance.trace() > hopeless_noise)
            return finish(Termination::diverged);
        std::vector<Matrix> noisy = noisy_estimates(state.weights, pass.pulled, gain, v, d);
        for (const Matrix& matrix : noisy) {
            if (!matrix.allFinite()) return finish(Termination::diverged);
        }
        if (options.learning.any()) {
            learner.learn_from(pass, messages, first ? 0 : loop.damping);
            const double unit = learner.rescale(noisy, now.noise_covariance);
            if (unit != 1) {
                for (Matrix& matrix : noisy) matrix *= unit;
                data::rows_of(messages.omega, own) *= unit;
                data::rows_of(messages.g, own) /= unit;
                messages.variance *= unit * unit;
                now.noise_covariance *= unit * unit;
                now.conjugate /= unit * unit;
                now.response /= unit * unit;
                gain *= unit * unit;
            }
            now.noise_covariance = learner.anchored(noisy, now.noise_covariance);
            learner.learn_law(noisy, now.noise_covariance);
            without = WithoutData(geometry, learner.laws());
        }
        if (options.observe) options.observe(noisy);
        auto denoised = denoise(geometry, learner.laws(), noisy, now.noise_covariance, options, pool);
        for (std::size_t l = 0; l < noisy.size(); ++l)
            now.change += (denoised.estimates[l] - state.weights[l]).squaredNorm() / d;
        state = {std::move(denoised.estimates), denoised.posterior_covariance, learner.law(),
                 learner.label_noise(), learner.terms()};
        result.noisy = std::move(noisy);
        learner.follow(state.weights);
        loop.onsager = slope ? Overlap(v * state.error * linalg::inverse(now.noise_covariance) * gain)
                             : Overlap(v * state.error);
        now.self_overlap = data::self_overlaps(state.weights);
        now.predicted_error = state.error;
        if (options.measure) now.true_error = options.measure(data::from_components(geometry, state.weights));
        now.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        loop.record.push_back(now);
        ++loop.iteration;

        // For a posterior mean the self-overlap is Q - C (Nishimori): a lost run violates that.
        const double inconsistency = std::abs((now.self_overlap - (without.total - state.error)).trace());
        const bool consistent = inconsistency < consistent_within * without.trace,
                   definite = linalg::positive_definite(state.error), vanished = !(state.error.trace() > 0);
        if (inconsistency < loop.best_inconsistency && (definite || vanished)) {
            loop.best_inconsistency = inconsistency;
            loop.best = state;
        }
        if (!(now.self_overlap.trace() < lost_beyond * (without.total.trace() + without.trace)) ||
            !(definite || vanished))
            return finish(Termination::diverged);
        const bool stop = !proceed(options.progress, now, pool.ranks());
        if (state.error.trace() < vanishing_error * without.trace) {
            // Recovered only if the outputs are explained: in undamped runs the variance alone can vanish.
            const bool explained = residual_error < explained_residual * without.trace;
            return finish(consistent && explained ? Termination::exact_recovery : Termination::diverged);
        }
        if (now.change <= options.tolerance * state.error.trace())
            return finish(consistent ? Termination::converged : Termination::diverged);
        if (options.adaptive_damping) {
            loop.damping = now.change > loop.last_change ? std::min(0.9, 0.5 + 0.5 * loop.damping)
                                                         : std::max(options.damping, 0.95 * loop.damping);
        }
        loop.last_change = now.change;
        if (options.save && (stop || loop.iteration % options.save_stride == 0)) save();
        if (stop) return finish(Termination::stopped);
    }
    return finish(Termination::iteration_limit);
}

AmpResult run_amp(const data::Dataset& data, const spectral::SpectralLaw& prior,
                  const channels::Channel& channel, const AmpOptions& options, ThreadPool& pool) {
    const spectral::SpectralLaw* one[] = {&prior};
    return run_amp(data, one, channel, options, pool);
}

Response parse_response(std::string_view name, std::string_view text) {
    return static_cast<Response>(check_one_of(name, text, {"power", "slope", "automatic"}));
}

std::string_view to_string(Response response) {
    constexpr std::string_view names[] = {"power", "slope", "automatic"};
    return names[static_cast<std::size_t>(response)];
}

Record values(const AmpIteration& now) {
    Record record = {{"iteration", now.iteration}};
    const auto add = [&](const std::string& name, const Overlap& matrix) {
        record[name] = matrix.trace();
        for (Eigen::Index l = 0; l < matrix.rows() && matrix.rows() > 1; ++l)
            record[fmt::format("{}_{}", name, l + 1)] = matrix(l, l);
    };
    if (now.true_error) add("true_error", *now.true_error);
    add("predicted_error", now.predicted_error);
    add("self_overlap", now.self_overlap);
    add("conjugate_overlap", now.conjugate);
    add("response", now.response);
    add("noise_variance", now.noise_covariance);
    record["change"] = now.change;
    record["seconds"] = now.seconds;
    return record;
}

}  // namespace bayesaim::estimators

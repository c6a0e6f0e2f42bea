// SPDX-License-Identifier: MIT
#include "bayesaim/estimators/fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "bayesaim/channels/unequal_lengths.hpp"
#include "bayesaim/core/checks.hpp"
#include "bayesaim/data/whitening.hpp"
#include "bayesaim/estimators/first_look.hpp"
#include "bayesaim/estimators/prepared_tokens.hpp"
#include "bayesaim/spectral/learned_laws.hpp"
#include "bayesaim/spectral/scaled_law.hpp"

namespace bayesaim::estimators {
namespace {

using linalg::Matrix;
using linalg::Vector;

constexpr double worst_misfit = 4;  // d KS
constexpr Eigen::Index fewest_held_out = 20;
constexpr double clearly_better = 0.03, far_better = 0.15;  // of held-out losses
constexpr int settled_after = 60;                           // iterations

bool learns(const FitOptions& options) {
    return options.learn_label_noise || options.families.size() > 1 ||
           options.families.front() != Family::given;
}

// ---- the laws ------------------------------------------------------------------------------------------------------

/// The law of a family from the spectrum of R. The anchor keeps the second moment of Wishart and Gaussian laws next to
/// that of the outputs.
LearnedLaw learn(Family family, const spectral::NoisySpectrum& spectrum,
                 const std::optional<Anchor>& anchor) {
    LearnedLaw result{family, {}, {}, {}, true};
    spectral::Moments moments = spectral::moments_of(spectrum);
    if (anchor) {
        const double uncertainty = anchor->second_moment * anchor->relative_error;
        moments.second = std::max(std::clamp(moments.second, anchor->second_moment - uncertainty,
                                             anchor->second_moment + uncertainty),
                                  moments.mean * moments.mean);
    }
    switch (family) {
        case Family::given:
            break;
        case Family::weights: {
            const spectral::WishartFit fit =
                spectrum.singular ? spectral::bilinear_from(spectrum) : spectral::wishart_from(moments);
            result.law = spectrum.singular ? spectral::bilinear_law(fit) : spectral::wishart_law(fit);
            result.width = fit.width;
            result.scale = fit.scale;
            result.family_fits = fit.family_fits;
            break;
        }
        case Family::gaussian:
            result.law = spectral::linear_law(moments);
            break;
        case Family::smooth:
        case Family::fine:
            result.law = std::make_shared<spectral::BumpLaw>(
                spectral::smooth_law(spectrum, family == Family::smooth ? 0.6 : 0.3));
            break;
    }
    return result;
}

/// The law before any data: a wide one of the right size.
std::shared_ptr<const spectral::SpectralLaw> first_law(const channels::Channel& channel,
                                                       double second_moment) {
    if (channel.geometry().symmetric())
        return spectral::wishart_law({.width = 1, .scale = std::sqrt(second_moment / 2)});
    return spectral::linear_law({.mean = 0, .second = second_moment});
}

// ---- one run -------------------------------------------------------------------------------------------------------

struct Run {
    AmpResult amp;
    LearnedLaw learned;
    std::shared_ptr<const channels::Channel> channel;
};

struct Problem {
    const TraceChannel& channel_of;
    bool follows_trace;  // whether the channel depends on it
    double label_noise;
    Laws priors;
    const FitOptions& options;
    const First& first;
    ThreadPool& pool;
};

Run run(const data::Dataset& data, Family family, const Problem& problem) {
    Run result;
    result.channel = problem.channel_of(problem.label_noise, problem.first.trace);
    const channels::Channel& channel = *result.channel;
    const channels::Geometry geometry = channel.geometry();
    AmpOptions options = problem.options.amp;
    Learning& learning = options.learning;
    std::shared_ptr<const spectral::SpectralLaw> start;
    if (family != Family::given) {
        // Weights of bumps switch on and off for ever; once settled, the law is kept, so that AMP can end.
        const bool settles = family == Family::smooth || family == Family::fine;
        learning.law = [&result, &learning, family, &geometry, settles, calls = 0](
                           std::span<const double> spectrum, double noise) mutable {
            if (++calls <= settled_after || !settles)
                result.learned = learn(family, {spectrum, noise, !geometry.symmetric()}, learning.anchor);
            return result.learned.law;
        };
        learning.unit_scale = !shows_scale(channel);
        if (shows_scale(channel) && channel.observed_combinations() && problem.first.anchored)
            learning.anchor = {problem.first.second_moment, problem.first.relative_error};
        learning.terms = problem.first.terms;
        learning.initial_terms = problem.first.values;
        start = first_law(channel, problem.first.second_moment);
    }
    if (problem.options.learn_label_noise) {
        learning.learn_label_noise = true;
        learning.label_noise = first_label_noise(data, channel, problem.first.second_moment, problem.pool);
        learning.anchor.reset();
    }
    if (learning.learn_label_noise || problem.follows_trace) learning.channel = problem.channel_of;
    if (!learning.learn_label_noise) learning.label_noise = problem.label_noise;
    learning.trace = problem.first.trace;
    if (start) {
        result.amp = run_amp(data, *start, channel, options, problem.pool);
    } else {
        result.amp = run_amp(data, problem.priors, channel, options, problem.pool);
    }
    if (learning.channel) {
        const auto dim = static_cast<double>(data.tokens->dim());
        result.channel =
            problem.channel_of(result.amp.label_noise, result.amp.estimates[0].trace() / std::sqrt(dim));
    }
    return result;
}

/// Relative error of C at finite d: 5 to 10% at n/d = 12, where two standard errors are 2 d/n.
double promise_uncertainty(const data::Dataset& data) {
    return std::clamp(
        2 * static_cast<double>(data.tokens->dim()) / static_cast<double>(data.tokens->samples()), 0.1, 0.5);
}

Eigen::Index held_out_count(const data::Dataset& data, const FitOptions& options) {
    if (options.holdout == 0) return 0;
    const auto samples = static_cast<double>(data.tokens->samples());
    return static_cast<Eigen::Index>(std::llround(options.holdout * samples));
}

// ---- the verdict ---------------------------------------------------------------------------------------------------

Verdict verdict_of(const FitResult& result, const HeldOutFit* held_out, const FitOptions& options) {
    std::vector<std::string> wrong;
    if (!succeeded(result.status))
        wrong.push_back(
            fmt::format("AMP did not converge ({}){}", to_string(result.status),
                        result.status == Termination::iteration_limit ? ": more iterations" : ""));
    const auto of_tokens = [&](const char* name, const data::TokenStatistics& statistics) {
        // Lengths that differ look like this too; then directions were tested.
        if (statistics.count == 0 || result.tokens.whitened || result.tokens.one_length) return;
        if (std::abs(statistics.whiteness) > not_white)
            wrong.push_back(fmt::format("{} are not white (z = {:.0f}): {}", name, statistics.whiteness,
                                        options.families.front() == Family::given && !options.tokens_as_given
                                            ? "let the prior be learned, which whitens them"
                                            : "whiten them"));
    };
    of_tokens("tokens", result.tokens.queries);
    of_tokens("key tokens", result.tokens.keys);
    // After exact recovery every output is explained, whatever a fit of fewer samples was.
    const bool recovered = result.status == Termination::exact_recovery;
    const Family family = result.learned.family;
    const bool any = family == Family::smooth || family == Family::fine;
    const char* try_learn = any ? "" : "; try prior learn";
    if (held_out != nullptr && held_out->refuted && !recovered) {
        if (held_out->ratio) {
            wrong.push_back(
                fmt::format("held-out residuals are {:.2f} of what is promised (z = {:.1f}): {}",
                            *held_out->ratio, *held_out->z,
                            (*held_out->ratio <= 1 ? "the width or the scale is too large"
                             : any                 ? "outputs have noise, or another channel"
                                   : "the width is too small, beta too large, or outputs have noise") +
                                std::string(try_learn)));
        } else {
            wrong.push_back(
                fmt::format("held-out outputs are not those that the model expects (z = {:.1f}): perhaps "
                            "another channel{}",
                            *held_out->z, try_learn));
        }
    }
    if (result.spectral_misfit && *result.spectral_misfit > worst_misfit) {
        wrong.push_back(fmt::format(
            "the spectrum is not that of the law (d KS = {:.1f}, at most {:g}): {}", *result.spectral_misfit,
            worst_misfit, any ? "it may have lines; if you know it, try prior spectrum" : "try prior learn"));
    }
    // Alone this says little: the limit of large width has no width either.
    if (!result.learned.family_fits && !wrong.empty())
        wrong.push_back("the spectrum is that of no width: try prior learn");
    Verdict verdict{wrong.empty(), "fits"};
    if (held_out != nullptr && held_out->refuted && recovered)
        verdict.text = "fits: every output is explained; without the held-out samples they were too few";
    for (std::size_t i = 0; i < wrong.size(); ++i)
        verdict.text = (i == 0 ? "" : verdict.text + "; ") + wrong[i];
    if (!wrong.empty()) return verdict;
    if (!result.tokens.whitened && !result.tokens.one_length &&
        result.tokens.queries.length_spread > spread_lengths)
        verdict.text += fmt::format("; lengths of tokens are unequal (gamma = {:.1f}, 1 for normal tokens)",
                                    result.tokens.queries.length_spread);
    return verdict;
}

/// Softmax sees beta S: the scale that was found is beta if that of S is known to be 1.
void take_scale_as_beta(FitResult& result) {
    const double beta = *result.learned.scale;
    result.beta = beta;
    result.learned.scale = 1;
    result.learned.law = std::make_shared<spectral::ScaledLaw>(result.learned.law, 1 / beta);
    result.predicted_error /= beta * beta;
    for (Matrix* matrix : {&result.estimate, &result.white_estimate}) *matrix /= beta;
    for (Vector* vector : {&result.terms.query, &result.terms.key}) *vector /= beta;
    result.terms.diagonal /= beta;
    result.terms.constant /= beta;
    for (Candidate& candidate : result.candidates) {
        candidate.predicted_error /= beta * beta;
        candidate.held_out.loss /= beta * beta;
        if (candidate.held_out.error) *candidate.held_out.error /= beta * beta;
    }
}

}  // namespace

std::string_view to_string(Family family) {
    constexpr std::string_view names[] = {"given", "weights", "gaussian", "smooth", "fine"};
    return names[static_cast<std::size_t>(family)];
}

FitResult fit(const data::Dataset& data, const ChannelOf& channel_of, double label_noise, Laws priors,
              const FitOptions& options, ThreadPool& pool) {
    if (options.families.empty()) throw InvalidArgument("a fit needs at least one law");
    if (options.holdout != 0) check_between("share of held-out samples", options.holdout, 1e-6, 0.9);
    const std::shared_ptr<const channels::Channel> channel = channel_of(label_noise);
    check_data(data, *channel, pool.ranks());
    if (learns(options) && channel->layers() > 1) throw_unavailable("learning", "for several layers");
    if (learns(options) && data.tokens->dim() != data.keys().dim())
        throw_unavailable("learning", "for keys of another dimension");
    const Prepared prepared = prepare(data, *channel, options, pool);
    const TraceChannel fitted_channel = [&](double noise,
                                            double trace) -> std::shared_ptr<const channels::Channel> {
        if (!prepared.report.one_length) return channel_of(noise);
        return std::make_shared<channels::UnequalLengths>(channel_of(noise), trace);
    };
    FitResult result;
    result.tokens = prepared.report;
    First first;
    if (learns(options)) {
        const double trace =
            prepared.report.one_length ? first_trace(prepared.data, fitted_channel, label_noise, pool) : 0;
        first = first_look(prepared.data, *fitted_channel(label_noise, trace),
                           // Terms are those of indices at their own lengths.
                           !options.tokens_as_given && options.families.front() != Family::given &&
                               !prepared.report.one_length,
                           prepared.report.whitened, pool);
        first.trace = trace;
        // x_a' S x_a has the variance 2 (kappa2 + (gamma - 1) kappa1^2), and 2 (kappa2 - kappa1^2) at one length.
        first.anchored = !channel->geometry().symmetric() ||
                         (!prepared.report.one_length &&
                          (prepared.report.whitened ||
                           std::abs(prepared.report.queries.length_spread - 1) < spread_lengths - 1));
        result.tokens.terms = first.terms;
    }
    const Problem problem{
        fitted_channel, prepared.report.one_length, label_noise, priors, options, first, pool};

    std::optional<Run> last;
    const Eigen::Index held = held_out_count(data, options);
    if (held > 0) {
        if (held < fewest_held_out)
            throw_invalid(
                "held-out samples",
                fmt::format("at least {}: more samples, a larger holdout, or holdout 0", fewest_held_out),
                static_cast<double>(held));
        const Split split = hold_out(prepared.data, held, options.seed, pool.ranks());
        double best = std::numeric_limits<double>::infinity();
        for (const Family family : options.families) {
            Run one = run(split.training, family, problem);
            Candidate candidate{family, {}, one.amp.status, one.amp.predicted_error.trace()};
            if (one.amp.status == Termination::stopped) {
                last = std::move(one);  // what there is
                result.candidates.clear();
                result.chosen = 0;
                break;
            }
            candidate.held_out = held_out_fit(
                split.held_out, {one.amp.estimates, one.amp.predicted_error, *one.channel, one.amp.terms},
                promise_uncertainty(split.training), pool);
            // Of laws that are as good, the first, which has the fewest parameters.
            const double margin = family == Family::fine ? far_better : clearly_better;
            if (candidate.held_out.loss < (1 - margin) * best) {
                best = candidate.held_out.loss;
                result.chosen = result.candidates.size();
            }
            result.candidates.push_back(std::move(candidate));
            // No law can be better than one that predicts held-out outputs exactly.
            if (result.candidates.back().held_out.error && !result.candidates.back().held_out.ratio) break;
        }
    }
    if (!last) {
        const Family family =
            result.candidates.empty() ? options.families.front() : result.candidates[result.chosen].family;
        last = run(prepared.data, family, problem);
    }
    result.status = last->amp.status;
    result.iterations = static_cast<int>(last->amp.record.size());
    result.record = last->amp.record;
    result.learned = last->learned;
    result.label_noise = options.learn_label_noise ? last->amp.label_noise : label_noise;
    result.predicted_error = last->amp.predicted_error;
    result.estimates = last->amp.estimates;
    result.white_estimate = last->amp.estimates.front();
    result.terms = last->amp.terms;
    if (!last->amp.record.empty()) {
        const AmpIteration& now = last->amp.record.back();
        result.training_ratio = now.conjugate.trace() / now.response.trace();
        const spectral::SpectralLaw* law = last->learned.law ? last->learned.law.get() : priors.front();
        if (channel->layers() == 1 && law->aspect() == 1 && !last->amp.noisy.empty() &&
            result.predicted_error.trace() > 1e-6 * law->second_moment()) {
            const Vector spectrum = spectrum_of(channel->geometry(), last->amp.noisy);
            result.spectral_misfit =
                spectral::spectral_misfit(*law, {{spectrum.data(), static_cast<std::size_t>(spectrum.size())},
                                                 now.noise_covariance.trace(),
                                                 !channel->geometry().symmetric()});
        }
    }
    result.query_whitening = prepared.queries;
    result.key_whitening = prepared.keys;
    undo_whitening(prepared, channel->geometry(), result);
    if (options.learn_beta && result.learned.scale) take_scale_as_beta(result);
    if (channel->layers() == 1) result.estimates = {result.estimate};
    result.verdict = verdict_of(
        result, result.candidates.empty() ? nullptr : &result.candidates[result.chosen].held_out, options);
    return result;
}

Overlap measured_error(const FitResult& result, const channels::Channel& channel,
                       std::span<const Matrix> weights) {
    if (channel.layers() > 1) return data::estimation_errors(channel.geometry(), result.estimates, weights);
    Matrix truth = weights[0];
    if (result.tokens.whitened)
        truth = data::whitened_weights(truth, result.query_whitening, result.key_whitening);
    if (result.learned.law && !shows_scale(channel))
        truth *=
            std::sqrt(result.learned.law->second_moment() * static_cast<double>(truth.rows())) / truth.norm();
    return data::estimation_errors(channel.geometry(), std::vector<Matrix>{result.white_estimate},
                                   std::vector<Matrix>{truth});
}

}  // namespace bayesaim::estimators

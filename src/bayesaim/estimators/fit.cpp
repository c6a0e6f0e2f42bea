// SPDX-License-Identifier: MIT
#include "bayesaim/estimators/fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "bayesaim/channels/unequal_lengths.hpp"
#include "bayesaim/core/checks.hpp"
#include "bayesaim/data/attention.hpp"
#include "bayesaim/data/whitening.hpp"
#include "bayesaim/estimators/data_pass.hpp"
#include "bayesaim/linalg/decompositions.hpp"
#include "bayesaim/spectral/learned_laws.hpp"
#include "bayesaim/spectral/scaled_law.hpp"

namespace bayesaim::estimators {
namespace {

using linalg::Matrix;
using linalg::Vector;

constexpr double significant = 4;   // standard errors
constexpr double worst_misfit = 4;  // d KS
constexpr Eigen::Index fewest_held_out = 20;
constexpr double concentrated = 0.2;                        // f4 in units of d
constexpr double spread_lengths = 1.3;                      // gamma
constexpr double clearly_better = 0.03, far_better = 0.15;  // of held-out losses
constexpr double cheap_terms = 0.02;                        // parameters per observation
constexpr int settled_after = 60;                           // iterations

bool learns(const FitOptions& options) {
    return options.learn_label_noise || options.families.size() > 1 ||
           options.families.front() != Family::given;
}

/// Whether outputs show combinations of h, and so the scale of S; others, such as hardmax, do not.
bool shows_scale(const channels::Channel& channel) { return channel.smooth_output().has_value(); }

// ---- the data ------------------------------------------------------------------------------------------------------

void check_data(const data::Dataset& data, const channels::Channel& channel) {
    data::check_tokens(channel.geometry(), *data.tokens, data.keys());
    data::check_outputs(channel, data);
    const Eigen::Index samples = data.tokens->samples(), dim = data.tokens->dim();
    if (10 * samples < dim)
        throw_invalid("samples", fmt::format("at least {}, a tenth of the dimension {}", (dim + 9) / 10, dim),
                      static_cast<double>(samples));
    bool constant = samples > 1;
    for (Eigen::Index i = 1; i < samples && constant; ++i)
        constant = data.outputs.row(i) == data.outputs.row(0);
    if (constant)
        throw_invalid("outputs", "different from sample to sample",
                      fmt::format("the same {} times", samples));
}

struct Prepared {
    data::Dataset data;
    data::Whitening queries, keys;
    TokenReport report;
};

void check_spread(const char* name, const data::TokenStatistics& statistics) {
    const auto dim = static_cast<double>(statistics.mean.size());
    if (statistics.concentration > std::max(concentrated * dim, 12.0))
        throw_invalid(
            name,
            fmt::format("spread over their {:g} coordinates (d sum x^4/|x|^4 is 3 for normal tokens, at "
                        "most {:g} here; one-hot tokens show single entries of S, which is another "
                        "problem)",
                        dim, std::max(concentrated * dim, 12.0)),
            fmt::format("{:.1f}", statistics.concentration));
}

/// Tokens as the theory wants them: white, of mean 0.
Prepared prepare(const data::Dataset& data, const channels::Channel& channel, const FitOptions& options,
                 ThreadPool& pool) {
    Prepared result;
    result.data = data;
    const bool separate = channel.geometry().separate_keys();
    TokenReport& report = result.report;
    report.queries = data::token_statistics(*data.tokens, pool);
    if (separate) report.keys = data::token_statistics(data.keys(), pool);
    // A prior is one of S for the tokens as they are.
    const bool as_given =
        options.tokens_as_given || options.families.front() == Family::given || channel.layers() > 1;
    if (as_given) return result;
    check_spread("tokens", report.queries);
    if (separate) check_spread("key tokens", report.keys);
    const auto treat = [&](const data::TokenStatistics& statistics, const data::TokenSource& source,
                           data::Whitening& whitening) -> std::shared_ptr<const data::TokenSource> {
        const bool white = std::abs(statistics.whiteness) < significant + 1;
        const bool central = std::abs(statistics.mean_score) < significant + 2;
        // The mean is part of the second moment that whiteness looks at.
        if (white && central) return nullptr;
        if (statistics.length_spread > spread_lengths && channels::UnequalLengths::handles(channel)) {
            // Lengths alone upset the test; directions are white or not.
            Vector lengths;
            const auto directions =
                data::token_statistics(*data::length_normalised(source, lengths, pool), pool);
            if (std::abs(directions.whiteness) < significant + 1 &&
                std::abs(directions.mean_score) < significant + 2)
                return nullptr;
        }
        whitening = data::whitening_of(statistics);
        report.whitened = true;
        report.condition = std::max(report.condition, whitening.condition);
        return data::whitened(source, whitening, pool);
    };
    if (auto tokens = treat(report.queries, *data.tokens, result.queries)) result.data.tokens = tokens;
    if (separate) {
        if (auto keys = treat(report.keys, data.keys(), result.keys)) result.data.key_tokens = keys;
    } else {
        result.keys = result.queries;
    }
    if (channels::UnequalLengths::handles(channel)) {
        const auto spread = [&](const data::TokenStatistics& before, const data::TokenSource& source) {
            return (report.whitened ? data::token_statistics(source, pool) : before).length_spread;
        };
        report.one_length = spread(report.queries, *result.data.tokens) > spread_lengths ||
                            (separate && spread(report.keys, result.data.keys()) > spread_lengths);
    }
    if (report.one_length) {
        // The lengths stand beside the outputs.
        const Eigen::Index outputs = data.outputs.cols();
        Vector of_queries, of_keys;
        result.data.tokens = data::length_normalised(*result.data.tokens, of_queries, pool);
        if (separate) result.data.key_tokens = data::length_normalised(result.data.keys(), of_keys, pool);
        const Eigen::Index queries = result.data.tokens->tokens(),
                           keys = separate ? result.data.keys().tokens() : 0;
        result.data.outputs.conservativeResize(Eigen::NoChange, outputs + queries + keys);
        for (Eigen::Index i = 0; i < result.data.outputs.rows(); ++i) {
            result.data.outputs.row(i).segment(outputs, queries) =
                of_queries.segment(i * queries, queries).transpose();
            if (keys > 0) result.data.outputs.row(i).tail(keys) = of_keys.segment(i * keys, keys).transpose();
        }
    }
    return result;
}

// ---- the start -----------------------------------------------------------------------------------------------------

/// What the outputs show before any fit.
struct First {
    data::TermChoice terms{};
    data::LinearTerms values{};
    double second_moment = 1;  ///< tr S^T S
    double combinations = 1;   ///< observed, per sample
};

/// The terms that outputs of this channel can show.
data::TermChoice visible_terms(const channels::Channel& channel) {
    const channels::Geometry geometry = channel.geometry();
    const bool diagonal = geometry.symmetric() || geometry.parts() == 2, linear = channel.name() == "linear";
    // A softmax does not see what is the same for all keys.
    return {linear && !geometry.symmetric(), true, diagonal, linear};
}

std::vector<Matrix> no_estimates(const channels::Channel& channel, const data::Dataset& data) {
    return std::vector<Matrix>(static_cast<std::size_t>(channel.components()),
                               Matrix::Zero(data.tokens->dim(), data.keys().dim()));
}

/// Scores at Shat = 0 and V = 1 are the residuals of linear and softmax outputs. Linear terms are kept if they stand out.
First first_look(const data::Dataset& data, const channels::Channel& channel, bool with_terms,
                 ThreadPool& pool) {
    const channels::Geometry geometry = channel.geometry();
    const double v = geometry.variance_factor(), samples = static_cast<double>(data.tokens->samples());
    First first;
    first.combinations = channel.observed_combinations().value_or(
        geometry.symmetric() ? geometry.pairs() : geometry.seen_outputs());
    const std::vector<Matrix> nothing = no_estimates(channel, data);
    const bool gaussian = shows_scale(channel);
    const Eigen::Index parts = channel.components();
    const Overlap variance =
        Overlap::Identity(parts, parts) * (gaussian ? 1 : v / static_cast<double>(parts));
    data::TermChoice choice = with_terms ? visible_terms(channel) : data::TermChoice{};
    double power = 0;
    for (int round = 0; round < 2; ++round) {
        std::optional<data::TermLayout> layout;
        if (choice.any()) layout.emplace(geometry, choice, data.tokens->dim(), data.keys().dim());
        Messages messages;
        data::LinearTerms terms;
        Matrix gram;
        Vector parameters = Vector::Zero(layout ? layout->size() : 0);
        // One step is exact for linear and softmax outputs.
        for (int step = 0; step < (gaussian ? 2 : 8); ++step) {
            messages.g.resize(0, 0);
            const Pass pass = pass_over_data(
                data, channel, {nothing, variance, variance, 0, false, layout ? &*layout : nullptr, &terms},
                messages, pool);
            power = pass.power.trace();
            if (!layout) break;
            if (gram.size() == 0) {
                Eigen::MatrixXd slope = Eigen::MatrixXd::Zero(messages.omega.cols(), messages.omega.cols());
                const Eigen::Index few = std::min<Eigen::Index>(32, messages.omega.rows());
                for (Eigen::Index k = 0; k < few; ++k) {
                    const Eigen::Index i = k * messages.omega.rows() / few;
                    slope -= channel.score_slope(data.outputs.middleRows(i, 1),
                                                 messages.omega.middleRows(i, 1), variance) /
                             static_cast<double>(few);
                }
                gram = layout->gram(*data.tokens, data.keys(), slope, pool);
                gram.diagonal().array() += 1e-10 * gram.diagonal().maxCoeff();
            }
            if (step + 1 == (gaussian ? 2 : 8)) break;
            parameters += linalg::solve_positive(gram, pass.terms);
            terms = layout->terms(parameters);
        }
        const double taken = layout ? static_cast<double>(layout->size()) / samples : 0;
        if (gaussian)
            first.second_moment =
                power * static_cast<double>(parts) / (samples * (first.combinations - taken) * v);
        if (!layout) break;
        first.terms = choice;
        first.values = terms;
        if (round == 1) break;
        // The parameters have the covariance gram^-1 times the variance of the residuals.
        const double noise = gaussian ? v * first.second_moment / static_cast<double>(parts) : 1;
        const Matrix inverse = linalg::solve_positive(gram, Matrix::Identity(gram.rows(), gram.cols()));
        Eigen::Index next = 0;
        // Terms that stand out, or that cost next to nothing: where there is no noise even small ones matter in the end.
        const auto stands_out = [&](Eigen::Index size) {
            const Matrix covariance = noise * inverse.block(next, next, size, size);
            const Vector part = parameters.segment(next, size);
            next += size;
            const double chi = part.dot(Vector(linalg::solve_positive(covariance, part)));
            return (chi - static_cast<double>(size)) / std::sqrt(2 * static_cast<double>(size)) >
                       significant ||
                   static_cast<double>(size) < cheap_terms * samples * first.combinations;
        };
        data::TermChoice kept;
        if (choice.query && !geometry.symmetric()) kept.query = stands_out(data.tokens->dim());
        if (choice.key) kept.key = stands_out(data.keys().dim());
        kept.diagonal = choice.diagonal;
        kept.constant = choice.constant;
        if (kept.query == choice.query && kept.key == choice.key && kept.diagonal == choice.diagonal &&
            kept.constant == choice.constant)
            break;
        choice = kept;
        first.terms = {};
        first.values = {};
    }
    return first;
}

/// Tied linear outputs: noise enters the diagonal with weight 1, the rest with 2, the signal both alike.
double first_label_noise(const data::Dataset& data, const channels::Channel& channel, double second_moment) {
    const channels::Geometry geometry = channel.geometry();
    if (!geometry.symmetric() || geometry.queries < 2) return 0.2 * second_moment;
    double diagonal = 0, beside = 0;
    const int tokens = geometry.queries;
    for (int a = 0; a < tokens; ++a) {
        for (int b = a; b < tokens; ++b) {
            const double square = data.outputs.col(a * tokens + b).squaredNorm();
            (a == b ? diagonal : beside) += (a == b ? 1 : 2) * square;
        }
    }
    const double samples = static_cast<double>(data.outputs.rows()), pairs = tokens * (tokens - 1) / 2.0;
    return std::max(beside / (samples * pairs) - diagonal / (samples * tokens), 0.05 * second_moment);
}

// ---- the laws ------------------------------------------------------------------------------------------------------

/// The law of a family from the spectrum of R. The anchor keeps the second moment next to that of the outputs.
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
    std::function<std::shared_ptr<const channels::Channel>(double label_noise, double trace)> channel_of;
    bool follows_trace;  // whether the channel depends on it
    double label_noise;
    Laws priors;
    const FitOptions& options;
    const First& first;
    ThreadPool& pool;
};

Run run(const data::Dataset& data, Family family, const Problem& problem) {
    Run result;
    result.channel = problem.channel_of(problem.label_noise, 0);
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
        const auto samples = static_cast<double>(data.tokens->samples());
        if (shows_scale(channel) && channel.observed_combinations())
            learning.anchor = {problem.first.second_moment,
                               std::sqrt(2 / (samples * problem.first.combinations))};
        learning.terms = problem.first.terms;
        learning.initial_terms = problem.first.values;
        start = first_law(channel, problem.first.second_moment);
    }
    if (problem.options.learn_label_noise) {
        learning.learn_label_noise = true;
        learning.label_noise = first_label_noise(data, channel, problem.first.second_moment);
        learning.anchor.reset();
    }
    if (learning.learn_label_noise || problem.follows_trace) learning.channel = problem.channel_of;
    if (!learning.learn_label_noise) learning.label_noise = problem.label_noise;
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
    if (!succeeded(result.status) && result.status != Termination::iteration_limit)
        wrong.push_back(fmt::format("AMP ended as {}", to_string(result.status)));
    const auto of_tokens = [&](const char* name, const data::TokenStatistics& statistics) {
        if (statistics.count == 0 || result.tokens.whitened) return;
        if (std::abs(statistics.whiteness) > significant)
            wrong.push_back(fmt::format("{} are not white (z = {:.0f}): {}", name, statistics.whiteness,
                                        options.families.front() == Family::given && !options.tokens_as_given
                                            ? "let the prior be learned, which whitens them"
                                            : "whiten them"));
    };
    of_tokens("tokens", result.tokens.queries);
    of_tokens("key tokens", result.tokens.keys);
    if (held_out != nullptr && held_out->refuted) {
        if (held_out->ratio) {
            wrong.push_back(fmt::format(
                "held-out residuals are {:.2f} of what is promised (z = {:.1f}): {}", *held_out->ratio,
                *held_out->z,
                *held_out->ratio > 1
                    ? "the width is too small, beta too large, or outputs have noise; try --prior learn"
                    : "the width or the scale is too large; try --prior learn"));
        } else {
            wrong.push_back(fmt::format(
                "held-out outputs are not those that the model expects (z = {:.1f}): another channel, or "
                "--prior learn",
                *held_out->z));
        }
    }
    if (result.spectral_misfit && *result.spectral_misfit > worst_misfit) {
        const bool any = result.learned.family == Family::smooth || result.learned.family == Family::fine;
        wrong.push_back(fmt::format(
            "the spectrum is not that of the law (d KS = {:.1f}, at most {:g}): {}", *result.spectral_misfit,
            worst_misfit,
            any ? "it may have lines; if you know it, try --prior spectrum" : "try --prior learn"));
    }
    if (!result.learned.family_fits) wrong.push_back("the spectrum is that of no width: try --prior learn");
    Verdict verdict{wrong.empty(), "fits"};
    for (std::size_t i = 0; i < wrong.size(); ++i)
        verdict.text = (i == 0 ? "" : verdict.text + "; ") + wrong[i];
    if (!wrong.empty()) return verdict;
    if (!result.tokens.whitened && !result.tokens.one_length &&
        result.tokens.queries.length_spread > spread_lengths)
        verdict.text += fmt::format("; lengths of tokens are unequal (gamma = {:.1f}, 1 for normal tokens)",
                                    result.tokens.queries.length_spread);
    return verdict;
}

/// Estimate and terms for the tokens as they were given: with z = W (x - m) and S = W_q S' W_k,
///   z_a' S' z_b = x_a' S x_b - x_a' S m_k - m_q' S x_b + m_q' S m_k.
void undo_whitening(const Prepared& prepared, const channels::Geometry& geometry, FitResult& result) {
    result.estimate = result.white_estimate;
    if (!result.tokens.whitened) return;
    const data::Whitening &queries = prepared.queries, &keys = prepared.keys;
    result.estimate = data::unwhitened_weights(result.white_estimate, queries, keys);
    const auto rows = static_cast<double>(result.estimate.rows()),
               columns = static_cast<double>(result.estimate.cols());
    const double scale = std::sqrt(std::sqrt(rows * columns));
    data::LinearTerms& terms = result.terms;
    const auto mapped = [](const data::Whitening& whitening, const Vector& vector) -> Vector {
        if (vector.size() == 0) return vector;
        return whitening.root.size() == 0 ? vector : Vector(whitening.inverse_root * vector);
    };
    const Vector of_query = mapped(queries, terms.query), of_key = mapped(keys, terms.key);
    const Vector mean_q =
                     queries.mean.size() > 0 ? queries.mean : Vector(Vector::Zero(result.estimate.rows())),
                 mean_k = keys.mean.size() > 0 ? keys.mean : Vector(Vector::Zero(result.estimate.cols()));
    Vector query = -result.estimate * mean_k, key = -result.estimate.transpose() * mean_q;
    double constant = terms.constant + mean_q.dot(result.estimate * mean_k) / scale;
    if (of_key.size() > 0) {
        key += of_key;
        constant -= of_key.dot(mean_k) / scale * (geometry.symmetric() ? 2 : 1);
    }
    if (of_query.size() > 0) {
        query += of_query;
        constant -= of_query.dot(mean_q) / scale;
    }
    terms.key = key;
    terms.query = geometry.symmetric() ? Vector() : query;
    terms.constant = constant;
    if (rows == columns && (geometry.symmetric() || geometry.parts() == 2))
        terms.diagonal += (result.estimate.trace() - result.white_estimate.trace()) / scale;
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
    check_data(data, *channel);
    if (learns(options) && channel->layers() > 1)
        throw_unavailable("learning of the prior", "for several layers");
    if (learns(options) && data.tokens->dim() != data.keys().dim())
        throw_unavailable("learning of the prior", "for keys of another dimension");
    const Prepared prepared = prepare(data, *channel, options, pool);
    const auto fitted_channel = [&](double noise, double trace) -> std::shared_ptr<const channels::Channel> {
        if (!prepared.report.one_length) return channel_of(noise);
        return std::make_shared<channels::UnequalLengths>(channel_of(noise), trace);
    };
    FitResult result;
    result.tokens = prepared.report;
    First first;
    if (learns(options)) {
        first = first_look(prepared.data, *fitted_channel(label_noise, 0),
                           !options.tokens_as_given && options.families.front() != Family::given, pool);
        result.tokens.terms = first.terms;
    }
    const Problem problem{
        fitted_channel, prepared.report.one_length, label_noise, priors, options, first, pool};

    const Eigen::Index held = held_out_count(data, options);
    if (held > 0) {
        if (held < fewest_held_out)
            throw_invalid(
                "held-out samples",
                fmt::format("at least {}: more samples, a larger holdout, or holdout 0", fewest_held_out),
                static_cast<double>(held));
        const Split split = hold_out(prepared.data, held, options.seed);
        double best = std::numeric_limits<double>::infinity();
        for (const Family family : options.families) {
            const Run one = run(split.training, family, problem);
            Candidate candidate{family, {}, one.amp.status, one.amp.predicted_error.trace()};
            if (one.amp.status == Termination::stopped) {
                result.status = one.amp.status;
                return result;
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
        }
    }
    const Family family =
        result.candidates.empty() ? options.families.front() : result.candidates[result.chosen].family;
    Run last = run(prepared.data, family, problem);
    result.status = last.amp.status;
    result.iterations = static_cast<int>(last.amp.record.size());
    result.learned = last.learned;
    result.label_noise = options.learn_label_noise ? last.amp.label_noise : label_noise;
    result.predicted_error = last.amp.predicted_error;
    result.estimates = last.amp.estimates;
    result.white_estimate = last.amp.estimates.front();
    result.terms = last.amp.terms;
    if (!last.amp.record.empty()) {
        const AmpIteration& now = last.amp.record.back();
        result.training_ratio = now.conjugate.trace() / now.response.trace();
        const spectral::SpectralLaw* law = last.learned.law ? last.learned.law.get() : priors.front();
        if (channel->layers() == 1 && law->aspect() == 1 && !last.amp.noisy.empty() &&
            result.status != Termination::exact_recovery) {
            const Vector spectrum = spectrum_of(channel->geometry(), last.amp.noisy);
            result.spectral_misfit =
                spectral::spectral_misfit(*law, {{spectrum.data(), static_cast<std::size_t>(spectrum.size())},
                                                 now.noise_covariance.trace(),
                                                 !channel->geometry().symmetric()});
        }
    }
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
    if (result.tokens.whitened) {
        const bool separate = channel.geometry().separate_keys();
        const data::Whitening queries = data::whitening_of(result.tokens.queries),
                              keys = separate ? data::whitening_of(result.tokens.keys) : queries;
        truth = data::whitened_weights(truth, queries, keys);
    }
    if (result.learned.law && !shows_scale(channel))
        truth *=
            std::sqrt(result.learned.law->second_moment() * static_cast<double>(truth.rows())) / truth.norm();
    return data::estimation_errors(channel.geometry(), std::vector<Matrix>{result.white_estimate},
                                   std::vector<Matrix>{truth});
}

}  // namespace bayesaim::estimators

// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bayesaim/data/token_statistics.hpp"
#include "bayesaim/data/whitening.hpp"
#include "bayesaim/estimators/amp.hpp"
#include "bayesaim/estimators/diagnostics.hpp"

/// AMP for data of which little is known: the law of S, the label noise and linear terms are learned from the data, tokens
/// are made white, and samples that were held out say whether to believe the result.
namespace bayesaim::estimators {

/// Where the law of S comes from.
enum class Family {
    given,     ///< the prior as it is
    weights,   ///< Wishart (tied attention) or bilinear weights of learned width and scale
    gaussian,  ///< a semicircle: mean and variance are learned, estimates are linear in R
    smooth,    ///< any spectrum: bumps of width 0.6 sqrt(D)
    fine,      ///< the same with bumps of half that width, for spectra of few lines
};
std::string_view to_string(Family family);

/// A law that was learned, in numbers.
struct LearnedLaw {
    Family family = Family::given;
    std::shared_ptr<const spectral::SpectralLaw> law{};  ///< null if it was given
    std::optional<double> width{}, scale{};              ///< of Family::weights
    bool family_fits = true;  ///< Family::weights: whether the moments are those of some width
};

struct FitOptions {
    std::vector<Family> families = {Family::given};  ///< the candidates
    bool learn_label_noise = false;
    /// The scale of S is known to be 1, and what is found is the inverse temperature beta. Family::weights only; the
    /// channel has beta = 1.
    bool learn_beta = false;
    /// Share of the samples that is held out; 0: none, and no verdict on them.
    double holdout = 0.1;
    std::uint64_t seed = 0;        ///< of the choice of these samples
    bool tokens_as_given = false;  ///< no whitening, no linear terms
    AmpOptions amp{};
};

/// What was done about the tokens. `queries` are all tokens but the keys of cross-attention.
struct TokenReport {
    data::TokenStatistics queries, keys;  ///< before anything was done; keys: only if they are other tokens
    bool whitened = false;                ///< centred, too
    bool one_length = false;              ///< AMP worked on tokens of one length
    double condition = 1;                 ///< of the covariance, if whitened
    data::TermChoice terms{};
};

/// One candidate law, fitted without the held-out samples. Their tokens, and their outputs through the choice of linear
/// terms and the anchor, had a say in the preparation.
struct Candidate {
    Family family = Family::given;
    HeldOutFit held_out{};
    Termination status = Termination::iteration_limit;
    double predicted_error = 0;
};

struct Verdict {
    bool fits = true;
    std::string text;  ///< "fits", or what is wrong and what to try
};

struct FitResult {
    /// Shat in the units of the tokens given: h_ab = x_a' Shat z_b/sqrt(d) + the terms, minus the trace on the diagonal.
    linalg::Matrix estimate;
    data::LinearTerms terms{};
    /// Shat for white tokens, which errors are promised for; the same as `estimate` if nothing was whitened.
    linalg::Matrix white_estimate;
    Overlap predicted_error;  ///< of white_estimate
    Termination status = Termination::iteration_limit;
    int iterations = 0;
    std::vector<AmpIteration> record{};  ///< of the last run
    LearnedLaw learned{};
    double label_noise = 0;
    std::optional<double>
        beta{};  ///< if it was learned: outputs are those of beta times the indices of the estimate
    TokenReport tokens{};
    data::Whitening query_whitening{}, key_whitening{};  ///< if tokens were whitened
    std::vector<Candidate> candidates{};
    std::size_t chosen = 0;
    std::optional<double> spectral_misfit{};  ///< d KS of the spectrum of R
    double training_ratio = 1;                ///< power over slope of the scores
    Verdict verdict{};
    std::vector<linalg::Matrix> estimates{};  ///< all layers, where there are several
};

/// A channel, with this label noise if it can have any.
using ChannelOf = std::function<std::shared_ptr<const channels::Channel>(double label_noise)>;

/// `priors` are those of Family::given, one per layer, and may be empty without it. Throws InvalidArgument for data that no
/// fit can use: constant outputs, tokens on few coordinates, fewer samples than d/10, too few to hold some out.
FitResult fit(const data::Dataset& data, const ChannelOf& channel, double label_noise, Laws priors,
              const FitOptions& options, ThreadPool& pool);

/// The errors of the white estimate given the truth in the units of the tokens. Where the outputs do not show the scale of
/// S, the truth takes that of the learned law.
Overlap measured_error(const FitResult& result, const channels::Channel& channel,
                       std::span<const linalg::Matrix> weights);

}  // namespace bayesaim::estimators

// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/estimators/learning.hpp"

/// What outputs show before any fit: where AMP starts from.
namespace bayesaim::estimators {

/// A channel with this label noise and Tr(S)/sqrt(d).
using TraceChannel =
    std::function<std::shared_ptr<const channels::Channel>(double label_noise, double trace)>;

/// What the outputs show before any fit.
struct First {
    data::TermChoice terms{};
    data::LinearTerms values{};
    double second_moment = 1;   ///< tr S^T S
    double relative_error = 0;  ///< of the second moment, one standard error: pairs of a sample share tokens
    double combinations = 1;    ///< observed, per sample
    double trace = 0;           ///< Tr(S)/sqrt(d), where lengths of tokens show it
    bool anchored = true;       ///< whether the second moment is one to hold on to
};

/// Whether outputs show combinations of h, and so the scale of S; others, such as hardmax, do not.
inline bool shows_scale(const channels::Channel& channel) { return channel.smooth_output().has_value(); }

/// Scores at Shat = 0 and V = 1 are the residuals of linear and softmax outputs. Linear terms are kept if they stand out;
/// that of the diagonal always if tokens were whitened, since the trace that was subtracted is then another, and for untied
/// attention.
First first_look(const data::Dataset& data, const channels::Channel& channel, bool with_terms, bool whitened,
                 ThreadPool& pool);

/// Scores at Shat = 0 are linear in the trace that the channel subtracts: the trace that makes them smallest.
double first_trace(const data::Dataset& data, const TraceChannel& channel_of, double label_noise,
                   ThreadPool& pool);

/// Tied linear outputs: noise enters the diagonal with weight 1, the rest with 2, the signal both alike.
double first_label_noise(const data::Dataset& data, const channels::Channel& channel, double second_moment,
                         ThreadPool& pool);

}  // namespace bayesaim::estimators

// SPDX-License-Identifier: MIT
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "bayesaim/channels/channel.hpp"
#include "bayesaim/data/dataset.hpp"
#include "bayesaim/data/linear_terms.hpp"
#include "bayesaim/spectral/spectral_law.hpp"

namespace bayesaim::estimators {

struct Messages;
struct Pass;

/// tr S^T S as the outputs show it before any fit, and one standard error of it, relative.
struct Anchor {
    double second_moment = 0, relative_error = 0;
};

/// What AMP learns about the model while it runs; nothing unless set. The gain of R is then the slope of the scores:
/// power and slope agree for the right model only, and the noise of R needs both.
struct Learning {
    /// The law of S, from the spectrum of R = S + noise of variance D: eigenvalues, ascending, or singular values if S
    /// is not symmetric. Empty: the prior.
    using LawOf = std::function<std::shared_ptr<const spectral::SpectralLaw>(std::span<const double> spectrum,
                                                                             double noise_variance)>;
    LawOf law{};
    /// Keeps D next to tr R^2 - kappa2, so that a learned scale does not run away where data are few.
    std::optional<Anchor> anchor{};
    /// Outputs such as those of hardmax do not show the scale of S: it is kept at tr S^T S = 1.
    bool unit_scale = false;
    /// The channel with this label noise and Tr(Shat)/sqrt(d), if it depends on what is learned; otherwise empty.
    std::function<std::shared_ptr<const channels::Channel>(double label_noise, double trace)> channel{};
    bool learn_label_noise = false;     ///< needs the channel
    double label_noise = 0, trace = 0;  ///< the first
    /// Linear terms of the indices: those that are learned, and all that are there at first.
    data::TermChoice terms{};
    data::LinearTerms initial_terms{};

    bool any() const {
        return law || anchor || unit_scale || channel || terms.any() || !initial_terms.zero();
    }
};

/// The part of AMP that learns. One object serves one run.
class Learner {
  public:
    /// The arguments must outlive the object.
    Learner(const Learning& learning, const data::Dataset& data, spectral::Laws priors,
            const channels::Channel& channel, ThreadPool& pool);
    ~Learner();

    const channels::Channel& channel() const;
    spectral::Laws laws() const { return laws_; }
    std::shared_ptr<const spectral::SpectralLaw> law() const { return law_; }  ///< null: not learned
    double label_noise() const { return label_noise_; }
    const data::LinearTerms& terms() const { return terms_; }
    const data::TermLayout* layout() const { return layout_ ? &*layout_ : nullptr; }

    /// Share of the observations that linear terms leave: each of their parameters absorbs one.
    double freedom() const { return freedom_; }

    /// After a pass: label noise and linear terms from the scores. `kept` is the weight of the previous omega in the
    /// present one. With the mean slope H = -dg/domega,
    ///   b <- b + (sum F'HF)^-1 sum F'g,   delta <- delta + delta^2 mean[tau^2 (g^2 - H)].
    void learn_from(const Pass& pass, const Messages& messages, double kept);

    /// The factor of R, and of all that has the units of S, that makes tr S^T S = 1; 1 if the scale is not fixed. The
    /// linear terms take it at once.
    double rescale(const std::vector<linalg::Matrix>& noisy, const linalg::Overlap& noise);
    /// The noise of R next to what the anchor says.
    linalg::Overlap anchored(const std::vector<linalg::Matrix>& noisy, const linalg::Overlap& noise) const;
    /// The channel of the next pass.
    void follow(const std::vector<linalg::Matrix>& estimates);
    /// Learns the law from R.
    void learn_law(const std::vector<linalg::Matrix>& noisy, const linalg::Overlap& noise);

  private:
    double signal(const std::vector<linalg::Matrix>& noisy, const linalg::Overlap& noise) const;

    const Learning& learning_;
    const data::Dataset& data_;
    const channels::Channel& given_;
    ThreadPool& pool_;
    std::shared_ptr<const channels::Channel> channel_;
    std::vector<const spectral::SpectralLaw*> laws_;
    std::shared_ptr<const spectral::SpectralLaw> law_;
    double label_noise_;
    std::optional<data::TermLayout> layout_;
    data::LinearTerms terms_;
    linalg::Vector parameters_, effective_;  // of the terms, and damped like omega
    linalg::Matrix root_;                    // Cholesky's of sum F'HF
    double first_slope_ = 0;                 // trace of H in it
    double freedom_ = 1;
};

/// H = -dg/domega of a sample, the mean over a few; the same for all samples of softmax and linear channels.
Eigen::MatrixXd mean_slope(const channels::Channel& channel, const data::Dataset& data,
                           const channels::ConstRowsRef& omega, const linalg::Overlap& variance,
                           ThreadPool& pool);

/// Combinations of the indices that a sample shows; all that it has if outputs are noisy or discrete.
int observations_per_sample(const channels::Channel& channel);

/// The spectrum of R: eigenvalues of a symmetric matrix, otherwise the singular values of the sum of its parts.
linalg::Vector spectrum_of(const channels::Geometry& geometry, const std::vector<linalg::Matrix>& noisy);

}  // namespace bayesaim::estimators

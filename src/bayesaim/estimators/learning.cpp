// SPDX-License-Identifier: MIT
#include "bayesaim/estimators/learning.hpp"

#include <algorithm>
#include <cmath>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/estimators/data_pass.hpp"
#include "bayesaim/linalg/decompositions.hpp"
#include "bayesaim/linalg/matrix_sum.hpp"
#include "bayesaim/linalg/symmetric_eigen.hpp"

namespace bayesaim::estimators {
namespace {

using linalg::Matrix;
using linalg::Overlap;
using linalg::Vector;

/// ||R||^2/d
double size_of(const std::vector<Matrix>& noisy) {
    double sum = 0;
    for (const Matrix& matrix : noisy) sum += matrix.squaredNorm();
    return sum / std::sqrt(static_cast<double>(noisy[0].rows()) * static_cast<double>(noisy[0].cols()));
}

/// E ||N||^2/d of the noise: D (1 + 1/d) if it is symmetric.
double noise_size(const channels::Geometry& geometry, const Overlap& noise, Eigen::Index dim) {
    return noise.trace() * (geometry.symmetric() ? 1 + 1 / static_cast<double>(dim) : 1);
}

}  // namespace

Eigen::MatrixXd mean_slope(const channels::Channel& channel, const data::Dataset& data,
                           const channels::ConstRowsRef& omega, const Overlap& variance, ThreadPool& pool) {
    constexpr Eigen::Index few = 32;
    const Eigen::Index samples = omega.rows(), count = std::min(few, samples);
    const auto add_own = [&](Range range, linalg::MatrixSum& sum) {
        for (Eigen::Index k = 0; k < count; ++k) {
            const Eigen::Index i = k * samples / count;
            if (i >= static_cast<Eigen::Index>(range.begin) && i < static_cast<Eigen::Index>(range.end))
                sum.matrix -=
                    channel.score_slope(data.outputs.middleRows(i, 1), omega.middleRows(i, 1), variance);
        }
    };
    return linalg::sum_over_samples(pool, data.shares(), omega.cols(), omega.cols(), 0, add_own).matrix /
           static_cast<double>(count);
}

int observations_per_sample(const channels::Channel& channel) {
    const channels::Geometry geometry = channel.geometry();
    return channel.observed_combinations().value_or(geometry.symmetric() ? geometry.pairs()
                                                                         : geometry.seen_outputs());
}

Learner::Learner(const Learning& learning, const data::Dataset& data, spectral::Laws priors,
                 const channels::Channel& channel, ThreadPool& pool)
    : learning_(learning),
      data_(data),
      given_(channel),
      pool_(pool),
      laws_(priors.begin(), priors.end()),
      label_noise_(learning.label_noise),
      terms_(learning.initial_terms) {
    if (learning.any() && channel.layers() > 1)
        throw_unavailable("learning of the model", "for several layers");
    if (learning.learn_label_noise) check_positive("first label noise", label_noise_);
    if (learning.channel) channel_ = learning.channel(label_noise_, learning.trace);
    if (learning.terms.any() || !terms_.zero()) {
        data::TermChoice choice = learning.terms;
        choice.query = choice.query || terms_.query.size() > 0;
        choice.key = choice.key || terms_.key.size() > 0;
        choice.diagonal = choice.diagonal || terms_.diagonal != 0;
        choice.constant = choice.constant || terms_.constant != 0;
        layout_.emplace(channel.geometry(), choice, data.tokens->dim(), data.keys().dim());
        parameters_ = effective_ = layout_->parameters(terms_);
        const double observations =
            static_cast<double>(data.tokens->samples()) * observations_per_sample(channel);
        if (learning.terms.any())
            freedom_ = std::max(0.5, 1 - static_cast<double>(layout_->size()) / observations);
    }
}

Learner::~Learner() = default;

const channels::Channel& Learner::channel() const { return channel_ ? *channel_ : given_; }

void Learner::learn_from(const Pass& pass, const Messages& messages, double kept) {
    const bool terms = learning_.terms.any();
    if (!terms && !learning_.learn_label_noise) return;
    const Eigen::MatrixXd slope = mean_slope(channel(), data_, messages.omega, messages.variance, pool_);
    if (terms) {
        effective_ = kept * effective_ + (1 - kept) * parameters_;
        if (root_.size() == 0) {
            Matrix gram = layout_->gram(*data_.tokens, data_.keys(), slope, pool_);
            // A direction that the outputs do not show keeps its value.
            gram.diagonal().array() += 1e-10 * gram.diagonal().maxCoeff();
            first_slope_ = slope.trace();
            if (auto root = linalg::cholesky(std::move(gram))) root_ = std::move(*root);
        }
        if (root_.size() > 0 && slope.trace() > 0) {
            Matrix step = pass.terms * (first_slope_ / slope.trace());
            linalg::solve_lower(root_, linalg::Transpose::no, step);
            linalg::solve_lower(root_, linalg::Transpose::yes, step);
            parameters_ = effective_ + step;
            terms_ = layout_->terms(parameters_);
        }
    }
    if (learning_.learn_label_noise) {
        double sum = 0;
        Eigen::Index seen = 0;
        const Eigen::Index pairs = channel().pairs(), columns = messages.g.cols();
        const std::vector<double> power =
            sum_over_samples(pool_, data_.shares(), static_cast<std::size_t>(columns),
                             [&](Range range, std::span<double> squares) {
                                 for (Eigen::Index p = 0; p < columns; ++p)
                                     squares[static_cast<std::size_t>(p)] =
                                         data::rows_of(messages.g, range).col(p).squaredNorm();
                             });
        for (Eigen::Index p = 0; p < slope.rows(); ++p) {
            if (!(slope(p, p) > 0)) continue;
            ++seen;
            // 1/H = V + tau^2 delta
            const Eigen::Index component = p / pairs;
            const double weight = (1 / slope(p, p) - messages.variance(component, component)) / label_noise_;
            sum += weight * (power[static_cast<std::size_t>(p)] / static_cast<double>(messages.g.rows()) -
                             slope(p, p));
        }
        const double change = label_noise_ * label_noise_ * sum / static_cast<double>(seen);
        label_noise_ = std::max(label_noise_ + change, 1e-3 * label_noise_);
    }
}

void Learner::follow(const std::vector<Matrix>& estimates) {
    if (!learning_.channel) return;
    const auto dim = static_cast<double>(estimates[0].rows());
    channel_ = learning_.channel(label_noise_, estimates[0].trace() / std::sqrt(dim));
}

double Learner::signal(const std::vector<Matrix>& noisy, const Overlap& noise) const {
    return size_of(noisy) - noise_size(given_.geometry(), noise, noisy[0].rows());
}

double Learner::rescale(const std::vector<Matrix>& noisy, const Overlap& noise) {
    if (!learning_.unit_scale) return 1;
    const double unit = 1 / std::sqrt(std::max(signal(noisy, noise), 0.05 * size_of(noisy)));
    if (layout_) {
        parameters_ *= unit;
        effective_ *= unit;
        terms_ = layout_->terms(parameters_);
    }
    return unit;
}

Overlap Learner::anchored(const std::vector<Matrix>& noisy, const Overlap& noise) const {
    if (!learning_.anchor) return noise;
    const auto [second, relative] = *learning_.anchor;
    const double now = noise.trace(), uncertainty = second * relative,
                 expected =
                     (size_of(noisy) - second) * now / noise_size(given_.geometry(), noise, noisy[0].rows());
    // Next to recovery the moment of the data says nothing about so little noise.
    if (expected < 4 * uncertainty) return noise;
    const double kept = std::max(std::clamp(now, expected - uncertainty, expected + uncertainty), 0.3 * now);
    return kept / now * noise;
}

void Learner::learn_law(const std::vector<Matrix>& noisy, const Overlap& noise) {
    if (!learning_.law) return;
    const Vector spectrum = spectrum_of(given_.geometry(), noisy);
    law_ = learning_.law({spectrum.data(), static_cast<std::size_t>(spectrum.size())}, noise.trace());
    laws_ = {law_.get()};
}

Vector spectrum_of(const channels::Geometry& geometry, const std::vector<Matrix>& noisy) {
    if (geometry.symmetric()) return linalg::symmetric_eigenvalues(noisy[0]);
    Matrix whole = noisy[0];
    for (std::size_t part = 1; part < noisy.size(); ++part) whole += noisy[part];
    if (whole.rows() > whole.cols()) whole.transposeInPlace();
    return linalg::symmetric_eigenvalues(linalg::gram(1, whole)).cwiseMax(0).cwiseSqrt();
}

}  // namespace bayesaim::estimators

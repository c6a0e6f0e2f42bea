// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/priors/prior.hpp"
#include "bayesaim/spectral/scaled_law.hpp"

namespace bayesaim::priors {

/// The mean S = (1/M) sum_m S_m of M independent tied heads of one width. If the logits of heads are
/// averaged, h = (1/M) sum_m h^m, only this mean can be learned, so the heads are one layer with this prior.
/// The M matrices W side by side form one matrix that is M times as wide:
///   S = M^(-1/2) x (tied attention of width M rho).
/// Pinned by: MultiHead.MeanOfHeadsIsAWiderLayer.
class MultiHead final : public Prior {
  public:
    MultiHead(int heads, double width);

    std::string name() const override { return "multi-head"; }
    std::vector<std::pair<std::string, double>> parameters() const override {
        return {{"heads", heads_}, {"width", width_}};
    }
    const spectral::SpectralLaw& law() const override { return law_; }

    /// The mean of `heads` draws of tied attention, from the streams index * heads, index * heads + 1, ...
    linalg::Matrix sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
                          ThreadPool& pool) const override;

  private:
    int heads_;
    double width_;
    spectral::ScaledLaw law_;
};

}  // namespace bayesaim::priors

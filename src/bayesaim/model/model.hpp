// SPDX-License-Identifier: MIT
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bayesaim/channels/table.hpp"
#include "bayesaim/core/record.hpp"
#include "bayesaim/priors/table.hpp"
#include "bayesaim/spectral/spectral_law.hpp"

namespace bayesaim::model {

using spectral::Laws;

/// One channel, and one prior for each of its layers. Theory, data and estimators work on these.
class Model {
  public:
    /// `spectrum` is the name of the file that the priors were read from, if any.
    Model(std::shared_ptr<const channels::Channel> channel,
          std::vector<std::shared_ptr<const priors::Prior>> priors, std::string spectrum = {});

    const channels::Channel& channel() const { return *channel_; }
    int layers() const { return channel_->layers(); }
    const priors::Prior& prior(std::size_t layer) const { return *priors_[layer]; }
    std::span<const priors::Prior* const> priors() const { return pointers_; }
    Laws laws() const { return laws_; }  ///< live as long as the model
    const std::string& spectrum() const { return spectrum_; }

  private:
    std::shared_ptr<const channels::Channel> channel_;
    std::vector<std::shared_ptr<const priors::Prior>> priors_;
    std::vector<const priors::Prior*> pointers_;
    std::vector<const spectral::SpectralLaw*> laws_;
    std::string spectrum_;
};

/// A model in words and numbers, as on the command line, in a study or in a file.
struct ModelOptions {
    std::string prior = "wishart";
    std::vector<double> widths = {1};  ///< one for all layers, or one for each
    std::string spectrum{};            ///< name of a file of eigenvalues or of an estimate
    int heads = 2;
    double aspect = 1;     ///< d2/d1 of cross-attention: dimension of the keys over that of the queries
    double scale = 1;      ///< multiplies S
    double exponent = 1;   ///< of a power-law spectrum
    double cutoff = 1e-3;  ///< of a power-law spectrum
    std::string channel = "softmax";
    channels::ChannelOptions channel_options{};
};

/// The model with these options. Throws InvalidArgument for unknown names and unsuitable values. The prior
/// that a channel implies (multi-head) replaces the default prior.
Model make_model(const ModelOptions& options);

/// Name and parameters of the priors and of the channel, which accompany every result: "prior", "channel",
/// then the parameters, counts as whole numbers. For several layers the parameters of the priors are lists,
/// one value per layer, and so are their names if they differ.
Record describe(const Model& model);
Record describe(const channels::Channel& channel);
Record describe(const priors::Prior& prior);

/// Sets the options that a description or the attributes of a file contain; the others keep their values.
/// Throws InvalidArgument for values of the wrong type.
void read_options(const Record& description, ModelOptions& options);

/// Whether models are described by a setting of this name: prior, channel or an option of one of them.
bool is_option(std::string_view name);

/// Whether this channel and prior take the option. The tables name the options: `layers` and so on for the
/// channel, `width`, `scale`, `spectrum` and so on for the prior.
bool takes_option(const ModelOptions& options, std::string_view name);
/// The owners of an option: "channel deep-softmax or deep-seq2seq", "prior wishart or multi-head".
std::string owners_of_option(std::string_view name);

}  // namespace bayesaim::model

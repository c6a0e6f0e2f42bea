// SPDX-License-Identifier: MIT
#pragma once
#include <span>
#include <string>
#include <vector>

#include "bayesaim/data/dataset.hpp"
#include "bayesaim/data/hdf5_file.hpp"
#include "bayesaim/linalg/overlap.hpp"

/// Datasets and estimates in HDF5 files:
///   /tokens       (n, T, d)  double or float
///   /outputs      (n, T, T)  or /log_outputs, log-probabilities, for softmax
///   /weights      (L, d, d)  S_1 .. S_L, when they are known
///   /error        (1, L, L)  estimates of several layers: the predicted error C between layers
/// and attributes of the root group. Tokens pass block by block: nobody keeps a second copy of all of them.
/// Errors are those of hdf5_file.
namespace bayesaim::data {

/// The prior and the channel by name ("prior", "channel"), and their parameters; those of the priors of
/// several layers as texts, "0.4,0.8".
Attributes describe(std::span<const priors::Prior* const> priors, const channels::Channel& channel);

/// Writes the tokens in the given precision, everything else in double; weights if there are any. The
/// attributes and the version and commit of the library go to the root group. The same arguments give the
/// same bytes. `progress` is told the fraction of the tokens that is written; what it throws ends the
/// writing, and nothing is left.
void write_dataset(const std::string& file, const Dataset& data, const channels::Channel& channel,
                   std::span<const linalg::Matrix> weights, const Attributes& attributes,
                   Precision precision = Precision::double_precision,
                   const std::function<void(double)>& progress = {});

/// What can be known of a dataset file without reading its arrays.
struct DatasetHeader {
    Eigen::Index samples = 0, tokens = 0, dim = 0;
    Attributes attributes;  ///< those of the root group that are one number or one text
};

DatasetHeader read_dataset_header(const std::string& file);

struct DatasetContents {
    Dataset data;  ///< tokens in memory, in the precision of the file; no outputs if there are none
    std::vector<linalg::Matrix> weights;  ///< one per layer; none if they are not known
    Attributes attributes;
};

/// Reads the file as data of this channel, and checks every value. Softmax takes logarithms where the file
/// has /outputs, probabilities, instead of /log_outputs.
enum class Outputs { required, optional };
DatasetContents read_dataset(const std::string& file, const channels::Channel& channel,
                             Outputs needed = Outputs::required);

/// Estimated weights of every layer, and their error.
struct Estimate {
    std::vector<linalg::Matrix> weights;
    linalg::Overlap error;  ///< C, L x L; its trace is the attribute predicted_error
    Attributes attributes;
};
void write_estimate(const std::string& file, const Estimate& estimate);
Estimate read_estimate(const std::string& file);

/// Predicted outputs (n x T^2 each) as /predictions, the Bayes-optimal ones, and /plugin_predictions.
void write_predictions(const std::string& file, const channels::Rows& bayes_optimal,
                       const channels::Rows& plug_in, Eigen::Index tokens, const Attributes& attributes);

}  // namespace bayesaim::data

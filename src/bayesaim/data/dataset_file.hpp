// SPDX-License-Identifier: MIT
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bayesaim/core/record.hpp"
#include "bayesaim/data/attributes.hpp"
#include "bayesaim/data/dataset.hpp"
#include "bayesaim/data/linear_terms.hpp"
#include "bayesaim/linalg/overlap.hpp"
#include "bayesaim/spectral/bump_law.hpp"

/// Datasets and estimates in HDF5 files:
///   /tokens       (n, T, d)  double or float
///   /key_tokens   (n, Tk, d2) of cross-attention only; d2 may differ from d
///   /outputs      (n, T, Tk) or /log_outputs, log-probabilities, for softmax; Tk = T but for cross-attention
///   /weights      (L, d, d2) S_1 .. S_L, if they are known; d2 = d but for cross-attention
///   /error        (1, L, L)  estimates of several layers: the predicted error C between layers
///   /query_term, /key_term (1, 1, d) linear terms of an estimate, /law (1, k, 3) its law: centre, weight and variance of
///                 bumps
/// and attributes of the root group. Tokens are written and read block by block, without a second copy.
/// Datasets are read from npz files of numpy too: the same arrays, and arrays without dimensions as
/// attributes. Functions throw the errors of hdf5_file.hpp and input_file.hpp.
namespace bayesaim::data {

/// A description of a model (model::describe) as attributes of a file, and back.
Attributes attributes_of(const Record& description);
Record record_of(const Attributes& attributes);

/// Writes the tokens in the given precision and everything else in double; writes weights if there are any.
/// The root group gets the attributes and the version and commit of the library. The same arguments give the
/// same bytes. `progress` receives the fraction of tokens written; if it throws, the file is removed.
void write_dataset(const std::string& file, const Dataset& data, const channels::Channel& channel,
                   std::span<const linalg::Matrix> weights, const Attributes& attributes,
                   Precision precision = Precision::double_precision,
                   const std::function<void(double)>& progress = {});

/// The part of a dataset file that can be read without its arrays.
struct DatasetHeader {
    Eigen::Index samples = 0, tokens = 0, dim = 0;
    Eigen::Index key_tokens = 0;  ///< 0 without /key_tokens
    Eigen::Index key_dim = 0;     ///< dimension of the keys: dim without /key_tokens
    Attributes attributes;        ///< attributes of the root group that are one number or one text
};

DatasetHeader read_dataset_header(const std::string& file);

struct DatasetContents {
    Dataset data;  ///< tokens in the precision of the file; outputs are empty if the file has none
    std::vector<linalg::Matrix> weights;  ///< one per layer; empty if they are not known
    Attributes attributes;
};

/// Reads the file as data of this channel, the samples of this rank, and checks every value. If a softmax file has /outputs
/// (probabilities) instead of /log_outputs, their logarithms are taken. Weights of one layer may be one
/// matrix.
enum class Outputs { required, optional };
DatasetContents read_dataset(const std::string& file, const channels::Channel& channel,
                             Outputs needed = Outputs::required, const Communicator& ranks = one_process());

/// Estimated weights of every layer, and their error.
struct Estimate {
    std::vector<linalg::Matrix> weights;
    linalg::Overlap
        error;  ///< C, L x L, or 2 x 2 of the parts of S; its trace is the attribute predicted_error
    Attributes attributes;
    LinearTerms terms{};  ///< of the indices; two of them are the attributes diagonal_term and constant_term
    std::vector<spectral::Bump> law{};  ///< of S, if it was learned without a family
};
void write_estimate(const std::string& file, const Estimate& estimate);
Estimate read_estimate(const std::string& file);

/// Writes the Bayes-optimal predictions as /predictions, the plug-in ones as /plugin_predictions, and the posterior standard
/// deviations as /prediction_deviations. Their shape is (n, tokens, columns/tokens).
void write_predictions(const std::string& file, const channels::Rows& bayes_optimal,
                       const channels::Rows& plug_in, const channels::Rows& deviations, Eigen::Index tokens,
                       const Attributes& attributes);

}  // namespace bayesaim::data

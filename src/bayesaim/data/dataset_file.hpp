// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>

#include "bayesaim/data/dataset.hpp"

/// Datasets and estimates in HDF5 files:
///   /tokens       (n, T, d)  double or float
///   /outputs      (n, T, T)  or /log_outputs, log-probabilities, for softmax
///   /weights      (1, d, d)  S, when it is known
/// and attributes of the root group. Tokens pass block by block: nobody keeps a second copy of all of them.
/// What is wrong with a file is InvalidArgument in one line that names the file and the dataset; a file that
/// cannot be written is std::runtime_error, and then nothing is left of it. HDF5 is not thread-safe: use
/// these from one thread.
namespace bayesaim::data {

using Attribute = std::variant<std::string, double, std::uint64_t>;
using Attributes = std::map<std::string, Attribute>;

/// The prior and the channel by name ("prior", "channel"), and their parameters.
Attributes describe(const priors::Prior& prior, const channels::Channel& channel);

/// The attribute as text or as a number; nothing if there is none, InvalidArgument if it is something else.
std::optional<std::string> text_attribute(const Attributes& attributes, const std::string& name);
std::optional<double> number_attribute(const Attributes& attributes, const std::string& name);

/// Writes the tokens in the given precision, everything else in double; weights unless null. The attributes
/// and the version and commit of the library go to the root group. The same arguments give the same bytes.
void write_dataset(const std::string& file, const Dataset& data, const channels::Channel& channel,
                   const linalg::Matrix* weights, const Attributes& attributes,
                   Precision precision = Precision::double_precision);

/// What can be known of a dataset file without reading its arrays.
struct DatasetHeader {
    Eigen::Index samples = 0, tokens = 0, dim = 0;
    Attributes attributes;  ///< those of the root group that are one number or one text
};

DatasetHeader read_dataset_header(const std::string& file);

struct DatasetContents {
    Dataset data;  ///< tokens in memory
    std::optional<linalg::Matrix> weights;
    Attributes attributes;
};

/// Reads the file as data of this channel, and checks every value. Softmax takes logarithms where the file
/// has /outputs, probabilities, instead of /log_outputs.
DatasetContents read_dataset(const std::string& file, const channels::Channel& channel);

/// The estimate as /weights, with attributes.
void write_estimate(const std::string& file, const linalg::Matrix& estimate, const Attributes& attributes);

}  // namespace bayesaim::data

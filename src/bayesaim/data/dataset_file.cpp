// SPDX-License-Identifier: MIT
#include "bayesaim/data/dataset_file.hpp"

#include <cmath>
#include <new>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/hdf5_file.hpp"
#include "bayesaim/data/input_file.hpp"

namespace bayesaim::data {
namespace {

using linalg::Matrix;

const char* outputs_name(const channels::Channel& channel) {
    return channel.logarithmic_outputs() ? "log_outputs" : "outputs";
}

void check_shape(const InputArray& array, const Shape& expected, const InputArray& tokens) {
    if (array.shape == expected) return;
    throw_invalid(
        array.title,
        fmt::format("of shape {}, as {} is {}", to_string(expected), tokens.name, to_string(tokens.shape)),
        to_string(array.shape));
}

/// A rows x cols array that the file must have.
template <class Storage>
Storage allocate(const InputArray& array, Eigen::Index rows, Eigen::Index cols) {
    try {
        return Storage(rows, cols);
    } catch (const std::bad_alloc&) {
        throw_invalid(array.title, "small enough for the memory", to_string(array.shape));
    }
}

/// Probabilities to log-probabilities. What is not seen may be 0.
void take_logarithms(const InputArray& array, const channels::Geometry& geometry, Range samples,
                     channels::Rows& outputs) {
    const auto end = static_cast<Eigen::Index>(samples.end);
    for (auto i = static_cast<Eigen::Index>(samples.begin); i < end; ++i) {
        for (int p = 0; p < geometry.outputs(); ++p) {
            double& value = outputs(i, p);
            if (!(value > 0) && geometry.sees(p / geometry.keys, p % geometry.keys))
                check_positive(fmt::format("{}, probability of sample {},", array.title, i), value);
            value = std::log(value);
        }
    }
}

void write_weights(std::span<const Matrix> weights, Hdf5Writer& out) {
    const Eigen::Index layers = static_cast<Eigen::Index>(weights.size()), dim = weights[0].rows(),
                       columns = weights[0].cols();
    channels::Rows rows;
    out.write("weights", {layers, dim, columns}, Precision::double_precision, [&](Range range) {
        rows.resize(static_cast<Eigen::Index>(range.size()) * dim, columns);
        for (std::size_t l = 0; l < range.size(); ++l)
            rows.middleRows(static_cast<Eigen::Index>(l) * dim, dim) = weights[range.begin + l];
        return rows.data();
    });
}

constexpr const char *token_dimensions = "(samples, tokens, dim)", *weight_dimensions = "(layers, dim, dim)";

std::vector<Matrix> read_weights(const InputArray& weights) {
    const auto [layers, dim, columns] = weights.shape;
    auto rows = allocate<channels::Rows>(weights, layers * dim, columns);
    read_all(weights, rows.data());
    std::vector<Matrix> result;
    for (Eigen::Index l = 0; l < layers; ++l) result.emplace_back(rows.middleRows(l * dim, dim));
    return result;
}

/// C of an estimate of several layers, or of the two parts of S.
linalg::Overlap read_error(const Hdf5Reader& reader, Eigen::Index layers) {
    const InputArray array = reader.array("error", "(1, layers, layers)");
    if (array.shape != Shape{1, layers, layers})
        throw_invalid(array.title, fmt::format("of shape (1, {}, {}), as /weights", layers, layers),
                      to_string(array.shape));
    linalg::Overlap error(layers, layers);
    read_all(array, error.data());
    const double lowest = linalg::smallest_eigenvalue(error);
    if (!error.isApprox(error.transpose(), 1e-6) || lowest < 0)
        throw_invalid(array.title, "symmetric with no negative eigenvalue", lowest);
    return error;
}

/// The tokens of this rank. Single-precision tokens stay in single precision.
std::shared_ptr<const TokenSource> read_tokens(const InputArray& tokens, const Communicator& ranks) {
    const auto [n, t, d] = tokens.shape;
    const Shares shares(static_cast<std::size_t>(n));
    const Range own = shares.own_samples(ranks);
    const auto read = [&, t = t]<class Columns>(Columns columns) -> std::shared_ptr<const TokenSource> {
        read_samples(tokens, own, columns.data());
        return given_tokens(std::move(columns), t, own, shares);
    };
    const Eigen::Index columns = static_cast<Eigen::Index>(own.size()) * t;
    if (tokens.precision == Precision::float_precision)
        return read(allocate<Eigen::MatrixXf>(tokens, d, columns));
    return read(allocate<Matrix>(tokens, d, columns));
}

}  // namespace

Attributes attributes_of(const Record& description) { return {description.begin(), description.end()}; }

Record record_of(const Attributes& attributes) {
    Record result;
    for (const auto& [name, value] : attributes) result[name] = value;
    return result;
}

void write_dataset(const std::string& file, const Dataset& data, const channels::Channel& channel,
                   std::span<const Matrix> weights, const Attributes& attributes, Precision precision,
                   const std::function<void(double)>& progress) {
    const TokenSource& source = *data.tokens;
    const Eigen::Index samples = source.samples(), tokens = source.tokens();
    check_size("rows of the outputs", data.outputs.rows(), samples);
    const Eigen::Index dim = source.dim(), key_dim = data.keys().dim(), keys = data.keys().tokens();
    check_size("columns of the outputs", data.outputs.cols(), tokens * keys);
    const Eigen::Index token_size = precision == Precision::float_precision ? 4 : 8,
                       layers = static_cast<Eigen::Index>(weights.size());
    Hdf5Writer out(file, samples * ((tokens * dim + (data.key_tokens ? keys : 0) * key_dim) * token_size +
                                    tokens * keys * 8) +
                             layers * dim * key_dim * 8);
    Matrix scratch;
    double done = 0;
    const auto write = [&](const char* name, const TokenSource& from) {
        out.write(name, {samples, from.tokens(), from.dim()}, precision, [&](Range range) {
            const double share = data.key_tokens ? 0.5 : 1;
            if (progress)
                progress(done + share * static_cast<double>(range.begin) / static_cast<double>(samples));
            return from.block(range, scratch).data();
        });
    };
    write("tokens", source);
    done = 0.5;
    if (data.key_tokens) write("key_tokens", *data.key_tokens);
    out.write(outputs_name(channel), {samples, tokens, keys}, data.outputs.data());
    if (!weights.empty()) write_weights(weights, out);
    out.finish(attributes);
}

DatasetHeader read_dataset_header(const std::string& file) {
    const auto opened = open_input(file, "dataset");
    const InputFile& reader = *opened;
    const InputArray tokens = reader.array("tokens", token_dimensions);
    DatasetHeader header{tokens.shape[0], tokens.shape[1],    tokens.shape[2], 0,
                         tokens.shape[2], reader.attributes()};
    if (reader.has("key_tokens")) {
        const Shape keys = reader.array("key_tokens", token_dimensions).shape;
        header.key_tokens = keys[1];
        header.key_dim = keys[2];
    }
    return header;
}

DatasetContents read_dataset(const std::string& file, const channels::Channel& channel, Outputs needed,
                             const Communicator& ranks) {
    const auto opened = open_input(file, "dataset");
    const InputFile& reader = *opened;
    const InputArray tokens = reader.array("tokens", token_dimensions);
    const auto [n, t, d] = tokens.shape;
    if (t != channel.tokens()) {
        throw_invalid(tokens.title,
                      fmt::format("of {} tokens per sample, for this channel", channel.tokens()),
                      to_string(tokens.shape));
    }
    DatasetContents result;
    result.attributes = reader.attributes();
    const channels::Geometry geometry = channel.geometry();
    const Eigen::Index key_dim =
        geometry.separate_keys() ? reader.array("key_tokens", token_dimensions).shape[2] : d;
    const auto read_all_tokens = [&, n = n] {
        result.data.tokens = read_tokens(tokens, ranks);
        if (!geometry.separate_keys()) return;
        const InputArray key_tokens = reader.array("key_tokens", token_dimensions);
        check_shape(key_tokens, {n, geometry.keys, key_dim}, tokens);
        result.data.key_tokens = read_tokens(key_tokens, ranks);
    };
    if (reader.has("weights")) {
        const InputArray weights = reader.array("weights", weight_dimensions, InputFile::Matrices::allowed);
        check_shape(weights, {channel.layers(), d, key_dim}, tokens);
        result.weights = read_weights(weights);
    }
    const std::string usual_name = outputs_name(channel);
    const bool take_logarithm =
        channel.logarithmic_outputs() && reader.has("outputs") && !reader.has(usual_name);
    const std::string name = take_logarithm ? "outputs" : usual_name;
    if (needed == Outputs::optional && !reader.has(name)) {
        read_all_tokens();
        return result;
    }
    const InputArray outputs = reader.array(name, "(samples, tokens, tokens)");
    check_shape(outputs, {n, t, geometry.keys}, tokens);
    result.data.outputs = allocate<channels::Rows>(outputs, n, geometry.outputs());
    // The channel decides which outputs are seen; the others may be anything.
    const Range own = Shares(static_cast<std::size_t>(n)).own_samples(ranks);
    read_samples(outputs, own, rows_of(result.data.outputs, own).data(), Numbers::outputs);
    if (take_logarithm) take_logarithms(outputs, geometry, own, result.data.outputs);
    read_all_tokens();
    try {
        check_outputs(channel, result.data, ranks);
    } catch (const InvalidArgument& error) {
        throw InvalidArgument(fmt::format("{}: {}", outputs.title, error.what()));
    }
    return result;
}

Estimate read_estimate(const std::string& file) {
    const Hdf5Reader reader(file, "estimate");
    const InputArray weights = reader.array("weights", weight_dimensions);
    const auto [layers, dim, columns] = weights.shape;
    const auto attention = text_attribute(reader.attributes(), "attention");
    const bool rectangular = attention && *attention == to_string(channels::Attention::cross);
    if ((dim != columns && !rectangular) || layers > linalg::max_layers)
        throw_invalid(weights.title,
                      fmt::format("{}, at most {} layers", weight_dimensions, linalg::max_layers),
                      to_string(weights.shape));
    Estimate result{read_weights(weights), {}, reader.attributes()};
    const auto error = number_attribute(result.attributes, "predicted_error");
    if (!error) throw_invalid(fmt::format("'{}': attribute predicted_error", file), "in the file", "none");
    check_non_negative(fmt::format("'{}': attribute predicted_error", file), *error);
    // One layer has two errors if its parts have errors of their own.
    const Eigen::Index components = layers == 1 && reader.has("error") ? 2 : layers;
    result.error = components == 1 ? linalg::scalar_overlap(*error) : read_error(reader, components);
    for (const auto& [name, term, size] : {std::tuple("query_term", &result.terms.query, dim),
                                           std::tuple("key_term", &result.terms.key, columns)}) {
        if (!reader.has(name)) continue;
        const InputArray array = reader.array(name, "(1, 1, dim)");
        if (array.shape != Shape{1, 1, size})
            throw_invalid(array.title, fmt::format("of shape (1, 1, {}), as /weights", size),
                          to_string(array.shape));
        term->resize(size);
        read_all(array, term->data());
    }
    result.terms.diagonal = number_attribute(result.attributes, "diagonal_term").value_or(0);
    result.terms.constant = number_attribute(result.attributes, "constant_term").value_or(0);
    return result;
}

void write_predictions(const std::string& file, const channels::Rows& bayes_optimal,
                       const channels::Rows& plug_in, const channels::Rows& deviations, Eigen::Index tokens,
                       const Attributes& attributes) {
    const Shape shape = {bayes_optimal.rows(), tokens, bayes_optimal.cols() / tokens};
    Hdf5Writer out(file, 3 * bayes_optimal.size() * 8);
    out.write("predictions", shape, bayes_optimal.data());
    out.write("plugin_predictions", shape, plug_in.data());
    out.write("prediction_deviations", shape, deviations.data());
    out.finish(attributes);
}

void write_estimate(const std::string& file, const Estimate& estimate) {
    const auto layers = static_cast<Eigen::Index>(estimate.weights.size());
    Hdf5Writer out(file, layers * estimate.weights[0].size() * 8);
    write_weights(estimate.weights, out);
    const Eigen::Index components = estimate.error.rows();
    if (components > 1) out.write("error", {1, components, components}, estimate.error.data());
    for (const auto& [name, term] :
         {std::pair("query_term", &estimate.terms.query), std::pair("key_term", &estimate.terms.key)}) {
        if (term->size() > 0) out.write(name, {1, 1, term->size()}, term->data());
    }
    if (!estimate.law.empty()) {
        channels::Rows bumps(static_cast<Eigen::Index>(estimate.law.size()), 3);
        for (std::size_t k = 0; k < estimate.law.size(); ++k)
            bumps.row(static_cast<Eigen::Index>(k)) << estimate.law[k].centre, estimate.law[k].weight,
                estimate.law[k].variance;
        out.write("law", {1, bumps.rows(), 3}, bumps.data());
    }
    Attributes attributes = estimate.attributes;
    if (estimate.terms.diagonal != 0) attributes["diagonal_term"] = estimate.terms.diagonal;
    if (estimate.terms.constant != 0) attributes["constant_term"] = estimate.terms.constant;
    attributes["predicted_error"] = estimate.error.trace();
    out.finish(attributes);
}

}  // namespace bayesaim::data

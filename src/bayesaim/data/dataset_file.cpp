// SPDX-License-Identifier: MIT
#include "bayesaim/data/dataset_file.hpp"

#include <cmath>
#include <new>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"

namespace bayesaim::data {
namespace {

using linalg::Matrix;

const char* outputs_name(const channels::Channel& channel) {
    return channel.logarithmic_outputs() ? "log_outputs" : "outputs";
}

void check_shape(const Hdf5Array& array, const Shape& expected, const Shape& tokens) {
    if (array.shape == expected) return;
    throw_invalid(array.title,
                  fmt::format("of shape {}, as /tokens is {}", to_string(expected), to_string(tokens)),
                  to_string(array.shape));
}

/// rows x cols numbers, for an array that its file says is there.
template <class Storage>
Storage allocate(const Hdf5Array& array, Eigen::Index rows, Eigen::Index cols) {
    try {
        return Storage(rows, cols);
    } catch (const std::bad_alloc&) {
        throw_invalid(array.title, "small enough for the memory", to_string(array.shape));
    }
}

/// Probabilities to log-probabilities.
void take_logarithms(const Hdf5Array& array, channels::Rows& outputs) {
    for (Eigen::Index i = 0; i < outputs.rows(); ++i) {
        for (double& value : outputs.row(i)) {
            if (!(value > 0))
                check_positive(fmt::format("{}, probability of sample {},", array.title, i), value);
            value = std::log(value);
        }
    }
}

void write_weights(const Matrix& weights, Hdf5Writer& out) {
    const channels::Rows rows = weights;
    out.write("weights", {1, rows.rows(), rows.cols()}, rows.data());
}

constexpr const char *token_dimensions = "(samples, tokens, dim)", *weight_dimensions = "(1, dim, dim)";

Matrix read_weights(const Hdf5Reader& reader, Eigen::Index dim, const std::optional<Shape>& tokens) {
    const Hdf5Array weights = reader.array("weights", weight_dimensions);
    if (tokens) check_shape(weights, {1, dim, dim}, *tokens);
    if (weights.shape != Shape{1, dim, dim})
        throw_invalid(weights.title, weight_dimensions, to_string(weights.shape));
    auto rows = allocate<channels::Rows>(weights, dim, dim);
    read_all(weights, rows.data());
    return rows;
}

/// Single precision stays single in memory.
std::shared_ptr<const TokenSource> read_tokens(const Hdf5Array& tokens) {
    const auto [n, t, d] = tokens.shape;
    const auto read = [&]<class Columns>(Columns columns) -> std::shared_ptr<const TokenSource> {
        read_all(tokens, columns.data());
        return given_tokens(std::move(columns), t);
    };
    if (tokens.precision == Precision::float_precision)
        return read(allocate<Eigen::MatrixXf>(tokens, d, n * t));
    return read(allocate<Matrix>(tokens, d, n * t));
}

}  // namespace

Attributes describe(const priors::Prior& prior, const channels::Channel& channel) {
    Attributes result = {{"prior", prior.name()}, {"channel", channel.name()}};
    for (const auto& [name, value] : prior.parameters()) result[name] = value;
    for (const auto& [name, value] : channel.parameters()) result[name] = value;
    return result;
}

void write_dataset(const std::string& file, const Dataset& data, const channels::Channel& channel,
                   const Matrix* weights, const Attributes& attributes, Precision precision,
                   const std::function<void(double)>& progress) {
    const TokenSource& source = *data.tokens;
    const Eigen::Index samples = source.samples(), tokens = source.tokens();
    check_size("rows of the outputs", data.outputs.rows(), samples);
    check_size("columns of the outputs", data.outputs.cols(), tokens * tokens);
    const Eigen::Index dim = source.dim();
    const Eigen::Index token_size = precision == Precision::float_precision ? 4 : 8;
    Hdf5Writer out(file, samples * tokens * (dim * token_size + tokens * 8) + dim * dim * 8);
    Matrix scratch;
    out.write("tokens", {samples, tokens, dim}, precision, [&](Range range) {
        if (progress) progress(static_cast<double>(range.begin) / static_cast<double>(samples));
        return source.block(range, scratch).data();
    });
    out.write(outputs_name(channel), {samples, tokens, tokens}, Precision::double_precision,
              [&](Range range) { return data.outputs.row(static_cast<Eigen::Index>(range.begin)).data(); });
    if (weights != nullptr) write_weights(*weights, out);
    out.write(attributes);
    out.finish();
}

DatasetHeader read_dataset_header(const std::string& file) {
    const Hdf5Reader reader(file);
    const Hdf5Array tokens = reader.array("tokens", token_dimensions);
    return {tokens.shape[0], tokens.shape[1], tokens.shape[2], reader.attributes()};
}

DatasetContents read_dataset(const std::string& file, const channels::Channel& channel, Outputs needed) {
    const Hdf5Reader reader(file);
    const Hdf5Array tokens = reader.array("tokens", token_dimensions);
    const auto [n, t, d] = tokens.shape;
    if (t != channel.tokens()) {
        throw_invalid(tokens.title,
                      fmt::format("of {} tokens per sample, for this channel", channel.tokens()),
                      to_string(tokens.shape));
    }
    DatasetContents result;
    result.attributes = reader.attributes();
    if (reader.has("weights")) result.weights = read_weights(reader, d, tokens.shape);
    const std::string usual_name = outputs_name(channel);
    const bool take_logarithm =
        channel.logarithmic_outputs() && reader.has("outputs") && !reader.has(usual_name);
    const std::string name = take_logarithm ? "outputs" : usual_name;
    if (needed == Outputs::optional && !reader.has(name)) {
        result.data.tokens = read_tokens(tokens);
        return result;
    }
    const Hdf5Array outputs = reader.array(name, "(samples, tokens, tokens)");
    check_shape(outputs, {n, t, t}, tokens.shape);
    result.data.outputs = allocate<channels::Rows>(outputs, n, t * t);
    read_all(outputs, result.data.outputs.data());
    if (take_logarithm) take_logarithms(outputs, result.data.outputs);
    result.data.tokens = read_tokens(tokens);
    try {
        check_outputs(channel, result.data);
    } catch (const InvalidArgument& error) {
        throw InvalidArgument(fmt::format("{}: {}", outputs.title, error.what()));
    }
    return result;
}

Estimate read_estimate(const std::string& file) {
    const Hdf5Reader reader(file);
    const Hdf5Array weights = reader.array("weights", weight_dimensions);
    return {read_weights(reader, weights.shape[2], std::nullopt), reader.attributes()};
}

void write_predictions(const std::string& file, const channels::Rows& bayes_optimal,
                       const channels::Rows& plug_in, Eigen::Index tokens, const Attributes& attributes) {
    check_size("columns of the predictions", bayes_optimal.cols(), tokens * tokens);
    const Shape shape = {bayes_optimal.rows(), tokens, tokens};
    Hdf5Writer out(file, 2 * bayes_optimal.size() * 8);
    out.write("predictions", shape, bayes_optimal.data());
    out.write("plugin_predictions", shape, plug_in.data());
    out.write(attributes);
    out.finish();
}

void write_estimate(const std::string& file, const Matrix& estimate, const Attributes& attributes) {
    Hdf5Writer out(file, estimate.size() * 8);
    write_weights(estimate, out);
    out.write(attributes);
    out.finish();
}

}  // namespace bayesaim::data

// SPDX-License-Identifier: MIT
// Datasets: arrays of the user, synthetic data, files.
#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/user_numbers.hpp"
#include "bayesaim/data/attention.hpp"
#include "bayesaim/data/dataset_file.hpp"
#include "bayesaim/model/model.hpp"

#include "dataset.hpp"

namespace bayesaim::python {
namespace {

using channels::Channel;
using data::TokenSource;
using model::Model;

/// A reference to a Python array. Whichever thread drops it last takes the interpreter's lock for that.
std::shared_ptr<const void> keep_alive(const py::array& array) {
    return {new py::object(array), [](const py::object* object) {
                const py::gil_scoped_acquire lock;
                delete object;
            }};
}

/// A view of a C-contiguous (n, T, d) array of finite numbers as d x (n T), column after column.
template <class Scalar>
std::shared_ptr<const TokenSource> view_tokens(const py::array& array) {
    const auto* entries = static_cast<const Scalar*>(array.data());
    const auto n = array.shape(0), tokens = array.shape(1), dim = array.shape(2);
    for (py::ssize_t i = 0; i < array.size(); ++i) {
        if (is_usable(entries[i])) continue;
        check_usable(fmt::format("tokens of sample {}", i / (tokens * dim)), entries[i]);
    }
    return data::borrowed_tokens(entries, n, tokens, dim, keep_alive(array));
}

/// The caller has made `tokens` C-contiguous float64 or float32, with a copy only if necessary.
std::shared_ptr<PythonDataset> from_arrays(const py::array& tokens, const py::object& outputs,
                                           const std::optional<py::array>& weights,
                                           const std::optional<py::array>& key_tokens) {
    auto result = std::make_shared<PythonDataset>();
    const auto view = [](const py::array& array) {
        return array.itemsize() == sizeof(float) ? view_tokens<float>(array) : view_tokens<double>(array);
    };
    result->data.tokens = view(tokens);
    result->given_tokens = tokens;
    if (key_tokens) {
        result->data.key_tokens = view(*key_tokens);
        check_size("samples of the key tokens", key_tokens->shape(0), tokens.shape(0));
    }
    if (!outputs.is_none()) {
        result->data.outputs = output_rows(outputs, tokens.shape(1), result->data.keys().tokens());
        check_size("rows of the outputs", result->data.outputs.rows(), tokens.shape(0));
    }
    if (weights) {
        result->weights = matrices("weights", *weights);
        data::check_weights("weights", result->weights, tokens.shape(2), result->data.keys().dim());
    }
    return result;
}

/// From synthetic data, or from the contents of a file.
template <class Source>
std::shared_ptr<PythonDataset> to_dataset(Source source) {
    auto result = std::make_shared<PythonDataset>();
    result->data = std::move(source.data);
    result->weights = std::move(source.weights);
    return result;
}

std::shared_ptr<PythonDataset> generate(const Model& model, Eigen::Index dim, double alpha,
                                        std::uint64_t seed, bool regenerate, bool single, bool test,
                                        std::size_t threads) {
    const auto storage = regenerate ? data::TokenStorage::regenerate : data::TokenStorage::memory;
    const auto precision = single ? data::Precision::float_precision : data::Precision::double_precision;
    const data::SyntheticOptions options{dim, alpha, seed, storage, precision, test};
    return to_dataset(over_ranks(threads, [&](ThreadPool& pool) {
        data::Synthetic result = data::make_synthetic(model.priors(), model.channel(), options, pool);
        // Rows of other ranks are not set, and here somebody can see them.
        channels::Rows& outputs = result.data.outputs;
        const Range own = result.data.shares().own_samples(pool.ranks());
        for (const Range others :
             {Range{0, own.begin}, Range{own.end, static_cast<std::size_t>(outputs.rows())}})
            data::rows_of(outputs, others).setConstant(std::numeric_limits<double>::quiet_NaN());
        return result;
    }));
}

/// A view of numbers that `owner` keeps.
py::array read_only(const std::vector<py::ssize_t>& shape, const double* numbers, const py::object& owner) {
    py::array_t<double> view(shape, numbers, owner);
    view.attr("flags").attr("writeable") = false;
    return view;
}

/// Tokens as (n, T, d): a view of ours, or a new array if no double-precision tokens are in memory.
py::object array_of(const py::object& self, const TokenSource& source) {
    linalg::Matrix scratch;
    const double* first = without_lock([&] {
        return source.block({0, static_cast<std::size_t>(source.samples())}, scratch).data();
    });
    const std::vector<py::ssize_t> shape{source.samples(), source.tokens(), source.dim()};
    if (first == scratch.data() && scratch.size() > 0) {
        const py::array transposed = to_array(std::move(scratch)).attr("T").cast<py::array>();
        return reshaped(transposed, shape);
    }
    return read_only(shape, first, self);
}

/// The caller's array if there is one.
py::object tokens_array(const py::object& self) {
    const auto& dataset = self.cast<const PythonDataset&>();
    return dataset.given_tokens.is_none() ? array_of(self, dataset.tokens()) : dataset.given_tokens;
}

py::object key_tokens_array(const py::object& self) {
    const auto& dataset = self.cast<const PythonDataset&>();
    return dataset.data.key_tokens ? array_of(self, *dataset.data.key_tokens) : py::none();
}

py::object outputs_array(const py::object& self) {
    const auto& dataset = self.cast<const PythonDataset&>();
    if (dataset.data.outputs.size() == 0) return py::none();
    const py::ssize_t tokens = dataset.tokens().tokens(), keys = dataset.data.keys().tokens();
    return read_only({dataset.data.outputs.rows(), tokens, keys}, dataset.data.outputs.data(), self);
}

py::object weights_array(const py::object& self) {
    const auto& weights = self.cast<const PythonDataset&>().weights;
    if (weights.empty()) return py::none();
    if (weights.size() > 1) return stacked(weights);
    const linalg::Matrix& s = weights.front();
    if (s.rows() != s.cols() || s != s.transpose()) return to_array(s);
    return read_only({s.rows(), s.cols()}, s.data(), self);
}

std::shared_ptr<PythonDataset> read(const std::string& file, const Channel& channel) {
    return to_dataset(
        without_lock([&] { return data::read_dataset(file, channel, data::Outputs::optional); }));
}

void write(const PythonDataset& dataset, const std::string& file, const Model& model, bool single) {
    check_data(dataset, model.channel());
    Watch watch{py::none()};
    {
        const py::gil_scoped_release unlock;
        data::write_dataset(
            file, dataset.data, model.channel(), dataset.weights, data::attributes_of(model::describe(model)),
            single ? data::Precision::float_precision : data::Precision::double_precision, [&](double) {
                if (!watch.look()) throw std::runtime_error("interrupted");
            });
    }
    watch.finish();
}

py::array attention_indices(const PythonDataset& dataset, const py::array& weights, std::size_t threads) {
    const std::vector<linalg::Matrix> layers = symmetric_matrices("weights", weights);
    return to_array(without_lock(
        threads, [&](ThreadPool& pool) { return data::attention_indices(dataset.tokens(), layers, pool); }));
}

}  // namespace

void check_data(const PythonDataset& dataset, const Channel& channel) {
    data::check_tokens(channel.geometry(), dataset.tokens(), dataset.data.keys());
    if (dataset.data.outputs.size() == 0) throw_invalid("dataset", "one with outputs", "none");
    if (!dataset.weights.empty()) {
        check_size("layers of the channel", channel.layers(), static_cast<long long>(dataset.weights.size()));
        if (channel.geometry().symmetric()) check_symmetric("weights", dataset.weights);
    }
    const Communicator& together = ranks();
    const py::gil_scoped_release unlock;
    data::check_outputs(channel, dataset.data, together);
}

void bind_data(py::module_& module) {
    py::class_<PythonDataset, std::shared_ptr<PythonDataset>>(module, "Dataset")
        .def_property_readonly("samples", [](const PythonDataset& d) { return d.tokens().samples(); })
        .def_property_readonly("token_count", [](const PythonDataset& d) { return d.tokens().tokens(); })
        .def_property_readonly("dim", [](const PythonDataset& d) { return d.tokens().dim(); })
        .def_property_readonly("alpha", [](const PythonDataset& d) { return d.data.alpha(); })
        .def_property_readonly("tokens", &tokens_array)
        .def_property_readonly("key_tokens", &key_tokens_array)
        .def_property_readonly("outputs", &outputs_array)
        .def_property_readonly("weights", &weights_array)
        .def("check", &check_data, "channel"_a)
        .def("attention_indices", &attention_indices, "weights"_a, "threads"_a);
    module.def("dataset_from_arrays", &from_arrays, "tokens"_a, "outputs"_a, "weights"_a, "key_tokens"_a);
    module.def("generate", &generate, "model"_a, "dim"_a, "alpha"_a, "seed"_a, "regenerate"_a, "single"_a,
               "test"_a, "threads"_a);
    module.def("read_dataset", &read, "file"_a, "channel"_a);
    module.def("write_dataset", &write, "dataset"_a, "file"_a, "model"_a, "single"_a);
}

}  // namespace bayesaim::python

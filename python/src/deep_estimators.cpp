// SPDX-License-Identifier: MIT
// Several layers: data, AMP, predictions, joint denoisers, and networks run on tokens.
#include "bayesaim/data/deep_attention.hpp"
#include "bayesaim/denoisers/joint.hpp"
#include "bayesaim/estimators/deep_amp.hpp"

#include "dataset.hpp"
#include "layers.hpp"

namespace bayesaim::python {
namespace {

using channels::Channel;
using linalg::Matrix;
using linalg::Overlap;

std::shared_ptr<PythonDataset> generate(const Priors& priors, const Channel& channel,
                                        const data::SyntheticOptions& options, std::size_t threads) {
    laws_of(priors, channel);
    auto result = std::make_shared<PythonDataset>();
    const py::gil_scoped_release unlock;
    ThreadPool pool(threads);
    data::DeepSynthetic synthetic = data::make_deep_synthetic(pointers_to(priors), channel, options, pool);
    result->data = std::move(synthetic.data);
    result->weights = std::move(synthetic.weights);
    return result;
}

/// One order parameter of each iteration, n x L x L.
template <class Function>
py::array history(const std::vector<estimators::DeepAmpIteration>& record, Function value) {
    std::vector<Overlap> values;
    for (const auto& row : record) values.push_back(value(row));
    return stacked(values);
}

py::dict run_amp(const PythonDataset& dataset, const Priors& priors, const Channel& channel,
                 int max_iterations, double tolerance, double damping, std::size_t threads,
                 const py::object& progress) {
    check_data(dataset, channel);
    const LawList laws = laws_of(priors, channel);
    const bool known = !dataset.weights.empty();
    estimators::DeepAmpOptions options;
    options.max_iterations = max_iterations;
    options.tolerance = tolerance;
    options.damping = damping;
    if (known) {
        options.measure = [&](const std::vector<Matrix>& estimates) {
            return data::estimation_errors(estimates, dataset.weights);
        };
    }
    Watch watch(progress);
    options.progress = [&](const estimators::DeepAmpIteration& now) {
        const bool measured = now.true_error.has_value();
        return watch.report(now.iteration, max_iterations,
                            fmt::format("{} {:.6f}", measured ? "error" : "predicted error",
                                        measured ? now.true_error->trace() : now.predicted_error.trace()));
    };
    estimators::DeepAmpResult result;
    {
        const py::gil_scoped_release unlock;
        ThreadPool pool(threads);
        result = estimators::run_deep_amp(dataset.data, laws, channel, options, pool);
    }
    watch.finish();
    using Row = estimators::DeepAmpIteration;
    const auto& record = result.record;
    py::dict out;
    out["estimates"] = stacked(result.estimates);
    out["predicted_error"] = to_array(result.predicted_error);
    out["error"] =
        known ? py::object(to_array(data::estimation_errors(result.estimates, dataset.weights))) : py::none();
    out["status"] = std::string(to_string(result.status));
    out["true_errors"] =
        known ? py::object(history(record, [](const Row& r) { return *r.true_error; })) : py::none();
    out["predicted_errors"] = history(record, [](const Row& r) { return r.predicted_error; });
    out["self_overlaps"] = history(record, [](const Row& r) { return r.self_overlap; });
    out["noise_covariances"] = history(record, [](const Row& r) { return r.noise_covariance; });
    out["changes"] = column(record, [](const Row& r) { return r.change; });
    out["seconds"] = column(record, [](const Row& r) { return r.seconds; });
    return out;
}

py::tuple predict(const PythonDataset& dataset, const py::object& estimates, const py::object& error,
                  const Channel& channel, std::size_t threads) {
    const std::vector<Matrix> matrices = symmetric_matrices("estimates", estimates);
    const Overlap c = covariance("error", error, channel.layers());
    estimators::Prediction result;
    {
        const py::gil_scoped_release unlock;
        ThreadPool pool(threads);
        result = estimators::predict(dataset.tokens(), matrices, c, channel, pool);
    }
    return prediction_arrays(std::move(result), channel.tokens());
}

py::tuple denoise(const Priors& priors, const py::object& noisy, const py::object& noise_covariance,
                  const std::string& method, bool linear_outside_support, std::uint64_t seed,
                  std::size_t threads) {
    using denoisers::JointMethod;
    const LawList laws = laws_of(priors);
    const std::vector<Matrix> matrices = symmetric_matrices("noisy matrices", noisy);
    const Overlap delta = covariance("noise covariance", noise_covariance, static_cast<int>(laws.size()));
    denoisers::JointOptions options;
    options.method = method == "innovation"    ? JointMethod::innovation
                     : method == "combination" ? JointMethod::combination
                                               : JointMethod::automatic;
    options.linear_outside_support = linear_outside_support;
    options.seed = seed;
    denoisers::JointlyDenoised result;
    {
        const py::gil_scoped_release unlock;
        ThreadPool pool(threads);
        result = denoisers::denoise_jointly(laws, matrices, delta, pool, options);
    }
    return py::make_tuple(stacked(result.estimates), to_array(result.posterior_covariance),
                          result.method == JointMethod::innovation ? "innovation" : "combination");
}

py::dict polynomial_estimator(const Priors& priors, const py::object& noise_covariance, int degree,
                              const py::object& noisy) {
    const LawList laws = laws_of(priors);
    const Overlap delta = covariance("noise covariance", noise_covariance, static_cast<int>(laws.size()));
    const std::vector<Matrix> matrices =
        noisy.is_none() ? std::vector<Matrix>{} : symmetric_matrices("noisy matrices", noisy);
    denoisers::Polynomial polynomial;
    std::vector<Matrix> estimates;
    {
        const py::gil_scoped_release unlock;
        polynomial = denoisers::polynomial_estimator(laws, delta, degree);
        if (!matrices.empty()) estimates = denoisers::evaluate(polynomial, matrices);
    }
    py::dict out;
    out["words"] = py::cast(polynomial.words);
    out["coefficients"] = to_array(Matrix(polynomial.coefficients));
    out["means"] = to_array(polynomial.means);
    out["scales"] = to_array(polynomial.scales);
    out["errors"] = stacked(polynomial.errors);
    out["estimates"] = matrices.empty() ? py::object(py::none()) : stacked(estimates);
    return out;
}

/// Calls f(T x d tokens, sample) for each of the (n, T, d) samples, without the lock.
template <class Function>
void for_each_sample(const Array& tokens, Function f) {
    const py::gil_scoped_release unlock;
    const Eigen::Index n = tokens.shape(0), t = tokens.shape(1), d = tokens.shape(2);
    for (Eigen::Index i = 0; i < n; ++i)
        f(Matrix(Eigen::Map<const channels::Rows>(tokens.data() + i * t * d, t, d)), i);
}

/// (n, L, T, columns) from one matrix of each layer of each sample.
struct LayerArray {
    py::array_t<double> array;
    double* next;

    LayerArray(py::ssize_t n, std::size_t layers, py::ssize_t rows, py::ssize_t columns)
        : array({n, static_cast<py::ssize_t>(layers), rows, columns}), next(array.mutable_data()) {}
    void append(const Matrix& matrix) {
        Eigen::Map<channels::Rows>(next, matrix.rows(), matrix.cols()) = matrix;
        next += matrix.size();
    }
};

py::dict run_encoder(const py::object& tokens, const py::object& weights, double beta, double residual) {
    const Array x = numbers("tokens", tokens, 3);
    const std::vector<Matrix> matrices = symmetric_matrices("weights", weights);
    const py::ssize_t n = x.shape(0), t = x.shape(1), d = x.shape(2);
    LayerArray logits(n, matrices.size(), t, t), attention = LayerArray(n, matrices.size(), t, t),
                                                 read_out = LayerArray(n, matrices.size(), t, d),
                                                 states = LayerArray(n, matrices.size(), t, d);
    for_each_sample(x, [&](const Matrix& sample, Eigen::Index) {
        for (const data::EncoderLayer& layer : data::run_encoder(sample, matrices, {beta, residual})) {
            logits.append(layer.logits);
            attention.append(layer.attention);
            read_out.append(layer.read_out);
            states.append(layer.tokens);
        }
    });
    py::dict out;
    out["logits"] = logits.array;
    out["attention"] = attention.array;
    out["read_out"] = read_out.array;
    out["tokens"] = states.array;
    return out;
}

py::array multi_head_attention(const py::object& tokens, const py::object& heads, double beta,
                               bool mean_attention) {
    const Array x = numbers("tokens", tokens, 3);
    const std::vector<Matrix> matrices = symmetric_matrices("heads", heads);
    const auto averaging = mean_attention ? data::HeadAveraging::attention : data::HeadAveraging::logits;
    std::vector<Matrix> result(static_cast<std::size_t>(x.shape(0)));
    for_each_sample(x, [&](const Matrix& sample, Eigen::Index i) {
        result[static_cast<std::size_t>(i)] = data::multi_head_attention(sample, matrices, beta, averaging);
    });
    return stacked(result);
}

}  // namespace

void bind_deep_estimators(py::module_& module) {
    module.def(
        "deep_generate",
        [](const Priors& priors, const Channel& channel, Eigen::Index dim, double alpha, std::uint64_t seed,
           bool regenerate, bool single, bool test, std::size_t threads) {
            return generate(priors, channel, synthetic_options(dim, alpha, seed, regenerate, single, test),
                            threads);
        },
        py::arg("priors"), py::arg("channel"), py::arg("dim"), py::arg("alpha"), py::arg("seed"),
        py::arg("regenerate"), py::arg("single"), py::arg("test"), py::arg("threads"));
    module.def("run_deep_amp", &run_amp, py::arg("dataset"), py::arg("priors"), py::arg("channel"),
               py::arg("max_iterations"), py::arg("tolerance"), py::arg("damping"), py::arg("threads"),
               py::arg("progress"));
    module.def("predict_deep", &predict, py::arg("dataset"), py::arg("estimates"), py::arg("error"),
               py::arg("channel"), py::arg("threads"));
    module.def("denoise_jointly", &denoise, py::arg("priors"), py::arg("noisy"), py::arg("noise_covariance"),
               py::arg("method"), py::arg("linear_outside_support"), py::arg("seed"), py::arg("threads"));
    module.def("polynomial_estimator", &polynomial_estimator, py::arg("priors"), py::arg("noise_covariance"),
               py::arg("degree"), py::arg("noisy"));
    module.def("run_encoder", &run_encoder, py::arg("tokens"), py::arg("weights"), py::arg("beta"),
               py::arg("residual"));
    module.def("multi_head_attention", &multi_head_attention, py::arg("tokens"), py::arg("heads"),
               py::arg("beta"), py::arg("mean_attention"));
}

}  // namespace bayesaim::python

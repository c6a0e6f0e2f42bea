// SPDX-License-Identifier: MIT
// Several layers at once: joint denoisers for large d, and networks run on tokens.
#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/data/encoder.hpp"
#include "bayesaim/denoisers/joint.hpp"
#include "bayesaim/priors/prior.hpp"
#include "bayesaim/spectral/free_moments.hpp"

#include "binding.hpp"

namespace bayesaim::python {
namespace {

using linalg::Matrix;
using linalg::Overlap;

using Priors = std::vector<std::shared_ptr<priors::Prior>>;  // one for each layer
using LawList = std::vector<const spectral::SpectralLaw*>;

/// Gets the laws of priors written in Python, while the lock is held.
LawList laws_of(const Priors& priors) {
    LawList laws;
    for (const auto& prior : priors) laws.push_back(&prior->law());
    return laws;
}

py::array cavity_covariance(const Priors& priors, const py::object& precision) {
    const LawList laws = laws_of(priors);
    const Overlap qhat = covariance("precision", precision, static_cast<int>(laws.size()));
    Overlap result;
    {
        const py::gil_scoped_release unlock;
        result = denoisers::cavity_covariance(laws, qhat);
    }
    return to_array(result);
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

/// An (n, L, T, columns) array from one matrix per sample and layer.
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

void bind_layers(py::module_& module) {
    using spectral::FreeMoments;
    module.def("cavity_covariance", &cavity_covariance, py::arg("priors"), py::arg("precision"));
    module.def(
        "free_cumulants",
        [](const spectral::SpectralLaw& law, int count) {
            return to_array(spectral::free_cumulants(law, count));
        },
        py::arg("law"), py::arg("count"));
    py::class_<FreeMoments>(module, "FreeMoments")
        .def(py::init([](const Priors& priors, const py::object& noise_covariance, int longest) {
                 const LawList laws = laws_of(priors);
                 check_at_least("longest", longest, 1);
                 std::vector<std::vector<double>> cumulants;
                 for (const spectral::SpectralLaw* law : laws)
                     cumulants.push_back(spectral::free_cumulants(*law, longest));
                 const Overlap noise =
                     covariance("noise covariance", noise_covariance, static_cast<int>(laws.size()));
                 return std::make_unique<FreeMoments>(cumulants, noise, longest);
             }),
             py::arg("priors"), py::arg("noise_covariance"), py::arg("longest"))
        .def("moment", &FreeMoments::moment, py::arg("word"))
        .def("signal_moment", &FreeMoments::signal_moment, py::arg("layer"), py::arg("word"))
        .def("divergence", &FreeMoments::divergence, py::arg("layer"), py::arg("word"));
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

// SPDX-License-Identifier: MIT
// Several layers at once: joint denoisers for large d, and networks run on tokens.
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
    return to_array(without_lock([&] { return denoisers::cavity_covariance(laws, qhat); }));
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
    const auto result = without_lock(threads, [&](ThreadPool& pool) {
        return denoisers::denoise_jointly(laws, matrices, delta, pool, options);
    });
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
    return py::dict("words"_a = polynomial.words,
                    "coefficients"_a = to_array(Matrix(polynomial.coefficients)),
                    "means"_a = to_array(polynomial.means), "scales"_a = to_array(polynomial.scales),
                    "errors"_a = stacked(polynomial.errors),
                    "estimates"_a = matrices.empty() ? py::object(py::none()) : stacked(estimates));
}

/// Calls f(T x d tokens) for each of the (n, T, d) samples, without the lock.
template <class Function>
void for_each_sample(const Array& tokens, Function f) {
    const py::gil_scoped_release unlock;
    const Eigen::Index n = tokens.shape(0), t = tokens.shape(1), d = tokens.shape(2);
    for (Eigen::Index i = 0; i < n; ++i)
        f(Matrix(Eigen::Map<const channels::Rows>(tokens.data() + i * t * d, t, d)));
}

py::dict run_encoder(const py::object& tokens, const py::object& weights, double beta, double residual) {
    const Array x = numbers("tokens", tokens, 3);
    const std::vector<Matrix> matrices = symmetric_matrices("weights", weights);
    const py::ssize_t n = x.shape(0), t = x.shape(1), d = x.shape(2);
    std::vector<Matrix> logits, attention, read_out, states;  // layer by layer of each sample
    for_each_sample(x, [&](const Matrix& sample) {
        for (data::EncoderLayer& layer : data::run_encoder(sample, matrices, {beta, residual})) {
            logits.push_back(std::move(layer.logits));
            attention.push_back(std::move(layer.attention));
            read_out.push_back(std::move(layer.read_out));
            states.push_back(std::move(layer.tokens));
        }
    });
    const auto by_sample = [&](const std::vector<Matrix>& values, py::ssize_t columns) {
        return reshaped(stacked(values), {n, static_cast<py::ssize_t>(matrices.size()), t, columns});
    };
    return py::dict("logits"_a = by_sample(logits, t), "attention"_a = by_sample(attention, t),
                    "read_out"_a = by_sample(read_out, d), "tokens"_a = by_sample(states, d));
}

py::array multi_head_attention(const py::object& tokens, const py::object& heads, double beta,
                               bool mean_attention) {
    const Array x = numbers("tokens", tokens, 3);
    const std::vector<Matrix> matrices = symmetric_matrices("heads", heads);
    const auto averaging = mean_attention ? data::HeadAveraging::attention : data::HeadAveraging::logits;
    std::vector<Matrix> result;
    for_each_sample(x, [&](const Matrix& sample) {
        result.push_back(data::multi_head_attention(sample, matrices, beta, averaging));
    });
    return stacked(result);
}

}  // namespace

void bind_layers(py::module_& module) {
    using spectral::FreeMoments;
    module.def("cavity_covariance", &cavity_covariance, "priors"_a, "precision"_a);
    module.def(
        "free_cumulants",
        [](const spectral::SpectralLaw& law, int count) {
            return to_array(spectral::free_cumulants(law, count));
        },
        "law"_a, "count"_a);
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
             "priors"_a, "noise_covariance"_a, "longest"_a)
        .def("moment", &FreeMoments::moment, "word"_a)
        .def("signal_moment", &FreeMoments::signal_moment, "layer"_a, "word"_a)
        .def("divergence", &FreeMoments::divergence, "layer"_a, "word"_a);
    module.def("denoise_jointly", &denoise, "priors"_a, "noisy"_a, "noise_covariance"_a, "method"_a,
               "linear_outside_support"_a, "seed"_a, "threads"_a);
    module.def("polynomial_estimator", &polynomial_estimator, "priors"_a, "noise_covariance"_a, "degree"_a,
               "noisy"_a);
    module.def("run_encoder", &run_encoder, "tokens"_a, "weights"_a, "beta"_a, "residual"_a);
    module.def("multi_head_attention", &multi_head_attention, "tokens"_a, "heads"_a, "beta"_a,
               "mean_attention"_a);
}

}  // namespace bayesaim::python

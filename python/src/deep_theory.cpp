// SPDX-License-Identifier: MIT
// Several layers: channels, state evolution, denoisers for large d.
#include "bayesaim/channels/deep_attention.hpp"
#include "bayesaim/channels/deep_sequence.hpp"
#include "bayesaim/denoisers/joint.hpp"
#include "bayesaim/spectral/free_moments.hpp"
#include "bayesaim/theory/deep_state_evolution.hpp"

#include "layers.hpp"
#include "theory_settings.hpp"

namespace bayesaim::python {
namespace {

using channels::Channel;
using linalg::Overlap;

/// As `bayesaim theory` with several layers; the points one after the other, threads inside them.
py::dict curve(const Priors& priors, const Channel& channel, const Array& alpha, bool informed,
               bool generalization, const TheorySettings& settings, const py::object& progress) {
    const LawList laws = laws_of(priors, channel);
    const auto count = static_cast<std::size_t>(alpha.size());
    const std::vector<double> alphas(alpha.data(), alpha.data() + count);
    const Overlap missing = Overlap::Constant(channel.layers(), channel.layers(), not_known);
    std::vector<Overlap> errors(count, missing), overlaps(count, missing), conjugates(count, missing);
    std::vector<double> total(count, not_known), standard(count, not_known), bayes_optimal(count, not_known),
        plug_in(count, not_known);
    std::vector<std::string> status(count, std::string(to_string(Termination::stopped)));
    std::vector<int> iterations(count);
    Watch watch(progress);
    {
        const py::gil_scoped_release unlock;
        ThreadPool pool(settings.threads);
        const auto options = settings.options(&pool);
        for (std::size_t i = 0; i < count && watch.look(); ++i) {
            const theory::FixedPoint point =
                solve_deep_state_evolution(laws, channel, alphas[i], start_of(informed), options);
            errors[i] = point.parameters.error;
            overlaps[i] = point.parameters.overlap;
            conjugates[i] = point.conjugate;
            total[i] = point.error();
            standard[i] = point.relative_error * point.error();
            status[i] = to_string(point.status);
            iterations[i] = point.iterations;
            if (generalization) {
                const auto error = generalization_error(point, channel, options.integration);
                bayes_optimal[i] = error.bayes_optimal;
                plug_in[i] = error.plug_in;
            }
            watch.report(static_cast<double>(i + 1), static_cast<double>(count), "");
        }
    }
    watch.finish();
    py::dict result;
    result["alpha"] = to_array(alphas);
    result["estimation_error"] = to_array(total);
    result["standard_error"] = to_array(standard);
    result["error"] = stacked(errors);
    result["overlap"] = stacked(overlaps);
    result["conjugate_overlap"] = stacked(conjugates);
    result["generalization_error"] = to_array(bayes_optimal);
    result["plugin_generalization_error"] = to_array(plug_in);
    result["status"] = py::cast(status);
    result["iterations"] = py::cast(iterations);
    return result;
}

py::array trajectory(const Priors& priors, const Channel& channel, double alpha, int iterations,
                     bool informed, const TheorySettings& settings) {
    const LawList laws = laws_of(priors, channel);
    check_at_least("iterations", iterations, 0);
    std::vector<Overlap> errors;
    {
        const py::gil_scoped_release unlock;
        ThreadPool pool(settings.threads);
        for (const auto& point : deep_state_evolution_trajectory(laws, channel, alpha, iterations,
                                                                 start_of(informed), settings.options(&pool)))
            errors.push_back(point.error);
    }
    return stacked(errors);
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

void bind_channels_of_layers(py::module_& module) {
    using channels::DeepAttention;
    using channels::DeepSequence;
    py::class_<DeepAttention, Channel, std::shared_ptr<DeepAttention>>(module, "DeepAttention", R"(
Attention of the last of L layers with residual connections; outputs are its logarithms.

    y = softmax(beta H_L),  H_l = B_(l-1) h_l B_(l-1)^T,  B_l = (residual + softmax(beta H_l)) B_(l-1),  B_0 = 1

The score is an integral over the other layers: a quadrature for two layers of two tokens, else importance sampling
with `points` points. One layer is Softmax.

>>> DeepAttention(layers=2, tokens=2))")
        .def(py::init([](const py::object& layers, const py::object& tokens, const py::object& beta,
                         const py::object& residual, const py::object& points) {
                 return std::make_shared<DeepAttention>(
                     channels::DeepAttentionOptions{.layers = whole_number("layers", layers),
                                                    .tokens = whole_number("tokens", tokens),
                                                    .beta = number("beta", beta),
                                                    .residual = number("residual", residual),
                                                    .points = whole_number("points", points)});
             }),
             py::arg("layers") = 2, py::arg("tokens") = 2, py::arg("beta") = 1, py::arg("residual") = 1,
             py::arg("points") = 1024);
    py::class_<DeepSequence, Channel, std::shared_ptr<DeepSequence>>(module, "DeepSequence", R"(
Read-out of a seq2seq model of L layers and two tokens, X_L = Y X_0: y = softmax(beta H_L) B_(L-1) is observed.

The score is a quadrature for two layers, where it is accurate; else importance sampling with `points` points.

>>> DeepSequence(layers=2))")
        .def(py::init([](const py::object& layers, const py::object& beta, const py::object& residual,
                         const py::object& points) {
                 return std::make_shared<DeepSequence>(
                     channels::DeepSequenceOptions{.layers = whole_number("layers", layers),
                                                   .beta = number("beta", beta),
                                                   .residual = number("residual", residual),
                                                   .points = whole_number("points", points)});
             }),
             py::arg("layers") = 2, py::arg("beta") = 1, py::arg("residual") = 1, py::arg("points") = 1024);
}

}  // namespace

void bind_deep_theory(py::module_& module) {
    using spectral::FreeMoments;
    using spectral::Word;
    bind_channels_of_layers(module);
    module.def("deep_theory_curve", &curve, py::arg("priors"), py::arg("channel"), py::arg("alpha"),
               py::arg("informed"), py::arg("generalization"), py::arg("settings"), py::arg("progress"));
    module.def("deep_trajectory", &trajectory, py::arg("priors"), py::arg("channel"), py::arg("alpha"),
               py::arg("iterations"), py::arg("informed"), py::arg("settings"));
    module.def(
        "deep_strong_recovery",
        [](const Priors& priors, const Channel& channel) {
            return theory::deep_strong_recovery(laws_of(priors, channel), channel);
        },
        py::arg("priors"), py::arg("channel"));
    module.def(
        "recovery_growth_rate",
        [](const Priors& priors, const Channel& channel, double alpha, const TheorySettings& settings) {
            const LawList laws = laws_of(priors, channel);
            const py::gil_scoped_release unlock;
            ThreadPool pool(settings.threads);
            return theory::recovery_growth_rate(laws, channel, alpha, settings.options(&pool).integration);
        },
        py::arg("priors"), py::arg("channel"), py::arg("alpha"), py::arg("settings"));
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
}

}  // namespace bayesaim::python

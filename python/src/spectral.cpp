// SPDX-License-Identifier: MIT
// Laws of eigenvalues, also of the user's own, and the law under noise.
#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/denoisers/rotation_invariant.hpp"
#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/spectral/atomic_law.hpp"
#include "bayesaim/spectral/free_convolution.hpp"
#include "bayesaim/spectral/marchenko_pastur_law.hpp"

#include "binding.hpp"

namespace bayesaim::python {
namespace {

using spectral::Complex;
using spectral::FreeConvolution;
using spectral::SpectralLaw;
using spectral::Transform;

/// A law written in Python. Its transforms are called point by point; AtomicLaw is faster.
class PythonLaw final : public SpectralLaw {
  public:
    double mean() const override {
        const py::gil_scoped_acquire lock;
        return number("mean of the law", require("mean")());
    }
    double variance() const override {
        const py::gil_scoped_acquire lock;
        return number("variance of the law", require("variance")());
    }
    std::vector<spectral::Interval> centred_support() const override {
        const py::gil_scoped_acquire lock;
        std::vector<spectral::Interval> result;
        for (const auto& [low, high] : returned<std::vector<std::pair<double, double>>>(
                 "centred_support", "[(low, high), ..]", require("centred_support")())) {
            result.push_back({low, high});
        }
        return result;
    }
    double atomic_concentration() const override {
        const py::gil_scoped_acquire lock;
        const py::function own = find("atomic_concentration");
        return own ? number("atomic concentration of the law", own()) : 0;
    }
    Transform stieltjes(Complex z) const override {
        const py::gil_scoped_acquire lock;
        return transform("stieltjes", require("stieltjes")(z));
    }
    Transform moment_transform(Complex z) const override {
        {
            const py::gil_scoped_acquire lock;
            if (const py::function own = find("moment_transform"))
                return transform("moment_transform", own(z));
        }
        const auto [g, slope] = stieltjes(z);
        return {z * g - 1.0, g + z * slope};
    }
    double log_potential(Complex z) const override {
        const py::gil_scoped_acquire lock;
        return number("log potential of the law", require("log_potential")(z));
    }

  private:
    static Transform transform(const char* method, const py::object& given) {
        const auto [value, derivative] =
            returned<std::pair<Complex, Complex>>(method, "(value, derivative)", given);
        return {value, derivative};
    }
    py::function find(const char* method) const {
        return py::get_override(static_cast<const SpectralLaw*>(this), method);
    }
    py::function require(const char* method) const {
        py::function own = find(method);
        if (!own) throw py::type_error(fmt::format("a law needs a method {}", method));
        return own;
    }
};

/// f(x) for each entry on several threads; Ctrl-C stops it.
template <class Function>
py::array_t<double> parallel_map(const Array& x, std::size_t threads, Function f) {
    py::array_t<double> result(std::vector<py::ssize_t>(x.shape(), x.shape() + x.ndim()));
    const double* in = x.data();
    double* out = result.mutable_data();
    Watch watch{py::none()};
    {
        const py::gil_scoped_release unlock;
        ThreadPool pool(threads);
        parallel_for(pool, static_cast<std::size_t>(x.size()), 64, [&](Range range) {
            if (!watch.look()) return;
            for (std::size_t i = range.begin; i < range.end; ++i) out[i] = f(in[i]);
        });
    }
    watch.finish();
    return result;
}

template <double spectral::SpectrumPoint::*member>
py::array_t<double> points(const FreeConvolution& spectrum, const Array& eigenvalues) {
    return map(eigenvalues, [&](double x) { return spectrum.at(x).*member; });
}

std::vector<std::pair<double, double>> as_pairs(const std::vector<spectral::Interval>& intervals) {
    std::vector<std::pair<double, double>> result;
    for (const auto& [low, high] : intervals) result.emplace_back(low, high);
    return result;
}

std::pair<Complex, Complex> as_pair(const Transform& transform) {
    return {transform.value, transform.derivative};
}

std::span<const double> span_of(const Array& array) {
    return {array.data(), static_cast<std::size_t>(array.size())};
}

void bind_laws(py::module_& module) {
    py::class_<SpectralLaw, PythonLaw, std::shared_ptr<SpectralLaw>>(module, "SpectralLaw", R"(
Law mu of the eigenvalues of S for large d.

Subclass it for a law of your own: mean, variance, centred_support -> [(low, high)], stieltjes(z) -> (G, G'),
log_potential(z), and where they matter atomic_concentration and moment_transform. The transforms are taken of
the centred law, G(z) = int dmu(x) / (z - (x - mean)). AtomicLaw is simpler and faster.

>>> bayesaim.Wishart(0.5).law().stieltjes(3j))")
        .def(py::init<>())
        .def("mean", &SpectralLaw::mean, "kappa1 = tr S")
        .def("variance", &SpectralLaw::variance, "kappa2 - kappa1^2")
        .def("second_moment", &SpectralLaw::second_moment, "kappa2 = tr S^2")
        .def("atomic_concentration", &SpectralLaw::atomic_concentration, "Sum over atoms of weight^2.")
        .def("centred_support", [](const SpectralLaw& law) { return as_pairs(law.centred_support()); })
        .def(
            "stieltjes", [](const SpectralLaw& law, Complex z) { return as_pair(law.stieltjes(z)); },
            py::arg("z"), "G(z) = int dmu(x) / (z - x) of the centred law, and G'(z).")
        .def(
            "moment_transform",
            [](const SpectralLaw& law, Complex z) { return as_pair(law.moment_transform(z)); }, py::arg("z"),
            "z G(z) - 1 of the centred law, and its derivative.")
        .def("log_potential", &SpectralLaw::log_potential, py::arg("z"),
             "Re int log(z - x) dmu(x) of the centred law.")
        .def("__repr__", [](const py::object& self) {
            const auto& law = self.cast<const SpectralLaw&>();
            return fmt::format("<{} mean={:g} variance={:g}>",
                               py::str(py::type::of(self).attr("__name__")).cast<std::string>(), law.mean(),
                               law.variance());
        });
    py::class_<spectral::AtomicLaw, SpectralLaw, std::shared_ptr<spectral::AtomicLaw>>(
        module, "AtomicLaw",
        "Finitely many atoms: mu = sum_i weight_i delta(x - position_i).\n\n"
        ">>> AtomicLaw([-1, 0, 1], [0.25, 0.5, 0.25])")
        .def(py::init([](const py::object& positions, const py::object& weights) {
                 const Array x = numbers("positions", positions, 1);
                 if (weights.is_none()) return std::make_shared<spectral::AtomicLaw>(span_of(x));
                 return std::make_shared<spectral::AtomicLaw>(span_of(x),
                                                              span_of(numbers("weights", weights, 1)));
             }),
             py::arg("positions"), py::arg("weights") = py::none())
        .def("quantile", &spectral::AtomicLaw::quantile, py::arg("level"));
    py::class_<spectral::MarchenkoPasturLaw, SpectralLaw, std::shared_ptr<spectral::MarchenkoPasturLaw>>(
        module, "MarchenkoPasturLaw", "Law of W W^T / sqrt(r d), r = width d.\n\n>>> MarchenkoPasturLaw(0.5)")
        .def(py::init([](const py::object& width) {
                 return std::make_shared<spectral::MarchenkoPasturLaw>(number("width", width));
             }),
             py::arg("width"))
        .def_static("semicircle", &spectral::MarchenkoPasturLaw::semicircle,
                    "The limit of large width, centred: spectrum on [-2, 2].");
}

}  // namespace

void bind_spectral(py::module_& module) {
    bind_laws(module);
    py::class_<FreeConvolution>(module, "FreeConvolution")
        .def(py::init([](const SpectralLaw& law, double noise_variance) {
                 const py::gil_scoped_release unlock;
                 return std::make_unique<FreeConvolution>(law, noise_variance);
             }),
             py::arg("law"), py::arg("noise_variance"), py::keep_alive<1, 2>())
        .def("density", &points<&spectral::SpectrumPoint::density>, py::arg("eigenvalues"))
        .def("hilbert", &points<&spectral::SpectrumPoint::hilbert>, py::arg("eigenvalues"))
        .def("denoised", &points<&spectral::SpectrumPoint::denoised>, py::arg("eigenvalues"))
        .def("edges", [](const FreeConvolution& spectrum) { return as_pairs(spectrum.edges()); })
        .def("mmse", &FreeConvolution::mmse)
        .def("mmse_derivative", &FreeConvolution::mmse_derivative)
        .def("log_energy", &FreeConvolution::log_energy)
        .def("mass", &FreeConvolution::mass)
        .def("mean", &FreeConvolution::mean)
        .def("second_moment", &FreeConvolution::second_moment);
    module.def(
        "mmse",
        [](const SpectralLaw& law, const Array& noise_variance, std::size_t threads) {
            return parallel_map(noise_variance, threads, [&](double d) { return spectral::mmse(law, d); });
        },
        py::arg("law"), py::arg("noise_variance"), py::arg("threads"));
    module.def(
        "prior_free_entropy",
        [](const SpectralLaw& law, const Array& inverse_noise_variance, std::size_t threads) {
            return parallel_map(inverse_noise_variance, threads,
                                [&](double qhat) { return spectral::prior_free_entropy(law, qhat); });
        },
        py::arg("law"), py::arg("inverse_noise_variance"), py::arg("threads"));
    module.def(
        "denoise",
        [](const SpectralLaw& law, const py::object& noisy, double noise_variance,
           bool linear_outside_support, std::size_t threads) {
            const linalg::Matrix matrix = symmetric_matrix("noisy matrix", noisy);
            denoisers::Denoised result;
            {
                const py::gil_scoped_release unlock;
                ThreadPool pool(threads);
                result = denoisers::denoise(law, matrix, noise_variance, pool, {linear_outside_support});
            }
            return py::make_tuple(to_array(std::move(result.estimate)), result.posterior_variance,
                                  to_array(result.eigenvalues), to_array(result.shrunk));
        },
        py::arg("law"), py::arg("noisy"), py::arg("noise_variance"), py::arg("linear_outside_support"),
        py::arg("threads"));
    module.def(
        "goe",
        [](int dim, std::uint64_t seed, std::size_t threads) {
            check_at_least("dim", dim, 1);
            linalg::Matrix result;
            {
                const py::gil_scoped_release unlock;
                ThreadPool pool(threads);
                result = linalg::gaussian_orthogonal_ensemble(dim, RandomStream(seed, Purpose::noise), pool);
            }
            return to_array(std::move(result));
        },
        py::arg("dim"), py::arg("seed"), py::arg("threads"));
}

}  // namespace bayesaim::python

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
class PythonLaw final : public PythonSubclass<SpectralLaw> {
  public:
    PythonLaw() : PythonSubclass("law") {}

    double mean() const override { return require_number("mean of the law", "mean"); }
    double variance() const override { return require_number("variance of the law", "variance"); }
    std::vector<spectral::Interval> centred_support() const override {
        const py::gil_scoped_acquire lock;
        std::vector<spectral::Interval> result;
        for (const auto& [low, high] : returned<std::vector<std::pair<double, double>>>(
                 "centred_support", "[(low, high), ..]", require("centred_support"))) {
            result.push_back({low, high});
        }
        return result;
    }
    double atomic_concentration() const override {
        const py::gil_scoped_acquire lock;
        const py::object own = call("atomic_concentration");
        return own ? number("atomic concentration of the law", own) : 0;
    }
    Transform stieltjes(Complex z) const override {
        const py::gil_scoped_acquire lock;
        return transform("stieltjes", require("stieltjes", z));
    }
    Transform moment_transform(Complex z) const override {
        {
            const py::gil_scoped_acquire lock;
            if (const py::object own = call("moment_transform", z)) return transform("moment_transform", own);
        }
        const auto [g, slope] = stieltjes(z);
        return {z * g - 1.0, g + z * slope};
    }
    double log_potential(Complex z) const override {
        return require_number("log potential of the law", "log_potential", z);
    }

  private:
    static Transform transform(const char* method, const py::object& given) {
        const auto [value, derivative] =
            returned<std::pair<Complex, Complex>>(method, "(value, derivative)", given);
        return {value, derivative};
    }
    template <class... Arguments>
    double require_number(const char* name, const char* method, const Arguments&... arguments) const {
        const py::gil_scoped_acquire lock;
        return number(name, require(method, arguments...));
    }
};

/// f(x) for each entry on several threads; Ctrl-C stops it.
template <class Function>
py::array_t<double> parallel_map(const Array& x, std::size_t threads, Function f) {
    py::array_t<double> result(std::vector<py::ssize_t>(x.shape(), x.shape() + x.ndim()));
    const double* in = x.data();
    double* out = result.mutable_data();
    const auto size = static_cast<std::size_t>(x.size());
    Watch watch{py::none()};
    without_lock(threads, [&](ThreadPool& pool) {
        parallel_for(pool, size, 64, [&](Range range) {
            if (watch.look()) std::transform(in + range.begin, in + range.end, out + range.begin, f);
        });
    });
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
        .def(
            "centred_support", [](const SpectralLaw& law) { return as_pairs(law.centred_support()); },
            "Ends of the intervals that the law lives on, less its mean.")
        .def(
            "stieltjes", [](const SpectralLaw& law, Complex z) { return as_pair(law.stieltjes(z)); }, "z"_a,
            "G(z) = int dmu(x) / (z - x) of the centred law, and G'(z).")
        .def(
            "moment_transform",
            [](const SpectralLaw& law, Complex z) { return as_pair(law.moment_transform(z)); }, "z"_a,
            "z G(z) - 1 of the centred law, and its derivative.")
        .def("log_potential", &SpectralLaw::log_potential, "z"_a,
             "Re int log(z - x) dmu(x) of the centred law.")
        .def("__repr__", [](const py::object& self) {
            const auto& law = self.cast<const SpectralLaw&>();
            return fmt::format("<{} mean={:g} variance={:g}>", type_name(self), law.mean(), law.variance());
        });
    py::class_<spectral::AtomicLaw, SpectralLaw, std::shared_ptr<spectral::AtomicLaw>>(
        module, "AtomicLaw",
        "Finitely many atoms: mu = sum_i weight_i delta(x - position_i).\n\n"
        ">>> AtomicLaw([-1, 0, 1], [0.25, 0.5, 0.25])")
        .def(py::init([](const py::object& positions, const py::object& weights) {
                 return from_atoms<spectral::AtomicLaw>("positions", positions, weights);
             }),
             "positions"_a, "weights"_a = py::none())
        .def("quantile", &spectral::AtomicLaw::quantile, "level"_a,
             "The least position below which the law has the mass `level`.");
    bind_class<spectral::MarchenkoPasturLaw, SpectralLaw>(
        module, "MarchenkoPasturLaw", "Law of W W^T / sqrt(r d), r = width d.\n\n>>> MarchenkoPasturLaw(0.5)",
        std::pair(&number, "width"_a))
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
             "law"_a, "noise_variance"_a, py::keep_alive<1, 2>())
        .def("density", &points<&spectral::SpectrumPoint::density>, "eigenvalues"_a)
        .def("hilbert", &points<&spectral::SpectrumPoint::hilbert>, "eigenvalues"_a)
        .def("denoised", &points<&spectral::SpectrumPoint::denoised>, "eigenvalues"_a)
        .def_property_readonly(
            "edges", [](const FreeConvolution& spectrum) { return as_pairs(spectrum.edges()); },
            "Ends of each bulk.")
        .def_property_readonly("mmse", &FreeConvolution::mmse, "D - (4 pi^2 D^2 / 3) int mu_D^3")
        .def_property_readonly("mmse_derivative", &FreeConvolution::mmse_derivative, "d mmse / dD")
        .def_property_readonly("log_energy", &FreeConvolution::log_energy, "int int log|x - y| dmu_D dmu_D")
        .def_property_readonly("mass", &FreeConvolution::mass, "1, but for the error of the quadrature.")
        .def_property_readonly("mean", &FreeConvolution::mean)
        .def_property_readonly("second_moment", &FreeConvolution::second_moment, "tr S^2 + D");
    module.def(
        "mmse",
        [](const SpectralLaw& law, const Array& noise_variance, std::size_t threads) {
            return parallel_map(noise_variance, threads, [&](double d) { return spectral::mmse(law, d); });
        },
        "law"_a, "noise_variance"_a, "threads"_a);
    module.def(
        "prior_free_entropy",
        [](const SpectralLaw& law, const Array& inverse_noise_variance, std::size_t threads) {
            return parallel_map(inverse_noise_variance, threads,
                                [&](double qhat) { return spectral::prior_free_entropy(law, qhat); });
        },
        "law"_a, "inverse_noise_variance"_a, "threads"_a);
    module.def(
        "denoise",
        [](const SpectralLaw& law, const py::object& noisy, double noise_variance,
           bool linear_outside_support, std::size_t threads) {
            const linalg::Matrix matrix = symmetric_matrix("noisy matrix", noisy);
            auto result = without_lock(threads, [&](ThreadPool& pool) {
                return denoisers::denoise(law, matrix, noise_variance, pool, {linear_outside_support});
            });
            return py::make_tuple(to_array(std::move(result.estimate)), result.posterior_variance,
                                  to_array(result.eigenvalues), to_array(result.shrunk));
        },
        "law"_a, "noisy"_a, "noise_variance"_a, "linear_outside_support"_a, "threads"_a);
    module.def(
        "goe",
        [](int dim, std::uint64_t seed, std::size_t threads) {
            check_at_least("dim", dim, 1);
            return to_array(without_lock(threads, [&](ThreadPool& pool) {
                return linalg::gaussian_orthogonal_ensemble(dim, RandomStream(seed, Purpose::noise), pool);
            }));
        },
        "dim"_a, "seed"_a, "threads"_a);
}

}  // namespace bayesaim::python

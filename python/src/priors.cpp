// SPDX-License-Identifier: MIT
// Priors: the classes of the library, and the base class of the user's own.
#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/priors/bilinear.hpp"
#include "bayesaim/priors/ginibre.hpp"
#include "bayesaim/priors/multi_head.hpp"
#include "bayesaim/priors/power_law.hpp"
#include "bayesaim/priors/user_spectrum.hpp"
#include "bayesaim/priors/wigner.hpp"
#include "bayesaim/priors/wishart.hpp"

#include "binding.hpp"

namespace bayesaim::python {
namespace {

using priors::Prior;

std::shared_ptr<priors::UserSpectrum> user_spectrum(const py::object& eigenvalues,
                                                    const py::object& weights) {
    return from_atoms<priors::UserSpectrum>("eigenvalues", eigenvalues, weights);
}

/// A prior written in Python: it defines spectrum(), whose default sample() is a Haar rotation, or law() and
/// sample(). The law is computed once.
class PythonPrior final : public PythonSubclass<Prior> {
  public:
    PythonPrior() : PythonSubclass("prior") {}

    std::string name() const override { return own_name(); }
    Parameters parameters() const override { return with_own({}); }
    const spectral::SpectralLaw& law() const override {
        if (law_ == nullptr) find_law();
        return *law_;
    }
    linalg::Matrix sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
                          ThreadPool& pool) const override {
        {
            const py::gil_scoped_acquire lock;
            if (const py::object own = call("sample", dim, seed, index)) {
                linalg::Matrix matrix = symmetric_matrix("sample", own);
                check_size("dimension of the sample", matrix.rows(), dim);
                return matrix;
            }
            spectrum();
        }
        return spectrum_->sample(dim, seed, index, pool);
    }

  private:
    // A method written in Python may release the lock: the first law that a thread stores is kept.
    void find_law() const {
        const py::gil_scoped_acquire lock;
        const py::object given = call("law");
        if (!given) {
            law_ = &spectrum().law();
            return;
        }
        if (!py::isinstance<spectral::SpectralLaw>(given))
            throw py::type_error(
                fmt::format("{}.law must return a SpectralLaw, got {}", name(), type_name(given)));
        if (law_ != nullptr) return;
        // An attribute, so that the garbage collector sees a law that refers to its prior.
        const py::object self = py::cast(as_base());
        if (PyObject_GenericSetAttr(self.ptr(), py::str("_bayesaim_law").ptr(), given.ptr()) != 0) {
            PyErr_Clear();  // __slots__
            kept_ = given;
        }
        law_ = given.cast<const spectral::SpectralLaw*>();
    }
    const priors::UserSpectrum& spectrum() const {  // with the lock
        if (spectrum_ != nullptr) return *spectrum_;
        const py::object given = call("spectrum");
        if (!given) throw py::type_error("a prior needs a method spectrum, or law and sample");
        const bool weighted = py::isinstance<py::tuple>(given) && py::len(given) == 2;
        auto found = weighted ? user_spectrum(given[py::int_(0)], given[py::int_(1)])
                              : user_spectrum(given, py::none());
        if (spectrum_ == nullptr) spectrum_ = std::move(found);
        return *spectrum_;
    }

    mutable std::shared_ptr<priors::UserSpectrum> spectrum_;
    mutable py::object kept_;
    mutable std::atomic<const spectral::SpectralLaw*> law_ = nullptr;
};

}  // namespace

void bind_priors(py::module_& module) {
    py::class_<Prior, PythonPrior, std::shared_ptr<Prior>>(module, "Prior", R"(
Rotationally invariant prior on symmetric d x d weight matrices S.

For a prior of your own define in a subclass
    spectrum(self)                  eigenvalues, or (eigenvalues, weights): S = O diag(eigenvalues) O^T, O Haar
or  law(self)                       a SpectralLaw, and
    sample(self, dim, seed, index)  a symmetric dim x dim array
and if you like name(self) and parameters(self). spectrum and law are called once.

>>> class Signs(bayesaim.Prior):
...     def spectrum(self): return [-1, 1], [0.3, 0.7])")
        .def(py::init<>())
        .def("name", &Prior::name, "As on the command line.")
        .def(
            "parameters", [](const Prior& prior) { return to_dict(prior.parameters()); },
            "Its numbers by name.")
        .def("law", &Prior::law, py::return_value_policy::reference_internal,
             "Law of the eigenvalues of S for large d.")
        .def(
            "sample",
            [](const Prior& prior, const py::object& dim, const py::object& seed, const py::object& index,
               const py::object& threads) {
                const int size = whole_number("dim", dim), workers = whole_number("threads", threads);
                check_at_least("dim", size, 1);
                check_between("threads", workers, 0, 1024);
                const std::uint64_t stream = seed_number("seed", seed), draw = seed_number("index", index);
                return to_array(without_lock(static_cast<std::size_t>(workers), [&](ThreadPool& pool) {
                    return prior.sample(size, stream, draw, pool);
                }));
            },
            "dim"_a, "seed"_a = 0, "index"_a = 0, "threads"_a = 1,
            "A draw of S, addressed by seed and index.\n\n>>> Wishart(0.5).sample(100, seed=1)")
        .def("__repr__",
             [](const py::object& self) { return call_text(self, self.cast<const Prior&>().parameters()); });
    const std::pair width(&number, "width"_a = 1), aspect(&number, "aspect"_a = 1),
        scale(&number, "scale"_a = 1);
    bind_class<priors::Wishart, Prior>(module, "Wishart",
                                       "Tied attention: S = W W^T / sqrt(r d), W of size d x r, r = width d; "
                                       "scale multiplies S.\n\n>>> Wishart(0.5)",
                                       width, scale);
    bind_class<priors::MultiHead, Prior>(
        module, "MultiHead",
        "Mean of M tied heads, all that softmax of their mean logits reveals: S = (1/M) sum_m W_m W_m^T / "
        "sqrt(r d), r = width d.\n\n>>> MultiHead(heads=4, width=0.5)",
        std::pair(&whole_number, "heads"_a), width);
    bind_class<priors::Wigner, Prior>(
        module, "Wigner",
        "Gaussian orthogonal ensemble, spectrum on [-2, 2]: mmse(D) = D/(1 + D).\n\n>>> Wigner()");
    bind_class<priors::Bilinear, Prior>(
        module, "Bilinear",
        "Untied attention: S = W_Q W_K^T / sqrt(r d), W_Q and W_K of size d "
        "x r, r = width d; S is not symmetric. For "
        "channels with an attention other than 'tied'. With attention='cross' "
        "keys may have another dimension, aspect d. scale multiplies S.\n\n>>> Bilinear(0.5)\n"
        ">>> Bilinear(0.5, aspect=2)",
        width, aspect, scale);
    bind_class<priors::Ginibre, Prior>(
        module, "Ginibre",
        "S with independent N(0, 1/d) entries, the limit of large width of Bilinear: mmse(D) = D/(1 + D).\n\n"
        ">>> Ginibre()",
        aspect);
    bind_class<priors::PowerLaw, Prior>(
        module, "PowerLaw",
        "Eigenvalues c (x + cutoff)^(-exponent), x uniform on (0, width), the others 0; tr S^2 = 1, random "
        "eigenvectors; scale multiplies S. Samples follow the law if dim is large against 1/cutoff.\n\n"
        ">>> PowerLaw(1.5, cutoff=1e-4)",
        std::pair(&number, "exponent"_a = 1), width, std::pair(&number, "cutoff"_a = 1e-3), scale);
    py::class_<priors::UserSpectrum, Prior, std::shared_ptr<priors::UserSpectrum>>(
        module, "UserSpectrum",
        "S = O diag(eigenvalues) O^T with O Haar distributed.\n\n>>> UserSpectrum([-1, 0, 1], [0.25, 0.5, "
        "0.25])")
        .def(py::init(&user_spectrum), "eigenvalues"_a, "weights"_a = py::none());
}

}  // namespace bayesaim::python

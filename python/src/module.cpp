// SPDX-License-Identifier: MIT
// The compiled part of the Python module. Functions here are thin and private; the public ones, with their
// checks of arguments and their results, are in python/bayesaim/*.py.
#include "bayesaim/core/version.hpp"

#include "binding.hpp"

namespace bayesaim::python {
namespace {

std::unique_ptr<Communicator> joined;  // guarded by the interpreter's lock

}  // namespace

Communicator& ranks() { return joined ? *joined : one_process(); }

}  // namespace bayesaim::python

PYBIND11_MODULE(_core, module) {
    namespace py = pybind11;
    using namespace pybind11::literals;
    using namespace bayesaim;
    module.doc() = "Bayes-optimal learning of attention: the compiled library behind the module bayesaim.";
    module.def("version", [] { return std::string(version()); });
    module.def("git_commit", [] { return std::string(git_commit()); });
    module.def("blas_threads", &linalg::blas_threads,
               "Threads of OpenBLAS outside our calls, which leave them as they were.");
    module.def("better_blas_kernels", []() -> std::optional<std::string> {
        const char* kernels = linalg::better_blas_kernels();
        return kernels != nullptr ? std::optional<std::string>(kernels) : std::nullopt;
    });
    module.def(
        "join_ranks",
        [](std::uintptr_t address) {
            python::joined = address == 0 ? nullptr : given_mpi(reinterpret_cast<const void*>(address));
        },
        "communicator"_a);
    python::bind_spectral(module);
    python::bind_priors(module);
    python::bind_channels(module);
    python::bind_model(module);
    python::bind_theory(module);
    python::bind_data(module);
    python::bind_estimators(module);
    python::bind_erm(module);
    python::bind_fit(module);
    python::bind_experiments(module);
    python::bind_testing(module);
    python::bind_layers(module);
    python::answer_in_one_line(module);
}

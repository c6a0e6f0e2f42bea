// SPDX-License-Identifier: MIT
#pragma once
#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/complex.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bayesaim/channels/channel.hpp"
#include "bayesaim/core/communicator.hpp"
#include "bayesaim/core/record.hpp"
#include "bayesaim/linalg/blas.hpp"
#include "bayesaim/spectral/spectral_law.hpp"

/// Shared by all parts of the Python module: arguments, arrays, progress.
namespace bayesaim::python {

namespace py = pybind11;
using namespace py::literals;  // "name"_a

/// Double, C-contiguous; other arrays are copied.
using Array = py::array_t<double, py::array::c_style | py::array::forcecast>;

// ---- arguments: a caller's mistake is a TypeError or ValueError of one line -------------------------------

double number(const char* name, const py::handle& value);
int whole_number(const char* name, const py::handle& value);
std::uint64_t seed_number(const char* name, const py::handle& value);  ///< 0 to 2^64 - 1
std::string text(const char* name, const py::handle& value);
/// Finite real numbers with this number of dimensions, of any shape; `logarithms`: also minus infinity, of an output that
/// is not seen.
Array numbers(const char* name, const py::handle& value, py::ssize_t dimensions, bool logarithms = false);
/// An n x columns array; (n, T, T) counts as n x T^2.
channels::Rows rows(const char* name, const py::handle& value, Eigen::Index columns, bool logarithms = false);
/// Outputs of T tokens as n x T^2: an (n, T, T) array, or an n x T^2 one.
channels::Rows output_rows(const py::handle& value, Eigen::Index tokens, Eigen::Index keys);
/// A square symmetric matrix.
linalg::Matrix symmetric_matrix(const char* name, const py::handle& value);
/// Matrices: an (L, d, d) array, a list, or one d x d matrix; of untied attention not symmetric, perhaps not square.
std::vector<linalg::Matrix> matrices(const char* name, const py::handle& value);
/// Throws InvalidArgument unless all are square and symmetric.
void check_symmetric(const char* name, const std::vector<linalg::Matrix>& given);
std::vector<linalg::Matrix> symmetric_matrices(const char* name, const py::handle& value);
/// An L x L symmetric matrix without negative eigenvalues; a number is a multiple of the identity.
linalg::Overlap covariance(const char* name, const py::handle& value, int layers);

[[noreturn]] void throw_type(const std::string& name, const char* requirement, const py::handle& value);

/// The value that a method written in Python returned.
template <class Value>
Value returned(const char* method, const char* requirement, const py::object& given) {
    try {
        return given.cast<Value>();
    } catch (const py::cast_error&) {
        throw_type(std::string("what ") + method + " returns", requirement, given);
    }
}

/// Shortens pybind11's page of signatures for wrong arguments to one line, for all functions and methods of
/// the module.
void answer_in_one_line(const py::module_& module);

// ---- priors and channels ----------------------------------------------------------------------------------

using Parameters = std::vector<std::pair<std::string, double>>;

py::dict to_dict(const Parameters& parameters);
py::dict to_dict(const Record& record);
/// The value that a method `parameters` written in Python returned.
void append_parameters(const py::object& given, Parameters& parameters);
/// "Wishart(width=0.5)"
std::string call_text(const py::handle& self, const Parameters& parameters);
std::string type_name(const py::handle& value);

// ---- arrays -----------------------------------------------------------------------------------------------

/// The matrix as an array that owns its memory: moved, not copied.
py::array to_array(linalg::Matrix matrix);
py::array to_array(channels::Rows matrix);
py::array to_array(const std::vector<double>& values);
py::array to_array(const linalg::Vector& values);
py::array to_array(const linalg::Overlap& matrix);
/// An (L, d, d) array of matrices of one size.
template <class Matrix>
py::array stacked(const std::vector<Matrix>& matrices) {
    const auto n = static_cast<py::ssize_t>(matrices.size());
    const py::ssize_t rows = n > 0 ? matrices.front().rows() : 0,
                      columns = n > 0 ? matrices.front().cols() : 0;
    py::array_t<double> result({n, rows, columns});
    for (py::ssize_t i = 0; i < n; ++i)
        Eigen::Map<channels::Rows>(result.mutable_data(i), rows, columns) =
            matrices[static_cast<std::size_t>(i)];
    return result;
}
/// A matrix between layers: a number for one layer, L x L for several.
py::object layer_matrix(const linalg::Overlap& matrix);
/// Such a matrix for each row of a record: n numbers for one layer, (n, L, L) for several.
template <class Record, class Function>
py::array history(const std::vector<Record>& record, int layers, Function value) {
    std::vector<py::ssize_t> shape{static_cast<py::ssize_t>(record.size())};
    if (layers > 1) shape.insert(shape.end(), 2, layers);
    py::array_t<double> result(shape);
    double* next = result.mutable_data();
    for (const Record& row : record) {
        const linalg::Overlap matrix = std::invoke(value, row);  // symmetric
        next = std::copy_n(matrix.data(), matrix.size(), next);
    }
    return result;
}
/// A column of a record: a member, or a function of a row.
template <class Record, class Function>
py::array column(const std::vector<Record>& record, Function value) {
    std::vector<double> values;
    for (const Record& row : record) values.push_back(std::invoke(value, row));
    return to_array(values);
}
/// Stands for a missing number in an array.
inline constexpr double not_known = std::numeric_limits<double>::quiet_NaN();
/// The same numbers in another shape, without a copy: `array` must be C-contiguous.
py::array reshaped(const py::array& array, const std::vector<py::ssize_t>& shape);

/// Calls f() without the interpreter's lock.
template <class Function>
auto without_lock(Function f) {
    const py::gil_scoped_release unlock;
    return f();
}
/// Calls f(pool) on a pool of this number of threads, without the interpreter's lock.
template <class Function>
auto without_lock(std::size_t threads, Function f) {
    const py::gil_scoped_release unlock;
    ThreadPool pool(threads);
    return f(pool);
}

/// The ranks that compute together now; one process unless Python said otherwise.
Communicator& ranks();
/// The same as without_lock with the samples divided over the ranks: for what returns no array of samples.
template <class Function>
auto over_ranks(std::size_t threads, Function f) {
    Communicator& together = ranks();
    const py::gil_scoped_release unlock;
    ThreadPool pool(threads, together);
    return f(pool);
}

/// f(x) for each entry, in the shape of the argument, without the interpreter's lock.
template <class Function>
py::array_t<double> map(const Array& x, Function f) {
    py::array_t<double> result(std::vector<py::ssize_t>(x.shape(), x.shape() + x.ndim()));
    const double *begin = x.data(), *end = begin + x.size();
    double* out = result.mutable_data();
    without_lock([&] { std::transform(begin, end, out, f); });
    return result;
}

// ---- classes ----------------------------------------------------------------------------------------------

template <class>
using ObjectFor = py::object;

/// Binds a class of the library and its constructor, whose arguments may be the members of `Options`. Each
/// argument is a pair: the function that reads it, and its name with its default.
template <class Class, class Base, class Options = Class, class... Read, class... Arg>
auto bind_class(py::module_& module, const char* name, const char* doc,
                const std::pair<Read, Arg>&... arguments) {
    return py::class_<Class, Base, std::shared_ptr<Class>>(module, name, doc)
        .def(py::init([arguments...](const ObjectFor<Read>&... given) {
                 return Class(Options{arguments.first(arguments.second.name, given)...});
             }),
             arguments.second...);
}

/// A law or a prior of these atoms; weights may be None.
template <class Class>
std::shared_ptr<Class> from_atoms(const char* name, const py::object& positions, const py::object& weights) {
    const auto span_of = [](const Array& array) {
        return std::span(array.data(), static_cast<std::size_t>(array.size()));
    };
    const Array x = numbers(name, positions, 1);
    if (weights.is_none()) return std::make_shared<Class>(span_of(x));
    return std::make_shared<Class>(span_of(x), span_of(numbers("weights", weights, 1)));
}

/// Arguments of methods written in Python: copies, which the method may keep.
py::object argument(const channels::ConstRowsRef& matrix);
py::object argument(const linalg::Overlap& matrix);
template <class Number>
py::object argument(const Number& number) {
    return py::cast(number);
}

/// A class of the library, the methods of which a class written in Python may define.
template <class Base>
class PythonSubclass : public Base {
  protected:
    explicit PythonSubclass(const char* kind) : kind_(kind) {}

    const Base* as_base() const { return this; }
    py::function find(const char* method) const { return py::get_override(as_base(), method); }
    /// The result of the method, or a null object if the class does not define it. Call with the lock.
    template <class... Arguments>
    py::object call(const char* method, const Arguments&... arguments) const {
        const py::function own = find(method);
        return own ? own(argument(arguments)...) : py::object();
    }
    template <class... Arguments>
    py::object require(const char* method, const Arguments&... arguments) const {
        py::object given = call(method, arguments...);
        if (!given) throw py::type_error(std::string("a ") + kind_ + " needs a method " + method);
        return given;
    }
    /// The same as a value, or std::nullopt if the class does not define the method.
    template <class Returned, class... Arguments>
    std::optional<Returned> ask(const char* method, const char* requirement,
                                const Arguments&... arguments) const {
        const py::gil_scoped_acquire lock;
        const py::object own = call(method, arguments...);
        if (!own) return std::nullopt;
        return returned<Returned>(method, requirement, own);
    }
    /// The name of the class unless it defines another one.
    std::string own_name() const {
        const py::gil_scoped_acquire lock;
        return ask<std::string>("name", "a text").value_or(type_name(py::cast(as_base())));
    }
    /// These parameters and those that the class defines.
    Parameters with_own(Parameters parameters) const {
        const py::gil_scoped_acquire lock;
        if (const py::object own = call("parameters")) append_parameters(own, parameters);
        return parameters;
    }

  private:
    const char* kind_;  // in messages
};

// ---- progress and Ctrl-C ----------------------------------------------------------------------------------

/// Connects a computation without the interpreter's lock to Python: reports progress to a
/// callback(done, total, text) and checks for Ctrl-C. An exception in Python stops the computation; finish()
/// raises it again. Thread-safe: a report that another thread has overtaken is left out.
class Watch {
  public:
    explicit Watch(py::object callback) : callback_(std::move(callback)) {}

    /// Returns false to stop. Call without the lock.
    bool report(double done, double total, const std::string& text);
    /// The same, without a report.
    bool look();
    /// Call with the lock, after the computation.
    void finish() const;

  private:
    template <class Call>
    bool with_python(Call call);

    py::object callback_;
    double reported_ = 0;  // under the interpreter's lock
    std::atomic<bool> stop_ = false;
    std::mutex mutex_;
    std::exception_ptr error_;
};

// ---- the parts --------------------------------------------------------------------------------------------

void bind_priors(py::module_& module);
void bind_channels(py::module_& module);
void bind_model(py::module_& module);
void bind_spectral(py::module_& module);
void bind_theory(py::module_& module);
void bind_data(py::module_& module);
void bind_estimators(py::module_& module);
void bind_erm(py::module_& module);
void bind_fit(py::module_& module);
void bind_experiments(py::module_& module);
void bind_testing(py::module_& module);
void bind_layers(py::module_& module);

}  // namespace bayesaim::python

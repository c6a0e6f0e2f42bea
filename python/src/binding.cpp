// SPDX-License-Identifier: MIT
#include "binding.hpp"

#include <cmath>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/linalg/symmetric_eigen.hpp"

namespace bayesaim::python {

std::string type_name(const py::handle& value) {
    return value.is_none() ? "None" : py::str(py::type::of(value).attr("__name__")).cast<std::string>();
}

void throw_type(const std::string& name, const char* requirement, const py::handle& value) {
    throw py::type_error(fmt::format("{} must be {}, got {}", name, requirement, type_name(value)));
}

namespace {

std::string shape_text(const py::array& array) {
    return py::str(py::tuple(array.attr("shape"))).cast<std::string>();
}

/// Whether this is True or False, of Python or numpy. Python takes them for 1 and 0, the module does not.
bool is_truth_value(const py::handle& value) {
    const std::string_view type = Py_TYPE(value.ptr())->tp_name;
    return PyBool_Check(value.ptr()) || type == "numpy.bool_" || type == "numpy.bool";
}

py::object whole(const char* name, const py::handle& value) {
    py::object index = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
    if (!index || is_truth_value(value)) {
        PyErr_Clear();
        throw_type(name, "a whole number", value);
    }
    return index;
}

}  // namespace

double number(const char* name, const py::handle& value) {
    const double result = is_truth_value(value) ? -1 : PyFloat_AsDouble(value.ptr());
    if (is_truth_value(value) || (result == -1 && PyErr_Occurred() != nullptr)) {
        const bool too_large = PyErr_ExceptionMatches(PyExc_OverflowError) != 0;
        PyErr_Clear();
        if (too_large) throw_invalid(name, "below 1e308 in size", "more");
        throw_type(name, "a number", value);
    }
    return result;
}

int whole_number(const char* name, const py::handle& value) {
    const py::object index = whole(name, value);
    int overflow = 0;
    const long long result = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
    constexpr long long most = std::numeric_limits<int>::max();
    if (overflow != 0 || result < -most || result > most)
        throw_invalid(name, fmt::format("between {} and {}", -most, most),
                      py::str(index).cast<std::string>());
    return static_cast<int>(result);
}

std::uint64_t seed_number(const char* name, const py::handle& value) {
    const py::object index = whole(name, value);
    const unsigned long long result = PyLong_AsUnsignedLongLong(index.ptr());
    if (PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        throw_invalid(name, "between 0 and 2^64 - 1", py::str(index).cast<std::string>());
    }
    return result;
}

std::string text(const char* name, const py::handle& value) {
    if (!py::isinstance<py::str>(value)) throw_type(name, "a text", value);
    return value.cast<std::string>();
}

Array numbers(const char* name, const py::handle& value, py::ssize_t dimensions, bool logarithms) {
    const py::array any = py::array::ensure(value);
    if (!any || value.is_none()) throw_type(name, "an array of numbers", value);
    const char kind = any.dtype().kind();
    if (kind != 'f' && kind != 'i' && kind != 'u') {
        throw py::type_error(fmt::format("{} must be real numbers, got dtype {}", name,
                                         py::str(any.dtype()).cast<std::string>()));
    }
    if (any.ndim() != dimensions) {
        throw_invalid(name, fmt::format("an array of {} dimension{}", dimensions, dimensions == 1 ? "" : "s"),
                      "shape " + shape_text(any));
    }
    Array array = Array::ensure(any);
    if (!array) throw py::error_already_set();
    const double* entries = array.data();
    for (py::ssize_t i = 0; i < array.size(); ++i) {
        const bool log_of_zero = logarithms && entries[i] == -std::numeric_limits<double>::infinity();
        if (!std::isfinite(entries[i]) && !log_of_zero) throw_invalid(name, "finite", entries[i]);
    }
    return array;
}

channels::Rows rows(const char* name, const py::handle& value, Eigen::Index columns, bool logarithms) {
    const bool cube =
        py::isinstance<py::array>(value) && py::reinterpret_borrow<py::array>(value).ndim() == 3;
    const Array array = numbers(name, value, cube ? 3 : 2, logarithms);
    const Eigen::Index n = array.shape(0), size = n > 0 ? array.size() / n : columns;
    if (size != columns) {
        throw_invalid(name, fmt::format("of shape (n, {})", columns), "shape " + shape_text(array));
    }
    return Eigen::Map<const channels::Rows>(array.data(), n, columns);
}

channels::Rows output_rows(const py::handle& value, Eigen::Index tokens, Eigen::Index keys) {
    const py::array any = py::array::ensure(value);
    if (!any || value.is_none()) throw_type("outputs", "an array of numbers", value);
    const Eigen::Index n = any.ndim() > 0 ? any.shape(0) : 0, size = n > 0 ? any.size() / n : tokens * keys;
    if ((any.ndim() != 2 && any.ndim() != 3) || size != tokens * keys)
        throw_invalid("outputs", fmt::format("of shape (n, {}, {})", tokens, keys),
                      "shape " + shape_text(any));
    return rows("outputs", any, tokens * keys, true);  // the channel knows what is not seen
}

linalg::Matrix symmetric_matrix(const char* name, const py::handle& value) {
    const Array array = numbers(name, value, 2);
    if (array.shape(0) != array.shape(1)) throw_invalid(name, "square", "shape " + shape_text(array));
    linalg::Matrix matrix = Eigen::Map<const channels::Rows>(array.data(), array.shape(0), array.shape(1));
    linalg::check_symmetric(name, matrix);
    return matrix;
}

std::vector<linalg::Matrix> matrices(const char* name, const py::handle& value) {
    const py::array any = py::array::ensure(value);
    const bool one = any && any.ndim() == 2;
    const Array array = numbers(name, value, one ? 2 : 3);
    const py::ssize_t layers = one ? 1 : array.shape(0), rows = array.shape(one ? 0 : 1),
                      columns = array.shape(one ? 1 : 2);
    std::vector<linalg::Matrix> result;
    for (py::ssize_t i = 0; i < layers; ++i)
        result.emplace_back(
            Eigen::Map<const channels::Rows>(array.data() + i * rows * columns, rows, columns));
    return result;
}

std::vector<linalg::Matrix> symmetric_matrices(const char* name, const py::handle& value) {
    std::vector<linalg::Matrix> result = matrices(name, value);
    check_symmetric(name, result);
    return result;
}

void check_symmetric(const char* name, const std::vector<linalg::Matrix>& given) {
    for (const linalg::Matrix& matrix : given) {
        if (matrix.rows() != matrix.cols())
            throw_invalid(name, "square", fmt::format("shape ({}, {})", matrix.rows(), matrix.cols()));
        linalg::check_symmetric(name, matrix);
    }
}

linalg::Overlap covariance(const char* name, const py::handle& value, int layers) {
    check_between("layers", layers, 1, linalg::max_layers);
    const bool matrix_like = py::isinstance<py::array>(value) && value.cast<py::array>().ndim() > 0;
    if (!matrix_like && PyNumber_Check(value.ptr()) != 0) {
        const double factor = number(name, value);
        check_non_negative(name, factor);
        return factor * linalg::Overlap::Identity(layers, layers);
    }
    const linalg::Matrix matrix = symmetric_matrix(name, value);
    check_size(fmt::format("layers of the {}", name), matrix.rows(), layers);
    const double smallest = linalg::smallest_eigenvalue(matrix);
    // rounding may make a zero eigenvalue slightly negative
    if (smallest < -1e-14 * matrix.norm()) throw_invalid(name, "without negative eigenvalues", smallest);
    return matrix;
}

py::dict to_dict(const Parameters& parameters) {
    py::dict result;
    for (const auto& [key, value] : parameters) result[py::str(key)] = value;
    return result;
}

namespace {

py::object to_python(const Value& value) {
    return std::visit(
        []<class Kind>(const Kind& one) -> py::object {
            if constexpr (std::is_same_v<Kind, Value::List>) {
                py::list list;
                for (const Value& item : one) list.append(to_python(item));
                return list;
            } else if constexpr (std::is_same_v<Kind, std::monostate>) {
                return py::none();
            } else {
                return py::cast(one);
            }
        },
        value.variant());
}

}  // namespace

py::dict to_dict(const Record& record) {
    py::dict result;
    for (const auto& [name, value] : record) result[py::str(name)] = to_python(value);
    return result;
}

void append_parameters(const py::object& given, Parameters& parameters) {
    if (!py::isinstance<py::dict>(given)) throw_type("parameters", "a dict of numbers", given);
    for (const auto& [key, value] : given.cast<py::dict>()) {
        std::string name = text("name of a parameter", key);
        const double one = number(name.c_str(), value);
        parameters.emplace_back(std::move(name), one);
    }
}

std::string call_text(const py::handle& self, const Parameters& parameters) {
    std::string arguments;
    for (const auto& [key, value] : parameters)
        arguments += fmt::format("{}{}={:g}", arguments.empty() ? "" : ", ", key, value);
    return fmt::format("{}({})", type_name(self), arguments);
}

namespace {

template <class Matrix>
py::array move_to_array(Matrix matrix, py::ssize_t row_step, py::ssize_t column_step) {
    auto owner = std::make_unique<Matrix>(std::move(matrix));
    const double* data = owner->data();
    const py::ssize_t n = owner->rows(), m = owner->cols(), size = sizeof(double);
    const py::capsule base(owner.get(), [](void* pointer) { delete static_cast<Matrix*>(pointer); });
    (void)owner.release();
    return py::array_t<double>({n, m}, {row_step * size, column_step * size}, data, base);
}

}  // namespace

py::array to_array(linalg::Matrix matrix) {
    const Eigen::Index step = matrix.rows();
    return move_to_array(std::move(matrix), 1, step);
}
py::array to_array(channels::Rows matrix) {
    const Eigen::Index step = matrix.cols();
    return move_to_array(std::move(matrix), step, 1);
}
py::array to_array(const std::vector<double>& values) {
    return py::array_t<double>(static_cast<py::ssize_t>(values.size()), values.data());
}

py::array to_array(const linalg::Vector& values) { return py::array_t<double>(values.size(), values.data()); }

py::array to_array(const linalg::Overlap& matrix) { return to_array(linalg::Matrix(matrix)); }

py::object layer_matrix(const linalg::Overlap& matrix) {
    return matrix.size() == 1 ? py::object(py::float_(matrix(0, 0))) : to_array(matrix);
}

py::array reshaped(const py::array& array, const std::vector<py::ssize_t>& shape) {
    return array.attr("reshape")(py::cast(shape)).cast<py::array>();
}

py::object argument(const channels::ConstRowsRef& matrix) { return to_array(channels::Rows(matrix)); }
py::object argument(const linalg::Overlap& matrix) { return layer_matrix(matrix); }

template <class Call>
bool Watch::with_python(Call call) {
    if (stop_) return false;
    const py::gil_scoped_acquire lock;
    try {
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
        if (!call()) stop_ = true;
    } catch (...) {
        const std::lock_guard guard(mutex_);
        if (!error_) error_ = std::current_exception();
        stop_ = true;
    }
    return !stop_;
}

bool Watch::report(double done, double total, const std::string& text) {
    return with_python([&] {
        if (callback_.is_none() || done < reported_) return true;
        reported_ = done;
        const py::object answer = callback_(done, total, text);
        return !py::isinstance<py::bool_>(answer) || answer.cast<bool>();
    });
}

bool Watch::look() {
    return with_python([] { return true; });
}

void Watch::finish() const {
    if (error_) std::rethrow_exception(error_);
}

}  // namespace bayesaim::python

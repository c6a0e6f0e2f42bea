// SPDX-License-Identifier: MIT
#include "binding.hpp"

#include <cmath>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/linalg/symmetric_eigen.hpp"

namespace bayesaim::python {
namespace {

std::string type_name(const py::handle& value) {
    return value.is_none() ? "None" : py::str(py::type::of(value).attr("__name__")).cast<std::string>();
}

[[noreturn]] void throw_type(const char* name, const char* requirement, const py::handle& value) {
    throw py::type_error(fmt::format("{} must be {}, got {}", name, requirement, type_name(value)));
}

std::string shape_text(const py::array& array) {
    return py::str(py::tuple(array.attr("shape"))).cast<std::string>();
}

}  // namespace

double number(const char* name, const py::handle& value) {
    const double result = PyBool_Check(value.ptr()) ? -1 : PyFloat_AsDouble(value.ptr());
    if (PyBool_Check(value.ptr()) || (result == -1 && PyErr_Occurred() != nullptr)) {
        PyErr_Clear();
        throw_type(name, "a number", value);
    }
    return result;
}

int whole_number(const char* name, const py::handle& value) {
    const py::object index = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
    const long long result = index ? PyLong_AsLongLong(index.ptr()) : -1;
    if (PyErr_Occurred() != nullptr || PyBool_Check(value.ptr())) {
        PyErr_Clear();
        throw_type(name, "a whole number", value);
    }
    check_between(name, static_cast<double>(result), -2147483647, 2147483647);
    return static_cast<int>(result);
}

std::uint64_t seed_number(const char* name, const py::handle& value) {
    const py::object index = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
    if (!index || PyBool_Check(value.ptr())) {
        PyErr_Clear();
        throw_type(name, "a whole number", value);
    }
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

Array numbers(const char* name, const py::handle& value, py::ssize_t dimensions) {
    if (value.is_none()) throw_type(name, "an array of numbers", value);
    py::array any;
    try {
        any = py::array::ensure(value);
    } catch (const py::error_already_set&) {
        throw_type(name, "an array of numbers", value);
    }
    if (!any) {
        PyErr_Clear();
        throw_type(name, "an array of numbers", value);
    }
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
        if (!std::isfinite(entries[i])) throw_invalid(name, "finite", entries[i]);
    }
    return array;
}

channels::Rows rows(const char* name, const py::handle& value, Eigen::Index columns) {
    const bool cube =
        py::isinstance<py::array>(value) && py::reinterpret_borrow<py::array>(value).ndim() == 3;
    const Array array = numbers(name, value, cube ? 3 : 2);
    const Eigen::Index n = array.shape(0), size = n > 0 ? array.size() / n : columns;
    if (size != columns) {
        throw_invalid(name, fmt::format("of shape (n, {})", columns), "shape " + shape_text(array));
    }
    return Eigen::Map<const channels::Rows>(array.data(), n, columns);
}

linalg::Matrix symmetric_matrix(const char* name, const py::handle& value) {
    const Array array = numbers(name, value, 2);
    if (array.shape(0) != array.shape(1)) throw_invalid(name, "square", "shape " + shape_text(array));
    linalg::Matrix matrix = Eigen::Map<const channels::Rows>(array.data(), array.shape(0), array.shape(1));
    linalg::check_symmetric(name, matrix);
    return matrix;
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

py::array reshaped(const py::array& array, const std::vector<py::ssize_t>& shape) {
    return array.attr("reshape")(py::cast(shape)).cast<py::array>();
}

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
        if (callback_.is_none()) return true;
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

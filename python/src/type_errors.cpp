// SPDX-License-Identifier: MIT
// Messages of one line for wrong arguments.
#include <algorithm>

#include <fmt/format.h>

#include "binding.hpp"

namespace bayesaim::python {
namespace {

PyCFunction dispatcher = nullptr;  // pybind11's, one for all functions

void remove_all(std::string& text, const std::string& piece) {
    for (std::size_t at = 0; (at = text.find(piece)) != std::string::npos;) text.erase(at, piece.size());
}

/// "sample(dim, seed = 0)" of the first signature in pybind11's page, which has a line
/// "    1. (self: bayesaim._core.Prior, dim: object, seed: object = 0) -> array".
std::string signature(const std::string& page) {
    const std::string name = page.substr(0, page.find('('));
    const std::size_t first = page.find("\n    1. ");
    if (first == std::string::npos) return name + "()";
    const std::size_t begin = first + 8, end = page.find('\n', begin);
    std::string line = page.substr(begin, end - begin);
    line.erase(std::min(line.rfind(" -> "), line.size()));
    const std::size_t self = line.find("(self: "), comma = line.find_first_of(",)", self);
    if (self != std::string::npos) line.erase(self + 1, comma + (line[comma] == ',' ? 2 : 0) - self - 1);
    for (const char* noise : {"bayesaim._core.", ": object"}) remove_all(line, noise);
    return line.starts_with('(') ? name + line : line;  // a constructor's line has the name of its class
}

/// Types of the given arguments, without self.
std::string given_text(PyObject* args, PyObject* kwargs, bool method) {
    std::vector<std::string> types;
    const auto positional = py::reinterpret_borrow<py::tuple>(args);
    for (std::size_t i = method ? 1 : 0; i < positional.size(); ++i)
        types.push_back(type_name(positional[i]));
    if (kwargs != nullptr) {
        for (const auto& [key, value] : py::reinterpret_borrow<py::dict>(kwargs))
            types.push_back(fmt::format("{}={}", py::str(key).cast<std::string>(), type_name(value)));
    }
    return fmt::format("({})", fmt::join(types, ", "));
}

/// Python calls this function: no C++ exception may leave it.
PyObject* call(PyObject* record, PyObject* args, PyObject* kwargs) {
    try {
        PyObject* result = reinterpret_cast<PyCFunctionWithKeywords>(
            reinterpret_cast<void (*)()>(dispatcher))(record, args, kwargs);
        if (result != nullptr || PyErr_ExceptionMatches(PyExc_TypeError) == 0) return result;
    } catch (py::error_already_set& error) {  // pybind11's page could not be written
        error.restore();
        return nullptr;
    }
    py::error_already_set error;
    try {
        const std::string page = py::str(error.value()).cast<std::string>();
        if (page.find(" arguments. The following argument types are supported:") != std::string::npos) {
            const bool method = page.find("(self: ") != std::string::npos || page.starts_with("__init__(");
            PyErr_SetString(PyExc_TypeError, fmt::format("arguments must be those of {}, got {}",
                                                         signature(page), given_text(args, kwargs, method))
                                                 .c_str());
            return nullptr;
        }
    } catch (const std::exception&) {  // a message that is not UTF-8, or cannot be had
        PyErr_Clear();
    }
    error.restore();
    return nullptr;
}

void intercept(const py::handle& value) {
    if (PyType_Check(value.ptr())) {
        for (const auto& [name, member] : py::dict(value.attr("__dict__"))) {
            if (!PyType_Check(member.ptr())) intercept(member);
        }
        return;
    }
    if (py::isinstance(value, reinterpret_cast<PyObject*>(&PyProperty_Type))) {
        intercept(value.attr("fget"));
        intercept(value.attr("fset"));
        return;
    }
    py::object function = py::reinterpret_borrow<py::object>(value);
    if (PyInstanceMethod_Check(value.ptr())) {
        function = py::reinterpret_borrow<py::object>(PyInstanceMethod_GET_FUNCTION(value.ptr()));
    } else if (py::hasattr(value, "__func__")) {  // a static method
        function = value.attr("__func__");
    }
    if (!PyCFunction_Check(function.ptr())) return;
    PyObject* record = PyCFunction_GET_SELF(function.ptr());
    if (record == nullptr || !PyCapsule_CheckExact(record)) return;  // not one of pybind11's
    PyMethodDef* definition = reinterpret_cast<PyCFunctionObject*>(function.ptr())->m_ml;
    if (definition->ml_flags != (METH_VARARGS | METH_KEYWORDS)) return;
    const auto ours = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&call));
    if (definition->ml_meth == ours) return;
    dispatcher = definition->ml_meth;
    definition->ml_meth = ours;
}

}  // namespace

void answer_in_one_line(const py::module_& module) {
    for (const auto& [name, value] : module.attr("__dict__").cast<py::dict>()) intercept(value);
}

}  // namespace bayesaim::python

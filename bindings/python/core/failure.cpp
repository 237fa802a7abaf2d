//===- failure.cpp - statuses of the C ABI as Python exceptions -----------------------------------------===//
#include "failure.h"

#include <exception>

namespace nb = nanobind;

namespace sluice_python {
namespace {

/// sluice.Error.of: makes the exception of a status, a field, a message and HIP's code. Never freed:
/// exceptions may be made while the interpreter ends.
PyObject *make_error = nullptr;

void translate(const std::exception_ptr &thrown, void *) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Failure &failure) {
    const sluice_error &error = failure.error;
    const nb::object made = nb::handle(make_error)(error.code, error.field, error.message, error.hip_code);
    PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(made.ptr())), made.ptr());
  }
}

} // namespace

void bind_failures(nb::module_ &module) {
  nb::register_exception_translator(translate);
  module.def("set_error", [](nb::object factory) {
    Py_XDECREF(make_error);
    make_error = factory.release().ptr();
  });
  module.def("status_name", &sluice_status_name);
}

} // namespace sluice_python

//===- failure.h - statuses of the C ABI as Python exceptions -------------------------------------------===//
#pragma once

#include <sluice/sluice.h>

#include <nanobind/nanobind.h>

namespace sluice_python {

/// The result of a library call, on its way to the translator that turns it into an exception.
struct Failure {
  sluice_error error;
};

/// Registers the translator, and the function that gives the module the class to raise.
void bind_failures(nanobind::module_ &module);

/// Calls the library without Python's lock; throws Failure unless the status is SLUICE_OK.
template <typename Call> void check(Call &&call) {
  sluice_error error;
  sluice_error_init(&error, sizeof error);
  sluice_status status;
  {
    nanobind::gil_scoped_release unlocked;
    status = call(&error);
  }
  if (status != SLUICE_OK) throw Failure{error};
}

} // namespace sluice_python

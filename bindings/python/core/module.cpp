//===- module.cpp - the C ABI of libsluice.so as the Python module sluice._core -------------------------===//
//
// One function or class for each of sluice.h; the package around it is the interface for users.
//
//===----------------------------------------------------------------------------------------------------===//
#include "failure.h"
#include "handles.h"
#include "structs.h"

#include <nanobind/stl/string.h>

namespace nb = nanobind;
using namespace sluice_python;

NB_MODULE(_core, module) {
  // A program may end while a global variable still holds a context.
  nb::set_leak_warnings(false);
  bind_failures(module);
  bind_structs(module);
  bind_handles(module);
  module.def("version", &sluice_version);
  module.def("abi_version", &sluice_abi_version);
  module.def("build_info", [] {
    sluice_build build;
    sluice_build_init(&build, sizeof build);
    check([&](sluice_error *error) { return sluice_build_info(&build, error); });
    return build;
  });
}

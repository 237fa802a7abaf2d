//===- structs.h - the structs of the C ABI as Python classes -------------------------------------------===//
#pragma once

#include <nanobind/nanobind.h>

namespace sluice_python {

/// Problem, Args, Append, Merge and Launch, each field by its name, and the structs that the library fills
/// in.
void bind_structs(nanobind::module_ &module);

} // namespace sluice_python

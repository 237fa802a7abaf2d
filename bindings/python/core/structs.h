//===- structs.h - the structs of the C ABI as Python classes -------------------------------------------===//
#pragma once

#include <nanobind/nanobind.h>

namespace sluice_python {

/// Registers the structs, each member by its name.
void bind_structs(nanobind::module_ &module);

} // namespace sluice_python

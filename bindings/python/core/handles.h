//===- handles.h - contexts and plans that Python owns --------------------------------------------------===//
#pragma once

#include <nanobind/nanobind.h>

namespace sluice_python {

void bind_handles(nanobind::module_ &module);

} // namespace sluice_python

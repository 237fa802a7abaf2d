//===- TrimNops.h - every s_nop as small as its paths allow -----------------------------------*- C++ -*-===//
#pragma once

#include "target/Codegen.h"

namespace sluice {

/// Cuts the s_nop instructions of compiled code down to the wait states that some path needs, and removes
/// those that none needs. The rules are the emulator's, of all levels but HazardLevel::waived. LLVM's hazard
/// recogniser does not see that another write of a register came in between, and does not look into inline
/// assembly. Does nothing for chips without rules (Chip::hasHazardRules). The result is assembled and checked
/// again: a missing wait state is an error.
mlir::LogicalResult trimNops(CodeObject &code, const Chip &chip,
                             llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

} // namespace sluice

//===- RequireChip.h - the chip that a pass works for ---------------------------------------------------===//
#pragma once

#include "target/Chips.h"

#include "mlir/Pass/Pass.h"

namespace sluice {

/// The row of the chip table, or null after an error at `op` that names the pass and the chip.
inline const Chip *requireChip(mlir::Pass &pass, mlir::Operation *op, llvm::StringRef name) {
  const Chip *chip = findChip(name);
  if (!chip) op->emitError() << pass.getArgument() << ": chip '" << name << "' is not in the chip table";
  return chip;
}

} // namespace sluice

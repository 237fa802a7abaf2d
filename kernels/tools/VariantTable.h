//===- VariantTable.h - all rows of the variant table -----------------------------------------*- C++ -*-===//
#pragma once

#include "around/Around.h"
#include "attention/Variants.h"

#include <variant>

namespace sluice {

using Variant = std::variant<AttentionVariant, AroundVariant>;

/// The rows of a table as attention/Variants.inc is one, in order.
llvm::Expected<llvm::SmallVector<Variant>> parseVariantTable(llvm::StringRef table);

} // namespace sluice

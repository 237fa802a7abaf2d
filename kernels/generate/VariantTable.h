//===- VariantTable.h - variants by their names -----------------------------------------------*- C++ -*-===//
#pragma once

#include "attention/Variants.h"
#include "cache_ops/Variants.h"
#include "package/kernel_name.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <variant>
#include <vector>

namespace sluice {

/// A kernel's description and its name, which are equivalent; the name is also the kernel's symbol. A variant
/// can only be requested by name; a variant with a valid name may still be more than the builders support.
struct Variant {
  package::KernelName name;
  std::variant<AttentionVariant, CacheOpVariant> kind;
};

/// The variant with that name, whether a list has it or not.
llvm::Expected<Variant> parseVariant(llvm::StringRef name);

/// The variants of a list with one name on each line.
llvm::Expected<std::vector<Variant>> parseVariantList(llvm::StringRef list);

} // namespace sluice

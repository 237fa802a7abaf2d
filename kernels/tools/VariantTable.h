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

/// What a kernel is, and its name, which says the same and is also the kernel's symbol. The name is the one
/// way to ask for a variant; a variant that it can ask for may still be more than the builders can build.
struct Variant {
  package::KernelName name;
  std::variant<AttentionVariant, CacheOpVariant> kind;
};

/// The variant of a name, whether some list has it or not.
llvm::Expected<Variant> parseVariant(llvm::StringRef name);

/// The variants of a list with one name on each line.
llvm::Expected<std::vector<Variant>> parseVariantList(llvm::StringRef list);

} // namespace sluice

//===- Variants.h - the variants of the cache operations as values ----------------------------*- C++ -*-===//
#pragma once

#include <string>

namespace sluice {

struct CacheOpVariant {
  std::string operation; // "kv_append", "kv_copy", "append_step" or "merge_states"
  std::string from,
      to; // element types: of new rows and the cache, of source and target, or of the parts and O
};

} // namespace sluice

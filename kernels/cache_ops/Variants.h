//===- Variants.h - the variants of the cache operations as values ----------------------------*- C++ -*-===//
#pragma once

#include <string>

namespace sluice {

struct CacheOpVariant {
  std::string operation; // "kv_append", "append_step" or "merge_states"
  std::string from, to;  // element types: of new rows and the cache, or of the parts and O
};

} // namespace sluice

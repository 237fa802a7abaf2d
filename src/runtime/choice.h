//===- choice.h - the kernels of a plan -----------------------------------------------------------------===//
#pragma once

#include "package/manifest.h"
#include "runtime/cache_op_kernels.h"
#include "runtime/cost.h"
#include "runtime/splits.h"

#include <cstdint>
#include <optional>
#include <string>

namespace sluice::runtime {

/// The kernels for the sequences' own keys. A sequence of at most `few_rows` query rows goes to `few`, in
/// every batch; a longer one goes to `many`. One of the two may be missing: then no call has sequences for
/// it.
struct OwnChoice {
  const package::PackedKernel *many = nullptr; // prefill, without splits of its keys
  const package::PackedKernel *few = nullptr;  // decode; prefill only if it is the only kernel of the plan
  int32_t few_rows = 0;                        // 0 without `few`; without `many` at least a call's rows
  Splits splits;                               // of the keys of `few`
  std::optional<Estimate> estimate; // of main() and its merge at the problem's bounds, if chosen by cost
  std::string reason;               // for main(), in a sentence

  /// The kernel after which a plan is named. Others may run beside it.
  const package::PackedKernel &main() const { return many != nullptr ? *many : *few; }
};

/// The kernel of a cascade's prefixes. Its splits are counted from first_split on, after those of the own
/// keys.
struct PrefixChoice {
  const package::PackedKernel *kernel = nullptr; // null without prefixes
  Splits splits;
  uint32_t first_split = 0;
  std::optional<Estimate> estimate; // if chosen by cost
};

struct Choice {
  OwnChoice own;
  PrefixChoice prefix;
  const CacheOpKernel *merging = nullptr; // null: `parts` is 1, and kernels store O itself
  uint32_t parts = 1;                     // of a row in workspace: splits of the own keys and of prefixes
  uint64_t workspace_bytes = 0;
  std::string reason; // in a sentence
};

} // namespace sluice::runtime

//===- kernels.h - the attention kernels of a pack, and which of them the library chooses ---------------===//
#pragma once

#include "conformance/attention/cases.h"
#include "conformance/shared/target.h"

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sluice::conformance {

/// An attention kernel, as its name and the library describe it.
struct Kernel {
  std::string name;
  std::set<std::string, std::less<>> claims = {}; // the features that the library lists
  Dtype dtype = Dtype::f16;                       // as of a case
  Cache cache = Cache::same;
  HeadSizes head_size = 128;
  int tile_q = 0, tile_kv = 0;
  bool prefill = false; // for many rows: sequences of few rows use another kernel
  bool paged = false;   // serves only K and V in pages
  bool mla = false;     // serves only SLUICE_KV_V_IN_K
  bool columns = false; // serves only V by columns
};

/// The plan for a problem.
struct Answer {
  std::string kernel;
  bool has_parts = false; // keys are split among workgroups, and the results merged
};

/// The shapes of a target's attention kernels, each once.
Shapes shapes(const Target &target);
std::vector<Kernel> attention_kernels(const Target &target);

/// Nothing if the library refuses the case.
std::optional<Answer> ask(const Target &target, const Case &c);

} // namespace sluice::conformance

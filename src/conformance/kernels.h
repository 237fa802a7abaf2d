//===- kernels.h - the kernels of a pack, and which of them the library chooses -------------------------===//
//
// The library answers through the C ABI, for a chip by its name: nothing here needs a device.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "cases.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <sluice/sluice.h>
#include <string>
#include <vector>

namespace sluice::conformance {

/// A kernel pack in place of the library's own; empty for the library's.
using Pack = std::vector<std::byte>;

/// An attention kernel, as its name and the library describe it.
struct Kernel {
  std::string name;
  std::set<std::string, std::less<>> claims = {}; // the features that the library lists
  Dtype dtype = Dtype::f16;                       // as of a case
  Cache cache = Cache::same;
  HeadSizes head_size = 128;
  int tile_q = 0, tile_kv = 0;
  bool prefill = false; // for many rows: sequences of few rows use another kernel
  bool paged = false;   // serves only SLUICE_MODE_PAGED
  bool mla = false;     // serves only SLUICE_V_IN_K
  bool columns = false; // serves only V by columns
};

/// How many cases each kernel gets.
enum class Level : uint8_t {
  quick, // for attention all features together, without a causal mask and with one
  full,  // and every feature separately
};

/// The plan for a problem.
struct Answer {
  std::string kernel;
  bool has_parts = false; // keys are split among workgroups, and the results merged
};

/// A chip with this many compute units, on which the choice between kernels depends.
class Target {
public:
  /// Throws if the pack cannot be read.
  Target(const Pack &pack, uint32_t compute_units);

  /// The shapes of the attention kernels, each once.
  Shapes shapes() const;
  std::vector<Kernel> attention_kernels() const;
  /// For an operation of sluice_kernel_info.
  std::vector<std::string> names(std::string_view operation) const;
  /// Nothing if the library refuses the case.
  std::optional<Answer> ask(const Case &c) const;

private:
  struct Destroy {
    void operator()(sluice_context *context) const { sluice_context_destroy(context); }
  };
  std::unique_ptr<sluice_context, Destroy> context;
};

/// All kernels of a context.
std::vector<sluice_kernel_info> list_kernels(const sluice_context *context);

/// A description with a pack in it, which must outlive the context.
sluice_context_desc context_desc(uint32_t kind, const Pack &pack);

} // namespace sluice::conformance

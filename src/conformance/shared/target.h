//===- target.h - a chip for which the library answers, and the kernels of a pack -----------------------===//
#pragma once

#include <sluice/sluice.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::conformance {

/// A kernel pack in place of the library's own; empty for the library's.
using Pack = std::vector<std::byte>;

/// How many cases each kernel gets.
enum class Level : uint8_t {
  quick, // for attention all features together, without a causal mask and with one
  full,  // and every feature separately
};

/// A chip with this many compute units, on which the choice between kernels depends. The library answers for
/// it through the C ABI, by the chip's name: no device is needed.
class Target {
public:
  /// Throws if the pack cannot be read.
  Target(const Pack &pack, uint32_t compute_units);

  const sluice_context *context() const { return created.get(); }
  /// For an operation of sluice_kernel_info.
  std::vector<std::string> names(std::string_view operation) const;

private:
  struct Destroy {
    void operator()(sluice_context *context) const { sluice_context_destroy(context); }
  };
  std::unique_ptr<sluice_context, Destroy> created;
};

/// All kernels of a context.
std::vector<sluice_kernel_info> list_kernels(const sluice_context *context);

/// A description with a pack in it, which must outlive the context.
sluice_context_desc context_desc(uint32_t kind, const Pack &pack);

} // namespace sluice::conformance

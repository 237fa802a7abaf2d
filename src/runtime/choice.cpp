//===- choice.cpp - which kernel serves a problem -------------------------------------------------------===//
#include "runtime/choice.h"

#include "runtime/dtype.h"
#include "runtime/kernel_features.h"
#include "support/checked.h"
#include "support/failure.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace sluice::runtime {
namespace {

using support::divide_up;
using support::Failure;
using support::Status;
using support::text;
using Kernels = std::vector<const package::PackedKernel *>;

// kv_head = (q_head * magic) >> 31 is exact while the product of head and ratio stays below 2^31.
constexpr int32_t max_q_heads = 32768;

[[noreturn]] void refuse(std::string_view field, std::string message) {
  throw Failure(Status::unsupported, std::string(field), std::move(message));
}

/// Keeps the kernels whose number in a place is the wanted one; refuses, with the nearest number there is, if
/// none are left.
template <typename Get> void keep_dim(Kernels &kernels, std::string_view field, int32_t wanted, Get get) {
  int32_t nearest = 0;
  for (const package::PackedKernel *kernel : kernels) {
    const int32_t dim = int32_t(get(kernel->entry.name));
    if (nearest == 0 || std::abs(dim - wanted) < std::abs(nearest - wanted)) nearest = dim;
  }
  std::erase_if(kernels, [&](const auto *kernel) { return int32_t(get(kernel->entry.name)) != wanted; });
  if (kernels.empty()) refuse(field, text(field, " is ", wanted, "; nearest supported: ", nearest));
}

void keep_dtype(Kernels &kernels, const sluice_problem &problem) {
  std::vector<std::string> types;
  for (const package::PackedKernel *kernel : kernels) {
    const std::string &type = kernel->entry.name.dtype;
    if (std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
  }
  const std::string_view wanted = dtype_name(problem.q_type);
  if (std::find(types.begin(), types.end(), wanted) == types.end()) {
    refuse("q_type", text("q_type is ", wanted, "; nearest supported: ", types.front()));
  }
  const auto check_equal = [&](std::string_view field, uint32_t type) {
    if (type != problem.q_type) {
      refuse(field, text(field, " is ", dtype_name(type), " and q_type ", wanted,
                         "; nearest supported: ", wanted, " for all of Q, K, V and O"));
    }
  };
  check_equal("k_type", problem.k_type);
  check_equal("v_type", problem.v_type);
  check_equal("o_type", problem.o_type);
  std::erase_if(kernels, [&](const auto *kernel) { return kernel->entry.name.dtype != wanted; });
}

void keep_feature(Kernels &kernels, const sluice_problem &problem, const Feature &feature) {
  std::erase_if(kernels, [&](const auto *kernel) { return !has_feature(kernel->entry, feature.name); });
  if (kernels.empty()) {
    refuse(feature.field, text(feature.asked(problem), "; nearest supported: ", feature.nearest));
  }
}

/// Workgroups of a launch at the problem's bounds; 0 if a bound is missing.
uint64_t workgroups(const sluice_problem &problem, uint32_t tile_q) {
  return uint64_t(problem.max_batch) * uint64_t(problem.q_heads) *
         divide_up(uint64_t(problem.max_q_len), uint64_t{tile_q});
}

} // namespace

Choice choose_kernel(const Context &context, const sluice_problem &problem) {
  Kernels kernels = context.kernels();
  std::erase_if(kernels,
                [](const auto *kernel) { return kernel->entry.name.operation != "attention_forward"; });
  if (kernels.empty()) refuse("mode", "the kernel pack has no attention kernels");
  keep_dtype(kernels, problem);
  keep_dim(kernels, "head_dim_qk", problem.head_dim_qk, [](const auto &name) { return name.head_dim_qk; });
  keep_dim(kernels, "head_dim_v", problem.head_dim_v, [](const auto &name) { return name.head_dim_v; });
  for (const Feature &feature : features()) {
    if (feature.is_needed(problem)) keep_feature(kernels, problem, feature);
  }
  if (problem.q_heads > max_q_heads) {
    refuse("q_heads", text("q_heads is ", problem.q_heads, "; nearest supported: ", max_q_heads));
  }

  // Highest tile first; equal heights by name.
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const auto *a, const auto *b) { return a->entry.name.tile_q > b->entry.name.tile_q; });
  const bool batch_counts = problem.determinism != SLUICE_DETERMINISM_BATCH_INVARIANT;
  const uint32_t compute_units = context.device().compute_units;
  Choice choice = {kernels.front(), text("the highest of ", kernels.size(),
                                         " query tiles: the bounds do not ask for a lower one")};
  for (const package::PackedKernel *kernel : kernels) {
    const uint32_t tile_q = kernel->entry.name.tile_q;
    const uint32_t higher_tile_q = choice.kernel->entry.name.tile_q;
    if (tile_q == higher_tile_q) continue;
    const uint64_t groups = workgroups(problem, higher_tile_q);
    if (problem.max_q_len != 0 && problem.max_q_len <= int32_t(tile_q)) {
      choice = {kernel, text("max_q_len ", problem.max_q_len, " fits a query tile of ", tile_q)};
    } else if (batch_counts && groups != 0 && groups < compute_units &&
               workgroups(problem, tile_q) > groups) {
      choice = {kernel, text("query tiles of ", higher_tile_q, " would make ", groups, " workgroups for ",
                             compute_units, " compute units; tiles of ", tile_q, " make ",
                             workgroups(problem, tile_q))};
    }
  }
  return choice;
}

} // namespace sluice::runtime

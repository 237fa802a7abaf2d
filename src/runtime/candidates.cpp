//===- candidates.cpp - which kernels can serve a problem -----------------------------------------------===//
#include "runtime/candidates.h"

#include "calls/problem.h"
#include "features/all.h"
#include "package/chips.h"
#include "runtime/dtype.h"
#include "runtime/kernel_features.h"
#include "runtime/problem.h"
#include "runtime/splits.h"
#include "support/checked.h"
#include "support/failure.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::runtime {
namespace {

using support::Failure;
using support::Status;
using support::text;

constexpr int32_t max_q_heads = 32768;    // of a grid
constexpr int64_t max_grid_tiles = 65535; // the same

[[noreturn]] void refuse(std::string_view field, std::string message) {
  throw Failure(Status::unsupported, std::string(field), std::move(message));
}

/// The next number after the wanted one, up to `most`, that is served, since rows can be padded; else the
/// one before it; `most` if none is.
template <typename Served> int32_t next_served(int32_t most, int32_t wanted, Served is_served) {
  for (int32_t dim = wanted; dim <= most; ++dim)
    if (is_served(dim)) return dim;
  for (int32_t dim = std::min(wanted, most); dim > 0; --dim)
    if (is_served(dim)) return dim;
  return most;
}

/// Keeps the kernels that serve a head dim: one of their own or, with zero fill, a smaller one. If none do,
/// refuses with the next number that is served. `get`: the largest head dim for a kernel.
template <typename Get, typename Served>
void keep_dim(Kernels &kernels, std::string_view field, int32_t wanted, std::string_view why, Get get,
              Served is_served) {
  int32_t nearest = 0;
  for (const package::PackedKernel *kernel : kernels) {
    const int32_t dim = next_served(get(kernel->entry.name), wanted, is_served);
    const bool is_nearer = dim >= wanted ? nearest < wanted || dim < nearest : dim > nearest;
    if (nearest == 0 || is_nearer) nearest = dim;
  }
  std::erase_if(kernels,
                [&](const auto *kernel) { return wanted > get(kernel->entry.name) || !is_served(wanted); });
  if (kernels.empty())
    refuse(field, text(field, " is ", wanted, nearest > wanted ? why : "", "; nearest supported: ", nearest));
}

void keep_dims(Kernels &kernels, const calls::Problem &problem) {
  const bool is_padded = problem.flags & calls::padded_rows, in_k = problem.flags & calls::v_in_k;
  const bool is_fp8 = problem.o_type == SLUICE_E4M3FNUZ;
  const auto is_row = [&](int32_t dim) { return is_padded || dim % 8 == 0; };
  // Kernels store 16 columns of FP8 at a time.
  const auto is_result = [&](int32_t dim) { return is_row(dim) && (!is_fp8 || row_elements(dim) % 16 == 0); };
  const auto has_v = [&](int32_t dim) {
    return is_row(dim) && (!in_k || !is_fp8 || row_elements(dim) >= 16);
  };
  const auto why = [&](int32_t dim) -> std::string_view {
    return dim % 8 != 0 && !is_padded ? " without SLUICE_ATTENTION_PADDED_ROWS" : "";
  };
  keep_dim(
      kernels, "head_dim_qk", problem.head_dim_qk, why(problem.head_dim_qk),
      [](const package::KernelName &name) { return int32_t(name.head_dim_qk); }, has_v);
  keep_dim(
      kernels, "head_dim_v", problem.head_dim_v, why(problem.head_dim_v),
      [&](const package::KernelName &name) {
        return in_k ? std::min(int32_t(name.head_dim_v), problem.head_dim_qk) : int32_t(name.head_dim_v);
      },
      is_result);
}

/// Keeps the kernels that read rows once as K and V, where there are any.
void keep_readers_of_k(Kernels &kernels) {
  const auto reads_once = [](const auto *kernel) { return kernel->entry.name.form == "mla"; };
  if (std::ranges::any_of(kernels, reads_once))
    std::erase_if(kernels, [&](const auto *kernel) { return !reads_once(kernel); });
}

/// Keeps the kernels with the smallest head dims.
void keep_smallest(Kernels &kernels) {
  uint64_t smallest = UINT64_MAX;
  const auto size = [](const auto *kernel) {
    return uint64_t{kernel->entry.name.head_dim_qk} + kernel->entry.name.head_dim_v;
  };
  for (const package::PackedKernel *kernel : kernels)
    smallest = std::min(smallest, size(kernel));
  std::erase_if(kernels, [&](const auto *kernel) { return size(kernel) != smallest; });
}

/// Keeps the kernels that have the wanted type in a place; if none do, refuses and names the nearest type.
template <typename Get> void keep_type(Kernels &kernels, std::string_view field, uint32_t wanted, Get get) {
  const std::string_view nearest =
      get((*std::ranges::min_element(kernels, {}, [&](const auto *kernel) {
            return dtype_distance(wanted, dtype_of_name(get(kernel->entry.name)));
          }))->entry.name);
  std::erase_if(kernels, [&](const auto *kernel) { return get(kernel->entry.name) != dtype_name(wanted); });
  if (kernels.empty())
    refuse(field, text(field, " is ", dtype_name(wanted), "; nearest supported: ", nearest));
}

/// Whether O is of a type that every kernel stores, whatever type it is named for.
bool stores_any(uint32_t o_type) {
  return o_type == SLUICE_F32 || o_type == SLUICE_E4M3FNUZ;
}

void keep_types(Kernels &kernels, const calls::Problem &problem) {
  const auto q_type_of = [](const package::KernelName &name) -> std::string_view { return name.dtype; };
  const auto kv_type_of = [](const package::KernelName &name) -> std::string_view {
    return name.kv_dtype.empty() ? name.dtype : name.kv_dtype;
  };
  const auto o_type_of = [](const package::KernelName &name) -> std::string_view {
    return name.o_dtype.empty() ? name.dtype : name.o_dtype;
  };
  keep_type(kernels, "q_type", problem.q_type, q_type_of);
  keep_type(kernels, "k_type", problem.k_type, kv_type_of);
  keep_type(kernels, "v_type", problem.v_type, kv_type_of);
  // All kernels can store O in F32, without rounding, and in the chip's FP8.
  if (!stores_any(problem.o_type)) keep_type(kernels, "o_type", problem.o_type, o_type_of);
}

/// Kernels for pages, for V in K or for V by columns serve nothing else.
void keep_forms(Kernels &kernels, const calls::Problem &problem) {
  const auto leave_out = [&](std::string_view form) {
    std::erase_if(kernels, [&](const auto *kernel) { return kernel->entry.name.form == form; });
  };
  if (problem.mode != calls::paged) leave_out("paged");
  if (kernels.empty()) refuse("page_size", "page_size is 0; nearest supported: 1 or more");
  if (!(problem.flags & calls::v_in_k)) leave_out("mla");
  if (kernels.empty()) refuse("flags", "flags lacks SLUICE_KV_V_IN_K; nearest supported: with it");
  if (problem.v_pack == 0) leave_out("columns");
  if (kernels.empty()) {
    refuse("v_pack",
           text("v_pack is 0; nearest supported: ", problem.mode == calls::paged ? 8 : SLUICE_PACK_ALL));
  }
}

void keep_feature(Kernels &kernels, const calls::Problem &problem, const features::Need &need) {
  std::erase_if(kernels, [&](const auto *kernel) { return !has_feature(kernel->entry, need.name); });
  if (kernels.empty()) {
    const bool with_columns = problem.v_pack != 0 && need.field != "v_pack";
    refuse(need.field, text(need.asked(problem), with_columns ? ", and v_pack is given" : "",
                            "; nearest supported: ", need.nearest));
  }
}

/// If V is in K, kernels read K as V, but only kernels made for that support V in packs.
void keep_packs_of_v(Kernels &kernels, const calls::Problem &problem) {
  std::erase_if(kernels, [](const auto *kernel) { return kernel->entry.name.form != "mla"; });
  if (kernels.empty())
    refuse("k_pack", text("k_pack is ", problem.k_pack, " with SLUICE_KV_V_IN_K; nearest supported: 0"));
}

/// The nearest number of elements per pack: a power of two from 8 on that divides the row; 0 if none does.
int32_t nearest_k_pack(const calls::Problem &problem) {
  const auto wanted = uint32_t(problem.k_pack);
  const uint32_t below = std::bit_floor(wanted), above = std::bit_ceil(wanted);
  const uint32_t largest = 1u << std::countr_zero(uint32_t(problem.head_dim_qk));
  if (largest < 8) return 0;
  return int32_t(std::clamp(wanted - below <= above - wanted ? below : above, 8u, largest));
}

/// Checks numbers against the limits of the kernels' arithmetic and grids.
void check_numbers(const calls::Problem &problem) {
  if (problem.k_pack != 0 && (problem.k_pack % 8 != 0 || !std::has_single_bit(uint32_t(problem.k_pack)))) {
    refuse("k_pack", text("k_pack is ", problem.k_pack, "; nearest supported: ", nearest_k_pack(problem)));
  }
  features::for_each<&features::Feature::check_limits>([&](auto check) { check(problem); });
  if (problem.kv_heads > max_q_heads) {
    refuse("kv_heads", text("kv_heads is ", problem.kv_heads, "; nearest supported: ", max_q_heads));
  }
  if (problem.q_heads > max_q_heads) {
    refuse("q_heads", text("q_heads is ", problem.q_heads,
                           "; nearest supported: ", max_q_heads / problem.kv_heads * problem.kv_heads));
  }
}

/// The kernels that can serve the problem, of any number of rows.
Kernels serving(const Context &context, const calls::Problem &problem) {
  Kernels kernels = context.kernels();
  std::erase_if(kernels,
                [](const auto *kernel) { return kernel->entry.name.operation != "attention_forward"; });
  if (kernels.empty()) refuse("context", "the context's kernel pack has no attention kernels");
  const package::Chip *const chip = package::find_chip(context.device().chip);
  if (problem.o_type == SLUICE_E4M3FNUZ && (chip == nullptr || !chip->e4m3fnuz)) {
    refuse("o_type",
           text("o_type is e4m3fnuz, which ", context.device().chip, " does not have; nearest supported: ",
                dtype_name(problem.q_type == SLUICE_BF16 ? SLUICE_BF16 : SLUICE_F16)));
  }
  keep_types(kernels, problem);
  keep_forms(kernels, problem);
  keep_dims(kernels, problem);
  for (const features::Need &need : needs()) {
    if (need.is_needed(problem)) keep_feature(kernels, problem, need);
  }
  if (problem.flags & calls::v_in_k && problem.k_pack != 0) keep_packs_of_v(kernels, problem);
  check_numbers(problem);

  // With O in F32 or FP8, kernels that differ only in the 16-bit type of O are equivalent.
  if (stores_any(problem.o_type)) {
    std::erase_if(kernels, [&, first = kernels.front()](const auto *kernel) {
      return kernel->entry.name.o_dtype != first->entry.name.o_dtype;
    });
  }
  return kernels;
}

} // namespace

Candidates find_candidates(const Context &context, const calls::Problem &problem) {
  Candidates out;
  out.prefill = out.decode = serving(context, problem);
  std::erase_if(out.prefill, [](const auto *kernel) { return !kernel->entry.name.is_prefill(); });
  std::erase_if(out.decode, [](const auto *kernel) { return kernel->entry.name.is_prefill(); });
  keep_smallest(out.prefill);
  keep_smallest(out.decode);
  if (problem.flags & calls::v_in_k) keep_readers_of_k(out.decode);
  out.few_rows = std::max(int32_t(package::decode_rows_of_wave) / group_heads(problem), 1);
  const CacheOpKernel &merging =
      context.cache_op_kernels().find(CacheOperation::merge_states, SLUICE_F32, problem.o_type);
  if (merging.packed != nullptr) out.merging = &merging;
  return out;
}

Kernels find_prefix_candidates(const Candidates &candidates, const calls::Problem &problem) {
  if (candidates.merging == nullptr) {
    refuse("flags", "flags has SLUICE_ATTENTION_PREFIXES, but the kernel pack has no kernel to "
                    "merge its results; nearest supported: without it");
  }
  Kernels kernels = candidates.prefill;
  kernels.insert(kernels.end(), candidates.decode.begin(), candidates.decode.end());
  // A prefix may have all rows: a grid must hold their tiles.
  const int64_t rows = problem.max_q_tokens, group = group_heads(problem);
  const auto grid_rows = [&](const auto *kernel) {
    return max_grid_tiles * kernel->entry.name.tile_q / group;
  };
  int64_t most_rows = 0;
  for (const package::PackedKernel *kernel : kernels)
    most_rows = std::max(most_rows, grid_rows(kernel));
  most_rows = std::min(most_rows, most_cascade_rows(problem));
  if (rows > most_rows) {
    refuse("max_q_tokens",
           text("max_q_tokens is ", rows, " with ", problem.q_heads,
                " heads; with SLUICE_ATTENTION_PREFIXES the nearest supported is ", most_rows));
  }
  std::erase_if(kernels, [&](const auto *kernel) { return rows > grid_rows(kernel); });
  return kernels;
}

} // namespace sluice::runtime

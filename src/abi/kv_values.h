//===- kv_values.h - formats, caches and page tables of attention.h as members of the flat structs ------===//
//
// Attention and the cache operations share these. Each function throws support::Failure (invalid_argument or
// newer_struct) with the path of the member at fault, which begins with `path`. On the path of every run: no
// allocation unless something is wrong.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "abi/checks.h"
#include "calls/problem.h"

#include <sluice/attention.h>

#include <string_view>

namespace sluice::abi {

/// "path.name is value; it must be 0: why"
[[noreturn]] void not_zero(std::string_view path, std::string_view name, int64_t value, std::string_view why);
/// The member `name` (".pack") of the struct at `path` has no meaning here.
inline void check_zero_member(std::string_view path, std::string_view name, int64_t value,
                              std::string_view why) {
  if (value != 0) not_zero(path, name, value, why);
}
/// newer_struct for bits that this version does not know.
void check_known_bits(std::string_view path, uint32_t flags, uint32_t known);

/// Of Q and O, whose formats have nothing but a type and a scale.
void check_plain_format(std::string_view path, const sluice_format &format);

/// A sluice_kv_format. `flags` are those of a calls::Problem.
struct KvFormat {
  uint32_t flags;
  uint32_t k_type, v_type, k_scale_kind, v_scale_kind;
  int32_t scale_group;
  int32_t kv_heads, head_dim_qk, head_dim_v, page_size;
  uint32_t page_table_kind;
  int32_t k_pack, v_pack;
  bool operator==(const KvFormat &) const = default;
};

KvFormat flat_format(const sluice_kv_format *format, std::string_view path);
/// The memory of a sluice_kv, with its scales where the flat structs expect them.
struct KvMemory {
  sluice_tensor k, v;
  const float *k_scale, *v_scale; // per tensor and head
  sluice_tensor k_scales, v_scales, k_zeros, v_zeros;
  int64_t page_count;
};

struct Kv {
  KvFormat format;
  KvMemory memory;
};

/// The paths of a sluice_kv and of what it points to.
struct KvPaths {
  std::string_view kv, format, scales;
};

Kv flat_kv(const sluice_kv *kv, const KvPaths &paths);

/// The format of a plan: as the caller wrote it, and flat.
struct PlanFormat {
  sluice_kv_format given;
  KvFormat flat;
};

PlanFormat plan_format(const sluice_kv_format *format, std::string_view path);

/// The memory of a sluice_kv, which must have the plan's format.
KvMemory memory_of_format(const sluice_kv *kv, const PlanFormat &wanted, const KvPaths &paths);

struct KvPages {
  const void *table;
  const int32_t *starts;
  int64_t stride, head_stride;
};

/// A stride of 0 is refused for several sequences, and SLUICE_SHARED becomes 0.
KvPages flat_pages(const sluice_pages &pages, std::string_view path, uint32_t page_table_kind, int32_t count);
/// The same where all heads share the entries: unsupported if they do not.
KvPages flat_pages_of_all_heads(const sluice_pages &pages, std::string_view path, uint32_t page_table_kind,
                                int32_t count);

} // namespace sluice::abi

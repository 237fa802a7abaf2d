//===- kv_values.cpp - formats, caches and page tables of attention.h as members of the flat structs ----===//
#include "abi/kv_values.h"

#include "abi/sized.h"
#include "support/failure.h"

#include <string>

namespace sluice::abi {
namespace {

using support::Failure;
using support::Status;
using support::text;

constexpr std::string_view reserved = "it is reserved";

[[noreturn]] void invalid_member(std::string_view path, std::string_view name, std::string_view rule) {
  invalid(text(path, name), text(path, name, rule));
}

/// The flat structs have one size of groups and one bit for zero points.
void check_alike(const sluice_format &k, const sluice_format &v, std::string_view path) {
  if (k.scale_kind != SLUICE_SCALE_PER_GROUP || v.scale_kind != SLUICE_SCALE_PER_GROUP) return;
  if (k.scale_group != v.scale_group)
    unsupported(text(path, ".v.scale_group"), text(path, ".v.scale_group is ", v.scale_group,
                                                   "; nearest supported: that of K, ", k.scale_group));
  if (k.zero_points != v.zero_points)
    unsupported(text(path, ".v.zero_points"), text(path, ".v.zero_points is ", v.zero_points,
                                                   "; nearest supported: that of K, ", k.zero_points));
}

/// The paths of a format's members below that of the whole.
struct FormatNames {
  std::string_view type, scale_kind, scale_group, zero_points, pack, reserved;
};
constexpr FormatNames k_names = {".k.type",        ".k.scale_kind", ".k.scale_group",
                                 ".k.zero_points", ".k.pack",       ".k.reserved"};
constexpr FormatNames v_names = {".v.type",        ".v.scale_kind", ".v.scale_group",
                                 ".v.zero_points", ".v.pack",       ".v.reserved"};

void check_format(const sluice_format &format, std::string_view path, const FormatNames &names) {
  check_zero_member(path, names.reserved, format.reserved, reserved);
  if (format.zero_points > 1) invalid_member(path, names.zero_points, " must be 0 or 1");
  if (format.scale_kind == SLUICE_SCALE_PER_GROUP) return;
  check_zero_member(path, names.zero_points, format.zero_points, "only scales per group have zero points");
  check_zero_member(path, names.scale_group, format.scale_group, "only scales per group have groups");
}

void check_no_v(const sluice_format &v, std::string_view path) {
  constexpr std::string_view why = "flags has SLUICE_KV_V_IN_K";
  check_zero_member(path, v_names.type, v.type, why);
  check_zero_member(path, v_names.scale_kind, v.scale_kind, why);
  check_zero_member(path, v_names.pack, v.pack, why);
}

bool is_per_tensor_or_head(uint32_t scale_kind) {
  return scale_kind == SLUICE_SCALE_PER_TENSOR || scale_kind == SLUICE_SCALE_PER_HEAD;
}

/// Scales go where the flat structs have those of their kind. V in K has the scales of K.
void add_scales(KvMemory &out, const sluice_kv_scales &scales, const KvFormat &format) {
  const bool is_v_in_k = format.flags & SLUICE_V_IN_K;
  const sluice_tensor &v = is_v_in_k ? scales.k : scales.v;
  if (is_per_tensor_or_head(format.k_scale_kind)) {
    out.k_scale = static_cast<const float *>(scales.k.data);
  } else {
    out.k_scales = scales.k;
  }
  if (is_per_tensor_or_head(format.v_scale_kind)) {
    out.v_scale = static_cast<const float *>(v.data);
  } else {
    out.v_scales = v;
  }
  out.k_zeros = scales.k_zeros;
  out.v_zeros = is_v_in_k ? scales.k_zeros : scales.v_zeros;
}

} // namespace

void not_zero(std::string_view path, std::string_view name, int64_t value, std::string_view why) {
  invalid(text(path, name), text(path, name, " is ", value, "; it must be 0: ", why));
}

void check_known_bits(std::string_view path, uint32_t flags, uint32_t known) {
  if ((flags & ~known) == 0) return;
  throw Failure(Status::newer_struct, std::string(path),
                text(path, " has unknown bits ", support::hexadecimal(flags & ~known),
                     ": the library is older than the caller's header"));
}

KvFormat flat_format(const sluice_kv_format *given, std::string_view path) {
  sluice_kv_format copy;
  const sluice_kv_format &format = view(given, path, copy);
  if (format.flags != 0)
    check_known_bits(text(path, ".flags"), format.flags, SLUICE_KV_V_IN_K | SLUICE_KV_PAGE_INDEX_64);
  check_zero_member(path, ".reserved", format.reserved, reserved);
  const bool is_v_in_k = format.flags & SLUICE_KV_V_IN_K;
  check_format(format.k, path, k_names);
  check_format(format.v, path, v_names);
  check_alike(format.k, format.v, path);
  if (is_v_in_k) check_no_v(format.v, path);
  const sluice_format &v = is_v_in_k ? format.k : format.v;
  return {.flags = (is_v_in_k ? uint32_t{SLUICE_V_IN_K} : 0) |
                   (format.flags & SLUICE_KV_PAGE_INDEX_64 ? uint32_t{SLUICE_PAGE_INDEX_64} : 0) |
                   (format.k.zero_points || format.v.zero_points ? uint32_t{SLUICE_ZERO_POINTS} : 0),
          .k_type = format.k.type,
          .v_type = v.type,
          .k_scale_kind = format.k.scale_kind,
          .v_scale_kind = v.scale_kind,
          .scale_group = format.k.scale_group != 0 ? format.k.scale_group : format.v.scale_group,
          .kv_heads = format.kv_heads,
          .head_dim_qk = format.head_dim_qk,
          .head_dim_v = format.head_dim_v,
          .page_size = format.page_size,
          .page_table_kind = format.page_table,
          .k_pack = format.k.pack,
          .v_pack = format.v.pack};
}

KvFormat format_of(const sluice_problem &problem) {
  constexpr uint32_t flags = SLUICE_V_IN_K | SLUICE_PAGE_INDEX_64 | SLUICE_ZERO_POINTS;
  return {.flags = problem.flags & flags,
          .k_type = problem.k_type,
          .v_type = problem.v_type,
          .k_scale_kind = problem.k_scale_kind,
          .v_scale_kind = problem.v_scale_kind,
          .scale_group = problem.scale_group,
          .kv_heads = problem.kv_heads,
          .head_dim_qk = problem.head_dim_qk,
          .head_dim_v = problem.head_dim_v,
          .page_size = problem.page_size,
          .page_table_kind = problem.page_table_kind,
          .k_pack = problem.k_pack,
          .v_pack = problem.v_pack};
}

KvMemory flat_memory(const sluice_kv *given, std::string_view path, const KvFormat &wanted) {
  sluice_kv copy;
  const sluice_kv &kv = view(given, path, copy);
  check_zero_member(path, ".reserved", kv.reserved, reserved);
  if (flat_format(kv.format, path) != wanted)
    invalid_member(path, ".format", " is not the format that the plan was made with");
  KvMemory out = {.k = kv.k,
                  .v = kv.v,
                  .k_scale = nullptr,
                  .v_scale = nullptr,
                  .k_scales = {},
                  .v_scales = {},
                  .k_zeros = {},
                  .v_zeros = {},
                  .page_count = kv.page_count};
  if (kv.scales != nullptr) {
    sluice_kv_scales scales_copy;
    const sluice_kv_scales &scales = view(kv.scales, "kv.scales", scales_copy);
    check_zero_member(path, ".scales.reserved", scales.reserved, reserved);
    add_scales(out, scales, wanted);
  }
  if (wanted.page_size == 0 || kv.page_count == 1) return out;
  // A stride of 0 between pages would make all of them one.
  if (kv.k.data != nullptr && kv.k.stride[0] == 0)
    invalid_member(path, ".k.stride[0]", " is 0; it must be the elements from one page to the next");
  if (kv.v.data != nullptr && kv.v.stride[0] == 0)
    invalid_member(path, ".v.stride[0]", " is 0; it must be the elements from one page to the next");
  return out;
}

KvPages flat_pages(const sluice_pages &pages, std::string_view path, uint32_t page_table_kind,
                   int32_t count) {
  KvPages out = {pages.table, pages.starts, pages.stride, pages.head_stride};
  if (page_table_kind != SLUICE_PAGE_TABLE_BLOCK) return out;
  if (pages.stride == SLUICE_SHARED) {
    out.stride = 0;
  } else if (pages.stride == 0 && count > 1) {
    invalid_member(path, ".stride",
                   " is 0; it must be the entries from one sequence's first to the next one's, "
                   "or SLUICE_SHARED (-1) for one table that all sequences share");
  }
  return out;
}

} // namespace sluice::abi

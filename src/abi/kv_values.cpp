//===- kv_values.cpp - formats, caches and page tables of attention.h as members of the flat structs ----===//
#include "abi/kv_values.h"

#include "abi/cache_checks.h"
#include "abi/sized.h"
#include "calls/problem.h"
#include "support/failure.h"

#include <cstring>
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
  if (format.zero_points > 1)
    invalid_member(path, names.zero_points, text(" is ", format.zero_points, "; it must be 0 or 1"));
  if (format.scale_kind == SLUICE_SCALE_PER_GROUP) {
    if (format.scale_group != 32 && format.scale_group != 64)
      invalid_member(path, names.scale_group, text(" is ", format.scale_group, "; it must be 32 or 64"));
    return;
  }
  check_zero_member(path, names.zero_points, format.zero_points, "only scales per group have zero points");
  check_zero_member(path, names.scale_group, format.scale_group, "only scales per group have groups");
}

void check_no_v(const sluice_format &v, std::string_view path) {
  constexpr std::string_view why = "V is in K (SLUICE_KV_V_IN_K)";
  check_zero_member(path, v_names.type, v.type, why);
  check_zero_member(path, v_names.scale_kind, v.scale_kind, why);
  check_zero_member(path, v_names.pack, v.pack, why);
}

bool is_per_tensor_or_head(uint32_t scale_kind) {
  return scale_kind == SLUICE_SCALE_PER_TENSOR || scale_kind == SLUICE_SCALE_PER_HEAD;
}

void check_no_numbers(const sluice_tensor &numbers, std::string_view path, std::string_view name,
                      std::string_view why) {
  if (is_given(numbers)) not_absent(text(path, name), numbers, why);
}

/// What the formats do not ask for is not given.
void check_scales(const sluice_kv_scales &scales, std::string_view path, const sluice_kv_format &format) {
  constexpr std::string_view none = "its format has no scales", no_zeros = "its format has no zero points";
  check_zero_member(path, ".reserved", scales.reserved, reserved);
  if (format.k.scale_kind == SLUICE_SCALE_NONE) check_no_numbers(scales.k, path, ".k", none);
  if (format.v.scale_kind == SLUICE_SCALE_NONE) check_no_numbers(scales.v, path, ".v", none);
  if (format.k.zero_points == 0) check_no_numbers(scales.k_zeros, path, ".k_zeros", no_zeros);
  if (format.v.zero_points == 0) check_no_numbers(scales.v_zeros, path, ".v_zeros", no_zeros);
}

/// Scales go where the flat structs have those of their kind. V in K has the scales of K.
void add_scales(KvMemory &out, const sluice_kv_scales &scales, const KvFormat &format) {
  const bool is_v_in_k = format.flags & calls::v_in_k;
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

/// Refuses the first member of a format that is not as the plan has it.
void check_same_format(const KvFormat &given, const KvFormat &wanted, std::string_view path) {
  if (given == wanted) return;
  const auto same = [&](std::string_view name, auto member) {
    if (given.*member == wanted.*member) return;
    invalid(text(path, name),
            text(path, name, " is ", given.*member, "; the problem has ", wanted.*member, " there"));
  };
  const auto same_bit = [&](std::string_view name, uint32_t bit, std::string_view what) {
    if ((given.flags & bit) == (wanted.flags & bit)) return;
    invalid(text(path, name),
            text(path, name, given.flags & bit ? " has " : " lacks ", what,
                 given.flags & bit ? ", which the problem lacks" : ", which the problem has"));
  };
  same(".kv_heads", &KvFormat::kv_heads);
  same(".head_dim_qk", &KvFormat::head_dim_qk);
  same(".head_dim_v", &KvFormat::head_dim_v);
  same(".page_size", &KvFormat::page_size);
  same(".page_table", &KvFormat::page_table_kind);
  same_bit(".flags", calls::v_in_k, "SLUICE_KV_V_IN_K");
  same_bit(".flags", calls::page_index_64, "SLUICE_KV_PAGE_INDEX_64");
  same(k_names.type, &KvFormat::k_type);
  same(v_names.type, &KvFormat::v_type);
  same(k_names.scale_kind, &KvFormat::k_scale_kind);
  same(v_names.scale_kind, &KvFormat::v_scale_kind);
  same(".k.scale_group", &KvFormat::scale_group);
  same_bit(".k.zero_points", calls::zero_points, "zero points");
  same(k_names.pack, &KvFormat::k_pack);
  same(v_names.pack, &KvFormat::v_pack);
}

/// `format` is that of `kv`.
KvMemory memory_of(const sluice_kv &kv, const KvFormat &format, const KvPaths &paths) {
  check_zero_member(paths.kv, ".reserved", kv.reserved, reserved);
  KvMemory out = {};
  out.k = kv.k;
  out.v = kv.v;
  out.page_count = kv.page_count;
  if (kv.scales != nullptr) {
    sluice_kv_scales scales_copy;
    const sluice_kv_scales &scales = view(kv.scales, paths.scales, scales_copy);
    check_scales(scales, paths.scales, *kv.format);
    add_scales(out, scales, format);
  }
  if (format.page_size == 0 || kv.page_count == 1) return out;
  // A stride of 0 between pages would make all of them one.
  constexpr std::string_view rule = " is 0; it must be the elements from one page to the next";
  if (kv.k.data != nullptr && kv.k.stride[0] == 0) invalid_member(paths.kv, ".k.stride[0]", rule);
  const bool has_v = !(format.flags & calls::v_in_k);
  if (has_v && kv.v.data != nullptr && kv.v.stride[0] == 0) invalid_member(paths.kv, ".v.stride[0]", rule);
  return out;
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

void check_plain_format(std::string_view path, const sluice_format &format) {
  check_zero_member(path, ".scale_group", format.scale_group, "only K and V have groups");
  check_zero_member(path, ".zero_points", format.zero_points, "only K and V have zero points");
  check_zero_member(path, ".pack", format.pack, "only K and V have packs");
  check_zero_member(path, ".reserved", format.reserved, reserved);
}

KvFormat flat_format(const sluice_kv_format *given, std::string_view path) {
  sluice_kv_format copy;
  const sluice_kv_format &format = view(given, path, copy);
  constexpr uint32_t known = SLUICE_KV_V_IN_K | SLUICE_KV_PAGE_INDEX_64;
  if (format.flags & ~known) check_known_bits(text(path, ".flags"), format.flags, known);
  check_zero_member(path, ".reserved", format.reserved, reserved);
  const bool is_v_in_k = format.flags & SLUICE_KV_V_IN_K;
  check_format(format.k, path, k_names);
  check_format(format.v, path, v_names);
  check_alike(format.k, format.v, path);
  if (is_v_in_k) check_no_v(format.v, path);
  const sluice_format &v = is_v_in_k ? format.k : format.v;
  return {.flags = (is_v_in_k ? uint32_t{calls::v_in_k} : 0) |
                   (format.flags & SLUICE_KV_PAGE_INDEX_64 ? uint32_t{calls::page_index_64} : 0) |
                   (format.k.zero_points || format.v.zero_points ? uint32_t{calls::zero_points} : 0),
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

Kv flat_kv(const sluice_kv *given, const KvPaths &paths) {
  sluice_kv copy;
  const sluice_kv &kv = view(given, paths.kv, copy);
  const KvFormat format = flat_format(kv.format, paths.format);
  return {format, memory_of(kv, format, paths)};
}

PlanFormat plan_format(const sluice_kv_format *given, std::string_view path) {
  sluice_kv_format copy;
  const KvFormat flat = flat_format(given, path);
  return {view(given, path, copy), flat};
}

KvMemory memory_of_format(const sluice_kv *given, const PlanFormat &wanted, const KvPaths &paths) {
  sluice_kv copy;
  const sluice_kv &kv = view(given, paths.kv, copy);
  // Nearly every call has the plan's own format, byte by byte, which needs no other check.
  constexpr size_t size = sizeof wanted.given;
  const bool is_equal = kv.format != nullptr && kv.format->struct_size == size &&
                        std::memcmp(kv.format, &wanted.given, size) == 0;
  if (!is_equal) check_same_format(flat_format(kv.format, paths.format), wanted.flat, paths.format);
  return memory_of(kv, wanted.flat, paths);
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

KvPages flat_pages_of_all_heads(const sluice_pages &pages, std::string_view path, uint32_t page_table_kind,
                                int32_t count) {
  if (pages.head_stride != 0)
    unsupported(text(path, ".head_stride"),
                text(path, ".head_stride is ", pages.head_stride, "; nearest supported: 0"));
  if (page_table_kind == SLUICE_PAGE_TABLE_BLOCK && pages.stride < SLUICE_SHARED)
    invalid(text(path, ".stride"), text(path, ".stride is ", pages.stride,
                                        "; it must not be negative, except as SLUICE_SHARED (-1)"));
  return flat_pages(pages, path, page_table_kind, count);
}

} // namespace sluice::abi

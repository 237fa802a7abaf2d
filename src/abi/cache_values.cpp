//===- cache_values.cpp - the values of cache.h as flat structs -----------------------------------------===//
#include "abi/cache_values.h"

#include "abi/kv_values.h"
#include "abi/sized.h"
#include "calls/cache_ops.h"
#include "calls/problem.h"
#include "runtime/dtype.h"

#include <cmath>
#include <string>
#include <string_view>

namespace sluice::abi {
namespace {

using support::text;

constexpr std::string_view reserved = "it is reserved";

constexpr KvPaths kv_paths = {"kv", "kv.format", "kv.scales"};
constexpr KvPaths source_paths = {"source", "source.format", "source.scales"};
constexpr KvPaths target_paths = {"target", "target.format", "target.scales"};

void check_one_type(const KvFormat &format, std::string_view path) {
  if (format.k_type == format.v_type) return;
  unsupported(text(path, ".format.v.type"),
              text(path, ".format.v.type is ", runtime::dtype_text(format.v_type),
                   "; nearest supported: that of K, ", runtime::dtype_text(format.k_type)));
}

void check_in_pages(const KvFormat &format, std::string_view path, bool wanted) {
  const auto refuse = [&](std::string_view name, int64_t value, std::string_view rule) {
    invalid(text(path, name), text(path, name, " is ", value, rule));
  };
  constexpr std::string_view none = "; it must be 0: rows are contiguous";
  if ((format.page_size != 0) != wanted)
    refuse(".format.page_size", format.page_size,
           wanted ? "; it must be at least 1: the rows are in pages" : none);
  if (format.page_table_kind > SLUICE_PAGE_TABLE_CSR)
    check_known(text(path, ".format.page_table"), format.page_table_kind, SLUICE_PAGE_TABLE_CSR,
                "SLUICE_PAGE_TABLE_CSR (2)");
  if ((format.page_table_kind != SLUICE_PAGE_TABLE_NONE) != wanted)
    refuse(
        ".format.page_table", format.page_table_kind,
        wanted
            ? "; it must be SLUICE_PAGE_TABLE_BLOCK (1) or SLUICE_PAGE_TABLE_CSR (2): the rows are in pages"
            : none);
  if (!wanted && format.flags & calls::page_index_64)
    invalid(text(path, ".format.flags"),
            text(path, ".format.flags has SLUICE_KV_PAGE_INDEX_64, but rows are contiguous"));
}

/// The flat structs of cache operations do not say how many elements of K are V.
void check_v_in_k(const KvFormat &format, std::string_view path) {
  if (!(format.flags & calls::v_in_k)) return;
  if (format.head_dim_v >= 1 && format.head_dim_v <= format.head_dim_qk) return;
  invalid(text(path, ".format.head_dim_v"), text(path, ".format.head_dim_v is ", format.head_dim_v,
                                                 "; it must be from 1 to head_dim_qk, which is ",
                                                 format.head_dim_qk, ", with SLUICE_KV_V_IN_K"));
}

/// V has no elements of its own if it is in K.
int32_t own_v(const KvFormat &format) {
  return format.flags & calls::v_in_k ? 0 : format.head_dim_v;
}

void add_cache(calls::Append &out, const Kv &kv) {
  const KvFormat &format = kv.format;
  check_one_type(format, "kv");
  check_in_pages(format, "kv", true);
  check_v_in_k(format, "kv");
  out.flags = format.flags & (calls::v_in_k | calls::zero_points);
  out.cache_type = format.k_type;
  out.kv_heads = format.kv_heads;
  out.head_dim_qk = format.head_dim_qk;
  out.head_dim_v = own_v(format);
  out.page_size = format.page_size;
  out.k_pack = format.k_pack;
  out.v_pack = format.v_pack;
  out.k_scale_kind = format.k_scale_kind;
  out.scale_group = format.scale_group;
  out.k_cache = kv.memory.k;
  out.k_scale = kv.memory.k_scale;
  out.k_scales = kv.memory.k_scales;
  out.k_zeros = kv.memory.k_zeros;
  out.page_count = kv.memory.page_count;
  out.v_cache = kv.memory.v;
  if (format.flags & calls::v_in_k) return;
  out.v_scale_kind = format.v_scale_kind;
  out.v_scale = kv.memory.v_scale;
  out.v_scales = kv.memory.v_scales;
  out.v_zeros = kv.memory.v_zeros;
}

void add_places(calls::Append &out, const sluice_append_args &args, const KvFormat &format) {
  out.slots = args.slots;
  out.batch = args.batch;
  out.starts = args.starts;
  out.kv_lengths = args.lengths;
  out.positions = args.positions;
  if (args.starts == nullptr) {
    check_absent("pages.table", args.pages.table, "starts is NULL");
    check_absent("pages.starts", args.pages.starts, "starts is NULL");
    check_zero_member("pages", ".stride", args.pages.stride, "starts is NULL");
    check_zero_member("pages", ".head_stride", args.pages.head_stride, "starts is NULL");
    return;
  }
  out.flags |= format.flags & calls::page_index_64;
  out.page_table_kind = format.page_table_kind;
  const KvPages pages = flat_pages_of_all_heads(args.pages, "pages", format.page_table_kind, args.batch);
  out.page_table = pages.table;
  out.page_starts = pages.starts;
  out.page_table_stride = pages.stride;
}

void add_rotation(calls::Append &out, const sluice_rotation *given) {
  if (given == nullptr) return check_absent("positions", out.positions, "rotation is NULL");
  sluice_rotation copy;
  const sluice_rotation &rotation = view(given, "rotation", copy);
  check_zero_member("rotation", ".reserved", rotation.reserved, reserved);
  check_dtype("rotation.type", rotation.type);
  check_at_least("rotation.dim", rotation.dim, 1);
  const int64_t least = rotation.sines != nullptr ? rotation.dim / 2 : rotation.dim;
  if (rotation.stride < least)
    invalid("rotation.stride", text("rotation.stride is ", rotation.stride, "; it must be at least ", least,
                                    ", the elements of a position"));
  out.rotary_dim = rotation.dim;
  out.rotary_style = rotation.style;
  out.rotary_first = rotation.first;
  out.rotary_type = rotation.type;
  out.rotary = rotation.cosines;
  out.rotary_sin = rotation.sines;
  out.rotary_stride = rotation.stride;
}

/// The flat struct has one type and epsilon for the norms of Q and K. Numbers that K may not have are refused
/// as those of K, by the checks of the flat struct.
void check_norms_alike(const calls::Append &k, const sluice_norm &norm, std::string_view path) {
  if (norm.type != k.norm_type)
    unsupported(text(path, ".type"),
                text(path, ".type is ", runtime::dtype_text(norm.type),
                     "; nearest supported: that of k_norm, ", runtime::dtype_text(k.norm_type)));
  const bool is_possible = k.norm_epsilon >= 0 && std::isfinite(k.norm_epsilon);
  if (is_possible && norm.epsilon != k.norm_epsilon)
    unsupported(text(path, ".epsilon"), text(path, ".epsilon is ", norm.epsilon,
                                             "; nearest supported: that of k_norm, ", k.norm_epsilon));
}

const void *add_norm(calls::Append &out, const sluice_norm *given, std::string_view path, bool is_first) {
  if (given == nullptr) return nullptr;
  sluice_norm copy;
  const sluice_norm &norm = view(given, path, copy);
  check_zero_member(path, ".reserved", norm.reserved, reserved);
  if (norm.type == 0) invalid(text(path, ".type"), text(path, ".type is missing; it must be a sluice_dtype"));
  if (norm.weights == nullptr) invalid(text(path, ".weights"), text(path, ".weights is NULL"));
  if (!is_first) {
    check_norms_alike(out, norm, path);
    return norm.weights;
  }
  out.norm_type = norm.type;
  out.norm_epsilon = norm.epsilon;
  return norm.weights;
}

void add_q(calls::Append &out, const sluice_append_args &args) {
  out.k_norm = add_norm(out, args.k_norm, "k_norm", true);
  if (args.q == nullptr) return;
  sluice_append_q copy;
  const sluice_append_q &q = view(args.q, "q", copy);
  check_at_least("q.heads", q.heads, 1);
  out.q_heads = q.heads;
  out.q = q.q;
  out.q_out = q.out;
  out.q_tail = q.tail;
  out.q_norm = add_norm(out, q.norm, "q.norm", args.k_norm == nullptr);
}

/// Of the two types of a conversion the one without scales.
bool is_half(uint32_t type) {
  return type == SLUICE_F16 || type == SLUICE_BF16;
}

bool is_copied(const Kv &source, const Kv &target) {
  return source.format.k_type == target.format.k_type;
}

/// What the flat structs of copies and gathers have alike.
template <typename Flat> void add_source(Flat &out, const Kv &source, const Kv &target) {
  out.flags |= source.format.flags & (calls::v_in_k | calls::zero_points);
  out.kv_heads = source.format.kv_heads;
  out.head_dim_qk = source.format.head_dim_qk;
  out.head_dim_v = own_v(source.format);
  out.page_size = source.format.page_size;
  out.scale_group = source.format.scale_group;
  out.k_scales = source.memory.k_scales;
  out.k_zeros = source.memory.k_zeros;
  const bool has_v = !(source.format.flags & calls::v_in_k);
  if (has_v) out.v_scales = source.memory.v_scales, out.v_zeros = source.memory.v_zeros;
  // Bits are copied between equal types: scales per tensor or head stay what they are. Else the numbers of
  // the source are multiplied by its scales, or divided by those of the target.
  if (is_copied(source, target)) {
    const auto kind_of = [](uint32_t kind) {
      return kind == SLUICE_SCALE_PER_TENSOR || kind == SLUICE_SCALE_PER_HEAD ? uint32_t{SLUICE_SCALE_NONE}
                                                                              : kind;
    };
    out.k_scale_kind = kind_of(source.format.k_scale_kind);
    out.v_scale_kind = has_v ? kind_of(source.format.v_scale_kind) : 0;
    return;
  }
  const Kv &scaled = is_half(source.format.k_type) ? target : source;
  out.k_scale_kind = scaled.format.k_scale_kind;
  out.k_scale = scaled.memory.k_scale;
  if (!has_v) return;
  out.v_scale_kind = scaled.format.v_scale_kind;
  out.v_scale = scaled.memory.v_scale;
}

/// Only appends and attention know V by columns.
void check_rows_of_v(const KvFormat &format, std::string_view path) {
  if (format.v_pack != 0)
    unsupported(text(path, ".format.v.pack"),
                text(path, ".format.v.pack is ", format.v_pack, "; nearest supported: 0"));
}

/// Scales that are copied with their rows. Those of a page become those of its rows where the target has no
/// pages.
void check_same_scales(const KvFormat &source, const KvFormat &target) {
  const auto same = [&](std::string_view side, uint32_t from, uint32_t to) {
    const bool is_spread = from == SLUICE_SCALE_PER_PAGE && target.page_size == 0;
    const uint32_t wanted = is_spread ? uint32_t{SLUICE_SCALE_PER_TOKEN} : from;
    if (to == wanted) return;
    invalid(text("target.format.", side, ".scale_kind"),
            text("target.format.", side, ".scale_kind is ", to, "; it must be ", wanted,
                 is_spread ? ": scales of pages become those of rows" : ", that of the source"));
  };
  same("k", source.k_scale_kind, target.k_scale_kind);
  if (!(source.flags & calls::v_in_k)) same("v", source.v_scale_kind, target.v_scale_kind);
}

/// A conversion has the scales of one side.
void check_no_scales(const KvFormat &format, std::string_view path) {
  const auto none = [&](std::string_view name, uint32_t kind) {
    if (kind == SLUICE_SCALE_NONE) return;
    unsupported(text(path, name), text(path, name, " is ", kind, " for ", runtime::dtype_text(format.k_type),
                                       "; nearest supported: SLUICE_SCALE_NONE (0)"));
  };
  none(".format.k.scale_kind", format.k_scale_kind);
  if (!(format.flags & calls::v_in_k)) none(".format.v.scale_kind", format.v_scale_kind);
}

/// Both sides have the same heads and rows.
void check_sides(const Kv &source, const Kv &target) {
  check_one_type(source.format, "source");
  check_one_type(target.format, "target");
  check_rows_of_v(source.format, "source");
  check_rows_of_v(target.format, "target");
  const auto same = [](std::string_view name, int64_t first, int64_t second) {
    if (first == second) return;
    invalid(text("target.format.", name), text("target.format.", name, " is ", second,
                                               "; it must be that of the source, which is ", first));
  };
  const auto is_v_in_k = [](const Kv &kv) { return (kv.format.flags & calls::v_in_k) != 0; };
  if (is_v_in_k(source) != is_v_in_k(target))
    invalid("target.format.flags", text("target.format.flags ", is_v_in_k(target) ? "has" : "lacks",
                                        " SLUICE_KV_V_IN_K; it must be as that of the source"));
  same("kv_heads", source.format.kv_heads, target.format.kv_heads);
  same("head_dim_qk", source.format.head_dim_qk, target.format.head_dim_qk);
  same("head_dim_v", source.format.head_dim_v, target.format.head_dim_v);
  check_v_in_k(source.format, "source");
  if (is_copied(source, target)) {
    check_same_scales(source.format, target.format);
    same("k.scale_group", source.format.scale_group, target.format.scale_group);
    same("k.zero_points", (source.format.flags & calls::zero_points) != 0,
         (target.format.flags & calls::zero_points) != 0);
  } else if (is_half(source.format.k_type)) {
    check_no_scales(source.format, "source");
  } else {
    check_no_scales(target.format, "target");
  }
}

} // namespace

void flat_append(const sluice_append_args *given, calls::Append &out) {
  sluice_append_args copy;
  const sluice_append_args &args = view(given, "args", copy);
  check_zero_member("args", ".reserved", args.reserved, reserved);
  const Kv kv = flat_kv(args.kv, kv_paths);
  add_cache(out, kv);
  out.source_type = args.source_type;
  out.tokens = args.tokens;
  out.tail_dim = args.tail_dim;
  out.k = args.k;
  out.v = args.v;
  out.k_tail = args.k_tail;
  add_places(out, args, kv.format);
  add_rotation(out, args.rotation);
  add_q(out, args);
}

void flat_copy(const sluice_copy_args *given, calls::PageCopy &out) {
  sluice_copy_args copy;
  const sluice_copy_args &args = view(given, "args", copy);
  if (args.pairs_64 > 1) invalid("pairs_64", text("pairs_64 is ", args.pairs_64, "; it must be 0 or 1"));
  const Kv source = flat_kv(args.source, source_paths), target = flat_kv(args.target, target_paths);
  check_sides(source, target);
  check_in_pages(source.format, "source", true);
  if (target.format.page_size != source.format.page_size)
    invalid("target.format.page_size",
            text("target.format.page_size is ", target.format.page_size,
                 "; it must be that of the source, which is ", source.format.page_size));
  check_in_pages(target.format, "target", true);
  if (source.memory.page_count != target.memory.page_count)
    unsupported("target.page_count",
                text("target.page_count is ", target.memory.page_count,
                     "; nearest supported: that of the source, ", source.memory.page_count));
  if (args.pairs_64) out.flags = calls::page_index_64;
  add_source(out, source, target);
  out.source_type = source.format.k_type;
  out.target_type = target.format.k_type;
  out.source_k_pack = source.format.k_pack;
  out.target_k_pack = target.format.k_pack;
  out.k_source = source.memory.k;
  out.k_target = target.memory.k;
  out.v_source = source.memory.v;
  out.v_target = target.memory.v;
  out.pairs = args.pairs;
  out.pair_count = args.pair_count;
  out.page_count = source.memory.page_count;
  if (out.source_type != out.target_type) return;
  out.k_target_scales = target.memory.k_scales;
  out.k_target_zeros = target.memory.k_zeros;
  if (source.format.flags & calls::v_in_k) return;
  out.v_target_scales = target.memory.v_scales;
  out.v_target_zeros = target.memory.v_zeros;
}

void flat_gather(const sluice_gather_args *given, calls::Gather &out) {
  sluice_gather_args copy;
  const sluice_gather_args &args = view(given, "args", copy);
  check_zero_member("args", ".reserved", args.reserved, reserved);
  const Kv source = flat_kv(args.source, source_paths), target = flat_kv(args.target, target_paths);
  check_sides(source, target);
  check_in_pages(source.format, "source", true);
  check_in_pages(target.format, "target", false);
  check_zero_member("target.format", ".k.pack", target.format.k_pack, "rows are contiguous");
  check_zero_member("target", ".page_count", target.memory.page_count, "rows are contiguous");
  out.flags = source.format.flags & calls::page_index_64;
  add_source(out, source, target);
  out.cache_type = source.format.k_type;
  out.out_type = target.format.k_type;
  out.page_table_kind = source.format.page_table_kind;
  out.k_pack = source.format.k_pack;
  out.batch = args.batch;
  out.tokens = args.tokens;
  out.k_cache = source.memory.k;
  out.v_cache = source.memory.v;
  out.k_out = target.memory.k;
  out.v_out = target.memory.v;
  out.out_starts = args.starts;
  out.kv_lengths = args.lengths;
  out.first_keys = args.first_keys;
  const KvPages pages =
      flat_pages_of_all_heads(args.pages, "pages", source.format.page_table_kind, args.batch);
  out.page_table = pages.table;
  out.page_starts = pages.starts;
  out.page_table_stride = pages.stride;
  out.page_count = source.memory.page_count;
  if (out.cache_type != out.out_type) return;
  out.k_out_scales = target.memory.k_scales;
  out.k_out_zeros = target.memory.k_zeros;
  if (source.format.flags & calls::v_in_k) return;
  out.v_out_scales = target.memory.v_scales;
  out.v_out_zeros = target.memory.v_zeros;
}

} // namespace sluice::abi

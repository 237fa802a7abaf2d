//===- cache_values.cpp - the values of cache.h as flat structs -----------------------------------------===//
#include "abi/cache_values.h"

#include "abi/kv_values.h"
#include "abi/sized.h"
#include "runtime/dtype.h"

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
  if ((format.page_size != 0) == wanted) return;
  invalid(text(path, ".format.page_size"), text(path, ".format.page_size is ", format.page_size,
                                                wanted ? "; it must be at least 1: the rows are in pages"
                                                       : "; it must be 0: rows are contiguous"));
}

/// V has no elements of its own if it is in K.
int32_t own_v(const KvFormat &format) {
  return format.flags & SLUICE_V_IN_K ? 0 : format.head_dim_v;
}

void add_cache(sluice_append &out, const Kv &kv) {
  const KvFormat &format = kv.format;
  check_one_type(format, "kv");
  check_in_pages(format, "kv", true);
  out.flags = format.flags & (SLUICE_V_IN_K | SLUICE_ZERO_POINTS);
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
  if (format.flags & SLUICE_V_IN_K) return;
  out.v_scale_kind = format.v_scale_kind;
  out.v_cache = kv.memory.v;
  out.v_scale = kv.memory.v_scale;
  out.v_scales = kv.memory.v_scales;
  out.v_zeros = kv.memory.v_zeros;
}

void add_places(sluice_append &out, const sluice_append_args &args, const KvFormat &format) {
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
  out.flags |= format.flags & SLUICE_PAGE_INDEX_64;
  out.page_table_kind = format.page_table_kind;
  const KvPages pages = flat_pages_of_all_heads(args.pages, "pages", format.page_table_kind, args.batch);
  out.page_table = pages.table;
  out.page_starts = pages.starts;
  out.page_table_stride = pages.stride;
}

void add_rotation(sluice_append &out, const sluice_rotation *given) {
  if (given == nullptr) return;
  sluice_rotation copy;
  const sluice_rotation &rotation = view(given, "rotation", copy);
  check_zero_member("rotation", ".reserved", rotation.reserved, reserved);
  check_dtype("rotation.type", rotation.type);
  check_at_least("rotation.dim", rotation.dim, 1);
  const int64_t least = rotation.sines != nullptr ? rotation.dim / 2 : rotation.dim;
  if (rotation.stride < least)
    invalid("rotation.stride", text("rotation.stride is ", rotation.stride, "; it must be at least ", least,
                                    ", what a position has"));
  out.rotary_dim = rotation.dim;
  out.rotary_style = rotation.style;
  out.rotary_first = rotation.first;
  out.rotary_type = rotation.type == SLUICE_F32 ? 0 : rotation.type; // 0 is F32
  out.rotary = static_cast<const float *>(rotation.cosines);
  out.rotary_sin = rotation.sines;
  out.rotary_stride = rotation.stride;
}

/// The flat struct has one type and epsilon for the norms of Q and K.
const void *add_norm(sluice_append &out, const sluice_norm *given, std::string_view path, bool is_first) {
  if (given == nullptr) return nullptr;
  sluice_norm copy;
  const sluice_norm &norm = view(given, path, copy);
  check_zero_member(path, ".reserved", norm.reserved, reserved);
  if (norm.type == 0) invalid(text(path, ".type"), text(path, ".type is missing"));
  if (norm.weights == nullptr) invalid(text(path, ".weights"), text(path, ".weights is NULL"));
  if (!is_first && (norm.type != out.norm_type || norm.epsilon != out.norm_epsilon))
    unsupported(text(path, ".epsilon"),
                text(path, " has another type or epsilon than k_norm; nearest supported: "
                           "the same"));
  out.norm_type = norm.type;
  out.norm_epsilon = norm.epsilon;
  return norm.weights;
}

void add_q(sluice_append &out, const sluice_append_args &args) {
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

/// What the flat structs of copies and gathers have alike.
template <typename Flat> void add_source(Flat &out, const Kv &source, const Kv &target) {
  out.flags |= source.format.flags & (SLUICE_V_IN_K | SLUICE_ZERO_POINTS);
  out.kv_heads = source.format.kv_heads;
  out.head_dim_qk = source.format.head_dim_qk;
  out.head_dim_v = own_v(source.format);
  out.page_size = source.format.page_size;
  out.scale_group = source.format.scale_group;
  out.k_scales = source.memory.k_scales;
  out.k_zeros = source.memory.k_zeros;
  const bool has_v = !(source.format.flags & SLUICE_V_IN_K);
  if (has_v) out.v_scales = source.memory.v_scales, out.v_zeros = source.memory.v_zeros;
  // Bits are copied between equal types: scales per tensor or head stay what they are. Else either the source
  // has them, and its numbers are multiplied, or the target, and its numbers are divided.
  if (source.format.k_type == target.format.k_type) {
    const auto kind_of = [](uint32_t kind) {
      return kind == SLUICE_SCALE_PER_TENSOR || kind == SLUICE_SCALE_PER_HEAD ? uint32_t{SLUICE_SCALE_NONE}
                                                                              : kind;
    };
    out.k_scale_kind = kind_of(source.format.k_scale_kind);
    out.v_scale_kind = has_v ? kind_of(source.format.v_scale_kind) : 0;
    return;
  }
  const Kv &scaled = source.format.k_scale_kind != 0 || source.format.v_scale_kind != 0 ? source : target;
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
  same("kv_heads", source.format.kv_heads, target.format.kv_heads);
  same("head_dim_qk", source.format.head_dim_qk, target.format.head_dim_qk);
  same("head_dim_v", own_v(source.format), own_v(target.format));
  const bool is_same_type = source.format.k_type == target.format.k_type;
  if (is_same_type) same("k.scale_group", source.format.scale_group, target.format.scale_group);
  const bool both_scaled = source.format.k_scale_kind != 0 && target.format.k_scale_kind != 0;
  if (!is_same_type && both_scaled)
    unsupported("target.format.k.scale_kind",
                text("target.format.k.scale_kind is ", target.format.k_scale_kind,
                     ", and the source has scales too; nearest supported: "
                     "SLUICE_SCALE_NONE (0)"));
}

} // namespace

void flat_append(const sluice_append_args *given, sluice_append &out) {
  sluice_append_args copy;
  const sluice_append_args &args = view(given, "args", copy);
  check_zero_member("args", ".reserved", args.reserved, reserved);
  out.struct_size = sizeof out;
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

void flat_copy(const sluice_copy_args *given, sluice_page_copy &out) {
  sluice_copy_args copy;
  const sluice_copy_args &args = view(given, "args", copy);
  if (args.pairs_64 > 1) invalid("pairs_64", text("pairs_64 is ", args.pairs_64, "; it must be 0 or 1"));
  out.struct_size = sizeof out;
  const Kv source = flat_kv(args.source, source_paths), target = flat_kv(args.target, target_paths);
  check_sides(source, target);
  check_in_pages(source.format, "source", true);
  if (target.format.page_size != source.format.page_size)
    invalid("target.format.page_size",
            text("target.format.page_size is ", target.format.page_size,
                 "; it must be that of the source, which is ", source.format.page_size));
  if (source.memory.page_count != target.memory.page_count)
    unsupported("target.page_count",
                text("target.page_count is ", target.memory.page_count,
                     "; nearest supported: that of the source, ", source.memory.page_count));
  if (args.pairs_64) out.flags = SLUICE_PAGE_INDEX_64;
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
  if (source.format.flags & SLUICE_V_IN_K) return;
  out.v_target_scales = target.memory.v_scales;
  out.v_target_zeros = target.memory.v_zeros;
}

void flat_gather(const sluice_gather_args *given, sluice_gather &out) {
  sluice_gather_args copy;
  const sluice_gather_args &args = view(given, "args", copy);
  check_zero_member("args", ".reserved", args.reserved, reserved);
  out.struct_size = sizeof out;
  const Kv source = flat_kv(args.source, source_paths), target = flat_kv(args.target, target_paths);
  check_sides(source, target);
  check_in_pages(source.format, "source", true);
  check_in_pages(target.format, "target", false);
  check_zero_member("target.format", ".k.pack", target.format.k_pack, "rows are contiguous");
  out.flags = source.format.flags & SLUICE_PAGE_INDEX_64;
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
  if (source.format.flags & SLUICE_V_IN_K) return;
  out.v_out_scales = target.memory.v_scales;
  out.v_out_zeros = target.memory.v_zeros;
}

} // namespace sluice::abi

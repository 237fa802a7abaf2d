//===- cache_op_fixture.h - good appends and merges -----------------------------------------------------===//
#pragma once

#include "fixture.h"
#include "support/cache_call.h"

#include <sluice/merge.h>

#include <functional>
#include <string_view>

namespace sluice::test {

/// A context of the existing FakeHip, with a kernel from F16 into F16 caches and one from F32 to F16.
inline ContextHandle cache_op_context(uint32_t kind = SLUICE_DEVICE_HIP) {
  static const std::vector<std::byte> pack = cache_op_pack();
  sluice_context_desc desc = context_desc(kind, pack);
  return make_context(desc);
}

/// Memory that is never accessed, from this byte of device_memory on.
template <typename Number> const Number *at_byte(size_t offset) {
  return reinterpret_cast<const Number *>(device_memory + offset);
}

/// 5 rows of 2 heads by slots, pages of 16.
inline AppendCall good_append() {
  AppendCall call;
  call.cache.format.kv_heads = 2;
  call.cache.format.head_dim_qk = 128;
  call.cache.format.head_dim_v = 64;
  call.cache.format.page_size = 16;
  call.cache.format.page_table = SLUICE_PAGE_TABLE_BLOCK;
  call.cache.format.k.type = call.cache.format.v.type = SLUICE_F16;
  call.cache.kv.k = sluice_pages_nhd(device_memory + 32, 16, 2, 128);
  call.cache.kv.v = sluice_pages_nhd(device_memory + 48, 16, 2, 64);
  call.args.source_type = SLUICE_F16;
  call.args.tokens = 5;
  call.args.k = sluice_packed(device_memory, 2, 128);
  call.args.v = sluice_packed(device_memory + 16, 2, 64);
  call.args.slots = at_byte<int64_t>(64);
  return call;
}

/// The same by a table of two sequences, with rotation of 64 elements.
inline AppendCall good_table_append() {
  AppendCall call = good_append();
  call.args.slots = nullptr;
  call.args.batch = 2;
  call.args.starts = at_byte<int32_t>(4);
  call.args.lengths = at_byte<int32_t>(8);
  call.args.pages.table = device_memory + 12;
  call.args.pages.stride = 7;
  call.rotation.type = SLUICE_F32;
  call.rotation.dim = 64;
  call.rotation.cosines = device_memory + 20;
  call.rotation.stride = 64;
  call.args.rotation = &call.rotation;
  return call;
}

/// The cache has no V of its own: it is in K.
inline void put_v_in_k(Kv &cache) {
  cache.format.flags |= SLUICE_KV_V_IN_K;
  cache.format.v = {};
  cache.kv.v = cache.scales.v = cache.scales.v_zeros = {};
}
inline void put_v_in_k(AppendCall &call) {
  put_v_in_k(call.cache);
  call.args.v = {};
}

inline void set_types(Kv &cache, uint32_t type) {
  cache.format.k.type = cache.format.v.type = type;
}

/// All that one append can do: Q stored where it was, norms, tails of their own for K, and a rotation of the
/// tails.
inline AppendCall good_step() {
  AppendCall call = good_table_append();
  call.args.tail_dim = call.rotation.dim = 64;
  call.rotation.first = 64;
  call.rotation.type = SLUICE_BF16;
  call.rotation.sines = device_memory + 40;
  call.args.k.stride[1] = 128;
  call.args.k.stride[2] = 64;
  call.args.k_tail = {device_memory + 80, {0, 64, 0, 1}}; // one for all heads
  call.q.heads = 4;
  call.q.q = call.q.out = sluice_packed(device_memory + 96, 4, 128);
  call.q_norm.weights = device_memory + 100;
  call.k_norm.weights = device_memory + 104;
  call.q_norm.epsilon = call.k_norm.epsilon = 1e-6f;
  call.q_norm.type = call.k_norm.type = SLUICE_F32;
  call.q.norm = &call.q_norm;
  call.args.k_norm = &call.k_norm;
  call.args.q = &call.q;
  return call;
}

/// Into FP8, with scales that are computed for K, and those of pages for V.
inline AppendCall good_scales() {
  AppendCall call = good_append();
  set_types(call.cache, SLUICE_E5M2FNUZ);
  call.cache.format.k.scale_kind = SLUICE_SCALE_PER_TOKEN;
  call.cache.format.v.scale_kind = SLUICE_SCALE_PER_PAGE;
  call.cache.scales.k = {device_memory + 4, {32, 2, 1, 0}};
  call.cache.scales.v = {device_memory + 8, {2, 99, 1, 1}};
  return call;
}

/// V by columns, in packs of 8 of the 32 rows of a page.
inline AppendCall good_columns() {
  AppendCall call = good_append();
  call.cache.format.page_size = 32;
  call.cache.kv.k.stride[0] = 32 * 256;
  call.cache.format.v.pack = 8;
  call.cache.kv.v = {device_memory + 48, {4096, 1024, 512, 8}};
  return call;
}

/// Into blocks of ggml, with a rotation by halves.
inline AppendCall good_blocks() {
  AppendCall call = good_table_append();
  set_types(call.cache, SLUICE_Q4_0);
  call.cache.kv.k.data = call.cache.kv.v.data = device_memory + 34;
  return call;
}

/// Groups of 32 numbers of 4 bits, with zero points.
inline void set_groups(Kv &cache) {
  for (sluice_format *format : {&cache.format.k, &cache.format.v}) {
    format->type = SLUICE_U4;
    format->scale_kind = SLUICE_SCALE_PER_GROUP;
    format->scale_group = 32;
    format->zero_points = 1;
  }
  cache.scales.k = {device_memory + 2, {16 * 8, 8, 4, 1}};
  cache.scales.v = {device_memory + 4, {16 * 4, 4, 2, 1}};
  cache.scales.k_zeros = {device_memory + 6, {16 * 8, 8, 4, 1}};
  cache.scales.v_zeros = {device_memory + 10, {16 * 4, 4, 2, 1}};
}
inline AppendCall good_groups() {
  AppendCall call = good_append();
  set_groups(call.cache);
  return call;
}

/// Into FP8, x-packed, with scales, by a CSR table of 64-bit entries.
inline AppendCall good_fp8_append() {
  AppendCall call = good_table_append();
  call.cache.format.flags = SLUICE_KV_PAGE_INDEX_64;
  call.cache.format.page_table = SLUICE_PAGE_TABLE_CSR;
  call.args.pages = {device_memory + 24, at_byte<int32_t>(28), 0, 0};
  set_types(call.cache, SLUICE_E4M3FNUZ);
  call.cache.format.k.scale_kind = SLUICE_SCALE_PER_HEAD;
  call.cache.format.v.scale_kind = SLUICE_SCALE_PER_TENSOR;
  call.cache.scales.k.data = call.cache.scales.v.data = device_memory + 36;
  call.cache.format.k.pack = 16;
  call.cache.kv.k = sluice_pages_x_packed(device_memory + 32, 16, 2, 128, 16);
  return call;
}

/// 3 parts of 5 tokens and 2 heads, with LSE.
inline sluice_merge_args good_merge() {
  sluice_merge_args merge = sized<sluice_merge_args>();
  merge.tokens = 5;
  merge.heads = 2;
  merge.head_dim = 64;
  merge.lse_base = SLUICE_LSE_LN;
  merge.o_format.type = SLUICE_F16;
  merge.parts.type = SLUICE_F32;
  merge.parts.count = 3;
  merge.parts.o = {device_memory, {640, 128, 64, 1}};
  merge.parts.lse = {device_memory + 4, {10, 2, 1, 0}};
  merge.o = {device_memory + 16, {0, 128, 64, 1}};
  merge.lse = {device_memory + 8, {0, 2, 1, 0}};
  return merge;
}

/// Lists of parts, which have no tensors then.
inline void list_parts(sluice_merge_args &merge, const void *const *rows, const void *const *lses) {
  merge.parts.o_list = rows;
  merge.parts.lse_list = lses;
  merge.parts.o.data = merge.parts.lse.data = nullptr;
  merge.parts.o.stride[0] = merge.parts.lse.stride[0] = 0;
}

/// Three sequences of two tokens: LSEs are [sequence][head][token].
inline void part_sequences(sluice_merge_args &merge) {
  merge.tokens = 6;
  merge.sequence_tokens = 2;
  merge.parts.lse.stride[0] = 12;
  merge.parts.lse.stride[1] = merge.lse.stride[1] = 1;
  merge.parts.lse.stride[2] = merge.lse.stride[2] = 2;
  merge.parts.lse_sequence_stride = merge.lse_sequence_stride = 4;
}

inline sluice_status run(const ContextHandle &context, const AppendCall &call,
                         const sluice_launch *launch = nullptr, sluice_error *error = nullptr) {
  return sluice_cache_append(context.get(), &call.args, launch, error);
}
inline sluice_status run(const ContextHandle &context, const CopyCall &call,
                         const sluice_launch *launch = nullptr, sluice_error *error = nullptr) {
  return sluice_cache_copy(context.get(), &call.args, launch, error);
}
inline sluice_status run(const ContextHandle &context, const GatherCall &call,
                         const sluice_launch *launch = nullptr, sluice_error *error = nullptr) {
  return sluice_cache_gather(context.get(), &call.args, launch, error);
}
inline sluice_status run(const ContextHandle &context, const sluice_merge_args &call,
                         const sluice_launch *launch = nullptr, sluice_error *error = nullptr) {
  return sluice_attention_merge(context.get(), &call, launch, error);
}

inline sluice_status reference(const AppendCall &call, sluice_error *error) {
  return sluice_cache_append_reference(&call.args, error);
}
inline sluice_status reference(const CopyCall &call, sluice_error *error) {
  return sluice_cache_copy_reference(&call.args, error);
}
inline sluice_status reference(const GatherCall &call, sluice_error *error) {
  return sluice_cache_gather_reference(&call.args, error);
}

/// A change of a good call, and how it is refused.
template <typename Call> struct Breach {
  const char *field;
  sluice_status status;
  const char *message_part;
  std::function<void(Call &)> breaks;
};

/// The message of a refusal begins with the member that it is about, and has no name of the structs into
/// which the library flattens a call.
inline void check_words(const Error &error) {
  const std::string_view message = error.message, field = error.field;
  const std::string_view suffix = ".stride", // of all dimensions together
      member = field.ends_with(suffix) ? field.substr(0, field.size() - suffix.size()) : field;
  INFO(error.field << ": " << error.message);
  CHECK(message.starts_with(member));
  for (const std::string_view flat :
       {"k_cache",      "v_cache",    "k_scale",           "v_scale",     "k_zeros ",        "rotary",
        "partial",      "kv_lengths", "page_table_",       "page_starts", "cache_type",      "norm_",
        "k_pack",       "v_pack",     "k_source",          "k_target",    "k_out",           "o_type",
        "sink_logits",  "SLUICE_V_",  "SLUICE_PAGE_INDEX", "SLUICE_ZERO", "SLUICE_LSE_BASE", "sluice_append",
        "sluice_merge", "ABI 1"}) {
    INFO(flat);
    CHECK(message.find(flat) == std::string_view::npos);
  }
}

/// Each breach is refused by the device and by the host's reference, and nothing is enqueued.
template <typename Call, size_t count>
void check_breaches(FakeHip &hip, const ContextHandle &context, const Breach<Call> (&breaches)[count],
                    const Call &good) {
  hip.forget_calls();
  for (const Breach<Call> &breach : breaches) {
    INFO(breach.field << ": " << breach.message_part);
    Call call = good;
    breach.breaks(call);
    Error error;
    check_refusal(run(context, call, nullptr, &error), error, breach.status, breach.field,
                  breach.message_part);
    check_words(error);
    // The host has a kernel for every type.
    const bool is_of_pack = std::string_view(error.message).find("kernel pack") != std::string_view::npos;
    if constexpr (requires { reference(call, &error); }) {
      error = Error();
      if (!is_of_pack)
        check_refusal(reference(call, &error), error, breach.status, breach.field, breach.message_part);
    }
  }
  CHECK(hip.call_count == 0);
}

} // namespace sluice::test

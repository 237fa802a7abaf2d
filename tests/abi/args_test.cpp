//===- args_test.cpp - calls in every mode, and every one of their rules that can be broken -------------===//
//
// The pack's kernels list every feature, so that only the checks of a call can refuse.
//
//===----------------------------------------------------------------------------------------------------===//
#include "fixture.h"

#include <cstddef>
#include <cstring>
#include <functional>

using namespace sluice::test;

namespace {

struct Call {
  sluice_problem problem = good_problem();
  sluice_args args = good_args();
};

const int32_t *array() {
  return reinterpret_cast<const int32_t *>(device_memory);
}
const float *floats(size_t byte = 0) {
  return reinterpret_cast<const float *>(device_memory + byte);
}

Call dense() {
  return {};
}

/// good_args() with the sequences packed one after the other.
Call ragged() {
  Call call;
  call.problem.mode = SLUICE_MODE_RAGGED;
  call.args.q_starts = call.args.kv_starts = array();
  for (sluice_tensor *tensor : {&call.args.q, &call.args.k, &call.args.v, &call.args.o, &call.args.lse})
    tensor->stride[0] = 0;
  return call;
}

/// Pages of 16 rows.
Call paged() {
  Call call;
  make_paged(call.problem);
  call.args.k.stride[0] = call.args.v.stride[0] = 16 * 2 * 128;
  call.args.kv_lengths = array();
  call.args.page_table = array();
  call.args.page_table_stride = 1;
  return call;
}

Call csr() {
  Call call = paged();
  call.problem.page_table_kind = SLUICE_PAGE_TABLE_CSR;
  call.args.page_table_stride = 0;
  call.args.page_starts = array();
  return call;
}

/// Packs of 8 elements: [page][head][pack][row][8].
Call packed() {
  Call call = paged();
  call.problem.k_pack = 8;
  call.args.k.stride[0] = 16 * 2 * 128;
  call.args.k.stride[1] = 8;
  call.args.k.stride[2] = 16 * 128;
  call.args.k.stride[3] = 16 * 8;
  return call;
}

Call v_in_k() {
  Call call;
  call.problem.flags |= SLUICE_V_IN_K;
  call.args.v = {};
  return call;
}

Call with_bias() {
  Call call;
  call.problem.bias_type = SLUICE_F16;
  call.args.bias = {device_memory, {0, 5 * 8, 8, 1}};
  return call;
}

Call with_mask() {
  Call call;
  call.problem.flags |= SLUICE_BOOL_MASK;
  call.args.mask = {device_memory + 1, {5, 0, 1, 1}};
  return call;
}

Call with_arrays() {
  Call call;
  call.problem.flags |= SLUICE_ALIBI | SLUICE_SINK_LOGITS;
  call.problem.q_scale_kind = call.problem.k_scale_kind = SLUICE_SCALE_PER_HEAD;
  call.problem.v_scale_kind = SLUICE_SCALE_PER_TENSOR;
  call.args.alibi_slopes = call.args.sink_logits = floats();
  call.args.q_scale = call.args.k_scale = call.args.v_scale = floats(4);
  return call;
}

Call with_key_scales() {
  Call call = paged();
  call.problem.k_scale_kind = SLUICE_SCALE_PER_TOKEN;
  call.problem.v_scale_kind = SLUICE_SCALE_PER_PAGE;
  call.args.k_scales = {device_memory, {64, 4, 1, 0}};
  call.args.v_scales = {device_memory, {4, 0, 1, 0}};
  return call;
}

/// Rows of ggml's blocks, which are aligned to 2 bytes.
Call with_blocks() {
  Call call;
  call.problem.k_type = call.problem.v_type = SLUICE_Q4_0;
  call.args.k.data = device_memory + 2;
  call.args.v.data = device_memory + 18;
  return call;
}

/// Rows of 4-bit numbers with groups of 64, each with a number to subtract.
Call with_groups() {
  Call call;
  call.problem.k_type = call.problem.v_type = SLUICE_U4;
  call.problem.k_scale_kind = call.problem.v_scale_kind = SLUICE_SCALE_PER_GROUP;
  call.problem.scale_group = 64;
  call.problem.flags |= SLUICE_ZERO_POINTS;
  call.args.k_scales = {device_memory + 2, {7 * 2 * 2, 2 * 2, 2, 1}};
  call.args.v_scales = {device_memory, {7 * 2 * 4, 2 * 4, 4, 1}};
  call.args.k_zeros = {device_memory + 6, {7 * 2 * 2, 2 * 2, 2, 1}};
  call.args.v_zeros = {device_memory + 4, {7 * 2 * 4, 2 * 4, 4, 1}};
  return call;
}

Call with_factors() {
  Call call = with_bias();
  call.problem.flags |= SLUICE_BIAS_SCALE | SLUICE_ALIBI;
  call.args.alibi_slopes = call.args.bias_scale = floats();
  call.args.alibi_batch_stride = call.args.bias_scale_batch_stride = 4;
  return call;
}

/// What masks need to know of each sequence.
Call with_sequence_masks() {
  Call call;
  call.problem.flags |= SLUICE_CAUSAL_BY_SEQUENCE | SLUICE_SPANS;
  call.problem.flags &= ~uint32_t(SLUICE_CAUSAL);
  call.problem.mask_alignment = SLUICE_GIVEN_DIAGONAL;
  call.args.diagonals = call.args.causal = call.args.spans = array();
  call.args.span_count = 3;
  return call;
}

Call to_fp8() {
  Call call;
  call.problem.o_type = SLUICE_E4M3FNUZ;
  call.problem.o_scale_kind = SLUICE_SCALE_PER_HEAD;
  call.args.o_scale = floats();
  return call;
}

struct Refusal {
  Call (*good)();
  std::function<void(Call &)> change;
  const char *field;
  const char *message;
};

#define SLUICE_SET(member, value) [](Call &c) { c.args.member = value; }
#define SLUICE_ODD(type) reinterpret_cast<const type *>(device_memory + 2)

const Refusal refusals[] = {
    // The arrays of a mode.
    {dense, SLUICE_SET(q_starts, array()), "q_starts", "the problem's mode is SLUICE_MODE_DENSE"},
    {dense, SLUICE_SET(kv_starts, array()), "kv_starts", "the problem's mode is not SLUICE_MODE_RAGGED"},
    {dense, SLUICE_SET(page_table, array()), "page_table",
     "is given, but the problem's mode is not SLUICE_MODE_P"},
    {dense, SLUICE_SET(page_starts, array()), "page_starts", "is given, but the problem's mode is not"},
    {dense, SLUICE_SET(page_table_stride, 4), "page_table_stride", "page_table_stride is 4; it must be 0"},
    {dense, SLUICE_SET(page_table_head_stride, 4), "page_table_head_stride",
     "page_table_head_stride is 4; it must be 0: the problem's mode is not SLUICE_MODE_PAGED"},
    {dense, SLUICE_SET(q_lengths, SLUICE_ODD(int32_t)), "q_lengths", "it must be aligned to 4 bytes"},
    {dense, SLUICE_SET(kv_lengths, SLUICE_ODD(int32_t)), "kv_lengths", "it must be aligned to 4 bytes"},
    {ragged, SLUICE_SET(q_starts, nullptr), "q_starts", "q_starts is NULL"},
    {ragged, SLUICE_SET(kv_starts, nullptr), "kv_starts", "kv_starts is NULL"},
    {ragged, SLUICE_SET(q_starts, SLUICE_ODD(int32_t)), "q_starts", "it must be aligned to 4 bytes"},
    {ragged, SLUICE_SET(kv_starts, SLUICE_ODD(int32_t)), "kv_starts", "it must be aligned to 4 bytes"},
    {ragged, SLUICE_SET(page_table, array()), "page_table", "the problem's mode is not SLUICE_MODE_PAGED"},
    {ragged, SLUICE_SET(page_starts, array()), "page_starts", "the problem's mode is not SLUICE_MODE_PAGED"},
    {ragged, SLUICE_SET(page_table_stride, 4), "page_table_stride", "it must be 0"},
    {ragged, SLUICE_SET(page_table_head_stride, 4), "page_table_head_stride", "it must be 0"},
    {paged, SLUICE_SET(kv_starts, array()), "kv_starts", "the problem's mode is not SLUICE_MODE_RAGGED"},
    {paged, SLUICE_SET(q_starts, SLUICE_ODD(int32_t)), "q_starts", "it must be aligned to 4 bytes"},
    {paged, SLUICE_SET(kv_lengths, nullptr), "kv_lengths", "kv_lengths is NULL"},
    {paged, SLUICE_SET(page_table, nullptr), "page_table", "page_table is NULL"},
    {paged, SLUICE_SET(page_table, device_memory + 2), "page_table", "it must be aligned to 4 bytes"},
    {paged,
     [](Call &c) {
       c.problem.flags |= SLUICE_PAGE_INDEX_64;
       c.args.page_table = device_memory + 4;
     },
     "page_table", "it must be aligned to 8 bytes"},
    {paged, SLUICE_SET(page_table_stride, -1), "page_table_stride", "is -1; it must not be negative"},
    {paged, SLUICE_SET(kv_len, 17), "page_table_stride",
     "page_table_stride is 1; it must be at least 2, the pages of 16 keys for a kv_len of 17"},
    {paged, SLUICE_SET(page_table_head_stride, -1), "page_table_head_stride",
     "page_table_head_stride is -1; it must not be negative"},
    {paged,
     [](Call &c) {
       c.args.batch = 1;
       c.args.kv_len = 17;
       c.args.page_table_head_stride = 1;
     },
     "page_table_head_stride",
     "page_table_head_stride is 1; it must be at least 2, the pages of 16 keys for a kv_len of 17"},
    {paged, SLUICE_SET(page_starts, array()), "page_starts", "page_table_kind is SLUICE_PAGE_TABLE_BLOCK"},
    {csr, SLUICE_SET(page_starts, nullptr), "page_starts", "page_starts is NULL"},
    {csr, SLUICE_SET(page_starts, SLUICE_ODD(int32_t)), "page_starts", "it must be aligned to 4 bytes"},
    {csr, SLUICE_SET(page_table_stride, 4), "page_table_stride", "must be 0 without SLUICE_PAGE_TABLE_BLOCK"},
    {csr, SLUICE_SET(page_table_head_stride, -1), "page_table_head_stride", "it must not be negative"},
    // The numbers of pages and rows.
    {dense, SLUICE_SET(page_count, 1), "page_count",
     "page_count is 1; it must be 0: the problem's mode is not"},
    {ragged, SLUICE_SET(page_count, 1), "page_count", "the problem's mode is not SLUICE_MODE_PAGED"},
    {paged, SLUICE_SET(page_count, -1), "page_count", "page_count is -1; it must not be negative"},
    {dense, SLUICE_SET(q_tokens, 1), "q_tokens", "q_tokens is 1; it must be 0: q_starts is NULL"},
    {paged, SLUICE_SET(q_tokens, 1), "q_tokens", "it must be 0: q_starts is NULL"},
    {ragged, SLUICE_SET(q_tokens, -1), "q_tokens", "it must not be negative"},
    {dense, SLUICE_SET(kv_tokens, 1), "kv_tokens", "kv_tokens is 1; it must be 0: kv_starts is NULL"},
    {paged, SLUICE_SET(kv_tokens, 1), "kv_tokens", "it must be 0: kv_starts is NULL"},
    {ragged, SLUICE_SET(kv_tokens, -1), "kv_tokens", "it must not be negative"},
    {paged,
     [](Call &c) {
       c.args.page_count = int64_t{1} << 32;
       c.args.k.stride[0] = int64_t{1} << 16; // of 2 bytes each: 2^49 in all
     },
     "k.stride", "beyond the address space"},
    {ragged, SLUICE_SET(q_tokens, int64_t{1} << 50), "q.stride", "beyond the address space"},
    {ragged, SLUICE_SET(kv_tokens, int64_t{1} << 50), "k.stride", "beyond the address space"},
    {ragged, SLUICE_SET(o.stride[1], 0), "o.stride[1]", "elements of an output would overlap"},
    {ragged, SLUICE_SET(lse.stride[1], 0), "lse.stride[1]", "elements of an output would overlap"},
    // Extent, as far as the call says: a page, a row, a pack.
    {paged, SLUICE_SET(k.stride[2], int64_t{1} << 50), "k.stride", "beyond the address space"},
    {packed, SLUICE_SET(k.stride[3], int64_t{1} << 50), "k.stride", "beyond the address space"},
    {packed, SLUICE_SET(k.stride[3], -8), "k.stride[3]", "it must not be negative"},
    {packed, SLUICE_SET(k.stride[3], 100), "k.stride[3]", "k.stride[3] is 100; it must be a multiple of 8"},
    {packed, SLUICE_SET(k.data, nullptr), "k.data", "k.data is NULL"},
    {packed, SLUICE_SET(v.stride[3], 8), "v.stride[3]", "it must be 1"},
    // V in K.
    {v_in_k, SLUICE_SET(v.data, device_memory), "v.data",
     "v.data is given, but the problem's flags have SLUICE_V_IN_K"},
    {v_in_k, SLUICE_SET(v.stride[1], 8), "v.stride[1]", "v.stride[1] is 8; it must be 0"},
    // Bias and mask.
    {dense, SLUICE_SET(bias.data, device_memory), "bias.data", "the problem's bias_type is 0"},
    {dense, SLUICE_SET(bias.stride[2], 8), "bias.stride[2]", "it must be 0: the problem's bias_type is 0"},
    {with_bias, SLUICE_SET(bias.data, nullptr), "bias.data", "bias.data is NULL"},
    {with_bias, SLUICE_SET(bias.data, device_memory + 1), "bias.data", "it must be aligned to 2 bytes"},
    {with_bias, SLUICE_SET(bias.stride[3], 2), "bias.stride[3]", "bias.stride[3] is 2; it must be 0 or 1"},
    {with_bias, SLUICE_SET(bias.stride[1], -1), "bias.stride[1]", "it must not be negative"},
    {with_bias, SLUICE_SET(bias.stride[1], int64_t{1} << 50), "bias.stride", "beyond the address space"},
    {dense, SLUICE_SET(mask.data, device_memory), "mask.data", "the problem's flags lack SLUICE_BOOL_MASK"},
    {dense, SLUICE_SET(mask.stride[3], 1), "mask.stride[3]", "flags lack SLUICE_BOOL_MASK"},
    {with_mask, SLUICE_SET(mask.data, nullptr), "mask.data", "mask.data is NULL"},
    {with_mask,
     [](Call &c) {
       c.args.kv_len = 9;
       c.args.mask.stride[3] = 0;
     },
     "mask.stride[3]", "mask.stride[3] is 0; it must be 1"},
    {with_mask, SLUICE_SET(mask.stride[2], -1), "mask.stride[2]", "it must not be negative"},
    {with_mask, SLUICE_SET(mask.stride[2], int64_t{1} << 50), "mask.stride", "beyond the address space"},
    // Arrays of numbers.
    {dense, SLUICE_SET(alibi_slopes, floats()), "alibi_slopes", "the problem's flags lack SLUICE_ALIBI"},
    {dense, SLUICE_SET(sink_logits, floats()), "sink_logits", "flags lack SLUICE_SINK_LOGITS"},
    {dense, SLUICE_SET(q_scale, floats()), "q_scale", "q_scale_kind is SLUICE_SCALE_NONE"},
    {dense, SLUICE_SET(k_scale, floats()), "k_scale", "k_scale_kind is not PER_TENSOR or PER_HEAD"},
    {dense, SLUICE_SET(v_scale, floats()), "v_scale", "v_scale_kind is not PER_TENSOR or PER_HEAD"},
    {with_arrays, SLUICE_SET(alibi_slopes, nullptr), "alibi_slopes", "alibi_slopes is NULL"},
    {with_arrays, SLUICE_SET(sink_logits, nullptr), "sink_logits", "sink_logits is NULL"},
    {with_arrays, SLUICE_SET(q_scale, nullptr), "q_scale", "q_scale is NULL"},
    {with_arrays, SLUICE_SET(k_scale, nullptr), "k_scale", "k_scale is NULL"},
    {with_arrays, SLUICE_SET(v_scale, nullptr), "v_scale", "v_scale is NULL"},
    {with_arrays, SLUICE_SET(alibi_slopes, floats(2)), "alibi_slopes", "it must be aligned to 4 bytes"},
    {with_arrays, SLUICE_SET(sink_logits, floats(2)), "sink_logits", "it must be aligned to 4 bytes"},
    {with_arrays, SLUICE_SET(q_scale, floats(2)), "q_scale", "it must be aligned to 4 bytes"},
    {with_arrays, SLUICE_SET(k_scale, floats(2)), "k_scale", "it must be aligned to 4 bytes"},
    {with_arrays, SLUICE_SET(v_scale, floats(2)), "v_scale", "it must be aligned to 4 bytes"},
    {with_arrays, SLUICE_SET(alibi_batch_stride, -1), "alibi_batch_stride", "is -1; it must not be negative"},
    {dense, SLUICE_SET(alibi_batch_stride, 4), "alibi_batch_stride", "is 4, but alibi_slopes is NULL"},
    {dense, SLUICE_SET(bias_scale, floats()), "bias_scale", "the problem's flags lack SLUICE_BIAS_SCALE"},
    {dense, SLUICE_SET(bias_scale_batch_stride, 4), "bias_scale_batch_stride",
     "is 4, but bias_scale is NULL"},
    {with_factors, SLUICE_SET(bias_scale, nullptr), "bias_scale", "bias_scale is NULL"},
    {with_factors, SLUICE_SET(bias_scale, floats(2)), "bias_scale", "it must be aligned to 4 bytes"},
    {with_factors, SLUICE_SET(bias_scale_batch_stride, -4), "bias_scale_batch_stride",
     "must not be negative"},
    {dense, SLUICE_SET(o_scale, floats()), "o_scale", "the problem's o_scale_kind is SLUICE_SCALE_NONE"},
    {to_fp8, SLUICE_SET(o_scale, nullptr), "o_scale", "o_scale is NULL"},
    {to_fp8, SLUICE_SET(o_scale, floats(2)), "o_scale", "it must be aligned to 4 bytes"},
    // Scales of keys.
    {dense, SLUICE_SET(k_scales.data, device_memory), "k_scales.data",
     "k_scale_kind is not PER_TOKEN, PER_PAGE or PER_GROUP"},
    {with_arrays, SLUICE_SET(v_scales.stride[1], 4), "v_scales.stride[1]",
     "it must be 0: the problem's v_scale_kind is not PER_TOKEN, PER_PAGE or PER_GROUP"},
    {with_key_scales, SLUICE_SET(k_scale, floats()), "k_scale", "k_scale_kind is not PER_TENSOR or PER_HEAD"},
    {with_key_scales, SLUICE_SET(v_scale, floats()), "v_scale", "v_scale_kind is not PER_TENSOR or PER_HEAD"},
    {with_key_scales, SLUICE_SET(k_scales.data, nullptr), "k_scales.data", "k_scales.data is NULL"},
    {with_key_scales, SLUICE_SET(v_scales.data, device_memory + 2), "v_scales.data",
     "it must be aligned to 4 bytes"},
    {with_key_scales, SLUICE_SET(k_scales.stride[1], -1), "k_scales.stride[1]", "it must not be negative"},
    {with_key_scales, SLUICE_SET(k_scales.stride[2], int64_t{1} << 50), "k_scales.stride",
     "beyond the address space"},
    // Blocks of elements with a common scale.
    {with_blocks, SLUICE_SET(k.data, device_memory + 1), "k.data", "it must be aligned to 2 bytes"},
    {with_blocks, SLUICE_SET(v.data, nullptr), "v.data", "v.data is NULL"},
    {with_blocks, SLUICE_SET(k.stride[0], 7 * 2 * 128 + 16), "k.stride[0]", "it must be a multiple of 32"},
    {with_blocks, SLUICE_SET(v.stride[1], 2 * 128 + 8), "v.stride[1]",
     "v.stride[1] is 264; it must be a multiple of 32"},
    {with_blocks, SLUICE_SET(v.stride[2], 144), "v.stride[2]", "it must be a multiple of 32"},
    {with_blocks, SLUICE_SET(k.stride[3], 2), "k.stride[3]", "k.stride[3] is 2; it must be 1"},
    {with_blocks, SLUICE_SET(k_scales.data, device_memory), "k_scales.data",
     "k_scale_kind is not PER_TOKEN, PER_PAGE or PER_GROUP"},
    {with_blocks, SLUICE_SET(v_scale, floats()), "v_scale", "v_scale_kind is not PER_TENSOR or PER_HEAD"},
    {with_blocks, SLUICE_SET(k_zeros.data, device_memory), "k_zeros.data",
     "the problem's flags lack SLUICE_ZERO_POINTS"},
    {with_groups, SLUICE_SET(k.data, device_memory + 2), "k.data", "it must be aligned to 16 bytes"},
    {with_groups, SLUICE_SET(k.stride[2], 136), "k.stride[2]", "it must be a multiple of 32"},
    {with_groups, SLUICE_SET(k_scales.data, nullptr), "k_scales.data", "k_scales.data is NULL"},
    {with_groups, SLUICE_SET(v_scales.data, device_memory + 1), "v_scales.data", "aligned to 2 bytes"},
    {with_groups, SLUICE_SET(v_scales.stride[3], 0), "v_scales.stride[3]", "is 0; it must be 1"},
    {with_groups, SLUICE_SET(k_scales.stride[1], -1), "k_scales.stride[1]", "it must not be negative"},
    {with_groups, SLUICE_SET(k_scale, floats()), "k_scale", "k_scale_kind is not PER_TENSOR or PER_HEAD"},
    {with_groups, SLUICE_SET(k_zeros.data, nullptr), "k_zeros.data", "k_zeros.data is NULL"},
    {with_groups, SLUICE_SET(v_zeros.data, device_memory + 5), "v_zeros.data", "aligned to 2 bytes"},
    {with_groups, SLUICE_SET(k_zeros.stride[0], 56), "k_zeros.stride[0]",
     "k_zeros.stride[0] is 56; it must be that of the scales, which is 28"},
    {with_groups, SLUICE_SET(v_zeros.stride[2], 2), "v_zeros.stride[2]", "which is 4"},
    {with_groups, SLUICE_SET(v_zeros.data, reinterpret_cast<void *>((uintptr_t{1} << 48) - 2)),
     "v_zeros.stride", "v_zeros would reach beyond the address space"},
    // Masks of sequences.
    {dense, SLUICE_SET(diagonals, array()), "diagonals", "mask_alignment is not SLUICE_GIVEN_DIAGONAL"},
    {dense, SLUICE_SET(causal, array()), "causal", "the problem's flags lack SLUICE_CAUSAL_BY_SEQUENCE"},
    {dense, SLUICE_SET(spans, array()), "spans", "the problem's flags lack SLUICE_SPANS"},
    {dense, SLUICE_SET(span_count, 1), "span_count",
     "span_count is 1, but the problem's flags lack SLUICE_SPANS"},
    {with_sequence_masks, SLUICE_SET(diagonals, nullptr), "diagonals", "diagonals is NULL"},
    {with_sequence_masks, SLUICE_SET(causal, nullptr), "causal", "causal is NULL"},
    {with_sequence_masks, SLUICE_SET(spans, nullptr), "spans", "spans is NULL"},
    {with_sequence_masks, SLUICE_SET(diagonals, SLUICE_ODD(int32_t)), "diagonals", "aligned to 4 bytes"},
    {with_sequence_masks, SLUICE_SET(causal, SLUICE_ODD(int32_t)), "causal", "aligned to 4 bytes"},
    {with_sequence_masks, SLUICE_SET(spans, SLUICE_ODD(int32_t)), "spans", "aligned to 4 bytes"},
    {with_sequence_masks, SLUICE_SET(span_count, -1), "span_count",
     "span_count is -1; with SLUICE_SPANS it must be from 0 to 1048576"},
    {with_sequence_masks, SLUICE_SET(span_count, (1 << 20) + 1), "span_count",
     "it must be from 0 to 1048576"},
};

/// A context whose kernels can do everything.
ContextHandle able_context(uint32_t kind) {
  static const std::vector<std::byte> pack = test_pack(all_features(), {"", "u4", "q4_0"});
  sluice_context_desc desc = context_desc(kind, pack);
  return make_context(desc);
}

} // namespace

TEST_CASE("every rule of a call is checked in its mode", "[args]") {
  FakeHip hip;
  const ContextHandle context = able_context(SLUICE_DEVICE_HIP);
  const sluice_launch launch = good_launch();
  for (const Refusal &refusal : refusals)
    check_call_refusal(hip, context, launch, refusal, SLUICE_INVALID_ARGUMENT);
}

TEST_CASE("q_len and kv_len may be left to the problem's bounds", "[args]") {
  FakeHip hip;
  const ContextHandle context = able_context(SLUICE_DEVICE_HIP);
  const sluice_launch launch = good_launch();
  for (Call (*const good)() : {dense, ragged, paged}) {
    Call call = good();
    call.problem.max_q_len = 5;
    call.problem.max_kv_len = 7;
    call.args.q_len = call.args.kv_len = 0;
    Error error;
    sluice_status status = sluice_run(make_plan(context, call.problem).get(), &call.args, &launch, &error);
    INFO(error.message);
    REQUIRE(status == SLUICE_OK);
    CHECK(hip.launch.kernargs.q_len == 5);
    CHECK(hip.launch.kernargs.kv_len == 7);
    call.problem.max_q_len = 0;
    check_refusal(sluice_run(make_plan(context, call.problem).get(), &call.args, &launch, &error), error,
                  SLUICE_INVALID_ARGUMENT, "q_len",
                  "q_len is 0, which is the problem's max_q_len, but the problem has no bound; it must be at "
                  "least 1, or "
                  "the call's flags have SLUICE_EXACT_LENGTHS");
    call.args.q_len = 5;
    call.problem.max_kv_len = 0;
    check_refusal(sluice_run(make_plan(context, call.problem).get(), &call.args, &launch, &error), error,
                  SLUICE_INVALID_ARGUMENT, "kv_len", "kv_len is 0, which is the problem's max_kv_len, but");
  }
}

TEST_CASE("only the device knows the number of rows if a call has starts", "[args]") {
  FakeHip hip;
  const ContextHandle context = able_context(SLUICE_DEVICE_HIP);
  const sluice_launch launch = good_launch();
  Call call = ragged();
  call.problem.max_q_tokens = 6; // less than batch * q_len, which only bounds the lengths
  CHECK(sluice_run(make_plan(context, call.problem).get(), &call.args, &launch, nullptr) == SLUICE_OK);
  // A head may start after all rows of the previous one, however few they are.
  call.args.o.stride[1] = 128;
  call.args.o.stride[2] = 2 * 128;
  CHECK(sluice_run(make_plan(context, call.problem).get(), &call.args, &launch, nullptr) == SLUICE_OK);
  // ... as long as the call does not say that there are more.
  call.args.q_tokens = 2;
  CHECK(sluice_run(make_plan(context, call.problem).get(), &call.args, &launch, nullptr) == SLUICE_OK);
  call.args.q_tokens = 3;
  Error error;
  check_refusal(sluice_run(make_plan(context, call.problem).get(), &call.args, &launch, &error), error,
                SLUICE_INVALID_ARGUMENT, "o.stride[2]", "elements of an output would overlap");
}

TEST_CASE("a device counts pages up to 2^32", "[args]") {
  FakeHip hip;
  const ContextHandle context = able_context(SLUICE_DEVICE_HIP);
  const sluice_launch launch = good_launch();
  Call call = paged();
  call.args.page_count = (int64_t{1} << 32) + 1;
  Error error;
  check_refusal(sluice_run(make_plan(context, call.problem).get(), &call.args, &launch, &error), error,
                SLUICE_UNSUPPORTED, "page_count", "nearest supported: 4294967296");
}

TEST_CASE("a call may use any page, and any byte of it", "[args]") {
  FakeHip hip;
  const ContextHandle context = able_context(SLUICE_DEVICE_HIP);
  const sluice_launch launch = good_launch();
  Call call = paged();
  call.args.kv_len = 1 << 30; // in as many pages as needed: they need not be adjacent
  call.args.page_table_stride = (1 << 30) / 16;
  call.args.k.stride[1] = call.args.v.stride[1] = 1 << 20;
  CHECK(sluice_run(make_plan(context, call.problem).get(), &call.args, &launch, nullptr) == SLUICE_OK);

  call = packed();
  call.args.page_count = 1;
  call.problem.k_pack = 16;
  call.args.k.stride[1] = 16;
  call.args.k.stride[3] = 16 * 16;
  constexpr uint64_t page_bytes = 16 * 2 * 128 * 2;
  const PlanHandle plan = make_plan(context, call.problem);
  call.args.k.data = reinterpret_cast<void *>((uint64_t{1} << 48) - page_bytes);
  CHECK(sluice_run(plan.get(), &call.args, &launch, nullptr) == SLUICE_OK);
  call.args.k.data = reinterpret_cast<void *>((uint64_t{1} << 48) - page_bytes + 16);
  Error error;
  check_refusal(sluice_run(plan.get(), &call.args, &launch, &error), error, SLUICE_INVALID_ARGUMENT,
                "k.stride", "beyond the address space");
}

TEST_CASE("a call does not know the end of a page table that is shared or the only one", "[args]") {
  FakeHip hip;
  const ContextHandle context = able_context(SLUICE_DEVICE_HIP);
  const sluice_launch launch = good_launch();
  Call call = paged();
  call.args.kv_len = 17; // two pages
  call.args.page_table_stride = 2;
  CHECK(sluice_run(make_plan(context, call.problem).get(), &call.args, &launch, nullptr) == SLUICE_OK);
  call.args.page_table_stride = 0;
  CHECK(sluice_run(make_plan(context, call.problem).get(), &call.args, &launch, nullptr) == SLUICE_OK);
  call.args.page_table_stride = 1;
  call.args.batch = 1;
  CHECK(sluice_run(make_plan(context, call.problem).get(), &call.args, &launch, nullptr) == SLUICE_OK);
}

TEST_CASE("an args struct of the first version is still a dense call", "[args]") {
  FakeHip hip;
  const ContextHandle context = able_context(SLUICE_DEVICE_HIP);
  const sluice_launch launch = good_launch();
  constexpr uint32_t first_size = 224;
  CHECK(offsetof(sluice_args, q_starts) == first_size);
  CHECK(offsetof(sluice_args, page_count) == 400); // the end of release 1.0's
  CHECK(sizeof(sluice_args) == 784);
  // Bytes after an older caller's struct are not read.
  const auto older = [](const Call &call) {
    sluice_args args = call.args;
    args.struct_size = first_size;
    std::memset(reinterpret_cast<char *>(&args) + first_size, 0xee, sizeof args - first_size);
    return args;
  };
  Call call = dense();
  Error error;
  sluice_args args = older(call);
  const sluice_status status = sluice_run(make_plan(context, call.problem).get(), &args, &launch, &error);
  INFO(error.message);
  CHECK(status == SLUICE_OK);
  call = ragged();
  args = older(call);
  check_refusal(sluice_run(make_plan(context, call.problem).get(), &args, &launch, &error), error,
                SLUICE_INVALID_ARGUMENT, "q_starts", "q_starts is NULL");
  for (const uint32_t size : {223u, 225u, 399u, 401u, 783u}) {
    args.struct_size = size;
    check_refusal(sluice_run(make_plan(context, call.problem).get(), &args, &launch, &error), error,
                  SLUICE_INVALID_ARGUMENT, "args.struct_size", "sizeof(sluice_args) is 784");
  }
  std::memset(&args, 0xee, sizeof args);
  CHECK(sluice_args_init(&args, first_size) == SLUICE_OK);
  CHECK(args.struct_size == first_size);
  CHECK(args.lse.stride[3] == 0);
  CHECK(args.page_table_stride == int64_t(0xeeeeeeeeeeeeeeee));
}

namespace {

/// Three sequences with rows of one element, on the host.
struct HostCall : Call {
  float q[8] = {}, k[64] = {}, v[64] = {}, o[8] = {};
  int32_t q_starts[4] = {0, 2, 2, 5}, kv_starts[4] = {1, 4, 4, 8}, q_lengths[3] = {2, 0, 1},
          kv_lengths[3] = {3, 0, 4}, page_starts[4] = {0, 2, 2, 4}, table[6] = {3, 0, 7, 1, 5, 2};
  int64_t table_64[6] = {3, 0, 7, 1, 5, 2};

  HostCall(uint32_t mode, uint32_t kind) {
    sluice_problem_init(&problem, sizeof problem);
    problem.mode = mode;
    problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F32;
    problem.q_heads = problem.kv_heads = problem.head_dim_qk = problem.head_dim_v = 1;
    sluice_args_init(&args, sizeof args);
    args.batch = 3;
    args.q_len = 3;
    args.kv_len = 4;
    const bool is_paged = mode == SLUICE_MODE_PAGED;
    args.q = {q, {0, 1, 0, 0}};
    args.k = {k, {is_paged * 2, 1, 0, 0}};
    args.v = {v, {is_paged * 2, 1, 0, 0}};
    args.o = {o, {0, 1, 0, 0}};
    args.q_starts = q_starts;
    if (is_paged) {
      problem.page_size = 2;
      problem.page_table_kind = kind;
      args.kv_lengths = kv_lengths;
      args.page_table = table;
      if (kind == SLUICE_PAGE_TABLE_CSR) args.page_starts = page_starts;
      if (kind == SLUICE_PAGE_TABLE_BLOCK) args.page_table_stride = 2;
    } else {
      args.kv_starts = kv_starts;
    }
  }
};

struct ContentRefusal {
  uint32_t mode;
  uint32_t kind;
  void (*change)(HostCall &);
  const char *field;
  const char *message;
};

constexpr uint32_t block = SLUICE_PAGE_TABLE_BLOCK;

const ContentRefusal content_refusals[] = {
    {SLUICE_MODE_RAGGED, 0, [](HostCall &c) { c.q_starts[0] = -1; }, "q_starts[0]",
     "q_starts[0] is -1; it must not be negative"},
    {SLUICE_MODE_RAGGED, 0, [](HostCall &c) { c.q_starts[2] = 1; }, "q_starts[2]",
     "q_starts[2] is 1; starts must not decrease, and the previous one is 2"},
    {SLUICE_MODE_RAGGED, 0, [](HostCall &c) { c.kv_starts[3] = 3; }, "kv_starts[3]",
     "starts must not decrease, and the previous one is 4"},
    {SLUICE_MODE_RAGGED, 0, [](HostCall &c) { c.q_starts[3] = 6; }, "q_starts[3]",
     "q_starts[3] is 6; the sequence before it has 4 rows, and q_len is 3"},
    {SLUICE_MODE_RAGGED, 0, [](HostCall &c) { c.kv_starts[3] = 9; }, "kv_starts[3]",
     "the sequence before it has 5 rows, and kv_len is 4"},
    {SLUICE_MODE_RAGGED, 0,
     [](HostCall &c) {
       c.args.q_lengths = c.q_lengths;
       c.q_lengths[1] = 1;
     },
     "q_lengths[1]", "q_lengths[1] is 1; between q_starts[1] and the next there are 0 rows"},
    {SLUICE_MODE_RAGGED, 0,
     [](HostCall &c) {
       c.args.q_lengths = c.q_lengths;
       c.q_lengths[2] = -1;
     },
     "q_lengths[2]", "q_lengths[2] is -1; it must not be negative"},
    {SLUICE_MODE_RAGGED, 0,
     [](HostCall &c) {
       c.args.kv_lengths = c.kv_lengths;
       c.kv_lengths[0] = 5;
     },
     "kv_lengths[0]", "kv_lengths[0] is 5; it must be at most kv_len, which is 4"},
    {SLUICE_MODE_RAGGED, 0, [](HostCall &c) { c.problem.max_q_tokens = 4; }, "q_starts[3]",
     "q_starts[3] is 5; it must be at most the problem's max_q_tokens, which is 4"},
    {SLUICE_MODE_RAGGED, 0, [](HostCall &c) { c.args.q_tokens = 4; }, "q_starts[3]",
     "q_starts[3] is 5; it must be at most q_tokens, which is 4"},
    {SLUICE_MODE_RAGGED, 0, [](HostCall &c) { c.args.kv_tokens = 7; }, "kv_starts[3]",
     "kv_starts[3] is 8; it must be at most kv_tokens, which is 7"},
    {SLUICE_MODE_PAGED, block, [](HostCall &c) { c.args.page_count = 5; }, "page_table[4]",
     "page_table[4] is 5; it must be less than page_count, which is 5"},
    // A negative number may hide keys, one that is too large may not.
    {SLUICE_MODE_PAGED, block,
     [](HostCall &c) {
       c.problem.flags |= SLUICE_MISSING_PAGES_HIDDEN;
       c.table[1] = -1;
       c.args.page_count = 5;
     },
     "page_table[4]", "page_table[4] is 5; it must be less than page_count, which is 5"},
    {SLUICE_MODE_PAGED, block, [](HostCall &c) { c.kv_lengths[2] = 5; }, "kv_lengths[2]", "at most kv_len"},
    {SLUICE_MODE_PAGED, block, [](HostCall &c) { c.table[1] = -1; }, "page_table[1]",
     "page_table[1] is -1; a page number must not be negative"},
    {SLUICE_MODE_PAGED, block, [](HostCall &c) { c.table[5] = -3; }, "page_table[5]", "page_table[5] is -3"},
    {SLUICE_MODE_PAGED, block,
     [](HostCall &c) {
       c.problem.flags |= SLUICE_PAGE_INDEX_64;
       c.args.page_table = c.table_64;
       c.table_64[5] = -(int64_t{1} << 40);
     },
     "page_table[5]", "page_table[5] is -1099511627776"},
    {SLUICE_MODE_PAGED, SLUICE_PAGE_TABLE_CSR, [](HostCall &c) { c.table[3] = -1; }, "page_table[3]",
     "page_table[3] is -1"},
    {SLUICE_MODE_PAGED, SLUICE_PAGE_TABLE_CSR, [](HostCall &c) { c.page_starts[1] = 1; }, "page_starts[1]",
     "page_starts[1] is 1; sequence 0 starts at 0 and needs 2 pages"},
    {SLUICE_MODE_PAGED, SLUICE_PAGE_TABLE_CSR, [](HostCall &c) { c.page_starts[2] = 1; }, "page_starts[2]",
     "starts must not decrease"},
};

} // namespace

TEST_CASE("the host reference checks what lengths, starts and tables hold", "[args]") {
  for (const ContentRefusal &refusal : content_refusals) {
    HostCall good(refusal.mode, refusal.kind);
    Error error;
    const sluice_status status = sluice_reference(&good.problem, &good.args, &error);
    INFO(error.message);
    REQUIRE(status == SLUICE_OK);
    HostCall call(refusal.mode, refusal.kind);
    for (float &value : call.o)
      value = -1;
    refusal.change(call);
    check_refusal(sluice_reference(&call.problem, &call.args, &error), error, SLUICE_INVALID_ARGUMENT,
                  refusal.field, refusal.message);
    for (const float value : call.o)
      CHECK(value == -1);
  }
}

TEST_CASE("entries of a table that no key needs may be anything", "[args]") {
  HostCall call(SLUICE_MODE_PAGED, block);
  call.table[2] = call.table[3] = -1; // of the sequence without keys
  call.kv_lengths[0] = 2;
  call.table[1] = -1; // after two keys of one page
  Error error;
  const sluice_status status = sluice_reference(&call.problem, &call.args, &error);
  INFO(error.message);
  CHECK(status == SLUICE_OK);
}

TEST_CASE("the host reference accepts calls that only a device limits", "[args]") {
  HostCall call(SLUICE_MODE_RAGGED, 0);
  call.problem.max_q_len = 3;
  call.problem.max_kv_len = 4;
  call.args.q_len = call.args.kv_len = 0; // left to the bounds
  call.args.q.data = call.q + 1;          // aligned to its element only
  Error error;
  const sluice_status status = sluice_reference(&call.problem, &call.args, &error);
  INFO(error.message);
  CHECK(status == SLUICE_OK);
}

//===- cache_ops_test.cpp - appends and merges: rules, launches, loading --------------------------------===//
#include "cache_op_fixture.h"

#include <cmath>
#include <functional>
#include <limits>

using namespace sluice::test;

namespace {

template <typename Call> struct Breach {
  const char *field;
  sluice_status status;
  const char *message_part;
  std::function<void(Call &)> breaks;
};

const float *floats(size_t offset) {
  return reinterpret_cast<const float *>(device_memory + offset);
}
const int32_t *ints(size_t offset) {
  return reinterpret_cast<const int32_t *>(device_memory + offset);
}

using A = sluice_append;
constexpr sluice_status invalid = SLUICE_INVALID_ARGUMENT, unsupported = SLUICE_UNSUPPORTED;

/// Rules of appends by slots.
const Breach<A> append_breaches[] = {
    {"flags", SLUICE_NEWER_STRUCT, "0x200", [](A &a) { a.flags = 1 << 9; }},
    {"flags", invalid, "0x1", [](A &a) { a.flags = SLUICE_CAUSAL; }},
    {"flags", invalid, "page_table is not used", [](A &a) { a.flags = SLUICE_PAGE_INDEX_64; }},
    {"source_type", invalid, "missing", [](A &a) { a.source_type = 0; }},
    {"source_type", unsupported, "source_type is f32; nearest supported: f16 or bf16",
     [](A &a) { a.source_type = SLUICE_F32; }},
    {"source_type", SLUICE_NEWER_STRUCT, "99; the last value that this version knows is SLUICE_Q4_0 (11)",
     [](A &a) { a.source_type = 99; }},
    {"cache_type", invalid, "missing", [](A &a) { a.cache_type = 0; }},
    {"cache_type", unsupported, "cache_type is bf16; nearest supported: f16",
     [](A &a) { a.cache_type = SLUICE_BF16; }},
    {"cache_type", unsupported, "cache_type is e4m3fn: the kernel pack has no kernel",
     [](A &a) { a.cache_type = SLUICE_E4M3FN; }},
    {"cache_type", unsupported, "cache_type is e5m2: the kernel pack has no kernel",
     [](A &a) { a.cache_type = SLUICE_E5M2; }},
    {"kv_heads", invalid, "0; it must be at least 1", [](A &a) { a.kv_heads = 0; }},
    {"kv_heads", unsupported, "16777215", [](A &a) { a.kv_heads = 1 << 24; }},
    {"head_dim_qk", invalid, "-8", [](A &a) { a.head_dim_qk = -8; }},
    {"head_dim_qk", invalid, "multiple of 8", [](A &a) { a.head_dim_qk = 100; }},
    {"head_dim_v", invalid, "0", [](A &a) { a.head_dim_v = 0; }},
    {"head_dim_v", invalid, "multiple of 8", [](A &a) { a.head_dim_v = 4; }},
    {"head_dim_v", invalid, "SLUICE_V_IN_K", [](A &a) { a.flags = SLUICE_V_IN_K; }},
    {"page_size", invalid, "0", [](A &a) { a.page_size = 0; }},
    {"tokens", invalid, "-1; it must not be negative", [](A &a) { a.tokens = -1; }},
    {"k_pack", invalid, "divide head_dim_qk", [](A &a) { a.k_pack = 24; }},
    {"k_pack", invalid, "-1", [](A &a) { a.k_pack = -1; }},
    {"k_pack", unsupported, "4", [](A &a) { a.k_pack = 4; }},
    {"slots", invalid, "both NULL", [](A &a) { a.slots = nullptr; }},
    {"slots", invalid, "both given", [](A &a) { a.starts = ints(4); }},
    {"slots", invalid, "8 bytes",
     [](A &a) { a.slots = reinterpret_cast<const int64_t *>(device_memory + 4); }},
    {"page_table_kind", invalid, "with slots", [](A &a) { a.page_table_kind = SLUICE_PAGE_TABLE_BLOCK; }},
    {"page_table_kind", SLUICE_NEWER_STRUCT, "3", [](A &a) { a.page_table_kind = 3; }},
    {"page_count", invalid, "-1; it must not be negative", [](A &a) { a.page_count = -1; }},
    {"k_cache.stride", invalid, "beyond the address space", [](A &a) { a.page_count = int64_t{1} << 50; }},
    {"batch", invalid, "with slots", [](A &a) { a.batch = 1; }},
    {"kv_lengths", invalid, "with starts", [](A &a) { a.kv_lengths = ints(4); }},
    {"page_table", invalid, "with starts", [](A &a) { a.page_table = ints(4); }},
    {"page_starts", invalid, "SLUICE_PAGE_TABLE_CSR", [](A &a) { a.page_starts = ints(4); }},
    {"page_table_stride", invalid, "SLUICE_PAGE_TABLE_BLOCK", [](A &a) { a.page_table_stride = 1; }},
    {"k_scale_kind", invalid, "FP8", [](A &a) { a.k_scale_kind = SLUICE_SCALE_PER_TENSOR; }},
    {"v_scale_kind", invalid, "FP8", [](A &a) { a.v_scale_kind = SLUICE_SCALE_PER_HEAD; }},
    {"k_scale", invalid, "given", [](A &a) { a.k_scale = floats(4); }},
    {"v_scale", invalid, "given", [](A &a) { a.v_scale = floats(4); }},
    {"rotary_dim", invalid, "-2", [](A &a) { a.rotary_dim = -2; }},
    {"rotary_dim", invalid, "even", [](A &a) { a.rotary_dim = 3; }},
    {"rotary_dim", invalid, "130", [](A &a) { a.rotary_dim = 130; }},
    {"rotary_style", invalid, "without rotary_dim", [](A &a) { a.rotary_style = SLUICE_ROTARY_PAIRS; }},
    {"rotary", invalid, "with rotary_dim", [](A &a) { a.rotary = floats(4); }},
    {"rotary_stride", invalid, "without rotary_dim", [](A &a) { a.rotary_stride = 4; }},
    {"positions", invalid, "rotary_dim is 0", [](A &a) { a.positions = ints(4); }},
    {"k.data", invalid, "NULL", [](A &a) { a.k.data = nullptr; }},
    {"k.data", invalid, "16 bytes", [](A &a) { a.k.data = device_memory + 8; }},
    {"k.stride[1]", invalid, "multiple of 8", [](A &a) { a.k.stride[1] = 260; }},
    {"k.stride[2]", invalid, "negative", [](A &a) { a.k.stride[2] = -128; }},
    {"k.stride[3]", invalid, "it must be 1", [](A &a) { a.k.stride[3] = 2; }},
    {"k.stride[1]", invalid, "2^63", [](A &a) { a.k.stride[1] = INT64_MAX / 8 * 8; }},
    {"v.data", invalid, "NULL", [](A &a) { a.v.data = nullptr; }},
    {"v.stride[1]", invalid, "multiple of 8", [](A &a) { a.v.stride[1] = 1; }},
    {"v.stride[3]", invalid, "it must be 1", [](A &a) { a.v.stride[3] = 0; }},
    {"k_cache.data", invalid, "NULL", [](A &a) { a.k_cache.data = nullptr; }},
    {"k_cache.data", invalid, "16 bytes", [](A &a) { a.k_cache.data = device_memory + 8; }},
    {"k_cache.stride[0]", invalid, "multiple of 8", [](A &a) { a.k_cache.stride[0] += 4; }},
    {"k_cache.stride[0]", invalid, "overlap", [](A &a) { a.k_cache.stride[0] -= 8; }},
    {"k_cache.stride[1]", invalid, "overlap", [](A &a) { a.k_cache.stride[1] = 0; }},
    {"k_cache.stride[2]", invalid, "negative", [](A &a) { a.k_cache.stride[2] = -8; }},
    {"k_cache.stride[3]", invalid, "it must be 1", [](A &a) { a.k_cache.stride[3] = 8; }},
    {"v_cache.data", invalid, "NULL", [](A &a) { a.v_cache.data = nullptr; }},
    {"v_cache.stride[0]", invalid, "overlap", [](A &a) { a.v_cache.stride[0] = 0; }},
    {"v_cache.stride[3]", invalid, "it must be 1", [](A &a) { a.v_cache.stride[3] = 2; }},
};

/// Rules of appends by a block table, with rotation.
const Breach<A> table_breaches[] = {
    {"page_table_kind", invalid, "with starts", [](A &a) { a.page_table_kind = SLUICE_PAGE_TABLE_NONE; }},
    {"batch", invalid, "-1; it must not be negative", [](A &a) { a.batch = -1; }},
    {"starts", invalid, "4 bytes",
     [](A &a) { a.starts = reinterpret_cast<const int32_t *>(device_memory + 2); }},
    {"kv_lengths", invalid, "NULL", [](A &a) { a.kv_lengths = nullptr; }},
    {"kv_lengths", invalid, "4 bytes",
     [](A &a) { a.kv_lengths = reinterpret_cast<const int32_t *>(device_memory + 2); }},
    {"page_table", invalid, "NULL", [](A &a) { a.page_table = nullptr; }},
    {"page_table", invalid, "4 bytes", [](A &a) { a.page_table = device_memory + 2; }},
    {"page_table", invalid, "8 bytes", [](A &a) { a.flags = SLUICE_PAGE_INDEX_64; }},
    {"page_table_stride", invalid, "-1", [](A &a) { a.page_table_stride = -1; }},
    {"page_starts", invalid, "given", [](A &a) { a.page_starts = ints(4); }},
    {"page_starts", invalid, "NULL", [](A &a) { a.page_table_kind = SLUICE_PAGE_TABLE_CSR; }},
    {"rotary", invalid, "NULL", [](A &a) { a.rotary = nullptr; }},
    {"rotary", invalid, "4 bytes",
     [](A &a) { a.rotary = reinterpret_cast<const float *>(device_memory + 2); }},
    {"rotary_stride", invalid, "-1", [](A &a) { a.rotary_stride = -1; }},
    {"rotary_style", SLUICE_NEWER_STRUCT, "2", [](A &a) { a.rotary_style = 2; }},
    {"positions", invalid, "4 bytes",
     [](A &a) { a.positions = reinterpret_cast<const int32_t *>(device_memory + 2); }},
    {"positions", invalid, "NULL",
     [](A &a) {
       const A by_slots = good_append();
       a.slots = by_slots.slots;
       a.starts = a.kv_lengths = nullptr;
       a.page_table = nullptr;
       a.page_table_kind = 0;
       a.batch = 0;
       a.page_table_stride = 0;
     }},
    {"v", invalid, "all zero",
     [](A &a) {
       a.flags = SLUICE_V_IN_K;
       a.head_dim_v = 0;
       a.v.data = nullptr;
     }},
    {"v_cache", invalid, "all zero",
     [](A &a) {
       a.flags = SLUICE_V_IN_K;
       a.head_dim_v = 0;
       a.v = {};
     }},
};

/// Rules of appends into an x-packed cache of FP8, by a CSR table of 64-bit entries.
const Breach<A> fp8_breaches[] = {
    {"page_table_stride", invalid, "SLUICE_PAGE_TABLE_BLOCK", [](A &a) { a.page_table_stride = 3; }},
    {"page_table", invalid, "8 bytes", [](A &a) { a.page_table = device_memory + 4; }},
    {"k_scale_kind", unsupported, "k_scale_kind is 5; nearest supported: SLUICE_SCALE_PER_PAGE (4)",
     [](A &a) { a.k_scale_kind = 5; }},
    {"v_scale_kind", SLUICE_NEWER_STRUCT, "6", [](A &a) { a.v_scale_kind = 6; }},
    {"k_scale", invalid, "k_scale is given", [](A &a) { a.k_scale_kind = SLUICE_SCALE_PER_TOKEN; }},
    {"v_scale", invalid, "v_scale is given", [](A &a) { a.v_scale_kind = SLUICE_SCALE_PER_PAGE; }},
    {"k_scales", invalid,
     "k_scales is given; it must be all zero without a scale kind of PER_TOKEN, PER_PAGE or PER_GROUP",
     [](A &a) { a.k_scales.stride[0] = 1; }},
    {"v_scales", invalid, "all zero without", [](A &a) { a.v_scales.data = device_memory; }},
    {"k_scale", invalid, "NULL", [](A &a) { a.k_scale = nullptr; }},
    {"v_scale", invalid, "4 bytes",
     [](A &a) { a.v_scale = reinterpret_cast<const float *>(device_memory + 2); }},
    {"k_cache.stride[3]", invalid, "multiple of k_pack", [](A &a) { a.k_cache.stride[3] += 8; }},
    {"k_cache.stride[3]", invalid, "overlap", [](A &a) { a.k_cache.stride[3] = 16; }},
    {"k_cache.stride[1]", invalid, "multiple of k_pack", [](A &a) { a.k_cache.stride[1] = 8; }},
    {"v_scale_kind", invalid, "FP8",
     [](A &a) {
       a.flags |= SLUICE_V_IN_K;
       a.head_dim_v = 0;
       a.v = a.v_cache = {};
     }},
    {"cache_type", unsupported, "no kernel", [](A &) {}}, // the pack of these tests lacks it
};

/// Rules of the step of a layer.
const Breach<A> step_breaches[] = {
    {"rotary_type", unsupported, "rotary_type is e4m3fnuz; nearest supported: f16, bf16 or f32",
     [](A &a) { a.rotary_type = SLUICE_E4M3FNUZ; }},
    {"rotary_first", invalid, "rotary_first is -8; it must be a multiple of 8",
     [](A &a) { a.rotary_first = -8; }},
    {"rotary_first", invalid, "rotary_first is 60; it must be a multiple of 8",
     [](A &a) { a.rotary_first = 60; }},
    {"rotary_first", invalid,
     "rotary_first is 72; it must be a multiple of 8 and at most head_dim_qk - "
     "rotary_dim, which is 64",
     [](A &a) { a.rotary_first = 72; }},
    {"rotary", invalid, "2 bytes",
     [](A &a) { a.rotary = reinterpret_cast<const float *>(device_memory + 1); }},
    {"rotary_sin", invalid, "2 bytes", [](A &a) { a.rotary_sin = device_memory + 41; }},
    {"rotary_sin", invalid, "4 bytes",
     [](A &a) {
       a.rotary_type = SLUICE_F32;
       a.rotary_sin = device_memory + 42;
     }},
    {"rotary_dim", unsupported,
     "rotary_dim is 20 in a call that uses members of ABI 1.1; nearest supported: 16",
     [](A &a) { a.rotary_dim = 20; }},
    {"rotary_dim", unsupported,
     "rotary_dim is 2 in a call that uses members of ABI 1.1; nearest supported: 16",
     [](A &a) { a.rotary_dim = 2; }},
    {"rotary_type", invalid, "rotary_type is 2; it must be 0 without rotary_dim",
     [](A &a) { a.rotary_dim = 0; }},
    {"rotary_first", invalid, "rotary_first is 64; it must be 0 without rotary_dim",
     [](A &a) { a.rotary_dim = 0, a.rotary_type = 0; }},
    {"rotary_sin", invalid, "rotary_sin is given, but rotary_dim is 0",
     [](A &a) { a.rotary_dim = 0, a.rotary_type = 0, a.rotary_first = 0; }},
    {"q_heads", invalid, "q_heads is -1; it must not be negative", [](A &a) { a.q_heads = -1; }},
    {"q_heads", unsupported, "nearest supported: 16777215", [](A &a) { a.q_heads = 1 << 24; }},
    {"tokens", unsupported,
     "tokens is 1073741824, which makes 4294967296 rows of 4 heads in a call that uses members of ABI 1.1; "
     "nearest supported: 536870911",
     [](A &a) { a.tokens = 1 << 30; }},
    {"tail_dim", invalid, "tail_dim is -8; it must be a multiple of 8", [](A &a) { a.tail_dim = -8; }},
    {"tail_dim", invalid, "tail_dim is 60; it must be a multiple of 8", [](A &a) { a.tail_dim = 60; }},
    {"tail_dim", invalid, "less than head_dim_qk, which is 128", [](A &a) { a.tail_dim = 128; }},
    {"head_dim_v", unsupported,
     "head_dim_v is 1032 in a call that uses members of ABI 1.1; nearest supported: 1024",
     [](A &a) {
       a.head_dim_v = 1032;
       a.v.stride[1] = a.v_cache.stride[1] = 2 * 1032;
       a.v.stride[2] = a.v_cache.stride[2] = 1032;
       a.v_cache.stride[0] = 16 * 2 * 1032;
     }},
    {"q", invalid, "q is given; it must be all zero without q_heads",
     [](A &a) { a.q_heads = 0, a.q_norm = nullptr; }},
    {"q_out", invalid, "q_out is given", [](A &a) { a.q_heads = 0, a.q_norm = nullptr, a.q = {}; }},
    {"q_tail", invalid, "q_tail is given; it must be all zero without q_heads",
     [](A &a) {
       a.q_heads = 0;
       a.q_norm = nullptr;
       a.q = a.q_out = {};
       a.q_tail.stride[3] = 1;
     }},
    {"q_norm", invalid, "q_norm is given, but q_heads is 0", [](A &a) { a.q_heads = 0; }},
    {"q.data", invalid, "NULL", [](A &a) { a.q.data = nullptr; }},
    {"q.data", invalid, "16 bytes", [](A &a) { a.q.data = device_memory + 8; }},
    {"q.stride[2]", invalid, "multiple of 8", [](A &a) { a.q.stride[2] = 132; }},
    {"q.stride[3]", invalid, "it must be 1", [](A &a) { a.q.stride[3] = 2; }},
    {"q_out.data", invalid, "NULL", [](A &a) { a.q_out.data = nullptr; }},
    {"q_out.stride[1]", invalid, "overlap", [](A &a) { a.q_out.stride[1] = 504; }},
    {"q_out.stride[3]", invalid, "it must be 1", [](A &a) { a.q_out.stride[3] = 0; }},
    {"q_tail.data", invalid, "NULL", [](A &a) { a.q_tail.stride[3] = 1; }},
    {"q_tail.stride[3]", invalid, "it must be 1", [](A &a) { a.q_tail.data = device_memory; }},
    {"k_tail.data", invalid, "NULL", [](A &a) { a.k_tail.data = nullptr; }},
    {"k_tail.stride[1]", invalid, "multiple of 8", [](A &a) { a.k_tail.stride[1] = 4; }},
    {"k_tail.stride[2]", invalid, "negative", [](A &a) { a.k_tail.stride[2] = -64; }},
    {"k_tail", invalid, "k_tail is given; it must be all zero without tail_dim",
     [](A &a) { a.tail_dim = 0; }},
    {"q_tail", invalid, "q_tail is given; it must be all zero without tail_dim",
     [](A &a) {
       a.tail_dim = 0;
       a.k_tail = {};
       a.q_tail = a.q;
     }},
    {"norm_type", unsupported, "norm_type is bf16; nearest supported: f16 or f32",
     [](A &a) { a.norm_type = SLUICE_BF16; }},
    {"norm_type", invalid, "norm_type is 3; it must be 0 without q_norm and k_norm",
     [](A &a) { a.q_norm = a.k_norm = nullptr; }},
    {"norm_epsilon", invalid, "it must be 0 without q_norm and k_norm",
     [](A &a) { a.q_norm = a.k_norm = nullptr, a.norm_type = 0; }},
    {"norm_epsilon", invalid, "it must be finite and not negative", [](A &a) { a.norm_epsilon = -1; }},
    {"norm_epsilon", invalid, "it must be finite and not negative", [](A &a) { a.norm_epsilon = INFINITY; }},
    {"norm_epsilon", invalid, "it must be finite and not negative", [](A &a) { a.norm_epsilon = NAN; }},
    {"q_norm", invalid, "4 bytes", [](A &a) { a.q_norm = device_memory + 2; }},
    {"k_norm", invalid, "4 bytes", [](A &a) { a.k_norm = device_memory + 2; }},
    {"k_norm", invalid, "2 bytes", [](A &a) { a.norm_type = 0, a.k_norm = device_memory + 1; }},
};

/// Rules of scales that an append computes, of K, and reads per page, of V.
const Breach<A> scales_breaches[] = {
    {"k_scales.data", invalid, "NULL", [](A &a) { a.k_scales.data = nullptr; }},
    {"k_scales.data", invalid, "4 bytes", [](A &a) { a.k_scales.data = device_memory + 2; }},
    {"k_scales.stride[0]", invalid, "overlap", [](A &a) { a.k_scales.stride[0] = 31; }},
    {"k_scales.stride[1]", invalid, "overlap", [](A &a) { a.k_scales.stride[1] = 0; }},
    {"k_scales.stride[2]", invalid, "overlap", [](A &a) { a.k_scales.stride[2] = 0; }},
    {"k_scales.stride[2]", invalid, "negative", [](A &a) { a.k_scales.stride[2] = -1; }},
    {"v_scales.data", invalid, "NULL", [](A &a) { a.v_scales = {}; }},
    {"v_scales.stride[0]", invalid, "negative", [](A &a) { a.v_scales.stride[0] = -2; }},
    {"k_scale_kind", invalid, "FP8", [](A &a) { a.cache_type = SLUICE_F16; }},
    {"head_dim_qk", unsupported,
     "head_dim_qk is 2048 in a call that uses members of ABI 1.1; nearest supported: 1024",
     [](A &a) {
       a.head_dim_qk = 2048;
       a.k.stride[1] = a.k_cache.stride[1] = 2 * 2048;
       a.k.stride[2] = a.k_cache.stride[2] = 2048;
       a.k_cache.stride[0] = 16 * 2 * 2048;
     }},
    {"cache_type", unsupported, "no kernel", [](A &) {}}, // the pack of these tests lacks it
};

/// Rules of V by columns: of pages of 32 rows, in packs of 8.
const Breach<A> columns_breaches[] = {
    {"v_pack", invalid,
     "v_pack is 4; it must be a power of two from 8 on that divides page_size, which is 32",
     [](A &a) { a.v_pack = 4; }},
    {"v_pack", invalid, "v_pack is 24", [](A &a) { a.v_pack = 24; }},
    {"v_pack", invalid, "v_pack is 64", [](A &a) { a.v_pack = 64; }},
    {"v_pack", invalid, "v_pack is -8", [](A &a) { a.v_pack = -8; }},
    {"page_size", invalid, "page_size is 36; with v_pack it must be a multiple of 8",
     [](A &a) { a.page_size = 36, a.v_pack = SLUICE_V_PACK_ALL; }},
    {"v_pack", invalid, "v_pack is 8; it must be 0 with SLUICE_V_IN_K",
     [](A &a) { a.flags = SLUICE_V_IN_K, a.head_dim_v = 0, a.v = a.v_cache = {}; }},
    {"v_pack", unsupported, "v_pack is 8 with a cache of i8; nearest supported: 0",
     [](A &a) { a.cache_type = SLUICE_I8; }},
    {"v_pack", unsupported, "v_pack is 8 with a cache of e5m2fnuz; nearest supported: 0",
     [](A &a) { a.cache_type = SLUICE_E5M2FNUZ; }},
    {"v_cache.data", invalid, "NULL", [](A &a) { a.v_cache.data = nullptr; }},
    {"v_cache.stride[0]", invalid, "overlap", [](A &a) { a.v_cache.stride[0] = 0; }},
    {"v_cache.stride[0]", invalid, "negative", [](A &a) { a.v_cache.stride[0] = -8192; }},
    {"v_cache.stride[1]", invalid, "overlap", [](A &a) { a.v_cache.stride[1] -= 8; }},
    {"v_cache.stride[2]", invalid, "multiple of 8", [](A &a) { a.v_cache.stride[2] += 4; }},
    {"v_cache.stride[3]", invalid, "overlap", [](A &a) { a.v_cache.stride[3] = 0; }},
    {"v_cache.stride[3]", invalid, "multiple of 8", [](A &a) { a.v_cache.stride[3] = 12; }},
    {"v_cache.stride[1]", invalid, "it must be 1 with SLUICE_V_PACK_ALL",
     [](A &a) { a.v_pack = SLUICE_V_PACK_ALL; }},
    {"v_cache.stride[3]", invalid, "overlap",
     [](A &a) { a.v_pack = SLUICE_V_PACK_ALL, a.v_cache.stride[1] = 1, a.v_cache.stride[3] = 24; }},
    {"head_dim_v", unsupported,
     "head_dim_v is 1032 in a call that uses members of ABI 1.1; nearest supported: 1024",
     [](A &a) {
       a.head_dim_v = 1032;
       a.v.stride[1] = 2 * 1032;
       a.v.stride[2] = 1032;
       a.v_cache.stride[2] = 1032 * 8;
       a.v_cache.stride[1] = 2 * 1032 * 8;
       a.v_cache.stride[0] = 4 * 2 * 1032 * 8;
     }},
    {"cache_type", unsupported, "no kernel", [](A &a) { a.cache_type = SLUICE_E4M3FNUZ; }},
};

/// Rules of blocks of ggml.
const Breach<A> block_breaches[] = {
    {"head_dim_qk", invalid, "head_dim_qk is 144; it must be a multiple of 32 for q4_0",
     [](A &a) { a.head_dim_qk = 144; }},
    {"head_dim_v", invalid, "head_dim_v is 72; it must be a multiple of 32 for q8_0",
     [](A &a) { a.cache_type = SLUICE_Q8_0, a.head_dim_v = 72; }},
    {"k_pack", invalid, "k_pack is 32; it must be 0 for q4_0", [](A &a) { a.k_pack = 32; }},
    {"k_scale_kind", invalid, "it must be SLUICE_SCALE_NONE (0) without a cache of FP8, i8 or u4",
     [](A &a) { a.k_scale_kind = SLUICE_SCALE_PER_TOKEN; }},
    {"scale_group", invalid, "scale_group is 32; it must be 0 without scales per group",
     [](A &a) { a.scale_group = 32; }},
    {"flags", invalid, "SLUICE_ZERO_POINTS, but cache_type is not u4",
     [](A &a) { a.flags = SLUICE_ZERO_POINTS; }},
    {"v_pack", invalid, "v_pack is 16; it must be 0 for q4_0", [](A &a) { a.v_pack = 16; }},
    {"k_cache.data", invalid, "2 bytes", [](A &a) { a.k_cache.data = device_memory + 1; }},
    {"k_cache.stride[0]", invalid, "multiple of 32", [](A &a) { a.k_cache.stride[0] += 16; }},
    {"k_cache.stride[2]", invalid, "overlap", [](A &a) { a.k_cache.stride[2] -= 32; }},
    {"v_cache.stride[1]", invalid, "multiple of 32", [](A &a) { a.v_cache.stride[1] = 136; }},
    {"v_cache.stride[3]", invalid, "it must be 1", [](A &a) { a.v_cache.stride[3] = 2; }},
    {"rotary_dim", unsupported,
     "rotary_dim is 40 in a call that uses members of ABI 1.1; nearest supported: 32",
     [](A &a) { a.rotary_dim = 40; }},
    {"rotary_dim", unsupported,
     "rotary_dim is 8 in a call that uses members of ABI 1.1; nearest supported: 16",
     [](A &a) { a.rotary_dim = 8; }},
    {"cache_type", unsupported, "no kernel", [](A &) {}}, // the pack of these tests lacks it
};

/// Rules of groups of 4 bits.
const Breach<A> group_breaches[] = {
    {"k_scale_kind", invalid, "k_scale_kind is 0; it must be SLUICE_SCALE_PER_GROUP (5) for u4",
     [](A &a) { a.k_scale_kind = SLUICE_SCALE_NONE; }},
    {"v_scale_kind", invalid, "v_scale_kind is 3; it must be SLUICE_SCALE_PER_GROUP (5) for u4",
     [](A &a) { a.v_scale_kind = SLUICE_SCALE_PER_TOKEN; }},
    {"k_scale_kind", unsupported, "5; nearest supported: SLUICE_SCALE_PER_PAGE (4)",
     [](A &a) { a.cache_type = SLUICE_I8; }},
    {"k_scale", invalid, "NULL except", [](A &a) { a.k_scale = floats(4); }},
    {"scale_group", invalid, "scale_group is 0; it must be 32 or 64", [](A &a) { a.scale_group = 0; }},
    {"scale_group", invalid, "scale_group is 128; it must be 32 or 64", [](A &a) { a.scale_group = 128; }},
    {"head_dim_qk", invalid, "head_dim_qk is 96; it must be a multiple of 64 for u4",
     [](A &a) { a.scale_group = 64, a.head_dim_qk = 96; }},
    {"k_cache.data", invalid, "16 bytes", [](A &a) { a.k_cache.data = device_memory + 8; }},
    {"k_cache.stride[1]", invalid, "multiple of 32", [](A &a) { a.k_cache.stride[1] = 264; }},
    {"k_scales.data", invalid, "NULL", [](A &a) { a.k_scales.data = nullptr; }},
    {"k_scales.data", invalid, "2 bytes", [](A &a) { a.k_scales.data = device_memory + 1; }},
    {"k_scales.stride[2]", invalid, "overlap", [](A &a) { a.k_scales.stride[2] = 3; }},
    {"k_scales.stride[3]", invalid, "it must be 1", [](A &a) { a.k_scales.stride[3] = 0; }},
    {"v_scales.stride[1]", invalid, "overlap", [](A &a) { a.v_scales.stride[1] = 3; }},
    {"k_zeros.data", invalid, "NULL", [](A &a) { a.k_zeros.data = nullptr; }},
    {"k_zeros.data", invalid, "2 bytes", [](A &a) { a.k_zeros.data = device_memory + 1; }},
    {"v_zeros.stride[2]", invalid, "it must be that of the scales, which is 2",
     [](A &a) { a.v_zeros.stride[2] = 4; }},
    {"k_zeros", invalid, "all zero except of caches with SLUICE_ZERO_POINTS", [](A &a) { a.flags = 0; }},
    {"v_zeros", invalid, "all zero except of caches with SLUICE_ZERO_POINTS",
     [](A &a) {
       a.flags |= SLUICE_V_IN_K;
       a.head_dim_v = 0;
       a.v_scale_kind = SLUICE_SCALE_NONE;
       a.v = a.v_cache = a.v_scales = {};
     }},
    {"k_pack", invalid, "k_pack is 32; it must be 0 for u4", [](A &a) { a.k_pack = 32; }},
    {"cache_type", unsupported, "no kernel", [](A &) {}}, // the pack of these tests lacks it
};

using M = sluice_merge;
const void *const listed[16] = {device_memory, device_memory + 32, device_memory + 16};
const void *const with_gap[3] = {device_memory, nullptr, device_memory + 16};
const void *const unaligned[3] = {device_memory, device_memory + 32, device_memory + 2};
/// Lists of parts, which have no tensors then.
void list_parts(M &m, const void *const *partial, const void *const *partial_lse) {
  m.partial_list = partial;
  m.partial_lse_list = partial_lse;
  m.partial.data = m.partial_lse.data = nullptr;
  m.partial.stride[0] = m.partial_lse.stride[0] = 0;
}
/// Three sequences of two tokens: LSEs are [sequence][head][token].
void part_sequences(M &m) {
  m.tokens = 6;
  m.sequence_tokens = 2;
  m.partial_lse.stride[0] = 12;
  m.partial_lse.stride[1] = m.lse.stride[1] = 1;
  m.partial_lse.stride[2] = m.lse.stride[2] = 2;
  m.partial_lse_sequence_stride = m.lse_sequence_stride = 4;
}

const Breach<M> merge_breaches[] = {
    {"flags", SLUICE_NEWER_STRUCT, "0x2", [](M &m) { m.flags = 3; }},
    {"reserved", SLUICE_NEWER_STRUCT, "1", [](M &m) { m.reserved = 1; }},
    {"partial.stride", invalid, "beyond the address space",
     [](M &m) { m.partial.stride[0] = std::numeric_limits<int64_t>::min() / 4; }},
    {"partial_lse.stride", invalid, "beyond the address space",
     [](M &m) { m.partial_lse.stride[0] = std::numeric_limits<int64_t>::min(); }},
    {"partial_lse_list", invalid, "NULL", [](M &m) { list_parts(m, listed, nullptr); }},
    {"partial_list", invalid, "NULL", [](M &m) { list_parts(m, nullptr, listed); }},
    {"parts", unsupported, "17 with partial_list; nearest supported: 16",
     [](M &m) {
       list_parts(m, listed, listed);
       m.parts = 17;
     }},
    {"partial.data", invalid, "NULL",
     [](M &m) {
       list_parts(m, listed, listed);
       m.partial.data = device_memory;
     }},
    {"partial_lse.data", invalid, "NULL",
     [](M &m) {
       list_parts(m, listed, listed);
       m.partial_lse.data = device_memory;
     }},
    {"partial.stride[0]", invalid, "0",
     [](M &m) {
       list_parts(m, listed, listed);
       m.partial.stride[0] = 640;
     }},
    {"partial_list[1]", invalid, "NULL", [](M &m) { list_parts(m, with_gap, listed); }},
    {"partial_lse_list[1]", invalid, "NULL", [](M &m) { list_parts(m, listed, with_gap); }},
    {"partial_list[2]", invalid, "16 bytes", [](M &m) { list_parts(m, unaligned, listed); }},
    {"partial_lse_list[2]", invalid, "4 bytes", [](M &m) { list_parts(m, listed, unaligned); }},
    {"sequence_tokens", invalid, "-1", [](M &m) { m.sequence_tokens = -1; }},
    {"sequence_tokens", invalid, "divide tokens, which is 5", [](M &m) { m.sequence_tokens = 2; }},
    {"partial_lse_sequence_stride", invalid, "without sequence_tokens",
     [](M &m) { m.partial_lse_sequence_stride = 1; }},
    {"lse_sequence_stride", invalid, "without sequence_tokens", [](M &m) { m.lse_sequence_stride = 1; }},
    {"partial_lse_sequence_stride", invalid, "negative",
     [](M &m) {
       part_sequences(m);
       m.partial_lse_sequence_stride = -4;
     }},
    {"lse_sequence_stride", invalid, "overlap",
     [](M &m) {
       part_sequences(m);
       m.lse_sequence_stride = 3;
     }},
    {"lse_sequence_stride", invalid, "beyond the address space",
     [](M &m) {
       part_sequences(m);
       m.lse_sequence_stride = std::numeric_limits<int64_t>::max();
     }},
    {"lse_sequence_stride", invalid, "lse.data is NULL",
     [](M &m) {
       part_sequences(m);
       m.lse = {};
     }},
    {"partial_type", invalid, "missing", [](M &m) { m.partial_type = 0; }},
    {"partial_type", unsupported, "partial_type is e4m3fnuz; nearest supported: bf16",
     [](M &m) { m.partial_type = SLUICE_E4M3FNUZ; }},
    {"o_type", invalid, "missing", [](M &m) { m.o_type = 0; }},
    {"o_type", SLUICE_NEWER_STRUCT, "99", [](M &m) { m.o_type = 99; }},
    {"o_type", unsupported, "o_type is e5m2fnuz; nearest supported: e4m3fnuz",
     [](M &m) { m.o_type = SLUICE_E5M2FNUZ; }},
    {"o_type", unsupported, "o_type is e4m3fnuz and partial_type f16; nearest supported: f16",
     [](M &m) {
       m.partial_type = SLUICE_F16;
       m.o_type = SLUICE_E4M3FNUZ;
     }},
    {"o_scale_kind", invalid, "o_scale_kind is 1; it must be SLUICE_SCALE_NONE (0) unless o_type is e4m3fnuz",
     [](M &m) { m.o_scale_kind = SLUICE_SCALE_PER_TENSOR; }},
    {"o_scale_kind", unsupported, "o_scale_kind is 3; nearest supported: SLUICE_SCALE_PER_HEAD (2)",
     [](M &m) {
       m.o_type = SLUICE_E4M3FNUZ;
       m.o_scale_kind = SLUICE_SCALE_PER_TOKEN;
     }},
    {"o_scale", invalid, "o_scale is NULL",
     [](M &m) {
       m.o_type = SLUICE_E4M3FNUZ;
       m.o_scale_kind = SLUICE_SCALE_PER_HEAD;
     }},
    {"o_scale", invalid, "o_scale is given",
     [](M &m) {
       m.o_type = SLUICE_E4M3FNUZ;
       m.o_scale = reinterpret_cast<const float *>(device_memory + 4);
     }},
    {"o_scale", invalid, "4 bytes",
     [](M &m) {
       m.o_type = SLUICE_E4M3FNUZ;
       m.o_scale_kind = SLUICE_SCALE_PER_TENSOR;
       m.o_scale = reinterpret_cast<const float *>(device_memory + 2);
     }},
    {"o_type", unsupported, "nearest supported: f16",
     [](M &m) {
       m.partial_type = SLUICE_F16;
       m.o_type = SLUICE_BF16;
     }},
    {"o_type", unsupported, "no kernel", [](M &m) { m.o_type = SLUICE_F32; }},
    {"parts", invalid, "0", [](M &m) { m.parts = 0; }},
    {"parts", unsupported, "65536", [](M &m) { m.parts = 65537; }},
    {"tokens", invalid, "-1", [](M &m) { m.tokens = -1; }},
    {"tokens", unsupported, "1073741823", [](M &m) { m.tokens = 1 << 30; }},
    {"heads", invalid, "0", [](M &m) { m.heads = 0; }},
    {"head_dim_v", invalid, "0", [](M &m) { m.head_dim_v = 0; }},
    {"head_dim_v", invalid, "multiple of 8", [](M &m) { m.head_dim_v = 12; }},
    {"lse_base", SLUICE_NEWER_STRUCT, "2", [](M &m) { m.lse_base = 2; }},
    {"partial.data", invalid, "NULL", [](M &m) { m.partial.data = nullptr; }},
    {"partial.data", invalid, "16 bytes", [](M &m) { m.partial.data = device_memory + 4; }},
    {"partial.stride[0]", invalid, "multiple of 8", [](M &m) { m.partial.stride[0] = 644; }},
    {"partial.stride[1]", invalid, "negative", [](M &m) { m.partial.stride[1] = -128; }},
    {"partial.stride[3]", invalid, "it must be 1", [](M &m) { m.partial.stride[3] = 0; }},
    {"partial_lse.data", invalid, "NULL", [](M &m) { m.partial_lse.data = nullptr; }},
    {"partial_lse.data", invalid, "4 bytes", [](M &m) { m.partial_lse.data = device_memory + 2; }},
    {"partial_lse.stride[2]", invalid, "negative", [](M &m) { m.partial_lse.stride[2] = -1; }},
    {"o.data", invalid, "NULL", [](M &m) { m.o.data = nullptr; }},
    {"o.stride[1]", invalid, "multiple of 8", [](M &m) { m.o.stride[1] = 129; }},
    {"o.stride[2]", invalid, "overlap", [](M &m) { m.o.stride[2] = 0; }},
    {"o.stride[3]", invalid, "it must be 1", [](M &m) { m.o.stride[3] = 2; }},
    {"lse.data", invalid, "4 bytes", [](M &m) { m.lse.data = device_memory + 1; }},
    {"lse.stride[1]", invalid, "overlap", [](M &m) { m.lse.stride[1] = 0; }},
    {"lse.stride[2]", invalid, "lse.data is NULL", [](M &m) { m.lse.data = nullptr, m.lse.stride[1] = 0; }},
    {"sink_logits", invalid, "4 bytes",
     [](M &m) { m.sink_logits = reinterpret_cast<const float *>(device_memory + 2); }},
};

template <typename Call, size_t count, typename Run>
void check_breaches(const Breach<Call> (&breaches)[count], Call (*good)(), Run run) {
  FakeHip hip;
  const ContextHandle context = cache_op_context();
  const sluice_launch launch = good_launch();
  hip.forget_calls();
  for (const Breach<Call> &breach : breaches) {
    INFO(breach.field << ": " << breach.message_part);
    Call call = good();
    breach.breaks(call);
    Error error;
    check_refusal(run(context.get(), &call, &launch, &error), error, breach.status, breach.field,
                  breach.message_part);
  }
  CHECK(hip.call_count == 0);
}

} // namespace

TEST_CASE("every append that breaks a rule is refused by name, and enqueues nothing", "[cache_ops]") {
  check_breaches(append_breaches, good_append, sluice_kv_append);
  check_breaches(table_breaches, good_table_append, sluice_kv_append);
  check_breaches(fp8_breaches, good_fp8_append, sluice_kv_append);
  check_breaches(step_breaches, good_step, sluice_kv_append);
  check_breaches(scales_breaches, good_scales, sluice_kv_append);
  check_breaches(columns_breaches, good_columns, sluice_kv_append);
  check_breaches(block_breaches, good_blocks, sluice_kv_append);
  check_breaches(group_breaches, good_groups, sluice_kv_append);
}

TEST_CASE("every merge that breaks a rule is refused by name, and enqueues nothing", "[cache_ops]") {
  check_breaches(merge_breaches, good_merge, sluice_merge_states);
}

TEST_CASE("calls that follow the rules are enqueued", "[cache_ops]") {
  FakeHip hip;
  const ContextHandle context = cache_op_context();
  const sluice_launch launch = good_launch();
  const auto is_good = [&](const auto &call, auto run) {
    Error error;
    const size_t launches = hip.count("hipModuleLaunchKernel");
    const sluice_status status = run(context.get(), &call, &launch, &error);
    INFO(error.field << ": " << error.message);
    CHECK(status == SLUICE_OK);
    CHECK(hip.count("hipModuleLaunchKernel") == launches + 1);
  };
  is_good(good_append(), sluice_kv_append);
  is_good(good_table_append(), sluice_kv_append);
  is_good(good_step(), sluice_kv_append);
  sluice_append append = good_append();
  append.flags = SLUICE_V_IN_K;
  append.head_dim_v = 0;
  append.v = append.v_cache = {};
  is_good(append, sluice_kv_append);
  append = good_append();
  append.k.stride[1] = append.k.stride[2] = 0; // an input may repeat itself
  is_good(append, sluice_kv_append);
  append = good_append();
  append.page_size = 1; // pages of one row have no distance between rows
  append.k_cache.stride[1] = append.v_cache.stride[1] = 0;
  is_good(append, sluice_kv_append);
  is_good(good_merge(), sluice_merge_states);
  sluice_merge merge = good_merge();
  merge.lse = {};
  merge.sink_logits = floats(4);
  is_good(merge, sluice_merge_states);
  merge.flags = SLUICE_MERGE_INFINITY_IS_EMPTY;
  is_good(merge, sluice_merge_states);
  part_sequences(merge);
  merge.lse = {};
  merge.lse_sequence_stride = 0;
  is_good(merge, sluice_merge_states);
  list_parts(merge, listed, listed);
  is_good(merge, sluice_merge_states);
  // No workspace is needed, and a given one is not looked at.
  sluice_launch odd = good_launch();
  odd.workspace = device_memory + 1;
  odd.workspace_bytes = 3;
  CHECK(sluice_kv_append(context.get(), &append, &odd, nullptr) == SLUICE_OK);
  odd.workspace = nullptr;
  CHECK(sluice_merge_states(context.get(), &merge, &odd, nullptr) == SLUICE_OK);
}

TEST_CASE("null arguments of appends and merges are refused by name", "[cache_ops]") {
  FakeHip hip;
  const ContextHandle context = cache_op_context();
  const sluice_append append = good_append();
  const sluice_merge merge = good_merge();
  const sluice_launch launch = good_launch();
  Error error;
  check_refusal(sluice_kv_append(nullptr, &append, &launch, &error), error, invalid, "context", "NULL");
  check_refusal(sluice_kv_append(context.get(), nullptr, &launch, &error), error, invalid, "append", "NULL");
  check_refusal(sluice_merge_states(nullptr, &merge, &launch, &error), error, invalid, "context", "NULL");
  check_refusal(sluice_merge_states(context.get(), nullptr, &launch, &error), error, invalid, "merge",
                "NULL");
}

TEST_CASE("an append and a merge without a launch go to the default stream", "[cache_ops]") {
  FakeHip hip;
  const ContextHandle context = cache_op_context();
  const sluice_append append = good_append();
  const sluice_merge merge = good_merge();
  hip.launch.stream = FakeHip::handle(5);
  CHECK(sluice_kv_append(context.get(), &append, nullptr, nullptr) == SLUICE_OK);
  CHECK(hip.launch.stream == nullptr);
  hip.launch.stream = FakeHip::handle(5);
  CHECK(sluice_merge_states(context.get(), &merge, nullptr, nullptr) == SLUICE_OK);
  CHECK(hip.launch.stream == nullptr);
}

TEST_CASE("a target has no device to append on", "[cache_ops]") {
  const ContextHandle context = cache_op_context(SLUICE_DEVICE_TARGET);
  const sluice_append append = good_append();
  const sluice_merge merge = good_merge();
  const sluice_launch launch = good_launch();
  Error error;
  check_refusal(sluice_kv_append(context.get(), &append, &launch, &error), error, SLUICE_NO_DEVICE, "context",
                "gfx942");
  check_refusal(sluice_merge_states(context.get(), &merge, &launch, &error), error, SLUICE_NO_DEVICE,
                "context", "gfx942");
}

TEST_CASE("the first call loads the kernel, the others find it", "[cache_ops]") {
  FakeHip hip;
  const ContextHandle context = cache_op_context();
  const sluice_append append = good_append();
  const sluice_merge merge = good_merge();
  const sluice_launch launch = good_launch();
  for (int i = 0; i < 3; ++i) {
    CHECK(sluice_kv_append(context.get(), &append, &launch, nullptr) == SLUICE_OK);
    CHECK(sluice_merge_states(context.get(), &merge, &launch, nullptr) == SLUICE_OK);
  }
  CHECK(hip.functions == std::vector<std::string>{"kv_append_f16_f16", "merge_states_f32_f16"});
  CHECK(hip.launch.block[0] == 256);
  CHECK(hip.launch.stream == launch.stream);
  CHECK(hip.launch.kernarg_bytes == sizeof(sluice::package::MergeKernargs));
}

TEST_CASE("a capture needs kernels that are loaded", "[cache_ops]") {
  FakeHip hip;
  const ContextHandle context = cache_op_context();
  const sluice_append append = good_append(), step = good_step();
  const sluice_merge merge = good_merge();
  const sluice_launch launch = good_launch();
  hip.capturing = {launch.stream};
  Error error;
  check_refusal(sluice_kv_append(context.get(), &append, &launch, &error), error, invalid, "stream",
                "kv_append_f16_f16 is not loaded");
  check_refusal(sluice_kv_append(context.get(), &step, &launch, &error), error, invalid, "stream",
                "append_step_f16_f16 is not loaded");
  check_refusal(sluice_merge_states(context.get(), &merge, &launch, &error), error, invalid, "stream",
                "sluice_preload");
  CHECK(hip.count("hipModuleLoadData") == 0);
  CHECK(hip.count("hipModuleLaunchKernel") == 0);
  // Preloading all kernels includes these.
  CHECK(sluice_preload(context.get(), nullptr, &error) == SLUICE_OK);
  CHECK(hip.loaded_modules == 4);
  hip.forget_calls();
  CHECK(sluice_kv_append(context.get(), &append, &launch, &error) == SLUICE_OK);
  CHECK(sluice_kv_append(context.get(), &step, &launch, &error) == SLUICE_OK);
  CHECK(sluice_merge_states(context.get(), &merge, &launch, &error) == SLUICE_OK);
  CHECK(hip.call_names() == std::vector<std::string>(3, "hipModuleLaunchKernel"));
}

TEST_CASE("appends and merges wait and signal as runs do", "[cache_ops]") {
  FakeHip hip;
  const ContextHandle context = cache_op_context();
  REQUIRE(sluice_preload(context.get(), nullptr, nullptr) == SLUICE_OK);
  const sluice_append append = good_append();
  const sluice_merge merge = good_merge();
  sluice_launch launch = good_launch();
  const sluice_dependency dependencies[] = {
      {SLUICE_DEPENDS_ON_EVENT, 0, FakeHip::handle(11), nullptr},
      {SLUICE_DEPENDS_ON_STREAM, 0, FakeHip::handle(12), FakeHip::handle(0x200)}};
  launch.dependencies = dependencies;
  launch.dependency_count = 2;
  launch.signal_event = FakeHip::handle(13);
  const std::function<sluice_status(sluice_error *)> runs[] = {
      [&](sluice_error *error) { return sluice_kv_append(context.get(), &append, &launch, error); },
      [&](sluice_error *error) { return sluice_merge_states(context.get(), &merge, &launch, error); }};
  for (const auto &run : runs) {
    hip.forget_calls();
    CHECK(run(nullptr) == SLUICE_OK);
    CHECK(hip.call_names() == std::vector<std::string>{"hipStreamIsCapturing", "hipStreamWaitEvent",
                                                       "hipEventRecord", "hipStreamWaitEvent",
                                                       "hipModuleLaunchKernel", "hipEventRecord"});
    CHECK(hip.calls[1].event == FakeHip::handle(11));
    CHECK(hip.calls[3].event == FakeHip::handle(12));
    CHECK(hip.calls[5].event == FakeHip::handle(13));
    // A stream outside a capture cannot be joined into it.
    Error error;
    hip.capturing = {launch.stream};
    check_refusal(run(&error), error, invalid, "dependencies[1].stream", "so it cannot join the capture");
    hip.capturing.clear();
    // Dependencies are checked as for a run.
    launch.dependencies = nullptr;
    check_refusal(run(&error), error, invalid, "dependencies", "NULL");
    launch.dependencies = dependencies;
    hip.failing = {{"hipModuleLaunchKernel", 719}};
    check_refusal(run(&error), error, SLUICE_HIP, "", "hipModuleLaunchKernel");
    hip.failing.clear();
  }
}

TEST_CASE("the trace sees appends and merges", "[cache_ops]") {
  FakeHip hip;
  const ContextHandle context = cache_op_context();
  std::vector<std::string> seen;
  const auto note = [](const sluice_trace_record *record, void *user) {
    CHECK(record->event == SLUICE_TRACE_RUN);
    CHECK(record->block[0] == 256);
    CHECK(record->waves == 4);
    CHECK(record->grid[0] > 0);
    static_cast<std::vector<std::string> *>(user)->push_back(record->kernel);
  };
  REQUIRE(sluice_set_trace(context.get(), note, &seen, nullptr) == SLUICE_OK);
  const sluice_append append = good_append();
  const sluice_merge merge = good_merge();
  const sluice_launch launch = good_launch();
  CHECK(sluice_kv_append(context.get(), &append, &launch, nullptr) == SLUICE_OK);
  CHECK(sluice_merge_states(context.get(), &merge, &launch, nullptr) == SLUICE_OK);
  CHECK(seen == std::vector<std::string>{"kv_append_f16_f16", "merge_states_f32_f16"});
}

TEST_CASE("kernels of cache operations are listed among the others, and not chosen for attention",
          "[cache_ops]") {
  const ContextHandle context = cache_op_context(SLUICE_DEVICE_TARGET);
  uint32_t count = 0;
  REQUIRE(sluice_list_kernels(context.get(), 0, nullptr, &count, nullptr) == SLUICE_OK);
  REQUIRE(count == 4);
  sluice_kernel_info info;
  sluice_kernel_info_init(&info, sizeof info);
  REQUIRE(sluice_list_kernels(context.get(), 2, &info, nullptr, nullptr) == SLUICE_OK);
  CHECK(std::string(info.name) == "kv_append_f16_f16");
  CHECK(std::string(info.operation) == "kv_append");
  CHECK(info.dtype == SLUICE_F16);
  CHECK(info.head_dim_qk == 0);
  CHECK(info.tile_q == 0);
  CHECK(info.waves == 4);
  CHECK(info.threads == 256);
  sluice_problem problem = good_problem();
  problem.flags = 0;
  sluice_support support;
  sluice_support_init(&support, sizeof support);
  REQUIRE(sluice_query_support(context.get(), &problem, &support, nullptr) == SLUICE_OK);
  CHECK(std::string(support.kernel) == "attn_fwd_f16_d128_q128_kv64_w4");
}

TEST_CASE("a pack whose kernels around attention are not this library's is PACK_CORRUPT", "[cache_ops]") {
  const auto refused = [](auto change, const char *message_part) {
    sluice::package::KernelEntry entry = cache_op_entry("kv_append", "f16", "f16");
    change(entry);
    sluice::package::PackWriter writer("test", "22.1.8");
    add_fake_kernel(writer, entry);
    const std::vector<std::byte> pack = writer.finish();
    sluice_context_desc desc = context_desc(SLUICE_DEVICE_TARGET, pack);
    sluice_context *context = nullptr;
    Error error;
    check_refusal(sluice_context_create(&desc, &context, &error), error, SLUICE_PACK_CORRUPT, "pack",
                  message_part);
  };
  refused([](auto &entry) { entry.kernarg_bytes += 8; }, "takes arguments of layout");
  refused([](auto &entry) { entry.kernarg_hash ^= 1; }, "takes arguments of layout");
  refused([](auto &entry) { entry.threads = 128; }, "workgroups of 128 lanes");
}

//===- append_caches_test.cpp - caches that break a rule of appends -------------------------------------===//
#include "cache_op_device.h"

using namespace sluice::test;

namespace {

using A = AppendCall;
constexpr sluice_status invalid = SLUICE_INVALID_ARGUMENT, unsupported = SLUICE_UNSUPPORTED,
                        newer = SLUICE_NEWER_STRUCT;

/// Rules of the cache that rows go to.
const Breach<A> cache_breaches[] = {
    {"kv.reserved", invalid, "kv.reserved is 1; it must be 0: it is reserved",
     [](A &a) { a.cache.kv.reserved = 1; }},
    {"kv.format.flags", newer, "kv.format.flags has unknown bits 0x4",
     [](A &a) { a.cache.format.flags = 1 << 2; }},
    {"kv.format.reserved", invalid, "kv.format.reserved is 1; it must be 0",
     [](A &a) { a.cache.format.reserved = 1; }},
    {"kv.format.k.reserved", invalid, "kv.format.k.reserved is 1; it must be 0",
     [](A &a) { a.cache.format.k.reserved = 1; }},
    {"kv.format.v.reserved", invalid, "kv.format.v.reserved is 1; it must be 0",
     [](A &a) { a.cache.format.v.reserved = 1; }},
    {"kv.scales.reserved", invalid, "kv.scales.reserved is 1; it must be 0",
     [](A &a) { a.cache.scales.reserved = 1; }},
    {"kv.format.k.type", invalid, "kv.format.k.type is missing", [](A &a) { set_types(a.cache, 0); }},
    {"kv.format.k.type", newer, "kv.format.k.type is 12; the last value that this version knows",
     [](A &a) { set_types(a.cache, 12); }},
    {"kv.format.k.type", unsupported, "kv.format.k.type is bf16; nearest supported: f16",
     [](A &a) { set_types(a.cache, SLUICE_BF16); }},
    {"kv.format.v.type", unsupported, "kv.format.v.type is e4m3fnuz; nearest supported: that of K, f16",
     [](A &a) { a.cache.format.v.type = SLUICE_E4M3FNUZ; }},
    {"kv.format.kv_heads", invalid, "kv.format.kv_heads is 0; it must be at least 1",
     [](A &a) { a.cache.format.kv_heads = 0; }},
    {"kv.format.kv_heads", unsupported, "16777215", [](A &a) { a.cache.format.kv_heads = 1 << 24; }},
    {"kv.format.head_dim_qk", invalid, "-8", [](A &a) { a.cache.format.head_dim_qk = -8; }},
    {"kv.format.head_dim_qk", invalid, "kv.format.head_dim_qk is 100; it must be a multiple of 8",
     [](A &a) { a.cache.format.head_dim_qk = 100; }},
    {"kv.format.head_dim_v", invalid, "0", [](A &a) { a.cache.format.head_dim_v = 0; }},
    {"kv.format.head_dim_v", invalid, "multiple of 8", [](A &a) { a.cache.format.head_dim_v = 4; }},
    {"kv.format.page_size", invalid, "kv.format.page_size is 0; it must be at least 1: the rows are in pages",
     [](A &a) { a.cache.format.page_size = 0; }},
    {"kv.format.page_size", invalid, "kv.format.page_size is -1; it must be at least 1",
     [](A &a) { a.cache.format.page_size = -1; }},
    {"kv.format.page_table", invalid,
     "kv.format.page_table is 0; it must be SLUICE_PAGE_TABLE_BLOCK (1) or SLUICE_PAGE_TABLE_CSR (2)",
     [](A &a) { a.cache.format.page_table = SLUICE_PAGE_TABLE_NONE; }},
    {"kv.format.page_table", newer, "kv.format.page_table is 3; the last value that this version knows",
     [](A &a) { a.cache.format.page_table = 3; }},
    {"kv.format.k.pack", invalid,
     "kv.format.k.pack is 24; it must divide kv.format.head_dim_qk, which is 128, or be 0",
     [](A &a) { a.cache.format.k.pack = 24; }},
    {"kv.format.k.pack", invalid, "kv.format.k.pack is -1", [](A &a) { a.cache.format.k.pack = -1; }},
    {"kv.format.k.pack", unsupported, "kv.format.k.pack is 4; nearest supported: multiples of 8",
     [](A &a) { a.cache.format.k.pack = 4; }},
    {"kv.page_count", invalid, "kv.page_count is -1; it must not be negative",
     [](A &a) { a.cache.kv.page_count = -1; }},
    {"kv.k.stride", invalid, "beyond the address space",
     [](A &a) { a.cache.kv.page_count = int64_t{1} << 50; }},
    {"kv.format.k.scale_kind", invalid,
     "kv.format.k.scale_kind is 1; it must be SLUICE_SCALE_NONE (0) without a cache of FP8, i8 or u4",
     [](A &a) { a.cache.format.k.scale_kind = SLUICE_SCALE_PER_TENSOR; }},
    {"kv.format.v.scale_kind", invalid, "FP8",
     [](A &a) { a.cache.format.v.scale_kind = SLUICE_SCALE_PER_HEAD; }},
    {"kv.format.k.scale_group", invalid, "kv.format.k.scale_group is 32; it must be 0",
     [](A &a) { a.cache.format.k.scale_group = 32; }},
    {"kv.format.v.zero_points", invalid, "kv.format.v.zero_points is 1; it must be 0",
     [](A &a) { a.cache.format.v.zero_points = 1; }},
    {"kv.format.k.zero_points", invalid, "kv.format.k.zero_points is 2; it must be 0 or 1",
     [](A &a) { a.cache.format.k.zero_points = 2; }},
    {"kv.scales.k.data", invalid, "its format has no scales",
     [](A &a) { a.cache.scales.k.data = device_memory; }},
    {"kv.scales.v.stride[1]", invalid, "kv.scales.v.stride[1] is 1; it must be 0: its format has no scales",
     [](A &a) { a.cache.scales.v.stride[1] = 1; }},
    {"kv.scales.k_zeros.data", invalid, "its format has no zero points",
     [](A &a) { a.cache.scales.k_zeros.data = device_memory; }},
    {"kv.scales.v_zeros.data", invalid, "its format has no zero points",
     [](A &a) { a.cache.scales.v_zeros.data = device_memory; }},
    {"kv.k.data", invalid, "kv.k.data is NULL", [](A &a) { a.cache.kv.k.data = nullptr; }},
    {"kv.k.data", invalid, "16 bytes", [](A &a) { a.cache.kv.k.data = device_memory + 8; }},
    {"kv.k.stride[0]", invalid, "multiple of 8", [](A &a) { a.cache.kv.k.stride[0] += 4; }},
    {"kv.k.stride[0]", invalid, "overlap", [](A &a) { a.cache.kv.k.stride[0] -= 8; }},
    {"kv.k.stride[0]", invalid, "kv.k.stride[0] is 0; it must be the elements from one page to the next",
     [](A &a) { a.cache.kv.k.stride[0] = 0; }},
    {"kv.k.stride[1]", invalid, "overlap", [](A &a) { a.cache.kv.k.stride[1] = 0; }},
    {"kv.k.stride[2]", invalid, "negative", [](A &a) { a.cache.kv.k.stride[2] = -8; }},
    {"kv.k.stride[3]", invalid, "kv.k.stride[3] is 8; it must be 1",
     [](A &a) { a.cache.kv.k.stride[3] = 8; }},
    {"kv.v.data", invalid, "kv.v.data is NULL", [](A &a) { a.cache.kv.v.data = nullptr; }},
    {"kv.v.stride[0]", invalid, "kv.v.stride[0] is 0; it must be the elements from one page to the next",
     [](A &a) { a.cache.kv.v.stride[0] = 0; }},
    {"kv.v.stride[0]", invalid, "overlap", [](A &a) { a.cache.kv.v.stride[0] = 8; }},
    {"kv.v.stride[3]", invalid, "it must be 1", [](A &a) { a.cache.kv.v.stride[3] = 2; }},
};

/// Rules of V in K.
const Breach<A> v_in_k_breaches[] = {
    {"v", invalid, "v is given; it must be all zero with SLUICE_KV_V_IN_K",
     [](A &a) { a.args.v.stride[3] = 1; }},
    {"kv.v", invalid, "kv.v is given; it must be all zero with SLUICE_KV_V_IN_K",
     [](A &a) { a.cache.kv.v.data = device_memory; }},
    {"kv.format.v.type", invalid, "kv.format.v.type is 1; it must be 0: V is in K (SLUICE_KV_V_IN_K)",
     [](A &a) { a.cache.format.v.type = SLUICE_F16; }},
    {"kv.format.v.scale_kind", invalid, "it must be 0: V is in K (SLUICE_KV_V_IN_K)",
     [](A &a) { a.cache.format.v.scale_kind = SLUICE_SCALE_PER_TENSOR; }},
    {"kv.format.v.pack", invalid, "kv.format.v.pack is 8; it must be 0: V is in K (SLUICE_KV_V_IN_K)",
     [](A &a) { a.cache.format.v.pack = 8; }},
    {"kv.format.head_dim_v", invalid,
     "kv.format.head_dim_v is 0; it must be from 1 to head_dim_qk, which is 128, with SLUICE_KV_V_IN_K",
     [](A &a) { a.cache.format.head_dim_v = 0; }},
    {"kv.format.head_dim_v", invalid, "kv.format.head_dim_v is 136; it must be from 1 to head_dim_qk",
     [](A &a) { a.cache.format.head_dim_v = 136; }},
};

/// Rules of appends into an x-packed cache of FP8, by a CSR table of 64-bit entries.
const Breach<A> fp8_breaches[] = {
    {"pages.stride", invalid, "SLUICE_PAGE_TABLE_BLOCK", [](A &a) { a.args.pages.stride = 3; }},
    {"pages.table", invalid, "8 bytes", [](A &a) { a.args.pages.table = device_memory + 4; }},
    {"kv.format.k.scale_kind", unsupported,
     "kv.format.k.scale_kind is 5; nearest supported: SLUICE_SCALE_PER_PAGE (4)",
     [](A &a) { a.cache.format.k.scale_kind = SLUICE_SCALE_PER_GROUP, a.cache.format.k.scale_group = 32; }},
    {"kv.format.v.scale_kind", newer, "kv.format.v.scale_kind is 6",
     [](A &a) { a.cache.format.v.scale_kind = 6; }},
    {"kv.scales.k", invalid, "kv.scales.k is NULL", [](A &a) { a.cache.scales.k.data = nullptr; }},
    {"kv.scales.v", invalid, "kv.scales.v is NULL",
     [](A &a) { a.cache.kv.scales = nullptr, a.cache.format.k.scale_kind = 0; }},
    {"kv.scales.v", invalid, "4 bytes", [](A &a) { a.cache.scales.v.data = device_memory + 2; }},
    {"kv.k.stride[3]", invalid, "multiple of kv.format.k.pack, which is 16",
     [](A &a) { a.cache.kv.k.stride[3] += 8; }},
    {"kv.k.stride[3]", invalid, "overlap", [](A &a) { a.cache.kv.k.stride[3] = 16; }},
    {"kv.k.stride[1]", invalid, "multiple of kv.format.k.pack", [](A &a) { a.cache.kv.k.stride[1] = 8; }},
    {"kv.format.k.type", unsupported,
     "kv.format.k.type is e4m3fnuz: the kernel pack has no kernel for gfx942 from f16 to e4m3fnuz; nearest "
     "supported: f16",
     [](A &) {}}, // the pack of these tests lacks it
};

/// Rules of scales that an append computes, of K, and reads per page, of V.
const Breach<A> scales_breaches[] = {
    {"kv.scales.k.data", invalid, "kv.scales.k.data is NULL", [](A &a) { a.cache.scales.k.data = nullptr; }},
    {"kv.scales.k.data", invalid, "4 bytes", [](A &a) { a.cache.scales.k.data = device_memory + 2; }},
    {"kv.scales.k.stride[0]", invalid, "overlap", [](A &a) { a.cache.scales.k.stride[0] = 31; }},
    {"kv.scales.k.stride[1]", invalid, "overlap", [](A &a) { a.cache.scales.k.stride[1] = 0; }},
    {"kv.scales.k.stride[2]", invalid, "overlap", [](A &a) { a.cache.scales.k.stride[2] = 0; }},
    {"kv.scales.k.stride[2]", invalid, "negative", [](A &a) { a.cache.scales.k.stride[2] = -1; }},
    {"kv.scales.v.data", invalid, "kv.scales.v.data is NULL", [](A &a) { a.cache.scales.v = {}; }},
    {"kv.scales.v.stride[0]", invalid, "negative", [](A &a) { a.cache.scales.v.stride[0] = -2; }},
    {"kv.format.k.scale_kind", invalid, "FP8", [](A &a) { set_types(a.cache, SLUICE_F16); }},
    {"kv.format.head_dim_qk", unsupported,
     "kv.format.head_dim_qk is 2048 for a kernel append_step; nearest supported: 1024",
     [](A &a) {
       a.cache.format.head_dim_qk = 2048;
       a.args.k = sluice_packed(device_memory, 2, 2048);
       a.cache.kv.k = sluice_pages_nhd(device_memory + 32, 16, 2, 2048);
     }},
    {"kv.format.k.type", unsupported, "no kernel", [](A &) {}}, // the pack of these tests lacks it
};

/// Rules of V by columns: of pages of 32 rows, in packs of 8.
const Breach<A> columns_breaches[] = {
    {"kv.format.v.pack", invalid,
     "kv.format.v.pack is 4; it must be a power of two from 8 on that divides kv.format.page_size, which is "
     "32, SLUICE_PACK_ALL (2^30), or 0 for rows",
     [](A &a) { a.cache.format.v.pack = 4; }},
    {"kv.format.v.pack", invalid, "kv.format.v.pack is 24", [](A &a) { a.cache.format.v.pack = 24; }},
    {"kv.format.v.pack", invalid, "kv.format.v.pack is 64", [](A &a) { a.cache.format.v.pack = 64; }},
    {"kv.format.v.pack", invalid, "kv.format.v.pack is -8", [](A &a) { a.cache.format.v.pack = -8; }},
    {"kv.format.page_size", invalid,
     "kv.format.page_size is 36; with kv.format.v.pack it must be a multiple of 8",
     [](A &a) { a.cache.format.page_size = 36, a.cache.format.v.pack = SLUICE_PACK_ALL; }},
    {"kv.format.v.pack", unsupported, "kv.format.v.pack is 8 with a cache of i8; nearest supported: 0",
     [](A &a) { set_types(a.cache, SLUICE_I8); }},
    {"kv.format.v.pack", unsupported, "kv.format.v.pack is 8 with a cache of e5m2fnuz; nearest supported: 0",
     [](A &a) { set_types(a.cache, SLUICE_E5M2FNUZ); }},
    {"kv.v.data", invalid, "kv.v.data is NULL", [](A &a) { a.cache.kv.v.data = nullptr; }},
    {"kv.v.stride[0]", invalid, "kv.v.stride[0] is 0; it must be the elements from one page to the next",
     [](A &a) { a.cache.kv.v.stride[0] = 0; }},
    {"kv.v.stride[3]", invalid, "overlap", [](A &a) { a.cache.kv.v.stride[0] = 8; }},
    {"kv.v.stride[0]", invalid, "negative", [](A &a) { a.cache.kv.v.stride[0] = -8192; }},
    {"kv.v.stride[1]", invalid, "overlap", [](A &a) { a.cache.kv.v.stride[1] -= 8; }},
    {"kv.v.stride[2]", invalid, "multiple of 8", [](A &a) { a.cache.kv.v.stride[2] += 4; }},
    {"kv.v.stride[3]", invalid, "overlap", [](A &a) { a.cache.kv.v.stride[3] = 0; }},
    {"kv.v.stride[3]", invalid, "multiple of 8", [](A &a) { a.cache.kv.v.stride[3] = 12; }},
    {"kv.v.stride[1]", invalid, "it must be 1 with SLUICE_PACK_ALL",
     [](A &a) { a.cache.format.v.pack = SLUICE_PACK_ALL; }},
    {"kv.v.stride[3]", invalid, "overlap",
     [](A &a) {
       a.cache.format.v.pack = SLUICE_PACK_ALL;
       a.cache.kv.v.stride[1] = 1;
       a.cache.kv.v.stride[3] = 24;
     }},
    {"kv.format.head_dim_v", unsupported,
     "kv.format.head_dim_v is 1032 for a kernel append_step; nearest supported: 1024",
     [](A &a) {
       a.cache.format.head_dim_v = 1032;
       a.args.v = sluice_packed(device_memory + 16, 2, 1032);
       a.cache.kv.v = {device_memory + 48, {4 * 2 * 1032 * 8, 2 * 1032 * 8, 1032 * 8, 8}};
     }},
    {"kv.format.k.type", unsupported, "no kernel", [](A &a) { set_types(a.cache, SLUICE_E4M3FNUZ); }},
};

/// Rules of blocks of ggml.
const Breach<A> block_breaches[] = {
    {"kv.format.head_dim_qk", invalid, "kv.format.head_dim_qk is 144; it must be a multiple of 32 for q4_0",
     [](A &a) { a.cache.format.head_dim_qk = 144; }},
    {"kv.format.head_dim_v", invalid, "kv.format.head_dim_v is 72; it must be a multiple of 32 for q8_0",
     [](A &a) { set_types(a.cache, SLUICE_Q8_0), a.cache.format.head_dim_v = 72; }},
    {"kv.format.k.pack", invalid, "kv.format.k.pack is 32; it must be 0 for q4_0",
     [](A &a) { a.cache.format.k.pack = 32; }},
    {"kv.format.v.pack", invalid, "kv.format.v.pack is 16; it must be 0 for q4_0",
     [](A &a) { a.cache.format.v.pack = 16; }},
    {"kv.format.k.scale_kind", invalid, "it must be SLUICE_SCALE_NONE (0) without a cache of FP8, i8 or u4",
     [](A &a) { a.cache.format.k.scale_kind = SLUICE_SCALE_PER_TOKEN; }},
    {"kv.k.data", invalid, "2 bytes", [](A &a) { a.cache.kv.k.data = device_memory + 1; }},
    {"kv.k.stride[0]", invalid, "multiple of 32", [](A &a) { a.cache.kv.k.stride[0] += 16; }},
    {"kv.k.stride[2]", invalid, "overlap", [](A &a) { a.cache.kv.k.stride[2] -= 32; }},
    {"kv.v.stride[1]", invalid, "multiple of 32", [](A &a) { a.cache.kv.v.stride[1] = 136; }},
    {"kv.v.stride[3]", invalid, "it must be 1", [](A &a) { a.cache.kv.v.stride[3] = 2; }},
    {"rotation.dim", unsupported, "rotation.dim is 40 for a kernel append_step; nearest supported: 32",
     [](A &a) { a.rotation.dim = 40; }},
    {"rotation.dim", unsupported, "rotation.dim is 8 for a kernel append_step; nearest supported: 16",
     [](A &a) { a.rotation.dim = 8; }},
    {"kv.format.k.type", unsupported, "no kernel", [](A &) {}}, // the pack of these tests lacks it
};

/// Rules of groups of 4 bits.
const Breach<A> group_breaches[] = {
    {"kv.format.k.scale_kind", invalid,
     "kv.format.k.scale_kind is 0; it must be SLUICE_SCALE_PER_GROUP (5) for u4",
     [](A &a) {
       a.cache.format.k = {SLUICE_U4, SLUICE_SCALE_NONE, 0, 0, 0, 0};
       a.cache.scales.k = a.cache.scales.k_zeros = {};
     }},
    {"kv.format.v.scale_kind", invalid,
     "kv.format.v.scale_kind is 3; it must be SLUICE_SCALE_PER_GROUP (5) for u4",
     [](A &a) {
       a.cache.format.v = {SLUICE_U4, SLUICE_SCALE_PER_TOKEN, 0, 0, 0, 0};
       a.cache.scales.v_zeros = {};
     }},
    {"kv.format.k.scale_kind", unsupported, "5; nearest supported: SLUICE_SCALE_PER_PAGE (4)",
     [](A &a) { set_types(a.cache, SLUICE_I8); }},
    {"kv.format.k.scale_group", invalid, "kv.format.k.scale_group is 0; it must be 32 or 64",
     [](A &a) { a.cache.format.k.scale_group = a.cache.format.v.scale_group = 0; }},
    {"kv.format.k.scale_group", invalid, "kv.format.k.scale_group is 128; it must be 32 or 64",
     [](A &a) { a.cache.format.k.scale_group = a.cache.format.v.scale_group = 128; }},
    {"kv.format.v.scale_group", unsupported,
     "kv.format.v.scale_group is 64; nearest supported: that of K, 32",
     [](A &a) { a.cache.format.v.scale_group = 64; }},
    {"kv.format.v.zero_points", unsupported, "kv.format.v.zero_points is 0; nearest supported: that of K, 1",
     [](A &a) { a.cache.format.v.zero_points = 0, a.cache.scales.v_zeros = {}; }},
    {"kv.format.head_dim_qk", invalid, "kv.format.head_dim_qk is 96; it must be a multiple of 64 for u4",
     [](A &a) {
       a.cache.format.k.scale_group = a.cache.format.v.scale_group = 64;
       a.cache.format.head_dim_qk = 96;
     }},
    {"kv.k.data", invalid, "16 bytes", [](A &a) { a.cache.kv.k.data = device_memory + 8; }},
    {"kv.k.stride[1]", invalid, "multiple of 32", [](A &a) { a.cache.kv.k.stride[1] = 264; }},
    {"kv.scales.k.data", invalid, "NULL", [](A &a) { a.cache.scales.k.data = nullptr; }},
    {"kv.scales.k.data", invalid, "2 bytes", [](A &a) { a.cache.scales.k.data = device_memory + 1; }},
    {"kv.scales.k.stride[2]", invalid, "overlap", [](A &a) { a.cache.scales.k.stride[2] = 3; }},
    {"kv.scales.k.stride[3]", invalid, "it must be 1", [](A &a) { a.cache.scales.k.stride[3] = 0; }},
    {"kv.scales.v.stride[1]", invalid, "overlap", [](A &a) { a.cache.scales.v.stride[1] = 3; }},
    {"kv.scales.k_zeros.data", invalid, "NULL", [](A &a) { a.cache.scales.k_zeros.data = nullptr; }},
    {"kv.scales.k_zeros.data", invalid, "2 bytes",
     [](A &a) { a.cache.scales.k_zeros.data = device_memory + 1; }},
    {"kv.scales.v_zeros.stride[2]", invalid, "it must be that of the scales, which is 2",
     [](A &a) { a.cache.scales.v_zeros.stride[2] = 4; }},
    {"kv.scales.k_zeros.data", invalid, "its format has no zero points",
     [](A &a) { a.cache.format.k.zero_points = a.cache.format.v.zero_points = 0; }},
    {"kv.scales.v.data", invalid, "its format has no scales",
     [](A &a) {
       const sluice_tensor scales = a.cache.scales.v;
       put_v_in_k(a);
       a.cache.scales.v = scales;
     }},
    {"kv.format.k.pack", invalid, "kv.format.k.pack is 32; it must be 0 for u4",
     [](A &a) { a.cache.format.k.pack = 32; }},
    {"kv.format.k.type", unsupported, "no kernel", [](A &) {}}, // the pack of these tests lacks it
};

} // namespace

TEST_CASE("every cache that breaks a rule of appends is refused by name, and nothing is enqueued",
          "[cache_ops]") {
  FakeHip hip;
  const ContextHandle context = cache_op_context();
  AppendCall v_in_k = good_append();
  put_v_in_k(v_in_k);
  check_breaches(hip, context, cache_breaches, good_append());
  check_breaches(hip, context, v_in_k_breaches, v_in_k);
  check_breaches(hip, context, fp8_breaches, good_fp8_append());
  check_breaches(hip, context, scales_breaches, good_scales());
  check_breaches(hip, context, columns_breaches, good_columns());
  check_breaches(hip, context, block_breaches, good_blocks());
  check_breaches(hip, context, group_breaches, good_groups());
}

TEST_CASE("a type of a cache that no kernel writes is refused with the nearest that one does",
          "[cache_ops]") {
  static const struct {
    uint32_t type;
    const char *message;
  } types[] = {
      {SLUICE_E4M3FN,
       "kv.format.k.type is e4m3fn: the kernel pack has no kernel for gfx942 from f16 to e4m3fn; "
       "nearest supported: e4m3fnuz"},
      {SLUICE_E5M2, "nearest supported: e5m2fnuz"},
      {SLUICE_Q8_0, "nearest supported: q4_0"},
  };
  CacheOpDevice device;
  for (const auto &[type, message] : types) {
    AppendCall call = good_append();
    set_types(call.cache, type);
    Error error;
    check_refusal(run(device.context, call, nullptr, &error), error, unsupported, "kv.format.k.type",
                  message);
  }
}

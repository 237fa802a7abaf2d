//===- page_copies_test.cpp - copies of pages and gathers: rules, launches, the reference ---------------===//
#include "page_copy_fixture.h"

#include <algorithm>

using namespace sluice::test;

extern "C" const char *fake_roctx_take(void);

namespace {

constexpr sluice_status invalid = SLUICE_INVALID_ARGUMENT, unsupported = SLUICE_UNSUPPORTED,
                        newer = SLUICE_NEWER_STRUCT;

using C = CopyCall;
const Breach<C> copy_breaches[] = {
    {"source", invalid, "source is NULL", [](C &c) { c.args.source = nullptr; }},
    {"target", invalid, "target is NULL", [](C &c) { c.args.target = nullptr; }},
    {"source.format", invalid, "source.format is NULL", [](C &c) { c.source.kv.format = nullptr; }},
    {"target.format", invalid, "target.format is NULL", [](C &c) { c.target.kv.format = nullptr; }},
    {"pairs_64", invalid, "pairs_64 is 2; it must be 0 or 1", [](C &c) { c.args.pairs_64 = 2; }},
    {"pairs", invalid, "4 bytes", [](C &c) { c.args.pairs = device_memory + 2; }},
    {"pairs", invalid, "8 bytes", [](C &c) { c.args.pairs_64 = 1; }},
    {"pairs_64", invalid, "pairs_64 is 1, but pairs is NULL: every page goes to itself",
     [](C &c) { c.args.pairs_64 = 1, c.args.pairs = nullptr; }},
    {"pair_count", invalid, "pair_count is -1; it must be at least 0", [](C &c) { c.args.pair_count = -1; }},
    {"pair_count", unsupported, "2147483647", [](C &c) { c.args.pair_count = int64_t{1} << 31; }},
    {"pair_count", invalid, "pair_count is 3; it must be 0 without pairs",
     [](C &c) { c.args.pairs = nullptr; }},
    {"source.page_count", invalid, "source.page_count is -1; it must be at least 0",
     [](C &c) { c.source.kv.page_count = c.target.kv.page_count = -1; }},
    {"target.page_count", unsupported, "target.page_count is 8; nearest supported: that of the source, 9",
     [](C &c) { c.target.kv.page_count = 8; }},
    {"source.page_count", invalid, "source.page_count is 0; it must be at least 1",
     [](C &c) {
       c.args.pairs = nullptr;
       c.args.pair_count = c.source.kv.page_count = c.target.kv.page_count = 0;
     }},
    {"source.page_count", unsupported, "2147483647",
     [](C &c) {
       c.args.pairs = nullptr;
       c.args.pair_count = 0;
       c.source.kv.page_count = c.target.kv.page_count = int64_t{1} << 31;
     }},
    {"source.reserved", invalid, "source.reserved is 1; it must be 0",
     [](C &c) { c.source.kv.reserved = 1; }},
    {"source.k.data", invalid, "source.k.data is NULL", [](C &c) { c.source.kv.k.data = nullptr; }},
    {"target.k.data", invalid, "16 bytes", [](C &c) { c.target.kv.k.data = device_memory + 8; }},
    {"source.v.stride[2]", invalid, "multiple of 8", [](C &c) { c.source.kv.v.stride[2] = 68; }},
    {"target.v.stride[1]", invalid, "overlap", [](C &c) { c.target.kv.v.stride[1] = 0; }},
    {"source.k.stride[0]", invalid, "source.k.stride[0] is 0; it must be the elements from one page",
     [](C &c) { c.source.kv.k.stride[0] = 0; }},
    {"target.v.stride[0]", invalid, "target.v.stride[0] is 0; it must be the elements from one page",
     [](C &c) { c.target.kv.v.stride[0] = 0; }},
    {"source.k.stride[3]", invalid, "it must be 1", [](C &c) { c.source.kv.k.stride[3] = 8; }},
    {"target.k.stride[0]", invalid, "negative", [](C &c) { c.target.kv.k.stride[0] = -4096; }},
    {"source.k.stride[3]", invalid, "multiple of source.format.k.pack",
     [](C &c) { c.source.format.k.pack = 16, c.source.kv.k.stride[3] = 8; }},
    {"target.k.stride", invalid, "address space", [](C &c) { c.target.kv.k.stride[0] = int64_t{1} << 59; }},
    {"source.v", invalid, "source.v is given; it must be all zero with SLUICE_KV_V_IN_K",
     [](C &c) { drop_v(c), c.source.kv.v.data = device_memory; }},
    {"target.v", invalid, "target.v is given; it must be all zero with SLUICE_KV_V_IN_K",
     [](C &c) { drop_v(c), c.target.kv.v.stride[0] = 8; }},
};

/// Rules of the formats of two caches.
const Breach<C> format_breaches[] = {
    {"source.format.flags", newer, "source.format.flags has unknown bits 0x80000000",
     [](C &c) { c.source.format.flags = 1u << 31; }},
    {"target.format.flags", newer, "target.format.flags has unknown bits",
     [](C &c) { c.target.format.flags = 1u << 31; }},
    {"target.format.flags", invalid,
     "target.format.flags has SLUICE_KV_V_IN_K; it must be as that of the source",
     [](C &c) { put_v_in_k(c.target); }},
    {"target.format.flags", invalid,
     "target.format.flags lacks SLUICE_KV_V_IN_K; it must be as that of the source",
     [](C &c) { put_v_in_k(c.source); }},
    {"source.format.k.type", invalid, "source.format.k.type is missing",
     [](C &c) { set_types(c.source, 0); }},
    {"target.format.k.type", invalid, "target.format.k.type is missing",
     [](C &c) { set_types(c.target, 0); }},
    {"source.format.v.type", unsupported, "source.format.v.type is bf16; nearest supported: that of K, f16",
     [](C &c) { c.source.format.v.type = SLUICE_BF16; }},
    {"target.format.v.type", unsupported, "target.format.v.type is bf16; nearest supported: that of K, f16",
     [](C &c) { c.target.format.v.type = SLUICE_BF16; }},
    {"source.format.k.type", newer,
     "source.format.k.type is 99; the last value that this version knows is SLUICE_Q4_0 (11)",
     [](C &c) { set_types(c.source, 99); }},
    {"target.format.k.type", unsupported,
     "target.format.k.type is i8 and source.format.k.type f16; nearest supported: f16",
     [](C &c) { set_types(c.target, SLUICE_I8); }},
    {"target.format.k.type", unsupported,
     "target.format.k.type is bf16 and source.format.k.type f16; nearest supported: f16",
     [](C &c) { set_types(c.target, SLUICE_BF16); }},
    {"target.format.k.type", unsupported, "e5m2",
     [](C &c) { set_types(c.source, SLUICE_E4M3FNUZ), set_types(c.target, SLUICE_E5M2); }},
    {"source.format.kv_heads", invalid, "source.format.kv_heads is 0; it must be at least 1",
     [](C &c) { c.source.format.kv_heads = c.target.format.kv_heads = 0; }},
    {"source.format.kv_heads", unsupported, "16777215",
     [](C &c) { c.source.format.kv_heads = c.target.format.kv_heads = 1 << 24; }},
    {"target.format.kv_heads", invalid,
     "target.format.kv_heads is 3; it must be that of the source, which is 2",
     [](C &c) { c.target.format.kv_heads = 3; }},
    {"source.format.head_dim_qk", invalid, "multiple of 8",
     [](C &c) { c.source.format.head_dim_qk = c.target.format.head_dim_qk = 12; }},
    {"target.format.head_dim_qk", invalid, "136; it must be that of the source, which is 128",
     [](C &c) { c.target.format.head_dim_qk = 136; }},
    {"source.format.head_dim_v", invalid, "at least 1",
     [](C &c) { c.source.format.head_dim_v = c.target.format.head_dim_v = 0; }},
    {"source.format.head_dim_v", invalid, "source.format.head_dim_v is 136; it must be from 1 to head_dim_qk",
     [](C &c) { drop_v(c), c.source.format.head_dim_v = c.target.format.head_dim_v = 136; }},
    {"target.format.head_dim_v", invalid, "72; it must be that of the source, which is 64",
     [](C &c) { c.target.format.head_dim_v = 72; }},
    {"source.format.page_size", invalid, "source.format.page_size is 0; it must be at least 1",
     [](C &c) { c.source.format.page_size = 0; }},
    {"source.format.page_size", invalid, "source.format.page_size is -16; it must be at least 1",
     [](C &c) { c.source.format.page_size = c.target.format.page_size = -16; }},
    {"target.format.page_size", invalid,
     "target.format.page_size is 32; it must be that of the source, which is 16",
     [](C &c) { c.target.format.page_size = 32; }},
    {"source.format.page_table", invalid, "source.format.page_table is 0; it must be SLUICE_PAGE_TABLE_BLOCK",
     [](C &c) { c.source.format.page_table = 0; }},
    {"target.format.page_table", newer, "target.format.page_table is 3",
     [](C &c) { c.target.format.page_table = 3; }},
    {"source.format.k.pack", invalid,
     "source.format.k.pack is 3; it must divide source.format.head_dim_qk, which is 128",
     [](C &c) { c.source.format.k.pack = 3; }},
    {"target.format.k.pack", invalid, "target.format.k.pack is -8",
     [](C &c) { c.target.format.k.pack = -8; }},
    {"target.format.k.pack", unsupported, "target.format.k.pack is 4; nearest supported: multiples of 8",
     [](C &c) { c.target.format.k.pack = 4; }},
    {"source.format.v.pack", unsupported, "source.format.v.pack is 8; nearest supported: 0",
     [](C &c) { c.source.format.v.pack = 8; }},
    {"target.format.v.pack", unsupported, "target.format.v.pack is 8; nearest supported: 0",
     [](C &c) { c.target.format.v.pack = 8; }},
    {"source.scales.k.data", invalid, "its format has no scales",
     [](C &c) { c.source.scales.k.data = device_memory; }},
    {"target.scales.v.data", invalid, "its format has no scales",
     [](C &c) { c.target.scales.v.data = device_memory; }},
    {"source.scales.k_zeros.data", invalid, "its format has no zero points",
     [](C &c) { c.source.scales.k_zeros.data = device_memory; }},
    {"source.format.k.scale_group", invalid, "source.format.k.scale_group is 32; it must be 0",
     [](C &c) { c.source.format.k.scale_group = 32; }},
    {"target.format.k.scale_kind", invalid,
     "target.format.k.scale_kind is 0; it must be 2, that of the source",
     [](C &c) { c.source.format.k.scale_kind = SLUICE_SCALE_PER_HEAD; }},
    {"target.format.v.scale_kind", invalid,
     "target.format.v.scale_kind is 1; it must be 0, that of the source",
     [](C &c) { c.target.format.v.scale_kind = SLUICE_SCALE_PER_TENSOR; }},
    {"source.format.v.scale_kind", unsupported,
     "source.format.v.scale_kind is 3; nearest supported: SLUICE_SCALE_PER_HEAD (2)",
     [](C &c) { c.source.format.v.scale_kind = c.target.format.v.scale_kind = SLUICE_SCALE_PER_TOKEN; }},
    {"target.format.k.type", unsupported,
     "target.format.k.type is e4m3fnuz: the kernel pack has no kernel for gfx942 from bf16 to e4m3fnuz",
     [](C &c) { set_types(c.source, SLUICE_BF16), set_types(c.target, SLUICE_E4M3FNUZ); }},
};

/// Rules of scales of what becomes FP8.
const Breach<C> fp8_breaches[] = {
    {"target.scales.k", invalid, "target.scales.k is NULL", [](C &c) { c.target.scales.k.data = nullptr; }},
    {"target.scales.k", invalid, "target.scales.k is NULL", [](C &c) { c.target.kv.scales = nullptr; }},
    {"target.scales.v", invalid, "4 bytes", [](C &c) { c.target.scales.v.data = device_memory + 2; }},
    {"target.format.k.scale_kind", unsupported,
     "target.format.k.scale_kind is 3; nearest supported: SLUICE_SCALE_PER_HEAD (2)",
     [](C &c) { c.target.format.k.scale_kind = SLUICE_SCALE_PER_TOKEN; }},
    {"source.format.k.scale_kind", unsupported,
     "source.format.k.scale_kind is 1 for f16; nearest supported: SLUICE_SCALE_NONE (0)",
     [](C &c) { c.source.format.k.scale_kind = SLUICE_SCALE_PER_TENSOR; }},
    {"source.format.v.scale_kind", unsupported, "source.format.v.scale_kind is 2 for f16",
     [](C &c) { c.source.format.v.scale_kind = SLUICE_SCALE_PER_HEAD; }},
};

const Breach<C> u4_breaches[] = {
    {"source.format.k.scale_group", invalid, "source.format.k.scale_group is 16; it must be 32 or 64",
     [](C &c) {
       for (Kv *cache : {&c.source, &c.target})
         cache->format.k.scale_group = cache->format.v.scale_group = 16;
     }},
    {"target.format.k.scale_group", invalid,
     "target.format.k.scale_group is 64; it must be that of the source, which is 32",
     [](C &c) { c.target.format.k.scale_group = c.target.format.v.scale_group = 64; }},
    {"source.format.v.scale_group", unsupported, "source.format.v.scale_group is 64",
     [](C &c) { c.source.format.v.scale_group = 64; }},
    {"source.format.head_dim_v", invalid,
     "source.format.head_dim_v is 72; it must be a multiple of 32 for u4",
     [](C &c) { c.source.format.head_dim_v = c.target.format.head_dim_v = 72; }},
    {"source.format.k.pack", invalid, "source.format.k.pack is 32; it must be 0 for u4",
     [](C &c) { c.source.format.k.pack = 32; }},
    {"target.format.k.pack", invalid, "target.format.k.pack is 32; it must be 0 for u4",
     [](C &c) { c.target.format.k.pack = 32; }},
    {"source.format.k.scale_kind", invalid,
     "source.format.k.scale_kind is 3; it must be SLUICE_SCALE_PER_GROUP (5) for u4",
     [](C &c) {
       for (Kv *cache : {&c.source, &c.target}) {
         cache->format.k = {SLUICE_U4, SLUICE_SCALE_PER_TOKEN, 0, 0, 0, 0};
         cache->scales.k_zeros = {};
       }
     }},
    {"source.format.k.scale_kind", unsupported,
     "source.format.k.scale_kind is 5; nearest supported: SLUICE_SCALE_PER_PAGE (4)",
     [](C &c) { set_both_types(c, SLUICE_I8); }},
    {"source.k.stride[1]", invalid, "multiple of 32", [](C &c) { c.source.kv.k.stride[1] = 264; }},
    {"target.k.stride[1]", invalid, "overlap", [](C &c) { c.target.kv.k.stride[1] = 96; }},
    {"source.scales.k.data", invalid, "NULL", [](C &c) { c.source.scales.k.data = nullptr; }},
    {"source.scales.v.stride[3]", invalid, "it must be 1", [](C &c) { c.source.scales.v.stride[3] = 0; }},
    {"target.scales.k.data", invalid, "2 bytes", [](C &c) { c.target.scales.k.data = device_memory + 1; }},
    {"target.scales.k.stride[2]", invalid, "overlap", [](C &c) { c.target.scales.k.stride[2] = 3; }},
    {"source.scales.k_zeros.stride[1]", invalid, "that of the scales, which is 8",
     [](C &c) { c.source.scales.k_zeros.stride[1] = 9; }},
    {"target.scales.v_zeros.data", invalid, "NULL", [](C &c) { c.target.scales.v_zeros.data = nullptr; }},
    {"target.format.k.zero_points", invalid,
     "target.format.k.zero_points is 1; it must be that of the source, which is 0",
     [](C &c) {
       c.source.format.k.zero_points = c.source.format.v.zero_points = 0;
       c.source.scales.k_zeros = c.source.scales.v_zeros = {};
     }},
    {"target.format.k.scale_kind", unsupported,
     "target.format.k.scale_kind is 5 for f16; nearest supported: SLUICE_SCALE_NONE (0)",
     [](C &c) { set_types(c.target, SLUICE_F16); }},
    {"target.format.k.type", unsupported,
     "target.format.k.type is i8 and source.format.k.type u4; nearest supported: u4",
     [](C &c) {
       set_types(c.target, SLUICE_I8);
       c.target.format.k.scale_kind = c.target.format.v.scale_kind = SLUICE_SCALE_NONE;
       c.target.format.k.scale_group = c.target.format.v.scale_group = 0;
       c.target.format.k.zero_points = c.target.format.v.zero_points = 0;
       c.target.scales = sized<sluice_kv_scales>();
     }},
};

} // namespace

TEST_CASE("every copy of pages that breaks a rule is refused by name", "[copies]") {
  CacheOpDevice device;
  check_breaches(device.hip, device.context, copy_breaches, good_copy());
  check_breaches(device.hip, device.context, format_breaches, good_copy());
  check_breaches(device.hip, device.context, fp8_breaches, good_fp8_copy());
  check_breaches(device.hip, device.context, u4_breaches, good_u4_copy());
}

TEST_CASE("bits are copied whatever their scales per tensor or head are, which stay with their caches",
          "[copies]") {
  CacheOpDevice device;
  CopyCall call = good_copy();
  set_both_types(call, SLUICE_E4M3FNUZ);
  call.target.kv.k = call.target.kv.v = sluice_pages_nhd(device_memory + 32, 16, 2, 128);
  const sluice_tensor scales = {device_memory + 64, {}};
  for (Kv *cache : {&call.source, &call.target})
    set_scales(*cache, SLUICE_SCALE_PER_HEAD, scales, SLUICE_SCALE_PER_TENSOR, scales);
  const sluice::package::PageCopyKernargs out = device.copy(call);
  CHECK(out.k.scale == 0);
  CHECK(out.v.scale == 0);
  CHECK(device.hip.count("hipModuleLaunchKernel") == 1);
}

TEST_CASE("a copy may be within a cache", "[copies]") {
  CacheOpDevice device;
  CopyCall call = good_copy();
  call.args.target = call.args.source;
  const sluice::package::PageCopyKernargs out = device.copy(call);
  CHECK(out.k.source == out.k.target);
  CHECK(out.v.source == out.v.target);
}

TEST_CASE("null arguments, and targets, are refused", "[copies]") {
  const ContextHandle context = target_context();
  const CopyCall copy = good_copy();
  const GatherCall gather = good_gather();
  Error error;
  check_refusal(sluice_cache_copy(nullptr, &copy.args, nullptr, &error), error, invalid, "context", "NULL");
  check_refusal(sluice_cache_copy(context.get(), nullptr, nullptr, &error), error, invalid, "args", "NULL");
  check_refusal(sluice_cache_gather(nullptr, &gather.args, nullptr, &error), error, invalid, "context",
                "NULL");
  check_refusal(sluice_cache_gather(context.get(), nullptr, nullptr, &error), error, invalid, "args", "NULL");
  check_refusal(sluice_cache_copy_reference(nullptr, &error), error, invalid, "args", "NULL");
  check_refusal(sluice_cache_gather_reference(nullptr, &error), error, invalid, "args", "NULL");
  sluice::package::PackWriter writer("test", "22.1.8");
  add_fake_kernel(writer, cache_op_entry("kv_copy", "f16", "f16"));
  const std::vector<std::byte> pack = writer.finish();
  const ContextHandle target = make_context(context_desc(SLUICE_DEVICE_TARGET, pack));
  check_refusal(run(target, copy, nullptr, &error), error, SLUICE_NO_DEVICE, "context", "gfx942");
  check_refusal(run(target, gather, nullptr, &error), error, SLUICE_NO_DEVICE, "context", "gfx942");
}

TEST_CASE("copies and gathers are in ranges of roctx", "[copies]") {
  CacheOpDevice device;
  REQUIRE(sluice_set_ranges(device.context.get(), 1, nullptr) == SLUICE_OK);
  fake_roctx_take();
  device.copy(good_copy());
  device.copy(good_gather());
  CHECK(std::string(fake_roctx_take()) ==
        "(kv_copy_f16_f16 pages3 of16 h2 d128/64)(kv_copy_f16_f16 gather b2 t7 h2 d128/64)");
}

TEST_CASE("the reference of a copy refuses pages that do not exist, and skips negative ones", "[copies]") {
  CopyCall copy = good_copy();
  for (Kv *cache : {&copy.source, &copy.target}) {
    cache->format.kv_heads = 1;
    cache->format.head_dim_qk = cache->format.head_dim_v = 8;
    cache->format.page_size = 1;
    cache->kv.page_count = 3;
  }
  drop_v(copy);
  alignas(16) uint16_t cache[24], target[24];
  for (uint16_t i = 0; i < 24; ++i)
    cache[i] = i, target[i] = 1000;
  copy.source.kv.k = {cache, {8, 8, 8, 1}};
  copy.target.kv.k = {target, {8, 8, 8, 1}};
  int32_t pairs[] = {0, 2, -1, 1, 2, 3};
  copy.args.pairs = pairs;
  Error error;
  check_refusal(sluice_cache_copy_reference(&copy.args, &error), error, invalid, "pairs[5]",
                "pairs[5] is 3; it must be less than source.page_count, which is 3");
  CHECK(target[16] == 1000);
  pairs[5] = 0;
  CHECK(sluice_cache_copy_reference(&copy.args, &error) == SLUICE_OK);
  for (uint16_t i = 0; i < 8; ++i) {
    CHECK(target[i] == 16 + i);
    CHECK(target[8 + i] == 1000);
    CHECK(target[16 + i] == i);
  }
}

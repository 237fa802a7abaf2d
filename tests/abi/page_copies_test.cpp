//===- page_copies_test.cpp - copies of pages and gathers: rules, launches, the reference ---------------===//
#include "page_copy_fixture.h"

#include <algorithm>

using namespace sluice::test;

extern "C" const char *fake_roctx_take(void);

namespace {

constexpr sluice_status invalid = SLUICE_INVALID_ARGUMENT, unsupported = SLUICE_UNSUPPORTED;

template <typename Call> struct Breach {
  const char *field;
  sluice_status status;
  const char *message_part;
  void (*breaks)(Call &);
};

using C = sluice_page_copy;
const Breach<C> copy_breaches[] = {
    {"flags", SLUICE_NEWER_STRUCT, "unknown bits", [](C &c) { c.flags = 1u << 31; }},
    {"flags", invalid, "a copy of pages has", [](C &c) { c.flags = SLUICE_CAUSAL; }},
    {"source_type", invalid, "missing", [](C &c) { c.source_type = 0; }},
    {"target_type", invalid, "missing", [](C &c) { c.target_type = 0; }},
    {"source_type", SLUICE_NEWER_STRUCT,
     "source_type is 99; the last value that this version knows is SLUICE_Q4_0 (11)",
     [](C &c) { c.source_type = 99; }},
    {"target_type", unsupported, "target_type is i8 and source_type f16; nearest supported: f16",
     [](C &c) { c.target_type = SLUICE_I8; }},
    {"reserved", SLUICE_NEWER_STRUCT, "reserved is 1", [](C &c) { c.reserved = 1; }},
    {"flags", invalid, "flags has SLUICE_ZERO_POINTS, but source_type is not u4",
     [](C &c) { c.flags = SLUICE_ZERO_POINTS; }},
    {"scale_group", invalid, "it must be 0 without scales per group", [](C &c) { c.scale_group = 32; }},
    {"k_scales", invalid, "without a scale kind of", [](C &c) { c.k_scales.data = device_memory; }},
    {"v_target_scales", invalid, "without a scale kind of",
     [](C &c) { c.v_target_scales.data = device_memory; }},
    {"k_zeros", invalid, "SLUICE_ZERO_POINTS", [](C &c) { c.k_zeros.data = device_memory; }},
    {"target_type", unsupported, "target_type is bf16 and source_type f16; nearest supported: f16",
     [](C &c) { c.target_type = SLUICE_BF16; }},
    {"target_type", unsupported, "e5m2",
     [](C &c) {
       c.source_type = SLUICE_E4M3FNUZ;
       c.target_type = SLUICE_E5M2;
     }},
    {"kv_heads", invalid, "at least 1", [](C &c) { c.kv_heads = 0; }},
    {"kv_heads", unsupported, "16777215", [](C &c) { c.kv_heads = 1 << 24; }},
    {"head_dim_qk", invalid, "multiple of 8", [](C &c) { c.head_dim_qk = 12; }},
    {"head_dim_v", invalid, "at least 1", [](C &c) { c.head_dim_v = 0; }},
    {"head_dim_v", invalid, "SLUICE_V_IN_K", [](C &c) { c.flags = SLUICE_V_IN_K; }},
    {"page_size", invalid, "at least 1", [](C &c) { c.page_size = -16; }},
    {"source_k_pack", invalid, "divide head_dim_qk", [](C &c) { c.source_k_pack = 3; }},
    {"target_k_pack", invalid, "divide head_dim_qk", [](C &c) { c.target_k_pack = -8; }},
    {"target_k_pack", unsupported, "multiples of 8", [](C &c) { c.target_k_pack = 4; }},
    {"k_scale_kind", invalid, "between equal types", [](C &c) { c.k_scale_kind = SLUICE_SCALE_PER_HEAD; }},
    {"v_scale_kind", unsupported, "SLUICE_SCALE_PER_HEAD",
     [](C &c) { c.v_scale_kind = SLUICE_SCALE_PER_TOKEN; }},
    {"v_scale", invalid, "given", [](C &c) { c.v_scale = scale(); }},
    {"pairs", invalid, "4 bytes", [](C &c) { c.pairs = device_memory + 2; }},
    {"pairs", invalid, "8 bytes", [](C &c) { c.flags = SLUICE_PAGE_INDEX_64; }},
    {"flags", invalid, "pairs is NULL",
     [](C &c) {
       c.flags = SLUICE_PAGE_INDEX_64;
       c.pairs = nullptr;
     }},
    {"pair_count", invalid, "-1; it must be at least 0", [](C &c) { c.pair_count = -1; }},
    {"pair_count", unsupported, "2147483647", [](C &c) { c.pair_count = int64_t{1} << 31; }},
    {"pair_count", invalid, "without pairs", [](C &c) { c.pairs = nullptr; }},
    {"page_count", invalid, "at least 0", [](C &c) { c.page_count = -1; }},
    {"page_count", invalid, "at least 1",
     [](C &c) {
       c.pairs = nullptr;
       c.pair_count = c.page_count = 0;
     }},
    {"page_count", unsupported, "2147483647",
     [](C &c) {
       c.pairs = nullptr;
       c.pair_count = 0;
       c.page_count = int64_t{1} << 31;
     }},
    {"k_source.data", invalid, "NULL", [](C &c) { c.k_source.data = nullptr; }},
    {"k_target.data", invalid, "16 bytes", [](C &c) { c.k_target.data = device_memory + 8; }},
    {"v_source.stride[2]", invalid, "multiple of 8", [](C &c) { c.v_source.stride[2] = 68; }},
    {"v_target.stride[1]", invalid, "overlap", [](C &c) { c.v_target.stride[1] = 0; }},
    {"k_source.stride[3]", invalid, "it must be 1", [](C &c) { c.k_source.stride[3] = 8; }},
    {"k_target.stride[0]", invalid, "negative", [](C &c) { c.k_target.stride[0] = -4096; }},
    {"k_source.stride[3]", invalid, "multiple of source_k_pack",
     [](C &c) {
       c.source_k_pack = 16;
       c.k_source.stride[3] = 8;
     }},
    {"k_target.stride", invalid, "address space", [](C &c) { c.k_target.stride[0] = int64_t{1} << 59; }},
    {"v_source", invalid, "all zero",
     [](C &c) {
       c.flags = SLUICE_V_IN_K;
       c.head_dim_v = 0;
     }},
    {"v_target", invalid, "all zero",
     [](C &c) {
       c.flags = SLUICE_V_IN_K;
       c.head_dim_v = 0;
       c.v_source = {};
     }},
    {"target_type", unsupported, "no kernel", // the pack of these tests lacks it
     [](C &c) {
       c.source_type = SLUICE_BF16;
       c.target_type = SLUICE_E4M3FNUZ;
     }},
};
const Breach<C> fp8_breaches[] = {
    {"k_scale", invalid, "NULL", [](C &c) { c.k_scale = nullptr; }},
    {"v_scale", invalid, "4 bytes",
     [](C &c) { c.v_scale = reinterpret_cast<const float *>(device_memory + 2); }},
    {"v_scale_kind", invalid, "without V", [](C &c) { drop_v(c, c.v_source, c.v_target); }},
};

const Breach<C> u4_breaches[] = {
    {"scale_group", invalid, "it must be 32 or 64", [](C &c) { c.scale_group = 16; }},
    {"head_dim_v", invalid, "head_dim_v is 72; it must be a multiple of 32 for u4",
     [](C &c) { c.head_dim_v = 72; }},
    {"source_k_pack", invalid, "it must be 0 for u4", [](C &c) { c.source_k_pack = 32; }},
    {"target_k_pack", invalid, "it must be 0 for u4", [](C &c) { c.target_k_pack = 32; }},
    {"k_scale_kind", invalid, "it must be SLUICE_SCALE_PER_GROUP (5) for u4",
     [](C &c) { c.k_scale_kind = SLUICE_SCALE_PER_TOKEN; }},
    {"k_source.stride[1]", invalid, "multiple of 32", [](C &c) { c.k_source.stride[1] = 264; }},
    {"k_target.stride[1]", invalid, "overlap", [](C &c) { c.k_target.stride[1] = 96; }},
    {"k_scales.data", invalid, "NULL", [](C &c) { c.k_scales.data = nullptr; }},
    {"v_scales.stride[3]", invalid, "it must be 1", [](C &c) { c.v_scales.stride[3] = 0; }},
    {"k_target_scales.data", invalid, "2 bytes", [](C &c) { c.k_target_scales.data = device_memory + 1; }},
    {"k_target_scales.stride[2]", invalid, "overlap", [](C &c) { c.k_target_scales.stride[2] = 3; }},
    {"k_zeros.stride[1]", invalid, "that of the scales, which is 8", [](C &c) { c.k_zeros.stride[1] = 9; }},
    {"v_target_zeros.data", invalid, "NULL", [](C &c) { c.v_target_zeros.data = nullptr; }},
    {"v_target_zeros", invalid, "SLUICE_ZERO_POINTS",
     [](C &c) {
       c.flags = 0;
       c.k_zeros = c.v_zeros = c.k_target_zeros = {};
     }},
    {"k_target_scales", invalid, "between types that differ", [](C &c) { c.target_type = SLUICE_F16; }},
    {"target_type", unsupported, "target_type is q8_0 and source_type u4; nearest supported: u4",
     [](C &c) { c.target_type = SLUICE_Q8_0; }},
};

using G = sluice_gather;
const Breach<G> i8_breaches[] = {
    {"k_scales.data", invalid, "NULL", [](G &g) { g.k_scales.data = nullptr; }},
    {"k_scale", invalid, "given", [](G &g) { g.k_scale = scale(); }},
    {"k_scale_kind", unsupported, "SLUICE_SCALE_PER_PAGE (4)",
     [](G &g) { g.k_scale_kind = SLUICE_SCALE_PER_GROUP; }},
    {"k_out_scales", invalid, "between types that differ",
     [](G &g) { g.k_out_scales = {device_memory, {0, 2, 1, 0}}; }},
    {"k_out_scales.data", invalid, "NULL", [](G &g) { g.out_type = SLUICE_I8; }},
};
const Breach<G> gather_breaches[] = {
    {"flags", SLUICE_NEWER_STRUCT, "unknown bits", [](G &g) { g.flags = 1u << 31; }},
    {"flags", invalid, "a gather has", [](G &g) { g.flags = SLUICE_WRITE_LSE; }},
    {"cache_type", invalid, "missing", [](G &g) { g.cache_type = 0; }},
    {"out_type", unsupported, "nearest supported: f16", [](G &g) { g.out_type = SLUICE_F32; }},
    {"kv_heads", invalid, "at least 1", [](G &g) { g.kv_heads = -1; }},
    {"batch", invalid, "-1; it must not be negative", [](G &g) { g.batch = -1; }},
    {"tokens", invalid, "-1; it must not be negative", [](G &g) { g.tokens = -1; }},
    {"k_pack", invalid, "divide head_dim_qk", [](G &g) { g.k_pack = 24; }},
    {"k_scale_kind", invalid, "between equal types", [](G &g) { g.k_scale_kind = SLUICE_SCALE_PER_TENSOR; }},
    {"page_table_kind", invalid, "SLUICE_PAGE_TABLE_BLOCK", [](G &g) { g.page_table_kind = 0; }},
    {"page_table_kind", SLUICE_NEWER_STRUCT, "SLUICE_PAGE_TABLE_CSR", [](G &g) { g.page_table_kind = 3; }},
    {"out_starts", invalid, "NULL", [](G &g) { g.out_starts = nullptr; }},
    {"kv_lengths", invalid, "NULL", [](G &g) { g.kv_lengths = nullptr; }},
    {"first_keys", invalid, "4 bytes",
     [](G &g) { g.first_keys = reinterpret_cast<const int32_t *>(device_memory + 1); }},
    {"page_table", invalid, "NULL", [](G &g) { g.page_table = nullptr; }},
    {"page_table", invalid, "8 bytes", [](G &g) { g.flags = SLUICE_PAGE_INDEX_64; }},
    {"page_starts", invalid, "given", [](G &g) { g.page_starts = g.kv_lengths; }},
    {"page_starts", invalid, "NULL",
     [](G &g) {
       g.page_table_kind = SLUICE_PAGE_TABLE_CSR;
       g.page_table_stride = 0;
     }},
    {"page_table_stride", invalid, "at least 0", [](G &g) { g.page_table_stride = -1; }},
    {"page_table_stride", invalid, "it must be 0",
     [](G &g) {
       g.page_table_kind = SLUICE_PAGE_TABLE_CSR;
       g.page_starts = g.kv_lengths;
     }},
    {"page_count", invalid, "at least 0", [](G &g) { g.page_count = -2; }},
    {"k_cache.data", invalid, "16 bytes", [](G &g) { g.k_cache.data = device_memory + 4; }},
    {"k_out.stride[2]", invalid, "overlap", [](G &g) { g.k_out.stride[1] = 128; }},
    {"v_out.stride[3]", invalid, "it must be 1", [](G &g) { g.v_out.stride[3] = 0; }},
    {"v_cache.stride[1]", invalid, "multiple of 8", [](G &g) { g.v_cache.stride[1] = 132; }},
    {"v_out", invalid, "all zero",
     [](G &g) {
       g.flags = SLUICE_V_IN_K;
       g.head_dim_v = 0;
       g.v_cache = {};
     }},
};

sluice_status run(const CacheOpDevice &device, const sluice_page_copy &call, sluice_error *error) {
  return sluice_kv_copy(device.context.get(), &call, nullptr, error);
}
sluice_status run(const CacheOpDevice &device, const sluice_gather &call, sluice_error *error) {
  return sluice_kv_gather(device.context.get(), &call, nullptr, error);
}
template <typename Call, size_t count>
void check_breaches(CacheOpDevice &device, const Breach<Call> (&breaches)[count], const Call &good) {
  device.hip.forget_calls();
  for (const Breach<Call> &breach : breaches) {
    INFO(breach.field << ": " << breach.message_part);
    Call call = good;
    breach.breaks(call);
    Error error;
    check_refusal(run(device, call, &error), error, breach.status, breach.field, breach.message_part);
  }
  CHECK(device.hip.call_count == 0);
}

} // namespace

TEST_CASE("every copy of pages and every gather that breaks a rule is refused by name", "[copies]") {
  CacheOpDevice device;
  check_breaches(device, copy_breaches, good_copy());
  check_breaches(device, fp8_breaches, good_fp8_copy());
  check_breaches(device, u4_breaches, good_u4_copy());
  check_breaches(device, gather_breaches, good_gather());
  check_breaches(device, i8_breaches, good_i8_gather());
}

TEST_CASE("null arguments, and targets, are refused", "[copies]") {
  const ContextHandle context = target_context();
  const sluice_page_copy copy = good_copy();
  const sluice_gather gather = good_gather();
  Error error;
  check_refusal(sluice_kv_copy(nullptr, &copy, nullptr, &error), error, invalid, "context", "NULL");
  check_refusal(sluice_kv_copy(context.get(), nullptr, nullptr, &error), error, invalid, "copy", "NULL");
  check_refusal(sluice_kv_gather(nullptr, &gather, nullptr, &error), error, invalid, "context", "NULL");
  check_refusal(sluice_kv_gather(context.get(), nullptr, nullptr, &error), error, invalid, "gather", "NULL");
  check_refusal(sluice_reference_copy(nullptr, &error), error, invalid, "copy", "NULL");
  check_refusal(sluice_reference_gather(nullptr, &error), error, invalid, "gather", "NULL");
  sluice::package::PackWriter writer("test", "22.1.8");
  add_fake_kernel(writer, cache_op_entry("kv_copy", "f16", "f16"));
  const std::vector<std::byte> pack = writer.finish();
  const ContextHandle target = make_context(context_desc(SLUICE_DEVICE_TARGET, pack));
  check_refusal(sluice_kv_copy(target.get(), &copy, nullptr, &error), error, SLUICE_NO_DEVICE, "context",
                "gfx942");
  check_refusal(sluice_kv_gather(target.get(), &gather, nullptr, &error), error, SLUICE_NO_DEVICE, "context",
                "gfx942");
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
  sluice_page_copy copy = good_copy();
  copy.kv_heads = 1;
  copy.head_dim_qk = 8;
  copy.page_size = 1;
  drop_v(copy, copy.v_source, copy.v_target);
  alignas(16) uint16_t cache[24], target[24];
  for (uint16_t i = 0; i < 24; ++i)
    cache[i] = i, target[i] = 1000;
  copy.k_source = {cache, {8, 8, 8, 1}};
  copy.k_target = {target, {8, 8, 8, 1}};
  copy.page_count = 3;
  int32_t pairs[] = {0, 2, -1, 1, 2, 3};
  copy.pairs = pairs;
  Error error;
  check_refusal(sluice_reference_copy(&copy, &error), error, invalid, "pairs[5]",
                "pairs[5] is 3; it must be less than page_count, which is 3");
  CHECK(target[16] == 1000);
  pairs[5] = 0;
  CHECK(sluice_reference_copy(&copy, &error) == SLUICE_OK);
  for (uint16_t i = 0; i < 8; ++i) {
    CHECK(target[i] == 16 + i);
    CHECK(target[8 + i] == 1000);
    CHECK(target[16 + i] == i);
  }
}

TEST_CASE("the reference of a gather refuses what a device would leave out or read as zeros", "[copies]") {
  sluice_gather gather = good_gather();
  gather.kv_heads = 1;
  gather.head_dim_qk = 8;
  gather.page_size = 2;
  drop_v(gather, gather.v_cache, gather.v_out);
  alignas(16) uint16_t cache[48], out[40];
  for (uint16_t i = 0; i < 48; ++i)
    cache[i] = i;
  std::fill(std::begin(out), std::end(out), uint16_t{1000});
  gather.k_cache = {cache, {16, 8, 8, 1}};
  gather.k_out = {out, {0, 8, 8, 1}};
  gather.tokens = 5;
  gather.page_count = 3;
  gather.page_table_stride = 2;
  int32_t starts[] = {1, 3, 5}, lengths[] = {3, 1}, first[] = {1, 0}, table[] = {2, 0, 1, 77};
  gather.out_starts = starts;
  gather.kv_lengths = lengths;
  gather.first_keys = first;
  gather.page_table = table;
  Error error;
  const auto refused = [&](int32_t &value, int32_t wrong, const char *field, const char *part) {
    const int32_t right = value;
    value = wrong;
    check_refusal(sluice_reference_gather(&gather, &error), error, invalid, field, part);
    value = right;
    CHECK(out[8] == 1000);
  };
  refused(starts[0], -1, "out_starts[0]", "negative");
  refused(starts[2], 6, "out_starts[2]", "at most tokens, which is 5");
  refused(lengths[1], -1, "kv_lengths[1]", "negative");
  refused(first[1], -1, "first_keys[1]", "negative");
  refused(first[0], 0, "kv_lengths[0]", "2 rows for the keys from 0 on");
  refused(lengths[0], 5, "kv_lengths[0]", "2 rows");
  refused(table[0], 3, "page_table[0]", "less than page_count");
  refused(table[1], -1, "page_table[1]", "negative");
  first[0] = 3, lengths[0] = 5;
  check_refusal(sluice_reference_gather(&gather, &error), error, invalid, "kv_lengths[0]",
                "3 pages of 2, and a row of the page table has 2 entries");
  first[0] = 1, lengths[0] = 3;
  CHECK(sluice_reference_gather(&gather, &error) == SLUICE_OK);
  for (uint16_t i = 0; i < 8; ++i) {
    CHECK(out[i] == 1000);
    CHECK(out[8 + i] == 2 * 16 + 8 + i); // key 1, in page 2
    CHECK(out[16 + i] == i);             // key 2, in page 0
    CHECK(out[24 + i] == 16 + i);
    CHECK(out[32 + i] == 1000);
  }
}

//===- gathers_test.cpp - gathers: rules, the reference -------------------------------------------------===//
#include "page_copy_fixture.h"
#include "support/passed_members.h"

#include <algorithm>

using namespace sluice::test;

namespace {

constexpr sluice_status invalid = SLUICE_INVALID_ARGUMENT, unsupported = SLUICE_UNSUPPORTED,
                        newer = SLUICE_NEWER_STRUCT;

using G = GatherCall;
const Breach<G> gather_breaches[] = {
    {"args.reserved", invalid, "args.reserved is 1; it must be 0", [](G &g) { g.args.reserved = 1; }},
    {"source", invalid, "source is NULL", [](G &g) { g.args.source = nullptr; }},
    {"target", invalid, "target is NULL", [](G &g) { g.args.target = nullptr; }},
    {"batch", invalid, "batch is -1; it must not be negative", [](G &g) { g.args.batch = -1; }},
    {"tokens", invalid, "tokens is -1; it must not be negative", [](G &g) { g.args.tokens = -1; }},
    {"starts", invalid, "starts is NULL; it is required in a gather", [](G &g) { g.args.starts = nullptr; }},
    {"lengths", invalid, "lengths is NULL; it is required in a gather",
     [](G &g) { g.args.lengths = nullptr; }},
    {"first_keys", invalid, "4 bytes", [](G &g) { g.args.first_keys = at_byte<int32_t>(1); }},
    {"pages.table", invalid, "pages.table is NULL", [](G &g) { g.args.pages.table = nullptr; }},
    {"pages.table", invalid, "8 bytes", [](G &g) { g.source.format.flags = SLUICE_KV_PAGE_INDEX_64; }},
    {"pages.starts", invalid, "pages.starts is given", [](G &g) { g.args.pages.starts = g.args.lengths; }},
    {"pages.starts", invalid, "pages.starts is NULL; it is required with SLUICE_PAGE_TABLE_CSR",
     [](G &g) { g.source.format.page_table = SLUICE_PAGE_TABLE_CSR, g.args.pages.stride = 0; }},
    {"pages.stride", invalid, "pages.stride is -2; it must not be negative, except as SLUICE_SHARED (-1)",
     [](G &g) { g.args.pages.stride = -2; }},
    {"pages.stride", invalid, "or SLUICE_SHARED (-1) for one table that all sequences share",
     [](G &g) { g.args.pages.stride = 0; }},
    {"pages.stride", invalid, "pages.stride is 5; it must be 0",
     [](G &g) {
       g.source.format.page_table = SLUICE_PAGE_TABLE_CSR;
       g.args.pages.starts = g.args.lengths;
     }},
    {"pages.head_stride", unsupported, "pages.head_stride is 3; nearest supported: 0",
     [](G &g) { g.args.pages.head_stride = 3; }},
    {"source.page_count", invalid, "source.page_count is -2; it must be at least 0",
     [](G &g) { g.source.kv.page_count = -2; }},
    {"target.page_count", invalid, "target.page_count is 1; it must be 0: rows are contiguous",
     [](G &g) { g.target.kv.page_count = 1; }},
    {"source.k.data", invalid, "16 bytes", [](G &g) { g.source.kv.k.data = device_memory + 4; }},
    {"target.k.stride[2]", invalid, "overlap", [](G &g) { g.target.kv.k.stride[1] = 128; }},
    {"target.v.stride[3]", invalid, "it must be 1", [](G &g) { g.target.kv.v.stride[3] = 0; }},
    {"source.v.stride[1]", invalid, "multiple of 8", [](G &g) { g.source.kv.v.stride[1] = 132; }},
    {"target.v", invalid, "target.v is given; it must be all zero with SLUICE_KV_V_IN_K",
     [](G &g) { drop_v(g), g.target.kv.v.data = device_memory; }},
};

/// Rules of the formats of a cache and of rows.
const Breach<G> format_breaches[] = {
    {"source.format.flags", newer, "unknown bits", [](G &g) { g.source.format.flags = 1u << 31; }},
    {"target.format.flags", invalid,
     "target.format.flags has SLUICE_KV_PAGE_INDEX_64, but rows are contiguous",
     [](G &g) { g.target.format.flags = SLUICE_KV_PAGE_INDEX_64; }},
    {"source.format.k.type", invalid, "source.format.k.type is missing",
     [](G &g) { set_types(g.source, 0); }},
    {"target.format.k.type", unsupported,
     "target.format.k.type is f32 and source.format.k.type f16; nearest supported: f16",
     [](G &g) { set_types(g.target, SLUICE_F32); }},
    {"source.format.kv_heads", invalid, "at least 1",
     [](G &g) { g.source.format.kv_heads = g.target.format.kv_heads = -1; }},
    {"source.format.k.pack", invalid, "divide source.format.head_dim_qk",
     [](G &g) { g.source.format.k.pack = 24; }},
    {"target.format.k.pack", invalid, "target.format.k.pack is 16; it must be 0: rows are contiguous",
     [](G &g) { g.target.format.k.pack = 16; }},
    {"source.format.page_size", invalid, "source.format.page_size is 0; it must be at least 1",
     [](G &g) { g.source.format.page_size = 0; }},
    {"target.format.page_size", invalid, "target.format.page_size is 16; it must be 0: rows are contiguous",
     [](G &g) { g.target.format.page_size = 16, g.target.kv.k.stride[0] = g.target.kv.v.stride[0] = 8; }},
    {"source.format.page_table", invalid, "SLUICE_PAGE_TABLE_BLOCK",
     [](G &g) { g.source.format.page_table = SLUICE_PAGE_TABLE_NONE; }},
    {"source.format.page_table", newer, "SLUICE_PAGE_TABLE_CSR",
     [](G &g) { g.source.format.page_table = 3; }},
    {"target.format.page_table", invalid, "target.format.page_table is 1; it must be 0: rows are contiguous",
     [](G &g) { g.target.format.page_table = SLUICE_PAGE_TABLE_BLOCK; }},
    {"target.format.k.scale_kind", invalid, "it must be 1, that of the source",
     [](G &g) { g.source.format.k.scale_kind = SLUICE_SCALE_PER_TENSOR; }},
};

/// Rules of scales per token and per page.
const Breach<G> i8_breaches[] = {
    {"source.scales.k.data", invalid, "NULL", [](G &g) { g.source.scales.k.data = nullptr; }},
    {"source.format.k.scale_kind", unsupported, "SLUICE_SCALE_PER_PAGE (4)",
     [](G &g) { g.source.format.k.scale_kind = SLUICE_SCALE_PER_GROUP, g.source.format.k.scale_group = 32; }},
    {"target.format.k.scale_kind", unsupported,
     "target.format.k.scale_kind is 3 for f16; nearest supported: SLUICE_SCALE_NONE (0)",
     [](G &g) { g.target.format.k.scale_kind = SLUICE_SCALE_PER_TOKEN; }},
    {"target.format.k.scale_kind", invalid, "target.format.k.scale_kind is 0; it must be 3",
     [](G &g) { set_types(g.target, SLUICE_I8); }},
    {"target.format.v.scale_kind", invalid,
     "target.format.v.scale_kind is 4; it must be 3: scales of pages become those of rows",
     [](G &g) {
       set_types(g.target, SLUICE_I8);
       g.target.format.k.scale_kind = SLUICE_SCALE_PER_TOKEN;
       g.target.format.v.scale_kind = SLUICE_SCALE_PER_PAGE;
     }},
    {"target.scales.k.data", invalid, "target.scales.k.data is NULL",
     [](G &g) {
       set_types(g.target, SLUICE_I8);
       g.target.format.k.scale_kind = g.target.format.v.scale_kind = SLUICE_SCALE_PER_TOKEN;
     }},
};

} // namespace

TEST_CASE("every gather that breaks a rule is refused by name", "[copies]") {
  CacheOpDevice device;
  check_breaches(device.hip, device.context, gather_breaches, good_gather());
  check_breaches(device.hip, device.context, format_breaches, good_gather());
  check_breaches(device.hip, device.context, i8_breaches, good_i8_gather());
}

TEST_CASE("a gather of bits makes scales of pages those of rows", "[copies]") {
  CacheOpDevice device;
  GatherCall call = good_i8_gather();
  set_types(call.target, SLUICE_I8);
  call.target.kv.k = sluice_packed(device_memory + 32, 2, 128);
  call.target.kv.v = sluice_packed(device_memory + 48, 2, 64);
  const sluice_tensor scales = {device_memory + 64, {0, 2, 1, 0}};
  set_scales(call.target, SLUICE_SCALE_PER_TOKEN, scales, SLUICE_SCALE_PER_TOKEN, scales);
  const sluice::package::PageCopyKernargs out = device.copy(call);
  CHECK(device.hip.count("hipModuleLaunchKernel") == 2); // of elements and of scales
  CHECK(out.v.source == as_bits(call.source.scales.v.data));
  CHECK(out.v.source_row_stride == 0);
  CHECK(out.v.target_row_stride != 0);
}

TEST_CASE("the reference of a gather refuses what a device would leave out or read as zeros", "[copies]") {
  GatherCall gather = good_gather();
  for (Kv *rows : {&gather.source, &gather.target}) {
    rows->format.kv_heads = 1;
    rows->format.head_dim_qk = rows->format.head_dim_v = 8;
  }
  gather.source.format.page_size = 2;
  drop_v(gather);
  alignas(16) uint16_t cache[48], out[40];
  for (uint16_t i = 0; i < 48; ++i)
    cache[i] = i;
  std::fill(std::begin(out), std::end(out), uint16_t{1000});
  gather.source.kv.k = {cache, {16, 8, 8, 1}};
  gather.target.kv.k = {out, {0, 8, 8, 1}};
  gather.args.tokens = 5;
  gather.source.kv.page_count = 3;
  gather.args.pages.stride = 2;
  int32_t starts[] = {1, 3, 5}, lengths[] = {3, 1}, first[] = {1, 0}, table[] = {2, 0, 1, 77};
  gather.args.starts = starts;
  gather.args.lengths = lengths;
  gather.args.first_keys = first;
  gather.args.pages.table = table;
  Error error;
  const auto refused = [&](int32_t &value, int32_t wrong, const char *field, const char *part) {
    const int32_t right = value;
    value = wrong;
    check_refusal(sluice_cache_gather_reference(&gather.args, &error), error, invalid, field, part);
    value = right;
    CHECK(out[8] == 1000);
  };
  refused(starts[0], -1, "starts[0]", "negative");
  refused(starts[2], 6, "starts[2]", "at most tokens, which is 5");
  refused(lengths[1], -1, "lengths[1]", "negative");
  refused(first[1], -1, "first_keys[1]", "negative");
  refused(first[0], 0, "lengths[0]", "2 rows for the keys from 0 on");
  refused(lengths[0], 5, "lengths[0]", "2 rows");
  refused(table[0], 3, "pages.table[0]", "less than source.page_count");
  refused(table[1], -1, "pages.table[1]", "negative");
  first[0] = 3, lengths[0] = 5;
  check_refusal(sluice_cache_gather_reference(&gather.args, &error), error, invalid, "lengths[0]",
                "3 pages of 2, and a row of the page table has 2 entries");
  first[0] = 1, lengths[0] = 3;
  CHECK(sluice_cache_gather_reference(&gather.args, &error) == SLUICE_OK);
  for (uint16_t i = 0; i < 8; ++i) {
    CHECK(out[i] == 1000);
    CHECK(out[8 + i] == 2 * 16 + 8 + i); // key 1, in page 2
    CHECK(out[16 + i] == i);             // key 2, in page 0
    CHECK(out[24 + i] == 16 + i);
    CHECK(out[32 + i] == 1000);
  }
}

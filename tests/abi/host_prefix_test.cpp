//===- host_prefix_test.cpp - prefixes that rows share, on the host -------------------------------------===//
#include "fixture.h"

#include <cmath>

using namespace sluice::test;

namespace {

/// Three sequences with two rows of one element each. Rows 1 to 3 see prefix 0, row 4 sees prefix 1, rows 0
/// and 5 see none.
struct HostCall : AttentionCall {
  float q[6] = {1, 2, 3, 4, 5, 6}, o[6] = {}, lse_values[6] = {};
  float k[12] = {0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.7f, 0.8f, 0.9f, 1, 1.1f, 1.2f};
  float v[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  int32_t kv_lengths[3] = {2, 1, 0}, table[6] = {0, 1, 2, 3, 4, 5}, own_page_starts[4] = {0, 1, 2, 2};
  int32_t starts[3] = {1, 4, 5}, lengths[2] = {3, 1}, prefix_table[4] = {3, 4, 5, 0},
          page_starts[3] = {0, 2, 3};

  HostCall() {
    format.kv_heads = format.head_dim_qk = format.head_dim_v = 1;
    format.k.type = format.v.type = SLUICE_F32;
    format.page_size = 2;
    format.page_table = SLUICE_PAGE_TABLE_BLOCK;
    attention.flags = SLUICE_ATTENTION_PREFIXES;
    attention.q_heads = 1;
    attention.lse = SLUICE_LSE_LN;
    attention.q.type = attention.o.type = SLUICE_F32;
    attention.bounds.groups = 2;
    attention.bounds.group_keys = 4;
    attention.bounds.q_rows = 6;
    scale = 1;
    args.scale = &scale;
    args.batch = 3;
    args.rows.max_len = 2;
    args.q = {q, {2, 1, 0, 0}};
    args.o = {o, {2, 1, 0, 0}};
    lse = {lse_values, {2, 1, 0, 0}};
    args.lse = &lse;
    kv.k = {k, {2, 1, 0, 0}};
    kv.v = {v, {2, 1, 0, 0}};
    args.key_sets = 2;
    keys[0].rows.max_len = 2;
    keys[0].rows.lengths = kv_lengths;
    keys[0].pages.table = table;
    keys[0].pages.stride = 1;
    keys[1].kv = &kv;
    keys[1].groups = 2;
    keys[1].group_starts = starts;
    keys[1].rows.max_len = SLUICE_PLAN_BOUND;
    keys[1].rows.lengths = lengths;
    keys[1].pages.table = prefix_table;
    keys[1].pages.stride = 2;
  }
  HostCall(const HostCall &) = delete;

  sluice_status compute(Error &error) { return sluice_attention_reference(&attention, &args, &error); }
};

struct ContentRefusal {
  void (*change)(HostCall &);
  const char *field;
  const char *message;
};

const ContentRefusal refusals[] = {
    {[](HostCall &c) { c.starts[0] = -1; }, "keys[1].group_starts[0]", "it must not be negative"},
    {[](HostCall &c) { c.starts[1] = 0; }, "keys[1].group_starts[1]",
     "keys[1].group_starts[1] is 0; starts must not decrease, and the previous one is 1"},
    {[](HostCall &c) { c.starts[2] = 7; }, "keys[1].group_starts[2]",
     "keys[1].group_starts[2] is 7; it must be at most the problem's bounds.q_rows, which is 6"},
    {[](HostCall &c) {
       c.attention.bounds.q_rows = 9;
       c.starts[2] = 7;
     },
     "keys[1].group_starts[2]", "it must be at most batch * rows.max_len, which is 6"},
    {[](HostCall &c) { c.lengths[0] = -1; }, "keys[1].rows.lengths[0]", "it must not be negative"},
    {[](HostCall &c) { c.lengths[1] = 5; }, "keys[1].rows.lengths[1]",
     "keys[1].rows.lengths[1] is 5; it must be at most keys[1].rows.max_len, which is 4"},
    {[](HostCall &c) { c.prefix_table[1] = -1; }, "keys[1].pages.table[1]",
     "a page number must not be negative"},
    {[](HostCall &c) {
       c.kv.page_count = 6;
       c.prefix_table[2] = 6;
     },
     "keys[1].pages.table[2]", "it must be less than keys[0].kv.page_count, which is 6"},
    {[](HostCall &c) {
       c.format.page_table = SLUICE_PAGE_TABLE_CSR;
       c.keys[0].pages.stride = c.keys[1].pages.stride = 0;
       c.keys[0].pages.starts = c.own_page_starts;
       c.keys[1].pages.starts = c.page_starts;
       c.page_starts[1] = 1;
     },
     "keys[1].pages.starts[1]", "group 0 starts at 0 and needs 2 pages"},
};

} // namespace

TEST_CASE("the host reference checks what the arrays of prefixes hold", "[prefix]") {
  for (const ContentRefusal &refusal : refusals) {
    HostCall call;
    refusal.change(call);
    Error error;
    check_refusal(call.compute(error), error, SLUICE_INVALID_ARGUMENT, refusal.field, refusal.message);
    CHECK(call.lse_values[0] == 0);
  }
}

TEST_CASE("a row sees the keys of its prefix, then its sequence's", "[prefix]") {
  HostCall call;
  Error error;
  const sluice_status status = call.compute(error);
  INFO(error.message);
  REQUIRE(status == SLUICE_OK);
  // Elements of k and v that each row sees.
  const std::vector<size_t> seen[] = {{0, 1}, {6, 7, 8, 0, 1}, {6, 7, 8, 2}, {6, 7, 8, 2}, {10}, {}};
  for (size_t row = 0; row < 6; ++row) {
    double sum = 0, weighted = 0;
    for (const size_t key : seen[row]) {
      const double weight = std::exp(double{call.q[row]} * call.k[key]);
      sum += weight;
      weighted += weight * call.v[key];
    }
    CHECK(call.o[row] == Approx(sum == 0 ? 0 : weighted / sum));
    CHECK(call.lse_values[row] == Approx(std::log(sum)));
  }
}

TEST_CASE("keys of prefixes in blocks follow the rules of blocks", "[prefix]") {
  std::vector<unsigned char> blocks(64 * 18);
  std::vector<uint16_t> rows(4 * 2 * 64), o(2 * 64);
  const int32_t starts[] = {0, 1};
  AttentionCall call;
  call.format = sluice_kv_tensors(SLUICE_Q4_0, 2, 64);
  call.attention.q_heads = 2;
  call.attention.q.type = call.attention.o.type = SLUICE_F16;
  call.attention.flags = SLUICE_ATTENTION_PREFIXES;
  call.attention.bounds.groups = 1;
  call.attention.bounds.group_keys = 4;
  call.attention.bounds.q_rows = 2;
  call.args.batch = call.args.rows.max_len = 1;
  call.args.q = sluice_bshd(rows.data(), 1, 2, 64);
  call.args.o = sluice_bshd(o.data(), 1, 2, 64);
  call.args.key_sets = 2;
  call.kv.k = call.kv.v = sluice_bshd(blocks.data(), 2, 2, 64);
  call.keys[0].rows.max_len = 2;
  call.prefix_kv.k = call.prefix_kv.v = sluice_bshd(blocks.data(), 4, 2, 64);
  call.keys[1].groups = 1;
  call.keys[1].group_starts = starts;
  call.keys[1].rows.max_len = 4;
  const auto compute = [&](Error &error) {
    return sluice_attention_reference(&call.attention, &call.args, &error);
  };
  Error error;
  const sluice_status status = compute(error);
  INFO(error.message);
  CHECK(status == SLUICE_OK);
  call.prefix_kv.k.stride[1] = 72;
  check_refusal(compute(error), error, SLUICE_INVALID_ARGUMENT, "keys[1].kv.k.stride[1]",
                "keys[1].kv.k.stride[1] is 72; it must be a multiple of 32");
  call.prefix_kv.k.stride[1] = 64;
  call.prefix_kv.v.stride[2] = 16;
  check_refusal(compute(error), error, SLUICE_INVALID_ARGUMENT, "keys[1].kv.v.stride[2]",
                "it must be a multiple of 32");
}

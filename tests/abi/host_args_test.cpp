//===- host_args_test.cpp - what the host reference checks in the arrays of a call ----------------------===//
#include "fixture.h"

using namespace sluice::test;

namespace {

enum class Kind { ragged, block, csr };

/// Three sequences with rows of one element, on the host.
struct HostCall : AttentionCall {
  float q[8] = {}, k[64] = {}, v[64] = {}, o[8] = {};
  int32_t q_starts[4] = {0, 2, 2, 5}, kv_starts[4] = {1, 4, 4, 8}, q_lengths[3] = {2, 0, 1},
          kv_lengths[3] = {3, 0, 4}, page_starts[4] = {0, 2, 2, 4}, table[6] = {3, 0, 7, 1, 5, 2};
  int64_t table_64[6] = {3, 0, 7, 1, 5, 2};

  explicit HostCall(Kind kind) {
    format.kv_heads = format.head_dim_qk = format.head_dim_v = 1;
    format.k.type = format.v.type = SLUICE_F32;
    attention.q_heads = 1;
    attention.q.type = attention.o.type = SLUICE_F32;
    const bool is_paged = kind != Kind::ragged;
    args.batch = 3;
    args.q = {q, {0, 1, 0, 0}};
    args.o = {o, {0, 1, 0, 0}};
    args.rows.max_len = 3;
    args.rows.starts = q_starts;
    kv.k = {k, {is_paged * 2, 1, 0, 0}};
    kv.v = {v, {is_paged * 2, 1, 0, 0}};
    keys[0].rows.max_len = 4;
    if (!is_paged) {
      attention.flags = SLUICE_ATTENTION_RAGGED;
      keys[0].rows.starts = kv_starts;
      return;
    }
    format.page_size = 2;
    format.page_table = kind == Kind::csr ? SLUICE_PAGE_TABLE_CSR : SLUICE_PAGE_TABLE_BLOCK;
    keys[0].rows.lengths = kv_lengths;
    keys[0].pages.table = table;
    if (kind == Kind::csr) keys[0].pages.starts = page_starts;
    if (kind == Kind::block) keys[0].pages.stride = 2;
  }
  HostCall(const HostCall &) = delete;

  sluice_status compute(Error &error) { return sluice_attention_reference(&attention, &args, &error); }
};

struct ContentRefusal {
  Kind kind;
  void (*change)(HostCall &);
  const char *field;
  const char *message;
};

const ContentRefusal refusals[] = {
    {Kind::ragged, [](HostCall &c) { c.q_starts[0] = -1; }, "rows.starts[0]",
     "rows.starts[0] is -1; it must not be negative"},
    {Kind::ragged, [](HostCall &c) { c.q_starts[2] = 1; }, "rows.starts[2]",
     "rows.starts[2] is 1; starts must not decrease, and the previous one is 2"},
    {Kind::ragged, [](HostCall &c) { c.kv_starts[3] = 3; }, "keys[0].rows.starts[3]",
     "starts must not decrease, and the previous one is 4"},
    {Kind::ragged, [](HostCall &c) { c.q_starts[3] = 6; }, "rows.starts[3]",
     "rows.starts[3] is 6; the sequence before it has 4 rows, and rows.max_len is 3"},
    {Kind::ragged, [](HostCall &c) { c.kv_starts[3] = 9; }, "keys[0].rows.starts[3]",
     "the sequence before it has 5 rows, and keys[0].rows.max_len is 4"},
    {Kind::ragged,
     [](HostCall &c) {
       c.args.rows.lengths = c.q_lengths;
       c.q_lengths[1] = 1;
     },
     "rows.lengths[1]", "rows.lengths[1] is 1; between rows.starts[1] and the next there are 0 rows"},
    {Kind::ragged,
     [](HostCall &c) {
       c.args.rows.lengths = c.q_lengths;
       c.q_lengths[2] = -1;
     },
     "rows.lengths[2]", "rows.lengths[2] is -1; it must not be negative"},
    {Kind::ragged,
     [](HostCall &c) {
       c.keys[0].rows.lengths = c.kv_lengths;
       c.kv_lengths[0] = 5;
     },
     "keys[0].rows.lengths[0]",
     "keys[0].rows.lengths[0] is 5; it must be at most keys[0].rows.max_len, which is 4"},
    {Kind::ragged, [](HostCall &c) { c.attention.bounds.q_rows = 4; }, "rows.starts[3]",
     "rows.starts[3] is 5; it must be at most the problem's bounds.q_rows, which is 4"},
    {Kind::ragged, [](HostCall &c) { c.args.rows.total = 4; }, "rows.starts[3]",
     "rows.starts[3] is 5; it must be at most rows.total, which is 4"},
    {Kind::ragged, [](HostCall &c) { c.keys[0].rows.total = 7; }, "keys[0].rows.starts[3]",
     "keys[0].rows.starts[3] is 8; it must be at most keys[0].rows.total, which is 7"},
    {Kind::block, [](HostCall &c) { c.kv.page_count = 5; }, "keys[0].pages.table[4]",
     "keys[0].pages.table[4] is 5; it must be less than keys[0].kv.page_count, which is 5"},
    // A negative number may hide keys, one that is too large may not.
    {Kind::block,
     [](HostCall &c) {
       c.mask.flags = SLUICE_MASK_MISSING_PAGES;
       c.table[1] = -1;
       c.kv.page_count = 5;
     },
     "keys[0].pages.table[4]", "is 5; it must be less than keys[0].kv.page_count, which is 5"},
    {Kind::block, [](HostCall &c) { c.kv_lengths[2] = 5; }, "keys[0].rows.lengths[2]",
     "at most keys[0].rows.max_len"},
    {Kind::block, [](HostCall &c) { c.table[1] = -1; }, "keys[0].pages.table[1]",
     "keys[0].pages.table[1] is -1; a page number must not be negative"},
    {Kind::block, [](HostCall &c) { c.table[5] = -3; }, "keys[0].pages.table[5]",
     "keys[0].pages.table[5] is -3"},
    {Kind::block,
     [](HostCall &c) {
       c.format.flags = SLUICE_KV_PAGE_INDEX_64;
       c.keys[0].pages.table = c.table_64;
       c.table_64[5] = -(int64_t{1} << 40);
     },
     "keys[0].pages.table[5]", "keys[0].pages.table[5] is -1099511627776"},
    {Kind::csr, [](HostCall &c) { c.table[3] = -1; }, "keys[0].pages.table[3]",
     "keys[0].pages.table[3] is -1"},
    {Kind::csr, [](HostCall &c) { c.page_starts[1] = 1; }, "keys[0].pages.starts[1]",
     "keys[0].pages.starts[1] is 1; sequence 0 starts at 0 and needs 2 pages"},
    {Kind::csr, [](HostCall &c) { c.page_starts[2] = 1; }, "keys[0].pages.starts[2]",
     "starts must not decrease"},
};

} // namespace

TEST_CASE("the host reference checks what lengths, starts and tables hold", "[args]") {
  for (const ContentRefusal &refusal : refusals) {
    HostCall good(refusal.kind);
    Error error;
    const sluice_status status = good.compute(error);
    INFO(error.message);
    REQUIRE(status == SLUICE_OK);
    HostCall call(refusal.kind);
    for (float &value : call.o)
      value = -1;
    refusal.change(call);
    check_refusal(call.compute(error), error, SLUICE_INVALID_ARGUMENT, refusal.field, refusal.message);
    for (const float value : call.o)
      CHECK(value == -1);
  }
}

TEST_CASE("entries of a table that no key needs may be anything", "[args]") {
  HostCall call(Kind::block);
  call.table[2] = call.table[3] = -1; // of the sequence without keys
  call.kv_lengths[0] = 2;
  call.table[1] = -1; // after two keys of one page
  Error error;
  const sluice_status status = call.compute(error);
  INFO(error.message);
  CHECK(status == SLUICE_OK);
}

TEST_CASE("sequences of one length need no lengths, in pages or not", "[args]") {
  for (const Kind kind : {Kind::block, Kind::csr}) {
    HostCall call(kind), without(kind);
    for (HostCall *each : {&call, &without}) {
      for (int i = 0; i < 64; ++i)
        each->v[i] = float(i);
      each->args.batch = 1;
      each->kv_lengths[0] = 4;
    }
    without.keys[0].rows.lengths = nullptr;
    Error error;
    REQUIRE(call.compute(error) == SLUICE_OK);
    REQUIRE(without.compute(error) == SLUICE_OK);
    CHECK(call.o[0] > 0);
    CHECK(call.o[0] == without.o[0]);
  }
}

TEST_CASE("the host reference accepts calls that only a device limits", "[args]") {
  HostCall call(Kind::ragged);
  call.attention.bounds.q_len = 3;
  call.attention.bounds.kv_len = 4;
  call.args.rows.max_len = call.keys[0].rows.max_len = SLUICE_PLAN_BOUND;
  call.args.q.data = call.q + 1; // aligned to its element only
  Error error;
  const sluice_status status = call.compute(error);
  INFO(error.message);
  CHECK(status == SLUICE_OK);
}

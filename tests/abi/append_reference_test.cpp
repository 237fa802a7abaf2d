//===- append_reference_test.cpp - appends on the host --------------------------------------------------===//
#include "cache_op_fixture.h"

#include <algorithm>

using namespace sluice::test;

namespace {

constexpr sluice_status invalid = SLUICE_INVALID_ARGUMENT;

/// Three rows of K of 8 elements, row t with the bits 100 * t and on, into 3 pages of 2 rows; V is in K.
struct HostAppend {
  HostAppend() {
    for (uint16_t i = 0; i < 24; ++i)
      rows[i] = uint16_t(100 * (i / 8) + i % 8);
    std::fill(std::begin(cache), std::end(cache), untouched);
    call.cache.format.kv_heads = 1;
    call.cache.format.head_dim_qk = call.cache.format.head_dim_v = 8;
    call.cache.format.page_size = 2;
    call.cache.format.page_table = SLUICE_PAGE_TABLE_BLOCK;
    set_types(call.cache, SLUICE_F16);
    put_v_in_k(call);
    call.cache.kv.k = sluice_pages_nhd(cache, 2, 1, 8);
    call.cache.kv.page_count = 3;
    call.args.source_type = SLUICE_F16;
    call.args.tokens = 3;
    call.args.k = sluice_packed(rows, 1, 8);
  }

  /// The row that a slot holds; -1: none of them.
  int row_of(size_t slot) const {
    const uint16_t *const first = cache + 8 * slot;
    for (int row = 0; row < 3; ++row)
      if (std::equal(first, first + 8, rows + 8 * row)) return row;
    return std::all_of(first, first + 8, [](uint16_t bits) { return bits == untouched; }) ? -1 : -2;
  }
  void check_refused(const char *field, const char *message_part) {
    Error error;
    check_refusal(reference(call, &error), error, invalid, field, message_part);
    for (size_t slot = 0; slot < 6; ++slot)
      CHECK(row_of(slot) == -1);
  }

  AppendCall call;

private:
  static constexpr uint16_t untouched = 1000;
  alignas(16) uint16_t rows[24];
  alignas(16) uint16_t cache[48];
};

} // namespace

TEST_CASE("the reference of an append by slots stores rows, skips negative slots and refuses others",
          "[cache_ops]") {
  HostAppend host;
  int64_t slots[] = {5, -1, 6};
  host.call.args.slots = slots;
  host.check_refused("slots[2]",
                     "slots[2] is 6; that is page 3; it must be less than kv.page_count, which is 3");
  slots[2] = 0;
  REQUIRE(reference(host.call, nullptr) == SLUICE_OK);
  CHECK(host.row_of(0) == 2);
  CHECK(host.row_of(5) == 0);
  for (const size_t slot : {1, 2, 3, 4})
    CHECK(host.row_of(slot) == -1);
}

TEST_CASE("the reference of an append by tables refuses lengths, starts and pages that do not fit",
          "[cache_ops]") {
  HostAppend host;
  int32_t starts[] = {0, 2, 3}, lengths[] = {3, 1}, table[] = {1, 0, 2, 9};
  host.call.args.batch = 2;
  host.call.args.starts = starts;
  host.call.args.lengths = lengths;
  host.call.args.pages.table = table;
  host.call.args.pages.stride = 2;
  const auto refused = [&](int32_t &value, int32_t wrong, const char *field, const char *part) {
    const int32_t right = value;
    value = wrong;
    host.check_refused(field, part);
    value = right;
  };
  refused(starts[0], -1, "starts[0]", "starts[0] is -1; it must not be negative");
  refused(starts[2], 1, "starts[2]", "starts must not decrease, and the previous one is 2");
  refused(starts[2], 4, "starts[2]", "it must be at most tokens, which is 3");
  refused(lengths[0], 1, "lengths[0]", "it counts the new keys too, and sequence 0 has 2");
  refused(lengths[0], 5, "lengths[0]", "a row of the page table has 2 entries (pages.stride)");
  refused(table[1], 3, "pages.table[1]",
          "pages.table[1] is 3; it must be less than kv.page_count, which is 3");
  refused(table[2], -1, "pages.table[2]", "a page number must not be negative");
  REQUIRE(reference(host.call, nullptr) == SLUICE_OK);
  CHECK(host.row_of(3) == 0); // key 1 of the first sequence, in page 1
  CHECK(host.row_of(0) == 1); // key 2, in page 0
  CHECK(host.row_of(4) == 2); // key 0 of the second, in page 2
  for (const size_t slot : {1, 2, 5})
    CHECK(host.row_of(slot) == -1);
}

//===- append_far_test.cpp - rows and pages at distances of more than 32 bits ---------------------------===//
//
// Only the needed bytes of 160 GiB of address space exist for the device.
//
//===----------------------------------------------------------------------------------------------------===//
#include "cache_ops/device.h"
#include "calls/cache_ops.h"
#include "calls/problem.h"

#include <sys/mman.h>

#include <algorithm>

using namespace sluice::test;
namespace calls = sluice::calls;

namespace {

constexpr uint64_t space_bytes = uint64_t{160} << 30;

class AddressSpace {
public:
  AddressSpace()
      : start(mmap(nullptr, space_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0)) {
    if (start == MAP_FAILED) throw std::runtime_error("no address space");
    // Tensors begin in memory of the device, even if no row is there.
    REQUIRE(hip<int(void *, size_t, unsigned)>("hipHostRegister")(start, 1, 0) == 0);
    registered.push_back(start);
  }
  ~AddressSpace() {
    for (void *block : registered)
      hip<int(void *)>("hipHostUnregister")(block);
    munmap(start, space_bytes);
  }
  AddressSpace(const AddressSpace &) = delete;
  AddressSpace &operator=(const AddressSpace &) = delete;

  uint16_t *at(uint64_t element) { return static_cast<uint16_t *>(start) + element; }
  void show(uint64_t element, size_t count) {
    REQUIRE((element + count) * 2 <= space_bytes);
    if (at(element) == start) hide_start();
    REQUIRE(hip<int(void *, size_t, unsigned)>("hipHostRegister")(at(element), count * 2, 0) == 0);
    registered.push_back(at(element));
  }

private:
  /// For rows that are there.
  void hide_start() {
    if (registered.empty() || registered.front() != start) return;
    hip<int(void *)>("hipHostUnregister")(start);
    registered.erase(registered.begin());
  }

  void *start;
  std::vector<void *> registered;
};

constexpr int row_elements = 64;

struct FarCase {
  int64_t page_stride, row_stride;
  int32_t page_size;
  std::vector<int64_t> slots;
};

void check_far(const FarCase &c, uint32_t table_kind, bool wide) {
  INFO("page stride " << c.page_stride << ", row stride " << c.row_stride << ", page size " << c.page_size
                      << ", table " << table_kind << (wide ? " of int64" : " of int32"));
  AddressSpace space;
  const size_t tokens = c.slots.size();
  std::vector<uint16_t> rows(tokens * row_elements);
  for (size_t i = 0; i < rows.size(); ++i)
    rows[i] = uint16_t(i * 7 + 1);
  Visible<uint16_t> k(rows);
  calls::Append call;
  call.flags = calls::v_in_k;
  call.source_type = call.cache_type = SLUICE_F16;
  call.kv_heads = 1;
  call.head_dim_qk = row_elements;
  call.page_size = c.page_size;
  call.tokens = int32_t(tokens);
  call.k = {k.data(), {0, row_elements, row_elements, 1}};
  call.k_cache = {space.at(0), {c.page_stride, c.row_stride, row_elements, 1}};
  // With a table, every row is the last key of its own sequence, whose only entry is its page.
  std::vector<int32_t> starts = {0}, lengths, page_starts, narrow;
  std::vector<int64_t> pages;
  for (size_t t = 0; t < tokens; ++t) {
    const int64_t page = c.slots[t] / c.page_size, row = c.slots[t] % c.page_size;
    space.show(uint64_t(page * c.page_stride + row * c.row_stride), row_elements);
    starts.push_back(int32_t(t) + 1);
    lengths.push_back(int32_t(row) + 1);
    page_starts.push_back(int32_t(t));
    pages.push_back(page);
  }
  page_starts.push_back(int32_t(tokens));
  narrow.assign(pages.begin(), pages.end());
  Visible<int64_t> slots(c.slots), wide_pages(pages);
  Visible<int32_t> narrow_pages(narrow), starts_seen(starts), lengths_seen(lengths),
      page_starts_seen(page_starts);
  if (table_kind == SLUICE_PAGE_TABLE_NONE) {
    call.slots = slots.data();
  } else {
    if (wide) call.flags |= calls::page_index_64;
    call.page_table_kind = table_kind;
    call.batch = int32_t(tokens);
    call.starts = starts_seen.data();
    call.kv_lengths = lengths_seen.data();
    call.page_table = wide ? static_cast<void *>(wide_pages.data()) : narrow_pages.data();
    if (table_kind == SLUICE_PAGE_TABLE_CSR)
      call.page_starts = page_starts_seen.data();
    else
      call.page_table_stride = 1;
  }
  run_on_device(call, sluice_cache_append);
  for (size_t t = 0; t < tokens; ++t) {
    const int64_t page = c.slots[t] / c.page_size, row = c.slots[t] % c.page_size;
    const uint16_t *found = space.at(uint64_t(page * c.page_stride + row * c.row_stride));
    CHECK(std::equal(found, found + row_elements, rows.begin() + ptrdiff_t(t) * row_elements));
  }
}

} // namespace

TEST_CASE("caches beyond 4 GiB", "[append_far]") {
  const FarCase cases[] = {
      // Pages 8 GiB apart.
      {int64_t{1} << 32, 64, 16, {0, 17, 255, 16 * 19 + 15}},
      // Rows slightly more than 3 GiB apart.
      {64, (int64_t{3} << 29) + 64, 32, {1, 2, 31, 33, 13}},
      // Page numbers beyond 2^30.
      {64, 64, 1, {5, (int64_t{1} << 30) + 3, (int64_t{5} << 28) - 1}},
  };
  for (const FarCase &c : cases)
    for (const uint32_t table : {SLUICE_PAGE_TABLE_NONE, SLUICE_PAGE_TABLE_BLOCK, SLUICE_PAGE_TABLE_CSR})
      for (const bool wide : {false, true})
        if (!wide || table != SLUICE_PAGE_TABLE_NONE) check_far(c, table, wide);
}

TEST_CASE("slots beyond 2^32", "[append_far]") {
  // Rows of 16 bytes, page by page: a slot's number is its place.
  for (const int32_t page_size : {1, 3, 7, 641, 65536, 0x7fffffff}) {
    const int64_t last = (int64_t{1} << 33) + 12345;
    std::vector<int64_t> slots = {3, last, last - 2 * page_size - 1, (int64_t{1} << 32) - 1};
    AddressSpace space;
    std::vector<uint16_t> rows(slots.size() * 8);
    for (size_t i = 0; i < rows.size(); ++i)
      rows[i] = uint16_t(i + 1);
    Visible<uint16_t> k(rows);
    Visible<int64_t> seen(slots);
    calls::Append call;
    call.flags = calls::v_in_k;
    call.source_type = call.cache_type = SLUICE_BF16;
    call.kv_heads = 1;
    call.head_dim_qk = 8;
    call.page_size = page_size;
    call.tokens = int32_t(slots.size());
    call.k = {k.data(), {0, 8, 8, 1}};
    call.k_cache = {space.at(0), {int64_t{8} * page_size, 8, 8, 1}};
    call.slots = seen.data();
    for (const int64_t slot : slots)
      space.show(uint64_t(slot) * 8, 8);
    run_on_device(call, sluice_cache_append);
    for (size_t t = 0; t < slots.size(); ++t) {
      const uint16_t *found = space.at(uint64_t(slots[t]) * 8);
      INFO("page size " << page_size << ", slot " << slots[t]);
      CHECK(std::equal(found, found + 8, rows.begin() + ptrdiff_t(t) * 8));
    }
  }
}

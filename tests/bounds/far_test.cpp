//===- far_test.cpp - caches whose row distances need more than 32 bits ---------------------------------===//
//
// Only the needed rows of the address space exist for the device, so that a truncated address is an error of
// the device or reads another row's numbers.
//
//===----------------------------------------------------------------------------------------------------===//
#include "bounds/batch.h"
#include "calls/values.h"

#include "conformance/shared/numbers.h"

#include <sys/mman.h>

#include <cmath>
#include <set>

using namespace sluice::conformance;
namespace calls = sluice::calls;
using namespace sluice::test;

namespace {

constexpr uint64_t space_bytes = uint64_t{320} << 30;
constexpr int32_t head_dim = 64, kv_heads = 2, group = 2;
constexpr int64_t widest_token_stride = (int64_t{1} << 25) - 8; // that the header allows

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
  AddressSpace(const AddressSpace &) = delete;
  AddressSpace &operator=(const AddressSpace &) = delete;
  ~AddressSpace() {
    for (void *block : registered)
      hip<int(void *)>("hipHostUnregister")(block);
    munmap(start, space_bytes);
  }

  uint16_t *at(int64_t element) { return static_cast<uint16_t *>(start) + element; }
  /// Rows of a head, starting at these elements.
  void show(const std::set<int64_t> &rows) {
    for (auto first = rows.begin(); first != rows.end();) {
      int64_t end = *first + head_dim;
      auto next = std::next(first);
      for (; next != rows.end() && *next <= end; ++next)
        end = *next + head_dim;
      REQUIRE(uint64_t(end) * 2 <= space_bytes);
      if (at(*first) == start) hide_start();
      REQUIRE(hip<int(void *, size_t, unsigned)>("hipHostRegister")(at(*first), size_t(end - *first) * 2,
                                                                    0) == 0);
      registered.push_back(at(*first));
      first = next;
    }
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

struct FarCase {
  const char *name;
  uint32_t mode;
  int64_t outer_stride; // between sequences or pages
  int64_t token_stride, head_stride;
  std::vector<int32_t> kv_lengths;
  std::vector<int32_t> kv_starts = {}; // RAGGED
  int32_t page_size = 0;               // PAGED
  std::vector<int64_t> pages = {};     // those of all sequences, one after the other
};

/// The page of a sequence's key.
int64_t page_of(const FarCase &c, size_t sequence, int32_t key) {
  size_t first = 0;
  for (size_t b = 0; b < sequence; ++b)
    first += size_t((c.kv_lengths[b] + c.page_size - 1) / c.page_size);
  return c.pages[first + size_t(key / c.page_size)];
}

int64_t place_of(const FarCase &c, size_t sequence, int32_t key, int32_t head) {
  const int64_t in_head = head * c.head_stride;
  if (c.mode == calls::dense) return in_head + int64_t(sequence) * c.outer_stride + key * c.token_stride;
  if (c.mode == calls::ragged) return in_head + (int64_t{c.kv_starts[sequence]} + key) * c.token_stride;
  return in_head + page_of(c, sequence, key) * c.outer_stride + key % c.page_size * c.token_stride;
}

void check_far(const FarCase &c, int32_t rows, bool splits) {
  INFO(c.name << ", " << rows << " rows" << (splits ? ", split" : ""));
  calls::Problem problem =
      problem_of({.mode = c.mode, .group = group, .kv_heads = kv_heads, .head_dim = head_dim});
  const auto batch = int32_t(c.kv_lengths.size());
  const int32_t longest = *std::max_element(c.kv_lengths.begin(), c.kv_lengths.end());
  if (splits) {
    problem.max_batch = batch;
    problem.max_q_len = rows;
    problem.max_kv_len = 4096;
  }
  problem.page_size = c.page_size;
  if (c.mode == calls::paged) {
    problem.page_table_kind = SLUICE_PAGE_TABLE_CSR;
    problem.flags |= calls::page_index_64;
  }

  AddressSpace keys, values;
  std::set<int64_t> places;
  Numbers numbers(7);
  for (size_t b = 0; b < size_t(batch); ++b)
    for (int32_t key = 0; key < c.kv_lengths[b]; ++key)
      for (int32_t head = 0; head < kv_heads; ++head) {
        const int64_t place = place_of(c, b, key, head);
        REQUIRE(places.insert(place).second);
        for (int32_t e = 0; e < head_dim; ++e) {
          *keys.at(place + e) = encode(f16_format, numbers.between(-1, 1));
          *values.at(place + e) = encode(f16_format, numbers.between(-1, 1));
        }
      }
  keys.show(places);
  values.show(places);

  const int64_t q_row = int64_t{head_dim} * kv_heads * group, q_rows = int64_t{batch} * rows;
  std::vector<uint16_t> queries(size_t(q_rows * q_row));
  for (uint16_t &query : queries)
    query = encode(f16_format, numbers.between(-2, 2));
  Visible<uint16_t> q(queries), o(queries.size());
  Visible<float> lse(size_t(q_rows * kv_heads * group));
  std::vector<int32_t> starts, first_pages = {0};
  for (int32_t b = 0; b <= batch; ++b)
    starts.push_back(b * rows);
  for (const int32_t length : c.kv_lengths)
    if (c.page_size != 0)
      first_pages.push_back(first_pages.back() + (length + c.page_size - 1) / c.page_size);
  Visible<int32_t> q_starts(starts), kv_starts(c.kv_starts), kv_lengths(c.kv_lengths),
      page_starts(first_pages);
  Visible<int64_t> pages(c.pages);

  calls::Args args;
  args.scale = calls::usual_scale(problem);
  args.batch = batch;
  args.q_len = rows;
  args.kv_len = longest;
  const bool has_starts = c.mode == calls::ragged;
  const int64_t q_stride = has_starts ? 0 : rows * q_row;
  args.q = {q.data(), {q_stride, q_row, head_dim, 1}};
  args.o = {o.data(), {q_stride, q_row, head_dim, 1}};
  args.lse = {lse.data(), {q_stride / head_dim, q_row / head_dim, 1, 0}};
  args.k = {keys.at(0), {c.outer_stride, c.token_stride, c.head_stride, 1}};
  args.v = {values.at(0), {c.outer_stride, c.token_stride, c.head_stride, 1}};
  args.kv_lengths = kv_lengths.data();
  if (has_starts) {
    args.q_starts = q_starts.data();
    args.kv_starts = kv_starts.data();
  }
  if (c.mode == calls::paged) {
    args.page_table = pages.data();
    args.page_starts = page_starts.data();
  }

  run_with_workspace(plan_of(problem), problem, args);
  std::vector<uint16_t> expected(o.size());
  std::vector<float> expected_lse(lse.size());
  args.o.data = expected.data();
  args.lse.data = expected_lse.data();
  REQUIRE(sluice_attention_reference(calls::ProblemValues(problem), calls::ArgsValues(problem, args),
                                     nullptr) == SLUICE_OK);
  double worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::fabs(decode(f16_format, o[i]) - decode(f16_format, expected[i]));
    if (!(difference <= worst)) worst = std::isnan(difference) ? 1e9 : difference;
  }
  CHECK(worst <= 2e-3);
  worst = 0;
  for (size_t i = 0; i < expected_lse.size(); ++i)
    worst = std::max(worst, std::fabs(double{lse[i]} - double{expected_lse[i]}));
  CHECK(worst <= 1e-4);
}

} // namespace

TEST_CASE("caches beyond 4 GiB and 2^32 elements match the reference", "[bounds]") {
  constexpr int64_t far = int64_t{1} << 32; // elements: 8 GiB
  constexpr int64_t row = int64_t{head_dim} * kv_heads;
  const FarCase cases[] = {
      {"pages far apart",
       calls::paged,
       far + row,
       row,
       head_dim,
       {40, 70},
       {},
       16,
       {0, 7, 19, 1, 2, 3, 13, 17}},
      {"rows of a page far apart",
       calls::paged,
       row,
       widest_token_stride,
       head_dim,
       {200, 130},
       {},
       128,
       {9, 2, 0, 4}},
      {"heads far apart", calls::paged, 16 * head_dim, head_dim, 3 * far, {40, 17}, {}, 16, {5, 0, 8, 1, 3}},
      {"page numbers beyond 2^31 and 2^32",
       calls::paged,
       8,
       row,
       head_dim,
       {40, 70},
       {},
       32,
       {(int64_t{1} << 31) + 1000, (int64_t{1} << 32) + 7000, (int64_t{1} << 31) - 1000,
        (int64_t{1} << 33) + 3, 0}},
      {"sequences far apart", calls::dense, far + row, row, head_dim, {40, 70, 5}},
      {"rows far apart", calls::dense, row, widest_token_stride, head_dim, {150, 90}},
      {"starts far apart", calls::ragged, 0, widest_token_stride, head_dim, {90, 150}, {3, 2000, 2400}},
  };
  for (const FarCase &c : cases) {
    check_far(c, 1, false);
    check_far(c, 1, true);
    check_far(c, 40, false);
  }
}

//===- append_wild_test.cpp - appends with arbitrary slots, starts, lengths and tables ------------------===//
//
// The expected contents follow from the rules in the header only. The oracle lists, row by row, the slots
// that the rules allow: a slot of the cache keeps its contents or holds a row that belongs there, and must
// hold one of those rows if any exist.
//
//===----------------------------------------------------------------------------------------------------===//
#include "calls/values.h"
#include "features/wild_numbers.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

using namespace sluice::test;
namespace calls = sluice::calls;

namespace {

constexpr const char *instruction_budget = "1000000";

constexpr int64_t heads = 2, k_dim = 16, v_dim = 8;

class WildAppend {
public:
  explicit WildAppend(uint64_t seed);

  /// The arrays, and how many elements they have.
  std::optional<Visible<int64_t>> slots, wide_table;
  std::optional<Visible<int32_t>> starts, lengths, table, page_starts;
  calls::Append call;

  void make_wild() {
    const auto overwrite = [&](auto &array, int64_t usual) {
      if (array && random.below(3) != 0) make_some_wild(random, *array, usual);
    };
    overwrite(slots, pages * call.page_size);
    overwrite(starts, call.tokens);
    overwrite(lengths, call.tokens);
    overwrite(table, pages);
    overwrite(wide_table, pages);
    overwrite(page_starts, pages);
  }

  std::string run() {
    sluice_error error;
    sluice_error_init(&error, sizeof error);
    const sluice_status status = sluice_cache_append(device(), calls::AppendValues(call), nullptr, &error);
    INFO(error.field << ": " << error.message);
    REQUIRE(status == SLUICE_OK);
    hip<int(void *)>("hipStreamSynchronize")(nullptr);
    return take_reports_and_recover();
  }

  /// The field that sluice_cache_append_reference refuses; empty if it has stored what the device had to.
  std::string refer() {
    calls::Append on_host = call;
    std::vector<uint16_t> k = before_k, v = before_v, q = before_q;
    on_host.q_out.data = q.empty() ? nullptr : q.data();
    on_host.k_cache.data = k.data();
    on_host.v_cache.data = v.data();
    sluice_error error;
    sluice_error_init(&error, sizeof error);
    if (sluice_cache_append_reference(calls::AppendValues(on_host), &error) != SLUICE_OK) {
      CHECK(k == before_k);
      CHECK(q == before_q);
      return error.field;
    }
    if (q_out) CHECK(q == q_out->copy());
    CHECK(k == k_cache->copy());
    CHECK(v == v_cache->copy());
    return {};
  }

  /// Lists, slot by slot, the rows that the rules allow there, with the arrays as they are now.
  void list_all_places() {
    rows_of.assign(size_t(pages * call.page_size), {});
    is_key.assign(size_t(call.tokens), false);
    for (int64_t t = 0; t < call.tokens; ++t)
      list_places(t);
  }

  /// The first slot with contents that are not allowed.
  std::string find_wrong_slot() const;
  bool reads_beyond_table() const { return beyond; }

private:
  void list_places(int64_t t);
  void add_place(int64_t t, int64_t page, int64_t row) {
    if (page >= 0 && page < pages) rows_of[size_t(page * call.page_size + row)].push_back(t);
  }
  /// Whether row `n` of both, of K and of V, is row `slot` of its cache.
  bool holds(int64_t slot, const uint16_t *k, const uint16_t *v, int64_t n) const {
    const auto is_same = [&](const Visible<uint16_t> &cache, const uint16_t *rows, int64_t dim) {
      const int64_t elements = heads * dim;
      return std::equal(rows + n * elements, rows + (n + 1) * elements, cache.data() + slot * elements);
    };
    return is_same(*k_cache, k, k_dim) && is_same(*v_cache, v, v_dim);
  }
  bool holds_row(int64_t slot, int64_t t) const { return holds(slot, k_rows->data(), v_rows->data(), t); }
  bool is_as_before(int64_t slot) const { return holds(slot, before_k.data(), before_v.data(), slot); }

  Numbers random;
  int64_t pages;
  std::optional<Visible<uint16_t>> k_rows, v_rows, q_rows, k_cache, v_cache, q_out;
  std::vector<uint16_t> before_k, before_v, before_q;
  std::vector<bool> is_key;                  // [token]: has a query that is stored
  std::vector<std::vector<int64_t>> rows_of; // of each slot
  bool beyond = false;
};

WildAppend::WildAppend(uint64_t seed) : random(seed) {
  constexpr int32_t sizes[] = {1, 3, 16};
  call.source_type = call.cache_type = seed % 2 == 0 ? SLUICE_F16 : SLUICE_BF16;
  call.kv_heads = heads;
  call.head_dim_qk = k_dim;
  call.head_dim_v = v_dim;
  call.page_size = sizes[random.below(3)];
  call.page_table_kind = random.below(3);
  const auto batch = int32_t(1 + random.below(5));
  std::vector<int32_t> new_starts = {int32_t(random.below(2))}, new_lengths, csr = {0};
  std::vector<int64_t> entries;
  int64_t stride = 0;
  for (int32_t b = 0; b < batch; ++b) {
    const auto rows = int32_t(random.below(9));
    new_starts.push_back(new_starts.back() + rows);
    new_lengths.push_back(rows + int32_t(random.below(30)));
    stride = std::max(stride, int64_t{new_lengths.back()} / call.page_size + 2);
  }
  call.tokens = std::max(new_starts.back() + int32_t(random.below(3)), 1);
  pages = stride * batch;
  for (int64_t n = 0; n < pages; ++n)
    entries.push_back(n);
  for (size_t n = entries.size(); n > 1; --n)
    std::swap(entries[n - 1], entries[random.below(uint32_t(n))]);
  for (int32_t b = 0; b < batch; ++b)
    csr.push_back(int32_t((b + 1) * stride));
  call.page_count = pages;
  if (call.page_table_kind == SLUICE_PAGE_TABLE_NONE) {
    std::vector<int64_t> numbers;
    for (int32_t t = 0; t < call.tokens; ++t)
      numbers.push_back(t % 5 == 4 ? -1 : entries[0] * call.page_size + t);
    for (int64_t &slot : numbers)
      slot = slot < 0 ? slot : slot % (pages * call.page_size);
    call.slots = slots.emplace(numbers).data();
  } else {
    call.batch = batch;
    call.starts = starts.emplace(new_starts).data();
    call.kv_lengths = lengths.emplace(new_lengths).data();
    if (random.below(2)) {
      call.flags = calls::page_index_64;
      call.page_table = wide_table.emplace(entries).data();
    } else {
      call.page_table = table.emplace(std::vector<int32_t>(entries.begin(), entries.end())).data();
    }
    if (call.page_table_kind == SLUICE_PAGE_TABLE_CSR)
      call.page_starts = page_starts.emplace(csr).data();
    else
      call.page_table_stride = stride;
  }
  const auto numbers = [&](std::optional<Visible<uint16_t>> &tensor, int64_t rows, int64_t dim) {
    std::vector<uint16_t> bits(size_t(rows * heads * dim));
    for (uint16_t &element : bits)
      element = uint16_t(random.next() & 0x3fff); // not a NaN, which rounding would make quiet
    return sluice_tensor{tensor.emplace(bits).data(), {0, heads * dim, dim, 1}};
  };
  call.k = numbers(k_rows, call.tokens, k_dim);
  call.v = numbers(v_rows, call.tokens, v_dim);
  call.k_cache = numbers(k_cache, pages * call.page_size, k_dim);
  call.v_cache = numbers(v_cache, pages * call.page_size, v_dim);
  call.k_cache.stride[0] = call.page_size * heads * k_dim;
  call.v_cache.stride[0] = call.page_size * heads * v_dim;
  before_k = k_cache->copy();
  before_v = v_cache->copy();
  if (seed % 3 == 0) return;
  // Q, which is only copied, makes the append a step.
  call.q_heads = heads;
  call.q = numbers(q_rows, call.tokens, k_dim);
  call.q_out = numbers(q_out, call.tokens, k_dim);
  before_q = q_out->copy();
}

void WildAppend::list_places(int64_t t) {
  if (slots) {
    is_key[size_t(t)] = true;
    const int64_t slot = (*slots)[size_t(t)];
    if (slot >= 0) add_place(t, slot / call.page_size, slot % call.page_size);
    return;
  }
  for (int32_t b = 0; b < call.batch; ++b) {
    const int64_t start = (*starts)[size_t(b)], end = (*starts)[size_t(b) + 1], keys = (*lengths)[size_t(b)];
    if (t < start || t >= end || keys < end - start) continue;
    is_key[size_t(t)] = true;
    const int64_t key = keys - end + t, n = key / call.page_size;
    int64_t first = b * call.page_table_stride, entries = call.page_table_stride;
    if (page_starts) {
      first = (*page_starts)[size_t(b)];
      entries = (*page_starts)[size_t(b) + 1] - first;
    }
    const bool is_known = page_starts || call.batch > 1;
    if (first < 0 || (is_known && n >= entries)) continue;
    const auto all = int64_t(table ? table->size() : wide_table->size());
    if (first + n >= all) {
      beyond = true; // it may go to any page
      for (int64_t page = 0; page < pages; ++page)
        add_place(t, page, key % call.page_size);
      continue;
    }
    add_place(t, table ? (*table)[size_t(first + n)] : (*wide_table)[size_t(first + n)],
              key % call.page_size);
  }
}

std::string WildAppend::find_wrong_slot() const {
  // Where starts decrease, or entries belong to no sequence, a row may also be skipped.
  const bool may_skip =
      beyond || (starts && !std::is_sorted(starts->data(), starts->data() + starts->size()));
  for (int64_t slot = 0; slot < pages * call.page_size; ++slot) {
    const std::vector<int64_t> &own = rows_of[size_t(slot)];
    const bool is_own = std::any_of(own.begin(), own.end(), [&](int64_t t) { return holds_row(slot, t); });
    if (!is_own && !((own.empty() || may_skip) && is_as_before(slot))) return "slot " + std::to_string(slot);
  }
  for (int64_t t = 0; q_out && t < call.tokens; ++t) {
    const auto is_row_of = [&](const uint16_t *rows) {
      const int64_t first = t * heads * k_dim;
      return std::equal(rows + first, rows + first + heads * k_dim, q_out->data() + first);
    };
    const bool is_stored = is_row_of(q_rows->data()), is_kept = is_row_of(before_q.data());
    if (is_key[size_t(t)] ? !is_stored && !(may_skip && is_kept) : !is_kept)
      return "row " + std::to_string(t) + " of Q";
  }
  return {};
}

void check_wild_appends(uint64_t first, uint64_t end) {
  set_up_for_wild_calls(instruction_budget);
  for (uint64_t seed = first; seed < end; ++seed) {
    WildAppend append(seed);
    INFO("seed " << seed << ", table " << append.call.page_table_kind << ", pages of "
                 << append.call.page_size);
    append.make_wild();
    append.list_all_places();
    const std::string reports = append.run();
    INFO(reports);
    REQUIRE((append.reads_beyond_table() ? !has_more_than_loads(reports) : reports == "[]"));
    REQUIRE(append.find_wrong_slot() == "");
  }
}

} // namespace

TEST_CASE("rows of bad slots, starts, lengths and pages are skipped, and the host refuses them", "[append]") {
  struct Case {
    uint32_t table;
    const char *field;
    void (*change)(WildAppend &append);
  };
  const Case cases[] = {
      {SLUICE_PAGE_TABLE_NONE, "", [](WildAppend &a) { (*a.slots)[0] = -7; }},
      {SLUICE_PAGE_TABLE_NONE, "slots[0]",
       [](WildAppend &a) { (*a.slots)[0] = a.call.page_count * a.call.page_size; }},
      {SLUICE_PAGE_TABLE_BLOCK, "starts[0]", [](WildAppend &a) { (*a.starts)[0] = -3; }},
      {SLUICE_PAGE_TABLE_BLOCK, "starts[2]", [](WildAppend &a) { (*a.starts)[2] = (*a.starts)[1] - 1; }},
      {SLUICE_PAGE_TABLE_BLOCK, "lengths[0]",
       [](WildAppend &a) { (*a.lengths)[0] = (*a.starts)[1] - (*a.starts)[0] - 1; }},
      {SLUICE_PAGE_TABLE_BLOCK, "lengths[0]",
       [](WildAppend &a) { (*a.lengths)[0] = int32_t(a.call.page_table_stride * a.call.page_size) + 1; }},
      {SLUICE_PAGE_TABLE_CSR, "pages.starts[1]",
       [](WildAppend &a) { (*a.page_starts)[1] = ((*a.lengths)[0] - 1) / a.call.page_size; }},
      {SLUICE_PAGE_TABLE_CSR, "pages.starts[0]", [](WildAppend &a) { (*a.page_starts)[0] = -1; }},
  };
  set_up_for_wild_calls(instruction_budget);
  for (const Case &c : cases) {
    int found = 0;
    for (uint64_t seed = 0; found < 3; ++seed) {
      WildAppend append(seed);
      const bool fits =
          append.call.page_table_kind == c.table &&
          (append.slots || (append.call.batch > 1 && (*append.starts)[1] > (*append.starts)[0]));
      if (!fits) continue;
      ++found;
      INFO("seed " << seed << ", field " << c.field);
      c.change(append);
      append.list_all_places();
      CHECK(append.run() == "[]");
      CHECK(append.find_wrong_slot() == "");
      CHECK(append.refer() == c.field);
    }
  }
}

TEST_CASE("an invalid or negative page is skipped, and the host refuses it", "[append]") {
  set_up_for_wild_calls(instruction_budget);
  for (uint64_t seed = 0; seed < 40; ++seed) {
    WildAppend append(seed);
    if (append.slots) continue;
    INFO("seed " << seed);
    const bool is_negative = seed % 2 == 0;
    const auto set = [&](auto &table) {
      for (size_t n = 0; table && n < table->size(); ++n)
        (*table)[n] =
            is_negative ? -1 : std::remove_reference_t<decltype((*table)[n])>(append.call.page_count);
    };
    set(append.table);
    set(append.wide_table);
    append.list_all_places();
    CHECK(append.run() == "[]");
    CHECK(append.find_wrong_slot() == "");
    const bool has_rows = (*append.starts)[0] != (*append.starts)[size_t(append.call.batch)];
    CHECK(append.refer().starts_with("pages.table[") == has_rows);
  }
}

TEST_CASE("good appends do the same on the host", "[append]") {
  set_up_for_wild_calls(instruction_budget);
  for (uint64_t seed = 100; seed < 160; ++seed) {
    WildAppend append(seed);
    INFO("seed " << seed);
    append.list_all_places();
    CHECK(append.run() == "[]");
    CHECK(append.find_wrong_slot() == "");
    if (!append.slots) CHECK(append.refer() == ""); // slots may belong to several rows
  }
}

TEST_CASE("random contents are stored by the rules, and nowhere else", "[append]") {
  check_wild_appends(1000, 1400);
}

//===- traffic_test.cpp - bytes of K and V that decode reads --------------------------------------------===//
#include "bounds/batch.h"
#include "bounds/figures.h"
#include "calls/problem.h"

#include <algorithm>
#include <numeric>
#include <set>

using namespace sluice::test;
namespace calls = sluice::calls;

namespace {

/// Counts loads of the dwords of memory while it lives.
class Watch {
public:
  template <typename Element>
  explicit Watch(const Visible<Element> &memory)
      : start(&memory[0]), loads(memory.size() * sizeof(Element) / 4) {
    REQUIRE(sluice_emulator_watch(start, loads.size() * 4, loads.data(), nullptr) == SLUICE_EMULATOR_OK);
  }
  Watch(const Watch &) = delete;
  Watch &operator=(const Watch &) = delete;
  ~Watch() { sluice_emulator_unwatch(start); }

  uint64_t sum(size_t first_byte, size_t bytes) const {
    const auto from = loads.begin() + ptrdiff_t(first_byte / 4);
    return std::accumulate(from, from + ptrdiff_t(bytes / 4), uint64_t{0});
  }
  uint64_t sum() const { return sum(0, loads.size() * 4); }
  /// Dwords of a range that were not loaded.
  uint64_t missing(size_t first_byte, size_t bytes) const {
    const auto from = loads.begin() + ptrdiff_t(first_byte / 4);
    return uint64_t(std::count(from, from + ptrdiff_t(bytes / 4), 0u));
  }

private:
  const void *start;
  std::vector<uint32_t> loads;
};

/// Keys that the rows of a decoding sequence see.
std::set<int32_t> needed_keys(const calls::Problem &problem, const Sequence &sequence) {
  std::set<int32_t> keys;
  for (int32_t row = 0; row < sequence.rows; ++row)
    for (int32_t key = 0; key < sequence.keys; ++key) {
      const int32_t distance = key - row - (sequence.keys - sequence.rows);
      const bool hidden = distance > 0 || ((problem.flags & calls::window_left) &&
                                           distance < -problem.window_left && key >= problem.sink_tokens);
      if (!hidden) keys.insert(key);
    }
  return keys;
}

struct Traffic {
  uint64_t needed = 0;  // bytes of rows that are needed
  uint64_t loaded = 0;  // bytes loaded
  uint64_t missing = 0; // bytes that are needed and were not loaded
  uint64_t far = 0;     // bytes loaded of rows after the lengths or in tiles of 16 keys without a needed one
};

void add_side(Traffic &traffic, const Batch &batch, const Watch &watch, bool is_k) {
  uint64_t near = 0;
  for (size_t b = 0; b < batch.sequences.size(); ++b) {
    const std::set<int32_t> needed = needed_keys(batch.problem, batch.sequences[b]);
    std::set<int32_t> tiles;
    for (const int32_t key : needed)
      tiles.insert(key / 16);
    for (int32_t key = 0; key < batch.sequences[b].keys; ++key)
      for (int32_t head = 0; head < batch.problem.kv_heads; ++head) {
        const size_t place = batch.row_place(is_k, b, key, head), bytes = batch.row_bytes(is_k);
        if (needed.contains(key)) {
          traffic.needed += bytes;
          traffic.missing += 4 * watch.missing(place, bytes);
        }
        if (tiles.contains(key / 16)) near += 4 * watch.sum(place, bytes);
      }
  }
  traffic.loaded += 4 * watch.sum();
  traffic.far += 4 * watch.sum() - near;
}

Traffic traffic_of(Batch &batch) {
  Traffic traffic;
  const PlanHandle plan = plan_of(batch.problem);
  const Watch k_watch(*batch.k);
  if (!batch.v) {
    batch.run(plan);
    add_side(traffic, batch, k_watch, true);
    return traffic;
  }
  const Watch v_watch(*batch.v);
  batch.run(plan);
  add_side(traffic, batch, k_watch, true);
  add_side(traffic, batch, v_watch, false);
  return traffic;
}

/// Without bounds keys are not split; with them, they are split among as many workgroups as the device runs.
void split(calls::Problem &problem) {
  problem.max_batch = 4;
  problem.max_q_len = 4;
  problem.max_kv_len = 2000;
}

const std::vector<Sequence> decoding = {{1, 1500, 1}, {1, 17, 2}, {1, 640, 3}, {1, 0, 4}};

double ratio(const Traffic &traffic) {
  return double(traffic.loaded) / double(traffic.needed);
}

void check_once(const Traffic &traffic) {
  CHECK(traffic.missing == 0);
  CHECK(traffic.far == 0);
  CHECK(traffic.loaded == traffic.needed);
}

std::string mode_name(uint32_t mode) {
  return mode == calls::dense ? "dense" : mode == calls::ragged ? "ragged" : "paged";
}

} // namespace

TEST_CASE("decode reads each byte of K and V that it needs once, and none beyond the lengths", "[bounds]") {
  for (const uint32_t mode : {calls::dense, calls::ragged, calls::paged})
    for (const bool splits : {false, true}) {
      double highest = 0;
      for (const int32_t group : {1, 2, 4, 8, 16}) {
        INFO(mode_name(mode) << (splits ? ", split" : "") << ", group " << group);
        calls::Problem problem = problem_of({.mode = mode, .group = group, .kv_heads = 2});
        if (splits) split(problem);
        CHECK((describe(plan_of(problem)).workspace_bytes != 0) == splits);
        Batch batch(problem, decoding);
        const Traffic traffic = traffic_of(batch);
        check_once(traffic);
        highest = std::max(highest, ratio(traffic));
      }
      check_page(table_row({mode_name(mode), splits ? "yes" : "no", decimal(highest, 3)}));
    }
}

/// Lanes that loaded each entry of a batch's page table.
std::vector<uint64_t> entry_loads_of(Batch &batch) {
  const PlanHandle plan = plan_of(batch.problem);
  const Watch watch(*batch.table);
  batch.run(plan);
  std::vector<uint64_t> loads;
  for (size_t entry = 0; entry < batch.table->size(); ++entry)
    loads.push_back(watch.sum(entry * 4, 4));
  return loads;
}

TEST_CASE("waves look up the page of each key once for K and V", "[bounds]") {
  // A look-up is one load, in which each lane of a wave has a key, starting at the first of the tile.
  constexpr int32_t lanes = 64;
  for (const int32_t head_dim : {64, 96, 128})
    for (const int32_t rows : {1, 2, 16})
      for (const int32_t group : {1, 4, 16}) {
        INFO("head dim " << head_dim << ", group " << group << ", rows " << rows);
        calls::Problem problem =
            problem_of({.mode = calls::paged, .group = group, .kv_heads = 2, .head_dim = head_dim});
        problem.max_q_len = rows;
        Batch batch(problem, {{rows, 300, 1}, {rows, 77, 2}});
        const sluice_plan_info info = describe(plan_of(problem));
        const std::string kernel = info.kernel;
        if (!kernel.ends_with("_decode")) continue;
        const auto tile_q = int32_t(info.tile_q), tile_kv = int32_t(info.tile_kv);
        // If a workgroup has 16 rows, each wave has its own tiles. Otherwise all waves look up shared tiles.
        const int32_t waves = tile_q / 16;
        std::vector<uint64_t> expected(batch.table->size(), 0);
        for (size_t b = 0; b < batch.sequences.size(); ++b)
          for (int32_t first = 0; first < rows * group; first += tile_q) {
            const int32_t keys = batch.sequences[b].keys;
            const int32_t last_token = std::min((first + tile_q - 1) / group, rows - 1);
            const int32_t seen = keys - rows + last_token + 1;
            const int32_t limit = std::min(keys, (seen + tile_kv - 1) / tile_kv * tile_kv);
            for (int32_t tile = 0; tile < limit; tile += tile_kv)
              for (int32_t key = tile; key < std::min(tile + lanes, limit); ++key)
                expected[b * size_t(batch.args.page_table_stride) + size_t(key / problem.page_size)] +=
                    uint64_t(problem.kv_heads * waves);
          }
        CHECK(entry_loads_of(batch) == expected);
      }
}

TEST_CASE("entries of pages in front of a window are not loaded", "[bounds]") {
  for (const int32_t rows : {1, 4, 40, 300})
    for (const int32_t group : {1, 4})
      for (const int32_t sinks : {0, 5, 16, 17}) {
        INFO("rows " << rows << ", group " << group << ", first keys " << sinks);
        calls::Problem problem = problem_of({.mode = calls::paged, .group = group, .head_dim = 64});
        problem.flags |= calls::window_left;
        problem.window_left = 100;
        problem.sink_tokens = sinks;
        Batch batch(problem, {{rows, rows + 350, 1}, {rows, rows + 99, 2}});
        const std::vector<uint64_t> loads = entry_loads_of(batch);
        for (size_t b = 0; b < 2; ++b)
          for (int32_t n = 0; n * 16 < batch.sequences[b].keys; ++n) {
            // Row 0 of the first sequence sees keys from 250 on, that of the other one sees all keys.
            const bool is_needed = b == 1 || n * 16 < sinks || (n + 1) * 16 > 250;
            INFO("sequence " << b << ", entry " << n);
            CHECK((loads[b * size_t(batch.args.page_table_stride) + size_t(n)] != 0) == is_needed);
          }
      }
}

TEST_CASE("several tokens of decode share their reads", "[bounds]") {
  for (const int32_t group : {1, 4}) {
    INFO("group " << group);
    calls::Problem problem = problem_of({.mode = calls::paged, .group = group, .head_dim = 64});
    split(problem);
    Batch batch(problem, {{4, 900, 1}, {3, 17, 2}, {2, 2, 3}});
    check_once(traffic_of(batch));
  }
}

TEST_CASE("decode with a window reads the keys of the window and the first ones", "[bounds]") {
  for (const uint32_t mode : {calls::dense, calls::paged})
    for (const bool splits : {false, true})
      for (const int32_t sinks : {0, 5}) {
        INFO(mode_name(mode) << (splits ? ", split" : "") << ", first keys " << sinks);
        calls::Problem problem = problem_of({.mode = mode, .group = 4, .kv_heads = 2});
        problem.flags |= calls::window_left;
        problem.window_left = 200;
        problem.sink_tokens = sinks;
        if (splits) split(problem);
        Batch batch(problem, decoding);
        const Traffic traffic = traffic_of(batch);
        CHECK(traffic.missing == 0);
        CHECK(traffic.far == 0);
        CHECK(traffic.loaded == traffic.needed);
        batch.compare_with_reference();
      }
}

TEST_CASE("bytes of FP8 and rows that serve as K and V are read once, too", "[bounds]") {
  calls::Problem fp8 = problem_of({.mode = calls::paged, .group = 8, .kv_heads = 2});
  fp8.k_type = fp8.v_type = SLUICE_E4M3FNUZ;
  calls::Problem mla = problem_of({.mode = calls::paged, .group = 16});
  mla.flags |= calls::v_in_k;
  mla.head_dim_qk = 576;
  mla.head_dim_v = 512;
  for (calls::Problem problem : {fp8, mla})
    for (const bool splits : {false, true}) {
      INFO("head dim " << problem.head_dim_qk << (splits ? ", split" : ""));
      if (splits) split(problem);
      Batch batch(problem, {{1, 700, 1}, {1, 17, 2}});
      check_once(traffic_of(batch));
    }
}

TEST_CASE("each workgroup of a large group reads the keys once", "[bounds]") {
  calls::Problem plain = problem_of({.mode = calls::paged, .group = 32});
  calls::Problem mla = problem_of({.mode = calls::paged, .group = 128});
  mla.flags |= calls::v_in_k;
  mla.head_dim_qk = 576;
  mla.head_dim_v = 512;
  for (calls::Problem problem : {plain, mla})
    for (const bool splits : {false, true}) {
      INFO(problem.q_heads << " heads" << (splits ? ", split" : ""));
      problem.max_q_len = 1;
      if (splits) split(problem);
      const auto tile_q = int32_t(describe(plan_of(problem)).tile_q);
      Batch batch(problem, {{1, 333, 1}});
      const Traffic traffic = traffic_of(batch);
      CHECK(traffic.missing == 0);
      CHECK(traffic.far == 0);
      CHECK(traffic.loaded == traffic.needed * uint64_t((problem.q_heads + tile_q - 1) / tile_q));
      check_page(
          table_row({std::to_string(problem.q_heads) + " heads" + (problem.q_heads == 128 ? ", MLA" : ""),
                     splits ? "yes" : "no", decimal(ratio(traffic), 3)}));
    }
}

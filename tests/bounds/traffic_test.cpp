//===- traffic_test.cpp - bytes of K and V that decode reads ------------------------------------------===//
#include "bounds/batch.h"
#include "bounds/figures.h"

#include <algorithm>
#include <numeric>
#include <set>

using namespace sluice::test;

namespace {

/// Counts loads of the dwords of memory while it lives.
class Watch {
public:
  explicit Watch(const Visible<uint8_t> &memory) : start(&memory[0]), loads(memory.size() / 4) {
    REQUIRE(sluice_emulator_watch(start, memory.size(), loads.data(), nullptr) == SLUICE_EMULATOR_OK);
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
std::set<int32_t> needed_keys(const sluice_problem &problem, const Sequence &sequence) {
  std::set<int32_t> keys;
  for (int32_t row = 0; row < sequence.rows; ++row)
    for (int32_t key = 0; key < sequence.keys; ++key) {
      const int32_t distance = key - row - (sequence.keys - sequence.rows);
      const bool hidden = distance > 0 || ((problem.flags & SLUICE_HAS_WINDOW_LEFT) &&
                                           distance < -problem.window_left && key >= problem.sink_tokens);
      if (!hidden) keys.insert(key);
    }
  return keys;
}

struct Traffic {
  uint64_t needed = 0;  // bytes of rows that are needed
  uint64_t loaded = 0;  // bytes loaded
  uint64_t missing = 0; // bytes that are needed and were not loaded
  uint64_t far = 0; // bytes loaded of rows in no tile of 16 keys that has a needed one, or behind the lengths
};

void add_side(Traffic &traffic, const Batch &batch, const Watch &watch, bool of_k) {
  uint64_t near = 0;
  for (size_t b = 0; b < batch.sequences.size(); ++b) {
    const std::set<int32_t> needed = needed_keys(batch.problem, batch.sequences[b]);
    std::set<int32_t> tiles;
    for (const int32_t key : needed)
      tiles.insert(key / 16);
    for (int32_t key = 0; key < batch.sequences[b].keys; ++key)
      for (int32_t head = 0; head < batch.problem.kv_heads; ++head) {
        const size_t place = batch.row_place(of_k, b, key, head), bytes = batch.row_bytes(of_k);
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
  const Watch of_k(*batch.k);
  if (!batch.v) {
    batch.run(plan);
    add_side(traffic, batch, of_k, true);
    return traffic;
  }
  const Watch of_v(*batch.v);
  batch.run(plan);
  add_side(traffic, batch, of_k, true);
  add_side(traffic, batch, of_v, false);
  return traffic;
}

/// Without bounds keys are not split; with them, among as many workgroups as the device runs.
void split(sluice_problem &problem) {
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
  CHECK(ratio(traffic) <= 1.05);
}

std::string mode_name(uint32_t mode) {
  return mode == SLUICE_MODE_DENSE ? "dense" : mode == SLUICE_MODE_RAGGED ? "ragged" : "paged";
}

} // namespace

TEST_CASE("decode reads each byte of K and V that it needs once, and none beyond the lengths", "[bounds]") {
  for (const uint32_t mode : {SLUICE_MODE_DENSE, SLUICE_MODE_RAGGED, SLUICE_MODE_PAGED})
    for (const bool splits : {false, true}) {
      double highest = 0;
      for (const int32_t group : {1, 2, 4, 8, 32}) {
        INFO(mode_name(mode) << (splits ? ", split" : "") << ", group " << group);
        sluice_problem problem = problem_of({.mode = mode, .group = group, .kv_heads = 2});
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

TEST_CASE("several tokens of decode share what they read", "[bounds]") {
  for (const int32_t group : {1, 4}) {
    INFO("group " << group);
    sluice_problem problem = problem_of({.mode = SLUICE_MODE_PAGED, .group = group, .head_dim = 64});
    split(problem);
    Batch batch(problem, {{4, 900, 1}, {3, 17, 2}, {2, 2, 3}});
    check_once(traffic_of(batch));
  }
}

TEST_CASE("decode with a window reads the tiles of the window and of the first keys", "[bounds]") {
  for (const uint32_t mode : {SLUICE_MODE_DENSE, SLUICE_MODE_PAGED})
    for (const bool splits : {false, true})
      for (const int32_t sinks : {0, 5}) {
        INFO(mode_name(mode) << (splits ? ", split" : "") << ", first keys " << sinks);
        sluice_problem problem = problem_of({.mode = mode, .group = 4, .kv_heads = 2});
        problem.flags |= SLUICE_HAS_WINDOW_LEFT;
        problem.window_left = 200;
        problem.sink_tokens = sinks;
        if (splits) split(problem);
        Batch batch(problem, decoding);
        const Traffic traffic = traffic_of(batch);
        CHECK(traffic.missing == 0);
        CHECK(traffic.far == 0);
        // Beside what is needed, at most the rest of two tiles of each sequence and head, of K and V.
        CHECK(traffic.loaded <= traffic.needed + 3 * 2 * 2 * 2 * 15 * batch.row_bytes(true));
        batch.compare_with_reference();
      }
}

TEST_CASE("bytes of FP8 and rows that serve as K and V are read once, too", "[bounds]") {
  sluice_problem fp8 = problem_of({.mode = SLUICE_MODE_PAGED, .group = 8, .kv_heads = 2});
  fp8.k_type = fp8.v_type = SLUICE_E4M3FNUZ;
  sluice_problem latent = problem_of({.mode = SLUICE_MODE_PAGED, .group = 16});
  latent.flags |= SLUICE_V_IN_K;
  latent.head_dim_qk = 576;
  latent.head_dim_v = 512;
  for (sluice_problem problem : {fp8, latent})
    for (const bool splits : {false, true}) {
      INFO("head dim " << problem.head_dim_qk << (splits ? ", split" : ""));
      if (splits) split(problem);
      Batch batch(problem, {{1, 700, 1}, {1, 17, 2}});
      check_once(traffic_of(batch));
    }
}

TEST_CASE("more than 64 query heads of a KV head read it once for every 64", "[bounds]") {
  sluice_problem latent = problem_of({.mode = SLUICE_MODE_PAGED, .group = 128});
  latent.flags |= SLUICE_V_IN_K;
  latent.head_dim_qk = 576;
  latent.head_dim_v = 512;
  Batch batch(latent, {{1, 333, 1}});
  const Traffic traffic = traffic_of(batch);
  CHECK(traffic.missing == 0);
  CHECK(traffic.far == 0);
  check_page(table_row({"128 heads, latent", "no", decimal(ratio(traffic), 3)}));
}

//===- memory_test.cpp - workspace: how much plans ask for, and that runs touch no more -----------------===//
#include "bounds/batch.h"
#include "bounds/figures.h"
#include "calls/args.h"
#include "calls/problem.h"

#include <sys/mman.h>

#include <algorithm>

using namespace sluice::test;
namespace calls = sluice::calls;

namespace {

/// Zeros that take memory only once they are written.
template <typename Element> class SparseArray {
public:
  explicit SparseArray(size_t count)
      : count(count), memory(mmap(nullptr, count * sizeof(Element), PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (memory == MAP_FAILED) throw std::runtime_error("no address space");
  }
  SparseArray(const SparseArray &) = delete;
  SparseArray &operator=(const SparseArray &) = delete;
  ~SparseArray() { munmap(memory, count * sizeof(Element)); }
  Element *data() { return static_cast<Element *>(memory); }
  size_t size() const { return count; }

private:
  const size_t count;
  void *const memory;
};

/// Decode of Llama-3-70B's shape: 64 query heads on 8 KV heads of 128.
calls::Problem decode_problem(int32_t batch, int32_t keys, bool is_invariant, int32_t kv_heads = 8) {
  calls::Problem problem = problem_of({.mode = calls::paged, .group = 8, .kv_heads = kv_heads});
  problem.max_batch = batch;
  problem.max_q_len = 1;
  problem.max_kv_len = keys;
  if (is_invariant) problem.flags |= calls::batch_invariant;
  return problem;
}

uint64_t workspace_of(const sluice_context *context, const calls::Problem &problem) {
  sluice_support support;
  sluice_support_init(&support, sizeof support);
  sluice_error error;
  sluice_error_init(&error, sizeof error);
  const sluice_status status =
      sluice_attention_support(context, calls::ProblemValues(problem), &support, &error);
  INFO(error.message);
  REQUIRE(status == SLUICE_OK);
  return support.workspace_bytes;
}

struct Touched {
  uint64_t stored = 0;   // bytes
  uint64_t end = 0;      // of what was stored or loaded
  uint64_t unstored = 0; // bytes loaded that were not stored
};

/// Runs with workspace of exactly `bytes`, beyond which the device sees nothing.
Touched run_and_watch(Batch &batch, const PlanHandle &plan, uint64_t bytes) {
  SparseArray<uint32_t> workspace(bytes / 4), loads(bytes / 4), stores(bytes / 4);
  REQUIRE(hip<int(void *, size_t, unsigned)>("hipHostRegister")(workspace.data(), bytes, 0) == 0);
  REQUIRE(sluice_emulator_watch(workspace.data(), bytes, loads.data(), stores.data()) == SLUICE_EMULATOR_OK);
  run_on_device(
      batch.args, [&](sluice_context *, const calls::Args *call, sluice_launch *launch, sluice_error *error) {
        launch->workspace = workspace.data();
        launch->workspace_bytes = bytes;
        return sluice_attention_run(plan.get(), calls::ArgsValues(batch.problem, *call), launch, error);
      });
  REQUIRE(sluice_emulator_unwatch(workspace.data()) == SLUICE_EMULATOR_OK);
  REQUIRE(hip<int(void *)>("hipHostUnregister")(workspace.data()) == 0);
  Touched touched;
  for (size_t i = 0; i < stores.size(); ++i) {
    const bool stored = stores.data()[i] != 0, loaded = loads.data()[i] != 0;
    if (stored) touched.stored += 4;
    if (stored || loaded) touched.end = 4 * (i + 1);
    if (loaded && !stored) touched.unstored += 4;
  }
  return touched;
}

constexpr bool invariances[] = {false, true};

} // namespace

TEST_CASE("decode needs as much workspace as the page says", "[bounds]") {
  sluice_context_desc desc;
  sluice_context_desc_init(&desc, sizeof desc);
  desc.kind = SLUICE_DEVICE_TARGET;
  desc.target = "gfx942:304";
  sluice_context *created = nullptr;
  REQUIRE(sluice_context_create(&desc, &created, nullptr) == SLUICE_OK);
  const std::unique_ptr<sluice_context, DestroyContext> context(created);
  for (const auto &[batch, keys] :
       {std::pair{1, 131072}, {3, 5000}, {8, 131072}, {64, 131072}, {256, 131072}}) {
    uint64_t bytes[2];
    for (const bool is_invariant : invariances)
      bytes[is_invariant] = workspace_of(context.get(), decode_problem(batch, keys, is_invariant));
    // A split needs O and LSE in F32 for each query head; each sequence has one split for each 2,048 keys.
    const uint64_t part = 64 * (128 + 1) * 4, parts = (uint64_t(keys) + 2047) / 2048;
    CHECK(bytes[true] == part * parts * uint64_t(batch));
    // A number of splits that is chosen by cost has a ceiling, and is at most that of tiles of 16 keys.
    CHECK(bytes[false] % (part * uint64_t(batch)) == 0);
    CHECK(bytes[false] <= std::min(part * uint64_t(batch) * uint64_t(keys) / 16, uint64_t{256} << 20));
    check_page(table_row(
        {std::to_string(batch), std::to_string(keys), std::to_string(bytes[0]), std::to_string(bytes[1])}));
  }
}

TEST_CASE("a run at the bounds touches all of its workspace", "[bounds]") {
  for (const bool is_invariant : invariances) {
    INFO("batch-invariant " << is_invariant);
    const calls::Problem problem = decode_problem(3, 5000, is_invariant, 2);
    const PlanHandle plan = plan_of(problem);
    const uint64_t bytes = workspace_of(device(), problem);
    CHECK(describe(plan).workspace_bytes == bytes);
    Batch batch(problem, {{1, 5000, 1}, {1, 5000, 2}, {1, 5000, 3}});
    const Touched touched = run_and_watch(batch, plan, bytes);
    CHECK(touched.end == bytes);
    CHECK(touched.stored == bytes);
    CHECK(touched.unstored == 0);
    batch.compare_with_reference();
  }
}

TEST_CASE("a plan for 256 sequences of 131072 keys runs short ones within its workspace", "[.long]") {
  std::vector<Sequence> sequences;
  for (int32_t b = 0; b < 256; ++b)
    sequences.push_back({1, b % 37, uint64_t(b)});
  for (const bool is_invariant : invariances) {
    INFO("batch-invariant " << is_invariant);
    const calls::Problem problem = decode_problem(256, 131072, is_invariant);
    const PlanHandle plan = plan_of(problem);
    Batch batch(problem, sequences, 1, 131072);
    if (describe(plan).workspace_bytes == 0) {
      batch.run(plan);
    } else {
      const Touched touched = run_and_watch(batch, plan, describe(plan).workspace_bytes);
      CHECK(touched.stored > 0);
      CHECK(touched.unstored == 0);
    }
    batch.compare_with_reference();
  }
}

//===- workload_test.cpp - workloads: the launches of a recorded plan, and samples of a launch ----------===//

#include "calls/values.h"
#include "emulator/machine/machine.h"
#include "support/half.h"
#include "tools/bench/launch_timing.h"
#include "tools/bench/plan_timing.h"
#include "tools/bench/workload_options.h"
#include "tools/bench/workload_tensors.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <optional>

using namespace sluice;
using namespace sluice::tools;
using Catch::Contains;
using Catch::EndsWith;

namespace {

ElementTypes types(std::string_view name) {
  const auto all = element_types();
  return *std::find_if(all.begin(), all.end(), [&](const ElementTypes &one) { return one.name == name; });
}

std::vector<double> numbers(const void *data, size_t count, uint32_t dtype) {
  if (dtype == SLUICE_F32) {
    const auto *const singles = static_cast<const float *>(data);
    return {singles, singles + count};
  }
  const auto *const bits = static_cast<const uint16_t *>(data);
  std::vector<double> values;
  for (size_t i = 0; i < count; ++i)
    values.push_back(dtype == SLUICE_BF16 ? support::bf16_to_float(bits[i]) : support::f16_to_float(bits[i]));
  return values;
}

/// Runs the plan's launches on the machine, with all checks, and compares with the reference; returns the
/// number of launches.
size_t run_and_compare(const PackFile &pack, const Workload &work, double tolerance) {
  INFO(work.name());
  RecordedPlan plan(pack, 304, work.problem());
  ModelMemory memory(work, plan.info().workspace_bytes);
  calls::Args args = make_tensors(work, memory);
  void *const workspace =
      plan.info().workspace_bytes != 0 ? memory.allocate(plan.info().workspace_bytes) : nullptr;
  const std::vector<RecordedLaunch> launches = plan.run(args, workspace);
  for (const RecordedLaunch &launch : launches) {
    const emulator::Program program(pack.elf(pack.kernel(launch.kernel), "gfx942"));
    const emulator::LaunchResult result =
        emulator::launch(program, launch.kernel, launch.grid, launch.block, launch.dynamic_lds_bytes,
                         launch.kernarg, memory.machine());
    INFO(emulator::to_json(result.reports));
    CHECK(result.ok());
  }
  CHECK(launches.front().kernel == plan.info().kernel);
  CHECK(launches.front().grid ==
        std::array{plan.info().max_grid[0], plan.info().max_grid[1], plan.info().max_grid[2]});

  const size_t elements = size_t(work.batch) * work.q_len * work.q_heads * work.dims.v;
  const std::vector<double> computed = numbers(args.o.data, elements, work.types.o);
  std::vector<std::byte> expected_bytes(stored_bytes(work.types.o, elements));
  args.o.data = expected_bytes.data();
  const calls::Problem problem = work.problem();
  sluice_error error = make_error();
  check(sluice_attention_reference(calls::ProblemValues(problem), calls::ArgsValues(problem, args), &error),
        error);
  const std::vector<double> expected = numbers(expected_bytes.data(), elements, work.types.o);
  double worst = 0, largest = 0;
  for (size_t i = 0; i < elements; ++i) {
    worst = std::max(worst, std::abs(computed[i] - expected[i]));
    largest = std::max(largest, std::abs(expected[i]));
  }
  CHECK(worst < tolerance);
  CHECK(largest > 10 * tolerance); // another workload's results would not be as close
  return launches.size();
}

} // namespace

TEST_CASE("A recorded plan's launches compute the workload") {
  const PackFile pack("");
  Workload work{.kind = WorkKind::prefill,
                .types = types("f16"),
                .dims = {128, 128},
                .q_heads = 4,
                .kv_heads = 2,
                .batch = 2,
                .q_len = 70,
                .kv_len = 70,
                .causal = true};
  CHECK(run_and_compare(pack, work, 0.01) == 1);
  work.kind = WorkKind::chunk;
  work.kv_len = 1500;
  work.page_size = 16;
  CHECK(run_and_compare(pack, work, 0.01) == 2); // few workgroups: their keys are split
  for (const char *type : {"f16", "bf16-f32"}) { // those of a prefill kernel, too
    Workload chunk = work;
    chunk.types = types(type);
    chunk.batch = chunk.kv_heads = 1;
    chunk.q_heads = 8;
    chunk.q_len = 200;
    chunk.kv_len = 3000;
    CHECK_THAT(RecordedPlan(pack, 304, chunk.problem()).info().kernel, EndsWith("_paged"));
    CHECK(run_and_compare(pack, chunk, 0.01) == 2);
  }
  work.batch = 40;
  work.kv_len = 80;
  CHECK(run_and_compare(pack, work, 0.01) == 1);

  work = {.kind = WorkKind::decode,
          .types = types("bf16"),
          .dims = {64, 64},
          .q_heads = 8,
          .kv_heads = 2,
          .batch = 2,
          .q_len = 1,
          .kv_len = 600,
          .page_size = 16};
  CHECK(run_and_compare(pack, work, 0.01) == 2); // attention and the merge of its splits
  work.shuffled_pages = false;
  work.page_size = 24;
  CHECK(run_and_compare(pack, work, 0.01) == 2);
  work.types = types("bf16+fp8");
  CHECK(run_and_compare(pack, work, 0.01) == 2);
  work.types = types("fp8");
  work.q_len = 3;
  work.kind = WorkKind::draft;
  work.kv_len = 40;
  work.causal = true;
  CHECK(run_and_compare(pack, work, 0.08) == 1);

  work = {.kind = WorkKind::decode,
          .types = types("bf16"),
          .dims = {576, 512, true},
          .q_heads = 16,
          .kv_heads = 1,
          .batch = 1,
          .q_len = 1,
          .kv_len = 50,
          .page_size = 16};
  CHECK(run_and_compare(pack, work, 0.02) == 2);
  work.kv_len = 16; // a tile
  CHECK(run_and_compare(pack, work, 0.02) == 1);
}

TEST_CASE("A recorded plan's launches compute every type of cache") {
  const PackFile pack("");
  size_t count = 0;
  for (const ElementTypes &one : element_types()) {
    if (one.kv == one.q && one.kv_scales <= SLUICE_SCALE_PER_TENSOR) continue;
    if (one.o == SLUICE_E4M3FNUZ) continue; // rounded further than these bounds
    Workload work{.kind = WorkKind::decode,
                  .types = one,
                  .q_heads = 8,
                  .kv_heads = 2,
                  .batch = 2,
                  .q_len = 1,
                  .kv_len = 50,
                  .page_size = 16};
    run_and_compare(pack, work, one.q == SLUICE_E4M3FNUZ ? 0.08 : 0.02);
    ++count;
    if (one.kv_scales == SLUICE_SCALE_PER_PAGE) continue;
    work.page_size = 0;
    run_and_compare(pack, work, one.q == SLUICE_E4M3FNUZ ? 0.08 : 0.02);
  }
  CHECK(count == 34);
}

TEST_CASE("Scales and zero points are positive, one for each token, page or group") {
  Workload work{.kind = WorkKind::decode,
                .kv_heads = 2,
                .batch = 3,
                .kv_len = 40, // three pages of a sequence
                .page_size = 16};
  std::optional<ModelMemory> memory;
  const auto args_of = [&](std::string_view name) {
    work.types = types(name);
    memory.emplace(work, 0);
    return make_tensors(work, *memory);
  };
  const auto all_between = [](const sluice_tensor &tensor, size_t count, uint32_t dtype, double low,
                              double high) {
    const std::vector<double> all = numbers(tensor.data, count, dtype);
    const auto [least, most] = std::minmax_element(all.begin(), all.end());
    return *least >= low && *most <= high && *least < *most;
  };
  const auto strides = [](const sluice_tensor &tensor) {
    return std::vector(std::begin(tensor.stride), std::end(tensor.stride));
  };
  calls::Args args = args_of("bf16+fp8/token");
  CHECK(strides(args.k_scales) == std::vector<int64_t>{32, 2, 1, 1});
  CHECK(all_between(args.k_scales, 9 * 16 * 2, SLUICE_F32, 0.5, 1));
  CHECK(all_between(args.v_scales, 9 * 16 * 2, SLUICE_F32, 0.5, 1));
  args = args_of("bf16+i8/page");
  CHECK(strides(args.v_scales) == std::vector<int64_t>{2, 0, 1, 1});
  CHECK(all_between(args.k_scales, 9 * 2, SLUICE_F32, 1 / 121.0, 1 / 59.0));
  CHECK(all_between(args.v_scales, 9 * 2, SLUICE_F32, 1 / 121.0, 1 / 59.0));
  args = args_of("bf16+u4/64/zeros");
  CHECK(strides(args.k) == std::vector<int64_t>{16 * 2 * 128, 2 * 128, 128, 1});
  CHECK(strides(args.k_scales) == std::vector<int64_t>{16 * 2 * 2, 2 * 2, 2, 1});
  CHECK(strides(args.v_zeros) == strides(args.v_scales));
  CHECK(all_between(args.v_scales, 9 * 16 * 2 * 2, SLUICE_F16, 0.125, 0.25));
  CHECK(all_between(args.k_zeros, 9 * 16 * 2 * 2, SLUICE_F16, 6, 9));
}

TEST_CASE("Lists of a sparse workload may have negative numbers") {
  Workload work{.kind = WorkKind::decode, .types = types("f16"), .kv_len = 40, .page_size = 1};
  CHECK(work.problem().flags == 0);
  work.sparse = true;
  CHECK(work.problem().flags == calls::missing_pages);
  CHECK_THAT(work.name(), EndsWith("1 x 40 keys, pages of 1, sparse"));
}

TEST_CASE("Shuffled pages are each page once, in no order") {
  const Workload work{.kind = WorkKind::decode,
                      .types = types("f16"),
                      .batch = 3,
                      .q_len = 1,
                      .kv_len = 100,
                      .page_size = 16};
  ModelMemory memory(work, 0);
  const calls::Args args = make_tensors(work, memory);
  const auto *const table = static_cast<const int32_t *>(args.page_table);
  std::vector<int32_t> pages(table, table + 21);
  CHECK(args.page_table_stride == 7);
  CHECK_FALSE(std::is_sorted(pages.begin(), pages.end()));
  std::sort(pages.begin(), pages.end());
  for (int32_t i = 0; i < 21; ++i)
    CHECK(pages[size_t(i)] == i);
}

TEST_CASE("The plan splits the keys as it does on a device of that size") {
  const PackFile pack("");
  const Workload work{.kind = WorkKind::decode,
                      .types = types("bf16"),
                      .q_heads = 64,
                      .kv_heads = 8,
                      .batch = 8,
                      .q_len = 1,
                      .kv_len = 8192,
                      .page_size = 16};
  const auto workgroups = [&](uint32_t compute_units) {
    return RecordedPlan(pack, compute_units, work.problem()).info().max_grid[0];
  };
  CHECK(workgroups(304) > workgroups(80));
}

TEST_CASE("A refused workload leaves the thread free for the next plan") {
  const PackFile pack("");
  Workload work{.kind = WorkKind::decode, .types = types("fp8"), .dims = {584, 512}, .kv_len = 16};
  CHECK_THROWS_WITH(RecordedPlan(pack, 304, work.problem()), Contains("SLUICE_UNSUPPORTED"));
  work.dims = {128, 128};
  CHECK_NOTHROW(RecordedPlan(pack, 304, work.problem()));
}

TEST_CASE("Neighbours in a sample read the same keys if those in the grid do") {
  const auto stride = [](std::array<uint32_t, 3> grid) {
    return sample_of(grid, {5, 8}).compute_unit_stride;
  };
  CHECK(stride({64, 8, 1}) == 8);  // workgroup 64 is head 0 again, 8 to 56 are other heads
  CHECK(stride({16, 8, 1}) == 2);  // 16
  CHECK(stride({2, 100, 1}) == 1); // 8 is a multiple of both
  CHECK(stride({12, 100, 1}) == 3);
  CHECK(stride({152, 1, 8}) == 1); // decode: no two workgroups share keys
  CHECK(sample_of({64, 8, 1}, {5, 8}).compute_units == 5);
  CHECK(sample_of({128, 8, 1}, {5, 8}).compute_units == 3); // every 16th of 38
  CHECK(sample_of({64, 8, 1}, {38, 0}).compute_units == 38);
}

TEST_CASE("Bytes and products of a workload") {
  Workload work{.kind = WorkKind::decode,
                .types = types("bf16"),
                .q_heads = 64,
                .kv_heads = 8,
                .batch = 8,
                .q_len = 1,
                .kv_len = 1024};
  CHECK(work.needed_bytes() == 8 * (1024 * 8 * 128 * 2 * 2 + 2 * 64 * 128 * 2));
  CHECK(work.useful_flops() == 4.0 * 8 * 64 * 1024 * 128);
  work.types = types("fp8");
  CHECK(work.needed_bytes() == 8 * (1024 * 8 * 128 * 2 + 64 * 128 * 3)); // O is bf16
  const auto bytes_of_cache = [&](std::string_view name) {
    work.types = types(name);
    return (work.needed_bytes() - 8 * 2 * 64 * 128 * 2) / (8 * 8 * 2); // of a head's K or V
  };
  work.page_size = 16;
  CHECK(bytes_of_cache("bf16+i8") == 1024 * 128);
  CHECK(bytes_of_cache("bf16+e5m2/token") == 1024 * (128 + 4));
  CHECK(bytes_of_cache("bf16+fp8/page") == 1024 * 128 + 64 * 4);
  CHECK(bytes_of_cache("bf16+q8_0") == 1024 * 4 * 34);
  CHECK(bytes_of_cache("bf16+q4_0") == 1024 * 4 * 18);
  CHECK(bytes_of_cache("bf16+u4/32") == 1024 * (64 + 4 * 2));
  CHECK(bytes_of_cache("bf16+u4/64/zeros") == 1024 * (64 + 2 * 2 * 2));
  work.page_size = 0;
  work.types = types("bf16");
  work.dims = {576, 512, true};
  work.kv_heads = 1;
  CHECK(work.needed_bytes() == 8 * (1024 * 576 * 2 + 64 * (576 + 512) * 2)); // V is in K
  work.q_len = 4;
  work.causal = true;
  CHECK(work.useful_flops() == 2.0 * 8 * 64 * (4 * 1024 - 8) * (576 + 512));
}

//===- choice_test.cpp - choices by cost, and whether the estimate is right -----------------------------===//
#include "calls/problem.h"
#include "choice_fixture.h"

#include "emulator/isa/timing_constants.h"
#include "package/occupancy.h"
#include "runtime/by_cost.h"
#include "runtime/cost.h"
#include "runtime/problem.h"
#include "runtime/splits.h"
#include "support/failure.h"

#include <catch2/catch.hpp>

#include <cmath>

using namespace sluice;
using namespace sluice::runtime;
using namespace sluice::test;

namespace {

/// The choice's kernel for few rows, at the problem's bounds.
double workgroups_of(const Choice &choice, const calls::Problem &problem) {
  const Workload work{problem, problem.max_batch, problem.max_q_len, problem.max_kv_len};
  return estimate(choice.own.few->entry, work, choice.own.splits.count, 304).workgroups;
}
double places_of(const KernelEntry &kernel) {
  return 304.0 * package::occupancy(kernel.vgprs, kernel.lds_bytes, kernel.threads).workgroups_per_cu;
}

} // namespace

TEST_CASE("the chip of the estimate is that of the timing model", "[choice]") {
  namespace timing = emulator::timing;
  CHECK(chip::clock_mhz == timing::clock_mhz);
  CHECK(chip::compute_units == timing::device_xcds * timing::xcd_compute_units);
  CHECK(chip::simds == timing::simds);
  CHECK(chip::hbm_terabytes == timing::hbm_device_terabytes);
  CHECK(chip::mall_terabytes == timing::mall_device_terabytes);
  CHECK(chip::hbm_latency_clk == timing::hbm_latency_clk);
  CHECK(chip::vector_cache_latency_clk == timing::vector_cache_latency_clk);
  CHECK(chip::workgroup_start_clk == timing::workgroup_start_clk);
}

// The timing model's results for today's machine code, in clk: attention, then its merge. Choices trust a
// difference of a tenth between estimates of two kernels, so that each may be wrong by a twentieth.
TEST_CASE("estimates are near the timing model's", "[choice]") {
  struct Row {
    const KernelEntry &kernel;
    int32_t batch, keys;
    uint64_t splits;
    double attention, merge;
  };
  const Row rows[] = {
      {sharing, 8, 1024, 4, 26192, 2007},
      {sharing, 8, 4096, 3, 77676, 2007},
      {sharing, 8, 4096, 9, 78716, 3121},
      {sharing, 8, 8192, 14, 147400, 3609},
      {sharing, 32, 4096, 1, 281703, 0},
      {sharing, 32, 4096, 7, 285980, 7196},
      {sharing, 64, 1024, 1, 145835, 0},
      {sharing, 64, 8192, 1, 1100427, 0},
      {sharing, 64, 8192, 5, 1112293, 9046},
      {sharing, 64, 8192, 7, 1104443, 11376},
      {sharing, 64, 8192, 9, 1285213, 14974},
      {sharing, 64, 8192, 12, 1118287, 16652},
      {sharing, 1, 4096, 37, 17700, 2859},
      {sharing, 1, 131072, 38, 282088, 2848},
      {four_waves, 64, 8192, 9, 1152518, 14974},
      {sharing, 40, 4096, 2, 351356, 3075},
      {sharing, 40, 4096, 3, 631584, 3802},
      {sharing, 80, 2048, 4, 353628, 8960},
      {sharing, 4, 16, 1, 11101, 0},
      {sharing, 1, 512, 8, 11120, 2274},
      {sharing, 64, 128, 1, 27109, 0},
      {sharing, 32, 300, 1, 29511, 0},
  };
  for (const Row &row : rows) {
    const calls::Problem problem = problem_of(row.batch, 1, row.keys);
    const Estimate found = estimate(row.kernel, {problem, row.batch, 1, row.keys}, row.splits, 304);
    INFO(package::format_kernel_name(row.kernel.name)
         << " " << row.batch << " x " << row.keys << " in " << row.splits << ": " << found.attention_clk
         << " + " << found.merge_clk);
    CHECK(found.attention_clk == Approx(row.attention).epsilon(0.05));
    if (row.merge != 0) CHECK(found.merge_clk == Approx(row.merge).epsilon(0.2));
    CHECK(found.microseconds() == Approx(found.clk() / 2100));
  }
}

TEST_CASE("a last round that is nearly empty is dearer than none", "[choice]") {
  // 64 sequences of 8 KV heads on 912 places: 9 splits leave a compute unit one workgroup for a sixth round.
  const calls::Problem problem = problem_of(64, 1, 8192);
  const Workload work{problem, 64, 1, 8192};
  CHECK(estimate(sharing, work, 7, 304).attention_clk < 0.9 * estimate(sharing, work, 9, 304).attention_clk);
  for (const std::vector<KernelEntry> &kernels : {all_kernels, {sharing}, {four_waves}})
    for (const int32_t batch : {8, 16, 32, 64}) {
      const calls::Problem decode = problem_of(batch, 1, 4096);
      const Target device(kernels);
      const Choice choice = device.choose(decode);
      const double places = places_of(choice.own.few->entry), workgroups = workgroups_of(choice, decode);
      const double rounds = workgroups / places;
      INFO("batch " << batch << ": " << choice.reason << ", " << workgroups << " workgroups");
      CHECK((rounds <= 1 || rounds - std::floor(rounds) > 0.2 || rounds == std::floor(rounds)));
    }
}

// 64 workgroups without splits. The timing model gives 38199 clk for one split, and for two to four, with the
// merge, 30107 to 30603: memory is at its limit long before each compute unit has a workgroup.
TEST_CASE("splits fill the device at short lengths", "[choice]") {
  const calls::Problem decode = problem_of(8, 1, 1024);
  const Workload work{decode, 8, 1, 1024};
  for (const std::vector<KernelEntry> &kernels : {all_kernels, {prefill_8, sharing, four_waves}}) {
    const Target device(kernels);
    const Choice choice = device.choose(decode);
    INFO(choice.reason);
    CHECK(choice.merging != nullptr);
    CHECK(workgroups_of(choice, decode) >= 128);
    for (uint64_t splits = 1; splits <= 64; ++splits)
      CHECK(choice.own.estimate->clk() <= 1.01 * estimate(choice.own.few->entry, work, splits, 304).clk());
  }
  // So short that there is nothing to split.
  CHECK(Target(all_kernels).choose(problem_of(8, 1, 16)).own.splits.count == 1);
}

TEST_CASE("a chunk of one long sequence occupies the device with a prefill kernel", "[choice]") {
  calls::Problem chunk = problem_of(1, 512, 131072, 8, 1);
  chunk.flags = calls::causal;
  for (const std::vector<KernelEntry> &kernels :
       {all_kernels, {prefill_8, sharing, four_waves}, {prefill_8}}) {
    const Target device(kernels);
    const Choice choice = device.choose(chunk);
    INFO(choice.reason);
    CHECK(choice.own.many == nullptr);
    REQUIRE(choice.own.few != nullptr);
    CHECK(choice.own.few->entry.name.is_prefill());
    CHECK(choice.own.few_rows == INT32_MAX);
    CHECK(choice.merging != nullptr);
    CHECK(workgroups_of(choice, chunk) >= 290); // 16 or 32 without splits
    for (uint64_t splits = 1; splits <= 64; ++splits)
      CHECK(choice.own.estimate->clk() <=
            1.01 * estimate(choice.own.few->entry, {chunk, 1, 512, 131072}, splits, 304).clk());
  }
}

TEST_CASE("splits of a prefill kernel are for one sequence or long chunks, beside which few rows may be",
          "[choice]") {
  const Target device(all_kernels), prefill({prefill_8});
  for (const int32_t batch : {1, 2, 3})
    for (const int32_t rows : {20, 127, 128, 512}) {
      const calls::Problem problem = problem_of(batch, rows, 131072, 8, 1);
      const bool has_splits = batch == 1 || rows >= 128; // of 8 heads
      const Choice all = device.choose(problem), choice = prefill.choose(problem);
      INFO(batch << " x " << rows << " rows: " << all.reason);
      CHECK((choice.own.few != nullptr) == has_splits);
      CHECK((choice.workspace_bytes != 0) == has_splits);
      if (!has_splits) CHECK((all.own.many != nullptr || !all.own.few->entry.name.is_prefill()));
    }
}

TEST_CASE("few rows go to decode kernels, many to prefill kernels", "[choice]") {
  for (const std::vector<KernelEntry> &kernels : {all_kernels, {prefill_8, sharing, four_waves}}) {
    const Target device(kernels);
    for (const int32_t rows : {1, 2, 3, 4, 8}) {
      const Choice draft = device.choose(problem_of(8, rows, 4096));
      INFO(rows << " rows: " << draft.reason);
      CHECK(draft.own.many == nullptr);
      CHECK(draft.own.few != nullptr);
      // The same rows in a plan that also has prompts.
      const Choice mixed = device.choose(problem_of(8, 4096, 4096));
      CHECK(mixed.own.many != nullptr);
      CHECK_THAT(mixed.reason, Catch::StartsWith("about ") && Catch::Contains("; sequences of up to "));
      CHECK(mixed.own.few_rows >= std::min(rows, 4)); // with more, 16 rows at a time read the keys too often
      CHECK(mixed.own.few_rows < 4096);
      // Up to where the decode kernel with its splits is cheaper by a tenth, in steps of twice the rows.
      const auto is_cheaper = [&](int64_t count) {
        const calls::Problem problem = problem_of(8, 4096, 4096);
        const Workload work{problem, 8, count, 4096};
        double least = INFINITY;
        for (const KernelEntry &kernel : kernels)
          if (kernel.name.is_prefill()) least = std::min(least, estimate(kernel, work, 1, 304).clk());
        return 1.1 * estimate(mixed.own.few->entry, work, mixed.own.splits.count, 304).clk() < least;
      };
      CHECK(is_cheaper(mixed.own.few_rows));
      CHECK_FALSE(is_cheaper(2 * int64_t{mixed.own.few_rows}));
    }
    for (const int32_t bound : {4096, 0})
      CHECK(device.choose(problem_of(16, bound, 4096)).own.many->entry.name == prefill_8.name);
  }
}

TEST_CASE("the decode kernel with the lower estimate is chosen", "[choice]") {
  const Target device({sharing, four_waves});
  const Choice choice = device.choose(problem_of(8, 1, 4096));
  INFO(choice.reason);
  CHECK(choice.own.few->entry.name.tile_q == 16);
  CHECK_THAT(choice.reason,
             Catch::StartsWith("about ") && Catch::Contains(" us); next: attn_fwd_bf16_d128_q64") &&
                 Catch::EndsWith("; keys in " + std::to_string(choice.own.splits.count) + " splits"));
  CHECK(choice.own.estimate->clk() > 0);
  KernelEntry slow = sharing;
  slow.loop_slot_clk = 8000;
  slow.loop_wave_clk = 9000;
  const Target other({slow, four_waves});
  CHECK(other.choose(problem_of(8, 1, 4096)).own.few->entry.name ==
        four_waves.name); // though 16 rows would do
}

TEST_CASE("rows of one tile read the keys once", "[choice]") {
  const Target device(all_kernels);
  for (const auto &[rows, tile_q] :
       {std::pair{1, 16u}, {2, 16u}, {3, 64u}, {8, 64u}, {9, 128u}, {16, 128u}}) {
    const Choice choice = device.choose(problem_of(64, rows, 4096));
    INFO(rows << " rows: " << choice.reason);
    CHECK(choice.own.main().entry.name.tile_q == tile_q);
    CHECK(choice.own.main().entry.name.is_prefill() == (rows > 8)); // whose waves take half the time
  }
}

TEST_CASE("waves that share rows get a tile each", "[choice]") {
  CHECK(sharing.name.waves_dividing_keys() == 4);
  CHECK(four_waves.name.waves_dividing_keys() == 1);
  CHECK(high.name.waves_dividing_keys() == 1);
  CHECK(prefill_8.name.waves_dividing_keys() == 1);
  const calls::Problem decode = problem_of(1, 1, 8192);
  const Workload work{decode, 1, 1, 8192};
  // 512 tiles: 128 splits have one for each wave; with 256 half of the waves are idle, and the time does not
  // drop.
  CHECK(estimate(sharing, work, 128, 304).clk() < estimate(sharing, work, 256, 304).clk());
  KernelEntry slow = sharing; // it takes longer to issue than to read
  slow.loop_wave_clk = 30000;
  slow.loop_slot_clk = 512;
  // Tiles beyond a multiple of the waves take as long as the next multiple.
  const calls::Problem one_head = problem_of(1, 1, 8192, 8, 1);
  const auto clk = [&](uint64_t splits) {
    return estimate(slow, {one_head, 1, 1, 8192}, splits, 304).attention_clk;
  };
  CHECK(clk(103) == clk(86)); // five and six tiles
  CHECK(clk(103) < clk(57));  // nine
  CHECK(estimate(slow, work, 64, 304).attention_clk < 0.75 * estimate(slow, work, 32, 304).attention_clk);
  const Target device({sharing});
  const Choice choice = device.choose(decode);
  CHECK(choice.own.splits.count <= 128);
  CHECK(choice.own.splits.least_tiles >= 4);
}

TEST_CASE("the estimate depends on", "[choice]") {
  const calls::Problem decode = problem_of(64, 1, 8192);
  const Workload work{decode, 64, 1, 8192};
  const double base = estimate(four_waves, work, 2, 304).attention_clk;
  SECTION("registers, by way of how many workgroups are resident") {
    KernelEntry wide = four_waves;
    wide.vgprs = 512;
    calls::Problem bytes_of_fp8 = decode; // so few that memory is not the limit
    bytes_of_fp8.k_type = bytes_of_fp8.v_type = SLUICE_E4M3FNUZ;
    const auto clk = [&](const KernelEntry &kernel) {
      return estimate(kernel, {bytes_of_fp8, 64, 1, 8192}, 2, 304).attention_clk;
    };
    // One workgroup at a time instead of two: twice the rounds, in which each wave has its SIMD to itself.
    // Once per iteration, it waits for HBM instead of the cache.
    const double single = four_waves.loop_wave_clk + (860 - 116),
                 together = single + four_waves.loop_slot_clk;
    CHECK(clk(wide) / clk(four_waves) == Approx(2 * single / together).epsilon(0.01));
  }
  SECTION("keys that a window hides") {
    calls::Problem window = decode;
    window.flags = calls::causal | calls::window_left;
    window.window_left = 1000;
    CHECK(estimate(four_waves, {window, 64, 1, 8192}, 2, 304).attention_clk < 0.3 * base);
  }
  SECTION("the bytes of keys, and no faster than HBM") {
    KernelEntry free = sharing;
    free.loop_slot_clk = free.loop_wave_clk = 1;
    // 57 sequences of 8 KV heads in 2 splits are three workgroups for each compute unit, the most that fit.
    const Workload full{decode, 57, 1, 8192};
    const double bytes = 57.0 * 8 * 8192 * 2 * 128 * 2, clk = bytes / 4.14e12 * 2.1e9;
    const double found = estimate(free, full, 2, 304).attention_clk;
    CHECK(found > clk);
    // Q, results of F32, and the latencies of one round.
    const double rows = 57.0 * 64 * 128, other = (2 * rows + 2 * 4 * rows) / 4.14e12 * 2.1e9;
    CHECK(found < clk + other + 10 * 860);
    calls::Problem bytes_of_fp8 = decode;
    bytes_of_fp8.k_type = bytes_of_fp8.v_type = SLUICE_E4M3FNUZ;
    CHECK(estimate(free, {bytes_of_fp8, 57, 1, 8192}, 2, 304).attention_clk ==
          Approx(found - clk / 2).epsilon(0.01));
  }
  SECTION("row tiles of a prefill kernel that share keys") {
    KernelEntry prefill = prefill_8;
    prefill.loop_slot_clk = prefill.loop_wave_clk = 1;
    KernelEntry decode = prefill;
    decode.name.form = "decode";
    const calls::Problem chunk = problem_of(8, 512, 131072);
    const auto clk = [&](const KernelEntry &kernel) {
      return estimate(kernel, {chunk, 8, 512, 131072}, 1, 304).attention_clk;
    };
    CHECK(clk(prefill) < 0.5 * clk(decode));
  }
  SECTION("numbers beyond all bounds are numbers") {
    const calls::Problem huge = problem_of(INT32_MAX, INT32_MAX, INT32_MAX, 32768, 1);
    const double clk = estimate(prefill_8, {huge, INT32_MAX, INT32_MAX, INT32_MAX}, 1, 304).clk();
    CHECK(std::isfinite(clk));
    CHECK(clk > 1e15);
  }
}

TEST_CASE("the smallest head dims that hold the problem's are filled with zeros, of either kind",
          "[choice]") {
  const auto with_dims = [](KernelEntry kernel, uint32_t qk, uint32_t v) {
    kernel.name.head_dim_qk = qk;
    kernel.name.head_dim_v = v;
    return kernel;
  };
  std::vector<KernelEntry> kernels;
  for (const auto &[qk, v] : {std::pair{64u, 64u}, {80u, 80u}, {128u, 128u}, {192u, 128u}, {192u, 192u}})
    for (const KernelEntry &kernel : {prefill_8, sharing})
      if (kernel.name.is_prefill() || qk != 80) kernels.push_back(with_dims(kernel, qk, v));
  const Target device(kernels);
  struct Row {
    int32_t qk, v;
    std::pair<uint32_t, uint32_t> prefill, decode;
  };
  const Row rows[] = {{64, 64, {64, 64}, {64, 64}},      {8, 64, {64, 64}, {64, 64}},
                      {72, 72, {80, 80}, {128, 128}},    {80, 72, {80, 80}, {128, 128}},
                      {88, 8, {128, 128}, {128, 128}},   {184, 128, {192, 128}, {192, 128}},
                      {184, 136, {192, 192}, {192, 192}}};
  const auto dims = [](const package::PackedKernel *kernel) {
    return std::pair{kernel->entry.name.head_dim_qk, kernel->entry.name.head_dim_v};
  };
  for (const bool bounded : {false, true})
    for (const Row &row : rows) {
      calls::Problem problem = bounded ? problem_of(16, 4096, 4096) : problem_of(0, 0, 0);
      problem.head_dim_qk = row.qk;
      problem.head_dim_v = row.v;
      const Choice choice = device.choose(problem);
      INFO(row.qk << "/" << row.v << ": " << choice.reason);
      REQUIRE((choice.own.many != nullptr && choice.own.few != nullptr));
      CHECK(dims(choice.own.many) == row.prefill);
      CHECK(dims(choice.own.few) == row.decode);
    }
  calls::Problem problem = problem_of(0, 0, 0);
  for (const auto &[dim, message] :
       {std::pair{70, "head_dim_qk is 70 without SLUICE_ATTENTION_PADDED_ROWS; nearest supported: 72"},
        {200, "head_dim_qk is 200; nearest supported: 192"}}) {
    problem.head_dim_qk = dim;
    CHECK_THROWS_WITH(device.choose(problem), Catch::Contains(message));
  }
}

TEST_CASE("every kernel can write O as F32 or FP8, and its splits are merged to that", "[choice]") {
  const Target device(all_kernels);
  for (const int32_t rows : {1, 512}) {
    calls::Problem problem = problem_of(1, rows, 131072, 8, 1);
    const Choice rounded = device.choose(problem);
    problem.o_type = SLUICE_F32;
    const Choice choice = device.choose(problem);
    CHECK(choice.own.few == rounded.own.few);
    REQUIRE(choice.merging != nullptr);
    CHECK(choice.merging->name == "merge_states_f32_f32");
    CHECK(rounded.merging->name == "merge_states_f32_bf16");
    problem.o_type = SLUICE_E4M3FNUZ;
    const Choice fp8 = device.choose(problem);
    CHECK(fp8.own.few == rounded.own.few);
    CHECK(fp8.own.splits.count > 1);
    REQUIRE(fp8.merging != nullptr);
    CHECK(fp8.merging->name == "merge_states_f32_e4m3fnuz");
  }
  // It is written once, with twice the bytes.
  const calls::Problem bf16 = problem_of(64, 4096, 16, 64, 64);
  calls::Problem f32 = bf16;
  f32.o_type = SLUICE_F32;
  const auto clk = [](const calls::Problem &problem) {
    return estimate(prefill_8, {problem, 64, 4096, 16}, 1, 304).attention_clk;
  };
  const double bytes = 64.0 * 64 * 4096 * 128 * 2;
  CHECK(clk(f32) - clk(bf16) == Approx(bytes / 4.14e12 * 2.1e9).epsilon(0.01));
}

TEST_CASE("one kernel is enough for O as F32 if kernels differ only in what they round O to", "[choice]") {
  std::vector<KernelEntry> kernels;
  for (const char *type : {"f16", "bf16"})
    for (KernelEntry kernel : all_kernels) {
      kernel.name.dtype = "e4m3fnuz";
      kernel.name.o_dtype = type;
      kernels.push_back(kernel);
    }
  const Target device(kernels);
  calls::Problem problem = problem_of(8, 1, 4096);
  problem.q_type = problem.k_type = problem.v_type = SLUICE_E4M3FNUZ;
  problem.o_type = SLUICE_F32;
  const Choice choice = device.choose(problem);
  CHECK(choice.own.few->entry.name.o_dtype == "bf16"); // the first by name
  CHECK_THAT(choice.reason, !Catch::Contains("_to_f16"));
  problem.max_q_len = problem.max_batch = 0;
  const Choice open = device.choose(problem);
  CHECK(open.own.many->entry.name.o_dtype == "bf16");
  CHECK(open.own.few->entry.name.o_dtype == "bf16");
  problem.o_type = SLUICE_F16;
  CHECK(device.choose(problem).own.many->entry.name.o_dtype == "f16");
}

TEST_CASE("a ceiling holds for splits and for decode kernels", "[choice]") {
  const Target device(all_kernels);
  for (const int32_t rows : {1, 16, 4096})
    for (const uint64_t ceiling : {uint64_t{1}, uint64_t{100000}, uint64_t{1} << 20, uint64_t{1} << 24}) {
      calls::Problem problem = problem_of(4, rows, 32768);
      problem.workspace_ceiling_bytes = ceiling;
      const Choice choice = device.choose(problem);
      INFO(rows << " rows, " << ceiling << " bytes: " << choice.reason);
      CHECK(choice.workspace_bytes <= ceiling);
      CHECK((choice.own.splits.count > 1) == (choice.workspace_bytes > 0));
    }
  CHECK(device.choose(problem_of(4, 4096, 32768)).workspace_bytes <= usual_workspace_ceiling);
}

TEST_CASE("batch-invariant choices depend only on the rules", "[choice]") {
  const Target device(all_kernels);
  const auto chosen = [&](int32_t batch, int32_t rows, int32_t keys) {
    calls::Problem problem = problem_of(batch, rows, keys);
    problem.flags |= calls::batch_invariant;
    return device.choose(problem);
  };
  const Choice first = chosen(1, 1, 4096);
  CHECK(first.own.splits.tiles * first.own.few->entry.name.tile_kv == fixed_split_keys);
  for (const int32_t batch : {1, 8, 512})
    for (const int32_t rows : {1, 2, 300})
      for (const int32_t keys : {100, 4096, 100000}) {
        const Choice other = chosen(batch, rows, keys);
        CHECK(other.own.few == first.own.few);
        CHECK(other.own.few_rows == 2);
        CHECK(other.own.splits.tiles == first.own.splits.tiles);
        CHECK(other.own.splits.count == uint32_t(keys + 2047) / 2048);
      }
}

TEST_CASE("every problem gets a kernel, with any bounds", "[choice]") {
  const Target today(all_kernels), decode({sharing}), prefill({prefill_4});
  for (const int32_t batch : {0, 1, 100, INT32_MAX})
    for (const int32_t rows : {0, 1, 5, 100000, INT32_MAX})
      for (const int32_t keys : {0, 1, 4097, INT32_MAX})
        for (const int32_t heads : {1, 8, 32768}) {
          const calls::Problem problem = problem_of(batch, rows, keys, heads, 1);
          INFO(batch << " x " << rows << " rows, " << keys << " keys, " << heads << " heads");
          const Choice all = today.choose(problem);
          CHECK((all.own.many != nullptr || all.own.few != nullptr));
          CHECK((all.own.many != nullptr || all.own.few_rows >= rows));
          CHECK(all.reason.size() < sizeof sluice_plan_info::reason);
          CHECK(decode.choose(problem).own.few_rows == INT32_MAX);
          CHECK(prefill.choose(problem).own.main().entry.name == prefill_4.name);
        }
}

TEST_CASE("a prefix of many rows goes to a prefill kernel in splits, the own keys of each to a decode kernel",
          "[choice]") {
  calls::Problem problem = problem_of(64, 1, 512, 32, 8);
  problem.flags = calls::prefixes;
  problem.max_prefixes = 1;
  problem.max_prefix_len = 32768;
  problem.max_q_tokens = 64;
  const Choice choice = Target(all_kernels).choose(problem);
  REQUIRE(choice.prefix.kernel != nullptr);
  CHECK(choice.prefix.kernel->entry.name.tile_q == 256);
  CHECK(choice.prefix.splits.count > 30); // of 8 workgroups, for 304 compute units
  CHECK(choice.own.few->entry.name.tile_q == 16);
  CHECK(choice.own.splits.count == 1);
  CHECK(choice.merging != nullptr);
  CHECK_THAT(choice.reason, Catch::StartsWith("prefixes: attn_fwd_bf16_d128_q256_kv64_w8 in "));
  // A ceiling leaves a part for each level, and no more.
  const uint64_t part_bytes = uint64_t{64} * 32 * (128 + 1) * 4;
  CHECK(choice.workspace_bytes == (1 + choice.prefix.splits.count) * part_bytes);
  problem.workspace_ceiling_bytes = 2 * part_bytes;
  CHECK(Target(all_kernels).choose(problem).prefix.splits.count == 1);
  problem.workspace_ceiling_bytes -= 1;
  CHECK_THROWS_WITH(Target(all_kernels).choose(problem), Catch::Contains("nearest supported is"));
  // Few rows do not fill a prefill tile.
  problem.workspace_ceiling_bytes = 0;
  problem.max_batch = 2;
  problem.max_q_tokens = 2;
  CHECK_FALSE(Target(all_kernels).choose(problem).prefix.kernel->entry.name.is_prefill());
}

TEST_CASE("results over prefixes are F32 in their estimate", "[choice]") {
  calls::Problem problem = problem_of(64, 1, 16, 64, 64);
  problem.flags = calls::prefixes;
  problem.max_prefixes = 64;
  problem.max_prefix_len = 16;
  problem.max_q_tokens = 64 * 4096;
  const PrefixChoice chosen = Target({prefill_8}).choose(problem).prefix;
  REQUIRE(chosen.splits.count == 1);
  const auto clk = [&](uint32_t o_type) {
    calls::Problem part_problem = prefix_problem(problem);
    part_problem.o_type = o_type;
    return estimate(prefill_8, {part_problem, 64, 4096, 16}, 1, 304).clk();
  };
  CHECK(chosen.estimate->clk() == clk(SLUICE_F32));
  CHECK(chosen.estimate->clk() > clk(SLUICE_BF16));
}

TEST_CASE("a batch-invariant cascade has the same kernel for any number of rows", "[choice]") {
  calls::Problem problem = problem_of(64, 1, 512, 32, 8);
  problem.flags = calls::prefixes;
  problem.flags |= calls::batch_invariant;
  problem.max_prefixes = 1;
  problem.max_prefix_len = 32768;
  for (const int64_t rows : {1, 100, 1 << 20}) {
    problem.max_q_tokens = rows;
    const Choice choice = Target(all_kernels).choose(problem);
    CHECK(choice.prefix.kernel->entry.name.tile_q == 256);
    CHECK(choice.prefix.splits.tiles == 2048 / 64);
  }
}

TEST_CASE("the tiles of a cascade's rows fit a grid", "[choice]") {
  calls::Problem problem = problem_of(1, 1, 64, 1, 1);
  problem.flags = calls::prefixes;
  problem.max_prefixes = 1;
  problem.max_prefix_len = 64;
  problem.max_q_tokens = 65535 * 256;
  CHECK(Target(all_kernels).choose(problem).prefix.kernel->entry.name.tile_q == 256);
  problem.max_q_tokens += 1;
  CHECK_THROWS_WITH(
      Target(all_kernels).choose(problem),
      Catch::Contains("max_q_tokens is 16776961 with 1 heads; with SLUICE_ATTENTION_PREFIXES the "
                      "nearest supported is 16776960"));
}

TEST_CASE("a merge counts a cascade's rows of all heads in 31 bits", "[choice]") {
  calls::Problem problem = problem_of(1, 1, 64, 1024, 1024);
  problem.flags = calls::prefixes;
  problem.max_prefixes = 1;
  problem.max_prefix_len = 64;
  problem.max_q_tokens = INT32_MAX / 1024;
  CHECK_NOTHROW(Target(all_kernels).choose(problem));
  problem.max_q_tokens += 1;
  CHECK_THROWS_WITH(
      Target(all_kernels).choose(problem),
      Catch::Contains("max_q_tokens is 2097152 with 1024 heads; with SLUICE_ATTENTION_PREFIXES the "
                      "nearest supported is 2097151"));
}

TEST_CASE("a cascade needs a kernel that merges", "[choice]") {
  calls::Problem problem = problem_of(1, 1, 64);
  problem.flags = calls::prefixes;
  problem.max_prefixes = 1;
  problem.max_prefix_len = 64;
  problem.max_q_tokens = 1;
  CHECK_NOTHROW(Target(all_kernels).choose(problem));
  CHECK_THROWS_WITH(
      Target(all_kernels, /*merges=*/false).choose(problem),
      Catch::Contains("flags has SLUICE_ATTENTION_PREFIXES, but the kernel pack has no kernel"));
}

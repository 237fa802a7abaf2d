//===- valu_noise_test.cpp - freedoms of the hardware, drawn at random ----------------------------------===//
#include <catch2/catch.hpp>

#include <bit>
#include <cmath>
#include <set>

#include "isa/kernel_fixture.h"
#include "isa/wave_fixture.h"

namespace sluice::test {

namespace {

void set_noise(TestWave &t, emulator::NumberNoise noise) {
  t.wave.noise = noise;
  t.wave.set_mode(t.wave.mode_bits);
}

constexpr emulator::NumberNoise moving = {.transcendentals = true, .seed = 5};
constexpr emulator::NumberNoise scrambling = {.nans = true, .seed = 5};

/// Each lane's number.
void fill_numbers(TestWave &t) {
  t.fill_lanes(1, [](uint32_t lane) { return std::bit_cast<uint32_t>(0.37f + float(lane) * 0.05f); });
  t.fill_lanes(2,
               [](uint32_t lane) { return uint32_t(support::f16_from_float(0.37f + float(lane) * 0.05f)); });
  t.fill(6, 0u);
  t.fill_lanes(7, [](uint32_t lane) { return std::bit_cast<uint64_t>(0.37 + lane * 0.05) >> 32; });
}

} // namespace

TEST_CASE("transcendentals move by one unit in the last place, or stay", "[isa][noise]") {
  const char *const names[] = {
      "v_exp_f32 v4, v1",         "v_log_f32 v4, v1", "v_rcp_f32 v4, v1",         "v_rsq_f32 v4, v1",
      "v_sqrt_f32 v4, v1",        "v_sin_f32 v4, v1", "v_cos_f32 v4, v1",         "v_exp_f16 v4, v2",
      "v_log_f16 v4, v2",         "v_rcp_f16 v4, v2", "v_rsq_f16 v4, v2",         "v_sqrt_f16 v4, v2",
      "v_sin_f16 v4, v2",         "v_cos_f16 v4, v2", "v_rcp_f64 v[4:5], v[6:7]", "v_rsq_f64 v[4:5], v[6:7]",
      "v_sqrt_f64 v[4:5], v[6:7]"};
  for (emulator::SimdPath path : simd_paths())
    for (const char *name : names) {
      INFO(name);
      TestWave exact(path), moved(path), again(path), other(path);
      set_noise(moved, moving);
      set_noise(again, moving);
      set_noise(other, {.transcendentals = true, .seed = 6});
      for (TestWave *t : {&exact, &moved, &again, &other}) {
        fill_numbers(*t);
        t->fill_pair(4, 0);
        t->run(name);
      }
      std::set<int64_t> steps;
      bool same_with_other_seed = true;
      for (uint32_t lane = 0; lane < 64; ++lane) {
        const int64_t step = int64_t(moved.vv(4, lane)) - int64_t(exact.vv(4, lane));
        steps.insert(step);
        CHECK(again.vv(4, lane) == moved.vv(4, lane));
        same_with_other_seed = same_with_other_seed && other.vv(4, lane) == moved.vv(4, lane);
      }
      CHECK(steps == std::set<int64_t>{-1, 0, 1});
      CHECK_FALSE(same_with_other_seed);
    }
}

TEST_CASE("results that the manual fixes and exact results do not move", "[isa][noise]") {
  for (emulator::SimdPath path : simd_paths()) {
    TestWave t(path);
    set_noise(t, moving);
    auto check = [&](const std::string &instruction, float operand, float expected) {
      t.fill(1, operand);
      t.run(instruction + " v4, v1");
      for (uint32_t lane = 0; lane < 64; ++lane)
        CHECK((std::isnan(expected) ? std::isnan(t.f(4, lane)) : t.f(4, lane) == expected));
    };
    check("v_rcp_f32", 0.0f, INFINITY);
    check("v_rcp_f32", -INFINITY, 0.0f);
    check("v_exp_f32", -1000.0f, 0.0f);
    check("v_exp_f32", 1000.0f, INFINITY);
    check("v_log_f32", 0.0f, -INFINITY);
    check("v_log_f32", 1.0f, 0.0f);
    check("v_sqrt_f32", -1.0f, NAN);
    check("v_sin_f32", 0.0f, 0.0f);
    // Never into a subnormal or infinity.
    t.fill(1, 0x1p126f); // the reciprocal is the smallest normal number
    t.run("v_rcp_f32 v4, v1");
    for (uint32_t lane = 0; lane < 64; ++lane)
      CHECK(t.f(4, lane) >= 0x1p-126f);
    // Other instructions are exact.
    fill_numbers(t);
    t.run("v_add_f32 v4, v1, v1\n v_cvt_f16_f32 v5, v1\n v_fract_f32 v8, v1");
    for (uint32_t lane = 0; lane < 64; ++lane) {
      CHECK(t.f(4, lane) == 2 * t.f(1, lane));
      CHECK(t.v(5, lane) == support::f16_from_float(t.f(1, lane)));
      CHECK(t.f(8, lane) == t.f(1, lane) - std::floor(t.f(1, lane)));
    }
  }
}

TEST_CASE("NaNs get payloads at random and stay quiet", "[isa][noise]") {
  for (emulator::SimdPath path : simd_paths()) {
    TestWave t(path);
    set_noise(t, scrambling);
    t.fill(1, NAN);
    t.fill(2, 0x7e007e00u);
    t.fill(3, 1.0f);
    t.fill_pair(6, 0x7ff8000000000000);
    t.run("v_add_f32 v4, v1, v3\n v_pk_add_f16 v5, v2, v2\n v_add_f64 v[8:9], v[6:7], v[6:7]\n v_mul_f32 "
          "v10, v3, v3\n"
          "v_mov_b32 v11, v1\n v_cndmask_b32 v12, v1, v1, vcc");
    std::set<uint32_t> singles, lows, highs;
    std::set<uint64_t> doubles;
    for (uint32_t lane = 0; lane < 64; ++lane) {
      CHECK((t.v(4, lane) & 0x7fc00000) == 0x7fc00000);
      CHECK((t.v(5, lane) & 0x7e007e00) == 0x7e007e00);
      CHECK((t.vv(8, lane) & 0x7ff8000000000000) == 0x7ff8000000000000);
      CHECK(t.f(10, lane) == 1.0f);
      CHECK(t.v(11, lane) == std::bit_cast<uint32_t>(NAN)); // moves are not arithmetic
      CHECK(t.v(12, lane) == std::bit_cast<uint32_t>(NAN));
      singles.insert(t.v(4, lane));
      lows.insert(t.v(5, lane) & 0xffff);
      highs.insert(t.v(5, lane) >> 16);
      doubles.insert(t.vv(8, lane));
    }
    CHECK(singles.size() > 50);
    CHECK(lows.size() > 30);
    CHECK(highs.size() > 30);
    CHECK(doubles.size() > 50);
  }
}

TEST_CASE("a launch's options enable noise", "[isa][noise]") {
  const TestKernel kernel(
      "s_load_dwordx2 s[8:9], s[0:1], 0x0\n v_lshlrev_b32_e32 v1, 2, v0\n v_cvt_f32_u32_e32 v2, v0\n"
      "v_add_f32_e32 v2, 0.5, v2\n v_rcp_f32_e32 v2, v2\n v_mov_b32_e32 v3, -1\n v_add_f32_e32 v3, v3, v3\n"
      "s_waitcnt lgkmcnt(0)\n global_store_dword v1, v2, s[8:9]\n global_store_dword v1, v3, s[8:9] "
      "offset:256\n"
      "s_endpgm\n");
  auto run = [&](const Options &options) {
    std::array<uint32_t, 128> data{};
    Memory memory;
    memory.attach(data.data(), sizeof data, true);
    const LaunchResult result = kernel.run(memory, {reinterpret_cast<uint64_t>(data.data())}, {}, options);
    INFO(all_text(result));
    CHECK(result.ok());
    return data;
  };
  const auto exact = run({});
  Options options;
  options.perturb_transcendentals = true;
  const auto moved = run(options);
  uint32_t differ = 0;
  for (uint32_t i = 0; i < 64; ++i) {
    differ += exact[i] != moved[i];
    CHECK(std::abs(int32_t(exact[i] - moved[i])) <= 1);
  }
  CHECK(differ > 20);
  CHECK(std::equal(exact.begin() + 64, exact.end(), moved.begin() + 64));
  options = {};
  options.scramble_nans = true;
  const auto scrambled = run(options);
  CHECK(std::equal(exact.begin(), exact.begin() + 64, scrambled.begin()));
  CHECK_FALSE(std::equal(exact.begin() + 64, exact.end(), scrambled.begin() + 64));
  // Without any check as well.
  options.checks = Checks::none();
  options.completion = CompletionOrder::early;
  CHECK(run(options) == scrambled);
}

} // namespace sluice::test

//===- append_blocks_test.cpp - F32 numbers into blocks of ggml and groups of 4 bits --------------------===//
//
// A rotation by a table of any numbers, with sines of 0, turns rows of ones into any numbers of F32. Blocks
// of ggml are compared with its code, byte for byte, and groups with the numbers that they represent.
//
//===----------------------------------------------------------------------------------------------------===//
#include "cache_ops/device.h"
#include "calls/values.h"

#include "conformance/shared/numbers.h"

#include <cmath>
#include <limits>

using namespace sluice::conformance;
namespace calls = sluice::calls;
using namespace sluice::test;

namespace {

constexpr int block = 32;
using Block = std::vector<float>;

/// quantize_row_q8_0_ref of ggml-quants.c, for one block. Where the inverse overflows, ggml's conversion to
/// an integer is undefined; ours takes it as 0.
std::vector<uint8_t> q8_of_ggml(const float *x) {
  float amax = 0;
  for (int j = 0; j < block; ++j)
    amax = std::max(amax, std::fabs(x[j]));
  const float d = amax / ((1 << 7) - 1);
  const float id = d != 0 && std::isfinite(1.0f / d) ? 1.0f / d : 0.0f;
  const uint16_t scale = encode(f16_format, d);
  std::vector<uint8_t> bytes = {uint8_t(scale), uint8_t(scale >> 8)};
  for (int j = 0; j < block; ++j) {
    const float x0 = x[j] * id;
    bytes.push_back(uint8_t(int8_t(roundf(x0))));
  }
  return bytes;
}

/// quantize_row_q4_0_ref.
std::vector<uint8_t> q4_of_ggml(const float *x) {
  float amax = 0, max = 0;
  for (int j = 0; j < block; ++j) {
    const float v = x[j];
    if (amax < std::fabs(v)) {
      amax = std::fabs(v);
      max = v;
    }
  }
  const float d = max / -8;
  const float id = d != 0 && std::isfinite(1.0f / d) ? 1.0f / d : 0.0f;
  const uint16_t scale = encode(f16_format, d);
  std::vector<uint8_t> bytes = {uint8_t(scale), uint8_t(scale >> 8)};
  for (int j = 0; j < block / 2; ++j) {
    const volatile float x0 = x[j] * id, x1 = x[block / 2 + j] * id; // volatile: no fused sums
    const int xi0 = std::min(15, int(int8_t(x0 + 8.5f))), xi1 = std::min(15, int(int8_t(x1 + 8.5f)));
    bytes.push_back(uint8_t(xi0 | xi1 << 4));
  }
  return bytes;
}

/// Numbers of many kinds, `count` to a group.
std::vector<Block> draw_blocks(int count) {
  std::vector<Block> blocks;
  Numbers numbers(17);
  const auto add = [&](auto number) {
    Block &made = blocks.emplace_back();
    for (int i = 0; i < count; ++i)
      made.push_back(float(number(i)));
  };
  for (int power = -24; power <= 14; ++power)
    for (int i = 0; i < 4; ++i)
      add([&](int) { return std::ldexp(numbers.between(-1, 1), power); });
  // Numbers of one size: the first decides the sign of a scale.
  for (int i = 0; i < 16; ++i)
    add([&](int) { return numbers.below(2) == 0 ? 1.5 : -1.5; });
  // Quotients in the middle between two integers, and beside it: the inverse of a scale k is rounded.
  for (int k = 1; k < 400; k += 2) {
    add([&](int i) { return i == 5 ? 127.0 * k : (i - 3.5) * k; });
    add([&](int i) { return i == 9 ? -8.0 * k : (i % 16 - 7.5) * k / 1.0; });
  }
  // Numbers that hardly differ, with either sign.
  for (int power = 4; power < 24; ++power)
    for (const double base : {3.0, -500.0, 0.02})
      add([&](int i) { return base * (1 + std::ldexp(i % 7, -power)); });
  add([](int) { return 0.0; });
  add([](int) { return -0.0; });
  add([](int) { return -3.25; });
  add([](int i) { return i == 31 ? 1000 : 1e-3 * i; });
  add([](int i) { return i == 0 ? -1000 : 1e-3 * i; });
  // Scales beyond F16, and with inverses beyond F32.
  add([](int i) { return 1e9 * (i - 7); });
  add([](int i) { return 1e-38 * i; });
  add([](int i) { return 1e-44 * i; });
  return blocks;
}

/// An append that gives row t of its only head, of two halves, the numbers of blocks[t] in both.
class Append {
public:
  Append(uint32_t source, uint32_t cache_type, const std::vector<Block> &blocks, int scale_group = 0,
         bool has_zeros = false)
      : tokens(int(blocks.size())), half(int(blocks[0].size())), ones(size_t(tokens * 2 * half), one(source)),
        cache(size_t(row_bytes(cache_type)) * size_t(tokens), 0x55), table(size_t(tokens * 2 * half)),
        places(size_t(tokens)), positions(size_t(tokens)), scales(size_t(tokens * 4), 0x5555),
        zeros(size_t(tokens * 4), 0x5555) {
    for (int t = 0; t < tokens; ++t) {
      places[size_t(t)] = positions[size_t(t)] = t;
      std::copy(blocks[size_t(t)].begin(), blocks[size_t(t)].end(), &table[size_t(t * 2 * half)]);
    }
    call.flags = calls::v_in_k | (has_zeros ? uint32_t(calls::zero_points) : 0);
    call.source_type = source;
    call.cache_type = cache_type;
    call.kv_heads = 1;
    call.head_dim_qk = call.rotary_dim = 2 * half;
    call.page_size = 1;
    call.page_count = call.tokens = tokens;
    call.k = {ones.data(), {0, 2 * half, 2 * half, 1}};
    call.k_cache = {cache.data(), {2 * half, 2 * half, 2 * half, 1}};
    call.slots = places.data();
    call.positions = positions.data();
    call.rotary = table.data();
    call.rotary_stride = 2 * half;
    if (scale_group == 0) return;
    const int64_t groups = 2 * half / scale_group;
    call.scale_group = scale_group;
    call.k_scale_kind = SLUICE_SCALE_PER_GROUP;
    call.k_scales = {scales.data(), {groups, groups, groups, 1}};
    if (has_zeros) call.k_zeros = {zeros.data(), {groups, groups, groups, 1}};
  }

  int row_bytes(uint32_t cache_type) const {
    return cache_type == SLUICE_U4 ? half : 2 * half / 32 * (cache_type == SLUICE_Q8_0 ? 34 : 18);
  }
  static uint16_t one(uint32_t source) { return source == SLUICE_F16 ? 0x3c00 : 0x3f80; }

  int tokens, half;
  Visible<uint16_t> ones;
  Visible<uint8_t> cache;
  Visible<float> table;
  Visible<int64_t> places;
  Visible<int32_t> positions;
  Visible<uint16_t> scales, zeros;
  calls::Append call;
};

} // namespace

TEST_CASE("blocks have ggml's bytes", "[append_blocks]") {
  const std::vector<Block> blocks = draw_blocks(block);
  for (const uint32_t source : {SLUICE_F16, SLUICE_BF16})
    for (const uint32_t type : {SLUICE_Q8_0, SLUICE_Q4_0}) {
      INFO("from " << source << " to " << type);
      Append append(source, type, blocks);
      run_on_device(append.call, sluice_cache_append);
      int wrong = 0;
      for (size_t t = 0; t < blocks.size(); ++t) {
        const auto expected =
            type == SLUICE_Q8_0 ? q8_of_ggml(blocks[t].data()) : q4_of_ggml(blocks[t].data());
        for (size_t half = 0; half < 2; ++half)
          for (size_t i = 0; i < expected.size(); ++i) {
            const uint8_t got = append.cache[(2 * t + half) * expected.size() + i];
            if (got != expected[i] && ++wrong <= 5)
              UNSCOPED_INFO("block " << t << ", byte " << i << ": " << int(got) << ", not "
                                     << int(expected[i]));
          }
      }
      CHECK(wrong == 0);
    }
}

TEST_CASE("the reference stores the same bytes", "[append_blocks]") {
  for (const auto &[type, group, zeros] : {std::tuple{SLUICE_Q8_0, 0, false},
                                           {SLUICE_Q4_0, 0, false},
                                           {SLUICE_U4, 32, false},
                                           {SLUICE_U4, 32, true},
                                           {SLUICE_U4, 64, false},
                                           {SLUICE_U4, 64, true}}) {
    INFO("to " << type << ", groups of " << group << ", zero points " << zeros);
    const std::vector<Block> blocks = draw_blocks(std::max(group, block));
    Append device(SLUICE_F16, type, blocks, group, zeros), host(SLUICE_F16, type, blocks, group, zeros);
    run_on_device(device.call, sluice_cache_append);
    REQUIRE(sluice_cache_append_reference(calls::AppendValues(host.call), nullptr) == SLUICE_OK);
    CHECK(device.cache.copy() == host.cache.copy());
    CHECK(device.scales.copy() == host.scales.copy());
    CHECK(device.zeros.copy() == host.zeros.copy());
  }
}

TEST_CASE("groups of 4 bits represent numbers within half a step", "[append_blocks]") {
  for (const int group : {32, 64})
    for (const bool has_zeros : {false, true}) {
      INFO("groups of " << group << ", zero points " << has_zeros);
      const std::vector<Block> blocks = draw_blocks(group);
      Append append(SLUICE_BF16, SLUICE_U4, blocks, group, has_zeros);
      run_on_device(append.call, sluice_cache_append);
      int wrong = 0;
      for (size_t t = 0; t < blocks.size(); ++t) {
        const auto [least, most] = std::minmax_element(blocks[t].begin(), blocks[t].end());
        const double largest = std::max(std::fabs(*least), std::fabs(*most));
        const double step = has_zeros ? (double{*most} - *least) / 15 : largest / 7;
        // F16 does not have other scales with all their bits.
        if ((step < 0x1p-14 && largest * 0x1p-11 < 15 * step) || step > 65504) continue;
        if (!has_zeros && step < 0x1p-14 && largest != 0) continue;
        const double tolerance = 0.52 * step + 0x1p-9 * (has_zeros ? largest : 0);
        for (int half = 0; half < 2; ++half) {
          const double scale = decode(f16_format, append.scales[2 * t + size_t(half)]);
          const double zero = has_zeros ? decode(f16_format, append.zeros[2 * t + size_t(half)]) : 8;
          for (int i = 0; i < group; ++i) {
            const size_t at = 2 * t * size_t(group) + size_t(half * group + i);
            const int number = append.cache[at / 2] >> (at % 2 * 4) & 15;
            const double got = scale * (number - zero), x = blocks[t][size_t(i)];
            if (!(std::fabs(got - x) <= tolerance) && ++wrong <= 5)
              UNSCOPED_INFO("group " << t << ", element " << i << ": " << got << ", not " << x << " +- "
                                     << tolerance);
          }
        }
      }
      CHECK(wrong == 0);
    }
}

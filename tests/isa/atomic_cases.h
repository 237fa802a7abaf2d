//===- atomic_cases.h - every atomic, with operands and results -----------------------------------------===//
//
// Lanes have different operands, among them equal ones, NaNs, denormals and zeros of both signs.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "isa/atomic_model.h"

namespace sluice::test {

inline constexpr uint64_t interesting[] = {
    0,
    1,
    5,
    0x80000000,
    0x8000000000000000,
    0xffffffffffffffff,
    0x7fffffff7fffffff,
    0x8000000080000000,
    0x3f8000003f800000, // 1.0f, and 0.0078 as f64
    0x3ff0000000000000, // 1.0
    0xbff8000000000000, // -1.5
    0x0000000000400001, // a denormal f32 and f64
    0x800000000000ffff, // others, and a bf16 NaN
    0x8000000100000002, // denormal f32
    0x7ff0000000000000, // infinity
    0xfff0000000000000, // -infinity
    0x7f8000007f800000, // infinity as f32
    0xff800000ff800000, // -infinity as f32
    0x7ff0000000000123, // signaling NaN
    0xfff8000000000456, // quiet NaN
    0x7f8000017f800001, // signaling NaN as f32
    0x7fc000a57fc000a5, // quiet NaN as f32
    0x3c0000013c008001, // f16: 1 and denormals
    0x0001020380017c01, // f16: denormals and a signaling NaN
    0x4248bc017e00fe01, // f16: others
    0x3e9900013e99abcd, // bf16: small
    0x00017f810001ff91, // bf16: denormals and signaling NaN
    0x123456789abcdef0,
};
inline constexpr size_t patterns = std::size(interesting);

struct Operands {
  uint64_t tmp, data, data2;
};
/// Different in each round; in every round some are equal.
inline Operands operands_of(uint32_t lane, uint32_t round) {
  const uint64_t tmp = interesting[(lane + round) % patterns];
  const uint64_t data = lane % 5 == 0 ? tmp : interesting[(lane * 11 + round * 5 + 3) % patterns];
  return {tmp, data, interesting[(lane * 7 + round + 9) % patterns]};
}
inline void fill_operands(uint8_t *input, uint32_t round) {
  for (uint32_t lane = 0; lane < 64; ++lane) {
    const Operands o = operands_of(lane, round);
    std::memcpy(input + 16 * lane, &o.tmp, 8);
    std::memcpy(input + 16 * lane + 8, &o.data, 8);
    std::memcpy(input + 1024 + 16 * lane, &o.data2, 8);
  }
}

struct AtomicCase {
  const char *name; // without "ds_" and "rtn_"
  uint32_t bytes;
  bool two_operands;
  std::function<uint64_t(const Operands &)> changed;
  bool only_returning = false;
};

inline int32_t i32(uint64_t x) {
  return int32_t(uint32_t(x));
}
inline Operands cut(const Operands &o) {
  return {uint32_t(o.tmp), uint32_t(o.data), uint32_t(o.data2)};
}

inline std::vector<AtomicCase> integer_cases() {
  std::vector<AtomicCase> cases;
  struct Both {
    const char *name;
    const char *type32, *type64;
    bool two;
    std::function<uint64_t(const Operands &)> changed;
  };
  const Both both[] = {
      {"add", "_u32", "_u64", false, [](const Operands &o) { return o.tmp + o.data; }},
      {"sub", "_u32", "_u64", false, [](const Operands &o) { return o.tmp - o.data; }},
      {"rsub", "_u32", "_u64", false, [](const Operands &o) { return o.data - o.tmp; }},
      {"inc", "_u32", "_u64", false, [](const Operands &o) { return o.tmp >= o.data ? 0 : o.tmp + 1; }},
      {"dec", "_u32", "_u64", false,
       [](const Operands &o) { return o.tmp == 0 || o.tmp > o.data ? o.data : o.tmp - 1; }},
      {"min", "_u32", "_u64", false, [](const Operands &o) { return std::min(o.tmp, o.data); }},
      {"max", "_u32", "_u64", false, [](const Operands &o) { return std::max(o.tmp, o.data); }},
      {"and", "_b32", "_b64", false, [](const Operands &o) { return o.tmp & o.data; }},
      {"or", "_b32", "_b64", false, [](const Operands &o) { return o.tmp | o.data; }},
      {"xor", "_b32", "_b64", false, [](const Operands &o) { return o.tmp ^ o.data; }},
      {"mskor", "_b32", "_b64", true, [](const Operands &o) { return (o.tmp & ~o.data) | o.data2; }},
      {"cmpst", "_b32", "_b64", true, [](const Operands &o) { return o.tmp == o.data ? o.data2 : o.tmp; }},
  };
  static std::vector<std::string> names;
  names.reserve(200);
  for (const Both &row : both) {
    names.push_back(std::string(row.name) + row.type32);
    cases.push_back(
        {names.back().c_str(), 4, row.two, [=](const Operands &o) { return row.changed(cut(o)); }});
    names.push_back(std::string(row.name) + row.type64);
    cases.push_back({names.back().c_str(), 8, row.two, row.changed});
  }
  cases.push_back(
      {"min_i32", 4, false, [](const Operands &o) { return uint64_t(std::min(i32(o.tmp), i32(o.data))); }});
  cases.push_back(
      {"max_i32", 4, false, [](const Operands &o) { return uint64_t(std::max(i32(o.tmp), i32(o.data))); }});
  cases.push_back({"min_i64", 8, false,
                   [](const Operands &o) { return uint64_t(std::min(int64_t(o.tmp), int64_t(o.data))); }});
  cases.push_back({"max_i64", 8, false,
                   [](const Operands &o) { return uint64_t(std::max(int64_t(o.tmp), int64_t(o.data))); }});
  cases.push_back({"wrxchg_b32", 4, false, [](const Operands &o) { return o.data; }, true});
  cases.push_back({"wrxchg_b64", 8, false, [](const Operands &o) { return o.data; }, true});
  cases.push_back({"wrap_b32", 4, true,
                   [](const Operands &o) {
                     const uint32_t tmp = uint32_t(o.tmp), data = uint32_t(o.data);
                     return uint64_t(tmp >= data ? tmp - data : tmp + uint32_t(o.data2));
                   },
                   true});
  cases.push_back({"condxchg32_b64", 8, false,
                   [](const Operands &o) {
                     uint32_t halves[2] = {uint32_t(o.tmp), uint32_t(o.tmp >> 32)};
                     for (int i = 0; i < 2; ++i) {
                       const uint32_t data = uint32_t(o.data >> 32 * i);
                       if (int32_t(data) < 0) halves[i] = data & 0x7fffffff;
                     }
                     return halves[0] | uint64_t(halves[1]) << 32;
                   },
                   true});
  return cases;
}

/// `inputs` and `results`: whether MODE keeps denormals, for 32 bits and for the others.
inline std::vector<AtomicCase> float_cases(bool inputs, bool results) {
  using namespace model;
  auto packed = [=](const FloatShape &s, const Operands &o) {
    uint64_t sum = 0;
    for (int shift : {0, 16})
      sum |= model::add(s, o.tmp >> shift & 0xffff, o.data >> shift & 0xffff, !inputs, !results) << shift;
    return sum;
  };
  return {
      {"add_f32", 4, false,
       [=](const Operands &o) { return model::add(f32, cut(o).tmp, cut(o).data, !inputs, !results); }},
      {"add_f64", 8, false, [](const Operands &o) { return model::add(f64, o.tmp, o.data, false, false); }},
      {"min_f32", 4, false,
       [=](const Operands &o) { return select(f32, cut(o).tmp, cut(o).data, false, !inputs); }},
      {"max_f32", 4, false,
       [=](const Operands &o) { return select(f32, cut(o).tmp, cut(o).data, true, !inputs); }},
      {"min_f64", 8, false, [=](const Operands &o) { return select(f64, o.tmp, o.data, false, !inputs); }},
      {"max_f64", 8, false, [=](const Operands &o) { return select(f64, o.tmp, o.data, true, !inputs); }},
      {"cmpst_f32", 4, true,
       [=](const Operands &o) { return compare_store(f32, cut(o).tmp, cut(o).data, cut(o).data2, !inputs); }},
      {"cmpst_f64", 8, true,
       [=](const Operands &o) { return compare_store(f64, o.tmp, o.data, o.data2, !inputs); }},
      {"pk_add_f16", 4, false, [=](const Operands &o) { return packed(f16, o); }},
      {"pk_add_bf16", 4, false, [=](const Operands &o) { return packed(bf16, o); }},
  };
}

} // namespace sluice::test

//===- mode_min_max_test.cpp - NaNs and zeros in minimum, maximum and median ----------------------------===//
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

#include "isa/mode_rows.h"

namespace sluice::test {

TEST_CASE("min and max: signalling NaNs count with IEEE only, quiet ones never, and -0 is below 0",
          "[isa][mode]") {
  struct Type {
    OperandType type;
    const char *name;
    uint32_t registers;
    std::vector<uint64_t> values;
  };
  const Type types[] = {
      {OperandType::f32,
       "f32",
       1,
       {0, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00001, 0xffd00000, 0x7f800001,
        0xffa00000, 1, 0x80000001}},
      {OperandType::f16,
       "f16",
       1,
       {0, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e01, 0xff00, 0x7c01, 0xfd00, 1, 0x8001}},
      {OperandType::f64,
       "f64",
       2,
       {0, 0x8000000000000000, 0x3ff0000000000000, 0xbff0000000000000, 0x7ff0000000000000, 0xfff0000000000000,
        0x7ff8000000000001, 0xfffc000000000000, 0x7ff0000000000001, 0xfff4000000000000, 1,
        0x8000000000000001}},
  };
  for (emulator::SimdPath path : simd_paths())
    for (const Type &type : types)
      for (bool ieee : {true, false}) {
        const uint64_t quiet = uint64_t(1) << (width_of(type.type).mantissa - 1);
        auto is_nan = [&](uint64_t x) { return nan_bits(x, type.type); };
        auto signals = [&](uint64_t x) { return is_nan(x) && (x & quiet) == 0; };
        auto extreme = [&](uint64_t a, uint64_t b, bool largest) {
          if (ieee && signals(a)) return a | quiet;
          if (ieee && signals(b)) return b | quiet;
          if (is_nan(a)) return b;
          if (is_nan(b)) return a;
          const double x = number(a, type.type), y = number(b, type.type);
          const bool a_below = x < y || (x == y && std::signbit(x));
          return a_below == largest ? b : a;
        };
        auto median = [&](uint64_t a, uint64_t b, uint64_t c) {
          if (is_nan(a) || is_nan(b) || is_nan(c)) return extreme(extreme(a, b, false), c, false);
          uint64_t sorted[] = {a, b, c};
          std::sort(sorted, sorted + 3,
                    [&](uint64_t x, uint64_t y) { return extreme(x, y, false) == x && x != y; });
          return sorted[1];
        };
        TestWave t(path);
        t.wave.set_mode(Mode{.ieee = ieee}.bits());
        const bool wide = type.registers == 2;
        auto reg = [&](uint32_t first) { return registers_text(first, type.registers); };
        const std::string name = type.name;
        std::string source = "v_min_" + name + " " + reg(8) + ", " + reg(2) + ", " + reg(4) + "\nv_max_" +
                             name + " " + reg(10) + ", " + reg(2) + ", " + reg(4) + "\n";
        for (const char *three : {"min3", "max3", "med3"})
          if (!wide)
            source += std::string("v_") + three + "_" + name + " v" +
                      (three[1] == 'i'   ? "12"
                       : three[1] == 'a' ? "14"
                                         : "16") +
                      ", v2, v4, v6\n";
        const auto code = t.prepare(source);
        const size_t count = type.values.size();
        uint32_t wrong = 0;
        for (size_t start = 0; start < count * count * count; start += 64) {
          for (uint32_t lane = 0; lane < 64; ++lane) {
            const size_t at = start + lane;
            const uint64_t operands[] = {type.values[at % count], type.values[at / count % count],
                                         type.values[at / count / count % count]};
            for (uint32_t k = 0; k < 3; ++k) {
              t.v(2 + 2 * k, lane) = uint32_t(operands[k]);
              t.v(3 + 2 * k, lane) = uint32_t(operands[k] >> 32);
            }
          }
          t.run(code);
          for (uint32_t lane = 0; lane < 64; ++lane) {
            auto value = [&](uint32_t r) -> uint64_t { return wide ? t.vv(r, lane) : t.v(r, lane); };
            const uint64_t a = value(2), b = value(4), c = value(6);
            auto compare = [&](uint32_t r, uint64_t expected) {
              const bool right = is_nan(expected) ? is_nan(value(r)) : value(r) == expected;
              if (!right && wrong == 0)
                UNSCOPED_INFO(name << " v" << r << std::hex << " of " << a << " " << b << " " << c << ": "
                                   << value(r) << ", not " << expected);
              wrong += !right;
            };
            compare(8, extreme(a, b, false));
            compare(10, extreme(a, b, true));
            if (wide) continue;
            compare(12, extreme(extreme(a, b, false), c, false));
            compare(14, extreme(extreme(a, b, true), c, true));
            compare(16, median(a, b, c));
          }
        }
        CHECK(wrong == 0);
      }
}

} // namespace sluice::test

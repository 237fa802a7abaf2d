//===- mode_rows.h - float instructions under settings of MODE ------------------------------------------===//
//
// Every row of the table of vector instructions is run plain on changed operands, and its result is changed
// by the manual's rule: the same row must give that in the mode.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <functional>
#include <string>

#include "isa/row_text.h"
#include "isa/wave_fixture.h"

namespace sluice::test {

using emulator::OperandType;
using emulator::ValuForm;
using emulator::ValuRow;

struct Mode {
  uint32_t round_32 = 0, round_16_64 = 0; // 0 nearest, 1 up, 2 down, 3 toward zero
  uint32_t denormal_32 = 3, denormal_16_64 = 3;
  bool dx10_clamp = true, ieee = true, fp16_overflow = false;

  uint32_t bits() const {
    return round_32 | round_16_64 << 2 | denormal_32 << 4 | denormal_16_64 << 6 | uint32_t(dx10_clamp) << 8 |
           uint32_t(ieee) << 9 | uint32_t(fp16_overflow) << 23;
  }
};

//===--- Numbers of a type ------------------------------------------------------------------------------===//

struct Width {
  uint32_t mantissa;
  uint64_t infinity;
};
Width width_of(OperandType type);

bool is_single(OperandType type);
bool nan_bits(uint64_t bits, OperandType type);
uint64_t flushed(uint64_t bits, OperandType type);
double number(uint64_t bits, OperandType type);
uint64_t bits_of(double x, OperandType type);

/// Each number of a register (pair) of a type, through `change`.
void change_numbers(TestWave &t, uint32_t first, OperandType type,
                    const std::function<uint64_t(uint64_t)> &change);

//===--- Every row --------------------------------------------------------------------------------------===//

/// Runs every row in `mode`, and plain with operands and result changed; `after` may also see the operands.
void check_rows(const Mode &mode, const Mode &plain_mode, const std::string &modifier,
                const std::function<bool(const ValuRow &)> &wanted,
                const std::function<void(const ValuRow &, TestWave &)> &before,
                const std::function<void(const ValuRow &, TestWave &)> &after, size_t at_least);

inline void unchanged(const ValuRow &, TestWave &) {}

} // namespace sluice::test

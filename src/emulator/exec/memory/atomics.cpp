//===- atomics.cpp - what atomics compute ---------------------------------------------------------------===//
#include <algorithm>
#include <bit>
#include <cmath>

#include "emulator/exec/memory/memory_rows.h"
#include "support/half.h"

namespace sluice::emulator {

namespace {

float f32(uint64_t bits) {
  return std::bit_cast<float>(uint32_t(bits));
}
uint64_t bits(float value) {
  return std::bit_cast<uint32_t>(value);
}
double f64(uint64_t value) {
  return std::bit_cast<double>(value);
}
uint64_t bits(double value) {
  return std::bit_cast<uint64_t>(value);
}

uint64_t add_halves(uint64_t old, uint64_t operand, float (*widen)(uint16_t), uint16_t (*narrow)(float)) {
  const uint32_t low = narrow(widen(uint16_t(old)) + widen(uint16_t(operand)));
  const uint32_t high = narrow(widen(uint16_t(old >> 16)) + widen(uint16_t(operand >> 16)));
  return low | high << 16;
}

struct Row {
  std::string_view name;
  AtomicBody body;
  uint8_t bytes;
  bool compare = false;
};

// Integer operations come in 32 and 64 bits ("_x2"); the body works on 64 and the width is cut on storing.
const Row table[] = {
    {"swap", [](uint64_t, uint64_t b, uint64_t) { return b; }, 0},
    {"cmpswap", [](uint64_t a, uint64_t b, uint64_t c) { return a == c ? b : a; }, 0, true},
    {"add", [](uint64_t a, uint64_t b, uint64_t) { return a + b; }, 0},
    {"sub", [](uint64_t a, uint64_t b, uint64_t) { return a - b; }, 0},
    {"rsub", [](uint64_t a, uint64_t b, uint64_t) { return b - a; }, 0},
    {"and", [](uint64_t a, uint64_t b, uint64_t) { return a & b; }, 0},
    {"or", [](uint64_t a, uint64_t b, uint64_t) { return a | b; }, 0},
    {"xor", [](uint64_t a, uint64_t b, uint64_t) { return a ^ b; }, 0},
    {"umin", [](uint64_t a, uint64_t b, uint64_t) { return std::min(a, b); }, 0},
    {"umax", [](uint64_t a, uint64_t b, uint64_t) { return std::max(a, b); }, 0},
    {"smin", [](uint64_t a, uint64_t b, uint64_t) { return uint64_t(std::min(int32_t(a), int32_t(b))); }, 4},
    {"smax", [](uint64_t a, uint64_t b, uint64_t) { return uint64_t(std::max(int32_t(a), int32_t(b))); }, 4},
    {"smin_x2", [](uint64_t a, uint64_t b, uint64_t) { return uint64_t(std::min(int64_t(a), int64_t(b))); },
     8},
    {"smax_x2", [](uint64_t a, uint64_t b, uint64_t) { return uint64_t(std::max(int64_t(a), int64_t(b))); },
     8},
    // counts up to the operand, then starts again at 0; and down
    {"inc", [](uint64_t a, uint64_t b, uint64_t) { return a >= b ? 0 : a + 1; }, 0},
    {"dec", [](uint64_t a, uint64_t b, uint64_t) { return a == 0 || a > b ? b : a - 1; }, 0},
    {"add_f32", [](uint64_t a, uint64_t b, uint64_t) { return bits(f32(a) + f32(b)); }, 4},
    {"min_f32", [](uint64_t a, uint64_t b, uint64_t) { return bits(std::fmin(f32(a), f32(b))); }, 4},
    {"max_f32", [](uint64_t a, uint64_t b, uint64_t) { return bits(std::fmax(f32(a), f32(b))); }, 4},
    {"add_f64", [](uint64_t a, uint64_t b, uint64_t) { return bits(f64(a) + f64(b)); }, 8},
    {"min_f64", [](uint64_t a, uint64_t b, uint64_t) { return bits(std::fmin(f64(a), f64(b))); }, 8},
    {"max_f64", [](uint64_t a, uint64_t b, uint64_t) { return bits(std::fmax(f64(a), f64(b))); }, 8},
    {"pk_add_f16",
     [](uint64_t a, uint64_t b, uint64_t) {
       return add_halves(a, b, support::f16_to_float, [](float x) { return support::f16_from_float(x); });
     },
     4},
    {"pk_add_bf16",
     [](uint64_t a, uint64_t b, uint64_t) {
       return add_halves(a, b, support::bf16_to_float, [](float x) { return support::bf16_from_float(x); });
     },
     4},
};

} // namespace

std::optional<AtomicOperation> memory_atomic(std::string_view operation) {
  for (const Row &row : table)
    if (row.name == operation)
      return AtomicOperation{row.body, uint8_t(row.bytes == 0 ? 4 : row.bytes), row.compare};
  if (!operation.ends_with("_x2")) return std::nullopt;
  for (const Row &row : table)
    if (row.bytes == 0 && row.name == operation.substr(0, operation.size() - 3))
      return AtomicOperation{row.body, 8, row.compare};
  return std::nullopt;
}

} // namespace sluice::emulator

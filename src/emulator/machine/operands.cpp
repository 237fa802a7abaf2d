//===- operands.cpp - registers and constants that encodings name ---------------------------------------===//
#include "emulator/machine/operands.h"

#include <bit>

#include "emulator/isa/wave.h"
#include "support/half.h"

namespace sluice::emulator {

namespace {

constexpr double float_constants[] = {0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0};
constexpr uint16_t first_float_code = 240;
constexpr uint16_t inverse_two_pi_code = 248;

struct Wide {
  uint32_t low;
  uint32_t high;
};
Wide split(uint64_t value) {
  return {uint32_t(value), uint32_t(value >> 32)};
}

Wide float_constant(uint16_t code, OperandType type) {
  const bool inverse_pi = code == inverse_two_pi_code;
  const double value = inverse_pi ? 0 : float_constants[code - first_float_code];
  switch (type) {
  case OperandType::f64:
  case OperandType::b64:
  case OperandType::i64:
    return split(inverse_pi ? 0x3fc45f306dc9c882 : std::bit_cast<uint64_t>(value));
  case OperandType::f16:
  case OperandType::b16:
  case OperandType::packed_f16:
  case OperandType::packed_b16:
    return {inverse_pi ? 0x3118u : support::f16_from_float(float(value)), 0};
  default: {
    const uint32_t bits = inverse_pi ? 0x3e22f983 : std::bit_cast<uint32_t>(float(value));
    return {bits, type == OperandType::packed_f32 ? bits : 0};
  }
  }
}

Wide integer_constant(int32_t value, OperandType type) {
  if (type == OperandType::packed_f32) return {uint32_t(value), uint32_t(value)};
  return split(uint64_t(int64_t(value)));
}

Wide literal_constant(uint32_t value, OperandType type) {
  switch (type) {
  case OperandType::f64:
    return {0, value};
  case OperandType::i64:
    return split(uint64_t(int64_t(int32_t(value))));
  case OperandType::packed_f32:
    return {value, value};
  default:
    return {value, 0};
  }
}

} // namespace

uint16_t ConstantPool::operand(uint32_t low, uint32_t high) {
  const auto found = known.find({low, high});
  if (found != known.end()) return found->second;
  const size_t row = all.size() / wave_lanes;
  if (first_constant + row + 1 >= no_operand)
    throw Refusal{"the code object has too many different constants"};
  all.insert(all.end(), wave_lanes, low);
  all.insert(all.end(), wave_lanes, high);
  const uint16_t result = uint16_t(first_constant + row);
  known[{low, high}] = result;
  return result;
}

uint16_t ConstantPool::source(uint16_t code, OperandType type, const Fields &fields) {
  if (code >= code_first_vgpr) return uint16_t(code - code_first_vgpr);
  if (code < 128) return uint16_t(first_sgpr + code);
  auto constant = [&](Wide value) { return operand(value.low, value.high); };
  if (code <= 192) return constant(integer_constant(code - 128, type));
  if (code <= 208) return constant(integer_constant(192 - code, type));
  if (code >= first_float_code && code <= inverse_two_pi_code) return constant(float_constant(code, type));
  switch (code) {
  case 235: // SRC_SHARED_BASE and _LIMIT, SRC_PRIVATE_BASE and _LIMIT
    return constant(split(shared_aperture));
  case 236:
    return constant(split(shared_aperture + aperture_bytes - 1));
  case 237:
    return constant(split(private_aperture));
  case 238:
    return constant(split(private_aperture + aperture_bytes - 1));
  case code_scc:
    return scc_operand;
  case code_literal:
    return constant(literal_constant(fields.literal, type));
  case code_vccz:
  case code_execz:
    throw Refusal{"VCCZ and EXECZ are not supported as operands"};
  default:
    throw Refusal{"operand code " + std::to_string(code) + " is not supported"};
  }
}

uint16_t vector_register(uint32_t number, bool accumulation) {
  return uint16_t(number + (accumulation ? first_agpr : 0));
}

uint16_t matrix_register(uint32_t number, uint32_t rows, bool accumulation) {
  if (rows > 1 && number % 2 != 0) throw Refusal{"a matrix operand must start at an even register"};
  if (number + rows > first_agpr) throw Refusal{"a matrix operand reaches beyond the last register"};
  return vector_register(number, accumulation);
}

uint16_t scalar_register(uint32_t number) {
  if (number >= 128) throw Refusal{"the destination is not a scalar register"};
  return uint16_t(first_sgpr + number);
}

} // namespace sluice::emulator

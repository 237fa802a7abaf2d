//===- mfma_layout.cpp - which element of a matrix a lane's register holds ------------------------------===//
#include "emulator/exec/mfma_paths.h"

namespace sluice::emulator {

namespace {

/// Which element of a row of A (column of B) is in a lane: its block, row (column) and k.
MfmaElement input_element(const MfmaShape &shape, uint32_t run, uint32_t lane, uint32_t element) {
  const uint32_t part = lane / shape.m;
  const uint32_t k = element / run * run * detail::runs_per_k_step(shape) + part / shape.blocks * run;
  return {uint16_t(part % shape.blocks), uint16_t(lane % shape.m), uint16_t(k + element % run)};
}

} // namespace

MfmaElement mfma_a_element(const MfmaShape &shape, uint32_t lane, uint32_t element) {
  return input_element(shape, detail::a_run(shape), lane, element);
}

MfmaElement mfma_b_element(const MfmaShape &shape, uint32_t lane, uint32_t element) {
  const MfmaElement transposed = input_element(shape, detail::b_run(shape), lane, element);
  return {transposed.block, transposed.column, transposed.row}; // M equals N in every shape
}

MfmaElement mfma_c_element(const MfmaShape &shape, uint32_t lane, uint32_t element) {
  const uint32_t group = lane / shape.n; // group of lanes
  const uint16_t column = uint16_t(lane % shape.n);
  if (shape.input == MfmaInput::f64)
    return {uint16_t(group % shape.blocks), uint16_t(4 * element + group / shape.blocks), column};
  if (shape.m == 4) return {uint16_t(group), uint16_t(element), column};
  const uint32_t block_registers = shape.m * shape.n / 64u;
  const uint32_t in_block = element % block_registers;
  const uint32_t row = 4 * (64u / shape.n) * (in_block / 4) + 4 * group + in_block % 4;
  return {uint16_t(element / block_registers), uint16_t(row), column};
}

} // namespace sluice::emulator

//===- decoder.cpp - from encodings to operations -------------------------------------------------------===//
//
// Joins the encoding (fields) with the tables (rows). Anything that the machine does not do exactly is
// refused here, with the reason; it stops the wave that reaches it.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/machine/decoder.h"

#include <span>

#include "emulator/exec/matrix.h"
#include "emulator/isa/mfma_shapes.h"
#include "emulator/isa/wave.h"

namespace sluice::emulator {

namespace {

Step stop_unknown(Wave &w, const Op &) {
  w.fault = Fault::unknown_instruction;
  return Step::stop;
}

// Numbers of hardware registers, for s_getreg_b32: MODE, STATUS, TRAPSTS, HW_ID, GPR_ALLOC, LDS_ALLOC, XCC_ID
// and SQ_PERF_SNAPSHOT_DATA.
constexpr uint64_t readable_registers = 0x7e | 3u << 20;
constexpr uint32_t register_mode = 1;

} // namespace

DecodedOp Decoder::refuse(std::string reason) {
  DecodedOp result;
  result.fast.run = result.strict.run = stop_unknown;
  result.refusal = std::move(reason);
  return result;
}

void Decoder::decode_scalar(const ScalarRow &row, const Fields &f, uint32_t position, DecodedOp &result) {
  Op op;
  op.run = row.run;
  op.value = f.imm;
  const bool has_dst = f.format == Format::sop1 || f.format == Format::sop2 || f.format == Format::sopk;
  if (has_dst) op.dst = uint16_t(first_sgpr + f.dst);
  for (uint32_t k = 0; k < 2; ++k)
    if (row.source_types[k] != OperandType::none) op.src[k] = pool.source(f.src[k], row.source_types[k], f);
  OpInfo &info = result.info;
  const Role role = info.role();
  const uint32_t hardware_register = uint32_t(f.imm) & 63;
  if (role == Role::get_register && (readable_registers >> hardware_register & 1) == 0)
    throw Refusal{"the machine does not model this hardware register"};
  if (writes_hardware_register(role) && hardware_register != register_mode)
    throw Refusal{"programs may write only the hardware register MODE"};
  if (role == Role::halt && (f.imm & 1) != 0)
    throw Refusal{"it halts the wave for a debugger, which the machine does not have"};
  // The bits of the field, not an operand, say which operands are indexed.
  if (role == Role::index_on) op.value = f.src[1] & 15;
  if (role == Role::set_register_literal) op.src[0] = pool.operand(f.literal, 0);
  // As a dword; the program turns it into an index.
  if (info.jumps()) op.value = int32_t(position) + 1 + f.imm;
  info.kind = role == Role::conditional_jump ? OpKind::branch : OpKind::scalar;
  info.definedness = row.definedness;
  if (info.facts->has(Fact::reads_m0)) info.m0_wait = M0Wait::required;
  if (role == Role::trace_data) info.m0_wait = M0Wait::trace;
  info.reads_mode =
      writes_hardware_register(role) || (role == Role::get_register && hardware_register == register_mode);
  if (role == Role::nop) info.wait_states = uint8_t((f.imm & 15) + 1);
  result.fast = result.strict = op;
}

void Decoder::decode_mfma(const Fields &f, DecodedOp &result) {
  const MfmaShape &shape = mfma_instructions()[result.info.facts->matrix].shape;
  std::string refusal = mfma_refusal(shape, {f.cbsz, f.abid, f.blgp});
  if (!refusal.empty()) throw Refusal{std::move(refusal)};
  Op op;
  op.run = run_mfma;
  op.mfma = {result.info.facts->matrix, f.cbsz, f.abid, f.blgp};
  OpInfo &info = result.info;
  info.kind = OpKind::mfma;
  info.matrix.unit = shape.unit();
  info.matrix.passes = shape.passes;
  info.matrix.a_rows = uint8_t(shape.a_registers());
  info.matrix.b_rows = uint8_t(shape.b_registers());
  info.matrix.result_rows = uint8_t(shape.c_registers());
  info.matrix.sparse = shape.sparse;

  op.dst = matrix_register(f.dst, info.matrix.result_rows, f.acc_cd);
  const uint32_t rows[3] = {info.matrix.a_rows, info.matrix.b_rows,
                            shape.sparse ? 1u : info.matrix.result_rows};
  for (uint32_t k = 0; k < 3; ++k) {
    // The index register of SMFMAC is always a VGPR.
    const bool accumulation = k < 2 ? (f.acc >> k & 1) != 0 : f.acc_cd && !shape.sparse;
    if (f.src[k] >= code_first_vgpr) {
      op.src[k] = matrix_register(f.src[k] - code_first_vgpr, rows[k], accumulation);
      continue;
    }
    op.src[k] = pool.source(f.src[k], shape.input == MfmaInput::f64 ? OperandType::f64 : OperandType::f32, f);
    if (k < 2 || shape.sparse || op.src[k] < first_constant)
      throw Refusal{"the operand must be a vector register"};
  }
  result.fast = result.strict = op;
}

bool Decoder::decode_by_format(const Instruction &instruction, const Fields &f, uint32_t position,
                               DecodedOp &result) {
  switch (f.format) {
  case Format::sop1:
  case Format::sop2:
  case Format::sopc:
  case Format::sopk:
  case Format::sopp: {
    const ScalarRow *const row = scalar_row(instruction.mnemonic);
    if (row) decode_scalar(*row, f, position, result);
    return row != nullptr;
  }
  case Format::mai:
    if (instruction.facts->pipe != Pipe::matrix) return decode_valu(instruction, f, result);
    decode_mfma(f, result);
    return true;
  case Format::vop1:
  case Format::vop2:
  case Format::vopc:
  case Format::vop3:
  case Format::vop3p:
    return decode_valu(instruction, f, result);
  case Format::ds:
  case Format::flat:
  case Format::mubuf:
  case Format::mtbuf:
  case Format::smem:
    return decode_memory(f, result);
  case Format::vintrp:
  case Format::unknown:
    break;
  }
  return false;
}

DecodedOp Decoder::decode(const Instruction &instruction, std::span<const uint32_t> dwords,
                          uint32_t position) {
  DecodedOp result;
  result.info.facts = instruction.facts;
  try {
    for (const RegisterRange &range : instruction.writes)
      if (range.first >= first_sgpr + sgpr_ttmp0 && range.first < first_sgpr + sgpr_m0)
        throw Refusal{"only a trap handler, which the machine does not have, writes the trap registers"};
    if (decode_by_format(instruction, split_fields(dwords), position, result)) return result;
  } catch (Refusal &refusal) {
    return refuse(std::move(refusal.reason));
  }
  const std::string_view reason = instruction.facts->left_out;
  return refuse(std::string(reason.empty() ? "the machine has no such instruction" : reason));
}

} // namespace sluice::emulator

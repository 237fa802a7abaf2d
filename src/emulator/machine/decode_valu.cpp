//===- decode_valu.cpp - operations of the vector ALU ---------------------------------------------------===//
#include <algorithm>

#include "emulator/isa/wave.h"
#include "emulator/machine/decoder.h"

namespace sluice::emulator {

namespace {

bool is_packed_type(OperandType type) {
  return type == OperandType::packed_b16 || type == OperandType::packed_f16 ||
         type == OperandType::packed_f32;
}
std::span<const OperandType> source_types(const ValuRow &row) {
  return std::span(row.source_types).first(row.sources);
}
bool is_packed(const ValuRow &row) {
  return std::ranges::any_of(source_types(row), is_packed_type);
}
/// The result is only a mask.
bool is_comparison(const ValuRow &row) {
  return row.result_type == OperandType::mask;
}

/// What the two rows say.
ValuControl control_of(const ValuRow &row, const InstructionFacts &facts) {
  ValuControl control;
  control.sources = row.sources;
  std::ranges::copy(source_types(row), control.source_types);
  control.result_type = row.result_type;
  control.keeps_half = row.form == ValuForm::keeps_half;
  control.accumulates = row.form == ValuForm::accumulate;
  control.rounds = facts.has(Fact::rounds);
  control.keeps_bits = facts.has(Fact::keeps_bits);
  control.transcendental = facts.pipe == Pipe::transcendental;
  control.quiets = facts.has(Fact::quiets);
  return control;
}

void place_destinations(const ValuRow &row, const InstructionFacts &facts, const Fields &f, Op &op) {
  const bool vop3 = f.format == Format::vop3;
  if (is_comparison(row)) {
    op.mask = scalar_register(vop3 ? f.dst : f.sdwa_has_sdst ? f.sdst : sgpr_vcc);
    return;
  }
  if (facts.has(Fact::scalar_result))
    op.dst = scalar_register(f.dst);
  else if (facts.role != Role::vector_nop)
    op.dst = vector_register(f.dst, facts.has(Fact::acc_result));
  if (row.mask_out) op.mask = uint16_t(first_sgpr + (vop3 ? f.sdst : sgpr_vcc));
}

/// In VOP3P the halves of a source have modifiers of their own.
void read_packed_modifiers(const ValuRow &row, Role role, const Fields &f, ValuModifiers &m) {
  const auto used = uint8_t((1u << row.sources) - 1);
  m.absolute = f.negate_high;
  m.select_high_for_high = f.op_sel_hi;
  m.packed_select = (f.op_sel & used) != 0 || (f.op_sel_hi & used) != used;
  const bool plain = !m.packed_select && f.negate == 0 && f.negate_high == 0;
  if (!is_packed(row)) {
    if (role != Role::mixed_fma && !plain)
      throw Refusal{"op_sel and neg are not supported with this instruction"};
    return;
  }
  for (uint32_t k = 0; k < row.sources; ++k)
    if (!is_packed_type(row.source_types[k]) && ((f.op_sel | f.negate_high) >> k & 1) != 0)
      throw Refusal{"op_sel and neg_hi have no meaning for a source that is not packed"};
}

void check_plain_modifiers(const ValuRow &row, ValuModifiers &m) {
  if (is_packed(row)) {
    m.select_high_for_high = 7;
    if ((m.negate | m.absolute | m.select_high) != 0)
      throw Refusal{"modifiers of packed operands have a meaning in VOP3P only"};
  }
  if (row.form == ValuForm::keeps_part) return;
  for (uint32_t k = 0; k < 4; ++k) {
    const OperandType type = k < row.sources ? row.source_types[k]
                             : k == 3        ? row.result_type
                                             : OperandType::none;
    if ((m.select_high >> k & 1) != 0 && !is_16_bit(type))
      throw Refusal{"op_sel selects a half of an operand that has no halves"};
  }
}

void read_lane_control(const Fields &f, ValuControl &control) {
  if (f.is_dpp) {
    control.modifiers.lane_control = lane_control_dpp;
    control.dpp = {f.dpp_control, f.dpp_bound_zero, f.dpp_bank_mask, f.dpp_row_mask};
  } else if (f.is_sdwa) {
    control.modifiers.lane_control = lane_control_sdwa;
    control.sdwa = {f.sdwa_dst, f.sdwa_unused, f.sdwa_src0, f.sdwa_src1, f.sdwa_sext0, f.sdwa_sext1};
  }
}

/// Refuses modifiers that neither the instruction nor the routine around its body applies.
void check_supported(const ValuRow &row, const InstructionFacts &facts, bool has_clamp_form,
                     const ValuModifiers &m) {
  const bool fused_mix = facts.role == Role::mixed_fma;
  if (m.clamp && !is_float(row.result_type) && !has_clamp_form && !facts.has(Fact::saturates) && !fused_mix)
    throw Refusal{"clamp is not supported with this instruction"};
  if (!row.run) return;
  const bool converts = row.form == ValuForm::keeps_part;
  if ((m.clamp && !fused_mix && !has_clamp_form) || m.output_scale != 0 ||
      ((m.negate | m.absolute) != 0 && !fused_mix && !converts))
    throw Refusal{"neg, abs, clamp and omod are not supported with this instruction"};
  if (m.lane_control != 0) throw Refusal{"DPP and SDWA are not supported with this instruction"};
}

void read_modifiers(const ValuRow &row, const InstructionFacts &facts, bool has_clamp_form, const Fields &f,
                    ValuControl &control) {
  ValuModifiers &m = control.modifiers;
  // VOP3B has a second destination in the place of these.
  const bool vop3b = f.format == Format::vop3 && row.mask_out && !is_comparison(row);
  m.negate = f.negate;
  m.absolute = vop3b ? 0 : f.absolute;
  m.output_scale = f.output_scale;
  m.select_high = vop3b ? 0 : f.op_sel;
  m.clamp = f.clamp;
  if (f.format == Format::vop3p)
    read_packed_modifiers(row, facts.role, f, m);
  else
    check_plain_modifiers(row, m);
  read_lane_control(f, control);
  check_supported(row, facts, has_clamp_form, m);
}

} // namespace

void Decoder::place_valu_sources(const ValuRow &row, const InstructionFacts &facts, const Fields &f, Op &op) {
  uint16_t codes[3] = {f.src[0], f.src[1], f.src[2]};
  if (row.form == ValuForm::fused_constant_1) codes[2] = codes[1], codes[1] = code_literal;
  if (row.form == ValuForm::fused_constant_2) codes[2] = code_literal;
  if (row.form == ValuForm::accumulate) codes[row.sources - 1] = uint16_t(code_first_vgpr + f.dst);
  for (uint32_t k = 0; k < row.sources; ++k) {
    op.src[k] = pool.source(codes[k], row.source_types[k], f);
    if (row.source_types[k] == OperandType::b128 && op.src[k] >= first_sgpr)
      throw Refusal{"four dwords that are not vector registers are not supported"};
  }
  if (facts.has(Fact::acc_source)) {
    if (op.src[0] >= first_agpr) throw Refusal{"the source is not an accumulation register"};
    op.src[0] += first_agpr;
  }
  if (row.mask_in) {
    const bool vcc = f.format != Format::vop3 || row.form == ValuForm::vcc_in;
    op.mask_in = vcc ? uint16_t(first_sgpr + sgpr_vcc) : pool.source(codes[row.sources], OperandType::b64, f);
  }
}

/// The routine around the body.
Handler Decoder::valu_routine(const ValuRow &row, Role role, const ValuControl &control) const {
  if (row.run) return row.run;
  if (is_comparison(row)) return role == Role::compare_exec ? valu.run_compare_exec : valu.run_compare;
  const bool simple = control.modifiers.none() && !row.mask_in && !row.mask_out && !control.keeps_half &&
                      row.sources > 0 && !is_two_rows(row.result_type) &&
                      std::ranges::none_of(source_types(row), is_two_rows);
  return simple ? valu.run_simple[row.sources] : valu.run_general;
}

bool Decoder::decode_valu(const Instruction &instruction, const Fields &f, DecodedOp &result) {
  const InstructionFacts &facts = *instruction.facts;
  const std::string name(facts.effect.empty() ? std::string_view(instruction.mnemonic) : facts.effect);
  const ValuRow *const clamped = f.clamp ? valu.find(name + " clamp") : nullptr;
  const ValuRow *const found = clamped ? clamped : valu.find(name);
  if (!found) return false;
  const ValuRow &row = *found;
  Op op;
  op.body = row.body;
  op.valu = control_of(row, facts);
  place_valu_sources(row, facts, f, op);
  place_destinations(row, facts, f, op);
  read_modifiers(row, facts, clamped != nullptr, f, op.valu);
  op.run = valu_routine(row, facts.role, op.valu);
  OpInfo &info = result.info;
  info.kind = OpKind::valu;
  info.definedness = row.definedness;
  info.dpp = f.is_dpp;
  const uint32_t result_select = row.form == ValuForm::keeps_part ? 12 : 8;
  info.half_write = (f.is_sdwa && f.sdwa_dst != 6) || (op.valu.modifiers.select_high & result_select) != 0;
  if (facts.role == Role::dot) info.dot = uint16_t(uint32_t(f.format) << 10 | f.op);
  result.fast = result.strict = op;
  return true;
}

} // namespace sluice::emulator

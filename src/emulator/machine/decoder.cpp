//===- decoder.cpp - from encodings to operations -------------------------------------------------------===//
//
// Joins the encoding (fields) with the tables (rows). Anything that the machine does not do exactly is
// refused here, with the reason; it stops the wave that reaches it.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/machine/decoder.h"

#include <bit>
#include <span>

#include "emulator/exec/matrix.h"
#include "emulator/exec/memory/buffer_format.h"
#include "emulator/isa/mfma_shapes.h"
#include "emulator/isa/wave.h"
#include "support/half.h"

namespace sluice::emulator {

namespace {

struct Refusal {
  std::string reason;
};

Step stop_unknown(Wave &w, const Op &) {
  w.fault = Fault::unknown_instruction;
  return Step::stop;
}

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

bool is_packed_type(OperandType type) {
  return type == OperandType::packed_b16 || type == OperandType::packed_f16 ||
         type == OperandType::packed_f32;
}

/// Instructions of gfx942 that this machine leaves out on purpose.
struct LeftOut {
  std::string_view mnemonic;
  std::string_view reason;
};
constexpr std::string_view trap_handler = "it belongs to a trap handler, which the machine does not have";
constexpr std::string_view barriers_only = "only the barriers of global wave sync are implemented";
constexpr LeftOut left_out[] = {
    {"s_rfe_b64", trap_handler},
    {"s_rfe_restore_b64", trap_handler},
    {"s_endpgm_saved", trap_handler},
    {"s_sendmsghalt", "it halts the wave for a debugger, which the machine does not have"},
    {"s_setvskip", "the machine does not skip vector instructions by MODE.VSKIP"},
    {"s_endpgm_ordered_ps_done", "it ends a pixel shader"},
    {"v_screen_partition_4se_b32", "its table is not documented"},
    {"v_clrexcp", "it clears exceptions for a trap handler, which the machine does not have"},
    {"ds_gws_sema_br", barriers_only},
    {"ds_gws_sema_p", barriers_only},
    {"ds_gws_sema_v", barriers_only},
};

std::string_view reason_without_row(std::string_view mnemonic) {
  for (const LeftOut &instruction : left_out)
    if (instruction.mnemonic == mnemonic) return instruction.reason;
  return "the machine has no such instruction";
}

// Numbers of hardware registers, for s_getreg_b32: MODE, STATUS, TRAPSTS, HW_ID, GPR_ALLOC, LDS_ALLOC, XCC_ID
// and SQ_PERF_SNAPSHOT_DATA.
constexpr uint64_t readable_registers = 0x7e | 3u << 20;
constexpr uint32_t register_mode = 1;

MemoryRoutines memory_routines(const InstructionFacts &facts, const Fields &f) {
  switch (f.format) {
  case Format::ds:
    return lds_routines(facts);
  case Format::flat:
    return flat_routines(facts);
  case Format::mubuf:
  case Format::mtbuf:
    return buffer_routines(facts, f.lds);
  default:
    return scalar_memory_routines(facts);
  }
}

uint16_t vector_register(uint32_t number, bool accumulation) {
  return uint16_t(number + (accumulation ? first_agpr : 0));
}

/// The first register of a matrix operand.
uint16_t matrix_register(uint32_t number, uint32_t rows, bool accumulation) {
  if (rows > 1 && number % 2 != 0) throw Refusal{"a matrix operand must start at an even register"};
  if (number + rows > first_agpr) throw Refusal{"a matrix operand reaches beyond the last register"};
  return vector_register(number, accumulation);
}

uint16_t scalar_register(uint32_t number) {
  if (number >= 128) throw Refusal{"the destination is not a scalar register"};
  return uint16_t(first_sgpr + number);
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

DecodedOp Decoder::refuse(std::string reason) {
  DecodedOp result;
  result.fast.run = result.strict.run = stop_unknown;
  result.refusal = std::move(reason);
  return result;
}

uint16_t Decoder::operand(uint16_t code, OperandType type, const Fields &fields) {
  if (code >= code_first_vgpr) return uint16_t(code - code_first_vgpr);
  if (code < 128) return uint16_t(first_sgpr + code);
  auto constant = [&](Wide value) { return pool.operand(value.low, value.high); };
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

void Decoder::decode_scalar(const ScalarRow &row, const Fields &f, uint32_t position, DecodedOp &result) {
  Op op;
  op.run = row.run;
  op.value = f.imm;
  const bool has_dst = f.format == Format::sop1 || f.format == Format::sop2 || f.format == Format::sopk;
  if (has_dst) op.dst = uint16_t(first_sgpr + f.dst);
  for (uint32_t k = 0; k < 2; ++k)
    if (row.source_types[k] != OperandType::none) op.src[k] = operand(f.src[k], row.source_types[k], f);
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

void Decoder::decode_valu(const ValuRow &row, bool has_clamp_form, const Fields &f, DecodedOp &result) {
  const InstructionFacts &facts = *result.info.facts;
  const Role role = facts.role;
  const bool vop3 = f.format == Format::vop3;
  const bool compare = row.result_type == OperandType::mask;
  const bool vop3b = vop3 && row.mask_out && !compare;
  Op op;
  op.body = row.body;
  op.valu = ValuControl{};
  op.valu.sources = row.sources;
  op.valu.result_type = row.result_type;
  op.valu.keeps_half = row.form == ValuForm::keeps_half;
  op.valu.accumulates = row.form == ValuForm::accumulate;

  op.valu.rounds = facts.has(Fact::rounds);
  op.valu.keeps_bits = facts.has(Fact::keeps_bits);
  op.valu.transcendental = facts.pipe == Pipe::transcendental;
  op.valu.quiets = facts.has(Fact::quiets);

  // Sources
  uint16_t codes[3] = {f.src[0], f.src[1], f.src[2]};
  if (row.form == ValuForm::fused_constant_1) codes[2] = codes[1], codes[1] = code_literal;
  if (row.form == ValuForm::fused_constant_2) codes[2] = code_literal;
  if (row.form == ValuForm::accumulate) codes[row.sources - 1] = uint16_t(code_first_vgpr + f.dst);
  bool packed = false;
  for (uint32_t k = 0; k < row.sources; ++k) {
    op.valu.source_types[k] = row.source_types[k];
    packed = packed || is_packed_type(row.source_types[k]);
    op.src[k] = operand(codes[k], row.source_types[k], f);
    if (row.source_types[k] == OperandType::b128 && op.src[k] >= first_sgpr)
      throw Refusal{"four dwords that are not vector registers are not supported"};
  }

  // Destination
  if (compare) {
    op.mask = scalar_register(vop3 ? f.dst : f.sdwa_has_sdst ? f.sdst : sgpr_vcc);
  } else if (role == Role::read_first_lane || role == Role::read_lane) {
    op.dst = scalar_register(f.dst);
  } else if (role != Role::vector_nop) {
    op.dst = f.dst;
  }
  if (role == Role::acc_write || role == Role::acc_move) op.dst += first_agpr;
  // The names of the moves say which side is an AccVGPR; their ACC bits mean nothing.
  if (role == Role::acc_move || role == Role::acc_read) {
    if (op.src[0] >= first_agpr) throw Refusal{"the source is not an accumulation register"};
    op.src[0] += first_agpr;
  }
  if (row.mask_out && !compare) op.mask = uint16_t(first_sgpr + (vop3 ? f.sdst : sgpr_vcc));
  if (row.mask_in) {
    const bool vcc = !vop3 || row.form == ValuForm::vcc_in;
    op.mask_in = vcc ? uint16_t(first_sgpr + sgpr_vcc) : operand(codes[row.sources], OperandType::b64, f);
  }

  // Modifiers
  ValuModifiers &m = op.valu.modifiers;
  const bool fused_mix = role == Role::mixed_fma;
  m.negate = f.negate;
  m.absolute = vop3b ? 0 : f.absolute;
  m.output_scale = f.output_scale;
  m.select_high = vop3b ? 0 : f.op_sel;
  m.clamp = f.clamp;
  if (f.format == Format::vop3p) {
    const uint8_t used = uint8_t((1u << row.sources) - 1);
    m.absolute = f.negate_high;
    m.select_high_for_high = f.op_sel_hi;
    m.packed_select = (f.op_sel & used) != 0 || (f.op_sel_hi & used) != used;
    const bool plain = !m.packed_select && f.negate == 0 && f.negate_high == 0;
    if (!packed && !fused_mix && !plain)
      throw Refusal{"op_sel and neg are not supported with this instruction"};
    for (uint32_t k = 0; k < row.sources; ++k)
      if (packed && !is_packed_type(row.source_types[k]) && ((f.op_sel | f.negate_high) >> k & 1) != 0)
        throw Refusal{"op_sel and neg_hi have no meaning for a source that is not packed"};
  } else {
    if (packed) {
      m.select_high_for_high = 7;
      if ((m.negate | m.absolute | m.select_high) != 0)
        throw Refusal{"modifiers of packed operands have a meaning in VOP3P only"};
    }
    const bool parts = row.form == ValuForm::keeps_part;
    for (uint32_t k = 0; k < 4 && !parts; ++k) {
      const OperandType type = k < row.sources ? row.source_types[k]
                               : k == 3        ? row.result_type
                                               : OperandType::none;
      if ((m.select_high >> k & 1) != 0 && !is_16_bit(type))
        throw Refusal{"op_sel selects a half of an operand that has no halves"};
    }
  }
  if (m.clamp && !is_float(row.result_type) && !has_clamp_form && !facts.has(Fact::saturates) && !fused_mix)
    throw Refusal{"clamp is not supported with this instruction"};
  if (f.is_dpp) {
    m.lane_control = lane_control_dpp;
    op.valu.dpp = {f.dpp_control, f.dpp_bound_zero, f.dpp_bank_mask, f.dpp_row_mask};
  } else if (f.is_sdwa) {
    m.lane_control = lane_control_sdwa;
    op.valu.sdwa = {f.sdwa_dst, f.sdwa_unused, f.sdwa_src0, f.sdwa_src1, f.sdwa_sext0, f.sdwa_sext1};
  }
  const bool converts = row.form == ValuForm::keeps_part;
  if (row.run && ((m.clamp && !fused_mix && !has_clamp_form) || m.output_scale != 0 ||
                  ((m.negate | m.absolute) != 0 && !fused_mix && !converts)))
    throw Refusal{"neg, abs, clamp and omod are not supported with this instruction"};
  if (row.run && m.lane_control != 0) throw Refusal{"DPP and SDWA are not supported with this instruction"};

  // The routine around the body
  if (row.run) {
    op.run = row.run;
  } else if (compare) {
    op.run = role == Role::compare_exec ? valu.run_compare_exec : valu.run_compare;
  } else {
    bool simple = m.none() && !row.mask_in && !row.mask_out && !op.valu.keeps_half && row.sources > 0 &&
                  !is_two_rows(row.result_type);
    for (uint32_t k = 0; k < row.sources; ++k)
      simple = simple && !is_two_rows(row.source_types[k]);
    op.run = simple ? valu.run_simple[row.sources] : valu.run_general;
  }
  result.info.kind = OpKind::valu;
  result.info.definedness = row.definedness;
  result.info.dpp = f.is_dpp;
  const uint32_t result_select = row.form == ValuForm::keeps_part ? 12 : 8;
  result.info.half_write = (f.is_sdwa && f.sdwa_dst != 6) || (m.select_high & result_select) != 0;
  if (role == Role::dot) result.info.dot = uint16_t(uint32_t(f.format) << 10 | f.op);
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
    op.src[k] = operand(f.src[k], shape.input == MfmaInput::f64 ? OperandType::f64 : OperandType::f32, f);
    if (k < 2 || shape.sparse || op.src[k] < first_constant)
      throw Refusal{"the operand must be a vector register"};
  }
  result.fast = result.strict = op;
}

void Decoder::decode_memory(const MemoryRoutines &routines, const Fields &f, DecodedOp &result) {
  OpInfo &info = result.info;
  const InstructionFacts &facts = *info.facts;
  const bool to_lds = facts.role == Role::copy_to_lds || (facts.role == Role::load && f.lds);
  Op op;
  op.memory = MemoryControl{};
  MemoryControl &m = op.memory;
  m.dwords = to_lds ? 0 : uint8_t(facts.data.dwords());
  m.bytes = facts.data.bytes;
  m.parts = facts.data.parts;
  m.half = facts.data.half;
  m.sign_extend = facts.data.sign_extend;
  m.components = facts.data.components;
  m.packed_16 = facts.data.packed_16;
  m.align_down = facts.has(Fact::aligns_address);
  if (info.is_atomic()) {
    const AtomicRule &rule = atomic_rule(facts.data);
    op.atomic = rule.body;
    m.second = rule.second;
    m.memory_denormals = rule.memory_denormals;
    m.lds_denormals = rule.lds_denormals;
  }
  const bool acc = (f.acc & 1) != 0;
  auto data = [&](uint16_t number) { return vector_register(number, acc); };
  const bool stores = facts.role == Role::store || info.is_atomic();
  // Registers of the first data operand. A second one follows it, except for DS.
  uint16_t stored = uint16_t(facts.data.dwords() / facts.data.parts);
  info.kind = OpKind::vector_memory;
  m.sc0 = f.sc0;
  m.sc1 = f.sc1;
  m.nt = f.nt;
  switch (f.format) {
  case Format::ds:
    info.kind = OpKind::lds;
    op.src[0] = f.src[0];
    op.src[1] = data(f.src[1]);
    op.src[2] = data(f.src[2]);
    op.dst = data(f.dst);
    m.return_old = facts.has(Fact::returns_old);
    if (m.parts == 2) {
      m.offset = f.offset0 * facts.data.offset_unit;
      m.offset1 = uint32_t(f.offset1) * facts.data.offset_unit;
    } else {
      m.offset = f.offset0 | f.offset1 << 8;
    }
    // The field that holds the address in other DS instructions holds data.
    if (facts.role == Role::global_sync) op.src[0] = data(f.src[0]);
    if (facts.role == Role::global_sync || (m.bytes != 0 && !facts.has(Fact::address_in_m0)))
      info.address = {op.src[0], 1};
    if (stores && (m.second || m.parts == 2)) info.second_stored = {op.src[2], stored};
    break;
  case Format::flat:
    m.mode = facts.has(Fact::flat)      ? AddressMode::flat
             : facts.has(Fact::scratch) ? AddressMode::scratch
                                        : AddressMode::global;
    m.offset = f.imm;
    m.return_old = f.sc0;
    op.src[1] = data(f.src[1]);
    op.dst = data(f.dst);
    if (m.mode != AddressMode::scratch || f.scratch_vaddr) op.src[0] = f.src[0];
    if (m.mode != AddressMode::flat && f.soffset != 0x7f) op.src[2] = uint16_t(first_sgpr + f.soffset);
    if (op.src[0] != no_operand) {
      const bool pair =
          m.mode == AddressMode::flat || (m.mode == AddressMode::global && op.src[2] == no_operand);
      info.address = {op.src[0], uint16_t(pair ? 2 : 1)};
    }
    if (m.second) stored *= 2;
    break;
  case Format::mubuf:
  case Format::mtbuf:
    m.mode = AddressMode::global;
    m.offset = f.imm;
    m.offset_enable = f.offen;
    m.index_enable = f.idxen;
    m.return_old = f.sc0;
    op.src[1] = op.dst = data(f.dst);
    op.src[2] = uint16_t(first_sgpr + f.srsrc);
    op.mask_in = operand(f.soffset, OperandType::b32, f);
    if (f.offen || f.idxen) {
      op.src[0] = f.src[0];
      info.address = {op.src[0], uint16_t(f.offen + f.idxen)};
    }
    if (m.second) stored *= 2;
    if (f.format == Format::mtbuf) {
      m.format = uint8_t(f.data_format | f.number_format << 4);
      std::string refusal = buffer_format_refusal(f.data_format, NumberFormat(f.number_format), m.components,
                                                  facts.role == Role::store);
      if (!refusal.empty()) throw Refusal{std::move(refusal)};
    }
    break;
  default: // SMEM
    info.kind = OpKind::scalar_memory;
    m.offset = f.imm_enable ? f.imm : 0;
    m.return_old = f.sc0;
    op.src[0] = uint16_t(first_sgpr + f.srsrc);
    if (f.soffset_enable || !f.imm_enable) op.src[1] = uint16_t(first_sgpr + f.soffset);
    op.dst = uint16_t(first_sgpr + f.dst);
    if (m.second) stored *= 2;
    break;
  }
  constexpr uint16_t m0 = first_sgpr + sgpr_m0;
  if (to_lds) info.kind = OpKind::lds_copy;
  const bool buffer = f.format == Format::mubuf || f.format == Format::mtbuf;
  if (to_lds || facts.has(Fact::reads_m0)) info.m0_wait = buffer ? M0Wait::copy : M0Wait::required;
  info.address_in_m0 = info.m0_wait != M0Wait::none || facts.has(Fact::address_in_m0) || op.src[2] == m0 ||
                       op.mask_in == m0 || (f.format == Format::smem && op.src[1] == m0);
  if (stores) info.stored = {f.format == Format::smem ? op.dst : op.src[1], stored};
  info.data_read_late =
      info.kind == OpKind::vector_memory && info.stored.count > 2 && !(buffer && f.soffset < 128);
  result.fast = result.strict = op;
  result.fast.run = routines.fast;
  result.strict.run = routines.strict;
}

DecodedOp Decoder::decode(const Instruction &instruction, std::span<const uint32_t> dwords,
                          uint32_t position) {
  const Fields f = split_fields(dwords);
  const std::string &name = instruction.mnemonic;
  DecodedOp result;
  result.info.facts = instruction.facts;
  try {
    for (const RegisterRange &range : instruction.writes)
      if (range.first >= first_sgpr + sgpr_ttmp0 && range.first < first_sgpr + sgpr_m0)
        throw Refusal{"only a trap handler, which the machine does not have, writes the trap registers"};
    switch (f.format) {
    case Format::sop1:
    case Format::sop2:
    case Format::sopc:
    case Format::sopk:
    case Format::sopp:
      if (const ScalarRow *row = scalar_row(name)) {
        decode_scalar(*row, f, position, result);
        return result;
      }
      break;
    case Format::mai:
      if (instruction.facts->pipe == Pipe::matrix) {
        decode_mfma(f, result);
        return result;
      }
      [[fallthrough]];
    case Format::vop1:
    case Format::vop2:
    case Format::vopc:
    case Format::vop3:
    case Format::vop3p: {
      // Both kinds of comparison have the row of v_cmp.
      const std::string key =
          instruction.facts->role == Role::compare_exec ? "v_cmp_" + name.substr(7) : name;
      if (const ValuRow *row = f.clamp ? valu.find(key + " clamp") : nullptr) {
        decode_valu(*row, true, f, result);
        return result;
      }
      if (const ValuRow *row = valu.find(key)) {
        decode_valu(*row, false, f, result);
        return result;
      }
      break;
    }
    case Format::ds:
    case Format::flat:
    case Format::mubuf:
    case Format::mtbuf:
    case Format::smem:
      if (const MemoryRoutines routines = memory_routines(*instruction.facts, f); routines.fast) {
        decode_memory(routines, f, result);
        return result;
      }
      break;
    case Format::vintrp:
    case Format::unknown:
      break;
    }
  } catch (Refusal &refusal) {
    return refuse(std::move(refusal.reason));
  }
  return refuse(std::string(reason_without_row(name)));
}

} // namespace sluice::emulator

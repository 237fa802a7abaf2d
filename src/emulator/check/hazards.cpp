//===- hazards.cpp - wait states that the hardware does not enforce -------------------------------------===//
//
// P is the number of passes of an MFMA. XDL is the matrix core proper, SGEMM its f32 shapes, DGEMM its f64
// shapes. With N wait states, N other instructions, or their equivalent in s_nop, must come between the two.
//
// Cases are the rows of table 11, "Required Software-inserted Wait States", in section 4.5 of the CDNA3 ISA
// manual, counted from the top. Table 37, "VOP3P-Matrix Opcodes Required NOPs", is in its section 7.5. The
// rows of table 37 for the 4x4x4 shape of f64, for V_CMPX before a matrix instruction and for writes of an
// addend that is still to be read were compared with the CDNA4 manual (table 38), which has the same words.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/check/hazards.h"

#include <algorithm>

#include "emulator/check/register_name.h"

namespace sluice::emulator {

namespace {

constexpr uint32_t short_dgemm_passes = 4; // 4x4x4; 16x16x4 has 8

/// Until a vector instruction may read or write a result, or an MFMA may read it as A, B or an index.
uint32_t result_wait(const MatrixInfo &writer) {
  switch (writer.unit) {
  case MatrixUnit::dgemm:
    return writer.passes == short_dgemm_passes ? 6 : 11;
  case MatrixUnit::sgemm:
    return writer.passes + 2u;
  default:
    return writer.passes + 3u;
  }
}
/// Until a memory instruction may read it.
uint32_t result_to_memory_wait(const MatrixInfo &writer) {
  if (writer.unit == MatrixUnit::dgemm) return writer.passes == short_dgemm_passes ? 9 : 18;
  return result_wait(writer);
}
/// Until another MFMA may take it as its addend, if the registers are not exactly the same.
uint32_t overlapping_addend_wait(const MatrixInfo &writer, const MatrixInfo &reader) {
  if (reader.unit == MatrixUnit::xdl && writer.unit != MatrixUnit::xdl) return 0;
  switch (writer.unit) {
  case MatrixUnit::dgemm:
    return writer.passes == short_dgemm_passes ? 4 : 9;
  case MatrixUnit::sgemm:
    return writer.passes;
  default:
    return writer.passes + 1u;
  }
}
/// For the same registers: the addend is forwarded, except after the shortest, too quick shapes.
uint32_t same_addend_wait(const MatrixInfo &writer, const MatrixInfo &reader) {
  const bool short_dgemm = writer.unit == MatrixUnit::dgemm && writer.passes == short_dgemm_passes;
  if (short_dgemm && reader.unit == MatrixUnit::dgemm) return 4;
  return writer.passes == 2 ? 2 : 0;
}

constexpr uint32_t dgemm_to_fma_f64_wait = 2; // for any registers
constexpr uint32_t vector_to_matrix_wait = 2; // except for dot products
constexpr uint32_t dot_wait = 3;              // its own kind may add to the result at once
constexpr uint32_t exec_to_matrix_wait = 4;
constexpr uint32_t transcendental_wait = 1;
constexpr uint32_t half_write_wait = 1;
constexpr uint32_t vector_to_dpp_wait = 2;
constexpr uint32_t exec_to_dpp_wait = 5;
constexpr uint32_t exec_to_constant_wait = 2;
constexpr uint32_t vector_to_readlane_wait = 1;
constexpr uint32_t scalar_to_vector_wait = 2;
constexpr uint32_t vcc_to_div_fmas_wait = 4;
constexpr uint32_t scalar_to_lane_select_wait = 4;
constexpr uint32_t exec_to_lane_access_wait = 4;
constexpr uint32_t scalar_to_memory_wait = 5;
constexpr uint32_t m0_wait = 1;
constexpr uint32_t mode_wait = 2;
constexpr uint32_t store_wait = 2;

struct RuleText {
  HazardLevel level;
  const char *reason;
  const char *source;
};
RuleText text_of(HazardRule rule) {
  constexpr HazardLevel required = HazardLevel::required;
  constexpr HazardLevel compiler = HazardLevel::compiler;
  constexpr HazardLevel waived = HazardLevel::waived;
  switch (rule) {
  case HazardRule::matrix_result:
    return {required, "written by the matrix core", "CDNA3 ISA table 37"};
  case HazardRule::matrix_addend:
    // For an f32 result that is part of an XDL instruction's addend, the copies of table 37 that were
    // compared contradict each other. LLVM's 0 is used.
    return {required, "written by the matrix core", "CDNA3 ISA table 37, Source C"};
  case HazardRule::matrix_overwrite:
    return {required, "still to be written by the matrix core", "CDNA3 ISA table 37, WAW"};
  case HazardRule::matrix_addend_overwrite:
    return {required, "still to be read by the matrix core", "CDNA3 ISA table 37, WAR"};
  case HazardRule::matrix_overwrite_by_load:
    return {compiler, "still to be written by the matrix core",
            "LLVM; CDNA3 ISA table 37, WAW asks it of vector instructions"};
  case HazardRule::matrix_addend_overwrite_by_load:
    return {compiler, "still to be read by the matrix core",
            "LLVM; CDNA3 ISA table 37, WAR asks it of vector instructions"};
  case HazardRule::vector_to_matrix:
    return {required, "written by a vector instruction", "CDNA3 ISA table 37, first row"};
  case HazardRule::exec_to_matrix:
    return {required, "EXEC written by a vector instruction", "CDNA3 ISA table 37, V_CMPX"};
  case HazardRule::dot_result:
    return {required, "the result of a dot product", "CDNA3 ISA table 37, DL ops"};
  case HazardRule::fma_after_dgemm:
    // No row of the manual was found that asks for it or rules it out.
    return {compiler, "the matrix core began on f64", "LLVM"};
  case HazardRule::transcendental:
    return {required, "the result of a transcendental", "CDNA3 ISA table 11, case 21"};
  case HazardRule::half_read:
    return {required, "half of it written", "CDNA3 ISA table 11, case 20"};
  case HazardRule::half_overwrite:
    // The manual only covers instructions that read the half. LLVM protects the ECC of a register that is
    // overwritten.
    return {compiler, "half of it written", "LLVM; CDNA3 ISA table 11, case 20 asks it of reads"};
  case HazardRule::vector_to_dpp:
    return {required, "written by a vector instruction", "CDNA3 ISA table 11, case 12"};
  case HazardRule::exec_to_dpp:
    return {required, "EXEC written by a vector instruction", "CDNA3 ISA table 11, case 13"};
  case HazardRule::exec_to_lane_access:
  case HazardRule::exec_constant:
    return {required, "EXEC written by a vector instruction", "CDNA3 ISA table 11, case 18"};
  case HazardRule::vector_to_readlane:
    return {required, "written by a vector instruction", "CDNA3 ISA table 11, case 19"};
  case HazardRule::scalar_constant:
    return {required, "written by a vector instruction", "CDNA3 ISA table 11, cases 14 and 18"};
  case HazardRule::carry_in:
    return {waived, "written by a vector instruction",
            "LLVM; a carry-in or mask needs 0 by CDNA3 ISA table 11, cases 14 and 18"};
  case HazardRule::vcc_to_div_fmas:
    return {required, "written by a vector instruction", "CDNA3 ISA table 11, case 7"};
  case HazardRule::lane_select:
    return {required, "written by a vector instruction", "CDNA3 ISA table 11, cases 6 and 18"};
  case HazardRule::scalar_to_memory:
    return {required, "written by a vector instruction", "CDNA3 ISA table 11, case 10"};
  case HazardRule::store_data:
    return {required, "still to be read by a store", "CDNA3 ISA table 11, case 9"};
  case HazardRule::m0:
    return {required, "M0 written by a scalar instruction", "CDNA3 ISA table 11, cases 11, 16 and 17"};
  // Those cases include neither loads of buffers into LDS nor s_ttracedata. AMD's own assembly changes M0
  // right before loads of buffers.
  case HazardRule::m0_trace:
    return {compiler, "M0 written by a scalar instruction",
            "LLVM; not among CDNA3 ISA table 11, cases 11, 16 and 17"};
  case HazardRule::m0_copy:
    return {waived, "M0 written by a scalar instruction",
            "LLVM; not among CDNA3 ISA table 11, cases 11, 16 and 17"};
  case HazardRule::mode:
    return {required, "written by a scalar instruction", "CDNA3 ISA table 11, cases 1 to 3"};
  }
  return {required, "", ""};
}

template <class F> void for_each_operand(const OpInfos &infos, uint32_t begin, uint32_t end, F &&call) {
  for (uint32_t i = begin; i < end; ++i)
    for (uint16_t r = 0; r < infos.ranges[i].count; ++r)
      call(uint16_t(infos.ranges[i].first + r));
}

constexpr uint16_t exec_operand = first_sgpr + sgpr_exec;
constexpr uint16_t vcc_operand = first_sgpr + sgpr_vcc;

/// Whether a register is a source of a vector instruction, and not just its carry-in or mask.
bool is_source(const Op &op, uint16_t operand) {
  for (uint32_t k = 0; k < op.valu.sources; ++k)
    if (operand >= op.src[k] && operand < op.src[k] + rows_of(op.valu.source_types[k])) return true;
  return false;
}

/// Whether a part of the destination keeps its value.
bool keeps_part(const Op &op) {
  constexpr uint8_t sdwa_preserve = 2;
  return op.valu.keeps_half || (op.valu.modifiers.lane_control == lane_control_sdwa &&
                                op.valu.sdwa.destination != 6 && op.valu.sdwa.unused == sdwa_preserve);
}

} // namespace

std::string describe(const HazardFound &found) {
  const RuleText text = text_of(found.rule);
  return register_name(found.operand) + ": " + text.reason + " " + std::to_string(found.seen) +
         " wait states before, but " + std::to_string(found.needed) + " are needed (" + text.source +
         (found.level == HazardLevel::by_count ? "; a taken branch or a barrier was in between)" : ")");
}

void HazardTracker::start(std::array<bool, hazard_levels> levels, bool alone) {
  rows.fill(Row{});
  scalars.fill(Scalar{});
  scalar_m0_write = mode_write = last_dgemm = interrupted = never;
  now = 1;
  wanted = levels;
  met = {};
  one_wave = alone;
}

void HazardTracker::need(HazardRule rule, uint64_t written, uint32_t states, uint16_t operand,
                         uint32_t other) {
  if (written == never || now - written - 1 >= states) [[likely]]
    return;
  HazardLevel level = text_of(rule).level;
  met[size_t(level)] = met[size_t(std::max(level, HazardLevel::by_count))] = true;
  if (interrupted > written) level = std::max(level, HazardLevel::by_count);
  if (!wanted[size_t(level)] || (found && found->level <= level)) return;
  found = HazardFound{rule, level, operand, other, states, uint32_t(now - written - 1)};
}

void HazardTracker::check_matrix_reads(uint16_t first, uint32_t count, const MatrixInfo &reader,
                                       bool addend) {
  for (uint32_t r = 0; r < count; ++r) {
    const uint16_t operand = uint16_t(first + r);
    const Row &row = rows[operand];
    if (row.dot == 0)
      need(HazardRule::vector_to_matrix, row.vector_write, vector_to_matrix_wait, operand, row.vector_op);
    if (row.matrix_write == never) continue;
    const bool same = row.matrix_first == first && row.matrix.result_rows == count;
    const uint32_t states = !addend ? result_wait(row.matrix)
                            : same  ? same_addend_wait(row.matrix, reader)
                                    : overlapping_addend_wait(row.matrix, reader);
    need(addend ? HazardRule::matrix_addend : HazardRule::matrix_result, row.matrix_write, states, operand,
         row.matrix_op);
  }
}

void HazardTracker::check_matrix(const Op &op, const MatrixInfo &matrix) {
  const Scalar &exec = scalars[sgpr_exec];
  need(HazardRule::exec_to_matrix, exec.vector_write, exec_to_matrix_wait, exec_operand, exec.op);
  check_matrix_reads(op.src[0], matrix.a_rows, matrix, false);
  check_matrix_reads(op.src[1], matrix.b_rows, matrix, false);
  if (matrix.sparse) check_matrix_reads(op.src[2], 1, matrix, false);
  const uint16_t addend = matrix.sparse ? op.dst : op.src[2];
  if (addend < first_sgpr) check_matrix_reads(addend, matrix.result_rows, matrix, true);
}

/// A vector or memory instruction writes a vector register.
void HazardTracker::check_overwrite(uint16_t operand, uint16_t dot, bool by_load) {
  const Row &row = rows[operand];
  if (row.dot != 0 && row.dot != dot)
    need(HazardRule::dot_result, row.vector_write, dot_wait, operand, row.vector_op);
  need(by_load ? HazardRule::matrix_overwrite_by_load : HazardRule::matrix_overwrite, row.matrix_write,
       result_wait(row.matrix), operand, row.matrix_op);
  if (row.addend_passes != 0)
    need(by_load ? HazardRule::matrix_addend_overwrite_by_load : HazardRule::matrix_addend_overwrite,
         row.matrix_addend_read, row.addend_passes - 1u, operand, row.addend_op);
}

/// A vector instruction reads a scalar register.
void HazardTracker::check_scalar_source(const Op &op, const OpInfo &info, uint16_t operand) {
  const Scalar &scalar = scalars[operand - first_sgpr];
  if (scalar.vector_write == never) return;
  const bool constant = is_source(op, operand);
  if (operand == exec_operand || operand == exec_operand + 1) {
    if (info.dpp) need(HazardRule::exec_to_dpp, scalar.vector_write, exec_to_dpp_wait, operand, scalar.op);
    if (is_lane_access(info.role()))
      need(HazardRule::exec_to_lane_access, scalar.vector_write, exec_to_lane_access_wait, operand,
           scalar.op);
    if (constant)
      need(HazardRule::exec_constant, scalar.vector_write, exec_to_constant_wait, operand, scalar.op);
    return;
  }
  const bool vcc = operand == vcc_operand || operand == vcc_operand + 1;
  if (is_lane_access(info.role()) && operand == op.src[1])
    need(HazardRule::lane_select, scalar.vector_write, scalar_to_lane_select_wait, operand, scalar.op);
  else if (vcc && info.role() == Role::div_fmas)
    need(HazardRule::vcc_to_div_fmas, scalar.vector_write, vcc_to_div_fmas_wait, operand, scalar.op);
  else
    need(constant ? HazardRule::scalar_constant : HazardRule::carry_in, scalar.vector_write,
         scalar_to_vector_wait, operand, scalar.op);
}

void HazardTracker::check_vector(const Op &op, const OpInfo &info, const OpInfos &infos) {
  for_each_operand(infos, info.reads_begin, info.reads_end, [&](uint16_t operand) {
    if (operand >= first_sgpr) return check_scalar_source(op, info, operand);
    const Row &row = rows[operand];
    if (row.transcendental && info.facts->pipe != Pipe::transcendental)
      need(HazardRule::transcendental, row.vector_write, transcendental_wait, operand, row.vector_op);
    if (row.dot != 0 && (row.dot != info.dot || operand == op.src[0] || operand == op.src[1]))
      need(HazardRule::dot_result, row.vector_write, dot_wait, operand, row.vector_op);
    if (row.half) need(HazardRule::half_read, row.vector_write, half_write_wait, operand, row.vector_op);
    if (info.dpp && operand == op.src[0])
      need(HazardRule::vector_to_dpp, row.vector_write, vector_to_dpp_wait, operand, row.vector_op);
    // v_writelane reads its destination, too, but not as a lane
    if (is_lane_access(info.role()) && operand == op.src[0])
      need(HazardRule::vector_to_readlane, row.vector_write, vector_to_readlane_wait, operand, row.vector_op);
    need(HazardRule::matrix_result, row.matrix_write, result_wait(row.matrix), operand, row.matrix_op);
  });
  for_each_operand(infos, info.writes_begin, info.writes_end, [&](uint16_t operand) {
    if (operand >= first_sgpr) return;
    const Row &row = rows[operand];
    // The half is written later than a whole register would be. Instructions that keep part of the register
    // read it.
    if (row.half)
      need(keeps_part(op) ? HazardRule::half_read : HazardRule::half_overwrite, row.vector_write,
           half_write_wait, operand, row.vector_op);
    need(HazardRule::store_data, row.store_read, store_wait, operand, row.store_op);
    check_overwrite(operand, info.dot, false);
  });
  if (info.role() == Role::fma_f64)
    need(HazardRule::fma_after_dgemm, last_dgemm, dgemm_to_fma_f64_wait, op.dst, last_dgemm_op);
}

void HazardTracker::check_memory(const OpInfo &info, const OpInfos &infos) {
  for_each_operand(infos, info.reads_begin, info.reads_end, [&](uint16_t operand) {
    if (operand < first_sgpr) {
      const Row &row = rows[operand];
      if (row.dot != 0) need(HazardRule::dot_result, row.vector_write, dot_wait, operand, row.vector_op);
      need(HazardRule::matrix_result, row.matrix_write, result_to_memory_wait(row.matrix), operand,
           row.matrix_op);
    } else if (info.kind != OpKind::lds && operand != exec_operand && operand != exec_operand + 1) {
      const Scalar &scalar = scalars[operand - first_sgpr];
      need(HazardRule::scalar_to_memory, scalar.vector_write, scalar_to_memory_wait, operand, scalar.op);
    }
  });
  for_each_operand(infos, info.writes_begin, info.writes_end, [&](uint16_t operand) {
    if (operand < first_sgpr) check_overwrite(operand, 0, true);
  });
  check_m0(info);
}

void HazardTracker::check_m0(const OpInfo &info) {
  if (info.m0_wait == M0Wait::none) return;
  const HazardRule rule = info.m0_wait == M0Wait::required ? HazardRule::m0
                          : info.m0_wait == M0Wait::trace  ? HazardRule::m0_trace
                                                           : HazardRule::m0_copy;
  need(rule, scalar_m0_write, m0_wait, first_sgpr + sgpr_m0, scalar_m0_op);
}

void HazardTracker::check_scalar(const OpInfo &info) {
  check_m0(info);
  if (info.reads_mode) need(HazardRule::mode, mode_write, mode_wait, first_sgpr + sgpr_mode, mode_op);
}

void HazardTracker::enter_matrix(const Op &op, const MatrixInfo &matrix) {
  // SGEMM and DGEMM have read their addend before any instruction can overwrite it. SMFMAC overwrites its
  // own.
  if (matrix.unit == MatrixUnit::xdl && !matrix.sparse && op.src[2] < first_sgpr)
    for (uint32_t r = 0; r < matrix.result_rows; ++r) {
      Row &row = rows[op.src[2] + r];
      row.matrix_addend_read = now;
      row.addend_op = op.index;
      row.addend_passes = matrix.passes;
    }
  for (uint32_t r = 0; r < matrix.result_rows; ++r) {
    Row &row = rows[op.dst + r];
    row.matrix_write = now;
    row.matrix_op = op.index;
    row.matrix_first = op.dst;
    row.matrix = matrix;
    row.vector_write = never;
  }
  if (matrix.unit == MatrixUnit::dgemm) {
    last_dgemm = now;
    last_dgemm_op = op.index;
  }
}

void HazardTracker::enter(const Op &op, const OpInfo &info, const OpInfos &infos) {
  if (info.kind == OpKind::mfma) {
    enter_matrix(op, info.matrix);
    return;
  }
  if (info.kind == OpKind::valu) {
    for_each_operand(infos, info.writes_begin, info.writes_end, [&](uint16_t operand) {
      if (operand >= first_sgpr) {
        scalars[operand - first_sgpr] = {now, op.index};
        return;
      }
      Row &row = rows[operand];
      row.vector_write = now;
      row.vector_op = op.index;
      row.matrix_write = never;
      row.transcendental = info.facts->pipe == Pipe::transcendental;
      row.half = info.half_write;
      row.dot = info.dot;
    });
    return;
  }
  if (writes_hardware_register(info.role())) {
    mode_write = now;
    mode_op = op.index;
  }
  if (info.data_read_late)
    for (uint16_t r = 0; r < info.stored.count; ++r) {
      rows[info.stored.first + r].store_read = now;
      rows[info.stored.first + r].store_op = op.index;
    }
  for_each_operand(infos, info.writes_begin, info.writes_end, [&](uint16_t operand) {
    if (operand < first_sgpr) {
      rows[operand].vector_write = never;
      return;
    }
    scalars[operand - first_sgpr].vector_write = never;
    if (operand == first_sgpr + sgpr_m0) {
      scalar_m0_write = now;
      scalar_m0_op = op.index;
    }
  });
}

std::optional<HazardFound> HazardTracker::step(const Op &op, const OpInfo &info, const OpInfos &infos) {
  found.reset();
  if (op.index != next_op && now != 1) interrupted = now;
  next_op = op.index + 1;
  switch (info.kind) {
  case OpKind::mfma:
    check_matrix(op, info.matrix);
    break;
  case OpKind::valu:
    check_vector(op, info, infos);
    break;
  case OpKind::lds:
  case OpKind::lds_copy:
  case OpKind::vector_memory:
    check_memory(info, infos);
    break;
  case OpKind::scalar:
    check_scalar(info);
    break;
  case OpKind::scalar_memory:
  case OpKind::branch:
  case OpKind::other:
    break;
  }
  enter(op, info, infos);
  if (info.role() == Role::barrier && !one_wave) interrupted = now;
  now += info.wait_states;
  return found;
}

} // namespace sluice::emulator

//===- hazards.cpp - wait states that the hardware does not enforce -------------------------------------===//
//
// P is the number of passes of an MFMA; XDL is the matrix core proper, SGEMM its f32 shapes, DGEMM its f64
// shapes. An instruction with wait states N may come when N others, or their worth in s_nop, lie between.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/check/hazards.h"

#include "emulator/check/register_name.h"

namespace sluice::emulator {

namespace {

constexpr uint32_t short_dgemm_passes = 4; // 4x4x4; 16x16x4 has 8

/// Until a vector instruction may read or write a result, or an MFMA read it as A, B or an index.
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
/// Until another MFMA may take it as its addend, when the two do not have the very same registers.
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
/// The very same addend is forwarded; only the shortest shapes are too quick for that.
uint32_t same_addend_wait(const MatrixInfo &writer, const MatrixInfo &reader) {
  const bool short_dgemm = writer.unit == MatrixUnit::dgemm && writer.passes == short_dgemm_passes;
  if (short_dgemm && reader.unit == MatrixUnit::dgemm) return 4;
  return writer.passes == 2 ? 2 : 0;
}

constexpr uint32_t dgemm_to_fma_f64_wait = 2; // whatever the registers
constexpr uint32_t vector_to_matrix_wait = 2; // but for dot products
constexpr uint32_t dot_wait = 3;              // its own kind may add to the result at once
constexpr uint32_t exec_to_matrix_wait = 4;
constexpr uint32_t transcendental_wait = 1;
constexpr uint32_t half_write_wait = 1;
constexpr uint32_t vector_to_dpp_wait = 2;
constexpr uint32_t exec_to_dpp_wait = 5;
constexpr uint32_t vector_to_readlane_wait = 1;
constexpr uint32_t scalar_to_vector_wait = 2;
constexpr uint32_t vcc_to_div_fmas_wait = 4;
constexpr uint32_t scalar_to_lane_select_wait = 4;
constexpr uint32_t exec_to_lane_access_wait = 4;
constexpr uint32_t scalar_to_memory_wait = 5;
constexpr uint32_t m0_wait = 1; // copies into LDS, DS addresses by lane, and scalar readers of M0
constexpr uint32_t mode_wait = 2;
constexpr uint32_t store_wait = 2;

template <class F> void for_each_operand(const OpInfos &infos, uint32_t begin, uint32_t end, F &&call) {
  for (uint32_t i = begin; i < end; ++i)
    for (uint16_t r = 0; r < infos.ranges[i].count; ++r)
      call(uint16_t(infos.ranges[i].first + r));
}

constexpr uint16_t exec_operand = first_sgpr + sgpr_exec;
constexpr uint16_t vcc_operand = first_sgpr + sgpr_vcc;

} // namespace

std::string describe(const HazardFound &found) {
  return register_name(found.operand) + ": " + found.reason + " " + std::to_string(found.seen) +
         " wait states before, but " + std::to_string(found.needed) + " are needed";
}

void HazardTracker::start() {
  rows.fill(Row{});
  scalars.fill(Scalar{});
  scalar_m0_write = mode_write = last_dgemm = never;
  now = 1;
}

void HazardTracker::need(uint64_t written, uint32_t states, uint16_t operand, uint32_t other,
                         const char *reason) {
  if (written == never || now - written - 1 >= states || found) return;
  found = HazardFound{operand, other, states, uint32_t(now - written - 1), reason};
}

void HazardTracker::check_matrix_reads(uint16_t first, uint32_t count, const MatrixInfo &reader,
                                       bool addend) {
  for (uint32_t r = 0; r < count; ++r) {
    const uint16_t operand = uint16_t(first + r);
    const Row &row = rows[operand];
    if (row.dot == 0)
      need(row.vector_write, vector_to_matrix_wait, operand, row.vector_op,
           "written by a vector instruction");
    if (row.matrix_write == never) continue;
    const bool same = row.matrix_first == first && row.matrix.result_rows == count;
    const uint32_t states = !addend ? result_wait(row.matrix)
                            : same  ? same_addend_wait(row.matrix, reader)
                                    : overlapping_addend_wait(row.matrix, reader);
    need(row.matrix_write, states, operand, row.matrix_op, "written by the matrix core");
  }
}

void HazardTracker::check_matrix(const Op &op, const MatrixInfo &matrix) {
  const Scalar &exec = scalars[sgpr_exec];
  need(exec.vector_write, exec_to_matrix_wait, exec_operand, exec.op, "EXEC written by a vector instruction");
  check_matrix_reads(op.src[0], matrix.a_rows, matrix, false);
  check_matrix_reads(op.src[1], matrix.b_rows, matrix, false);
  if (matrix.sparse) check_matrix_reads(op.src[2], 1, matrix, false);
  const uint16_t addend = matrix.sparse ? op.dst : op.src[2];
  if (addend < first_sgpr) check_matrix_reads(addend, matrix.result_rows, matrix, true);
}

/// A vector or memory instruction writes a vector register.
void HazardTracker::check_overwrite(uint16_t operand, uint16_t dot) {
  const Row &row = rows[operand];
  if (row.dot != 0 && row.dot != dot)
    need(row.vector_write, dot_wait, operand, row.vector_op, "the result of a dot product");
  need(row.matrix_write, result_wait(row.matrix), operand, row.matrix_op,
       "still to be written by the matrix core");
  if (row.addend_passes != 0)
    need(row.matrix_addend_read, row.addend_passes - 1u, operand, row.addend_op,
         "still to be read by the matrix core");
}

void HazardTracker::check_vector(const Op &op, const OpInfo &info, const OpInfos &infos) {
  for_each_operand(infos, info.reads_begin, info.reads_end, [&](uint16_t operand) {
    if (operand >= first_sgpr) {
      const Scalar &scalar = scalars[operand - first_sgpr];
      if (scalar.vector_write == never) return;
      if (operand == exec_operand || operand == exec_operand + 1) {
        const uint32_t states = info.dpp ? exec_to_dpp_wait : info.lane_access ? exec_to_lane_access_wait : 0;
        need(scalar.vector_write, states, operand, scalar.op, "EXEC written by a vector instruction");
        return;
      }
      const bool vcc = operand == vcc_operand || operand == vcc_operand + 1;
      const uint32_t states = info.lane_access && operand == op.src[1] ? scalar_to_lane_select_wait
                              : vcc && info.div_fmas                   ? vcc_to_div_fmas_wait
                                                                       : scalar_to_vector_wait;
      need(scalar.vector_write, states, operand, scalar.op, "written by a vector instruction");
      return;
    }
    const Row &row = rows[operand];
    if (row.transcendental && !info.transcendental)
      need(row.vector_write, transcendental_wait, operand, row.vector_op, "the result of a transcendental");
    if (row.dot != 0 && (row.dot != info.dot || operand == op.src[0] || operand == op.src[1]))
      need(row.vector_write, dot_wait, operand, row.vector_op, "the result of a dot product");
    if (row.half) need(row.vector_write, half_write_wait, operand, row.vector_op, "half of it written");
    if (info.dpp && operand == op.src[0])
      need(row.vector_write, vector_to_dpp_wait, operand, row.vector_op, "written by a vector instruction");
    // v_writelane reads its destination, too, but not as a lane
    if (info.lane_access && operand == op.src[0])
      need(row.vector_write, vector_to_readlane_wait, operand, row.vector_op,
           "written by a vector instruction");
    need(row.matrix_write, result_wait(row.matrix), operand, row.matrix_op, "written by the matrix core");
  });
  for_each_operand(infos, info.writes_begin, info.writes_end, [&](uint16_t operand) {
    if (operand >= first_sgpr) return;
    const Row &row = rows[operand];
    // The half lands later than a whole register would.
    if (row.half) need(row.vector_write, half_write_wait, operand, row.vector_op, "half of it written");
    need(row.store_read, store_wait, operand, row.store_op, "still to be read by a store");
    check_overwrite(operand, info.dot);
  });
  if (info.fma_f64)
    need(last_dgemm, dgemm_to_fma_f64_wait, op.dst, last_dgemm_op, "the matrix core began on f64");
}

void HazardTracker::check_memory(const OpInfo &info, const OpInfos &infos) {
  for_each_operand(infos, info.reads_begin, info.reads_end, [&](uint16_t operand) {
    if (operand < first_sgpr) {
      const Row &row = rows[operand];
      if (row.dot != 0)
        need(row.vector_write, dot_wait, operand, row.vector_op, "the result of a dot product");
      need(row.matrix_write, result_to_memory_wait(row.matrix), operand, row.matrix_op,
           "written by the matrix core");
    } else if (info.kind != OpKind::lds && operand != exec_operand && operand != exec_operand + 1) {
      const Scalar &scalar = scalars[operand - first_sgpr];
      need(scalar.vector_write, scalar_to_memory_wait, operand, scalar.op, "written by a vector instruction");
    }
  });
  for_each_operand(infos, info.writes_begin, info.writes_end, [&](uint16_t operand) {
    if (operand < first_sgpr) check_overwrite(operand, 0);
  });
  if (info.m0_wait)
    need(scalar_m0_write, m0_wait, first_sgpr + sgpr_m0, scalar_m0_op, "M0 written by a scalar instruction");
}

void HazardTracker::check_scalar(const OpInfo &info) {
  if (info.m0_read_early)
    need(scalar_m0_write, m0_wait, first_sgpr + sgpr_m0, scalar_m0_op, "M0 written by a scalar instruction");
  if (info.reads_mode)
    need(mode_write, mode_wait, first_sgpr + sgpr_mode, mode_op, "written by a scalar instruction");
}

void HazardTracker::enter_matrix(const Op &op, const MatrixInfo &matrix) {
  // SGEMM and DGEMM have read their addend before anything can overwrite it. SMFMAC overwrites its own.
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
      row.transcendental = info.transcendental;
      row.half = info.half_write;
      row.dot = info.dot;
    });
    return;
  }
  if (info.writes_mode) {
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
  now += info.wait_states;
  return found;
}

} // namespace sluice::emulator

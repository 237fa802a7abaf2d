//===- op_timing.cpp - the resources an instruction occupies, and for how long --------------------------===//
#include "emulator/timing/op_timing.h"

#include "emulator/isa/mfma_shapes.h"
#include "emulator/isa/timing_constants.h"

namespace sluice::emulator::timing {

namespace {

void time_vector(OpTiming &t, const OpInfo &info, const OpInfos &all) {
  t.slot = Slot::vector;
  switch (t.pipe) {
  case Pipe::transcendental:
    t.port_clk = transcendental_clk;
    break;
  case Pipe::packed_f32:
    t.port_clk = vector_clk;
    if (info.writes_begin != info.writes_end) t.packed_result = all.ranges[info.writes_begin];
    break;
  default:
    t.port_clk = info.facts->has(Fact::quarter_rate) ? quarter_rate_clk : vector_clk;
    break;
  }
}

void time_matrix(OpTiming &t, const Op &op, const OpInfo &info) {
  t.slot = Slot::vector;
  t.matrix_clk = uint16_t(info.matrix.passes * pass_clk);
  // Single and double precision leave no issue time to the VALU.
  t.port_clk = info.matrix.unit != MatrixUnit::xdl ? t.matrix_clk
               : info.matrix.sparse                ? sparse_issue_clk
                                                   : vector_clk;
  t.flops = 2 * mfma_instructions()[op.mfma.shape].shape.multiply_adds();
}

void time_scalar(OpTiming &t, const Op &op, const OpInfo &info) {
  if (t.pipe == Pipe::branch) t.slot = Slot::branch;
  if (t.pipe == Pipe::salu) t.slot = Slot::scalar;
  switch (info.role()) {
  case Role::wait_counts: {
    const WaitCounts counts = wait_counts(uint32_t(op.value));
    t.effect = Effect::wait_counts;
    t.vector_count = uint8_t(counts.vector);
    t.lgkm_count = uint8_t(counts.lgkm);
    break;
  }
  case Role::barrier:
    t.effect = Effect::barrier;
    break;
  case Role::priority:
    t.effect = Effect::priority;
    break;
  case Role::nop:
    t.hold_clk = info.wait_states * turn_clk;
    break;
  case Role::sleep:
    t.hold_clk = turn_clk + (uint32_t(op.value) & 0x7f) * sleep_unit_clk;
    break;
  default:
    break;
  }
}

Transfer transfer_of(const Op &op, const OpInfo &info) {
  const Role role = info.role();
  if (role == Role::invalidate) return Transfer::invalidate;
  if (info.kind == OpKind::lds_copy) return Transfer::copy_to_lds;
  if (is_atomic(role)) return Transfer::atomic;
  const bool without_address = info.kind == OpKind::lds && info.address.count == 0;
  if (role == Role::lane_exchange || ((role == Role::load || role == Role::store) && without_address))
    return Transfer::lane_exchange;
  if (info.stored.count != 0) return Transfer::store;
  return op.memory.bytes + op.memory.dwords == 0 ? Transfer::none : Transfer::load;
}

void time_memory(OpTiming &t, const Op &op, const OpInfo &info) {
  t.transfer = transfer_of(op, info);
  switch (info.kind) {
  case OpKind::scalar_memory:
    t.slot = Slot::scalar;
    t.counts_lgkm = true;
    if (info.role() == Role::read_clock) t.effect = Effect::read_clock;
    break;
  case OpKind::lds:
    t.slot = Slot::lds;
    t.counts_lgkm = true;
    break;
  default:
    t.slot = Slot::memory;
    t.counts_vector = true;
    t.counts_lgkm = info.facts->has(Fact::flat);
    break;
  }
}

} // namespace

std::vector<OpTiming> op_timings(const ProgramImpl &program) {
  std::vector<OpTiming> all(program.fast.size());
  for (uint32_t i = 0; i < all.size(); ++i) {
    OpTiming &t = all[i];
    const Op &op = program.fast[i];
    const OpInfo &info = program.infos.infos[i];
    t.pipe = info.facts->pipe;
    t.hold_clk = turn_clk;
    switch (info.kind) {
    case OpKind::valu:
      time_vector(t, info, program.infos);
      break;
    case OpKind::mfma:
      time_matrix(t, op, info);
      break;
    case OpKind::lds:
    case OpKind::lds_copy:
    case OpKind::vector_memory:
    case OpKind::scalar_memory:
      time_memory(t, op, info);
      break;
    case OpKind::scalar:
    case OpKind::branch:
    case OpKind::other:
      time_scalar(t, op, info);
      break;
    }
    const uint64_t first = program.address_of(i);
    const uint64_t last = program.code_start + program.offset_of[i + 1] - 1;
    t.split_fetch = last >= first && first / fetch_bytes != last / fetch_bytes;
  }
  return all;
}

} // namespace sluice::emulator::timing

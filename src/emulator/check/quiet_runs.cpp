//===- quiet_runs.cpp - runs of instructions that the checks of registers need not look at --------------===//
#include "emulator/check/quiet_runs.h"

namespace sluice::emulator {

namespace {

constexpr uint16_t exec_operand = first_sgpr + sgpr_exec;

RegisterSet set_of(const OpInfos &infos, uint32_t begin, uint32_t end) {
  RegisterSet result;
  for (uint32_t i = begin; i < end; ++i)
    result.add(infos.ranges[i]);
  return result;
}

bool accesses_memory(OpKind kind) {
  return kind == OpKind::lds || kind == OpKind::lds_copy || kind == OpKind::vector_memory ||
         kind == OpKind::scalar_memory;
}

/// What a vector instruction defines; LLVM lists more for a few.
RegisterSet defined_by(const Op &op) {
  RegisterSet result;
  if (op.dst < first_sgpr)
    result.add({op.dst, uint16_t(rows_of(op.valu.result_type))});
  else if (op.dst != no_operand)
    result.set(op.dst);
  if (op.mask != no_operand) result.add({op.mask, 2});
  return result;
}

/// Whether the wave may go on elsewhere after the instruction, or with another EXEC or MODE, or with
/// registers that a wait has filled.
bool ends_run(const OpInfo &info, const RegisterSet &writes) {
  if (info.kind == OpKind::valu || info.kind == OpKind::mfma || info.kind == OpKind::scalar)
    switch (info.role()) {
    case Role::wait_counts:
    case Role::barrier:
    case Role::sleep:
    case Role::halt:
    case Role::end:
    case Role::set_register:
    case Role::set_register_literal:
    case Role::index_on:
      return true;
    default:
      return is_transfer_of_control(info.role()) || writes.meets({exec_operand, 2});
    }
  return true;
}

class Builder {
public:
  Builder(const std::vector<Op> &ops, const OpInfos &infos) : ops(ops), infos(infos) {
    result.run_of.assign(ops.size(), QuietRuns::none);
  }

  void add(uint32_t index, bool starts_run) {
    const OpInfo &info = infos.infos[index];
    if (starts_run) close();
    const RegisterSet writes = set_of(infos, info.writes_begin, info.writes_end);
    if (accesses_memory(info.kind) || info.role() == Role::write_lane || // defines one lane
        (info.kind == OpKind::valu && writes.bits != defined_by(ops[index]).bits))
      return close();
    if (run.first == run.end) run = {.first = index};
    run.end = index + 1;
    result.run_of[index] = uint32_t(result.runs.size());
    enter(ops[index], info, writes);
    if (ends_run(info, writes)) close();
  }

  void close() {
    if (run.first == run.end) return;
    run.words_begin = uint32_t(result.words.size());
    for (uint32_t word = 0; word < RegisterSet::words; ++word)
      if ((read.bits[word] | written.bits[word]) != 0)
        result.words.push_back({word, needed.bits[word], read.bits[word], written.bits[word]});
    run.words_end = uint32_t(result.words.size());
    result.runs.push_back(run);
    run = {};
    needed = read = written = {};
  }

  QuietRuns result;

private:
  void enter(const Op &op, const OpInfo &info, const RegisterSet &writes) {
    RegisterSet reads = set_of(infos, info.reads_begin, info.reads_end);
    if (info.kind == OpKind::valu) {
      for (uint32_t k = 0; k < op.valu.sources; ++k)
        if (op.src[k] < first_constant && op.valu.source_types[k] != OperandType::packed_f32)
          reads.add({op.src[k], uint16_t(rows_of(op.valu.source_types[k]))});
      if (op.mask_in < first_constant) reads.add({op.mask_in, 2});
      run.crosses_lanes = run.crosses_lanes || info.dpp || info.definedness == Definedness::always ||
                          is_lane_access(info.role());
    }
    run.has_matrix = run.has_matrix || info.kind == OpKind::mfma;
    run.vgprs_end = std::max(run.vgprs_end, info.vgprs_end);
    run.agprs_end = std::max(run.agprs_end, info.agprs_end);
    run.sgprs_end = std::max(run.sgprs_end, info.sgprs_end);
    for (uint32_t i = 0; i < RegisterSet::words; ++i)
      needed.bits[i] |= reads.bits[i] & ~written.bits[i];
    read |= reads;
    written |= writes;
  }

  const std::vector<Op> &ops;
  const OpInfos &infos;
  QuietRun run;
  RegisterSet needed, read, written;
};

} // namespace

QuietRuns find_quiet_runs(const std::vector<Op> &ops, const OpInfos &infos,
                          const std::vector<uint32_t> &entries) {
  std::vector<bool> is_start(ops.size());
  for (const uint32_t entry : entries)
    is_start[entry] = true;
  for (uint32_t op = 0; op < ops.size(); ++op)
    if (infos.infos[op].jumps() && ops[op].value >= 0) is_start[uint32_t(ops[op].value)] = true;
  Builder builder(ops, infos);
  for (uint32_t op = 0; op < ops.size(); ++op)
    builder.add(op, is_start[op]);
  builder.close();
  return std::move(builder.result);
}

} // namespace sluice::emulator

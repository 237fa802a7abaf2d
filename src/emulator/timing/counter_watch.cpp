//===- counter_watch.cpp - loops that end by a counter in memory ----------------------------------------===//
#include "emulator/timing/counter_watch.h"

#include <algorithm>

#include "emulator/timing/access_addresses.h"
#include "emulator/timing/control_flow.h"

namespace sluice::emulator::timing {

namespace {

constexpr uint32_t exec_register = first_sgpr + sgpr_exec;

bool is_exec(const RegisterRange &range) {
  return range.first == exec_register || range.first == exec_register + 1;
}

/// A compare-and-swap returns whether another wave has interfered; its loop ends when none has.
bool answers_from_counter(const OpInfo &info, const Op &op) {
  return info.kind == OpKind::vector_memory && info.is_atomic() && op.memory.return_old &&
         info.role() != Role::atomic_compare;
}

/// Instructions that access LDS at addresses in a register.
bool touches_lds(const OpInfo &info, const Op &op) {
  return info.kind == OpKind::lds && op.src[0] != no_operand &&
         (info.role() == Role::load || info.role() == Role::store);
}

} // namespace

bool CounterWatch::is_needed(const ProgramImpl &program) {
  for (uint32_t i = 0; i < program.infos.infos.size(); ++i)
    if (answers_from_counter(program.infos.infos[i], program.fast[i])) return true;
  return false;
}

CounterWatch::CounterWatch(const ProgramImpl &program, OpRange kernel)
    : program(program), leaves_loop(program.fast.size()) {
  const ControlFlow flow = control_flow(program, kernel);
  const auto lies_in = [&](int64_t op, uint32_t loop) {
    const Block *const block = op < 0 ? nullptr : flow.block_of(uint32_t(op));
    return block && std::find(block->loops.begin(), block->loops.end(), loop) != block->loops.end();
  };
  for (const Block &block : flow.blocks) {
    const uint32_t last = block.ops.last - 1;
    const OpInfo &info = program.infos.infos[last];
    if (!info.jumps() || !info.falls_through()) continue;
    for (const uint32_t loop : block.loops)
      if (lies_in(program.fast[last].value, loop) != lies_in(int64_t(last) + 1, loop))
        leaves_loop[last] = true;
  }
}

void CounterWatch::start(const Wave &wave) {
  waves[&wave] = {};
  lds[wave.workgroup].assign(wave.workgroup->lds_bytes / 4 + 1, false);
}

bool CounterWatch::marked(const Marks &marks, const RegisterRange &range) const {
  for (uint32_t i = 0; i < range.count; ++i)
    if (range.first + i < registers && marks.marked[range.first + i]) return true;
  return false;
}

/// EXEC selects the lanes that run, not the values they compute.
bool CounterWatch::reads_marked(const Marks &marks, const OpInfo &info) const {
  for (uint32_t i = info.reads_begin; i < info.reads_end; ++i)
    if (!is_exec(program.infos.ranges[i]) && marked(marks, program.infos.ranges[i])) return true;
  return false;
}

void CounterWatch::mark(Marks &marks, const OpInfo &info, bool value, bool all_lanes_written) const {
  const auto set = [&](const RegisterRange &range) {
    const bool keeps_lanes = range.first < first_sgpr && !all_lanes_written;
    for (uint32_t i = 0; i < range.count; ++i)
      if (range.first + i < registers)
        marks.marked[range.first + i] = value || (keeps_lanes && marks.marked[range.first + i]);
  };
  for (uint32_t i = info.writes_begin; i < info.writes_end; ++i)
    set(program.infos.ranges[i]);
  if (info.role() == Role::compare_exec) set({exec_register, 2});
}

void CounterWatch::access_lds(Wave &wave, const Op &op, const OpInfo &info, Marks &marks) {
  std::vector<bool> &dwords = lds[wave.workgroup];
  const bool stores = info.stored.count != 0;
  const bool stored_mark = marked(marks, info.stored) || marked(marks, info.second_stored);
  bool loaded_mark = false;
  for (uint32_t part = 0; part < op.memory.parts; ++part) {
    LaneAccess<uint32_t> access;
    lds_access(wave, op, part, access);
    for (uint64_t lanes = access.lanes; lanes != 0; lanes &= lanes - 1) {
      const uint32_t first = access.at[size_t(std::countr_zero(lanes))];
      for (uint32_t dword = first / 4; dword <= (first + access.bytes - 1) / 4; ++dword) {
        if (dword >= dwords.size()) continue;
        if (stores)
          dwords[dword] = stored_mark;
        else
          loaded_mark = loaded_mark || dwords[dword];
      }
    }
  }
  if (!stores) mark(marks, info, loaded_mark, wave.exec() == all_lanes);
}

void CounterWatch::check_branch(const Marks &marks, const Op &op) {
  if (found || !leaves_loop[op.index]) return;
  const OpInfo &info = program.infos.infos[op.index];
  for (uint32_t i = info.reads_begin; i < info.reads_end; ++i)
    if (marked(marks, program.infos.ranges[i])) found = {marks.atomic, op.index};
}

void CounterWatch::before(Wave &wave, const Op &op) {
  if (op.index >= program.infos.infos.size()) return;
  const OpInfo &info = program.infos.infos[op.index];
  Marks &marks = waves[&wave];
  if (info.jumps()) return check_branch(marks, op);
  if (touches_lds(info, op)) return access_lds(wave, op, info, marks);
  const bool answers = answers_from_counter(info, op);
  if (answers) marks.atomic = op.index;
  mark(marks, info, answers || reads_marked(marks, info), wave.exec() == all_lanes);
}

} // namespace sluice::emulator::timing

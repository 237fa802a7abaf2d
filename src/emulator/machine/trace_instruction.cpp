//===- trace_instruction.cpp - describes an instruction to a Tracer -------------------------------------===//
#include "emulator/machine/trace_instruction.h"

#include "emulator/check/register_name.h"

namespace sluice::emulator {

namespace {

/// "v[4:7]", "a0", "vcc"
std::string range_name(RegisterRange range) {
  std::string first = register_name(range.first);
  if (range.count == 1 || first.find_first_of("0123456789") == std::string::npos) return first;
  const uint32_t number = uint32_t(std::stoul(first.substr(1)));
  return first.substr(0, 1) + "[" + std::to_string(number) + ":" + std::to_string(number + range.count - 1) +
         "]";
}

TracedRegisters describe(const Wave &w, RegisterRange range, TracedRegisters::State state) {
  const std::string name = range_name(range);
  if (range.first >= first_sgpr) {
    const uint32_t first = range.first - first_sgpr;
    return {state, name, 's', first, range.count, {&w.s[first], range.count}};
  }
  const bool accumulation = range.first >= first_agpr;
  return {state,
          name,
          accumulation ? 'a' : 'v',
          uint32_t(range.first - (accumulation ? first_agpr : 0)),
          range.count,
          {w.row(range.first), range.count * wave_lanes}};
}

/// Consecutive members, within one register file.
std::vector<RegisterRange> ranges_of(const OperandSet &set) {
  std::vector<RegisterRange> ranges;
  if (set.none()) return ranges;
  for (size_t operand = 0; operand < set.size(); ++operand) {
    if (!set[operand]) continue;
    const bool file_starts = operand == first_agpr || operand == first_sgpr;
    if (!ranges.empty() && !file_starts && ranges.back().first + ranges.back().count == operand)
      ++ranges.back().count;
    else
      ranges.push_back({uint16_t(operand), 1});
  }
  return ranges;
}

bool is_vector(OpKind kind) {
  return kind != OpKind::scalar && kind != OpKind::branch && kind != OpKind::scalar_memory;
}

} // namespace

void trace_instruction(Tracer &tracer, const ProgramImpl &program, const Wave &w, const Op &op,
                       const TraceContext &context) {
  const OpInfo &info = program.infos.infos[op.index];
  const OperandSet awaited = w.checks->awaited();
  std::vector<TracedRegisters> registers;
  using State = TracedRegisters::State;
  for (const RegisterRange range : ranges_of(context.awaited & ~awaited))
    registers.push_back(describe(w, range, State::arrived));
  for (uint32_t i = info.writes_begin; i < info.writes_end && context.ran; ++i) {
    const RegisterRange range = program.infos.ranges[i];
    registers.push_back(describe(w, range, awaited[range.first] ? State::in_flight : State::written));
  }
  const std::string text = program.text(op.index);
  tracer.executed({.workgroup = w.workgroup->id,
                   .wave = w.id,
                   .number = context.number,
                   .pc = program.address_of(op.index),
                   .disassembly = text,
                   .vector = is_vector(info.kind),
                   .exec = context.exec,
                   .registers = registers});
}

} // namespace sluice::emulator

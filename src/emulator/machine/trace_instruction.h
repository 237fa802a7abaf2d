//===- trace_instruction.h - describes an instruction to a Tracer ---------------------------------------===//
#pragma once

#include "emulator/check/wave_checks.h"
#include "emulator/machine/program.h"

namespace sluice::emulator {

/// The state before the instruction, and whether the wave could run it.
struct TraceContext {
  uint64_t number;
  uint64_t exec;
  OperandSet awaited;
  bool ran = false;
};

/// `w` is the wave after it has executed `op`.
void trace_instruction(Tracer &tracer, const ProgramImpl &program, const Wave &w, const Op &op,
                       const TraceContext &context);

} // namespace sluice::emulator

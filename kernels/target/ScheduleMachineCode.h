//===- ScheduleMachineCode.h - the final order of instructions --------------------------------*- C++ -*-===//
#pragma once

namespace llvm {
class TargetPassConfig;
} // namespace llvm

namespace sluice {

/// Adds the pass of ScheduleMachineCode.cpp to a code generator for AMDGPU: after waits are inserted, before
/// the wait states of hazards are. Functions may have their own choices (ScheduleChoices.h).
void addScheduleMachineCode(llvm::TargetPassConfig &config);

} // namespace sluice

//===- ScheduleMachineCode.h - the last word on the order of instructions ---------------------*- C++ -*-===//
#pragma once

namespace llvm {
class TargetPassConfig;
} // namespace llvm

namespace sluice {

/// Adds the pass of ScheduleMachineCode.cpp to a code generator for AMDGPU: behind the waits, in front of the
/// wait states of hazards. Functions may have choices of their own (ScheduleChoices.h).
void addScheduleMachineCode(llvm::TargetPassConfig &config);

} // namespace sluice

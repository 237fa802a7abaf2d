//===- instruction_mix.cpp - classes of instructions by the resource they use ---------------------------===//
#include "emulator/stats/instruction_mix.h"

#include "emulator/isa/mfma_shapes.h"

namespace sluice::emulator {

namespace {

constexpr std::string_view class_names[instruction_class_count] = {
    "MFMA",  "ACCMOV",  "VALU", "PK32", "TRANS", "LDS_rd",  "LDS_wr", "LDS_x",   "VM_lds", "VM_ld",
    "VM_st", "SCRATCH", "SALU", "SMEM", "wait",  "barrier", "branch", "setprio", "nop",    "unknown"};

} // namespace

uint32_t mfma_clk(const InstructionFacts &facts) {
  return facts.pipe == Pipe::matrix ? 4u * mfma_instructions()[facts.matrix].shape.passes : 0;
}

std::string_view class_name(InstructionClass instruction_class) {
  return class_names[size_t(instruction_class)];
}

InstructionClass classify(const InstructionFacts &facts, bool to_lds) {
  switch (facts.pipe) {
  case Pipe::matrix:
    return InstructionClass::matrix;
  case Pipe::valu:
    return facts.role == Role::acc_move ? InstructionClass::acc_move : InstructionClass::valu;
  case Pipe::transcendental:
    return InstructionClass::transcendental;
  case Pipe::packed_f32:
    return InstructionClass::packed_f32;
  case Pipe::smem:
    return InstructionClass::scalar_memory;
  case Pipe::lds:
    return facts.role == Role::load    ? InstructionClass::lds_read
           : facts.role == Role::store ? InstructionClass::lds_write
                                       : InstructionClass::lds_other;
  case Pipe::vmem:
    if (facts.has(Fact::scratch)) return InstructionClass::scratch;
    if (facts.role == Role::copy_to_lds || to_lds) return InstructionClass::memory_to_lds;
    return facts.role == Role::load ? InstructionClass::memory_load : InstructionClass::memory_store;
  case Pipe::salu:
  case Pipe::branch:
  case Pipe::internal:
    break;
  }
  switch (facts.role) {
  case Role::nop:
  case Role::sleep:
    return InstructionClass::nop;
  case Role::wait_counts:
    return InstructionClass::wait;
  case Role::barrier:
    return InstructionClass::barrier;
  case Role::priority:
    return InstructionClass::priority;
  case Role::jump:
  case Role::conditional_jump:
    return InstructionClass::branch;
  default:
    return InstructionClass::scalar;
  }
}

void InstructionMix::add(const InstructionMix &other) {
  for (size_t i = 0; i < count.size(); ++i)
    count[i] += other.count[i];
  for (const auto &[mnemonic, number] : other.mfma)
    mfma[mnemonic] += number;
  mfma_clk += other.mfma_clk;
  quarter_rate += other.quarter_rate;
  waits_for_all_memory = waits_for_all_memory || other.waits_for_all_memory;
}

uint32_t InstructionMix::total() const {
  uint32_t sum = 0;
  for (uint32_t n : count)
    sum += n;
  return sum;
}

uint32_t InstructionMix::issue_clk() const {
  using enum InstructionClass;
  return 4 * ((*this)[matrix] + (*this)[valu] + (*this)[packed_f32] + (*this)[acc_move]) +
         16 * (*this)[transcendental] + (16 - 4) * quarter_rate;
}

void InstructionMix::add(InstructionClass instruction_class, const InstructionFacts &facts) {
  ++count[size_t(instruction_class)];
  quarter_rate += facts.has(Fact::quarter_rate);
  if (instruction_class != InstructionClass::matrix) return;
  ++mfma[std::string(facts.mnemonic)];
  mfma_clk += emulator::mfma_clk(facts);
}

} // namespace sluice::emulator

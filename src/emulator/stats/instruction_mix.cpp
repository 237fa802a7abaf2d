//===- instruction_mix.cpp - classes of instructions by the resource they use ---------------------------===//
//
// Mnemonics are sorted by prefix, which is how the instruction set names its groups.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/stats/instruction_mix.h"

#include <algorithm>
#include <initializer_list>

#include "emulator/exec/mfma.h"

namespace sluice::emulator {

namespace {

constexpr std::string_view class_names[instruction_class_count] = {
    "MFMA",  "ACCMOV",  "VALU", "PK32", "TRANS", "LDS_rd",  "LDS_wr", "LDS_x",   "VM_lds", "VM_ld",
    "VM_st", "SCRATCH", "SALU", "SMEM", "wait",  "barrier", "branch", "setprio", "nop",    "unknown"};

bool is_any(std::string_view mnemonic, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return mnemonic.starts_with(prefix); });
}

} // namespace

uint32_t mfma_clk(std::string_view mnemonic) {
  const std::optional<MfmaShape> shape = mfma_shape(mnemonic);
  return shape ? 4u * shape->passes : 0;
}

std::string_view class_name(InstructionClass instruction_class) {
  return class_names[size_t(instruction_class)];
}

InstructionClass classify(std::string_view mnemonic, std::string_view text) {
  if (is_any(mnemonic, {"v_mfma", "v_smfma"})) return InstructionClass::matrix;
  if (is_any(mnemonic, {"v_accvgpr"})) return InstructionClass::acc_move;
  if (is_any(mnemonic, {"v_exp_", "v_log_", "v_rcp_", "v_rsq_", "v_sqrt_", "v_sin_", "v_cos_"}))
    return InstructionClass::transcendental;
  if (mnemonic == "s_nop" || mnemonic == "s_sleep") return InstructionClass::nop;
  if (mnemonic.starts_with("v_pk_") && mnemonic.ends_with("f32")) return InstructionClass::packed_f32;
  if (mnemonic.starts_with("v_")) return InstructionClass::valu;
  if (mnemonic.starts_with("ds_read")) return InstructionClass::lds_read;
  if (mnemonic.starts_with("ds_write")) return InstructionClass::lds_write;
  if (mnemonic.starts_with("ds_")) return InstructionClass::lds_other;
  if (is_any(mnemonic, {"buffer_load", "global_load", "flat_load"}))
    return mnemonic.find("_lds") != std::string_view::npos || text.ends_with(" lds")
               ? InstructionClass::memory_to_lds
               : InstructionClass::memory_load;
  if (is_any(mnemonic, {"buffer_", "global_", "flat_"})) return InstructionClass::memory_store;
  if (mnemonic.starts_with("scratch")) return InstructionClass::scratch;
  if (mnemonic.starts_with("s_waitcnt")) return InstructionClass::wait;
  if (mnemonic == "s_barrier") return InstructionClass::barrier;
  if (mnemonic == "s_setprio") return InstructionClass::priority;
  if (is_any(mnemonic, {"s_cbranch", "s_branch"})) return InstructionClass::branch;
  if (is_any(mnemonic, {"s_load", "s_buffer_load"})) return InstructionClass::scalar_memory;
  return InstructionClass::scalar;
}

void InstructionMix::add(const InstructionMix &other) {
  for (size_t i = 0; i < count.size(); ++i)
    count[i] += other.count[i];
  for (const auto &[mnemonic, number] : other.mfma)
    mfma[mnemonic] += number;
  mfma_clk += other.mfma_clk;
  mfma_of_unknown_rate += other.mfma_of_unknown_rate;
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

bool is_quarter_rate(std::string_view mnemonic) {
  return is_any(mnemonic, {"v_mul_lo_u32", "v_mul_hi_u32", "v_mul_hi_i32", "v_mad_u64_u32", "v_mad_i64_i32"});
}

void InstructionMix::add(InstructionClass instruction_class, const std::string &mnemonic) {
  ++count[size_t(instruction_class)];
  quarter_rate += is_quarter_rate(mnemonic);
  if (instruction_class != InstructionClass::matrix) return;
  ++mfma[mnemonic];
  const uint32_t clk = emulator::mfma_clk(mnemonic);
  mfma_clk += clk;
  if (clk == 0) ++mfma_of_unknown_rate;
}

} // namespace sluice::emulator

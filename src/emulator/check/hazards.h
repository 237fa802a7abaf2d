//===- hazards.h - wait states that the hardware does not enforce ---------------------------------------===//
//
// The hardware does not wait between some pairs of dependent instructions: those that use results of the
// matrix core, of transcendentals, of vector instructions that write scalars, and a few more. Software puts
// other instructions or s_nop between them; each instruction is one wait state, s_nop N is N + 1. For each
// register, the tracker knows which instruction wrote it and when, on the path the wave really takes. The
// rules come from AMD's CDNA3 ISA manual. Rules that only LLVM's hazard recogniser for the gfx940 family has
// are at a level of their own. So are violations that exist only by count, because a taken branch or a
// barrier was in between.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "emulator/check/report.h"
#include "emulator/isa/op_info.h"

namespace sluice::emulator {

/// hazards.cpp documents each rule and its source.
enum class HazardRule : uint8_t {
  matrix_result,
  matrix_addend,
  matrix_overwrite,
  matrix_addend_overwrite,
  matrix_overwrite_by_load,
  matrix_addend_overwrite_by_load,
  vector_to_matrix,
  exec_to_matrix,
  dot_result,
  fma_after_dgemm,
  transcendental,
  half_read,
  half_overwrite,
  vector_to_dpp,
  exec_to_dpp,
  exec_to_lane_access,
  exec_constant,
  vector_to_readlane,
  scalar_constant,
  carry_in,
  vcc_to_div_fmas,
  lane_select,
  scalar_to_memory,
  store_data,
  m0,
  m0_trace,
  m0_copy,
  mode,
};

struct HazardFound {
  HazardRule rule;
  HazardLevel level;
  uint16_t operand; // the register
  uint32_t other;   // the instruction it depends on
  uint32_t needed;  // wait states
  uint32_t seen;
};
/// "v8: written by the matrix core 9 wait states before, but 11 are needed (...)" with the rule's source.
std::string describe(const HazardFound &found);

class HazardTracker {
public:
  /// No rule needs more wait states.
  static constexpr uint32_t longest_wait = 32;

  /// `wanted`: the levels to look for. `one_wave`: barriers take no time, because no other wave will arrive.
  void start(std::array<bool, hazard_levels> wanted, bool one_wave = false);
  /// Checks an instruction against those before it, and enters what it writes. Returns the finding of the
  /// most serious level.
  std::optional<HazardFound> step(const Op &op, const OpInfo &info, const OpInfos &infos);
  /// Makes all instructions so far too old to matter.
  void forget() { now += longest_wait + 1; }
  /// Levels, wanted or not, of everything that was ever too early, with and without what branches and
  /// barriers change.
  std::array<bool, hazard_levels> levels_met() const { return met; }

private:
  static constexpr uint64_t never = 0;

  struct Row {
    uint64_t vector_write = never;
    uint64_t matrix_write = never;
    uint64_t matrix_addend_read = never;
    uint64_t store_read = never; // when a store that takes its data late read it
    uint32_t vector_op = 0;
    uint32_t matrix_op = 0;
    uint32_t addend_op = 0;
    uint32_t store_op = 0;
    uint16_t matrix_first = 0; // first register of the result that the row is part of
    MatrixInfo matrix;         // the instruction that wrote it
    uint16_t dot = 0;          // the kind of dot product that wrote it
    uint8_t addend_passes = 0;
    bool transcendental = false;
    bool half = false;
  };
  struct Scalar {
    uint64_t vector_write = never;
    uint32_t op = 0;
  };

  void need(HazardRule rule, uint64_t written, uint32_t states, uint16_t operand, uint32_t other);
  void check_matrix_reads(uint16_t first, uint32_t count, const MatrixInfo &reader, bool addend);
  void check_matrix(const Op &op, const MatrixInfo &matrix);
  void check_overwrite(uint16_t operand, uint16_t dot, bool by_load);
  void check_vector(const Op &op, const OpInfo &info, const OpInfos &infos);
  void check_scalar_source(const Op &op, const OpInfo &info, uint16_t operand);
  void check_memory(const OpInfo &info, const OpInfos &infos);
  void check_m0(const OpInfo &info);
  void check_scalar(const OpInfo &info);
  void enter_matrix(const Op &op, const MatrixInfo &matrix);
  void enter(const Op &op, const OpInfo &info, const OpInfos &infos);

  std::array<Row, 512> rows;
  std::array<Scalar, 256> scalars;
  uint64_t scalar_m0_write = never;
  uint32_t scalar_m0_op = 0;
  uint64_t mode_write = never; // by s_setreg
  uint32_t mode_op = 0;
  uint64_t last_dgemm = never;
  uint32_t last_dgemm_op = 0;
  uint64_t now = 1;
  uint64_t interrupted = never; // when a taken branch or a barrier last came before an instruction
  uint32_t next_op = 0;         // the one that follows without a branch
  std::array<bool, hazard_levels> wanted{};
  std::array<bool, hazard_levels> met{};
  bool one_wave = false;
  std::optional<HazardFound> found;
};

} // namespace sluice::emulator

//===- wave.h - the state of one wave -------------------------------------------------------------------===//
//
// Registers are rows of 64 dwords (register r of lane l is vgprs[r * 64 + l]), so that one instruction is one
// plain loop over lanes. Instruction bodies see only this struct of the machine.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "emulator/isa/mfma_shapes.h"
#include "emulator/isa/op.h"

namespace sluice::emulator {

class GlobalSync; // exec/global_sync.h
class WaveChecks; // check/wave_checks.h

constexpr uint32_t vector_registers = 512;

/// Where the flat address space maps LDS and scratch. Bit 48 and up: host pointers never have these bits.
constexpr uint64_t shared_aperture = uint64_t(1) << 48;
constexpr uint64_t private_aperture = uint64_t(2) << 48;
constexpr uint64_t aperture_bytes = uint64_t(1) << 32;

/// The MODE register's settings for the vector ALU.
struct FloatMode {
  uint8_t round_32 = 0; // 0 nearest even, 1 up, 2 down, 3 toward zero
  uint8_t round_16_64 = 0;
  uint8_t denormal_32 = 3; // bit 0: inputs kept, bit 1: results kept
  uint8_t denormal_16_64 = 3;
  bool dx10_clamp = true;
  bool ieee = true;
  bool fp16_overflow = false; // FP16_OVFL: f16 and fp8 results stop at the largest number
  bool gpr_index = false;     // GPR_IDX_EN: registers relative to M0

  /// The mode of the plain bodies: nothing to do before or after them, but for minima and maxima without
  /// `ieee`.
  bool plain() const {
    return (round_32 | round_16_64) == 0 && (denormal_32 & denormal_16_64) == 3 && !fp16_overflow &&
           !gpr_index;
  }
};

/// Behaviour that the hardware leaves open and programs must not depend on, drawn at random.
struct NumberNoise {
  bool transcendentals = false; // one unit in the last place more or less, or unchanged
  bool nans = false;            // payloads
  uint64_t seed = 0;

  bool any() const { return transcendentals || nans; }
};

/// Bits of the MODE register beyond rounding and denormals.
constexpr uint32_t mode_gpr_index_enable = 1u << 27;
constexpr uint32_t mode_vskip = 1u << 28;
constexpr uint32_t mode_branch_stack_shift = 29; // CSP, 3 bits

/// Why a wave cannot go on.
enum class Fault : uint8_t {
  none,
  unknown_instruction,
  invalid_pc,
  trap,
  branch_stack,
  matrix_overflow_mode,  // MFMA under MODE.FP16_OVFL
  matrix_index_mode,     // MFMA while MODE.GPR_IDX_EN is set
  sparse_index,          // SMFMAC with an index pair that is not in ascending order
  global_sync_alone,     // global wave sync in a launch that is not cooperative
  global_sync_exec,      // ... with EXEC 0
  global_sync_not_ready, // a barrier of a resource that was never initialised
};

/// Maps addresses to instructions and back, for jumps through registers.
struct CodeMap {
  uint64_t address = 0;                // host address of the first byte
  uint32_t dwords = 0;                 // length of the code
  const int32_t *op_at = nullptr;      // by dword: index of the instruction that starts there, or -1
  const uint32_t *offset_of = nullptr; // by instruction, plus the end: byte offset in the code
};

struct WorkgroupView {
  std::array<uint32_t, 3> id{};
  uint32_t number = 0; // in the order of dispatch
  uint8_t *lds = nullptr;
  uint32_t lds_bytes = 0;
  uint32_t waves = 0;
  GlobalSync *sync = nullptr; // for a cooperative launch
};

/// What s_memtime reads. It needs no host time, so that every run of a program reads the same.
struct WaveClock {
  static constexpr uint64_t clk_per_instruction = 4;
  uint64_t base;          // clk, without those of the instructions executed
  const Op *site;         // of the latest reading
  uint64_t polling_since; // clk at the first of the latest readings that were all at this site
  bool modelled;          // the timing model sets `base` before each reading
};

struct alignas(64) Wave {
  uint32_t s[sgpr_count]; // scalar registers by encoding number
  uint32_t *vgprs;        // v0..v255, a0..a255, then temporary rows
  const uint32_t *constants;
  const Op *pc; // the next instruction
  const Op *first_op;
  WorkgroupView *workgroup;
  WaveChecks *checks; // null if every check is off and completion is early
  uint8_t *scratch;   // scratch_bytes per lane, lane after lane
  uint32_t scratch_bytes;
  uint32_t id;       // its number in the workgroup
  uint64_t executed; // instructions; up to date when the wave stops running
  std::array<uint64_t, mfma_instruction_count> mfma_executed; // in the order of mfma_instructions()
  uint64_t buffer_lanes_out_of_range;
  WaveClock clock;
  const CodeMap *code;
  FloatMode mode;
  NumberNoise noise;
  bool mode_plain;     // FloatMode::plain, and no noise
  uint32_t mode_bits;  // the MODE register as s_getreg shows it
  uint32_t vgpr_limit; // granted by the descriptor
  uint32_t sgpr_limit;
  Fault fault;            // why the last instruction returned Step::stop
  uint32_t sync_resource; // where the wave waits, after Step::global_barrier
  uint64_t sync_round;

  /// In clk; exact when the wave stops running.
  uint64_t time() const { return clock.base + executed * WaveClock::clk_per_instruction; }

  /// Writes the MODE register.
  void set_mode(uint32_t bits) {
    mode_bits = bits;
    mode.round_32 = bits & 3;
    mode.round_16_64 = bits >> 2 & 3;
    mode.denormal_32 = bits >> 4 & 3;
    mode.denormal_16_64 = bits >> 6 & 3;
    mode.dx10_clamp = (bits >> 8 & 1) != 0;
    mode.ieee = (bits >> 9 & 1) != 0;
    mode.fp16_overflow = (bits >> 23 & 1) != 0;
    mode.gpr_index = (bits & mode_gpr_index_enable) != 0;
    mode_plain = mode.plain() && !noise.any();
  }

  uint64_t exec() const { return pair(sgpr_exec); }
  void set_exec(uint64_t value) { set_pair(sgpr_exec, value); }

  /// A 64-bit value in scalar registers `number` and `number` + 1.
  uint64_t pair(uint32_t number) const {
    uint64_t value;
    std::memcpy(&value, &s[number], sizeof value);
    return value;
  }
  void set_pair(uint32_t number, uint64_t value) { std::memcpy(&s[number], &value, sizeof value); }

  uint32_t *row(uint32_t operand) { return vgprs + operand * wave_lanes; }
  const uint32_t *row(uint32_t operand) const { return vgprs + operand * wave_lanes; }

  /// Temporary rows after the registers.
  uint32_t *temporary(uint32_t index) { return vgprs + (vector_registers + index) * wave_lanes; }

  /// A scalar source: a scalar register or a constant.
  uint32_t scalar(uint16_t operand) const {
    return operand >= first_constant ? constants[(operand - first_constant) * wave_lanes]
                                     : s[operand - first_sgpr];
  }
  uint64_t scalar_pair(uint16_t operand) const {
    if (operand >= first_constant) {
      const uint32_t *low = constants + (operand - first_constant) * wave_lanes;
      return low[0] | uint64_t(low[wave_lanes]) << 32;
    }
    return pair(operand - first_sgpr);
  }
};

constexpr uint32_t temporary_rows = 24;

} // namespace sluice::emulator

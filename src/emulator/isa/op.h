//===- op.h - a decoded instruction ---------------------------------------------------------------------===//
//
// An Op is what the machine executes: the routine to call and its operands. It is small enough that a loop
// body of a few hundred instructions stays in the first-level cache. Data that is needed only to explain an
// instruction (its text, the registers it touches) is stored separately, in the program.
//
// An operand is one number for all register files:
//
//   0    .. 255   v0 .. v255
//   256  .. 511   a0 .. a255
//   512  .. 639   scalar registers by their number in the encoding (VCC 106, M0 124, EXEC 126)
//   640           SCC
//   1024 ..       rows of the program's constant pool (a 64-bit constant takes two: low, high)
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstdint>

#include "emulator/isa/instructions.h"

namespace sluice::emulator {

struct Op;
struct Wave;

/// What the wave does next.
enum class Step : uint8_t {
  next,           // continues at wave.pc
  barrier,        // waits for the other waves of its workgroup
  global_barrier, // waits for waves of other workgroups as well
  yield,          // sleeps: other waves may run
  end,            // has ended
  stop,           // cannot go on; a report says why
};

using Handler = Step (*)(Wave &wave, const Op &op);

/// The view that the body of a VALU instruction has: rows of 64 dwords, two rows for a 64-bit value.
struct Lanes {
  uint32_t *d;
  const uint32_t *s[3];
  const uint32_t *mask_in; // 0 or ~0 per lane
  uint32_t *mask_out;      // the same
};
using LaneBody = void (*)(const Lanes &lanes);

/// How the bits of a VALU operand are read. The meaning of modifiers and constants depends on it.
enum class OperandType : uint8_t {
  none,
  b32,
  f32,
  b64,
  i64, // differs from b64 in how literals are widened
  f64,
  b16,
  f16,
  packed_b16,
  packed_f16,
  packed_f32, // two rows
  mask,       // one bit per lane in a scalar pair
  b128,       // four rows
};
constexpr bool is_two_rows(OperandType type) {
  return type == OperandType::b64 || type == OperandType::i64 || type == OperandType::f64 ||
         type == OperandType::packed_f32;
}
constexpr uint32_t rows_of(OperandType type) {
  return type == OperandType::b128 ? 4 : is_two_rows(type) ? 2 : 1;
}
constexpr bool is_float(OperandType type) {
  return type == OperandType::f32 || type == OperandType::f64 || type == OperandType::f16 ||
         type == OperandType::packed_f16 || type == OperandType::packed_f32;
}
constexpr bool is_16_bit(OperandType type) {
  return type == OperandType::b16 || type == OperandType::f16;
}

/// The part of the result that is defined if part of the sources was never written.
enum class Definedness : uint8_t {
  all,    // a lane of the result is defined if it is in all sources
  any,    // ... if it is in any source: instructions that combine parts of values
  select, // ... if it is in the source that the mask chooses
  bits,   // scalar: each bit of the result comes from some bits of the sources
  // v_mbcnt: a lane of the result depends on the bits of the mask for the lanes below it
  lanes_below,
  lanes_below_high, // ... the mask is that of lanes 32 and up
  swap,             // v_swap: two registers trade places
  always,           // not tracked
};

constexpr uint32_t wave_lanes = 64;
constexpr uint64_t all_lanes = ~uint64_t(0);

constexpr uint16_t first_agpr = 256;
constexpr uint16_t first_sgpr = 512;
constexpr uint16_t scc_operand = 640;
constexpr uint16_t first_constant = 1024;
constexpr uint16_t no_operand = 0xffff;

constexpr uint16_t sgpr_vcc = 106;
constexpr uint16_t sgpr_ttmp0 = 108;
constexpr uint16_t sgpr_m0 = 124;
constexpr uint16_t sgpr_exec = 126;
constexpr uint16_t sgpr_scc = 128;  // after the file, so that SCC can be an operand
constexpr uint16_t sgpr_mode = 129; // for reports: MODE is not an operand
constexpr uint16_t sgpr_count = 130;

/// Source and result modifiers of a VALU instruction. All zero: the body gets the operands unchanged.
struct ValuModifiers {
  uint8_t negate : 3 = 0;               // one bit per source; for packed instructions, of the low half
  uint8_t absolute : 3 = 0;             // for packed instructions, negation of the high half
  uint8_t output_scale : 2 = 0;         // OMOD: 1 *2, 2 *4, 3 /2
  uint8_t select_high : 4 = 0;          // op_sel: one bit per source, bit 3 the destination
  uint8_t select_high_for_high : 3 = 0; // op_sel_hi
  uint8_t clamp : 1 = 0;
  uint8_t lane_control : 2 = 0; // 1 DPP, 2 SDWA

  /// True if the body gets the operands unchanged and its result is stored unchanged.
  bool none() const {
    return (negate | absolute | output_scale | select_high | clamp | lane_control) == 0 && !packed_select;
  }
  uint8_t packed_select : 1 = 0; // packed: op_sel or op_sel_hi differs from the default
};

enum : uint8_t { lane_control_dpp = 1, lane_control_sdwa = 2 };

/// The second dword of a DPP instruction.
struct DppControl {
  uint16_t control : 9;
  uint16_t bound_zero : 1;
  uint8_t bank_mask : 4;
  uint8_t row_mask : 4;
};

/// The second dword of an SDWA instruction. Selects: 0-3 a byte, 4-5 a word, 6 the dword.
struct SdwaControl {
  uint8_t destination : 3;
  uint8_t unused : 2; // 0 pad with zero, 1 sign-extend, 2 preserve
  uint8_t source0 : 3;
  uint8_t source1 : 3;
  uint8_t sign_extend0 : 1;
  uint8_t sign_extend1 : 1;
};

enum class AddressMode : uint8_t { flat, global, scratch };

/// The denormals that a floating-point atomic keeps: all, none, or those that MODE allows.
enum class DenormalRule : uint8_t { keep, flush, mode_32, mode_16_64 };

/// The value that an atomic stores, computed from the old value and its operands. `denormals` is as in MODE:
/// bit 0 keeps denormal operands, bit 1 denormal results.
using AtomicBody = uint64_t (*)(uint64_t old, uint64_t operand, uint64_t second, uint32_t denormals);

/// Sources: DS address, data0, data1; FLAT address, data, scalar base; MUBUF and MTBUF address, data,
/// resource, with the scalar offset in mask_in; SMEM base, offset register.
struct MemoryControl {
  int32_t offset;   // bytes; DS: of the first access
  uint32_t offset1; // DS: bytes, of the second access
  uint8_t dwords;   // registers of the data operand
  uint8_t bytes;    // per access and lane
  uint8_t parts;    // DS: accesses per lane, 1 or 2
  HalfSelect half;
  AddressMode mode;              // FLAT encodings
  uint8_t components;            // formatted MUBUF and MTBUF: components of the data operand
  uint8_t format;                // MTBUF: DFMT | NFMT << 4
  DenormalRule memory_denormals; // atomics in memory
  DenormalRule lds_denormals;    // atomics in LDS
  bool sign_extend : 1;
  bool offset_enable : 1; // MUBUF: VADDR holds an offset
  bool index_enable : 1;  // MUBUF: VADDR holds an index
  bool return_old : 1;    // atomics: the old value goes to the destination
  bool second : 1;        // atomics: has a second operand, such as the value to compare with
  bool align_down : 1;    // DS: the low bits of the address are ignored
  bool packed_16 : 1;     // formatted, D16: two components per register
  bool sc0 : 1;           // MUBUF and FLAT, with sc1 and nt: the cache policy. For buffer_inv and
  bool sc1 : 1;           // buffer_wbl2, SC1 SC0 is the scope: 0 wave, 1 workgroup, 2 agent, 3 system
  bool nt : 1;            // non-temporal
};

struct MfmaControl {
  uint8_t shape; // index into mfma_instructions()
  uint8_t cbsz;
  uint8_t abid;
  uint8_t blgp;
};

struct ValuControl {
  ValuModifiers modifiers;
  uint8_t sources = 0;
  OperandType source_types[3] = {};
  OperandType result_type = OperandType::none;
  bool keeps_half : 1 = false;     // a 16-bit result leaves the other half of the register
  bool accumulates : 1 = false;    // the last source is the destination
  bool rounds : 1 = false;         // the result is rounded according to MODE
  bool keeps_bits : 1 = false;     // no arithmetic: subnormals and NaNs pass unchanged
  bool transcendental : 1 = false; // not exact in hardware
  bool quiets : 1 = false;         // min and max: MODE.IEEE decides about signalling NaNs
  DppControl dpp = {};
  SdwaControl sdwa = {};
};

struct alignas(64) Op {
  Handler run = nullptr;
  union {
    LaneBody body = nullptr; // VALU
    AtomicBody atomic;       // memory
  };
  uint32_t index = 0; // position in the program
  int32_t value = 0;  // SOPK and SOPP immediate, branch target as an index, wait counts
  uint16_t dst = no_operand;
  uint16_t mask = no_operand;                             // scalar pair that receives a carry or a comparison
  uint16_t src[3] = {no_operand, no_operand, no_operand}; // for memory instructions: see MemoryControl
  uint16_t mask_in = no_operand;                          // scalar pair that supplies a carry or selects
  union {
    ValuControl valu = {};
    MemoryControl memory;
    MfmaControl mfma;
  };
};

} // namespace sluice::emulator

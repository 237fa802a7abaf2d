//===- instructions.h - the facts about each instruction ------------------------------------------------===//
//
// There is one row per instruction of gfx942, in the *_instructions.cpp files and, for the matrix core, in
// mfma_shapes.cpp. The row has what the decoder, the checks, the static figures and the timing model need to
// know about the instruction; exec/ has its effect. Mnemonics are compared as a whole: nothing else reads an
// operation or a width out of their text.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sluice::emulator {

/// The resource that an instruction occupies.
enum class Pipe : uint8_t {
  matrix,
  valu,
  transcendental, // not exact in hardware
  packed_f32,
  salu,
  smem,
  vmem,
  lds,
  branch,
  internal, // s_nop, s_waitcnt, s_barrier and similar
};
inline constexpr size_t pipe_count = size_t(Pipe::internal) + 1;

/// The instruction's own effect, where code other than its routine depends on it.
enum class Role : uint8_t {
  plain,
  // Instructions of the scalar unit
  wait_counts, // s_waitcnt
  barrier,
  priority,
  nop,
  sleep,
  halt,
  end,
  trace_data,
  get_register, // hardware registers
  set_register,
  set_register_literal,
  index_on, // s_set_gpr_idx_on
  // Control flow: to an offset, unless it is indirect
  jump,
  conditional_jump,
  call,
  indirect_jump,
  indirect_call,
  // Vector instructions
  compare_exec,
  read_first_lane,
  read_lane,
  write_lane,
  acc_move, // to or from an AccVGPR
  vector_nop,
  mixed_fma,
  dot,
  div_fmas,
  fma_f64,
  // Memory and LDS
  load,
  store,
  atomic,         // combines what memory holds with its operand
  atomic_compare, // stores if memory holds what it expects
  atomic_swap,    // stores regardless of what memory holds
  copy_to_lds,    // by its name; the buffer loads say it by a bit of the encoding
  lane_exchange,
  global_sync,
  invalidate,
  write_back,
  read_clock,
};

enum class Fact : uint16_t {
  none = 0,
  rounds = 1 << 0,     // the result is rounded according to MODE
  keeps_bits = 1 << 1, // no arithmetic that MODE could affect: moves, classes, and the dot products of floats
  quiets = 1 << 2,     // a minimum or maximum: MODE.IEEE decides about signalling NaNs
  saturates = 1 << 3,  // always stops at the bounds of its type; in comparisons CLAMP is about exceptions
  quarter_rate = 1 << 4, // takes four times as long as others on the vector ALU
  reads_m0 = 1 << 5,     // early: a scalar write of M0 needs a wait state before it
  flat = 1 << 6,         // an address may be in LDS or scratch
  scratch = 1 << 7,
  resource = 1 << 8,        // of scalar memory: the base is a buffer resource
  address_in_m0 = 1 << 9,   // of LDS: instead of a register
  returns_old = 1 << 10,    // of LDS: what was there; in memory, a bit of the encoding says it
  aligns_address = 1 << 11, // of LDS: ignores its low bits
  chosen_halves = 1 << 12,  // sources are pairs of dwords, of which op_sel and op_sel_hi may choose one
  scalar_result = 1 << 13,  // of the vector ALU: the destination is a scalar register
  acc_source = 1 << 14,     // by its name; the ACC bit means nothing
  acc_result = 1 << 15,     // likewise
};
constexpr Fact operator|(Fact a, Fact b) {
  return Fact(uint16_t(a) | uint16_t(b));
}

/// Which half of its register a 16-bit value of a memory instruction is in.
enum class HalfSelect : uint8_t { none, low, high };

/// What an atomic makes of the value in memory and its operand. exec/memory/atomics.cpp has the rules.
enum class AtomicOperation : uint8_t {
  nothing,
  swap,
  compare_swap,
  add,
  subtract,
  subtract_from_operand,
  bit_and,
  bit_or,
  bit_xor,
  signed_min,
  signed_max,
  unsigned_min,
  unsigned_max,
  increment,
  decrement,
  replace_bits,
  wrap,
  exchange_halves,
  add_float,
  min_float,
  max_float,
  compare_swap_float,
  add_f16_pair,
  add_bf16_pair,
};

/// What a memory instruction moves.
struct DataFacts {
  uint8_t bytes = 0; // per access and lane, or that a scalar access moves; 0 if the instruction converts
  uint8_t parts = 1; // of LDS: accesses per lane
  uint16_t offset_unit = 0; // of two accesses: the unit of their offsets, in bytes
  bool sign_extend = false;
  HalfSelect half = HalfSelect::none;
  uint8_t components = 0; // if the instruction converts
  bool packed_16 = false; // two components per register
  AtomicOperation operation = AtomicOperation::nothing;

  /// Registers per lane.
  constexpr uint32_t dwords() const {
    if (components != 0) return packed_16 ? (components + 1u) / 2 : components;
    return (bytes + 3u) / 4 * parts;
  }
};

struct InstructionFacts {
  std::string_view mnemonic; // without _e32, _e64, _dpp and _sdwa
  Pipe pipe = Pipe::internal;
  Role role = Role::plain;
  Fact facts = Fact::none;
  DataFacts data = {};
  uint8_t matrix = 0;             // of the matrix core: its place in mfma_instructions()
  std::string_view left_out = {}; // why the machine leaves the instruction out on purpose
  std::string_view effect = {};   // whose row of the vector ALU it shares; empty: it has its own

  constexpr bool has(Fact fact) const { return (uint16_t(facts) & uint16_t(fact)) != 0; }
};

/// For bytes that are not an instruction.
inline constexpr InstructionFacts no_instruction{};

/// Null if gfx942 has no such instruction.
const InstructionFacts *instruction_facts(std::string_view mnemonic);
/// All of them: scalar, vector, comparison, memory, matrix.
std::span<const std::span<const InstructionFacts>> all_instruction_facts();

constexpr bool is_transfer_of_control(Role role) {
  return role >= Role::jump && role <= Role::indirect_call;
}
/// Whether the target is in the encoding.
constexpr bool is_relative_jump(Role role) {
  return role == Role::jump || role == Role::conditional_jump || role == Role::call;
}
constexpr bool is_call(Role role) {
  return role == Role::call || role == Role::indirect_call;
}
/// Whether the next instruction may run after this one.
constexpr bool falls_through(Role role) {
  return role != Role::end && (!is_transfer_of_control(role) || role == Role::conditional_jump);
}
constexpr bool is_atomic(Role role) {
  return role == Role::atomic || role == Role::atomic_compare || role == Role::atomic_swap;
}
/// An atomic whose result depends on what memory held.
constexpr bool combines_with_memory(Role role) {
  return role == Role::atomic || role == Role::atomic_compare;
}
constexpr bool writes_hardware_register(Role role) {
  return role == Role::set_register || role == Role::set_register_literal;
}
constexpr bool is_lane_access(Role role) {
  return role == Role::read_first_lane || role == Role::read_lane || role == Role::write_lane;
}

/// The counters of s_waitcnt: vmcnt is split over bits 3:0 and 15:14, lgkmcnt is bits 11:8. (CDNA3 ISA
/// manual, S_WAITCNT; expcnt means nothing on this chip.)
struct WaitCounts {
  uint32_t vector;
  uint32_t lgkm;
};
constexpr uint32_t most_vector_count = 63;
constexpr uint32_t most_lgkm_count = 15;
constexpr WaitCounts wait_counts(uint32_t simm16) {
  return {(simm16 & 15) | (simm16 >> 14 & 3) << 4, simm16 >> 8 & 15};
}

namespace detail {
std::span<const InstructionFacts> scalar_instructions();
std::span<const InstructionFacts> vector_instructions();
std::span<const InstructionFacts> comparison_instructions();
std::span<const InstructionFacts> memory_instructions();
} // namespace detail

} // namespace sluice::emulator

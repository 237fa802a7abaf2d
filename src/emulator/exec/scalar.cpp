//===- scalar.cpp - the scalar instructions -------------------------------------------------------------===//
//
// A body sees its sources, its result and SCC, and follows the manual's sentence. One routine per operand
// shape reads and writes registers around it. Program flow and waits work on the wave itself.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/exec/scalar.h"

#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>

#include "emulator/check/wave_checks.h"
#include "emulator/exec/hardware_registers.h"
#include "emulator/isa/gpr_index.h"
#include "emulator/isa/wave.h"

namespace sluice::emulator {

namespace {

//===--- Operand shapes ---------------------------------------------------------------------------------===//

template <class D, class S0, class S1> struct Sop2 {
  S0 s0;
  S1 s1;
  D d;
  bool scc;
};
template <class D, class S0> struct Sop1 {
  S0 s0;
  D d; // holds the destination's old value
  bool scc;
};
template <class S0, class S1> struct Sopc {
  S0 s0;
  S1 s1;
  bool scc;
};
struct Saveexec {
  uint64_t s0;
  uint64_t exec; // its old value goes to the destination
  bool scc;
};
struct Sopk {
  int32_t imm;
  uint32_t d; // holds the register's old value
  bool scc;
};

template <class T> constexpr OperandType type_of() {
  if constexpr (sizeof(T) == 4)
    return OperandType::b32;
  else
    return std::is_signed_v<T> ? OperandType::i64 : OperandType::b64;
}

template <class T> T read(const Wave &w, uint16_t operand) {
  if constexpr (sizeof(T) == 4)
    return T(w.scalar(operand));
  else
    return T(w.scalar_pair(operand));
}

template <class T> void write(Wave &w, uint16_t operand, T value) {
  if constexpr (sizeof(T) == 4)
    w.s[operand - first_sgpr] = uint32_t(value);
  else
    w.set_pair(operand - first_sgpr, uint64_t(value));
}

template <class> struct Argument;
template <class L, class A> struct Argument<void (L::*)(A &) const> {
  using type = A;
};
template <auto Body> using ArgumentOf = typename Argument<decltype(&decltype(Body)::operator())>::type;

template <auto Body, class D, class S0, class S1>
constexpr ScalarRow row_for(std::string_view mnemonic, Sop2<D, S0, S1> *) {
  return {mnemonic,
          Format::sop2,
          [](Wave &w, const Op &op) {
            Sop2<D, S0, S1> i{read<S0>(w, op.src[0]), read<S1>(w, op.src[1]), D{}, w.s[sgpr_scc] != 0};
            Body(i);
            write<D>(w, op.dst, i.d);
            w.s[sgpr_scc] = i.scc;
            return Step::next;
          },
          {type_of<S0>(), type_of<S1>()}};
}

template <auto Body, class D, class S0>
constexpr ScalarRow row_for(std::string_view mnemonic, Sop1<D, S0> *) {
  return {mnemonic,
          Format::sop1,
          [](Wave &w, const Op &op) {
            Sop1<D, S0> i{read<S0>(w, op.src[0]), read<D>(w, op.dst), w.s[sgpr_scc] != 0};
            Body(i);
            write<D>(w, op.dst, i.d);
            w.s[sgpr_scc] = i.scc;
            return Step::next;
          },
          {type_of<S0>(), OperandType::none}};
}

template <auto Body, class S0, class S1>
constexpr ScalarRow row_for(std::string_view mnemonic, Sopc<S0, S1> *) {
  return {mnemonic,
          Format::sopc,
          [](Wave &w, const Op &op) {
            Sopc<S0, S1> i{read<S0>(w, op.src[0]), read<S1>(w, op.src[1]), w.s[sgpr_scc] != 0};
            Body(i);
            w.s[sgpr_scc] = i.scc;
            return Step::next;
          },
          {type_of<S0>(), type_of<S1>()}};
}

template <auto Body> constexpr ScalarRow row_for(std::string_view mnemonic, Saveexec *) {
  return {mnemonic,
          Format::sop1,
          [](Wave &w, const Op &op) {
            const uint64_t old = w.exec();
            Saveexec i{w.scalar_pair(op.src[0]), old, w.s[sgpr_scc] != 0};
            Body(i);
            i.scc = i.exec != 0;
            write<uint64_t>(w, op.dst, old);
            w.set_exec(i.exec);
            w.s[sgpr_scc] = i.scc;
            return Step::next;
          },
          {OperandType::b64, OperandType::none}};
}

template <auto Body> constexpr ScalarRow row_for(std::string_view mnemonic, Sopk *) {
  return {mnemonic, Format::sopk, [](Wave &w, const Op &op) {
            uint32_t &d = w.s[op.dst - first_sgpr];
            Sopk i{op.value, d, w.s[sgpr_scc] != 0};
            Body(i);
            d = i.d;
            w.s[sgpr_scc] = i.scc;
            return Step::next;
          }};
}

template <auto Body>
constexpr ScalarRow row(std::string_view mnemonic, Definedness definedness = Definedness::all) {
  ScalarRow result = row_for<Body>(mnemonic, static_cast<ArgumentOf<Body> *>(nullptr));
  result.definedness = definedness;
  return result;
}

constexpr ScalarRow row(std::string_view mnemonic, Format format, Handler run,
                        OperandType source = OperandType::none, OperandType second = OperandType::none,
                        Definedness definedness = Definedness::all) {
  return {mnemonic, format, run, {source, second}, definedness};
}

using B32 = Sop2<uint32_t, uint32_t, uint32_t>;
using I32 = Sop2<int32_t, int32_t, int32_t>;
using B64 = Sop2<uint64_t, uint64_t, uint64_t>;
using Shift64 = Sop2<uint64_t, uint64_t, uint32_t>;
using ShiftI64 = Sop2<int64_t, int64_t, uint32_t>;
using One32 = Sop1<uint32_t, uint32_t>;
using One64 = Sop1<uint64_t, uint64_t>;
using Compare32 = Sopc<uint32_t, uint32_t>;
using CompareI32 = Sopc<int32_t, int32_t>;
using Compare64 = Sopc<uint64_t, uint64_t>;

//===--- Helpers of bodies ------------------------------------------------------------------------------===//

template <class T> T extract(T value, uint32_t offset, uint32_t width) {
  constexpr uint32_t bits = sizeof(T) * 8;
  if (width == 0) return 0;
  const T shifted = value >> offset;
  if (offset + width >= bits) return shifted;
  return T(std::make_unsigned_t<T>(shifted) << (bits - width)) >> (bits - width);
}

template <class T> T mask_bits(uint32_t width, uint32_t offset) {
  return T(((T(1) << width) - 1) << offset);
}

template <class T> T reverse(T value) {
  T result = 0;
  for (uint32_t i = 0; i < sizeof(T) * 8; ++i)
    result = T(result << 1 | ((value >> i) & 1));
  return result;
}

template <class T> uint32_t first_bit(T value) {
  return value == 0 ? ~0u : uint32_t(std::countr_zero(value));
}
template <class T> uint32_t leading_bit(T value) {
  return value == 0 ? ~0u : uint32_t(std::countl_zero(value));
}
template <class T> uint32_t leading_sign(T value) {
  using U = std::make_unsigned_t<T>;
  const U flipped = U(value < 0 ? ~value : value);
  return flipped == 0 ? ~0u : uint32_t(std::countl_zero(flipped));
}

uint64_t whole_quads(uint64_t mask) {
  uint64_t result = 0;
  for (uint32_t quad = 0; quad < 64; quad += 4)
    if ((mask >> quad & 15) != 0) result |= uint64_t(15) << quad;
  return result;
}
uint64_t quad_mask(uint64_t mask) {
  uint64_t result = 0;
  for (uint32_t quad = 0; quad < 16; ++quad)
    result |= uint64_t((mask >> (4 * quad) & 15) != 0) << quad;
  return result;
}

//===--- Program flow -----------------------------------------------------------------------------------===//

Step stop(Wave &w, Fault fault) {
  w.fault = fault;
  return Step::stop;
}

Step jump_to(Wave &w, int32_t target) {
  if (target < 0) return stop(w, Fault::invalid_pc);
  w.pc = w.first_op + target;
  return Step::next;
}

Step branch_if(Wave &w, const Op &op, bool condition) {
  return condition ? jump_to(w, op.value) : Step::next;
}

/// Host address of the instruction after `op`, which the program sees as its PC.
uint64_t next_address(const Wave &w, const Op &op) {
  return w.code->address + w.code->offset_of[op.index + 1];
}

Step jump_to_address(Wave &w, uint64_t address) {
  const uint64_t offset = address - w.code->address;
  if (offset % 4 != 0 || offset / 4 >= w.code->dwords) return stop(w, Fault::invalid_pc);
  return jump_to(w, w.code->op_at[offset / 4]);
}

//===--- Registers relative to M0 -----------------------------------------------------------------------===//

void enable_gpr_index(Wave &w, bool on) {
  w.set_mode(on ? w.mode_bits | mode_gpr_index_enable : w.mode_bits & ~mode_gpr_index_enable);
}
void set_gpr_index(Wave &w, uint32_t index) {
  w.s[sgpr_m0] = (w.s[sgpr_m0] & ~gpr_index_mask) | (index & gpr_index_mask);
}
void set_gpr_index_operands(Wave &w, uint32_t operands) {
  w.s[sgpr_m0] = (w.s[sgpr_m0] & ~gpr_index_operands_mask) |
                 (operands << gpr_index_operands_shift & gpr_index_operands_mask);
}

/// The scalar register that `operand` and M0 name; nothing beyond the wave's registers.
template <uint32_t dwords>
std::optional<uint32_t> indexed_scalar(Wave &w, const Op &op, uint16_t operand, bool write) {
  const uint64_t number = uint64_t(operand - first_sgpr) + w.s[sgpr_m0];
  const bool exists = number + dwords <= w.sgpr_limit;
  if (w.checks) w.checks->check_indexed_scalar(w, op, number, dwords, write);
  return exists ? std::optional(uint32_t(number)) : std::nullopt;
}

template <uint32_t dwords> void copy_scalar(Wave &w, uint32_t to, uint32_t from) {
  uint32_t values[dwords];
  std::memcpy(values, &w.s[from], sizeof values);
  std::memcpy(&w.s[to], values, sizeof values);
}

// A source beyond the wave's registers is s0; a destination there is not written.
template <uint32_t dwords> Step move_from_indexed(Wave &w, const Op &op) {
  copy_scalar<dwords>(w, op.dst - first_sgpr, indexed_scalar<dwords>(w, op, op.src[0], false).value_or(0));
  return Step::next;
}
template <uint32_t dwords> Step move_to_indexed(Wave &w, const Op &op) {
  const std::optional<uint32_t> to = indexed_scalar<dwords>(w, op, op.dst, true);
  if (!to) return Step::next;
  w.s[*to] = w.scalar(op.src[0]);
  if constexpr (dwords == 2) w.set_pair(*to, w.scalar_pair(op.src[0]));
  return Step::next;
}

//===--- The branch stack -------------------------------------------------------------------------------===//
//
// Where lanes diverge, the smaller side runs first. EXEC and PC of the other side wait in four scalar
// registers, found through MODE.CSP, until a join.

uint32_t branch_stack(const Wave &w) {
  return w.mode_bits >> mode_branch_stack_shift;
}
void set_branch_stack(Wave &w, uint32_t entries) {
  w.set_mode((w.mode_bits & ~(7u << mode_branch_stack_shift)) | entries << mode_branch_stack_shift);
}

Step fork(Wave &w, const Op &op, uint64_t condition, uint64_t target) {
  const uint64_t pass = condition & w.exec();
  const uint64_t fail = ~condition & w.exec();
  if (pass == w.exec()) return jump_to_address(w, target);
  if (fail == w.exec()) return Step::next;
  const bool fail_first = std::popcount(fail) < std::popcount(pass);
  const uint32_t entry = branch_stack(w) * 4;
  if (branch_stack(w) == 7 || entry + 4 > w.sgpr_limit) return stop(w, Fault::branch_stack);
  w.set_exec(fail_first ? fail : pass);
  w.set_pair(entry, fail_first ? pass : fail);
  w.set_pair(entry + 2, fail_first ? target : next_address(w, op));
  set_branch_stack(w, branch_stack(w) + 1);
  return fail_first ? Step::next : jump_to_address(w, target);
}

/// `first`: the stack's position before the fork.
Step join(Wave &w, uint32_t first) {
  if (branch_stack(w) == first) return Step::next;
  if (branch_stack(w) == 0) return stop(w, Fault::branch_stack);
  set_branch_stack(w, branch_stack(w) - 1);
  const uint32_t entry = branch_stack(w) * 4;
  w.set_exec(w.pair(entry));
  return jump_to_address(w, w.pair(entry + 2));
}

Step wait(Wave &w, const Op &op) {
  if (w.checks) {
    const WaitCounts counts = wait_counts(uint32_t(op.value));
    w.checks->wait(w, counts.vector, counts.lgkm);
  }
  return Step::next;
}

Step nothing(Wave &, const Op &) {
  return Step::next;
}

//===--- The table --------------------------------------------------------------------------------------===//

using enum Definedness;

const ScalarRow table[] = {
    // SOP2: D = S0 op S1
    row<([](B32 &i) { uint64_t r = uint64_t(i.s0) + i.s1; i.d = uint32_t(r); i.scc = r >> 32; })>("s_add_u32"),
    row<([](B32 &i) { i.d = i.s0 - i.s1; i.scc = i.s1 > i.s0; })>("s_sub_u32"),
    row<([](I32 &i) { i.scc = __builtin_add_overflow(i.s0, i.s1, &i.d); })>("s_add_i32"),
    row<([](I32 &i) { i.scc = __builtin_sub_overflow(i.s0, i.s1, &i.d); })>("s_sub_i32"),
    row<([](B32 &i) { uint64_t r = uint64_t(i.s0) + i.s1 + i.scc; i.d = uint32_t(r); i.scc = r >> 32; })>("s_addc_u32"),
    row<([](B32 &i) {
      const bool borrow = uint64_t(i.s1) + i.scc > i.s0;
      i.d = i.s0 - i.s1 - i.scc;
      i.scc = borrow;
    })>("s_subb_u32"),
    // SCC = 1 if S0 was chosen
    row<([](I32 &i) { i.scc = i.s0 < i.s1; i.d = i.scc ? i.s0 : i.s1; })>("s_min_i32"),
    row<([](B32 &i) { i.scc = i.s0 < i.s1; i.d = i.scc ? i.s0 : i.s1; })>("s_min_u32"),
    row<([](I32 &i) { i.scc = i.s0 > i.s1; i.d = i.scc ? i.s0 : i.s1; })>("s_max_i32"),
    row<([](B32 &i) { i.scc = i.s0 > i.s1; i.d = i.scc ? i.s0 : i.s1; })>("s_max_u32"),
    row<([](B32 &i) { i.d = i.scc ? i.s0 : i.s1; })>("s_cselect_b32", bits),
    row<([](B64 &i) { i.d = i.scc ? i.s0 : i.s1; })>("s_cselect_b64", bits),
    // SCC = result is not zero
    row<([](B32 &i) { i.d = i.s0 & i.s1; i.scc = i.d != 0; })>("s_and_b32", bits),
    row<([](B64 &i) { i.d = i.s0 & i.s1; i.scc = i.d != 0; })>("s_and_b64", bits),
    row<([](B32 &i) { i.d = i.s0 | i.s1; i.scc = i.d != 0; })>("s_or_b32", bits),
    row<([](B64 &i) { i.d = i.s0 | i.s1; i.scc = i.d != 0; })>("s_or_b64", bits),
    row<([](B32 &i) { i.d = i.s0 ^ i.s1; i.scc = i.d != 0; })>("s_xor_b32", bits),
    row<([](B64 &i) { i.d = i.s0 ^ i.s1; i.scc = i.d != 0; })>("s_xor_b64", bits),
    row<([](B32 &i) { i.d = i.s0 & ~i.s1; i.scc = i.d != 0; })>("s_andn2_b32", bits),
    row<([](B64 &i) { i.d = i.s0 & ~i.s1; i.scc = i.d != 0; })>("s_andn2_b64", bits),
    row<([](B32 &i) { i.d = i.s0 | ~i.s1; i.scc = i.d != 0; })>("s_orn2_b32", bits),
    row<([](B64 &i) { i.d = i.s0 | ~i.s1; i.scc = i.d != 0; })>("s_orn2_b64", bits),
    row<([](B32 &i) { i.d = ~(i.s0 & i.s1); i.scc = i.d != 0; })>("s_nand_b32", bits),
    row<([](B64 &i) { i.d = ~(i.s0 & i.s1); i.scc = i.d != 0; })>("s_nand_b64", bits),
    row<([](B32 &i) { i.d = ~(i.s0 | i.s1); i.scc = i.d != 0; })>("s_nor_b32", bits),
    row<([](B64 &i) { i.d = ~(i.s0 | i.s1); i.scc = i.d != 0; })>("s_nor_b64", bits),
    row<([](B32 &i) { i.d = ~(i.s0 ^ i.s1); i.scc = i.d != 0; })>("s_xnor_b32", bits),
    row<([](B64 &i) { i.d = ~(i.s0 ^ i.s1); i.scc = i.d != 0; })>("s_xnor_b64", bits),
    row<([](B32 &i) { i.d = i.s0 << (i.s1 & 31); i.scc = i.d != 0; })>("s_lshl_b32", bits),
    row<([](Shift64 &i) { i.d = i.s0 << (i.s1 & 63); i.scc = i.d != 0; })>("s_lshl_b64", bits),
    row<([](B32 &i) { i.d = i.s0 >> (i.s1 & 31); i.scc = i.d != 0; })>("s_lshr_b32", bits),
    row<([](Shift64 &i) { i.d = i.s0 >> (i.s1 & 63); i.scc = i.d != 0; })>("s_lshr_b64", bits),
    row<([](I32 &i) { i.d = i.s0 >> (i.s1 & 31); i.scc = i.d != 0; })>("s_ashr_i32", bits),
    row<([](ShiftI64 &i) { i.d = i.s0 >> (i.s1 & 63); i.scc = i.d != 0; })>("s_ashr_i64", bits),
    row<([](B32 &i) { i.d = mask_bits<uint32_t>(i.s0 & 31, i.s1 & 31); })>("s_bfm_b32"),
    row<([](Sop2<uint64_t, uint32_t, uint32_t> &i) { i.d = mask_bits<uint64_t>(i.s0 & 63, i.s1 & 63); })>("s_bfm_b64"),
    row<([](B32 &i) { i.d = i.s0 * i.s1; })>("s_mul_i32"),
    row<([](B32 &i) { i.d = uint32_t(uint64_t(i.s0) * i.s1 >> 32); })>("s_mul_hi_u32"),
    row<([](I32 &i) { i.d = int32_t(int64_t(i.s0) * i.s1 >> 32); })>("s_mul_hi_i32"),
    // S1: offset [4:0], width [22:16]
    row<([](B32 &i) { i.d = extract(i.s0, i.s1 & 31, i.s1 >> 16 & 127); i.scc = i.d != 0; })>("s_bfe_u32", bits),
    row<([](I32 &i) { i.d = extract(i.s0, i.s1 & 31, i.s1 >> 16 & 127); i.scc = i.d != 0; })>("s_bfe_i32", bits),
    row<([](Shift64 &i) { i.d = extract(i.s0, i.s1 & 63, i.s1 >> 16 & 127); i.scc = i.d != 0; })>("s_bfe_u64", bits),
    row<([](ShiftI64 &i) { i.d = extract(i.s0, i.s1 & 63, i.s1 >> 16 & 127); i.scc = i.d != 0; })>("s_bfe_i64", bits),
    row<([](I32 &i) {
      const uint32_t difference = uint32_t(i.s0) - uint32_t(i.s1);
      i.d = int32_t(difference >> 31 ? 0u - difference : difference);
      i.scc = i.d != 0;
    })>("s_absdiff_i32"),
    row<([](B32 &i) { uint64_t r = (uint64_t(i.s0) << 1) + i.s1; i.d = uint32_t(r); i.scc = r >> 32; })>("s_lshl1_add_u32"),
    row<([](B32 &i) { uint64_t r = (uint64_t(i.s0) << 2) + i.s1; i.d = uint32_t(r); i.scc = r >> 32; })>("s_lshl2_add_u32"),
    row<([](B32 &i) { uint64_t r = (uint64_t(i.s0) << 3) + i.s1; i.d = uint32_t(r); i.scc = r >> 32; })>("s_lshl3_add_u32"),
    row<([](B32 &i) { uint64_t r = (uint64_t(i.s0) << 4) + i.s1; i.d = uint32_t(r); i.scc = r >> 32; })>("s_lshl4_add_u32"),
    row<([](B32 &i) { i.d = (i.s0 & 0xffff) | i.s1 << 16; })>("s_pack_ll_b32_b16", bits),
    row<([](B32 &i) { i.d = (i.s0 & 0xffff) | (i.s1 & 0xffff0000); })>("s_pack_lh_b32_b16", bits),
    row<([](B32 &i) { i.d = i.s0 >> 16 | (i.s1 & 0xffff0000); })>("s_pack_hh_b32_b16", bits),

    // SOP1
    row<([](One32 &i) { i.d = i.s0; })>("s_mov_b32", bits),
    row<([](One64 &i) { i.d = i.s0; })>("s_mov_b64", bits),
    row<([](One32 &i) { if (i.scc) i.d = i.s0; })>("s_cmov_b32", bits),
    row<([](One64 &i) { if (i.scc) i.d = i.s0; })>("s_cmov_b64", bits),
    row<([](One32 &i) { i.d = ~i.s0; i.scc = i.d != 0; })>("s_not_b32", bits),
    row<([](One64 &i) { i.d = ~i.s0; i.scc = i.d != 0; })>("s_not_b64", bits),
    row<([](One32 &i) { i.d = uint32_t(whole_quads(i.s0)); i.scc = i.d != 0; })>("s_wqm_b32", bits),
    row<([](One64 &i) { i.d = whole_quads(i.s0); i.scc = i.d != 0; })>("s_wqm_b64", bits),
    row<([](One32 &i) { i.d = uint32_t(quad_mask(i.s0)); i.scc = i.d != 0; })>("s_quadmask_b32", bits),
    row<([](One64 &i) { i.d = quad_mask(i.s0); i.scc = i.d != 0; })>("s_quadmask_b64", bits),
    row<([](One32 &i) { i.d = reverse(i.s0); })>("s_brev_b32", bits),
    row<([](One64 &i) { i.d = reverse(i.s0); })>("s_brev_b64", bits),
    row<([](One32 &i) { i.d = 32 - uint32_t(std::popcount(i.s0)); i.scc = i.d != 0; })>("s_bcnt0_i32_b32"),
    row<([](Sop1<uint32_t, uint64_t> &i) { i.d = 64 - uint32_t(std::popcount(i.s0)); i.scc = i.d != 0; })>("s_bcnt0_i32_b64"),
    row<([](One32 &i) { i.d = uint32_t(std::popcount(i.s0)); i.scc = i.d != 0; })>("s_bcnt1_i32_b32"),
    row<([](Sop1<uint32_t, uint64_t> &i) { i.d = uint32_t(std::popcount(i.s0)); i.scc = i.d != 0; })>("s_bcnt1_i32_b64"),
    row<([](One32 &i) { i.d = first_bit(uint32_t(~i.s0)); })>("s_ff0_i32_b32"),
    row<([](Sop1<uint32_t, uint64_t> &i) { i.d = first_bit(~i.s0); })>("s_ff0_i32_b64"),
    row<([](One32 &i) { i.d = first_bit(i.s0); })>("s_ff1_i32_b32"),
    row<([](Sop1<uint32_t, uint64_t> &i) { i.d = first_bit(i.s0); })>("s_ff1_i32_b64"),
    row<([](One32 &i) { i.d = leading_bit(i.s0); })>("s_flbit_i32_b32"),
    row<([](Sop1<uint32_t, uint64_t> &i) { i.d = leading_bit(i.s0); })>("s_flbit_i32_b64"),
    row<([](Sop1<uint32_t, int32_t> &i) { i.d = leading_sign(i.s0); })>("s_flbit_i32"),
    row<([](Sop1<uint32_t, int64_t> &i) { i.d = leading_sign(i.s0); })>("s_flbit_i32_i64"),
    row<([](One32 &i) { i.d = uint32_t(int32_t(int8_t(i.s0))); })>("s_sext_i32_i8", bits),
    row<([](One32 &i) { i.d = uint32_t(int32_t(int16_t(i.s0))); })>("s_sext_i32_i16", bits),
    row<([](One32 &i) { i.d &= ~(1u << (i.s0 & 31)); })>("s_bitset0_b32", bits),
    row<([](Sop1<uint64_t, uint32_t> &i) { i.d &= ~(uint64_t(1) << (i.s0 & 63)); })>("s_bitset0_b64", bits),
    row<([](One32 &i) { i.d |= 1u << (i.s0 & 31); })>("s_bitset1_b32", bits),
    row<([](Sop1<uint64_t, uint32_t> &i) { i.d |= uint64_t(1) << (i.s0 & 63); })>("s_bitset1_b64", bits),
    row<([](Sop1<int32_t, int32_t> &i) { i.d = i.s0 < 0 ? int32_t(0u - uint32_t(i.s0)) : i.s0; i.scc = i.d != 0; })>("s_abs_i32"),
    row<([](Sop1<uint64_t, uint32_t> &i) {
      i.d = 0;
      for (uint32_t bit = 0; bit < 32; ++bit) i.d |= uint64_t(i.s0 >> bit & 1) * 3 << (2 * bit);
    })>("s_bitreplicate_b64_b32", bits),
    // D = EXEC, EXEC = S0 op EXEC, SCC = EXEC is not zero
    row<([](Saveexec &i) { i.exec = i.s0 & i.exec; })>("s_and_saveexec_b64", bits),
    row<([](Saveexec &i) { i.exec = i.s0 | i.exec; })>("s_or_saveexec_b64", bits),
    row<([](Saveexec &i) { i.exec = i.s0 ^ i.exec; })>("s_xor_saveexec_b64", bits),
    row<([](Saveexec &i) { i.exec = i.s0 & ~i.exec; })>("s_andn2_saveexec_b64", bits),
    row<([](Saveexec &i) { i.exec = i.s0 | ~i.exec; })>("s_orn2_saveexec_b64", bits),
    row<([](Saveexec &i) { i.exec = ~(i.s0 & i.exec); })>("s_nand_saveexec_b64", bits),
    row<([](Saveexec &i) { i.exec = ~(i.s0 | i.exec); })>("s_nor_saveexec_b64", bits),
    row<([](Saveexec &i) { i.exec = ~(i.s0 ^ i.exec); })>("s_xnor_saveexec_b64", bits),
    row<([](Saveexec &i) { i.exec = ~i.s0 & i.exec; })>("s_andn1_saveexec_b64", bits),
    row<([](Saveexec &i) { i.exec = ~i.s0 | i.exec; })>("s_orn1_saveexec_b64", bits),
    // EXEC = D = the result
    row("s_andn1_wrexec_b64", Format::sop1, [](Wave &w, const Op &op) {
      const uint64_t result = ~w.scalar_pair(op.src[0]) & w.exec();
      w.set_pair(op.dst - first_sgpr, result);
      w.set_exec(result);
      w.s[sgpr_scc] = result != 0;
      return Step::next;
    }, OperandType::b64, OperandType::none, bits),
    row("s_andn2_wrexec_b64", Format::sop1, [](Wave &w, const Op &op) {
      const uint64_t result = w.scalar_pair(op.src[0]) & ~w.exec();
      w.set_pair(op.dst - first_sgpr, result);
      w.set_exec(result);
      w.s[sgpr_scc] = result != 0;
      return Step::next;
    }, OperandType::b64, OperandType::none, bits),
    row("s_getpc_b64", Format::sop1, [](Wave &w, const Op &op) {
      w.set_pair(op.dst - first_sgpr, next_address(w, op));
      return Step::next;
    }),
    row("s_setpc_b64", Format::sop1, [](Wave &w, const Op &op) {
      return jump_to_address(w, w.scalar_pair(op.src[0]));
    }, OperandType::b64),
    row("s_swappc_b64", Format::sop1, [](Wave &w, const Op &op) {
      const uint64_t target = w.scalar_pair(op.src[0]);
      w.set_pair(op.dst - first_sgpr, next_address(w, op));
      return jump_to_address(w, target);
    }, OperandType::b64),

    row("s_movrels_b32", Format::sop1, move_from_indexed<1>, OperandType::b32),
    row("s_movrels_b64", Format::sop1, move_from_indexed<2>, OperandType::b64),
    row("s_movreld_b32", Format::sop1, move_to_indexed<1>, OperandType::b32),
    row("s_movreld_b64", Format::sop1, move_to_indexed<2>, OperandType::b64),
    row("s_set_gpr_idx_idx", Format::sop1, [](Wave &w, const Op &op) {
      set_gpr_index(w, w.scalar(op.src[0]));
      return Step::next;
    }, OperandType::b32),
    row("s_cbranch_join", Format::sop1, [](Wave &w, const Op &op) {
      return join(w, w.scalar(op.src[0]));
    }, OperandType::b32),
    row("s_cbranch_g_fork", Format::sop2, [](Wave &w, const Op &op) {
      return fork(w, op, w.scalar_pair(op.src[0]), w.scalar_pair(op.src[1]));
    }, OperandType::b64, OperandType::b64),

    // SOPC
    row<([](CompareI32 &i) { i.scc = i.s0 == i.s1; })>("s_cmp_eq_i32"),
    row<([](CompareI32 &i) { i.scc = i.s0 != i.s1; })>("s_cmp_lg_i32"),
    row<([](CompareI32 &i) { i.scc = i.s0 > i.s1; })>("s_cmp_gt_i32"),
    row<([](CompareI32 &i) { i.scc = i.s0 >= i.s1; })>("s_cmp_ge_i32"),
    row<([](CompareI32 &i) { i.scc = i.s0 < i.s1; })>("s_cmp_lt_i32"),
    row<([](CompareI32 &i) { i.scc = i.s0 <= i.s1; })>("s_cmp_le_i32"),
    row<([](Compare32 &i) { i.scc = i.s0 == i.s1; })>("s_cmp_eq_u32"),
    row<([](Compare32 &i) { i.scc = i.s0 != i.s1; })>("s_cmp_lg_u32"),
    row<([](Compare32 &i) { i.scc = i.s0 > i.s1; })>("s_cmp_gt_u32"),
    row<([](Compare32 &i) { i.scc = i.s0 >= i.s1; })>("s_cmp_ge_u32"),
    row<([](Compare32 &i) { i.scc = i.s0 < i.s1; })>("s_cmp_lt_u32"),
    row<([](Compare32 &i) { i.scc = i.s0 <= i.s1; })>("s_cmp_le_u32"),
    row<([](Compare64 &i) { i.scc = i.s0 == i.s1; })>("s_cmp_eq_u64"),
    row<([](Compare64 &i) { i.scc = i.s0 != i.s1; })>("s_cmp_lg_u64"),
    row<([](Compare32 &i) { i.scc = (i.s0 >> (i.s1 & 31) & 1) == 0; })>("s_bitcmp0_b32"),
    row<([](Compare32 &i) { i.scc = i.s0 >> (i.s1 & 31) & 1; })>("s_bitcmp1_b32"),
    row<([](Sopc<uint64_t, uint32_t> &i) { i.scc = (i.s0 >> (i.s1 & 63) & 1) == 0; })>("s_bitcmp0_b64"),
    row<([](Sopc<uint64_t, uint32_t> &i) { i.scc = i.s0 >> (i.s1 & 63) & 1; })>("s_bitcmp1_b64"),
    row("s_set_gpr_idx_on", Format::sopc, [](Wave &w, const Op &op) {
      enable_gpr_index(w, true);
      set_gpr_index(w, w.scalar(op.src[0]));
      set_gpr_index_operands(w, uint32_t(op.value));
      return Step::next;
    }, OperandType::b32),

    // SOPK: IMM is a signed 16-bit number, zero-extended for the unsigned comparisons
    row<([](Sopk &i) { i.d = uint32_t(i.imm); })>("s_movk_i32"),
    row<([](Sopk &i) { if (i.scc) i.d = uint32_t(i.imm); })>("s_cmovk_i32", bits),
    row<([](Sopk &i) { i.scc = int32_t(i.d) == i.imm; })>("s_cmpk_eq_i32"),
    row<([](Sopk &i) { i.scc = int32_t(i.d) != i.imm; })>("s_cmpk_lg_i32"),
    row<([](Sopk &i) { i.scc = int32_t(i.d) > i.imm; })>("s_cmpk_gt_i32"),
    row<([](Sopk &i) { i.scc = int32_t(i.d) >= i.imm; })>("s_cmpk_ge_i32"),
    row<([](Sopk &i) { i.scc = int32_t(i.d) < i.imm; })>("s_cmpk_lt_i32"),
    row<([](Sopk &i) { i.scc = int32_t(i.d) <= i.imm; })>("s_cmpk_le_i32"),
    row<([](Sopk &i) { i.scc = i.d == uint16_t(i.imm); })>("s_cmpk_eq_u32"),
    row<([](Sopk &i) { i.scc = i.d != uint16_t(i.imm); })>("s_cmpk_lg_u32"),
    row<([](Sopk &i) { i.scc = i.d > uint16_t(i.imm); })>("s_cmpk_gt_u32"),
    row<([](Sopk &i) { i.scc = i.d >= uint16_t(i.imm); })>("s_cmpk_ge_u32"),
    row<([](Sopk &i) { i.scc = i.d < uint16_t(i.imm); })>("s_cmpk_lt_u32"),
    row<([](Sopk &i) { i.scc = i.d <= uint16_t(i.imm); })>("s_cmpk_le_u32"),
    row<([](Sopk &i) {
      int32_t sum;
      i.scc = __builtin_add_overflow(int32_t(i.d), i.imm, &sum);
      i.d = uint32_t(sum);
    })>("s_addk_i32"),
    row<([](Sopk &i) { i.d *= uint32_t(i.imm); })>("s_mulk_i32"),
    row("s_getreg_b32", Format::sopk, get_register),
    row("s_setreg_b32", Format::sopk, [](Wave &w, const Op &op) {
      return set_register(w, uint32_t(op.value) & 0xffff, w.s[op.dst - first_sgpr]);
    }),
    row("s_setreg_imm32_b32", Format::sopk, [](Wave &w, const Op &op) {
      return set_register(w, uint32_t(op.value) & 0xffff, w.scalar(op.src[0]));
    }),
    // D is a source
    row("s_cbranch_i_fork", Format::sopk, [](Wave &w, const Op &op) {
      if (op.value < 0) return stop(w, Fault::invalid_pc);
      return fork(w, op, w.pair(op.dst - first_sgpr), w.code->address + w.code->offset_of[op.value]);
    }),
    row("s_call_b64", Format::sopk, [](Wave &w, const Op &op) {
      w.set_pair(op.dst - first_sgpr, next_address(w, op));
      return jump_to(w, op.value);
    }),

    // SOPP
    row("s_branch", Format::sopp, [](Wave &w, const Op &op) { return jump_to(w, op.value); }),
    row("s_cbranch_scc0", Format::sopp, [](Wave &w, const Op &op) { return branch_if(w, op, w.s[sgpr_scc] == 0); }),
    row("s_cbranch_scc1", Format::sopp, [](Wave &w, const Op &op) { return branch_if(w, op, w.s[sgpr_scc] != 0); }),
    row("s_cbranch_vccz", Format::sopp, [](Wave &w, const Op &op) { return branch_if(w, op, w.pair(sgpr_vcc) == 0); }),
    row("s_cbranch_vccnz", Format::sopp, [](Wave &w, const Op &op) { return branch_if(w, op, w.pair(sgpr_vcc) != 0); }),
    row("s_cbranch_execz", Format::sopp, [](Wave &w, const Op &op) { return branch_if(w, op, w.exec() == 0); }),
    row("s_cbranch_execnz", Format::sopp, [](Wave &w, const Op &op) { return branch_if(w, op, w.exec() != 0); }),
    // conditions that only a debugger sets
    row("s_cbranch_cdbgsys", Format::sopp, nothing),
    row("s_cbranch_cdbguser", Format::sopp, nothing),
    row("s_cbranch_cdbgsys_or_user", Format::sopp, nothing),
    row("s_cbranch_cdbgsys_and_user", Format::sopp, nothing),
    row("s_set_gpr_idx_off", Format::sopp, [](Wave &w, const Op &) {
      enable_gpr_index(w, false);
      return Step::next;
    }),
    row("s_set_gpr_idx_mode", Format::sopp, [](Wave &w, const Op &op) {
      set_gpr_index_operands(w, uint32_t(op.value));
      return Step::next;
    }),
    row("s_setkill", Format::sopp, [](Wave &, const Op &op) {
      return (op.value & 1) != 0 ? Step::end : Step::next;
    }),
    row("s_endpgm", Format::sopp, [](Wave &, const Op &) { return Step::end; }),
    row("s_barrier", Format::sopp, [](Wave &, const Op &) { return Step::barrier; }),
    row("s_waitcnt", Format::sopp, wait),
    // 2 is llvm.trap, 3 a breakpoint that no debugger handles
    row("s_trap", Format::sopp, [](Wave &w, const Op &op) {
      return (op.value & 0xff) == 3 ? Step::next : stop(w, Fault::trap);
    }),
    row("s_sleep", Format::sopp, [](Wave &, const Op &) { return Step::yield; }),
    row("s_nop", Format::sopp, nothing),
    row("s_setprio", Format::sopp, nothing),
    row("s_sethalt", Format::sopp, nothing),
    row("s_icache_inv", Format::sopp, nothing),
    row("s_wakeup", Format::sopp, nothing),
    row("s_incperflevel", Format::sopp, nothing),
    row("s_decperflevel", Format::sopp, nothing),
    row("s_ttracedata", Format::sopp, nothing),
    row("s_sendmsg", Format::sopp, nothing),
};

} // namespace

std::span<const ScalarRow> scalar_rows() {
  return table;
}

const ScalarRow *scalar_row(std::string_view mnemonic) {
  static const std::unordered_map<std::string_view, const ScalarRow *> rows = [] {
    std::unordered_map<std::string_view, const ScalarRow *> map;
    for (const ScalarRow &row : table)
      map.emplace(row.mnemonic, &row);
    return map;
  }();
  const auto found = rows.find(mnemonic);
  return found == rows.end() ? nullptr : found->second;
}

} // namespace sluice::emulator

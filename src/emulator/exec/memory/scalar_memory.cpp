//===- scalar_memory.cpp - scalar loads, stores and atomics ---------------------------------------------===//
//
// They complete in any order, and lgkmcnt counts them. The two low bits of each part of an address are
// ignored. Memory is coherent here, without a scalar cache to write back, discard or probe.
//
//===----------------------------------------------------------------------------------------------------===//
#include <algorithm>
#include <utility>

#include "emulator/check/wave_checks.h"
#include "emulator/exec/memory/memory_routines.h"
#include "emulator/exec/memory/vector_access.h"
#include "emulator/isa/timing_constants.h"

namespace sluice::emulator {

namespace {

//===--- Addresses --------------------------------------------------------------------------------------===//

/// How the scalar base is read, and the unit of the offset register.
enum class Base : uint8_t { pointer, scratch, resource };

struct Place {
  uint64_t address;
  uint32_t valid_dwords; // those beyond a resource's records read 0 and store nothing
};

template <Base base> Place place(const Wave &w, const Op &op, uint32_t dwords) {
  constexpr uint64_t whole_dwords = ~uint64_t(3);
  const uint64_t constant = uint64_t(int64_t(op.memory.offset)) & whole_dwords;
  const uint64_t variable = op.src[1] == no_operand ? 0 : w.scalar(op.src[1]);
  if constexpr (base == Base::resource) {
    const uint32_t *resource = &w.s[op.src[0] - first_sgpr];
    const uint64_t start = resource[0] | uint64_t(resource[1] & 0xffff) << 32;
    const uint32_t stride = resource[1] >> 16 & 0x3fff;
    const uint64_t end = stride == 0 ? resource[2] : uint64_t(resource[2]) * stride;
    const uint64_t offset = constant + (variable & whole_dwords);
    const uint64_t valid = offset >= end ? 0 : std::min<uint64_t>((end - offset) / 4, dwords);
    return {(start + offset) & whole_dwords, uint32_t(valid)};
  } else {
    constexpr uint64_t unit = base == Base::scratch ? 64 : 1;
    return {(w.scalar_pair(op.src[0]) & whole_dwords) + constant + (variable & whole_dwords) * unit, dwords};
  }
}

/// The number of requested dwords at a place that may be accessed.
template <bool strict>
uint32_t allowed_dwords(Wave &w, const Op &op, const Place &at, uint32_t wanted, bool write) {
  if (at.valid_dwords < wanted) {
    ++w.buffer_lanes_out_of_range;
    if constexpr (strict)
      w.checks->report_buffer_range(w, op, -1, at.address, w.s[op.src[0] - first_sgpr + 2], write);
  }
  if constexpr (strict)
    if (at.valid_dwords != 0 && !w.checks->check_scalar(w, op, at.address, at.valid_dwords * 4, write))
      return 0;
  return at.valid_dwords;
}

//===--- Instructions -----------------------------------------------------------------------------------===//

/// `dwords`: how many dwords of the data go to registers.
template <bool strict> Step deliver(Wave &w, const Op &op, const uint32_t (&data)[16], uint8_t dwords) {
  if constexpr (strict) {
    AsyncOperation &operation = w.checks->new_operation(w, op, AsyncKind::scalar_load);
    operation.first = dwords == 0 ? 0 : op.dst;
    operation.rows = dwords;
    std::memcpy(operation.data.data(), data, sizeof data);
    w.checks->issue(w, operation);
  } else {
    std::memcpy(&w.s[op.dst - first_sgpr], data, dwords * 4);
  }
  return Step::next;
}

template <bool strict, Base base> Step run_load(Wave &w, const Op &op) {
  const Place at = place<base>(w, op, op.memory.dwords);
  uint32_t data[16] = {};
  std::memcpy(data, reinterpret_cast<const void *>(at.address),
              allowed_dwords<strict>(w, op, at, op.memory.dwords, false) * 4);
  return deliver<strict>(w, op, data, op.memory.dwords);
}

template <bool strict, Base base> Step run_store(Wave &w, const Op &op) {
  const Place at = place<base>(w, op, op.memory.dwords);
  const uint32_t *data = &w.s[op.dst - first_sgpr];
  std::memcpy(reinterpret_cast<void *>(at.address), data,
              allowed_dwords<strict>(w, op, at, op.memory.dwords, true) * 4);
  return deliver<strict>(w, op, {}, 0);
}

/// Atomics are in range as a whole or not at all.
template <bool strict, Base base> Step run_atomic(Wave &w, const Op &op) {
  const MemoryControl &m = op.memory;
  const uint32_t width = m.bytes / 4u;
  Place at = place<base>(w, op, width);
  if (at.valid_dwords < width) at.valid_dwords = 0;
  uint32_t data[16] = {};
  bool allowed = allowed_dwords<strict>(w, op, at, width, true) != 0;
  if (allowed && at.address % m.bytes != 0) {
    if constexpr (strict) w.checks->report_misaligned(w, op, -1, at.address, m.bytes);
    allowed = false;
  }
  if (allowed) {
    const uint32_t first = op.dst - first_sgpr;
    auto operand = [&](uint32_t number) { return width == 2 ? w.pair(number) : w.s[number]; };
    const uint64_t old = combine(reinterpret_cast<uint8_t *>(at.address), m.bytes, op.atomic, operand(first),
                                 m.second ? operand(first + width) : 0, 3);
    data[0] = uint32_t(old);
    data[1] = uint32_t(old >> 32);
  }
  return deliver<strict>(w, op, data, m.return_old ? uint8_t(width) : 0);
}

/// The clock counts four clk for each instruction that the wave has run in its earlier turns, and for each
/// reading. A wave that reads it again and again at one place waits for it: each further reading adds a 16th
/// of the time since the first, but not more than half a millisecond. So a delay ends after a few hundred
/// readings, and at most a 16th too late.
uint64_t read_clock(Wave &w, const Op &op) {
  constexpr uint64_t polling_share = 16;
  constexpr uint64_t longest_step = 1 << 20;
  WaveClock &clock = w.clock;
  if (clock.modelled) return clock.base;
  if (clock.site != &op) {
    clock.site = &op;
    clock.polling_since = w.time();
  }
  const uint64_t share = (w.time() - clock.polling_since) / polling_share;
  clock.base += std::clamp(share, WaveClock::clk_per_instruction, longest_step);
  return w.time();
}

/// s_memtime counts the chip's clk, s_memrealtime those of its timer of 100 MHz.
template <bool strict, bool real> Step run_time(Wave &w, const Op &op) {
  constexpr uint64_t clk_per_tick = timing::clock_mhz / 100;
  const uint64_t time = read_clock(w, op) / (real ? clk_per_tick : 1);
  const uint32_t data[16] = {uint32_t(time), uint32_t(time >> 32)};
  return deliver<strict>(w, op, data, 2);
}

Step run_nothing(Wave &, const Op &) {
  return Step::next;
}

//===--- The table --------------------------------------------------------------------------------------===//

template <Base base> MemoryRoutines routines_at(Role role) {
  if (role == Role::load) return {run_load<false, base>, run_load<true, base>};
  if (role == Role::store) return {run_store<false, base>, run_store<true, base>};
  return {run_atomic<false, base>, run_atomic<true, base>};
}

constexpr NamedRoutines others[] = {
    {"s_memtime", {run_time<false, false>, run_time<true, false>}},
    {"s_memrealtime", {run_time<false, true>, run_time<true, true>}},
    {"s_dcache_inv", {run_nothing, run_nothing}},
    {"s_dcache_inv_vol", {run_nothing, run_nothing}},
    {"s_dcache_wb", {run_nothing, run_nothing}},
    {"s_dcache_wb_vol", {run_nothing, run_nothing}},
    {"s_dcache_discard", {run_nothing, run_nothing}},
    {"s_dcache_discard_x2", {run_nothing, run_nothing}},
    {"s_atc_probe", {run_nothing, run_nothing}},
    {"s_atc_probe_buffer", {run_nothing, run_nothing}},
};

} // namespace

MemoryRoutines scalar_memory_routines(const InstructionFacts &facts) {
  const Role role = facts.role;
  if (role != Role::load && role != Role::store && !is_atomic(role))
    return find_routines(others, facts.mnemonic);
  if (facts.has(Fact::resource)) return routines_at<Base::resource>(role);
  return facts.has(Fact::scratch) ? routines_at<Base::scratch>(role) : routines_at<Base::pointer>(role);
}

} // namespace sluice::emulator

//===- lds.cpp - LDS instructions -----------------------------------------------------------------------===//
//
// Reads take their data when they issue, because the LDS instructions of a wave are in order, and deliver it
// when the wave waits. M0 does not bound accesses on this machine; the workgroup's allocation does. Reads and
// writes may be unaligned, as ROCm configures the chip; atomics may not.
//
//===----------------------------------------------------------------------------------------------------===//
#include <algorithm>
#include <bit>

#include "emulator/check/wave_checks.h"
#include "emulator/exec/memory/access.h"
#include "emulator/exec/memory/bank_conflicts.h"
#include "emulator/exec/memory/memory_routines.h"

namespace sluice::emulator {

namespace {

using LdsAccess = WaveChecks::LdsAccess;

/// The LDS addresses of one access per lane, and which lanes are within the allocation.
struct LdsAddresses {
  alignas(64) uint32_t at[wave_lanes];
  uint64_t inside;
};

/// Replaces an address register by M0: its low half, plus a dword per lane.
struct LaneDwords {
  alignas(64) uint32_t at[wave_lanes];
  explicit LaneDwords(uint32_t m0) {
    for (uint32_t lane = 0; lane < wave_lanes; ++lane)
      at[lane] = (m0 & 0xffff) + 4 * lane;
  }
};

template <bool strict>
LdsAddresses addresses_of(Wave &w, const Op &op, const uint32_t *base, uint32_t offset) {
  LdsAddresses result;
  const uint32_t bytes = op.memory.bytes;
  const uint32_t end = w.workgroup->lds_bytes;
  uint64_t inside = all_lanes;
  const uint32_t address_bits = op.memory.align_down ? ~(bytes - 1) : ~0u;
  // Its highest bit is set if some lane is outside: the usual case without a branch per lane.
  uint32_t outside_bit = end - bytes;
  for (uint32_t lane = 0; lane < wave_lanes; ++lane) {
    result.at[lane] = (base[lane] + offset) & address_bits;
    outside_bit |= result.at[lane] | (end - bytes - result.at[lane]);
  }
  if (outside_bit >> 31 != 0) {
    inside = 0;
    for (uint32_t lane = 0; lane < wave_lanes; ++lane)
      inside |= uint64_t(end >= bytes && result.at[lane] <= end - bytes) << lane;
  }
  result.inside = inside & w.exec();
  if constexpr (strict) {
    const uint64_t outside = w.exec() & ~inside;
    if (outside != 0) {
      const uint32_t lane = uint32_t(std::countr_zero(outside));
      w.checks->report_lds_bounds(w, op, lane, result.at[lane], bytes);
    }
    if (w.checks->counts_bank_conflicts())
      w.checks->bank_conflicts += count_bank_conflicts(result.at, result.inside, bytes);
  }
  return result;
}

uint32_t part_offset(const MemoryControl &m, uint32_t part) {
  return part == 0 ? uint32_t(m.offset) : m.offset1;
}

template <bool strict> Step run_read_at(Wave &w, const Op &op, const uint32_t *base) {
  const MemoryControl &m = op.memory;
  const uint64_t exec = w.exec();
  LdsAddresses parts[2];
  const uint32_t count = m.parts;
  for (uint32_t part = 0; part < count; ++part)
    parts[part] = addresses_of<strict>(w, op, base, part_offset(m, part));

  AsyncOperation *operation = nullptr;
  uint32_t *rows = w.row(op.dst);
  if constexpr (strict) {
    operation = &w.checks->new_operation(w, op, AsyncKind::lds_read);
    operation->first = op.dst;
    operation->rows = m.dwords;
    rows = operation->data.data();
  }
  const uint32_t part_rows = (m.bytes + 3u) / 4;
  // The first read may overwrite the address register of the second: all addresses have been computed by now.
  for (uint32_t part = 0; part < count; ++part) {
    if constexpr (strict) {
      const LdsLanes lanes(parts[part].at, parts[part].inside, m.bytes);
      w.checks->enter_lds(w, op, LdsAccess::read, lanes, {nullptr, 0}, part * part_rows);
      operation->add_lds_part(lanes, false);
    }
    gather(rows + part * part_rows * wave_lanes, exec, parts[part].inside, m.bytes, m.sign_extend,
           [&](uint32_t lane) { return w.workgroup->lds + parts[part].at[lane]; });
  }
  if (m.half != HalfSelect::none) place_half(rows, exec, m.half);
  if constexpr (strict) w.checks->issue(w, *operation);
  return Step::next;
}

template <bool strict> Step run_read(Wave &w, const Op &op) {
  return run_read_at<strict>(w, op, w.row(op.src[0]));
}

template <bool strict> Step run_write_at(Wave &w, const Op &op, const uint32_t *base) {
  const MemoryControl &m = op.memory;
  AsyncOperation *operation = nullptr;
  if constexpr (strict) operation = &w.checks->new_operation(w, op, AsyncKind::lds_write);
  // Two equal offsets make one access, with the first data.
  const uint32_t parts = m.parts == 2 && part_offset(m, 0) != part_offset(m, 1) ? 2 : 1;
  const uint32_t shift = m.half == HalfSelect::high ? 16 : 0;
  for (uint32_t part = 0; part < parts; ++part) {
    const LdsAddresses to = addresses_of<strict>(w, op, base, part_offset(m, part));
    const uint32_t *data = w.row(op.src[1 + part]);
    if constexpr (strict) {
      const LdsLanes lanes(to.at, to.inside, m.bytes);
      w.checks->enter_lds(w, op, LdsAccess::write, lanes, {data, shift});
      operation->add_lds_part(lanes, true);
    }
    scatter(data, to.inside, m.bytes, shift, [&](uint32_t lane) { return w.workgroup->lds + to.at[lane]; });
  }
  if constexpr (strict) w.checks->issue(w, *operation);
  return Step::next;
}

template <bool strict> Step run_write(Wave &w, const Op &op) {
  return run_write_at<strict>(w, op, w.row(op.src[0]));
}

template <bool strict> Step run_read_lane_dwords(Wave &w, const Op &op) {
  return run_read_at<strict>(w, op, LaneDwords(w.s[sgpr_m0]).at);
}

template <bool strict> Step run_write_lane_dwords(Wave &w, const Op &op) {
  return run_write_at<strict>(w, op, LaneDwords(w.s[sgpr_m0]).at);
}

//===--- Atomics ----------------------------------------------------------------------------------------===//

/// Atomics must be aligned: misaligned lanes are reported and left out.
template <bool strict> void drop_misaligned(Wave &w, const Op &op, LdsAddresses &addresses) {
  uint64_t misaligned = 0;
  for (uint32_t lane = 0; lane < wave_lanes; ++lane)
    misaligned |= uint64_t(addresses.at[lane] % op.memory.bytes != 0) << lane;
  misaligned &= addresses.inside;
  addresses.inside &= ~misaligned;
  if constexpr (strict)
    if (misaligned != 0) {
      const uint32_t lane = uint32_t(std::countr_zero(misaligned));
      w.checks->report_misaligned(w, op, int32_t(lane), addresses.at[lane], op.memory.bytes);
    }
}

/// Returns the old values, if the instruction does.
template <bool strict>
Step finish_atomic(Wave &w, const Op &op, const LdsAddresses *parts, uint32_t count,
                   const uint32_t *old_rows) {
  const MemoryControl &m = op.memory;
  const uint32_t rows = m.return_old ? m.dwords : 0;
  if constexpr (strict) {
    AsyncOperation &operation =
        w.checks->new_operation(w, op, m.return_old ? AsyncKind::lds_read : AsyncKind::lds_write);
    operation.first = m.return_old ? op.dst : 0;
    operation.rows = uint8_t(rows);
    std::memcpy(operation.data.data(), old_rows, rows * wave_lanes * sizeof *old_rows);
    for (uint32_t part = 0; part < count; ++part)
      operation.add_lds_part({parts[part].at, parts[part].inside, m.bytes}, true);
    w.checks->issue(w, operation);
  } else {
    copy_lanes(w.row(op.dst), old_rows, rows, w.exec());
  }
  return Step::next;
}

/// Runs lanes one after another, from lane 0. An exchange of two values reads both before it writes.
template <bool strict> Step run_atomic(Wave &w, const Op &op) {
  const MemoryControl &m = op.memory;
  const uint32_t width = m.bytes / 4u;
  const uint32_t denormals = kept_denormals(w.mode, m.lds_denormals);
  LdsAddresses parts[2];
  alignas(64) uint32_t old_rows[4 * wave_lanes] = {};
  for (uint32_t part = 0; part < m.parts; ++part) {
    LdsAddresses &at = parts[part];
    at = addresses_of<strict>(w, op, w.row(op.src[0]), part_offset(m, part));
    drop_misaligned<strict>(w, op, at);
    if constexpr (strict) w.checks->enter_lds(w, op, LdsAccess::atomic, {at.at, at.inside, m.bytes});
  }
  auto operand = [&](uint32_t source, uint32_t lane) {
    const uint32_t *row = w.row(op.src[source]);
    return row[lane] | (width == 2 ? uint64_t(row[wave_lanes + lane]) << 32 : 0);
  };
  if (m.parts == 1 && width == 1) {
    const uint32_t *first = w.row(op.src[1]);
    const uint32_t *data = m.second ? w.row(op.src[2]) : first;
    for (uint64_t lanes = parts[0].inside; lanes != 0; lanes &= lanes - 1) {
      const uint32_t lane = uint32_t(std::countr_zero(lanes));
      uint8_t *place = w.workgroup->lds + parts[0].at[lane];
      std::memcpy(&old_rows[lane], place, 4);
      const auto changed =
          uint32_t(op.atomic(old_rows[lane], data[lane], m.second ? first[lane] : 0, denormals));
      std::memcpy(place, &changed, 4);
    }
    return finish_atomic<strict>(w, op, parts, 1, old_rows);
  }
  const uint32_t written = m.parts == 2 && part_offset(m, 0) != part_offset(m, 1) ? 2 : 1;
  for (uint64_t lanes = w.exec(); lanes != 0; lanes &= lanes - 1) {
    const uint32_t lane = uint32_t(std::countr_zero(lanes));
    uint64_t old[2] = {};
    for (uint32_t part = 0; part < m.parts; ++part) {
      if ((parts[part].inside >> lane & 1) == 0) continue;
      std::memcpy(&old[part], w.workgroup->lds + parts[part].at[lane], m.bytes);
      for (uint32_t r = 0; r < width; ++r)
        old_rows[(part * width + r) * wave_lanes + lane] = uint32_t(old[part] >> 32 * r);
    }
    for (uint32_t part = 0; part < written; ++part) {
      if ((parts[part].inside >> lane & 1) == 0) continue;
      // The first of two operands is the one that memory is compared with or masked by.
      const uint64_t value = operand(m.second ? 2 : 1 + part, lane);
      const uint64_t changed = op.atomic(old[part], value, m.second ? operand(1, lane) : 0, denormals);
      std::memcpy(w.workgroup->lds + parts[part].at[lane], &changed, m.bytes);
    }
  }
  return finish_atomic<strict>(w, op, parts, m.parts, old_rows);
}

/// Adds the number of active lanes to one counter, or subtracts it; every lane gets the old value. The
/// counter is at M0 plus the offset, as LLVM's compilers expect.
template <bool strict, bool append> Step run_append(Wave &w, const Op &op) {
  LdsAddresses at;
  std::fill_n(at.at, wave_lanes, w.s[sgpr_m0] & 0xffff);
  at = addresses_of<strict>(w, op, at.at, uint32_t(op.memory.offset));
  drop_misaligned<strict>(w, op, at);
  at.inside &= 0 - at.inside;
  alignas(64) uint32_t old_row[wave_lanes] = {};
  if constexpr (strict) w.checks->enter_lds(w, op, LdsAccess::atomic, {at.at, at.inside, 4});
  if (at.inside != 0) {
    uint32_t old;
    uint8_t *counter = w.workgroup->lds + at.at[0];
    std::memcpy(&old, counter, 4);
    std::fill_n(old_row, wave_lanes, old);
    const uint32_t lanes = uint32_t(std::popcount(w.exec()));
    const uint32_t changed = append ? old + lanes : old - lanes;
    std::memcpy(counter, &changed, 4);
  }
  return finish_atomic<strict>(w, op, &at, 1, old_row);
}

Step run_nothing(Wave &, const Op &) {
  return Step::next;
}

//===--- The table --------------------------------------------------------------------------------------===//

constexpr NamedRoutines named[] = {
    {"ds_append", {run_append<false, true>, run_append<true, true>}},
    {"ds_consume", {run_append<false, false>, run_append<true, false>}},
    {"ds_nop", {run_nothing, run_nothing}},
};

} // namespace

MemoryRoutines lds_routines(const InstructionFacts &facts) {
  const bool lane_dwords = facts.has(Fact::address_in_m0);
  switch (facts.role) {
  case Role::load:
    if (lane_dwords) return {run_read_lane_dwords<false>, run_read_lane_dwords<true>};
    return {run_read<false>, run_read<true>};
  case Role::store:
    if (lane_dwords) return {run_write_lane_dwords<false>, run_write_lane_dwords<true>};
    return {run_write<false>, run_write<true>};
  case Role::atomic:
    return {run_atomic<false>, run_atomic<true>};
  case Role::global_sync:
    return global_sync_routines(facts);
  default:
    const MemoryRoutines routines = lane_exchange_routines(facts);
    return routines.fast ? routines : find_routines(named, facts.mnemonic);
  }
}

} // namespace sluice::emulator

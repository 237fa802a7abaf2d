//===- lds.cpp - LDS instructions -----------------------------------------------------------------------===//
//
// Reads take their data when they issue, because the LDS instructions of a wave are in order, and deliver it
// when the wave waits. M0 does not bound accesses on this machine; the workgroup's allocation does. Reads and
// writes may be unaligned, as ROCm configures the chip; atomics may not.
//
//===----------------------------------------------------------------------------------------------------===//
#include <algorithm>
#include <bit>
#include <string>

#include "emulator/check/wave_checks.h"
#include "emulator/exec/memory/access.h"
#include "emulator/exec/memory/bank_conflicts.h"
#include "emulator/exec/memory/memory_rows.h"

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
  uint64_t inside = 0;
  const uint32_t address_bits = op.memory.align_down ? ~(bytes - 1) : ~0u;
  for (uint32_t lane = 0; lane < wave_lanes; ++lane)
    result.at[lane] = (base[lane] + offset) & address_bits;
  for (uint32_t lane = 0; lane < wave_lanes; ++lane)
    inside |= uint64_t(end >= bytes && result.at[lane] <= end - bytes) << lane;
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
      w.checks->enter_lds(w, op, LdsAccess::read, parts[part].at, parts[part].inside, m.bytes);
      operation->add_lds_part(parts[part].at, parts[part].inside, m.bytes, false);
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
      w.checks->enter_lds(w, op, LdsAccess::write, to.at, to.inside, m.bytes, {data, shift});
      operation->add_lds_part(to.at, to.inside, m.bytes, true);
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
      operation.add_lds_part(parts[part].at, parts[part].inside, m.bytes, true);
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
    if constexpr (strict) w.checks->enter_lds(w, op, LdsAccess::atomic, at.at, at.inside, m.bytes);
  }
  auto operand = [&](uint32_t source, uint32_t lane) {
    const uint32_t *row = w.row(op.src[source]);
    return row[lane] | (width == 2 ? uint64_t(row[wave_lanes + lane]) << 32 : 0);
  };
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
  if constexpr (strict) w.checks->enter_lds(w, op, LdsAccess::atomic, at.at, at.inside, 4);
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

struct AccessRow {
  std::string_view mnemonic;
  MemoryKind kind;
  uint8_t bytes;
  uint8_t parts = 1;
  bool sign_extend = false;
  HalfSelect half = HalfSelect::none;
  uint32_t offset_scale = 0;
};

constexpr AccessRow accesses[] = {
    {"ds_read_u8", MemoryKind::load, 1},
    {"ds_read_i8", MemoryKind::load, 1, 1, true},
    {"ds_read_u16", MemoryKind::load, 2},
    {"ds_read_i16", MemoryKind::load, 2, 1, true},
    {"ds_read_b32", MemoryKind::load, 4},
    {"ds_read_b64", MemoryKind::load, 8},
    {"ds_read_b96", MemoryKind::load, 12},
    {"ds_read_b128", MemoryKind::load, 16},
    {"ds_read2_b32", MemoryKind::load, 4, 2, false, HalfSelect::none, 4},
    {"ds_read2_b64", MemoryKind::load, 8, 2, false, HalfSelect::none, 8},
    {"ds_read2st64_b32", MemoryKind::load, 4, 2, false, HalfSelect::none, 256},
    {"ds_read2st64_b64", MemoryKind::load, 8, 2, false, HalfSelect::none, 512},
    {"ds_read_u8_d16", MemoryKind::load, 1, 1, false, HalfSelect::low},
    {"ds_read_u8_d16_hi", MemoryKind::load, 1, 1, false, HalfSelect::high},
    {"ds_read_i8_d16", MemoryKind::load, 1, 1, true, HalfSelect::low},
    {"ds_read_i8_d16_hi", MemoryKind::load, 1, 1, true, HalfSelect::high},
    {"ds_read_u16_d16", MemoryKind::load, 2, 1, false, HalfSelect::low},
    {"ds_read_u16_d16_hi", MemoryKind::load, 2, 1, false, HalfSelect::high},
    {"ds_write_b8", MemoryKind::store, 1},
    {"ds_write_b16", MemoryKind::store, 2},
    {"ds_write_b32", MemoryKind::store, 4},
    {"ds_write_b64", MemoryKind::store, 8},
    {"ds_write_b96", MemoryKind::store, 12},
    {"ds_write_b128", MemoryKind::store, 16},
    {"ds_write2_b32", MemoryKind::store, 4, 2, false, HalfSelect::none, 4},
    {"ds_write2_b64", MemoryKind::store, 8, 2, false, HalfSelect::none, 8},
    {"ds_write2st64_b32", MemoryKind::store, 4, 2, false, HalfSelect::none, 256},
    {"ds_write2st64_b64", MemoryKind::store, 8, 2, false, HalfSelect::none, 512},
    {"ds_write_b8_d16_hi", MemoryKind::store, 1, 1, false, HalfSelect::high},
    {"ds_write_b16_d16_hi", MemoryKind::store, 2, 1, false, HalfSelect::high},
};

struct SpecialRow {
  std::string_view mnemonic;
  MemoryKind kind;
  Handler fast;
  Handler strict;
  UseOfM0 m0;
};
constexpr SpecialRow specials[] = {
    {"ds_read_addtid_b32", MemoryKind::load, run_read_lane_dwords<false>, run_read_lane_dwords<true>,
     UseOfM0::address_after_wait},
    {"ds_write_addtid_b32", MemoryKind::store, run_write_lane_dwords<false>, run_write_lane_dwords<true>,
     UseOfM0::address_after_wait},
    {"ds_append", MemoryKind::load, run_append<false, true>, run_append<true, true>, UseOfM0::address},
    {"ds_consume", MemoryKind::load, run_append<false, false>, run_append<true, false>, UseOfM0::address},
};

struct AtomicRow {
  std::string_view mnemonic; // without "ds_" and "rtn_"
  std::string_view operation;
  uint32_t offset_scale = 0; // for exchanges of two values
};
constexpr AtomicRow atomics[] = {
    {"add_u32", "add"},
    {"add_u64", "add_x2"},
    {"sub_u32", "sub"},
    {"sub_u64", "sub_x2"},
    {"rsub_u32", "rsub"},
    {"rsub_u64", "rsub_x2"},
    {"inc_u32", "inc"},
    {"inc_u64", "inc_x2"},
    {"dec_u32", "dec"},
    {"dec_u64", "dec_x2"},
    {"min_i32", "smin"},
    {"min_i64", "smin_x2"},
    {"max_i32", "smax"},
    {"max_i64", "smax_x2"},
    {"min_u32", "umin"},
    {"min_u64", "umin_x2"},
    {"max_u32", "umax"},
    {"max_u64", "umax_x2"},
    {"and_b32", "and"},
    {"and_b64", "and_x2"},
    {"or_b32", "or"},
    {"or_b64", "or_x2"},
    {"xor_b32", "xor"},
    {"xor_b64", "xor_x2"},
    {"mskor_b32", "mskor"},
    {"mskor_b64", "mskor_x2"},
    {"wrap_b32", "wrap"},
    {"wrxchg_b32", "swap"},
    {"wrxchg_b64", "swap_x2"},
    {"wrxchg2_b32", "swap", 4},
    {"wrxchg2_b64", "swap_x2", 8},
    {"wrxchg2st64_b32", "swap", 256},
    {"wrxchg2st64_b64", "swap_x2", 512},
    {"condxchg32_b64", "condxchg32_x2"},
    {"cmpst_b32", "cmpswap"},
    {"cmpst_b64", "cmpswap_x2"},
    {"cmpst_f32", "cmpswap_f32"},
    {"cmpst_f64", "cmpswap_f64"},
    {"add_f32", "add_f32"},
    {"add_f64", "add_f64"},
    {"min_f32", "min_f32"},
    {"max_f32", "max_f32"},
    {"min_f64", "min_f64"},
    {"max_f64", "max_f64"},
    {"pk_add_f16", "pk_add_f16"},
    {"pk_add_bf16", "pk_add_bf16"},
};

std::optional<MemoryRow> access_row(std::string_view mnemonic) {
  for (const AccessRow &row : accesses) {
    if (row.mnemonic != mnemonic) continue;
    const bool read = row.kind == MemoryKind::load;
    MemoryRow result;
    result.kind = row.kind;
    result.fast = read ? run_read<false> : run_write<false>;
    result.strict = read ? run_read<true> : run_write<true>;
    result.control.bytes = row.bytes;
    result.control.parts = row.parts;
    result.control.dwords = uint8_t((row.bytes + 3) / 4 * row.parts);
    result.control.sign_extend = row.sign_extend;
    result.control.half = row.half;
    result.second_offset_scale = row.offset_scale;
    return result;
  }
  for (const SpecialRow &row : specials) {
    if (row.mnemonic != mnemonic) continue;
    MemoryRow result;
    result.kind = row.kind;
    result.fast = row.fast;
    result.strict = row.strict;
    result.control.bytes = 4;
    result.control.parts = 1;
    result.control.dwords = 1;
    result.control.return_old = row.m0 == UseOfM0::address;
    result.m0 = row.m0;
    return result;
  }
  return std::nullopt;
}

/// "ds_add_rtn_u32" is "ds_add_u32" that returns the old value.
std::optional<MemoryRow> atomic_row(std::string_view mnemonic) {
  if (!mnemonic.starts_with("ds_")) return std::nullopt;
  std::string name(mnemonic.substr(3));
  const size_t rtn = name.find("rtn_");
  if (rtn != std::string::npos) name.erase(rtn, 4);
  for (const AtomicRow &row : atomics) {
    if (row.mnemonic != name) continue;
    MemoryRow result;
    set_atomic(result, *memory_atomic(row.operation));
    result.fast = run_atomic<false>;
    result.strict = run_atomic<true>;
    result.control.return_old = rtn != std::string::npos;
    result.control.align_down = name == "condxchg32_b64";
    result.second_offset_scale = row.offset_scale;
    if (row.offset_scale != 0) {
      result.control.parts = 2;
      result.control.dwords *= 2;
    }
    return result;
  }
  return std::nullopt;
}

} // namespace

std::optional<MemoryRow> lds_row(std::string_view mnemonic) {
  if (mnemonic == "ds_nop") {
    MemoryRow row;
    row.fast = row.strict = run_nothing;
    return row;
  }
  if (std::optional<MemoryRow> row = access_row(mnemonic)) return row;
  return atomic_row(mnemonic);
}

} // namespace sluice::emulator

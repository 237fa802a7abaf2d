//===- lds.cpp - LDS instructions -----------------------------------------------------------------------===//
//
// Reads take their data when they issue, since LDS instructions of a wave are in order, and deliver it when
// the wave waits. M0 does not bound accesses on this machine; the workgroup's allocation does.
//
//===----------------------------------------------------------------------------------------------------===//
#include <bit>
#include <string>

#include "emulator/check/wave_checks.h"
#include "emulator/exec/memory/access.h"
#include "emulator/exec/memory/bank_conflicts.h"
#include "emulator/exec/memory/memory_rows.h"

namespace sluice::emulator {

namespace {

/// The LDS addresses of one access per lane, and which lanes are within the allocation.
struct LdsAddresses {
  alignas(64) uint32_t at[wave_lanes];
  uint64_t inside;
};

template <bool strict>
LdsAddresses addresses_of(Wave &w, const Op &op, const uint32_t *base, uint32_t offset) {
  LdsAddresses result;
  const uint32_t bytes = op.memory.bytes;
  const uint32_t end = w.workgroup->lds_bytes;
  uint64_t inside = 0;
  for (uint32_t lane = 0; lane < wave_lanes; ++lane)
    result.at[lane] = base[lane] + offset;
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

void remember_addresses(AsyncOperation &operation, const LdsAddresses &addresses, uint32_t bytes) {
  const uint32_t part = operation.lds_parts++;
  operation.lds_bytes = uint8_t(bytes);
  // Two parts share one set of lanes: a lane counts only if both its accesses are inside.
  operation.in_bounds = part == 0 ? addresses.inside : operation.in_bounds & addresses.inside;
  std::memcpy(operation.lds_address[part].data(), addresses.at, sizeof addresses.at);
  for (uint64_t lanes = addresses.inside; lanes != 0; lanes &= lanes - 1)
    operation.cover(addresses.at[std::countr_zero(lanes)], bytes);
}

template <bool strict> Step run_read(Wave &w, const Op &op) {
  const MemoryControl &m = op.memory;
  const uint64_t exec = w.exec();
  const uint32_t *base = w.row(op.src[0]);
  LdsAddresses parts[2];
  for (uint32_t part = 0; part < m.parts; ++part)
    parts[part] = addresses_of<strict>(w, op, base, part == 0 ? uint32_t(m.offset) : m.offset1);

  AsyncOperation *operation = nullptr;
  uint32_t *rows = m.half == HalfSelect::none ? w.row(op.dst) : w.temporary(0);
  if constexpr (strict) {
    operation = &w.checks->new_operation(w, op, AsyncKind::lds_read);
    operation->first = op.dst;
    operation->rows = m.dwords;
    operation->half = m.half;
    rows = operation->data.data();
  }
  const uint32_t part_rows = (m.bytes + 3u) / 4;
  for (uint32_t part = 0; part < m.parts; ++part) {
    if constexpr (strict) {
      w.checks->enter_lds(w, op, WaveChecks::LdsAccess::read, parts[part].at, parts[part].inside, m.bytes);
      remember_addresses(*operation, parts[part], m.bytes);
    }
    gather(rows + part * part_rows * wave_lanes, exec, parts[part].inside, m.bytes, m.sign_extend,
           [&](uint32_t lane) { return w.workgroup->lds + parts[part].at[lane]; });
  }
  if constexpr (strict)
    w.checks->issue(w, *operation);
  else if (m.half != HalfSelect::none)
    merge_half(w.row(op.dst), rows, exec, m.half);
  return Step::next;
}

template <bool strict> Step run_write(Wave &w, const Op &op) {
  const MemoryControl &m = op.memory;
  const uint32_t *base = w.row(op.src[0]);
  AsyncOperation *operation = nullptr;
  if constexpr (strict) operation = &w.checks->new_operation(w, op, AsyncKind::lds_write);
  for (uint32_t part = 0; part < m.parts; ++part) {
    const LdsAddresses to = addresses_of<strict>(w, op, base, part == 0 ? uint32_t(m.offset) : m.offset1);
    if constexpr (strict) {
      w.checks->enter_lds(w, op, WaveChecks::LdsAccess::write, to.at, to.inside, m.bytes);
      remember_addresses(*operation, to, m.bytes);
    }
    scatter(w.row(op.src[1 + part]), to.inside, m.bytes, m.half == HalfSelect::high ? 16 : 0,
            [&](uint32_t lane) { return w.workgroup->lds + to.at[lane]; });
  }
  if constexpr (strict) w.checks->issue(w, *operation);
  return Step::next;
}

/// Lanes one after another, from lane 0.
template <bool strict> Step run_atomic(Wave &w, const Op &op) {
  const MemoryControl &m = op.memory;
  const LdsAddresses at = addresses_of<strict>(w, op, w.row(op.src[0]), uint32_t(m.offset));
  alignas(64) uint32_t old_rows[2 * wave_lanes] = {};
  if constexpr (strict) w.checks->enter_lds(w, op, WaveChecks::LdsAccess::atomic, at.at, at.inside, m.bytes);
  auto operand = [&](uint32_t source, uint32_t lane) {
    const uint32_t *row = w.row(op.src[source]);
    return row[lane] | (m.bytes == 8 ? uint64_t(row[wave_lanes + lane]) << 32 : 0);
  };
  for (uint64_t lanes = at.inside; lanes != 0; lanes &= lanes - 1) {
    const uint32_t lane = uint32_t(std::countr_zero(lanes));
    uint64_t old = 0;
    std::memcpy(&old, w.workgroup->lds + at.at[lane], m.bytes);
    // ds_cmpst has the value to compare with first
    const uint64_t value = operand(m.compare ? 2 : 1, lane);
    const uint64_t changed = op.atomic(old, value, m.compare ? operand(1, lane) : 0);
    std::memcpy(w.workgroup->lds + at.at[lane], &changed, m.bytes);
    old_rows[lane] = uint32_t(old);
    old_rows[wave_lanes + lane] = uint32_t(old >> 32);
  }
  const uint32_t rows = m.return_old ? m.bytes / 4u : 0;
  if constexpr (strict) {
    AsyncOperation &operation =
        w.checks->new_operation(w, op, m.return_old ? AsyncKind::lds_read : AsyncKind::lds_write);
    operation.first = m.return_old ? op.dst : 0;
    operation.rows = uint8_t(rows);
    std::memcpy(operation.data.data(), old_rows, sizeof old_rows);
    w.checks->issue(w, operation);
  } else {
    for (uint32_t r = 0; r < rows; ++r)
      for (uint32_t lane = 0; lane < wave_lanes; ++lane)
        if ((w.exec() >> lane & 1) != 0)
          w.row(op.dst)[r * wave_lanes + lane] = old_rows[r * wave_lanes + lane];
  }
  return Step::next;
}

//===--- Exchanges between lanes: no LDS memory, but its counter ----------------------------------------===//

template <bool strict> Step finish_exchange(Wave &w, const Op &op, const uint32_t *result) {
  if constexpr (strict) {
    AsyncOperation &operation = w.checks->new_operation(w, op, AsyncKind::lds_read);
    operation.first = op.dst;
    operation.rows = 1;
    std::memcpy(operation.data.data(), result, wave_lanes * 4);
    w.checks->issue(w, operation);
  } else {
    for (uint32_t lane = 0; lane < wave_lanes; ++lane)
      if ((w.exec() >> lane & 1) != 0) w.row(op.dst)[lane] = result[lane];
  }
  return Step::next;
}

/// Each lane takes the value of the lane that its address names; an inactive one gives 0.
template <bool strict> Step run_bpermute(Wave &w, const Op &op) {
  const uint32_t *address = w.row(op.src[0]);
  const uint32_t *data = w.row(op.src[1]);
  const uint64_t exec = w.exec();
  uint32_t result[wave_lanes];
  for (uint32_t lane = 0; lane < wave_lanes; ++lane) {
    const uint32_t from = (address[lane] + uint32_t(op.memory.offset)) / 4 % wave_lanes;
    result[lane] = (exec >> from & 1) != 0 ? data[from] : 0;
  }
  return finish_exchange<strict>(w, op, result);
}

/// Each lane sends its value to the lane that its address names; of several the highest wins.
template <bool strict> Step run_permute(Wave &w, const Op &op) {
  const uint32_t *address = w.row(op.src[0]);
  const uint32_t *data = w.row(op.src[1]);
  uint32_t result[wave_lanes] = {};
  for (uint32_t lane = 0; lane < wave_lanes; ++lane)
    if ((w.exec() >> lane & 1) != 0)
      result[(address[lane] + uint32_t(op.memory.offset)) / 4 % wave_lanes] = data[lane];
  return finish_exchange<strict>(w, op, result);
}

/// The offset is a pattern: bit 15 for a permutation of four lanes, else and, or and xor masks on the lane
/// number within 32. Patterns from 0xc000 on (rotation and FFT) are refused.
template <bool strict> Step run_swizzle(Wave &w, const Op &op) {
  const uint32_t pattern = uint32_t(op.memory.offset);
  if (pattern >= 0xc000) {
    w.fault = Fault::unknown_instruction;
    return Step::stop;
  }
  const uint32_t *data = w.row(op.src[0]);
  uint32_t result[wave_lanes];
  for (uint32_t lane = 0; lane < wave_lanes; ++lane) {
    const uint32_t in_group = lane % 32;
    const uint32_t masked = ((in_group & (pattern & 31)) | (pattern >> 5 & 31)) ^ (pattern >> 10 & 31);
    const uint32_t from =
        pattern >> 15 != 0 ? (lane & ~3u) | (pattern >> 2 * (lane % 4) & 3) : (lane & ~31u) | masked;
    result[lane] = (w.exec() >> from & 1) != 0 ? data[from] : 0;
  }
  return finish_exchange<strict>(w, op, result);
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

struct ExchangeRow {
  std::string_view mnemonic;
  Handler fast;
  Handler strict;
};
constexpr ExchangeRow exchanges[] = {
    {"ds_bpermute_b32", run_bpermute<false>, run_bpermute<true>},
    {"ds_permute_b32", run_permute<false>, run_permute<true>},
    {"ds_swizzle_b32", run_swizzle<false>, run_swizzle<true>},
    {"ds_nop", run_nothing, run_nothing},
};

struct AtomicRow {
  std::string_view mnemonic; // without "ds_" and "rtn_"
  std::string_view operation;
};
constexpr AtomicRow atomics[] = {
    {"add_u32", "add"},          {"add_u64", "add_x2"},        {"sub_u32", "sub"},
    {"sub_u64", "sub_x2"},       {"rsub_u32", "rsub"},         {"rsub_u64", "rsub_x2"},
    {"inc_u32", "inc"},          {"inc_u64", "inc_x2"},        {"dec_u32", "dec"},
    {"dec_u64", "dec_x2"},       {"min_i32", "smin"},          {"min_i64", "smin_x2"},
    {"max_i32", "smax"},         {"max_i64", "smax_x2"},       {"min_u32", "umin"},
    {"min_u64", "umin_x2"},      {"max_u32", "umax"},          {"max_u64", "umax_x2"},
    {"and_b32", "and"},          {"and_b64", "and_x2"},        {"or_b32", "or"},
    {"or_b64", "or_x2"},         {"xor_b32", "xor"},           {"xor_b64", "xor_x2"},
    {"wrxchg_b32", "swap"},      {"wrxchg_b64", "swap_x2"},    {"cmpst_b32", "cmpswap"},
    {"cmpst_b64", "cmpswap_x2"}, {"add_f32", "add_f32"},       {"add_f64", "add_f64"},
    {"min_f32", "min_f32"},      {"max_f32", "max_f32"},       {"min_f64", "min_f64"},
    {"max_f64", "max_f64"},      {"pk_add_f16", "pk_add_f16"}, {"pk_add_bf16", "pk_add_bf16"},
};

} // namespace

std::optional<MemoryRow> lds_row(std::string_view mnemonic) {
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
  for (const ExchangeRow &row : exchanges) {
    if (row.mnemonic != mnemonic) continue;
    MemoryRow result;
    result.kind = MemoryKind::lane_exchange;
    result.fast = row.fast;
    result.strict = row.strict;
    result.control.dwords = 1;
    result.control.bytes = 4;
    return result;
  }
  if (!mnemonic.starts_with("ds_")) return std::nullopt;
  // "ds_add_rtn_u32" is "ds_add_u32" that gives the old value back.
  std::string name(mnemonic.substr(3));
  const size_t rtn = name.find("rtn_");
  if (rtn != std::string::npos) name.erase(rtn, 4);
  for (const AtomicRow &row : atomics) {
    if (row.mnemonic != name) continue;
    const AtomicOperation operation = *memory_atomic(row.operation);
    MemoryRow result;
    result.kind = MemoryKind::atomic;
    result.fast = run_atomic<false>;
    result.strict = run_atomic<true>;
    result.atomic = operation.body;
    result.control.bytes = operation.bytes;
    result.control.dwords = operation.bytes / 4;
    result.control.parts = 1;
    result.control.compare = operation.compare;
    result.control.return_old = rtn != std::string::npos;
    return result;
  }
  return std::nullopt;
}

} // namespace sluice::emulator

//===- definedness.cpp - values that were never written, and where they matter --------------------------===//
//
// A register has a bit per lane, a scalar register a bit per bit. An undefined value may be computed with: a
// result that depends on it is undefined too (undefined_results.cpp). It is reported where it decides
// something: an address, a branch, EXEC, a stored value, an operand of the matrix core. The value of a read
// of LDS that races, or of bytes never written, is followed in the same way, so that a value which is thrown
// away is no mistake.
//
//===----------------------------------------------------------------------------------------------------===//
#include <algorithm>
#include <string>

#include "emulator/check/inexact_values.h"
#include "emulator/check/register_name.h"
#include "emulator/check/wave_checks.h"

namespace sluice::emulator {

void WaveChecks::start_defined(const Wave &w, uint32_t defined_sgprs) {
  // Short kernels spend much of their time here: only the registers that the kernel has.
  auto each_file = [&](auto &&start) {
    start(0u, checks.registers ? launch.vgpr_limit : first_agpr);
    start(uint32_t(first_agpr), checks.registers ? launch.agpr_limit : vector_registers - first_agpr);
  };
  each_file([&](uint32_t first, uint32_t count) {
    std::fill_n(origins.begin() + first, count, Origin{});
    std::fill_n(defined.begin() + first, count, 0);
  });
  scalar_origins.fill({});
  doubtful_reads.clear();
  scratch_origins.clear();
  scratch_defined.assign(size_t(w.scratch_bytes) * wave_lanes, 0);
  loaded.origin = {};
  defined[0] = all_lanes;
  if (fresh.sgprs != defined_sgprs) fresh = FreshRegisters(defined_sgprs);
  defined_bits = fresh.defined_bits;
  undefined = fresh.undefined;
}

/// Scalar registers as a wave starts: those that the dispatcher fills, FLAT_SCRATCH and XNACK_MASK, trap
/// registers, and EXEC are defined, and so is v0.
WaveChecks::FreshRegisters::FreshRegisters(uint32_t sgprs) : sgprs(sgprs) {
  std::fill_n(defined_bits.begin(), sgprs, all_bits);
  std::fill(defined_bits.begin() + 102, defined_bits.begin() + sgpr_vcc, all_bits);
  std::fill(defined_bits.begin() + sgpr_ttmp0, defined_bits.begin() + sgpr_m0, all_bits);
  defined_bits[sgpr_exec] = defined_bits[sgpr_exec + 1] = all_bits;
  undefined.bits.fill(~uint64_t(0));
  undefined.reset(0);
  for (uint32_t number = 0; number <= sgpr_scc; ++number)
    undefined.assign(first_sgpr + number, defined_bits[number] != all_bits);
}

//===--- Reports ----------------------------------------------------------------------------------------===//

bool WaveChecks::report_undefined(Wave &w, const Op &op, uint16_t operand, std::optional<uint64_t> lanes,
                                  const char *role) {
  const Origin origin = origin_of(operand);
  if (origin.root == followed_read) {
    reads.use(wave, origin.op, lanes.value_or(all_lanes));
    return false;
  }
  if (origin.root == doubtful_read) {
    reads.use(wave, origin.op, lanes.value_or(all_lanes));
    const DoubtfulRead &read = doubtful_reads.at(origin.op);
    report_lds(w, w.first_op[origin.op], read.conflict, "reads", read.lane, read.address, read.other,
               "; the value reaches a " + std::string(role) + ", " + register_name(operand));
    return true;
  }
  if (!checks.uninitialised) return true;
  std::optional<LdsOther> other;
  if (origin.op != Origin::nowhere) other = LdsOther{origin.op, w.id};
  const int32_t lane = lanes ? int32_t(low_lane(*lanes)) : -1;
  report(w, op, ReportKind::register_uninitialised, lane, operand, other, [&] {
    const std::string holds = std::string(role) + " " + register_name(operand) + " holds a value that ";
    if (!other) return holds + "was never written";
    if (origin.root == no_operand) return holds + "was loaded from memory that was never written";
    return holds + "comes from " + register_name(origin.root) + ", which was never written";
  });
  return true;
}

/// The earlier origin of an undefined source, or else this first use of it.
WaveChecks::Origin WaveChecks::inherited(const Op &op, uint16_t source) {
  const Origin origin = origin_of(source);
  return origin.op != Origin::nowhere ? origin : Origin{op.index, source};
}

void WaveChecks::check_defined(Wave &w, const Op &op, const OpInfo &info) {
  auto rows = [&](RegisterRange range, uint64_t lanes, const char *role) {
    for (uint16_t operand = range.first; operand < range.first + range.count; ++operand) {
      const uint64_t missing = lanes & ~defined[operand];
      if (missing != 0 && report_undefined(w, op, operand, missing, role)) return;
    }
  };
  auto scalars = [&](RegisterRange range, const char *role) {
    for (uint16_t operand = range.first; operand < range.first + range.count; ++operand)
      if (bits_of(operand) != all_bits && report_undefined(w, op, operand, std::nullopt, role)) return;
  };
  switch (info.kind) {
  case OpKind::mfma:
    for (uint32_t i = info.reads_begin; i < info.reads_end; ++i)
      if (launch.ops->ranges[i].first < first_sgpr) rows(launch.ops->ranges[i], all_lanes, "matrix operand");
    break;
  case OpKind::lds:
  case OpKind::lds_copy:
  case OpKind::vector_memory:
  case OpKind::scalar_memory:
    if (info.role() != Role::lane_exchange) rows(info.address, w.exec(), "address");
    // Functions save registers of their callers in scratch, even if those are undefined.
    if (info.stored.first >= first_sgpr)
      scalars(info.stored, "stored register");
    else if (!info.facts->has(Fact::scratch))
      rows(info.stored, w.exec(), "stored register");
    rows(info.second_stored, w.exec(), "stored register");
    for (uint32_t i = info.reads_begin; i < info.reads_end; ++i) {
      const RegisterRange range = launch.ops->ranges[i];
      if (range.first < first_sgpr) continue;
      // LLVM lists M0 for every DS instruction, and for flat ones; few need it.
      if (range.first == first_sgpr + sgpr_m0 && !info.address_in_m0) continue;
      scalars(range, "address");
    }
    break;
  case OpKind::branch:
    for (uint32_t i = info.reads_begin; i < info.reads_end; ++i) {
      const RegisterRange range = launch.ops->ranges[i];
      if (range.first < first_sgpr) continue;
      // Whether VCC is 0 is certain if one of its defined bits is set.
      const bool is_mask = range.first == first_sgpr + sgpr_vcc && range.count == 2;
      if (is_mask && (w.pair(sgpr_vcc) & mask_bits(range.first)) != 0) continue;
      scalars(range, "branch condition");
    }
    break;
  case OpKind::valu:
  case OpKind::scalar:
  case OpKind::other:
    break;
  }
}

//===--- Memory -----------------------------------------------------------------------------------------===//

/// Everything except the vector ALU and the scalar unit: results are defined, unless take_undefined finds
/// out otherwise.
void WaveChecks::track_others(Wave &w, const Op &op, const OpInfo &info) {
  check_defined(w, op, info);
  if (info.role() == Role::lane_exchange && !info.address_in_m0) return; // see enter_exchange
  const uint64_t lanes = info.kind == OpKind::mfma ? all_lanes : w.exec();
  for (uint32_t i = info.writes_begin; i < info.writes_end; ++i) {
    const RegisterRange range = launch.ops->ranges[i];
    for (uint16_t operand = range.first; operand < range.first + range.count; ++operand) {
      if (operand < first_sgpr)
        defined[operand] |= lanes;
      else
        defined_bits[operand - first_sgpr] = all_bits;
    }
  }
}

/// The destination of a load inherits undefined memory.
void WaveChecks::take_undefined(const Op &op, const OpInfo &info) {
  const Origin origin = loaded.origin.op != Origin::nowhere ? loaded.origin : Origin{op.index, no_operand};
  loaded.any = false;
  loaded.origin = {};
  if (!tracks_defined || op.dst == no_operand || info.kind == OpKind::lds_copy) return;
  for (uint32_t r = 0; r < std::max<uint32_t>(op.memory.dwords, 1); ++r) {
    if (loaded.rows[r] == 0) continue;
    const uint16_t operand = uint16_t(op.dst + r);
    origin_of(operand) = origin;
    if (operand < first_sgpr)
      defined[operand] &= ~loaded.rows[r];
    else
      defined_bits[operand - first_sgpr] &= ~uint32_t(loaded.rows[r]);
  }
}

void WaveChecks::enter_doubtful_read(const Op &op, const DoubtfulRead &read, uint32_t bytes,
                                     uint32_t first_row) {
  if (read.conflict == LdsConflict::uninitialised ? !checks.uninitialised : !checks.lds_races) return;
  if (loaded.origin.root == followed_read) loaded.any = false;
  if (loaded.origin.op != op.index || !loaded.any)
    doubtful_reads.insert_or_assign(op.index, read); // its first lane
  if (!loaded.any) loaded.rows.fill(0);
  loaded.any = true;
  loaded.origin = {op.index, doubtful_read};
  LdsOther other;
  for (uint32_t at = 0; at < bytes; at += 4)
    if (bytes <= 4 ||
        lds.read(read.address + at, std::min(4u, bytes - at), wave, op.index, other) != LdsConflict::none)
      loaded.rows[first_row + at / 4] |= lane_bit(read.lane);
}

void WaveChecks::enter_followed_read(const Op &op, const uint32_t *addresses, uint64_t lanes, uint32_t bytes,
                                     uint32_t first_row) {
  reads.enter(wave, op.index, first_row, addresses, lanes, bytes);
  if (loaded.any && loaded.origin.root == doubtful_read) {
    // These are followed already, and the others not.
    const uint64_t doubtful = loaded.rows[first_row];
    reads.use(wave, op.index, lanes & ~doubtful);
    if (doubtful_reads.at(op.index).conflict != LdsConflict::uninitialised)
      reads.meet_lanes(wave, op.index, first_row, doubtful);
    return;
  }
  if (!loaded.any) loaded.rows.fill(0);
  loaded.any = true;
  loaded.origin = {op.index, followed_read};
  for (uint32_t at = 0; at < bytes; at += 4)
    loaded.rows[first_row + at / 4] |= lanes;
}

void WaveChecks::enter_scratch(const Wave &w, const Op &op, bool store, uint32_t lane, uint64_t offset,
                               uint32_t bytes) {
  if (followed) followed->access_scratch(lane, offset, bytes, store);
  if (!tracks_defined) return;
  uint8_t *const held = scratch_defined.data() + size_t(lane) * w.scratch_bytes + offset;
  auto place = [&](uint32_t at) { return uint64_t(lane) << 32 | ((offset + at) / 4); };
  for (uint32_t at = 0; at < bytes; at += 4) {
    const uint32_t part = std::min(4u, bytes - at);
    if (store) {
      const auto source = uint16_t(op.src[1] + at / 4);
      const bool known = (defined[source] >> lane & 1) != 0;
      std::fill_n(held + at, part, uint8_t(known));
      if (!known) scratch_origins[place(at)] = inherited(op, source);
    } else if (std::find(held + at, held + at + part, 0) != held + at + part) {
      if (!loaded.any) loaded.rows.fill(0);
      loaded.any = true;
      loaded.rows[at / 4] |= lane_bit(lane);
      const auto origin = scratch_origins.find(place(at));
      if (origin != scratch_origins.end()) loaded.origin = origin->second;
    }
  }
}

void WaveChecks::enter_exchange(const Wave &w, const Op &op, uint16_t data, const LaneSources &from,
                                uint16_t address, bool sender) {
  if (!tracks_defined) return;
  const uint64_t named = address == no_operand ? all_lanes : defined[address];
  uint64_t undefined_data = 0;
  uint64_t undefined_names = 0;
  for (uint32_t lane = 0; lane < wave_lanes; ++lane) {
    const bool any = from[lane] >= 0;
    const uint32_t naming = sender ? uint32_t(any ? from[lane] : 0) : lane;
    undefined_data |= uint64_t(any && (defined[data] >> from[lane] & 1) == 0) << lane;
    undefined_names |= uint64_t((any || !sender) && (named >> naming & 1) == 0) << lane;
  }
  if ((undefined_data | undefined_names) != 0) {
    if (!loaded.any) loaded.rows.fill(0);
    loaded.any = true;
    loaded.rows[0] = (undefined_data | undefined_names) & w.exec();
    loaded.origin = inherited(op, undefined_data != 0 ? data : address);
  }
  defined[op.dst] |= w.exec();
}

} // namespace sluice::emulator

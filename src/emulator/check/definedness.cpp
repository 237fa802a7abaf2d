//===- definedness.cpp - values that were never written, followed to where they matter ------------------===//
//
// A register has a bit per lane, a scalar register a bit per bit. An undefined value may be computed with: a
// result that depends on it is undefined too. It is reported where it decides something: an address, a
// branch, EXEC, a stored value, an operand of the matrix core. The value of a read of LDS that races, or of
// bytes never written, is followed in the same way, so that a value which is thrown away is no mistake.
//
//===----------------------------------------------------------------------------------------------------===//
#include <algorithm>
#include <bit>
#include <string>

#include "emulator/check/inexact_values.h"
#include "emulator/check/register_name.h"
#include "emulator/check/wave_checks.h"
#include "emulator/isa/dpp.h"
#include "emulator/isa/gpr_index.h"

namespace sluice::emulator {

namespace {

constexpr uint32_t all_bits = ~0u;

uint64_t lane_bit(uint32_t lane) {
  return uint64_t(1) << lane;
}

bool is_exec(uint32_t number) {
  return number == sgpr_exec || number == sgpr_exec + 1u;
}

/// The lanes of v_mbcnt's result that depend on defined bits of a scalar mask only.
uint64_t lanes_above(uint32_t bits, uint32_t first_lane) {
  if (bits == all_bits) return all_lanes;
  const uint32_t last = first_lane + uint32_t(std::countr_one(bits));
  return last >= wave_lanes - 1 ? all_lanes : lane_bit(last + 1) - 1;
}

} // namespace

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

//===--- The vector ALU ---------------------------------------------------------------------------------===//

uint64_t WaveChecks::defined_lanes(uint16_t operand) const {
  if (operand < first_sgpr) return defined[operand];
  return bits_of(operand) == all_bits ? all_lanes : 0;
}

/// Defined lanes, for a source of one or two registers.
uint64_t WaveChecks::defined_row(uint16_t operand, uint32_t row) const {
  return defined_lanes(operand >= first_constant ? operand : uint16_t(operand + row));
}

/// The lanes in which a source is defined, after DPP has moved it. Lanes without a source read 0.
uint64_t WaveChecks::defined_source(const Wave &w, const Op &op, uint32_t k, uint32_t row) const {
  const uint64_t lanes = defined_row(op.src[k], row);
  if (k != 0 || lanes == all_lanes || op.valu.modifiers.lane_control != lane_control_dpp) return lanes;
  const DppPattern &pattern = dpp_pattern(op.valu.dpp.control);
  uint64_t result = ~dpp_lanes_with_source(pattern, w.exec());
  for (uint32_t lane = 0; lane < wave_lanes; ++lane)
    result |= (lanes >> pattern.source[lane] & 1) << lane;
  return result;
}

/// v_cndmask: a lane whose mask is undefined is defined if both sources have the same value there.
uint64_t WaveChecks::defined_selection(const Wave &w, const Op &op) const {
  const uint64_t mask = w.scalar_pair(op.mask_in);
  const uint64_t known = mask_bits(op.mask_in);
  const uint64_t first = defined_source(w, op, 0, 0);
  const uint64_t second = defined_source(w, op, 1, 0);
  const uint64_t chosen = (first & ~mask) | (second & mask);
  if (known == all_lanes) [[likely]]
    return chosen;
  uint64_t same = 0;
  auto value = [&](uint16_t operand, uint32_t lane) {
    return operand < first_sgpr ? w.row(operand)[lane] : w.scalar(operand);
  };
  if (op.valu.modifiers.none())
    for (uint64_t lanes = first & second & ~known; lanes != 0; lanes &= lanes - 1) {
      const uint32_t lane = low_lane(lanes);
      same |= uint64_t(value(op.src[0], lane) == value(op.src[1], lane)) << lane;
    }
  return (chosen & known) | (same & ~known);
}

/// The low half of a 64-bit result is taken to depend on low halves only: compilers leave the high half of an
/// addend undefined where they use the low half of the sum. A pair of f32 that comes from pairs is two
/// results, each from the dwords that op_sel and op_sel_hi choose for it. Conversions make both results from
/// one dword.
WaveChecks::DefinedRows WaveChecks::defined_result(Wave &w, const Op &op, const OpInfo &info) {
  const ValuControl &v = op.valu;
  uint64_t low = all_lanes;
  uint64_t high = all_lanes;
  if (v.result_type == OperandType::packed_f32 && v.source_types[0] == OperandType::packed_f32) {
    for (uint32_t k = 0; k < v.sources; ++k)
      for (const bool for_high : {false, true}) {
        const std::optional<uint32_t> row = packed_row(v, k, for_high);
        if (row) (for_high ? high : low) &= defined_row(op.src[k], *row);
      }
    return {low, high};
  }
  const bool in_parts = info.definedness == Definedness::any || v.modifiers.lane_control == lane_control_sdwa;
  if (info.definedness == Definedness::select && v.modifiers.lane_control != lane_control_sdwa) {
    low = defined_selection(w, op);
    return {low, low};
  }
  if (in_parts) {
    // SDWA and these instructions combine parts of values, which the compiler may leave undefined.
    if (info.definedness == Definedness::any && v.sources != 0) {
      low = 0;
      for (uint32_t k = 0; k < v.sources; ++k)
        low |= defined_source(w, op, k, 0);
    }
    for (uint32_t k = 0; k < v.sources; ++k)
      if (is_of_lds(op.src[k])) low &= defined_source(w, op, k, 0);
  } else {
    for (uint32_t k = 0; k < v.sources; ++k) {
      low &= defined_source(w, op, k, 0);
      if (is_two_rows(v.source_types[k]) && op.src[k] < first_constant) high &= defined_source(w, op, k, 1);
    }
  }
  if (op.mask_in != no_operand) low &= mask_bits(op.mask_in);
  return {low, high & low};
}

/// A source that is undefined in one of the lanes; one that is only followed if there is no other.
uint16_t WaveChecks::undefined_source(Wave &w, const Op &op, const OpInfo &info, uint64_t lanes) const {
  uint16_t followed = no_operand;
  auto matters = [&](uint16_t operand) {
    if (!is_followed(operand)) return true;
    followed = operand;
    return false;
  };
  if (info.definedness == Definedness::select) {
    const uint64_t mask = w.scalar_pair(op.mask_in);
    if ((lanes & ~mask & ~defined_source(w, op, 0, 0)) != 0 && matters(op.src[0])) return op.src[0];
    if ((lanes & mask & ~defined_source(w, op, 1, 0)) != 0 && matters(op.src[1])) return op.src[1];
  } else {
    for (uint32_t k = 0; k < op.valu.sources; ++k) {
      const uint32_t rows = op.valu.source_types[k] == OperandType::packed_f32 ? 2 : 1;
      for (uint32_t r = 0; r < rows; ++r)
        if ((rows == 1 || reads_row(op.valu, k, r)) && (lanes & ~defined_source(w, op, k, r)) != 0 &&
            op.src[k] < first_constant && matters(uint16_t(op.src[k] + r)))
          return uint16_t(op.src[k] + r);
    }
  }
  const bool mask_is_known = op.mask_in >= first_constant || (lanes & ~mask_bits(op.mask_in)) == 0;
  if (followed != no_operand && mask_is_known) return followed;
  // the carry or the mask
  const bool low = op.mask_in < first_constant && (uint32_t(lanes) & ~bits_of(op.mask_in)) != 0;
  return op.mask_in < first_constant ? uint16_t(op.mask_in + !low) : no_operand;
}

void WaveChecks::track_valu(Wave &w, const Op &op, const OpInfo &info) {
  // The usual case: a body for each lane, one register of result, and sources that are defined in all lanes.
  const ValuControl &v = op.valu;
  if (op.body != nullptr && op.dst < first_sgpr && info.definedness == Definedness::all &&
      op.mask_in == no_operand && op.mask == no_operand && v.modifiers.lane_control != lane_control_dpp &&
      !w.mode.gpr_index && rows_of(v.result_type) == 1) [[likely]] {
    uint64_t lanes = all_lanes;
    for (uint32_t k = 0; k < v.sources; ++k)
      lanes &= defined_lanes(op.src[k]);
    if (lanes == all_lanes) {
      defined[op.dst] |= w.exec();
      return;
    }
  }
  if (is_lane_access(info.role())) return track_lane_access(w, op, info);
  const uint64_t exec = w.exec();
  if (w.mode.gpr_index) [[unlikely]] {
    const IndexedOp indexed = indexed_op(w, op);
    if (indexed.suppressed) return;
    const Op &real = indexed.op;
    track_lanes(w, real, info, exec);
    if (real.dst != no_operand) note_undefined({real.dst, uint16_t(rows_of(real.valu.result_type))});
    if (real.mask != no_operand) note_undefined({real.mask, 2});
    return;
  }
  if (info.definedness == Definedness::swap) {
    const uint64_t changed = (defined[op.dst] ^ defined[op.src[0]]) & exec;
    defined[op.dst] ^= changed;
    defined[op.src[0]] ^= changed;
    std::swap(origins[op.dst], origins[op.src[0]]);
    return;
  }
  if (op.valu.modifiers.lane_control != lane_control_dpp) return track_lanes(w, op, info, exec);
  const DppControl &dpp = op.valu.dpp;
  const uint64_t valid = dpp.bound_zero ? all_lanes : dpp_lanes_with_source(dpp_pattern(dpp.control), exec);
  track_lanes(w, op, info, exec & dpp_lanes(dpp) & valid);
}

/// `exec`: the lanes that are written.
void WaveChecks::track_lanes(Wave &w, const Op &op, const OpInfo &info, uint64_t exec) {
  const ValuControl &v = op.valu;
  auto [low, high] = defined_result(w, op, info);
  if (info.definedness == Definedness::lanes_below || info.definedness == Definedness::lanes_below_high) {
    const uint32_t first = info.definedness == Definedness::lanes_below ? 0 : 32;
    if (op.src[0] >= first_sgpr) low = lanes_above(bits_of(op.src[0]), first) & defined_lanes(op.src[1]);
  }
  const uint64_t undefined = exec & ~(low & high);
  uint16_t source = no_operand;
  if (undefined != 0) [[unlikely]] {
    source = undefined_source(w, op, info, undefined);
    if (source != no_operand) {
      if (info.role() == Role::compare_exec) {
        report_undefined(w, op, source, undefined, "value that decides EXEC");
        low = all_lanes;
      }
      const Origin origin = inherited(op, source);
      if (op.dst != no_operand) origin_of(op.dst) = origin;
      if (op.dst < first_sgpr && is_two_rows(v.result_type)) origin_of(uint16_t(op.dst + 1)) = origin;
    }
  }
  if (op.dst < first_sgpr) {
    defined[op.dst] = (defined[op.dst] & ~exec) | (low & exec);
    for (uint32_t r = 1; r < rows_of(v.result_type); ++r)
      defined[op.dst + r] = (defined[op.dst + r] & ~exec) | (high & exec);
  }
  if (op.mask != no_operand) { // lanes that EXEC excludes give 0
    const uint64_t unknown = source == no_operand ? 0 : exec & ~low;
    set_scalar(w, op, op.mask - first_sgpr, uint32_t(unknown), source);
    set_scalar(w, op, op.mask - first_sgpr + 1, uint32_t(unknown >> 32), source);
  }
}

void WaveChecks::track_lane_access(Wave &w, const Op &op, const OpInfo &info) {
  const uint64_t exec = w.exec();
  const bool first = info.role() == Role::read_first_lane;
  const uint32_t lane = first ? low_lane(exec) % wave_lanes : w.scalar(op.src[1]) % wave_lanes;
  const bool chosen = first || op.src[1] >= first_constant || (bits_of(op.src[1]) & 63) == 63;
  if (info.role() == Role::write_lane) {
    // A lane has one bit: masks that are saved here are often undefined in lanes that are off.
    const bool known = chosen && bits_of(op.src[0]) != 0;
    defined[op.dst] = (defined[op.dst] & ~lane_bit(lane)) | uint64_t(known) << lane;
    if (!known) origin_of(op.dst) = inherited(op, chosen ? op.src[0] : op.src[1]);
    return;
  }
  uint32_t bits = all_bits;
  if (op.src[0] >= first_sgpr) {
    bits = bits_of(op.src[0]);
  } else if ((defined[op.src[0]] >> lane & 1) == 0) {
    bits = 0;
  }
  set_scalar(w, op, op.dst - first_sgpr, chosen ? ~bits : all_bits, chosen ? op.src[0] : op.src[1]);
}

//===--- The scalar unit --------------------------------------------------------------------------------===//

void WaveChecks::set_scalar(Wave &w, const Op &op, uint32_t number, uint32_t undefined, uint16_t source) {
  defined_bits[number] = all_bits;
  if (undefined == 0) return;
  if (is_exec(number)) {
    // It matters in lanes that are on; elsewhere compilers leave masks undefined.
    const uint32_t lanes = undefined & w.s[number];
    if (lanes == 0) return;
    report_undefined(w, op, source, uint64_t(lanes) << 32 * (number - sgpr_exec), "mask for EXEC");
    return;
  }
  defined_bits[number] = number == sgpr_scc ? 0 : ~undefined;
  scalar_origins[number] = inherited(op, source);
}

void WaveChecks::track_scalar(Wave &w, const Op &op, const OpInfo &info) {
  for (uint32_t i = info.reads_begin; i < info.reads_end; ++i) {
    const RegisterRange range = launch.ops->ranges[i];
    for (uint32_t r = 0; r < range.count; ++r)
      if (range.first >= first_sgpr && bits_of(uint16_t(range.first + r)) != all_bits)
        return track_undefined_scalar(w, op, info);
  }
  for (uint32_t i = info.writes_begin; i < info.writes_end; ++i)
    for (uint32_t r = 0; r < launch.ops->ranges[i].count; ++r)
      defined_bits[launch.ops->ranges[i].first - first_sgpr + r] = all_bits;
}

/// Runs the instruction with several values in place of undefined bits: a bit of a result that changes is
/// undefined. Each register is set and cleared apart from the others, so that two of them cannot cancel out.
/// The extremes of integers and the value of the other source decide comparisons.
void WaveChecks::track_undefined_scalar(Wave &w, const Op &op, const OpInfo &info) {
  const std::vector<RegisterRange> &ranges = launch.ops->ranges;
  std::vector<uint16_t> sources;
  for (uint32_t i = info.reads_begin; i < info.reads_end; ++i)
    for (uint32_t r = 0; r < ranges[i].count; ++r)
      if (ranges[i].first >= first_sgpr && bits_of(uint16_t(ranges[i].first + r)) != all_bits)
        sources.push_back(uint16_t(ranges[i].first + r));
  std::array<uint32_t, sgpr_count> first;
  std::array<uint32_t, sgpr_count> changed{};
  bool is_first = true;
  auto try_values = [&](auto &&value_of) {
    Wave trial = w;
    trial.checks = nullptr;
    for (const uint16_t source : sources) {
      uint32_t &held = trial.s[source - first_sgpr];
      held = (held & bits_of(source)) | (value_of(source) & ~bits_of(source));
    }
    op.run(trial, op);
    for (uint32_t number = 0; number < sgpr_count; ++number) {
      if (is_first) first[number] = trial.s[number];
      changed[number] |= trial.s[number] ^ first[number];
    }
    is_first = false;
  };
  for (const uint32_t value : {0u, ~0u, 0x7fffffffu, 0x80000000u})
    try_values([&](uint16_t) { return value; });
  for (const uint16_t one : sources)
    try_values([&](uint16_t source) { return source == one ? ~0u : 0u; });
  // An immediate of 16 bits is signed for some comparisons and not for others.
  try_values([&](uint16_t) { return uint32_t(uint16_t(op.value)); });
  try_values([&](uint16_t source) {
    for (uint32_t k = 0; k < 2; ++k) {
      const uint16_t other = op.src[1 - k];
      const uint32_t dword = uint32_t(source - op.src[k]);
      if (op.src[k] == no_operand || dword > 1 || other == no_operand) continue;
      if (dword == 0) return w.scalar(other);
      return uint32_t(w.scalar_pair(other) >> 32);
    }
    return uint32_t(op.value);
  });
  for (uint32_t i = info.writes_begin; i < info.writes_end; ++i)
    for (uint32_t r = 0; r < ranges[i].count; ++r) {
      const uint32_t number = ranges[i].first - first_sgpr + r;
      const uint32_t bits = changed[number];
      set_scalar(w, op, number, bits != 0 && info.definedness != Definedness::bits ? all_bits : bits,
                 sources[0]);
    }
}

} // namespace sluice::emulator

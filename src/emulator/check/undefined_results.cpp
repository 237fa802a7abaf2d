//===- undefined_results.cpp - which results of the vector ALU and the scalar unit are undefined --------===//
#include <algorithm>
#include <bit>

#include "emulator/check/wave_checks.h"
#include "emulator/isa/dpp.h"
#include "emulator/isa/gpr_index.h"

namespace sluice::emulator {

namespace {

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

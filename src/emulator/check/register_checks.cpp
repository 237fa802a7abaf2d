//===- register_checks.cpp - registers that a wave must not touch, or never wrote -----------------------===//
#include <string>

#include "emulator/check/register_name.h"
#include "emulator/check/wave_checks.h"
#include "emulator/isa/gpr_index.h"
#include "support/hex.h"

namespace sluice::emulator {

const AsyncOperation *WaveChecks::pending_writer(uint16_t operand, bool &in_order, OpKind kind) const {
  const AsyncOperation *writer = nullptr;
  in_order = true;
  for (const AsyncQueue *queue : {&vector_queue, &lgkm_queue})
    for (size_t i = 0; i < queue->size(); ++i) {
      const AsyncOperation &operation = (*queue)[i];
      if (operand < operation.first || operand >= operation.first + operation.rows) continue;
      writer = &operation;
      const bool same_order = (operation.kind == AsyncKind::vector_load && kind == OpKind::vector_memory) ||
                              (operation.kind == AsyncKind::lds_read && kind == OpKind::lds);
      in_order = in_order && same_order;
    }
  return writer;
}

/// Returns true if it has reported.
bool WaveChecks::check_pending(Wave &w, const Op &op, OpKind kind, uint16_t operand, bool is_write) {
  if (pending[operand] == 0) return false;
  bool in_order = false;
  const AsyncOperation *writer = pending_writer(operand, in_order, kind);
  // A later load of the same kind may overwrite: results arrive in order.
  if (!writer || (is_write && in_order)) return false;
  const bool vector = writer->kind != AsyncKind::lds_read && writer->kind != AsyncKind::scalar_load;
  report(w, op, ReportKind::pending_register, -1, operand, LdsOther{writer->op, w.id}, [&] {
    return std::string(is_write ? "writes " : "reads ") + register_name(operand) +
           " while a load into it is in flight: no s_waitcnt " + (vector ? "vmcnt" : "lgkmcnt") +
           " in between";
  });
  return true;
}

void WaveChecks::check_pending(Wave &w, const Op &op, const OpInfo &info) {
  if (!checks.pending) return;
  auto check = [&](uint32_t begin, uint32_t end, bool is_write) {
    for (uint32_t i = begin; i < end; ++i) {
      const RegisterRange range = launch.ops->ranges[i];
      if (!pending_set.meets(range)) continue;
      for (uint16_t operand = range.first; operand < range.first + range.count; ++operand)
        if (check_pending(w, op, info.kind, operand, is_write)) return;
    }
  };
  check(info.reads_begin, info.reads_end, false);
  check(info.writes_begin, info.writes_end, true);
}

void WaveChecks::report_index(Wave &w, const Op &op, char file, uint64_t number, uint32_t limit) {
  report(w, op, ReportKind::register_out_of_range, -1, number, std::nullopt, [&] {
    return std::string("M0 makes it use ") + file + std::to_string(number) +
           ", but the kernel's descriptor grants " + std::to_string(limit) + " of those registers";
  });
}

void WaveChecks::check_indexed(Wave &w, const Op &op) {
  const IndexedOp indexed = indexed_op(w, op);
  if (indexed.beyond_limit) {
    if (checks.registers) report_index(w, op, 'v', *indexed.beyond_limit, w.vgpr_limit);
    return;
  }
  if (!checks.pending || pending_registers == 0) return;
  const Op &real = indexed.op;
  for (uint32_t k = 0; k < real.valu.sources; ++k)
    for (uint32_t r = 0; real.src[k] < first_sgpr && r < rows_of(real.valu.source_types[k]); ++r)
      if (reads_row(real.valu, k, r) && check_pending(w, op, OpKind::valu, uint16_t(real.src[k] + r), false))
        return;
  for (uint32_t r = 0; real.dst < first_sgpr && r < rows_of(real.valu.result_type); ++r)
    if (check_pending(w, op, OpKind::valu, uint16_t(real.dst + r), true)) return;
}

void WaveChecks::track_indexed(Wave &w, const Op &op, const OpInfo &info, uint64_t exec) {
  const IndexedOp indexed = indexed_op(w, op);
  if (indexed.suppressed) return;
  const Op &real = indexed.op;
  track_defined(w, real, info, exec);
  if (real.dst != no_operand) note_undefined({real.dst, uint16_t(rows_of(real.valu.result_type))});
  if (real.mask != no_operand) note_undefined({real.mask, 2});
}

void WaveChecks::check_indexed_scalar(Wave &w, const Op &op, uint64_t number, uint32_t dwords, bool write) {
  if (number + dwords > w.sgpr_limit) {
    if (checks.registers) report_index(w, op, 's', number + dwords - 1, w.sgpr_limit);
    return;
  }
  for (uint32_t i = 0; i < dwords; ++i) {
    const uint16_t operand = uint16_t(first_sgpr + number + i);
    if (checks.pending && check_pending(w, op, OpKind::scalar, operand, write)) return;
    if (write && checks.uninitialised) {
      defined_sgpr[number + i] = 1;
      note_undefined({operand, 1});
    }
  }
}

void WaveChecks::report_registers(Wave &w, const Op &op, const OpInfo &info) {
  const bool vector = info.vgprs_end > launch.vgpr_limit;
  const bool accumulation = !vector && info.agprs_end > launch.agpr_limit;
  const uint32_t end = vector ? info.vgprs_end : accumulation ? info.agprs_end : info.sgprs_end;
  const uint32_t limit = vector ? launch.vgpr_limit : accumulation ? launch.agpr_limit : launch.sgpr_limit;
  report(w, op, ReportKind::register_out_of_range, -1, end - 1, std::nullopt, [&] {
    return std::string("uses ") +
           (vector         ? "v"
            : accumulation ? "a"
                           : "s") +
           std::to_string(end - 1) + ", but the kernel's descriptor grants " + std::to_string(limit) +
           " of those registers";
  });
}

void WaveChecks::report_exec(Wave &w, const Op &op) {
  report(w, op, ReportKind::exec_at_mfma, -1, w.exec(), std::nullopt, [&] {
    return "EXEC is " + support::hex(w.exec()) + ": the matrix core ignores it and computes all lanes";
  });
}

void WaveChecks::report_hazard(Wave &w, const Op &op, const HazardFound &found) {
  const Rule rule{.kind = ReportKind::hazard, .level = found.level, .hazard = uint8_t(found.rule)};
  report(w, op, rule, -1, found.operand, LdsOther{found.other, w.id}, [&] { return describe(found); });
}

void WaveChecks::report_undefined(Wave &w, const Op &op, uint16_t operand, int32_t lane, const char *role) {
  const Origin origin = origin_of(operand);
  std::optional<LdsOther> other;
  if (origin.op != Origin::nowhere) other = LdsOther{origin.op, w.id};
  report(w, op, ReportKind::register_uninitialised, lane, operand, other, [&] {
    const std::string holds = std::string(role) + " " + register_name(operand) + " holds a value that ";
    if (!other) return holds + "was never written";
    if (origin.root == no_operand) return holds + "was loaded from memory that was never written";
    return holds + "comes from " + register_name(origin.root) + ", which was never written";
  });
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
      if (missing != 0) return report_undefined(w, op, operand, int32_t(low_lane(missing)), role);
    }
  };
  auto scalars = [&](RegisterRange range, const char *role) {
    for (uint16_t operand = range.first; operand < range.first + range.count; ++operand)
      if (defined_sgpr[operand - first_sgpr] == 0) return report_undefined(w, op, operand, -1, role);
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
    rows(info.address, w.exec(), "address");
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
    for (uint32_t i = info.reads_begin; i < info.reads_end; ++i)
      if (launch.ops->ranges[i].first >= first_sgpr) scalars(launch.ops->ranges[i], "branch condition");
    break;
  case OpKind::valu:
  case OpKind::scalar:
  case OpKind::other:
    break;
  }
}

/// The destination of a load inherits undefined memory.
void WaveChecks::take_undefined(const Op &op, const OpInfo &info) {
  if (op.dst == no_operand || info.kind == OpKind::lds_copy) return;
  for (uint32_t r = 0; r < op.memory.dwords; ++r) {
    if (loaded.rows[r] == 0) continue;
    const uint16_t operand = uint16_t(op.dst + r);
    origin_of(operand) = {op.index, no_operand};
    if (operand < first_sgpr)
      defined[operand] &= ~loaded.rows[r];
    else
      defined_sgpr[operand - first_sgpr] = 0;
  }
}

uint64_t WaveChecks::defined_lanes(uint16_t operand) const {
  if (operand < first_sgpr) return defined[operand];
  if (operand >= first_constant) return all_lanes;
  return defined_sgpr[operand - first_sgpr] != 0 ? all_lanes : 0;
}

/// Defined lanes, for a source of one or two registers.
uint64_t WaveChecks::defined_row(uint16_t operand, uint32_t row) const {
  return defined_lanes(operand >= first_constant ? operand : uint16_t(operand + row));
}

/// A register of source k that some lane reads and that was never written. Only the first register of a
/// source counts, unless the source is a pair of f32.
std::optional<uint16_t> WaveChecks::undefined_register(const Op &op, uint32_t k, uint64_t exec) const {
  const uint32_t rows = op.valu.source_types[k] == OperandType::packed_f32 ? 2 : 1;
  for (uint32_t r = 0; r < rows; ++r)
    if ((rows == 1 || reads_row(op.valu, k, r)) && (exec & ~defined_row(op.src[k], r)) != 0)
      return op.src[k] >= first_constant ? op.src[k] : uint16_t(op.src[k] + r);
  return std::nullopt;
}

void WaveChecks::track_defined(Wave &w, const Op &op, const OpInfo &info, uint64_t exec) {
  if (info.kind != OpKind::valu) {
    bool known = info.reads_begin == info.reads_end;
    if (info.kind == OpKind::scalar) {
      for (uint32_t i = info.reads_begin; i < info.reads_end && !known; ++i) {
        const RegisterRange range = launch.ops->ranges[i];
        known = range.first >= first_sgpr && defined_sgpr[range.first - first_sgpr] != 0;
      }
      if (!known)
        for (uint32_t i = info.writes_begin; i < info.writes_end; ++i)
          for (uint16_t r = 0; r < launch.ops->ranges[i].count; ++r)
            origin_of(uint16_t(launch.ops->ranges[i].first + r)) =
                inherited(op, launch.ops->ranges[info.reads_begin].first);
    } else {
      known = true;
    }
    const uint64_t lanes = info.kind == OpKind::mfma ? all_lanes : exec;
    for (uint32_t i = info.writes_begin; i < info.writes_end; ++i) {
      const RegisterRange range = launch.ops->ranges[i];
      for (uint16_t operand = range.first; operand < range.first + range.count; ++operand) {
        if (operand < first_sgpr)
          defined[operand] |= lanes;
        else
          defined_sgpr[operand - first_sgpr] = known;
      }
    }
    if (loaded.any) take_undefined(op, info);
    return;
  }

  // The low half of a 64-bit result is taken to depend on low halves only: compilers leave the high half of
  // an addend undefined where they use the low half of the sum. A pair of f32 that comes from pairs is two
  // results, each from the dwords that op_sel and op_sel_hi choose for it. Conversions make both results from
  // one dword.
  const ValuControl &v = op.valu;
  const bool pair = v.result_type == OperandType::packed_f32 && v.source_types[0] == OperandType::packed_f32;
  uint64_t low = all_lanes;
  uint64_t high = all_lanes;
  if (pair) {
    for (uint32_t k = 0; k < v.sources; ++k)
      for (const bool for_high : {false, true}) {
        const std::optional<uint32_t> row = packed_row(v, k, for_high);
        if (row) (for_high ? high : low) &= defined_row(op.src[k], *row);
      }
  } else if (info.definedness == Definedness::select) {
    // The mask is still the wave's own register: v_cndmask does not write it.
    const uint64_t mask = w.scalar_pair(op.mask_in);
    low = (defined_lanes(op.src[0]) & ~mask) | (defined_lanes(op.src[1]) & mask);
  } else if (info.definedness == Definedness::all && v.modifiers.lane_control == 0) {
    for (uint32_t k = 0; k < v.sources; ++k) {
      low &= defined_lanes(op.src[k]);
      if (is_two_rows(v.source_types[k]) && op.src[k] < first_constant)
        high &= defined_lanes(uint16_t(op.src[k] + 1));
    }
    high &= low;
  } else if (info.definedness == Definedness::any) {
    low = 0;
    for (uint32_t k = 0; k < v.sources; ++k)
      low |= defined_lanes(op.src[k]);
  }
  if ((low & exec) != exec || (pair && (high & exec) != exec)) {
    for (uint32_t k = 0; k < v.sources; ++k) {
      const std::optional<uint16_t> undefined = undefined_register(op, k, exec);
      if (!undefined) continue;
      const Origin origin = inherited(op, *undefined);
      if (op.dst != no_operand) origin_of(op.dst) = origin;
      if (op.dst < first_sgpr && is_two_rows(v.result_type)) origin_of(uint16_t(op.dst + 1)) = origin;
      if (op.mask != no_operand) origin_of(op.mask) = origin_of(uint16_t(op.mask + 1)) = origin;
      break;
    }
  }
  if (op.dst != no_operand) {
    if (op.dst >= first_sgpr) {
      defined_sgpr[op.dst - first_sgpr] = low != 0;
    } else {
      defined[op.dst] = (defined[op.dst] & ~exec) | (low & exec);
      for (uint32_t r = 1; r < rows_of(v.result_type); ++r)
        defined[op.dst + r] = (defined[op.dst + r] & ~exec) | (high & exec);
    }
  }
  if (op.mask != no_operand) {
    const uint8_t mask_known = exec == 0 || (low & exec) != 0;
    defined_sgpr[op.mask - first_sgpr] = defined_sgpr[op.mask - first_sgpr + 1] = mask_known;
  }
}

} // namespace sluice::emulator

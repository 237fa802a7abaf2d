//===- register_checks.cpp - registers that a wave must not touch ------------------------------------===//
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

void WaveChecks::check_indexed_scalar(Wave &w, const Op &op, uint64_t number, uint32_t dwords, bool write) {
  if (number + dwords > w.sgpr_limit) {
    if (checks.registers) report_index(w, op, 's', number + dwords - 1, w.sgpr_limit);
    return;
  }
  for (uint32_t i = 0; i < dwords; ++i) {
    const uint16_t operand = uint16_t(first_sgpr + number + i);
    if (checks.pending && check_pending(w, op, OpKind::scalar, operand, write)) return;
    if (!write) continue;
    defined_bits[number + i] = ~0u;
    note_undefined({operand, 1});
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

} // namespace sluice::emulator

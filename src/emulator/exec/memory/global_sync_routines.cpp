//===- global_sync_routines.cpp - ds_gws_init and ds_gws_barrier ----------------------------------------===//
//
// M0[21:16] and the offset together name the resource; the first active lane gives the number of waves.
//
//===----------------------------------------------------------------------------------------------------===//
#include <bit>

#include "emulator/check/wave_checks.h"
#include "emulator/exec/global_sync.h"
#include "emulator/exec/memory/memory_routines.h"

namespace sluice::emulator {

namespace {

constexpr uint32_t m0_resource_shift = 16;

Step fail(Wave &w, Fault fault) {
  w.fault = fault;
  return Step::stop;
}

/// Why a wave may not synchronise; Fault::none if it may.
Fault refusal(const Wave &w) {
  if (w.workgroup->sync == nullptr) return Fault::global_sync_alone;
  // The chip may hang: without an active lane the number of waves is undefined.
  return w.exec() == 0 ? Fault::global_sync_exec : Fault::none;
}

uint32_t others(const Wave &w, const Op &op) {
  return w.row(op.src[0])[std::countr_zero(w.exec())];
}

uint32_t resource(const Wave &w, const Op &op) {
  return ((w.s[sgpr_m0] >> m0_resource_shift) + uint32_t(op.memory.offset)) % GlobalSync::resource_count;
}

template <bool strict> Step run_init(Wave &w, const Op &op) {
  if (const Fault fault = refusal(w); fault != Fault::none) return fail(w, fault);
  w.workgroup->sync->init(resource(w, op), others(w, op));
  if constexpr (strict) w.checks->count_lds_operation(w, op);
  return Step::next;
}

template <bool strict> Step run_barrier(Wave &w, const Op &op) {
  if (const Fault fault = refusal(w); fault != Fault::none) return fail(w, fault);
  w.sync_resource = resource(w, op);
  if constexpr (strict) {
    w.checks->count_lds_operation(w, op);
    w.checks->reach_global_barrier(w.sync_resource);
  }
  switch (w.workgroup->sync->arrive(w.sync_resource, others(w, op), w.sync_round)) {
  case GlobalSync::Arrival::waits:
    return Step::global_barrier;
  case GlobalSync::Arrival::not_ready:
    return fail(w, Fault::global_sync_not_ready);
  case GlobalSync::Arrival::last:
    break;
  }
  if constexpr (strict) w.checks->pass_global_barrier(w.sync_resource);
  return Step::next;
}

constexpr NamedRoutines table[] = {
    {"ds_gws_init", {run_init<false>, run_init<true>}},
    {"ds_gws_barrier", {run_barrier<false>, run_barrier<true>}},
};

} // namespace

MemoryRoutines global_sync_routines(const InstructionFacts &facts) {
  return find_routines(table, facts.mnemonic);
}

} // namespace sluice::emulator

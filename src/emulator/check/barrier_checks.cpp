//===- barrier_checks.cpp - waves and lanes that are elsewhere when others meet at a barrier ------------===//
//
// The hardware counts waves: it lets a barrier go once each wave that has not ended is at some s_barrier, and
// it ignores EXEC. So a program goes on after each of these mistakes, and what its barriers order is not what
// they were written to order.
//
//===----------------------------------------------------------------------------------------------------===//
#include <algorithm>

#include "emulator/check/wave_checks.h"

namespace sluice::emulator {

namespace {

const Op &last_op(const Wave &w) {
  return w.pc[-1];
}

} // namespace

void WaveChecks::check_meeting(std::span<Wave *const> met, std::span<Wave *const> ended) {
  Wave &first = *met[0];
  WaveChecks &checks_of_first = *first.checks;
  if (checks_of_first.checks.barriers && !ended.empty())
    checks_of_first.report(first, last_op(first), ReportKind::barrier_mismatch, -1, 0,
                           LdsOther{last_op(*ended[0]).index, ended[0]->id}, [&] {
                             return "waits at a barrier, but wave " + std::to_string(ended[0]->id) +
                                    " of the workgroup has ended without it";
                           });
  const auto elsewhere = std::ranges::find_if(met, [&](const Wave *w) { return w->pc != first.pc; });
  if (checks_of_first.checks.barrier_places && elsewhere != met.end()) {
    Wave &w = **elsewhere;
    w.checks->report(w, last_op(w), ReportKind::barrier_places, -1, 0,
                     LdsOther{last_op(first).index, first.id}, [&] {
                       return "is a barrier at which wave " + std::to_string(w.id) + " meets wave " +
                              std::to_string(first.id) + ", which is at another barrier";
                     });
  }
  for (Wave *w : met) {
    w->checks->check_returned_lanes(*w, last_op(*w));
    w->checks->at_barrier = {last_op(*w).index, w->exec()};
  }
}

/// Lanes that were off at the last barrier and do something now were elsewhere. Lanes that have returned from
/// the kernel stay off until the wave ends.
void WaveChecks::check_returned_lanes(Wave &w, const Op &op) {
  const uint64_t returned = w.exec() & ~at_barrier.exec;
  if (returned == 0 || !checks.divergent_barriers) return;
  const int32_t lane = int32_t(low_lane(returned));
  report(w, w.first_op[at_barrier.op], ReportKind::barrier_divergent, lane, 0, LdsOther{op.index, w.id}, [&] {
    return "is a barrier that lane " + std::to_string(lane) +
           " does not reach with its wave: it is off here, and on again later";
  });
}

} // namespace sluice::emulator

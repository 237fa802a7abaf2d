//===- memory_checks.cpp - reports of memory, and accesses of LDS ---------------------------------------===//
#include <algorithm>

#include "emulator/check/inexact_values.h"
#include "emulator/check/lane_stores.h"
#include "emulator/check/wave_checks.h"
#include "support/hex.h"

namespace sluice::emulator {

namespace {

bool overlaps(uint32_t a, uint32_t a_bytes, uint32_t b, uint32_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

std::string access_of(const char *verb, uint32_t address, const LdsOther &other) {
  return std::string(verb) + " LDS byte " + std::to_string(address) + ", which wave " +
         std::to_string(other.wave);
}
constexpr const char *read_between = " reads: no wait and barrier in between";

} // namespace

void WaveChecks::count_lds_operation(Wave &w, const Op &op) {
  issue(w, new_operation(w, op, AsyncKind::lds_write));
}

void WaveChecks::report_misaligned(Wave &w, const Op &op, int32_t lane, uint64_t address,
                                   uint32_t alignment) {
  report(w, op, ReportKind::misaligned, lane, address, std::nullopt, [&] {
    return "address " + support::hex(address) + " is not a multiple of " + std::to_string(alignment);
  });
}

void WaveChecks::report_lds_bounds(Wave &w, const Op &op, uint32_t lane, uint64_t address, uint32_t bytes) {
  if (!checks.lds_bounds) return;
  report(w, op, ReportKind::lds_out_of_bounds, int32_t(lane), address, std::nullopt, [&] {
    return "accesses LDS bytes " + std::to_string(address) + " to " + std::to_string(address + bytes - 1) +
           ", but the workgroup has " + std::to_string(w.workgroup->lds_bytes);
  });
}

void WaveChecks::report_scratch_bounds(Wave &w, const Op &op, uint32_t lane, uint64_t address,
                                       uint32_t bytes) {
  if (!checks.global_bounds) return;
  report(w, op, ReportKind::scratch_out_of_bounds, int32_t(lane), address, std::nullopt, [&] {
    return "accesses scratch bytes " + std::to_string(address) + " to " +
           std::to_string(address + bytes - 1) + ", but a lane has " + std::to_string(w.scratch_bytes);
  });
}

void WaveChecks::report_buffer_range(Wave &w, const Op &op, int32_t lane, uint64_t address, uint32_t records,
                                     bool write) {
  if (!checks.buffer_range) return;
  report(w, op, ReportKind::buffer_out_of_range, lane, address, std::nullopt, [&] {
    return std::string(write ? "stores" : "loads") + " out of the buffer's range: its NUM_RECORDS is " +
           std::to_string(records) + (write ? ", nothing is stored" : ", the value is 0");
  });
}

void WaveChecks::report_lds(Wave &w, const Op &op, LdsConflict conflict, const char *verb, uint32_t lane,
                            uint32_t address, const LdsOther &other, const std::string &use) {
  if (conflict == LdsConflict::none || conflict == LdsConflict::same_store) return;
  if (conflict == LdsConflict::uninitialised) {
    if (!checks.uninitialised) return;
    const bool copied = other.op != LdsOther::nobody;
    report(w, op, ReportKind::lds_uninitialised, int32_t(lane), address,
           copied ? std::optional(other) : std::nullopt, [&] {
             return std::string(verb) + " LDS byte " + std::to_string(address) +
                    (copied ? ", which was copied from memory that was never written"
                            : ", which was never written") +
                    use;
           });
    return;
  }
  const std::string text = access_of(verb, address, other);
  if (conflict == LdsConflict::equal_store) {
    if (!checks.lds_equal_stores) return;
    report(w, op, ReportKind::lds_equal_stores, int32_t(lane), address, other,
           [&] { return text + " wrote, with no barrier in between; both stores write the same value"; });
    return;
  }
  if (conflict == LdsConflict::after_read_before_barrier) {
    if (!checks.lds_write_after_read) return;
    report(w, op, ReportKind::lds_write_after_read, int32_t(lane), address, other,
           [&] { return text + " reads: issued before the last barrier, but not waited for with lgkmcnt"; });
    return;
  }
  if (!checks.lds_races) return;
  report(w, op, ReportKind::lds_race, int32_t(lane), address, other, [&] {
    switch (conflict) {
    case LdsConflict::after_copy:
      return text + " is copying into: the copy was not waited for with vmcnt" + use;
    case LdsConflict::after_read:
      return text + (other.wave == w.id ? " reads: the read was not waited for with lgkmcnt" : read_between);
    default:
      return text +
             (other.wave == w.id ? " writes: the write was not waited for with lgkmcnt"
                                 : " wrote: no wait and barrier in between") +
             use;
    }
  });
}

void WaveChecks::enter_lds(Wave &w, const Op &op, LdsAccess access, const LdsLanes &at, StoredRows stored,
                           uint32_t first_row) {
  const uint32_t *const addresses = at.addresses;
  const uint32_t bytes = at.bytes;
  if (followed) followed->access_lds(addresses, at.lanes, bytes, access != LdsAccess::read);
  if (!enters_lds) return;
  const bool in_order = launch.ops->infos[op.index].kind == OpKind::lds;
  lds.begin_instruction();
  bool any_same_store = false;
  for (LdsLanes left = at;; left.lanes &= left.lanes - 1) {
    left.lanes = access == LdsAccess::read
                     ? lds.read_lanes(left, wave, op.index)
                     : lds.store_lanes(left, wave, op.index, access == LdsAccess::atomic);
    if (left.lanes == 0) break;
    const uint32_t lane = low_lane(left.lanes);
    const uint32_t address = addresses[lane];
    const char *const verb = access == LdsAccess::write ? "writes" : "combines with";
    LdsOther other;
    LdsConflict conflict = LdsConflict::none;
    switch (access) {
    case LdsAccess::read:
      conflict = lds.read(address, bytes, wave, op.index, other);
      break;
    case LdsAccess::write:
      conflict = lds.write(address, bytes, wave, op.index, in_order,
                           {w.workgroup->lds + address, stored.rows + lane, stored.shift}, other);
      break;
    case LdsAccess::atomic:
      conflict = lds.atomic(address, bytes, wave, op.index, in_order, other);
      break;
    }
    if (conflict == LdsConflict::same_store)
      any_same_store = true;
    else if (conflict != LdsConflict::none && access == LdsAccess::read)
      enter_doubtful_read(op, {conflict, lane, address, other}, bytes, first_row);
    else if (conflict == LdsConflict::after_read && other.wave != wave)
      meet_read(w, op, verb, lane, address, bytes, other);
    else if (conflict != LdsConflict::none) [[unlikely]]
      report_lds(w, op, conflict, verb, lane, address, other);
  }
  if (access == LdsAccess::read && reads.follows(op.index))
    enter_followed_read(op, addresses, at.lanes, bytes, first_row);
  if (any_same_store && checks.lane_stores) check_lane_stores(w, op, addresses, at.lanes, bytes, stored);
}

/// The first such meeting of a read cannot be judged; see unused_reads.h.
void WaveChecks::meet_read(Wave &w, const Op &op, const char *verb, uint32_t lane, uint32_t address,
                           uint32_t bytes, const LdsOther &other) {
  if (!checks.lds_races) return;
  reads.meet(other.wave, other.op, address, bytes);
  launch.unused_reads->met(op.index, other.op, [&] {
    Finding finding = finding_of(w, op, Rule{.kind = ReportKind::lds_race}, int32_t(lane), address, other);
    finding.message = access_of(verb, address, other) + read_between;
    return finding;
  });
}

void report_reads_met(const LaunchChecks &launch) {
  for (const UnusedReads::Meeting &meeting : launch.unused_reads->meetings())
    launch.sink->add_at_end(meeting.finding, meeting.count);
}

void WaveChecks::check_lane_stores(Wave &w, const Op &op, const uint32_t *addresses, uint64_t lanes,
                                   uint32_t bytes, StoredRows stored) {
  const auto found = find_different_stores(addresses, lanes, bytes, stored);
  if (!found) return;
  report(w, op, ReportKind::lanes_store_different, int32_t(found->lane), found->address, std::nullopt, [&] {
    return "stores to LDS byte " + std::to_string(found->address) + ", where lane " +
           std::to_string(found->other) + " stores another value: either may be the one that remains";
  });
}

/// A copy and the wave's own earlier LDS instructions take different paths: only a wait orders them.
const AsyncOperation *WaveChecks::own_access_in_flight(const uint32_t *addresses, uint64_t lanes,
                                                       uint32_t bytes, uint32_t &lane) const {
  const LdsRange range = LdsLanes(addresses, lanes, bytes).range;
  for (const AsyncQueue *queue : {&lgkm_queue, &vector_queue})
    for (size_t i = 0; i < queue->size(); ++i) {
      const AsyncOperation &operation = (*queue)[i];
      if (operation.lds_parts == 0 || !operation.lds_range.meets(range)) continue;
      for (uint32_t part = 0; part < operation.lds_parts; ++part)
        for (uint64_t others = operation.in_bounds; others != 0; others &= others - 1) {
          const uint32_t theirs = operation.lds_address[part][low_lane(others)];
          for (uint64_t ours = lanes; ours != 0; ours &= ours - 1) {
            lane = low_lane(ours);
            if (overlaps(addresses[lane], bytes, theirs, operation.lds_bytes)) return &operation;
          }
        }
    }
  return nullptr;
}

void WaveChecks::begin_copy(Wave &w, const Op &op, const uint32_t *addresses, uint64_t lanes) {
  if (followed) followed->copy_to_lds(addresses, lanes);
  if (!enters_lds) return;
  LdsOther other{};
  uint32_t at = 0;
  const bool any_in_flight = lgkm_queue.size() + vector_queue.size() != 0;
  if (const AsyncOperation *own =
          checks.lds_races && any_in_flight ? own_access_in_flight(addresses, lanes, 4, at) : nullptr)
    report_lds(w, op, own->lds_writes ? LdsConflict::after_write : LdsConflict::after_read, "copies into", at,
               addresses[at], {own->op, wave});
  lds.begin_instruction();
  for (; lanes != 0; lanes &= lanes - 1) {
    const uint32_t lane = low_lane(lanes);
    const LdsConflict conflict = lds.begin_copy(addresses[lane], 4, wave, op.index, other);
    if (conflict != LdsConflict::none) [[unlikely]]
      report_lds(w, op, conflict, "copies into", lane, addresses[lane], other);
  }
}

} // namespace sluice::emulator

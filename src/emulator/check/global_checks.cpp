//===- global_checks.cpp - accesses of memory -----------------------------------------------------------===//
//
// Bounds, contents that were never written, and the order of accesses of different waves.
//
//===----------------------------------------------------------------------------------------------------===//
#include <algorithm>

#include "emulator/check/inexact_values.h"
#include "emulator/check/lane_stores.h"
#include "emulator/check/wave_checks.h"
#include "emulator/check/written_map.h"
#include "support/hex.h"

namespace sluice::emulator {

namespace {

std::string conflicting_accesses(bool stores, uint64_t address, uint32_t other_wave,
                                 std::optional<uint32_t> other_workgroup, bool with_store) {
  return std::string(stores ? "writes " : "reads ") + support::hex(address) + ", which wave " +
         std::to_string(other_wave) +
         (other_workgroup ? " of workgroup number " + std::to_string(*other_workgroup)
                          : " of this workgroup") +
         (with_store ? " writes" : " reads");
}

} // namespace

void WaveChecks::watch(const Op &op, const uint64_t *addresses, uint64_t lanes, uint32_t bytes, bool write) {
  if (launch.watch == nullptr) return;
  const bool combines = combines_with_memory(launch.ops->infos[op.index].role());
  launch.watch->enter(addresses, lanes, bytes, !write || combines, write);
}

uint64_t WaveChecks::check_global(Wave &w, const Op &op, const uint64_t *addresses, uint64_t exec,
                                  uint32_t bytes, bool write, StoredRows stored) {
  const uint64_t allowed = allowed_lanes(w, op, addresses, exec, bytes, write, stored);
  watch(op, addresses, allowed, bytes, write);
  if (followed) followed->access_memory(op, addresses, allowed, bytes, write);
  return allowed;
}

uint64_t WaveChecks::allowed_lanes(Wave &w, const Op &op, const uint64_t *addresses, uint64_t exec,
                                   uint32_t bytes, bool write, StoredRows stored) {
  if (!looks_at_memory || exec == 0) return exec;
  const OpInfo &info = launch.ops->infos[op.index];
  const bool atomic = info.is_atomic();
  const GlobalAccess access{
      !write || combines_with_memory(info.role()), write, atomic || op.memory.sc1, false, op.index,
      info.role() == Role::atomic_compare};
  const Footprint footprint(addresses, exec, bytes);
  if (write && !atomic && footprint.overlaps()) compare_lanes(w, op, addresses, exec, bytes, stored);
  if (launch.shadow && access.atomic) settle_order();
  auto usable = [&](const MemoryBlock *block) {
    return block && !block->freed && (block->writable || !write);
  };
  const MemoryBlock *&hint = last_block[op.index];
  if (footprint.high() - footprint.low() < (uint64_t(1) << 40)) {
    const uint64_t span = footprint.high() - footprint.low();
    if (!hint || !hint->contains(footprint.low(), span)) hint = launch.memory->find(footprint.low(), span);
    if (usable(hint)) {
      enter_global(w, op, *hint, footprint, access, stored);
      return exec;
    }
  }
  uint64_t allowed = 0;
  for (uint64_t lanes = exec; lanes != 0; lanes &= lanes - 1) {
    const uint64_t lane = lanes & (0 - lanes);
    const MemoryBlock *block = launch.memory->find(addresses[low_lane(lane)], bytes);
    if (usable(block))
      enter_global(w, op, *block, Footprint(addresses, lane, bytes), access, stored);
    else if (checks.global_bounds) {
      report_refused(w, op, block, int32_t(low_lane(lane)), addresses[low_lane(lane)], bytes, write);
      continue;
    }
    allowed |= lane;
  }
  return allowed;
}

void WaveChecks::enter_global(Wave &w, const Op &op, const MemoryBlock &block, const Footprint &footprint,
                              const GlobalAccess &access, StoredRows stored) {
  if (checks.uninitialised && block.written) enter_contents(w, op, block, footprint, access);
  if (launch.shadow && block.writable) enter_shadow(w, op, footprint, access, stored);
}

/// Memory refuses an access of a lane, or a scalar one (lane -1).
void WaveChecks::report_refused(Wave &w, const Op &op, const MemoryBlock *block, int32_t lane,
                                uint64_t address, uint32_t bytes, bool write) {
  const ReportKind kind = !block                   ? ReportKind::global_out_of_bounds
                          : block->missing_service ? ReportKind::not_emulated
                          : block->foreign         ? ReportKind::no_peer_access
                          : block->freed           ? ReportKind::global_freed
                                                   : ReportKind::global_read_only;
  report(w, op, kind, lane, address, std::nullopt, [&] {
    if (kind == ReportKind::not_emulated) return std::string(block->missing_service);
    std::string text = std::string(write ? "stores " : "loads ") + std::to_string(bytes) + " bytes at " +
                       support::hex(address);
    if (kind == ReportKind::no_peer_access) return text + ", memory of a device without peer access";
    if (kind == ReportKind::global_freed) return text + ", in a block that was freed";
    if (kind == ReportKind::global_read_only) return text + ", which kernels may only read";
    const MemoryBlock *near = lane < 0 ? nullptr : launch.memory->nearest(address);
    if (!near) return text + ", in no allocation";
    const bool before = address < near->address;
    text += ", " + std::to_string(before ? near->address - address : address - near->address);
    return text + (before ? " bytes before" : " bytes after the start of") + " a block of " +
           std::to_string(near->bytes) + " bytes";
  });
}

/// Looks for lanes that store different values to one byte.
void WaveChecks::compare_lanes(Wave &w, const Op &op, const uint64_t *addresses, uint64_t lanes,
                               uint32_t bytes, StoredRows stored) {
  if (!checks.lane_stores || !stored.rows) return;
  const auto found = find_different_stores(addresses, lanes, bytes, stored);
  if (!found) return;
  report(w, op, ReportKind::lanes_store_different, int32_t(found->lane), found->address, std::nullopt, [&] {
    return "stores another value at " + support::hex(found->address) + " than lane " +
           std::to_string(found->other) + " does: either may stay";
  });
}

//===--- Contents ---------------------------------------------------------------------------------------===//

void WaveChecks::enter_contents(Wave &w, const Op &op, const MemoryBlock &block, const Footprint &footprint,
                                const GlobalAccess &access) {
  if (access.load && !all_written(block, footprint.parts())) {
    for (uint64_t lanes = footprint.active(); lanes != 0; lanes &= lanes - 1)
      enter_undefined(w, op, block, low_lane(lanes), footprint.address(low_lane(lanes)),
                      footprint.bytes_per_lane(), access);
  } else if (access.store) {
    mark_all_written(block, footprint.parts());
  }
}

/// Looks for bytes that were never written, in the order of the lanes.
void WaveChecks::enter_undefined(Wave &w, const Op &op, const MemoryBlock &block, uint32_t lane,
                                 uint64_t address, uint32_t bytes, const GlobalAccess &access) {
  if (!is_written(block, address, bytes)) {
    if (access.store) {
      report(w, op, ReportKind::memory_uninitialised, int32_t(lane), address, std::nullopt, [&] {
        return "combines with " + std::to_string(bytes) + " bytes at " + support::hex(address) +
               ", which were never written";
      });
    } else {
      if (!loaded.any) loaded.rows.fill(0);
      loaded.any = true;
      for (uint32_t at = 0; at < bytes; at += 4)
        if (access.scalar) {
          for (uint32_t i = 0; i < std::min(4u, bytes - at); ++i)
            if (!is_written(block, address + at + i, 1)) loaded.rows[at / 4] |= uint64_t(0xff) << 8 * i;
        } else if (!is_written(block, address + at, std::min(4u, bytes - at))) {
          loaded.rows[at / 4] |= uint64_t(1) << lane;
        }
    }
  }
  if (access.store) mark_written(block, address, bytes);
}

void WaveChecks::spread_undefined(uint32_t rows) {
  if (!loaded.any) return;
  uint64_t any = 0;
  for (uint64_t lanes : loaded.rows)
    any |= lanes;
  std::fill_n(loaded.rows.begin(), rows, any);
}

//===--- Other waves ------------------------------------------------------------------------------------===//

void WaveChecks::settle_order() {
  uint32_t scalar_done = order.scalar_now();
  for (size_t i = 0; i < lgkm_queue.size(); ++i)
    if (lgkm_queue[i].kind == AsyncKind::scalar_load)
      scalar_done = std::min(scalar_done, lgkm_queue[i].moment - 1);
  order.set_done(vector_queue.size() == 0 ? order.now() : vector_queue[0].moment - 1, scalar_done);
}

void WaveChecks::enter_shadow(Wave &w, const Op &op, const Footprint &footprint, const GlobalAccess &access,
                              StoredRows stored) {
  const uint32_t when = (access.scalar ? order.scalar_now() : order.now()) + 1;
  const GlobalConflict conflict = launch.shadow->enter(pages, order, when, footprint, access, stored);
  if (conflict.order != AccessOrder::before)
    report_conflict(w, op, conflict, footprint.address(conflict.lane), access);
  if (!access.atomic) return;
  if (access.load && (!access.store || op.memory.return_old))
    acquiring.insert(acquiring.end(), footprint.parts().begin(), footprint.parts().end());
  if (access.store && launch.atomics) order.release(*launch.atomics, footprint.parts());
}

void WaveChecks::report_conflict(Wave &w, const Op &op, const GlobalConflict &conflict, uint64_t address,
                                 const GlobalAccess &access) {
  const bool race = conflict.order == AccessOrder::none;
  const ReportKind kind = conflict.equal ? ReportKind::global_equal_stores
                          : race         ? ReportKind::global_race
                                         : ReportKind::stale_cache;
  if (!(conflict.equal ? checks.global_equal_stores : race ? checks.global_races : checks.stale_caches))
    return;
  const uint32_t waves = w.workgroup->waves;
  report(w, op, kind, int32_t(conflict.lane), address, LdsOther{conflict.op, conflict.wave % waves}, [&] {
    const std::string text = conflicting_accesses(
        access.store, address, conflict.wave % waves,
        order.same_workgroup(conflict.wave) ? std::nullopt : std::optional(conflict.wave / waves),
        conflict.with_store);
    switch (conflict.order) {
    case AccessOrder::not_written_back:
      return text + ": that workgroup's cache may still hold the store, because no buffer_wbl2 sc1 "
                    "precedes the atomic that orders the two";
    case AccessOrder::not_invalidated:
      return text + ": the caches here may hold what was there before, because no buffer_inv sc1 "
                    "follows the atomic that orders the two";
    default:
      return text + ": nothing orders the two" + (conflict.equal ? ", which store the same value" : "");
    }
  });
}

void report_loads_at_atomics(const LaunchChecks &launch, std::array<uint32_t, 3> grid, uint32_t waves) {
  if (!launch.shadow || !launch.options->checks.global_races) return;
  const Consequence consequence =
      consequence_of(ReportKind::global_race, HazardLevel::required, *launch.options);
  for (const LoadAndAtomic &race : launch.shadow->first_reads().races()) {
    const uint32_t number = race.wave / waves;
    const bool same_workgroup = number == race.other_wave / waves;
    Finding finding;
    finding.rule.kind = ReportKind::global_race;
    finding.rule.fails = consequence.fails;
    finding.rule.goes_on = consequence.goes_on;
    finding.op = race.op;
    finding.workgroup = {number % grid[0], number / grid[0] % grid[1], number / grid[0] / grid[1]};
    finding.wave = race.wave % waves;
    finding.lane = int32_t(race.lane);
    finding.address = race.address;
    finding.other_op = race.other_op;
    finding.other_wave = race.other_wave % waves;
    finding.message =
        conflicting_accesses(!race.load_is_later, race.address, finding.other_wave,
                             same_workgroup ? std::nullopt : std::optional(race.other_wave / waves),
                             race.load_is_later) +
        ": nothing orders the two";
    launch.sink->add_at_end(finding, race.count);
  }
}

void WaveChecks::write_back(Wave &w, const Op &op) {
  if (launch.shadow && op.memory.sc1) {
    settle_order();
    order.write_back();
  }
  issue(w, new_operation(w, op, AsyncKind::store));
}

void WaveChecks::invalidate(const Op &op) {
  if (!launch.shadow || !op.memory.sc1) return;
  for (size_t i = 0; i < vector_queue.size(); ++i)
    if (vector_queue[i].acquires) return; // the value it reads may be older than this
  order.invalidate();
}

namespace {

/// A resource is identified by its number, which is not the address of memory.
LinePart place_of_resource(uint32_t resource) {
  return {resource / line_dwords, uint64_t(1) << resource % line_dwords, whole_dword};
}

} // namespace

void WaveChecks::reach_global_barrier(uint32_t resource) {
  if (!launch.shadow) return;
  settle_order();
  const LinePart part = place_of_resource(resource);
  order.release(*launch.atomics, {&part, 1});
}

void WaveChecks::pass_global_barrier(uint32_t resource) {
  if (launch.shadow) order.acquire_at_barrier(*launch.atomics, place_of_resource(resource));
}

void WaveChecks::meet(std::span<WaveChecks *const> waves) {
  if (waves.empty() || !waves[0]->launch.shadow) return;
  std::vector<WaveOrder *> orders;
  for (WaveChecks *wave : waves) {
    wave->settle_order();
    orders.push_back(&wave->order);
  }
  WaveOrder::meet(orders);
}

//===--- Scalar memory ----------------------------------------------------------------------------------===//

bool WaveChecks::check_scalar(Wave &w, const Op &op, uint64_t address, uint32_t bytes, bool write) {
  const bool allowed = is_allowed(w, op, address, bytes, write);
  if (allowed) watch(op, &address, 1, bytes, write);
  if (allowed && followed) followed->access_memory(op, &address, 1, bytes, write);
  return allowed;
}

bool WaveChecks::is_allowed(Wave &w, const Op &op, uint64_t address, uint32_t bytes, bool write) {
  if (!looks_at_memory) return true;
  const MemoryBlock *&hint = last_block[op.index];
  if (!hint || !hint->contains(address, bytes)) hint = launch.memory->find(address, bytes);
  if (hint && !hint->freed && (hint->writable || !write)) {
    const Role role = launch.ops->infos[op.index].role();
    const GlobalAccess access{!write || combines_with_memory(role), write, is_atomic(role), true, op.index,
                              role == Role::atomic_compare};
    if (launch.shadow && access.atomic) settle_order();
    enter_global(w, op, *hint, Footprint(&address, 1, bytes), access, {});
    return true;
  }
  if (!checks.global_bounds) return true;
  report_refused(w, op, hint, -1, address, bytes, write);
  return false;
}

} // namespace sluice::emulator

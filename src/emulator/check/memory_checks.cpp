//===- memory_checks.cpp - bounds of memory and LDS, and races ------------------------------------------===//
#include <algorithm>
#include <unordered_map>

#include "emulator/check/wave_checks.h"
#include "support/hex.h"

namespace sluice::emulator {

namespace {

bool overlaps(uint32_t a, uint32_t a_bytes, uint32_t b, uint32_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

} // namespace

void WaveChecks::watch(const Op &op, const uint64_t *addresses, uint64_t lanes, uint32_t bytes, bool write) {
  if (launch.watch == nullptr) return;
  const bool combines = combines_with_memory(launch.ops->infos[op.index].role());
  launch.watch->enter(addresses, lanes, bytes, !write || combines, write);
}

uint64_t WaveChecks::check_global(Wave &w, const Op &op, const uint64_t *addresses, uint64_t exec,
                                  uint32_t bytes, bool write) {
  const uint64_t allowed = allowed_lanes(w, op, addresses, exec, bytes, write);
  watch(op, addresses, allowed, bytes, write);
  return allowed;
}

uint64_t WaveChecks::allowed_lanes(Wave &w, const Op &op, const uint64_t *addresses, uint64_t exec,
                                   uint32_t bytes, bool write) {
  if ((!checks.global_bounds && !checks.uninitialised && !launch.shadow) || exec == 0) return exec;
  const uint64_t first = addresses[low_lane(exec)];
  uint64_t low = first;
  uint64_t high = first;
  for (uint32_t i = 0; i < wave_lanes; ++i) {
    const uint64_t address = (exec >> i & 1) != 0 ? addresses[i] : first;
    low = std::min(low, address);
    high = std::max(high, address);
  }
  const MemoryBlock *&hint = last_block[op.index];
  const OpInfo &info = launch.ops->infos[op.index];
  const bool atomic = info.is_atomic();
  const GlobalAccess access{!write || combines_with_memory(info.role()), write, atomic || op.memory.sc1,
                            false, op.index};
  auto enter = [&](const MemoryBlock *block, uint64_t lanes) {
    const bool tracks_contents = checks.uninitialised && block->written;
    for (uint64_t left = tracks_contents ? lanes : 0; left != 0; left &= left - 1)
      enter_contents(w, op, *block, low_lane(left), addresses[low_lane(left)], bytes, access);
    if (launch.shadow && block->writable) enter_shadow(w, op, addresses, lanes, bytes, access);
  };
  if (launch.shadow && access.atomic) settle_order();
  auto usable = [&](const MemoryBlock *block) {
    return block && !block->freed && (block->writable || !write);
  };
  if (high - low < (uint64_t(1) << 40)) {
    if (!hint || !hint->contains(low, high - low + bytes))
      hint = launch.memory->find(low, high - low + bytes);
    if (usable(hint)) {
      enter(hint, exec);
      return exec;
    }
  }
  uint64_t allowed = 0;
  for (uint64_t lanes = exec; lanes != 0; lanes &= lanes - 1) {
    const uint32_t lane = low_lane(lanes);
    const uint64_t address = addresses[lane];
    const MemoryBlock *block = launch.memory->find(address, bytes);
    if (usable(block)) {
      allowed |= uint64_t(1) << lane;
      enter(block, uint64_t(1) << lane);
      continue;
    }
    if (!checks.global_bounds) {
      allowed |= uint64_t(1) << lane;
      continue;
    }
    const ReportKind kind = !block           ? ReportKind::global_out_of_bounds
                            : block->foreign ? ReportKind::no_peer_access
                            : block->freed   ? ReportKind::global_freed
                                             : ReportKind::global_read_only;
    report(w, op, kind, int32_t(lane), address, std::nullopt, [&] {
      std::string text = std::string(write ? "stores " : "loads ") + std::to_string(bytes) + " bytes at " +
                         support::hex(address);
      if (kind == ReportKind::no_peer_access) return text + ", memory of a device without peer access";
      if (kind == ReportKind::global_freed) return text + ", in a block that was freed";
      if (kind == ReportKind::global_read_only) return text + ", which kernels may only read";
      const MemoryBlock *near = launch.memory->nearest(address);
      if (!near) return text + ", in no allocation";
      const bool before = address < near->address;
      text += ", " + std::to_string(before ? near->address - address : address - near->address);
      return text + (before ? " bytes before" : " bytes after the start of") + " a block of " +
             std::to_string(near->bytes) + " bytes";
    });
  }
  return allowed;
}

//===--- Contents ---------------------------------------------------------------------------------------===//

void WaveChecks::enter_contents(Wave &w, const Op &op, const MemoryBlock &block, uint32_t lane,
                                uint64_t address, uint32_t bytes, const GlobalAccess &access) {
  if (access.load && !is_written(block, address, bytes)) {
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

//===--- Other workgroups -------------------------------------------------------------------------------===//

void WaveChecks::settle_order() {
  uint32_t scalar_done = order.scalar_now();
  for (size_t i = 0; i < lgkm_queue.size(); ++i)
    if (lgkm_queue[i].kind == AsyncKind::scalar_load)
      scalar_done = std::min(scalar_done, lgkm_queue[i].moment - 1);
  order.set_done(vector_queue.size() == 0 ? order.now() : vector_queue[0].moment - 1, scalar_done);
}

void WaveChecks::enter_shadow(Wave &w, const Op &op, const uint64_t *addresses, uint64_t lanes,
                              uint32_t bytes, const GlobalAccess &access) {
  const uint32_t when = (access.scalar ? order.scalar_now() : order.now()) + 1;
  const GlobalConflict conflict = launch.shadow->enter(pages, order, when, addresses, lanes, bytes, access);
  if (conflict.order != AccessOrder::before)
    report_conflict(w, op, conflict.lane, addresses[conflict.lane], access, conflict);
  if (!access.atomic) return;
  const bool acquires = access.load && (!access.store || op.memory.return_old);
  std::array<uint64_t, wave_lanes> touched;
  uint32_t count = 0;
  for (; lanes != 0; lanes &= lanes - 1) {
    const uint64_t address = addresses[low_lane(lanes)];
    touched[count++] = address;
    if (acquires && (acquiring.empty() || acquiring.back() != address)) acquiring.push_back(address);
  }
  if (access.store) order.release(*launch.atomics, {touched.data(), count});
}

void WaveChecks::report_conflict(Wave &w, const Op &op, uint32_t lane, uint64_t address,
                                 const GlobalAccess &access, const GlobalConflict &conflict) {
  const bool race = conflict.order == AccessOrder::none;
  if (race ? !checks.global_races : !checks.stale_caches) return;
  const uint32_t waves = w.workgroup->waves;
  report(w, op, race ? ReportKind::global_race : ReportKind::stale_cache, int32_t(lane), address,
         LdsOther{conflict.op, conflict.wave % waves}, [&] {
           const std::string text = std::string(access.store ? "writes " : "reads ") + support::hex(address) +
                                    ", which wave " + std::to_string(conflict.wave % waves) +
                                    " of workgroup number " + std::to_string(conflict.wave / waves) +
                                    (conflict.with_store ? " writes" : " reads");
           switch (conflict.order) {
           case AccessOrder::not_written_back:
             return text + ": that workgroup's cache may still hold the store, because no buffer_wbl2 sc1 "
                           "precedes the atomic that orders the two";
           case AccessOrder::not_invalidated:
             return text + ": the caches here may hold what was there before, because no buffer_inv sc1 "
                           "follows the atomic that orders the two";
           default:
             return text + ": nothing orders the two";
           }
         });
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

void WaveChecks::count_lds_operation(Wave &w, const Op &op) {
  issue(w, new_operation(w, op, AsyncKind::lds_write));
}

// A resource is identified by its number, which is not a memory address.
void WaveChecks::reach_global_barrier(uint32_t resource) {
  if (!launch.shadow) return;
  settle_order();
  const uint64_t address = resource;
  order.release(*launch.atomics, {&address, 1});
}

void WaveChecks::pass_global_barrier(uint32_t resource) {
  if (launch.shadow) order.acquire_at_barrier(*launch.atomics, resource);
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
  return allowed;
}

bool WaveChecks::is_allowed(Wave &w, const Op &op, uint64_t address, uint32_t bytes, bool write) {
  if (!checks.global_bounds && !checks.uninitialised && !launch.shadow) return true;
  const MemoryBlock *&hint = last_block[op.index];
  if (!hint || !hint->contains(address, bytes)) hint = launch.memory->find(address, bytes);
  if (hint && !hint->freed && (hint->writable || !write)) {
    const Role role = launch.ops->infos[op.index].role();
    const GlobalAccess access{!write || combines_with_memory(role), write, is_atomic(role), true, op.index};
    if (launch.shadow && access.atomic) settle_order();
    if (checks.uninitialised && hint->written) enter_contents(w, op, *hint, 0, address, bytes, access);
    if (launch.shadow && hint->writable) enter_shadow(w, op, &address, 1, bytes, access);
    return true;
  }
  if (!checks.global_bounds) return true;
  const ReportKind kind = !hint           ? ReportKind::global_out_of_bounds
                          : hint->foreign ? ReportKind::no_peer_access
                          : hint->freed   ? ReportKind::global_freed
                                          : ReportKind::global_read_only;
  report(w, op, kind, -1, address, std::nullopt, [&] {
    return std::string(write ? "stores " : "loads ") + std::to_string(bytes) + " bytes at " +
           support::hex(address) +
           (!hint           ? ", in no allocation"
            : hint->foreign ? ", memory of a device without peer access"
            : hint->freed   ? ", in a block that was freed"
                            : ", which kernels may only read");
  });
  return false;
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
  const std::string text = std::string(verb) + " LDS byte " + std::to_string(address) + ", which wave " +
                           std::to_string(other.wave);
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
      return text + (other.wave == w.id ? " reads: the read was not waited for with lgkmcnt"
                                        : " reads: no wait and barrier in between");
    default:
      return text +
             (other.wave == w.id ? " writes: the write was not waited for with lgkmcnt"
                                 : " wrote: no wait and barrier in between") +
             use;
    }
  });
}

void WaveChecks::enter_lds(Wave &w, const Op &op, LdsAccess access, const uint32_t *addresses, uint64_t lanes,
                           uint32_t bytes, StoredRows stored, uint32_t first_row) {
  if (!enters_lds) return;
  const bool in_order = launch.ops->infos[op.index].kind == OpKind::lds;
  lds.begin_instruction();
  const uint64_t all = lanes;
  bool any_same_store = false;
  for (; lanes != 0; lanes &= lanes - 1) {
    const uint32_t lane = low_lane(lanes);
    const uint32_t address = addresses[lane];
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
    else if (conflict != LdsConflict::none) [[unlikely]]
      report_lds(w, op, conflict, access == LdsAccess::write ? "writes" : "combines with", lane, address,
                 other);
  }
  if (any_same_store && checks.lane_stores) check_lane_stores(w, op, addresses, all, bytes, stored);
}

/// Compares the bytes that lanes of one instruction store to the same places.
void WaveChecks::check_lane_stores(Wave &w, const Op &op, const uint32_t *addresses, uint64_t lanes,
                                   uint32_t bytes, StoredRows stored) {
  struct Byte {
    uint8_t value;
    uint32_t lane;
  };
  std::unordered_map<uint32_t, Byte> bytes_of;
  for (; lanes != 0; lanes &= lanes - 1) {
    const uint32_t lane = low_lane(lanes);
    for (uint32_t i = 0; i < bytes; ++i) {
      const auto value = uint8_t(stored.rows[i / 4 * wave_lanes + lane] >> stored.shift >> 8 * (i % 4));
      const auto [earlier, is_first] = bytes_of.try_emplace(addresses[lane] + i, Byte{value, lane});
      if (is_first || earlier->second.value == value) continue;
      report(w, op, ReportKind::lanes_store_different, int32_t(lane), addresses[lane] + i, std::nullopt, [&] {
        return "stores to LDS byte " + std::to_string(addresses[lane] + i) + ", where lane " +
               std::to_string(earlier->second.lane) +
               " stores another value: either may be the one that remains";
      });
      return;
    }
  }
}

/// A copy and the wave's own earlier LDS instructions take different paths: only a wait orders them.
const AsyncOperation *WaveChecks::own_access_in_flight(const uint32_t *addresses, uint64_t lanes,
                                                       uint32_t bytes, uint32_t &lane) const {
  uint32_t low = ~0u;
  uint32_t high = 0;
  for (uint64_t ours = lanes; ours != 0; ours &= ours - 1) {
    low = std::min(low, addresses[low_lane(ours)]);
    high = std::max(high, addresses[low_lane(ours)] + bytes);
  }
  for (const AsyncQueue *queue : {&lgkm_queue, &vector_queue})
    for (size_t i = 0; i < queue->size(); ++i) {
      const AsyncOperation &operation = (*queue)[i];
      if (operation.lds_parts == 0 || operation.lds_high <= low || operation.lds_low >= high) continue;
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

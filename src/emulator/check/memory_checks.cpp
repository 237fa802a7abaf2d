//===- memory_checks.cpp - bounds of memory and LDS, and races ------------------------------------------===//
#include <algorithm>

#include "emulator/check/wave_checks.h"
#include "emulator/machine/hex.h"

namespace sluice::emulator {

namespace {

bool overlaps(uint32_t a, uint32_t a_bytes, uint32_t b, uint32_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

} // namespace

uint64_t WaveChecks::check_global(Wave &w, const Op &op, const uint64_t *addresses, uint64_t exec,
                                  uint32_t bytes, bool write) {
  if (!checks.global_bounds || exec == 0) return exec;
  const uint64_t first = addresses[low_lane(exec)];
  uint64_t low = first;
  uint64_t high = first;
  for (uint32_t i = 0; i < wave_lanes; ++i) {
    const uint64_t address = (exec >> i & 1) != 0 ? addresses[i] : first;
    low = std::min(low, address);
    high = std::max(high, address);
  }
  const MemoryBlock *&hint = last_block[op.index];
  auto usable = [&](const MemoryBlock *block) {
    return block && !block->freed && (block->writable || !write);
  };
  if (high - low < (uint64_t(1) << 40)) {
    if (!hint || !hint->contains(low, high - low + bytes))
      hint = launch.memory->find(low, high - low + bytes);
    if (usable(hint)) return exec;
  }
  uint64_t allowed = 0;
  for (uint64_t lanes = exec; lanes != 0; lanes &= lanes - 1) {
    const uint32_t lane = low_lane(lanes);
    const uint64_t address = addresses[lane];
    const MemoryBlock *block = launch.memory->find(address, bytes);
    if (usable(block)) {
      allowed |= uint64_t(1) << lane;
      continue;
    }
    const ReportKind kind = !block         ? ReportKind::global_out_of_bounds
                            : block->freed ? ReportKind::global_freed
                                           : ReportKind::global_read_only;
    report(w, op, kind, int32_t(lane), address, std::nullopt, [&] {
      std::string text =
          std::string(write ? "stores " : "loads ") + std::to_string(bytes) + " bytes at " + hex(address);
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

bool WaveChecks::check_scalar(Wave &w, const Op &op, uint64_t address, uint32_t bytes) {
  if (!checks.global_bounds) return true;
  const MemoryBlock *&hint = last_block[op.index];
  if (!hint || !hint->contains(address, bytes)) hint = launch.memory->find(address, bytes);
  if (hint && !hint->freed) return true;
  report(w, op, hint ? ReportKind::global_freed : ReportKind::global_out_of_bounds, -1, address, std::nullopt,
         [&] {
           return "loads " + std::to_string(bytes) + " bytes at " + hex(address) +
                  (hint ? ", in a block that was freed" : ", in no allocation");
         });
  return false;
}

void WaveChecks::report_misaligned(Wave &w, const Op &op, uint32_t lane, uint64_t address,
                                   uint32_t alignment) {
  report(w, op, ReportKind::misaligned, int32_t(lane), address, std::nullopt,
         [&] { return "address " + hex(address) + " is not a multiple of " + std::to_string(alignment); });
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

void WaveChecks::report_lds(Wave &w, const Op &op, LdsConflict conflict, const char *verb, uint32_t lane,
                            uint32_t address, const LdsOther &other) {
  if (conflict == LdsConflict::none) return;
  if (conflict == LdsConflict::uninitialised) {
    if (!checks.uninitialised) return;
    report(w, op, ReportKind::lds_uninitialised, int32_t(lane), address, std::nullopt, [&] {
      return std::string(verb) + " LDS byte " + std::to_string(address) + ", which was never written";
    });
    return;
  }
  if (!checks.lds_races) return;
  report(w, op, ReportKind::lds_race, int32_t(lane), address, other, [&] {
    std::string text = std::string(verb) + " LDS byte " + std::to_string(address) + ", which wave " +
                       std::to_string(other.wave);
    switch (conflict) {
    case LdsConflict::after_copy:
      return text + " is copying into: the copy was not waited for with vmcnt";
    case LdsConflict::after_read:
      return text + (other.wave == w.id ? " reads: the read was not waited for with lgkmcnt"
                                        : " reads: no wait and barrier in between");
    default:
      return text + (other.wave == w.id ? " writes: the write was not waited for with lgkmcnt"
                                        : " wrote: no wait and barrier in between");
    }
  });
}

void WaveChecks::enter_lds(Wave &w, const Op &op, LdsAccess access, const uint32_t *addresses, uint64_t lanes,
                           uint32_t bytes) {
  if (!checks.lds_races && !checks.uninitialised) return;
  LdsOther other{};
  for (; lanes != 0; lanes &= lanes - 1) {
    const uint32_t lane = low_lane(lanes);
    const uint32_t address = addresses[lane];
    const LdsConflict conflict = access == LdsAccess::read ? lds.read(address, bytes, wave, op.index, other)
                                 : access == LdsAccess::write
                                     ? lds.write(address, bytes, wave, op.index, other)
                                     : lds.atomic(address, bytes, wave, op.index, other);
    if (conflict != LdsConflict::none) [[unlikely]]
      report_lds(w, op, conflict, access == LdsAccess::write ? "writes" : "reads", lane, address, other);
  }
}

/// A copy and the wave's own earlier LDS instructions take different paths: only a wait orders them.
bool WaveChecks::own_access_in_flight(const uint32_t *addresses, uint64_t lanes, uint32_t bytes,
                                      uint32_t &lane, LdsOther &other) const {
  uint32_t low = ~0u;
  uint32_t high = 0;
  for (uint64_t ours = lanes; ours != 0 && lgkm_queue.size() != 0; ours &= ours - 1) {
    low = std::min(low, addresses[low_lane(ours)]);
    high = std::max(high, addresses[low_lane(ours)] + bytes);
  }
  for (size_t i = 0; i < lgkm_queue.size(); ++i) {
    const AsyncOperation &operation = lgkm_queue[i];
    if (operation.lds_parts == 0 || operation.lds_high <= low || operation.lds_low >= high) continue;
    for (uint32_t part = 0; part < operation.lds_parts; ++part)
      for (uint64_t others = operation.in_bounds; others != 0; others &= others - 1) {
        const uint32_t theirs = operation.lds_address[part][low_lane(others)];
        for (uint64_t ours = lanes; ours != 0; ours &= ours - 1) {
          lane = low_lane(ours);
          if (!overlaps(addresses[lane], bytes, theirs, operation.lds_bytes)) continue;
          other = {operation.op, wave};
          return true;
        }
      }
  }
  return false;
}

void WaveChecks::begin_copy(Wave &w, const Op &op, const uint32_t *addresses, uint64_t lanes) {
  if (!checks.lds_races && !checks.uninitialised) return;
  LdsOther other{};
  uint32_t at = 0;
  if (checks.lds_races && own_access_in_flight(addresses, lanes, 4, at, other)) {
    const bool is_write = launch.ops->infos[other.op].writes_begin == launch.ops->infos[other.op].writes_end;
    report_lds(w, op, is_write ? LdsConflict::after_write : LdsConflict::after_read, "copies into", at,
               addresses[at], other);
  }
  for (; lanes != 0; lanes &= lanes - 1) {
    const uint32_t lane = low_lane(lanes);
    const LdsConflict conflict = lds.begin_copy(addresses[lane], 4, wave, op.index, other);
    if (conflict != LdsConflict::none) [[unlikely]]
      report_lds(w, op, conflict, "copies into", lane, addresses[lane], other);
  }
}

} // namespace sluice::emulator

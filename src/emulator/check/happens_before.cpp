//===- happens_before.cpp - the order of accesses of different workgroups -------------------------------===//
#include "emulator/check/happens_before.h"

namespace sluice::emulator {

void join(KnownWaves &to, const KnownWaves &from) {
  for (const auto &[wave, moments] : from)
    to[wave].join(moments);
}

//===--- ReleasedAtomics --------------------------------------------------------------------------------===//

void ReleasedAtomics::release(uint64_t address, uint32_t wave, uint64_t version, const KnownWaves &known) {
  Shard &shard = shard_of(address);
  const std::lock_guard lock(shard.mutex);
  Variable &variable = shard.variables[address];
  uint64_t &last = variable.versions[wave];
  if (last == version) return;
  last = version;
  join(variable.known, known);
}

void ReleasedAtomics::acquire(uint64_t address, KnownWaves &known) {
  Shard &shard = shard_of(address);
  const std::lock_guard lock(shard.mutex);
  const auto variable = shard.variables.find(address);
  if (variable != shard.variables.end()) join(known, variable->second.known);
}

//===--- WaveOrder --------------------------------------------------------------------------------------===//

void WaveOrder::start(uint32_t first_wave, uint32_t wave, uint32_t wave_count) {
  first = first_wave;
  own = wave;
  waves = wave_count;
  moment = scalar_moment = write_back_issued = 0;
  version = 1;
  clean = false;
  group.fill({});
  others.clear();
  arrived.clear();
}

void WaveOrder::set_done(uint32_t until, uint32_t scalar_until) {
  Moments &mine = group[own];
  // A write-back carries what was stored before it. It is itself an access to wait for.
  const uint32_t back = until >= write_back_issued ? write_back_issued : mine.written_back;
  if (mine.done == until && mine.written_back == back && mine.scalar_done == scalar_until) return;
  mine = {until, back, scalar_until};
  ++version;
}

void WaveOrder::write_back() {
  write_back_issued = moment + 1;
  // Stores of the workgroup's other waves, as far as this wave knows that they are done.
  for (uint32_t wave = 0; wave < waves; ++wave)
    if (wave != own) group[wave].written_back = group[wave].done;
  ++version;
}

void WaveOrder::release(ReleasedAtomics &atomics, std::span<const uint64_t> addresses) {
  KnownWaves known = others;
  for (uint32_t wave = 0; wave < waves; ++wave)
    if (!group[wave].none()) known[first + wave] = group[wave];
  if (known.empty()) return;
  for (uint64_t address : addresses)
    atomics.release(address, number(), version, known);
}

void WaveOrder::acquire(ReleasedAtomics &atomics, uint64_t address) {
  atomics.acquire(address, arrived);
}

void WaveOrder::acquire_at_barrier(ReleasedAtomics &atomics, uint64_t address) {
  atomics.acquire(address, clean ? others : arrived);
  ++version;
}

void WaveOrder::invalidate() {
  clean = true;
  if (arrived.empty()) return;
  join(others, arrived);
  arrived.clear();
  ++version;
}

void WaveOrder::meet(std::span<WaveOrder *const> met) {
  std::array<Moments, most_waves> all{};
  bool informed = false; // knows of other workgroups
  bool all_clean = true;
  for (const WaveOrder *wave : met) {
    for (uint32_t i = 0; i < wave->waves; ++i)
      all[i].join(wave->group[i]);
    informed = informed || !wave->others.empty() || !wave->arrived.empty();
    all_clean = all_clean && wave->clean;
  }
  KnownWaves known;
  KnownWaves fresh;
  for (const WaveOrder *wave : met) {
    if (!informed) break;
    join(known, wave->others);
    join(fresh, wave->arrived);
  }
  for (WaveOrder *wave : met) {
    wave->group = all;
    wave->clean = all_clean;
    if (informed) {
      wave->others = known;
      wave->arrived = fresh;
    }
    ++wave->version;
  }
}

AccessOrder WaveOrder::order_of(const EarlierAccess &earlier, bool past_caches) const {
  auto moments_of = [&](const KnownWaves &known) {
    const auto found = known.find(earlier.wave);
    return found == known.end() ? Moments{} : found->second;
  };
  const Moments seen = moments_of(others);
  Moments all = seen;
  all.join(moments_of(arrived));
  const uint32_t when = earlier.moment;
  if (earlier.scalar) return all.scalar_done < when ? AccessOrder::none : AccessOrder::before;
  if (all.done < when) return AccessOrder::none;
  if (!earlier.store) return AccessOrder::before;
  if (!earlier.written_through && all.written_back < when) return AccessOrder::not_written_back;
  if (!past_caches && (earlier.written_through ? seen.done : seen.written_back) < when)
    return AccessOrder::not_invalidated;
  return AccessOrder::before;
}

} // namespace sluice::emulator

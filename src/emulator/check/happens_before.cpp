//===- happens_before.cpp - the order of accesses of different waves ------------------------------------===//
#include "emulator/check/happens_before.h"

#include <algorithm>

namespace sluice::emulator {

void WaveOrder::start(uint32_t first_wave, uint32_t wave, uint32_t wave_count) {
  first = first_wave;
  own = wave;
  waves = wave_count;
  barriers = moment = scalar_moment = write_back_issued = 0;
  version = 1;
  clean = false;
  group.fill({});
  being_written_back.fill(0);
  others.clear();
  arrived.clear();
  published = {};
  published_version = 0;
}

void WaveOrder::set_done(uint32_t until, uint32_t scalar_until) {
  Moments mine = group[own];
  mine.done = until;
  mine.scalar_done = scalar_until;
  if (waves > 1) mine.issued = moment; // only this workgroup's waves can rely on that
  // A write-back carries what was stored before it. It is itself an access to wait for.
  if (write_back_issued != 0 && until >= write_back_issued) {
    mine.written_back = std::max(mine.written_back, being_written_back[own]);
    for (uint32_t wave = 0; wave < waves; ++wave) {
      if (wave == own) continue;
      group[wave].written_back = std::max(group[wave].written_back, being_written_back[wave]);
      group[wave].done = std::max(group[wave].done, being_written_back[wave]);
    }
    write_back_issued = 0;
    ++version;
  }
  if (group[own] == mine) return;
  group[own] = mine;
  ++version;
}

void WaveOrder::write_back() {
  write_back_issued = moment + 1;
  // It comes after what this wave knows that the workgroup's others have issued: they share a compute unit.
  for (uint32_t wave = 0; wave < waves; ++wave)
    being_written_back[wave] = wave == own ? write_back_issued : group[wave].issued;
}

void WaveOrder::release(ReleasedAtomics &atomics, std::span<const LinePart> parts) {
  if (published_version != version) {
    published_version = version;
    const bool any = !std::all_of(group.begin(), group.begin() + waves, [](Moments m) { return m.none(); });
    if (any || !others.empty())
      published =
          Shared<PublishedClock>::make(PublishedClock{others, first, {group.begin(), group.begin() + waves}});
  }
  if (published) atomics.release(parts, number(), published);
}

void WaveOrder::acquire(ReleasedAtomics &atomics, const LinePart &part) {
  atomics.acquire(part, arrived);
}

void WaveOrder::acquire_at_barrier(ReleasedAtomics &atomics, const LinePart &part) {
  atomics.acquire(part, clean ? others : arrived);
  ++version;
}

void WaveOrder::invalidate() {
  clean = true;
  if (arrived.empty()) return;
  others.join(arrived);
  arrived.clear();
  ++version;
}

void WaveOrder::meet(std::span<WaveOrder *const> met) {
  std::array<Moments, most_waves> all{};
  VectorClock known;
  VectorClock fresh;
  bool all_clean = true;
  for (const WaveOrder *wave : met) {
    for (uint32_t i = 0; i < wave->waves; ++i)
      all[i].join(wave->group[i]);
    known.join(wave->others);
    fresh.join(wave->arrived);
    all_clean = all_clean && wave->clean;
  }
  for (WaveOrder *wave : met) {
    wave->group = all;
    wave->clean = all_clean;
    wave->others = known;
    wave->arrived = fresh;
    ++wave->barriers;
    ++wave->version;
  }
}

bool WaveOrder::has_heard_from(uint32_t wave) const {
  return std::max(others.of(wave).issued, arrived.of(wave).issued) > group[wave - first].issued;
}

AccessOrder WaveOrder::order_in_workgroup(const EarlierAccess &earlier, LaterAccess later) const {
  if (earlier.wave == number()) return AccessOrder::before;
  Moments known = group[earlier.wave - first];
  known.join(others.of(earlier.wave));
  known.join(arrived.of(earlier.wave));
  const uint32_t until = earlier.scalar ? known.scalar_done : later.scalar ? known.done : known.issued;
  return until < earlier.moment ? AccessOrder::none : AccessOrder::before;
}

AccessOrder WaveOrder::order_of(const EarlierAccess &earlier, LaterAccess later) const {
  if (same_workgroup(earlier.wave)) return order_in_workgroup(earlier, later);
  const Moments seen = others.of(earlier.wave);
  Moments all = seen;
  all.join(arrived.of(earlier.wave));
  const uint32_t when = earlier.moment;
  if (earlier.scalar) return all.scalar_done < when ? AccessOrder::none : AccessOrder::before;
  if (all.done < when) return AccessOrder::none;
  if (!earlier.store) return AccessOrder::before;
  if (!earlier.written_through && all.written_back < when) return AccessOrder::not_written_back;
  if (!later.past_caches && (earlier.written_through ? seen.done : seen.written_back) < when)
    return AccessOrder::not_invalidated;
  return AccessOrder::before;
}

} // namespace sluice::emulator

//===- released_atomics.cpp - what waves knew when they released at an atomic ---------------------------===//
#include "emulator/check/released_atomics.h"

#include <algorithm>
#include <bit>

namespace sluice::emulator {

namespace {

// Releases of different dwords of a line that are kept apart: as long as nobody acquires there, and when
// somebody does.
constexpr size_t most_noted = 512;
constexpr size_t most_acquired = 80;

} // namespace

void PublishedClock::join_into(VectorClock &clock) const {
  clock.join(others);
  for (uint32_t wave = 0; wave < group.size(); ++wave)
    if (!group[wave].none()) clock.join(first_wave + wave, group[wave]);
}

void ReleasedAtomics::release(std::span<const LinePart> parts, uint32_t wave,
                              const Shared<PublishedClock> &clock) {
  for (const LinePart &part : parts) {
    Shard &shard = shard_of(part.line);
    const std::lock_guard lock(shard.mutex);
    Line &line = shard.lines[part.line];
    bool noted = false;
    for (Release &earlier : line) {
      if (earlier.wave != wave) continue;
      if (earlier.published == clock) {
        earlier.dwords |= part.dwords;
        noted = true;
      } else {
        earlier.dwords &= ~part.dwords;
      }
    }
    std::erase_if(line, [](const Release &release) { return release.dwords == 0; });
    if (!noted) line.push_back({part.dwords, wave, clock, {}});
    if (line.size() > most_noted) split_by_dword(line);
  }
}

void ReleasedAtomics::acquire(const LinePart &part, VectorClock &known) {
  Shard &shard = shard_of(part.line);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.lines.find(part.line);
  if (found == shard.lines.end()) return;
  Line &line = found->second;
  if (line.size() > 1) merge_equal(line);
  if (line.size() > most_acquired) split_by_dword(line);
  for (const Release &release : line)
    if ((release.dwords & part.dwords) != 0) release.join_into(known);
}

/// Makes one of releases at the same dwords.
void ReleasedAtomics::merge_equal(Line &line) {
  size_t kept = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const auto end = line.begin() + ptrdiff_t(kept);
    const auto same = std::find_if(line.begin(), end,
                                   [&](const Release &release) { return release.dwords == line[i].dwords; });
    if (same == end) {
      if (i != kept) line[kept] = std::move(line[i]);
      ++kept;
      continue;
    }
    if (same->published) {
      same->published->join_into(same->joined);
      same->published = {};
      same->wave = several;
    }
    line[i].join_into(same->joined);
  }
  line.erase(line.begin() + ptrdiff_t(kept), line.end());
}

void ReleasedAtomics::split_by_dword(Line &line) {
  Line split;
  uint64_t left = 0;
  for (const Release &release : line)
    left |= release.dwords;
  for (; left != 0; left &= left - 1) {
    const uint64_t dword = left & (0 - left);
    Release &whole = split.emplace_back(Release{dword, several, {}, {}});
    for (const Release &release : line)
      if ((release.dwords & dword) != 0) release.join_into(whole.joined);
  }
  line = std::move(split);
}

} // namespace sluice::emulator

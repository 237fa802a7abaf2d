//===- vector_clock.cpp - what is known of the accesses of each wave ------------------------------------===//
#include "emulator/check/vector_clock.h"

namespace sluice::emulator {

namespace {

struct Comparison {
  bool first_lacks = false; // the second has later moments
  bool second_lacks = false;
};

template <class Chunk> void compare(const Chunk &first, const Chunk &second, Comparison &result) {
  uint32_t later = 0, earlier = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    const Moments a = first[i], b = second[i];
    later |= uint32_t(b.issued > a.issued) | uint32_t(b.done > a.done) |
             uint32_t(b.written_back > a.written_back) | uint32_t(b.scalar_done > a.scalar_done);
    earlier |= uint32_t(a.issued > b.issued) | uint32_t(a.done > b.done) |
               uint32_t(a.written_back > b.written_back) | uint32_t(a.scalar_done > b.scalar_done);
  }
  result.first_lacks = result.first_lacks || later != 0;
  result.second_lacks = result.second_lacks || earlier != 0;
}

} // namespace

void VectorClock::join(uint32_t wave, Moments moments) {
  Moments joined = of(wave);
  joined.join(moments);
  if (joined == of(wave)) return;
  auto &list = chunks.own();
  if (list.size() <= wave / chunk_waves) list.resize(wave / chunk_waves + 1);
  list[wave / chunk_waves].own()[wave % chunk_waves] = joined;
}

void VectorClock::join(const VectorClock &other) {
  if (!other.chunks || chunks == other.chunks) return;
  if (!chunks) {
    chunks = other.chunks;
    return;
  }
  const auto &theirs = *other.chunks;
  Comparison whole{theirs.size() > chunks->size(), chunks->size() > theirs.size()};
  for (size_t i = 0; i < std::min(chunks->size(), theirs.size()); ++i) {
    if (whole.first_lacks && whole.second_lacks) break;
    const Shared<Chunk> &a = (*chunks)[i];
    const Shared<Chunk> &b = theirs[i];
    if (a == b) continue;
    if (a && b)
      compare(*a, *b, whole);
    else
      (a ? whole.second_lacks : whole.first_lacks) = true;
  }
  if (!whole.first_lacks) return;
  if (!whole.second_lacks) {
    chunks = other.chunks;
    return;
  }
  auto &mine = chunks.own();
  if (mine.size() < theirs.size()) mine.resize(theirs.size());
  for (size_t i = 0; i < theirs.size(); ++i) {
    if (!theirs[i] || mine[i] == theirs[i]) continue;
    Comparison both{!mine[i], false};
    if (mine[i]) compare(*mine[i], *theirs[i], both);
    if (!both.first_lacks) continue;
    if (!both.second_lacks) {
      mine[i] = theirs[i];
      continue;
    }
    Chunk &chunk = mine[i].own();
    for (size_t wave = 0; wave < chunk_waves; ++wave)
      chunk[wave].join((*theirs[i])[wave]);
  }
}

} // namespace sluice::emulator

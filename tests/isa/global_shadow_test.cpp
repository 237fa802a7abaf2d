//===- global_shadow_test.cpp - what the checks of memory remember, against simple models ---------------===//
#include <catch2/catch.hpp>

#include <map>
#include <random>
#include <set>

#include "emulator/check/global_shadow.h"
#include "emulator/isa/op.h"
#include "isa/kernel_fixture.h"

namespace sluice::test {

namespace {

using emulator::AccessOrder;
using emulator::all_lanes;
using emulator::Footprint;
using emulator::GlobalAccess;
using emulator::GlobalConflict;
using emulator::GlobalShadow;
using emulator::LinePart;
using emulator::Moments;
using emulator::PublishedClock;
using emulator::ReleasedAtomics;
using emulator::Shared;
using emulator::StoredRows;
using emulator::VectorClock;
using emulator::wave_lanes;
using emulator::WaveOrder;

using Random = std::mt19937;

std::set<uint64_t> bytes_of(const Footprint &footprint) {
  std::set<uint64_t> bytes;
  for (const LinePart &part : footprint.parts())
    for (uint32_t dword = 0; dword < emulator::line_dwords; ++dword)
      for (uint32_t byte = 0; byte < 4; ++byte)
        if ((part.dwords >> dword & 1) != 0 && (part.bytes >> byte & 1) != 0)
          CHECK(bytes.insert(part.line * emulator::line_bytes + dword * 4 + byte).second);
  return bytes;
}

/// A wave of a workgroup of two waves.
struct TestWave {
  WaveOrder order;
  GlobalShadow::Pages pages;

  TestWave(uint32_t workgroup, uint32_t wave) { order.start(2 * workgroup, wave, 2); }

  GlobalConflict enter(GlobalShadow &shadow, uint64_t address, GlobalAccess access, StoredRows stored = {}) {
    const uint32_t when = (access.scalar ? order.scalar_now() : order.now()) + 1;
    const GlobalConflict found = shadow.enter(pages, order, when, Footprint(&address, 1, 4), access, stored);
    if (access.scalar)
      order.advance_scalar();
    else
      order.advance();
    return found;
  }
  AccessOrder store(GlobalShadow &shadow, uint64_t address) {
    return enter(shadow, address, {.load = false, .store = true}).order;
  }
  AccessOrder load(GlobalShadow &shadow, uint64_t address, bool scalar = false) {
    return enter(shadow, address, {.load = true, .scalar = scalar}).order;
  }
};

void meet(TestWave &a, TestWave &b, uint32_t scalar_done = 0) {
  a.order.set_done(0, scalar_done); // nothing was waited for
  b.order.set_done(0, scalar_done);
  WaveOrder *const waves[] = {&a.order, &b.order};
  WaveOrder::meet(waves);
}

constexpr uint64_t data = 0x10000;
constexpr uint64_t flag = 0x20000;

} // namespace

TEST_CASE("a footprint has each byte that a lane touches", "[isa][order]") {
  Random random(1);
  auto draw = [&](uint64_t below) { return random() % below; };
  for (uint32_t round = 0; round < 2000; ++round) {
    const uint32_t bytes = std::array{1u, 2u, 4u, 8u, 12u, 16u}[draw(6)];
    const uint64_t stride = std::array<uint64_t, 5>{bytes, 0, 4, 256, 1000}[draw(5)];
    const uint64_t base = 0x10000 + draw(600) * (draw(2) ? 4 : 1);
    const uint64_t lanes = draw(3) == 0 ? all_lanes : (uint64_t(random()) << 32 | random()) | 1;
    const bool scattered = draw(3) == 0;
    std::array<uint64_t, wave_lanes> addresses{};
    std::set<uint64_t> expected;
    std::map<uint64_t, uint32_t> first_lane;
    bool overlaps = false;
    for (uint32_t lane = 0; lane < wave_lanes; ++lane) {
      addresses[lane] = scattered ? 0x10000 + draw(5000) * (draw(8) ? 4 : 1) : base + lane * stride;
      if ((lanes >> lane & 1) == 0) continue;
      for (uint32_t i = 0; i < bytes; ++i) {
        overlaps |= !expected.insert(addresses[lane] + i).second;
        first_lane.try_emplace(addresses[lane] + i, lane);
      }
    }
    const Footprint footprint(addresses.data(), lanes, bytes);
    REQUIRE(bytes_of(footprint) == expected);
    REQUIRE(footprint.low() == *expected.begin());
    REQUIRE(footprint.high() == *expected.rbegin() + 1);
    REQUIRE(footprint.overlaps() == overlaps);
    const uint64_t at = *std::next(expected.begin(), ptrdiff_t(draw(expected.size())));
    REQUIRE(footprint.lane_of({at / emulator::line_bytes, uint64_t(1) << at / 4 % emulator::line_dwords,
                               1u << at % 4}) == first_lane.at(at));
  }
}

TEST_CASE("vector clocks that share chunks are joined like separate ones", "[isa][order]") {
  constexpr uint32_t waves = 300;
  using Model = std::array<uint32_t, waves>;
  Random random(2);
  std::array<VectorClock, 8> clocks;
  std::array<Model, 8> models{};
  for (uint32_t round = 0; round < 5000; ++round) {
    const uint32_t to = random() % 8;
    const uint32_t from = random() % 8;
    switch (random() % 8) {
    case 0:
      clocks[to] = clocks[from];
      models[to] = models[from];
      break;
    case 1:
      clocks[to].clear();
      models[to] = {};
      break;
    case 2:
    case 3:
      clocks[to].join(clocks[from]);
      for (uint32_t wave = 0; wave < waves; ++wave)
        models[to][wave] = std::max(models[to][wave], models[from][wave]);
      break;
    default:
      const uint32_t wave = random() % waves;
      const uint32_t moment = random() % 1000;
      clocks[to].join(wave, {.issued = moment, .done = moment / 2, .written_back = 0, .scalar_done = 0});
      models[to][wave] = std::max(models[to][wave], moment);
    }
    for (uint32_t wave = 0; wave < waves; ++wave) {
      REQUIRE(clocks[to].of(wave).issued == models[to][wave]);
      REQUIRE(clocks[to].of(wave).done == models[to][wave] / 2);
    }
  }
}

TEST_CASE("an acquire learns exactly what was released at its dwords", "[isa][order]") {
  // Few acquires, so that releases pile up, and many.
  for (const uint32_t acquire_every : {2000u, 3u}) {
    constexpr uint32_t waves = 200;
    Random random(3);
    ReleasedAtomics atomics;
    std::array<std::array<uint32_t, waves>, emulator::line_dwords> model{};
    for (uint32_t round = 1; round <= 4000; ++round) {
      const uint64_t dwords =
          round % 4 == 0 ? ~uint64_t(0) : (uint64_t(random()) << 32 | random()) & (uint64_t(random()) << 20);
      if (dwords == 0) continue;
      const LinePart part{5, dwords, emulator::whole_dword};
      const uint32_t wave = random() % waves;
      PublishedClock published{{}, wave, {Moments{.issued = round, .done = round}}};
      atomics.release({&part, 1}, wave, Shared<PublishedClock>::make(published));
      for (uint32_t dword = 0; dword < emulator::line_dwords; ++dword)
        if ((dwords >> dword & 1) != 0) model[dword][wave] = round;
      if (round % acquire_every != 0) continue;
      const uint64_t read = random() % 2 ? uint64_t(1) << random() % 64 : uint64_t(random()) << 16;
      VectorClock known;
      atomics.acquire({5, read, emulator::whole_dword}, known);
      for (uint32_t of = 0; of < waves; ++of) {
        uint32_t expected = 0;
        for (uint32_t dword = 0; dword < emulator::line_dwords; ++dword)
          if ((read >> dword & 1) != 0) expected = std::max(expected, model[dword][of]);
        REQUIRE(known.of(of).done == expected);
      }
    }
  }
}

TEST_CASE("waves of a workgroup need a barrier, but no wait", "[isa][order]") {
  for (bool stores_first : {true, false})
    for (bool barrier : {true, false}) {
      GlobalShadow shadow;
      TestWave one(0, 0), other(0, 1);
      if (stores_first)
        one.store(shadow, data);
      else
        one.load(shadow, data);
      if (barrier) meet(one, other);
      const AccessOrder seen = stores_first ? other.load(shadow, data) : other.store(shadow, data);
      CHECK(seen == (barrier ? AccessOrder::before : AccessOrder::none));
    }
}

TEST_CASE("an atomic orders waves of a workgroup without caches", "[isa][order]") {
  GlobalShadow shadow;
  ReleasedAtomics atomics;
  TestWave one(0, 0), other(0, 1);
  const LinePart place = Footprint(&flag, 1, 4).parts()[0];
  one.store(shadow, data);
  one.order.set_done(0, 0);
  one.order.release(atomics, {&place, 1});
  one.order.advance();
  one.store(shadow, data + 4); // after the release
  other.order.acquire(atomics, place);
  CHECK(other.load(shadow, data) == AccessOrder::before);
  CHECK(other.load(shadow, data + 4) == AccessOrder::none);
}

TEST_CASE("a scalar load of a workgroup's wave must be waited for before a barrier", "[isa][order]") {
  for (uint32_t done : {0u, 1u}) {
    GlobalShadow shadow;
    TestWave one(0, 0), other(0, 1);
    one.load(shadow, data, /*scalar=*/true);
    meet(one, other, done);
    CHECK(other.store(shadow, data) == (done != 0 ? AccessOrder::before : AccessOrder::none));
  }
}

TEST_CASE("all waves of a workgroup that load a dword are remembered", "[isa][order]") {
  GlobalShadow shadow;
  TestWave one(0, 0), other(0, 1);
  one.load(shadow, data);
  other.load(shadow, data);
  CHECK(other.store(shadow, data) == AccessOrder::none); // the first wave's load
  // Once more after a barrier: loads before it are done with.
  one.load(shadow, data + 4);
  other.load(shadow, data + 4);
  meet(one, other);
  CHECK(other.store(shadow, data + 4) == AccessOrder::before);
}

TEST_CASE("of equal and different stores the different one is reported", "[isa][order]") {
  alignas(256) std::array<uint32_t, wave_lanes> memory{};
  std::array<uint64_t, wave_lanes> addresses{};
  std::array<uint32_t, wave_lanes> values{};
  for (uint32_t lane = 0; lane < wave_lanes; ++lane) {
    addresses[lane] = reinterpret_cast<uint64_t>(&memory[lane]);
    values[lane] = lane;
  }
  for (int32_t different : {-1, 0, 41}) {
    GlobalShadow shadow;
    auto store = [&](TestWave &wave) {
      const Footprint footprint(addresses.data(), all_lanes, 4);
      const GlobalConflict found =
          shadow.enter(wave.pages, wave.order, 1, footprint, {.store = true}, {values.data(), 0});
      memory = values;
      wave.order.advance();
      return found;
    };
    TestWave one(0, 0), other(1, 0);
    CHECK(store(one).order == AccessOrder::before);
    if (different >= 0) values[size_t(different)] += 1;
    const GlobalConflict found = store(other);
    CHECK(found.order == AccessOrder::none);
    CHECK(found.with_store);
    CHECK(found.equal == (different < 0));
    CHECK(found.lane == uint32_t(std::max(different, 0)));
  }
}

TEST_CASE("an atomic stands for those before it at its dword", "[isa][order]") {
  const GlobalAccess add{.load = true, .store = true, .atomic = true, .op = 1};
  GlobalShadow shadow;
  TestWave one(0, 0), other(1, 0);
  CHECK(one.enter(shadow, data, add).order == AccessOrder::before);
  CHECK(other.enter(shadow, data, add).order == AccessOrder::before);
  CHECK(other.store(shadow, data) == AccessOrder::before);
  // An atomic after it is not ordered.
  CHECK(one.enter(shadow, data, add).order == AccessOrder::none);
}

TEST_CASE("a load before a compare-and-swap may meet atomics", "[isa][order]") {
  for (bool compares : {true, false}) {
    const GlobalAccess load{.load = true, .op = 1};
    const GlobalAccess atomic{.load = true, .store = true, .atomic = true, .op = 2, .compares = compares};
    GlobalShadow shadow;
    TestWave one(0, 0), other(1, 0);
    one.enter(shadow, data, load);
    other.enter(shadow, data, load);
    // Both orders of a load and an atomic.
    CHECK(one.enter(shadow, data, atomic).order == AccessOrder::before);
    CHECK(one.enter(shadow, data + 4, atomic).order == AccessOrder::before);
    CHECK(other.enter(shadow, data + 4, load).order == AccessOrder::before);
    other.enter(shadow, data, atomic);
    const auto races = shadow.first_reads().races();
    REQUIRE(races.size() == (compares ? 0 : 2));
    if (compares) continue;
    CHECK_FALSE(races[1].load_is_later);
    CHECK(races[1].other_wave == other.order.number());
    CHECK(races[0].load_is_later);
    CHECK(races[0].address == data + 4);
  }
}

} // namespace sluice::test

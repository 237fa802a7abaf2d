//===- lds_lanes_test.cpp - LDS accesses of whole instructions, against single ones
//----------------------===//
#include <catch2/catch.hpp>

#include <array>
#include <bit>
#include <random>
#include <vector>

#include "emulator/check/lds_shadow.h"

namespace sluice::test {

namespace {

using emulator::LdsConflict;
using emulator::LdsOther;
using emulator::LdsShadow;

struct Access {
  enum Kind : uint8_t { read, write, atomic } kind;
  uint32_t wave;
  uint32_t op;
  uint32_t bytes;
  uint64_t lanes;
  std::array<uint32_t, 64> addresses;
};

struct Seen {
  uint32_t lane;
  LdsConflict conflict;
  uint32_t op, wave; // of the other access
  friend auto operator<=>(const Seen &, const Seen &) = default;
};

constexpr uint32_t lds_bytes = 256;
constexpr std::array<uint8_t, lds_bytes> held{};
constexpr std::array<uint32_t, 4 * 64> stored{};

/// The conflicts of an access. `together`: enters as many lanes at once as it can.
std::vector<Seen> enter(LdsShadow &shadow, const Access &a, bool together) {
  std::vector<Seen> result;
  shadow.begin_instruction();
  for (uint64_t lanes = a.lanes; lanes != 0; lanes &= lanes - 1) {
    if (together)
      lanes = a.kind == Access::read ? shadow.read_lanes({a.addresses.data(), lanes, a.bytes}, a.wave, a.op)
                                     : shadow.store_lanes({a.addresses.data(), lanes, a.bytes}, a.wave, a.op,
                                                          a.kind == Access::atomic);
    if (lanes == 0) break;
    const auto lane = uint32_t(std::countr_zero(lanes));
    const uint32_t address = a.addresses[lane];
    LdsOther other;
    const LdsConflict conflict = a.kind == Access::read ? shadow.read(address, a.bytes, a.wave, a.op, other)
                                 : a.kind == Access::write
                                     ? shadow.write(address, a.bytes, a.wave, a.op, true,
                                                    {held.data() + address, stored.data() + lane, 0}, other)
                                     : shadow.atomic(address, a.bytes, a.wave, a.op, true, other);
    if (conflict != LdsConflict::none) result.push_back({lane, conflict, other.op, other.wave});
  }
  return result;
}

Access random_access(std::mt19937 &engine, uint32_t op) {
  Access a{};
  a.kind = Access::Kind(engine() % 8 < 4 ? Access::read : engine() % 3 == 0 ? Access::atomic : Access::write);
  a.wave = engine() % 3;
  a.op = op;
  a.bytes = a.kind != Access::atomic && engine() % 12 == 0 ? 2 : 4 << engine() % 2;
  a.lanes = engine() % 4 == 0 ? engine() | uint64_t(engine()) << 32 : ~uint64_t(0) >> engine() % 60;
  // Half of LDS each, so that accesses of an epoch often do not meet.
  const uint32_t first = engine() % 2 * (lds_bytes / 2), stride = engine() % 3 * 4;
  const uint32_t shift = engine() % 16 == 0 ? 2 : 0;
  for (uint32_t lane = 0; lane < 64; ++lane)
    a.addresses[lane] = first + lane * stride % (lds_bytes / 2 - 8) + shift;
  return a;
}

/// Both shadows, in every way that they can change.
void step(LdsShadow &shadow, uint32_t choice, const Access &a) {
  const uint32_t address = a.addresses[0];
  LdsOther other;
  if (choice == 0) shadow.next_epoch();
  if (choice == 1) shadow.carry_read(address, a.bytes, a.wave, a.op, true);
  if (choice == 2) shadow.carry_write(address, a.bytes, a.wave, a.op);
  if (choice == 3) shadow.begin_copy(address, 4, a.wave, a.op, other);
  if (choice <= 4 && choice >= 3) shadow.end_copy(address, 4, a.wave, a.op, true);
}

} // namespace

TEST_CASE("lanes that enter LDS together conflict as single ones do", "[isa][checks]") {
  size_t conflicts = 0;
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    std::mt19937 engine(seed);
    LdsShadow together, single;
    for (LdsShadow *shadow : {&together, &single}) {
      shadow->reset(lds_bytes);
      // The first quarter stays uninitialised in some runs.
      LdsOther other;
      const uint32_t start = seed % 2 * (lds_bytes / 4);
      shadow->write(start, lds_bytes - start, 0, 0, true, {}, other);
      shadow->next_epoch();
    }
    for (uint32_t op = 1; op <= 200; ++op) {
      const Access access = random_access(engine, op);
      const uint32_t choice = engine() % 40;
      step(together, choice, access);
      step(single, choice, access);
      const std::vector<Seen> expected = enter(single, access, false);
      INFO("seed " << seed << ", access " << op);
      REQUIRE((enter(together, access, true) == expected));
      conflicts += expected.size();
    }
  }
  CHECK(conflicts > 10'000);
}

TEST_CASE("the usual accesses of LDS enter it together", "[isa][checks]") {
  LdsShadow shadow;
  shadow.reset(512);
  std::array<uint32_t, 64> low, high;
  for (uint32_t lane = 0; lane < 64; ++lane) {
    low[lane] = 4 * lane;
    high[lane] = 256 + 4 * lane;
  }
  const uint64_t all = ~uint64_t(0);
  CHECK(shadow.read_lanes({low.data(), all, 4}, 0, 1) == all); // never written
  shadow.begin_instruction();
  CHECK(shadow.store_lanes({low.data(), all, 4}, 0, 2, false) == 0);
  CHECK(shadow.read_lanes({low.data(), all, 4}, 1, 3) == all); // a race
  shadow.next_epoch();
  CHECK(shadow.read_lanes({low.data(), all, 4}, 1, 4) == 0);
  shadow.begin_instruction();
  CHECK(shadow.store_lanes({high.data(), all, 4}, 1, 5, false) == 0);
  CHECK(shadow.read_lanes({low.data(), all, 4}, 0, 6) == 0);
  shadow.begin_instruction();
  CHECK(shadow.store_lanes({low.data(), all, 4}, 0, 7, false) == all); // wave 1 has read there
}

TEST_CASE("reads of a long loop without a barrier meet a later store", "[isa][checks]") {
  // The same reads in each turn, or others: both more than are kept as whole instructions.
  const uint32_t stride = GENERATE(0u, 4u);
  constexpr uint32_t bytes = 4096;
  LdsShadow together, single;
  for (LdsShadow *shadow : {&together, &single}) {
    shadow->reset(bytes);
    LdsOther other;
    shadow->write(0, bytes, 0, 0, true, {}, other);
    shadow->next_epoch();
  }
  for (uint32_t turn = 0; turn < 5000; ++turn) {
    Access read{Access::read, turn % 3, 1 + turn % 7, 4, ~uint64_t(0), {}};
    for (uint32_t lane = 0; lane < 64; ++lane)
      read.addresses[lane] = (turn % 29 * 64 + turn * stride + lane * 4) % (bytes / 2);
    REQUIRE(enter(together, read, true).empty());
    REQUIRE(enter(single, read, false).empty());
  }
  for (uint32_t first = 0; first < bytes; first += 256) {
    Access store{Access::write, 3, 9, 4, ~uint64_t(0), {}};
    for (uint32_t lane = 0; lane < 64; ++lane)
      store.addresses[lane] = first + lane * 4;
    const std::vector<Seen> expected = enter(single, store, false);
    CHECK(expected.empty() == (first >= bytes / 2));
    CHECK((enter(together, store, true) == expected));
  }
}

} // namespace sluice::test

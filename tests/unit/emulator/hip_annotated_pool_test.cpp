//===- hip_annotated_pool_test.cpp - pieces that an allocator hands out of a block ----------------------===//
#include "unit/emulator/hip_fixture.h"

#include <nlohmann/json.hpp>

using namespace sluice::test;

namespace {

/// A block with two pieces of 64 ints, one after the other with room for 64 between them.
class PoolFixture : public Fixture {
public:
  static constexpr size_t piece_bytes = 64 * sizeof(int);
  static constexpr size_t pool_bytes = elements * sizeof(int);

  PoolFixture() {
    REQUIRE(sluice_emulator_pool_create(buffer, pool_bytes) == SLUICE_EMULATOR_OK);
    for (void *piece : {first(), second()})
      REQUIRE(sluice_emulator_pool_allocated(piece, piece_bytes) == SLUICE_EMULATOR_OK);
  }
  ~PoolFixture() { sluice_emulator_pool_destroy(buffer); }

  void *first() const { return buffer; }
  void *second() const { return buffer + 128; }

  /// The only report of a fill of `count` ints at `out`; empty if there is none.
  std::string kind_of_fill(void *out, int count) {
    CHECK(launch(5, count, nullptr, out) == hipSuccess);
    const hipError_t error = hip.hipDeviceSynchronize();
    const nlohmann::json reports = nlohmann::json::parse(take_reports());
    CHECK(sluice_emulator_configure("clear_fault", "1") == SLUICE_EMULATOR_OK);
    CHECK((error == hipSuccess) == reports.empty());
    return reports.empty() ? "" : reports[0]["kind"].get<std::string>();
  }
};

} // namespace

TEST_CASE("overruns between the pieces of a pool are found", "[hip]") {
  PoolFixture pool;
  CHECK(pool.kind_of_fill(pool.first(), 64) == "");
  CHECK(pool.kind_of_fill(pool.second(), 64) == "");
  CHECK(pool.kind_of_fill(pool.first(), 65) == "global_out_of_bounds");
  CHECK(pool.kind_of_fill(pool.buffer + 64, 1) == "global_out_of_bounds");
  // The same memory without the annotation.
  REQUIRE(sluice_emulator_pool_destroy(pool.buffer) == SLUICE_EMULATOR_OK);
  CHECK(pool.kind_of_fill(pool.first(), 65) == "");
}

TEST_CASE("a piece that was taken back may only be used by work submitted before", "[hip]") {
  PoolFixture pool;
  REQUIRE(sluice_emulator_configure("stream_order", "1") == SLUICE_EMULATOR_OK); // nothing runs until a wait
  CHECK(pool.launch(5, 64, nullptr, pool.second()) == hipSuccess);
  CHECK(sluice_emulator_pool_freed(pool.second()) == SLUICE_EMULATOR_OK);
  CHECK(hip.hipDeviceSynchronize() == hipSuccess);
  CHECK(take_reports() == "[]");
  CHECK(pool.kind_of_fill(pool.second(), 64) == "global_freed");
  // Until another piece takes its place.
  CHECK(sluice_emulator_pool_allocated(pool.buffer + 120, PoolFixture::piece_bytes) == SLUICE_EMULATOR_OK);
  CHECK(pool.kind_of_fill(pool.buffer + 120, 64) == "");
  CHECK(pool.kind_of_fill(pool.second(), 64) == "global_out_of_bounds");
}

TEST_CASE("copies may use all of a pool", "[hip]") {
  PoolFixture pool;
  CHECK(pool.contents().size() == size_t(Fixture::elements));
}

TEST_CASE("a freed block takes its pool with it", "[hip]") {
  Fixture fixture;
  int *memory = nullptr;
  REQUIRE(hip.hipMalloc(reinterpret_cast<void **>(&memory), 4096) == hipSuccess);
  REQUIRE(sluice_emulator_pool_create(memory, 4096) == SLUICE_EMULATOR_OK);
  CHECK(hip.hipFree(memory) == hipSuccess);
  CHECK(fixture.launch(5, 64, nullptr, memory) == hipSuccess);
  CHECK(hip.hipDeviceSynchronize() == hipErrorIllegalAddress);
  CHECK_THAT(take_reports(), Catch::Contains("global_freed"));
  CHECK(sluice_emulator_pool_destroy(memory) == SLUICE_EMULATOR_OK);
}

TEST_CASE("wrong annotations are refused", "[hip]") {
  PoolFixture pool;
  const auto bad = SLUICE_EMULATOR_BAD_VALUE;
  CHECK(sluice_emulator_pool_create(pool.buffer, PoolFixture::pool_bytes) == bad); // it is one
  REQUIRE(sluice_emulator_pool_destroy(pool.buffer) == SLUICE_EMULATOR_OK);
  CHECK(sluice_emulator_pool_create(pool.buffer, PoolFixture::pool_bytes - 4) == bad);
  CHECK(sluice_emulator_pool_create(pool.buffer + 1, PoolFixture::pool_bytes - 4) == bad);
  CHECK(sluice_emulator_pool_create(nullptr, 4) == bad);
  CHECK(sluice_emulator_pool_destroy(pool.buffer) == bad);
  CHECK(sluice_emulator_pool_allocated(pool.buffer, 4) == bad); // in no pool
  REQUIRE(sluice_emulator_pool_create(pool.buffer, PoolFixture::pool_bytes) == SLUICE_EMULATOR_OK);
  CHECK(sluice_emulator_pool_allocated(pool.buffer, 0) == bad);
  CHECK(sluice_emulator_pool_allocated(pool.buffer, PoolFixture::pool_bytes + 4) == bad);
  CHECK(sluice_emulator_pool_allocated(reinterpret_cast<char *>(pool.buffer) + 2, 4) == bad);
  CHECK(sluice_emulator_pool_allocated(pool.buffer + 8, 64) == SLUICE_EMULATOR_OK);
  CHECK(sluice_emulator_pool_allocated(pool.buffer + 8, 64) == bad);
  CHECK(sluice_emulator_pool_allocated(pool.buffer, 36) == bad); // overlaps from below
  CHECK(sluice_emulator_pool_allocated(pool.buffer + 20, 64) == bad);
  CHECK(sluice_emulator_pool_allocated(pool.buffer, 32) == SLUICE_EMULATOR_OK);
  CHECK(sluice_emulator_pool_freed(pool.buffer + 1) == bad);
  CHECK(sluice_emulator_pool_freed(pool.buffer) == SLUICE_EMULATOR_OK);
  CHECK(sluice_emulator_pool_freed(pool.buffer) == bad);
}

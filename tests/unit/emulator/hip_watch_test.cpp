//===- hip_watch_test.cpp - counts of accesses to watched memory, and of MFMAs by kind ------------------===//
#include "unit/emulator/hip_fixture.h"

#include <cstring>

using namespace sluice::test;

namespace {

constexpr size_t dwords = 1024;

struct Watched {
  hipModule_t module = nullptr;
  hipFunction_t function = nullptr;
  uint32_t *memory = nullptr;
  std::vector<uint32_t> loads = std::vector<uint32_t>(dwords), stores = loads;

  Watched() {
    const std::vector<std::byte> elf = read_file(SLUICE_CODE_OBJECT_WATCHED);
    REQUIRE(hip.hipModuleLoadData(&module, elf.data()) == hipSuccess);
    REQUIRE(hip.hipModuleGetFunction(&function, module, "watched") == hipSuccess);
    REQUIRE(hip.hipMalloc(reinterpret_cast<void **>(&memory), dwords * 4) == hipSuccess);
    REQUIRE(hip.hipMemset(memory, 0, dwords * 4) == hipSuccess);
  }
  ~Watched() {
    sluice_emulator_unwatch(memory);
    sluice_emulator_configure("defaults", "1");
    CHECK(hip.hipFree(memory) == hipSuccess);
    CHECK(hip.hipModuleUnload(module) == hipSuccess);
  }
  void launch(unsigned groups = 1) {
    void *parameters[] = {&memory};
    CHECK(hip.hipModuleLaunchKernel(function, groups, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr) ==
          hipSuccess);
    CHECK(hip.hipDeviceSynchronize() == hipSuccess);
    CHECK(take_reports() == "[]");
  }
};

/// The counts of one wave of the kernel.
void expect(std::vector<uint32_t> &loads, std::vector<uint32_t> &stores) {
  loads.assign(dwords, 0);
  stores.assign(dwords, 0);
  loads[2] = loads[3] = 1;
  loads[384] = loads[385] = 1;
  loads[256] = loads[257] = 64;
  for (size_t lane = 0; lane < 64; ++lane) {
    loads[64 + lane] = 1;
    stores[128 + lane] = 1;
    loads[512 + lane] = stores[512 + lane] = 1;
  }
}

} // namespace

TEST_CASE("accesses to watched memory are counted dword by dword", "[hip]") {
  Watched w;
  std::vector<uint32_t> loads, stores;
  expect(loads, stores);
  w.launch();
  REQUIRE(sluice_emulator_watch(w.memory, dwords * 4, w.loads.data(), w.stores.data()) == SLUICE_EMULATOR_OK);
  SECTION("with checks") {
    w.launch();
  }
  SECTION("without") {
    REQUIRE(sluice_emulator_configure("checks", "none") == SLUICE_EMULATOR_OK);
    REQUIRE(sluice_emulator_configure("completion", "early") == SLUICE_EMULATOR_OK);
    w.launch();
  }
  SECTION("defaults leave the watch") {
    REQUIRE(sluice_emulator_configure("defaults", "1") == SLUICE_EMULATOR_OK);
    w.launch();
  }
  CHECK(w.loads == loads);
  CHECK(w.stores == stores);
  CHECK(sluice_emulator_unwatch(w.memory) == SLUICE_EMULATOR_OK);
  sluice_emulator_configure("defaults", "1");
  w.launch();
  CHECK(w.loads == loads);
  CHECK(w.stores == stores);
}

TEST_CASE("part of an access may be watched, and only loads or only stores", "[hip]") {
  Watched w;
  REQUIRE(sluice_emulator_watch(w.memory + 257, 4, w.loads.data() + 257, nullptr) == SLUICE_EMULATOR_OK);
  REQUIRE(sluice_emulator_watch(w.memory + 130, 8, nullptr, w.stores.data() + 130) == SLUICE_EMULATOR_OK);
  w.launch();
  CHECK(sluice_emulator_unwatch(w.memory + 257) == SLUICE_EMULATOR_OK);
  w.launch();
  CHECK(sluice_emulator_unwatch(w.memory + 130) == SLUICE_EMULATOR_OK);
  std::vector<uint32_t> loads(dwords), stores(dwords);
  loads[257] = 64;
  stores[130] = stores[131] = 2;
  CHECK(w.loads == loads);
  CHECK(w.stores == stores);
}

TEST_CASE("accesses of many waves at once are all counted", "[hip][races]") {
  Watched w;
  // They store the same bytes, which is worth a note.
  REQUIRE(sluice_emulator_configure("global_equal_stores", "off") == SLUICE_EMULATOR_OK);
  REQUIRE(sluice_emulator_watch(w.memory, dwords * 4, w.loads.data(), nullptr) == SLUICE_EMULATOR_OK);
  w.launch(8000);
  CHECK(w.loads[256] == 8000 * 64);
  CHECK(w.loads[575] == 8000);
}

TEST_CASE("ranges that cannot be watched are refused", "[hip]") {
  Watched w;
  const char *const start = reinterpret_cast<const char *>(w.memory);
  for (const auto &[offset, bytes] : {std::pair<size_t, size_t>{0, 0}, {0, 6}, {2, 8}})
    CHECK(sluice_emulator_watch(start + offset, bytes, nullptr, nullptr) == SLUICE_EMULATOR_BAD_VALUE);
  CHECK(sluice_emulator_watch(start, SIZE_MAX - 3, nullptr, nullptr) == SLUICE_EMULATOR_BAD_VALUE);
  CHECK(sluice_emulator_unwatch(start) == SLUICE_EMULATOR_BAD_VALUE);
  REQUIRE(sluice_emulator_watch(start + 16, 16, nullptr, nullptr) == SLUICE_EMULATOR_OK);
  CHECK(sluice_emulator_watch(start + 28, 16, nullptr, nullptr) == SLUICE_EMULATOR_BAD_VALUE);
  CHECK(sluice_emulator_watch(start + 4, 16, nullptr, nullptr) == SLUICE_EMULATOR_BAD_VALUE);
  CHECK(sluice_emulator_watch(start + 32, 16, nullptr, nullptr) == SLUICE_EMULATOR_OK);
  CHECK(sluice_emulator_unwatch(start + 20) == SLUICE_EMULATOR_BAD_VALUE);
  CHECK(sluice_emulator_unwatch(start + 16) == SLUICE_EMULATOR_OK);
  CHECK(sluice_emulator_unwatch(start + 32) == SLUICE_EMULATOR_OK);
}

TEST_CASE("MFMAs are counted by kind", "[hip]") {
  Watched w;
  REQUIRE(sluice_emulator_configure("reset_counters", "1") == SLUICE_EMULATOR_OK);
  w.launch();
  w.launch();
  const auto count = [](const char *mnemonic) {
    uint64_t number = 99;
    CHECK(sluice_emulator_mfma_count(mnemonic, &number) == SLUICE_EMULATOR_OK);
    return number;
  };
  CHECK(count("v_mfma_f32_16x16x16_f16") == 4);
  CHECK(count("v_mfma_f32_32x32x8_f16") == 2);
  CHECK(count("v_mfma_f32_16x16x16_bf16") == 0);
  CHECK(counters().mfma_instructions == 6);
  uint64_t number = 0;
  CHECK(sluice_emulator_mfma_count("v_mfma_f32_7x7x7_f16", &number) == SLUICE_EMULATOR_UNKNOWN_KEY);
  CHECK(sluice_emulator_mfma_count(nullptr, &number) == SLUICE_EMULATOR_BAD_VALUE);
  CHECK(sluice_emulator_mfma_count("v_mfma_f32_32x32x8_f16", nullptr) == SLUICE_EMULATOR_BAD_VALUE);
  REQUIRE(sluice_emulator_configure("reset_counters", "1") == SLUICE_EMULATOR_OK);
  CHECK(count("v_mfma_f32_16x16x16_f16") == 0);
}

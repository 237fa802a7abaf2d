//===- hip_launch_test.cpp - modules, launches and errors of kernels ------------------------------------===//

#include <array>
#include <catch2/catch.hpp>
#include <cstring>

#include "package/offload_bundle.h"
#include "unit/emulator/hip_fixture.h"
#include <sluice/emulator.h>

using namespace sluice::test;

TEST_CASE("a kernel runs, its arguments given either way", "[hip]") {
  Fixture fixture;
  sluice_emulator_configure("reset_counters", "1");
  CHECK(fixture.launch(5, 100) == hipSuccess);
  CHECK(hip.hipDeviceSynchronize() == hipSuccess);
  std::vector<int> values = fixture.contents();
  for (int i = 0; i < Fixture::elements; ++i)
    REQUIRE(values[size_t(i)] == (i < 100 ? 5 + i : 0));

  struct {
    int *out;
    int value;
    int count;
  } packed{fixture.buffer, 1000, 70};
  size_t size = sizeof packed;
  void *extra[] = {reinterpret_cast<void *>(1), &packed, reinterpret_cast<void *>(2), &size,
                   reinterpret_cast<void *>(3)};
  CHECK(hip.hipModuleLaunchKernel(fixture.fill, 2, 1, 1, 64, 1, 1, 0, nullptr, nullptr, extra) == hipSuccess);
  packed.value = -1; // copied already
  values = fixture.contents();
  CHECK(values[0] == 1000);
  CHECK(values[69] == 1069);
  CHECK(values[70] == 75);
  CHECK(counters().launches == 2);
  CHECK(counters().workgroups == 4);
  CHECK(counters().waves == 4);
  CHECK(counters().wave_instructions > 20);
  CHECK(take_reports() == "[]");

  CHECK(hip.hipModuleLaunchKernel(fixture.nothing, 3, 2, 1, 16, 4, 2, 0, nullptr, nullptr, nullptr) ==
        hipSuccess);
  CHECK(hip.hipStreamSynchronize(nullptr) == hipSuccess);
  CHECK(counters().workgroups == 10);
  CHECK(counters().waves == 16);
}

TEST_CASE("hidden arguments are added over anything the caller put there", "[hip]") {
  const std::vector<std::byte> elf = read_file(SLUICE_CODE_OBJECT_HIDDEN_ARGUMENTS);
  hipModule_t module = nullptr;
  hipFunction_t hidden = nullptr;
  unsigned *out = nullptr;
  REQUIRE(hip.hipModuleLoadData(&module, elf.data()) == hipSuccess);
  REQUIRE(hip.hipModuleGetFunction(&hidden, module, "hidden") == hipSuccess);
  REQUIRE(hip.hipMalloc(reinterpret_cast<void **>(&out), 12) == hipSuccess);
  unsigned back[3] = {};
  SECTION("from parameters") {
    void *parameters[] = {&out};
    CHECK(hip.hipModuleLaunchKernel(hidden, 3, 1, 1, 128, 2, 1, 256, nullptr, parameters, nullptr) ==
          hipSuccess);
  }
  SECTION("from a packed block that covers them") {
    struct {
      unsigned *out;
      unsigned rubbish[3];
    } packed{out, {77, 77, 77}};
    size_t size = 20;
    void *extra[] = {reinterpret_cast<void *>(1), &packed, reinterpret_cast<void *>(2), &size,
                     reinterpret_cast<void *>(3)};
    CHECK(hip.hipModuleLaunchKernel(hidden, 3, 1, 1, 128, 2, 1, 256, nullptr, nullptr, extra) == hipSuccess);
  }
  CHECK(hip.hipMemcpyDtoH(back, out, 12) == hipSuccess);
  CHECK(back[0] == 3);
  CHECK(back[1] == 128);
  CHECK(back[2] == 256);
  INFO(take_reports());
  CHECK(hip.hipFree(out) == hipSuccess);
  CHECK(hip.hipModuleUnload(module) == hipSuccess);
}

TEST_CASE("launches that HIP refuses are refused with HIP's codes", "[hip]") {
  Fixture fixture;
  void *out = fixture.buffer;
  int value = 1;
  int count = 64;
  void *parameters[] = {&out, &value, &count};
  auto launch = [&](std::array<unsigned, 3> grid, std::array<unsigned, 3> block, unsigned lds, void **given,
                    void **extra) {
    return hip.hipModuleLaunchKernel(fixture.fill, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                                     lds, nullptr, given, extra);
  };
  size_t size = 16;
  char packed[24] = {};
  void *extra[] = {reinterpret_cast<void *>(1), packed, reinterpret_cast<void *>(2), &size,
                   reinterpret_cast<void *>(3)};
  CHECK(launch({1, 1, 1}, {64, 1, 1}, 0, parameters, extra) == hipErrorInvalidValue);
  CHECK(launch({1, 1, 1}, {64, 1, 1}, 0, nullptr, nullptr) == hipErrorInvalidValue);
  CHECK(launch({0, 1, 1}, {64, 1, 1}, 0, parameters, nullptr) == hipErrorInvalidValue);
  CHECK(launch({1, 1, 0}, {64, 1, 1}, 0, parameters, nullptr) == hipErrorInvalidValue);
  CHECK(launch({1, 1, 1}, {0, 1, 1}, 0, parameters, nullptr) == hipErrorInvalidConfiguration);
  CHECK(launch({1, 1, 1}, {64, 1, 0}, 0, parameters, nullptr) == hipErrorInvalidConfiguration);
  CHECK(launch({1, 1, 1}, {64, 17, 1}, 0, parameters, nullptr) == hipErrorInvalidValue);
  CHECK(launch({1, 1, 1}, {0x10000, 0x10000, 1}, 0, parameters, nullptr) == hipErrorInvalidValue);
  CHECK(launch({1, 1, 1}, {257, 1, 1}, 0, parameters, nullptr) == hipErrorLaunchFailure);
  CHECK(launch({0x4000001, 1, 1}, {64, 1, 1}, 0, parameters, nullptr) == hipErrorInvalidConfiguration);
  CHECK(launch({1, 1, 1}, {64, 1, 1}, 65536 - 1023, parameters, nullptr) == hipErrorInvalidValue);
  size = 15;
  CHECK(launch({1, 1, 1}, {64, 1, 1}, 0, nullptr, extra) == hipErrorInvalidValue);
  size = 16;
  extra[0] = reinterpret_cast<void *>(2);
  CHECK(launch({1, 1, 1}, {64, 1, 1}, 0, nullptr, extra) == hipErrorInvalidValue);
  extra[0] = reinterpret_cast<void *>(1);
  extra[4] = nullptr;
  CHECK(launch({1, 1, 1}, {64, 1, 1}, 0, nullptr, extra) == hipErrorInvalidValue);
  extra[4] = reinterpret_cast<void *>(3);
  extra[1] = nullptr;
  CHECK(launch({1, 1, 1}, {64, 1, 1}, 0, nullptr, extra) == hipErrorInvalidValue);
  parameters[1] = nullptr;
  CHECK(launch({1, 1, 1}, {64, 1, 1}, 0, parameters, nullptr) == hipErrorInvalidValue);
  CHECK(hip.hipModuleLaunchKernel(nullptr, 1, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr) ==
        hipErrorInvalidImage);
  CHECK(hip.hipModuleLaunchKernel(reinterpret_cast<hipFunction_t>(&value), 1, 1, 1, 64, 1, 1, 0, nullptr,
                                  parameters, nullptr) == hipErrorInvalidHandle);
  CHECK(hip.hipDeviceSynchronize() == hipSuccess);
  CHECK(fixture.contents() == std::vector<int>(Fixture::elements, 0));
}

TEST_CASE("the machine gives the reason if it refuses a launch that HIP accepts", "[hip]") {
  Fixture fixture; // which clears the fault
  const std::vector<std::byte> elf = read_file(SLUICE_CODE_OBJECT_REFUSED_KERNEL);
  hipModule_t module = nullptr;
  hipFunction_t kernel = nullptr;
  REQUIRE(hip.hipModuleLoadData(&module, elf.data()) == hipSuccess);
  REQUIRE(hip.hipModuleGetFunction(&kernel, module, "with_exceptions") == hipSuccess);
  CHECK(hip.hipModuleLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, nullptr, nullptr, nullptr) == hipSuccess);
  CHECK(hip.hipDeviceSynchronize() == hipErrorLaunchFailure);
  const std::string reports = take_reports();
  CHECK_THAT(reports, Catch::Contains("\"kind\": \"launch_refused\", \"kernel\": \"with_exceptions\""));
  CHECK_THAT(reports, Catch::Contains("enables exceptions, but the machine has no trap handler"));
  CHECK(sluice_emulator_configure("clear_fault", "1") == SLUICE_EMULATOR_OK);
  CHECK(hip.hipModuleUnload(module) == hipSuccess);
}

TEST_CASE("a kernel's error sticks to the device until it is cleared", "[hip]") {
  Fixture fixture;
  hipStream_t stream = nullptr;
  REQUIRE(hip.hipStreamCreateWithFlags(&stream, hipStreamNonBlocking) == hipSuccess);
  // 1,001 elements into 1,000: the launch is accepted, the next synchronisation returns the fault.
  CHECK(fixture.launch(1, Fixture::elements + 1, stream) == hipSuccess);
  CHECK(hip.hipStreamSynchronize(stream) == hipErrorIllegalAddress);
  CHECK(hip.hipGetLastError() == hipErrorIllegalAddress);
  CHECK(hip.hipDeviceSynchronize() == hipErrorIllegalAddress);
  CHECK(fixture.launch(1, 10) == hipErrorIllegalAddress);
  CHECK(hip.hipStreamQuery(stream) == hipErrorIllegalAddress);
  int word = 0;
  CHECK(hip.hipMemcpy(&word, fixture.buffer, 4, hipMemcpyDeviceToHost) == hipErrorIllegalAddress);
  void *more = nullptr;
  CHECK(hip.hipMalloc(&more, 16) == hipErrorIllegalAddress);
  hipEvent_t event = nullptr;
  CHECK(hip.hipEventCreate(&event) == hipSuccess);
  CHECK(hip.hipEventRecord(event, stream) == hipErrorIllegalAddress);
  CHECK(hip.hipEventDestroy(event) == hipSuccess);

  // If the buffer is too small, the reports are kept.
  char small[8] = "xxxxxxx";
  const size_t needed = sluice_emulator_take_reports(small, sizeof small);
  CHECK(needed > sizeof small);
  CHECK(small[0] == 0);
  CHECK(sluice_emulator_take_reports(nullptr, 0) == needed);
  const std::string reports = take_reports();
  INFO(reports);
  CHECK(reports.size() + 1 == needed);
  CHECK(reports.find("global_out_of_bounds") != std::string::npos);
  CHECK(reports.find("fill") != std::string::npos);
  CHECK(take_reports() == "[]");

  CHECK(sluice_emulator_configure("clear_fault", "1") == SLUICE_EMULATOR_OK);
  CHECK(hip.hipDeviceSynchronize() == hipSuccess);
  CHECK(fixture.launch(7, 10, stream) == hipSuccess);
  CHECK(hip.hipStreamSynchronize(stream) == hipSuccess);
  CHECK(fixture.contents()[9] == 16);
  CHECK(hip.hipStreamDestroy(stream) == hipSuccess);
}

TEST_CASE("modules load from ELF and bundle, and refuse code for other devices", "[hip]") {
  using sluice::package::BundleEntry;
  hipModule_t module = nullptr;
  const std::vector<std::byte> &elf = two_kernels();
  auto bundle_of = [&](const std::string &id, std::span<const std::byte> code) {
    const BundleEntry entry{id, code};
    return sluice::package::write_bundle({&entry, 1});
  };
  for (const char *id : {"hipv4-amdgcn-amd-amdhsa--gfx942", "hip-amdgcn-amd-amdhsa--gfx942",
                         "hipv4-amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-"}) {
    INFO(id);
    const std::vector<std::byte> bundle = bundle_of(id, elf);
    REQUIRE(hip.hipModuleLoadData(&module, bundle.data()) == hipSuccess);
    hipFunction_t function = nullptr;
    CHECK(hip.hipModuleGetFunction(&function, module, "fill") == hipSuccess);
    CHECK(hip.hipModuleUnload(module) == hipSuccess);
  }
  for (const char *id : {"hipv4-amdgcn-amd-amdhsa--gfx90a", "hipv4-amdgcn-amd-amdhsa--gfx942:xnack+",
                         "hipv4-amdgcn-amd-amdhsa--gfx9420", "amdgcn-amd-amdhsa--gfx942"}) {
    INFO(id);
    const std::vector<std::byte> bundle = bundle_of(id, elf);
    CHECK(hip.hipModuleLoadData(&module, bundle.data()) == hipErrorNoBinaryForGpu);
  }
  // Code for the family runs here too, but code for the chip comes first.
  std::vector<std::byte> other = elf;
  other[8] = std::byte{4};     // version 6
  other[48] = std::byte{0x5f}; // gfx9-4-generic
  const std::string family = "hipv4-amdgcn-amd-amdhsa--gfx9-4-generic";
  REQUIRE(hip.hipModuleLoadData(&module, bundle_of(family, other).data()) == hipSuccess);
  CHECK(hip.hipModuleUnload(module) == hipSuccess);
  const BundleEntry both[] = {{family, std::span(other).first(100)},
                              {"hipv4-amdgcn-amd-amdhsa--gfx942", elf}};
  REQUIRE(hip.hipModuleLoadData(&module, sluice::package::write_bundle(both).data()) == hipSuccess);
  CHECK(hip.hipModuleUnload(module) == hipSuccess);

  other = elf;
  other[48] = std::byte{0x3f}; // gfx90a
  CHECK(hip.hipModuleLoadData(&module, other.data()) == hipErrorNoBinaryForGpu);
  other = elf;
  other[49] = std::byte{0x07}; // xnack+
  CHECK(hip.hipModuleLoadData(&module, other.data()) == hipErrorNoBinaryForGpu);
  other[49] = std::byte{0x09}; // sramecc-
  CHECK(hip.hipModuleLoadData(&module, other.data()) == hipErrorNoBinaryForGpu);
  other = elf;
  other[16] = std::byte{1}; // an object file
  CHECK(hip.hipModuleLoadData(&module, other.data()) == hipErrorInvalidImage);
  const char text[64] = "this is not an image of any kind";
  CHECK(hip.hipModuleLoadData(&module, text) == hipErrorInvalidImage);
  CHECK(hip.hipModuleLoadData(&module, nullptr) == hipErrorInvalidValue);
  CHECK(hip.hipModuleLoadData(nullptr, elf.data()) == hipErrorInvalidValue);
  CHECK(hip.hipModuleUnload(nullptr) == hipErrorInvalidHandle);
  hip.hipGetLastError();
}

TEST_CASE("modules give their kernels and variables", "[hip]") {
  Fixture fixture;
  hipFunction_t again = nullptr;
  CHECK(hip.hipModuleGetFunction(&again, fixture.module, "fill") == hipSuccess);
  CHECK(again == fixture.fill);
  CHECK(hip.hipModuleGetFunction(&again, fixture.module, "empty") == hipErrorNotFound);
  CHECK(hip.hipModuleGetFunction(&again, nullptr, "fill") == hipErrorInvalidHandle);
  void *counter = nullptr;
  size_t size = 0;
  CHECK(hip.hipModuleGetGlobal(&counter, &size, fixture.module, "counter") == hipSuccess);
  CHECK(size == 4);
  unsigned value = 0;
  CHECK(hip.hipMemcpy(&value, counter, 4, hipMemcpyDeviceToHost) == hipSuccess);
  CHECK(value == 0x12345678);
  value = 99;
  CHECK(hip.hipMemcpyHtoD(counter, &value, 4) == hipSuccess);
  value = 0;
  CHECK(hip.hipMemcpyDtoH(&value, counter, 4) == hipSuccess);
  CHECK(value == 99);
  CHECK(hip.hipModuleGetGlobal(&counter, &size, fixture.module, "no variable") == hipErrorNotFound);

  auto attribute = [&](hipFunction_attribute which) {
    int result = -1;
    CHECK(hip.hipFuncGetAttribute(&result, which, fixture.fill) == hipSuccess);
    return result;
  };
  CHECK(attribute(HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) == 256);
  CHECK(attribute(HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) == 1024);
  CHECK(attribute(HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES) == 0);
  CHECK(attribute(HIP_FUNC_ATTRIBUTE_NUM_REGS) == 3);
  CHECK(attribute(HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) == 65536 - 1024);
  int result = 0;
  CHECK(hip.hipFuncGetAttribute(&result, hipFunction_attribute(77), fixture.fill) == hipErrorInvalidValue);

  auto blocks = [&](hipFunction_t function, int threads, size_t lds) {
    int count = -1;
    CHECK(hip.hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&count, function, threads, lds) ==
          hipSuccess);
    return count;
  };
  CHECK(blocks(fixture.fill, 256, 0) == 8);        // 32 waves
  CHECK(blocks(fixture.fill, 256, 15 << 10) == 4); // 16 KiB each
  CHECK(blocks(fixture.fill, 257, 0) == 0);        // more than it was compiled for
  CHECK(blocks(fixture.nothing, 256, 0) == 2);     // 200 registers: two waves per SIMD
  CHECK(blocks(fixture.fill, 64, 64 << 10) == 0);
}

TEST_CASE("an unloaded module's functions are gone, but queued launches run", "[hip]") {
  hipModule_t module = nullptr;
  hipFunction_t fill = nullptr;
  int *buffer = nullptr;
  REQUIRE(hip.hipModuleLoadData(&module, two_kernels().data()) == hipSuccess);
  REQUIRE(hip.hipModuleGetFunction(&fill, module, "fill") == hipSuccess);
  REQUIRE(hip.hipMalloc(reinterpret_cast<void **>(&buffer), 400) == hipSuccess);
  int value = 6;
  int count = 100;
  void *parameters[] = {&buffer, &value, &count};
  CHECK(hip.hipModuleLaunchKernel(fill, 2, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr) == hipSuccess);
  CHECK(hip.hipModuleUnload(module) == hipSuccess);
  CHECK(hip.hipModuleUnload(module) == hipErrorInvalidHandle);
  CHECK(hip.hipModuleLaunchKernel(fill, 2, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr) ==
        hipErrorInvalidHandle);
  int last = 0;
  CHECK(hip.hipMemcpy(&last, buffer + 99, 4, hipMemcpyDeviceToHost) == hipSuccess);
  CHECK(last == 105);
  CHECK(hip.hipFree(buffer) == hipSuccess);
  hip.hipGetLastError();
}

TEST_CASE("a setting holds for the launches after it", "[hip]") {
  Fixture fixture;
  CHECK(sluice_emulator_configure("instruction_budget", "3") == SLUICE_EMULATOR_OK);
  CHECK(fixture.launch(1, 64) == hipSuccess);
  CHECK(sluice_emulator_configure("defaults", "1") == SLUICE_EMULATOR_OK);
  CHECK(hip.hipDeviceSynchronize() == hipErrorLaunchFailure);
  CHECK(take_reports().find("budget_exhausted") != std::string::npos);
  CHECK(sluice_emulator_configure("clear_fault", "1") == SLUICE_EMULATOR_OK);
  CHECK(fixture.launch(1, 64) == hipSuccess);
  CHECK(hip.hipDeviceSynchronize() == hipSuccess);
}

TEST_CASE("a cooperative launch has to fit on the device", "[hip][races]") {
  Fixture fixture;
  void *out = fixture.buffer;
  int value = 4;
  int count = 64;
  void *parameters[] = {&out, &value, &count};
  auto launch = [&](unsigned blocks_x, unsigned blocks_y, unsigned threads, unsigned lds) {
    return hip.hipModuleLaunchCooperativeKernel(fixture.fill, blocks_x, blocks_y, 1, threads, 1, 1, lds,
                                                nullptr, parameters);
  };
  CHECK(launch(1, 1, 64, 0) == hipSuccess);
  CHECK(fixture.contents()[63] == 67);
  CHECK(sluice_emulator_configure("global_races", "off") == SLUICE_EMULATOR_OK); // all write the same
  // 256 work-items are 4 waves: 8 workgroups fill the 32 waves of a compute unit.
  CHECK(launch(8 * 304, 1, 256, 0) == hipSuccess);
  CHECK(launch(8, 304, 256, 0) == hipSuccess);
  CHECK(launch(8 * 304 + 1, 1, 256, 0) == hipErrorCooperativeLaunchTooLarge);
  CHECK(launch(8, 305, 256, 0) == hipErrorCooperativeLaunchTooLarge);
  CHECK(launch(2 * 304 + 1, 1, 256, 30 << 10) == hipErrorCooperativeLaunchTooLarge);
  CHECK(launch(0, 1, 64, 0) == hipErrorInvalidValue);
  CHECK(hip.hipDeviceSynchronize() == hipSuccess);
}

TEST_CASE("a launch by work-items, with events around it", "[hip]") {
  Fixture fixture;
  void *out = fixture.buffer;
  int value = 4;
  int count = 128;
  void *parameters[] = {&out, &value, &count};
  hipEvent_t start = nullptr, stop = nullptr;
  REQUIRE(hip.hipEventCreate(&start) == hipSuccess);
  REQUIRE(hip.hipEventCreate(&stop) == hipSuccess);
  auto launch = [&](unsigned items, unsigned threads, hipEvent_t first, hipEvent_t last, unsigned flags) {
    return hip.hipExtModuleLaunchKernel(fixture.fill, items, 1, 1, threads, 1, 1, 0, nullptr, parameters,
                                        nullptr, first, last, flags);
  };
  CHECK(launch(128, 64, start, stop, 0) == hipSuccess);
  float milliseconds = -1;
  CHECK(hip.hipEventSynchronize(stop) == hipSuccess);
  CHECK(hip.hipEventElapsedTime(&milliseconds, start, stop) == hipSuccess);
  CHECK(milliseconds >= 0);
  CHECK(fixture.contents()[127] == 131);
  CHECK(launch(100, 64, nullptr, nullptr, 0) == hipErrorInvalidValue); // not whole workgroups
  CHECK(launch(128, 0, nullptr, nullptr, 0) == hipErrorInvalidConfiguration);
  CHECK(launch(128, 64, nullptr, nullptr, 2) == hipErrorInvalidValue);
  CHECK(launch(128, 64, reinterpret_cast<hipEvent_t>(&value), nullptr, 0) == hipErrorInvalidHandle);
  CHECK(hip.hipEventDestroy(start) == hipSuccess);
  CHECK(hip.hipEventDestroy(stop) == hipSuccess);
}

TEST_CASE("the block that fills a compute unit best", "[hip]") {
  Fixture fixture;
  int grid = 0, block = 0;
  auto best = [&](size_t lds, int limit) {
    return hip.hipModuleOccupancyMaxPotentialBlockSize(&grid, &block, fixture.fill, lds, limit);
  };
  CHECK(best(0, 0) == hipSuccess); // the kernel's largest
  CHECK(block == 256);
  CHECK(grid == 8 * 304);
  CHECK(best(0, 100) == hipSuccess); // 32 workgroups of one wave, rather than 16 of 100 work-items
  CHECK(block == 64);
  CHECK(grid == 32 * 304);
  CHECK(best(60 << 10, 0) == hipSuccess); // a single workgroup
  CHECK(grid == 304);
  CHECK(best(65 << 10, 0) == hipErrorInvalidValue);
  CHECK(best(0, -1) == hipErrorInvalidValue);
  CHECK(hip.hipModuleOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, fixture.fill, 0, 0, 1) ==
        hipSuccess);
  CHECK(hip.hipModuleOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, fixture.fill, 0, 0, 2) ==
        hipErrorInvalidValue);
  int blocks = 0;
  CHECK(hip.hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, fixture.fill, 128, 0, 1) ==
        hipSuccess);
  CHECK(blocks == 16);
  CHECK(hip.hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, fixture.fill, 128, 0, 2) ==
        hipErrorInvalidValue);
}

//===- hip_memory_test.cpp - allocation, copies and host memory -----------------------------------------===//

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

#include "unit/emulator/hip_fixture.h"
#include <sluice/emulator.h>

using namespace sluice::test;

TEST_CASE("memory is allocated, copied, set and freed", "[hip]") {
  size_t before = 0;
  size_t total = 0;
  REQUIRE(hip.hipMemGetInfo(&before, &total) == hipSuccess);
  char *device = nullptr;
  REQUIRE(hip.hipMalloc(reinterpret_cast<void **>(&device), 4096) == hipSuccess);
  REQUIRE(device != nullptr);
  size_t during = 0;
  hip.hipMemGetInfo(&during, &total);
  CHECK(before - during >= 4096);

  std::vector<char> host(4096, 'a');
  std::vector<char> back(4096);
  CHECK(hip.hipMemcpy(device, host.data(), 4096, hipMemcpyHostToDevice) == hipSuccess);
  CHECK(hip.hipMemset(device + 100, 'b', 50) == hipSuccess);
  CHECK(hip.hipMemsetD32(device + 200, 0x64636261, 2) == hipSuccess);
  CHECK(hip.hipMemsetD16(device + 300, 0x6665, 1) == hipSuccess);
  CHECK(hip.hipMemsetD8(device + 400, 'z', 1) == hipSuccess);
  CHECK(hip.hipMemcpyDtoH(back.data(), device, 4096) == hipSuccess);
  CHECK(std::string(back.data() + 99, 3) == "abb");
  CHECK(std::string(back.data() + 149, 2) == "ba");
  CHECK(std::string(back.data() + 199, 10) == "aabcdabcda");
  CHECK(std::string(back.data() + 299, 4) == "aefa");
  CHECK(std::string(back.data() + 399, 3) == "aza");
  CHECK(hip.hipMemcpyDtoD(device + 1000, device + 99, 3) == hipSuccess);
  CHECK(hip.hipMemcpy(back.data(), device + 1000, 3, hipMemcpyDefault) == hipSuccess);
  CHECK(std::string(back.data(), 3) == "abb");
  CHECK(hip.hipMemcpyHtoD(device, back.data(), 3) == hipSuccess);
  CHECK(hip.hipMemcpy(nullptr, nullptr, 0, hipMemcpyHostToHost) == hipSuccess);

  SECTION("an overrun is refused, and nothing is written") {
    CHECK(hip.hipMemcpy(device + 1, host.data(), 4096, hipMemcpyHostToDevice) == hipErrorInvalidValue);
    CHECK(hip.hipMemcpy(host.data(), device + 4000, 97, hipMemcpyDeviceToHost) == hipErrorInvalidValue);
    CHECK(hip.hipMemcpy(device, device + 4000, 97, hipMemcpyDefault) == hipErrorInvalidValue);
    CHECK(hip.hipMemset(device + 4096, 0, 1) == hipErrorInvalidValue);
    CHECK(hip.hipMemsetD32(device, 0, ~size_t(0)) == hipErrorInvalidValue);
    CHECK(hip.hipMemcpyHtoDAsync(device + 4095, host.data(), 2, nullptr) == hipErrorInvalidValue);
  }
  SECTION("wrong pointers and directions are refused") {
    CHECK(hip.hipMemcpy(host.data(), back.data(), 10, hipMemcpyHostToDevice) == hipErrorInvalidValue);
    CHECK(hip.hipMemcpy(device, host.data(), 10, hipMemcpyKind(9)) == hipErrorInvalidMemcpyDirection);
    CHECK(hip.hipMemcpy(nullptr, host.data(), 10, hipMemcpyHostToDevice) == hipErrorInvalidValue);
    CHECK(hip.hipMemset(nullptr, 0, 10) == hipErrorInvalidValue);
    CHECK(hip.hipFree(device + 1) == hipErrorInvalidValue);
    CHECK(hip.hipFree(host.data()) == hipErrorInvalidValue);
    CHECK(hip.hipHostFree(device) == hipErrorInvalidValue);
    CHECK(hip.hipMalloc(nullptr, 10) == hipErrorInvalidValue);
    void *huge = &huge;
    CHECK(hip.hipMalloc(&huge, size_t(1) << 60) == hipErrorOutOfMemory);
  }
  CHECK(hip.hipFree(device) == hipSuccess);
  CHECK(hip.hipFree(device) == hipErrorInvalidValue);
  CHECK(hip.hipMemset(device, 0, 1) == hipErrorInvalidValue);
  CHECK(hip.hipFree(nullptr) == hipSuccess);
  void *empty = &empty;
  CHECK(hip.hipMalloc(&empty, 0) == hipSuccess);
  CHECK(empty == nullptr);
  hip.hipMemGetInfo(&during, &total);
  CHECK(during == before);
  hip.hipGetLastError();
}

TEST_CASE("host memory is pinned, registered and distinguished from device memory", "[hip]") {
  void *pinned = nullptr;
  void *device = nullptr;
  REQUIRE(hip.hipHostMalloc(&pinned, 8192, 0) == hipSuccess);
  REQUIRE(hip.hipMalloc(&device, 64) == hipSuccess);
  std::memset(pinned, 1, 8192);
  hipPointerAttribute_t attributes;
  CHECK(hip.hipPointerGetAttributes(&attributes, static_cast<char *>(pinned) + 8191) == hipSuccess);
  CHECK(attributes.type == hipMemoryTypeHost);
  CHECK(hip.hipPointerGetAttributes(&attributes, device) == hipSuccess);
  CHECK(attributes.type == hipMemoryTypeDevice);
  CHECK(attributes.devicePointer == device);
  CHECK(hip.hipPointerGetAttributes(&attributes, &attributes) == hipSuccess);
  CHECK(attributes.type == hipMemoryTypeUnregistered);
  void *alias = nullptr;
  CHECK(hip.hipHostGetDevicePointer(&alias, pinned, 0) == hipSuccess);
  CHECK(alias == pinned);
  CHECK(hip.hipFree(pinned) == hipErrorInvalidValue);
  CHECK(hip.hipHostUnregister(pinned) == hipErrorHostMemoryNotRegistered);
  CHECK(hip.hipHostFree(pinned) == hipSuccess);
  CHECK(hip.hipHostFree(pinned) == hipErrorInvalidValue);

  std::vector<char> own(10000);
  CHECK(hip.hipHostRegister(own.data(), own.size(), 0) == hipSuccess);
  CHECK(hip.hipHostRegister(own.data() + 10, 10, 0) == hipErrorHostMemoryAlreadyRegistered);
  CHECK(hip.hipPointerGetAttributes(&attributes, own.data() + 5000) == hipSuccess);
  CHECK(attributes.type == hipMemoryTypeHost);
  CHECK(hip.hipHostFree(own.data()) == hipErrorInvalidValue);
  CHECK(hip.hipHostUnregister(own.data()) == hipSuccess);
  CHECK(hip.hipHostUnregister(own.data()) == hipErrorHostMemoryNotRegistered);
  CHECK(hip.hipFree(device) == hipSuccess);
  hip.hipGetLastError();
}

TEST_CASE("ranges that wrap, or leave the address space, are refused", "[hip]") {
  Fixture fixture;
  // Its code object does not describe its arguments: it would get all of them.
  const std::vector<std::byte> elf = read_file(SLUICE_CODE_OBJECT_MANY_HAZARDS);
  hipModule_t module = nullptr;
  hipFunction_t undescribed = nullptr;
  REQUIRE(hip.hipModuleLoadData(&module, elf.data()) == hipSuccess);
  REQUIRE(hip.hipModuleGetFunction(&undescribed, module, "many_hazards") == hipSuccess);
  std::vector<char> own(64, 5);
  const uint64_t start = reinterpret_cast<uint64_t>(own.data());
  const uint64_t space_end = uint64_t(1) << 48;
  hipPointerAttribute_t attributes;
  for (size_t size : {SIZE_MAX, SIZE_MAX - start, SIZE_MAX - start + 1, SIZE_MAX - start + 2,
                      size_t(space_end - start), size_t(space_end - start + 1)}) {
    INFO(size);
    CHECK(hip.hipHostRegister(own.data(), size, 0) == hipErrorInvalidValue);
    CHECK(hip.hipPointerGetAttributes(&attributes, own.data()) == hipSuccess);
    CHECK(attributes.type == hipMemoryTypeUnregistered);
    CHECK(hip.hipMemcpy(fixture.buffer, own.data(), size, hipMemcpyHostToDevice) == hipErrorInvalidValue);
    size_t argument_bytes = size;
    void *extra[] = {reinterpret_cast<void *>(1), own.data(), reinterpret_cast<void *>(2), &argument_bytes,
                     reinterpret_cast<void *>(3)};
    if (start + size < start || start + size > space_end) {
      CHECK(hip.hipMemcpy(own.data(), own.data(), size, hipMemcpyHostToHost) == hipErrorInvalidValue);
      CHECK(hip.hipModuleLaunchKernel(undescribed, 1, 1, 1, 64, 1, 1, 0, nullptr, nullptr, extra) ==
            hipErrorInvalidValue);
    }
    CHECK(hip.hipMemset(fixture.buffer, 0, size) == hipErrorInvalidValue);
    CHECK(hip.hipMemsetD32(fixture.buffer, 0, size) == hipErrorInvalidValue);
    CHECK(hip.hipMalloc(reinterpret_cast<void **>(&attributes.devicePointer), size) == hipErrorOutOfMemory);
    CHECK(hip.hipMallocAsync(reinterpret_cast<void **>(&attributes.devicePointer), size, nullptr) ==
          hipErrorOutOfMemory);
    CHECK(sluice_emulator_watch(own.data(), size / 4 * 4, nullptr, nullptr) ==
          (size / 4 * 4 <= space_end - start ? SLUICE_EMULATOR_OK : SLUICE_EMULATOR_BAD_VALUE));
    sluice_emulator_unwatch(own.data());
  }
  CHECK(hip.hipModuleUnload(module) == hipSuccess);
  // Rows whose sum wraps to a small number.
  const size_t half = size_t(1) << 32;
  CHECK(hip.hipMemcpy2D(own.data(), half, fixture.buffer, half, 4, half + 1, hipMemcpyDeviceToHost) ==
        hipErrorInvalidValue);
  CHECK(hip.hipMemset2D(fixture.buffer, half, 1, 4, half + 1) == hipErrorInvalidValue);
  hipMemcpy3DParms slices = {};
  slices.srcPtr = {fixture.buffer, half, half, half};
  slices.dstPtr = {own.data(), 16, 16, 1};
  slices.extent = {16, 1, 1};
  slices.kind = hipMemcpyDeviceToHost;
  CHECK(hip.hipMemcpy3D(&slices) == hipErrorInvalidValue);
  slices.srcPtr = {fixture.buffer, 16, 16, 1};
  slices.srcPos = {SIZE_MAX, 0, 0};
  CHECK(hip.hipMemcpy3D(&slices) == hipErrorInvalidValue);
  slices.srcPos = {0, 0, 0};
  CHECK(hip.hipMemcpy3D(&slices) == hipSuccess);
  // More memory than the host has.
  const long page = sysconf(_SC_PAGESIZE);
  void *const pages =
      mmap(nullptr, size_t(2 * page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(pages != MAP_FAILED);
  REQUIRE(munmap(static_cast<char *>(pages) + page, size_t(page)) == 0);
  CHECK(hip.hipHostRegister(pages, size_t(page) + 1, 0) == hipErrorInvalidValue);
  CHECK(hip.hipHostRegister(pages, size_t(page), 0) == hipSuccess);
  CHECK(hip.hipHostUnregister(pages) == hipSuccess);
  munmap(pages, size_t(page));
  hip.hipGetLastError();
}

TEST_CASE("copies from memory that is not pinned leave it free at once", "[hip]") {
  Fixture fixture;
  hipStream_t stream = nullptr;
  REQUIRE(hip.hipStreamCreateWithFlags(&stream, hipStreamNonBlocking) == hipSuccess);
  std::atomic<bool> go{false};
  auto hold = [](void *user) {
    while (!static_cast<std::atomic<bool> *>(user)->load())
      std::this_thread::yield();
  };
  CHECK(hip.hipLaunchHostFunc(stream, hold, &go) == hipSuccess);
  std::vector<int> values(10, 8);
  CHECK(hip.hipMemcpyHtoDAsync(fixture.buffer, values.data(), 40, stream) == hipSuccess);
  std::fill(values.begin(), values.end(), 9); // the copy has not run yet, and must not see this
  CHECK(hip.hipMemsetD32Async(fixture.buffer + 5, 77, 2, stream) == hipSuccess);
  CHECK(hip.hipMemcpyDtoDAsync(fixture.buffer + 20, fixture.buffer, 40, stream) == hipSuccess);
  std::thread release([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    go = true;
  });
  std::vector<int> back(10);
  CHECK(hip.hipMemcpyDtoHAsync(back.data(), fixture.buffer + 20, 40, stream) == hipSuccess);
  CHECK(back == std::vector<int>({8, 8, 8, 8, 8, 77, 77, 8, 8, 8})); // there when the call returns
  release.join();
  void *temporary = nullptr;
  CHECK(hip.hipMallocAsync(&temporary, 256, stream) == hipSuccess);
  CHECK(hip.hipMemsetAsync(temporary, 1, 256, stream) == hipSuccess);
  CHECK(hip.hipFreeAsync(temporary, stream) == hipSuccess);
  CHECK(hip.hipStreamSynchronize(stream) == hipSuccess);
  CHECK(hip.hipFree(temporary) == hipErrorInvalidValue);
  CHECK(hip.hipStreamDestroy(stream) == hipSuccess);
}

TEST_CASE("reading uninitialised memory is reported, wherever it came from", "[hip]") {
  const std::vector<std::byte> elf = read_file(SLUICE_CODE_OBJECT_COPY_WORDS);
  hipModule_t module = nullptr;
  hipFunction_t copy_words = nullptr;
  REQUIRE(hip.hipModuleLoadData(&module, elf.data()) == hipSuccess);
  REQUIRE(hip.hipModuleGetFunction(&copy_words, module, "copy_words") == hipSuccess);
  constexpr size_t bytes = 256;
  char *in = nullptr, *out = nullptr, *other = nullptr, *pinned = nullptr;
  for (char **pointer : {&in, &out, &other})
    REQUIRE(hip.hipMalloc(reinterpret_cast<void **>(pointer), bytes) == hipSuccess);
  REQUIRE(hip.hipHostMalloc(reinterpret_cast<void **>(&pinned), bytes, 0) == hipSuccess);
  std::vector<char> host(bytes, 'x');
  auto copies = [&](char *from) {
    void *parameters[] = {&out, &from};
    CHECK(hip.hipModuleLaunchKernel(copy_words, 1, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr) ==
          hipSuccess);
    const bool ok = hip.hipDeviceSynchronize() == hipSuccess;
    const std::string reports = take_reports();
    CHECK((reports.find("register_uninitialised") == std::string::npos) == ok);
    if (!ok) CHECK_THAT(reports, Catch::Contains("was loaded from memory that was never written"));
    sluice_emulator_configure("clear_fault", "1");
    hip.hipGetLastError();
    return ok;
  };
  CHECK_FALSE(copies(in));
  SECTION("set") {
    CHECK(hip.hipMemset(in, 0, bytes - 4) == hipSuccess);
    CHECK_FALSE(copies(in)); // the last dword is missing
    CHECK(hip.hipMemsetD8(in + bytes - 4, 0, 3) == hipSuccess);
    CHECK_FALSE(copies(in)); // its last byte is
    CHECK(hip.hipMemsetD8(in + bytes - 1, 0, 1) == hipSuccess);
    CHECK(copies(in));
  }
  SECTION("copied from the host, at once or later") {
    CHECK(hip.hipMemcpy(in, host.data(), bytes / 2, hipMemcpyHostToDevice) == hipSuccess);
    CHECK(hip.hipMemcpyHtoDAsync(in + bytes / 2, host.data(), bytes / 2, nullptr) == hipSuccess);
    CHECK(copies(in));
  }
  SECTION("copied on the device, with parts never written") {
    CHECK(hip.hipMemset(in, 0, bytes) == hipSuccess);
    CHECK(copies(in));
    CHECK(hip.hipMemcpyDtoD(in + 64, other, 4) == hipSuccess);
    CHECK_FALSE(copies(in));
  }
  SECTION("written by a kernel") {
    CHECK(hip.hipMemset(in, 0, bytes) == hipSuccess);
    CHECK(copies(in));
    CHECK(copies(out));
  }
  SECTION("host memory counts as written") {
    CHECK(copies(pinned));
  }
  for (char *pointer : {in, out, other})
    CHECK(hip.hipFree(pointer) == hipSuccess);
  CHECK(hip.hipHostFree(pinned) == hipSuccess);
  CHECK(hip.hipModuleUnload(module) == hipSuccess);
}

TEST_CASE("work on memory that is freed before it runs is a fault", "[hip]") {
  Fixture fixture;
  hipStream_t stream = nullptr;
  REQUIRE(hip.hipStreamCreate(&stream) == hipSuccess);
  REQUIRE(sluice_emulator_configure("stream_order", "1") == SLUICE_EMULATOR_OK); // nothing runs before a wait
  const bool checked = GENERATE(true, false);
  REQUIRE(sluice_emulator_configure("stream_races", checked ? "on" : "off") == SLUICE_EMULATOR_OK);
  const size_t bytes = GENERATE(size_t(4096), (size_t(64) << 20) + 4096);
  const bool copies = GENERATE(true, false);
  void *memory = nullptr;
  CHECK(hip.hipMallocAsync(&memory, bytes, stream) == hipSuccess);
  CHECK(hip.hipFreeAsync(memory, stream) == hipSuccess);
  CHECK(hip.hipFreeAsync(memory, stream) == hipErrorInvalidValue); // once is enough
  if (copies)
    CHECK(hip.hipMemcpyAsync(memory, fixture.buffer, 400, hipMemcpyDeviceToDevice, stream) == hipSuccess);
  else
    CHECK(hip.hipMemsetAsync(memory, 1, bytes, stream) == hipSuccess);
  CHECK(hip.hipStreamSynchronize(stream) == hipErrorIllegalAddress);
  const std::string text = take_reports();
  INFO(text);
  CHECK(text.find("\"global_freed\"") != std::string::npos);
  CHECK(text.find(copies ? "copy of 400 bytes" : "fill of " + std::to_string(bytes) + " bytes") !=
        std::string::npos);
  CHECK(text.find("touches memory that is freed before it runs") != std::string::npos);
  CHECK(sluice_emulator_configure("clear_fault", "1") == SLUICE_EMULATOR_OK);
  CHECK(hip.hipFree(memory) == hipErrorInvalidValue);
  CHECK(hip.hipStreamDestroy(stream) == hipSuccess);
}

TEST_CASE("a graph's copies and fills use the memory at their addresses at launch", "[hip]") {
  Fixture fixture;
  hipStream_t stream = nullptr;
  REQUIRE(hip.hipStreamCreate(&stream) == hipSuccess);
  constexpr size_t bytes = (64 << 20) + 4096; // no quarantine: the address is free again
  void *memory = nullptr, *again = nullptr;
  REQUIRE(hip.hipMalloc(&memory, bytes) == hipSuccess);
  hipGraph_t graph = nullptr;
  hipGraphNode_t node = nullptr, copy = nullptr;
  hipGraphExec_t exec = nullptr;
  REQUIRE(hip.hipGraphCreate(&graph, 0) == hipSuccess);
  const hipMemsetParams fill{memory, 1, 1, 0, 7, 16};
  CHECK(hip.hipGraphAddMemsetNode(&node, graph, nullptr, 0, &fill) == hipSuccess);
  CHECK(hip.hipGraphAddMemcpyNode1D(&copy, graph, &node, 1, fixture.buffer, memory, 16,
                                    hipMemcpyDeviceToDevice) == hipSuccess);
  CHECK(hip.hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0) == hipSuccess);
  CHECK(hip.hipGraphLaunch(exec, stream) == hipSuccess);
  CHECK(hip.hipStreamSynchronize(stream) == hipSuccess);
  CHECK(fixture.contents()[3] == 0x07070707);
  CHECK(hip.hipFree(memory) == hipSuccess);

  REQUIRE(hip.hipMalloc(&again, bytes) == hipSuccess);
  if (again == memory) { // as the host's kernel decides
    CHECK(hip.hipMemset(fixture.buffer, 0, 16) == hipSuccess);
    CHECK(hip.hipGraphLaunch(exec, stream) == hipSuccess);
    CHECK(hip.hipStreamSynchronize(stream) == hipSuccess);
    CHECK(fixture.contents()[3] == 0x07070707);
    CHECK(take_reports() == "[]");
  } else {
    WARN("the address was not used again");
  }
  CHECK(hip.hipFree(again) == hipSuccess);

  CHECK(hip.hipGraphLaunch(exec, stream) == hipSuccess);
  CHECK(hip.hipStreamSynchronize(stream) == hipErrorIllegalAddress);
  const std::string text = take_reports();
  CHECK(text.find("\"global_freed\"") != std::string::npos);
  CHECK(text.find("fill of 16 bytes") != std::string::npos);
  CHECK(sluice_emulator_configure("clear_fault", "1") == SLUICE_EMULATOR_OK);
  CHECK(hip.hipGraphExecDestroy(exec) == hipSuccess);
  CHECK(hip.hipGraphDestroy(graph) == hipSuccess);
  CHECK(hip.hipStreamDestroy(stream) == hipSuccess);
}

TEST_CASE("work on freed memory does not change new memory at its address", "[hip]") {
  Fixture fixture;
  constexpr size_t bytes = (64 << 20) + 4096; // no quarantine: the address is free again
  int used_again = 0;
  for (int seed = 0; seed < 20; ++seed) {
    hipStream_t frees = nullptr, fills = nullptr;
    REQUIRE(hip.hipStreamCreateWithFlags(&frees, hipStreamNonBlocking) == hipSuccess);
    REQUIRE(hip.hipStreamCreateWithFlags(&fills, hipStreamNonBlocking) == hipSuccess);
    REQUIRE(sluice_emulator_configure("stream_order", std::to_string(seed).c_str()) == SLUICE_EMULATOR_OK);
    void *memory = nullptr, *again = nullptr;
    REQUIRE(hip.hipMalloc(&memory, bytes) == hipSuccess);
    CHECK(hip.hipMemsetAsync(memory, 1, 4, fills) == hipSuccess);
    CHECK(hip.hipFreeAsync(memory, frees) == hipSuccess);
    CHECK(hip.hipStreamSynchronize(frees) == hipSuccess);
    REQUIRE(hip.hipMalloc(&again, bytes) == hipSuccess);
    used_again += again == memory;
    CHECK(hip.hipMemset(again, 9, 4) == hipSuccess);
    CHECK(hip.hipStreamSynchronize(fills) == hipSuccess);
    int value = 0;
    CHECK(hip.hipMemcpy(&value, again, 4, hipMemcpyDeviceToHost) == hipSuccess);
    CHECK(value == 0x09090909);
    CHECK(take_reports().find("\"freed_in_use\"") != std::string::npos);
    CHECK(hip.hipFree(again) == hipSuccess);
    CHECK(hip.hipStreamDestroy(frees) == hipSuccess);
    CHECK(hip.hipStreamDestroy(fills) == hipSuccess);
  }
  if (used_again == 0) WARN("no address was used again");
}

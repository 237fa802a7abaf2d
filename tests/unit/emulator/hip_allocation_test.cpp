//===- hip_allocation_test.cpp - memory by all of HIP's functions that allocate it ----------------------===//

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

#include "unit/emulator/hip_fixture.h"
#include <sluice/emulator.h>

using namespace sluice::test;

TEST_CASE("pitched memory has aligned rows", "[hip]") {
  void *memory = nullptr;
  size_t pitch = 0;
  REQUIRE(hip.hipMallocPitch(&memory, &pitch, 300, 7) == hipSuccess);
  CHECK(pitch == 512);
  hipDeviceptr_t start = nullptr;
  size_t bytes = 0;
  CHECK(hip.hipMemGetAddressRange(&start, &bytes, static_cast<char *>(memory) + 600) == hipSuccess);
  CHECK(start == memory);
  CHECK(bytes == 7 * 512);
  CHECK(hip.hipMemPtrGetInfo(memory, &bytes) == hipSuccess);
  CHECK(bytes == 7 * 512);
  CHECK(hip.hipMemset2D(memory, pitch, 1, 300, 7) == hipSuccess);
  CHECK(hip.hipMemset2D(memory, pitch, 1, 512, 8) == hipErrorInvalidValue);
  CHECK(hip.hipFree(memory) == hipSuccess);

  CHECK(hip.hipMallocPitch(&memory, &pitch, 0, 7) == hipSuccess);
  CHECK(memory == nullptr);
  CHECK(hip.hipMallocPitch(&memory, &pitch, SIZE_MAX - 3, 1) == hipErrorInvalidValue);
  CHECK(hip.hipMallocPitch(&memory, &pitch, size_t(1) << 40, size_t(1) << 40) == hipErrorOutOfMemory);
  CHECK(hip.hipMallocPitch(&memory, nullptr, 300, 7) == hipErrorInvalidValue);

  CHECK(hip.hipMemAllocPitch(&memory, &pitch, 256, 2, 8) == hipSuccess);
  CHECK(pitch == 256);
  CHECK(hip.hipFree(memory) == hipSuccess);
  CHECK(hip.hipMemAllocPitch(&memory, &pitch, 256, 2, 5) == hipErrorInvalidValue);
  CHECK(hip.hipMemAllocPitch(&memory, &pitch, 0, 2, 4) == hipErrorInvalidValue);

  hipPitchedPtr volume{};
  REQUIRE(hip.hipMalloc3D(&volume, {100, 3, 2}) == hipSuccess);
  CHECK((volume.pitch == 256 && volume.xsize == 100 && volume.ysize == 3));
  CHECK(hip.hipMemPtrGetInfo(volume.ptr, &bytes) == hipSuccess);
  CHECK(bytes == 6 * 256);
  CHECK(hip.hipFree(volume.ptr) == hipSuccess);
  CHECK(hip.hipMemPtrGetInfo(volume.ptr, &bytes) == hipErrorInvalidValue);
  CHECK(hip.hipMemGetAddressRange(&start, &bytes, volume.ptr) == hipErrorNotFound);
  CHECK(hip.hipMalloc3D(nullptr, {1, 1, 1}) == hipErrorInvalidValue);
  hip.hipGetLastError();
}

TEST_CASE("device memory has one kind, with every flag", "[hip]") {
  void *memory = nullptr;
  for (unsigned flags : {0u, 1u, 3u, 4u}) {
    CHECK(hip.hipExtMallocWithFlags(&memory, 100, flags) == hipSuccess);
    CHECK(hip.hipFree(memory) == hipSuccess);
  }
  CHECK(hip.hipExtMallocWithFlags(&memory, 8, 2) == hipSuccess);
  CHECK(hip.hipFree(memory) == hipSuccess);
  CHECK(hip.hipExtMallocWithFlags(&memory, 100, 2) == hipErrorInvalidValue);
  CHECK(hip.hipExtMallocWithFlags(&memory, 100, 5) == hipErrorInvalidValue);
  hip.hipGetLastError();
}

TEST_CASE("host memory has one kind, under all its names", "[hip]") {
  Fixture fixture;
  void *pointer[4] = {};
  CHECK(hip.hipHostAlloc(&pointer[0], 4000, 7) == hipSuccess);
  CHECK(hip.hipMallocHost(&pointer[1], 4000) == hipSuccess);
  CHECK(hip.hipMemAllocHost(&pointer[2], 4000) == hipSuccess);
  CHECK(hip.hipExtHostAlloc(&pointer[3], 4000, 0) == hipSuccess);
  for (void *memory : pointer) {
    REQUIRE(memory != nullptr);
    CHECK(fixture.launch(9, Fixture::elements, nullptr, memory) == hipSuccess);
    CHECK(hip.hipDeviceSynchronize() == hipSuccess);
    CHECK(static_cast<int *>(memory)[999] == 9 + 999);
  }
  unsigned flags = 77;
  CHECK(hip.hipHostGetFlags(&flags, pointer[0]) == hipSuccess);
  CHECK(flags == 7);
  CHECK(hip.hipHostGetFlags(&flags, pointer[1]) == hipSuccess);
  CHECK(flags == 0);
  CHECK(hip.hipHostGetFlags(&flags, fixture.buffer) == hipErrorInvalidValue);
  CHECK(hip.hipHostAlloc(&pointer[0], 4000, 8) == hipErrorInvalidValue);
  CHECK(hip.hipMallocHost(nullptr, 4000) == hipErrorInvalidValue);
  for (void *memory : pointer)
    CHECK(hip.hipFreeHost(memory) == hipSuccess);
  CHECK(hip.hipFreeHost(pointer[0]) == hipErrorInvalidValue);
  CHECK(hip.hipFreeHost(fixture.buffer) == hipErrorInvalidValue);
  CHECK(hip.hipFreeHost(nullptr) == hipSuccess);
  hip.hipGetLastError();
}

TEST_CASE("fills of bytes and words are also asynchronous", "[hip]") {
  Fixture fixture;
  CHECK(hip.hipMemsetD8Async(fixture.buffer, 0x11, 4, nullptr) == hipSuccess);
  CHECK(hip.hipMemsetD16Async(fixture.buffer + 1, 0x2233, 2, nullptr) == hipSuccess);
  const std::vector<int> values = fixture.contents();
  CHECK(values[0] == 0x11111111);
  CHECK(values[1] == 0x22332233);
  CHECK(values[2] == 0);
  CHECK(hip.hipMemsetD16Async(fixture.buffer, 1, 2001, nullptr) == hipErrorInvalidValue);
  CHECK(hip.hipMemsetD8Async(nullptr, 1, 1, nullptr) == hipErrorInvalidValue);
  hip.hipGetLastError();
}

TEST_CASE("modules load from files", "[hip]") {
  hipModule_t module = nullptr;
  REQUIRE(hip.hipModuleLoad(&module, SLUICE_CODE_OBJECT_HIP_KERNELS) == hipSuccess);
  hipFunction_t function = nullptr;
  CHECK(hip.hipModuleGetFunction(&function, module, "fill") == hipSuccess);
  unsigned count = 0;
  CHECK(hip.hipModuleGetFunctionCount(&count, module) == hipSuccess);
  CHECK(count == 2);
  CHECK(hip.hipModuleGetFunctionCount(nullptr, module) == hipErrorInvalidValue);
  CHECK(hip.hipModuleUnload(module) == hipSuccess);
  CHECK(hip.hipModuleGetFunctionCount(&count, module) == hipErrorInvalidHandle);
  CHECK(hip.hipModuleLoadFatBinary(&module, two_kernels().data()) == hipSuccess);
  CHECK(hip.hipModuleUnload(module) == hipSuccess);
  CHECK(hip.hipModuleLoad(&module, "/none/such") == hipErrorFileNotFound);
  CHECK(hip.hipModuleLoad(&module, nullptr) == hipErrorInvalidValue);

  // Cut short anywhere, or another kind of file: an error.
  const std::vector<std::byte> &whole = two_kernels();
  char path[] = "/tmp/sluice-module-XXXXXX";
  const int descriptor = mkstemp(path);
  REQUIRE(descriptor >= 0);
  close(descriptor);
  for (size_t size : {size_t(0), size_t(3), size_t(23), size_t(64), whole.size() / 2, whole.size() - 1}) {
    std::FILE *const file = std::fopen(path, "wb");
    REQUIRE(file != nullptr);
    CHECK(std::fwrite(whole.data(), 1, size, file) == size);
    std::fclose(file);
    INFO(size);
    CHECK(hip.hipModuleLoad(&module, path) == hipErrorInvalidImage);
  }
  std::remove(path);
  hip.hipGetLastError();
}

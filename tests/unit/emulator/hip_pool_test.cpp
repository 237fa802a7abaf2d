//===- hip_pool_test.cpp - memory pools, managed memory, copies of rows ---------------------------------===//

#include <catch2/catch.hpp>
#include <cstring>

#include "unit/emulator/hip_fixture.h"

using namespace sluice::test;

namespace {

uint64_t attribute(hipMemPool_t pool, hipMemPoolAttr which) {
  uint64_t value = ~uint64_t(0);
  CHECK(hip.hipMemPoolGetAttribute(pool, which, &value) == hipSuccess);
  return value;
}

} // namespace

TEST_CASE("a pool counts its allocations", "[hip][pool]") {
  hipMemPoolProps properties{};
  properties.allocType = hipMemAllocationTypePinned;
  properties.location = {hipMemLocationTypeDevice, 0};
  properties.maxSize = 10000;
  hipMemPool_t pool = nullptr;
  REQUIRE(hip.hipMemPoolCreate(&pool, &properties) == hipSuccess);
  void *first = nullptr;
  void *second = nullptr;
  void *too_much = &pool;
  CHECK(hip.hipMallocFromPoolAsync(&first, 4000, pool, nullptr) == hipSuccess);
  CHECK(hip.hipMallocFromPoolAsync(&second, 6000, pool, nullptr) == hipSuccess);
  CHECK(hip.hipMallocFromPoolAsync(&too_much, 1, pool, nullptr) == hipErrorOutOfMemory);
  CHECK(attribute(pool, hipMemPoolAttrUsedMemCurrent) == 10000);
  CHECK(hip.hipFreeAsync(first, nullptr) == hipSuccess);
  CHECK(hip.hipDeviceSynchronize() == hipSuccess);
  CHECK(attribute(pool, hipMemPoolAttrUsedMemCurrent) == 6000);
  CHECK(attribute(pool, hipMemPoolAttrReservedMemCurrent) == 6000);
  CHECK(attribute(pool, hipMemPoolAttrUsedMemHigh) == 10000);
  uint64_t value = 1;
  CHECK(hip.hipMemPoolSetAttribute(pool, hipMemPoolAttrUsedMemHigh, &value) == hipErrorInvalidValue);
  value = 0;
  CHECK(hip.hipMemPoolSetAttribute(pool, hipMemPoolAttrUsedMemHigh, &value) == hipSuccess);
  CHECK(attribute(pool, hipMemPoolAttrUsedMemHigh) == 6000);
  CHECK(hip.hipMemPoolSetAttribute(pool, hipMemPoolAttrUsedMemCurrent, &value) == hipErrorInvalidValue);
  CHECK(hip.hipMemPoolSetAttribute(pool, hipMemPoolAttr(9), &value) == hipErrorInvalidValue);
  value = 123456;
  CHECK(hip.hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &value) == hipSuccess);
  CHECK(attribute(pool, hipMemPoolAttrReleaseThreshold) == 123456);
  int off = 0;
  CHECK(hip.hipMemPoolSetAttribute(pool, hipMemPoolReuseAllowOpportunistic, &off) == hipSuccess);
  int reuse = 9;
  CHECK(hip.hipMemPoolGetAttribute(pool, hipMemPoolReuseAllowOpportunistic, &reuse) == hipSuccess);
  CHECK(reuse == 0);
  CHECK(hip.hipMemPoolGetAttribute(pool, hipMemPoolReuseFollowEventDependencies, &reuse) == hipSuccess);
  CHECK(reuse == 1);
  CHECK(hip.hipMemPoolTrimTo(pool, 0) == hipSuccess);

  // The current pool serves hipMallocAsync; a destroyed one still owns its allocations.
  hipMemPool_t standard = nullptr;
  hipMemPool_t current = nullptr;
  CHECK(hip.hipDeviceGetDefaultMemPool(&standard, 0) == hipSuccess);
  CHECK(hip.hipDeviceGetMemPool(&current, 0) == hipSuccess);
  CHECK(current == standard);
  CHECK(hip.hipDeviceSetMemPool(0, pool) == hipSuccess);
  CHECK(hip.hipMallocAsync(&first, 1000, nullptr) == hipSuccess);
  CHECK(attribute(pool, hipMemPoolAttrUsedMemCurrent) == 7000);
  CHECK(hip.hipFree(first) == hipSuccess);
  CHECK(attribute(pool, hipMemPoolAttrUsedMemCurrent) == 6000);
  CHECK(hip.hipMemPoolDestroy(pool) == hipSuccess);
  CHECK(hip.hipDeviceGetMemPool(&current, 0) == hipSuccess);
  CHECK(current == standard);
  CHECK(hip.hipFree(second) == hipSuccess);
  CHECK(hip.hipMemPoolDestroy(pool) == hipErrorInvalidValue);
  CHECK(hip.hipMemPoolDestroy(standard) == hipErrorInvalidValue);
  CHECK(hip.hipMallocFromPoolAsync(&first, 1, pool, nullptr) == hipErrorInvalidValue);
  CHECK(hip.hipDeviceGetDefaultMemPool(&standard, 1) == hipErrorInvalidDevice);
  CHECK(hip.hipDeviceSetMemPool(0, pool) == hipErrorInvalidValue);
  properties.allocType = 0;
  CHECK(hip.hipMemPoolCreate(&pool, &properties) == hipErrorInvalidValue);
  properties = {hipMemAllocationTypePinned, 1, {hipMemLocationTypeDevice, 0}, nullptr, 0, {}};
  CHECK(hip.hipMemPoolCreate(&pool, &properties) == hipErrorNotSupported);
  properties.location.id = 1;
  CHECK(hip.hipMemPoolCreate(&pool, &properties) == hipErrorInvalidDevice);
  hip.hipGetLastError();
}

TEST_CASE("managed memory is reached by both sides", "[hip]") {
  Fixture fixture;
  int *both = nullptr;
  CHECK(hip.hipMallocManaged(reinterpret_cast<void **>(&both), 400, 0) == hipErrorInvalidValue);
  CHECK(hip.hipMallocManaged(reinterpret_cast<void **>(&both), 0, 1) == hipErrorInvalidValue);
  REQUIRE(hip.hipMallocManaged(reinterpret_cast<void **>(&both), 400, hipMemAttachGlobal) == hipSuccess);
  both[99] = 17;
  CHECK(hip.hipMemPrefetchAsync(both, 400, 0, nullptr) == hipSuccess);
  CHECK(hip.hipMemPrefetchAsync(both + 50, 200, hipCpuDeviceId, nullptr) == hipSuccess);
  CHECK(hip.hipMemPrefetchAsync(both, 401, 0, nullptr) == hipErrorInvalidValue);
  CHECK(hip.hipMemPrefetchAsync(fixture.buffer, 4, 0, nullptr) == hipErrorInvalidValue);
  CHECK(hip.hipMemPrefetchAsync(both, 400, 1, nullptr) == hipErrorInvalidDevice);
  CHECK(hip.hipMemAdvise(both, 400, hipMemAdviseSetReadMostly, 0) == hipSuccess);
  CHECK(hip.hipMemAdvise(both, 400, hipMemoryAdvise(7), 0) == hipErrorInvalidValue);
  CHECK(hip.hipMemAdvise(both, 401, hipMemAdviseSetReadMostly, 0) == hipErrorInvalidValue);
  CHECK(fixture.launch(3, 50, nullptr, both) == hipSuccess);
  CHECK(hip.hipDeviceSynchronize() == hipSuccess);
  CHECK(both[49] == 52);
  CHECK(both[99] == 17);
  hipPointerAttribute_t attributes;
  CHECK(hip.hipPointerGetAttributes(&attributes, both + 3) == hipSuccess);
  CHECK(attributes.type == hipMemoryTypeManaged);
  CHECK(attributes.isManaged == 1);
  CHECK(attributes.hostPointer == both + 3);
  CHECK(hip.hipHostFree(both) == hipErrorInvalidValue);
  CHECK(hip.hipFree(both + 1) == hipErrorInvalidValue);
  CHECK(hip.hipFree(both) == hipSuccess);
  CHECK(hip.hipFree(both) == hipErrorInvalidValue);
}

TEST_CASE("rows are copied and filled, and bytes between them are unchanged", "[hip]") {
  Fixture fixture;
  hipStream_t stream = nullptr;
  REQUIRE(hip.hipStreamCreate(&stream) == hipSuccess);
  std::vector<char> source(10 * 3);
  for (size_t i = 0; i < source.size(); ++i)
    source[i] = char(i + 1);
  std::vector<char> expected(4000), found(4000);
  for (size_t y = 0; y < 3; ++y)
    std::memcpy(expected.data() + y * 16, source.data() + y * 10, 7);
  const bool waits = GENERATE(true, false);
  void *const to = fixture.buffer;
  if (waits)
    CHECK(hip.hipMemcpy2D(to, 16, source.data(), 10, 7, 3, hipMemcpyHostToDevice) == hipSuccess);
  else
    CHECK(hip.hipMemcpy2DAsync(to, 16, source.data(), 10, 7, 3, hipMemcpyHostToDevice, stream) == hipSuccess);
  std::fill(source.begin(), source.end(), char(0)); // read already
  CHECK(hip.hipMemcpyWithStream(found.data(), to, 4000, hipMemcpyDeviceToHost, stream) == hipSuccess);
  CHECK(found == expected);

  for (size_t y = 0; y < 4; ++y)
    std::memset(expected.data() + y * 32, 9, 5);
  if (waits)
    CHECK(hip.hipMemset2D(to, 32, 0x109, 5, 4) == hipSuccess);
  else
    CHECK(hip.hipMemset2DAsync(to, 32, 0x109, 5, 4, stream) == hipSuccess);
  CHECK(hip.hipMemcpyWithStream(found.data(), to, 4000, hipMemcpyDeviceToHost, stream) == hipSuccess);
  CHECK(found == expected);

  hipMemcpy3DParms copy{};
  copy.srcPtr = {to, 32, 32, 2};
  copy.dstPtr = {found.data(), 5, 5, 2};
  copy.extent = {5, 2, 2};
  copy.kind = hipMemcpyDeviceToHost;
  found.assign(21, 1);
  CHECK((waits ? hip.hipMemcpy3D(&copy) : hip.hipMemcpy3DAsync(&copy, stream)) == hipSuccess);
  std::vector<char> packed(20, 9);
  packed.push_back(1);
  CHECK(found == packed);
  CHECK(hip.hipMemcpy3D(nullptr) == hipErrorInvalidValue);

  CHECK(hip.hipMemcpy2D(to, 6, source.data(), 10, 7, 3, hipMemcpyHostToDevice) == hipErrorInvalidPitchValue);
  CHECK(hip.hipMemcpy2D(to, 16, source.data(), 6, 7, 3, hipMemcpyHostToDevice) == hipErrorInvalidPitchValue);
  CHECK(hip.hipMemcpy2D(to, 2000, source.data(), 10, 7, 3, hipMemcpyHostToDevice) == hipErrorInvalidValue);
  CHECK(hip.hipMemset2D(to, 4, 0, 5, 2) == hipErrorInvalidValue);
  CHECK(hip.hipMemset2D(to, 2000, 0, 5, 3) == hipErrorInvalidValue);
  CHECK(hip.hipMemcpy2D(to, 0, source.data(), 0, 0, 3, hipMemcpyHostToDevice) == hipSuccess);
  CHECK(hip.hipStreamDestroy(stream) == hipSuccess);
}

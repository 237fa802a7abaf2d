//===- pool_functions.cpp - HIP's functions about memory pools ------------------------------------------===//
#include <algorithm>
#include <array>
#include <unordered_map>

#include "emulator/hip/capture.h"
#include "emulator/hip/device.h"
#include "emulator/hip/error.h"
#include "emulator/hip/functions.h"
#include "emulator/hip/handles.h"
#include "emulator/hip/pools.h"
#include "emulator/hip/scheduler.h"
#include "emulator/hip/streams.h"

namespace sluice::emulator::hip {

namespace {

struct Pool {
  int device = 0;
  uint64_t most_bytes = UINT64_MAX;
  bool is_default = false;
  // The rest is guarded by the pools' mutex.
  int reuse[3] = {1, 1, 1};
  uint64_t release_threshold = 0;
  uint64_t used = 0;
  uint64_t used_high = 0;
};

using PoolHandles = Handles<hipMemPool_t, Pool>;

/// The pools of the process, and which block belongs to which.
class Pools {
public:
  Pools() {
    for (int device = 0; device < MemoryBlock::most_devices; ++device) {
      auto pool = std::make_shared<Pool>();
      pool->device = device;
      pool->is_default = true;
      defaults[size_t(device)] = PoolHandles::get().add(std::move(pool));
    }
    current = defaults;
  }
  static Pools &get() {
    static Pools *const instance = new Pools;
    return *instance;
  }

  void *allocate(const std::shared_ptr<Pool> &pool, size_t size) {
    const std::lock_guard lock(mutex);
    require(size <= pool->most_bytes - pool->used, hipErrorOutOfMemory);
    void *const pointer =
        Device::get().memory().allocate(size, Memory::Contents::undefined, uint8_t(pool->device));
    require(pointer != nullptr, hipErrorOutOfMemory);
    owners[pointer] = {pool, size};
    pool->used += size;
    pool->used_high = std::max(pool->used_high, pool->used);
    return pointer;
  }

  std::mutex mutex;
  // Of each device.
  std::array<hipMemPool_t, MemoryBlock::most_devices> defaults;
  std::array<hipMemPool_t, MemoryBlock::most_devices> current;
  struct Owner {
    std::shared_ptr<Pool> pool; // also of one that was destroyed since
    size_t bytes;
  };
  std::unordered_map<const void *, Owner> owners;
};

std::shared_ptr<Pool> find_pool(hipMemPool_t pool) {
  Pools::get(); // the default one is there before anybody asks
  return PoolHandles::get().find(pool, hipErrorInvalidValue);
}

} // namespace

void *allocate_from_pool(size_t size, int device) {
  Pools &pools = Pools::get();
  hipMemPool_t current;
  {
    const std::lock_guard lock(pools.mutex);
    current = pools.current[size_t(device)];
  }
  return pools.allocate(find_pool(current), size);
}

void return_to_pool(const void *pointer) {
  Pools &pools = Pools::get();
  const std::lock_guard lock(pools.mutex);
  const auto at = pools.owners.find(pointer);
  if (at == pools.owners.end()) return;
  at->second.pool->used -= at->second.bytes;
  pools.owners.erase(at);
}

hipError_t hipDeviceGetDefaultMemPool(hipMemPool_t *pool, int device) {
  return call([&] {
    require(pool != nullptr, hipErrorInvalidValue);
    require_device(device);
    *pool = Pools::get().defaults[size_t(device)];
  });
}

hipError_t hipDeviceGetMemPool(hipMemPool_t *pool, int device) {
  return call([&] {
    require(pool != nullptr, hipErrorInvalidValue);
    require_device(device);
    const std::lock_guard lock(Pools::get().mutex);
    *pool = Pools::get().current[size_t(device)];
  });
}

hipError_t hipDeviceSetMemPool(int device, hipMemPool_t pool) {
  return call([&] {
    require_device(device);
    require(find_pool(pool)->device == device, hipErrorInvalidDevice);
    const std::lock_guard lock(Pools::get().mutex);
    Pools::get().current[size_t(device)] = pool;
  });
}

hipError_t hipMemPoolCreate(hipMemPool_t *pool, const hipMemPoolProps *properties) {
  return call([&] {
    require(pool != nullptr && properties != nullptr, hipErrorInvalidValue);
    require(properties->allocType == hipMemAllocationTypePinned &&
                properties->location.type == hipMemLocationTypeDevice,
            hipErrorInvalidValue);
    require_device(properties->location.id);
    require(properties->handleTypes == 0, hipErrorNotSupported); // nobody to share it with
    auto made = std::make_shared<Pool>();
    made->device = properties->location.id;
    if (properties->maxSize != 0) made->most_bytes = properties->maxSize;
    *pool = PoolHandles::get().add(std::move(made));
  });
}

hipError_t hipMemPoolDestroy(hipMemPool_t pool) {
  return call([&] {
    const std::shared_ptr<Pool> found = find_pool(pool);
    require(!found->is_default, hipErrorInvalidValue);
    PoolHandles::get().remove(pool);
    const std::lock_guard lock(Pools::get().mutex);
    const size_t device = size_t(found->device);
    if (Pools::get().current[device] == pool) Pools::get().current[device] = Pools::get().defaults[device];
  });
}

hipError_t hipMemPoolTrimTo(hipMemPool_t pool, size_t) {
  return call([&] { find_pool(pool); }); // it keeps nothing
}

hipError_t hipMemPoolSetAttribute(hipMemPool_t pool, hipMemPoolAttr attribute, void *value) {
  return call([&] {
    const std::shared_ptr<Pool> found = find_pool(pool);
    require(value != nullptr, hipErrorInvalidValue);
    const std::lock_guard lock(Pools::get().mutex);
    switch (attribute) {
    case hipMemPoolReuseFollowEventDependencies:
    case hipMemPoolReuseAllowOpportunistic:
    case hipMemPoolReuseAllowInternalDependencies:
      found->reuse[attribute - hipMemPoolReuseFollowEventDependencies] = *static_cast<int *>(value);
      return;
    case hipMemPoolAttrReleaseThreshold:
      found->release_threshold = *static_cast<uint64_t *>(value);
      return;
    case hipMemPoolAttrReservedMemHigh:
    case hipMemPoolAttrUsedMemHigh:
      require(*static_cast<uint64_t *>(value) == 0, hipErrorInvalidValue);
      found->used_high = found->used;
      return;
    case hipMemPoolAttrReservedMemCurrent:
    case hipMemPoolAttrUsedMemCurrent:
      break;
    }
    throw Failure(hipErrorInvalidValue);
  });
}

hipError_t hipMemPoolGetAttribute(hipMemPool_t pool, hipMemPoolAttr attribute, void *value) {
  return call([&] {
    const std::shared_ptr<Pool> found = find_pool(pool);
    require(value != nullptr, hipErrorInvalidValue);
    const std::lock_guard lock(Pools::get().mutex);
    switch (attribute) {
    case hipMemPoolReuseFollowEventDependencies:
    case hipMemPoolReuseAllowOpportunistic:
    case hipMemPoolReuseAllowInternalDependencies:
      *static_cast<int *>(value) = found->reuse[attribute - hipMemPoolReuseFollowEventDependencies];
      return;
    case hipMemPoolAttrReleaseThreshold:
      *static_cast<uint64_t *>(value) = found->release_threshold;
      return;
    case hipMemPoolAttrReservedMemCurrent:
    case hipMemPoolAttrUsedMemCurrent:
      *static_cast<uint64_t *>(value) = found->used;
      return;
    case hipMemPoolAttrReservedMemHigh:
    case hipMemPoolAttrUsedMemHigh:
      *static_cast<uint64_t *>(value) = found->used_high;
      return;
    }
    throw Failure(hipErrorInvalidValue);
  });
}

hipError_t hipMallocFromPoolAsync(void **pointer, size_t size, hipMemPool_t pool, hipStream_t stream) {
  return call([&] {
    require(pointer != nullptr, hipErrorInvalidValue);
    const std::shared_ptr<Pool> found = find_pool(pool);
    refuse_while_capturing(work_stream(stream));
    Scheduler::get().require_no_fault();
    *pointer = size == 0 ? nullptr : Pools::get().allocate(found, size);
  });
}

} // namespace sluice::emulator::hip

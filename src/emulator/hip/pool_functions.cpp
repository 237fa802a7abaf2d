//===- pool_functions.cpp - HIP's functions about memory pools ------------------------------------------===//
#include <algorithm>
#include <array>
#include <unordered_map>

#include "emulator/hip/capture.h"
#include "emulator/hip/device.h"
#include "emulator/hip/error.h"
#include "emulator/hip/functions.h"
#include "emulator/hip/handles.h"
#include "emulator/hip/host_calls.h"
#include "emulator/hip/pools.h"
#include "emulator/hip/scheduler.h"
#include "emulator/hip/stream_races.h"
#include "emulator/hip/streams.h"

namespace sluice::emulator::hip {

namespace {

struct Pool {
  int device = 0;
  uint64_t most_bytes = UINT64_MAX;
  bool is_default = false;
  // Guarded by the pools' mutex.
  int reuse[3] = {1, 1, 1};
  uint64_t release_threshold = 0;
  uint64_t used = 0;
  uint64_t used_high = 0;
};

using PoolHandles = Handles<hipMemPool_t, Pool>;

/// The pools of the process, and the pool of each block.
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
    note_allocation(pointer);
    owners[pointer] = {pool, size};
    pool->used += size;
    pool->used_high = std::max(pool->used_high, pool->used);
    return pointer;
  }

  std::mutex mutex;
  // By device.
  std::array<hipMemPool_t, MemoryBlock::most_devices> defaults;
  std::array<hipMemPool_t, MemoryBlock::most_devices> current;
  struct Owner {
    std::shared_ptr<Pool> pool; // may have been destroyed since
    size_t bytes;
  };
  std::unordered_map<const void *, Owner> owners;
};

std::shared_ptr<Pool> find_pool(hipMemPool_t pool) {
  Pools::get(); // creates the default pool if this is the first call
  return PoolHandles::get().find(pool, hipErrorInvalidValue);
}

/// Where a pool stores an attribute, an int or a number of bytes. A pool reserves exactly what is used.
struct PoolAttribute {
  int *number = nullptr;
  uint64_t *bytes = nullptr;
  enum Access : uint8_t {
    read_write,
    read_only,
    reset_only
  } access = read_write; // reset_only: to what is used now
};
PoolAttribute find_attribute(Pool &pool, hipMemPoolAttr attribute) {
  switch (attribute) {
  case hipMemPoolReuseFollowEventDependencies:
  case hipMemPoolReuseAllowOpportunistic:
  case hipMemPoolReuseAllowInternalDependencies:
    return {.number = &pool.reuse[attribute - hipMemPoolReuseFollowEventDependencies]};
  case hipMemPoolAttrReleaseThreshold:
    return {.bytes = &pool.release_threshold};
  case hipMemPoolAttrReservedMemCurrent:
  case hipMemPoolAttrUsedMemCurrent:
    return {.bytes = &pool.used, .access = PoolAttribute::read_only};
  case hipMemPoolAttrReservedMemHigh:
  case hipMemPoolAttrUsedMemHigh:
    return {.bytes = &pool.used_high, .access = PoolAttribute::reset_only};
  }
  throw Failure(hipErrorInvalidValue);
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

void order_allocation(const std::shared_ptr<Stream> &stream, void *pointer, size_t size) {
  const Options options = Device::get().options();
  if (!options.checks.stream_races) return;
  const uint64_t block = Device::get().memory().find(pointer)->serial;
  Scheduler::get().enqueue(
      stream,
      [pointer, size, block, options] {
        if (!compares_streams(options)) return;
        std::vector<MemoryUse> uses;
        add_use(uses, pointer, size, block, MemoryUse::Kind::allocate);
        StreamRaces::get().enter("allocation of " + std::to_string(size) + " bytes", std::move(uses));
      },
      true);
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
    require(properties->handleTypes == 0, hipErrorNotSupported); // no other process to share it with
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
  return call([&] { find_pool(pool); }); // a pool keeps no freed memory
}

hipError_t hipMemPoolSetAttribute(hipMemPool_t pool, hipMemPoolAttr attribute, void *value) {
  return call([&] {
    const std::shared_ptr<Pool> found = find_pool(pool);
    require(value != nullptr, hipErrorInvalidValue);
    const std::lock_guard lock(Pools::get().mutex);
    const PoolAttribute place = find_attribute(*found, attribute);
    require(place.access != PoolAttribute::read_only, hipErrorInvalidValue);
    if (place.number != nullptr) {
      *place.number = *static_cast<int *>(value);
      return;
    }
    const uint64_t bytes = *static_cast<uint64_t *>(value);
    if (place.access == PoolAttribute::reset_only) require(bytes == 0, hipErrorInvalidValue);
    *place.bytes = place.access == PoolAttribute::reset_only ? found->used : bytes;
  });
}

hipError_t hipMemPoolGetAttribute(hipMemPool_t pool, hipMemPoolAttr attribute, void *value) {
  return call([&] {
    const std::shared_ptr<Pool> found = find_pool(pool);
    require(value != nullptr, hipErrorInvalidValue);
    const std::lock_guard lock(Pools::get().mutex);
    const PoolAttribute place = find_attribute(*found, attribute);
    if (place.number != nullptr)
      *static_cast<int *>(value) = *place.number;
    else
      *static_cast<uint64_t *>(value) = *place.bytes;
  });
}

hipError_t hipMallocFromPoolAsync(void **pointer, size_t size, hipMemPool_t pool, hipStream_t stream) {
  return call([&] {
    require(pointer != nullptr, hipErrorInvalidValue);
    const std::shared_ptr<Pool> found = find_pool(pool);
    const std::shared_ptr<Stream> queue = work_stream(stream);
    refuse_while_capturing(queue);
    Scheduler::get().require_no_fault(queue->device);
    *pointer = size == 0 ? nullptr : Pools::get().allocate(found, size);
    if (*pointer != nullptr) order_allocation(queue, *pointer, size);
  });
}

} // namespace sluice::emulator::hip

//===- allocation_functions.cpp - HIP's functions that allocate and free memory
//---------------------------===//
#include <mutex>
#include <set>

#include <sys/mman.h>

#include "emulator/hip/capture.h"
#include "emulator/hip/device.h"
#include "emulator/hip/error.h"
#include "emulator/hip/functions.h"
#include "emulator/hip/host_calls.h"
#include "emulator/hip/pools.h"
#include "emulator/hip/scheduler.h"
#include "emulator/hip/stream_races.h"
#include "emulator/hip/streams.h"
#include "support/checked.h"

namespace sluice::emulator::hip {

namespace {

void *allocate(size_t size, Memory::Contents contents, int device) {
  void *const pointer = Device::get().memory().allocate(size, contents, uint8_t(device));
  require(pointer != nullptr, hipErrorOutOfMemory);
  note_allocation(pointer);
  return pointer;
}

/// Blocks that a stream's work will free: no other call may free them.
class BlocksToFree {
public:
  static BlocksToFree &get() {
    static auto *const instance = new BlocksToFree;
    return *instance;
  }
  /// False if already added.
  bool add(uint64_t serial) {
    const std::lock_guard lock(mutex);
    return serials.insert(serial).second;
  }
  void remove(uint64_t serial) {
    const std::lock_guard lock(mutex);
    serials.erase(serial);
  }

private:
  std::mutex mutex;
  std::set<uint64_t> serials;
};

/// What hipFree accepts: a device block or a managed one, by its start.
bool device_allocation(const void *pointer) {
  uint64_t start;
  Device::HostBlock shared;
  if (Device::get().find_host_block(pointer, start, shared))
    return shared.kind == Device::HostBlock::managed && start == reinterpret_cast<uint64_t>(pointer);
  const std::optional<MemoryBlock> block = Device::get().memory().find(pointer);
  return block && block->address == reinterpret_cast<uint64_t>(pointer) && !block->attached;
}

void release(void *pointer) {
  Device::get().remove_host_block(pointer, Device::HostBlock::managed);
  require(Device::get().memory().release(pointer), hipErrorInvalidValue);
  return_to_pool(pointer);
}

/// Whether the host has pages for all of the range.
bool is_mapped(const void *pointer, size_t size) {
  const auto start = reinterpret_cast<uint64_t>(pointer);
  if (!in_address_space(start, size)) return false;
  const uint64_t first_page = start / Memory::alignment * Memory::alignment;
  // Writes nothing back, but fails at an unmapped page.
  return msync(reinterpret_cast<void *>(first_page), start + size - first_page, MS_ASYNC) == 0;
}

/// Rows that each begin at a multiple of the device's alignment.
void *allocate_pitched(size_t &pitch, size_t width, size_t rows) {
  require(width <= SIZE_MAX - pitch_alignment, hipErrorInvalidValue);
  const size_t row_bytes = (width + pitch_alignment - 1) / pitch_alignment * pitch_alignment;
  const std::optional<size_t> bytes = support::checked_multiply(row_bytes, rows);
  require(bytes.has_value(), hipErrorOutOfMemory);
  pitch = row_bytes;
  return allocate(*bytes, Memory::Contents::undefined, current_device());
}

constexpr unsigned malloc_signal_memory = 2; // hipMallocSignalMemory
constexpr unsigned last_malloc_flag = 4;     // hipDeviceMallocContiguous
constexpr unsigned host_alloc_flags =
    7; // hipHostAllocPortable, hipHostAllocMapped, hipHostAllocWriteCombined

} // namespace

hipError_t hipMalloc(void **pointer, size_t size) {
  return call([&] {
    require(pointer != nullptr, hipErrorInvalidValue);
    refuse_unsafe_call();
    Scheduler::get().require_no_fault(current_device());
    *pointer = size == 0 ? nullptr : allocate(size, Memory::Contents::undefined, current_device());
  });
}

// The emulator's memory is the same with every flag; signals are one number of 64 bits.
hipError_t hipExtMallocWithFlags(void **pointer, size_t size, unsigned flags) {
  return call([&] {
    require(flags <= last_malloc_flag, hipErrorInvalidValue);
    require(flags != malloc_signal_memory || size == sizeof(uint64_t), hipErrorInvalidValue);
    return hipMalloc(pointer, size);
  });
}

hipError_t hipFree(void *pointer) {
  return call([&] {
    if (pointer == nullptr) return;
    require(device_allocation(pointer), hipErrorInvalidValue);
    refuse_unsafe_call();
    Scheduler::get().wait_all();
    release(pointer);
  });
}

hipError_t hipMallocAsync(void **pointer, size_t size, hipStream_t stream) {
  return call([&] {
    require(pointer != nullptr, hipErrorInvalidValue);
    const std::shared_ptr<Stream> queue = work_stream(stream);
    refuse_while_capturing(queue);
    Scheduler::get().require_no_fault(queue->device);
    *pointer = size == 0 ? nullptr : allocate_from_pool(size, queue->device);
    if (*pointer != nullptr) order_allocation(queue, *pointer, size);
  });
}

hipError_t hipFreeAsync(void *pointer, hipStream_t stream) {
  return call([&] {
    const std::shared_ptr<Stream> queue = work_stream(stream);
    refuse_while_capturing(queue);
    require(device_allocation(pointer), hipErrorInvalidValue);
    const MemoryBlock block = *Device::get().memory().find(pointer);
    require(BlocksToFree::get().add(block.serial), hipErrorInvalidValue);
    Scheduler::get().enqueue(
        queue,
        [pointer, block, options = Device::get().options()] {
          if (compares_streams(options)) {
            std::vector<MemoryUse> uses;
            add_use(uses, pointer, block.bytes, block.serial, MemoryUse::Kind::release);
            StreamRaces::get().enter("free of " + std::to_string(block.bytes) + " bytes", std::move(uses));
          }
          BlocksToFree::get().remove(block.serial);
          release(pointer);
        },
        true);
  });
}

hipError_t hipMallocManaged(void **pointer, size_t size, unsigned flags) {
  return call([&] {
    require(pointer != nullptr && size != 0, hipErrorInvalidValue);
    require(flags == hipMemAttachGlobal || flags == hipMemAttachHost, hipErrorInvalidValue);
    refuse_unsafe_call();
    Scheduler::get().require_no_fault(current_device());
    void *const memory = allocate(size, Memory::Contents::defined, MemoryBlock::host); // like hipHostMalloc
    Device::get().add_host_block(memory, {size, flags, Device::HostBlock::managed});
    *pointer = memory;
  });
}

hipError_t hipHostMalloc(void **pointer, size_t size, unsigned flags) {
  return call([&] {
    require(pointer != nullptr, hipErrorInvalidValue);
    refuse_unsafe_call();
    if (size == 0) {
      *pointer = nullptr;
      return;
    }
    // The machine does not see what the host writes there.
    void *const memory = allocate(size, Memory::Contents::defined, MemoryBlock::host);
    Device::get().add_host_block(memory, {size, flags, Device::HostBlock::allocated});
    *pointer = memory;
  });
}

hipError_t hipHostFree(void *pointer) {
  return call([&] {
    if (pointer == nullptr) return;
    refuse_unsafe_call();
    Scheduler::get().wait_all();
    require(Device::get().remove_host_block(pointer, Device::HostBlock::allocated), hipErrorInvalidValue);
    Device::get().memory().release(pointer);
  });
}

hipError_t hipHostRegister(void *pointer, size_t size, unsigned flags) {
  return call([&] {
    require(pointer != nullptr && size != 0 && is_mapped(pointer, size), hipErrorInvalidValue);
    refuse_unsafe_call();
    require(Device::get().memory().attach(pointer, size, true), hipErrorHostMemoryAlreadyRegistered);
    Device::get().add_host_block(pointer, {size, flags, Device::HostBlock::registered});
  });
}

hipError_t hipHostUnregister(void *pointer) {
  return call([&] {
    refuse_unsafe_call();
    Scheduler::get().wait_all();
    require(Device::get().remove_host_block(pointer, Device::HostBlock::registered),
            hipErrorHostMemoryNotRegistered);
    Device::get().memory().detach(pointer);
  });
}

hipError_t hipHostGetDevicePointer(void **device_pointer, void *host_pointer, unsigned flags) {
  return call([&] {
    require(device_pointer != nullptr && flags == 0, hipErrorInvalidValue);
    require(Device::get().pinned(host_pointer, 1), hipErrorInvalidValue);
    *device_pointer = host_pointer;
  });
}

// The emulator's host memory is the same with every flag.
hipError_t hipHostAlloc(void **pointer, size_t size, unsigned flags) {
  return call([&] {
    require((flags & ~host_alloc_flags) == 0, hipErrorInvalidValue);
    return hipHostMalloc(pointer, size, flags);
  });
}

hipError_t hipExtHostAlloc(void **pointer, size_t size, unsigned flags) {
  return hipHostMalloc(pointer, size, flags);
}

hipError_t hipMallocHost(void **pointer, size_t size) {
  return hipHostMalloc(pointer, size, 0);
}

hipError_t hipMemAllocHost(void **pointer, size_t size) {
  return hipHostMalloc(pointer, size, 0);
}

hipError_t hipFreeHost(void *pointer) {
  return hipHostFree(pointer);
}

hipError_t hipHostGetFlags(unsigned *flags, void *pointer) {
  return call([&] {
    uint64_t start;
    Device::HostBlock block;
    require(flags != nullptr && Device::get().find_host_block(pointer, start, block), hipErrorInvalidValue);
    require(block.kind != Device::HostBlock::managed, hipErrorInvalidValue);
    *flags = block.flags;
  });
}

hipError_t hipMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
  return call([&] {
    require(pointer != nullptr && pitch != nullptr, hipErrorInvalidValue);
    refuse_unsafe_call();
    Scheduler::get().require_no_fault(current_device());
    *pointer = width == 0 || height == 0 ? nullptr : allocate_pitched(*pitch, width, height);
  });
}

hipError_t hipMemAllocPitch(hipDeviceptr_t *pointer, size_t *pitch, size_t width, size_t height,
                            unsigned element_bytes) {
  return call([&] {
    require(width != 0 && height != 0, hipErrorInvalidValue);
    require(element_bytes == 4 || element_bytes == 8 || element_bytes == 16, hipErrorInvalidValue);
    return hipMallocPitch(pointer, pitch, width, height);
  });
}

hipError_t hipMalloc3D(hipPitchedPtr *memory, hipExtent extent) {
  return call([&] {
    const std::optional<size_t> rows = support::checked_multiply(extent.height, extent.depth);
    require(memory != nullptr && rows.has_value(), hipErrorInvalidValue);
    hipPitchedPtr made{nullptr, 0, extent.width, extent.height};
    const hipError_t error = hipMallocPitch(&made.ptr, &made.pitch, extent.width, *rows);
    require(error == hipSuccess, error);
    *memory = made;
  });
}

} // namespace sluice::emulator::hip

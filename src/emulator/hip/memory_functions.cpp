//===- memory_functions.cpp - HIP's functions about memory ----------------------------------------------===//
//
// A copy checks the side it calls the device's against the blocks there are, so that an overrun is
// hipErrorInvalidValue and not a damaged heap. Copies from and to host memory that is not pinned behave as
// HIP's do: the source may be reused, the destination read, as soon as the call returns.
//
//===----------------------------------------------------------------------------------------------------===//
#include <cstring>

#include "emulator/hip/device.h"
#include "emulator/hip/error.h"
#include "emulator/hip/functions.h"
#include "emulator/hip/scheduler.h"
#include "emulator/hip/streams.h"

namespace sluice::emulator::hip {

namespace {

/// Throws unless the device reaches the range: in one live block, device or pinned.
void require_reachable(const void *address, size_t size) {
  const std::optional<MemoryBlock> block = Device::get().memory().find(address);
  require(block && block->contains(reinterpret_cast<uint64_t>(address), size), hipErrorInvalidValue);
}

/// For a side said to be the host's: fine unless it lies in a block and leaves it.
void require_within_block_if_any(const void *address, size_t size) {
  const std::optional<MemoryBlock> block = Device::get().memory().find(address);
  require(!block || block->contains(reinterpret_cast<uint64_t>(address), size), hipErrorInvalidValue);
}

bool reachable(const void *address) {
  return Device::get().memory().find(address).has_value();
}

void check_copy(const void *to, const void *from, size_t size, hipMemcpyKind kind) {
  require(to != nullptr && from != nullptr, hipErrorInvalidValue);
  require(kind >= hipMemcpyHostToHost && kind <= hipMemcpyDefault, hipErrorInvalidMemcpyDirection);
  const bool to_device = kind == hipMemcpyHostToDevice || kind == hipMemcpyDeviceToDevice;
  const bool from_device = kind == hipMemcpyDeviceToHost || kind == hipMemcpyDeviceToDevice;
  (to_device ? require_reachable : require_within_block_if_any)(to, size);
  (from_device ? require_reachable : require_within_block_if_any)(from, size);
}

void copy_bytes(void *to, const void *from, size_t size) {
  std::memmove(to, from, size);
  Device::get().memory().copy_written(to, from, size);
}

void copy_now(const std::shared_ptr<Stream> &stream, void *to, const void *from, size_t size,
              hipMemcpyKind kind) {
  Scheduler &scheduler = Scheduler::get();
  scheduler.require_no_fault();
  if (size == 0) return;
  check_copy(to, from, size, kind);
  scheduler.run(stream, [=] { copy_bytes(to, from, size); });
  scheduler.require_no_fault();
}

void copy_later(hipStream_t handle, void *to, const void *from, size_t size, hipMemcpyKind kind) {
  Scheduler &scheduler = Scheduler::get();
  const std::shared_ptr<Stream> stream = find_stream(handle);
  scheduler.require_no_fault();
  if (size == 0) return;
  check_copy(to, from, size, kind);
  if (!reachable(to)) return copy_now(stream, to, from, size, kind);
  if (!reachable(from)) {
    const auto *bytes = static_cast<const std::byte *>(from);
    scheduler.enqueue(stream, [to, staged = std::vector<std::byte>(bytes, bytes + size)] {
      copy_bytes(to, staged.data(), staged.size());
    });
    return;
  }
  scheduler.enqueue(stream, [=] { copy_bytes(to, from, size); });
}

template <typename Element> void fill(void *to, Element value, size_t count) {
  auto *bytes = static_cast<std::byte *>(to);
  if constexpr (sizeof(Element) == 1) {
    std::memset(bytes, int(value), count);
  } else {
    for (size_t i = 0; i < count; ++i)
      std::memcpy(bytes + i * sizeof(Element), &value, sizeof(Element));
  }
  Device::get().memory().mark_written(to, count * sizeof(Element));
}

/// `stream` null: at once, on the null stream.
template <typename Element>
void set(void *to, Element value, size_t count, const std::shared_ptr<Stream> &stream) {
  Scheduler &scheduler = Scheduler::get();
  scheduler.require_no_fault();
  if (count == 0) return;
  require(to != nullptr && count <= SIZE_MAX / sizeof(Element), hipErrorInvalidValue);
  require_reachable(to, count * sizeof(Element));
  if (stream) return scheduler.enqueue(stream, [=] { fill(to, value, count); });
  scheduler.run(scheduler.null_stream(), [=] { fill(to, value, count); });
  scheduler.require_no_fault();
}

void *allocate(size_t size, Memory::Contents contents) {
  void *const pointer = Device::get().memory().allocate(size, contents);
  require(pointer != nullptr, hipErrorOutOfMemory);
  return pointer;
}

bool device_allocation(const void *pointer) {
  const std::optional<MemoryBlock> block = Device::get().memory().find(pointer);
  return block && block->address == reinterpret_cast<uint64_t>(pointer) && !block->attached &&
         !Device::get().pinned(pointer, 1);
}

} // namespace

hipError_t hipMalloc(void **pointer, size_t size) {
  return call([&] {
    require(pointer != nullptr, hipErrorInvalidValue);
    Scheduler::get().require_no_fault();
    *pointer = size == 0 ? nullptr : allocate(size, Memory::Contents::undefined);
  });
}

hipError_t hipFree(void *pointer) {
  return call([&] {
    if (pointer == nullptr) return;
    require(device_allocation(pointer), hipErrorInvalidValue);
    Scheduler::get().wait_all();
    require(Device::get().memory().release(pointer), hipErrorInvalidValue);
  });
}

hipError_t hipMallocAsync(void **pointer, size_t size, hipStream_t stream) {
  return call([&] {
    require(pointer != nullptr, hipErrorInvalidValue);
    find_stream(stream);
    Scheduler::get().require_no_fault();
    *pointer = size == 0 ? nullptr : allocate(size, Memory::Contents::undefined);
  });
}

hipError_t hipFreeAsync(void *pointer, hipStream_t stream) {
  return call([&] {
    const std::shared_ptr<Stream> queue = find_stream(stream);
    require(device_allocation(pointer), hipErrorInvalidValue);
    Scheduler::get().enqueue(queue, [pointer] { Device::get().memory().release(pointer); }, true);
  });
}

hipError_t hipHostMalloc(void **pointer, size_t size, unsigned flags) {
  return call([&] {
    require(pointer != nullptr, hipErrorInvalidValue);
    if (size == 0) {
      *pointer = nullptr;
      return;
    }
    // What the host writes there the machine does not see.
    void *const memory = allocate(size, Memory::Contents::defined);
    Device::get().add_host_block(memory, {size, flags, false});
    *pointer = memory;
  });
}

hipError_t hipHostFree(void *pointer) {
  return call([&] {
    if (pointer == nullptr) return;
    Scheduler::get().wait_all();
    require(Device::get().remove_host_block(pointer, false), hipErrorInvalidValue);
    Device::get().memory().release(pointer);
  });
}

hipError_t hipHostRegister(void *pointer, size_t size, unsigned flags) {
  return call([&] {
    require(pointer != nullptr && size != 0, hipErrorInvalidValue);
    require(Device::get().memory().attach(pointer, size, true), hipErrorHostMemoryAlreadyRegistered);
    Device::get().add_host_block(pointer, {size, flags, true});
  });
}

hipError_t hipHostUnregister(void *pointer) {
  return call([&] {
    Scheduler::get().wait_all();
    require(Device::get().remove_host_block(pointer, true), hipErrorHostMemoryNotRegistered);
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

hipError_t hipMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
  return call([&] {
    require(free_bytes != nullptr && total_bytes != nullptr, hipErrorInvalidValue);
    Memory &memory = Device::get().memory();
    const uint64_t used = memory.used_bytes() - Device::get().host_bytes();
    *total_bytes = memory.capacity_bytes();
    *free_bytes = memory.capacity_bytes() - used;
  });
}

hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *pointer) {
  return call([&] {
    require(attributes != nullptr && pointer != nullptr, hipErrorInvalidValue);
    void *const same = const_cast<void *>(pointer);
    uint64_t start;
    Device::HostBlock block;
    if (Device::get().find_host_block(pointer, start, block))
      *attributes = {hipMemoryTypeHost, 0, same, same, 0, block.flags};
    else if (reachable(pointer))
      *attributes = {hipMemoryTypeDevice, 0, same, nullptr, 0, 0};
    else
      *attributes = {hipMemoryTypeUnregistered, -1, nullptr, nullptr, 0, 0};
  });
}

hipError_t hipMemcpy(void *to, const void *from, size_t size, hipMemcpyKind kind) {
  return call([&] { copy_now(Scheduler::get().null_stream(), to, from, size, kind); });
}

hipError_t hipMemcpyAsync(void *to, const void *from, size_t size, hipMemcpyKind kind, hipStream_t stream) {
  return call([&] { copy_later(stream, to, from, size, kind); });
}

hipError_t hipMemcpyHtoD(hipDeviceptr_t to, void *from, size_t size) {
  return hipMemcpy(to, from, size, hipMemcpyHostToDevice);
}

hipError_t hipMemcpyDtoH(void *to, hipDeviceptr_t from, size_t size) {
  return hipMemcpy(to, from, size, hipMemcpyDeviceToHost);
}

hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from, size_t size) {
  return hipMemcpy(to, from, size, hipMemcpyDeviceToDevice);
}

hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, void *from, size_t size, hipStream_t stream) {
  return hipMemcpyAsync(to, from, size, hipMemcpyHostToDevice, stream);
}

hipError_t hipMemcpyDtoHAsync(void *to, hipDeviceptr_t from, size_t size, hipStream_t stream) {
  return hipMemcpyAsync(to, from, size, hipMemcpyDeviceToHost, stream);
}

hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, size_t size, hipStream_t stream) {
  return hipMemcpyAsync(to, from, size, hipMemcpyDeviceToDevice, stream);
}

hipError_t hipMemset(void *to, int value, size_t size) {
  return call([&] { set(to, uint8_t(value), size, nullptr); });
}

hipError_t hipMemsetAsync(void *to, int value, size_t size, hipStream_t stream) {
  return call([&] { set(to, uint8_t(value), size, find_stream(stream)); });
}

hipError_t hipMemsetD8(hipDeviceptr_t to, unsigned char value, size_t count) {
  return call([&] { set(to, value, count, nullptr); });
}

hipError_t hipMemsetD16(hipDeviceptr_t to, unsigned short value, size_t count) {
  return call([&] { set(to, value, count, nullptr); });
}

hipError_t hipMemsetD32(hipDeviceptr_t to, int value, size_t count) {
  return call([&] { set(to, value, count, nullptr); });
}

hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, size_t count, hipStream_t stream) {
  return call([&] { set(to, value, count, find_stream(stream)); });
}

} // namespace sluice::emulator::hip

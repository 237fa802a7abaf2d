//===- memory_functions.cpp - HIP's functions about memory ----------------------------------------------===//
//
// A copy checks its device side against the existing blocks, so that an overrun is hipErrorInvalidValue and
// not a damaged heap. Copies from and to host memory that is not pinned behave as in HIP: as soon as the call
// returns, the source may be reused and the destination read.
//
//===----------------------------------------------------------------------------------------------------===//
#include <mutex>
#include <set>

#include <sys/mman.h>

#include "emulator/hip/capture.h"
#include "emulator/hip/device.h"
#include "emulator/hip/error.h"
#include "emulator/hip/functions.h"
#include "emulator/hip/host_calls.h"
#include "emulator/hip/operations.h"
#include "emulator/hip/pools.h"
#include "emulator/hip/scheduler.h"
#include "emulator/hip/streams.h"

namespace sluice::emulator::hip {

namespace {

bool reachable(const void *address) {
  return Device::get().memory().find(address).has_value();
}

/// For a call that waits, which captures cannot record.
void begin_waiting_call(const std::shared_ptr<Stream> &stream) {
  refuse_while_capturing(stream);
  refuse_unsafe_call();
  Scheduler::get().require_no_fault(stream->device);
}

void run_now(const std::shared_ptr<Stream> &stream, const auto &call) {
  Scheduler::get().run(stream, [&call, options = Device::get().options()] { call.run(options); });
  Scheduler::get().require_no_fault(stream->device);
}

void copy_now(hipStream_t handle, Copy copy, hipMemcpyKind kind) {
  const std::shared_ptr<Stream> stream = work_stream(handle);
  begin_waiting_call(stream);
  if (copy.empty()) return;
  check_copy(copy, kind);
  run_now(stream, copy);
}

void copy_later(hipStream_t handle, Copy copy, hipMemcpyKind kind) {
  const std::shared_ptr<Stream> stream = work_stream(handle);
  Scheduler::get().require_no_fault(stream->device);
  if (copy.empty()) return;
  check_copy(copy, kind);
  if (capture(stream, copy)) return;
  if (!reachable(copy.to.start)) return run_now(stream, copy);
  if (reachable(copy.from.start)) return submit(stream, copy);
  const auto staged = std::make_shared<const std::vector<std::byte>>(
      copy.from.start, copy.from.start + copy.span_bytes(copy.from));
  copy.from.start = const_cast<std::byte *>(staged->data());
  Scheduler::get().enqueue(stream, [copy, staged, options = Device::get().options()] { copy.run(options); });
}

Fill fill_of(void *to, uint32_t value, uint32_t element_bytes, size_t count) {
  return {static_cast<std::byte *>(to), value, element_bytes, count};
}

void fill_now(Fill fill) {
  const std::shared_ptr<Stream> stream = work_stream(nullptr);
  begin_waiting_call(stream);
  if (fill.empty()) return;
  check_fill(fill);
  run_now(stream, fill);
}

void fill_later(hipStream_t handle, Fill fill) {
  const std::shared_ptr<Stream> stream = work_stream(handle);
  Scheduler::get().require_no_fault(stream->device);
  if (fill.empty()) return;
  check_fill(fill);
  submit(stream, fill);
}

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

/// Throws unless all of the range is in one managed block.
void require_managed(const void *pointer, size_t size) {
  uint64_t start;
  Device::HostBlock block;
  require(pointer != nullptr && size != 0, hipErrorInvalidValue);
  require(Device::get().find_host_block(pointer, start, block) && block.kind == Device::HostBlock::managed &&
              Device::get().pinned(pointer, size),
          hipErrorInvalidValue);
}

/// Whether the host has pages for all of the range.
bool is_mapped(const void *pointer, size_t size) {
  const auto start = reinterpret_cast<uint64_t>(pointer);
  if (!in_address_space(start, size)) return false;
  const uint64_t first_page = start / Memory::alignment * Memory::alignment;
  // Writes nothing back, but fails at an unmapped page.
  return msync(reinterpret_cast<void *>(first_page), start + size - first_page, MS_ASYNC) == 0;
}

Copy copy_2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height) {
  Copy copy = copy_of(to, from, width);
  copy.to.row_stride = to_pitch;
  copy.from.row_stride = from_pitch;
  copy.rows = height;
  return copy;
}

Fill fill_2d(void *to, size_t pitch, int value, size_t width, size_t height) {
  return {static_cast<std::byte *>(to), uint8_t(value), 1, width, height, pitch};
}

} // namespace

hipError_t hipMalloc(void **pointer, size_t size) {
  return call([&] {
    require(pointer != nullptr, hipErrorInvalidValue);
    refuse_unsafe_call();
    Scheduler::get().require_no_fault(current_device());
    *pointer = size == 0 ? nullptr : allocate(size, Memory::Contents::undefined, current_device());
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

hipError_t hipMemPrefetchAsync(const void *pointer, size_t size, int device, hipStream_t stream) {
  return call([&] {
    if (device != hipCpuDeviceId) require_device(device);
    require_managed(pointer, size);
    const std::shared_ptr<Stream> queue = work_stream(stream);
    refuse_while_capturing(queue);
    Scheduler::get().require_no_fault(queue->device);
  });
}

hipError_t hipMemAdvise(const void *pointer, size_t size, hipMemoryAdvise advice, int device) {
  return call([&] {
    const bool known = (advice >= hipMemAdviseSetReadMostly && advice <= hipMemAdviseUnsetAccessedBy) ||
                       advice == hipMemAdviseSetCoarseGrain || advice == hipMemAdviseUnsetCoarseGrain;
    require(known, hipErrorInvalidValue);
    if (device != hipCpuDeviceId) require_device(device);
    require_managed(pointer, size);
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

hipError_t hipMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
  return call([&] {
    require(free_bytes != nullptr && total_bytes != nullptr, hipErrorInvalidValue);
    Memory &memory = Device::get().memory();
    const uint64_t used = memory.used_bytes(uint8_t(current_device()));
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
      *attributes =
          block.kind == Device::HostBlock::managed
              ? hipPointerAttribute_t{hipMemoryTypeManaged, current_device(), same, same, 1, block.flags}
              : hipPointerAttribute_t{hipMemoryTypeHost, current_device(), same, same, 0, block.flags};
    else if (const std::optional<MemoryBlock> memory = Device::get().memory().find(pointer))
      *attributes = {hipMemoryTypeDevice, memory->device, same, nullptr, 0, 0};
    else
      *attributes = {hipMemoryTypeUnregistered, -1, nullptr, nullptr, 0, 0};
  });
}

hipError_t hipMemcpy(void *to, const void *from, size_t size, hipMemcpyKind kind) {
  return call([&] { copy_now(nullptr, copy_of(to, from, size), kind); });
}

hipError_t hipMemcpyAsync(void *to, const void *from, size_t size, hipMemcpyKind kind, hipStream_t stream) {
  return call([&] { copy_later(stream, copy_of(to, from, size), kind); });
}

hipError_t hipMemcpyWithStream(void *to, const void *from, size_t size, hipMemcpyKind kind,
                               hipStream_t stream) {
  return call([&] { copy_now(stream, copy_of(to, from, size), kind); });
}

hipError_t hipMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t size) {
  return call([&] {
    require_device(to_device);
    require_device(from_device);
    copy_now(nullptr, copy_of(to, from, size), hipMemcpyDeviceToDevice);
  });
}

hipError_t hipMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t size,
                              hipStream_t stream) {
  return call([&] {
    require_device(to_device);
    require_device(from_device);
    copy_later(stream, copy_of(to, from, size), hipMemcpyDeviceToDevice);
  });
}

hipError_t hipMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                       size_t height, hipMemcpyKind kind) {
  return call([&] { copy_now(nullptr, copy_2d(to, to_pitch, from, from_pitch, width, height), kind); });
}

hipError_t hipMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                            size_t height, hipMemcpyKind kind, hipStream_t stream) {
  return call([&] { copy_later(stream, copy_2d(to, to_pitch, from, from_pitch, width, height), kind); });
}

hipError_t hipMemcpy3D(const hipMemcpy3DParms *parameters) {
  return call([&] {
    require(parameters != nullptr, hipErrorInvalidValue);
    copy_now(nullptr, copy_of(*parameters), parameters->kind);
  });
}

hipError_t hipMemcpy3DAsync(const hipMemcpy3DParms *parameters, hipStream_t stream) {
  return call([&] {
    require(parameters != nullptr, hipErrorInvalidValue);
    copy_later(stream, copy_of(*parameters), parameters->kind);
  });
}

hipError_t hipMemset2D(void *to, size_t pitch, int value, size_t width, size_t height) {
  return call([&] { fill_now(fill_2d(to, pitch, value, width, height)); });
}

hipError_t hipMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height,
                            hipStream_t stream) {
  return call([&] { fill_later(stream, fill_2d(to, pitch, value, width, height)); });
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
  return call([&] { fill_now(fill_of(to, uint8_t(value), 1, size)); });
}

hipError_t hipMemsetAsync(void *to, int value, size_t size, hipStream_t stream) {
  return call([&] { fill_later(stream, fill_of(to, uint8_t(value), 1, size)); });
}

hipError_t hipMemsetD8(hipDeviceptr_t to, unsigned char value, size_t count) {
  return call([&] { fill_now(fill_of(to, value, 1, count)); });
}

hipError_t hipMemsetD16(hipDeviceptr_t to, unsigned short value, size_t count) {
  return call([&] { fill_now(fill_of(to, value, 2, count)); });
}

hipError_t hipMemsetD32(hipDeviceptr_t to, int value, size_t count) {
  return call([&] { fill_now(fill_of(to, uint32_t(value), 4, count)); });
}

hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, size_t count, hipStream_t stream) {
  return call([&] { fill_later(stream, fill_of(to, uint32_t(value), 4, count)); });
}

} // namespace sluice::emulator::hip

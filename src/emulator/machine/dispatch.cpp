//===- dispatch.cpp - kernel state set up by the driver and the command processor -----------------------===//
#include "emulator/machine/dispatch.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

#include <sys/mman.h>

#include "emulator/isa/wave.h"

namespace sluice::emulator {

namespace {

constexpr uint32_t max_lds_bytes = 64 << 10;
constexpr uint32_t max_workgroup_items = 1024;
constexpr uint32_t most_user_sgprs = 16;
constexpr uint32_t dynamic_stack_bytes = 16 << 10;
// A wave's scratch size is a 13-bit number of 1024-byte units.
constexpr uint32_t max_scratch_bytes = 0x1fff * 1024 / wave_lanes;
// Alignment of the kernarg segment. Compilers read it in pieces that may end after the last argument, and
// launchers pass structs, which C++ pads at their end.
constexpr uint64_t kernarg_alignment = 16;
uint64_t aligned_kernarg_bytes(uint64_t bytes) {
  return (bytes + kernarg_alignment - 1) / kernarg_alignment * kernarg_alignment;
}

struct Field {
  uint32_t offset;
  uint32_t bytes;
};

void put(std::span<std::byte> buffer, Field field, uint64_t value) {
  if (field.offset + field.bytes <= buffer.size())
    std::memcpy(buffer.data() + field.offset, &value, field.bytes);
}

//===--- Services that the machine lacks ----------------------------------------------------------------===//

struct MissingService {
  std::string_view argument; // kind of the hidden argument through which kernels reach it
  const char *report;
};
constexpr MissingService missing_services[] = {
    {"hidden_hostcall_buffer",
     "the kernel calls the host (printf, a failed assert, or a sanitizer), which is not emulated"},
    {"hidden_printf_buffer", "the kernel writes into printf's buffer; printf is not emulated"},
    {"hidden_heap_v1",
     "the kernel allocates or frees memory (malloc, free, new or delete), which is not emulated"},
    {"hidden_default_queue", "the kernel enqueues another kernel, which is not emulated"},
    {"hidden_completion_action", "the kernel enqueues another kernel, which is not emulated"},
};
constexpr uint64_t service_bytes = 1 << 20; // more than the fixed part of the device libraries' heap

const MissingService *find_missing_service(std::string_view argument) {
  const auto *const found = std::ranges::find(missing_services, argument, &MissingService::argument);
  return found == std::end(missing_services) ? nullptr : found;
}

/// Addresses of this process that nothing else has. The pages cannot be accessed: without checks a kernel's
/// access ends the process, as that of any other bad address does.
uint64_t service_address(const MissingService &service) {
  static const uint64_t start = [] {
    void *const pages = mmap(nullptr, std::size(missing_services) * service_bytes, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return pages == MAP_FAILED ? 0 : reinterpret_cast<uint64_t>(pages);
  }();
  return start + uint64_t(&service - missing_services) * service_bytes;
}

uint32_t enabled_user_sgprs(const package::KernelDescriptor &d) {
  return 2 * (d.dispatch_ptr() + d.queue_ptr() + d.kernarg_segment_ptr() + d.dispatch_id()) +
         d.private_segment_size() + d.preload_length();
}

void check_descriptor(const package::Kernel &kernel, uint32_t lds_bytes) {
  const package::KernelDescriptor &d = kernel.descriptor;
  auto refuse = [&](const std::string &what) {
    throw std::invalid_argument("kernel \"" + kernel.name + "\" " + what);
  };
  if (d.private_segment_buffer() || d.flat_scratch_init())
    refuse("asks for the address of its scratch in user SGPRs, but the chip itself keeps it in FLAT_SCRATCH");
  if (d.wave32() || kernel.wavefront_size != wave_lanes) refuse("is for waves of 32 lanes; the chip has 64");
  if (d.exceptions() != 0) refuse("enables exceptions, but the machine has no trap handler");
  if (d.split_workgroups() && lds_bytes != 0)
    refuse("splits workgroups over compute units (TG_SPLIT) and has LDS, which they cannot share");
  const uint32_t enabled = enabled_user_sgprs(d);
  if (enabled > d.user_sgprs() || d.user_sgprs() > most_user_sgprs)
    refuse("enables " + std::to_string(enabled) + " user SGPRs and counts " + std::to_string(d.user_sgprs()) +
           "; there are at most " + std::to_string(most_user_sgprs));
}

} // namespace

uint32_t scratch_bytes_of(const package::Kernel &kernel) {
  if (!kernel.descriptor.private_segment()) return 0;
  const uint64_t bytes =
      uint64_t(kernel.private_bytes) + (kernel.dynamic_stack ? uint64_t(dynamic_stack_bytes) : 0);
  if (bytes > max_scratch_bytes)
    throw std::invalid_argument(std::to_string(bytes) + " bytes of scratch per work-item are more than " +
                                std::to_string(max_scratch_bytes));
  return uint32_t(bytes);
}

void check_dispatch(const package::Kernel &kernel, const DispatchShape &shape, size_t kernarg_bytes) {
  const std::array<uint32_t, 3> &block = shape.block;
  for (size_t axis = 0; axis < 3; ++axis) {
    const std::string name(1, "xyz"[axis]);
    if (shape.grid[axis] == 0) throw std::invalid_argument("grid." + name + " is 0");
    if (block[axis] == 0) throw std::invalid_argument("block." + name + " is 0");
    // The packet counts the grid in work-items.
    if (uint64_t(shape.grid[axis]) * block[axis] > UINT32_MAX)
      throw std::invalid_argument("the grid has " + std::to_string(uint64_t(shape.grid[axis]) * block[axis]) +
                                  " work-items in " + name + ", more than 2^32 - 1");
  }
  if (block[0] > max_workgroup_items || block[1] > max_workgroup_items || block[2] > max_workgroup_items ||
      uint64_t(block[0]) * block[1] * block[2] > max_workgroup_items)
    throw std::invalid_argument("a block of " + std::to_string(block[0]) + " x " + std::to_string(block[1]) +
                                " x " + std::to_string(block[2]) + " work-items is more than " +
                                std::to_string(max_workgroup_items));
  const uint64_t plane = uint64_t(shape.grid[0]) * shape.grid[1];
  if (plane > UINT64_MAX / shape.grid[2]) throw std::invalid_argument("the grid has 2^64 workgroups or more");
  const uint32_t items = block[0] * block[1] * block[2];
  if (items > kernel.max_workgroup_size)
    throw std::invalid_argument("a block of " + std::to_string(items) + " work-items is more than the " +
                                std::to_string(kernel.max_workgroup_size) + " the kernel was built for");
  if (shape.lds_bytes > max_lds_bytes)
    throw std::invalid_argument(std::to_string(shape.lds_bytes) + " bytes of LDS are more than " +
                                std::to_string(max_lds_bytes));
  const uint32_t needed = kernel.explicit_kernarg_bytes();
  if (kernarg_bytes < needed)
    throw std::invalid_argument(std::to_string(kernarg_bytes) +
                                " bytes of kernel arguments, but the kernel takes " + std::to_string(needed));
  const bool known = kernel.has_metadata || kernel.kernarg_bytes != 0;
  if (known && kernarg_bytes > aligned_kernarg_bytes(kernel.kernarg_bytes))
    throw std::invalid_argument(std::to_string(kernarg_bytes) +
                                " bytes of kernel arguments, but the kernel has only " +
                                std::to_string(kernel.kernarg_bytes));
  check_descriptor(kernel, shape.lds_bytes);
}

Dispatch::Dispatch(const package::Kernel &kernel, const DispatchShape &shape, uint64_t image,
                   std::span<const std::byte> given)
    : kernel(kernel), shape(shape),
      kernarg_bytes(aligned_kernarg_bytes(std::max<size_t>(given.size(), kernel.kernarg_bytes))),
      lines(first_kernarg_line + (kernarg_bytes + sizeof(Line) - 1) / sizeof(Line)),
      kernarg(reinterpret_cast<std::byte *>(lines.data() + first_kernarg_line), kernarg_bytes) {
  std::copy(given.begin(), given.end(), kernarg.begin());
  fill_hidden_arguments(given.size());
  fill_packet(image);
  fill_grid_sync();
  // The fields of amd_queue_t that kernels of version 4 read: the apertures of LDS and of scratch.
  put(queue(), {64, 4}, shared_aperture >> 32);
  put(queue(), {68, 4}, private_aperture >> 32);
}

void Dispatch::fill_packet(uint64_t image) {
  constexpr uint32_t kernel_dispatch = 2; // type of the packet
  constexpr uint32_t dimensions = 3;
  put(packet(), {0, 2}, kernel_dispatch);
  put(packet(), {2, 2}, dimensions);
  for (uint32_t axis = 0; axis < 3; ++axis) {
    put(packet(), {4 + 2 * axis, 2}, shape.block[axis]);
    put(packet(), {12 + 4 * axis, 4}, uint64_t(shape.grid[axis]) * shape.block[axis]);
  }
  put(packet(), {24, 4}, shape.scratch_bytes);
  put(packet(), {28, 4}, shape.lds_bytes);
  put(packet(), {32, 8}, image + kernel.descriptor_address);
  put(packet(), {40, 8}, kernarg_address());
}

/// The block that the hidden argument of a cooperative launch points to, as device libraries of ROCm 6 and 7
/// read it (mg_info): data for several devices, which are none here, two counters of the barrier of all
/// workgroups at byte 32, and the number of workgroups.
void Dispatch::fill_grid_sync() {
  put(grid_sync(), {40, 4}, uint64_t(shape.grid[0]) * shape.grid[1] * shape.grid[2]);
}

/// Fills in the arguments that compilers add for blockDim and similar, where the caller gave none. Those for
/// services that the machine does not have point to addresses that stand for them.
void Dispatch::fill_hidden_arguments(size_t given) {
  for (const package::KernelArgument &argument : kernel.arguments) {
    if (!argument.hidden() || argument.offset < given) continue;
    const Field field{argument.offset, std::min<uint32_t>(argument.size, 8)};
    const std::string &kind = argument.value_kind;
    const size_t axis = kind.ends_with("_y") ? 1 : kind.ends_with("_z") ? 2 : 0;
    if (kind.starts_with("hidden_block_count_"))
      put(kernarg, field, shape.grid[axis]);
    else if (kind.starts_with("hidden_group_size_"))
      put(kernarg, field, shape.block[axis]);
    else if (kind == "hidden_grid_dims")
      put(kernarg, field, 3);
    else if (kind == "hidden_shared_base")
      put(kernarg, field, shared_aperture >> 32);
    else if (kind == "hidden_private_base")
      put(kernarg, field, private_aperture >> 32);
    else if (kind == "hidden_dynamic_lds_size")
      put(kernarg, field, shape.lds_bytes - kernel.lds_bytes);
    else if (kind == "hidden_queue_ptr")
      put(kernarg, field, queue_address());
    else if (const MissingService *const service = find_missing_service(kind))
      put(kernarg, field, service_address(*service));
    else if (kind == "hidden_multigrid_sync_arg")
      put(kernarg, field, shape.cooperative ? grid_sync_address() : 0);
  }
}

std::vector<MemoryBlock> Dispatch::blocks() const {
  std::vector<MemoryBlock> result = {{address(0), 64, 0, false, false, true},
                                     {queue_address(), 256, 0, false, false, true}};
  if (shape.cooperative) result.push_back({grid_sync_address(), grid_sync_bytes, 0, true, false, true});
  if (!kernarg.empty()) result.push_back({kernarg_address(), kernarg.size(), 0, false, false, true});
  for (const package::KernelArgument &argument : kernel.arguments)
    if (const MissingService *const service = find_missing_service(argument.value_kind)) {
      MemoryBlock block = {service_address(*service), service_bytes, 0, false, true, true};
      block.missing_service = service->report;
      result.push_back(block);
    }
  return result;
}

std::vector<uint32_t> Dispatch::user_sgprs(bool preload) const {
  const package::KernelDescriptor &d = kernel.descriptor;
  std::vector<uint32_t> registers;
  auto push_pair = [&](uint64_t value) {
    registers.push_back(uint32_t(value));
    registers.push_back(uint32_t(value >> 32));
  };
  if (d.dispatch_ptr()) push_pair(address(0));
  if (d.queue_ptr()) push_pair(queue_address());
  if (d.kernarg_segment_ptr()) push_pair(kernarg_address());
  if (d.dispatch_id()) push_pair(0);
  if (d.private_segment_size()) registers.push_back(shape.scratch_bytes);
  for (uint32_t i = 0; preload && i < d.preload_length(); ++i) {
    uint32_t value = 0;
    const uint64_t at = (uint64_t(d.preload_offset()) + i) * 4;
    if (at + 4 <= kernarg.size()) std::memcpy(&value, kernarg.data() + at, 4);
    registers.push_back(value);
  }
  registers.resize(d.user_sgprs());
  return registers;
}

} // namespace sluice::emulator

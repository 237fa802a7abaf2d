//===- dispatch.h - kernel state set up by the driver and the command processor -------------------------===//
//
// The memory that a kernel's initial pointers refer to (its arguments, the dispatch packet, the queue) and
// the scalar registers that all waves of a launch start with (AMDGPUUsage, "Kernel Dispatch").
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "emulator/memory/memory.h"
#include "package/code_object.h"

namespace sluice::emulator {

struct DispatchShape {
  std::array<uint32_t, 3> grid;  // in workgroups
  std::array<uint32_t, 3> block; // in work-items
  uint32_t lds_bytes = 0;        // static and dynamic
  uint32_t scratch_bytes = 0;    // per lane
  bool cooperative = false;
};

/// Throws std::invalid_argument for a launch that no driver accepts, and for descriptor settings that the
/// machine does not support.
void check_dispatch(const package::Kernel &kernel, const DispatchShape &shape, size_t kernarg_bytes);

/// Per lane: what the compiler counted, plus room for a stack that it could not count.
uint32_t scratch_bytes_of(const package::Kernel &kernel);

class Dispatch {
public:
  /// `image` is the address of the code object. `kernarg` is copied and gets the arguments that runtimes add.
  Dispatch(const package::Kernel &kernel, const DispatchShape &shape, uint64_t image,
           std::span<const std::byte> kernarg);

  /// Packet, queue and arguments, which are read-only, and a cooperative launch's block for its barriers:
  /// memory that only this launch sees.
  std::vector<MemoryBlock> blocks() const;

  /// The user SGPRs, from s0 on. `preload`: they contain arguments if the kernel asks for that.
  std::vector<uint32_t> user_sgprs(bool preload) const;

private:
  /// Aligned like a cache line: the time a launch is estimated to take must not depend on where the host's
  /// heap is.
  struct alignas(128) Line {
    std::byte bytes[128];
  };

  std::span<std::byte> packet() { return {lines[0].bytes, 64}; }
  std::span<std::byte> queue() { return {lines[1].bytes, 256}; }
  std::span<std::byte> grid_sync() { return {lines[grid_sync_line].bytes, grid_sync_bytes}; }
  uint64_t address(size_t line) const { return reinterpret_cast<uint64_t>(lines.data() + line); }
  uint64_t queue_address() const { return address(1); }
  uint64_t kernarg_address() const { return address(first_kernarg_line); }
  uint64_t grid_sync_address() const { return address(grid_sync_line); }
  void fill_packet(uint64_t image);
  void fill_grid_sync();
  void fill_hidden_arguments(size_t given);

  static constexpr size_t grid_sync_line = 3;
  static constexpr size_t grid_sync_bytes = 48;
  static constexpr size_t first_kernarg_line = 4;

  const package::Kernel &kernel;
  const DispatchShape shape;
  const size_t kernarg_bytes;
  std::vector<Line> lines; // the packet, two of the queue, grid_sync, the arguments
  std::span<std::byte> kernarg;
};

} // namespace sluice::emulator

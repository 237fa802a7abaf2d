//===- operations.h - the operations of streams and graphs ----------------------------------------------===//
//
// Each operation is a value made by a HIP call, which has checked it and copied its inputs. A stream runs it
// once; a node of a graph keeps it and runs it at every launch.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "emulator/hip/host_calls.h"
#include "emulator/hip/module.h"
#include "emulator/hip/types.h"
#include <sluice/emulator.h>

namespace sluice::emulator::hip {

class Event;
class Stream;

struct LaunchShape {
  std::array<uint32_t, 3> grid; // workgroups
  std::array<uint32_t, 3> block;
  uint32_t dynamic_lds_bytes;
};

struct KernelLaunch {
  std::shared_ptr<const Function> function;
  LaunchShape shape;
  std::vector<std::byte> arguments;
  bool cooperative = false;  // its workgroups may wait for each other
  CallSite launched_by = {}; // empty unless reports need it
  /// Whether the filters select it; a node of a graph is selected anew each time it runs.
  std::optional<bool> selected = {};
  void run(const Options &options) const;
};

/// Rows of bytes in slices. If there is only one row, or only one slice, the strides between them do not
/// matter.
struct Copy {
  struct Side {
    std::byte *start;
    size_t row_stride = 0;
    size_t slice_stride = 0;
    uint64_t block = 0; // serial of its block; 0: host memory that no kernel can access
  };
  Side to;
  Side from;
  size_t row_bytes;
  size_t rows = 1;
  size_t slices = 1;

  bool empty() const { return row_bytes == 0 || rows == 0 || slices == 0; }
  /// From the first byte to the last of a side; check_copy has checked that this does not wrap.
  size_t span_bytes(const Side &side) const {
    return (slices - 1) * side.slice_stride + (rows - 1) * side.row_stride + row_bytes;
  }
  void run(const Options &options) const;

private:
  std::string name() const { return "copy of " + std::to_string(row_bytes * rows * slices) + " bytes"; }
  void follow_copy(InexactMemory &values, const std::byte *target, const std::byte *source) const;
  void report_unwritten(const BlockTable &memory, const Options &options) const;
};

struct Fill {
  std::byte *to;
  uint32_t value;
  uint32_t element_bytes; // 1, 2 or 4
  size_t width;           // elements per row
  size_t rows = 1;
  size_t row_stride = 0; // bytes
  uint64_t block = 0;    // serial of its block

  bool empty() const { return width == 0 || rows == 0; }
  /// check_fill has checked that this does not wrap.
  size_t span_bytes() const { return (rows - 1) * row_stride + width * element_bytes; }
  void run(const Options &options) const;
};

struct HostCall {
  hipHostFn_t function;
  void *user;
  void run(const Options &) const { function(user); }
};

/// Checks what a library's call reads from memory, at the time the call runs: see sluice_emulator_check_call.
struct ContentsCheck {
  std::string name;
  sluice_emulator_check_t check;
  std::vector<std::byte> call;
  void run(const Options &options) const;
};

struct NodeList;
struct ChildGraph {
  std::shared_ptr<const NodeList> nodes;
};
struct EmptyNode {};
struct EventWait {
  std::shared_ptr<Event> event;
};
struct EventMark {
  std::shared_ptr<Event> event;
};

/// The work of a graph node, in the order of hipGraphNodeType; types that HIP does not have come last.
using NodeWork = std::variant<KernelLaunch, Copy, Fill, HostCall, ChildGraph, EmptyNode, EventWait, EventMark,
                              ContentsCheck>;

/// The launch that hipModuleLaunchKernel's arguments describe. Throws Failure with HIP's codes.
KernelLaunch checked_launch(hipFunction_t function, const LaunchShape &shape, void **parameters,
                            void **extra);
Copy copy_of(void *to, const void *from, size_t size);
/// Throws Failure(hipErrorNotSupported) for arrays.
Copy copy_of(const hipMemcpy3DParms &parameters);
// Both note the blocks, and throw Failure unless all memory is where it must be (for a copy, where `kind`
// says), each device range within one block. Memory may be freed before the work runs, which then is an
// error.
void check_copy(Copy &copy, hipMemcpyKind kind);
void check_fill(Fill &fill);
/// The work of a node, with the blocks that exist now.
std::shared_ptr<const NodeWork> located(const std::shared_ptr<const NodeWork> &work);

/// Queues it, or adds it as a node to the graph that the stream is capturing.
void submit(const std::shared_ptr<Stream> &stream, KernelLaunch launch);
void submit(const std::shared_ptr<Stream> &stream, Copy copy);
void submit(const std::shared_ptr<Stream> &stream, Fill fill);
void submit(const std::shared_ptr<Stream> &stream, HostCall call);
void submit(const std::shared_ptr<Stream> &stream, ContentsCheck check);

} // namespace sluice::emulator::hip

//===- operations.cpp - the operations of streams and graphs --------------------------------------------===//
#include "emulator/hip/operations.h"

#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>

#include "emulator/hip/capture.h"
#include "emulator/hip/device.h"
#include "emulator/hip/error.h"
#include "emulator/hip/scheduler.h"
#include "emulator/hip/stream_races.h"
#include "support/checked.h"

namespace sluice::emulator::hip {

namespace {

/// HIP's error code for what a check found.
hipError_t error_of(const Report &report) {
  switch (report.kind) {
  case ReportKind::global_out_of_bounds:
  case ReportKind::global_freed:
  case ReportKind::global_read_only:
  case ReportKind::no_peer_access:
  case ReportKind::misaligned:
  case ReportKind::scratch_out_of_bounds:
    return hipErrorIllegalAddress;
  default:
    return hipErrorLaunchFailure;
  }
}

bool within(const std::optional<MemoryBlock> &block, const void *start, size_t size) {
  return block->contains(reinterpret_cast<uint64_t>(start), size);
}

/// From the first byte of `slices` slices of `rows` rows to the last. Throws Failure if that wraps.
size_t checked_span(size_t slices, size_t slice_stride, size_t rows, size_t row_stride, size_t row_bytes) {
  const auto sum = [](std::optional<size_t> a, std::optional<size_t> b) {
    require(a && b, hipErrorInvalidValue);
    return support::checked_add(*a, *b);
  };
  const auto whole = sum(sum(support::checked_multiply(slices - 1, slice_stride),
                             support::checked_multiply(rows - 1, row_stride)),
                         row_bytes);
  require(whole.has_value(), hipErrorInvalidValue);
  return *whole;
}

/// A device side must be within one live block, device or pinned; a host side must not leave a block that it
/// is in. The block's serial, or 0.
uint64_t check_range(const void *start, size_t size, bool device_side) {
  require(in_address_space(reinterpret_cast<uint64_t>(start), size), hipErrorInvalidValue);
  const std::optional<MemoryBlock> block = Device::get().memory().find(start);
  require(block ? within(block, start, size) : !device_side, hipErrorInvalidValue);
  return block ? block->serial : 0;
}

void locate(const void *start, size_t size, uint64_t &serial) {
  const std::optional<MemoryBlock> block = Device::get().memory().find(start);
  if (block && within(block, start, size)) serial = block->serial;
}

bool is_live(const BlockTable &memory, const void *start, size_t size, uint64_t serial) {
  if (serial == 0) return true;
  const MemoryBlock *const block = memory.find(reinterpret_cast<uint64_t>(start), size);
  return block != nullptr && !block->freed && block->serial == serial;
}

/// Work does not run if its memory was freed meanwhile. If the two are unordered, that is the race already
/// reported, not a fault.
void refuse_freed(const std::string &name, const void *start, bool reported) {
  if (reported) return;
  Report report;
  report.kind = ReportKind::global_freed;
  report.kernel = name;
  report.message = "touches memory that is freed before it runs";
  report.address = reinterpret_cast<uint64_t>(start);
  Device::get().add_report(std::move(report));
  throw Failure(hipErrorIllegalAddress);
}

template <typename Call> void enqueue_call(const std::shared_ptr<Stream> &stream, Call call) {
  Scheduler::get().require_no_fault(stream->device);
  Scheduler::get().enqueue(
      stream, [call = std::move(call), options = Device::get().options()] { call.run(options); });
}

template <typename Call> void submit_call(const std::shared_ptr<Stream> &stream, Call call) {
  if (!capture(stream, call)) enqueue_call(stream, std::move(call));
}

} // namespace

void KernelLaunch::run(const Options &given) const {
  Device &device = Device::get();
  Options options = given;
  options.list_memory_uses = compares_streams(given);
  options.cooperative = cooperative;
  options.clock_start = device.clock();
  options.reachable_devices = device.reachable_from(function->module->device());
  const bool checked = selected ? *selected : device.filter().select(function->kernel->name);
  if (!checked) {
    // It writes memory without a trace, so all memory counts as written afterwards.
    if (options.checks.uninitialised) device.memory().count_as_written();
    options.checks = Checks::none();
    options.list_memory_uses = false;
  }
  LaunchResult result;
  try {
    result = launch(function->module->program(), function->kernel->name, shape.grid, shape.block,
                    shape.dynamic_lds_bytes, arguments, device.memory(), options);
  } catch (const std::invalid_argument &error) {
    result.kernel = function->kernel->name;
    Report refused;
    refused.kind = ReportKind::launch_refused;
    refused.kernel = function->kernel->name;
    refused.message = error.what();
    result.reports.push_back(std::move(refused));
  }
  result.checked = checked;
  for (Report &report : result.reports)
    describe_host_calls(report, &launched_by);
  device.add_result(result);
  if (options.list_memory_uses)
    StreamRaces::get().enter("kernel " + function->kernel->name, std::move(result.uses));
  if (const Report *const failure = result.failure()) throw Failure(error_of(*failure));
}

void ContentsCheck::run(const Options &options) const {
  char message[512];
  if (check(call.data(), message, sizeof message) == 0) return;
  Report report;
  report.kind = ReportKind::bad_contents;
  report.kernel = name;
  report.message = message;
  report.set(consequence_of(report.kind, report.level, options));
  if (Device::get().add_report(std::move(report))) throw Failure(hipErrorLaunchFailure);
}

void Copy::run(const Options &options) const {
  const std::shared_ptr<const BlockTable> memory = Device::get().memory().snapshot();
  bool freed_in_use = false;
  if (compares_streams(options)) {
    std::vector<MemoryUse> uses;
    for (size_t slice = 0; slice < slices; ++slice)
      for (size_t row = 0; row < rows; ++row)
        for (const auto &[side, kind] :
             {std::pair{&from, MemoryUse::Kind::read}, std::pair{&to, MemoryUse::Kind::write}})
          add_use(uses, side->start + slice * side->slice_stride + row * side->row_stride, row_bytes,
                  side->block, kind);
    freed_in_use = StreamRaces::get().enter(name(), std::move(uses));
  }
  for (const Side *side : {&to, &from})
    if (!is_live(*memory, side->start, span_bytes(*side), side->block))
      return refuse_freed(name(), side->start, freed_in_use);
  // Only with the other check do kernels note what they write.
  if (options.checks.unwritten_copies && options.checks.uninitialised) report_unwritten(*memory, options);
  for (size_t slice = 0; slice < slices; ++slice)
    for (size_t row = 0; row < rows; ++row) {
      std::byte *const target = to.start + slice * to.slice_stride + row * to.row_stride;
      const std::byte *const source = from.start + slice * from.slice_stride + row * from.row_stride;
      std::memmove(target, source, row_bytes);
      Device::get().memory().copy_written(target, source, row_bytes);
      if (options.fidelity) follow_copy(*options.fidelity, target, source);
    }
}

void Fill::run(const Options &options) const {
  const std::shared_ptr<const BlockTable> memory = Device::get().memory().snapshot();
  const std::string name = "fill of " + std::to_string(width * element_bytes * rows) + " bytes";
  bool freed_in_use = false;
  if (compares_streams(options)) {
    std::vector<MemoryUse> uses;
    for (size_t row = 0; row < rows; ++row)
      add_use(uses, to + row * row_stride, width * element_bytes, block, MemoryUse::Kind::write);
    freed_in_use = StreamRaces::get().enter(name, std::move(uses));
  }
  if (!is_live(*memory, to, span_bytes(), block)) return refuse_freed(name, to, freed_in_use);
  for (size_t row = 0; row < rows; ++row) {
    std::byte *const start = to + row * row_stride;
    if (element_bytes == 1) {
      std::memset(start, int(value), width);
    } else {
      for (size_t i = 0; i < width; ++i)
        std::memcpy(start + i * element_bytes, &value, element_bytes);
    }
    Device::get().memory().mark_written(start, width * element_bytes);
    if (options.fidelity) options.fidelity->set(reinterpret_cast<uint64_t>(start), width * element_bytes, 0);
  }
}

/// What the host computes is not followed: what it copies to the device counts as exact.
void Copy::follow_copy(InexactMemory &values, const std::byte *target, const std::byte *source) const {
  if (to.block == 0) return;
  const auto address = [](const std::byte *start) { return reinterpret_cast<uint64_t>(start); };
  if (from.block == 0)
    values.set(address(target), row_bytes, 0);
  else
    values.copy(address(target), address(source), row_bytes);
}

void Copy::report_unwritten(const BlockTable &memory, const Options &options) const {
  const MemoryBlock *const source = memory.find(reinterpret_cast<uint64_t>(from.start), span_bytes(from));
  const MemoryBlock *const target = memory.find(reinterpret_cast<uint64_t>(to.start), 1);
  const bool to_host = target == nullptr || target->device == MemoryBlock::host;
  if (source == nullptr || source->written == nullptr || !to_host) return;
  uint64_t unwritten = 0;
  uint64_t first = 0; // its address
  for (size_t slice = 0; slice < slices; ++slice)
    for (size_t row = 0; row < rows; ++row) {
      const uint64_t start =
          reinterpret_cast<uint64_t>(from.start) + slice * from.slice_stride + row * from.row_stride;
      if (is_written(*source, start, row_bytes)) continue;
      for (uint64_t address = start; address < start + row_bytes; ++address) {
        if (is_written(*source, address, 1)) continue;
        if (unwritten++ == 0) first = address;
      }
    }
  if (unwritten == 0) return;
  Device::get().add_host_finding(options.warnings, ReportKind::copy_uninitialised, name(),
                                 "copies to the host " + std::to_string(unwritten) +
                                     " bytes that were never written, from byte " +
                                     std::to_string(first - source->address) + " of a block of " +
                                     std::to_string(source->bytes) + " bytes on",
                                 first);
}

Copy copy_of(void *to, const void *from, size_t size) {
  return {{static_cast<std::byte *>(to)}, {static_cast<std::byte *>(const_cast<void *>(from))}, size};
}

Copy copy_of(const hipMemcpy3DParms &parameters) {
  require(parameters.srcArray == nullptr && parameters.dstArray == nullptr, hipErrorNotSupported);
  auto side = [](const hipPitchedPtr &memory, const hipPos &at) {
    const std::optional<size_t> slice_stride = support::checked_multiply(memory.pitch, memory.ysize);
    require(memory.ptr != nullptr && slice_stride && at.x < SIZE_MAX && at.y < SIZE_MAX && at.z < SIZE_MAX,
            hipErrorInvalidValue);
    const size_t offset = checked_span(at.z + 1, *slice_stride, at.y + 1, memory.pitch, at.x);
    require(in_address_space(reinterpret_cast<uint64_t>(memory.ptr), offset), hipErrorInvalidValue);
    return Copy::Side{static_cast<std::byte *>(memory.ptr) + offset, memory.pitch, *slice_stride};
  };
  return {side(parameters.dstPtr, parameters.dstPos), side(parameters.srcPtr, parameters.srcPos),
          parameters.extent.width, parameters.extent.height, parameters.extent.depth};
}

void check_copy(Copy &copy, hipMemcpyKind kind) {
  require(copy.to.start != nullptr && copy.from.start != nullptr, hipErrorInvalidValue);
  require(kind >= hipMemcpyHostToHost && kind <= hipMemcpyDefault, hipErrorInvalidMemcpyDirection);
  for (const Copy::Side *side : {&copy.to, &copy.from}) {
    require(copy.rows == 1 || side->row_stride >= copy.row_bytes, hipErrorInvalidPitchValue);
    const std::optional<size_t> slice_bytes = support::checked_multiply(side->row_stride, copy.rows);
    require(copy.slices == 1 || (slice_bytes && side->slice_stride >= *slice_bytes), hipErrorInvalidValue);
  }
  const auto check_side = [&copy](Copy::Side &side, bool device_side) {
    const size_t span =
        checked_span(copy.slices, side.slice_stride, copy.rows, side.row_stride, copy.row_bytes);
    side.block = check_range(side.start, span, device_side);
  };
  check_side(copy.to, kind == hipMemcpyHostToDevice || kind == hipMemcpyDeviceToDevice);
  check_side(copy.from, kind == hipMemcpyDeviceToHost || kind == hipMemcpyDeviceToDevice);
}

void check_fill(Fill &fill) {
  require(fill.to != nullptr && fill.width <= SIZE_MAX / fill.element_bytes, hipErrorInvalidValue);
  require(fill.rows == 1 || fill.row_stride >= fill.width * fill.element_bytes, hipErrorInvalidValue);
  const size_t span = checked_span(1, 0, fill.rows, fill.row_stride, fill.width * fill.element_bytes);
  fill.block = check_range(fill.to, span, true);
}

std::shared_ptr<const NodeWork> located(const std::shared_ptr<const NodeWork> &work) {
  if (const auto *copy = std::get_if<Copy>(work.get())) {
    Copy now = *copy;
    for (Copy::Side *side : {&now.to, &now.from})
      locate(side->start, now.span_bytes(*side), side->block);
    return std::make_shared<const NodeWork>(now);
  }
  if (const auto *fill = std::get_if<Fill>(work.get())) {
    Fill now = *fill;
    locate(now.to, now.span_bytes(), now.block);
    return std::make_shared<const NodeWork>(now);
  }
  return work;
}

void submit(const std::shared_ptr<Stream> &stream, KernelLaunch launch) {
  launch.launched_by = call_site();
  if (capture(stream, launch)) return;
  launch.selected = Device::get().filter().select(launch.function->kernel->name);
  enqueue_call(stream, std::move(launch));
}

void submit(const std::shared_ptr<Stream> &stream, Copy copy) {
  submit_call(stream, copy);
}

void submit(const std::shared_ptr<Stream> &stream, Fill fill) {
  submit_call(stream, fill);
}

void submit(const std::shared_ptr<Stream> &stream, HostCall call) {
  if (capture(stream, call)) return;
  Scheduler::get().require_no_fault(stream->device);
  Scheduler::get().enqueue_host_call(stream, [call] { call.function(call.user); });
}

void submit(const std::shared_ptr<Stream> &stream, ContentsCheck check) {
  submit_call(stream, std::move(check));
}

} // namespace sluice::emulator::hip

//===- capture.cpp - streams that capture their work into a graph ---------------------------------------===//
#include "emulator/hip/capture.h"

#include <algorithm>
#include <atomic>

#include "emulator/hip/error.h"
#include "emulator/hip/functions.h"
#include "emulator/hip/handles.h"
#include "emulator/hip/streams.h"
#include "emulator/hip/thread_state.h"

namespace sluice::emulator::hip {

namespace {

using GraphHandles = Handles<hipGraph_t, Graph>;
using NodeHandles = Handles<hipGraphNode_t, GraphNode>;
using Lock = std::lock_guard<std::mutex>;

/// Captures that have not ended. Guarded by the graphs' mutex; the count can be read without it.
std::vector<std::shared_ptr<Capture>> &active() {
  static auto *const captures = new std::vector<std::shared_ptr<Capture>>;
  return *captures;
}
std::atomic<size_t> active_count = 0;

bool blocking(const Capture &capture) {
  return std::any_of(
      capture.streams.begin(), capture.streams.end(),
      [](const std::shared_ptr<Stream> &stream) { return (stream->flags & hipStreamNonBlocking) == 0; });
}

[[noreturn]] void fail(Capture &capture, hipError_t error) {
  capture.invalid = true;
  throw Failure(error);
}

void join(const std::shared_ptr<Stream> &stream, const std::shared_ptr<Capture> &capture,
          std::vector<hipGraphNode_t> last) {
  stream->branch = std::make_shared<CaptureBranch>(CaptureBranch{capture, std::move(last)});
  stream->capturing = true;
  capture->streams.push_back(stream);
}

/// The stream's branch if it is capturing, else null. Call with the mutex held.
CaptureBranch *valid_branch(const std::shared_ptr<Stream> &stream) {
  CaptureBranch *const branch = stream->branch.get();
  require(branch == nullptr || !branch->capture->invalid, hipErrorStreamCaptureInvalidated);
  return branch;
}

/// Its streams no longer capture.
void end(const std::shared_ptr<Capture> &capture) {
  for (const std::shared_ptr<Stream> &part : capture->streams) {
    part->branch.reset();
    part->capturing = false;
  }
  capture->streams.clear();
  capture->origin.reset();
  capture->graph.reset();
  std::erase(active(), capture);
  active_count = active().size();
}

std::shared_ptr<Stream> stream_to_capture(hipStream_t handle) {
  std::shared_ptr<Stream> stream = find_stream(handle);
  require(!stream->null, hipErrorStreamCaptureUnsupported);
  return stream;
}

hipError_t capture_info(hipStream_t handle, hipStreamCaptureStatus *status, unsigned long long *id,
                        hipGraph_t *graph, const hipGraphNode_t **dependencies, size_t *dependency_count) {
  require(status != nullptr, hipErrorInvalidValue);
  const std::shared_ptr<Stream> stream = find_stream(handle);
  const Lock lock(graph_mutex());
  if (stream->null)
    for (const std::shared_ptr<Capture> &capture : active())
      require(!blocking(*capture), hipErrorStreamCaptureImplicit);
  const CaptureBranch *const branch = stream->branch.get();
  *status = branch == nullptr          ? hipStreamCaptureStatusNone
            : branch->capture->invalid ? hipStreamCaptureStatusInvalidated
                                       : hipStreamCaptureStatusActive;
  if (*status != hipStreamCaptureStatusActive) return hipSuccess;
  if (id) *id = branch->capture->id;
  if (graph) *graph = branch->capture->handle;
  if (dependencies) *dependencies = branch->last.data();
  if (dependency_count) *dependency_count = branch->last.size();
  return hipSuccess;
}

} // namespace

bool capture(const std::shared_ptr<Stream> &stream, NodeWork work) {
  if (!stream->capturing) return false;
  const Lock lock(graph_mutex());
  CaptureBranch *const branch = valid_branch(stream);
  if (branch == nullptr) return false;
  branch->last = {add_node(*branch->capture->graph, std::move(work), branch->last)};
  return true;
}

bool capture_record(const std::shared_ptr<Stream> &stream, Event &event) {
  if (!stream->capturing) return false;
  const Lock lock(graph_mutex());
  const CaptureBranch *const branch = valid_branch(stream);
  if (branch == nullptr) return false;
  event.set({nullptr, branch->capture, branch->last});
  return true;
}

bool capture_wait(const std::shared_ptr<Stream> &stream, Event &event) {
  if (active_count == 0 && !event.state().capture) return false;
  const Lock lock(graph_mutex());
  const Event::State state = event.state();
  CaptureBranch *const branch = valid_branch(stream);
  if (!state.capture) {
    if (branch && state.record) fail(*branch->capture, hipErrorStreamCaptureIsolation);
    return branch != nullptr;
  }
  Capture &capture = *state.capture;
  require(!capture.streams.empty(), hipErrorCapturedEvent); // the capture has ended
  require(!capture.invalid, hipErrorStreamCaptureInvalidated);
  if (branch && branch->capture != state.capture) {
    branch->capture->invalid = true;
    fail(capture, hipErrorStreamCaptureMerge);
  }
  if (stream->null) fail(capture, hipErrorStreamCaptureImplicit);
  if (!branch) {
    join(stream, state.capture, state.nodes);
    return true;
  }
  for (hipGraphNode_t node : state.nodes)
    if (std::find(branch->last.begin(), branch->last.end(), node) == branch->last.end())
      branch->last.push_back(node);
  return true;
}

void leave_capture(const std::shared_ptr<Stream> &stream) {
  if (!stream->capturing) return;
  const Lock lock(graph_mutex());
  const std::shared_ptr<CaptureBranch> branch = stream->branch;
  if (!branch) return;
  Capture &capture = *branch->capture;
  if (capture.origin == stream) {
    end(branch->capture);
    GraphHandles::get().remove(capture.handle);
    return;
  }
  std::erase(capture.streams, stream);
  stream->branch.reset();
  stream->capturing = false;
}

std::shared_ptr<EventRecord> Event::latest() {
  State state = this->state();
  if (!state.capture) return state.record;
  const Lock lock(graph_mutex());
  fail(*state.capture, hipErrorCapturedEvent);
}

bool being_captured(const Graph &graph) {
  return std::any_of(active().begin(), active().end(),
                     [&](const std::shared_ptr<Capture> &capture) { return capture->graph.get() == &graph; });
}

void refuse_while_capturing(const std::shared_ptr<Stream> &stream) {
  if (!stream->capturing) return;
  const Lock lock(graph_mutex());
  if (stream->branch) fail(*stream->branch->capture, hipErrorStreamCaptureUnsupported);
}

void refuse_while_any_captures() {
  if (active_count == 0) return;
  const Lock lock(graph_mutex());
  for (const std::shared_ptr<Capture> &capture : active())
    capture->invalid = true;
  require(active().empty(), hipErrorStreamCaptureUnsupported);
}

void refuse_implicit_dependency() {
  if (active_count == 0) return;
  const Lock lock(graph_mutex());
  bool refused = false;
  for (const std::shared_ptr<Capture> &capture : active())
    if (blocking(*capture)) capture->invalid = refused = true;
  require(!refused, hipErrorStreamCaptureImplicit);
}

void refuse_unsafe_call() {
  if (active_count == 0 || thread_state.capture_mode == hipStreamCaptureModeRelaxed) return;
  const Lock lock(graph_mutex());
  bool refused = false;
  for (const std::shared_ptr<Capture> &capture : active()) {
    if (capture->mode == hipStreamCaptureModeRelaxed) continue;
    const bool from_any_thread = capture->mode == hipStreamCaptureModeGlobal &&
                                 thread_state.capture_mode == hipStreamCaptureModeGlobal;
    if (from_any_thread || capture->thread == std::this_thread::get_id()) capture->invalid = refused = true;
  }
  require(!refused, hipErrorStreamCaptureUnsupported);
}

//===--- The functions ----------------------------------------------------------------------------------===//

hipError_t hipStreamBeginCapture(hipStream_t handle, hipStreamCaptureMode mode) {
  return call([&] {
    require(mode >= hipStreamCaptureModeGlobal && mode <= hipStreamCaptureModeRelaxed, hipErrorInvalidValue);
    const std::shared_ptr<Stream> stream = stream_to_capture(handle);
    const Lock lock(graph_mutex());
    require(!stream->branch, hipErrorIllegalState);
    static uint64_t captures = 0;
    auto capture = std::make_shared<Capture>();
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    capture->id = ++captures;
    capture->origin = stream;
    capture->graph = std::make_shared<Graph>();
    capture->handle = GraphHandles::get().add(capture->graph);
    join(stream, capture, {});
    active().push_back(std::move(capture));
    active_count = active().size();
  });
}

hipError_t hipStreamEndCapture(hipStream_t handle, hipGraph_t *graph) {
  return call([&] {
    require(graph != nullptr, hipErrorInvalidValue);
    const std::shared_ptr<Stream> stream = stream_to_capture(handle);
    const Lock lock(graph_mutex());
    const std::shared_ptr<CaptureBranch> branch = stream->branch;
    require(branch != nullptr, hipErrorIllegalState);
    Capture &capture = *branch->capture;
    require(capture.mode == hipStreamCaptureModeRelaxed || capture.thread == std::this_thread::get_id(),
            hipErrorStreamCaptureWrongThread);
    require(capture.origin == stream, hipErrorStreamCaptureUnmatched);
    std::vector<hipGraphNode_t> ends = branch->last;
    ends.insert(ends.end(), capture.dropped.begin(), capture.dropped.end());
    const bool joined = all_before(*capture.graph, ends);
    end(branch->capture);
    const bool usable = joined && !capture.invalid;
    *graph = usable ? capture.handle : nullptr;
    if (!usable) GraphHandles::get().remove(capture.handle);
    require(!capture.invalid, hipErrorStreamCaptureInvalidated);
    require(joined, hipErrorStreamCaptureUnjoined);
  });
}

hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus *status) {
  return call([&] { return capture_info(stream, status, nullptr, nullptr, nullptr, nullptr); });
}

hipError_t hipStreamGetCaptureInfo(hipStream_t stream, hipStreamCaptureStatus *status,
                                   unsigned long long *id) {
  return call([&] { return capture_info(stream, status, id, nullptr, nullptr, nullptr); });
}

hipError_t hipStreamGetCaptureInfo_v2(hipStream_t stream, hipStreamCaptureStatus *status,
                                      unsigned long long *id, hipGraph_t *graph,
                                      const hipGraphNode_t **dependencies, size_t *dependency_count) {
  return call([&] { return capture_info(stream, status, id, graph, dependencies, dependency_count); });
}

hipError_t hipStreamUpdateCaptureDependencies(hipStream_t handle, hipGraphNode_t *dependencies,
                                              size_t dependency_count, unsigned flags) {
  return call([&] {
    require(flags == hipStreamAddCaptureDependencies || flags == hipStreamSetCaptureDependencies,
            hipErrorInvalidValue);
    require(dependencies != nullptr || dependency_count == 0, hipErrorInvalidValue);
    const std::shared_ptr<Stream> stream = stream_to_capture(handle);
    const Lock lock(graph_mutex());
    CaptureBranch *const branch = valid_branch(stream);
    require(branch != nullptr, hipErrorIllegalState);
    std::vector<hipGraphNode_t> last;
    if (flags == hipStreamAddCaptureDependencies) last = branch->last;
    for (hipGraphNode_t node : std::span(dependencies, dependency_count)) {
      require(NodeHandles::get().find(node, hipErrorInvalidValue)->graph == branch->capture->graph.get(),
              hipErrorInvalidValue);
      if (std::find(last.begin(), last.end(), node) == last.end()) last.push_back(node);
    }
    for (hipGraphNode_t node : branch->last)
      if (std::find(last.begin(), last.end(), node) == last.end()) branch->capture->dropped.push_back(node);
    branch->last = std::move(last);
  });
}

hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode *mode) {
  return call([&] {
    require(mode != nullptr && *mode >= hipStreamCaptureModeGlobal && *mode <= hipStreamCaptureModeRelaxed,
            hipErrorInvalidValue);
    std::swap(*mode, thread_state.capture_mode);
  });
}

} // namespace sluice::emulator::hip

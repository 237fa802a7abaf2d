//===- capture.h - streams that capture their work into a graph -----------------------------------------===//
//
// A capture begins at one stream and spreads to streams that wait for its events. Illegal calls during a
// capture make it invalid: it can then only end, without a graph.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <memory>
#include <thread>

#include "emulator/hip/events.h"
#include "emulator/hip/graph.h"

namespace sluice::emulator::hip {

class Capture {
public:
  hipStreamCaptureMode mode;
  std::thread::id thread; // the thread that began it
  uint64_t id;
  std::shared_ptr<Stream> origin;
  hipGraph_t handle;
  std::shared_ptr<Graph> graph;
  std::vector<std::shared_ptr<Stream>> streams; // origin and those that joined; empty once it has ended
  std::vector<hipGraphNode_t> dropped; // dependencies that the program took away: nothing must join them
  bool invalid = false;
};

/// A stream's part in a capture.
struct CaptureBranch {
  std::shared_ptr<Capture> capture;
  std::vector<hipGraphNode_t> last; // dependencies of the next node
};

/// Returns true if the stream is capturing; the work is then a node. Throws Failure if the capture is
/// invalid.
bool capture(const std::shared_ptr<Stream> &stream, NodeWork work);
bool capture_record(const std::shared_ptr<Stream> &stream, Event &event);
/// Also true if the stream has joined the event's capture.
bool capture_wait(const std::shared_ptr<Stream> &stream, Event &event);

/// For a stream that is destroyed: a capture ends with its origin, without a graph; what another stream has
/// captured must still be joined.
void leave_capture(const std::shared_ptr<Stream> &stream);

/// Call with the graphs' mutex held.
bool being_captured(const Graph &graph);

/// Throws Failure if the stream is capturing, and makes the capture invalid.
void refuse_while_capturing(const std::shared_ptr<Stream> &stream);
/// For calls that affect the whole device.
void refuse_while_any_captures();
/// For work of the null stream, which would have to wait for a capturing blocking stream.
void refuse_implicit_dependency();
/// For calls that HIP calls unsafe; the modes of the thread and of the captures decide when they are refused.
void refuse_unsafe_call();

} // namespace sluice::emulator::hip

//===- capture.h - streams that make a graph of what they are given -------------------------------------===//
//
// A capture begins at one stream and spreads to those that wait for its events. What is illegal meanwhile
// makes the capture invalid: it only ends then, without a graph.
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
  std::thread::id thread; // that began it
  uint64_t id;
  std::shared_ptr<Stream> origin;
  hipGraph_t handle;
  std::shared_ptr<Graph> graph;
  std::vector<std::shared_ptr<Stream>> streams; // origin and those that joined; empty once it has ended
  bool invalid = false;
};

/// A stream's part in a capture.
struct CaptureBranch {
  std::shared_ptr<Capture> capture;
  std::vector<hipGraphNode_t> last; // what the next node depends on
};

/// True if the stream is capturing, and the work is a node now. Throws Failure if the capture is invalid.
bool capture(const std::shared_ptr<Stream> &stream, NodeWork work);
bool capture_record(const std::shared_ptr<Stream> &stream, Event &event);
/// True also if the stream has joined the event's capture.
bool capture_wait(const std::shared_ptr<Stream> &stream, Event &event);

/// With the graphs' mutex held.
bool being_captured(const Graph &graph);

/// Throws Failure if the stream is capturing, which makes the capture invalid.
void refuse_while_capturing(const std::shared_ptr<Stream> &stream);
/// For calls that concern all of the device.
void refuse_while_any_captures();
/// For work of the null stream, which a blocking stream that captures would have to wait for.
void refuse_implicit_dependency();
/// For calls that HIP calls unsafe; the modes of the thread and of the captures say when they are refused.
void refuse_unsafe_call();

} // namespace sluice::emulator::hip

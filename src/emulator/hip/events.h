//===- events.h - event handles -------------------------------------------------------------------------===//
//
// An event's last record was in a stream, which gives a ticket to wait for, or in a capturing stream, which
// gives nodes of a graph and nothing to wait for.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <vector>

#include "emulator/hip/scheduler.h"

namespace sluice::emulator::hip {

class Capture;

class Event {
public:
  Event(int event_device, unsigned event_flags) : device(event_device), flags(event_flags) {}
  const int device;
  const unsigned flags;

  struct State {
    std::shared_ptr<EventRecord> record; // null: never recorded, or captured
    std::shared_ptr<Capture> capture;    // null: not recorded in a capture
    std::vector<hipGraphNode_t> nodes;   // the nodes that a captured event comes after
  };
  State state() {
    const std::lock_guard lock(mutex);
    return current;
  }
  void set(State state) {
    const std::lock_guard lock(mutex);
    current = std::move(state);
  }
  /// The latest record, or null. Throws Failure(hipErrorCapturedEvent).
  std::shared_ptr<EventRecord> latest();

private:
  std::mutex mutex;
  State current;
};

/// Throws Failure(hipErrorInvalidHandle).
std::shared_ptr<Event> find_event(hipEvent_t event);

} // namespace sluice::emulator::hip

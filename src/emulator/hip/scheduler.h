//===- scheduler.h - streams, as in-order queues that run at the same time ------------------------------===//
//
// Every stream has a worker thread of its own, started with its first asynchronous work. What work has to
// wait for beyond its own stream (events, the null stream's rule) is a list of tickets that were given out
// earlier, so no set of streams can wait in a circle. One mutex guards all queues; it is never held while
// work runs.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "emulator/hip/types.h"

namespace sluice::emulator::hip {

class Scheduler;
class Stream;

/// Work number `number` of a stream.
struct Ticket {
  std::shared_ptr<Stream> stream;
  uint64_t number = 0;
};

struct Work {
  std::function<void()> run;
  bool always = false; // even after a fault
  std::vector<Ticket> after;
};

class Stream {
public:
  Stream(unsigned stream_flags, int stream_priority) : flags(stream_flags), priority(stream_priority) {}
  const unsigned flags;
  const int priority;

private:
  friend class Scheduler;

  // All guarded by the scheduler's mutex.
  std::deque<Work> queue;
  uint64_t enqueued = 0;
  uint64_t completed = 0;
  bool busy = false; // work has left the queue and has not completed
  bool has_worker = false;
  bool closing = false;
};

/// One recording of an event: complete when its ticket is.
struct EventRecord {
  Ticket ticket;
  std::chrono::steady_clock::time_point time;
};

class Scheduler {
public:
  /// The process's. It is never destroyed: workers may still wait in it when the process ends.
  static Scheduler &get();

  const std::shared_ptr<Stream> &null_stream() const { return null; }
  std::shared_ptr<Stream> create(unsigned flags, int priority);
  /// Its work still runs; then its worker ends.
  void close(const std::shared_ptr<Stream> &stream);

  /// Queues work behind the stream's earlier work and `after`. When an earlier launch has faulted, only
  /// `always` work still runs; the rest is passed over.
  void enqueue(const std::shared_ptr<Stream> &stream, std::function<void()> run, bool always = false,
               std::vector<Ticket> after = {});
  /// The same on the calling thread if the stream is idle; returns when the work is done.
  void run(const std::shared_ptr<Stream> &stream, const std::function<void()> &work);

  std::shared_ptr<EventRecord> record(const std::shared_ptr<Stream> &stream);

  bool complete(const Ticket &ticket);
  bool idle(const std::shared_ptr<Stream> &stream);
  // The waits throw Failure(hipErrorIllegalState) on a worker's own thread: a host function that waited would
  // wait for itself.
  void wait(const Ticket &ticket);
  void wait(const std::shared_ptr<Stream> &stream);
  void wait_all();

  /// The error that sticks to the device, or success.
  hipError_t fault();
  /// Sets it unless there is one already.
  void set_fault(hipError_t error);
  /// Waits for all streams first.
  void clear_fault();
  /// Throws it.
  void require_no_fault();

private:
  using Lock = std::unique_lock<std::mutex>;

  Scheduler();
  uint64_t append(const std::shared_ptr<Stream> &stream, std::function<void()> run, bool always,
                  std::vector<Ticket> after);
  void add_null_stream_rule(const std::shared_ptr<Stream> &stream, std::vector<Ticket> &after) const;
  static bool ready(const std::vector<Ticket> &after);
  void perform(Lock &lock, Stream &stream, const std::function<void()> &work, bool always);
  void serve(const std::shared_ptr<Stream> &stream);
  static void refuse_on_worker();

  std::mutex mutex;
  std::condition_variable changed;
  std::shared_ptr<Stream> null;
  std::vector<std::shared_ptr<Stream>> streams; // open ones, and closed ones with work left
  hipError_t sticky = hipSuccess;
};

} // namespace sluice::emulator::hip

//===- scheduler.h - streams as in-order queues that run concurrently -----------------------------------===//
//
// Every stream has its own worker thread, started with its first asynchronous work. The dependencies of work
// beyond its own stream (events, the null stream's rule) are a list of tickets that were given out earlier,
// so no set of streams can wait in a circle. One mutex guards all queues; it is never held while work runs.
//
// Threads hide a missing dependency as long as they happen to run in the order of the calls. In a shuffled
// order nothing runs before a thread waits. The waiting thread then runs one piece of work after another,
// each drawn from those that may run. The same seed and the same calls give the same order.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "emulator/hip/stream_races.h"
#include "emulator/hip/types.h"
#include "emulator/memory/memory.h"

namespace sluice::emulator::hip {

class Scheduler;
class Stream;
struct CaptureBranch;

/// Work number `number` of a stream.
struct Ticket {
  std::shared_ptr<Stream> stream;
  uint64_t number = 0;
  std::shared_ptr<const Clock> clock; // of that work
};

struct Work {
  std::function<void()> run;
  bool always = false;    // runs even after a fault
  bool host_call = false; // a function of the host, which learns from it that all before it has completed
  std::shared_ptr<const Clock> clock = {};
  std::vector<Ticket> after = {};
};

class Stream {
public:
  Stream(int stream_device, unsigned stream_flags, int stream_priority, bool is_null = false)
      : device(stream_device), flags(stream_flags), priority(stream_priority), null(is_null) {}
  const int device;
  const unsigned flags;
  const int priority;
  const bool null; // true: its device's null stream
  const uint64_t id = next_id++;

  // The stream's part in a capture, guarded by the graphs' mutex; `capturing` can be read without it.
  std::shared_ptr<CaptureBranch> branch;
  std::atomic<bool> capturing = false;

private:
  friend class Scheduler;

  static std::atomic<uint64_t> next_id;

  // All guarded by the scheduler's mutex.
  std::shared_ptr<const Clock> clock = std::make_shared<const Clock>(); // of the last work
  std::deque<Work> queue;
  uint64_t enqueued = 0;
  uint64_t completed = 0;
  bool busy = false; // work taken from the queue has not completed
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
  /// The process's. Never destroyed: workers may still wait in it when the process ends.
  static Scheduler &get();

  const std::shared_ptr<Stream> &null_stream(int device) const { return nulls[size_t(device)]; }
  std::shared_ptr<Stream> create(int device, unsigned flags, int priority);
  /// Queued work still runs; then the worker ends.
  void close(const std::shared_ptr<Stream> &stream);

  /// Queues work after the stream's earlier work and `after`. If an earlier launch of the device has faulted,
  /// only `always` work still runs; the rest is skipped.
  void enqueue(const std::shared_ptr<Stream> &stream, std::function<void()> run, bool always = false,
               std::vector<Ticket> after = {});
  void enqueue_host_call(const std::shared_ptr<Stream> &stream, std::function<void()> function,
                         bool always = false);
  /// The same, on the calling thread if the stream is idle; returns when the work is done.
  void run(const std::shared_ptr<Stream> &stream, const std::function<void()> &work);

  /// One node of a launched graph.
  struct Piece {
    std::function<void()> run;
    bool always = false;
    bool host_call = false;
    size_t lane = 0;           // 0: the stream itself
    std::vector<size_t> after; // earlier pieces
    std::vector<Ticket> also_after;
    std::shared_ptr<EventRecord> record; // nullable: completes with the piece
  };
  /// Queues a graph: one piece of work to other work; its own pieces run in concurrent lanes. Returns a
  /// ticket that completes when all of it has; `keep` lives until then. `side_streams` are lanes 1 and up.
  Ticket enqueue_graph(const std::shared_ptr<Stream> &stream,
                       std::span<const std::shared_ptr<Stream>> side_streams, std::vector<Piece> pieces,
                       std::shared_ptr<const void> keep);

  std::shared_ptr<EventRecord> record(const std::shared_ptr<Stream> &stream);

  bool complete(const Ticket &ticket);
  bool idle(const std::shared_ptr<Stream> &stream);
  /// In a shuffled order, runs one piece of work, so that a program that only polls makes progress.
  void advance();
  // The waits throw Failure(hipErrorIllegalState) on a worker's own thread: a host function that waited there
  // would wait for itself.
  void wait(const Ticket &ticket);
  void wait(const std::shared_ptr<Stream> &stream);
  void wait_all();
  void wait_all(int device);

  /// nullopt: streams run on their own threads. Waits for all streams first, unless they did and will.
  void set_shuffled(std::optional<uint64_t> seed);

  /// How often a stream was closed with work left: HIP does not define whether that work still runs.
  uint64_t closed_busy();
  void reset_closed_busy();

  /// The sticky error of a device, or success.
  hipError_t fault(int device);
  /// For all devices. Waits for all streams first.
  void clear_faults();
  /// Throws that error, if any.
  void require_no_fault(int device);

private:
  using Lock = std::unique_lock<std::mutex>;

  Scheduler();
  uint64_t append(const std::shared_ptr<Stream> &stream, Work work);
  void add_null_stream_rule(const std::shared_ptr<Stream> &stream, std::vector<Ticket> &after) const;
  void advance_clock(const std::shared_ptr<Stream> &stream, const std::vector<Ticket> &after);
  void host_saw(const Clock &clock);
  void erase(const std::shared_ptr<Stream> &stream);
  static bool ready(const std::vector<Ticket> &after);
  void perform(Lock &lock, Stream &stream, Work &work);
  void serve(const std::shared_ptr<Stream> &stream);
  bool step(Lock &lock);
  template <typename Chosen> void wait_for(Chosen &&chosen);
  template <typename Condition> void wait_until(Lock &lock, Condition &&condition);
  static void refuse_on_worker();

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::shared_ptr<Stream>> nulls;   // by device
  std::vector<std::shared_ptr<Stream>> streams; // open ones, and closed ones with work left
  Clock host;                                   // work that the host has seen complete
  Clock gone;                                   // work of erased streams
  bool many_streams = false;                    // a stream other than the null stream has existed
  std::array<hipError_t, MemoryBlock::most_devices> sticky{};
  std::optional<std::mt19937_64> shuffle; // draws the next piece of work; nullopt: threads
  bool stepping = false;                  // a thread is running a drawn piece of work
  uint64_t busy_closes = 0;
};

} // namespace sluice::emulator::hip

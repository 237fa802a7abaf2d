//===- scheduler.cpp - streams as in-order queues that run concurrently ---------------------------------===//
//
// The null stream follows HIP's legacy rule: its work waits for all earlier work of blocking streams, and
// their work waits for its work. The rule does not apply to streams made with hipStreamNonBlocking.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/hip/scheduler.h"

#include <algorithm>
#include <cassert>
#include <thread>

#include "emulator/hip/error.h"
#include "emulator/hip/thread_state.h"

namespace sluice::emulator::hip {

namespace {

// The number of a graph's side streams that get a thread; further branches share these.
constexpr size_t most_graph_threads = 16;
constexpr size_t most_clock_entries = 64; // kept while nothing can be compared with them

} // namespace

std::atomic<uint64_t> Stream::next_id = 0;

Scheduler &Scheduler::get() {
  static Scheduler *const instance = new Scheduler;
  return *instance;
}

Scheduler::Scheduler() {
  for (int device = 0; device < MemoryBlock::most_devices; ++device)
    nulls.push_back(std::make_shared<Stream>(device, 0, 0, true));
  streams = nulls;
}

std::shared_ptr<Stream> Scheduler::create(int device, unsigned flags, int priority) {
  auto stream = std::make_shared<Stream>(device, flags, priority);
  const Lock lock(mutex);
  many_streams = true;
  streams.push_back(stream);
  return stream;
}

void Scheduler::close(const std::shared_ptr<Stream> &stream) {
  const Lock lock(mutex);
  stream->closing = true;
  if (stream->completed < stream->enqueued) ++busy_closes;
  if (!stream->has_worker && stream->completed == stream->enqueued) erase(stream);
  changed.notify_all();
}

void Scheduler::add_null_stream_rule(const std::shared_ptr<Stream> &stream,
                                     std::vector<Ticket> &after) const {
  if ((stream->flags & hipStreamNonBlocking) != 0) return;
  for (const std::shared_ptr<Stream> &other : streams) {
    const bool related = other != stream && other->device == stream->device &&
                         (other->flags & hipStreamNonBlocking) == 0 && (stream->null || other->null);
    if (related) after.push_back({other, other->enqueued, other->clock});
  }
}

bool Scheduler::ready(const std::vector<Ticket> &after) {
  return std::all_of(after.begin(), after.end(),
                     [](const Ticket &ticket) { return ticket.stream->completed >= ticket.number; });
}

/// Call with the mutex held. If it throws, nothing has changed.
uint64_t Scheduler::append(const std::shared_ptr<Stream> &stream, Work work) {
  std::vector<Ticket> &after = work.after;
  add_null_stream_rule(stream, after);
  if (!stream->has_worker && !shuffle) {
    orphan_forks();
    std::thread([this, stream] { serve(stream); }).detach();
    stream->has_worker = true;
  }
  advance_clock(stream, after);
  std::erase_if(after, [](const Ticket &ticket) { return ticket.stream->completed >= ticket.number; });
  work.clock = stream->clock;
  stream->queue.push_back(std::move(work));
  changed.notify_all();
  return ++stream->enqueued;
}

/// For the work that is about to be enqueued.
void Scheduler::advance_clock(const std::shared_ptr<Stream> &stream, const std::vector<Ticket> &after) {
  auto clock = std::make_shared<Clock>(*stream->clock);
  clock->join(host);
  for (const Ticket &ticket : after)
    clock->join(*ticket.clock);
  clock->raise(stream->id, stream->enqueued + 1);
  stream->clock = std::move(clock);
}

void Scheduler::host_saw(const Clock &clock) {
  host.join(clock);
  // The clocks of queued work may not include what the host knows.
  const bool idle = std::all_of(streams.begin(), streams.end(), [](const std::shared_ptr<Stream> &stream) {
    return stream->completed == stream->enqueued;
  });
  if (!idle || !StreamRaces::get().forget(host) || host.size() < most_clock_entries) return;
  // Nothing is left to compare with: start again with empty clocks, without erased streams.
  host = gone = Clock();
  for (const std::shared_ptr<Stream> &stream : streams)
    stream->clock = std::make_shared<const Clock>();
}

void Scheduler::erase(const std::shared_ptr<Stream> &stream) {
  gone.join(*stream->clock);
  if ((stream->flags & hipStreamNonBlocking) == 0) { // the null stream's later work comes after it
    Stream &null = *nulls[size_t(stream->device)];
    auto clock = std::make_shared<Clock>(*null.clock);
    clock->join(*stream->clock);
    null.clock = std::move(clock);
  }
  std::erase(streams, stream);
}

void Scheduler::enqueue(const std::shared_ptr<Stream> &stream, std::function<void()> run, bool always,
                        std::vector<Ticket> after) {
  const Lock lock(mutex);
  append(stream, {.run = std::move(run), .always = always, .after = std::move(after)});
}

void Scheduler::enqueue_host_call(const std::shared_ptr<Stream> &stream, std::function<void()> function,
                                  bool always) {
  const Lock lock(mutex);
  append(stream, {.run = std::move(function), .always = always, .host_call = true});
}

void Scheduler::run(const std::shared_ptr<Stream> &stream, const std::function<void()> &work) {
  refuse_on_worker();
  Lock lock(mutex);
  if (shuffle || stream->busy || !stream->queue.empty()) {
    const uint64_t number = append(stream, {.run = work});
    const std::shared_ptr<const Clock> clock = stream->clock;
    wait_until(lock, [&] { return stream->completed >= number; });
    host_saw(*clock);
    return;
  }
  std::vector<Ticket> after;
  add_null_stream_rule(stream, after);
  advance_clock(stream, after);
  Work now{.run = work, .clock = stream->clock};
  ++stream->enqueued;
  stream->busy = true;
  changed.wait(lock, [&] { return ready(after); });
  perform(lock, *stream, now);
  host_saw(*now.clock);
}

void Scheduler::perform(Lock &lock, Stream &stream, Work &work) {
  hipError_t &fault = sticky[size_t(stream.device)];
  const bool runs = work.always || fault == hipSuccess;
  const bool compared = many_streams;
  const uint64_t number = stream.completed + 1;
  // The function may tell the host, in any way, that the work before it is done. Whether it does cannot be
  // seen; what the host submits from now on is taken to know.
  if (runs && work.host_call) host_saw(*work.clock);
  lock.unlock();
  hipError_t error = hipSuccess;
  if (runs) {
    WorkIdentity identity;
    if (compared) {
      identity = {stream.id, number, stream.null ? "the null stream" : "stream " + std::to_string(stream.id),
                  work.clock};
      thread_state.work = &identity;
    }
    if (may_throw()) {
      try {
        work.run();
      } catch (...) {
        error = error_of_current_exception();
      }
    } else {
      error = hipErrorOutOfMemory;
    }
    thread_state.work = nullptr;
  }
  // The work may hold the last reference to a module: release it before waiting threads go on, and without
  // the mutex.
  work.run = nullptr;
  lock.lock();
  if (fault == hipSuccess) fault = error;
  stream.busy = false;
  ++stream.completed;
  changed.notify_all();
}

void Scheduler::serve(const std::shared_ptr<Stream> &stream) {
  thread_state.on_worker = true;
  Lock lock(mutex);
  for (;;) {
    changed.wait(lock, [&] {
      if (stream->busy) return false;
      if (stream->queue.empty()) return stream->closing;
      return !shuffle && ready(stream->queue.front().after);
    });
    if (stream->queue.empty()) break;
    Work work = std::move(stream->queue.front());
    stream->queue.pop_front();
    stream->busy = true;
    perform(lock, *stream, work);
  }
  erase(stream);
}

/// Call with the mutex held; it is released while the work runs. False if no work may run now.
bool Scheduler::step(Lock &lock) {
  std::vector<std::shared_ptr<Stream>> candidates;
  for (const std::shared_ptr<Stream> &stream : streams)
    if (!stream->busy && !stream->queue.empty() && ready(stream->queue.front().after))
      candidates.push_back(stream);
  if (candidates.empty()) return false;
  const std::shared_ptr<Stream> stream = candidates[(*shuffle)() % candidates.size()];
  Work work = std::move(stream->queue.front());
  stream->queue.pop_front();
  stream->busy = true;
  stepping = true;
  thread_state.on_worker = true;
  perform(lock, *stream, work);
  thread_state.on_worker = false;
  stepping = false;
  if (stream->closing && !stream->has_worker && stream->completed == stream->enqueued) erase(stream);
  changed.notify_all();
  return true;
}

/// Waits on the calling thread; in a shuffled order, that thread runs the work itself.
template <typename Condition> void Scheduler::wait_until(Lock &lock, Condition &&condition) {
  while (!condition())
    if (!shuffle || stepping || !step(lock)) changed.wait(lock);
}

void Scheduler::advance() {
  Lock lock(mutex);
  if (shuffle && !stepping && !thread_state.on_worker) step(lock);
}

Ticket Scheduler::enqueue_graph(const std::shared_ptr<Stream> &stream,
                                std::span<const std::shared_ptr<Stream>> side_streams,
                                std::vector<Piece> pieces, std::shared_ptr<const void> keep) {
  const Lock lock(mutex);
  const size_t lanes = shuffle ? side_streams.size() : std::min(side_streams.size(), most_graph_threads);
  auto stream_of = [&](const Piece &piece) -> const std::shared_ptr<Stream> & {
    if (piece.lane == 0) return stream;
    assert(lanes != 0);
    return side_streams[(piece.lane - 1) % lanes];
  };
  Ticket start;
  if (lanes != 0) {
    const uint64_t number = append(stream, {.run = [] {}, .always = true});
    start = {stream, number, stream->clock};
  }
  std::vector<Ticket> tickets;
  for (Piece &piece : pieces) {
    const std::shared_ptr<Stream> &queue = stream_of(piece);
    std::vector<Ticket> after = std::move(piece.also_after);
    for (size_t earlier : piece.after)
      if (tickets[earlier].stream != queue) after.push_back(tickets[earlier]);
    if (piece.after.empty() && queue != stream) after.push_back(start);
    const uint64_t number = append(queue, {.run = std::move(piece.run),
                                           .always = piece.always,
                                           .host_call = piece.host_call,
                                           .after = std::move(after)});
    tickets.push_back({queue, number, queue->clock});
    if (piece.record) piece.record->ticket = tickets.back();
  }
  if (lanes != 0)
    append(stream, {.run = [keep = std::move(keep)] {}, .always = true, .after = std::move(tickets)});
  return {stream, stream->enqueued, stream->clock};
}

std::shared_ptr<EventRecord> Scheduler::record(const std::shared_ptr<Stream> &stream) {
  auto event = std::make_shared<EventRecord>();
  const Lock lock(mutex);
  event->ticket.stream = stream;
  event->ticket.number =
      append(stream, {.run = [event] { event->time = std::chrono::steady_clock::now(); }, .always = true});
  event->ticket.clock = stream->clock;
  return event;
}

bool Scheduler::complete(const Ticket &ticket) {
  const Lock lock(mutex);
  const bool completed = ticket.stream->completed >= ticket.number;
  if (completed) host_saw(*ticket.clock);
  return completed;
}

bool Scheduler::idle(const std::shared_ptr<Stream> &stream) {
  const Lock lock(mutex);
  std::vector<Ticket> all{{stream, stream->enqueued, stream->clock}};
  if (stream->null) add_null_stream_rule(stream, all);
  if (!ready(all)) return false;
  for (const Ticket &ticket : all)
    host_saw(*ticket.clock);
  return true;
}

void Scheduler::refuse_on_worker() {
  require(!thread_state.on_worker, hipErrorIllegalState);
}

void Scheduler::wait(const Ticket &ticket) {
  refuse_on_worker();
  Lock lock(mutex);
  wait_until(lock, [&] { return ticket.stream->completed >= ticket.number; });
  host_saw(*ticket.clock);
}

void Scheduler::wait(const std::shared_ptr<Stream> &stream) {
  refuse_on_worker();
  Lock lock(mutex);
  std::vector<Ticket> tickets{{stream, stream->enqueued, stream->clock}};
  if (stream->null) add_null_stream_rule(stream, tickets);
  wait_until(lock, [&] { return ready(tickets); });
  for (const Ticket &ticket : tickets)
    host_saw(*ticket.clock);
}

void Scheduler::wait_all() {
  wait_for([](const Stream &) { return true; });
}

void Scheduler::wait_all(int device) {
  wait_for([device](const Stream &stream) { return stream.device == device; });
}

template <typename Chosen> void Scheduler::wait_for(Chosen &&chosen) {
  refuse_on_worker();
  Lock lock(mutex);
  std::vector<Ticket> tickets;
  Clock seen = gone;
  for (const std::shared_ptr<Stream> &stream : streams)
    if (chosen(*stream)) {
      tickets.push_back({stream, stream->enqueued, stream->clock});
      seen.join(*stream->clock);
    }
  wait_until(lock, [&] { return ready(tickets); });
  host_saw(seen);
}

void Scheduler::set_shuffled(std::optional<uint64_t> seed) {
  Lock lock(mutex);
  if (!shuffle && !seed) return;
  refuse_on_worker();
  wait_until(lock, [&] {
    return std::all_of(streams.begin(), streams.end(), [](const std::shared_ptr<Stream> &stream) {
      return stream->completed == stream->enqueued;
    });
  });
  shuffle.reset();
  if (seed) shuffle.emplace(*seed);
}

uint64_t Scheduler::closed_busy() {
  const Lock lock(mutex);
  return busy_closes;
}

void Scheduler::reset_closed_busy() {
  const Lock lock(mutex);
  busy_closes = 0;
}

hipError_t Scheduler::fault(int device) {
  const Lock lock(mutex);
  return sticky[size_t(device)];
}

void Scheduler::clear_faults() {
  wait_all();
  const Lock lock(mutex);
  sticky.fill(hipSuccess);
}

void Scheduler::require_no_fault(int device) {
  const hipError_t error = fault(device);
  require(error == hipSuccess, error);
}

} // namespace sluice::emulator::hip

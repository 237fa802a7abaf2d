//===- exchange.h - data on their way between ranks -----------------------------------------------------===//
//
// All data that ranks send each other go through Exchange, which counts them. They leave from an
// ExchangeBuffer and arrive in one: device memory, which an MPI that knows GPUs takes as it is, and for other
// MPIs a copy of it in pinned memory of the host.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "agreement.h"
#include "device.h"

#include <functional>

namespace parallel {

/// What a rank has done.
struct Counts {
  uint64_t sent_bytes = 0;
  uint64_t messages = 0;       ///< received by run_beside
  uint64_t early_messages = 0; ///< of them: complete before the run beside them was
  uint64_t scores = 0;         ///< pairs of a row and a key that it sees, of one head
};

/// The memory whose pointers MPI gets.
enum class Buffers {
  host,   ///< pinned memory of the host
  device, ///< memory of the device; needs an MPI that is built for it
};

/// Whether this MPI says that it takes pointers to the memory of AMD's GPUs. False where it cannot be asked.
bool mpi_takes_device_pointers();

/// Throws if a message of this size is too large for MPI.
void check_message(size_t size_bytes);

/// Memory of the device, and for Buffers::host the same bytes on the host.
class ExchangeBuffer {
public:
  ExchangeBuffer(const Device &device, Buffers buffers, size_t size_bytes);

  char *on_device() const { return memory.bytes(); }
  float *floats() const { return memory.floats(); }
  /// For Exchange.
  char *on_wire() const { return host ? host->bytes() : memory.bytes(); }
  // These enqueue a copy of a part, or nothing if MPI takes device pointers.
  void to_wire(const Stream &stream, size_t first_byte, size_t size_bytes) const;
  void from_wire(const Stream &stream, size_t first_byte, size_t size_bytes) const;

private:
  Memory memory;
  std::optional<Pinned> host;
};

/// Messages to and from other ranks, from when they are posted until all are done. Must be finished before it
/// and the memory of its messages go.
class Exchange {
public:
  explicit Exchange(Counts &counts) : counts(counts) {}
  Exchange(const Exchange &) = delete;
  Exchange &operator=(const Exchange &) = delete;

  // These post a message that check_message has accepted, and return.
  void send(const void *from, size_t size_bytes, int to);
  void receive(void *to, size_t size_bytes, int from);
  /// Whether all messages are done. MPI moves them while it is asked.
  bool is_done();
  void finish();
  bool is_empty() const { return requests.empty(); }

private:
  Counts &counts;
  std::vector<MPI_Request> requests;
};

/// Moves messages while the device computes, until both are done, and calls `arrived` as soon as the messages
/// are, whether or not the device is still busy. An error of the device is the outcome's.
void run_beside(Exchange &exchange, const Stream &computing, Outcome &outcome, Counts &counts,
                const std::function<void()> &arrived);

/// Sends this rank's slot of each buffer, slot number rank(), to all other ranks, and receives theirs. The
/// caller has enqueued on the stream what fills the slot. All slots are on the device when this returns.
void gather(const Ranks &ranks, const std::string &step, const Stream &stream, Counts &counts,
            const std::vector<const ExchangeBuffer *> &buffers, const std::vector<size_t> &slot_bytes);

} // namespace parallel

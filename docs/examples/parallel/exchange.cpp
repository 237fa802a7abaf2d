//===- exchange.cpp - data on their way between ranks ---------------------------------------------------===//

#include "exchange.h"

#include <climits>
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

namespace parallel {

bool mpi_takes_device_pointers() {
#if defined(MPIX_ROCM_AWARE_SUPPORT)
  return MPIX_Query_rocm_support() != 0;
#else
  return false;
#endif
}

void check_message(size_t size_bytes) {
  if (size_bytes > INT_MAX)
    throw std::runtime_error("a message of " + std::to_string(size_bytes) +
                             " bytes is too large: MPI counts to " + std::to_string(INT_MAX) +
                             "; divide among more ranks");
}

ExchangeBuffer::ExchangeBuffer(const Device &device, Buffers buffers, size_t size_bytes)
    : memory(device, size_bytes) {
  if (buffers == Buffers::host)
    host.emplace(device, size_bytes);
  else // the emulator reports reads of what nothing of HIP has written, and does not see MPI write
    device.hip<void *, int, size_t>("hipMemset", memory.bytes(), 0, size_bytes);
}

void ExchangeBuffer::to_wire(const Stream &stream, size_t first_byte, size_t size_bytes) const {
  if (host) stream.copy(host->bytes() + first_byte, memory.bytes() + first_byte, size_bytes);
}

void ExchangeBuffer::from_wire(const Stream &stream, size_t first_byte, size_t size_bytes) const {
  if (host) stream.copy(memory.bytes() + first_byte, host->bytes() + first_byte, size_bytes);
}

void Exchange::send(const void *from, size_t size_bytes, int to) {
  MPI_Isend(from, int(size_bytes), MPI_BYTE, to, 0, MPI_COMM_WORLD, &requests.emplace_back());
  counts.sent_bytes += size_bytes;
}

void Exchange::receive(void *to, size_t size_bytes, int from) {
  MPI_Irecv(to, int(size_bytes), MPI_BYTE, from, 0, MPI_COMM_WORLD, &requests.emplace_back());
}

bool Exchange::is_done() {
  int done = 0;
  MPI_Testall(int(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
  return done;
}

void Exchange::finish() {
  while (!is_done())
    pause();
}

void run_beside(Exchange &exchange, const Stream &computing, Outcome &outcome, Counts &counts,
                const std::function<void()> &arrived) {
  bool is_computing = true, is_sending = true;
  while (is_computing || is_sending) {
    // Even if the computing has failed, the other ranks wait for these messages.
    if (is_sending && exchange.is_done()) {
      is_sending = false;
      if (!exchange.is_empty()) {
        ++counts.messages;
        outcome.run([&] { counts.early_messages += !computing.is_done(); });
      }
      arrived();
    }
    if (is_computing) {
      is_computing = false;
      outcome.run([&] { is_computing = !computing.is_done(); });
    }
    if (is_computing || is_sending) pause();
  }
}

void gather(const Ranks &ranks, const std::string &step, const Stream &stream, Counts &counts,
            const std::vector<const ExchangeBuffer *> &buffers, const std::vector<size_t> &slot_bytes) {
  const size_t own = size_t(ranks.rank());
  ranks.together(step, [&] {
    for (size_t i = 0; i < buffers.size(); ++i) {
      check_message(slot_bytes[i]);
      buffers[i]->to_wire(stream, own * slot_bytes[i], slot_bytes[i]);
    }
    stream.wait();
  });
  Exchange exchange(counts);
  for (size_t i = 0; i < buffers.size(); ++i)
    for (int other = 0; other < ranks.size(); ++other)
      if (other != ranks.rank()) {
        exchange.receive(buffers[i]->on_wire() + size_t(other) * slot_bytes[i], slot_bytes[i], other);
        exchange.send(buffers[i]->on_wire() + own * slot_bytes[i], slot_bytes[i], other);
      }
  exchange.finish();
  ranks.together(step, [&] {
    for (size_t i = 0; i < buffers.size(); ++i)
      for (size_t other = 0; other < size_t(ranks.size()); ++other)
        if (other != own) buffers[i]->from_wire(stream, other * slot_bytes[i], slot_bytes[i]);
    stream.wait();
  });
}

} // namespace parallel

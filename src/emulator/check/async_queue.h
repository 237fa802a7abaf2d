//===- async_queue.h - memory operations in flight ------------------------------------------------------===//
//
// The operations of one wave that its counters still count. vmcnt counts vector memory, which completes in
// order; lgkmcnt counts LDS, also in order, and scalar loads, in any order: only a wait for 0 covers those.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "emulator/check/lds_lanes.h"

namespace sluice::emulator {

enum class AsyncKind : uint8_t { vector_load, store, lds_copy, lds_read, lds_write, scalar_load, flat };

struct AsyncOperation {
  AsyncKind kind;
  bool delivered;    // registers or LDS already hold the result
  bool vector_done;  // vmcnt no longer counts it; only flat operations stay in the queue like this
  bool lgkm_done;    // the same for lgkmcnt; also true for operations that it never counts
  bool lds_writes;   // its LDS accesses write
  uint8_t rows;      // registers written, from `first` on; for scalar loads, scalar registers
  uint8_t lds_parts; // accesses per lane of an LDS instruction
  uint8_t lds_bytes; // bytes per access
  uint16_t first;    // operand number of the first register written
  bool acquires;     // an atomic or a load with sc1: its value may order this workgroup after another
  uint32_t op;
  uint32_t moment;                                     // for vector or scalar memory: its number in the wave
  uint64_t undefined;                                  // lanes of a copy whose data was never written
  uint64_t exec;                                       // lanes that take part
  uint64_t in_bounds;                                  // lanes of a copy that write LDS
  LdsRange lds_range;                                  // has all its LDS accesses
  std::array<std::array<uint32_t, 64>, 2> lds_address; // by part and lane; a copy has [0]
  alignas(64) std::array<uint32_t, 16 * 64> data;      // rows of a vector load; dwords of a scalar one

  /// Enters one access per lane. Two parts share one set of lanes: a lane counts only if it makes both
  /// accesses.
  void add_lds_part(const LdsLanes &at, bool writes) {
    const uint32_t part = lds_parts++;
    lds_bytes = uint8_t(at.bytes);
    lds_writes = writes;
    in_bounds = part == 0 ? at.lanes : in_bounds & at.lanes;
    std::copy_n(at.addresses, wave_lanes, lds_address[part].begin());
    lds_range.add(at.range);
  }
};

/// Operations in order of issue, oldest first. Storage is reused.
class AsyncQueue {
public:
  AsyncOperation &push() {
    if (spare.empty()) spare.push_back(std::make_unique_for_overwrite<AsyncOperation>());
    queue.push_back(std::move(spare.back()));
    spare.pop_back();
    return *queue.back();
  }
  void pop(size_t position) {
    spare.push_back(std::move(queue[position]));
    queue.erase(queue.begin() + ptrdiff_t(position));
  }
  void clear() {
    while (!queue.empty())
      pop(queue.size() - 1);
  }
  size_t size() const { return queue.size(); }
  AsyncOperation &operator[](size_t position) { return *queue[position]; }
  const AsyncOperation &operator[](size_t position) const { return *queue[position]; }

private:
  std::vector<std::unique_ptr<AsyncOperation>> queue;
  std::vector<std::unique_ptr<AsyncOperation>> spare;
};

} // namespace sluice::emulator

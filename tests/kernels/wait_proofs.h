//===- wait_proofs.h - waits and barriers that a kernel does not need, proven on all paths --------------===//
//
// The proofs look only at the decoded machine code: no run, no address, no knowledge of the computation. They
// err on one side: if something cannot be proven, the synchronisation counts as needed.
//
// The state at an instruction says, for every memory instruction of the kernel, which of its executions may
// be in flight there, each by the number of operations of the same counter that were issued since: an
// operation of an in-order counter followed by n or more others is complete after a wait for n. Scalar loads
// complete in any order, so only a wait for 0 completes one.
//
// The effect of a weaker wait is traced as follows. Operations that the original wait completes and the
// weaker one does not are *late*. They are tracked until a later wait completes them, or as many younger
// operations as the counter holds. If no instruction on any path is sensitive to a late operation, the kernel
// with the weaker wait behaves like the original. The instructions that are sensitive, by kind of late
// operation:
//
//   a load, a read of LDS, a permutation   a read or write of a register it will write; but a load may write
//                                          what an earlier load will have written, as loads come in order
//   a copy into LDS                        an access of its bytes of LDS; the end of the wave
//   a read of LDS                          a copy into its bytes
//   a write to LDS                         a copy into its bytes; the end of the wave
//   a store                                a barrier: another wave may store there too
//
// Barriers involve other waves: those that have passed one rely on late operations. All waves of a workgroup
// pass the same number of barriers: this one or, on another path from a branch, one of its counterparts
// (barrier_counterparts.h), none of which may be removed. Until the next barrier they are somewhere on the
// paths from there. From a barrier that an access of LDS crosses late to the first barrier after its
// completion, every instruction that touches its bytes is sensitive (for a read: that writes them); and from
// the barrier's counterparts to the barriers next to them. Bytes of LDS are distinguished by the intervals of
// lds_ranges.h.
//
// Paths are those of the control flow, without the ones that contradict themselves at a join
// (decided_branches.h).
//
// Loads ignore stores and barriers, because a kernel never reads memory that it writes. O and LSE overlap
// neither other tensors nor each other. A launch stores each of them in one width, so two stores of different
// width never write the same bytes.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "barrier_counterparts.h"
#include "decided_branches.h"
#include "lds_ranges.h"
#include "machine_code.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace sluice::test {

struct Proof {
  bool holds = false;
  std::string why; // the waits that synchronise instead; or what cannot be excluded
};

class WaitProofs {
public:
  /// Throws std::runtime_error for instructions with unknown counters (flat addresses, messages, exports,
  /// caches).
  WaitProofs(const MachineCode &code, uint32_t threads);

  /// Proves that on no path an instruction touches a register that an operation in flight will write.
  Proof registers_are_waited_for() const;
  /// Proves that the wait at `index` may let `weaker` operations of the counter be in flight.
  Proof may_weaken(size_t index, Counter counter, unsigned weaker) const;
  /// Proves that the barriers before and after the one at `index` order all accesses that it orders.
  Proof may_drop_barrier(size_t index) const;

private:
  enum class Kind : uint8_t { scalar_load, load, store, copy, lds_read, lds_write, lane_exchange };
  struct Operation {
    size_t instruction;
    Kind kind;
    Counter counter;
    bool in_order;
  };
  /// Executions of one operation that may be in flight: bit n means n younger ones.
  struct Flights {
    uint64_t usual = 0, late = 0;
    bool crossed = false;   // a barrier while late
    bool hidden = false;    // after that: complete, but no later barrier has told the other waves
    bool elsewhere = false; // a wave that has crossed the barrier's counterpart may have one
    bool operator==(const Flights &) const = default;
  };
  using State = std::vector<Flights>; // by operation
  struct Question;
  struct Search;

  const Instruction &at(size_t index) const { return code.instructions()[index]; }
  void classify(size_t index);
  bool cares(const Operation &late, const Flights &flights, size_t index) const;
  bool needs_registers_of(const Operation &late, size_t index) const;
  bool conflict(const Operation &one, const Operation &other) const;
  Search search(const Question &question) const;
  void step(size_t index, State &state, Search &search) const;
  void cross(size_t barrier, State &state, Search &search) const;
  void wait(size_t index, State &state, Search &search) const;
  std::string waits_before(size_t index, Counter counter) const;
  std::string places(const std::vector<size_t> &indices) const;

  const MachineCode &code;
  const std::vector<LdsRange> ranges;
  const std::map<std::pair<size_t, size_t>, size_t> decided;
  const std::vector<std::set<size_t>> counterparts;
  std::vector<Operation> operations;
  std::vector<int> operation_of; // by instruction; -1: none
};

} // namespace sluice::test

//===- observer.h - observes a compute unit -------------------------------------------------------------===//
//
// A timing reports to an observer, if there is one, what each wave of one compute unit does at which clk. A
// wave either issues, which takes one turn, or waits; the two make up all of its time.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstdint>

#include "emulator/timing/timing.h"

namespace sluice::emulator::timing {

struct WaveName {
  uint64_t workgroup; // in the order of dispatch
  uint32_t wave;      // in the workgroup
  uint32_t simd;
  uint64_t age; // waves that the compute unit had started before
};

/// When an instruction occupies its pipe. Work for a port or path waits for earlier work, so it may begin
/// after the issue.
struct Occupation {
  uint64_t begin;
  uint64_t end;
};

class Observer {
public:
  virtual ~Observer() = default;
  virtual uint32_t compute_unit() const = 0;
  /// An instruction, by its index in the program, was issued at `clk`; `pipe` is busy with it.
  virtual void issued(const WaveName &wave, uint32_t op, uint64_t clk, Pipe pipe, Occupation busy) = 0;
  /// It waited in [begin, end), because of the instruction `op`.
  virtual void waited(const WaveName &wave, uint32_t op, Stall reason, uint64_t begin, uint64_t end) = 0;
};

} // namespace sluice::emulator::timing

//===- observer.h - who watches a compute unit ----------------------------------------------------------===//
//
// A timing tells an observer, if there is one, what each wave of one compute unit does at which clk. A wave
// issues, which takes one turn, or waits; both together are all of its time.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstdint>

#include "emulator/timing/timing.h"

namespace sluice::emulator::timing {

struct WaveName {
  uint64_t workgroup; // in the order of dispatch
  uint32_t wave;      // of the workgroup
  uint32_t simd;
  uint64_t age; // waves that the compute unit had started before
};

/// What an instruction keeps busy: from when until when. Work for a port or path waits for what came before
/// it, so that it may begin after the issue.
struct Occupation {
  uint64_t begin;
  uint64_t end;
};

class Observer {
public:
  virtual ~Observer() = default;
  virtual uint32_t compute_unit() const = 0;
  /// Of an instruction, by its index in the program: issued at `clk`, by which `pipe` is busy.
  virtual void issued(const WaveName &wave, uint32_t op, uint64_t clk, Pipe pipe, Occupation busy) = 0;
  /// In [begin, end), because of the instruction `op`.
  virtual void waited(const WaveName &wave, uint32_t op, Stall reason, uint64_t begin, uint64_t end) = 0;
};

} // namespace sluice::emulator::timing

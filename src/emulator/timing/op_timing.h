//===- op_timing.h - what an instruction occupies, and for how long -------------------------------------===//
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "emulator/machine/program.h"
#include "emulator/timing/timing.h"

namespace sluice::emulator::timing {

/// In a turn of its SIMD a wave issues one instruction, and each slot takes one, of different waves.
enum class Slot : uint8_t { vector, scalar, memory, lds, branch, none };

/// What the wave does besides running the instruction.
enum class Effect : uint8_t { none, wait_counts, barrier, priority, read_clock };

/// What a memory instruction moves. Those of LDS that find their place without an address register count as
/// exchanges between lanes.
enum class Transfer : uint8_t { none, load, store, atomic, copy_to_lds, lane_exchange, invalidate };

struct OpTiming {
  Pipe pipe = Pipe::internal;
  Slot slot = Slot::none;
  Effect effect = Effect::none;
  Transfer transfer = Transfer::none;
  uint16_t port_clk = 0;             // of the SIMD's vector port
  uint16_t matrix_clk = 0;           // of its matrix core
  uint32_t hold_clk = 0;             // until the wave's next instruction, if nothing else keeps it
  uint64_t flops = 0;                // of an MFMA
  bool split_fetch = false;          // lies in two fetches
  uint8_t vector_count = 0;          // wait_counts
  uint8_t lgkm_count = 0;            // likewise
  bool counts_vector = false;        // vmcnt counts it
  bool counts_lgkm = false;          // lgkmcnt counts it
  RegisterRange packed_result{0, 0}; // packed f32: not ready on the next turn
};

/// Of every instruction of a program, by index.
std::vector<OpTiming> op_timings(const ProgramImpl &program);

} // namespace sluice::emulator::timing

//===- op_timing.h - the resources an instruction occupies, and for how long ----------------------------===//
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/machine/program.h"
#include "emulator/timing/timing.h"

namespace sluice::emulator::timing {

/// In a turn of its SIMD a wave issues one instruction. Each slot takes one per turn, from different waves.
enum class Slot : uint8_t { vector, scalar, memory, lds, branch, none };

/// Actions of the wave in addition to running the instruction.
enum class Effect : uint8_t { none, wait_counts, barrier, priority, read_clock };

/// What a memory instruction moves. LDS instructions that need no address register count as exchanges between
/// lanes.
enum class Transfer : uint8_t { none, load, store, atomic, copy_to_lds, lane_exchange, invalidate };

struct OpTiming {
  Pipe pipe = Pipe::internal;
  Slot slot = Slot::none;
  Effect effect = Effect::none;
  Transfer transfer = Transfer::none;
  uint16_t port_clk = 0;             // on the SIMD's vector port
  uint16_t matrix_clk = 0;           // on its matrix core
  uint32_t hold_clk = 0;             // until the wave's next instruction, if nothing else delays it
  uint64_t flops = 0;                // for an MFMA
  bool split_fetch = false;          // it spans two fetches
  uint8_t vector_count = 0;          // for wait_counts
  uint8_t lgkm_count = 0;            // for wait_counts
  bool counts_vector = false;        // vmcnt counts it
  bool counts_lgkm = false;          // lgkmcnt counts it
  RegisterRange packed_result{0, 0}; // packed f32: not ready on the next turn
};

/// For every instruction of a program, by index.
std::vector<OpTiming> op_timings(const ProgramImpl &program);

} // namespace sluice::emulator::timing

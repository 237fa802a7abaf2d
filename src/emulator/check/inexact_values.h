//===- inexact_values.h - follows values that a GPU may compute differently -----------------------------===//
//
// A wave that is followed asks here before and after each instruction, and its memory instructions say what
// they access. A result is inexact if anything that the instruction reads is, so more is marked than could
// differ; values that merely depend on a branch are not. What matters is where such a value decides an
// address or a branch: elsewhere it changes the last places of results, there it may change everything.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "emulator/check/fidelity_facts.h"
#include "emulator/check/fidelity_note.h"
#include "emulator/check/inexact_memory.h"
#include "emulator/isa/op_info.h"
#include "emulator/isa/wave.h"

namespace sluice::emulator {

/// What all waves of a launch have met, by instruction.
class LaunchFidelity {
public:
  LaunchFidelity(const OpInfos &infos, const std::vector<Op> &ops, InexactMemory &memory);

  struct Met {
    const Approximation *approximation = nullptr;
    uint8_t unmodelled = 0;
    std::atomic<uint64_t> count = 0;     // executions, if either is set
    std::atomic<uint64_t> decisions = 0; // executions in which an inexact value decided
    std::atomic<InexactSet> sources = 0; // of those values
  };
  Met &met(uint32_t op) { return all[op]; }
  /// Without the places' texts: `pc` is the index of the instruction.
  FidelityNote note() const;

  const OpInfos &infos;
  InexactMemory &memory;

private:
  std::vector<Met> all;
};

/// The lanes of a register that hold inexact values, for each source.
struct InexactLanes {
  std::array<uint64_t, inexact_count> of{};

  void add(const InexactLanes &other, uint64_t lanes = all_lanes) {
    for (size_t i = 0; i < inexact_count; ++i)
      of[i] |= other.of[i] & lanes;
  }
  void add(InexactSet sources, uint64_t lanes) {
    for (size_t i = 0; i < inexact_count; ++i)
      if ((sources >> i & 1) != 0) of[i] |= lanes;
  }
  void clear(uint64_t lanes) {
    for (uint64_t &held : of)
      held &= ~lanes;
  }
  InexactSet any(uint64_t lanes) const {
    InexactSet result = 0;
    for (size_t i = 0; i < inexact_count; ++i)
      result |= InexactSet(InexactSet((of[i] & lanes) != 0) << i);
    return result;
  }
};

/// One wave.
class WaveFidelity {
public:
  /// `lds`: by byte of the workgroup's LDS.
  WaveFidelity(LaunchFidelity &launch, std::vector<InexactSet> &lds) : launch(launch), lds(lds) {}
  void start(const Wave &w);
  void before(const Wave &w, const Op &op);
  void after(const Op &op);

  // Accesses of the instruction between `before` and `after`: first of memory, then of LDS.
  void access_memory(const Op &op, const uint64_t *addresses, uint64_t lanes, uint32_t bytes, bool write);
  void access_lds(const uint32_t *addresses, uint64_t lanes, uint32_t bytes, bool write);
  void access_scratch(uint32_t lane, uint64_t offset, uint32_t bytes, bool write);
  void copy_to_lds(const uint32_t *addresses, uint64_t lanes);

private:
  InexactLanes read(RegisterRange range) const;
  InexactLanes sources_of(const Wave &w, const Op &op, const OpInfo &info) const;
  void write(RegisterRange range, const InexactLanes &values, uint64_t lanes, bool replaces);
  void decide(const Op &op, InexactSet sources);
  void check_decision(const Wave &w, const Op &op, const OpInfo &info);
  void follow_memory(const Wave &w, const Op &op, const OpInfo &info);
  void follow_valu(const Wave &w, const Op &op, const OpInfo &info);
  void follow_indexed(const Wave &w, const Op &op, const InexactLanes &values);
  void follow_lane_access(const Wave &w, const Op &op, const OpInfo &info);
  void follow_scalar(const Wave &w, const Op &op, const OpInfo &info);
  std::span<const RegisterRange> reads(const OpInfo &info) const {
    return {launch.infos.ranges.data() + info.reads_begin, info.reads_end - info.reads_begin};
  }
  std::span<const RegisterRange> writes(const OpInfo &info) const {
    return {launch.infos.ranges.data() + info.writes_begin, info.writes_end - info.writes_begin};
  }

  LaunchFidelity &launch;
  std::vector<InexactSet> &lds;
  std::array<InexactLanes, vector_registers> vectors;
  std::array<InexactSet, 256> scalars{};
  std::vector<InexactSet> scratch; // by lane and byte
  uint32_t scratch_bytes = 0;
  // Of the memory instruction that runs.
  uint64_t exec = 0;
  InexactLanes stored;
  InexactLanes loaded;
  bool atomic = false;
  InexactSet added = 0; // by an atomic, to what memory holds
};

} // namespace sluice::emulator

//===- emulated_run.h - attention launches on the emulator, and what it reports
//------------------------------===//
#pragma once

#include "emulator/machine/machine.h"
#include "package/attention_launch.h"
#include "package/manifest.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::test {

/// What is computed, as far as it decides which paths a kernel takes. Query lengths are full tiles and a
/// rest, so that a problem has as many workgroups with every kernel.
struct Problem {
  const char *name;
  uint32_t q_tiles, q_rest;
  uint32_t kv_len;
  uint32_t q_heads, kv_heads;
  enum Mask : uint8_t { none, bottom_right, top_left } mask;
  bool lse;
  enum Values : uint8_t {
    usual,     // between -2 and 2
    growing,   // scores grow with the key: the maximum changes all the time
    zero_keys, // it never changes
    infinite,  // one row of V is
    level,     // all scores are the same large number, and V adds up to zero
  } values;
  emulator::CompletionOrder completion;
};

/// Problems that between them take every path of the kernels; the first one alone takes most.
std::span<const Problem> path_problems();

/// A problem with its tensors in memory of its own: instances may run at the same time.
class AttentionRun {
public:
  AttentionRun(const package::KernelEntry &kernel, const Problem &problem);

  /// On one thread, with every check.
  emulator::LaunchResult run(const emulator::Program &program, bool stop_at_report = false);
  emulator::LaunchResult run(const emulator::Program &program, const emulator::Options &options);
  /// For launches of another kind, in the problem's memory.
  package::AttentionLaunch call();
  const emulator::Memory &device_memory() const { return memory; }
  /// O and, where the problem has it, LSE, as the last run left them.
  std::vector<uint16_t> output() const;

private:
  uint16_t *allocate(size_t elements);
  void fill(uint16_t *tensor, size_t elements, uint32_t seed, float spread);
  void shape_values();
  void clear_output();

  const package::KernelEntry kernel;
  const Problem problem;
  const size_t head_dim, q_len;
  emulator::Memory memory;
  uint16_t *q, *k, *v, *o, *lse; // lse holds two per number, and is null where there is none
};

} // namespace sluice::test

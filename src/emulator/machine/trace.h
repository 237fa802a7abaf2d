//===- trace.h - reports each instruction of a launch ---------------------------------------------------===//
//
// A launch with a Tracer runs the waves that it follows in a separate loop. Other waves, and launches without
// a Tracer, are not affected.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace sluice::emulator {

/// Consecutive registers that have changed owner or value. A load writes its registers when it completes,
/// which is at a later instruction (a wait) unless Options::completion says otherwise.
struct TracedRegisters {
  enum class State : uint8_t {
    written,   // by the instruction itself
    in_flight, // will be, by a load that the instruction has issued; `values` is what they hold until then
    arrived,   // written by a load issued earlier, which completed at this instruction
  };
  State state{};
  std::string name;                 // "v[4:7]", "a0", "s[2:3]", "vcc", "exec", "m0", "scc"
  char file = 's';                  // 'v', 'a' or, for everything with one value per wave, 's'
  uint32_t first = 0;               // number in the file
  uint32_t count = 0;               // registers
  std::span<const uint32_t> values; // a dword per register; for v and a registers 64, lane by lane
};

struct TracedInstruction {
  std::array<uint32_t, 3> workgroup{};
  uint32_t wave = 0;
  uint64_t number = 0; // among the wave's instructions, from 0
  uint64_t pc = 0;     // address in the code object
  std::string_view disassembly;
  bool vector = false; // EXEC matters to it
  uint64_t exec = 0;   // the lanes it ran for
  std::span<const TracedRegisters> registers;
};

/// Called from all threads of the launch, for one wave by one thread at a time.
class Tracer {
public:
  virtual ~Tracer() = default;
  /// Called when the wave starts.
  virtual bool follows(std::array<uint32_t, 3> workgroup, uint32_t wave) const = 0;
  /// Called after the instruction. What `instruction` refers to is gone when this returns.
  virtual void executed(const TracedInstruction &instruction) = 0;
};

} // namespace sluice::emulator

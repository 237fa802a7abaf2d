//===- program.h - internals of a decoded code object ---------------------------------------------------===//
#pragma once

#include <array>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "emulator/check/quiet_runs.h"
#include "emulator/isa/op.h"
#include "emulator/isa/op_info.h"
#include "emulator/isa/wave.h"
#include "emulator/machine/machine.h"
#include "package/code_object.h"

namespace sluice::emulator {

/// Instructions by index, `last` excluded.
struct OpRange {
  uint32_t first;
  uint32_t last;
};

struct ProgramImpl {
  std::vector<std::byte> file; // the bytes that `object` refers to
  package::CodeObject object;
  std::span<std::byte> image; // mapped at its page; owned
  std::vector<KernelInfo> kernels;

  uint64_t code_start = 0; // of the first instruction, in the code object
  std::vector<Op> fast;    // the last one is a stop after the end of the code
  std::vector<Op> strict;
  std::vector<uint32_t> constants;          // rows of 64 dwords
  std::vector<int32_t> op_at;               // indexed by dword of the code
  std::vector<uint32_t> offset_of;          // by instruction, plus the end
  std::vector<std::string> texts;           // by instruction
  std::map<uint32_t, std::string> refusals; // why an instruction cannot run
  OpInfos infos;
  QuietRuns quiet_runs;
  bool acquires = false; // whether an instruction can learn from memory what another wave has released

  ProgramImpl() = default;
  ProgramImpl(const ProgramImpl &) = delete;
  ProgramImpl &operator=(const ProgramImpl &) = delete;
  ~ProgramImpl();

  uint64_t address_of(uint32_t op) const { return code_start + offset_of[op]; }
  /// Index of the instruction at an address of the code object; -1 if none starts there.
  int32_t op_at_address(uint64_t address) const;
  /// From a kernel's entry to the end of its symbol; without a size, to where another kernel begins.
  OpRange ops_of(const package::Kernel &kernel) const;
  CodeMap code_map() const;
  /// See static_hazards.h. Worked out at the first launch from an entry.
  std::array<bool, hazard_levels> hazard_levels_from(uint32_t entry) const;
  /// As a disassembler prints it; for bytes that are not an instruction, the bytes.
  std::string text(uint32_t op) const;

private:
  mutable std::mutex mutex;
  mutable std::map<uint32_t, std::array<bool, hazard_levels>> levels_by_entry;
};

} // namespace sluice::emulator

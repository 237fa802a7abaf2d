//===- kernel_stats.h - static figures of a kernel, from its machine code -------------------------------===//
//
// Registers, memory and occupancy as the code object declares them, and the instruction mix of the kernel and
// of each loop with MFMAs, counted in the code that runs.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/stats/occupancy.h"
#include "package/code_object.h"

namespace sluice::emulator {

enum class InstructionClass : uint8_t {
  matrix,
  acc_move, // v_accvgpr_*
  valu,
  packed_f32, // v_pk_*_f32, which cannot run beside an MFMA
  transcendental,
  lds_read,
  lds_write,
  lds_other,
  memory_to_lds,
  memory_load,
  memory_store, // and atomics
  scratch,
  scalar,
  scalar_memory,
  wait,
  barrier,
  branch,
  priority,
  nop,
  unknown, // bytes that are no instruction
};
inline constexpr size_t instruction_class_count = size_t(InstructionClass::unknown) + 1;
/// "MFMA", "VALU", "LDS_rd", ...
std::string_view class_name(InstructionClass instruction_class);

/// By mnemonic without its encoding's ending, and the printed line.
InstructionClass classify(std::string_view mnemonic, std::string_view text);

struct InstructionMix {
  std::array<uint32_t, instruction_class_count> count{};
  std::map<std::string, uint32_t> mfma; // by mnemonic
  uint32_t mfma_clk = 0;                // time the matrix core is busy
  uint32_t mfma_of_unknown_rate = 0;    // not in mfma_clk
  bool waits_for_all_memory = false;    // holds an s_waitcnt with vmcnt(0)

  uint32_t operator[](InstructionClass instruction_class) const { return count[size_t(instruction_class)]; }
  uint32_t total() const;
  /// Time one wave needs the issue port of its SIMD: 4 clk an instruction of the vector kinds, 16 a
  /// transcendental.
  uint32_t issue_clk() const;
  /// Share of the time the matrix core could be busy if waves interleaved perfectly; 0 without MFMAs.
  double bound_percent() const;
};

struct LoopStats {
  uint64_t first = 0;     // address of the branch's target
  uint64_t last = 0;      // address of the backward branch
  bool innermost = false; // no other listed loop lies inside
  InstructionMix mix;
};

struct KernelStats {
  package::Kernel kernel;
  std::string target;
  uint32_t code_object_version = 0;
  Occupancy occupancy; // of workgroups as large as the kernel allows, with its static LDS
  InstructionMix mix;
  std::vector<LoopStats> loops; // with at least one MFMA, by first address
};

/// Throws std::runtime_error (package::CodeObjectError for the file, else for a kernel that is not in it).
KernelStats kernel_stats(std::span<const std::byte> elf, std::string_view kernel);
std::string kernel_stats_json(std::span<const std::byte> elf, std::string_view kernel);

/// A JSON string literal.
std::string json_string(std::string_view text);

} // namespace sluice::emulator

//===- chips.h - the chips for which kernels can be built -----------------------------------------------===//
//
// Properties of chips for loading and launching. The generator adds what kernels can use
// (kernels/target/Chips.cpp).
//
// Compute units are those of AMD's data sheets: MI250 (one of its two dies), MI300X, MI355X. The rest is as
// LLVM has it; tests/unit/kernels/chips_test.cpp compares.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace sluice::package {

struct Chip {
  std::string_view name;
  uint32_t elf_machine;   // EF_AMDGPU_MACH, the low byte of an ELF file's flags
  uint32_t compute_units; // of one device as HIP counts devices
  uint32_t wave_size;
  uint32_t lds_bytes;               // that a workgroup can have
  bool e4m3fnuz = false;            // its 8-bit numbers are these
  uint32_t generic_elf_machine = 0; // EF_AMDGPU_MACH of the chip's generic target; 0 without one
  std::string_view generic_name = {};
};

inline constexpr std::array chips = {
    Chip{"gfx90a", 0x3f, 104, 64, 64 * 1024},
    Chip{"gfx942", 0x4c, 304, 64, 64 * 1024, true, 0x5f, "gfx9-4-generic"},
    Chip{"gfx950", 0x4f, 256, 64, 160 * 1024, false, 0x5f, "gfx9-4-generic"},
};

/// nullptr for a chip that is not in the table.
constexpr const Chip *find_chip(std::string_view name) {
  for (const Chip &chip : chips)
    if (chip.name == name) return &chip;
  return nullptr;
}

} // namespace sluice::package

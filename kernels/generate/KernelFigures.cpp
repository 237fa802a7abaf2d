//===- KernelFigures.cpp - the speed of machine code, for the manifest ----------------------------------===//
#include "generate/KernelFigures.h"

#include "emulator/stats/kernel_stats.h"

#include <algorithm>
#include <cmath>

namespace sluice {

void measure(package::KernelEntry &entry, std::span<const std::byte> elf) {
  const emulator::KernelStats stats = emulator::kernel_stats(elf, package::format_kernel_name(entry.name));
  entry.vgprs = stats.kernel.descriptor.vgprs();
  entry.loop_matrix_clk = entry.loop_slot_clk = entry.loop_wave_clk = 0;
  if (!stats.way) return;
  const emulator::Bound &bound = stats.way->bound;
  double slot = 0;
  for (size_t i = 0; i < size_t(emulator::BoundSlot::wave); ++i)
    slot = std::max(slot, bound.clk[i]);
  entry.loop_matrix_clk = uint32_t(std::lround(bound[emulator::BoundSlot::matrix]));
  entry.loop_slot_clk = uint32_t(std::lround(slot));
  entry.loop_wave_clk = uint32_t(std::lround(bound.alone_clk));
}

} // namespace sluice

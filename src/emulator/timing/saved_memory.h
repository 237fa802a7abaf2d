//===- saved_memory.h - restores memory between simulations ---------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "emulator/machine/machine.h"
#include "emulator/memory/memory.h"

namespace sluice::emulator::timing {

/// Launches leave their results in memory, and the next simulation must start without them.
class SavedMemory {
public:
  explicit SavedMemory(const Memory &memory) {
    for (const MemoryBlock &block : memory.snapshot()->blocks()) {
      if (!block.writable || block.freed) continue;
      const auto *bytes = reinterpret_cast<const std::byte *>(block.address);
      saved.emplace_back(block.address, std::vector<std::byte>(bytes, bytes + block.bytes));
    }
  }
  void restore() const {
    for (const auto &[address, bytes] : saved)
      std::memcpy(reinterpret_cast<void *>(address), bytes.data(), bytes.size());
  }

private:
  std::vector<std::pair<uint64_t, std::vector<std::byte>>> saved;
};

} // namespace sluice::emulator::timing

//===- written_map.cpp - which bytes of a block have been written, by whole lines -----------------------===//
#include "emulator/check/written_map.h"

#include <array>
#include <atomic>
#include <cassert>

namespace sluice::emulator {

namespace {

constexpr uint32_t group_dwords = 8; // one word of the map, which has a byte per dword

/// A byte of 1 for each bit.
constexpr std::array<uint64_t, 256> spread = [] {
  std::array<uint64_t, 256> table{};
  for (uint32_t bits = 0; bits < table.size(); ++bits)
    for (uint32_t i = 0; i < group_dwords; ++i)
      table[bits] |= uint64_t(bits >> i & 1) << 8 * i;
  return table;
}();

/// Visits the words of the map that a part touches, with the bits it touches there, until `visit` is false.
template <class Visit>
bool visit_words(const MemoryBlock &block, std::span<const LinePart> parts, Visit &&visit) {
  for (const LinePart &part : parts) {
    // Blocks that are tracked begin at a page, so a line has words of its own. A piece of one may begin
    // inside a line.
    const int64_t offset_bytes = int64_t(part.line * line_bytes - block.address);
    assert(offset_bytes % 4 == 0);
    auto *words = reinterpret_cast<uint64_t *>(block.written + offset_bytes / 4);
    assert(reinterpret_cast<uintptr_t>(words) % sizeof(uint64_t) == 0);
    for (uint64_t left = part.dwords; left != 0; left >>= group_dwords, ++words)
      if ((left & 255) != 0 && !visit(std::atomic_ref<uint64_t>(*words), spread[left & 255] * part.bytes))
        return false;
  }
  return true;
}

} // namespace

bool all_written(const MemoryBlock &block, std::span<const LinePart> parts) {
  return visit_words(block, parts, [](std::atomic_ref<uint64_t> word, uint64_t bits) {
    return (word.load(std::memory_order_relaxed) & bits) == bits;
  });
}

void mark_all_written(const MemoryBlock &block, std::span<const LinePart> parts) {
  visit_words(block, parts, [](std::atomic_ref<uint64_t> word, uint64_t bits) {
    if ((word.load(std::memory_order_relaxed) & bits) != bits) word.fetch_or(bits, std::memory_order_relaxed);
    return true;
  });
}

} // namespace sluice::emulator

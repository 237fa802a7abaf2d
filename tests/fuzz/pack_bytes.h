//===- pack_bytes.h - a kernel pack taken apart and put together with right checksums -------------------===//
//
// Written from docs/formats/pack.md, apart from src/package.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::fuzz {

/// Changes the bytes in place, as LLVMFuzzerMutate does, and returns how many there are then.
using Mutate = size_t (*)(uint8_t *data, size_t size, size_t most);

/// Mutates one part of a pack (a field of its manifest, a kernel's code before or behind its compression, or
/// all bytes alike) and corrects the lengths and checksums around it. What is no pack is mutated as it is.
size_t mutate_pack(std::span<uint8_t> pack, size_t most, unsigned seed, Mutate mutate);

} // namespace sluice::fuzz

//===- pack_bytes.h - takes a kernel pack apart and rebuilds it with correct checksums ------------------===//
//
// Written from docs/formats/pack.md, independently of src/package.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::fuzz {

/// Changes the bytes in place, as LLVMFuzzerMutate does, and returns the new size.
using Mutate = size_t (*)(uint8_t *data, size_t size, size_t most);

/// Mutates one part of a pack (a field of its manifest, a kernel's code before or after compression, or all
/// bytes alike) and corrects the lengths and checksums around it. Bytes that are not a pack are mutated as
/// well.
size_t mutate_pack(std::span<uint8_t> pack, size_t most, unsigned seed, Mutate mutate);

} // namespace sluice::fuzz

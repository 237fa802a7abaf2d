//===- checksum.h - XXH64, the checksum of the kernel pack ----------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::support {

/// XXH64 with seed 0, as published by its author; the low half is what zstd appends to its frames.
uint64_t xxh64(std::span<const std::byte> bytes);

} // namespace sluice::support

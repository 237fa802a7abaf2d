//===- assembler.h - gfx942 assembly to bytes, in the test's process ------------------------------------===//
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::test {

/// The code of `source`, with labels resolved. Throws std::runtime_error with the assembler's messages.
std::vector<uint32_t> assemble(std::string_view source);

/// The code of those lines, of one instruction each, that the assembler accepts.
std::vector<std::string> assembling_lines(std::span<const std::string> lines);

} // namespace sluice::test

//===- corpus.h - gfx942 instructions of every kind -----------------------------------------------------===//
//
// Encodings of all formats, opcodes and modifiers, drawn at random with a fixed seed. An encoding is kept
// when LLVM decodes it and makes the same bytes of the text that it prints for it: there is no doubt what it
// is.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <span>
#include <string_view>

#include "isa/codec.h"

namespace sluice::test {

/// Without repetition, format by format in the order of the manual, by opcode.
const std::vector<Encoding> &corpus();

} // namespace sluice::test

//===- corpus.h - gfx942 instructions to test the decoder with ------------------------------------------===//
//
// A test links one of two sources: corpus.cpp draws encodings of every kind, code_object_corpus.cpp takes
// those of compiled programs.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <span>
#include <string_view>

#include "isa/codec.h"

namespace sluice::test {

/// Without repetition.
const std::vector<Encoding> &corpus();

} // namespace sluice::test

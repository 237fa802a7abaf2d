//===- trials.h - each way, compared with one device ----------------------------------------------------===//
#pragma once

#include "options.h"
#include "ways.h"

namespace parallel {

/// A causal prompt by heads and as a ring. Throws Failed on every rank if a result or the bytes are wrong.
void prefill(Member &member, const Options &options);

/// A step of decoding with the keys divided. Throws like prefill.
void decode(Member &member, const Options &options);

/// A ring in which the last rank does something wrong.
void fail(Member &member, Failure how, int64_t dim);

} // namespace parallel

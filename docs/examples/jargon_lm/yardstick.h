//===- yardstick.h - what served texts are compared with ------------------------------------------------===//
//
// One text at a time with the dense cache (attention.h): its continuations, the range of its K and V, and how
// far a completion of the server is from it.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "serving.h"

namespace jargon {

/// The request, served only by a dense cache.
Completion dense_completion(const Model &model, Attention &attention, const Request &request);

/// Scales for an FP8 cache: twice the largest value that each layer and head has in `text` still fits.
CacheScales measured_scales(const Model &model, Attention &attention, const std::string &text);

struct Difference {
  size_t equal_bytes = 0;   // before the first that differs
  size_t bytes = 0;         // of the yardstick
  float largest_logits = 0; // difference of logits that follow equal bytes; others say nothing
  bool same_text() const { return equal_bytes == bytes; }
};

Difference compare(const Completion &served, const Completion &yardstick);

} // namespace jargon

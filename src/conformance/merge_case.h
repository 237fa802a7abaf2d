//===- merge_case.h - what the suite runs of sluice_merge_states ----------------------------------------===//
//
// As of attention, a case's name says all of it, and its numbers follow from the name and the seed.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "compare.h"
#include "elements.h"
#include "kernels.h"

namespace sluice::test {

/// What the parts' LSEs are like.
enum class Weights : uint8_t {
  all,        // every part counts
  some,       // -infinity among them, and of some rows all; what such a part holds is NaN
  far,        // far from one another, and from 0
  not_finite, // NaN in some, and in rows that count
};

struct MergeCase {
  Element partial = Element::f32, o = Element::f16;
  int parts = 3, tokens = 5, heads = 3, head_size = 64;
  Weights weights = Weights::all;
  bool lse = true, lse_base_2 = false, sink_logits = false;
  bool apart = false;    // NaN between heads, tokens and parts
  bool in_place = false; // O and LSE are the last part's memory; only where its type is O's

  std::string kernel = {}; // that must run
  std::string name = {};
  uint64_t seed = 0;
};

/// Of every merge kernel of the pack all that it claims; at the full level also sizes beyond those of a grid.
std::vector<MergeCase> merge_cases(const Target &target, Level level);

struct MergeInputs {
  std::vector<double> partial;     // [part][token][head][element]
  std::vector<double> lse;         // [part][token][head], to the case's base
  std::vector<double> sink_logits; // [head], to base e; -infinity without
};
MergeInputs make_inputs(const MergeCase &c);

struct MergeMemory {
  Placement partial, partial_lse, o, lse; // of O and LSE the first index is 0
  int sink_logits = -1;                   // number of a buffer; -1 for none
  std::vector<std::vector<std::byte>> buffers;
};
MergeMemory make_memory(const MergeCase &c, const MergeInputs &in);

sluice_merge make_call(const MergeCase &c, const MergeMemory &memory, const std::vector<void *> &bases);

/// An element of O is rounded once, from within its margin.
struct MergeExpected {
  std::vector<double> o, o_margin;        // [token][head][element]
  std::vector<double> lse, lse_tolerance; // [token][head]
};
MergeExpected compute_expected(const MergeCase &c, const MergeInputs &in);

/// Everything that is wrong: elements with a wrong value, and bytes outside of any element that have changed.
Comparison compare(const MergeCase &c, const MergeExpected &expected, const MergeMemory &before,
                   const MergeMemory &after);

} // namespace sluice::test

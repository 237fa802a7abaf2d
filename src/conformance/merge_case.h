//===- merge_case.h - the cases of sluice_merge_states --------------------------------------------------===//
//
// As for attention, a case's name describes it completely, and its numbers follow from the name and the seed.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "compare.h"
#include "elements.h"
#include "kernels.h"

namespace sluice::conformance {

/// The distribution of the parts' LSEs.
enum class Weights : uint8_t {
  all,        // every part has a weight
  some,       // -infinity for some, and for all of some rows; O of such a part is NaN
  far,        // far from one another, and from 0
  not_finite, // NaN in some, in rows that have weights
};

struct MergeCase {
  Element partial = Element::f32, o = Element::f16;
  int parts = 3, tokens = 5, heads = 3, head_size = 64;
  Weights weights = Weights::all;
  bool lse = true, lse_base_2 = false, sink_logits = false;
  bool apart = false;    // NaN between heads, tokens and parts
  bool in_place = false; // O and LSE are the last part's memory; only where its type is O's

  std::string kernel = {}; // this kernel must run
  std::string name = {};
  uint64_t seed = 0;
};

/// For every merge kernel of the pack, everything that it claims; at the full level also sizes beyond those
/// of a grid.
std::vector<MergeCase> merge_cases(const Target &target, Level level);

struct MergeInputs {
  std::vector<double> partial;     // [part][token][head][element]
  std::vector<double> lse;         // [part][token][head], to the case's base
  std::vector<double> sink_logits; // [head], to base e; -infinity without
};
MergeInputs make_inputs(const MergeCase &c);

struct MergeMemory {
  Placement partial, partial_lse, o, lse; // the first index of O and LSE is 0
  int sink_logits = -1;                   // buffer number; -1: absent
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

/// All errors: elements with a wrong value, and changed bytes outside of any element.
Comparison compare(const MergeCase &c, const MergeExpected &expected, const MergeMemory &before,
                   const MergeMemory &after);

} // namespace sluice::conformance

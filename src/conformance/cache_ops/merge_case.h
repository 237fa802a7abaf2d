//===- merge_case.h - the cases of sluice_attention_merge-----------------------------------------------===//
//
// As for attention, a case's name describes it completely, and its numbers follow from the name and the seed.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "conformance/shared/comparison.h"
#include "conformance/shared/elements.h"
#include "conformance/shared/placement.h"
#include "conformance/shared/structs.h"
#include "conformance/shared/target.h"
#include "conformance/shared/tensors.h"

#include <sluice/merge.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice::conformance {

/// The distribution of the parts' LSEs.
enum class Weights : uint8_t {
  all,        // every part has a weight
  some,       // -infinity for some, and for all of some rows; O of such a part is NaN
  far,        // far from one another, and from 0
  not_finite, // NaN in some, in rows that have weights
  infinite,   // as `some`, but +infinity or -infinity: SLUICE_MERGE_INFINITY_IS_EMPTY
};

/// Where the parts are in memory.
enum class PartPlaces : uint8_t {
  in_order,
  backwards, // the last part is first, so that strides are negative
  listed,    // each has a pointer of its own, at distances that no stride has
};

struct MergeCase {
  Element partial = Element::f32, o = Element::f16;
  int parts = 3, tokens = 5, heads = 3, head_size = 64;
  Weights weights = Weights::all;
  bool lse = true, lse_base_2 = false, sink_logits = false;
  Scale o_scale = Scale::none; // tensor or head; only of O in FP8
  int power = 0;               // parts and scales of O are times 2^power
  bool apart = false;          // NaN between heads, tokens and parts; heads of results are outside of tokens
  bool results_apart = false;  // the same of the results only
  bool in_place = false;       // O and LSE are the last part's memory; only where its type is O's
  PartPlaces places = PartPlaces::in_order;
  int sequences = 0; // LSEs are [sequence][head][token] in memory, of this many sequences; 0: [token][head]

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
  std::vector<double> o_scale;     // [head]; 1 without
};
MergeInputs make_inputs(const MergeCase &c);

/// LSEs, whose tokens may be of several sequences.
struct LsePlacement : Placement {
  int sequence_tokens = 0; // 0: one sequence
  int64_t sequence_stride = 0;
  int64_t at(int64_t part, int64_t token, int64_t head) const {
    if (sequence_tokens == 0) return Placement::at(part, token, head, 0);
    return Placement::at(part, token % sequence_tokens, head, 0) + token / sequence_tokens * sequence_stride;
  }
};

struct MergeMemory {
  Placement partial, o; // the first index of O, and of its LSEs, is 0
  LsePlacement partial_lse, lse;
  int sink_logits = -1, o_scale = -1; // buffer numbers; -1: absent
  std::vector<std::vector<std::byte>> buffers;
};
MergeMemory make_memory(const MergeCase &c, const MergeInputs &in);

/// The pointers of listed parts, to which the call points.
struct PartLists {
  std::vector<const void *> partial, partial_lse;
};
sluice_merge_args make_call(const MergeCase &c, const MergeMemory &memory, const std::vector<void *> &bases,
                            PartLists &lists);

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

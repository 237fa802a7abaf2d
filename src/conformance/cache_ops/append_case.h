//===- append_case.h - the cases of sluice_cache_append -------------------------------------------------===//
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

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice::conformance {

/// How a call locates new rows.
enum class Finding : uint8_t { slots, block, csr };

enum class Rotation : uint8_t { none, halves, pairs };

struct AppendCase {
  Element source = Element::f16, cache = Element::f16;
  int heads = 3;
  HeadSizes head_size = {48, 24};
  bool v_in_k = false;
  Finding finding = Finding::slots;
  int page_size = 16;
  bool wide = false; // int64_t entries of the table
  int k_pack = 0;    // elements of a pack of an x-packed K
  Columns v_columns = Columns::none;
  Rotation rotation = Rotation::none;
  int rotary_dim = 0;
  bool positions = false; // given, and different from those of the keys
  Scale k_scale = Scale::none, v_scale = Scale::none;
  bool apart = false;      // NaN between heads and rows, and in the caches bytes that must stay
  bool not_finite = false; // NaN and infinity among the new rows
  bool few_values = false; // the same few numbers again and again, and groups of equal ones
  int scale_group = 0;     // elements of a group of U4
  bool zeros = false;      // U4 with zero points
  int more_rows = 0;       // of the last sequence, beyond those of all cases
  int power = 0;           // new rows and given scales are times 2^power; then norms have no epsilon

  // Only of kernels for whole steps.
  int q_heads = 0;
  bool q_in_place = false; // Q is stored where it was
  int tail_dim = 0;
  bool one_tail = false;   // all heads have the same
  bool q_is_whole = false; // rows of Q have their tails
  bool k_norm = false, q_norm = false;
  bool norm_is_f32 = false; // else of the source's type
  int rotary_first = 0;
  Element rotary_type = Element::f32;
  bool sines_apart = false;

  std::string kernel = {}; // this kernel must run
  std::string name = {};
  uint64_t seed = 0;
};

/// Of the weights of norms.
inline Element norm_type(const AppendCase &c) {
  return c.norm_is_f32 ? Element::f32 : c.source;
}
/// Tiny rows would be nothing beside another one.
inline double norm_epsilon(const AppendCase &c) {
  return c.power == 0 ? 1e-5 : 0;
}

/// For every append kernel of the pack, everything that it claims; at the full level also sizes beyond those
/// of a grid.
std::vector<AppendCase> append_cases(const Target &target, Level level);

/// Where a row goes.
struct Slot {
  int64_t page, row;
  bool operator==(const Slot &) const = default;
};

struct AppendInputs {
  int tokens = 0;
  std::vector<double> k, v, q;             // [token][head][element], with tails
  std::vector<double> k_norm, q_norm;      // weights; empty without
  std::vector<std::optional<Slot>> slots;  // [token]; nothing for a row that is skipped
  std::vector<int> positions;              // [token]
  std::vector<double> rotary;              // [position][rotary_dim]: cosines, then sines
  std::vector<double> k_scale, v_scale;    // [head], or [page][head] per page; 1 without
  std::vector<int> starts, lengths;        // of sequences; empty with slots
  std::vector<std::vector<int64_t>> pages; // [sequence][page of it]
  int64_t pages_in_all = 0;
};
AppendInputs make_inputs(const AppendCase &c);

struct AppendMemory {
  Placement k, v, k_cache, v_cache;
  Placement q{-1}, q_out{-1}, k_tail{-1}, q_tail{-1}; // -1: absent
  Placement k_scales{-1}, v_scales{-1}, k_zeros{-1}, v_zeros{-1};
  int64_t table_stride = 0;
  /// Buffer numbers; -1: absent.
  int slots = -1, starts = -1, kv_lengths = -1, page_table = -1, page_starts = -1;
  int k_scale = -1, v_scale = -1, rotary = -1, rotary_sin = -1, positions = -1;
  int k_norm = -1, q_norm = -1;
  std::vector<std::vector<std::byte>> buffers;
};
AppendMemory make_memory(const AppendCase &c, const AppendInputs &in);

void make_call(const AppendCase &c, const AppendInputs &in, const AppendMemory &memory,
               const std::vector<void *> &bases, AppendStructs &out);

/// The expected element of a cache, or of Q, after the append.
struct StoredElement {
  int buffer;
  Element type;
  int64_t at;
  double value, margin; // what is rounded once to this type is within `margin` of `value`
};
std::vector<StoredElement> compute_expected(const AppendCase &c, const AppendInputs &in,
                                            const AppendMemory &memory);

/// All errors: elements with a wrong value, and changed bytes outside of any element.
Comparison compare(const AppendCase &c, const std::vector<StoredElement> &expected,
                   const AppendMemory &before, const AppendMemory &after);

} // namespace sluice::conformance

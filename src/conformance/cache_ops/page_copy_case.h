//===- page_copy_case.h - the cases of sluice_cache_copy and sluice_cache_gather------------------------===//
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
#include <string>
#include <vector>

namespace sluice::conformance {

/// How a call says which rows go where: pages to themselves or by pairs, or a gather through a table.
enum class Moving : uint8_t { same_page, pairs, block, csr };

struct PageCopyCase {
  Element source = Element::f16, target = Element::f16;
  Moving moving = Moving::pairs;
  int heads = 3;
  HeadSizes head_size = {48, 24};
  bool v_in_k = false;
  int page_size = 16;
  bool wide = false;                        // int64_t numbers of pages
  int source_k_pack = 0, target_k_pack = 0; // a gather's target has no packs
  bool fork = false;                        // source and target are the same memory
  bool first_keys = false;                  // a gather begins after the first keys
  Scale k_scale = Scale::none, v_scale = Scale::none;
  bool apart = false;      // gaps between heads and rows
  int power = 0;           // rows of 16 bits and given scales are times 2^power
  bool not_finite = false; // NaN and infinity among the source's numbers
  int scale_group = 0;     // elements of a group of U4
  bool zeros = false;      // U4 with zero points

  std::string kernel = {}; // this kernel must run
  std::string name = {};
  uint64_t seed = 0;

  bool is_gather() const { return moving == Moving::block || moving == Moving::csr; }
};

/// For every copy kernel of the pack, everything that it claims.
std::vector<PageCopyCase> page_copy_cases(const Target &target);

/// A row that must arrive: a row of a page, and a row of a page or, as page 0, of a gather's output.
struct MovedRow {
  int64_t from_page, from_row, to_page, to_row;
};

struct PageCopyInputs {
  std::vector<MovedRow> rows;
  int64_t pages = 0, out_rows = 0;
  std::vector<double> k_scale, v_scale;         // [head]; 1 without, or with an array for each row
  std::vector<int64_t> pairs;                   // [pair][2]
  std::vector<int> starts, lengths, first_keys; // of a gather's sequences
  std::vector<std::vector<int64_t>> tables;     // [sequence][page of it]
};
PageCopyInputs make_inputs(const PageCopyCase &c);

/// Of K or V: [page][row][head][element], and the scales and zero points of rows, whose last index is that of
/// a group; absent ones have no buffer.
struct PageCopyTensors {
  Placement elements, scales = {-1}, zeros = {-1};
};

struct PageCopyMemory {
  PageCopyTensors k_source, v_source, k_target, v_target;
  int64_t table_stride = 0;
  /// Buffer numbers; -1: absent.
  int pairs = -1, starts = -1, kv_lengths = -1, first_keys = -1, page_table = -1, page_starts = -1;
  int k_scale = -1, v_scale = -1;
  std::vector<std::vector<std::byte>> buffers;
};
PageCopyMemory make_memory(const PageCopyCase &c, const PageCopyInputs &in);

using CopyStructs = MoveStructs<sluice_copy_args>;
using GatherStructs = MoveStructs<sluice_gather_args>;
void make_page_copy(const PageCopyCase &c, const PageCopyInputs &in, const PageCopyMemory &memory,
                    const std::vector<void *> &bases, CopyStructs &out);
void make_gather(const PageCopyCase &c, const PageCopyInputs &in, const PageCopyMemory &memory,
                 const std::vector<void *> &bases, GatherStructs &out);

/// What a target has after the call: bits of the source, or a number that is rounded once.
struct MovedElement {
  int buffer;
  int64_t at, from; // in units of `bytes`
  int from_buffer;
  size_t bytes;
  bool is_bits;
  double value;
};
std::vector<MovedElement> compute_expected(const PageCopyCase &c, const PageCopyInputs &in,
                                           const PageCopyMemory &memory);

/// All errors: elements with a wrong value, and changed bytes outside of any element.
Comparison compare(const PageCopyCase &c, const std::vector<MovedElement> &expected,
                   const PageCopyMemory &before, const PageCopyMemory &after);

} // namespace sluice::conformance

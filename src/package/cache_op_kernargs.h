//===- cache_op_kernargs.h - the kernel arguments of the cache operations -------------------------------===//
//
// For the kernels of the cache operations: append writes rows into a paged cache, page copy moves rows
// between pages or out of them, merge combines results over splits of the keys. Those with sides, K and V or
// more, are structs as in kernarg_structs.h; those of merge are a table as in kernargs.h.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "package/kernarg_structs.h"

namespace sluice::package {

/// Lanes of a workgroup of any operation. They are divided into groups of 2^lanes_log2, one group per row.
inline constexpr uint32_t cache_op_threads = 256;
/// The elements that a lane moves at a time.
inline constexpr uint32_t cache_op_chunk_elements = 8;
/// In a merge, 2^n lanes have the same chunk of a row and different parts of the keys; this is the largest n.
inline constexpr uint32_t merge_most_slots_log2 = 4;
/// The parts that one lane of a merge has in flight.
inline constexpr uint32_t merge_parts_of_lane = 4;
/// The parts of a row that a merge has in flight: more take further rounds.
inline constexpr uint32_t merge_most_parts_at_once = merge_parts_of_lane << merge_most_slots_log2;
/// The first fields of the kernarg table of a merge are in registers when a wave starts: as many as gfx942
/// has user SGPRs for, besides the address of all of them.
inline constexpr uint32_t merge_preloaded_bytes = 56;

/// The most parts that may each be at an address of their own.
inline constexpr uint32_t merge_most_listed_parts = 16;

/// Assumptions that a merge may make, and what it has to do besides. Without a bit of the first two lines it
/// goes step by step.
enum MergeMode : uint32_t {
  /// The parts and their LSEs have no gaps, no row has more chunks than lanes for them, and no lane more than
  /// one part, or more than it has in flight. So few parts can be read before it is known which of them
  /// count.
  merge_at_once = 1,
  merge_several_at_once = 2,
  /// Neither o nor lse has gaps, and every row is merged.
  merge_to_plain_rows = 4,
  /// With one of the bits after these two: in code of its own, so that no other merge gets slower.
  merge_specially_at_once = 8,
  merge_specially = 16,
  /// A part whose LSE is +infinity does not count either.
  merge_infinity_is_empty = 32,
  /// Parts are at the distances of the kernarg table instead of strides; not at once.
  merge_listed_parts = 64,
  /// partial_lse_sequence_skip is not 0; not at once.
  merge_lse_sequences = 128,
  /// A scale of o for each head; else one. Not a reason for code of its own.
  merge_o_scale_heads = 256,
};

/// The source of a row's page number: for a copy of pages, a pair of numbers, or the same number for both.
enum class PageSource : uint32_t { slots = 0, block_table = 1, csr_table = 2, pairs = 3, same_page = 4 };
/// The sources of copies of pages are the last ones, from this one on, so that a kernel tells a copy of pages
/// from a gather with one comparison.
inline constexpr PageSource first_page_copy_source = PageSource::pairs;
static_assert(PageSource::slots < first_page_copy_source &&
              PageSource::block_table < first_page_copy_source &&
              PageSource::csr_table < first_page_copy_source &&
              PageSource::same_page > first_page_copy_source);

/// In an append_step: the lanes of the longest row, each with this many chunks.
inline constexpr uint32_t step_most_lanes = 64, step_chunks_of_lane = 2;
inline constexpr uint32_t step_most_row_elements =
    step_most_lanes * step_chunks_of_lane * cache_op_chunk_elements;

/// The numbers of an append_step's sections.
enum class StepPart : uint32_t { k = 0, v = 1, q = 2 };

/// Where an append_step has the scale of a row from.
enum class ScaleSource : uint32_t {
  head = 0,     // the scale of its head, whatever its page is
  page = 1,     // the scale of its page and head
  computed = 2, // its own numbers: the scale is stored
};

enum StepMode : uint32_t {
  step_rotary_pairs = 1, // SLUICE_ROTARY_PAIRS
  step_norm_is_f32 = 2,  // weights of norms are F32, else of the source's type
  step_wide_groups = 4,  // groups of U4 have 64 elements, else 32
  step_regroups = 8,     // a half of K's rotation, or what is before it, is not whole groups
  step_v_columns = 16,   // V's cache is by columns, v_out_pack_stride apart, in packs of rows
};

// Strides count elements, chunks are 8 elements. A magic number and its shift divide by a constant: see
// support/divisor.h. "_magic" and "_shift" of the same name belong together.

/// Where the rows of a cache are: sequences and pages, as in calls::Append and calls::Gather.
template <template <typename> typename As> struct PlacesOf {
  As<DeviceAddress> starts; // of the sequences' rows
  As<DeviceAddress> kv_lengths, page_table, page_starts;
  As<int64_t> page_table_stride;
  /// Of a sequence in a block_table. A row has no page if it is not among them, or, for csr_table, not
  /// between two starts,
  As<int64_t> page_table_entries;
  As<uint64_t> page_count; // or if the page's number, unsigned, is not below this.
  As<uint64_t> page_magic; // page_magic and page_shift divide by page_size
  As<uint32_t> page_shift, page_size;
  As<uint32_t> page_source; // a PageSource, which selects those in use
  As<uint32_t> page_index_64;
  As<uint32_t> batch;
  As<uint32_t> search_steps; // 2^search_steps > batch + 1: halvings until a row's sequence is found

  SLUICE_KERNARG_MEMBERS(starts, kv_lengths, page_table, page_starts, page_table_stride, page_table_entries,
                         page_count, page_magic, page_shift, page_size, page_source, page_index_64, batch,
                         search_steps)
};

/// K or V of an append.
template <template <typename> typename As> struct AppendSideOf {
  As<DeviceAddress> rows, cache; // new rows, and their destination
  As<DeviceAddress> scale;       // null: values are stored as they are; else they are divided by
                                 // scale[head * scale_stride]
  As<int64_t> token_stride, head_stride;
  As<int64_t> cache_page_stride, cache_row_stride, cache_head_stride;
  As<int64_t> cache_pack_stride; // between packs of pack_chunks chunks; without x-packing a head's row is one
  As<uint32_t> chunks;           // of all heads
  As<uint32_t> head_chunks, head_magic, head_shift;
  As<uint32_t> pack_chunks, pack_magic, pack_shift;
  As<uint32_t> scale_stride;

  SLUICE_KERNARG_MEMBERS(rows, cache, scale, token_stride, head_stride, cache_page_stride, cache_row_stride,
                         cache_head_stride, cache_pack_stride, chunks, head_chunks, head_magic, head_shift,
                         pack_chunks, pack_magic, pack_shift, scale_stride)
};

/// Grid, in workgroups: x = rows of tokens, y = chunks of a token, z = 2, of K and of V, or 1 without V.
template <template <typename> typename As> struct AppendKernargsOf {
  AppendSideOf<As> k, v; // by their z
  As<DeviceAddress> slots;
  PlacesOf<As> places; // a row without a page is not stored
  As<DeviceAddress> rotary, positions;
  As<int64_t> rotary_stride;
  As<uint32_t> tokens;
  As<uint32_t> lanes_log2; // lanes for a row of one token; also gives the rows that a workgroup processes at
                           // a time
  As<uint32_t> token_step, chunk_step; // tokens and chunks that the grid processes at a time
  As<uint32_t> rotary_dim, rotary_pairs;

  SLUICE_KERNARG_MEMBERS(k, v, slots, places, rotary, positions, rotary_stride, tokens, lanes_log2,
                         token_step, chunk_step, rotary_dim, rotary_pairs)
};

/// K or V of a page copy. It has row n of page p at p * page_stride + n * row_stride, in its source and its
/// target. Rows are all rows of the pages, page by page; or those of a gather's output, which is one page.
///
/// Strides of a source in blocks, and both of kernels that copy blocks, count bytes. Chunks are 8 elements of
/// the kernel's types; of kernels that copy blocks, pieces.
template <template <typename> typename As> struct PageCopySideOf {
  As<DeviceAddress> source, target; // rows of pages
  As<DeviceAddress> scale; // null, or of a row of the source: F16 and BF16 are divided by it, types of
                           // a byte are multiplied. Of U4 the scales of a row's groups, of F16
  As<DeviceAddress> zeros; // of U4: null, or what is subtracted from the numbers of a group; else 8
  As<int64_t> scale_page_stride, scale_row_stride, scale_head_stride;
  As<int64_t> source_page_stride, source_row_stride, source_head_stride, source_pack_stride;
  As<int64_t> target_page_stride, target_row_stride, target_head_stride, target_pack_stride;
  As<uint32_t> chunks; // of all heads
  As<uint32_t> head_chunks, head_magic, head_shift;
  As<uint32_t> source_pack_chunks, source_pack_magic, source_pack_shift;
  As<uint32_t> target_pack_chunks, target_pack_magic, target_pack_shift;
  As<uint32_t> group_chunks_log2; // 2 or 3: chunks of a group of U4
  As<uint32_t> piece_bytes;       // 2, 4, 8 or 16

  SLUICE_KERNARG_MEMBERS(source, target, scale, zeros, scale_page_stride, scale_row_stride, scale_head_stride,
                         source_page_stride, source_row_stride, source_head_stride, source_pack_stride,
                         target_page_stride, target_row_stride, target_head_stride, target_pack_stride,
                         chunks, head_chunks, head_magic, head_shift, source_pack_chunks, source_pack_magic,
                         source_pack_shift, target_pack_chunks, target_pack_magic, target_pack_shift,
                         group_chunks_log2, piece_bytes)
};

/// Grid as in an append.
template <template <typename> typename As> struct PageCopyKernargsOf {
  PageCopySideOf<As> k, v;
  As<DeviceAddress> pairs;      // of page numbers: source and target
  As<DeviceAddress> first_keys; // may be null
  PlacesOf<As> places;          // starts: in the output
  As<uint64_t> rows, row_step;
  As<uint32_t> lanes_log2, chunk_step; // as in an append

  SLUICE_KERNARG_MEMBERS(k, v, pairs, first_keys, places, rows, row_step, lanes_log2, chunk_step)
};

/// K, V or Q of an append_step, which appends for calls that also norm rows, rotate Q or read tails. A row is
/// that of one token and one head; its lanes are a power of two, at most a wave, and each has up to two
/// chunks, a rotated one with its partner.
template <template <typename> typename As> struct StepSectionOf {
  As<DeviceAddress> rows, tail; // the first body_chunks chunks of a row, and the others
  As<DeviceAddress> norm;       // null, or the weights of a norm of those first chunks
  As<DeviceAddress> out;        // a cache; for Q one page, whose rows are tokens. Strides of U4 and of ggml's
                                // types count bytes
  As<DeviceAddress> scale; // null, or where the scale of a page, row and head is. Of U4 the scales of the
                           // groups of a row, in F16
  As<DeviceAddress> zeros; // null, or where the numbers to subtract are, as scales of U4
  As<int64_t> token_stride, head_stride;
  As<int64_t> tail_token_stride, tail_head_stride;
  As<int64_t> out_page_stride, out_row_stride, out_head_stride, out_pack_stride;
  As<int64_t> scale_page_stride, scale_row_stride, scale_head_stride;
  As<uint32_t> row_count; // of all tokens
  As<uint32_t> heads, heads_magic, heads_shift;
  As<uint32_t> chunks, body_chunks;
  As<uint32_t> lane_chunks; // lanes that have a chunk: lane n < rotary_half has the chunks rotary_first + n
                            // and rotary_first + n + rotary_half, which are rotated; lane rotary_half + n has
                            // n and n + (lane_chunks - rotary_half) of the others
  As<uint32_t> lanes_log2;
  As<uint32_t> rotary_half;
  As<uint32_t> first_group, groups; // the section's workgroups, which each process 256 >> lanes_log2 rows at
                                    // a time
  As<uint32_t> pack_chunks, pack_magic, pack_shift;
  As<uint32_t> scale_source; // a ScaleSource
  As<float> row_inverse;     // 1 / elements of a normed row

  SLUICE_KERNARG_MEMBERS(rows, tail, norm, out, scale, zeros, token_stride, head_stride, tail_token_stride,
                         tail_head_stride, out_page_stride, out_row_stride, out_head_stride, out_pack_stride,
                         scale_page_stride, scale_row_stride, scale_head_stride, row_count, heads,
                         heads_magic, heads_shift, chunks, body_chunks, lane_chunks, lanes_log2, rotary_half,
                         first_group, groups, pack_chunks, pack_magic, pack_shift, scale_source, row_inverse)
};

/// Grid, in workgroups: x = the sections one after another.
template <template <typename> typename As> struct StepKernargsOf {
  StepSectionOf<As> k, v, q; // by their StepPart
  As<DeviceAddress> slots;
  PlacesOf<As> places;
  As<DeviceAddress> rotary, rotary_sin; // cosines and sines
  As<DeviceAddress> positions;
  As<int64_t> rotary_stride;
  As<uint32_t> rotary_first, rotary_type; // a sluice_dtype
  As<uint32_t> modes;                     // bits of StepMode
  As<float> norm_epsilon;
  As<uint32_t> v_pack_log2, v_pack_mask; // with step_v_columns: row r of a page is number r & v_pack_mask of
                                         // pack r >> v_pack_log2, and out_row_stride of V is between packs

  SLUICE_KERNARG_MEMBERS(k, v, q, slots, places, rotary, rotary_sin, positions, rotary_stride, rotary_first,
                         rotary_type, modes, norm_epsilon, v_pack_log2, v_pack_mask)
};

using Places = PlacesOf<Plain>;
using AppendSide = AppendSideOf<Plain>;
using AppendKernargs = AppendKernargsOf<Plain>;
using PageCopySide = PageCopySideOf<Plain>;
using PageCopyKernargs = PageCopyKernargsOf<Plain>;
using StepSection = StepSectionOf<Plain>;
using StepKernargs = StepKernargsOf<Plain>;

inline constexpr auto &append_kernarg_fields = KernargTable<AppendKernargs>::fields;
inline constexpr auto &page_copy_kernarg_fields = KernargTable<PageCopyKernargs>::fields;
inline constexpr auto &step_kernarg_fields = KernargTable<StepKernargs>::fields;

static_assert(kernargs_are_packed(append_kernarg_fields, sizeof(AppendKernargs)));
static_assert(kernargs_are_packed(page_copy_kernarg_fields, sizeof(PageCopyKernargs)));
static_assert(kernargs_are_packed(step_kernarg_fields, sizeof(StepKernargs)));
// A side, or a section, is found by its number.
static_assert(offsetof(AppendKernargs, v) == sizeof(AppendSide));
static_assert(offsetof(PageCopyKernargs, v) == sizeof(PageCopySide));
static_assert(offsetof(StepKernargs, v) == sizeof(StepSection) &&
              offsetof(StepKernargs, q) == 2 * sizeof(StepSection));

// partial ... sink_logits  as in sluice_merge_args, where partial is parts.o; lse and sink_logits may be null
// q_starts, q_lengths      null, or for each sequence: where its tokens begin in o and lse (whose batch
//                          strides are then 0), and how many it has
// prefix_starts            null, or where the tokens of each prefix begin among those of the parts, and end:
//                          the first own_parts parts are over a sequence's own keys, and those from
//                          first_prefix_part on over its prefix's. Parts between them do not count, nor do
//                          those of a prefix for tokens before the first of prefix_count prefixes or after
//                          the last. Without prefixes, own_parts is the number of parts
// log2_per_unit            of the exponents: log2(e) for LSE to base e, else 1
// unit_per_log2            its inverse
// unit_per_nat             converts a sink's logit from base e to LSE's base
// rows                     of all sequences, tokens * heads of each; a row has row_chunks chunks, and a
//                          workgroup processes 2^groups_log2 rows at a time
// lane_division            lanes_log2, slots_log2, slot_place and groups_log2, a byte each, lowest first
// lanes_log2, slots_log2   a row has 2^lanes_log2 lanes for different chunks, and each of these chunks
//                          2^slots_log2 lanes of one wave for different parts
// slot_place               the lowest bit of the slot in a lane's number; the other bits, from the lowest
//                          on, are the chunk and then the row
// row_step                 rows from one y of the grid to the next
// mode                     bits of MergeMode
// tokens                   of each sequence in the parts
// most_tokens              a sequence has q_lengths[b] tokens, else q_starts[b + 1] - q_starts[b], else
//                          most_tokens, and never more than these; all of them are merged
// max_tokens               ... but a sequence with more tokens than this is skipped, or with prefix_starts
//                          has only one part over its own keys
// q_rows                   of o and lse, with q_starts; INT32_MAX if that is unknown
// searched_batch           0, or the tokens of the parts have the same numbers as those of o, and the
//                          sequence of each is searched among this many, by their q_starts
// o_scale                  of FP8 results: null, or what they are divided by; see merge_o_scale_heads
// partial_lse_sequence_skip  from where a sequence's first token would be if all tokens were of one sequence,
//                          times the sequence's number
// partial_distance_<p>, partial_lse_distance_<p>  of merge_listed_parts: elements from part 0 to part p
//
// Without sequence_tokens, a merge has one sequence.
//
// Grid, in workgroups: x = rows, y = rows beyond the largest x.
#define SLUICE_MERGE_DISTANCES(FIELD, distance)                                                              \
  FIELD(int64_t, i64, distance##0)                                                                           \
  FIELD(int64_t, i64, distance##1)                                                                           \
  FIELD(int64_t, i64, distance##2)                                                                           \
  FIELD(int64_t, i64, distance##3)                                                                           \
  FIELD(int64_t, i64, distance##4)                                                                           \
  FIELD(int64_t, i64, distance##5)                                                                           \
  FIELD(int64_t, i64, distance##6)                                                                           \
  FIELD(int64_t, i64, distance##7)                                                                           \
  FIELD(int64_t, i64, distance##8)                                                                           \
  FIELD(int64_t, i64, distance##9)                                                                           \
  FIELD(int64_t, i64, distance##10)                                                                          \
  FIELD(int64_t, i64, distance##11)                                                                          \
  FIELD(int64_t, i64, distance##12)                                                                          \
  FIELD(int64_t, i64, distance##13)                                                                          \
  FIELD(int64_t, i64, distance##14)                                                                          \
  FIELD(int64_t, i64, distance##15)
#define SLUICE_MERGE_KERNARGS(FIELD)                                                                         \
  FIELD(uint64_t, pointer, partial)                                                                          \
  FIELD(uint64_t, pointer, partial_lse)                                                                      \
  FIELD(uint64_t, pointer, o)                                                                                \
  FIELD(uint64_t, pointer, lse)                                                                              \
  FIELD(uint32_t, i32, parts)                                                                                \
  FIELD(uint32_t, i32, rows)                                                                                 \
  FIELD(uint32_t, i32, row_chunks)                                                                           \
  FIELD(uint32_t, i32, row_step)                                                                             \
  FIELD(uint32_t, i32, lane_division)                                                                        \
  FIELD(uint32_t, i32, mode)                                                                                 \
  FIELD(uint64_t, pointer, sink_logits)                                                                      \
  FIELD(uint64_t, pointer, q_starts)                                                                         \
  FIELD(uint64_t, pointer, q_lengths)                                                                        \
  FIELD(uint64_t, pointer, prefix_starts)                                                                    \
  FIELD(int64_t, i64, partial_part_stride)                                                                   \
  FIELD(int64_t, i64, partial_token_stride)                                                                  \
  FIELD(int64_t, i64, partial_head_stride)                                                                   \
  FIELD(int64_t, i64, partial_lse_part_stride)                                                               \
  FIELD(int64_t, i64, partial_lse_token_stride)                                                              \
  FIELD(int64_t, i64, partial_lse_head_stride)                                                               \
  FIELD(int64_t, i64, o_batch_stride)                                                                        \
  FIELD(int64_t, i64, o_token_stride)                                                                        \
  FIELD(int64_t, i64, o_head_stride)                                                                         \
  FIELD(int64_t, i64, lse_batch_stride)                                                                      \
  FIELD(int64_t, i64, lse_token_stride)                                                                      \
  FIELD(int64_t, i64, lse_head_stride)                                                                       \
  FIELD(float, f32, log2_per_unit)                                                                           \
  FIELD(float, f32, unit_per_log2)                                                                           \
  FIELD(float, f32, unit_per_nat)                                                                            \
  FIELD(uint32_t, i32, heads)                                                                                \
  FIELD(uint32_t, i32, heads_magic)                                                                          \
  FIELD(uint32_t, i32, heads_shift)                                                                          \
  FIELD(uint32_t, i32, tokens)                                                                               \
  FIELD(uint32_t, i32, tokens_magic)                                                                         \
  FIELD(uint32_t, i32, tokens_shift)                                                                         \
  FIELD(uint32_t, i32, most_tokens)                                                                          \
  FIELD(uint32_t, i32, max_tokens)                                                                           \
  FIELD(int32_t, i32, q_rows)                                                                                \
  FIELD(uint32_t, i32, searched_batch)                                                                       \
  FIELD(uint32_t, i32, prefix_count)                                                                         \
  FIELD(uint32_t, i32, own_parts)                                                                            \
  FIELD(uint32_t, i32, first_prefix_part)                                                                    \
  FIELD(uint64_t, pointer, o_scale)                                                                          \
  FIELD(int64_t, i64, partial_lse_sequence_skip)                                                             \
  SLUICE_MERGE_DISTANCES(FIELD, partial_distance_)                                                           \
  SLUICE_MERGE_DISTANCES(FIELD, partial_lse_distance_)

#define SLUICE_FIELD(type, kind, name) type name;
struct MergeKernargs {
  SLUICE_MERGE_KERNARGS(SLUICE_FIELD)
};
#undef SLUICE_FIELD

/// The arguments after these are of merge_specially.
inline constexpr uint32_t merge_usual_bytes = offsetof(MergeKernargs, partial_lse_sequence_skip);

#define SLUICE_FIELD(type, kind, name) KernargField{#name, KernargKind::kind, offsetof(MergeKernargs, name)},
inline constexpr std::array merge_kernarg_fields = {SLUICE_MERGE_KERNARGS(SLUICE_FIELD)};
#undef SLUICE_FIELD

static_assert(kernargs_are_packed(merge_kernarg_fields, sizeof(MergeKernargs)));
// Distances of all parts follow one another.
static_assert(offsetof(MergeKernargs, partial_lse_distance_0) - offsetof(MergeKernargs, partial_distance_0) ==
              merge_most_listed_parts * sizeof(int64_t));
static_assert(sizeof(MergeKernargs) - offsetof(MergeKernargs, partial_lse_distance_0) ==
              merge_most_listed_parts * sizeof(int64_t));
// The first that is not needed at once.
static_assert(offsetof(MergeKernargs, sink_logits) == merge_preloaded_bytes);

} // namespace sluice::package

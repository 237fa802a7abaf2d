//===- cache_op_kernargs.h - the kernel arguments of the cache operations -------------------------------===//
//
// Tables as in kernargs.h, for the kernels of the cache operations: append writes rows into a paged cache,
// copy moves rows between pages or out of them, merge combines results over splits of the keys.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "package/kernargs.h"

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

/// In an append_step: the lanes of the longest row, each with this many chunks.
inline constexpr uint32_t step_most_lanes = 64, step_chunks_of_lane = 2;
inline constexpr uint32_t step_most_row_elements =
    step_most_lanes * step_chunks_of_lane * cache_op_chunk_elements;

/// The sections of an append_step.
enum class StepSection : uint32_t { k = 0, v = 1, q = 2 };

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
//
// For K and V each, grid z = 0 and 1 (prefix k_ or v_; the kernel finds both at the same distance):
//   rows, cache           new rows, and their destination
//   scale                 null: values are stored as they are; else they are divided by
//                         scale[head * scale_stride]
//   pack_stride           between packs of pack_chunks chunks; without x-packing a head's row is one pack
//   chunks, head_chunks   of all heads, and of one
//
// slots ... page_starts   as in sluice_append; page_source selects those in use
// page_table_entries      of a sequence in a block_table. A row stores nothing if its page is not among them,
//                         or, for csr_table, not between two starts
// page_count              nor if the page's number, unsigned, is not below this
// page_magic, page_shift  divide by page_size
// search_steps            2^search_steps > batch + 1: halvings until a row's sequence is found
// lanes_log2              lanes for a row of one token; also gives the rows that a workgroup processes at a
//                         time
// token_step, chunk_step  tokens and chunks that the grid processes at a time
//
// Grid, in workgroups: x = rows of tokens, y = chunks of a token, z = 2, or 1 without V.
#define SLUICE_APPEND_SIDE_WIDE(FIELD, side)                                                                 \
  FIELD(uint64_t, pointer, side##rows)                                                                       \
  FIELD(uint64_t, pointer, side##cache)                                                                      \
  FIELD(uint64_t, pointer, side##scale)                                                                      \
  FIELD(int64_t, i64, side##token_stride)                                                                    \
  FIELD(int64_t, i64, side##head_stride)                                                                     \
  FIELD(int64_t, i64, side##cache_page_stride)                                                               \
  FIELD(int64_t, i64, side##cache_row_stride)                                                                \
  FIELD(int64_t, i64, side##cache_head_stride)                                                               \
  FIELD(int64_t, i64, side##cache_pack_stride)
#define SLUICE_APPEND_SIDE_NARROW(FIELD, side)                                                               \
  FIELD(uint32_t, i32, side##chunks)                                                                         \
  FIELD(uint32_t, i32, side##head_chunks)                                                                    \
  FIELD(uint32_t, i32, side##head_magic)                                                                     \
  FIELD(uint32_t, i32, side##head_shift)                                                                     \
  FIELD(uint32_t, i32, side##pack_chunks)                                                                    \
  FIELD(uint32_t, i32, side##pack_magic)                                                                     \
  FIELD(uint32_t, i32, side##pack_shift)                                                                     \
  FIELD(uint32_t, i32, side##scale_stride)
#define SLUICE_APPEND_PLACES_WIDE(FIELD)                                                                     \
  FIELD(uint64_t, pointer, slots)                                                                            \
  FIELD(uint64_t, pointer, starts)                                                                           \
  FIELD(uint64_t, pointer, kv_lengths)                                                                       \
  FIELD(uint64_t, pointer, page_table)                                                                       \
  FIELD(uint64_t, pointer, page_starts)                                                                      \
  FIELD(int64_t, i64, page_table_stride)                                                                     \
  FIELD(int64_t, i64, page_table_entries)                                                                    \
  FIELD(uint64_t, i64, page_count)                                                                           \
  FIELD(uint64_t, i64, page_magic)
#define SLUICE_APPEND_PLACES_NARROW(FIELD)                                                                   \
  FIELD(uint32_t, i32, page_shift)                                                                           \
  FIELD(uint32_t, i32, page_size)                                                                            \
  FIELD(uint32_t, i32, page_source)                                                                          \
  FIELD(uint32_t, i32, page_index_64)                                                                        \
  FIELD(uint32_t, i32, batch)                                                                                \
  FIELD(uint32_t, i32, search_steps)
#define SLUICE_APPEND_KERNARGS(FIELD)                                                                        \
  SLUICE_APPEND_SIDE_WIDE(FIELD, k_)                                                                         \
  SLUICE_APPEND_SIDE_WIDE(FIELD, v_)                                                                         \
  SLUICE_APPEND_PLACES_WIDE(FIELD)                                                                           \
  FIELD(uint64_t, pointer, rotary)                                                                           \
  FIELD(uint64_t, pointer, positions)                                                                        \
  FIELD(int64_t, i64, rotary_stride)                                                                         \
  SLUICE_APPEND_SIDE_NARROW(FIELD, k_)                                                                       \
  SLUICE_APPEND_SIDE_NARROW(FIELD, v_)                                                                       \
  SLUICE_APPEND_PLACES_NARROW(FIELD)                                                                         \
  FIELD(uint32_t, i32, tokens)                                                                               \
  FIELD(uint32_t, i32, lanes_log2)                                                                           \
  FIELD(uint32_t, i32, token_step)                                                                           \
  FIELD(uint32_t, i32, chunk_step)                                                                           \
  FIELD(uint32_t, i32, rotary_dim)                                                                           \
  FIELD(uint32_t, i32, rotary_pairs)

// A copy has row n of page p at p * page_stride + n * row_stride, in its source and its target. Rows are all
// rows of the pages, page by page; or those of a gather's output, which is one page.
//
// For K and V each, as in an append:
//   source, target          rows of pages
//   scale                   null, or of a row of the source: F16 and BF16 are divided by it, types of a byte
//                           are multiplied. Of U4 the scales of a row's groups, of F16
//   zeros                   of U4: null, or what is subtracted from the numbers of a group; else 8
//   chunks, head_chunks, source_pack_chunks, target_pack_chunks   chunks of 8 elements of the kernel's types;
//                           of kernels that copy blocks, pieces
//   group_chunks_log2       2 or 3: chunks of a group of U4
//   piece_bytes             2, 4, 8 or 16
//
// Strides of a source in blocks, and both of kernels that copy blocks, count bytes.
//
// pairs                   of page numbers: source and target
// starts                  of the sequences' rows in the output
// kv_lengths ... page_source   as in an append; first_keys may be null
// lanes_log2, row_step, chunk_step   as in an append
//
// Grid as in an append.
#define SLUICE_COPY_SIDE_WIDE(FIELD, side)                                                                   \
  FIELD(uint64_t, pointer, side##source)                                                                     \
  FIELD(uint64_t, pointer, side##target)                                                                     \
  FIELD(uint64_t, pointer, side##scale)                                                                      \
  FIELD(uint64_t, pointer, side##zeros)                                                                      \
  FIELD(int64_t, i64, side##scale_page_stride)                                                               \
  FIELD(int64_t, i64, side##scale_row_stride)                                                                \
  FIELD(int64_t, i64, side##scale_head_stride)                                                               \
  FIELD(int64_t, i64, side##source_page_stride)                                                              \
  FIELD(int64_t, i64, side##source_row_stride)                                                               \
  FIELD(int64_t, i64, side##source_head_stride)                                                              \
  FIELD(int64_t, i64, side##source_pack_stride)                                                              \
  FIELD(int64_t, i64, side##target_page_stride)                                                              \
  FIELD(int64_t, i64, side##target_row_stride)                                                               \
  FIELD(int64_t, i64, side##target_head_stride)                                                              \
  FIELD(int64_t, i64, side##target_pack_stride)
#define SLUICE_COPY_SIDE_NARROW(FIELD, side)                                                                 \
  FIELD(uint32_t, i32, side##chunks)                                                                         \
  FIELD(uint32_t, i32, side##head_chunks)                                                                    \
  FIELD(uint32_t, i32, side##head_magic)                                                                     \
  FIELD(uint32_t, i32, side##head_shift)                                                                     \
  FIELD(uint32_t, i32, side##source_pack_chunks)                                                             \
  FIELD(uint32_t, i32, side##source_pack_magic)                                                              \
  FIELD(uint32_t, i32, side##source_pack_shift)                                                              \
  FIELD(uint32_t, i32, side##target_pack_chunks)                                                             \
  FIELD(uint32_t, i32, side##target_pack_magic)                                                              \
  FIELD(uint32_t, i32, side##target_pack_shift)                                                              \
  FIELD(uint32_t, i32, side##group_chunks_log2)                                                              \
  FIELD(uint32_t, i32, side##piece_bytes)
#define SLUICE_COPY_KERNARGS(FIELD)                                                                          \
  SLUICE_COPY_SIDE_WIDE(FIELD, k_)                                                                           \
  SLUICE_COPY_SIDE_WIDE(FIELD, v_)                                                                           \
  FIELD(uint64_t, pointer, pairs)                                                                            \
  FIELD(uint64_t, pointer, starts)                                                                           \
  FIELD(uint64_t, pointer, kv_lengths)                                                                       \
  FIELD(uint64_t, pointer, first_keys)                                                                       \
  FIELD(uint64_t, pointer, page_table)                                                                       \
  FIELD(uint64_t, pointer, page_starts)                                                                      \
  FIELD(int64_t, i64, page_table_stride)                                                                     \
  FIELD(int64_t, i64, page_table_entries)                                                                    \
  FIELD(uint64_t, i64, page_count)                                                                           \
  FIELD(uint64_t, i64, page_magic)                                                                           \
  FIELD(uint64_t, i64, rows)                                                                                 \
  FIELD(uint64_t, i64, row_step)                                                                             \
  SLUICE_COPY_SIDE_NARROW(FIELD, k_)                                                                         \
  SLUICE_COPY_SIDE_NARROW(FIELD, v_)                                                                         \
  FIELD(uint32_t, i32, page_shift)                                                                           \
  FIELD(uint32_t, i32, page_size)                                                                            \
  FIELD(uint32_t, i32, page_source)                                                                          \
  FIELD(uint32_t, i32, page_index_64)                                                                        \
  FIELD(uint32_t, i32, batch)                                                                                \
  FIELD(uint32_t, i32, search_steps)                                                                         \
  FIELD(uint32_t, i32, lanes_log2)                                                                           \
  FIELD(uint32_t, i32, chunk_step)

// append_step appends for calls that also norm rows, rotate Q or read tails. It has three sections: K,
// V and Q (prefix k_, v_ and q_, all at the same distance). A row is that of one token and one head; its
// lanes are a power of two, at most a wave, and each has up to two chunks, a rotated one with its partner.
//
//   rows, tail            the first body_chunks chunks of a row, and the others
//   norm                  null, or the weights of a norm of those first chunks
//   out                   a cache; for Q one page, whose rows are tokens. Strides of U4 and of ggml's types
//                         count bytes
//   scale, scale_source   null, or where the scale of a page, row and head is; a ScaleSource. Of U4 the
//                         scales of the groups of a row, in F16
//   zeros                 null, or where the numbers to subtract are, as scales of U4
//   row_count, heads      of all tokens, and of one
//   lane_chunks           lanes that have a chunk: lane n < rotary_half has the chunks rotary_first + n and
//                         rotary_first + n + rotary_half, which are rotated; lane rotary_half + n has n and
//                         n + (lane_chunks - rotary_half) of the others
//   first_group, groups   the workgroups of the section, which each process 256 >> lanes_log2 rows at a time
//   row_inverse           1 / elements of a normed row
//
// rotary, rotary_sin      cosines and sines, whose type is rotary_type, a sluice_dtype
// modes                   bits of StepMode
// v_pack_log2, v_pack_mask  with step_v_columns: row r of a page is number r & v_pack_mask of pack
//                         r >> v_pack_log2, and v_out_row_stride is between packs
//
// Grid, in workgroups: x = the sections one after another.
#define SLUICE_STEP_SECTION_WIDE(FIELD, section)                                                             \
  FIELD(uint64_t, pointer, section##rows)                                                                    \
  FIELD(uint64_t, pointer, section##tail)                                                                    \
  FIELD(uint64_t, pointer, section##norm)                                                                    \
  FIELD(uint64_t, pointer, section##out)                                                                     \
  FIELD(uint64_t, pointer, section##scale)                                                                   \
  FIELD(int64_t, i64, section##token_stride)                                                                 \
  FIELD(int64_t, i64, section##head_stride)                                                                  \
  FIELD(int64_t, i64, section##tail_token_stride)                                                            \
  FIELD(int64_t, i64, section##tail_head_stride)                                                             \
  FIELD(int64_t, i64, section##out_page_stride)                                                              \
  FIELD(int64_t, i64, section##out_row_stride)                                                               \
  FIELD(int64_t, i64, section##out_head_stride)                                                              \
  FIELD(int64_t, i64, section##out_pack_stride)                                                              \
  FIELD(int64_t, i64, section##scale_page_stride)                                                            \
  FIELD(int64_t, i64, section##scale_row_stride)                                                             \
  FIELD(int64_t, i64, section##scale_head_stride)
#define SLUICE_STEP_SECTION_NARROW(FIELD, section)                                                           \
  FIELD(uint32_t, i32, section##row_count)                                                                   \
  FIELD(uint32_t, i32, section##heads)                                                                       \
  FIELD(uint32_t, i32, section##heads_magic)                                                                 \
  FIELD(uint32_t, i32, section##heads_shift)                                                                 \
  FIELD(uint32_t, i32, section##chunks)                                                                      \
  FIELD(uint32_t, i32, section##body_chunks)                                                                 \
  FIELD(uint32_t, i32, section##lane_chunks)                                                                 \
  FIELD(uint32_t, i32, section##lanes_log2)                                                                  \
  FIELD(uint32_t, i32, section##rotary_half)                                                                 \
  FIELD(uint32_t, i32, section##first_group)                                                                 \
  FIELD(uint32_t, i32, section##groups)                                                                      \
  FIELD(uint32_t, i32, section##pack_chunks)                                                                 \
  FIELD(uint32_t, i32, section##pack_magic)                                                                  \
  FIELD(uint32_t, i32, section##pack_shift)                                                                  \
  FIELD(uint32_t, i32, section##scale_source)                                                                \
  FIELD(float, f32, section##row_inverse)
#define SLUICE_STEP_KERNARGS(FIELD)                                                                          \
  SLUICE_STEP_SECTION_WIDE(FIELD, k_)                                                                        \
  SLUICE_STEP_SECTION_WIDE(FIELD, v_)                                                                        \
  SLUICE_STEP_SECTION_WIDE(FIELD, q_)                                                                        \
  SLUICE_APPEND_PLACES_WIDE(FIELD)                                                                           \
  FIELD(uint64_t, pointer, rotary)                                                                           \
  FIELD(uint64_t, pointer, rotary_sin)                                                                       \
  FIELD(uint64_t, pointer, positions)                                                                        \
  FIELD(int64_t, i64, rotary_stride)                                                                         \
  SLUICE_STEP_SECTION_NARROW(FIELD, k_)                                                                      \
  SLUICE_STEP_SECTION_NARROW(FIELD, v_)                                                                      \
  SLUICE_STEP_SECTION_NARROW(FIELD, q_)                                                                      \
  SLUICE_APPEND_PLACES_NARROW(FIELD)                                                                         \
  FIELD(uint32_t, i32, rotary_first)                                                                         \
  FIELD(uint32_t, i32, rotary_type)                                                                          \
  FIELD(uint32_t, i32, modes)                                                                                \
  FIELD(float, f32, norm_epsilon)                                                                            \
  FIELD(uint64_t, pointer, k_zeros)                                                                          \
  FIELD(uint64_t, pointer, v_zeros)                                                                          \
  FIELD(uint64_t, pointer, q_zeros)                                                                          \
  FIELD(uint32_t, i32, v_pack_log2)                                                                          \
  FIELD(uint32_t, i32, v_pack_mask)

// partial ... sink_logits  as in sluice_merge; lse and sink_logits may be null
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
// Without sequence_tokens, sluice_merge has one sequence.
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
struct AppendKernargs {
  SLUICE_APPEND_KERNARGS(SLUICE_FIELD)
};
struct CopyKernargs {
  SLUICE_COPY_KERNARGS(SLUICE_FIELD)
};
struct StepKernargs {
  SLUICE_STEP_KERNARGS(SLUICE_FIELD)
};
struct MergeKernargs {
  SLUICE_MERGE_KERNARGS(SLUICE_FIELD)
};
#undef SLUICE_FIELD

/// The arguments after these are of merge_specially.
inline constexpr uint32_t merge_usual_bytes = offsetof(MergeKernargs, partial_lse_sequence_skip);

#define SLUICE_FIELD(type, kind, name) KernargField{#name, KernargKind::kind, offsetof(AppendKernargs, name)},
inline constexpr std::array append_kernarg_fields = {SLUICE_APPEND_KERNARGS(SLUICE_FIELD)};
#undef SLUICE_FIELD
#define SLUICE_FIELD(type, kind, name) KernargField{#name, KernargKind::kind, offsetof(CopyKernargs, name)},
inline constexpr std::array copy_kernarg_fields = {SLUICE_COPY_KERNARGS(SLUICE_FIELD)};
#undef SLUICE_FIELD
#define SLUICE_FIELD(type, kind, name) KernargField{#name, KernargKind::kind, offsetof(StepKernargs, name)},
inline constexpr std::array step_kernarg_fields = {SLUICE_STEP_KERNARGS(SLUICE_FIELD)};
#undef SLUICE_FIELD
#define SLUICE_FIELD(type, kind, name) KernargField{#name, KernargKind::kind, offsetof(MergeKernargs, name)},
inline constexpr std::array merge_kernarg_fields = {SLUICE_MERGE_KERNARGS(SLUICE_FIELD)};
#undef SLUICE_FIELD

static_assert(kernargs_are_packed(append_kernarg_fields, sizeof(AppendKernargs)));
static_assert(kernargs_are_packed(copy_kernarg_fields, sizeof(CopyKernargs)));
static_assert(kernargs_are_packed(step_kernarg_fields, sizeof(StepKernargs)));
static_assert(kernargs_are_packed(merge_kernarg_fields, sizeof(MergeKernargs)));
// Distances of all parts follow one another.
static_assert(offsetof(MergeKernargs, partial_lse_distance_0) - offsetof(MergeKernargs, partial_distance_0) ==
              merge_most_listed_parts * sizeof(int64_t));
static_assert(sizeof(MergeKernargs) - offsetof(MergeKernargs, partial_lse_distance_0) ==
              merge_most_listed_parts * sizeof(int64_t));
// A section is found by its number.
static_assert(offsetof(StepKernargs, q_rows) == 2 * offsetof(StepKernargs, v_rows) &&
              offsetof(StepKernargs, q_chunks) - offsetof(StepKernargs, v_chunks) ==
                  offsetof(StepKernargs, v_chunks) - offsetof(StepKernargs, k_chunks));
// The first that is not needed at once.
static_assert(offsetof(MergeKernargs, sink_logits) == merge_preloaded_bytes);

} // namespace sluice::package

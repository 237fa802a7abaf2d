/*===- merge.h - results over parts of the keys, the C ABI --------------------------------------------===
 *
 * Attention over splits of the keys, computed by several calls or on several devices, becomes one result.
 * Pointers as in sluice/attention.h.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *===------------------------------------------------------------------------------------------------===*/
#ifndef SLUICE_MERGE_H
#define SLUICE_MERGE_H

/**
 * @file
 * @brief Merges of attention over parts of the keys.
 */

#include <sluice/attention.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Bits of sluice_merge_args::flags. An unknown bit is refused with SLUICE_NEWER_STRUCT. */
enum sluice_merge_flag {
  /** An LSE of +infinity in parts also marks a part that does not count, as in FlashAttention's results
     for rows without keys. */
  SLUICE_MERGE_INFINITY_IS_EMPTY = 1 << 0
};

/**
 * Results over parts of the keys. Part of sluice_merge_args: it never grows.
 *
 *     o [part][token][head][head_dim]   lse [part][token][head], F32
 *
 * - Parts may be in any order and place: stride[0] may be negative, and with o_list and lse_list, host arrays
 * of `count` device pointers that the call copies, part p is at o_list[p] and lse_list[p]. Then data and
 * stride[0] of o and lse are 0, and there are at most 16 parts.
 */
typedef struct sluice_parts {
  uint32_t type;               /**< sluice_dtype of o: F32, F16 or BF16; required. */
  int32_t count;               /**< Parts, from 1 to 65536. */
  sluice_tensor o;             /**< Normalised results. */
  sluice_tensor lse;           /**< stride[3] has no meaning. */
  const void *const *o_list;   /**< Host memory, [count]; nullable. */
  const void *const *lse_list; /**< Given with o_list. */
  int64_t lse_sequence_stride; /**< With sequence_tokens: from a sequence's first token to the next one's. */
} sluice_parts;

/**
 * One merge.
 *
 *     o [0][token][head][head_dim]   lse [0][token][head], F32
 *
 *     LSE = ln (sum over parts of exp(parts.lse[p]) + exp(sink))
 *     O   = sum over parts of exp(parts.lse[p] - LSE) * parts.o[p]
 *
 * A part with an LSE of -infinity does not count, even if its row holds NaN. If no part counts, O = 0 and LSE
 * is -infinity, or the sink. docs/concepts/cache_operations.md has the rest.
 *
 * - o may be the memory of one of the parts, and lse that of its LSEs, with the same types and strides.
 * - o_format.type is parts.type, or with parts of F32 any of F16, BF16 and E4M3FNUZ, which alone has a scale.
 * - LSEs that are [sequence][head][token] in memory need sequence_tokens, which divides tokens: token
 * s * sequence_tokens + i has its LSEs at s * lse_sequence_stride + i * stride[1].
 */
typedef struct sluice_merge_args {
  uint32_t struct_size;        /**< sizeof(sluice_merge_args). */
  uint32_t flags;              /**< sluice_merge_flag bits. */
  int32_t tokens;              /**< Rows. */
  int32_t heads;               /**< Heads; required. */
  int32_t head_dim;            /**< Elements of a row, a multiple of 8; required. */
  uint32_t lse_base;           /**< sluice_lse of all LSEs: LN or LOG2; required. */
  sluice_format o_format;      /**< Rows of o. */
  sluice_parts parts;          /**< What is merged. */
  sluice_tensor o;             /**< Result; stride[0] has no meaning. */
  sluice_tensor lse;           /**< Its LSE; all zero: not wanted. */
  int64_t lse_sequence_stride; /**< As in sluice_parts. */
  int32_t sequence_tokens;     /**< Tokens of each sequence; 0: LSEs need only strides. */
  uint32_t reserved;           /**< Must be 0. */
  const float *sinks;          /**< [heads], to base e, counted once; nullable. */
  const float *o_scale;        /**< [1] or [heads], by o_format.scale_kind: o is divided by it. */
} sluice_merge_args;

/** Enqueues a merge. Rules and return values as for sluice_cache_append. */
SLUICE_API sluice_status sluice_attention_merge(sluice_context *context, const sluice_merge_args *args,
                                                const sluice_launch *launch,
                                                sluice_error *error) SLUICE_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif

/*===- cache.h - appends, copies and gathers, the C ABI -----------------------------------------------===
 *
 * What an engine does with a KV cache between attention calls. Each operation is enqueued on a stream and
 * needs no plan: each takes the same sluice_kv that attention reads. Pointers as in sluice/attention.h.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *===------------------------------------------------------------------------------------------------===*/
#ifndef SLUICE_CACHE_H
#define SLUICE_CACHE_H

/**
 * @file
 * @brief Cache operations: append, copy and gather.
 */

#include <sluice/attention.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------- append --- */

/** Which elements of a row a rotation pairs, counted from the first that is rotated. */
enum sluice_rotary_style {
  SLUICE_ROTARY_HALVES = 0, /**< e and e + dim / 2, as GPT-NeoX and Llama do. */
  SLUICE_ROTARY_PAIRS = 1   /**< 2e and 2e + 1, as GPT-J does. */
};

/**
 * A rotation of rows before they are stored (RoPE).
 *
 * Elements first to first + dim - 1 of a row are rotated: pair number e (x, y) becomes (x cos - y sin,
 * y cos + x sin), in F32, with cos = cosines[p * stride + e] and sin = sines[p * stride + e], where p is the
 * row's position.
 */
typedef struct sluice_rotation {
  uint32_t struct_size; /**< sizeof(sluice_rotation). */
  uint32_t style;       /**< sluice_rotary_style. */
  uint32_t type;        /**< sluice_dtype of the tables: F32, F16 or BF16; required. */
  int32_t dim; /**< Elements that are rotated; a multiple of 16, where tables of F32 are all that a call asks
                  for even. */
  int32_t first;       /**< The first of them; a multiple of 8. */
  uint32_t reserved;   /**< Must be 0. */
  const void *cosines; /**< [positions][dim / 2]; required. */
  const void *sines;   /**< The same; NULL: at cosines[p * stride + dim / 2]. */
  int64_t stride;      /**< Elements from one position to the next; at least what a position has. */
} sluice_rotation;

/** A norm of rows, before they are rotated: x[e] * weights[e] / sqrt(mean(x^2) + epsilon), in F32. */
typedef struct sluice_norm {
  uint32_t struct_size; /**< sizeof(sluice_norm). */
  uint32_t type;        /**< sluice_dtype of the weights: that of the rows, or F32; required. */
  const void *weights;  /**< [elements of a row, without its tail]; required. */
  float epsilon;        /**< Finite, not negative. */
  uint32_t reserved;    /**< Must be 0. */
} sluice_norm;

/**
 * New rows of Q, which get the norm and the rotation in the same launch as those of K.
 *
 *     q [0][tokens][heads][head_dim_qk - tail_dim]   q_out [0][tokens][heads][head_dim_qk]
 */
typedef struct sluice_append_q {
  uint32_t struct_size;    /**< sizeof(sluice_append_q). */
  int32_t heads;           /**< Query heads; required. */
  sluice_tensor q;         /**< New rows. */
  sluice_tensor out;       /**< Where they go; may be q, with the same strides. */
  sluice_tensor tail;      /**< [0][tokens][heads][tail_dim]; all zero: rows of q are whole. */
  const sluice_norm *norm; /**< Nullable. */
} sluice_append_q;

/**
 * New rows of K and V, and the cache that they go to.
 *
 *     k [0][tokens][kv_heads][head_dim_qk - tail_dim]     v [0][tokens][kv_heads][head_dim_v]
 *
 * Row t goes to slot slots[t], or is a new row of the sequence b with starts[b] <= t < starts[b + 1] and
 * becomes its key lengths[b] - starts[b + 1] + t: lengths include the new keys.
 *
 * - Exactly one of slots and starts is given. With slots, batch, starts, lengths and pages are all zero.
 * - tail_dim and k_tail are given together.
 */
typedef struct sluice_append_args {
  uint32_t struct_size;            /**< sizeof(sluice_append_args). */
  uint32_t source_type;            /**< sluice_dtype of k and v: F16 or BF16; required. */
  int32_t tokens;                  /**< Rows of k and v. */
  int32_t tail_dim;                /**< Last elements of a row of K, which come from k_tail; 0: none. */
  sluice_tensor k;                 /**< New rows. */
  sluice_tensor v;                 /**< New rows; all zero with SLUICE_KV_V_IN_K. */
  sluice_tensor k_tail;            /**< [0][tokens][kv_heads][tail_dim]; a stride of 0 repeats one tail. */
  const sluice_kv *kv;             /**< Where they go; a cache in pages; required. */
  const int64_t *slots;            /**< [tokens]: page * page_size + row; negative: skipped. */
  int32_t batch;                   /**< With starts: sequences. */
  uint32_t reserved;               /**< Must be 0. */
  const int32_t *starts;           /**< [batch + 1]: rows of k before each sequence's first. */
  const int32_t *lengths;          /**< [batch]: keys of each sequence, new ones included. */
  sluice_pages pages;              /**< With starts: the pages of the sequences. */
  const int32_t *positions;        /**< [tokens]; NULL: the key's number, with starts. */
  const sluice_rotation *rotation; /**< Nullable. */
  const sluice_norm *k_norm;       /**< Nullable. */
  const sluice_append_q *q;        /**< Nullable. */
} sluice_append_args;

/**
 * Enqueues an append on launch->stream, the default stream if launch is NULL, and returns without waiting.
 * Needs no workspace. A context's first call for a kernel loads it, which is not legal during stream capture;
 * after sluice_attention_preload with NULL the rules of sluice_attention_run hold.
 *
 * Rows are normed and rotated in F32, then stored: an FP8 or I8 cache has x / scale, to nearest even, limited
 * to the type's largest number. Scales per tensor, head and page are read; those per token and group are
 * computed and stored. docs/concepts/cache_operations.md has each step.
 *
 * A row without a place (a negative slot; a page that is negative, not below kv->page_count, or past the
 * sequence's entries) is skipped. Of two rows for one place, one is stored.
 * @return as sluice_attention_run
 */
SLUICE_API sluice_status sluice_cache_append(sluice_context *context, const sluice_append_args *args,
                                             const sluice_launch *launch,
                                             sluice_error *error) SLUICE_NOEXCEPT;

/**
 * Performs an append on the host with plain loops; all pointers are to host memory. What a device would skip
 * is refused, except negative slots and rows of no sequence, and then nothing is stored.
 * @return SLUICE_OK: the cache is written; SLUICE_INVALID_ARGUMENT with the array's element as the field;
 *         SLUICE_UNSUPPORTED; SLUICE_NEWER_STRUCT; SLUICE_OUT_OF_MEMORY
 */
SLUICE_API sluice_status sluice_cache_append_reference(const sluice_append_args *args,
                                                       sluice_error *error) SLUICE_NOEXCEPT;

/* --------------------------------------------------------------------------------- copies and gathers --- */

/** Pages of a cache, to be copied to other pages, or to another cache. */
typedef struct sluice_copy_args {
  uint32_t struct_size;    /**< sizeof(sluice_copy_args). */
  uint32_t pairs_64;       /**< 1 if pairs are int64_t; 0: int32_t. */
  const sluice_kv *source; /**< Where the pages are; required. */
  const sluice_kv *target; /**< Where they go; required; may be the same. */
  const void *pairs;       /**< [pair_count][2]: page of the source, page of the target; NULL: all pages. */
  int64_t pair_count;      /**< Pairs. */
} sluice_copy_args;

/**
 * Enqueues a copy of all rows of the pages. Rules and return values as for sluice_cache_append. Equal types
 * are copied bit by bit, scales too; F16 and BF16 become E4M3FNUZ, and what caches store becomes F16 or BF16.
 * A pair with a number that is not a page is skipped.
 */
SLUICE_API sluice_status sluice_cache_copy(sluice_context *context, const sluice_copy_args *args,
                                           const sluice_launch *launch, sluice_error *error) SLUICE_NOEXCEPT;

/** Copies on the host; all pointers are to host memory. Return values as for an append's reference. */
SLUICE_API sluice_status sluice_cache_copy_reference(const sluice_copy_args *args,
                                                     sluice_error *error) SLUICE_NOEXCEPT;

/** Keys of a cache, to be gathered in contiguous rows: key first_keys[b] + j becomes row starts[b] + j. */
typedef struct sluice_gather_args {
  uint32_t struct_size;      /**< sizeof(sluice_gather_args). */
  int32_t batch;             /**< Sequences. */
  const sluice_kv *source;   /**< A cache in pages; required. */
  sluice_pages pages;        /**< The pages of the sequences. */
  const int32_t *lengths;    /**< [batch]: keys of each sequence; required. */
  const int32_t *first_keys; /**< [batch], nullable: the first key to gather; NULL: 0. */
  const sluice_kv *target;   /**< Tensors, [0][row][kv_heads][head_dim]; required. */
  const int32_t *starts;     /**< [batch + 1]: rows of the target before each sequence's first; required. */
  int32_t tokens;            /**< Rows of the target. */
  uint32_t reserved;         /**< Must be 0. */
} sluice_gather_args;

/**
 * Enqueues a gather. Rules and return values as for sluice_cache_append; types as for a copy. Keys in pages
 * that do not exist read as zeros; rows of the target to which no key belongs are not written.
 */
SLUICE_API sluice_status sluice_cache_gather(sluice_context *context, const sluice_gather_args *args,
                                             const sluice_launch *launch,
                                             sluice_error *error) SLUICE_NOEXCEPT;

/** Gathers on the host; all pointers are to host memory. Return values as for an append's reference. */
SLUICE_API sluice_status sluice_cache_gather_reference(const sluice_gather_args *args,
                                                       sluice_error *error) SLUICE_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif

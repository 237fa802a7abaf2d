/*===- make.h - short ways to fill the structs of attention.h and cache.h -----------------------------===
 *
 * Inline functions in C99, compiled into the caller: they are not part of the ABI. Each returns a struct with
 * struct_size set and everything else that it does not mention 0, which is the default.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *===------------------------------------------------------------------------------------------------===*/
#ifndef SLUICE_MAKE_H
#define SLUICE_MAKE_H

/**
 * @file
 * @brief Short ways to fill structs.
 */

#include <sluice/sluice.h>

#include <stddef.h>

/** @cond internal */
/* C++ warns of members that C's {0} leaves to themselves, and C before C23 has no {}. */
#ifdef __cplusplus
#define SLUICE_ZEROS                                                                                         \
  {                                                                                                          \
  }
#else
#define SLUICE_ZEROS {0}
#endif
/** @endcond */

/* ------------------------------------------------------------------------------------------ devices --- */

/** A device by its ordinal: SLUICE_DEVICE_HIP or SLUICE_DEVICE_EMULATED. */
static inline sluice_context_desc sluice_make_context_desc(uint32_t kind, int32_t ordinal) {
  sluice_context_desc desc = SLUICE_ZEROS;
  desc.struct_size = sizeof desc;
  desc.kind = kind;
  desc.device_ordinal = ordinal;
  return desc;
}

/* ------------------------------------------------------------------------------------------ tensors --- */

/** A tensor with these strides, in elements. */
static inline sluice_tensor sluice_make_tensor(void *data, int64_t s0, int64_t s1, int64_t s2, int64_t s3) {
  sluice_tensor tensor;
  tensor.data = data;
  tensor.stride[0] = s0;
  tensor.stride[1] = s1;
  tensor.stride[2] = s2;
  tensor.stride[3] = s3;
  return tensor;
}

/** Contiguous [batch][token][head][dim]. */
static inline sluice_tensor sluice_bshd(void *data, int64_t tokens, int64_t heads, int64_t dim) {
  return sluice_make_tensor(data, tokens * heads * dim, heads * dim, dim, 1);
}

/** Contiguous [batch][head][token][dim]. */
static inline sluice_tensor sluice_bhsd(void *data, int64_t tokens, int64_t heads, int64_t dim) {
  return sluice_make_tensor(data, tokens * heads * dim, dim, tokens * dim, 1);
}

/** Contiguous [token][head][dim]: sequences one after the other, found by starts, and new rows. */
static inline sluice_tensor sluice_packed(void *data, int64_t heads, int64_t dim) {
  return sluice_make_tensor(data, 0, heads * dim, dim, 1);
}

/** Contiguous [page][token][head][dim]. */
static inline sluice_tensor sluice_pages_nhd(void *data, int64_t page_size, int64_t heads, int64_t dim) {
  return sluice_bshd(data, page_size, heads, dim);
}

/** Contiguous [page][head][token][dim]. */
static inline sluice_tensor sluice_pages_hnd(void *data, int64_t page_size, int64_t heads, int64_t dim) {
  return sluice_bhsd(data, page_size, heads, dim);
}

/** Contiguous [page][head][dim / pack][token][pack]: x-packed K. */
static inline sluice_tensor sluice_pages_x_packed(void *data, int64_t page_size, int64_t heads, int64_t dim,
                                                  int64_t pack) {
  return sluice_make_tensor(data, heads * dim * page_size, pack, dim * page_size, page_size * pack);
}

/* ------------------------------------------------------------------------------------ keys and values --- */

/** K and V of one type and head dim, not in pages. */
static inline sluice_kv_format sluice_kv_tensors(uint32_t type, int32_t kv_heads, int32_t head_dim) {
  sluice_kv_format format = SLUICE_ZEROS;
  format.struct_size = sizeof format;
  format.kv_heads = kv_heads;
  format.head_dim_qk = format.head_dim_v = head_dim;
  format.k.type = format.v.type = type;
  return format;
}

/** K and V of one type and head dim in pages, found through a table [batch][pages]. */
static inline sluice_kv_format sluice_kv_pages(uint32_t type, int32_t kv_heads, int32_t head_dim,
                                               int32_t page_size) {
  sluice_kv_format format = sluice_kv_tensors(type, kv_heads, head_dim);
  format.page_size = page_size;
  format.page_table = SLUICE_PAGE_TABLE_BLOCK;
  return format;
}

/** The latent cache of MLA in pages: one KV head, whose first elements are V too. */
static inline sluice_kv_format sluice_kv_latent(uint32_t type, int32_t latent_dim, int32_t rotary_dim,
                                                int32_t page_size) {
  sluice_kv_format format = sluice_kv_pages(type, 1, latent_dim + rotary_dim, page_size);
  format.flags = SLUICE_KV_V_IN_K;
  format.head_dim_v = latent_dim;
  format.v.type = 0;
  return format;
}

/** Where K and V are. v is all zero for a latent cache. */
static inline sluice_kv sluice_make_kv(const sluice_kv_format *format, sluice_tensor k, sluice_tensor v) {
  sluice_kv kv = SLUICE_ZEROS;
  kv.struct_size = sizeof kv;
  kv.format = format;
  kv.k = k;
  kv.v = v;
  return kv;
}

/** Keys of sequences that all have `len` keys. */
static inline sluice_keys sluice_keys_of_equal(const sluice_kv *kv, int32_t len) {
  sluice_keys keys = SLUICE_ZEROS;
  keys.struct_size = sizeof keys;
  keys.kv = kv;
  keys.rows.max_len = len;
  return keys;
}

/** Keys of sequences one after the other; `starts` [batch + 1]. */
static inline sluice_keys sluice_keys_of_ragged(const sluice_kv *kv, const int32_t *starts, int32_t max_len) {
  sluice_keys keys = sluice_keys_of_equal(kv, max_len);
  keys.rows.starts = starts;
  return keys;
}

/** Keys in pages: `table` [batch][pages_per_sequence], `lengths` [batch]. */
static inline sluice_keys sluice_keys_of_pages(const sluice_kv *kv, const void *table,
                                               int64_t pages_per_sequence, const int32_t *lengths,
                                               int32_t max_len) {
  sluice_keys keys = sluice_keys_of_equal(kv, max_len);
  keys.rows.lengths = lengths;
  keys.pages.table = table;
  keys.pages.stride = pages_per_sequence;
  return keys;
}

/* -------------------------------------------------------------------------------- problems and calls --- */

/** Attention with Q and O of one type; K and V as `kv` says, which must live as long as the struct. */
static inline sluice_attention sluice_make_attention(uint32_t type, int32_t q_heads,
                                                     const sluice_kv_format *kv) {
  sluice_attention attention = SLUICE_ZEROS;
  attention.struct_size = sizeof attention;
  attention.q_heads = q_heads;
  attention.q.type = attention.o.type = type;
  attention.kv = kv;
  return attention;
}

/** Bounds of calls: sequences, query rows per sequence, keys per sequence. */
static inline sluice_bounds sluice_make_bounds(int32_t batch, int32_t q_len, int32_t kv_len) {
  sluice_bounds bounds = SLUICE_ZEROS;
  bounds.batch = batch;
  bounds.q_len = q_len;
  bounds.kv_len = kv_len;
  return bounds;
}

/** Rows see no key after their own position; rows are the newest tokens. */
static inline sluice_mask sluice_causal_mask(void) {
  sluice_mask mask = SLUICE_ZEROS;
  mask.struct_size = sizeof mask;
  mask.flags = SLUICE_MASK_CAUSAL;
  return mask;
}

/** A call with one set of keys. Sequences have q_len rows each; args.rows says more if they have not. */
static inline sluice_attention_args sluice_make_call(int32_t batch, int32_t q_len, sluice_tensor q,
                                                     sluice_tensor o, const sluice_keys *keys) {
  sluice_attention_args args = SLUICE_ZEROS;
  args.struct_size = sizeof args;
  args.batch = batch;
  args.rows.max_len = q_len;
  args.q = q;
  args.o = o;
  args.keys = keys;
  args.key_sets = 1;
  return args;
}

/** An append of rows of K and V to slots of a cache. */
static inline sluice_append_args sluice_make_append(const sluice_kv *kv, uint32_t source_type, int32_t tokens,
                                                    sluice_tensor k, sluice_tensor v, const int64_t *slots) {
  sluice_append_args args = SLUICE_ZEROS;
  args.struct_size = sizeof args;
  args.source_type = source_type;
  args.tokens = tokens;
  args.k = k;
  args.v = v;
  args.kv = kv;
  args.slots = slots;
  return args;
}

/**
 * An append of rows of K and V to the sequences that `keys`, made by sluice_keys_of_pages, describes: the
 * lengths include the new keys, and attention can then take the same keys. `starts` [batch + 1].
 */
static inline sluice_append_args sluice_make_append_to_keys(const sluice_keys *keys, uint32_t source_type,
                                                            int32_t tokens, sluice_tensor k, sluice_tensor v,
                                                            int32_t batch, const int32_t *starts) {
  sluice_append_args args = sluice_make_append(keys->kv, source_type, tokens, k, v, NULL);
  args.batch = batch;
  args.starts = starts;
  args.lengths = keys->rows.lengths;
  args.pages = keys->pages;
  return args;
}

#undef SLUICE_ZEROS

#endif

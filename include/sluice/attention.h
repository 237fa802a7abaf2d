/*===- attention.h - attention calls, the C ABI -------------------------------------------------------===
 *
 * What is attended to (sluice_kv, sluice_keys), what is computed (sluice_attention), and one call of it
 * (sluice_attention_args). A dense call needs these structs only; each further feature is a struct of its
 * own behind a pointer that may be NULL.
 *
 * In this header every pointer inside of a struct is to device memory, except where its type is one of the
 * library's structs: those are in host memory, and are read while the call that takes them runs.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *===------------------------------------------------------------------------------------------------===*/
#ifndef SLUICE_ATTENTION_H
#define SLUICE_ATTENTION_H

/**
 * @file
 * @brief Attention: formats, keys, problems and calls.
 */

#include <sluice/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------------------- keys and values --- */

/** What shares a scale that numbers are multiplied with. */
enum sluice_scale_kind {
  SLUICE_SCALE_NONE = 0,       /**< Values are used as stored. */
  SLUICE_SCALE_PER_TENSOR = 1, /**< One scale. */
  SLUICE_SCALE_PER_HEAD = 2,   /**< One per head of the tensor. */
  SLUICE_SCALE_PER_TOKEN = 3,  /**< One per token and head; K and V only. */
  SLUICE_SCALE_PER_PAGE = 4,   /**< One per page and head; K and V in pages only. */
  SLUICE_SCALE_PER_GROUP = 5   /**< One F16 per scale_group elements of a row; U4 only, which has no other. */
};

/** How the numbers of a tensor are stored. Part of other structs: it never grows. */
typedef struct sluice_format {
  uint32_t type;        /**< sluice_dtype; required. */
  uint32_t scale_kind;  /**< sluice_scale_kind: what shares a scale. */
  int32_t scale_group;  /**< PER_GROUP: elements that share a scale, 32 or 64; else 0. */
  uint32_t zero_points; /**< PER_GROUP: 1 if each group also has a number to subtract; else 0. */
  /** Of K in pages: elements of a row per pack (x-packed K), a power of two from 8 up. Of V: tokens per pack
     of V by columns, a power of two from 8 up, or SLUICE_PACK_ALL. 0: rows are contiguous. */
  int32_t pack;
  uint32_t reserved; /**< Must be 0. */
} sluice_format;

/** A number for sluice_format::pack. */
enum sluice_pack {
  SLUICE_PACK_ALL = 1 << 30 /**< All tokens of a page, or of a sequence of dense tensors. */
};

/** How a paged KV cache names its pages. */
enum sluice_page_table_kind {
  SLUICE_PAGE_TABLE_NONE = 0,  /**< No pages. */
  SLUICE_PAGE_TABLE_BLOCK = 1, /**< [batch, pages] page numbers. */
  SLUICE_PAGE_TABLE_CSR = 2    /**< One list of page numbers, and where each sequence's begin. */
};

/** Bits of sluice_kv_format::flags. An unknown bit is refused with SLUICE_NEWER_STRUCT. */
enum sluice_kv_flag {
  SLUICE_KV_V_IN_K = 1 << 0,       /**< V is the first head_dim_v elements of each row of K. */
  SLUICE_KV_PAGE_INDEX_64 = 1 << 1 /**< Page tables hold int64_t instead of int32_t. */
};

/**
 * How keys and values are stored: all that a plan must know of them.
 *
 * - kv_heads, head_dim_qk, head_dim_v, k.type and v.type are required.
 * - With SLUICE_KV_V_IN_K, v is all zero, and head_dim_v at most head_dim_qk.
 * - page_size and page_table are both given, for a cache in pages, or both 0, for tensors.
 * - scale_kind PER_PAGE, a pack of k, and SLUICE_KV_PAGE_INDEX_64 need pages.
 */
typedef struct sluice_kv_format {
  uint32_t struct_size; /**< sizeof(sluice_kv_format). */
  uint32_t flags;       /**< sluice_kv_flag bits. */
  int32_t kv_heads;     /**< KV heads. */
  int32_t head_dim_qk;  /**< Elements of a row of K. */
  int32_t head_dim_v;   /**< Elements of a row of V. */
  int32_t page_size;    /**< Tokens per page; 0: not in pages. */
  uint32_t page_table;  /**< sluice_page_table_kind. */
  uint32_t reserved;    /**< Must be 0. */
  sluice_format k;      /**< Rows of K. */
  sluice_format v;      /**< Rows of V. */
} sluice_kv_format;

/**
 * The scales of K and V, if their formats have any.
 *
 *     PER_TENSOR   [1], strides without meaning            F32
 *     PER_HEAD     [head], strides without meaning         F32
 *     PER_TOKEN    found like the rows of K and V          F32; stride[3] has no meaning
 *     PER_PAGE     found like them                         F32; nor has stride[1]
 *     PER_GROUP    found like them, [..][group]            F16; stride[3] is 1
 */
typedef struct sluice_kv_scales {
  uint32_t struct_size;  /**< sizeof(sluice_kv_scales). */
  uint32_t reserved;     /**< Must be 0. */
  sluice_tensor k;       /**< Scales of K; all zero if its format has none. */
  sluice_tensor v;       /**< Scales of V; all zero if its format has none. */
  sluice_tensor k_zeros; /**< With zero points: what is subtracted, F16, with the strides of k; else zero. */
  sluice_tensor v_zeros; /**< The same for v. */
} sluice_kv_scales;

/**
 * K and V in memory: a paged cache, or tensors. Fill it once for each layer; attention, appends, copies and
 * gathers all take it.
 *
 *     tensors   [batch][token][kv_heads][head_dim], or with starts [0][row][kv_heads][head_dim]
 *     pages     [page][token of the page][kv_heads][head_dim]
 */
typedef struct sluice_kv {
  uint32_t struct_size;           /**< sizeof(sluice_kv). */
  uint32_t reserved;              /**< Must be 0. */
  const sluice_kv_format *format; /**< Required; that of the plan, where there is one. */
  sluice_tensor k;                /**< Keys. */
  sluice_tensor v;                /**< Values; all zero with SLUICE_KV_V_IN_K. */
  const sluice_kv_scales *scales; /**< NULL if neither format has scales. */
  int64_t page_count;             /**< Pages of the cache; keys in others read as zeros. 0: unknown. */
} sluice_kv;

/** Numbers that stand for something else where a member says so. */
enum sluice_special {
  SLUICE_PLAN_BOUND = -1, /**< The bound of the plan. */
  SLUICE_SHARED = -1      /**< A stride: all share one. */
};

/**
 * Where the rows of sequences, or their keys, are in a tensor. Part of other structs: it never grows.
 *
 * Sequence b has lengths[b] rows if given, else starts[b + 1] - starts[b] if given, else max_len. With starts
 * its first row is row starts[b] of the tensor, whose first dimension then has no meaning; else it is row 0
 * of [b].
 *
 * - max_len is at least the length of every sequence: what is beyond it is not seen. 0 means no rows; it is
 * refused if lengths or starts are given together with memory of rows: then it was forgotten.
 */
typedef struct sluice_rows {
  int32_t max_len;        /**< Rows of each sequence, or the most of any; or SLUICE_PLAN_BOUND. */
  uint32_t reserved;      /**< Must be 0. */
  const int32_t *starts;  /**< [batch + 1], nullable: rows before each sequence's first. */
  const int32_t *lengths; /**< [batch], nullable: rows of each sequence. */
  int64_t total;          /**< With starts: rows of the tensor; 0: unknown. */
} sluice_rows;

/**
 * Page tables. Part of other structs: it never grows. All zero if the format has no pages.
 *
 * The number of page n of sequence b is table[b * stride + n] for SLUICE_PAGE_TABLE_BLOCK, and
 * table[starts[b] + n] for CSR. Entries of KV head h are h * head_stride further.
 */
typedef struct sluice_pages {
  const void *table;     /**< int32_t, or int64_t with SLUICE_KV_PAGE_INDEX_64. */
  const int32_t *starts; /**< CSR, [batch + 1]; else NULL. */
  int64_t stride;        /**< BLOCK: entries from one sequence's first to the next one's, or SLUICE_SHARED. */
  int64_t head_stride;   /**< Entries from those of a KV head to the next one's; 0: heads share them. */
} sluice_pages;

/**
 * One set of keys that rows attend to.
 *
 * The first set of a call has the keys of each sequence. With SLUICE_ATTENTION_PREFIXES a second one has
 * keys that groups of rows see before those: rows group_starts[p] to group_starts[p + 1] - 1 of q see all
 * keys of group p, which are found as those of a sequence p would be. Rows outside of the groups see none.
 */
typedef struct sluice_keys {
  uint32_t struct_size; /**< sizeof(sluice_keys). */
  int32_t groups;       /**< Second set: groups of rows; first set: 0. */
  const int32_t
      *group_starts;   /**< Second set: [groups + 1], rows of q before each group's first; else NULL. */
  const sluice_kv *kv; /**< Where the keys are; required. */
  sluice_rows rows;    /**< How many keys there are, of each sequence or group. */
  sluice_pages pages;  /**< In which pages. */
} sluice_keys;

/* ------------------------------------------------------------------------------------------ features --- */

/** Where the diagonal of the mask is. */
enum sluice_mask_alignment {
  SLUICE_BOTTOM_RIGHT = 0,  /**< The last row sees the last key: rows are the newest tokens. */
  SLUICE_TOP_LEFT = 1,      /**< Row 0 sees key 0. */
  SLUICE_GIVEN_DIAGONAL = 2 /**< Each sequence says at which key; sluice_mask_args::diagonals. */
};

/** Bits of sluice_mask::flags. An unknown bit is refused with SLUICE_NEWER_STRUCT. */
enum sluice_mask_flag {
  SLUICE_MASK_CAUSAL = 1 << 0,             /**< Keys after the row's own position are invisible. */
  SLUICE_MASK_CAUSAL_BY_SEQUENCE = 1 << 1, /**< Each sequence says whether it is causal. */
  SLUICE_MASK_WINDOW_LEFT = 1 << 2,        /**< window_left applies. */
  SLUICE_MASK_WINDOW_RIGHT = 1 << 3,       /**< window_right applies. */
  SLUICE_MASK_BITS = 1 << 4,               /**< A bit per row and key says whether it is visible. */
  SLUICE_MASK_BITS_OF_NEW = 1 << 5,  /**< With BITS: they cover only the newest keys (drafts as a tree). */
  SLUICE_MASK_SPANS = 1 << 6,        /**< Spans of keys that see each other (images in text). */
  SLUICE_MASK_MISSING_PAGES = 1 << 7 /**< Keys of pages with a negative number are invisible. */
};

/**
 * Which keys a row sees: what a plan must know. sluice_mask_args has the memory that a call gives for it.
 *
 * Key j of a sequence is visible to its row i if each condition that applies holds, with d = j - i - shift
 * and a shift of kv_len - q_len of the sequence for SLUICE_BOTTOM_RIGHT, 0 for SLUICE_TOP_LEFT and
 * diagonals[b] for SLUICE_GIVEN_DIAGONAL:
 *
 *     d <= 0                              CAUSAL, or CAUSAL_BY_SEQUENCE and causal[b] is not 0
 *     d <= window_right                   WINDOW_RIGHT
 *     d >= -window_left, or j < sink_tokens    WINDOW_LEFT
 *     bit (i, j) is 1                     BITS
 *     its page's number is not negative   MISSING_PAGES
 *
 * With SPANS the first three do not apply if i + shift and j are in the same span.
 *
 * - At most one of CAUSAL, CAUSAL_BY_SEQUENCE, and CAUSAL with WINDOW_RIGHT.
 * - The windows are at least 0, and 0 without their flag, as sink_tokens is without WINDOW_LEFT.
 * - MISSING_PAGES needs pages.
 */
typedef struct sluice_mask {
  uint32_t struct_size; /**< sizeof(sluice_mask). */
  uint32_t flags;       /**< sluice_mask_flag bits. */
  uint32_t alignment;   /**< sluice_mask_alignment. */
  int32_t window_left;  /**< Keys visible before the diagonal. */
  int32_t window_right; /**< Keys visible after the diagonal. */
  int32_t sink_tokens;  /**< First keys that window_left does not hide. */
} sluice_mask;

/** What a call has for the plan's sluice_mask. Each member is given exactly if the plan asks for it. */
typedef struct sluice_mask_args {
  uint32_t struct_size; /**< sizeof(sluice_mask_args). */
  uint32_t reserved;    /**< Must be 0. */
  /** BITS: [b][q head][i][j / 8], key j is bit j % 8; strides count bytes, stride[3] is 1. With BITS_OF_NEW,
     j counts from the first of the newest q_len keys. */
  sluice_tensor bits;
  /** SPANS: [batch][span_count][2], the first key of a span and the one after its last; ascending. */
  const int32_t *spans;
  int64_t span_count;       /**< SPANS: spans of each sequence, from 0 to 2^20. */
  const int32_t *diagonals; /**< GIVEN_DIAGONAL: [batch], the key on row 0's diagonal. */
  const int32_t *causal;    /**< CAUSAL_BY_SEQUENCE: [batch], not 0 for causal sequences. */
} sluice_mask_args;

/** Bits of sluice_scores::flags. An unknown bit is refused with SLUICE_NEWER_STRUCT. */
enum sluice_scores_flag {
  SLUICE_SCORES_ALIBI = 1 << 0,     /**< Subtract slope * distance from the scores. */
  SLUICE_SCORES_SINK = 1 << 1,      /**< A learned logit per query head joins the denominator. */
  SLUICE_SCORES_BIAS_SCALE = 1 << 2 /**< With a bias: it is multiplied by a scale per query head. */
};

/**
 * What becomes of scores before the softmax: what a plan must know. The changes, in this order:
 *
 *     S = soft_cap * tanh(S / soft_cap)             if soft_cap is not 0
 *     S = S + bias_scale[h] * bias[i][j]            if bias_type is not 0
 *     S = S - alibi_slopes[h] * |i + shift - j|     ALIBI
 *     D[i] = sum over keys of exp(S) + exp(sinks[h])    SINK
 */
typedef struct sluice_scores {
  uint32_t struct_size; /**< sizeof(sluice_scores). */
  uint32_t flags;       /**< sluice_scores_flag bits. */
  float soft_cap;       /**< Above 0; 0: no cap. */
  uint32_t bias_type;   /**< F32, F16 or BF16; 0: no bias. */
} sluice_scores;

/** What a call has for the plan's sluice_scores. Each member is given exactly if the plan asks for it. */
typedef struct sluice_scores_args {
  uint32_t struct_size;      /**< sizeof(sluice_scores_args). */
  uint32_t reserved;         /**< Must be 0. */
  sluice_tensor bias;        /**< [b][q head][i][j]; stride[3] is 0 or 1; a stride of 0 repeats. */
  const float *bias_scale;   /**< BIAS_SCALE: [q_heads]. */
  int64_t bias_scale_stride; /**< From one sequence's bias_scale to the next one's; 0: shared. */
  const float *alibi_slopes; /**< ALIBI: [q_heads]. */
  int64_t alibi_stride;      /**< From one sequence's alibi_slopes to the next one's; 0: shared. */
  const float *sinks;        /**< SINK: [q_heads], to base e. */
} sluice_scores_args;

/* ------------------------------------------------------------------------------------------- problem --- */

/** Whether a plan's calls write the logarithm of the softmax denominator, and to which base. */
enum sluice_lse {
  SLUICE_LSE_NONE = 0, /**< It is not written. */
  SLUICE_LSE_LN = 1,   /**< Natural logarithm. */
  SLUICE_LSE_LOG2 = 2  /**< Logarithm to base 2. */
};

/** Bits of sluice_attention::flags. An unknown bit is refused with SLUICE_NEWER_STRUCT. */
enum sluice_attention_flag {
  /** Sequences are packed one after the other: q, o, and K and V unless in pages, have starts. */
  SLUICE_ATTENTION_RAGGED = 1 << 0,
  /** Rows of q, k, v and o continue in memory to the next multiple of 8 elements: head dims may be any
     number. What is there may be any number in q and v, must be finite in k, and is undefined in o. */
  SLUICE_ATTENTION_PADDED_ROWS = 1 << 1,
  SLUICE_ATTENTION_PREFIXES = 1 << 2, /**< Calls have a second set of keys: see sluice_keys. */
  SLUICE_ATTENTION_BATCH_INVARIANT =
      1 << 3 /**< Bits of a sequence depend on nothing outside of it: see below. */
};

/**
 * Upper bounds of the calls that a plan will serve; 0: unbounded. A call that exceeds one is refused. They
 * influence the choice of kernels and fix the size of the workspace. Part of sluice_attention: it never
 * grows.
 */
typedef struct sluice_bounds {
  int32_t batch;      /**< Sequences. */
  int32_t q_len;      /**< Query rows per sequence. */
  int32_t kv_len;     /**< Keys per sequence. */
  int32_t groups;     /**< PREFIXES, which needs it: groups. */
  int32_t group_keys; /**< PREFIXES, which needs it: keys per group. */
  uint32_t reserved;  /**< Must be 0. */
  int64_t q_rows;     /**< Rows of q of all sequences; PREFIXES needs it. */
} sluice_bounds;

/**
 * A class of attention calls: everything that selects kernels, nothing that changes from call to call.
 *
 * For row i and key j of one sequence, where query head h reads KV head h / (q_heads / kv_heads):
 *
 *     S      = scale * q_scale * k_scale * dot(q_i, k_j), then as sluice_scores says
 *     D[i]   = sum over visible keys of exp(S[i][j])
 *     LSE[i] = ln D[i], or log2 D[i]
 *     O[i]   = sum over visible keys of exp(S[i][j]) / D[i] * v_scale * v_j / o_scale
 *
 * A row without a visible key has O = 0 and LSE = -infinity, or the sink. docs/concepts/numerics.md has the
 * numerical contract: what is rounded and how, and what becomes of NaN and infinity.
 *
 * - q.type, o.type, q_heads and kv are required; q_heads is a multiple of kv_heads.
 * - Q and O have scales per tensor or per head only, and O only if it is FP8; they have no packs.
 * - With SLUICE_ATTENTION_BATCH_INVARIANT, a sequence's bits depend neither on the batch, nor on its other
 * sequences, nor on the bounds: keys are split at fixed places. bounds.batch and bounds.kv_len are required.
 * - With SLUICE_ATTENTION_PREFIXES all keys of a group are visible, and masks concern a sequence's own keys.
 */
typedef struct sluice_attention {
  uint32_t struct_size;             /**< sizeof(sluice_attention). */
  uint32_t flags;                   /**< sluice_attention_flag bits. */
  int32_t q_heads;                  /**< Query heads. */
  uint32_t lse;                     /**< sluice_lse. */
  sluice_format q;                  /**< Rows of Q. */
  sluice_format o;                  /**< Rows of O. */
  const sluice_kv_format *kv;       /**< Rows of K and V, in every set of keys. */
  const sluice_mask *mask;          /**< NULL: every key is visible. */
  const sluice_scores *scores;      /**< NULL: scores stay as they are. */
  sluice_bounds bounds;             /**< Of calls. */
  uint64_t workspace_ceiling_bytes; /**< Use only kernels that need at most this; 0: any. */
} sluice_attention;

/* -------------------------------------------------------------------------------------------- plans --- */

/** Result of sluice_attention_support. */
typedef struct sluice_support {
  uint32_t struct_size;         /**< sizeof(sluice_support). */
  uint32_t workspace_alignment; /**< Required alignment of sluice_launch::workspace in bytes. */
  uint64_t workspace_bytes;     /**< Device memory that a run needs; may be 0. */
  uint32_t pointer_alignment;   /**< Required alignment of q, k, v and o in bytes. */
  uint32_t stride_multiple;     /**< Strides of q, k, v and o must be multiples of this, in elements. */
  char kernel[96];              /**< Name of the kernel that a plan would use. */
} sluice_support;

/** Zeroes the struct and sets struct_size. @return SLUICE_INVALID_ARGUMENT if it is NULL or size too small */
SLUICE_API sluice_status sluice_support_init(sluice_support *support, size_t size) SLUICE_NOEXCEPT;

/**
 * Says whether a plan for this problem can be made, and what it needs. Touches no device.
 *
 * - support: nullable; filled on SLUICE_OK
 * - error:   nullable; a refusal names the member, its value and the nearest supported one
 * @return SLUICE_OK; SLUICE_INVALID_ARGUMENT; SLUICE_UNSUPPORTED; SLUICE_NEWER_STRUCT
 */
SLUICE_API sluice_status sluice_attention_support(const sluice_context *context,
                                                  const sluice_attention *attention, sluice_support *support,
                                                  sluice_error *error) SLUICE_NOEXCEPT;

/** A problem with its kernels chosen and loaded. */
typedef struct sluice_plan sluice_plan;

/**
 * Chooses the kernels for a problem and loads them onto the context's device, so that a run only has to
 * launch them. Enqueues nothing. Loading allocates: during stream capture a plan can be made only of kernels
 * that sluice_attention_preload has loaded before.
 *
 * - context:   any kind; a plan of a target can be described but not run
 * - attention: copied, with what it points to
 * - out:       receives the plan; NULL on failure. The caller owns it: sluice_plan_destroy.
 * @return as sluice_attention_support; SLUICE_HIP; SLUICE_WRONG_ARCH; SLUICE_PACK_CORRUPT;
 *         SLUICE_OUT_OF_MEMORY
 */
SLUICE_API sluice_status sluice_attention_plan(sluice_context *context, const sluice_attention *attention,
                                               sluice_plan **out, sluice_error *error) SLUICE_NOEXCEPT;

/** Releases a plan; NULL is allowed. The work it enqueued must have completed. */
SLUICE_API void sluice_plan_destroy(sluice_plan *plan) SLUICE_NOEXCEPT;

/** Description of a plan. */
typedef struct sluice_plan_info {
  uint32_t struct_size;         /**< sizeof(sluice_plan_info). */
  uint32_t tile_q;              /**< Rows per workgroup, over all heads of a group. */
  uint32_t tile_kv;             /**< Keys per loop iteration. */
  uint32_t waves;               /**< Waves per workgroup. */
  uint32_t lds_bytes;           /**< LDS per workgroup. */
  uint32_t workspace_alignment; /**< Required alignment of sluice_launch::workspace in bytes. */
  uint64_t workspace_bytes;     /**< Device memory that a run needs; may be 0. */
  uint32_t max_grid[3];         /**< Workgroups at the problem's bounds; 0 if a bound is missing. */
  uint32_t block[3];            /**< Lanes per workgroup. */
  char kernel[96];              /**< Name of the kernel. */
  char reason[208]; /**< Why this kernel, in a sentence: its estimated cost and that of the next best. */
} sluice_plan_info;

/** Zeroes the struct and sets struct_size. @return SLUICE_INVALID_ARGUMENT if it is NULL or size too small */
SLUICE_API sluice_status sluice_plan_info_init(sluice_plan_info *info, size_t size) SLUICE_NOEXCEPT;

/** Fills `info`. @return SLUICE_OK; SLUICE_INVALID_ARGUMENT */
SLUICE_API sluice_status sluice_plan_describe(const sluice_plan *plan, sluice_plan_info *info,
                                              sluice_error *error) SLUICE_NOEXCEPT;

/**
 * Loads the kernels for a problem, or every kernel of the context if `attention` is NULL, and keeps them
 * loaded while the context or one of its plans lives. Plans and cache operations then load nothing.
 * @return as sluice_attention_plan; SLUICE_NO_DEVICE for a target, which has no device to load onto
 */
SLUICE_API sluice_status sluice_attention_preload(sluice_context *context, const sluice_attention *attention,
                                                  sluice_error *error) SLUICE_NOEXCEPT;

/** One kernel of a context. */
typedef struct sluice_kernel_info {
  uint32_t struct_size;   /**< sizeof(sluice_kernel_info). */
  uint32_t dtype;         /**< sluice_dtype of Q; for cache operations, of their input. */
  int32_t head_dim_qk;    /**< Elements of a row of Q and K; 0 for cache operations, which take any. */
  int32_t head_dim_v;     /**< Elements of a row of V and O; 0 for cache operations. */
  uint32_t tile_q;        /**< Rows per workgroup, over all heads of a group; 0 for cache operations. */
  uint32_t tile_kv;       /**< Keys per loop iteration; 0 for cache operations. */
  uint32_t waves;         /**< Waves per workgroup. */
  uint32_t threads;       /**< Lanes per workgroup. */
  uint32_t lds_bytes;     /**< LDS per workgroup. */
  uint32_t kernarg_bytes; /**< Size of the kernel's argument block. */
  char name[96];       /**< E.g. "attn_fwd_f16_d128_q256_kv64_w8": operation, type, head dim, tiles, waves. */
  char operation[32];  /**< "attention_forward", "kv_append", "merge_states", "kv_copy" or "append_step". */
  char features[128];  /**< Features of the kernel, separated by commas: "causal,lse". */
  char p_rounding[16]; /**< How P is rounded to the type of Q: "centred_cut" (to F16 and BF16, by at most 0.70
                          of its last place, docs/concepts/numerics.md) or "nearest_even"; else "". */
  char chips[64];      /**< Chips that it has machine code for, separated by commas. */
  char more_features[256]; /**< Features that `features` has no room for: the rest. */
} sluice_kernel_info;

/** Zeroes the struct and sets struct_size. @return SLUICE_INVALID_ARGUMENT if it is NULL or size too small */
SLUICE_API sluice_status sluice_kernel_info_init(sluice_kernel_info *info, size_t size) SLUICE_NOEXCEPT;

/**
 * Returns one of the kernels for a context's chip, by index in the order of their names.
 *
 * - index: which kernel; ignored if info is NULL
 * - info:  nullable
 * - count: nullable; receives the number of kernels
 * @return SLUICE_OK; SLUICE_INVALID_ARGUMENT, also for an index past the end
 */
SLUICE_API sluice_status sluice_list_kernels(const sluice_context *context, uint32_t index,
                                             sluice_kernel_info *info, uint32_t *count,
                                             sluice_error *error) SLUICE_NOEXCEPT;

/* ---------------------------------------------------------------------------------------------- call --- */

/**
 * One call of a plan.
 *
 *     q, o   [batch][row][q_heads][head_dim], or with starts [0][row][q_heads][head_dim]
 *     lse    [batch][row][q_heads], F32, the same
 *
 * - keys has one element, or two with SLUICE_ATTENTION_PREFIXES. Elements are keys->struct_size apart.
 * - mask, scores, lse, q_scale and o_scale are given exactly if the plan has what they are for.
 */
typedef struct sluice_attention_args {
  uint32_t struct_size;             /**< sizeof(sluice_attention_args). */
  int32_t batch;                    /**< Sequences. */
  sluice_tensor q;                  /**< Queries. */
  sluice_tensor o;                  /**< Result. */
  sluice_rows rows;                 /**< Rows of q, o and lse. */
  const sluice_keys *keys;          /**< What the rows attend to. */
  uint32_t key_sets;                /**< Elements of keys. */
  uint32_t reserved;                /**< Must be 0. */
  const float *scale;               /**< Host memory; NULL: 1 / sqrt(head_dim_qk). Finite, not negative. */
  const sluice_tensor *lse;         /**< Where the LSE goes; stride[3] has no meaning. */
  const sluice_mask_args *mask;     /**< For the plan's mask, where it needs memory. */
  const sluice_scores_args *scores; /**< For the plan's scores, where they need memory. */
  const float *q_scale;             /**< Device memory, [1] or [q_heads], by the plan's q.scale_kind. */
  const float *o_scale;             /**< Device memory, the same for O, which is divided by it. */
} sluice_attention_args;

/**
 * Enqueues one call of a plan on launch->stream and returns without waiting. It does not allocate, lock,
 * load, log, or query or synchronise the device, and it is legal during stream capture, from the first run
 * on. A captured run keeps the pointers, strides and numbers of its call, and finds lengths and tables where
 * they point to. docs/howto/capture_a_graph.md says which HIP functions it calls.
 *
 * Device       the calling thread's current device must be the context's; this is not checked
 * Ordering     after the work on the stream and after the dependencies
 * Threads      any number at once with one plan, given different workspaces (if the plan needs one)
 * Memory       o and lse overlap no input; this is not checked
 * Faults       of the device appear where the caller synchronises, as with any HIP work. The emulated device
 *              names the argument: docs/howto/use_the_emulator.md. sluice_attention_reference on copies in
 *              host memory checks everything.
 *
 * - plan:   made for a HIP or emulated device
 * - args:   copied, with what it points to in host memory
 * - launch: copied; NULL is the default stream, without workspace, dependencies or signal_event
 * @return SLUICE_OK: enqueued. Otherwise nothing is enqueued: SLUICE_INVALID_ARGUMENT;
 *         SLUICE_UNSUPPORTED; SLUICE_NEWER_STRUCT; SLUICE_WORKSPACE_TOO_SMALL; SLUICE_NO_DEVICE for a
 *         plan of a target; SLUICE_HIP, or SLUICE_WRONG_ARCH if HIP returned hipErrorNoBinaryForGpu. If a
 *         later launch of several fails, the ones before it are enqueued, and o and lse are incomplete. If
 *         recording signal_event fails, the field is "signal_event", and the run itself is enqueued.
 */
SLUICE_API sluice_status sluice_attention_run(const sluice_plan *plan, const sluice_attention_args *args,
                                              const sluice_launch *launch,
                                              sluice_error *error) SLUICE_NOEXCEPT;

/**
 * Computes a call on the host with plain loops in double precision: the reference for results, never chosen
 * silently. Takes what a plan and a run take, but all pointers are to host memory, any types, head dims and
 * strides are computed, and contents of arrays are checked like everything else. P is not rounded, O once.
 * @return SLUICE_OK: o and lse are written; SLUICE_INVALID_ARGUMENT; SLUICE_UNSUPPORTED;
 *         SLUICE_NEWER_STRUCT; SLUICE_OUT_OF_MEMORY
 */
SLUICE_API sluice_status sluice_attention_reference(const sluice_attention *attention,
                                                    const sluice_attention_args *args,
                                                    sluice_error *error) SLUICE_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif

/*===- sluice.h - attention for AMD Instinct GPUs, the C ABI ------------------------------------------===
 *
 * The only header of libsluice.so. Describe a problem, ask whether it is supported and what it needs, make a
 * plan, and run it as often as you like. The library contains its kernels and finds HIP in the process at run
 * time, so there is nothing else to install. Without a GPU, the same machine code runs on the bundled gfx942
 * emulator.
 *
 * General rules:
 *
 * - A request is computed correctly or refused with a reason. No field is ever accepted and ignored.
 * - Every function that can refuse takes a nullable `sluice_error *` and returns a `sluice_status`. The
 *   library never prints, aborts, throws, or installs handlers.
 * - Sized structs begin with `struct_size`, which the caller sets to sizeof of the struct it compiled
 *   against; the sluice_*_init functions do that and zero the rest. Structs only grow, at their end. A
 *   library that knows fewer fields than the caller returns SLUICE_NEWER_STRUCT if an unknown field is not
 *   zero; `reserved` fields count as unknown.
 * - A zero field means the default. Fields without a default (types, heads, head dims, extents) are required:
 *   zero is refused.
 * - Strides count elements, never bytes.
 * - The caller owns the memory that pointers point to; the library keeps no pointer after a call returns
 *   unless the function says so.
 * - Contexts and plans are immutable once made (except for sluice_set_trace and sluice_set_ranges) and may be
 *   shared by any number of threads. The caller must not destroy an object while another thread uses it. Any
 *   thread may destroy it, and different threads may destroy a context and its plans at the same time.
 * - A forked process cannot use a device that its parent had used. `docs/concepts/ownership.md` has the rules
 *   for fork, and for unloading the library with dlclose.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *===------------------------------------------------------------------------------------------------===*/
#ifndef SLUICE_SLUICE_H
#define SLUICE_SLUICE_H

/**
 * @file
 * @brief The C ABI of libsluice.so. The header's opening comment states the general rules.
 */

#include <stddef.h>
#include <stdint.h>

#if defined(SLUICE_BUILDING_LIBRARY)
#define SLUICE_API __attribute__((visibility("default")))
#else
#define SLUICE_API
#endif

#ifdef __cplusplus
extern "C" {
#define SLUICE_NOEXCEPT noexcept
#else
#define SLUICE_NOEXCEPT
#endif

/**
 * ABI generation: SONAME `libsluice.so.1`, symbol version node `SLUICE_1`. Within a generation nothing is
 * removed and nothing changes its meaning; see `docs/concepts/abi.md`.
 */
#define SLUICE_ABI_MAJOR 1
/** Counts additions to the ABI within its generation. */
#define SLUICE_ABI_MINOR 1

/* ------------------------------------------------------------------------------------------ status --- */

/** Result of a call: one of the SLUICE_* codes below. Values are frozen. */
typedef int32_t sluice_status;

/** Status codes, each with what the caller can do about it. */
enum sluice_status_code {
  SLUICE_OK = 0,                  /**< Done, or for sluice_run: enqueued. */
  SLUICE_INVALID_ARGUMENT = 1,    /**< An argument breaks a documented rule: fix the call. */
  SLUICE_UNSUPPORTED = 2,         /**< Legal, but this library cannot compute it: use another path. */
  SLUICE_NEWER_STRUCT = 3,        /**< A field or flag this library does not know is set: upgrade. */
  SLUICE_NO_DEVICE = 4,           /**< The device, HIP runtime or emulator does not exist here. */
  SLUICE_WRONG_ARCH = 5,          /**< The pack has no kernels for the device, or HIP found no code for it. */
  SLUICE_HIP = 6,                 /**< A HIP call failed; sluice_error::hip_code has its code. */
  SLUICE_PACK_CORRUPT = 7,        /**< The kernel pack is truncated or altered: reinstall. */
  SLUICE_WORKSPACE_TOO_SMALL = 8, /**< Give at least sluice_workspace_size bytes. */
  SLUICE_OUT_OF_MEMORY = 9,       /**< Host memory ran out. */
  SLUICE_INTERNAL = 10            /**< A defect of the library: report it with the message. */
};

/**
 * Details of a failed call. Owned by the caller, nullable everywhere, written only when the call fails.
 *
 * Set struct_size (sluice_error_init does) before the first use; the struct can then be used for any
 * number of calls. If struct_size is smaller than this version's, or larger than 65536, the call itself fails
 * with SLUICE_INVALID_ARGUMENT and leaves the struct untouched.
 */
typedef struct sluice_error {
  uint32_t struct_size; /**< sizeof(sluice_error). */
  sluice_status code;   /**< What the call returned. */
  int32_t hip_code;     /**< The hipError_t if a HIP call failed, for any code; otherwise 0. */
  char field[52];       /**< The argument or field at fault, e.g. "k.stride[1]", or empty. */
  char message[448];    /**< One sentence: the field, its value, the rule or the nearest supported value. */
} sluice_error;

/**
 * Zeroes the struct and sets struct_size.
 * @return SLUICE_INVALID_ARGUMENT if error is NULL or size too small.
 */
SLUICE_API sluice_status sluice_error_init(sluice_error *error, size_t size) SLUICE_NOEXCEPT;

/** "SLUICE_OK" and so on; "unknown status" for any other value. Static storage, never NULL. */
SLUICE_API const char *sluice_status_name(sluice_status status) SLUICE_NOEXCEPT;

/* ----------------------------------------------------------------------------------------- library --- */

/** SLUICE_ABI_MAJOR << 16 | SLUICE_ABI_MINOR of the library at run time. */
SLUICE_API uint32_t sluice_abi_version(void) SLUICE_NOEXCEPT;

/** The release, e.g. "1.0.0". Static storage. */
SLUICE_API const char *sluice_version(void) SLUICE_NOEXCEPT;

/** Where the library and its kernels come from. */
typedef struct sluice_build {
  uint32_t struct_size;  /**< sizeof(sluice_build). */
  uint32_t kernel_count; /**< Kernels in the embedded pack. */
  char version[32];      /**< As sluice_version. */
  char git_commit[48]; /**< Source revision, with "-dirty" if it had local changes; "unknown" outside git. */
  char compiler[64];   /**< The C++ compiler that built the library. */
  char llvm_version[32]; /**< The LLVM that generated the kernels. */
  char pack_id[32];      /**< Checksum of the pack's manifest in hexadecimal: equal ids, equal kernels. */
  char chips[64];        /**< Chips that the pack has kernels for, separated by commas. */
} sluice_build;

/**
 * Zeroes the struct and sets struct_size.
 * @return SLUICE_INVALID_ARGUMENT if build is NULL or size too small.
 */
SLUICE_API sluice_status sluice_build_init(sluice_build *build, size_t size) SLUICE_NOEXCEPT;

/**
 * Fills `build`. Needs no device.
 * @return SLUICE_OK; SLUICE_INVALID_ARGUMENT; SLUICE_PACK_CORRUPT if the embedded pack cannot be read
 */
SLUICE_API sluice_status sluice_build_info(sluice_build *build, sluice_error *error) SLUICE_NOEXCEPT;

/** Severity of a log message. */
enum sluice_log_level {
  SLUICE_LOG_ERROR = 1,   /**< Something failed in a way that a status cannot say (a destroy, for example). */
  SLUICE_LOG_WARNING = 2, /**< Worth knowing. */
  SLUICE_LOG_INFO = 3,    /**< Devices found and kernels chosen when contexts and plans are made. */
  SLUICE_LOG_DEBUG = 4    /**< Every step of finding and choosing. */
};

/**
 * Receives a log line, without a line end. It may be called on any thread that calls the library, and must
 * not call the library itself.
 */
typedef void (*sluice_log_fn)(uint32_t level, const char *message, void *user);

/**
 * Sets the process's log function and the most verbose level it gets; NULL, the initial state, switches the
 * log off. sluice_run never logs. Threads: may be called at any time; once it returns, the previous function
 * is not called.
 */
SLUICE_API void sluice_set_log(sluice_log_fn log, void *user, uint32_t max_level) SLUICE_NOEXCEPT;

/* ----------------------------------------------------------------------------------------- context --- */

/** A device, or a named target without one, and the kernels for it. */
typedef struct sluice_context sluice_context;

/** The kind of device that a context represents. */
enum sluice_device_kind {
  SLUICE_DEVICE_HIP = 1,      /**< A GPU, through the HIP runtime of the process. */
  SLUICE_DEVICE_EMULATED = 2, /**< The bundled gfx942 emulator: same machine code, same calls. */
  SLUICE_DEVICE_TARGET = 3    /**< A chip by name: answers questions and makes plans, but cannot run. */
};

/** Returns the HIP entry point of that name, or NULL. Must answer for as long as the context lives. */
typedef void *(*sluice_hip_resolver)(const char *name, void *user);

/** Input of sluice_context_create. */
typedef struct sluice_context_desc {
  uint32_t struct_size;             /**< sizeof(sluice_context_desc). */
  uint32_t kind;                    /**< sluice_device_kind; required. */
  int32_t device_ordinal;           /**< HIP and EMULATED: as for hipSetDevice. TARGET: must be 0. */
  uint32_t flags;                   /**< Must be 0. */
  const char *target;               /**< TARGET: chip and compute units, "gfx942:304"; otherwise NULL. */
  sluice_hip_resolver hip_resolver; /**< HIP only, nullable: take every HIP entry point from here. */
  void *hip_resolver_user;          /**< Passed to hip_resolver. */
  const void *pack;                 /**< Nullable: a kernel pack to use instead of the embedded one. */
  uint64_t pack_bytes;              /**< Size of `pack`; its memory must outlive the context and its plans. */
} sluice_context_desc;

/**
 * Zeroes the struct and sets struct_size.
 * @return SLUICE_INVALID_ARGUMENT if desc is NULL or size too small.
 */
SLUICE_API sluice_status sluice_context_desc_init(sluice_context_desc *desc, size_t size) SLUICE_NOEXCEPT;

/**
 * Makes a context.
 *
 * HIP: entry points come from desc->hip_resolver; else from the libamdhip64 that the process has
 * already loaded; else from libamdhip64.so.7, .6 or .5, whichever the system finds first. The library never
 * loads a second HIP runtime and assumes no path. It initialises the HIP runtime (hipInit) and leaves the
 * calling thread's current device unchanged.
 *
 * EMULATED: opens libsluice_emulator.so.1 by name, else from the folder of the file that libsluice.so is
 * mapped from; a program linked with libsluice.a finds it by name only. A program that runs with more rights
 * than its user (AT_SECURE: setuid, file capabilities) gets SLUICE_NO_DEVICE.
 *
 * TARGET: touches no device and no library.
 *
 * @param desc   the device, or the target
 * @param out    receives the context; NULL on failure. The caller owns it: sluice_context_destroy.
 * @param error  nullable
 * @return SLUICE_OK; SLUICE_INVALID_ARGUMENT; SLUICE_NEWER_STRUCT; SLUICE_NO_DEVICE (no runtime, a
 *         missing entry point, no such ordinal; the message names it); SLUICE_WRONG_ARCH; SLUICE_HIP;
 *         SLUICE_PACK_CORRUPT; SLUICE_OUT_OF_MEMORY
 */
SLUICE_API sluice_status sluice_context_create(const sluice_context_desc *desc, sluice_context **out,
                                               sluice_error *error) SLUICE_NOEXCEPT;

/**
 * Releases a context; NULL is allowed. Plans made with it stay valid: what they share is released with the
 * last of them.
 */
SLUICE_API void sluice_context_destroy(sluice_context *context) SLUICE_NOEXCEPT;

/** The device of a context. */
typedef struct sluice_device_info {
  uint32_t struct_size;        /**< sizeof(sluice_device_info). */
  uint32_t kind;               /**< sluice_device_kind. */
  int32_t ordinal;             /**< Device ordinal; -1 for a target. */
  uint32_t compute_units;      /**< Compute units. */
  uint32_t wave_size;          /**< Lanes of a wave. */
  uint32_t lds_bytes;          /**< LDS bytes available to a workgroup. */
  int32_t hip_runtime_version; /**< hipRuntimeGetVersion; 0 for a target or if it is unknown. */
  uint32_t reserved;           /**< 0. */
  char chip[32];               /**< Processor without features: "gfx942". */
  char arch[64];               /**< As the runtime reports it: "gfx942:sramecc+:xnack-". */
  char name[128];              /**< Marketing name, or empty. */
  char runtime[160];           /**< Where HIP comes from: a file name, "caller" or "none". */
} sluice_device_info;

/**
 * Zeroes the struct and sets struct_size.
 * @return SLUICE_INVALID_ARGUMENT if info is NULL or size too small.
 */
SLUICE_API sluice_status sluice_device_info_init(sluice_device_info *info, size_t size) SLUICE_NOEXCEPT;

/** Fills `info`. @return SLUICE_OK; SLUICE_INVALID_ARGUMENT */
SLUICE_API sluice_status sluice_context_device(const sluice_context *context, sluice_device_info *info,
                                               sluice_error *error) SLUICE_NOEXCEPT;

/**
 * Returns the HIP entry point of that name in the context's runtime, real or emulated. With it an engine can
 * allocate, copy and synchronise on the same runtime without linking HIP. Cast it to the HIP function's type.
 * @return NULL if the runtime has no such entry point, for a target, or for a NULL argument
 */
SLUICE_API void *sluice_context_hip_symbol(const sluice_context *context, const char *name) SLUICE_NOEXCEPT;

/* ----------------------------------------------------------------------------------------- problem --- */

/** Layout of sequences in memory. */
enum sluice_mode {
  SLUICE_MODE_DENSE = 0,  /**< Every sequence has the same lengths: tensors [batch, token, head, dim]. */
  SLUICE_MODE_RAGGED = 1, /**< Sequences packed one after the other: tensors [token, head, dim]. */
  SLUICE_MODE_PAGED = 2   /**< K and V in pages, [page, token in page, head, dim], found through a table. */
};

/** Element types. The FP8 encodings are different types: FNUZ is CDNA3's, the other two are OCP's. */
enum sluice_dtype {
  SLUICE_F16 = 1,      /**< IEEE binary16. */
  SLUICE_BF16 = 2,     /**< bfloat16. */
  SLUICE_F32 = 3,      /**< IEEE binary32. */
  SLUICE_E4M3FNUZ = 4, /**< FP8, bias 8, maximum 240, one NaN, no infinity. */
  SLUICE_E4M3FN = 5,   /**< OCP FP8, bias 7, maximum 448. */
  SLUICE_E5M2FNUZ = 6, /**< FP8, bias 16, maximum 57344, one NaN, no infinity. */
  SLUICE_E5M2 = 7,     /**< OCP FP8, bias 15, maximum 57344, with infinities. */
  SLUICE_I8 = 8,       /**< Signed 8-bit integer; K and V only, like the next three. Since ABI 1.1. */
  /** Unsigned 4-bit integer, two per byte, the even element in the lower half; needs scales per group. */
  SLUICE_U4 = 9,
  /** ggml's block of 32 elements in 34 bytes: an F16 scale, then 32 signed bytes. */
  SLUICE_Q8_0 = 10,
  /** ggml's block of 32 elements in 18 bytes: an F16 scale, then 16 bytes; byte i has element i in its lower
     half and i + 16 in its upper half. An element is scale * (number - 8). */
  SLUICE_Q4_0 = 11
};

/** Bits of sluice_problem::flags. An unknown bit is refused with SLUICE_NEWER_STRUCT. */
enum sluice_problem_flag {
  SLUICE_CAUSAL = 1 << 0,    /**< Keys after the row's own position are invisible; see mask_alignment. */
  SLUICE_WRITE_LSE = 1 << 1, /**< Also write the logarithm of the softmax denominator. */
  SLUICE_HAS_WINDOW_LEFT = 1 << 2,  /**< window_left applies. */
  SLUICE_HAS_WINDOW_RIGHT = 1 << 3, /**< window_right applies; not with SLUICE_CAUSAL, which implies 0. */
  SLUICE_ALIBI = 1 << 4,       /**< Subtract slope * distance from the scores; sluice_args::alibi_slopes. */
  SLUICE_SINK_LOGITS = 1 << 5, /**< A learned logit per query head joins the denominator. */
  SLUICE_BOOL_MASK = 1 << 6,   /**< A bit per row and key says whether it is visible; sluice_args::mask. */
  /** The page table holds int64_t instead of int32_t; SLUICE_MODE_PAGED only. */
  SLUICE_PAGE_INDEX_64 = 1 << 7,
  /** V is the first head_dim_v elements of each row of K, and sluice_args::v is zero. Then v_type is k_type
     and head_dim_v at most head_dim_qk. */
  SLUICE_V_IN_K = 1 << 8,
  /** With SLUICE_BOOL_MASK: the mask covers only the newest q_len[b] keys, and the keys before them are not
     masked (drafts as a tree). This and the bits below: since ABI 1.1. */
  SLUICE_MASK_NEW_ROWS = 1 << 9,
  /** Spans of keys that see each other in both directions (images in text); sluice_args::spans. */
  SLUICE_SPANS = 1 << 11,
  /** Each sequence says whether it is causal; sluice_args::causal. Not with SLUICE_CAUSAL. */
  SLUICE_CAUSAL_BY_SEQUENCE = 1 << 12,
  /** With bias_type: the bias is multiplied by a scale per query head; sluice_args::bias_scale. */
  SLUICE_BIAS_SCALE = 1 << 14,
  /** Groups of rows see a prefix of keys before their sequence's own keys; sluice_args::prefix_q_starts. Each
     prefix is read once for all its rows. */
  SLUICE_SHARED_PREFIX = 1 << 10,
  /** With scales per group: each group has a number to subtract; sluice_args::k_zeros and v_zeros. */
  SLUICE_ZERO_POINTS = 1 << 13,
  /** Keys of pages whose number is negative are invisible: lists of keys with holes (sparse attention).
     SLUICE_MODE_PAGED only. */
  SLUICE_MISSING_PAGES_HIDDEN = 1 << 15,
  /** Rows of q, k, v and o continue in memory to the next multiple of 8 elements: head dims may be any
     number. What is there is ignored in q and v, must be finite in k, and is undefined in o after a run. */
  SLUICE_PADDED_ROWS = 1 << 16
};

/** Where the diagonal of the mask is. */
enum sluice_mask_alignment {
  SLUICE_BOTTOM_RIGHT = 0,  /**< The last row sees the last key: rows are the newest tokens. */
  SLUICE_TOP_LEFT = 1,      /**< Row 0 sees key 0. */
  SLUICE_GIVEN_DIAGONAL = 2 /**< Each sequence says at which key; sluice_args::diagonals. Since ABI 1.1. */
};

/**
 * Granularity of the scales that values are multiplied with. Q, K and V of any type may have scales; FP8
 * usually has them, and U4 must. O has scales only if it is of E4M3FNUZ, and its values are divided by them.
 * Q and O have scales only per tensor or per head.
 */
enum sluice_scale_kind {
  SLUICE_SCALE_NONE = 0,       /**< Values are used as stored. */
  SLUICE_SCALE_PER_TENSOR = 1, /**< One scale. */
  SLUICE_SCALE_PER_HEAD = 2,   /**< One per head of the tensor. */
  SLUICE_SCALE_PER_TOKEN = 3,  /**< One per token and head: k_scales and v_scales of sluice_args. */
  SLUICE_SCALE_PER_PAGE = 4,   /**< One per page and head, in the same arrays; SLUICE_MODE_PAGED only. */
  SLUICE_SCALE_PER_GROUP = 5   /**< U4 only: one F16 per scale_group elements of a row, in the same arrays. */
};

/** A number for sluice_problem::v_pack. */
enum sluice_v_pack {
  SLUICE_V_PACK_ALL = 1 << 30 /**< All tokens of a page, or of a sequence in SLUICE_MODE_DENSE. */
};

/** How a paged KV cache names its pages. */
enum sluice_page_table_kind {
  SLUICE_PAGE_TABLE_NONE = 0,  /**< No pages. */
  SLUICE_PAGE_TABLE_BLOCK = 1, /**< [batch, pages] page numbers. */
  SLUICE_PAGE_TABLE_CSR = 2    /**< One list of page numbers, and where each sequence's begin. */
};

/** Base of the logarithm in LSE; ignored without SLUICE_WRITE_LSE. */
enum sluice_lse_base {
  SLUICE_LSE_BASE_E = 0, /**< Natural logarithm. */
  SLUICE_LSE_BASE_2 = 1  /**< Logarithm to base 2. */
};

/** What may influence the bits of a result. */
enum sluice_determinism {
  /** The fastest choice. Equal calls with one plan give equal bits. */
  SLUICE_DETERMINISM_FAST = 0,
  /** Also, a sequence's result depends neither on the batch size, nor on the other sequences in the batch,
     nor on the problem's bounds. Keys are split at fixed places, which takes workspace. max_batch and
     max_kv_len are required; max_q_len is required if these types and head dims have no kernel that takes
     many rows of one query head (the refusal with SLUICE_UNSUPPORTED names the missing field). */
  SLUICE_DETERMINISM_BATCH_INVARIANT = 1
};

/**
 * A class of attention calls: everything that selects a kernel, nothing that changes from call to call.
 *
 * Numerical contract. For row i and key j of one sequence, where query head h reads KV head
 * h / (q_heads / kv_heads) and shift is kv_len - q_len of the sequence for SLUICE_BOTTOM_RIGHT, 0 for
 * SLUICE_TOP_LEFT and diagonals[b] for SLUICE_GIVEN_DIAGONAL, the score is computed in this order:
 *
 *     S = scale * q_scale * k_scale * dot(q_i, k_j)
 *     S = soft_cap * tanh(S / soft_cap)                  if soft_cap is not 0
 *     S = S + bias_scale[h] * bias[i][j]                 if bias_type is not 0
 *     S = S - alibi_slopes[h] * |i + shift - j|          with SLUICE_ALIBI
 *
 * and with sums over the visible keys:
 *
 *     D[i]    = sum_j exp(S[i][j]) + (SLUICE_SINK_LOGITS ? exp(sink_logits[h]) : 0)
 *     LSE[i]  = ln D[i]                                  log2 D[i] for SLUICE_LSE_BASE_2
 *     O[i]    = sum_j exp(S[i][j]) / D[i] * v_scale * v_j / o_scale
 *
 * Key j is visible to row i if and only if 0 <= j < kv_len, and with d = j - i - shift
 *
 *     d <= window_right       if it applies; SLUICE_CAUSAL, or causal[b], is a window_right of 0
 *     d >= -window_left or j < sink_tokens               with SLUICE_HAS_WINDOW_LEFT
 *     the mask's bit is 1                                with SLUICE_BOOL_MASK
 *     bias[i][j] * log2(e) in F32 is not -infinity       with a bias
 *     its page's number is not negative                  with SLUICE_MISSING_PAGES_HIDDEN
 *
 * With SLUICE_SPANS, the first two do not apply if i + shift and j are in the same span.
 *
 * With SLUICE_SHARED_PREFIX a row has two sets of keys: first those of its prefix, then those of its
 * sequence.
 * - All keys of the prefix are visible.
 * - kv_len, j, shift, SLUICE_CAUSAL, causal[b] and spans above concern only the keys of the sequence. So with
 *   a causal mask the rows are the newest tokens, which are all after the prefix.
 * - Sums are over both sets, and a sink logit counts once.
 * - Refused with SLUICE_UNSUPPORTED: SLUICE_TOP_LEFT with SLUICE_CAUSAL or SLUICE_CAUSAL_BY_SEQUENCE;
 *   windows; a bias; SLUICE_BOOL_MASK; SLUICE_ALIBI; SLUICE_MISSING_PAGES_HIDDEN; an O of E4M3FNUZ; scales
 *   per token or group, except in SLUICE_MODE_PAGED.
 *
 * Further rules:
 * - A row without a visible key has O = 0 and LSE = -infinity, or the sink logit with SLUICE_SINK_LOGITS.
 *   This includes all rows of a sequence with kv_len 0 and without a prefix. A sequence with q_len 0 has no
 *   rows. Keys whose score is -infinity, which infinity in K can cause, have no weight; a row that sees only
 *   such keys is treated as a row without a visible key.
 * - Products of Q and K and of P and V are accumulated in F32, as are the maximum and the sum of the
 *   softmax. Before the second product, P, relative to a running maximum of the row, is rounded to the type
 *   of Q, F16 or BF16. The error is at most 0.70 of its last place and has nearly no bias; a P that the type
 *   represents exactly is unchanged. With Q of E4M3FNUZ, 2^7 P is rounded to nearest even: P has 4
 *   significant bits down to 2^-14, and weights of 2^-18 and below are lost. O is rounded to nearest even; an
 *   O of F32 is the sum, unrounded; an O of E4M3FNUZ is limited to +-240, and its NaN stays NaN.
 * - An element of U4, Q8_0 or Q4_0 is scale * (number - zero) with the scale of its group or block; zero is 0
 *   for Q8_0 and 8 for the others, unless a U4 has k_zeros or v_zeros. Elements of V are rounded to the type
 *   of Q like P, with an error of at most 0.78 of the last place; those beyond 65504 become 65504 with Q of
 *   F16. Elements of K, and all elements of other types, are exact. The score of a row of Q with an infinity
 *   may be NaN where it would be infinite, and so may any result of an infinite scale or zero.
 * - With scales of V per token or page, P includes them: it is relative to a running maximum of
 *   exp(S) * v_scale. Such a scale below 2^-60 counts as 2^-60, and none is above 2^40: the sums of D, which
 *   no scale changes, then keep every key that matters.
 * - A sum of P times V beyond the range of F32 is infinite, even where O would not be. P is at most 1 with Q
 *   of E4M3FNUZ and 2^8 otherwise, so only BF16 values with |V| above 2^120 / keys can cause this.
 * - Memory at and past a sequence's lengths (padding rows, unused slots of pages, gaps between and after
 *   sequences) never influences a result and is never written. sluice_args says which entries of a page table
 *   are read.
 * - NaN or infinity in a query row stays in its row, and in K or V at key j reaches only the rows that see j.
 *   In V it reaches those rows whose score is above -infinity, as NaN or infinity in the same element of O,
 *   and may reach the others. V never affects LSE.
 * - Scales are not negative. Those of K per token or page are finite, and so is bias_scale; those of V per
 *   token or page are at most 2^40, which sluice_reference checks, and the emulated device; o_scale is above
 *   2^-126, and finite.
 * - Sink logits are numbers, of any size, or -infinity, which is no sink. Beyond the scores, a sink takes all
 *   weight: O is 0, and LSE the sink. To base 2 it may be infinite.
 *
 * This version computes the following; everything else is SLUICE_UNSUPPORTED.
 * - mode, page_table_kind: all. page_size: any.
 * - q_type F16 or BF16: k_type and v_type are both q_type, E4M3FNUZ, E5M2FNUZ, I8, U4, Q8_0 or Q4_0;
 *   o_type is q_type, F32 or E4M3FNUZ.
 * - q_type E4M3FNUZ: k_type and v_type are E4M3FNUZ; o_type is F16, BF16, F32 or E4M3FNUZ.
 * - On gfx950, K and V may be of E4M3FN and E5M2 instead of the FNUZ types, and Q and O are not of FP8.
 * - head_dim_qk, head_dim_v: multiples of 8, or any number with SLUICE_PADDED_ROWS; they may differ. At
 *   most 512; head_dim_qk at most 576 with K of F16, BF16 or E4M3FNUZ. With O of E4M3FNUZ, head_dim_v,
 *   rounded up to a multiple of 8, is a multiple of 16.
 * - q_heads: at most 32768, a multiple of kv_heads.
 * - flags, windows, bias_type, lse_base, determinism: all.
 * - Scales: all kinds; per token and per page only if K and V are not of 16 bits.
 * - soft_cap: from 1e-30 to 65536.
 * - k_pack: a power of two from 8 up.
 * - v_pack: with head dims up to 128, and with K and V of 16 bits, or of E4M3FNUZ if Q is of 16 bits.
 *
 * Rules for v_pack, each checked: it is 0 in SLUICE_MODE_RAGGED, with SLUICE_V_IN_K and for U4, Q8_0 and
 * Q4_0, and SLUICE_V_PACK_ALL or 0 in SLUICE_MODE_DENSE. With it, page_size is a multiple of 8.
 *
 * Rules for types of blocks, each checked: with U4, Q8_0 or Q4_0 the head dim is a multiple of 32, and with
 * U4 of scale_group; k_pack is 0. U4 has SLUICE_SCALE_PER_GROUP, and no other type has it; Q8_0 and Q4_0 have
 * their scales in the blocks, and may have others on top. Q, O and a bias are of none of these types.
 *
 * `docs/reference/features.md` lists all features, as the library reports them. sluice_query_support answers
 * for one problem; sluice_list_kernels lists the kernels.
 */
typedef struct sluice_problem {
  uint32_t struct_size; /**< sizeof(sluice_problem). */
  uint32_t flags;       /**< sluice_problem_flag bits. */
  uint32_t mode;        /**< sluice_mode. */
  uint32_t q_type;      /**< sluice_dtype of Q; required. */
  uint32_t k_type;      /**< sluice_dtype of K; required. */
  uint32_t v_type;      /**< sluice_dtype of V; required. */
  uint32_t o_type;      /**< sluice_dtype of O: F16, BF16, F32 or E4M3FNUZ; required. */
  int32_t q_heads;      /**< Query heads, a multiple of kv_heads; required. */
  int32_t kv_heads;     /**< KV heads; required. */
  int32_t head_dim_qk;  /**< Elements of a row of Q and K; required. */
  int32_t head_dim_v;   /**< Elements of a row of V and O; required. */

  /* Upper bounds of the calls that a plan will serve; 0 means unbounded. sluice_run refuses a call that
     exceeds them. They influence the choice of kernel and fix the size of the workspace. */
  int32_t max_batch;    /**< Sequences per call. */
  int32_t max_q_len;    /**< Query rows per sequence. */
  int32_t max_kv_len;   /**< Keys per sequence. */
  int64_t max_q_tokens; /**< Rows of q per call: batch * q_len, or q_starts[batch] if given. */

  uint32_t mask_alignment; /**< sluice_mask_alignment of SLUICE_CAUSAL, windows and SLUICE_ALIBI. */
  int32_t window_left;     /**< Keys visible before the diagonal; >= 0, needs SLUICE_HAS_WINDOW_LEFT. */
  int32_t window_right;    /**< Keys visible after the diagonal; >= 0, needs SLUICE_HAS_WINDOW_RIGHT. */
  int32_t sink_tokens;     /**< First keys that window_left does not hide; needs SLUICE_HAS_WINDOW_LEFT. */

  float soft_cap;     /**< c > 0 replaces S by c * tanh(S / c); 0: no cap. */
  uint32_t bias_type; /**< Type of a matrix added to the scores: F32, F16 or BF16; 0: no bias. */

  uint32_t q_scale_kind; /**< sluice_scale_kind of Q. */
  uint32_t k_scale_kind; /**< sluice_scale_kind of K. */
  uint32_t v_scale_kind; /**< sluice_scale_kind of V. */

  int32_t page_size;        /**< Tokens per page; required in SLUICE_MODE_PAGED, else 0. */
  uint32_t page_table_kind; /**< sluice_page_table_kind; required in SLUICE_MODE_PAGED, else 0. */
  /** Elements per pack of an x-packed K cache, SLUICE_MODE_PAGED only; divides head_dim_qk; 0: none. */
  int32_t k_pack;

  uint32_t lse_base;    /**< sluice_lse_base. */
  uint32_t determinism; /**< sluice_determinism. */

  uint64_t workspace_ceiling_bytes; /**< Use only kernels that need at most this; 0: any. */

  uint32_t o_scale_kind; /**< NONE, PER_TENSOR or PER_HEAD (of Q); NONE unless O is FP8. Since ABI 1.1. */
  int32_t scale_group;   /**< Elements of a group: 32 or 64 for SLUICE_SCALE_PER_GROUP, else 0. */

  /* Bounds for SLUICE_SHARED_PREFIX, which requires them and max_q_tokens: results over the prefixes and over
     the sequences' own keys go to workspace, which has room for max_q_tokens rows of each. Without the flag
     both are 0. Since ABI 1.1. */
  int32_t max_prefixes;   /**< Prefixes per call. */
  int32_t max_prefix_len; /**< Keys per prefix. */

  /** Tokens per pack of V by columns, where the tokens of a column are neighbours: SLUICE_V_PACK_ALL, or in
      SLUICE_MODE_PAGED a power of two from 8 on that divides page_size; 0: V is by rows. Since ABI 1.1. */
  int32_t v_pack;
  uint32_t reserved; /**< Must be 0. */
} sluice_problem;

/**
 * Zeroes the struct and sets struct_size.
 * @return SLUICE_INVALID_ARGUMENT if problem is NULL or size too small.
 */
SLUICE_API sluice_status sluice_problem_init(sluice_problem *problem, size_t size) SLUICE_NOEXCEPT;

/* --------------------------------------------------------------------------------------- questions --- */

/** Result of sluice_query_support. */
typedef struct sluice_support {
  uint32_t struct_size;         /**< sizeof(sluice_support). */
  uint32_t workspace_alignment; /**< Required alignment of sluice_launch::workspace in bytes. */
  uint64_t workspace_bytes;     /**< Device memory that a run needs; may be 0. */
  uint32_t pointer_alignment;   /**< Required alignment of q, k, v and o in bytes. */
  uint32_t stride_multiple;     /**< Strides of q, k, v and o must be multiples of this, in elements. */
  char kernel[96];              /**< Name of the kernel that a plan would use. */
} sluice_support;

/**
 * Zeroes the struct and sets struct_size.
 * @return SLUICE_INVALID_ARGUMENT if support is NULL or size too small.
 */
SLUICE_API sluice_status sluice_support_init(sluice_support *support, size_t size) SLUICE_NOEXCEPT;

/**
 * Says whether a plan for this problem can be made, and what it needs. Touches no device.
 *
 * @param context  any kind
 * @param problem  the problem to ask about
 * @param support  nullable; filled on SLUICE_OK
 * @param error    nullable; on refusal names the field, the value asked for and the nearest supported
 *                 value
 * @return SLUICE_OK; SLUICE_INVALID_ARGUMENT; SLUICE_UNSUPPORTED; SLUICE_NEWER_STRUCT
 */
SLUICE_API sluice_status sluice_query_support(const sluice_context *context, const sluice_problem *problem,
                                              sluice_support *support, sluice_error *error) SLUICE_NOEXCEPT;

/** Returns only the workspace_bytes of sluice_query_support. @return as sluice_query_support */
SLUICE_API sluice_status sluice_workspace_size(const sluice_context *context, const sluice_problem *problem,
                                               uint64_t *bytes, sluice_error *error) SLUICE_NOEXCEPT;

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
                          of its last place, see sluice_problem) or "nearest_even"; else "". */
  char chips[64];      /**< Chips that it has machine code for, separated by commas. */
  char more_features[256]; /**< Features that `features` has no room for: those since ABI 1.1. */
} sluice_kernel_info;

/**
 * Zeroes the struct and sets struct_size.
 * @return SLUICE_INVALID_ARGUMENT if info is NULL or size too small.
 */
SLUICE_API sluice_status sluice_kernel_info_init(sluice_kernel_info *info, size_t size) SLUICE_NOEXCEPT;

/**
 * Returns one of the kernels for a context's chip, by index in the order of their names.
 *
 * @param context  any kind
 * @param index    which kernel; ignored if info is NULL
 * @param info     nullable
 * @param count    nullable; receives the number of kernels
 * @param error    nullable
 * @return SLUICE_OK; SLUICE_INVALID_ARGUMENT, also for an index past the end
 */
SLUICE_API sluice_status sluice_list_kernels(const sluice_context *context, uint32_t index,
                                             sluice_kernel_info *info, uint32_t *count,
                                             sluice_error *error) SLUICE_NOEXCEPT;

/* -------------------------------------------------------------------------------------------- plan --- */

/** A problem with its kernel chosen and loaded. */
typedef struct sluice_plan sluice_plan;

/**
 * Chooses the kernel for a problem and loads it onto the context's device, so that sluice_run only has to
 * launch it. Enqueues nothing. Legal during stream capture only if sluice_preload has loaded the kernels
 * before, because loading one allocates.
 *
 * @param context  any kind; a plan of a target can be described but not run
 * @param problem  what the calls will look like
 * @param out      receives the plan; NULL on failure. The caller owns it: sluice_plan_destroy.
 * @param error    nullable
 * @return as sluice_query_support; SLUICE_HIP; SLUICE_WRONG_ARCH; SLUICE_PACK_CORRUPT; SLUICE_OUT_OF_MEMORY
 */
SLUICE_API sluice_status sluice_plan_create(sluice_context *context, const sluice_problem *problem,
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

/**
 * Zeroes the struct and sets struct_size.
 * @return SLUICE_INVALID_ARGUMENT if info is NULL or size too small.
 */
SLUICE_API sluice_status sluice_plan_info_init(sluice_plan_info *info, size_t size) SLUICE_NOEXCEPT;

/** Fills `info`. @return SLUICE_OK; SLUICE_INVALID_ARGUMENT */
SLUICE_API sluice_status sluice_plan_describe(const sluice_plan *plan, sluice_plan_info *info,
                                              sluice_error *error) SLUICE_NOEXCEPT;

/**
 * Loads the kernel for a problem (every kernel of the context if problem is NULL) and keeps it loaded while
 * the context or one of its plans lives. Plans made later then load nothing.
 * @return as sluice_plan_create; SLUICE_NO_DEVICE for a target, which has no device to load onto
 */
SLUICE_API sluice_status sluice_preload(sluice_context *context, const sluice_problem *problem,
                                        sluice_error *error) SLUICE_NOEXCEPT;

/* -------------------------------------------------------------------------------------------- work --- */

/**
 * A tensor in memory: element [a][b][c][d] is at data + a * stride[0] + b * stride[1] + c * stride[2] +
 * d * stride[3] elements. In SLUICE_MODE_DENSE the indices are batch, token, head, dim in any memory order:
 * BSHD and BHSD differ only in strides. This struct has no struct_size: it is part of others and never grows.
 */
typedef struct sluice_tensor {
  void *data;        /**< Element [0][0][0][0]. */
  int64_t stride[4]; /**< In elements, each >= 0 (sluice_merge has exceptions); 0 repeats an input. */
} sluice_tensor;

/**
 * Bits of sluice_args::flags: for which members 0 is a number like any other. An unknown bit is refused with
 * SLUICE_NEWER_STRUCT. Since ABI 1.1.
 */
enum sluice_args_flag {
  /** `scale` is used as it is. If it is 0, so are all products of Q and K: without changes of the scores, a
     row is the mean of the values that it sees. */
  SLUICE_EXACT_SCALE = 1 << 0,
  /** `q_len`, `kv_len`, `prefix_len` and `prefix_count` are used as they are: 0 is no rows, no keys or no
     prefixes. */
  SLUICE_EXACT_LENGTHS = 1 << 1
};

/**
 * One call: pointers and numbers. All pointers are to device memory (host memory for sluice_reference), which
 * is read when the run executes, not when it is enqueued: a captured run replays with the lengths and tables
 * found there at that time.
 *
 * Sequence b has q_len[b] query rows and kv_len[b] keys:
 *
 *     q_len[b]  = q_lengths[b] if given, else q_starts[b + 1] - q_starts[b] if given, else q_len
 *     kv_len[b] = kv_lengths[b] if given, else kv_starts[b + 1] - kv_starts[b] if given, else kv_len
 *
 * Its row i, key j and head h are found at
 *
 *     q, o, lse   [b][i][h], or with q_starts [0][q_starts[b] + i][h]
 *     k, v        DENSE   [b][j][h]
 *                 RAGGED  [0][kv_starts[b] + j][h]
 *                 PAGED   [page][j % page_size][h] with page = number j / page_size of the sequence's table:
 *                         page_table[b * page_table_stride + n], or page_table[page_starts[b] + n] for CSR;
 *                         each KV head h has entries of its own, h * page_table_head_stride further
 *     bias, mask  [b][h of Q][i][j]
 *
 * With SLUICE_SHARED_PREFIX the rows of q from prefix_q_starts[p] on and before prefix_q_starts[p + 1] see
 * prefix p; rows before the first and from the last start on see no prefix. Row i of sequence b is number
 * q_starts[b] + i, or b * q_len + i without q_starts; then stride[0] of q is q_len * stride[1], so that rows
 * are found by their number. A prefix need not begin or end with a sequence. Prefix p has prefix_lengths[p]
 * keys if given, else prefix_len. Its key j is found at
 *
 *     DENSE, RAGGED    [p][j][h] of prefix_k and prefix_v
 *     PAGED            [page][j % page_size][h] of k and v (and of k_scales and v_scales), with the page's
 *                      number from prefix_page_table: as page_table, with prefixes instead of sequences
 *
 * Element e of a row is at e * stride[3], with stride[3] = 1. In an x-packed K cache, element e of a row is
 * at e / k_pack * stride[3] + e % k_pack.
 *
 * V by columns (v_pack): the tokens of a column are neighbours. With SLUICE_V_PACK_ALL, stride[1] of v is 1
 * and stride[3] is between columns. Else tokens are in packs, with stride[1] between packs: element e of the
 * row at token t of a page is, instead of t * stride[1] + e * stride[3], at
 *
 *     t / v_pack * stride[1] + e * stride[3] + t % v_pack
 *
 * Whole groups of 8 tokens are read: in SLUICE_MODE_DENSE a column has memory for kv_len tokens, rounded up
 * to a multiple of 8. The same holds for prefix_v and prefix_len.
 *
 * | member                   | DENSE    | RAGGED   | PAGED                                  |
 * | ------------------------ | -------- | -------- | -------------------------------------- |
 * | q_starts                 | NULL     | required | may be given                           |
 * | kv_starts                | NULL     | required | NULL                                   |
 * | q_lengths                | may be   | may be   | may be                                 |
 * | kv_lengths               | may be   | may be   | required                               |
 * | page_table               | NULL     | NULL     | required                               |
 * | page_starts              | NULL     | NULL     | required for CSR, NULL for BLOCK       |
 * | prefix_q_starts          | required | required | required                               |
 * | prefix_k, prefix_v       | required | required | all zero                               |
 * | prefix_lengths           | may be   | may be   | required                               |
 * | prefix_page_table        | NULL     | NULL     | required                               |
 * | prefix_page_starts       | NULL     | NULL     | required for CSR, NULL for BLOCK       |
 *
 * The members whose names begin with prefix_ are zero without SLUICE_SHARED_PREFIX.
 *
 * Only the page table entries for pages 0 to (kv_len[b] - 1) / page_size of sequence b are read. With
 * SLUICE_HAS_WINDOW_LEFT and SLUICE_BOTTOM_RIGHT, entries of pages before the window are not read either:
 * entry n is not read if both
 *
 *     n * page_size       >= sink_tokens
 *     (n + 1) * page_size <= kv_len[b] - q_len[b] - window_left
 *
 * The window of row 0 begins first, so no row of the sequence sees a key of this page. The page is not
 * touched either: it may already belong to another sequence, and its entry may be -1 or any number. The same
 * holds for SLUICE_GIVEN_DIAGONAL, with diagonals[b] in place of kv_len[b] - q_len[b]. If row 0 is in a span,
 * its window begins no later than the span.
 *
 * Sparse attention: a page table is a list of what to read. With SLUICE_MISSING_PAGES_HIDDEN, negative
 * entries pad it, at any place, and page_table_head_stride gives each KV head a list of its own. kv_len[b]
 * counts all entries; masks and windows count keys by their place in the list.
 * - Pages of keys for each sequence: as above.
 * - Keys for each query row: a row is a sequence with q_len 1, the problem's page_size is 1, and entries are
 *   slots as sluice_append counts them, page * rows per page + row, of a cache in which a page begins where
 *   the page before it ends: its stride[0] is its rows per page times stride[1]. In the call, stride[0] and
 *   stride[1] of k and v, and of k_scales and v_scales, are then the cache's stride[1], and page_count is the
 *   number of slots. No such view exists of caches whose pages have rows apart from these, such as
 *   [page][head][row][dim] with several heads, or of x-packed ones, or of scales per page.
 *
 * Lengths are at least 0 and at most q_len, kv_len and prefix_len of the call; if starts are given too, they
 * are at most the difference of the two starts. Starts are at least 0, do not decrease, and end within the
 * tensors. Entries that are read are page numbers, and for CSR each sequence has enough entries for its keys.
 * A run cannot check device memory, so the caller must ensure all this; sluice_reference checks it. The
 * consequences of breaking it are limited:
 *
 * - A negative length counts as 0, and one that is too long as the maximum. A negative start counts as 0, one
 *   that decreases as the one before it, and one beyond q_tokens, max_q_tokens or kv_tokens as that number.
 *   Results are then wrong, but they are stored only to the call's own rows of o and lse, unless neither
 *   q_tokens nor max_q_tokens is given: starts beyond the tensors then lead to stores beyond them.
 * - A page whose number is negative, or not below page_count, reads as zeros; with
 *   SLUICE_MISSING_PAGES_HIDDEN, its keys are hidden. Without page_count, a number that is too large is read
 *   out of bounds, and so are keys past the end of k and v without kv_tokens, and entries past the end of a
 *   table. These reads may fault; they store nothing.
 *
 *     q [batch, q_len, q_heads, head_dim_qk]      k [batch, kv_len, kv_heads, head_dim_qk]
 *     o [batch, q_len, q_heads, head_dim_v]       v [batch, kv_len, kv_heads, head_dim_v]
 *     lse [batch, q_len, q_heads], F32; stride[3] is 0 or 1 and has no effect
 *     k_scales, v_scales  F32, one for each row of a head of k and v, found like the row; stride[3] is 0 or 1
 *                         and has no effect, and stride[1] is 0 for SLUICE_SCALE_PER_PAGE. Per group: F16,
 *                         one for each scale_group elements of the row; stride[3] is 1
 *     k_zeros, v_zeros    F16, found like the scales
 *     spans [batch][span_count][2]: the first key of a span, and the one after its last
 *
 * The spans of a sequence are in ascending order and do not overlap; one that ends where it begins, or
 * before, is empty. A run cannot check this: spans that break it give wrong results, but no access out of
 * bounds.
 *
 * Rules, each checked:
 * - batch is from 1 to 65535 (above: SLUICE_UNSUPPORTED).
 * - q_len and kv_len are at least 1, or 0 for the problem's bound, which must then be set. They are within
 *   the bounds of the plan.
 * - q_len * q_heads / kv_heads rows are at most 65535 tiles of tile_q rows (see sluice_plan_info), and
 *   q_len + kv_len is at most 2^31 - 512 (else SLUICE_UNSUPPORTED).
 * - With SLUICE_SHARED_PREFIX:
 *   - prefix_count is from 1 to max_prefixes, and at most 65535 (above: SLUICE_UNSUPPORTED).
 *   - prefix_len is from 1 to max_prefix_len, or 0 for max_prefix_len.
 *   - q_tokens is at most max_q_tokens.
 *   - prefix_k and prefix_v follow the rules of k and v; prefix_page_table follows those of page_table, with
 *     prefix_len keys of prefix_count prefixes.
 *   - stride[0] of q is q_len * stride[1] unless q_starts is given or batch is 1.
 * - q, k, v and o:
 *   - data is 16-byte aligned; that of k and v of Q8_0 or Q4_0 is 2-byte aligned.
 *   - stride[3] is 1, but a multiple of 8 for k with k_pack and for v with v_pack.
 *   - The other strides are multiples of 8 elements, or of 32 for k and v of U4, Q8_0 or Q4_0; but
 *     stride[1] of v is 1 with SLUICE_V_PACK_ALL.
 *   - stride[1] of k and v is less than 2^25; stride[3] of k with k_pack is less than 2^22, and stride[3]
 *     of v with v_pack less than 2^23 (else SLUICE_UNSUPPORTED).
 *   - stride[0] is 0 for q, o and lse with q_starts, and for k and v with kv_starts.
 *   - In sluice_run the whole tensor is below address 2^48.
 * - page_count, q_tokens and kv_tokens are not negative, and 0 where they do not apply. page_count is at
 *   most 2^32 (else SLUICE_UNSUPPORTED).
 * - Arrays are aligned to their elements: 4 bytes, and 8 for a page table with SLUICE_PAGE_INDEX_64.
 * - page_table_stride is not negative. With several sequences it is enough for the pages of kv_len keys, or 0
 *   for one table that all of them share.
 * - page_table_head_stride is not negative, and 0 except in SLUICE_MODE_PAGED. For BLOCK with several KV
 *   heads it is enough for the pages of kv_len keys, or 0.
 * - lse: data is 4-byte aligned and not NULL if and only if the plan has SLUICE_WRITE_LSE.
 * - bias, bias_scale, mask, alibi_slopes, sink_logits, the scales, diagonals, causal and spans are given if
 *   and only if the problem says so: k_scale and v_scale for scales per tensor or head; k_scales and v_scales
 *   for scales per token, page or group; with SLUICE_ZERO_POINTS, k_zeros for k_scales per group, and v_zeros
 *   for v_scales per group.
 * - A stride of 0 broadcasts a dimension of bias, mask, k_scales or v_scales. If alibi_batch_stride or
 *   bias_scale_batch_stride is 0, all sequences share alibi_slopes or bias_scale.
 * - stride[3] of bias is 0 or 1, that of mask is 1. With SLUICE_MASK_NEW_ROWS, mask is
 *   [b][h of Q][i][j - kv_len[b] + q_len[b]].
 * - span_count is from 1 to 2^20 with SLUICE_SPANS, else 0.
 * - With SLUICE_GIVEN_DIAGONAL, diagonals[b] is between -2^30 and 2^30, and q_len is at most 2^30 (else
 *   SLUICE_UNSUPPORTED).
 * - The elements of o, and of lse, do not overlap each other. With q_starts and without q_tokens, only the
 *   device knows the number of rows, and the check covers two rows. The caller must ensure that they overlap
 *   no input; this is not checked.
 * - scale is finite and not negative (refused with SLUICE_UNSUPPORTED), and so is scale * log2(e) in F32; 0
 *   means 1 / sqrt(head_dim_qk).
 *
 * The problem does not say whether a call has q_lengths, q_starts in SLUICE_MODE_PAGED, or kv_lengths in
 * other modes: if the plan's kernel cannot read them, sluice_run refuses them with SLUICE_UNSUPPORTED.
 */
typedef struct sluice_args {
  uint32_t struct_size; /**< sizeof(sluice_args). */
  uint32_t flags;       /**< sluice_args_flag bits. */
  int32_t batch;        /**< Sequences. */
  int32_t q_len;        /**< Query rows of each sequence, or their maximum; 0: the problem's bound. */
  int32_t kv_len;       /**< Keys of each sequence, or their maximum; 0: the problem's bound. */
  float scale;          /**< Scale of the scores. */
  sluice_tensor q;      /**< Queries. */
  sluice_tensor k;      /**< Keys. */
  sluice_tensor v;      /**< Values; all zero with SLUICE_V_IN_K. */
  sluice_tensor o;      /**< Result. */
  sluice_tensor lse;    /**< Logarithm of the softmax denominator; data is NULL without SLUICE_WRITE_LSE. */

  const int32_t *q_starts;   /**< [batch + 1]: rows of q before each sequence's first. */
  const int32_t *kv_starts;  /**< [batch + 1]: rows of k and v before each sequence's first. */
  const int32_t *q_lengths;  /**< [batch]: query rows of each sequence. */
  const int32_t *kv_lengths; /**< [batch]: keys of each sequence. */

  const void *page_table;     /**< Page numbers: int32_t, or int64_t with SLUICE_PAGE_INDEX_64. */
  int64_t page_table_stride;  /**< BLOCK: entries from one sequence's first to the next one's; else 0. */
  const int32_t *page_starts; /**< CSR, [batch + 1]: entries before each sequence's first. */

  sluice_tensor bias;        /**< Added to the scores; all zero without bias_type. */
  sluice_tensor mask;        /**< Key j of a row is bit j % 8 of byte j / 8; strides count bytes. */
  const float *alibi_slopes; /**< [q_heads]. */
  const float *sink_logits;  /**< [q_heads], to base e. */
  const float *q_scale;      /**< [1] or [q_heads], by q_scale_kind. */
  const float *k_scale;      /**< [1] or [kv_heads], by k_scale_kind. */
  const float *v_scale;      /**< [1] or [kv_heads], by v_scale_kind. */

  int64_t page_count; /**< PAGED: pages of the cache; 0: unknown. From here on: since ABI 1.1. */
  int64_t q_tokens;   /**< With q_starts: rows of q, o and lse; 0: unknown. */
  int64_t kv_tokens;  /**< With kv_starts: rows of k and v; 0: unknown. */

  sluice_tensor k_scales;     /**< Scales of K per token, page or group; else all zero. */
  sluice_tensor v_scales;     /**< Scales of V per token, page or group; else all zero. */
  const float *o_scale;       /**< [1] or [q_heads], by o_scale_kind: O is divided by it. */
  const float *bias_scale;    /**< [q_heads], with SLUICE_BIAS_SCALE. */
  const int32_t *diagonals;   /**< [batch]: the key on row 0's diagonal, with SLUICE_GIVEN_DIAGONAL. */
  const int32_t *causal;      /**< [batch]: not 0 for causal sequences, with SLUICE_CAUSAL_BY_SEQUENCE. */
  const int32_t *spans;       /**< With SLUICE_SPANS. */
  int64_t span_count;         /**< Spans of each sequence. */
  int64_t alibi_batch_stride; /**< From one sequence's alibi_slopes to the next one's; 0: shared. */
  int64_t bias_scale_batch_stride; /**< The same for bias_scale. */

  /* SLUICE_SHARED_PREFIX; all zero without it. */
  int32_t prefix_count;              /**< Prefixes. */
  int32_t prefix_len;                /**< Keys of each prefix, or their maximum; 0: the problem's bound. */
  const int32_t *prefix_q_starts;    /**< [prefix_count + 1]: rows of q before each prefix's first. */
  const int32_t *prefix_lengths;     /**< [prefix_count]: keys of each prefix. */
  const void *prefix_page_table;     /**< Page numbers of the same type as in page_table. */
  int64_t prefix_page_table_stride;  /**< BLOCK: entries from one prefix's first to the next one's; else 0. */
  const int32_t *prefix_page_starts; /**< CSR, [prefix_count + 1]: entries before each prefix's first. */
  sluice_tensor prefix_k;            /**< DENSE and RAGGED: keys of the prefixes. */
  sluice_tensor prefix_v;            /**< DENSE and RAGGED: their values; all zero with SLUICE_V_IN_K. */
  sluice_tensor k_zeros; /**< With SLUICE_ZERO_POINTS: F16, with the strides of k_scales; else all zero. */
  sluice_tensor v_zeros; /**< The same for v_scales. */
  /** PAGED: entries of page_table from those of a KV head to the next one's; 0: heads share them. */
  int64_t page_table_head_stride;
} sluice_args;

/**
 * Zeroes the struct and sets struct_size.
 * @return SLUICE_INVALID_ARGUMENT if args is NULL or size too small.
 */
SLUICE_API sluice_status sluice_args_init(sluice_args *args, size_t size) SLUICE_NOEXCEPT;

/** Kind of a dependency. */
enum sluice_dependency_kind {
  SLUICE_DEPENDS_ON_EVENT = 1, /**< Wait for `event`, which the caller has recorded. */
  SLUICE_DEPENDS_ON_STREAM = 2 /**< Record `event` on `stream` now and wait for it, so for all work there. */
};

/** Something that must complete before a run starts. An array element, so it never grows. */
typedef struct sluice_dependency {
  uint32_t kind;     /**< sluice_dependency_kind. */
  uint32_t reserved; /**< Must be 0. */
  void *event;       /**< hipEvent_t of the caller; required for both kinds: the library creates no events. */
  void *stream;      /**< hipStream_t for SLUICE_DEPENDS_ON_STREAM (NULL: the default stream); else NULL. */
} sluice_dependency;

/** Where and when a run happens. */
typedef struct sluice_launch {
  uint32_t struct_size;      /**< sizeof(sluice_launch). */
  uint32_t dependency_count; /**< Elements of `dependencies`. */
  void *stream;              /**< hipStream_t of the context's device; NULL is the default stream. */
  void *workspace;           /**< Device memory, aligned and sized as the plan says; may hold anything. */
  uint64_t workspace_bytes;  /**< Size of `workspace`. */
  const sluice_dependency *dependencies; /**< Work that the run waits for; NULL if the count is 0. */
  void *signal_event;                    /**< Nullable hipEvent_t, recorded on `stream` after the run. */
} sluice_launch;

/**
 * Zeroes the struct and sets struct_size.
 * @return SLUICE_INVALID_ARGUMENT if launch is NULL or size too small.
 */
SLUICE_API sluice_status sluice_launch_init(sluice_launch *launch, size_t size) SLUICE_NOEXCEPT;

/**
 * Enqueues one call of a plan on launch->stream and returns without waiting.
 *
 * Launches one kernel; two if only the device knows which sequences are short enough for another kernel; one
 * more for the prefixes of SLUICE_SHARED_PREFIX; and one more if keys are split over workgroups and the
 * splits merged, or the results over prefixes and own keys (the plan then needs workspace). Besides these it
 * calls hipStreamWaitEvent, hipEventRecord and hipStreamIsCapturing if dependencies or signal_event need
 * them. It does not allocate, lock, load, log, or query or synchronise the device, and it is legal during
 * stream capture, including the first run. A captured run keeps the lengths, strides and pointers of its
 * call. While launch->stream is capturing, a dependency on a stream that is not capturing is refused.
 *
 * Device       the calling thread's current device must be the context's; this is not checked
 * Ordering     after the work on the stream and after the dependencies
 * Threads      any number at once with one plan, given different workspaces (if the plan needs one at
 *              all)
 * Faults       of the device appear where the caller synchronises, as with any HIP work
 *
 * @param plan    made for a HIP or emulated device
 * @param args    copied; pointers in it are device pointers
 * @param launch  copied; NULL is the default stream, without workspace, dependencies or signal_event
 * @param error   nullable
 * @return SLUICE_OK: enqueued. Otherwise nothing is enqueued: SLUICE_INVALID_ARGUMENT;
 *         SLUICE_UNSUPPORTED; SLUICE_NEWER_STRUCT; SLUICE_WORKSPACE_TOO_SMALL; SLUICE_NO_DEVICE for a
 *         plan of a target; SLUICE_HIP, or SLUICE_WRONG_ARCH if HIP returned hipErrorNoBinaryForGpu. All but
 *         the last two are found before the first HIP call. If a later launch of several fails, the ones
 *         before it are enqueued, and o and lse are incomplete. If recording signal_event fails, the code is
 *         SLUICE_HIP with field "signal_event", and the run itself is enqueued.
 */
SLUICE_API sluice_status sluice_run(const sluice_plan *plan, const sluice_args *args,
                                    const sluice_launch *launch, sluice_error *error) SLUICE_NOEXCEPT;

/* ------------------------------------------------------------------------------ cache operations --- */

/** Which elements of a row a rotation pairs, counted from the first that is rotated. */
enum sluice_rotary_style {
  SLUICE_ROTARY_HALVES = 0, /**< e and e + rotary_dim / 2, as GPT-NeoX and Llama do. */
  SLUICE_ROTARY_PAIRS = 1   /**< 2e and 2e + 1, as GPT-J does. */
};

/**
 * New rows of K and V, to be stored in a paged cache.
 *
 * Row t of k and v, t < tokens, goes to a slot of the cache, that is, to a row of a page:
 *
 * - with `slots`: page slots[t] / page_size, row slots[t] % page_size; a negative slot is skipped.
 * - with `starts`: t is a new row of the sequence b with starts[b] <= t < starts[b + 1], and becomes its key
 *   kv_lengths[b] - starts[b + 1] + t: lengths include the new keys. Its page comes from the table as in
 *   sluice_args. Rows before starts[0] and from starts[batch] on are skipped.
 *
 * A page whose number is negative, or not below page_count, is skipped too. So are rows between starts that
 * decrease, the rows of a sequence whose kv_lengths[b] is less than its new rows, and a row whose page is not
 * among the sequence's entries: page_table_stride of them, if that is not 0 and there are several sequences,
 * and for CSR those up to page_starts[b + 1]. So with page_count an append stores only to pages of the
 * caches, for any contents of the arrays. Without page_count, page numbers that are too large lead to stores
 * out of bounds. Entries past the end of a table, and positions past the end of `rotary`, are read out of
 * bounds and may fault. sluice_reference_append refuses what a device skips, except negative slots and rows
 * without a sequence.
 *
 *     k [0][tokens][kv_heads][head_dim_qk]        k_cache [page][row][kv_heads][head_dim_qk]
 *     v [0][tokens][kv_heads][head_dim_v]         v_cache [page][row][kv_heads][head_dim_v]
 *     q [0][tokens][q_heads][head_dim_qk]         q_out [0][tokens][q_heads][head_dim_qk]
 *
 * Strides as in sluice_args, k_pack and v_pack included. A cache of FP8 or I8 holds x / scale, rounded to
 * nearest even and limited to the type's largest number, +-240, +-57344 or +-127; NaN stays NaN in FP8 and
 * becomes 0 in I8. Before that, the first rotary_dim elements of a row of K are rotated: the pair (x, y)
 * number e becomes (x cos - y sin, y cos + x sin), with cos = rotary[p * rotary_stride + e] and sin =
 * rotary[p * rotary_stride + rotary_dim / 2 + e], or rotary_sin[p * rotary_stride + e], in F32. The position
 * p is positions[t], or the key's number if positions is NULL (which needs `starts`). The tables may hold any
 * numbers, for example those scaled for a longer context.
 *
 * Since ABI 1.1 one call can do the whole step of a layer between the projections and attention:
 *
 * - *Q.* With q_heads, rows of Q are normed and rotated like those of K, with the same positions and tables,
 *   and stored in q_out, in the source's type. With slots, a row of Q is processed whatever its slot is: the
 *   device that does not hold a key still needs the query, and every row needs a position if it is rotated.
 *   With starts, a row of Q is skipped exactly if no sequence has it as a new row, or if its kv_lengths[b] is
 *   less than its new rows; its page does not matter.
 * - *Tails.* With tail_dim, the last tail_dim elements of a row come from k_tail and q_tail, and k and q have
 *   rows of head_dim_qk - tail_dim elements: the rotary part of multi-head latent attention. A stride of 0
 *   over heads repeats one tail. k_tail is [0][tokens][kv_heads][tail_dim], q_tail the same with q_heads.
 * - *Norms.* With k_norm or q_norm, a row x of one head, without its tail, first becomes x[e] * norm[e] /
 *   sqrt(mean(x^2) + norm_epsilon), in F32 and without rounding before the rotation. Rows may be tiny; one
 *   whose sum of squares is beyond F32 becomes 0, or NaN where it is infinite.
 * - *Rotation.* The rotated elements are those from rotary_first on.
 * - *Scales.* PER_PAGE scales are read at k_scales [page][0][head]. PER_TOKEN scales are computed and stored
 *   at k_scales [page][row][head]: the largest finite |x| of the row of one head, after norm and rotation,
 *   divided by the type's largest number, in F32; 1 if the quotient is 0. Values are divided by what was
 *   stored. Scales may be subnormal, here and where they are given.
 * - *Blocks.* Q8_0 and Q4_0 have the bytes of ggml's quantize_row_q8_0_ref and quantize_row_q4_0_ref, step by
 *   step in F32. If the inverse of a block's scale is not finite, the block has the numbers of zeros.
 * - *Groups.* U4 has scales PER_GROUP, which are computed and stored at k_scales [page][row][head][group].
 *   The number of x is x / scale + zero:
 *
 *       without zero points       scale = largest |x| of the group / 7, zero = 8
 *       with SLUICE_ZERO_POINTS   scale = (largest x - smallest x) / 15, but 1 if that is less than
 *                                 |smallest x| / 32768; zero = -smallest x / scale, stored in k_zeros
 *
 *   A scale of 0 becomes 1. Scales and zeros are rounded to F16, limited to +-65504, and used as stored.
 *   Numbers are rounded to nearest even and limited to 0 to 15. Quotients are products with the inverse, in
 *   F32.
 * - The scale of a block or group with a NaN or an infinity is NaN.
 *
 * If two rows go to one slot, one of them is in it afterwards. All pointers are to device memory, which is
 * read when the work executes.
 *
 * Rules, each checked:
 * - k, v and the caches: data is 16-byte aligned; strides are multiples of 8 elements (of k_pack in an
 *   x-packed cache, and more in blocks), but stride[3] is 1 except in an x-packed cache and in v_cache with
 *   v_pack, and stride[1] of v_cache is 1 with SLUICE_V_PACK_ALL. stride[0] of k and v is 0.
 * - With SLUICE_V_IN_K, head_dim_v is 0, and v and v_cache are all zero.
 * - The elements of a cache, in any of its pages, do not overlap. The caller must ensure that they overlap no
 *   input; this is not checked.
 * - k_pack divides head_dim_qk; it is a multiple of 8 (else SLUICE_UNSUPPORTED), usually 8, or 16 for FP8.
 * - v_pack is 0, SLUICE_V_PACK_ALL or a power of two from 8 up that divides page_size, which is then a
 *   multiple of 8. It is 0 with SLUICE_V_IN_K and for U4, Q8_0 and Q4_0. The cache must be of source_type or
 *   E4M3FNUZ (else SLUICE_UNSUPPORTED).
 * - kv_heads * head_dim is at most 2^31 - 1, for K and for V (else SLUICE_UNSUPPORTED).
 * - A member is given exactly when its comment asks for it:
 *   - with slots neither batch, kv_lengths, page_table nor SLUICE_PAGE_INDEX_64; page_starts only for CSR
 *   - k_scale with PER_TENSOR and PER_HEAD, k_scales with PER_TOKEN, PER_PAGE and PER_GROUP, k_zeros with
 *     SLUICE_ZERO_POINTS, and the same for V
 *   - rotary, rotary_stride, rotary_type, rotary_first, rotary_sin and rotary_style only with rotary_dim
 *   - k_tail only, and always, with tail_dim; q and q_out with q_heads
 *   - norm_epsilon and norm_type only with a norm
 * - Arrays are aligned to their elements.
 * - k_scales and v_scales PER_TOKEN and PER_PAGE: data is 4-byte aligned; stride[3] is 0 or 1 and has no
 *   effect, and stride[1] has no effect with PER_PAGE.
 * - k_scales and v_scales PER_GROUP: data is 2-byte aligned, stride[3] is 1, and k_zeros and v_zeros have the
 *   strides of the scales.
 * - The elements of scales PER_TOKEN and PER_GROUP do not overlap.
 * - Scale kinds are PER_GROUP for U4, and only for U4; NONE for Q8_0 and Q4_0.
 * - For these three types head dims and the caches' strides, except stride[3], are multiples of 32, and
 *   k_pack is 0. For U4 head dims are multiples of scale_group too. Caches of Q8_0 and Q4_0 are 2-byte
 *   aligned.
 * - The rules for k hold for q and the tails; those for a cache hold for q_out, whose stride[0] is 0.
 *   tail_dim is less than head_dim_qk.
 * - With anything that ABI 1.1 has added, page_count excepted: rotary_dim is a multiple of 16, head dims are
 *   at most 1024, and tokens * q_heads and tokens * kv_heads are at most 2^31 - 1 (else SLUICE_UNSUPPORTED).
 */
typedef struct sluice_append {
  uint32_t struct_size; /**< sizeof(sluice_append). */
  /** SLUICE_PAGE_INDEX_64, SLUICE_V_IN_K (then V has no rows and no cache) and, since ABI 1.1,
     SLUICE_ZERO_POINTS, or 0. */
  uint32_t flags;
  uint32_t source_type; /**< sluice_dtype of k and v: F16 or BF16; required. */
  /** source_type, E4M3FNUZ, or since ABI 1.1 E5M2FNUZ, I8, U4, Q8_0 or Q4_0; required. */
  uint32_t cache_type;
  int32_t kv_heads;           /**< KV heads; required. */
  int32_t head_dim_qk;        /**< Elements of a row of K; required; a multiple of 8. */
  int32_t head_dim_v;         /**< Elements of a row of V; required without SLUICE_V_IN_K; a multiple of 8. */
  int32_t page_size;          /**< Rows per page; required. */
  uint32_t page_table_kind;   /**< sluice_page_table_kind; NONE with slots. */
  int32_t k_pack;             /**< As in sluice_problem. */
  uint32_t k_scale_kind;      /**< sluice_scale_kind; NONE unless the cache is FP8, I8 or U4. */
  uint32_t v_scale_kind;      /**< As k_scale_kind. */
  int32_t tokens;             /**< Rows of k and v; required. */
  int32_t batch;              /**< Sequences; 0 with slots. */
  int32_t rotary_dim;         /**< Elements of K that are rotated; even; 0: no rotation. */
  uint32_t rotary_style;      /**< sluice_rotary_style. */
  sluice_tensor k;            /**< New rows. */
  sluice_tensor v;            /**< New rows. */
  sluice_tensor k_cache;      /**< Where they go. */
  sluice_tensor v_cache;      /**< Where they go. */
  const int64_t *slots;       /**< [tokens], or NULL. */
  const int32_t *starts;      /**< [batch + 1], or NULL; one of slots and starts is given. */
  const int32_t *kv_lengths;  /**< [batch], with starts. */
  const void *page_table;     /**< With starts. */
  int64_t page_table_stride;  /**< BLOCK: entries from one sequence's first to the next one's; else 0. */
  const int32_t *page_starts; /**< CSR, [batch + 1]. */
  const float *k_scale;       /**< [1] or [kv_heads]. */
  const float *v_scale;       /**< [1] or [kv_heads]. */
  const float *rotary;        /**< [positions][rotary_dim]: cosines, then sines. */
  int64_t rotary_stride;      /**< Elements from one position to the next. */
  const int32_t *positions;   /**< [tokens], nullable. */
  int64_t page_count;         /**< Pages of each cache; not negative; 0: unknown. Since ABI 1.1. */
  /* From here on: since ABI 1.1. A member that is zero is not used. */
  uint32_t rotary_type;   /**< sluice_dtype of the tables: F16, BF16 or F32; 0 is F32; else cast `rotary`. */
  int32_t rotary_first;   /**< The first element that is rotated, of the rotary_dim; a multiple of 8. */
  const void *rotary_sin; /**< [positions][rotary_dim / 2] sines; NULL: they follow the cosines. */
  int32_t q_heads;        /**< Heads of Q; 0: no Q, and q, q_out and q_tail are all zero. */
  int32_t tail_dim;       /**< The last elements of a row, from another tensor; a multiple of 8; 0: none. */
  sluice_tensor q;        /**< New rows, of source_type. */
  sluice_tensor q_out;    /**< Where they go; may be q, with the same strides. */
  sluice_tensor k_tail;   /**< Tails of K, with tail_dim. */
  sluice_tensor q_tail;   /**< Tails of Q; all zero: rows of q are whole. */
  const void *q_norm;     /**< [head_dim_qk - tail_dim] weights of a norm of Q; nullable. */
  const void *k_norm;     /**< The same for K. */
  float norm_epsilon;     /**< Added to the mean square; finite, not negative; 0 without a norm. */
  uint32_t norm_type;     /**< sluice_dtype of the weights: source_type or F32; 0 is source_type. */
  /** [page][row][kv_heads], F32: of PER_TOKEN and PER_PAGE; PER_GROUP: [page][row][kv_heads][group], F16;
     else all zero. */
  sluice_tensor k_scales;
  sluice_tensor v_scales; /**< The same for V. */
  sluice_tensor k_zeros;  /**< With SLUICE_ZERO_POINTS, F16: what k_scales has PER_GROUP; else all zero. */
  sluice_tensor v_zeros;  /**< The same for V. */
  int32_t scale_group;    /**< Elements of a group: 32 or 64 for PER_GROUP, else 0. */
  int32_t v_pack;         /**< As in sluice_problem; 0: V by rows. */
} sluice_append;

/**
 * Zeroes the struct and sets struct_size.
 * @return SLUICE_INVALID_ARGUMENT if append is NULL or size too small.
 */
SLUICE_API sluice_status sluice_append_init(sluice_append *append, size_t size) SLUICE_NOEXCEPT;

/**
 * Enqueues an append on launch->stream (the default stream if launch is NULL) and returns without waiting.
 * Needs no workspace: launch->workspace_bytes is ignored. A context's first call for a kernel loads it, which
 * is not legal during stream capture; after sluice_preload with a NULL problem the rules of sluice_run hold.
 * @return as sluice_run
 */
SLUICE_API sluice_status sluice_kv_append(sluice_context *context, const sluice_append *append,
                                          const sluice_launch *launch, sluice_error *error) SLUICE_NOEXCEPT;

/** Bits of sluice_merge::flags. An unknown bit is refused with SLUICE_NEWER_STRUCT. Since ABI 1.1. */
enum sluice_merge_flag {
  /** An LSE of +infinity in partial_lse also marks a part that does not count, as in FlashAttention's results
     for rows without keys. */
  SLUICE_MERGE_INFINITY_IS_EMPTY = 1 << 0
};

/**
 * Results of attention over splits of the keys (`parts`), to be merged into one.
 *
 *     partial     [part][token][head][head_dim_v], partial_type   with partial_lse [part][token][head], F32
 *     o           [0][token][head][head_dim_v], o_type            lse [0][token][head], F32, data may be NULL
 *
 *     LSE = ln (sum_p exp(partial_lse[p]) + exp(sink))       O = sum_p exp(partial_lse[p] - LSE) * partial[p]
 *
 * A part whose LSE is -infinity does not count, even if its rows hold NaN; if no part counts, O = 0 and LSE =
 * -infinity, or the sink. A NaN in a row or LSE that counts stays in its row; an LSE of +infinity counts as
 * NaN, or with SLUICE_MERGE_INFINITY_IS_EMPTY as -infinity. o may be the memory of one of the parts, and lse
 * that of its LSEs, if they have the same types and strides. Since ABI 1.1 an O of E4M3FNUZ holds O /
 * o_scale, rounded to nearest even and limited to +-240; NaN stays NaN.
 *
 * Parts may be in any order and place: part 1 may be before part 0 in memory, which makes stride[0] of
 * partial and partial_lse negative, and with partial_list and partial_lse_list each part has pointers of its
 * own.
 *
 * LSEs that are [sequence][head][token] in memory need sequence_tokens: token t = s * sequence_tokens + i has
 * its LSEs at s * partial_lse_sequence_stride + i * stride[1] in partial_lse, and at s * lse_sequence_stride
 * + i * stride[1] in lse. Other layouts, [token][head] and [head][token] among them, need only strides.
 *
 * Rules, each checked:
 * - partial and o: data is 16-byte aligned, stride[3] is 1, the other strides are multiples of 8 elements.
 *   partial_lse and lse: data is 4-byte aligned. Pointers in the lists are aligned as data is.
 * - Strides are not negative, except for stride[0] of partial and partial_lse.
 * - The elements of o, and of lse, do not overlap each other.
 * - partial_list and partial_lse_list are both given or both NULL. With them, data and stride[0] of partial
 *   and partial_lse are zero.
 * - sequence_tokens is not negative and divides tokens. The sequence strides are not negative, and 0 without
 *   sequence_tokens; lse_sequence_stride is 0 where lse.data is NULL.
 * - o_type is partial_type, or any of the four if partial_type is F32; parts is at most 65536, and at most
 *   16 with partial_list; tokens * heads is at most 2^31 - 1 (else SLUICE_UNSUPPORTED).
 * - o_scale_kind is NONE unless o_type is E4M3FNUZ; o_scale is given exactly if it is not NONE, and 4-byte
 *   aligned. Its values, on the device, are above 0 (not checked).
 */
typedef struct sluice_merge {
  uint32_t struct_size;      /**< sizeof(sluice_merge). */
  uint32_t flags;            /**< sluice_merge_flag bits. */
  uint32_t partial_type;     /**< sluice_dtype: F32, F16 or BF16; required. */
  uint32_t o_type;           /**< F16, BF16, F32, or since ABI 1.1 E4M3FNUZ; required. */
  int32_t parts;             /**< At least 1. */
  int32_t tokens;            /**< At least 1. */
  int32_t heads;             /**< At least 1. */
  int32_t head_dim_v;        /**< A multiple of 8. */
  uint32_t lse_base;         /**< sluice_lse_base of partial_lse and lse. */
  uint32_t reserved;         /**< Must be 0. */
  sluice_tensor partial;     /**< Normalised results of the parts. */
  sluice_tensor partial_lse; /**< stride[3] is 0 or 1 and has no effect. */
  sluice_tensor o;           /**< stride[0] is 0. */
  sluice_tensor lse;         /**< stride[0] is 0; all zero if LSE is not wanted. */
  const float *sink_logits;  /**< [heads], to base e, nullable: counted once. */
  /** Host array [parts] of device pointers, which the call copies; nullable. Part p is at partial_list[p]
     instead of partial.data + p * partial.stride[0]. From here on: since ABI 1.1. */
  const void *const *partial_list;
  const void *const *partial_lse_list; /**< The same for partial_lse. */
  int64_t partial_lse_sequence_stride; /**< Elements from a sequence's first token to the next one's. */
  int64_t lse_sequence_stride;         /**< The same for lse. */
  int32_t sequence_tokens;             /**< Tokens of each sequence; 0: all are of one. */
  uint32_t o_scale_kind;               /**< NONE, PER_TENSOR or PER_HEAD. */
  const float *o_scale;                /**< [1] or [heads], of E4M3FNUZ results. */
} sluice_merge;

/**
 * Zeroes the struct and sets struct_size.
 * @return SLUICE_INVALID_ARGUMENT if merge is NULL or size too small.
 */
SLUICE_API sluice_status sluice_merge_init(sluice_merge *merge, size_t size) SLUICE_NOEXCEPT;

/** Enqueues a merge. Rules and return values as for sluice_kv_append. */
SLUICE_API sluice_status sluice_merge_states(sluice_context *context, const sluice_merge *merge,
                                             const sluice_launch *launch,
                                             sluice_error *error) SLUICE_NOEXCEPT;

/**
 * Pages of K and V caches, to be copied to other pages, or to other caches. Since ABI 1.1.
 *
 *     k_source, k_target [page][row][kv_heads][head_dim_qk]
 *     v_source, v_target [page][row][kv_heads][head_dim_v]
 *
 * All rows of page pairs[i][0] of the source go to page pairs[i][1] of the target; without pairs, page n goes
 * to page n. A pair with a number that is negative, or not below page_count, is skipped. Source and target
 * may be the same memory: to fork a sequence, or before a write to a page that several sequences share. A
 * page that several pairs write can hold a mixture of their source pages, and its scales can be of another of
 * these pages than its elements. A page that is both read and written is read in part as it was before, in
 * part as it is after. Without page_count, numbers that are too large lead to accesses out of bounds. Strides
 * as in sluice_args; source and target may have different ones, and different packs of K.
 *
 * Equal types are copied bit by bit, blocks included. From F16 or BF16 to E4M3FNUZ, elements become x / scale
 * as in sluice_append. To F16 and BF16, elements of FP8, I8, Q8_0, Q4_0 and U4 become their values, rounded
 * once to nearest even: scale * x, or for U4 scale * (x - zero), where zero is 8 without SLUICE_ZERO_POINTS.
 * A product that is subnormal in F32 may be rounded twice.
 *
 * Scales PER_TOKEN, PER_PAGE and PER_GROUP, and zero points, are arrays of the source as in sluice_append.
 * Between equal types they are copied to those of the target. The rules for pages hold for their scales too.
 *
 * Rules, each checked:
 * - Every cache: data is 16-byte aligned; strides are multiples of 8 elements (of its pack in an x-packed
 *   cache), but stride[3] is 1 except in an x-packed cache. With SLUICE_V_IN_K, head_dim_v is 0, and v_source
 *   and v_target are all zero.
 * - The elements of a target, in any of its pages, do not overlap.
 * - Types are equal, or from F16 or BF16 to E4M3FNUZ, or to F16 or BF16 from E4M3FNUZ, E5M2FNUZ, I8, U4, Q8_0
 *   or Q4_0 (else SLUICE_UNSUPPORTED).
 * - Scales are given as their kind says. The kind is PER_GROUP for U4, and only for U4; NONE for Q8_0,
 *   Q4_0 and between equal types of 16 and 32 bits; NONE, PER_TOKEN or PER_PAGE between equal types of a
 *   byte; NONE, PER_TENSOR or PER_HEAD to E4M3FNUZ; any of these otherwise.
 * - Caches in blocks, and arrays of scales, have the rules of sluice_append; head dims of U4 are multiples of
 *   scale_group. Arrays of the target are given exactly if those of the source are and types are equal.
 * - Packs divide head_dim_qk; they are multiples of 8 (else SLUICE_UNSUPPORTED). kv_heads * head_dim is at
 *   most 2^31 - 1, for K and for V, and so is the number of pairs, or of pages without pairs (else
 *   SLUICE_UNSUPPORTED).
 * - pairs is aligned to its elements, and pair_count is at least 1 with it and 0 without. page_count is not
 *   negative, and at least 1 without pairs.
 */
typedef struct sluice_page_copy {
  uint32_t struct_size; /**< sizeof(sluice_page_copy). */
  /** SLUICE_PAGE_INDEX_64 (of pairs), SLUICE_V_IN_K (then there is only K), SLUICE_ZERO_POINTS, or 0. */
  uint32_t flags;
  uint32_t source_type;   /**< sluice_dtype of the sources; required. */
  uint32_t target_type;   /**< sluice_dtype of the targets; required. */
  int32_t kv_heads;       /**< KV heads; required. */
  int32_t head_dim_qk;    /**< Elements of a row of K; required; a multiple of 8. */
  int32_t head_dim_v;     /**< Elements of a row of V; required without SLUICE_V_IN_K; a multiple of 8. */
  int32_t page_size;      /**< Rows per page; required. */
  int32_t source_k_pack;  /**< Elements per pack of an x-packed k_source; 0: none. */
  int32_t target_k_pack;  /**< The same for k_target. */
  uint32_t k_scale_kind;  /**< sluice_scale_kind. */
  uint32_t v_scale_kind;  /**< As k_scale_kind. */
  sluice_tensor k_source; /**< Pages to read. */
  sluice_tensor v_source; /**< Pages to read. */
  sluice_tensor k_target; /**< Pages to write. */
  sluice_tensor v_target; /**< Pages to write. */
  const void *pairs;      /**< [pair_count][2]: int32_t, or int64_t with SLUICE_PAGE_INDEX_64; nullable. */
  int64_t pair_count;     /**< Pairs; 0 without. */
  int64_t page_count;     /**< Pages of every cache; 0: unknown. */
  const float *k_scale;   /**< [1] or [kv_heads]. */
  const float *v_scale;   /**< [1] or [kv_heads]. */
  sluice_tensor k_scales; /**< Of k_source: PER_TOKEN, PER_PAGE, PER_GROUP; else all zero. */
  sluice_tensor v_scales; /**< The same for V. */
  sluice_tensor k_zeros;  /**< Of k_source, with SLUICE_ZERO_POINTS; else all zero. */
  sluice_tensor v_zeros;  /**< The same for V. */
  sluice_tensor k_target_scales; /**< Where k_scales go between equal types; else all zero. */
  sluice_tensor v_target_scales; /**< The same for V. */
  sluice_tensor k_target_zeros;  /**< Where k_zeros go between equal types; else all zero. */
  sluice_tensor v_target_zeros;  /**< The same for V. */
  int32_t scale_group;           /**< Elements of a group: 32 or 64 for PER_GROUP, else 0. */
  uint32_t reserved;             /**< Must be 0. */
} sluice_page_copy;

/**
 * Zeroes the struct and sets struct_size.
 * @return SLUICE_INVALID_ARGUMENT if copy is NULL or size too small.
 */
SLUICE_API sluice_status sluice_page_copy_init(sluice_page_copy *copy, size_t size) SLUICE_NOEXCEPT;

/** Enqueues a copy of pages. Rules and return values as for sluice_kv_append. */
SLUICE_API sluice_status sluice_kv_copy(sluice_context *context, const sluice_page_copy *copy,
                                        const sluice_launch *launch, sluice_error *error) SLUICE_NOEXCEPT;

/**
 * Keys of a paged cache, to be gathered in contiguous rows. Since ABI 1.1.
 *
 * Key first_keys[b] + j of sequence b, for all keys up to kv_lengths[b], goes to row out_starts[b] + j of
 * k_out and v_out. Its page comes from the table as in sluice_args. Rows of the outputs to which no key
 * belongs are not written: those past a sequence's keys, before out_starts[0], and from out_starts[batch] or
 * `tokens` on. Keys that have no row, because the next sequence starts there, are left out.
 *
 *     k_cache [page][row][kv_heads][head_dim_qk]        k_out [0][tokens][kv_heads][head_dim_qk]
 *     v_cache [page][row][kv_heads][head_dim_v]         v_out [0][tokens][kv_heads][head_dim_v]
 *
 * A page whose number is negative, or not below page_count, or whose entry is not among the sequence's (as in
 * sluice_append), reads as zeros. Without page_count, numbers that are too large are read out of bounds. A
 * negative first key counts as 0. Types, scales and strides as in sluice_page_copy.
 *
 * Rules, each checked: those of sluice_page_copy, for caches and outputs instead of sources and targets, and
 * - stride[0] of the outputs is 0, and their elements do not overlap. Scales and zero points of the outputs
 *   are [0][tokens][kv_heads][group]; a scale PER_PAGE goes to each of the page's keys.
 * - out_starts and kv_lengths are required, and page_starts exactly with SLUICE_PAGE_TABLE_CSR. Arrays are
 *   aligned to their elements. page_table_stride and page_count are not negative.
 */
typedef struct sluice_gather {
  uint32_t struct_size; /**< sizeof(sluice_gather). */
  /** SLUICE_PAGE_INDEX_64, SLUICE_V_IN_K (then there is only K), SLUICE_ZERO_POINTS, or 0. */
  uint32_t flags;
  uint32_t cache_type;        /**< sluice_dtype of the caches; required. */
  uint32_t out_type;          /**< sluice_dtype of the outputs; required. */
  int32_t kv_heads;           /**< KV heads; required. */
  int32_t head_dim_qk;        /**< Elements of a row of K; required; a multiple of 8. */
  int32_t head_dim_v;         /**< Elements of a row of V; required without SLUICE_V_IN_K; a multiple of 8. */
  int32_t page_size;          /**< Rows per page; required. */
  uint32_t page_table_kind;   /**< sluice_page_table_kind; required. */
  int32_t k_pack;             /**< Elements per pack of an x-packed k_cache; 0: none. */
  uint32_t k_scale_kind;      /**< sluice_scale_kind. */
  uint32_t v_scale_kind;      /**< As k_scale_kind. */
  int32_t batch;              /**< Sequences; required. */
  int32_t tokens;             /**< Rows of k_out and v_out; required. */
  sluice_tensor k_cache;      /**< Where the keys are. */
  sluice_tensor v_cache;      /**< Where the values are. */
  sluice_tensor k_out;        /**< Where the keys go. */
  sluice_tensor v_out;        /**< Where the values go. */
  const int32_t *out_starts;  /**< [batch + 1]: rows of the outputs before each sequence's first. */
  const int32_t *kv_lengths;  /**< [batch]: keys of each sequence in the cache. */
  const int32_t *first_keys;  /**< [batch]: the first key to gather; nullable: 0. */
  const void *page_table;     /**< Page numbers: int32_t, or int64_t with SLUICE_PAGE_INDEX_64. */
  int64_t page_table_stride;  /**< BLOCK: entries from one sequence's first to the next one's; else 0. */
  const int32_t *page_starts; /**< CSR, [batch + 1]. */
  int64_t page_count;         /**< Pages of each cache; 0: unknown. */
  const float *k_scale;       /**< [1] or [kv_heads]. */
  const float *v_scale;       /**< [1] or [kv_heads]. */
  sluice_tensor k_scales;     /**< Of k_cache: PER_TOKEN, PER_PAGE, PER_GROUP; else all zero. */
  sluice_tensor v_scales;     /**< The same for V. */
  sluice_tensor k_zeros;      /**< Of k_cache, with SLUICE_ZERO_POINTS; else all zero. */
  sluice_tensor v_zeros;      /**< The same for V. */
  sluice_tensor k_out_scales; /**< Where k_scales go between equal types; else all zero. */
  sluice_tensor v_out_scales; /**< The same for V. */
  sluice_tensor k_out_zeros;  /**< Where k_zeros go between equal types; else all zero. */
  sluice_tensor v_out_zeros;  /**< The same for V. */
  int32_t scale_group;        /**< Elements of a group: 32 or 64 for PER_GROUP, else 0. */
  uint32_t reserved;          /**< Must be 0. */
} sluice_gather;

/**
 * Zeroes the struct and sets struct_size.
 * @return SLUICE_INVALID_ARGUMENT if gather is NULL or size too small.
 */
SLUICE_API sluice_status sluice_gather_init(sluice_gather *gather, size_t size) SLUICE_NOEXCEPT;

/** Enqueues a gather. Rules and return values as for sluice_kv_append. */
SLUICE_API sluice_status sluice_kv_gather(sluice_context *context, const sluice_gather *gather,
                                          const sluice_launch *launch, sluice_error *error) SLUICE_NOEXCEPT;

/* -------------------------------------------------------------------------------------------- host --- */

/**
 * Computes a call on the host with plain loops in double precision: the reference for results, never chosen
 * silently.
 *
 * Takes the structs of a plan and a run, but all pointers are host pointers, aligned to their element;
 * strides can have any value, stride[3] need not be 1, and the limits of the device do not apply. Computes
 * all that sluice_problem and sluice_args describe, except a negative scale: every mode, mask and change of
 * the scores; Q, K and V of any types in any mixture; any head dims. P is not rounded; O is rounded once, to
 * nearest even; LSE is F32. NaN or infinity in a value reaches exactly the rows that see the key, for any
 * score, and in a key only those. Lengths, starts and page numbers are checked like everything else.
 *
 * @return SLUICE_OK: o (and lse) are written; SLUICE_INVALID_ARGUMENT; SLUICE_UNSUPPORTED;
 *         SLUICE_NEWER_STRUCT; SLUICE_OUT_OF_MEMORY
 */
SLUICE_API sluice_status sluice_reference(const sluice_problem *problem, const sluice_args *args,
                                          sluice_error *error) SLUICE_NOEXCEPT;

/**
 * Performs an append on the host with plain loops: the reference for what a device stores.
 *
 * Takes the struct of sluice_kv_append, with the same rules, but all pointers are host pointers. Elements are
 * normed and rotated in double precision and rounded once to the source's type, or divided by their scale and
 * rounded once to FP8. Starts, lengths, slots and page numbers are checked first: what a device would skip is
 * refused, except negative slots and rows without a sequence, and nothing is stored. Positions are not
 * negative.
 *
 * @return SLUICE_OK: the caches are written; SLUICE_INVALID_ARGUMENT, with the array's element as the field;
 *         SLUICE_UNSUPPORTED; SLUICE_NEWER_STRUCT; SLUICE_OUT_OF_MEMORY
 */
SLUICE_API sluice_status sluice_reference_append(const sluice_append *append,
                                                 sluice_error *error) SLUICE_NOEXCEPT;

/**
 * Copies pages on the host with plain loops: the reference for sluice_kv_copy, with the same rules, but all
 * pointers are host pointers. Numbers that are not below page_count are refused first, and nothing is stored;
 * pairs with negative numbers are skipped. Pairs are copied in their order. Since ABI 1.1.
 * @return SLUICE_OK: the targets are written; otherwise as sluice_reference_append
 */
SLUICE_API sluice_status sluice_reference_copy(const sluice_page_copy *copy,
                                               sluice_error *error) SLUICE_NOEXCEPT;

/**
 * Gathers keys on the host with plain loops: the reference for sluice_kv_gather, with the same rules, but all
 * pointers are host pointers. Starts, lengths, first_keys and page numbers are checked first: what a device
 * would read as zeros or leave out is refused, and nothing is stored. Since ABI 1.1.
 * @return SLUICE_OK: the outputs are written; otherwise as sluice_reference_append
 */
SLUICE_API sluice_status sluice_reference_gather(const sluice_gather *gather,
                                                 sluice_error *error) SLUICE_NOEXCEPT;

/* --------------------------------------------------------------------------------------- observing --- */

/** Events that make a trace record. */
enum sluice_trace_event {
  SLUICE_TRACE_PLAN = 1, /**< A plan was made. */
  SLUICE_TRACE_RUN = 2   /**< A run is about to be launched. */
};

/** One plan or run. Valid during the callback. */
typedef struct sluice_trace_record {
  uint32_t struct_size;     /**< Size of the record that the library wrote. */
  uint32_t event;           /**< sluice_trace_event. */
  uint32_t grid[3];         /**< Workgroups of this run, or at the plan's bounds (0 if a bound is missing). */
  uint32_t block[3];        /**< Lanes per workgroup. */
  uint32_t lds_bytes;       /**< LDS per workgroup. */
  uint32_t waves;           /**< Waves per workgroup. */
  uint64_t workspace_bytes; /**< Device memory that a run needs. */
  const char *kernel;       /**< Name of the kernel. */
  const char *reason;       /**< Why it was chosen. */
} sluice_trace_record;

/** Receives a record on the thread that makes the plan or the run. */
typedef void (*sluice_trace_fn)(const sluice_trace_record *record, void *user);

/**
 * Sets the function that sees every plan and run of a context; NULL, the initial state, switches tracing off.
 * Without a function, a run has no tracing cost. Threads: must not be called while another thread uses the
 * context or one of its plans.
 * @return SLUICE_OK; SLUICE_INVALID_ARGUMENT
 */
SLUICE_API sluice_status sluice_set_trace(sluice_context *context, sluice_trace_fn trace, void *user,
                                          sluice_error *error) SLUICE_NOEXCEPT;

/**
 * Encloses every sluice_run and every cache operation of a context in a range of roctx, which profilers show
 * (enabled = 1), or no longer (0, the initial state). A range begins before the call's first work in HIP and
 * ends with the call, also if that fails. Its text is the kernel's name and the problem in short:
 * "attn_fwd_f16_d128_q16_kv16_w4_decode b64 q1 kv4096 h32/8 paged causal". Since ABI 1.1.
 *
 * roctxRangePushA and roctxRangePop are those of the process. If it does not have both, they are taken from
 * librocprofiler-sdk-roctx.so.1, else from libroctx64.so.4. A program that runs with more rights than its
 * user (AT_SECURE) uses only those of the process. Without ranges, a call costs one test more.
 *
 * Threads: must not be called while another thread uses the context or one of its plans.
 * @return SLUICE_OK; SLUICE_INVALID_ARGUMENT; SLUICE_UNSUPPORTED if these functions are not found: the
 *         message names the places
 */
SLUICE_API sluice_status sluice_set_ranges(sluice_context *context, uint32_t enabled,
                                           sluice_error *error) SLUICE_NOEXCEPT;

/** Counts of the calls of sluice_run with a plan since the plan was made. Since ABI 1.1. */
typedef struct sluice_counters {
  uint32_t struct_size;    /**< sizeof(sluice_counters). */
  uint32_t reserved;       /**< 0. */
  uint64_t runs;           /**< Calls that returned SLUICE_OK. A captured run counts once, when captured. */
  uint64_t refused;        /**< Calls that returned anything else, a failure of HIP included. */
  uint64_t launches;       /**< Attention kernels that were enqueued: the sum of the next two. */
  uint64_t main_launches;  /**< ... of the kernel that sluice_plan_info names. */
  uint64_t other_launches; /**< ... of other kernels of the plan: for short sequences, or for prefixes. */
  uint64_t merge_launches; /**< Merges of split keys, or of prefixes and own keys, that were enqueued. */
} sluice_counters;

/**
 * Zeroes the struct and sets struct_size.
 * @return SLUICE_INVALID_ARGUMENT if counters is NULL or size too small.
 */
SLUICE_API sluice_status sluice_counters_init(sluice_counters *counters, size_t size) SLUICE_NOEXCEPT;

/**
 * Fills `counters`. Threads: any, also while others run the plan; every counter only grows, and is exact when
 * no run is in progress.
 * @return SLUICE_OK; SLUICE_INVALID_ARGUMENT
 */
SLUICE_API sluice_status sluice_plan_counters(const sluice_plan *plan, sluice_counters *counters,
                                              sluice_error *error) SLUICE_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#undef SLUICE_NOEXCEPT

#endif

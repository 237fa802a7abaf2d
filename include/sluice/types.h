/*===- types.h - the types that all calls share, the C ABI ------------------------------------------------===
 *
 * Status codes and errors, element types, tensors, the library and its log.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *===------------------------------------------------------------------------------------------------===*/
#ifndef SLUICE_TYPES_H
#define SLUICE_TYPES_H

/**
 * @file
 * @brief Status codes and errors, element types, tensors, the library and its log.
 */

#include <stddef.h>
#include <stdint.h>

/** @cond internal */
#if defined(SLUICE_BUILDING_LIBRARY)
#define SLUICE_API __attribute__((visibility("default")))
#else
#define SLUICE_API
#endif
#ifdef __cplusplus
#define SLUICE_NOEXCEPT noexcept
#else
#define SLUICE_NOEXCEPT
#endif
/** @endcond */

#ifdef __cplusplus
extern "C" {
#endif

/**
 * ABI generation: SONAME `libsluice.so.2`, symbol version node `SLUICE_2`. Within a generation nothing is
 * removed and nothing changes its meaning; see docs/concepts/abi.md.
 */
#define SLUICE_ABI_MAJOR 2
/** Counts additions to the ABI within its generation. */
#define SLUICE_ABI_MINOR 0

/* ------------------------------------------------------------------------------------------ status --- */

/** Result of a call: one of the SLUICE_* codes below. Values are frozen. */
typedef int32_t sluice_status;

/** Status codes, each with what the caller can do about it. */
enum sluice_status_code {
  SLUICE_OK = 0,               /**< Done, or enqueued. */
  SLUICE_INVALID_ARGUMENT = 1, /**< An argument breaks a documented rule: fix the call. */
  SLUICE_UNSUPPORTED = 2,      /**< Legal, but this library cannot compute it: use another path. */
  SLUICE_NEWER_STRUCT =
      3,                 /**< A field, flag or enumerator that this library does not know is set: upgrade. */
  SLUICE_NO_DEVICE = 4,  /**< The device, HIP runtime or emulator does not exist here. */
  SLUICE_WRONG_ARCH = 5, /**< The pack has no kernels for the device, or HIP found no code for it. */
  SLUICE_HIP = 6,        /**< A HIP call failed; sluice_error::hip_code has its code. */
  SLUICE_PACK_CORRUPT = 7,        /**< The kernel pack is truncated or altered: reinstall. */
  SLUICE_WORKSPACE_TOO_SMALL = 8, /**< Give at least what the plan says. */
  SLUICE_OUT_OF_MEMORY = 9,       /**< Host memory ran out. */
  SLUICE_INTERNAL = 10            /**< A defect of the library: report it with the message. */
};

/**
 * Details of a failed call. Owned by the caller, nullable everywhere, written only when the call fails.
 *
 * Set struct_size once; the struct then serves any number of calls. If it is smaller than this version's, or
 * larger than 65536, the call itself fails with SLUICE_INVALID_ARGUMENT and leaves the struct untouched.
 */
typedef struct sluice_error {
  uint32_t struct_size; /**< sizeof(sluice_error). */
  sluice_status code;   /**< What the call returned. */
  int32_t hip_code;     /**< The hipError_t if a HIP call failed, for any code; otherwise 0. */
  char field[52];       /**< The argument or field at fault, "keys[0].kv.k.stride[1]", or empty. */
  char message[448];    /**< One sentence: the field, its value, the rule or the nearest supported value. */
} sluice_error;

/** Zeroes the struct and sets struct_size. @return SLUICE_INVALID_ARGUMENT if it is NULL or size too small */
SLUICE_API sluice_status sluice_error_init(sluice_error *error, size_t size) SLUICE_NOEXCEPT;

/** "SLUICE_OK" and so on; "unknown status" for any other value. Static storage, never NULL. */
SLUICE_API const char *sluice_status_name(sluice_status status) SLUICE_NOEXCEPT;

/* ----------------------------------------------------------------------------------------- tensors --- */

/** Element types. The FP8 encodings are different types: FNUZ is CDNA3's, the other two are OCP's. */
enum sluice_dtype {
  SLUICE_F16 = 1,      /**< IEEE binary16. */
  SLUICE_BF16 = 2,     /**< bfloat16. */
  SLUICE_F32 = 3,      /**< IEEE binary32. */
  SLUICE_E4M3FNUZ = 4, /**< FP8, bias 8, maximum 240, one NaN, no infinity. */
  SLUICE_E4M3FN = 5,   /**< OCP FP8, bias 7, maximum 448. */
  SLUICE_E5M2FNUZ = 6, /**< FP8, bias 16, maximum 57344, one NaN, no infinity. */
  SLUICE_E5M2 = 7,     /**< OCP FP8, bias 15, maximum 57344, with infinities. */
  SLUICE_I8 = 8,       /**< Signed 8-bit integer; K and V only, like the next three. */
  /** Unsigned 4-bit integer, two per byte, the even element in the lower half; needs scales per group. */
  SLUICE_U4 = 9,
  /** ggml's block of 32 elements in 34 bytes: an F16 scale, then 32 signed bytes. */
  SLUICE_Q8_0 = 10,
  /** ggml's block of 32 elements in 18 bytes: an F16 scale, then 16 bytes; byte i has element i in its lower
     half and i + 16 in its upper half. An element is scale * (number - 8). */
  SLUICE_Q4_0 = 11
};

/**
 * A tensor in memory: element [a][b][c][d] is at data + a * stride[0] + b * stride[1] + c * stride[2] +
 * d * stride[3] elements. What the indices are is said where a tensor is asked for; their order in memory is
 * that of the strides. Part of other structs: it never grows.
 *
 * - Strides are not negative, except where parts are merged.
 * - A stride of 0 repeats an input. Elements of an output do not overlap.
 * - The stride of an index with only one value means nothing: it may be any number.
 */
typedef struct sluice_tensor {
  void *data;        /**< Element [0][0][0][0]. */
  int64_t stride[4]; /**< In elements. */
} sluice_tensor;

/* ----------------------------------------------------------------------------------------- library --- */

/** SLUICE_ABI_MAJOR << 16 | SLUICE_ABI_MINOR of the library at run time. */
SLUICE_API uint32_t sluice_abi_version(void) SLUICE_NOEXCEPT;

/** The release, e.g. "2.0.0". Static storage. */
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

/** Zeroes the struct and sets struct_size. @return SLUICE_INVALID_ARGUMENT if it is NULL or size too small */
SLUICE_API sluice_status sluice_build_init(sluice_build *build, size_t size) SLUICE_NOEXCEPT;

/** Fills `build`. Needs no device. @return SLUICE_OK; SLUICE_INVALID_ARGUMENT; SLUICE_PACK_CORRUPT */
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
 * log off. Runs never log. Threads: may be called at any time; once it returns, the previous function
 * is not called.
 */
SLUICE_API void sluice_set_log(sluice_log_fn log, void *user, uint32_t max_level) SLUICE_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif

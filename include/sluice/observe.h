/*===- observe.h - what the library does, the C ABI -------------------------------------------------------===
 *
 * Traces, ranges for profilers, and counters.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *===------------------------------------------------------------------------------------------------===*/
#ifndef SLUICE_OBSERVE_H
#define SLUICE_OBSERVE_H

/**
 * @file
 * @brief Traces, ranges for profilers, and counters.
 */

#include <sluice/attention.h>

#ifdef __cplusplus
extern "C" {
#endif

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
 * Encloses every run and every cache operation of a context in a range of roctx, which profilers show
 * (enabled = 1), or no longer (0, the initial state). A range begins before the call's first work in HIP and
 * ends with the call, also if that fails. Its text is the kernel's name and the problem in short:
 * "attn_fwd_f16_d128_q16_kv16_w4_decode b64 q1 kv4096 h32/8 paged causal".
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

/** Counts of the runs of a plan since it was made. */
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

/** Zeroes the struct and sets struct_size. @return SLUICE_INVALID_ARGUMENT if it is NULL or size too small */
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

#endif

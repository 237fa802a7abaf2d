/*===- calls.h - the calls of the C ABI that cgo cannot make directly ---------------------------------===
 *
 * Go cannot make these calls directly for three reasons. Structs with device addresses are made in memory
 * that Go's garbage collector does not scan, because a wrong address must be refused by the library, not
 * crash the collector: such memory arrives as `const void *`. Go memory that C sees must not hold pointers to
 * Go memory: such pointers arrive as separate arguments and are put into the struct here. And HIP's current
 * device belongs to a thread, while a goroutine may be on any thread.
 *
 * A pointer that represents a Go value is a number (cgo.Handle); 0 is NULL.
 *===------------------------------------------------------------------------------------------------===*/
#ifndef SLUICE_GO_CALLS_H
#define SLUICE_GO_CALLS_H

#include <sluice/sluice.h>
#include <stdbool.h>
#include <stdint.h>

/* HIP functions that make a context's device current, wait for it, and ask about captures. */
typedef struct sluice_go_device {
  int (*get)(int *ordinal); /* hipGetDevice; NULL for a target, which has no device to switch to. */
  int (*set)(int ordinal);  /* hipSetDevice */
  int (*synchronize)(void); /* hipDeviceSynchronize; NULL for a target. */
  int (*capture_info)(void *stream, int *status,
                      unsigned long long *id); /* hipStreamGetCaptureInfo or NULL. */
  int ordinal;
} sluice_go_device;

/* Fills `device` for a context. */
void sluice_go_find_device(sluice_go_device *device, const sluice_context *context, int ordinal);

/* Waits for all work of the device; returns hipDeviceSynchronize's code, 0 for a target. */
int sluice_go_synchronize(const sluice_go_device *device);

/* Whether a stream is capturing, and HIP's number for that capture. */
bool sluice_go_capture_of(const sluice_go_device *device, uintptr_t stream, uint64_t *id);

sluice_status sluice_go_context_create(const void *desc, uintptr_t resolver, sluice_context **out,
                                       sluice_error *error);

void sluice_go_set_log(uintptr_t log, uint32_t max_level);
sluice_status sluice_go_set_trace(sluice_context *context, uintptr_t trace, sluice_error *error);

sluice_status sluice_go_run(const sluice_go_device *device, const sluice_plan *plan, const void *args,
                            const void *launch, const void *dependencies, sluice_error *error);
sluice_status sluice_go_kv_append(const sluice_go_device *device, sluice_context *context, const void *append,
                                  const void *launch, const void *dependencies, sluice_error *error);
sluice_status sluice_go_merge_states(const sluice_go_device *device, sluice_context *context,
                                     const void *merge, const void *partial_list,
                                     const void *partial_lse_list, const void *launch,
                                     const void *dependencies, sluice_error *error);
sluice_status sluice_go_kv_copy(const sluice_go_device *device, sluice_context *context, const void *copy,
                                const void *launch, const void *dependencies, sluice_error *error);
sluice_status sluice_go_kv_gather(const sluice_go_device *device, sluice_context *context, const void *gather,
                                  const void *launch, const void *dependencies, sluice_error *error);

/* `args` has no pointers yet; the parameters after it become its members of the same names. */
sluice_status sluice_go_reference(
    const sluice_problem *problem, const void *args, uint8_t *q, uint8_t *k, uint8_t *v, uint8_t *o,
    uint8_t *lse, uint8_t *bias, uint8_t *mask, const int32_t *q_starts, const int32_t *kv_starts,
    const int32_t *q_lengths, const int32_t *kv_lengths, const uint8_t *page_table,
    const int32_t *page_starts, const float *alibi_slopes, const float *sink_logits, const float *q_scale,
    const float *k_scale, const float *v_scale, uint8_t *k_scales, uint8_t *v_scales, uint8_t *k_zeros,
    uint8_t *v_zeros, const float *o_scale, const float *bias_scale, const int32_t *diagonals,
    const int32_t *causal, const int32_t *spans, const int32_t *prefix_q_starts,
    const int32_t *prefix_lengths, const uint8_t *prefix_page_table, const int32_t *prefix_page_starts,
    uint8_t *prefix_k, uint8_t *prefix_v, sluice_error *error);
sluice_status sluice_go_reference_append(const void *append, uint8_t *k, uint8_t *v, uint8_t *k_cache,
                                         uint8_t *v_cache, const int64_t *slots, const int32_t *starts,
                                         const int32_t *kv_lengths, const uint8_t *page_table,
                                         const int32_t *page_starts, const float *k_scale,
                                         const float *v_scale, const void *rotary, const int32_t *positions,
                                         const void *rotary_sin, uint8_t *q, uint8_t *q_out, uint8_t *k_tail,
                                         uint8_t *q_tail, const void *q_norm, const void *k_norm,
                                         uint8_t *k_scales, uint8_t *v_scales, uint8_t *k_zeros,
                                         uint8_t *v_zeros, sluice_error *error);
sluice_status sluice_go_reference_copy(const void *copy, uint8_t *k_source, uint8_t *v_source,
                                       uint8_t *k_target, uint8_t *v_target, const uint8_t *pairs,
                                       const float *k_scale, const float *v_scale, uint8_t *k_scales,
                                       uint8_t *v_scales, uint8_t *k_zeros, uint8_t *v_zeros,
                                       uint8_t *k_target_scales, uint8_t *v_target_scales,
                                       uint8_t *k_target_zeros, uint8_t *v_target_zeros, sluice_error *error);
sluice_status sluice_go_reference_gather(const void *gather, uint8_t *k_cache, uint8_t *v_cache,
                                         uint8_t *k_out, uint8_t *v_out, const int32_t *out_starts,
                                         const int32_t *kv_lengths, const int32_t *first_keys,
                                         const uint8_t *page_table, const int32_t *page_starts,
                                         const float *k_scale, const float *v_scale, uint8_t *k_scales,
                                         uint8_t *v_scales, uint8_t *k_zeros, uint8_t *v_zeros,
                                         uint8_t *k_out_scales, uint8_t *v_out_scales, uint8_t *k_out_zeros,
                                         uint8_t *v_out_zeros, sluice_error *error);

#endif

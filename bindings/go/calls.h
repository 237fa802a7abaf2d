/*===- calls.h - the calls of the C ABI that cgo cannot make directly ---------------------------------===
 *
 * Callbacks are functions of C, and HIP's current device belongs to a thread, while a goroutine may be on any
 * thread: calls that enqueue make the context's device current and restore the thread's.
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

sluice_status sluice_go_context_create(const sluice_context_desc *desc, uintptr_t resolver,
                                       sluice_context **out, sluice_error *error);

void sluice_go_set_log(uintptr_t log, uint32_t max_level);
sluice_status sluice_go_set_trace(sluice_context *context, uintptr_t trace, sluice_error *error);

sluice_status sluice_go_attention_run(const sluice_go_device *device, const sluice_plan *plan,
                                      const sluice_attention_args *args, const sluice_launch *launch,
                                      sluice_error *error);
sluice_status sluice_go_attention_merge(const sluice_go_device *device, sluice_context *context,
                                        const sluice_merge_args *args, const sluice_launch *launch,
                                        sluice_error *error);
sluice_status sluice_go_cache_append(const sluice_go_device *device, sluice_context *context,
                                     const sluice_append_args *args, const sluice_launch *launch,
                                     sluice_error *error);
sluice_status sluice_go_cache_copy(const sluice_go_device *device, sluice_context *context,
                                   const sluice_copy_args *args, const sluice_launch *launch,
                                   sluice_error *error);
sluice_status sluice_go_cache_gather(const sluice_go_device *device, sluice_context *context,
                                     const sluice_gather_args *args, const sluice_launch *launch,
                                     sluice_error *error);

#endif

/*===- device.h - memory of a context's device ---------------------------------------------------------===
 *
 * Inline functions in C99 for programs that do not use HIP themselves: they call the HIP runtime that the
 * context is bound to, real or emulated. Each returns 0, or the hipError_t; hipErrorNotSupported (801) if the
 * context has no runtime.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *===------------------------------------------------------------------------------------------------===*/
#ifndef SLUICE_DEVICE_H
#define SLUICE_DEVICE_H

/**
 * @file
 * @brief Memory of a context's device.
 */

#include <sluice/context.h>

#include <string.h>

/** @cond internal */
/* ISO C has no conversion from void * to a function: POSIX's dlsym has the same rule. */
#define SLUICE_DEVICE_CALL(context, name, type, arguments)                                                   \
  do {                                                                                                       \
    void *symbol = sluice_context_hip_symbol(context, name);                                                 \
    int(*function) type;                                                                                     \
    if (symbol == NULL) return 801;                                                                          \
    memcpy(&function, &symbol, sizeof symbol);                                                               \
    return function arguments;                                                                               \
  } while (0)

/** @endcond */

/** Allocates device memory. */
static inline int sluice_device_malloc(const sluice_context *context, void **out, size_t bytes) {
  SLUICE_DEVICE_CALL(context, "hipMalloc", (void **, size_t), (out, bytes));
}

/** Frees it. */
static inline int sluice_device_free(const sluice_context *context, void *memory) {
  SLUICE_DEVICE_CALL(context, "hipFree", (void *), (memory));
}

/** Copies from host memory, and waits for the copy. */
static inline int sluice_device_write(const sluice_context *context, void *target, const void *source,
                                      size_t bytes) {
  SLUICE_DEVICE_CALL(context, "hipMemcpy", (void *, const void *, size_t, int), (target, source, bytes, 1));
}

/** Allocates device memory with a copy of host memory. Returns NULL if that fails. */
static inline void *sluice_device_copy(const sluice_context *context, const void *source, size_t bytes) {
  void *memory = NULL;
  if (sluice_device_malloc(context, &memory, bytes) != 0) return NULL;
  if (sluice_device_write(context, memory, source, bytes) == 0) return memory;
  sluice_device_free(context, memory);
  return NULL;
}

/** Waits for the default stream and copies to host memory. */
static inline int sluice_device_read(const sluice_context *context, void *target, const void *source,
                                     size_t bytes) {
  SLUICE_DEVICE_CALL(context, "hipMemcpy", (void *, const void *, size_t, int), (target, source, bytes, 2));
}

/** Waits for a stream; NULL is the default stream. */
static inline int sluice_device_wait(const sluice_context *context, void *stream) {
  SLUICE_DEVICE_CALL(context, "hipStreamSynchronize", (void *), (stream));
}

#undef SLUICE_DEVICE_CALL

#endif

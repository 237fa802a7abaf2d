/*===- hip.h - calls of HIP functions that were found by name -------------------------------------------===
 *
 * Each call makes the device of its context current on the thread that it happens to be on, and then restores
 * what was. Addresses of the device, streams and events are numbers.
 *===------------------------------------------------------------------------------------------------===*/
#ifndef SLUICE_GO_HIP_H
#define SLUICE_GO_HIP_H

#include <stddef.h>
#include <stdint.h>

typedef struct go_hip {
  int ordinal;
  int (*get_device)(int *);
  int (*set_device)(int);
  int (*malloc)(void **, size_t);
  int (*free)(void *);
  int (*memcpy)(void *, const void *, size_t, int);
  int (*memset)(void *, int, size_t);
  int (*mem_get_info)(size_t *, size_t *);
  int (*stream_create)(void **, unsigned);
  int (*stream_destroy)(void *);
  int (*stream_synchronize)(void *);
  int (*event_create)(void **, unsigned);
  int (*event_destroy)(void *);
  int (*event_record)(void *, void *);
  int (*event_synchronize)(void *);
  const char *(*get_error_string)(int);
} go_hip;

int go_hip_current_device(const go_hip *hip, int *ordinal);
int go_hip_malloc(const go_hip *hip, uintptr_t *memory, size_t bytes);
int go_hip_free(const go_hip *hip, uintptr_t memory);
int go_hip_upload(const go_hip *hip, uintptr_t to, const uint8_t *from, size_t bytes);
int go_hip_download(const go_hip *hip, uint8_t *to, uintptr_t from, size_t bytes);
int go_hip_memset(const go_hip *hip, uintptr_t memory, int value, size_t bytes);
int go_hip_mem_get_info(const go_hip *hip, size_t *free_bytes, size_t *total_bytes);
int go_hip_stream_create(const go_hip *hip, uintptr_t *stream);
int go_hip_stream_destroy(const go_hip *hip, uintptr_t stream);
int go_hip_stream_synchronize(const go_hip *hip, uintptr_t stream);
int go_hip_event_create(const go_hip *hip, uintptr_t *event);
int go_hip_event_destroy(const go_hip *hip, uintptr_t event);
int go_hip_event_record(const go_hip *hip, uintptr_t event, uintptr_t stream);
int go_hip_event_synchronize(const go_hip *hip, uintptr_t event);
const char *go_hip_error_string(const go_hip *hip, int code);

/* The emulator's own functions, of include/sluice/emulator.h. */
int go_hip_emulator_counters(void *function, uint64_t *counters, size_t bytes);
int go_hip_emulator_configure(void *function, const char *key, const char *value);

#endif

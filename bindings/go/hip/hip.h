/*===- hip.h - calls of HIP functions that were found by name -------------------------------------------===
 *
 * Each call makes the device of its context current on the calling thread, and then restores the previous
 * one. Device addresses, streams and events are numbers.
 *===------------------------------------------------------------------------------------------------===*/
#ifndef SLUICE_GO_HIP_H
#define SLUICE_GO_HIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct go_hip {
  int ordinal;
  int (*get_device)(int *);
  int (*set_device)(int);
  int (*malloc)(void **, size_t);
  int (*free)(void *);
  int (*host_malloc)(void **, size_t, unsigned);
  int (*host_free)(void *);
  int (*memcpy)(void *, const void *, size_t, int);
  int (*memcpy_async)(void *, const void *, size_t, int, void *);
  int (*memset)(void *, int, size_t);
  int (*mem_get_info)(size_t *, size_t *);
  int (*stream_create)(void **, unsigned);
  int (*stream_destroy)(void *);
  int (*stream_synchronize)(void *);
  int (*stream_query)(void *);
  int (*stream_wait_event)(void *, void *, unsigned);
  int (*event_create)(void **, unsigned);
  int (*event_destroy)(void *);
  int (*event_record)(void *, void *);
  int (*event_synchronize)(void *);
  int (*event_query)(void *);
  int (*stream_begin_capture)(void *, int);
  int (*stream_end_capture)(void *, void **);
  int (*stream_get_capture_info)(void *, int *, unsigned long long *);
  int (*graph_instantiate)(void **, void *, void *, char *, size_t);
  int (*graph_destroy)(void *);
  int (*graph_launch)(void *, void *);
  int (*graph_exec_destroy)(void *);
  const char *(*get_error_string)(int);
} go_hip;

int go_hip_current_device(const go_hip *hip, int *ordinal);
int go_hip_malloc(const go_hip *hip, uintptr_t *memory, size_t bytes);
int go_hip_free(const go_hip *hip, uintptr_t memory);
int go_hip_host_malloc(const go_hip *hip, void **memory, size_t bytes);
int go_hip_host_free(const go_hip *hip, void *memory);
int go_hip_upload(const go_hip *hip, uintptr_t to, const uint8_t *from, size_t bytes);
int go_hip_download(const go_hip *hip, uint8_t *to, uintptr_t from, size_t bytes);
/* `from` and `to` on the host are pinned C memory: HIP reads and writes them after the call. */
int go_hip_upload_async(const go_hip *hip, uintptr_t to, const void *from, size_t bytes, uintptr_t stream);
int go_hip_download_async(const go_hip *hip, void *to, uintptr_t from, size_t bytes, uintptr_t stream);
int go_hip_memset(const go_hip *hip, uintptr_t memory, int value, size_t bytes);
int go_hip_mem_get_info(const go_hip *hip, size_t *free_bytes, size_t *total_bytes);
int go_hip_stream_create(const go_hip *hip, uintptr_t *stream);
int go_hip_stream_destroy(const go_hip *hip, uintptr_t stream);
int go_hip_stream_synchronize(const go_hip *hip, uintptr_t stream);
int go_hip_stream_query(const go_hip *hip, uintptr_t stream);
int go_hip_stream_wait_event(const go_hip *hip, uintptr_t stream, uintptr_t event);
int go_hip_event_create(const go_hip *hip, uintptr_t *event);
int go_hip_event_destroy(const go_hip *hip, uintptr_t event);
int go_hip_event_record(const go_hip *hip, uintptr_t event, uintptr_t stream);
int go_hip_event_synchronize(const go_hip *hip, uintptr_t event);
int go_hip_event_query(const go_hip *hip, uintptr_t event);

/* Whether a stream is capturing, and HIP's number for that capture. */
bool go_hip_capture_of(const go_hip *hip, uintptr_t stream, uint64_t *id);
/* Begins a capture that only calls of this thread can invalidate; `id` as from go_hip_capture_of. */
int go_hip_begin_capture(const go_hip *hip, uintptr_t stream, uint64_t *id);
/* On the same thread. `graph` is 0 if the capture failed. */
int go_hip_end_capture(const go_hip *hip, uintptr_t stream, uintptr_t *graph);
/* Makes an instance that can be launched, and destroys the graph. */
int go_hip_graph_instantiate(const go_hip *hip, uintptr_t graph, uintptr_t *executable);
int go_hip_graph_destroy(const go_hip *hip, uintptr_t graph);
int go_hip_graph_launch(const go_hip *hip, uintptr_t executable, uintptr_t stream);
int go_hip_graph_exec_destroy(const go_hip *hip, uintptr_t executable);

const char *go_hip_error_string(const go_hip *hip, int code);

/* The emulator's own functions, from include/sluice/emulator.h. */
int go_hip_emulator_counters(void *function, uint64_t *counters, size_t bytes);
int go_hip_emulator_configure(void *function, const char *key, const char *value);

#endif

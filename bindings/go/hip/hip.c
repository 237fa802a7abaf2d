/*===- hip.c - calls of HIP functions that were found by name --------------------------------------===*/
#include "hip.h"

enum { host_to_device = 1, device_to_host = 2, non_blocking = 1, disable_timing = 2, thread_local_mode = 1 };

/* A failure here is not reported: the call that follows fails too. */
static int enter(const go_hip *hip) {
  int current = hip->ordinal;
  if (hip->get_device(&current) == 0 && current != hip->ordinal) hip->set_device(hip->ordinal);
  return current;
}

static int leave(const go_hip *hip, int previous, int code) {
  if (previous != hip->ordinal) hip->set_device(previous);
  return code;
}

int go_hip_current_device(const go_hip *hip, int *ordinal) {
  return hip->get_device(ordinal);
}

int go_hip_malloc(const go_hip *hip, uintptr_t *memory, size_t bytes) {
  void *made = NULL;
  const int previous = enter(hip);
  const int code = hip->malloc(&made, bytes);
  *memory = (uintptr_t)made;
  return leave(hip, previous, code);
}

int go_hip_free(const go_hip *hip, uintptr_t memory) {
  const int previous = enter(hip);
  return leave(hip, previous, hip->free((void *)memory));
}

int go_hip_host_malloc(const go_hip *hip, void **memory, size_t bytes) {
  const int previous = enter(hip);
  return leave(hip, previous, hip->host_malloc(memory, bytes, 0));
}

int go_hip_host_free(const go_hip *hip, void *memory) {
  const int previous = enter(hip);
  return leave(hip, previous, hip->host_free(memory));
}

int go_hip_upload(const go_hip *hip, uintptr_t to, const uint8_t *from, size_t bytes) {
  const int previous = enter(hip);
  return leave(hip, previous, hip->memcpy((void *)to, from, bytes, host_to_device));
}

int go_hip_download(const go_hip *hip, uint8_t *to, uintptr_t from, size_t bytes) {
  const int previous = enter(hip);
  return leave(hip, previous, hip->memcpy(to, (const void *)from, bytes, device_to_host));
}

int go_hip_upload_async(const go_hip *hip, uintptr_t to, const void *from, size_t bytes, uintptr_t stream) {
  const int previous = enter(hip);
  return leave(hip, previous, hip->memcpy_async((void *)to, from, bytes, host_to_device, (void *)stream));
}

int go_hip_download_async(const go_hip *hip, void *to, uintptr_t from, size_t bytes, uintptr_t stream) {
  const int previous = enter(hip);
  return leave(hip, previous,
               hip->memcpy_async(to, (const void *)from, bytes, device_to_host, (void *)stream));
}

int go_hip_memset(const go_hip *hip, uintptr_t memory, int value, size_t bytes) {
  const int previous = enter(hip);
  return leave(hip, previous, hip->memset((void *)memory, value, bytes));
}

int go_hip_mem_get_info(const go_hip *hip, size_t *free_bytes, size_t *total_bytes) {
  const int previous = enter(hip);
  return leave(hip, previous, hip->mem_get_info(free_bytes, total_bytes));
}

int go_hip_stream_create(const go_hip *hip, uintptr_t *stream) {
  void *made = NULL;
  const int previous = enter(hip);
  const int code = hip->stream_create(&made, non_blocking);
  *stream = (uintptr_t)made;
  return leave(hip, previous, code);
}

int go_hip_stream_destroy(const go_hip *hip, uintptr_t stream) {
  const int previous = enter(hip);
  return leave(hip, previous, hip->stream_destroy((void *)stream));
}

int go_hip_stream_synchronize(const go_hip *hip, uintptr_t stream) {
  const int previous = enter(hip);
  return leave(hip, previous, hip->stream_synchronize((void *)stream));
}

int go_hip_stream_query(const go_hip *hip, uintptr_t stream) {
  const int previous = enter(hip);
  return leave(hip, previous, hip->stream_query((void *)stream));
}

int go_hip_stream_wait_event(const go_hip *hip, uintptr_t stream, uintptr_t event) {
  const int previous = enter(hip);
  return leave(hip, previous, hip->stream_wait_event((void *)stream, (void *)event, 0));
}

int go_hip_event_create(const go_hip *hip, uintptr_t *event) {
  void *made = NULL;
  const int previous = enter(hip);
  const int code = hip->event_create(&made, disable_timing);
  *event = (uintptr_t)made;
  return leave(hip, previous, code);
}

int go_hip_event_destroy(const go_hip *hip, uintptr_t event) {
  const int previous = enter(hip);
  return leave(hip, previous, hip->event_destroy((void *)event));
}

int go_hip_event_record(const go_hip *hip, uintptr_t event, uintptr_t stream) {
  const int previous = enter(hip);
  return leave(hip, previous, hip->event_record((void *)event, (void *)stream));
}

int go_hip_event_synchronize(const go_hip *hip, uintptr_t event) {
  const int previous = enter(hip);
  return leave(hip, previous, hip->event_synchronize((void *)event));
}

int go_hip_event_query(const go_hip *hip, uintptr_t event) {
  const int previous = enter(hip);
  return leave(hip, previous, hip->event_query((void *)event));
}

bool go_hip_capture_of(const go_hip *hip, uintptr_t stream, uint64_t *id) {
  int status = 0; /* hipStreamCaptureStatusNone */
  unsigned long long number = 0;
  const int previous = enter(hip);
  const int code = hip->stream_get_capture_info((void *)stream, &status, &number);
  *id = number;
  return leave(hip, previous, code) == 0 && status != 0;
}

int go_hip_begin_capture(const go_hip *hip, uintptr_t stream, uint64_t *id) {
  const int previous = enter(hip);
  const int code = hip->stream_begin_capture((void *)stream, thread_local_mode);
  if (code == 0) go_hip_capture_of(hip, stream, id);
  return leave(hip, previous, code);
}

int go_hip_end_capture(const go_hip *hip, uintptr_t stream, uintptr_t *graph) {
  void *made = NULL;
  const int previous = enter(hip);
  const int code = hip->stream_end_capture((void *)stream, &made);
  *graph = (uintptr_t)made;
  return leave(hip, previous, code);
}

int go_hip_graph_instantiate(const go_hip *hip, uintptr_t graph, uintptr_t *executable) {
  void *made = NULL;
  const int previous = enter(hip);
  const int code = hip->graph_instantiate(&made, (void *)graph, NULL, NULL, 0);
  hip->graph_destroy((void *)graph);
  *executable = (uintptr_t)made;
  return leave(hip, previous, code);
}

int go_hip_graph_destroy(const go_hip *hip, uintptr_t graph) {
  const int previous = enter(hip);
  return leave(hip, previous, hip->graph_destroy((void *)graph));
}

int go_hip_graph_launch(const go_hip *hip, uintptr_t executable, uintptr_t stream) {
  const int previous = enter(hip);
  return leave(hip, previous, hip->graph_launch((void *)executable, (void *)stream));
}

int go_hip_graph_exec_destroy(const go_hip *hip, uintptr_t executable) {
  const int previous = enter(hip);
  return leave(hip, previous, hip->graph_exec_destroy((void *)executable));
}

const char *go_hip_error_string(const go_hip *hip, int code) {
  return hip->get_error_string(code);
}

int go_hip_emulator_counters(void *function, uint64_t *counters, size_t bytes) {
  return ((int (*)(uint64_t *, size_t))function)(counters, bytes);
}

int go_hip_emulator_configure(void *function, const char *key, const char *value) {
  return ((int (*)(const char *, const char *))function)(key, value);
}

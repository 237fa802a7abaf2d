/*===- calls.c - the calls of the C ABI that cgo cannot make directly ------------------------------===*/
#include "calls.h"

#include <stddef.h>

/* Exported by callbacks.go. */
void sluiceGoLog(uintptr_t log, uint32_t level, char *message);
void sluiceGoTrace(uintptr_t trace, sluice_trace_record *record);
void *sluiceGoResolve(uintptr_t resolver, char *name);

static void log_line(uint32_t level, const char *message, void *user) {
  sluiceGoLog((uintptr_t)user, level, (char *)message);
}

static void trace_record(const sluice_trace_record *record, void *user) {
  sluiceGoTrace((uintptr_t)user, (sluice_trace_record *)record);
}

static void *resolve(const char *name, void *user) {
  return sluiceGoResolve((uintptr_t)user, (char *)name);
}

void sluice_go_find_device(sluice_go_device *device, const sluice_context *context, int ordinal) {
  device->get = (int (*)(int *))sluice_context_hip_symbol(context, "hipGetDevice");
  device->set = (int (*)(int))sluice_context_hip_symbol(context, "hipSetDevice");
  device->synchronize = (int (*)(void))sluice_context_hip_symbol(context, "hipDeviceSynchronize");
  device->capture_info = (int (*)(void *, int *, unsigned long long *))sluice_context_hip_symbol(
      context, "hipStreamGetCaptureInfo");
  device->ordinal = ordinal;
}

/* Returns the device that was current, or the wanted one if nothing was changed. A failure here is not
   reported: the call that follows fails too, with a message. */
static int enter(const sluice_go_device *device) {
  int current = device->ordinal;
  if (device->get && device->set && device->get(&current) == 0 && current != device->ordinal)
    device->set(device->ordinal);
  return current;
}

static void leave(const sluice_go_device *device, int previous) {
  if (previous != device->ordinal) device->set(previous);
}

int sluice_go_synchronize(const sluice_go_device *device) {
  if (!device->synchronize) return 0;
  const int previous = enter(device);
  const int code = device->synchronize();
  leave(device, previous);
  return code;
}

bool sluice_go_capture_of(const sluice_go_device *device, uintptr_t stream, uint64_t *id) {
  int status = 0; /* hipStreamCaptureStatusNone */
  unsigned long long number = 0;
  if (!device->capture_info) return false;
  const int previous = enter(device);
  const int code = device->capture_info((void *)stream, &status, &number);
  leave(device, previous);
  *id = number;
  return code == 0 && status != 0;
}

sluice_status sluice_go_context_create(const sluice_context_desc *desc, uintptr_t resolver,
                                       sluice_context **out, sluice_error *error) {
  sluice_context_desc made = *desc;
  if (resolver) {
    made.hip_resolver = resolve;
    made.hip_resolver_user = (void *)resolver;
  }
  return sluice_context_create(&made, out, error);
}

void sluice_go_set_log(uintptr_t log, uint32_t max_level) {
  sluice_set_log(log ? log_line : NULL, (void *)log, max_level);
}

sluice_status sluice_go_set_trace(sluice_context *context, uintptr_t trace, sluice_error *error) {
  return sluice_set_trace(context, trace ? trace_record : NULL, (void *)trace, error);
}

/* A call that enqueues work, with the context's device current. */
#define ENQUEUE(device, call)                                                                                \
  do {                                                                                                       \
    const int previous = enter(device);                                                                      \
    const sluice_status status = (call);                                                                     \
    leave(device, previous);                                                                                 \
    return status;                                                                                           \
  } while (0)

sluice_status sluice_go_attention_run(const sluice_go_device *device, const sluice_plan *plan,
                                      const sluice_attention_args *args, const sluice_launch *launch,
                                      sluice_error *error) {
  ENQUEUE(device, sluice_attention_run(plan, args, launch, error));
}

sluice_status sluice_go_attention_merge(const sluice_go_device *device, sluice_context *context,
                                        const sluice_merge_args *args, const sluice_launch *launch,
                                        sluice_error *error) {
  ENQUEUE(device, sluice_attention_merge(context, args, launch, error));
}

sluice_status sluice_go_cache_append(const sluice_go_device *device, sluice_context *context,
                                     const sluice_append_args *args, const sluice_launch *launch,
                                     sluice_error *error) {
  ENQUEUE(device, sluice_cache_append(context, args, launch, error));
}

sluice_status sluice_go_cache_copy(const sluice_go_device *device, sluice_context *context,
                                   const sluice_copy_args *args, const sluice_launch *launch,
                                   sluice_error *error) {
  ENQUEUE(device, sluice_cache_copy(context, args, launch, error));
}

sluice_status sluice_go_cache_gather(const sluice_go_device *device, sluice_context *context,
                                     const sluice_gather_args *args, const sluice_launch *launch,
                                     sluice_error *error) {
  ENQUEUE(device, sluice_cache_gather(context, args, launch, error));
}

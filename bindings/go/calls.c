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

/* A call that enqueues work, between begin and end: the context's device is current. */
typedef struct enqueuing {
  const sluice_go_device *device;
  int previous;
  sluice_launch launch;
} enqueuing;

static enqueuing begin(const sluice_go_device *device, const void *launch, const void *dependencies) {
  enqueuing call = {device, 0, *(const sluice_launch *)launch};
  call.launch.dependencies = (const sluice_dependency *)dependencies;
  call.previous = enter(device);
  return call;
}

static sluice_status end(const enqueuing *call, sluice_status status) {
  leave(call->device, call->previous);
  return status;
}

sluice_status sluice_go_context_create(const void *desc, uintptr_t resolver, sluice_context **out,
                                       sluice_error *error) {
  sluice_context_desc made = *(const sluice_context_desc *)desc;
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

sluice_status sluice_go_run(const sluice_go_device *device, const sluice_plan *plan, const void *args,
                            const void *launch, const void *dependencies, sluice_error *error) {
  const enqueuing call = begin(device, launch, dependencies);
  return end(&call, sluice_run(plan, (const sluice_args *)args, &call.launch, error));
}

sluice_status sluice_go_kv_append(const sluice_go_device *device, sluice_context *context, const void *append,
                                  const void *launch, const void *dependencies, sluice_error *error) {
  const enqueuing call = begin(device, launch, dependencies);
  return end(&call, sluice_kv_append(context, (const sluice_append *)append, &call.launch, error));
}

sluice_status sluice_go_merge_states(const sluice_go_device *device, sluice_context *context,
                                     const void *merge, const void *partial_list,
                                     const void *partial_lse_list, const void *launch,
                                     const void *dependencies, sluice_error *error) {
  sluice_merge made = *(const sluice_merge *)merge;
  made.partial_list = (const void *const *)partial_list;
  made.partial_lse_list = (const void *const *)partial_lse_list;
  const enqueuing call = begin(device, launch, dependencies);
  return end(&call, sluice_merge_states(context, &made, &call.launch, error));
}

sluice_status sluice_go_kv_copy(const sluice_go_device *device, sluice_context *context, const void *copy,
                                const void *launch, const void *dependencies, sluice_error *error) {
  const enqueuing call = begin(device, launch, dependencies);
  return end(&call, sluice_kv_copy(context, (const sluice_page_copy *)copy, &call.launch, error));
}

sluice_status sluice_go_kv_gather(const sluice_go_device *device, sluice_context *context, const void *gather,
                                  const void *launch, const void *dependencies, sluice_error *error) {
  const enqueuing call = begin(device, launch, dependencies);
  return end(&call, sluice_kv_gather(context, (const sluice_gather *)gather, &call.launch, error));
}

sluice_status sluice_go_reference(
    const sluice_problem *problem, const void *args, uint8_t *q, uint8_t *k, uint8_t *v, uint8_t *o,
    uint8_t *lse, uint8_t *bias, uint8_t *mask, const int32_t *q_starts, const int32_t *kv_starts,
    const int32_t *q_lengths, const int32_t *kv_lengths, const uint8_t *page_table,
    const int32_t *page_starts, const float *alibi_slopes, const float *sink_logits, const float *q_scale,
    const float *k_scale, const float *v_scale, uint8_t *k_scales, uint8_t *v_scales, uint8_t *k_zeros,
    uint8_t *v_zeros, const float *o_scale, const float *bias_scale, const int32_t *diagonals,
    const int32_t *causal, const int32_t *spans, const int32_t *prefix_q_starts,
    const int32_t *prefix_lengths, const uint8_t *prefix_page_table, const int32_t *prefix_page_starts,
    uint8_t *prefix_k, uint8_t *prefix_v, sluice_error *error) {
  sluice_args made = *(const sluice_args *)args;
  made.q.data = q;
  made.k.data = k;
  made.v.data = v;
  made.o.data = o;
  made.lse.data = lse;
  made.bias.data = bias;
  made.mask.data = mask;
  made.q_starts = q_starts;
  made.kv_starts = kv_starts;
  made.q_lengths = q_lengths;
  made.kv_lengths = kv_lengths;
  made.page_table = page_table;
  made.page_starts = page_starts;
  made.alibi_slopes = alibi_slopes;
  made.sink_logits = sink_logits;
  made.q_scale = q_scale;
  made.k_scale = k_scale;
  made.v_scale = v_scale;
  made.k_scales.data = k_scales;
  made.v_scales.data = v_scales;
  made.k_zeros.data = k_zeros;
  made.v_zeros.data = v_zeros;
  made.o_scale = o_scale;
  made.bias_scale = bias_scale;
  made.diagonals = diagonals;
  made.causal = causal;
  made.spans = spans;
  made.prefix_q_starts = prefix_q_starts;
  made.prefix_lengths = prefix_lengths;
  made.prefix_page_table = prefix_page_table;
  made.prefix_page_starts = prefix_page_starts;
  made.prefix_k.data = prefix_k;
  made.prefix_v.data = prefix_v;
  return sluice_reference(problem, &made, error);
}

sluice_status sluice_go_reference_append(const void *append, uint8_t *k, uint8_t *v, uint8_t *k_cache,
                                         uint8_t *v_cache, const int64_t *slots, const int32_t *starts,
                                         const int32_t *kv_lengths, const uint8_t *page_table,
                                         const int32_t *page_starts, const float *k_scale,
                                         const float *v_scale, const void *rotary, const int32_t *positions,
                                         const void *rotary_sin, uint8_t *q, uint8_t *q_out, uint8_t *k_tail,
                                         uint8_t *q_tail, const void *q_norm, const void *k_norm,
                                         uint8_t *k_scales, uint8_t *v_scales, uint8_t *k_zeros,
                                         uint8_t *v_zeros, sluice_error *error) {
  sluice_append made = *(const sluice_append *)append;
  made.k.data = k;
  made.v.data = v;
  made.k_cache.data = k_cache;
  made.v_cache.data = v_cache;
  made.slots = slots;
  made.starts = starts;
  made.kv_lengths = kv_lengths;
  made.page_table = page_table;
  made.page_starts = page_starts;
  made.k_scale = k_scale;
  made.v_scale = v_scale;
  made.rotary = (const float *)rotary; /* of rotary_type */
  made.positions = positions;
  made.rotary_sin = rotary_sin;
  made.q.data = q;
  made.q_out.data = q_out;
  made.k_tail.data = k_tail;
  made.q_tail.data = q_tail;
  made.q_norm = q_norm;
  made.k_norm = k_norm;
  made.k_scales.data = k_scales;
  made.v_scales.data = v_scales;
  made.k_zeros.data = k_zeros;
  made.v_zeros.data = v_zeros;
  return sluice_reference_append(&made, error);
}

sluice_status sluice_go_reference_copy(const void *copy, uint8_t *k_source, uint8_t *v_source,
                                       uint8_t *k_target, uint8_t *v_target, const uint8_t *pairs,
                                       const float *k_scale, const float *v_scale, uint8_t *k_scales,
                                       uint8_t *v_scales, uint8_t *k_zeros, uint8_t *v_zeros,
                                       uint8_t *k_target_scales, uint8_t *v_target_scales,
                                       uint8_t *k_target_zeros, uint8_t *v_target_zeros,
                                       sluice_error *error) {
  sluice_page_copy made = *(const sluice_page_copy *)copy;
  made.k_source.data = k_source;
  made.v_source.data = v_source;
  made.k_target.data = k_target;
  made.v_target.data = v_target;
  made.pairs = pairs;
  made.k_scale = k_scale;
  made.v_scale = v_scale;
  made.k_scales.data = k_scales;
  made.v_scales.data = v_scales;
  made.k_zeros.data = k_zeros;
  made.v_zeros.data = v_zeros;
  made.k_target_scales.data = k_target_scales;
  made.v_target_scales.data = v_target_scales;
  made.k_target_zeros.data = k_target_zeros;
  made.v_target_zeros.data = v_target_zeros;
  return sluice_reference_copy(&made, error);
}

sluice_status sluice_go_reference_gather(const void *gather, uint8_t *k_cache, uint8_t *v_cache,
                                         uint8_t *k_out, uint8_t *v_out, const int32_t *out_starts,
                                         const int32_t *kv_lengths, const int32_t *first_keys,
                                         const uint8_t *page_table, const int32_t *page_starts,
                                         const float *k_scale, const float *v_scale, uint8_t *k_scales,
                                         uint8_t *v_scales, uint8_t *k_zeros, uint8_t *v_zeros,
                                         uint8_t *k_out_scales, uint8_t *v_out_scales, uint8_t *k_out_zeros,
                                         uint8_t *v_out_zeros, sluice_error *error) {
  sluice_gather made = *(const sluice_gather *)gather;
  made.k_cache.data = k_cache;
  made.v_cache.data = v_cache;
  made.k_out.data = k_out;
  made.v_out.data = v_out;
  made.out_starts = out_starts;
  made.kv_lengths = kv_lengths;
  made.first_keys = first_keys;
  made.page_table = page_table;
  made.page_starts = page_starts;
  made.k_scale = k_scale;
  made.v_scale = v_scale;
  made.k_scales.data = k_scales;
  made.v_scales.data = v_scales;
  made.k_zeros.data = k_zeros;
  made.v_zeros.data = v_zeros;
  made.k_out_scales.data = k_out_scales;
  made.v_out_scales.data = v_out_scales;
  made.k_out_zeros.data = k_out_zeros;
  made.v_out_zeros.data = v_out_zeros;
  return sluice_reference_gather(&made, error);
}

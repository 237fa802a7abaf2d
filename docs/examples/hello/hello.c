// One attention call: four keys that score the same, so that the result is the mean of their values.
#include <sluice/sluice.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { keys = 4, head_size = 128, host_to_device = 1, device_to_host = 2 };

static sluice_error error;

static int failed(sluice_status status) {
  if (status != SLUICE_OK) fprintf(stderr, "%s: %s\n", sluice_status_name(status), error.message);
  return status != SLUICE_OK;
}

int main(int count, char **arguments) {
  // The emulator runs the machine code that a GPU would; "gpu" asks for device 0 of the HIP runtime instead.
  sluice_context_desc desc;
  sluice_context_desc_init(&desc, sizeof desc);
  desc.kind = count > 1 && !strcmp(arguments[1], "gpu") ? SLUICE_DEVICE_HIP : SLUICE_DEVICE_EMULATED;
  sluice_error_init(&error, sizeof error);
  sluice_context *context;
  if (failed(sluice_context_create(&desc, &context, &error))) return 1;

  // A plan: what all calls have in common. It chooses the kernel and loads it.
  sluice_problem problem;
  sluice_problem_init(&problem, sizeof problem);
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F16;
  problem.q_heads = problem.kv_heads = 1;
  problem.head_dim_qk = problem.head_dim_v = head_size;
  sluice_plan *plan;
  if (failed(sluice_plan_create(context, &problem, &plan, &error))) return 1;

  // Device memory, through the HIP runtime that the context is bound to. Row j of V holds the number j.
  int (*hip_malloc)(void **, size_t) =
      (int (*)(void **, size_t))sluice_context_hip_symbol(context, "hipMalloc");
  int (*hip_memcpy)(void *, const void *, size_t, int) =
      (int (*)(void *, const void *, size_t, int))sluice_context_hip_symbol(context, "hipMemcpy");
  int (*hip_wait)(void *) = (int (*)(void *))sluice_context_hip_symbol(context, "hipStreamSynchronize");
  static const uint16_t zeros[keys * head_size];
  static const uint16_t numbers[keys] = {0x0000, 0x3c00, 0x4000, 0x4200}; // 0, 1, 2, 3 in binary16
  uint16_t v_rows[keys * head_size], result[head_size];
  for (int i = 0; i < keys * head_size; ++i)
    v_rows[i] = numbers[i / head_size];
  void *q, *k, *v, *o;
  if (hip_malloc(&q, sizeof result) || hip_malloc(&k, sizeof v_rows) || hip_malloc(&v, sizeof v_rows) ||
      hip_malloc(&o, sizeof result) || hip_memcpy(q, zeros, sizeof result, host_to_device) ||
      hip_memcpy(k, zeros, sizeof v_rows, host_to_device) ||
      hip_memcpy(v, v_rows, sizeof v_rows, host_to_device))
    return 1;

  // A call: pointers, element strides of [batch, token, head, dim], lengths. It is enqueued on a stream.
  sluice_args args;
  sluice_args_init(&args, sizeof args);
  args.batch = 1;
  args.q_len = 1;
  args.kv_len = keys;
  args.q = (sluice_tensor){q, {head_size, head_size, head_size, 1}};
  args.k = (sluice_tensor){k, {keys * head_size, head_size, head_size, 1}};
  args.v = (sluice_tensor){v, {keys * head_size, head_size, head_size, 1}};
  args.o = (sluice_tensor){o, {head_size, head_size, head_size, 1}};
  sluice_launch launch; // all zero: the default stream, nothing to wait for
  sluice_launch_init(&launch, sizeof launch);
  if (failed(sluice_run(plan, &args, &launch, &error))) return 1;
  if (hip_wait(NULL) || hip_memcpy(result, o, sizeof result, device_to_host)) return 1;

  printf("the mean of 0, 1, 2, 3 is 0x%04x in binary16\n", result[0]);
  sluice_plan_destroy(plan);
  sluice_context_destroy(context);
  return 0;
}

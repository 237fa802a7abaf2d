// One attention call: four keys that score the same, so that the result is the mean of their values.
#include <sluice/device.h>
#include <sluice/make.h>
#include <stdio.h>
#include <string.h>

enum { key_count = 4, dim = 128 };

int main(int count, char **arguments) {
  // The emulator runs the machine code that a GPU would; "hello gpu" takes device 0 of the HIP runtime.
  const int on_gpu = count > 1 && !strcmp(arguments[1], "gpu");
  sluice_context_desc desc = sluice_make_context_desc(on_gpu ? SLUICE_DEVICE_HIP : SLUICE_DEVICE_EMULATED, 0);
  sluice_error error = {.struct_size = sizeof error};
  sluice_context *context;
  sluice_plan *plan;

  // One head of 128 elements. A plan chooses the kernel for all calls of this kind, and loads it.
  sluice_kv_format format = sluice_kv_tensors(SLUICE_F16, 1, dim);
  sluice_attention attention = sluice_make_attention(SLUICE_F16, 1, &format);
  if (sluice_context_create(&desc, &context, &error) ||
      sluice_attention_plan(context, &attention, &plan, &error))
    return fprintf(stderr, "%s\n", error.message), 1;

  // Row j of V holds the number j in binary16; Q and K are zeros.
  static struct tensors {
    uint16_t q[dim], k[key_count][dim], v[key_count][dim], o[dim];
  } host, *device;
  for (int i = 0; i < dim; ++i)
    host.v[1][i] = 0x3c00, host.v[2][i] = 0x4000, host.v[3][i] = 0x4200;
  if (!(device = sluice_device_copy(context, &host, sizeof host))) return 1;

  // One sequence with one row, which attends to all keys, on the default stream.
  sluice_kv kv = sluice_make_kv(&format, sluice_packed(device->k, 1, dim), sluice_packed(device->v, 1, dim));
  sluice_keys keys = sluice_keys_of_equal(&kv, key_count);
  sluice_attention_args args =
      sluice_make_call(1, 1, sluice_packed(device->q, 1, dim), sluice_packed(device->o, 1, dim), &keys);
  if (sluice_attention_run(plan, &args, NULL, &error)) return fprintf(stderr, "%s\n", error.message), 1;
  if (sluice_device_read(context, host.o, device->o, sizeof host.o)) return 1;
  return printf("the mean of 0, 1, 2, 3 is 0x%04x in binary16\n", host.o[0]) < 0;
}

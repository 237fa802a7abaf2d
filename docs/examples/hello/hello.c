// One attention call: four keys that score the same, so that the result is the mean of their values.
#include <sluice/device.h>
#include <sluice/make.h>
#include <stdio.h>
#include <string.h>

enum { key_count = 4, dim = 128 };

int main(int count, char **arguments) {
  // The emulator runs the machine code that a GPU would; "hello gpu" takes device 0 of the HIP runtime.
  const int on_gpu = count > 1 && !strcmp(arguments[1], "gpu");
  sluice_context_desc desc = {.struct_size = sizeof desc,
                              .kind = on_gpu ? SLUICE_DEVICE_HIP : SLUICE_DEVICE_EMULATED};
  sluice_error error = {.struct_size = sizeof error};
  sluice_context *context;
  sluice_plan *plan;

  // One head of 128 elements. A plan chooses the kernel for all calls of this kind, and loads it.
  const sluice_kv_format format = sluice_kv_tensors(SLUICE_F16, 1, dim);
  const sluice_attention attention = sluice_make_attention(SLUICE_F16, 1, &format);
  if (sluice_context_create(&desc, &context, &error) ||
      sluice_attention_plan(context, &attention, &plan, &error))
    return fprintf(stderr, "%s\n", error.message), 1;

  // Row j of V holds the number j in binary16; Q and K are zeros.
  static uint16_t zeros[key_count * dim], values[key_count * dim], result[dim];
  for (int i = 0; i < key_count * dim; ++i)
    values[i] = (const uint16_t[]){0x0000, 0x3c00, 0x4000, 0x4200}[i / dim];
  void *q = sluice_device_copy(context, zeros, sizeof result),
       *o = sluice_device_copy(context, zeros, sizeof result);
  void *k = sluice_device_copy(context, zeros, sizeof zeros),
       *v = sluice_device_copy(context, values, sizeof values);
  if (!q || !k || !v || !o) return 1;

  // One sequence with one row, which attends to all keys, on the default stream.
  const sluice_kv kv =
      sluice_make_kv(&format, sluice_bshd(k, key_count, 1, dim), sluice_bshd(v, key_count, 1, dim));
  const sluice_keys keys = sluice_keys_of_equal(&kv, key_count);
  const sluice_attention_args args =
      sluice_make_call(1, 1, sluice_bshd(q, 1, 1, dim), sluice_bshd(o, 1, 1, dim), &keys);
  if (sluice_attention_run(plan, &args, NULL, &error)) return fprintf(stderr, "%s\n", error.message), 1;
  if (sluice_device_read(context, result, o, sizeof result)) return 1;
  return printf("the mean of 0, 1, 2, 3 is 0x%04x in binary16\n", result[0]) < 0;
}

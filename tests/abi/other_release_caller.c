/* A program compiled with the headers of another release, as make_header.py writes them: with structs that
 * are larger than the library's (SLUICE_TEST_NEWER), or with some that are smaller, and of no release's size.
 */
#include <sluice/device.h>
#include <sluice/make.h>

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) check((condition) != 0, #condition, __LINE__)

enum { keys = 4, head_size = 128 };

static sluice_error error;

static void check(int holds, const char *condition, int line) {
  if (holds) return;
  fprintf(stderr, "line %d: not so: %s\nthe last error: %s in \"%s\": %s\n", line, condition,
          sluice_status_name(error.code), error.field, error.message);
  exit(1);
}

/* A refusal that names this field, with this text in its message. */
static void check_refused(sluice_status status, sluice_status expected, const char *field, const char *part) {
  CHECK(status == expected && error.code == expected);
  CHECK(strcmp(error.field, field) == 0);
  CHECK(strstr(error.message, part) != NULL);
}

/* Rows of one head on the device, with the elements that the host has. */
static sluice_tensor rows_of(sluice_context *context, const uint16_t *host, int64_t rows) {
  sluice_tensor tensor = sluice_bshd(NULL, rows, 1, head_size);
  tensor.data = sluice_device_copy(context, host, (size_t)rows * head_size * sizeof *host);
  CHECK(tensor.data != NULL);
  return tensor;
}

/* An attention call, and cache operations. */
struct calls {
  sluice_kv_format format, pages_format;
  sluice_kv kv, pages;
  sluice_keys keys;
  sluice_attention attention;
  sluice_attention_args args;
  sluice_append_args append;
  sluice_copy_args copy;
  sluice_merge_args merge;
  sluice_launch launch;
};

static void fill(struct calls *c, sluice_context *context) {
  static const uint16_t zeros[keys * head_size], numbers[keys] = {0, 0x3c00, 0x4000, 0x4200}; /* 0, 1, 2, 3 */
  static const int64_t slots[1] = {0};
  uint16_t v[keys * head_size];
  int i;
  for (i = 0; i < keys * head_size; ++i)
    v[i] = numbers[i / head_size];
  c->format = sluice_kv_tensors(SLUICE_F16, 1, head_size);
  c->kv = sluice_make_kv(&c->format, rows_of(context, zeros, keys), rows_of(context, v, keys));
  c->keys = sluice_keys_of_equal(&c->kv, keys);
  c->attention = sluice_make_attention(SLUICE_F16, 1, &c->format);
  c->args = sluice_make_call(1, 1, rows_of(context, zeros, 1), rows_of(context, zeros, 1), &c->keys);
  c->pages_format = sluice_kv_pages(SLUICE_F16, 1, head_size, keys);
  c->pages = sluice_make_kv(&c->pages_format, c->kv.k, c->kv.v);
  c->append = sluice_make_append(&c->pages, SLUICE_F16, 1, c->args.q, c->args.q, NULL);
  c->append.slots = (const int64_t *)sluice_device_copy(context, slots, sizeof slots);
  memset(&c->copy, 0, sizeof c->copy);
  c->copy.struct_size = sizeof c->copy;
  c->copy.source = c->copy.target = &c->pages;
  memset(&c->merge, 0, sizeof c->merge);
  c->merge.struct_size = sizeof c->merge;
  c->merge.tokens = c->merge.heads = 1;
  c->merge.head_dim = head_size;
  c->merge.lse_base = SLUICE_LSE_LN;
  c->merge.o_format.type = c->merge.parts.type = SLUICE_F16;
  c->merge.parts.count = 1;
  c->merge.parts.o = c->args.q;
  c->merge.parts.lse = rows_of(context, zeros, 1);
  c->merge.o = c->args.q;
  CHECK(sluice_launch_init(&c->launch, sizeof c->launch) == SLUICE_OK);
}

#ifdef SLUICE_TEST_NEWER
/* The part of a struct that the library knows ends where `appended` begins here. */
#define CHECK_APPENDED(type, path, object, call)                                                             \
  do {                                                                                                       \
    char part[200];                                                                                          \
    CHECK((object).struct_size == sizeof(type));                                                             \
    (object).appended = 1;                                                                                   \
    snprintf(part, sizeof part, "%s sets byte %zu, but this library knows %s up to byte %zu: it is older",   \
             path, offsetof(type, appended), #type, offsetof(type, appended));                               \
    check_refused(call, SLUICE_NEWER_STRUCT, path, part);                                                    \
    (object).appended = 0;                                                                                   \
    CHECK((call) == SLUICE_OK);                                                                              \
  } while (0)

static void check_calls(struct calls *c, sluice_context *context, sluice_plan *plan) {
  uint16_t result[head_size];
  int i;
  sluice_plan_info info;
  memset(&info, 0xee, sizeof info);
  info.struct_size = sizeof info;
  CHECK(sluice_plan_describe(plan, &info, &error) == SLUICE_OK);
  CHECK(info.struct_size == sizeof info && info.kernel[0] != '\0');
  CHECK(info.appended == 0xeeeeeeeeeeeeeeee); /* the library does not write what it does not know */
  CHECK(sluice_attention_run(plan, &c->args, &c->launch, &error) == SLUICE_OK);
  CHECK(sluice_device_read(context, result, c->args.o.data, sizeof result) == 0);
  for (i = 0; i < head_size; ++i)
    CHECK(result[i] == 0x3e00); /* 1.5 */
#define RUN sluice_attention_run(plan, &c->args, &c->launch, &error)
#define SUPPORT sluice_attention_support(context, &c->attention, NULL, &error)
#define APPEND sluice_cache_append(context, &c->append, &c->launch, &error)
  CHECK_APPENDED(sluice_attention, "attention", c->attention, SUPPORT);
  CHECK_APPENDED(sluice_kv_format, "kv", c->format, SUPPORT);
  CHECK_APPENDED(sluice_attention_args, "args", c->args, RUN);
  CHECK_APPENDED(sluice_keys, "keys[0]", c->keys, RUN);
  CHECK_APPENDED(sluice_kv, "keys[0].kv", c->kv, RUN);
  CHECK_APPENDED(sluice_kv_format, "keys[0].kv.format", c->format, RUN);
  CHECK_APPENDED(sluice_launch, "launch", c->launch, RUN);
  CHECK_APPENDED(sluice_append_args, "args", c->append, APPEND);
  CHECK_APPENDED(sluice_kv, "kv", c->pages, APPEND);
  CHECK_APPENDED(sluice_merge_args, "args", c->merge,
                 sluice_attention_merge(context, &c->merge, &c->launch, &error));
  CHECK(sluice_device_wait(context, NULL) == 0);
}
#else
/* No release had these sizes: the library cannot know what is missing. */
static void check_size(sluice_status status, const char *path, size_t size) {
  char field[100], part[200];
  snprintf(field, sizeof field, "%s.struct_size", path);
  snprintf(part, sizeof part, "%s.struct_size is %zu; sizeof(", path, size);
  check_refused(status, SLUICE_INVALID_ARGUMENT, field, part);
}

static void check_calls(struct calls *c, sluice_context *context, sluice_plan *plan) {
  check_size(sluice_attention_run(plan, &c->args, &c->launch, &error), "args", sizeof c->args);
  check_size(sluice_cache_append(context, &c->append, &c->launch, &error), "args", sizeof c->append);
  check_size(sluice_attention_merge(context, &c->merge, &c->launch, &error), "args", sizeof c->merge);
  check_size(sluice_cache_copy(context, &c->copy, &c->launch, &error), "source", sizeof c->pages);
}
#endif

int main(void) {
  sluice_context_desc desc;
  sluice_context *context = NULL;
  sluice_plan *plan = NULL;
  struct calls calls;
  CHECK(sluice_error_init(&error, sizeof error) == SLUICE_OK);
  CHECK(sluice_context_desc_init(&desc, sizeof desc) == SLUICE_OK);
  desc.kind = SLUICE_DEVICE_EMULATED;
  CHECK(sluice_context_create(&desc, &context, &error) == SLUICE_OK);
  fill(&calls, context);
  CHECK(sluice_attention_plan(context, &calls.attention, &plan, &error) == SLUICE_OK);
  check_calls(&calls, context, plan);
  sluice_plan_destroy(plan);
  sluice_context_destroy(context);
  printf("a program with sluice_attention_args of %zu bytes is understood\n", sizeof calls.args);
  return 0;
}

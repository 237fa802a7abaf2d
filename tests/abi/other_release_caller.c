/* A program compiled with the header of another release, as make_header.py writes it: with structs that are
 * larger than the library's (SLUICE_TEST_NEWER), or with sluice_args of a size that was published before. */
#include <sluice/sluice.h>

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) check((condition) != 0, #condition, __LINE__)

enum { keys = 4, head_size = 128, to_device = 1, to_host = 2 };

static sluice_error error;
static int (*hip_malloc)(void **, size_t);
static int (*hip_memcpy)(void *, const void *, size_t, int);
static int (*hip_wait)(void *);

static void check(int holds, const char *condition, int line) {
  if (holds) return;
  fprintf(stderr, "line %d: not so: %s\nthe last error: %s in \"%s\": %s\n", line, condition,
          sluice_status_name(error.code), error.field, error.message);
  exit(1);
}

/* Rows of one head, with the elements that the host has. */
static sluice_tensor tensor(const uint16_t *host, int64_t rows) {
  sluice_tensor result = {NULL, {0, head_size, head_size, 1}};
  result.stride[0] = rows * head_size;
  CHECK(hip_malloc(&result.data, (size_t)rows * head_size * sizeof *host) == 0);
  CHECK(hip_memcpy(result.data, host, (size_t)rows * head_size * sizeof *host, to_device) == 0);
  return result;
}

/* The part of the struct that the library knows ends where `appended` begins here. */
#ifdef SLUICE_TEST_NEWER
#define CHECK_APPENDED(type, object, call)                                                                   \
  do {                                                                                                       \
    CHECK((object).struct_size == sizeof(type));                                                             \
    (object).appended = 1;                                                                                   \
    check_newer(#type, #object, offsetof(type, appended), call);                                             \
    (object).appended = 0;                                                                                   \
    CHECK((call) == SLUICE_OK);                                                                              \
  } while (0)

static void check_newer(const char *type, const char *object, size_t known, sluice_status status) {
  char rule[200];
  CHECK(status == SLUICE_NEWER_STRUCT && error.code == SLUICE_NEWER_STRUCT);
  CHECK(strcmp(error.field, object) == 0);
  snprintf(rule, sizeof rule,
           "%s sets byte %zu, but this library knows %s up to byte %zu: it is older than the caller's header",
           object, known, type, known);
  CHECK(strcmp(error.message, rule) == 0);
}
#endif

int main(void) {
  static const uint16_t zeros[keys * head_size], numbers[keys] = {0, 0x3c00, 0x4000, 0x4200}; /* 0, 1, 2, 3 */
  uint16_t v_rows[keys * head_size], result[head_size] = {0};
  int i;
  sluice_context_desc desc;
  sluice_context *context = NULL;
  sluice_problem problem;
  sluice_plan *plan = NULL;
  sluice_plan_info info;
  sluice_launch launch;
  /* The bytes after an argument belong to the program. */
  struct {
    sluice_args args;
    unsigned char others[1024];
  } memory;
  CHECK(sluice_error_init(&error, sizeof error) == SLUICE_OK);
  CHECK(sluice_context_desc_init(&desc, sizeof desc) == SLUICE_OK);
  desc.kind = SLUICE_DEVICE_EMULATED;
  CHECK(sluice_context_create(&desc, &context, &error) == SLUICE_OK);
  *(void **)&hip_malloc = sluice_context_hip_symbol(context, "hipMalloc");
  *(void **)&hip_memcpy = sluice_context_hip_symbol(context, "hipMemcpy");
  *(void **)&hip_wait = sluice_context_hip_symbol(context, "hipStreamSynchronize");
  CHECK(hip_malloc != NULL && hip_memcpy != NULL && hip_wait != NULL);

  CHECK(sluice_problem_init(&problem, sizeof problem) == SLUICE_OK);
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F16;
  problem.q_heads = problem.kv_heads = 1;
  problem.head_dim_qk = problem.head_dim_v = head_size;
  CHECK(sluice_plan_create(context, &problem, &plan, &error) == SLUICE_OK);
  memset(&info, 0xee, sizeof info);
  info.struct_size = sizeof info;
  CHECK(sluice_plan_describe(plan, &info, &error) == SLUICE_OK);
  CHECK(info.struct_size == sizeof info && info.kernel[0] != '\0' && info.reason[0] != '\0');

  for (i = 0; i < keys * head_size; ++i)
    v_rows[i] = numbers[i / head_size];
  memset(&memory, 0xee, sizeof memory);
  CHECK(sluice_args_init(&memory.args, sizeof memory.args) == SLUICE_OK);
  CHECK(memory.others[0] == 0xee);
  memory.args.batch = 1;
  memory.args.q_len = 1;
  memory.args.kv_len = keys;
  memory.args.q = tensor(zeros, 1);
  memory.args.k = tensor(zeros, keys);
  memory.args.v = tensor(v_rows, keys);
  memory.args.o = tensor(result, 1);
  CHECK(sluice_launch_init(&launch, sizeof launch) == SLUICE_OK);
  CHECK(sluice_run(plan, &memory.args, &launch, &error) == SLUICE_OK);
  CHECK(hip_wait(NULL) == 0);
  CHECK(hip_memcpy(result, memory.args.o.data, sizeof result, to_host) == 0);
  for (i = 0; i < head_size; ++i)
    CHECK(result[i] == 0x3e00); /* 1.5 */

#ifdef SLUICE_TEST_NEWER
  {
    sluice_args args = memory.args;
    CHECK(info.appended == 0xeeeeeeeeeeeeeeee); /* the library does not write what it does not know */
    CHECK_APPENDED(sluice_problem, problem, sluice_query_support(context, &problem, NULL, &error));
    CHECK_APPENDED(sluice_args, args, sluice_run(plan, &args, &launch, &error));
    CHECK_APPENDED(sluice_launch, launch, sluice_run(plan, &args, &launch, &error));
    CHECK(hip_wait(NULL) == 0);
  }
#else
  CHECK(sizeof(sluice_args) == 224);
  memory.args.struct_size = sizeof(sluice_args) - 8; /* not the size of any release */
  CHECK(sluice_run(plan, &memory.args, &launch, &error) == SLUICE_INVALID_ARGUMENT);
  CHECK(strcmp(error.field, "args.struct_size") == 0 && strstr(error.message, "is 216") != NULL);
#endif
  sluice_plan_destroy(plan);
  sluice_context_destroy(context);
  printf("a program with sluice_args of %zu bytes runs\n", sizeof memory.args);
  return 0;
}

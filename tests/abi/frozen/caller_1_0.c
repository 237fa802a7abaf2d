/* A program of release 1.0: compiled with that header and nothing of today's, it runs with today's library.
 * Every function is called and every struct filled; results are compared with loops of its own. Frozen like
 * the header: what it expects is what release 1.0 promised. */
#include "sluice_1_0.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) check((condition) != 0, #condition, __LINE__)
#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { batch = 2, rows = 3, keys = 5, q_heads = 4, kv_heads = 2, dim = 64, pages = 2, page_rows = 16 };
enum { to_device = 1, to_host = 2 };

static sluice_error error;
static int (*hip_malloc)(void **, size_t);
static int (*hip_free)(void *);
static int (*hip_memcpy)(void *, const void *, size_t, int);
static int (*hip_event_create)(void **);
static int (*hip_event_wait)(void *);
static int (*hip_event_destroy)(void *);

static void check(int holds, const char *condition, int line) {
  if (holds) return;
  fprintf(stderr, "line %d: not so: %s\nthe last error: %s in \"%s\": %s\n", line, condition,
          sluice_status_name(error.code), error.field, error.message);
  exit(1);
}

/* Numbers that binary16 holds exactly, and back. */
static uint16_t half(double value) {
  int exponent;
  double mantissa;
  if (value == 0) return 0;
  mantissa = frexp(fabs(value), &exponent);
  return (uint16_t)((value < 0 ? 0x8000 : 0) | ((exponent + 14) << 10) | ((int)(mantissa * 2048) & 0x3ff));
}
static double number(uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 0x3ff;
  const double value = exponent ? ldexp(mantissa + 1024, exponent - 25) : ldexp(mantissa, -24);
  return bits & 0x8000 ? -value : value;
}

static void fill(uint16_t *values, size_t count, uint32_t seed) {
  size_t i;
  for (i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    values[i] = half(((int)(seed >> 24 & 31) - 16 + (seed >> 31 ? 0.5 : 0.25)) / 16);
  }
}

static void *on_device(const void *host, size_t bytes) {
  void *memory = NULL;
  CHECK(hip_malloc(&memory, bytes) == 0);
  CHECK(hip_memcpy(memory, host, bytes, to_device) == 0);
  return memory;
}

static void get(void *host, void *memory, size_t bytes) {
  CHECK(hip_memcpy(host, memory, bytes, to_host) == 0);
  CHECK(hip_free(memory) == 0);
}

static void count_messages(uint32_t level, const char *message, void *user) {
  CHECK(level >= SLUICE_LOG_ERROR && level <= SLUICE_LOG_INFO && message[0] != '\0');
  ++*(int *)user;
}

static void count_records(const sluice_trace_record *record, void *user) {
  CHECK(record->struct_size >= sizeof *record);
  CHECK(record->event == SLUICE_TRACE_PLAN || record->event == SLUICE_TRACE_RUN);
  CHECK(record->kernel[0] != '\0' && record->reason[0] != '\0' && record->workspace_bytes <= 1 << 20);
  CHECK(record->block[0] == 64 * record->waves && record->block[1] == 1 && record->block[2] == 1);
  CHECK(record->event != SLUICE_TRACE_RUN || record->grid[0] * record->grid[1] * record->grid[2] > 0);
  CHECK(record->lds_bytes <= 65536);
  ++((int *)user)[record->event];
}

static void *entry_point(const sluice_context *context, const char *name) {
  void *function = sluice_context_hip_symbol(context, name);
  CHECK(function != NULL);
  return function;
}

static sluice_context *emulated(void) {
  sluice_context_desc desc;
  sluice_device_info info;
  sluice_context *context = NULL;
  CHECK(sluice_context_desc_init(&desc, sizeof desc) == SLUICE_OK);
  desc.kind = SLUICE_DEVICE_TARGET;
  desc.target = "gfx1:1";
  CHECK(sluice_context_create(&desc, &context, &error) == SLUICE_WRONG_ARCH && context == NULL);
  desc.kind = SLUICE_DEVICE_EMULATED;
  desc.target = NULL;
  CHECK(sluice_context_create(&desc, &context, &error) == SLUICE_OK);
  CHECK(sluice_device_info_init(&info, sizeof info) == SLUICE_OK);
  CHECK(sluice_context_device(context, &info, &error) == SLUICE_OK);
  CHECK(info.struct_size == sizeof info && info.kind == SLUICE_DEVICE_EMULATED && info.ordinal == 0);
  CHECK(info.compute_units > 0 && info.wave_size == 64 && info.lds_bytes == 65536);
  CHECK(info.hip_runtime_version > 0 && info.reserved == 0);
  CHECK(strcmp(info.chip, "gfx942") == 0 && strncmp(info.arch, "gfx942", 6) == 0 && info.runtime[0] != '\0');
  CHECK(sluice_context_hip_symbol(context, "hipNoSuchFunction") == NULL);
  *(void **)&hip_malloc = entry_point(context, "hipMalloc");
  *(void **)&hip_free = entry_point(context, "hipFree");
  *(void **)&hip_memcpy = entry_point(context, "hipMemcpy");
  *(void **)&hip_event_create = entry_point(context, "hipEventCreate");
  *(void **)&hip_event_wait = entry_point(context, "hipEventSynchronize");
  *(void **)&hip_event_destroy = entry_point(context, "hipEventDestroy");
  return context;
}

static void library(const sluice_context *context) {
  sluice_build build;
  sluice_kernel_info info;
  uint32_t count = 0, index, causal = 0;
  CHECK(sluice_abi_version() >> 16 == SLUICE_ABI_MAJOR &&
        sluice_abi_version() >= (SLUICE_ABI_MAJOR << 16 | SLUICE_ABI_MINOR));
  CHECK(strncmp(sluice_version(), "1.", 2) == 0);
  CHECK(sluice_build_init(&build, sizeof build) == SLUICE_OK);
  CHECK(sluice_build_info(&build, &error) == SLUICE_OK);
  CHECK(strcmp(build.version, sluice_version()) == 0 && build.git_commit[0] != '\0');
  CHECK(build.compiler[0] != '\0' && build.llvm_version[0] != '\0' && build.pack_id[0] != '\0');
  CHECK(strstr(build.chips, "gfx942") != NULL);
  CHECK(sluice_kernel_info_init(&info, sizeof info) == SLUICE_OK);
  CHECK(sluice_list_kernels(context, 0, NULL, &count, &error) == SLUICE_OK);
  CHECK(count > 0 && count <= build.kernel_count);
  for (index = 0; index < count; ++index) {
    CHECK(sluice_list_kernels(context, index, &info, NULL, &error) == SLUICE_OK);
    CHECK(info.struct_size == sizeof info && info.name[0] != '\0' && info.dtype >= SLUICE_F16);
    CHECK(info.threads == 64 * info.waves && info.kernarg_bytes > 0 && info.lds_bytes <= 65536);
    CHECK(strstr(info.chips, "gfx942") != NULL);
    if (strcmp(info.operation, "attention_forward") != 0) continue;
    CHECK(info.head_dim_qk > 0 && info.head_dim_v > 0 && info.tile_q > 0 && info.tile_kv > 0);
    CHECK(info.p_rounding[0] != '\0');
    causal += strstr(info.features, "causal") != NULL;
  }
  CHECK(causal > 0);
  CHECK(sluice_list_kernels(context, count, &info, NULL, &error) == SLUICE_INVALID_ARGUMENT);
  CHECK(strcmp(sluice_status_name(SLUICE_NEWER_STRUCT), "SLUICE_NEWER_STRUCT") == 0);
  CHECK(strcmp(sluice_status_name(-1), "unknown status") == 0);
}

/* Causal attention with a bias, sink logits and a factor of V. */
static sluice_problem dense_problem(void) {
  sluice_problem problem;
  CHECK(sluice_problem_init(&problem, sizeof problem) == SLUICE_OK);
  problem.flags = SLUICE_CAUSAL | SLUICE_WRITE_LSE | SLUICE_SINK_LOGITS;
  problem.mode = SLUICE_MODE_DENSE;
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F16;
  problem.q_heads = q_heads;
  problem.kv_heads = kv_heads;
  problem.head_dim_qk = problem.head_dim_v = dim;
  problem.max_batch = batch;
  problem.max_q_len = rows;
  problem.max_kv_len = keys;
  problem.max_q_tokens = batch * rows;
  problem.mask_alignment = SLUICE_BOTTOM_RIGHT;
  problem.bias_type = SLUICE_F32;
  problem.v_scale_kind = SLUICE_SCALE_PER_TENSOR;
  problem.lse_base = SLUICE_LSE_BASE_E;
  problem.determinism = SLUICE_DETERMINISM_FAST;
  problem.workspace_ceiling_bytes = 1 << 20;
  return problem;
}

static sluice_tensor tensor(void *data, int64_t batch_stride, int64_t token_stride, int64_t head_stride) {
  sluice_tensor result = {data, {0, 0, 0, 1}};
  result.stride[0] = batch_stride;
  result.stride[1] = token_stride;
  result.stride[2] = head_stride;
  return result;
}

static struct {
  uint16_t q[batch * rows * q_heads * dim], k[batch * keys * kv_heads * dim],
      v[batch * keys * kv_heads * dim], o[batch * rows * q_heads * dim];
  float lse[batch * rows * q_heads], bias[rows * 8], sinks[q_heads], v_scale;
} dense;

static sluice_args dense_args(void *q, void *k, void *v, void *o, void *lse, void *bias, const float *sinks,
                              const float *v_scale) {
  sluice_args args;
  CHECK(sluice_args_init(&args, sizeof args) == SLUICE_OK);
  args.batch = batch;
  args.q_len = rows;
  args.kv_len = keys;
  args.scale = 0.125f;
  args.q = tensor(q, rows * q_heads * dim, q_heads * dim, dim);
  args.k = tensor(k, keys * kv_heads * dim, kv_heads * dim, dim);
  args.v = tensor(v, keys * kv_heads * dim, kv_heads * dim, dim);
  args.o = tensor(o, rows * q_heads * dim, q_heads * dim, dim);
  args.lse = tensor(lse, rows * q_heads, q_heads, 1);
  args.bias = tensor(bias, 0, 0, 8);
  args.sink_logits = sinks;
  args.v_scale = v_scale;
  return args;
}

static void check_dense(void) {
  int b, i, h, j, e;
  for (b = 0; b < batch; ++b)
    for (i = 0; i < rows; ++i)
      for (h = 0; h < q_heads; ++h) {
        const int row = (b * rows + i) * q_heads + h;
        double sum = exp(dense.sinks[h]), expected[dim] = {0};
        for (j = 0; j <= i + keys - rows; ++j) {
          const int key = ((b * keys + j) * kv_heads + h / (q_heads / kv_heads)) * dim;
          double score = 0, weight;
          for (e = 0; e < dim; ++e)
            score += number(dense.q[row * dim + e]) * number(dense.k[key + e]);
          weight = exp(0.125 * score + dense.bias[i * 8 + j]);
          sum += weight;
          for (e = 0; e < dim; ++e)
            expected[e] += weight * dense.v_scale * number(dense.v[key + e]);
        }
        CHECK(fabs(dense.lse[row] - log(sum)) < 1e-4);
        for (e = 0; e < dim; ++e)
          CHECK(fabs(number(dense.o[row * dim + e]) - expected[e] / sum) < 4e-3);
      }
}

static void run_dense(sluice_context *context) {
  const sluice_problem problem = dense_problem();
  sluice_plan *plan = NULL;
  sluice_support support;
  sluice_plan_info info;
  sluice_args args;
  sluice_launch launch;
  sluice_dependency dependencies[2];
  uint64_t workspace = 1;
  void *ready, *done;
  int i, records[3] = {0};
  fill(dense.q, COUNT(dense.q), 1);
  fill(dense.k, COUNT(dense.k), 2);
  fill(dense.v, COUNT(dense.v), 3);
  for (i = 0; i < rows * 8; ++i)
    dense.bias[i] = (float)(i % 5) / 4;
  for (i = 0; i < q_heads; ++i)
    dense.sinks[i] = (float)i - 1;
  dense.v_scale = 2;

  CHECK(sluice_set_trace(context, count_records, records, &error) == SLUICE_OK);
  CHECK(sluice_support_init(&support, sizeof support) == SLUICE_OK);
  CHECK(sluice_query_support(context, &problem, &support, &error) == SLUICE_OK);
  CHECK(sluice_workspace_size(context, &problem, &workspace, &error) == SLUICE_OK);
  CHECK(workspace <= 1 << 20 && workspace == support.workspace_bytes && support.workspace_alignment > 0);
  CHECK(support.pointer_alignment == 16 && support.stride_multiple == 8);
  CHECK(sluice_preload(context, &problem, &error) == SLUICE_OK);
  CHECK(sluice_plan_create(context, &problem, &plan, &error) == SLUICE_OK);
  CHECK(sluice_plan_info_init(&info, sizeof info) == SLUICE_OK);
  CHECK(sluice_plan_describe(plan, &info, &error) == SLUICE_OK);
  CHECK(strcmp(info.kernel, support.kernel) == 0 && info.reason[0] != '\0' &&
        info.workspace_bytes == workspace);
  CHECK(info.tile_q > 0 && info.tile_kv > 0 && info.block[0] == 64 * info.waves && info.max_grid[0] > 0);
  CHECK(info.lds_bytes <= 65536 && info.workspace_alignment == support.workspace_alignment);

  args =
      dense_args(on_device(dense.q, sizeof dense.q), on_device(dense.k, sizeof dense.k),
                 on_device(dense.v, sizeof dense.v), on_device(dense.o, sizeof dense.o),
                 on_device(dense.lse, sizeof dense.lse), on_device(dense.bias, sizeof dense.bias),
                 on_device(dense.sinks, sizeof dense.sinks), on_device(&dense.v_scale, sizeof dense.v_scale));
  CHECK(hip_event_create(&ready) == 0 && hip_event_create(&done) == 0);
  memset(dependencies, 0, sizeof dependencies);
  dependencies[0].kind = SLUICE_DEPENDS_ON_STREAM;
  dependencies[0].event = ready;
  dependencies[1].kind = SLUICE_DEPENDS_ON_EVENT;
  dependencies[1].event = ready;
  CHECK(sluice_launch_init(&launch, sizeof launch) == SLUICE_OK);
  if (workspace > 0) CHECK(hip_malloc(&launch.workspace, (size_t)workspace) == 0);
  launch.workspace_bytes = workspace;
  launch.dependencies = dependencies;
  launch.dependency_count = 2;
  launch.signal_event = done;
  CHECK(sluice_run(plan, &args, &launch, &error) == SLUICE_OK);
  CHECK(hip_event_wait(done) == 0);
  get(dense.o, args.o.data, sizeof dense.o);
  get(dense.lse, args.lse.data, sizeof dense.lse);
  check_dense();
  CHECK(records[SLUICE_TRACE_PLAN] == 1 && records[SLUICE_TRACE_RUN] >= 1);

  args.k.stride[1] = 129;
  CHECK(sluice_run(plan, &args, &launch, &error) == SLUICE_INVALID_ARGUMENT);
  CHECK(error.struct_size == sizeof error && error.code == SLUICE_INVALID_ARGUMENT && error.hip_code == 0);
  CHECK(strcmp(error.field, "k.stride[1]") == 0 && strstr(error.message, "129") != NULL);
  CHECK(hip_free(args.q.data) == 0 && hip_free(args.k.data) == 0 && hip_free(args.v.data) == 0);
  CHECK(hip_free(launch.workspace) == 0);
  CHECK(hip_event_destroy(ready) == 0 && hip_event_destroy(done) == 0);
  CHECK(sluice_set_trace(context, NULL, NULL, &error) == SLUICE_OK);
  sluice_plan_destroy(plan);

  memset(dense.o, 0, sizeof dense.o);
  memset(dense.lse, 0, sizeof dense.lse);
  args = dense_args(dense.q, dense.k, dense.v, dense.o, dense.lse, dense.bias, dense.sinks, &dense.v_scale);
  CHECK(sluice_reference(&problem, &args, &error) == SLUICE_OK);
  check_dense();
}

/* Three rows: one is rotated by a quarter turn on its way, one goes nowhere, one is copied. */
static void run_append(sluice_context *context) {
  enum { tokens = 3, turned = 32, row = kv_heads * dim, cache_rows = pages * page_rows };
  static uint16_t k[tokens * row], v[tokens * row], k_cache[cache_rows * row], v_cache[cache_rows * row];
  const int64_t slots[tokens] = {5, -1, page_rows + 2};
  const int32_t positions[tokens] = {1, 0, 0};
  float rotary[2 * turned];
  void *memory[5];
  sluice_append append;
  sluice_launch launch;
  int i;
  fill(k, COUNT(k), 4);
  fill(v, COUNT(v), 5);
  memset(k_cache, 0x12, sizeof k_cache);
  memset(v_cache, 0x34, sizeof v_cache);
  for (i = 0; i < 2 * turned; ++i)
    rotary[i] = i < turned ? i < turned / 2 : i >= turned + turned / 2;
  memory[0] = on_device(k, sizeof k);
  memory[1] = on_device(v, sizeof v);
  memory[2] = on_device(slots, sizeof slots);
  memory[3] = on_device(positions, sizeof positions);
  memory[4] = on_device(rotary, sizeof rotary);
  CHECK(sluice_append_init(&append, sizeof append) == SLUICE_OK);
  append.source_type = append.cache_type = SLUICE_F16;
  append.kv_heads = kv_heads;
  append.head_dim_qk = append.head_dim_v = dim;
  append.page_size = page_rows;
  append.tokens = tokens;
  append.rotary_dim = turned;
  append.rotary_style = SLUICE_ROTARY_PAIRS;
  append.k = tensor(memory[0], 0, row, dim);
  append.v = tensor(memory[1], 0, row, dim);
  append.k_cache = tensor(on_device(k_cache, sizeof k_cache), page_rows * row, row, dim);
  append.v_cache = tensor(on_device(v_cache, sizeof v_cache), page_rows * row, row, dim);
  append.slots = memory[2];
  append.positions = memory[3];
  append.rotary = memory[4];
  append.rotary_stride = turned;
  CHECK(sluice_launch_init(&launch, sizeof launch) == SLUICE_OK);
  append.tokens = -3;
  CHECK(sluice_kv_append(context, &append, &launch, &error) == SLUICE_INVALID_ARGUMENT);
  CHECK(strcmp(error.field, "tokens") == 0 && strstr(error.message, "-3") != NULL);
  append.tokens = tokens;
  CHECK(sluice_kv_append(context, &append, &launch, &error) == SLUICE_OK);
  get(k_cache, append.k_cache.data, sizeof k_cache);
  get(v_cache, append.v_cache.data, sizeof v_cache);
  for (i = 0; i < cache_rows * row; ++i) {
    const int slot = i / row, element = i % row, e = element % dim;
    uint16_t expected_k = 0x1212, expected_v = 0x3434;
    if (slot == 5) {
      expected_k = e >= turned ? k[element] : e % 2 ? k[element - 1] : k[element + 1] ^ 0x8000;
      expected_v = v[element];
    } else if (slot == page_rows + 2) {
      expected_k = k[2 * row + element];
      expected_v = v[2 * row + element];
    }
    CHECK(k_cache[i] == expected_k);
    CHECK(v_cache[i] == expected_v);
  }
  for (i = 0; i < 5; ++i)
    CHECK(hip_free(memory[i]) == 0);
}

/* Two parts that count the same: their mean. */
static void run_merge(sluice_context *context) {
  enum { parts = 2, tokens = 2, heads = 2, wide = 8 };
  float partial[parts * tokens * heads * wide], lses[parts * tokens * heads] = {0};
  float o[tokens * heads * wide] = {0}, lse[tokens * heads] = {0};
  sluice_merge merge;
  sluice_launch launch;
  size_t i;
  for (i = 0; i < COUNT(partial); ++i)
    partial[i] = i < COUNT(partial) / 2 ? 1 : 3;
  CHECK(sluice_merge_init(&merge, sizeof merge) == SLUICE_OK);
  merge.partial_type = merge.o_type = SLUICE_F32;
  merge.parts = parts;
  merge.tokens = tokens;
  merge.heads = heads;
  merge.head_dim_v = wide;
  merge.lse_base = SLUICE_LSE_BASE_E;
  merge.partial = tensor(on_device(partial, sizeof partial), tokens * heads * wide, heads * wide, wide);
  merge.partial_lse = tensor(on_device(lses, sizeof lses), tokens * heads, heads, 1);
  merge.o = tensor(on_device(o, sizeof o), 0, heads * wide, wide);
  merge.lse = tensor(on_device(lse, sizeof lse), 0, heads, 1);
  CHECK(sluice_launch_init(&launch, sizeof launch) == SLUICE_OK);
  CHECK(sluice_merge_states(context, &merge, &launch, &error) == SLUICE_OK);
  get(o, merge.o.data, sizeof o);
  get(lse, merge.lse.data, sizeof lse);
  for (i = 0; i < COUNT(o); ++i)
    CHECK(fabs(o[i] - 2) < 1e-5);
  for (i = 0; i < COUNT(lse); ++i)
    CHECK(fabs(lse[i] - log(2)) < 1e-5);
  CHECK(hip_free(merge.partial.data) == 0 && hip_free(merge.partial_lse.data) == 0);
}

static void refusals(sluice_context *context) {
  sluice_problem problem = dense_problem();
  sluice_plan *plan = NULL;
  problem.q_heads = 3;
  CHECK(sluice_plan_create(context, &problem, &plan, &error) == SLUICE_INVALID_ARGUMENT && plan == NULL);
  CHECK(strcmp(error.field, "q_heads") == 0 && strstr(error.message, "3") != NULL);
  problem = dense_problem();
  problem.head_dim_qk = 4096;
  CHECK(sluice_query_support(context, &problem, NULL, &error) == SLUICE_UNSUPPORTED);
  CHECK(error.code == SLUICE_UNSUPPORTED && strcmp(error.field, "head_dim_qk") == 0);
  CHECK(strstr(error.message, "4096") != NULL && strstr(error.message, "nearest supported") != NULL);
  problem = dense_problem();
  problem.flags |= UINT32_C(1) << 31;
  CHECK(sluice_query_support(context, &problem, NULL, &error) == SLUICE_NEWER_STRUCT);
  CHECK(strcmp(error.field, "flags") == 0);
  problem = dense_problem();
  problem.struct_size = sizeof problem - 1;
  CHECK(sluice_query_support(context, &problem, NULL, &error) == SLUICE_INVALID_ARGUMENT);
  CHECK(strcmp(error.field, "problem.struct_size") == 0);
}

int main(void) {
  int messages = 0;
  sluice_context *context;
  CHECK(sluice_error_init(&error, sizeof error) == SLUICE_OK);
  sluice_set_log(count_messages, &messages, SLUICE_LOG_INFO);
  context = emulated();
  sluice_set_log(NULL, NULL, 0);
  CHECK(messages > 0);
  library(context);
  refusals(context);
  run_dense(context);
  run_append(context);
  run_merge(context);
  sluice_context_destroy(context);
  printf("a program of release 1.0 runs with release %s\n", sluice_version());
  return 0;
}

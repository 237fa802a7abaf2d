/* sluice.h of release 1.0, without its comments: what a program that is not compiled again was compiled with.
 * Never changed once released: docs/concepts/abi.md. */
#ifndef SLUICE_SLUICE_H
#define SLUICE_SLUICE_H
#include <stddef.h>
#include <stdint.h>
#if defined(SLUICE_BUILDING_LIBRARY)
#define SLUICE_API __attribute__((visibility("default")))
#else
#define SLUICE_API
#endif
#ifdef __cplusplus
extern "C" {
#define SLUICE_NOEXCEPT noexcept
#else
#define SLUICE_NOEXCEPT
#endif
#define SLUICE_ABI_MAJOR 1
#define SLUICE_ABI_MINOR 0
typedef int32_t sluice_status;
enum sluice_status_code {
  SLUICE_OK = 0,
  SLUICE_INVALID_ARGUMENT = 1,
  SLUICE_UNSUPPORTED = 2,
  SLUICE_NEWER_STRUCT = 3,
  SLUICE_NO_DEVICE = 4,
  SLUICE_WRONG_ARCH = 5,
  SLUICE_HIP = 6,
  SLUICE_PACK_CORRUPT = 7,
  SLUICE_WORKSPACE_TOO_SMALL = 8,
  SLUICE_OUT_OF_MEMORY = 9,
  SLUICE_INTERNAL = 10
};
typedef struct sluice_error {
  uint32_t struct_size;
  sluice_status code;
  int32_t hip_code;
  char field[52];
  char message[448];
} sluice_error;
SLUICE_API sluice_status sluice_error_init(sluice_error *error, size_t size) SLUICE_NOEXCEPT;
SLUICE_API const char *sluice_status_name(sluice_status status) SLUICE_NOEXCEPT;
SLUICE_API uint32_t sluice_abi_version(void) SLUICE_NOEXCEPT;
SLUICE_API const char *sluice_version(void) SLUICE_NOEXCEPT;
typedef struct sluice_build {
  uint32_t struct_size;
  uint32_t kernel_count;
  char version[32];
  char git_commit[48];
  char compiler[64];
  char llvm_version[32];
  char pack_id[32];
  char chips[64];
} sluice_build;
SLUICE_API sluice_status sluice_build_init(sluice_build *build, size_t size) SLUICE_NOEXCEPT;
SLUICE_API sluice_status sluice_build_info(sluice_build *build, sluice_error *error) SLUICE_NOEXCEPT;
enum sluice_log_level {
  SLUICE_LOG_ERROR = 1,
  SLUICE_LOG_WARNING = 2,
  SLUICE_LOG_INFO = 3,
  SLUICE_LOG_DEBUG = 4
};
typedef void (*sluice_log_fn)(uint32_t level, const char *message, void *user);
SLUICE_API void sluice_set_log(sluice_log_fn log, void *user, uint32_t max_level) SLUICE_NOEXCEPT;
typedef struct sluice_context sluice_context;
enum sluice_device_kind { SLUICE_DEVICE_HIP = 1, SLUICE_DEVICE_EMULATED = 2, SLUICE_DEVICE_TARGET = 3 };
typedef void *(*sluice_hip_resolver)(const char *name, void *user);
typedef struct sluice_context_desc {
  uint32_t struct_size;
  uint32_t kind;
  int32_t device_ordinal;
  uint32_t flags;
  const char *target;
  sluice_hip_resolver hip_resolver;
  void *hip_resolver_user;
  const void *pack;
  uint64_t pack_bytes;
} sluice_context_desc;
SLUICE_API sluice_status sluice_context_desc_init(sluice_context_desc *desc, size_t size) SLUICE_NOEXCEPT;
SLUICE_API sluice_status sluice_context_create(const sluice_context_desc *desc, sluice_context **out,
                                               sluice_error *error) SLUICE_NOEXCEPT;
SLUICE_API void sluice_context_destroy(sluice_context *context) SLUICE_NOEXCEPT;
typedef struct sluice_device_info {
  uint32_t struct_size;
  uint32_t kind;
  int32_t ordinal;
  uint32_t compute_units;
  uint32_t wave_size;
  uint32_t lds_bytes;
  int32_t hip_runtime_version;
  uint32_t reserved;
  char chip[32];
  char arch[64];
  char name[128];
  char runtime[160];
} sluice_device_info;
SLUICE_API sluice_status sluice_device_info_init(sluice_device_info *info, size_t size) SLUICE_NOEXCEPT;
SLUICE_API sluice_status sluice_context_device(const sluice_context *context, sluice_device_info *info,
                                               sluice_error *error) SLUICE_NOEXCEPT;
SLUICE_API void *sluice_context_hip_symbol(const sluice_context *context, const char *name) SLUICE_NOEXCEPT;
enum sluice_mode { SLUICE_MODE_DENSE = 0, SLUICE_MODE_RAGGED = 1, SLUICE_MODE_PAGED = 2 };
enum sluice_dtype {
  SLUICE_F16 = 1,
  SLUICE_BF16 = 2,
  SLUICE_F32 = 3,
  SLUICE_E4M3FNUZ = 4,
  SLUICE_E4M3FN = 5,
  SLUICE_E5M2FNUZ = 6,
  SLUICE_E5M2 = 7
};
enum sluice_problem_flag {
  SLUICE_CAUSAL = 1 << 0,
  SLUICE_WRITE_LSE = 1 << 1,
  SLUICE_HAS_WINDOW_LEFT = 1 << 2,
  SLUICE_HAS_WINDOW_RIGHT = 1 << 3,
  SLUICE_ALIBI = 1 << 4,
  SLUICE_SINK_LOGITS = 1 << 5,
  SLUICE_BOOL_MASK = 1 << 6,
  SLUICE_PAGE_INDEX_64 = 1 << 7,
  SLUICE_V_IN_K = 1 << 8
};
enum sluice_mask_alignment { SLUICE_BOTTOM_RIGHT = 0, SLUICE_TOP_LEFT = 1 };
enum sluice_scale_kind {
  SLUICE_SCALE_NONE = 0,
  SLUICE_SCALE_PER_TENSOR = 1,
  SLUICE_SCALE_PER_HEAD = 2,
  SLUICE_SCALE_PER_TOKEN = 3,
  SLUICE_SCALE_PER_PAGE = 4
};
enum sluice_page_table_kind {
  SLUICE_PAGE_TABLE_NONE = 0,
  SLUICE_PAGE_TABLE_BLOCK = 1,
  SLUICE_PAGE_TABLE_CSR = 2
};
enum sluice_lse_base { SLUICE_LSE_BASE_E = 0, SLUICE_LSE_BASE_2 = 1 };
enum sluice_determinism { SLUICE_DETERMINISM_FAST = 0, SLUICE_DETERMINISM_BATCH_INVARIANT = 1 };
typedef struct sluice_problem {
  uint32_t struct_size;
  uint32_t flags;
  uint32_t mode;
  uint32_t q_type;
  uint32_t k_type;
  uint32_t v_type;
  uint32_t o_type;
  int32_t q_heads;
  int32_t kv_heads;
  int32_t head_dim_qk;
  int32_t head_dim_v;
  int32_t max_batch;
  int32_t max_q_len;
  int32_t max_kv_len;
  int64_t max_q_tokens;
  uint32_t mask_alignment;
  int32_t window_left;
  int32_t window_right;
  int32_t sink_tokens;
  float soft_cap;
  uint32_t bias_type;
  uint32_t q_scale_kind;
  uint32_t k_scale_kind;
  uint32_t v_scale_kind;
  int32_t page_size;
  uint32_t page_table_kind;
  int32_t k_pack;
  uint32_t lse_base;
  uint32_t determinism;
  uint64_t workspace_ceiling_bytes;
} sluice_problem;
SLUICE_API sluice_status sluice_problem_init(sluice_problem *problem, size_t size) SLUICE_NOEXCEPT;
typedef struct sluice_support {
  uint32_t struct_size;
  uint32_t workspace_alignment;
  uint64_t workspace_bytes;
  uint32_t pointer_alignment;
  uint32_t stride_multiple;
  char kernel[96];
} sluice_support;
SLUICE_API sluice_status sluice_support_init(sluice_support *support, size_t size) SLUICE_NOEXCEPT;
SLUICE_API sluice_status sluice_query_support(const sluice_context *context, const sluice_problem *problem,
                                              sluice_support *support, sluice_error *error) SLUICE_NOEXCEPT;
SLUICE_API sluice_status sluice_workspace_size(const sluice_context *context, const sluice_problem *problem,
                                               uint64_t *bytes, sluice_error *error) SLUICE_NOEXCEPT;
typedef struct sluice_kernel_info {
  uint32_t struct_size;
  uint32_t dtype;
  int32_t head_dim_qk;
  int32_t head_dim_v;
  uint32_t tile_q;
  uint32_t tile_kv;
  uint32_t waves;
  uint32_t threads;
  uint32_t lds_bytes;
  uint32_t kernarg_bytes;
  char name[96];
  char operation[32];
  char features[128];
  char p_rounding[16];
  char chips[64];
} sluice_kernel_info;
SLUICE_API sluice_status sluice_kernel_info_init(sluice_kernel_info *info, size_t size) SLUICE_NOEXCEPT;
SLUICE_API sluice_status sluice_list_kernels(const sluice_context *context, uint32_t index,
                                             sluice_kernel_info *info, uint32_t *count,
                                             sluice_error *error) SLUICE_NOEXCEPT;
typedef struct sluice_plan sluice_plan;
SLUICE_API sluice_status sluice_plan_create(sluice_context *context, const sluice_problem *problem,
                                            sluice_plan **out, sluice_error *error) SLUICE_NOEXCEPT;
SLUICE_API void sluice_plan_destroy(sluice_plan *plan) SLUICE_NOEXCEPT;
typedef struct sluice_plan_info {
  uint32_t struct_size;
  uint32_t tile_q;
  uint32_t tile_kv;
  uint32_t waves;
  uint32_t lds_bytes;
  uint32_t workspace_alignment;
  uint64_t workspace_bytes;
  uint32_t max_grid[3];
  uint32_t block[3];
  char kernel[96];
  char reason[208];
} sluice_plan_info;
SLUICE_API sluice_status sluice_plan_info_init(sluice_plan_info *info, size_t size) SLUICE_NOEXCEPT;
SLUICE_API sluice_status sluice_plan_describe(const sluice_plan *plan, sluice_plan_info *info,
                                              sluice_error *error) SLUICE_NOEXCEPT;
SLUICE_API sluice_status sluice_preload(sluice_context *context, const sluice_problem *problem,
                                        sluice_error *error) SLUICE_NOEXCEPT;
typedef struct sluice_tensor {
  void *data;
  int64_t stride[4];
} sluice_tensor;
typedef struct sluice_args {
  uint32_t struct_size;
  uint32_t flags;
  int32_t batch;
  int32_t q_len;
  int32_t kv_len;
  float scale;
  sluice_tensor q;
  sluice_tensor k;
  sluice_tensor v;
  sluice_tensor o;
  sluice_tensor lse;
  const int32_t *q_starts;
  const int32_t *kv_starts;
  const int32_t *q_lengths;
  const int32_t *kv_lengths;
  const void *page_table;
  int64_t page_table_stride;
  const int32_t *page_starts;
  sluice_tensor bias;
  sluice_tensor mask;
  const float *alibi_slopes;
  const float *sink_logits;
  const float *q_scale;
  const float *k_scale;
  const float *v_scale;
} sluice_args;
SLUICE_API sluice_status sluice_args_init(sluice_args *args, size_t size) SLUICE_NOEXCEPT;
enum sluice_dependency_kind { SLUICE_DEPENDS_ON_EVENT = 1, SLUICE_DEPENDS_ON_STREAM = 2 };
typedef struct sluice_dependency {
  uint32_t kind;
  uint32_t reserved;
  void *event;
  void *stream;
} sluice_dependency;
typedef struct sluice_launch {
  uint32_t struct_size;
  uint32_t dependency_count;
  void *stream;
  void *workspace;
  uint64_t workspace_bytes;
  const sluice_dependency *dependencies;
  void *signal_event;
} sluice_launch;
SLUICE_API sluice_status sluice_launch_init(sluice_launch *launch, size_t size) SLUICE_NOEXCEPT;
SLUICE_API sluice_status sluice_run(const sluice_plan *plan, const sluice_args *args,
                                    const sluice_launch *launch, sluice_error *error) SLUICE_NOEXCEPT;
enum sluice_rotary_style { SLUICE_ROTARY_HALVES = 0, SLUICE_ROTARY_PAIRS = 1 };
typedef struct sluice_append {
  uint32_t struct_size;
  uint32_t flags;
  uint32_t source_type;
  uint32_t cache_type;
  int32_t kv_heads;
  int32_t head_dim_qk;
  int32_t head_dim_v;
  int32_t page_size;
  uint32_t page_table_kind;
  int32_t k_pack;
  uint32_t k_scale_kind;
  uint32_t v_scale_kind;
  int32_t tokens;
  int32_t batch;
  int32_t rotary_dim;
  uint32_t rotary_style;
  sluice_tensor k;
  sluice_tensor v;
  sluice_tensor k_cache;
  sluice_tensor v_cache;
  const int64_t *slots;
  const int32_t *starts;
  const int32_t *kv_lengths;
  const void *page_table;
  int64_t page_table_stride;
  const int32_t *page_starts;
  const float *k_scale;
  const float *v_scale;
  const float *rotary;
  int64_t rotary_stride;
  const int32_t *positions;
} sluice_append;
SLUICE_API sluice_status sluice_append_init(sluice_append *append, size_t size) SLUICE_NOEXCEPT;
SLUICE_API sluice_status sluice_kv_append(sluice_context *context, const sluice_append *append,
                                          const sluice_launch *launch, sluice_error *error) SLUICE_NOEXCEPT;
typedef struct sluice_merge {
  uint32_t struct_size;
  uint32_t flags;
  uint32_t partial_type;
  uint32_t o_type;
  int32_t parts;
  int32_t tokens;
  int32_t heads;
  int32_t head_dim_v;
  uint32_t lse_base;
  uint32_t reserved;
  sluice_tensor partial;
  sluice_tensor partial_lse;
  sluice_tensor o;
  sluice_tensor lse;
  const float *sink_logits;
} sluice_merge;
SLUICE_API sluice_status sluice_merge_init(sluice_merge *merge, size_t size) SLUICE_NOEXCEPT;
SLUICE_API sluice_status sluice_merge_states(sluice_context *context, const sluice_merge *merge,
                                             const sluice_launch *launch,
                                             sluice_error *error) SLUICE_NOEXCEPT;
SLUICE_API sluice_status sluice_reference(const sluice_problem *problem, const sluice_args *args,
                                          sluice_error *error) SLUICE_NOEXCEPT;
enum sluice_trace_event { SLUICE_TRACE_PLAN = 1, SLUICE_TRACE_RUN = 2 };
typedef struct sluice_trace_record {
  uint32_t struct_size;
  uint32_t event;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t lds_bytes;
  uint32_t waves;
  uint64_t workspace_bytes;
  const char *kernel;
  const char *reason;
} sluice_trace_record;
typedef void (*sluice_trace_fn)(const sluice_trace_record *record, void *user);
SLUICE_API sluice_status sluice_set_trace(sluice_context *context, sluice_trace_fn trace, void *user,
                                          sluice_error *error) SLUICE_NOEXCEPT;
#ifdef __cplusplus
}
#endif
#undef SLUICE_NOEXCEPT
#endif

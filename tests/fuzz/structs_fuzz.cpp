//===- structs_fuzz.cpp - any bytes as the structs of the C ABI -----------------------------------------===//
//
// Problems, calls, cache operations, merges, launches and descriptions of contexts, damaged and of every
// struct_size,
// on a target, which needs no device. Support, workspace, plan and run must agree about each problem.
//
//===----------------------------------------------------------------------------------------------------===//
#include "caller.h"
#include "calls/values.h"
#include "host_call.h"
#include "nested.h"

#include <vector>

using namespace sluice::fuzz;
namespace calls = sluice::calls;

namespace {

struct Destroy {
  void operator()(sluice_context *context) const { sluice_context_destroy(context); }
  void operator()(sluice_plan *plan) const { sluice_plan_destroy(plan); }
};

sluice_context *target() {
  static sluice_context *const context = [] {
    sluice_context_desc desc;
    sluice_context_desc_init(&desc, sizeof desc);
    desc.kind = SLUICE_DEVICE_TARGET;
    desc.target = "gfx942:304";
    sluice_context *made = nullptr;
    require(sluice_context_create(&desc, &made, nullptr) == SLUICE_OK, "the pack has no kernels for gfx942");
    return made;
  }();
  return context;
}

/// In device memory, which no function here may dereference.
template <typename Pointer> void point(FuzzedDataProvider &bytes, Pointer &pointer, bool wanted = true) {
  if (wanted) pointer = reinterpret_cast<Pointer>(uint64_t{bytes.ConsumeIntegral<uint16_t>()} * 4096);
}

void some_tensor(FuzzedDataProvider &bytes, sluice_tensor &tensor, int64_t tokens, int64_t heads,
                 int64_t dims) {
  point(bytes, tensor.data);
  const int64_t strides[4] = {tokens * heads * dims, heads * dims, dims, 1};
  std::copy(strides, strides + 4, tensor.stride);
}

/// A problem that has a kernel, unless the features drawn exclude each other.
calls::Problem some_problem(FuzzedDataProvider &bytes) {
  calls::Problem problem;
  const auto pick = [&](int32_t least, int32_t most) { return bytes.ConsumeIntegralInRange(least, most); };
  problem.flags =
      bytes.ConsumeIntegralInRange<uint32_t>(0, 2 * calls::v_in_k - 1) & bytes.ConsumeIntegral<uint32_t>();
  problem.mode = uint32_t(pick(0, 2));
  problem.q_type = problem.o_type = uint32_t(pick(1, 2));
  problem.k_type = problem.v_type = bytes.ConsumeBool() ? problem.q_type : uint32_t(SLUICE_E4M3FNUZ);
  problem.kv_heads = pick(1, 16);
  problem.q_heads = problem.kv_heads * pick(1, 32);
  problem.head_dim_qk = 8 * pick(1, 72);
  problem.head_dim_v = bytes.ConsumeBool() ? problem.head_dim_qk : 8 * pick(1, 64);
  if (bytes.ConsumeBool()) {
    problem.max_batch = pick(0, 300);
    problem.max_q_len = pick(0, 20000);
    problem.max_kv_len = pick(0, 200000);
  }
  problem.mask_alignment = uint32_t(pick(0, 1));
  if (problem.flags & calls::causal) problem.flags &= ~uint32_t(calls::window_right);
  if (problem.flags & calls::window_left) problem.window_left = pick(0, 5000);
  if (problem.flags & calls::window_right) problem.window_right = pick(0, 5000);
  if (pick(0, 1)) problem.flags |= calls::lse_log2;
  if (pick(0, 1)) problem.flags |= calls::batch_invariant;
  problem.bias_type = bytes.ConsumeBool() ? uint32_t(pick(0, 3)) : 0;
  problem.k_scale_kind = uint32_t(pick(0, 2));
  if (problem.mode == calls::paged) {
    problem.page_size = 1 << pick(0, 8);
    problem.page_table_kind = uint32_t(pick(1, 2));
  } else {
    problem.flags &= ~uint32_t(calls::page_index_64 | calls::missing_pages);
  }
  return problem;
}

calls::Args some_args(FuzzedDataProvider &bytes, const calls::Problem &problem) {
  calls::Args args;
  args.scale = calls::usual_scale(problem);
  args.batch = bytes.ConsumeIntegralInRange(1, 8);
  args.q_len = bytes.ConsumeIntegralInRange(0, 100);
  args.kv_len = bytes.ConsumeIntegralInRange(0, 1000);
  const bool ragged = problem.mode == calls::ragged, paged = problem.mode == calls::paged;
  some_tensor(bytes, args.q, args.q_len, problem.q_heads, problem.head_dim_qk);
  some_tensor(bytes, args.o, args.q_len, problem.q_heads, problem.head_dim_v);
  some_tensor(bytes, args.k, paged ? problem.page_size : args.kv_len, problem.kv_heads, problem.head_dim_qk);
  if (!(problem.flags & calls::v_in_k))
    some_tensor(bytes, args.v, paged ? problem.page_size : args.kv_len, problem.kv_heads, problem.head_dim_v);
  if (problem.flags & calls::write_lse) some_tensor(bytes, args.lse, args.q_len, problem.q_heads, 1);
  if (ragged)
    args.q.stride[0] = args.k.stride[0] = args.v.stride[0] = args.o.stride[0] = args.lse.stride[0] = 0;
  if (problem.bias_type != 0) some_tensor(bytes, args.bias, problem.q_heads, args.q_len, args.kv_len);
  if (problem.flags & calls::mask_bits) some_tensor(bytes, args.mask, problem.q_heads, args.q_len, 64);
  point(bytes, args.q_starts, ragged);
  point(bytes, args.kv_starts, ragged);
  point(bytes, args.kv_lengths, paged);
  point(bytes, args.page_table, paged);
  point(bytes, args.page_starts, paged && problem.page_table_kind == SLUICE_PAGE_TABLE_CSR);
  point(bytes, args.alibi_slopes, problem.flags & calls::alibi);
  point(bytes, args.sink_logits, problem.flags & calls::sinks);
  point(bytes, args.k_scale, problem.k_scale_kind != 0);
  return args;
}

/// With valid dependencies: of all pointers only these are to host memory.
struct Launch {
  explicit Launch(FuzzedDataProvider &bytes) {
    sluice_launch_init(&value, sizeof value);
    value.workspace_bytes = uint64_t{bytes.ConsumeIntegral<uint32_t>()}
                            << bytes.ConsumeIntegralInRange(0, 31);
    point(bytes, value.workspace);
    damage(bytes, value);
    dependencies.resize(bytes.ConsumeIntegralInRange<size_t>(0, 3));
    for (sluice_dependency &dependency : dependencies) {
      dependency.kind = bytes.ConsumeIntegralInRange<uint32_t>(0, 3);
      dependency.reserved = bytes.ConsumeIntegralInRange<uint32_t>(0, 7) / 7;
      point(bytes, dependency.event);
      point(bytes, dependency.stream, dependency.kind == SLUICE_DEPENDS_ON_STREAM);
    }
    const bool is_null = dependencies.empty() && bytes.ConsumeBool();
    value.dependencies = is_null ? nullptr : dependencies.data();
    if (!is_null || bytes.ConsumeBool()) value.dependency_count = uint32_t(dependencies.size());
  }
  sluice_launch value;
  std::vector<sluice_dependency> dependencies;
};

void try_run(FuzzedDataProvider &bytes, const sluice_plan *plan, const calls::Problem &problem) {
  const calls::Args args = some_args(bytes, problem);
  NestedCall given_args(bytes, calls::ArgsValues(problem, args));
  Launch launch(bytes);
  Given<sluice_launch> given_launch(bytes, launch.value);
  // In an older caller's struct the pointer may be cut off: it is either absent or complete.
  const Answer answer = ask("sluice_attention_run", [&](sluice_error *error) {
    return sluice_attention_run(plan, given_args.get(), given_launch.get(), error);
  });
  require(answer.status != SLUICE_OK, "sluice_attention_run ran on a target");
}

void try_problem(FuzzedDataProvider &bytes) {
  calls::Problem problem = some_problem(bytes);
  NestedProblem given(bytes, calls::ProblemValues(problem));
  sluice_support support[2];
  for (sluice_support &one : support)
    sluice_support_init(&one, sizeof one);
  int asked = 0;
  const Answer answer = ask("sluice_attention_support", [&](sluice_error *error) {
    return sluice_attention_support(target(), given.get(), &support[asked++ % 2], error);
  });
  require(std::memcmp(&support[0], &support[1], sizeof support[0]) == 0,
          "sluice_support: other bytes the second time");

  const uint64_t workspace = support[0].workspace_bytes;

  sluice_plan *made[3] = {};
  int plans = 0;
  const Answer plan = ask("sluice_attention_plan", [&](sluice_error *error) {
    return sluice_attention_plan(target(), given.get(), &made[plans++], error);
  });
  const std::unique_ptr<sluice_plan, Destroy> guards[] = {std::unique_ptr<sluice_plan, Destroy>(made[0]),
                                                          std::unique_ptr<sluice_plan, Destroy>(made[1]),
                                                          std::unique_ptr<sluice_plan, Destroy>(made[2])};
  require(std::memcmp(&plan, &answer, sizeof answer) == 0,
          "sluice_attention_plan: another answer than support's");
  for (const sluice_plan *one : made)
    require((one != nullptr) == (plan.status == SLUICE_OK), "sluice_attention_plan: a plan without success");
  if (plan.status != SLUICE_OK) return;

  sluice_plan_info info;
  sluice_plan_info_init(&info, sizeof info);
  require(sluice_plan_describe(made[0], &info, nullptr) == SLUICE_OK, "a plan cannot be described");
  require(info.workspace_bytes == workspace && std::strcmp(info.kernel, support[0].kernel) == 0,
          "the plan is another one than support's");
  require(problem.workspace_ceiling_bytes == 0 || workspace <= problem.workspace_ceiling_bytes,
          "the workspace is beyond the ceiling");
  try_run(bytes, made[0], problem);
}

void try_append(FuzzedDataProvider &bytes) {
  const auto pick = [&](int32_t least, int32_t most) { return bytes.ConsumeIntegralInRange(least, most); };
  calls::Append append;
  append.source_type = uint32_t(pick(1, 2));
  if (bytes.ConsumeBool()) append.q_heads = pick(1, 64);
  if (bytes.ConsumeBool()) {
    append.rotary_dim = 16 * pick(1, 8);
    append.rotary_type = uint32_t(pick(1, 3));
    append.rotary_stride = append.rotary_dim;
    point(bytes, append.rotary);
    point(bytes, append.positions);
  }
  append.cache_type = bytes.ConsumeBool() ? append.source_type : uint32_t(SLUICE_E4M3FNUZ);
  append.kv_heads = pick(1, 64);
  append.head_dim_qk = append.head_dim_v = 8 * pick(1, 72);
  append.page_size = 1 << pick(0, 8);
  append.tokens = pick(1, 5000);
  some_tensor(bytes, append.k, 0, append.kv_heads, append.head_dim_qk);
  some_tensor(bytes, append.v, 0, append.kv_heads, append.head_dim_v);
  some_tensor(bytes, append.k_cache, append.page_size, append.kv_heads, append.head_dim_qk);
  if (append.q_heads != 0)
    for (sluice_tensor *tensor : {&append.q, &append.q_out})
      some_tensor(bytes, *tensor, 0, append.q_heads, append.head_dim_qk);
  some_tensor(bytes, append.v_cache, append.page_size, append.kv_heads, append.head_dim_v);
  const bool slots = bytes.ConsumeBool();
  if (!slots) append.batch = pick(1, 100), append.page_table_kind = uint32_t(pick(1, 2));
  point(bytes, append.slots, slots);
  point(bytes, append.starts, !slots);
  point(bytes, append.kv_lengths, !slots);
  point(bytes, append.page_table, !slots);
  point(bytes, append.page_starts, append.page_table_kind == SLUICE_PAGE_TABLE_CSR);
  Launch launch(bytes);
  NestedAppend given(bytes, calls::AppendValues(append));
  Given<sluice_launch> given_launch(bytes, launch.value);
  const Answer answer = ask("sluice_cache_append", [&](sluice_error *error) {
    return sluice_cache_append(target(), given.get(), given_launch.get(), error);
  });
  require(answer.status != SLUICE_OK, "sluice_cache_append ran on a target");
}

void try_merge(FuzzedDataProvider &bytes) {
  const auto pick = [&](int32_t least, int32_t most) { return bytes.ConsumeIntegralInRange(least, most); };
  sluice_merge_args merge = {};
  merge.struct_size = sizeof merge;
  merge.lse_base = uint32_t(pick(1, 2));
  merge.parts.type = uint32_t(pick(1, 3));
  merge.o_format.type = merge.parts.type == SLUICE_F32 ? uint32_t(pick(1, 3)) : merge.parts.type;
  merge.parts.count = pick(1, 100);
  merge.tokens = pick(1, 5000);
  merge.heads = pick(1, 128);
  merge.head_dim = 8 * pick(1, 72);
  some_tensor(bytes, merge.parts.o, merge.tokens, merge.heads, merge.head_dim);
  some_tensor(bytes, merge.parts.lse, merge.tokens, merge.heads, 1);
  some_tensor(bytes, merge.o, 0, merge.heads, merge.head_dim);
  if (bytes.ConsumeBool()) some_tensor(bytes, merge.lse, 0, merge.heads, 1);
  if (bytes.ConsumeBool()) merge.parts.o.data = merge.parts.lse.data = nullptr;
  damage(bytes, merge);
  // Arrays on the host, which the library reads.
  static const void *const parts[16] = {&merge, nullptr, parts, parts + 1};
  if (bytes.ConsumeBool() || merge.parts.o_list != nullptr) merge.parts.o_list = parts;
  if (bytes.ConsumeBool() || merge.parts.lse_list != nullptr) merge.parts.lse_list = parts;
  Launch launch(bytes);
  Given<sluice_merge_args> given(bytes, merge);
  Given<sluice_launch> given_launch(bytes, launch.value);
  const Answer answer = ask("sluice_attention_merge", [&](sluice_error *error) {
    return sluice_attention_merge(target(), given.get(), given_launch.get(), error);
  });
  require(answer.status != SLUICE_OK, "sluice_attention_merge ran on a target");
}

void try_copy(FuzzedDataProvider &bytes) {
  const auto pick = [&](int32_t least, int32_t most) { return bytes.ConsumeIntegralInRange(least, most); };
  calls::PageCopy copy;
  copy.source_type = uint32_t(pick(1, 4));
  copy.target_type = bytes.ConsumeBool() ? copy.source_type : uint32_t(pick(1, 4));
  copy.kv_heads = pick(1, 64);
  copy.head_dim_qk = copy.head_dim_v = 8 * pick(1, 72);
  copy.page_size = 1 << pick(0, 8);
  copy.page_count = pick(1, 5000);
  for (sluice_tensor *tensor : {&copy.k_source, &copy.v_source, &copy.k_target, &copy.v_target})
    some_tensor(bytes, *tensor, copy.page_size, copy.kv_heads, copy.head_dim_qk);
  point(bytes, copy.pairs, bytes.ConsumeBool());
  if (copy.pairs != nullptr) copy.pair_count = pick(0, 5000);
  Launch launch(bytes);
  NestedMove<sluice_copy_args> given(bytes, calls::CopyValues(copy));
  Given<sluice_launch> given_launch(bytes, launch.value);
  const Answer answer = ask("sluice_cache_copy", [&](sluice_error *error) {
    return sluice_cache_copy(target(), given.get(), given_launch.get(), error);
  });
  require(answer.status != SLUICE_OK, "sluice_cache_copy ran on a target");
}

void try_gather(FuzzedDataProvider &bytes) {
  const auto pick = [&](int32_t least, int32_t most) { return bytes.ConsumeIntegralInRange(least, most); };
  calls::Gather gather;
  gather.cache_type = uint32_t(pick(1, 4));
  gather.out_type = bytes.ConsumeBool() ? gather.cache_type : uint32_t(pick(1, 4));
  gather.kv_heads = pick(1, 64);
  gather.head_dim_qk = gather.head_dim_v = 8 * pick(1, 72);
  gather.page_size = 1 << pick(0, 8);
  gather.page_table_kind = uint32_t(pick(1, 2));
  gather.batch = pick(1, 100);
  gather.tokens = pick(1, 5000);
  for (sluice_tensor *tensor : {&gather.k_cache, &gather.v_cache})
    some_tensor(bytes, *tensor, gather.page_size, gather.kv_heads, gather.head_dim_qk);
  for (sluice_tensor *tensor : {&gather.k_out, &gather.v_out})
    some_tensor(bytes, *tensor, 0, gather.kv_heads, gather.head_dim_qk);
  point(bytes, gather.out_starts);
  point(bytes, gather.kv_lengths);
  point(bytes, gather.page_table);
  point(bytes, gather.page_starts, gather.page_table_kind == SLUICE_PAGE_TABLE_CSR);
  Launch launch(bytes);
  NestedMove<sluice_gather_args> given(bytes, calls::GatherValues(gather));
  Given<sluice_launch> given_launch(bytes, launch.value);
  const Answer answer = ask("sluice_cache_gather", [&](sluice_error *error) {
    return sluice_cache_gather(target(), given.get(), given_launch.get(), error);
  });
  require(answer.status != SLUICE_OK, "sluice_cache_gather ran on a target");
}

void *no_symbol(const char *, void *) {
  return nullptr;
}

void try_context(FuzzedDataProvider &bytes) {
  sluice_context_desc desc;
  sluice_context_desc_init(&desc, sizeof desc);
  desc.kind = SLUICE_DEVICE_TARGET;
  damage(bytes, desc);
  // No library is searched for: the fuzzer must not depend on this machine's HIP.
  if (desc.kind == SLUICE_DEVICE_EMULATED) desc.kind = SLUICE_DEVICE_TARGET;
  if (desc.kind == SLUICE_DEVICE_HIP || desc.hip_resolver != nullptr) desc.hip_resolver = no_symbol;
  std::string name = bytes.ConsumeBool() ? "gfx942:" + bytes.ConsumeRandomLengthString(12)
                                         : bytes.ConsumeRandomLengthString(40);
  desc.target = bytes.ConsumeIntegralInRange(0, 7) == 0 ? nullptr : name.c_str();
  const std::vector<uint8_t> pack = bytes.ConsumeBytes<uint8_t>(bytes.ConsumeIntegralInRange<size_t>(0, 200));
  if (pack.empty()) {
    desc.pack = nullptr;
  } else {
    desc.pack = pack.data();
    desc.pack_bytes = bytes.ConsumeIntegralInRange<size_t>(0, pack.size());
  }
  Given<sluice_context_desc> given(bytes, desc);
  ask("sluice_context_create", [&](sluice_error *error) {
    sluice_context *context = nullptr;
    const sluice_status status = sluice_context_create(given.get(), &context, error);
    const std::unique_ptr<sluice_context, Destroy> guard(context);
    require((context != nullptr) == (status == SLUICE_OK),
            "sluice_context_create: a context without success");
    return status;
  });
}

/// Structs that the library fills, and its errors, of every size too.
void try_outputs(FuzzedDataProvider &bytes) {
  Given<sluice_error> error(bytes, sluice_error{});
  Given<sluice_support> support(bytes, sluice_support{});
  Given<sluice_kernel_info> kernel(bytes, sluice_kernel_info{});
  Given<sluice_device_info> device(bytes, sluice_device_info{});
  Given<sluice_build> build(bytes, sluice_build{});
  calls::Problem problem = some_problem(bytes);
  const uint32_t index = some_word(bytes);
  sluice_attention_support(target(), calls::ProblemValues(problem), support.get(), error.get());
  sluice_list_kernels(target(), index, kernel.get(), nullptr, error.get());
  sluice_context_device(target(), device.get(), error.get());
  sluice_build_info(build.get(), error.get());
  ask("sluice_list_kernels",
      [&](sluice_error *told) { return sluice_list_kernels(target(), index, kernel.get(), nullptr, told); });
  ask("sluice_build_info", [&](sluice_error *told) { return sluice_build_info(build.get(), told); });
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  FuzzedDataProvider bytes(data, size);
  switch (bytes.ConsumeIntegralInRange(0, 9)) {
  case 0:
    try_context(bytes);
    break;
  case 1:
    try_outputs(bytes);
    break;
  case 2:
    try_append(bytes);
    break;
  case 3:
    try_merge(bytes);
    break;
  case 4:
    try_copy(bytes);
    break;
  case 5:
    try_gather(bytes);
    break;
  case 6:
  case 7:
    try_reference(bytes);
    break;
  default:
    try_problem(bytes);
    break;
  }
  return 0;
}

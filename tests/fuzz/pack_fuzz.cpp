//===- pack_fuzz.cpp - any bytes as a kernel pack -------------------------------------------------------===//
//
// Contexts of a target and of a HIP device that runs nothing: the pack is refused, or its kernels can be
// listed, asked for and loaded. A custom mutator keeps lengths and checksums correct, so that the fuzzer
// reaches the data that they protect.
//
//===----------------------------------------------------------------------------------------------------===//
#include "caller.h"
#include "calls/values.h"
#include "pack_bytes.h"

#include "support/fake_hip.h"

#include <vector>

using namespace sluice::fuzz;
namespace calls = sluice::calls;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

namespace {

/// Problems get an answer for any claims of the pack's kernels.
void ask_for_plans(sluice_context *context) {
  uint32_t count = 0;
  require(sluice_list_kernels(context, 0, nullptr, &count, nullptr) == SLUICE_OK,
          "kernels cannot be counted");
  for (uint32_t i = 0; i < std::min(count, 4u); ++i) {
    sluice_kernel_info kernel;
    sluice_kernel_info_init(&kernel, sizeof kernel);
    require(sluice_list_kernels(context, i, &kernel, nullptr, nullptr) == SLUICE_OK,
            "a kernel cannot be described");
    for (const bool variant : {false, true}) {
      calls::Problem problem;
      problem.q_type = problem.o_type = kernel.dtype;
      problem.k_type = problem.v_type = variant && i % 2 ? uint32_t(SLUICE_E4M3FNUZ) : kernel.dtype;
      problem.q_heads = 8;
      problem.kv_heads = 2;
      problem.head_dim_qk = kernel.head_dim_qk;
      problem.head_dim_v = kernel.head_dim_v;
      problem.max_batch = 3;
      problem.max_q_len = 100;
      problem.max_kv_len = 100000;
      if (variant) problem.flags |= calls::batch_invariant;
      ask("sluice_attention_plan", [&](sluice_error *error) {
        sluice_plan *plan = nullptr;
        const sluice_status status =
            sluice_attention_plan(context, calls::ProblemValues(problem), &plan, error);
        sluice_plan_info info;
        sluice_plan_info_init(&info, sizeof info);
        if (plan)
          require(sluice_plan_describe(plan, &info, nullptr) == SLUICE_OK, "a plan cannot be described");
        sluice_plan_destroy(plan);
        return status;
      });
    }
  }
}

void try_pack(const uint8_t *data, size_t size, uint32_t kind) {
  sluice_context_desc desc;
  sluice_context_desc_init(&desc, sizeof desc);
  desc.kind = kind;
  if (kind == SLUICE_DEVICE_TARGET)
    desc.target = "gfx942:304";
  else
    desc.hip_resolver = sluice::test::FakeHip::resolve;
  desc.pack = data;
  desc.pack_bytes = size;
  const auto create = [&](sluice_context **context, sluice_error *error) {
    *context = nullptr;
    const sluice_status status = sluice_context_create(&desc, context, error);
    require((*context != nullptr) == (status == SLUICE_OK),
            "sluice_context_create: a context without success");
    return status;
  };
  sluice_context *context = nullptr;
  ask("sluice_context_create", [&](sluice_error *error) {
    const sluice_status status = create(&context, error);
    sluice_context_destroy(context);
    return status;
  });
  if (create(&context, nullptr) != SLUICE_OK) return;
  ask_for_plans(context);
  if (kind == SLUICE_DEVICE_HIP)
    ask("sluice_attention_preload",
        [&](sluice_error *error) { return sluice_attention_preload(context, nullptr, error); });
  sluice_context_destroy(context);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // Memory that ends where the pack does.
  const std::vector<uint8_t> pack(data, data + size);
  sluice::test::FakeHip hip;
  hip.keeps_function_names = false;
  for (const uint32_t kind : {SLUICE_DEVICE_TARGET, SLUICE_DEVICE_HIP})
    try_pack(pack.data(), pack.size(), kind);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed) {
  return mutate_pack({data, size}, most, seed, LLVMFuzzerMutate);
}

//===- questions.cpp - the C ABI: what is supported, and what it needs ----------------------------------===//
#include "abi/checks.h"
#include "abi/entry.h"
#include "abi/wall.h"
#include "calls/problem.h"
#include "runtime/attention_arguments.h"
#include "runtime/choose.h"
#include "runtime/dtype.h"
#include "runtime/kernel_features.h"

using namespace sluice;
using support::Failure;
using support::Status;
using support::text;

namespace {

runtime::Choice choose(const sluice_context *context, const calls::Problem &problem) {
  const runtime::Context &shared = *abi::context_of(context);
  abi::check_problem(problem);
  return runtime::choose_kernel(shared, problem);
}

} // namespace

void abi::answer_support(const sluice_context *context, const calls::Problem &problem,
                         sluice_support *support) {
  const runtime::Choice choice = choose(context, problem);
  if (support == nullptr) return;
  sluice_support out = {};
  out.workspace_alignment = runtime::workspace_alignment;
  out.workspace_bytes = choice.workspace_bytes;
  out.pointer_alignment = runtime::pointer_alignment;
  out.stride_multiple = runtime::stride_multiple;
  copy_text(out.kernel, package::format_kernel_name(choice.own.main().entry.name));
  fill(support, out);
}

extern "C" {

sluice_status sluice_support_init(sluice_support *support, size_t size) noexcept {
  return abi::init(support, size);
}
sluice_status sluice_kernel_info_init(sluice_kernel_info *info, size_t size) noexcept {
  return abi::init(info, size);
}

sluice_status sluice_list_kernels(const sluice_context *context, uint32_t index, sluice_kernel_info *info,
                                  uint32_t *count, sluice_error *error) noexcept {
  return abi::wall(error, [&] {
    if (context == nullptr) throw Failure(Status::invalid_argument, "context", "context is NULL");
    const auto &kernels = context->context->kernels();
    if (info != nullptr) {
      abi::check_output(info, "info");
      if (index >= kernels.size()) {
        throw Failure(Status::invalid_argument, "index",
                      text("index is ", index, "; there are ", uint64_t{kernels.size()}, " kernels"));
      }
      const package::KernelEntry &entry = kernels[index]->entry;
      sluice_kernel_info out = {};
      out.dtype = runtime::dtype_of_name(entry.name.dtype);
      out.head_dim_qk = int32_t(entry.name.head_dim_qk);
      out.head_dim_v = int32_t(entry.name.head_dim_v);
      out.tile_q = entry.name.tile_q;
      out.tile_kv = entry.name.tile_kv;
      out.waves = entry.threads / context->context->device().wave_size;
      out.threads = entry.threads;
      out.lds_bytes = entry.lds_bytes;
      out.kernarg_bytes = entry.kernarg_bytes;
      abi::copy_text(out.name, package::format_kernel_name(entry.name));
      abi::copy_text(out.operation, entry.name.operation);
      abi::copy_text(out.features, runtime::join(runtime::features_of(entry, /*newer=*/false)));
      abi::copy_text(out.more_features, runtime::join(runtime::features_of(entry, /*newer=*/true)));
      abi::copy_text(out.p_rounding, entry.p_rounding);
      abi::copy_text(out.chips, runtime::join(entry.chips));
      abi::fill(info, out);
    }
    if (count != nullptr) *count = uint32_t(kernels.size());
  });
}

} // extern "C"

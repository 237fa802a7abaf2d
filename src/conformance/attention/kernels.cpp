//===- kernels.cpp - the attention kernels of a pack, and which of them the library chooses -------------===//

#include "conformance/attention/kernels.h"

#include "conformance/attention/call.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace sluice::conformance {

namespace {

constexpr std::string_view attention = "attention_forward";

/// The part of a name before the head size: "f16", "f16_e4m3fnuz" or "e4m3fnuz_to_f16".
void read_types(std::string_view name, Kernel &kernel) {
  constexpr std::string_view front = "attn_fwd_", to = "e4m3fnuz_to_";
  name.remove_prefix(front.size());
  if (name.starts_with(to)) {
    kernel.cache = Cache::e4m3fnuz_as_q;
    name.remove_prefix(to.size());
  }
  kernel.dtype = name.starts_with("bf16_") ? Dtype::bf16 : Dtype::f16;
  name.remove_prefix(name.find('_') + 1);
  if (name.starts_with("e4m3fnuz_")) kernel.cache = Cache::e4m3fnuz;
  if (name.starts_with("e5m2fnuz_")) kernel.cache = Cache::e5m2fnuz;
  if (name.starts_with("i8_")) kernel.cache = Cache::i8;
  if (name.starts_with("q8_0_")) kernel.cache = Cache::q8_0;
  if (name.starts_with("q4_0_")) kernel.cache = Cache::q4_0;
  if (name.starts_with("u4_")) kernel.cache = Cache::u4_zeros;
}

Kernel kernel_of(const sluice_kernel_info &info) {
  Kernel kernel{.name = info.name,
                .head_size = {info.head_dim_qk, info.head_dim_v},
                .tile_q = int(info.tile_q),
                .tile_kv = int(info.tile_kv)};
  read_types(kernel.name, kernel);
  kernel.paged = kernel.name.ends_with("_paged");
  kernel.mla = kernel.name.ends_with("_mla");
  kernel.columns = kernel.name.ends_with("_columns");
  kernel.prefill = !kernel.mla && !kernel.columns && !kernel.name.ends_with("_decode");
  std::istringstream features(std::string(info.features) + "," + info.more_features);
  for (std::string feature; std::getline(features, feature, ',');)
    kernel.claims.insert(feature);
  return kernel;
}

} // namespace

std::optional<Answer> ask(const Target &target, const Case &c) {
  ProblemStructs problem;
  make_problem(c, problem);
  sluice_support support;
  sluice_support_init(&support, sizeof support);
  if (sluice_attention_support(target.context(), &problem.attention, &support, nullptr) != SLUICE_OK)
    return {};
  return Answer{support.kernel, support.workspace_bytes != 0};
}

std::vector<Kernel> attention_kernels(const Target &target) {
  std::vector<Kernel> kernels;
  for (const sluice_kernel_info &info : list_kernels(target.context()))
    if (info.operation == attention) kernels.push_back(kernel_of(info));
  return kernels;
}

Shapes shapes(const Target &target) {
  Shapes found;
  for (const sluice_kernel_info &kernel : list_kernels(target.context())) {
    if (kernel.operation != attention) continue;
    // Cases with FP8 Q, K and V are those of the type of O, whose kernels have at least the same head sizes.
    if (kernel.dtype == SLUICE_E4M3FNUZ) continue;
    if (kernel.dtype != SLUICE_F16 && kernel.dtype != SLUICE_BF16)
      throw std::runtime_error(std::string("the suite has no cases for ") + kernel.name);
    Shapes::Shape shape = {kernel.dtype == SLUICE_F16 ? Dtype::f16 : Dtype::bf16,
                           {kernel.head_dim_qk, kernel.head_dim_v}};
    // Whether a shape's kernels only support SLUICE_KV_V_IN_K.
    const Case plain{.dtype = shape.dtype, .head_size = shape.head_size};
    Case in_k = plain;
    in_k.v_in_k = true;
    shape.v_in_k = !ask(target, plain) && ask(target, in_k);
    if (std::find(found.all.begin(), found.all.end(), shape) == found.all.end()) found.all.push_back(shape);
  }
  if (found.all.empty()) throw std::runtime_error("the pack has no kernel for F16 or BF16 queries");
  return found;
}

} // namespace sluice::conformance

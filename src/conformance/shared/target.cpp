//===- target.cpp - a chip for which the library answers, and the kernels of a pack ---------------------===//

#include "conformance/shared/target.h"

#include "conformance/shared/failure.h"

namespace sluice::conformance {

sluice_context_desc context_desc(uint32_t kind, const Pack &pack) {
  sluice_context_desc desc;
  sluice_context_desc_init(&desc, sizeof desc);
  desc.kind = kind;
  if (!pack.empty()) {
    desc.pack = pack.data();
    desc.pack_bytes = pack.size();
  }
  return desc;
}

std::vector<sluice_kernel_info> list_kernels(const sluice_context *context) {
  sluice_error error = make_error();
  uint32_t count = 0;
  if (const sluice_status status = sluice_list_kernels(context, 0, nullptr, &count, &error))
    fail("sluice_list_kernels", status, error);
  std::vector<sluice_kernel_info> kernels(count);
  for (uint32_t i = 0; i < count; ++i) {
    sluice_kernel_info_init(&kernels[i], sizeof kernels[i]);
    if (const sluice_status status = sluice_list_kernels(context, i, &kernels[i], nullptr, &error))
      fail("sluice_list_kernels", status, error);
  }
  return kernels;
}

Target::Target(const Pack &pack, uint32_t compute_units) {
  sluice_context_desc desc = context_desc(SLUICE_DEVICE_TARGET, pack);
  const std::string name = "gfx942:" + std::to_string(compute_units);
  desc.target = name.c_str();
  sluice_error error = make_error();
  sluice_context *context = nullptr;
  if (const sluice_status status = sluice_context_create(&desc, &context, &error))
    fail("sluice_context_create", status, error);
  created.reset(context);
}

std::vector<std::string> Target::names(std::string_view operation) const {
  std::vector<std::string> names;
  for (const sluice_kernel_info &info : list_kernels(context()))
    if (info.operation == operation) names.emplace_back(info.name);
  return names;
}

} // namespace sluice::conformance

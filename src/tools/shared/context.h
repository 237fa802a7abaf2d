//===- context.h - the command line's use of the library ------------------------------------------------===//
//
// The tool uses the library as any engine does: through sluice.h, and HIP through sluice_context_hip_symbol.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "tools/shared/tool_error.h"
#include <sluice/emulator.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <sluice/sluice.h>
#include <span>
#include <string>
#include <vector>

namespace sluice::tools {

sluice_error make_error();
/// Throws ToolError with the status, the field and the message if the call failed.
void check(sluice_status status, const sluice_error &error);

struct DestroyContext {
  void operator()(sluice_context *context) const { sluice_context_destroy(context); }
};
using ContextHandle = std::unique_ptr<sluice_context, DestroyContext>;

struct DestroyPlan {
  void operator()(sluice_plan *plan) const { sluice_plan_destroy(plan); }
};
using PlanHandle = std::unique_ptr<sluice_plan, DestroyPlan>;

/// `device` is "emulated", "hip:N", or a target such as "gfx942:304".
sluice_context_desc describe_device(const std::string &device);
/// A context with the kernels of a pack, which must outlive it; with the library's own if it is empty.
ContextHandle make_context(const std::string &device, std::span<const std::byte> pack = {});

/// The kernels for the context's device.
std::vector<sluice_kernel_info> list_kernels(const sluice_context *context);
/// The names of all its features, with commas between them.
std::string features_of(const sluice_kernel_info &kernel);

template <typename Function> Function *hip_symbol(const sluice_context *context, const char *name) {
  void *const found = sluice_context_hip_symbol(context, name);
  if (!found) throw ToolError(std::string("the device's runtime has no ") + name);
  return reinterpret_cast<Function *>(found);
}

/// Throws ToolError with HIP's own text unless `code` is 0.
void check_hip(const sluice_context *context, int code, const char *what);

void copy_to_device(const sluice_context *context, void *to, const void *from, size_t bytes);

/// Device memory, freed with the object. The context must outlive it.
class DeviceBuffer {
public:
  DeviceBuffer(const sluice_context *context, size_t bytes);
  DeviceBuffer(const DeviceBuffer &) = delete;
  DeviceBuffer &operator=(const DeviceBuffer &) = delete;
  ~DeviceBuffer();

  void upload(const void *from, size_t bytes);
  void download(void *to, size_t bytes) const;
  void *data() const { return memory; }

private:
  const sluice_context *context;
  void *memory = nullptr;
};

/// Nothing for a GPU.
std::optional<sluice_emulator_counters_t> emulator_counters(const sluice_context *context);

} // namespace sluice::tools

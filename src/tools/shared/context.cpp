//===- context.cpp - the command line's use of the library ----------------------------------------------===//

#include "tools/shared/context.h"

#include <charconv>
#include <fmt/format.h>
#include <string_view>

namespace sluice::tools {

namespace {

// Of hipMemcpyKind.
constexpr int host_to_device = 1;
constexpr int device_to_host = 2;

} // namespace

sluice_error make_error() {
  sluice_error error;
  sluice_error_init(&error, sizeof error);
  return error;
}

void check(sluice_status status, const sluice_error &error) {
  if (status == SLUICE_OK) return;
  throw ToolError(fmt::format("{}: {}", sluice_status_name(status), error.message));
}

sluice_context_desc describe_device(const std::string &device) {
  sluice_context_desc desc;
  sluice_context_desc_init(&desc, sizeof desc);
  const std::string_view ordinal = std::string_view(device).substr(std::min<size_t>(4, device.size()));
  if (device == "emulated") {
    desc.kind = SLUICE_DEVICE_EMULATED;
  } else if (device.starts_with("hip:")) {
    desc.kind = SLUICE_DEVICE_HIP;
    const auto [end, code] =
        std::from_chars(ordinal.data(), ordinal.data() + ordinal.size(), desc.device_ordinal);
    if (code != std::errc() || end != ordinal.data() + ordinal.size() || desc.device_ordinal < 0)
      throw ToolError(
          fmt::format("--device is '{}'; 'hip:' must be followed by the number of a device", device));
  } else if (device.starts_with("gfx")) {
    desc.kind = SLUICE_DEVICE_TARGET;
    desc.target = device.c_str();
  } else {
    throw ToolError(fmt::format(
        "--device is '{}'; it must be 'emulated', 'hip:N' or a target such as 'gfx942:304'", device));
  }
  return desc;
}

ContextHandle make_context(const std::string &device, std::span<const std::byte> pack) {
  sluice_context_desc desc = describe_device(device);
  desc.pack = pack.data();
  desc.pack_bytes = pack.size();
  sluice_error error = make_error();
  sluice_context *context = nullptr;
  check(sluice_context_create(&desc, &context, &error), error);
  ContextHandle handle(context);
  if (desc.kind == SLUICE_DEVICE_HIP)
    check_hip(context, hip_symbol<int(int)>(context, "hipSetDevice")(desc.device_ordinal), "hipSetDevice");
  return handle;
}

std::vector<sluice_kernel_info> list_kernels(const sluice_context *context) {
  sluice_error error = make_error();
  uint32_t count = 0;
  check(sluice_list_kernels(context, 0, nullptr, &count, &error), error);
  std::vector<sluice_kernel_info> kernels(count);
  for (uint32_t i = 0; i < count; ++i) {
    sluice_kernel_info_init(&kernels[i], sizeof kernels[i]);
    check(sluice_list_kernels(context, i, &kernels[i], nullptr, &error), error);
  }
  return kernels;
}

std::string features_of(const sluice_kernel_info &kernel) {
  const std::string_view first = kernel.features, more = kernel.more_features;
  return fmt::format("{}{}{}", first, first.empty() || more.empty() ? "" : ",", more);
}

void check_hip(const sluice_context *context, int code, const char *what) {
  if (code == 0) return;
  const char *const text = hip_symbol<const char *(int)>(context, "hipGetErrorString")(code);
  throw ToolError(fmt::format("{}: HIP error {} ({})", what, code, text ? text : "no text"));
}

void copy_to_device(const sluice_context *context, void *to, const void *from, size_t bytes) {
  auto *const copy = hip_symbol<int(void *, const void *, size_t, int)>(context, "hipMemcpy");
  check_hip(context, copy(to, from, bytes, host_to_device), "hipMemcpy to the device");
}

DeviceBuffer::DeviceBuffer(const sluice_context *context, size_t bytes) : context(context) {
  check_hip(context, hip_symbol<int(void **, size_t)>(context, "hipMalloc")(&memory, bytes), "hipMalloc");
}

DeviceBuffer::~DeviceBuffer() {
  hip_symbol<int(void *)>(context, "hipFree")(memory);
}

void DeviceBuffer::upload(const void *from, size_t bytes) {
  copy_to_device(context, memory, from, bytes);
}

void DeviceBuffer::download(void *to, size_t bytes) const {
  auto *const copy = hip_symbol<int(void *, const void *, size_t, int)>(context, "hipMemcpy");
  check_hip(context, copy(to, memory, bytes, device_to_host), "hipMemcpy from the device");
}

std::optional<sluice_emulator_counters_t> emulator_counters(const sluice_context *context) {
  using Counters = int(sluice_emulator_counters_t *, size_t);
  auto *const read =
      reinterpret_cast<Counters *>(sluice_context_hip_symbol(context, "sluice_emulator_counters"));
  if (!read) return std::nullopt;
  sluice_emulator_counters_t counters{};
  if (read(&counters, sizeof counters) != SLUICE_EMULATOR_OK) return std::nullopt;
  return counters;
}

} // namespace sluice::tools

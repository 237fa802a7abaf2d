//===- device.cpp - the GPU, or the emulator in its place -----------------------------------------------===//

#include "device.h"

#include <stdexcept>

namespace jargon {

namespace {

// The two directions of hipMemcpy that are needed, with the values of hipMemcpyKind.
constexpr int host_to_device = 1;
constexpr int device_to_host = 2;

} // namespace

sluice_error make_error() {
  sluice_error error;
  sluice_error_init(&error, sizeof error);
  return error;
}

void check(sluice_status status, const sluice_error &error) {
  if (status != SLUICE_OK)
    throw std::runtime_error(std::string(sluice_status_name(status)) + ": " + error.message);
}

Device::Device(const std::string &name) {
  sluice_context_desc desc;
  sluice_context_desc_init(&desc, sizeof desc);
  if (name == "emulated") {
    desc.kind = SLUICE_DEVICE_EMULATED;
  } else if (name.starts_with("hip:") && name.size() > 4 &&
             name.find_first_not_of("0123456789", 4) == std::string::npos) {
    desc.kind = SLUICE_DEVICE_HIP;
    desc.device_ordinal = std::stoi(name.substr(4));
  } else {
    throw std::runtime_error("--device is '" + name + "'; it must be 'emulated' or 'hip:N'");
  }
  sluice_error error = make_error();
  sluice_context *created = nullptr;
  check(sluice_context_create(&desc, &created, &error), error);
  context.reset(created);
  if (desc.kind == SLUICE_DEVICE_HIP) call<int(int)>("hipSetDevice", desc.device_ordinal);
  const auto count = [](const sluice_trace_record *record, void *user) {
    if (record->event == SLUICE_TRACE_RUN) ++static_cast<Device *>(user)->runs[record->kernel];
  };
  check(sluice_set_trace(handle(), count, this, &error), error);
}

void *Device::find(const char *name) const {
  void *const found = sluice_context_hip_symbol(handle(), name);
  if (!found) throw std::runtime_error(std::string("the HIP runtime has no ") + name);
  return found;
}

void Device::check_hip(int code, const char *what) const {
  if (code == 0) return;
  const char *const text = symbol<const char *(int)>("hipGetErrorString")(code);
  throw std::runtime_error(std::string(what) + ": " + (text ? text : "HIP error " + std::to_string(code)));
}

void *Device::allocate(size_t bytes) {
  void *memory = nullptr;
  call<int(void **, size_t)>("hipMalloc", &memory, bytes);
  return memory;
}

void Device::release(void *memory) {
  symbol<int(void *)>("hipFree")(memory);
}

void Device::upload(void *to, const void *from, size_t bytes) {
  call<int(void *, const void *, size_t, int)>("hipMemcpy", to, from, bytes, host_to_device);
}

void Device::download(void *to, const void *from, size_t bytes) {
  call<int(void *, const void *, size_t, int)>("hipMemcpy", to, from, bytes, device_to_host);
}

void Device::synchronise() {
  call<int(void *)>("hipStreamSynchronize", nullptr);
}

std::optional<EmulatorCounters> Device::counters() const {
  using Read = int(EmulatorCounters *, size_t);
  auto *const read =
      reinterpret_cast<Read *>(sluice_context_hip_symbol(handle(), "sluice_emulator_counters"));
  if (!read) return std::nullopt;
  EmulatorCounters counters{};
  if (read(&counters, sizeof counters) != 0) return std::nullopt;
  return counters;
}

std::string Device::description() const {
  sluice_device_info info;
  sluice_device_info_init(&info, sizeof info);
  sluice_error error = make_error();
  check(sluice_context_device(handle(), &info, &error), error);
  return std::string(info.name[0] ? info.name : info.chip) + ", " + info.arch + ", " +
         std::to_string(info.compute_units) + " compute units, through " + info.runtime;
}

} // namespace jargon

//===- device.cpp - the device of a context -------------------------------------------------------------===//
#include "runtime/device.h"

#include "package/chips.h"
#include "support/failure.h"

#include <charconv>
#include <cstring>

namespace sluice::runtime {
namespace {

using support::Failure;
using support::Status;
using support::text;

// gcnArchName inside hipDeviceProp_t, whose layout changed with HIP 6. Under its plain name
// hipGetDeviceProperties fills in the old layout in every version.
constexpr size_t properties_bytes = 4096; // more than any layout has
constexpr size_t arch_offset_r0600 = 1160;
constexpr size_t arch_offset_r0000 = 396;
constexpr size_t arch_bytes = 256;

std::string read_arch(const HipTable &hip, int ordinal, std::string_view origin) {
  const bool is_r0600 = hip.hipGetDevicePropertiesR0600 != nullptr;
  const bool is_r0000 = hip.hipGetDevicePropertiesR0000 != nullptr;
  const auto get = is_r0600   ? hip.hipGetDevicePropertiesR0600
                   : is_r0000 ? hip.hipGetDevicePropertiesR0000
                              : hip.hipGetDeviceProperties;
  if (get == nullptr) {
    throw Failure(Status::no_device, "hipGetDeviceProperties",
                  text("the HIP runtime ", origin, " has no entry point hipGetDeviceProperties"));
  }
  alignas(16) char properties[properties_bytes] = {};
  check_hip(hip, get(properties, ordinal),
            is_r0600   ? "hipGetDevicePropertiesR0600"
            : is_r0000 ? "hipGetDevicePropertiesR0000"
                       : "hipGetDeviceProperties");
  const char *arch = properties + (is_r0600 ? arch_offset_r0600 : arch_offset_r0000);
  return {arch, strnlen(arch, arch_bytes)};
}

uint32_t read_attribute(const HipTable &hip, int attribute, int ordinal) {
  int value = 0;
  check_hip(hip, hip.hipDeviceGetAttribute(&value, attribute, ordinal), "hipDeviceGetAttribute");
  // A caller's own table may have left it unchanged; the library divides by some of these values.
  if (value <= 0) {
    throw Failure(Status::hip, {},
                  text("hipDeviceGetAttribute returned ", value, " for attribute ", attribute, " of device ",
                       ordinal, "; it must be at least 1"));
  }
  return uint32_t(value);
}

/// A machine without a GPU is not a failure of HIP.
void check_present(const HipTable &hip, HipError error, std::string_view call, std::string_view origin) {
  if (error == hip_no_device || error == hip_invalid_device) {
    throw Failure(Status::no_device, "device_ordinal",
                  text("HIP found no such device: ", call, " of ", origin, " returned ", error), error);
  }
  check_hip(hip, error, call);
}

} // namespace

Device open_device(uint32_t kind, int32_t ordinal, const HipSource &source) {
  Device device;
  device.kind = kind;
  device.ordinal = ordinal;
  device.origin = source.origin;
  device.hip = bind_hip(source.resolver, source.user, source.origin);
  const HipTable &hip = *device.hip;

  check_present(hip, hip.hipInit(0), "hipInit", source.origin);
  int count = 0;
  check_present(hip, hip.hipGetDeviceCount(&count), "hipGetDeviceCount", source.origin);
  if (ordinal < 0 || ordinal >= count) {
    throw Failure(Status::no_device, "device_ordinal",
                  text("device_ordinal is ", ordinal, "; ", source.origin, " has ", count,
                       count == 1 ? " device" : " devices"));
  }
  device.arch = read_arch(hip, ordinal, source.origin);
  device.chip = device.arch.substr(0, device.arch.find(':'));
  device.compute_units = read_attribute(hip, hip_attribute_compute_units, ordinal);
  device.wave_size = read_attribute(hip, hip_attribute_wave_size, ordinal);
  device.lds_bytes = read_attribute(hip, hip_attribute_lds_bytes, ordinal);
  if (kind == SLUICE_DEVICE_EMULATED) {
    const auto bind = [&]<typename Function>(Function &function, const char *entry) {
      function = reinterpret_cast<Function>(source.resolver(entry, source.user));
    };
    bind(device.checks_contents, "sluice_emulator_checks_contents");
    bind(device.has_memory, "sluice_emulator_has_memory");
    bind(device.check_call, "sluice_emulator_check_call");
  }
  char name[256] = {};
  if (hip.hipDeviceGetName != nullptr && hip.hipDeviceGetName(name, sizeof name, ordinal) == hip_success) {
    device.name.assign(name, strnlen(name, sizeof name));
  }
  int version = 0;
  if (hip.hipRuntimeGetVersion != nullptr && hip.hipRuntimeGetVersion(&version) == hip_success) {
    device.hip_runtime_version = version;
  }
  return device;
}

Device named_target(std::string_view target) {
  const size_t colon = target.find(':');
  const std::string_view units = colon == target.npos ? std::string_view() : target.substr(colon + 1);
  Device device;
  const auto [end, error] = std::from_chars(units.data(), units.data() + units.size(), device.compute_units);
  if (error != std::errc() || end != units.data() + units.size() || device.compute_units == 0) {
    throw Failure(Status::invalid_argument, "target",
                  text("target is '", target,
                       "'; it must be a chip and its number of compute units, as in gfx942:304"));
  }
  device.kind = SLUICE_DEVICE_TARGET;
  device.chip = device.arch = target.substr(0, colon);
  device.origin = "none";
  const package::Chip *chip = package::find_chip(device.chip);
  if (chip == nullptr) {
    std::string names;
    for (const package::Chip &known : package::chips)
      names += text(names.empty() ? "" : ", ", known.name);
    throw Failure(Status::wrong_arch, "target", text("target is '", target, "'; supported chips: ", names));
  }
  // As a device would report them.
  device.wave_size = chip->wave_size;
  device.lds_bytes = chip->lds_bytes;
  return device;
}

CurrentDevice::CurrentDevice(const Device &device) : hip(*device.hip) {
  check_hip(hip, hip.hipGetDevice(&previous), "hipGetDevice");
  if (previous == device.ordinal) return;
  check_hip(hip, hip.hipSetDevice(device.ordinal), "hipSetDevice");
  changed = true;
}

CurrentDevice::~CurrentDevice() {
  // The work on the device is already done, so a failure here does not fail the call.
  if (changed) {
    report_failure("the thread's device could not be made current again",
                   [&] { check_hip(hip, hip.hipSetDevice(previous), "hipSetDevice"); });
  }
}

} // namespace sluice::runtime

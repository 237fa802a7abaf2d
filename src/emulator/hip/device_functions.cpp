//===- device_functions.cpp - HIP's functions about the device and its errors ---------------------------===//
//
// device_properties.cpp has the properties of a device.
//
//===----------------------------------------------------------------------------------------------------===//
#include <cstdio>

#include "emulator/hip/capture.h"
#include "emulator/hip/device.h"
#include "emulator/hip/error.h"
#include "emulator/hip/functions.h"
#include "emulator/hip/program_end.h"
#include "emulator/hip/scheduler.h"

namespace sluice::emulator::hip {

namespace {

template <typename T> void store(T *out, T value) {
  require(out != nullptr, hipErrorInvalidValue);
  *out = value;
}

} // namespace

hipError_t hipInit(unsigned flags) {
  return call([&] { require(flags == 0, hipErrorInvalidValue); });
}

hipError_t hipRuntimeGetVersion(int *version) {
  return call([&] { store(version, hip_version); });
}

hipError_t hipDriverGetVersion(int *version) {
  return call([&] { store(version, hip_version); });
}

hipError_t hipGetDeviceCount(int *count) {
  return call([&] { store(count, Device::get().count()); });
}

hipError_t hipSetDevice(int device) {
  return call([&] { set_current_device(device); });
}

hipError_t hipGetDevice(int *device) {
  return call([&] { store(device, current_device()); });
}

hipError_t hipDeviceGet(hipDevice_t *device, int ordinal) {
  return call([&] {
    require_device(ordinal);
    store(device, ordinal);
  });
}

hipError_t hipDeviceGetName(char *name, int size, hipDevice_t device) {
  return call([&] {
    require_device(device);
    require(name != nullptr && size > 0, hipErrorInvalidValue);
    std::snprintf(name, size_t(size), "%s", device_name);
  });
}

hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device) {
  return call([&] {
    require_device(device);
    store(bytes, size_t(Device::get().memory().capacity_bytes()));
  });
}

hipError_t hipDeviceCanAccessPeer(int *can, int device, int peer) {
  return call([&] {
    require_device(device);
    require_device(peer);
    store(can, int(device != peer));
  });
}

hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags) {
  return call([&] {
    require(flags == 0, hipErrorInvalidValue);
    require_device(peer);
    require(peer != current_device(), hipErrorInvalidDevice);
    require(Device::get().set_peer_access(current_device(), peer, true), hipErrorPeerAccessAlreadyEnabled);
  });
}

hipError_t hipDeviceDisablePeerAccess(int peer) {
  return call([&] {
    require_device(peer);
    require(peer != current_device() && Device::get().set_peer_access(current_device(), peer, false),
            hipErrorPeerAccessNotEnabled);
  });
}

hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest) {
  return call([&] {
    if (least) *least = least_stream_priority;
    if (greatest) *greatest = greatest_stream_priority;
  });
}

hipError_t hipDeviceSynchronize() {
  return call([] {
    refuse_while_any_captures();
    Scheduler::get().wait_all(current_device());
    Scheduler::get().require_no_fault(current_device());
  });
}

hipError_t hipGetLastError() {
  last_error_seen();
  return take_last_error();
}

hipError_t hipExtGetLastError() {
  last_error_seen();
  return take_last_error();
}

hipError_t hipPeekAtLastError() {
  last_error_seen();
  return last_error();
}

} // namespace sluice::emulator::hip

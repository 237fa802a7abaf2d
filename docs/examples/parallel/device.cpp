//===- device.cpp - a rank's device: its memory, pinned memory of the host, streams ---------------------===//

#include "device.h"

namespace parallel {

namespace {

// Constants of HIP's headers.
constexpr int not_ready = 600;  // hipErrorNotReady
constexpr int by_addresses = 4; // hipMemcpyDefault
constexpr int to_device = 1, from_device = 2, within_device = 3;
constexpr unsigned beside_the_others = 1; // hipStreamNonBlocking

sluice::Context make_context(sluice_device_kind kind, int ordinal) {
  return sluice::Context::create(sluice::ContextDesc(kind, ordinal)).value();
}

/// An empty share is memory, too.
size_t at_least_one(size_t size_bytes) {
  return size_bytes ? size_bytes : 1;
}

} // namespace

Device::Device(sluice_device_kind kind, int ordinal) : made(make_context(kind, ordinal)) {
  hip<int>("hipSetDevice", ordinal);
}

void Device::check(const char *name, int code) const {
  if (code == 0) return;
  const char *const text = find<const char *(int)>("hipGetErrorString")(code);
  throw std::runtime_error(std::string(name) + ": " + (text ? text : "HIP error") + " (" +
                           std::to_string(code) + ")");
}

Memory::Memory(const Device &device, size_t size_bytes) : device(&device), count(size_bytes) {
  device.hip<void **, size_t>("hipMalloc", &start, at_least_one(size_bytes));
}

Memory::~Memory() {
  if (start) device->hip_quietly<void *>("hipFree", start);
}

void Memory::upload(const void *from, size_t size_bytes) {
  if (size_bytes)
    device->hip<void *, const void *, size_t, int>("hipMemcpy", start, from, size_bytes, to_device);
}

void Memory::download(void *to, size_t size_bytes) const {
  if (size_bytes)
    device->hip<void *, const void *, size_t, int>("hipMemcpy", to, start, size_bytes, from_device);
}

Pinned::Pinned(const Device &device, size_t size_bytes) : device(&device) {
  device.hip<void **, size_t, unsigned>("hipHostMalloc", &start, at_least_one(size_bytes), 0);
}

Pinned::~Pinned() {
  if (start) device->hip_quietly<void *>("hipHostFree", start);
}

Stream::Stream(const Device &device) : device(device) {
  device.hip<void **, unsigned>("hipStreamCreateWithFlags", &stream, beside_the_others);
}

Stream::~Stream() {
  device.hip_quietly<void *>("hipStreamSynchronize", stream);
  device.hip_quietly<void *>("hipStreamDestroy", stream);
}

void Stream::copy(void *to, const void *from, size_t size_bytes) const {
  if (size_bytes)
    device.hip<void *, const void *, size_t, int, void *>("hipMemcpyAsync", to, from, size_bytes,
                                                          by_addresses, stream);
}

void Stream::copy_rows(void *to, size_t to_pitch_bytes, const void *from, size_t from_pitch_bytes,
                       size_t width_bytes, size_t rows) const {
  device.hip<void *, size_t, const void *, size_t, size_t, size_t, int, void *>(
      "hipMemcpy2DAsync", to, to_pitch_bytes, from, from_pitch_bytes, width_bytes, rows, within_device,
      stream);
}

void Stream::hold(Gate &gate) const {
  void (*const wait_for)(void *) = [](void *user) { static_cast<Gate *>(user)->is_open.wait(false); };
  device.hip<void *, void (*)(void *), void *>("hipLaunchHostFunc", stream, wait_for, &gate);
}

bool Stream::is_done() const {
  const int code = device.hip_code<void *>("hipStreamQuery", stream);
  if (code == not_ready) return false;
  device.check("hipStreamQuery", code);
  return true;
}

void Stream::wait() const {
  device.hip<void *>("hipStreamSynchronize", stream);
}

} // namespace parallel

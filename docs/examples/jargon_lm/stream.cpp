//===- stream.cpp - a stream of the device, and graphs captured from it ---------------------------------===//

#include "stream.h"

namespace jargon {

namespace {

// With the values of HIP's headers.
constexpr int host_to_device = 1;
constexpr int device_to_host = 2;
constexpr unsigned non_blocking = 1; // hipStreamNonBlocking
constexpr int capture_global = 0;    // hipStreamCaptureModeGlobal

} // namespace

Graph::~Graph() {
  device->call_quietly<int(void *)>("hipGraphExecDestroy", executable);
}

Stream::Stream(Device &device) : device(device) {
  device.call<int(void **, unsigned)>("hipStreamCreateWithFlags", &stream, non_blocking);
}

Stream::~Stream() {
  device.call_quietly<int(void *)>("hipStreamDestroy", stream);
}

void Stream::copy(void *to, const void *from, size_t bytes, bool up) {
  device.call<int(void *, const void *, size_t, int, void *)>("hipMemcpyAsync", to, from, bytes,
                                                              up ? host_to_device : device_to_host, stream);
}

void Stream::run_on_host(void (*function)(void *), void *user) {
  device.call<int(void *, void (*)(void *), void *)>("hipLaunchHostFunc", stream, function, user);
}

std::unique_ptr<Graph> Stream::capture(const std::function<void()> &enqueue) {
  device.call<int(void *, int)>("hipStreamBeginCapture", stream, capture_global);
  void *graph = nullptr;
  try {
    enqueue();
  } catch (...) {
    // The stream cannot be used before its capture has ended. The error says only that it is incomplete.
    device.call_quietly<int(void *, void **)>("hipStreamEndCapture", stream, &graph);
    if (graph) device.call_quietly<int(void *)>("hipGraphDestroy", graph);
    throw;
  }
  device.call<int(void *, void **)>("hipStreamEndCapture", stream, &graph);
  void *executable = nullptr;
  device.call<int(void **, void *, void *, char *, size_t)>("hipGraphInstantiate", &executable, graph,
                                                            nullptr, nullptr, size_t{0});
  device.call<int(void *)>("hipGraphDestroy", graph);
  return std::make_unique<Graph>(device, executable);
}

void Stream::launch(const Graph &graph) {
  device.call<int(void *, void *)>("hipGraphLaunch", graph.handle(), stream);
}

void Stream::synchronise() {
  device.call<int(void *)>("hipStreamSynchronize", stream);
}

} // namespace jargon

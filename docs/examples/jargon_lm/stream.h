//===- stream.h - a stream of the device, and graphs captured from it -----------------------------------===//
//
// What an engine puts on a stream: copies, calls of sluice with the stream's handle, and its own functions on
// the host. The same lines that put them there can be captured: then nothing runs, and the graph that results
// does all of it at each launch, with the numbers that its memory holds by then.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "device.h"

#include <functional>
#include <type_traits>

namespace jargon {

/// An array in pinned host memory with a copy on the device.
template <typename T> class Mirror {
  static_assert(std::is_trivially_copyable_v<T>);

public:
  Mirror(Device &device, size_t count) : owner(&device), memory(device, count * sizeof(T)), count(count) {
    owner->call<int(void **, size_t, unsigned)>("hipHostMalloc", &pinned, count * sizeof(T), 0u);
  }
  Mirror(const Mirror &) = delete;
  Mirror &operator=(const Mirror &) = delete;
  ~Mirror() { owner->call_quietly<int(void *)>("hipHostFree", pinned); }

  std::span<T> host() const { return {static_cast<T *>(pinned), count}; }
  T *on_device() const { return static_cast<T *>(memory.data()); }

private:
  Device *owner;
  DeviceMemory memory;
  void *pinned = nullptr;
  size_t count;
};

/// A captured graph, ready to be launched.
class Graph {
public:
  Graph(const Device &device, void *executable) : device(&device), executable(executable) {}
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;
  ~Graph();
  void *handle() const { return executable; }

private:
  const Device *device;
  void *executable;
};

class Stream {
public:
  explicit Stream(Device &device);
  Stream(const Stream &) = delete;
  Stream &operator=(const Stream &) = delete;
  ~Stream();

  /// For sluice_launch::stream.
  void *handle() const { return stream; }

  // Each of these enqueues and returns. They copy the first `count` elements of a Mirror.
  template <typename T> void upload(const Mirror<T> &array, size_t count) {
    copy(array.on_device(), array.host().first(count).data(), count * sizeof(T), true);
  }
  template <typename T> void download(const Mirror<T> &array, size_t count) {
    copy(array.host().first(count).data(), array.on_device(), count * sizeof(T), false);
  }
  /// Calls function(user) on the host, after all work on the stream. It must call nothing of HIP and
  /// throw nothing.
  void run_on_host(void (*function)(void *), void *user);
  void launch(const Graph &graph);

  /// What `enqueue` puts on this stream, as a graph. Nothing of it runs.
  std::unique_ptr<Graph> capture(const std::function<void()> &enqueue);

  void synchronise();

private:
  void copy(void *to, const void *from, size_t bytes, bool up);

  Device &device;
  void *stream = nullptr;
};

} // namespace jargon

//===- device.h - a rank's device: its memory, pinned memory of the host, streams -----------------------===//
//
// The program links no HIP. Every function of HIP comes from the runtime that the context is bound to, so the
// same lines run on a GPU and on the emulator.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <sluice/sluice.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace parallel {

/// A context, and HIP's functions by their names.
class Device {
public:
  /// Makes the device current, too: of this thread, and so of the program.
  Device(sluice_device_kind kind, int ordinal);

  const sluice::Context &context() const { return made; }

  /// Calls a function of HIP. Throws std::runtime_error with its name and HIP's text unless it returns 0.
  template <class... Parameters, class... Arguments>
  void hip(const char *name, Arguments... arguments) const {
    check(name, find<int(Parameters...)>(name)(arguments...));
  }
  /// Calls it and returns its code, for callers that expect more than one.
  template <class... Parameters, class... Arguments>
  int hip_code(const char *name, Arguments... arguments) const {
    return find<int(Parameters...)>(name)(arguments...);
  }
  /// Calls it and ignores its code, for destructors.
  template <class... Parameters, class... Arguments>
  void hip_quietly(const char *name, Arguments... arguments) const noexcept {
    if (auto *function = made.hip<int(Parameters...)>(name)) static_cast<void>(function(arguments...));
  }
  /// Throws unless `code` is 0.
  void check(const char *name, int code) const;

private:
  template <class Function> Function *find(const char *name) const {
    Function *const found = made.hip<Function>(name);
    if (!found) throw std::runtime_error(std::string("this HIP runtime has no ") + name);
    return found;
  }

  sluice::Context made;
};

/// Memory of the device.
class Memory {
public:
  Memory(const Device &device, size_t size_bytes);
  /// With a copy of `values`.
  template <class T>
  Memory(const Device &device, const std::vector<T> &values) : Memory(device, values.size() * sizeof(T)) {
    upload(values.data(), values.size() * sizeof(T));
  }
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;
  Memory(Memory &&other) noexcept
      : device(other.device), start(std::exchange(other.start, nullptr)), count(other.count) {}
  ~Memory();

  size_t size_bytes() const { return count; }
  char *bytes() const { return static_cast<char *>(start); }
  float *floats() const { return static_cast<float *>(start); }
  /// Both wait. `download` fills `values`, which begin where the memory does.
  void upload(const void *from, size_t size_bytes);
  template <class T> void download(std::vector<T> &values) const {
    download(values.data(), values.size() * sizeof(T));
  }

private:
  void download(void *to, size_t size_bytes) const;

  const Device *device;
  void *start = nullptr;
  size_t count;
};

/// Page-locked memory of the host: copies to and from it run beside other work.
class Pinned {
public:
  Pinned(const Device &device, size_t size_bytes);
  Pinned(const Pinned &) = delete;
  Pinned &operator=(const Pinned &) = delete;
  Pinned(Pinned &&other) noexcept : device(other.device), start(std::exchange(other.start, nullptr)) {}
  ~Pinned();

  char *bytes() const { return static_cast<char *>(start); }

private:
  const Device *device;
  void *start = nullptr;
};

/// Holds a stream up. The stream must not be waited for until the gate is open.
class Gate {
public:
  Gate() = default;
  Gate(const Gate &) = delete;
  Gate &operator=(const Gate &) = delete;
  void close() { is_open = false; }
  void open() {
    is_open = true;
    is_open.notify_all();
  }

private:
  friend class Stream;
  std::atomic<bool> is_open = false;
};

/// Work in order, beside that of other streams. The destructor waits for it.
class Stream {
public:
  explicit Stream(const Device &device);
  Stream(const Stream &) = delete;
  Stream &operator=(const Stream &) = delete;
  ~Stream();

  /// For sluice_launch::stream.
  void *handle() const { return stream; }
  /// Enqueues a copy between host and device, or within the device.
  void copy(void *to, const void *from, size_t size_bytes) const;
  /// Enqueues a copy of `rows` rows of `width_bytes`, within the device.
  void copy_rows(void *to, size_t to_pitch_bytes, const void *from, size_t from_pitch_bytes,
                 size_t width_bytes, size_t rows) const;
  /// Work that is enqueued from now on begins when the gate is open.
  void hold(Gate &gate) const;
  /// Whether all is done. Throws if the device has failed.
  bool is_done() const;
  void wait() const;

private:
  const Device &device;
  void *stream = nullptr;
};

} // namespace parallel

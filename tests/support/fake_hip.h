//===- fake_hip.h - a HIP table that counts and runs nothing --------------------------------------------===//
//
// For tests of how the library uses HIP: which calls, in which order, with which arguments, and what happens
// when one fails. HIP functions have no user pointer, so there is one FakeHip at a time, found through a
// global. A call records itself without allocating.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "package/kernargs.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::test {

class FakeHip {
public:
  struct Call {
    const char *name;
    void *stream; // of the stream and event functions and of launches
    void *event;
  };

  struct Launch {
    void *function;
    std::array<unsigned, 3> grid;
    unsigned block[3];
    unsigned dynamic_lds_bytes;
    void *stream;
    size_t kernarg_bytes;
    package::AttentionKernargs kernargs;   // of attention
    std::array<std::byte, 2048> arguments; // of any kernel

    /// The arguments of a kernel that has these.
    template <typename Kernargs> Kernargs as() const {
      if (kernarg_bytes != sizeof(Kernargs)) throw std::logic_error("the launch has other arguments");
      Kernargs result;
      std::memcpy(&result, arguments.data(), sizeof result);
      return result;
    }
  };

  FakeHip() {
    if (current != nullptr) throw std::logic_error("there is a FakeHip already");
    current = this;
  }
  FakeHip(const FakeHip &) = delete;
  FakeHip &operator=(const FakeHip &) = delete;
  ~FakeHip() { current = nullptr; }

  // The properties of the device.
  int device_count = 1;
  int current_device = 0;
  std::string arch = "gfx942:sramecc+:xnack-";
  std::map<int, int> attributes = {{63, 304}, {74, 65536}, {87, 64}}; // others are unknown
  std::set<void *> capturing;
  std::set<std::string, std::less<>> missing;      // entry points that do not exist
  std::map<std::string, int, std::less<>> failing; // entry points that return this error
  bool keeps_function_names = true;                // that allocates

  // Records of the calls.
  std::array<Call, 256> calls = {};
  size_t call_count = 0;
  Launch launch = {};                    // the last one
  Launch attention = {};                 // the last one of attention
  std::array<Launch, 4> attentions = {}; // the first ones since forget_calls()
  size_t attention_count = 0;
  std::vector<std::string> functions; // names asked for, in order
  size_t function_count = 0;          // handles count from 1
  size_t loaded_modules = 0;
  std::array<std::byte, 64> loaded_image = {}; // the beginning of the last one

  void forget_calls() { call_count = attention_count = 0; }

  size_t count(std::string_view name) const {
    size_t n = 0;
    for (size_t i = 0; i < call_count; ++i)
      n += calls[i].name == name;
    return n;
  }

  std::vector<std::string> call_names() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < call_count; ++i)
      names.push_back(calls[i].name);
    return names;
  }

  static void *handle(size_t number) { return reinterpret_cast<void *>(number); }

  /// A sluice_hip_resolver; the user pointer is not used.
  static void *resolve(const char *name, void *) {
    struct Entry {
      const char *name;
      void *function;
    };
#define SLUICE_ENTRY(function)                                                                               \
  Entry { #function, reinterpret_cast<void *>(&function) }
    static const Entry entries[] = {
        SLUICE_ENTRY(hipInit),
        SLUICE_ENTRY(hipGetDeviceCount),
        SLUICE_ENTRY(hipGetDevice),
        SLUICE_ENTRY(hipSetDevice),
        SLUICE_ENTRY(hipDeviceGetAttribute),
        SLUICE_ENTRY(hipGetDevicePropertiesR0600),
        SLUICE_ENTRY(hipGetDevicePropertiesR0000),
        SLUICE_ENTRY(hipGetDeviceProperties),
        SLUICE_ENTRY(hipDeviceGetName),
        SLUICE_ENTRY(hipRuntimeGetVersion),
        SLUICE_ENTRY(hipGetErrorName),
        SLUICE_ENTRY(hipModuleLoadData),
        SLUICE_ENTRY(hipModuleUnload),
        SLUICE_ENTRY(hipModuleGetFunction),
        SLUICE_ENTRY(hipModuleLaunchKernel),
        SLUICE_ENTRY(hipStreamWaitEvent),
        SLUICE_ENTRY(hipStreamIsCapturing),
        SLUICE_ENTRY(hipEventRecord),
    };
#undef SLUICE_ENTRY
    if (current->missing.contains(std::string_view(name))) return nullptr;
    for (const Entry &entry : entries) {
      if (std::strcmp(entry.name, name) == 0) return entry.function;
    }
    return nullptr;
  }

private:
  static inline FakeHip *current = nullptr;

  static int called(const char *name, void *stream = nullptr, void *event = nullptr) {
    if (current->call_count < current->calls.size())
      current->calls[current->call_count] = {name, stream, event};
    ++current->call_count;
    const auto failing = current->failing.find(std::string_view(name));
    return failing == current->failing.end() ? 0 : failing->second;
  }

  static int hipInit(unsigned) { return called(__func__); }
  static int hipGetDeviceCount(int *count) {
    *count = current->device_count;
    return called(__func__);
  }
  static int hipGetDevice(int *device) {
    *device = current->current_device;
    return called(__func__);
  }
  static int hipSetDevice(int device) {
    current->current_device = device;
    return called(__func__);
  }
  static int hipDeviceGetAttribute(int *value, int attribute, int) {
    const auto found = current->attributes.find(attribute);
    if (found != current->attributes.end()) *value = found->second;
    return called(__func__);
  }
  static int hipGetDevicePropertiesR0600(void *properties, int) {
    std::strcpy(static_cast<char *>(properties) + 1160, current->arch.c_str());
    return called(__func__);
  }
  static int hipGetDevicePropertiesR0000(void *properties, int) {
    std::strcpy(static_cast<char *>(properties) + 396, current->arch.c_str());
    return called(__func__);
  }
  static int hipGetDeviceProperties(void *properties, int) {
    std::strcpy(static_cast<char *>(properties) + 396, current->arch.c_str());
    return called(__func__);
  }
  static int hipDeviceGetName(char *name, int bytes, int) {
    std::strncpy(name, "Fake Instinct", size_t(bytes));
    return called(__func__);
  }
  static int hipRuntimeGetVersion(int *version) {
    *version = 60300000;
    return called(__func__);
  }
  static const char *hipGetErrorName(int error) {
    return error == 719 ? "hipErrorLaunchFailure" : "hipErrorOther";
  }
  static int hipModuleLoadData(void **module, const void *image) {
    if (std::memcmp(image,
                    "\x7f"
                    "ELF",
                    4) != 0)
      return 200;
    std::memcpy(current->loaded_image.data(), image, current->loaded_image.size());
    const int error = called(__func__);
    if (error == 0) *module = handle(++current->loaded_modules);
    return error;
  }
  static int hipModuleUnload(void *) {
    --current->loaded_modules;
    return called(__func__);
  }
  static int hipModuleGetFunction(void **function, void *, const char *name) {
    const int error = called(__func__);
    if (current->keeps_function_names) current->functions.push_back(name);
    if (error == 0) *function = handle(++current->function_count);
    return error;
  }
  static int hipModuleLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z,
                                   unsigned dynamic_lds_bytes, void *stream, void **parameters,
                                   void **extra) {
    Launch &launch = current->launch;
    launch = {
        function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, dynamic_lds_bytes, stream, 0, {},
        {}};
    // Exactly: buffer pointer, its size, end.
    if (parameters != nullptr || extra[0] != handle(1) || extra[2] != handle(2) || extra[4] != handle(3))
      return 1;
    launch.kernarg_bytes = *static_cast<size_t *>(extra[3]);
    if (launch.kernarg_bytes > launch.arguments.size()) return 1;
    std::memcpy(launch.arguments.data(), extra[1], launch.kernarg_bytes);
    if (launch.kernarg_bytes == sizeof launch.kernargs) {
      std::memcpy(&launch.kernargs, extra[1], sizeof launch.kernargs);
      current->attention = launch;
      if (current->attention_count < current->attentions.size())
        current->attentions[current->attention_count++] = launch;
    }
    return called(__func__, stream);
  }
  static int hipStreamWaitEvent(void *stream, void *event, unsigned) {
    return called(__func__, stream, event);
  }
  static int hipStreamIsCapturing(void *stream, int *status) {
    *status = current->capturing.contains(stream) ? 1 : 0;
    const int error = called(__func__, stream);
    // hipErrorStreamCaptureImplicit
    return stream == nullptr && !current->capturing.empty() ? 906 : error;
  }
  static int hipEventRecord(void *event, void *stream) { return called(__func__, stream, event); }
};

} // namespace sluice::test

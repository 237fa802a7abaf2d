//===- device.h - the emulated device, for tests of single calls ----------------------------------------===//
//
// Memory is the host's, registered byte for byte: an access to anything else is an error of the emulator.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "calls/values.h"

#include <sluice/emulator.h>
#include <sluice/merge.h>

#include <catch2/catch.hpp>

#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace sluice::test {

template <typename Function> Function *hip(const char *name) {
  void *symbol = sluice_emulator_symbol(name);
  if (!symbol) throw std::runtime_error(std::string("the emulator has no ") + name);
  return reinterpret_cast<Function *>(symbol);
}

/// Pseudo-random numbers, the same each time.
class Numbers {
public:
  explicit Numbers(uint64_t seed) : state(seed * 2 + 1) {}
  uint32_t next() {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return uint32_t(state >> 32);
  }
  uint32_t below(uint32_t end) { return next() % end; }
  double between(double low, double high) { return low + (high - low) * (next() / 4294967296.0); }

private:
  uint64_t state;
};

/// Elements that the device sees while the object lives; the device sees nothing after their end.
template <typename Element> class Visible {
public:
  explicit Visible(size_t count, Element value = {}) : Visible(std::vector<Element>(count, value)) {}
  explicit Visible(const std::vector<Element> &values)
      : count(values.size()), bytes(values.size() * sizeof(Element)),
        memory(new std::byte[bytes + 2 * alignment]) {
    const auto address = reinterpret_cast<uintptr_t>(memory.get());
    first = reinterpret_cast<Element *>((address + alignment) / alignment * alignment);
    if (count == 0) return;
    std::memcpy(first, values.data(), bytes);
    if (hip<int(void *, size_t, unsigned)>("hipHostRegister")(first, bytes, 0) != 0)
      throw std::runtime_error("hipHostRegister failed");
  }
  Visible(const Visible &) = delete;
  Visible &operator=(const Visible &) = delete;
  ~Visible() {
    if (count != 0) hip<int(void *)>("hipHostUnregister")(first);
  }

  Element *data() { return first; }
  const Element *data() const { return first; }
  size_t size() const { return count; }
  Element &operator[](size_t i) { return first[i]; }
  const Element &operator[](size_t i) const { return first[i]; }
  std::vector<Element> copy() const { return {first, first + count}; }

private:
  static constexpr size_t alignment = 256;
  size_t count, bytes;
  std::unique_ptr<std::byte[]> memory;
  Element *first = nullptr;
};

struct DestroyContext {
  void operator()(sluice_context *context) const { sluice_context_destroy(context); }
};

/// One context for all tests of a program.
inline sluice_context *device() {
  static const std::unique_ptr<sluice_context, DestroyContext> context = [] {
    sluice_context_desc desc;
    sluice_context_desc_init(&desc, sizeof desc);
    desc.kind = SLUICE_DEVICE_EMULATED;
    sluice_error error;
    sluice_error_init(&error, sizeof error);
    sluice_context *created = nullptr;
    if (sluice_context_create(&desc, &created, &error) != SLUICE_OK) throw std::runtime_error(error.message);
    return std::unique_ptr<sluice_context, DestroyContext>(created);
  }();
  return context.get();
}

/// The emulator's reports since the last time, as JSON.
inline std::string take_reports() {
  std::string reports(sluice_emulator_take_reports(nullptr, 0), '\0');
  sluice_emulator_take_reports(reports.data(), reports.size());
  return reports.c_str();
}

/// Waits for all enqueued work; the device must not have reported an error.
inline void require_good_end() {
  const int result = hip<int(void *)>("hipStreamSynchronize")(nullptr);
  const std::string reports = take_reports();
  INFO(reports);
  REQUIRE(result == 0);
  REQUIRE(reports == "[]");
}

inline calls::AppendValues values_of(const calls::Append &call) {
  return calls::AppendValues(call);
}
inline calls::CopyValues values_of(const calls::PageCopy &call) {
  return calls::CopyValues(call);
}
inline calls::GatherValues values_of(const calls::Gather &call) {
  return calls::GatherValues(call);
}
inline const calls::Args *values_of(const calls::Args &call) {
  return &call; // whoever runs it knows its problem
}
inline const sluice_merge_args *values_of(const sluice_merge_args &call) {
  return &call;
}

/// Runs a call to its end.
template <typename Call, typename Run> void run_on_device(const Call &call, Run run) {
  sluice_launch launch;
  sluice_launch_init(&launch, sizeof launch);
  sluice_error error;
  sluice_error_init(&error, sizeof error);
  const sluice_status status = run(device(), values_of(call), &launch, &error);
  INFO(error.field << ": " << error.message);
  REQUIRE(status == SLUICE_OK);
  require_good_end();
}

} // namespace sluice::test

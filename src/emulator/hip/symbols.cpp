//===- symbols.cpp - the exported functions -------------------------------------------------------------===//
//
// Names of functions, and the entry points of emulator.h.
//
//===----------------------------------------------------------------------------------------------------===//
#include <cstring>
#include <map>
#include <string_view>

#include "emulator/hip/device.h"
#include "emulator/hip/error.h"
#include "emulator/hip/function_versions.h"
#include "emulator/hip/functions.h"
#include "emulator/hip/operations.h"
#include "emulator/hip/scheduler.h"
#include "emulator/hip/streams.h"
#include "emulator/stats/kernel_stats.h"
#include <sluice/emulator.h>

namespace sluice::emulator::hip {

namespace {

constexpr std::string_view new_device_properties = "hipGetDevicePropertiesR0600";

template <typename Function> void *address_of(Function *function) {
  return reinterpret_cast<void *>(function);
}

const std::map<std::string_view, void *> &symbols() {
  static const std::map<std::string_view, void *> table{
#define SLUICE_SYMBOL(name, parameters) {#name, address_of(&name)},
      SLUICE_HIP_FUNCTIONS(SLUICE_SYMBOL)
#undef SLUICE_SYMBOL
#define SLUICE_SYMBOL(result, name, parameters) {#name, address_of(&name)},
          SLUICE_HIP_REGISTRATION_FUNCTIONS(SLUICE_SYMBOL)
#undef SLUICE_SYMBOL
              {"hipGetErrorName", address_of(&hipGetErrorName)},
      {"hipGetErrorString", address_of(&hipGetErrorString)},
      {"sluice_emulator_symbol", address_of(&sluice_emulator_symbol)},
      {"sluice_emulator_configure", address_of(&sluice_emulator_configure)},
      {"sluice_emulator_check_call", address_of(&sluice_emulator_check_call)},
      {"sluice_emulator_checks_contents", address_of(&sluice_emulator_checks_contents)},
      {"sluice_emulator_has_memory", address_of(&sluice_emulator_has_memory)},
      {"sluice_emulator_counters", address_of(&sluice_emulator_counters)},
      {"sluice_emulator_mfma_count", address_of(&sluice_emulator_mfma_count)},
      {"sluice_emulator_pool_create", address_of(&sluice_emulator_pool_create)},
      {"sluice_emulator_pool_destroy", address_of(&sluice_emulator_pool_destroy)},
      {"sluice_emulator_pool_allocated", address_of(&sluice_emulator_pool_allocated)},
      {"sluice_emulator_pool_freed", address_of(&sluice_emulator_pool_freed)},
      {"sluice_emulator_watch", address_of(&sluice_emulator_watch)},
      {"sluice_emulator_unwatch", address_of(&sluice_emulator_unwatch)},
      {"sluice_emulator_take_reports", address_of(&sluice_emulator_take_reports)},
      {"sluice_emulator_kernel_stats", address_of(&sluice_emulator_kernel_stats)},
      {"sluice_emulator_disassemble", address_of(&sluice_emulator_disassemble)},
  };
  return table;
}

/// Whether a function that has no error code for this case may begin.
bool usable() {
  return !is_orphaned() && may_throw();
}

/// True if the text fitted and was written.
bool write_text(std::string_view text, char *buffer, size_t size) {
  if (buffer == nullptr || size == 0) return false;
  const bool fits = text.size() < size;
  if (fits) std::memcpy(buffer, text.data(), text.size());
  buffer[fits ? text.size() : 0] = '\0';
  return fits;
}

/// Writes what `make` returns, or `failure` of its error message; returns the size that the text needs.
template <typename Make, typename Fail>
size_t text_call(char *buffer, size_t size, Make &&make, Fail &&failure) {
  if (!may_throw()) return write_text("", buffer, size), 0;
  try {
    std::string text;
    try {
      text = make();
    } catch (const std::exception &error) {
      text = failure(error.what());
    }
    write_text(text, buffer, size);
    return text.size() + 1;
  } catch (...) { // no memory for the text itself
    if (buffer != nullptr && size != 0) buffer[0] = '\0';
    return 0;
  }
}

std::span<const std::byte> bytes_of(const void *elf, size_t size) {
  return {static_cast<const std::byte *>(elf), elf ? size : 0};
}

} // namespace

// `version` is what the caller was written for: it finds functions that existed then and, for a name whose
// layout has changed since, the old function.
hipError_t hipGetProcAddress(const char *name, void **function, int version, uint64_t flags,
                             hipDriverProcAddressQueryResult *status) {
  return call([&] {
    require(name != nullptr && *name != '\0' && function != nullptr && version > 0, hipErrorInvalidValue);
    require(flags == 0, hipErrorInvalidValue); // the default; HIP has no other flag yet
    *function = nullptr;
    const bool new_layout = std::string_view(name) == "hipGetDeviceProperties" &&
                            version >= function_version(new_device_properties);
    const std::string_view wanted = new_layout ? new_device_properties : name;
    const int since = function_version(wanted);
    const auto at = symbols().find(wanted);
    const auto result = at == symbols().end() || since == 0 ? HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
                        : since > version                   ? HIP_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                                            : HIP_GET_PROC_ADDRESS_SUCCESS;
    if (status) *status = result;
    require(result == HIP_GET_PROC_ADDRESS_SUCCESS, hipErrorInvalidValue);
    *function = at->second;
  });
}

namespace {

/// SLUICE_EMULATOR_OK if `work` returns true.
template <typename Work> int pool_call(Work &&work) {
  if (!usable()) return SLUICE_EMULATOR_BAD_VALUE;
  try {
    if (work(Device::get().pools())) return SLUICE_EMULATOR_OK;
  } catch (...) { // no memory for the table
  }
  return SLUICE_EMULATOR_BAD_VALUE;
}

} // namespace

} // namespace sluice::emulator::hip

using namespace sluice::emulator;
using namespace sluice::emulator::hip;

extern "C" {

void *sluice_emulator_symbol(const char *name) {
  if (name == nullptr || !may_throw()) return nullptr;
  try {
    const auto &table = symbols();
    const auto at = table.find(name);
    return at == table.end() ? nullptr : at->second;
  } catch (...) {
    return nullptr;
  }
}

int sluice_emulator_configure(const char *key, const char *value) {
  if (key == nullptr) return SLUICE_EMULATOR_UNKNOWN_KEY;
  if (value == nullptr || !usable()) return SLUICE_EMULATOR_BAD_VALUE;
  try {
    switch (Device::get().configure(key, value)) {
    case Configured::ok:
      return SLUICE_EMULATOR_OK;
    case Configured::unknown_key:
      return SLUICE_EMULATOR_UNKNOWN_KEY;
    case Configured::bad_value:
      return SLUICE_EMULATOR_BAD_VALUE;
    }
  } catch (...) { // clear_fault from a host function
  }
  return SLUICE_EMULATOR_BAD_VALUE;
}

int sluice_emulator_counters(sluice_emulator_counters_t *out, size_t size) {
  if (out == nullptr || size > sizeof *out || !usable()) return SLUICE_EMULATOR_BAD_VALUE;
  const Counters counters = Device::get().counters();
  const sluice_emulator_counters_t all = {counters.wave_instructions,
                                          counters.waves,
                                          counters.workgroups,
                                          counters.mfma_instructions,
                                          counters.lds_bank_conflicts,
                                          counters.launches,
                                          live_streams(),
                                          live_events(),
                                          Scheduler::get().closed_busy(),
                                          counters.buffer_lanes_out_of_range,
                                          Device::get().reports_dropped()};
  std::memcpy(out, &all, size);
  return SLUICE_EMULATOR_OK;
}

int sluice_emulator_mfma_count(const char *mnemonic, uint64_t *count) {
  if (mnemonic == nullptr || count == nullptr || !usable()) return SLUICE_EMULATOR_BAD_VALUE;
  const auto kinds = mfma_instructions();
  for (size_t kind = 0; kind < kinds.size(); ++kind) {
    if (kinds[kind].mnemonic != mnemonic) continue;
    *count = Device::get().counters().mfma_by_kind[kind];
    return SLUICE_EMULATOR_OK;
  }
  return SLUICE_EMULATOR_UNKNOWN_KEY;
}

int sluice_emulator_checks_contents() {
  return usable() && Device::get().options().checks.contents ? 1 : 0;
}

int sluice_emulator_has_memory(const void *address) {
  return !usable() || Device::get().memory().find(address).has_value() ? 1 : 0;
}

int sluice_emulator_check_call(void *stream, const char *name, sluice_emulator_check_t check,
                               const void *call, size_t bytes) {
  if (name == nullptr || check == nullptr || call == nullptr || !usable()) return SLUICE_EMULATOR_BAD_VALUE;
  try {
    const auto *const first = static_cast<const std::byte *>(call);
    submit(work_stream(static_cast<hipStream_t>(stream)), ContentsCheck{name, check, {first, first + bytes}});
    return SLUICE_EMULATOR_OK;
  } catch (...) { // no such stream, a device with a fault, or no memory
  }
  return SLUICE_EMULATOR_BAD_VALUE;
}

int sluice_emulator_watch(const void *start, size_t bytes, uint32_t *loads, uint32_t *stores) {
  const auto first = reinterpret_cast<uint64_t>(start);
  if (first % 4 != 0 || bytes % 4 != 0 || bytes == 0 || !in_address_space(first, bytes) || !usable())
    return SLUICE_EMULATOR_BAD_VALUE;
  try {
    if (Device::get().watch({first, first + bytes, loads, stores})) return SLUICE_EMULATOR_OK;
  } catch (...) { // no memory for the range
  }
  return SLUICE_EMULATOR_BAD_VALUE;
}

int sluice_emulator_unwatch(const void *start) {
  if (!usable()) return SLUICE_EMULATOR_BAD_VALUE;
  try {
    if (Device::get().unwatch(reinterpret_cast<uint64_t>(start))) return SLUICE_EMULATOR_OK;
  } catch (...) { // no memory for the ranges that are left
  }
  return SLUICE_EMULATOR_BAD_VALUE;
}

int sluice_emulator_pool_create(const void *start, size_t bytes) {
  return pool_call([&](PoolAnnotations &pools) {
    const std::optional<MemoryBlock> block = Device::get().memory().find(start);
    return block && block->address == reinterpret_cast<uint64_t>(start) && block->bytes == bytes &&
           !block->attached && pools.create(*block);
  });
}

int sluice_emulator_pool_destroy(const void *start) {
  return pool_call([&](PoolAnnotations &pools) { return pools.destroy(reinterpret_cast<uint64_t>(start)); });
}

int sluice_emulator_pool_allocated(const void *address, size_t bytes) {
  return pool_call(
      [&](PoolAnnotations &pools) { return pools.allocate(reinterpret_cast<uint64_t>(address), bytes); });
}

int sluice_emulator_pool_freed(const void *address) {
  return pool_call(
      [&](PoolAnnotations &pools) { return pools.release(reinterpret_cast<uint64_t>(address)); });
}

size_t sluice_emulator_take_reports(char *buffer, size_t size) {
  size_t needed = 0;
  if (!may_throw()) return write_text("", buffer, size), 0;
  try {
    if (is_orphaned()) return write_text("[]", buffer, size), sizeof "[]";
    Device::get().take_reports([&](const std::string &text) {
      needed = text.size() + 1;
      return write_text(text, buffer, size);
    });
  } catch (...) {
    if (buffer != nullptr && size != 0) buffer[0] = '\0';
  }
  return needed;
}

size_t sluice_emulator_kernel_stats(const void *elf, size_t elf_size, const char *kernel, char *buffer,
                                    size_t size) {
  return text_call(
      buffer, size, [&] { return kernel_stats_json(bytes_of(elf, elf_size), kernel ? kernel : ""); },
      [](const char *message) { return "{\"error\": " + json_string(message) + "}"; });
}

size_t sluice_emulator_disassemble(const void *elf, size_t elf_size, const char *kernel, char *buffer,
                                   size_t size) {
  return text_call(
      buffer, size,
      [&] {
        const std::string text = Program(bytes_of(elf, elf_size)).disassemble(kernel ? kernel : "");
        if (text.empty()) throw std::runtime_error(std::string("no kernel '") + (kernel ? kernel : "") + "'");
        return text;
      },
      [](const char *message) { return std::string("error: ") + message; });
}

} // extern "C"

//===- host_calls.cpp - the program's calls behind launches and memory ----------------------------------===//
#include "emulator/hip/host_calls.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include <dlfcn.h>
#include <execinfo.h>

#include "emulator/hip/device.h"
#include "emulator/isa/source_lines.h"

namespace sluice::emulator::hip {

namespace {

constexpr size_t most_allocations = 1 << 16; // the oldest are forgotten

/// A file that is loaded into this process.
struct LoadedFile {
  std::vector<std::byte> bytes;
  std::unique_ptr<SourceLines> lines;
  bool fixed = false; // its addresses are those in memory
};

class Calls {
public:
  static Calls &get() {
    static auto *const instance = new Calls;
    return *instance;
  }

  void add(uint64_t serial, const CallSite &call) {
    const std::lock_guard lock(mutex);
    allocations[serial] = call;
    if (allocations.size() > most_allocations) allocations.erase(allocations.begin());
  }
  CallSite allocation(uint64_t serial) {
    const std::lock_guard lock(mutex);
    const auto found = allocations.find(serial);
    return found == allocations.end() ? CallSite() : found->second;
  }

  std::string text(const CallSite &call) {
    const std::lock_guard lock(mutex);
    for (int i = 0; i < call.count; ++i) {
      Dl_info module{};
      if (dladdr(call.frames[size_t(i)], &module) == 0 || module.dli_fbase == own_base()) continue;
      // A return address may be that of the next line, or even of the next function.
      const uint64_t address = reinterpret_cast<uint64_t>(call.frames[size_t(i)]) - 1;
      if (std::string found = text(module, address); !found.empty()) return found;
    }
    return {};
  }

private:
  static const void *own_base() {
    Dl_info own{};
    dladdr(reinterpret_cast<const void *>(&call_site_text), &own);
    return own.dli_fbase;
  }

  /// HIP's headers wrap its functions in templates, and compilers wrap a launch in a stub.
  static bool is_hips(std::string_view function) {
    return function.starts_with("hip") || function.starts_with("__hip") ||
           function.find("__device_stub__") != std::string_view::npos;
  }

  std::string text(const Dl_info &module, uint64_t address) {
    const LoadedFile &file = load(module.dli_fname);
    const uint64_t in_file = file.fixed ? address : address - reinterpret_cast<uint64_t>(module.dli_fbase);
    const std::vector<SourceLines::Frame> frames = file.lines->frames(in_file);
    for (const SourceLines::Frame &frame : frames)
      if (!is_hips(frame.function))
        return (frame.function.empty() ? "" : frame.function + ", ") + frame.file + ":" +
               std::to_string(frame.line);
    const std::string function = frames.empty() ? file.lines->symbol(in_file) : "";
    return function.empty() || is_hips(function) ? "" : function + " in " + module.dli_fname;
  }

  const LoadedFile &load(const char *path) {
    const auto [place, is_new] = files.try_emplace(path);
    LoadedFile &file = place->second;
    if (!is_new) return file;
    std::ifstream stream(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
    const auto all = std::as_bytes(std::span(bytes));
    file.bytes.assign(all.begin(), all.end());
    file.lines = std::make_unique<SourceLines>(file.bytes);
    constexpr size_t type_at = 16; // e_type of an ELF header
    constexpr std::byte executable{2};
    file.fixed = file.bytes.size() > type_at && file.bytes[type_at] == executable;
    return file;
  }

  std::mutex mutex;
  std::map<uint64_t, CallSite> allocations; // by the serial number of the block
  std::map<std::string, LoadedFile> files;
};

/// Whether a report's address is one of memory.
bool is_about_memory(ReportKind kind) {
  switch (kind) {
  case ReportKind::global_race:
  case ReportKind::stale_cache:
  case ReportKind::memory_uninitialised:
  case ReportKind::global_out_of_bounds:
  case ReportKind::global_freed:
  case ReportKind::no_peer_access:
  case ReportKind::global_read_only:
  case ReportKind::stream_race:
  case ReportKind::freed_in_use:
    return true;
  default:
    return false;
  }
}

} // namespace

CallSite call_site() {
  CallSite call;
  if (Device::get().notes_host_calls()) call.count = backtrace(call.frames.data(), CallSite::most);
  return call;
}

void note_allocation(const void *start) {
  if (!Device::get().notes_host_calls()) return;
  if (const std::optional<MemoryBlock> block = Device::get().memory().find(start))
    Calls::get().add(block->serial, call_site());
}

std::string call_site_text(const CallSite &call) {
  return Calls::get().text(call);
}

void describe_host_calls(Report &report, const CallSite *launch) {
  if (!Device::get().notes_host_calls()) return;
  if (launch != nullptr) report.launched_by = call_site_text(*launch);
  if (!is_about_memory(report.kind)) return;
  const std::shared_ptr<const BlockTable> memory = Device::get().memory().snapshot();
  if (const MemoryBlock *const block = memory->nearest(report.address))
    report.allocated_by = call_site_text(Calls::get().allocation(block->serial));
}

} // namespace sluice::emulator::hip

//===- library.cpp - finding HIP, the emulator and roctx at run time ------------------------------------===//
#include "runtime/library.h"

#include "support/failure.h"

#include <array>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <span>
#include <string_view>

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

namespace sluice::runtime {
namespace {

using support::Failure;
using support::Status;
using support::text;

// Some packagers put a hash between name and suffix: libamdhip64-0a1b2c3d.so.6.
constexpr std::string_view hip_file_prefix = "libamdhip64";
constexpr std::array hip_sonames = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"};
constexpr const char *emulator_soname = "libsluice_emulator.so.1";
// Of ROCm 6.2 and later, and of the tracer before.
constexpr std::array roctx_sonames = {"librocprofiler-sdk-roctx.so.1", "libroctx64.so.4"};

std::string_view file_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

void *resolve_in_library(const char *name, void *library) {
  return dlsym(library, name);
}

std::string last_error() {
  const char *message = dlerror();
  return message != nullptr ? message : "unknown error";
}

/// The path under which the process has loaded a HIP runtime; empty if it has not.
std::string loaded_hip() {
  std::string found;
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *user) {
        if (!file_name(info->dlpi_name).starts_with(hip_file_prefix)) return 0;
        *static_cast<std::string *>(user) = info->dlpi_name;
        return 1;
      },
      &found);
  return found;
}

/// Whether an address is in the program itself, which comes first in the list.
bool is_in_program(uintptr_t address) {
  return dl_iterate_phdr(
             [](dl_phdr_info *info, size_t, void *user) {
               const uintptr_t offset = *static_cast<const uintptr_t *>(user) - info->dlpi_addr;
               for (const ElfW(Phdr) &segment : std::span(info->dlpi_phdr, info->dlpi_phnum))
                 if (segment.p_type == PT_LOAD && offset - segment.p_vaddr < segment.p_memsz) return 1;
               return 2;
             },
             &address) == 1;
}

/// The folder, with '/' at its end, of the shared library that contains this code, as the kernel has mapped
/// it. Empty if the code is linked into a program, or if the folder is unknown. The loader's own names are
/// not enough: a program's is argv[0], a library's is the argument of dlopen, which may be relative to a
/// folder that is no longer the process's.
std::string library_folder() {
  const auto here = reinterpret_cast<uintptr_t>(&find_hip);
  if (is_in_program(here)) return {};
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0; // "begin-end rights offset device inode    path", in hexadecimal
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR, &begin, &end) != 2) continue;
    if (here < begin || here >= end) continue;
    const size_t path = line.find('/');
    return path == line.npos ? std::string() : line.substr(path, line.rfind('/') + 1 - path);
  }
  return {};
}

/// Whether the process has more rights than its user, who chooses its arguments, folder and environment, but
/// must not choose its code.
bool has_more_rights() {
  return getauxval(AT_SECURE) != 0;
}

/// Null functions unless the library has both.
RangeFunctions ranges_of(void *library) {
  RangeFunctions found = {reinterpret_cast<int (*)(const char *)>(dlsym(library, "roctxRangePushA")),
                          reinterpret_cast<int (*)()>(dlsym(library, "roctxRangePop"))};
  return found.push != nullptr && found.pop != nullptr ? found : RangeFunctions{};
}

} // namespace

HipSource find_hip() {
  const std::string loaded = loaded_hip();
  if (!loaded.empty()) {
    void *library = dlopen(loaded.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (library != nullptr) return {resolve_in_library, library, loaded};
    // Trying another file could bring a second HIP runtime into the process.
    throw Failure(Status::no_device, "libamdhip64",
                  text("the process has loaded ", loaded, ", but it cannot be opened: ", last_error()));
  }
  std::string reasons;
  for (const char *soname : hip_sonames) {
    void *library = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) return {resolve_in_library, library, soname};
    reasons += text(reasons.empty() ? "" : "; ", last_error());
  }
  throw Failure(Status::no_device, "libamdhip64",
                text("no HIP runtime is loaded, and opening one failed: ", reasons));
}

HipSource find_emulator() {
  if (has_more_rights())
    throw Failure(Status::no_device, emulator_soname,
                  text("the emulator ", emulator_soname,
                       " is not opened in a program with more rights than its user (AT_SECURE)"));
  void *library = dlopen(emulator_soname, RTLD_NOW | RTLD_LOCAL);
  std::string reasons;
  if (library == nullptr) {
    reasons = last_error();
    const std::string folder = library_folder();
    if (!folder.empty()) {
      library = dlopen((folder + emulator_soname).c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library == nullptr) reasons += "; " + last_error();
    }
  }
  if (library == nullptr) {
    throw Failure(Status::no_device, emulator_soname,
                  text("the emulator ", emulator_soname, " cannot be opened: ", reasons));
  }
  using EmulatorSymbol = void *(*)(const char *name);
  static const char *const entry = "sluice_emulator_symbol";
  void *symbol = dlsym(library, entry);
  if (symbol == nullptr) {
    throw Failure(Status::no_device, emulator_soname,
                  text("the emulator ", emulator_soname, " has no entry point ", entry));
  }
  const auto resolve = [](const char *name, void *user) {
    return reinterpret_cast<EmulatorSymbol>(user)(name);
  };
  return {resolve, symbol, emulator_soname};
}

RangeFunctions find_ranges() {
  RangeFunctions found = ranges_of(RTLD_DEFAULT);
  if (found.pop != nullptr) return found;
  std::string reasons;
  for (const char *soname : roctx_sonames) {
    if (has_more_rights()) {
      reasons = "; libraries are not opened in a program with more rights than its user (AT_SECURE)";
      break;
    }
    void *library = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      reasons += "; " + last_error();
      continue;
    }
    found = ranges_of(library);
    if (found.pop != nullptr) return found;
    reasons += text("; ", soname, " lacks them");
  }
  throw Failure(Status::unsupported, "enabled",
                text("the process has no roctxRangePushA and roctxRangePop", reasons));
}

} // namespace sluice::runtime

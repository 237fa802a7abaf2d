//===- probe.cpp - creates one context and prints the outcome -------------------------------------------===//
//
// usage: probe hip|emulated|target|ranges [LIBRARY [FOLDER]]
//
// LIBRARY is opened first, as by the process that links libsluice.so; - means none. The process then changes
// to FOLDER.
//
// Prints two lines: status, field and message; then where HIP was loaded from, the libamdhip64 files that are
// mapped, and the symbols of HIP and the emulator that are visible to the whole process, which should be
// none. With `ranges`, a context of a target gets ranges: the status is that of sluice_set_ranges, and the
// files are those of roctx.
//
//===----------------------------------------------------------------------------------------------------===//
#include "support/test_pack.h"

#include <sluice/sluice.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>
#include <string>

#include <dlfcn.h>
#include <unistd.h>

namespace {
constexpr std::array hip_names = {"libamdhip64", "libamdhip64"},
                     roctx_names = {"librocprofiler-sdk-roctx", "libroctx64"};
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  if (argc > 2 && std::strcmp(argv[2], "-") != 0 && dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  if (argc > 3 && chdir(argv[3]) != 0) {
    std::perror(argv[3]);
    return 2;
  }
  const std::vector<std::byte> pack = sluice::test::test_pack();
  sluice_context_desc desc;
  sluice_context_desc_init(&desc, sizeof desc);
  desc.kind = std::strcmp(argv[1], "hip") == 0        ? SLUICE_DEVICE_HIP
              : std::strcmp(argv[1], "emulated") == 0 ? SLUICE_DEVICE_EMULATED
                                                      : SLUICE_DEVICE_TARGET;
  if (desc.kind == SLUICE_DEVICE_TARGET) desc.target = "gfx942:304";
  desc.pack = pack.data();
  desc.pack_bytes = pack.size();
  sluice_error error;
  sluice_error_init(&error, sizeof error);
  sluice_context *context = nullptr;
  sluice_status status = sluice_context_create(&desc, &context, &error);
  const bool has_ranges = std::strcmp(argv[1], "ranges") == 0;
  if (has_ranges && status == SLUICE_OK) status = sluice_set_ranges(context, 1, &error);
  std::printf("%s|%s|%s\n", sluice_status_name(status), error.field, error.message);

  sluice_device_info info;
  sluice_device_info_init(&info, sizeof info);
  if (context != nullptr) sluice_context_device(context, &info, nullptr);
  std::set<std::string> mapped;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    for (const char *part : has_ranges ? roctx_names : hip_names) {
      const size_t name = line.find(part);
      if (name != line.npos) mapped.insert(line.substr(name));
    }
  }
  std::printf("%s", info.runtime);
  for (const std::string &file : mapped)
    std::printf("|%s", file.c_str());
  for (const char *name : {"hipModuleLaunchKernel", "sluice_emulator_symbol"}) {
    if (dlsym(RTLD_DEFAULT, name) != nullptr) std::printf("|%s is in the global scope", name);
  }
  std::printf("\n");
  sluice_context_destroy(context);
  return 0;
}

//===- library.cpp - the C ABI: errors, versions, the log -----------------------------------------------===//
#include "abi/wall.h"
#include "package/embedded_pack.h"
#include "package/pack_reader.h"
#include "runtime/context.h"
#include "support/log.h"

#include <algorithm>
#include <string>
#include <vector>

using namespace sluice;

extern "C" {

sluice_status sluice_error_init(sluice_error *error, size_t size) noexcept {
  return abi::init(error, size);
}
sluice_status sluice_build_init(sluice_build *build, size_t size) noexcept {
  return abi::init(build, size);
}

const char *sluice_status_name(sluice_status status) noexcept {
  switch (status) {
#define SLUICE_NAME(code)                                                                                    \
  case code:                                                                                                 \
    return #code;
    SLUICE_NAME(SLUICE_OK)
    SLUICE_NAME(SLUICE_INVALID_ARGUMENT)
    SLUICE_NAME(SLUICE_UNSUPPORTED)
    SLUICE_NAME(SLUICE_NEWER_STRUCT)
    SLUICE_NAME(SLUICE_NO_DEVICE)
    SLUICE_NAME(SLUICE_WRONG_ARCH)
    SLUICE_NAME(SLUICE_HIP)
    SLUICE_NAME(SLUICE_PACK_CORRUPT)
    SLUICE_NAME(SLUICE_WORKSPACE_TOO_SMALL)
    SLUICE_NAME(SLUICE_OUT_OF_MEMORY)
    SLUICE_NAME(SLUICE_INTERNAL)
#undef SLUICE_NAME
  default:
    return "unknown status";
  }
}

uint32_t sluice_abi_version(void) noexcept {
  return SLUICE_ABI_MAJOR << 16 | SLUICE_ABI_MINOR;
}

const char *sluice_version(void) noexcept {
  return SLUICE_VERSION;
}

sluice_status sluice_build_info(sluice_build *build, sluice_error *error) noexcept {
  return abi::wall(error, [&] {
    abi::check_output(build, "build");
    const package::PackReader pack(package::embedded_pack());
    std::vector<std::string> chips;
    for (const package::PackedKernel &kernel : pack.manifest().kernels) {
      for (const std::string &chip : kernel.entry.chips) {
        if (std::find(chips.begin(), chips.end(), chip) == chips.end()) chips.push_back(chip);
      }
    }
    sluice_build info = {};
    info.kernel_count = uint32_t(pack.manifest().kernels.size());
    abi::copy_text(info.version, SLUICE_VERSION);
    abi::copy_text(info.git_commit, SLUICE_GIT_COMMIT);
    abi::copy_text(info.compiler, SLUICE_COMPILER);
    abi::copy_text(info.llvm_version, pack.manifest().llvm_version);
    abi::copy_text(info.pack_id, support::hexadecimal(pack.id()));
    abi::copy_text(info.chips, runtime::join(chips));
    abi::fill(build, info);
  });
}

void sluice_set_log(sluice_log_fn log, void *user, uint32_t max_level) noexcept {
  support::set_log(log, user, max_level);
}

} // extern "C"

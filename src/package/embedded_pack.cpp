//===- embedded_pack.cpp - the kernel pack inside libsluice.so ------------------------------------------===//
#include "package/embedded_pack.h"

#include "support/failure.h"

#include <cstdint>

// Defined by embedded_pack.S.
extern "C" {
extern const std::byte sluice_embedded_pack[];
extern const uint64_t sluice_embedded_pack_bytes;
}

namespace sluice::package {

std::span<const std::byte> embedded_pack() {
  if (sluice_embedded_pack_bytes == 0) {
    throw support::Failure(support::Status::pack_corrupt, "pack",
                           "kernel pack: this library was built without kernels of its own");
  }
  return {sluice_embedded_pack, sluice_embedded_pack_bytes};
}

} // namespace sluice::package

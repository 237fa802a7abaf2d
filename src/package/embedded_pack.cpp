//===- embedded_pack.cpp - the kernel pack inside libsluice.so ------------------------------------------===//
#include "package/embedded_pack.h"

// Defined by embedded_pack.S.
extern "C" {
extern const std::byte sluice_embedded_pack_begin[];
extern const std::byte sluice_embedded_pack_end[];
}

namespace sluice::package {

std::span<const std::byte> embedded_pack() {
  return {sluice_embedded_pack_begin, sluice_embedded_pack_end};
}

} // namespace sluice::package

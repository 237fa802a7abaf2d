//===- metadata_fuzz.cpp - any bytes as MessagePack -----------------------------------------------------===//
#include "package/msgpack.h"

using namespace sluice::package;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  try {
    const MsgpackValue document = read_msgpack({reinterpret_cast<const std::byte *>(data), size});
    document.find("amdhsa.kernels");
  } catch (const MsgpackError &) {
  }
  return 0;
}

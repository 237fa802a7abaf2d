//===- decoder_fuzz.cpp - any bytes as instructions -----------------------------------------------------===//
//
// Every dword is decoded, printed and turned into an operation or a refusal.
//
//===----------------------------------------------------------------------------------------------------===//
#include <cstdlib>
#include <cstring>

#include "emulator/isa/disassembler.h"
#include "emulator/machine/decoder.h"

using namespace sluice::emulator;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static Disassembler disassembler;
  Decoder decoder(SimdPath::portable);
  const std::span code(reinterpret_cast<const std::byte *>(data), size / 4 * 4);
  uint32_t dwords[5];
  for (size_t offset = 0; offset < code.size();) {
    const std::span rest = code.subspan(offset, std::min(code.size() - offset, sizeof dwords));
    const std::optional<Instruction> instruction = disassembler.decode(rest, offset);
    if (!instruction || instruction->bytes > rest.size()) {
      offset += 4;
      continue;
    }
    std::memcpy(dwords, rest.data(), instruction->bytes);
    const DecodedOp op = decoder.decode(*instruction, {dwords, instruction->bytes / 4}, uint32_t(offset / 4));
    // There is an operation to run in either case; a refusal gives its reason.
    if (!op.fast.run || !op.strict.run || instruction->text.empty()) std::abort();
    offset += instruction->bytes;
  }
  return 0;
}

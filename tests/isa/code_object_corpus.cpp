//===- code_object_corpus.cpp - the instructions of compiled programs -----------------------------------===//
//
// Another corpus for the same tests: compiled code, of test programs and of the shipped kernels.
//
//===----------------------------------------------------------------------------------------------------===//
#include <cstring>
#include <set>
#include <stdexcept>

#include "isa/corpus.h"
#include "package/code_object.h"
#include "package/offload_bundle.h"
#include "package/pack_reader.h"
#include "support/files.h"

namespace sluice::test {

namespace {

class Collector {
public:
  void add(std::span<const std::byte> elf) {
    const package::CodeObject object = package::CodeObject::parse(elf);
    for (const package::Segment &segment : object.segments())
      if (segment.executable) add_code(segment.file);
  }

  std::vector<Encoding> result;

private:
  void add_code(std::span<const std::byte> bytes) {
    std::vector<uint32_t> code(bytes.size() / 4);
    std::memcpy(code.data(), bytes.data(), code.size() * 4);
    const size_t end = code.size();
    code.resize(end + 2); // LLVM looks at the instructions that follow
    for (size_t at = 0; at < end;) {
      std::optional<Encoding> encoding = codec.encode_again(std::span(code).subspan(at));
      if (!encoding) throw std::runtime_error("a compiled program has bytes that are not an instruction");
      // Unchanged: a compiler's choice of encodings is LLVM's as well.
      const size_t count = encoding->dwords.size();
      if (!std::equal(encoding->dwords.begin(), encoding->dwords.end(), code.begin() + ptrdiff_t(at)))
        throw std::runtime_error("LLVM encodes an instruction of a compiled program differently: " +
                                 encoding->text);
      at += count;
      if (seen.insert(encoding->dwords).second) result.push_back(std::move(*encoding));
    }
  }

  Codec codec;
  std::set<std::vector<uint32_t>> seen;
};

std::vector<Encoding> collect() {
  Collector collector;
  for (const char *file : {SLUICE_CODE_OBJECT_PROGRAMS, SLUICE_CODE_OBJECT_SLOT})
    collector.add(read_file(file));
  for (const char *program : {"arithmetic", "calls", "collectives", "matrices"})
    for (const char *level : {"O0", "O1", "O3"})
      collector.add(read_file(std::string(SLUICE_HIP_OBJECTS) + "/hip_" + program + "_" + level + ".co"));
#ifdef SLUICE_KERNEL_PACK_FILE
  const std::vector<std::byte> bytes = read_file(SLUICE_KERNEL_PACK_FILE);
  const package::PackReader pack(bytes);
  for (const package::PackedKernel &kernel : pack.manifest().kernels) {
    const std::vector<std::byte> bundle = pack.bundle(kernel);
    for (const package::BundleEntry &entry : package::read_bundle(bundle))
      if (entry.id == package::bundle_id("gfx942")) collector.add(entry.code);
  }
#endif
  return collector.result;
}

} // namespace

const std::vector<Encoding> &corpus() {
  static const std::vector<Encoding> all = collect();
  return all;
}

} // namespace sluice::test

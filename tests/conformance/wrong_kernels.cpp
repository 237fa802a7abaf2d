//===- wrong_kernels.cpp - writes valid kernel packs whose kernels are wrong ----------------------------===//
//
//   usage: wrong_kernels WHAT PACK OUT [KERNEL]
//
// `undivided`: in every attention kernel, each v_rcp_f32 becomes a v_mov_b32, and rows are not divided by the
// sum of their weights. `plain`: kernels list no feature but lse. With KERNEL, only that kernel is changed.
// The packs have the kernels whose K and V have the type of Q.
//
//===----------------------------------------------------------------------------------------------------===//
#include "package/offload_bundle.h"
#include "package/pack_reader.h"
#include "package/pack_writer.h"
#include "support/bytes.h"
#include "support/files.h"

#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;

namespace {

/// Whole dwords that read as v_rcp_f32_e32; returns how many there were.
size_t leave_out_divisions(std::vector<std::byte> &code) {
  constexpr uint32_t opcode_mask = 0xfe01fe00, vop1 = 0x3fu << 25, rcp = 0x22u << 9, mov = 0x01u << 9;
  size_t found = 0;
  for (size_t at = 0; at + 4 <= code.size(); at += 4) {
    uint32_t word = support::load_little<uint32_t>(&code[at]);
    if ((word & opcode_mask) != (vop1 | rcp)) continue;
    word = (word & ~opcode_mask) | vop1 | mov;
    std::memcpy(&code[at], &word, sizeof word);
    ++found;
  }
  return found;
}

/// `only` is empty for all kernels.
void write_wrong_pack(const std::string &what, const std::string &from, const std::string &to,
                      const std::string &only) {
  const std::vector<std::byte> bytes = test::read_file(from);
  const package::PackReader pack(bytes);
  package::PackWriter writer("wrong_kernels", pack.manifest().llvm_version);
  for (const package::PackedKernel &kernel : pack.manifest().kernels) {
    const package::KernelName &kernel_name = kernel.entry.name;
    if (!kernel_name.is_attention() || !kernel_name.kv_dtype.empty()) continue;
    const std::vector<std::byte> bundle = pack.bundle(kernel);
    const std::string name = package::format_kernel_name(kernel_name);
    const bool is_wrong = only.empty() || name == only;
    std::vector<std::vector<std::byte>> codes;
    std::vector<package::ChipCode> objects;
    codes.reserve(kernel.entry.chips.size());
    for (const package::BundleEntry &entry : package::read_bundle(bundle))
      for (const std::string &chip : kernel.entry.chips) {
        if (entry.id != package::bundle_id(chip)) continue;
        codes.emplace_back(entry.code.begin(), entry.code.end());
        if (what == "undivided" && is_wrong && leave_out_divisions(codes.back()) == 0)
          throw std::runtime_error(name + " has no v_rcp_f32");
        objects.push_back({chip, codes.back()});
      }
    package::KernelEntry entry = kernel.entry;
    if (what == "plain" && is_wrong) entry.features = {"lse"};
    writer.add(std::move(entry), objects);
  }
  const std::vector<std::byte> out = writer.finish();
  std::FILE *const file = std::fopen(to.c_str(), "wb");
  if (!file || std::fwrite(out.data(), 1, out.size(), file) != out.size() || std::fclose(file) != 0)
    throw std::runtime_error("cannot write " + to);
}

} // namespace

int main(int count, char **arguments) {
  const std::string what = count == 4 || count == 5 ? arguments[1] : "";
  if (what != "undivided" && what != "plain")
    return std::fputs("usage: wrong_kernels undivided|plain PACK OUT [KERNEL]\n", stderr), 2;
  try {
    write_wrong_pack(what, arguments[2], arguments[3], count == 5 ? arguments[4] : "");
  } catch (const std::exception &error) {
    return std::fprintf(stderr, "wrong_kernels: %s\n", error.what()), 1;
  }
}

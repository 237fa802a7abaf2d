//===- pack_bytes.cpp - takes a kernel pack apart and rebuilds it with correct checksums ----------------===//

#include "pack_bytes.h"

#include "package/cache_op_kernargs.h"
#include "support/checksum.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>
#include <zstd.h>

namespace sluice::fuzz {

namespace {

using Bytes = std::vector<uint8_t>;
using Strings = std::vector<std::string>;

constexpr size_t header_bytes = 48;
constexpr size_t most_bundle = 1 << 20; // larger inputs find nothing new

struct Kernel {
  std::string name;
  uint32_t threads, lds_bytes, kernarg_bytes;
  uint64_t kernarg_hash;
  Strings features;
  std::string p_rounding;
  uint32_t stages;
  Strings copy_groups;
  uint32_t lds_bytes_without_reuse, vgprs, loop_matrix_clk, loop_slot_clk, loop_wave_clk;
  Strings chips;
  uint64_t bundle_bytes;
  Bytes code;
};

struct Pack {
  uint32_t version;
  std::string generator, llvm_version;
  std::vector<Kernel> kernels;
};

uint64_t checksum(std::span<const uint8_t> bytes) {
  return support::xxh64(std::as_bytes(bytes));
}

class Reader {
public:
  explicit Reader(std::span<const uint8_t> bytes) : rest(bytes) {}
  std::span<const uint8_t> take(uint64_t size) {
    if (size > rest.size()) throw std::out_of_range("the pack ends");
    const auto taken = rest.first(size);
    rest = rest.subspan(size);
    return taken;
  }
  template <typename Number> Number number() {
    Number value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string string() {
    const auto text = take(number<uint16_t>());
    return {text.begin(), text.end()};
  }
  Strings strings() {
    Strings list(number<uint16_t>());
    for (std::string &one : list)
      one = string();
    return list;
  }

private:
  std::span<const uint8_t> rest;
};

class Writer {
public:
  template <typename Number> void number(Number value) {
    const auto *bytes = reinterpret_cast<const uint8_t *>(&value);
    out.insert(out.end(), bytes, bytes + sizeof value);
  }
  void string(const std::string &text) {
    const size_t size = std::min<size_t>(text.size(), UINT16_MAX);
    number(uint16_t(size));
    out.insert(out.end(), text.begin(), text.begin() + ptrdiff_t(size));
  }
  void strings(const Strings &list) {
    number(uint16_t(list.size()));
    for (const std::string &one : list)
      string(one);
  }
  Bytes out;
};

std::optional<Pack> take_apart(std::span<const uint8_t> bytes) {
  try {
    Reader header(bytes);
    header.take(8);
    Pack pack;
    pack.version = header.number<uint32_t>();
    const auto count = header.number<uint32_t>();
    header.take(8);
    const auto manifest_bytes = header.number<uint64_t>();
    header.take(16);
    Reader manifest(header.take(manifest_bytes));
    pack.generator = manifest.string();
    pack.llvm_version = manifest.string();
    for (uint32_t i = 0; i < count; ++i) {
      Kernel &kernel = pack.kernels.emplace_back();
      kernel.name = manifest.string();
      kernel.threads = manifest.number<uint32_t>();
      kernel.lds_bytes = manifest.number<uint32_t>();
      kernel.kernarg_bytes = manifest.number<uint32_t>();
      kernel.kernarg_hash = manifest.number<uint64_t>();
      kernel.features = manifest.strings();
      kernel.p_rounding = manifest.string();
      kernel.stages = manifest.number<uint32_t>();
      kernel.copy_groups = manifest.strings();
      kernel.lds_bytes_without_reuse = manifest.number<uint32_t>();
      kernel.vgprs = manifest.number<uint32_t>();
      kernel.loop_matrix_clk = manifest.number<uint32_t>();
      kernel.loop_slot_clk = manifest.number<uint32_t>();
      kernel.loop_wave_clk = manifest.number<uint32_t>();
      kernel.chips = manifest.strings();
      const auto code = header.take(manifest.number<uint64_t>());
      kernel.code.assign(code.begin(), code.end());
      kernel.bundle_bytes = manifest.number<uint64_t>();
      manifest.take(8);
    }
    return pack;
  } catch (const std::out_of_range &) {
    return std::nullopt;
  }
}

/// A pack of these parts, with a header that fits them.
Bytes seal(uint32_t version, uint32_t kernels, const Bytes &manifest, const Bytes &codes) {
  Writer out;
  for (char c : {'S', 'L', 'U', 'I', 'C', 'E', 'P', 'K'})
    out.number(c);
  out.number(version);
  out.number(kernels);
  out.number(uint64_t{header_bytes + manifest.size() + codes.size()});
  out.number(uint64_t{manifest.size()});
  out.number(checksum(manifest));
  out.number(checksum(out.out));
  out.out.insert(out.out.end(), manifest.begin(), manifest.end());
  out.out.insert(out.out.end(), codes.begin(), codes.end());
  return out.out;
}

/// `change` sets the manifest's contents: it may end anywhere, and name things that do not exist.
Bytes put_together(const Pack &pack, const std::function<void(Bytes &)> &change) {
  Writer manifest;
  manifest.string(pack.generator);
  manifest.string(pack.llvm_version);
  Bytes codes;
  for (const Kernel &kernel : pack.kernels) {
    manifest.string(kernel.name);
    manifest.number(kernel.threads);
    manifest.number(kernel.lds_bytes);
    manifest.number(kernel.kernarg_bytes);
    manifest.number(kernel.kernarg_hash);
    manifest.strings(kernel.features);
    manifest.string(kernel.p_rounding);
    manifest.number(kernel.stages);
    manifest.strings(kernel.copy_groups);
    manifest.number(kernel.lds_bytes_without_reuse);
    manifest.number(kernel.vgprs);
    manifest.number(kernel.loop_matrix_clk);
    manifest.number(kernel.loop_slot_clk);
    manifest.number(kernel.loop_wave_clk);
    manifest.strings(kernel.chips);
    manifest.number(uint64_t{kernel.code.size()});
    manifest.number(kernel.bundle_bytes);
    manifest.number(checksum(kernel.code));
    codes.insert(codes.end(), kernel.code.begin(), kernel.code.end());
  }
  change(manifest.out);
  return seal(pack.version, uint32_t(pack.kernels.size()), manifest.out, codes);
}

class Mutator {
public:
  Mutator(unsigned seed, Mutate other) : random(seed), mutate(other) {}

  /// As arbitrary bytes.
  void change(Bytes &manifest) { change_bytes(manifest, manifest.size() + 16); }

  void change(Pack &pack) {
    if (pack.kernels.empty() || below(40) == 0) return change_text(pack.generator);
    for (Kernel &kernel : pack.kernels)
      set_kernargs(kernel);
    const size_t chosen = below(pack.kernels.size());
    Kernel &kernel = pack.kernels[chosen];
    switch (below(14)) {
    case 0:
      change_text(kernel.name);
      break;
    case 1:
      change_word(kernel);
      break;
    case 2:
      change_list(kernel.features, {"lse", "paged", "scales", "causal", "ragged", "lengths"});
      break;
    case 3:
      change_list(kernel.chips, {"gfx942", "gfx950", "gfx90a"});
      break;
    case 4:
      change_bytes(kernel.code, kernel.code.size() + 64);
      break;
    case 5:
    case 6:
      change_bundle(kernel);
      break;
    case 7:
      kernel.bundle_bytes = below(2) ? below(1 << 16) : uint64_t{usual_number()} << below(33);
      break;
    case 8:
      pack.kernels.push_back(kernel);
      change_number_in(pack.kernels.back().name);
      break;
    case 9:
      pack.kernels.erase(pack.kernels.begin() + ptrdiff_t(chosen));
      break;
    default:
      // Names contain most of the facts that the library computes with; attention's have the numbers.
      for (Kernel &one : pack.kernels)
        if (below(pack.kernels.size()) == 0 || &one == &kernel) change_number_in(one.name);
      break;
    }
    if (below(16) != 0) std::ranges::sort(pack.kernels, {}, &Kernel::name);
  }

private:
  size_t below(size_t end) { return random() % end; }

  /// The values of this library: a pack of another layout is refused, and later checks are not reached.
  static void set_kernargs(Kernel &kernel) {
    if (kernel.name.starts_with("kv_append")) {
      kernel.kernarg_bytes = sizeof(package::AppendKernargs);
      kernel.kernarg_hash = package::kernarg_hash(package::append_kernarg_fields);
    } else if (kernel.name.starts_with("kv_copy")) {
      kernel.kernarg_bytes = sizeof(package::PageCopyKernargs);
      kernel.kernarg_hash = package::kernarg_hash(package::page_copy_kernarg_fields);
    } else if (kernel.name.starts_with("append_step")) {
      kernel.kernarg_bytes = sizeof(package::StepKernargs);
      kernel.kernarg_hash = package::kernarg_hash(package::step_kernarg_fields);
    } else if (kernel.name.starts_with("merge_states")) {
      kernel.kernarg_bytes = sizeof(package::MergeKernargs);
      kernel.kernarg_hash = package::kernarg_hash(package::merge_kernarg_fields);
    } else {
      kernel.kernarg_bytes = sizeof(package::AttentionKernargs);
      kernel.kernarg_hash = package::attention_kernarg_hash();
    }
  }

  uint32_t usual_number() {
    constexpr uint32_t usual[] = {0,    1,    2,    7,     8,     16,         63,         64,
                                  128,  256,  512,  1024,  2048,  4096,       65536,      0x7fffffff,
                                  1025, 2049, 4097, 65535, 65537, 0x80000000, 0xfffffff8, 0xffffffff};
    return usual[below(std::size(usual))];
  }

  void change_bytes(Bytes &bytes, size_t most) {
    const size_t size = bytes.size();
    bytes.resize(std::max<size_t>(most, 1));
    bytes.resize(mutate(bytes.data(), size, bytes.size()));
  }
  void change_text(std::string &text) {
    Bytes bytes(text.begin(), text.end());
    change_bytes(bytes, text.size() + 8);
    text.assign(bytes.begin(), bytes.end());
  }
  void change_number_in(std::string &name) {
    std::vector<size_t> begins;
    for (size_t i = 1; i < name.size(); ++i)
      if (std::isdigit(uint8_t(name[i])) && !std::isdigit(uint8_t(name[i - 1]))) begins.push_back(i);
    if (begins.empty()) return;
    const size_t begin = begins[below(begins.size())];
    size_t end = begin;
    while (end < name.size() && std::isdigit(uint8_t(name[end])))
      ++end;
    name.replace(begin, end - begin, std::to_string(usual_number()));
  }
  void change_word(Kernel &kernel) {
    uint32_t *const words[] = {
        &kernel.threads,       &kernel.lds_bytes, &kernel.stages,          &kernel.lds_bytes_without_reuse,
        &kernel.kernarg_bytes, &kernel.vgprs,     &kernel.loop_matrix_clk, &kernel.loop_slot_clk,
        &kernel.loop_wave_clk};
    *words[below(std::size(words))] = usual_number();
  }
  void change_list(Strings &list, const Strings &usual) {
    if (!list.empty() && below(2))
      list.erase(list.begin() + ptrdiff_t(below(list.size())));
    else
      list.push_back(usual[below(usual.size())]);
    if (!list.empty() && below(8) == 0) change_text(list[below(list.size())]);
  }
  void change_bundle(Kernel &kernel) {
    Bytes bundle(std::min<uint64_t>(kernel.bundle_bytes, most_bundle));
    const size_t size = ZSTD_decompress(bundle.data(), bundle.size(), kernel.code.data(), kernel.code.size());
    bundle.resize(ZSTD_isError(size) ? 0 : size);
    // Most of a bundle is code, which this test never examines.
    Bytes start(bundle.begin(), bundle.begin() + ptrdiff_t(std::min<size_t>(bundle.size(), 256)));
    change_bytes(start, start.size() + 8);
    bundle.erase(bundle.begin(), bundle.begin() + ptrdiff_t(std::min<size_t>(bundle.size(), 256)));
    bundle.insert(bundle.begin(), start.begin(), start.end());
    kernel.code.resize(ZSTD_compressBound(bundle.size()));
    kernel.code.resize(
        ZSTD_compress(kernel.code.data(), kernel.code.size(), bundle.data(), bundle.size(), 1));
    kernel.bundle_bytes = bundle.size();
  }

  std::minstd_rand random;
  Mutate mutate;
};

} // namespace

size_t mutate_pack(std::span<uint8_t> bytes, size_t most, unsigned seed, Mutate mutate) {
  // One time in sixteen all bytes are mutated and checksums stay wrong; as often, only the manifest is
  // mutated.
  std::optional<Pack> pack = seed % 16 == 0 ? std::nullopt : take_apart(bytes);
  if (!pack) return mutate(bytes.data(), bytes.size(), most);
  Mutator mutator(seed / 16, mutate);
  const bool is_raw = seed % 16 == 1;
  if (!is_raw) mutator.change(*pack);
  const Bytes changed = put_together(*pack, [&](Bytes &manifest) {
    if (is_raw) mutator.change(manifest);
  });
  if (changed.size() > most) return mutate(bytes.data(), bytes.size(), most);
  std::ranges::copy(changed, bytes.data());
  return changed.size();
}

} // namespace sluice::fuzz

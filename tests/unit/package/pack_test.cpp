//===- pack_test.cpp - kernel packs: written, read, altered and cut short -------------------------------===//
#include "package/offload_bundle.h"
#include "package/pack_format.h"
#include "package/pack_reader.h"
#include "package/pack_writer.h"
#include "support/checksum.h"
#include "support/failure.h"
#include "support/test_pack.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <functional>
#include <map>
#include <string>

using namespace sluice;
using namespace sluice::package;

namespace {

/// The message of the refusal, or "" if the pack is accepted.
std::string refusal(std::span<const std::byte> pack) {
  try {
    PackReader reader(pack);
    for (const PackedKernel &kernel : reader.manifest().kernels)
      reader.bundle(kernel);
    return "";
  } catch (const support::Failure &failure) {
    if (failure.status() != support::Status::pack_corrupt) return "wrong status: " + failure.message();
    if (failure.field() != "pack") return "wrong field: " + failure.field();
    return failure.message();
  }
}

/// A pack with a changed header and the correct checksum for it.
std::vector<std::byte> with_header(std::vector<std::byte> pack,
                                   const std::function<void(PackHeader &)> &change) {
  PackHeader header;
  std::memcpy(&header, pack.data(), sizeof header);
  change(header);
  header.header_checksum =
      support::xxh64(std::as_bytes(std::span(&header, 1)).first(offsetof(PackHeader, header_checksum)));
  std::memcpy(pack.data(), &header, sizeof header);
  return pack;
}

/// A pack with a changed manifest and the correct checksum for it.
std::vector<std::byte> with_manifest(std::vector<std::byte> pack,
                                     const std::function<void(std::span<std::byte>)> &change) {
  PackHeader header;
  std::memcpy(&header, pack.data(), sizeof header);
  const std::span manifest(pack.data() + sizeof header, header.manifest_bytes);
  change(manifest);
  return with_header(std::move(pack), [&](PackHeader &h) { h.manifest_checksum = support::xxh64(manifest); });
}

} // namespace

TEST_CASE("a pack gives back the added kernels, sorted by name", "[pack]") {
  PackWriter writer("generator 1", "22.1.8");
  const std::vector<std::byte> code_942 = test::fake_code(5000, 1), code_950 = test::fake_code(700, 2);
  KernelEntry entry = test::kernel_entry("f16", 128, 8);
  const ChipCode both[] = {{"gfx950", code_950}, {"gfx942", code_942}};
  writer.add(entry, both);
  writer.add(test::kernel_entry("bf16", 64, 4), std::span(both).last(1));
  const std::vector<std::byte> pack = writer.finish();

  const PackReader reader(pack);
  CHECK(reader.manifest().generator == "generator 1");
  CHECK(reader.manifest().llvm_version == "22.1.8");
  REQUIRE(reader.manifest().kernels.size() == 2);
  CHECK(format_kernel_name(reader.manifest().kernels[0].entry.name) == "attn_fwd_bf16_d64_q128_kv64_w4");
  const PackedKernel *kernel = reader.find("attn_fwd_f16_d128_q256_kv64_w8");
  REQUIRE(kernel == &reader.manifest().kernels[1]);
  entry.chips = {"gfx942", "gfx950"};
  CHECK(kernel->entry == entry);
  CHECK(reader.find("attn_fwd_f16_d128_q256_kv64_w4") == nullptr);

  const std::vector<std::byte> bundle = reader.bundle(*kernel);
  const std::vector<BundleEntry> entries = read_bundle(bundle);
  REQUIRE(entries.size() == 3);
  CHECK(entries[1].id == bundle_id("gfx942"));
  CHECK(std::vector<std::byte>(entries[1].code.begin(), entries[1].code.end()) == code_942);
  CHECK(entries[2].id == bundle_id("gfx950"));
  CHECK(std::vector<std::byte>(entries[2].code.begin(), entries[2].code.end()) == code_950);
}

TEST_CASE("equal input gives an equal file in any order", "[pack]") {
  const auto write = [](bool reversed) {
    PackWriter writer("g", "l");
    for (const uint32_t waves : {reversed ? 8u : 4u, reversed ? 4u : 8u}) {
      test::add_fake_kernel(writer, test::kernel_entry("f16", 64, waves));
    }
    return writer.finish();
  };
  CHECK(write(false) == write(true));
}

TEST_CASE("the id changes with any kernel", "[pack]") {
  const auto id = [](uint32_t lds_bytes, size_t code_bytes) {
    PackWriter writer("g", "l");
    KernelEntry entry = test::kernel_entry("f16", 64, 4);
    entry.lds_bytes = lds_bytes;
    const std::vector<std::byte> code = test::fake_code(code_bytes, 1);
    const ChipCode object = {"gfx942", code};
    writer.add(entry, {&object, 1});
    return PackReader(writer.finish()).id();
  };
  CHECK(id(1, 100) == id(1, 100));
  CHECK(id(1, 100) != id(2, 100));
  CHECK(id(1, 100) != id(1, 101));
}

TEST_CASE("the writer refuses input that the format does not allow", "[pack]") {
  PackWriter writer("g", "l");
  const std::vector<std::byte> code = test::fake_code(100, 1);
  const ChipCode object = {"gfx942", code}, empty = {"gfx942", {}};
  const ChipCode twice[] = {object, object};
  const KernelEntry entry = test::kernel_entry("f16", 64, 4);
  KernelEntry bad_name = entry;
  bad_name.name.dtype = "f32";
  CHECK_THROWS_WITH(writer.add(bad_name, {&object, 1}),
                    Catch::Contains("does not match the grammar of kernel names"));
  CHECK_THROWS_WITH(writer.add(entry, {}), Catch::Contains("has no code object"));
  CHECK_THROWS_WITH(writer.add(entry, {&empty, 1}), Catch::Contains("empty code object"));
  CHECK_THROWS_WITH(writer.add(entry, twice), Catch::Contains("two code objects for gfx942"));
  writer.add(entry, {&object, 1});
  CHECK_THROWS_WITH(writer.add(entry, {&object, 1}), Catch::Contains("was added twice"));
  // Code follows the first 4096 bytes of a bundle.
  const std::vector<std::byte> much(bundle_bytes_limit - 4096);
  const ChipCode large = {"gfx942", much};
  CHECK_THROWS_WITH(writer.add(test::kernel_entry("f16", 64, 8), {&large, 1}),
                    Catch::EndsWith("_w8 has a bundle of 268435456 bytes; the limit is 268435456"));
  CHECK(refusal(writer.finish()) == "");
}

TEST_CASE("a kernel that is copied is the same as one that is added", "[pack]") {
  const std::vector<std::byte> code = test::fake_code(1000, 1);
  const ChipCode object = {"gfx942", code};
  const auto pack_of = [&](uint32_t vgprs) {
    PackWriter writer("g", "l");
    KernelEntry entry = test::kernel_entry("f16", 64, 4);
    entry.vgprs = vgprs;
    writer.add(entry, {&object, 1});
    return writer.finish();
  };
  const std::vector<std::byte> plain = pack_of(0);
  const PackReader reader(plain);
  const PackedKernel &kernel = reader.manifest().kernels[0];
  KernelEntry entry = kernel.entry;
  entry.vgprs = 128;
  PackWriter writer("g", "l");
  writer.copy(entry, reader, kernel);
  CHECK(writer.finish() == pack_of(128));
  CHECK_THROWS_WITH(writer.copy(entry, reader, kernel), Catch::Contains("was added twice"));
  entry.chips = {"gfx950"};
  CHECK_THROWS_WITH(writer.copy(entry, reader, kernel), Catch::Contains("another name or other chips"));
}

TEST_CASE("one altered byte anywhere is refused, and the message says where", "[pack]") {
  std::vector<std::byte> pack = test::test_pack();
  REQUIRE(refusal(pack) == "");
  PackHeader header;
  std::memcpy(&header, pack.data(), sizeof header);
  std::map<std::string, int> messages;
  for (size_t at = 0; at < pack.size(); ++at) {
    for (const int flip : {1, 0x80}) {
      pack[at] ^= std::byte(flip);
      const std::string message = refusal(pack);
      pack[at] ^= std::byte(flip);
      const char *part = at < 8                                       ? "wrong magic"
                         : at < sizeof header                         ? "header's checksum"
                         : at < sizeof header + header.manifest_bytes ? "manifest's checksum"
                                                                      : "the checksum of attn_fwd_";
      if (message.find(part) == std::string::npos) FAIL("byte " << at << ": '" << message << "'");
      ++messages[message];
    }
  }
  CHECK(messages.size() == 3 + 8); // magic, header, manifest, and each of the kernels by name
}

TEST_CASE("a pack cut short or grown is refused", "[pack]") {
  std::vector<std::byte> pack = test::test_pack();
  for (size_t length = 0; length < pack.size(); ++length) {
    const std::string message = refusal(std::span(pack).first(length));
    const char *reason = length < sizeof(PackHeader) ? "less than its header" : "bytes instead of";
    if (message.find(reason) == std::string::npos) FAIL("length " << length << ": '" << message << "'");
  }
  pack.push_back(std::byte{0});
  CHECK_THAT(refusal(pack), Catch::Contains("bytes instead of"));
}

TEST_CASE("consistent but wrong input is refused too", "[pack]") {
  const std::vector<std::byte> pack = test::test_pack();
  CHECK(refusal(with_header(pack, [](PackHeader &) {})) == "");
  CHECK_THAT(refusal(with_header(pack, [](PackHeader &h) { h.version = 1; })), Catch::Contains("version 1"));
  CHECK_THAT(refusal(with_header(pack, [](PackHeader &h) { ++h.kernel_count; })),
             Catch::Contains("ends inside a field"));
  CHECK_THAT(refusal(with_header(pack, [](PackHeader &h) { --h.kernel_count; })),
             Catch::Contains("continues after its last kernel"));
  CHECK_THAT(refusal(with_header(pack, [](PackHeader &h) { h.manifest_bytes = ~uint64_t{0}; })),
             Catch::Contains("longer than the pack"));
  CHECK_THAT(refusal(with_header(pack, [](PackHeader &h) { --h.manifest_bytes; })),
             Catch::Contains("manifest's checksum"));

  CHECK(refusal(with_manifest(pack, [](std::span<std::byte>) {})) == "");
  // The last 24 bytes are the last kernel's: size of its code, size of its bundle, checksum.
  const auto with_last_kernel = [&](size_t field, uint64_t value) {
    return with_manifest(pack, [&](std::span<std::byte> manifest) {
      std::memcpy(manifest.data() + manifest.size() - 24 + 8 * field, &value, sizeof value);
    });
  };
  CHECK_THAT(refusal(with_last_kernel(0, ~uint64_t{0})), Catch::Contains("is outside the pack"));
  CHECK_THAT(refusal(with_last_kernel(1, 1)), Catch::Contains("bytes instead of 1"));
  CHECK_THAT(refusal(with_last_kernel(1, 1 << 20)), Catch::Contains("instead of 1048576"));
  CHECK_THAT(refusal(with_last_kernel(1, ~uint64_t{0})),
             Catch::Contains("claims 18446744073709551615 bytes"));
  // Not a zstd frame, but with a correct checksum.
  PackHeader header;
  std::memcpy(&header, pack.data(), sizeof header);
  uint64_t code_bytes;
  std::memcpy(&code_bytes, pack.data() + sizeof header + header.manifest_bytes - 24, sizeof code_bytes);
  std::vector<std::byte> damaged = pack;
  const std::span damaged_code = std::span(damaged).last(code_bytes);
  damaged_code[0] ^= std::byte{1};
  const uint64_t damaged_checksum = support::xxh64(damaged_code);
  CHECK_THAT(refusal(with_manifest(damaged,
                                   [&](std::span<std::byte> manifest) {
                                     std::memcpy(manifest.data() + manifest.size() - 8, &damaged_checksum, 8);
                                   })),
             Catch::Contains("zstd"));
  // Code one byte shorter, with a correct checksum: the byte after it belongs to nothing.
  CHECK_THAT(refusal(with_manifest(pack,
                                   [&](std::span<std::byte> manifest) {
                                     std::byte *last = manifest.data() + manifest.size() - 24;
                                     uint64_t size;
                                     std::memcpy(&size, last, sizeof size);
                                     const std::span code = std::span(pack).last(size).first(size - 1);
                                     const uint64_t checksum = support::xxh64(code);
                                     --size;
                                     std::memcpy(last, &size, sizeof size);
                                     std::memcpy(last + 16, &checksum, sizeof checksum);
                                   })),
             Catch::Contains("bytes follow the last kernel"));
  const auto with_first_head_dim = [&](char digit) {
    return with_manifest(pack, [&](std::span<std::byte> manifest) {
      const std::string_view text(reinterpret_cast<const char *>(manifest.data()), manifest.size());
      manifest[text.find("_d128_") + 2] = std::byte(digit);
    });
  };
  CHECK(refusal(with_first_head_dim('1')) == "");
  CHECK_THAT(refusal(with_first_head_dim('9')), Catch::Contains("is out of order after attn_fwd_bf16_d928_"));
  CHECK_THAT(refusal(with_manifest(pack,
                                   [](std::span<std::byte> manifest) {
                                     for (std::byte &byte : manifest) {
                                       if (byte == std::byte{'q'}) byte = std::byte{'x'};
                                     }
                                   })),
             Catch::Contains("does not match the grammar of kernel names"));
}

TEST_CASE("sizes and names of a pack at their limits", "[pack]") {
  const std::vector<std::byte> none = PackWriter("g", "22.1.8").finish();
  CHECK(PackReader(none).manifest().kernels.empty());
  CHECK_THAT(refusal(with_header(none, [](PackHeader &h) { ++h.manifest_bytes; })),
             Catch::Contains("longer than the pack"));

  PackWriter writer("g", "22.1.8");
  const std::vector<std::byte> code(100, std::byte{1});
  const ChipCode object = {"gfx942", code};
  for (const uint32_t dim : {128, 129})
    writer.add(test::kernel_entry("f16", dim, 8), {&object, 1});
  const std::vector<std::byte> pack = writer.finish();
  CHECK(refusal(pack) == "");
  const auto with_text = [&](std::string_view from, std::string_view to) {
    return with_manifest(pack, [&](std::span<std::byte> manifest) {
      const std::string_view text(reinterpret_cast<const char *>(manifest.data()), manifest.size());
      std::memcpy(manifest.data() + text.find(from), to.data(), to.size());
    });
  };
  CHECK_THAT(refusal(with_text("_d129_", "_d128_")),
             Catch::Contains("_d128_q256_kv64_w8 is out of order after attn_fwd_f16_d128_q256_kv64_w8"));
  const auto with_last_kernel = [&](size_t field, uint64_t value) {
    return with_manifest(pack, [&](std::span<std::byte> manifest) {
      std::memcpy(manifest.data() + manifest.size() - 24 + 8 * field, &value, sizeof value);
    });
  };
  PackHeader header;
  std::memcpy(&header, pack.data(), sizeof header);
  uint64_t code_bytes;
  std::memcpy(&code_bytes, pack.data() + sizeof header + header.manifest_bytes - 24, sizeof code_bytes);
  CHECK_THAT(refusal(with_last_kernel(0, code_bytes + 1)), Catch::Contains("is outside the pack"));
  CHECK_THAT(refusal(with_last_kernel(1, bundle_bytes_limit)), Catch::Contains("claims 268435456 bytes"));
  CHECK_THAT(refusal(with_last_kernel(1, bundle_bytes_limit - 1)), Catch::Contains("instead of 268435455"));

  CHECK_NOTHROW(PackWriter(std::string(65535, 'g'), "").finish());
  CHECK_THROWS_WITH(PackWriter(std::string(65536, 'g'), "").finish(),
                    Catch::Contains("a string of 65536 bytes does not fit"));
}

//===- bundle_forms_test.cpp - bundles by pointer, compressed bundles, and a device's entry -------------===//
#include "package/offload_bundle.h"

#include "support/bytes.h"
#include "support/failure.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <zstd.h>

using namespace sluice;
using namespace sluice::package;

namespace {

using Bytes = std::vector<std::byte>;

void put(Bytes &bytes, size_t at, int count, uint64_t value) {
  for (int i = 0; i < count; ++i)
    bytes.at(at + size_t(i)) = std::byte(value >> (8 * i));
}

/// One entry of 100 bytes.
Bytes plain() {
  const Bytes code(100, std::byte{7});
  const BundleEntry entry = {bundle_id("gfx942"), code};
  return write_bundle({&entry, 1});
}

/// The same compressed, with a header of version 2 or 3, followed by some bytes that do not belong to it.
Bytes compressed(int version) {
  const Bytes bundle = plain();
  const size_t header_bytes = version == 2 ? 24 : 32;
  Bytes file(header_bytes + ZSTD_compressBound(bundle.size()));
  const size_t frame_bytes =
      ZSTD_compress(file.data() + header_bytes, file.size() - header_bytes, bundle.data(), bundle.size(), 3);
  REQUIRE(ZSTD_isError(frame_bytes) == 0);
  const uint64_t bytes = header_bytes + frame_bytes;
  std::memcpy(file.data(), "CCOB", 4);
  put(file, 4, 2, uint64_t(version));
  put(file, 6, 2, 1);
  if (version == 2)
    put(file, 8, 4, bytes), put(file, 12, 4, bundle.size());
  else
    put(file, 8, 8, bytes), put(file, 16, 8, bundle.size());
  file.resize(bytes + 3);
  return file;
}

/// The error for a bundle; "" if it is read.
std::string refused(const std::function<void()> &call) {
  try {
    call();
  } catch (const support::Failure &failure) {
    return failure.message();
  }
  return "";
}
std::string refused_file(const Bytes &bytes) {
  return refused([&] { bundle_file_bytes(bytes.data()); });
}
std::string refused_compressed(const Bytes &bytes) {
  return refused([&] { decompress_bundle(bytes); });
}

std::string selected(const std::vector<std::string> &ids, std::string_view chip,
                     const std::vector<std::string_view> &features = {}) {
  std::vector<BundleEntry> entries;
  for (const std::string &id : ids)
    entries.push_back({id, {}});
  const BundleEntry *entry = select_entry(entries, *find_chip(chip), features);
  return entry == nullptr ? "none" : entry->id;
}

} // namespace

TEST_CASE("a bundle's first bytes show its form", "[offload_bundle]") {
  CHECK(bundle_form(plain().data()) == BundleForm::plain);
  CHECK(bundle_form(compressed(2).data()) == BundleForm::compressed);
  Bytes other = plain();
  other[23] = std::byte{'-'};
  CHECK(bundle_form(other.data()) == BundleForm::none);
  other = compressed(2);
  other[3] = std::byte{'A'};
  CHECK(bundle_form(other.data()) == BundleForm::none);
}

TEST_CASE("a bundle as a pointer ends with the last of its code, or its table", "[offload_bundle]") {
  CHECK(bundle_file_bytes(plain().data()) == 4096 + 100);
  CHECK(bundle_file_bytes(write_bundle({}).data()) == 4096);
  for (const int version : {2, 3})
    CHECK(bundle_file_bytes(compressed(version).data()) == compressed(version).size() - 3);
  // Entries without code: the bundle is only the table of two ids of 27 and 31 bytes.
  Bytes bytes = plain();
  for (const size_t entry : {32, 32 + 24 + 27})
    put(bytes, entry, 8, 0), put(bytes, entry + 8, 8, 0);
  CHECK(bundle_file_bytes(bytes.data()) == 32 + 2 * 24 + 27 + 31);
  put(bytes, 24, 8, 1);
  CHECK(bundle_file_bytes(bytes.data()) == 32 + 24 + 27);
  put(bytes, 24, 8, 0);
  CHECK(bundle_file_bytes(bytes.data()) == 32);
  // Not the last entry's.
  bytes = plain();
  put(bytes, 32, 8, 8192), put(bytes, 40, 8, 5);
  CHECK(bundle_file_bytes(bytes.data()) == 8197);
}

TEST_CASE("numbers that no bundle has are refused", "[offload_bundle]") {
  Bytes bytes = plain();
  bytes.resize(4096); // followed by zeros only
  bytes.resize(1 << 20);
  const Bytes good = bytes;
  put(bytes, 24, 8, 4097);
  CHECK(refused_file(bytes) == "offload bundle: claims to have 4097 entries");
  put(bytes, 24, 8, 4096);
  CHECK(refused_file(bytes) == "");
  for (const size_t field : {32, 40}) {
    bytes = good;
    put(bytes, field, 8, uint64_t{1} << 36);
    CHECK(refused_file(bytes) == "");
    put(bytes, field, 8, (uint64_t{1} << 36) + 1);
    CHECK(refused_file(bytes) == "offload bundle: claims to have 68719476737 bytes");
  }
  bytes = good;
  put(bytes, 48, 8, 4097);
  CHECK(refused_file(bytes) == "offload bundle: has an id of 4097 bytes");
  put(bytes, 48, 8, 4096);
  put(bytes, 24, 8, 1);
  CHECK(refused_file(bytes) == "");
}

TEST_CASE("a table of entries ends where its last id does", "[offload_bundle]") {
  Bytes bytes = plain();
  bytes.resize(32 + 2 * 24 + 27 + 31);
  for (const size_t entry : {32, 32 + 24 + 27})
    put(bytes, entry, 8, bytes.size()), put(bytes, entry + 8, 8, 0);
  CHECK(read_bundle(bytes).size() == 2);
  bytes.resize(23);
  CHECK(refused([&] { read_bundle(bytes); }) == "offload bundle: wrong magic");
  bytes.resize(24);
  std::memcpy(bytes.data(), "__CLANG_OFFLOAD_BUNDLE__", 24);
  CHECK(refused([&] { read_bundle(bytes); }) == "offload bundle: ends inside its table of entries");
}

TEST_CASE("an entry's code is at a multiple of 4096, however long the table is", "[offload_bundle]") {
  // With the host's entry: 32 + 51 + 24 + id bytes of table.
  for (const size_t id_bytes : {4096 - 107, 4096 - 106}) {
    const Bytes code(1, std::byte{9});
    const BundleEntry entry = {std::string(id_bytes, 'i'), code};
    const Bytes bundle = write_bundle({&entry, 1});
    CHECK(bundle.size() == (id_bytes == 4096 - 107 ? 4096 : 8192) + 1);
    CHECK(read_bundle(bundle)[1].code[0] == std::byte{9});
  }
}

TEST_CASE("compressed bundles of both versions are decompressed", "[offload_bundle]") {
  for (const int version : {2, 3})
    CHECK(decompress_bundle(compressed(version)) == plain());
  CHECK(refused_compressed(plain()) == "offload bundle: is not a compressed bundle");
  // 24 bytes are a header, but only of version 2.
  Bytes header = compressed(2);
  put(header, 8, 4, 24);
  header.resize(24);
  CHECK(refused_compressed(header) == "offload bundle: its header and its zstd frame differ in size");
  header.resize(23);
  CHECK(refused_compressed(header) == "offload bundle: is not a compressed bundle");
  for (const int version : {1, 4})
    CHECK(refused_compressed([&] {
            Bytes bytes = compressed(2);
            put(bytes, 4, 2, uint64_t(version));
            return bytes;
          }()) == "compressed offload bundle of version " + std::to_string(version) +
                      " and method 1: versions 2 and 3 and method 1 (zstd) are known");
  for (const int version : {2, 3}) {
    Bytes bytes = compressed(version);
    put(bytes, 6, 2, 0);
    CHECK(refused_compressed(bytes) == "compressed offload bundle of version " + std::to_string(version) +
                                           " and method 0: versions 2 and 3 and method 1 (zstd) are known");
  }
}

TEST_CASE("sizes of a compressed bundle agree with each other", "[offload_bundle]") {
  Bytes bytes = compressed(2);
  const size_t whole = bytes.size() - 3;
  bytes.resize(whole);
  CHECK(refused_compressed(bytes) == "");
  bytes.resize(whole - 1);
  CHECK(refused_compressed(bytes) ==
        "offload bundle: " + std::to_string(whole - 1) + " bytes of " + std::to_string(whole));
  bytes = compressed(2);
  put(bytes, 8, 4, whole - 1);
  CHECK_THAT(refused_compressed(bytes), Catch::StartsWith("offload bundle: zstd: "));
  put(bytes, 8, 4, 24);
  CHECK(refused_compressed(bytes) == "offload bundle: its header and its zstd frame differ in size");
  put(bytes, 8, 4, 23);
  CHECK(refused_compressed(bytes) == "offload bundle: is shorter than its header");
  bytes = compressed(2);
  put(bytes, 12, 4, plain().size() + 1);
  CHECK(refused_compressed(bytes) == "offload bundle: its header and its zstd frame differ in size");
  for (const size_t field : {8, 16}) {
    bytes = compressed(3);
    put(bytes, field, 8, (uint64_t{1} << 36) + 1);
    CHECK(refused_compressed(bytes) == "offload bundle: claims to have 68719476737 bytes");
    put(bytes, field, 8, uint64_t{1} << 36);
    CHECK_THAT(refused_compressed(bytes),
               Catch::Contains(field == 8 ? " bytes of 68719476736" : "differ in size"));
  }
}

TEST_CASE("a device takes code for its chip before code for the chip's family", "[offload_bundle]") {
  const std::string chip = bundle_id("gfx942"), family = bundle_id("gfx9-4-generic"),
                    other = bundle_id("gfx90a");
  CHECK(selected({other, family, chip}, "gfx942") == chip);
  CHECK(selected({other, family}, "gfx942") == family);
  CHECK(selected({other, chip}, "gfx950") == "none");
  CHECK(selected({chip, family}, "gfx90a") == "none");
  CHECK(selected({chip + "0", family}, "gfx942") == family);
  CHECK(selected({chip + "0sramecc+", family}, "gfx942", {"sramecc+"}) == family);
  CHECK(selected({bundle_id("")}, "gfx90a") == "none"); // which does not have a family
  // An id begins with its kind.
  CHECK(selected({"-amdgcn-amd-amdhsa--gfx942", "hip-amdgcn-amd-amdhsa--gfx942"}, "gfx942") ==
        "hip-amdgcn-amd-amdhsa--gfx942");
}

TEST_CASE("a device has every feature that an entry names", "[offload_bundle]") {
  const std::string chip = bundle_id("gfx942");
  CHECK(selected({chip + ":xnack+", chip}, "gfx942", {"sramecc+", "xnack-"}) == chip);
  CHECK(selected({chip + ":xnack-", chip}, "gfx942", {"sramecc+", "xnack-"}) == chip + ":xnack-");
  CHECK(selected({chip + ":sramecc+:xnack-"}, "gfx942", {"sramecc+", "xnack-"}) == chip + ":sramecc+:xnack-");
  CHECK(selected({chip + ":sramecc+:xnack+"}, "gfx942", {"sramecc+", "xnack-"}) == "none");
  CHECK(selected({chip + ":sramecc-:xnack-"}, "gfx942", {"sramecc+", "xnack-"}) == "none");
}

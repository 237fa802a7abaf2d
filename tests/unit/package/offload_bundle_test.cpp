//===- offload_bundle_test.cpp - the HIP fat binary -----------------------------------------------------===//
#include "package/offload_bundle.h"

#include "support/bytes.h"
#include "support/failure.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <vector>

using namespace sluice;
using namespace sluice::package;

namespace {

std::vector<std::byte> code_of(size_t size, int value) {
  return std::vector<std::byte>(size, std::byte(value));
}

} // namespace

TEST_CASE("a bundle has the bytes that HIP's loader expects", "[offload_bundle]") {
  const std::vector<std::byte> first = code_of(5000, 1), second = code_of(10, 2);
  const BundleEntry entries[] = {{bundle_id("gfx942"), first}, {bundle_id("gfx950"), second}};
  const std::vector<std::byte> bundle = write_bundle(entries);

  REQUIRE(bundle.size() == 4096 + 8192 + 10);
  CHECK(std::memcmp(bundle.data(), "__CLANG_OFFLOAD_BUNDLE__", 24) == 0);
  CHECK(support::load_little<uint64_t>(bundle.data() + 24) == 3);
  // The host's entry: offset, size, length of the id.
  CHECK(support::load_little<uint64_t>(bundle.data() + 32) == 4096);
  CHECK(support::load_little<uint64_t>(bundle.data() + 40) == 0);
  const uint64_t host_id_bytes = support::load_little<uint64_t>(bundle.data() + 48);
  const std::byte *entry = bundle.data() + 56 + host_id_bytes;
  CHECK(support::load_little<uint64_t>(entry) == 4096);
  CHECK(support::load_little<uint64_t>(entry + 8) == 5000);
  const std::string id = "hipv4-amdgcn-amd-amdhsa--gfx942";
  CHECK(support::load_little<uint64_t>(entry + 16) == id.size());
  CHECK(std::memcmp(entry + 24, id.data(), id.size()) == 0);
  CHECK(bundle[4096] == std::byte{1});
  CHECK(bundle[4096 + 4999] == std::byte{1});
  CHECK(bundle[4096 + 5000] == std::byte{0});
  CHECK(bundle[4096 + 8192] == std::byte{2});
}

TEST_CASE("reading a bundle gives the written code", "[offload_bundle]") {
  const std::vector<std::byte> code = code_of(4096, 7);
  const BundleEntry entry = {bundle_id("gfx942"), code};
  const std::vector<std::byte> bundle = write_bundle({&entry, 1});
  const std::vector<BundleEntry> read = read_bundle(bundle);
  REQUIRE(read.size() == 2);
  CHECK(read[0].code.empty());
  CHECK(read[0].id.starts_with("host-"));
  CHECK(read[1].id == "hipv4-amdgcn-amd-amdhsa--gfx942");
  CHECK(std::vector<std::byte>(read[1].code.begin(), read[1].code.end()) == code);
}

TEST_CASE("a bundle cut short anywhere is refused", "[offload_bundle]") {
  const std::vector<std::byte> code = code_of(100, 7);
  const BundleEntry entry = {bundle_id("gfx942"), code};
  const std::vector<std::byte> bundle = write_bundle({&entry, 1});
  for (size_t length = 0; length < bundle.size(); ++length) {
    try {
      read_bundle(std::span(bundle).first(length));
      FAIL("length " << length << " was accepted");
    } catch (const support::Failure &failure) {
      if (failure.status() != support::Status::pack_corrupt)
        FAIL("length " << length << ": " << failure.what());
    }
  }
}

TEST_CASE("offsets and sizes that wrap are refused", "[offload_bundle]") {
  const std::vector<std::byte> code = code_of(100, 7);
  const BundleEntry entry = {bundle_id("gfx942"), code};
  const std::vector<std::byte> good = write_bundle({&entry, 1});
  // Number of entries; offset, size and length of the id of the first.
  for (const size_t field : {24, 32, 40, 48}) {
    std::vector<std::byte> bundle = good;
    const uint64_t huge = ~uint64_t{0} - 15;
    std::memcpy(bundle.data() + field, &huge, sizeof huge);
    CHECK_THROWS_AS(read_bundle(bundle), support::Failure);
  }
}

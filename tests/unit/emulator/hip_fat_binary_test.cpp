//===- hip_fat_binary_test.cpp - modules from bundles, plain and compressed -----------------------------===//
#include "package/offload_bundle.h"
#include "unit/emulator/hip_fixture.h"

#include <cstring>
#include <zstd.h>

using namespace sluice::test;

namespace {

std::vector<std::byte> bundle() {
  const sluice::package::BundleEntry entry{"hipv4-amdgcn-amd-amdhsa--gfx942", two_kernels()};
  return sluice::package::write_bundle({&entry, 1});
}

/// Compressed by hand: the header follows LLVM's documentation of the format.
std::vector<std::byte> compress(std::span<const std::byte> plain, uint16_t version) {
  std::vector<std::byte> frame(ZSTD_compressBound(plain.size()));
  frame.resize(ZSTD_compress(frame.data(), frame.size(), plain.data(), plain.size(), 3));
  std::vector<std::byte> out(version == 2 ? 24 : 32);
  const uint16_t method = 1;
  std::memcpy(out.data(), "CCOB", 4);
  std::memcpy(out.data() + 4, &version, 2);
  std::memcpy(out.data() + 6, &method, 2);
  const uint64_t total = out.size() + frame.size(), whole = plain.size();
  const size_t width = version == 2 ? 4 : 8;
  std::memcpy(out.data() + 8, &total, width);
  std::memcpy(out.data() + 8 + width, &whole, width);
  out.insert(out.end(), frame.begin(), frame.end());
  return out;
}

hipError_t load(const std::vector<std::byte> &image) {
  hipModule_t module = nullptr;
  const hipError_t error = hip.hipModuleLoadData(&module, image.data());
  if (error == hipSuccess) {
    hipFunction_t function = nullptr;
    CHECK(hip.hipModuleGetFunction(&function, module, "fill") == hipSuccess);
    CHECK(hip.hipModuleUnload(module) == hipSuccess);
  }
  hip.hipGetLastError();
  return error;
}

} // namespace

TEST_CASE("compressed bundles of versions 2 and 3 load", "[hip]") {
  CHECK(load(compress(bundle(), 2)) == hipSuccess);
  CHECK(load(compress(bundle(), 3)) == hipSuccess);
  const sluice::package::BundleEntry other{"hipv4-amdgcn-amd-amdhsa--gfx90a", two_kernels()};
  CHECK(load(compress(sluice::package::write_bundle({&other, 1}), 3)) == hipErrorNoBinaryForGpu);
}

TEST_CASE("other versions and methods of compression are not supported", "[hip]") {
  for (const uint16_t version : {0, 1, 4}) {
    std::vector<std::byte> image = compress(bundle(), 3);
    std::memcpy(image.data() + 4, &version, 2);
    CHECK(load(image) == hipErrorNotSupported);
  }
  std::vector<std::byte> image = compress(bundle(), 3);
  image[6] = std::byte{0}; // zlib
  CHECK(load(image) == hipErrorNotSupported);
}

TEST_CASE("damaged bundles are invalid images", "[hip]") {
  const auto with = [](std::vector<std::byte> image, size_t at, uint64_t value, size_t width) {
    std::memcpy(image.data() + at, &value, width);
    return image;
  };
  const std::vector<std::byte> plain = bundle();
  for (const size_t field : {24, 32, 40, 48}) // entries; offset, size and length of the id of the first
    CHECK(load(with(plain, field, ~uint64_t{0}, 8)) == hipErrorInvalidImage);
  for (const uint16_t version : {2, 3}) {
    const size_t width = version == 2 ? 4 : 8;
    const std::vector<std::byte> image = compress(plain, version);
    CHECK(load(with(image, 8, 7, width)) == hipErrorInvalidImage);                        // bytes of all
    CHECK(load(with(image, 8, image.size() - 100, width)) == hipErrorInvalidImage);       // cut short
    CHECK(load(with(image, 8 + width, plain.size() + 1, width)) == hipErrorInvalidImage); // of the bundle
    CHECK(load(with(image, 8 + width, plain.size() - 1, width)) == hipErrorInvalidImage); // the same
    CHECK(load(with(image, 8 + 2 * width + 8, 0, 4)) == hipErrorInvalidImage);            // zstd's magic
    CHECK(load(with(image, image.size() - 40, 0x0123456789abcdef, 8)) != hipSuccess);     // its data
  }
  // More memory than any machine has.
  CHECK(load(with(compress(plain, 3), 16, (uint64_t{1} << 36) - 1, 8)) == hipErrorInvalidImage);
  CHECK(load(with(compress(plain, 3), 16, uint64_t{1} << 60, 8)) == hipErrorInvalidImage);
  CHECK(load(compress(std::span(plain).first(20), 3)) == hipErrorInvalidImage);
  CHECK(load(compress(two_kernels(), 3)) == hipErrorInvalidImage); // does not contain a bundle
}

//===- checksum_test.cpp - XXH64 against published values and against zstd ------------------------------===//
#include "support/checksum.h"

#include "support/bytes.h"

#include <catch2/catch.hpp>
#include <zstd.h>

#include <string_view>
#include <vector>

using namespace sluice::support;

TEST_CASE("XXH64 gives the published values", "[checksum]") {
  const auto hash = [](std::string_view text) { return xxh64(std::as_bytes(std::span(text))); };
  CHECK(hash("") == 0xef46db3751d8e999);
  CHECK(hash("a") == 0xd24ec4f1a98c6e5b);
  CHECK(hash("abc") == 0x44bc2cf5ad770999);
}

TEST_CASE("zstd appends the low half of XXH64 to a frame, at every length", "[checksum]") {
  ZSTD_CCtx *context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  std::vector<std::byte> input;
  for (int length = 0; length < 300; ++length) {
    std::vector<std::byte> frame(ZSTD_compressBound(input.size()));
    const size_t size = ZSTD_compress2(context, frame.data(), frame.size(), input.data(), input.size());
    REQUIRE(!ZSTD_isError(size));
    CHECK(uint32_t(xxh64(input)) == load_little<uint32_t>(frame.data() + size - 4));
    input.push_back(std::byte(length * 37 + 11));
  }
  ZSTD_freeCCtx(context);
}

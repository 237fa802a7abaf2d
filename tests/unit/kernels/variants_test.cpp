//===- variants_test.cpp - reading the variant table ----------------------------------------------------===//
#include "attention/Variants.h"

#include <catch2/catch.hpp>

using namespace sluice;

static std::string refusal(llvm::StringRef table) {
  auto variants = parseVariants(table);
  return variants ? "" : llvm::toString(variants.takeError());
}

TEST_CASE("rows are read in order, comments and blank lines are not rows", "[variants]") {
  auto variants = parseVariants("// a table\n\nSLUICE_ATTENTION_FORWARD(f16,  128, 64, 8) // one\n"
                                "  SLUICE_ATTENTION_FORWARD(bf16,64,32,4)\n");
  REQUIRE(bool(variants));
  REQUIRE(variants->size() == 2);
  const AttentionVariant &first = (*variants)[0], &second = (*variants)[1];
  CHECK((first.dtype == "f16" && first.headDimQk == 128 && first.headDimV == 128 && first.tileKv == 64 &&
         first.waves == 8));
  CHECK((first.tileQ() == 256 && first.threads() == 512));
  CHECK((second.dtype == "bf16" && second.headDimQk == 64 && second.tileKv == 32 && second.waves == 4));
}

TEST_CASE("each kind of row says what its kernels are like", "[variants]") {
  auto variants = parseVariants("SLUICE_ATTENTION_FORWARD(f16, 128, 64, 8)\n"
                                "SLUICE_ATTENTION_PAGED(bf16, 64, 64, 4)\n"
                                "SLUICE_ATTENTION_PACKED(f16, e4m3fnuz, 192, 128, 16, 4)\n"
                                "SLUICE_ATTENTION_LATENT(bf16, bf16, 576, 512, 16, 1)\n"
                                "SLUICE_ATTENTION_PACKED_TO(e4m3fnuz, bf16, 192, 128, 32, 4)\n"
                                "SLUICE_ATTENTION_LATENT_TO(e4m3fnuz, f16, 576, 512, 32, 1)\n");
  REQUIRE(bool(variants));
  REQUIRE(variants->size() == 6);
  CHECK((*variants)[0] == AttentionVariant{"f16", "", 128, 128, 64, 8, 32, false, false});
  CHECK((*variants)[1] == AttentionVariant{"bf16", "", 64, 64, 64, 4, 32, true, false});
  CHECK((*variants)[2] == AttentionVariant{"f16", "e4m3fnuz", 192, 128, 16, 4, 16, true, false});
  CHECK((*variants)[3] == AttentionVariant{"bf16", "", 576, 512, 16, 1, 16, true, true});
  CHECK((*variants)[4] == AttentionVariant{"e4m3fnuz", "", 192, 128, 32, 4, 16, true, false, "bf16"});
  CHECK((*variants)[5] == AttentionVariant{"e4m3fnuz", "", 576, 512, 32, 1, 16, true, true, "f16"});
  CHECK((*variants)[2].tileQ() == 64);
  CHECK(!(*variants)[0].everyChange());
  CHECK((*variants)[1].everyChange());
  CHECK((*variants)[2].everyChange());
}

TEST_CASE("what is no row is refused with its line", "[variants]") {
  CHECK(refusal("\nSLUICE_ATTENTION_FORWARD(f16, 128, 64)") ==
        "line 2: 'SLUICE_ATTENTION_FORWARD(f16, 128, 64)' has 3 columns instead of 4");
  CHECK(refusal("SLUICE_ATTENTION_FORWARD(f16, 128, 64, 8, 9)") ==
        "line 1: 'SLUICE_ATTENTION_FORWARD(f16, 128, 64, 8, 9)' has 5 columns instead of 4");
  for (const char *number : {"x", "-1", "0", "", "4294967296", "0x8"}) {
    INFO(number);
    CHECK(refusal(std::string("SLUICE_ATTENTION_FORWARD(f16, 128, 64, ") + number + ")") ==
          std::string("line 1: 'SLUICE_ATTENTION_FORWARD(f16, 128, 64, ") + number + ")' has '" + number +
              "' where a positive number belongs");
  }
  for (const char *row : {"SLUICE_ATTENTION_BACKWARD(f16, 128, 64, 8)",
                          "SLUICE_ATTENTION_FORWARD(f16, 128, 64, 8", "#include <x>", "f16, 128, 64, 8"})
    CHECK(refusal(row) == std::string("line 1: '") + row +
                              "' is no row SLUICE_ATTENTION_FORWARD(dtype, head_dim, tile_kv, waves)");
}

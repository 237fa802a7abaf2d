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
  CHECK((first.dtype == "f16" && first.headDim == 128 && first.tileKv == 64 && first.waves == 8));
  CHECK((first.tileQ() == 256 && first.threads() == 512));
  CHECK((second.dtype == "bf16" && second.headDim == 64 && second.tileKv == 32 && second.waves == 4));
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

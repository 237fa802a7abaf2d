//===- nested_layout_test.cpp - every cell of a tile is moved exactly once ------------------------------===//
#include "transforms/NestedLayout.h"

#include <catch2/catch.hpp>
#include <set>
#include <vector>

using namespace sluice;

namespace {

constexpr unsigned dword[] = {1, 2, 4}, wide[] = {1, 2, 4, 12, 16}, none[] = {1, 2};

Chip chip_with(llvm::ArrayRef<unsigned> widths) {
  Chip chip{};
  chip.name = "test";
  chip.waveSize = 64;
  chip.directToLdsBytes = widths;
  return chip;
}

struct Tiles {
  Tiles() { context.loadDialect<SluiceDialect>(); }

  LdsTileType tile(unsigned rows, unsigned columns, unsigned element_bits, XorSwizzle swizzle = {}) {
    return LdsTileType::get(&context, rows, columns, mlir::IntegerType::get(&context, element_bits),
                            XorSwizzleAttr::get(&context, swizzle));
  }
  NestedLayout layout(LdsTileType tile, unsigned waves, llvm::ArrayRef<unsigned> widths,
                      unsigned granule = 0) {
    std::string reason;
    auto result = computeNestedLayout(tile, waves, chip_with(widths), granule, reason);
    INFO(reason);
    REQUIRE(mlir::succeeded(result));
    CHECK(reason.empty());
    return *result;
  }
  std::string reason(LdsTileType tile, unsigned waves, llvm::ArrayRef<unsigned> widths,
                     unsigned granule = 0) {
    std::string reason;
    REQUIRE(mlir::failed(computeNestedLayout(tile, waves, chip_with(widths), granule, reason)));
    return reason;
  }

  mlir::MLIRContext context;
};

using Pair = NestedLayout::Pair;

/// Enumerates what all lanes of all waves move. Every cell once; and every wave instruction contiguous in
/// LDS, lane after lane, since a direct-to-LDS load cannot write anything else.
void check_cover(const NestedLayout &layout, LdsTileType tile, unsigned waves) {
  std::vector<unsigned> moved(tile.getRows() * tile.getColumns());
  bool contiguous = true, inside = true;
  for (unsigned instruction = 0; instruction < layout.instructions(); ++instruction)
    for (unsigned wave = 0; wave < waves; ++wave) {
      const Pair start = layout.place(instruction, wave, 0);
      const unsigned base = start.rows * tile.getColumns() + start.columns;
      for (unsigned lane = 0; lane < 64; ++lane) {
        const Pair place = layout.place(instruction, wave, lane);
        const unsigned cell = place.rows * tile.getColumns() + place.columns;
        contiguous &= cell == base + lane * layout.element.columns;
        inside &= place.rows < tile.getRows() && place.columns + layout.element.columns <= tile.getColumns();
        for (unsigned n = 0; inside && n < layout.element.columns; ++n)
          ++moved[cell + n];
      }
    }
  CHECK(inside);
  CHECK(contiguous);
  CHECK(std::all_of(moved.begin(), moved.end(), [](unsigned times) { return times == 1; }));
}

} // namespace

TEST_CASE("the levels of a layout fill as documented", "[nested_layout]") {
  Tiles t;
  // 256-byte rows: a wave instruction is one row; waves over rows, the rest in batches.
  CHECK(t.layout(t.tile(64, 128, 16), 8, dword) == NestedLayout{{1, 2}, {1, 64}, {8, 1}, {8, 1}, 4});
  // 128-byte rows: lanes fill the row and go on to the next one.
  CHECK(t.layout(t.tile(64, 64, 16), 8, dword) == NestedLayout{{1, 2}, {2, 32}, {8, 1}, {4, 1}, 4});
  // 1 KiB rows and fewer rows than waves: the remaining waves divide the columns.
  CHECK(t.layout(t.tile(2, 512, 16), 4, dword) == NestedLayout{{1, 2}, {1, 64}, {2, 2}, {1, 2}, 4});
  // 16 bytes a lane where the chip has them, 12 where rows of 192 bytes rule out 16.
  CHECK(t.layout(t.tile(64, 128, 16), 8, wide) == NestedLayout{{1, 8}, {4, 16}, {8, 1}, {2, 1}, 16});
  CHECK(t.layout(t.tile(64, 96, 16), 8, wide) == NestedLayout{{1, 6}, {4, 16}, {8, 1}, {2, 1}, 12});
  // A swizzle chunk stays together: 8-byte chunks leave 4 bytes.
  CHECK(t.layout(t.tile(64, 128, 16, {4, 8}), 8, wide).elementBytes == 4);
  CHECK(NestedLayout::outer == Pair{1, 1});
  // One byte per element: four columns a lane, and as many rows per instruction as fill it.
  CHECK(t.layout(t.tile(64, 128, 8), 8, dword) == NestedLayout{{1, 4}, {2, 32}, {8, 1}, {4, 1}, 4});
  CHECK(t.layout(t.tile(16, 16, 8), 1, dword) == NestedLayout{{1, 4}, {16, 4}, {1, 1}, {1, 1}, 4});
  CHECK(t.layout(t.tile(16, 512, 8), 4, dword) == NestedLayout{{1, 4}, {1, 64}, {4, 1}, {4, 2}, 4});
}

TEST_CASE("tiles of 16 rows have a layout unless there are more waves than instructions", "[nested_layout]") {
  Tiles t;
  for (unsigned bits : {8, 16})
    for (unsigned columns : {16, 32, 64, 128, 256, 512})
      for (unsigned waves : {1, 4}) {
        INFO("16 x " << columns << " of " << bits << " bits, " << waves << " waves");
        const LdsTileType tile = t.tile(16, columns, bits);
        const unsigned instructions = tile.getBytes() / 256;
        if (instructions >= waves) {
          const NestedLayout layout = t.layout(tile, waves, dword);
          CHECK(layout.instructions() * waves == instructions);
          check_cover(layout, tile, waves);
        } else {
          CHECK(t.reason(tile, waves, dword)
                    .starts_with("4 bytes: 4 waves do not divide " + std::to_string(instructions) +
                                 "x1 instructions;"));
        }
      }
}

TEST_CASE("a lane has the columns of one granule", "[nested_layout]") {
  Tiles t;
  CHECK(t.layout(t.tile(64, 128, 16), 8, wide, 8).elementBytes == 16);
  CHECK(t.layout(t.tile(64, 96, 16), 8, wide).elementBytes == 12); // 6 columns
  CHECK(t.reason(t.tile(64, 96, 16), 8, wide, 8)
            .find("12 bytes: does not divide the 16 bytes that a column limit counts in;") !=
        std::string::npos);
  CHECK(t.layout(t.tile(64, 128, 8), 8, wide, 8).elementBytes == 4);
  CHECK(t.layout(t.tile(64, 128, 8), 8, wide).elementBytes == 16);
  constexpr unsigned sixteen[] = {16};
  CHECK(t.reason(t.tile(64, 128, 8), 8, sixteen, 8) ==
        "16 bytes: does not divide the 8 bytes that a column limit counts in");
}

TEST_CASE("every cell is moved exactly once", "[nested_layout]") {
  Tiles t;
  unsigned distributed = 0;
  std::set<unsigned> widths;
  for (unsigned rows : {1, 2, 4, 8, 12, 16, 24, 32, 64, 96, 128})
    for (unsigned columns : {8, 16, 32, 48, 64, 80, 96, 128, 192, 256, 512})
      for (unsigned bits : {8, 16, 32})
        for (unsigned waves : {1, 2, 3, 4, 6, 8, 16})
          for (llvm::ArrayRef<unsigned> chip : {llvm::ArrayRef(dword), llvm::ArrayRef(wide)}) {
            const LdsTileType tile = t.tile(rows, columns, bits);
            std::string reason;
            auto layout = computeNestedLayout(tile, waves, chip_with(chip), 0, reason);
            if (mlir::failed(layout)) {
              CHECK(!reason.empty());
              continue;
            }
            INFO(rows << " x " << columns << " of " << bits << " bits, " << waves << " waves, "
                      << layout->elementBytes << " bytes");
            check_cover(*layout, tile, waves);
            // No wider load would have worked.
            for (unsigned width : chip)
              if (width > layout->elementBytes)
                CHECK(mlir::failed(computeNestedLayout(tile, waves, chip_with({width}), 0, reason)));
            widths.insert(layout->elementBytes);
            ++distributed;
          }
  CHECK(distributed > 800);
  CHECK(widths == std::set<unsigned>{4, 12, 16});
}

TEST_CASE("a tile that cannot be laid out is refused in words", "[nested_layout]") {
  Tiles t;
  const std::string gaps = "a lane fills 4 bytes of LDS, so rows would have gaps";
  CHECK(t.reason(t.tile(8, 64, 16), 1, none) == "2 bytes: " + gaps + "; 1 bytes: " + gaps);
  const std::string narrow = "; 2 bytes: " + gaps + "; 1 bytes: " + gaps;
  CHECK(t.reason(t.tile(8, 64, 64), 1, dword) ==
        "4 bytes: not a whole number of elements of 8 bytes" + narrow);
  CHECK(t.reason(t.tile(8, 63, 16), 1, dword) == "4 bytes: does not divide a row of 126 bytes" + narrow);
  CHECK(t.reason(t.tile(8, 64, 16, {1, 8}), 1, dword) ==
        "4 bytes: does not divide a swizzle chunk of 2 bytes" + narrow);
  CHECK(t.reason(t.tile(8, 96, 16), 1, dword) ==
        "4 bytes: a row of 48 pieces is neither a divisor nor a multiple of a wave of 64" + narrow);
  CHECK(t.reason(t.tile(3, 64, 16), 1, dword) ==
        "4 bytes: 2 rows per instruction do not divide 3 rows" + narrow);
  CHECK(t.reason(t.tile(12, 128, 16), 8, dword) ==
        "4 bytes: 8 waves do not divide 12x1 instructions" + narrow);
  // All widths are named, the widest first.
  CHECK(t.reason(t.tile(8, 40, 16), 8, wide) ==
        "16 bytes: a row of 5 pieces is neither a divisor nor a multiple of a wave of 64; "
        "12 bytes: does not divide a row of 80 bytes; "
        "4 bytes: a row of 20 pieces is neither a divisor nor a multiple of a wave of 64" +
            narrow);
}

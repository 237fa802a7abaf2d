//===- copies_test.cpp - copies into LDS: shapes, distances, limits, bank conflicts ---------------------===//
#include "copies/scattered_source.h"

#include "dialect/Swizzle.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <iostream>

using namespace sluice::test;

TEST_CASE("contiguous rows over distances that 32 bits cannot hold", "[copies]") {
  const CopyKernel one_row({.columns = 128}), two_rows({.columns = 64});
  for (int32_t limit : {0, 61, 80, 91, 1000}) {
    check_contiguous(one_row, {.stride = 136, .first = 60, .limit = limit});
    check_contiguous(one_row,
                     {.stride = (int64_t(1) << 29) + 8, .first = 60, .limit = limit}); // just over 1 GiB
    check_contiguous(one_row, {.stride = -(int64_t(1) << 29) - 8, .first = 60, .limit = limit});
    check_contiguous(two_rows, {.stride = 64, .first = 60, .limit = limit});
    check_contiguous(two_rows, {.stride = (int64_t(1) << 29) - 8, .first = 60, .limit = limit});
  }
  // Two rows per instruction, as far apart as the 32 bits of a descriptor's extent allow.
  check_contiguous(two_rows, {.stride = (int64_t(1) << 31) - 128, .first = 2, .limit = 33});
  // One row per instruction: 5 GiB from row to row.
  check_contiguous(one_row, {.stride = int64_t(5) << 29, .first = 0, .limit = 31});
}

TEST_CASE("rows longer than a wave reaches", "[copies]") {
  const KernelShape shape{.rows = 4, .columns = 512, .waves = 8};
  const CopyKernel contiguous(shape);
  check_contiguous(contiguous, {.stride = 520, .first = 3, .limit = 6});
  KernelShape paged = shape;
  paged.gather = true;
  check_gather(CopyKernel(paged), {.page_rows = 3, .first = 2, .limit = 5});
}

TEST_CASE("tiles of 16 rows", "[copies]") {
  // Rows of the source are shorter than the tile's, follow each other with small gaps, and end within the
  // tile.
  for (const char *element : {"f16", "i8", "f8E4M3FNUZ"})
    for (unsigned columns : {16, 32, 64, 128, 256, 512})
      for (unsigned waves : {1, 4}) {
        KernelShape shape{.rows = 16, .columns = columns, .element = element, .waves = waves};
        if (shape.rows * columns * shape.element_bytes() < waves * 256) continue; // see nested_layout_test
        if (shape.element == "i8" && columns != 128) continue; // as the other type of one byte
        const sluice::XorSwizzle policy =
            sluice::XorSwizzle::forColumnReads(columns, shape.element_bytes(), 16, 32);
        shape.swizzle = policy.isIdentity()
                            ? ""
                            : ", xor<" + std::to_string(policy.chunk) + ", " + std::to_string(policy.period) +
                                  ", " + std::to_string(policy.rowsPerPhase) + ">";
        shape.column_limit = true;
        KernelShape close = shape, paged = shape;
        close.close = true;
        paged.gather = true;
        paged.magic = true;
        const CopyKernel close_kernel(close), paged_kernel(paged);
        for (int32_t column_limit : {int32_t(columns), int32_t(columns) / 2})
          for (int32_t limit : {25, 13}) {
            check_contiguous(close_kernel, {column_limit + 8, 9, limit, column_limit});
            check_gather(paged_kernel, {.page_rows = 5,
                                        .first = 9,
                                        .limit = limit,
                                        .row_stride = column_limit + 8,
                                        .column_limit = column_limit});
          }
      }
}

TEST_CASE("columns at or past their limit are zeros", "[copies]") {
  for (const char *element : {"f16", "f8E4M3FNUZ"})
    for (unsigned columns : {64, 128, 256}) {
      KernelShape shape{.columns = columns, .element = element, .column_limit = true};
      if (shape.element_bytes() == 1) shape.swizzle = columns == 64 ? ", xor<16, 4, 2>" : ", xor<16, 8>";
      KernelShape close = shape, paged = shape;
      close.close = true;
      paged.gather = true;
      const CopyKernel apart_kernel(shape), close_kernel(close), paged_kernel(paged);
      for (int32_t column_limit : {0, 8, 40, 56, 64, 72, 120, 1 << 30}) {
        // The next row begins where this one ends: columns past the limit exist, but belong to the next row.
        const int64_t stride = std::clamp(column_limit, 8, int32_t(columns));
        for (int32_t limit : {0, 3, 20, 40}) {
          check_contiguous(apart_kernel, {stride, 3, limit, column_limit});
          check_contiguous(close_kernel, {stride, 3, limit, column_limit});
          check_gather(paged_kernel, {.page_rows = 3,
                                      .first = 2,
                                      .limit = limit,
                                      .row_stride = stride,
                                      .column_limit = column_limit});
        }
      }
      // Offsets of nearly 4 GiB, which wrap if anything is added to them.
      check_contiguous(close_kernel, {(int64_t(1) << 32) / 32 / shape.element_bytes() - 64, 0, 31, 40});
    }
}

TEST_CASE("reads of a swizzled tile meet no bank conflict", "[copies]") {
  std::cout << "bank conflicts of reading a tile of 64 rows, as the emulator counts them\n"
               "columns  element     from        reads      swizzle          conflicts\n";
  struct Row {
    unsigned columns;
    Reads reads;
    const char *name, *swizzle;
    bool free;
    const char *element = "f16";
    const char *from = "";
  };
  for (const Row &row :
       {Row{64, Reads::fragments, "K", ", xor<8, 8>", true},
        Row{128, Reads::fragments, "K", ", xor<8, 8>", true}, Row{64, Reads::columns, "V", "", true},
        Row{128, Reads::columns, "V", "", true}, Row{64, Reads::fragments, "K", "", false},
        Row{128, Reads::fragments, "K", "", false}, Row{128, Reads::fragments, "K", ", xor<8, 4>", false},
        Row{64, Reads::fragments, "K", ", xor<16, 4, 2>", true, "f8E4M3FNUZ"},
        Row{128, Reads::fragments, "K", ", xor<16, 8>", true, "f8E4M3FNUZ"},
        Row{128, Reads::columns, "V", "", true, "f8E4M3FNUZ"},
        Row{128, Reads::fragments, "K", "", false, "f8E4M3FNUZ"},
        // For copies through registers the lanes write to LDS themselves.
        Row{64, Reads::fragments, "K", ", xor<8, 8>", true, "f16", "f8E4M3FNUZ"},
        Row{128, Reads::fragments, "K", ", xor<8, 8>", true, "f16", "f8E4M3FNUZ"},
        Row{64, Reads::columns, "V", "", true, "f16", "f8E4M3FNUZ"},
        Row{128, Reads::columns, "V", "", true, "f16", "f8E4M3FNUZ"},
        Row{64, Reads::fragments, "K", ", xor<8, 8>", true, "f16", "f16"},
        Row{128, Reads::fragments, "K", ", xor<8, 8>", true, "f16", "f16"},
        Row{64, Reads::columns, "V", "", true, "f16", "f16"},
        Row{128, Reads::columns, "V", "", true, "f16", "f16"},
        Row{64, Reads::fragments, "K", ", xor<16, 4, 2>", true, "f8E4M3FNUZ", "f8E4M3FNUZ"},
        Row{128, Reads::fragments, "K", ", xor<16, 8>", true, "f8E4M3FNUZ", "f8E4M3FNUZ"},
        Row{128, Reads::columns, "V", "", true, "f8E4M3FNUZ", "f8E4M3FNUZ"}}) {
    const CopyKernel kernel({.rows = 64,
                             .columns = row.columns,
                             .element = row.element,
                             .swizzle = row.swizzle,
                             .reads = row.reads,
                             .from = row.from});
    AddressSpace space;
    CopyArguments arguments;
    arguments.base = space.begin();
    arguments.stride = row.columns;
    arguments.limit = 64;
    for (int64_t n = 0; n < 64; ++n)
      put_row(space, space.begin() + uint64_t(n) * row.columns * kernel.shape.source_bytes(), n, 0,
              row.columns, kernel.shape);
    const CopyKernel::Result result = kernel.run(arguments);
    std::printf("%7u  %-10s  %-10s  %-9s  %-15s  %llu\n", row.columns, row.element, row.from, row.name,
                *row.swizzle ? row.swizzle + 2 : "none", (unsigned long long)result.bank_conflicts);
    std::fflush(stdout);
    CHECK(result.reports == "[]");
    CHECK((result.bank_conflicts == 0) == row.free);
    check_copy(kernel, arguments);
  }
}

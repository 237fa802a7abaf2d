//===- fetched_copies_test.cpp - copies into LDS through registers --------------------------------------===//
#include "copies/scattered_source.h"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace sluice::test;

TEST_CASE("copies through registers, as they are and converted", "[copies]") {
  struct Types {
    const char *element, *from;
  };
  for (const auto &[element, from] :
       {Types{"f16", "f8E4M3FNUZ"}, Types{"bf16", "f8E4M3FNUZ"}, Types{"f16", "f16"}, Types{"i8", "i8"},
        Types{"f8E4M3FNUZ", "f8E4M3FNUZ"}})
    for (unsigned columns : {64, 128, 512}) {
      KernelShape shape{.rows = columns == 512 ? 8u : 32u,
                        .columns = columns,
                        .element = element,
                        .column_limit = true,
                        .from = from};
      if (shape.element_bytes() == 1) shape.swizzle = columns == 64 ? ", xor<16, 4, 2>" : ", xor<16, 8>";
      KernelShape close = shape, paged = shape;
      close.close = true;
      paged.gather = paged.packs = paged.hole = true;
      const CopyKernel apart_kernel(shape), close_kernel(close), paged_kernel(paged);
      for (int32_t column_limit : {0, 8, 40, 64, 72, 1 << 30}) {
        const int64_t stride = std::clamp(column_limit, 8, int32_t(columns));
        for (int32_t limit : {-3, 3, 20, 40}) {
          check_contiguous(apart_kernel, {stride, 3, limit, column_limit});
          check_contiguous(close_kernel, {stride, 3, limit, column_limit});
          check_gather(paged_kernel, {.page_rows = 3,
                                      .first = 2,
                                      .limit = limit,
                                      .row_stride = stride,
                                      .column_limit = column_limit,
                                      .hole_begin = 7,
                                      .hole_end = 9,
                                      .pack_log2 = 4,
                                      .pack_stride = 2048});
        }
      }
      // Offsets of nearly 4 GiB: those of lanes past their limit must not wrap to bytes that exist.
      const int64_t rows = shape.rows, reach = (int64_t(1) << 32) / shape.source_bytes() - columns;
      check_contiguous(close_kernel, {reach / (rows - 1) / 8 * 8, 0, int32_t(rows), 40});
    }
}

TEST_CASE("rows in registers arrive after the reads of the rows before", "[copies]") {
  struct Width {
    const char *element, *from, *swizzle;
    const char *load, *write; // of 8 columns; for bytes two writes are one instruction
  };
  for (const Width &width :
       {Width{"f16", "f8E4M3FNUZ", ", xor<8, 8>", "global_load_dwordx2 ", "ds_write_b128 "},
        Width{"f16", "f16", ", xor<8, 8>", "global_load_dwordx4 ", "ds_write_b128 "},
        Width{"i8", "i8", ", xor<16, 8>", "global_load_dwordx2 ", "ds_write2st64_b64 "}})
    for (unsigned stages : {1, 2, 3}) {
      // Every wave reads what all waves have written.
      const CopyKernel kernel({.element = width.element,
                               .swizzle = width.swizzle,
                               .stages = stages,
                               .reads = Reads::fragments,
                               .gather = true,
                               .from = width.from});
      const std::string code = kernel.disassembly();
      CHECK(code.find(width.load) != std::string::npos);
      CHECK(code.find(width.write) != std::string::npos);
      for (int32_t tiles : {1, 2, 5})
        for (const char *completion : {"late", "early", "random"}) {
          INFO(stages << " stages, completion " << completion);
          sluice_emulator_configure("completion", completion);
          check_gather(kernel, {.page_rows = 3, .first = 0, .limit = tiles * 32 - 5, .tiles = tiles});
        }
      sluice_emulator_configure("completion", "late");
    }
}

TEST_CASE("tiles by columns", "[copies]") {
  struct Extent {
    unsigned rows, columns;
  };
  for (const auto &[rows, columns] : {Extent{64, 64}, Extent{32, 128}, Extent{64, 128}, Extent{128, 128},
                                      Extent{32, 256}, Extent{64, 256}}) {
    KernelShape close{.rows = rows,
                      .columns = columns,
                      .element = "i8",
                      .swizzle = ", by_columns",
                      .reads = Reads::units,
                      .column_limit = true,
                      .close = true,
                      .from = "i8"};
    const CopyKernel close_kernel(close);
    for (int32_t column_limit : {0, 8, 40, 64, 1 << 30})
      for (int32_t limit : {-3, 3, 20, 40, 100})
        check_contiguous(close_kernel,
                         {std::clamp(column_limit, 8, int32_t(columns)), 3, limit, column_limit});
    // Offsets of nearly 4 GiB: those of lanes past their limit must not wrap to bytes that exist.
    const int64_t reach = (int64_t(1) << 32) - columns;
    check_contiguous(close_kernel, {reach / (rows - 1) / 8 * 8, 0, int32_t(rows), 40});
    INFO(rows << "x" << columns);
    CHECK(close_kernel.run({.limit = 0, .column_limit = 8}).bank_conflicts == 0);

    if (rows > 64) continue; // a wave has no lane for each row
    for (unsigned stages : {1, 2}) {
      KernelShape paged = close;
      paged.close = false;
      paged.gather = paged.hole = true;
      paged.stages = stages;
      const CopyKernel paged_kernel(paged);
      for (int32_t column_limit : {8, 40, 1 << 30})
        for (int32_t tiles : {1, 3})
          check_gather(paged_kernel, {.page_rows = 3,
                                      .first = 2,
                                      .limit = tiles * int32_t(rows) - 5,
                                      .tiles = tiles,
                                      .column_limit = column_limit,
                                      .hole_begin = 7,
                                      .hole_end = 9});
    }
  }
}

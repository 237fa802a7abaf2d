//===- gathers_test.cpp - copies of rows that a page table finds ----------------------------------------===//
#include "copies/scattered_source.h"

#include <catch2/catch.hpp>
#include <limits>

using namespace sluice::test;

TEST_CASE("gathers through page tables", "[copies]") {
  for (unsigned columns : {64, 128})
    for (bool may_be_wide : {false, true}) {
      const CopyKernel kernel({.columns = columns, .gather = true, .wide = may_be_wide});
      for (bool wide : {false, true})
        for (int32_t page_rows : {1, 3, 16, 64})
          for (int32_t limit : {-5, 0, 1, 7, 32, 33, 37, 68, 1000})
            for (int32_t first : {0, 5, 36}) {
              if ((wide && !may_be_wide) || (limit > 7 && limit < first)) continue;
              check_gather(kernel, {.page_rows = page_rows, .first = first, .limit = limit, .wide = wide});
            }
    }
}

TEST_CASE("rows in a hole are zeros, and their pages are not looked up", "[copies]") {
  for (unsigned columns : {64, 128}) {
    const CopyKernel kernel({.columns = columns, .gather = true, .hole = true});
    for (int32_t page_rows : {1, 3, 16})
      for (int32_t begin : {0, 5, 9, 30})
        for (int32_t rows : {-2, 0, 1, 7, 40})
          check_gather(kernel, {.page_rows = page_rows,
                                .first = 5,
                                .limit = 35,
                                .hole_begin = begin,
                                .hole_end = begin + rows});
  }
}

TEST_CASE("columns in packs", "[copies]") {
  for (unsigned columns : {64, 128}) {
    const CopyKernel kernel({.columns = columns, .gather = true, .column_limit = true, .packs = true});
    for (int32_t limit : {0, 20, 40})
      for (int32_t column_limit : {8, 40, 64})
        for (int32_t log2 : {3, 4, 6})
          for (int64_t pack_stride : {int64_t(2048), int64_t(1) << 27})
            check_gather(kernel, {.page_rows = 3,
                                  .first = 2,
                                  .limit = limit,
                                  .page_stride = int64_t(1) << (pack_stride == 2048 ? 28 : 12),
                                  .row_stride = 64,
                                  .column_limit = column_limit,
                                  .pack_log2 = log2,
                                  .pack_stride = pack_stride});
  }
}

TEST_CASE("lanes look rows up together", "[copies]") {
  const auto count = [](const std::string &code, const char *instruction) {
    size_t found = 0;
    for (size_t place = code.find(instruction); place != std::string::npos;
         place = code.find(instruction, place + 1))
      ++found;
    return found;
  };
  // A wave has eight loads of one row each, or four of two rows, and one of the entries of all.
  const std::string one = CopyKernel({.columns = 128, .gather = true}).disassembly();
  CHECK(count(one, "buffer_load_dword ") == 8 + 1);
  CHECK(count(one, "global_load_lds_dword") == 0);
  CHECK(count(one, "v_readlane_b32") >= 2 * 8);
  const std::string several = CopyKernel({.columns = 64, .gather = true}).disassembly();
  CHECK(count(several, "buffer_load_dword ") == 1);
  CHECK(count(several, "global_load_lds_dword") == 4);
  CHECK(count(several, "ds_bpermute_b32") == 2 * 4);
  // Wide entries come in two halves.
  const std::string wide = CopyKernel({.columns = 64, .gather = true, .wide = true}).disassembly();
  CHECK(count(wide, "buffer_load_dword ") == 2);
}

TEST_CASE("gathers over distances that 32 bits cannot hold", "[copies]") {
  for (unsigned columns : {64, 128}) {
    const CopyKernel narrow({.columns = columns, .gather = true}),
        wide({.columns = columns, .gather = true, .wide = true});
    for (const CopyKernel *kernel : {&narrow, &wide}) {
      // Numbers of pages beyond 2^31.
      check_gather(*kernel,
                   {.page_rows = 4, .first = 3, .limit = 30, .page_stride = 4096, .first_page = 0xffffff00});
      check_gather(*kernel,
                   {.page_rows = 4, .first = 3, .limit = 30, .page_stride = 4096, .first_page = 0x7fffff80});
      // Descending pages and rows, and rows of one page that are more than 4 GiB apart.
      check_gather(*kernel, {.page_rows = 3, .first = 2, .limit = 40, .page_stride = -(int64_t(1) << 28)});
      check_gather(
          *kernel,
          {.page_rows = 16, .first = 0, .limit = 32, .page_stride = -(1 << 20), .row_stride = -4096});
      check_gather(*kernel, {.page_rows = 16,
                             .first = 0,
                             .limit = 31,
                             .page_stride = 1 << 20,
                             .row_stride = (int64_t(1) << 32) - 64});
    }
    check_gather(wide, {.page_rows = 4,
                        .first = 3,
                        .limit = 30,
                        .page_stride = 4096,
                        .first_page = 0x123456789a,
                        .wide = true});
  }
}

TEST_CASE("pages are found without a division", "[copies]") {
  for (unsigned columns : {64, 128}) {
    KernelShape shape{.columns = columns, .gather = true};
    CHECK(CopyKernel(shape).disassembly().find("v_rcp") != std::string::npos);
    shape.magic = true;
    const CopyKernel kernel(shape);
    CHECK(kernel.disassembly().find("v_rcp") == std::string::npos);
    const int32_t last = std::numeric_limits<int32_t>::max();
    for (int32_t page_rows : {1, 2, 3, 7, 13, 64, 1000})
      for (int32_t first : {0, 2, 5, 36})
        check_gather(kernel, {.page_rows = page_rows, .first = first, .limit = first + 30});
    // Row numbers and pages as large as they get.
    const int32_t far = last / 16 * 16 - 16;
    check_gather(kernel, {.page_rows = 16, .first = far, .limit = last, .page_stride = 4096});
    check_gather(kernel, {.page_rows = 1 << 24, .first = far, .limit = last, .page_stride = 4096});
  }
}

TEST_CASE("pipelined gathers overlap, and their waits are exact", "[copies]") {
  for (unsigned columns : {64, 128})
    for (unsigned stages : {1, 2, 3, 4}) {
      KernelShape shape{.columns = columns, .stages = stages, .gather = true};
      const CopyKernel kernel(shape);
      // A wave has 8 or 4 instructions per tile, and one for the entries of the next; with n stages it waits
      // with the copies of n - 2 tiles in flight, and the look-ups that follow them and the tile. The stores
      // of a tile are between mark and wait, and make no wait weaker: they are not counted.
      const unsigned loads = 32 * columns * 2 / (4 * 256);
      if (stages >= 2)
        CHECK(kernel.disassembly().find("s_waitcnt vmcnt(" + std::to_string((loads + 1) * (stages - 2) + 1) +
                                        ")") != std::string::npos);
      for (int32_t tiles : {1, 2, 5})
        for (const char *completion : {"late", "early", "random"}) {
          INFO(stages << " stages, completion " << completion);
          sluice_emulator_configure("completion", completion);
          check_gather(kernel, {.page_rows = 3, .first = 0, .limit = tiles * 32 - 5, .tiles = tiles});
        }
      sluice_emulator_configure("completion", "late");
    }
}

//===- copies_test.cpp - copies into LDS on the emulator: gathers, tails, distances
//------------------------===//
//
// A source's rows are scattered over 160 GiB of address space of which only the bytes a copy needs exist for
// the device: each valid row and the needed entries of the page table are registered by themselves, byte for
// byte, and surrounded by NaN. An access to anything else is an error of the emulator; a wrong one inside
// gives wrong values, because every row has values of its own.
//
//===----------------------------------------------------------------------------------------------------===//
#include "copies/copy_kernel.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <iostream>
#include <set>
#include <sys/mman.h>

using namespace sluice::test;

namespace {

constexpr uint64_t page_bytes = 4096;
constexpr uint64_t space_bytes = uint64_t(160) << 30;

class AddressSpace {
public:
  AddressSpace() {
    start = mmap(nullptr, space_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) throw std::runtime_error("no address space");
  }
  ~AddressSpace() {
    for (void *block : registered)
      hip<int(void *)>("hipHostUnregister")(block);
    munmap(start, space_bytes);
  }
  AddressSpace(const AddressSpace &) = delete;
  AddressSpace &operator=(const AddressSpace &) = delete;

  uint64_t begin() const { return reinterpret_cast<uint64_t>(start); }
  uint64_t end() const { return begin() + space_bytes; }

  /// Makes these bytes, and no others, visible to the device.
  void put(uint64_t address, const void *bytes, size_t size) {
    if (address < begin() || address + size > end()) throw std::runtime_error("outside the address space");
    for (uint64_t page = address / page_bytes; page <= (address + size - 1) / page_bytes; ++page)
      if (poisoned.insert(page).second) {
        void *place = reinterpret_cast<void *>(page * page_bytes);
        if (mprotect(place, page_bytes, PROT_READ | PROT_WRITE) != 0)
          throw std::runtime_error("mprotect failed");
        std::memset(place, 0xff, page_bytes); // NaN
      }
    void *place = reinterpret_cast<void *>(address);
    std::memcpy(place, bytes, size);
    require_hip(hip<int(void *, size_t, unsigned)>("hipHostRegister")(place, size, 0), "hipHostRegister");
    registered.push_back(place);
  }

private:
  void *start;
  std::set<uint64_t> poisoned;
  std::vector<void *> registered;
};

uint16_t value(int64_t row, unsigned column) {
  return uint16_t((uint64_t(row) * 0x9e3779b97f4a7c15u + column * 0x2545f491u) >> 17) | 1;
}

void put_row(AddressSpace &space, uint64_t address, int64_t row, unsigned columns) {
  std::vector<uint16_t> values(columns);
  for (unsigned column = 0; column < columns; ++column)
    values[column] = value(row, column);
  space.put(address, values.data(), columns * 2);
}

/// Runs the kernel; every row below the limit must arrive as it is, every other one as zeros.
void check_copy(const CopyKernel &kernel, const CopyArguments &arguments) {
  const CopyKernel::Result result = kernel.run(arguments);
  CHECK(result.error == 0);
  CHECK(result.reports == "[]");
  unsigned wrong = 0;
  const unsigned columns = kernel.shape.columns;
  for (size_t n = 0; n < result.tiles.size(); ++n) {
    const int64_t row = arguments.first + int64_t(n / columns);
    wrong += result.tiles[n] != (row < arguments.limit ? value(row, unsigned(n % columns)) : 0);
  }
  CHECK(wrong == 0);
}

struct GatherCase {
  int32_t page_rows, first, limit;
  int64_t page_stride = (int64_t(1) << 28) + 64; // elements: 512 MiB and a bit
  int64_t row_stride = 0;                        // 0: rows with a gap of 24 elements
  uint64_t first_page = 0;                       // numbers of pages begin here
  int32_t tiles = 1;
};

void check_gather(const CopyKernel &kernel, const GatherCase &c) {
  INFO(kernel.shape.columns << " columns, divisor " << kernel.shape.divisor << ", " << kernel.shape.index
                            << ": pages of " << c.page_rows << ", rows " << c.first << " to " << c.limit
                            << ", page stride " << c.page_stride << ", row stride " << c.row_stride
                            << ", pages from " << c.first_page);
  AddressSpace space;
  const int64_t row_stride = c.row_stride ? c.row_stride : kernel.shape.columns + 24;
  CopyArguments arguments;
  // Addresses modulo 2^64, as the device computes them: page `first_page` begins at `origin`.
  uint64_t origin = space.begin() + (1 << 20);
  if (c.page_stride < 0 || row_stride < 0) origin = space.end() - (1 << 20);
  arguments.base = origin - c.first_page * uint64_t(c.page_stride) * 2;
  arguments.stride = row_stride;
  arguments.page_stride = c.page_stride;
  arguments.first = c.first;
  arguments.limit = c.limit;
  arguments.page_rows = c.page_rows;
  arguments.tiles = c.tiles;
  // The table lies in a page of its own between the rows.
  const uint64_t table = space.begin() + space_bytes / 2 + 300 * page_bytes;
  arguments.table = table;
  const int64_t end = std::min<int64_t>(c.limit, c.first + int64_t(kernel.shape.rows) * c.tiles);
  if (end > c.first)
    for (int64_t page = c.first / c.page_rows; page <= (end - 1) / c.page_rows; ++page) {
      const uint64_t place = uint64_t(page * 37 + 11) % 251; // a permutation
      const uint64_t entry = c.first_page + place;
      const unsigned entry_bytes = kernel.shape.index == "i64" ? 8 : 4;
      space.put(table + uint64_t(page) * entry_bytes, &entry, entry_bytes);
      for (int64_t row = std::max<int64_t>(page * c.page_rows, c.first);
           row < std::min<int64_t>((page + 1) * c.page_rows, end); ++row)
        put_row(space,
                origin +
                    (place * uint64_t(c.page_stride) + uint64_t(row % c.page_rows) * uint64_t(row_stride)) *
                        2,
                row, kernel.shape.columns);
    }
  check_copy(kernel, arguments);
}

struct StrideCase {
  int64_t stride;
  int32_t first, limit;
};

void check_contiguous(const CopyKernel &kernel, const StrideCase &c) {
  INFO(kernel.shape.columns << " columns: stride " << c.stride << ", rows " << c.first << " to " << c.limit);
  AddressSpace space;
  CopyArguments arguments;
  arguments.base = c.stride < 0 ? space.end() - (1 << 20) : space.begin() + (1 << 20);
  arguments.stride = c.stride;
  arguments.first = c.first;
  arguments.limit = c.limit;
  for (int64_t row = c.first; row < std::min<int64_t>(c.limit, c.first + int64_t(kernel.shape.rows)); ++row)
    put_row(space, arguments.base + uint64_t(row * c.stride) * 2, row, kernel.shape.columns);
  check_copy(kernel, arguments);
}

} // namespace

TEST_CASE("gathers through page tables", "[copies]") {
  for (unsigned columns : {64, 128})
    for (const char *index : {"i32", "i64"}) {
      const CopyKernel kernel({.columns = columns, .index = index});
      for (int32_t page_rows : {1, 3, 16, 64})
        for (int32_t limit : {-5, 0, 1, 7, 32, 33, 37, 68, 1000})
          for (int32_t first : {0, 5, 36}) {
            if (limit > 7 && limit < first) continue;
            check_gather(kernel, {.page_rows = page_rows, .first = first, .limit = limit});
          }
    }
}

TEST_CASE("gathers that stay within a page per instruction", "[copies]") {
  const CopyKernel kernel({.columns = 64, .index = "i32", .divisor = 16});
  CHECK(kernel.disassembly().find("buffer_load_dword") != std::string::npos);
  CHECK(kernel.disassembly().find("global_load_lds") == std::string::npos);
  for (int32_t page_rows : {16, 48, 64})
    for (int32_t limit : {-1, 0, 1, 16, 17, 31, 32, 48, 63, 100})
      for (int32_t first : {0, 32})
        check_gather(kernel, {.page_rows = page_rows, .first = first, .limit = limit});
}

TEST_CASE("an instruction reads one page or several, as the divisor says", "[copies]") {
  const std::string one = CopyKernel({.columns = 128, .index = "i32"}).disassembly();
  CHECK(one.find("global_load_lds") == std::string::npos);
  CHECK(one.find("s_load_dword ") != std::string::npos);
  const std::string several = CopyKernel({.columns = 64, .index = "i32"}).disassembly();
  CHECK(several.find("global_load_lds_dword") != std::string::npos);
  CHECK(several.find("buffer_load") == std::string::npos);
  // All look-ups of a tile's eight rows are under way before the first is waited for.
  for (const std::string &code : {one, several}) {
    size_t place = code.find("s_load_dword "), lookups = 0;
    for (const size_t end = code.find("s_waitcnt", place); place < end;
         place = code.find("s_load_dword ", place + 1))
      ++lookups;
    CHECK(lookups == 8);
  }
  // The table never comes by vector memory: its wait would be one for all copies in flight.
  for (const std::string &code : {one, several})
    for (const char *load : {"global_load_dword ", "global_load_dwordx", "flat_load"})
      CHECK(code.find(load) == std::string::npos);
}

TEST_CASE("gathers over distances that 32 bits cannot hold", "[copies]") {
  for (unsigned columns : {64, 128}) {
    const CopyKernel narrow({.columns = columns, .index = "i32"}), wide({.columns = columns, .index = "i64"});
    for (const CopyKernel *kernel : {&narrow, &wide}) {
      // Numbers of pages beyond 2^31.
      check_gather(*kernel,
                   {.page_rows = 4, .first = 3, .limit = 30, .page_stride = 4096, .first_page = 0xffffff00});
      check_gather(*kernel,
                   {.page_rows = 4, .first = 3, .limit = 30, .page_stride = 4096, .first_page = 0x7fffff80});
      // Pages and rows that go down, and rows of one page that lie further apart than 4 GiB.
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
    check_gather(wide,
                 {.page_rows = 4, .first = 3, .limit = 30, .page_stride = 4096, .first_page = 0x123456789a});
  }
}

TEST_CASE("contiguous rows over distances that 32 bits cannot hold", "[copies]") {
  const CopyKernel one_row({.columns = 128}), two_rows({.columns = 64});
  for (int32_t limit : {0, 61, 80, 91, 1000}) {
    check_contiguous(one_row, {.stride = 136, .first = 60, .limit = limit});
    check_contiguous(one_row,
                     {.stride = (int64_t(1) << 29) + 8, .first = 60, .limit = limit}); // 1 GiB and a bit
    check_contiguous(one_row, {.stride = -(int64_t(1) << 29) - 8, .first = 60, .limit = limit});
    check_contiguous(two_rows, {.stride = 64, .first = 60, .limit = limit});
    check_contiguous(two_rows, {.stride = (int64_t(1) << 29) - 8, .first = 60, .limit = limit});
  }
  // Two rows per instruction as far apart as the 32 bits of a descriptor's extent reach.
  check_contiguous(two_rows, {.stride = (int64_t(1) << 31) - 128, .first = 2, .limit = 33});
  // One row per instruction: 5 GiB from row to row.
  check_contiguous(one_row, {.stride = int64_t(5) << 29, .first = 0, .limit = 31});
}

TEST_CASE("rows longer than a wave reaches", "[copies]") {
  const KernelShape shape{.rows = 4, .columns = 512, .waves = 8};
  const CopyKernel contiguous(shape);
  check_contiguous(contiguous, {.stride = 520, .first = 3, .limit = 6});
  KernelShape paged = shape;
  paged.index = "i32";
  check_gather(CopyKernel(paged), {.page_rows = 3, .first = 2, .limit = 5});
}

TEST_CASE("pipelined gathers overlap, and their waits are exact", "[copies]") {
  for (unsigned columns : {64, 128})
    for (unsigned stages : {1, 2, 3, 4}) {
      KernelShape shape{.columns = columns, .index = "i32"};
      shape.stages = stages;
      const CopyKernel kernel(shape);
      // A wave has 8 or 4 instructions per tile; with n stages it waits with those of n - 2 tiles in flight.
      // The stores of a tile lie between mark and wait, and make no wait weaker: they are not counted.
      const unsigned loads = 32 * columns * 2 / (4 * 256);
      if (stages >= 3)
        CHECK(kernel.disassembly().find("s_waitcnt vmcnt(" + std::to_string(loads * (stages - 2)) + ")") !=
              std::string::npos);
      for (int32_t tiles : {1, 2, 5})
        for (const char *completion : {"late", "early", "random"}) {
          INFO(stages << " stages, completion " << completion);
          sluice_emulator_configure("completion", completion);
          check_gather(kernel, {.page_rows = 3, .first = 0, .limit = tiles * 32 - 5, .tiles = tiles});
        }
      sluice_emulator_configure("completion", "late");
    }
}

TEST_CASE("reads of a swizzled tile meet no bank conflict", "[copies]") {
  std::cout << "bank conflicts of reading a tile of 64 rows, as the emulator counts them\n"
               "columns  reads      swizzle      conflicts\n";
  struct Row {
    unsigned columns;
    Reads reads;
    const char *name, *swizzle;
    bool free;
  };
  for (const Row &row :
       {Row{64, Reads::fragments, "K", ", xor<8, 8>", true},
        Row{128, Reads::fragments, "K", ", xor<8, 8>", true}, Row{64, Reads::columns, "V", "", true},
        Row{128, Reads::columns, "V", "", true}, Row{64, Reads::fragments, "K", "", false},
        Row{128, Reads::fragments, "K", "", false}, Row{128, Reads::fragments, "K", ", xor<8, 4>", false}}) {
    const CopyKernel kernel({.rows = 64, .columns = row.columns, .swizzle = row.swizzle, .reads = row.reads});
    AddressSpace space;
    CopyArguments arguments;
    arguments.base = space.begin();
    arguments.stride = row.columns;
    arguments.limit = 64;
    for (int64_t n = 0; n < 64; ++n)
      put_row(space, space.begin() + uint64_t(n) * row.columns * 2, n, row.columns);
    const CopyKernel::Result result = kernel.run(arguments);
    std::printf("%7u  %-9s  %-11s  %llu\n", row.columns, row.name, *row.swizzle ? row.swizzle + 2 : "none",
                (unsigned long long)result.bank_conflicts);
    std::fflush(stdout);
    CHECK(result.reports == "[]");
    CHECK((result.bank_conflicts == 0) == row.free);
    check_copy(kernel, arguments);
  }
}

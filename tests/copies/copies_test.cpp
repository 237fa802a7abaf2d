//===- copies_test.cpp - copies into LDS on the emulator: gathers, tails, distances ---------------------===//
//
// A source's rows are scattered over 160 GiB of address space, of which only the bytes that a copy needs
// exist for the device: each valid row and each needed entry of the page table is registered separately, byte
// for byte, and surrounded by NaN. Any other access is an error of the emulator; a wrong access inside gives
// wrong values, because every row has distinct values.
//
//===----------------------------------------------------------------------------------------------------===//
#include "copies/copy_kernel.h"

#include "dialect/Swizzle.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <iostream>
#include <limits>
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

/// The bits of an element; not 0, nor is its last byte.
uint16_t value(int64_t row, unsigned column) {
  return uint16_t((uint64_t(row) * 0x9e3779b97f4a7c15u + column * 0x2545f491u) >> 17) | 1;
}

/// The bits in memory: for a source that is converted, any byte.
uint16_t source_value(const KernelShape &shape, int64_t row, unsigned column) {
  const uint16_t bits = value(row, column);
  return shape.converts() ? bits >> 8 : shape.element_bytes() == 1 ? bits & 0xff : bits;
}

/// The bits of an E4M3FNUZ number as F16, which has 5 bits of exponent, or as BF16, which has 8. Both hold
/// all of them exactly: sign, exponent with a bias of 8, three bits of mantissa; 0x80 is the only NaN.
uint16_t widened(uint8_t byte, const std::string &element) {
  const bool is_f16 = element == "f16";
  const unsigned mantissa_bits = is_f16 ? 10 : 7, bias = is_f16 ? 15 : 127;
  if (byte == 0x80) return is_f16 ? 0x7e00 : 0x7fc0;
  unsigned exponent = byte >> 3 & 15, mantissa = byte & 7;
  if (exponent == 0 && mantissa == 0) return 0;
  int scale = exponent == 0 ? 1 - 8 : int(exponent) - 8; // of the bit before the mantissa
  if (exponent != 0) mantissa |= 8;
  while (mantissa < 8) {
    mantissa *= 2;
    --scale;
  }
  return uint16_t((byte & 0x80) << 8 | unsigned(scale + int(bias)) << mantissa_bits |
                  (mantissa & 7) << (mantissa_bits - 3));
}

/// The bits that arrive in the tile.
uint16_t tile_value(const KernelShape &shape, int64_t row, unsigned column) {
  const uint16_t bits = source_value(shape, row, column);
  return shape.converts() ? widened(uint8_t(bits), shape.element) : bits;
}

/// The row's columns from `first` up to `end`.
void put_row(AddressSpace &space, uint64_t address, int64_t row, unsigned first, unsigned end,
             const KernelShape &shape) {
  if (first >= end) return;
  const unsigned element_bytes = shape.source_bytes();
  std::vector<uint8_t> values(size_t{end - first} * element_bytes);
  for (unsigned column = first; column < end; ++column) {
    const uint16_t bits = source_value(shape, row, column);
    std::memcpy(&values[size_t{column - first} * element_bytes], &bits, element_bytes);
  }
  space.put(address, values.data(), values.size());
}

/// The columns that rows of the source have.
unsigned source_columns(const KernelShape &shape, const CopyArguments &arguments) {
  return shape.column_limit ? unsigned(std::clamp(arguments.column_limit, 0, int32_t(shape.columns)))
                            : shape.columns;
}

/// Runs the kernel; elements below the limits must arrive unchanged, or converted, everything else as zeros.
void check_copy(const CopyKernel &kernel, const CopyArguments &arguments) {
  const CopyKernel::Result result = kernel.run(arguments);
  CHECK(result.error == 0);
  CHECK(result.reports == "[]");
  unsigned wrong = 0;
  const unsigned columns = kernel.shape.columns, valid_columns = source_columns(kernel.shape, arguments);
  for (size_t n = 0; n < result.tiles.size(); ++n) {
    const int64_t row = arguments.first + int64_t(n / columns);
    const unsigned column = unsigned(n % columns);
    const bool is_hole = kernel.shape.hole && row >= arguments.hole_begin && row < arguments.hole_end;
    const bool valid = row < arguments.limit && !is_hole && column < valid_columns;
    wrong += result.tiles[n] != (valid ? tile_value(kernel.shape, row, column) : 0);
  }
  CHECK(wrong == 0);
}

struct GatherCase {
  int32_t page_rows, first, limit;
  int64_t page_stride = (int64_t(1) << 28) + 64; // elements: just over 512 MiB
  int64_t row_stride = 0;                        // 0: rows with a gap of 24 elements
  uint64_t first_page = 0;                       // numbers of pages begin here
  bool wide = false;                             // entries have 64 bits
  int32_t tiles = 1;
  int32_t column_limit = 0;
  int32_t hole_begin = 0, hole_end = 0;
  int32_t pack_log2 = 0;
  int64_t pack_stride = 0;
};

std::string text_of(const KernelShape &shape) {
  return std::to_string(shape.rows) + "x" + std::to_string(shape.columns) + " of " + shape.element +
         (shape.from.empty() ? "" : " from " + shape.from) + " by " + std::to_string(shape.waves) +
         " waves, " + (shape.close ? "close" : "") + (shape.column_limit ? "limited" : "") +
         (shape.magic ? ", magic" : "") + (shape.wide ? ", wide" : "") + (shape.hole ? ", hole" : "") +
         (shape.packs ? ", packs" : "");
}

void check_gather(const CopyKernel &kernel, const GatherCase &c) {
  INFO(text_of(kernel.shape) << ": pages of " << c.page_rows << ", rows " << c.first << " to " << c.limit
                             << " without " << c.hole_begin << " to " << c.hole_end << ", page stride "
                             << c.page_stride << ", row stride " << c.row_stride << ", "
                             << (c.wide ? "wide" : "narrow") << " pages from " << c.first_page
                             << ", columns to " << c.column_limit << ", packs of 2^" << c.pack_log2
                             << ", pack stride " << c.pack_stride);
  AddressSpace space;
  const uint64_t element_bytes = kernel.shape.source_bytes();
  const int64_t row_stride = c.row_stride ? c.row_stride : kernel.shape.columns + 24;
  CopyArguments arguments;
  arguments.column_limit = c.column_limit;
  // Addresses modulo 2^64, as the device computes them: page `first_page` begins at `origin`.
  uint64_t origin = space.begin() + (1 << 20);
  if (c.page_stride < 0 || row_stride < 0) origin = space.end() - (1 << 20);
  arguments.base = origin - c.first_page * uint64_t(c.page_stride) * element_bytes;
  arguments.stride = row_stride;
  arguments.page_stride = c.page_stride;
  arguments.first = c.first;
  arguments.limit = c.limit;
  arguments.page_rows = c.page_rows;
  arguments.tiles = c.tiles;
  arguments.are_wide = c.wide;
  arguments.hole_begin = c.hole_begin;
  arguments.hole_end = c.hole_end;
  arguments.pack_log2 = c.pack_log2;
  arguments.pack_stride = c.pack_stride;
  // The table is in a page of its own between the rows.
  const uint64_t table = space.begin() + space_bytes / 2 + 300 * page_bytes;
  arguments.table = table;
  const int64_t rows = kernel.shape.rows, end = std::min<int64_t>(c.limit, c.first + rows * c.tiles);
  // A lane for each row of a look-up, and look-ups as many tiles ahead as there are stages.
  const int64_t end_of_lookups =
      std::min<int64_t>(c.limit, c.first + rows * (c.tiles + kernel.shape.stages) + 64);
  for (int64_t page = c.first / c.page_rows; page * c.page_rows < end_of_lookups; ++page) {
    const uint64_t place = uint64_t(page * 37 + 11) % 251; // a permutation
    bool is_looked_up = false;
    for (int64_t row = std::max<int64_t>(page * c.page_rows, c.first);
         row < std::min<int64_t>((page + 1) * c.page_rows, end_of_lookups); ++row) {
      if (kernel.shape.hole && row >= c.hole_begin && row < c.hole_end) continue;
      is_looked_up = true;
      if (row >= end) break;
      const uint64_t element =
          place * uint64_t(c.page_stride) + uint64_t(row % c.page_rows) * uint64_t(row_stride);
      const unsigned columns = source_columns(kernel.shape, arguments);
      const unsigned of_pack = kernel.shape.packs ? 1u << c.pack_log2 : std::max(columns, 1u);
      for (unsigned column = 0; column < columns; column += of_pack)
        put_row(space, origin + (element + column / of_pack * uint64_t(c.pack_stride)) * element_bytes, row,
                column, std::min(column + of_pack, columns), kernel.shape);
    }
    const uint64_t entry = c.first_page + place;
    const unsigned entry_bytes = c.wide ? 8 : 4;
    if (is_looked_up) space.put(table + uint64_t(page) * entry_bytes, &entry, entry_bytes);
  }
  check_copy(kernel, arguments);
}

struct StrideCase {
  int64_t stride;
  int32_t first, limit;
  int32_t column_limit = 0;
};

void check_contiguous(const CopyKernel &kernel, const StrideCase &c) {
  INFO(text_of(kernel.shape) << ": stride " << c.stride << ", rows " << c.first << " to " << c.limit
                             << ", columns to " << c.column_limit);
  AddressSpace space;
  CopyArguments arguments;
  arguments.column_limit = c.column_limit;
  arguments.base = c.stride < 0 ? space.end() - (1 << 20) : space.begin() + (1 << 20);
  arguments.stride = c.stride;
  arguments.first = c.first;
  arguments.limit = c.limit;
  for (int64_t row = c.first; row < std::min<int64_t>(c.limit, c.first + int64_t(kernel.shape.rows)); ++row)
    put_row(space, arguments.base + uint64_t(row * c.stride) * kernel.shape.source_bytes(), row, 0,
            source_columns(kernel.shape, arguments), kernel.shape);
  check_copy(kernel, arguments);
}

} // namespace

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

TEST_CASE("rows in registers land behind the reads of those before", "[copies]") {
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

//===- scattered_source.cpp - runs of copies from scattered rows ----------------------------------------===//
#include "copies/scattered_source.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <sys/mman.h>

namespace sluice::test {

namespace {

constexpr uint64_t page_bytes = 4096;

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

/// The columns that rows of the source have.
unsigned source_columns(const KernelShape &shape, const CopyArguments &arguments) {
  return shape.column_limit ? unsigned(std::clamp(arguments.column_limit, 0, int32_t(shape.columns)))
                            : shape.columns;
}

std::string text_of(const KernelShape &shape) {
  return std::to_string(shape.rows) + "x" + std::to_string(shape.columns) + " of " + shape.element +
         (shape.from.empty() ? "" : " from " + shape.from) + " by " + std::to_string(shape.waves) +
         " waves, " + (shape.close ? "close" : "") + (shape.column_limit ? "limited" : "") +
         (shape.magic ? ", magic" : "") + (shape.wide ? ", wide" : "") + (shape.hole ? ", hole" : "") +
         (shape.packs ? ", packs" : "");
}

} // namespace

AddressSpace::AddressSpace() {
  start = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) throw std::runtime_error("no address space");
}

AddressSpace::~AddressSpace() {
  for (void *block : registered)
    hip<int(void *)>("hipHostUnregister")(block);
  munmap(start, bytes);
}

void AddressSpace::put(uint64_t address, const void *data, size_t size) {
  if (address < begin() || address + size > end()) throw std::runtime_error("outside the address space");
  for (uint64_t page = address / page_bytes; page <= (address + size - 1) / page_bytes; ++page)
    if (poisoned.insert(page).second) {
      void *place = reinterpret_cast<void *>(page * page_bytes);
      if (mprotect(place, page_bytes, PROT_READ | PROT_WRITE) != 0)
        throw std::runtime_error("mprotect failed");
      std::memset(place, 0xff, page_bytes); // NaN
    }
  void *place = reinterpret_cast<void *>(address);
  std::memcpy(place, data, size);
  require_hip(hip<int(void *, size_t, unsigned)>("hipHostRegister")(place, size, 0), "hipHostRegister");
  registered.push_back(place);
}

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
  const uint64_t table = space.begin() + AddressSpace::bytes / 2 + 300 * page_bytes;
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
      const unsigned pack_columns = kernel.shape.packs ? 1u << c.pack_log2 : std::max(columns, 1u);
      for (unsigned column = 0; column < columns; column += pack_columns)
        put_row(space, origin + (element + column / pack_columns * uint64_t(c.pack_stride)) * element_bytes,
                row, column, std::min(column + pack_columns, columns), kernel.shape);
    }
    const uint64_t entry = c.first_page + place;
    const unsigned entry_bytes = c.wide ? 8 : 4;
    if (is_looked_up) space.put(table + uint64_t(page) * entry_bytes, &entry, entry_bytes);
  }
  check_copy(kernel, arguments);
}

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

} // namespace sluice::test

//===- scattered_source.h - sources of copies, of which only the needed bytes exist ---------------------===//
//
// A source's rows are scattered over 160 GiB of address space, of which only the bytes that a copy needs
// exist for the device: each valid row and each needed entry of the page table is registered separately, byte
// for byte, and surrounded by NaN. Any other access is an error of the emulator; a wrong access inside gives
// wrong values, because every row has distinct values.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "copies/copy_kernel.h"

#include <cstdint>
#include <set>
#include <vector>

namespace sluice::test {

class AddressSpace {
public:
  static constexpr uint64_t bytes = uint64_t(160) << 30;

  AddressSpace();
  ~AddressSpace();
  AddressSpace(const AddressSpace &) = delete;
  AddressSpace &operator=(const AddressSpace &) = delete;

  uint64_t begin() const { return reinterpret_cast<uint64_t>(start); }
  uint64_t end() const { return begin() + bytes; }

  /// Makes these bytes, and no others, visible to the device.
  void put(uint64_t address, const void *data, size_t size);

private:
  void *start;
  std::set<uint64_t> poisoned;
  std::vector<void *> registered;
};

/// The row's columns from `first` up to `end`.
void put_row(AddressSpace &space, uint64_t address, int64_t row, unsigned first, unsigned end,
             const KernelShape &shape);

/// Runs the kernel; elements below the limits must arrive unchanged, or converted, everything else as zeros.
void check_copy(const CopyKernel &kernel, const CopyArguments &arguments);

/// Rows through a page table.
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

void check_gather(const CopyKernel &kernel, const GatherCase &c);

/// Rows one stride apart.
struct StrideCase {
  int64_t stride;
  int32_t first, limit;
  int32_t column_limit = 0;
};

void check_contiguous(const CopyKernel &kernel, const StrideCase &c);

} // namespace sluice::test

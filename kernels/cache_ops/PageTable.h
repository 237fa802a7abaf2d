//===- PageTable.h - sequences, their tables and their pages ----------------------------------*- C++ -*-===//
//
// Shared by the operations that find a row's page through its sequence.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "cache_ops/KernelArguments.h"

namespace sluice {

class PageTable {
  using Value = mlir::Value;

public:
  using Places = package::PlacesOf<Argument>;

  PageTable(CacheOpEmitter &emitter, const Places &places) : b(emitter), places(places) {}

  /// A row's page, and its number there.
  CacheOpEmitter::Division intoPages(Value row) {
    return b.divide(row, b.zeroExtend(places.page_size()), places.page_magic(), places.page_shift());
  }

  /// A page that the cache has, if its pages are counted.
  Value isInCache(Value page) { return b.lessUnsigned(page, places.page_count()); }

  /// A start or a length.
  Value number(Value array, Value index) { return b.signExtend(b.load(b.getI32Type(), array, index, 4)); }

  struct Sequence {
    Value isFound, number;
  };
  /// The last sequence that starts at or before the row: empty sequences before it start there too.
  Sequence sequenceOf(Value longRow) {
    Value batch = places.batch();
    Value count = b.countStarts(places.starts(), batch, places.search_steps(), b.truncateInteger(longRow));
    Value sequence = b.zeroExtend(b.sub(count, b.i32(1)));
    return {b.both(b.less(b.i32(0), count), b.isFalse(b.less(batch, count))), sequence};
  }

  struct Entry {
    Value isThere, index;
  };
  /// The entries of a sequence.
  struct Entries {
    Value first, count;
    static auto members(auto &of) { return std::tie(of.first, of.count); }
  };
  /// The entry of a page of a sequence: one of the sequence's own, or none.
  Entry entryOf(Value sequence, Value page) {
    Value isCsr = b.equal(places.page_source(), b.i32(int32_t(package::PageSource::csr_table)));
    Entries entries = b.branch(
        isCsr,
        [&] {
          Value first = number(places.page_starts(), sequence);
          Value end = number(places.page_starts(), b.add(sequence, b.i64(1)));
          return Entries{first, b.sub(end, first)};
        },
        [&] { return Entries{b.mul(sequence, places.page_table_stride()), places.page_table_entries()}; });
    return {b.both(b.isFalse(b.less(entries.first, b.i64(0))), b.less(page, entries.count)),
            b.add(entries.first, page)};
  }

  /// The number of the page in that entry.
  Value pageAt(Value index) {
    Value table = places.page_table();
    return b.branch(
        b.equal(places.page_index_64(), b.i32(0)), [&] { return number(table, index); },
        [&] { return b.load(b.getI64Type(), table, index, 8); });
  }

private:
  CacheOpEmitter &b;
  Places places;
};

} // namespace sluice

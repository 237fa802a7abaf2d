//===- AppendPlaces.h - where the new rows of a cache go --------------------------------------*- C++ -*-===//
//
// Every lane of a row finds its place separately: they all read the same words, at the cost of a single
// lane's reads. Offsets of rows and pages have 64 bits, for any distance; divisions are multiplications
// (support/divisor.h).
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "cache_ops/CacheOpEmitter.h"

namespace sluice {

/// A slot in the cache, and the key's number if a table gave it.
struct AppendPlace {
  mlir::Value valid; // the row goes to a page of the cache
  mlir::Value isKey; // the row has a slot that is not negative, or becomes a key of a sequence
  mlir::Value page, row, key;
};

/// For kernels whose arguments are those of sluice_append; `Emitter` knows their table.
template <typename Emitter> class AppendPlaces {
  using Value = mlir::Value;
  using Values = llvm::SmallVector<Value>;

public:
  explicit AppendPlaces(Emitter &b) : b(b) {}

  AppendPlace of(Value token) {
    Value source = b.argument("page_source");
    Values found = b.branch(
        b.equal(source, b.i32(int32_t(package::PageSource::slots))), [&] { return fromSlots(token); },
        [&] { return fromTable(token, source); });
    return {found[0], found[1], found[2], found[3], found[4]};
  }

private:
  CacheOpEmitter::Division intoPages(Value row) {
    return b.divide(row, b.zeroExtend(b.argument("page_size")), b.argument("page_magic"),
                    b.argument("page_shift"));
  }

  /// A page that the cache has, if its pages are counted.
  Value isInCache(Value page) { return b.lessUnsigned(page, b.argument("page_count")); }

  Values fromSlots(Value token) {
    Value slot = b.load(b.getI64Type(), b.argument("slots"), token, 8);
    CacheOpEmitter::Division place = intoPages(slot);
    Value isKey = b.isFalse(b.less(slot, b.i64(0)));
    return {b.both(isKey, isInCache(place.quotient)), isKey, place.quotient, place.rest, b.i64(0)};
  }

  /// The sequence is the last one that starts at or before the token: empty sequences before it start there
  /// too. Decreasing starts, and fewer keys than new rows, lead to no slot.
  Values fromTable(Value token, Value source) {
    Value starts = b.argument("starts"), batch = b.argument("batch");
    Value row = b.truncateInteger(token);
    // Counts how many of the batch + 1 starts are at or before the token: bit by bit, from the highest on.
    Values count = b.loop(
        b.i32(0), b.argument("search_steps"), b.i32(1), {b.i32(0)}, [&](Value step, mlir::ValueRange counts) {
          Value bit = b.shiftLeft(b.i32(1), b.sub(b.sub(b.argument("search_steps"), step), b.i32(1)));
          Value tried = b.add(counts[0], bit);
          Value index = b.minS(b.sub(tried, b.i32(1)), batch);
          Value start = b.load(b.getI32Type(), starts, b.zeroExtend(index), 4);
          Value within =
              b.both(b.isFalse(b.less(b.add(batch, b.i32(1)), tried)), b.isFalse(b.less(row, start)));
          return Values{b.select(within, tried, counts[0])};
        });
    Value sequence = b.zeroExtend(b.sub(count[0], b.i32(1)));
    Value isFound = b.both(b.less(b.i32(0), count[0]), b.isFalse(b.less(batch, count[0])));
    return orNone(isFound, [&] {
      Value after = b.add(sequence, b.i64(1));
      Value start = number(starts, sequence), end = number(starts, after);
      Value keys = number(b.argument("kv_lengths"), sequence);
      Value isKey = b.both(b.less(token, end), b.isFalse(b.less(keys, b.sub(end, start))));
      Value key = b.add(b.sub(keys, end), token);
      CacheOpEmitter::Division place = intoPages(key);
      Values table = b.branch(
          b.equal(source, b.i32(int32_t(package::PageSource::csr_table))),
          [&] {
            Value first = number(b.argument("page_starts"), sequence);
            return Values{first, b.sub(number(b.argument("page_starts"), after), first)};
          },
          [&] {
            return Values{b.mul(sequence, b.argument("page_table_stride")), b.argument("page_table_entries")};
          });
      Value hasEntry = b.both(b.isFalse(b.less(table[0], b.i64(0))), b.less(place.quotient, table[1]));
      Values page = b.branch(
          b.both(isKey, hasEntry),
          [&] {
            Value page = entryOf(b.add(table[0], place.quotient));
            return Values{isInCache(page), page};
          },
          [&] { return Values{b.boolean(false), b.i64(0)}; });
      return Values{page[0], isKey, page[1], place.rest, key};
    });
  }

  /// The result of `slot` if the condition holds, else no slot.
  Values orNone(Value condition, llvm::function_ref<Values()> slot) {
    return b.branch(condition, slot,
                    [&] { return Values{b.boolean(false), b.boolean(false), b.i64(0), b.i64(0), b.i64(0)}; });
  }

  /// A start or a length.
  Value number(Value array, Value index) { return b.signExtend(b.load(b.getI32Type(), array, index, 4)); }

  /// An entry of the page table, as a page's number.
  Value entryOf(Value index) {
    Value table = b.argument("page_table");
    return b.branch(
        b.equal(b.argument("page_index_64"), b.i32(0)), [&] { return Values{number(table, index)}; },
        [&] { return Values{b.load(b.getI64Type(), table, index, 8)}; })[0];
  }

  Emitter &b;
};

} // namespace sluice

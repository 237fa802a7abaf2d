//===- AppendPlaces.h - where the new rows of a cache go --------------------------------------*- C++ -*-===//
//
// Every lane of a row finds its place separately: they all read the same words, at the cost of a single
// lane's reads. Offsets of rows and pages have 64 bits, for any distance; divisions are multiplications
// (support/divisor.h).
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "cache_ops/PageTable.h"

namespace sluice {

/// A slot in the cache, and the key's number if a table gave it.
struct AppendPlace {
  mlir::Value valid; // the row goes to a page of the cache
  mlir::Value isKey; // the row has a slot that is not negative, or becomes a key of a sequence
  mlir::Value page, row, key;
  static auto members(auto &of) { return std::tie(of.valid, of.isKey, of.page, of.row, of.key); }
};

/// Finds places by the arguments that appends and append_steps share.
class AppendPlaces {
  using Value = mlir::Value;

public:
  AppendPlaces(CacheOpEmitter &emitter, const Argument<package::DeviceAddress> &slots,
               const PageTable::Places &places)
      : b(emitter), slots(slots), places(places), table(emitter, places) {}

  AppendPlace find(Value token) {
    Value hasSlots = b.equal(places.page_source(), b.i32(int32_t(package::PageSource::slots)));
    return b.branch(hasSlots, [&] { return fromSlots(token); }, [&] { return fromTable(token); });
  }

private:
  AppendPlace fromSlots(Value token) {
    Value slot = b.load(b.getI64Type(), slots(), token, 8);
    CacheOpEmitter::Division place = table.intoPages(slot);
    Value isKey = b.isFalse(b.less(slot, b.i64(0)));
    return {b.both(isKey, table.isInCache(place.quotient)), isKey, place.quotient, place.rest, b.i64(0)};
  }

  /// Decreasing starts, and fewer keys than new rows, lead to no slot.
  AppendPlace fromTable(Value token) {
    auto [isFound, sequence] = table.sequenceOf(token);
    return orNone(isFound, [&] {
      Value starts = places.starts(), after = b.add(sequence, b.i64(1));
      Value start = table.number(starts, sequence), end = table.number(starts, after);
      Value keys = table.number(places.kv_lengths(), sequence);
      Value isKey = b.both(b.less(token, end), b.isFalse(b.less(keys, b.sub(end, start))));
      Value key = b.add(b.sub(keys, end), token);
      CacheOpEmitter::Division place = table.intoPages(key);
      auto [isThere, index] = table.entryOf(sequence, place.quotient);
      auto [valid, page] = b.branch(
          b.both(isKey, isThere),
          [&] {
            Value page = table.pageAt(index);
            return std::tuple(table.isInCache(page), page);
          },
          [&] { return std::tuple(b.boolean(false), b.i64(0)); });
      return AppendPlace{valid, isKey, page, place.rest, key};
    });
  }

  /// The result of `slot` if the condition holds, else no slot.
  AppendPlace orNone(Value condition, llvm::function_ref<AppendPlace()> slot) {
    return b.branch(condition, slot, [&] {
      return AppendPlace{b.boolean(false), b.boolean(false), b.i64(0), b.i64(0), b.i64(0)};
    });
  }

  CacheOpEmitter &b;
  Argument<package::DeviceAddress> slots;
  PageTable::Places places;
  PageTable table;
};

} // namespace sluice

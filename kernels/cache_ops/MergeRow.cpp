//===- MergeRow.cpp - a lane's row of the parts, and its place in the result ----------------------------===//
#include "cache_ops/MergeRow.h"

using namespace mlir;

namespace sluice {

namespace {

Value loadNumber(MergeEmitter &b, Value numbers, Value sequence, unsigned after) {
  Value index = b.add(b.zeroExtend(sequence), b.i64(after));
  return b.load(b.getI32Type(), numbers, index, 4);
}

/// In a cascade, whether the sequence of a token has to be searched ...
Value isSearched(const MergeRow &row) {
  MergeEmitter &b = row.b;
  return b.less(b.i32(0), b.opaqueScalar(row.arguments["searched_batch"]));
}

/// ... which is the last one that starts at or before it, or any if none does.
Value searchSequence(const MergeRow &row, Value token) {
  MergeEmitter &b = row.b;
  Value batch = row.arguments["searched_batch"];
  Value steps = b.sub(b.i32(32), b.leadingZeros(b.add(batch, b.i32(1))));
  Value count = b.countStarts(row.arguments["q_starts"], batch, steps, token);
  return b.clamp(b.sub(count, b.i32(1)), b.i32(0), b.sub(batch, b.i32(1)));
}

struct RowSequence {
  Value number, token; // the token's number in the sequence
  Value start;         // where the sequence's tokens begin in the result
  Value mostTokens;
  static auto members(auto &of) { return std::tie(of.number, of.token, of.start, of.mostTokens); }
};

RowSequence findSequence(const MergeRow &row, TokensAre tokens) {
  MergeEmitter &b = row.b;
  const MergeArguments &arguments = row.arguments;
  Value token = row.divide().token;
  MergeRow::SequenceAndToken place = row.divideToken(token);
  Value starts = arguments["q_starts"];
  return b.branch(
      b.isNull(starts),
      [&] { return RowSequence{place.sequence, place.token, b.i32(0), arguments["most_tokens"]}; },
      [&] {
        Value sequence = place.sequence, sequenceToken = place.token;
        if (tokens == TokensAre::InCascade)
          sequence = b.branch(
              isSearched(row), [&] { return searchSequence(row, token); }, [&] { return place.sequence; });
        Value end = arguments["q_rows"];
        Value start = b.clamp(loadNumber(b, starts, sequence, 0), b.i32(0), end);
        Value next = b.clamp(loadNumber(b, starts, sequence, 1), start, end);
        // As an unsigned number it is too large if the search found no sequence.
        if (tokens == TokensAre::InCascade)
          sequenceToken = b.select(isSearched(row), b.sub(token, start), place.token);
        return RowSequence{sequence, sequenceToken, start,
                           b.minS(b.sub(next, start), arguments["most_tokens"])};
      });
}

/// Whether the row's sequence has such a token and is merged, and where.
MergePlace findToken(const MergeRow &row, TokensAre tokens) {
  MergeEmitter &b = row.b;
  const MergeArguments &arguments = row.arguments;
  RowSequence sequence = findSequence(row, tokens);
  Value lengths = arguments["q_lengths"];
  Value count = b.branch(
      b.isNull(lengths), [&] { return sequence.mostTokens; },
      // Only lanes that load it wait for it, and not for the LSEs of all others.
      [&] {
        Value given = b.opaque(loadNumber(b, lengths, sequence.number, 0));
        return b.clamp(given, b.i32(0), sequence.mostTokens);
      });
  Value isLong = b.less(arguments["max_tokens"], count), isSkipped = isLong;
  if (tokens == TokensAre::InCascade) isSkipped = b.both(isLong, b.isNull(arguments["prefix_starts"]));
  Value has = b.both(b.lessUnsigned(sequence.token, count), b.isFalse(isSkipped));
  return {b.both(row.exists, has), sequence.number, b.add(sequence.start, sequence.token), isLong};
}

} // namespace

MergeRow::TokenAndHead MergeRow::divide() const {
  CacheOpEmitter::Division place =
      b.divide(number, arguments["heads"], arguments["heads_magic"], arguments["heads_shift"]);
  return {place.quotient, place.rest};
}

MergeRow::SequenceAndToken MergeRow::divideToken(Value token) const {
  CacheOpEmitter::Division place =
      b.divide(token, arguments["tokens"], arguments["tokens_magic"], arguments["tokens_shift"]);
  return {place.quotient, place.rest};
}

MergeRow findRow(MergeEmitter &b, const MergeArguments &arguments, const MergeLanes &lanes, Type partial,
                 Type result) {
  Value above = b.mul(ROCDL::BlockIdYOp::create(b, b.getI32Type()), arguments["row_step"]);
  Value before = b.shiftLeft(ROCDL::BlockIdXOp::create(b, b.getI32Type()), lanes.rowsLog2);
  Value number = b.add(b.add(above, before), lanes.rowOfGroup);
  Value exists = b.lessUnsigned(number, arguments["rows"]);
  return {b, arguments, lanes, partial, result, exists, b.select(exists, number, b.i32(0))};
}

MergePlace findPlace(const MergeRow &row, TokensAre tokens) {
  MergeEmitter &b = row.b;
  const MergeArguments &arguments = row.arguments;
  return b.branch(
      arguments.may(package::merge_to_plain_rows),
      [&] {
        Value isLong = b.less(arguments["max_tokens"], arguments["most_tokens"]);
        return MergePlace{row.exists, b.i32(0), b.i32(0), isLong};
      },
      [&] { return findToken(row, tokens); });
}

Value seesPrefix(const MergeRow &row) {
  MergeEmitter &b = row.b;
  Value prefixes = row.arguments["prefix_starts"];
  return b.branch(
      b.isNull(prefixes), [&] { return b.boolean(false); },
      [&] {
        Value token = row.divide().token;
        Value first = loadNumber(b, prefixes, b.i32(0), 0);
        Value end = loadNumber(b, prefixes, row.arguments["prefix_count"], 0);
        return b.both(b.isFalse(b.less(token, first)), b.less(token, end));
      });
}

/// The products are summed piece by piece, which costs less than adding whole products, or than adding them
/// one by one to a pointer; `opaque` keeps LLVM from doing that.
Value advanceBy(MergeEmitter &b, Value start, Type type, ArrayRef<IndexStep> steps) {
  Value low = b.i64(0), high = b.i32(0);
  for (auto [index, stride] : steps) {
    low = b.add(low, b.mul(b.zeroExtend(index), b.zeroExtend(b.truncateInteger(stride))));
    high = b.add(high, b.mul(index, b.truncateInteger(b.shiftRight(stride, b.i64(32)))));
  }
  Value offset = b.add(low, b.shiftLeft(b.zeroExtend(high), b.i64(32)));
  return b.advance(start, type, b.opaque(offset));
}

} // namespace sluice

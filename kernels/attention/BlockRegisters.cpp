//===- BlockRegisters.cpp - K and V in blocks, in the registers of a wave -------------------------------===//
#include "attention/BlockRegisters.h"

#include <limits>

using namespace mlir;

namespace sluice {

BlockRegisters::BlockRegisters(Emitter &b, TileMath &math, const Arguments &arguments, const KeyPages &pages,
                               const LaneRows &rows, const HeadColumns &columns, const Source &source,
                               const KeyBlocks &blocks, unsigned tileKv)
    : b(b), math(math), arguments(arguments), pages(pages), rows(rows), columns(columns), source(source),
      blocks(blocks), tileKv(tileKv), elementsQk(columnsOf(columns.keyReads, math.layout.groups())),
      elementsV(columnsOf(columns.valueReads, math.layout.rows)) {
  auto same = [&](StringRef k, StringRef v) {
    auto equal = [&](StringRef dimension) -> Value {
      return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, arguments.late((k + dimension).str()),
                                   arguments.late((v + dimension).str()));
    };
    return b.both(equal("_batch_stride"), equal("_token_stride"));
  };
  sameStrides = same("k", "v");
  if (blocks.hasArrays()) sameStrides = b.both(sameStrides, same("k_scales", "v_scales"));
}

void BlockRegisters::prepare(const Query &query) {
  for (unsigned read = 0; read < columns.keyReads.size(); ++read) {
    Values elements, inOrder;
    for (Value fragment : query.fragments(read))
      for (unsigned n = 0; n < math.layout.elements(); ++n)
        elements.push_back(b.extract(fragment, n));
    for (unsigned n = 0; n < elements.size(); ++n)
      inOrder.push_back(elements[blocks.orderOf(n)]);
    Values fragments;
    for (unsigned first = 0; first < elements.size(); first += math.layout.elements())
      fragments.push_back(b.pack(math.fragment, ArrayRef(inOrder).slice(first, math.layout.elements())));
    queryFragments.push_back(fragments);
  }
  Value ones = math.onesFragment();
  for (unsigned four = 0; four < fours(elementsQk); ++four) {
    Value laneSum;
    for (unsigned n = 0; n < scaledTogether; ++n) {
      Value sums = math.zeros(); // the same in all registers
      for (Value fragment : queryFragments[four * scaledTogether + n])
        sums = math.mfma(ones, fragment, sums);
      Value sum = b.extract(sums, 0);
      laneSum = n == 0 ? sum : b.select(b.equal(rows.laneGroup, b.i32(n)), sum, laneSum);
    }
    querySums.push_back(laneSum);
  }
}

Value BlockRegisters::nothing(unsigned elements) const {
  return ZerosOp::create(b, LLVM::LLVMPointerType::get(b.getContext(), 1), blocks.rowBytes(elements));
}

BlockRegisters::Side BlockRegisters::sideOfKeys() const {
  return {"k", source.k, source.kScales, source.columnsQk, elementsQk, rows.laneRow, rows.laneGroup};
}

BlockRegisters::Side BlockRegisters::sideOfValues() const {
  // The keys of a lane's fragments of V are 4 * laneGroup + 0..3: each of four lanes has a scale of one.
  Value key = b.add(b.mul(rows.laneGroup, b.i32(4)), b.bitAnd(rows.laneRow, b.i32(3)));
  return {
      "v", source.v, source.vScales, source.columnsV, elementsV, key, b.shiftRight(rows.laneRow, b.i32(2))};
}

/// The lane's first column of the first read; in the others it has the same place in its block.
Value BlockRegisters::firstColumnOfKeys() const {
  return b.mul(rows.laneGroup, b.i32(KeyBlocks::loadElements));
}

Value BlockRegisters::firstColumnOfValues() const {
  return b.mul(rows.laneRow, b.i32(KeyBlocks::loadElements));
}

BlockRegisters::RowAddresses BlockRegisters::addressesOf(const Side &side, Value firstKey,
                                                         Value entries) const {
  unsigned rowBytes = blocks.rowBytes(side.elements);
  Value rowAddresses = pages.addresses(side.name, side.base, firstKey, entries, b.getI8Type(), rowBytes);
  if (!blocks.hasArrays()) return {rowAddresses, rowAddresses};
  return {rowAddresses, pages.lateAddresses((side.name + "_scales").str(), side.scalesBase, firstKey, entries,
                                            b.getI16Type(), rowBytes)};
}

BlockRegisters::RowAddresses BlockRegisters::addressesOfValues(Value firstKey, Value entries,
                                                               const RowAddresses &keyAddresses) const {
  Side keys = sideOfKeys(), values = sideOfValues();
  auto moved = [&](Value address, Value from, Value to) -> Value {
    Value row = b.advance(address, b.getI8Type(), b.bytesBetween(from, to));
    Value exists = LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::ne, address, nothing(keys.elements));
    return b.select(exists, row, nothing(values.elements));
  };
  RowAddresses addresses = b.branch(
      sameStrides,
      [&] {
        Value rows = moved(keyAddresses.rows, keys.base, values.base);
        return RowAddresses{rows, blocks.hasArrays()
                                      ? moved(keyAddresses.scales, keys.scalesBase, values.scalesBase)
                                      : Value()};
      },
      [&] {
        RowAddresses computed = addressesOf(values, firstKey, entries);
        return RowAddresses{computed.rows, blocks.hasArrays() ? computed.scales : Value()};
      });
  if (!blocks.hasArrays()) addresses.scales = addresses.rows;
  return addresses;
}

SmallVector<Value> BlockRegisters::rowsOfScales(const Side &side, Value firstKey, Value addresses) const {
  Value key = b.opaque(side.keyOfLane, firstKey);
  Values scaleRows;
  for (unsigned sixteen = 0; sixteen < sixteens(); ++sixteen)
    scaleRows.push_back(b.pointerOfLane(addresses, key, sixteen * math.layout.rows));
  return scaleRows;
}

void BlockRegisters::loadScales(const Side &side, Value firstKey, ArrayRef<Value> rowsOfScales,
                                Values &loaded) const {
  Value none = nothing(side.elements), limit = b.opaqueScalar(side.limit, firstKey), log2;
  if (blocks.hasArrays()) log2 = b.select(arguments.flag(package::score_groups_of_64), b.i32(6), b.i32(5));
  auto loadHalf = [&](Value place) -> Value {
    return arith::ExtUIOp::create(b, b.getI32Type(), LLVM::LoadOp::create(b, b.getI16Type(), place, 2));
  };
  struct Place {
    Value scale, isThere;
  };
  SmallVector<Place> places;
  for (Value row : rowsOfScales) {
    Value hasRow = LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::ne, row, none);
    for (unsigned four = 0; four < fours(side.elements); ++four) {
      Value block = b.add(b.i32(four * scaledTogether), side.blockOfLane);
      Value column = b.mul(block, b.i32(KeyBlocks::blockElements)), exists = b.less(column, limit);
      Value offset = blocks.hasArrays() ? b.shiftLeft(b.shiftRight(column, log2), b.i32(1))
                                        : b.mul(block, b.i32(blocks.blockBytes()));
      Value place = b.advance(row, b.getI8Type(), b.zeroExtend(offset));
      places.push_back({b.select(exists, place, none), b.both(exists, hasRow)});
    }
  }
  Values subtracted;
  if (blocks.hasArrays()) {
    // They have the places of the scales in an array of their own.
    Value zeros = arguments.late((side.name + "_zeros").str());
    Value groups = arguments.late((side.name + "_groups").str());
    subtracted = b.branch(
        b.isNull(zeros),
        [&] {
          constexpr int32_t eight = 0x4800; // in F16
          return Values(places.size(), b.i32(eight));
        },
        [&] {
          Value distance = b.bytesBetween(groups, zeros);
          Values halves;
          for (const Place &place : places)
            halves.push_back(
                loadHalf(b.select(place.isThere, b.advance(place.scale, b.getI8Type(), distance), none)));
          return halves;
        });
  }
  for (const Place &place : places)
    loaded.push_back(loadHalf(place.scale));
  llvm::append_range(loaded, subtracted);
}

BlockRegisters::Scales BlockRegisters::scalesOf(ArrayRef<Value> loaded, const Side &side, unsigned sixteen,
                                                unsigned four) const {
  auto number = [&](Value half) -> Value {
    Value f16 = b.bitcast(b.getF16Type(), arith::TruncIOp::create(b, b.getI16Type(), half));
    return arith::ExtFOp::create(b, b.getF32Type(), f16);
  };
  unsigned scaleCount = sixteens() * fours(side.elements), at = sixteen * fours(side.elements) + four;
  return {number(loaded[at]),
          blocks.hasArrays() ? number(loaded[scaleCount + at]) : b.f32(blocks.subtracted())};
}

OwnTiles::LoadedKeys BlockRegisters::loadKeys(Value firstKey, Value entries) const {
  Side side = sideOfKeys();
  RowAddresses addresses = addressesOf(side, firstKey, entries);
  // Every lane asks for all its rows before it uses one: LLVM leaves the order so.
  Values scaleRows = rowsOfScales(side, firstKey, addresses.scales), keyRows, loaded;
  Value firstOfLane = b.opaque(rows.laneRow, firstKey);
  for (unsigned sixteen = 0; sixteen < sixteens(); ++sixteen)
    keyRows.push_back(b.pointerOfLane(addresses.rows, firstOfLane, sixteen * math.layout.rows));
  RowAddresses valueAddresses = addressesOfValues(firstKey, entries, addresses);
  loadScales(side, firstKey, scaleRows, loaded);
  // Columns that do not exist have any number that does: Q and the scale are 0 there.
  Value limit = b.opaqueScalar(source.columnsQk, firstKey);
  Value laneOffset = b.zeroExtend(blocks.offsetOfNumbers(firstColumnOfKeys()));
  for (Value &row : keyRows)
    row = b.advance(row, b.getI8Type(), laneOffset);
  for (const ColumnRead &read : columns.keyReads) {
    Value exists = b.less(b.i32(read.headColumn), limit);
    Value ahead = b.select(exists, b.i64(blocks.offsetOfBlock(read.headColumn)), b.i64(0));
    for (Value row : keyRows)
      loaded.push_back(blocks.load(b.advance(row, b.getI8Type(), ahead)));
  }
  return {loaded, {valueAddresses.rows, valueAddresses.scales}};
}

OwnTiles::LoadedValues BlockRegisters::loadValues(Value firstKey, Value, ArrayRef<Value> forValues) const {
  Side side = sideOfValues();
  const MfmaLayout &layout = math.layout;
  Values scaleRows = rowsOfScales(side, firstKey, forValues[1]), keyRows, loaded;
  Value firstOfLane = b.opaque(b.mul(rows.laneGroup, b.i32(layout.elements())), firstKey);
  for (unsigned k = 0; k < sixteens() * layout.elements(); ++k)
    keyRows.push_back(b.pointerOfLane(forValues[0], firstOfLane, layout.rowOf(k)));
  loadScales(side, firstKey, scaleRows, loaded);
  // Of columns that do not exist nothing is stored: lanes that have some read the row's first.
  Value limit = b.opaqueScalar(source.columnsV, firstKey), first = firstColumnOfValues();
  for (unsigned sixteen = 0; sixteen < sixteens(); ++sixteen)
    for (const ColumnRead &read : columns.valueReads) {
      Value column = b.add(first, b.i32(read.headColumn)), exists = b.less(column, limit);
      Value offset = b.select(exists, blocks.offsetOfNumbers(column), blocks.offsetOfNumbers(b.i32(0)));
      for (Value row : ArrayRef(keyRows).slice(sixteen * layout.elements(), layout.elements()))
        loaded.push_back(blocks.load(b.advance(row, b.getI8Type(), b.zeroExtend(offset))));
    }
  return {loaded, {}};
}

SmallVector<Value> BlockRegisters::scores(const TileProducts &, Value, ArrayRef<Value> k) const {
  Side side = sideOfKeys();
  auto two = VectorType::get(2, b.getF32Type());
  ArrayRef<Value> numbers = k.drop_front(scaleLoads(elementsQk));
  Values scalesOfLanes;                                // of 16 keys after 16, and of four blocks after four
  SmallVector<std::array<Value, 2>> pairs(sixteens()); // of 16 keys after 16; null: zeros
  for (unsigned sixteen = 0; sixteen < sixteens(); ++sixteen) {
    Value sum = math.zeros();
    for (unsigned four = 0; four < fours(elementsQk); ++four) {
      auto [scale, subtracted] = scalesOf(k, side, sixteen, four);
      if (blocks.subtracts())
        sum = math.mfmaOfFloats(b.negF(b.mulF(scale, subtracted)), querySums[four], sum);
      // From the lane of the key and block to lane i of 16, whose keys' scores are in the lanes' registers:
      // i % 4 is the register, i / 4 the block.
      scalesOfLanes.push_back(byScore(b, rows, b.mulF(scale, b.f32(1 / blocks.unit()))));
    }
    if (blocks.subtracts()) pairs[sixteen] = {b.slice(sum, 0, 2), b.slice(sum, 2, 2)};
  }
  const Value *number = numbers.begin();
  for (unsigned index = 0; index < columns.keyReads.size(); ++index) {
    for (unsigned sixteen = 0; sixteen < sixteens(); ++sixteen) {
      Value product = math.zeros();
      for (auto [fragment, queryFragment] :
           llvm::zip_equal(blocks.fragmentsOf(*number++, firstColumnOfKeys()), queryFragments[index]))
        product = math.mfma(fragment, queryFragment, product);
      unsigned four = index / scaledTogether, first = index % scaledTogether * 4;
      Value scale = scalesOfLanes[sixteen * fours(elementsQk) + four];
      // Multiplied by DPP's operand, then added in pairs: no register has only a scale.
      Values scaled;
      for (unsigned r = 0; r < 4; ++r)
        scaled.push_back(b.mulF(b.extract(product, r), b.rowLaneValue(scale, first + r)));
      for (unsigned pair = 0; pair < 2; ++pair) {
        Value &sum = pairs[sixteen][pair], more = b.pack(two, {scaled[2 * pair], scaled[2 * pair + 1]});
        sum = sum ? b.addF(sum, more) : more;
      }
    }
  }
  Values scores;
  for (auto [low, high] : pairs)
    scores.push_back(b.pack(math.accumulator,
                            {b.extract(low, 0), b.extract(low, 1), b.extract(high, 0), b.extract(high, 1)}));
  b.computeHere(scores);
  return scores;
}

/// Rounded to 13 significant bits. The product with a number to subtract, of F16, is then exact, and so is an
/// element of zero.
Value BlockRegisters::toThirteenBits(Value number) const {
  Value bits = b.add(b.bitcast(b.getI32Type(), number), b.i32(1 << 10));
  return b.bitcast(b.getF32Type(), b.bitAnd(bits, b.i32(-(1 << 11))));
}

SmallVector<BlockRegisters::Factors> BlockRegisters::factorsOfValues(ArrayRef<Value> loaded) const {
  SmallVector<Factors> factors;
  const auto side = sideOfValues();
  for (unsigned sixteen = 0; sixteen < sixteens(); ++sixteen)
    for (unsigned four = 0; four < fours(elementsV); ++four) {
      auto [scale, subtracted] = scalesOf(loaded, side, sixteen, four);
      Value factor = b.mulF(scale, b.f32(math.factorOfP() / blocks.unit()));
      if (!blocks.subtracts()) {
        factors.push_back({factor, Value()});
        continue;
      }
      factor = toThirteenBits(factor);
      factors.push_back({factor, b.mulF(b.mulF(factor, b.f32(-blocks.unit())), subtracted)});
    }
  return factors;
}

SmallVector<Value> BlockRegisters::fragmentsOfValues(ArrayRef<Value> numbers, Factors factors,
                                                     const ColumnRead &read) const {
  auto two = VectorType::get(2, b.getF32Type());
  SmallVector<Values> elements; // of each key, by column
  for (unsigned key = 0; key < math.layout.elements(); ++key) {
    auto twice = [&](Value keyValues) {
      Value keyValue = b.quadLaneValue(keyValues, key);
      return b.pack(two, {keyValue, keyValue});
    };
    Value scaleOfKey = twice(factors.factor), termOfKey = factors.term ? twice(factors.term) : Value();
    Values keyElements(read.columns);
    for (auto [index, pair] : llvm::enumerate(blocks.pairsOf(numbers[key], firstColumnOfValues()))) {
      Value product = termOfKey ? b.fma(pair, scaleOfKey, termOfKey) : b.mulF(pair, scaleOfKey);
      for (unsigned n = 0; n < 2; ++n)
        keyElements[blocks.orderOf(2 * index + n)] = b.extract(product, n);
    }
    elements.push_back(std::move(keyElements));
  }
  Values fragments;
  for (unsigned n = 0; n < read.columns; ++n) {
    Values halves;
    for (unsigned key = 0; key < math.layout.elements(); key += 2)
      halves.push_back(math.toPair(elements[key][n], elements[key + 1][n]));
    fragments.push_back(b.bitcast(math.fragment, b.pack(VectorType::get(2, b.getI32Type()), halves)));
  }
  return fragments;
}

/// A term is not finite if its factor is not, or the number to subtract. Times 0, it is NaN then.
static Value isNotFinite(Emitter &b, ArrayRef<BlockRegisters::Factors> factors) {
  Value seen = b.f32(0);
  for (const BlockRegisters::Factors &of : factors)
    seen = b.fma(of.term ? of.term : of.factor, b.f32(0), seen);
  return arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, seen, seen);
}

BlockRegisters::Rows BlockRegisters::keepToRows(const TileProducts &products, const Product &product,
                                                ArrayRef<Factors> factors) const {
  // One branch for all that is rare, as every branch ends a block.
  Value isRare = isNotFinite(b, factors);
  Rows unchanged{Values(product.output), SmallVector<Factors>(factors)};
  return b.branch(
      b.anyLane(b.either(math.isChange(product.factor), isRare)),
      [&] {
        Values output = math.scaled(product.output, product.factor);
        return b.branch(
            b.anyLane(isRare), [&] { return separate(products, product, output, factors); },
            [&] { return Rows{output, unchanged.factors}; });
      },
      [&] { return unchanged; });
}

/// Which keys a lane's row sees: a fragment of NonFinite::visible as bits, those of all lane groups.
BlockRegisters::Words BlockRegisters::bitsOf(Value visible, Value group) const {
  Value zero = arith::ConstantOp::create(b, b.getFloatAttr(math.fragment.getElementType(), 0));
  Value nibble = b.i32(0);
  for (unsigned key = 0; key < math.layout.elements(); ++key) {
    Value isHidden = b.equalF(b.extract(visible, key), zero);
    nibble = b.bitOr(nibble, b.select(isHidden, b.i32(0), b.i32(1 << key)));
  }
  Value nibbleInWord = b.shiftLeft(nibble, b.mul(b.bitAnd(group, b.i32(1)), b.i32(16)));
  Words words;
  for (unsigned n = 0; n < words.size(); ++n) {
    Value isOwn = b.equal(b.shiftRight(group, b.i32(1)), b.i32(n));
    words[n] = math.overGroups(b.select(isOwn, nibbleInWord, b.i32(0)), rows.lane,
                               [&](Value x, Value y) { return b.bitOr(x, y); });
  }
  return words;
}

BlockRegisters::Rows BlockRegisters::separate(const TileProducts &products, const Product &product,
                                              ArrayRef<Value> output, ArrayRef<Factors> factors) const {
  // Keys are bits: bit 16 * n + k of 64 is key 4 * n + k of sixteen. A ballot over the lanes that have scales
  // has those of block i of four in bits 16 * n + 4 * i + k. In a product of 16-bit elements the lane group
  // would be n, and in its result the lane group is i.
  Value group = b.opaque(rows.laneGroup, product.tileKey); // rare, as in TileProducts::addNonFinite
  SmallVector<Words> seen;                                 // of 16 keys after 16
  for (Value visible : products.visible(product.rules.front(), product.tileKey))
    seen.push_back(bitsOf(visible, group));
  Rows result;
  Values meets(fours(elementsV), b.i32(0)); // of the block that is the lane group's number
  for (auto [index, of] : llvm::enumerate(factors)) {
    Value is = isNotFinite(b, of);
    auto orZero = [&](Value x) { return x ? b.select(is, b.f32(0), x) : x; };
    result.factors.push_back({orZero(of.factor), orZero(of.term)});
    Value ballot = ROCDL::BallotOp::create(b, b.getI64Type(), is);
    Value &meet = meets[index % fours(elementsV)];
    for (auto [n, keys] : llvm::enumerate(seen[index / fours(elementsV)])) {
      Value word =
          arith::TruncIOp::create(b, b.getI32Type(), arith::ShRUIOp::create(b, ballot, b.i64(32 * n)));
      Value blockBits = b.shiftRight(word, b.mul(group, b.i32(math.layout.elements())));
      meet = b.bitOr(meet, b.bitAnd(blockBits, keys));
    }
  }
  Value nan = b.f32(std::numeric_limits<float>::quiet_NaN());
  for (const ColumnRead &read : columns.valueReads) {
    Value meetsNone = b.equal(meets[indexOf(0, read)], b.i32(0));
    for (Value tile : output.slice(result.output.size(), read.columns)) {
      Values elements;
      for (unsigned r = 0; r < math.layout.results(); ++r)
        elements.push_back(b.select(meetsNone, b.extract(tile, r), nan));
      result.output.push_back(b.pack(math.accumulator, elements));
    }
  }
  return result;
}

SmallVector<Value> BlockRegisters::addValues(const TileProducts &products, const Product &product,
                                             const LoadedValues &loaded) const {
  auto [output, factors] = keepToRows(products, product, factorsOfValues(loaded.v));
  unsigned keys = math.layout.elements(), reads = columns.valueReads.size();
  ArrayRef<Value> numbers = ArrayRef(loaded.v).drop_front(scaleLoads(elementsV));
  auto fragments = [&](unsigned sixteen, unsigned index) {
    const ColumnRead &read = columns.valueReads[index];
    return fragmentsOfValues(numbers.slice((sixteen * reads + index) * keys, keys),
                             factors[indexOf(sixteen, read)], read);
  };
  return products.addFragments(output, product.probabilities, fragments);
}

} // namespace sluice

//===- AppendStep.cpp - appending to a cache, with norms, tails and Q -----------------------------------===//
//
// A row is that of one token and one head, of K, V or Q. The lanes of a row are a power of two, at most a
// wave, and each has up to two chunks of 8 elements in registers: the two that a rotation of halves combines,
// or two of the others. So a row is read once, before its sum of squares is known, and Q may be stored where
// it was read. Neighbouring lanes have neighbouring chunks.
//
// Workgroups belong to one section (K, V or Q), so its arguments are in scalar registers.
//
// Chunks of a group are to be in neighbouring lanes. Where the halves of a rotation are not whole groups,
// they are not after the rotation, and go to other lanes of the row: lane n then has chunk n, and the chunk
// that comes as many later as the row has lanes with chunks.
//
// Without a norm and a rotation, elements of the source's type are copied bit by bit.
//
//===----------------------------------------------------------------------------------------------------===//
#include "cache_ops/AppendPlaces.h"
#include "cache_ops/Fp8Chunks.h"
#include "cache_ops/IntegerChunks.h"

#include "llvm/ADT/StringSwitch.h"

#include <limits>

namespace sluice {

using namespace mlir;

namespace {

constexpr unsigned chunkElements = package::cache_op_chunk_elements;
// sluice_dtype of the rotary tables.
constexpr int32_t tableF16 = 1, tableBf16 = 2;

class StepBuilder {
public:
  using Emitter = CacheOpEmitterOf<package::step_kernarg_fields>;

  StepBuilder(gpu::GPUFuncOp kernel, const CacheOpVariant &variant)
      : b(kernel), source(b.elementType(variant.from)), cache(cacheOf(variant)) {
    b.setInsertionPointToStart(&kernel.getBody().front());
    // Memory bounds the kernel: waves hide its latency, and as many as these leave registers enough.
    const int32_t wavesPerSimd = isConverted() ? 5 : 6;
    kernel->setAttr("sluice.waves_per_simd", b.getI32IntegerAttr(wavesPerSimd));
  }

  void build() {
    fetchArguments();
    Value thread = ROCDL::ThreadIdXOp::create(b, b.getI32Type());
    Value group = ROCDL::BlockIdXOp::create(b, b.getI32Type());
    isQ = b.isFalse(b.lessUnsigned(group, b.argument("q_first_group")));
    Value isV = b.isFalse(b.lessUnsigned(group, b.argument("v_first_group")));
    if (mayHaveColumns()) isByColumns = b.both(b.both(isV, b.isFalse(isQ)), hasMode(package::step_v_columns));
    section = b.select(isQ, number(package::StepSection::q),
                       b.select(isV, number(package::StepSection::v), number(package::StepSection::k)));
    lanesLog2 = of("lanes_log2");
    Value rowsLog2 = b.sub(b.i32(llvm::Log2_32(package::cache_op_threads)), lanesLog2);
    findChunks(b.bitAnd(thread, b.sub(b.shiftLeft(b.i32(1), lanesLog2), b.i32(1))));
    Value first =
        b.add(b.shiftLeft(b.sub(group, of("first_group")), rowsLog2), b.shiftRight(thread, lanesLog2));
    b.loop(b.zeroExtend(first), b.zeroExtend(of("row_count")),
           b.zeroExtend(b.shiftLeft(of("groups"), rowsLog2)), {}, [&](Value row, ValueRange) {
             appendRow(b.truncateInteger(row));
             return SmallVector<Value>();
           });
  }

private:
  /// The type of the caches.
  enum class Cache { source, e4m3fnuz, e4m3fn, e5m2, i8, q8, q4, u4 };
  static Cache cacheOf(const CacheOpVariant &variant) {
    return llvm::StringSwitch<Cache>(variant.to == variant.from ? "" : variant.to)
        .Case("", Cache::source)
        .Case("e4m3fnuz", Cache::e4m3fnuz)
        .Case("e4m3fn", Cache::e4m3fn)
        .Cases({"e5m2fnuz", "e5m2"}, Cache::e5m2)
        .Case("i8", Cache::i8)
        .Case("q8_0", Cache::q8)
        .Case("q4_0", Cache::q4)
        .Case("u4", Cache::u4);
  }
  bool isConverted() const { return cache != Cache::source; }
  /// V may be by columns: attention reads these types so.
  bool mayHaveColumns() const { return cache == Cache::source || cache == Cache::e4m3fnuz; }
  /// Groups of elements have a common scale.
  bool isGrouped() const { return cache >= Cache::q8; }
  Fp8 fp8() const {
    return cache == Cache::e4m3fnuz ? Fp8::e4m3fnuz : cache == Cache::e4m3fn ? Fp8::e4m3fn : Fp8::e5m2;
  }
  double largestNumber() const { return cache == Cache::i8 ? 127 : largestOf(fp8()); }

  /// A chunk of the lane's. A lane without one has another lane's number here, whose memory it may read.
  struct Chunk {
    Value number, exists;
    Value isNormed; // it exists and is not of the tail
  };
  using Two = std::array<Value, package::step_chunks_of_lane>;

  /// Brings all arguments into the scalar cache with one wait. They are read in many places, after branches,
  /// and each line's first read would wait for memory.
  void fetchArguments() {
    constexpr unsigned lineBytes = 64;
    SmallVector<Value> words;
    for (unsigned offset = 0; offset < sizeof(package::StepKernargs); offset += lineBytes)
      words.push_back(b.loadKernarg(offset, b.getI32Type()));
    b.await(words);
  }

  Value number(package::StepSection value) { return b.i32(int32_t(value)); }
  /// An argument of the section.
  Value of(Emitter::Sides name) { return b.sideArgument(name, section); }

  void findChunks(Value lane) {
    Value half = of("rotary_half"), first = b.argument("rotary_first"), lanes = of("lane_chunks");
    Value count = of("chunks"), body = of("body_chunks");
    isRotated = b.lessUnsigned(lane, half);
    auto outside = [&](Value n) {
      return b.select(b.less(n, first), n, b.add(n, b.shiftLeft(half, b.i32(1))));
    };
    Value rotated = b.add(first, lane), other = b.sub(lane, half);
    Value numbers[] = {b.select(isRotated, rotated, outside(other)),
                       b.select(isRotated, b.add(rotated, half), outside(b.add(other, b.sub(lanes, half))))};
    Value hasAny = b.lessUnsigned(lane, lanes), spare = b.i32(0);
    for (auto [chunk, number] : llvm::zip_equal(chunks, numbers)) {
      chunk.exists = b.both(hasAny, b.lessUnsigned(number, count));
      chunk.number = b.select(chunk.exists, number, spare);
      chunk.isNormed = b.both(chunk.exists, b.lessUnsigned(number, body));
      spare = chunk.number;
    }
    if (isGrouped()) {
      regroups = b.both(hasMode(package::step_regroups), b.both(b.isFalse(isQ), b.less(b.i32(0), half)));
      Value none = b.i32(-1);
      for (unsigned i = 0; i < chunks.size(); ++i) {
        Value ofGroup = b.select(hasAny, b.add(lane, b.mul(lanes, b.i32(i))), none);
        groupNumbers[i] = b.select(regroups, ofGroup, b.select(chunks[i].exists, chunks[i].number, none));
      }
    }
    isFirstLane = b.equal(lane, b.i32(0));
    pairOfFirst = lane;
    pairOfSecond = b.add(lane, half);
  }

  void appendRow(Value row) {
    CacheOpEmitter::Division place = b.divide(row, of("heads"), of("heads_magic"), of("heads_shift"));
    Value token = b.zeroExtend(place.quotient), head = b.zeroExtend(place.rest);
    Two raw = loadRow(token, head);
    Value positions = b.argument("positions");
    Value isGiven = b.isFalse(b.isNull(positions));
    Value given = b.branch(
        isGiven, [&] { return SmallVector<Value>{b.load(b.getI32Type(), positions, token, 4)}; },
        [&] { return SmallVector<Value>{b.i32(0)}; })[0];
    Value ofHead = isConverted() && !isGrouped() ? loadScaleOfHead(head) : Value();
    AppendPlace to = placeOf(token);
    Value position = b.select(isGiven, b.signExtend(given), to.key);
    b.when(to.valid, [&] {
      Value begin = b.add(b.add(b.mul(to.page, of("out_page_stride")), offsetOfRow(to.row)),
                          b.mul(head, of("out_head_stride")));
      Value changes = b.either(b.isFalse(b.isNull(of("norm"))), b.lessUnsigned(b.i32(0), of("rotary_half")));
      auto round = [&](Value chunk) { return b.round(b.chunkOf(source), chunk); };
      auto same = [](Value chunk) { return chunk; };
      if (isGrouped()) {
        Two wide = unpack(b.branch(
            changes, [&] { return pack(compute(raw, position)); }, [&] { return pack(widen(raw)); }));
        b.branch(
            isQ,
            [&] {
              storeRow(wide, begin, source, round);
              return SmallVector<Value>();
            },
            [&] {
              wide =
                  unpack(b.branch(regroups, [&] { return pack(regroup(wide)); }, [&] { return pack(wide); }));
              storeGroups(wide, begin, cache == Cache::u4 ? indexOfScale(to, head) : Value());
              return SmallVector<Value>();
            });
      } else if (isConverted()) {
        Value given = b.branch(
            hasScaleOf(package::ScaleSource::page),
            [&] { return SmallVector<Value>{b.load(b.getF32Type(), addressOfScale(to, head), b.i64(0), 4)}; },
            [&] { return SmallVector<Value>{ofHead}; })[0];
        Two wide = unpack(b.branch(
            changes, [&] { return pack(compute(raw, position)); }, [&] { return pack(widen(raw)); }));
        Value scale = b.branch(
            hasScaleOf(package::ScaleSource::computed),
            [&] { return SmallVector<Value>{computeScale(wide, addressOfScale(to, head))}; },
            [&] { return SmallVector<Value>{given}; })[0];
        b.branch(
            isQ,
            [&] {
              storeRow(wide, begin, source, round);
              return SmallVector<Value>();
            },
            [&] {
              storeRow(
                  wide, begin, b.getI8Type(), [&](Value chunk) { return convert(chunk, scale); },
                  isByColumns);
              return SmallVector<Value>();
            });
      } else {
        b.branch(
            changes,
            [&] {
              storeRow(compute(raw, position), begin, source, round);
              return SmallVector<Value>();
            },
            [&] {
              storeRow(raw, begin, source, same, isByColumns);
              return SmallVector<Value>();
            });
      }
    });
  }

  static SmallVector<Value> pack(const Two &two) { return {two.begin(), two.end()}; }
  static Two unpack(const SmallVector<Value> &values) { return {values[0], values[1]}; }

  Two loadRow(Value token, Value head) {
    auto rowOf = [&](Emitter::Sides rows, Emitter::Sides tokenStride, Emitter::Sides headStride) {
      return b.advance(of(rows), source, b.add(b.mul(token, of(tokenStride)), b.mul(head, of(headStride))));
    };
    Value body = rowOf("rows", "token_stride", "head_stride");
    Value tail = rowOf("tail", "tail_token_stride", "tail_head_stride");
    Value bodyChunks = of("body_chunks");
    Two raw;
    for (auto [value, chunk] : llvm::zip_equal(raw, chunks)) {
      Value isBody = b.lessUnsigned(chunk.number, bodyChunks);
      Value from = b.select(isBody, body, tail);
      Value n = b.select(isBody, chunk.number, b.sub(chunk.number, bodyChunks));
      value = b.load(b.chunkOf(source), from, b.zeroExtend(elementOf(n)), 16);
    }
    return raw;
  }

  Value hasScaleOf(package::ScaleSource scales) {
    return b.equal(of("scale_source"), b.i32(int32_t(scales)));
  }

  /// The scale of the head, if there is one, for any page: loaded long before it is needed.
  Value loadScaleOfHead(Value head) {
    Value isGiven = b.both(b.isFalse(b.isNull(of("scale"))), hasScaleOf(package::ScaleSource::head));
    return b.branch(
        isGiven,
        [&] {
          Value index = b.mul(head, of("scale_head_stride"));
          return SmallVector<Value>{b.load(b.getF32Type(), of("scale"), index, 4)};
        },
        [&] { return SmallVector<Value>{b.f32(1)}; })[0];
  }

  Value indexOfScale(const AppendPlace &to, Value head) {
    return b.add(b.add(b.mul(to.page, of("scale_page_stride")), b.mul(to.row, of("scale_row_stride"))),
                 b.mul(head, of("scale_head_stride")));
  }

  Value addressOfScale(const AppendPlace &to, Value head) {
    return b.advance(of("scale"), b.getF32Type(), indexOfScale(to, head));
  }

  /// The scale with which the row's largest finite number becomes the largest of the cache; stores it.
  Value computeScale(const Two &wide, Value address) {
    Value most = b.f32(0);
    for (auto [values, chunk] : llvm::zip_equal(wide, chunks)) {
      Value own = b.f32(0);
      for (unsigned i = 0; i < chunkElements; ++i) {
        Value size = math::AbsFOp::create(b, b.extract(values, i));
        Value isFinite = b.atMostF(size, b.f32(std::numeric_limits<float>::max())); // false for NaN
        own = b.maxF(own, b.select(isFinite, size, b.f32(0)));
      }
      most = b.maxF(most, b.select(chunk.exists, own, b.f32(0)));
    }
    most = b.joinLanes(most, lanesLog2, [&](Value x, Value y) { return b.maxF(x, y); });
    Value quotient = arith::DivFOp::create(b, most, b.f32(largestNumber()));
    Value scale = b.select(b.equalF(quotient, b.f32(0)), b.f32(1), quotient);
    b.when(isFirstLane, [&] { b.store(scale, address, b.i64(0), 4); });
    return scale;
  }

  Value elementOf(Value chunk) { return b.mul(chunk, b.i32(chunkElements)); }

  /// Q's rows go to the token's row of the only page. They need a place only for their position: with slots
  /// it is given, with sequences a row of none of them is skipped.
  AppendPlace placeOf(Value token) {
    Value hasSlots = b.equal(b.argument("page_source"), b.i32(int32_t(package::PageSource::slots)));
    SmallVector<Value> found = b.branch(
        b.both(isQ, hasSlots),
        [&] { return SmallVector<Value>{b.boolean(true), b.boolean(true), b.i64(0), b.i64(0), b.i64(0)}; },
        [&] {
          AppendPlace place = AppendPlaces(b).of(token);
          return SmallVector<Value>{place.valid, place.isKey, place.page, place.row, place.key};
        });
    return {b.select(isQ, found[1], found[0]), found[1], b.select(isQ, b.i64(0), found[2]),
            b.select(isQ, token, found[3]), found[4]};
  }

  Two widen(const Two &raw) {
    Two wide;
    for (auto [to, from] : llvm::zip_equal(wide, raw))
      to = b.extend(b.chunkOf(b.getF32Type()), from);
    return wide;
  }

  /// The row after its norm and its rotation, in F32.
  Two compute(const Two &raw, Value position) {
    Two wide = widen(raw);
    // Loaded before the norm, whose lanes wait for one another.
    Two angles = loadAngles(position);
    Value weights = of("norm");
    Two normed = unpack(
        b.branch(b.isNull(weights), [&] { return pack(wide); }, [&] { return pack(norm(wide, weights)); }));
    return unpack(
        b.branch(isRotated, [&] { return pack(rotate(normed, angles)); }, [&] { return pack(normed); }));
  }

  Value sumOfSquares(const Two &wide) {
    Value sum = b.f32(0);
    for (auto [values, chunk] : llvm::zip_equal(wide, chunks)) {
      Value own = b.f32(0);
      for (unsigned i = 0; i < chunkElements; ++i) {
        Value value = b.extract(values, i);
        own = b.fma(value, value, own);
      }
      sum = b.addF(sum, b.select(chunk.isNormed, own, b.f32(0)));
    }
    return b.joinLanes(sum, lanesLog2, [&](Value x, Value y) { return b.addF(x, y); });
  }

  Value product(Value chunk, Value factor) {
    SmallVector<Value> products;
    for (unsigned i = 0; i < chunkElements; ++i)
      products.push_back(b.mulF(b.extract(chunk, i), factor));
    return b.pack(b.chunkOf(b.getF32Type()), products);
  }

  /// The row's elements and the factor of their norm. The squares of tiny rows lose bits or vanish, and the
  /// chip's root of a subnormal number is 0: such rows are made larger before.
  std::pair<Two, Value> factorOfNorm(const Two &wide) {
    constexpr double least = 0x1p-90, lift = 0x1p100; // times the least number of BF16, 2^-133, is 2^-33
    Value epsilon = b.argument("norm_epsilon");
    Value mean = b.fma(sumOfSquares(wide), of("row_inverse"), epsilon);
    Value isTiny = b.compareF(arith::CmpFPredicate::OLT, mean, b.f32(least));
    SmallVector<Value> lifted = b.rarely(
        b.anyLane(isTiny),
        [&] {
          Value factor = b.select(isTiny, b.f32(lift), b.f32(1));
          Two larger;
          for (auto [to, values, chunk] : llvm::zip_equal(larger, wide, chunks))
            to = b.select(chunk.isNormed, product(values, factor), values);
          Value ofLarger = b.mulF(b.mulF(epsilon, factor), factor);
          return SmallVector<Value>{larger[0], larger[1],
                                    b.fma(sumOfSquares(larger), of("row_inverse"), ofLarger)};
        },
        [&] { return SmallVector<Value>{wide[0], wide[1], mean}; });
    return {Two{lifted[0], lifted[1]}, b.reciprocalRoot(lifted[2])};
  }

  Two norm(const Two &given, Value weights) {
    auto [wide, factor] = factorOfNorm(given);
    Two result;
    for (auto [to, values, chunk] : llvm::zip_equal(result, wide, chunks))
      to = b.branch(
          chunk.isNormed,
          [&] {
            Value weight = loadWeights(weights, elementOf(chunk.number));
            SmallVector<Value> products;
            for (unsigned i = 0; i < chunkElements; ++i)
              products.push_back(b.mulF(b.mulF(b.extract(values, i), factor), b.extract(weight, i)));
            return SmallVector<Value>{b.pack(b.chunkOf(b.getF32Type()), products)};
          },
          [&] { return SmallVector<Value>{values}; })[0];
    return result;
  }

  Value hasMode(package::StepMode mode) {
    return b.isFalse(b.equal(b.bitAnd(b.argument("modes"), b.i32(mode)), b.i32(0)));
  }

  /// `count` numbers of a type as F32.
  Value loadWide(Type type, unsigned count, Value pointer, Value index) {
    Value values = b.load(VectorType::get(count, type), pointer, index, type.getIntOrFloatBitWidth() / 8);
    return type.isF32() ? values : b.extend(VectorType::get(count, b.getF32Type()), values);
  }

  Value join(Value first, Value second) {
    return vector::ShuffleOp::create(b, first, second, llvm::to_vector(llvm::seq<int64_t>(0, chunkElements)));
  }

  Value loadWeights(Value weights, Value element) {
    Value index = b.zeroExtend(element);
    return b.branch(
        hasMode(package::step_norm_is_f32),
        [&] { return SmallVector<Value>{loadWide(b.getF32Type(), chunkElements, weights, index)}; },
        [&] { return SmallVector<Value>{loadWide(source, chunkElements, weights, index)}; })[0];
  }

  /// Eight cosines and eight sines for the lane's chunks. Pairs: four for each.
  Two loadAngles(Value position) {
    Value type = b.argument("rotary_type"), pairs = hasMode(package::step_rotary_pairs);
    Value row = b.mul(position, b.argument("rotary_stride"));
    auto as = [&](Type type) {
      auto load = [&](Value table) {
        constexpr unsigned half = chunkElements / 2;
        // Halves: the second four follow the first.
        auto at = [&](Value element) { return b.add(row, b.zeroExtend(element)); };
        Value first = b.mul(pairOfFirst, b.select(pairs, b.i32(half), b.i32(chunkElements)));
        Value second = b.select(pairs, b.mul(pairOfSecond, b.i32(half)), b.add(first, b.i32(half)));
        return join(loadWide(type, half, table, at(first)), loadWide(type, half, table, at(second)));
      };
      return SmallVector<Value>{load(b.argument("rotary")), load(b.argument("rotary_sin"))};
    };
    return unpack(b.branch(
        isRotated,
        [&] {
          return b.branch(
              b.equal(type, b.i32(tableF16)), [&] { return as(b.getF16Type()); },
              [&] {
                return b.branch(
                    b.equal(type, b.i32(tableBf16)), [&] { return as(b.getBF16Type()); },
                    [&] { return as(b.getF32Type()); });
              });
        },
        [&] {
          Value none = b.undef(b.chunkOf(b.getF32Type()));
          return SmallVector<Value>{none, none};
        }));
  }

  /// Both chunks of the lane are rotated.
  Two rotate(const Two &wide, const Two &angles) {
    return unpack(b.branch(
        hasMode(package::step_rotary_pairs), [&] { return pack(rotatePairs(wide, angles)); },
        [&] { return pack(rotateHalves(wide, angles)); }));
  }

  Two rotatePairs(const Two &wide, const Two &angles) {
    constexpr unsigned pairs = chunkElements / 2;
    Two turned;
    for (auto [n, chunk] : llvm::enumerate(wide)) {
      SmallVector<Value> elements;
      for (unsigned i = 0; i < pairs; ++i) {
        Value x = b.extract(chunk, 2 * i), y = b.extract(chunk, 2 * i + 1);
        turn(x, y, b.extract(angles[0], n * pairs + i), b.extract(angles[1], n * pairs + i));
        elements.append({x, y});
      }
      turned[n] = b.pack(b.chunkOf(b.getF32Type()), elements);
    }
    return turned;
  }

  Two rotateHalves(const Two &wide, const Two &angles) {
    SmallVector<Value> first, second;
    for (unsigned i = 0; i < chunkElements; ++i) {
      Value x = b.extract(wide[0], i), y = b.extract(wide[1], i);
      turn(x, y, b.extract(angles[0], i), b.extract(angles[1], i));
      first.push_back(x);
      second.push_back(y);
    }
    VectorType type = b.chunkOf(b.getF32Type());
    return {b.pack(type, first), b.pack(type, second)};
  }

  void turn(Value &x, Value &y, Value cosine, Value sine) {
    Value turnedX = b.fma(b.negF(y), sine, b.mulF(x, cosine));
    y = b.fma(x, sine, b.mulF(y, cosine));
    x = turnedX;
  }

  /// Eight numbers of a byte in two words.
  Value convert(Value chunk, Value scale) {
    Value isUnscaled = b.isNull(of("scale"));
    if (cache == Cache::i8)
      return b.branch(
          isUnscaled, [&] { return SmallVector<Value>{roundToI8(b, chunk)}; },
          [&] { return SmallVector<Value>{divideToI8(b, chunk, scale)}; })[0];
    Value quotients = b.branch(
        isUnscaled, [&] { return SmallVector<Value>{chunk}; },
        [&] { return SmallVector<Value>{quotientsToRound(b, dividendOf(b, chunk, scale))}; })[0];
    return roundToFp8(b, quotients, fp8());
  }

  /// Where a row begins in its page. By columns, rows are neighbours in their pack.
  Value offsetOfRow(Value row) {
    if (!mayHaveColumns()) return b.mul(row, of("out_row_stride"));
    auto ofPack = [&](Emitter::Name name) {
      return b.zeroExtend(b.select(isByColumns, b.argument(name), b.i32(0)));
    };
    Value pack = b.shiftRight(row, ofPack("v_pack_log2"));
    return b.add(b.mul(pack, of("out_row_stride")), b.bitAnd(row, ofPack("v_pack_mask")));
  }

  /// Converts each chunk with `stored` and stores it, one after another: few registers are in use at a time.
  /// `byColumns`: whether each element goes to a column; null if the cache cannot have columns.
  void storeRow(const Two &values, Value begin, Type element, function_ref<Value(Value)> stored,
                Value byColumns = {}) {
    for (auto [value, chunk] : llvm::zip_equal(values, chunks))
      b.when(chunk.exists, [&, value = value, chunk = chunk] {
        if (!byColumns) return storeChunk([&] { return stored(value); }, chunk.number, begin, element);
        Value converted = stored(value);
        b.branch(
            byColumns,
            [&] {
              storeInColumns(converted, chunk.number, begin, element);
              return SmallVector<Value>();
            },
            [&] {
              storeChunk([&] { return converted; }, chunk.number, begin, element);
              return SmallVector<Value>();
            });
      });
  }

  void storeInColumns(Value chunk, Value number, Value begin, Type element) {
    const unsigned bytes = element.getIntOrFloatBitWidth() / 8;
    Value elements = b.bitcast(VectorType::get(chunkElements, element), chunk);
    Value stride = of("out_pack_stride"), first = b.mul(b.zeroExtend(elementOf(number)), stride);
    Value to = b.advance(of("out"), element, b.add(begin, first));
    for (unsigned i = 0; i < chunkElements; ++i) {
      LLVM::StoreOp::create(b, b.extract(elements, i), to, /*alignment=*/bytes);
      to = b.advance(to, element, stride);
    }
  }

  void storeChunk(function_ref<Value()> chunk, Value number, Value begin, Type element) {
    CacheOpEmitter::Division pack = b.divide(number, of("pack_chunks"), of("pack_magic"), of("pack_shift"));
    Value to = b.add(begin, b.mul(b.zeroExtend(pack.quotient), of("out_pack_stride")));
    to = b.add(to, b.zeroExtend(elementOf(pack.rest)));
    LLVM::StoreOp::create(b, chunk(), b.advance(of("out"), element, to),
                          /*alignment=*/chunkElements * element.getIntOrFloatBitWidth() / 8);
  }

  /// Whether a number of groupNumbers is a chunk's. Asked again where it is needed: there are not enough
  /// scalar registers for all conditions of lanes.
  Value isChunk(Value number) { return b.lessUnsigned(number, b.opaqueScalar(of("chunks"))); }

  /// The chunks of groupNumbers, from the lanes that have them: the inverse of findChunks.
  Two regroup(const Two &wide) {
    Value half = of("rotary_half"), first = b.argument("rotary_first"), lanes = of("lane_chunks");
    Value wave = b.bitAnd(ROCDL::ThreadIdXOp::create(b, b.getI32Type()), b.i32(63));
    Value firstOfRow = b.shiftLeft(b.shiftRight(wave, lanesLog2), lanesLog2), others = b.sub(lanes, half);
    Two result;
    for (auto [to, numberOfLane] : llvm::zip_equal(result, groupNumbers)) {
      // After the row's numbers: not before the loop over rows, from which conditions would stay in
      // registers.
      Value number = b.after(numberOfLane, b.extract(wide[0], 0));
      Value rotated = b.sub(number, first);
      Value isLower = b.lessUnsigned(rotated, half), isUpper = b.lessUnsigned(b.sub(rotated, half), half);
      Value other = b.select(b.less(number, first), number, b.sub(number, b.shiftLeft(half, b.i32(1))));
      Value isSecond = b.either(isUpper, b.both(b.isFalse(isLower), b.isFalse(b.less(other, others))));
      Value lane = b.select(isLower, rotated,
                            b.select(isUpper, b.sub(rotated, half),
                                     b.add(half, b.select(isSecond, b.sub(other, others), other))));
      Value from = b.add(firstOfRow, b.select(isChunk(number), lane, b.i32(0)));
      SmallVector<Value> elements;
      for (unsigned i = 0; i < chunkElements; ++i) {
        Value ofFirst = b.ofLane(b.extract(wide[0], i), from),
              ofSecond = b.ofLane(b.extract(wide[1], i), from);
        elements.push_back(b.select(isSecond, ofSecond, ofFirst));
      }
      to = b.pack(b.chunkOf(b.getF32Type()), elements);
    }
    return result;
  }

  /// Stores the row's groups, whose places count bytes. A group's chunks exist together, in lanes whose
  /// numbers end like theirs.
  void storeGroups(const Two &values, Value begin, Value scaleIndex) {
    for (auto [value, number] : llvm::zip_equal(values, groupNumbers))
      b.when(isChunk(number), [&, value = value, number = number] {
        if (cache == Cache::u4)
          storeU4(value, number, begin, scaleIndex);
        else
          storeBlock(value, number, begin);
      });
  }

  /// A block of ggml: an F16 scale, then the integers of four chunks. Those of Q4_0 are in halves of bytes.
  void storeBlock(Value chunk, Value number, Value begin) {
    const bool isQ8 = cache == Cache::q8;
    constexpr int32_t scaleBytes = 2, chunkBytes = chunkElements;
    Value place = b.bitAnd(number, b.i32(3)), block = b.shiftRight(number, b.i32(2));
    GroupedChunk made = isQ8 ? toQ8(b, chunk) : toQ4(b, chunk, place);
    const int32_t withBytes = isQ8 ? 4 : 2; // chunks
    Value first = b.add(begin, b.zeroExtend(b.mul(block, b.i32(scaleBytes + withBytes * chunkBytes))));
    auto at = [&](Value offset) { return b.advance(of("out"), b.getI8Type(), b.add(first, offset)); };
    b.when(b.equal(place, b.i32(0)),
           [&] { LLVM::StoreOp::create(b, made.scale, at(b.i64(0)), /*alignment=*/2); });
    auto store = [&] {
      Value offset = b.zeroExtend(b.add(b.mul(place, b.i32(chunkBytes)), b.i32(scaleBytes)));
      LLVM::StoreOp::create(b, made.bytes, at(offset), /*alignment=*/2);
    };
    if (isQ8)
      store();
    else
      b.when(b.less(place, b.i32(withBytes)), store);
  }

  void storeU4(Value chunk, Value number, Value begin, Value scaleIndex) {
    Value isWide = hasMode(package::step_wide_groups), zeros = of("zeros");
    Value hasZero = b.isFalse(b.isNull(zeros));
    GroupedChunk made = toU4(b, chunk, isWide, hasZero);
    constexpr int32_t chunkBytes = chunkElements / 2;
    Value to = b.add(begin, b.zeroExtend(b.mul(number, b.i32(chunkBytes))));
    LLVM::StoreOp::create(b, made.bytes, b.advance(of("out"), b.getI8Type(), to), /*alignment=*/chunkBytes);
    Value chunksLog2 = b.select(isWide, b.i32(3), b.i32(2));
    Value group = b.shiftRight(number, chunksLog2);
    b.when(b.equal(b.shiftLeft(group, chunksLog2), number), [&] {
      Value index = b.add(scaleIndex, b.zeroExtend(group));
      b.store(made.scale, of("scale"), index, 2);
      b.when(hasZero, [&] { b.store(made.zero, zeros, index, 2); });
    });
  }

  Emitter b;
  Type source;
  Cache cache;
  Value section, isQ, lanesLog2;
  Value isByColumns; // the section is V, and its cache is by columns
  std::array<Chunk, package::step_chunks_of_lane> chunks;
  Two groupNumbers;                           // of the chunks of groups that are stored, or -1
  Value regroups;                             // ... are others than those above
  Value isFirstLane;                          // of the row
  Value isRotated, pairOfFirst, pairOfSecond; // the chunks' numbers among the rotated ones
};

} // namespace

void buildAppendStep(gpu::GPUFuncOp kernel, const CacheOpVariant &variant) {
  StepBuilder(kernel, variant).build();
}

} // namespace sluice

//===- AppendStep.cpp - appending to a cache, with norms, tails and Q -----------------------------------===//
//
// A row is that of one token and one head, of K, V or Q. Its lanes have all of it in registers
// (LaneChunks.h), so it is read once, before its sum of squares is known, and Q may be stored where it was
// read.
//
// Without a norm and a rotation, elements of the source's type are copied bit by bit.
//
//===----------------------------------------------------------------------------------------------------===//
#include "cache_ops/CacheTypes.h"
#include "cache_ops/RowNorm.h"
#include "cache_ops/RowRotation.h"
#include "cache_ops/RowScale.h"
#include "cache_ops/RowStore.h"

namespace sluice {

using namespace mlir;

namespace {

/// What all rows of a workgroup have in common.
struct Step {
  const CacheType &cache;
  Type source; // of new rows
  WorkgroupSection section;
  LaneChunks lane;
  RowGroups groups; // if the cache's type has groups
  Columns columns;
};

/// A row that goes to a place in a cache, or of Q.
struct NewRow {
  ChunkValues raw; // of the source's type
  Value head, position;
  Value headScale; // if the cache's type has scales of rows
  AppendPlace place;
  Value begin;     // in the cache
  Value isChanged; // there is a norm or a rotation
};

/// Brings all arguments into the scalar cache with one wait. They are read in many places, after branches,
/// and each line's first read would wait for memory.
void fetchArguments(CacheOpEmitter &b) {
  constexpr unsigned lineBytes = 64;
  SmallVector<Value> words;
  for (unsigned offset = 0; offset < sizeof(package::StepKernargs); offset += lineBytes)
    words.push_back(b.loadKernarg(offset, b.getI32Type()));
  b.await(words);
}

/// Q's rows go to the token's row of the only page. They need a place only for their position: with slots it
/// is given, with sequences a row of none of them is skipped.
AppendPlace findPlace(const WorkgroupSection &section, Value token) {
  CacheOpEmitter &b = section.b;
  Value hasSlots = b.equal(section.call.places.page_source(), b.i32(int32_t(package::PageSource::slots)));
  AppendPlace found = b.branch(
      b.both(section.isQ, hasSlots),
      [&] { return AppendPlace{b.boolean(true), b.boolean(true), b.i64(0), b.i64(0), b.i64(0)}; },
      [&] { return AppendPlaces(b, section.call.slots, section.call.places).find(token); });
  Value valid = b.select(section.isQ, found.isKey, found.valid);
  Value page = b.select(section.isQ, b.i64(0), found.page);
  return {valid, found.isKey, page, b.select(section.isQ, token, found.row), found.key};
}

/// The row after its norm and its rotation, in F32.
ChunkValues change(const Step &step, const NewRow &row) {
  CacheOpEmitter &b = step.section.b;
  ChunkValues wide = widen(b, row.raw);
  // Loaded before the norm, whose lanes wait for one another.
  Angles angles = loadAngles(step.section, step.lane, row.position);
  Value weights = step.section.norm();
  ChunkValues normed = b.branch(
      b.isNull(weights), [&] { return wide; },
      [&] { return normalize(step.section, step.lane, step.source, wide, weights); });
  return b.branch(
      step.lane.isRotated, [&] { return rotate(step.section, normed, angles); }, [&] { return normed; });
}

ChunkValues changeIfAsked(const Step &step, const NewRow &row) {
  CacheOpEmitter &b = step.section.b;
  return b.branch(row.isChanged, [&] { return change(step, row); }, [&] { return widen(b, row.raw); });
}

/// Stores a row of F32 as elements of the source's type.
void storeRounded(const Step &step, const NewRow &row, const ChunkValues &wide) {
  CacheOpEmitter &b = step.section.b;
  storeRow(step.section, step.lane, wide, row.begin, step.source,
           [&](Value chunk) { return b.round(b.chunkOf(step.source), chunk); });
}

void appendAsSource(const Step &step, const NewRow &row) {
  step.section.b.branch(
      row.isChanged, [&] { storeRounded(step, row, change(step, row)); },
      [&] {
        auto same = [](Value chunk) { return chunk; };
        storeRow(step.section, step.lane, row.raw, row.begin, step.source, same, step.columns);
      });
}

void appendScaledRow(const Step &step, const NewRow &row) {
  const WorkgroupSection &section = step.section;
  CacheOpEmitter &b = section.b;
  Value given = loadPageScale(section, row.place, row.head, row.headScale);
  ChunkValues wide = changeIfAsked(step, row);
  Value scale = computeRowScale(section, step.lane, wide, step.cache.largest, row.place, row.head, given);
  b.branch(
      section.isQ, [&] { storeRounded(step, row, wide); },
      [&] {
        auto convert = [&](Value chunk) {
          return step.cache.convert(b, chunk, scale, b.isNull(section.scale()));
        };
        storeRow(section, step.lane, wide, row.begin, b.getI8Type(), convert, step.columns);
      });
}

void appendGroups(const Step &step, const NewRow &row) {
  const WorkgroupSection &section = step.section;
  CacheOpEmitter &b = section.b;
  ChunkValues wide = changeIfAsked(step, row);
  b.branch(
      section.isQ, [&] { storeRounded(step, row, wide); },
      [&] {
        ChunkValues chunks = b.branch(
            step.groups.regroups, [&] { return regroup(section, step.lane, step.groups, wide); },
            [&] { return wide; });
        Value firstScale = step.cache.hasScaleArray ? findScale(section, row.place, row.head) : Value();
        storeGroups(section, step.groups, chunks, {row.begin, firstScale}, step.cache.storeGrouped);
      });
}

void appendRow(const Step &step, Value number) {
  const WorkgroupSection &section = step.section;
  CacheOpEmitter &b = section.b;
  CacheOpEmitter::Division divided =
      b.divide(number, section.heads(), section.heads_magic(), section.heads_shift());
  NewRow row;
  Value token = b.zeroExtend(divided.quotient);
  row.head = b.zeroExtend(divided.rest);
  row.raw = loadRow(section, step.lane, step.source, token, row.head);
  Value positions = section.call.positions();
  Value isGiven = b.isFalse(b.isNull(positions));
  Value given = b.branch(
      isGiven, [&] { return b.load(b.getI32Type(), positions, token, 4); }, [&] { return b.i32(0); });
  if (step.cache.hasRowScales()) row.headScale = loadHeadScale(section, row.head);
  row.place = findPlace(section, token);
  row.position = b.select(isGiven, b.signExtend(given), row.place.key);
  b.when(row.place.valid, [&] {
    Value headOffset = b.mul(row.head, section.out_head_stride());
    Value rowOffset = findRow(section, row.place.row, step.columns);
    Value pageOffset = b.mul(row.place.page, section.out_page_stride());
    row.begin = b.add(b.add(pageOffset, rowOffset), headOffset);
    Value isRotated = b.lessUnsigned(b.i32(0), section.rotary_half());
    row.isChanged = b.either(b.isFalse(b.isNull(section.norm())), isRotated);
    if (step.cache.hasGroups())
      appendGroups(step, row);
    else if (step.cache.hasRowScales())
      appendScaledRow(step, row);
    else
      appendAsSource(step, row);
  });
}

} // namespace

void buildAppendStep(gpu::GPUFuncOp kernel, const CacheOpVariant &variant) {
  CacheOpEmitter b(kernel);
  b.setInsertionPointToStart(&kernel.getBody().front());
  const CacheType &cache = findCacheType(variant);
  // Memory bounds the kernel: waves hide its latency, and as many as these leave registers enough.
  const int32_t wavesPerSimd = cache.isConverted() ? 5 : 6;
  kernel->setAttr("sluice.waves_per_simd", b.getI32IntegerAttr(wavesPerSimd));

  fetchArguments(b);
  Value thread = ROCDL::ThreadIdXOp::create(b, b.getI32Type());
  Value group = ROCDL::BlockIdXOp::create(b, b.getI32Type());
  WorkgroupSection section(b, group);
  Columns columns;
  if (cache.mayHaveColumns) columns.are = b.both(section.isV(), section.hasMode(package::step_v_columns));
  Value rowLanesLog2 = section.lanes_log2();
  Value rowsLog2 = b.sub(b.i32(llvm::Log2_32(package::cache_op_threads)), rowLanesLog2);
  Value numberInRow = b.bitAnd(thread, b.sub(b.shiftLeft(b.i32(1), rowLanesLog2), b.i32(1)));
  LaneChunks lane = findChunks(section, numberInRow, rowLanesLog2);
  RowGroups groups;
  if (cache.hasGroups()) groups = findGroups(section, lane);
  const Step step = {cache, b.elementType(variant.from), section, lane, groups, columns};

  Value ownRow = b.shiftRight(thread, rowLanesLog2);
  Value first = b.add(b.shiftLeft(b.sub(group, section.first_group()), rowsLog2), ownRow);
  Value stride = b.zeroExtend(b.shiftLeft(section.groups(), rowsLog2));
  Value rows = b.zeroExtend(section.row_count());
  b.loop(b.zeroExtend(first), rows, stride, [&](Value row) { appendRow(step, b.truncateInteger(row)); });
}

} // namespace sluice

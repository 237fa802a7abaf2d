//===- Sluice.cpp - verifiers, printing and the swizzle of the sluice dialect ---------------------------===//
#include "dialect/Sluice.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace sluice;

#include "dialect/SluiceDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/SluiceAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/SluiceTypes.cpp.inc"

#define GET_OP_CLASSES
#include "dialect/SluiceOps.cpp.inc"

void SluiceDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/SluiceAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/SluiceTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialect/SluiceOps.cpp.inc"
      >();
}

LogicalResult XorSwizzleAttr::verify(function_ref<InFlightDiagnostic()> emitError, unsigned chunk,
                                     unsigned period, unsigned rowsPerPhase) {
  if (chunk == 0)
    return period == 0 && rowsPerPhase == 1 ? success() : emitError() << "the identity swizzle is <0, 0>";
  if (!llvm::isPowerOf2_32(chunk) || !llvm::isPowerOf2_32(period))
    return emitError() << "swizzle chunk " << chunk << " and period " << period << " must be powers of two";
  if (!llvm::isPowerOf2_32(rowsPerPhase))
    return emitError() << "swizzle rows per phase are " << rowsPerPhase << ", not a power of two";
  return success();
}

LogicalResult LdsTileType::verify(function_ref<InFlightDiagnostic()> emitError, unsigned rows,
                                  unsigned columns, Type elementType, XorSwizzleAttr swizzle,
                                  bool byColumns) {
  if (rows == 0 || columns == 0) return emitError() << "an LDS tile has at least one row and one column";
  if (!elementType.isIntOrFloat() || elementType.getIntOrFloatBitWidth() % 8 != 0)
    return emitError() << "element type " << elementType << " is not a whole number of bytes";
  unsigned chunk = swizzle.getChunk(), period = swizzle.getPeriod();
  if (chunk != 0 && columns % (chunk * period) != 0)
    return emitError() << "swizzle <" << chunk << ", " << period << "> leaves a row of " << columns
                       << " columns: " << chunk * period << " must divide it";
  if (!byColumns) return success();
  unsigned bytes = elementType.getIntOrFloatBitWidth() / 8;
  if (bytes > 2 || chunk != 0 || rows % ColumnLayout{columns, bytes}.rows() != 0 ||
      columns < ColumnLayout::leastColumns || !llvm::isPowerOf2_32(columns))
    return emitError() << "a tile by columns has elements of one or two bytes, no swizzle, a multiple of "
                       << "32 or 16 rows, and a power of two of columns, " << ColumnLayout::leastColumns
                       << " or more";
  return success();
}

// !sluice.lds_tile<64x128xf16>, !sluice.lds_tile<64x128xf16, xor<8, 8>> or, with two rows per phase,
// !sluice.lds_tile<64x64xf16, xor<8, 8, 2>>, or !sluice.lds_tile<64x128xi8, by_columns>
Type LdsTileType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type element;
  auto swizzle = XorSwizzleAttr::get(parser.getContext(), 0, 0);
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(element))
    return {};
  if (shape.size() != 2) {
    parser.emitError(parser.getNameLoc(), "an LDS tile has two dimensions");
    return {};
  }
  bool byColumns = false;
  if (succeeded(parser.parseOptionalComma())) {
    byColumns = succeeded(parser.parseOptionalKeyword("by_columns"));
    if (!byColumns) {
      unsigned chunk, period, rowsPerPhase = 1;
      if (parser.parseKeyword("xor") || parser.parseLess() || parser.parseInteger(chunk) ||
          parser.parseComma() || parser.parseInteger(period) ||
          (succeeded(parser.parseOptionalComma()) && parser.parseInteger(rowsPerPhase)) ||
          parser.parseGreater())
        return {};
      swizzle = XorSwizzleAttr::getChecked([&] { return parser.emitError(parser.getNameLoc()); },
                                           parser.getContext(), chunk, period, rowsPerPhase);
      if (!swizzle) return {};
    }
  }
  if (parser.parseGreater()) return {};
  return getChecked([&] { return parser.emitError(parser.getNameLoc()); }, parser.getContext(),
                    unsigned(shape[0]), unsigned(shape[1]), element, swizzle, byColumns);
}

void LdsTileType::print(AsmPrinter &printer) const {
  printer << '<' << getRows() << 'x' << getColumns() << 'x' << getElementType();
  if (XorSwizzleAttr swizzle = getSwizzle(); swizzle.getChunk() != 0) {
    printer << ", xor<" << swizzle.getChunk() << ", " << swizzle.getPeriod();
    if (swizzle.getRowsPerPhase() != 1) printer << ", " << swizzle.getRowsPerPhase();
    printer << '>';
  }
  if (getByColumns()) printer << ", by_columns";
  printer << '>';
}

/// Bytes that K and V may consist of, and that are converted.
static bool isByteNumber(Type type) {
  return isa<Float8E4M3FNUZType, Float8E5M2FNUZType, Float8E4M3FNType, Float8E5M2Type>(type) ||
         type.isInteger(8);
}

LogicalResult AttentionOp::verify() {
  bool isFp8 = isa<Float8E4M3FNUZType>(getElementType());
  if (!getElementType().isF16() && !getElementType().isBF16() && !isFp8)
    return emitOpError() << "element type is " << getElementType()
                         << "; kernels exist for f16, bf16 and f8E4M3FNUZ";
  if (isFp8 != getOType().has_value() || (isFp8 && !getOType()->isF16() && !getOType()->isBF16()))
    return emitOpError() << "o_type is " << getOTypeAttr() << " with elements of " << getElementType()
                         << "; with f8E4M3FNUZ it must be f16 or bf16, with other types it must be absent";
  unsigned rows = getWaveRows(), waves = getWaves();
  if (rows != 16 && rows != 32) return emitOpError() << "wave_rows is " << rows << "; it must be 16 or 32";
  constexpr unsigned mostWaves = 16; // of a workgroup, which has at most 1024 lanes
  if (waves == 0 || waves > mostWaves)
    return emitOpError() << "waves is " << waves << "; it must be 1 to " << mostWaves;
  unsigned rowsAtATime = waves * rows;
  if (getTileQ() == 0 || getTileQ() % rows != 0 ||
      (rowsAtATime % getTileQ() != 0 && (!getVInK() || getTileQ() != 2 * rowsAtATime)))
    return emitOpError() << "tile_q is " << getTileQ() << "; " << waves << " waves of " << rows
                         << " rows compute " << rowsAtATime << ", or a part of them several times"
                         << (getVInK() ? ", or twice as many" : "");
  constexpr unsigned readColumns = 32; // of Q, by the lanes of a wave together
  if (rowBlocks() != 1 && getHeadDimQk() % readColumns != 0)
    return emitOpError() << "head_dim_qk is " << getHeadDimQk()
                         << "; with two blocks of rows a wave it must be a "
                         << "multiple of " << readColumns;
  // Joining gives a wave one of four registers, which are neighbouring columns.
  constexpr unsigned joiningWaves = 4;
  if (wavesDivideKeys() && (rows != 16 || getTileQ() != rows || waves != joiningWaves))
    return emitOpError() << "tile_q is " << getTileQ() << ", so that " << waves << " waves of " << rows
                         << " rows divide the keys; " << joiningWaves << " waves of the same 16 rows do";
  // The columns of a wave are whole reads of one panel.
  constexpr unsigned leastColumns = 128;
  if (columnGroups() != 1 && (rows != 16 || getHeadDimV() % (columnGroups() * leastColumns) != 0 ||
                              !llvm::isPowerOf2_32(getHeadDimV()) || getHeadDimV() > 512))
    return emitOpError() << "tile_q is " << getTileQ() << ", so that " << columnGroups() << " waves divide "
                         << getHeadDimV() << " columns; they need " << leastColumns
                         << " or a multiple each, of 512 columns at most";
  if (rows == 32 && getVInK()) return emitOpError() << "has 32 rows a wave; v_in_k needs 16";
  unsigned columns = isFp8 ? 64 : 16;
  if (getHeadDimQk() % columns != 0 || getHeadDimV() % columns != 0)
    return emitOpError() << "head dims are " << getHeadDimQk() << " and " << getHeadDimV()
                         << "; they must be multiples of " << columns;
  if (getVInK() && getHeadDimV() > getHeadDimQk())
    return emitOpError() << "head dims are " << getHeadDimQk() << " and " << getHeadDimV()
                         << "; with v_in_k V's is not larger";
  // P of a step fills whole operands of the second product.
  unsigned keys = isFp8 ? 32 : rows;
  if (getTileKv() == 0 || getTileKv() % keys != 0)
    return emitOpError() << "tile_kv is " << getTileKv() << ", not a multiple of " << keys;
  if (std::optional<Type> type = getKvType(); type && !isByteNumber(*type))
    return emitOpError() << "has a kv_type of " << *type
                         << "; it must be f8E4M3FNUZ, f8E5M2FNUZ, f8E4M3FN, f8E5M2 or i8";
  if (std::optional<StringRef> blocks = getKvBlocks()) {
    if (*blocks != "q8_0" && *blocks != "q4_0" && *blocks != "u4")
      return emitOpError() << "has kv_blocks '" << *blocks << "'; they are q8_0, q4_0 or u4";
    constexpr unsigned columnsOfLoads = 128; // eight for each lane of a row
    if (isFp8 || getKvType() || !wavesDivideKeys() || getHeadDimQk() % columnsOfLoads != 0 ||
        getHeadDimV() % columnsOfLoads != 0)
      return emitOpError()
             << "has kv_blocks; waves of f16 or bf16 that divide the keys of heads of a multiple of "
             << columnsOfLoads << " read them";
  }
  if (getVByColumns() && (!wavesDivideKeys() || isFp8 || getKvBlocks()))
    return emitOpError()
           << "has v_by_columns; waves of f16 or bf16 that divide the keys, not in blocks, read them";
  if (isFp8 && getKvType()) return emitOpError() << "has elements of f8E4M3FNUZ; kv_type is for wider ones";
  if (!(*this)->getParentOfType<gpu::GPUFuncOp>()) return emitOpError() << "must be inside a gpu.func";
  return success();
}

/// A vector read from or written to a tile fits its element type and its swizzle chunks.
static LogicalResult verifyAccess(Operation *op, StringRef verb, LdsTileType tile, VectorType vector) {
  if (vector.getRank() != 1 || vector.getElementType() != tile.getElementType())
    return op->emitOpError() << verb << ' ' << vector << " in a tile of " << tile.getElementType();
  unsigned length = vector.getNumElements(), chunk = tile.getSwizzle().getChunk();
  if (chunk != 0 && chunk % length != 0)
    return op->emitOpError() << verb << ' ' << length << " elements across swizzle chunks of " << chunk;
  unsigned unitElements = ColumnLayout::unitBytes / tile.getElementBytes();
  if (tile.getByColumns() && length != 1 && length != ColumnLayout::quadRows && length != unitElements)
    return op->emitOpError() << verb << ' ' << length
                             << " elements of a tile by columns; the number must be 1, "
                             << ColumnLayout::quadRows << " or " << unitElements;
  return success();
}

LogicalResult PagesOp::verify() {
  if (bool(getMagic()) != bool(getShift()))
    return emitOpError() << "has one of magic and shift; a division needs both";
  if (bool(getHoleBegin()) != bool(getHoleEnd()))
    return emitOpError() << "has one of hole_begin and hole_end; a hole needs both";
  if (bool(getLastLow()) != bool(getLastHigh()))
    return emitOpError() << "has one of last_low and last_high; an entry needs both halves";
  if (std::optional<int64_t> rows = getConstantIntValue(getRows()); rows && *rows < 1)
    return emitOpError() << "rows is " << *rows << "; it must be at least 1";
  return success();
}

/// Shared by page_lookup, row_addresses and a gather.
static LogicalResult verifyPagedRows(Operation *op, Value firstRow, Value pages) {
  if (!pages.getDefiningOp<PagesOp>())
    return op->emitOpError() << "has pages that are not the result of a sluice.pages";
  if (std::optional<int64_t> first = getConstantIntValue(firstRow); first && *first < 0)
    return op->emitOpError() << "first_row is " << *first << "; a gather begins at row 0";
  return success();
}

LogicalResult PageLookupOp::verify() {
  return verifyPagedRows(*this, getFirstRow(), getPages());
}

LogicalResult RowAddressesOp::verify() {
  return verifyPagedRows(*this, getFirstRow(), getPages());
}

LogicalResult FoundRowsOp::verify() {
  auto pages = getPages().getDefiningOp<PagesOp>();
  if (!pages) return emitOpError() << "has pages that are not the result of a sluice.pages";
  if (!pages.getLastLow()) return emitOpError() << "has pages without a last one: every entry is a page";
  return success();
}

/// Shared by async_dma and fetch_rows.
template <typename Op> static LogicalResult verifyRows(Op op, LdsTileType tile, bool isFetched) {
  constexpr unsigned granule = AsyncDmaOp::columnGranule;
  if (Value limit = op.getColumnLimit())
    if (std::optional<int64_t> columns = getConstantIntValue(limit);
        columns && (*columns < 0 || *columns % granule != 0))
      return op.emitOpError() << "column_limit is " << *columns << "; it must be a multiple of " << granule
                              << " and not negative";
  if (tile.getByColumns() && !(isFetched && (op.isGather() || op.getCloseRows())))
    return op.emitOpError()
           << "fills a tile by columns, which copies of close rows or rows in pages do, through registers";
  if (!op.isGather()) {
    if (op.getPages() || op.getPageStride() || op.getPackLog2() || op.getPackStride())
      return op.emitOpError() << "names pages but no entries of a table to gather with";
    return success();
  }
  if (op.getCloseRows())
    return op.emitOpError() << "promises close rows of a gather, whose pages may be anywhere";
  if (!op.getPages() || !op.getPageStride())
    return op.emitOpError() << "gathers without pages or page_stride";
  if (bool(op.getPackLog2()) != bool(op.getPackStride()))
    return op.emitOpError() << "has one of pack_log2 and pack_stride; packs need both";
  return verifyPagedRows(op, op.getFirstRow(), op.getPages());
}

/// Copies through registers: elements of a source, which become those of a tile.
static LogicalResult verifyElements(Operation *op, Type source, LdsTileType tile) {
  Type element = tile.getElementType();
  // 8 columns of wider elements are more than one load can fetch.
  bool isCopied = source == element && tile.getElementBytes() <= 2;
  bool isConverted = isByteNumber(source) && (element.isF16() || element.isBF16());
  if (!isCopied && !isConverted)
    return op->emitOpError() << "goes through registers from " << source << " into a tile of " << element
                             << "; elements of 1 or 2 bytes do into a tile of their own type, and FP8 of a "
                                "cache and i8 into one of f16 or bf16";
  return success();
}

/// The size of a load in registers, in dwords.
static unsigned dwordsOfLoad(Type source) {
  return FetchRowsOp::laneColumns * source.getIntOrFloatBitWidth() / 32;
}

static LogicalResult verifyFetched(Operation *op, Value rows, Type source) {
  unsigned dwords = dwordsOfLoad(source);
  auto type = cast<VectorType>(rows.getType());
  if (!type.getElementType().isInteger(32) || type.getRank() != 1 || type.getNumElements() % dwords != 0)
    return op->emitOpError() << "has rows of type " << type << "; they must be dwords, " << dwords
                             << " for each load of a lane";
  return success();
}

LogicalResult AsyncDmaOp::verify() {
  if (std::optional<Type> source = getSourceType())
    if (failed(verifyElements(*this, *source, getTile().getType()))) return failure();
  return verifyRows(*this, getTile().getType(), isFetched());
}

LogicalResult FetchRowsOp::verify() {
  if (failed(verifyElements(*this, getSourceType(), cast<LdsTileType>(getTileType()))) ||
      failed(verifyFetched(*this, getRows(), getSourceType())))
    return failure();
  return verifyRows(*this, cast<LdsTileType>(getTileType()), /*isFetched=*/true);
}

VectorType FetchRowsOp::rowsType(LdsTileType tile, Type source, unsigned lanes) {
  // A tile that the lanes cannot share is refused when the op is distributed.
  unsigned loads = llvm::divideCeil(tile.getRows() * tile.getColumns(), lanes * laneColumns);
  return VectorType::get(loads * dwordsOfLoad(source), IntegerType::get(tile.getContext(), 32));
}

FetchRowsOp FetchRowsOp::of(AsyncDmaOp copy, OpBuilder &builder, unsigned lanes) {
  LdsTileType tile = copy.getTile().getType();
  Type source = *copy.getSourceType();
  return FetchRowsOp::create(builder, copy.getLoc(), rowsType(tile, source, lanes), copy.getBase(),
                             copy.getFirstRow(), copy.getRowLimit(), copy.getRowStride(),
                             copy.getColumnLimit(), copy.getEntries(), copy.getPages(), copy.getPageStride(),
                             copy.getPackLog2(), copy.getPackStride(), copy.getCloseRows(), source, tile);
}

LogicalResult LandRowsOp::verify() {
  if (failed(verifyElements(*this, getSourceType(), getTile().getType()))) return failure();
  return verifyFetched(*this, getRows(), getSourceType());
}

/// Only an allocation owns bytes that can be given away.
static LogicalResult verifyLiveMark(Operation *op, Value tile) {
  if (!tile.getDefiningOp<LdsAllocOp>())
    return op->emitOpError() << "marks a tile that is not the result of a sluice.lds_alloc";
  return success();
}

LogicalResult LiveInOp::verify() {
  return verifyLiveMark(*this, getTile());
}

LogicalResult LiveOutOp::verify() {
  return verifyLiveMark(*this, getTile());
}

LogicalResult LdsReadOp::verify() {
  return verifyAccess(*this, "reads", getTile().getType(), cast<VectorType>(getValue().getType()));
}

LogicalResult LdsWriteOp::verify() {
  return verifyAccess(*this, "writes", getTile().getType(), cast<VectorType>(getValue().getType()));
}

LogicalResult StoreTileOp::verify() {
  if (getColumns().size() != getValues().size())
    return emitOpError() << "names " << getColumns().size() << " columns for " << getValues().size()
                         << " values";
  if (getValues().empty()) return emitOpError() << "stores nothing";
  auto elements =
      llvm::map_range(getValues().getTypes(), [](Type type) { return getElementTypeOrSelf(type); });
  if (!llvm::all_equal(elements)) return emitOpError() << "stores elements of several types";
  if (size_t(llvm::sum_of(getPanelValues())) != getValues().size())
    return emitOpError() << "has " << llvm::sum_of(getPanelValues()) << " values in panels, and "
                         << getValues().size() << " in all";
  return success();
}

LogicalResult RecordEventOp::verify() {
  if (getToken().getDefiningOp<RecordEventOp>())
    return emitOpError() << "records an event on a stream; its token is an event already";
  return success();
}

namespace {
/// XorSwizzle's arithmetic as operations; constants are folded.
struct IrArithmetic {
  using Number = Value;
  OpBuilder &builder;
  Location loc;

  Value constant(uint32_t value) const {
    return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(int32_t(value)));
  }
  Value shiftRight(Value a, unsigned bits) const {
    return builder.createOrFold<arith::ShRUIOp>(loc, a, constant(bits));
  }
  Value shiftLeft(Value a, unsigned bits) const {
    return builder.createOrFold<arith::ShLIOp>(loc, a, constant(bits));
  }
  Value mask(Value a, uint32_t bits) const {
    return builder.createOrFold<arith::AndIOp>(loc, a, constant(bits));
  }
  Value flip(Value a, Value b) const { return builder.createOrFold<arith::XOrIOp>(loc, a, b); }
  Value add(Value a, Value b) const { return builder.createOrFold<arith::AddIOp>(loc, a, b); }
  Value multiply(Value a, uint32_t b) const {
    return builder.createOrFold<arith::MulIOp>(loc, a, constant(b));
  }
};
} // namespace

Value sluice::swizzleColumn(OpBuilder &builder, Location loc, LdsTileType tile, Value row, Value column) {
  return tile.getSwizzle().getPolicy().column(IrArithmetic{builder, loc}, row, column);
}

/// How many of the lower bits are known to be 0.
static unsigned trailingZeros(Value a) {
  if (std::optional<int64_t> constant = getConstantIntValue(a)) return llvm::countr_zero(uint32_t(*constant));
  if (auto sum = a.getDefiningOp<arith::AddIOp>())
    return std::min(trailingZeros(sum.getLhs()), trailingZeros(sum.getRhs()));
  if (auto product = a.getDefiningOp<arith::MulIOp>())
    return trailingZeros(product.getLhs()) + trailingZeros(product.getRhs());
  return 0;
}

/// Removes a constant summand if `isApart` finds that it can be handled separately from the other one.
static uint32_t takeConstant(Value &a, function_ref<bool(uint32_t constant, Value rest)> isApart) {
  auto sum = a.getDefiningOp<arith::AddIOp>();
  if (!sum) return 0;
  Value rest = sum.getLhs();
  std::optional<int64_t> constant = getConstantIntValue(sum.getRhs());
  if (!constant) {
    rest = sum.getRhs();
    constant = getConstantIntValue(sum.getLhs());
  }
  if (!constant || !isApart(uint32_t(*constant), rest)) return 0;
  a = rest;
  return uint32_t(*constant);
}

/// The bits of an offset are sums modulo 2 of bits of row and column, so the contribution of constants is
/// known. They are added last: only then does LLVM turn them into offsets of instructions.
static Value offsetByColumns(IrArithmetic a, ColumnLayout layout, Value row, Value column) {
  uint32_t constantRow =
      takeConstant(row, [&](uint32_t constant, Value) { return constant % layout.rows() == 0; });
  uint32_t constantColumn = takeConstant(column, [](uint32_t constant, Value rest) {
    return llvm::Log2_32_Ceil(constant + 1) <= trailingZeros(rest);
  });
  uint32_t constant = layout.offset(constantRow, constantColumn);
  // The only part in which several bits of a column are combined.
  uint32_t flipped = constant & (layout.columns / 8 - 1) * ColumnLayout::unitBytes;
  Value offset = layout.offset(IrArithmetic(a), row, column);
  if (flipped != 0) offset = a.flip(offset, a.constant(flipped));
  return constant == flipped ? offset : a.add(offset, a.constant(constant - flipped));
}

Value sluice::offsetInTile(OpBuilder &builder, Location loc, LdsTileType tile, Value row, Value column) {
  IrArithmetic a{builder, loc};
  if (tile.getByColumns())
    return offsetByColumns(a, {tile.getColumns(), tile.getElementBytes()}, row, column);
  Value stored = swizzleColumn(builder, loc, tile, row, column);
  Value rowOffset = a.multiply(row, tile.getRowBytes()),
        columnOffset = a.multiply(stored, tile.getElementBytes());
  return a.add(rowOffset, columnOffset);
}

void sluice::createWaveFence(OpBuilder &builder, Location loc) {
  LLVM::FenceOp::create(builder, loc, LLVM::AtomicOrdering::acq_rel, "wavefront");
}

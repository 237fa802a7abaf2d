//===- Sluice.cpp - verifiers, printing and the swizzle of the sluice dialect
//----------------------------===//
#include "dialect/Sluice.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
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
                                     unsigned period) {
  if (chunk == 0) return period == 0 ? success() : emitError() << "the identity swizzle is <0, 0>";
  if (!llvm::isPowerOf2_32(chunk) || !llvm::isPowerOf2_32(period))
    return emitError() << "swizzle chunk " << chunk << " and period " << period << " must be powers of two";
  return success();
}

LogicalResult LdsTileType::verify(function_ref<InFlightDiagnostic()> emitError, unsigned rows,
                                  unsigned columns, Type elementType, XorSwizzleAttr swizzle) {
  if (rows == 0 || columns == 0) return emitError() << "an LDS tile has at least one row and one column";
  if (!elementType.isIntOrFloat() || elementType.getIntOrFloatBitWidth() % 8 != 0)
    return emitError() << "element type " << elementType << " is not a whole number of bytes";
  unsigned chunk = swizzle.getChunk(), period = swizzle.getPeriod();
  if (chunk != 0 && columns % (chunk * period) != 0)
    return emitError() << "swizzle <" << chunk << ", " << period << "> leaves a row of " << columns
                       << " columns: " << chunk * period << " must divide it";
  return success();
}

// !sluice.lds_tile<64x128xf16> or !sluice.lds_tile<64x128xf16, xor<8, 8>>
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
  if (succeeded(parser.parseOptionalComma())) {
    unsigned chunk, period;
    if (parser.parseKeyword("xor") || parser.parseLess() || parser.parseInteger(chunk) ||
        parser.parseComma() || parser.parseInteger(period) || parser.parseGreater())
      return {};
    swizzle = XorSwizzleAttr::getChecked([&] { return parser.emitError(parser.getNameLoc()); },
                                         parser.getContext(), chunk, period);
    if (!swizzle) return {};
  }
  if (parser.parseGreater()) return {};
  return getChecked([&] { return parser.emitError(parser.getNameLoc()); }, parser.getContext(),
                    unsigned(shape[0]), unsigned(shape[1]), element, swizzle);
}

void LdsTileType::print(AsmPrinter &printer) const {
  printer << '<' << getRows() << 'x' << getColumns() << 'x' << getElementType();
  if (XorSwizzleAttr swizzle = getSwizzle(); swizzle.getChunk() != 0)
    printer << ", xor<" << swizzle.getChunk() << ", " << swizzle.getPeriod() << '>';
  printer << '>';
}

LogicalResult AttentionOp::verify() {
  if (!getElementType().isF16() && !getElementType().isBF16())
    return emitOpError() << "element type is " << getElementType() << "; kernels exist for f16 and bf16";
  if (getHeadDim() != 64 && getHeadDim() != 128)
    return emitOpError() << "head_dim is " << getHeadDim() << "; kernels exist for 64 and 128";
  if (getTileQ() != getWaves() * 32)
    return emitOpError() << "tile_q is " << getTileQ() << "; a wave computes 32 rows, so " << getWaves()
                         << " waves need " << getWaves() * 32;
  if (getTileKv() % 32 != 0) return emitOpError() << "tile_kv is " << getTileKv() << ", not a multiple of 32";
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
  return success();
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
  if (!llvm::all_equal(getValues().getTypes())) return emitOpError() << "stores values of several types";
  return success();
}

Value sluice::swizzleColumn(OpBuilder &builder, Location loc, LdsTileType tile, Value row, Value column) {
  unsigned chunk = tile.getSwizzle().getChunk(), period = tile.getSwizzle().getPeriod();
  if (chunk == 0) return column;
  auto constant = [&](unsigned value) {
    return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(value));
  };
  // column ^ ((row % period) * chunk): flips chunk numbers, keeps the place within a chunk.
  Value phase = arith::AndIOp::create(builder, loc, row, constant(period - 1));
  Value flip = arith::ShLIOp::create(builder, loc, phase, constant(llvm::Log2_32(chunk)));
  return arith::XOrIOp::create(builder, loc, column, flip);
}

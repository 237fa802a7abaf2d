//===- Sluice.h - the sluice dialect: tiles in LDS and the copies that fill them --------------*- C++ -*-===//
#pragma once

#include "dialect/ColumnLayout.h"
#include "dialect/Swizzle.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"

#include "dialect/SluiceDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/SluiceAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/SluiceTypes.h.inc"

#define GET_OP_CLASSES
#include "dialect/SluiceOps.h.inc"

namespace sluice {

/// On an scf.if with two sides: whether the first side is the usual one.
inline constexpr llvm::StringLiteral usualSide = "sluice.usual";

/// On a kernel that lacks registers: nothing may start early; or, for copies, nothing is kept in registers
/// from before loops.
inline constexpr llvm::StringLiteral fewRegisters = "sluice.few_registers",
                                     noAddresses = "sluice.no_addresses";

/// XorSwizzle::column of the tile's policy as operations on i32 values, in elements; the identity emits
/// nothing.
mlir::Value swizzleColumn(mlir::OpBuilder &builder, mlir::Location loc, LdsTileType tile, mlir::Value row,
                          mlir::Value column);

/// The byte offset of element (row, column) in the tile, as operations on i32 values.
mlir::Value offsetInTile(mlir::OpBuilder &builder, mlir::Location loc, LdsTileType tile, mlir::Value row,
                         mlir::Value column);

/// A fence of wavefront scope: no instruction, but LDS accesses keep their order across it. (One of workgroup
/// scope would wait for all copies in flight.)
void createWaveFence(mlir::OpBuilder &builder, mlir::Location loc);

} // namespace sluice

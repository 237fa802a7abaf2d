//===- LowerToRocdl.cpp - LDS tiles and barriers to LLVM and ROCDL operations ---------------------------===//
//
//   lds_alloc    a byte range of one LDS array per kernel, at its offset if it has one, and an alias scope
//   lds_read     llvm.load from that range, swizzled, in the tile's scope, noalias with all disjoint tiles
//   lds_write    llvm.store, with the same range and scope
//   load_to_lds  rocdl.raw.ptr.buffer.load.lds into that range, in the tile's scope
//   gather_to_lds  rocdl.global.load.lds, the same, with none of the wave's LDS accesses in flight
//   counted_load  llvm.amdgcn.raw.ptr.atomic.buffer.load: LLVM never repeats, merges, moves or drops it, and
//                waits for its result by its place among the vector-memory instructions
//   zeros        the address of one constant array per kernel
//   lds_wait     s_waitcnt lgkmcnt(0), between fences of wavefront scope
//   barrier      s_waitcnt lgkmcnt(0) ; s_barrier, between fences of wavefront scope
//
// The scopes tell the backend which tile a direct-to-LDS load writes, so that it adds no vmcnt(0) before the
// read of another. They are true because every tile has a static address. A read is never noalias with its
// own tile, nor with one that shares bytes with it: if one of our waits were missing, the backend would still
// insert one.
//
// LLVM 22 counts global_load_lds in lgkmcnt (llvm-project pull request 179305); the hardware counts it only
// in vmcnt. An LDS access issued before such a load and waited for after it would get a wait that is too weak
// by one. So no LDS access is in flight there: lgkmcnt(0) precedes each load, and no LDS access may be
// scheduled up across it.
//
// The barrier is a raw s_barrier: a workgroup fence would drain the copies in flight with vmcnt(0). LDS reads
// complete before it (lgkmcnt), because after it another wave may overwrite the data they read.
//
//===----------------------------------------------------------------------------------------------------===//
#include "lowering/Passes.h"
#include "target/RequireChip.h"
#include "target/WaitCounters.h"

#include "mlir/Dialect/AMDGPU/IR/AMDGPUDialect.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

namespace sluice {
#define GEN_PASS_DEF_LOWERTOROCDL
#include "lowering/Passes.h.inc"

using namespace mlir;

namespace {

constexpr unsigned ldsAddressSpace = 3;
constexpr unsigned tileAlignment = 128; // one pass over the 32 banks

struct TilePlace {
  unsigned offset;
  LLVM::AliasScopeAttr scope;
};

class KernelLowering {
public:
  KernelLowering(gpu::GPUModuleOp module, gpu::GPUFuncOp kernel, const Chip &chip)
      : module(module), kernel(kernel), chip(chip) {}

  LogicalResult run() {
    if (failed(placeTiles())) return failure();
    if (arenaBytes > chip.ldsBytes)
      return kernel.emitError() << "needs " << arenaBytes << " bytes of LDS; " << chip.name << " has "
                                << chip.ldsBytes;
    if (arenaBytes != 0) createArena();
    createZeros();
    SmallVector<Operation *> dead;
    kernel.walk([&](Operation *op) {
      OpBuilder builder(op);
      if (auto read = dyn_cast<LdsReadOp>(op))
        lower(builder, read);
      else if (auto write = dyn_cast<LdsWriteOp>(op))
        lower(builder, write);
      else if (auto load = dyn_cast<LoadToLdsOp>(op))
        lower(builder, load);
      else if (auto gather = dyn_cast<GatherToLdsOp>(op))
        lower(builder, gather);
      else if (auto load = dyn_cast<CountedLoadOp>(op))
        lower(builder, load);
      else if (auto zeros = dyn_cast<ZerosOp>(op))
        lower(builder, zeros);
      else if (auto barrier = dyn_cast<BarrierOp>(op))
        lower(builder, barrier);
      else if (auto wait = dyn_cast<LdsWaitOp>(op))
        lower(builder, wait);
      else if (auto hold = dyn_cast<HoldOp>(op))
        lower(builder, hold);
      else if (auto mfma = dyn_cast<amdgpu::MFMAOp>(op); mfma && mfma->hasAttr("sluice.held"))
        lower(builder, mfma);
      else if (!isa<LiveInOp, LiveOutOp>(op))
        return;
      dead.push_back(op);
    });
    for (Operation *op : dead)
      op->erase();
    for (auto &[tile, place] : places)
      tile.getDefiningOp()->erase();
    return success();
  }

private:
  /// At the offsets that reuse-lds chose, or one after the other.
  LogicalResult placeTiles() {
    MLIRContext *context = kernel.getContext();
    auto domain =
        LLVM::AliasScopeDomainAttr::get(context, StringAttr::get(context, kernel.getName() + ".lds"));
    unsigned decided = 0;
    kernel.walk([&](LdsAllocOp alloc) {
      decided += alloc.getOffset().has_value();
      unsigned offset = alloc.getOffset().value_or(llvm::alignTo(arenaBytes, tileAlignment));
      auto scope = LLVM::AliasScopeAttr::get(domain);
      places[alloc.getTile()] = {offset, scope};
      arenaBytes = std::max(arenaBytes, offset + alloc.getTile().getType().getBytes());
    });
    if (decided != 0 && decided != places.size())
      return kernel.emitError() << "has an offset for " << decided << " of " << places.size()
                                << " LDS tiles; all or none must have one";
    for (auto &[tile, place] : places)
      if (place.offset % tileAlignment != 0)
        return tile.getDefiningOp()->emitError()
               << "offset " << place.offset << " is not a multiple of " << tileAlignment;
    return success();
  }

  void createArena() {
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), arenaBytes);
    arena = LLVM::GlobalOp::create(builder, kernel.getLoc(), type, /*isConstant=*/false,
                                   LLVM::Linkage::Internal, (kernel.getName() + "_lds").str(), Attribute(),
                                   tileAlignment, ldsAddressSpace);
  }

  /// One array of zeros, as long as the longest that an op of the kernel asks for.
  void createZeros() {
    unsigned bytes = 0;
    kernel.walk([&](ZerosOp op) { bytes = std::max<unsigned>(bytes, op.getBytes()); });
    if (bytes == 0) return;
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), bytes);
    zeros =
        LLVM::GlobalOp::create(builder, kernel.getLoc(), type, /*isConstant=*/true, LLVM::Linkage::Internal,
                               (kernel.getName() + "_zeros").str(), Attribute(), /*alignment=*/16,
                               /*addrSpace=*/1);
    Block *block = builder.createBlock(&zeros.getInitializerRegion());
    builder.setInsertionPointToStart(block);
    Value zero = LLVM::ZeroOp::create(builder, kernel.getLoc(), type);
    LLVM::ReturnOp::create(builder, kernel.getLoc(), zero);
  }

  ArrayAttr scopeOf(OpBuilder &builder, Value tile) { return builder.getArrayAttr({places[tile].scope}); }
  unsigned endOf(Value tile) const {
    return places.lookup(tile).offset + cast<LdsTileType>(tile.getType()).getBytes();
  }
  ArrayAttr disjointScopes(OpBuilder &builder, Value tile) {
    SmallVector<Attribute> scopes;
    for (auto &[other, place] : places)
      if (place.offset >= endOf(tile) || endOf(other) <= places[tile].offset) scopes.push_back(place.scope);
    return scopes.empty() ? ArrayAttr() : builder.getArrayAttr(scopes);
  }

  Value pointer(OpBuilder &builder, Location loc, Value tile, Value byteOffset) {
    auto type = LLVM::LLVMPointerType::get(builder.getContext(), ldsAddressSpace);
    Value base = LLVM::AddressOfOp::create(builder, loc, arena);
    Value start = LLVM::GEPOp::create(builder, loc, type, builder.getI8Type(), base,
                                      ArrayRef<LLVM::GEPArg>{int32_t(places[tile].offset)},
                                      LLVM::GEPNoWrapFlags::inbounds);
    return LLVM::GEPOp::create(builder, loc, type, builder.getI8Type(), start,
                               ArrayRef<LLVM::GEPArg>{byteOffset}, LLVM::GEPNoWrapFlags::inbounds);
  }

  /// Splits from `column` the part that the swizzle does not change, and returns it. The swizzle permutes
  /// within a whole number of phases: lanes whose columns differ by such a number share one address.
  static unsigned moveOutOfSwizzle(OpBuilder &builder, Location loc, LdsTileType type, Value &column) {
    unsigned span = std::max(1u, type.getSwizzle().getChunk() * type.getSwizzle().getPeriod());
    auto sum = column.getDefiningOp<arith::AddIOp>();
    auto first = sum ? sum.getLhs().getDefiningOp<arith::ConstantIntOp>() : arith::ConstantIntOp();
    if (!first) return 0;
    unsigned moved = first.value() / span * span;
    auto rest = builder.getI32IntegerAttr(first.value() - moved);
    column = arith::AddIOp::create(builder, loc, arith::ConstantOp::create(builder, loc, rest), sum.getRhs());
    return moved;
  }

  /// The address of element (row, column).
  Value elementPointer(OpBuilder &builder, Location loc, Value tile, Value row, Value column) {
    auto type = cast<LdsTileType>(tile.getType());
    unsigned moved =
        hasFewAddresses && !type.getByColumns() ? moveOutOfSwizzle(builder, loc, type, column) : 0;
    Value offset = offsetInTile(builder, loc, type, row, column);
    auto bytes = builder.getI32IntegerAttr(moved * type.getElementBytes());
    if (moved != 0)
      offset = arith::AddIOp::create(builder, loc, offset, arith::ConstantOp::create(builder, loc, bytes));
    return pointer(builder, loc, tile, offset);
  }

  static unsigned bytesOf(Value vector) {
    auto type = cast<VectorType>(vector.getType());
    return type.getNumElements() * type.getElementType().getIntOrFloatBitWidth() / 8;
  }

  /// The type of loads and stores: LLVM has no 8-bit floats, and uses bytes.
  static Type typeInMemory(Value vector) {
    auto type = cast<VectorType>(vector.getType());
    if (LLVM::isCompatibleType(type)) return type;
    unsigned bits = type.getElementType().getIntOrFloatBitWidth();
    return VectorType::get(type.getShape(), IntegerType::get(type.getContext(), bits));
  }

  void lower(OpBuilder &builder, LdsReadOp read) {
    Location loc = read.getLoc();
    Value place = elementPointer(builder, loc, read.getTile(), read.getRow(), read.getColumn());
    auto load = LLVM::LoadOp::create(builder, loc, typeInMemory(read.getValue()), place,
                                     /*alignment=*/bytesOf(read.getValue()));
    load.setAliasScopesAttr(scopeOf(builder, read.getTile()));
    if (ArrayAttr disjoint = disjointScopes(builder, read.getTile())) load.setNoaliasScopesAttr(disjoint);
    read.getValue().replaceAllUsesWith(
        builder.createOrFold<arith::BitcastOp>(loc, read.getValue().getType(), load.getResult()));
  }

  void lower(OpBuilder &builder, LdsWriteOp write) {
    Location loc = write.getLoc();
    Value place = elementPointer(builder, loc, write.getTile(), write.getRow(), write.getColumn());
    Value value =
        builder.createOrFold<arith::BitcastOp>(loc, typeInMemory(write.getValue()), write.getValue());
    auto store = LLVM::StoreOp::create(builder, loc, value, place,
                                       /*alignment=*/bytesOf(write.getValue()));
    store.setAliasScopesAttr(scopeOf(builder, write.getTile()));
    if (ArrayAttr disjoint = disjointScopes(builder, write.getTile())) store.setNoaliasScopesAttr(disjoint);
  }

  void lower(OpBuilder &builder, LoadToLdsOp op) {
    Location loc = op.getLoc();
    auto i32 = [&](unsigned value) -> Value {
      return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(value));
    };
    auto load = ROCDL::RawPtrBufferLoadLdsOp::create(
        builder, loc, TypeRange(),
        ValueRange{op.getResource(), pointer(builder, loc, op.getTile(), op.getLdsOffset()),
                   i32(op.getBytes()), op.getVoffset(), /*soffset=*/i32(0), /*offset=*/i32(0),
                   /*aux=*/i32(0)});
    load.setAliasScopesAttr(scopeOf(builder, op.getTile()));
    if (ArrayAttr disjoint = disjointScopes(builder, op.getTile())) load.setNoaliasScopesAttr(disjoint);
  }

  void lower(OpBuilder &builder, GatherToLdsOp op) {
    // LDS instructions stay after this; VALU, MFMA and transcendental ones may cross (mask bits of
    // llvm.amdgcn.sched.barrier).
    constexpr int32_t letArithmeticCross = 0x2 | 0x8 | 0x400;
    Location loc = op.getLoc();
    Value place = pointer(builder, loc, op.getTile(), op.getLdsOffset());
    ROCDL::SWaitcntOp::create(builder, loc, WaitCounters{.lgkmcnt = 0}.encode());
    auto load =
        ROCDL::GlobalLoadLDSOp::create(builder, loc, op.getAddress(), place, /*size=*/op.getBytes(),
                                       /*offset=*/0, /*aux=*/0, ArrayAttr(), ArrayAttr(), ArrayAttr());
    load.setAliasScopesAttr(scopeOf(builder, op.getTile()));
    if (ArrayAttr disjoint = disjointScopes(builder, op.getTile())) load.setNoaliasScopesAttr(disjoint);
    ROCDL::SchedBarrier::create(builder, loc, letArithmeticCross);
  }

  void lower(OpBuilder &builder, CountedLoadOp op) {
    Location loc = op.getLoc();
    Value zero = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(0));
    auto load = LLVM::CallIntrinsicOp::create(
        builder, loc, builder.getI32Type(), builder.getStringAttr("llvm.amdgcn.raw.ptr.atomic.buffer.load"),
        ValueRange{op.getResource(), op.getVoffset(), /*soffset=*/zero, /*aux=*/zero});
    op.replaceAllUsesWith(load.getResult(0));
  }

  void lower(OpBuilder &builder, ZerosOp op) {
    op.replaceAllUsesWith(LLVM::AddressOfOp::create(builder, op.getLoc(), zeros).getResult());
  }

  /// LLVM puts all MFMAs of a function with results of that size in VGPRs, or all in AccVGPRs.
  void lower(OpBuilder &builder, amdgpu::MFMAOp mfma) {
    Location loc = mfma.getLoc();
    auto operand = [&](Value value) -> Value {
      return LLVM::BitcastOp::create(builder, loc, VectorType::get(2, builder.getI32Type()), value);
    };
    bool isF16 = getElementTypeOrSelf(mfma.getSourceA().getType()).isF16();
    std::string text = llvm::formatv("{0}v_mfma_f32_{1}x{2}x{3}{4} $0, $1, $2, $0",
                                     isSettledFor(mfma) ? "" : "s_nop 1\n", mfma.getM(), mfma.getN(),
                                     mfma.getK(), isF16 ? chip.f16MfmaSuffix : chip.bf16MfmaSuffix);
    ValueRange operands{operand(mfma.getSourceA()), operand(mfma.getSourceB()), mfma.getDestC()};
    mfma.replaceAllUsesWith(assembly(builder, loc, mfma.getType(), operands, text, "=a,v,v,0"));
  }

  /// Whether two wait states separate the MFMA from the instructions that compute its operands: at least two
  /// other MFMAs are between, or the operands are from before the block and two MFMAs of the block precede
  /// this one. LLVM does not see what inline assembly reads.
  static bool isSettledFor(amdgpu::MFMAOp mfma) {
    Operation *earlier = mfma;
    for (unsigned n = 0; n < 2; ++n) {
      do
        earlier = earlier->getPrevNode();
      while (earlier && !isa<amdgpu::MFMAOp>(earlier));
      if (!earlier) return false;
    }
    return llvm::all_of(ValueRange{mfma.getSourceA(), mfma.getSourceB()}, [&](Value operand) {
      Operation *definition = operand.getDefiningOp();
      return !definition || definition->getBlock() != mfma->getBlock() ||
             definition->isBeforeInBlock(earlier);
    });
  }

  void lower(OpBuilder &builder, HoldOp hold) {
    // All held values are of this shape. One s_nop has at most 16 wait states.
    unsigned states = hold.getSettles() ? chip.mfmaResultWaitStates({32, 32, 8}) : 0;
    std::string text;
    for (; states > 16; states -= 16)
      text += "s_nop 15\n";
    if (states != 0) text += "s_nop " + std::to_string(states - 1);
    hold.replaceAllUsesWith(
        assembly(builder, hold.getLoc(), hold.getValue().getType(), hold.getValue(), text, "=a,0"));
  }

  static Value assembly(OpBuilder &builder, Location loc, Type type, ValueRange operands, StringRef text,
                        StringRef constraints) {
    return LLVM::InlineAsmOp::create(builder, loc, type, operands, text, constraints,
                                     /*has_side_effects=*/false, /*is_align_stack=*/false,
                                     LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr())
        .getResult(0);
  }

  void lower(OpBuilder &builder, BarrierOp barrier) {
    completeLds(builder, barrier.getLoc(), [&] { ROCDL::SBarrierOp::create(builder, barrier.getLoc()); });
  }

  void lower(OpBuilder &builder, LdsWaitOp wait) {
    completeLds(builder, wait.getLoc(), [] {});
  }

  static void completeLds(OpBuilder &builder, Location loc, llvm::function_ref<void()> then) {
    createWaveFence(builder, loc);
    ROCDL::SWaitcntOp::create(builder, loc, WaitCounters{.lgkmcnt = 0}.encode());
    then();
    createWaveFence(builder, loc);
  }

  gpu::GPUModuleOp module;
  gpu::GPUFuncOp kernel;
  const Chip &chip;
  // If tiles take turns, rows take all registers, and each address has to serve many columns. Otherwise LLVM
  // keeps more addresses to save arithmetic.
  const bool hasFewAddresses = kernel->hasAttr("sluice.tiles_take_turns");
  LLVM::GlobalOp arena, zeros;
  unsigned arenaBytes = 0;
  llvm::MapVector<Value, TilePlace> places;
};

struct LowerToRocdlPass : impl::LowerToRocdlBase<LowerToRocdlPass> {
  using LowerToRocdlBase::LowerToRocdlBase;

  void runOnOperation() override {
    const Chip *target = requireChip(*this, getOperation(), chip);
    if (!target) return signalPassFailure();
    for (gpu::GPUFuncOp kernel : getOperation().getOps<gpu::GPUFuncOp>())
      if (failed(KernelLowering(getOperation(), kernel, *target).run())) return signalPassFailure();
  }
};

} // namespace
} // namespace sluice

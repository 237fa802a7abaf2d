//===- LdsAccess.cpp - which operation accesses which LDS tile, and when copies land --------------------===//
#include "transforms/LdsAccess.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace sluice {

namespace {

/// The kind of access and the tile, for the operations that access one.
std::pair<std::optional<LdsAccess::Kind>, Value> classify(Operation *op) {
  using Result = std::pair<std::optional<LdsAccess::Kind>, Value>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([](LdsReadOp read) { return Result(LdsAccess::read, read.getTile()); })
      .Case([](LdsWriteOp write) { return Result(LdsAccess::write, write.getTile()); })
      .Case([](LandRowsOp land) { return Result(LdsAccess::write, land.getTile()); })
      .Case([](LoadToLdsOp load) { return Result(LdsAccess::copyPart, load.getTile()); })
      .Case([](GatherToLdsOp load) { return Result(LdsAccess::copyPart, load.getTile()); })
      .Case([](AsyncDmaOp copy) { return Result(LdsAccess::copyWhole, copy.getTile()); })
      .Default([](Operation *) { return Result(); });
}

} // namespace

FailureOr<LdsTiles> LdsTiles::of(gpu::GPUFuncOp kernel) {
  LdsTiles tiles;
  kernel.walk([&](LdsAllocOp alloc) {
    tiles.numbers[alloc.getTile()] = tiles.size();
    tiles.allocations.push_back(alloc);
  });
  WalkResult result = kernel.walk([&](Operation *op) -> WalkResult {
    auto [kind, tile] = classify(op);
    for (Value operand : op->getOperands()) {
      if (!isa<LdsTileType>(operand.getType())) continue;
      if (!tiles.numbers.contains(operand))
        return op->emitError() << "uses an LDS tile that is not the result of a sluice.lds_alloc";
      if (!kind && !isa<LiveInOp, LiveOutOp>(op))
        return op->emitError() << "uses an LDS tile, but does not say how";
    }
    if (kind == LdsAccess::copyPart || kind == LdsAccess::copyWhole) {
      tiles.copies[op] = tiles.copiedTile.size();
      tiles.copiedTile.push_back(tiles.numberOf(tile));
    }
    return WalkResult::advance();
  });
  if (result.wasInterrupted()) return failure();
  return tiles;
}

std::optional<LdsAccess> LdsTiles::accessOf(Operation *op) const {
  auto [kind, tile] = classify(op);
  if (!kind) return std::nullopt;
  return LdsAccess{*kind, numberOf(tile)};
}

std::string LdsTiles::describe(unsigned tile) const {
  LdsAllocOp alloc = allocations[tile];
  LdsTileType type = alloc.getTile().getType();
  std::string text = "tile " + std::to_string(tile);
  if (alloc.getLabel()) text += " '" + alloc.getLabel()->str() + "'";
  llvm::raw_string_ostream(text) << " (" << type.getRows() << 'x' << type.getColumns() << 'x'
                                 << type.getElementType() << ", " << type.getBytes() << " bytes)";
  return text;
}

llvm::BitVector CopiesInFlight::apply(Operation *op) {
  llvm::BitVector landedIn(tiles->size());
  auto landIf = [&](auto condition) {
    for (auto [copy, marks] : llvm::enumerate(marksSince)) {
      if (marks == landed || !condition(copy, marks)) continue;
      marks = landed;
      landedIn.set(tiles->copiedTile[copy]);
    }
  };
  if (auto copy = tiles->copies.find(op); copy != tiles->copies.end()) {
    marksSince[copy->second] = 0;
  } else if (isa<AsyncMarkOp>(op)) {
    for (uint8_t &marks : marksSince)
      if (marks < landed - 1) ++marks;
  } else if (auto wait = dyn_cast<WaitMarksOp>(op)) {
    // The youngest groups may stay. A copy that no mark has closed belongs to no group and is not waited for.
    landIf([&](unsigned, unsigned marks) { return marks > wait.getOutstanding(); });
  } else if (auto wait = dyn_cast<AsyncWaitOp>(op)) {
    auto waited = tiles->copies.find(wait.getToken().getDefiningOp());
    if (waited != tiles->copies.end())
      landIf([&](unsigned copy, unsigned) { return copy == waited->second; });
  }
  return landedIn;
}

llvm::BitVector CopiesInFlight::targets() const {
  llvm::BitVector result(tiles->size());
  for (auto [copy, marks] : llvm::enumerate(marksSince))
    if (marks != landed) result.set(tiles->copiedTile[copy]);
  return result;
}

void CopiesInFlight::join(const CopiesInFlight &other) {
  for (auto [mine, theirs] : llvm::zip_equal(marksSince, other.marksSince))
    mine = std::min(mine, theirs);
}

bool isCollective(Operation *op) {
  for (Region &region : op->getRegions())
    for (Block &block : region)
      for (Operation &inner : block)
        if (isa<AsyncDmaOp, AsyncWaitOp, BarrierOp, LandRowsOp, StoreTileOp>(inner) || isCollective(&inner))
          return true;
  return false;
}

} // namespace sluice

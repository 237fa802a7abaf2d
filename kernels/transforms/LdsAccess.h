//===- LdsAccess.h - which operation touches which LDS tile, and when copies land -------------*- C++ -*-===//
#pragma once

#include "dialect/Sluice.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"

namespace sluice {

struct LdsAccess {
  enum Kind {
    read,
    write,     // of a part: what the rest of the tile holds stays
    copyPart,  // the same, asynchronously
    copyWhole, // asynchronously: nothing stays of what the tile held
  };
  Kind kind;
  unsigned tile; // its number
};

/// The LDS tiles of a kernel, numbered in the order of their allocations.
class LdsTiles {
public:
  /// Fails, with an error, where a tile is used in a way that cannot be followed.
  static mlir::FailureOr<LdsTiles> of(mlir::gpu::GPUFuncOp kernel);

  unsigned size() const { return allocations.size(); }
  LdsAllocOp operator[](unsigned tile) const { return allocations[tile]; }
  unsigned numberOf(mlir::Value tile) const { return numbers.lookup(tile); }
  std::optional<LdsAccess> accessOf(mlir::Operation *op) const;

  /// "tile 2 (64x128xf16, 16384 bytes)"
  std::string describe(unsigned tile) const;

private:
  friend class CopiesInFlight;
  llvm::SmallVector<LdsAllocOp> allocations;
  llvm::DenseMap<mlir::Value, unsigned> numbers;
  llvm::DenseMap<mlir::Operation *, unsigned> copies; // numbers of the operations that copy
  llvm::SmallVector<unsigned> copiedTile;             // by number of the copy
};

/// Which asynchronous copies of this wave may still be writing. One in flight on some path is in flight.
class CopiesInFlight {
public:
  explicit CopiesInFlight(const LdsTiles &tiles)
      : tiles(&tiles), marksSince(tiles.copiedTile.size(), landed) {}

  /// Returns the tiles that a copy has landed in by waiting for it at `op`.
  llvm::BitVector apply(mlir::Operation *op);
  llvm::BitVector targets() const;

  void join(const CopiesInFlight &other);
  bool operator==(const CopiesInFlight &other) const { return marksSince == other.marksSince; }

private:
  static constexpr uint8_t landed = 255;
  const LdsTiles *tiles;
  // By number of the copy: marks made since it was last issued. Copies land in the order of their issue, so
  // the last issue stands for earlier ones; where paths meet, so does the one with fewer marks behind it.
  llvm::SmallVector<uint8_t> marksSince;
};

/// Whether all waves go the same way through the regions of `op`: they do where they meet inside. What lies
/// in other regions may be run by some waves at any time, or not at all.
bool isCollective(mlir::Operation *op);

} // namespace sluice

//===- LdsAccess.h - which operation accesses which LDS tile, and when copies land ------------*- C++ -*-===//
#pragma once

#include "dialect/Sluice.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"

namespace sluice {

struct LdsAccess {
  enum Kind {
    read,
    write,     // of a part: the rest of the tile keeps its contents
    copyPart,  // the same, asynchronously
    copyWhole, // asynchronously: the tile keeps none of its contents
  };
  Kind kind;
  unsigned tile; // its number
};

/// The LDS tiles of a kernel, numbered in the order of their allocations.
class LdsTiles {
public:
  /// Fails, with an error, if a tile is used in a way that cannot be followed.
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
  llvm::DenseMap<mlir::Operation *, unsigned> copies; // the number of each operation that copies
  llvm::SmallVector<unsigned> copiedTile;             // by copy number
};

/// The asynchronous copies of this wave that may still be writing. A copy in flight on any path counts.
class CopiesInFlight {
public:
  explicit CopiesInFlight(const LdsTiles &tiles)
      : tiles(&tiles), marksSince(tiles.copiedTile.size(), landed) {}

  /// Returns the tiles whose copies land by the wait at `op`.
  llvm::BitVector apply(mlir::Operation *op);
  llvm::BitVector targets() const;

  void join(const CopiesInFlight &other);
  bool operator==(const CopiesInFlight &other) const { return marksSince == other.marksSince; }

private:
  static constexpr uint8_t landed = 255;
  const LdsTiles *tiles;
  // By copy number: the marks made since the copy was last issued. Copies land in the order of their issue,
  // so the last issue covers earlier ones; where paths meet, the issue followed by fewer marks covers the
  // other.
  llvm::SmallVector<uint8_t> marksSince;
};

/// Whether all waves take the same path through the regions of `op`: they do if they meet inside. Some waves
/// may run the contents of other regions at any time, or never.
bool isCollective(mlir::Operation *op);

} // namespace sluice

//===- StructuredFlow.h - dataflow over loops and branches that are still regions -------------*- C++ -*-===//
//
// Follows a state through a function, forwards or backwards, until nothing changes. Loops and branches
// describe their own control flow (RegionBranchOpInterface), so for, while, if and others are one case.
//
// A state has `void join(const State &)`, which may only add possibilities, and ==.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/STLExtras.h"

#include <map>
#include <unordered_map>

namespace sluice {

/// A path through an operation with regions; null means the operation itself.
struct RegionEdge {
  mlir::Region *from; // its end, or the point before the operation
  mlir::Region *to;   // its start, or the point after the operation
};
llvm::SmallVector<RegionEdge> regionEdges(mlir::Operation *op);

/// Fails, with an error, if control flow below `root` uses other operations.
mlir::LogicalResult verifyStructured(mlir::Operation *root);

enum class Direction { forward, backward };

template <typename State, Direction direction> class StructuredFlow {
public:
  using Transfer = llvm::function_ref<void(mlir::Operation *, State &)>;

  /// Follows `initial` through `block`. `transfer` is applied to every operation; for an operation with
  /// regions, before they are entered.
  StructuredFlow(mlir::Block &block, State initial, Transfer transfer) : transfer(transfer) {
    follow(block, std::move(initial));
  }

  const State &before(mlir::Operation *op) const { return states.at(op).first; }
  const State &after(mlir::Operation *op) const { return states.at(op).second; }

private:
  static constexpr bool isForward = direction == Direction::forward;

  State follow(mlir::Block &block, State state) {
    auto visit = [&](mlir::Operation &op) {
      State entry = state;
      transfer(&op, state);
      if (op.getNumRegions() != 0) state = followRegions(&op, state);
      // The last visit has all possibilities: every loop ends with a visit that added nothing.
      if (isForward)
        states.insert_or_assign(&op, std::make_pair(std::move(entry), state));
      else
        states.insert_or_assign(&op, std::make_pair(state, std::move(entry)));
    };
    if (isForward)
      llvm::for_each(block, visit);
    else
      llvm::for_each(llvm::reverse(block), visit);
    return state;
  }

  State followRegions(mlir::Operation *op, const State &entry) {
    // The states that flow into each region, and (null) out of the operation.
    std::map<mlir::Region *, State> arriving;
    llvm::SetVector<mlir::Region *> pending;
    llvm::SmallVector<RegionEdge> edges = regionEdges(op);
    auto leave = [&](mlir::Region *source, const State &state) {
      for (const RegionEdge &edge : edges) {
        auto [from, to] = isForward ? std::pair(edge.from, edge.to) : std::pair(edge.to, edge.from);
        if (from != source) continue;
        auto [place, isNew] = arriving.try_emplace(to, state);
        State joined = place->second;
        joined.join(state);
        if (!isNew && joined == place->second) continue;
        place->second = std::move(joined);
        if (to) pending.insert(to);
      }
    };
    leave(nullptr, entry);
    while (!pending.empty()) {
      mlir::Region *region = pending.front();
      pending.remove(region);
      leave(region, follow(region->front(), arriving.at(region)));
    }
    return arriving.at(nullptr);
  }

  Transfer transfer;
  std::unordered_map<mlir::Operation *, std::pair<State, State>> states;
};

} // namespace sluice

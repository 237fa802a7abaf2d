//===- InterleaveMfma.cpp - vector work in the shadow of MFMAs ------------------------------------------===//
//
// An MFMA occupies the matrix core for many issue turns of its wave and the vector unit for one. The code of
// a tile is written as the algorithm reads: read fragments, multiply, then the softmax. This pass reorders
// each block so that vector instructions issue while the matrix core is busy, and LDS reads a few MFMAs
// before their results are needed.
//
//   before: 16 x lds_read, 32 x mfma, 32 x (fma, exp2, add)
//   after:  lds_read ... mfma, fma, exp2, add, lds_read, mfma, fma, exp2, add, mfma ...
//
// This is list scheduling of one wave that issues in order. MFMAs keep their order and issue as soon as the
// matrix core is free and their operands are ready; the ready instruction that is due first fills the turns
// between. An instruction is due when an MFMA or a copy needs it, at the time that user would issue if MFMAs
// followed each other without a gap. Instructions that feed an MFMA are scheduled only a few MFMAs ahead,
// which bounds the registers they hold. Times are in turns of 4 clocks.
//
// Copies are spread over the MFMAs of their phase, between two barriers: issued in a row they fill the queue
// of the address path, and the wave waits. Instructions that only a copy needs are scheduled with it.
//
// A wait and a barrier move up past the last MFMAs of their phase, to where all reads are answered and all
// copies issued: they order accesses to memory, not MFMAs. The reads of the next phase are then answered when
// its first MFMA could issue, and the vector work left over from this phase fills the next one.
//
// In kernels with few registers (`sluice.few_registers`), the instructions that feed MFMAs come first, then
// everything else in source order, and barriers move up only at the end of a block.
//
// Operations without side effects move, but never across another write or a nested region; reads and copies
// also never cross a barrier. Copies, whose halves may be loads and writes, and marks keep their order. A
// copy may pass reads: no wave reads the bytes it writes before the next wait and barrier, and every reader
// of their former contents is past the last one. Safe direction: any order that respects the operands
// computes the same; the cost model only decides how fast.
//
//===----------------------------------------------------------------------------------------------------===//
#include "target/RequireChip.h"
#include "transforms/Copies.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/AMDGPU/IR/AMDGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

namespace sluice {
#define GEN_PASS_DEF_INTERLEAVEMFMA
#include "transforms/Passes.h.inc"

using namespace mlir;

namespace {

// The chip table knows how many turns an instruction takes. A turn is left between a vector instruction and
// the user of its result, although the hardware requires none.
constexpr unsigned vectorLatency = 2;
// Reads and the arithmetic of operands are scheduled this many MFMAs ahead of their use.
constexpr unsigned readAhead = 8, feedAhead = 4;
// A copy also sets M0, and waits for that. Copies are this many MFMAs apart if there are enough MFMAs, and
// avoid the last ones of a segment: their data is waited for soon.
constexpr unsigned copyTurns = 4, copyDistance = 2, lastWithoutCopies = 4;
// If the segment itself ends with a wait for them, as many MFMAs as memory takes to answer.
constexpr unsigned waitedForTurns = 160;
constexpr unsigned none = ~0u;

struct Node {
  Operation *op = nullptr;
  unsigned turns = 1, latency = vectorLatency;
  unsigned passes = 0; // of the matrix core
  unsigned port = 0;   // turns for which it occupies the vector port
  bool read = false;
  bool matrix() const { return passes != 0; }
  unsigned missing = 0;  // operands of this segment not scheduled yet
  unsigned ready = 0;    // turn at which all scheduled operands are ready
  unsigned phase = 0;    // how many barriers precede it in the source
  unsigned feeds = none; // number of the first MFMA of its phase that needs it
  unsigned after = 0;    // how many MFMAs come before it
  int due = 0;           // turn by which it should be scheduled, if MFMAs follow each other without a gap
  SmallVector<unsigned> users;
};

bool callsOneOf(Operation *op, ArrayRef<StringRef> intrinsics) {
  auto call = dyn_cast<LLVM::CallIntrinsicOp>(op);
  return call && llvm::is_contained(intrinsics, call.getIntrin());
}

bool isTranscendental(Operation *op) {
  return callsOneOf(op, {"llvm.amdgcn.exp2", "llvm.amdgcn.log", "llvm.amdgcn.rcp"});
}

/// Register renaming, and operations the backend hoists out of loops: no instruction here.
bool isFree(Operation *op) {
  return isOpaque(op) || isa<arith::ConstantOp, vector::BitCastOp, vector::ExtractOp, vector::FromElementsOp,
                             vector::ShuffleOp, LLVM::BitcastOp, LLVM::PoisonOp, HoldOp>(op);
}

bool isSync(Operation *op) {
  return isa<WaitMarksOp, BarrierOp>(op);
}

/// A wait or a barrier that only the block's end follows.
bool endsBlock(Operation &op) {
  Operation *next = &op;
  while (next && isSync(next))
    next = next->getNextNode();
  return next != &op && next == &op.getBlock()->back();
}

bool mayMove(Operation &op, bool fewRegisters) {
  if (op.getNumRegions() != 0 || &op == &op.getBlock()->back()) return false;
  if (isOpaque(&op) || isa<ROCDL::BallotOp>(op) || (isSync(&op) && !endsBlock(op))) return !fewRegisters;
  // MLIR does not know the effects of a called intrinsic.
  return computesOnly(&op) || isa<LdsReadOp>(op) || isOfCopies(&op) || isSync(&op) || isTranscendental(&op) ||
         callsOneOf(&op, {"llvm.amdgcn.perm"});
}

unsigned passesOf(amdgpu::MFMAOp mfma, const Chip &chip) {
  Type source = mfma.getSourceA().getType();
  unsigned bytes = llvm::divideCeil(getElementTypeOrSelf(source).getIntOrFloatBitWidth(), 8);
  return chip.mfmaPasses({unsigned(mfma.getM()), unsigned(mfma.getN()), unsigned(mfma.getK())}, bytes);
}

/// Counts arithmetic on integers as scalar: most of it is.
unsigned portTurns(const Node &node, const Chip &chip) {
  if (node.turns == 0 || node.read || isCopy(node.op) || isSync(node.op)) return 0;
  if (isTranscendental(node.op)) return chip.turns.transcendental;
  bool isInteger =
      isa<arith::ArithDialect>(node.op->getDialect()) && node.op->getResult(0).getType().isInteger();
  return isInteger ? 0 : 1;
}

class Segment {
public:
  /// `fewRegisters`: instructions that feed MFMAs come before all others, since their registers are freed
  /// there.
  Segment(ArrayRef<Operation *> ops, const Chip &chip, bool fewRegisters) : fewRegisters(fewRegisters) {
    llvm::DenseMap<Operation *, unsigned> index;
    for (Operation *op : ops) {
      unsigned number = nodes.size();
      index[op] = number;
      Node node;
      node.op = op;
      auto loop = op->getParentOfType<LoopLikeOpInterface>();
      bool invariant = true;
      llvm::SmallDenseSet<unsigned> sources;
      if (isSync(op)) sources.insert(reads.begin(), reads.end());
      if (isa<LdsReadOp>(op)) {
        reads.push_back(number);
        if (lastSync != none) sources.insert(lastSync);
      }
      if (isOfCopies(op) || isSync(op)) {
        invariant = false;
        if (!copyNumbers.empty()) sources.insert(copyNumbers.back());
        copyNumbers.push_back(number);
      }
      node.phase = phases.size();
      if (isa<BarrierOp>(op)) phases.push_back(matrices.size());
      if (isSync(op)) lastSync = number;
      for (Value operand : op->getOperands()) {
        auto found = index.find(operand.getDefiningOp());
        if (found != index.end())
          sources.insert(found->second);
        else
          invariant &= fewRegisters || !loop || loop.isDefinedOutsideOfLoop(operand);
      }
      for (unsigned source : sources) {
        nodes[source].users.push_back(number);
        invariant &= invariants[source];
      }
      node.missing = sources.size();
      if (auto mfma = dyn_cast<amdgpu::MFMAOp>(op)) node.passes = passesOf(mfma, chip);
      node.read = isa<LdsReadOp, ROCDL::DsBpermuteOp>(op);
      invariants.push_back(invariant && isa<arith::ArithDialect>(op->getDialect()) &&
                           op->getResult(0).getType().isInteger());
      if (isFree(op) || invariants.back()) {
        node.turns = node.latency = 0;
      } else if (isCopy(op)) {
        node.turns = copyTurns;
      } else if (isOfCopies(op)) {
        node.turns = node.latency = 0; // a mark emits no instruction
      } else if (node.matrix()) {
        node.latency = node.passes + chip.waitStates.afterMfma + 1;
        matrices.push_back(number);
      } else if (node.read) {
        node.latency = chip.turns.ldsRead;
      } else if (isTranscendental(op)) {
        node.latency = chip.turns.transcendental + vectorLatency;
      }
      node.port = portTurns(node, chip);
      nodes.push_back(node);
    }
    for (auto [number, matrix] : llvm::enumerate(matrices))
      nodes[matrix].feeds = number;
    for (Node &node : llvm::reverse(nodes))
      for (unsigned user : node.users)
        if (nodes[user].phase == node.phase) node.feeds = std::min(node.feeds, nodes[user].feeds);
    phases.push_back(matrices.size());
    spreadCopies();
    findDueTimes();
  }

  unsigned matrixCount() const { return matrices.size(); }

  SmallVector<Operation *> schedule() {
    auto roots = llvm::to_vector(llvm::make_filter_range(
        llvm::seq<unsigned>(0, nodes.size()), [&](unsigned number) { return nodes[number].missing == 0; }));
    for (unsigned root : roots)
      open(root);
    while (order.size() < nodes.size()) {
      if (nextMatrix < matrices.size()) {
        Node &matrix = nodes[matrices[nextMatrix]];
        if (matrix.missing == 0 && matrix.ready <= now && matrixFree <= now && portFree <= now) {
          matrixFree = now + matrix.passes;
          ++nextMatrix;
          issue(matrix);
          continue;
        }
      }
      if (Node *best = choose())
        issue(*best);
      else
        ++now;
    }
    return order;
  }

private:
  void spreadCopies() {
    if (matrices.empty()) return;
    unsigned first = 0;
    for (auto [phase, end] : llvm::enumerate(phases)) {
      auto of =
          llvm::make_filter_range(copyNumbers, [&](unsigned number) { return nodes[number].phase == phase; });
      auto copies = llvm::to_vector(
          llvm::make_filter_range(of, [&](unsigned number) { return isCopy(nodes[number].op); }));
      bool isWaitedFor = llvm::any_of(of, [&](unsigned number) {
        auto wait = dyn_cast<WaitMarksOp>(nodes[number].op);
        return wait && wait.getOutstanding() == 0;
      });
      unsigned last = isWaitedFor ? waitedForTurns / nodes[matrices.front()].passes : lastWithoutCopies;
      unsigned count = copies.size(), usable = end - first - std::min(end - first, last);
      unsigned span = std::min(copyDistance * count, usable);
      for (auto [index, copy] : llvm::enumerate(copies))
        nodes[copy].after = first + index * span / count;
      first = end;
    }
    // Instructions that only copies need have time until then.
    for (Node &node : llvm::reverse(nodes)) {
      if (isCopy(node.op) || node.users.empty()) continue;
      unsigned first = none;
      for (unsigned user : node.users)
        first = std::min(first, nodes[user].after);
      node.after = first;
    }
  }

  void findDueTimes() {
    int passes = matrices.empty() ? 0 : nodes[matrices.front()].passes;
    for (Node &node : llvm::reverse(nodes)) {
      node.due = node.matrix()     ? int(node.feeds) * passes
                 : isCopy(node.op) ? int(node.after) * passes
                                   : int(matrices.size()) * passes;
      for (unsigned user : node.users)
        node.due = std::min(node.due, nodes[user].due - int(node.latency));
    }
  }

  /// All operands are scheduled. Instructions without cost go at once.
  void open(unsigned number) {
    Node &node = nodes[number];
    if (node.turns == 0)
      issue(node);
    else if (!node.matrix())
      candidates.push_back(number);
  }

  void issue(Node &node) {
    order.push_back(node.op);
    unsigned done = node.turns == 0 ? node.ready : now + node.latency;
    if (node.port != 0) portFree = now + node.port;
    now += node.turns;
    for (unsigned user : node.users) {
      Node &next = nodes[user];
      // The accumulator of a chain of MFMAs is forwarded.
      unsigned there = node.matrix() && next.matrix() ? now : done;
      next.ready = std::max(next.ready, there);
      if (--next.missing == 0) open(user);
    }
  }

  /// Reads first, then what is due first.
  Node *choose() {
    auto best = candidates.end();
    std::pair<unsigned, int> bestClass(none, 0);
    for (auto it = candidates.begin(); it != candidates.end(); ++it) {
      const Node &node = nodes[*it];
      if (node.ready > now || node.after > nextMatrix) continue;
      if (node.port != 0 && portFree > now) continue;
      unsigned ahead = node.feeds == none ? 0 : node.feeds - std::min(node.feeds, nextMatrix);
      if (node.feeds != none && ahead >= (node.read ? readAhead : feedAhead)) continue;
      bool isUrgent = node.read || isCopy(node.op) || isSync(node.op);
      std::pair<unsigned, int> itsClass(!isUrgent, isUrgent ? 0 : node.due);
      if (fewRegisters) itsClass = {isUrgent ? 0 : node.feeds != none ? 1 : 2, 0};
      if (itsClass < bestClass || (itsClass == bestClass && *it < *best)) {
        best = it;
        bestClass = itsClass;
      }
    }
    if (best == candidates.end()) return nullptr;
    Node *node = &nodes[*best];
    candidates.erase(best);
    return node;
  }

  const bool fewRegisters;
  SmallVector<Node> nodes;
  SmallVector<bool> invariants; // integer arithmetic on values that do not change in the loop
  SmallVector<unsigned> matrices, candidates, copyNumbers, reads;
  SmallVector<unsigned> phases; // by phase: how many MFMAs come before its end
  unsigned lastSync = none;
  SmallVector<Operation *> order;
  unsigned now = 0, nextMatrix = 0, matrixFree = 0, portFree = 0;
};

struct InterleaveMfmaPass : impl::InterleaveMfmaBase<InterleaveMfmaPass> {
  using InterleaveMfmaBase::InterleaveMfmaBase;

  void runOnOperation() override {
    const Chip *target = requireChip(*this, getOperation(), chip);
    if (!target) return signalPassFailure();
    WalkResult known = getOperation().walk([&](amdgpu::MFMAOp mfma) {
      if (passesOf(mfma, *target) != 0) return WalkResult::advance();
      mfma.emitOpError() << target->name << " has no MFMA of this shape and type";
      return WalkResult::interrupt();
    });
    if (known.wasInterrupted()) return signalPassFailure();
    bool fewRegisters = getOperation()->hasAttr(sluice::fewRegisters);
    getOperation().walk([&](Block *block) {
      SmallVector<Operation *> ops;
      for (Operation &op : llvm::make_early_inc_range(*block)) {
        if (mayMove(op, fewRegisters)) {
          ops.push_back(&op);
          continue;
        }
        interleave(ops, &op, *target, fewRegisters);
        ops.clear();
      }
    });
  }

  static void interleave(ArrayRef<Operation *> ops, Operation *end, const Chip &target, bool fewRegisters) {
    Segment segment(ops, target, fewRegisters);
    if (segment.matrixCount() < 2) return;
    for (Operation *op : segment.schedule())
      op->moveBefore(end);
  }
};

} // namespace
} // namespace sluice

//===- LowerAsyncMarks.cpp - marks and waits for marks to vmcnt waits -----------------------------------===//
//
// LLVM 22 has no marks: the hardware only counts this wave's vector-memory instructions, which complete in
// order. "At most n marked groups in flight" is therefore "at most as many instructions in flight as were
// issued after the (n+1)th youngest mark".
//
//   before: load_to_lds x8 ; async_mark ; load_to_lds x8 ; async_mark ; wait_marks 1
//   after:  load_to_lds x8 ; load_to_lds x8 ; s_waitcnt vmcnt(8)
//
// A forward analysis keeps, for each of the youngest marks, the number of instructions issued since. Where
// paths join it keeps the smaller number, and loops are iterated to a fixed point.
//
// Safe direction: a count may be too small (waits longer), never too large (a race). Only direct-to-LDS loads
// and counted_load are counted: each is exactly one vector-memory instruction, and none moves over a mark.
// LLVM does not reorder the intrinsics they become, which may write memory, and both machine schedulers are
// off (target/Codegen.cpp). Any other access to memory between a mark and its wait is not counted, so the
// wait covers that many more instructions: the backend may merge, split or drop the access, may turn it into
// a scalar load or schedule it before the mark. (A volatile access is certainly one instruction, but the
// backend waits for it with vmcnt(0) on the spot.) Nor does a wait before a loop count a counted_load whose
// value enters that loop: LLVM sinks the load below the test whether the loop is entered, and so below the
// wait.
//
//===----------------------------------------------------------------------------------------------------===//
#include "lowering/Passes.h"
#include "target/WaitCounters.h"

namespace sluice {
#define GEN_PASS_DEF_LOWERASYNCMARKS
#include "lowering/Passes.h.inc"

using namespace mlir;

namespace {

/// Whether a loop begins with the value, or with a value computed from it.
bool entersLoop(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    return isa<LoopLikeOpInterface>(user) || (isPure(user) && llvm::any_of(user->getResults(), entersLoop));
  });
}

bool isCounted(Operation &op) {
  return isa<LoadToLdsOp, GatherToLdsOp, CountedLoadOp, ROCDL::RawPtrBufferLoadLdsOp, ROCDL::GlobalLoadLDSOp,
             ROCDL::LoadToLDSOp>(op);
}

/// issuedSince[n]: instructions issued after the (n+1)th youngest mark. A mark that was never made needs no
/// wait; it is simply absent.
struct MarkState {
  static constexpr size_t depth = 16;
  SmallVector<unsigned> issuedSince;

  void issue() {
    for (unsigned &count : issuedSince)
      count = std::min(count + 1, WaitCounters::maxVmcnt);
  }
  void mark() {
    issuedSince.insert(issuedSince.begin(), 0);
    // The oldest mark kept represents all marks beyond the depth: its smaller count is safe for them.
    if (issuedSince.size() > depth) issuedSince.resize(depth);
  }
  void meet(const MarkState &other) {
    for (auto [mine, theirs] : llvm::zip(issuedSince, other.issuedSince))
      mine = std::min(mine, theirs);
    for (size_t n = issuedSince.size(); n < other.issuedSince.size(); ++n)
      issuedSince.push_back(other.issuedSince[n]);
  }
  bool operator==(const MarkState &other) const { return issuedSince == other.issuedSince; }

  unsigned vmcntFor(unsigned outstanding) const {
    if (issuedSince.size() == depth) outstanding = std::min<unsigned>(outstanding, depth - 1);
    return outstanding < issuedSince.size() ? issuedSince[outstanding] : WaitCounters::maxVmcnt;
  }
};

class MarkAnalysis {
public:
  /// Records for every wait below `block` the vmcnt it needs, and returns the state at the block's end.
  MarkState run(Block &block, MarkState state) {
    unsigned entering = 0; // loads whose values enter a loop below
    for (Operation &op : block) {
      if (isCounted(op)) {
        auto load = dyn_cast<CountedLoadOp>(op);
        entering += load && entersLoop(load.getResult());
        state.issue();
      } else if (isa<AsyncMarkOp>(op)) {
        state.mark();
      } else if (auto wait = dyn_cast<WaitMarksOp>(op)) {
        unsigned inFlight = state.vmcntFor(wait.getOutstanding());
        vmcnt[wait] = inFlight - std::min(entering, inFlight);
      } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
        MarkState otherwise = branch.elseBlock() ? run(*branch.elseBlock(), state) : state;
        state = run(*branch.thenBlock(), state);
        state.meet(otherwise);
      } else if (op.getNumRegions() != 0) {
        // The regions may run any number of times in any order, or never: iterate until their entry state is
        // stable. Counts only fall and the depth is bounded, so this ends.
        for (;;) {
          MarkState entry = state;
          for (Region &region : op.getRegions())
            if (!region.empty()) entry.meet(run(region.front(), state));
          if (entry == state) break;
          state = entry;
        }
      }
    }
    return state;
  }

  llvm::DenseMap<Operation *, unsigned> vmcnt;
};

struct LowerAsyncMarksPass : impl::LowerAsyncMarksBase<LowerAsyncMarksPass> {
  void runOnOperation() override {
    gpu::GPUFuncOp kernel = getOperation();
    bool undistributed = false;
    kernel.walk([&](AsyncDmaOp copy) {
      copy.emitError() << "must be distributed before marks can be counted";
      undistributed = true;
    });
    // Blocks of a region other than its first would be treated as if no mark reached them.
    bool unstructured = false;
    kernel.walk([&](Region *region) { unstructured |= !region->empty() && !region->hasOneBlock(); });
    if (unstructured) kernel.emitError() << "marks are counted in structured control flow only";
    if (undistributed || unstructured) return signalPassFailure();

    MarkAnalysis analysis;
    if (!kernel.getBody().empty()) analysis.run(kernel.getBody().front(), {});
    SmallVector<Operation *> done;
    SmallVector<Attribute> waits; // for readers of the kernel
    kernel.walk([&](Operation *op) {
      if (auto wait = dyn_cast<WaitMarksOp>(op)) {
        OpBuilder builder(wait);
        waits.push_back(builder.getStringAttr(llvm::Twine(wait.getOutstanding()) +
                                              " groups may be in flight: vmcnt(" +
                                              llvm::Twine(analysis.vmcnt[wait]) + ")"));
        // The fences keep LDS reads after the wait.
        createWaveFence(builder, wait.getLoc());
        ROCDL::SWaitcntOp::create(builder, wait.getLoc(),
                                  WaitCounters{.vmcnt = analysis.vmcnt[wait]}.encode());
        createWaveFence(builder, wait.getLoc());
        done.push_back(wait);
      } else if (isa<AsyncMarkOp>(op)) {
        done.push_back(op);
      }
    });
    for (Operation *op : done)
      op->erase();
    if (!waits.empty()) kernel->setAttr("sluice.waits", ArrayAttr::get(&getContext(), waits));
  }
};

} // namespace
} // namespace sluice

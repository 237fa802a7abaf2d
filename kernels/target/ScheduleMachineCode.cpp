//===- ScheduleMachineCode.cpp - the final order of instructions ----------------------------------------===//
//
// interleave-mfma orders operations before the code generator has added its instructions: the writes of M0
// before copies, addresses, constants, waits. This pass orders the machine code of each block that
// multiplies, after register allocation and the insertion of waits, and before the pass that fills the
// remaining hazards with s_nop.
//
//   before: s_add m0 ; s_nop ; buffer_load lds ; v_exp ; s_waitcnt lgkmcnt(3) ; v_perm ; s_waitcnt lgkmcnt(2)
//   after:  s_add m0 ; v_exp ; buffer_load lds ; s_waitcnt lgkmcnt(2) ; v_perm ...
//
// If one wait for LDS soon follows another, the first waits for both.
//
// This is list scheduling of one wave that issues in order, with the costs of interleave-mfma
// (InterleaveMfma.cpp): an MFMA issues as soon as the matrix core, the vector port and its operands are free;
// otherwise the first instruction in the former order that can. An instruction does not pass another if they
// share a register or a flag that one of them writes. Instructions that access memory, wait or are barriers
// keep their order, and users or overwriters of a load's result stay after the wait that was between them.
//
// Safe direction: an extra dependence only costs time. Costs decide how fast, never what is computed.
//
//===----------------------------------------------------------------------------------------------------===//
#include "target/ScheduleMachineCode.h"

#include "target/Chips.h"
#include "target/ScheduleChoices.h"
#include "target/WaitCounters.h"

#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/CodeGen/TargetRegisterInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/PassRegistry.h"

#include <optional>

namespace sluice {
namespace {

using namespace llvm;

enum class Kind { other, scalar, vector, transcendental, matrix, lds, memory, wait };

struct Node {
  MachineInstr *instruction;
  Kind kind;
  unsigned missing = 0, ready = 0;
  SmallVector<std::pair<unsigned, unsigned>, 8> users = {}; // and after how many turns
};

/// What instructions cost on a chip, in turns of 4 clk. All MFMAs count as one of 32x32x8, which most are.
struct Costs {
  static constexpr MfmaShape shape = {32, 32, 8};
  explicit Costs(const Chip &chip)
      : matrixPasses(chip.mfmaPasses(shape, 2)), transcendentalTurns(chip.turns.transcendental),
        matrixLatency(chip.mfmaResultWaitStates(shape) + 1), toMatrix(chip.waitStates.vectorToMatrix + 1),
        afterTranscendental(chip.waitStates.afterTranscendental + 1),
        afterMask(chip.waitStates.afterMask + 1), afterM0(chip.waitStates.afterM0 + 1) {}

  unsigned matrixPasses;        // until the matrix core is free
  unsigned transcendentalTurns; // until the vector port is free
  // From an instruction to a user of its result: the required wait states, and its own turn.
  unsigned matrixLatency, toMatrix, afterTranscendental, afterMask, afterM0;
};

/// Classifies a function's instructions.
class Code {
public:
  explicit Code(const MachineFunction &function)
      : registers(*function.getSubtarget().getRegisterInfo()),
        names(*function.getSubtarget().getInstrInfo()) {}

  StringRef nameOf(const MachineInstr &instruction) const { return names.getName(instruction.getOpcode()); }

  Kind kindOf(const MachineInstr &instruction) const {
    StringRef name = nameOf(instruction);
    if (name == "S_WAITCNT") return Kind::wait;
    if (name.starts_with("V_MFMA")) return Kind::matrix;
    for (StringRef slow : {"V_EXP_F32", "V_LOG_F32", "V_RCP_F32", "V_RSQ_F32", "V_SQRT_F32"})
      if (name.starts_with(slow)) return Kind::transcendental;
    if (name.starts_with("V_")) return Kind::vector;
    if (name.starts_with("DS_")) return Kind::lds;
    if (instruction.mayLoadOrStore()) return Kind::memory;
    return name.starts_with("S_") ? Kind::scalar : Kind::other;
  }

  const TargetRegisterInfo &registers;

private:
  const TargetInstrInfo &names;
};

/// Registers whose loads may be in flight, with the smallest number of later accesses that the same counter
/// counts. Scalar loads return in any order: only a wait for all ends them.
class InFlight {
public:
  using Retired = llvm::function_ref<void(MCRegUnit)>;

  void pass(const MachineInstr &instruction, const Code &code, Retired retired) {
    Kind kind = code.kindOf(instruction);
    if (kind == Kind::wait) return wait(instruction.getOperand(0).getImm(), retired);
    if (kind != Kind::lds && kind != Kind::memory) return;
    Counter counter = kind == Kind::lds                            ? Counter::lds
                      : code.nameOf(instruction).starts_with("S_") ? Counter::scalar
                                                                   : Counter::vector;
    for (auto &[unit, load] : loads)
      if (load.counter == counter) load.later = std::min(load.later + 1, most);
    // LLVM does not regard exchanging values between lanes through LDS as a load.
    if (kind != Kind::lds && !instruction.mayLoad()) return;
    for (const MachineOperand &def : instruction.all_defs())
      if (def.getReg().isPhysical())
        for (MCRegUnit unit : code.registers.regunits(def.getReg()))
          loads[unit] = {counter, 0};
  }

  /// Joins the state of another path. Returns whether this has changed.
  bool meet(const InFlight &other) {
    bool changed = false;
    for (const auto &[unit, load] : other.loads) {
      auto [mine, isNew] = loads.try_emplace(unit, load);
      changed |= isNew || load.later < mine->second.later;
      mine->second.later = std::min(mine->second.later, load.later);
    }
    return changed;
  }

  bool contains(MCRegUnit unit) const { return loads.contains(unit); }

private:
  enum class Counter { vector, lds, scalar };
  static constexpr unsigned most = 64; // more than any counter counts
  struct Load {
    Counter counter;
    unsigned later;
  };

  void wait(int64_t immediate, Retired retired) {
    WaitCounters counters = WaitCounters::decode(immediate);
    SmallVector<MCRegUnit> done;
    for (const auto &[unit, load] : loads)
      if (load.counter == Counter::vector ? load.later >= counters.vmcnt
          : load.counter == Counter::lds  ? load.later >= counters.lgkmcnt
                                          : counters.lgkmcnt == 0)
        done.push_back(unit);
    for (MCRegUnit unit : done) {
      loads.erase(unit);
      retired(unit);
    }
  }

  llvm::DenseMap<MCRegUnit, Load> loads;
};

class BlockScheduler {
public:
  BlockScheduler(MachineBasicBlock &block, const Code &code, const Costs &costs,
                 const ScheduleChoices &choices, InFlight inFlight)
      : block(block), code(code), costs(costs), choices(choices), registers(code.registers),
        inFlight(std::move(inFlight)) {}

  void run() {
    SmallVector<MachineInstr *> region;
    for (MachineInstr &instruction : make_early_inc_range(block)) {
      if (!endsRegion(instruction)) {
        region.push_back(&instruction);
        continue;
      }
      schedule(region, instruction.getIterator());
      region.clear();
      inFlight.pass(instruction, code, [](MCRegUnit) {});
    }
    schedule(region, block.end());
    joinWaits();
  }

  bool multiplies() const {
    return any_of(block,
                  [&](const MachineInstr &instruction) { return kindOf(instruction) == Kind::matrix; });
  }

private:
  StringRef nameOf(const MachineInstr &instruction) const { return code.nameOf(instruction); }
  Kind kindOf(const MachineInstr &instruction) const { return code.kindOf(instruction); }

  bool endsRegion(const MachineInstr &instruction) const {
    if (instruction.isTerminator() || instruction.isCall() || instruction.isBundled() ||
        instruction.isPosition())
      return true;
    if (instruction.isInlineAsm()) return instruction.getOperand(0).getSymbolName()[0] != '\0';
    if (nameOf(instruction).starts_with("S_SET") || nameOf(instruction) == "S_NOP") return true;
    return any_of(instruction.all_defs(), [&](const MachineOperand &def) {
      StringRef name = registers.getName(def.getReg());
      return name.starts_with("EXEC") || name == "MODE";
    });
  }

  bool keepsOrder(const Node &node) const {
    return node.kind == Kind::wait || node.kind == Kind::lds || node.kind == Kind::memory ||
           node.instruction->mayLoadOrStore() || node.instruction->hasUnmodeledSideEffects();
  }

  unsigned latency(const Node &def, const Node &use, MCRegister written) const {
    switch (def.kind) {
    case Kind::matrix:
      return use.kind == Kind::matrix ? 1 : costs.matrixLatency;
    case Kind::transcendental:
      return use.kind == Kind::matrix ? costs.toMatrix : costs.afterTranscendental;
    case Kind::vector:
      if (use.kind == Kind::matrix) return costs.toMatrix;
      return registers.getName(written)[0] == 'V' && registers.getName(written) != StringRef("VCC")
                 ? 1
                 : costs.afterMask;
    case Kind::scalar:
      return StringRef(registers.getName(written)) == "M0" ? costs.afterM0 : 1;
    default:
      return 1;
    }
  }

  void depend(unsigned before, unsigned after, unsigned turns) {
    if (before == after) return;
    nodes[before].users.push_back({after, turns});
    ++nodes[after].missing;
  }

  void findDependences() {
    struct Access {
      std::optional<unsigned> def, wait; // that ended the load of its contents
      MCRegister written;
      SmallVector<unsigned, 4> uses;
    };
    llvm::DenseMap<MCRegUnit, Access> accesses;
    std::optional<unsigned> ordered, lastWait;
    for (unsigned n = 0; n < nodes.size(); ++n) {
      if (keepsOrder(nodes[n])) {
        if (ordered) depend(*ordered, n, 1);
        ordered = n;
      }
      if (nodes[n].kind == Kind::wait) lastWait = n;
      auto afterWait = [&](MCRegUnit unit, const Access &access) {
        if (access.wait) depend(*access.wait, n, 1);
        if (lastWait && inFlight.contains(unit)) depend(*lastWait, n, 1);
      };
      for (const MachineOperand &operand : nodes[n].instruction->operands()) {
        if (!operand.isReg() || !operand.getReg().isPhysical() || !operand.readsReg()) continue;
        for (MCRegUnit unit : registers.regunits(operand.getReg())) {
          Access &access = accesses[unit];
          if (access.def) depend(*access.def, n, latency(nodes[*access.def], nodes[n], access.written));
          afterWait(unit, access);
          access.uses.push_back(n);
        }
      }
      for (const MachineOperand &operand : nodes[n].instruction->operands()) {
        if (!operand.isReg() || !operand.getReg().isPhysical() || !operand.isDef()) continue;
        for (MCRegUnit unit : registers.regunits(operand.getReg())) {
          Access &access = accesses[unit];
          if (access.def) depend(*access.def, n, 1);
          afterWait(unit, access);
          for (unsigned use : access.uses)
            depend(use, n, 1);
          access = {n, std::nullopt, operand.getReg().asMCReg(), {}};
        }
      }
      inFlight.pass(*nodes[n].instruction, code, [&](MCRegUnit unit) { accesses[unit].wait = n; });
    }
  }

  void schedule(ArrayRef<MachineInstr *> region, MachineBasicBlock::iterator end) {
    nodes.clear();
    for (MachineInstr *instruction : region)
      nodes.push_back({instruction, kindOf(*instruction)});
    findDependences();
    if (none_of(nodes, [](const Node &node) { return node.kind == Kind::matrix; })) return;
    std::vector<bool> issued(nodes.size());
    unsigned first = 0, now = 0, matrixFree = 0, portFree = 0;
    auto mayIssue = [&](unsigned n) {
      const Node &node = nodes[n];
      if (issued[n] || node.missing != 0 || node.ready > now) return false;
      bool isVector =
          node.kind == Kind::vector || node.kind == Kind::transcendental || node.kind == Kind::matrix;
      return !(isVector && portFree > now) && !(node.kind == Kind::matrix && matrixFree > now);
    };
    while (first < nodes.size()) {
      std::optional<unsigned> chosen;
      for (unsigned n = first; n < std::min<size_t>(first + choices.window, nodes.size()); ++n) {
        if (!mayIssue(n)) continue;
        if (!chosen) chosen = n;
        if (nodes[n].kind != Kind::matrix) continue;
        chosen = n;
        break;
      }
      if (!chosen) {
        ++now;
        continue;
      }
      Node &node = nodes[*chosen];
      issued[*chosen] = true;
      block.splice(end, &block, node.instruction->getIterator());
      if (node.kind == Kind::matrix) matrixFree = now + costs.matrixPasses;
      if (node.kind == Kind::transcendental)
        portFree = now + costs.transcendentalTurns;
      else if (node.kind == Kind::matrix || node.kind == Kind::vector)
        portFree = now + 1;
      for (auto [user, turns] : node.users) {
        nodes[user].ready = std::max(nodes[user].ready, now + turns);
        --nodes[user].missing;
      }
      if (!node.instruction->isMetaInstruction()) ++now;
      while (first < nodes.size() && issued[first])
        ++first;
    }
    for (MachineInstr *instruction : region)
      for (MachineOperand &operand : instruction->all_uses())
        operand.setIsKill(false);
  }

  /// A wait for LDS becomes as strong as one that soon follows, which is removed. The accesses issued between
  /// them count towards those that may stay in flight.
  void joinWaits() {
    MachineInstr *earlier = nullptr;
    unsigned since = 0, issuedSince = 0;
    SmallVector<unsigned> reads; // their positions
    unsigned place = 0, earlierPlace = 0;
    for (MachineInstr &instruction : make_early_inc_range(block)) {
      ++since;
      ++place;
      Kind kind = kindOf(instruction);
      if (kind == Kind::lds) {
        ++issuedSince;
        reads.push_back(place);
      }
      if (kind == Kind::memory && nameOf(instruction).starts_with("S_"))
        earlier = nullptr; // scalar loads return in any order
      else if (endsRegion(instruction) || nameOf(instruction) == "S_BARRIER")
        earlier = nullptr;
      if (kind != Kind::wait) continue;
      const WaitCounters counters = WaitCounters::decode(instruction.getOperand(0).getImm());
      if (!counters.isForLgkmcntOnly()) {
        earlier = nullptr;
        continue;
      }
      if (earlier && since <= choices.waitsApart && counters.lgkmcnt >= issuedSince) {
        MachineOperand &operand = earlier->getOperand(0);
        const unsigned both =
            std::min(WaitCounters::decode(operand.getImm()).lgkmcnt, counters.lgkmcnt - issuedSince);
        unsigned before = reads.size() - issuedSince;
        if (before <= both || reads[before - both - 1] + choices.readsBefore <= earlierPlace) {
          operand.setImm(WaitCounters{.lgkmcnt = both}.encode());
          instruction.eraseFromParent();
          continue;
        }
      }
      earlier = &instruction;
      earlierPlace = place;
      since = issuedSince = 0;
    }
  }

  MachineBasicBlock &block;
  const Code &code;
  const Costs &costs;
  const ScheduleChoices &choices;
  const TargetRegisterInfo &registers;
  InFlight inFlight; // where the region begins, then after each of its instructions
  std::vector<Node> nodes;
};

class ScheduleMachineCode : public MachineFunctionPass {
public:
  static char ID;
  ScheduleMachineCode() : MachineFunctionPass(ID) {}
  StringRef getPassName() const override { return "Sluice: last order of instructions"; }
  void getAnalysisUsage(AnalysisUsage &usage) const override {
    usage.setPreservesCFG();
    MachineFunctionPass::getAnalysisUsage(usage);
  }
  bool runOnMachineFunction(MachineFunction &function) override {
    const Code code(function);
    const Chip *chip = findChip(function.getSubtarget().getCPU());
    if (!chip) llvm::report_fatal_error("the chip is not in the chip table");
    const Costs costs(*chip);
    // At the start of each block.
    llvm::DenseMap<const MachineBasicBlock *, InFlight> inFlight;
    for (bool changed = true; changed;) {
      changed = false;
      for (const MachineBasicBlock &block : function) {
        InFlight after = inFlight[&block];
        for (const MachineInstr &instruction : block)
          after.pass(instruction, code, [](MCRegUnit) {});
        for (const MachineBasicBlock *next : block.successors())
          changed |= inFlight[next].meet(after);
      }
    }
    StringRef own = function.getFunction().getFnAttribute(ScheduleChoices::attribute).getValueAsString();
    const ScheduleChoices choices = ScheduleChoices::in(own);
    bool changed = false;
    // LLVM 22 counts IMPLICIT_DEF as a wait state, although it emits no instruction.
    for (MachineBasicBlock &block : function)
      for (MachineInstr &instruction : make_early_inc_range(block))
        if (instruction.isImplicitDef()) instruction.eraseFromParent();
    for (MachineBasicBlock &block : function) {
      BlockScheduler scheduler(block, code, costs, choices, inFlight[&block]);
      if (!scheduler.multiplies()) continue;
      scheduler.run();
      changed = true;
    }
    return changed;
  }
};

char ScheduleMachineCode::ID = 0;

} // namespace

void addScheduleMachineCode(llvm::TargetPassConfig &config) {
  const llvm::PassInfo *inFront =
      llvm::PassRegistry::getPassRegistry()->getPassInfo(StringRef("si-pre-emit-peephole"));
  if (!inFront) llvm::report_fatal_error("the pass si-pre-emit-peephole of LLVM 22 is missing in this LLVM");
  config.insertPass(inFront->getTypeInfo(), llvm::IdentifyingPassPtr(new ScheduleMachineCode()));
}

} // namespace sluice

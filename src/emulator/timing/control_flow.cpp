//===- control_flow.cpp - blocks and loops of a kernel --------------------------------------------------===//
#include "emulator/timing/control_flow.h"

#include <algorithm>
#include <set>

namespace sluice::emulator::timing {

namespace {

constexpr uint32_t none = UINT32_MAX;

bool is_call(const ProgramImpl &program, uint32_t op) {
  return emulator::is_call(program.infos.infos[op].role());
}

/// Dominators and natural loops, by the algorithm of Cooper, Harvey and Kennedy.
class Analysis {
public:
  Analysis(const ProgramImpl &program, OpRange ops) : program(program), ops(ops) {
    find_blocks();
    find_edges();
    order_blocks();
    find_dominators();
  }

  ControlFlow result() {
    ControlFlow flow;
    flow.loops = loops();
    for (const OpRange &block : blocks)
      flow.blocks.push_back({block, {}});
    // Outermost first: an outer loop has more blocks.
    std::vector<uint32_t> order(flow.loops.size());
    for (uint32_t i = 0; i < order.size(); ++i)
      order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return flow.loops[a].blocks.size() > flow.loops[b].blocks.size();
    });
    for (uint32_t loop : order)
      for (uint32_t block : flow.loops[loop].blocks)
        flow.blocks[block].loops.push_back(loop);
    return flow;
  }

private:
  bool inside(int64_t op) const { return op >= ops.first && op < ops.last; }

  uint32_t block_at(uint32_t op) const {
    const auto above = std::upper_bound(blocks.begin(), blocks.end(), op,
                                        [](uint32_t wanted, OpRange block) { return wanted < block.first; });
    return uint32_t(above - blocks.begin()) - 1;
  }

  void find_blocks() {
    std::set<uint32_t> starts{ops.first};
    for (uint32_t i = ops.first; i < ops.last; ++i) {
      const OpInfo &info = program.infos.infos[i];
      if (info.jumps() && inside(program.fast[i].value)) starts.insert(uint32_t(program.fast[i].value));
      if ((info.jumps() || !info.falls_through()) && i + 1 < ops.last) starts.insert(i + 1);
    }
    for (auto start = starts.begin(); start != starts.end(); ++start)
      blocks.push_back({*start, std::next(start) == starts.end() ? ops.last : *std::next(start)});
  }

  void find_edges() {
    successors.resize(blocks.size());
    predecessors.resize(blocks.size());
    auto connect = [&](uint32_t from, int64_t op) {
      if (!inside(op)) return;
      const uint32_t to = block_at(uint32_t(op));
      successors[from].push_back(to);
      predecessors[to].push_back(from);
    };
    for (uint32_t i = 0; i < blocks.size(); ++i) {
      const uint32_t last = blocks[i].last - 1;
      const OpInfo &info = program.infos.infos[last];
      if (info.jumps()) connect(i, program.fast[last].value);
      if (info.falls_through() || is_call(program, last)) connect(i, int64_t(last) + 1);
    }
  }

  /// In reverse postorder from the entry; unreachable blocks get no position.
  void order_blocks() {
    struct Step {
      uint32_t block;
      size_t next;
    };
    std::vector<bool> seen(blocks.size());
    std::vector<Step> path{{0, 0}};
    seen[0] = true;
    while (!path.empty()) {
      Step &step = path.back();
      if (step.next == successors[step.block].size()) {
        order.push_back(step.block);
        path.pop_back();
        continue;
      }
      const uint32_t to = successors[step.block][step.next++];
      if (seen[to]) continue;
      seen[to] = true;
      path.push_back({to, 0});
    }
    std::reverse(order.begin(), order.end());
    position.assign(blocks.size(), none);
    for (uint32_t i = 0; i < order.size(); ++i)
      position[order[i]] = i;
  }

  void find_dominators() {
    dominator.assign(order.size(), none); // by position
    dominator[0] = 0;
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t at = 1; at < order.size(); ++at) {
        uint32_t found = none;
        for (uint32_t from : predecessors[order[at]]) {
          if (position[from] == none || dominator[position[from]] == none) continue;
          found = found == none ? position[from] : common(found, position[from]);
        }
        changed |= dominator[at] != found;
        dominator[at] = found;
      }
    }
  }

  uint32_t common(uint32_t a, uint32_t b) const {
    while (a != b)
      (a > b ? a : b) = dominator[std::max(a, b)];
    return a;
  }

  bool dominates(uint32_t a, uint32_t b) const {
    uint32_t at = position[b];
    while (at > position[a])
      at = dominator[at];
    return at == position[a];
  }

  std::vector<Loop> loops() const {
    std::vector<Loop> found;
    for (uint32_t header = 0; header < blocks.size(); ++header) {
      if (position[header] == none) continue;
      std::set<uint32_t> body;
      std::vector<uint32_t> left;
      for (uint32_t from : predecessors[header])
        if (position[from] != none && dominates(header, from)) left.push_back(from);
      if (left.empty()) continue;
      body.insert(header);
      while (!left.empty()) {
        const uint32_t block = left.back();
        left.pop_back();
        if (!body.insert(block).second) continue;
        for (uint32_t from : predecessors[block])
          if (position[from] != none) left.push_back(from);
      }
      found.push_back({blocks[header].first, {body.begin(), body.end()}});
    }
    return found;
  }

  const ProgramImpl &program;
  const OpRange ops;
  std::vector<OpRange> blocks;
  std::vector<std::vector<uint32_t>> successors;
  std::vector<std::vector<uint32_t>> predecessors;
  std::vector<uint32_t> order;
  std::vector<uint32_t> position; // by block: its index in the order
  std::vector<uint32_t> dominator;
};

} // namespace

const Block *ControlFlow::block_of(uint32_t op) const {
  const auto above =
      std::upper_bound(blocks.begin(), blocks.end(), op,
                       [](uint32_t wanted, const Block &block) { return wanted < block.ops.first; });
  return above == blocks.begin() || op >= (above - 1)->ops.last ? nullptr : &*(above - 1);
}

ControlFlow control_flow(const ProgramImpl &program, OpRange ops) {
  return ops.first == ops.last ? ControlFlow{} : Analysis(program, ops).result();
}

} // namespace sluice::emulator::timing

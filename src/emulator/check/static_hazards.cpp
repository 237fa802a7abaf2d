//===- static_hazards.cpp - wait states on every path through a program ---------------------------------===//
#include "emulator/check/static_hazards.h"

#include <algorithm>
#include <map>

namespace sluice::emulator {

namespace {

class Walk {
public:
  Walk(const std::vector<Op> &ops, const OpInfos &infos, uint32_t first, uint32_t end,
       std::array<bool, hazard_levels> wanted)
      : ops(ops), infos(infos), first(first), end(end) {
    tracker.start(wanted);
  }

  void from(uint32_t op) {
    tracker.forget();
    along(op, 0, tracker);
  }

  const std::map<std::pair<uint32_t, uint32_t>, StaticHazard> &pairs() const { return found; }

  std::vector<StaticHazard> results() const {
    std::vector<StaticHazard> all;
    for (const auto &[pair, hazard] : found)
      all.push_back(hazard);
    return all;
  }

private:
  void along(uint32_t op, uint32_t states, HazardTracker &seen) {
    for (;;) {
      if (op < first || op >= end) return;
      const OpInfo &info = infos.infos[op];
      if (const std::optional<HazardFound> hazard = seen.step(ops[op], info, infos)) {
        // One path may be short only by count where another is short for certain.
        const auto [at, is_new] = found.try_emplace({op, hazard->other}, StaticHazard{op, *hazard});
        if (!is_new && hazard->level < at->second.found.level) at->second.found = *hazard;
      }
      states += info.wait_states;
      if (states > HazardTracker::longest_wait) return;
      if (info.jumps() && ops[op].value >= 0) {
        HazardTracker taken = seen;
        along(uint32_t(ops[op].value), states, taken);
      }
      if (!info.falls_through()) return;
      ++op;
    }
  }

  const std::vector<Op> &ops;
  const OpInfos &infos;
  const uint32_t first;
  const uint32_t end;
  HazardTracker tracker; // large: a new one for each instruction would take longer than the walk
  std::map<std::pair<uint32_t, uint32_t>, StaticHazard> found;
};

/// Whether only a running wave knows where the instruction goes on.
bool jumps_anywhere(const OpInfo &info) {
  const bool indirect = info.role() == Role::indirect_jump || info.role() == Role::indirect_call;
  return (indirect && !info.ends_long_branch) || info.facts->mnemonic == "s_cbranch_join";
}

/// Follows the paths from one block to those after it, as far as a wait can reach.
class BlockWalk {
public:
  BlockWalk(const std::vector<Op> &ops, const OpInfos &infos, uint32_t end)
      : ops(ops), infos(infos), end(end) {
    tracker.start({});
  }

  /// [first, last] runs from its first to its last instruction. False if too many paths leave it.
  bool block(uint32_t first, uint32_t last) {
    replay(first, last);
    uint32_t tail = last;
    for (uint32_t states = infos.infos[last].wait_states; tail > first; --tail) {
      states += infos.infos[tail - 1].wait_states;
      if (states > HazardTracker::longest_wait) break;
    }
    path.clear();
    for (uint32_t op = tail; op <= last; ++op)
      path.push_back(op);
    paths = 0;
    leave(last, 0);
    return paths <= most_paths;
  }

  std::array<bool, hazard_levels> levels_met() const { return tracker.levels_met(); }

private:
  static constexpr uint32_t most_paths = 128; // per block; compiled code has a few

  void replay(uint32_t first, uint32_t last) {
    tracker.forget();
    for (uint32_t op = first; op <= last; ++op)
      tracker.step(ops[op], infos.infos[op], infos);
  }

  void end_path() {
    ++paths;
    tracker.forget();
    for (const uint32_t op : path)
      tracker.step(ops[op], infos.infos[op], infos);
  }

  /// Goes on after `op`, the last of the path; `states` have passed since the block.
  void leave(uint32_t op, uint32_t states) {
    const OpInfo &info = infos.infos[op];
    const size_t length = path.size();
    const bool jumps = info.jumps() && ops[op].value >= 0;
    if (jumps) enter(uint32_t(ops[op].value), states);
    path.resize(length);
    if (info.falls_through()) enter(op + 1, states);
    if (!jumps && !info.falls_through()) end_path();
  }

  void enter(uint32_t op, uint32_t states) {
    if (paths > most_paths) return;
    for (; op < end; ++op) {
      const OpInfo &info = infos.infos[op];
      path.push_back(op);
      states += info.wait_states;
      if (states > HazardTracker::longest_wait) break;
      if (info.jumps() || !info.falls_through()) return leave(op, states);
    }
    end_path();
  }

  const std::vector<Op> &ops;
  const OpInfos &infos;
  const uint32_t end;
  HazardTracker tracker;
  std::vector<uint32_t> path;
  uint32_t paths = 0;
};

/// For each instruction, those that can run right before it.
std::vector<std::vector<uint32_t>> predecessors(const std::vector<Op> &ops, const OpInfos &infos,
                                                uint32_t end) {
  std::vector<std::vector<uint32_t>> result(end + 1);
  for (uint32_t op = 0; op < end; ++op) {
    if (infos.infos[op].falls_through()) result[op + 1].push_back(op);
    if (infos.infos[op].jumps() && ops[op].value >= 0 && uint32_t(ops[op].value) < end)
      result[uint32_t(ops[op].value)].push_back(op);
  }
  return result;
}

/// The instructions that some instruction after `nop` may need wait states to: those at most the longest wait
/// before it, without the s_nop itself.
std::vector<uint32_t> reach_back(const std::vector<std::vector<uint32_t>> &before, const OpInfos &infos,
                                 uint32_t nop) {
  std::map<uint32_t, uint32_t> states; // between the instruction and the s_nop, on the shortest path
  std::vector<uint32_t> work{nop};
  while (!work.empty()) {
    const uint32_t op = work.back();
    work.pop_back();
    const uint32_t reached = op == nop ? 0 : states.at(op) + infos.infos[op].wait_states;
    if (reached > HazardTracker::longest_wait) continue;
    for (const uint32_t earlier : before[op]) {
      const auto [at, is_new] = states.try_emplace(earlier, reached);
      if (!is_new && at->second <= reached) continue;
      at->second = reached;
      work.push_back(earlier);
    }
  }
  std::vector<uint32_t> result;
  for (const auto &[op, distance] : states)
    result.push_back(op);
  return result;
}

} // namespace

std::vector<StaticHazard> static_hazards(const std::vector<Op> &ops, const OpInfos &infos, uint32_t first,
                                         uint32_t end, std::array<bool, hazard_levels> wanted) {
  Walk walk(ops, infos, first, end, wanted);
  for (uint32_t op = first; op < end; ++op)
    walk.from(op);
  return walk.results();
}

std::vector<bool> reachable(const std::vector<Op> &ops, const OpInfos &infos, uint32_t end,
                            std::vector<uint32_t> entries) {
  std::vector<bool> result(end);
  while (!entries.empty()) {
    const uint32_t op = entries.back();
    entries.pop_back();
    if (op >= end || result[op]) continue;
    result[op] = true;
    if (infos.infos[op].falls_through()) entries.push_back(op + 1);
    if (infos.infos[op].jumps() && ops[op].value >= 0) entries.push_back(uint32_t(ops[op].value));
  }
  return result;
}

std::array<bool, hazard_levels> hazard_levels_from(const std::vector<Op> &ops, const OpInfos &infos,
                                                   uint32_t end, uint32_t entry) {
  std::array<bool, hazard_levels> all;
  all.fill(true);
  const std::vector<bool> is_reached = reachable(ops, infos, end, {entry});
  std::vector<bool> is_first(end); // of a block
  is_first[entry] = true;
  for (uint32_t op = 0; op < end; ++op) {
    const OpInfo &info = infos.infos[op];
    if (!is_reached[op]) continue;
    if (jumps_anywhere(info)) return all;
    if (!info.jumps()) continue;
    if (ops[op].value >= 0 && uint32_t(ops[op].value) < end) is_first[uint32_t(ops[op].value)] = true;
    if (op + 1 < end) is_first[op + 1] = true;
  }
  BlockWalk walk(ops, infos, end);
  for (uint32_t op = 0; op < end; ++op) {
    if (!is_reached[op]) continue;
    const uint32_t first = op;
    while (op + 1 < end && !is_first[op + 1] && infos.infos[op].falls_through())
      ++op;
    if (!walk.block(first, op)) return all;
  }
  return walk.levels_met();
}

std::vector<uint8_t> needed_wait_states(const std::vector<Op> &ops, const OpInfos &infos, uint32_t end,
                                        const std::vector<uint32_t> &nops,
                                        std::array<bool, hazard_levels> wanted) {
  Walk whole(ops, infos, 0, end, wanted);
  for (uint32_t op = 0; op < end; ++op)
    whole.from(op);
  OpInfos cut = infos;
  const std::vector<std::vector<uint32_t>> before = predecessors(ops, infos, end);
  std::vector<uint8_t> needed;
  for (const uint32_t nop : nops) {
    uint8_t &states = cut.infos[nop].wait_states;
    const std::vector<uint32_t> starts = reach_back(before, cut, nop);
    const uint8_t given = states;
    for (states = 0; states < given; ++states) {
      Walk walk(ops, cut, 0, end, wanted);
      for (const uint32_t start : starts)
        walk.from(start);
      const bool is_enough = std::ranges::all_of(
          walk.pairs(), [&](const auto &hazard) { return whole.pairs().contains(hazard.first); });
      if (is_enough) break;
    }
    needed.push_back(states);
  }
  return needed;
}

} // namespace sluice::emulator

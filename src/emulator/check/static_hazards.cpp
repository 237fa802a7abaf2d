//===- static_hazards.cpp - wait states on every path through a program ---------------------------------===//
#include "emulator/check/static_hazards.h"

#include <map>

namespace sluice::emulator {

namespace {

class Walk {
public:
  Walk(const std::vector<Op> &ops, const OpInfos &infos, uint32_t first, uint32_t end)
      : ops(ops), infos(infos), first(first), end(end) {}

  void from(uint32_t op) {
    HazardTracker tracker;
    tracker.start();
    along(op, 0, tracker);
  }

  std::vector<StaticHazard> results() const {
    std::vector<StaticHazard> all;
    for (const auto &[pair, hazard] : found)
      all.push_back(hazard);
    return all;
  }

private:
  void along(uint32_t op, uint32_t states, HazardTracker tracker) {
    for (;;) {
      if (op < first || op >= end) return;
      const OpInfo &info = infos.infos[op];
      if (const std::optional<HazardFound> hazard = tracker.step(ops[op], info, infos)) {
        // A path may miss by count what another one misses for certain.
        const auto [at, is_new] = found.try_emplace({op, hazard->other}, StaticHazard{op, *hazard});
        if (!is_new && hazard->level < at->second.found.level) at->second.found = *hazard;
      }
      states += info.wait_states;
      if (states > HazardTracker::longest_wait) return;
      if (info.branch && ops[op].value >= 0) along(uint32_t(ops[op].value), states, tracker);
      if (!info.falls_through) return;
      ++op;
    }
  }

  const std::vector<Op> &ops;
  const OpInfos &infos;
  const uint32_t first;
  const uint32_t end;
  std::map<std::pair<uint32_t, uint32_t>, StaticHazard> found;
};

} // namespace

std::vector<StaticHazard> static_hazards(const std::vector<Op> &ops, const OpInfos &infos, uint32_t first,
                                         uint32_t end) {
  Walk walk(ops, infos, first, end);
  for (uint32_t op = first; op < end; ++op)
    walk.from(op);
  return walk.results();
}

} // namespace sluice::emulator

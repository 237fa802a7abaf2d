//===- barrier_counterparts.cpp - the barriers at which the waves of a workgroup meet -------------------===//
#include "barrier_counterparts.h"

#include <algorithm>
#include <utility>

namespace sluice::test {

namespace {

/// Where all paths from an instruction meet first. Cooper, Harvey and Kennedy, "A Simple, Fast Dominance
/// Algorithm" (2001), on the reversed paths.
class PostDominators {
public:
  explicit PostDominators(const MachineCode &code)
      : code(code), end(code.instructions().size()), place(end + 1, 0), nearest(end + 1, unknown) {
    const std::vector<size_t> order = from_the_end();
    nearest[end] = end;
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t index : order)
        changed |= update(index);
    }
  }

  /// The number of instructions if the paths meet only at the end of the kernel.
  size_t of(size_t index) const { return nearest[index]; }

private:
  static constexpr size_t unknown = ~size_t(0);

  /// Each instruction after one that follows it; sets the places, which decrease along that order.
  std::vector<size_t> from_the_end() {
    std::vector<size_t> last;
    for (size_t index = 0; index < end; ++index)
      if (code.instructions()[index].next.empty()) last.push_back(index);
    const auto before = [&](size_t index) -> const std::vector<size_t> & {
      return index == end ? last : code.instructions()[index].previous;
    };
    std::vector<bool> seen(end + 1, false);
    std::vector<std::pair<size_t, size_t>> path{{end, 0}};
    std::vector<size_t> order;
    seen[end] = true;
    while (!path.empty()) {
      auto &[index, taken] = path.back();
      if (taken == before(index).size()) {
        place[index] = order.size();
        order.push_back(index);
        path.pop_back();
      } else if (const size_t previous = before(index)[taken++]; !seen[previous]) {
        seen[previous] = true;
        path.push_back({previous, 0});
      }
    }
    order.pop_back(); // the end itself
    std::reverse(order.begin(), order.end());
    return order;
  }

  bool update(size_t index) {
    const std::vector<size_t> &next = code.instructions()[index].next;
    size_t meeting = next.empty() ? end : unknown;
    for (size_t successor : next)
      if (nearest[successor] != unknown) meeting = meeting == unknown ? successor : meet(meeting, successor);
    if (meeting == nearest[index]) return false;
    nearest[index] = meeting;
    return true;
  }

  size_t meet(size_t one, size_t other) const {
    while (one != other) {
      while (place[one] < place[other])
        one = nearest[one];
      while (place[other] < place[one])
        other = nearest[other];
    }
    return one;
  }

  const MachineCode &code;
  const size_t end;
  std::vector<size_t> place;
  std::vector<size_t> nearest;
};

/// The first barriers on the paths from `starts` that do not pass `end`.
std::set<size_t> first_barriers(const MachineCode &code, std::vector<size_t> starts, size_t end) {
  std::set<size_t> seen, barriers;
  while (!starts.empty()) {
    const size_t index = starts.back();
    starts.pop_back();
    if (index == end || !seen.insert(index).second) continue;
    const Instruction &instruction = code.instructions()[index];
    if (instruction.is("s_barrier"))
      barriers.insert(index);
    else
      starts.insert(starts.end(), instruction.next.begin(), instruction.next.end());
  }
  return barriers;
}

std::set<size_t> next_barriers(const MachineCode &code, const std::set<size_t> &barriers, size_t end) {
  std::vector<size_t> starts;
  for (size_t barrier : barriers)
    starts.insert(starts.end(), code.instructions()[barrier].next.begin(),
                  code.instructions()[barrier].next.end());
  return first_barriers(code, std::move(starts), end);
}

} // namespace

std::vector<std::set<size_t>> barrier_counterparts(const MachineCode &code) {
  const PostDominators meetings(code);
  std::vector<std::set<size_t>> counterparts(code.instructions().size());
  for (size_t branch = 0; branch < code.instructions().size(); ++branch) {
    const std::vector<size_t> &ways = code.instructions()[branch].next;
    if (ways.size() != 2) continue;
    const size_t meeting = meetings.of(branch);
    std::set<size_t> one = first_barriers(code, {ways[0]}, meeting);
    std::set<size_t> other = first_barriers(code, {ways[1]}, meeting);
    // A loop between the two passes its barriers again and again.
    std::set<std::pair<std::set<size_t>, std::set<size_t>>> met;
    while (!one.empty() && !other.empty() && met.insert({one, other}).second) {
      for (size_t a : one)
        for (size_t b : other) {
          if (a == b) continue;
          counterparts[a].insert(b);
          counterparts[b].insert(a);
        }
      one = next_barriers(code, one, meeting);
      other = next_barriers(code, other, meeting);
    }
  }
  return counterparts;
}

} // namespace sluice::test

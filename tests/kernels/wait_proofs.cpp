//===- wait_proofs.cpp - waits and barriers that a kernel does not need, proven on all paths ------------===//
#include "wait_proofs.h"

#include <algorithm>
#include <optional>
#include <set>
#include <stdexcept>

namespace sluice::test {

struct WaitProofs::Question {
  std::optional<size_t> wait; // the one to weaken
  Counter counter{};
  unsigned weaker = 0;
  bool everything_late = false; // every operation counts as late, and only registers matter
};

struct WaitProofs::Search {
  Question question;
  std::vector<State> before; // by instruction
  std::vector<bool> reached;
  std::set<size_t> pending;                     // instructions to continue from
  std::map<size_t, std::set<size_t>> elsewhere; // by barrier: operations that crossed a counterpart late
  std::string objection;                        // instructions that notice a late operation
  bool any_late = false;                        // the weaker wait leaves something in flight at all
  bool counter_was_full = false;                // and completed a late operation
  std::set<size_t> completed;                   // late operations ...
  std::set<size_t> completing;                  // ... and the waits that complete them
};

namespace {

constexpr uint64_t fewer_than(unsigned count) {
  return count >= 64 ? ~uint64_t(0) : (uint64_t(1) << count) - 1;
}

bool overlap(const std::vector<emulator::RegisterRange> &some,
             const std::vector<emulator::RegisterRange> &others) {
  for (const emulator::RegisterRange &a : some)
    for (const emulator::RegisterRange &b : others)
      if (a.first < b.first + b.count && b.first < a.first + a.count) return true;
  return false;
}

bool one_of(const Instruction &instruction, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return instruction.starts_with(prefix); });
}

} // namespace

//===--- Instructions -----------------------------------------------------------------------------------===//

WaitProofs::WaitProofs(const MachineCode &code, uint32_t threads)
    : code(code), ranges(lds_ranges(code, threads)), decided(decided_branches(code)),
      counterparts(barrier_counterparts(code)), operation_of(code.instructions().size(), -1) {
  for (size_t index = 0; index < code.instructions().size(); ++index)
    classify(index);
}

void WaitProofs::classify(size_t index) {
  const Instruction &instruction = at(index);
  const auto add = [&](Kind kind, Counter counter, bool in_order = true) {
    operation_of[index] = int(operations.size());
    operations.push_back({index, kind, counter, in_order});
  };
  const bool is_lds = instruction.text.ends_with(" lds") || instruction.starts_with("global_load_lds");
  if (one_of(instruction, {"flat_", "s_sendmsg", "s_memtime", "s_memrealtime", "s_dcache", "s_store",
                           "s_atomic", "s_buffer_store", "s_buffer_atomic", "s_scratch", "exp", "ds_gws",
                           "ds_ordered", "buffer_wb", "buffer_inv", "tbuffer_", "image_"}) ||
      (instruction.starts_with("s_wait") && !instruction.is("s_waitcnt")) ||
      (instruction.starts_with("ds_") && instruction.text.ends_with(" gds")))
    throw std::runtime_error("not known which counters this moves: " + describe(instruction));
  if (one_of(instruction, {"s_load_", "s_buffer_load_"}))
    add(Kind::scalar_load, Counter::lgkmcnt, false);
  else if (one_of(instruction, {"ds_bpermute", "ds_permute", "ds_swizzle"}))
    add(Kind::lane_exchange, Counter::lgkmcnt);
  else if (instruction.starts_with("ds_"))
    add(instruction.starts_with("ds_read") ? Kind::lds_read : Kind::lds_write, Counter::lgkmcnt);
  else if (one_of(instruction, {"buffer_load", "global_load", "scratch_load"}))
    add(is_lds ? Kind::copy : Kind::load, Counter::vmcnt);
  else if (one_of(instruction, {"buffer_", "global_", "scratch_"}))
    add(Kind::store, Counter::vmcnt); // atomics too: registers they return are looked at for every kind
}

bool WaitProofs::needs_registers_of(const Operation &late, size_t index) const {
  const std::vector<emulator::RegisterRange> &results = at(late.instruction).writes;
  if (overlap(results, at(index).reads)) return true;
  const int other = operation_of[index];
  const bool are_loads =
      late.kind == Kind::load && other >= 0 && operations[size_t(other)].kind == Kind::load;
  return !are_loads && overlap(results, at(index).writes);
}

/// Whether the instruction at `index`, of this wave or another one, notices that `late` is in flight or
/// hidden.
bool WaitProofs::cares(const Operation &late, const Flights &flights, size_t index) const {
  const bool is_barrier = at(index).is("s_barrier");
  const bool is_end = flights.late != 0 && (at(index).starts_with("s_endpgm") || at(index).is("s_trap"));
  const Operation *other = operation_of[index] < 0 ? nullptr : &operations[size_t(operation_of[index])];
  const auto other_is = [&](std::initializer_list<Kind> kinds) {
    return other && std::find(kinds.begin(), kinds.end(), other->kind) != kinds.end();
  };
  const bool touches = other_is({Kind::lds_read, Kind::lds_write, Kind::copy}) &&
                       ranges[index].overlaps(ranges[late.instruction]);
  const bool other_waves = flights.crossed || flights.hidden || flights.elsewhere;
  switch (late.kind) {
  case Kind::scalar_load:
  case Kind::lane_exchange:
  case Kind::load:
    return false;
  case Kind::store:
    return is_barrier;
  case Kind::copy:
    return is_end || touches;
  case Kind::lds_read:
    return touches && other_is({Kind::copy, other_waves ? Kind::lds_write : Kind::copy});
  case Kind::lds_write:
    return is_end || (touches && (other_waves || other_is({Kind::copy})));
  }
  return true;
}

//===--- Paths ------------------------------------------------------------------------------------------===//

void WaitProofs::wait(size_t index, State &state, Search &search) const {
  const Wait wait = Wait::decode(uint16_t(at(index).word));
  const Question &question = search.question;
  for (size_t n = 0; n < operations.size(); ++n) {
    const Operation &operation = operations[n];
    Flights &flights = state[n];
    const unsigned stands = wait[operation.counter];
    const bool is_weakened = question.wait == index && question.counter == operation.counter;
    const unsigned weakened = is_weakened ? question.weaker : stands;
    const auto left_by = [&](unsigned count) {
      return operation.in_order ? fewer_than(count) : count == 0 ? 0 : ~uint64_t(0);
    };
    const uint64_t late = (flights.late | (flights.usual & ~left_by(stands))) & left_by(weakened);
    if (is_weakened && late != 0) search.any_late = true;
    if ((flights.late & ~late) != 0) {
      search.completed.insert(operation.instruction);
      search.completing.insert(index);
      flights.hidden = flights.hidden || flights.crossed;
    }
    flights.usual &= left_by(stands);
    flights.late = late;
  }
}

void WaitProofs::cross(size_t barrier, State &state, Search &search) const {
  for (Flights &flights : state) {
    flights.crossed = flights.late != 0;
    flights.hidden = flights.elsewhere = false;
  }
  for (size_t n : search.elsewhere[barrier])
    state[n].elsewhere = true;
  for (size_t counterpart : counterparts[barrier]) {
    std::set<size_t> &there = search.elsewhere[counterpart];
    const size_t known = there.size();
    for (size_t n = 0; n < operations.size(); ++n)
      if (state[n].crossed) there.insert(n);
    if (there.size() != known && search.reached[counterpart]) search.pending.insert(counterpart);
  }
}

void WaitProofs::step(size_t index, State &state, Search &search) const {
  // Until a wait is weaker, nothing is late, and nothing was.
  const bool may_be_late = search.any_late || search.question.everything_late;
  for (size_t n = 0; n < operations.size() && may_be_late; ++n) {
    const bool is_late = state[n].late != 0;
    const bool only_registers = search.question.everything_late;
    if (!(is_late && needs_registers_of(operations[n], index)) &&
        !((is_late || state[n].hidden || state[n].elsewhere) && !only_registers &&
          cares(operations[n], state[n], index)))
      continue;
    search.objection = describe(at(index)) + " may come while " + describe(at(operations[n].instruction)) +
                       (is_late           ? " is in flight"
                        : state[n].hidden ? " is complete for its own wave only"
                                          : " of a wave on another way is in flight");
    return;
  }
  if (at(index).is("s_barrier")) cross(index, state, search);
  if (at(index).is("s_waitcnt")) return wait(index, state, search);
  if (operation_of[index] < 0) return;
  const size_t issued = size_t(operation_of[index]);
  const Counter counter = operations[issued].counter;
  // The hardware does not count further: it holds an instruction back until an older one is complete.
  const uint64_t countable = fewer_than(no_wait(counter));
  for (size_t n = 0; n < operations.size() && operations[issued].in_order; ++n) {
    if (operations[n].counter != counter || !operations[n].in_order) continue;
    const uint64_t late = state[n].late << 1;
    state[n].usual = state[n].usual << 1 & countable;
    state[n].late = late & countable;
    if (late == state[n].late) continue;
    search.completed.insert(operations[n].instruction);
    search.counter_was_full = true;
    state[n].hidden = state[n].hidden || state[n].crossed;
  }
  (search.question.everything_late ? state[issued].late : state[issued].usual) |= 1;
}

WaitProofs::Search WaitProofs::search(const Question &question) const {
  Search search{question, {}, {}, {}, {}, {}, false, false, {}, {}};
  search.before.assign(code.instructions().size(), {});
  search.reached.assign(code.instructions().size(), false);
  search.before[0].resize(operations.size());
  search.reached[0] = true;
  std::set<size_t> &pending = search.pending;
  pending.insert(0);
  while (!pending.empty() && search.objection.empty()) {
    size_t index = *pending.begin();
    pending.erase(pending.begin());
    // A straight line has no joins; of its states only the first and those at barriers are kept.
    State state = search.before[index];
    while (search.objection.empty()) {
      if (at(index).is("s_barrier")) {
        search.before[index] = state;
        search.reached[index] = true;
      }
      step(index, state, search);
      const std::vector<size_t> &next = at(index).next;
      if (next.size() == 1 && at(next[0]).previous.size() == 1) {
        index = next[0];
        continue;
      }
      for (size_t successor : next) {
        State arriving = state;
        if (const auto known = decided.find({index, successor}); known != decided.end()) {
          step(successor, arriving, search);
          step(at(successor).next[0], arriving, search);
          successor = known->second;
        }
        State &known = search.before[successor];
        if (!search.reached[successor]) {
          known = arriving;
        } else {
          const State old = known;
          for (size_t n = 0; n < operations.size(); ++n) {
            known[n].usual |= arriving[n].usual;
            known[n].late |= arriving[n].late;
            known[n].crossed |= arriving[n].crossed;
            known[n].hidden |= arriving[n].hidden;
            known[n].elsewhere |= arriving[n].elsewhere;
          }
          if (known == old) continue;
        }
        search.reached[successor] = true;
        pending.insert(successor);
      }
      break;
    }
  }
  return search;
}

//===--- Answers ----------------------------------------------------------------------------------------===//

std::string WaitProofs::places(const std::vector<size_t> &indices) const {
  std::string text;
  for (size_t index : indices)
    text += (text.empty() ? "" : ", ") + describe(at(index));
  return text;
}

/// The last waits for the counter on every path to `index`.
std::string WaitProofs::waits_before(size_t index, Counter counter) const {
  std::set<size_t> seen, found;
  std::vector<size_t> pending(at(index).previous);
  while (!pending.empty()) {
    const size_t here = pending.back();
    pending.pop_back();
    if (!seen.insert(here).second) continue;
    if (at(here).is("s_waitcnt") && Wait::decode(uint16_t(at(here).word))[counter] != no_wait(counter))
      found.insert(here);
    else
      pending.insert(pending.end(), at(here).previous.begin(), at(here).previous.end());
  }
  return found.empty() ? "nothing was issued before"
                       : "already waited for at " + places({found.begin(), found.end()});
}

Proof WaitProofs::registers_are_waited_for() const {
  Question question;
  question.everything_late = true;
  const Search found = search(question);
  return {found.objection.empty(), found.objection};
}

Proof WaitProofs::may_weaken(size_t index, Counter counter, unsigned weaker) const {
  Question question;
  question.wait = index;
  question.counter = counter;
  question.weaker = weaker;
  const Search found = search(question);
  if (!found.objection.empty()) return {false, found.objection};
  if (!found.any_late) return {true, waits_before(index, counter)};
  size_t register_loads = 0;
  for (size_t operation : found.completed)
    register_loads += !at(operation).writes.empty();
  if (found.completed.empty()) return {true, "nothing uses what is in flight"};
  std::string completing = places({found.completing.begin(), found.completing.end()});
  if (found.counter_was_full) completing += completing.empty() ? "the counter is full" : " or a full counter";
  const auto counted = [](size_t count, const char *what) {
    return count == 0 ? "" : ", " + std::to_string(count) + what;
  };
  return {true, "nothing needs what is in flight" + counted(register_loads, " loads into registers") +
                    counted(found.completed.size() - register_loads, " accesses of LDS or memory") +
                    ", before " + completing};
}

/// Whether two accesses of different waves must be in order.
bool WaitProofs::conflict(const Operation &one, const Operation &other) const {
  const auto is = [](const Operation &operation, std::initializer_list<Kind> kinds) {
    return std::find(kinds.begin(), kinds.end(), operation.kind) != kinds.end();
  };
  const auto in_lds = [&](const Operation &o) {
    return is(o, {Kind::copy, Kind::lds_read, Kind::lds_write});
  };
  const auto changes_lds = [&](const Operation &o) { return is(o, {Kind::copy, Kind::lds_write}); };
  const bool lds = in_lds(one) && in_lds(other) && (changes_lds(one) || changes_lds(other)) &&
                   ranges[one.instruction].overlaps(ranges[other.instruction]);
  return lds || (is(one, {Kind::store}) && is(other, {Kind::store}) &&
                 at(one.instruction).mnemonic == at(other.instruction).mnemonic);
}

Proof WaitProofs::may_drop_barrier(size_t index) const {
  if (!counterparts[index].empty())
    return {false,
            "waves that pass " + describe(at(*counterparts[index].begin())) + " have one barrier more"};
  // Operations up to the nearest other barriers. The paths continue through this one, which is removed.
  const auto region = [&](auto neighbours, std::set<size_t> &barriers) {
    std::set<size_t> seen, found;
    std::vector<size_t> pending(neighbours(index));
    while (!pending.empty()) {
      const size_t here = pending.back();
      pending.pop_back();
      if (!seen.insert(here).second) continue;
      if (operation_of[here] >= 0) found.insert(size_t(operation_of[here]));
      if (at(here).is("s_barrier") && here != index)
        barriers.insert(here);
      else
        pending.insert(pending.end(), neighbours(here).begin(), neighbours(here).end());
    }
    return found;
  };
  std::set<size_t> barriers_before, barriers_behind;
  std::set<size_t> before =
      region([&](size_t n) -> const std::vector<size_t> & { return at(n).previous; }, barriers_before);
  const std::set<size_t> behind =
      region([&](size_t n) -> const std::vector<size_t> & { return at(n).next; }, barriers_behind);
  // This barrier does not order operations in flight at an earlier barrier.
  const Search states = search({});
  for (size_t barrier : barriers_before)
    for (size_t n = 0; states.reached[barrier] && n < operations.size(); ++n)
      if (states.before[barrier][n].usual != 0) before.insert(n);
  for (size_t one : before)
    for (size_t other : behind)
      if (conflict(operations[one], operations[other]))
        return {false, "it orders " + describe(at(operations[one].instruction)) + " and " +
                           describe(at(operations[other].instruction))};
  const auto named = [&](const std::set<size_t> &barriers, const char *otherwise) {
    return barriers.empty() ? otherwise : places({barriers.begin(), barriers.end()});
  };
  return {true, "it orders nothing between " + named(barriers_before, "the start") + " and " +
                    named(barriers_behind, "the end")};
}

} // namespace sluice::test

//===- compute_unit.cpp - four SIMDs issuing instructions -----------------------------------------------===//
#include "emulator/timing/compute_unit.h"

#include <algorithm>

namespace sluice::emulator::timing {

namespace {

constexpr size_t most_waves = 8; // per SIMD

} // namespace

struct ComputeUnit::TimedWave {
  Wave *state = nullptr;
  Resident *resident = nullptr;
  uint32_t simd = 0;
  uint32_t priority = 0;
  uint64_t age = 0;
  uint64_t executed = 0;

  // Time by reason for not issuing, since the SIMD's matrix core became idle.
  std::array<uint64_t, stall_count> idle_clk{};
  bool used_matrix_core = false;

  // Between two instructions: held back by the first until `ready`, then blocked by what the second needs.
  uint64_t ready = 0;
  uint64_t held_since = 0;
  uint32_t held_by = 0;
  Stall held_reason{};
  bool at_barrier = false;

  uint64_t packed_ready = 0; // when the last packed f32 result is ready
  RegisterRange packed_result{0, 0};
  std::vector<uint64_t> vector_memory; // when operations that vmcnt counts are done, in order
  std::vector<uint64_t> lgkm;          // when those that lgkmcnt counts are, in any order
};

struct ComputeUnit::Resident {
  explicit Resident(LaunchState &launch) : workgroup(launch), waves(launch.waves) {}
  Workgroup workgroup;
  std::vector<TimedWave> waves;
  WorkgroupTime time;
  bool counts = true;
  uint32_t running = 0;    // waves that have not ended
  uint32_t at_barrier = 0; // waves that wait there
};

struct ComputeUnit::Simd {
  std::vector<TimedWave *> waves; // by priority, then age
  uint64_t next_turn = never;
  uint64_t port_free = 0;
  uint64_t matrix_free = 0;
  uint64_t matrix_drained = 0; // when packed f32 may start
};

ComputeUnit::ComputeUnit(uint32_t number, uint32_t xcd, LaunchState &launch,
                         const std::vector<OpTiming> &timings, SharedLevels &shared, WorkgroupSource &source,
                         TimingResult &result, Observer *observer, CounterWatch *counters)
    : number(number), launch(launch), timings(timings), source(source), result(result), observer(observer),
      counters(counters), traffic(shared.traffic), memory(shared, xcd), lds(shared.traffic),
      units(std::make_unique<std::array<Simd, simds>>()) {}

ComputeUnit::~ComputeUnit() = default;

//===--- Workgroups -------------------------------------------------------------------------------------===//

void ComputeUnit::add_place() {
  residents.push_back(std::make_unique<Resident>(launch));
  start(*residents.back(), source.begin(number));
}

void ComputeUnit::start(Resident &resident, uint64_t clk) {
  const std::optional<Assignment> assignment = source.next(number);
  if (!assignment) return;
  const uint64_t next = assignment->number;
  clk += workgroup_start_clk;
  resident.workgroup.start({uint32_t(next % launch.grid[0]), uint32_t(next / launch.grid[0] % launch.grid[1]),
                            uint32_t(next / launch.grid[0] / launch.grid[1])},
                           uint32_t(next));
  resident.time = {.number = next, .compute_unit = number, .start = clk, .part = assignment->part};
  resident.counts = assignment->counts;
  resident.running = launch.waves;
  resident.at_barrier = 0;
  for (uint32_t i = 0; i < launch.waves; ++i) {
    uint32_t best = next_simd;
    for (uint32_t k = 1; k < simds; ++k) {
      const uint32_t other = (next_simd + k) % simds;
      if ((*units)[other].waves.size() < (*units)[best].waves.size()) best = other;
    }
    next_simd = (best + 1) % simds;
    TimedWave &wave = resident.waves[i];
    wave = {};
    wave.state = &resident.workgroup.wave(i);
    if (counters) counters->start(*wave.state);
    wave.resident = &resident;
    wave.simd = best;
    wave.age = age++;
    wave.ready = wave.held_since = clk;
    wave.held_by = uint32_t(launch.entry);
    wave.held_reason = Stall::slot;
    Simd &simd = (*units)[best];
    simd.waves.push_back(&wave);
    simd.next_turn = std::min(simd.next_turn, clk);
  }
}

void ComputeUnit::end_wave(TimedWave &wave, uint64_t clk) {
  Simd &simd = (*units)[wave.simd];
  std::erase(simd.waves, &wave);
  Resident &resident = *wave.resident;
  resident.time.instructions += wave.executed;
  if (--resident.running != 0) return release_barrier(resident, clk);
  resident.time.end = clk + turn_clk;
  if (resident.counts) {
    result.simulated_clk = std::max(result.simulated_clk, resident.time.end);
    result.simulated.push_back(resident.time);
    source.ended();
  }
  start(resident, resident.time.end);
}

void ComputeUnit::reach_barrier(TimedWave &wave, uint64_t clk) {
  wave.at_barrier = true;
  wave.ready = never;
  ++wave.resident->at_barrier;
  release_barrier(*wave.resident, clk);
}

void ComputeUnit::release_barrier(Resident &resident, uint64_t clk) {
  if (resident.at_barrier != resident.running) return;
  resident.at_barrier = 0;
  for (TimedWave &wave : resident.waves) {
    if (!wave.at_barrier) continue;
    wave.at_barrier = false;
    wave.ready = clk + barrier_clk;
    Simd &simd = (*units)[wave.simd];
    simd.next_turn = std::min(simd.next_turn, wave.ready);
  }
}

//===--- Issue ------------------------------------------------------------------------------------------===//

uint64_t ComputeUnit::next_turn() const {
  uint64_t next = never;
  for (uint32_t i = 0; i < simds; ++i) {
    const uint64_t wanted = (*units)[i].next_turn;
    if (wanted == never) continue;
    // SIMD i has its turn when clk % 4 == i.
    next = std::min(next, wanted + (i + simds - wanted % simds) % simds);
  }
  return next;
}

void ComputeUnit::take_turn() {
  const uint64_t clk = next_turn();
  Simd &simd = (*units)[clk % simds];
  simd.next_turn = never;
  std::array<TimedWave *, most_waves> order;
  const size_t count = simd.waves.size();
  std::copy_n(simd.waves.begin(), count, order.begin());

  uint32_t slots_taken = 0;
  uint64_t next = never;
  for (size_t i = 0; i < count && !launch.stop; ++i) {
    TimedWave &wave = *order[i];
    if (wave.ready > clk) {
      next = std::min(next, wave.ready);
      continue;
    }
    const Op &op = *wave.state->pc;
    const OpTiming &timing = timings[op.index];
    const uint32_t slot = timing.slot == Slot::none ? 0 : 1u << uint32_t(timing.slot);
    Blocked why = blocked(simd, wave, timing, op, clk);
    if (why.until == 0 && (slots_taken & slot) != 0) why = {Stall::slot, clk + turn_clk};
    if (why.until != 0) {
      // The wait and its reason are recorded turn by turn, because the reason may change.
      const uint64_t until = std::max(why.until, clk + turn_clk);
      next = std::min(next, until);
      if (observer) [[unlikely]]
        observe_wait(wave, clk);
      hold(wave, clk, why.reason, op.index);
      continue;
    }
    slots_taken |= slot;
    issue(simd, wave, timing, clk);
    if (std::find(simd.waves.begin(), simd.waves.end(), &wave) != simd.waves.end())
      next = std::min(next, wave.ready);
  }
  simd.next_turn = std::min(simd.next_turn, next);
}

/// Books the time since `held_since` for the reason noted then, and notes a new one.
void ComputeUnit::hold(TimedWave &wave, uint64_t until, Stall reason, uint32_t op) {
  if (until > wave.held_since) {
    const uint64_t clk = until - wave.held_since;
    result.instructions[wave.held_by].stall_clk[size_t(wave.held_reason)] += clk;
    result.stall_clk[size_t(wave.held_reason)] += clk;
    const uint64_t idle_from = std::max(wave.held_since, (*units)[wave.simd].matrix_free);
    if (until > idle_from) wave.idle_clk[size_t(wave.held_reason)] += until - idle_from;
  }
  wave.held_since = until;
  wave.held_reason = reason;
  wave.held_by = op;
}

bool ComputeUnit::overlaps_packed_result(const TimedWave &wave, const Op &op) const {
  const OpInfo &info = launch.program->infos.infos[op.index];
  const RegisterRange result = wave.packed_result;
  for (uint32_t i = info.reads_begin; i < info.reads_end; ++i) {
    const RegisterRange &read = launch.program->infos.ranges[i];
    if (read.first < result.first + result.count && result.first < read.first + read.count) return true;
  }
  return false;
}

ComputeUnit::Blocked ComputeUnit::blocked(const Simd &simd, const TimedWave &wave, const OpTiming &timing,
                                          const Op &op, uint64_t clk) const {
  auto until = [&](Stall reason, uint64_t at) { return Blocked{reason, at > clk ? at : 0}; };
  if (wave.packed_ready > clk && overlaps_packed_result(wave, op))
    return {Stall::dependency, wave.packed_ready};
  if (timing.counts_vector && wave.vector_memory.size() >= most_vector_memory)
    return until(Stall::queue, wave.vector_memory.front());
  if (timing.counts_lgkm && wave.lgkm.size() >= most_lgkm)
    return until(Stall::queue, *std::min_element(wave.lgkm.begin(), wave.lgkm.end()));
  switch (timing.pipe) {
  case Pipe::matrix:
    return until(Stall::pipe_busy, std::max(simd.port_free, simd.matrix_free));
  case Pipe::packed_f32:
    return until(Stall::pipe_busy, std::max(simd.port_free, simd.matrix_drained));
  case Pipe::valu:
  case Pipe::transcendental:
    return until(Stall::pipe_busy, simd.port_free);
  case Pipe::vmem:
    return until(Stall::queue, memory.accepts());
  case Pipe::lds:
    return until(Stall::queue, lds.accepts(LdsPorts::port_of(wave.simd)));
  default:
    return {};
  }
}

namespace {

/// Removes operations that are done by `clk`.
void retire(std::vector<uint64_t> &in_flight, uint64_t clk) {
  std::erase_if(in_flight, [&](uint64_t done) { return done <= clk; });
}

/// When at most `count` are still in flight.
uint64_t down_to(std::vector<uint64_t> in_flight, size_t count) {
  if (in_flight.size() <= count) return 0;
  std::nth_element(in_flight.begin(), in_flight.begin() + ptrdiff_t(in_flight.size() - count - 1),
                   in_flight.end());
  return in_flight[in_flight.size() - count - 1];
}

} // namespace

/// Records why the matrix core was idle: what the wave that uses it again did meanwhile.
void ComputeUnit::end_idle_time(Simd &simd, TimedWave &wave, const Op &op, uint64_t clk) {
  const uint64_t idle_clk = clk - std::min(clk, simd.matrix_free);
  const bool first = !wave.used_matrix_core;
  wave.used_matrix_core = true;
  if (idle_clk == 0) return;
  if (first) {
    const uint64_t start = wave.resident->time.start;
    const uint64_t begin = std::max(simd.matrix_free, start - workgroup_start_clk);
    const uint64_t starting = start > begin ? start - begin : 0;
    result.idle.start += starting;
    result.idle.before_first += idle_clk - starting;
  } else {
    std::array<uint64_t, stall_count> &lost = result.instructions[op.index].idle_clk;
    uint64_t issuing = idle_clk;
    for (size_t i = 0; i < stall_count; ++i) {
      lost[i] += wave.idle_clk[i];
      issuing -= wave.idle_clk[i];
    }
    result.instructions[op.index].idle_issuing_clk += issuing;
  }
  for (TimedWave *other : simd.waves)
    other->idle_clk.fill(0);
}

/// When the instruction occupies its pipe. Called before it runs, because its registers still have its
/// addresses.
Occupation ComputeUnit::occupy(Simd &simd, TimedWave &wave, const OpTiming &timing, const Op &op,
                               uint64_t clk) {
  uint64_t &busy = result.busy_clk[size_t(timing.pipe)];
  switch (timing.pipe) {
  case Pipe::matrix:
    end_idle_time(simd, wave, op, clk);
    simd.matrix_free = clk + timing.matrix_clk;
    simd.matrix_drained = simd.matrix_free + matrix_drain_clk;
    simd.port_free = clk + timing.port_clk;
    busy += timing.matrix_clk;
    wave.resident->time.flops += timing.flops;
    wave.resident->time.matrix_clk += timing.matrix_clk;
    return {clk, simd.matrix_free};
  case Pipe::valu:
  case Pipe::transcendental:
  case Pipe::packed_f32:
    simd.port_free = clk + timing.port_clk;
    busy += timing.port_clk;
    if (timing.pipe == Pipe::packed_f32) {
      wave.packed_ready = clk + packed_f32_result_clk;
      wave.packed_result = timing.packed_result;
    }
    return {clk, simd.port_free};
  case Pipe::vmem: {
    const MemoryTraffic before = traffic;
    retire(wave.vector_memory, clk);
    VectorMemory::Result access{{clk, clk + turn_clk}, clk};
    if (timing.transfer == Transfer::invalidate) {
      memory.invalidate();
    } else if (timing.transfer != Transfer::none) {
      LaneAccess<uint64_t> lanes;
      vector_access(*wave.state, op, lanes);
      access = memory.access(lanes, timing.transfer, clk);
    }
    // vmcnt counts down in order.
    if (!wave.vector_memory.empty()) access.done = std::max(access.done, wave.vector_memory.back());
    wave.vector_memory.push_back(access.done);
    if (timing.counts_lgkm) wave.lgkm.push_back(access.done);
    wave.resident->time.traffic.add_since(traffic, before);
    return access.path;
  }
  case Pipe::lds: {
    const MemoryTraffic before = traffic;
    retire(wave.lgkm, clk);
    const LdsPorts::Result access =
        lds.access(LdsPorts::port_of(wave.simd), *wave.state, op, timing.transfer, clk);
    wave.lgkm.push_back(access.done);
    wave.resident->time.traffic.add_since(traffic, before);
    return access.port;
  }
  case Pipe::smem: {
    const MemoryTraffic before = traffic;
    retire(wave.lgkm, clk);
    wave.lgkm.push_back(timing.transfer == Transfer::none || timing.effect == Effect::read_clock
                            ? clk + scalar_latency_clk
                            : memory.scalar_load(scalar_access(*wave.state, op), clk));
    wave.resident->time.traffic.add_since(traffic, before);
    break;
  }
  case Pipe::salu:
  case Pipe::branch:
  case Pipe::internal:
    break;
  }
  busy += turn_clk;
  return {clk, clk + turn_clk};
}

//===--- Observation ------------------------------------------------------------------------------------===//

WaveName ComputeUnit::name_of(const TimedWave &wave) const {
  return {wave.resident->time.number, uint32_t(&wave - wave.resident->waves.data()), wave.simd, wave.age};
}

/// Called before `hold` books it.
void ComputeUnit::observe_wait(const TimedWave &wave, uint64_t until) {
  if (until > wave.held_since)
    observer->waited(name_of(wave), wave.held_by, wave.held_reason, wave.held_since, until);
}

//===--- The instruction --------------------------------------------------------------------------------===//

void ComputeUnit::issue(Simd &simd, TimedWave &wave, const OpTiming &timing, uint64_t clk) {
  Wave &w = *wave.state;
  const Op &op = *w.pc;
  if (observer) [[unlikely]]
    observe_wait(wave, clk);
  hold(wave, clk, Stall::slot, op.index);
  // An MFMA ends idle time, which has the reasons booked so far.
  const Occupation busy = occupy(simd, wave, timing, op, clk);
  if (observer) [[unlikely]]
    observer->issued(name_of(wave), op.index, clk, timing.pipe, busy);
  InstructionTime &instruction = result.instructions[op.index];
  ++instruction.issued;
  ++result.wave_instructions;

  if (timing.effect == Effect::read_clock) {
    w.clock.modelled = true;
    w.clock.base = clk;
  }
  if (counters) [[unlikely]]
    counters->before(w, op);
  ++w.pc;
  const Step step = op.run(w, op);
  ++wave.executed;
  if (step == Step::stop || step == Step::end || wave.executed >= launch.instruction_budget) {
    w.executed = wave.executed;
    if (step == Step::end) return end_wave(wave, clk);
    return step == Step::stop ? wave.resident->workgroup.report_fault(w)
                              : wave.resident->workgroup.report_exhausted(w);
  }

  // The reason that holds the wave back longest is the one booked.
  wave.held_since = clk + turn_clk;
  wave.ready = clk + timing.hold_clk;
  wave.held_reason = Stall::nop;
  wave.held_by = op.index;
  auto not_before = [&](uint64_t at, Stall reason, uint32_t by) {
    if (at <= wave.ready) return;
    wave.ready = at;
    wave.held_reason = reason;
    wave.held_by = by;
  };
  const bool taken = w.pc != &op + 1;
  const Op &next = *w.pc;
  if (taken) not_before(clk + branch_clk, Stall::fetch, op.index);
  if (timings[next.index].split_fetch)
    not_before(clk + (taken ? branch_clk : turn_clk) + fetch_split_clk, Stall::fetch, next.index);
  switch (timing.effect) {
  case Effect::wait_counts:
    not_before(down_to(wave.vector_memory, timing.vector_count), Stall::vmcnt, op.index);
    if (timing.lgkm_count < most_lgkm)
      not_before(down_to(wave.lgkm, timing.lgkm_count), Stall::lgkmcnt, op.index);
    break;
  case Effect::barrier:
    wave.held_reason = Stall::barrier;
    reach_barrier(wave, clk);
    break;
  case Effect::priority:
    wave.priority = uint32_t(op.value) & 3;
    std::sort(simd.waves.begin(), simd.waves.end(), [](const TimedWave *a, const TimedWave *b) {
      return a->priority != b->priority ? a->priority > b->priority : a->age < b->age;
    });
    break;
  default:
    break;
  }
}

void ComputeUnit::finish() {
  result.busy_clk[size_t(Pipe::vmem)] += memory.busy_clk;
  result.busy_clk[size_t(Pipe::lds)] += lds.busy_clk;
  if (!observer) return;
  for (const Simd &simd : *units)
    for (const TimedWave *wave : simd.waves)
      observe_wait(*wave, result.simulated_clk);
}

} // namespace sluice::emulator::timing

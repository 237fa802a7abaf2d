//===- workgroup.cpp - one workgroup, running -----------------------------------------------------------===//
#include "emulator/machine/workgroup.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "emulator/exec/global_sync.h"
#include "emulator/machine/trace_instruction.h"

namespace sluice::emulator {

namespace {

constexpr uint32_t register_bytes = (vector_registers + temporary_rows) * wave_lanes * 4;
constexpr size_t cache_line = 64;
// Initial content of LDS and scratch: as a float a NaN, as an address nonsense.
constexpr int fresh_byte = 0xff;
constexpr uint32_t first_wave = 1u << 31; // in the workgroup info

struct StopReason {
  ReportKind kind;
  std::string_view message;
};
StopReason describe(Fault fault) {
  switch (fault) {
  case Fault::trap:
    return {ReportKind::trap, "the kernel stopped with s_trap"};
  case Fault::invalid_pc:
    return {ReportKind::invalid_pc, "jumps to an address where no instruction starts"};
  case Fault::branch_stack:
    return {ReportKind::invalid_pc, "the branch stack is full or empty"};
  case Fault::matrix_overflow_mode:
    return {ReportKind::unknown_instruction,
            "MODE.FP16_OVFL is set: the machine does not clamp what the matrix core computes"};
  case Fault::matrix_index_mode:
    return {
        ReportKind::unknown_instruction,
        "registers are relative to M0 (GPR_IDX_EN): no document says which ones the matrix core would use"};
  case Fault::sparse_index:
    return {ReportKind::unknown_instruction, "a pair of sparse indices is not in ascending order"};
  case Fault::global_sync_alone:
    return {ReportKind::unknown_instruction,
            "global wave sync is for cooperative launches, whose workgroups are all resident"};
  case Fault::global_sync_exec:
    return {ReportKind::unknown_instruction, "EXEC is 0: global wave sync may hang without an active lane"};
  case Fault::global_sync_not_ready:
    return {ReportKind::unknown_instruction, "no ds_gws_init has set how many waves meet at this barrier"};
  case Fault::none:
  case Fault::unknown_instruction:
    break;
  }
  return {ReportKind::unknown_instruction, ""};
}

} // namespace

struct Workgroup::Slot {
  Slot(const LaunchState &launch, WorkgroupChecks &shared, std::vector<InexactSet> &inexact_lds) {
    // Zero pages that take no memory until a register is written: a device holds ten thousand waves.
    size_t room = register_bytes + cache_line;
    registers.reset(std::calloc(room, 1));
    void *start = registers.get();
    if (start == nullptr) throw std::bad_alloc();
    wave.vgprs = static_cast<uint32_t *>(std::align(cache_line, register_bytes, start, room));
    if (launch.scratch_bytes != 0)
      scratch = std::make_unique<uint8_t[]>(size_t(launch.scratch_bytes) * wave_lanes);
    if (launch.strict) checks = std::make_unique<WaveChecks>(launch.checks, shared);
    if (launch.fidelity == nullptr) return;
    fidelity = std::make_unique<WaveFidelity>(*launch.fidelity, inexact_lds);
    checks->follow_with(fidelity.get());
  }
  Slot(const Slot &) = delete;
  Slot &operator=(const Slot &) = delete;

  struct Free {
    void operator()(void *memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> registers;
  Wave wave;
  WaveState state = WaveState::ended;
  bool traced = false;
  std::unique_ptr<uint8_t[]> scratch;
  std::unique_ptr<WaveChecks> checks;
  std::unique_ptr<WaveFidelity> fidelity; // nullable
};

Workgroup::Workgroup(LaunchState &launch) : launch(launch), checks(launch.checks.unused_reads) {
  lds = std::make_unique<uint8_t[]>(launch.lds_bytes + 16);
  for (uint32_t i = 0; i < launch.waves; ++i)
    slots.push_back(std::make_unique<Slot>(launch, checks, inexact_lds));
}

Workgroup::~Workgroup() {
  checks.reads.finish();
}

//===--- Start ------------------------------------------------------------------------------------------===//

void Workgroup::start(std::array<uint32_t, 3> id, uint32_t number) {
  view.id = id;
  view.number = number;
  view.lds = lds.get();
  view.lds_bytes = launch.lds_bytes;
  view.waves = launch.waves;
  view.sync = launch.sync;
  stuck_since = 0;
  if (launch.strict) {
    std::memset(lds.get(), fresh_byte, launch.lds_bytes);
    checks.lds.reset(launch.lds_bytes);
    checks.reads.finish();
  }
  if (launch.fidelity) inexact_lds.assign(launch.lds_bytes, 0);
  random = launch.options->seed * 0x9e3779b97f4a7c15 + number;
  for (uint32_t i = 0; i < launch.waves; ++i)
    start_wave(i);
  ++counters.workgroups;
}

/// The state that the dispatcher gives a wave (AMDGPUUsage, "Initial Kernel Execution State").
void Workgroup::start_wave(uint32_t id) {
  Slot &slot = *slots[id];
  Wave &w = slot.wave;
  const package::KernelDescriptor &d = launch.kernel->descriptor;
  const ProgramImpl &program = *launch.program;
  std::memset(w.s, 0, sizeof w.s);
  w.constants = program.constants.data();
  w.first_op = (launch.strict ? program.strict : program.fast).data();
  w.pc = w.first_op + launch.entry;
  w.workgroup = &view;
  w.checks = slot.checks.get();
  w.scratch = slot.scratch.get();
  w.scratch_bytes = launch.scratch_bytes;
  if (launch.strict && w.scratch)
    std::memset(w.scratch, fresh_byte, size_t(launch.scratch_bytes) * wave_lanes);
  w.id = id;
  w.executed = w.buffer_lanes_out_of_range = 0;
  w.clock = {.base = launch.options->clock_start, .site = nullptr, .polling_since = 0, .modelled = false};
  w.mfma_executed.fill(0);
  w.code = &launch.code;
  w.fault = Fault::none;
  w.vgpr_limit = launch.checks.vgpr_limit;
  w.sgpr_limit = launch.checks.sgpr_limit;
  w.noise = {launch.options->perturb_transcendentals, launch.options->scramble_nans, launch.options->seed};

  std::copy(launch.user_sgprs.begin(), launch.user_sgprs.end(), w.s);
  uint32_t next = uint32_t(launch.user_sgprs.size());
  auto push = [&](uint32_t value) { w.s[next++] = value; };
  for (int axis = 0; axis < 3; ++axis)
    if (d.workgroup_id(axis)) push(view.id[size_t(axis)]);
  if (d.workgroup_info()) push(launch.waves | (id == 0 ? first_wave : 0));
  if (d.private_segment()) w.set_pair(102, private_aperture); // FLAT_SCRATCH

  const uint32_t first_item = id * wave_lanes;
  const uint32_t items = std::min(wave_lanes, launch.threads - first_item);
  w.set_exec(items == wave_lanes ? all_lanes : (uint64_t(1) << items) - 1);
  uint32_t *ids = w.row(0);
  uint32_t x = first_item % launch.block[0];
  uint32_t y = first_item / launch.block[0] % launch.block[1];
  uint32_t z = first_item / launch.block[0] / launch.block[1];
  for (uint32_t lane = 0; lane < wave_lanes; ++lane) {
    ids[lane] = x | (d.workitem_id() > 0 ? y << 10 : 0) | (d.workitem_id() > 1 ? z << 20 : 0);
    if (++x != launch.block[0]) continue;
    x = 0;
    if (++y != launch.block[1]) continue;
    y = 0;
    ++z;
  }

  w.set_mode(d.mode());

  if (w.checks) {
    const uint64_t seed = launch.options->seed * 0x9e3779b97f4a7c15 + (uint64_t(view.number) << 8) + id;
    w.checks->start(w, next, seed);
  }
  if (slot.fidelity) slot.fidelity->start(w);
  Tracer *const tracer = launch.options->tracer;
  slot.traced = tracer && tracer->follows(view.id, id);
  slot.state = WaveState::ready;
  ++counters.waves;
}

//===--- Run --------------------------------------------------------------------------------------------===//

[[gnu::always_inline]] static inline Step run_checked(Wave &w, const Op &op) {
  w.checks->before(w, op);
  const Step step = op.run(w, op);
  w.checks->after(op);
  return step;
}

/// An instruction of a wave that is traced, followed, or both.
Step Workgroup::run_observed(Slot &slot, const Op &op, uint64_t number) {
  Wave &w = slot.wave;
  if (slot.fidelity) slot.fidelity->before(w, op);
  TraceContext context{number, w.exec(), slot.traced ? w.checks->awaited() : OperandSet()};
  const Step step = run_checked(w, op);
  if (slot.fidelity) slot.fidelity->after(op);
  context.ran = step != Step::stop;
  if (slot.traced) trace_instruction(*launch.options->tracer, *launch.program, w, op, context);
  return step;
}

template <Workgroup::Loop loop> Step Workgroup::run_wave(Slot &slot, uint64_t limit) {
  Wave &w = slot.wave;
  uint64_t left = limit;
  Step step = Step::next;
  while (left != 0 && step == Step::next) {
    if constexpr (loop == Loop::strict) {
      uint64_t quiet = w.checks->quiet(w, w.pc->index, left);
      left -= quiet;
      for (; quiet != 0 && step == Step::next; --quiet) {
        const Op &op = *w.pc++;
        step = op.run(w, op);
      }
      left += quiet;
      if (left == 0 || step != Step::next) break;
    }
    --left;
    const Op &op = *w.pc++;
    if constexpr (loop == Loop::fast) {
      step = op.run(w, op);
    } else if constexpr (loop == Loop::strict) {
      step = run_checked(w, op);
    } else {
      step = run_observed(slot, op, w.executed + limit - left - 1);
    }
  }
  w.executed += limit - left;
  return step;
}

void Workgroup::report_stop(const Wave &wave, const Op *at, ReportKind kind, std::string message) {
  Finding finding;
  finding.rule.kind = kind;
  finding.op = uint32_t(std::max<ptrdiff_t>(at - wave.first_op, 0));
  finding.workgroup = view.id;
  finding.wave = wave.id;
  finding.message = std::move(message);
  launch.checks.sink->add(std::move(finding));
  launch.stop = true;
}

void Workgroup::report_fault(const Wave &wave) {
  const auto [kind, message] = describe(wave.fault);
  report_stop(wave, wave.pc - 1, kind, std::string(message));
}

void Workgroup::report_exhausted(const Wave &wave) {
  // The last instruction may be a branch from anywhere: report where the wave would go on.
  report_stop(wave, wave.pc, ReportKind::budget_exhausted,
              "the wave has executed " + std::to_string(wave.executed) + " instructions without ending");
}

Wave &Workgroup::wave(uint32_t id) {
  return slots[id]->wave;
}

void Workgroup::end_wave(Slot &slot) {
  if (slot.wave.checks) {
    slot.wave.checks->finish(slot.wave);
    counters.lds_bank_conflicts += slot.wave.checks->bank_conflicts;
  }
  slot.state = WaveState::ended;
  counters.wave_instructions += slot.wave.executed;
  counters.clock_end = std::max(counters.clock_end, slot.wave.time());
  for (size_t kind = 0; kind < counters.mfma_by_kind.size(); ++kind) {
    counters.mfma_by_kind[kind] += slot.wave.mfma_executed[kind];
    counters.mfma_instructions += slot.wave.mfma_executed[kind];
  }
  counters.buffer_lanes_out_of_range += slot.wave.buffer_lanes_out_of_range;
}

/// Tells the checks which waves meet at a barrier.
void Workgroup::enter_meeting() {
  std::vector<Wave *> met, ended;
  std::vector<WaveChecks *> meeting;
  for (const auto &slot : slots) {
    const bool meets = slot->state == WaveState::at_barrier;
    (meets ? met : ended).push_back(&slot->wave);
    if (meets) meeting.push_back(slot->checks.get());
  }
  WaveChecks::check_meeting(met, ended);
  WaveChecks::meet(meeting);
}

/// If all waves that have not ended are at the barrier, lets them go on.
bool Workgroup::release_barrier() {
  bool any = false;
  for (const auto &slot : slots) {
    if (slot->state == WaveState::ready || slot->state == WaveState::at_global_barrier) return false;
    any = any || slot->state == WaveState::at_barrier;
  }
  if (!any) return false;
  if (launch.strict) checks.lds.next_epoch();
  if (launch.strict) enter_meeting();
  for (const auto &slot : slots) {
    if (slot->state != WaveState::at_barrier) continue;
    if (slot->wave.checks) slot->wave.checks->carry_into_epoch(slot->wave);
    slot->state = WaveState::ready;
  }
  return true;
}

bool Workgroup::leave_global_barriers() {
  bool waits = false;
  for (const auto &slot : slots) {
    if (slot->state != WaveState::at_global_barrier) continue;
    Wave &w = slot->wave;
    if (!launch.sync->passed(w.sync_resource, w.sync_round)) {
      waits = true;
      continue;
    }
    if (w.checks) w.checks->pass_global_barrier(w.sync_resource);
    slot->state = WaveState::ready;
  }
  return waits;
}

void Workgroup::report_deadlock() {
  for (const auto &slot : slots)
    if (slot->state == WaveState::at_global_barrier)
      return report_stop(slot->wave, slot->wave.pc - 1, ReportKind::barrier_deadlock,
                         "waits for other workgroups, but every remaining wave is also waiting");
}

bool Workgroup::take_turn(Slot &slot, uint64_t limit) {
  Wave &w = slot.wave;
  const uint64_t budget_left = launch.instruction_budget - std::min(w.executed, launch.instruction_budget);
  limit = std::min(limit, budget_left);
  const Step step = slot.traced || slot.fidelity ? run_wave<Loop::observed>(slot, limit)
                    : launch.strict              ? run_wave<Loop::strict>(slot, limit)
                                                 : run_wave<Loop::fast>(slot, limit);
  switch (step) {
  case Step::barrier:
    slot.state = WaveState::at_barrier;
    break;
  case Step::global_barrier:
    slot.state = WaveState::at_global_barrier;
    break;
  case Step::end:
    end_wave(slot);
    break;
  case Step::stop:
    report_fault(w);
    break;
  case Step::yield:
  case Step::next:
    if (w.executed >= launch.instruction_budget) report_exhausted(w);
    break;
  }
  if (launch.checks.sink->gave_up()) launch.stop = true;
  return step == Step::yield;
}

bool Workgroup::take_turns(uint64_t slice) {
  bool slept = false;
  switch (launch.options->wave_schedule) {
  case WaveSchedule::greedy:
    for (const auto &slot : slots)
      if (slot->state == WaveState::ready && !launch.stop) slept |= take_turn(*slot, slice);
    break;
  case WaveSchedule::round_robin:
    for (bool any = true; any && slice != 0; --slice) {
      any = false;
      for (const auto &slot : slots) {
        if (slot->state != WaveState::ready || launch.stop) continue;
        slept |= take_turn(*slot, 1);
        any = true;
      }
    }
    break;
  case WaveSchedule::random:
    for (uint64_t left = slice * slots.size(); left != 0 && !launch.stop; --left) {
      std::array<Slot *, WaveOrder::most_waves> ready;
      uint32_t count = 0;
      for (const auto &slot : slots)
        if (slot->state == WaveState::ready) ready[count++] = slot.get();
      if (count == 0) break;
      random = random * 6364136223846793005 + 1442695040888963407;
      slept |= take_turn(*ready[(random >> 33) % count], 1 + (random >> 59));
    }
    break;
  }
  return slept;
}

Workgroup::Progress Workgroup::run(uint64_t slice) {
  bool slept = false;
  bool waits;
  uint64_t moment;
  do {
    moment = launch.sync ? launch.sync->moment() : 0;
    waits = leave_global_barriers();
    slept |= take_turns(slice);
    if (launch.stop) return Progress::ended;
  } while (release_barrier());
  bool ended = true, ready = false;
  for (const auto &slot : slots) {
    ended = ended && slot->state == WaveState::ended;
    ready = ready || slot->state == WaveState::ready;
  }
  if (ended) {
    if (launch.sync) launch.sync->workgroup_ended();
    return Progress::ended;
  }
  if (waits && !ready && launch.sync->stuck(moment, stuck_since)) report_deadlock();
  return slept || waits ? Progress::sleeping : Progress::running;
}

} // namespace sluice::emulator

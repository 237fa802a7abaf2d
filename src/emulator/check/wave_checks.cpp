//===- wave_checks.cpp - the strict side of a wave ------------------------------------------------------===//
//
// Waves and their operations in flight. The rest of the class is in register_checks.cpp and
// memory_checks.cpp.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/check/wave_checks.h"

#include <algorithm>
#include <cstring>

namespace sluice::emulator {

//===--- Waves ------------------------------------------------------------------------------------------===//

WaveChecks::WaveChecks(const LaunchChecks &launch, WorkgroupChecks &workgroup)
    : launch(launch), checks(launch.options->checks),
      looks_for_hazards(launch.hazards != std::array<bool, hazard_levels>{}),
      enters_lds(checks.lds_races || checks.lds_equal_stores || checks.lds_write_after_read ||
                 checks.lane_stores || checks.uninitialised),
      looks_at_memory(checks.global_bounds || checks.uninitialised || checks.lane_stores || launch.shadow),
      tracks_defined(checks.uninitialised || checks.lds_races), lds(workgroup.lds), reads(workgroup.reads),
      last_block(launch.ops->infos.size()), pages(workgroup.pages) {}

void WaveChecks::start(const Wave &w, uint32_t defined_sgprs, uint64_t random_seed) {
  wave = w.id;
  random = random_seed | 1;
  vector_queue.clear();
  lgkm_queue.clear();
  pending.fill(0);
  pending_set = {};
  pending_registers = 0;
  undefined = {};
  bank_conflicts = 0;
  if (looks_for_hazards) hazards.start(launch.hazards, w.workgroup->waves == 1);
  loaded.any = false;
  acquiring.clear();
  at_barrier = {};
  if (launch.shadow) order.start(w.workgroup->number * w.workgroup->waves, w.id, w.workgroup->waves);
  if (tracks_defined) start_defined(w, defined_sgprs);
}

uint64_t WaveChecks::quiet(const Wave &w, uint32_t op, uint64_t left) {
  const uint32_t number = launch.quiet_runs->run_of[op];
  if (number == QuietRuns::none || looks_for_hazards || w.mode.gpr_index) return 0;
  const QuietRun &run = launch.quiet_runs->runs[number];
  if (run.vgprs_end > launch.vgpr_limit || run.agprs_end > launch.agpr_limit ||
      run.sgprs_end > launch.sgpr_limit)
    return 0;
  const uint64_t exec = w.exec();
  if (exec != all_lanes && run.has_matrix) return 0;
  const uint64_t count = run.end - op;
  const std::span<const QuietWord> words{&launch.quiet_runs->words[run.words_begin],
                                         run.words_end - run.words_begin};
  if (op != run.first || left < count) {
    for (const QuietWord &at : words)
      if (((pending_set.bits[at.word] | undefined.bits[at.word]) & (at.read | at.written)) != 0) return 0;
    return std::min(count, left);
  }
  uint64_t fresh = 0;
  for (const QuietWord &at : words) {
    if ((pending_set.bits[at.word] & (at.needed | at.written)) != 0) return 0;
    for (uint64_t partly = undefined.bits[at.word] & at.needed; partly != 0; partly &= partly - 1) {
      const auto operand = uint16_t(at.word * 64 + low_lane(partly));
      if (run.crosses_lanes || operand >= first_sgpr || (exec & ~defined[operand]) != 0) return 0;
    }
    fresh |= undefined.bits[at.word] & at.written;
  }
  if (fresh == 0) return count;
  if (run.crosses_lanes) return 0; // some of these define a part of their lanes
  for (const QuietWord &at : words)
    for (uint64_t news = undefined.bits[at.word] & at.written; news != 0; news &= news - 1) {
      const auto operand = uint16_t(at.word * 64 + low_lane(news));
      if (operand < first_sgpr)
        defined[operand] |= exec;
      else
        defined_bits[operand - first_sgpr] = ~0u;
      note_undefined({operand, 1});
    }
  return count;
}

void WaveChecks::finish(Wave &w) {
  // The hardware gives the LDS of an ended workgroup to the next one, and a late copy is written there.
  for (size_t i = 0; checks.lds_races && i < vector_queue.size(); ++i) {
    const AsyncOperation &operation = vector_queue[i];
    if (operation.kind != AsyncKind::lds_copy) continue;
    const uint32_t first =
        operation.in_bounds == 0 ? 0 : operation.lds_address[0][low_lane(operation.in_bounds)];
    report(w, w.first_op[operation.op], ReportKind::lds_copy_at_end, -1, first, std::nullopt,
           [] { return std::string("the wave ends while this copy into LDS is in flight"); });
  }
  wait(w, 0, 0);
}

void WaveChecks::report(Wave &w, const Op &op, ReportKind kind, int32_t lane, uint64_t address,
                        std::optional<LdsOther> other, const std::function<std::string()> &message) {
  report(w, op, Rule{.kind = kind}, lane, address, other, message);
}

Finding WaveChecks::finding_of(const Wave &w, const Op &op, Rule rule, int32_t lane, uint64_t address,
                               std::optional<LdsOther> other) const {
  const Consequence consequence = consequence_of(rule.kind, rule.level, *launch.options);
  rule.fails = consequence.fails;
  rule.goes_on = consequence.goes_on;
  Finding finding;
  finding.rule = rule;
  finding.op = op.index;
  finding.workgroup = w.workgroup->id;
  finding.wave = w.id;
  finding.lane = lane;
  finding.address = address;
  if (other) finding.other_op = other->op;
  if (other) finding.other_wave = other->wave;
  return finding;
}

void WaveChecks::report(Wave &w, const Op &op, Rule rule, int32_t lane, uint64_t address,
                        std::optional<LdsOther> other, const std::function<std::string()> &message) {
  Finding finding = finding_of(w, op, rule, lane, address, other);
  if (!launch.sink->is_new(finding.rule, op.index, finding.other_op)) return;
  finding.message = message();
  launch.sink->add(std::move(finding));
}

//===--- Operations in flight ---------------------------------------------------------------------------===//

AsyncOperation &WaveChecks::new_operation(Wave &w, const Op &op, AsyncKind kind) {
  const bool vector = kind == AsyncKind::vector_load || kind == AsyncKind::store ||
                      kind == AsyncKind::lds_copy || kind == AsyncKind::flat;
  AsyncOperation &operation = (vector ? vector_queue : lgkm_queue).push();
  operation.kind = kind;
  operation.delivered = false;
  operation.vector_done = false;
  operation.lgkm_done = kind != AsyncKind::flat;
  operation.lds_writes = false;
  operation.rows = 0;
  operation.lds_parts = 0;
  operation.lds_bytes = 0;
  operation.first = 0;
  operation.op = op.index;
  operation.moment = vector ? order.advance() : kind == AsyncKind::scalar_load ? order.advance_scalar() : 0;
  operation.undefined = loaded.any ? loaded.rows[0] : 0;
  operation.exec = w.exec();
  if ((operation.exec & ~at_barrier.exec) != 0 && kind != AsyncKind::scalar_load) [[unlikely]]
    check_returned_lanes(w, op);
  operation.in_bounds = 0;
  operation.lds_range = {};
  return operation;
}

void WaveChecks::mark_pending(const AsyncOperation &operation, int32_t change) {
  for (uint32_t r = 0; r < operation.rows; ++r) {
    uint8_t &count = pending[operation.first + r];
    count = uint8_t(count + change);
    pending_set.assign(operation.first + r, count != 0);
  }
  pending_registers = uint32_t(int32_t(pending_registers) + change * operation.rows);
}

void WaveChecks::issue(Wave &w, AsyncOperation &operation) {
  // The value has been read by now: what the atomic releases was released before this.
  operation.acquires = !acquiring.empty();
  for (const LinePart &part : acquiring)
    order.acquire(*launch.atomics, part);
  acquiring.clear();
  bool now = launch.options->completion == CompletionOrder::early;
  if (launch.options->completion == CompletionOrder::random) {
    random = random * 6364136223846793005 + 1442695040888963407;
    now = random >> 63;
  }
  if (now) deliver(w, operation);
  mark_pending(operation, 1);
  if (vector_queue.size() > most_vector_count) complete(w, vector_queue, 0);
  if (lgkm_queue.size() > most_lgkm_count) complete(w, lgkm_queue, 0);
}

void WaveChecks::deliver(Wave &w, AsyncOperation &operation) {
  operation.delivered = true;
  if (operation.kind == AsyncKind::scalar_load) {
    for (uint32_t i = 0; i < operation.rows; ++i)
      w.s[operation.first - first_sgpr + i] = operation.data[i];
    return;
  }
  if (operation.kind == AsyncKind::lds_copy) {
    for (uint64_t lanes = operation.in_bounds; lanes != 0; lanes &= lanes - 1) {
      const uint32_t lane = low_lane(lanes);
      std::memcpy(w.workgroup->lds + operation.lds_address[0][lane], &operation.data[lane], 4);
    }
    return;
  }
  for (uint32_t r = 0; r < operation.rows; ++r) {
    uint32_t *row = w.row(operation.first + r);
    const uint32_t *data = &operation.data[r * wave_lanes];
    if (operation.exec == all_lanes) {
      std::memcpy(row, data, wave_lanes * 4);
    } else {
      for (uint32_t i = 0; i < wave_lanes; ++i)
        if ((operation.exec >> i & 1) != 0) row[i] = data[i];
    }
  }
}

void WaveChecks::complete(Wave &w, AsyncQueue &queue, size_t position) {
  AsyncOperation &operation = queue[position];
  if (!operation.delivered) deliver(w, operation);
  if (operation.kind == AsyncKind::lds_copy)
    for (uint64_t lanes = operation.in_bounds; lanes != 0; lanes &= lanes - 1)
      lds.end_copy(operation.lds_address[0][low_lane(lanes)], 4, wave, operation.op,
                   (operation.undefined >> low_lane(lanes) & 1) == 0);
  mark_pending(operation, -1);
  queue.pop(position);
}

void WaveChecks::wait(Wave &w, uint32_t vector_count, uint32_t lgkm_count) {
  // LDS operations are in order. If scalar loads are among them, only a wait for 0 covers those loads.
  uint32_t in_order = 0;
  for (size_t i = 0; i < lgkm_queue.size(); ++i)
    in_order += lgkm_queue[i].kind != AsyncKind::scalar_load;
  for (size_t i = 0; i < lgkm_queue.size();) {
    const bool scalar = lgkm_queue[i].kind == AsyncKind::scalar_load;
    if (scalar ? lgkm_count == 0 : in_order > lgkm_count) {
      in_order -= !scalar;
      complete(w, lgkm_queue, i);
    } else {
      ++i;
    }
  }
  // A flat instruction is counted by both counters, and its result arrives when neither counts it.
  // Instructions after it do not wait for the second.
  uint32_t counted = 0;
  for (size_t i = 0; i < vector_queue.size(); ++i)
    counted += !vector_queue[i].vector_done;
  for (size_t i = 0; i < vector_queue.size();) {
    AsyncOperation &operation = vector_queue[i];
    operation.lgkm_done = operation.lgkm_done || lgkm_count == 0;
    if (!operation.vector_done && counted > vector_count) {
      operation.vector_done = true;
      --counted;
    }
    if (operation.vector_done && operation.lgkm_done)
      complete(w, vector_queue, i);
    else
      ++i;
  }
}

OperandSet WaveChecks::awaited() const {
  OperandSet result;
  for (const AsyncQueue *queue : {&vector_queue, &lgkm_queue})
    for (size_t i = 0; i < queue->size(); ++i) {
      const AsyncOperation &operation = (*queue)[i];
      for (uint32_t r = 0; r < operation.rows && !operation.delivered; ++r)
        result.set(operation.first + r);
    }
  return result;
}

void WaveChecks::carry_into_epoch(Wave &) {
  for (AsyncQueue *queue : {&lgkm_queue, &vector_queue})
    for (size_t i = 0; i < queue->size(); ++i) {
      const AsyncOperation &operation = (*queue)[i];
      for (uint32_t part = 0; part < operation.lds_parts; ++part)
        for (uint64_t lanes = operation.in_bounds; lanes != 0; lanes &= lanes - 1) {
          const uint32_t address = operation.lds_address[part][low_lane(lanes)];
          if (operation.lds_writes)
            lds.carry_write(address, operation.lds_bytes, wave, operation.op);
          else
            lds.carry_read(address, operation.lds_bytes, wave, operation.op,
                           operation.kind == AsyncKind::lds_read);
        }
    }
}

} // namespace sluice::emulator

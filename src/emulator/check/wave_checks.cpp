//===- wave_checks.cpp - the strict side of a wave ------------------------------------------------------===//
//
// Order of the file: waves, operations in flight, registers, memory.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/check/wave_checks.h"

#include <algorithm>
#include <bit>
#include <cstdio>

#include "emulator/exec/memory/access.h"

namespace sluice::emulator {

namespace {

constexpr uint32_t most_vector_operations = 63; // what the counters hold
constexpr uint32_t most_lgkm_operations = 15;

std::string hex(uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string register_name(uint16_t operand) {
  if (operand < first_agpr) return "v" + std::to_string(operand);
  if (operand < first_sgpr) return "a" + std::to_string(operand - first_agpr);
  const uint32_t number = operand - uint32_t(first_sgpr);
  if (number == sgpr_vcc || number == sgpr_vcc + 1u) return "vcc";
  if (number == sgpr_exec || number == sgpr_exec + 1u) return "exec";
  if (number == sgpr_m0) return "m0";
  if (number == sgpr_scc) return "scc";
  return "s" + std::to_string(number);
}

bool overlaps(uint32_t a, uint32_t a_bytes, uint32_t b, uint32_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

uint32_t low_lane(uint64_t lanes) {
  return uint32_t(std::countr_zero(lanes));
}

} // namespace

//===--- Waves ------------------------------------------------------------------------------------------===//

WaveChecks::WaveChecks(const LaunchChecks &launch, LdsShadow &lds)
    : launch(launch), checks(launch.options->checks),
      agpr_limit(launch.vgpr_limit > launch.accum_offset ? launch.vgpr_limit - launch.accum_offset : 0),
      lds(lds) {}

void WaveChecks::start(const Wave &w, uint32_t defined_sgprs, uint64_t random_seed) {
  wave = w.id;
  random = random_seed | 1;
  vector_queue.clear();
  lgkm_queue.clear();
  pending.fill(0);
  pending_registers = 0;
  flat_in_flight = 0;
  bank_conflicts = 0;
  if (checks.hazards) hazards.start();
  last_block.assign(launch.ops->infos.size(), nullptr);
  if (!checks.uninitialised) return;
  defined.fill(0);
  defined[0] = all_lanes;
  defined_sgpr.fill(0);
  std::fill_n(defined_sgpr.begin(), defined_sgprs, uint8_t(1));
  // FLAT_SCRATCH and XNACK_MASK, trap registers, EXEC
  for (uint32_t number = 102; number < sgpr_vcc; ++number)
    defined_sgpr[number] = 1;
  for (uint32_t number = sgpr_ttmp0; number < sgpr_m0; ++number)
    defined_sgpr[number] = 1;
  defined_sgpr[sgpr_exec] = defined_sgpr[sgpr_exec + 1] = 1;
}

void WaveChecks::finish(Wave &w) {
  // The hardware gives the LDS of a workgroup that has ended to the next one; a late copy lands there.
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
  const std::optional<uint32_t> other_op = other ? std::optional(other->op) : std::nullopt;
  if (!launch.sink->is_new(kind, op.index, other_op)) return;
  Finding finding;
  finding.kind = kind;
  finding.op = op.index;
  finding.workgroup = w.workgroup->id;
  finding.wave = w.id;
  finding.lane = lane;
  finding.address = address;
  finding.other_op = other_op;
  if (other) finding.other_wave = other->wave;
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
  operation.half = HalfSelect::none;
  operation.rows = 0;
  operation.lds_parts = 0;
  operation.lds_bytes = 0;
  operation.first = 0;
  operation.op = op.index;
  operation.exec = w.exec();
  operation.in_bounds = 0;
  operation.lds_low = ~0u;
  operation.lds_high = 0;
  return operation;
}

void WaveChecks::mark_pending(const AsyncOperation &operation, int32_t change) {
  for (uint32_t r = 0; r < operation.rows; ++r)
    pending[operation.first + r] = uint8_t(pending[operation.first + r] + change);
  pending_registers = uint32_t(int32_t(pending_registers) + change * operation.rows);
}

void WaveChecks::issue(Wave &w, AsyncOperation &operation) {
  bool now = launch.options->completion == CompletionOrder::early;
  if (launch.options->completion == CompletionOrder::random) {
    random = random * 6364136223846793005 + 1442695040888963407;
    now = random >> 63;
  }
  if (now) deliver(w, operation);
  if (operation.kind == AsyncKind::flat) ++flat_in_flight;
  mark_pending(operation, 1);
  if (vector_queue.size() > most_vector_operations) complete(w, vector_queue, 0);
  if (lgkm_queue.size() > most_lgkm_operations) complete(w, lgkm_queue, 0);
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
    if (operation.half != HalfSelect::none) {
      merge_half(row, data, operation.exec, operation.half);
    } else if (operation.exec == all_lanes) {
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
      lds.end_copy(operation.lds_address[0][low_lane(lanes)], 4, wave, operation.op);
  mark_pending(operation, -1);
  queue.pop(position);
}

void WaveChecks::wait(Wave &w, uint32_t vector_count, uint32_t lgkm_count) {
  if (lgkm_count == 0) flat_in_flight = 0;
  // LDS operations are in order. With scalar loads among them only a wait for 0 reaches those.
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
  // A flat instruction needs both counters.
  while (vector_queue.size() > vector_count &&
         !(vector_queue[0].kind == AsyncKind::flat && flat_in_flight != 0))
    complete(w, vector_queue, 0);
}

void WaveChecks::carry_into_epoch(Wave &) {
  for (size_t i = 0; i < lgkm_queue.size(); ++i) {
    const AsyncOperation &operation = lgkm_queue[i];
    if (operation.kind != AsyncKind::lds_read && operation.kind != AsyncKind::lds_write) continue;
    for (uint32_t part = 0; part < operation.lds_parts; ++part)
      for (uint64_t lanes = operation.in_bounds; lanes != 0; lanes &= lanes - 1) {
        const uint32_t address = operation.lds_address[part][low_lane(lanes)];
        if (operation.kind == AsyncKind::lds_read)
          lds.carry_read(address, operation.lds_bytes, wave, operation.op);
        else
          lds.carry_write(address, operation.lds_bytes, wave, operation.op);
      }
  }
}

//===--- Registers --------------------------------------------------------------------------------------===//

const AsyncOperation *WaveChecks::pending_writer(uint16_t operand, bool &in_order, OpKind kind) const {
  const AsyncOperation *writer = nullptr;
  in_order = true;
  for (const AsyncQueue *queue : {&vector_queue, &lgkm_queue})
    for (size_t i = 0; i < queue->size(); ++i) {
      const AsyncOperation &operation = (*queue)[i];
      if (operand < operation.first || operand >= operation.first + operation.rows) continue;
      writer = &operation;
      const bool same_order = (operation.kind == AsyncKind::vector_load && kind == OpKind::vector_memory) ||
                              (operation.kind == AsyncKind::lds_read && kind == OpKind::lds);
      in_order = in_order && same_order;
    }
  return writer;
}

void WaveChecks::check_pending(Wave &w, const Op &op, const OpInfo &info) {
  if (!checks.pending) return;
  auto check = [&](uint32_t begin, uint32_t end, bool is_write) {
    for (uint32_t i = begin; i < end; ++i) {
      const RegisterRange range = launch.ops->ranges[i];
      for (uint16_t operand = range.first; operand < range.first + range.count; ++operand) {
        if (pending[operand] == 0) continue;
        bool in_order = false;
        const AsyncOperation *writer = pending_writer(operand, in_order, info.kind);
        // A later load of the same kind may overwrite: results arrive in order.
        if (!writer || (is_write && in_order)) continue;
        const bool vector = writer->kind != AsyncKind::lds_read && writer->kind != AsyncKind::scalar_load;
        report(w, op, ReportKind::pending_register, -1, operand, LdsOther{writer->op, w.id}, [&] {
          return std::string(is_write ? "writes " : "reads ") + register_name(operand) +
                 " while a load into it is in flight: no s_waitcnt " + (vector ? "vmcnt" : "lgkmcnt") +
                 " in between";
        });
        return;
      }
    }
  };
  check(info.reads_begin, info.reads_end, false);
  check(info.writes_begin, info.writes_end, true);
}

void WaveChecks::report_registers(Wave &w, const Op &op, const OpInfo &info) {
  const bool vector = info.vgprs_end > launch.vgpr_limit;
  const bool accumulation = !vector && info.agprs_end > agpr_limit;
  const uint32_t end = vector ? info.vgprs_end : accumulation ? info.agprs_end : info.sgprs_end;
  const uint32_t limit = vector ? launch.vgpr_limit : accumulation ? agpr_limit : launch.sgpr_limit;
  report(w, op, ReportKind::register_out_of_range, -1, end - 1, std::nullopt, [&] {
    return std::string("uses ") +
           (vector         ? "v"
            : accumulation ? "a"
                           : "s") +
           std::to_string(end - 1) + ", but the kernel's descriptor grants " + std::to_string(limit) +
           " of those registers";
  });
}

void WaveChecks::report_exec(Wave &w, const Op &op) {
  report(w, op, ReportKind::exec_at_mfma, -1, w.exec(), std::nullopt,
         [&] { return "EXEC is " + hex(w.exec()) + ": the matrix core ignores it and computes all lanes"; });
}

void WaveChecks::report_hazard(Wave &w, const Op &op, const HazardFound &found) {
  report(w, op, ReportKind::hazard, -1, found.operand, LdsOther{found.other, w.id}, [&] {
    return register_name(found.operand) + ": " + found.reason + " " + std::to_string(found.seen) +
           " wait states before, but " + std::to_string(found.needed) + " are needed";
  });
}

void WaveChecks::report_undefined(Wave &w, const Op &op, uint16_t operand, int32_t lane, const char *role) {
  report(w, op, ReportKind::register_uninitialised, lane, operand, std::nullopt, [&] {
    return std::string(role) + " " + register_name(operand) + " holds a value that was never written";
  });
}

void WaveChecks::check_defined(Wave &w, const Op &op, const OpInfo &info) {
  auto rows = [&](RegisterRange range, uint64_t lanes, const char *role) {
    for (uint16_t operand = range.first; operand < range.first + range.count; ++operand) {
      const uint64_t missing = lanes & ~defined[operand];
      if (missing != 0) return report_undefined(w, op, operand, int32_t(low_lane(missing)), role);
    }
  };
  auto scalars = [&](RegisterRange range, const char *role) {
    for (uint16_t operand = range.first; operand < range.first + range.count; ++operand)
      if (defined_sgpr[operand - first_sgpr] == 0) return report_undefined(w, op, operand, -1, role);
  };
  switch (info.kind) {
  case OpKind::mfma:
    for (uint32_t i = info.reads_begin; i < info.reads_end; ++i)
      if (launch.ops->ranges[i].first < first_sgpr) rows(launch.ops->ranges[i], all_lanes, "matrix operand");
    break;
  case OpKind::lds:
  case OpKind::lds_copy:
  case OpKind::vector_memory:
  case OpKind::scalar_memory:
    rows(info.address, w.exec(), "address");
    rows(info.stored, w.exec(), "stored register");
    if (info.kind == OpKind::lds) break;
    for (uint32_t i = info.reads_begin; i < info.reads_end; ++i) {
      const RegisterRange range = launch.ops->ranges[i];
      if (range.first < first_sgpr) continue;
      if (range.first == first_sgpr + sgpr_m0 && info.kind != OpKind::lds_copy) continue;
      scalars(range, "address");
    }
    break;
  case OpKind::branch:
    for (uint32_t i = info.reads_begin; i < info.reads_end; ++i)
      if (launch.ops->ranges[i].first >= first_sgpr) scalars(launch.ops->ranges[i], "branch condition");
    break;
  case OpKind::valu:
  case OpKind::scalar:
  case OpKind::other:
    break;
  }
}

uint64_t WaveChecks::defined_lanes(uint16_t operand) const {
  if (operand < first_sgpr) return defined[operand];
  if (operand >= first_constant) return all_lanes;
  return defined_sgpr[operand - first_sgpr] != 0 ? all_lanes : 0;
}

void WaveChecks::track_defined(Wave &w, const Op &op, const OpInfo &info, uint64_t exec) {
  if (info.kind != OpKind::valu) {
    bool known = info.reads_begin == info.reads_end;
    if (info.kind == OpKind::scalar) {
      for (uint32_t i = info.reads_begin; i < info.reads_end && !known; ++i) {
        const RegisterRange range = launch.ops->ranges[i];
        known = range.first >= first_sgpr && defined_sgpr[range.first - first_sgpr] != 0;
      }
    } else {
      known = true;
    }
    const uint64_t lanes = info.kind == OpKind::mfma ? all_lanes : exec;
    for (uint32_t i = info.writes_begin; i < info.writes_end; ++i) {
      const RegisterRange range = launch.ops->ranges[i];
      for (uint16_t operand = range.first; operand < range.first + range.count; ++operand) {
        if (operand < first_sgpr)
          defined[operand] |= lanes;
        else
          defined_sgpr[operand - first_sgpr] = known;
      }
    }
    return;
  }

  // The low half of a 64-bit result is taken to depend on low halves only: compilers leave the high half of
  // an addend undefined where they use the low half of the sum.
  const ValuControl &v = op.valu;
  uint64_t low = all_lanes;
  uint64_t high = all_lanes;
  if (info.definedness == Definedness::select) {
    // The mask is the wave's own register still: v_cndmask does not write it.
    const uint64_t mask = w.scalar_pair(op.mask_in);
    low = (defined_lanes(op.src[0]) & ~mask) | (defined_lanes(op.src[1]) & mask);
  } else if (info.definedness == Definedness::all && v.modifiers.lane_control == 0) {
    for (uint32_t k = 0; k < v.sources; ++k) {
      low &= defined_lanes(op.src[k]);
      if (is_two_rows(v.source_types[k]) && op.src[k] < first_constant)
        high &= defined_lanes(uint16_t(op.src[k] + 1));
    }
    high &= low;
  } else if (info.definedness == Definedness::any) {
    low = 0;
    for (uint32_t k = 0; k < v.sources; ++k)
      low |= defined_lanes(op.src[k]);
  }
  if (op.dst != no_operand) {
    if (op.dst >= first_sgpr) {
      defined_sgpr[op.dst - first_sgpr] = low != 0;
    } else {
      defined[op.dst] = (defined[op.dst] & ~exec) | (low & exec);
      if (is_two_rows(v.result_type)) defined[op.dst + 1] = (defined[op.dst + 1] & ~exec) | (high & exec);
    }
  }
  if (op.mask != no_operand) {
    const uint8_t mask_known = exec == 0 || (low & exec) != 0;
    defined_sgpr[op.mask - first_sgpr] = defined_sgpr[op.mask - first_sgpr + 1] = mask_known;
  }
}

//===--- Memory -----------------------------------------------------------------------------------------===//

uint64_t WaveChecks::check_global(Wave &w, const Op &op, const uint64_t *addresses, uint64_t exec,
                                  uint32_t bytes, bool write) {
  if (!checks.global_bounds || exec == 0) return exec;
  const uint64_t first = addresses[low_lane(exec)];
  uint64_t low = first;
  uint64_t high = first;
  for (uint32_t i = 0; i < wave_lanes; ++i) {
    const uint64_t address = (exec >> i & 1) != 0 ? addresses[i] : first;
    low = std::min(low, address);
    high = std::max(high, address);
  }
  const MemoryBlock *&hint = last_block[op.index];
  auto usable = [&](const MemoryBlock *block) {
    return block && !block->freed && (block->writable || !write);
  };
  if (high - low < (uint64_t(1) << 40)) {
    if (!hint || !hint->contains(low, high - low + bytes))
      hint = launch.memory->find(low, high - low + bytes);
    if (usable(hint)) return exec;
  }
  uint64_t allowed = 0;
  for (uint64_t lanes = exec; lanes != 0; lanes &= lanes - 1) {
    const uint32_t lane = low_lane(lanes);
    const uint64_t address = addresses[lane];
    const MemoryBlock *block = launch.memory->find(address, bytes);
    if (usable(block)) {
      allowed |= uint64_t(1) << lane;
      continue;
    }
    const ReportKind kind = !block         ? ReportKind::global_out_of_bounds
                            : block->freed ? ReportKind::global_freed
                                           : ReportKind::global_read_only;
    report(w, op, kind, int32_t(lane), address, std::nullopt, [&] {
      std::string text =
          std::string(write ? "stores " : "loads ") + std::to_string(bytes) + " bytes at " + hex(address);
      if (kind == ReportKind::global_freed) return text + ", in a block that was freed";
      if (kind == ReportKind::global_read_only) return text + ", which kernels may only read";
      const MemoryBlock *near = launch.memory->nearest(address);
      if (!near) return text + ", in no allocation";
      const bool before = address < near->address;
      text += ", " + std::to_string(before ? near->address - address : address - near->address);
      return text + (before ? " bytes before" : " bytes after the start of") + " a block of " +
             std::to_string(near->bytes) + " bytes";
    });
  }
  return allowed;
}

bool WaveChecks::check_scalar(Wave &w, const Op &op, uint64_t address, uint32_t bytes) {
  if (!checks.global_bounds) return true;
  const MemoryBlock *&hint = last_block[op.index];
  if (!hint || !hint->contains(address, bytes)) hint = launch.memory->find(address, bytes);
  if (hint && !hint->freed) return true;
  report(w, op, hint ? ReportKind::global_freed : ReportKind::global_out_of_bounds, -1, address, std::nullopt,
         [&] {
           return "loads " + std::to_string(bytes) + " bytes at " + hex(address) +
                  (hint ? ", in a block that was freed" : ", in no allocation");
         });
  return false;
}

void WaveChecks::report_misaligned(Wave &w, const Op &op, uint32_t lane, uint64_t address,
                                   uint32_t alignment) {
  report(w, op, ReportKind::misaligned, int32_t(lane), address, std::nullopt,
         [&] { return "address " + hex(address) + " is not a multiple of " + std::to_string(alignment); });
}

void WaveChecks::report_lds_bounds(Wave &w, const Op &op, uint32_t lane, uint64_t address, uint32_t bytes) {
  if (!checks.lds_bounds) return;
  report(w, op, ReportKind::lds_out_of_bounds, int32_t(lane), address, std::nullopt, [&] {
    return "accesses LDS bytes " + std::to_string(address) + " to " + std::to_string(address + bytes - 1) +
           ", but the workgroup has " + std::to_string(w.workgroup->lds_bytes);
  });
}

void WaveChecks::report_scratch_bounds(Wave &w, const Op &op, uint32_t lane, uint64_t address,
                                       uint32_t bytes) {
  if (!checks.global_bounds) return;
  report(w, op, ReportKind::scratch_out_of_bounds, int32_t(lane), address, std::nullopt, [&] {
    return "accesses scratch bytes " + std::to_string(address) + " to " +
           std::to_string(address + bytes - 1) + ", but a lane has " + std::to_string(w.scratch_bytes);
  });
}

void WaveChecks::report_lds(Wave &w, const Op &op, LdsConflict conflict, const char *verb, uint32_t lane,
                            uint32_t address, const LdsOther &other) {
  if (conflict == LdsConflict::none) return;
  if (conflict == LdsConflict::uninitialised) {
    if (!checks.uninitialised) return;
    report(w, op, ReportKind::lds_uninitialised, int32_t(lane), address, std::nullopt, [&] {
      return std::string(verb) + " LDS byte " + std::to_string(address) + ", which was never written";
    });
    return;
  }
  if (!checks.lds_races) return;
  report(w, op, ReportKind::lds_race, int32_t(lane), address, other, [&] {
    std::string text = std::string(verb) + " LDS byte " + std::to_string(address) + ", which wave " +
                       std::to_string(other.wave);
    switch (conflict) {
    case LdsConflict::after_copy:
      return text + " is copying into: the copy was not waited for with vmcnt";
    case LdsConflict::after_read:
      return text + (other.wave == w.id ? " reads: the read was not waited for with lgkmcnt"
                                        : " reads: no wait and barrier in between");
    default:
      return text + (other.wave == w.id ? " writes: the write was not waited for with lgkmcnt"
                                        : " wrote: no wait and barrier in between");
    }
  });
}

void WaveChecks::enter_lds(Wave &w, const Op &op, LdsAccess access, const uint32_t *addresses, uint64_t lanes,
                           uint32_t bytes) {
  if (!checks.lds_races && !checks.uninitialised) return;
  LdsOther other{};
  for (; lanes != 0; lanes &= lanes - 1) {
    const uint32_t lane = low_lane(lanes);
    const uint32_t address = addresses[lane];
    const LdsConflict conflict = access == LdsAccess::read ? lds.read(address, bytes, wave, op.index, other)
                                 : access == LdsAccess::write
                                     ? lds.write(address, bytes, wave, op.index, other)
                                     : lds.atomic(address, bytes, wave, op.index, other);
    if (conflict != LdsConflict::none) [[unlikely]]
      report_lds(w, op, conflict, access == LdsAccess::write ? "writes" : "reads", lane, address, other);
  }
}

/// A copy and the wave's own earlier LDS instructions take different paths: only a wait orders them.
bool WaveChecks::own_access_in_flight(const uint32_t *addresses, uint64_t lanes, uint32_t bytes,
                                      uint32_t &lane, LdsOther &other) const {
  uint32_t low = ~0u;
  uint32_t high = 0;
  for (uint64_t ours = lanes; ours != 0 && lgkm_queue.size() != 0; ours &= ours - 1) {
    low = std::min(low, addresses[low_lane(ours)]);
    high = std::max(high, addresses[low_lane(ours)] + bytes);
  }
  for (size_t i = 0; i < lgkm_queue.size(); ++i) {
    const AsyncOperation &operation = lgkm_queue[i];
    if (operation.lds_parts == 0 || operation.lds_high <= low || operation.lds_low >= high) continue;
    for (uint32_t part = 0; part < operation.lds_parts; ++part)
      for (uint64_t others = operation.in_bounds; others != 0; others &= others - 1) {
        const uint32_t theirs = operation.lds_address[part][low_lane(others)];
        for (uint64_t ours = lanes; ours != 0; ours &= ours - 1) {
          lane = low_lane(ours);
          if (!overlaps(addresses[lane], bytes, theirs, operation.lds_bytes)) continue;
          other = {operation.op, wave};
          return true;
        }
      }
  }
  return false;
}

void WaveChecks::begin_copy(Wave &w, const Op &op, const uint32_t *addresses, uint64_t lanes) {
  if (!checks.lds_races && !checks.uninitialised) return;
  LdsOther other{};
  uint32_t at = 0;
  if (checks.lds_races && own_access_in_flight(addresses, lanes, 4, at, other)) {
    const bool is_write = launch.ops->infos[other.op].writes_begin == launch.ops->infos[other.op].writes_end;
    report_lds(w, op, is_write ? LdsConflict::after_write : LdsConflict::after_read, "copies into", at,
               addresses[at], other);
  }
  for (; lanes != 0; lanes &= lanes - 1) {
    const uint32_t lane = low_lane(lanes);
    const LdsConflict conflict = lds.begin_copy(addresses[lane], 4, wave, op.index, other);
    if (conflict != LdsConflict::none) [[unlikely]]
      report_lds(w, op, conflict, "copies into", lane, addresses[lane], other);
  }
}

} // namespace sluice::emulator

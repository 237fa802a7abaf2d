//===- inexact_values.cpp - follows values that a GPU may compute differently ---------------------------===//
#include "emulator/check/inexact_values.h"

#include <algorithm>
#include <bit>

#include "emulator/isa/gpr_index.h"

namespace sluice::emulator {

namespace {

constexpr uint16_t exec_operand = first_sgpr + sgpr_exec;

bool is_exec(uint16_t operand) {
  return operand == exec_operand || operand == exec_operand + 1;
}
bool meets_exec(RegisterRange range) {
  return range.first <= exec_operand + 1 && range.first + range.count > exec_operand;
}
bool accesses_memory(OpKind kind) {
  return kind == OpKind::lds || kind == OpKind::lds_copy || kind == OpKind::vector_memory ||
         kind == OpKind::scalar_memory;
}
bool same(RegisterRange one, RegisterRange other) {
  return one.first == other.first && one.count == other.count;
}
/// Whether a vector instruction keeps part of its destination, or some lanes of it.
bool keeps_part(const OpInfo &info, const Op &op) {
  return info.dpp || info.half_write || op.valu.keeps_half;
}
/// Whether LLVM's list of results is what the instruction always writes. It lists more for a few.
bool is_result(const Op &op, uint16_t operand) {
  return op.dst != no_operand && operand >= op.dst && operand < op.dst + rows_of(op.valu.result_type);
}
bool saves_exec(const OpInfo &info) {
  constexpr std::string_view names[] = {"s_and_saveexec_b64",  "s_andn1_saveexec_b64", "s_andn2_saveexec_b64",
                                        "s_nand_saveexec_b64", "s_nor_saveexec_b64",   "s_or_saveexec_b64",
                                        "s_orn1_saveexec_b64", "s_orn2_saveexec_b64",  "s_xnor_saveexec_b64",
                                        "s_xor_saveexec_b64"};
  return std::ranges::find(names, info.facts->mnemonic) != std::end(names);
}
/// The mask that becomes EXEC where lanes meet again, `s_or_b64 exec, exec, mask`; else no_operand.
uint16_t restored_mask(const Wave &w, const Op &op, const OpInfo &info) {
  if (op.dst != exec_operand || info.facts->mnemonic != "s_or_b64") return no_operand;
  const uint16_t mask = op.src[0] == exec_operand   ? op.src[1]
                        : op.src[1] == exec_operand ? op.src[0]
                                                    : no_operand;
  if (mask >= first_constant) return no_operand;
  return (w.exec() & ~w.scalar_pair(mask)) == 0 ? mask : no_operand;
}
bool writes_always(const OpInfo &info) {
  const std::string_view mnemonic = info.facts->mnemonic;
  return mnemonic != "s_cmov_b32" && mnemonic != "s_cmov_b64" && mnemonic != "s_cmovk_i32";
}

} // namespace

//===--- The launch -------------------------------------------------------------------------------------===//

LaunchFidelity::LaunchFidelity(const OpInfos &infos, const std::vector<Op> &ops, InexactMemory &memory)
    : infos(infos), memory(memory), all(ops.size()) {
  for (size_t op = 0; op < ops.size(); ++op) {
    all[op].approximation = approximation_of(ops[op], infos.infos[op]);
    all[op].unmodelled = unmodelled_parts(ops[op], infos.infos[op]);
  }
}

FidelityNote LaunchFidelity::note() const {
  FidelityNote note;
  for (size_t op = 0; op < all.size(); ++op) {
    const Met &met = all[op];
    const OpInfo &info = infos.infos[op];
    if (met.count != 0 && met.approximation != nullptr) {
      FidelityNote::Approximated &entry = note.approximated[std::string(info.facts->mnemonic)];
      entry.count += met.count;
      entry.source = met.approximation->source;
      entry.bound = met.approximation->bound;
    }
    for (size_t part = 0; part < unmodelled_count; ++part)
      if ((met.unmodelled >> part & 1) != 0) note.unmodelled[part] += met.count;
    if (met.decisions == 0) continue;
    FidelityNote::Place &place = note.places.emplace_back();
    place.address = accesses_memory(info.kind);
    place.sources = met.sources;
    place.count = met.decisions;
    place.pc = op;
  }
  return note;
}

//===--- Registers --------------------------------------------------------------------------------------===//

void WaveFidelity::start(const Wave &w) {
  vectors.fill({});
  scalars.fill(0);
  scratch_bytes = w.scratch_bytes;
  scratch.assign(size_t(scratch_bytes) * wave_lanes, 0);
}

InexactLanes WaveFidelity::read(RegisterRange range) const {
  InexactLanes result;
  for (uint32_t operand = range.first; operand < uint32_t(range.first) + range.count; ++operand)
    if (operand < first_sgpr)
      result.add(vectors[operand]);
    else if (operand < first_constant)
      result.add(scalars[operand - first_sgpr], all_lanes);
  return result;
}

/// Without EXEC, which every vector instruction reads.
InexactLanes WaveFidelity::sources_of(const Wave &w, const Op &op, const OpInfo &info) const {
  InexactLanes result;
  for (const RegisterRange range : reads(info))
    if (!meets_exec(range)) result.add(read(range));
  if (info.kind == OpKind::valu && w.mode.gpr_index) {
    const Op real = indexed_op(w, op).op;
    for (uint32_t k = 0; k < real.valu.sources; ++k)
      result.add(read({real.src[k], uint16_t(rows_of(real.valu.source_types[k]))}));
    result.add(scalars[sgpr_m0], all_lanes);
  }
  return result;
}

void WaveFidelity::write(RegisterRange range, const InexactLanes &values, uint64_t lanes, bool replaces) {
  for (uint32_t operand = range.first; operand < uint32_t(range.first) + range.count; ++operand) {
    if (operand < first_sgpr) {
      if (replaces) vectors[operand].clear(lanes);
      vectors[operand].add(values, lanes);
    } else if (operand < first_constant) {
      InexactSet &held = scalars[operand - first_sgpr];
      held = InexactSet((replaces ? 0 : held) | values.any(lanes));
    }
  }
}

void WaveFidelity::decide(const Op &op, InexactSet sources) {
  if (sources == 0) return;
  LaunchFidelity::Met &met = launch.met(op.index);
  met.decisions.fetch_add(1, std::memory_order_relaxed);
  met.sources.fetch_or(sources, std::memory_order_relaxed);
}

/// Whether an inexact value is an address, decides a branch, or becomes EXEC.
void WaveFidelity::check_decision(const Wave &w, const Op &op, const OpInfo &info) {
  InexactSet sources = 0;
  if (info.kind == OpKind::branch || is_transfer_of_control(info.role())) {
    for (const RegisterRange range : reads(info))
      sources |= read(range).any(all_lanes);
  } else if (info.role() == Role::compare_exec) {
    sources = sources_of(w, op, info).any(w.exec());
  } else if (accesses_memory(info.kind)) {
    if (info.role() != Role::lane_exchange) sources = read(info.address).any(w.exec());
    for (const RegisterRange range : reads(info)) {
      if (range.first < first_sgpr || meets_exec(range) || same(range, info.stored)) continue;
      // LLVM lists M0 for every DS instruction, and for flat ones; few need it.
      if (range.first == first_sgpr + sgpr_m0 && !info.address_in_m0 && info.kind != OpKind::lds_copy)
        continue;
      sources |= read(range).any(all_lanes);
    }
  } else if (info.kind == OpKind::scalar) {
    const bool writes_exec =
        std::ranges::any_of(writes(info), [](RegisterRange range) { return meets_exec(range); });
    // What EXEC itself holds has been met before.
    for (const RegisterRange range : reads(info))
      if (writes_exec && !meets_exec(range)) sources |= read(range).any(all_lanes);
  }
  decide(op, sources);
}

//===--- Instructions -----------------------------------------------------------------------------------===//

void WaveFidelity::before(const Wave &w, const Op &op) {
  const OpInfo &info = launch.infos.infos[op.index];
  LaunchFidelity::Met &met = launch.met(op.index);
  if (met.approximation != nullptr || met.unmodelled != 0) met.count.fetch_add(1, std::memory_order_relaxed);
  check_decision(w, op, info);
  if (accesses_memory(info.kind)) return follow_memory(w, op, info);
  if (info.kind == OpKind::valu && is_lane_access(info.role())) return follow_lane_access(w, op, info);
  if (info.kind == OpKind::valu) return follow_valu(w, op, info);
  if (info.kind != OpKind::mfma) return follow_scalar(w, op, info);
  InexactLanes values; // the matrix core mixes all lanes
  InexactSet any = sources_of(w, op, info).any(all_lanes);
  if (met.approximation != nullptr) any |= set_of(met.approximation->source);
  values.add(any, all_lanes);
  for (const RegisterRange range : writes(info))
    write(range, values, all_lanes, true);
}

void WaveFidelity::follow_valu(const Wave &w, const Op &op, const OpInfo &info) {
  InexactLanes values = sources_of(w, op, info);
  const uint64_t active = w.exec();
  // A lane's result may come from other lanes.
  if (info.dpp || info.definedness == Definedness::lanes_below ||
      info.definedness == Definedness::lanes_below_high)
    values.add(values.any(all_lanes), all_lanes);
  if (const Approximation *const approximation = launch.met(op.index).approximation)
    values.add(set_of(approximation->source), all_lanes);
  if (w.mode.gpr_index) return follow_indexed(w, op, values);
  for (const RegisterRange range : writes(info))
    for (uint32_t operand = range.first; operand < uint32_t(range.first) + range.count; ++operand) {
      const bool scalar = operand >= first_sgpr;
      const bool replaces = scalar || (is_result(op, uint16_t(operand)) && !keeps_part(info, op));
      write({uint16_t(operand), 1}, values, active, replaces);
    }
}

/// The registers that M0 chooses; LLVM's list has those in the encoding.
void WaveFidelity::follow_indexed(const Wave &w, const Op &op, const InexactLanes &values) {
  const IndexedOp indexed = indexed_op(w, op);
  if (indexed.suppressed) return;
  const Op &real = indexed.op;
  if (real.dst != no_operand)
    write({real.dst, uint16_t(rows_of(real.valu.result_type))}, values, w.exec(), false);
  if (real.mask != no_operand) write({real.mask, 2}, values, w.exec(), true);
}

void WaveFidelity::follow_lane_access(const Wave &w, const Op &op, const OpInfo &info) {
  const bool first = info.role() == Role::read_first_lane;
  const uint32_t lane =
      first ? uint32_t(std::countr_zero(w.exec())) % wave_lanes : w.scalar(op.src[1]) % wave_lanes;
  const uint64_t bit = uint64_t(1) << lane;
  InexactLanes values;
  if (op.src[0] < first_constant) values.add(read({op.src[0], 1}), bit);
  if (!first && op.src[1] < first_constant) values.add(read({op.src[1], 1}).any(all_lanes), bit);
  write({op.dst, 1}, values, bit, true);
}

/// The scalar unit, and everything without lanes.
void WaveFidelity::follow_scalar(const Wave &w, const Op &op, const OpInfo &info) {
  InexactLanes values;
  for (const RegisterRange range : reads(info))
    values.add(read(range));
  if (const Approximation *const approximation = launch.met(op.index).approximation)
    values.add(set_of(approximation->source), all_lanes);
  if (info.facts->has(Fact::reads_m0) && info.facts->pipe == Pipe::salu) {
    // M0 chooses the source or the destination: it may be any register.
    InexactSet all = values.any(all_lanes);
    for (const InexactSet held : scalars)
      all |= held;
    for (uint32_t number = 0; number < sgpr_exec; ++number)
      scalars[number] |= all;
    return;
  }
  const InexactSet old_exec = scalars[sgpr_exec];
  for (const RegisterRange range : writes(info))
    write(range, values, all_lanes, writes_always(info));
  if (saves_exec(info)) scalars[op.dst - first_sgpr] = scalars[op.dst - first_sgpr + 1] = old_exec;
  if (const uint16_t mask = restored_mask(w, op, info); mask != no_operand)
    scalars[sgpr_exec] = scalars[sgpr_exec + 1] = read({mask, 2}).any(all_lanes);
}

//===--- Memory -----------------------------------------------------------------------------------------===//

void WaveFidelity::follow_memory(const Wave &w, const Op &op, const OpInfo &info) {
  exec = info.kind == OpKind::scalar_memory ? all_lanes : w.exec();
  loaded = {};
  stored = read(info.stored);
  stored.add(read(info.second_stored));
  atomic = info.is_atomic();
  const Approximation *const approximation = launch.met(op.index).approximation;
  added = atomic && approximation != nullptr ? set_of(approximation->source) : InexactSet(0);
  if (info.role() == Role::read_clock) loaded.add(set_of(Inexact::clock), all_lanes);
  if (info.role() == Role::lane_exchange) loaded.add(sources_of(w, op, info).any(all_lanes), all_lanes);
}

void WaveFidelity::after(const Op &op) {
  const OpInfo &info = launch.infos.infos[op.index];
  if (!accesses_memory(info.kind)) return;
  // ds_append and similar: one access for all lanes.
  if (info.facts->has(Fact::address_in_m0)) loaded.add(loaded.any(all_lanes), all_lanes);
  for (const RegisterRange range : writes(info))
    if (!is_exec(range.first)) write(range, loaded, exec, true);
}

void WaveFidelity::access_memory(const Op &op, const uint64_t *addresses, uint64_t lanes, uint32_t bytes,
                                 bool write) {
  const bool scalar = launch.infos.infos[op.index].kind == OpKind::scalar_memory;
  for (; lanes != 0; lanes &= lanes - 1) {
    const auto lane = uint32_t(std::countr_zero(lanes));
    const uint64_t bit = scalar ? all_lanes : uint64_t(1) << lane;
    if (!write || atomic) loaded.add(launch.memory.get(addresses[lane], bytes), bit);
    if (!write) continue;
    const InexactSet sources = InexactSet(stored.any(bit) | added);
    if (atomic)
      launch.memory.add(addresses[lane], bytes, sources);
    else
      launch.memory.set(addresses[lane], bytes, sources);
  }
}

void WaveFidelity::access_lds(const uint32_t *addresses, uint64_t lanes, uint32_t bytes, bool write) {
  for (; lanes != 0; lanes &= lanes - 1) {
    const auto lane = uint32_t(std::countr_zero(lanes));
    const uint64_t bit = uint64_t(1) << lane;
    const InexactSet sources = InexactSet(stored.any(bit) | added);
    for (uint32_t at = addresses[lane]; at < addresses[lane] + bytes && at < lds.size(); ++at) {
      if (!write || atomic) loaded.add(lds[at], bit);
      if (write) lds[at] = InexactSet((atomic ? lds[at] : 0) | sources);
    }
  }
}

void WaveFidelity::access_scratch(uint32_t lane, uint64_t offset, uint32_t bytes, bool write) {
  const uint64_t bit = uint64_t(1) << lane;
  for (uint64_t at = offset; at < offset + bytes && at < scratch_bytes; ++at) {
    InexactSet &held = scratch[size_t(lane) * scratch_bytes + at];
    if (!write || atomic) loaded.add(held, bit);
    if (write) held = InexactSet((atomic ? held : 0) | stored.any(bit) | added);
  }
}

void WaveFidelity::copy_to_lds(const uint32_t *addresses, uint64_t lanes) {
  for (; lanes != 0; lanes &= lanes - 1) {
    const auto lane = uint32_t(std::countr_zero(lanes));
    for (uint32_t at = addresses[lane]; at < addresses[lane] + 4 && at < lds.size(); ++at)
      lds[at] = loaded.any(uint64_t(1) << lane);
  }
}

} // namespace sluice::emulator

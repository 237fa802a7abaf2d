//===- op_timing.cpp - the resources an instruction occupies, and for how long --------------------------===//
#include "emulator/timing/op_timing.h"

#include <algorithm>
#include <initializer_list>

#include "emulator/exec/mfma.h"
#include "emulator/stats/instruction_mix.h"
#include "emulator/timing/constants.h"

namespace sluice::emulator::timing {

namespace {

std::string_view mnemonic_of(const std::string &text) {
  return std::string_view(text).substr(0, text.find(' '));
}

bool is_packed_f32(std::string_view name) {
  return name.starts_with("v_pk_") && name.find("_f32") != std::string_view::npos;
}

bool is_any(std::string_view name, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

void time_vector(OpTiming &t, const OpInfo &info, std::string_view name, const OpInfos &all) {
  t.slot = Slot::vector;
  if (info.transcendental) {
    t.pipe = Pipe::transcendental;
    t.port_clk = transcendental_clk;
  } else if (is_packed_f32(name)) {
    t.pipe = Pipe::packed_f32;
    t.port_clk = vector_clk;
    if (info.writes_begin != info.writes_end) t.packed_result = all.ranges[info.writes_begin];
  } else {
    t.pipe = Pipe::valu;
    t.port_clk = is_quarter_rate(name) ? quarter_rate_clk : vector_clk;
  }
}

void time_matrix(OpTiming &t, const Op &op, const OpInfo &info) {
  t.pipe = Pipe::matrix;
  t.slot = Slot::vector;
  t.matrix_clk = uint16_t(info.matrix.passes * pass_clk);
  // Single and double precision leave no issue time to the VALU.
  t.port_clk = info.matrix.unit != MatrixUnit::xdl ? t.matrix_clk
               : info.matrix.sparse                ? sparse_issue_clk
                                                   : vector_clk;
  t.flops = 2 * mfma_instructions()[op.mfma.shape].shape.multiply_adds();
}

void time_scalar(OpTiming &t, const Op &op, const OpInfo &info, std::string_view name) {
  const uint32_t immediate = uint32_t(op.value) & 0xffff;
  if (name == "s_waitcnt") {
    t.effect = Effect::wait_counts;
    t.vector_count = uint8_t((immediate & 15) | (immediate >> 14 & 3) << 4);
    t.lgkm_count = uint8_t(immediate >> 8 & 15);
  } else if (name == "s_barrier") {
    t.effect = Effect::barrier;
  } else if (name == "s_setprio") {
    t.effect = Effect::priority;
  } else if (name == "s_nop") {
    t.hold_clk = info.wait_states * turn_clk;
  } else if (name == "s_sleep") {
    t.hold_clk = turn_clk + (immediate & 0x7f) * sleep_unit_clk;
  } else if (is_any(name, {"s_branch", "s_cbranch", "s_setpc", "s_swappc", "s_call", "s_sendmsg"})) {
    t.pipe = Pipe::branch;
    t.slot = Slot::branch;
  } else if (name != "s_endpgm") {
    t.pipe = Pipe::salu;
    t.slot = Slot::scalar;
  }
}

Transfer transfer_of(const Op &op, const OpInfo &info, std::string_view name) {
  if (name == "buffer_inv") return Transfer::invalidate;
  if (info.kind == OpKind::lds_copy) return Transfer::copy_to_lds;
  if (info.atomic != AtomicKind::none) return Transfer::atomic;
  if (is_any(name, {"ds_bpermute", "ds_permute", "ds_swizzle", "ds_append", "ds_consume", "ds_read_addtid",
                    "ds_write_addtid"}))
    return Transfer::lane_exchange;
  if (info.stored.count != 0) return Transfer::store;
  return op.memory.bytes + op.memory.dwords == 0 ? Transfer::none : Transfer::load;
}

void time_memory(OpTiming &t, const Op &op, const OpInfo &info, std::string_view name) {
  t.transfer = transfer_of(op, info, name);
  switch (info.kind) {
  case OpKind::scalar_memory:
    t.pipe = Pipe::smem;
    t.slot = Slot::scalar;
    t.counts_lgkm = true;
    if (name == "s_memtime") t.effect = Effect::read_clock;
    break;
  case OpKind::lds:
    t.pipe = Pipe::lds;
    t.slot = Slot::lds;
    t.counts_lgkm = true;
    break;
  default:
    t.pipe = Pipe::vmem;
    t.slot = Slot::memory;
    t.counts_vector = true;
    t.counts_lgkm = op.memory.mode == AddressMode::flat && name.starts_with("flat_");
    break;
  }
}

} // namespace

std::vector<OpTiming> op_timings(const ProgramImpl &program) {
  std::vector<OpTiming> all(program.fast.size());
  for (uint32_t i = 0; i < all.size(); ++i) {
    OpTiming &t = all[i];
    const Op &op = program.fast[i];
    const OpInfo &info = program.infos.infos[i];
    const std::string_view name = mnemonic_of(program.texts[i]);
    t.hold_clk = turn_clk;
    switch (info.kind) {
    case OpKind::valu:
      time_vector(t, info, name, program.infos);
      break;
    case OpKind::mfma:
      time_matrix(t, op, info);
      break;
    case OpKind::lds:
    case OpKind::lds_copy:
    case OpKind::vector_memory:
    case OpKind::scalar_memory:
      time_memory(t, op, info, name);
      break;
    case OpKind::scalar:
    case OpKind::branch:
    case OpKind::other:
      time_scalar(t, op, info, name);
      break;
    }
    const uint64_t first = program.address_of(i);
    const uint64_t last = program.code_start + program.offset_of[i + 1] - 1;
    t.split_fetch = last >= first && first / fetch_bytes != last / fetch_bytes;
  }
  return all;
}

} // namespace sluice::emulator::timing

//===- hardware_registers.cpp - the hardware registers of a wave ----------------------------------------===//
#include "emulator/exec/hardware_registers.h"

namespace sluice::emulator {

namespace {

/// Where a workgroup runs: round robin over the eight dies of the device, then over the 38 compute units of a
/// die, which are on four shader engines.
struct Place {
  uint32_t die, engine, unit, slot;
};
Place place_of(const WorkgroupView &workgroup) {
  constexpr uint32_t dies = 8, units = 38, engines = 4;
  const uint32_t on_die = workgroup.number / dies;
  const uint32_t unit = on_die % units;
  return {workgroup.number % dies, unit % engines, unit / engines, on_die / units};
}

// HW registers by number: 1 MODE, 2 STATUS, 3 TRAPSTS, 4 HW_ID, 5 GPR_ALLOC, 6 LDS_ALLOC, 20 XCC_ID,
// 21 SQ_PERF_SNAPSHOT_DATA; the decoder refuses others.
uint32_t hardware_register(const Wave &w, uint32_t number) {
  const Place place = place_of(*w.workgroup);
  switch (number) {
  case 1:
    return w.mode_bits;
  case 2: // SCC, EXECZ, VCCZ, IN_TG, VALID
    return w.s[sgpr_scc] | uint32_t(w.exec() == 0) << 9 | uint32_t(w.pair(sgpr_vcc) == 0) << 10 |
           uint32_t(w.workgroup->waves > 1) << 11 | 1u << 16;
  case 4: // WAVE_ID [3:0], SIMD_ID [5:4], CU_ID [11:8], SE_ID [15:13], TG_ID [19:16]
    return (w.id / 4 & 15) | (w.id & 3) << 4 | place.unit << 8 | place.engine << 13 | (place.slot & 15) << 16;
  case 5: // VGPR_SIZE [13:8] in eights and SGPR_SIZE [27:24] in sixteens, less one
    return (w.vgpr_limit / 8 - 1) << 8 | ((w.sgpr_limit + 15) / 16 - 1) << 24;
  case 6: // LDS_SIZE [20:12], in 512-byte granules
    return (w.workgroup->lds_bytes + 511) / 512 << 12;
  case 20:
    return place.die;
  default: // no traps and no profiling
    return 0;
  }
}

} // namespace

Step get_register(Wave &w, const Op &op) {
  const uint32_t code = uint32_t(op.value) & 0xffff;
  const uint32_t width = (code >> 11 & 31) + 1;
  const uint32_t value = hardware_register(w, code & 63) >> (code >> 6 & 31);
  w.s[op.dst - first_sgpr] = width == 32 ? value : value & ((1u << width) - 1);
  return Step::next;
}

Step set_register(Wave &w, uint32_t code, uint32_t value) {
  const uint32_t width = (code >> 11 & 31) + 1;
  const uint32_t offset = code >> 6 & 31;
  const uint32_t mask = uint32_t(((uint64_t(1) << width) - 1) << offset);
  const uint32_t bits = (w.mode_bits & ~mask) | (value << offset & mask);
  if ((bits & mode_vskip) != 0) {
    w.fault = Fault::unknown_instruction;
    return Step::stop;
  }
  w.set_mode(bits);
  return Step::next;
}

} // namespace sluice::emulator

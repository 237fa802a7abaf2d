//===- access_addresses.cpp - the bytes that a memory instruction is about to touch ---------------------===//
#include "emulator/timing/access_addresses.h"

#include <algorithm>

#include "emulator/exec/memory/buffer_address.h"

namespace sluice::emulator::timing {

namespace {

void scratch_access(const Wave &w, const Op &op, LaneAccess<uint64_t> &access) {
  const MemoryControl &m = op.memory;
  const uint32_t base = (op.src[2] == no_operand ? 0 : w.scalar(op.src[2])) + uint32_t(m.offset);
  const uint32_t *row = op.src[0] == no_operand ? nullptr : w.row(op.src[0]);
  for (uint32_t lane = 0; lane < wave_lanes; ++lane) {
    const uint64_t offset = base + (row ? row[lane] : 0);
    access.at[lane] =
        reinterpret_cast<uint64_t>(w.scratch) + offset / 4 * 4 * wave_lanes + lane * 4 + offset % 4;
  }
}

void flat_access(const Wave &w, const Op &op, LaneAccess<uint64_t> &access) {
  const MemoryControl &m = op.memory;
  const uint64_t offset = uint64_t(int64_t(m.offset));
  const uint32_t *row = w.row(op.src[0]);
  if (op.src[2] != no_operand) {
    const uint64_t base = w.scalar_pair(op.src[2]) + offset;
    for (uint32_t lane = 0; lane < wave_lanes; ++lane)
      access.at[lane] = base + row[lane];
    return;
  }
  for (uint32_t lane = 0; lane < wave_lanes; ++lane)
    access.at[lane] = (row[lane] | uint64_t(row[wave_lanes + lane]) << 32) + offset;
  if (m.mode != AddressMode::flat) return;
  for (uint32_t lane = 0; lane < wave_lanes; ++lane)
    if (access.at[lane] - shared_aperture < aperture_bytes) access.lanes &= ~(uint64_t(1) << lane);
}

} // namespace

void vector_access(Wave &w, const Op &op, LaneAccess<uint64_t> &access) {
  const MemoryControl &m = op.memory;
  access.lanes = w.exec();
  access.bytes = std::max<uint32_t>({m.bytes, m.dwords * 4u, 1});
  if (m.bytes != 0 && m.bytes < 4) access.bytes = m.bytes;
  const bool buffer = op.src[2] != no_operand && op.mask_in != no_operand;
  if (!buffer && m.mode == AddressMode::scratch) return scratch_access(w, op, access);
  if (!buffer) return flat_access(w, op, access);
  const BufferResource resource(resource_words(w, op), m.components != 0);
  Places places;
  place_buffer<false>(w, op, resource, {0, access.bytes, false, Access::load}, places);
  access.lanes = places.allowed | places.cut;
  for (uint64_t lanes = access.lanes; lanes != 0; lanes &= lanes - 1)
    access.at[low_lane(lanes)] = reinterpret_cast<uint64_t>(places.pointer[low_lane(lanes)]);
}

void lds_access(const Wave &w, const Op &op, uint32_t part, LaneAccess<uint32_t> &access) {
  const MemoryControl &m = op.memory;
  const uint32_t offset = part == 0 ? uint32_t(m.offset) : m.offset1;
  access.lanes = w.exec();
  access.bytes = m.bytes;
  const uint32_t *row = w.row(op.src[0]);
  for (uint32_t lane = 0; lane < wave_lanes; ++lane)
    access.at[lane] = row[lane] + offset;
}

uint64_t scalar_access(const Wave &w, const Op &op) {
  const uint64_t base = w.scalar_pair(op.src[0]) & 0x0000fffffffffffc;
  return base + uint64_t(int64_t(op.memory.offset)) + (op.src[1] == no_operand ? 0 : w.scalar(op.src[1]));
}

} // namespace sluice::emulator::timing

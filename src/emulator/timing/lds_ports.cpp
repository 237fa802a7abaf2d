//===- lds_ports.cpp - the two ports and the banks of LDS -----------------------------------------------===//
#include "emulator/timing/lds_ports.h"

#include <algorithm>
#include <bit>

#include "emulator/exec/memory/bank_conflicts.h"

namespace sluice::emulator::timing {

namespace {

/// The number of lane groups that the banks serve one after another without conflicts.
uint32_t groups_of(uint32_t bytes) {
  return bytes <= 4 ? 2 : bytes <= 8 ? 4 : 8;
}

uint32_t port_clk(uint32_t bytes, Transfer transfer) {
  const uint32_t all = std::max(bytes, 4u) * wave_lanes;
  if (transfer == Transfer::load || transfer == Transfer::lane_exchange) return all / lds_port_read_bytes;
  return std::max((all + lds_port_write_bytes - 1) / lds_port_write_bytes, lds_write_clk);
}

} // namespace

LdsPorts::Result LdsPorts::access(uint32_t port, const Wave &w, const Op &op, Transfer transfer,
                                  uint64_t clk) {
  uint32_t moving = 0;
  uint32_t passes = 0;
  if (transfer == Transfer::lane_exchange) {
    moving = port_clk(4, transfer);
    passes = groups_of(4);
    traffic.lds_bytes += 4 * uint64_t(std::popcount(w.exec()));
  } else if (transfer != Transfer::none) {
    for (uint32_t part = 0; part < op.memory.parts; ++part) {
      LaneAccess<uint32_t> access;
      lds_access(w, op, part, access);
      moving += port_clk(access.bytes, transfer);
      traffic.lds_bytes += access.bytes * uint64_t(std::popcount(access.lanes));
      passes += groups_of(access.bytes) + count_bank_conflicts(access.at.data(), access.lanes, access.bytes);
    }
  }
  const uint64_t start = std::max({clk, port_free[port], banks_free});
  banks_free = start + passes;
  const uint32_t taken = std::max(moving, passes);
  port_free[port] = start + taken;
  busy_clk += taken;
  return {{start, start + taken}, start + taken + lds_latency_clk};
}

} // namespace sluice::emulator::timing

//===- lds_ports.h - the two ports and the banks of LDS -------------------------------------------------===//
#pragma once

#include <array>

#include "emulator/isa/timing_constants.h"
#include "emulator/timing/access_addresses.h"
#include "emulator/timing/observer.h"
#include "emulator/timing/op_timing.h"

namespace sluice::emulator::timing {

/// Two SIMDs share a port. The ports share the banks, which take one group of lanes per clk, or more clk if
/// lanes of a group need different dwords of a bank.
class LdsPorts {
public:
  explicit LdsPorts(MemoryTraffic &traffic) : traffic(traffic) {}

  static uint32_t port_of(uint32_t simd) { return simd / (simds / lds_ports); }

  /// When a port can accept an instruction.
  uint64_t accepts(uint32_t port) const {
    return port_free[port] > lds_queue_clk ? port_free[port] - lds_queue_clk : 0;
  }
  struct Result {
    Occupation port;
    uint64_t done; // when lgkmcnt no longer counts it
  };
  /// A DS instruction issued at `clk`; called before it runs.
  Result access(uint32_t port, const Wave &w, const Op &op, Transfer transfer, uint64_t clk);

  uint64_t busy_clk = 0; // of both ports

private:
  MemoryTraffic &traffic;
  std::array<uint64_t, lds_ports> port_free{};
  uint64_t banks_free = 0;
};

} // namespace sluice::emulator::timing

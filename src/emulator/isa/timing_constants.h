//===- timing_constants.h - how long things take, and how much they hold --------------------------------===//
//
// The external constants of the timing model and of the static bounds.
//
// X(type, name, value, unit, source). Sources are public measurements, documents, or "assumed" if nothing is
// published. None is fitted to a kernel of this project. docs/concepts/timing.md has the table; a test
// compares the two.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "emulator/isa/instructions.h"

// clang-format off
#define SLUICE_TIMING_CONSTANTS(X) \
  X(uint32_t, clock_mhz, 2100, "MHz", "MI300X data sheet, peak engine clock") \
  X(uint32_t, device_xcds, 8, "", "MI300X data sheet") \
  X(uint32_t, xcd_compute_units, 38, "", "MI300X data sheet: 304 compute units") \
  X(uint32_t, turn_clk, 4, "clk", "rocprofiler-compute, pipeline descriptions: four SIMDs are served in turn") \
  X(uint32_t, vector_clk, 4, "clk", "SC25 artifact, v_add_f32: 4.01") \
  X(uint32_t, transcendental_clk, 16, "clk", "pyhip mfma-valu-coissue, v_exp_f32: 16.000") \
  X(uint32_t, quarter_rate_clk, 16, "clk", "LLVM SISchedule: 32-bit integer products at a quarter of the rate") \
  X(uint32_t, pass_clk, 4, "clk", "matrix instruction calculator: a pass of the matrix core") \
  X(uint32_t, sparse_issue_clk, 8, "clk", "matrix instruction calculator: 24 of SMFMAC's 32 clk are left to the VALU") \
  X(uint32_t, packed_f32_result_clk, 8, "clk", "SC25 artifact, v_pk_fma_f32 in a dependent chain: 8.03") \
  X(uint32_t, matrix_drain_clk, 8, "clk", "pyhip mfma-valu-coissue, one v_pk_add_f32 after an MFMA: +12") \
  X(uint32_t, fetch_bytes, 32, "B", "pyhip PMC table: 252,006 fetches for 1M instructions of 8 bytes") \
  X(uint32_t, fetch_split_clk, 4, "clk", "pyhip PMC table: 252,006 fetches, 250,000 turns more") \
  X(uint32_t, instruction_cache_bytes, 65536, "B", "CDNA3 white paper, of two compute units: longer loops are named, their misses not timed") \
  X(uint32_t, branch_clk, 16, "clk", "assumed: a taken branch refills the wave's instruction buffer in four turns") \
  X(uint32_t, barrier_clk, 20, "clk", "assumed: 20 to 40 from the last wave's arrival") \
  X(uint32_t, sleep_unit_clk, 64, "clk", "CDNA3 ISA manual, S_SLEEP") \
  X(uint32_t, most_vector_memory, most_vector_count, "", "CDNA3 ISA manual: vmcnt has 6 bits") \
  X(uint32_t, most_lgkm, most_lgkm_count, "", "CDNA3 ISA manual: lgkmcnt has 4 bits") \
  X(uint32_t, lds_ports, 2, "", "pyhip bank-conflict: SIMDs 0 and 1, 2 and 3") \
  X(uint32_t, lds_port_read_bytes, 64, "B/clk", "pyhip mem_latency: ds_read_b128 16 clk with one wave") \
  X(uint32_t, lds_port_write_bytes, 37, "B/clk", "pyhip mem_latency: ds_write_b128, per port") \
  X(uint32_t, lds_write_clk, 8, "clk", "pyhip mem_latency: a store of 4 bytes per lane") \
  X(uint32_t, lds_latency_clk, 48, "clk", "pyhip mem_latency: ds_read_b32 52, of which the port 4") \
  X(uint32_t, lds_queue_clk, 64, "clk", "assumed: work that a port takes on before its SIMDs wait") \
  X(uint32_t, vector_cache_bytes, 32768, "B", "CDNA3 white paper") \
  X(uint32_t, vector_cache_ways, 4, "", "assumed, as mgpusim") \
  X(uint32_t, cache_line_bytes, 128, "B", "CDNA3 white paper") \
  X(uint32_t, vector_path_bytes, 64, "B/clk", "CDNA3 white paper: vector cache to registers") \
  X(uint32_t, vector_path_clk, 4, "clk", "assumed: 64 lanes, 16 addresses per clk") \
  X(uint32_t, lds_copy_clk, 11, "clk", "pyhip mem_latency: buffer_load_dword lds") \
  X(uint32_t, vector_queue_clk, 64, "clk", "assumed: work that the address path takes on before waves wait") \
  X(uint32_t, vector_cache_latency_clk, 116, "clk", "SC25 artifact gpu-latency, median") \
  X(uint32_t, l2_bytes, 4194304, "B", "CDNA3 white paper, per XCD") \
  X(uint32_t, l2_ways, 16, "", "CDNA3 white paper") \
  X(uint32_t, l2_latency_clk, 208, "clk", "SC25 artifact gpu-latency") \
  X(double, l2_device_terabytes, 28, "TB/s", "SC25 artifact gpu-cache, all XCDs, small sets") \
  X(uint32_t, mall_bytes, 268435456, "B", "CDNA3 white paper") \
  X(uint32_t, mall_ways, 16, "", "CDNA3 white paper") \
  X(uint32_t, mall_latency_clk, 467, "clk", "SC25 artifact gpu-latency, mean") \
  X(double, mall_device_terabytes, 17.2, "TB/s", "MI300X data sheet") \
  X(uint32_t, hbm_latency_clk, 860, "clk", "SC25 artifact gpu-latency: 850 to 870") \
  X(double, hbm_device_terabytes, 4.14, "TB/s", "SC25 artifact gpu-stream, read") \
  X(uint32_t, burst_clk, 430, "clk", "SC25 artifact gpu-stream, 512 threads: half of HBM's latency, by which a compute unit may run ahead of its share") \
  X(uint32_t, scalar_cache_bytes, 16384, "B", "CDNA3 white paper") \
  X(uint32_t, scalar_cache_ways, 4, "", "assumed") \
  X(uint32_t, scalar_line_bytes, 64, "B", "CDNA3 white paper") \
  X(uint32_t, scalar_latency_clk, 64, "clk", "assumed, of a hit") \
  X(uint32_t, workgroup_start_clk, 188, "clk", "SC25 artifact gpu-stream: one wave per compute unit at a time reads 0.283 TB/s")
// clang-format on

namespace sluice::emulator::timing {

#define SLUICE_TIMING_VALUE(type, name, value, unit, source) inline constexpr type name = value;
SLUICE_TIMING_CONSTANTS(SLUICE_TIMING_VALUE)
#undef SLUICE_TIMING_VALUE

inline constexpr uint32_t simds = 4;

struct Constant {
  std::string_view name;
  double value;
  std::string_view unit;
  std::string_view source;
};
/// In the order above.
inline std::span<const Constant> constants() {
#define SLUICE_TIMING_CONSTANT(type, name, value, unit, source) {#name, double(value), unit, source},
  static constexpr Constant all[] = {SLUICE_TIMING_CONSTANTS(SLUICE_TIMING_CONSTANT)};
#undef SLUICE_TIMING_CONSTANT
  return all;
}

} // namespace sluice::emulator::timing

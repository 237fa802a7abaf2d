//===- bound.cpp - how busy a loop can keep the matrix cores --------------------------------------------===//
//
// Clk and latencies are those of the timing model. Wait counts are read from the encodings, not from text:
// they are the low 16 bits of SOPP.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/stats/bound.h"

#include <algorithm>
#include <vector>

#include "emulator/isa/timing_constants.h"

namespace sluice::emulator {

namespace {

using namespace timing;
using enum InstructionClass;

constexpr uint32_t lanes = 64;

/// What an LDS access or a load moves.
uint32_t wave_bytes(const CodeInstruction &instruction) {
  return lanes * instruction.facts->data.dwords() * 4;
}

uint32_t lds_clk(const CodeInstruction &instruction) {
  const uint32_t bytes = wave_bytes(instruction);
  if (instruction.instruction_class == lds_write)
    return std::max(lds_write_clk, (bytes + lds_port_write_bytes - 1) / lds_port_write_bytes);
  return instruction.instruction_class == lds_read ? bytes / lds_port_read_bytes : turn_clk;
}

uint32_t memory_clk(const CodeInstruction &instruction) {
  if (instruction.instruction_class == memory_to_lds) return lds_copy_clk;
  return std::max(vector_path_clk, wave_bytes(instruction) / vector_path_bytes);
}

bool is_lds(InstructionClass kind) {
  return kind == lds_read || kind == lds_write || kind == lds_other;
}
bool is_vector_memory(InstructionClass kind) {
  return kind == memory_to_lds || kind == memory_load || kind == memory_store || kind == scratch;
}

uint32_t port_clk(const CodeInstruction &instruction) {
  if (instruction.instruction_class == transcendental) return transcendental_clk;
  return instruction.facts->has(Fact::quarter_rate) ? quarter_rate_clk : vector_clk;
}

/// A single wave without others, instruction after instruction.
class LoneWave {
public:
  void run(const CodeInstruction &instruction, bool jumps) {
    const InstructionClass kind = instruction.instruction_class;
    switch (kind) {
    case matrix: {
      now = std::max({now, port_free, matrix_free});
      matrix_free = now + std::max(mfma_clk(*instruction.facts), vector_clk);
      port_free = now + vector_clk;
      break;
    }
    case acc_move:
    case valu:
    case packed_f32:
    case transcendental:
      now = std::max(now, port_free);
      port_free = now + port_clk(instruction);
      break;
    case scalar_memory:
      scalar_done = std::max(scalar_done, now + scalar_latency_clk);
      break;
    case lds_read:
    case lds_write:
    case lds_other: {
      const uint64_t start = std::max(now, lds_free);
      lds_free = start + lds_clk(instruction);
      in_lds.push_back(lds_free + lds_latency_clk);
      break;
    }
    case memory_to_lds:
    case memory_load:
    case memory_store:
    case scratch: {
      const uint64_t start = std::max(now, path_free);
      path_free = start + memory_clk(instruction);
      in_memory.push_back(start + vector_cache_latency_clk);
      break;
    }
    case wait:
      wait_for(wait_counts(instruction.word));
      break;
    case barrier:
      now += barrier_clk;
      break;
    case nop:
      if (instruction.facts->role == Role::nop) now += (instruction.word & 15) * turn_clk;
      break;
    default:
      break;
    }
    const bool two_fetches =
        instruction.address / fetch_bytes != (instruction.address + instruction.bytes - 1) / fetch_bytes;
    now += jumps ? branch_clk : turn_clk + (two_fetches ? fetch_split_clk : 0);
  }
  uint64_t clk() const { return now; }

private:
  void wait_for(WaitCounts counts) {
    const auto [vector, lgkm] = counts;
    if (in_memory.size() > vector) {
      now = std::max(now, in_memory[in_memory.size() - vector - 1]);
      in_memory.erase(in_memory.begin(), in_memory.end() - ptrdiff_t(vector));
    }
    if (lgkm >= most_lgkm) return;
    if (in_lds.size() > lgkm) {
      now = std::max(now, in_lds[in_lds.size() - lgkm - 1]);
      in_lds.erase(in_lds.begin(), in_lds.end() - ptrdiff_t(lgkm));
    }
    // Scalar loads return in any order: only 0 guarantees that they are done.
    if (lgkm == 0) now = std::max(now, scalar_done);
  }

  uint64_t now = 0, port_free = 0, matrix_free = 0, lds_free = 0, path_free = 0, scalar_done = 0;
  std::vector<uint64_t> in_lds, in_memory; // when each access is done
};

double alone_clk(std::span<const CodeInstruction> code, const ControlFlow::Indices &way) {
  LoneWave wave;
  uint64_t first = 0;
  // The second round waits for what the first one leaves in flight.
  for (int round = 0; round < 2; ++round) {
    first = wave.clk();
    for (size_t k = 0; k < way.size(); ++k)
      wave.run(code[way[k]], way[(k + 1) % way.size()] != way[k] + 1);
  }
  return double(wave.clk() - first);
}

} // namespace

std::string_view slot_name(BoundSlot slot) {
  constexpr std::string_view names[bound_slot_count] = {"matrix", "vector", "scalar", "LDS",
                                                        "memory", "branch", "wave"};
  return names[size_t(slot)];
}

Bound bound_of(std::span<const CodeInstruction> code, const ControlFlow::Indices &way,
               const package::Occupancy &occupancy, uint32_t workgroup_waves) {
  Bound bound;
  const uint32_t waves = occupancy.workgroups_per_cu * workgroup_waves;
  if (waves == 0 || way.empty()) return bound;
  const uint32_t busy_simds = std::min(waves, simds);
  const uint32_t simds_of_port = std::min(busy_simds, simds / lds_ports);
  const auto add = [&](BoundSlot slot, double clk) { bound.clk[size_t(slot)] += clk; };
  for (const size_t i : way) {
    const CodeInstruction &instruction = code[i];
    const InstructionClass kind = instruction.instruction_class;
    if (kind == matrix) {
      add(BoundSlot::matrix, mfma_clk(*instruction.facts));
      add(BoundSlot::vector, vector_clk);
    } else if (kind == acc_move || kind == valu || kind == packed_f32 || kind == transcendental) {
      add(BoundSlot::vector, port_clk(instruction));
    } else if (kind == scalar || kind == scalar_memory) {
      add(BoundSlot::scalar, turn_clk);
    } else if (is_lds(kind)) {
      add(BoundSlot::lds, simds_of_port * lds_clk(instruction));
    } else if (is_vector_memory(kind)) {
      add(BoundSlot::memory, busy_simds * memory_clk(instruction));
    } else if (kind == branch) {
      add(BoundSlot::branch, turn_clk);
    }
  }
  bound.alone_clk = alone_clk(code, way);
  add(BoundSlot::wave, bound.alone_clk / std::max(1u, (waves + simds - 1) / simds));
  const auto most = std::max_element(bound.clk.begin(), bound.clk.end());
  bound.binds = BoundSlot(most - bound.clk.begin());
  if (*most != 0) bound.percent = 100 * bound[BoundSlot::matrix] / *most * busy_simds / simds;
  return bound;
}

} // namespace sluice::emulator

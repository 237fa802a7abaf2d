//===- wave_fixture.h - single instructions on a wave ---------------------------------------------------===//
//
// Assembles instructions, decodes them like a program's code and runs them one after another on the registers
// of one wave, without a kernel.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/isa/disassembler.h"
#include "emulator/isa/wave.h"
#include "emulator/machine/decoder.h"
#include "isa/assembler.h"
#include "support/half.h"

namespace sluice::test {

class TestWave {
public:
  explicit TestWave(emulator::SimdPath path = emulator::best_simd_path()) : decoder(path) {
    registers.resize((emulator::vector_registers + emulator::temporary_rows + 1) * emulator::wave_lanes);
    wave = {};
    // Rows are aligned to cache lines, as in the machine.
    const uint64_t address = reinterpret_cast<uint64_t>(registers.data());
    wave.vgprs = registers.data() + (64 - address % 64) % 64 / 4;
    wave.set_exec(emulator::all_lanes);
    wave.vgpr_limit = 256;
    wave.sgpr_limit = 102;
    wave.set_mode(0x3f0);
    lds.resize(65536);
    group.lds = lds.data();
    group.lds_bytes = uint32_t(lds.size());
    wave.workgroup = &group;
  }

  struct Prepared {
    emulator::Op op;
    std::string text;
    std::string refusal;
  };

  /// Decodes straight-line code.
  std::vector<Prepared> prepare(std::string_view source) {
    const std::vector<uint32_t> code = assemble(source);
    std::vector<Prepared> result;
    for (size_t at = 0; at < code.size();) {
      const std::span<const uint32_t> rest = std::span(code).subspan(at);
      const auto instruction = disassembler().decode(std::as_bytes(rest), 0);
      if (!instruction) throw std::runtime_error("not an instruction: " + std::string(source));
      const size_t dwords = instruction->bytes / 4;
      emulator::DecodedOp op = decoder.decode(*instruction, rest.first(dwords), 0);
      op.fast.index = uint32_t(result.size());
      result.push_back({op.fast, instruction->text, op.refusal});
      at += dwords;
    }
    return result;
  }
  /// Throws if the instruction is refused, with the reason.
  void run(const Prepared &instruction) {
    if (!instruction.refusal.empty()) throw std::runtime_error(instruction.text + ": " + instruction.refusal);
    wave.constants = decoder.constants().rows().data();
    if (instruction.op.run(wave, instruction.op) == emulator::Step::stop)
      throw std::runtime_error(instruction.text + ": stopped");
  }
  void run(const std::vector<Prepared> &code) {
    for (const Prepared &instruction : code)
      run(instruction);
  }
  void run(std::string_view source) { run(prepare(source)); }

  uint32_t &v(uint32_t number, uint32_t lane = 0) { return wave.row(number)[lane]; }
  uint32_t &a(uint32_t number, uint32_t lane = 0) { return wave.row(emulator::first_agpr + number)[lane]; }
  uint32_t &s(uint32_t number) { return wave.s[number]; }
  uint64_t vv(uint32_t number, uint32_t lane = 0) {
    return v(number, lane) | uint64_t(v(number + 1, lane)) << 32;
  }
  uint64_t ss(uint32_t number) { return wave.pair(number); }
  float f(uint32_t number, uint32_t lane = 0) { return std::bit_cast<float>(v(number, lane)); }
  double d(uint32_t number, uint32_t lane = 0) { return std::bit_cast<double>(vv(number, lane)); }
  float h(uint32_t number, uint32_t lane = 0) { return support::f16_to_float(uint16_t(v(number, lane))); }
  bool scc() const { return wave.s[emulator::sgpr_scc] != 0; }
  uint64_t vcc() const { return wave.pair(emulator::sgpr_vcc); }

  void fill(uint32_t number, uint32_t value) {
    for (uint32_t lane = 0; lane < 64; ++lane)
      v(number, lane) = value;
  }
  void fill(uint32_t number, float value) { fill(number, std::bit_cast<uint32_t>(value)); }
  void fill_pair(uint32_t number, uint64_t value) {
    fill(number, uint32_t(value));
    fill(number + 1, uint32_t(value >> 32));
  }
  void fill(uint32_t number, double value) { fill_pair(number, std::bit_cast<uint64_t>(value)); }
  void fill_half(uint32_t number, float value) { fill(number, uint32_t(support::f16_from_float(value))); }
  void fill_lanes(uint32_t number, const std::function<uint32_t(uint32_t)> &value) {
    for (uint32_t lane = 0; lane < 64; ++lane)
      v(number, lane) = value(lane);
  }

  emulator::Wave wave;
  std::vector<uint8_t> lds;

private:
  static emulator::Disassembler &disassembler() {
    static emulator::Disassembler one;
    return one;
  }

  std::vector<uint32_t> registers;
  emulator::WorkgroupView group;
  emulator::Decoder decoder;
};

/// The forms of the vector unit that this host can run.
inline std::vector<emulator::SimdPath> simd_paths() {
  std::vector<emulator::SimdPath> paths;
  for (emulator::SimdPath path :
       {emulator::SimdPath::portable, emulator::SimdPath::avx2, emulator::SimdPath::avx512})
    if (emulator::simd_path_available(path)) paths.push_back(path);
  return paths;
}

} // namespace sluice::test

//===- mfma_bench.cpp - how fast the machine's MFMA runs ------------------------------------------------===//
//
// usage: mfma_bench [MNEMONIC]. Prints, for each shape and each instruction set the processor has, the median
// and the range of seven runs in G multiply-adds per second of one thread.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/exec/mfma.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

using namespace sluice::emulator;

namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

/// Operands like attention's: magnitudes around one, either sign.
uint32_t operand_word(MfmaInput input, std::mt19937 &random) {
  auto number = [&](int fraction_bits, int bias) {
    return (random() & 1) << (input == MfmaInput::f32 ? 31 : 15) |
           uint32_t(bias - int(random() % 6)) << fraction_bits | (random() & ((1u << fraction_bits) - 1));
  };
  if (input == MfmaInput::f32) return uint32_t(number(23, 127));
  const int fraction_bits = input == MfmaInput::f16 ? 10 : 7;
  const int bias = input == MfmaInput::f16 ? 15 : 127;
  return uint32_t(number(fraction_bits, bias)) | uint32_t(number(fraction_bits, bias)) << 16;
}

void measure(const MfmaInstruction &instruction, MfmaPath path, const char *path_name) {
  const MfmaShape &shape = instruction.shape;
  std::mt19937 random(1);
  std::vector<uint32_t> a(shape.a_registers() * 64), b(a.size()), c(shape.c_registers() * 64), d(c.size());
  for (auto *operand : {&a, &b})
    for (uint32_t &word : *operand)
      word = operand_word(shape.input, random);
  for (uint32_t &word : c)
    word = operand_word(MfmaInput::f32, random);

  using Clock = std::chrono::steady_clock;
  auto seconds_of = [&](uint32_t repetitions) {
    const auto start = Clock::now();
    for (uint32_t i = 0; i < repetitions; ++i)
      mfma_on_path(path, shape, d.data(), a.data(), b.data(), c.data());
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  uint32_t repetitions = 16;
  while (seconds_of(repetitions) < 0.005)
    repetitions *= 2;
  std::vector<double> rates;
  for (int run = 0; run < 7; ++run)
    rates.push_back(double(shape.multiply_adds()) * repetitions / seconds_of(repetitions) / 1e9);
  std::sort(rates.begin(), rates.end());
  std::printf("%-28s %-8s %7.3f  [%.3f, %.3f]\n", instruction.mnemonic.data(), path_name, rates[3],
              rates.front(), rates.back());
}

} // namespace

int main(int argc, char **argv) {
  std::printf("# %s; G multiply-adds per second of one thread: median [least, most] of 7\n",
              processor_name().c_str());
  for (const MfmaInstruction &instruction : mfma_instructions()) {
    if (argc > 1 && instruction.mnemonic != argv[1]) continue;
    const std::pair<MfmaPath, const char *> paths[] = {
        {MfmaPath::portable, "portable"}, {MfmaPath::avx2, "avx2"}, {MfmaPath::avx512, "avx512"}};
    for (const auto &[path, name] : paths)
      if (mfma_path_available(path)) measure(instruction, path, name);
  }
}

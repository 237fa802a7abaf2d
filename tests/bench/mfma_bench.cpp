//===- mfma_bench.cpp - how fast MFMAs run on the host --------------------------------------------------===//
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

struct Format {
  int fraction_bits;
  int bias;
};
Format format_of(MfmaInput input) {
  switch (input) {
  case MfmaInput::f16:
    return {10, 15};
  case MfmaInput::bf16:
    return {7, 127};
  case MfmaInput::fp8:
    return {3, 8};
  case MfmaInput::bf8:
    return {2, 16};
  default: // f64 needs no particular values
    return {23, 127};
  }
}

/// Operands like those of attention: magnitudes around one, either sign.
uint32_t operand_word(MfmaInput input, std::mt19937 &random) {
  if (input == MfmaInput::i8) return uint32_t(random());
  const Format format = format_of(input);
  const uint32_t bits = std::min(input_bits(input), 32u);
  uint32_t word = 0;
  for (uint32_t at = 0; at < 32; at += bits)
    word |=
        ((random() & 1) << (bits - 1) | uint32_t(format.bias - int(random() % 6)) << format.fraction_bits |
         (random() & ((1u << format.fraction_bits) - 1)))
        << at;
  return word;
}

void measure(const MfmaInstruction &instruction, MfmaPath path, const char *path_name) {
  const MfmaShape &shape = instruction.shape;
  std::mt19937 random(1);
  std::vector<uint32_t> a(shape.a_registers() * 64), b(shape.b_registers() * 64), c(shape.c_registers() * 64),
      d(c.size());
  for (uint32_t &word : a)
    word = operand_word(shape.input, random);
  for (uint32_t &word : b)
    word = operand_word(shape.b_input, random);
  const std::vector<uint32_t> index(64, 0x4e4e4e4e); // k 2 and 3, k 0 and 1
  const MfmaOptions options{.index = index.data()};
  for (uint32_t &word : c)
    word = operand_word(MfmaInput::f32, random);

  using Clock = std::chrono::steady_clock;
  auto seconds_of = [&](uint32_t repetitions) {
    const auto start = Clock::now();
    for (uint32_t i = 0; i < repetitions; ++i)
      mfma_on_path(path, shape, d.data(), a.data(), b.data(), c.data(), 0, options);
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  uint32_t repetitions = 16;
  while (seconds_of(repetitions) < 0.005)
    repetitions *= 2;
  std::vector<double> rates;
  for (int run = 0; run < 7; ++run)
    rates.push_back(double(shape.multiply_adds()) * repetitions / seconds_of(repetitions) / 1e9);
  std::sort(rates.begin(), rates.end());
  std::printf("%-30s %-8s %7.3f  [%.3f, %.3f]\n", instruction.mnemonic.data(), path_name, rates[3],
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

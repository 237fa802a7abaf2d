//===- rounds.cpp - launches whose workgroups take several rounds ---------------------------------------===//
//
//   rounds PACK
//
// For every kernel of the pack that has rounds, or in a quick run the first of each kind of code, launches of
// several sequences and heads on devices with a number of compute units at which 1, 2 or 3 rows of the grid
// are halved:
//
//   with all workgroups, O and LSE have the bits of the launch with whole tiles;
//   without the layers of upper halves, exactly their rows are not written.
//
// Also on devices of more and fewer compute units: in addition to the loads of Q of a launch without rounds,
// each wave with rows loads one word of each line of its rows of the workgroup one round later, if there is
// one, and nothing else.
//
//===----------------------------------------------------------------------------------------------------===//
#include "shipped_kernels.h"
#include "support/level.h"

#include "emulator/machine/machine.h"
#include "package/attention_launch.h"
#include "package/rounds.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr package::AttentionShape sequences(int32_t q_len) {
  return {.batch = 4, .q_len = q_len, .kv_len = 150, .q_heads = 4, .kv_heads = 2};
}

/// A launch in its own memory, with small numbers.
class Run {
public:
  Run(const ShippedKernel &kernel, const package::AttentionShape &shape)
      : kernel(kernel), program(std::vector<std::byte>(kernel.elf)), shape(shape) {
    const size_t d = kernel.entry.name.head_dim_qk;
    const size_t q_rows = size_t{shape.batch} * size_t(shape.q_len) * shape.q_heads,
                 kv_rows = size_t{shape.batch} * size_t(shape.kv_len) * shape.kv_heads;
    const auto filled = [&](size_t elements, uint32_t seed) {
      const std::span<std::byte> bytes = allocate(elements * 2);
      // Numbers of F16 below 1, and of BF16 far below; no byte is a NaN of FP8.
      for (size_t n = 0; n < elements; ++n) {
        const uint32_t random = (uint32_t(n) * 2654435761u + seed * 0x9e3779b9u) >> 16;
        const auto bits = uint16_t((random & 0x8000) | 0x3000 | (random & 0x0b7f));
        std::memcpy(&bytes[n * 2], &bits, sizeof bits);
      }
      return bytes;
    };
    const auto address = [](std::span<std::byte> tensor) {
      return reinterpret_cast<uint64_t>(tensor.data());
    };
    query = filled(q_rows * d, 1);
    addresses.q = address(query);
    addresses.k = address(filled(kv_rows * d, 2));
    addresses.v = address(filled(kv_rows * d, 3));
    o = allocate(q_rows * d * 2);
    lse = allocate(q_rows * sizeof(float));
    addresses.o = address(o);
    addresses.lse = address(lse);
  }

  package::AttentionLaunch plain() const { return contiguous_launch(kernel.entry, shape, addresses); }

  /// O, then LSE.
  std::vector<std::byte> run(const package::AttentionLaunch &launch) {
    return run(launch, emulator::Options());
  }
  /// How often it loads each word of Q.
  std::vector<uint32_t> loads_of_query(const package::AttentionLaunch &launch) {
    std::vector<uint32_t> loads(query.size() / sizeof(uint32_t));
    emulator::Options options;
    options.watch = std::make_shared<const emulator::MemoryWatch>(std::vector<emulator::MemoryWatch::Range>{
        {addresses.q, addresses.q + query.size(), loads.data(), nullptr}});
    run(launch, options);
    return loads;
  }

  static constexpr std::byte unwritten{0xa5};

private:
  std::vector<std::byte> run(const package::AttentionLaunch &launch, emulator::Options options) {
    std::ranges::fill(o, unwritten);
    std::ranges::fill(lse, unwritten);
    options.threads = 1;
    const emulator::LaunchResult result = emulator::launch(program, launch.kernel, launch.grid, launch.block,
                                                           0, launch.kernarg(), memory, options);
    if (!result.reports.empty()) throw std::runtime_error(emulator::to_text(result.reports.front()));
    std::vector<std::byte> written(o.begin(), o.end());
    written.insert(written.end(), lse.begin(), lse.end());
    return written;
  }

  std::span<std::byte> allocate(size_t bytes) {
    void *block = memory.allocate(bytes);
    if (!block) throw std::bad_alloc();
    return {static_cast<std::byte *>(block), bytes};
  }

  const ShippedKernel &kernel;
  const emulator::Program program;
  const package::AttentionShape shape;
  emulator::Memory memory;
  package::AttentionAddresses addresses = {};
  std::span<std::byte> query, o, lse;
};

/// Clears the rows that workgroups of upper halves write: those of the last `halved` rows of the grid.
void clear_upper_halves(std::vector<std::byte> &written, const package::KernelName &name,
                        const package::AttentionShape &shape, uint32_t halved) {
  const uint32_t group = shape.q_heads / shape.kv_heads;
  const uint32_t rows = uint32_t(shape.q_len) * group, tiles = (rows + name.tile_q - 1) / name.tile_q;
  const size_t row_bytes = size_t{name.head_dim_v} * 2;
  const size_t o_bytes = size_t{shape.batch} * size_t(shape.q_len) * shape.q_heads * row_bytes;
  for (uint32_t number = shape.batch * tiles - halved; number < shape.batch * tiles; ++number) {
    const uint32_t batch = number / tiles, tile = tiles - 1 - number % tiles;
    const uint32_t end = std::min(rows, (tile + 1) * name.tile_q);
    for (uint32_t row = tile * name.tile_q + name.tile_q / 2; row < end; ++row)
      for (uint32_t kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
        const size_t token = row / group, head = kv_head * group + row % group;
        const size_t o_row = (batch * size_t(shape.q_len) + token) * shape.q_heads + head;
        const size_t lse_place = (batch * size_t{shape.q_heads} + head) * size_t(shape.q_len) + token;
        std::fill_n(&written[o_row * row_bytes], row_bytes, Run::unwritten);
        std::fill_n(&written[o_bytes + lse_place * sizeof(float)], sizeof(float), Run::unwritten);
      }
  }
}

/// With tokens for one tile and a remainder of two: less than half a tile, or more.
bool has_same_bits(const ShippedKernel &kernel, int32_t rest) {
  const package::AttentionShape shape = sequences(int32_t(kernel.entry.name.tile_q) / 2 + rest);
  Run run(kernel, shape);
  const package::AttentionLaunch plain = run.plain();
  const std::vector<std::byte> expected = run.run(plain);
  bool good = true;
  // 16 workgroups, two to a row of the grid.
  for (const auto &[compute_units, halved] : {std::pair{7u, 1u}, {12u, 2u}, {11u, 3u}}) {
    package::AttentionLaunch launch = plain;
    use_rounds(kernel.entry, compute_units, launch.arguments, launch.grid);
    const bool is_halved = launch.grid[2] == shape.batch + (halved + 1) / 2;
    const bool is_same = is_halved && run.run(launch) == expected;
    launch.grid[2] = shape.batch;
    std::vector<std::byte> lower = expected;
    clear_upper_halves(lower, kernel.entry.name, shape, halved);
    const bool is_lower = is_halved && run.run(launch) == lower;
    if (!is_halved) std::printf("%s: grid z is %u\n", kernel.name.c_str(), launch.grid[2]);
    std::printf("%s, %d tokens, %u rows of the grid halved: %s, %s\n", kernel.name.c_str(), shape.q_len,
                halved, is_same ? "same bits" : "OTHER BITS", is_lower ? "halves" : "NOT HALVES");
    good &= is_same && is_lower;
  }
  return good;
}

/// The words that waves load for later workgroups, as often as they do.
std::vector<uint32_t> expected_loads(const package::KernelName &name, const package::AttentionShape &shape,
                                     uint32_t columns, uint64_t places) {
  constexpr uint32_t word_bytes = 4, line_bytes = 128, element_bytes = 2;
  const uint32_t group = shape.q_heads / shape.kv_heads;
  const uint32_t rows = uint32_t(shape.q_len) * group, tiles = (rows + name.tile_q - 1) / name.tile_q;
  const uint32_t rows_of_wave = name.tile_q / name.waves, row_bytes = name.head_dim_qk * element_bytes;
  std::vector<uint32_t> loads(size_t{shape.batch} * rows * shape.kv_heads * row_bytes / word_bytes);
  const uint64_t workgroups = uint64_t{shape.kv_heads} * tiles * shape.batch;
  const auto first_row_of = [&](uint64_t number) {
    return uint32_t(tiles - 1 - number / shape.kv_heads % tiles) * name.tile_q;
  };
  for (uint64_t number = 0; number + places < workgroups; ++number) {
    const uint64_t next = number + places;
    const size_t batch = next / shape.kv_heads / tiles, kv_head = next % shape.kv_heads;
    for (uint32_t n = 0; n < name.tile_q; ++n) {
      if (first_row_of(number) + n / rows_of_wave * rows_of_wave >= rows) continue;
      const uint32_t row = std::min(first_row_of(next) + n, rows - 1);
      const size_t token = row / group, head = kv_head * group + row % group;
      const size_t place = ((batch * size_t(shape.q_len) + token) * shape.q_heads + head) * row_bytes;
      for (uint32_t line = 0; line < row_bytes; line += line_bytes)
        ++loads[(place + std::min(line, columns * element_bytes - word_bytes)) / word_bytes];
    }
  }
  return loads;
}

bool loads_next_rows(const ShippedKernel &kernel, int32_t rest, uint32_t columns) {
  const package::AttentionShape shape = sequences(int32_t(kernel.entry.name.tile_q) / 2 + rest);
  Run run(kernel, shape);
  package::AttentionLaunch plain = run.plain();
  plain.arguments.head_dim_qk = int32_t(columns);
  const std::vector<uint32_t> own = run.loads_of_query(plain);
  bool good = true;
  for (const uint32_t compute_units : {1u, 3u, 5u, 14u, 15u, 16u}) {
    package::AttentionLaunch launch = plain;
    use_rounds(kernel.entry, compute_units, launch.arguments, launch.grid);
    // In halves other waves have rows.
    launch.arguments.halved_tiles = launch.arguments.halved_batch = 0;
    launch.grid = plain.grid;
    std::vector<uint32_t> loads = expected_loads(kernel.entry.name, shape, columns, compute_units);
    std::ranges::transform(loads, own, loads.begin(), std::plus());
    const bool as_expected = run.loads_of_query(launch) == loads;
    std::printf("%s, %d tokens, %u columns, %u compute units: %s\n", kernel.name.c_str(), shape.q_len,
                columns, compute_units, as_expected ? "the next rows" : "OTHER ROWS");
    good &= as_expected;
  }
  return good;
}

} // namespace

int main(int argc, char **argv) try {
  if (argc != 2) throw std::invalid_argument("usage: rounds PACK");
  int kernels = 0;
  bool good = true;
  std::vector<ShippedKernel> all = read_all_attention_kernels(argv[1]);
  if (!is_full()) all = first_of_each_kind(std::move(all));
  for (const ShippedKernel &kernel : all) {
    const package::KernelName &name = kernel.entry.name;
    if (!package::kernel_has_rounds(name.tile_q, name.tile_q / name.waves)) continue;
    ++kernels;
    for (const int32_t rest : {20, 84}) {
      good &= has_same_bits(kernel, rest);
      for (const uint32_t columns : {name.head_dim_qk, 40u})
        good &= loads_next_rows(kernel, rest, columns);
    }
  }
  if (kernels == 0) std::printf("no kernel of the pack has rounds\n");
  return good && kernels != 0 ? 0 : 1;
} catch (const std::exception &error) {
  std::fprintf(stderr, "rounds: %s\n", error.what());
  return 1;
}

//===- rounds_test.cpp - the rounds that launches tell their workgroups ---------------------------------===//
#include "package/rounds.h"

#include "package/attention_launch.h"

#include <catch2/catch.hpp>

#include <cstring>

using namespace sluice::package;

namespace {

using Grid = std::array<uint32_t, 3>;

KernelEntry kernel_of_waves(uint32_t waves) {
  KernelEntry kernel;
  kernel.name = {"attention_forward", "f16", 128, 128, 32 * waves, 64, waves};
  kernel.threads = 64 * waves;
  kernel.lds_bytes = 65536;
  kernel.vgprs = 256;
  return kernel;
}

/// The arguments of a launch without a mask, or of one that `change` modified.
struct Launch {
  KernelEntry kernel = kernel_of_waves(8);
  AttentionKernargs args = plain_kernargs(kernel.name);
  Grid grid;

  Launch(
      Grid plain, uint32_t compute_units, void (*change)(AttentionKernargs &) = [](AttentionKernargs &) {})
      : grid(plain) {
    change(args);
    use_rounds(kernel, compute_units, args, grid);
  }
  bool is_halved() const { return args.halved_tiles != 0 || args.halved_batch != 0; }
  bool has_next() const { return args.next_batch != kernarg_no_grid; }
};

} // namespace

TEST_CASE("eight waves of 16 rows, and four of 32, share a compute unit and have no rounds", "[rounds]") {
  for (const auto &[waves, tile_q] : {std::pair{8u, 256u}, {8u, 128u}, {4u, 128u}, {4u, 256u}}) {
    KernelEntry kernel = kernel_of_waves(waves);
    kernel.name.tile_q = tile_q;
    AttentionKernargs args = plain_kernargs(kernel.name);
    Grid grid = {8, 16, 4};
    use_rounds(kernel, 80, args, grid);
    CHECK((args.next_batch != kernarg_no_grid) == (waves == 8 && tile_q == 256));
  }
}

TEST_CASE("the last round is halved if half of the places are enough", "[rounds]") {
  // 512 workgroups: in rounds of 80 they leave 32.
  const Launch launch({8, 16, 4}, 80);
  CHECK(launch.args.grid_tiles == 16);
  CHECK(launch.args.grid_batch == 4);
  CHECK(launch.args.halved_tiles == 4);
  CHECK(launch.args.halved_batch == 0);
  CHECK(launch.grid == Grid{8, 16, 5});
  // Rows of the grid are halved as a whole: 38 are left of rounds of 79.
  CHECK(Launch({8, 16, 4}, 79).args.halved_tiles == 5);

  // A round of half the places, and of one more.
  CHECK(Launch({1, 15, 1}, 10).args.halved_tiles == 5);
  CHECK_FALSE(Launch({1, 16, 1}, 10).is_halved());
  // A row of the grid is more than a round.
  CHECK(Launch({10, 3, 1}, 14).is_halved());
  CHECK_FALSE(Launch({10, 3, 1}, 7).is_halved());
  // The last round is full, or the only one.
  CHECK_FALSE(Launch({1, 20, 1}, 10).is_halved());
  CHECK_FALSE(Launch({1, 4, 1}, 10).is_halved());
  CHECK_FALSE(Launch({0, 0, 0}, 10).is_halved());
}

TEST_CASE("halves of several sequences have several layers", "[rounds]") {
  const Launch launch({1, 4, 4}, 11); // 5 of 16
  CHECK(launch.args.halved_tiles == 1);
  CHECK(launch.args.halved_batch == 1);
  CHECK(launch.grid == Grid{1, 4, 6});
  const Launch one_layer({2, 4, 3}, 16); // 8 of 24
  CHECK(one_layer.args.halved_tiles == 0);
  CHECK(one_layer.args.halved_batch == 1);
  CHECK(one_layer.grid == Grid{2, 4, 4});
  CHECK_FALSE(Launch({1, 1, 65535}, 65534).is_halved()); // a grid has no more layers
}

TEST_CASE("the next workgroup is a round further", "[rounds]") {
  const auto next_of = [](Grid grid, uint32_t compute_units) {
    const AttentionKernargs args = Launch(grid, compute_units).args;
    CHECK(args.kv_heads == int32_t(grid[0]));
    return Grid{uint32_t(args.next_heads), uint32_t(args.next_tiles), uint32_t(args.next_batch)};
  };
  CHECK(next_of({8, 16, 4}, 304) == Grid{0, 6, 2});
  CHECK(next_of({3, 2, 9}, 17) == Grid{2, 1, 2});
  CHECK(next_of({100, 1, 1}, 7) == Grid{7, 0, 0});
  CHECK(next_of({1, 1, 11}, 10) == Grid{0, 0, 10});
  CHECK_FALSE(Launch({1, 1, 10}, 10).has_next());
}

TEST_CASE("rounds are those of kernels of which one workgroup fills a compute unit", "[rounds]") {
  for (const uint32_t waves : {4u, 8u, 16u}) {
    const KernelEntry kernel = kernel_of_waves(waves);
    AttentionKernargs args = plain_kernargs(kernel.name);
    Grid grid = {1, 9, 1};
    use_rounds(kernel, 8, args, grid);
    CHECK((args.halved_tiles != 0) == (waves == 8));
    CHECK((args.next_batch != kernarg_no_grid) == (waves == 8));
  }
}

TEST_CASE("places are as many as workgroups fit the compute units", "[rounds]") {
  KernelEntry kernel = kernel_of_waves(8);
  kernel.lds_bytes = 32768;
  kernel.vgprs = 128;
  AttentionKernargs args = plain_kernargs(kernel.name);
  Grid grid = {1, 12, 1};
  use_rounds(kernel, 4, args, grid); // 4 are left of rounds of 8
  CHECK(args.next_tiles == 8);
  CHECK(args.halved_tiles == 4);
}

TEST_CASE("workgroups that differ have no rounds", "[rounds]") {
  const auto has_rounds = [](void (*change)(AttentionKernargs &)) {
    const Launch launch({1, 9, 1}, 8, change);
    CHECK(launch.is_halved() == launch.has_next());
    return launch.has_next();
  };
  CHECK(has_rounds([](AttentionKernargs &) {}));
  CHECK(has_rounds([](AttentionKernargs &args) { args.mask = args.bias = args.page_table = 1; }));
  CHECK_FALSE(has_rounds([](AttentionKernargs &args) { args.window_right = 0; }));
  CHECK_FALSE(has_rounds([](AttentionKernargs &args) { args.window_left = 100; }));
  CHECK_FALSE(has_rounds([](AttentionKernargs &args) { args.q_starts = 1; }));
  CHECK_FALSE(has_rounds([](AttentionKernargs &args) { args.kv_starts = 1; }));
  CHECK_FALSE(has_rounds([](AttentionKernargs &args) { args.q_lengths = 1; }));
  CHECK_FALSE(has_rounds([](AttentionKernargs &args) { args.kv_lengths = 1; }));
  CHECK_FALSE(has_rounds([](AttentionKernargs &args) { set_splits(args, 2); }));
}

TEST_CASE("a launch can forget its rounds", "[rounds]") {
  for (const uint32_t compute_units : {11u, 15u, 16u}) {
    Launch launch({1, 4, 4}, compute_units);
    forget_rounds(launch.args, launch.grid);
    CHECK(launch.grid == Grid{1, 4, 4});
    const AttentionKernargs plain = plain_kernargs(launch.kernel.name);
    CHECK(std::memcmp(&launch.args, &plain, sizeof plain) == 0);
  }
}

TEST_CASE("rounds at their limits", "[rounds]") {
  CHECK(Launch({1, 1, 65534}, 13).is_halved()); // one layer more is the largest possible number
  CHECK(Launch({1, 9, 1}, 1).has_next());
  // A kernel that does not fit has no places.
  KernelEntry kernel = kernel_of_waves(8);
  kernel.vgprs = 600;
  AttentionKernargs args = plain_kernargs(kernel.name);
  Grid grid = {1, 9, 1};
  use_rounds(kernel, 4, args, grid);
  CHECK(args.next_batch == kernarg_no_grid);
  // More sequences than tiles.
  Launch launch({1, 2, 9}, 11);
  CHECK(launch.has_next());
  forget_rounds(launch.args, launch.grid);
  CHECK(launch.grid == Grid{1, 2, 9});
}

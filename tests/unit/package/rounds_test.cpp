//===- rounds_test.cpp - which tiles of a launch are halved ---------------------------------------------===//
#include "package/rounds.h"

#include "package/attention_launch.h"

#include <catch2/catch.hpp>

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

/// What becomes of a launch without a mask, or with what `change` makes of its arguments.
struct Launch {
  KernelEntry kernel = kernel_of_waves(8);
  AttentionKernargs args = plain_kernargs(kernel.name);
  Grid grid;

  Launch(Grid whole, uint32_t compute_units, void (*change)(AttentionKernargs &) = [](AttentionKernargs &) {})
      : grid(whole) {
    change(args);
    halve_last_round(kernel, compute_units, args, grid);
  }
  bool is_halved() const { return args.halved_tiles != 0 || args.halved_batch != 0; }
};

} // namespace

TEST_CASE("the last round is halved where half of the places are enough", "[rounds]") {
  // 8 * 16 * 4 = 512 workgroups in 7 rounds of 79 places leave 38; of 80, 32.
  const Launch launch({8, 16, 4}, 80);
  CHECK(launch.args.grid_tiles == 16);
  CHECK(launch.args.grid_batch == 4);
  CHECK(launch.args.halved_tiles == 4);
  CHECK(launch.args.halved_batch == 0);
  CHECK(launch.grid == Grid{8, 16, 5});
  // Rows of the grid are halved as a whole.
  CHECK(Launch({8, 16, 4}, 79).args.halved_tiles == 5);

  // A round of half the places, and of one more.
  CHECK(Launch({1, 15, 1}, 10).args.halved_tiles == 5);
  CHECK_FALSE(Launch({1, 16, 1}, 10).is_halved());
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
  const Launch whole_layer({2, 4, 3}, 16); // 8 of 24
  CHECK(whole_layer.args.halved_tiles == 0);
  CHECK(whole_layer.args.halved_batch == 1);
  CHECK(whole_layer.grid == Grid{2, 4, 4});
  CHECK_FALSE(Launch({1, 1, 65535}, 65534).is_halved()); // a grid has no more layers
}

TEST_CASE("places are as many as workgroups fit the compute units", "[rounds]") {
  AttentionKernargs args = plain_kernargs(kernel_of_waves(8).name);
  KernelEntry kernel = kernel_of_waves(8);
  kernel.lds_bytes = 32768;
  kernel.vgprs = 128;
  Grid grid = {1, 12, 1};
  halve_last_round(kernel, 4, args, grid); // 4 of 8
  CHECK(args.halved_tiles == 4);
}

TEST_CASE("tiles are halved where SIMDs keep a wave each", "[rounds]") {
  for (const uint32_t waves : {4u, 8u, 16u}) {
    const KernelEntry kernel = kernel_of_waves(waves);
    AttentionKernargs args = plain_kernargs(kernel.name);
    Grid grid = {1, 9, 1};
    halve_last_round(kernel, 4, args, grid);
    CHECK((args.halved_tiles != 0) == (waves == 8));
    if (waves == 8) CHECK(args.halved_tiles == 1);
  }
  KernelEntry packed = kernel_of_waves(8);
  packed.name.form = "packed";
  AttentionKernargs args = plain_kernargs(packed.name);
  Grid grid = {1, 9, 1};
  halve_last_round(packed, 8, args, grid);
  CHECK(args.halved_tiles == 0);
}

TEST_CASE("workgroups that are not alike keep their tiles", "[rounds]") {
  const auto is_halved = [](void (*change)(AttentionKernargs &)) {
    return Launch({1, 9, 1}, 8, change).is_halved();
  };
  CHECK(is_halved([](AttentionKernargs &) {}));
  CHECK(is_halved([](AttentionKernargs &args) { args.mask = args.bias = args.page_table = 1; }));
  CHECK_FALSE(is_halved([](AttentionKernargs &args) { args.window_right = 0; }));
  CHECK_FALSE(is_halved([](AttentionKernargs &args) { args.window_left = 100; }));
  CHECK_FALSE(is_halved([](AttentionKernargs &args) { args.q_starts = 1; }));
  CHECK_FALSE(is_halved([](AttentionKernargs &args) { args.kv_starts = 1; }));
  CHECK_FALSE(is_halved([](AttentionKernargs &args) { args.q_lengths = 1; }));
  CHECK_FALSE(is_halved([](AttentionKernargs &args) { args.kv_lengths = 1; }));
  CHECK_FALSE(is_halved([](AttentionKernargs &args) { set_parts(args, 2); }));
}

TEST_CASE("a launch gets its whole tiles back", "[rounds]") {
  Launch launch({1, 4, 4}, 11);
  keep_tiles_whole(launch.args, launch.grid);
  CHECK_FALSE(launch.is_halved());
  CHECK(launch.grid == Grid{1, 4, 4});
  Launch whole({1, 4, 4}, 16);
  keep_tiles_whole(whole.args, whole.grid);
  CHECK(whole.grid == Grid{1, 4, 4});
}

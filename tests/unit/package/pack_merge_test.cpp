//===- pack_merge_test.cpp - one kernel pack out of several ---------------------------------------------===//
#include "package/offload_bundle.h"
#include "package/pack_merge.h"
#include "support/failure.h"
#include "support/test_pack.h"

#include <catch2/catch.hpp>

#include <functional>

using namespace sluice;
using namespace sluice::package;

namespace {

/// The bytes of packs and their readers, which refer to them.
struct Parts {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<PackReader> readers;

  explicit Parts(std::vector<std::vector<std::byte>> packs) : bytes(std::move(packs)) {
    for (const std::vector<std::byte> &pack : bytes)
      readers.emplace_back(pack);
  }
};

std::vector<std::byte> merge(std::vector<std::vector<std::byte>> packs) {
  return merge_packs(Parts(std::move(packs)).readers);
}

struct Code {
  const char *chip;
  uint32_t seed;
};

/// A pack of one kernel.
std::vector<std::byte> part(
    const char *dtype, const std::vector<Code> &codes,
    const std::function<void(KernelEntry &)> &change = [](KernelEntry &) {}, const char *generator = "g") {
  PackWriter writer(generator, "22.1.8");
  KernelEntry entry = test::kernel_entry(dtype, 128, 8);
  change(entry);
  std::vector<std::vector<std::byte>> bytes;
  std::vector<ChipCode> objects;
  for (const Code &code : codes)
    bytes.push_back(test::fake_code(500 + code.seed, code.seed));
  for (size_t i = 0; i < codes.size(); ++i)
    objects.push_back({codes[i].chip, bytes[i]});
  writer.add(entry, objects);
  return writer.finish();
}

} // namespace

TEST_CASE("parts of a kernel become one kernel with code for all their chips", "[pack_merge]") {
  const auto larger_lds = [](KernelEntry &entry) {
    entry.lds_bytes = 81920;
    entry.lds_bytes_without_reuse = 163840;
  };
  const std::vector<std::byte> whole =
      merge({part("f16", {{"gfx950", 1}}, larger_lds), part("bf16", {{"gfx942", 2}}),
             part("f16", {{"gfx90a", 3}}), part("f16", {{"gfx942", 4}})});
  const PackReader reader(whole);
  REQUIRE(reader.manifest().kernels.size() == 2);
  CHECK(reader.manifest().generator == "g");
  CHECK(reader.manifest().llvm_version == "22.1.8");
  const PackedKernel &f16 = reader.manifest().kernels[1];
  KernelEntry expected = test::kernel_entry("f16", 128, 8);
  larger_lds(expected);
  expected.chips = {"gfx90a", "gfx942", "gfx950"};
  CHECK(f16.entry == expected);
  const std::vector<std::byte> bundle = reader.bundle(f16);
  const std::vector<BundleEntry> entries = read_bundle(bundle);
  REQUIRE(entries.size() == 4);
  const uint32_t seeds[] = {3, 4, 1};
  for (size_t i = 0; i < 3; ++i) {
    CHECK(entries[i + 1].id == bundle_id(expected.chips[i]));
    CHECK(std::vector<std::byte>(entries[i + 1].code.begin(), entries[i + 1].code.end()) ==
          test::fake_code(500 + seeds[i], seeds[i]));
  }
}

TEST_CASE("the figures of the chip whose code was measured are the kernel's", "[pack_merge]") {
  const auto unmeasured = [](KernelEntry &entry) {
    entry.vgprs = entry.loop_matrix_clk = entry.loop_slot_clk = entry.loop_wave_clk = 0;
  };
  const std::vector<std::byte> gfx90a = part("f16", {{"gfx90a", 1}}, unmeasured),
                               gfx942 = part("f16", {{"gfx942", 2}});
  KernelEntry expected = test::kernel_entry("f16", 128, 8);
  expected.chips = {"gfx90a", "gfx942"};
  const std::vector<std::byte> whole = merge({gfx90a, gfx942});
  CHECK(PackReader(whole).manifest().kernels[0].entry == expected);
  CHECK(merge({gfx942, gfx90a}) == whole);
}

TEST_CASE("dividing and ordering the input does not change the pack", "[pack_merge]") {
  const std::vector<std::byte> f16_a = part("f16", {{"gfx90a", 1}}), f16_b = part("f16", {{"gfx942", 2}}),
                               both = part("f16", {{"gfx942", 2}, {"gfx90a", 1}}),
                               bf16 = part("bf16", {{"gfx942", 3}});
  const std::vector<std::byte> whole = merge({both, bf16});
  CHECK(merge({bf16, f16_a, f16_b}) == whole);
  CHECK(merge({f16_b, bf16, f16_a}) == whole);
  CHECK(merge({merge({f16_b, bf16}), f16_a}) == whole);
  CHECK(merge({whole}) == whole);
}

TEST_CASE("mismatched packs are refused", "[pack_merge]") {
  const std::vector<std::byte> good = part("f16", {{"gfx942", 1}});
  CHECK_THROWS_WITH(merge({}), Catch::Contains("list of packs to merge is empty"));
  CHECK_THROWS_WITH(merge({good, good}), Catch::Contains("two code objects for gfx942"));
  CHECK_THROWS_WITH(merge({good, part(
                                     "bf16", {{"gfx942", 1}}, [](KernelEntry &) {}, "another")}),
                    Catch::Contains("packs by g, LLVM 22.1.8, and by another"));
  const std::function<void(KernelEntry &)> changes[] = {
      [](KernelEntry &entry) { entry.threads = 64; },
      [](KernelEntry &entry) { entry.kernarg_hash ^= 1; },
      [](KernelEntry &entry) { entry.features = {"causal"}; },
      [](KernelEntry &entry) { entry.p_rounding = "nearest_even"; },
      [](KernelEntry &entry) { entry.stages = 3; },
      [](KernelEntry &entry) { entry.copy_groups = {"K+V"}; },
  };
  for (const auto &change : changes)
    CHECK_THROWS_WITH(
        merge({good, part("f16", {{"gfx950", 1}}, change)}),
        Catch::Contains("attn_fwd_f16_d128_q256_kv64_w8 for gfx950 differs from that for gfx942"));
}

TEST_CASE("the largest LDS of a kernel's chips is the kernel's, on any chip", "[pack_merge]") {
  const auto larger_lds = [](KernelEntry &entry) {
    entry.lds_bytes = 81920;
    entry.lds_bytes_without_reuse = 163840;
  };
  const std::vector<std::byte> large = part("f16", {{"gfx950", 1}}, larger_lds),
                               small = part("f16", {{"gfx942", 2}});
  const std::vector<std::byte> whole = merge({small, large});
  const PackReader reader(whole);
  CHECK(reader.manifest().kernels[0].entry.lds_bytes == 81920);
  CHECK(reader.manifest().kernels[0].entry.lds_bytes_without_reuse == 163840);
  CHECK(merge({large, small}) == whole);
}

TEST_CASE("packs with code of different LLVMs do not belong together", "[pack_merge]") {
  PackWriter other("g", "21.0.0");
  const std::vector<std::byte> code = test::fake_code(500, 1);
  const ChipCode object = {"gfx942", code};
  other.add(test::kernel_entry("bf16", 128, 8), {&object, 1});
  CHECK_THROWS_WITH(merge({part("f16", {{"gfx942", 1}}), other.finish()}),
                    Catch::Contains("packs by g, LLVM 22.1.8, and by g, LLVM 21.0.0"));
}

//===- kernel_stats_test.cpp - the report of `sluice kernels --stats` -----------------------------------===//

#include "tools/shared/context.h"
#include "tools/sluice/kernel_stats.h"

#include <catch2/catch.hpp>

using namespace sluice::tools;

TEST_CASE("a report has the figures of the JSON, and innermost loops only") {
  const std::string json = R"({"kernel": "k", "target": "gfx942", "vgprs": 248, "agprs": 3, "sgprs": 70,
    "vgprs_allocated": 256, "lds_bytes": 65536, "scratch_bytes": 12, "vgpr_spills": 1, "sgpr_spills": 2,
    "max_workgroup_threads": 512,
    "occupancy": {"workgroups_per_cu": 1, "waves_per_simd": 2, "limit": "LDS"},
    "instructions": {"total": 1000, "MFMA": 128, "VALU": 500, "SCRATCH": 0},
    "loops": [
      {"first": "0x100", "last": "0x900", "innermost": false, "instructions": {"total": 700, "MFMA": 77, "VALU": 5, "SCRATCH": 0}},
      {"first": "0x200", "last": "0x800", "innermost": true, "instructions": {"total": 600, "MFMA": 64, "VALU": 4, "SCRATCH": 0}}],
    "way": {"first": "0x100", "instructions": {"total": 300, "MFMA": 32, "VALU": 2, "SCRATCH": 0}, "bound_percent": 95.5, "binds": "scalar"}})";
  CHECK(
      format_kernel_stats(json) ==
      "k\n"
      "  registers  248 VGPR, 3 AGPR, 70 SGPR; 256 VGPR allocated; spills: 1 VGPR, 2 SGPR; scratch 12 bytes\n"
      "  LDS        65536 bytes; 1 workgroups of 512 lanes per CU, 2 waves per SIMD, limited by LDS\n"
      "  instructions         total MFMA VALU\n"
      "  whole kernel          1000  128  500\n"
      "  loop 0x200-0x800       600   64    4\n"
      "  usual way at 0x100     300   32    2  matrix cores busy at most 95.5% of the time; limited by "
      "scalar\n");
}

TEST_CASE("a row of the table has the figures of the usual way") {
  const std::string json =
      R"({"kernel": "k", "vgprs": 248, "lds_bytes": 65536, "vgpr_spills": 1, "sgpr_spills": 2,
    "occupancy": {"workgroups_per_cu": 1},
    "way": {"first": "0x100", "instructions": {"MFMA": 32, "VALU": 5, "TRANS": 6, "LDS_rd": 7, "VM_lds": 8, "SALU": 9, "SMEM": 11}, "bound_percent": 95.5, "binds": "scalar"}})";
  CHECK(kernel_figures_row(json) ==
        "| k | 248 | 3 | 65536 | 1 | 32 | 5 | 6 | 7 | 8 | 9 | 11 | 95.5 % | scalar |\n");
  CHECK_THROWS_WITH(kernel_figures_row(R"({"error": "no such kernel"})"), "no such kernel");
}

TEST_CASE("an error in the JSON is the report's error") {
  CHECK_THROWS_WITH(format_kernel_stats(R"({"error": "no such kernel"})"), "no such kernel");
}

TEST_CASE("the pipeline's decisions are those of the manifest") {
  sluice::package::KernelEntry kernel;
  kernel.lds_bytes = kernel.lds_bytes_without_reuse = 32768;
  CHECK(format_pipeline(kernel) == "  pipeline   no loop is pipelined\n"
                                   "  LDS        32768 bytes, 0 saved by reuse\n");
  kernel.stages = 3;
  kernel.copy_groups = {"K", "V"};
  kernel.lds_bytes_without_reuse = 81920;
  CHECK(format_pipeline(kernel) == "  pipeline   3 stages; groups of copies: K; V\n"
                                   "  LDS        32768 bytes, 49152 saved by reuse\n");
}

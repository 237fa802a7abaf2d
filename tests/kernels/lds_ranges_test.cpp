//===- lds_ranges_test.cpp - addresses of LDS from short programs ---------------------------------------===//
#include <catch2/catch.hpp>

#include "kernels/assembled_code.h"
#include "kernels/lds_ranges.h"

namespace sluice::test {
namespace {

/// The bytes that the instruction after `setup` may touch, with 256 threads.
LdsRange range_of(const std::string &setup, const std::string &access) {
  const MachineCode code = assembled(setup + access + "\ns_endpgm\n");
  const std::vector<LdsRange> ranges = lds_ranges(code, 256);
  for (size_t index = 0; index < code.instructions().size(); ++index)
    for (std::string_view prefix : {"ds_", "buffer_load", "global_load_lds"})
      if (code.instructions()[index].starts_with(prefix)) return ranges[index];
  throw std::runtime_error("no access in " + access);
}

void check_range(const std::string &setup, const std::string &access, uint64_t begin, uint64_t end) {
  INFO(setup << access);
  const LdsRange range = range_of(setup, access);
  CHECK(range.begin == begin);
  CHECK(range.end == end);
}

void check_unknown(const std::string &setup, const std::string &access) {
  INFO(setup << access);
  const LdsRange range = range_of(setup, access);
  CHECK(range.overlaps({0, 1}));
  CHECK(range.overlaps({65535, 65536}));
}

} // namespace

TEST_CASE("offsets and widths of LDS instructions", "[kernels]") {
  const std::string setup = "v_lshlrev_b32 v1, 4, v0\n";
  check_range(setup, "ds_read_b128 v[4:7], v1 offset:512", 512, 512 + 255 * 16 + 16);
  check_range(setup, "ds_write_b64 v1, v[4:5] offset:8", 8, 8 + 255 * 16 + 8);
  check_range(setup, "ds_read2_b64 v[4:7], v1 offset0:4 offset1:2", 16, 255 * 16 + 32 + 8);
  check_range(setup, "ds_write2st64_b32 v1, v4, v5 offset0:1 offset1:3", 256, 255 * 16 + 768 + 4);
  check_range(setup, "ds_read_u16 v4, v1", 0, 255 * 16 + 2);
}

TEST_CASE("a copy goes where M0 points, one dword a lane", "[kernels]") {
  check_range("s_mov_b32 m0, 0x400\n", "buffer_load_dword v1, s[8:11], 0 offen lds", 0x400, 0x500);
  // 256 threads: 4 waves, with 2048 bytes each.
  check_range("v_lshrrev_b32 v2, 6, v0\nv_readfirstlane_b32 s5, v2\ns_lshl_b32 s5, s5, 11\n"
              "s_addk_i32 s5, 0x100\ns_add_i32 m0, s5, 0x8000\n",
              "buffer_load_dword v1, s[8:11], 0 offen offset:16 lds", 0x8110, 0x8110 + 3 * 2048 + 256);
}

TEST_CASE("a copy by addresses goes where M0 points too", "[kernels]") {
  check_range("s_mov_b32 m0, 0x400\n", "global_load_lds_dword v[2:3], off", 0x400, 0x500);
  check_unknown("s_mov_b32 m0, 0x400\n", "global_load_lds_dword v[2:3], off offset:-16");
}

TEST_CASE("numbers that are put aside in AccVGPRs", "[kernels]") {
  const std::string aside = "v_lshlrev_b32 v1, 4, v0\nv_accvgpr_write_b32 a9, v1\nv_mov_b32 v1, v7\n"
                            "v_accvgpr_mov_b32 a10, a9\n";
  check_range(aside + "v_accvgpr_read_b32 v2, a10\n", "ds_read_b32 v4, v2", 0, 255 * 16 + 4);
  check_unknown(aside + "v_accvgpr_read_b32 v2, a8\n", "ds_read_b32 v4, v2");
}

TEST_CASE("scalars that are put aside in lanes of a vector register", "[kernels]") {
  const std::string aside = "s_movk_i32 s4, 0x400\nv_writelane_b32 v9, s4, 3\n"
                            "s_movk_i32 s4, 0x800\nv_writelane_b32 v9, s4, 5\n",
                    back = "v_readlane_b32 s5, v9, 3\ns_mov_b32 m0, s5\n",
                    copy = "buffer_load_dword v1, s[8:11], 0 offen lds";
  check_range(aside + back, copy, 0x400, 0x500);
  // Another lane, a lane given by a register, and all lanes written since.
  check_unknown(aside + "v_readlane_b32 s5, v9, 4\ns_mov_b32 m0, s5\n", copy);
  check_unknown(aside + "v_readlane_b32 s5, v9, s4\ns_mov_b32 m0, s5\n", copy);
  check_range(aside + "v_mov_b32 v9, 64\n" + back, copy, 64, 320);
  // On one path only, kept on one path only, or another number on each.
  check_unknown("s_movk_i32 s4, 0x400\ns_cbranch_scc0 2\nv_writelane_b32 v9, s4, 3\n" + back, copy);
  check_unknown(aside + "s_cbranch_scc0 1\nv_mov_b32 v9, 64\n" + back, copy);
  check_range(aside + "s_cbranch_scc0 2\nv_writelane_b32 v9, s4, 3\n" + back, copy, 0x400, 0x900);
}

TEST_CASE("bits of addresses", "[kernels]") {
  check_range("v_and_b32 v1, 7, v0\nv_xor_b32 v1, 5, v1\n", "ds_read_u8 v4, v1", 0, 8);
  check_range("v_bfe_u32 v1, v0, 4, 3\nv_lshl_or_b32 v1, v1, 8, 64\n", "ds_read_u8 v4, v1", 64,
              7 * 256 + 64 + 1);
  // Multiples of 16 remain multiples of 16.
  check_range("v_and_b32 v1, 7, v0\nv_lshlrev_b32 v1, 4, v1\nv_xor_b32 v1, 32, v1\n",
              "ds_read_b128 v[4:7], v1", 0, 128);
  check_range("v_and_b32 v1, 3, v0\nv_lshl_add_u32 v1, v1, 4, 32\nv_add_u32 v1, -16, v1\n",
              "ds_read_u8 v4, v1", 16, 16 + 48 + 1);
}

TEST_CASE("what is not known may be any address", "[kernels]") {
  check_unknown("", "ds_read_b32 v4, v1");
  check_unknown("v_mov_b32 v1, 0\nv_sub_u32 v1, v1, v0\n", "ds_read_b32 v4, v1");
  check_unknown("v_add_u32 v1, -16, v0\n", "ds_read_b32 v4, v1"); // wraps for the first lanes
  check_unknown("s_load_dword s5, s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\ns_mov_b32 m0, s5\n",
                "buffer_load_dword v1, s[8:11], 0 offen lds");
  // Lanes that do not take part in the second write keep the first.
  check_range("v_mov_b32 v1, 64\ns_mov_b64 exec, 1\nv_mov_b32 v1, 0\n", "ds_read_b32 v4, v1", 0, 68);
}

TEST_CASE("after a condition all lanes take part again", "[kernels]") {
  const std::string before = "v_mov_b32 v1, 64\ns_and_saveexec_b64 s[2:3], vcc\n",
                    after = "v_mov_b32 v1, 0\n", restored = "s_or_b64 exec, exec, s[2:3]\n",
                    access = "ds_read_b32 v4, v1";
  check_range(before + restored + after, access, 0, 4);
  check_range(before + after, access, 0, 68);
  // Not saved, no longer saved, saved inside another condition, or on one path only.
  check_range(before + "s_or_b64 exec, exec, s[4:5]\n" + after, access, 0, 68);
  check_range(before + "s_mov_b32 s3, 0\n" + restored + after, access, 0, 68);
  check_range(before + "s_and_saveexec_b64 s[2:3], vcc\n" + restored + after, access, 0, 68);
  check_range(before + "s_cbranch_scc0 1\n" + restored + after, access, 0, 68);
}

TEST_CASE("both sides of a branch count, and a loop has no bound", "[kernels]") {
  check_range("v_mov_b32 v1, 64\ns_cbranch_scc0 1\nv_mov_b32 v1, 0\n", "ds_read_b32 v4, v1", 0, 68);
  check_unknown("v_mov_b32 v1, 64\nv_add_u32 v1, 4, v1\ns_cbranch_scc0 -2\n", "ds_read_b32 v4, v1");
}

} // namespace sluice::test

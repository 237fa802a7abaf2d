//===- lds_test.cpp - DS instructions -------------------------------------------------------------------===//
#include "isa/atomic_cases.h"
#include "isa/memory_fixture.h"

namespace sluice::test {

namespace {

/// Copies the first 1 KiB of the input to LDS.
const std::string input_to_lds =
    "global_load_dwordx4 v[4:7], v2, s[8:9]\n" + wait_all + "ds_write_b128 v2, v[4:7]\n" + wait_all;
/// And back to the second KiB of the output.
const std::string lds_to_output = wait_all + "ds_read_b128 v[4:7], v2\n" + wait_all +
                                  "global_store_dwordx4 v2, v[4:7], s[12:13] offset:1024\n";

/// Each lane has 8 bytes of LDS at v3 and an operand or two.
void check_atomic(const AtomicCase &row, const std::string &before, uint32_t round) {
  const uint32_t dwords = row.bytes / 4;
  const std::string name(row.name);
  const std::string type = name.substr(name.rfind('_'));
  const std::string returning = "ds_" + name.substr(0, name.rfind('_')) + "_rtn" + type;
  const std::string operands =
      "v3, " + row_range(6, dwords) + (row.two_operands ? ", " + row_range(8, dwords) : "");
  for (bool returns : {false, true}) {
    if (!returns && row.only_returning) continue;
    const std::string line =
        returns ? returning + " " + row_range(10, dwords) + ", " + operands : "ds_" + name + " " + operands;
    INFO(line);
    const MemoryRun run("global_load_dwordx4 v[4:7], v2, s[8:9]\n"
                        "global_load_dwordx2 v[8:9], v2, s[8:9] offset:1024\n"
                        "v_mov_b32_e32 v10, 0\n v_mov_b32_e32 v11, 0\n" +
                            wait_all + "ds_write_b64 v3, v[4:5]\n" + before + line + "\n" + wait_all +
                            "ds_read_b64 v[12:13], v3\n" + wait_all +
                            "global_store_dwordx4 v2, v[10:13], s[12:13]\n",
                        [&](uint8_t *input) { fill_operands(input, round); });
    for (uint32_t lane = 0; lane < 64; ++lane) {
      const Operands o = operands_of(lane, round);
      INFO(lane);
      const uint64_t mask = row.bytes == 8 ? ~uint64_t(0) : 0xffffffff;
      CHECK(run.out<uint64_t>(16 * lane) == (returns ? o.tmp & mask : 0));
      CHECK(run.out<uint64_t>(16 * lane + 8) == ((o.tmp & ~mask) | (row.changed(o) & mask)));
    }
  }
}

} // namespace

//===--- Reads and writes -------------------------------------------------------------------------------===//

TEST_CASE("LDS reads of every width, aligned or not", "[isa][lds]") {
  struct Row {
    const char *name;
    uint32_t dwords;
    std::function<uint32_t(const MemoryRun &, uint32_t)> low; // the first dword
  };
  auto half = [](const MemoryRun &r, uint32_t at) { return uint32_t(r.in<uint16_t>(at)); };
  auto i16 = [](const MemoryRun &r, uint32_t at) { return uint32_t(int32_t(r.in<int16_t>(at))); };
  auto u8 = [](const MemoryRun &r, uint32_t at) { return uint32_t(r.in<uint8_t>(at)); };
  auto i8 = [](const MemoryRun &r, uint32_t at) { return uint32_t(int32_t(r.in<int8_t>(at))); };
  auto dword = [](const MemoryRun &r, uint32_t at) { return r.in<uint32_t>(at); };
  // The registers have ECC: a D16 load writes all of them.
  const Row rows[] = {
      {"ds_read_u8", 1, u8},
      {"ds_read_i8", 1, i8},
      {"ds_read_u16", 1, half},
      {"ds_read_i16", 1, i16},
      {"ds_read_b32", 1, dword},
      {"ds_read_b64", 2, dword},
      {"ds_read_b96", 3, dword},
      {"ds_read_b128", 4, dword},
      {"ds_read_u8_d16", 1, u8},
      {"ds_read_u8_d16_hi", 1, [=](const MemoryRun &r, uint32_t at) { return u8(r, at) << 16; }},
      {"ds_read_i8_d16", 1, [=](const MemoryRun &r, uint32_t at) { return i8(r, at) & 0xffff; }},
      {"ds_read_i8_d16_hi", 1, [=](const MemoryRun &r, uint32_t at) { return i8(r, at) << 16; }},
      {"ds_read_u16_d16", 1, half},
      {"ds_read_u16_d16_hi", 1, [=](const MemoryRun &r, uint32_t at) { return half(r, at) << 16; }},
  };
  for (const Row &row : rows)
    for (uint32_t offset : {0u, 3u, 8u}) {
      const std::string line =
          std::string(row.name) + " " + row_range(20, row.dwords) + ", v3 offset:" + std::to_string(offset);
      INFO(line);
      // M0 does not limit the access.
      const MemoryRun run(input_to_lds + "s_mov_b32 m0, 0\n v_mov_b32_e32 v20, -1\n" + line + "\n" +
                          wait_all + "global_store_" +
                          (row.dwords == 1 ? "dword" : "dwordx" + std::to_string(row.dwords)) + " v2, " +
                          row_range(20, row.dwords) + ", s[12:13]\n");
      for (uint32_t lane = 0; lane < 64; ++lane) {
        const uint32_t at = 8 * lane + offset;
        CHECK(run.out<uint32_t>(16 * lane) == row.low(run, at));
        for (uint32_t d = 1; d < row.dwords; ++d)
          CHECK(run.out<uint32_t>(16 * lane + 4 * d) == run.in<uint32_t>(at + 4 * d));
      }
    }
}

TEST_CASE("LDS writes of every width, aligned or not", "[isa][lds]") {
  struct Row {
    const char *name;
    uint32_t bytes;
    uint32_t from; // byte of the data
  };
  const Row rows[] = {{"ds_write_b8", 1, 0},        {"ds_write_b16", 2, 0},       {"ds_write_b32", 4, 0},
                      {"ds_write_b64", 8, 0},       {"ds_write_b96", 12, 0},      {"ds_write_b128", 16, 0},
                      {"ds_write_b8_d16_hi", 1, 2}, {"ds_write_b16_d16_hi", 2, 2}};
  for (const Row &row : rows)
    for (uint32_t offset : {0u, 3u}) {
      const std::string line = std::string(row.name) + " v8, " + row_range(20, (row.bytes + 3) / 4) +
                               " offset:" + std::to_string(offset);
      INFO(line);
      // Lanes 0 to 31, 32 bytes apart.
      const MemoryRun run(input_to_lds +
                          "global_load_dwordx4 v[20:23], v2, s[8:9] offset:1024\n"
                          "v_lshlrev_b32_e32 v8, 5, v0\n" +
                          wait_all + "s_mov_b64 exec, 0xffffffff\n s_mov_b32 m0, 0\n" + line +
                          "\n s_mov_b64 exec, -1\n" + lds_to_output);
      for (uint32_t lane = 0; lane < 32; ++lane)
        for (uint32_t byte = 0; byte < 32; ++byte) {
          const bool written = byte >= offset && byte < offset + row.bytes;
          CHECK(run.out<uint8_t>(1024 + 32 * lane + byte) ==
                run.in<uint8_t>(written ? 1024 + 16 * lane + row.from + byte - offset : 32 * lane + byte));
        }
    }
}

TEST_CASE("LDS accesses in pairs, and with strides of 64 elements", "[isa][lds]") {
  const MemoryRun run(
      "global_load_dwordx2 v[4:5], v2, s[8:9]\n" + wait_all +
      "ds_write2st64_b32 v1, v4, v5 offset0:1 offset1:3\n"
      "ds_write2_b64 v3, v[4:5], v[4:5] offset0:128 offset1:192\n" +
      wait_all +
      "ds_read2st64_b32 v[6:7], v1 offset0:3 offset1:1\n ds_read2_b64 v[8:11], v3 offset0:192 offset1:128\n" +
      wait_all + "ds_write2_b32 v3, v4, v5 offset0:255 offset1:254\n" + wait_all +
      "ds_read2_b32 v[12:13], v3 offset0:254 offset1:255\n" + wait_all +
      "global_store_dwordx2 v3, v[6:7], s[12:13]\n global_store_dwordx4 v2, v[8:11], s[12:13] offset:1024\n"
      "global_store_dwordx2 v3, v[12:13], s[12:13] offset:2048\n"
      "ds_write2st64_b64 v3, v[4:5], v[10:11] offset0:2 offset1:3\n" +
      wait_all + "ds_read2st64_b64 v[12:15], v3 offset0:3 offset1:2\n" + wait_all +
      "global_store_dwordx4 v2, v[12:15], s[12:13] offset:3072\n");
  for (uint32_t lane = 0; lane < 64; ++lane) {
    const uint32_t low = run.in<uint32_t>(16 * lane), high = run.in<uint32_t>(16 * lane + 4);
    CHECK(run.output[2 * lane] == high);
    CHECK(run.output[2 * lane + 1] == low);
    for (uint32_t d = 0; d < 4; ++d) {
      CHECK(run.output[256 + 4 * lane + d] == (d % 2 == 0 ? low : high));
      CHECK(run.output[768 + 4 * lane + d] == (d % 2 == 0 ? low : high));
    }
    CHECK(run.output[512 + 2 * lane] == high);
    CHECK(run.output[512 + 2 * lane + 1] == low);
  }
}

TEST_CASE("two equal offsets are one access, of the first data", "[isa][lds]") {
  const MemoryRun run("global_load_dwordx4 v[4:7], v2, s[8:9]\n" + wait_all +
                      "ds_write2_b32 v3, v4, v5 offset0:1 offset1:1\n" + wait_all +
                      "ds_read2_b32 v[8:9], v3 offset0:1 offset1:1\n" + wait_all +
                      "ds_wrxchg2_rtn_b32 v[10:11], v3, v6, v7 offset0:1 offset1:1\n" + wait_all +
                      "ds_read_b32 v12, v3 offset:4\n" + wait_all +
                      "global_store_dwordx4 v2, v[8:11], s[12:13]\n global_store_dword v1, v12, s[12:13] "
                      "offset:1024\n");
  for (uint32_t lane = 0; lane < 64; ++lane) {
    for (uint32_t d = 0; d < 4; ++d)
      CHECK(run.output[4 * lane + d] == run.in<uint32_t>(16 * lane));
    CHECK(run.output[256 + lane] == run.in<uint32_t>(16 * lane + 8));
  }
}

TEST_CASE("reads and writes at M0 by the number of the lane", "[isa][lds]") {
  // M0's low half is added, with the offset.
  const MemoryRun run("global_load_dword v4, v1, s[8:9]\n s_mov_b32 m0, 0x550100\n" + wait_all +
                      "ds_write_addtid_b32 v4 offset:64\n" + wait_all +
                      "ds_read_b32 v5, v1 offset:320\n s_mov_b32 m0, 0x104\n s_nop 0\n" + wait_all +
                      "s_mov_b64 exec, 0xffff\n v_mov_b32_e32 v6, 7\n ds_read_addtid_b32 v6 offset:64\n" +
                      wait_all +
                      "global_store_dword v1, v5, s[12:13]\n global_store_dword v1, v6, s[12:13] offset:256\n"
                      "s_mov_b64 exec, -1\n global_store_dword v1, v5, s[12:13]\n");
  for (uint32_t lane = 0; lane < 64; ++lane) {
    CHECK(run.output[lane] == run.in<uint32_t>(4 * lane));
    CHECK(run.output[64 + lane] == (lane < 16 ? run.in<uint32_t>(4 * lane + 4) : 0xeeeeeeee));
  }
}

TEST_CASE("neither LDS nor registers change without active lanes", "[isa][lds]") {
  const MemoryRun run(input_to_lds +
                      "v_mov_b32_e32 v8, 1\n v_mov_b32_e32 v9, 2\n s_mov_b32 m0, 0\n s_nop 0\n"
                      "s_mov_b64 exec, 0\n ds_write_b32 v1, v8\n ds_add_u32 v1, v8\n ds_append v9\n"
                      "ds_read_b32 v9, v1\n ds_write_addtid_b32 v8\n ds_bpermute_b32 v9, v1, v8\n" +
                      wait_all + "s_mov_b64 exec, -1\n global_store_dword v1, v9, s[12:13]\n" +
                      lds_to_output);
  for (uint32_t lane = 0; lane < 64; ++lane)
    CHECK(run.output[lane] == 2);
  CHECK(std::memcmp(run.output + 256, run.input, 1024) == 0);
}

//===--- Atomics ----------------------------------------------------------------------------------------===//

TEST_CASE("LDS integer atomics, with and without the old value", "[isa][lds][atomics]") {
  for (const AtomicCase &row : integer_cases())
    for (uint32_t round : {0u, 1u})
      check_atomic(row, "", round);
}

TEST_CASE("LDS float atomics follow MODE for denormals, and round to nearest even", "[isa][lds][atomics]") {
  // Bits 0 to 3 of MODE: rounding (here toward zero, which must not matter); bits 4 to 7: denormals.
  for (bool inputs : {false, true})
    for (bool results : {false, true}) {
      const uint32_t kept = (inputs ? 1u : 0) | (results ? 2u : 0);
      const std::string mode =
          "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 8), " + std::to_string(15 | kept << 4 | kept << 6) + "\n";
      for (const AtomicCase &row : float_cases(inputs, results))
        for (uint32_t round : {0u, 3u})
          check_atomic(row, mode, round);
    }
}

TEST_CASE("LDS exchanges of two values", "[isa][lds][atomics]") {
  struct Row {
    const char *name;
    uint32_t dwords;
    uint32_t unit; // unit of the offsets, in bytes
  };
  for (const Row &row : {Row{"ds_wrxchg2_rtn_b32", 1, 4}, Row{"ds_wrxchg2st64_rtn_b32", 1, 256},
                         Row{"ds_wrxchg2_rtn_b64", 2, 8}, Row{"ds_wrxchg2st64_rtn_b64", 2, 512}}) {
    INFO(row.name);
    const uint32_t n = row.dwords;
    const uint32_t first = row.unit >= 256 ? 1 : 2;
    const uint32_t second = row.unit >= 256 ? 3 : 200;
    // Both words of a lane hold its input before; 8 bytes apart.
    const std::string places = "v_add_u32_e32 v20, " + std::to_string(first * row.unit) +
                               ", v3\n v_add_u32_e32 v21, " + std::to_string(second * row.unit) + ", v3\n";
    const MemoryRun run(
        "global_load_dwordx4 v[4:7], v2, s[8:9]\n"
        "global_load_dwordx4 v[8:11], v2, s[8:9] offset:1024\n" +
        places + wait_all + "ds_write_b64 v20, v[4:5]\n ds_write_b64 v21, v[6:7]\n" + wait_all + row.name +
        " " + row_range(12, 2 * n) + ", v3, " + row_range(8, n) + ", " + row_range(10, n) +
        " offset0:" + std::to_string(first) + " offset1:" + std::to_string(second) + "\n" + wait_all +
        "ds_read_b64 v[16:17], v20\n ds_read_b64 v[18:19], v21\n" + wait_all +
        (n == 2 ? "global_store_dwordx4" : "global_store_dwordx2") + " v2, " + row_range(12, 2 * n) +
        ", s[12:13]\n global_store_dwordx4 v2, v[16:19], s[12:13] offset:1024\n");
    for (uint32_t lane = 0; lane < 64; ++lane)
      for (uint32_t part = 0; part < 2; ++part)
        for (uint32_t d = 0; d < 2; ++d) {
          const uint32_t at = 16 * lane + 8 * part + 4 * d;
          if (d < n) CHECK(run.out<uint32_t>(16 * lane + 4 * (part * n + d)) == run.in<uint32_t>(at));
          CHECK(run.out<uint32_t>(1024 + at) == run.in<uint32_t>(d < n ? 1024 + at : at));
        }
  }
}

TEST_CASE("conditional exchanges ignore the low bits of the address", "[isa][lds][atomics]") {
  const MemoryRun run(input_to_lds +
                      "v_mov_b32_e32 v8, 0x80000005\n v_mov_b32_e32 v9, 6\n"
                      "v_add_u32_e32 v10, 3, v3\n ds_condxchg32_rtn_b64 v[12:13], v10, v[8:9] "
                      "offset:4\n" +
                      wait_all + "global_store_dwordx2 v3, v[12:13], s[12:13]\n" + lds_to_output);
  for (uint32_t lane = 0; lane < 64; ++lane) {
    CHECK(run.out<uint64_t>(8 * lane) == run.in<uint64_t>(8 * lane));
    CHECK(run.out<uint32_t>(1024 + 8 * lane) == 5);
    CHECK(run.out<uint32_t>(1028 + 8 * lane) == run.in<uint32_t>(8 * lane + 4));
  }
}

TEST_CASE("append and consume count the active lanes at M0", "[isa][lds][atomics]") {
  const MemoryRun run(
      "v_mov_b32_e32 v4, 0x64\n v_mov_b32_e32 v5, 0\n ds_write_b32 v5, v4 offset:272\n"
      "s_movk_i32 m0, 0x100\n v_mov_b32_e32 v6, 0\n" +
      wait_all + "s_mov_b64 exec, 0xff0\n ds_append v6 offset:16\n" + wait_all +
      "s_mov_b64 exec, 7\n ds_consume v7 offset:16\n" + wait_all +
      "global_store_dword v1, v7, s[12:13] offset:256\n"
      "s_mov_b64 exec, -1\n ds_read_b32 v8, v5 offset:272\n" +
      wait_all + "global_store_dword v1, v6, s[12:13]\n global_store_dword v1, v8, s[12:13] offset:512\n");
  for (uint32_t lane = 0; lane < 64; ++lane) {
    CHECK(run.output[lane] == (lane >= 4 && lane < 12 ? 0x64 : 0));
    CHECK(run.output[64 + lane] == (lane < 3 ? 0x64 + 8 : 0xeeeeeeee));
    CHECK(run.output[128 + lane] == 0x64 + 8 - 3);
  }
}

//===--- Exchanges between lanes ------------------------------------------------------------------------===//

TEST_CASE("swizzles rotate and reorder as the manual's examples do", "[isa][lds][lanes]") {
  struct Row {
    uint32_t pattern;
    std::array<uint8_t, 32> lanes; // counted from 1
  };
  const Row rows[] = {
      {0xe000, {0x1, 0x11, 0x9, 0x19, 0x5, 0x15, 0xd, 0x1d, 0x3, 0x13, 0xb, 0x1b, 0x7, 0x17, 0xf,  0x1f,
                0x2, 0x12, 0xa, 0x1a, 0x6, 0x16, 0xe, 0x1e, 0x4, 0x14, 0xc, 0x1c, 0x8, 0x18, 0x10, 0x20}},
      {0xe010,
       {0x1,  0x9,  0x5,  0xd,  0x3,  0xb,  0x7,  0xf,  0x2,  0xa,  0x6,  0xe,  0x4,  0xc,  0x8,  0x10,
        0x11, 0x19, 0x15, 0x1d, 0x13, 0x1b, 0x17, 0x1f, 0x12, 0x1a, 0x16, 0x1e, 0x14, 0x1c, 0x18, 0x20}},
      {0xe01f, {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
                17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32}},
      {0xc020, {2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17,
                18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 1}},
      {0xc420, {32, 1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31}},
      {0xc021,
       {0x1,  0x4,  0x3,  0x6,  0x5,  0x8,  0x7,  0xa,  0x9,  0xc,  0xb,  0xe,  0xd,  0x10, 0xf,  0x12,
        0x11, 0x14, 0x13, 0x16, 0x15, 0x18, 0x17, 0x1a, 0x19, 0x1c, 0x1b, 0x1e, 0x1d, 0x20, 0x1f, 0x2}},
      {0xc421,
       {0x1f, 0x2,  0x1,  0x4,  0x3,  0x6,  0x5,  0x8,  0x7,  0xa,  0x9,  0xc,  0xb,  0xe,  0xd,  0x10,
        0xf,  0x12, 0x11, 0x14, 0x13, 0x16, 0x15, 0x18, 0x17, 0x1a, 0x19, 0x1c, 0x1b, 0x1e, 0x1d, 0x20}},
  };
  // Lane 5 is inactive: others get 0 from it, and it keeps its value.
  for (const Row &row : rows) {
    INFO(row.pattern);
    const MemoryRun run("v_add_u32_e32 v4, 1, v0\n v_mov_b32_e32 v5, 99\n s_mov_b32 exec_lo, 0xffffffdf\n"
                        "ds_swizzle_b32 v5, v4 offset:" +
                        std::to_string(row.pattern) + "\n" + wait_all +
                        "s_mov_b64 exec, -1\n global_store_dword v1, v5, s[12:13]\n");
    for (uint32_t lane = 0; lane < 64; ++lane) {
      const uint32_t from = row.lanes[lane % 32] + (lane & 32);
      CHECK(run.output[lane] == (lane == 5 ? 99 : from == 6 ? 0 : from));
    }
  }
}

TEST_CASE("permutations leave out inactive lanes on both sides", "[isa][lds][lanes]") {
  // Lane i sends to i + 1 and takes from i + 1; lanes 8 to 15 are inactive.
  const MemoryRun run("v_add_u32_e32 v4, 100, v0\n v_mov_b32_e32 v5, 7\n v_mov_b32_e32 v6, 7\n"
                      "s_mov_b32 exec_lo, 0xffff00ff\n ds_permute_b32 v5, v1, v4 offset:4\n"
                      "ds_bpermute_b32 v6, v1, v4 offset:260\n" +
                      wait_all +
                      "s_mov_b64 exec, -1\n global_store_dword v1, v5, s[12:13]\n"
                      "global_store_dword v1, v6, s[12:13] offset:256\n");
  for (uint32_t lane = 0; lane < 64; ++lane) {
    const bool active = lane < 8 || lane >= 16;
    const uint32_t before = (lane + 63) % 64, after = (lane + 1) % 64;
    CHECK(run.output[lane] == (!active ? 7 : before >= 8 && before < 16 ? 0 : 100 + before));
    CHECK(run.output[64 + lane] == (!active ? 7 : after >= 8 && after < 16 ? 0 : 100 + after));
  }
  // If several send to one lane, the highest wins; the others get 0.
  const MemoryRun many("v_mov_b32_e32 v4, 12\n ds_permute_b32 v5, v4, v0\n" + wait_all +
                       "global_store_dword v1, v5, s[12:13]\n");
  for (uint32_t lane = 0; lane < 64; ++lane)
    CHECK(many.output[lane] == (lane == 3 ? 63 : 0));
}

//===--- Bank conflicts ---------------------------------------------------------------------------------===//

TEST_CASE("bank conflicts are counted by the groups in which LDS serves lanes", "[isa][lds]") {
  auto conflicts = [](const std::string &address, const std::string &access) {
    const LaunchResult result =
        run_checked(address +
                        "v_mov_b32_e32 v4, 0\n v_mov_b32_e32 v5, 0\n v_mov_b32_e32 v6, 0\n"
                        "v_mov_b32_e32 v7, 0\n" +
                        access + wait_all,
                    {.lds_bytes = 65536});
    INFO(all_text(result));
    CHECK(result.ok());
    return result.counters.lds_bank_conflicts;
  };
  CHECK(conflicts("v_mov_b32_e32 v3, v1\n", "ds_write_b32 v3, v4\n") == 0);
  // Stride of two dwords: two lanes on a bank in each group of 32.
  CHECK(conflicts("v_lshlrev_b32_e32 v3, 1, v1\n", "ds_write_b32 v3, v4\n") == 2);
  // Stride of 32 dwords: all lanes on one bank.
  CHECK(conflicts("v_lshlrev_b32_e32 v3, 5, v1\n", "ds_write_b32 v3, v4\n") == 2 * 31);
  // All lanes at one address: served at once.
  CHECK(conflicts("v_mov_b32_e32 v3, 0\n", "ds_write_b32 v3, v4\n") == 0);
  CHECK(conflicts("v_lshlrev_b32_e32 v3, 1, v1\n", "ds_write_b64 v3, v[4:5]\n") == 0);
  CHECK(conflicts("v_lshlrev_b32_e32 v3, 2, v1\n", "ds_write_b128 v3, v[4:7]\n") == 0);
  // Rows of 64 bytes: in each group of eight lanes pairs of lanes share the same four banks, four deep.
  CHECK(conflicts("v_lshlrev_b32_e32 v3, 4, v1\n", "ds_write_b128 v3, v[4:7]\n") == 8 * 3);
}

//===--- Mistakes ---------------------------------------------------------------------------------------===//

TEST_CASE("LDS atomics that are not aligned are reported and left out", "[isa][lds][checks]") {
  for (const std::string line :
       {"ds_add_u32 v4, v1", "ds_add_u64 v5, v[6:7]", "ds_max_rtn_f32 v8, v4, v1", "ds_append v8"}) {
    const LaunchResult result =
        run_checked("v_mov_b32_e32 v6, 0\n v_mov_b32_e32 v7, 0\n v_mov_b32_e32 v4, 2\n v_mov_b32_e32 v5, 4\n"
                    "ds_write_b64 v6, v[6:7]\n ds_write_b64 v6, v[6:7] offset:8\n s_mov_b32 m0, 2\n" +
                    wait_all + "s_mov_b64 exec, 1\n" + line + "\n" + wait_all);
    INFO(line);
    CHECK(only(result, ReportKind::misaligned).disassembly.starts_with(line.substr(0, line.find(' '))));
  }
}

TEST_CASE("LDS instructions that find their address in M0 check it", "[isa][lds][checks]") {
  const std::string written = "v_mov_b32_e32 v4, 0\n ds_write_b32 v1, v4\n" + wait_all;
  for (const std::string line :
       {"ds_append v8", "ds_consume v8", "ds_read_addtid_b32 v8", "ds_write_addtid_b32 v4"}) {
    INFO(line);
    CHECK(only(run_checked(written + line + "\n" + wait_all), ReportKind::register_uninitialised).message ==
          "address m0 holds a value that was never written");
    CHECK(run_checked(written + "s_mov_b32 m0, 0\n s_nop 0\n" + line + "\n" + wait_all).ok());
    const LaunchResult beyond =
        run_checked(written + "s_movk_i32 m0, 0x2000\n s_nop 0\n" + line + "\n" + wait_all);
    CHECK(only(beyond, ReportKind::lds_out_of_bounds).disassembly == line);
  }
  // The lane's number is added on a path that a scalar write of M0 must not closely precede.
  const LaunchResult close = run_checked(written + "s_mov_b32 m0, 0\n ds_read_addtid_b32 v8\n" + wait_all);
  CHECK(only(close, ReportKind::hazard).disassembly == "ds_read_addtid_b32 v8");
  CHECK(run_checked(written + "s_mov_b32 m0, 0\n ds_append v8\n" + wait_all).ok());
}

TEST_CASE("both operands of DS instructions must have been written", "[isa][lds][checks]") {
  const std::string written =
      "v_mov_b32_e32 v4, 0\n ds_write_b32 v1, v4\n ds_write_b32 v1, v4 offset:256\n" + wait_all;
  for (const std::string line :
       {"ds_write2_b32 v1, v4, v9 offset1:64", "ds_cmpst_b32 v1, v4, v9", "ds_mskor_b32 v1, v9, v4",
        "ds_wrap_rtn_b32 v5, v1, v4, v9", "ds_wrxchg2_rtn_b32 v[6:7], v1, v4, v9 offset1:64"}) {
    INFO(line);
    const Report report =
        only(run_checked(written + line + "\n" + wait_all), ReportKind::register_uninitialised);
    CHECK(report.message == "stored register v9 holds a value that was never written");
    CHECK(report.disassembly == line);
  }
}

TEST_CASE("results of DS instructions arrive when lgkmcnt drops", "[isa][lds][checks]") {
  const std::string written = "v_mov_b32_e32 v4, 0\n v_mov_b32_e32 v5, 0\n ds_write_b64 v3, v[4:5]\n"
                              "s_mov_b32 m0, 0\n" +
                              wait_all;
  for (const std::string line :
       {"ds_append v20", "ds_read_addtid_b32 v20", "ds_wrap_rtn_b32 v20, v3, v4, v5",
        "ds_mskor_rtn_b64 v[20:21], v3, v[4:5], v[4:5]", "ds_wrxchg2_rtn_b32 v[20:21], v3, v4, v5 offset1:1",
        "ds_condxchg32_rtn_b64 v[20:21], v3, v[4:5]", "ds_pk_add_rtn_bf16 v20, v3, v4",
        "ds_cmpst_rtn_f64 v[20:21], v3, v[4:5], v[4:5]"}) {
    INFO(line);
    const LaunchResult early = run_checked(written + line + "\n v_mov_b32_e32 v6, v20\n" + wait_all);
    CHECK(only(early, ReportKind::pending_register).other->disassembly == line);
    CHECK(run_checked(written + line + "\n s_waitcnt lgkmcnt(0)\n v_mov_b32_e32 v6, v20\n").ok());
  }
}

TEST_CASE("LDS atomics that were not waited for before a barrier race with later accesses",
          "[isa][lds][checks]") {
  // Wave 0 combines, wave 1 reads after the barrier.
  auto program = [](const std::string &line, const std::string &wait) {
    return "v_readfirstlane_b32 s5, v0\n v_mov_b32_e32 v4, 0\n v_and_b32_e32 v6, 0xff, v1\n s_mov_b32 m0, 0\n"
           "v_mov_b32_e32 v5, 0\n s_cmp_eq_u32 s5, 0\n s_cbranch_scc0 other\n ds_write_b32 v1, v4\n" +
           wait_all + line + "\n" + wait + "other:\n s_barrier\n s_cbranch_scc1 done\n ds_read_b32 v5, v6\n" +
           wait_all + "v_cmpx_eq_u32_e32 vcc, v5, v5\n done:\n" + wait_all;
  };
  const LaunchShape two{.waves = 2, .lds_bytes = 8192};
  for (const std::string line : {"ds_add_u32 v1, v4", "ds_add_rtn_u32 v7, v1, v4", "ds_append v7"}) {
    INFO(line);
    const Report race = only(run_checked(program(line, ""), two), ReportKind::lds_race);
    CHECK(race.disassembly == "ds_read_b32 v5, v6");
    CHECK(race.other->disassembly == line);
    CHECK(run_checked(program(line, wait_all), two).ok());
  }
}

} // namespace sluice::test

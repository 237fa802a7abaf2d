//===- memory_test.cpp - LDS, global, scratch and buffer instructions -----------------------------------===//
#include <catch2/catch.hpp>

#include <numeric>

#include "isa/kernel_fixture.h"

namespace sluice::test {

namespace {

/// Two buffers of 4 KiB, input and output, each lane with its place in both: v1 = 4 * lane, v2 = 16 * lane;
/// s[8:9] input, s[12:13] output.
const std::string setup = R"(
  s_load_dwordx2 s[8:9], s[0:1], 0x0
  s_load_dwordx2 s[12:13], s[0:1], 0x8
  v_and_b32_e32 v0, 0x3ff, v0
  v_lshlrev_b32_e32 v1, 2, v0
  v_lshlrev_b32_e32 v2, 4, v0
  s_waitcnt lgkmcnt(0)
)";
const std::string wait = "s_waitcnt vmcnt(0) lgkmcnt(0)\n";

struct Run {
  Memory memory;
  uint8_t *input = static_cast<uint8_t *>(memory.allocate(4096));
  uint32_t *output = static_cast<uint32_t *>(memory.allocate(4096));

  explicit Run(const std::string &body, LaunchShape shape = {.lds_bytes = 8192}) {
    for (uint32_t i = 0; i < 4096; ++i)
      input[i] = uint8_t(i * 37 + 11);
    std::memset(output, 0xee, 4096);
    const TestKernel kernel(setup + body + wait + "s_endpgm");
    // The same with and without checks.
    std::vector<uint32_t> first;
    for (bool checked : {true, false}) {
      std::memset(output, 0xee, 4096);
      Options options;
      if (!checked) {
        options.checks = Checks::none();
        options.completion = CompletionOrder::early;
      }
      const LaunchResult result = kernel.run(
          memory, {reinterpret_cast<uint64_t>(input), reinterpret_cast<uint64_t>(output)}, shape, options);
      INFO(all_text(result));
      REQUIRE(result.ok());
      if (checked) first.assign(output, output + 1024);
    }
    CHECK(std::memcmp(first.data(), output, 4096) == 0);
  }

  template <class T> T in(uint32_t byte) const {
    T value;
    std::memcpy(&value, input + byte, sizeof value);
    return value;
  }
};

} // namespace

TEST_CASE("global loads of every width", "[isa][memory]") {
  struct Row {
    const char *name;
    std::function<uint32_t(const Run &, uint32_t)> expected;
  };
  const Row rows[] = {
      {"global_load_ubyte", [](const Run &r, uint32_t i) { return uint32_t(r.in<uint8_t>(4 * i)); }},
      {"global_load_sbyte", [](const Run &r, uint32_t i) { return uint32_t(int32_t(r.in<int8_t>(4 * i))); }},
      {"global_load_ushort", [](const Run &r, uint32_t i) { return uint32_t(r.in<uint16_t>(4 * i)); }},
      {"global_load_sshort",
       [](const Run &r, uint32_t i) { return uint32_t(int32_t(r.in<int16_t>(4 * i))); }},
      {"global_load_dword", [](const Run &r, uint32_t i) { return r.in<uint32_t>(4 * i); }},
      {"global_load_ubyte_d16", [](const Run &r, uint32_t i) { return 0x12340000u | r.in<uint8_t>(4 * i); }},
      {"global_load_sbyte_d16_hi",
       [](const Run &r, uint32_t i) {
         return uint32_t(uint16_t(int16_t(r.in<int8_t>(4 * i)))) << 16 | 0x5678;
       }},
      {"global_load_short_d16", [](const Run &r, uint32_t i) { return 0x12340000u | r.in<uint16_t>(4 * i); }},
      {"global_load_short_d16_hi",
       [](const Run &r, uint32_t i) { return uint32_t(r.in<uint16_t>(4 * i)) << 16 | 0x5678; }},
  };
  for (const Row &row : rows) {
    const Run run("v_mov_b32_e32 v4, 0x12345678\n" + std::string(row.name) + " v4, v1, s[8:9]\n" + wait +
                  "global_store_dword v1, v4, s[12:13]\n");
    INFO(row.name);
    for (uint32_t lane = 0; lane < 64; ++lane)
      CHECK(run.output[lane] == row.expected(run, lane));
  }
  for (uint32_t dwords : {2u, 3u, 4u}) {
    const std::string range = "v[4:" + std::to_string(3 + dwords) + "]";
    const std::string width = "dwordx" + std::to_string(dwords);
    const Run run("v_mov_b32_e32 v10, s8\n v_mov_b32_e32 v11, s9\n v_lshl_add_u64 v[10:11], v[10:11], 0, 0\n"
                  "v_add_co_u32_e32 v10, vcc, v10, v2\n s_nop 1\n v_addc_co_u32_e32 v11, vcc, 0, v11, vcc\n"
                  "global_load_" +
                  width + " " + range + ", v[10:11], off offset:4\n" + wait + "global_store_" + width +
                  " v2, " + range + ", s[12:13]\n");
    for (uint32_t lane = 0; lane < 64; ++lane)
      for (uint32_t d = 0; d < 4; ++d)
        CHECK(run.output[4 * lane + d] ==
              (d < dwords ? run.in<uint32_t>(16 * lane + 4 + 4 * d) : 0xeeeeeeee));
  }
}

TEST_CASE("global stores of parts, and of chosen lanes", "[isa][memory]") {
  const Run run(
      "v_mov_b32_e32 v4, 0x12345678\n global_store_byte v1, v4, s[12:13]\n"
      "global_store_byte_d16_hi v1, v4, s[12:13] offset:1\n global_store_short v1, v4, s[12:13] offset:1024\n"
      "global_store_short_d16_hi v1, v4, s[12:13] offset:1026\n s_mov_b64 exec, 0xf\n"
      "global_store_dword v1, v0, s[12:13] offset:2048\n");
  CHECK(run.output[7] == 0xeeee3478);
  CHECK(run.output[256 + 9] == 0x12345678);
  CHECK(run.output[512 + 3] == 3);
  CHECK(run.output[512 + 4] == 0xeeeeeeee);
}

TEST_CASE("global atomics give the old value and combine", "[isa][memory]") {
  // All lanes add to one word; each gets a different old value.
  const Run sum("v_mov_b32_e32 v5, 0\n v_mov_b32_e32 v6, 0\n v_mov_b32_e32 v7, 1\n global_store_dword v5, "
                "v6, s[12:13]\n" +
                wait + "global_atomic_add v8, v5, v7, s[12:13] sc0\n" + wait +
                "v_lshlrev_b32_e32 v8, 2, v8\n global_store_dword v8, v0, s[12:13] offset:1024\n");
  CHECK(sum.output[0] == 64);
  std::vector<uint32_t> seen(sum.output + 256, sum.output + 320);
  std::sort(seen.begin(), seen.end());
  for (uint32_t i = 0; i < 64; ++i)
    CHECK(seen[i] == i);

  auto one_word = [](const std::string &atomic, uint64_t before, const std::string &operand) {
    const Run run("v_mov_b32_e32 v5, 0\n v_mov_b32_e32 v6, " + std::to_string(uint32_t(before)) +
                  "\n v_mov_b32_e32 v7, " + std::to_string(before >> 32) +
                  "\n global_store_dwordx2 v5, v[6:7], s[12:13]\n" + wait + operand + "s_mov_b64 exec, 3\n" +
                  atomic + "\n");
    return run.output[0] | uint64_t(run.output[1]) << 32;
  };
  const std::string lane_plus_5 = "v_add_u32_e32 v8, 5, v0\n v_mov_b32_e32 v9, 0\n";
  CHECK(one_word("global_atomic_sub v5, v8, s[12:13]", 100, lane_plus_5) == 89);
  CHECK(one_word("global_atomic_smax v5, v8, s[12:13]", 0xffffffff, lane_plus_5) == 6);
  CHECK(one_word("global_atomic_umin v5, v8, s[12:13]", 0xffffffff, lane_plus_5) == 5);
  CHECK(one_word("global_atomic_or v5, v8, s[12:13]", 8, lane_plus_5) == 15);
  CHECK(one_word("global_atomic_inc v5, v8, s[12:13]", 6, lane_plus_5) == 1); // 6 >= 5: 0; 0 < 6: 1
  CHECK(one_word("global_atomic_dec v5, v8, s[12:13]", 0, lane_plus_5) == 4); // 0: 5; then 4
  CHECK(one_word("global_atomic_swap v5, v8, s[12:13]", 1, lane_plus_5) == 6);
  CHECK(one_word("global_atomic_add_x2 v5, v[8:9], s[12:13]", 0xfffffffe, lane_plus_5) == 0x1'0000'0009);
  // Compare with 5 in v9: only lane 0's succeeds.
  CHECK(one_word("global_atomic_cmpswap v5, v[8:9], s[12:13]", 5,
                 "v_add_u32_e32 v8, 70, v0\n v_mov_b32_e32 v9, 5\n") == 70);
  CHECK(one_word("global_atomic_add_f32 v5, v8, s[12:13]", std::bit_cast<uint32_t>(0.5f),
                 "v_cvt_f32_u32_e32 v8, v0\n") == std::bit_cast<uint32_t>(1.5f));
  CHECK(one_word("global_atomic_pk_add_f16 v5, v8, s[12:13]", 0x3c003c00, "v_mov_b32_e32 v8, 0x40003c00\n") ==
        0x45004200);
}

TEST_CASE("LDS reads and writes of every width", "[isa][memory]") {
  const Run run(
      "global_load_dwordx4 v[4:7], v2, s[8:9]\n" + wait + "ds_write_b128 v2, v[4:7]\n" + wait +
      "ds_read_b64 v[10:11], v2 offset:8\n ds_read2_b32 v[12:13], v2 offset0:3 offset1:1\n" + wait +
      "global_store_dwordx4 v2, v[10:13], s[12:13]\n ds_read_u8 v10, v2 offset:5\n ds_read_i8 v11, v2 "
      "offset:6\n"
      "ds_read_u16 v12, v2 offset:10\n ds_read_i16 v13, v2 offset:12\n" +
      wait +
      "global_store_dwordx4 v2, v[10:13], s[12:13] offset:1024\n s_nop 1\n v_mov_b32_e32 v10, 0x11223344\n"
      "v_mov_b32_e32 v11, v10\n ds_read_u16_d16 v10, v2 offset:2\n ds_read_u8_d16_hi v11, v2 offset:3\n"
      "ds_read_b96 v[12:14], v2 offset:4\n" +
      wait + "global_store_dwordx4 v2, v[10:13], s[12:13] offset:2048\n");
  for (uint32_t lane = 0; lane < 64; ++lane) {
    const uint32_t at = 16 * lane;
    const uint32_t *o = run.output + 4 * lane;
    CHECK(o[0] == run.in<uint32_t>(at + 8));
    CHECK(o[1] == run.in<uint32_t>(at + 12));
    CHECK(o[2] == run.in<uint32_t>(at + 12));
    CHECK(o[3] == run.in<uint32_t>(at + 4));
    CHECK(o[256] == run.in<uint8_t>(at + 5));
    CHECK(o[257] == uint32_t(int32_t(run.in<int8_t>(at + 6))));
    CHECK(o[258] == run.in<uint16_t>(at + 10));
    CHECK(o[259] == uint32_t(int32_t(run.in<int16_t>(at + 12))));
    CHECK(o[512] == (0x11220000u | run.in<uint16_t>(at + 2)));
    CHECK(o[513] == (uint32_t(run.in<uint8_t>(at + 3)) << 16 | 0x3344));
    CHECK(o[514] == run.in<uint32_t>(at + 4));
    CHECK(o[515] == run.in<uint32_t>(at + 8));
  }
}

TEST_CASE("LDS accesses in pairs and with strides of 64 elements", "[isa][memory]") {
  const Run run(
      "global_load_dwordx2 v[4:5], v2, s[8:9]\n" + wait +
      "ds_write2st64_b32 v1, v4, v5 offset0:1 offset1:3\n v_lshlrev_b32_e32 v3, 3, v0\n"
      "ds_write2_b64 v3, v[4:5], v[4:5] offset0:128 offset1:192\n" +
      wait +
      "ds_read2st64_b32 v[6:7], v1 offset0:3 offset1:1\n ds_read2_b64 v[8:11], v3 offset0:192 offset1:128\n" +
      wait +
      "global_store_dwordx2 v3, v[6:7], s[12:13]\n global_store_dwordx4 v2, v[8:11], s[12:13] offset:1024\n");
  for (uint32_t lane = 0; lane < 64; ++lane) {
    CHECK(run.output[2 * lane] == run.in<uint32_t>(16 * lane + 4));
    CHECK(run.output[2 * lane + 1] == run.in<uint32_t>(16 * lane));
    for (uint32_t d = 0; d < 4; ++d)
      CHECK(run.output[256 + 4 * lane + d] == run.in<uint32_t>(16 * lane + 4 * (d % 2)));
  }
}

TEST_CASE("LDS atomics", "[isa][memory]") {
  const Run run(
      "v_mov_b32_e32 v5, 0\n v_mov_b32_e32 v6, 10\n ds_write_b32 v5, v6\n" + wait +
      "v_mov_b32_e32 v7, 1\n ds_add_rtn_u32 v8, v5, v7\n" + wait +
      "global_store_dword v1, v8, s[12:13]\n"
      "ds_max_u32 v5, v0\n ds_read_b32 v9, v5\n" +
      wait +
      "global_store_dword v1, v9, s[12:13] offset:256\n"
      "v_mov_b32_e32 v10, 74\n ds_cmpst_rtn_b32 v11, v5, v10, v0\n ds_read_b32 v9, v5\n" +
      wait +
      "global_store_dword v1, v11, s[12:13] offset:512\n global_store_dword v1, v9, s[12:13] offset:768\n");
  for (uint32_t lane = 0; lane < 64; ++lane) {
    CHECK(run.output[lane] == 10 + lane);
    CHECK(run.output[64 + lane] == 74);
    CHECK(run.output[128 + lane] == (lane == 0 ? 74 : 0)); // lane 0 swapped 0 in
    CHECK(run.output[192 + lane] == 0);
  }
}

TEST_CASE("flat addresses reach memory, LDS and scratch", "[isa][memory]") {
  const Run run(
      "s_mov_b64 s[4:5], src_shared_base\n s_mov_b64 s[6:7], src_private_base\n"
      "v_mov_b32_e32 v11, s5\n v_mov_b32_e32 v10, v1\n flat_store_dword v[10:11], v0 offset:64\n" +
      wait +
      "ds_read_b32 v4, v1 offset:64\n v_mov_b32_e32 v13, s7\n v_mov_b32_e32 v12, 16\n"
      "flat_store_dword v[12:13], v1\n" +
      wait +
      "scratch_load_dword v5, off, off offset:16\n"
      "v_mov_b32_e32 v14, s8\n v_mov_b32_e32 v15, s9\n flat_load_dwordx2 v[6:7], v[14:15] offset:8\n" +
      wait + "global_store_dwordx4 v2, v[4:7], s[12:13]\n");
  for (uint32_t lane = 0; lane < 64; ++lane) {
    CHECK(run.output[4 * lane] == lane);
    CHECK(run.output[4 * lane + 1] == 4 * lane);
    CHECK(run.output[4 * lane + 2] == run.in<uint32_t>(8));
    CHECK(run.output[4 * lane + 3] == run.in<uint32_t>(12));
  }
}

TEST_CASE("scratch is each lane's own", "[isa][memory]") {
  const Run run("v_mov_b32_e32 v3, 8\n s_mov_b32 s4, 4\n scratch_store_dword off, v0, off offset:12\n"
                "scratch_store_dword v3, v1, off\n" +
                wait +
                "scratch_load_dword v4, off, s4 offset:8\n"
                "scratch_load_dword v5, off, off offset:8\n" +
                wait +
                "global_store_dword v1, v4, s[12:13]\n global_store_dword v1, v5, s[12:13] offset:256\n");
  for (uint32_t lane = 0; lane < 64; ++lane) {
    CHECK(run.output[lane] == lane);
    CHECK(run.output[64 + lane] == 4 * lane);
  }
}

TEST_CASE("buffers: offsets, records and strides", "[isa][memory]") {
  const std::string resource = "s_mov_b32 s10, 128\n s_mov_b32 s11, 0x00027000\n";
  // 128 bytes of records: the rest reads 0; dwordx2 is cut in the middle.
  const Run run(resource +
                "buffer_load_dword v4, v1, s[8:11], 0 offen\n s_mov_b32 s5, 8\n"
                "buffer_load_dwordx2 v[6:7], v1, s[8:11], s5 offen offset:4\n" +
                wait +
                "global_store_dword v1, v4, s[12:13]\n v_lshlrev_b32_e32 v3, 3, v0\n"
                "global_store_dwordx2 v3, v[6:7], s[12:13] offset:1024\n");
  for (uint32_t lane = 0; lane < 64; ++lane) {
    CHECK(run.output[lane] == (lane < 32 ? run.in<uint32_t>(4 * lane) : 0));
    // The range check counts the scalar offset.
    const uint32_t at = 12 + 4 * lane;
    CHECK(run.output[256 + 2 * lane] == (at < 128 ? run.in<uint32_t>(at) : 0));
    CHECK(run.output[256 + 2 * lane + 1] == (at + 4 < 128 ? run.in<uint32_t>(at + 4) : 0));
  }
  // A stride of 32 bytes (word 1 [29:16]) and an index.
  const Run strided("s_or_b32 s9, s9, 0x200000\n" + resource +
                    "s_mov_b32 s10, 0x1000\n"
                    "buffer_load_dword v4, v0, s[8:11], 0 idxen offset:12\n" +
                    wait + "global_store_dword v1, v4, s[12:13]\n");
  for (uint32_t lane = 0; lane < 64; ++lane)
    CHECK(strided.output[lane] == strided.in<uint32_t>(32 * lane + 12));

  // Stores beyond the records vanish.
  const Run stored(
      "s_mov_b32 s14, 128\n s_mov_b32 s15, 0x00027000\n buffer_store_dword v0, v1, s[12:15], 0 offen\n"
      "buffer_store_byte v0, v1, s[12:15], 0 offen offset:1\n");
  CHECK(stored.output[31] == 0x1f1f);
  CHECK(stored.output[32] == 0xeeeeeeee);

  // An all-zero resource is unbound.
  const Run unbound(
      "s_mov_b64 s[16:17], 0\n s_mov_b64 s[18:19], 0\n buffer_load_dword v4, v1, s[16:19], 0 offen\n" + wait +
      "global_store_dword v1, v4, s[12:13]\n");
  for (uint32_t lane = 0; lane < 64; ++lane)
    CHECK(unbound.output[lane] == 0);
}

TEST_CASE("copies into LDS: M0, the offset on both sides, lanes by number", "[isa][memory]") {
  const std::string resource = "s_mov_b32 s10, 512\n s_mov_b32 s11, 0x00027000\n s_movk_i32 m0, 0x400\n"
                               "v_mov_b32_e32 v5, 0x77\n ds_write_b32 v1, v5 offset:1024\n"
                               "ds_write_b32 v1, v5 offset:1280\n" +
                               wait;
  const std::string store =
      wait + "ds_read_b32 v4, v1 offset:1024\n ds_read_b32 v6, v1 offset:1280\n" + wait +
      "global_store_dword v1, v4, s[12:13]\n global_store_dword v1, v6, s[12:13] offset:256\n";
  // LDS address 0x400 + 64 + 4 * lane; memory address 8 * lane + 64.
  const Run run(resource +
                "v_lshlrev_b32_e32 v3, 3, v0\n buffer_load_dword v3, s[8:11], 0 offen offset:64 lds\n" +
                store);
  for (uint32_t lane = 0; lane < 64; ++lane) {
    const uint32_t from = lane - 16;
    if (lane < 16)
      CHECK(run.output[lane] == 0x77);
    else
      CHECK(run.output[lane] == (from < 56 ? run.in<uint32_t>(8 * from + 64) : 0));
  }
  // Lanes beyond the records bring zeros; the last sixteen lanes land in the next row.
  for (uint32_t lane = 0; lane < 16; ++lane)
    CHECK(run.output[64 + lane] == (48 + lane < 56 ? run.in<uint32_t>(8 * (48 + lane) + 64) : 0));
  CHECK(run.output[64 + 16] == 0x77);

  // Inactive lanes write nothing, and the others keep their places.
  const Run some(
      resource +
      "s_mov_b64 exec, 0xff00\n buffer_load_dword v1, s[8:11], 0 offen lds\n s_mov_b64 exec, -1\n" + store);
  for (uint32_t lane = 0; lane < 64; ++lane)
    CHECK(some.output[lane] == (lane >= 8 && lane < 16 ? some.in<uint32_t>(4 * lane) : 0x77));

  const Run global(resource + "global_load_lds_dword v1, s[8:9] offset:4\n" + store);
  for (uint32_t lane = 1; lane < 64; ++lane)
    CHECK(global.output[lane] == global.in<uint32_t>(4 * lane));
  const Run bytes(resource + "global_load_lds_ubyte v1, s[8:9]\n" + store);
  for (uint32_t lane = 0; lane < 64; ++lane)
    CHECK(bytes.output[lane] == bytes.in<uint8_t>(4 * lane));
}

TEST_CASE("scalar loads", "[isa][memory]") {
  const Run run(
      "s_load_dwordx8 s[16:23], s[8:9], 0x20\n s_movk_i32 s5, 0x44\n s_load_dwordx2 s[24:25], s[8:9], s5\n"
      "s_load_dword s26, s[8:9], s5 offset:0x10\n s_mov_b32 s10, 0x104\n s_mov_b32 s11, 0\n"
      "s_buffer_load_dwordx4 s[28:31], s[8:11], 0xfc\n" +
      wait +
      "v_mov_b32_e32 v4, s16\n v_mov_b32_e32 v5, s23\n v_mov_b32_e32 v6, s25\n v_mov_b32_e32 v7, s26\n"
      "global_store_dwordx4 v2, v[4:7], s[12:13]\n s_nop 1\n v_mov_b32_e32 v4, s28\n v_mov_b32_e32 v5, s29\n"
      "v_mov_b32_e32 v6, s30\n v_mov_b32_e32 v7, s31\n global_store_dwordx4 v2, v[4:7], s[12:13] "
      "offset:1024\n");
  CHECK(run.output[0] == run.in<uint32_t>(0x20));
  CHECK(run.output[1] == run.in<uint32_t>(0x3c));
  CHECK(run.output[2] == run.in<uint32_t>(0x48));
  CHECK(run.output[3] == run.in<uint32_t>(0x54));
  CHECK(run.output[256] == run.in<uint32_t>(0xfc));
  CHECK(run.output[257] == run.in<uint32_t>(0x100));
  CHECK(run.output[258] == 0); // beyond the records
  CHECK(run.output[259] == 0);
}

TEST_CASE("a wave starts as the dispatcher says", "[isa][launch]") {
  // Each work-item stores its packed id and the workgroup's at a place of its own: block 8 x 4 x 3, grid 2 x
  // 2 x 1.
  const TestKernel kernel(
      "s_load_dwordx2 s[8:9], s[0:1], 0x8\n v_and_b32_e32 v1, 0x3ff, v0\n v_bfe_u32 v2, v0, 10, 10\n"
      "v_bfe_u32 v3, v0, 20, 10\n v_lshl_add_u32 v4, v2, 3, v1\n v_lshl_add_u32 v4, v3, 5, v4\n"
      "s_lshl_b32 s5, s3, 1\n s_add_i32 s5, s5, s2\n s_mulk_i32 s5, 0x60\n v_add_u32_e32 v4, s5, v4\n"
      "v_lshlrev_b32_e32 v4, 2, v4\n s_waitcnt lgkmcnt(0)\n s_lshl_b32 s6, s4, 30\n v_or_b32_e32 v0, s6, v0\n"
      "global_store_dword v4, v0, s[8:9]\n s_endpgm");
  Memory memory;
  auto *output = static_cast<uint32_t *>(memory.allocate(4 * 96 * 4));
  const std::array<uint64_t, 8> arguments{0, reinterpret_cast<uint64_t>(output)};
  const LaunchResult result = emulator::launch(kernel.program, "slot", {2, 2, 1}, {8, 4, 3}, 0,
                                               std::as_bytes(std::span(arguments)), memory, Options{});
  INFO(all_text(result));
  REQUIRE(result.ok());
  CHECK(result.counters.waves == 8);
  CHECK(result.counters.workgroups == 4);
  for (uint32_t i = 0; i < 4 * 96; ++i) {
    const uint32_t item = i % 96;
    CHECK(output[i] == ((item % 8) | (item / 8 % 4) << 10 | (item / 32) << 20));
  }
}

TEST_CASE("preloaded arguments are in registers when the wave starts", "[isa][launch]") {
  const TestKernel kernel("s_endpgm");
  Memory memory;
  auto *output = static_cast<uint32_t *>(memory.allocate(4));
  // Preloaded from dword 2 on: the pointer, then 77.
  const LaunchResult result =
      kernel.run(memory, {0, reinterpret_cast<uint64_t>(output), 77}, {.kernel = "preloaded"});
  INFO(all_text(result));
  REQUIRE(result.ok());
  CHECK(*output == 77);
}

TEST_CASE("a workgroup may wait for one that starts later", "[isa][launch]") {
  // Workgroup 0 waits until workgroup 3 has set a flag, on one host thread.
  for (const std::string sleep : {"s_sleep 1\n", ""}) {
    const TestKernel kernel(
        "s_load_dwordx2 s[8:9], s[0:1], 0x0\n v_mov_b32_e32 v1, 0\n s_waitcnt lgkmcnt(0)\n"
        "s_cmp_eq_u32 s2, 3\n s_cbranch_scc1 set\n s_cmp_eq_u32 s2, 0\n s_cbranch_scc0 out\n"
        "wait:\n" +
        sleep +
        "global_load_dword v2, v1, s[8:9] sc1\n s_waitcnt vmcnt(0)\n"
        "v_readfirstlane_b32 s6, v2\n s_cmp_eq_u32 s6, 0\n s_cbranch_scc1 wait\n s_endpgm\n"
        "set:\n v_mov_b32_e32 v2, 1\n global_store_dword v1, v2, s[8:9]\n out:\n s_endpgm\n");
    Memory memory;
    auto *flag = static_cast<uint32_t *>(memory.allocate(4));
    *flag = 0;
    Options options;
    options.checks = Checks::none();
    options.completion = CompletionOrder::early;
    const LaunchResult result =
        kernel.run(memory, {reinterpret_cast<uint64_t>(flag)}, {.grid = {4, 1, 1}}, options);
    INFO(all_text(result));
    CHECK(result.ok());
    CHECK(*flag == 1);
  }
}

TEST_CASE("launches that no driver would accept", "[isa][launch]") {
  const TestKernel kernel("s_endpgm");
  const Memory memory;
  const std::array<uint64_t, 8> arguments{};
  auto launch = [&](std::string_view name, std::array<uint32_t, 3> grid, std::array<uint32_t, 3> block,
                    uint32_t lds, size_t bytes) {
    return emulator::launch(kernel.program, name, grid, block, lds,
                            std::as_bytes(std::span(arguments)).first(bytes), memory);
  };
  CHECK(launch("slot", {1, 1, 1}, {64, 1, 1}, 65536, 64).ok());
  CHECK_THROWS_WITH(launch("none", {1, 1, 1}, {64, 1, 1}, 0, 64), Catch::Contains("no kernel \"none\""));
  CHECK_THROWS_WITH(launch("slot", {1, 0, 1}, {64, 1, 1}, 0, 64), Catch::Contains("grid.y is 0"));
  CHECK_THROWS_WITH(launch("slot", {1, 1, 1}, {64, 1, 0}, 0, 64), Catch::Contains("block.z is 0"));
  CHECK_THROWS_WITH(launch("slot", {1, 1, 1}, {1025, 1, 1}, 0, 64),
                    Catch::Contains("1025 x 1 x 1 work-items"));
  CHECK_THROWS_WITH(launch("slot", {1, 1, 1}, {64, 1, 1}, 65537, 64), Catch::Contains("65537 bytes of LDS"));
  CHECK_THROWS_WITH(launch("slot", {1, 1, 1}, {64, 1, 1}, 0, 60),
                    Catch::Contains("60 bytes of kernel arguments"));
}

TEST_CASE("device memory", "[isa][memory]") {
  Memory memory(1 << 20, 64 << 10);
  CHECK(memory.allocate(0) == nullptr);
  CHECK(memory.allocate(2 << 20) == nullptr);
  void *first = memory.allocate(1000);
  REQUIRE(first != nullptr);
  CHECK(reinterpret_cast<uint64_t>(first) % 4096 == 0);
  CHECK(memory.used_bytes() == 1000);
  CHECK(memory.find(static_cast<char *>(first) + 999)->address == reinterpret_cast<uint64_t>(first));
  CHECK_FALSE(memory.find(static_cast<char *>(first) + 1000));
  CHECK_FALSE(memory.release(static_cast<char *>(first) + 8));
  CHECK(memory.release(first));
  CHECK_FALSE(memory.release(first));
  CHECK_FALSE(memory.find(first));
  CHECK(memory.used_bytes() == 0);
  // Still known as freed, until the quarantine is full.
  CHECK(memory.snapshot()->find(reinterpret_cast<uint64_t>(first), 4)->freed);
  for (int i = 0; i < 4; ++i)
    CHECK(memory.release(memory.allocate(32 << 10)));
  const emulator::MemoryBlock *old = memory.snapshot()->find(reinterpret_cast<uint64_t>(first), 4);
  CHECK((old == nullptr || old->bytes != 1000));

  std::array<uint64_t, 16> host{};
  CHECK(memory.attach(host.data(), sizeof host, false));
  CHECK_FALSE(memory.attach(host.data() + 4, 8, true));
  CHECK_FALSE(memory.find(&host[3])->writable);
  CHECK_FALSE(memory.release(host.data()));
  CHECK(memory.detach(host.data()));
  CHECK_FALSE(memory.detach(host.data()));
}

} // namespace sluice::test

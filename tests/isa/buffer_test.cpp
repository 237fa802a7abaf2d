//===- buffer_test.cpp - buffer instructions and their resources ----------------------------------------===//
#include <cmath>

#include "isa/memory_fixture.h"

namespace sluice::test {

namespace {

constexpr uint32_t plain_flags = 0x00027000; // DATA_FORMAT 32, NUM_FORMAT float

/// s[8:11] becomes a resource over the input.
std::string resource(uint32_t records, uint32_t stride = 0, uint32_t flags = plain_flags,
                     bool swizzle = false) {
  const std::string high = std::to_string(stride << 16 | (swizzle ? 0x80000000u : 0));
  return "s_or_b32 s9, s9, " + high + "\n s_mov_b32 s10, " + std::to_string(records) + "\n s_mov_b32 s11, " +
         std::to_string(flags) + "\n";
}

/// Loads `dwords` per lane into the output at 16 * lane.
MemoryRun load(const std::string &before, const std::string &name, const std::string &operands,
               uint32_t dwords = 1) {
  return MemoryRun(before + name + " " + row_range(20, dwords) + ", " + operands + "\n" + wait_all +
                   "global_store_" + (dwords == 1 ? "dword" : "dwordx" + std::to_string(dwords)) + " v2, " +
                   row_range(20, dwords) + ", s[12:13]\n");
}

} // namespace

//===--- Addresses --------------------------------------------------------------------------------------===//

TEST_CASE("a raw buffer adds the three offsets", "[isa][buffer]") {
  struct Row {
    std::string before, operands;
    std::function<uint32_t(uint32_t)> address; // by lane
  };
  const Row rows[] = {
      {"", "off, s[8:11], 0 offset:20", [](uint32_t) { return 20u; }},
      {"", "v1, s[8:11], 0 offen offset:4092", [](uint32_t lane) { return 4092 + 4 * lane; }},
      {"s_movk_i32 s5, 0x50\n", "v1, s[8:11], s5 offen offset:8",
       [](uint32_t lane) { return 88 + 4 * lane; }},
      {"", "v1, s[8:11], 64 offen", [](uint32_t lane) { return 64 + 4 * lane; }},
      {"s_movk_i32 m0, 0x30\n", "v1, s[8:11], m0 offen", [](uint32_t lane) { return 48 + 4 * lane; }},
      // Without a stride an index adds nothing.
      {"v_mov_b32_e32 v30, 5\n v_mov_b32_e32 v31, v1\n", "v[30:31], s[8:11], 0 idxen offen",
       [](uint32_t lane) { return 4 * lane; }},
      // The two low bits of the address are ignored.
      {"v_add_u32_e32 v30, 3, v1\n", "v30, s[8:11], 0 offen offset:4",
       [](uint32_t lane) { return 4 * lane + 4; }},
  };
  for (const Row &row : rows) {
    INFO(row.operands);
    const MemoryRun run = load(resource(8192) + row.before, "buffer_load_dword", row.operands);
    for (uint32_t lane = 0; lane < 64; ++lane)
      CHECK(run.out<uint32_t>(16 * lane) == run.in<uint32_t>(row.address(lane)));
  }
  // Smaller accesses need no alignment.
  const MemoryRun odd = load(resource(8192), "buffer_load_ushort", "v1, s[8:11], 0 offen offset:1");
  for (uint32_t lane = 0; lane < 64; ++lane)
    CHECK(odd.out<uint32_t>(16 * lane) == odd.in<uint16_t>(4 * lane + 1));
}

TEST_CASE("a raw buffer ends at its bytes, component by component", "[isa][buffer]") {
  for (uint32_t dwords : {1u, 2u, 3u, 4u}) {
    const std::string name = "buffer_load_dword" + (dwords == 1 ? "" : "x" + std::to_string(dwords));
    // 132 bytes; the scalar offset counts.
    const MemoryRun run =
        load(resource(132) + "s_mov_b32 s5, 8\n", name, "v1, s[8:11], s5 offen offset:4", dwords);
    for (uint32_t lane = 0; lane < 64; ++lane)
      for (uint32_t d = 0; d < dwords; ++d) {
        const uint32_t at = 12 + 4 * lane + 4 * d;
        CHECK(run.out<uint32_t>(16 * lane + 4 * d) == (at + 4 <= 132 ? run.in<uint32_t>(at) : 0));
      }
  }
  // A scalar offset beyond all records, and a huge offset, are out of range too.
  for (const std::string operands : {"off, s[8:11], s5", "v30, s[8:11], 0 offen offset:16"}) {
    const MemoryRun beyond = load(resource(132) + "s_movk_i32 s5, 0x400\n v_mov_b32_e32 v30, -16\n",
                                  "buffer_load_dword", operands);
    CHECK(beyond.output[0] == 0);
  }
  // The part of a store beyond the end is dropped.
  const MemoryRun stored(
      "global_load_dwordx4 v[4:7], v2, s[8:9]\n s_movk_i32 s14, 0x108\n s_mov_b32 s15, 0x27000\n" + wait_all +
      "buffer_store_dwordx4 v[4:7], v2, s[12:15], 0 offen\n"
      "v_add_u32_e32 v8, 0x107, v0\n buffer_store_byte v0, v8, s[12:15], 0 offen\n");
  for (uint32_t at = 0; at < 1024; at += 4)
    CHECK(stored.out<uint32_t>(at) == (at < 0x104    ? stored.in<uint32_t>(at)
                                       : at == 0x104 ? (stored.in<uint32_t>(at) & 0xffffff)
                                                     : 0xeeeeeeee));
}

TEST_CASE("a structured buffer counts records", "[isa][buffer]") {
  // 40 records of 24 bytes; the offset may exceed the record, the index may not exceed the buffer.
  const MemoryRun run = load(resource(40, 24), "buffer_load_dwordx2", "v0, s[8:11], 0 idxen offset:20", 2);
  for (uint32_t lane = 0; lane < 64; ++lane)
    for (uint32_t d = 0; d < 2; ++d)
      CHECK(run.out<uint32_t>(16 * lane + 4 * d) ==
            (lane < 40 ? run.in<uint32_t>(24 * lane + 20 + 4 * d) : 0));
  // Without an index the same resource is raw: 40 bytes.
  const MemoryRun raw = load(resource(40, 24), "buffer_load_dword", "v1, s[8:11], 0 offen");
  for (uint32_t lane = 0; lane < 64; ++lane)
    CHECK(raw.out<uint32_t>(16 * lane) == (lane < 10 ? raw.in<uint32_t>(4 * lane) : 0));
}

TEST_CASE("a swizzled buffer interleaves the elements of records", "[isa][buffer]") {
  for (uint32_t index_code : {0u, 1u, 2u, 3u})
    for (uint32_t element_code : {0u, 1u, 2u, 3u}) {
      const uint32_t index_stride = 8u << index_code, element = 2u << element_code, stride = 32;
      const uint32_t flags = plain_flags | element_code << 19 | index_code << 21;
      auto address = [&](uint32_t index, uint32_t offset) {
        const uint32_t group = index / index_stride, in_group = index % index_stride;
        return (group * stride + offset / element * element) * index_stride + in_group * element +
               offset % element;
      };
      INFO(index_stride << " " << element);
      // Two dwords: each is swizzled separately if an element holds no more. The destination is the address.
      const MemoryRun run("v_mov_b32_e32 v20, v0\n v_mov_b32_e32 v21, 8\n" +
                          resource(60, stride, flags, true) +
                          "buffer_load_dwordx2 v[20:21], v[20:21], s[8:11], 4 idxen offen offset:8\n" +
                          wait_all + "global_store_dwordx2 v2, v[20:21], s[12:13]\n");
      for (uint32_t lane = 0; lane < 64; ++lane)
        for (uint32_t d = 0; d < 2; ++d) {
          const uint32_t at = element >= 8 ? address(lane, 16) + 4 * d : address(lane, 16 + 4 * d);
          CHECK(run.out<uint32_t>(16 * lane + 4 * d) == (lane < 60 ? run.in<uint32_t>((at + 4) & ~3u) : 0));
        }
      // Nor may the offset exceed the record.
      const MemoryRun beyond =
          load(resource(64, stride, flags, true) + "v_mov_b32_e32 v30, v0\n v_mov_b32_e32 v31, 24\n",
               "buffer_load_dwordx4", "v[30:31], s[8:11], 0 idxen offen", 4);
      for (uint32_t d = 0; d < 4; ++d)
        CHECK((beyond.out<uint32_t>(4 * d) == 0) == (d >= 2));
    }
  // Stores use the same addresses.
  const MemoryRun stored(
      "global_load_dwordx2 v[4:5], v3, s[8:9]\n s_or_b32 s13, s13, 0x80100000\n s_mov_b32 s14, 64\n"
      "s_mov_b32 s15, 0xa7000\n" +
      wait_all + "buffer_store_dwordx2 v[4:5], v0, s[12:15], 0 idxen offset:4\n");
  for (uint32_t lane = 0; lane < 64; ++lane)
    for (uint32_t d = 0; d < 2; ++d)
      CHECK(stored.out<uint32_t>((lane / 8 * 16 + 4 + 4 * d) * 8 + lane % 8 * 4) ==
            stored.in<uint32_t>(8 * lane + 4 * d));
}

TEST_CASE("the lane's number may be the index", "[isa][buffer]") {
  // Bits 15 to 18 are then the upper bits of the stride; without an index the range is not checked.
  const uint32_t flags = 0x00800000 | 7u << 12;
  const MemoryRun run = load(resource(0, 12, flags), "buffer_load_dword", "off, s[8:11], 0 offset:8");
  for (uint32_t lane = 0; lane < 64; ++lane)
    CHECK(run.out<uint32_t>(16 * lane) == run.in<uint32_t>(12 * lane + 8));
  const MemoryRun far =
      load(resource(0, 0, flags | 1u << 15) + "s_mov_b32 exec_lo, 1\n s_mov_b32 exec_hi, 0\n",
           "buffer_load_dword", "off, s[8:11], 0 offset:8");
  CHECK(far.out<uint32_t>(0) == far.in<uint32_t>(8));
  // Stride 1 << 14 | 4: lane 1 would be 16 KiB away, beyond the input.
  const LaunchResult beyond =
      run_checked(resource(0, 4, flags | 1u << 15) + "buffer_load_dword v20, off, s[8:11], 0\n" + wait_all);
  const Report report = only(beyond, ReportKind::global_out_of_bounds);
  CHECK(report.lane == 1);
  // With an index both are added, and checked.
  const MemoryRun both = load(resource(66, 12, flags), "buffer_load_dword", "v0, s[8:11], 0 idxen");
  for (uint32_t lane = 0; lane < 64; ++lane)
    CHECK(both.out<uint32_t>(16 * lane) == (lane < 33 ? both.in<uint32_t>(24 * lane) : 0));
}

TEST_CASE("a resource without a data format is unbound", "[isa][buffer]") {
  for (const std::string &words :
       {std::string("s_mov_b64 s[8:9], 0\n s_mov_b64 s[10:11], 0\n"), resource(4096, 0, 7u << 12)})
    for (const std::string name : {"buffer_load_dword", "buffer_load_format_x"}) {
      const MemoryRun run = load(words, name, "v1, s[8:11], 0 offen");
      for (uint32_t lane = 0; lane < 64; ++lane)
        CHECK(run.out<uint32_t>(16 * lane) == 0);
    }
  const MemoryRun stored(
      "s_movk_i32 s14, 0x1000\n s_mov_b32 s15, 0\n buffer_store_dword v0, v1, s[12:15], 0 offen\n"
      "buffer_atomic_add v0, v1, s[12:15], 0 offen\n"
      "buffer_store_format_x v0, v1, s[12:15], 0 offen\n");
  CHECK(stored.output[1] == 0xeeeeeeee);
}

TEST_CASE("atomics of buffers are in range as a whole or not at all", "[isa][buffer]") {
  const MemoryRun run(
      "v_mov_b32_e32 v4, 1\n v_mov_b32_e32 v5, 1\n s_mov_b32 s14, 20\n s_mov_b32 s15, 0x27000\n"
      "global_store_dwordx2 v3, v[4:5], s[12:13]\n" +
      wait_all + "s_mov_b64 exec, 7\n buffer_atomic_add_x2 v[4:5], v3, s[12:15], 0 offen sc0\n" + wait_all +
      "global_store_dwordx2 v3, v[4:5], s[12:13] offset:1024\n");
  for (uint32_t lane = 0; lane < 4; ++lane) {
    CHECK(run.output[2 * lane] == (lane < 2 ? 2 : 1));
    CHECK(run.output[2 * lane + 1] == (lane < 2 ? 2 : 1));
    if (lane < 3) CHECK(run.output[256 + 2 * lane] == (lane < 2 ? 1 : 0));
  }
}

//===--- Copies into LDS --------------------------------------------------------------------------------===//

TEST_CASE("copies into LDS: M0, the offset on both sides, lanes by number", "[isa][buffer][copies]") {
  const std::string resource = "s_mov_b32 s10, 512\n s_mov_b32 s11, 0x00027000\n s_movk_i32 m0, 0x400\n"
                               "v_mov_b32_e32 v5, 0x77\n ds_write_b32 v1, v5 offset:1024\n"
                               "ds_write_b32 v1, v5 offset:1280\n" +
                               wait_all;
  const std::string store =
      wait_all + "ds_read_b32 v4, v1 offset:1024\n ds_read_b32 v6, v1 offset:1280\n" + wait_all +
      "global_store_dword v1, v4, s[12:13]\n global_store_dword v1, v6, s[12:13] offset:256\n";
  // LDS address 0x400 + 64 + 4 * lane; memory address 8 * lane + 64.
  const MemoryRun run(resource +
                      "v_lshlrev_b32_e32 v3, 3, v0\n buffer_load_dword v3, s[8:11], 0 offen offset:64 lds\n" +
                      store);
  for (uint32_t lane = 0; lane < 64; ++lane) {
    const uint32_t from = lane - 16;
    if (lane < 16)
      CHECK(run.output[lane] == 0x77);
    else
      CHECK(run.output[lane] == (from < 56 ? run.in<uint32_t>(8 * from + 64) : 0));
  }
  // Lanes beyond the records bring zeros; the last sixteen lanes write to the next row.
  for (uint32_t lane = 0; lane < 16; ++lane)
    CHECK(run.output[64 + lane] == (48 + lane < 56 ? run.in<uint32_t>(8 * (48 + lane) + 64) : 0));
  CHECK(run.output[64 + 16] == 0x77);

  // Inactive lanes write nothing, and the others keep their places.
  const MemoryRun some(
      resource +
      "s_mov_b64 exec, 0xff00\n buffer_load_dword v1, s[8:11], 0 offen lds\n s_mov_b64 exec, -1\n" + store);
  for (uint32_t lane = 0; lane < 64; ++lane)
    CHECK(some.output[lane] == (lane >= 8 && lane < 16 ? some.in<uint32_t>(4 * lane) : 0x77));

  const MemoryRun global(resource + "global_load_lds_dword v1, s[8:9] offset:4\n" + store);
  for (uint32_t lane = 1; lane < 64; ++lane)
    CHECK(global.output[lane] == global.in<uint32_t>(4 * lane));
  const MemoryRun bytes(resource + "global_load_lds_ubyte v1, s[8:9]\n" + store);
  for (uint32_t lane = 0; lane < 64; ++lane)
    CHECK(bytes.output[lane] == bytes.in<uint8_t>(4 * lane));
}

TEST_CASE("copies into LDS of parts of a dword, and of a converted component", "[isa][buffer][copies]") {
  struct Row {
    const char *name;
    uint32_t flags;
    std::function<uint32_t(const MemoryRun &, uint32_t)> value;
  };
  // buffer_load_format_x takes the component that DST_SEL_X selects: 8_8_8_8, unorm, the third.
  const Row rows[] = {
      {"ubyte", plain_flags, [](const MemoryRun &r, uint32_t at) { return uint32_t(r.in<uint8_t>(at)); }},
      {"sbyte", plain_flags,
       [](const MemoryRun &r, uint32_t at) { return uint32_t(int32_t(r.in<int8_t>(at))); }},
      {"ushort", plain_flags, [](const MemoryRun &r, uint32_t at) { return uint32_t(r.in<uint16_t>(at)); }},
      {"sshort", plain_flags,
       [](const MemoryRun &r, uint32_t at) { return uint32_t(int32_t(r.in<int16_t>(at))); }},
      {"format_x", 10u << 15 | 6,
       [](const MemoryRun &r, uint32_t at) {
         return std::bit_cast<uint32_t>(float(r.in<uint8_t>(at + 2)) / 255.0f);
       }},
  };
  for (const Row &row : rows) {
    INFO(row.name);
    const MemoryRun run("v_mov_b32_e32 v4, 0\n ds_write_b32 v1, v4\n s_mov_b32 m0, 0\n" + wait_all +
                        resource(128, 0, row.flags) + "buffer_load_" + row.name +
                        " v1, s[8:11], 0 offen lds\n" + wait_all + "ds_read_b32 v5, v1\n" + wait_all +
                        "global_store_dword v1, v5, s[12:13]\n");
    for (uint32_t lane = 0; lane < 64; ++lane)
      CHECK(run.output[lane] == (lane < 32 ? row.value(run, 4 * lane) : 0));
  }
}

TEST_CASE("lanes out of range are counted, and reported only if that is wanted", "[isa][buffer]") {
  struct Row {
    const char *source;
    uint64_t lanes;
  };
  const std::string records = resource(252); // one dword less than 64 lanes load
  const Row rows[] = {
      {"buffer_load_dword v20, v1, s[8:11], 0 offen\n", 1},
      {"buffer_load_dwordx4 v[20:23], v2, s[8:11], 0 offen\n", 49}, // lane 15 in part
      {"buffer_store_dword v1, v1, s[8:11], 0 offen\n", 1},
      {"buffer_atomic_add v1, v1, s[8:11], 0 offen\n", 1},
      {"tbuffer_load_format_x v20, v1, s[8:11], 0 format:[BUF_DATA_FORMAT_32,BUF_NUM_FORMAT_FLOAT] offen\n",
       1},
      {"s_movk_i32 m0, 0\n s_nop 0\n buffer_load_dword v1, s[8:11], 0 offen lds\n", 1},
      {"s_buffer_load_dwordx4 s[16:19], s[8:11], 240\n", 1},
      {"s_buffer_store_dword s8, s[8:11], 252\n", 1},
      {"s_buffer_load_dwordx2 s[16:17], s[8:11], 240\n", 0},
      {"s_mov_b32 s11, 0\n buffer_load_dword v20, v1, s[8:11], 0 offen\n", 64},
      {"s_mov_b32 s11, 0\n buffer_store_format_x v1, v1, s[8:11], 0 offen\n", 64},
  };
  for (const Row &row : rows) {
    const TestKernel kernel(memory_setup + records + row.source + wait_all + "s_endpgm");
    Memory memory;
    auto *input = static_cast<uint8_t *>(memory.allocate(MemoryRun::bytes));
    auto run = [&](bool checked, bool range) {
      Options options;
      if (!checked) options.checks = Checks::none();
      if (!checked) options.completion = CompletionOrder::early;
      options.checks.buffer_range = range;
      return kernel.run(memory, {reinterpret_cast<uint64_t>(input)}, {}, options);
    };
    INFO(row.source);
    for (bool checked : {true, false}) {
      const LaunchResult result = run(checked, false);
      INFO(all_text(result));
      CHECK(result.ok());
      CHECK(result.counters.buffer_lanes_out_of_range == row.lanes);
    }
    const LaunchResult result = run(true, true);
    if (row.lanes == 0)
      CHECK(result.ok());
    else
      CHECK(only(result, ReportKind::buffer_out_of_range).message.find("NUM_RECORDS is 252") !=
            std::string::npos);
  }
}

} // namespace sluice::test

//===- scalar_memory_test.cpp - scalar loads, stores and atomics ----------------------------------------===//
#include "isa/atomic_cases.h"
#include "isa/memory_fixture.h"

namespace sluice::test {

namespace {

std::string scalars(uint32_t first, uint32_t dwords) {
  std::string text = row_range(first, dwords);
  text[0] = 's';
  return text;
}
std::string sized(const std::string &name, uint32_t dwords) {
  return name + (dwords == 1 ? "" : "x" + std::to_string(dwords));
}
/// Stores s16 to s31 into the first 64 bytes of the output.
std::string show_scalars() {
  std::string text = "v_mov_b32_e32 v5, 0\n";
  for (uint32_t i = 0; i < 16; ++i)
    text += "v_mov_b32_e32 v4, s" + std::to_string(16 + i) +
            "\n global_store_dword v5, v4, s[12:13] offset:" + std::to_string(4 * i) + "\n";
  return text;
}
std::string clear_scalars() {
  std::string text;
  for (uint32_t i = 0; i < 16; ++i)
    text += "s_mov_b32 s" + std::to_string(16 + i) + ", 0x" + std::to_string(70 + i) + "\n";
  return text;
}

} // namespace

TEST_CASE("scalar loads of every size, by every form of offset", "[isa][smem]") {
  struct Row {
    const char *before, *offset;
    uint32_t at, scratch_at; // scratch loads count the register in 64 bytes
  };
  // The low bits of each part are ignored.
  const Row rows[] = {
      {"", "0x24", 0x24, 0x24},
      {"s_movk_i32 s5, 0x43\n", "s5", 0x40, 0x40 * 64},
      {"s_movk_i32 m0, 0x20\n", "m0", 0x20, 0x20 * 64},
      {"s_movk_i32 s5, 0x22\n", "s5 offset:0x12", 0x30, 0x10 + 0x20 * 64},
      {"s_add_u32 s8, s8, 0x100\n s_addc_u32 s9, s9, 0\n", "-0x80", 0x80, 0x80},
  };
  for (const Row &row : rows)
    for (const std::string name : {"s_load_dword", "s_scratch_load_dword"})
      for (uint32_t dwords : {1u, 2u, 4u, 8u, 16u}) {
        const bool scratch = name[2] == 's';
        if (scratch && dwords > 4) continue;
        const std::string line =
            sized(name, dwords) + " " + scalars(16, dwords) + ", s[8:9], " + row.offset + "\n";
        INFO(line);
        const MemoryRun run(clear_scalars() + row.before + line + wait_all + show_scalars());
        for (uint32_t i = 0; i < 16; ++i)
          CHECK(run.output[i] == (i < dwords ? run.in<uint32_t>((scratch ? row.scratch_at : row.at) + 4 * i)
                                             : (i / 10 * 16 + 0x70 + i % 10)));
      }
}

TEST_CASE("scalar buffers end at their records", "[isa][smem]") {
  // Bytes without a stride, records with one, which does not move the address; flags are ignored.
  struct Row {
    uint32_t word1, records, end;
  };
  for (const Row &row : {Row{0, 0x104, 0x104}, Row{24 << 16, 11, 264}, Row{0x80000000, 0x104, 0x104}})
    for (uint32_t dwords : {1u, 2u, 4u, 8u, 16u}) {
      const MemoryRun run("s_or_b32 s9, s9, " + std::to_string(row.word1) + "\n s_mov_b32 s10, " +
                          std::to_string(row.records) + "\n s_mov_b32 s11, 0\n s_mov_b32 s5, 0xf0\n" +
                          sized("s_buffer_load_dword", dwords) + " " + scalars(16, dwords) +
                          ", s[8:11], s5 offset:0xc\n" + wait_all +
                          "v_mov_b32_e32 v5, 0\n v_mov_b32_e32 v4, s" + std::to_string(15 + dwords) +
                          "\n global_store_dword v5, v4, s[12:13]\n v_mov_b32_e32 v4, s16\n"
                          "global_store_dword v5, v4, s[12:13] offset:4\n");
      const uint32_t last = 0xfc + 4 * (dwords - 1);
      CHECK(run.output[0] == (last < row.end ? run.in<uint32_t>(last) : 0));
      CHECK(run.output[1] == run.in<uint32_t>(0xfc));
    }
}

TEST_CASE("scalar stores", "[isa][smem]") {
  struct Row {
    std::string name, base, before, offset;
    uint32_t at;
  };
  const std::string records = "s_mov_b32 s14, 0x48\n s_mov_b32 s15, 0\n";
  const Row rows[] = {
      {"s_store_dword", "s[12:13]", "", "0x44", 0x44},
      {"s_store_dword", "s[12:13]", "s_movk_i32 m0, 0x33\n", "m0", 0x30},
      {"s_scratch_store_dword", "s[12:13]", "s_mov_b32 m0, 4\n", "m0 offset:0x10", 0x110},
      {"s_buffer_store_dword", "s[12:15]", records, "0x40", 0x40},
  };
  for (const Row &row : rows)
    for (uint32_t dwords : {1u, 2u, 4u}) {
      const std::string line =
          sized(row.name, dwords) + " " + scalars(16, dwords) + ", " + row.base + ", " + row.offset + "\n";
      INFO(line);
      const MemoryRun run("s_load_dwordx4 s[16:19], s[8:9], 0x0\n" + row.before + wait_all + line);
      for (uint32_t at = 0; at < 512; at += 4) {
        const bool written = at >= row.at && at < row.at + 4 * dwords && (row.before != records || at < 0x48);
        CHECK(run.out<uint32_t>(at) == (written ? run.in<uint32_t>(at - row.at) : 0xeeeeeeee));
      }
    }
}

TEST_CASE("scalar atomics, with and without the old value", "[isa][smem][atomics]") {
  size_t count = 0;
  for (const AtomicCase &row : integer_cases()) {
    std::string name(row.name);
    bool lds_only = false;
    for (const char *prefix : {"rsub", "mskor", "wrap", "condxchg"})
      lds_only = lds_only || name.starts_with(prefix);
    if (lds_only) continue;
    const std::string type = name.substr(name.rfind('_') + 1);
    name.resize(name.rfind('_'));
    if (name == "min" || name == "max") name = (type[0] == 'u' ? "u" : "s") + name;
    if (name == "wrxchg") name = "swap";
    if (name == "cmpst") name = "cmpswap";
    if (row.bytes == 8) name += "_x2";
    const uint32_t dwords = row.bytes / 4;
    for (const std::string form : {"s_atomic_% $, s[12:13], 0x10", "s_buffer_atomic_% $, s[12:15], 0x10"})
      for (bool returns : {false, true})
        for (uint32_t lane = 0; lane < 12; lane += 5) {
          std::string line = form;
          line.replace(line.find('%'), 1, name);
          line.replace(line.find('$'), 1, scalars(16, row.two_operands ? 2 * dwords : dwords));
          line += returns ? " glc\n" : "\n";
          INFO(line << lane);
          const std::string load = sized("s_load_dword", dwords) + " ";
          const std::string operands =
              row.two_operands
                  ? load + scalars(16, dwords) + ", s[8:9], " + std::to_string(1024 + 16 * lane) + "\n" +
                        load + scalars(16 + dwords, dwords) + ", s[8:9], " + std::to_string(16 * lane + 8) +
                        "\n"
                  : load + scalars(16, dwords) + ", s[8:9], " + std::to_string(16 * lane + 8) + "\n";
          const MemoryRun run("s_load_dwordx2 s[20:21], s[8:9], " + std::to_string(16 * lane) + "\n" +
                                  operands + "s_mov_b32 s14, 0x100\n s_mov_b32 s15, 0\n" + wait_all +
                                  "s_store_dwordx2 s[20:21], s[12:13], 0x10\n" + wait_all + line + wait_all +
                                  "s_store_dword s16, s[12:13], 0x20\n" +
                                  (dwords == 2 ? "s_store_dword s17, s[12:13], 0x24\n" : ""),
                              [](uint8_t *input) { fill_operands(input, 2); });
          const Operands o = operands_of(lane, 2);
          const uint64_t mask = row.bytes == 8 ? ~uint64_t(0) : 0xffffffff;
          CHECK(run.out<uint64_t>(0x10) == ((o.tmp & ~mask) | (row.changed(o) & mask)));
          const uint64_t kept = row.two_operands ? o.data2 : o.data;
          CHECK((run.out<uint64_t>(0x20) & mask) == ((returns ? o.tmp : kept) & mask));
          ++count;
        }
  }
  CHECK(count == 26 * 2 * 2 * 3);
}

TEST_CASE("a scalar atomic beyond the records does nothing", "[isa][smem][atomics]") {
  const MemoryRun run("s_mov_b32 s14, 0x14\n s_mov_b32 s15, 0\n s_mov_b64 s[16:17], 1\n"
                      "s_buffer_atomic_add_x2 s[16:17], s[12:15], 0x10 glc\n" +
                      wait_all + "s_store_dword s16, s[12:13], 0x20\n");
  CHECK(run.output[4] == 0xeeeeeeee);
  CHECK(run.output[8] == 0);
}

TEST_CASE("cache instructions and clocks", "[isa][smem]") {
  const MemoryRun run(
      "s_mov_b64 s[10:11], 0\n s_dcache_inv\n s_dcache_wb\n s_dcache_inv_vol\n s_dcache_wb_vol\n "
      "s_dcache_discard s[12:13], 0x0\n"
      "s_dcache_discard_x2 s[12:13], 0x0\n s_atc_probe 1, s[12:13], 0x0\n"
      "s_atc_probe_buffer 1, s[8:11], 0x0\n s_memtime s[16:17]\n" +
      wait_all + "s_nop 0\n s_memtime s[18:19]\n" + wait_all +
      "s_sub_u32 s16, s18, s16\n s_subb_u32 s17, s19, s17\n s_store_dwordx2 s[16:17], s[12:13], 0x0\n");
  CHECK(run.out<uint64_t>(0) > 0);
  CHECK(run.output[2] == 0xeeeeeeee);
}

TEST_CASE("scalar stores and atomics are checked", "[isa][smem][checks]") {
  const std::string value = "s_mov_b32 s16, 0\n";
  const std::string line = "s_atomic_add s16, s[12:13], 0x10 glc\n";
  const LaunchResult early = run_checked(value + line + "s_mov_b32 s17, s16\n" + wait_all);
  CHECK(only(early, ReportKind::pending_register).other->disassembly + "\n" == line);
  CHECK(run_checked(value + line + wait_all + "s_mov_b32 s17, s16\n").ok());
  // A store returns nothing.
  CHECK(run_checked(value + "s_store_dword s16, s[12:13], 0x10\n s_mov_b32 s17, s16\n" + wait_all).ok());

  CHECK(only(run_checked(value + "s_store_dword s16, s[12:13], 0x4000\n" + wait_all),
             ReportKind::global_out_of_bounds)
            .message.starts_with("stores 4 bytes at"));
  CHECK(only(run_checked(value + "s_store_dword s16, s[0:1], 0x0\n" + wait_all), ReportKind::global_read_only)
            .disassembly == "s_store_dword s16, s[0:1], 0x0");
  CHECK(
      only(run_checked("s_store_dword s16, s[12:13], 0x10\n" + wait_all), ReportKind::register_uninitialised)
          .message == "stored register s16 holds a value that was never written");
  CHECK(only(run_checked("s_mov_b64 s[16:17], 0\n s_atomic_add_x2 s[16:17], s[12:13], 0x14\n" + wait_all),
             ReportKind::misaligned)
            .lane == -1);
  CHECK(only(run_checked("s_load_dword s16, s[8:9], m0\n" + wait_all), ReportKind::register_uninitialised)
            .message == "address m0 holds a value that was never written");
}

} // namespace sluice::test

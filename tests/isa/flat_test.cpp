//===- flat_test.cpp - flat, global and scratch instructions --------------------------------------------===//
#include "isa/atomic_cases.h"
#include "isa/memory_fixture.h"

namespace sluice::test {

namespace {

/// v[30:31] = the scalar pair + v2 (16 * lane).
std::string pointer_to(uint32_t pair) {
  const std::string low = "s" + std::to_string(pair), high = "s" + std::to_string(pair + 1);
  return "v_mov_b32_e32 v31, " + high + "\n v_add_co_u32_e32 v30, vcc, " + low +
         ", v2\n s_nop 1\n v_addc_co_u32_e32 v31, vcc, 0, v31, vcc\n";
}
/// v[30:31] = a window of the flat address space + v2.
std::string window(const std::string &base) {
  return "s_mov_b64 s[4:5], " + base + "\n v_mov_b32_e32 v31, s5\n v_mov_b32_e32 v30, v2\n";
}

struct Form {
  const char *name;
  std::string before; // fills the place's first 16 bytes per lane with the input
  std::string prefix;
  std::string address;
  std::string after; // of the address operand, or of the data of a store
  bool lane_stride;  // lanes are 16 bytes apart
};

/// All ways to address "16 bytes of lane i", which hold bytes 16 * i to 16 * i + 15 of the input.
std::vector<Form> forms() {
  const std::string to_lds =
      "global_load_dwordx4 v[4:7], v2, s[8:9]\n" + wait_all + "ds_write_b128 v2, v[4:7]\n" + wait_all;
  const std::string to_scratch = "global_load_dwordx4 v[4:7], v2, s[8:9]\n" + wait_all +
                                 "scratch_store_dwordx4 off, v[4:7], off offset:32\n" + wait_all;
  return {
      {"scalar base", "s_sub_u32 s8, s8, 8\n s_subb_u32 s9, s9, 0\n", "global_", "v2, ", "s[8:9] offset:8",
       true},
      {"negative offset", "s_add_u32 s8, s8, 0x1000\n s_addc_u32 s9, s9, 0\n", "global_", "v2, ",
       "s[8:9] offset:-4096", true},
      {"vector address", pointer_to(8), "global_", "v[30:31], ", "off", true},
      {"flat in memory", pointer_to(8), "flat_", "v[30:31]", "", true},
      {"flat in LDS", to_lds + window("src_shared_base"), "flat_", "v[30:31]", "", true},
      {"flat in scratch",
       to_scratch + "s_mov_b64 s[4:5], src_private_base\n v_mov_b32_e32 v31, s5\n v_mov_b32_e32 v30, 32\n",
       "flat_", "v[30:31]", "", false},
      {"scratch by the offset only", to_scratch, "scratch_", "off, ", "off offset:32", false},
      {"scratch by a scalar", to_scratch + "s_mov_b32 s4, 40\n", "scratch_", "off, ", "s4 offset:-8", false},
      {"scratch by a vector", to_scratch + "v_mov_b32_e32 v30, 24\n", "scratch_", "v30, ", "off offset:8",
       false},
      {"scratch by both", to_scratch + "v_mov_b32_e32 v30, 40\n s_mov_b32 s4, 4\n", "scratch_", "v30, ",
       "s4 offset:-12", false},
  };
}

std::string line_of(const Form &form, const std::string &name, const std::string &data, bool store) {
  std::string text = form.prefix + name + " ";
  text += store
              ? form.address + (form.prefix == "flat_" ? ", " : "") + data + (form.after.empty() ? "" : ", ")
              : data + ", " + form.address;
  return text + form.after + "\n";
}

} // namespace

//===--- Loads and stores -------------------------------------------------------------------------------===//

TEST_CASE("loads of every width, by every form of address", "[isa][flat]") {
  struct Row {
    const char *name;
    uint32_t dwords;
    std::function<uint32_t(const MemoryRun &, uint32_t)> low;
  };
  auto u16 = [](const MemoryRun &r, uint32_t at) { return uint32_t(r.in<uint16_t>(at)); };
  auto u8 = [](const MemoryRun &r, uint32_t at) { return uint32_t(r.in<uint8_t>(at)); };
  auto i8 = [](const MemoryRun &r, uint32_t at) { return uint32_t(int32_t(r.in<int8_t>(at))); };
  auto dword = [](const MemoryRun &r, uint32_t at) { return r.in<uint32_t>(at); };
  const Row rows[] = {
      {"load_ubyte", 1, u8},
      {"load_sbyte", 1, i8},
      {"load_ushort", 1, u16},
      {"load_sshort", 1,
       [](const MemoryRun &r, uint32_t at) { return uint32_t(int32_t(r.in<int16_t>(at))); }},
      {"load_dword", 1, dword},
      {"load_dwordx2", 2, dword},
      {"load_dwordx3", 3, dword},
      {"load_dwordx4", 4, dword},
      {"load_ubyte_d16", 1, u8},
      {"load_ubyte_d16_hi", 1, [=](const MemoryRun &r, uint32_t at) { return u8(r, at) << 16; }},
      {"load_sbyte_d16", 1, [=](const MemoryRun &r, uint32_t at) { return i8(r, at) & 0xffff; }},
      {"load_sbyte_d16_hi", 1, [=](const MemoryRun &r, uint32_t at) { return i8(r, at) << 16; }},
      {"load_short_d16", 1, u16},
      {"load_short_d16_hi", 1, [=](const MemoryRun &r, uint32_t at) { return u16(r, at) << 16; }},
  };
  for (const Form &form : forms())
    for (const Row &row : rows) {
      const std::string line = line_of(form, row.name, row_range(20, row.dwords), false);
      INFO(form.name << ": " << line);
      // Lane 7 is inactive.
      const MemoryRun run(form.before +
                          "v_mov_b32_e32 v20, -1\n v_mov_b32_e32 v21, -1\n v_mov_b32_e32 v22, -1\n"
                          "v_mov_b32_e32 v23, -1\n s_mov_b32 exec_lo, 0xffffff7f\n" +
                          line + wait_all +
                          "s_mov_b64 exec, -1\n global_store_dwordx4 v2, v[20:23], s[12:13]\n");
      for (uint32_t lane = 0; lane < 64; ++lane)
        for (uint32_t d = 0; d < 4; ++d) {
          const uint32_t at = 16 * lane + 4 * d;
          const uint32_t loaded = d == 0 ? row.low(run, at) : run.in<uint32_t>(at);
          CHECK(run.out<uint32_t>(at) == (lane == 7 || d >= row.dwords ? ~0u : loaded));
        }
    }
}

TEST_CASE("stores of every width, by every form of address", "[isa][flat]") {
  struct Row {
    const char *name;
    uint32_t bytes;
    uint32_t from;
  };
  const Row rows[] = {{"store_byte", 1, 0},         {"store_byte_d16_hi", 1, 2}, {"store_short", 2, 0},
                      {"store_short_d16_hi", 2, 2}, {"store_dword", 4, 0},       {"store_dwordx2", 8, 0},
                      {"store_dwordx3", 12, 0},     {"store_dwordx4", 16, 0}};
  for (const Form &form : forms())
    for (const Row &row : rows) {
      const std::string line = line_of(form, row.name, row_range(20, (row.bytes + 3) / 4), true);
      INFO(form.name << ": " << line);
      const MemoryRun run("global_load_dwordx4 v[20:23], v2, s[8:9] offset:1024\n" + wait_all + form.before +
                          "s_mov_b32 exec_lo, 0xffffff7f\n" + line + wait_all + "s_mov_b64 exec, -1\n" +
                          line_of(form, "load_dwordx4", "v[24:27]", false) + wait_all +
                          "global_store_dwordx4 v2, v[24:27], s[12:13]\n");
      // Input: the place's former contents, unless the store went there.
      std::vector<uint8_t> before(MemoryRun::bytes);
      MemoryRun::fill_with_noise(before.data());
      for (uint32_t lane = 0; lane < 64; ++lane)
        for (uint32_t byte = 0; byte < 16; ++byte) {
          const bool written = byte < row.bytes && lane != 7;
          CHECK(run.out<uint8_t>(16 * lane + byte) ==
                before[written ? 1024 + 16 * lane + row.from + byte : 16 * lane + byte]);
        }
    }
}

//===--- Atomics ----------------------------------------------------------------------------------------===//

namespace {

/// "add_u64" is "add_x2", and so on; empty for those that only LDS has.
std::string memory_name(std::string name) {
  for (const char *lds_only : {"rsub", "mskor", "wrap", "condxchg", "min_f32", "max_f32", "cmpst_f"})
    if (name.starts_with(lds_only)) return "";
  const size_t type = name.rfind('_');
  const std::string kind = name.substr(type + 1);
  if (kind.starts_with("f") || kind.starts_with("bf")) return name;
  std::string base = name.substr(0, type);
  if (base == "min" || base == "max") base = (kind[0] == 'u' ? "u" : "s") + base;
  if (base == "wrxchg") base = "swap";
  if (base == "cmpst") base = "cmpswap";
  return base + (kind.ends_with("64") ? "_x2" : "");
}

struct Target {
  std::string name;
  std::string before;
  std::string prefix;
  std::string address; // with "%" for the data
  bool lds;
};

/// The word of a lane is at 16 * lane, and holds the lane's first operand.
void check_memory_atomic(const Target &target, const AtomicCase &row, const std::string &mode,
                         uint32_t round) {
  const std::string name = memory_name(row.name);
  const uint32_t dwords = row.bytes / 4;
  for (bool returns : {false, true}) {
    std::string line = target.prefix + "atomic_" + name + " " + (returns ? "$" : "") + target.address;
    const bool buffer = target.prefix == "buffer_";
    const std::string data = row_range(buffer ? 20 : 16, row.two_operands ? 2 * dwords : dwords);
    line.replace(line.find('%'), 1, data);
    if (returns) line.replace(line.find('$'), 1, buffer ? "" : row_range(20, dwords) + ", ");
    line += std::string(returns ? " sc0" : "") + "\n";
    INFO(target.name << ": " << line);
    // The new value comes before the value compared with.
    const std::string first = buffer ? "20" : "16", second = std::to_string((buffer ? 20 : 16) + dwords);
    const std::string load = dwords == 2 ? "global_load_dwordx2 " : "global_load_dword ";
    const std::string operands =
        row.two_operands ? load + row_range(buffer ? 20 : 16, dwords) + ", v2, s[8:9] offset:1024\n" + load +
                               row_range((buffer ? 20 : 16) + dwords, dwords) + ", v2, s[8:9] offset:8\n"
                         : load + row_range(buffer ? 20 : 16, dwords) + ", v2, s[8:9] offset:8\n";
    const MemoryRun run(
        "v_mov_b32_e32 v20, 0\n v_mov_b32_e32 v21, 0\n global_load_dwordx2 v[8:9], v2, s[8:9]\n" + operands +
            wait_all +
            "global_store_dwordx2 v2, v[8:9], s[12:13]\n"
            "ds_write_b64 v2, v[8:9]\n" +
            wait_all + target.before + mode + line + wait_all +
            "global_store_dwordx2 v2, v[20:21], s[12:13] offset:1024\n"
            "ds_read_b64 v[8:9], v2\n" +
            wait_all + "global_store_dwordx2 v2, v[8:9], s[12:13] offset:2048\n",
        [&](uint8_t *input) { fill_operands(input, round); });
    for (uint32_t lane = 0; lane < 64; ++lane) {
      const Operands o = operands_of(lane, round);
      INFO(lane);
      const uint64_t mask = row.bytes == 8 ? ~uint64_t(0) : 0xffffffff;
      if (returns) CHECK((run.out<uint64_t>(1024 + 16 * lane) & mask) == (o.tmp & mask));
      const uint64_t changed = (o.tmp & ~mask) | (row.changed(o) & mask);
      CHECK(run.out<uint64_t>(16 * lane) == (target.lds ? o.tmp : changed));
      CHECK(run.out<uint64_t>(2048 + 16 * lane) == (target.lds ? changed : o.tmp));
    }
  }
}

std::vector<Target> targets() {
  return {
      {"global, scalar base", "", "global_", "v2, %, s[12:13]", false},
      {"global, vector address", pointer_to(12), "global_", "v[30:31], %, off", false},
      {"flat in memory", pointer_to(12), "flat_", "v[30:31], %", false},
      {"flat in LDS", window("src_shared_base"), "flat_", "v[30:31], %", true},
      {"buffer",
       "s_sub_u32 s16, s12, 16\n s_subb_u32 s17, s13, 0\n s_movk_i32 s18, 0x1000\n s_mov_b32 s19, 0x27000\n"
       "s_mov_b32 s4, 4\n",
       "buffer_", "%, v2, s[16:19], s4 offen offset:12", false},
  };
}

} // namespace

TEST_CASE("integer atomics in memory, with and without the old value", "[isa][flat][atomics]") {
  size_t count = 0;
  for (const Target &target : targets())
    for (const AtomicCase &row : integer_cases())
      if (memory_name(row.name) != "") {
        check_memory_atomic(target, row, "", 1);
        ++count;
      }
  CHECK(count == 5 * 26);
}

TEST_CASE("float atomics in memory: f32 sums flush denormals in every MODE", "[isa][flat][atomics]") {
  // MODE keeps denormals or flushes them; for a flat atomic this matters in LDS.
  for (bool keeps : {false, true}) {
    const std::string mode =
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 8), " + std::to_string(keeps ? 0xff : 0x0f) + "\n";
    for (const Target &target : targets()) {
      const std::vector<AtomicCase> flushing = float_cases(false, false), keeping = float_cases(true, true);
      for (size_t i = 0; i < keeping.size(); ++i) {
        const std::string name = memory_name(keeping[i].name);
        // Buffers have no bf16.
        if (name == "" || (target.prefix == "buffer_" && name == "pk_add_bf16")) continue;
        const bool flushes = target.lds ? !keeps : name == "add_f32";
        for (uint32_t round : {0u, 3u})
          check_memory_atomic(target, flushes ? flushing[i] : keeping[i], mode, round);
      }
    }
  }
}

TEST_CASE("lanes that meet at one word combine one after another", "[isa][flat][atomics]") {
  const MemoryRun sum("v_mov_b32_e32 v5, 0\n v_mov_b32_e32 v6, 0\n v_mov_b32_e32 v7, 1\n"
                      "global_store_dword v5, v6, s[12:13]\n" +
                      wait_all + "global_atomic_add v8, v5, v7, s[12:13] sc0\n" + wait_all +
                      "v_lshlrev_b32_e32 v8, 2, v8\n global_store_dword v8, v0, s[12:13] offset:1024\n");
  CHECK(sum.output[0] == 64);
  std::vector<uint32_t> seen(sum.output + 256, sum.output + 320);
  std::sort(seen.begin(), seen.end());
  for (uint32_t i = 0; i < 64; ++i)
    CHECK(seen[i] == i);
}

//===--- Copies into LDS --------------------------------------------------------------------------------===//

TEST_CASE("copies into LDS by global and scratch addresses, of every width", "[isa][flat][copies]") {
  struct Row {
    const char *width;
    std::function<uint32_t(const MemoryRun &, uint32_t)> value;
  };
  const Row rows[] = {
      {"ubyte", [](const MemoryRun &r, uint32_t at) { return uint32_t(r.in<uint8_t>(at)); }},
      {"sbyte", [](const MemoryRun &r, uint32_t at) { return uint32_t(int32_t(r.in<int8_t>(at))); }},
      {"ushort", [](const MemoryRun &r, uint32_t at) { return uint32_t(r.in<uint16_t>(at)); }},
      {"sshort", [](const MemoryRun &r, uint32_t at) { return uint32_t(int32_t(r.in<int16_t>(at))); }},
      {"dword", [](const MemoryRun &r, uint32_t at) { return r.in<uint32_t>(at); }},
  };
  const std::string to_scratch = "global_load_dword v4, v2, s[8:9] offset:16\n" + wait_all +
                                 "scratch_store_dword off, v4, off offset:20\n" + wait_all +
                                 "v_mov_b32_e32 v5, 4\n";
  for (const Row &row : rows)
    for (const std::string address :
         {"global_load_lds_% v2, s[8:9] offset:16\n", "scratch_load_lds_% v5, off offset:16\n"}) {
      std::string line = address;
      line.replace(line.find('%'), 1, row.width);
      INFO(line);
      // LDS address: M0 + the instruction's offset + 4 * lane; inactive lanes write nothing.
      const MemoryRun run(to_scratch +
                          "v_mov_b32_e32 v6, 9\n ds_write_b32 v1, v6 offset:272\n s_movk_i32 m0, 0x100\n" +
                          wait_all + "s_mov_b32 exec_hi, 0xfffffff0\n" + line + wait_all +
                          "s_mov_b64 exec, -1\n ds_read_b32 v7, v1 offset:272\n" + wait_all +
                          "global_store_dword v1, v7, s[12:13]\n");
      for (uint32_t lane = 0; lane < 64; ++lane)
        CHECK(run.output[lane] == (lane >= 32 && lane < 36 ? 9 : row.value(run, 16 * lane + 16)));
    }
}

//===--- Counters and checks ----------------------------------------------------------------------------===//

TEST_CASE("flat instructions are counted twice, and wait for both", "[isa][flat][checks]") {
  const std::string address = pointer_to(8);
  const std::string use = "v_mov_b32_e32 v21, v20\n";
  for (const std::string line :
       {"flat_load_dword v20, v[30:31]\n", "flat_atomic_add v20, v[30:31], v0 sc0\n"})
    for (const std::string wait : {"s_waitcnt vmcnt(0)\n", "s_waitcnt lgkmcnt(0)\n"}) {
      INFO(line << wait);
      const LaunchResult result = run_checked(address + line + wait + use + wait_all);
      CHECK(only(result, ReportKind::pending_register).other->disassembly + "\n" == line);
      CHECK(run_checked(address + line + wait_all + use).ok());
    }
  // Only vmcnt counts global ones, including returning atomics.
  CHECK(run_checked("global_atomic_add v20, v1, v0, s[8:9] sc0\n s_waitcnt vmcnt(0)\n" + use).ok());
  const LaunchResult early =
      run_checked("global_atomic_add v20, v1, v0, s[8:9] sc0\n s_waitcnt lgkmcnt(0)\n" + use + wait_all);
  CHECK(only(early, ReportKind::pending_register).disassembly.starts_with("v_mov_b32"));
}

TEST_CASE("flat accesses of LDS race like those of DS instructions", "[isa][flat][checks]") {
  const LaunchShape two{.waves = 2, .lds_bytes = 8192};
  const std::string head = window("src_shared_base") +
                           "v_readfirstlane_b32 s6, v0\n v_and_b32_e32 v30, 0xff, v1\n v_mov_b32_e32 v4, 1\n"
                           "s_cmp_eq_u32 s6, 0\n s_cbranch_scc0 first\n ds_write_b32 v1, v4\n" +
                           wait_all + "first:\n s_barrier\n";
  // Both waves combine.
  const std::string add = "flat_atomic_add v[30:31], v4\n";
  CHECK(run_checked(head + add + wait_all, two).ok());
  CHECK(only(run_checked(head + "flat_store_dword v[30:31], v1\n" + wait_all, two), ReportKind::lds_race)
            .message.find("wrote") != std::string::npos);
  // Both store the same.
  only(run_checked(head + "flat_store_dword v[30:31], v4\n" + wait_all, two), ReportKind::lds_equal_stores);
  // A flat read and a store of LDS take different paths: a barrier between their issues does not order them.
  CHECK(
      run_checked(head +
                      "s_cmp_eq_u32 s6, 0\n s_cbranch_scc0 other\n flat_load_dword v5, v[30:31]\n s_barrier\n"
                      "s_branch done\n other:\n s_barrier\n ds_write_b32 v30, v1\n done:\n" +
                      wait_all,
                  two)
          .failure() != nullptr);
  // Nor between a read of LDS and a flat store, even if it stores the same value as the reading wave.
  const std::string read_and_pass = "s_cmp_eq_u32 s6, 0\n s_cbranch_scc0 other\n ds_read_b32 v5, v30\n";
  const std::string other = "s_branch done\n other:\n s_barrier\n s_nop 7\n flat_store_dword v[30:31], v30\n";
  for (const std::string again : {"", "ds_write_b32 v30, v30\n"}) {
    const LaunchResult overtaken =
        run_checked(head + read_and_pass + "s_barrier\n" + again + other + "done:\n" + wait_all, two);
    INFO(all_text(overtaken));
    REQUIRE(overtaken.failure() != nullptr);
    CHECK(only(overtaken, ReportKind::lds_race).disassembly == "flat_store_dword v[30:31], v30");
  }
  CHECK(
      run_checked(head + read_and_pass + wait_all + "s_barrier\n" + other + "done:\n" + wait_all, two).ok());
  // Wave 0 combines, and does not wait before the barrier after which wave 1 reads.
  auto pass_on = [&](const std::string &line, const std::string &wait) {
    return head + "s_cmp_eq_u32 s6, 0\n s_cbranch_scc0 other\n" + line + wait +
           "s_barrier\n s_branch done\n other:\n s_barrier\n ds_read_b32 v5, v30\n" + wait_all +
           "v_cmpx_eq_u32_e32 vcc, v5, v5\n done:\n" + wait_all;
  };
  for (const std::string &line : {std::string("flat_store_dword v[30:31], v4\n"), add,
                                  std::string("flat_atomic_add v9, v[30:31], v4 sc0\n")}) {
    INFO(line);
    CHECK(only(run_checked(pass_on(line, ""), two), ReportKind::lds_race).other->disassembly + "\n" == line);
    CHECK(run_checked(pass_on(line, wait_all), two).ok());
  }
  // A wave's own flat access in flight and a copy are in no order.
  const std::string copy = "s_mov_b32 m0, 0\n s_nop 0\n global_load_lds_dword v1, s[8:9]\n" + wait_all;
  const std::string one = window("src_shared_base") + "v_mov_b32_e32 v30, v1\n v_mov_b32_e32 v4, 1\n"
                                                      "flat_store_dword v[30:31], v4\n";
  CHECK(only(run_checked(one + copy), ReportKind::lds_race).message.find("writes") != std::string::npos);
  CHECK(run_checked(one + wait_all + copy).ok());
}

TEST_CASE("atomics in memory that are not aligned are reported", "[isa][flat][checks]") {
  for (const std::string line :
       {"global_atomic_add v4, v0, s[12:13]", "global_atomic_add_x2 v5, v[2:3], s[12:13]"}) {
    const LaunchResult result = run_checked(
        "v_mov_b32_e32 v4, 2\n v_mov_b32_e32 v5, 4\n s_mov_b64 exec, 1\n" + line + "\n" + wait_all);
    INFO(line);
    CHECK(only(result, ReportKind::misaligned).disassembly == line);
  }
}

TEST_CASE("the value that an atomic compares with must have been written", "[isa][flat][checks]") {
  for (const std::string line : {"global_atomic_cmpswap v1, v[40:41], s[12:13]",
                                 "buffer_atomic_cmpswap v[40:41], v1, s[12:15], 0 offen"}) {
    INFO(line);
    const LaunchResult result = run_checked(
        "v_mov_b32_e32 v40, 0\n s_mov_b32 s14, 0x1000\n s_mov_b32 s15, 0x27000\n" + line + "\n" + wait_all);
    CHECK(only(result, ReportKind::register_uninitialised).message ==
          "stored register v41 holds a value that was never written");
  }
}

TEST_CASE("an access outside its window is reported", "[isa][flat][checks]") {
  // LDS has 8 KiB here, a lane 256 bytes of scratch.
  const std::string lds = window("src_shared_base") + "v_mov_b32_e32 v30, 0x1ffe\n";
  CHECK(only(run_checked(lds + "flat_store_dword v[30:31], v0\n" + wait_all), ReportKind::lds_out_of_bounds)
            .address == 0x1ffe);
  const std::string scratch = window("src_private_base") + "v_mov_b32_e32 v30, 0xfe\n";
  CHECK(only(run_checked(scratch + "flat_load_dword v20, v[30:31]\n" + wait_all),
             ReportKind::scratch_out_of_bounds)
            .address == 0xfe);
  // Global instructions do not reach the windows, and an address outside every block does not read as zero.
  const std::string zero = "v_mov_b32_e32 v30, 0\n v_mov_b32_e32 v31, 0\n";
  for (const std::string &place : {window("src_shared_base"), zero})
    CHECK(only(run_checked(place + "global_load_dword v20, v[30:31], off\n" + wait_all),
               ReportKind::global_out_of_bounds)
              .lane == 0);
}

} // namespace sluice::test

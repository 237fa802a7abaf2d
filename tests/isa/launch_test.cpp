//===- launch_test.cpp - the initial state of a wave, and launches that are refused ---------------------===//
//
// Layouts follow AMDGPUUsage ("Kernel Descriptor", "Initial Kernel Execution State") and the HSA packet
// format.
//
//===----------------------------------------------------------------------------------------------------===//
#include <catch2/catch.hpp>

#include <functional>

#include "emulator/isa/disassembler.h"
#include "emulator/isa/wave.h"
#include "isa/kernel_fixture.h"

namespace sluice::test {

namespace {

std::vector<std::byte> launch_elf() {
  return read_file(SLUICE_CODE_OBJECT_LAUNCH);
}

const emulator::Program &kernels() {
  static const emulator::Program program(launch_elf());
  return program;
}

template <class Arguments>
LaunchResult run(const emulator::Program &program, std::string_view kernel, std::array<uint32_t, 3> grid,
                 std::array<uint32_t, 3> block, const Arguments &arguments, const Memory &memory,
                 const Options &options = {}) {
  return emulator::launch(program, kernel, grid, block, 0, std::as_bytes(std::span(&arguments, 1)), memory,
                          options);
}

template <class T> std::span<T> device(Memory &memory, size_t count) {
  T *data = static_cast<T *>(memory.allocate(count * sizeof(T)));
  REQUIRE(data != nullptr);
  return {data, count};
}

uint64_t pair(std::span<const uint32_t> registers, size_t first) {
  return registers[first] | uint64_t(registers[first + 1]) << 32;
}

/// launch.s with some bytes of a kernel's descriptor changed.
std::vector<std::byte> with_descriptor(std::string_view kernel,
                                       const std::function<void(std::byte *)> &change) {
  std::vector<std::byte> elf = launch_elf();
  const package::CodeObject object = package::CodeObject::parse(elf);
  const uint64_t address = object.find_kernel(kernel)->descriptor_address;
  for (const package::Segment &segment : object.segments())
    if (address >= segment.address && address < segment.address + segment.file.size())
      change(elf.data() + (segment.file.data() - elf.data()) + (address - segment.address));
  return elf;
}

void set_bits(std::byte *descriptor, size_t at, uint32_t bits) {
  uint32_t value;
  std::memcpy(&value, descriptor + at, 4);
  value |= bits;
  std::memcpy(descriptor + at, &value, 4);
}

struct Pointer {
  uint32_t *out;
};

} // namespace

TEST_CASE("user and system SGPRs come in the order of the descriptor's bits", "[isa][launch]") {
  Memory memory;
  const std::span<uint32_t> out = device<uint32_t>(memory, 16 * 64);
  const struct {
    uint32_t *out;
    uint32_t words[8];
  } arguments{out.data(), {20, 30, 40, 50, 60, 70, 80, 90}};
  const LaunchResult result = run(kernels(), "every_register", {2, 2, 2}, {128, 1, 1}, arguments, memory);
  INFO(all_text(result));
  REQUIRE(result.ok());
  const uint64_t descriptor =
      reinterpret_cast<uint64_t>(kernels().image().data()) + kernels().kernel("every_register")->descriptor;
  for (uint32_t wave = 0; wave < 16; ++wave) {
    const std::span<const uint32_t> s = out.subspan(wave * 64, 64);
    CHECK(pair(s, 0) % 64 == 0);     // packet
    CHECK(pair(s, 6) == 0);          // dispatch id
    CHECK(s[8] == 128);              // scratch of a lane
    for (uint32_t i = 0; i < 7; ++i) // the arguments from dword 3 on: words[1] and on
      CHECK(s[9 + i] == arguments.words[1 + i]);
    CHECK(s[16] == wave / 2 % 2);
    CHECK(s[17] == wave / 4 % 2);
    CHECK(s[18] == wave / 8);
    CHECK(s[19] ==
          (2u | (wave % 2 == 0 ? 1u << 31 : 0))); // waves of the workgroup; bit 31: the first of them

    const std::span<const uint32_t> packet = s.subspan(20, 16);
    CHECK(packet[0] == (2u | 3u << 16)); // kernel dispatch, three dimensions
    CHECK(packet[1] == (128u | 1u << 16));
    CHECK(packet[2] == 1);
    CHECK(packet[3] == 256);
    CHECK(packet[4] == 2);
    CHECK(packet[5] == 2);
    CHECK(packet[6] == 128); // scratch
    CHECK(packet[7] == 512); // LDS
    CHECK(pair(packet, 8) == descriptor);
    CHECK(pair(packet, 10) == pair(s, 4)); // arguments
    CHECK(s[36] == uint32_t(emulator::shared_aperture >> 32));
    CHECK(s[37] == uint32_t(emulator::private_aperture >> 32));
  }
}

TEST_CASE("without preloading, a kernel enters at its compatibility prologue", "[isa][launch]") {
  const TestKernel kernel("s_endpgm");
  Memory memory;
  Options options;
  options.preload_kernargs = false;
  const LaunchResult result = kernel.run(memory, {}, {.kernel = "preloaded"}, options);
  const Report report = only(result, ReportKind::trap);
  CHECK(report.pc == kernel.program.kernel("preloaded")->entry);
}

TEST_CASE("MODE, work-item ids and work-group ids follow the descriptor", "[isa][launch]") {
  struct Case {
    const char *kernel;
    uint32_t mode; // round 32 [1:0], 16/64 [3:2], denormals 32 [5:4], 16/64 [7:6], DX10 8, IEEE 9, OVFL 23
    uint32_t axes; // the register of v0
  };
  for (const Case &c : {Case{"mode_defaults", 3u << 6 | 1u << 8 | 1u << 9, 1},
                        Case{"mode_rounding", 1u | 2u << 2 | 3u << 4 | 3u << 6 | 1u << 9, 2},
                        Case{"mode_denormals", 3u << 2 | 2u << 4 | 1u << 6 | 1u << 8 | 1u << 23, 3}}) {
    Memory memory;
    const std::span<uint32_t> out = device<uint32_t>(memory, 32);
    // One wave, of 4 x 4 x 4 work-items, all of which store at their x.
    out[0] = ~0u;
    const LaunchResult result = run(kernels(), c.kernel, {1, 2, 3}, {4, 4, 4}, Pointer{out.data()}, memory);
    INFO(c.kernel << all_text(result));
    REQUIRE(result.failure() == nullptr); // the work-items of one x store different ids to one place
    CHECK(out[0] == c.mode);
    for (uint32_t x = 0; x < 4; ++x)
      CHECK(out[16 + x] == (x | (c.axes > 1 ? 3u << 10 : 0) | (c.axes > 2 ? 3u << 20 : 0)));
  }
}

TEST_CASE("a wave has scratch only when its descriptor enables it", "[isa][launch]") {
  Memory memory;
  const auto launch = [&](std::string_view kernel) {
    return emulator::launch(kernels(), kernel, {1, 1, 1}, {64, 1, 1}, 0, {}, memory);
  };
  CHECK(launch("scratch_on").ok());
  const LaunchResult off = launch("scratch_off");
  CHECK(only(off, ReportKind::scratch_out_of_bounds).disassembly.starts_with("scratch_store_dword"));
}

TEST_CASE("sizes come from the metadata if the descriptor lacks them", "[isa][launch]") {
  const emulator::KernelInfo *sizes = kernels().kernel("sizes");
  REQUIRE(sizes);
  CHECK(sizes->kernarg_bytes == 8);
  CHECK(sizes->lds_bytes == 2048);
  CHECK(sizes->scratch_bytes == 16);
  CHECK(sizes->max_workgroup_threads == 1024); // declared as 0
  Memory memory;
  const std::span<uint32_t> out = device<uint32_t>(memory, 1);
  const LaunchResult result = run(kernels(), "sizes", {1, 1, 1}, {1024, 1, 1}, Pointer{out.data()}, memory);
  INFO(all_text(result));
  // Scratch is undefined before it is written.
  CHECK(std::ranges::any_of(result.reports,
                            [](const Report &r) { return r.kind == ReportKind::register_uninitialised; }));
  CHECK(out[0] == 0xffffffff);
  // The metadata do not describe the arguments: the caller passes all of them.
  CHECK_THROWS_WITH(emulator::launch(kernels(), "sizes", {1, 1, 1}, {64, 1, 1}, 0, {}, memory),
                    Catch::Contains("0 bytes of kernel arguments, but the kernel takes 8"));
}

TEST_CASE("hidden arguments give the addresses of the queue and the windows", "[isa][launch]") {
  Memory memory;
  const std::span<uint32_t> out = device<uint32_t>(memory, 5);
  const LaunchResult result = run(kernels(), "hidden", {1, 1, 1}, {64, 1, 1}, Pointer{out.data()}, memory);
  INFO(all_text(result));
  REQUIRE(result.ok());
  const uint32_t shared = uint32_t(emulator::shared_aperture >> 32);
  const uint32_t scratch = uint32_t(emulator::private_aperture >> 32);
  CHECK(std::vector(out.begin(), out.end()) == std::vector<uint32_t>{shared, scratch, shared, scratch, 3});
}

TEST_CASE("accum_offset bounds the ArchVGPRs of kernels that have AccVGPRs", "[isa][launch]") {
  // `small` has 24 registers, of which a0 is number 16.
  const Memory memory;
  const TestKernel without("v_mov_b32_e32 v23, 0\n s_endpgm");
  CHECK(without.run(memory, {}, {.kernel = "small"}).ok());
  const TestKernel beyond("v_mov_b32_e32 v24, 0\n s_endpgm");
  CHECK_THAT(only(beyond.run(memory, {}, {.kernel = "small"}), ReportKind::register_out_of_range).message,
             Catch::Contains("uses v24") && Catch::Contains("grants 24"));
  const TestKernel both("v_mov_b32_e32 v16, 0\n v_accvgpr_write_b32 a7, 0\n s_endpgm");
  CHECK_THAT(only(both.run(memory, {}, {.kernel = "small"}), ReportKind::register_out_of_range).message,
             Catch::Contains("uses v16") && Catch::Contains("grants 16"));
}

TEST_CASE("a descriptor that asks for more than the machine has is refused", "[isa][launch]") {
  struct Case {
    size_t at;
    uint32_t bits;
    const char *message;
  };
  const Memory memory;
  for (const Case &c :
       {Case{56, 1u << 0, "scratch in user SGPRs"}, Case{56, 1u << 5, "scratch in user SGPRs"},
        Case{56, 1u << 10, "waves of 32 lanes"}, Case{56, 1u << 1, "enables 2 user SGPRs"},
        Case{52, 1u << 13, "exceptions"}, Case{52, 1u << 14, "exceptions"}, Case{52, 1u << 24, "exceptions"},
        Case{52, 1u << 30, "exceptions"}}) {
    const emulator::Program program(
        with_descriptor("scratch_on", [&](std::byte *descriptor) { set_bits(descriptor, c.at, c.bits); }));
    CHECK_THROWS_WITH(emulator::launch(program, "scratch_on", {1, 1, 1}, {64, 1, 1}, 0, {}, memory),
                      Catch::Contains("kernel \"scratch_on\"") && Catch::Contains(c.message));
  }
  // Waves on different compute units share no LDS.
  const emulator::Program split(
      with_descriptor("scratch_on", [](std::byte *descriptor) { set_bits(descriptor, 44, 1u << 16); }));
  CHECK(emulator::launch(split, "scratch_on", {1, 1, 1}, {64, 1, 1}, 0, {}, memory).ok());
  CHECK_THROWS_WITH(emulator::launch(split, "scratch_on", {1, 1, 1}, {64, 1, 1}, 4, {}, memory),
                    Catch::Contains("TG_SPLIT"));
  const emulator::Program deep(
      with_descriptor("scratch_on", [](std::byte *descriptor) { set_bits(descriptor, 4, 1u << 20); }));
  CHECK_THROWS_WITH(emulator::launch(deep, "scratch_on", {1, 1, 1}, {64, 1, 1}, 0, {}, memory),
                    Catch::Contains("bytes of scratch"));
  const emulator::Program many(
      with_descriptor("scratch_on", [](std::byte *descriptor) { set_bits(descriptor, 52, 31u << 1); }));
  CHECK_THROWS_WITH(emulator::launch(many, "scratch_on", {1, 1, 1}, {64, 1, 1}, 0, {}, memory),
                    Catch::Contains("counts 31; there are at most 16"));
}

TEST_CASE("grids, blocks and arguments out of range are refused", "[isa][launch]") {
  const Memory memory;
  const std::array<std::byte, 64> arguments{};
  auto launch = [&](std::string_view kernel, std::array<uint32_t, 3> grid, std::array<uint32_t, 3> block,
                    uint32_t lds, size_t bytes) {
    return emulator::launch(kernels(), kernel, grid, block, lds, std::span(arguments).first(bytes), memory);
  };
  CHECK_THROWS_WITH(launch("sizes", {1u << 26, 1, 1}, {64, 1, 1}, 0, 8),
                    Catch::Contains("4294967296 work-items in x"));
  CHECK_THROWS_WITH(launch("sizes", {1u << 31, 1u << 31, 4}, {1, 1, 1}, 0, 8),
                    Catch::Contains("2^64 workgroups"));
  CHECK_THROWS_WITH(launch("sizes", {1, 1, 1}, {1u << 31, 2, 1}, 0, 8), Catch::Contains("work-items"));
  CHECK_THROWS_WITH(launch("sizes", {1, 1, 1}, {64, 1, 1}, 65536 - 2048 + 1, 8),
                    Catch::Contains("bytes of LDS"));
  CHECK_THROWS_WITH(launch("sizes", {1, 1, 1}, {64, 1, 1}, ~0u, 8), Catch::Contains("bytes of LDS"));
  CHECK_THROWS_WITH(launch("sizes", {1, 1, 1}, {64, 1, 1}, 0, 17),
                    Catch::Contains("17 bytes of kernel arguments, but the kernel has only 8"));
  CHECK_THROWS_WITH(launch("nowhere", {1, 1, 1}, {64, 1, 1}, 0, 8), Catch::Contains("no kernel \"nowhere\""));
}

TEST_CASE("an instruction whose end is missing is not decoded", "[isa][launch]") {
  emulator::Disassembler disassembler;
  const std::vector<uint32_t> code = assemble("v_mul_f32_e32 v1, 0x12345678, v1\n ds_read_b32 v1, v2");
  const std::span bytes = std::as_bytes(std::span(code));
  CHECK(disassembler.decode(bytes, 0)->bytes == 8);
  CHECK_FALSE(disassembler.decode(bytes.first(4), 0));
  CHECK(disassembler.decode(bytes.subspan(8), 0)->bytes == 8);
  CHECK_FALSE(disassembler.decode(bytes.subspan(8, 4), 0));
  // Nor what LLVM does not accept: reading a lane into a literal, v_madmk_f16 and v_madak_f16 with 255.
  const uint32_t beyond[][2] = {
      {0xd28900ff, 0x00000101}, {0xd14200ff, 0x00000101}, {0x49400101, 255}, {0x4b400101, 255}};
  for (const uint32_t (&words)[2] : beyond)
    CHECK_FALSE(disassembler.decode(std::as_bytes(std::span(words)), 0));
}

TEST_CASE("a program cut short or with bytes changed is refused or decoded", "[isa][launch]") {
  const std::vector<std::byte> whole = launch_elf();
  for (size_t size = 0; size < whole.size(); size += size < 512 ? 1 : 61)
    CHECK_THROWS_AS(emulator::Program(std::span(whole).first(size)), package::CodeObjectError);
  // The error says if something is not code, or not an object for this chip.
  std::vector<std::byte> other = whole;
  other[48] = std::byte{0x3f}; // gfx90a
  CHECK_THROWS_WITH(emulator::Program(other), Catch::Contains("not gfx942"));
}

} // namespace sluice::test

//===- buffer_format_test.cpp - buffer instructions that convert ----------------------------------------===//
//
// The model reads a format's widths from its name in the manual (highest bits first), takes components out
// bit by bit, and finds the value that a store writes by searching for the nearest one that a component can
// hold.
//
//===----------------------------------------------------------------------------------------------------===//
#include <cmath>
#include <map>

#include "isa/atomic_model.h"
#include "isa/memory_fixture.h"

namespace sluice::test {

namespace {

constexpr const char *data_formats[] = {nullptr,   "8",        "16",          "8_8",        "32",
                                        "16_16",   "10_11_11", "11_11_10",    "10_10_10_2", "2_10_10_10",
                                        "8_8_8_8", "32_32",    "16_16_16_16", "32_32_32",   "32_32_32_32"};
enum Number { unorm, snorm, uscaled, sscaled, uint, sint, reserved, floating };
constexpr Number numbers[] = {unorm, snorm, uscaled, sscaled, uint, sint, floating};

std::vector<uint32_t> widths_of(uint32_t data_format) {
  std::vector<uint32_t> widths;
  for (const char *at = data_formats[data_format]; *at != 0;) {
    widths.insert(widths.begin(), uint32_t(std::atoi(at)));
    while (*at != 0 && *at != '_')
      ++at;
    if (*at == '_') ++at;
  }
  return widths;
}
uint32_t bytes_of(uint32_t data_format) {
  uint32_t bits = 0;
  for (uint32_t width : widths_of(data_format))
    bits += width;
  return bits / 8;
}
bool exists(uint32_t data_format, Number number) {
  for (uint32_t width : widths_of(data_format))
    if (number == floating && (width == 8 || width == 2)) return false;
  return true;
}

uint32_t component_bits(const uint8_t *element, const std::vector<uint32_t> &widths, uint32_t component) {
  uint32_t first = 0;
  for (uint32_t i = 0; i < component; ++i)
    first += widths[i];
  uint32_t bits = 0;
  for (uint32_t i = 0; i < widths[component]; ++i)
    bits |= uint32_t(element[(first + i) / 8] >> (first + i) % 8 & 1) << i;
  return bits;
}

/// The number that a component's bits represent.
double number_of(uint32_t bits, uint32_t width, Number number) {
  const double all = std::ldexp(1, int(width)) - 1, half = std::ldexp(1, int(width) - 1);
  const double with_sign = bits >= half ? bits - 2 * half : bits;
  switch (number) {
  case unorm:
    return bits / all;
  case snorm:
    return std::max(with_sign / (half - 1), -1.0);
  case uscaled:
  case uint:
    return bits;
  case floating: {
    if (width == 16) return model::small_value(uint16_t(bits), 10);
    const int mantissa = int(width) - 5;
    const int exponent = int(bits >> mantissa);
    const double fraction = bits & ((1u << mantissa) - 1);
    if (exponent == 31) return fraction != 0 ? NAN : INFINITY;
    return exponent == 0 ? std::ldexp(fraction, -14 - mantissa)
                         : std::ldexp(fraction + (1 << mantissa), exponent - 15 - mantissa);
  }
  default:
    return with_sign;
  }
}

/// All numbers that a width can hold, and the minimum and maximum of them.
struct Values {
  double low = INFINITY, high = -INFINITY;
  std::vector<double> all;
};
const Values &values_of(uint32_t width, Number number) {
  static std::map<std::pair<uint32_t, Number>, Values> known;
  Values &values = known[{width, number}];
  for (uint32_t bits = uint32_t(values.all.size()); bits < 1u << width; ++bits) {
    const double value = values.all.emplace_back(number_of(bits, width, number));
    if (!std::isfinite(value)) continue;
    values.low = std::min(values.low, value);
    values.high = std::max(values.high, value);
  }
  return values;
}

/// The bits that a register gets; `half`: a D16 instruction.
uint32_t expected_register(uint32_t bits, uint32_t width, Number number, bool half) {
  if (width == 32 && !half) return bits;
  if (number == uint) return width == 32 ? std::min(bits, 0xffffu) : bits;
  if (number == sint) {
    const int32_t value =
        width == 32 ? std::clamp(int32_t(bits), -32768, 32767) : int32_t(number_of(bits, width, sint));
    return uint32_t(value) & (half ? 0xffff : ~0u);
  }
  const float value = width == 32 ? std::bit_cast<float>(bits) : float(number_of(bits, width, number));
  if (!half) return std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return 0x7e00;
  if (std::fabs(value) >= 65520) return value < 0 ? 0xfc00 : 0x7c00;
  return model::nearest_small(value, 10);
}
/// Bits are the same, or both are NaN.
bool same(uint32_t a, uint32_t b, bool half, bool is_float) {
  if (a == b) return true;
  if (!is_float) return false;
  return half ? (a & 0x7fff) > 0x7c00 && (b & 0x7fff) > 0x7c00
              : std::isnan(std::bit_cast<float>(a)) && std::isnan(std::bit_cast<float>(b));
}

std::string resource(uint32_t flags, uint32_t records = 8192) {
  return "s_mov_b32 s10, " + std::to_string(records) + "\n s_mov_b32 s11, " + std::to_string(flags) + "\n";
}
std::string format_name(uint32_t data_format, Number number) {
  constexpr const char *names[] = {"UNORM", "SNORM", "USCALED",  "SSCALED",
                                   "UINT",  "SINT",  "RESERVED", "FLOAT"};
  return std::string("format:[BUF_DATA_FORMAT_") + data_formats[data_format] + ",BUF_NUM_FORMAT_" +
         names[number] + "]";
}

} // namespace

TEST_CASE("typed buffer loads convert every format", "[isa][formats]") {
  for (uint32_t format = 1; format < 15; ++format)
    for (Number number : numbers) {
      if (!exists(format, number)) continue;
      const std::vector<uint32_t> widths = widths_of(format);
      for (bool half : {false, true}) {
        const std::string line = std::string("tbuffer_load_format_") +
                                 (half ? "d16_xyzw v[20:21]" : "xyzw v[20:23]") + ", v2, s[8:11], 0 " +
                                 format_name(format, number) + " offen\n";
        INFO(line);
        const MemoryRun run(resource(0x00027000) + "v_mov_b32_e32 v22, 0\n v_mov_b32_e32 v23, 0\n" + line +
                            wait_all + "global_store_dwordx4 v2, v[20:23], s[12:13]\n");
        for (uint32_t lane = 0; lane < 64; ++lane)
          for (uint32_t i = 0; i < 4; ++i) {
            // A component that the format does not have is 0.
            const uint32_t bits = i < widths.size() ? component_bits(run.input + 16 * lane, widths, i) : 0;
            const uint32_t expected =
                i < widths.size() ? expected_register(bits, widths[i], number, half) : 0;
            const uint32_t got =
                half ? run.out<uint16_t>(16 * lane + 2 * i) : run.out<uint32_t>(16 * lane + 4 * i);
            if (!same(got, expected, half, number != uint && number != sint)) {
              INFO(lane << " component " << i << " of bits " << bits);
              CHECK(got == expected);
            }
          }
      }
    }
}

TEST_CASE("typed buffer stores write the nearest value of every format", "[isa][formats]") {
  // Values of registers: floats in and out of range for normalised ones, and large ones.
  auto fill = [](uint8_t *input) {
    const float floats[] = {0,     -0.0f,  0.25f,   0.5f,    1,          -1,          0.7f,    -0.3f,
                            2,     -3.5f,  1.5e-5f, 1e-7f,   100.6f,     -57.4f,      1000.5f, 60000,
                            64800, -70000, 1e30f,   NAN,     INFINITY,   -INFINITY,   0.001f,  0.99999f,
                            300,   511.5f, 127.5f,  -128.9f, 0.0019569f, 3.0f / 1023, 6e-5f,   33000};
    std::mt19937 random(3);
    for (uint32_t i = 0; i < 1024; ++i) {
      const float value = floats[random() % std::size(floats)];
      std::memcpy(input + 4 * i, &value, 4);
    }
    for (uint32_t i = 1024; i < 2048; ++i) { // integers of all sizes
      const uint32_t value = uint32_t(int32_t(random()) >> random() % 32);
      std::memcpy(input + 4 * i, &value, 4);
    }
  };
  for (uint32_t format = 1; format < 15; ++format)
    for (Number number : numbers) {
      if (!exists(format, number)) continue;
      const std::vector<uint32_t> widths = widths_of(format);
      const bool integer = number == uint || number == sint;
      const std::string line =
          "tbuffer_store_format_xyzw v[20:23], v2, s[12:15], 0 " + format_name(format, number) + " offen\n";
      INFO(line);
      const MemoryRun run("s_movk_i32 s14, 0x1000\n s_mov_b32 s15, 0x27000\n s_add_u32 s8, s8, " +
                              std::to_string(integer ? 4096 : 0) +
                              "\n s_addc_u32 s9, s9, 0\n global_load_dwordx4 v[20:23], v2, s[8:9]\n" +
                              wait_all + line,
                          fill);
      for (uint32_t lane = 0; lane < 64; ++lane) {
        const uint8_t *element = reinterpret_cast<const uint8_t *>(run.output) + 16 * lane;
        for (uint32_t byte = bytes_of(format); byte < 16; ++byte)
          CHECK(element[byte] == MemoryRun::untouched);
        for (uint32_t i = 0; i < widths.size(); ++i) {
          const uint32_t width = widths[i];
          const uint32_t got = component_bits(element, widths, i);
          const uint32_t source = run.in<uint32_t>((integer ? 4096 : 0) + 16 * lane + 4 * i);
          INFO(lane << " component " << i << " from " << source);
          if (width == 32) {
            CHECK(got == source);
            continue;
          }
          double value = number == sint   ? double(int32_t(source))
                         : number == uint ? double(source)
                                          : double(std::bit_cast<float>(source));
          if (number == floating && std::isnan(value)) {
            CHECK(std::isnan(number_of(got, width, number)));
            continue;
          }
          if (std::isnan(value)) value = 0;
          if (number == uscaled || number == sscaled) value = std::trunc(value);
          // Numbers at least half a step beyond the largest number become infinity.
          const auto &[low, high, all] = values_of(width, number);
          if (number == floating) {
            const double step =
                high - number_of((width == 16 ? 0x7bffu : (31u << (width - 5)) - 1) - 1, width, number);
            if (value >= high + step / 2) {
              CHECK(number_of(got, width, number) == INFINITY);
              continue;
            }
            if (value <= low - step / 2 && low < 0) {
              CHECK(number_of(got, width, number) == -INFINITY);
              continue;
            }
          }
          value = std::clamp(value, low, high);
          // No other number is nearer; among two equally near ones, the one with an even step is taken. Some
          // lanes are enough for the many 16-bit values.
          if (width == 16 && lane % 8 != 0) continue;
          const double distance = std::fabs(all[got] - value);
          for (uint32_t bits = 0; bits < 1u << width; ++bits) {
            const double other = std::fabs(all[bits] - value);
            if (other < distance ||
                (other == distance && got % 2 == 1 && bits % 2 == 0 && all[bits] != all[got])) {
              INFO("got " << got << ", nearer is " << bits);
              CHECK(other >= distance);
              break;
            }
          }
        }
      }
    }
}

TEST_CASE("D16 stores widen their halves", "[isa][formats]") {
  struct Row {
    const char *line;
    uint32_t bytes;
    std::function<uint32_t(const MemoryRun &, uint32_t lane, uint32_t component)> expected;
    uint32_t width;
  };
  auto half = [](const MemoryRun &r, uint32_t lane, uint32_t i) {
    return uint32_t(r.in<uint16_t>(16 * lane + 2 * i));
  };
  const Row rows[] = {
      {"tbuffer_store_format_d16_xyz v[20:21], v2, s[12:15], 0 "
       "format:[BUF_DATA_FORMAT_32_32_32,BUF_NUM_FORMAT_UINT] "
       "offen",
       12, half, 4},
      {"tbuffer_store_format_d16_xy v20, v2, s[12:15], 0 format:[BUF_DATA_FORMAT_32_32,BUF_NUM_FORMAT_SINT] "
       "offen",
       8,
       [=](const MemoryRun &r, uint32_t lane, uint32_t i) {
         return uint32_t(int32_t(int16_t(half(r, lane, i))));
       },
       4},
      {"tbuffer_store_format_d16_xyzw v[20:21], v2, s[12:15], 0 "
       "format:[BUF_DATA_FORMAT_32_32_32_32,BUF_NUM_FORMAT_FLOAT] offen",
       16,
       [=](const MemoryRun &r, uint32_t lane, uint32_t i) {
         return std::bit_cast<uint32_t>(float(model::small_value(uint16_t(half(r, lane, i)), 10)));
       },
       4},
      {"buffer_store_format_d16_hi_x v20, v2, s[12:15], 0 offen", 2,
       [=](const MemoryRun &r, uint32_t lane, uint32_t) { return half(r, lane, 1); }, 2},
  };
  for (const Row &row : rows) {
    INFO(row.line);
    // The resource, for the last: 16, uint, in order.
    const MemoryRun run("s_movk_i32 s14, 0x1000\n s_mov_b32 s15, " +
                        std::to_string(2u << 15 | uint32_t(uint) << 12 | 07654) +
                        "\n global_load_dwordx2 v[20:21], v2, s[8:9]\n" + wait_all + row.line + "\n");
    for (uint32_t lane = 0; lane < 64; ++lane)
      for (uint32_t i = 0; i < 16 / row.width; ++i) {
        const uint32_t at = 16 * lane + row.width * i;
        const uint32_t got = row.width == 4 ? run.out<uint32_t>(at) : run.out<uint16_t>(at);
        const uint32_t expected = row.width * i < row.bytes ? row.expected(run, lane, i)
                                  : row.width == 4          ? 0xeeeeeeee
                                                            : 0xeeee;
        CHECK(same(got, expected, false, row.width == 4));
      }
  }
}

TEST_CASE("formatted buffer instructions take format and order from the resource", "[isa][formats]") {
  // 8_8_8_8 uint, as A, 1, B, 0.
  const uint32_t selects = 7 | 1 << 3 | 6 << 6 | 0 << 9;
  const uint32_t flags = 10u << 15 | uint32_t(uint) << 12 | selects;
  for (uint32_t components : {1u, 2u, 3u, 4u}) {
    const std::string name = "buffer_load_format_" + std::string("xyzw").substr(0, components);
    // 48 elements are in range; the others read 0, except for the 1.
    const MemoryRun run(resource(flags, 48 * 4) +
                        "v_mov_b32_e32 v20, -1\n v_mov_b32_e32 v21, -1\n"
                        "v_mov_b32_e32 v22, -1\n v_mov_b32_e32 v23, -1\n" +
                        name + " " + row_range(20, components) + ", v1, s[8:11], 0 offen\n" + wait_all +
                        "global_store_dwordx4 v2, v[20:23], s[12:13]\n");
    for (uint32_t lane = 0; lane < 64; ++lane) {
      const uint32_t expected[] = {lane < 48 ? run.in<uint8_t>(4 * lane + 3) : 0u, 1,
                                   lane < 48 ? run.in<uint8_t>(4 * lane + 2) : 0u, 0};
      for (uint32_t i = 0; i < 4; ++i)
        CHECK(run.out<uint32_t>(16 * lane + 4 * i) == (i < components ? expected[i] : ~0u));
    }
  }
  // The 1 of a float format; D16 in the upper half, with zeros below.
  const MemoryRun half(resource(2u << 15 | uint32_t(unorm) << 12 | 1) +
                       "buffer_load_format_d16_hi_x v20, v1, s[8:11], 0 offen\n"
                       "buffer_load_format_x v21, v1, s[8:11], 0 offen\n" +
                       wait_all + "global_store_dwordx2 v3, v[20:21], s[12:13]\n");
  CHECK(half.output[0] == 0x3c000000);
  CHECK(half.output[1] == 0x3f800000);
  // A store works in reverse: memory's R takes the register that selects R.
  const MemoryRun stored(
      "s_movk_i32 s14, 0x1000\n s_mov_b32 s15, " +
      std::to_string(10u << 15 | uint32_t(uint) << 12 | 5 | 4 << 3 | 7 << 6 | 6 << 9) +
      "\n v_mov_b32_e32 v20, 1\n v_mov_b32_e32 v21, 2\n v_mov_b32_e32 v22, 3\n v_mov_b32_e32 v23, 4\n"
      "buffer_store_format_xyzw v[20:23], v1, s[12:15], 0 offen\n");
  CHECK(stored.output[5] == 0x03040102);
}

TEST_CASE("an element is in range as a whole or not at all", "[isa][formats]") {
  for (const std::string line :
       {"tbuffer_load_format_xy v[20:21], v3, s[8:11], 0 format:[BUF_DATA_FORMAT_32_32,"
        "BUF_NUM_FORMAT_UINT] offen\n",
        "buffer_load_dwordx2 v[20:21], v3, s[8:11], 0 offen\n"}) {
    const MemoryRun run(resource(0x00027000, 20) + line + wait_all +
                        "global_store_dwordx2 v3, v[20:21], s[12:13]\n");
    CHECK(run.output[3] == run.in<uint32_t>(12));
    CHECK(run.output[4] == (line[0] == 't' ? 0 : run.in<uint32_t>(16)));
    CHECK(run.output[5] == 0);
  }
}

TEST_CASE("formats that do not exist stop the wave", "[isa][formats][checks]") {
  auto message = [](const std::string &body) {
    return only(run_checked(body + wait_all), ReportKind::unknown_instruction).message;
  };
  const std::string typed = resource(0x27000) + "v_mov_b32_e32 v20, 0\n tbuffer_";
  CHECK(message(typed + "load_format_x v20, off, s[8:11], 0 format:0\n") ==
        "gfx942 does not have buffer data format 0");
  CHECK(message(typed + "load_format_x v20, off, s[8:11], 0 format:15\n") ==
        "gfx942 does not have buffer data format 15");
  CHECK(message(typed +
                "load_format_x v20, off, s[8:11], 0 format:[BUF_DATA_FORMAT_8,BUF_NUM_FORMAT_FLOAT]\n") ==
        "float is not a number format of buffer data format 1");
  CHECK(
      message(typed +
              "load_format_x v20, off, s[8:11], 0 format:[BUF_DATA_FORMAT_8,BUF_NUM_FORMAT_RESERVED_6]\n") ==
      "gfx942 does not have buffer number format 6");
  CHECK(message(typed +
                "store_format_x v20, off, s[8:11], 0 format:[BUF_DATA_FORMAT_8_8,BUF_NUM_FORMAT_UINT]\n") ==
        "the store gives fewer components than the format has");
  // In a resource they are found when a wave uses them.
  for (const uint32_t flags : {15u << 15 | 4u << 12, 4u << 15 | 6u << 12, 10u << 15 | 7u << 12})
    CHECK(message(resource(flags) + "buffer_load_format_x v20, off, s[8:11], 0\n") ==
          "the machine does not run this form");
  CHECK(message(resource(10u << 15 | 4u << 12) +
                "v_mov_b32_e32 v20, 0\n buffer_store_format_x v20, off, s[8:11], 0\n") ==
        "the machine does not run this form");
}

TEST_CASE("formatted loads are loads for the checks", "[isa][formats][checks]") {
  const std::string line = "tbuffer_load_format_d16_xyzw v[20:21], v1, s[8:11], s20 "
                           "format:[BUF_DATA_FORMAT_8_8_8_8,BUF_NUM_FORMAT_UNORM] "
                           "offen\n";
  const std::string ready = resource(0x27000) + "s_mov_b32 s20, 0\n";
  const std::string use = "v_mov_b32_e32 v22, v21\n";
  const LaunchResult early = run_checked(ready + line + use + wait_all);
  CHECK(only(early, ReportKind::pending_register).disassembly.starts_with("v_mov_b32_e32 v22, v21"));
  CHECK(run_checked(ready + line + "s_waitcnt vmcnt(0)\n" + use).ok());
  CHECK(only(run_checked(resource(0x27000) + line + wait_all), ReportKind::register_uninitialised).message ==
        "address s20 holds a value that was never written");
  CHECK(only(run_checked(resource(0x27000, 0x10000) + "s_movk_i32 s20, 0x4000\n" + line + wait_all),
             ReportKind::global_out_of_bounds)
            .lane == 0);
  CHECK(only(run_checked(ready +
                         "tbuffer_store_format_x v30, v1, s[8:11], s20 "
                         "format:[BUF_DATA_FORMAT_8,BUF_NUM_FORMAT_UINT] offen\n" +
                         wait_all),
             ReportKind::register_uninitialised)
            .message == "stored register v30 holds a value that was never written");
}

TEST_CASE("memory that was never written is undefined in every component", "[isa][formats][checks]") {
  // Only the second dword of each element is missing; using any component as an address shows it.
  for (const std::string use : {"v20", "v21", "v23"})
    for (bool whole : {false, true}) {
      Memory memory;
      void *input = memory.allocate(MemoryRun::bytes, Memory::Contents::undefined);
      void *output = memory.allocate(MemoryRun::bytes);
      std::memset(input, 0, MemoryRun::bytes);
      for (uint32_t lane = 0; lane < 64; ++lane)
        memory.mark_written(static_cast<uint8_t *>(input) + 16 * lane, whole ? 8 : 4);
      const TestKernel kernel(memory_setup + resource(0x27000) +
                              "tbuffer_load_format_xyzw v[20:23], v2, s[8:11], 0 "
                              "format:[BUF_DATA_FORMAT_16_16_16_16,BUF_NUM_FORMAT_UINT] offen\n" +
                              wait_all + "global_load_dword v24, " + use + ", s[12:13]\n" + wait_all +
                              "s_endpgm");
      const LaunchResult result =
          kernel.run(memory, {reinterpret_cast<uint64_t>(input), reinterpret_cast<uint64_t>(output)});
      INFO(use << all_text(result));
      if (whole)
        CHECK(result.ok());
      else
        CHECK(
            only(result, ReportKind::register_uninitialised).other->disassembly.starts_with("tbuffer_load"));
    }
}

} // namespace sluice::test

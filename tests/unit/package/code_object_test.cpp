//===- code_object_test.cpp - real code objects, and each kind of error in them -------------------------===//

#include "package/code_object.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <memory>
#include <random>

#include "package/msgpack.h"
#include "support/files.h"

using namespace sluice::package;

namespace {

using Bytes = std::vector<std::byte>;

const Bytes &two_kernels() {
  static const Bytes bytes = sluice::test::read_file(SLUICE_CODE_OBJECT_TWO_KERNELS);
  return bytes;
}

uint64_t number(const Bytes &bytes, uint64_t at, int count) {
  uint64_t value = 0;
  for (int i = count - 1; i >= 0; --i)
    value = value << 8 | uint64_t(bytes.at(at + i));
  return value;
}

void put(Bytes &bytes, uint64_t at, int count, uint64_t value) {
  for (int i = 0; i < count; ++i)
    bytes.at(at + i) = std::byte(value >> (8 * i));
}

struct Refusal {
  std::string message;
  CodeObjectFault fault;
};

Refusal refusal(const Bytes &bytes) {
  try {
    CodeObject::parse(bytes);
  } catch (const CodeObjectError &error) {
    return {error.what(), error.fault()};
  }
  return {"accepted", CodeObjectFault::malformed};
}

/// The error for the real object with one change.
Refusal refusal_with(const std::function<void(Bytes &)> &change) {
  Bytes bytes = two_kernels();
  change(bytes);
  return refusal(bytes);
}

void check_refusal(const Refusal &got, CodeObjectFault fault, const std::string &part) {
  INFO(got.message);
  CHECK(got.message.find(part) != std::string::npos);
  CHECK(int(got.fault) == int(fault));
}

constexpr uint64_t program_header(int index) {
  return 64 + 56 * uint64_t(index);
}
uint64_t section_header(const Bytes &bytes, int index) {
  return number(bytes, 40, 8) + 64 * uint64_t(index);
}

int find_program_header(const Bytes &bytes, uint32_t type, int skip = 0) {
  for (int i = 0; i < int(number(bytes, 56, 2)); ++i)
    if (number(bytes, program_header(i), 4) == type && skip-- == 0) return i;
  FAIL("no such segment");
  return -1;
}

int find_section(const Bytes &bytes, uint32_t type) {
  for (int i = 0; i < int(number(bytes, 60, 2)); ++i)
    if (number(bytes, section_header(bytes, i) + 4, 4) == type) return i;
  FAIL("no such section");
  return -1;
}

/// File offset of the descriptor of `fill`.
uint64_t descriptor_at(const Bytes &bytes) {
  const CodeObject object = CodeObject::parse(bytes);
  return object.find_kernel("fill")->descriptor_address; // .rodata is at its own file offset
}

} // namespace

TEST_CASE("a code object gives its kernels as clang described them", "[code_object]") {
  const CodeObject object = CodeObject::parse(two_kernels());
  CHECK(object.version() == 5);
  CHECK(object.xnack() == TargetFeature::any);
  CHECK(object.sramecc() == TargetFeature::any);
  CHECK(object.target_id() == "gfx942");
  REQUIRE(object.kernels().size() == 2);

  const Kernel *fill = object.find_kernel("fill");
  REQUIRE(fill);
  CHECK(fill->has_metadata);
  CHECK(fill->kernarg_bytes == 24);
  CHECK(fill->kernarg_alignment == 8);
  CHECK(fill->lds_bytes == 1024);
  CHECK(fill->private_bytes == 0);
  CHECK(fill->max_workgroup_size == 256);
  CHECK(fill->wavefront_size == 64);
  CHECK(fill->vgpr_count == 3);
  CHECK(fill->agpr_count == 0);
  CHECK(fill->sgpr_spills == 0);
  CHECK(fill->vgpr_spills == 0);
  CHECK_FALSE(fill->dynamic_stack);
  CHECK(fill->entry_address % 256 == 0);
  CHECK(fill->code_bytes == 52);
  CHECK(fill->descriptor.vgprs() == 8);
  CHECK(fill->descriptor.accum_offset() == 4);
  CHECK(fill->descriptor.user_sgprs() == 2);
  CHECK(fill->descriptor.workgroup_id(0));
  CHECK_FALSE(fill->descriptor.workgroup_id(1));
  CHECK(fill->descriptor.workitem_id() == 0);
  CHECK_FALSE(fill->descriptor.private_segment());
  CHECK(fill->descriptor.kernarg_bytes == 24);
  REQUIRE(fill->arguments.size() == 4);
  CHECK(fill->arguments[0].name == "out");
  CHECK(fill->arguments[0].value_kind == "global_buffer");
  CHECK(fill->arguments[2].name == "count");
  CHECK(fill->arguments[2].offset == 12);
  CHECK(fill->arguments[2].size == 4);
  CHECK_FALSE(fill->arguments[2].hidden());
  CHECK(fill->arguments[3].hidden());

  const Kernel *nothing = object.find_kernel("nothing");
  REQUIRE(nothing);
  CHECK(nothing->arguments.empty());
  CHECK(nothing->descriptor.vgprs() == 200);
  CHECK(nothing->descriptor.accum_offset() == 128);
  CHECK(nothing->agpr_count == 72);
  CHECK_FALSE(object.find_kernel("filler"));
  CHECK_FALSE(object.find_symbol("no such symbol"));
}

TEST_CASE("loading places segments and relocates addresses", "[code_object]") {
  const CodeObject object = CodeObject::parse(two_kernels());
  const Symbol *counter = object.find_symbol("counter");
  const Symbol *pointer = object.find_symbol("pointer_to_counter");
  REQUIRE(counter);
  REQUIRE(pointer);
  CHECK(counter->size == 4);
  const uint64_t base = 0x7f0000200000;
  Bytes image(object.image_bytes(), std::byte{0xcc});
  object.load(image, base);
  CHECK(number(image, counter->address, 4) == 0x12345678);
  CHECK(number(image, pointer->address, 8) == base + counter->address + 4);            // ABS64
  CHECK(number(image, pointer->address + 8, 8) == base + pointer->address);            // RELATIVE64
  CHECK(number(image, object.find_kernel("nothing")->entry_address, 4) == 0xbf810000); // s_endpgm
  bool executable = false;
  bool zeroed = false;
  for (const Segment &segment : object.segments()) {
    executable = executable || segment.executable;
    if (segment.memory_bytes > segment.file.size()) {
      zeroed = true;
      CHECK(image[segment.address + segment.file.size()] == std::byte{0});
    }
  }
  CHECK(executable);
  CHECK(zeroed);
  Bytes small(object.image_bytes() - 1);
  CHECK_THROWS_AS(object.load(small, base), CodeObjectError);
}

TEST_CASE("target features are read from the flags", "[code_object]") {
  auto target = [](uint32_t flags) {
    Bytes bytes = two_kernels();
    put(bytes, 48, 4, flags);
    return CodeObject::parse(bytes).target_id();
  };
  CHECK(target(0x54c) == "gfx942");
  CHECK(target(0x64c) == "gfx942:xnack-");
  CHECK(target(0x74c) == "gfx942:xnack+");
  CHECK(target(0xe4c) == "gfx942:sramecc+:xnack-");
}

TEST_CASE("code object versions 4 to 6 are read, others are refused", "[code_object]") {
  for (uint32_t abi : {2u, 3u, 4u}) {
    Bytes bytes = two_kernels();
    put(bytes, 8, 1, abi);
    CHECK(CodeObject::parse(bytes).version() == abi + 2);
  }
  for (uint32_t abi : {0u, 1u, 5u, 255u})
    check_refusal(refusal_with([&](Bytes &b) { put(b, 8, 1, abi); }), CodeObjectFault::unsupported,
                  "ABI version " + std::to_string(abi));
}

TEST_CASE("the file's size follows from its headers", "[code_object]") {
  Bytes bytes = two_kernels();
  const uint64_t size = bytes.size();
  CHECK(elf_file_bytes(bytes.data()) == size);
  bytes.resize(size + 4096);
  CHECK(elf_file_bytes(bytes.data()) == size);
  put(bytes, 40, 8, uint64_t(1) << 62);
  CHECK_THROWS_WITH(elf_file_bytes(bytes.data()), Catch::Contains("section header table"));
  put(bytes, 0, 4, 0);
  CHECK_THROWS_WITH(elf_file_bytes(bytes.data()), Catch::Contains("magic"));
}

TEST_CASE("headers that are wrong are named", "[code_object]") {
  const auto malformed = CodeObjectFault::malformed;
  const auto wrong_machine = CodeObjectFault::wrong_machine;
  auto header = [](uint64_t at, int count, uint64_t value) {
    return refusal_with([=](Bytes &b) { put(b, at, count, value); });
  };
  check_refusal(refusal({}), malformed, "the ELF header");
  check_refusal(header(1, 1, 'F'), malformed, "magic");
  check_refusal(header(4, 1, 1), malformed, "64-bit");
  check_refusal(header(5, 1, 2), malformed, "little-endian");
  check_refusal(header(6, 1, 0), malformed, "ELF version");
  check_refusal(header(7, 1, 0), wrong_machine, "OS ABI 0");
  check_refusal(header(16, 2, 1), malformed, "ELF type 1");
  check_refusal(header(18, 2, 62), wrong_machine, "machine 62");
  check_refusal(header(48, 4, 0x53f), wrong_machine, "0x3f");
  check_refusal(header(48, 4, 0x54f), wrong_machine, "not gfx942");
  check_refusal(header(52, 2, 52), malformed, "ELF header of 52");
  check_refusal(header(54, 2, 32), malformed, "program headers of 32");
  check_refusal(header(58, 2, 40), malformed, "section headers of 40");
  check_refusal(header(56, 2, 0), malformed, "no program headers");
  check_refusal(header(56, 2, 0xffff), malformed, "program header table");
  check_refusal(header(32, 8, ~uint64_t(0) - 100), malformed, "program header table");
  check_refusal(header(40, 8, ~uint64_t(0) - 8), malformed, "section header table");
}

TEST_CASE("segments that are wrong are named", "[code_object]") {
  const auto malformed = CodeObjectFault::malformed;
  auto segment = [](int skip, uint64_t field, int count, uint64_t value) {
    return refusal_with(
        [=](Bytes &b) { put(b, program_header(find_program_header(b, 1, skip)) + field, count, value); });
  };
  check_refusal(segment(1, 8, 8, ~uint64_t(0)), malformed, "is outside");
  check_refusal(segment(1, 32, 8, uint64_t(1) << 63), malformed, "is outside");
  check_refusal(segment(1, 40, 8, 1), malformed, "in memory");
  check_refusal(segment(1, 40, 8, uint64_t(1) << 40), malformed, "ends beyond");
  check_refusal(segment(1, 16, 8, ~uint64_t(0) - 7), malformed, "ends beyond");
  check_refusal(segment(1, 16, 8, 0x100), malformed, "overlaps");
  check_refusal(segment(1, 4, 4, 4), malformed, "no executable segment");
  check_refusal(refusal_with([](Bytes &b) {
                  for (int i = 0; i < int(number(b, 56, 2)); ++i)
                    put(b, program_header(i), 4, 0x6474e551);
                }),
                malformed, "no segment to load");
}

TEST_CASE("sections, symbols and relocations that are wrong are named", "[code_object]") {
  const auto malformed = CodeObjectFault::malformed;
  const auto unsupported = CodeObjectFault::unsupported;
  auto section = [](uint32_t type, uint64_t field, int count, uint64_t value) {
    return refusal_with(
        [=](Bytes &b) { put(b, section_header(b, find_section(b, type)) + field, count, value); });
  };
  check_refusal(section(11, 24, 8, ~uint64_t(0)), malformed, "section");
  check_refusal(section(11, 32, 8, ~uint64_t(0)), malformed, "section");
  check_refusal(section(11, 56, 8, 16), malformed, "symbols of 16");
  check_refusal(section(11, 32, 8, 25), malformed, "ends inside a symbol");
  check_refusal(section(11, 40, 4, 999), malformed, "section 999");
  check_refusal(section(4, 56, 8, 16), malformed, "relocations of 16");
  check_refusal(section(4, 32, 8, 23), malformed, "ends inside a relocation");
  check_refusal(section(4, 4, 4, 9), unsupported, "SHT_REL");

  auto symbol = [](int index, uint64_t field, int count, uint64_t value) {
    return refusal_with([=](Bytes &b) {
      const uint64_t table = number(b, section_header(b, find_section(b, 11)) + 24, 8);
      put(b, table + 24 * uint64_t(index) + field, count, value);
    });
  };
  check_refusal(symbol(1, 0, 4, 0xffffff), malformed, "symbol 1 has its name");
  check_refusal(symbol(5, 8, 8, uint64_t(1) << 40), malformed, "'counter'");
  check_refusal(symbol(5, 16, 8, ~uint64_t(0)), malformed, "'counter'");
  check_refusal(symbol(5, 6, 2, 0), unsupported, "'counter', which is not defined");
  check_refusal(symbol(3, 16, 8, 63), malformed, "63 bytes instead of 64");
  check_refusal(symbol(3, 8, 8, 0x701), malformed, "not aligned to 64");
  check_refusal(symbol(3, 6, 2, 0), malformed, "'fill' has no descriptor");
  check_refusal(symbol(4, 0, 4,
                       number(two_kernels(),
                              number(two_kernels(),
                                     section_header(two_kernels(), find_section(two_kernels(), 11)) + 24, 8) +
                                  3 * 24,
                              4)),
                malformed, "two descriptors of kernel 'fill'");
  // Once truncated, the last bytes of the string table lack a terminator.
  check_refusal(refusal_with([](Bytes &b) {
                  const uint64_t dynsym = section_header(b, find_section(b, 11));
                  const uint64_t strings = section_header(b, int(number(b, dynsym + 40, 4)));
                  put(b, strings + 32, 8, number(b, strings + 32, 8) - 1);
                }),
                malformed, "name without an end");

  auto relocation = [](int index, uint64_t field, int count, uint64_t value) {
    return refusal_with([=](Bytes &b) {
      const uint64_t table = number(b, section_header(b, find_section(b, 4)) + 24, 8);
      put(b, table + 24 * uint64_t(index) + field, count, value);
    });
  };
  check_refusal(relocation(0, 8, 4, 6), unsupported, "R_AMDGPU_ABS32;");
  check_refusal(relocation(0, 8, 4, 8), unsupported, "R_AMDGPU_GOTPCREL32_LO");
  check_refusal(relocation(0, 8, 4, 77), unsupported, "relocation type 77");
  check_refusal(relocation(0, 0, 8, 1 << 20), malformed, "is not within a segment");
  check_refusal(relocation(0, 0, 8, ~uint64_t(0) - 3), malformed, "is not within a segment");
  check_refusal(relocation(1, 12, 4, 1000), malformed, "symbol 1000");
}

TEST_CASE("descriptors that are wrong are named", "[code_object]") {
  auto descriptor = [](uint64_t field, int count, uint64_t value) {
    return refusal_with([=](Bytes &b) { put(b, descriptor_at(b) + field, count, value); });
  };
  check_refusal(descriptor(16, 8, 0), CodeObjectFault::malformed, "no executable segment");
  check_refusal(descriptor(16, 8, ~uint64_t(0) / 2), CodeObjectFault::malformed, "no executable segment");
  const uint64_t entry = number(two_kernels(), descriptor_at(two_kernels()) + 16, 8);
  check_refusal(descriptor(16, 8, entry + 4), CodeObjectFault::malformed, "not aligned to 256");
}

TEST_CASE("metadata that is wrong is named", "[code_object]") {
  // A key or value is replaced by text of the same length, so that only one thing is wrong.
  auto replaced = [](const std::string &from, const std::string &to) {
    REQUIRE(from.size() == to.size());
    return refusal_with([&](Bytes &b) {
      std::string_view text(reinterpret_cast<const char *>(b.data()), b.size());
      const size_t at = text.find(from);
      REQUIRE(at != std::string_view::npos);
      std::memcpy(b.data() + at, to.data(), to.size());
    });
  };
  const auto malformed = CodeObjectFault::malformed;
  check_refusal(replaced(".kernarg_segment_size", ".kernarg_segment_sizE"), malformed,
                "kernel 'fill' has no 32-bit number .kernarg_segment_size");
  check_refusal(replaced(".max_flat_workgroup_size", ".max_flat_workgroup_sizE"), malformed,
                ".max_flat_workgroup_size");
  check_refusal(replaced("fill.kd", "fall.kd"), malformed, "descriptor symbol 'fall.kd'");
  check_refusal(replaced(".value_kind", ".value_kinD"), malformed, "argument 0 has no string .value_kind");
  // ".offset" is followed by the fixint itself.
  check_refusal(replaced(std::string("\xa7.offset\x0c"), std::string("\xa7.offset\x15")), malformed,
                "argument 2 at offset 21");
  check_refusal(replaced("\xae"
                         "amdhsa.kernels",
                         "\xc1"
                         "amdhsa.kernels"),
                malformed, "unknown tag 193");

  auto note = [](uint64_t field, uint64_t value) {
    return refusal_with([=](Bytes &b) {
      put(b, number(b, program_header(find_program_header(b, 4)) + 8, 8) + field, 4, value);
    });
  };
  check_refusal(note(0, 0xffffffff), malformed, "ends outside its segment");
  check_refusal(note(4, 0xfffffff0), malformed, "ends outside its segment");
  check_refusal(note(4, 100), malformed, "MessagePack");
}

TEST_CASE("an object without metadata still has its kernels, from the descriptors", "[code_object]") {
  Bytes bytes = two_kernels();
  put(bytes, program_header(find_program_header(bytes, 4)), 4, 0x6474e551);
  const CodeObject object = CodeObject::parse(bytes);
  const Kernel *fill = object.find_kernel("fill");
  REQUIRE(fill);
  CHECK_FALSE(fill->has_metadata);
  CHECK(fill->kernarg_bytes == 24);
  CHECK(fill->lds_bytes == 1024);
  CHECK(fill->arguments.empty());
}

TEST_CASE("the larger size in descriptor and metadata counts", "[code_object]") {
  const uint64_t descriptor = descriptor_at(two_kernels());
  auto changed = [&](const std::function<void(Bytes &)> &change) {
    Bytes bytes = two_kernels();
    change(bytes);
    const CodeObject object = CodeObject::parse(bytes);
    return *object.find_kernel("fill");
  };
  const Kernel zero = changed([&](Bytes &b) { put(b, descriptor, 4, 0), put(b, descriptor + 8, 4, 0); });
  CHECK(zero.lds_bytes == 1024);
  CHECK(zero.kernarg_bytes == 24);
  const Kernel more = changed([&](Bytes &b) {
    put(b, descriptor, 4, 4096);
    put(b, descriptor + 4, 4, 80);
    put(b, descriptor + 8, 4, 32);
    put(b, descriptor + 56, 2, 1 << 11);
  });
  CHECK(more.lds_bytes == 4096);
  CHECK(more.private_bytes == 80);
  CHECK(more.kernarg_bytes == 32);
  CHECK(more.dynamic_stack);
  // The caller must not pass the hidden argument after the others.
  CHECK(more.explicit_kernarg_bytes() == 16);
}

TEST_CASE("code for the family of a chip runs on the chip, from version 6 on", "[code_object]") {
  auto object = [](uint32_t machine, uint32_t abi) {
    Bytes bytes = two_kernels();
    put(bytes, 8, 1, abi);
    put(bytes, 48, 4, 0x01000500 | machine); // generic version 1
    return bytes;
  };
  CHECK(CodeObject::parse(object(0x5f, 4)).target_id() == "gfx9-4-generic");
  CHECK(CodeObject::parse(object(0x5f, 4), *find_chip("gfx950")).target_id() == "gfx9-4-generic");
  check_refusal(refusal(object(0x5f, 3)), CodeObjectFault::wrong_machine, "machine 0x5f, not gfx942");
  check_refusal(refusal(object(0x51, 4)), CodeObjectFault::wrong_machine, "machine 0x51, not gfx942");
  CHECK_THROWS_AS(CodeObject::parse(object(0x5f, 4), *find_chip("gfx90a")), CodeObjectError);
  CHECK_THROWS_AS(CodeObject::parse(object(0, 4), *find_chip("gfx90a")), CodeObjectError);
}

TEST_CASE("a code object cut short at any length is refused", "[code_object]") {
  const Bytes &whole = two_kernels();
  for (size_t size = 0; size < whole.size(); ++size) {
    // An allocation of exactly that size, so that the sanitizer sees reads past it.
    const Bytes part(whole.begin(), whole.begin() + std::ptrdiff_t(size));
    INFO(size);
    REQUIRE_THROWS_AS(CodeObject::parse(part), CodeObjectError);
  }
}

TEST_CASE("any change of bytes is read or refused, without other effects", "[code_object]") {
  std::mt19937 random(3);
  const Bytes &whole = two_kernels();
  int accepted = 0;
  int refused = 0;
  auto attempt = [&](const Bytes &bytes) {
    try {
      const CodeObject object = CodeObject::parse(bytes);
      if (object.image_bytes() <= (1 << 20)) {
        Bytes image(object.image_bytes());
        object.load(image, 0x10000);
      }
      ++accepted;
    } catch (const CodeObjectError &) {
      ++refused;
    }
  };
  constexpr uint8_t values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
  for (size_t at = 0; at < whole.size(); ++at) {
    Bytes bytes = whole;
    bytes[at] = std::byte(values[random() % std::size(values)]);
    attempt(bytes);
  }
  for (int i = 0; i < 5000; ++i) {
    Bytes bytes = whole;
    for (int change = 0; change < 4; ++change)
      put(bytes, random() % (bytes.size() - 8), 1 << (random() % 4), random());
    attempt(bytes);
  }
  CHECK(accepted > 100);
  CHECK(refused > 100);
}

TEST_CASE("MessagePack of every kind is read", "[code_object]") {
  std::vector<std::unique_ptr<Bytes>> documents; // values refer to their bytes
  auto read = [&documents](std::vector<int> values) {
    Bytes &bytes = *documents.emplace_back(std::make_unique<Bytes>());
    for (int value : values)
      bytes.push_back(std::byte(value));
    return read_msgpack(bytes);
  };
  using Kind = MsgpackValue::Kind;
  CHECK(read({0x7f}).integer == 127);
  CHECK(int64_t(read({0xff}).integer) == -1);
  CHECK(read({0xe0}).kind == Kind::negative_integer);
  CHECK(read({0xc0}).kind == Kind::nil);
  CHECK(read({0xc3}).integer == 1);
  CHECK(read({0xc2}).kind == Kind::boolean);
  CHECK(read({0xcc, 200}).integer == 200);
  CHECK(read({0xcd, 1, 2}).integer == 258);
  CHECK(read({0xce, 0, 0, 1, 0}).integer == 256);
  CHECK(read({0xcf, 0, 0, 0, 1, 0, 0, 0, 0}).integer == uint64_t(1) << 32);
  CHECK(int64_t(read({0xd0, 0x80}).integer) == -128);
  CHECK(int64_t(read({0xd1, 0xff, 0xfe}).integer) == -2);
  CHECK(int64_t(read({0xd2, 0xff, 0xff, 0xff, 0xfd}).integer) == -3);
  CHECK(read({0xd3, 0, 0, 0, 0, 0, 0, 0, 9}).kind == Kind::unsigned_integer);
  CHECK(read({0xca, 0x3f, 0x80, 0, 0}).real == 1.0);
  CHECK(read({0xcb, 0xbf, 0xf0, 0, 0, 0, 0, 0, 0}).real == -1.0);
  CHECK(read({0xa2, 'h', 'i'}).text == "hi");
  CHECK(read({0xd9, 1, 'x'}).text == "x");
  CHECK(read({0xda, 0, 1, 'y'}).text == "y");
  CHECK(read({0xdb, 0, 0, 0, 1, 'z'}).text == "z");
  CHECK(read({0xc4, 1, 7}).kind == Kind::binary);
  CHECK(read({0x92, 1, 2}).elements.size() == 2);
  CHECK(read({0xdc, 0, 1, 5}).elements.at(0).integer == 5);
  CHECK(read({0xdd, 0, 0, 0, 0}).elements.empty());
  CHECK(read({0x81, 0xa1, 'k', 3}).find("k")->integer == 3);
  CHECK(read({0xde, 0, 1, 0xa1, 'k', 4}).find("k")->integer == 4);
  CHECK(read({0xdf, 0, 0, 0, 0}).find("k") == nullptr);

  CHECK_THROWS_WITH(read({}), Catch::Contains("ends inside"));
  CHECK_THROWS_WITH(read({0xcd, 1}), Catch::Contains("ends inside"));
  CHECK_THROWS_WITH(read({0xa3, 'a'}), Catch::Contains("string of 3"));
  CHECK_THROWS_WITH(read({0xdd, 0xff, 0xff, 0xff, 0xff}), Catch::Contains("array of 4294967295"));
  CHECK_THROWS_WITH(read({0xdf, 0xff, 0xff, 0xff, 0xff}), Catch::Contains("map of 4294967295"));
  CHECK_THROWS_WITH(read({1, 2}), Catch::Contains("1 bytes after"));
  CHECK_THROWS_WITH(read({0xc7, 1, 1, 1}), Catch::Contains("unknown tag 199"));
  CHECK_THROWS_WITH(read(std::vector<int>(100, 0x91)), Catch::Contains("nests deeper"));
}

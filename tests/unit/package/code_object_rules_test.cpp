//===- code_object_rules_test.cpp - each rule of a code object, at its limit ----------------------------===//
#include "package/code_object.h"
#include "unit/package/small_elf.h"

#include <catch2/catch.hpp>

#include <functional>

using namespace sluice::package;
using namespace sluice::test;

namespace {

/// The error for an object; "" if it is read.
std::string refusal(const SmallElf &elf) {
  try {
    CodeObject::parse(elf.bytes);
  } catch (const CodeObjectError &error) {
    return std::string(error.what()).substr(std::string("code object: ").size());
  }
  return "";
}
std::string refusal_with(const std::function<void(SmallElf &)> &change) {
  SmallElf elf;
  change(elf);
  return refusal(elf);
}

/// The error for an object whose metadata is changed.
std::string refusal_of(const PackedMap &kernel) {
  return refusal(SmallElf(note(metadata_of({packed_map(kernel)}))));
}
PackedMap with(const std::string &key, const std::string &value) {
  PackedMap kernel = kernel_metadata();
  kernel[key] = value;
  return kernel;
}
PackedMap without(const std::string &key) {
  PackedMap kernel = kernel_metadata();
  kernel.erase(key);
  return kernel;
}
Kernel kernel_of(const PackedMap &kernel) {
  const SmallElf elf(note(metadata_of({packed_map(kernel)})));
  return CodeObject::parse(elf.bytes).kernels().at(0);
}

} // namespace

TEST_CASE("every field of an object is read into its member", "[code_object]") {
  SmallElf elf;
  elf.put(SmallElf::descriptor + 44, 4, 0x11111111);
  elf.put(SmallElf::descriptor + 48, 4, 0x22222222);
  elf.put(SmallElf::descriptor + 52, 4, 0x33333333);
  elf.put(SmallElf::descriptor + 56, 2, 0x4044);
  elf.put(SmallElf::descriptor + 58, 2, 0x5555);
  const CodeObject object = CodeObject::parse(elf.bytes);
  REQUIRE(object.segments().size() == 3);
  const auto flags = [&](size_t i) {
    const Segment &segment = object.segments()[i];
    return std::string(segment.readable ? "r" : "-") + (segment.writable ? "w" : "-") +
           (segment.executable ? "x" : "-");
  };
  CHECK(flags(0) == "r--");
  CHECK(flags(1) == "r-x");
  CHECK(flags(2) == "rw-");
  SmallElf unreadable;
  unreadable.segment(1, 1, 1, SmallElf::code, SmallElf::code_address, 8, 8);
  CHECK_FALSE(CodeObject::parse(unreadable.bytes).segments()[1].readable);
  CHECK(object.image_bytes() == SmallElf::data_address + 16);
  REQUIRE(object.symbols().size() == 5);
  CHECK(object.symbols()[1].type == 2);
  CHECK(object.symbols()[2].type == 1);
  CHECK(object.find_symbol("other") == nullptr); // not defined
  REQUIRE(object.find_symbol("word") != nullptr);
  CHECK(object.find_symbol("word")->address == SmallElf::data_address);
  REQUIRE(object.kernels().size() == 1);
  const Kernel &kernel = object.kernels()[0];
  CHECK(kernel.descriptor.rsrc3 == 0x11111111);
  CHECK(kernel.descriptor.rsrc1 == 0x22222222);
  CHECK(kernel.descriptor.rsrc2 == 0x33333333);
  CHECK(kernel.descriptor.properties == 0x4044);
  CHECK(kernel.descriptor.preload == 0x5555);
  CHECK(kernel.has_metadata);
  CHECK(kernel.kernarg_bytes == 24);
  CHECK(kernel.kernarg_alignment == 8);
  CHECK(kernel.lds_bytes == 1024);
  CHECK(kernel.private_bytes == 48);
  CHECK(kernel.wavefront_size == 32);
  CHECK(kernel.max_workgroup_size == 256);
  CHECK(kernel.sgpr_count == 22);
  CHECK(kernel.vgpr_count == 33);
  CHECK(kernel.agpr_count == 44);
  CHECK(kernel.sgpr_spills == 5);
  CHECK(kernel.vgpr_spills == 6);
  CHECK(kernel.dynamic_stack); // from the metadata only
  CHECK(kernel.code_bytes == 8);
}

TEST_CASE("some of a kernel's metadata is required, and the rest has defaults", "[code_object]") {
  CHECK(refusal_of(without(".name")) == "metadata: a kernel has no string .name");
  CHECK(refusal_of(with(".name", packed_number(1))) == "metadata: a kernel has no string .name");
  CHECK(refusal_of(without(".symbol")) == "metadata: kernel 'k' has no string .symbol");
  for (const char *key : {".kernarg_segment_size", ".group_segment_fixed_size", ".private_segment_fixed_size",
                          ".wavefront_size", ".max_flat_workgroup_size", ".sgpr_count", ".vgpr_count"}) {
    CHECK(refusal_of(without(key)) == std::string("metadata: kernel 'k' has no 32-bit number ") + key);
  }
  for (const char *key : {".kernarg_segment_align", ".agpr_count", ".sgpr_spill_count", ".vgpr_spill_count",
                          ".uses_dynamic_stack"})
    CHECK(refusal_of(without(key)) == "");
  CHECK(kernel_of(without(".kernarg_segment_align")).kernarg_alignment == 16);
  CHECK(kernel_of(without(".agpr_count")).agpr_count == 0);
  CHECK(kernel_of(without(".sgpr_spill_count")).sgpr_spills == 0);
  CHECK(kernel_of(without(".vgpr_spill_count")).vgpr_spills == 0);
  CHECK_FALSE(kernel_of(without(".uses_dynamic_stack")).dynamic_stack);
  CHECK_FALSE(kernel_of(with(".uses_dynamic_stack", packed_flag(false))).dynamic_stack);
  CHECK_FALSE(kernel_of(with(".uses_dynamic_stack", packed_number(1))).dynamic_stack);
  // A 0 that tools leave means unknown.
  CHECK(kernel_of(with(".max_flat_workgroup_size", packed_number(0))).max_workgroup_size == 1024);
  CHECK(kernel_of(with(".max_flat_workgroup_size", packed_number(1))).max_workgroup_size == 1);
  CHECK(kernel_of(with(".agpr_count", packed_number(0xffffffff))).agpr_count == 0xffffffff);
  for (const std::string &wrong : {packed_number(uint64_t{1} << 32), packed_text("1"), std::string("\xff")})
    CHECK(refusal_of(with(".agpr_count", wrong)) == "metadata: kernel 'k' has no 32-bit number .agpr_count");
}

TEST_CASE("an argument has a kind, an offset and a size in the kernarg segment", "[code_object]") {
  const auto refusal_of_argument = [](const PackedMap &argument) {
    return refusal_of(with(".args", packed_array({packed_map(argument)})));
  };
  const PackedMap good = {
      {".value_kind", packed_text("by_value")}, {".offset", packed_number(16)}, {".size", packed_number(8)}};
  CHECK(refusal_of_argument(good) == "");
  const Kernel kernel = kernel_of(with(".args", packed_array({packed_map(good)})));
  CHECK(kernel.arguments.at(0).name == "");
  CHECK(kernel.arguments.at(0).offset == 16);
  CHECK(kernel.arguments.at(0).size == 8);
  CHECK(kernel.explicit_kernarg_bytes() == 24);
  for (const char *key : {".offset", ".size"}) {
    PackedMap argument = good;
    argument.erase(key);
    CHECK(refusal_of_argument(argument) ==
          std::string("metadata: kernel 'k' argument 0 has no 32-bit number ") + key);
  }
  PackedMap argument = good;
  argument[".size"] = packed_number(9);
  CHECK(refusal_of_argument(argument) == "metadata: kernel 'k' argument 0 at offset 16, 9 bytes, is outside "
                                         "the kernarg segment of 24 bytes");
  CHECK(refusal_of(with(".args", packed_number(1))) ==
        "metadata: kernel 'k' has .args that are not an array");
  CHECK(refusal_of(with(".args", packed_array({packed_number(1)}))) ==
        "metadata: kernel 'k' argument 0 is not a map");
}

TEST_CASE("a kernel needs its explicit arguments, or the whole segment if they are not listed",
          "[code_object]") {
  Kernel kernel;
  kernel.kernarg_bytes = 40;
  CHECK(kernel.explicit_kernarg_bytes() == 40);
  kernel.arguments = {{"", "hidden_block_count_x", 16, 4}};
  CHECK(kernel.explicit_kernarg_bytes() == 0);
}

TEST_CASE("metadata is a map with an array of maps, once", "[code_object]") {
  const std::string kernel = packed_map(kernel_metadata());
  CHECK(refusal(SmallElf(note(packed_number(1)))) == "metadata is not a map");
  CHECK(refusal(SmallElf(note(packed_map({{"amdhsa.version", packed_number(1)}})))) == "");
  CHECK(refusal(SmallElf(note(packed_map({{"amdhsa.kernels", packed_number(1)}})))) ==
        "metadata: amdhsa.kernels is not an array");
  CHECK(refusal(SmallElf(note(metadata_of({packed_number(1)})))) == "metadata: a kernel is not a map");
  CHECK(refusal(SmallElf(note(metadata_of({kernel})) + note(metadata_of({kernel})))) ==
        "has two metadata notes with kernels");
  CHECK(refusal(SmallElf(note(metadata_of({})) + note(metadata_of({kernel})))) == "");
}

TEST_CASE("notes of other names and types are skipped", "[code_object]") {
  const std::string good = note(metadata_of({packed_map(kernel_metadata())}));
  const std::string broken = "\xc1"; // never read
  const auto has_metadata = [&](const std::string &notes) {
    const SmallElf elf(notes);
    return CodeObject::parse(elf.bytes).kernels().at(0).has_metadata;
  };
  CHECK(has_metadata(good));
  CHECK_FALSE(has_metadata(""));
  // Names of every length, each padded to words.
  for (size_t bytes = 1; bytes <= 8; ++bytes) {
    CHECK(has_metadata(note(std::string(bytes, '\xc1'), std::string("GNU\0", 4), 3) + good));
    CHECK(has_metadata(note(broken, std::string(bytes, 'A'), 32) + good));
    CHECK(has_metadata(good + note("", std::string(bytes, 'A'), 1)));
  }
  CHECK(has_metadata(note(broken, std::string("AMDGPU\0", 7), 31) + good));
  CHECK(has_metadata(note(broken, std::string("AMDGPX\0", 7), 32) + good));
  CHECK(has_metadata(note(broken, std::string("AMDGPUX", 7), 32) + good));
  CHECK(has_metadata(note(broken, std::string("AMDGPU\0\0", 8), 32) + good));
  // The padding after a name is ignored.
  std::string filled = good;
  filled[12 + 7] = 'X';
  CHECK(has_metadata(filled));
  // A note with only its header.
  CHECK(has_metadata(good + note("", "")));
  CHECK(refusal(SmallElf(good + std::string(11, '\0'))) == "has a note that ends inside its header");
  CHECK(refusal(SmallElf(good + std::string("\0\0\0\0\1\0\0\0\0\0\0\0", 12))) ==
        "has a note of 0 + 1 bytes that ends outside its segment");
  CHECK(refusal(SmallElf(good + std::string("\1\0\0\0\0\0\0\0\0\0\0\0", 12))) ==
        "has a note of 1 + 0 bytes that ends outside its segment");
}

TEST_CASE("each byte of the identification counts", "[code_object]") {
  for (uint64_t at = 0; at < 4; ++at)
    CHECK(refusal_with([&](SmallElf &elf) { elf.put(at, 1, 0); }) == "does not begin with the ELF magic");
  for (const uint64_t at : {6, 20})
    CHECK(refusal_with([&](SmallElf &elf) { elf.put(at, 1, 2); }) == "has an unknown ELF version");
  // Entry sizes of empty tables are ignored.
  CHECK(refusal_with([](SmallElf &elf) { elf.put(56, 2, 0), elf.put(54, 2, 0); }) ==
        "has no program headers");
  CHECK(refusal_with([](SmallElf &elf) { elf.put(60, 2, 0), elf.put(58, 2, 0); }) ==
        "metadata: kernel 'k' has no descriptor symbol");
  for (const uint64_t count : {1, 256}) {
    CHECK(refusal_with([&](SmallElf &elf) { elf.put(56, 2, count), elf.put(54, 2, 57); }) ==
          "has program headers of 57 bytes instead of 56");
    CHECK(refusal_with([&](SmallElf &elf) { elf.put(60, 2, count), elf.put(58, 2, 65); }) ==
          "has section headers of 65 bytes instead of 64");
  }
  CHECK(refusal_with([](SmallElf &elf) { elf.put(4, 1, 3); }) == "is not a 64-bit ELF (class 3)");
  CHECK(refusal_with([](SmallElf &elf) { elf.put(5, 1, 7); }) == "is not little-endian (data encoding 7)");
}

TEST_CASE("numbers of every width are read whole", "[code_object]") {
  CHECK(refusal_with([](SmallElf &elf) { elf.put(18, 2, 0xff00 + 224); }) ==
        "is for ELF machine 65504, not AMDGPU (224)");
  CHECK(refusal_with([](SmallElf &elf) { elf.put(20, 4, 0x80000001); }) == "has an unknown ELF version");
  CHECK(refusal_with([](SmallElf &elf) {
          elf.put(40, 8, uint64_t{0x80} << 56 | SmallElf::section_headers);
        }) == "the section header table at offset 0x8000000000000280, 320 bytes, is outside the " +
                  std::to_string(SmallElf().bytes.size()) + " bytes of the file");
  // A type of one byte, with any neighbour.
  SmallElf elf;
  elf.put(SmallElf::symbols + 24 + 4, 2, 0xff02);
  CHECK(CodeObject::parse(elf.bytes).symbols()[1].type == 2);
  elf.put(SmallElf::symbols + 24 + 4, 1, 0xff);
  CHECK(CodeObject::parse(elf.bytes).symbols()[1].type == 15);
}

TEST_CASE("segments touch and do not overlap", "[code_object]") {
  const uint64_t data = SmallElf::data, address = SmallElf::code_address;
  const auto at = [&](uint64_t where, uint64_t bytes) {
    return refusal_with([&](SmallElf &elf) {
      elf.segment(2, 1, 6, data, where, 0, bytes);
      elf.section(3, 0, 0, 0, 0, 0, 0); // no relocations
      elf.symbol(4, 14, 1, 0, 0, 0);
    });
  };
  CHECK(at(address + 8, 16) == "");
  CHECK(at(address - 16, 16) == "");
  CHECK(at(address + 7, 16) == "segment 2 at address 0x1007 overlaps the one at 0x1000");
  CHECK(at(address - 16, 17) == "segment 2 at address 0xff0 overlaps the one at 0x1000");
  // Up to a GiB.
  CHECK(at((1 << 30) - 16, 16) == "");
  CHECK(at((1 << 30) - 16, 17) == "segment 2 at address 0x3ffffff0, 17 bytes, ends beyond 1073741824 bytes");
  CHECK(refusal_with([&](SmallElf &elf) { elf.segment(2, 1, 6, data, 0x2000, 16, 16); }) == "");
  CHECK(refusal_with([&](SmallElf &elf) { elf.segment(2, 1, 6, data, 0x2000, 17, 16); }) ==
        "segment 2 has 17 bytes in the file but only 16 in memory");
  // Bytes after the table are not an entry.
  CHECK(refusal_with([](SmallElf &elf) {
          elf.put(SmallElf::program_headers + 4 * 56, 4, 1);
          elf.put(SmallElf::program_headers + 4 * 56 + 8, 8, ~uint64_t{0});
        }) == "");
  // A segment that ends with the file is in it.
  CHECK(refusal_with([&](SmallElf &elf) { elf.segment(2, 1, 6, elf.bytes.size() - 8, 0x2000, 8, 16); }) ==
        "");
  CHECK_THAT(refusal_with([&](SmallElf &elf) { elf.segment(2, 1, 6, elf.bytes.size() - 7, 0x2000, 8, 16); }),
             Catch::StartsWith("segment 2 at offset ") && Catch::Contains("is outside the"));
  CHECK(refusal_with([&](SmallElf &elf) { elf.segment(2, 1, 6, elf.bytes.size(), 0x2000, 0, 16); }) == "");
}

TEST_CASE("sections with contents are inside the file", "[code_object]") {
  CHECK(refusal(SmallElf()) == "");
  const auto section = [](uint64_t type) {
    return refusal_with([&](SmallElf &elf) { elf.section(4, type, 2, 1 << 20, 1 << 20, 0, 0); });
  };
  CHECK(section(0) == "");
  CHECK(section(1) == "section 4 at offset 0x100000, 1048576 bytes, is outside the " +
                          std::to_string(SmallElf().bytes.size()) + " bytes of the file");
  // A relocation section that is not loaded is not applied.
  CHECK(refusal_with([](SmallElf &elf) { elf.section(3, 9, 0, SmallElf::relocations, 24, 0, 24); }) == "");
  CHECK(refusal_with([](SmallElf &elf) { elf.section(3, 9, 3, SmallElf::relocations, 24, 0, 24); }) ==
        "has dynamic relocations without addends (SHT_REL)");
  SmallElf unloaded;
  unloaded.section(3, 4, 1, SmallElf::relocations, 24, 0, 24);
  const CodeObject object = CodeObject::parse(unloaded.bytes);
  Bytes image(object.image_bytes());
  object.load(image, 0);
  CHECK(image[SmallElf::data_address] == std::byte{0});
}

TEST_CASE("symbols have their names in a table of the file", "[code_object]") {
  const auto linked_to = [](uint64_t section) {
    return refusal_with(
        [&](SmallElf &elf) { elf.section(1, 11, 2, SmallElf::symbols, 5 * 24, section, 24); });
  };
  CHECK(linked_to(2) == "");
  CHECK(linked_to(5) == "has a symbol table linked to section 5, which holds no strings");
  CHECK(linked_to(4) == "has a symbol table linked to section 4, which holds no strings");
  CHECK(refusal_with([](SmallElf &elf) { elf.symbol(4, 18, 1, 1, 0, 0); }) == "");
  CHECK(refusal_with([](SmallElf &elf) { elf.symbol(4, 19, 1, 1, 0, 0); }) ==
        "symbol 4 has its name at 19 of a string table of 19 bytes");
  // The maximum number that is read, all without a name.
  SmallElf elf;
  elf.bytes.resize(1 << 21);
  elf.section(1, 11, 2, 1 << 16, uint64_t{65536} * 24, 2, 24);
  CHECK(refusal(elf) == "metadata: kernel 'k' has no descriptor symbol");
  elf.section(1, 11, 2, 1 << 16, uint64_t{65537} * 24, 2, 24);
  CHECK(refusal(elf) == "has 65537 symbols; at most 65536 are read");
}

TEST_CASE("defined symbols are inside the image, others anywhere", "[code_object]") {
  const uint64_t end = SmallElf::data_address + 16;
  CHECK(refusal_with([&](SmallElf &elf) { elf.symbol(4, 14, 1, 1, end - 8, 8); }) == "");
  CHECK(refusal_with([&](SmallElf &elf) { elf.symbol(4, 14, 1, 1, end - 7, 8); }) ==
        "symbol 'word' at address 0x2009, 8 bytes, is outside the image of 8208 bytes");
  CHECK(refusal_with([&](SmallElf &elf) { elf.symbol(3, 8, 0, 0, end, 8); }) == "");
}

TEST_CASE("relocated words are inside segments, up to the last byte", "[code_object]") {
  const auto relocated = [](uint64_t address, uint64_t type = 13, uint64_t symbol = 0) {
    return refusal_with([&](SmallElf &elf) { elf.relocation(0, address, type, symbol, 0); });
  };
  CHECK(relocated(SmallElf::data_address) == "");
  CHECK(relocated(SmallElf::data_address + 8) == "");
  CHECK(relocated(SmallElf::data_address + 9) == "relocation 0 at address 0x2009 is not within a segment");
  CHECK(relocated(SmallElf::data_address - 1) == "relocation 0 at address 0x1fff is not within a segment");
  CHECK(relocated(SmallElf::data_address, 3, 4) == "");
  CHECK(relocated(SmallElf::data_address, 3, 5) == "relocation 0 names symbol 5 of 5");
  CHECK(relocated(SmallElf::data_address, 3, 3) ==
        "relocation 0 needs the symbol 'other', which is not defined");
  CHECK(relocated(SmallElf::data_address, 14) ==
        "relocation 0 is R_AMDGPU_REL16; R_AMDGPU_RELATIVE64 and R_AMDGPU_ABS64 are applied");
  CHECK(relocated(SmallElf::data_address, 15) ==
        "relocation 0 is relocation type 15; R_AMDGPU_RELATIVE64 and R_AMDGPU_ABS64 are applied");
}

TEST_CASE("a relocated word has all its bytes, and gaps of the image are zero", "[code_object]") {
  SmallElf elf;
  elf.put(SmallElf::data, 8, ~uint64_t{0});
  elf.relocation(0, SmallElf::data_address, 3, 4, 5);
  const CodeObject object = CodeObject::parse(elf.bytes);
  Bytes image(object.image_bytes(), std::byte{0xcc});
  object.load(image, 0x8877665544330000);
  const Bytes word(image.begin() + SmallElf::data_address, image.end());
  const Bytes expected = [] {
    Bytes bytes(16);
    const uint64_t value = 0x8877665544330000 + SmallElf::data_address + 5;
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
  }();
  CHECK(word == expected);
  CHECK(image[SmallElf::data_address - 1] == std::byte{0});
}

TEST_CASE("a descriptor and a kernel's first instruction are in the contents of segments", "[code_object]") {
  // The descriptor's segment ends with it, or one byte too early.
  const auto ends_at = [](uint64_t end) {
    return refusal_with([&](SmallElf &elf) { elf.segment(0, 1, 4, 0, 0, end, SmallElf::code); });
  };
  CHECK(ends_at(SmallElf::descriptor + 64) == "");
  CHECK(ends_at(SmallElf::descriptor + 63) == "kernel descriptor 'k.kd' at address 0x140, 64 bytes, is not "
                                              "within a segment's contents");
  // A segment that begins with the descriptor, at an offset different from the address.
  CHECK(refusal_with([](SmallElf &elf) {
          elf.segment(0, 1, 4, SmallElf::descriptor, 0x800, 64, 64);
          elf.symbol(2, 3, 1, 1, 0x800, 64);
          elf.put(SmallElf::descriptor + 16, 8, SmallElf::code_address - 0x800);
        }) == "");
  CHECK(refusal_with([](SmallElf &elf) {
          elf.segment(0, 1, 4, SmallElf::descriptor, 0x840, 64, 64);
          elf.symbol(2, 3, 1, 1, 0x800, 64);
        }) == "kernel descriptor 'k.kd' at address 0x800, 64 bytes, is not within a segment's contents");
  // Four bytes of code are enough, three are not; and the code may not be before the segment.
  const auto code_of = [](uint64_t bytes) {
    return refusal_with(
        [&](SmallElf &elf) { elf.segment(1, 1, 5, SmallElf::code, SmallElf::code_address, bytes, 8); });
  };
  const std::string nowhere = "kernel 'k' enters at address 0x1000, which no executable segment holds";
  CHECK(code_of(4) == "");
  CHECK(code_of(3) == nowhere);
  CHECK(refusal_with([](SmallElf &elf) {
          elf.segment(1, 1, 5, SmallElf::code, SmallElf::code_address + 4, 8, 8);
        }) == nowhere);
}

TEST_CASE("the size of a kernel's code is that of the function it enters", "[code_object]") {
  SmallElf elf;
  elf.symbol(1, 1, 2, 1, SmallElf::code_address + 4, 4);
  CHECK(CodeObject::parse(elf.bytes).kernels().at(0).code_bytes == 0);
  elf.symbol(1, 1, 2, 0, SmallElf::code_address, 4); // not defined
  CHECK(CodeObject::parse(elf.bytes).kernels().at(0).code_bytes == 0);
}

TEST_CASE("a file ends with the last of its tables, segments and sections", "[code_object]") {
  const auto bytes_with = [](const std::function<void(SmallElf &)> &change) {
    SmallElf elf;
    change(elf);
    return elf_file_bytes(elf.bytes.data());
  };
  const SmallElf elf;
  CHECK(elf_file_bytes(elf.bytes.data()) == elf.bytes.size()); // the notes' segment
  CHECK(bytes_with([](SmallElf &e) { e.segment(3, 4, 4, 0x8000, 0, 5, 5); }) == 0x8005);
  CHECK(bytes_with([](SmallElf &e) { e.segment(0, 1, 4, 0x8000, 0, 6, 6); }) == 0x8006);
  CHECK(bytes_with([](SmallElf &e) { e.section(1, 11, 2, 0x9000, 7, 2, 24); }) == 0x9007);
  CHECK(bytes_with([](SmallElf &e) { e.section(4, 1, 2, 0x9000, 8, 2, 24); }) == 0x9008);
  CHECK(bytes_with([](SmallElf &e) { e.section(4, 0, 2, 0x9000, 8, 2, 24); }) == elf.bytes.size());
  CHECK(bytes_with([](SmallElf &e) { e.section(4, 1 << 24, 2, 0x9000, 9, 2, 24); }) == 0x9009);
  CHECK(bytes_with([](SmallElf &e) { e.section(0, 1, 2, 0x9000, 10, 2, 24); }) == 0x900a);
  // Bytes after the table are not an entry.
  CHECK(bytes_with([](SmallElf &e) {
          e.put(SmallElf::section_headers + 5 * 64 + 4, 4, 1);
          e.put(SmallElf::section_headers + 5 * 64 + 24, 8, 0x9000);
        }) == elf.bytes.size());
  // Neither segments nor sections: the tables, of which that of sections is the last here.
  const uint64_t tables = SmallElf::section_headers + 5 * 64;
  const auto empty = [](SmallElf &e) {
    for (uint64_t i = 0; i < 4; ++i)
      e.segment(i, 4, 4, 0, 0, 0, 0);
    for (uint64_t i = 1; i < 5; ++i)
      e.section(i, 0, 0, 0, 0, 0, 0);
  };
  CHECK(bytes_with(empty) == tables);
  CHECK(bytes_with([&](SmallElf &e) { empty(e), e.put(60, 2, 0), e.put(40, 8, 0); }) ==
        SmallElf::program_headers + 4 * 56);
  CHECK(bytes_with(
            [&](SmallElf &e) { e.put(60, 2, 0), e.put(40, 8, 0), e.put(56, 2, 0), e.put(32, 8, 0); }) == 64);
  CHECK_THROWS_WITH(bytes_with([](SmallElf &e) { e.segment(3, 4, 4, 1 << 30, 0, 1, 1); }),
                    Catch::Contains("a segment at offset 0x40000000, 1 bytes, ends beyond"));
  CHECK_THROWS_WITH(bytes_with([](SmallElf &e) { e.section(4, 1, 2, 1 << 30, 1, 0, 0); }),
                    Catch::Contains("a section at offset 0x40000000, 1 bytes, ends beyond"));
  CHECK_THROWS_WITH(bytes_with([](SmallElf &e) { e.put(32, 8, 1 << 30); }),
                    Catch::Contains("the program header table at offset 0x40000000, 224 bytes, ends beyond"));
}

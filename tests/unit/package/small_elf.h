//===- small_elf.h - a small code object, made by hand --------------------------------------------------===//
//
// One kernel, `k`, with fields that tests can corrupt everywhere. The names below are the file offsets;
// the first segment has the file's first bytes at address 0, so that they are addresses too.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace sluice::test {

using Bytes = std::vector<std::byte>;

// The part of MessagePack that metadata uses.
inline std::string packed_number(uint64_t value) {
  std::string bytes = "\xcf";
  for (int shift = 56; shift >= 0; shift -= 8)
    bytes += char(value >> shift);
  return bytes;
}
inline std::string packed_text(const std::string &text) {
  return '\xd9' + std::string(1, char(text.size())) + text;
}
inline std::string packed_flag(bool value) {
  return value ? "\xc3" : "\xc2";
}
inline std::string packed_array(const std::vector<std::string> &elements) {
  std::string bytes(1, char(0x90 + elements.size()));
  for (const std::string &element : elements)
    bytes += element;
  return bytes;
}
using PackedMap = std::map<std::string, std::string>;
inline std::string packed_map(const PackedMap &entries) {
  std::string bytes = {'\xde', 0, char(entries.size())};
  for (const auto &[key, value] : entries)
    bytes += packed_text(key) + value;
  return bytes;
}

/// The metadata of `k`, in which all numbers differ.
inline PackedMap kernel_metadata() {
  return {{".name", packed_text("k")},
          {".symbol", packed_text("k.kd")},
          {".kernarg_segment_size", packed_number(24)},
          {".kernarg_segment_align", packed_number(8)},
          {".group_segment_fixed_size", packed_number(1024)},
          {".private_segment_fixed_size", packed_number(48)},
          {".wavefront_size", packed_number(32)},
          {".max_flat_workgroup_size", packed_number(256)},
          {".sgpr_count", packed_number(22)},
          {".vgpr_count", packed_number(33)},
          {".agpr_count", packed_number(44)},
          {".sgpr_spill_count", packed_number(5)},
          {".vgpr_spill_count", packed_number(6)},
          {".uses_dynamic_stack", packed_flag(true)}};
}
inline std::string metadata_of(const std::vector<std::string> &kernels) {
  return packed_map({{"amdhsa.kernels", packed_array(kernels)}});
}

/// A note; code objects have those of name "AMDGPU" and type 32.
inline std::string note(const std::string &data, const std::string &name = std::string("AMDGPU\0", 7),
                        uint32_t type = 32) {
  const auto word = [](uint64_t value) {
    return std::string{char(value), char(value >> 8), char(value >> 16), char(value >> 24)};
  };
  const auto padded = [](std::string text) {
    text.resize((text.size() + 3) / 4 * 4);
    return text;
  };
  return word(name.size()) + word(data.size()) + word(type) + padded(name) + padded(data);
}

struct SmallElf {
  // File offsets. Program headers: load (all of the file before the code), load (code), load (data), note.
  // Symbols: none, k, k.kd, other (not defined), word. Sections: none, symbols, strings, relocations, zeros.
  static constexpr uint64_t program_headers = 0x40, descriptor = 0x140, symbols = 0x180, strings = 0x200,
                            relocations = 0x240, section_headers = 0x280, code = 0x3c0, data = 0x3e0,
                            notes = 0x400;
  static constexpr uint64_t code_address = 0x1000, data_address = 0x2000;

  Bytes bytes;

  explicit SmallElf(const std::string &note_bytes = note(metadata_of({packed_map(kernel_metadata())}))) {
    bytes.resize(notes + note_bytes.size());
    std::memcpy(bytes.data() + notes, note_bytes.data(), note_bytes.size());
    std::memcpy(bytes.data(),
                "\x7f"
                "ELF\2\1\1\x40\3",
                9);
    put(16, 2, 3), put(18, 2, 224), put(20, 4, 1), put(48, 4, 0x54c);
    put(32, 8, program_headers), put(40, 8, section_headers);
    put(52, 2, 64), put(54, 2, 56), put(56, 2, 4), put(58, 2, 64), put(60, 2, 5);
    segment(0, 1, 4, 0, 0, code, code);
    segment(1, 1, 5, code, code_address, 8, 8);
    segment(2, 1, 6, data, data_address, 8, 16);
    segment(3, 4, 4, notes, 0, note_bytes.size(), note_bytes.size());
    put(descriptor + 16, 8, code_address - descriptor);
    std::memcpy(bytes.data() + strings, "\0k\0k.kd\0other\0word", 19);
    symbol(1, 1, 2, 1, code_address, 8);
    symbol(2, 3, 1, 1, descriptor, 64);
    symbol(3, 8, 0, 0, 0, 0);
    symbol(4, 14, 1, 1, data_address, 8);
    relocation(0, data_address, 13, 0, 0x123); // relative
    section(1, 11, 2, symbols, 5 * 24, 2, 24);
    section(2, 3, 2, strings, 19, 0, 0);
    section(3, 4, 2, relocations, 24, 0, 24);
    section(4, 8, 2, 1 << 20, 1 << 20, 0, 0);
  }

  void put(uint64_t at, int count, uint64_t value) {
    for (int i = 0; i < count; ++i)
      bytes.at(at + uint64_t(i)) = std::byte(value >> (8 * i));
  }
  void segment(uint64_t i, uint64_t type, uint64_t flags, uint64_t at, uint64_t address, uint64_t file_bytes,
               uint64_t memory_bytes) {
    const uint64_t header = program_headers + 56 * i;
    put(header, 4, type), put(header + 4, 4, flags), put(header + 8, 8, at), put(header + 16, 8, address);
    put(header + 32, 8, file_bytes), put(header + 40, 8, memory_bytes);
  }
  void symbol(uint64_t i, uint64_t name, uint64_t type, uint64_t section, uint64_t address, uint64_t size) {
    const uint64_t entry = symbols + 24 * i;
    put(entry, 4, name), put(entry + 4, 1, 0x10 | type), put(entry + 6, 2, section);
    put(entry + 8, 8, address), put(entry + 16, 8, size);
  }
  void relocation(uint64_t i, uint64_t address, uint64_t type, uint64_t symbol_index, uint64_t addend) {
    const uint64_t entry = relocations + 24 * i;
    put(entry, 8, address), put(entry + 8, 4, type), put(entry + 12, 4, symbol_index),
        put(entry + 16, 8, addend);
  }
  void section(uint64_t i, uint64_t type, uint64_t flags, uint64_t at, uint64_t size, uint64_t link,
               uint64_t entry_bytes) {
    const uint64_t header = section_headers + 64 * i;
    put(header + 4, 4, type), put(header + 8, 8, flags), put(header + 24, 8, at), put(header + 32, 8, size);
    put(header + 40, 4, link), put(header + 56, 8, entry_bytes);
  }
};

} // namespace sluice::test

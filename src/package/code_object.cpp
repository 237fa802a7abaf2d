//===- code_object.cpp - an AMDGPU code object, read strictly -------------------------------------------===//
//
// Numbers are read byte by byte through one checked function, so that no field is trusted and alignment does
// not matter. Limits that no real object reaches (a GiB of image, 65,536 symbols) bound the cost of a hostile
// one.
//
//===----------------------------------------------------------------------------------------------------===//
#include "package/code_object.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "package/msgpack.h"
#include "support/hex.h"

namespace sluice::package {

namespace {

constexpr uint64_t largest_image_bytes = uint64_t(1) << 30;
constexpr uint64_t most_symbols = 65536;

constexpr uint64_t elf_header_bytes = 64;
constexpr uint64_t program_header_bytes = 56;
constexpr uint64_t section_header_bytes = 64;
constexpr uint64_t symbol_bytes = 24;
constexpr uint64_t relocation_bytes = 24;
constexpr uint64_t descriptor_bytes = 64;

constexpr uint32_t machine_amdgpu = 224;
constexpr uint32_t os_abi_amdhsa = 64;

constexpr uint32_t segment_load = 1;
constexpr uint32_t segment_note = 4;
constexpr uint32_t section_rela = 4;
constexpr uint32_t section_nobits = 8;
constexpr uint32_t section_rel = 9;
constexpr uint32_t section_dynsym = 11;
constexpr uint64_t section_allocated = 2;
constexpr uint32_t note_amdgpu_metadata = 32;

constexpr uint32_t relocation_abs64 = 3;
constexpr uint32_t relocation_relative64 = 13;
constexpr const char *relocation_names[] = {
    "R_AMDGPU_NONE",          "R_AMDGPU_ABS32_LO",      "R_AMDGPU_ABS32_HI", "R_AMDGPU_ABS64",
    "R_AMDGPU_REL32",         "R_AMDGPU_REL64",         "R_AMDGPU_ABS32",    "R_AMDGPU_GOTPCREL",
    "R_AMDGPU_GOTPCREL32_LO", "R_AMDGPU_GOTPCREL32_HI", "R_AMDGPU_REL32_LO", "R_AMDGPU_REL32_HI",
    "relocation 12",          "R_AMDGPU_RELATIVE64",    "R_AMDGPU_REL16"};

[[noreturn]] void fail(CodeObjectFault fault, const std::string &what) {
  throw CodeObjectError(fault, "code object: " + what);
}
[[noreturn]] void malformed(const std::string &what) {
  fail(CodeObjectFault::malformed, what);
}

bool fits(uint64_t offset, uint64_t size, uint64_t total) {
  return offset <= total && size <= total - offset;
}

uint64_t little_endian(const std::byte *at, int count) {
  uint64_t value = 0;
  for (int i = count - 1; i >= 0; --i)
    value = value << 8 | uint64_t(at[i]);
  return value;
}

/// A record that is known to be inside the file.
struct Record {
  const std::byte *at;

  uint64_t u64(uint64_t offset) const { return little_endian(at + offset, 8); }
  uint32_t u32(uint64_t offset) const { return uint32_t(little_endian(at + offset, 4)); }
  uint16_t u16(uint64_t offset) const { return uint16_t(little_endian(at + offset, 2)); }
  uint8_t u8(uint64_t offset) const { return uint8_t(at[offset]); }
};

TargetFeature feature(uint32_t field) {
  return TargetFeature(field & 3);
}

/// Checks the identification and the sizes of table entries, on which every reader relies.
void check_identification(const Record &header) {
  constexpr uint8_t magic[] = {0x7f, 'E', 'L', 'F'};
  for (int i = 0; i < 4; ++i)
    if (header.u8(i) != magic[i]) malformed("does not begin with the ELF magic");
  if (header.u8(4) != 2) malformed("is not a 64-bit ELF (class " + std::to_string(header.u8(4)) + ")");
  if (header.u8(5) != 1)
    malformed("is not little-endian (data encoding " + std::to_string(header.u8(5)) + ")");
  if (header.u8(6) != 1 || header.u32(20) != 1) malformed("has an unknown ELF version");
  if (header.u16(52) != elf_header_bytes)
    malformed("has an ELF header of " + std::to_string(header.u16(52)) + " bytes instead of 64");
  if (header.u16(56) != 0 && header.u16(54) != program_header_bytes)
    malformed("has program headers of " + std::to_string(header.u16(54)) + " bytes instead of 56");
  if (header.u16(60) != 0 && header.u16(58) != section_header_bytes)
    malformed("has section headers of " + std::to_string(header.u16(58)) + " bytes instead of 64");
}

} // namespace

class CodeObjectParser {
public:
  CodeObjectParser(std::span<const std::byte> elf, const Chip &wanted) : file(elf), wanted(wanted) {}

  CodeObject parse() {
    read_header();
    read_segments();
    read_sections();
    read_metadata();
    read_kernels();
    return std::move(result);
  }

private:
  struct Section {
    uint32_t type;
    uint64_t flags;
    uint64_t offset;
    uint64_t size;
    uint32_t link;
    uint64_t entry_bytes;
  };

  Record record(uint64_t offset, uint64_t size, const std::string &what) const {
    if (!fits(offset, size, file.size()))
      malformed(what + " at offset " + support::hex(offset) + ", " + std::to_string(size) +
                " bytes, is outside the " + std::to_string(file.size()) + " bytes of the file");
    return {file.data() + offset};
  }

  /// A table of `count` entries; the product cannot overflow, since both factors are small.
  Record table(uint64_t offset, uint64_t count, uint64_t entry, const std::string &what) const {
    return record(offset, count * entry, what);
  }

  /// The file bytes of [address, address + size) of the image.
  Record loaded(uint64_t address, uint64_t size, const std::string &what) const {
    for (const Segment &segment : result.loaded)
      if (address >= segment.address && fits(address - segment.address, size, segment.file.size()))
        return {segment.file.data() + (address - segment.address)};
    malformed(what + " at address " + support::hex(address) + ", " + std::to_string(size) +
              " bytes, is not within a segment's contents");
  }

  void read_header() {
    header = record(0, elf_header_bytes, "the ELF header");
    check_identification(header);
    if (header.u16(18) != machine_amdgpu)
      fail(CodeObjectFault::wrong_machine,
           "is for ELF machine " + std::to_string(header.u16(18)) + ", not AMDGPU (224)");
    if (header.u8(7) != os_abi_amdhsa)
      fail(CodeObjectFault::wrong_machine,
           "has OS ABI " + std::to_string(header.u8(7)) + ", not AMDGPU_HSA (64)");
    if (header.u16(16) != 3)
      malformed("has ELF type " + std::to_string(header.u16(16)) +
                ", not a shared object (3): it is not linked");
    const uint32_t abi = header.u8(8);
    if (abi < 2 || abi > 4)
      fail(CodeObjectFault::unsupported, "has ABI version " + std::to_string(abi) +
                                             "; 2, 3 and 4 (code object version 4, 5 and 6) are read");
    result.object_version = abi + 2;
    const uint32_t flags = header.u32(48);
    const uint32_t machine = flags & 0xff;
    // Generic targets exist from version 6 on.
    const bool generic = machine == wanted.generic_elf_machine && machine != 0 && abi >= 4;
    result.made_for = generic ? wanted.generic_name : wanted.name;
    if (machine != wanted.elf_machine && !generic)
      fail(CodeObjectFault::wrong_machine, "is for AMDGPU machine " + support::hex(machine) + ", not " +
                                               std::string(wanted.name) + " (" +
                                               support::hex(wanted.elf_machine) + ")");
    result.xnack_setting = feature(flags >> 8);
    result.sramecc_setting = feature(flags >> 10);
  }

  void read_segments() {
    const uint32_t count = header.u16(56);
    if (count == 0) malformed("has no program headers");
    const Record headers = table(header.u64(32), count, program_header_bytes, "the program header table");
    for (uint32_t i = 0; i < count; ++i) {
      const Record entry{headers.at + i * program_header_bytes};
      const uint32_t type = entry.u32(0);
      const std::string what = "segment " + std::to_string(i);
      const uint64_t offset = entry.u64(8);
      const uint64_t file_bytes = entry.u64(32);
      if (type == segment_note) {
        record(offset, file_bytes, what);
        notes.push_back(file.subspan(offset, file_bytes));
      }
      if (type != segment_load) continue;
      Segment segment;
      segment.address = entry.u64(16);
      segment.memory_bytes = entry.u64(40);
      record(offset, file_bytes, what);
      if (file_bytes > segment.memory_bytes)
        malformed(what + " has " + std::to_string(file_bytes) + " bytes in the file but only " +
                  std::to_string(segment.memory_bytes) + " in memory");
      if (!fits(segment.address, segment.memory_bytes, largest_image_bytes))
        malformed(what + " at address " + support::hex(segment.address) + ", " +
                  std::to_string(segment.memory_bytes) + " bytes, ends beyond " +
                  std::to_string(largest_image_bytes) + " bytes");
      segment.file = file.subspan(offset, file_bytes);
      const uint32_t flags = entry.u32(4);
      segment.executable = (flags & 1) != 0;
      segment.writable = (flags & 2) != 0;
      segment.readable = (flags & 4) != 0;
      for (const Segment &other : result.loaded)
        if (segment.address < other.address + other.memory_bytes &&
            other.address < segment.address + segment.memory_bytes)
          malformed(what + " at address " + support::hex(segment.address) + " overlaps the one at " +
                    support::hex(other.address));
      result.extent = std::max(result.extent, segment.address + segment.memory_bytes);
      result.loaded.push_back(segment);
    }
    if (result.loaded.empty()) malformed("has no segment to load");
  }

  void read_sections() {
    const uint32_t count = header.u16(60);
    const Record headers = table(header.u64(40), count, section_header_bytes, "the section header table");
    std::vector<Section> sections;
    for (uint32_t i = 0; i < count; ++i) {
      const Record entry{headers.at + i * section_header_bytes};
      sections.push_back(
          {entry.u32(4), entry.u64(8), entry.u64(24), entry.u64(32), entry.u32(40), entry.u64(56)});
      if (sections.back().type != section_nobits && sections.back().type != 0)
        record(sections.back().offset, sections.back().size, "section " + std::to_string(i));
    }
    for (const Section &section : sections)
      if (section.type == section_dynsym) read_symbols(section, sections);
    for (const Section &section : sections)
      if ((section.flags & section_allocated) != 0) {
        if (section.type == section_rel)
          fail(CodeObjectFault::unsupported, "has dynamic relocations without addends (SHT_REL)");
        if (section.type == section_rela) read_relocations(section);
      }
  }

  void read_symbols(const Section &section, const std::vector<Section> &sections) {
    if (section.entry_bytes != symbol_bytes)
      malformed("has symbols of " + std::to_string(section.entry_bytes) + " bytes instead of 24");
    if (section.size % symbol_bytes != 0) malformed("has a symbol table that ends inside a symbol");
    const uint64_t count = section.size / symbol_bytes;
    if (count > most_symbols)
      fail(CodeObjectFault::unsupported, "has " + std::to_string(count) + " symbols; at most 65536 are read");
    if (section.link >= sections.size() || sections[section.link].type == section_nobits)
      malformed("has a symbol table linked to section " + std::to_string(section.link) +
                ", which holds no strings");
    const Section &strings = sections[section.link];
    for (uint64_t i = 0; i < count; ++i) {
      const Record entry{file.data() + section.offset + i * symbol_bytes};
      Symbol symbol;
      symbol.name = string_at(strings, entry.u32(0), "symbol " + std::to_string(i));
      symbol.type = entry.u8(4) & 15;
      symbol.defined = entry.u16(6) != 0;
      symbol.address = entry.u64(8);
      symbol.size = entry.u64(16);
      if (symbol.defined && !fits(symbol.address, symbol.size, result.extent))
        malformed("symbol '" + symbol.name + "' at address " + support::hex(symbol.address) + ", " +
                  std::to_string(symbol.size) + " bytes, is outside the image of " +
                  std::to_string(result.extent) + " bytes");
      result.dynamic_symbols.push_back(std::move(symbol));
    }
  }

  std::string string_at(const Section &strings, uint64_t offset, const std::string &what) const {
    if (offset >= strings.size)
      malformed(what + " has its name at " + std::to_string(offset) + " of a string table of " +
                std::to_string(strings.size) + " bytes");
    const char *start = reinterpret_cast<const char *>(file.data() + strings.offset + offset);
    const void *end = std::memchr(start, 0, strings.size - offset);
    if (!end) malformed(what + " has a name without an end");
    return std::string(start, static_cast<const char *>(end));
  }

  void read_relocations(const Section &section) {
    if (section.entry_bytes != relocation_bytes)
      malformed("has relocations of " + std::to_string(section.entry_bytes) + " bytes instead of 24");
    if (section.size % relocation_bytes != 0)
      malformed("has a relocation table that ends inside a relocation");
    for (uint64_t i = 0; i < section.size / relocation_bytes; ++i) {
      const Record entry{file.data() + section.offset + i * relocation_bytes};
      const uint64_t address = entry.u64(0);
      const uint32_t type = entry.u32(8);
      const uint32_t symbol_index = entry.u32(12);
      const uint64_t addend = entry.u64(16);
      const std::string what = "relocation " + std::to_string(i);
      uint64_t value = addend;
      if (type == relocation_abs64) {
        if (symbol_index >= result.dynamic_symbols.size())
          malformed(what + " names symbol " + std::to_string(symbol_index) + " of " +
                    std::to_string(result.dynamic_symbols.size()));
        const Symbol &symbol = result.dynamic_symbols[symbol_index];
        if (!symbol.defined)
          fail(CodeObjectFault::unsupported,
               what + " needs the symbol '" + symbol.name + "', which is not defined");
        value += symbol.address;
      } else if (type != relocation_relative64) {
        const std::string name = type < std::size(relocation_names)
                                     ? relocation_names[type]
                                     : "relocation type " + std::to_string(type);
        fail(CodeObjectFault::unsupported,
             what + " is " + name + "; R_AMDGPU_RELATIVE64 and R_AMDGPU_ABS64 are applied");
      }
      const bool inside =
          std::any_of(result.loaded.begin(), result.loaded.end(), [&](const Segment &segment) {
            return address >= segment.address && fits(address - segment.address, 8, segment.memory_bytes);
          });
      if (!inside) malformed(what + " at address " + support::hex(address) + " is not within a segment");
      result.relocations.push_back({address, value});
    }
  }

  void read_metadata() {
    for (std::span<const std::byte> note_segment : notes) {
      uint64_t at = 0;
      while (at < note_segment.size()) {
        if (note_segment.size() - at < 12) malformed("has a note that ends inside its header");
        const Record note{note_segment.data() + at};
        const uint64_t name_bytes = note.u32(0);
        const uint64_t data_bytes = note.u32(4);
        const uint64_t data_at = at + 12 + (name_bytes + 3) / 4 * 4;
        if (!fits(at + 12, name_bytes, note_segment.size()) ||
            !fits(data_at, data_bytes, note_segment.size()))
          malformed("has a note of " + std::to_string(name_bytes) + " + " + std::to_string(data_bytes) +
                    " bytes that ends outside its segment");
        const bool ours = note.u32(8) == note_amdgpu_metadata && name_bytes == 7 &&
                          std::memcmp(note.at + 12, "AMDGPU", 7) == 0;
        if (ours) read_metadata_document(note_segment.subspan(data_at, data_bytes));
        at = data_at + (data_bytes + 3) / 4 * 4;
      }
    }
  }

  void read_metadata_document(std::span<const std::byte> bytes) {
    if (!metadata_kernels.empty()) malformed("has two metadata notes with kernels");
    MsgpackValue document;
    try {
      document = read_msgpack(bytes);
    } catch (const MsgpackError &error) {
      malformed(std::string("metadata: ") + error.what());
    }
    if (document.kind != MsgpackValue::Kind::map) malformed("metadata is not a map");
    const MsgpackValue *kernels = document.find("amdhsa.kernels");
    if (!kernels) return;
    if (kernels->kind != MsgpackValue::Kind::array) malformed("metadata: amdhsa.kernels is not an array");
    for (const MsgpackValue &entry : kernels->elements) {
      if (entry.kind != MsgpackValue::Kind::map) malformed("metadata: a kernel is not a map");
      metadata_kernels.push_back(read_kernel_metadata(entry));
    }
  }

  static std::string text(const MsgpackValue &map, std::string_view key, const std::string &where,
                          bool required) {
    const MsgpackValue *value = map.find(key);
    if (!value && !required) return {};
    if (!value || value->kind != MsgpackValue::Kind::string)
      malformed("metadata: " + where + " has no string " + std::string(key));
    return std::string(value->text);
  }

  static uint32_t number_or(uint32_t otherwise, const MsgpackValue &map, std::string_view key,
                            const std::string &where) {
    return map.find(key) ? number(map, key, where) : otherwise;
  }

  static uint32_t number(const MsgpackValue &map, std::string_view key, const std::string &where) {
    const MsgpackValue *value = map.find(key);
    if (!value || value->kind != MsgpackValue::Kind::unsigned_integer || value->integer > 0xffffffff)
      malformed("metadata: " + where + " has no 32-bit number " + std::string(key));
    return uint32_t(value->integer);
  }

  static Kernel read_kernel_metadata(const MsgpackValue &map) {
    Kernel kernel;
    kernel.has_metadata = true;
    kernel.name = text(map, ".name", "a kernel", true);
    const std::string where = "kernel '" + kernel.name + "'";
    const std::string symbol = text(map, ".symbol", where, true);
    if (symbol != kernel.name + ".kd")
      malformed("metadata: " + where + " has the descriptor symbol '" + symbol + "'");
    kernel.kernarg_bytes = number(map, ".kernarg_segment_size", where);
    kernel.kernarg_alignment = number_or(16, map, ".kernarg_segment_align", where);
    kernel.lds_bytes = number(map, ".group_segment_fixed_size", where);
    kernel.private_bytes = number(map, ".private_segment_fixed_size", where);
    kernel.wavefront_size = number(map, ".wavefront_size", where);
    kernel.max_workgroup_size = number(map, ".max_flat_workgroup_size", where);
    if (kernel.max_workgroup_size == 0) kernel.max_workgroup_size = Kernel().max_workgroup_size; // not given
    kernel.sgpr_count = number(map, ".sgpr_count", where);
    kernel.vgpr_count = number(map, ".vgpr_count", where);
    kernel.agpr_count = number_or(0, map, ".agpr_count", where);
    kernel.sgpr_spills = number_or(0, map, ".sgpr_spill_count", where);
    kernel.vgpr_spills = number_or(0, map, ".vgpr_spill_count", where);
    const MsgpackValue *dynamic = map.find(".uses_dynamic_stack");
    kernel.dynamic_stack = dynamic && dynamic->kind == MsgpackValue::Kind::boolean && dynamic->integer != 0;

    const MsgpackValue *arguments = map.find(".args");
    if (!arguments) return kernel;
    if (arguments->kind != MsgpackValue::Kind::array)
      malformed("metadata: " + where + " has .args that are not an array");
    for (const MsgpackValue &entry : arguments->elements) {
      const std::string which = where + " argument " + std::to_string(kernel.arguments.size());
      if (entry.kind != MsgpackValue::Kind::map) malformed("metadata: " + which + " is not a map");
      KernelArgument argument;
      argument.name = text(entry, ".name", which, false);
      argument.value_kind = text(entry, ".value_kind", which, true);
      argument.offset = number(entry, ".offset", which);
      argument.size = number(entry, ".size", which);
      if (!fits(argument.offset, argument.size, kernel.kernarg_bytes))
        malformed("metadata: " + which + " at offset " + std::to_string(argument.offset) + ", " +
                  std::to_string(argument.size) + " bytes, is outside the kernarg segment of " +
                  std::to_string(kernel.kernarg_bytes) + " bytes");
      kernel.arguments.push_back(std::move(argument));
    }
    return kernel;
  }

  KernelDescriptor read_descriptor(const Symbol &symbol) const {
    const std::string what = "kernel descriptor '" + symbol.name + "'";
    if (symbol.size != descriptor_bytes)
      malformed(what + " has " + std::to_string(symbol.size) + " bytes instead of 64");
    if (symbol.address % descriptor_bytes != 0)
      malformed(what + " at address " + support::hex(symbol.address) + " is not aligned to 64");
    const Record bytes = loaded(symbol.address, descriptor_bytes, what);
    KernelDescriptor descriptor;
    descriptor.lds_bytes = bytes.u32(0);
    descriptor.private_bytes = bytes.u32(4);
    descriptor.kernarg_bytes = bytes.u32(8);
    descriptor.entry_offset = int64_t(bytes.u64(16));
    descriptor.rsrc3 = bytes.u32(44);
    descriptor.rsrc1 = bytes.u32(48);
    descriptor.rsrc2 = bytes.u32(52);
    descriptor.properties = bytes.u16(56);
    descriptor.preload = bytes.u16(58);
    return descriptor;
  }

  void read_kernels() {
    std::set<std::string> described;
    for (const Symbol &symbol : result.dynamic_symbols) {
      if (!symbol.defined || !symbol.name.ends_with(".kd")) continue;
      const std::string name = symbol.name.substr(0, symbol.name.size() - 3);
      if (!described.insert(name).second) malformed("has two descriptors of kernel '" + name + "'");
      Kernel kernel;
      for (const Kernel &candidate : metadata_kernels)
        if (candidate.name == name) kernel = candidate;
      kernel.name = name;
      kernel.descriptor = read_descriptor(symbol);
      kernel.descriptor_address = symbol.address;
      const KernelDescriptor &descriptor = kernel.descriptor;
      kernel.kernarg_bytes = std::max(kernel.kernarg_bytes, descriptor.kernarg_bytes);
      kernel.lds_bytes = std::max(kernel.lds_bytes, descriptor.lds_bytes);
      kernel.private_bytes = std::max(kernel.private_bytes, descriptor.private_bytes);
      kernel.dynamic_stack = kernel.dynamic_stack || descriptor.dynamic_stack();
      kernel.entry_address = symbol.address + uint64_t(kernel.descriptor.entry_offset);
      const bool executable =
          std::any_of(result.loaded.begin(), result.loaded.end(), [&](const Segment &segment) {
            return segment.executable && kernel.entry_address >= segment.address &&
                   fits(kernel.entry_address - segment.address, 4, segment.file.size());
          });
      if (!executable)
        malformed("kernel '" + name + "' enters at address " + support::hex(kernel.entry_address) +
                  ", which no executable segment holds");
      if (kernel.entry_address % 256 != 0)
        malformed("kernel '" + name + "' enters at address " + support::hex(kernel.entry_address) +
                  ", not aligned to 256");
      if (const Symbol *function = result.find_symbol(name);
          function && function->address == kernel.entry_address)
        kernel.code_bytes = function->size;
      result.all_kernels.push_back(std::move(kernel));
    }
    for (const Kernel &kernel : metadata_kernels)
      if (!described.contains(kernel.name))
        malformed("metadata: kernel '" + kernel.name + "' has no descriptor symbol");
  }

  std::span<const std::byte> file;
  const Chip &wanted;
  Record header{};
  std::vector<std::span<const std::byte>> notes;
  std::vector<Kernel> metadata_kernels;
  CodeObject result;
};

uint32_t Kernel::explicit_kernarg_bytes() const {
  if (arguments.empty()) return kernarg_bytes;
  uint32_t end = 0;
  for (const KernelArgument &argument : arguments)
    if (!argument.hidden()) end = std::max(end, argument.offset + argument.size);
  return end;
}

CodeObject CodeObject::parse(std::span<const std::byte> elf, const Chip &chip) {
  return CodeObjectParser(elf, chip).parse();
}

std::string CodeObject::target_id() const {
  std::string id(made_for);
  auto append = [&id](const char *name, TargetFeature setting) {
    if (setting == TargetFeature::on || setting == TargetFeature::off)
      id += std::string(":") + name + (setting == TargetFeature::on ? "+" : "-");
  };
  append("sramecc", sramecc_setting);
  append("xnack", xnack_setting);
  return id;
}

const Kernel *CodeObject::find_kernel(std::string_view name) const {
  for (const Kernel &kernel : all_kernels)
    if (kernel.name == name) return &kernel;
  return nullptr;
}

const Symbol *CodeObject::find_symbol(std::string_view name) const {
  for (const Symbol &symbol : dynamic_symbols)
    if (symbol.defined && symbol.name == name) return &symbol;
  return nullptr;
}

void CodeObject::load(std::span<std::byte> image, uint64_t base) const {
  if (image.size() < extent)
    fail(CodeObjectFault::unsupported, "has an image of " + std::to_string(extent) +
                                           " bytes, more than the " + std::to_string(image.size()) +
                                           " given for it");
  std::fill(image.begin(), image.end(), std::byte{0});
  for (const Segment &segment : loaded)
    std::copy(segment.file.begin(), segment.file.end(), image.begin() + std::ptrdiff_t(segment.address));
  for (const Relocation &relocation : relocations) {
    const uint64_t value = relocation.value + base;
    for (int i = 0; i < 8; ++i)
      image[relocation.address + i] = std::byte(value >> (8 * i));
  }
}

uint64_t elf_file_bytes(const std::byte *image) {
  const Record header{image};
  check_identification(header);
  const uint64_t program_at = header.u64(32);
  const uint64_t section_at = header.u64(40);
  const uint64_t program_count = header.u16(56);
  const uint64_t section_count = header.u16(60);
  uint64_t end = elf_header_bytes;
  auto include = [&end](uint64_t offset, uint64_t size, const char *what) {
    if (!fits(offset, size, largest_image_bytes))
      malformed(std::string(what) + " at offset " + support::hex(offset) + ", " + std::to_string(size) +
                " bytes, ends beyond " + std::to_string(largest_image_bytes) + " bytes");
    end = std::max(end, offset + size);
  };
  include(program_at, program_count * program_header_bytes, "the program header table");
  include(section_at, section_count * section_header_bytes, "the section header table");
  for (uint64_t i = 0; i < program_count; ++i) {
    const Record entry{image + program_at + i * program_header_bytes};
    include(entry.u64(8), entry.u64(32), "a segment");
  }
  for (uint64_t i = 0; i < section_count; ++i) {
    const Record entry{image + section_at + i * section_header_bytes};
    if (entry.u32(4) != section_nobits && entry.u32(4) != 0)
      include(entry.u64(24), entry.u64(32), "a section");
  }
  return end;
}

} // namespace sluice::package

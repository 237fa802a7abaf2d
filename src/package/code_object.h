//===- code_object.h - an AMDGPU code object, read strictly ---------------------------------------------===//
//
// A loader's view of the ELF that holds gfx9 machine code: segments and relocations to build an image in
// memory, symbols, kernel descriptors, and the metadata that describes the layout of arguments. The bytes
// come from outside: every offset and count is checked before use, and the error says what is wrong.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "package/chips.h"

namespace sluice::package {

enum class CodeObjectFault : uint8_t {
  malformed,     // not an ELF, cut short, or contradicting itself
  wrong_machine, // a code object for another chip than the requested one
  unsupported,   // well formed, but not supported by our loader
};

class CodeObjectError : public std::runtime_error {
public:
  CodeObjectError(CodeObjectFault fault, const std::string &message)
      : std::runtime_error(message), kind(fault) {}
  CodeObjectFault fault() const { return kind; }

private:
  CodeObjectFault kind;
};

/// The object's setting of a feature that a device can have on or off.
enum class TargetFeature : uint8_t { unsupported, any, off, on };

/// The 64 bytes at `<kernel>.kd` (AMDGPUUsage, "Kernel Descriptor").
struct KernelDescriptor {
  uint32_t lds_bytes = 0;
  uint32_t private_bytes = 0;
  uint32_t kernarg_bytes = 0;
  int64_t entry_offset = 0; // relative to the descriptor's address
  uint32_t rsrc1 = 0;
  uint32_t rsrc2 = 0;
  uint32_t rsrc3 = 0;
  uint16_t properties = 0;
  uint16_t preload = 0;

  /// Registers of the unified file that a wave gets: ArchVGPRs and AccVGPRs together.
  uint32_t vgprs() const { return ((rsrc1 & 63) + 1) * 8; }
  /// Index in the unified file of a0.
  uint32_t accum_offset() const { return ((rsrc3 & 63) + 1) * 4; }
  /// User SGPRs hold the values that the properties ask for, in the order of these functions; then preloaded
  /// arguments.
  uint32_t user_sgprs() const { return rsrc2 >> 1 & 31; }
  bool private_segment_buffer() const { return (properties & 1) != 0; }
  bool dispatch_ptr() const { return (properties & 2) != 0; }
  bool queue_ptr() const { return (properties & 4) != 0; }
  bool kernarg_segment_ptr() const { return (properties & 8) != 0; }
  bool dispatch_id() const { return (properties & 16) != 0; }
  bool flat_scratch_init() const { return (properties & 32) != 0; }
  bool private_segment_size() const { return (properties & 64) != 0; }
  bool wave32() const { return (properties & 1 << 10) != 0; }
  bool dynamic_stack() const { return (properties & 1 << 11) != 0; }
  bool private_segment() const { return (rsrc2 & 1) != 0; }
  bool workgroup_id(int axis) const { return (rsrc2 >> (7 + axis) & 1) != 0; }
  bool workgroup_info() const { return (rsrc2 >> 10 & 1) != 0; }
  /// 0: x only; 1: x and y; 2: x, y and z in v0.
  uint32_t workitem_id() const { return rsrc2 >> 11 & 3; }
  /// Exceptions that enter a trap handler: address watch and memory violation, then the arithmetic ones.
  uint32_t exceptions() const { return (rsrc2 >> 13 & 3) | (rsrc2 >> 24 & 127) << 2; }
  /// Waves of a workgroup may run on different compute units; it then has no LDS.
  bool split_workgroups() const { return (rsrc3 >> 16 & 1) != 0; }
  /// Preloaded arguments, in dwords.
  uint32_t preload_length() const { return preload & 127; }
  uint32_t preload_offset() const { return preload >> 7; }
  /// The initial MODE register: rounding and denormals, DX10_CLAMP, IEEE and FP16_OVFL.
  uint32_t mode() const {
    return (rsrc1 >> 12 & 0xff) | (rsrc1 >> 21 & 1) << 8 | (rsrc1 >> 23 & 1) << 9 | (rsrc1 >> 26 & 1) << 23;
  }
};

struct KernelArgument {
  std::string name;
  std::string value_kind; // "global_buffer", "by_value", "hidden_block_count_x", ...
  uint32_t offset = 0;
  uint32_t size = 0;

  bool hidden() const { return value_kind.starts_with("hidden_"); }
};

struct Kernel {
  std::string name;
  uint64_t descriptor_address = 0;
  uint64_t entry_address = 0;
  uint64_t code_bytes = 0; // size of the function's symbol; 0 without a symbol
  KernelDescriptor descriptor;

  /// From the metadata; for sizes that the descriptor has too, the larger one, since tools leave either at 0.
  /// Without metadata for the kernel, `has_metadata` is false and the arguments are unknown.
  bool has_metadata = false;
  uint32_t kernarg_bytes = 0;
  uint32_t kernarg_alignment = 16;
  uint32_t lds_bytes = 0;
  uint32_t private_bytes = 0;
  uint32_t max_workgroup_size = 1024;
  uint32_t wavefront_size = 64;
  uint32_t sgpr_count = 0;
  uint32_t vgpr_count = 0;
  uint32_t agpr_count = 0;
  uint32_t sgpr_spills = 0;
  uint32_t vgpr_spills = 0;
  bool dynamic_stack = false;
  std::vector<KernelArgument> arguments;

  /// The bytes that a caller must give at least: up to the last argument that is not hidden, or the whole
  /// segment if nothing describes its layout.
  uint32_t explicit_kernarg_bytes() const;
};

struct Segment {
  uint64_t address = 0;
  uint64_t memory_bytes = 0;
  std::span<const std::byte> file; // at most memory_bytes; the rest is zero
  bool readable = false;
  bool writable = false;
  bool executable = false;
};

struct Symbol {
  std::string name;
  uint64_t address = 0;
  uint64_t size = 0;
  uint8_t type = 0; // STT_OBJECT 1, STT_FUNC 2, ...
  bool defined = false;
};

/// A parsed code object. It refers to the bytes it was parsed from, which must outlive it.
class CodeObject {
public:
  /// Refuses objects for another chip or another family. Throws CodeObjectError.
  static CodeObject parse(std::span<const std::byte> elf, const Chip &chip = *find_chip("gfx942"));

  uint32_t version() const { return object_version; } // 4, 5 or 6
  TargetFeature xnack() const { return xnack_setting; }
  TargetFeature sramecc() const { return sramecc_setting; }
  /// "gfx942:sramecc+:xnack-", without unspecified features; "gfx9-4-generic" for code that runs on any chip
  /// of that family.
  std::string target_id() const;

  const std::vector<Segment> &segments() const { return loaded; }
  const std::vector<Symbol> &symbols() const { return dynamic_symbols; }
  const std::vector<Kernel> &kernels() const { return all_kernels; }
  const Kernel *find_kernel(std::string_view name) const;
  const Symbol *find_symbol(std::string_view name) const;

  /// The image's extent: addresses of segments are below it, counted from 0.
  uint64_t image_bytes() const { return extent; }
  /// Writes segments and relocated words as they are when the image is at `base`. `image` has image_bytes()
  /// bytes; bytes outside of all segments are zeroed.
  void load(std::span<std::byte> image, uint64_t base) const;

private:
  struct Relocation {
    uint64_t address;
    uint64_t value; // to which the base is added
  };

  friend class CodeObjectParser;

  std::string_view made_for;
  uint32_t object_version = 0;
  TargetFeature xnack_setting = TargetFeature::any;
  TargetFeature sramecc_setting = TargetFeature::any;
  uint64_t extent = 0;
  std::vector<Segment> loaded;
  std::vector<Symbol> dynamic_symbols;
  std::vector<Relocation> relocations;
  std::vector<Kernel> all_kernels;
};

/// The size of an ELF file that is passed as a pointer without a size, from its own headers: the end of the
/// last of its segments, sections and tables. Reads the headers `image` claims to have; throws
/// CodeObjectError.
uint64_t elf_file_bytes(const std::byte *image);

} // namespace sluice::package

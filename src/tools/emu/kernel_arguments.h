//===- kernel_arguments.h - the arguments of a kernel ---------------------------------------------------===//
//
// The layout comes from the kernel's metadata. A code object without metadata gives only the largest number
// of bytes: arguments then follow one another, each aligned to the largest power of two up to 16 that divides
// its size. Alternatively the caller gives the byte of each value, which then is the argument's number, too.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "emulator/memory/memory.h"
#include "package/code_object.h"
#include "tools/emu/argument.h"
#include "tools/shared/npy.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace sluice::tools::emu {

class KernelArguments {
public:
  /// Makes the buffers in `memory`. `texts` are the values of --arg. Throws ToolError, naming the argument.
  KernelArguments(const package::Kernel &kernel, std::span<const std::string> texts,
                  emulator::Memory &memory);
  /// The bytes of a file (without a name: zeros), overwritten by `placed`, the values of --arg-at. Throws
  /// ToolError if the kernel takes more or declares less, or for values that exceed the bytes or overlap.
  KernelArguments(const package::Kernel &kernel, const std::string &kernarg_file,
                  std::span<const std::string> placed, emulator::Memory &memory);

  /// From the first argument to the end of the last; the machine fills in the hidden ones that compilers add
  /// after them.
  std::span<const std::byte> bytes() const { return block; }

  /// Throws ToolError, naming `option`, if argument `number` does not have its own memory.
  void expect_buffer(uint64_t number, const std::string &option) const;
  /// The current memory of argument `number`, in the shape and type in which it was given.
  NpyArray contents(uint64_t number) const;
  /// "argument 3", or for values of --arg-at "argument at byte 48".
  std::string name(uint64_t number) const;

private:
  struct Buffer {
    std::byte *memory = nullptr; // null: no bytes
    NpyType type = NpyType::u8;
    std::vector<int64_t> shape;
    uint64_t bytes = 0;
  };

  void make_buffer(uint64_t number, const Argument &argument, emulator::Memory &memory);
  /// The bytes of argument `number` for the kernel.
  std::vector<std::byte> value_of(uint64_t number, const Argument &argument) const;
  std::vector<std::byte> address_of(const BufferAddress &address) const;
  void place(const package::Kernel &kernel, size_t index, std::span<const std::byte> value);

  std::map<uint64_t, Buffer> buffers; // by the number of the argument
  std::vector<std::byte> block;
  bool numbered_by_place = false;
};

/// "y (8 bytes, global_buffer), a (4 bytes, by_value)"
std::string describe_arguments(const package::Kernel &kernel);

} // namespace sluice::tools::emu

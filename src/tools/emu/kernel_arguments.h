//===- kernel_arguments.h - what a kernel is given ------------------------------------------------------===//
//
// The layout is that of the kernel's metadata. A code object without metadata says how many bytes there are
// at most: arguments then lie one after the other, each aligned to the largest power of two up to 16 that
// divides its size.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "emulator/machine/memory.h"
#include "package/code_object.h"
#include "tools/emu/argument.h"
#include "tools/npy.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace sluice::tools::emu {

class KernelArguments {
public:
  /// Makes the buffers in `memory`. `texts` are the values of --arg. Throws ToolError, naming the argument.
  KernelArguments(const package::Kernel &kernel, std::span<const std::string> texts,
                  emulator::Memory &memory);
  /// The bytes of a file, without buffers. Throws ToolError if the kernel takes more or declares less.
  KernelArguments(const package::Kernel &kernel, const std::string &kernarg_file);

  /// From the first argument to the end of the last; what compilers add behind them is the machine's to fill.
  std::span<const std::byte> bytes() const { return block; }

  /// Throws ToolError, which names `option`, if argument `index` has no memory of its own.
  void expect_buffer(size_t index, const std::string &option) const;
  /// What the memory of argument `index` holds now, in the shape and type that it was given in.
  NpyArray contents(size_t index) const;

private:
  struct Buffer {
    std::byte *memory = nullptr; // null: the argument is no buffer, or has no bytes
    bool exists = false;
    NpyType type = NpyType::u8;
    std::vector<int64_t> shape;
    uint64_t bytes = 0;
  };

  static Buffer make_buffer(const Argument &argument, emulator::Memory &memory);
  std::vector<std::byte> value_of(const Argument &argument) const;
  void place(const package::Kernel &kernel, size_t index, std::span<const std::byte> value);

  std::vector<Buffer> buffers; // by argument
  std::vector<std::byte> block;
};

/// "y (8 bytes, global_buffer), a (4 bytes, by_value)"
std::string describe_arguments(const package::Kernel &kernel);

} // namespace sluice::tools::emu

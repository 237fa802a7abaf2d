//===- kernel_arguments.cpp - what a kernel is given ----------------------------------------------------===//

#include "tools/emu/kernel_arguments.h"

#include "tools/emu/counted.h"
#include "tools/input_file.h"
#include "tools/tool_error.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace sluice::tools::emu {

namespace {

std::vector<package::KernelArgument> explicit_arguments(const package::Kernel &kernel) {
  std::vector<package::KernelArgument> result;
  for (const package::KernelArgument &argument : kernel.arguments)
    if (!argument.hidden()) result.push_back(argument);
  return result;
}

/// The bytes that a caller has to give.
uint64_t needed_bytes(const package::Kernel &kernel) {
  uint64_t end = kernel.has_metadata ? 0 : kernel.kernarg_bytes;
  for (const package::KernelArgument &argument : explicit_arguments(kernel))
    end = std::max<uint64_t>(end, uint64_t(argument.offset) + argument.size);
  return end;
}

uint64_t natural_alignment(uint64_t bytes) {
  return std::min<uint64_t>(bytes & (0 - bytes), 16);
}

} // namespace

KernelArguments::KernelArguments(const package::Kernel &kernel, std::span<const std::string> texts,
                                 emulator::Memory &memory)
    : buffers(texts.size()) {
  if (kernel.has_metadata && texts.size() != explicit_arguments(kernel).size())
    throw ToolError(fmt::format("--arg is given {}; kernel '{}' takes {}{}{}", counted(texts.size(), "time"),
                                kernel.name, counted(explicit_arguments(kernel).size(), "argument"),
                                explicit_arguments(kernel).empty() ? "" : ": ", describe_arguments(kernel)));
  std::vector<Argument> arguments;
  auto named = [&](size_t index, auto &&action) {
    try {
      action();
    } catch (const std::exception &error) {
      throw ToolError(fmt::format("--arg {} (argument {}): {}", texts[index], index, error.what()));
    }
  };
  // All memory first: an address may be of a buffer that a later argument makes.
  for (size_t i = 0; i < texts.size(); ++i)
    named(i, [&] {
      arguments.push_back(parse_argument(texts[i]));
      buffers[i] = make_buffer(arguments[i], memory);
    });
  for (size_t i = 0; i < texts.size(); ++i)
    named(i, [&] {
      place(kernel, i, buffers[i].exists ? value_of(BufferAddress{i, 0}) : value_of(arguments[i]));
    });
  if (kernel.has_metadata) return;
  const size_t end = (block.size() + 7) / 8 * 8;
  if (kernel.kernarg_bytes != 0 && (block.size() > kernel.kernarg_bytes || end < kernel.kernarg_bytes))
    throw ToolError(
        fmt::format("the values of --arg take {} bytes; the descriptor of kernel '{}', which has no "
                    "metadata, declares {}",
                    block.size(), kernel.name, kernel.kernarg_bytes));
  block.resize(std::max<size_t>(block.size(), kernel.kernarg_bytes));
}

KernelArguments::KernelArguments(const package::Kernel &kernel, const std::string &kernarg_file)
    : block(read_file(kernarg_file, "a file with the bytes of the arguments")) {
  auto refuse = [&](const char *verb, uint64_t bytes) {
    return ToolError(fmt::format("--kernarg-file {} has {}; kernel '{}' {} {}", kernarg_file,
                                 counted(block.size(), "byte"), kernel.name, verb, bytes));
  };
  if (block.size() < needed_bytes(kernel)) throw refuse("takes", needed_bytes(kernel));
  const bool declares = kernel.has_metadata || kernel.kernarg_bytes != 0;
  if (declares && block.size() > kernel.kernarg_bytes) throw refuse("declares", kernel.kernarg_bytes);
}

KernelArguments::Buffer KernelArguments::make_buffer(const Argument &argument, emulator::Memory &memory) {
  const auto *const file = std::get_if<FileBuffer>(&argument);
  const auto *const sized = std::get_if<SizedBuffer>(&argument);
  if (!file && !sized) return {};
  NpyArray array;
  if (file) array = read_npy(file->path);
  Buffer buffer;
  buffer.exists = true;
  buffer.type = file ? array.type : sized->type;
  buffer.bytes = file ? array.bytes.size() : sized->bytes;
  buffer.shape = file ? array.shape : std::vector{int64_t(sized->bytes / npy_type_bytes(sized->type))};
  if (buffer.bytes == 0) return buffer;
  const bool undefined = sized && sized->fill == SizedBuffer::Fill::undefined;
  using Contents = emulator::Memory::Contents;
  buffer.memory = static_cast<std::byte *>(
      memory.allocate(buffer.bytes, undefined ? Contents::undefined : Contents::defined));
  if (!buffer.memory) throw ToolError(fmt::format("there is no memory for {} bytes", buffer.bytes));
  if (file)
    std::copy(array.bytes.begin(), array.bytes.end(), buffer.memory);
  else
    fill_buffer(*sized, {buffer.memory, buffer.bytes});
  return buffer;
}

std::vector<std::byte> KernelArguments::value_of(const Argument &argument) const {
  if (const auto *value = std::get_if<Value>(&argument)) return value->bytes;
  const auto &address = std::get<BufferAddress>(argument);
  if (address.argument >= buffers.size() || !buffers[address.argument].exists)
    throw ToolError(fmt::format("argument {} is no buffer (buf: or size:)", address.argument));
  const Buffer &buffer = buffers[address.argument];
  // One past the end is what kernels are given as a limit.
  if (address.offset > buffer.bytes)
    throw ToolError(fmt::format("offset {} is beyond the {} bytes of argument {}", address.offset,
                                buffer.bytes, address.argument));
  const uint64_t device = reinterpret_cast<uint64_t>(buffer.memory) + address.offset;
  std::vector<std::byte> bytes(sizeof device);
  std::memcpy(bytes.data(), &device, sizeof device);
  return bytes;
}

void KernelArguments::place(const package::Kernel &kernel, size_t index, std::span<const std::byte> value) {
  uint64_t offset = 0;
  if (kernel.has_metadata) {
    const package::KernelArgument argument = explicit_arguments(kernel)[index];
    if (argument.size != value.size())
      throw ToolError(fmt::format("has {}; kernel '{}' takes {} there ({}{}{}, at offset {})",
                                  counted(value.size(), "byte"), kernel.name, argument.size, argument.name,
                                  argument.name.empty() ? "" : ", ", argument.value_kind, argument.offset));
    offset = argument.offset;
  } else {
    const uint64_t alignment = natural_alignment(value.size());
    offset = (block.size() + alignment - 1) / alignment * alignment;
  }
  block.resize(std::max<size_t>(block.size(), offset + value.size()));
  std::copy(value.begin(), value.end(), block.begin() + ptrdiff_t(offset));
}

void KernelArguments::expect_buffer(size_t index, const std::string &option) const {
  if (index >= buffers.size() || !buffers[index].exists)
    throw ToolError(fmt::format("{}: argument {} is no buffer (buf: or size:)", option, index));
}

NpyArray KernelArguments::contents(size_t index) const {
  const Buffer &buffer = buffers[index];
  NpyArray array;
  array.type = buffer.type;
  array.shape = buffer.shape;
  array.bytes.assign(buffer.memory, buffer.memory + buffer.bytes);
  return array;
}

std::string describe_arguments(const package::Kernel &kernel) {
  std::string text;
  for (const package::KernelArgument &argument : explicit_arguments(kernel))
    text += fmt::format("{}{}{}({} bytes, {})", text.empty() ? "" : ", ", argument.name,
                        argument.name.empty() ? "" : " ", argument.size, argument.value_kind);
  return text;
}

} // namespace sluice::tools::emu

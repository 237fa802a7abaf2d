//===- kernel_arguments.cpp - the arguments of a kernel -------------------------------------------------===//

#include "tools/emu/kernel_arguments.h"

#include "tools/emu/counted.h"
#include "tools/shared/input_file.h"
#include "tools/shared/tool_error.h"

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

/// The number of bytes that a caller must give.
uint64_t needed_bytes(const package::Kernel &kernel) {
  uint64_t end = kernel.has_metadata ? 0 : kernel.kernarg_bytes;
  for (const package::KernelArgument &argument : explicit_arguments(kernel))
    end = std::max<uint64_t>(end, uint64_t(argument.offset) + argument.size);
  return end;
}

constexpr uint64_t most_unknown_bytes = 1 << 16;

/// Adds `subject` to errors of `action`.
template <typename Action> void name_errors(const std::string &subject, Action &&action) {
  try {
    action();
  } catch (const std::exception &error) {
    throw ToolError(fmt::format("{}: {}", subject, error.what()));
  }
}

uint64_t natural_alignment(uint64_t bytes) {
  return std::min<uint64_t>(bytes & (0 - bytes), 16);
}

} // namespace

KernelArguments::KernelArguments(const package::Kernel &kernel, std::span<const std::string> texts,
                                 emulator::Memory &memory) {
  if (kernel.has_metadata && texts.size() != explicit_arguments(kernel).size())
    throw ToolError(fmt::format("--arg is given {}; kernel '{}' takes {}{}{}", counted(texts.size(), "time"),
                                kernel.name, counted(explicit_arguments(kernel).size(), "argument"),
                                explicit_arguments(kernel).empty() ? "" : ": ", describe_arguments(kernel)));
  std::vector<Argument> arguments;
  auto named = [&](size_t index, auto &&action) {
    name_errors(fmt::format("--arg {} (argument {})", texts[index], index), action);
  };
  // All memory first: an address may refer to a buffer that a later argument makes.
  for (size_t i = 0; i < texts.size(); ++i)
    named(i, [&] {
      arguments.push_back(parse_argument(texts[i]));
      make_buffer(i, arguments[i], memory);
    });
  for (size_t i = 0; i < texts.size(); ++i)
    named(i, [&] { place(kernel, i, value_of(i, arguments[i])); });
  if (kernel.has_metadata) return;
  const size_t end = (block.size() + 7) / 8 * 8;
  if (kernel.kernarg_bytes != 0 && (block.size() > kernel.kernarg_bytes || end < kernel.kernarg_bytes))
    throw ToolError(
        fmt::format("the values of --arg take {} bytes; the descriptor of kernel '{}', which has no "
                    "metadata, declares {}",
                    block.size(), kernel.name, kernel.kernarg_bytes));
  block.resize(std::max<size_t>(block.size(), kernel.kernarg_bytes));
}

KernelArguments::KernelArguments(const package::Kernel &kernel, const std::string &kernarg_file,
                                 std::span<const std::string> placed, emulator::Memory &memory)
    : numbered_by_place(true) {
  const bool declares = kernel.has_metadata || kernel.kernarg_bytes != 0;
  if (!kernarg_file.empty()) {
    block = read_file(kernarg_file, "a file with the bytes of the arguments");
    auto refuse = [&](const char *verb, uint64_t bytes) {
      return ToolError(fmt::format("--kernarg-file {} has {}; kernel '{}' {} {}", kernarg_file,
                                   counted(block.size(), "byte"), kernel.name, verb, bytes));
    };
    if (block.size() < needed_bytes(kernel)) throw refuse("takes", needed_bytes(kernel));
    if (declares && block.size() > kernel.kernarg_bytes) throw refuse("declares", kernel.kernarg_bytes);
  } else {
    block.resize(kernel.explicit_kernarg_bytes());
  }

  std::vector<PlacedArgument> arguments;
  auto named = [&](size_t index, auto &&action) { name_errors("--arg-at " + placed[index], action); };
  for (size_t i = 0; i < placed.size(); ++i)
    named(i, [&] {
      arguments.push_back(parse_placed_argument(placed[i]));
      make_buffer(arguments[i].offset, arguments[i].value, memory);
    });
  std::map<uint64_t, size_t> ends; // ends of the values so far, by their beginnings
  for (size_t i = 0; i < placed.size(); ++i)
    named(i, [&] {
      const uint64_t offset = arguments[i].offset;
      const std::vector<std::byte> value = value_of(offset, arguments[i].value);
      const uint64_t limit = declares || !kernarg_file.empty() ? block.size() : most_unknown_bytes;
      if (offset > limit || value.size() > limit - offset)
        throw ToolError(fmt::format("its {} end beyond the {} of arguments that {}",
                                    counted(value.size(), "byte"), limit,
                                    !kernarg_file.empty() ? "--kernarg-file has"
                                    : declares            ? fmt::format("kernel '{}' takes", kernel.name)
                                                          : "a kernel may have that declares no arguments"));
      for (const auto &[begin, end] : ends)
        if (offset < end && begin < offset + value.size())
          throw ToolError(fmt::format("its bytes {} to {} are also those of the value at {}", offset,
                                      offset + value.size() - 1, begin));
      ends[offset] = offset + value.size();
      block.resize(std::max<size_t>(block.size(), offset + value.size()));
      std::copy(value.begin(), value.end(), block.begin() + ptrdiff_t(offset));
    });
}

void KernelArguments::make_buffer(uint64_t number, const Argument &argument, emulator::Memory &memory) {
  const auto *const file = std::get_if<FileBuffer>(&argument);
  const auto *const sized = std::get_if<SizedBuffer>(&argument);
  if (!file && !sized) return;
  NpyArray array;
  if (file) array = read_npy(file->path);
  Buffer buffer;
  buffer.type = file ? array.type : sized->type->stored;
  buffer.bytes = file ? array.bytes.size() : sized->bytes;
  buffer.shape = file ? array.shape : std::vector{int64_t(sized->bytes / sized->type->bytes())};
  if (buffer.bytes != 0) {
    const bool undefined = sized && sized->fill == SizedBuffer::Fill::undefined;
    using Contents = emulator::Memory::Contents;
    buffer.memory = static_cast<std::byte *>(
        memory.allocate(buffer.bytes, undefined ? Contents::undefined : Contents::defined));
    if (!buffer.memory) throw ToolError(fmt::format("{} bytes of memory cannot be allocated", buffer.bytes));
    if (file)
      std::copy(array.bytes.begin(), array.bytes.end(), buffer.memory);
    else
      fill_buffer(*sized, {buffer.memory, buffer.bytes});
  }
  if (!buffers.emplace(number, std::move(buffer)).second)
    throw ToolError("there is a value at this byte already");
}

std::vector<std::byte> KernelArguments::value_of(uint64_t number, const Argument &argument) const {
  if (const auto *value = std::get_if<Value>(&argument)) return value->bytes;
  if (const auto *address = std::get_if<BufferAddress>(&argument)) return address_of(*address);
  return address_of({number, 0});
}

std::vector<std::byte> KernelArguments::address_of(const BufferAddress &address) const {
  const auto found = buffers.find(address.argument);
  if (found == buffers.end())
    throw ToolError(fmt::format("{} is not a buffer (buf: or size:)", name(address.argument)));
  const Buffer &buffer = found->second;
  // Kernels may be given the address one past the end, as a limit.
  if (address.offset > buffer.bytes)
    throw ToolError(fmt::format("offset {} is beyond the {} bytes of {}", address.offset, buffer.bytes,
                                name(address.argument)));
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

void KernelArguments::expect_buffer(uint64_t number, const std::string &option) const {
  if (!buffers.contains(number))
    throw ToolError(fmt::format("{}: {} is not a buffer (buf: or size:)", option, name(number)));
}

NpyArray KernelArguments::contents(uint64_t number) const {
  const Buffer &buffer = buffers.at(number);
  NpyArray array;
  array.type = buffer.type;
  array.shape = buffer.shape;
  array.bytes.assign(buffer.memory, buffer.memory + buffer.bytes);
  return array;
}

std::string KernelArguments::name(uint64_t number) const {
  return fmt::format("argument {}{}", numbered_by_place ? "at byte " : "", number);
}

std::string describe_arguments(const package::Kernel &kernel) {
  std::string text;
  for (const package::KernelArgument &argument : explicit_arguments(kernel))
    text += fmt::format("{}{}{}({} bytes, {})", text.empty() ? "" : ", ", argument.name,
                        argument.name.empty() ? "" : " ", argument.size, argument.value_kind);
  return text;
}

} // namespace sluice::tools::emu

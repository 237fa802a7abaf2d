//===- module.cpp - loaded code objects and their kernels -----------------------------------------------===//
#include "emulator/hip/module.h"

#include <algorithm>
#include <cstring>

#include "emulator/hip/device.h"
#include "emulator/hip/error.h"

namespace sluice::emulator::hip {

namespace {

using package::CodeObject;
using package::CodeObjectError;
using package::CodeObjectFault;
using package::Kernel;
using package::KernelArgument;
using package::TargetFeature;

CodeObject parse(const std::vector<std::byte> &elf) {
  try {
    CodeObject object = CodeObject::parse(elf);
    // The device is sramecc+ and xnack-.
    require(object.xnack() != TargetFeature::on && object.sramecc() != TargetFeature::off,
            hipErrorNoBinaryForGpu);
    return object;
  } catch (const CodeObjectError &error) {
    throw Failure(error.fault() == CodeObjectFault::wrong_machine ? hipErrorNoBinaryForGpu
                                                                  : hipErrorInvalidImage);
  }
}

} // namespace

Module::Module(std::vector<std::byte> elf, int device)
    : bytes(std::move(elf)), code_object(parse(bytes)), on_device(device) {
  try {
    loaded = std::make_unique<Program>(bytes);
  } catch (const std::runtime_error &) {
    throw Failure(hipErrorInvalidImage);
  }
  std::byte *const image = loaded->image().data();
  for (const package::Segment &segment : code_object.segments()) {
    if (segment.memory_bytes == 0) continue;
    std::byte *const start = image + segment.address;
    if (Device::get().memory().attach(start, segment.memory_bytes, segment.writable, uint8_t(device)))
      attached.push_back(start);
  }
}

Module::~Module() {
  for (void *start : attached)
    Device::get().memory().detach(start);
}

std::vector<std::byte> kernel_arguments(const Kernel &kernel, void **parameters, void **extra) {
  require(parameters == nullptr || extra == nullptr, hipErrorInvalidValue);
  const uint32_t explicit_end = kernel.explicit_kernarg_bytes();
  uint32_t hidden_start = kernel.kernarg_bytes;
  for (const KernelArgument &argument : kernel.arguments)
    if (argument.hidden()) hidden_start = std::min(hidden_start, argument.offset);

  if (extra != nullptr) {
    const auto word = [extra](int index) { return reinterpret_cast<uintptr_t>(extra[index]); };
    require(word(0) == launch_buffer_pointer && word(2) == launch_buffer_size && word(4) == launch_end,
            hipErrorInvalidValue);
    const auto *const given = static_cast<const std::byte *>(extra[1]);
    require(extra[3] != nullptr, hipErrorInvalidValue);
    size_t size;
    std::memcpy(&size, extra[3], sizeof size);
    require((given != nullptr || size == 0) && size >= explicit_end, hipErrorInvalidValue);
    require(in_address_space(reinterpret_cast<uint64_t>(given), size), hipErrorInvalidValue);
    // Only the arguments in the buffer are the kernel's. If the kernel does not describe its arguments, all
    // of the buffer is.
    const bool known = kernel.has_metadata || kernel.kernarg_bytes != 0;
    const size_t taken = known ? std::min<size_t>(size, std::max(explicit_end, hidden_start)) : size;
    return {given, given + taken};
  }
  std::vector<std::byte> buffer(explicit_end);
  if (explicit_end == 0) return buffer;
  require(parameters != nullptr && !kernel.arguments.empty(), hipErrorInvalidValue);
  size_t index = 0;
  for (const KernelArgument &argument : kernel.arguments) {
    if (argument.hidden()) continue;
    const void *const value = parameters[index++];
    require(value != nullptr, hipErrorInvalidValue);
    std::memcpy(buffer.data() + argument.offset, value, argument.size);
  }
  return buffer;
}

} // namespace sluice::emulator::hip

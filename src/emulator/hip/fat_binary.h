//===- fat_binary.h - the code images that programs pass to HIP -----------------------------------------===//
#pragma once

#include <cstddef>
#include <vector>

namespace sluice::emulator::hip {

/// The code object for this device in an image of unknown size: an ELF, or an offload bundle, plain or
/// compressed, with one. Throws Failure.
std::vector<std::byte> code_object_of_image(const void *image);
/// The same for a file. Throws Failure(hipErrorFileNotFound) if it cannot be opened.
std::vector<std::byte> code_object_of_file(const char *path);

} // namespace sluice::emulator::hip

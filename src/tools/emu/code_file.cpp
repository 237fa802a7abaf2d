//===- code_file.cpp - the code object that a command works on
//-------------------------------------------===//

#include "tools/emu/code_file.h"

#include "emulator/machine/program.h"
#include "package/offload_bundle.h"
#include "tools/input_file.h"
#include "tools/tool_error.h"

#include <cstring>
#include <fmt/format.h>
#include <string_view>

namespace sluice::tools::emu {

namespace {

constexpr std::string_view bundle_magic = "__CLANG_OFFLOAD_BUNDLE__";
constexpr std::string_view chip = "-amdgcn-amd-amdhsa--gfx942";

std::span<const std::byte> from_bundle(std::span<const std::byte> bundle) {
  std::string ids;
  for (const package::BundleEntry &entry : package::read_bundle(bundle)) {
    const size_t at = entry.id.find(chip);
    const std::string_view rest = std::string_view(entry.id).substr(std::min(at, entry.id.size()));
    if (rest == chip || rest.starts_with(std::string(chip) + ":")) return entry.code;
    ids += (ids.empty() ? "" : ", ") + entry.id;
  }
  throw ToolError(fmt::format("the bundle has no entry for gfx942; it has {}", ids));
}

} // namespace

std::unique_ptr<emulator::Program> load_code(const std::string &path) {
  const std::vector<std::byte> bytes = read_file(path, "a code object");
  try {
    std::span<const std::byte> elf = bytes;
    if (bytes.size() > bundle_magic.size() &&
        std::memcmp(bytes.data(), bundle_magic.data(), bundle_magic.size()) == 0)
      elf = from_bundle(bytes);
    auto program = std::make_unique<emulator::Program>(elf);
    using package::TargetFeature;
    const package::CodeObject &object = code_object(*program);
    if (object.xnack() == TargetFeature::on || object.sramecc() == TargetFeature::off)
      throw ToolError(
          fmt::format("is compiled for {}; the machine is gfx942:sramecc+:xnack-", object.target_id()));
    return program;
  } catch (const std::exception &error) {
    throw ToolError(fmt::format("{}: {}", path, error.what()));
  }
}

const package::CodeObject &code_object(const emulator::Program &program) {
  return program.impl().object;
}

const package::Kernel &find_kernel(const emulator::Program &program, const std::string &name) {
  if (const package::Kernel *kernel = code_object(program).find_kernel(name)) return *kernel;
  std::string names;
  for (const emulator::KernelInfo &kernel : program.kernels())
    names += (names.empty() ? "" : ", ") + kernel.name;
  throw ToolError(
      fmt::format("--kernel is '{}'; the code object has {}", name, names.empty() ? "no kernels" : names));
}

} // namespace sluice::tools::emu

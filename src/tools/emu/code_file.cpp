//===- code_file.cpp - the code object that a command works on ------------------------------------------===//

#include "tools/emu/code_file.h"

#include "emulator/machine/program.h"
#include "package/offload_bundle.h"
#include "tools/input_file.h"
#include "tools/tool_error.h"

#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <fmt/format.h>
#include <string_view>

namespace sluice::tools::emu {

namespace {

constexpr std::string_view bundle_magic = "__CLANG_OFFLOAD_BUNDLE__";
// Code for the chip itself comes before code for its family.
constexpr std::string_view targets[] = {"-amdgcn-amd-amdhsa--gfx942", "-amdgcn-amd-amdhsa--gfx9-4-generic"};

std::span<const std::byte> from_bundle(std::span<const std::byte> bundle) {
  const std::vector<package::BundleEntry> entries = package::read_bundle(bundle);
  for (std::string_view target : targets)
    for (const package::BundleEntry &entry : entries) {
      const size_t at = entry.id.find(target);
      const std::string_view rest = std::string_view(entry.id).substr(std::min(at, entry.id.size()));
      if (rest == target || rest.starts_with(std::string(target) + ":")) return entry.code;
    }
  std::string ids;
  for (const package::BundleEntry &entry : entries)
    ids += (ids.empty() ? "" : ", ") + entry.id;
  throw ToolError(fmt::format("the bundle has no entry for gfx942; it has {}", ids));
}

/// What C++ calls a function: "void f<int>(float*, int)"; empty for names that C++ did not make.
std::string demangled(const std::string &symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  return symbol.starts_with("_Z") && text ? text.get() : "";
}

/// The function's name alone: "f<int>".
std::string_view without_parameters(std::string_view function) {
  // From the end to the parenthesis that opens the parameters, then to the space behind the result's type.
  int depth = 0;
  size_t at = function.size();
  while (at != 0) {
    --at;
    const char c = function[at];
    depth += (c == ')' || c == '>') - (c == '(' || c == '<');
    if (depth == 0 && c == '(') break;
  }
  const size_t end = at;
  while (at != 0 && (depth != 0 || function[at - 1] != ' ')) {
    --at;
    const char c = function[at];
    depth += (c == ')' || c == '>') - (c == '(' || c == '<');
  }
  return function.substr(at, end - at);
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
  std::vector<const package::Kernel *> found;
  for (const package::Kernel &kernel : code_object(program).kernels()) {
    const std::string function = demangled(kernel.name);
    if (!name.empty() && (name == function || name == without_parameters(function))) found.push_back(&kernel);
  }
  if (found.size() == 1) return *found[0];
  if (found.size() > 1)
    throw ToolError(fmt::format("--kernel is '{}', which could be {} or {}", name, demangled(found[0]->name),
                                demangled(found[1]->name)));
  std::string names;
  for (const emulator::KernelInfo &kernel : program.kernels())
    names += (names.empty() ? "" : ", ") + kernel.name;
  throw ToolError(
      fmt::format("--kernel is '{}'; the code object has {}", name, names.empty() ? "no kernels" : names));
}

} // namespace sluice::tools::emu

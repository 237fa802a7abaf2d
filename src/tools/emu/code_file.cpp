//===- code_file.cpp - the code object of a command -----------------------------------------------------===//

#include "tools/emu/code_file.h"

#include "emulator/machine/program.h"
#include "package/offload_bundle.h"
#include "tools/shared/input_file.h"
#include "tools/shared/tool_error.h"

#include <cstdlib>
#include <cxxabi.h>
#include <fmt/format.h>
#include <string_view>

namespace sluice::tools::emu {

namespace {

constexpr std::string_view features[] = {"sramecc+", "xnack-"};

std::span<const std::byte> from_bundle(std::span<const std::byte> bundle) {
  const std::vector<package::BundleEntry> entries = package::read_bundle(bundle);
  if (const auto *entry = package::select_entry(entries, *package::find_chip("gfx942"), features))
    return entry->code;
  std::string ids;
  for (const package::BundleEntry &entry : entries)
    ids += (ids.empty() ? "" : ", ") + entry.id;
  throw ToolError(fmt::format("the bundle has no entry for gfx942; it has {}", ids));
}

/// The name of a function in C++: "void f<int>(float*, int)"; empty for symbols that are not C++ names.
std::string demangled(const std::string &symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  return symbol.starts_with("_Z") && text ? text.get() : "";
}

/// Only the function's name: "f<int>".
std::string_view without_parameters(std::string_view function) {
  // From the end to the parenthesis that opens the parameters, then to the space after the result's type.
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
    std::vector<std::byte> bundle;
    constexpr size_t shortest_file = 24;
    if (bytes.size() > shortest_file) switch (package::bundle_form(bytes.data())) {
      case package::BundleForm::compressed:
        bundle = package::decompress_bundle(bytes);
        elf = from_bundle(bundle);
        break;
      case package::BundleForm::plain:
        elf = from_bundle(bytes);
        break;
      case package::BundleForm::none:
        break;
      }
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

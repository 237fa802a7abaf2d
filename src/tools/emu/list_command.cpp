//===- list_command.cpp - sluice-emu list: the kernels of a code object ---------------------------------===//

#include "tools/emu/code_file.h"
#include "tools/emu/commands.h"
#include "tools/emu/counted.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace sluice::tools::emu {

namespace {

using nlohmann::ordered_json;

/// A row of both outputs: the key in JSON, the words in text, and the number.
struct Fact {
  const char *key;
  const char *text;
  uint64_t value;
};

std::vector<Fact> facts(const package::Kernel &kernel, const emulator::KernelInfo &info) {
  return {
      {"entry", "entry address", info.entry},
      {"descriptor", "descriptor address", info.descriptor},
      {"code_bytes", "bytes of code, by its symbol", kernel.code_bytes},
      {"vgprs", "vector registers granted, v and a together", info.vgprs},
      {"accum_offset", "of them before a0", info.accum_offset},
      {"sgprs", "scalar registers granted", info.sgprs},
      {"vgpr_spills", "spilled vector registers", kernel.vgpr_spills},
      {"sgpr_spills", "spilled scalar registers", kernel.sgpr_spills},
      {"lds_bytes", "bytes of LDS, before --lds-bytes", info.lds_bytes},
      {"scratch_bytes", "bytes of scratch per work-item", info.scratch_bytes},
      {"max_workgroup_threads", "work-items per workgroup at most", info.max_workgroup_threads},
      {"kernarg_bytes", "bytes of arguments, hidden ones included", info.kernarg_bytes},
      {"kernarg_alignment", "their alignment", kernel.kernarg_alignment},
  };
}

bool is_address(const Fact &fact) {
  return std::string_view(fact.text).ends_with("address");
}

void print_text(const package::Kernel &kernel, const emulator::KernelInfo &info) {
  fmt::print("\n{}\n", kernel.name);
  for (const Fact &fact : facts(kernel, info))
    fmt::print("  {:>8}  {}\n",
               is_address(fact) ? fmt::format("{:#x}", fact.value) : std::to_string(fact.value), fact.text);
  if (!kernel.has_metadata) {
    fmt::print("  no metadata: the arguments are unknown\n");
    return;
  }
  size_t index = 0;
  for (const package::KernelArgument &argument : kernel.arguments)
    fmt::print("  argument {:>2}  offset {:>3}  {:>2} bytes  {}{}{}\n",
               argument.hidden() ? std::string("-") : std::to_string(index++), argument.offset, argument.size,
               argument.value_kind, argument.name.empty() ? "" : "  ", argument.name);
}

ordered_json to_json(const package::Kernel &kernel, const emulator::KernelInfo &info) {
  ordered_json json = {{"name", kernel.name}};
  for (const Fact &fact : facts(kernel, info))
    json[fact.key] = fact.value;
  json["has_metadata"] = kernel.has_metadata;
  json["arguments"] = ordered_json::array();
  for (const package::KernelArgument &argument : kernel.arguments)
    json["arguments"].push_back({{"name", argument.name},
                                 {"kind", argument.value_kind},
                                 {"offset", argument.offset},
                                 {"size", argument.size},
                                 {"hidden", argument.hidden()}});
  return json;
}

} // namespace

int list_command(const ListOptions &options) {
  const std::unique_ptr<emulator::Program> program = load_code(options.code_file);
  const package::CodeObject &object = code_object(*program);
  ordered_json kernels = ordered_json::array();
  if (!options.json)
    fmt::print("{}: {}, code object version {}, {}\n", options.code_file, object.target_id(),
               object.version(), counted(object.kernels().size(), "kernel"));
  for (const package::Kernel &kernel : object.kernels()) {
    const emulator::KernelInfo &info = *program->kernel(kernel.name);
    if (options.json)
      kernels.push_back(to_json(kernel, info));
    else
      print_text(kernel, info);
  }
  if (options.json) {
    const ordered_json json = {{"file", options.code_file},
                               {"target", object.target_id()},
                               {"code_object_version", object.version()},
                               {"kernels", kernels}};
    fmt::print("{}\n", json.dump(2));
  }
  return 0;
}

} // namespace sluice::tools::emu

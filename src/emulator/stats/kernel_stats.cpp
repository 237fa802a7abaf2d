//===- kernel_stats.cpp - static figures of a kernel, from its machine code -----------------------------===//
//
// Wait counts are read from the encodings, not from text: they are the low 16 bits of SOPP.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/stats/kernel_stats.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <stdexcept>

#include "emulator/stats/control_flow.h"
#include "support/hex.h"

namespace sluice::emulator {

namespace {

bool waits_for_all_memory(const CodeInstruction &instruction) {
  return instruction.facts->role == Role::wait_counts && wait_counts(instruction.word).vector == 0;
}

InstructionMix mix_of(std::span<const CodeInstruction> code, const ControlFlow::Indices &chosen) {
  InstructionMix mix;
  for (const size_t i : chosen) {
    mix.add(code[i].instruction_class, *code[i].facts);
    mix.waits_for_all_memory = mix.waits_for_all_memory || waits_for_all_memory(code[i]);
  }
  return mix;
}

InstructionMix mix_of(std::span<const CodeInstruction> code) {
  ControlFlow::Indices all(code.size());
  std::iota(all.begin(), all.end(), size_t(0));
  return mix_of(code, all);
}

std::vector<LoopStats> loops_of(std::span<const CodeInstruction> code, const ControlFlow &flow) {
  std::vector<LoopStats> loops;
  for (size_t end = 0; end < code.size(); ++end) {
    const CodeInstruction &branch = code[end];
    if (!branch.target || *branch.target > branch.address) continue;
    size_t start = end + 1;
    while (start > 0 && code[start - 1].address >= *branch.target)
      --start;
    LoopStats loop{code[start].address, branch.address, true, mix_of(code, flow.loop(start, end))};
    if (loop.mix[InstructionClass::matrix] != 0) loops.push_back(std::move(loop));
  }
  std::sort(loops.begin(), loops.end(), [](const LoopStats &x, const LoopStats &y) {
    return x.first != y.first ? x.first < y.first : x.last < y.last;
  });
  for (LoopStats &loop : loops)
    for (const LoopStats &other : loops)
      if (&other != &loop && other.first >= loop.first && other.last <= loop.last) loop.innermost = false;
  return loops;
}

// ---- JSON ------------------------------------------------------------------------------------------------

std::string hex(uint64_t value) {
  return '"' + support::hex(value) + '"';
}

std::string mix_json(const InstructionMix &mix) {
  std::string text = "\"instructions\": {\"total\": " + std::to_string(mix.total());
  for (size_t i = 0; i < instruction_class_count; ++i)
    text += ", " + json_string(class_name(InstructionClass(i))) + ": " + std::to_string(mix.count[i]);
  text += "}, \"mfma\": {";
  const char *separator = "";
  for (const auto &[mnemonic, count] : mix.mfma) {
    text += separator + json_string(mnemonic) + ": " + std::to_string(count);
    separator = ", ";
  }
  return text + "}, \"mfma_clk\": " + std::to_string(mix.mfma_clk) +
         ", \"issue_clk\": " + std::to_string(mix.issue_clk()) +
         ", \"vmcnt0\": " + (mix.waits_for_all_memory ? "true" : "false");
}

std::string bound_json(const Bound &bound) {
  const auto number = [](double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", value);
    return std::string(text);
  };
  std::string text = "\"bound_percent\": " + number(bound.percent) +
                     ", \"binds\": " + json_string(slot_name(bound.binds)) +
                     ", \"alone_clk\": " + number(bound.alone_clk) + ", \"slot_clk\": {";
  for (size_t i = 0; i < bound_slot_count; ++i)
    text += (i == 0 ? "" : ", ") + json_string(slot_name(BoundSlot(i))) + ": " + number(bound.clk[i]);
  return text + "}";
}

} // namespace

KernelStats kernel_stats(std::span<const std::byte> elf, std::string_view name) {
  const package::CodeObject object = package::CodeObject::parse(elf);
  const package::Kernel *const kernel = object.find_kernel(name);
  if (!kernel) throw std::runtime_error("the code object has no kernel '" + std::string(name) + "'");
  std::span<const std::byte> code;
  for (const package::Segment &segment : object.segments())
    if (kernel->entry_address >= segment.address &&
        kernel->entry_address < segment.address + segment.file.size())
      code = segment.file.subspan(kernel->entry_address - segment.address);
  if (kernel->code_bytes == 0 || kernel->code_bytes > code.size())
    throw std::runtime_error("the symbol of kernel '" + kernel->name + "' does not say how long its code is");

  KernelStats stats;
  stats.kernel = *kernel;
  stats.target = object.target_id();
  stats.code_object_version = object.version();
  stats.occupancy =
      package::occupancy(kernel->descriptor.vgprs(), kernel->lds_bytes, kernel->max_workgroup_size);
  const std::vector<CodeInstruction> instructions =
      decode_code(code.first(kernel->code_bytes), kernel->entry_address);
  const ControlFlow flow(instructions);
  stats.mix = mix_of(instructions);
  stats.loops = loops_of(instructions, flow);
  if (const std::optional<ControlFlow::Indices> way = flow.usual_way())
    stats.way = {
        instructions[way->front()].address, mix_of(instructions, *way),
        bound_of(instructions, *way, stats.occupancy, (std::max(kernel->max_workgroup_size, 1u) + 63) / 64)};
  return stats;
}

std::string kernel_stats_json(std::span<const std::byte> elf, std::string_view name) {
  const KernelStats stats = kernel_stats(elf, name);
  const package::Kernel &kernel = stats.kernel;
  std::string text =
      "{\"kernel\": " + json_string(kernel.name) + ", \"target\": " + json_string(stats.target);
  auto field = [&text](const char *key, uint64_t value) {
    text += ", \"" + std::string(key) + "\": " + std::to_string(value);
  };
  field("code_object_version", stats.code_object_version);
  field("vgprs", kernel.has_metadata ? kernel.vgpr_count : kernel.descriptor.vgprs());
  field("agprs", kernel.agpr_count);
  field("sgprs", kernel.sgpr_count);
  field("vgprs_allocated", kernel.descriptor.vgprs());
  field("accum_offset", kernel.descriptor.accum_offset());
  field("lds_bytes", kernel.lds_bytes);
  field("scratch_bytes", kernel.private_bytes);
  field("vgpr_spills", kernel.vgpr_spills);
  field("sgpr_spills", kernel.sgpr_spills);
  field("kernarg_bytes", kernel.kernarg_bytes);
  field("max_workgroup_threads", kernel.max_workgroup_size);
  field("code_bytes", kernel.code_bytes);
  text += ", \"occupancy\": {\"workgroups_per_cu\": " + std::to_string(stats.occupancy.workgroups_per_cu) +
          ", \"waves_per_simd\": " + std::to_string(stats.occupancy.waves_per_simd) +
          ", \"limit\": " + json_string(stats.occupancy.limit) + "}, " + mix_json(stats.mix) +
          ", \"loops\": [";
  const char *separator = "";
  for (const LoopStats &loop : stats.loops) {
    text += separator + std::string("{\"first\": ") + hex(loop.first) + ", \"last\": " + hex(loop.last) +
            ", \"innermost\": " + (loop.innermost ? "true" : "false") + ", " + mix_json(loop.mix) + "}";
    separator = ", ";
  }
  text += "]";
  if (stats.way)
    text += ", \"way\": {\"first\": " + hex(stats.way->first) + ", " + mix_json(stats.way->mix) + ", " +
            bound_json(stats.way->bound) + "}";
  return text + "}";
}

std::string json_string(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (uint8_t(c) < 0x20 || uint8_t(c) > 0x7e) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", unsigned(uint8_t(c)));
      result += escape;
    } else {
      result += c;
    }
  }
  return result + "\"";
}

} // namespace sluice::emulator

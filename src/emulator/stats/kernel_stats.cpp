//===- kernel_stats.cpp - static figures of a kernel, from its machine code -----------------------------===//
//
// Branch targets and wait counts are read from the encodings rather than from text: both are fields of the
// SOPP format, whose low 16 bits are the immediate.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/stats/kernel_stats.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <stdexcept>

#include "emulator/isa/disassembler.h"

namespace sluice::emulator {

namespace {

struct Decoded {
  uint64_t address;
  uint32_t bytes;
  uint32_t word; // the first of the encoding
  std::string mnemonic;
  InstructionClass instruction_class;
};

uint32_t word_at(std::span<const std::byte> bytes) {
  uint32_t word = 0;
  for (size_t i = 0; i < 4; ++i)
    word |= uint32_t(bytes[i]) << (8 * i);
  return word;
}

std::vector<Decoded> decode(std::span<const std::byte> code, uint64_t address) {
  Disassembler disassembler;
  std::vector<Decoded> result;
  while (code.size() >= 4) {
    const auto instruction = disassembler.decode(code, address);
    Decoded decoded{address, 4, word_at(code), {}, InstructionClass::unknown};
    if (instruction) {
      decoded.bytes = instruction->bytes;
      decoded.mnemonic = instruction->mnemonic;
      decoded.instruction_class = classify(instruction->mnemonic, instruction->text);
    }
    const uint32_t bytes = decoded.bytes;
    result.push_back(std::move(decoded));
    code = code.subspan(bytes);
    address += bytes;
  }
  return result;
}

int32_t immediate(const Decoded &instruction) {
  return int16_t(instruction.word & 0xffff);
}

uint64_t branch_target(const Decoded &branch) {
  return branch.address + 4 + uint64_t(int64_t(immediate(branch)) * 4);
}

/// vmcnt is split: bits 15:14 above bits 3:0.
bool waits_for_all_memory(const Decoded &instruction) {
  return instruction.mnemonic == "s_waitcnt" && (instruction.word & 0xc00f) == 0;
}

InstructionMix mix_of(std::span<const Decoded> instructions) {
  InstructionMix mix;
  for (const Decoded &instruction : instructions) {
    mix.add(instruction.instruction_class, instruction.mnemonic);
    mix.waits_for_all_memory = mix.waits_for_all_memory || waits_for_all_memory(instruction);
  }
  return mix;
}

/// The instructions of a loop that a branch back closes: those from which the branch is reached without
/// passing its target. Where the loop is entered elsewhere, those that are reached from the target and reach
/// the branch. None if the branch is not reached from its target: then it only jumps to code that stands
/// further up, as code that the compiler has moved out of the way does.
class LoopFinder {
public:
  explicit LoopFinder(std::span<const Decoded> instructions)
      : before(instructions.size()), behind(instructions.size()) {
    std::map<uint64_t, size_t> index;
    for (size_t i = 0; i < instructions.size(); ++i)
      index[instructions[i].address] = i;
    const auto add = [this](size_t from, size_t to) {
      behind[from].push_back(to);
      before[to].push_back(from);
    };
    for (size_t i = 0; i < instructions.size(); ++i) {
      const Decoded &here = instructions[i];
      if (here.instruction_class == InstructionClass::branch)
        if (const auto target = index.find(branch_target(here)); target != index.end())
          add(i, target->second);
      if (here.mnemonic != "s_branch" && here.mnemonic != "s_endpgm" && i + 1 < instructions.size())
        add(i, i + 1);
    }
  }

  std::vector<size_t> find(size_t target, size_t branch) const {
    const std::vector<bool> reached = reach(target, behind);
    if (!reached[branch]) return {};
    std::vector<bool> reaching = reach(branch, before, target);
    if (reaching[0] && target != 0) reaching = reach(branch, before);
    std::vector<size_t> body;
    for (size_t i = 0; i < reached.size(); ++i)
      if (reached[i] && reaching[i]) body.push_back(i);
    return body;
  }

private:
  using Edges = std::vector<std::vector<size_t>>;

  /// What is reached from `start` without going on from `end`.
  static std::vector<bool> reach(size_t start, const Edges &edges, size_t end = SIZE_MAX) {
    std::vector<bool> reached(edges.size());
    std::vector<size_t> pending = {start};
    reached[start] = true;
    while (!pending.empty()) {
      const size_t here = pending.back();
      pending.pop_back();
      if (here == end) continue;
      for (const size_t next : edges[here]) {
        if (reached[next]) continue;
        reached[next] = true;
        pending.push_back(next);
      }
    }
    return reached;
  }

  Edges before, behind; // instructions from which one is reached, and that it reaches
};

std::vector<LoopStats> loops_of(std::span<const Decoded> instructions) {
  std::vector<LoopStats> loops;
  const LoopFinder finder(instructions);
  for (size_t end = 0; end < instructions.size(); ++end) {
    const Decoded &branch = instructions[end];
    if (branch.instruction_class != InstructionClass::branch || branch_target(branch) > branch.address)
      continue;
    size_t start = end + 1;
    while (start > 0 && instructions[start - 1].address >= branch_target(branch))
      --start;
    std::vector<Decoded> body;
    for (const size_t i : finder.find(start, end))
      body.push_back(instructions[i]);
    LoopStats loop{instructions[start].address, branch.address, true, mix_of(body)};
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

/// Finds the usual way around the loop with the most MFMAs: over the basic blocks that lead from where it is
/// entered back there, with the most MFMAs, and of as many with the fewest instructions. Beside loops inside
/// of it if that is possible: a detour with a loop of its own may have more MFMAs than what it stands in for.
/// Where the compiler puts blocks says nothing: a branch backwards may be a way out of line that joins the
/// others.
class WayFinder {
public:
  explicit WayFinder(std::span<const Decoded> instructions) : instructions(instructions) {
    for (size_t i = 0; i < instructions.size(); ++i) {
      index[instructions[i].address] = i;
      if (instructions[i].instruction_class == InstructionClass::branch)
        targets.insert(branch_target(instructions[i]));
    }
    std::vector<uint64_t> pending = {instructions.front().address};
    while (!pending.empty()) {
      const uint64_t address = pending.back();
      pending.pop_back();
      if (!index.contains(address) || blocks.contains(address)) continue;
      const Block &block = blocks[address] = read(address);
      pending.insert(pending.end(), block.successors.begin(), block.successors.end());
    }
  }

  std::optional<LoopWay> find() {
    if (!find_head()) return std::nullopt;
    for (const auto &[address, block] : blocks)
      if (address != head && reached_from(address, head).contains(address)) closed.insert(address);
    if (std::optional<LoopWay> beside = find_open()) return beside;
    closed.clear();
    return find_open();
  }

private:
  struct Block {
    size_t start = 0, length = 0;
    uint32_t matrix = 0;
    std::vector<uint64_t> successors;
  };
  /// From a block to the head.
  struct Rest {
    bool found = false;
    uint32_t matrix = 0, total = 0;
    uint64_t next = 0;
  };

  Block read(uint64_t address) const {
    Block block;
    block.start = index.at(address);
    for (size_t i = block.start; i < instructions.size() && block.successors.empty(); ++i) {
      const Decoded &here = instructions[i];
      ++block.length;
      block.matrix += here.instruction_class == InstructionClass::matrix;
      if (here.mnemonic == "s_endpgm") break;
      const uint64_t next = here.address + here.bytes;
      if (here.instruction_class == InstructionClass::branch) block.successors = {branch_target(here)};
      if (here.instruction_class == InstructionClass::branch ? here.mnemonic != "s_branch"
                                                             : targets.contains(next))
        block.successors.push_back(next);
    }
    return block;
  }

  /// The blocks that control can come to from a block, itself only if it is on a loop, without `avoided`.
  std::set<uint64_t> reached_from(uint64_t address, std::optional<uint64_t> avoided) const {
    std::set<uint64_t> seen;
    std::vector<uint64_t> pending = {address};
    while (!pending.empty()) {
      const auto block = blocks.find(pending.back());
      pending.pop_back();
      if (block == blocks.end()) continue;
      for (const uint64_t successor : block->second.successors)
        if (successor != avoided && seen.insert(successor).second) pending.push_back(successor);
    }
    return seen;
  }

  /// The loop is the blocks that reach each other with the most MFMAs; its head the one entered from outside.
  bool find_head() {
    std::map<uint64_t, std::set<uint64_t>> reached;
    for (const auto &[address, block] : blocks)
      reached[address] = reached_from(address, std::nullopt);
    uint32_t most = 0;
    std::set<uint64_t> done;
    for (const auto &[address, after] : reached) {
      if (done.contains(address) || !after.contains(address)) continue;
      std::set<uint64_t> loop;
      uint32_t matrix = 0;
      for (const uint64_t other : after) {
        const auto back = reached.find(other);
        if (back == reached.end() || !back->second.contains(address)) continue;
        loop.insert(other);
        matrix += blocks.at(other).matrix;
      }
      done.insert(loop.begin(), loop.end());
      if (matrix <= most) continue;
      most = matrix;
      head = entry_of(loop);
    }
    return most > 0;
  }

  uint64_t entry_of(const std::set<uint64_t> &loop) const {
    for (const auto &[address, block] : blocks)
      if (!loop.contains(address))
        for (const uint64_t successor : block.successors)
          if (loop.contains(successor)) return successor;
    return *loop.begin();
  }

  /// Beside the closed blocks; of what is a loop nonetheless, no branch back into the way itself is followed.
  std::optional<LoopWay> find_open() {
    rests.clear();
    if (visit(head); !rests.at(head).found || rests.at(head).matrix == 0) return std::nullopt;
    LoopWay way{head, {}};
    uint64_t address = head;
    do {
      const Block &block = blocks.at(address);
      way.mix.add(mix_of(instructions.subspan(block.start, block.length)));
      address = rests.at(address).next;
    } while (address != head);
    return way;
  }

  Rest visit(uint64_t address) {
    const auto block = blocks.find(address);
    const auto [known, is_new] = rests.try_emplace(address);
    Rest &best = known->second; // stays put: std::map
    if (!is_new || block == blocks.end() || closed.contains(address)) return best;
    for (const uint64_t successor : block->second.successors) {
      const Rest rest = successor == head ? Rest{true} : visit(successor);
      if (!rest.found) continue;
      const uint32_t matrix = block->second.matrix + rest.matrix;
      const uint32_t total = uint32_t(block->second.length) + rest.total;
      if (!best.found || matrix > best.matrix || (matrix == best.matrix && total < best.total))
        best = {true, matrix, total, successor};
    }
    return best;
  }

  std::span<const Decoded> instructions;
  uint64_t head = 0;
  std::map<uint64_t, size_t> index;
  std::set<uint64_t> targets; // of branches: blocks begin there
  std::map<uint64_t, Block> blocks;
  std::set<uint64_t> closed;
  std::map<uint64_t, Rest> rests;
};

// ---- JSON ------------------------------------------------------------------------------------------------

std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "\"0x%llx\"", static_cast<unsigned long long>(value));
  return text;
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
  char bound[32];
  std::snprintf(bound, sizeof bound, "%.1f", mix.bound_percent());
  return text + "}, \"mfma_clk\": " + std::to_string(mix.mfma_clk) +
         ", \"mfma_of_unknown_rate\": " + std::to_string(mix.mfma_of_unknown_rate) +
         ", \"issue_clk\": " + std::to_string(mix.issue_clk()) + ", \"bound_percent\": " + bound +
         ", \"vmcnt0\": " + (mix.waits_for_all_memory ? "true" : "false");
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
  stats.occupancy = occupancy(kernel->descriptor.vgprs(), kernel->lds_bytes, kernel->max_workgroup_size);
  const std::vector<Decoded> instructions = decode(code.first(kernel->code_bytes), kernel->entry_address);
  stats.mix = mix_of(instructions);
  stats.loops = loops_of(instructions);
  if (!stats.loops.empty()) stats.way = WayFinder(instructions).find();
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
    text += ", \"way\": {\"first\": " + hex(stats.way->first) + ", " + mix_json(stats.way->mix) + "}";
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

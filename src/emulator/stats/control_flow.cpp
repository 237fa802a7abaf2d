//===- control_flow.cpp - paths through a kernel's machine code -----------------------------------------===//
//
// Branch targets are read from the encodings, not from text: they are a field of the SOPP format, its low 16
// bits, or the sum that a long branch makes.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/stats/control_flow.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "emulator/isa/disassembler.h"
#include "emulator/isa/encoding.h"

namespace sluice::emulator {

namespace {

uint32_t word_at(std::span<const std::byte> bytes) {
  uint32_t word = 0;
  for (size_t i = 0; i < 4; ++i)
    word |= uint32_t(bytes[i]) << (8 * i);
  return word;
}

/// `code` ends with the instruction.
std::optional<uint64_t> target_of(const CodeInstruction &instruction, std::span<const std::byte> code) {
  if (is_relative_jump(instruction.facts->role))
    return instruction.address + 4 + uint64_t(int64_t(int16_t(instruction.word & 0xffff)) * 4);
  if (instruction.facts->role != Role::indirect_jump || code.size() < 4 * long_branch_dwords)
    return std::nullopt;
  std::array<uint32_t, long_branch_dwords> dwords;
  for (size_t n = 0; n < dwords.size(); ++n)
    dwords[n] = word_at(code.last(4 * (dwords.size() - n)));
  return long_branch_target(dwords, instruction.address);
}

/// Whether the next instruction in the code runs after it, or may run.
bool goes_on(const CodeInstruction &instruction) {
  return falls_through(instruction.facts->role) || is_call(instruction.facts->role);
}

} // namespace

std::vector<CodeInstruction> decode_code(std::span<const std::byte> code, uint64_t address) {
  Disassembler disassembler;
  std::vector<CodeInstruction> result;
  for (size_t offset = 0; code.size() - offset >= 4;) {
    const std::span<const std::byte> rest = code.subspan(offset);
    const auto instruction = disassembler.decode(rest, address + offset);
    CodeInstruction decoded{address + offset,          4,           word_at(rest), &no_instruction,
                            InstructionClass::unknown, std::nullopt};
    if (instruction) {
      decoded.bytes = instruction->bytes;
      decoded.facts = instruction->facts;
      decoded.instruction_class = classify(*instruction->facts, split_fields({&decoded.word, 1}).lds);
    }
    offset += decoded.bytes;
    decoded.target = target_of(decoded, code.first(std::min(offset, code.size())));
    result.push_back(decoded);
  }
  return result;
}

ControlFlow::ControlFlow(std::span<const CodeInstruction> instructions) : block_of(instructions.size()) {
  std::map<uint64_t, size_t> index;
  for (size_t i = 0; i < instructions.size(); ++i)
    index[instructions[i].address] = i;
  const auto target_of = [&](size_t i) {
    const std::optional<uint64_t> target = instructions[i].target;
    return target ? index.find(*target) : index.end();
  };

  std::vector<bool> is_first(instructions.size());
  for (size_t i = 0; i < instructions.size(); ++i) {
    const bool ends = instructions[i].target || !goes_on(instructions[i]);
    if (i == 0) is_first[i] = true;
    if (ends && i + 1 < instructions.size()) is_first[i + 1] = true;
    if (const auto target = target_of(i); target != index.end()) is_first[target->second] = true;
  }
  for (size_t i = 0; i < instructions.size(); ++i) {
    if (is_first[i]) blocks.emplace_back().first = i;
    ++blocks.back().count;
    blocks.back().matrix += instructions[i].instruction_class == InstructionClass::matrix;
    block_of[i] = blocks.size() - 1;
  }
  const auto connect = [this](size_t from, size_t to) {
    blocks[from].after.push_back(to);
    blocks[to].before.push_back(from);
  };
  for (size_t block = 0; block < blocks.size(); ++block) {
    const size_t last = blocks[block].first + blocks[block].count - 1;
    if (const auto target = target_of(last); target != index.end()) connect(block, block_of[target->second]);
    if (goes_on(instructions[last]) && block + 1 < blocks.size()) connect(block, block + 1);
  }
}

std::vector<bool> ControlFlow::reached(size_t start, Edges edges, size_t end) const {
  std::vector<bool> seen(blocks.size());
  Indices pending = {start};
  while (!pending.empty()) {
    const Block &here = blocks[pending.back()];
    pending.pop_back();
    for (const size_t next : here.*edges) {
      if (seen[next]) continue;
      seen[next] = true;
      if (next != end) pending.push_back(next);
    }
  }
  return seen;
}

ControlFlow::Indices ControlFlow::loop(size_t target, size_t branch) const {
  const size_t head = block_of[target], tail = block_of[branch];
  std::vector<bool> forth = reached(head, &Block::after);
  if (head != tail && !forth[tail]) return {};
  std::vector<bool> back(blocks.size());
  if (head != tail) {
    back = reached(tail, &Block::before, head);
    if (back[0] && head != 0) back = reached(tail, &Block::before);
  }
  forth[head] = back[tail] = true;
  Indices body;
  for (size_t i = 0; i < block_of.size(); ++i)
    if (forth[block_of[i]] && back[block_of[i]]) body.push_back(i);
  return body;
}

/// The entry, from outside, of the loop with the most MFMAs. A loop is a set of blocks that reach each
/// other.
std::optional<size_t> ControlFlow::main_loop() const {
  const std::vector<bool> executed = reached(0, &Block::after);
  std::optional<size_t> head;
  uint32_t most = 0;
  std::vector<bool> done(blocks.size());
  for (size_t block = 0; block < blocks.size(); ++block) {
    if (done[block] || !executed[block]) continue;
    const std::vector<bool> forth = reached(block, &Block::after);
    const std::vector<bool> back = reached(block, &Block::before);
    if (!forth[block]) continue;
    Indices entries;
    uint32_t matrix = 0;
    for (size_t other = 0; other < blocks.size(); ++other) {
      if (!forth[other] || !back[other]) continue;
      done[other] = true;
      matrix += blocks[other].matrix;
      for (const size_t from : blocks[other].before)
        if (executed[from] && !(forth[from] && back[from])) entries.push_back(other);
    }
    if (matrix <= most) continue;
    most = matrix;
    head = entries.empty() ? block : entries.front();
  }
  return head;
}

std::optional<ControlFlow::Indices> ControlFlow::usual_way() const {
  const std::optional<size_t> head = main_loop();
  if (!head) return std::nullopt;
  std::vector<bool> inner(blocks.size());
  for (size_t block = 0; block < blocks.size(); ++block)
    inner[block] = block != *head && reached(block, &Block::after, *head)[block];
  if (std::optional<Indices> beside = way_around(*head, inner)) return beside;
  return way_around(*head, std::vector<bool>(blocks.size()));
}

/// Avoids closed blocks. In loops that remain, no branch back into the way itself is followed.
std::optional<ControlFlow::Indices> ControlFlow::way_around(size_t head,
                                                            const std::vector<bool> &closed) const {
  struct Rest { // from a block to the head
    bool is_known = false, is_found = false;
    uint32_t matrix = 0;
    size_t count = 0, next = 0;
  };
  std::vector<Rest> rests(blocks.size());
  const auto visit = [&](const auto &again, size_t block) -> Rest {
    Rest &best = rests[block];
    if (best.is_known || closed[block]) return best;
    best.is_known = true;
    for (const size_t next : blocks[block].after) {
      const Rest rest = next == head ? Rest{true, true} : again(again, next);
      if (!rest.is_found) continue;
      const uint32_t matrix = blocks[block].matrix + rest.matrix;
      const size_t count = blocks[block].count + rest.count;
      if (!best.is_found || matrix > best.matrix || (matrix == best.matrix && count < best.count))
        best = {true, true, matrix, count, next};
    }
    return best;
  };
  if (const Rest whole = visit(visit, head); !whole.is_found || whole.matrix == 0) return std::nullopt;
  Indices way;
  size_t block = head;
  do {
    way.resize(way.size() + blocks[block].count);
    std::iota(way.end() - ptrdiff_t(blocks[block].count), way.end(), blocks[block].first);
    block = rests[block].next;
  } while (block != head);
  return way;
}

} // namespace sluice::emulator

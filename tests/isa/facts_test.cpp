//===- facts_test.cpp - the facts about instructions, against LLVM --------------------------------------===//
#include <catch2/catch.hpp>

#include <map>
#include <set>
#include <string>

#include "emulator/isa/disassembler.h"
#include "emulator/isa/encoding.h"
#include "emulator/isa/instructions.h"
#include "emulator/isa/op.h"
#include "isa/corpus.h"

namespace sluice::test {

using emulator::Instruction;
using emulator::InstructionFacts;
using emulator::Pipe;
using emulator::RegisterRange;
using emulator::Role;

namespace {

bool touches(const std::vector<RegisterRange> &ranges, uint32_t scalar) {
  const uint32_t operand = emulator::first_sgpr + scalar;
  for (const RegisterRange &range : ranges)
    if (operand >= range.first && operand < range.first + range.count) return true;
  return false;
}

uint32_t vector_registers(const std::vector<RegisterRange> &ranges) {
  uint32_t count = 0;
  for (const RegisterRange &range : ranges)
    if (range.first < emulator::first_sgpr) count += range.count;
  return count;
}

template <typename Check> void for_each_instruction(Check check) {
  emulator::Disassembler disassembler;
  for (const Encoding &encoding : corpus()) {
    const auto instruction = disassembler.decode(std::as_bytes(std::span(encoding.dwords)), 0);
    if (instruction) check(*instruction, encoding);
  }
}

std::set<std::string> without(std::set<std::string> names, const std::set<std::string> &others) {
  for (const std::string &name : others)
    names.erase(name);
  return names;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  return at == std::string::npos ? std::string() : text.replace(at, from.size(), to);
}

} // namespace

TEST_CASE("there are facts about each instruction that LLVM has, once, and about no others", "[isa][facts]") {
  std::set<std::string> in_llvm;
  for_each_instruction([&](const Instruction &i, const Encoding &) { in_llvm.insert(i.mnemonic); });
  std::set<std::string> in_table;
  size_t rows = 0;
  for (const std::span<const InstructionFacts> part : emulator::all_instruction_facts())
    for (const InstructionFacts &row : part) {
      in_table.insert(std::string(row.mnemonic));
      ++rows;
    }
  CHECK(without(in_llvm, in_table) == std::set<std::string>());
  CHECK(without(in_table, in_llvm) == std::set<std::string>());
  CHECK(rows == in_table.size());
}

TEST_CASE("an instruction occupies a pipe of its encoding", "[isa][facts]") {
  using emulator::Format;
  std::map<Format, std::set<Pipe>> pipes;
  for_each_instruction([&](const Instruction &i, const Encoding &encoding) {
    pipes[emulator::split_fields(encoding.dwords).format].insert(i.facts->pipe);
  });
  const std::set<Pipe> scalar = {Pipe::salu, Pipe::branch};
  const std::set<Pipe> vector = {Pipe::valu, Pipe::transcendental};
  CHECK(pipes[Format::sop1] == scalar);
  CHECK(pipes[Format::sop2] == scalar);
  CHECK(pipes[Format::sopc] == std::set{Pipe::salu});
  CHECK(pipes[Format::sopk] == scalar);
  CHECK(pipes[Format::sopp] == std::set{Pipe::salu, Pipe::branch, Pipe::internal});
  CHECK(pipes[Format::vop1] == vector);
  CHECK(pipes[Format::vop2] == std::set{Pipe::valu});
  CHECK(pipes[Format::vopc] == std::set{Pipe::valu});
  CHECK(pipes[Format::vop3] == vector);
  CHECK(pipes[Format::vop3p] == std::set{Pipe::valu, Pipe::packed_f32});
  CHECK(pipes[Format::mai] == std::set{Pipe::valu, Pipe::matrix});
  CHECK(pipes[Format::smem] == std::set{Pipe::smem});
  CHECK(pipes[Format::ds] == std::set{Pipe::lds});
  for (Format memory : {Format::mubuf, Format::mtbuf, Format::flat})
    CHECK(pipes[memory] == std::set{Pipe::vmem});
}

TEST_CASE("the scalar registers that a fact implies are those that LLVM names", "[isa][facts]") {
  for_each_instruction([](const Instruction &i, const Encoding &encoding) {
    INFO(encoding.text);
    if (i.facts->has(emulator::Fact::reads_m0)) CHECK(touches(i.reads, emulator::sgpr_m0));
    // A scalar destination may be EXEC, too.
    const bool named = encoding.text.find("exec") != std::string::npos;
    if (i.facts->role == Role::compare_exec || (i.facts->pipe == Pipe::valu && !named))
      CHECK((i.facts->role == Role::compare_exec) == touches(i.writes, emulator::sgpr_exec));
    if (i.facts->role == Role::div_fmas) CHECK(touches(i.reads, emulator::sgpr_vcc));
  });
}

TEST_CASE("a load moves as many dwords as LLVM says it writes, and a store as many as the load",
          "[isa][facts]") {
  for_each_instruction([](const Instruction &i, const Encoding &encoding) {
    const bool to_lds = emulator::split_fields(encoding.dwords).lds || i.facts->role == Role::copy_to_lds;
    const bool vector = i.facts->pipe == Pipe::vmem || i.facts->pipe == Pipe::lds;
    if (!vector || i.facts->role != Role::load || to_lds) return;
    INFO(encoding.text);
    CHECK(vector_registers(i.writes) == i.facts->data.dwords());
  });
  size_t stores = 0;
  for (const std::span<const InstructionFacts> part : emulator::all_instruction_facts())
    for (const InstructionFacts &row : part) {
      if (row.role != Role::store || row.pipe == Pipe::smem) continue;
      const std::string name(row.mnemonic);
      const std::string load =
          row.pipe == Pipe::lds ? replaced(name, "ds_write", "ds_read") : replaced(name, "_store", "_load");
      const InstructionFacts *other = emulator::instruction_facts(load);
      INFO(name);
      if (!other) {
        CHECK(row.data.dwords() == 1); // bytes and halves, whose loads say how they are extended
        continue;
      }
      ++stores;
      CHECK(row.data.dwords() == other->data.dwords());
    }
  CHECK(stores > 40);
}

} // namespace sluice::test

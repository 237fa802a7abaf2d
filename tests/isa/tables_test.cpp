//===- tables_test.cpp - every row against LLVM ---------------------------------------------------------===//
//
// Each row of the tables is written as assembly, assembled and decoded again: the mnemonic must exist, decode
// to its row, and read and write exactly the registers that LLVM says the instruction does.
//
//===----------------------------------------------------------------------------------------------------===//
#include <catch2/catch.hpp>

#include <random>
#include <set>

#include "emulator/exec/mfma.h"
#include "isa/wave_fixture.h"

namespace sluice::test {

namespace {

using emulator::Definedness;
using emulator::Format;
using emulator::OperandType;
using emulator::ValuForm;
using emulator::ValuRow;

struct Decoded {
  emulator::Instruction instruction;
  emulator::DecodedOp op;
};

Decoded decode(const std::string &text) {
  static emulator::Disassembler disassembler;
  static emulator::Decoder decoder(emulator::SimdPath::portable);
  const std::vector<uint32_t> code = assemble(text);
  const auto instruction = disassembler.decode(std::as_bytes(std::span(code)), 0);
  if (!instruction || instruction->bytes != code.size() * 4)
    throw std::runtime_error("does not decode: " + text);
  return {*instruction, decoder.decode(*instruction, code, 0)};
}

using Registers = std::set<uint32_t>;

Registers registers_of(const std::vector<emulator::RegisterRange> &ranges) {
  Registers result;
  for (const emulator::RegisterRange &range : ranges)
    for (uint32_t i = 0; i < range.count; ++i)
      result.insert(range.first + i);
  return result;
}

void add(Registers &registers, uint16_t operand, uint32_t count) {
  if (operand >= emulator::first_constant) return;
  for (uint32_t i = 0; i < count; ++i)
    registers.insert(operand + i);
}

uint32_t rows(OperandType type) {
  return rows_of(type);
}

/// Without implicit operands: EXEC, and MODE, which LLVM does not number.
Registers without_exec(Registers registers) {
  registers.erase(emulator::first_sgpr + emulator::sgpr_exec);
  registers.erase(emulator::first_sgpr + emulator::sgpr_exec + 1);
  return registers;
}

std::string vector_operand(uint32_t first, uint32_t count) {
  if (count == 1) return "v" + std::to_string(first);
  return "v[" + std::to_string(first) + ":" + std::to_string(first + count - 1) + "]";
}

/// "v_add_f32 v4, v8, v10" and the like.
std::string assembly_of(const ValuRow &row) {
  std::string name(row.mnemonic);
  std::string end;
  if (name.ends_with(" clamp")) {
    name.resize(name.size() - 6);
    end = " clamp";
  }
  if (name == "v_nop") return name;
  if (name == "v_readfirstlane_b32") return name + " s4, v8";
  if (name == "v_readlane_b32") return name + " s4, v8, s10";
  if (name == "v_writelane_b32") return name + " v4, s8, 7";
  if (name == "v_swap_b32") return name + " v4, v8";
  if (name == "v_accvgpr_read_b32") return name + " v4, a8";
  if (name == "v_accvgpr_write_b32") return name + " a4, v8";
  if (name == "v_accvgpr_mov_b32") return name + " a4, a8";
  std::string text = name + " ";
  if (row.result_type == OperandType::mask)
    text += "vcc";
  else
    text += vector_operand(4, rows(row.result_type));
  if (row.mask_out && row.result_type != OperandType::mask) text += ", vcc";
  const uint32_t sources = row.form == ValuForm::accumulate ? row.sources - 1u : row.sources;
  for (uint32_t k = 0; k < sources; ++k) {
    const bool constant = (row.form == ValuForm::fused_constant_1 && k == 1) ||
                          (row.form == ValuForm::fused_constant_2 && k == 2);
    const std::string literal = row.source_types[k] == OperandType::f16 ? "0x4201" : "0x40c00001";
    text += constant ? ", " + literal : ", " + vector_operand(8 + 2 * k, rows(row.source_types[k]));
  }
  if (row.mask_in && row.form != ValuForm::vcc_in) text += ", vcc";
  return text + end;
}

} // namespace

TEST_CASE("every row of the vector unit is an instruction, with LLVM's operands", "[isa][tables]") {
  size_t count = 0;
  for (const std::span<const ValuRow> part : emulator::valu_table(emulator::SimdPath::portable).rows)
    for (const ValuRow &row : part) {
      const std::string text = assembly_of(row);
      INFO(text);
      Decoded d = [&] {
        try {
          return decode(text);
        } catch (const std::exception &error) {
          FAIL(error.what());
          throw;
        }
      }();
      CHECK(d.op.refusal == "");
      std::string name(row.mnemonic);
      if (name.ends_with(" clamp")) name.resize(name.size() - 6);
      CHECK(d.instruction.mnemonic == name);
      const emulator::Op &op = d.op.fast;
      if (!row.run) CHECK(op.body == row.body);

      Registers reads;
      for (uint32_t k = 0; k < op.valu.sources; ++k)
        add(reads, op.src[k], rows(op.valu.source_types[k]));
      if (op.mask_in != emulator::no_operand) add(reads, op.mask_in, 2);
      Registers llvm_reads = without_exec(registers_of(d.instruction.reads));
      // A destination that is also a source, whether or not LLVM names it, is checked below.
      if (op.dst != emulator::no_operand && row.form != ValuForm::accumulate) {
        for (uint32_t i = 0; i < 2; ++i)
          if (!reads.contains(op.dst + i)) llvm_reads.erase(op.dst + i);
      } else if (op.dst != emulator::no_operand) {
        add(llvm_reads, op.dst, rows(op.valu.result_type));
      }
      CHECK(reads == llvm_reads);

      Registers writes;
      if (op.dst != emulator::no_operand) add(writes, op.dst, rows(row.result_type));
      if (op.mask != emulator::no_operand) add(writes, op.mask, 2);
      if (name == "v_swap_b32") add(writes, op.src[0], 1);
      CHECK(writes == without_exec(registers_of(d.instruction.writes)));
      ++count;
    }
  CHECK(count > 300);
}

TEST_CASE("the compiled forms of the vector unit have the same rows", "[isa][tables]") {
  const auto &reference = emulator::valu_table(emulator::SimdPath::portable);
  for (emulator::SimdPath path : simd_paths()) {
    const auto &table = emulator::valu_table(path);
    REQUIRE(table.rows.size() == reference.rows.size());
    for (size_t part = 0; part < table.rows.size(); ++part) {
      REQUIRE(table.rows[part].size() == reference.rows[part].size());
      for (size_t i = 0; i < table.rows[part].size(); ++i)
        CHECK(table.rows[part][i].mnemonic == reference.rows[part][i].mnemonic);
    }
  }
}

TEST_CASE("every row of the scalar unit is an instruction, with LLVM's operands", "[isa][tables]") {
  for (const emulator::ScalarRow &row : emulator::scalar_rows()) {
    const std::string name(row.mnemonic);
    // Width of the destination and of sources, from the name.
    auto wide_type = [&](OperandType type) { return type == OperandType::b64 || type == OperandType::i64; };
    auto scalar = [](uint32_t first, bool wide) {
      return wide ? "s[" + std::to_string(first) + ":" + std::to_string(first + 1) + "]"
                  : "s" + std::to_string(first);
    };
    const bool wide_result =
        (name.ends_with("64") && !name.starts_with("s_bcnt") && !name.starts_with("s_f")) ||
        name == "s_bitreplicate_b64_b32";
    std::string text = name;
    switch (row.format) {
    case Format::sop1:
      if (name == "s_setpc_b64")
        text += " s[8:9]";
      else if (name == "s_set_gpr_idx_idx" || name == "s_cbranch_join")
        text += " s8";
      else if (name == "s_getpc_b64")
        text += " s[4:5]";
      else
        text += " " + scalar(4, wide_result) + ", " + scalar(8, wide_type(row.source_types[0]));
      break;
    case Format::sop2:
      if (name == "s_cbranch_g_fork")
        text += " s[8:9], s[10:11]";
      else
        text += " " + scalar(4, wide_result) + ", " + scalar(8, wide_type(row.source_types[0])) + ", " +
                scalar(10, wide_type(row.source_types[1]));
      break;
    case Format::sopc:
      if (name == "s_set_gpr_idx_on") {
        text += " s8, 5";
        break;
      }
      text +=
          " " + scalar(8, wide_type(row.source_types[0])) + ", " + scalar(10, wide_type(row.source_types[1]));
      break;
    case Format::sopk:
      if (name == "s_getreg_b32")
        text += " s4, hwreg(HW_REG_MODE)";
      else if (name == "s_setreg_b32")
        text += " hwreg(HW_REG_MODE), s4";
      else if (name == "s_setreg_imm32_b32")
        text += " hwreg(HW_REG_MODE), 0x123";
      else if (name == "s_call_b64" || name == "s_cbranch_i_fork")
        text += " s[4:5], 8";
      else
        text += " s4, 0x12";
      break;
    default: {
      const bool bare = name == "s_endpgm" || name == "s_barrier" || name == "s_icache_inv" ||
                        name == "s_wakeup" || name == "s_ttracedata" || name == "s_set_gpr_idx_off";
      if (name == "s_waitcnt")
        text += " vmcnt(3)";
      else if (name == "s_sendmsg")
        text += " sendmsg(MSG_INTERRUPT)";
      else if (name == "s_sethalt")
        text += " 0";
      else if (!bare)
        text += " 1";
    }
    }
    INFO(text);
    const Decoded d = decode(text);
    CHECK(d.op.refusal == "");
    CHECK(d.instruction.mnemonic == name);
    CHECK(d.op.fast.run == row.run);
    const emulator::Op &op = d.op.fast;
    Registers reads;
    for (uint32_t k = 0; k < 2; ++k)
      if (row.source_types[k] != OperandType::none)
        add(reads, op.src[k], wide_type(row.source_types[k]) ? 2 : 1);
    const Registers llvm_reads = registers_of(d.instruction.reads);
    for (uint32_t r : reads)
      CHECK(llvm_reads.contains(r));
    Registers llvm_writes = without_exec(registers_of(d.instruction.writes));
    llvm_writes.erase(emulator::scc_operand);
    if (name.starts_with("s_set_gpr_idx_")) llvm_writes.erase(emulator::first_sgpr + emulator::sgpr_m0);
    for (uint32_t r : llvm_writes)
      CHECK((r == op.dst || (r == op.dst + 1u && wide_result)));
  }
}

TEST_CASE("every shape of the matrix core decodes to itself", "[isa][tables]") {
  for (const emulator::MfmaInstruction &row : emulator::mfma_instructions()) {
    const bool sparse = row.shape.sparse;
    const uint32_t a = row.shape.a_registers(), b = row.shape.b_registers(), c = row.shape.c_registers();
    for (bool accumulation : {false, true}) {
      auto file = [&](uint32_t first, uint32_t count) {
        std::string text = vector_operand(first, count);
        if (accumulation) text[0] = 'a';
        return text;
      };
      const std::string text = std::string(row.mnemonic) + " " + file(64, c) + ", " + vector_operand(8, a) +
                               ", " + vector_operand(16, b) + ", " +
                               (sparse ? vector_operand(33, 1) : file(128, c));
      INFO(text);
      const Decoded d = decode(text);
      CHECK(d.op.refusal == "");
      const emulator::Op &op = d.op.fast;
      CHECK(emulator::mfma_instructions()[op.mfma.shape].shape == row.shape);
      Registers reads, writes;
      add(reads, op.src[0], a);
      add(reads, op.src[1], b);
      add(reads, op.src[2], sparse ? 1 : c);
      if (sparse) add(reads, op.dst, c);
      add(writes, op.dst, c);
      CHECK(reads == without_exec(registers_of(d.instruction.reads)));
      CHECK(writes == without_exec(registers_of(d.instruction.writes)));
    }
    const std::string head = std::string(row.mnemonic) + " " + vector_operand(64, c) + ", ";
    std::string from_a = vector_operand(8, a);
    from_a[0] = 'a';
    const Decoded from_accumulation =
        decode(head + from_a + ", " + vector_operand(16, b) + ", " + (sparse ? "v33" : "1.0"));
    CHECK(from_accumulation.op.fast.src[0] == emulator::first_agpr + 8);
    CHECK(from_accumulation.op.fast.src[1] == 16);
    if (!sparse) CHECK(from_accumulation.op.fast.src[2] >= emulator::first_constant);
  }
}

namespace {

// Data registers start at 20; one is in the accumulation file.
const char *const memory_lines[] = {
    "ds_read_u8 v20, v2",
    "ds_read_i8 v20, v2",
    "ds_read_u16 v20, v2",
    "ds_read_i16 v20, v2",
    "ds_read_b32 v20, v2",
    "ds_read_b64 v[20:21], v2",
    "ds_read_b96 v[20:22], v2",
    "ds_read_b128 v[20:23], v2 offset:4095",
    "ds_read2_b32 v[20:21], v2 offset1:3",
    "ds_read2_b64 v[20:23], v2 offset0:1 offset1:2",
    "ds_read2st64_b32 v[20:21], v2 offset1:3",
    "ds_read2st64_b64 v[20:23], v2 offset0:1 offset1:2",
    "ds_read_u8_d16 v20, v2",
    "ds_read_u16_d16_hi v20, v2",
    "ds_write_b8 v2, v20",
    "ds_write_b16 v2, v20",
    "ds_write_b32 v2, v20",
    "ds_write_b64 v2, v[20:21]",
    "ds_write_b96 v2, v[20:22]",
    "ds_write_b128 v2, v[20:23]",
    "ds_write2_b32 v2, v20, v24 offset1:1",
    "ds_write2_b64 v2, v[20:21], v[24:25] offset1:1",
    "ds_write_b16_d16_hi v2, v20",
    "ds_bpermute_b32 v20, v2, v3",
    "ds_permute_b32 v20, v2, v3",
    "ds_swizzle_b32 v20, v2 offset:0x8055",
    "ds_add_u32 v2, v20",
    "ds_add_rtn_u32 v20, v2, v3",
    "ds_add_rtn_u64 v[20:21], v2, v[4:5]",
    "ds_cmpst_rtn_b32 v20, v2, v3, v4",
    "ds_max_rtn_f32 v20, v2, v3",
    "ds_wrxchg_rtn_b64 v[20:21], v2, v[4:5]",
    "ds_add_f32 v2, v20",
    "ds_pk_add_f16 v2, v20",
    "ds_mskor_b32 v2, v20, v21",
    "ds_cmpst_f64 v2, v[20:21], v[22:23]",
    "ds_wrap_rtn_b32 v20, v2, v3, v4",
    "ds_wrxchg2_rtn_b32 v[20:21], v2, v3, v4 offset1:1",
    "ds_wrxchg2st64_rtn_b64 v[20:23], v2, v[4:5], v[6:7] offset1:1",
    "ds_condxchg32_rtn_b64 v[20:21], v2, v[4:5]",
    "ds_append v20 offset:4",
    "ds_consume v20",
    "ds_read_addtid_b32 v20",
    "ds_write_addtid_b32 v20",
    "ds_read_b128 a[20:23], v2",
    "ds_write_b32 v2, a20",
    "global_load_ubyte v20, v2, s[4:5]",
    "global_load_sbyte v20, v2, s[4:5]",
    "global_load_ushort v20, v[2:3], off",
    "global_load_dword v20, v2, s[4:5] offset:-4096",
    "global_load_dwordx2 v[20:21], v[2:3], off offset:16",
    "global_load_dwordx3 v[20:22], v2, s[4:5]",
    "global_load_dwordx4 v[20:23], v[2:3], off sc0 nt sc1",
    "global_load_short_d16_hi v20, v2, s[4:5]",
    "global_store_byte v2, v20, s[4:5]",
    "global_store_short_d16_hi v2, v20, s[4:5]",
    "global_store_dword v[2:3], v20, off",
    "global_store_dwordx4 v2, v[20:23], s[4:5]",
    "global_load_dwordx4 a[20:23], v2, s[4:5]",
    "global_store_dwordx2 v2, a[20:21], s[4:5]",
    "global_load_lds_dword v[2:3], off offset:4",
    "global_load_lds_ubyte v2, s[4:5]",
    "global_atomic_add v2, v20, s[4:5]",
    "global_atomic_add v20, v2, v3, s[4:5] sc0",
    "global_atomic_add_x2 v[20:21], v[2:3], v[4:5], off sc0",
    "global_atomic_cmpswap v20, v2, v[4:5], s[4:5] sc0",
    "global_atomic_add_f32 v2, v20, s[4:5]",
    "global_atomic_pk_add_f16 v2, v20, s[4:5]",
    "global_atomic_pk_add_bf16 v2, v20, s[4:5]",
    "global_atomic_add_f64 v[2:3], v[20:21], off",
    "global_atomic_umax v2, v20, s[4:5]",
    "global_atomic_smin_x2 v2, v[20:21], s[4:5]",
    "global_atomic_inc v2, v20, s[4:5]",
    "flat_load_dword v20, v[2:3] offset:4095",
    "flat_load_dwordx4 v[20:23], v[2:3]",
    "flat_store_dword v[2:3], v20",
    "flat_atomic_add v20, v[2:3], v4 sc0",
    "scratch_load_dword v20, off, off offset:4",
    "scratch_load_dwordx2 v[20:21], v2, off",
    "scratch_store_dword off, v20, s4 offset:-4",
    "scratch_store_dword v2, v20, off",
    "scratch_load_dword v20, v2, s4",
    "buffer_load_dword v20, off, s[4:7], 0",
    "buffer_load_dword v20, v2, s[4:7], s9 offen offset:4095",
    "buffer_load_dwordx4 v[20:23], v2, s[4:7], 0 idxen",
    "buffer_load_dwordx2 v[20:21], v[2:3], s[4:7], 0 idxen offen",
    "buffer_load_ubyte v20, v2, s[4:7], 0 offen",
    "buffer_load_short_d16 v20, v2, s[4:7], 0 offen",
    "buffer_store_dword v20, v2, s[4:7], 0 offen",
    "buffer_store_dwordx4 v[20:23], v2, s[4:7], m0 offen",
    "buffer_store_byte v20, off, s[4:7], 4",
    "buffer_load_dword v2, s[4:7], 0 offen offset:64 lds",
    "buffer_load_dword off, s[4:7], 0 lds",
    "buffer_load_sshort v2, s[4:7], 0 offen lds",
    "buffer_atomic_add v20, v2, s[4:7], 0 offen",
    "buffer_atomic_add v20, v2, s[4:7], 0 offen sc0",
    "buffer_atomic_pk_add_f16 v20, v2, s[4:7], 0 offen",
    "buffer_atomic_cmpswap_x2 v[20:23], v2, s[4:7], 0 offen",
    "buffer_load_format_xyz v[20:22], v2, s[4:7], 0 offen",
    "buffer_load_format_d16_xyz v[20:21], v2, s[4:7], 0 offen",
    "buffer_load_format_d16_hi_x v20, v2, s[4:7], 0 offen",
    "buffer_load_format_x v2, s[4:7], 0 offen lds",
    "buffer_store_format_xyzw v[20:23], v2, s[4:7], 0 offen",
    "buffer_store_format_d16_xy v20, v2, s[4:7], 0 offen",
    "tbuffer_load_format_xyzw v[20:23], v[2:3], s[4:7], m0 "
    "format:[BUF_DATA_FORMAT_16,BUF_NUM_FORMAT_FLOAT] idxen offen",
    "tbuffer_load_format_d16_xy a20, off, s[4:7], 0 format:4",
    "tbuffer_store_format_xy v[20:21], v2, s[4:7], s9 format:[BUF_DATA_FORMAT_32,BUF_NUM_FORMAT_UINT] "
    "idxen offset:4095",
    "buffer_inv sc1",
    "buffer_wbl2 sc1",
    "s_load_dword s20, s[4:5], 0x10",
    "s_load_dwordx2 s[20:21], s[4:5], s9",
    "s_load_dwordx4 s[20:23], s[4:5], s9 offset:0x10",
    "s_load_dwordx8 s[20:27], s[4:5], -0x10",
    "s_load_dwordx16 s[20:35], s[4:5], 0x0",
    "s_buffer_load_dword s20, s[4:7], 0x10",
    "s_buffer_load_dwordx4 s[20:23], s[4:7], s9",
    "s_scratch_load_dwordx4 s[20:23], s[4:5], s9",
    "s_store_dwordx4 s[20:23], s[4:5], 0x10",
    "s_buffer_store_dwordx2 s[20:21], s[4:7], m0",
    "s_scratch_store_dword s20, s[4:5], 0x0",
    "s_atomic_cmpswap_x2 s[20:23], s[4:5], 0x0",
    "s_buffer_atomic_add s20, s[4:7], 0x0",
    "s_dcache_discard s[4:5], 0x0",
    "s_atc_probe 1, s[4:5], 0x0",
    "s_memtime s[20:21]",
    "s_memrealtime s[20:21]",
    "s_dcache_inv",
    "s_dcache_wb",
};

} // namespace

TEST_CASE("memory instructions touch the registers that LLVM lists", "[isa][tables]") {
  for (const char *line : memory_lines) {
    INFO(line);
    const Decoded d = decode(line);
    CHECK(d.op.refusal == "");
    const emulator::Op &op = d.op.fast;
    const emulator::MemoryControl &m = op.memory;
    const Registers llvm_writes = without_exec(registers_of(d.instruction.writes));
    Registers llvm_reads = without_exec(registers_of(d.instruction.reads));
    if (!llvm_writes.empty()) {
      Registers writes;
      add(writes, op.dst, m.dwords);
      CHECK(writes == llvm_writes);
    }
    // The instruction reads the addresses and stored data that the checks look at.
    for (uint32_t i = 0; i < d.op.info.address.count; ++i)
      CHECK(llvm_reads.contains(d.op.info.address.first + i));
    for (uint32_t i = 0; i < d.op.info.stored.count; ++i)
      CHECK(llvm_reads.contains(d.op.info.stored.first + i));
    if (std::string_view(line).find("store") != std::string_view::npos)
      CHECK(d.op.info.stored.count == m.dwords);
  }
}

TEST_CASE("every memory instruction of LLVM but global wave sync is executed", "[isa][tables]") {
  // All opcodes of each format, with registers in their fields or without.
  std::set<std::string> run, refused;
  emulator::Disassembler disassembler;
  emulator::Decoder decoder(emulator::SimdPath::portable);
  auto try_words = [&](uint32_t first, uint32_t second) {
    const std::array<uint32_t, 2> words{first, second};
    const auto instruction = disassembler.decode(std::as_bytes(std::span(words)), 0);
    if (!instruction || instruction->bytes != 8) return;
    const bool refuses = decoder.decode(*instruction, words, 0).refusal != "";
    (refuses ? refused : run)
        .insert(instruction->mnemonic + (first >> 26 == 0x38 && (first >> 16 & 1) != 0 ? " lds" : ""));
  };
  for (uint32_t op = 0; op < 256; ++op) {
    for (uint32_t fields :
         {0x08060402u, 0x00060402u, 0x08000402u, 0x00000402u, 0x08000002u, 0x08000000u, 0x2u, 0x400u, 0u})
      for (uint32_t gds : {0u, 1u})
        try_words(0xd8000000 | op << 17 | gds << 16, fields);
    for (uint32_t imm : {0u, 1u})
      try_words(0xc0000000 | op << 18 | imm << 17 | 4 << 6 | 2, 0);
    try_words(0xc0000000 | op << 18, 0);
    for (uint32_t lds : {0u, 1u})
      for (uint32_t fields : {0x80010402u, 0x80010002u, 0x0u})
        try_words(0xe0000000 | (op & 127) << 18 | lds << 16 | (fields != 0 ? 1u << 12 : 0), fields);
    try_words(0xe8000000 | (op & 15) << 15 | 4 << 19 | 4 << 23 | 1 << 12, 0x80010402);
    try_words(0xe8000000 | (op & 15) << 15 | 1 << 19 | 4 << 23 | 1 << 12, 0x80010402);
    for (uint32_t segment : {0u, 1u, 2u})
      for (uint32_t fields :
           {0x047f0602u, 0x047f0002u, 0x007f0602u, 0x007f0002u, 0x04000602u, 0x04000002u, 0x602u})
        for (uint32_t scratch_vaddr : {0u, 1u})
          try_words(0xdc000000 | (op & 127) << 18 | segment << 14 | scratch_vaddr << 13, fields);
  }
  for (const std::string &name : refused)
    CHECK(name.starts_with("ds_gws_sema_"));
  CHECK(refused.size() == 4);
  CHECK(run.size() == 443);
}

TEST_CASE("the cache policy of vector memory instructions is decoded", "[isa][tables]") {
  for (const std::string line :
       {"global_load_dword v20, v2, s[4:5]", "global_store_dword v2, v20, s[4:5]",
        "flat_load_dword v20, v[2:3]", "scratch_load_dword v20, v2, off",
        "buffer_load_dword v20, v2, s[4:7], 0 offen", "buffer_store_dword v20, v2, s[4:7], 0 offen",
        "buffer_atomic_add v20, v2, s[4:7], 0 offen",
        "tbuffer_load_format_x v20, v2, s[4:7], 0 format:4 offen", "buffer_inv", "buffer_wbl2"})
    for (uint32_t policy = 0; policy < 8; ++policy) {
      const bool sc0 = (policy & 1) != 0, sc1 = (policy & 2) != 0, nt = (policy & 4) != 0;
      if (nt && (line == "buffer_inv" || line == "buffer_wbl2")) continue;
      const std::string text = line + (sc0 ? " sc0" : "") + (nt ? " nt" : "") + (sc1 ? " sc1" : "");
      INFO(text);
      const Decoded d = decode(text);
      CHECK(d.op.refusal == "");
      for (const emulator::Op *op : {&d.op.fast, &d.op.strict}) {
        CHECK(op->memory.sc0 == sc0);
        CHECK(op->memory.sc1 == sc1);
        CHECK(op->memory.nt == nt);
      }
    }
}

TEST_CASE("any bytes decode to an operation or to a reason", "[isa][tables]") {
  emulator::Disassembler disassembler;
  emulator::Decoder decoder(emulator::SimdPath::portable);
  std::mt19937 random(1);
  size_t run = 0, refused = 0;
  for (uint32_t i = 0; i < 60000; ++i) {
    const std::array<uint32_t, 3> words{uint32_t(random()), uint32_t(random()), uint32_t(random())};
    const auto instruction = disassembler.decode(std::as_bytes(std::span(words)), 0);
    if (!instruction) continue;
    REQUIRE(instruction->bytes % 4 == 0);
    REQUIRE(instruction->bytes <= sizeof words);
    const emulator::DecodedOp op =
        decoder.decode(*instruction, std::span(words).first(instruction->bytes / 4), 0);
    REQUIRE(op.fast.run != nullptr);
    REQUIRE(op.strict.run != nullptr);
    ++(op.refusal.empty() ? run : refused);
    if (!op.refusal.empty()) continue;
    // Registers stay within the files for all values of the fields.
    for (const auto *ranges : {&instruction->reads, &instruction->writes})
      for (const emulator::RegisterRange &range : *ranges)
        REQUIRE(range.first + range.count <= emulator::first_sgpr + emulator::sgpr_count);
    if (op.fast.dst != emulator::no_operand) REQUIRE(op.fast.dst <= emulator::scc_operand);
  }
  CHECK(run > 1000);
  CHECK(refused > 0);
}

TEST_CASE("the machine refuses, with a reason, what it does not model exactly", "[isa][tables]") {
  const char *lines[] = {"s_rfe_b64 s[2:3]",
                         "s_rfe_restore_b64 s[2:3], s4",
                         "s_endpgm_saved",
                         "s_sendmsghalt sendmsg(MSG_INTERRUPT)",
                         "s_sethalt 1",
                         "s_setvskip s0, 1",
                         "s_getreg_b32 s0, hwreg(HW_REG_IB_STS)",
                         "s_setreg_b32 hwreg(HW_REG_TRAPSTS), s0",
                         "s_mov_b32 ttmp1, 0",
                         "v_readfirstlane_b32 ttmp1, v0",
                         "v_screen_partition_4se_b32 v0, v1",
                         "v_mul_u32_u24_e64 v0, v1, v2 clamp",
                         "v_mad_u32_u16 v0, v1, v2, v3 op_sel:[0,0,1]",
                         "v_alignbit_b32 v0, v1, v2, v3 op_sel:[1,0,0]",
                         "v_dot2_f32_f16 v0, v1, v2, v3 neg_hi:[0,0,1]",
                         "v_dot4_i32_i8 v0, v1, v2, v3 neg_lo:[1,0,0]",
                         "v_mov_b32_e32 v0, src_vccz",
                         "v_mov_b32_e32 v0, src_execz",
                         "tbuffer_load_format_x v0, off, s[0:3], 0 format:0",
                         "ds_gws_sema_br v0 gds",
                         "ds_gws_sema_p gds",
                         "ds_gws_sema_v gds",
                         "ds_gws_sema_release_all gds",
                         "v_mfma_f32_32x32x4_2b_f16 v[0:31], v[32:33], v[34:35], v[0:31] cbsz:2"};
  for (const char *line : lines) {
    INFO(line);
    CHECK(decode(line).op.refusal != "");
  }
}

} // namespace sluice::test

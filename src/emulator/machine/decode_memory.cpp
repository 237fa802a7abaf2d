//===- decode_memory.cpp - operations of LDS and memory -------------------------------------------------===//
#include <algorithm>
#include <iterator>

#include "emulator/exec/memory/buffer_format.h"
#include "emulator/isa/wave.h"
#include "emulator/machine/decoder.h"

namespace sluice::emulator {

namespace {

/// Where a format puts the parts of an access.
struct Placed {
  const Fields &f;
  const InstructionFacts &facts;
  Op &op;
  OpInfo &info;
  ConstantPool &constants;

  /// A register of the operand whose file the ACC bit chooses.
  uint16_t data(uint16_t number) const { return vector_register(number, (f.acc & 1) != 0); }
};

void place_lds(const Placed &p) {
  const Fields &f = p.f;
  MemoryControl &m = p.op.memory;
  // The field that holds the address in other instructions holds data in those of global wave sync.
  const bool is_sync = p.facts.role == Role::global_sync;
  p.op.src[0] = is_sync ? p.data(f.src[0]) : f.src[0];
  p.op.src[1] = p.data(f.src[1]);
  p.op.src[2] = p.data(f.src[2]);
  p.op.dst = p.data(f.dst);
  m.return_old = p.facts.has(Fact::returns_old);
  if (m.parts == 2) {
    m.offset = f.offset0 * p.facts.data.offset_unit;
    m.offset1 = uint32_t(f.offset1) * p.facts.data.offset_unit;
  } else {
    m.offset = f.offset0 | f.offset1 << 8;
  }
  if (is_sync || (m.bytes != 0 && !p.facts.has(Fact::address_in_m0))) p.info.address = {p.op.src[0], 1};
}

void place_flat(const Placed &p) {
  const Fields &f = p.f;
  Op &op = p.op;
  MemoryControl &m = op.memory;
  m.mode = p.facts.has(Fact::flat)      ? AddressMode::flat
           : p.facts.has(Fact::scratch) ? AddressMode::scratch
                                        : AddressMode::global;
  m.offset = f.imm;
  m.return_old = f.sc0;
  op.src[1] = p.data(f.src[1]);
  op.dst = p.data(f.dst);
  if (m.mode != AddressMode::scratch || f.scratch_vaddr) op.src[0] = f.src[0];
  if (m.mode != AddressMode::flat && f.soffset != 0x7f) op.src[2] = uint16_t(first_sgpr + f.soffset);
  if (op.src[0] == no_operand) return;
  const bool pair = m.mode == AddressMode::flat || (m.mode == AddressMode::global && op.src[2] == no_operand);
  p.info.address = {op.src[0], uint16_t(pair ? 2 : 1)};
}

void place_buffer(const Placed &p) {
  const Fields &f = p.f;
  Op &op = p.op;
  MemoryControl &m = op.memory;
  m.mode = AddressMode::global;
  m.offset = f.imm;
  m.offset_enable = f.offen;
  m.index_enable = f.idxen;
  m.return_old = f.sc0;
  op.src[1] = op.dst = p.data(f.dst);
  op.src[2] = uint16_t(first_sgpr + f.srsrc);
  op.mask_in = p.constants.source(f.soffset, OperandType::b32, f);
  if (f.offen || f.idxen) {
    op.src[0] = f.src[0];
    p.info.address = {op.src[0], uint16_t(f.offen + f.idxen)};
  }
}

void place_typed_buffer(const Placed &p) {
  const Fields &f = p.f;
  place_buffer(p);
  p.op.memory.format = uint8_t(f.data_format | f.number_format << 4);
  std::string refusal = buffer_format_refusal(f.data_format, NumberFormat(f.number_format),
                                              p.op.memory.components, p.facts.role == Role::store);
  if (!refusal.empty()) throw Refusal{std::move(refusal)};
}

void place_scalar(const Placed &p) {
  const Fields &f = p.f;
  p.op.memory.offset = f.imm_enable ? f.imm : 0;
  p.op.memory.return_old = f.sc0;
  p.op.src[0] = uint16_t(first_sgpr + f.srsrc);
  if (f.soffset_enable || !f.imm_enable) p.op.src[1] = uint16_t(first_sgpr + f.soffset);
  p.op.dst = uint16_t(first_sgpr + f.dst);
}

struct MemoryFormat {
  Format format;
  OpKind kind;
  bool is_buffer;
  MemoryRoutines (*routines)(const InstructionFacts &facts, bool to_lds);
  void (*place)(const Placed &);
};
constexpr MemoryFormat memory_formats[] = {
    {Format::ds, OpKind::lds, false, [](const InstructionFacts &facts, bool) { return lds_routines(facts); },
     place_lds},
    {Format::flat, OpKind::vector_memory, false,
     [](const InstructionFacts &facts, bool) { return flat_routines(facts); }, place_flat},
    {Format::mubuf, OpKind::vector_memory, true, buffer_routines, place_buffer},
    {Format::mtbuf, OpKind::vector_memory, true, buffer_routines, place_typed_buffer},
    {Format::smem, OpKind::scalar_memory, false,
     [](const InstructionFacts &facts, bool) { return scalar_memory_routines(facts); }, place_scalar},
};

/// What the row of facts and the bits that all formats have say.
MemoryControl control_of(const InstructionFacts &facts, const Fields &f, bool to_lds) {
  const DataFacts &data = facts.data;
  MemoryControl m{};
  m.dwords = to_lds ? 0 : uint8_t(data.dwords());
  m.bytes = data.bytes;
  m.parts = data.parts;
  m.half = data.half;
  m.sign_extend = data.sign_extend;
  m.components = data.components;
  m.packed_16 = data.packed_16;
  m.align_down = facts.has(Fact::aligns_address);
  m.sc0 = f.sc0;
  m.sc1 = f.sc1;
  m.nt = f.nt;
  return m;
}

/// The stored registers, and whether the address is in M0.
void note_registers(const MemoryFormat &format, const Placed &p) {
  const Op &op = p.op;
  OpInfo &info = p.info;
  if (p.facts.role == Role::store || info.is_atomic()) {
    const DataFacts &data = p.facts.data;
    auto count = uint16_t(data.dwords() / data.parts);
    // A second operand follows the first, except in DS, which has a field for it.
    if (format.kind != OpKind::lds)
      count = uint16_t(count * (op.memory.second ? 2 : 1));
    else if (op.memory.second || data.parts == 2)
      info.second_stored = {op.src[2], count};
    info.stored = {format.kind == OpKind::scalar_memory ? op.dst : op.src[1], count};
  }
  constexpr uint16_t m0 = first_sgpr + sgpr_m0;
  if (info.kind == OpKind::lds_copy || p.facts.has(Fact::reads_m0))
    info.m0_wait = format.is_buffer ? M0Wait::copy : M0Wait::required;
  info.address_in_m0 = info.m0_wait != M0Wait::none || p.facts.has(Fact::address_in_m0) || op.src[2] == m0 ||
                       op.mask_in == m0 || (format.kind == OpKind::scalar_memory && op.src[1] == m0);
  const bool has_scalar_offset = format.is_buffer && p.f.soffset < 128;
  info.data_read_late = info.kind == OpKind::vector_memory && info.stored.count > 2 && !has_scalar_offset;
}

} // namespace

bool Decoder::decode_memory(const Fields &f, DecodedOp &result) {
  OpInfo &info = result.info;
  const InstructionFacts &facts = *info.facts;
  const auto row = std::ranges::find(memory_formats, f.format, &MemoryFormat::format);
  if (row == std::end(memory_formats)) return false;
  const MemoryFormat &format = *row;
  const MemoryRoutines routines = format.routines(facts, f.lds);
  if (!routines.fast) return false;
  const bool to_lds = facts.role == Role::copy_to_lds || (facts.role == Role::load && f.lds);
  info.kind = to_lds ? OpKind::lds_copy : format.kind;
  Op op;
  op.memory = control_of(facts, f, to_lds);
  if (info.is_atomic()) {
    const AtomicRule &rule = atomic_rule(facts.data);
    op.atomic = rule.body;
    op.memory.second = rule.second;
    op.memory.memory_denormals = rule.memory_denormals;
    op.memory.lds_denormals = rule.lds_denormals;
  }
  const Placed placed{f, facts, op, info, pool};
  format.place(placed);
  note_registers(format, placed);
  result.fast = result.strict = op;
  result.fast.run = routines.fast;
  result.strict.run = routines.strict;
  return true;
}

} // namespace sluice::emulator

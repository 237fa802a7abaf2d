//===- program.cpp - loading and decoding a code object -------------------------------------------------===//
//
// All executable bytes are decoded once, in a sweep over the executable segment. Bytes that are not an
// instruction become stops: they cost nothing unless a wave gets there.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/machine/program.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include <sys/mman.h>

#include "emulator/isa/encoding.h"
#include "emulator/machine/decoder.h"

namespace sluice::emulator {

namespace {

constexpr uint64_t page = 4096;

std::span<std::byte> map_image(uint64_t bytes) {
  const uint64_t size = std::max<uint64_t>((bytes + page - 1) / page * page, page);
  void *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw std::runtime_error("no memory for a code object of " + std::to_string(bytes) + " bytes");
  return {static_cast<std::byte *>(memory), size};
}

/// Whether any instruction of the kernel's own code names AccVGPRs.
bool names_acc_vgprs(const ProgramImpl &program, const package::Kernel &kernel) {
  const std::vector<OpInfo> &infos = program.infos.infos;
  const uint64_t end = kernel.code_bytes != 0 ? kernel.entry_address + kernel.code_bytes : UINT64_MAX;
  const int32_t first = program.op_at_address(kernel.entry_address);
  for (uint32_t op = uint32_t(std::max(first, 0)); op < infos.size() && program.address_of(op) < end; ++op)
    if (infos[op].agprs_end != 0) return true;
  return false;
}

KernelInfo kernel_info(const ProgramImpl &program, const package::Kernel &kernel) {
  KernelInfo info;
  info.name = kernel.name;
  info.entry = kernel.entry_address;
  info.descriptor = kernel.descriptor_address;
  info.kernarg_bytes = kernel.kernarg_bytes;
  info.lds_bytes = kernel.lds_bytes;
  info.scratch_bytes = kernel.private_bytes;
  info.vgprs = kernel.descriptor.vgprs();
  info.accum_offset = kernel.descriptor.accum_offset();
  info.acc_vgprs = info.vgprs > info.accum_offset ? info.vgprs - info.accum_offset : 0;
  info.arch_vgprs = names_acc_vgprs(program, kernel) ? std::min(info.vgprs, info.accum_offset) : info.vgprs;
  // Granules of 16; VCC, FLAT_SCRATCH and XNACK_MASK take the end of the last one.
  info.sgprs = std::min<uint32_t>(((kernel.descriptor.rsrc1 >> 6 & 15) / 2 + 1) * 16, 102);
  info.max_workgroup_threads = kernel.max_workgroup_size;
  return info;
}

/// `limits`: all registers that the instruction names, used or not.
void add_ranges(OpInfos &infos, const std::vector<RegisterRange> &ranges,
                const std::vector<RegisterRange> &limits, OpInfo &info, uint32_t &begin, uint32_t &end) {
  begin = uint32_t(infos.ranges.size());
  infos.ranges.insert(infos.ranges.end(), ranges.begin(), ranges.end());
  end = uint32_t(infos.ranges.size());
  for (const RegisterRange &range : limits) {
    const uint16_t last = uint16_t(range.first + range.count);
    if (range.first < first_agpr)
      info.vgprs_end = std::max(info.vgprs_end, last);
    else if (range.first < first_sgpr)
      info.agprs_end = std::max(info.agprs_end, uint16_t(last - first_agpr));
    else if (last <= first_sgpr + 102)
      info.sgprs_end = std::max(info.sgprs_end, uint16_t(last - first_sgpr));
  }
}

/// The target of a long branch that ends with this s_setpc_b64, as a dword.
void find_long_branch(ProgramImpl &program, const package::Segment &segment, size_t op) {
  std::array<uint32_t, long_branch_dwords> dwords;
  const size_t offset = program.offset_of[op], before = (dwords.size() - 1) * sizeof dwords[0];
  if (offset < before) return;
  std::memcpy(dwords.data(), segment.file.data() + offset - before, sizeof dwords);
  const std::optional<uint64_t> target = long_branch_target(dwords, segment.address + offset);
  if (!target) return;
  const uint64_t dword = (*target - segment.address) / 4;
  program.infos.infos[op].ends_long_branch = true;
  program.fast[op].value = dword < program.op_at.size() ? int32_t(dword) : -1;
}

bool can_acquire(const DecodedOp &decoded) {
  const Role role = decoded.info.role();
  if (role == Role::global_sync) return true;
  if (decoded.info.kind == OpKind::lds) return false;
  if (is_atomic(role)) return decoded.strict.memory.return_old;
  return (role == Role::load || role == Role::copy_to_lds) && decoded.strict.memory.sc1;
}

void decode_code(ProgramImpl &program, const package::Segment &segment) {
  program.code_start = segment.address;
  const size_t size = segment.file.size() / 4 * 4;
  program.op_at.assign(size / 4, -1);

  uint32_t dwords[5];
  Disassembler disassembler;
  Decoder decoder(best_simd_path());
  auto add = [&](DecodedOp decoded, uint32_t offset, std::string text, const Instruction *instruction) {
    const uint32_t index = uint32_t(program.fast.size());
    decoded.fast.index = decoded.strict.index = index;
    if (instruction) {
      const std::span<const uint32_t> code{dwords, instruction->bytes / 4};
      add_ranges(program.infos, registers_read(*instruction, code), instruction->reads, decoded.info,
                 decoded.info.reads_begin, decoded.info.reads_end);
      add_ranges(program.infos, instruction->writes, instruction->writes, decoded.info,
                 decoded.info.writes_begin, decoded.info.writes_end);
    }
    program.fast.push_back(decoded.fast);
    program.strict.push_back(decoded.strict);
    program.infos.infos.push_back(decoded.info);
    program.acquires = program.acquires || (instruction && can_acquire(decoded));
    program.offset_of.push_back(offset);
    program.texts.push_back(std::move(text));
    if (!decoded.refusal.empty()) program.refusals[index] = std::move(decoded.refusal);
    if (offset / 4 < program.op_at.size()) program.op_at[offset / 4] = int32_t(index);
  };

  for (size_t offset = 0; offset < size;) {
    const std::span<const std::byte> rest =
        segment.file.subspan(offset, std::min<size_t>(size - offset, sizeof dwords));
    const std::optional<Instruction> instruction = disassembler.decode(rest, segment.address + offset);
    if (!instruction || instruction->bytes > rest.size()) {
      std::memcpy(dwords, rest.data(), 4);
      add(Decoder::refuse("the bytes are not an instruction of gfx942"), uint32_t(offset), "", nullptr);
      offset += 4;
      continue;
    }
    std::memcpy(dwords, rest.data(), instruction->bytes);
    add(decoder.decode(*instruction, {dwords, instruction->bytes / 4}, uint32_t(offset / 4)),
        uint32_t(offset), instruction->text, &*instruction);
    offset += instruction->bytes;
  }
  add(Decoder::refuse("the code ends here"), uint32_t(size), "", nullptr);
  program.offset_of.push_back(uint32_t(size));

  // Branch targets were dwords; now they are instructions.
  for (size_t i = 0; i < program.fast.size(); ++i) {
    if (program.infos.infos[i].role() == Role::indirect_jump) find_long_branch(program, segment, i);
    if (!program.infos.infos[i].jumps()) continue;
    const int64_t dword = program.fast[i].value;
    const bool inside = dword >= 0 && size_t(dword) < program.op_at.size();
    program.fast[i].value = program.strict[i].value = inside ? program.op_at[size_t(dword)] : -1;
  }
  program.constants = decoder.constants().rows();
}

} // namespace

ProgramImpl::~ProgramImpl() {
  if (!image.empty()) munmap(image.data(), image.size());
}

int32_t ProgramImpl::op_at_address(uint64_t address) const {
  const uint64_t offset = address - code_start;
  return offset % 4 == 0 && offset / 4 < op_at.size() ? op_at[offset / 4] : -1;
}

std::string ProgramImpl::text(uint32_t op) const {
  if (!texts[op].empty()) return texts[op];
  std::string bytes = "bytes";
  for (uint64_t at = offset_of[op]; at < offset_of[op + 1]; ++at) {
    char byte[8];
    std::snprintf(byte, sizeof byte, " %02x", unsigned(uint8_t(image[code_start + at])));
    bytes += byte;
  }
  return bytes;
}

OpRange ProgramImpl::ops_of(const package::Kernel &kernel) const {
  const int32_t first = op_at_address(kernel.entry_address);
  if (first < 0) return {0, 0};
  uint64_t end = code_start + op_at.size() * 4;
  if (kernel.code_bytes != 0)
    end = std::min(end, kernel.entry_address + kernel.code_bytes);
  else
    for (const KernelInfo &other : kernels)
      if (other.entry > kernel.entry_address) end = std::min(end, other.entry);
  OpRange range{uint32_t(first), uint32_t(first)};
  while (range.last < texts.size() && address_of(range.last) < end)
    ++range.last;
  return range;
}

CodeMap ProgramImpl::code_map() const {
  return {reinterpret_cast<uint64_t>(image.data()) + code_start, uint32_t(op_at.size()), op_at.data(),
          offset_of.data()};
}

Program::Program(std::span<const std::byte> elf) : implementation(std::make_unique<ProgramImpl>()) {
  ProgramImpl &p = *implementation;
  p.file.assign(elf.begin(), elf.end());
  p.object = package::CodeObject::parse(p.file);
  const package::Segment *code = nullptr;
  for (const package::Segment &segment : p.object.segments()) {
    if (!segment.executable) continue;
    if (code) throw std::runtime_error("the code object has more than one executable segment");
    code = &segment;
  }
  if (!code) throw std::runtime_error("the code object has no executable segment");
  p.image = map_image(p.object.image_bytes());
  p.object.load(p.image.first(p.object.image_bytes()), reinterpret_cast<uint64_t>(p.image.data()));
  decode_code(p, *code);
  std::vector<uint32_t> entries;
  for (const package::Kernel &kernel : p.object.kernels()) {
    p.kernels.push_back(kernel_info(p, kernel));
    if (const int32_t entry = p.op_at_address(kernel.entry_address); entry >= 0)
      entries.push_back(uint32_t(entry));
  }
  p.quiet_runs = find_quiet_runs(p.strict, p.infos, entries);
}

Program::~Program() = default;

const std::vector<KernelInfo> &Program::kernels() const {
  return implementation->kernels;
}

const KernelInfo *Program::kernel(std::string_view name) const {
  for (const KernelInfo &kernel : implementation->kernels)
    if (kernel.name == name) return &kernel;
  return nullptr;
}

std::span<std::byte> Program::variable(std::string_view name) const {
  const package::Symbol *symbol = implementation->object.find_symbol(name);
  if (!symbol || !symbol->defined || symbol->type != 1) return {};
  if (symbol->address > implementation->image.size() ||
      symbol->size > implementation->image.size() - symbol->address)
    return {};
  return implementation->image.subspan(symbol->address, symbol->size);
}

std::span<std::byte> Program::image() const {
  return implementation->image;
}

std::string Program::disassemble(std::string_view name) const {
  const ProgramImpl &p = *implementation;
  const package::Kernel *kernel = p.object.find_kernel(name);
  if (!kernel) return {};
  const OpRange range = p.ops_of(*kernel);
  std::string text;
  for (uint32_t op = range.first; op < range.last; ++op) {
    char address[32];
    std::snprintf(address, sizeof address, "%06llx: ", static_cast<unsigned long long>(p.address_of(op)));
    text += address + p.text(op) + "\n";
  }
  return text;
}

} // namespace sluice::emulator

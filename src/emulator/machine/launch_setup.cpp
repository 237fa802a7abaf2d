//===- launch_setup.cpp - a launch before its first workgroup -------------------------------------------===//
#include "emulator/machine/launch_setup.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace sluice::emulator {

namespace {

constexpr uint64_t no_budget = std::numeric_limits<uint64_t>::max();
constexpr uint32_t preload_prologue_bytes = 256;

const package::Kernel &find_kernel(const ProgramImpl &program, std::string_view name) {
  const package::Kernel *kernel = program.object.find_kernel(name);
  if (!kernel) throw std::invalid_argument("the code object has no kernel \"" + std::string(name) + "\"");
  return *kernel;
}

DispatchShape checked_shape(const package::Kernel &kernel, std::array<uint32_t, 3> grid,
                            std::array<uint32_t, 3> block, uint32_t dynamic_lds_bytes, size_t kernarg_bytes,
                            bool cooperative) {
  const uint64_t lds_bytes = uint64_t(kernel.lds_bytes) + dynamic_lds_bytes;
  const DispatchShape shape{grid, block, uint32_t(std::min<uint64_t>(lds_bytes, UINT32_MAX)),
                            scratch_bytes_of(kernel), cooperative};
  check_dispatch(kernel, shape, kernarg_bytes);
  return shape;
}

/// What a wave may access: the caller's memory, what the dispatch adds to it, and the program itself.
std::vector<MemoryBlock> visible_blocks(const ProgramImpl &program, const Dispatch &dispatch,
                                        const BlockTable &memory, const Options &options) {
  std::vector<MemoryBlock> blocks = options.pools ? options.pools->divide(memory.blocks()) : memory.blocks();
  for (MemoryBlock &block : blocks)
    if (block.device != MemoryBlock::host && (options.reachable_devices >> block.device & 1) == 0)
      block.freed = block.foreign = true;
  for (const MemoryBlock &block : dispatch.blocks())
    blocks.push_back(block);
  for (const package::Segment &segment : program.object.segments()) {
    if (segment.memory_bytes == 0) continue;
    const uint64_t address = reinterpret_cast<uint64_t>(program.image.data()) + segment.address;
    const bool known = std::any_of(blocks.begin(), blocks.end(), [&](const MemoryBlock &block) {
      return block.contains(address, segment.memory_bytes);
    });
    if (!known) blocks.push_back({address, segment.memory_bytes, 0, segment.writable, false, true});
  }
  return blocks;
}

/// The levels of hazards that are asked for, or none if the kernel has no hazard of these levels.
std::array<bool, hazard_levels> sought_hazards(const ProgramImpl &program, const Checks &checks,
                                               uint32_t entry) {
  const std::array<bool, hazard_levels> wanted{checks.hazards, checks.hazards_compiler,
                                               checks.hazards_by_count, checks.hazards_waived};
  if (wanted == std::array<bool, hazard_levels>{}) return {};
  const std::array<bool, hazard_levels> possible = program.hazard_levels_from(entry);
  for (size_t level = 0; level < hazard_levels; ++level)
    if (wanted[level] && possible[level]) return wanted;
  return {};
}

} // namespace

LaunchSetup::LaunchSetup(const Program &whole, std::string_view name, std::array<uint32_t, 3> grid,
                         std::array<uint32_t, 3> block, uint32_t dynamic_lds_bytes,
                         std::span<const std::byte> kernarg, const Memory &whole_memory,
                         const Options &options)
    : program(whole.impl()), code(find_kernel(program, name)), info(*whole.kernel(name)),
      shape(checked_shape(code, grid, block, dynamic_lds_bytes, kernarg.size(), options.cooperative)),
      dispatch(code, shape, reinterpret_cast<uint64_t>(program.image.data()), kernarg),
      memory(whole_memory.snapshot()), table(visible_blocks(program, dispatch, *memory, options)),
      sink(options.max_reports, options.stop_at_report, suppressing(options.suppressions)),
      unused_reads(program.infos.infos.size()) {
  launch.program = &program;
  launch.kernel = &code;
  launch.options = &options;
  launch.grid = grid;
  launch.block = block;
  launch.threads = block[0] * block[1] * block[2];
  launch.waves = (launch.threads + wave_lanes - 1) / wave_lanes;
  launch.lds_bytes = shape.lds_bytes;
  launch.scratch_bytes = shape.scratch_bytes;
  launch.strict = options.checks != Checks::none() || options.completion != CompletionOrder::early ||
                  options.tracer != nullptr || options.watch != nullptr || options.fidelity != nullptr;
  launch.instruction_budget = options.instruction_budget != 0 ? options.instruction_budget : no_budget;
  launch.code = program.code_map();
  if (options.fidelity) launch.fidelity = &fidelity.emplace(program.infos, program.strict, *options.fidelity);
  const bool preload = options.preload_kernargs && code.descriptor.preload_length() != 0;
  if (options.cooperative) launch.sync = &sync.emplace(uint64_t(grid[0]) * grid[1] * grid[2]);
  launch.entry = program.op_at_address(code.entry_address + (preload ? preload_prologue_bytes : 0));
  if (launch.entry < 0)
    throw std::invalid_argument("kernel \"" + std::string(name) + "\" has no code at its entry");
  launch.user_sgprs = dispatch.user_sgprs(preload);

  const bool compares =
      options.checks.global_races || options.checks.global_equal_stores || options.checks.stale_caches;
  const bool several = launch.waves > 1 || uint64_t(grid[0]) * grid[1] * grid[2] > 1;
  const bool shadows = (compares && several) || options.list_memory_uses;
  launch.checks = {&options,
                   &sink,
                   &program.infos,
                   &program.quiet_runs,
                   sought_hazards(program, options.checks, uint32_t(launch.entry)),
                   &table,
                   info.arch_vgprs,
                   info.acc_vgprs,
                   info.sgprs,
                   shadows ? &shadow : nullptr,
                   shadows && program.acquires ? &atomics : nullptr,
                   options.watch.get(),
                   &unused_reads};
}

std::string LaunchSetup::source(uint32_t op) {
  if (!lines) lines.emplace(program.file);
  return lines->at(program.address_of(op));
}

Report LaunchSetup::report_of(const Finding &finding) {
  Report report;
  report.kind = finding.rule.kind;
  report.level = finding.rule.level;
  report.rule = finding.rule.hazard;
  report.fails = finding.rule.fails;
  report.goes_on = finding.rule.goes_on;
  report.kernel = info.name;
  report.message = finding.message;
  if (report.kind == ReportKind::unknown_instruction && report.message.empty()) {
    const auto refusal = program.refusals.find(finding.op);
    report.message =
        refusal != program.refusals.end() ? refusal->second : "the machine does not run this form";
  }
  report.pc = program.address_of(finding.op);
  report.disassembly = program.text(finding.op);
  report.source = source(finding.op);
  report.workgroup = finding.workgroup;
  report.wave = finding.wave;
  report.lane = finding.lane;
  report.address = finding.address;
  if (finding.other_op)
    report.other = Report::Other{program.address_of(*finding.other_op), program.text(*finding.other_op),
                                 finding.other_wave, source(*finding.other_op)};
  return report;
}

ReportSink::Suppressing LaunchSetup::suppressing(std::shared_ptr<const Suppressions> rules) {
  if (!rules) return nullptr;
  return [this, rules = std::move(rules)](const Finding &finding) {
    return rules->line_for(report_of(finding));
  };
}

std::vector<Report> LaunchSetup::reports() {
  report_loads_at_atomics(launch.checks, launch.grid, launch.waves);
  report_reads_met(launch.checks);
  std::vector<Report> reports;
  for (const ReportSink::Entry &entry : sink.take()) {
    Report report = report_of(entry.finding);
    report.count = entry.count;
    if (entry.suppressed != 0) {
      report.suppressed = entry.suppressed;
      report.set({false, false});
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

std::optional<FidelityNote> LaunchSetup::fidelity_note() {
  if (!fidelity) return std::nullopt;
  FidelityNote note = fidelity->note();
  for (FidelityNote::Place &place : note.places) {
    const auto op = uint32_t(place.pc);
    place.kernel = info.name;
    place.pc = program.address_of(op);
    place.disassembly = program.text(op);
    place.source = source(op);
  }
  return note;
}

std::vector<MemoryUse> LaunchSetup::uses() {
  std::vector<MemoryUse> uses = shadow.uses();
  for (MemoryUse &use : uses)
    if (const MemoryBlock *block = table.find(use.start, 1)) use.block = block->serial;
  return uses;
}

} // namespace sluice::emulator

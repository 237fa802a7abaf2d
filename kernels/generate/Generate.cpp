//===- Generate.cpp - variants to machine code and packs ------------------------------------------------===//
#include "generate/Generate.h"

#include "attention/ChooseSchedule.h"
#include "attention/Kernel.h"
#include "attention/KeyBlocks.h"
#include "cache_ops/CacheOps.h"
#include "generate/Decisions.h"
#include "generate/TrimNops.h"
#include "package/dtypes.h"
#include "package/feature_names.h"
#include "package/kernargs.h"
#include "package/pack_merge.h"
#include "package/pack_writer.h"
#include "target/ScheduleChoices.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Config/llvm-config.h"

using namespace mlir;

namespace sluice {
namespace {

package::KernelEntry packageEntry(const AttentionVariant &variant, unsigned waveSize) {
  namespace names = package::feature_names;
  package::KernelEntry entry;
  entry.threads = variant.waves * waveSize;
  entry.kernarg_bytes = sizeof(package::AttentionKernargs);
  entry.kernarg_hash = package::attention_kernarg_hash();
  entry.features.assign(std::begin(names::common_attention), std::end(names::common_attention));
  // Rows of V that are the front of those of K are not columns.
  entry.features.push_back(variant.vByColumns ? names::v_pack : names::v_in_k);
  // 16-bit numbers do not need a scale for each key, and 4-bit numbers have one for each group.
  if ((variant.dtype == "e4m3fnuz" || !variant.kvDtype.empty()) && variant.kvDtype != "u4")
    entry.features.push_back(names::key_scales);
  if (variant.paged)
    entry.features.insert(entry.features.end(), {names::paged, names::csr, names::page_index_64});
  if (variant.paged && package::kernel_hides_missing_pages(variant.waveRows, variant.tileKv))
    entry.features.push_back(names::missing_pages);
  // Rows in blocks are whole blocks.
  if (package::kernel_cuts_rows(variant.waveRows, variant.headDimQk, !variant.vInK && !variant.vByColumns) &&
      !KeyBlocks::kindOf(variant.kvDtype))
    entry.features.push_back(names::padded_rows);
  // Rows in blocks are not in packs.
  if (variant.paged && !KeyBlocks::kindOf(variant.kvDtype)) entry.features.push_back(names::k_pack);
  entry.p_rounding = variant.dtype == "f16" || variant.dtype == "bf16" ? "centred_cut" : "nearest_even";
  return entry;
}

Fp8Flavour flavourOf(StringRef type) {
  return llvm::StringSwitch<Fp8Flavour>(type)
      .Cases({"e4m3fnuz", "e5m2fnuz"}, Fp8Flavour::Fnuz)
      .Cases({"e4m3fn", "e5m2"}, Fp8Flavour::Ocp)
      .Default(Fp8Flavour::None);
}

bool isFp8(StringRef type) {
  return flavourOf(type) != Fp8Flavour::None;
}

/// Equal types are copied bit by bit.
bool convertsFp8(const CacheOpVariant &variant) {
  return variant.from != variant.to && (isFp8(variant.from) || isFp8(variant.to));
}

/// Elements of a byte may have a scale, and those of 4 bits have one; ggml's types have theirs in the cache.
bool hasScale(const CacheOpVariant &variant) {
  const bool isConverted = variant.from != variant.to;
  return convertsFp8(variant) || variant.to == "i8" || variant.to == "u4" ||
         (isConverted && (variant.from == "i8" || variant.from == "u4"));
}

package::KernelEntry packageEntry(const CacheOpVariant &variant, unsigned) {
  ArrayRef<package::KernargField> fields = kernargFields(variant);
  namespace names = package::feature_names;
  package::KernelEntry entry;
  entry.threads = package::cache_op_threads;
  entry.kernarg_bytes = fields.back().offset + package::kernarg_bytes(fields.back().kind);
  entry.kernarg_hash = package::kernarg_hash(fields);
  if (variant.operation == "merge_states")
    entry.features = {names::lse, names::lse_base_2, names::sink_logits};
  else if (variant.operation == "kv_copy")
    entry.features = {names::pairs, names::block, names::csr, names::page_index_64};
  else if (package::is_in_blocks(variant.to))
    entry.features = {names::slots, names::block, names::csr, names::page_index_64, names::rotary};
  else
    entry.features = {names::slots,         names::block,    names::csr,
                      names::page_index_64, names::x_packed, names::rotary};
  if (variant.operation == "kv_copy" && !package::is_in_blocks(variant.from))
    entry.features.push_back(names::x_packed);
  if (variant.operation == "append_step")
    entry.features.insert(entry.features.end(), {names::q_rows, names::norm, names::tail});
  if (hasScale(variant)) entry.features.push_back(names::scale);
  return entry;
}

OwningOpRef<ModuleOp> buildModule(MLIRContext &context, const Variant &variant, const Chip &chip) {
  std::string name = kernelName(variant);
  if (const auto *cacheOp = std::get_if<CacheOpVariant>(&variant.kind))
    return buildCacheOpModule(context, name, *cacheOp);
  return buildKernelModule(context, name, std::get<AttentionVariant>(variant.kind), chip.waveSize);
}

/// FP8 bytes mean other numbers on a chip of another flavour.
bool isFor(const Variant &variant, const Chip &chip) {
  auto hasNumbersOf = [&](StringRef type) { return !isFp8(type) || flavourOf(type) == chip.fp8; };
  if (const auto *cacheOp = std::get_if<CacheOpVariant>(&variant.kind))
    return !convertsFp8(*cacheOp) || (hasNumbersOf(cacheOp->from) && hasNumbersOf(cacheOp->to));
  const auto &attention = std::get<AttentionVariant>(variant.kind);
  return hasNumbersOf(attention.dtype) && hasNumbersOf(attention.kvDtype);
}

/// Remarks report what the passes decided, which `explain` shows.
LogicalResult printDiagnostic(Diagnostic &diagnostic) {
  if (diagnostic.getSeverity() == DiagnosticSeverity::Remark) return success();
  llvm::errs() << diagnostic << "\n";
  return success();
}

gpu::GPUModuleOp kernelsOf(ModuleOp module) {
  return *module.getOps<gpu::GPUModuleOp>().begin();
}

/// How many waves per SIMD LDS allows to be resident; two are enough to hide each other's latency, and fewer
/// leave each more registers. A kernel whose rows take most of one wave's registers says so
/// (`sluice.waves_per_simd`).
unsigned targetWavesPerSimd(gpu::GPUModuleOp module, const Chip &chip) {
  constexpr unsigned enough = 2;
  unsigned waves = 1, most = enough;
  for (LLVM::LLVMFuncOp kernel : module.getOps<LLVM::LLVMFuncOp>()) {
    if (auto size = kernel->getAttrOfType<DenseI32ArrayAttr>("rocdl.reqd_work_group_size"))
      waves = size.asArrayRef()[0] / chip.waveSize;
    if (auto wanted = kernel->getAttrOfType<IntegerAttr>("sluice.waves_per_simd")) most = wanted.getInt();
  }
  unsigned lds = staticLdsBytes(module);
  unsigned workgroups = lds == 0 ? most : chip.ldsBytes / lds;
  return std::clamp(workgroups * waves / simdsPerComputeUnit, 1u, most);
}

} // namespace

std::string kernelName(const Variant &variant) {
  return package::format_kernel_name(variant.name);
}

Generator::Generator(unsigned stages) : stages(stages) {
  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllExtensions(registry);
  context.appendDialectRegistry(registry);
  context.getDiagEngine().registerHandler(printDiagnostic);
  // The pass manager calls this before each pass; adaptors, which run the passes of nested operations, are
  // unnamed.
  context.registerActionHandler([this](function_ref<void()> run, const tracing::Action &action) {
    const auto *execution = dyn_cast<PassExecutionAction>(&action);
    if (execution && !execution->getPass().getArgument().empty()) {
      StringRef pass = execution->getPass().getArgument();
      size_t earlier = llvm::count_if(passRuns, [&](StringRef run) { return run.split(':').first == pass; });
      passRuns.push_back(pass.str() + (earlier == 0 ? "" : ":" + std::to_string(earlier + 1)));
      if (passRuns.back() == disabledPass) return;
    }
    run();
  });
}

OwningOpRef<ModuleOp> Generator::lower(const Variant &variant, const Chip &chip,
                                       llvm::raw_ostream *stagesOut) {
  std::string name = kernelName(variant);
  OwningOpRef<ModuleOp> module = buildModule(context, variant, chip);
  if (!isFor(variant, chip)) {
    module->emitError() << chip.name << " cannot have '" << name << "': it has other 8-bit numbers";
    return {};
  }
  if (failed(verify(*module))) return {};
  if (auto own = schedules.find(name); own != schedules.end())
    module->walk([&](gpu::GPUFuncOp kernel) {
      kernel->setAttr(scheduleParts, StringAttr::get(&context, own->second));
    });
  PassManager passes(&context);
  if (std::holds_alternative<AttentionVariant>(variant.kind))
    buildKernelPipeline(passes, {chip.name.str(), stages});
  else
    buildConversionPipeline(passes.nest<gpu::GPUModuleOp>(), {chip.name.str(), stages});
  if (stagesOut) {
    module->walk([&](AttentionOp op) {
      if (FailureOr<Schedule> schedule = scheduleOf(op); succeeded(schedule))
        *stagesOut << "==== schedule ====\n  " << schedule->text() << "\n\n";
    });
    *stagesOut << "==== input ====\n" << *module << "\n";
    passes.enableIRPrinting(/*shouldPrintBeforePass=*/[](Pass *, Operation *) { return false; },
                            /*shouldPrintAfterPass=*/[](Pass *, Operation *) { return true; },
                            /*printModuleScope=*/false, /*printAfterOnlyOnChange=*/true,
                            /*printAfterOnlyOnFailure=*/false, *stagesOut);
  }
  passRuns.clear();
  if (failed(passes.run(*module))) return {};
  if (!disabledPass.empty() && !llvm::is_contained(passRuns, disabledPass)) {
    module->emitError() << "no pass is called '" << disabledPass << "'; --list-passes prints the names";
    return {};
  }
  return module;
}

FailureOr<std::vector<std::string>> Generator::passNames(const Variant &variant, const Chip &chip) {
  if (!lower(variant, chip)) return failure();
  return passRuns;
}

FailureOr<CodeObject> Generator::compile(ModuleOp module, const Chip &chip) {
  gpu::GPUModuleOp kernels = kernelsOf(module);
  for (LLVM::LLVMFuncOp kernel : kernels.getOps<LLVM::LLVMFuncOp>()) {
    auto own = schedules.find(kernel.getName());
    if (own == schedules.end()) continue;
    StringAttr name = StringAttr::get(&context, ScheduleChoices::attribute);
    StringAttr choices = StringAttr::get(&context, ScheduleChoices::in(own->second).text());
    kernel.setPassthroughAttr(ArrayAttr::get(&context, {ArrayAttr::get(&context, {name, choices})}));
  }
  FailureOr<CodeObject> code = compileToCodeObject(kernels, {chip, targetWavesPerSimd(kernels, chip)});
  if (failed(code) || failed(trimNops(*code, chip, [&] { return kernels.emitError(); }))) return failure();
  return code;
}

static LogicalResult render(const FailureOr<CodeObject> &code, StringRef stage, std::string &result) {
  if (failed(code)) return failure();
  if (stage == "llvm")
    result = code->llvmIr;
  else if (stage == "asm")
    result = code->assembly;
  else
    result.assign(code->elf.begin(), code->elf.end());
  return success();
}

static std::string print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream(text) << module;
  return text + "\n";
}

LogicalResult Generator::generate(const Variant &variant, const Chip &chip, StringRef stage,
                                  std::string &result) {
  if (stage == "input") {
    result = print(*buildModule(context, variant, chip));
    return success();
  }
  OwningOpRef<ModuleOp> module = lower(variant, chip);
  if (!module) return failure();
  if (stage == "mlir") {
    result = print(*module);
    return success();
  }
  return render(compile(*module, chip), stage, result);
}

LogicalResult Generator::compileFile(StringRef path, const Chip &chip, StringRef stage, std::string &result) {
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(path, &context);
  if (!module) return failure();
  if (module->getOps<gpu::GPUModuleOp>().empty()) return module->emitError() << "holds no gpu.module";
  return render(compile(*module, chip), stage, result);
}

LogicalResult Generator::generatePack(ArrayRef<Variant> variants, ArrayRef<const Chip *> chips,
                                      std::string &result) {
  std::vector<std::vector<std::byte>> parts;
  for (const Variant &variant : variants)
    for (const Chip *chip : chips) {
      if (!isFor(variant, *chip)) continue;
      OwningOpRef<ModuleOp> module = lower(variant, *chip);
      if (!module) return failure();
      FailureOr<CodeObject> code = compile(*module, *chip);
      if (failed(code)) return failure();
      Decisions decisions = readDecisions(kernelsOf(*module));
      package::KernelEntry entry =
          std::visit([&](const auto &kind) { return packageEntry(kind, chip->waveSize); }, variant.kind);
      entry.name = variant.name;
      entry.lds_bytes = decisions.ldsBytes;
      entry.stages = decisions.stages;
      entry.copy_groups = decisions.copyGroups;
      entry.lds_bytes_without_reuse = decisions.ldsBytesWithoutReuse;
      package::PackWriter part("sluice-kernelgen", LLVM_VERSION_STRING);
      const package::ChipCode object = {chip->name.str(),
                                        std::as_bytes(std::span(code->elf.data(), code->elf.size()))};
      part.add(std::move(entry), {&object, 1});
      parts.push_back(part.finish());
    }
  // A row that none of the chips supports gives a pack without kernels.
  if (parts.empty()) parts.push_back(package::PackWriter("sluice-kernelgen", LLVM_VERSION_STRING).finish());
  std::vector<package::PackReader> readers(parts.begin(), parts.end());
  std::vector<std::byte> bytes = package::merge_packs(readers);
  result.assign(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  return success();
}

} // namespace sluice

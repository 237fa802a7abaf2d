//===- Codegen.cpp - LLVM dialect to a linked gfx9 code object ------------------------------------------===//
//
// Every ROCm since 5.5 loads code object version 5; older runtimes refuse version 6. The target is the bare
// chip: code with xnack and sramecc unspecified loads on every configuration.
//
//===----------------------------------------------------------------------------------------------------===//
#include "target/Codegen.h"
#include "target/ScheduleMachineCode.h"

#include "lld/Common/Driver.h"
#include "mlir/Target/LLVM/ROCDL/Utils.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/ROCDL/ROCDLToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/RegisterTargetPassConfigCallback.h"
#include "llvm/Target/TargetMachine.h"

LLD_HAS_DRIVER(elf)

using namespace mlir;

namespace sluice {
namespace {

constexpr unsigned codeObjectVersion = 500;
constexpr const char *triple = "amdgcn-amd-amdhsa";
// No kernel has scratch, but without this LLVM reserves four SGPRs of gfx90a for it, and SGPRs then spill.
constexpr const char *features = "+enable-flat-scratch";

void initializeBackend() {
  static const bool once = [] {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTarget();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmPrinter();
    LLVMInitializeAMDGPUAsmParser(); // for inline assembly
    return true;
  }();
  (void)once;
}

std::unique_ptr<llvm::TargetMachine> createTargetMachine(const Chip &chip, std::string &error) {
  initializeBackend();
  llvm::Triple machine(triple);
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(machine, error);
  if (!target) return nullptr;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      machine, chip.name, features, {}, llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

void setKernelAttributes(llvm::Module &module, const CodegenOptions &options) {
  module.addModuleFlag(llvm::Module::Error, "amdhsa_code_object_version", codeObjectVersion);
  for (llvm::Function &function : module) {
    if (function.getCallingConv() != llvm::CallingConv::AMDGPU_KERNEL) continue;
    // Only a minimum: with a maximum, LLVM declares registers the kernel does not use to keep waves away.
    function.addFnAttr("amdgpu-waves-per-eu", std::to_string(options.wavesPerSimd));
    // All matrix operands stay in VGPRs: moves to and from AccVGPRs would cost VALU time.
    function.addFnAttr("amdgpu-agpr-alloc", "0");
    // IEEE mode makes every maximum quiet possibly signalling NaNs first; nothing here relies on it.
    function.addFnAttr("amdgpu-ieee", "false");
  }
}

void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PipelineTuningOptions tuning;
  // Packed f32 arithmetic cannot run alongside an MFMA; the SLP vectoriser would create it from scalar code.
  tuning.SLPVectorization = false;
  tuning.LoopUnrolling = false;
  llvm::PassBuilder passes(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(callGraph);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, callGraph, modules);
  passes.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

/// interleave-mfma decides the order of instructions; LLVM's schedulers, which do not spread vector work
/// below MFMAs, would undo it. Branches that all lanes of a wave take together stay branches. If one side
/// were placed after the other, values that both need would stay live through the first, and the backend
/// would see copies of both sides as possibly missing from a path and wait for all memory before LDS reads.
/// Nor do the paths through a loop share instructions: if their ends are merged, they are not regions of
/// their own, and all code between becomes one path after the other. lld resets all options, so they are set
/// again for every object.
void keepSourceOrder() {
  auto &&options = llvm::cl::getRegisteredOptions();
  for (auto [name, value] : {std::pair{"pre-RA-sched", "source"},
                             {"enable-misched", "false"},
                             {"enable-post-misched", "false"},
                             {"disable-machine-licm", "true"},
                             {"sink-common-insts", "false"},
                             {"hoist-common-insts", "false"},
                             {"structurizecfg-skip-uniform-regions", "true"}}) {
    llvm::cl::Option *option = options.lookup(name);
    assert(option && "LLVM 22 has these options");
    option->reset();
    [[maybe_unused]] bool refused = option->addOccurrence(0, name, value);
    assert(!refused);
  }
}

LogicalResult emitAssembly(llvm::Module &module, llvm::TargetMachine &machine, std::string &text) {
  keepSourceOrder();
  llvm::RegisterTargetPassConfigCallback schedule(
      [](llvm::TargetMachine &, llvm::legacy::PassManagerBase &, llvm::TargetPassConfig *config) {
        addScheduleMachineCode(*config);
      });
  llvm::SmallString<0> buffer;
  llvm::raw_svector_ostream stream(buffer);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return failure();
  passes.run(module);
  text = buffer.str();
  return success();
}

/// Holds the object file between the assembler and lld; removed with its contents.
class ScratchFolder {
public:
  ScratchFolder() { failed = bool(llvm::sys::fs::createUniqueDirectory("sluice-kernelgen", path)); }
  ~ScratchFolder() { llvm::sys::fs::remove_directories(path); }

  llvm::SmallString<128> path;
  bool failed;
};

} // namespace

FailureOr<CodeObject> compileToCodeObject(gpu::GPUModuleOp module, const CodegenOptions &options) {
  MLIRContext *context = module.getContext();
  registerBuiltinDialectTranslation(*context);
  registerGPUDialectTranslation(*context);
  registerLLVMDialectTranslation(*context);
  registerROCDLDialectTranslation(*context);
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> llvmModule = translateModuleToLLVMIR(module, llvmContext, "sluice");
  if (!llvmModule) return module.emitError() << "cannot be translated to LLVM IR";

  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine = createTargetMachine(options.chip, error);
  if (!machine) return module.emitError() << "no code generator for " << options.chip.name << ": " << error;
  llvmModule->setTargetTriple(machine->getTargetTriple());
  llvmModule->setDataLayout(machine->createDataLayout());
  keepSourceOrder();
  setKernelAttributes(*llvmModule, options);
  optimize(*llvmModule, *machine);
  CodeObject result;
  llvm::raw_string_ostream(result.llvmIr) << *llvmModule;

  if (failed(emitAssembly(*llvmModule, *machine, result.assembly)))
    return module.emitError() << "cannot be compiled for " << options.chip.name;
  if (failed(assembleAndLink(result, options.chip, [&] { return module.emitError(); }))) return failure();
  return result;
}

LogicalResult assembleAndLink(CodeObject &code, const Chip &chip,
                              llvm::function_ref<InFlightDiagnostic()> emitError) {
  initializeBackend();
  FailureOr<SmallVector<char, 0>> object =
      ROCDL::assembleIsa(code.assembly, triple, chip.name, features, emitError);
  if (failed(object)) return failure();
  ScratchFolder scratch;
  if (scratch.failed) return emitError() << "cannot make a temporary folder";
  llvm::SmallString<128> input(scratch.path), linked(scratch.path);
  llvm::sys::path::append(input, "kernel.o");
  llvm::sys::path::append(linked, "kernel.hsaco");
  std::error_code error;
  llvm::raw_fd_ostream(input, error).write(object->data(), object->size());
  if (error) return emitError() << "cannot write " << input << ": " << error.message();
  std::string diagnostics;
  llvm::raw_string_ostream diagnosticStream(diagnostics);
  lld::Result status =
      lld::lldMain({"ld.lld", "-shared", "--no-undefined", input.c_str(), "-o", linked.c_str()},
                   llvm::nulls(), diagnosticStream, {{lld::Gnu, &lld::elf::link}});
  if (status.retCode != 0) return emitError() << "lld: " << diagnostics;
  auto file = llvm::MemoryBuffer::getFile(linked, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file) return emitError() << "cannot read " << linked << ": " << file.getError().message();
  code.elf.assign((*file)->getBufferStart(), (*file)->getBufferEnd());
  return success();
}

} // namespace sluice

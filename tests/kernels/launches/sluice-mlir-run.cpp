//===- sluice-mlir-run.cpp - run a host program in MLIR with its kernels --------------------------------===//
//
//   sluice-mlir-run FILE.mlir --device emulated      `main` of the file, a function of nothing to i32
//   sluice-mlir-run FILE.mlir --device hip:1         the same on a GPU
//
// gpu.modules are compiled and become gpu.binaries, launches become calls of the launch runtime, the rest of
// the host program is lowered by upstream passes, and the whole runs in process.
//
//===----------------------------------------------------------------------------------------------------===//
#include "generate/Pipeline.h"
#include "kernels/launches/LaunchRuntime.h"
#include "lowering/Passes.h"
#include "target/Codegen.h"
#include <sluice/emulator.h>

#include "mlir/Conversion/GPUCommon/GPUCommonPass.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"

using namespace mlir;
using namespace sluice;
namespace cl = llvm::cl;

namespace {

enum ExitCode { ran = 0, programFailed = 1, notCompiled = 2, deviceFailed = 3 };

cl::OptionCategory category("sluice-mlir-run options");
cl::opt<std::string> inputOption(cl::Positional, cl::Required, cl::desc("<file.mlir>"), cl::cat(category));
cl::opt<std::string> deviceOption("device", cl::desc("emulated, or hip:N for device N of the HIP runtime"),
                                  cl::init("emulated"), cl::cat(category));
cl::opt<std::string> chipOption("chip", cl::desc("Chip that kernels are compiled for"),
                                cl::init(PipelineOptions{}.chip), cl::cat(category));
cl::list<std::string> emulatorOption("emulator", cl::desc("A setting of the emulator, as in stream_order=7"),
                                     cl::value_desc("key=value"), cl::cat(category));
cl::opt<int64_t> failingOption("fail-call", cl::desc("Let the HIP call of this number fail, counted from 0"),
                               cl::init(-1), cl::cat(category));
cl::opt<bool> countersOption("counters", cl::desc("At the end, print what the device counted"),
                             cl::cat(category));

/// The command line, copied: in-process lld resets every option to its default.
struct Settings {
  std::string input = inputOption, device = deviceOption, chip = chipOption;
  std::vector<std::string> emulator{emulatorOption.begin(), emulatorOption.end()};
  std::optional<uint64_t> failingCall =
      failingOption < 0 ? std::nullopt : std::optional(uint64_t(failingOption));
  bool counters = countersOption;
};

int fail(ExitCode code, const llvm::Twine &message) {
  llvm::errs() << "sluice-mlir-run: " << message << "\n";
  return code;
}

/// Replaces every gpu.module by a gpu.binary with its machine code.
LogicalResult compileKernels(ModuleOp module, const Chip &chip) {
  MLIRContext *context = module.getContext();
  for (gpu::GPUModuleOp kernels : llvm::make_early_inc_range(module.getOps<gpu::GPUModuleOp>())) {
    FailureOr<CodeObject> code = compileToCodeObject(kernels, {chip, /*wavesPerSimd=*/1});
    if (failed(code)) return failure();
    OpBuilder builder(kernels);
    auto target = ROCDL::ROCDLTargetAttr::get(context, /*optLevel=*/3, "amdgcn-amd-amdhsa", chip.name);
    Attribute object =
        gpu::ObjectAttr::get(context, target, gpu::CompilationTarget::Binary,
                             builder.getStringAttr(StringRef(code->elf.data(), code->elf.size())),
                             /*properties=*/{}, /*kernels=*/{});
    gpu::BinaryOp::create(builder, kernels.getLoc(), kernels.getName(), /*offloadingHandler=*/Attribute(),
                          ArrayRef<Attribute>(object));
    kernels.erase();
  }
  return success();
}

LogicalResult lowerHost(ModuleOp module) {
  PassManager passes(module.getContext());
  passes.addPass(createLaunchToRuntime());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createGpuToLLVMConversionPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
  return passes.run(module);
}

/// The device and its source. Throws support::Failure.
std::pair<runtime::Device, runtime::HipSource> openDevice(const Settings &settings) {
  using support::Failure, support::Status, support::text;
  StringRef name = settings.device;
  if (name == "emulated") {
    runtime::HipSource source = runtime::find_emulator();
    auto configure = reinterpret_cast<decltype(&sluice_emulator_configure)>(
        source.resolver("sluice_emulator_configure", source.user));
    for (StringRef setting : settings.emulator) {
      auto [key, value] = setting.split('=');
      if (configure(key.str().c_str(), value.str().c_str()) != SLUICE_EMULATOR_OK)
        throw Failure(Status::invalid_argument, "emulator",
                      text("the emulator has no setting ", std::string_view(setting)));
    }
    return {runtime::open_device(SLUICE_DEVICE_EMULATED, 0, source), source};
  }
  int32_t ordinal;
  if (!name.consume_front("hip:") || name.getAsInteger(10, ordinal))
    throw Failure(Status::invalid_argument, "device",
                  text("--device is '", settings.device, "'; it must be emulated or hip:N"));
  if (!settings.emulator.empty())
    throw Failure(Status::invalid_argument, "emulator", "--emulator needs --device emulated");
  runtime::HipSource source = runtime::find_hip();
  return {runtime::open_device(SLUICE_DEVICE_HIP, ordinal, source), source};
}

void printCounters(const LaunchRuntime &launches, const runtime::HipSource &source) {
  llvm::outs() << "HIP calls: " << launches.hipCalls() << "\n";
  auto get = reinterpret_cast<decltype(&sluice_emulator_counters)>(
      source.resolver("sluice_emulator_counters", source.user));
  sluice_emulator_counters_t counters;
  if (!get || get(&counters, sizeof counters) != SLUICE_EMULATOR_OK) return;
  llvm::outs() << "kernels run: " << counters.launches << "\n"
               << "streams alive: " << counters.live_streams << "\n"
               << "events alive: " << counters.live_events << "\n"
               << "streams destroyed with work left: " << counters.busy_streams_destroyed << "\n";
}

void printReports(const runtime::HipSource &source) {
  auto take = reinterpret_cast<decltype(&sluice_emulator_take_reports)>(
      source.resolver("sluice_emulator_take_reports", source.user));
  if (!take) return;
  std::string text(take(nullptr, 0), '\0');
  take(text.data(), text.size());
  if (StringRef reports = text.c_str(); reports != "[]") llvm::errs() << reports << "\n";
}

int run(ModuleOp module, const Settings &settings) {
  auto engine = ExecutionEngine::create(module);
  if (!engine) return fail(notCompiled, llvm::toString(engine.takeError()));
  (*engine)->registerSymbols([](llvm::orc::MangleAndInterner interner) {
    llvm::orc::SymbolMap map;
    for (const auto &[name, address] : LaunchRuntime::symbols())
      map[interner(name)] = {llvm::orc::ExecutorAddr::fromPtr(address), llvm::JITSymbolFlags::Exported};
    return map;
  });
  auto entry = (*engine)->lookup("main");
  if (!entry) return fail(notCompiled, llvm::toString(entry.takeError()));

  auto [device, source] = openDevice(settings);
  LaunchRuntime launches(std::move(device), source, settings.failingCall);
  const int32_t result = reinterpret_cast<int32_t (*)()>(*entry)();
  launches.finish();
  if (settings.counters) printCounters(launches, source);
  if (!launches.failure().empty()) {
    printReports(source);
    return fail(deviceFailed, launches.failure());
  }
  llvm::outs() << "main returned " << result << "\n";
  return result == 0 ? ran : programFailed;
}

} // namespace

int main(int argc, char **argv) {
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, "Runs a host program in MLIR with its kernels\n");
  const Settings settings;
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  const Chip *chip = findChip(settings.chip);
  if (!chip) return fail(notCompiled, "chip '" + settings.chip + "' is not in the chip table");

  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registerAllToLLVMIRTranslations(registry);
  registry.insert<SluiceDialect>();
  MLIRContext context(registry);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(settings.input, &context);
  if (!module) return fail(notCompiled, "cannot read " + settings.input);
  auto entry = module->lookupSymbol<FunctionOpInterface>("main");
  if (!entry || entry.isExternal() || entry.getNumArguments() != 0 || entry.getNumResults() != 1 ||
      !entry.getResultTypes()[0].isInteger(32))
    return fail(notCompiled, "the program needs a function 'main' of type () -> i32");

  PassManager kernelPasses(&context);
  buildKernelPipeline(kernelPasses, {settings.chip, PipelineOptions{}.stages});
  if (failed(kernelPasses.run(*module)) || failed(compileKernels(*module, *chip)) ||
      failed(lowerHost(*module)))
    return fail(notCompiled, "cannot compile " + settings.input);
  try {
    return run(*module, settings);
  } catch (const support::Failure &failure) {
    return fail(deviceFailed, failure.message());
  }
}

//===- sluice-kernelgen.cpp - from the variant table to the kernel pack --------------------------------------===//
#include "attention/Kernel.h"
#include "target/Codegen.h"
#include "tools/Pipeline.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
using namespace sluice;

int main(int argc, char **argv) {
  llvm::cl::opt<std::string> dtype("dtype", llvm::cl::init("f16"));
  llvm::cl::opt<unsigned> d("d", llvm::cl::init(128)), w("w", llvm::cl::init(8));
  llvm::cl::opt<std::string> out("o", llvm::cl::init("-"));
  llvm::cl::opt<std::string> emit("emit", llvm::cl::init("elf"));
  llvm::cl::ParseCommandLineOptions(argc, argv);
  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllExtensions(registry);
  MLIRContext context(registry);
  ScopedDiagnosticHandler handler(&context, [](Diagnostic &d) { llvm::errs() << d.str() << "\n"; return success(); });
  AttentionVariant v{dtype, d, 64, w};
  std::string name = "attn_fwd_" + dtype + "_d" + std::to_string(d) + "_q" + std::to_string(v.tileQ()) + "_kv64_w" + std::to_string(w);
  auto module = buildKernelModule(context, name, v);
  if (emit == "input") { module->dump(); return 0; }
  PassManager pm(&context);
  if (emit == "all") { context.disableMultithreading(); pm.enableIRPrinting(); }
  buildKernelPipeline(pm, {});
  if (failed(pm.run(*module))) return 1;
  if (emit == "mlir") { module->dump(); return 0; }
  auto gm = *module->getOps<gpu::GPUModuleOp>().begin();
  auto r = compileToCodeObject(gm, {*findChip("gfx942"), 2, "/tmp"});
  if (failed(r)) return 1;
  std::error_code ec;
  llvm::ToolOutputFile f(out, ec, llvm::sys::fs::OF_None);
  if (emit == "llvm") f.os() << r->llvmIr; else f.os() << StringRef(r->elf.data(), r->elf.size());
  f.keep();
}

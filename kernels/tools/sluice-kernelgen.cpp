//===- sluice-kernelgen.cpp - from the variant table to the kernel pack
//--------------------------------------===//
//
//   sluice-kernelgen --pack FILE [--chips a,b]       every row of the variant table, for every chip
//   sluice-kernelgen --variant NAME --emit STAGE     one kernel, to standard output or -o FILE
//   sluice-kernelgen --compile FILE.mlir             a module that is already in the LLVM and ROCDL dialects
//
//===----------------------------------------------------------------------------------------------------===//
#include "tools/Generate.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace sluice;
namespace cl = llvm::cl;

namespace {

cl::OptionCategory category("sluice-kernelgen options");
cl::opt<bool> list("list", cl::desc("Print the names of all variants"), cl::cat(category));
cl::opt<std::string> pack("pack", cl::desc("Generate all variants into this kernel pack"),
                          cl::value_desc("file"), cl::cat(category));
cl::opt<std::string> variant("variant", cl::desc("Generate this variant only"), cl::value_desc("name"),
                             cl::cat(category));
cl::opt<std::string> compile("compile", cl::desc("Compile a module in the LLVM and ROCDL dialects"),
                             cl::value_desc("file.mlir"), cl::cat(category));
cl::opt<std::string> emit("emit", cl::desc("input, mlir (LLVM and ROCDL dialects), llvm or elf"),
                          cl::init("elf"), cl::cat(category));
cl::list<std::string> chips("chips", cl::desc("Chips to generate for; gfx942 by default"), cl::CommaSeparated,
                            cl::cat(category));
cl::opt<unsigned> stages("stages", cl::desc("LDS slots per copied tile"), cl::init(PipelineOptions{}.stages),
                         cl::cat(category));
cl::opt<std::string> disablePass("disable-pass", cl::desc("Leave out the pass of this name"),
                                 cl::value_desc("name"), cl::Hidden, cl::cat(category));
cl::opt<bool> listPasses("list-passes", cl::desc("Print the passes that --variant goes through, in order"),
                         cl::Hidden, cl::cat(category));
cl::opt<std::string> output("o", cl::desc("Output file; standard output by default"), cl::init("-"),
                            cl::value_desc("file"), cl::cat(category));

int fail(const llvm::Twine &message) {
  llvm::errs() << "sluice-kernelgen: " << message << "\n";
  return 1;
}

int write(llvm::StringRef path, llvm::StringRef bytes) {
  std::error_code error;
  llvm::ToolOutputFile file(path, error, llvm::sys::fs::OF_None);
  if (error) return fail("cannot write " + path + ": " + error.message());
  file.os() << bytes;
  file.os().flush();
  if (file.os().has_error()) return fail("cannot write " + path + ": " + file.os().error().message());
  file.keep();
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, "Generates the attention kernels of libsluice\n");
  // lld in process resets every option to its default: take the values before it runs.
  const std::string packPath = pack, variantName = variant, inputPath = compile, stage = emit,
                    outputPath = output;
  if (!llvm::is_contained({"input", "mlir", "llvm", "elf"}, stage))
    return fail("--emit is '" + stage + "'; it is input, mlir, llvm or elf");
  std::vector<std::string> chipNames(chips.begin(), chips.end());
  if (chipNames.empty()) chipNames = {"gfx942"};
  llvm::SmallVector<const Chip *> targets;
  for (const std::string &name : chipNames) {
    const Chip *chip = findChip(name);
    if (!chip) return fail("chip '" + name + "' is not in the chip table");
    targets.push_back(chip);
  }
  Generator generator(stages);
  generator.disablePass(disablePass);

  if (list) {
    for (const AttentionVariant &row : attentionVariants())
      llvm::outs() << kernelName(row) << "\n";
    return 0;
  }
  if (!packPath.empty()) {
    std::string bytes;
    if (failed(generator.generatePack(targets, bytes))) return fail("no pack written");
    return write(packPath, bytes);
  }
  if (targets.size() != 1) return fail("one kernel is generated for one chip; --chips names several");
  std::string result;
  if (!inputPath.empty()) {
    if (failed(generator.compileFile(inputPath, *targets[0], stage, result)))
      return fail("cannot compile " + inputPath);
    return write(outputPath, result);
  }
  const AttentionVariant *row = llvm::find_if(
      attentionVariants(), [&](const AttentionVariant &v) { return kernelName(v) == variantName; });
  if (row == attentionVariants().end())
    return fail("no variant is called '" + variantName + "'; --list prints the names");
  if (listPasses) {
    llvm::FailureOr<std::vector<std::string>> names = generator.passNames(*row, *targets[0]);
    if (failed(names)) return fail("cannot generate " + variantName);
    for (const std::string &name : *names)
      llvm::outs() << name << "\n";
    return 0;
  }
  if (failed(generator.generate(*row, *targets[0], stage, result)))
    return fail("cannot generate " + variantName);
  return write(outputPath, result);
}

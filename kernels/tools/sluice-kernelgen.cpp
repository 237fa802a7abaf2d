//===- sluice-kernelgen.cpp - from the variant table to the kernel pack ---------------------------------===//
//
//   sluice-kernelgen --pack FILE [--chips a,b]         every kernel of the list, for every chip
//   sluice-kernelgen --row NAME --pack FILE            one kernel
//   sluice-kernelgen --merge --pack FILE PACK...       one pack out of several
//   sluice-kernelgen --variant NAME --emit STAGE       one kernel, to standard output or -o FILE
//   sluice-kernelgen --explain NAME                    how it is built: IR, decisions, LDS, registers
//   sluice-kernelgen --compile FILE.mlir               a module in the LLVM and ROCDL dialects
//
// NAME is any name by the grammar of package/kernel_name.h, whether the list has it or not: a kernel that
// cannot be built is refused with the rule. The list is a file with one name on each line: kernel_names.txt
// next to the program, or the file that --names gives. The build writes it from
// kernels/attention/Variants.inc.
//
//===----------------------------------------------------------------------------------------------------===//
#include "generate/Generate.h"

#include "package/pack_merge.h"
#include "support/failure.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace sluice;
namespace cl = llvm::cl;

namespace {

cl::OptionCategory category("sluice-kernelgen options");
cl::opt<bool> list("list", cl::desc("Print the list of kernels"), cl::cat(category));
cl::opt<bool> chipTableWanted("chip-table", cl::desc("Print the chip table as markdown"), cl::cat(category));
cl::opt<std::string> names("names",
                           cl::desc("List of kernels; kernel_names.txt beside the program by default"),
                           cl::value_desc("file"), cl::cat(category));
cl::opt<std::string> row("row", cl::desc("One kernel, in place of the list"), cl::value_desc("name"),
                         cl::cat(category));
cl::opt<std::string> pack("pack", cl::desc("Write a kernel pack of the list"), cl::value_desc("file"),
                          cl::cat(category));
cl::opt<bool> merge("merge", cl::desc("Make the pack from other packs instead"), cl::cat(category));
cl::list<std::string> parts(cl::Positional, cl::desc("[packs to merge]"), cl::cat(category));
cl::opt<std::string> variant("variant", cl::desc("Generate this variant only"), cl::value_desc("name"),
                             cl::cat(category));
cl::opt<std::string> explain("explain", cl::desc("Show how this variant is built, stage by stage"),
                             cl::value_desc("name"), cl::cat(category));
cl::opt<std::string> compile("compile", cl::desc("Compile a module in the LLVM and ROCDL dialects"),
                             cl::value_desc("file.mlir"), cl::cat(category));
cl::opt<std::string> emit("emit", cl::desc("input, mlir (LLVM and ROCDL dialects), llvm, asm or elf"),
                          cl::init("elf"), cl::cat(category));
cl::list<std::string> chips("chips", cl::desc("Chips to generate for; gfx942 by default"), cl::CommaSeparated,
                            cl::cat(category));
cl::opt<unsigned> stages("stages", cl::desc("LDS slots per copied tile"), cl::init(PipelineOptions{}.stages),
                         cl::cat(category));
cl::opt<std::string> schedule("schedule",
                              cl::desc("Parts of the one kernel's schedule, in place of the table's"),
                              cl::value_desc("part=value ..."), cl::cat(category));
cl::opt<std::string> disablePass("disable-pass", cl::desc("Leave out the pass of this name"),
                                 cl::value_desc("name"), cl::Hidden, cl::cat(category));
cl::opt<bool> listPasses("list-passes", cl::desc("Print the passes that --variant goes through, in order"),
                         cl::Hidden, cl::cat(category));
cl::opt<std::string> output("o", cl::desc("Output file; standard output by default"), cl::init("-"),
                            cl::value_desc("file"), cl::cat(category));

/// The options as given: in-process lld resets them all to their defaults.
struct Request {
  bool list = ::list, chipTable = chipTableWanted, merge = ::merge, listPasses = ::listPasses;
  std::string names = ::names, row = ::row, pack = ::pack, variant = ::variant, explain = ::explain,
              compile = ::compile, emit = ::emit, disablePass = ::disablePass, output = ::output,
              schedule = ::schedule;
  std::vector<std::string> parts{::parts.begin(), ::parts.end()}, chips{::chips.begin(), ::chips.end()};
  unsigned stages = ::stages;
};

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

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> read(llvm::StringRef path) {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file) return llvm::createStringError("cannot read " + path + ": " + file.getError().message());
  return std::move(*file);
}

int mergeParts(const Request &request) {
  std::vector<std::unique_ptr<llvm::MemoryBuffer>> files;
  std::vector<package::PackReader> readers;
  for (const std::string &path : request.parts) {
    auto file = read(path);
    if (!file) return fail(llvm::toString(file.takeError()));
    files.push_back(std::move(*file));
    readers.emplace_back(
        std::as_bytes(std::span(files.back()->getBufferStart(), files.back()->getBufferSize())));
  }
  std::vector<std::byte> bytes = package::merge_packs(readers);
  return write(request.pack, llvm::StringRef(reinterpret_cast<const char *>(bytes.data()), bytes.size()));
}

std::string besideProgram(const char *program, llvm::StringRef name) {
  static int anchor;
  llvm::SmallString<256> beside(llvm::sys::fs::getMainExecutable(program, &anchor));
  llvm::sys::path::remove_filename(beside);
  llvm::sys::path::append(beside, name);
  return std::string(beside);
}

llvm::Expected<ScheduleTable> readSchedules(const char *program) {
  std::string path = besideProgram(program, "kernel_schedules.txt");
  auto file = read(path);
  if (!file) return file.takeError();
  auto table = parseScheduleTable((*file)->getBuffer());
  if (!table) return llvm::createStringError(path + ": " + llvm::toString(table.takeError()));
  return table;
}

llvm::Expected<std::vector<Variant>> readVariants(const Request &request, const char *program) {
  if (!request.row.empty()) {
    llvm::Expected<Variant> variant = parseVariant(request.row);
    if (!variant) return variant.takeError();
    return std::vector<Variant>{std::move(*variant)};
  }
  std::string path = request.names.empty() ? besideProgram(program, "kernel_names.txt") : request.names;
  auto file = read(path);
  if (!file) return file.takeError();
  auto variants = parseVariantList((*file)->getBuffer());
  if (!variants) return llvm::createStringError(path + ": " + llvm::toString(variants.takeError()));
  return variants;
}

int run(const Request &request, const char *program) {
  if (request.chipTable) {
    llvm::outs() << chipTable();
    return 0;
  }
  if (request.merge != !request.parts.empty()) return fail("--merge and packs to merge go together");
  if (request.merge) return mergeParts(request);
  if (!llvm::is_contained({"input", "mlir", "llvm", "asm", "elf"}, request.emit))
    return fail("--emit is '" + request.emit + "'; it must be input, mlir, llvm, asm or elf");
  llvm::SmallVector<const Chip *> targets;
  for (llvm::StringRef name : request.chips.empty() ? std::vector<std::string>{"gfx942"} : request.chips) {
    const Chip *chip = findChip(name);
    if (!chip) return fail("chip '" + name + "' is not in the chip table");
    targets.push_back(chip);
  }
  Generator generator(request.stages);
  generator.disablePass(request.disablePass);
  auto schedules = readSchedules(program);
  if (!schedules) return fail(llvm::toString(schedules.takeError()));
  if (!request.schedule.empty()) {
    schedules->clear();
    for (llvm::StringRef name : {request.variant, request.row, request.explain}) {
      if (name.empty()) continue;
      if (std::string why = refuseParts(name, request.schedule); !why.empty())
        return fail("--schedule: " + why);
      schedules->try_emplace(name, request.schedule);
    }
  }
  generator.setSchedules(std::move(*schedules));
  std::string result;
  if (!request.compile.empty()) {
    if (targets.size() != 1) return fail("one kernel is generated for one chip; --chips names several");
    if (failed(generator.compileFile(request.compile, *targets[0], request.emit, result)))
      return fail("cannot compile " + request.compile);
    return write(request.output, result);
  }

  if (request.list || !request.pack.empty()) {
    auto variants = readVariants(request, program);
    if (!variants) return fail(llvm::toString(variants.takeError()));
    if (request.list) {
      for (const Variant &known : *variants)
        llvm::outs() << kernelName(known) << "\n";
      return 0;
    }
    if (failed(generator.generatePack(*variants, targets, result))) return fail("no pack written");
    return write(request.pack, result);
  }
  if (targets.size() != 1) return fail("one kernel is generated for one chip; --chips names several");
  const std::string &name = !request.explain.empty()   ? request.explain
                            : !request.variant.empty() ? request.variant
                                                       : request.row;
  if (name.empty())
    return fail("nothing to generate: give --variant, --row, --explain, --compile, --pack or --list");
  auto known = parseVariant(name);
  if (!known) return fail(llvm::toString(known.takeError()) + "; --list prints the names of those that ship");
  if (request.listPasses) {
    llvm::FailureOr<std::vector<std::string>> names = generator.passNames(*known, *targets[0]);
    if (failed(names)) return fail("cannot generate " + name);
    for (const std::string &pass : *names)
      llvm::outs() << pass << "\n";
    return 0;
  }
  if (!request.explain.empty()) {
    llvm::raw_string_ostream text(result);
    if (failed(generator.explain(*known, *targets[0], text))) return fail("cannot generate " + name);
  } else if (failed(generator.generate(*known, *targets[0], request.emit, result))) {
    return fail("cannot generate " + name);
  }
  return write(request.output, result);
}

} // namespace

int main(int argc, char **argv) try {
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, "Generates the kernels of libsluice\n");
  return run(Request(), argv[0]);
} catch (const support::Failure &failure) {
  return fail(failure.message());
}

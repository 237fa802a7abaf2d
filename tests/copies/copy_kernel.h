//===- copy_kernel.h - kernels that copy tiles through LDS, compiled and run by the tests ---------------===//
//
// A kernel copies tile after tile of a source into LDS with sluice.async_dma, reads each one back with
// sluice.lds_read and stores it, row by row, to `out`. It is written as MLIR text, compiled by the tools that
// generate the shipped kernels, and runs on the emulator with all its checks.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "support/divisor.h"
#include "support/temporary_folder.h"
#include <sluice/emulator.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace sluice::test {

template <typename Function> Function *hip(const char *name) {
  void *symbol = sluice_emulator_symbol(name);
  if (!symbol) throw std::runtime_error(std::string("the emulator has no ") + name);
  return reinterpret_cast<Function *>(symbol);
}

inline void require_hip(int error, const char *what) {
  if (error != 0) throw std::runtime_error(std::string(what) + " failed with error " + std::to_string(error));
}

/// How the kernel reads a tile back. Each way reads every element once.
enum class Reads {
  rows,      // up to 8 elements a lane, lanes along the rows
  fragments, // as attention reads K: 32 rows, 16 bytes of each half of the wave
  columns,   // as attention reads V: along a row, columns / 32 elements a lane
  units,     // as attention reads V of a tile by columns: 16 elements of a column
};

struct KernelShape {
  unsigned rows = 32, columns = 128;
  std::string element = "f16"; // or bf16, or a type of one byte
  unsigned waves = 4;
  std::string swizzle = ", xor<8, 8>";
  unsigned stages = 1;
  Reads reads = Reads::rows;
  bool gather = false;                      // through a page table; otherwise rows are contiguous
  bool column_limit = false, close = false; // an operand and an attribute of the copy
  // Operands of gathers: entries may be wide, the division is prepared, rows have a hole, columns are in
  // packs.
  bool wide = false, magic = false, hole = false, packs = false;
  std::string from = ""; // the source's type of a copy through registers

  bool converts() const { return !from.empty() && from != element; }
  unsigned element_bytes() const { return element == "f16" || element == "bf16" ? 2 : 1; }
  unsigned source_bytes() const { return converts() ? 1 : element_bytes(); } // of an element
};

/// The kernel's parameters, laid out as in the kernarg segment.
struct CopyArguments {
  uint64_t base = 0, table = 0, out = 0;
  int64_t stride = 0, page_stride = 0, pack_stride = 0;
  int32_t first = 0, limit = 0, page_rows = 1, tiles = 1, column_limit = 0;
  uint32_t page_magic = 0, page_shift = 0, are_wide = 0;
  int32_t hole_begin = 0, hole_end = 0, pack_log2 = 0, padding = 0;
};

inline std::string copy_kernel_text(const KernelShape &shape) {
  const auto number = [](unsigned n) { return std::to_string(n); };
  const unsigned threads = shape.waves * 64;
  // Elements a lane reads at a time; small tiles are read in smaller pieces so that every lane has one.
  const unsigned length = shape.reads == Reads::columns ? shape.columns / 32
                          : shape.reads == Reads::units ? 16
                          : shape.reads == Reads::fragments
                              ? 16 / shape.element_bytes()
                              : std::min(shape.rows * shape.columns / threads, 8u);
  // LLVM does not store 8-bit floats.
  const std::string stored = shape.element_bytes() == 1 ? "i8" : shape.element;
  const std::string vector = "vector<" + number(length) + "x" + shape.element + ">",
                    stored_vector = "vector<" + number(length) + "x" + stored + ">";
  std::string text = "!tile = !sluice.lds_tile<" + number(shape.rows) + "x" + number(shape.columns) + "x" +
                     shape.element + shape.swizzle + ">\n";
  text +=
      "gpu.module @m {\n"
      "  gpu.func @copy(%base: !llvm.ptr<1>, %table: !llvm.ptr<1>, %out: !llvm.ptr<1>, %stride: i64,\n"
      "      %page_stride: i64, %pack_stride: i64, %first: i32, %limit: i32, %page_rows: i32, %tiles: i32,\n"
      "      %column_limit: i32, %page_magic: i32, %page_shift: i32, %are_wide: i32, %hole_begin: i32,\n"
      "      %hole_end: i32, %pack_log2: i32, %padding: i32) kernel\n"
      "      attributes {known_block_size = array<i32: " +
      number(threads) + ", 1, 1>} {\n";
  unsigned constants = 0;
  auto constant = [&](unsigned value) {
    const std::string name = "%k" + number(constants++);
    text += "    " + name + " = arith.constant " + number(value) + " : i32\n";
    return name;
  };
  auto compute = [&](const std::string &op, const std::string &a, const std::string &b) {
    const std::string name = "%k" + number(constants++);
    text += "    " + name + " = arith." + op + " " + a + ", " + b + " : i32\n";
    return name;
  };
  const std::string zero = constant(0), one = constant(1), rows = constant(shape.rows);
  text += "    %thread = rocdl.workitem.id.x : i32\n"
          "    %tile = sluice.lds_alloc : !tile\n"
          "    %wide = arith.trunci %are_wide : i32 to i1\n"
          "    scf.for %t = " +
          zero + " to %tiles step " + one + " : i32 {\n";
  const std::string done = compute("muli", "%t", rows), row_of_tile = compute("addi", "%first", done);
  if (shape.gather)
    text += std::string("    %pages = sluice.pages of %page_rows") +
            (shape.magic ? " magic %page_magic shift %page_shift" : "") +
            (shape.hole ? " hole %hole_begin to %hole_end" : "") +
            "\n    %entries = sluice.page_lookup %table[" + row_of_tile + "] limit %limit in %pages" +
            (shape.wide ? " wide %wide" : "") + "\n";
  text += "    %token = sluice.async_dma %base[" + row_of_tile + "] limit %limit";
  if (shape.column_limit) text += " columns %column_limit";
  text += " stride %stride";
  if (shape.gather) text += " gather %entries in %pages stride %page_stride";
  if (shape.packs) text += " packs %pack_log2 stride %pack_stride";
  text += " into %tile";
  if (!shape.from.empty()) text += " from " + shape.from;
  if (shape.close) text += " {close_rows}";
  text += " : !tile\n    sluice.async_wait %token\n";
  const unsigned pieces = shape.rows * shape.columns / length;
  for (unsigned piece = 0; piece < pieces; piece += threads) {
    const std::string n = compute("addi", "%thread", constant(piece));
    std::string row, column;
    switch (shape.reads) {
    case Reads::rows:
      row = compute("divui", n, constant(shape.columns / length));
      column = compute("muli", compute("remui", n, constant(shape.columns / length)), constant(length));
      break;
    case Reads::fragments: { // n = ((block * steps) + step) * 64 + lane
      const std::string lane = compute("remui", n, constant(64)),
                        fragment = compute("divui", n, constant(64));
      const std::string steps = constant(shape.columns / (2 * length));
      row = compute("addi", compute("muli", compute("divui", fragment, steps), constant(32)),
                    compute("remui", lane, constant(32)));
      column = compute("addi", compute("muli", compute("remui", fragment, steps), constant(2 * length)),
                       compute("muli", compute("divui", lane, constant(32)), constant(length)));
      break;
    }
    case Reads::columns: { // n = ((eight * 4) + k) * 64 + lane
      const std::string lane = compute("remui", n, constant(64)), read = compute("divui", n, constant(64));
      const std::string eight = compute("muli", compute("divui", read, constant(4)), constant(8));
      const std::string half = compute("muli", compute("divui", lane, constant(32)), constant(4));
      row = compute("addi", compute("addi", eight, compute("remui", read, constant(4))), half);
      column = compute("muli", compute("remui", lane, constant(32)), constant(length));
      break;
    }
    case Reads::units: { // n = ((32 rows * tiles) + tile) * 64 + lane
      const std::string lane = compute("remui", n, constant(64)), read = compute("divui", n, constant(64));
      const std::string tiles = constant(shape.columns / 32);
      row = compute("addi", compute("muli", compute("divui", read, tiles), constant(32)),
                    compute("muli", compute("divui", lane, constant(32)), constant(4)));
      column = compute("addi", compute("muli", compute("remui", lane, constant(32)), tiles),
                       compute("remui", read, tiles));
      break;
    }
    }
    const std::string value = "%v" + number(piece), pointer = "%p" + number(piece),
                      bytes = "%b" + number(piece);
    text +=
        "    " + value + " = sluice.lds_read %tile[" + row + ", " + column + "] : !tile, " + vector + "\n";
    auto place_of = [&](const std::string &row_value) {
      return compute("addi", compute("muli", compute("addi", done, row_value), constant(shape.columns)),
                     column);
    };
    if (shape.reads == Reads::units) {
      for (unsigned element = 0; element < length; ++element) {
        const std::string one_byte = bytes + "_" + number(element), at = pointer + "_" + number(element);
        const std::string place = place_of(compute("addi", row, constant(element / 4 * 8 + element % 4)));
        text += "    " + one_byte + " = vector.extract " + value + "[" + number(element) + "] : i8 from " +
                vector + "\n    " + at + " = llvm.getelementptr %out[" + place +
                "] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8\n    llvm.store " + one_byte + ", " + at +
                " {alignment = 1 : i64} : i8, !llvm.ptr<1>\n";
      }
      continue;
    }
    const std::string place = place_of(row);
    text += "    " + pointer + " = llvm.getelementptr %out[" + place +
            "] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, " + stored + "\n";
    text += "    " + bytes + " = arith.bitcast " + value + " : " + vector + " to " + stored_vector + "\n";
    text += "    llvm.store " + bytes + ", " + pointer +
            " {alignment = " + number(length * shape.element_bytes()) + " : i64} : " + stored_vector +
            ", !llvm.ptr<1>\n";
  }
  return text + "    sluice.barrier\n    }\n    gpu.return\n  }\n}\n";
}

class CopyKernel {
public:
  explicit CopyKernel(const KernelShape &shape) : shape(shape) {
    const TemporaryFolder folder;
    const std::string input = folder.write("kernel.mlir", copy_kernel_text(shape));
    const std::string bin = SLUICE_BIN;
    execute(bin + "/sluice-opt " + input + " -o " + folder.path("lowered.mlir") +
            " --pass-pipeline='builtin.module(gpu.module(gpu.func(pipeline-async-copies{stages=" +
            std::to_string(shape.stages) + "},distribute-async-dma)),sluice-lowering-pipeline)'");
    execute(bin + "/sluice-kernelgen --compile " + folder.path("lowered.mlir") + " -o " +
            folder.path("kernel.co"));
    elf = folder.read("kernel.co");
    require_hip(hip<int(void **, const void *)>("hipModuleLoadData")(&module, elf.data()),
                "hipModuleLoadData");
    require_hip(hip<int(void **, void *, const char *)>("hipModuleGetFunction")(&function, module, "copy"),
                "hipModuleGetFunction");
  }
  ~CopyKernel() { hip<int(void *)>("hipModuleUnload")(module); }
  CopyKernel(const CopyKernel &) = delete;
  CopyKernel &operator=(const CopyKernel &) = delete;

  struct Result {
    std::vector<uint16_t> tiles; // the elements' bits, row after row
    std::string reports;         // of the emulator, as JSON
    int error = 0;               // of the launch
    uint64_t bank_conflicts = 0;
  };

  Result run(CopyArguments arguments) const {
    Result result;
    const size_t element_bytes = shape.element_bytes();
    std::vector<uint8_t> stored(size_t(arguments.tiles) * shape.rows * shape.columns * element_bytes);
    void *out = nullptr;
    require_hip(hip<int(void **, size_t)>("hipMalloc")(&out, stored.size()), "hipMalloc");
    require_hip(hip<int(void *, int, size_t)>("hipMemset")(out, 0xaa, stored.size()), "hipMemset");
    arguments.out = reinterpret_cast<uint64_t>(out);
    const support::Divisor32 by_page{uint32_t(arguments.page_rows)};
    arguments.page_magic = by_page.magic;
    arguments.page_shift = by_page.shift;
    size_t bytes = sizeof arguments;
    void *extra[] = {(void *)1, &arguments, (void *)2, &bytes, (void *)3};
    using Launch = int(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                       void **, void **);
    const uint64_t before = conflicts();
    result.error = hip<Launch>("hipModuleLaunchKernel")(function, 1, 1, 1, shape.waves * 64, 1, 1, 0, nullptr,
                                                        nullptr, extra);
    const int synchronised = hip<int()>("hipDeviceSynchronize")();
    if (result.error == 0) result.error = synchronised;
    sluice_emulator_configure("clear_fault", "1");
    result.bank_conflicts = conflicts() - before;
    require_hip(
        hip<int(void *, const void *, size_t, int)>("hipMemcpy")(stored.data(), out, stored.size(), 2),
        "hipMemcpy");
    hip<int(void *)>("hipFree")(out);
    result.tiles.resize(stored.size() / element_bytes);
    for (size_t n = 0; n < result.tiles.size(); ++n)
      std::memcpy(&result.tiles[n], &stored[n * element_bytes], element_bytes);
    result.reports.resize(sluice_emulator_take_reports(nullptr, 0));
    sluice_emulator_take_reports(result.reports.data(), result.reports.size());
    result.reports.pop_back();
    return result;
  }

  std::string disassembly() const {
    std::string text(sluice_emulator_disassemble(elf.data(), elf.size(), "copy", nullptr, 0), '\0');
    sluice_emulator_disassemble(elf.data(), elf.size(), "copy", text.data(), text.size());
    return text;
  }

  const KernelShape shape;

private:
  static void execute(const std::string &command) {
    if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
  }
  static uint64_t conflicts() {
    sluice_emulator_counters_t counters;
    sluice_emulator_counters(&counters, sizeof counters);
    return counters.lds_bank_conflicts;
  }

  std::string elf;
  void *module = nullptr, *function = nullptr;
};

} // namespace sluice::test

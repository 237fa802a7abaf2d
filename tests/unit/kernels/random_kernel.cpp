//===- random_kernel.cpp - small kernels over LDS tiles, as text ----------------------------------------===//
#include "unit/kernels/random_kernel.h"

#include <random>
#include <vector>

namespace sluice::test {
namespace {

class Writer {
public:
  explicit Writer(uint32_t seed) : random(seed) {}

  std::string kernel() {
    const unsigned tiles = 3 + below(4);
    text = "gpu.module @m { gpu.func @kernel(%v: vector<4xf16>, %p: !llvm.ptr<1>, %i: i32, %s: i64, %c: i1) "
           "kernel {\n";
    for (unsigned tile = 0; tile < tiles; ++tile) {
      types.push_back("!sluice.lds_tile<" + std::to_string(1 + below(4)) + "x64xf16>");
      line("%t" + std::to_string(tile) + " = sluice.lds_alloc : " + types.back());
    }
    // Tiles written before everything else may be read anywhere.
    std::vector<bool> written(tiles);
    if (below(2)) use(below(tiles), written, 0);
    block(written, 0, 4 + below(5));
    line("sluice.wait_marks 0");
    text += "gpu.return } }\n";
    return text;
  }

private:
  unsigned below(unsigned end) { return std::uniform_int_distribution<unsigned>(0, end - 1)(random); }
  void line(const std::string &what) { text += what + "\n"; }
  std::string name(unsigned tile) const { return "%t" + std::to_string(tile); }

  void read(unsigned tile) {
    if (below(3)) line("sluice.wait_marks " + std::to_string(below(3)));
    if (below(4) == 0) line("sluice.barrier");
    line("%x" + std::to_string(values++) + " = sluice.lds_read " + name(tile) + "[%i, %i] : " + types[tile] +
         ", vector<4xf16>");
  }

  void write(unsigned tile) {
    if (below(2))
      return line("sluice.lds_write %v, " + name(tile) + "[%i, %i] : vector<4xf16>, " + types[tile]);
    const std::string token = "%d" + std::to_string(values++);
    line(token + " = sluice.async_dma %p[%i] limit %i stride %s into " + name(tile) + " : " + types[tile]);
    if (below(4) == 0) return line("sluice.async_wait " + token);
    if (below(6)) line("sluice.async_mark");
  }

  /// One range: some writes, anything in between, and a read.
  void use(unsigned tile, std::vector<bool> &written, unsigned depth) {
    write(tile);
    if (below(4) == 0) write(tile);
    written[tile] = true;
    if (below(2)) block(written, depth, 1 + below(2));
    read(tile);
    if (below(3) == 0) read(tile);
  }

  /// Read the values of an earlier iteration or of the code before, and write for the next iteration.
  void prefetch(unsigned tile) {
    read(tile);
    write(tile);
  }

  void block(std::vector<bool> &written, unsigned depth, unsigned statements) {
    for (unsigned n = 0; n < statements; ++n) {
      const unsigned tile = below(unsigned(types.size())), kind = below(depth < 3 ? 12 : 7);
      if (kind < 4) {
        use(tile, written, depth + 1);
      } else if (kind == 4) {
        if (written[tile]) read(tile);
      } else if (kind == 5) {
        line(below(2) ? "sluice.barrier" : "sluice.wait_marks " + std::to_string(below(3)));
      } else if (kind == 6) {
        if (below(2)) line("sluice.async_mark");
      } else if (kind < 10) {
        loop(written, depth + 1);
      } else {
        branch(written, depth + 1);
      }
    }
  }

  void loop(const std::vector<bool> &written, unsigned depth) {
    std::vector<bool> inside = written;
    const bool is_while = below(4) == 0;
    line(is_while ? "scf.while : () -> () { scf.condition(%c) } do {"
                  : "scf.for %n" + std::to_string(values++) + " = %i to %i step %i : i32 {");
    std::vector<unsigned> ahead;
    for (unsigned tile = 0; tile < written.size(); ++tile)
      if (written[tile] && below(3) == 0) ahead.push_back(tile);
    for (unsigned tile : ahead)
      prefetch(tile);
    block(inside, depth, 1 + below(3));
    line(is_while ? "scf.yield }" : "}");
  }

  void branch(std::vector<bool> &written, unsigned depth) {
    std::vector<bool> then = written, otherwise = written;
    line("scf.if %c {");
    block(then, depth, 1 + below(3));
    if (below(2)) {
      line("} else {");
      block(otherwise, depth, 1 + below(2));
    }
    line("}");
    for (size_t tile = 0; tile < written.size(); ++tile)
      written[tile] = then[tile] && otherwise[tile];
  }

  std::mt19937 random;
  std::string text;
  std::vector<std::string> types;
  unsigned values = 0;
};

} // namespace

std::string random_kernel(uint32_t seed) {
  return Writer(seed).kernel();
}

} // namespace sluice::test

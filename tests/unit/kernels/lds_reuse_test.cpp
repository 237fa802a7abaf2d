//===- lds_reuse_test.cpp - random kernels, run with the bytes that reuse-lds assigned ------------------===//
//
// An interpreter walks random paths through the output of the two passes, with two memories: in one every
// tile has separate bytes, in the other its assigned ones. Reads must find the same in both, whenever copies
// land; and between accesses to a byte through different tiles there must be a barrier, and no copy in
// flight. A path represents the whole workgroup: the work of waves between two barriers is not ordered.
//
// The oracle knows bytes, time and barriers; it shares nothing with the passes' notion of live ranges.
//
//===----------------------------------------------------------------------------------------------------===//
#include "transforms/Passes.h"
#include "unit/kernels/random_kernel.h"

#include "mlir/InitAllDialects.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <random>

namespace sluice {
namespace {

using namespace mlir;

constexpr unsigned granule = 128; // every tile of the random kernels is a multiple of it

class Interpreter {
public:
  Interpreter(gpu::GPUFuncOp kernel, uint32_t seed) : random(seed) {
    kernel.walk([&](LdsAllocOp alloc) {
      const unsigned size = alloc.getTile().getType().getBytes() / granule;
      const unsigned place = unsigned(*alloc.getOffset()) / granule;
      tiles[alloc.getTile()] = {unsigned(tiles.size()), place, size, std::vector<uint64_t>(size)};
      if (shared.size() < place + size) shared.resize(place + size);
    });
    run(kernel.getBody().front());
  }

  std::string complaint; // the first, or none
  unsigned reads = 0;

private:
  struct Tile {
    unsigned number, place, size;
    std::vector<uint64_t> own; // its contents if no tile shares its bytes; 0: nothing
  };
  struct Cell {
    uint64_t value = 0;
    std::map<unsigned, unsigned> touched; // by tile: the phase of its last access
    std::map<unsigned, unsigned> writing; // by tile: copies in flight
  };
  struct Copy {
    Operation *op;
    Tile *tile;
    uint64_t value;
    bool lands_early;
    bool marked = false;
  };

  unsigned below(unsigned end) { return std::uniform_int_distribution<unsigned>(0, end - 1)(random); }

  void complain(Operation *op, const std::string &what) {
    if (!complaint.empty()) return;
    llvm::raw_string_ostream stream(complaint);
    stream << what << " at ";
    op->print(stream);
  }

  void touch(Operation *op, Tile &tile, unsigned cell) {
    Cell &bytes = shared[tile.place + cell];
    for (auto [other, when] : bytes.touched)
      if (other != tile.number && when == phase)
        complain(op, "no barrier since tile " + std::to_string(other));
    for (auto [other, copies] : bytes.writing)
      if (other != tile.number && copies != 0)
        complain(op, "still copied into: tile " + std::to_string(other));
    bytes.touched[tile.number] = phase;
  }

  void store(Tile &tile, unsigned cell, uint64_t value) {
    tile.own[cell] = value;
    shared[tile.place + cell].value = value;
  }

  void land(Operation *op, const Copy &copy) {
    for (unsigned cell = 0; cell < copy.tile->size; ++cell) {
      --shared[copy.tile->place + cell].writing[copy.tile->number];
      touch(op, *copy.tile, cell);
      if (!copy.lands_early) store(*copy.tile, cell, copy.value);
    }
  }

  void read(LdsReadOp op) {
    Tile &tile = tiles.at(op.getTile());
    ++reads;
    for (unsigned cell = 0; cell < tile.size; ++cell)
      touch(op, tile, cell);
    // A kernel that reads bytes still being copied gets either value; that is the kernel's mistake.
    for (const Copy &copy : flight)
      if (copy.tile == &tile) return;
    for (unsigned cell = 0; cell < tile.size; ++cell)
      if (tile.own[cell] != 0 && tile.own[cell] != shared[tile.place + cell].value)
        complain(op, "what was written is gone");
  }

  void step(Operation *op) {
    if (auto access = dyn_cast<LdsReadOp>(op)) {
      read(access);
    } else if (auto access = dyn_cast<LdsWriteOp>(op)) {
      Tile &tile = tiles.at(access.getTile());
      const unsigned cell = below(tile.size);
      touch(op, tile, cell);
      store(tile, cell, ++values);
    } else if (auto copy = dyn_cast<AsyncDmaOp>(op)) {
      Tile &tile = tiles.at(copy.getTile());
      flight.push_back({op, &tile, ++values, below(2) == 0});
      for (unsigned cell = 0; cell < tile.size; ++cell) {
        touch(op, tile, cell);
        ++shared[tile.place + cell].writing[tile.number];
        if (flight.back().lands_early) store(tile, cell, values);
      }
    } else if (isa<AsyncMarkOp>(op)) {
      for (Copy &copy : flight)
        if (!copy.marked) copy.marked = true, ++group_size;
      groups.push_back(group_size);
      group_size = 0;
    } else if (auto wait = dyn_cast<WaitMarksOp>(op)) {
      for (; groups.size() > unsigned(wait.getOutstanding()); groups.pop_front())
        for (unsigned n = 0; n < groups.front(); ++n) {
          land(op, flight.front());
          flight.pop_front();
        }
    } else if (auto wait = dyn_cast<AsyncWaitOp>(op)) {
      // The copy of this token is the youngest one: the kernels wait at once.
      if (!flight.empty() && flight.back().op == wait.getToken().getDefiningOp()) {
        land(op, flight.back());
        flight.pop_back();
      }
    } else if (isa<BarrierOp>(op)) {
      ++phase;
    }
  }

  void run(Block &block) {
    for (Operation &op : block) {
      if (auto loop = dyn_cast<scf::ForOp>(op)) {
        for (unsigned n = below(4); n != 0; --n)
          run(*loop.getBody());
      } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
        for (unsigned n = below(4); n != 0; --n)
          run(*loop.getAfterBody());
      } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
        if (below(2))
          run(*branch.thenBlock());
        else if (branch.elseBlock())
          run(*branch.elseBlock());
      } else {
        step(&op);
      }
    }
  }

  std::mt19937 random;
  llvm::DenseMap<Value, Tile> tiles;
  std::vector<Cell> shared;
  std::deque<Copy> flight;     // in the order of their issue
  std::deque<unsigned> groups; // copies in each marked group
  unsigned group_size = 0;
  unsigned phase = 0; // barriers so far
  uint64_t values = 0;
};

struct Passed {
  OwningOpRef<ModuleOp> module;
  gpu::GPUFuncOp kernel;
};

Passed through_the_passes(MLIRContext &context, const std::string &text) {
  Passed result{parseSourceString<ModuleOp>(text, &context), {}};
  REQUIRE(result.module);
  PassManager passes(&context);
  OpPassManager &kernel = passes.nest<gpu::GPUModuleOp>().nest<gpu::GPUFuncOp>();
  kernel.addPass(createAnnotateLdsLiveness());
  kernel.addPass(createReuseLds());
  REQUIRE(succeeded(passes.run(*result.module)));
  result.module->walk([&](gpu::GPUFuncOp function) { result.kernel = function; });
  return result;
}

} // namespace

TEST_CASE("tiles that share bytes do not disturb each other", "[transforms]") {
  DialectRegistry registry;
  registry.insert<gpu::GPUDialect, scf::SCFDialect, LLVM::LLVMDialect, SluiceDialect>();
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.getDiagEngine().registerHandler([](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error) FAIL_CHECK(diagnostic.str());
  });
  constexpr unsigned kernels = 1500, runs = 12;
  unsigned reads = 0, sharing = 0, barriers = 0;
  for (uint32_t seed = 0; seed < kernels; ++seed) {
    const std::string text = test::random_kernel(seed);
    INFO("seed " << seed << "\n" << text);
    const Passed passed = through_the_passes(context, text);
    for (uint32_t run = 0; run < runs; ++run) {
      const Interpreter path(passed.kernel, run);
      reads += path.reads;
      INFO("run " << run);
      REQUIRE(path.complaint == "");
    }
    const auto lds = passed.kernel->getAttrOfType<DictionaryAttr>("sluice.lds");
    const auto bytes = [&](const char *name) { return lds.getAs<IntegerAttr>(name).getInt(); };
    sharing += bytes("arena_bytes") < bytes("bytes_without_reuse");
    size_t before = 0, after = 0;
    for (size_t at = 0; (at = text.find("sluice.barrier", at)) != std::string::npos; ++at)
      ++before;
    passed.kernel->walk([&](BarrierOp) { ++after; });
    barriers += unsigned(after - before);
  }
  // The kernels are a real test: many tiles share bytes, and many need a barrier for it.
  WARN(sharing << " of " << kernels << " kernels share bytes, with " << barriers << " barriers added; "
               << reads << " reads");
  CHECK(sharing > kernels / 3);
  CHECK(barriers > kernels / 10);
  CHECK(reads > kernels * runs);
}

} // namespace sluice

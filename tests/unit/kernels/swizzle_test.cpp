//===- swizzle_test.cpp - the swizzle is a bijection, and readers have no bank conflicts ----------------===//
//
// The bank model here is a table of the lanes that LDS serves together, from measurements published for
// MI300X and MI355X; it shares nothing with the emulator's model, which tests/copies counts with.
//
//===----------------------------------------------------------------------------------------------------===//
#include "dialect/Sluice.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/BuiltinOps.h"

#include <array>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <vector>

using namespace sluice;

namespace {

using Lanes = std::vector<unsigned>;

/// The lanes that are served together, by bank count and bytes per lane.
std::vector<Lanes> groups_of(unsigned banks, unsigned bytes) {
  std::vector<Lanes> groups;
  auto half_waves = [&](std::initializer_list<Lanes> quads) { // quads of four lanes, in both halves
    for (unsigned half : {0u, 32u})
      for (const Lanes &group : quads) {
        Lanes lanes;
        for (unsigned quad : group)
          for (unsigned lane = 0; lane < 4; ++lane)
            lanes.push_back(half + quad * 4 + lane);
        groups.push_back(lanes);
      }
  };
  if (bytes == 16 && banks == 32) {
    half_waves({{0, 5}, {1, 4}, {2, 7}, {3, 6}});
  } else if (bytes == 16) {
    half_waves({{0, 3, 5, 6}, {1, 2, 4, 7}});
  } else {
    const unsigned together = bytes == 4 ? 32 : banks * 4 / bytes; // however many banks there are
    for (unsigned first = 0; first < 64; first += together) {
      groups.emplace_back(together);
      std::iota(groups.back().begin(), groups.back().end(), first);
    }
  }
  return groups;
}

/// Cycles beyond those of a conflict-free read, where a lane reads `bytes` at `address(lane)`.
unsigned conflicts(unsigned banks, unsigned bytes, const std::function<unsigned(unsigned)> &address) {
  unsigned extra = 0;
  for (const Lanes &group : groups_of(banks, bytes)) {
    std::map<unsigned, std::set<unsigned>> dwords; // by bank
    size_t deepest = 1;
    for (unsigned lane : group)
      for (unsigned n = 0; n < bytes / 4; ++n) {
        const unsigned dword = address(lane) / 4 + n;
        dwords[dword % banks].insert(dword);
        deepest = std::max(deepest, dwords[dword % banks].size());
      }
    extra += unsigned(deepest - 1);
  }
  return extra;
}

/// The kernels' accesses to a tile of 64 rows: K as fragments, 16 bytes of a row per lane...
unsigned k_read_conflicts(unsigned columns, unsigned banks, XorSwizzle swizzle, unsigned element_bytes = 2) {
  const unsigned length = 16 / element_bytes;
  unsigned sum = 0;
  for (unsigned block = 0; block < 2; ++block)
    for (unsigned step = 0; step < columns / (2 * length); ++step)
      sum += conflicts(banks, 16, [&](unsigned lane) {
        const unsigned row = block * 32 + lane % 32;
        return (row * columns + swizzle.column(row, (2 * step + lane / 32) * length)) * element_bytes;
      });
  return sum;
}

/// ... and V along its rows, columns / 32 elements per lane.
unsigned v_read_conflicts(unsigned columns, unsigned banks, XorSwizzle swizzle) {
  unsigned sum = 0;
  for (unsigned row = 0; row < 64; row += 8)
    for (unsigned k = 0; k < 4; ++k)
      sum += conflicts(banks, columns / 32 * 2, [&](unsigned lane) {
        const unsigned mine = row + k + lane / 32 * 4;
        return (mine * columns + swizzle.column(mine, lane % 32 * (columns / 32))) * 2;
      });
  return sum;
}

/// The value of `value`, a chain of sums, products and bit operations on constants.
uint32_t value_of(mlir::Value value) {
  if (const auto constant = mlir::getConstantIntValue(value)) return uint32_t(*constant);
  mlir::Operation *op = value.getDefiningOp();
  const uint32_t a = value_of(op->getOperand(0)), b = value_of(op->getOperand(1));
  if (mlir::isa<mlir::arith::AddIOp>(op)) return a + b;
  if (mlir::isa<mlir::arith::MulIOp>(op)) return a * b;
  if (mlir::isa<mlir::arith::AndIOp>(op)) return a & b;
  if (mlir::isa<mlir::arith::XOrIOp>(op)) return a ^ b;
  if (mlir::isa<mlir::arith::ShLIOp>(op)) return a << b;
  REQUIRE(mlir::isa<mlir::arith::ShRUIOp>(op));
  return a >> b;
}

std::vector<XorSwizzle> all_policies(unsigned columns) {
  std::vector<XorSwizzle> policies{{}};
  for (unsigned chunk = 1; chunk <= columns; chunk *= 2)
    for (unsigned period = 1; columns % (chunk * period) == 0; period *= 2)
      for (unsigned rows : {1, 2, 4})
        policies.push_back({chunk, period, rows});
  return policies;
}

} // namespace

TEST_CASE("a swizzle permutes each row and undoes itself", "[swizzle]") {
  for (unsigned columns : {32, 40, 64, 80, 96, 128, 192, 256})
    for (const XorSwizzle &policy : all_policies(columns)) {
      bool bijection = true, involution = true, chunks_stay = true;
      for (unsigned row = 0; row < 64; ++row) {
        std::vector<bool> taken(columns);
        for (unsigned column = 0; column < columns; ++column) {
          const unsigned stored = policy.column(row, column);
          bijection &= stored < columns && !taken[stored];
          if (!bijection) break;
          taken[stored] = true;
          involution &= policy.column(row, stored) == column;
          if (!policy.isIdentity()) chunks_stay &= stored % policy.chunk == column % policy.chunk;
        }
      }
      INFO(columns << " columns, xor<" << policy.chunk << ", " << policy.period << ", "
                   << policy.rowsPerPhase);
      CHECK(bijection);
      CHECK(involution);
      CHECK(chunks_stay);
    }
}

TEST_CASE("passes build the same swizzle that hosts evaluate", "[swizzle]") {
  mlir::MLIRContext context;
  context.loadDialect<SluiceDialect, mlir::arith::ArithDialect>();
  mlir::OpBuilder builder(&context);
  const mlir::Location loc = builder.getUnknownLoc();
  for (unsigned columns : {64, 96})
    for (const XorSwizzle &policy : all_policies(columns)) {
      mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(loc);
      builder.setInsertionPointToStart(module->getBody());
      const auto tile = LdsTileType::get(&context, 16, columns, builder.getF16Type(),
                                         XorSwizzleAttr::get(&context, policy));
      unsigned different = 0;
      for (unsigned row = 0; row < 16; ++row)
        for (unsigned column = 0; column < columns; column += 3) {
          auto constant = [&](unsigned value) -> mlir::Value {
            return mlir::arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(int(value)));
          };
          const auto folded =
              mlir::getConstantIntValue(swizzleColumn(builder, loc, tile, constant(row), constant(column)));
          REQUIRE(folded);
          different += *folded != policy.column(row, column);
        }
      CHECK(different == 0);
    }
}

TEST_CASE("a tile by columns has a place for each element", "[swizzle]") {
  for (unsigned bytes : {1u, 2u})
    for (unsigned columns : {64u, 128u, 256u, 512u}) {
      const ColumnLayout layout{columns, bytes};
      // 16 bytes are the rows of two steps of the product, in the order of its operands.
      const unsigned rows_of_step = 16 / bytes;
      std::set<unsigned> places;
      bool in_order = true;
      for (unsigned row = 0; row < 64; ++row)
        for (unsigned column = 0; column < columns; ++column) {
          places.insert(layout.offset(row, column));
          const unsigned pair = row / (2 * rows_of_step) * (2 * rows_of_step);
          const unsigned first = pair + row % 8 / 4 * 4, number = row % 4 + (row - pair) / 8 * 4;
          in_order &= layout.offset(row, column) == layout.offset(first, column) + number * bytes;
        }
      INFO(columns << " columns of " << bytes << " bytes");
      CHECK(places.size() == 64 * columns);
      CHECK(*places.rbegin() == (64 * columns - 1) * bytes);
      CHECK(in_order);
    }
}

TEST_CASE("constants are looked at apart in a tile by columns", "[swizzle]") {
  mlir::MLIRContext context;
  context.loadDialect<SluiceDialect, mlir::arith::ArithDialect>();
  mlir::OpBuilder builder(&context);
  const mlir::Location loc = builder.getUnknownLoc();
  const auto check = [&](unsigned columns, mlir::Type element) {
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(loc);
    builder.setInsertionPointToStart(module->getBody());
    const auto tile = LdsTileType::get(&context, 64, columns, element, XorSwizzleAttr::get(&context, 0, 0),
                                       /*byColumns=*/true);
    auto constant = [&](unsigned value) -> mlir::Value {
      return mlir::arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(int(value)));
    };
    auto sum = [&](mlir::Value a, unsigned b) -> mlir::Value {
      return mlir::arith::AddIOp::create(builder, loc, a, constant(b));
    };
    auto product = [&](unsigned a, unsigned b) -> mlir::Value {
      return mlir::arith::MulIOp::create(builder, loc, constant(a), constant(b));
    };
    unsigned different = 0;
    for (unsigned row = 0; row < 64; ++row)
      for (unsigned lane = 0; lane < columns / 8; ++lane)
        for (unsigned n = 0; n < 8; ++n) {
          auto folded = [&](mlir::Value r, mlir::Value c) {
            mlir::Value offset = offsetInTile(builder, loc, tile, r, c);
            return value_of(offset);
          };
          const unsigned expected = ColumnLayout{columns, tile.getElementBytes()}.offset(row, 8 * lane + n);
          different += folded(sum(constant(row % 32), row / 32 * 32), sum(product(lane, 8), n)) != expected;
          // Too large to be disjoint.
          different += folded(constant(row), sum(product(2 * lane + n / 4, 4), n % 4)) != expected;
          different += folded(constant(row), sum(product(8 * lane, 1), n)) != expected;
        }
    CHECK(different == 0);
  };
  for (unsigned columns : {64u, 128u, 256u}) {
    check(columns, builder.getI8Type());
    check(columns, builder.getF16Type());
  }
}

TEST_CASE("accesses to a tile by columns meet no bank conflict", "[swizzle]") {
  for (unsigned columns : {64u, 128u, 256u}) {
    const ColumnLayout layout{columns, 1};
    INFO(columns << " columns");
    // Lanes read columns that are columns / 32 apart...
    for (unsigned tile = 0; tile < columns / 32; ++tile)
      CHECK(conflicts(32, 16, [&](unsigned lane) {
              return layout.offset(lane / 32 * 4, lane % 32 * (columns / 32) + tile);
            }) == 0);
    // ... and write four rows of 8, in small tiles of 4.
    for (unsigned lane_columns : {4u, 8u})
      for (unsigned n = 0; n < lane_columns && columns / lane_columns >= 16 && columns / lane_columns <= 32;
           ++n)
        CHECK(conflicts(32, 4, [&](unsigned lane) {
                return layout.offset(lane / 8 % 4 * 8, (lane % 8 + lane / 32 * 8) * lane_columns + n);
              }) == 0);
    // Two-byte elements, 8 bytes at once.
    const ColumnLayout halves{columns, 2};
    for (unsigned tile = 0; tile < columns / 32; ++tile)
      CHECK(conflicts(32, 16, [&](unsigned lane) {
              return halves.offset(lane / 32 * 4, lane % 32 * (columns / 32) + tile);
            }) == 0);
    for (unsigned lane_columns : {4u, 8u})
      for (unsigned n = 0; n < lane_columns && columns / lane_columns == 32; ++n)
        CHECK(conflicts(32, 8, [&](unsigned lane) {
                return halves.offset(lane / 8 % 2 * 8, (lane % 8 + lane / 16 * 8) * lane_columns + n);
              }) == 0);
  }
}

TEST_CASE("the swizzle chosen for column reads", "[swizzle]") {
  auto is = [](XorSwizzle policy, unsigned chunk, unsigned period, unsigned rows) {
    return policy.chunk == chunk && policy.period == period && policy.rowsPerPhase == rows;
  };
  CHECK(is(XorSwizzle::forColumnReads(128, 2, 16, 32), 8, 8, 1));
  CHECK(is(XorSwizzle::forColumnReads(64, 2, 16, 32), 8, 8, 1));
  CHECK(is(XorSwizzle::forColumnReads(96, 2, 16, 32), 8, 4, 2));
  CHECK(is(XorSwizzle::forColumnReads(128, 2, 16, 64), 8, 16, 1));
  CHECK(is(XorSwizzle::forColumnReads(64, 2, 16, 64), 8, 8, 2));
  CHECK(is(XorSwizzle::forColumnReads(128, 1, 16, 32), 16, 8, 1));
  CHECK(is(XorSwizzle::forColumnReads(64, 1, 16, 32), 16, 4, 2));
  CHECK(is(XorSwizzle::forColumnReads(32, 1, 16, 32), 16, 2, 4));
  // A pitch that is odd in units of 16 bytes spreads the rows without a swizzle.
  CHECK(XorSwizzle::forColumnReads(72, 2, 16, 32).isIdentity());
}

TEST_CASE("the kernels' reads of LDS meet no bank conflict", "[swizzle]") {
  for (unsigned banks : {32u, 64u})
    for (unsigned columns : {64u, 96u, 128u, 192u, 256u}) {
      INFO(columns << " columns, " << banks << " banks");
      const XorSwizzle policy = XorSwizzle::forColumnReads(columns, 2, 16, banks);
      CHECK(k_read_conflicts(columns, banks, policy) == 0);
      // Not by luck: without the swizzle, with half its phases, and with its phases a row off, there are
      // conflicts.
      CHECK(k_read_conflicts(columns, banks, {}) > 0);
      CHECK(k_read_conflicts(columns, banks, {policy.chunk, policy.period / 2, policy.rowsPerPhase}) > 0);
      CHECK(k_read_conflicts(columns, banks, {policy.chunk, policy.period, policy.rowsPerPhase * 4}) > 0);
    }
  for (unsigned banks : {32u, 64u})
    for (unsigned columns : {32u, 64u, 128u, 256u, 512u}) {
      INFO(columns << " columns of one byte, " << banks << " banks");
      CHECK(k_read_conflicts(columns, banks, XorSwizzle::forColumnReads(columns, 1, 16, banks), 1) == 0);
      CHECK(k_read_conflicts(columns, banks, {}, 1) > 0);
    }
  for (unsigned banks : {32u, 64u})
    for (unsigned columns : {64u, 128u})
      CHECK(v_read_conflicts(columns, banks, {}) == 0);
  // A swizzle made for 32 banks is not enough for 64.
  CHECK(k_read_conflicts(128, 64, XorSwizzle::forColumnReads(128, 2, 16, 32)) > 0);
}

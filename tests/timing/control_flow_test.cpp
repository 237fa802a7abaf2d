//===- control_flow_test.cpp - blocks and loops of short programs ---------------------------------------===//
#include <catch2/catch.hpp>

#include "emulator/timing/control_flow.h"
#include "timing/timed_kernel.h"

namespace sluice::test {

namespace {

using emulator::timing::ControlFlow;
using Ops = std::vector<std::pair<uint32_t, uint32_t>>;
using Numbers = std::vector<uint32_t>;

struct Flow : ControlFlow {
  explicit Flow(const std::string &source) {
    const emulator::Program program(code_object_of(source));
    const auto &code = program.impl();
    ControlFlow::operator=(
        emulator::timing::control_flow(code, code.ops_of(*code.object.find_kernel("small"))));
  }
  /// The first blocks; after the program the slot is full of s_endpgm.
  Ops ops(size_t count) const {
    Ops all;
    for (size_t i = 0; i < count; ++i)
      all.emplace_back(blocks.at(i).ops.first, blocks[i].ops.last);
    return all;
  }
};

} // namespace

TEST_CASE("blocks end at branches and begin at their targets", "[timing]") {
  // 0: s_cmp, branch to 3; 2: s_nop; 3: s_nop, s_endpgm
  const Flow flow("s_cmp_eq_u32 s8, 0\n s_cbranch_scc1 past\n s_nop 0\n past:\n s_nop 1\n s_endpgm\n");
  CHECK(flow.ops(3) == Ops{{0, 2}, {2, 3}, {3, 5}});
  CHECK(flow.loops.empty());
  CHECK(flow.block_of(4) == &flow.blocks[2]);
  CHECK(flow.block_of(0) == &flow.blocks[0]);
  CHECK(flow.block_of(5) == &flow.blocks[3]);
  CHECK(flow.block_of(1000000) == nullptr);
}

TEST_CASE("loops contain loops", "[timing]") {
  // Blocks: 0; 1 outer; 2 inner; 3 the outer one's branch; 4 the end.
  const Flow flow("s_mov_b32 s8, 3\n outer:\n s_mov_b32 s9, 4\n inner:\n s_sub_u32 s9, s9, 1\n"
                  "s_cbranch_scc1 inner\n s_sub_u32 s8, s8, 1\n s_cbranch_scc1 outer\n s_endpgm\n");
  REQUIRE(flow.loops.size() == 2);
  CHECK(flow.loops[0].header == 1);
  CHECK(flow.loops[0].blocks == Numbers{1, 2, 3});
  CHECK(flow.loops[1].header == 2);
  CHECK(flow.loops[1].blocks == Numbers{2});
  CHECK(flow.blocks[0].loops.empty());
  CHECK(flow.blocks[1].loops == Numbers{0});
  CHECK(flow.blocks[2].loops == Numbers{0, 1});
  CHECK(flow.blocks[4].loops.empty());
}

TEST_CASE("a branch back is not a separate loop if another path leads in", "[timing]") {
  // The cold part after the end returns into the loop: its blocks belong to the loop, the end does not.
  const Flow flow("again:\n s_cmp_eq_u32 s8, 0\n s_cbranch_scc1 cold\n back:\n s_sub_u32 s8, s8, 1\n"
                  "s_cbranch_scc1 again\n s_endpgm\n cold:\n s_nop 0\n s_branch back\n");
  REQUIRE(flow.loops.size() == 1);
  CHECK(flow.ops(4) == Ops{{0, 2}, {2, 4}, {4, 5}, {5, 7}});
  CHECK(flow.loops[0].header == 0);
  CHECK(flow.loops[0].blocks == Numbers{0, 1, 3});
}

TEST_CASE("a loop may be entered at its end", "[timing]") {
  // Its first block by address is not its header.
  const Flow flow(
      "s_branch check\n body:\n s_nop 0\n check:\n s_sub_u32 s8, s8, 1\n s_cbranch_scc1 body\n s_endpgm\n");
  REQUIRE(flow.loops.size() == 1);
  CHECK(flow.loops[0].header == 2);
  CHECK(flow.loops[0].blocks == Numbers{1, 2});
}

TEST_CASE("two branches back to one place are one loop", "[timing]") {
  const Flow flow("again:\n s_nop 0\n s_cbranch_scc1 again\n s_nop 1\n s_cbranch_scc0 again\n s_endpgm\n");
  REQUIRE(flow.loops.size() == 1);
  CHECK(flow.loops[0].blocks == Numbers{0, 1});
}

TEST_CASE("a call returns", "[timing]") {
  const Flow flow(
      "again:\n s_call_b64 s[10:11], function\n s_sub_u32 s8, s8, 1\n s_cbranch_scc1 again\n s_endpgm\n"
      "function:\n s_nop 0\n s_setpc_b64 s[10:11]\n");
  REQUIRE(flow.loops.size() == 1);
  CHECK(flow.loops[0].blocks == Numbers{0, 1});
}

TEST_CASE("a branch too long for its offset closes a loop", "[timing]") {
  const Flow flow(
      "s_nop 0\n s_cbranch_scc1 past\n s_getpc_b64 s[10:11]\n s_add_u32 s10, s10, lit(0xfffffff4)\n"
      "s_addc_u32 s11, s11, lit(0xffffffff)\n s_setpc_b64 s[10:11]\n past:\n s_endpgm\n");
  REQUIRE(flow.loops.size() == 1);
  CHECK(flow.loops[0].blocks == Numbers{0, 1});
}

TEST_CASE("unreachable code is not part of a loop", "[timing]") {
  // Blocks: 0 jumps over 1, which jumps into the loop 2.
  const Flow flow("s_branch again\n s_branch again\n again:\n s_cbranch_scc1 again\n s_endpgm\n");
  REQUIRE(flow.loops.size() == 1);
  CHECK(flow.loops[0].blocks == Numbers{2});
}

} // namespace sluice::test

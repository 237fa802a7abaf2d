//===- wait_proofs_test.cpp - short programs that the proofs accept and refuse --------------------------===//
//
// For each refusal, a program that differs in one point is accepted.
//
//===----------------------------------------------------------------------------------------------------===//
#include <catch2/catch.hpp>

#include "kernels/assembled_code.h"
#include "kernels/wait_proofs.h"

#include <algorithm>

namespace sluice::test {
namespace {

const std::string wait_copy = "s_waitcnt vmcnt(0)\n", wait_lds = "s_waitcnt lgkmcnt(0)\n", end = "s_endpgm\n",
                  barrier = "s_barrier\n", load = "global_load_dword v2, v[0:1], off\n",
                  load_3 = "global_load_dword v3, v[0:1], off\n", use = "v_mov_b32 v4, v2\n",
                  use_3 = "v_mov_b32 v4, v3\n";
// A wave's 256 bytes at 0 and at 1024; reads of 4 bytes there.
const std::string copy_low = "s_mov_b32 m0, 0\nbuffer_load_dword v1, s[8:11], 0 offen lds\n",
                  copy_high = "s_movk_i32 m0, 0x400\nbuffer_load_dword v1, s[8:11], 0 offen lds\n",
                  addresses = "v_mov_b32 v8, 0\nv_mov_b32 v9, 0x400\n", read_low = "ds_read_b32 v5, v8\n",
                  read_high = "ds_read_b32 v5, v9\n", write_low = "ds_write_b32 v8, v7\n",
                  write_high = "ds_write_b32 v9, v7\n";

/// Whether the first wait for the counter in the program may be removed.
bool may_remove(const std::string &source, Counter counter) {
  const MachineCode code = assembled(source);
  const WaitProofs proofs(code, 64);
  INFO(source);
  for (size_t index = 0; index < code.instructions().size(); ++index) {
    const Instruction &instruction = code.instructions()[index];
    if (!instruction.is("s_waitcnt") || Wait::decode(uint16_t(instruction.word))[counter] == no_wait(counter))
      continue;
    const Proof proof = proofs.may_weaken(index, counter, no_wait(counter));
    CHECK_FALSE(proof.why.empty());
    return proof.holds;
  }
  throw std::runtime_error("no wait in " + source);
}
bool may_remove_vm(const std::string &source) {
  return may_remove(source, Counter::vmcnt);
}
bool may_remove_lgkm(const std::string &source) {
  return may_remove(source, Counter::lgkmcnt);
}

bool may_drop_barrier(const std::string &source, size_t occurrence = 0) {
  const MachineCode code = assembled(source);
  return WaitProofs(code, 64).may_drop_barrier(index_of(code, "s_barrier", occurrence)).holds;
}

bool registers_are_waited_for(const std::string &source) {
  const MachineCode code = assembled(source);
  return WaitProofs(code, 64).registers_are_waited_for().holds;
}

} // namespace

TEST_CASE("a register is used after a wait for its load, on every path", "[kernels]") {
  CHECK(registers_are_waited_for(load + wait_copy + use + end));
  CHECK_FALSE(registers_are_waited_for(load + use + end));
  CHECK_FALSE(registers_are_waited_for(load + "v_mov_b32 v2, 0\n" + end));
  CHECK(registers_are_waited_for(load + load_3 + "s_waitcnt vmcnt(1)\n" + use + end));
  CHECK_FALSE(registers_are_waited_for(load + load_3 + "s_waitcnt vmcnt(1)\n" + use_3 + end));
  // Loads arrive in order: the second one's result arrives last. The result of an LDS read may be earlier.
  CHECK(registers_are_waited_for(load + load + "s_waitcnt vmcnt(0)\n" + use + end));
  CHECK_FALSE(registers_are_waited_for(load + load + "s_waitcnt vmcnt(1)\n" + use + end));
  CHECK_FALSE(registers_are_waited_for(load + "ds_read_b32 v2, v8\n" + wait_copy + wait_lds + use + end));
  // A branch around the wait.
  CHECK_FALSE(registers_are_waited_for(load + "s_cbranch_scc0 1\n" + wait_copy + use + end));
  // Once around the loop: the load at its end is in flight at its start.
  CHECK_FALSE(registers_are_waited_for(use + load + "s_cbranch_scc0 -4\n" + wait_copy + end));
  CHECK(registers_are_waited_for(wait_copy + use + load + "s_cbranch_scc0 -5\n" + end));
  // Scalar loads complete in any order.
  const std::string scalar = "s_load_dword s4, s[0:1], 0x0\ns_load_dword s5, s[0:1], 0x4\n";
  CHECK_FALSE(registers_are_waited_for(scalar + "s_waitcnt lgkmcnt(1)\ns_mov_b32 s6, s4\n" + end));
  CHECK(registers_are_waited_for(scalar + wait_lds + "s_mov_b32 s6, s4\n" + end));
}

TEST_CASE("a wait after an equal one is redundant, on every path only", "[kernels]") {
  const std::string program = load + "s_cbranch_scc0 1\n";
  const MachineCode twice = assembled(load + wait_copy + wait_copy + use + end);
  CHECK(WaitProofs(twice, 64).may_weaken(index_of(twice, "s_waitcnt vmcnt(0)", 1), Counter::vmcnt, 63).holds);
  const MachineCode once = assembled(program + wait_copy + wait_copy + use + end);
  CHECK_FALSE(
      WaitProofs(once, 64).may_weaken(index_of(once, "s_waitcnt vmcnt(0)", 1), Counter::vmcnt, 63).holds);
}

TEST_CASE("a wait whose result is used is needed", "[kernels]") {
  CHECK_FALSE(may_remove_vm(load + wait_copy + use + end));
  CHECK_FALSE(may_remove_vm(load + wait_copy + "v_mov_b32 v2, 0\n" + end));
  CHECK(may_remove_vm(load + wait_copy + use_3 + end));
  CHECK(may_remove_vm(load + wait_copy + use_3 + wait_copy + use + end));
  // Loaded on one of two paths only.
  CHECK_FALSE(may_remove_vm("s_cbranch_scc0 2\n" + load + wait_copy + use + end));
  CHECK_FALSE(may_remove_lgkm(addresses + read_low + wait_lds + "v_mov_b32 v6, v5\n" + end));
  CHECK_FALSE(may_remove_lgkm("s_load_dword s4, s[0:1], 0x0\n" + wait_lds + "s_mov_b32 s5, s4\n" + end));
}

TEST_CASE("weaker by one differs from removed", "[kernels]") {
  const MachineCode code = assembled(load + load_3 + wait_copy + use + end);
  const WaitProofs proofs(code, 64);
  const size_t wait = index_of(code, "s_waitcnt vmcnt(0)");
  CHECK(proofs.may_weaken(wait, Counter::vmcnt, 1).holds);
  CHECK_FALSE(proofs.may_weaken(wait, Counter::vmcnt, 2).holds);
}

TEST_CASE("a copy is waited for before who touches its bytes", "[kernels]") {
  CHECK_FALSE(may_remove_vm(addresses + copy_low + wait_copy + read_low + wait_copy + end));
  CHECK(may_remove_vm(addresses + copy_low + wait_copy + read_high + wait_copy + end));
  CHECK_FALSE(may_remove_vm(addresses + copy_low + wait_copy + write_low + wait_copy + end));
  CHECK_FALSE(may_remove_vm(addresses + copy_low + wait_copy + end));
  CHECK_FALSE(may_remove_vm(addresses + copy_low + wait_copy + copy_low + wait_copy + end));
}

TEST_CASE("other waves count on a copy after the barrier until the next one", "[kernels]") {
  const auto program = [](const std::string &first, const std::string &second) {
    return addresses + copy_low + wait_copy + barrier + first + wait_copy + second;
  };
  CHECK_FALSE(may_remove_vm(program(read_low, end)));
  CHECK(may_remove_vm(program(read_high, end)));
  // Its own wave has waited, but a wave ahead of it reads bytes without any synchronisation.
  CHECK_FALSE(may_remove_vm(program("", read_low + end)));
  CHECK(may_remove_vm(program("", barrier + read_low + end)));
}

TEST_CASE("a full counter completes the oldest copy, for its own wave", "[kernels]") {
  std::string loads;
  for (int n = 0; n < 63; ++n)
    loads += "global_load_dword v20, v[30:31], off\n";
  const std::string fewer = loads.substr(0, loads.size() / 63 * 62);
  const auto program = [](const std::string &between) {
    return addresses + copy_low + wait_copy + between + read_low + wait_copy + wait_lds + end;
  };
  CHECK(may_remove_vm(program(loads)));
  CHECK_FALSE(may_remove_vm(program(fewer)));
  CHECK_FALSE(may_remove_vm(program(barrier + loads)));
  CHECK(may_remove_vm(program(loads + barrier)));
}

TEST_CASE("a read is waited for before another wave may overwrite", "[kernels]") {
  const auto program = [](const std::string &rest) {
    return addresses + read_low + wait_lds + rest + wait_lds + end;
  };
  CHECK_FALSE(may_remove_lgkm(program(barrier + copy_low + wait_copy)));
  CHECK(may_remove_lgkm(program(barrier + copy_high + wait_copy)));
  CHECK_FALSE(may_remove_lgkm(program(barrier + write_low)));
  // The wave's own LDS instructions are in order; its own copy is not.
  CHECK(may_remove_lgkm(program(write_low)));
  CHECK_FALSE(may_remove_lgkm(program(copy_low + wait_copy)));
}

TEST_CASE("a write is waited for before another wave may look", "[kernels]") {
  const auto program = [](const std::string &rest) {
    return addresses + write_low + wait_lds + rest + wait_lds + end;
  };
  CHECK_FALSE(may_remove_lgkm(program(barrier + read_low)));
  CHECK(may_remove_lgkm(program(barrier + read_high)));
  CHECK(may_remove_lgkm(program(read_low)));
  CHECK_FALSE(may_remove_lgkm(addresses + write_low + wait_lds + end));
}

TEST_CASE("a store is waited for before a barrier", "[kernels]") {
  const std::string store = "global_store_dword v[0:1], v2, off\n";
  CHECK_FALSE(may_remove_vm(store + wait_copy + barrier + end));
  CHECK(may_remove_vm(store + wait_copy + end));
  // A kernel never reads memory that it writes.
  CHECK(may_remove_vm(store + wait_copy + load + end));
  CHECK(may_remove_vm(load + wait_copy + barrier + end));
  CHECK(may_remove_vm(copy_low + wait_copy + store + wait_copy + end));
}

TEST_CASE("a barrier that orders no two accesses of the same bytes is redundant", "[kernels]") {
  CHECK_FALSE(may_drop_barrier(addresses + write_low + wait_lds + barrier + read_low + end));
  CHECK(may_drop_barrier(addresses + write_high + wait_lds + barrier + read_low + end));
  CHECK(may_drop_barrier(addresses + read_low + wait_lds + barrier + read_low + end));
  CHECK(may_drop_barrier(addresses + barrier + read_low + end));
  CHECK(may_drop_barrier(addresses + write_low + wait_lds + barrier + end));
  CHECK(may_drop_barrier(addresses + write_low + wait_lds + barrier + barrier + read_low + end));
  const std::string store = "global_store_dword v[0:1], v2, off\n";
  CHECK_FALSE(may_drop_barrier(store + wait_copy + barrier + store + end));
  CHECK(may_drop_barrier(store + wait_copy + barrier + load + end));
  // LSE and O.
  CHECK(may_drop_barrier(store + wait_copy + barrier + "global_store_dwordx4 v[0:1], v[4:7], off\n" + end));
  // LLVM has copied a barrier to both sides of a condition that differs between waves: both are needed.
  CHECK_FALSE(may_drop_barrier("s_cbranch_scc0 2\n" + barrier + "s_branch 1\n" + barrier + end));
  CHECK_FALSE(
      may_drop_barrier("s_cbranch_scc0 2\n" + barrier + "s_branch 2\n" + barrier + "s_nop 0\n" + end));
  CHECK(may_drop_barrier("s_cbranch_scc0 2\n" + barrier + "s_branch 1\n" + barrier + barrier + end, 2));
  // The second one covers a copy that was in flight at the first.
  const MachineCode code = assembled(addresses + copy_low + barrier + wait_copy + barrier + read_low + end);
  CHECK_FALSE(WaitProofs(code, 64).may_drop_barrier(index_of(code, "s_barrier", 1)).holds);
  // Once around the loop: without it no barrier separates the read and the write.
  CHECK_FALSE(may_drop_barrier(addresses + barrier + write_low + wait_lds + "s_cbranch_scc0 -5\n" + end));
  CHECK_FALSE(may_drop_barrier(addresses + "s_branch 3\n" + write_low + wait_lds + barrier + read_low +
                               wait_lds + "s_cbranch_scc0 -8\n" + end));
}

TEST_CASE("waves that take the other way from a branch count on a copy too", "[kernels]") {
  const auto program = [](const std::string &other, const std::string &behind) {
    return addresses + copy_low + "s_cbranch_scc0 3\n" + wait_copy + barrier + "s_branch 5\n" + wait_copy +
           barrier + other + wait_lds + behind + wait_copy + end;
  };
  CHECK_FALSE(may_remove_vm(program(read_low, "")));
  CHECK(may_remove_vm(program(read_high, "")));
  // After the next barrier they do, like those on the same path.
  CHECK_FALSE(may_remove_vm(program(read_high, barrier + read_low + wait_lds)));
  CHECK(may_remove_vm(program(read_high, wait_copy + barrier + read_low + wait_lds)));
}

TEST_CASE("barriers in the same place on the ways from a branch are counterparts", "[kernels]") {
  // As numbers of barriers, in the order of their addresses.
  const auto counterparts = [](const std::string &source, size_t occurrence) {
    const MachineCode code = assembled(source);
    const std::vector<Instruction> &all = code.instructions();
    const std::vector<std::set<size_t>> found = barrier_counterparts(code);
    std::vector<size_t> occurrences;
    for (size_t index : found[index_of(code, "s_barrier", occurrence)])
      occurrences.push_back(size_t(std::count_if(all.begin(), all.begin() + ptrdiff_t(index),
                                                 [](const Instruction &i) { return i.is("s_barrier"); })));
    return occurrences;
  };
  using Occurrences = std::vector<size_t>;
  // Two barriers on either path, one after the join.
  const std::string two_and_two = "s_cbranch_scc0 4\n" + barrier + wait_copy + barrier + "s_branch 2\n" +
                                  barrier + barrier + barrier + end;
  CHECK(counterparts(two_and_two, 0) == Occurrences{2});
  CHECK(counterparts(two_and_two, 1) == Occurrences{3});
  CHECK(counterparts(two_and_two, 4).empty());
  // Another iteration of the loop is not another path to the code after it.
  const std::string loop = barrier + barrier + "s_cbranch_scc0 -3\n" + barrier + end;
  for (size_t n : {0, 1, 2})
    CHECK(counterparts(loop, n).empty());
  // The two paths meet only at the end.
  const std::string apart = "s_cbranch_scc0 2\n" + barrier + end + barrier + end;
  CHECK(counterparts(apart, 0) == Occurrences{1});
}

TEST_CASE("a path is not followed through a branch that its own side decides", "[kernels]") {
  // One side waits for the load; the other one waits after the join, where the first does not pass.
  const auto program = [](const std::string &one, const std::string &between, const std::string &other,
                          const std::string &guard) {
    const std::string side = wait_copy + "s_mov_b64 s[14:15], " + other + "\n";
    return load + guard + "s_mov_b64 s[14:15], " + one + "\n" + between + "s_cbranch_scc0 2\n" + side +
           "s_and_b64 vcc, exec, s[14:15]\ns_cbranch_vccz 1\n" + wait_copy + wait_copy + use + end;
  };
  const auto may_remove_last = [](const std::string &source) {
    const MachineCode code = assembled(source);
    INFO(source);
    return WaitProofs(code, 64)
        .may_weaken(index_of(code, "s_waitcnt vmcnt(0)", 2), Counter::vmcnt, no_wait(Counter::vmcnt))
        .holds;
  };
  const std::string none;
  // After it a lane is active.
  const auto guarded = [&](const std::string &one, const std::string &between, const std::string &other) {
    return program(one, between, other, "s_cbranch_execnz 1\n" + end);
  };
  CHECK(may_remove_last(guarded("-1", none, "0")));
  CHECK(may_remove_last(guarded("-1", "s_mov_b64 s[16:17], 0\n", "0")));
  // The unwaited side bypasses the wait, or may.
  CHECK_FALSE(may_remove_last(guarded("0", none, "0")));
  CHECK_FALSE(may_remove_last(guarded("-1", "s_mov_b32 s15, s2\n", "0")));
  CHECK_FALSE(
      may_remove_last(guarded("-1", "s_load_dwordx2 s[14:15], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\n", "0")));
  // Possibly no lane is active: vcc is 0 whatever the pair is.
  CHECK_FALSE(may_remove_last(program("-1", none, "0", none)));
  CHECK_FALSE(may_remove_last(guarded("-1", "s_and_saveexec_b64 s[16:17], s[18:19]\n", "0")));
  CHECK_FALSE(may_remove_last(guarded("-1", "v_cmpx_gt_u32_e32 vcc, v3, v4\n", "0")));
  // The test itself may not touch a register in flight.
  CHECK(registers_are_waited_for(guarded("-1", none, "0")));
  CHECK_FALSE(registers_are_waited_for(guarded("-1", "s_load_dwordx2 vcc, s[0:1], 0x0\n", "0")));
}

TEST_CASE("what moves counters in unknown ways is refused", "[kernels]") {
  CHECK_THROWS(WaitProofs(assembled("flat_load_dword v2, v[0:1]\n" + end), 64));
  CHECK_THROWS(assembled("s_setpc_b64 s[4:5]\n"));
}

TEST_CASE("a branch too long for its offset is followed", "[kernels]") {
  const auto far = [](const char *base, const char *carry) {
    return std::string("s_getpc_b64 s[4:5]\ns_add_u32 s4, ") + base + ", lit(24)\ns_addc_u32 s5, " + carry +
           ", lit(0)\ns_setpc_b64 s[4:5]\ns_trap 2\n" + end;
  };
  const MachineCode code = assembled(far("s4", "s5"));
  for (const Instruction &instruction : code.instructions())
    CHECK_FALSE(instruction.is("s_trap"));
  CHECK_THROWS(assembled(far("s6", "s5")));
  CHECK_THROWS(assembled(far("s4", "s7")));
}

} // namespace sluice::test

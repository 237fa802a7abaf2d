//===- decided_branches.h - where a path decides a branch before it gets there --------------------------===//
//
// LLVM joins the two sides of a condition and tests again which one it was, by a pair of scalars that one
// side has set to 0 and the other to -1:
//
//     s_mov_b64 s[14:15], -1            s_mov_b64 s[14:15], 0
//     s_cbranch_vccz join               (falls through)
//                       join: s_and_b64 vcc, exec, s[14:15]
//                             s_cbranch_vccz behind
//
// Paths that come from one side and continue after the other do not exist. For 0 vcc is 0 at the branch; for
// -1 it is not if a lane is active, which an earlier branch on exec shows. Or one scalar has the number of
// the side:
//
//     s_mov_b32 s42, 1                  s_mov_b32 s42, 0
//     s_cbranch_vccnz join              (falls through)
//                       join: s_cmp_lg_u32 s42, 1
//                             s_cbranch_scc1 behind
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "machine_code.h"

#include <cstddef>
#include <map>
#include <utility>

namespace sluice::test {

/// By edge, from an instruction to such an s_and_b64 or s_cmp with other edges to it: the instruction that
/// follows the branch.
std::map<std::pair<size_t, size_t>, size_t> decided_branches(const MachineCode &code);

} // namespace sluice::test

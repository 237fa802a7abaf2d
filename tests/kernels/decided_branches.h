//===- decided_branches.h - where a path decides a branch before it gets there --------------------------===//
//
// LLVM joins the two sides of a condition and asks again which one it was, in pairs of scalars that one side
// has set to 0 and the other to -1:
//
//     s_mov_b64 s[14:15], -1            s_mov_b64 s[14:15], 0
//     s_cbranch_vccz join               (falls through)
//                       join: s_and_b64 vcc, exec, s[14:15]
//                             s_cbranch_vccz behind
//
// Paths that come from one side and go on behind the other do not exist. Of 0 the branch knows that vcc is 0;
// of -1 that it is not if a lane is active, which a branch on exec in front shows. Or one scalar has the
// number of the side:
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

/// By edge, from an instruction to such an s_and_b64 or s_cmp with other edges to it: what comes behind the
/// branch.
std::map<std::pair<size_t, size_t>, size_t> decided_branches(const MachineCode &code);

} // namespace sluice::test

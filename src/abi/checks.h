//===- checks.h - what a caller can get wrong -----------------------------------------------------------===//
//
// Each function throws support::Failure with the field, its value and the rule, and does nothing else. The
// rules are those that sluice.h states; the choice of kernels checks what depends on the kernels.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <sluice/sluice.h>

#include <cstdint>

namespace sluice::abi {

/// invalid_argument, newer_struct for an unknown flag or enumerator, or unsupported for a problem that no
/// executor of this version computes.
void check_problem(const sluice_problem &problem);

// A buffer descriptor holds 48 address bits (CDNA3 ISA, buffer resource): a higher address would wrap.
inline constexpr uint64_t device_address_end = uint64_t{1} << 48;

/// What an executor requires of tensors beyond legality.
struct TensorRules {
  uint32_t pointer_alignment; // bytes; 0 for the size of an element
  int64_t stride_multiple;    // elements
  bool unit_dim_stride;       // stride[3] of q, k, v and o must be 1
  uint32_t tile_q;            // rows per workgroup; 0 on the host, which has no grid and no other limits

  bool on_device() const { return tile_q != 0; }
  uint64_t address_end() const { return on_device() ? device_address_end : UINT64_MAX; }
};

/// The call, with the problem's bounds for a missing q_len, kv_len or prefix_len: `args`, or `copy`.
const sluice_args &with_lengths(const sluice_problem &problem, const sluice_args &args, sluice_args &copy);

/// For a call after with_lengths. invalid_argument, newer_struct for an unknown flag, or unsupported for a
/// scale that no executor of this version applies.
void check_args(const sluice_problem &problem, const TensorRules &rules, const sluice_args &args);

/// invalid_argument or workspace_too_small.
void check_launch(uint64_t workspace_bytes, uint32_t workspace_alignment, const sluice_launch &launch);
/// Only the checks of dependencies, which is all there is to check if no workspace is needed.
void check_dependencies(const sluice_launch &launch);

} // namespace sluice::abi

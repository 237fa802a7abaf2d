//===- attention_launch.h - one launch of an attention kernel on contiguous tensors ---------------------===//
//
// For programs that launch kernels of a pack themselves, without plans: grid, workgroup and arguments.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "package/kernargs.h"
#include "package/manifest.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace sluice::package {

struct AttentionShape {
  uint32_t batch = 1;
  int32_t q_len = 0;
  int32_t kv_len = 0;
  uint32_t q_heads = 1;
  uint32_t kv_heads = 1;    // divides q_heads
  int32_t causal_shift = 0; // as the argument of that name: kv_len without a mask
};

/// Of tensors shaped and ordered as kernargs.h has them, without gaps; lse may be 0.
struct AttentionAddresses {
  uint64_t q, k, v, o, lse;
};

struct AttentionLaunch {
  std::string kernel;
  std::array<uint32_t, 3> grid; // in workgroups
  std::array<uint32_t, 3> block;
  AttentionKernargs arguments;

  std::span<const std::byte> kernarg() const { return std::as_bytes(std::span(&arguments, 1)); }
};

/// The scale is 1 / sqrt(head dim).
AttentionLaunch contiguous_launch(const KernelEntry &kernel, const AttentionShape &shape,
                                  const AttentionAddresses &tensors);

} // namespace sluice::package

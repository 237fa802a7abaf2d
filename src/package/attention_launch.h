//===- attention_launch.h - launches of attention kernels: grid, workgroup and arguments ----------------===//
//
// The common parts of plans and of programs that launch a pack's kernels themselves, and for the latter a
// launch on contiguous tensors.
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

/// Arguments for plain attention only: no mask, no windows, one split, no pages, heads of the kernel's own
/// size.
AttentionKernargs plain_kernargs(const KernelName &kernel);

/// Sets the group, the splits or the pages of arguments, and the magic numbers that divide by them.
void set_group(AttentionKernargs &args, uint32_t group);
void set_splits(AttentionKernargs &args, uint32_t splits);
void set_page_rows(AttentionKernargs &args, uint32_t page_rows);

/// The grid in workgroups, with whole tiles: see kernargs.h. A dimension whose extent is 0 is 0.
std::array<uint32_t, 3> attention_grid(const KernelName &kernel, uint32_t batch, uint32_t q_len,
                                       uint32_t q_heads, uint32_t kv_heads, uint32_t splits);

struct AttentionShape {
  uint32_t batch = 1;
  int32_t q_len = 0;
  int32_t kv_len = 0;
  uint32_t q_heads = 1;
  uint32_t kv_heads = 1; // divides q_heads
  enum Mask : uint8_t { none, bottom_right, top_left } mask = none;
};

/// Addresses of tensors shaped and ordered as in kernargs.h, without gaps; lse may be 0.
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

/// With whole tiles. The scale is 1 / sqrt(head dim).
AttentionLaunch contiguous_launch(const KernelEntry &kernel, const AttentionShape &shape,
                                  const AttentionAddresses &tensors);

} // namespace sluice::package

//===- workload.h - attention workloads of engines ------------------------------------------------------===//
//
// The work that `sluice bench` times through a plan: prefill, decode, a chunk of a prompt, drafts to be
// verified. A workload is lengths, heads and types; the plan decides which kernel computes it and with how
// many splits of the keys.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "calls/problem.h"

#include <cstdint>
#include <sluice/sluice.h>
#include <span>
#include <string>
#include <string_view>

namespace sluice::tools {

enum class WorkKind : uint8_t {
  prefill, // as many query rows as keys
  decode,  // one query row
  chunk,   // part of a prompt, following keys that are in the cache
  draft,   // a few rows to be verified: speculative decoding, prediction of several tokens
};
inline constexpr WorkKind work_kinds[] = {WorkKind::prefill, WorkKind::decode, WorkKind::chunk,
                                          WorkKind::draft};
std::string_view work_kind_name(WorkKind kind);

/// The most rows of a draft; the least are 2.
inline constexpr uint32_t most_draft_rows = 16;

/// Types of Q, of K and V, and of O. A Q of FP8 has one scale.
struct ElementTypes {
  std::string name;       // as on the command line
  uint32_t q, kv, o;      // sluice_dtype
  uint32_t kv_scales = 0; // sluice_scale_kind of K and V
  uint32_t group = 0;     // elements of a group of SLUICE_SCALE_PER_GROUP
  bool zeros = false;     // calls::zero_points
};
std::span<const ElementTypes> element_types();

struct HeadDims {
  uint32_t qk = 128, v = 128;
  /// V is the first part of K's rows, as in multi-head latent attention.
  bool v_in_k = false;

  bool operator==(const HeadDims &) const = default;
};
/// "128", "192/128", and "576/512" for MLA.
std::string to_text(const HeadDims &dims);

struct Workload {
  WorkKind kind = WorkKind::prefill;
  ElementTypes types{};
  HeadDims dims = {};
  uint32_t q_heads = 1;
  uint32_t kv_heads = 1; // divides q_heads
  uint32_t batch = 1;
  uint32_t q_len = 1;
  uint32_t kv_len = 1;
  bool causal = false;     // the last row sees the last key
  uint32_t prefix_len = 0; // keys of a prefix that all sequences share, besides their own; 0: none
  bool cascade = true;     // the prefix is one for the call; else each sequence's table begins with its pages
  uint32_t page_size = 0;  // otherwise in the order of the keys
  bool shuffled_pages = true; // else in the order of the keys
  bool sparse = false;        // negative numbers of pages would hide keys

  /// "decode bf16 d128, 64/8 heads, 8 x 1024 keys, pages of 16"
  std::string name() const;
  /// 2 (d of QK + d of V) for each row and key; with a causal mask only half of the last q_len keys count.
  double useful_flops() const;
  /// The least that must be read and written: K, V and their scales once, also of the prefix, Q, and O.
  double needed_bytes() const;
  uint64_t pages_per_sequence() const; // 0 without pages
  uint64_t pages_of_prefix() const;
  /// The bytes of all tensors.
  uint64_t tensor_bytes() const;

  /// The bounds are the workload's own extents.
  calls::Problem problem() const;
};

/// The bytes of `elements` of a sluice_dtype, which are whole blocks.
uint64_t stored_bytes(uint32_t dtype, uint64_t elements);

/// Throws ToolError, naming options, for tensors that are too large.
void check_size(const Workload &work);

} // namespace sluice::tools

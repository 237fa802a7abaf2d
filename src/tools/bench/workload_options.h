//===- workload_options.h - the workloads of a command line ---------------------------------------------===//
#pragma once

#include "package/manifest.h"
#include "tools/bench/workload.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice::tools {

/// As given; an empty or missing value has a default that depends on the kind of work.
struct WorkloadOptions {
  std::vector<std::string> kinds;               // --workload; empty: all
  std::vector<std::string> types = {"bf16"};    // --type; "all": those of the kernels
  std::vector<std::string> head_dims = {"128"}; // --head-dim; "all" as for types
  std::vector<uint32_t> heads = {64};           // --heads
  std::optional<uint32_t> kv_heads;             // --kv-heads; 8, or 1 where V is in K
  std::optional<uint32_t> batch;                // --batch
  std::vector<uint32_t> lengths;                // --lengths, of prefill
  std::vector<uint32_t> kv_lens;                // --kv-len, of the others
  std::vector<uint32_t> q_lens;                 // --q-len, of chunks or drafts
  std::vector<std::string> sequences;           // --sequences, "8x4096", in place of the above but --q-len
  uint32_t prefix_len = 0;                      // --shared-prefix
  bool cascade = true;                          // --no-cascade
  std::string causal;                           // --causal: "on", "off", "both", or empty
  std::optional<uint32_t> page_size;            // --page-size; 0: contiguous
  std::string pages = "shuffled";               // --pages: or "in-order"
  bool sparse = false;                          // --sparse
};

/// The lengths of the prefills and the number of sequences with each, with their defaults.
std::vector<uint32_t> prefill_lengths(const WorkloadOptions &options);
uint32_t prefill_batch(const WorkloadOptions &options, uint32_t length);

/// Throws ToolError unless each KV head serves the same number of query heads.
void check_heads(uint32_t heads, uint32_t kv_heads);

/// The rows in the order of a table. Throws ToolError, naming the option, its value and the rule.
std::vector<Workload> workloads_of(const WorkloadOptions &options, const package::Manifest &kernels);

} // namespace sluice::tools

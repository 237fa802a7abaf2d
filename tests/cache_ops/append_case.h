//===- append_case.h - an append as numbers, and the expected contents of the cache ---------------------===//
//
// The oracle goes over the rows one by one and determines where each goes and what is stored there.
// Everything else in the cache's memory, gaps and other slots, must stay unchanged.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "cache_ops/device.h"

#include <optional>

namespace sluice::test {

struct AppendCase {
  uint32_t source = SLUICE_F16, cache = SLUICE_F16;
  int heads = 2, head_dim_qk = 16, head_dim_v = 24; // head_dim_v 0: SLUICE_V_IN_K
  int page_size = 3, k_pack = 0;
  int pages = 7;
  uint32_t table = SLUICE_PAGE_TABLE_NONE; // NONE: slots
  bool wide_entries = false;
  std::vector<int> new_rows = {5}; // of each sequence; with slots only their sum counts
  std::vector<int> old_keys = {0}; // that the sequences had before; one per entry of new_rows
  int first_row = 0;               // starts[0]
  int rows_behind = 0;             // rows after the last sequence, starts[batch]
  uint32_t k_scale = SLUICE_SCALE_NONE, v_scale = SLUICE_SCALE_NONE;
  int rotary_dim = 0;
  uint32_t rotary_style = SLUICE_ROTARY_HALVES;
  bool positions = false;
  int gap = 0; // elements between heads, twice as many between rows; a multiple of 8
  uint64_t seed = 1;
};

/// Runs the case and checks every byte of the caches.
void check_append(const AppendCase &c);

} // namespace sluice::test

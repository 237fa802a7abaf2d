//===- attention.h - attention on the device, with its KV cache -----------------------------------------===//
//
// The part of the engine that calls Sluice. Each layer has a cache [1, max_positions, kv_heads, head_dim] for
// K and one for V in device memory; a run appends the new rows and lets the new queries see everything up to
// themselves.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "device.h"

#include <optional>
#include <sluice/make.h>
#include <vector>

namespace jargon {

struct AttentionShape {
  int layers;
  int q_heads;
  int kv_heads;
  int head_dim;
  int max_positions;
};

class Attention {
public:
  Attention(Device &device, const AttentionShape &shape);
  Attention(const Attention &) = delete; // the caches point to the format
  Attention &operator=(const Attention &) = delete;

  /// Positions in the cache; the next row has this position.
  int length() const { return positions; }

  /// Appends `rows` rows of K and V to the layer's cache and returns attention of the `rows` queries.
  /// All are [rows, heads, head_dim]; the device gets and gives them as 16-bit floats.
  std::vector<float> run(int layer, int rows, std::span<const float> q, std::span<const float> k,
                         std::span<const float> v);

  /// To be called when all layers have run.
  void advance(int rows) { positions += rows; }

  /// Forgets the text.
  void clear() { positions = 0; }

private:
  using Plan = std::unique_ptr<sluice_plan, Destroy>;
  Plan make_plan(int max_rows);

  Device &device;
  AttentionShape shape;
  int positions = 0;
  sluice_kv_format format;
  std::vector<DeviceMemory> k_cache, v_cache; // by layer
  std::vector<sluice_kv> caches;              // where they are, by layer
  DeviceMemory q_rows, o_rows;
  size_t workspace_bytes = 0;
  Plan prompt_plan;                      // any number of rows
  Plan token_plan;                       // one row: the library may choose another kernel for it
  std::optional<DeviceMemory> workspace; // what the needier of the plans asks for
};

} // namespace jargon

//===- paged_attention.h - attention of many sequences at once, with a paged KV cache -------------------===//
//
// The part of the server that calls Sluice. K and V of all sequences are in one pool of pages per layer; a
// table on the device says which pages a sequence has. A step has some new rows of each sequence, packed one
// after the other: many of a prompt, one of a text that is being continued, none of a place in the batch that
// is empty. One plan serves them all, because its bounds hold for every step and the lengths are on the
// device.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "half.h"
#include "stream.h"

#include <memory>
#include <optional>
#include <sluice/make.h>
#include <vector>

namespace jargon {

enum class CacheType { f16, fp8 };

/// Factors of the values of an FP8 cache: [layer][kv_head].
struct CacheScales {
  std::vector<float> k, v;
};

struct PagedShape {
  int layers;
  int q_heads;
  int kv_heads;
  int head_dim;
  int page_size;  // positions
  int pages;      // of the pool
  int max_batch;  // sequences
  int max_rows;   // new ones of a sequence in a step
  int max_length; // positions of a sequence
  CacheType cache;

  int table_width() const { return (max_length + page_size - 1) / page_size; }
};

class PagedAttention {
public:
  /// `scales` are given for FP8 only. Throws std::runtime_error, with the reason, if the library has no
  /// kernel for this.
  PagedAttention(Device &device, const PagedShape &shape, const CacheScales &scales);
  PagedAttention(const PagedAttention &) = delete; // the caches point to the format
  PagedAttention &operator=(const PagedAttention &) = delete;

  // The step. A server writes the host's side before it runs.
  Mirror<int32_t> starts;  // [max_batch + 1]: rows before each sequence's first
  Mirror<int32_t> lengths; // [max_batch]: positions of each sequence, the new ones included
  Mirror<int32_t> table;   // [max_batch][table_width]: pages
  // The new rows of a layer, [row][heads][head_dim]. Its host's side is read when the stream gets there.
  Mirror<Half> q, k, v;
  Mirror<Half> o;

  /// Enqueues that starts, lengths and table go to the device.
  void enqueue_step(Stream &stream);

  /// Enqueues one layer: q, k and v go to the device, K and V of them into the cache, and o comes back. There
  /// are at most `rows` rows, at most `longest` of a sequence; how many there really are is in `starts`.
  void enqueue_layer(Stream &stream, int layer, int rows, int longest);

private:
  size_t cache_bytes() const;
  void make_caches(const CacheScales &scales);
  void append(Stream &stream, int layer, int rows);
  void attend(Stream &stream, int layer, int longest);
  void make_plan();

  Device &device;
  PagedShape shape;
  std::vector<DeviceMemory> k_pool, v_pool; // by layer: [page][page_size][kv_heads][head_dim]
  std::optional<DeviceMemory> k_scales, v_scales;
  sluice_kv_format format;
  std::vector<sluice_kv_scales> cache_scales; // by layer, for FP8
  std::vector<sluice_kv> caches;              // by layer
  std::vector<sluice_keys> keys;              // by layer; appends and attention take the same
  std::unique_ptr<sluice_plan, Destroy> plan;
  size_t workspace_bytes = 0;
  std::optional<DeviceMemory> workspace;
};

} // namespace jargon

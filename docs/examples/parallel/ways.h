//===- ways.h - three ways to divide attention among ranks ----------------------------------------------===//
//
// Tensors are contiguous, BF16, with one sequence: [1, token, head, dim], as TensorView::bshd makes them.
// Each way returns O in device memory. Each agrees on types and shapes first, and on how each step went after
// it.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention.h"
#include "exchange.h"

namespace parallel {

constexpr uint32_t bf16_bytes = sluice::element_bytes(SLUICE_BF16),
                   f32_bytes = sluice::element_bytes(SLUICE_F32);

/// A rank with its device.
struct Member {
  const Ranks &ranks;
  const Device &device;
  Buffers buffers;
  bool hold_runs; ///< each run of the ring begins when the messages beside it are there: proves that they do
                  ///< not wait for it
  Counts counts{};
};

/// The tokens, keys or heads that a part has.
struct Part {
  int64_t first, count;
};
/// Part number `part` of `parts` nearly equal parts of `count`.
Part part_of(int64_t count, int64_t parts, int64_t part);

/// Types, heads and their elements, in which all ranks must agree.
std::string facts_of(const TensorView &q, const TensorView &k, const TensorView &v);

/// Tensor parallel: q, k and v have this rank's heads, and O has all heads, in the order of the ranks. A
/// model would go on with its own heads, and send nothing before the sum of the output projection.
Memory by_heads(Member &member, const TensorView &q, const TensorView &k, const TensorView &v, bool causal);
/// What each rank sends, in bytes.
uint64_t bytes_by_heads(int ranks, int64_t tokens, int64_t heads, int64_t dim);

/// Context parallel for decoding: every rank has all of q and a share of the keys, which may be empty. Each
/// computes O and LSE of its share; the LSEs say what each counts for, and everyone merges.
Memory decode_by_keys(Member &member, const TensorView &q, const TensorView &k, const TensorView &v);
uint64_t bytes_decode(int ranks, int64_t rows, int64_t heads, int64_t dim);

/// The two of 2 * ranks pieces of a prompt that a rank has: one from the front and one from the back. Under a
/// causal mask all ranks then have equally much to compute.
struct Zigzag {
  Zigzag(int64_t tokens, int ranks, int rank);
  int64_t count() const { return front.count + back.count; }
  Part front, back;
};

/// Context parallel for a causal prompt of `tokens`: q, k and v are this rank's two pieces, one after the
/// other, and so is O. K and V go round while the device computes with those before; what each step computes
/// is merged in F32 into what there is, and O is rounded once.
Memory ring(Member &member, int64_t tokens, const TensorView &q, const TensorView &k, const TensorView &v);
uint64_t bytes_ring(int ranks, int rank, int64_t tokens, int64_t kv_heads, int64_t dim);

} // namespace parallel

//===- cases.h - what the conformance suite runs --------------------------------------------------------===//
//
// A case is a problem, a memory layout and a pattern of numbers. Its name says all of it, the numbers follow
// from the name and the seed of the run alone, and `--case NAME` runs it again by itself.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::test {

/// Of O unless it is F32, and of Q, K and V unless they are FP8.
enum class Dtype : uint8_t { f16, bf16 };

/// What K and V are stored as: as Q, FP8, or FP8 as Q is too.
enum class Cache : uint8_t { same, e4m3fnuz, e4m3fnuz_as_q };

struct HeadSizes {
  constexpr HeadSizes(int both) : qk(both), v(both) {}
  constexpr HeadSizes(int of_q_and_k, int of_v) : qk(of_q_and_k), v(of_v) {}
  int qk, v;
  auto operator<=>(const HeadSizes &) const = default;
};

/// Which keys lie behind the row's own, and from which corner the diagonal goes.
enum class Mask : uint8_t { none, bottom_right, top_left, none_top_left }; // none: not causal

enum class Mode : uint8_t { dense, ragged, paged };

/// How long the sequences are, with q_len and kv_len as the most.
enum class Lengths : uint8_t {
  equal,
  mixed,   // none and one among them, of rows as of keys
  chunked, // the rows are the newest of more keys
  decode,  // one row each
  serving, // whole prompts, chunks and single rows in turns
};

/// What says where the rows of a sequence are.
enum class Rows : uint8_t {
  bounds,  // q_len of the call, for all
  lengths, // device lengths beside a batch stride
  starts,  // one sequence right behind the other
  gaps,    // starts, and lengths which leave rows between sequences that belong to none
};

/// How the tensors lie in memory. In SLUICE_MODE_PAGED: how each page does, for K and V.
enum class Layout : uint8_t {
  bshd,      // [batch, token, head, d], nothing between
  bhsd,      // [batch, head, token, d]
  sbhd,      // [token, batch, head, d]
  packed,    // Q, K and V in one [batch, token, q heads + 2 kv heads, d] buffer; pages: K and V
  padded,    // bshd, but tokens, heads and batches apart, with NaN between them
  capacity,  // bshd inside a longer buffer whose further tokens are NaN
  broadcast, // bshd; all batches read the same K and V (batch stride 0, or the same pages)
};

/// What the numbers are like.
enum class Pattern : uint8_t {
  normal,  // independent normal numbers
  peaked,  // scores far apart: nearly all weight on few keys
  rising,  // the score grows with the key, so that every tile raises the running maximum
  falling, // the first key has the largest score
  uniform, // K = 0: O is the plain mean of the visible V
  tiny,    // Q, K and V among the smallest normal and the subnormal numbers
  codes,   // K and V hold every finite number of FP8 in turns
  // Normal, but some rows of Q, or of K, or of V have a NaN, or of V an infinity.
  nan_query,
  nan_key,
  nan_value,
};

struct Pages {
  int size = 0; // 0 outside of SLUICE_MODE_PAGED
  bool csr = false;
  bool wide = false;   // int64_t entries
  bool k_pack = false; // x-packed K: packs of 16 bytes
  bool operator==(const Pages &) const = default;
};

/// Dimensions of a bias or mask that repeat: a stride of 0.
enum Sharing : uint8_t { share_batch = 1, share_head = 2, share_row = 4, share_column = 8 };

enum class BiasType : uint8_t { none, f16, bf16, f32 };

struct Bias {
  BiasType type = BiasType::none;
  uint8_t shared = 0; // Sharing
  bool holes = false; // -infinity among the elements
  bool operator==(const Bias &) const = default;
};

struct Bits {
  bool given = false;
  uint8_t shared = 0; // Sharing, without share_column
  bool operator==(const Bits &) const = default;
};

enum class Scale : uint8_t { none, tensor, head };

/// Bounds of a plan; 0 is none.
struct PlanBounds {
  int batch = 0, q_len = 0, kv_len = 0;
  bool operator==(const PlanBounds &) const = default;
};

struct Case {
  Dtype dtype = Dtype::f16;
  HeadSizes head_size = 128;
  int batch = 1;
  int q_heads = 1;
  int kv_heads = 1;
  int q_len = 1;
  int kv_len = 1;
  Mask mask = Mask::none;
  Layout layout = Layout::bshd;
  Pattern pattern = Pattern::normal;
  double scale = 0; // 0: the default, 1 / sqrt(head_size.qk)
  bool lse = true;
  bool bounded = true; // the plan is made for exactly this size; otherwise for any

  // Where sequences, keys and values are.
  Mode mode = Mode::dense;
  Lengths lengths = Lengths::equal;
  Rows rows = Rows::bounds;
  Pages pages = {};
  Cache cache = Cache::same;
  bool v_in_k = false;

  // What a row sees; windows of -1 are none.
  int window_left = -1;
  int window_right = -1;
  int sink_tokens = 0;
  Bits bits = {};

  // What its scores and its result become.
  double soft_cap = 0; // 0: none
  Bias bias = {};
  bool alibi = false;
  bool sink_logits = false;
  Scale q_scale = Scale::none;
  Scale k_scale = Scale::none;
  Scale v_scale = Scale::none;
  bool lse_base_2 = false;
  bool o_f32 = false;
  bool batch_invariant = false;

  // A case that is about one kernel: this one must run. The plan then has bounds which lead to it.
  std::string kernel = {};
  PlanBounds plan = {};

  std::string name = {}; // by make_name
  uint64_t seed = 0;     // of the run; the same case has other numbers with another seed

  bool operator==(const Case &) const = default;
};

inline bool is_causal(const Case &c) {
  return c.mask == Mask::bottom_right || c.mask == Mask::top_left;
}
inline bool is_top_left(const Case &c) {
  return c.mask == Mask::top_left || c.mask == Mask::none_top_left;
}

inline bool has_fp8_cache(const Case &c) {
  return c.cache != Cache::same;
}
inline bool has_fp8_queries(const Case &c) {
  return c.cache == Cache::e4m3fnuz_as_q;
}

/// Elements of a pack of an x-packed K cache; 0 without.
inline int k_pack(const Case &c) {
  return !c.pages.k_pack ? 0 : has_fp8_cache(c) ? 16 : 8;
}

std::string make_name(const Case &c);

/// Moves what a mode, a layout or a feature cannot mean in this case to the nearest that it can.
Case meaningful(Case c);

/// Types and head sizes to test. A kernel that the pack gains brings its own.
struct Shapes {
  struct Shape {
    Dtype dtype;
    HeadSizes head_size;
    bool v_in_k = false; // only with SLUICE_V_IN_K
    bool operator==(const Shape &) const = default;
  };
  std::vector<Shape> all; // at least one

  std::vector<Dtype> dtypes() const;         // f16 first
  std::vector<HeadSizes> head_sizes() const; // largest first
};

/// The suite, in an order that the shapes alone decide: plain dense attention at every length, then
/// everything else that the header describes, on small sizes.
std::vector<Case> dense_cases(const Shapes &shapes);
std::vector<Case> feature_cases(const Shapes &shapes);

/// The part of feature_cases that each shape has by itself.
std::vector<Case> single_feature_cases(const Shapes &shapes);

} // namespace sluice::test

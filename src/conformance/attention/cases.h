//===- cases.h - the cases of the conformance suite -----------------------------------------------------===//
//
// A case is a problem, a memory layout and a pattern of numbers. Its name describes it completely; the
// numbers follow from only the name and the seed of the run; and `--case NAME` runs it again on its own.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "conformance/shared/tensors.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::conformance {

/// The type of O unless it is F32, and of Q, K and V unless they are FP8.
enum class Dtype : uint8_t { f16, bf16 };

/// The storage type of K and V: Q's, FP8, or FP8 for Q too, another one of a byte, or blocks (blocks.h).
enum class Cache : uint8_t { same, e4m3fnuz, e4m3fnuz_as_q, e5m2fnuz, i8, q8_0, q4_0, u4, u4_zeros };

/// Which keys come after the row's own, and from which corner the diagonal starts.
enum class Mask : uint8_t { // none: not causal; given: each sequence has its own diagonal
  none,
  bottom_right,
  top_left,
  none_top_left,
  given,
  none_given
};

enum class Mode : uint8_t { dense, ragged, paged };

/// The lengths of the sequences, at most q_len and kv_len.
enum class Lengths : uint8_t {
  equal,
  mixed,   // zero and one among them, for rows and for keys
  chunked, // the rows are the newest of more keys
  decode,  // one row each
  serving, // whole prompts, chunks and single rows in rotation
};

/// How a call locates the rows of a sequence.
enum class Rows : uint8_t {
  bounds,  // q_len of the call, for all sequences
  lengths, // device lengths together with a batch stride
  starts,  // sequences one after another
  gaps,    // starts, and lengths that leave rows between sequences
};

/// The distribution of the numbers.
enum class Pattern : uint8_t {
  normal,  // independent normal numbers
  peaked,  // scores far apart: nearly all weight on few keys
  rising,  // the score grows with the key, so that every tile raises the running maximum
  falling, // the first key has the largest score
  uniform, // K = 0: O is the plain mean of the visible V
  tiny,    // Q, K and V among the smallest normal and the subnormal numbers
  codes,   // K and V hold every finite number of their byte type in rotation
  // Normal, but some rows of Q, or of K, or of V have a NaN, or of V an infinity.
  nan_query,
  nan_key,
  nan_value,
};

struct Pages {
  int size = 0; // 0: K and V are not in pages
  bool csr = false;
  bool wide = false;    // int64_t entries
  bool k_pack = false;  // x-packed K: packs of 16 bytes
  bool missing = false; // some entries are negative, and hide their keys
  bool by_head = false; // each KV head has entries of its own
  bool operator==(const Pages &) const = default;
};

/// Dimensions over which a bias or mask repeats: their stride is 0.
enum Sharing : uint8_t { share_batch = 1, share_head = 2, share_row = 4, share_column = 8 };

enum class BiasType : uint8_t { none, f16, bf16, f32 };

struct Bias {
  BiasType type = BiasType::none;
  uint8_t shared = 0;  // Sharing
  bool holes = false;  // -infinity among the elements
  bool scaled = false; // a scale for each query head
  bool operator==(const Bias &) const = default;
};

struct Bits {
  bool given = false;
  uint8_t shared = 0;    // Sharing, without share_column
  bool new_rows = false; // only the newest keys, as many as there are rows
  bool operator==(const Bits &) const = default;
};

/// Prefixes that rows see before their own keys. Sequences::prefix_starts says which rows see which.
struct Prefixes {
  int count = 0;        // 0: without SLUICE_ATTENTION_PREFIXES
  int keys = 0;         // the most; their lengths differ, and include 0
  bool outside = false; // some rows come before the first prefix, and some after the last
  bool operator==(const Prefixes &) const = default;
};

/// Bounds of a plan; 0: not given.
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
  std::optional<double> scale = std::nullopt; // none: the default, 1 / sqrt(head_size.qk)
  bool lse = true;
  bool bounded = true; // the plan is made for exactly this size; otherwise for any

  // The layout of sequences, keys and values.
  Mode mode = Mode::dense;
  Lengths lengths = Lengths::equal;
  Rows rows = Rows::bounds;
  Pages pages = {};
  Cache cache = Cache::same;
  bool v_in_k = false;
  Columns v_columns = Columns::none;
  Prefixes prefixes = {};

  // Which keys a row sees; -1: no window.
  int window_left = -1;
  int window_right = -1;
  int sink_tokens = 0;
  Bits bits = {};
  bool spans = false;              // of keys that see each other
  bool causal_by_sequence = false; // some sequences are causal

  // Changes to its scores and its result.
  double soft_cap = 0; // 0: none
  Bias bias = {};
  bool alibi = false;
  bool by_sequence = false; // slopes of ALiBi and scales of a bias for each sequence
  bool sink_logits = false;
  Scale q_scale = Scale::none;
  Scale k_scale = Scale::none;
  Scale v_scale = Scale::none;
  bool lse_base_2 = false;
  bool o_f32 = false;
  bool o_fp8 = false;
  Scale o_scale = Scale::none;
  bool batch_invariant = false;

  // For a case about one kernel: this kernel must run. The plan's bounds then select it.
  std::string kernel = {};
  PlanBounds plan = {};

  std::string name = {}; // by make_name
  uint64_t seed = 0;     // of the run; with another seed the same case has other numbers

  bool operator==(const Case &) const = default;
};

struct ScoreChange; // scores/scores.h
namespace scores {
// Each in the file of its name.
extern const ScoreChange mask_bits, soft_cap, bias, alibi, by_sequence, sink_logits;
} // namespace scores

/// The changes of scores, in the order in which scores are changed, and of names and lists of cases.
inline const ScoreChange *const score_changes[] = {&scores::mask_bits,   &scores::soft_cap,
                                                   &scores::bias,        &scores::alibi,
                                                   &scores::by_sequence, &scores::sink_logits};

inline bool is_causal(const Case &c) {
  return c.mask == Mask::bottom_right || c.mask == Mask::top_left || c.mask == Mask::given;
}
inline bool has_diagonals(const Case &c) {
  return c.mask == Mask::given || c.mask == Mask::none_given;
}
inline bool is_top_left(const Case &c) {
  return c.mask == Mask::top_left || c.mask == Mask::none_top_left;
}

inline bool has_byte_cache(const Case &c) {
  return c.cache != Cache::same;
}
inline bool has_fp8_queries(const Case &c) {
  return c.cache == Cache::e4m3fnuz_as_q;
}

/// Elements of a pack of an x-packed K cache; 0 without.
inline int k_pack(const Case &c) {
  return !c.pages.k_pack ? 0 : has_byte_cache(c) ? 16 : 8;
}

/// The same tokens for V; 0 if V is by rows or in one pack.
inline int v_pack(const Case &c) {
  return c.v_columns != Columns::packs ? 0 : has_byte_cache(c) ? 16 : 8;
}

std::string make_name(const Case &c);

/// Elements of a row in memory: rows of other sizes end with elements that may be read and, in O, written.
constexpr int64_t row_elements(int head_size) {
  return (head_size + 7) / 8 * 8;
}

/// Replaces a mode, layout or feature that is not possible in this case by the nearest one that is.
Case meaningful(Case c);

/// Types and head sizes to test. A kernel that is added to the pack adds its own.
struct Shapes {
  struct Shape {
    Dtype dtype;
    HeadSizes head_size;
    bool v_in_k = false; // only with SLUICE_KV_V_IN_K
    bool operator==(const Shape &) const = default;
  };
  std::vector<Shape> all; // at least one

  std::vector<Dtype> dtypes() const;         // f16 first
  std::vector<HeadSizes> head_sizes() const; // largest first
};

/// The suite, in an order that depends only on the shapes: plain dense attention at every length, then
/// everything else that the header describes, on small sizes.
std::vector<Case> dense_cases(const Shapes &shapes);
std::vector<Case> feature_cases(const Shapes &shapes);

/// The part of feature_cases with single features of each shape.
std::vector<Case> single_feature_cases(const Shapes &shapes);

} // namespace sluice::conformance

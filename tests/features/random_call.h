//===- random_call.h - a random call of everything the header knows -------------------------------------===//
//
// Shapes, lengths, masks and numbers are random; everything outside the sequences is NaN. The same call can
// be made on the device and of sluice_attention_reference, and all memory is compared, including what neither
// may write.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "cache_ops/device.h"
#include "calls/args.h"
#include "calls/problem.h"
#include "conformance/shared/numbers.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::test {

/// Numbers of a type that tests can write and read, in memory that the device sees. Those in blocks are
/// written as blocks.
class Elements {
public:
  Elements(uint32_t type, size_t count);

  static bool knows(uint32_t type);
  static bool is_in_blocks(uint32_t type);
  void set(size_t place, double value);
  double get(size_t place) const { return number(type, memory.data(), place); }
  /// An element of any memory.
  static double number(uint32_t type, const uint8_t *bytes, size_t place);

  /// Random numbers of at most 1 in a block of 32, of Q8_0 or Q4_0 with its scale.
  void draw_block(size_t block, Numbers &random);
  /// Types without a NaN get their least number.
  void fill_with_nan();
  void fill_with_bytes(uint8_t byte);
  /// The bytes of an element, or a block, that only the last of these fills leaves; empty without one.
  std::vector<uint8_t> fill() const;
  uint8_t *data() { return memory.data(); }
  std::vector<uint8_t> copy() const { return memory.copy(); }
  size_t count() const { return memory.size() / element_bytes(); }
  size_t element_bytes() const;

private:
  uint32_t type;
  Visible<uint8_t> memory;
  bool has_fill = false;
};

/// Follows the entries that a page table needs: reading this page is an error of the device.
inline constexpr int32_t far_page = 0x00ffffff;

/// The contents of O and LSE before a call.
inline constexpr uint8_t untouched_byte = 0x5a;
inline constexpr float untouched_lse = -12345;

/// The upper limits of random lengths, where the problem has no lower bounds.
struct Largest {
  uint32_t batch = 3, q_len = 149, kv_len = 299;
};

/// What a call of the edges has, besides what every random call has.
struct Edges {
  bool few_rows = false;    // extents of 0, 1 and 2, and calls that say so exactly
  bool odd_strides = false; // for extents of 1, which give strides no meaning
  bool far_scales = false;  // subnormal, tiny and huge ones
};

class RandomCall {
public:
  explicit RandomCall(uint64_t seed, const Largest &largest = {});
  /// For a given problem.
  RandomCall(uint64_t seed, const calls::Problem &problem, const Largest &largest);

  /// Changes to the random values, before prepare().
  calls::Problem problem;
  std::vector<int32_t> q_lengths, kv_lengths; // of each sequence
  bool q_lengths_given = false, q_starts_given = false, kv_lengths_given = false;
  Edges edges;
  /// Draws other lengths and heads: few of each, or none.
  void draw_few();
  void bound(int32_t batch, int32_t q_len, int32_t kv_len);

  /// Draws memory for the current problem and lengths.
  void prepare();

  /// Overwrites lengths, starts and page numbers with arbitrary numbers. If `counted`, the call says how many
  /// rows and pages there are.
  void make_wild(bool counted);
  /// Says how many rows and pages there are.
  void count_all();
  /// One number, by the name of the array in calls::Args.
  void set_wild(std::string_view array, size_t place, int64_t value);
  /// Makes the rows of K and V of a sequence's first page zeros.
  void clear_page_of(size_t entry);

  /// Runs on the device, with workspace as large as the plan says.
  void run();
  /// The same with memory of the device in which nothing outside the sequences, and nothing of the workspace,
  /// has ever been written: the device reports it where it matters.
  void run_on_fresh_memory();
  /// The same, and permits reports of the device. Returns them as JSON.
  std::string run_wild();
  /// Changes outside the rows of O and LSE that the call may write, or an empty string.
  std::string find_stray_store() const;
  /// The same on the host.
  void refer();
  /// The largest differences between both outputs; elements that may not be written must be unchanged.
  struct Difference {
    double o = 0, lse = 0;
    std::string where;
  };
  Difference compare() const;

  std::string text() const;
  std::vector<uint8_t> output() const { return o->copy(); }
  std::vector<float> lse_output() const { return lse ? lse->copy() : std::vector<float>(); }

private:
  double number(double spread) { return random.between(-spread, spread); }
  /// Creates a plan, and has `launch` run it with its workspace.
  void with_plan(const std::function<void(const sluice_plan *plan, const sluice_launch &where)> &launch);
  std::vector<std::vector<uint8_t>> inputs() const;
  void draw_lengths(const Largest &largest);
  int32_t longest(const std::vector<int32_t> &lengths) const;
  void share_prefixes();
  void draw_rows();
  void draw_prefix_rows();
  void draw_keys();
  void draw_scores();
  void draw_bias();
  void draw_mask();
  void draw_visibility();
  sluice_tensor draw_key_scales(std::optional<Visible<float>> &array, uint32_t kind);
  void bend_strides();
  void draw_far_scales();
  sluice_tensor draw_groups(std::optional<Elements> &array, int32_t head_dim, double low, double high);
  /// The place of a key of a sequence among the rows of a cache.
  using RowOf = std::function<size_t(int32_t sequence, int32_t key)>;
  sluice_tensor fill_packed(std::optional<Elements> &tensor, size_t rows, const std::vector<size_t> &used);
  sluice_tensor fill_columns(std::optional<Elements> &tensor, size_t rows, int64_t room,
                             const std::vector<size_t> &used);

  Numbers random;
  calls::Args args;
  std::optional<Elements> q, k, v, o, bias, prefix_k, prefix_v, k_groups, v_groups, k_zeros, v_zeros;
  std::optional<Visible<float>> lse, alibi, sinks, q_scale, k_scale, v_scale, o_scale, bias_scale, k_scales,
      v_scales;
  std::optional<Visible<uint8_t>> mask;
  std::vector<bool> is_of_mask; // bytes with bits of rows and keys
  std::optional<Visible<int32_t>> q_starts, kv_starts, q_lens, kv_lens, table, page_starts, diagonals, causal,
      spans;
  std::vector<int32_t> prefix_lengths;
  std::optional<Visible<int32_t>> prefix_q_starts, prefix_lens, prefix_table, prefix_page_starts;
  std::optional<Visible<int64_t>> wide_table, wide_prefix_table;
  size_t q_tokens = 0, kv_tokens = 0, pages = 0; // rows of Q, of K, pages
  std::vector<bool> is_used;                     // of the rows of K
  int64_t kv_room = 0;                           // rows of K from one sequence, or page, to the next
  int64_t o_row = 0;                             // elements from one row of O to the next
  double o_unit = 1;                             // of the size of O, with far scales
  std::vector<std::vector<uint8_t>> inputs_before;
  std::vector<uint8_t> expected_o;
  std::vector<float> expected_lse;
};

} // namespace sluice::test

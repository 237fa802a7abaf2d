//===- group_query_step.cpp - one call of GroupQueryAttention, checked ----------------------------------===//

#include "group_query_step.h"

#include "kernel.h"

#include <algorithm>

namespace sluice_ort::group_query {

namespace {

using std::to_string;

void check_shape(const Tensor &tensor, const char *name, const Shape &wanted) {
  require(tensor.shape == wanted, std::string(name) + " has the shape " + shape_text(tensor.shape) +
                                      "; it must be " + shape_text(wanted));
}

/// Q, K and V: of three tensors, or of one whose rows have the heads of all.
void read_rows(Step &step, const Layout &layout, const Call &call) {
  const Tensor q = call.input(query), k = call.input(key), v = call.input(value);
  require(q.shape.size() == 3,
          "query has the shape " + shape_text(q.shape) + "; it must be (batch, tokens, elements)");
  const bool packed = !k.is_given();
  const int64_t heads = packed ? layout.heads + 2 * layout.kv_heads : layout.heads;
  require(q.shape[2] > 0 && q.shape[2] % heads == 0,
          "query has the shape " + shape_text(q.shape) +
              "; its last dimension must be a multiple of the heads in a row, " + to_string(heads));
  step.batch = q.shape[0];
  step.rows = q.shape[1];
  step.head_size = q.shape[2] / heads;
  step.q = q.as<const uint16_t>();
  step.q_token_stride = q.shape[2];
  const int64_t kv_elements = layout.kv_heads * step.head_size;
  if (packed) {
    step.k = step.v = {step.q, q.shape[2]};
    if (!step.q) return; // without rows
    step.k.data += layout.heads * step.head_size;
    step.v.data = step.k.data + kv_elements;
    return;
  }
  check_shape(k, "key", {step.batch, step.rows, kv_elements});
  check_shape(v, "value", {step.batch, step.rows, kv_elements});
  step.k = {k.as<const uint16_t>(), kv_elements};
  step.v = {v.as<const uint16_t>(), kv_elements};
}

void read_lengths(Step &step, const Call &call) {
  const Tensor last = call.input(seqlens_k), total = call.input(total_sequence_length),
               valid = call.input(query_seqlens);
  require(elements_of(last.shape) == step.batch, "seqlens_k has the shape " + shape_text(last.shape) +
                                                     "; it must have one element for each of " +
                                                     to_string(step.batch) + " sequences");
  require(elements_of(total.shape) == 1,
          "total_sequence_length has the shape " + shape_text(total.shape) + "; it must have one element");
  if (valid.is_given()) check_shape(valid, "query_seqlens", {step.batch});
  const int32_t most_keys = *total.as<const int32_t>();
  require(most_keys >= step.rows, "total_sequence_length is " + to_string(most_keys) +
                                      "; it must be at least the rows of query, " + to_string(step.rows));
  for (int64_t b = 0; b < step.batch; ++b) {
    const std::string at = to_string(b) + "] is ";
    const int32_t last_key = last.as<const int32_t>()[b];
    require(last_key >= -1 && last_key < most_keys,
            "seqlens_k[" + at + to_string(last_key) +
                "; it must be at least -1, which is no keys, and less than total_sequence_length, " +
                to_string(most_keys));
    const int32_t most_rows = int32_t(std::min<int64_t>(step.rows, last_key + 1));
    const int32_t new_rows = valid ? valid.as<const int32_t>()[b] : most_rows;
    require(new_rows >= 0 && new_rows <= most_rows, "query_seqlens[" + at + to_string(new_rows) +
                                                        "; it must be at least 0 and at most " +
                                                        to_string(most_rows));
    step.new_rows.push_back(new_rows);
    step.keys.push_back(last_key + 1);
  }
}

void read_caches(Step &step, const Layout &layout, const Call &call) {
  const Tensor k = call.input(past_key), v = call.input(past_value);
  if (k.is_given()) {
    require(k.shape.size() == 4,
            "past_key has the shape " + shape_text(k.shape) + "; it must be (batch, heads, keys, head size)");
    step.past_capacity = k.shape[2];
    const Shape wanted = {step.batch, layout.kv_heads, step.past_capacity, step.head_size};
    check_shape(k, "past_key", wanted);
    check_shape(v, "past_value", wanted);
    step.past_k = k.as<const uint16_t>();
    step.past_v = v.as<const uint16_t>();
  }
  const int64_t total = *call.input(total_sequence_length).as<const int32_t>();
  step.capacity = std::max(step.past_capacity, total);
  for (int64_t b = 0; b < step.batch; ++b)
    require(step.past_rows(b) <= step.past_capacity,
            "sequence " + to_string(b) + " has " + to_string(step.past_rows(b)) +
                " keys before this call; past_key has room for " + to_string(step.past_capacity));
}

/// A row's position comes from position_ids, or else is its place among the keys. In a first prompt the
/// operator reads only the first of the ids.
void read_positions(Step &step, const Layout &layout, const Call &call) {
  if (!layout.has_rotary) return;
  const Tensor cosines = call.input(cos_cache), sines = call.input(sin_cache), ids = call.input(position_ids);
  require(cosines.shape.size() == 2 && 2 * cosines.shape[1] <= step.head_size,
          "cos_cache has the shape " + shape_text(cosines.shape) +
              "; it must be (positions, pairs), with at most " + to_string(step.head_size / 2) + " pairs");
  check_shape(sines, "sin_cache", cosines.shape);
  step.rotary = {layout.type,
                 cosines.as<const uint16_t>(),
                 sines.as<const uint16_t>(),
                 cosines.shape[0],
                 cosines.shape[1],
                 layout.interleaved};
  if (ids.is_given()) check_shape(ids, "position_ids", {step.batch, step.rows});
  const bool first_prompt =
      *call.input(total_sequence_length).as<const int32_t>() == step.rows && !call.input(query_seqlens);
  for (int64_t b = 0; b < step.batch; ++b) {
    std::vector<int64_t> &positions = step.positions.emplace_back(step.new_rows[b]);
    for (int64_t row = 0; row < step.new_rows[b]; ++row) {
      positions[row] = !ids           ? step.past_rows(b) + row
                       : first_prompt ? *ids.as<const int64_t>() + row
                                      : ids.as<const int64_t>()[b * step.rows + row];
      require(positions[row] >= 0 && positions[row] < step.rotary.positions,
              "row " + to_string(row) + " of sequence " + to_string(b) + " has the position " +
                  to_string(positions[row]) + "; cos_cache has " + to_string(step.rotary.positions));
    }
  }
}

} // namespace

bool Step::is_padded() const {
  return std::ranges::any_of(new_rows, [&](int32_t count) { return count != rows; });
}

int32_t Step::longest() const {
  return keys.empty() ? 0 : std::ranges::max(keys);
}

Step checked_step(const Layout &layout, const Call &call) {
  Step step;
  read_rows(step, layout, call);
  read_lengths(step, call);
  read_caches(step, layout, call);
  read_positions(step, layout, call);
  return step;
}

} // namespace sluice_ort::group_query

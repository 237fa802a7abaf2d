//===- check_case.cpp - one attention node: its numbers, and its graph ---------------------------------===//

#include "check_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <ggml-alloc.h>
#include <limits>
#include <memory>

namespace check {

namespace {

/// Sums of four numbers of [-1, 1): near enough to normal, and the same everywhere.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  float operator()() {
    float sum = 0;
    for (int i = 0; i < 4; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      sum += float(int32_t(state >> 32)) * 0x1p-31f;
    }
    return sum;
  }
  std::vector<float> operator()(int64_t count) {
    std::vector<float> numbers(count);
    for (float &number : numbers)
      number = (*this)();
    return numbers;
  }

private:
  uint64_t state;
};

/// The bytes of numbers in a type of ggml.
std::vector<char> encoded(const std::vector<float> &numbers, ggml_type type) {
  if (numbers.empty()) return {};
  std::vector<char> bytes(ggml_row_size(type, int64_t(numbers.size())));
  ggml_quantize_chunk(type, numbers.data(), bytes.data(), 0, 1, int64_t(numbers.size()), nullptr);
  return bytes;
}

/// The numbers as a type of ggml stores them.
void round_to(std::vector<float> &numbers, ggml_type type) {
  if (type == GGML_TYPE_F32 || numbers.empty()) return;
  ggml_get_type_traits(type)->to_float(encoded(numbers, type).data(), numbers.data(),
                                       int64_t(numbers.size()));
}

/// Heads and sequences of the mask that the node has.
std::pair<int64_t, int64_t> mask_extent(const Case &of) {
  return {of.mask == Mask::per_head      ? of.q_heads
          : of.mask == Mask::alternating ? 2
                                         : 1,
          of.mask == Mask::per_sequence ? of.sequences : 1};
}

/// [sequence, head, row, key] of the mask that the node has.
std::vector<float> stored_mask(const Case &of) {
  if (of.mask == Mask::none) return {};
  constexpr float hidden = -std::numeric_limits<float>::infinity();
  const auto [heads, sequences] = mask_extent(of);
  const int64_t live = of.mask == Mask::padded ? of.keys - of.keys / 3 : of.keys;
  Random random(7);
  std::vector<float> mask;
  for (int64_t plane = 0; plane < heads * sequences; ++plane)
    for (int64_t row = 0; row < of.rows; ++row)
      for (int64_t key = 0; key < of.keys; ++key) {
        const int64_t distance = row + live - of.rows - key; // from the key to the row's own key
        const float number = random();
        if (of.mask >= Mask::numbers) {
          mask.push_back(number > 1.5f ? hidden : number);
        } else {
          const bool seen = distance >= 0 && (of.mask != Mask::window || distance <= 20);
          mask.push_back(!seen ? hidden : of.mask == Mask::distance ? -float(distance) : 0);
        }
      }
  round_to(mask, GGML_TYPE_F16);
  return mask;
}

struct Free {
  void operator()(ggml_context *context) const { ggml_free(context); }
  void operator()(ggml_backend_buffer *buffer) const { ggml_backend_buffer_free(buffer); }
  void operator()(ggml_backend_sched *scheduler) const { ggml_backend_sched_free(scheduler); }
};

/// The node, its inputs in the CPU's memory and its graph.
class Graph {
public:
  Graph(const Case &of, const Numbers &numbers);

  ggml_tensor *node = nullptr;
  ggml_cgraph *graph = nullptr;
  std::unique_ptr<ggml_context, Free> context; ///< holds views, the node and the graph

private:
  ggml_tensor *input(ggml_type type, std::vector<int64_t> extent);
  void place(ggml_tensor *tensor, const std::vector<float> &numbers);
  ggml_tensor *rows_of_heads(ggml_type type, int64_t elements, int64_t heads, int64_t rows, int64_t sequences,
                             int64_t offset = 0);

  const Case &of;
  std::unique_ptr<ggml_context, Free> inputs;
  std::unique_ptr<ggml_backend_buffer, Free> buffer;
};

std::unique_ptr<ggml_context, Free> make_context() {
  return std::unique_ptr<ggml_context, Free>(
      ggml_init({ggml_tensor_overhead() * 32 + ggml_graph_overhead(), nullptr, true}));
}

ggml_tensor *Graph::input(ggml_type type, std::vector<int64_t> extent) {
  extent.resize(4, 1);
  return ggml_new_tensor(inputs.get(), type, 4, extent.data());
}

/// [element, row, head, sequence] in the layout of the case. `offset`: elements of a cache's row before
/// these.
ggml_tensor *Graph::rows_of_heads(ggml_type type, int64_t elements, int64_t heads, int64_t rows,
                                  int64_t sequences, int64_t offset) {
  if (of.layout == Layout::dense || of.layout == Layout::v_in_own_k)
    return input(type, {elements, rows, heads, sequences});
  if (of.layout == Layout::odd) {
    ggml_tensor *const wide = input(type, {elements + 4, rows, heads, sequences});
    return ggml_view_4d(context.get(), wide, elements, rows, heads, sequences, wide->nb[1], wide->nb[2],
                        wide->nb[3], 0);
  }
  ggml_tensor *const cache = input(type, {offset + elements * heads, rows + 24, sequences});
  ggml_tensor *const view =
      ggml_view_4d(context.get(), cache, elements, heads, rows, sequences, ggml_row_size(type, elements),
                   cache->nb[1], cache->nb[2], ggml_row_size(type, offset));
  return ggml_permute(context.get(), view, 0, 2, 1, 3);
}

/// Writes [sequence, head, row, element] to where the tensor has them, and NaN to the gaps.
void Graph::place(ggml_tensor *tensor, const std::vector<float> &numbers) {
  ggml_tensor *const whole = tensor->view_src ? tensor->view_src : tensor;
  std::memset(whole->data, 0xff, ggml_nbytes(whole));
  const size_t row_bytes = ggml_row_size(tensor->type, tensor->ne[0]);
  const std::vector<char> bytes = encoded(numbers, tensor->type);
  const char *from = bytes.data();
  for (int64_t sequence = 0; sequence < tensor->ne[3]; ++sequence)
    for (int64_t head = 0; head < tensor->ne[2]; ++head)
      for (int64_t row = 0; row < tensor->ne[1]; ++row, from += row_bytes)
        std::memcpy(static_cast<char *>(tensor->data) + sequence * tensor->nb[3] + head * tensor->nb[2] +
                        row * tensor->nb[1],
                    from, row_bytes);
}

Graph::Graph(const Case &of, const Numbers &numbers)
    : context(make_context()), of(of), inputs(make_context()) {
  ggml_tensor *const q = rows_of_heads(GGML_TYPE_F32, of.head_dim_qk, of.q_heads, of.rows, of.sequences);
  ggml_tensor *const k =
      rows_of_heads(of.kv_type, of.head_dim_qk, of.kv_heads, of.keys, of.sequences, of.k_offset);
  ggml_tensor *const v =
      of.v_is_in_k() ? ggml_view_4d(context.get(), k, of.head_dim_v, of.keys, of.kv_heads, of.sequences,
                                    k->nb[1], k->nb[2], k->nb[3], ggml_row_size(of.kv_type, of.v_offset))
                     : rows_of_heads(of.v_type(), of.head_dim_v, of.kv_heads, of.keys, of.sequences);
  const auto [mask_heads, mask_sequences] = mask_extent(of);
  ggml_tensor *const mask =
      of.mask == Mask::none ? nullptr : input(GGML_TYPE_F16, {of.keys, of.rows, mask_heads, mask_sequences});
  ggml_tensor *const sinks = of.sinks ? input(GGML_TYPE_F32, {of.q_heads}) : nullptr;
  buffer.reset(ggml_backend_alloc_ctx_tensors_from_buft(inputs.get(), ggml_backend_cpu_buffer_type()));

  node = ggml_flash_attn_ext(context.get(), q, k, v, mask, numbers.scale, of.max_bias, of.soft_cap);
  ggml_flash_attn_ext_add_sinks(node, sinks);
  ggml_set_output(node);
  graph = ggml_new_graph(context.get());
  ggml_build_forward_expand(graph, node);

  // Views of inputs have no memory before a scheduler gives them theirs.
  for (ggml_tensor *view = ggml_get_first_tensor(context.get()); view;
       view = ggml_get_next_tensor(context.get(), view))
    if (view->view_src && view->view_src->data) ggml_backend_view_init(view);
  place(q, numbers.q);
  place(k, numbers.k);
  if (!of.v_is_in_k()) place(v, numbers.v);
  if (mask) place(mask, stored_mask(of));
  if (sinks) ggml_backend_tensor_set(sinks, numbers.sinks.data(), 0, ggml_nbytes(sinks));
}

} // namespace

Numbers::Numbers(const Case &of) : scale(of.scale.value_or(1 / std::sqrt(float(of.head_dim_qk)))) {
  Random random(1);
  q = random(of.sequences * of.q_heads * of.rows * of.head_dim_qk);
  k = random(of.sequences * of.kv_heads * of.keys * of.head_dim_qk);
  round_to(k, of.kv_type);
  if (of.v_is_in_k()) {
    for (auto row = k.begin(); row != k.end(); row += of.head_dim_qk)
      v.insert(v.end(), row + of.v_offset, row + of.v_offset + of.head_dim_v);
  } else {
    v = random(of.sequences * of.kv_heads * of.keys * of.head_dim_v);
    round_to(v, of.v_type());
  }
  if (of.sinks) sinks = random(of.q_heads);

  const std::vector<float> stored = stored_mask(of);
  if (stored.empty()) return;
  const auto [heads, sequences] = mask_extent(of);
  const int64_t plane = of.rows * of.keys;
  for (int64_t sequence = 0; sequence < of.sequences; ++sequence)
    for (int64_t head = 0; head < of.q_heads; ++head) {
      const float *const from = &stored[(sequence % sequences * heads + head % heads) * plane];
      mask.insert(mask.end(), from, from + plane);
    }
}

Outcome compute(const Case &of, const Numbers &numbers, std::vector<ggml_backend_t> backends) {
  Graph made(of, numbers);
  const std::unique_ptr<ggml_backend_sched, Free> scheduler(ggml_backend_sched_new(
      backends.data(), nullptr, int(backends.size()), GGML_DEFAULT_GRAPH_SIZE, false, true));
  Outcome outcome;
  ggml_backend_sched_alloc_graph(scheduler.get(), made.graph);
  outcome.backend = ggml_backend_name(ggml_backend_sched_get_tensor_backend(scheduler.get(), made.node));
  outcome.status = ggml_backend_sched_graph_compute(scheduler.get(), made.graph);
  outcome.o.resize(ggml_nelements(made.node));
  ggml_backend_tensor_get(made.node, outcome.o.data(), 0, ggml_nbytes(made.node));
  return outcome;
}

ggml_status force(const Case &of, const Numbers &numbers, ggml_backend_t backend) {
  Graph made(of, numbers);
  std::unique_ptr<ggml_gallocr, void (*)(ggml_gallocr_t)> memory(
      ggml_gallocr_new(ggml_backend_cpu_buffer_type()), ggml_gallocr_free);
  ggml_gallocr_alloc_graph(memory.get(), made.graph);
  return ggml_backend_graph_compute(backend, made.graph);
}

} // namespace check

//===- kernel.h - what the two operators have in common -------------------------------------------------===//
#pragma once

#include "api.h"
#include "device.h"

#include <memory>
#include <optional>

namespace sluice_ort {

/// A node of a session. Made when the session is, and then called from any thread.
class Kernel {
public:
  virtual ~Kernel() = default;
  /// Throws Refusal where shapes or values break a rule.
  virtual void compute(const Call &call) const = 0;
};

/// com.microsoft.GroupQueryAttention, as ONNX Runtime's page of contributed operators describes it.
std::unique_ptr<Kernel> make_group_query_attention(const Node &node, Device &device);
/// ONNX's Attention of the operator sets 23 to 25.
std::unique_ptr<Kernel> make_attention(const Node &node, Device &device);

/// Throws Refusal(message) unless the rule holds.
void require(bool rule, const std::string &message);

/// sluice_dtype of a type that Q, K and V can have; throws Refusal for others.
uint32_t half_type(ElementType type, const char *input);
/// sluice_dtype of what is added to scores; throws Refusal for others.
uint32_t bias_type(ElementType type, const char *input);

/// softcap, which both operators have; 0 means no cap.
float soft_cap_of(const Node &node);
/// The attribute scale, of which 0 is a number like any other. Without it, scores are divided by
/// sqrt(head size), and so are they in Sluice.
std::optional<float> scale_of(const Node &node);

/// An extent. One that does not fit stays too large, so that Sluice refuses it.
int32_t count_of(int64_t extent);
/// The problem of a node without masks.
Problem plain_problem(uint32_t type, int64_t q_heads, int64_t kv_heads, int64_t head_size,
                      int64_t v_head_size);

/// Strides of a bias or mask with a shape (batch, heads, rows, keys), whose dimensions may be 1 to be
/// repeated.
sluice_tensor repeated(void *data, const Shape &shape);

/// Whether a present cache is its past cache, so that old keys are where they belong. Throws Refusal if they
/// only overlap: a cache whose rows move must not be written while it is read. Shapes are (batch, heads,
/// keys, head size); `name` is the output.
bool is_in_place(const char *name, const Shape &past_shape, const void *past, const Shape &shape,
                 const void *present);

/// Rows [0, keys) of each head of a cache (batch, heads, capacity, head size), and the strides of their copy.
CacheRows cache_rows(const void *data, const Shape &shape, int64_t keys);
sluice_tensor cache_tensor(const Shape &shape, int64_t keys);

} // namespace sluice_ort

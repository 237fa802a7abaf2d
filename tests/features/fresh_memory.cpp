//===- fresh_memory.cpp - random calls in memory that was never written outside the sequences -----------===//
//
// The device knows which bytes of its own memory have been written, and reports a use of others that matters.
//
//===----------------------------------------------------------------------------------------------------===//
#include "cache_ops/fresh.h"
#include "calls/args.h"
#include "calls/problem.h"
#include "features/random_call.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <type_traits>
#include <utility>

namespace sluice::test {

namespace {

/// A call's arrays in memory of the device, without what was never written in them.
class FreshArrays {
public:
  /// Sets `pointer` to a copy of those units for which `is_written` holds.
  template <typename Pointer, typename IsWritten>
  Fresh &copy(Pointer &pointer, const void *data, size_t bytes, size_t unit, IsWritten is_written) {
    Fresh &made = arrays.emplace_back(bytes);
    const auto *from = static_cast<const uint8_t *>(data);
    for (size_t at = 0, end = 0; at < bytes; at = std::max(end, at + unit)) {
      for (end = at; end < bytes && is_written(from + end); end += unit) {
      }
      if (end > at) made.write(at, from + at, end - at);
    }
    pointer = reinterpret_cast<Pointer>(made.data());
    return made;
  }
  template <typename Pointer> void copy(Pointer &pointer, std::optional<Elements> &from) {
    if (!from) return;
    const std::vector<uint8_t> fill = from->fill();
    copy(pointer, from->data(), from->copy().size(), fill.empty() ? 1 : fill.size(),
         [&](const uint8_t *at) { return fill.empty() || !std::equal(fill.begin(), fill.end(), at); });
  }
  /// Of these, NaN or a page that no sequence has was never written.
  template <typename Pointer, typename Element>
  void copy(Pointer &pointer, std::optional<Visible<Element>> &from) {
    if (!from) return;
    copy(pointer, from->data(), from->size() * sizeof(Element), sizeof(Element), [](const uint8_t *at) {
      Element element;
      std::memcpy(&element, at, sizeof element);
      if constexpr (std::is_floating_point_v<Element>) return !std::isnan(element);
      return element != Element(far_page);
    });
  }

private:
  std::deque<Fresh> arrays;
};

} // namespace

void RandomCall::run_on_fresh_memory() {
  FreshArrays arrays;
  calls::Args call = args;
  arrays.copy(call.q.data, q);
  arrays.copy(call.k.data, k);
  arrays.copy(call.v.data, v);
  arrays.copy(call.bias.data, bias);
  arrays.copy(call.prefix_k.data, prefix_k);
  arrays.copy(call.prefix_v.data, prefix_v);
  arrays.copy(call.k_scales.data, k_groups);
  arrays.copy(call.v_scales.data, problem.flags & calls::v_in_k ? k_groups : v_groups);
  arrays.copy(call.k_zeros.data, k_zeros);
  arrays.copy(call.v_zeros.data, problem.flags & calls::v_in_k ? k_zeros : v_zeros);
  arrays.copy(call.k_scales.data, k_scales);
  arrays.copy(call.v_scales.data, v_scales);
  arrays.copy(call.alibi_slopes, alibi);
  arrays.copy(call.sink_logits, sinks);
  arrays.copy(call.q_scale, q_scale);
  arrays.copy(call.k_scale, k_scale);
  arrays.copy(call.v_scale, v_scale);
  arrays.copy(call.o_scale, o_scale);
  arrays.copy(call.bias_scale, bias_scale);
  arrays.copy(call.q_starts, q_starts);
  arrays.copy(call.kv_starts, kv_starts);
  arrays.copy(call.q_lengths, q_lens);
  arrays.copy(call.kv_lengths, kv_lens);
  arrays.copy(call.page_table, table);
  arrays.copy(call.page_table, wide_table);
  arrays.copy(call.page_starts, page_starts);
  arrays.copy(call.diagonals, diagonals);
  arrays.copy(call.causal, causal);
  arrays.copy(call.spans, spans);
  arrays.copy(call.prefix_q_starts, prefix_q_starts);
  arrays.copy(call.prefix_lengths, prefix_lens);
  arrays.copy(call.prefix_page_table, prefix_table);
  arrays.copy(call.prefix_page_table, wide_prefix_table);
  arrays.copy(call.prefix_page_starts, prefix_page_starts);
  if (mask)
    arrays.copy(call.mask.data, mask->data(), mask->size(), 1,
                [&](const uint8_t *at) { return bool(is_of_mask[size_t(at - mask->data())]); });
  const auto always = [](const uint8_t *) { return true; };
  const size_t o_bytes = o->count() * o->element_bytes();
  const Fresh &o_copy = arrays.copy(call.o.data, o->data(), o_bytes, 1, always);
  const Fresh *lse_copy = nullptr;
  if (lse) lse_copy = &arrays.copy(call.lse.data, lse->data(), lse->size() * sizeof(float), 1, always);
  with_plan([&](const sluice_plan *plan, const sluice_launch &visible) {
    sluice_launch where = visible;
    const Fresh workspace(where.workspace_bytes);
    if (where.workspace_bytes != 0) where.workspace = workspace.data();
    run_on_device(call, [&](sluice_context *, const calls::Args *all, sluice_launch *, sluice_error *error) {
      return sluice_attention_run(plan, calls::ArgsValues(problem, *all), &where, error);
    });
  });
  o_copy.read(o->data(), o_bytes);
  if (lse_copy) lse_copy->read(reinterpret_cast<uint8_t *>(lse->data()), lse->size() * sizeof(float));
}

} // namespace sluice::test

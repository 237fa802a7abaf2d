//===- wild_call.cpp - a random call with arbitrary lengths, starts and tables --------------------------===//
#include "calls/values.h"
#include "features/random_call.h"
#include "features/wild_numbers.h"

namespace sluice::test {
namespace {

template <typename Element>
void add(std::vector<std::vector<uint8_t>> &to, const std::optional<Element> &of) {
  if (!of) return;
  const auto values = of->copy();
  const auto *first = reinterpret_cast<const uint8_t *>(values.data());
  to.emplace_back(first, first + values.size() * sizeof values[0]);
}

} // namespace

void RandomCall::make_wild(bool counted) {
  const auto overwrite = [&](auto &array, int64_t usual) {
    if (array && random.below(4) != 0) make_some_wild(random, *array, usual);
  };
  overwrite(q_starts, int64_t(q_tokens));
  overwrite(kv_starts, int64_t(kv_tokens));
  overwrite(q_lens, args.q_len);
  overwrite(kv_lens, args.kv_len);
  overwrite(table, int64_t(pages));
  overwrite(wide_table, int64_t(pages));
  overwrite(page_starts, int64_t(pages));
  overwrite(prefix_q_starts, int64_t(q_tokens));
  overwrite(prefix_lens, args.prefix_len);
  overwrite(prefix_table, int64_t(pages));
  overwrite(wide_prefix_table, int64_t(pages));
  overwrite(prefix_page_starts, int64_t(pages));
  if (counted) count_all();
}

void RandomCall::count_all() {
  if (q_starts) args.q_tokens = int64_t(q_tokens);
  if (kv_starts) args.kv_tokens = int64_t(kv_tokens);
  if (problem.mode == calls::paged) args.page_count = int64_t(pages);
}

void RandomCall::set_wild(std::string_view array, size_t place, int64_t value) {
  const auto set = [&](auto &numbers) { (*numbers)[place] = int32_t(value); };
  if (array == "q_starts") set(q_starts);
  if (array == "kv_starts") set(kv_starts);
  if (array == "q_lengths") set(q_lens);
  if (array == "kv_lengths") set(kv_lens);
  if (array == "page_table") set(table);
}

void RandomCall::clear_page_of(size_t entry) {
  const auto clear = [&](Elements &tensor) {
    const size_t elements = tensor.count() / pages;
    for (size_t n = 0; n < elements; ++n)
      tensor.set(size_t((*table)[entry]) * elements + n, 0);
  };
  clear(*k);
  clear(*v);
}

std::vector<std::vector<uint8_t>> RandomCall::inputs() const {
  std::vector<std::vector<uint8_t>> out;
  for (const auto *tensor : {&q, &k, &v, &bias, &prefix_k, &prefix_v})
    add(out, *tensor);
  for (const auto *array : {&alibi, &sinks, &q_scale, &k_scale, &v_scale})
    add(out, *array);
  for (const auto *array : {&q_starts, &kv_starts, &q_lens, &kv_lens, &table, &page_starts, &prefix_q_starts,
                            &prefix_lens, &prefix_table, &prefix_page_starts})
    add(out, *array);
  add(out, mask);
  add(out, wide_table);
  add(out, wide_prefix_table);
  return out;
}

std::string RandomCall::run_wild() {
  inputs_before = inputs();
  with_plan([&](const sluice_plan *plan, const sluice_launch &where) {
    sluice_error error;
    sluice_error_init(&error, sizeof error);
    const sluice_status status = sluice_attention_run(plan, calls::ArgsValues(problem, args), &where, &error);
    INFO(error.field << ": " << error.message);
    // The first launch of a run may have faulted before the next one.
    REQUIRE((status == SLUICE_OK || status == SLUICE_HIP));
    hip<int(void *)>("hipStreamSynchronize")(nullptr);
  });
  return take_reports_and_recover();
}

std::string RandomCall::find_stray_store() const {
  if (inputs() != inputs_before) return "an input";
  const std::vector<uint8_t> output = o->copy();
  const auto bytes = int64_t(o->element_bytes()), row = args.o.stride[1];
  const int64_t width = problem.q_heads * args.o.stride[2]; // with what follows the elements of a head
  const int64_t room = args.q_starts != nullptr ? int64_t(q_tokens) : args.o.stride[0] / row;
  const int64_t most = args.q_starts != nullptr ? int64_t(q_tokens) : args.q_len;
  for (int64_t place = 0; place < int64_t(output.size()); ++place) {
    const int64_t element = place / bytes;
    const bool is_own = element % row < width && element / row % room < most;
    if (!is_own && output[size_t(place)] != untouched_byte) return "o, at element " + std::to_string(element);
  }
  for (size_t n = 0; lse && n < lse->size(); ++n) {
    const bool is_own = int64_t(n) / problem.q_heads % room < most;
    if (!is_own && (*lse)[n] != untouched_lse) return "lse, at element " + std::to_string(n);
  }
  return {};
}

} // namespace sluice::test

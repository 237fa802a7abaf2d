//===- host_call.cpp - calls of the reference with exactly the memory that they describe ----------------===//

#include "host_call.h"

#include "calls/values.h"

#include <algorithm>
#include <array>
#include <vector>

namespace sluice::fuzz {

namespace {

constexpr int32_t most_heads = 8, most_dims = 48, most_rows = 24, most_batch = 6, most_pages = 12;
constexpr int64_t most_stride = 4096, most_elements = 1 << 14, most_work = 100000;

/// Memory of the call; each block ends where the call's own ends.
class Memory {
public:
  /// Uninitialised numbers would make two runs differ: they come from the fuzzer, repeated.
  template <typename Number> Number *make(FuzzedDataProvider &bytes, size_t count) {
    std::vector<uint8_t> pattern = bytes.ConsumeBytes<uint8_t>(8);
    if (pattern.empty()) pattern.push_back(0x3c);
    blocks.emplace_back(new uint8_t[std::max<size_t>(count, 1) * sizeof(Number)]);
    for (size_t i = 0; i < count * sizeof(Number); ++i)
      blocks.back()[i] = pattern[i % pattern.size()];
    return reinterpret_cast<Number *>(blocks.back().get());
  }

private:
  std::vector<std::unique_ptr<uint8_t[]>> blocks;
};

size_t bytes_of(uint32_t type) {
  return type == SLUICE_F32 ? 4 : type == SLUICE_F16 || type == SLUICE_BF16 ? 2 : 1;
}

/// The extent from the first element to the last; 0 if it is more than allowed.
size_t reach(const sluice_tensor &tensor, std::array<int64_t, 4> extents) {
  int64_t last = 0;
  for (size_t i = 0; i < 4; ++i) {
    if (tensor.stride[i] > most_stride) return 0;
    last += std::max<int64_t>(tensor.stride[i], 0) * (std::max<int64_t>(extents[i], 1) - 1);
  }
  return last < most_elements ? size_t(last) + 1 : 0;
}

bool is_likely(FuzzedDataProvider &bytes) {
  return bytes.ConsumeIntegralInRange(0, 31) != 0;
}

calls::Problem some_problem(FuzzedDataProvider &bytes) {
  calls::Problem problem;
  const auto pick = [&](int32_t least, int32_t most) { return bytes.ConsumeIntegralInRange(least, most); };
  problem.flags = bytes.ConsumeIntegralInRange<uint32_t>(0, 2 * calls::v_in_k - 1);
  problem.mode = uint32_t(pick(0, 2));
  problem.q_type = uint32_t(pick(1, 7));
  problem.k_type = uint32_t(pick(1, 7));
  problem.v_type = problem.flags & calls::v_in_k ? problem.k_type : uint32_t(pick(1, 7));
  problem.o_type = uint32_t(pick(1, 3));
  problem.kv_heads = pick(1, 2);
  problem.q_heads = problem.kv_heads * pick(1, 3);
  problem.head_dim_qk = pick(1, 16);
  problem.head_dim_v = pick(1, problem.head_dim_qk);
  problem.mask_alignment = uint32_t(pick(0, 1));
  if (problem.flags & calls::causal) problem.flags &= ~calls::window_right;
  if (problem.flags & calls::window_left) problem.window_left = pick(0, 9);
  if (problem.flags & calls::window_right) problem.window_right = pick(0, 9);
  if (problem.flags & calls::window_left) problem.sink_tokens = pick(0, 3);
  problem.soft_cap = float(pick(0, 3));
  problem.bias_type = uint32_t(pick(0, 3));
  problem.q_scale_kind = uint32_t(pick(0, 2));
  problem.k_scale_kind = uint32_t(pick(0, 2));
  problem.v_scale_kind = uint32_t(pick(0, 2));
  if (pick(0, 1)) problem.flags |= calls::lse_log2;
  if (problem.mode == calls::paged) {
    problem.page_size = pick(1, 5);
    problem.page_table_kind = uint32_t(pick(1, 2));
    problem.k_pack = problem.head_dim_qk % 2 == 0 ? 2 * pick(0, 1) : 0;
  } else {
    problem.flags &= ~uint32_t(calls::page_index_64 | calls::missing_pages);
  }
  return problem;
}

/// [a][b][c][d] in one piece, or with tokens and heads interleaved.
void set_strides(FuzzedDataProvider &bytes, sluice_tensor &tensor, int64_t tokens, int64_t heads,
                 int64_t dims, bool has_batch) {
  const bool heads_outside = bytes.ConsumeBool();
  const int64_t gap = bytes.ConsumeIntegralInRange(0, 3);
  tensor.stride[3] = 1;
  tensor.stride[2] = heads_outside ? tokens * (dims + gap) : dims + gap;
  tensor.stride[1] = heads_outside ? dims + gap : heads * (dims + gap);
  tensor.stride[0] = has_batch ? tokens * heads * (dims + gap) : 0;
}

/// Whether all extents are small enough to get memory. Extents that are not valid counts may stay: they are
/// refused.
bool is_small(const calls::Problem &problem, const calls::Args &args) {
  const int64_t q_len = args.q_len, kv_len = args.kv_len;
  if (problem.q_heads > most_heads || problem.kv_heads > most_heads || problem.head_dim_qk > most_dims ||
      problem.head_dim_v > most_dims || args.batch > most_batch || q_len > most_rows || kv_len > most_rows ||
      problem.page_size > most_rows || args.page_table_stride > most_stride ||
      args.alibi_batch_stride > most_stride || problem.k_pack > most_dims)
    return false;
  if (problem.q_type > SLUICE_E5M2 || problem.k_type > SLUICE_I8 || problem.v_type > SLUICE_I8) return true;
  return std::max<int64_t>(args.batch, 0) * std::max(problem.q_heads, 0) * std::max<int64_t>(q_len, 0) *
             std::max<int64_t>(kv_len, 0) *
             (std::max(problem.head_dim_qk, 0) + std::max(problem.head_dim_v, 0)) <=
         most_work;
}

class Call {
public:
  explicit Call(FuzzedDataProvider &given) : bytes(given), problem(some_problem(given)) {
    args.scale = calls::usual_scale(problem);
    args.batch = bytes.ConsumeIntegralInRange(1, 3);
    args.q_len = bytes.ConsumeIntegralInRange(1, 5);
    args.kv_len = bytes.ConsumeIntegralInRange(1, 9);
    args.scale = float(bytes.ConsumeIntegralInRange(0, 2));
    has_q_starts = problem.mode == calls::ragged || (problem.mode == calls::paged && bytes.ConsumeBool());
    const bool ragged = problem.mode == calls::ragged;
    set_strides(bytes, args.q, args.q_len, problem.q_heads, problem.head_dim_qk, !has_q_starts);
    set_strides(bytes, args.o, args.q_len, problem.q_heads, problem.head_dim_v, !has_q_starts);
    set_strides(bytes, args.lse, args.q_len, problem.q_heads, 1, !has_q_starts);
    const int64_t tokens = problem.mode == calls::paged ? problem.page_size : args.kv_len;
    set_strides(bytes, args.k, tokens, problem.kv_heads, problem.head_dim_qk, !ragged);
    if (problem.k_pack != 0) args.k.stride[3] = problem.k_pack;
    if (!(problem.flags & calls::v_in_k))
      set_strides(bytes, args.v, tokens, problem.kv_heads, problem.head_dim_v, !ragged);
    const int64_t plane = int64_t{args.q_len} * args.kv_len;
    if (problem.bias_type != 0)
      args.bias = {nullptr, {plane * problem.q_heads, plane, args.kv_len, bytes.ConsumeBool() ? 1 : 0}};
    if (problem.flags & calls::mask_bits) args.mask = {nullptr, {0, args.q_len * 2, 2, 1}};
    if (problem.mode == calls::paged && problem.page_table_kind == SLUICE_PAGE_TABLE_BLOCK)
      args.page_table_stride = bytes.ConsumeIntegralInRange(0, 9);
  }

  void try_it() {
    damage(bytes, problem);
    damage(bytes, args);
    if (!is_small(problem, args) || !give_memory()) return;
    const calls::ProblemValues given_problem(problem);
    const calls::ArgsValues given_args(problem, args);
    std::vector<uint8_t> results[2];
    for (std::vector<uint8_t> &result : results) {
      const Answer answer = ask("sluice_attention_reference", [&](sluice_error *error) {
        return sluice_attention_reference(given_problem, given_args, error);
      });
      if (answer.status != SLUICE_OK) return;
      const auto *o = static_cast<const uint8_t *>(args.o.data);
      result.assign(o, o + o_bytes);
    }
    require(results[0] == results[1], "sluice_attention_reference: other bits the second time");
  }

private:
  template <typename Number> const Number *factors(bool wanted, int32_t count) {
    if (wanted != is_likely(bytes)) return nullptr;
    auto *const numbers = memory.make<Number>(bytes, size_t(std::max(count, 1)));
    return numbers;
  }

  /// Lengths or starts, most of them legal; illegal ones are refused before anything is read through them.
  const int32_t *numbers(bool wanted, int32_t count, int32_t most, bool rising) {
    if (wanted != is_likely(bytes)) return nullptr;
    auto *const out = memory.make<int32_t>(bytes, size_t(std::max(count, 1)));
    int32_t last = 0;
    for (int32_t i = 0; i < std::max(count, 1); ++i) {
      last = (rising ? last : 0) + bytes.ConsumeIntegralInRange(is_likely(bytes) ? 0 : -2, std::max(most, 0));
      out[i] = last;
    }
    return out;
  }

  static int32_t largest(const int32_t *of, int32_t count) {
    return of == nullptr ? 0 : std::max(0, *std::max_element(of, of + std::max(count, 1)));
  }

  bool give(sluice_tensor &tensor, uint32_t type, std::array<int64_t, 4> extents, int64_t run = 1) {
    const size_t elements = reach(tensor, extents);
    if (elements == 0) return false;
    // The allocator guarantees alignment.
    tensor.data = memory.make<uint8_t>(bytes, (elements + size_t(run) - 1) * bytes_of(type));
    return true;
  }

  bool give_memory() {
    args.v.data = args.lse.data = args.bias.data = args.mask.data = nullptr;
    args.page_table = nullptr;
    const int32_t batch = std::max(args.batch, 1);
    const int32_t q_len = args.q_len, kv_len = args.kv_len;
    const bool ragged = problem.mode == calls::ragged, paged = problem.mode == calls::paged;
    args.q_starts = numbers(has_q_starts, batch + 1, q_len, true);
    args.kv_starts = numbers(ragged, batch + 1, kv_len, true);
    args.q_lengths = numbers(bytes.ConsumeBool(), batch, q_len, false);
    args.kv_lengths = numbers(paged || bytes.ConsumeBool(), batch, kv_len, false);
    const bool csr = problem.page_table_kind == SLUICE_PAGE_TABLE_CSR;
    args.page_starts = numbers(paged && csr, batch + 1, 4, true);

    const int64_t rows = args.q_starts ? largest(args.q_starts, batch + 1) : q_len;
    const int64_t keys = args.kv_starts ? largest(args.kv_starts, batch + 1) : kv_len;
    const int64_t outer = args.q_starts ? 1 : batch, kv_outer = paged            ? most_pages
                                                                : args.kv_starts ? 1
                                                                                 : batch;
    const int64_t tokens = paged ? std::max(problem.page_size, 1) : keys;
    const int64_t pack = std::max(problem.k_pack, 1);
    const int64_t packs = problem.k_pack > 0 ? problem.head_dim_qk / pack : problem.head_dim_qk;
    bool given = give(args.q, problem.q_type, {outer, rows, problem.q_heads, problem.head_dim_qk}) &&
                 give(args.k, problem.k_type, {kv_outer, tokens, problem.kv_heads, packs}, pack) &&
                 give(args.o, problem.o_type, {outer, rows, problem.q_heads, problem.head_dim_v});
    o_bytes = reach(args.o, {outer, rows, problem.q_heads, problem.head_dim_v}) * bytes_of(problem.o_type);
    if (bool(problem.flags & calls::v_in_k) != is_likely(bytes))
      given = given && give(args.v, problem.v_type, {kv_outer, tokens, problem.kv_heads, problem.head_dim_v});
    if (bool(problem.flags & calls::write_lse) == is_likely(bytes))
      given = given && give(args.lse, SLUICE_F32, {outer, rows, problem.q_heads, 1});
    if ((problem.bias_type != 0) == is_likely(bytes))
      given = given && give(args.bias, problem.bias_type, {batch, problem.q_heads, q_len, kv_len});
    if (bool(problem.flags & calls::mask_bits) == is_likely(bytes))
      given =
          given && give(args.mask, SLUICE_E5M2, {batch, problem.q_heads, q_len, (int64_t{kv_len} + 7) / 8});
    if (paged == is_likely(bytes)) give_page_table(batch, kv_len, csr);
    const int64_t slopes =
        problem.q_heads + std::max<int64_t>(args.alibi_batch_stride, 0) * std::max(args.batch - 1, 0);
    args.alibi_slopes = factors<float>(problem.flags & calls::alibi, int32_t(slopes));
    args.sink_logits = factors<float>(problem.flags & calls::sinks, problem.q_heads);
    const auto scales = [&](uint32_t kind, int32_t heads) {
      return factors<float>(kind != SLUICE_SCALE_NONE, kind == SLUICE_SCALE_PER_HEAD ? heads : 1);
    };
    args.q_scale = scales(problem.q_scale_kind, problem.q_heads);
    args.k_scale = scales(problem.k_scale_kind, problem.kv_heads);
    args.v_scale = scales(problem.v_scale_kind, problem.kv_heads);
    return given;
  }

  void give_page_table(int32_t batch, int32_t kv_len, bool csr) {
    const int64_t page_size = std::max(problem.page_size, 1);
    const int64_t pages = (std::max<int64_t>(kv_len, 1) + page_size - 1) / page_size;
    const int64_t stride = std::max<int64_t>(args.page_table_stride, 0);
    const size_t count =
        csr ? size_t(largest(args.page_starts, batch + 1)) : size_t((batch - 1) * stride + pages);
    const bool wide = problem.flags & calls::page_index_64;
    void *const table =
        wide ? static_cast<void *>(memory.make<int64_t>(bytes, count)) : memory.make<int32_t>(bytes, count);
    for (size_t i = 0; i < count; ++i) {
      const int32_t page = bytes.ConsumeIntegralInRange(is_likely(bytes) ? 0 : -2, most_pages - 1);
      if (wide)
        static_cast<int64_t *>(table)[i] = page;
      else
        static_cast<int32_t *>(table)[i] = page;
    }
    args.page_table = table;
  }

  FuzzedDataProvider &bytes;
  Memory memory;
  calls::Problem problem;
  calls::Args args;
  size_t o_bytes = 0;
  bool has_q_starts = false;
};

} // namespace

void try_reference(FuzzedDataProvider &bytes) {
  Call(bytes).try_it();
}

} // namespace sluice::fuzz

//===- random_call.cpp - a random call of everything the header knows -----------------------------------===//
#include "features/random_call.h"

#include "calls/values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace sluice::test {

using namespace conformance;

namespace {

const NumberFormat &format_of(uint32_t type) {
  return type == SLUICE_F16 ? f16_format : bf16_format;
}

/// Of 32 elements in a block; 0 for other types.
size_t block_bytes(uint32_t type) {
  return type == SLUICE_Q8_0 ? 34 : type == SLUICE_Q4_0 ? 18 : type == SLUICE_U4 ? 16 : 0;
}

size_t bytes_of(uint32_t type, size_t count) {
  if (Elements::is_in_blocks(type)) return count / 32 * block_bytes(type);
  return count * (type == SLUICE_F32 ? 4 : type == SLUICE_F16 || type == SLUICE_BF16 ? 2 : 1);
}

} // namespace

Elements::Elements(uint32_t element_type, size_t count)
    : type(element_type), memory(bytes_of(element_type, count)) {}

bool Elements::knows(uint32_t type) {
  return (type >= SLUICE_F16 && type <= SLUICE_E4M3FNUZ) || type == SLUICE_E5M2FNUZ ||
         (type >= SLUICE_I8 && type <= SLUICE_Q4_0);
}

bool Elements::is_in_blocks(uint32_t type) {
  return block_bytes(type) != 0;
}

size_t Elements::element_bytes() const {
  return bytes_of(type, 1);
}

void Elements::set(size_t place, double value) {
  uint8_t *const at = memory.data() + place * element_bytes();
  if (type == SLUICE_F32) {
    const auto single = float(value);
    std::memcpy(at, &single, sizeof single);
  } else if (type == SLUICE_E4M3FNUZ) {
    *at = encode_fp8(value);
  } else if (type == SLUICE_E5M2FNUZ) {
    *at = encode_fnuz<2>(value);
  } else if (type == SLUICE_I8) {
    *at = uint8_t(std::isnan(value) ? -128 : encode_i8(value));
  } else {
    const uint16_t bits = encode(format_of(type), value);
    std::memcpy(at, &bits, sizeof bits);
  }
}

double Elements::number(uint32_t type, const uint8_t *bytes, size_t place) {
  if (type == SLUICE_E4M3FNUZ) return decode_fp8(bytes[place]);
  if (type == SLUICE_F32) {
    float single;
    std::memcpy(&single, bytes + place * sizeof single, sizeof single);
    return single;
  }
  uint16_t bits;
  std::memcpy(&bits, bytes + place * sizeof bits, sizeof bits);
  return decode(format_of(type), bits);
}

void Elements::draw_block(size_t block, Numbers &random) {
  uint8_t *at = memory.data() + block * block_bytes(type), *const end = at + block_bytes(type);
  if (type != SLUICE_U4) {
    const uint16_t scale = encode(f16_format, random.between(0.5, 1) / (type == SLUICE_Q8_0 ? 128 : 8));
    std::memcpy(at, &scale, sizeof scale);
    at += sizeof scale;
  }
  for (; at < end; ++at)
    *at = uint8_t(random.next());
}

void Elements::fill_with_nan() {
  has_fill = true;
  if (is_in_blocks(type)) return fill_with_bytes(0xff);
  for (size_t place = 0; place < count(); ++place)
    set(place, std::numeric_limits<double>::quiet_NaN());
}

void Elements::fill_with_bytes(uint8_t byte) {
  std::fill_n(memory.data(), memory.size(), byte);
}

std::vector<uint8_t> Elements::fill() const {
  if (!has_fill) return {};
  if (is_in_blocks(type)) return std::vector<uint8_t>(block_bytes(type), 0xff);
  Elements one(type, 1);
  one.fill_with_nan();
  return one.copy();
}

/// Elements of a row in memory.
static int64_t row_elements(int32_t head_dim) {
  return (int64_t{head_dim} + 7) / 8 * 8;
}

RandomCall::RandomCall(uint64_t seed, const Largest &largest) : random(seed) {
  const auto one_in = [&](uint32_t n) { return random.below(n) == 0; };
  problem.mode = random.below(3);
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = one_in(2) ? SLUICE_F16 : SLUICE_BF16;
  problem.kv_heads = 1 + int32_t(random.below(2));
  constexpr int32_t groups[] = {1, 2, 3, 5, 8, 20};
  problem.q_heads = problem.kv_heads * groups[random.below(6)];
  constexpr int32_t dims[][2] = {{64, 64}, {64, 64},   {128, 128}, {128, 128}, {32, 32},   {72, 72}, {80, 80},
                                 {96, 96}, {112, 112}, {192, 128}, {256, 256}, {512, 512}, {136, 40}};
  const auto &dim = dims[random.below(std::size(dims))];
  problem.head_dim_qk = dim[0];
  problem.head_dim_v = dim[1];
  if (one_in(2)) problem.flags |= calls::write_lse;
  if (random.below(2)) problem.flags |= calls::lse_log2;
  problem.mask_alignment = random.below(2);
  switch (random.below(4)) {
  case 0:
    break;
  case 1:
    problem.flags |= calls::causal;
    break;
  case 2:
    problem.flags |= calls::causal | calls::window_left;
    break;
  case 3:
    problem.flags |= calls::window_left | calls::window_right;
    problem.window_right = int32_t(random.below(90));
    break;
  }
  if (problem.flags & calls::window_left) {
    problem.window_left = int32_t(random.below(120));
    if (one_in(2)) problem.sink_tokens = int32_t(random.below(80));
  }
  if (one_in(4)) problem.soft_cap = 3;
  if (one_in(4)) problem.bias_type = 1 + random.below(3);
  if (one_in(4)) problem.flags |= calls::alibi;
  if (one_in(4)) problem.flags |= calls::mask_bits;
  if (one_in(3)) problem.flags |= calls::sinks;
  if (one_in(3)) problem.q_scale_kind = 1 + random.below(2);
  if (one_in(3)) problem.k_scale_kind = 1 + random.below(2);
  if (one_in(3)) problem.v_scale_kind = 1 + random.below(2);
  if (problem.mode == calls::paged) {
    constexpr int32_t sizes[] = {1, 3, 16, 64, 100};
    problem.page_size = sizes[random.below(5)];
    problem.page_table_kind = 1 + random.below(2);
    if (one_in(2)) problem.flags |= calls::page_index_64;
    if (one_in(3)) problem.flags |= calls::missing_pages;
    if (one_in(3)) problem.k_pack = problem.head_dim_qk % 16 != 0 || one_in(2) ? 8 : 16;
  }
  if (one_in(3)) problem.k_type = problem.v_type = SLUICE_E4M3FNUZ;
  if (one_in(8)) problem.flags |= calls::v_in_k;
  if (problem.k_type == SLUICE_E4M3FNUZ && one_in(2)) problem.q_type = SLUICE_E4M3FNUZ;
  if (problem.k_pack == 0 && one_in(4)) {
    problem.flags |= calls::padded_rows;
    problem.head_dim_qk -= int32_t(random.below(8));
    problem.head_dim_v = std::min(problem.head_dim_v - int32_t(random.below(8)), problem.head_dim_qk);
  }
  // P is rounded as for 16 bits; the type of Q says which.
  if (one_in(4)) problem.o_type = SLUICE_F32;
  draw_lengths(largest);
  if (one_in(4)) share_prefixes();
  const bool has_columns = !(problem.flags & calls::padded_rows) && problem.mode != calls::ragged &&
                           !(problem.flags & calls::v_in_k) && problem.q_type != SLUICE_E4M3FNUZ &&
                           problem.page_size % 8 == 0 &&
                           std::max(problem.head_dim_qk, problem.head_dim_v) <= 128;
  if (has_columns && one_in(2))
    problem.v_pack = problem.mode == calls::paged && one_in(2) ? 8 : int32_t(SLUICE_PACK_ALL);
}

void RandomCall::share_prefixes() {
  problem.flags |= calls::prefixes;
  problem.flags &= ~uint32_t(calls::window_left | calls::window_right | calls::alibi | calls::mask_bits |
                             calls::missing_pages);
  problem.window_left = problem.window_right = problem.sink_tokens = 0;
  problem.bias_type = 0;
  if (problem.flags & calls::causal) problem.mask_alignment = SLUICE_BOTTOM_RIGHT;
  problem.max_prefixes = 4;
  problem.max_prefix_len = 200;
  problem.max_q_tokens = 1; // prepare() counts them
}

RandomCall::RandomCall(uint64_t seed, const calls::Problem &given, const Largest &largest)
    : problem(given), random(seed) {
  const auto within = [](uint32_t wanted, int32_t bound) {
    return bound == 0 ? wanted : std::min(wanted, uint32_t(bound));
  };
  draw_lengths({within(largest.batch, problem.max_batch), within(largest.q_len, problem.max_q_len),
                within(largest.kv_len, problem.max_kv_len)});
}

void RandomCall::draw_lengths(const Largest &largest) {
  const auto batch = int32_t(1 + random.below(largest.batch));
  const bool decode = random.below(2) == 0;
  q_starts_given = problem.mode == calls::ragged || (problem.mode == calls::paged && random.below(2));
  q_lengths_given = random.below(3) == 0;
  kv_lengths_given = problem.mode == calls::paged || random.below(3) == 0;
  const bool own_rows = q_starts_given || q_lengths_given;
  const bool own_keys = problem.mode != calls::dense || kv_lengths_given;
  const auto draw = [&](bool is_short) {
    return int32_t(random.below(is_short ? std::min(largest.q_len + 1, 4u) : largest.q_len + 1));
  };
  const auto draw_keys = [&] {
    return int32_t(random.below(random.below(2) ? std::min(largest.kv_len + 1, 40u) : largest.kv_len + 1));
  };
  for (int32_t b = 0; b < batch; ++b) {
    q_lengths.push_back(b == 0 || own_rows ? draw(decode || (own_rows && random.below(2))) : q_lengths[0]);
    kv_lengths.push_back(b == 0 || own_keys ? draw_keys() : kv_lengths[0]);
  }
  if (!own_rows) std::fill(q_lengths.begin(), q_lengths.end(), std::max(q_lengths[0], 1));
  if (!own_keys) std::fill(kv_lengths.begin(), kv_lengths.end(), std::max(kv_lengths[0], 1));
}

int32_t RandomCall::longest(const std::vector<int32_t> &lengths) const {
  const int32_t least = edges.few_rows ? 0 : 1;
  return std::accumulate(lengths.begin(), lengths.end(), least,
                         [](int32_t a, int32_t b) { return std::max(a, b); });
}

void RandomCall::prepare() {
  args.scale = calls::usual_scale(problem);
  args.batch = int32_t(q_lengths.size());
  args.q_len = longest(q_lengths);
  args.kv_len = longest(kv_lengths);
  if (random.below(2)) args.scale = edges.few_rows && random.below(2) ? 0 : double{0.2f};
  draw_rows();
  if (problem.flags & calls::prefixes) draw_prefix_rows();
  draw_keys();
  draw_scores();
  if (edges.far_scales) draw_far_scales();
  if (edges.odd_strides) bend_strides();
}

/// Which rows see which prefix, and how many keys it has. A run counts rows up to the bound.
void RandomCall::draw_prefix_rows() {
  problem.max_q_tokens = std::max<int64_t>(problem.max_q_tokens, int64_t(q_tokens));
  const auto rows = q_starts_given ? uint32_t(q_tokens) : uint32_t(args.batch * args.q_len);
  args.prefix_count = edges.few_rows ? int32_t(random.below(3))
                                     : 1 + int32_t(random.below(uint32_t(std::min(problem.max_prefixes, 4))));
  const int32_t most = std::min(problem.max_prefix_len, edges.few_rows ? 2 : 200);
  std::vector<int32_t> starts;
  for (int32_t p = 0; p <= args.prefix_count; ++p)
    starts.push_back(int32_t(random.below(rows + 1)));
  std::sort(starts.begin(), starts.end());
  for (int32_t p = 0; p < args.prefix_count; ++p)
    prefix_lengths.push_back(int32_t(random.below(random.below(3) ? uint32_t(most) + 1 : 2)));
  args.prefix_len = longest(prefix_lengths);
  args.prefix_q_starts = prefix_q_starts.emplace(starts).data();
  args.prefix_lengths = prefix_lens.emplace(prefix_lengths).data();
}

/// Q, O and LSE: with starts, sequences with gaps between them; without, gaps after each of them.
void RandomCall::draw_rows() {
  const int32_t batch = args.batch, heads = problem.q_heads;
  int32_t room = args.q_len + int32_t(random.below(3));
  if (problem.flags & calls::prefixes) room = args.q_len; // rows are found by their number
  std::vector<int32_t> starts = {int32_t(random.below(3))};
  for (int32_t length : q_lengths)
    starts.push_back(starts.back() + length + (q_lengths_given ? int32_t(random.below(3)) : 0));
  const size_t tokens = q_starts_given ? size_t(starts.back()) + 2 : size_t(room) * size_t(batch);
  q_tokens = tokens;
  const int64_t head_qk = row_elements(problem.head_dim_qk), head_v = row_elements(problem.head_dim_v);
  const int64_t row_qk = head_qk * heads + 8, row_v = head_v * heads + 16;
  q.emplace(problem.q_type, tokens * size_t(row_qk)).fill_with_nan();
  o.emplace(problem.o_type, tokens * size_t(row_v)).fill_with_bytes(untouched_byte);
  for (int32_t b = 0; b < batch; ++b)
    for (int32_t i = 0; i < q_lengths[size_t(b)]; ++i) {
      const size_t row =
          q_starts_given ? size_t(starts[size_t(b)] + i) : size_t(b) * size_t(room) + size_t(i);
      const double spread = random.below(8) == 0 ? 0 : 2; // with scores that are exactly 0
      for (int64_t e = 0; e < head_qk * heads; ++e)
        if (e % head_qk < problem.head_dim_qk) q->set(row * size_t(row_qk) + size_t(e), number(spread));
    }
  o_row = row_v;
  args.q = {q->data(), {q_starts_given ? 0 : room * row_qk, row_qk, head_qk, 1}};
  args.o = {o->data(), {q_starts_given ? 0 : room * row_v, row_v, head_v, 1}};
  if (problem.flags & calls::write_lse) {
    lse.emplace(tokens * size_t(heads), untouched_lse);
    args.lse = {lse->data(), {q_starts_given ? 0 : int64_t{room} * heads, heads, 1, 0}};
  }
  if (q_starts_given) args.q_starts = q_starts.emplace(starts).data();
  if (q_lengths_given) args.q_lengths = q_lens.emplace(q_lengths).data();
}

/// K and V, in the same way, or in pages.
void RandomCall::draw_keys() {
  const bool paged = problem.mode == calls::paged, ragged = problem.mode == calls::ragged;
  const int32_t batch = args.batch, heads = problem.kv_heads, page_size = std::max(problem.page_size, 1);
  const int32_t room = args.kv_len + int32_t(random.below(3));
  std::vector<int32_t> starts = {int32_t(random.below(3))};
  for (int32_t length : kv_lengths)
    starts.push_back(starts.back() + length + (kv_lengths_given ? int32_t(random.below(3)) : 0));
  // Pages in random order, some of them unused; tables continue after the needed entries.
  std::vector<int32_t> pages_of(kv_lengths.size());
  int32_t page_count = 2, stride = 1;
  for (size_t b = 0; b < pages_of.size(); ++b) {
    pages_of[b] = (kv_lengths[b] + page_size - 1) / page_size;
    page_count += pages_of[b];
    stride = std::max(stride, pages_of[b] + 1);
  }
  const auto prefix_pages = [&](int32_t p) {
    return (prefix_lengths[size_t(p)] + page_size - 1) / page_size;
  };
  const int32_t prefix_stride = (args.prefix_len + page_size - 1) / page_size;
  for (int32_t p = 0; paged && p < args.prefix_count; ++p)
    page_count += prefix_pages(p);
  pages = size_t(page_count);
  std::vector<int32_t> order(pages);
  std::iota(order.begin(), order.end(), 0);
  for (size_t n = order.size(); n > 1; --n)
    std::swap(order[n - 1], order[random.below(uint32_t(n))]);
  std::vector<int32_t> block(size_t(stride) * size_t(batch), far_page), csr, csr_starts = { 0 };
  size_t next = 0;
  for (size_t b = 0; b < pages_of.size(); ++b) {
    for (int32_t n = 0; n < pages_of[b]; ++n) {
      const bool is_missing = problem.flags & calls::missing_pages && random.below(4) == 0;
      const int32_t number = is_missing ? -1 - int32_t(random.below(3)) : order[next];
      ++next;
      block[b * size_t(stride) + size_t(n)] = number;
      csr.push_back(number);
    }
    if (random.below(2)) csr.push_back(far_page);
    csr_starts.push_back(int32_t(csr.size()));
  }
  csr.push_back(far_page);
  std::vector<int32_t> prefix_block(size_t(prefix_stride) * size_t(args.prefix_count), far_page), prefix_csr,
      prefix_csr_starts = {
        0
      };
  for (int32_t p = 0; paged && p < args.prefix_count; ++p) {
    for (int32_t n = 0; n < prefix_pages(p); ++n) {
      prefix_block[size_t(p) * size_t(prefix_stride) + size_t(n)] = order[next];
      prefix_csr.push_back(order[next++]);
    }
    prefix_csr_starts.push_back(int32_t(prefix_csr.size()));
  }
  prefix_csr.push_back(far_page);

  const auto page_of = [&](int32_t b, int32_t key) {
    return block[size_t(b) * size_t(stride) + size_t(key / page_size)];
  };
  const RowOf row_of = [&](int32_t b, int32_t key) {
    if (paged) return size_t(page_of(b, key)) * size_t(page_size) + size_t(key % page_size);
    return ragged ? size_t(starts[size_t(b)] + key) : size_t(b) * size_t(room) + size_t(key);
  };
  const size_t rows = paged    ? pages * size_t(page_size)
                      : ragged ? size_t(starts.back()) + 1
                               : size_t(room) * size_t(batch);
  kv_tokens = rows;
  kv_room = paged ? page_size : ragged ? 0 : room;
  std::vector<size_t> used; // of the rows
  for (int32_t b = 0; b < batch; ++b)
    for (int32_t key = 0; key < kv_lengths[size_t(b)]; ++key)
      if (!paged || page_of(b, key) >= 0) used.push_back(row_of(b, key));
  for (int32_t p = 0; paged && p < args.prefix_count; ++p)
    for (int32_t key = 0; key < prefix_lengths[size_t(p)]; ++key) {
      const int32_t page = prefix_block[size_t(p) * size_t(prefix_stride) + size_t(key / page_size)];
      used.push_back(size_t(page) * size_t(page_size) + size_t(key % page_size));
    }
  is_used.assign(rows, false);
  for (const size_t row : used)
    is_used[row] = true;
  // After the elements of a head, those of K are finite.
  const auto fill_row = [&](Elements &tensor, uint32_t type, int64_t first, int32_t head_dim) {
    const int64_t head = row_elements(head_dim), elements = head * heads;
    const bool is_k = &tensor == &*k || (prefix_k && &tensor == &*prefix_k);
    if (Elements::is_in_blocks(type))
      for (int64_t e = 0; e < elements; e += 32)
        tensor.draw_block(size_t(first + e) / 32, random);
    else
      for (int64_t e = 0; e < elements; ++e)
        if (is_k || e % head < head_dim) tensor.set(size_t(first + e), number(1));
  };
  const auto fill = [&](std::optional<Elements> &tensor, uint32_t type, int32_t head_dim,
                        int32_t pack) -> sluice_tensor {
    if (pack != 0) return fill_packed(tensor, rows, used);
    if (&tensor == &v && problem.v_pack != 0)
      return fill_columns(tensor, rows, paged ? page_size : room, used);
    const bool is_in_blocks = Elements::is_in_blocks(type);
    const int64_t head = row_elements(head_dim), row = head * heads + (is_in_blocks ? 32 : 16);
    tensor.emplace(type, rows * size_t(row)).fill_with_nan();
    for (const size_t one : used)
      fill_row(*tensor, type, int64_t(one) * row, head_dim);
    return {tensor->data(), {paged ? page_size * row : ragged ? 0 : room * row, row, head, 1}};
  };
  args.k = fill(k, problem.k_type, problem.head_dim_qk, problem.k_pack);
  if (!(problem.flags & calls::v_in_k)) args.v = fill(v, problem.v_type, problem.head_dim_v, 0);
  if (ragged) args.kv_starts = kv_starts.emplace(starts).data();
  if (kv_lengths_given) args.kv_lengths = kv_lens.emplace(kv_lengths).data();
  if (!paged) {
    const auto fill_prefixes = [&](std::optional<Elements> &tensor, uint32_t type, int32_t head_dim) {
      const int64_t head = row_elements(head_dim),
                    row = head * heads + (Elements::is_in_blocks(type) ? 32 : 8),
                    prefix_elements = row * args.prefix_len;
      tensor.emplace(type, size_t(prefix_elements) * size_t(args.prefix_count)).fill_with_nan();
      for (int32_t p = 0; p < args.prefix_count; ++p)
        for (int32_t key = 0; key < prefix_lengths[size_t(p)]; ++key)
          fill_row(*tensor, type, p * prefix_elements + key * row, head_dim);
      return sluice_tensor{tensor->data(), {prefix_elements, row, head, 1}};
    };
    if (args.prefix_count == 0) return;
    args.prefix_k = fill_prefixes(prefix_k, problem.k_type, problem.head_dim_qk);
    if (problem.flags & calls::v_in_k) return;
    if (problem.v_pack == 0) {
      args.prefix_v = fill_prefixes(prefix_v, problem.v_type, problem.head_dim_v);
      return;
    }
    std::vector<size_t> prefix_keys;
    for (int32_t p = 0; p < args.prefix_count; ++p)
      for (int32_t key = 0; key < prefix_lengths[size_t(p)]; ++key)
        prefix_keys.push_back(size_t(p) * size_t(args.prefix_len) + size_t(key));
    const size_t all = size_t(args.prefix_count) * size_t(args.prefix_len);
    args.prefix_v = fill_columns(prefix_v, all, args.prefix_len, prefix_keys);
    return;
  }
  const bool is_csr = problem.page_table_kind == SLUICE_PAGE_TABLE_CSR;
  const auto put = [&](const std::vector<int32_t> &entries, auto &narrow, auto &wide) -> const void * {
    if (problem.flags & calls::page_index_64)
      return wide.emplace(std::vector<int64_t>(entries.begin(), entries.end())).data();
    return narrow.emplace(entries).data();
  };
  args.page_table = put(is_csr ? csr : block, table, wide_table);
  if (is_csr)
    args.page_starts = page_starts.emplace(csr_starts).data();
  else
    args.page_table_stride = stride;
  if (args.prefix_count == 0) return;
  args.prefix_page_table = put(is_csr ? prefix_csr : prefix_block, prefix_table, wide_prefix_table);
  if (is_csr)
    args.prefix_page_starts = prefix_page_starts.emplace(prefix_csr_starts).data();
  else
    args.prefix_page_table_stride = prefix_stride;
}

/// [page][head][pack][row in page][element in pack]
sluice_tensor RandomCall::fill_packed(std::optional<Elements> &tensor, size_t rows,
                                      const std::vector<size_t> &used) {
  const int64_t pack = problem.k_pack, pack_stride = pack * problem.page_size;
  const int64_t head_stride = pack_stride * (problem.head_dim_qk / pack);
  const int64_t page_stride = head_stride * problem.kv_heads;
  tensor.emplace(problem.k_type, rows / size_t(problem.page_size) * size_t(page_stride)).fill_with_nan();
  for (const size_t one : used) {
    const auto row = int64_t(one);
    for (int32_t head = 0; head < problem.kv_heads; ++head)
      for (int32_t e = 0; e < problem.head_dim_qk; ++e)
        tensor->set(size_t(row / problem.page_size * page_stride + row % problem.page_size * pack +
                           head * head_stride + e / pack * pack_stride + e % pack),
                    number(1));
  }
  return {tensor->data(), {page_stride, pack, head_stride, pack_stride}};
}

/// [page or sequence][head][pack][column][token in pack], with room between columns. `room`: rows of a page
/// or sequence, which are whole units of 8 in memory.
sluice_tensor RandomCall::fill_columns(std::optional<Elements> &tensor, size_t rows, int64_t room,
                                       const std::vector<size_t> &used) {
  room = std::max<int64_t>(room, 1);
  const bool is_one_pack = problem.v_pack == SLUICE_PACK_ALL;
  const int64_t whole = (room + 7) / 8 * 8, pack = is_one_pack ? whole : problem.v_pack;
  const int64_t column = pack + 8, pack_stride = column * problem.head_dim_v;
  const int64_t head = pack_stride * (whole / pack), outer = head * problem.kv_heads;
  tensor.emplace(problem.v_type, rows / size_t(room) * size_t(outer)).fill_with_nan();
  for (const size_t one : used) {
    const int64_t number_of = int64_t(one) / room, token = int64_t(one) % room;
    for (int32_t h = 0; h < problem.kv_heads; ++h)
      for (int32_t e = 0; e < problem.head_dim_v; ++e)
        tensor->set(
            size_t(number_of * outer + h * head + token / pack * pack_stride + e * column + token % pack),
            number(1));
  }
  return {tensor->data(), {outer, is_one_pack ? 1 : pack_stride, head, column}};
}

void RandomCall::draw_scores() {
  const auto floats = [&](std::optional<Visible<float>> &array, size_t count, double low, double high) {
    std::vector<float> values(count);
    for (float &value : values)
      value = float(random.between(low, high));
    return array.emplace(values).data();
  };
  const auto scale = [&](std::optional<Visible<float>> &array, uint32_t kind,
                         int32_t heads) -> const float * {
    if (kind == SLUICE_SCALE_NONE || kind > SLUICE_SCALE_PER_HEAD) return nullptr;
    return floats(array, kind == SLUICE_SCALE_PER_HEAD ? size_t(heads) : 1, 0.5, 1.5);
  };
  args.q_scale = scale(q_scale, problem.q_scale_kind, problem.q_heads);
  args.k_scale = scale(k_scale, problem.k_scale_kind, problem.kv_heads);
  const bool in_k = problem.flags & calls::v_in_k;
  args.v_scale = in_k ? args.k_scale : scale(v_scale, problem.v_scale_kind, problem.kv_heads);
  args.o_scale = scale(o_scale, problem.o_scale_kind, problem.q_heads);
  args.k_scales = draw_key_scales(k_scales, problem.k_scale_kind);
  args.v_scales = in_k ? args.k_scales : draw_key_scales(v_scales, problem.v_scale_kind);
  if (problem.k_scale_kind == SLUICE_SCALE_PER_GROUP) {
    const bool has_zeros = problem.flags & calls::zero_points;
    args.k_scales = draw_groups(k_groups, problem.head_dim_qk, 0.05, 0.1);
    if (has_zeros) args.k_zeros = draw_groups(k_zeros, problem.head_dim_qk, 4, 11);
    args.v_scales = in_k ? args.k_scales : draw_groups(v_groups, problem.head_dim_v, 0.05, 0.1);
    if (has_zeros) args.v_zeros = in_k ? args.k_zeros : draw_groups(v_zeros, problem.head_dim_v, 4, 11);
  }
  draw_visibility();
  if (problem.flags & calls::bias_scale)
    args.bias_scale = floats(bias_scale, size_t(problem.q_heads), 0.5, 1.5);
  if (problem.flags & calls::alibi) args.alibi_slopes = floats(alibi, size_t(problem.q_heads), 0, 0.1);
  if (problem.flags & calls::sinks) args.sink_logits = floats(sinks, size_t(problem.q_heads), -2, 2);
  if (problem.bias_type != 0) draw_bias();
  if (problem.flags & calls::mask_bits) draw_mask();
}

/// Rows and keys that a sequence does not have are NaN.
void RandomCall::draw_bias() {
  const int64_t rows = args.q_len, heads = random.below(2) != 0 ? problem.q_heads : 1,
                matrix = rows * args.kv_len;
  bias.emplace(problem.bias_type, size_t(args.batch * heads * matrix)).fill_with_nan();
  for (int64_t n = 0; n < int64_t(bias->count()); ++n) {
    const auto b = size_t(n / (heads * matrix));
    const double value = number(1);
    if (n % matrix / args.kv_len < q_lengths[b] && n % args.kv_len < kv_lengths[b])
      bias->set(size_t(n), value);
  }
  args.bias = {bias->data(), {heads * matrix, heads == 1 ? 0 : matrix, args.kv_len, 1}};
}

void RandomCall::draw_mask() {
  const bool covers_new_rows = problem.flags & calls::mask_bits_of_new;
  // The bits of new rows are as many as the rows.
  const int64_t rows = args.q_len, bytes = (std::max(args.kv_len, args.q_len) + 7) / 8;
  std::vector<uint8_t> bits(size_t(args.batch * rows * bytes));
  is_of_mask.assign(bits.size(), false);
  for (size_t n = 0; n < bits.size(); ++n) {
    const size_t b = n / size_t(rows * bytes);
    const int64_t row = int64_t(n) / bytes % rows, first = int64_t(n) % bytes * 8;
    bits[n] = uint8_t(random.next() | random.next());
    is_of_mask[n] = row < q_lengths[b] && first < (covers_new_rows ? q_lengths[b] : kv_lengths[b]);
  }
  args.mask = {mask.emplace(bits).data(), {rows * bytes, 0, bytes, 1}};
}

/// Per token or page and head; NaN for rows, and pages, of no sequence.
sluice_tensor RandomCall::draw_key_scales(std::optional<Visible<float>> &array, uint32_t kind) {
  if (kind != SLUICE_SCALE_PER_TOKEN && kind != SLUICE_SCALE_PER_PAGE) return {};
  const bool by_page = kind == SLUICE_SCALE_PER_PAGE;
  const int64_t heads = problem.kv_heads;
  std::vector<float> values((by_page ? pages : kv_tokens) * size_t(heads));
  for (size_t n = 0; n < values.size(); ++n) {
    const size_t first = n / size_t(heads) * (by_page ? size_t(kv_room) : 1),
                 count = by_page ? size_t(kv_room) : 1;
    const auto begin = is_used.begin() + int64_t(first);
    const bool is_of_key = std::find(begin, begin + int64_t(count), true) != begin + int64_t(count);
    const auto value = float(random.between(0.5, 1.5));
    values[n] = is_of_key ? value : std::numeric_limits<float>::quiet_NaN();
  }
  return {array.emplace(values).data(), {by_page ? heads : kv_room * heads, by_page ? 0 : heads, 1, 0}};
}

/// A number for each group of a row of the cache; NaN for rows of no sequence.
sluice_tensor RandomCall::draw_groups(std::optional<Elements> &array, int32_t head_dim, double low,
                                      double high) {
  const int64_t groups = head_dim / problem.scale_group, row = groups * problem.kv_heads;
  array.emplace(SLUICE_F16, kv_tokens * size_t(row)).fill_with_nan();
  for (size_t n = 0; n < array->count(); ++n) {
    const double value = random.between(low, high);
    if (is_used[n / size_t(row)]) array->set(n, value);
  }
  return {array->data(), {kv_room * row, row, groups, 1}};
}

void RandomCall::draw_visibility() {
  const size_t batch = q_lengths.size();
  const auto each = [&](std::optional<Visible<int32_t>> &array, auto value) {
    std::vector<int32_t> values(batch);
    for (size_t b = 0; b < batch; ++b)
      values[b] = value(b);
    return array.emplace(values).data();
  };
  if (problem.mask_alignment == SLUICE_GIVEN_DIAGONAL)
    args.diagonals = each(diagonals, [&](size_t b) {
      return int32_t(random.below(uint32_t(kv_lengths[b] + q_lengths[b] + 10))) - q_lengths[b] - 5;
    });
  if (problem.flags & calls::causal_by_sequence)
    args.causal = each(causal, [&](size_t) { return int32_t(random.below(2)); });
  if (problem.flags & calls::spans) {
    args.span_count = 2;
    std::vector<int32_t> ends;
    for (size_t b = 0; b < batch; ++b) {
      int32_t end = 0;
      for (size_t n = 0; n < 4; ++n)
        ends.push_back(end += int32_t(random.below(uint32_t(kv_lengths[b]) / 3 + 2)));
    }
    args.spans = spans.emplace(ends).data();
  }
}

void RandomCall::with_plan(
    const std::function<void(const sluice_plan *plan, const sluice_launch &where)> &launch) {
  sluice_error error;
  sluice_error_init(&error, sizeof error);
  sluice_plan *created = nullptr;
  const sluice_status planned =
      sluice_attention_plan(device(), calls::ProblemValues(problem), &created, &error);
  INFO(error.field << ": " << error.message);
  REQUIRE(planned == SLUICE_OK);
  const std::unique_ptr<sluice_plan, void (*)(sluice_plan *)> plan(created, sluice_plan_destroy);
  sluice_plan_info info;
  sluice_plan_info_init(&info, sizeof info);
  REQUIRE(sluice_plan_describe(created, &info, nullptr) == SLUICE_OK);
  // The workspace is exactly as large as the plan says; it is not cleared.
  Visible<uint8_t> workspace(info.workspace_bytes, 0xff);
  sluice_launch where;
  sluice_launch_init(&where, sizeof where);
  if (info.workspace_bytes != 0) {
    where.workspace = workspace.data();
    where.workspace_bytes = info.workspace_bytes;
  }
  launch(created, where);
}

void RandomCall::run() {
  with_plan([&](const sluice_plan *plan, const sluice_launch &where) {
    run_on_device(args, [&](sluice_context *, const calls::Args *call, sluice_launch *, sluice_error *error) {
      return sluice_attention_run(plan, calls::ArgsValues(problem, *call), &where, error);
    });
  });
}

void RandomCall::refer() {
  expected_o.reserve(1); // so that there is memory even without rows
  expected_o.assign(o->count() * o->element_bytes(), untouched_byte);
  expected_lse.reserve(1);
  if (lse) expected_lse.assign(lse->size(), untouched_lse);
  calls::Args call = args;
  call.o.data = expected_o.data();
  if (lse) call.lse.data = expected_lse.data();
  sluice_error error;
  sluice_error_init(&error, sizeof error);
  const sluice_status status =
      sluice_attention_reference(calls::ProblemValues(problem), calls::ArgsValues(problem, call), &error);
  INFO(error.field << ": " << error.message);
  REQUIRE(status == SLUICE_OK);
}

RandomCall::Difference RandomCall::compare() const {
  Difference worst;
  const auto see = [&](double &most, double difference, const char *what, size_t place, double found,
                       double expected) {
    if (!(difference > most)) {
      if (!std::isnan(difference)) return;
      difference = std::numeric_limits<double>::infinity();
    }
    most = difference;
    worst.where += std::string(worst.where.empty() ? "" : " ") + what + "[" + std::to_string(place) + "] " +
                   std::to_string(found) + " not " + std::to_string(expected);
    if (worst.where.size() > 200) worst.where.erase(0, 100);
  };
  const std::vector<uint8_t> got_o = o->copy();
  const size_t bytes = o->element_bytes();
  const auto is_untouched = [&](const std::vector<uint8_t> &of, size_t n) {
    return std::all_of(&of[n * bytes], &of[n * bytes] + bytes,
                       [](uint8_t byte) { return byte == untouched_byte; });
  };
  // What follows the elements of a head is undefined.
  const auto is_element = [&](size_t n) {
    const int64_t head = row_elements(problem.head_dim_v), place = int64_t(n) % o_row;
    return place >= head * problem.q_heads || place % head < problem.head_dim_v;
  };
  for (size_t n = 0; n < o->count(); ++n) {
    if (!is_element(n)) continue;
    // A byte may look untouched.
    if (bytes != 1 && (is_untouched(expected_o, n) || is_untouched(got_o, n))) {
      if (is_untouched(expected_o, n) != is_untouched(got_o, n)) see(worst.o, 1e9, "o", n, o->get(n), 0);
    } else {
      const double expected = Elements::number(problem.o_type, expected_o.data(), n);
      if (o->get(n) == expected) continue; // infinities
      see(worst.o, std::fabs(o->get(n) - expected) / o_unit, "o", n, o->get(n), expected);
    }
  }
  for (size_t n = 0; n < expected_lse.size(); ++n) {
    if ((*lse)[n] == expected_lse[n]) continue; // infinities
    see(worst.lse, std::fabs(double{(*lse)[n]} - expected_lse[n]), "lse", n, (*lse)[n], expected_lse[n]);
  }
  return worst;
}

std::string RandomCall::text() const {
  std::string out =
      "mode " + std::to_string(problem.mode) + " flags " + std::to_string(problem.flags) + " types " +
      std::to_string(problem.q_type) + "," + std::to_string(problem.k_type) + "," +
      std::to_string(problem.v_type) + "," + std::to_string(problem.o_type) + " heads " +
      std::to_string(problem.q_heads) + "/" + std::to_string(problem.kv_heads) + " d " +
      std::to_string(problem.head_dim_qk) + "/" + std::to_string(problem.head_dim_v) + " windows " +
      std::to_string(problem.window_left) + " " + std::to_string(problem.window_right) + " sinks " +
      std::to_string(problem.sink_tokens) + " alignment " + std::to_string(problem.mask_alignment) + " cap " +
      std::to_string(problem.soft_cap) + " bias " + std::to_string(problem.bias_type) + " page " +
      std::to_string(problem.page_size) + " packs " + std::to_string(problem.k_pack) + "," +
      std::to_string(problem.v_pack) + " kind " + std::to_string(problem.page_table_kind) +
      " starts/lengths " + std::to_string(q_starts_given) + std::to_string(q_lengths_given) +
      std::to_string(kv_lengths_given) + " bounds " + std::to_string(problem.max_batch) + "," +
      std::to_string(problem.max_q_len) + "," + std::to_string(problem.max_kv_len) + ":";
  for (size_t b = 0; b < q_lengths.size(); ++b)
    out += " " + std::to_string(q_lengths[b]) + "x" + std::to_string(kv_lengths[b]);
  return out;
}

} // namespace sluice::test

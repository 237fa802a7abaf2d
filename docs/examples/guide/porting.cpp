// The conversions of docs/howto/port_an_engine.md, each against what the other library's documents say. Needs
// no device: what a mask shows and where a layout puts elements is asked of the reference.
#include "device.h"

#include <array>
#include <cstdio>
#include <functional>
#include <utility>

namespace {

// <flash_attention>
/// causal and window_size of flash_attn_func and related functions; -1 means no bound.
sluice_mask flash_attention_mask(bool causal, int left, int right) {
  sluice::Sized<sluice_mask> mask;
  if (left >= 0) {
    mask.flags |= SLUICE_MASK_WINDOW_LEFT;
    mask.window_left = left;
  }
  if (causal) {
    mask.flags |= SLUICE_MASK_CAUSAL; // for every `right`
  } else if (right >= 0) {
    mask.flags |= SLUICE_MASK_WINDOW_RIGHT;
    mask.window_right = right;
  }
  return mask;
}
// </flash_attention>

// <flashinfer>
/// Keys of a sequence with the pages [first, last) of the CSR table.
int32_t flashinfer_length(int32_t first, int32_t last, int32_t last_page_len, int32_t page_size) {
  return last == first ? 0 : (last - first - 1) * page_size + last_page_len;
}
// </flashinfer>

// <vllm>
/// A value cache [blocks, heads, head_size, block_size]; v.pack of its format is SLUICE_PACK_ALL.
sluice_tensor vllm_value_cache(void *data, int64_t heads, int64_t head_size, int64_t block_size) {
  return sluice_make_tensor(data, heads * head_size * block_size, 1, head_size * block_size, block_size);
}

/// aiter's [blocks, heads, block_size / x, head_size, x]; v.pack of its format is x.
sluice_tensor aiter_value_cache(void *data, int64_t heads, int64_t head_size, int64_t block_size, int64_t x) {
  return sluice_make_tensor(data, heads * head_size * block_size, head_size * x, head_size * block_size, x);
}
// </vllm>

// <vllm_combined>
/// K and V of a cache [blocks, heads, block_size, 2 * head_size], whose elements are in this order or, if
/// `tokens_first`, in that of [blocks, block_size, heads, 2 * head_size]. `row_bytes` are those of head_size
/// elements: K's row, after which V's begins.
std::pair<sluice_tensor, sluice_tensor> vllm_combined_cache(void *data, int64_t heads, int64_t head_size,
                                                            int64_t block_size, int64_t row_bytes,
                                                            bool tokens_first) {
  const int64_t row = 2 * head_size, block = block_size * heads * row;
  const sluice_tensor k = tokens_first ? sluice_make_tensor(data, block, heads * row, row, 1)
                                       : sluice_make_tensor(data, block, row, block_size * row, 1);
  sluice_tensor v = k;
  v.data = static_cast<char *>(data) + row_bytes;
  return {k, v};
}
// </vllm_combined>

// <sparse_mla>
/// A cache [blocks, block_size, width] without gaps, as pages of one row; `format` is sluice_kv_latent with
/// pages of 1.
sluice_kv cache_of_slots(const sluice_kv_format *format, void *cache, int64_t blocks, int64_t block_size) {
  sluice_kv kv = sluice_make_kv(format, sluice_pages_nhd(cache, 1, 1, format->head_dim_qk), {});
  kv.page_count = blocks * block_size;
  return kv;
}

/// Each row of q is a sequence, and sees the slots of its list.
sluice_keys listed_slots(const sluice_kv *slots, const int32_t *indices, int32_t top_k,
                         const int32_t *lengths /* top_k for each */) {
  return sluice_keys_of_pages(slots, indices, top_k, lengths, top_k);
}
// </sparse_mla>

// <vllm_cascade>
/// The two sets of keys of a call. All rows see the first common_prefix_len keys, which are whole blocks: the
/// first ones in the table of every request.
std::array<sluice_keys, 2> vllm_cascade(const sluice_kv *cache, const int32_t *block_table,
                                        int64_t max_blocks, int32_t common_prefix_len,
                                        const int32_t *prefix_lengths /* common_prefix_len */,
                                        const int32_t *group_starts /* 0, tokens */, int32_t max_len,
                                        const int32_t *lengths /* seq_lens - common_prefix_len */) {
  const int32_t *own_table = block_table + common_prefix_len / cache->format->page_size;
  std::array<sluice_keys, 2> keys = {
      sluice_keys_of_pages(cache, own_table, max_blocks, lengths, max_len),
      sluice_keys_of_pages(cache, block_table, max_blocks, prefix_lengths, common_prefix_len)};
  keys[1].groups = 1;
  keys[1].group_starts = group_starts;
  return keys;
}
// </vllm_cascade>

// <aotriton>
constexpr int32_t top_left_aligned = -2147483647, bottom_right_aligned = -2147483646; // WindowValue

/// window_left and window_right of attn_fwd_params with CausalType::WindowedAttention, which count from the
/// diagonal through row 0 and key 0. False for what has no equivalent.
bool set_aotriton_mask(sluice_mask &mask, int32_t left, int32_t right) {
  const bool left_is_number =
      left != top_left_aligned && left != bottom_right_aligned; // else it hides nothing
  if (right == bottom_right_aligned) {
    mask.flags |= SLUICE_MASK_CAUSAL;
    mask.alignment = SLUICE_BOTTOM_RIGHT;
    return !left_is_number; // the two would count from different diagonals
  }
  mask.alignment = SLUICE_TOP_LEFT;
  if (left_is_number) {
    mask.flags |= SLUICE_MASK_WINDOW_LEFT;
    mask.window_left = left;
  }
  if (right == top_left_aligned) {
    mask.flags |= SLUICE_MASK_CAUSAL;
  } else {
    mask.flags |= SLUICE_MASK_WINDOW_RIGHT;
    mask.window_right = right;
  }
  return (!left_is_number || left >= 0) && (right == top_left_aligned || right >= 0);
}
// </aotriton>

// <ggml>
/// A tensor with ne = [element, token, head, sequence]: nb counts bytes, from the inside to the outside.
/// Sizes are those of ggml_type_size and ggml_blck_size: 34 and 32 for Q8_0, 18 and 32 for Q4_0, 2 and 1 for
/// F16.
sluice_tensor ggml_tensor_view(void *data, const size_t nb[4], size_t type_size, int64_t block_size) {
  const auto elements = [&](int i) { return int64_t(nb[i] / type_size) * block_size; };
  return sluice_make_tensor(data, elements(3), elements(1), elements(2), block_size == 1 ? elements(0) : 1);
}

/// alibi_slopes for max_bias > 0.
std::vector<float> ggml_slopes(int heads, float max_bias) {
  int power = 1; // the largest power of two that is at most `heads`
  while (2 * power <= heads)
    power *= 2;
  std::vector<float> slopes(heads);
  for (int h = 0; h < heads; ++h)
    slopes[h] = h < power ? std::exp2(-max_bias / power * (h + 1))
                          : std::exp2(-max_bias / 2 / power * (2 * (h - power) + 1));
  return slopes;
}
// </ggml>

void check(bool holds, const char *what) {
  if (!holds) throw std::runtime_error(std::string("wrong: ") + what);
}

/// Whether row i sees key j: scores are equal, and row j of V is 1 only in element j.
std::vector<std::vector<bool>> visible(const sluice_mask &mask, int rows, int keys) {
  sluice_kv_format format = sluice_kv_tensors(SLUICE_F32, 1, 1);
  format.head_dim_v = keys;
  sluice_attention attention = sluice_make_attention(SLUICE_F32, 1, &format);
  attention.mask = &mask;
  std::vector<float> q(rows), k(keys), v(keys * keys), o(rows * keys);
  for (int j = 0; j < keys; ++j)
    v[j * keys + j] = 1;
  const sluice_kv kv =
      sluice_make_kv(&format, sluice_packed(k.data(), 1, 1), sluice_packed(v.data(), 1, keys));
  const sluice_keys all = sluice_keys_of_equal(&kv, keys);
  sluice::reference(attention, sluice_make_call(1, rows, sluice_packed(q.data(), 1, 1),
                                                sluice_packed(o.data(), 1, keys), &all))
      .value();
  std::vector<std::vector<bool>> cells(rows, std::vector<bool>(keys));
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < keys; ++j)
      cells[i][j] = o[i * keys + j] > 0;
  return cells;
}

bool agrees(const sluice_mask &mask, int rows, int keys, const std::function<bool(int, int)> &expected) {
  const auto cells = visible(mask, rows, keys);
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < keys; ++j)
      if (cells[i][j] != expected(i, j)) return false;
  return true;
}

void check_flash_attention() {
  // The two matrices of its documents.
  const sluice_mask causal = flash_attention_mask(true, -1, -1);
  const char *wide[] = {"11110", "11111"}, *high[] = {"00", "00", "00", "10", "11"};
  check(agrees(causal, 2, 5, [&](int i, int j) { return wide[i][j] == '1'; }), "causal, 2 rows and 5 keys");
  check(agrees(causal, 5, 2, [&](int i, int j) { return high[i][j] == '1'; }), "causal, 5 rows and 2 keys");
  // "between [i + seqlen_k - seqlen_q - window_size[0], i + seqlen_k - seqlen_q + window_size[1]] inclusive"
  for (const bool is_causal : {false, true})
    for (int left = -1; left < 4; ++left)
      for (int right = -1; right < 4; ++right) {
        const int last = is_causal ? 0 : right;
        check(agrees(flash_attention_mask(is_causal, left, right), 6, 9,
                     [&](int i, int j) {
                       const int diagonal = i + 9 - 6;
                       return (left < 0 || j >= diagonal - left) && (last < 0 || j <= diagonal + last);
                     }),
              "a window of FlashAttention");
      }
}

void check_flashinfer() {
  // The example in its documents, with pages of 16.
  const int32_t starts[] = {0, 17, 29, 44, 48, 66, 100, 128}, last[] = {1, 7, 14, 4, 3, 1, 16};
  const int32_t expected[] = {257, 183, 238, 52, 275, 529, 448};
  for (int b = 0; b < 7; ++b)
    check(flashinfer_length(starts[b], starts[b + 1], last[b], 16) == expected[b], "a length of FlashInfer");
  check(flashinfer_length(3, 3, 0, 16) == 0, "a sequence without pages");
}

/// Two rows with lists of slots, with holes.
void check_sparse_mla() {
  constexpr int32_t blocks = 3, block_size = 4, top_k = 3;
  const int32_t indices[2 * top_k] = {9, -1, 2, -1, -1, -1}, lengths[2] = {top_k, top_k};
  float q[2] = {0, 0}, o[2], cache[blocks * block_size];
  for (int i = 0; i < blocks * block_size; ++i)
    cache[i] = float(i);
  const sluice_kv_format format = sluice_kv_latent(SLUICE_F32, 1, 0, 1);
  sluice::Sized<sluice_mask> mask;
  mask.flags = SLUICE_MASK_MISSING_PAGES;
  sluice_attention attention = sluice_make_attention(SLUICE_F32, 1, &format);
  attention.mask = &mask;
  const sluice_kv kv = cache_of_slots(&format, cache, blocks, block_size);
  const sluice_keys keys = listed_slots(&kv, indices, top_k, lengths);
  sluice::reference(attention,
                    sluice_make_call(2, 1, sluice_bshd(q, 1, 1, 1), sluice_bshd(o, 1, 1, 1), &keys))
      .value();
  check(o[0] == 5.5f && o[1] == 0, "the results of lists of slots");
}

/// Two requests of one row, whose first four keys are in the same two blocks: with and without a cascade.
void check_vllm_cascade() {
  constexpr int32_t blocks = 5, block_size = 2, max_blocks = 4, common = 4;
  const int32_t table[2 * max_blocks] = {3, 0, 1, 4, 3, 0, 2, 0}, seq_lens[2] = {7, 5};
  float q[2] = {1, 2}, k[blocks * block_size], v[blocks * block_size], together[2], apart[2];
  for (int i = 0; i < blocks * block_size; ++i) {
    k[i] = 0.1f * float(i);
    v[i] = float(i);
  }
  const sluice_kv_format format = sluice_kv_pages(SLUICE_F32, 1, 1, block_size);
  const sluice_kv kv =
      sluice_make_kv(&format, sluice_pages_nhd(k, block_size, 1, 1), sluice_pages_nhd(v, block_size, 1, 1));
  sluice_attention attention = sluice_make_attention(SLUICE_F32, 1, &format);
  const sluice_keys all = sluice_keys_of_pages(&kv, table, max_blocks, seq_lens, 7);
  sluice_attention_args args =
      sluice_make_call(2, 1, sluice_bshd(q, 1, 1, 1), sluice_bshd(together, 1, 1, 1), &all);
  sluice::reference(attention, args).value();

  attention.flags = SLUICE_ATTENTION_PREFIXES;
  attention.bounds.groups = 1;
  attention.bounds.group_keys = common;
  attention.bounds.q_rows = 2;
  const int32_t starts[] = {0, 2}, lengths[] = {common}, own[] = {seq_lens[0] - common, seq_lens[1] - common};
  const auto sets = vllm_cascade(&kv, table, max_blocks, common, lengths, starts, 3, own);
  args.keys = sets.data();
  args.key_sets = 2;
  args.o.data = apart;
  sluice::reference(attention, args).value();
  check(together[0] == apart[0] && together[1] == apart[1], "the results of a cascade");
}

void check_vllm() {
  constexpr int64_t blocks = 3, heads = 2, size = 64, rows = 16, x = 8;
  const sluice_tensor cache = sluice_pages_x_packed(nullptr, rows, heads, size, x);
  int64_t index = 0; // of the elements in the order of [blocks, heads, head_size / x, block_size, x]
  for (int64_t block = 0; block < blocks; ++block)
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t chunk = 0; chunk < size / x; ++chunk)
        for (int64_t row = 0; row < rows; ++row)
          for (int64_t e = 0; e < x; ++e)
            check(block * cache.stride[0] + row * cache.stride[1] + head * cache.stride[2] +
                          chunk * cache.stride[3] + e ==
                      index++,
                  "the place of an element of a key cache");
  // The offsets of elements by the rules of sluice_format::pack, in the order of memory.
  const auto check_order = [](const sluice_tensor &v, int64_t pack, bool in_packs, const char *what) {
    int64_t next = 0;
    for (int64_t block = 0; block < blocks; ++block)
      for (int64_t head = 0; head < heads; ++head)
        for (int64_t first = 0; first < rows; first += pack)
          for (int64_t e = 0; e < size; ++e)
            for (int64_t row = first; row < first + pack; ++row) {
              const int64_t row_offset = in_packs ? row / pack * v.stride[1] + row % pack : row * v.stride[1];
              check(block * v.stride[0] + row_offset + head * v.stride[2] + e * v.stride[3] == next++, what);
            }
  };
  check_order(vllm_value_cache(nullptr, heads, size, rows), rows, false, "an element of vLLM's value cache");
  check_order(aiter_value_cache(nullptr, heads, size, rows, x), x, true, "an element of aiter's value cache");
}

void check_vllm_combined() {
  constexpr int64_t blocks = 3, heads = 2, size = 64, rows = 16;
  std::vector<uint16_t> cache(blocks * heads * rows * 2 * size);
  for (const bool tokens_first : {false, true}) {
    const auto [k, v] =
        vllm_combined_cache(cache.data(), heads, size, rows, size * sizeof(uint16_t), tokens_first);
    const int64_t outer = tokens_first ? rows : heads, inner = tokens_first ? heads : rows;
    const uint16_t *next = cache.data(); // of the elements in their order
    for (int64_t block = 0; block < blocks; ++block)
      for (int64_t i = 0; i < outer; ++i)
        for (int64_t j = 0; j < inner; ++j)
          for (const sluice_tensor &tensor : {k, v})
            for (int64_t e = 0; e < size; ++e) {
              const int64_t head = tokens_first ? j : i, token = tokens_first ? i : j;
              check(static_cast<const uint16_t *>(tensor.data) + block * tensor.stride[0] +
                            token * tensor.stride[1] + head * tensor.stride[2] + e * tensor.stride[3] ==
                        next++,
                    "the place of an element of a combined cache");
            }
  }
}

void check_aotriton() {
  // Its kernels take a left value that is not a number as seqlen_q, and a right one as 0 or seqlen_k -
  // seqlen_q.
  const int rows = 4, keys = 7;
  for (const int32_t left : {top_left_aligned, bottom_right_aligned, 0, 1, 3})
    for (const int32_t right : {top_left_aligned, bottom_right_aligned, 0, 2}) {
      sluice::Sized<sluice_mask> mask;
      const bool has_equivalent = set_aotriton_mask(mask, left, right);
      check(has_equivalent == !(left >= 0 && right == bottom_right_aligned), "a window without equivalent");
      if (!has_equivalent) continue;
      const int before = left < 0 ? rows : left;
      const int after = right == top_left_aligned ? 0 : right == bottom_right_aligned ? keys - rows : right;
      check(agrees(mask, rows, keys, [&](int i, int j) { return i - before <= j && j <= i + after; }),
            "a window of aotriton");
    }
  sluice::Sized<sluice_mask> mask;
  check(!set_aotriton_mask(mask, -1, 0), "a negative window");
}

/// A block of ggml: an F16 scale, then signed bytes (Q8_0), or half bytes that are 8 too large (Q4_0), of
/// which the lower ones are the first 16 elements. A scale of 2^exponent.
struct GgmlBlock {
  int exponent;
  int numbers[32];

  std::vector<uint8_t> bytes(bool is_q8) const {
    const auto scale = uint16_t((exponent + 15) << 10);
    std::vector<uint8_t> out = {uint8_t(scale), uint8_t(scale >> 8)};
    for (int i = 0; i < (is_q8 ? 32 : 16); ++i)
      out.push_back(is_q8 ? uint8_t(numbers[i]) : uint8_t((numbers[i] + 8) | (numbers[i + 16] + 8) << 4));
    return out;
  }
};

/// A cache of ggml [64, keys, heads] as V: where scores are equal, O is the mean of its rows.
void check_ggml_blocks(uint32_t dtype) {
  constexpr int dim = 64, keys = 3, heads = 2;
  const bool is_q8 = dtype == SLUICE_Q8_0;
  const size_t type_size = is_q8 ? 34 : 18, row = dim / 32 * type_size;
  const size_t nb[4] = {type_size, row, keys * row, heads * keys * row};
  std::vector<uint8_t> cache;
  std::vector<float> mean(heads * dim);
  for (int head = 0; head < heads; ++head)
    for (int key = 0; key < keys; ++key)
      for (int block = 0; block < dim / 32; ++block) {
        GgmlBlock made = {key - 2 * block + head, {}};
        for (int i = 0; i < 32; ++i) {
          const int number = 37 * i + 11 * key + 5 * head + block;
          made.numbers[i] = is_q8 ? number % 255 - 127 : number % 16 - 8;
          mean[head * dim + block * 32 + i] += std::ldexp(float(made.numbers[i]), made.exponent) / keys;
        }
        for (const uint8_t byte : made.bytes(is_q8))
          cache.push_back(byte);
      }
  const sluice_kv_format format = sluice_kv_tensors(dtype, heads, dim);
  const sluice_tensor view = ggml_tensor_view(cache.data(), nb, type_size, 32);
  const sluice_kv kv = sluice_make_kv(&format, view, view);
  const sluice_keys all = sluice_keys_of_equal(&kv, keys);
  std::vector<float> q(heads * dim), o(heads * dim);
  sluice::reference(
      sluice_make_attention(SLUICE_F32, heads, &format),
      sluice_make_call(1, 1, sluice_packed(q.data(), heads, dim), sluice_packed(o.data(), heads, dim), &all))
      .value();
  for (int i = 0; i < heads * dim; ++i)
    check(std::abs(o[i] - mean[i]) <= 1e-6f * std::abs(mean[i]) + 1e-6f, "an element of a block of ggml");
}

void check_ggml() {
  // [128, 5, 8, 2] of F16 without gaps, and the slopes of the ALiBi paper for 8 heads.
  const size_t nb[4] = {2, 256, 1280, 10240};
  const sluice_tensor q = ggml_tensor_view(nullptr, nb, 2, 1);
  check(q.stride[0] == 8 * 5 * 128 && q.stride[1] == 128 && q.stride[2] == 5 * 128 && q.stride[3] == 1,
        "the strides of a tensor of ggml");
  // The transposed V of a cache of 256 tokens, [256, 128, 8] of F16, after ggml_permute(v, 1, 0, 2, 3).
  const size_t transposed[4] = {512, 2, 512 * 128, 512 * 128 * 8};
  const sluice_tensor v = ggml_tensor_view(nullptr, transposed, 2, 1);
  check(v.stride[1] == 1 && v.stride[2] == 128 * 256 && v.stride[3] == 256, "the strides of a transposed V");
  check_ggml_blocks(SLUICE_Q8_0);
  check_ggml_blocks(SLUICE_Q4_0);
  const std::vector<float> slopes = ggml_slopes(8, 8);
  for (int h = 0; h < 8; ++h)
    check(slopes[h] == std::exp2(-float(h + 1)), "a slope of 8 heads");
  const std::vector<float> more = ggml_slopes(12, 8);
  check(more[7] == slopes[7] && more[8] == std::exp2(-0.5f) && more[11] == std::exp2(-3.5f), "12 heads");
}

} // namespace

int main() try {
  check_flash_attention();
  check_flashinfer();
  check_vllm();
  check_vllm_combined();
  check_sparse_mla();
  check_vllm_cascade();
  check_aotriton();
  check_ggml();
  std::printf("FlashAttention, FlashInfer, vLLM, aotriton, ggml: as their masks and layouts say\n");
} catch (const std::exception &failed) {
  std::fprintf(stderr, "%s\n", failed.what());
  return 1;
}

// A decode step with a paged cache: the new rows go into their pages, then attention finds them there. In all
// layouts of a page and with both kinds of table.
#include "device.h"

#include <cstdio>
#include <string_view>

namespace {

using guide::Array;

constexpr int32_t pages = 12, page_size = 16, q_heads = 8, kv_heads = 2, dim = 64, x = 8;
constexpr int32_t batch = 3, table_width = 4;
constexpr size_t cache_elements = pages * page_size * kv_heads * dim;

/// One step of three sequences that have 20, 0 and 50 keys and get one more each, and its check.
void step(const sluice::Context &context, std::string_view layout, bool csr) {
  Array<uint16_t> q(context, guide::numbers(batch * q_heads * dim, 1));
  Array<uint16_t> k_new(context, guide::numbers(batch * kv_heads * dim, 2));
  Array<uint16_t> v_new(context, guide::numbers(batch * kv_heads * dim, 3));
  Array<uint16_t> k_pool(context, guide::numbers(cache_elements, 4));
  Array<uint16_t> v_pool(context, guide::numbers(cache_elements, 5));
  Array<uint16_t> o(context, std::vector<uint16_t>(batch * q_heads * dim));

  // <layouts>
  sluice_kv_format format = sluice_kv_pages(SLUICE_F16, kv_heads, dim, page_size);
  // [page, row, head, element]
  sluice_tensor k = sluice_pages_nhd(k_pool.device(), page_size, kv_heads, dim);
  sluice_tensor v = sluice_pages_nhd(v_pool.device(), page_size, kv_heads, dim);
  if (layout != "NHD") { // [page, head, row, element]
    k = sluice_pages_hnd(k_pool.device(), page_size, kv_heads, dim);
    v = sluice_pages_hnd(v_pool.device(), page_size, kv_heads, dim);
  }
  if (layout == "x-packed") { // K: [page, head, element / x, row, element % x]
    k = sluice_pages_x_packed(k_pool.device(), page_size, kv_heads, dim, x);
    format.k.pack = x;
  }
  // </layouts>

  // <tables>
  // Sequence 0 has pages 7 and 2, sequence 1 page 5, sequence 2 pages 9, 0, 3 and 11.
  Array<int32_t> block_table(context, {7, 2, -1, -1, /**/ 5, -1, -1, -1, /**/ 9, 0, 3, 11});
  Array<int32_t> csr_table(context, {7, 2, 5, 9, 0, 3, 11}), csr_starts(context, {0, 2, 3, 7});
  Array<int32_t> lengths(context, {21, 1, 51}); // with the new keys
  Array<int32_t> starts(context, {0, 1, 2, 3}); // one new row for each sequence
  // </tables>

  // <cache>
  if (csr) format.page_table = SLUICE_PAGE_TABLE_CSR;
  sluice_kv cache = sluice_make_kv(&format, k, v);
  cache.page_count = pages;
  sluice_keys keys = sluice_keys_of_pages(&cache, block_table.device(), table_width, lengths.device(),
                                          table_width * page_size); // no sequence has more keys
  if (csr) keys.pages = {csr_table.device(), csr_starts.device(), 0, 0};
  // </cache>

  // <append>
  sluice_append_args append =
      sluice_make_append(&cache, SLUICE_F16, batch, sluice_packed(k_new.device(), kv_heads, dim),
                         sluice_packed(v_new.device(), kv_heads, dim), nullptr);
  append.batch = batch;
  append.starts = starts.device();
  append.lengths = lengths.device();
  append.pages = keys.pages;
  context.append(append).value();
  // </append>

  // <attend>
  const sluice_mask causal = sluice_causal_mask();
  sluice_attention attention = sluice_make_attention(SLUICE_F16, q_heads, &format);
  attention.mask = &causal;
  const sluice::Plan plan = context.plan(attention).value();

  sluice_attention_args args = sluice_make_call(batch, 1, sluice_packed(q.device(), q_heads, dim),
                                                sluice_packed(o.device(), q_heads, dim), &keys);
  args.rows.starts = starts.device();
  args.rows.total = batch; // rows of q and o
  plan.run(args).value();
  // </attend>

  // The reference reads the pages as they are now; the new rows are in them, and all others are as before.
  const std::vector<uint16_t> before = k_pool.host;
  for (Array<uint16_t> *each : {&o, &k_pool, &v_pool})
    each->download();
  size_t written = 0;
  for (size_t i = 0; i < before.size(); ++i)
    written += before[i] != k_pool.host[i];
  std::vector<uint16_t> expected(o.host.size());
  cache.k.data = k_pool.host.data();
  cache.v.data = v_pool.host.data();
  keys.rows.lengths = lengths.host.data();
  keys.pages.table = csr ? csr_table.host.data() : block_table.host.data();
  keys.pages.starts = csr ? csr_starts.host.data() : nullptr;
  args.rows.starts = starts.host.data();
  args.q.data = q.host.data();
  args.o.data = expected.data();
  sluice::reference(attention, args).value();
  if (written == 0 || written > batch * kv_heads * dim || guide::difference(o.host, expected) > 1e-3)
    throw std::runtime_error("the step computes something else than the reference");
  std::printf("%s pages, %s table: as the reference\n", std::string(layout).c_str(), csr ? "CSR" : "block");
}

} // namespace

int main() try {
  const auto context = sluice::Context::create(sluice::ContextDesc(SLUICE_DEVICE_EMULATED)).value();
  for (const char *layout : {"NHD", "HND", "x-packed"})
    for (const bool csr : {false, true})
      step(context, layout, csr);
  std::printf("6 steps\n");
} catch (const std::exception &failed) {
  std::fprintf(stderr, "%s\n", failed.what());
  return 1;
}

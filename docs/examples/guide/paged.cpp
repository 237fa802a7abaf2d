// A decode step with a paged cache: the new rows go into their pages, then attention finds them there. In all
// layouts of a page and with both kinds of table.
#include "device.h"

#include <cstdio>
#include <string_view>

namespace {

using guide::Array;
using sluice::TensorView;

constexpr int64_t pages = 12, page_size = 16, q_heads = 8, kv_heads = 2, dim = 64, x = 8;
constexpr int64_t batch = 3, table_width = 4;
constexpr int64_t cache_elements = pages * page_size * kv_heads * dim;

// <layouts>
TensorView nhd(void *data) { // [page, row, head, element]
  return TensorView::pages_nhd(data, SLUICE_F16, pages, page_size, kv_heads, dim);
}
TensorView hnd(void *data) { // [page, head, row, element]
  return TensorView::pages_hnd(data, SLUICE_F16, pages, page_size, kv_heads, dim);
}
TensorView x_packed(void *data) { // [page, head, element / x, row, element % x]; with k_pack = x
  TensorView view = hnd(data);
  view.stride = {kv_heads * dim * page_size, x, dim * page_size, page_size * x};
  return view;
}
// </layouts>

/// One step of three sequences that have 20, 0 and 50 keys and get one more each, and its check.
void step(const sluice::Context &context, std::string_view layout, bool csr) {
  const bool packed = layout == "x-packed";
  Array<uint16_t> q(context, guide::numbers(batch * q_heads * dim, 1));
  Array<uint16_t> k_new(context, guide::numbers(batch * kv_heads * dim, 2));
  Array<uint16_t> v_new(context, guide::numbers(batch * kv_heads * dim, 3));
  Array<uint16_t> k_pool(context, guide::numbers(cache_elements, 4));
  Array<uint16_t> v_pool(context, guide::numbers(cache_elements, 5));
  Array<uint16_t> o(context, std::vector<uint16_t>(batch * q_heads * dim));

  // <tables>
  // Sequence 0 has pages 7 and 2, sequence 1 page 5, sequence 2 pages 9, 0, 3 and 11.
  Array<int32_t> block_table(context, {7, 2, -1, -1, /**/ 5, -1, -1, -1, /**/ 9, 0, 3, 11});
  Array<int32_t> csr_table(context, {7, 2, 5, 9, 0, 3, 11}), csr_starts(context, {0, 2, 3, 7});
  Array<int32_t> lengths(context, {21, 1, 51}); // with the new keys
  Array<int32_t> starts(context, {0, 1, 2, 3}); // one new row for each sequence
  // </tables>
  const TensorView k_cache = packed            ? x_packed(k_pool.device())
                             : layout == "HND" ? hnd(k_pool.device())
                                               : nhd(k_pool.device());
  const TensorView v_cache = layout == "NHD" ? nhd(v_pool.device()) : hnd(v_pool.device());
  const sluice::Launch launch;

  // <append>
  sluice::Append append;
  append.source_type = append.cache_type = SLUICE_F16;
  append.kv_heads = kv_heads;
  append.head_dim_qk = append.head_dim_v = dim;
  append.page_size = page_size;
  append.k_pack = packed ? x : 0;
  append.tokens = batch; // rows of k and v
  append.batch = batch;
  append.k = TensorView::ragged(k_new.device(), SLUICE_F16, batch, kv_heads, dim);
  append.v = TensorView::ragged(v_new.device(), SLUICE_F16, batch, kv_heads, dim);
  append.k_cache = k_cache;
  append.v_cache = v_cache;
  append.starts = starts.device();
  append.kv_lengths = lengths.device();
  append.page_table_kind = csr ? SLUICE_PAGE_TABLE_CSR : SLUICE_PAGE_TABLE_BLOCK;
  append.page_table = csr ? csr_table.device() : block_table.device();
  append.page_table_stride = csr ? 0 : table_width;
  append.page_starts = csr ? csr_starts.device() : nullptr;
  append.page_count = pages;
  context.kv_append(append, launch).value();
  // </append>

  // <attend>
  sluice::Problem problem;
  problem.mode = SLUICE_MODE_PAGED;
  problem.page_size = page_size;
  problem.page_table_kind = append.page_table_kind;
  problem.k_pack = append.k_pack;
  problem.flags = SLUICE_CAUSAL;
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F16;
  problem.q_heads = q_heads;
  problem.kv_heads = kv_heads;
  problem.head_dim_qk = problem.head_dim_v = dim;
  const sluice::Plan plan = context.plan(problem).value();

  sluice::Args args;
  args.batch = batch;
  args.q_len = 1;
  args.kv_len = table_width * page_size; // no sequence has more
  args.q = TensorView::ragged(q.device(), SLUICE_F16, batch, q_heads, dim);
  args.o = TensorView::ragged(o.device(), SLUICE_F16, batch, q_heads, dim);
  args.k = k_cache;
  args.v = v_cache;
  args.q_starts = starts.device();
  args.kv_lengths = lengths.device();
  args.page_table = append.page_table;
  args.page_table_stride = append.page_table_stride;
  args.page_starts = append.page_starts;
  args.page_count = append.page_count;
  args.q_tokens = batch; // rows of q and o
  plan.run(args, launch).value();
  // </attend>

  // The reference reads the pages as they are now; the new rows are in them, and all others are as before.
  const std::vector<uint16_t> before = k_pool.host;
  for (Array<uint16_t> *each : {&o, &k_pool, &v_pool})
    each->download();
  int64_t written = 0;
  for (size_t i = 0; i < before.size(); ++i)
    written += before[i] != k_pool.host[i];
  sluice_args host = args;
  std::vector<uint16_t> expected(o.host.size());
  host.q.data = q.host.data();
  host.k.data = k_pool.host.data();
  host.v.data = v_pool.host.data();
  host.o.data = expected.data();
  host.q_starts = starts.host.data();
  host.kv_lengths = lengths.host.data();
  host.page_table = csr ? csr_table.host.data() : block_table.host.data();
  host.page_starts = csr ? csr_starts.host.data() : nullptr;
  sluice::reference(problem, host).value();
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

// What the emulator says of a wrong page number: an error of the call that waits, and a report.
#include "device.h"

#include <cstdio>

int main() try {
  using guide::Array;
  using sluice::TensorView;
  constexpr int64_t pages = 4, page_size = 16, dim = 64;
  const auto context = sluice::Context::create(sluice::ContextDesc(SLUICE_DEVICE_EMULATED)).value();
  sluice::Problem problem;
  problem.mode = SLUICE_MODE_PAGED;
  problem.page_size = page_size;
  problem.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F16;
  problem.q_heads = problem.kv_heads = 1;
  problem.head_dim_qk = problem.head_dim_v = dim;
  const auto plan = context.plan(problem).value();

  Array<uint16_t> q(context, guide::numbers(dim, 1)), o(context, std::vector<uint16_t>(dim));
  Array<uint16_t> pool(context, guide::numbers(pages * page_size * dim, 2));
  Array<int32_t> table(context, {1, 40000}), lengths(context, {32}); // page 40000 does not exist
  sluice::Args args;
  args.batch = 1;
  args.q_len = 1;
  args.kv_len = 32;
  args.q = TensorView::bshd(q.device(), SLUICE_F16, 1, 1, 1, dim);
  args.o = TensorView::bshd(o.device(), SLUICE_F16, 1, 1, 1, dim);
  args.k = args.v = TensorView::pages_nhd(pool.device(), SLUICE_F16, pages, page_size, 1, dim);
  args.page_table = table.device();
  args.page_table_stride = 2;
  args.kv_lengths = lengths.device();

  // <reports>
  plan.run(args, sluice::Launch()).value(); // enqueued: a run does not look at tables
  const int code = context.hip<int(void *)>("hipStreamSynchronize")(nullptr);
  auto *take = context.hip<size_t(char *, size_t)>("sluice_emulator_take_reports"); // no GPU has one
  std::string json(take(nullptr, 0), '\0');
  take(json.data(), json.size());
  std::printf("hipStreamSynchronize: %d\n%s\n", code, json.c_str());
  // </reports>
} catch (const std::exception &failed) {
  std::fprintf(stderr, "%s\n", failed.what());
  return 1;
}

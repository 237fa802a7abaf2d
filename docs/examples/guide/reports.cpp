// What the emulator says of a wrong page number: an error of the call that waits, and a report.
#include "device.h"

#include <cstdio>

int main() try {
  using guide::Array;
  constexpr int32_t pages = 4, page_size = 16, dim = 64, keys_read = 32;
  const auto context = sluice::Context::create(sluice::ContextDesc(SLUICE_DEVICE_EMULATED)).value();
  const sluice_kv_format format = sluice_kv_pages(SLUICE_F16, 1, dim, page_size);
  const auto plan = context.plan(sluice_make_attention(SLUICE_F16, 1, &format)).value();

  Array<uint16_t> q(context, guide::numbers(dim, 1)), o(context, std::vector<uint16_t>(dim));
  Array<uint16_t> pool(context, guide::numbers(pages * page_size * dim, 2));
  Array<int32_t> table(context, {1, 40000}), lengths(context, {keys_read}); // page 40000 does not exist
  const sluice_tensor rows = sluice_pages_nhd(pool.device(), page_size, 1, dim);
  const sluice_kv kv = sluice_make_kv(&format, rows, rows);
  const sluice_keys keys = sluice_keys_of_pages(&kv, table.device(), 2, lengths.device(), keys_read);
  const sluice_attention_args args =
      sluice_make_call(1, 1, sluice_packed(q.device(), 1, dim), sluice_packed(o.device(), 1, dim), &keys);

  // <reports>
  plan.run(args).value(); // enqueued: a run does not look at tables
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

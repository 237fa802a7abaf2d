// The effects of bounds, determinism and a ceiling on the workspace on a plan. Needs no device: the context
// is a chip by its name.
#include <sluice/sluice.hpp>

#include <cstdio>

namespace {

void show(const sluice::Context &context, const char *name, const sluice_attention &attention) {
  // <describe>
  const sluice::Plan plan = context.plan(attention).value();
  const sluice_plan_info info = plan.describe().value();
  // </describe>
  std::printf("| %s | `%s` | %llu | %s |\n", name, info.kernel,
              static_cast<unsigned long long>(info.workspace_bytes), info.reason);
}

} // namespace

int main() try {
  // <target>
  const auto context = sluice::Context::create(sluice::ContextDesc("gfx942:304")).value();
  // </target>
  // <model>
  // What all calls of a model have in common.
  const sluice_kv_format cache =
      sluice_kv_pages(SLUICE_BF16, 8, 128, 16); // 8 heads of 128, pages of 16 tokens
  const sluice_mask causal = sluice_causal_mask();
  sluice_attention model = sluice_make_attention(SLUICE_BF16, 64, &cache);
  model.mask = &causal;
  // </model>

  std::printf("| plan | kernel | workspace | reason |\n| --- | --- | --- | --- |\n");
  show(context, "no bounds", model);
  // <two>
  sluice_attention prompts = model, decode = model;
  prompts.bounds = sluice_make_bounds(16, 4096, 32768); // sequences, rows and keys of each
  decode.bounds = sluice_make_bounds(8, 1, 32768);
  // </two>
  show(context, "prompts", prompts);
  show(context, "decode", decode);
  decode.flags = SLUICE_ATTENTION_BATCH_INVARIANT;
  show(context, "decode, batch-invariant", decode);
  decode.flags = 0;
  // <ceiling>
  decode.workspace_ceiling_bytes = 1 << 20;
  // </ceiling>
  show(context, "decode, 1 MiB at most", decode);
} catch (const sluice::Exception &failed) {
  std::fprintf(stderr, "%s\n", failed.what());
  return 1;
}

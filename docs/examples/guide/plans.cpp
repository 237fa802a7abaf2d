// The effects of bounds, determinism and a ceiling on the workspace on a plan. Needs no device: the context
// is a chip by its name.
#include <sluice/sluice.hpp>

#include <cstdio>

namespace {

void show(const sluice::Context &context, const char *name, const sluice_problem &problem) {
  // <describe>
  const sluice::Plan plan = context.plan(problem).value();
  const sluice::PlanInfo info = plan.describe().value();
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
  sluice::Problem model; // what all calls of a model have in common
  model.mode = SLUICE_MODE_PAGED;
  model.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
  model.page_size = 16;
  model.flags = SLUICE_CAUSAL;
  model.q_type = model.k_type = model.v_type = model.o_type = SLUICE_BF16;
  model.q_heads = 64;
  model.kv_heads = 8;
  model.head_dim_qk = model.head_dim_v = 128;
  // </model>

  std::printf("| plan | kernel | workspace | reason |\n| --- | --- | --- | --- |\n");
  show(context, "no bounds", model);
  // <two>
  sluice::Problem prompts = model;
  prompts.max_batch = 16;
  prompts.max_q_len = 4096;
  prompts.max_kv_len = 32768;
  sluice::Problem decode = model;
  decode.max_batch = 8;
  decode.max_q_len = 1;
  decode.max_kv_len = 32768;
  // </two>
  show(context, "prompts", prompts);
  show(context, "decode", decode);
  decode.determinism = SLUICE_DETERMINISM_BATCH_INVARIANT;
  show(context, "decode, batch-invariant", decode);
  // <ceiling>
  decode.determinism = SLUICE_DETERMINISM_FAST;
  decode.workspace_ceiling_bytes = 1 << 20;
  // </ceiling>
  show(context, "decode, 1 MiB at most", decode);
} catch (const sluice::Exception &failed) {
  std::fprintf(stderr, "%s\n", failed.what());
  return 1;
}

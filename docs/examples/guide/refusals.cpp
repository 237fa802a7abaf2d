// What a caller learns from a refusal. Needs no device.
#include <sluice/sluice.hpp>

#include <cstdio>

int main() try {
  const auto context = sluice::Context::create(sluice::ContextDesc("gfx942:304")).value();
  sluice::Problem problem;
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F16;
  problem.q_heads = 32;
  problem.kv_heads = 8;
  problem.head_dim_qk = problem.head_dim_v = 100;

  // <advice>
  auto support = context.support(problem);
  if (!support && support.error().code() == SLUICE_UNSUPPORTED)
    std::printf("%s: %s\n", support.error().field().data(), support.error().message().data());
  // </advice>
  problem.head_dim_qk = problem.head_dim_v = 96;
  problem.window_left = 512; // without its flag
  support = context.support(problem);
  if (!support) std::printf("%s: %s\n", support.error().code_name(), support.error().message().data());
  problem.flags = SLUICE_CAUSAL | SLUICE_HAS_WINDOW_LEFT;
  std::printf("%s\n", context.support(problem).value().kernel);
} catch (const sluice::Exception &failed) {
  std::fprintf(stderr, "%s\n", failed.what());
  return 1;
}

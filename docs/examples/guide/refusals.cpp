// What a caller learns from a refusal. Needs no device.
#include <sluice/sluice.hpp>

#include <cstdio>

int main() try {
  const auto context = sluice::Context::create(sluice::ContextDesc("gfx942:304")).value();
  sluice_kv_format format = sluice_kv_tensors(SLUICE_F16, 8, 100);
  sluice_attention attention = sluice_make_attention(SLUICE_F16, 32, &format);

  // <advice>
  auto support = context.support(attention);
  if (!support && support.error().code() == SLUICE_UNSUPPORTED)
    std::printf("%s: %s\n", support.error().field().data(), support.error().message().data());
  // </advice>
  format.head_dim_qk = format.head_dim_v = 96;
  sluice_mask mask = sluice_causal_mask();
  mask.window_left = 512; // without its flag
  attention.mask = &mask;
  support = context.support(attention);
  if (!support) std::printf("%s: %s\n", support.error().code_name(), support.error().message().data());
  mask.flags |= SLUICE_MASK_WINDOW_LEFT;
  std::printf("%s\n", context.support(attention).value().kernel);
} catch (const sluice::Exception &failed) {
  std::fprintf(stderr, "%s\n", failed.what());
  return 1;
}

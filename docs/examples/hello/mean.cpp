// The same call as hello.c, with the C++ header: what fails throws, and nothing needs to be released.
#include <sluice/sluice.hpp>

#include <algorithm>
#include <cstdio>
#include <iterator>

int main() try {
  constexpr int32_t key_count = 4, dim = 128;
  // <context>
  const auto context = sluice::Context::create(sluice::ContextDesc(SLUICE_DEVICE_EMULATED)).value();
  // </context>
  // <memory>
  struct Tensors {
    uint16_t q[dim], k[key_count][dim], v[key_count][dim], o[dim];
  } host = {};
  const auto memory = sluice::Memory::allocate(context, sizeof host).value();
  auto *device = static_cast<Tensors *>(memory.data());
  // </memory>
  constexpr uint16_t numbers[key_count] = {0x0000, 0x3c00, 0x4000, 0x4200};
  for (int32_t j = 0; j < key_count; ++j) // row j of V holds the number j
    std::fill(std::begin(host.v[j]), std::end(host.v[j]), numbers[j]);
  memory.write(&host, sizeof host).value();

  // <call>
  const auto format = sluice_kv_tensors(SLUICE_F16, 1, dim); // one KV head of 128 elements
  const auto plan = context.plan(sluice_make_attention(SLUICE_F16, 1, &format)).value();

  const auto kv = sluice_make_kv(&format, sluice_packed(device->k, 1, dim), sluice_packed(device->v, 1, dim));
  const auto keys = sluice_keys_of_equal(&kv, key_count);
  plan.run(sluice_make_call(1, 1, sluice_packed(device->q, 1, dim), sluice_packed(device->o, 1, dim), &keys))
      .value();
  // </call>
  memory.read(&host, sizeof host).value();
  std::printf("the mean of 0, 1, 2, 3 is 0x%04x in binary16\n", host.o[0]);
} catch (const sluice::Exception &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

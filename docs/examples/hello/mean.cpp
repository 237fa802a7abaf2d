// The same call as hello.c, with the C++ header: what fails throws, and nothing needs to be released.
#include <sluice/sluice.hpp>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr int64_t keys = 4, head_size = 128;

/// Device memory, through the HIP runtime that the context is bound to.
class Buffer {
public:
  Buffer(const sluice::Context &context, std::vector<uint16_t> initial)
      : context(context), host(std::move(initial)) {
    check(context.hip<int(void **, size_t)>("hipMalloc")(&device, bytes()));
    copy(device, host.data(), 1);
  }
  Buffer(const Buffer &) = delete;
  ~Buffer() { context.hip<int(void *)>("hipFree")(device); }

  const std::vector<uint16_t> &download() { // after all work on the default stream
    copy(host.data(), device, 2);
    return host;
  }
  void *data() const { return device; }

private:
  static void check(int hip_code) {
    if (hip_code != 0) throw std::runtime_error("HIP error " + std::to_string(hip_code));
  }
  void copy(void *to, const void *from, int kind) {
    check(context.hip<int(void *, const void *, size_t, int)>("hipMemcpy")(to, from, bytes(), kind));
  }
  size_t bytes() const { return 2 * host.size(); }

  const sluice::Context &context;
  std::vector<uint16_t> host;
  void *device = nullptr;
};

} // namespace

int main() try {
  // <context>
  const auto context = sluice::Context::create(sluice::ContextDesc(SLUICE_DEVICE_EMULATED)).value();
  // </context>
  const std::vector<uint16_t> zeros(keys * head_size);
  std::vector<uint16_t> rows(keys * head_size); // row j of V holds the number j
  constexpr uint16_t numbers[] = {0x0000, 0x3c00, 0x4000, 0x4200};
  for (size_t i = 0; i < rows.size(); ++i)
    rows[i] = numbers[i / head_size];
  Buffer q_memory(context, std::vector<uint16_t>(head_size)), k_memory(context, zeros),
      v_memory(context, rows), o_memory(context, std::vector<uint16_t>(head_size));

  // <call>
  using sluice::TensorView;
  const auto q = TensorView::bshd(q_memory.data(), SLUICE_F16, 1, 1, 1, head_size);
  const auto k = TensorView::bshd(k_memory.data(), SLUICE_F16, 1, keys, 1, head_size);
  const auto v = TensorView::bshd(v_memory.data(), SLUICE_F16, 1, keys, 1, head_size);
  const auto o = TensorView::bshd(o_memory.data(), SLUICE_F16, 1, 1, 1, head_size);
  const auto plan = context.plan(sluice::dense_problem(q, k, v, o)).value();
  plan.run(sluice::dense_args(q, k, v, o).value(), sluice::Launch()).value();
  // </call>
  std::printf("the mean of 0, 1, 2, 3 is 0x%04x in binary16\n", o_memory.download()[0]);
} catch (const std::exception &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

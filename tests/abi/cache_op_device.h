//===- cache_op_device.h - a device with kernels of cache operations, and their arguments ---------------===//
#pragma once

#include "cache_op_fixture.h"

#include "package/cache_op_kernargs.h"
#include "support/divisor.h"

#include <vector>

namespace sluice::test {

/// A FakeHip with a context that has kernels for good calls, and the arguments of a call's last launch.
class CacheOpDevice {
public:
  CacheOpDevice() : pack(make_pack()), context(make_context(context_desc(SLUICE_DEVICE_HIP, pack))) {}

  package::AppendKernargs append(const AppendCall &call) { return kernargs<package::AppendKernargs>(call); }
  package::StepKernargs step(const AppendCall &call) { return kernargs<package::StepKernargs>(call); }
  package::MergeKernargs merge(const sluice_merge_args &call) {
    return kernargs<package::MergeKernargs>(call);
  }
  package::PageCopyKernargs copy(const CopyCall &call) { return kernargs<package::PageCopyKernargs>(call); }
  package::PageCopyKernargs copy(const GatherCall &call) { return kernargs<package::PageCopyKernargs>(call); }

  FakeHip hip;
  std::vector<std::byte> pack;
  ContextHandle context;

private:
  static std::vector<std::byte> make_pack() {
    package::PackWriter writer("test", "22.1.8");
    for (const char *name :
         {"append_step_f16_e4m3fnuz", "append_step_f16_e5m2fnuz", "append_step_f16_f16", "append_step_f16_i8",
          "append_step_f16_q4_0", "append_step_f16_u4", "kv_append_f16_e4m3fnuz", "kv_append_f16_f16",
          "kv_copy_e4m3fnuz_bf16", "kv_copy_e4m3fnuz_e4m3fnuz", "kv_copy_f16_e4m3fnuz", "kv_copy_f16_f16",
          "kv_copy_i8_f16", "kv_copy_q4_0_f16", "kv_copy_q8_0_q8_0", "kv_copy_u4_f16", "merge_states_f16_f16",
          "merge_states_f32_e4m3fnuz", "merge_states_f32_f16"}) {
      const package::KernelName kernel = package::parse_kernel_name(name).value();
      add_fake_kernel(writer, cache_op_entry(kernel.operation, kernel.dtype, kernel.to_dtype));
    }
    return writer.finish();
  }

  template <typename Kernargs, typename Call> Kernargs kernargs(const Call &call) {
    Error error;
    const sluice_status status = run(context, call, nullptr, &error);
    INFO(error.field << ": " << error.message);
    REQUIRE(status == SLUICE_OK);
    return hip.launch.as<Kernargs>();
  }
};

/// The kernel's form of the numbers: support/divisor.h.
inline uint32_t divided(uint32_t value, uint32_t magic, uint32_t shift) {
  return uint32_t(uint64_t{2 * value} * magic >> 32) >> shift;
}
inline uint64_t divided(uint64_t value, uint64_t magic, uint32_t shift) {
  return uint64_t(support::Uint128{2 * value} * magic >> 64) >> shift;
}

/// The bytes that U4 and ggml's blocks have for these elements; of other types, elements.
inline int64_t counted(uint32_t type, int64_t elements) {
  return type == SLUICE_U4 ? elements / 2 : type == SLUICE_Q4_0 ? elements / 32 * 18 : elements;
}
inline const void *either(const void *one, const void *other) {
  return one != nullptr ? one : other;
}

// Rows of passed_members.h: the strides of a cache, and a divisor. `prefix` is that of the arguments' names.
#define CACHE_STRIDES(tensor, type, prefix)                                                                  \
  FOLLOWS(counted(type, tensor.stride[0]), a.prefix##page_stride),                                           \
      PASSES(counted(type, tensor.stride[1]), a.prefix##row_stride),                                         \
      PASSES(counted(type, tensor.stride[2]), a.prefix##head_stride),                                        \
      FOLLOWS(tensor.stride[3], a.prefix##pack_stride)
#define DIVIDES_BY(number, prefix) FOLLOWS(1000 / (number), divided(1000, a.prefix##magic, a.prefix##shift))

} // namespace sluice::test

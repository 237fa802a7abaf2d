//===- module_functions.cpp - HIP's functions about modules and launches --------------------------------===//
//
// A launch is checked and its arguments are copied before the call returns. Faults while it runs are
// reported, and stay with the device as an error until it is cleared.
//
//===----------------------------------------------------------------------------------------------------===//
#include <algorithm>

#include "emulator/hip/capture.h"
#include "emulator/hip/device.h"
#include "emulator/hip/error.h"
#include "emulator/hip/fat_binary.h"
#include "emulator/hip/functions.h"
#include "emulator/hip/handles.h"
#include "emulator/hip/module.h"
#include "emulator/hip/operations.h"
#include "emulator/hip/scheduler.h"
#include "emulator/hip/streams.h"
#include "package/occupancy.h"

namespace sluice::emulator::hip {

namespace {

/// A module and the handles of its kernels.
struct LoadedModule {
  std::shared_ptr<Module> module;
  std::vector<std::pair<std::string, hipFunction_t>> functions;
  std::mutex mutex; // guards `functions`
};

using ModuleHandles = Handles<hipModule_t, LoadedModule>;
using FunctionHandles = Handles<hipFunction_t, Function>;

hipModule_t load(std::vector<std::byte> elf) {
  auto loaded = std::make_shared<LoadedModule>();
  loaded->module = std::make_shared<Module>(std::move(elf), current_device());
  return ModuleHandles::get().add(std::move(loaded));
}

/// hipModuleLaunchKernel's checks, in HIP's order.
void check_launch(const package::Kernel &kernel, const LaunchShape &shape) {
  for (uint32_t extent : shape.grid)
    require(extent != 0, hipErrorInvalidValue);
  for (uint32_t extent : shape.block)
    require(extent != 0, hipErrorInvalidConfiguration);
  uint64_t threads = 1;
  for (uint32_t extent : shape.block) {
    require(extent <= uint32_t(max_workgroup_threads), hipErrorInvalidValue);
    threads *= extent;
  }
  require(threads <= uint64_t(max_workgroup_threads), hipErrorInvalidValue);
  for (int axis = 0; axis < 3; ++axis)
    require(uint64_t(shape.grid[axis]) * shape.block[axis] <= UINT32_MAX, hipErrorInvalidConfiguration);
  require(threads <= kernel.max_workgroup_size, hipErrorLaunchFailure);
  require(uint64_t(kernel.lds_bytes) + shape.dynamic_lds_bytes <= uint64_t(lds_bytes), hipErrorInvalidValue);
}

/// The number of workgroups of a kernel that fit on a compute unit.
int resident_blocks(const package::Kernel &kernel, int block_size, size_t dynamic_lds_bytes) {
  const uint64_t lds = kernel.lds_bytes + uint64_t(dynamic_lds_bytes);
  if (uint32_t(block_size) > kernel.max_workgroup_size || dynamic_lds_bytes > size_t(lds_bytes) ||
      lds > uint64_t(lds_bytes))
    return 0;
  return int(
      package::occupancy(kernel.descriptor.vgprs(), uint32_t(lds), uint32_t(block_size)).workgroups_per_cu);
}

constexpr unsigned disable_caching_override = 1; // hipOccupancyDisableCachingOverride: no such cache
constexpr unsigned any_order_launch = 1;         // hipExtAnyOrderLaunch: allows overlap, does not require it

} // namespace

KernelLaunch checked_launch(hipFunction_t function, const LaunchShape &shape, void **parameters,
                            void **extra) {
  require(function != nullptr, hipErrorInvalidImage);
  std::shared_ptr<const Function> found = FunctionHandles::get().find(function);
  check_launch(*found->kernel, shape);
  std::vector<std::byte> arguments = kernel_arguments(*found->kernel, parameters, extra);
  return {std::move(found), shape, std::move(arguments)};
}

hipError_t hipModuleLoadData(hipModule_t *module, const void *image) {
  return call([&] {
    require(module != nullptr && image != nullptr, hipErrorInvalidValue);
    *module = load(code_object_of_image(image));
  });
}

hipError_t hipModuleLoadFatBinary(hipModule_t *module, const void *image) {
  return hipModuleLoadData(module, image);
}

hipError_t hipModuleLoad(hipModule_t *module, const char *path) {
  return call([&] {
    require(module != nullptr && path != nullptr, hipErrorInvalidValue);
    *module = load(code_object_of_file(path));
  });
}

hipError_t hipModuleLoadDataEx(hipModule_t *module, const void *image, unsigned, int *, void **) {
  return hipModuleLoadData(module, image); // the options are for compilers that are not here
}

hipError_t hipModuleUnload(hipModule_t module) {
  return call([&] {
    const std::shared_ptr<LoadedModule> loaded = ModuleHandles::get().find(module);
    refuse_unsafe_call();
    Scheduler::get().wait_all();
    ModuleHandles::get().remove(module);
    const std::lock_guard lock(loaded->mutex);
    for (const auto &[name, handle] : loaded->functions)
      FunctionHandles::get().remove(handle);
    loaded->functions.clear();
  });
}

hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name) {
  return call([&] {
    require(function != nullptr && name != nullptr, hipErrorInvalidValue);
    const std::shared_ptr<LoadedModule> loaded = ModuleHandles::get().find(module);
    const std::lock_guard lock(loaded->mutex);
    for (const auto &[known, handle] : loaded->functions)
      if (known == name) {
        *function = handle;
        return;
      }
    const package::Kernel *const kernel = loaded->module->object().find_kernel(name);
    require(kernel != nullptr, hipErrorNotFound);
    loaded->functions.reserve(loaded->functions.size() + 1);
    const hipFunction_t handle =
        FunctionHandles::get().add(std::make_shared<Function>(Function{loaded->module, kernel}));
    loaded->functions.emplace_back(kernel->name, handle);
    *function = handle;
  });
}

hipError_t hipModuleGetFunctionCount(unsigned *count, hipModule_t module) {
  return call([&] {
    require(count != nullptr, hipErrorInvalidValue);
    *count = unsigned(ModuleHandles::get().find(module)->module->object().kernels().size());
  });
}

hipError_t hipModuleGetGlobal(hipDeviceptr_t *pointer, size_t *size, hipModule_t module, const char *name) {
  return call([&] {
    require(name != nullptr && (pointer != nullptr || size != nullptr), hipErrorInvalidValue);
    const std::shared_ptr<LoadedModule> loaded = ModuleHandles::get().find(module);
    const std::span<std::byte> variable = loaded->module->program().variable(name);
    require(!variable.empty(), hipErrorNotFound);
    if (pointer) *pointer = variable.data();
    if (size) *size = variable.size();
  });
}

hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                 unsigned block_x, unsigned block_y, unsigned block_z,
                                 unsigned dynamic_lds_bytes, hipStream_t stream, void **parameters,
                                 void **extra) {
  return call([&] {
    const LaunchShape shape{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, dynamic_lds_bytes};
    const std::shared_ptr<Stream> queue = work_stream(stream);
    KernelLaunch launch = checked_launch(function, shape, parameters, extra);
    require(launch.function->module->device() == queue->device, hipErrorInvalidHandle);
    submit(queue, std::move(launch));
  });
}

hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t function, unsigned grid_x, unsigned grid_y,
                                            unsigned grid_z, unsigned block_x, unsigned block_y,
                                            unsigned block_z, unsigned dynamic_lds_bytes, hipStream_t stream,
                                            void **parameters) {
  return call([&] {
    const LaunchShape shape{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, dynamic_lds_bytes};
    const std::shared_ptr<Stream> queue = work_stream(stream);
    KernelLaunch launch = checked_launch(function, shape, parameters, nullptr);
    require(launch.function->module->device() == queue->device, hipErrorInvalidHandle);
    // All of its workgroups wait for each other, so they must be resident at once.
    const int fitting =
        resident_blocks(*launch.function->kernel, int(block_x * block_y * block_z), dynamic_lds_bytes);
    launch.cooperative = true;
    uint64_t blocks = 1;
    for (uint32_t extent : shape.grid)
      require((blocks *= extent) <= uint64_t(fitting) * compute_units, hipErrorCooperativeLaunchTooLarge);
    submit(queue, std::move(launch));
  });
}

hipError_t hipExtModuleLaunchKernel(hipFunction_t function, unsigned items_x, unsigned items_y,
                                    unsigned items_z, unsigned block_x, unsigned block_y, unsigned block_z,
                                    size_t dynamic_lds_bytes, hipStream_t stream, void **parameters,
                                    void **extra, hipEvent_t start, hipEvent_t stop, unsigned flags) {
  return call([&] {
    require(flags <= any_order_launch && dynamic_lds_bytes <= size_t(lds_bytes), hipErrorInvalidValue);
    const std::array<uint32_t, 3> items{items_x, items_y, items_z};
    LaunchShape shape{{}, {block_x, block_y, block_z}, uint32_t(dynamic_lds_bytes)};
    for (size_t axis = 0; axis < 3; ++axis) {
      require(shape.block[axis] != 0, hipErrorInvalidConfiguration);
      // The last workgroup of a row would be smaller, which the machine does not support.
      require(items[axis] % shape.block[axis] == 0, hipErrorInvalidValue);
      shape.grid[axis] = items[axis] / shape.block[axis];
    }
    const std::shared_ptr<Stream> queue = work_stream(stream);
    KernelLaunch launch = checked_launch(function, shape, parameters, extra);
    require(launch.function->module->device() == queue->device, hipErrorInvalidHandle);
    for (hipEvent_t event : {start, stop})
      if (event) find_event(event);
    if (start || stop) refuse_while_capturing(queue);
    if (start) require(hipEventRecord(start, stream) == hipSuccess, last_error());
    submit(queue, std::move(launch));
    if (stop) require(hipEventRecord(stop, stream) == hipSuccess, last_error());
  });
}

hipError_t hipFuncGetAttribute(int *value, hipFunction_attribute attribute, hipFunction_t function) {
  return call([&] {
    require(value != nullptr, hipErrorInvalidValue);
    const std::shared_ptr<Function> found = FunctionHandles::get().find(function);
    const package::Kernel &kernel = *found->kernel;
    switch (attribute) {
    case HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = int(kernel.max_workgroup_size);
      return;
    case HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = int(kernel.lds_bytes);
      return;
    case HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = int(kernel.private_bytes);
      return;
    case HIP_FUNC_ATTRIBUTE_NUM_REGS:
      *value = int(kernel.has_metadata ? kernel.vgpr_count : kernel.descriptor.vgprs());
      return;
    case HIP_FUNC_ATTRIBUTE_PTX_VERSION:
    case HIP_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = 94; // 10 * major + minor
      return;
    case HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = lds_bytes - int(kernel.lds_bytes);
      return;
    case HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    case HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = 0;
      return;
    }
    throw Failure(hipErrorInvalidValue);
  });
}

hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, hipFunction_t function,
                                                              int block_size, size_t dynamic_lds_bytes) {
  return call([&] {
    require(blocks != nullptr && block_size > 0, hipErrorInvalidValue);
    *blocks = resident_blocks(*FunctionHandles::get().find(function)->kernel, block_size, dynamic_lds_bytes);
  });
}

hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, hipFunction_t function,
                                                                       int block_size,
                                                                       size_t dynamic_lds_bytes,
                                                                       unsigned flags) {
  return call([&] {
    require(flags <= disable_caching_override, hipErrorInvalidValue);
    return hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size,
                                                              dynamic_lds_bytes);
  });
}

hipError_t hipModuleOccupancyMaxPotentialBlockSize(int *grid_size, int *block_size, hipFunction_t function,
                                                   size_t dynamic_lds_bytes, int largest_block) {
  return call([&] {
    require(grid_size != nullptr && block_size != nullptr && largest_block >= 0, hipErrorInvalidValue);
    const package::Kernel &kernel = *FunctionHandles::get().find(function)->kernel;
    int largest = int(std::min<uint32_t>(kernel.max_workgroup_size, max_workgroup_threads));
    if (largest_block != 0) largest = std::min(largest, largest_block);
    int best = 0; // most work-items on a compute unit; of equal block sizes the largest
    for (int size = largest; size > 0; size -= size % wave_lanes ? size % wave_lanes : wave_lanes) {
      const int blocks = resident_blocks(kernel, size, dynamic_lds_bytes);
      if (blocks * size <= best) continue;
      best = blocks * size;
      *block_size = size;
      *grid_size = blocks * compute_units;
    }
    require(best != 0, hipErrorInvalidValue);
  });
}

hipError_t hipModuleOccupancyMaxPotentialBlockSizeWithFlags(int *grid_size, int *block_size,
                                                            hipFunction_t function, size_t dynamic_lds_bytes,
                                                            int largest_block, unsigned flags) {
  return call([&] {
    require(flags <= disable_caching_override, hipErrorInvalidValue);
    return hipModuleOccupancyMaxPotentialBlockSize(grid_size, block_size, function, dynamic_lds_bytes,
                                                   largest_block);
  });
}

} // namespace sluice::emulator::hip

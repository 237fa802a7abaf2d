// A graph built node by node: a histogram with its bins cleared by the graph, its kernels named as the
// program names them; then with other parameters, as a clone, and updated from another graph.
#include "program.h"

constexpr unsigned bins = 64;

__global__ void count_values(unsigned *histogram, const unsigned *values, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) atomicAdd(&histogram[values[i] % bins], 1u);
}

__global__ void weigh(unsigned *weighted, const unsigned *histogram, unsigned weight) {
  weighted[threadIdx.x] = histogram[threadIdx.x] * weight;
}

void not_a_kernel() {}

void count_calls(void *user) {
  ++*static_cast<int *>(user);
}

hipKernelNodeParams kernel(const void *function, unsigned blocks, unsigned threads, void **arguments) {
  hipKernelNodeParams parameters = {};
  parameters.func = const_cast<void *>(function);
  parameters.gridDim = dim3(blocks);
  parameters.blockDim = dim3(threads);
  parameters.kernelParams = arguments;
  return parameters;
}

int main() {
  constexpr unsigned count = 1000;
  std::vector<unsigned> values(count), results(bins);
  unsigned seed = 5;
  unsigned *device_values = to_device(values), *histogram = nullptr, *weighted = nullptr;
  HIP(hipMalloc(reinterpret_cast<void **>(&histogram), bins * sizeof(unsigned)));
  HIP(hipMalloc(reinterpret_cast<void **>(&weighted), bins * sizeof(unsigned)));
  int calls = 0;

  hipGraph_t graph;
  hipGraphNode_t upload, clear, counted, weighed, download, told;
  HIP(hipGraphCreate(&graph, 0));
  HIP(hipGraphAddMemcpyNode1D(&upload, graph, nullptr, 0, device_values, values.data(),
                              count * sizeof(unsigned), hipMemcpyHostToDevice));
  hipMemsetParams zeros = {};
  zeros.dst = histogram;
  zeros.elementSize = 4;
  zeros.width = bins;
  zeros.height = 1;
  HIP(hipGraphAddMemsetNode(&clear, graph, nullptr, 0, &zeros));
  unsigned wanted = count, weight = 3;
  void *count_arguments[] = {&histogram, &device_values, &wanted};
  const hipGraphNode_t before_counting[] = {upload, clear};
  const auto *const count_stub = reinterpret_cast<const void *>(&count_values);
  const auto *const weigh_stub = reinterpret_cast<const void *>(&weigh);
  hipKernelNodeParams parameters = kernel(count_stub, (count + 127) / 128, 128, count_arguments);
  HIP(hipGraphAddKernelNode(&counted, graph, before_counting, 2, &parameters));
  void *weigh_arguments[] = {&weighted, &histogram, &weight};
  parameters = kernel(weigh_stub, 1, bins, weigh_arguments);
  HIP(hipGraphAddKernelNode(&weighed, graph, &counted, 1, &parameters));
  HIP(hipGraphAddMemcpyNode1D(&download, graph, &weighed, 1, results.data(), weighted,
                              bins * sizeof(unsigned), hipMemcpyDeviceToHost));
  const hipHostNodeParams call{count_calls, &calls};
  HIP(hipGraphAddHostNode(&told, graph, &download, 1, &call));

  hipGraphNode_t wrong;
  parameters = kernel(reinterpret_cast<const void *>(&not_a_kernel), 1, 64, count_arguments);
  EXPECT(hipGraphAddKernelNode(&wrong, graph, nullptr, 0, &parameters) != hipSuccess);
  (void)hipGetLastError();

  hipStream_t stream;
  HIP(hipStreamCreate(&stream));
  const auto run = [&](hipGraphExec_t exec, unsigned expected_weight) {
    std::vector<unsigned> expected(bins);
    for (unsigned &value : values) {
      value = next_random(seed) >> 16;
      expected[value % bins] += expected_weight;
    }
    HIP(hipGraphLaunch(exec, stream));
    HIP(hipStreamSynchronize(stream));
    EXPECT(results == expected);
  };
  hipGraphExec_t exec;
  HIP(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
  for (int i = 0; i < 3; ++i)
    run(exec, 3);
  EXPECT(calls == 3);

  // A node of the instantiated graph, not of the one it was made from.
  weight = 7;
  parameters = kernel(weigh_stub, 1, bins, weigh_arguments);
  HIP(hipGraphExecKernelNodeSetParams(exec, weighed, &parameters));
  run(exec, 7);

  hipGraph_t clone;
  HIP(hipGraphClone(&clone, graph));
  hipGraphNode_t twin;
  HIP(hipGraphNodeFindInClone(&twin, weighed, clone));
  EXPECT(twin != weighed);
  size_t before = 0;
  HIP(hipGraphNodeGetDependencies(twin, nullptr, &before));
  EXPECT(before == 1);
  weight = 11;
  parameters = kernel(weigh_stub, 1, bins, weigh_arguments);
  HIP(hipGraphKernelNodeSetParams(twin, &parameters));
  hipGraphExec_t cloned;
  HIP(hipGraphInstantiate(&cloned, clone, nullptr, nullptr, 0));
  run(cloned, 11);
  run(exec, 7);

  // The first one must do what the clone does now.
  hipGraphNode_t error_node;
  hipGraphExecUpdateResult result;
  HIP(hipGraphExecUpdate(exec, clone, &error_node, &result));
  EXPECT(result == hipGraphExecUpdateSuccess);
  run(exec, 11);
  // A graph of another shape is refused, and changes nothing.
  HIP(hipGraphAddEmptyNode(&wrong, clone, nullptr, 0));
  EXPECT(hipGraphExecUpdate(exec, clone, &error_node, &result) == hipErrorGraphExecUpdateFailure);
  EXPECT(result == hipGraphExecUpdateErrorTopologyChanged);
  run(exec, 11);
  EXPECT(calls == 8);

  HIP(hipGraphExecDestroy(exec));
  HIP(hipGraphExecDestroy(cloned));
  HIP(hipGraphDestroy(clone));
  HIP(hipGraphDestroy(graph));
  HIP(hipStreamDestroy(stream));
  HIP(hipFree(device_values));
  HIP(hipFree(histogram));
  HIP(hipFree(weighted));
  return 0;
}

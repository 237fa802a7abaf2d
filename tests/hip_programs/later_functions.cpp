// Functions that came after HIP 5: this program is linked with the libraries of HIP 6 and 7, whose versions
// of them it asks for. Debian's headers, which it is compiled with, do not have them.
#include "program.h"

#include <algorithm>
#include <numeric>

extern "C" {
hipError_t hipExtHostAlloc(void **pointer, size_t size, unsigned flags);                  // HIP 6.3
hipError_t hipEventRecordWithFlags(hipEvent_t event, hipStream_t stream, unsigned flags); // HIP 6.4
hipError_t hipModuleGetFunctionCount(unsigned *count, hipModule_t module);                // HIP 7.1
}

namespace {

constexpr unsigned external = 1; // hipEventRecordExternal, hipEventWaitExternal
constexpr int count = 256;

__global__ void add_one(int *values) {
  ++values[threadIdx.x];
}

/// Replays a graph that records an event of its own and waits for one from outside.
void replay(int *values) {
  hipStream_t stream, other;
  hipEvent_t outside, inside;
  HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  HIP(hipStreamCreateWithFlags(&other, hipStreamNonBlocking));
  HIP(hipEventCreate(&outside));
  HIP(hipEventCreate(&inside));

  HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  HIP(hipStreamWaitEvent(stream, outside, external));
  add_one<<<1, count, 0, stream>>>(values);
  HIP(hipEventRecordWithFlags(inside, stream, external));
  hipGraph_t graph;
  HIP(hipStreamEndCapture(stream, &graph));
  size_t nodes = 0;
  HIP(hipGraphGetNodes(graph, nullptr, &nodes));
  EXPECT(nodes == 3);
  hipGraphExec_t exec;
  HIP(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));

  // Each replay waits for the latest record outside, and the copy for the replay's own record.
  add_one<<<1, count, 0, other>>>(values);
  HIP(hipEventRecordWithFlags(outside, other, 0));
  HIP(hipGraphLaunch(exec, stream));
  HIP(hipStreamWaitEvent(other, inside, 0));
  add_one<<<1, count, 0, other>>>(values);
  HIP(hipEventRecord(outside, other));
  HIP(hipGraphLaunch(exec, stream));
  HIP(hipEventSynchronize(inside));

  HIP(hipGraphExecDestroy(exec));
  HIP(hipGraphDestroy(graph));
  for (hipEvent_t event : {outside, inside})
    HIP(hipEventDestroy(event));
  for (hipStream_t each : {stream, other})
    HIP(hipStreamDestroy(each));
}

} // namespace

int main() {
  int *host = nullptr;
  HIP(hipExtHostAlloc(reinterpret_cast<void **>(&host), count * sizeof(int), 0));
  std::iota(host, host + count, 0);
  int *values = nullptr;
  HIP(hipMalloc(reinterpret_cast<void **>(&values), count * sizeof(int)));
  HIP(hipMemcpy(values, host, count * sizeof(int), hipMemcpyHostToDevice));
  replay(values);
  HIP(hipMemcpy(host, values, count * sizeof(int), hipMemcpyDeviceToHost));
  for (int i = 0; i < count; ++i)
    EXPECT(host[i] == i + 4);
  unsigned functions = 0;
  EXPECT(hipModuleGetFunctionCount(&functions, nullptr) == hipErrorInvalidHandle);
  HIP(hipFree(values));
  HIP(hipHostFree(host));
}

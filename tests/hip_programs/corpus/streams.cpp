// Streams, events and graphs: work that is ordered, and work that is not.
#include "corpus.h"

namespace {

constexpr int count = 512;

__global__ void twice(int *values) {
  values[blockIdx.x * blockDim.x + threadIdx.x] *= 2;
}
__global__ void add(int *values, const int *others) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] += others[i];
}

hipStream_t new_stream() {
  hipStream_t stream;
  HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  return stream;
}

template <Twin twin> void fork() {
  const hipStream_t one = new_stream(), other = new_stream();
  hipEvent_t ready;
  HIP(hipEventCreate(&ready));
  int *const values = to_device(std::vector<int>(count, 3)), *const sums =
                                                                 to_device(std::vector<int>(count, 1));
  twice<<<2, 256, 0, one>>>(values);
  HIP(hipEventRecord(ready, one));
  if (twin == Twin::right) HIP(hipStreamWaitEvent(other, ready, 0));
  add<<<2, 256, 0, other>>>(sums, values);
  expect(twin, sums, std::vector<int>(count, 7));
}

template <Twin twin> void copies() {
  const hipStream_t one = new_stream(), other = new_stream();
  int *const values = to_device(std::vector<int>(count, 3)), *const target = zeros<int>(count);
  twice<<<2, 256, 0, one>>>(values);
  if (twin == Twin::right) HIP(hipStreamSynchronize(one));
  HIP(hipMemcpyAsync(target, values, count * sizeof(int), hipMemcpyDeviceToDevice, other));
  expect(twin, target, std::vector<int>(count, 6));
}

template <Twin twin> void pooled() {
  const hipStream_t one = new_stream(), other = new_stream();
  hipEvent_t allocated;
  HIP(hipEventCreate(&allocated));
  int *values = nullptr;
  HIP(hipMallocAsync(reinterpret_cast<void **>(&values), count * sizeof(int), one));
  HIP(hipEventRecord(allocated, one));
  if (twin == Twin::right) HIP(hipStreamWaitEvent(other, allocated, 0));
  HIP(hipMemsetAsync(values, 0, count * sizeof(int), other));
  expect(twin, values, std::vector<int>(count));
}

void raise(void *flag) {
  *static_cast<volatile int *>(flag) = 1;
}

} // namespace

CASE(two_streams_with_an_event, "") {
  fork<Twin::right>();
}
CASE(two_streams_without_an_event, "stream_race") {
  fork<Twin::wrong>();
}
CASE(copy_after_a_wait, "") {
  copies<Twin::right>();
}
CASE(copy_without_a_wait, "stream_race") {
  copies<Twin::wrong>();
}
CASE(memory_of_a_stream, "") {
  pooled<Twin::right>();
}
CASE(memory_of_another_stream, "stream_race") {
  pooled<Twin::wrong>();
}
CASE(host_function_seen_by_its_flag, "") {
  const hipStream_t one = new_stream(), other = new_stream();
  int *const values = to_device(std::vector<int>(count, 3)), *const sums =
                                                                 to_device(std::vector<int>(count, 1));
  volatile int flag = 0;
  twice<<<2, 256, 0, one>>>(values);
  HIP(hipLaunchHostFunc(one, raise, const_cast<int *>(&flag)));
  while (flag == 0) {
  }
  add<<<2, 256, 0, other>>>(sums, values);
  expect(Twin::right, sums, std::vector<int>(count, 7));
}
CASE(captured_fork, "") {
  const hipStream_t one = new_stream(), other = new_stream();
  hipEvent_t forked, joined;
  HIP(hipEventCreate(&forked));
  HIP(hipEventCreate(&joined));
  int *const values = to_device(std::vector<int>(count, 3)), *const sums =
                                                                 to_device(std::vector<int>(count, 1));
  hipGraph_t graph;
  hipGraphExec_t replay;
  HIP(hipStreamBeginCapture(one, hipStreamCaptureModeGlobal));
  HIP(hipEventRecord(forked, one));
  HIP(hipStreamWaitEvent(other, forked, 0));
  twice<<<2, 256, 0, one>>>(values);
  twice<<<2, 256, 0, other>>>(sums);
  HIP(hipEventRecord(joined, other));
  HIP(hipStreamWaitEvent(one, joined, 0));
  add<<<2, 256, 0, one>>>(sums, values);
  HIP(hipStreamEndCapture(one, &graph));
  HIP(hipGraphInstantiate(&replay, graph, nullptr, nullptr, 0));
  for (int i = 0; i < 2; ++i)
    HIP(hipGraphLaunch(replay, one));
  expect(Twin::right, sums, std::vector<int>(count, (2 * 1 + 6) * 2 + 12));
}
CASE(memory_freed_in_use, "freed_in_use") {
  const hipStream_t one = new_stream(), other = new_stream();
  int *values = nullptr;
  HIP(hipMallocAsync(reinterpret_cast<void **>(&values), count * sizeof(int), one));
  HIP(hipMemsetAsync(values, 0, count * sizeof(int), one));
  HIP(hipFreeAsync(values, other));
  finish();
}

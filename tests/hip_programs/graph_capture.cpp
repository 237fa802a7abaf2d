// A pipeline captured from two streams that fork and join through events, replayed with new inputs, then with
// new parameters of one of its kernels.
#include "program.h"

__global__ void scale(float *out, const float *in, int count, float factor) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] = in[i] * factor;
}

__global__ void add(float *out, const float *one, const float *other, int count) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] = one[i] + other[i];
}

struct Log {
  const float *out;
  std::vector<float> firsts; // the first result of each replay
};

void note(void *user) {
  Log *const log = static_cast<Log *>(user);
  log->firsts.push_back(log->out[0]);
}

int main() {
  constexpr int count = 2000, threads = 256, blocks = (count + threads - 1) / threads;
  constexpr size_t bytes = count * sizeof(float);
  float *in = nullptr, *out = nullptr, *loaded, *left, *right, *sum;
  HIP(hipHostMalloc(reinterpret_cast<void **>(&in), bytes, 0));
  HIP(hipHostMalloc(reinterpret_cast<void **>(&out), bytes, 0));
  for (float **buffer : {&loaded, &left, &right, &sum})
    HIP(hipMalloc(reinterpret_cast<void **>(buffer), bytes));
  hipStream_t main_stream, side_stream;
  HIP(hipStreamCreateWithFlags(&main_stream, hipStreamNonBlocking));
  HIP(hipStreamCreateWithFlags(&side_stream, hipStreamNonBlocking));
  hipEvent_t fork, join;
  HIP(hipEventCreateWithFlags(&fork, hipEventDisableTiming));
  HIP(hipEventCreateWithFlags(&join, hipEventDisableTiming));
  Log log{out, {}};

  HIP(hipStreamBeginCapture(main_stream, hipStreamCaptureModeGlobal));
  HIP(hipMemcpyAsync(loaded, in, bytes, hipMemcpyHostToDevice, main_stream));
  HIP(hipEventRecord(fork, main_stream));
  HIP(hipStreamWaitEvent(side_stream, fork, 0));
  scale<<<blocks, threads, 0, main_stream>>>(left, loaded, count, 2.0f);
  scale<<<blocks, threads, 0, side_stream>>>(right, loaded, count, 3.0f);
  HIP(hipGetLastError());
  // The node of the side stream's kernel, to change its parameters later.
  hipStreamCaptureStatus status;
  unsigned long long id = 0;
  hipGraph_t captured = nullptr;
  const hipGraphNode_t *last = nullptr;
  size_t last_count = 0;
  HIP(hipStreamGetCaptureInfo_v2(side_stream, &status, &id, &captured, &last, &last_count));
  EXPECT(status == hipStreamCaptureStatusActive && last_count == 1);
  const hipGraphNode_t side_node = last[0];
  HIP(hipEventRecord(join, side_stream));
  HIP(hipStreamWaitEvent(main_stream, join, 0));
  add<<<blocks, threads, 0, main_stream>>>(sum, left, right, count);
  HIP(hipMemcpyAsync(out, sum, bytes, hipMemcpyDeviceToHost, main_stream));
  HIP(hipLaunchHostFunc(main_stream, note, &log));
  hipGraph_t graph = nullptr;
  HIP(hipStreamEndCapture(main_stream, &graph));
  EXPECT(graph == captured);

  size_t nodes = 0, edges = 0;
  HIP(hipGraphGetNodes(graph, nullptr, &nodes));
  HIP(hipGraphGetEdges(graph, nullptr, nullptr, &edges));
  EXPECT(nodes == 6 && edges == 6);
  EXPECT(log.firsts.empty()); // nothing has run yet
  hipGraphExec_t exec = nullptr;
  HIP(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));

  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < count; ++i)
      in[i] = float(i + 100 * round + 1);
    HIP(hipGraphLaunch(exec, main_stream));
    HIP(hipStreamSynchronize(main_stream));
    for (int i = 0; i < count; ++i)
      EXPECT(out[i] == in[i] * 5.0f);
  }

  int wanted = count;
  float factor = 10.0f;
  void *arguments[] = {&right, &loaded, &wanted, &factor};
  hipKernelNodeParams parameters = {};
  parameters.func = reinterpret_cast<void *>(&scale);
  parameters.gridDim = dim3(blocks);
  parameters.blockDim = dim3(threads);
  parameters.kernelParams = arguments;
  HIP(hipGraphExecKernelNodeSetParams(exec, side_node, &parameters));
  factor = 1000.0f; // the node has its own copy
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < count; ++i)
      in[i] = float(3 * i + round);
    HIP(hipGraphLaunch(exec, main_stream));
    HIP(hipStreamSynchronize(main_stream));
    for (int i = 0; i < count; ++i)
      EXPECT(out[i] == in[i] * 12.0f);
  }
  const std::vector<float> firsts{5.0f, 505.0f, 1005.0f, 1505.0f, 0.0f, 12.0f};
  EXPECT(log.firsts == firsts);

  HIP(hipGraphExecDestroy(exec));
  HIP(hipGraphDestroy(graph));
  HIP(hipEventDestroy(fork));
  HIP(hipEventDestroy(join));
  HIP(hipStreamDestroy(main_stream));
  HIP(hipStreamDestroy(side_stream));
  for (float *buffer : {loaded, left, right, sum})
    HIP(hipFree(buffer));
  HIP(hipHostFree(in));
  HIP(hipHostFree(out));
  return 0;
}

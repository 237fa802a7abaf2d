// A pipeline over streams: chunks go up, through two kernels and down, with events between two streams and a
// host function at the end.
#include "program.h"

__global__ void scale(float *values, int count, float factor) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) values[i] *= factor;
}

__global__ void add(float *values, const float *others, int count) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) values[i] += others[i];
}

int main() {
  constexpr int chunks = 8, chunk = 1024, pipes = 3;
  float *in = nullptr, *out = nullptr;
  HIP(hipHostMalloc(reinterpret_cast<void **>(&in), chunks * chunk * sizeof(float), 0));
  HIP(hipHostMalloc(reinterpret_cast<void **>(&out), chunks * chunk * sizeof(float), 0));
  for (int i = 0; i < chunks * chunk; ++i)
    in[i] = float(i % 97);

  hipStream_t streams[pipes], adder;
  hipEvent_t scaled[chunks], added[chunks];
  float *buffers[chunks], *ones = to_device(std::vector<float>(chunk, 1.0f));
  HIP(hipStreamCreateWithFlags(&adder, hipStreamNonBlocking));
  for (hipStream_t &stream : streams)
    HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  for (int i = 0; i < chunks; ++i) {
    hipStream_t stream = streams[i % pipes];
    HIP(hipEventCreateWithFlags(&scaled[i], hipEventDisableTiming));
    HIP(hipEventCreateWithFlags(&added[i], hipEventDisableTiming));
    HIP(hipMalloc(reinterpret_cast<void **>(&buffers[i]), chunk * sizeof(float)));
    HIP(hipMemcpyAsync(buffers[i], in + i * chunk, chunk * sizeof(float), hipMemcpyHostToDevice, stream));
    scale<<<chunk / 256, 256, 0, stream>>>(buffers[i], chunk, float(i + 1));
    HIP(hipEventRecord(scaled[i], stream));
    HIP(hipStreamWaitEvent(adder, scaled[i], 0));
    add<<<chunk / 256, 256, 0, adder>>>(buffers[i], ones, chunk);
    HIP(hipEventRecord(added[i], adder));
    HIP(hipStreamWaitEvent(stream, added[i], 0));
    HIP(hipMemcpyAsync(out + i * chunk, buffers[i], chunk * sizeof(float), hipMemcpyDeviceToHost, stream));
  }
  for (hipStream_t stream : streams)
    HIP(hipStreamSynchronize(stream));
  for (int i = 0; i < chunks * chunk; ++i)
    EXPECT(out[i] == float(i % 97) * float(i / chunk + 1) + 1.0f);

  hipEvent_t start, stop;
  HIP(hipEventCreate(&start));
  HIP(hipEventCreate(&stop));
  int count = chunk;
  float factor = 2.0f;
  void *parameters[] = {&buffers[0], &count, &factor};
  HIP(hipExtLaunchKernel(reinterpret_cast<const void *>(&scale), dim3(4), dim3(256), parameters, 0, adder,
                         start, stop, 0));
  HIP(hipEventSynchronize(stop));
  float milliseconds = -1;
  HIP(hipEventElapsedTime(&milliseconds, start, stop));
  EXPECT(milliseconds >= 0);
  EXPECT(to_host(buffers[0], 1)[0] == 2.0f * out[0]);

  for (hipStream_t stream : streams)
    HIP(hipStreamDestroy(stream));
  HIP(hipStreamDestroy(adder));
  HIP(hipHostFree(in));
  HIP(hipHostFree(out));
  return 0;
}

// The module API over the images named on the command line: code objects and bundles of module_kernels.cpp.
#include "program.h"

#include <fstream>
#include <iterator>

int main(int count, char **paths) {
  EXPECT(count > 1);
  for (int i = 1; i < count; ++i) {
    std::ifstream file(paths[i], std::ios::binary);
    const std::vector<char> image{std::istreambuf_iterator<char>(file), {}};
    hipModule_t module;
    HIP(hipModuleLoadData(&module, image.data()));
    hipFunction_t function;
    HIP(hipModuleGetFunction(&function, module, "axpy"));
    EXPECT(hipModuleGetFunction(&function, module, "missing") == hipErrorNotFound);
    hipDeviceptr_t offset;
    size_t bytes = 0;
    HIP(hipModuleGetGlobal(&offset, &bytes, module, "offset"));
    EXPECT(bytes == sizeof(float));
    float value = 3.0f;
    HIP(hipMemcpyHtoD(offset, &value, bytes));

    int elements = 777;
    float factor = 0.5f;
    const std::vector<float> x = random_floats(size_t(elements), 3), y = random_floats(size_t(elements), 4);
    float *device_x = to_device(x), *device_y = to_device(y);
    void *parameters[] = {&device_x, &device_y, &factor, &elements};
    HIP(hipModuleLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr));
    struct {
      float *x, *y;
      float factor;
      int elements;
    } packed = {device_x, device_y, factor, elements};
    size_t size = sizeof packed;
    void *extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &packed, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     HIP_LAUNCH_PARAM_END};
    HIP(hipModuleLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, nullptr, nullptr, extra));
    const std::vector<float> out = to_host(device_y, size_t(elements));
    for (size_t at = 0; at < out.size(); ++at)
      EXPECT(std::fabs(out[at] - (y[at] + 2 * (0.5f * x[at] + 3.0f))) < 1e-5f);
    HIP(hipFree(device_x));
    HIP(hipFree(device_y));
    HIP(hipModuleUnload(module));
  }
  return 0;
}

// A host program that brings its own machine code: it registers the images named on the command line as a
// compiler's start-up code would, finds kernels by the addresses it registered, and launches them with a
// block of arguments that is larger than the kernel declares. The first image is padded.s as a raw ELF, the
// others are module_kernels.cpp in all forms.
#include "program.h"

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>

extern "C" {
void **__hipRegisterFatBinary(const void *wrapper);
void __hipUnregisterFatBinary(void **binary);
void __hipRegisterFunction(void **binary, const void *kernel, char *host_name, const char *device_name,
                           unsigned threads, void *, void *, void *, void *, int *);
// New in HIP 6.2, which is later than this header.
hipError_t hipGetFuncBySymbol(hipFunction_t *function, const void *kernel);
}

namespace {

struct Wrapper {
  uint32_t magic = 0x48495046;
  uint32_t version = 1;
  const void *image;
  void *unused = nullptr;
};

std::vector<char> read_image(const char *path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> image{std::istreambuf_iterator<char>(file), {}};
  EXPECT(!image.empty());
  return image;
}

/// A registered image, and one of its kernels, whose address on the host is this object's.
class Registered {
public:
  Registered(const std::vector<char> &image, const char *kernel) : wrapper{.image = image.data()} {
    binary = __hipRegisterFatBinary(&wrapper);
    __hipRegisterFunction(binary, this, const_cast<char *>(kernel), kernel, ~0u, nullptr, nullptr, nullptr,
                          nullptr, nullptr);
  }
  ~Registered() {
    __hipUnregisterFatBinary(binary);
    hipFunction_t function;
    EXPECT(hipGetFuncBySymbol(&function, this) == hipErrorInvalidDeviceFunction);
  }
  hipFunction_t function() const {
    hipFunction_t function = nullptr;
    HIP(hipGetFuncBySymbol(&function, this));
    EXPECT(function != nullptr);
    return function;
  }

private:
  Wrapper wrapper;
  void **binary;
};

hipError_t launch(hipFunction_t function, unsigned groups, unsigned threads, void *arguments, size_t bytes) {
  void *extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, arguments, HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   HIP_LAUNCH_PARAM_END};
  return hipModuleLaunchKernel(function, groups, 1, 1, threads, 1, 1, 0, nullptr, nullptr, extra);
}

void check_padded(const std::vector<char> &image, const char *kernel, size_t declared_bytes) {
  const Registered registered(image, kernel);
  const std::vector<float> x = random_floats(64, 1);
  float *device_x = to_device(x), *device_y = to_device(std::vector<float>(64));
  // The block serves several kernels, and this one declares only its beginning.
  alignas(16) char arguments[512];
  std::memset(arguments, 0x5a, sizeof arguments);
  const float factor = 3.0f;
  std::memcpy(arguments, &device_y, sizeof device_y);
  std::memcpy(arguments + 16, &device_x, sizeof device_x);
  std::memcpy(arguments + 32, &factor, sizeof factor);
  if (declared_bytes != 0) {
    EXPECT(launch(registered.function(), 1, 64, arguments, declared_bytes - 1) == hipErrorInvalidValue);
    EXPECT(launch(registered.function(), 1, 64, nullptr, sizeof arguments) == hipErrorInvalidValue);
  }
  HIP(launch(registered.function(), 1, 64, arguments, sizeof arguments));
  const std::vector<float> out = to_host(device_y, 64);
  for (size_t at = 0; at < out.size(); ++at)
    EXPECT(out[at] == factor * x[at]);
  HIP(hipFree(device_x));
  HIP(hipFree(device_y));
}

/// Bytes beyond the block's arguments must not reach those that the compiler adds: the kernel finds the size
/// of its workgroup there.
void check_compiled(const std::vector<char> &image) {
  const Registered registered(image, "axpy");
  const int elements = 777;
  const std::vector<float> x = random_floats(size_t(elements), 3), y = random_floats(size_t(elements), 4);
  struct {
    float *x, *y;
    float factor;
    int elements;
    char beyond[1000];
  } arguments = {to_device(x), to_device(y), 0.5f, elements, {}};
  std::memset(arguments.beyond, 0x5a, sizeof arguments.beyond);
  HIP(launch(registered.function(), 4, 256, &arguments, sizeof arguments));
  const std::vector<float> out = to_host(arguments.y, size_t(elements));
  for (size_t at = 0; at < out.size(); ++at)
    EXPECT(std::fabs(out[at] - (y[at] + 0.5f * x[at])) < 1e-5f);
  HIP(hipFree(arguments.x));
  HIP(hipFree(arguments.y));
}

} // namespace

int main(int count, char **paths) {
  EXPECT(count > 2);
  const std::vector<char> padded = read_image(paths[1]);
  EXPECT(std::memcmp(padded.data(),
                     "\x7f"
                     "ELF",
                     4) == 0);
  check_padded(padded, "padded", 48);
  check_padded(padded, "unlisted", 0);
  for (int i = 2; i < count; ++i)
    check_compiled(read_image(paths[i]));

  hipFunction_t function;
  EXPECT(hipGetFuncBySymbol(&function, paths) == hipErrorInvalidDeviceFunction);
  EXPECT(hipGetFuncBySymbol(nullptr, paths) == hipErrorInvalidValue);
  return 0;
}

// What a careless program leaves behind. With the argument "careful" it does the same with care; with
// "failing" it ends with 3.
#include "program.h"

#include <cstring>

namespace {

__global__ void first_half(int *values, int count) {
  if (int(threadIdx.x) < count / 2) values[threadIdx.x] = 1;
}

} // namespace

int main(int argument_count, char **arguments) {
  const char *const how = argument_count > 1 ? arguments[1] : "";
  const bool careful = std::strcmp(how, "careful") == 0;
  constexpr int count = 64;
  int *values = nullptr;
  HIP(hipMalloc(reinterpret_cast<void **>(&values), count * sizeof(int)));
  first_half<<<1, count>>>(values, count);
  int host[count];
  const size_t copied = (careful ? count / 2 : count) * sizeof(int);
  HIP(hipMemcpy(host, values, copied, hipMemcpyDeviceToHost));
  first_half<<<0, count>>>(values, count); // refused
  if (careful) EXPECT(hipGetLastError() == hipErrorInvalidValue);
  if (careful) HIP(hipFree(values));
  return std::strcmp(how, "failing") == 0 ? 3 : 0;
}

// Small programs of the kinds that people write, each with the reports that it must give. A right program has
// none; its twin has one mistake. CASE defines one; corpus_test.py runs each in a process of its own.
#pragma once

#include "../program.h"

#include <span>

struct Case {
  const char *name;
  const char *reports; // kinds, separated by spaces, in the order of the alphabet; "" for a right program
  void (*run)();
};

class Cases {
public:
  explicit Cases(Case one) { all().push_back(one); }
  static std::vector<Case> &all() {
    static std::vector<Case> cases;
    return cases;
  }
};

#define CASE(name, reports)                                                                                  \
  static void run_##name();                                                                                  \
  static const Cases case_##name({#name, reports, run_##name});                                              \
  static void run_##name()

/// Whether a case contains its mistake.
enum class Twin { right, wrong };

/// Zeros on the device.
template <class T> T *zeros(size_t count) {
  return to_device(std::vector<T>(count));
}

/// Device memory that nothing has written.
template <class T> T *fresh(size_t count) {
  T *device = nullptr;
  HIP(hipMalloc(reinterpret_cast<void **>(&device), count * sizeof(T)));
  return device;
}

inline std::vector<int> random_ints(size_t count, unsigned seed) {
  std::vector<int> values(count);
  for (int &value : values)
    value = int(next_random(seed) >> 16);
  return values;
}

/// The end of a case: waits for the device, whose errors the reports explain.
inline void finish() {
  (void)hipDeviceSynchronize();
}

/// The result of a right program; a wrong one may have any.
template <class T> void expect(Twin twin, const T *device, const std::vector<T> &values) {
  finish();
  if (twin == Twin::right) EXPECT(to_host(device, values.size()) == values);
}

//===- check_attention.cpp - attention nodes of many kinds, by Sluice and by ggml's CPU backend --------===//
//
// Each node goes through ggml's scheduler, which may choose between the two. Results are compared with double
// precision. What Sluice computed has to be within the bound for its kernels, element by element, with Q
// rounded as they get it. The table has the largest share of the bound, the largest error with Q rounded, and
// those of both backends with Q as it is.
//
//===----------------------------------------------------------------------------------------------------===//

#include "check_backends.h"
#include "check_case.h"
#include "check_reference.h"

#include <cmath>
#include <cstdio>

namespace {

using namespace check;

constexpr Case cases[] = {
    // name, head sizes of K and V, heads of Q and K, rows, keys, sequences
    {"one token", 128, 128, 4, 4, 1, 300, 1},
    {"one token, 8 heads on 2", 128, 128, 8, 2, 1, 700, 1},
    {"prompt, causal", 128, 128, 4, 2, 37, 37, 1, GGML_TYPE_F16, Mask::causal},
    {"prompt after a cache", 64, 64, 4, 4, 19, 200, 1, GGML_TYPE_F16, Mask::causal},
    {"prompt of 300", 64, 64, 2, 1, 300, 300, 1, GGML_TYPE_F16, Mask::causal},
    {"padded keys", 128, 128, 4, 2, 9, 256, 1, GGML_TYPE_F16, Mask::padded},
    {"rows without a key", 64, 64, 2, 2, 40, 12, 1, GGML_TYPE_F16, Mask::causal},
    {"window", 128, 128, 4, 2, 30, 150, 1, GGML_TYPE_F16, Mask::window},
    {"three sequences", 128, 128, 4, 2, 5, 80, 3, GGML_TYPE_F16, Mask::per_sequence},
    {"mask of numbers", 64, 64, 4, 4, 17, 90, 2, GGML_TYPE_F16, Mask::numbers},
    {"mask per head", 64, 64, 6, 2, 17, 90, 1, GGML_TYPE_F16, Mask::per_head},
    {"ALiBi, 8 heads", 64, 64, 8, 8, 21, 100, 1, GGML_TYPE_F16, Mask::distance, Layout::cache, 8},
    {"ALiBi, 12 heads on 4", 64, 64, 12, 4, 21, 100, 2, GGML_TYPE_F16, Mask::distance, Layout::cache, 4},
    {"soft cap", 128, 128, 4, 2, 21, 100, 1, GGML_TYPE_F16, Mask::causal, Layout::cache, 0, 3},
    {"sinks", 64, 64, 8, 2, 21, 100, 1, GGML_TYPE_F16, Mask::window, Layout::cache, 0, 0, true},
    {"sinks, one token", 64, 64, 8, 2, 1, 600, 1, GGML_TYPE_F16, Mask::padded, Layout::cache, 0, 0, true},
    {"all of it", 128, 128, 6, 2, 21, 100, 2, GGML_TYPE_F16, Mask::distance, Layout::cache, 8, 5, true},
    {"scale of 0.3", 64, 64, 4, 2, 21, 100, 1, GGML_TYPE_F16, Mask::causal, Layout::cache, 0, 0, false, 0.3f},
    {"scale of 0", 64, 64, 4, 2, 21, 100, 1, GGML_TYPE_F16, Mask::causal, Layout::cache, 0, 0, false, 0.0f},
    {"no keys", 64, 64, 4, 2, 5, 0, 2},
    {"no keys, mask and sinks", 64, 64, 4, 2, 5, 0, 1, GGML_TYPE_F16, Mask::causal, Layout::cache, 0, 0,
     true},
    {"dense tensors", 128, 128, 4, 2, 21, 100, 2, GGML_TYPE_F16, Mask::causal, Layout::dense},
    {"BF16", 128, 128, 4, 2, 21, 100, 1, GGML_TYPE_BF16, Mask::causal},
    {"BF16, one token", 64, 64, 8, 1, 1, 500, 1, GGML_TYPE_BF16, Mask::padded},
    {"BF16, ALiBi", 64, 64, 4, 2, 21, 100, 1, GGML_TYPE_BF16, Mask::distance, Layout::cache, 8},
    {"Q8_0, one token", 128, 128, 8, 2, 1, 700, 1, GGML_TYPE_Q8_0, Mask::padded},
    {"Q8_0, prompt", 64, 64, 4, 2, 37, 37, 1, GGML_TYPE_Q8_0, Mask::causal},
    {"Q8_0, dense tensors", 128, 128, 4, 2, 21, 100, 2, GGML_TYPE_Q8_0, Mask::causal, Layout::dense},
    {"Q8_0, all of it", 128, 128, 6, 2, 21, 100, 2, GGML_TYPE_Q8_0, Mask::distance, Layout::cache, 8, 5,
     true},
    {"Q4_0, one token", 128, 128, 8, 2, 1, 700, 1, GGML_TYPE_Q4_0, Mask::padded},
    {"Q4_0, prompt of 300", 64, 64, 2, 1, 300, 300, 1, GGML_TYPE_Q4_0, Mask::causal},
    {"Q4_0, sequences", 128, 128, 4, 2, 5, 80, 3, GGML_TYPE_Q4_0, Mask::per_sequence},
    {"Q4_0, 192 and 128", 192, 128, 4, 4, 21, 100, 1, GGML_TYPE_Q4_0, Mask::causal},
    {"head size 40", 40, 40, 4, 2, 21, 100, 1, GGML_TYPE_F16, Mask::causal},
    {"head size 80", 80, 80, 4, 2, 21, 100, 1, GGML_TYPE_F16, Mask::causal},
    {"head size 96", 96, 96, 4, 4, 1, 100, 1, GGML_TYPE_F16, Mask::none},
    {"head size 256", 256, 256, 4, 2, 21, 100, 1, GGML_TYPE_F16, Mask::causal},
    {"head size 512", 512, 512, 2, 1, 21, 60, 1, GGML_TYPE_F16, Mask::causal},
    {"head sizes 192 and 128", 192, 128, 4, 4, 21, 100, 1, GGML_TYPE_F16, Mask::causal},
    {"latent, V in K", 576, 512, 16, 1, 3, 100, 1, GGML_TYPE_F16, Mask::causal, Layout::v_in_k},
    {"head sizes 576 and 512", 576, 512, 2, 1, 3, 60, 1, GGML_TYPE_F16, Mask::causal},
    {"V in K, K at an offset", 192, 128, 4, 2, 3, 100, 2, GGML_TYPE_F16, Mask::none, Layout::v_in_k, 0, 0,
     false, std::nullopt, true, false, 64},
    {"V in K, its own memory", 192, 128, 4, 2, 3, 100, 2, GGML_TYPE_F16, Mask::none, Layout::v_in_own_k},
    {"V is the end of K", 192, 128, 4, 2, 3, 100, 2, GGML_TYPE_F16, Mask::none, Layout::v_in_own_k, 0, 0,
     false, std::nullopt, true, false, 0, 64},
    {"V is the end, K a view", 192, 128, 4, 2, 3, 100, 2, GGML_TYPE_F16, Mask::none, Layout::v_in_k, 0, 0,
     false, std::nullopt, true, false, 64, 64},

    {"head size 36", 36, 36, 4, 2, 21, 100, 1, GGML_TYPE_F16, Mask::causal, Layout::cache, 0, 0, false,
     std::nullopt, false},
    {"K and V of F32", 64, 64, 4, 2, 21, 100, 1, GGML_TYPE_F32, Mask::causal, Layout::cache, 0, 0, false,
     std::nullopt, false},
    {"K and V of Q5_0", 64, 64, 4, 2, 21, 100, 1, GGML_TYPE_Q5_0, Mask::causal, Layout::cache, 0, 0, false,
     std::nullopt, false},
    {"K of Q8_0, V of BF16", 64, 64, 4, 2, 21, 100, 1, GGML_TYPE_Q8_0, Mask::causal, Layout::cache, 0, 0,
     false, std::nullopt, false, true},
    {"latent of Q8_0", 576, 512, 4, 1, 3, 60, 1, GGML_TYPE_Q8_0, Mask::causal, Layout::v_in_k, 0, 0, false,
     std::nullopt, false},
    {"rows 4 elements apart", 64, 64, 4, 2, 21, 100, 1, GGML_TYPE_F16, Mask::causal, Layout::odd, 0, 0, false,
     std::nullopt, false},
    {"negative scale", 64, 64, 4, 2, 21, 100, 1, GGML_TYPE_F16, Mask::causal, Layout::cache, 0, 0, false,
     -0.2f, false},
    {"mask of two heads", 64, 64, 4, 2, 21, 100, 1, GGML_TYPE_F16, Mask::alternating, Layout::cache, 0, 0,
     false, std::nullopt, false},
    {"K of F16, V of BF16", 64, 64, 4, 2, 21, 100, 1, GGML_TYPE_F16, Mask::causal, Layout::cache, 0, 0, false,
     std::nullopt, false, true},
    {"soft cap of 100000", 64, 64, 4, 2, 21, 100, 1, GGML_TYPE_F16, Mask::causal, Layout::cache, 0, 100000,
     false, std::nullopt, false},
};

double largest_error(const std::vector<float> &o, const std::vector<double> &expected) {
  double largest = 0;
  for (size_t i = 0; i < expected.size(); ++i)
    if (const double error = std::fabs(double(o[i]) - expected[i]); !(error <= largest)) largest = error;
  return largest;
}

/// How much of its bound the worst element uses. An error where there may be none is infinitely much.
double largest_share(const std::vector<float> &o, const Expected &expected) {
  double largest = 0;
  for (size_t i = 0; i < expected.o.size(); ++i) {
    const double error = std::fabs(double(o[i]) - expected.o[i]);
    if (const double share = error == 0 ? 0 : error / expected.bound[i]; !(share <= largest)) largest = share;
  }
  return largest;
}

/// Prints a line of the table. False if something is wrong with it.
bool check_case(const Case &of, const Backends &backends) {
  const Numbers numbers(of);
  const uint64_t before = backends.count("nodes");
  const Outcome outcome = compute(of, numbers, {backends.ours.get(), backends.cpu.get()});
  const uint64_t computed = backends.count("nodes") - before;
  const Outcome by_cpu = compute(of, numbers, {backends.cpu.get()});
  const Expected exact = attention(of, numbers, false);

  const bool chosen = outcome.backend == (of.served ? "Sluice" : "CPU") && computed == (of.served ? 1 : 0);
  bool right = outcome.status == GGML_STATUS_SUCCESS && by_cpu.status == GGML_STATUS_SUCCESS;
  char ours[64] = "";
  if (of.served) {
    const Expected rounded = attention(of, numbers, true);
    const double share = largest_share(outcome.o, rounded);
    right = right && share <= 1;
    std::snprintf(ours, sizeof ours, "%5.2f  %9.1e  %8.1e", share, largest_error(outcome.o, rounded.o),
                  largest_error(outcome.o, exact.o));
  } else {
    right = right && outcome.o == by_cpu.o;
  }
  std::printf("%-24s %-6s  %-26s  %8.1e%s\n", of.name, outcome.backend.c_str(), ours,
              largest_error(by_cpu.o, exact.o),
              !chosen ? "  WRONG BACKEND"
              : right ? ""
                      : "  WRONG");
  return chosen && right;
}

/// Lengths up to the next power of two share a plan, so that a growing cache does not make one for each.
bool check_plans(const Backends &backends) {
  const uint64_t before = backends.count("plans");
  for (int64_t keys = 33; keys <= 64; ++keys) {
    const Case of = {"growing", 64, 64, 4, 1, 5 + keys % 4, keys, 1, GGML_TYPE_F16, Mask::causal};
    compute(of, Numbers(of), {backends.ours.get(), backends.cpu.get()});
  }
  const auto plans = static_cast<unsigned long long>(backends.count("plans") - before);
  std::printf("plans for 5 to 8 rows and 33 to 64 keys: %llu\n", plans);
  return plans == 1;
}

/// Nodes without a result: nothing is computed, and nothing is wrong.
bool check_nothing(const Backends &backends) {
  const uint64_t before = backends.count("nodes");
  bool right = true;
  for (const int64_t keys : {40, 0}) {
    const Case of = {"no rows", 64, 64, 4, 2, 0, keys, 2};
    const Numbers numbers(of);
    const bool succeeds =
        compute(of, numbers, {backends.ours.get(), backends.cpu.get()}).status == GGML_STATUS_SUCCESS &&
        force(of, numbers, backends.ours.get()) == GGML_STATUS_SUCCESS;
    std::printf("no rows, %d keys: %s\n", int(keys), succeeds ? "nothing to compute" : "WRONG");
    right = right && succeeds;
  }
  return right && backends.count("nodes") == before;
}

} // namespace

int main(int count, char **arguments) {
  if (count != 2) {
    std::fputs("usage: check_attention LIBGGML_SLUICE\n", stderr);
    return 2;
  }
  try {
    const Backends backends(arguments[1]);
    int wrong = 0, served = 0;
    std::printf("%-24s %-6s  %5s  %9s  %8s  %8s\n", "node", "by", "share", "Q rounded", "Sluice", "CPU");
    for (const Case &of : cases) {
      wrong += !check_case(of, backends);
      served += of.served;
    }
    wrong += !check_plans(backends);
    wrong += !check_nothing(backends);
    std::printf("%zu nodes, %d by Sluice, %d wrong\n", std::size(cases), served, wrong);
    return wrong != 0;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "check_attention: %s\n", error.what());
    return 1;
  }
}

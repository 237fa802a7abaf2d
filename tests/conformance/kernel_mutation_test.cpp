//===- kernel_mutation_test.cpp - a defect of a single kernel is noticed --------------------------------===//
//
// For each kernel of the library and each defect (kernel_mutants.cpp), some case that runs on this kernel
// must show it: the oracle computes the defective kernel's result, and the comparison takes it as that of the
// kernel. All other kernels are correct.
//
//===----------------------------------------------------------------------------------------------------===//
#include "conformance/attention/kernel_cases.h"
#include "conformance/run/runner.h"
#include "kernel_mutants.h"
#include "perfect.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <memory>
#include <optional>

using namespace sluice::conformance;

namespace {

const Target &target() {
  static const Target one({}, 304);
  return one;
}

/// A case with its correct results.
class Right {
public:
  explicit Right(Case of) : c(std::move(of)), in(make_inputs(c)), expected(compute_expected(c, in)) {}

  /// Whether the comparison notices the defective kernel.
  bool shows(const Mutant &mutant, const Kernel &kernel) const {
    Case changed = c;
    Inputs changed_in = in;
    mutant.change(changed, changed_in, kernel);
    Outputs outputs = perfect(changed, compute_expected(changed, changed_in));
    keep_sequences_of_others(kernel, outputs);
    return compare(c, expected, outputs, Judge::kernel).wrong != 0;
  }

private:
  /// In a plan with a decode kernel, the prefill kernel gets no sequences whose rows fit a decode kernel's
  /// wave.
  void keep_sequences_of_others(const Kernel &kernel, Outputs &outputs) const {
    if (!kernel.prefill) return;
    const Sequences sequences(c);
    const int few_rows = std::max(16 / (c.q_heads / c.kv_heads), 1);
    const Outputs right = perfect(c, expected);
    const auto keep = [](std::vector<double> &wrong, const std::vector<double> &of, size_t b, size_t size) {
      const auto begin = ptrdiff_t(b * size);
      std::copy_n(of.begin() + begin, size, wrong.begin() + begin);
    };
    for (size_t b = 0; b < size_t(c.batch); ++b) {
      if (sequences.q_lengths[b] > few_rows) continue;
      const size_t rows = size_t(c.q_len) * size_t(c.q_heads);
      keep(outputs.o, right.o, b, rows * size_t(c.head_size.v));
      keep(outputs.lse, right.lse, b, rows);
    }
  }

  Case c;
  Inputs in;
  Expected expected;
};

int64_t work_of(const Case &c) {
  return int64_t(c.batch) * c.q_len * c.q_heads * (c.window_left < 0 ? c.kv_len : c.window_left);
}

/// Numbers of 4 bits have scales for groups only. And with V in K, plans take the kernels that read rows
/// once.
bool concerns(const Mutant &mutant, const Kernel &kernel) {
  const std::string_view name = mutant.name;
  if (std::string_view(mutant.claim) == "v_in_k" && !kernel.mla) {
    const std::vector<Kernel> all = attention_kernels(target());
    if (std::ranges::any_of(all, [&](const Kernel &other) {
          return other.mla && other.dtype == kernel.dtype && other.cache == kernel.cache &&
                 other.head_size == kernel.head_size;
        }))
      return false;
  }
  return kernel.name.find("_u4_") == std::string::npos ||
         (name.find("scale of K") == name.npos && name.find("scale of V") == name.npos);
}

/// The full level uses cases of one feature each, the quick level cases of all features together.
void check(const Kernel &kernel, Level level) {
  std::vector<Case> cases = cases_of_kernel(target(), kernel, level);
  if (level == Level::full)
    for (const Case &c : cases_of_kernel(target(), kernel, Level::quick))
      std::erase(cases, c);
  // The fastest first.
  std::ranges::stable_sort(cases, {}, work_of);
  std::vector<std::optional<Right>> rights(cases.size());
  for (const Mutant &mutant : mutants()) {
    if (*mutant.claim != '\0' && !kernel.claims.contains(mutant.claim)) continue;
    if (!concerns(mutant, kernel)) continue;
    bool possible = false, shown = false;
    for (size_t i = 0; i < cases.size() && !shown; ++i) {
      if (!mutant.shows(cases[i])) continue;
      possible = true;
      if (!rights[i]) rights[i].emplace(cases[i]);
      shown = rights[i]->shows(mutant, kernel);
    }
    if (!possible && (mutant.may_lack || level == Level::quick)) continue;
    CAPTURE(kernel.name, mutant.name, possible, level == Level::full);
    CHECK(shown);
  }
}

void check_some(size_t first, size_t step) {
  const std::vector<Kernel> kernels = attention_kernels(target());
  for (size_t i = first; i < kernels.size(); i += step)
    check(kernels[i], Level::full);
}

} // namespace

TEST_CASE("each kernel has a case of each feature that it claims, on finite inputs", "[coverage]") {
  for (const Kernel &kernel : attention_kernels(target())) {
    const std::vector<Case> cases = cases_of_kernel(target(), kernel, Level::full);
    for (const Case &c : cases) {
      CAPTURE(c.name);
      CHECK(c.pattern < Pattern::nan_query);
      CHECK(c.kv_heads > 1);
      CHECK(c.q_heads > c.kv_heads);
      CHECK(c.name == make_name(c));
      const auto answer = ask(target(), c);
      CHECK((answer && answer->kernel == kernel.name));
    }
    const Case *deepest = nullptr;
    for (const Mutant &mutant : mutants()) {
      if (*mutant.claim == '\0' || !kernel.claims.contains(mutant.claim)) continue;
      if (!concerns(mutant, kernel)) continue;
      CAPTURE(kernel.name, mutant.name);
      CHECK(std::ranges::any_of(cases, mutant.shows));
    }
    for (const Case &c : cases)
      if (c.sink_tokens > 0 && (!deepest || c.kv_len > deepest->kv_len)) deepest = &c;
    REQUIRE(deepest);
    // Tiles that no row sees, between the sink tokens and the first row's window.
    CHECK(deepest->kv_len - deepest->q_len - deepest->window_left > 5 * kernel.tile_kv);
  }
}

TEST_CASE("a case fails if another kernel than its own is launched") {
  std::unique_ptr<Executor> executor;
  try {
    executor = make_executor("emulated", {}, {});
  } catch (const NotHere &) {
    return; // a build without the emulator
  }
  const std::vector<Kernel> kernels = attention_kernels(target());
  const std::vector<Case> cases = cases_of_kernel(target(), kernels.front(), Level::full);
  Case right = *std::ranges::min_element(cases, {}, work_of), wrong = right;
  wrong.kernel = kernels.back().name;
  std::FILE *const log = std::tmpfile();
  const std::vector<Result> results = run_cases({right, wrong}, *executor, true, log);
  std::fclose(log);
  CHECK(results.at(0).outcome == Outcome::passed);
  CHECK(results.at(1).outcome == Outcome::failed);
  CHECK(results.at(1).reason == "the library ran " + right.kernel + " instead of " + wrong.kernel);
}

// One for many rows, and one for few.
constexpr std::array some_kernels = {"attn_fwd_f16_d64_q128_kv32_w4", "attn_fwd_bf16_d64_q16_kv32_w4_decode"};

TEST_CASE("each defect of some kernels is noticed, at the quick level those that its cases can show") {
  for (const Kernel &kernel : attention_kernels(target())) {
    if (std::ranges::find(some_kernels, kernel.name) == some_kernels.end()) continue;
    check(kernel, Level::full);
    check(kernel, Level::quick);
  }
}

// Three shards, for as many processes.
TEST_CASE("each defect of every kernel is noticed: first third", "[.full]") {
  check_some(0, 3);
}
TEST_CASE("each defect of every kernel is noticed: second third", "[.full]") {
  check_some(1, 3);
}
TEST_CASE("each defect of every kernel is noticed: last third", "[.full]") {
  check_some(2, 3);
}

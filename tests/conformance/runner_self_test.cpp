//===- runner_self_test.cpp - the run of a case notices what the numbers do not show --------------------===//

#include "conformance/run/runner.h"
#include "perfect.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <limits>

using namespace sluice::conformance;

namespace {

/// Computes as the oracle does, with a defect.
class Defective : public Executor {
public:
  /// Changes the memory after the n-th run, from 0, of sequence `only` or of all sequences.
  using Defect = std::function<void(int n, std::optional<int> only, const Case &c, Memory &memory)>;
  explicit Defective(Defect run_defect) : defect(std::move(run_defect)) {}

  Judge judge() const override { return Judge::kernel; }
  void describe(About &) const override {}
  std::string summary() const override { return ""; }
  std::string run(const Case &c, Memory &memory, std::optional<int> only) override {
    const Expected expected = compute_expected(c, make_inputs(c));
    const Outputs outputs = perfect(c, expected);
    const Sequences sequences(c);
    std::byte *const o = memory.buffers[size_t(memory.o.buffer)].data();
    auto *const lse = reinterpret_cast<float *>(memory.buffers[size_t(memory.lse.buffer)].data());
    const int d = c.head_size.v;
    for (int b = only.value_or(0); b < (only ? *only + 1 : c.batch); ++b)
      for (int i = 0; i < sequences.q_lengths[size_t(b)]; ++i)
        for (int h = 0; h < c.q_heads; ++h) {
          const auto row = sequences.q_row(b, i);
          for (int e = 0; e < d; ++e)
            store(o, c.o_f32, memory.o.at(row[0], row[1], h, e),
                  outputs.o[((size_t(b) * c.q_len + i) * c.q_heads + h) * d + e]);
          lse[memory.lse.at(row[0], row[1], h, 0)] =
              float(outputs.lse[(size_t(b) * c.q_heads + h) * c.q_len + i]);
        }
    defect(runs++, only, c, memory);
    return "the oracle";
  }

private:
  static void store(std::byte *o, bool f32, int64_t index, double value) {
    const auto number = float(value);
    const uint16_t bits = encode(f16_format, value);
    if (f32)
      std::memcpy(o + index * sizeof number, &number, sizeof number);
    else
      std::memcpy(o + index * sizeof bits, &bits, sizeof bits);
  }

  Defect defect;
  int runs = 0;
};

Case some_case() {
  return named(meaningful({.batch = 2,
                           .q_heads = 2,
                           .q_len = 5,
                           .kv_len = 9,
                           .bounded = false,
                           .mode = Mode::ragged,
                           .lengths = Lengths::mixed,
                           .batch_invariant = true}));
}

std::vector<Result> results_of(const std::vector<Case> &cases, Defective::Defect defect,
                               bool refused_fails = false) {
  Defective executor(std::move(defect));
  std::FILE *const log = std::tmpfile();
  std::vector<Result> results = run_cases({cases.begin(), cases.end()}, executor, refused_fails, log);
  std::fclose(log);
  return results;
}

Outcome outcome_of(Defective::Defect defect, const Case &c = some_case()) {
  return results_of({c}, std::move(defect)).at(0).outcome;
}

/// The last bit of an element of O, which the first sequence writes.
void flip(Memory &memory) {
  memory.buffers[size_t(memory.o.buffer)][0] ^= std::byte(1);
}

} // namespace

TEST_CASE("a case passes if all its checks hold") {
  CHECK(outcome_of([](auto...) {}) == Outcome::passed);
  // One bit is within the tolerance, so it passes if it is always there.
  CHECK(outcome_of([](int, auto only, const Case &, Memory &memory) {
          if (only.value_or(0) == 0) flip(memory);
        }) == Outcome::passed);
}

TEST_CASE("O as F32 is read as such") {
  Case c = some_case();
  c.o_f32 = true;
  c = named(c);
  CHECK(outcome_of([](auto...) {}, c) == Outcome::passed);
  CHECK(outcome_of(
            [](int, auto, const Case &of, Memory &memory) {
              // Only the upper halves, as if it were BF16.
              std::vector<std::byte> &o = memory.buffers[size_t(memory.o.buffer)];
              for (size_t i = 0; i < o.size(); i += 4)
                o[i / 2] = o[i + 2], o[i / 2 + 1] = o[i + 3];
              CHECK(of.o_f32);
            },
            c) == Outcome::failed);
}

TEST_CASE("other bits the second time, or for a single sequence, are noticed") {
  CHECK(outcome_of([](int, auto only, const Case &, Memory &memory) {
          if (only == 0) flip(memory);
        }) == Outcome::failed);
  Case fast = some_case();
  fast.batch_invariant = false;
  CHECK(outcome_of(
            [](int n, auto, const Case &, Memory &memory) {
              if (n == 1) flip(memory);
            },
            fast) == Outcome::failed);
  // Not requested, not checked.
  CHECK(outcome_of([](int, auto only, const Case &, Memory &) { CHECK(!only); }, fast) == Outcome::passed);
  Case bounded = fast;
  bounded.bounded = true;
  CHECK(outcome_of([](int n, auto, const Case &, Memory &) { CHECK(n == 0); }, bounded) == Outcome::passed);
}

TEST_CASE("each single sequence has a plan with other bounds") {
  CHECK(outcome_of([](int, auto only, const Case &c, Memory &) { CHECK(c.bounded == only.has_value()); }) ==
        Outcome::passed);
}

TEST_CASE("a write into an input is noticed") {
  Case once = some_case();
  once.bounded = true;
  once.batch_invariant = false;
  CHECK(outcome_of([](int, auto, const Case &,
                      Memory &memory) { memory.buffers[size_t(memory.kv_starts)][1] ^= std::byte(1); },
                   once) == Outcome::failed);
}

TEST_CASE("a refusal has its field, and fails only where it is asked to") {
  const auto refuse = [](auto...) { throw Refused("bias_type", "not yet"); };
  for (const bool fails : {false, true}) {
    const Result refused = results_of({some_case()}, refuse, fails).at(0);
    CHECK(refused.outcome == (fails ? Outcome::failed : Outcome::refused));
    CHECK(refused.refused_field == "bias_type");
    CHECK(refused.reason == "not yet");
  }
  // Not if the call itself succeeded.
  const Result late = results_of({some_case()}, [](int n, auto, const Case &, Memory &) {
                        if (n > 0) throw Refused("max_batch", "not then");
                      }).at(0);
  CHECK(late.outcome == Outcome::failed);
  CHECK(late.refused_field.empty());
}

TEST_CASE("an error fails its case; cases after the loss of the device are skipped") {
  const std::vector<Case> three(3, some_case());
  const auto fail = [](auto...) { throw std::runtime_error("no"); };
  for (const Result &result : results_of(three, fail)) {
    CHECK(result.outcome == Outcome::failed);
    CHECK(result.reason == "no");
  }
  const std::vector<Result> lost = results_of(three, [n = 0](auto...) mutable {
    if (++n == 5) throw DeviceLost("gone");
  });
  CHECK(lost.at(0).outcome == Outcome::passed);
  CHECK(lost.at(1).outcome == Outcome::failed);
  CHECK(lost.at(1).reason == "gone");
  CHECK(lost.at(2).outcome == Outcome::skipped);
  CHECK(lost.at(2).reason == "the device was lost in " + some_case().name);
}

TEST_CASE("with another seed, a case has other numbers and the same shape") {
  Case one = some_case(), other = one;
  other.seed = 1;
  const Inputs a = make_inputs(one), b = make_inputs(other);
  CHECK(a.q.size() == b.q.size());
  CHECK(a.q != b.q);
  CHECK(a.v != b.v);
  CHECK(make_inputs(other).q == b.q);
}

TEST_CASE("an error beyond all tolerances leaves the report JSON", "[runner]") {
  Report report;
  report.results.push_back({.name = "a case", .kernel = "a kernel"});
  report.results.back().o_ratio = std::numeric_limits<double>::infinity();
  const std::string text = json_text(report);
  CHECK(text.find("\"o_error_in_tolerances\": null") != text.npos);
  CHECK(text.find("\"lse_error_in_tolerances\": 0.0") != text.npos);
}

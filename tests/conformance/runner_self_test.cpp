//===- runner_self_test.cpp - the run of a case notices what the numbers do not say ---------------------===//

#include "perfect.h"
#include "runner.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <functional>

using namespace sluice::test;

namespace {

/// Computes as the oracle does, with a defect.
class Defective : public Executor {
public:
  /// What happens behind the n-th run, from 0, which was of sequence `only` or all.
  using Defect = std::function<void(int n, std::optional<int> only, const Case &c, Memory &memory)>;
  explicit Defective(Defect of_runs) : defect(std::move(of_runs)) {}

  Judge judge() const override { return Judge::kernel; }
  std::string summary() const override { return ""; }
  std::string run(const Case &c, Memory &memory, std::optional<int> only) override {
    const Expected expected = compute_expected(c, make_inputs(c));
    const Outputs outputs = perfect(c, expected);
    const Sequences sequences(c);
    auto *const o = reinterpret_cast<uint16_t *>(memory.buffers[size_t(memory.o.buffer)].data());
    auto *const lse = reinterpret_cast<float *>(memory.buffers[size_t(memory.lse.buffer)].data());
    const int d = c.head_size.v;
    for (int b = only.value_or(0); b < (only ? *only + 1 : c.batch); ++b)
      for (int i = 0; i < sequences.q_lengths[size_t(b)]; ++i)
        for (int h = 0; h < c.q_heads; ++h) {
          const auto row = sequences.q_row(b, i);
          for (int e = 0; e < d; ++e)
            o[memory.o.at(row[0], row[1], h, e)] =
                encode(f16_format, outputs.o[((size_t(b) * c.q_len + i) * c.q_heads + h) * d + e]);
          lse[memory.lse.at(row[0], row[1], h, 0)] =
              float(outputs.lse[(size_t(b) * c.q_heads + h) * c.q_len + i]);
        }
    defect(runs++, only, c, memory);
    return "the oracle";
  }

private:
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

Tally tally_of(Defective::Defect defect, const Case &c = some_case()) {
  Defective executor(std::move(defect));
  std::FILE *const log = std::tmpfile();
  const Tally tally = run_cases({c}, executor, false, log);
  std::fclose(log);
  return tally;
}

/// The last bit of an element of O, which the first sequence writes.
void flip(Memory &memory) {
  memory.buffers[size_t(memory.o.buffer)][0] ^= std::byte(1);
}

} // namespace

TEST_CASE("a case passes if all that is asked of it holds") {
  const Tally good = tally_of([](auto...) {});
  CHECK(good.passed == 1);
  CHECK(good.is_good(true));
  // One bit is within the tolerance, and so it passes if it is always there.
  CHECK(tally_of([](int, auto only, const Case &, Memory &memory) {
          if (only.value_or(0) == 0) flip(memory);
        }).passed == 1);
}

TEST_CASE("other bits the second time, or for a sequence alone, are noticed") {
  CHECK(tally_of([](int, auto only, const Case &, Memory &memory) {
          if (only == 0) flip(memory);
        }).failed == 1);
  Case fast = some_case();
  fast.batch_invariant = false;
  CHECK(tally_of(
            [](int n, auto, const Case &, Memory &memory) {
              if (n == 1) flip(memory);
            },
            fast)
            .failed == 1);
  // Not asked for, not looked at.
  CHECK(tally_of([](int, auto only, const Case &, Memory &) { CHECK(!only); }, fast).passed == 1);
  Case bounded = fast;
  bounded.bounded = true;
  CHECK(tally_of([](int n, auto, const Case &, Memory &) { CHECK(n == 0); }, bounded).passed == 1);
}

TEST_CASE("each sequence alone has a plan with other bounds") {
  CHECK(tally_of([](int, auto only, const Case &c, Memory &) {
          CHECK(c.bounded == only.has_value());
        }).passed == 1);
}

TEST_CASE("a write into an input is noticed") {
  Case once = some_case();
  once.bounded = true;
  once.batch_invariant = false;
  CHECK(tally_of([](int, auto, const Case &,
                    Memory &memory) { memory.buffers[size_t(memory.kv_starts)][1] ^= std::byte(1); },
                 once)
            .failed == 1);
}

TEST_CASE("a refusal is counted by its field, and fails only where it is asked to") {
  const auto refuse = [](auto...) { throw Refused("bias_type", "not yet"); };
  const Tally refused = tally_of(refuse);
  CHECK(refused.passed + refused.failed == 0);
  CHECK(refused.refused == std::map<std::string, size_t>{{"bias_type", 1}});
  CHECK(refused.is_good(false));
  CHECK(!refused.is_good(true));
  // Not if the call itself was done.
  const Tally late = tally_of([](int n, auto, const Case &, Memory &) {
    if (n > 0) throw Refused("max_batch", "not then");
  });
  CHECK(late.failed == 1);
  CHECK(late.refused.empty());
}

TEST_CASE("an error fails its case, and a lost device ends the run") {
  CHECK(tally_of([](auto...) { throw std::runtime_error("no"); }).failed == 1);
  CHECK_THROWS_AS(tally_of([](auto...) { throw DeviceLost("gone"); }), DeviceLost);
}

TEST_CASE("the tally names what was refused") {
  std::FILE *const log = std::tmpfile();
  print_tally({.passed = 3, .failed = 1, .refused = {{"mode", 2}, {"flags", 4}}}, "some", "thing", log);
  std::rewind(log);
  char text[200] = {};
  CHECK(std::fread(text, 1, sizeof text - 1, log) > 0);
  std::fclose(log);
  CHECK(std::strcmp(text, "3 of 4 cases passed on some: thing\n6 of 10 cases refused: flags 4 mode 2\n") ==
        0);
}

//===- support_answers_test.cpp - the library supports what it says it supports -------------------------===//
//
// A question has one answer, from every function and context. "Yes" means that a plan can be made, and that
// calls of it give the reference's results. "No" names a field, and the value that it calls the nearest
// supported one is supported.
//
//===----------------------------------------------------------------------------------------------------===//
#include "calls/values.h"
#include "features/problem_space.h"
#include "features/random_call.h"
#include "features/refusal.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

using namespace sluice::test;
namespace calls = sluice::calls;

namespace {

/// Limits of a run: calls that take longer or more memory add nothing.
constexpr int32_t most_heads = 64, most_page_rows = 4096;
constexpr uint64_t most_workspace = 64 << 20;
// A refusal names one field at a time; no problem here has more errors than this.
constexpr int most_refusals = 32;
// Numbers that are tried between the requested and the nearest value, from both ends.
constexpr int64_t most_tried = 60;

sluice_context *target() {
  static const std::unique_ptr<sluice_context, DestroyContext> context = [] {
    sluice_context_desc desc;
    sluice_context_desc_init(&desc, sizeof desc);
    desc.kind = SLUICE_DEVICE_TARGET;
    desc.target = "gfx942:304";
    sluice_context *created = nullptr;
    REQUIRE(sluice_context_create(&desc, &created, nullptr) == SLUICE_OK);
    return std::unique_ptr<sluice_context, DestroyContext>(created);
  }();
  return context.get();
}

struct Answer {
  sluice_status status = SLUICE_OK;
  std::string field, message, kernel;
  uint64_t workspace_bytes = 0;
  uint32_t workspace_alignment = 0;
  sluice_error error;

  Answer() { sluice_error_init(&error, sizeof error); }
  Answer &because(sluice_status returned) {
    status = returned;
    if (status == SLUICE_OK) return *this;
    field = error.field;
    message = error.message;
    return *this;
  }
  bool operator==(const Answer &other) const {
    return status == other.status && field == other.field && message == other.message &&
           kernel == other.kernel && workspace_bytes == other.workspace_bytes &&
           workspace_alignment == other.workspace_alignment;
  }
  std::string text() const {
    return std::string(sluice_status_name(status)) + " " + field + ": " + message + kernel + " workspace " +
           std::to_string(workspace_bytes);
  }
};

Answer asked(const sluice_context *context, const calls::Problem &problem) {
  Answer answer;
  sluice_support support;
  sluice_support_init(&support, sizeof support);
  answer.because(sluice_attention_support(context, calls::ProblemValues(problem), &support, &answer.error));
  answer.kernel = support.kernel;
  answer.workspace_bytes = support.workspace_bytes;
  answer.workspace_alignment = support.workspace_alignment;
  return answer;
}

Answer planned(sluice_context *context, const calls::Problem &problem) {
  Answer answer;
  sluice_plan *created = nullptr;
  answer.because(sluice_attention_plan(context, calls::ProblemValues(problem), &created, &answer.error));
  const std::unique_ptr<sluice_plan, void (*)(sluice_plan *)> plan(created, sluice_plan_destroy);
  if (answer.status != SLUICE_OK) return answer;
  sluice_plan_info info;
  sluice_plan_info_init(&info, sizeof info);
  REQUIRE(sluice_plan_describe(created, &info, nullptr) == SLUICE_OK);
  answer.kernel = info.kernel;
  answer.workspace_bytes = info.workspace_bytes;
  answer.workspace_alignment = info.workspace_alignment;
  return answer;
}

/// Compares quickly; describes the difference only if there is one.
void require_same(const Answer &answer, const Answer &other, const char *of) {
  if (answer == other) return;
  FAIL("sluice_attention_support says " << answer.text() << "; " << of << " says " << other.text());
}

/// The nearest value is supported, and no nearer one is.
void check_nearest(const calls::Problem &problem, const Answer &refused, const calls::Problem &nearest) {
  const std::optional<NumberField> field = number_field(refused.field.c_str());
  if (refused.status != SLUICE_UNSUPPORTED || !field) return;
  const int64_t wanted = field->get(problem), named = field->get(nearest), step = wanted < named ? 1 : -1;
  // The next larger head dim is named even if a smaller one is nearer: rows can be padded.
  const bool only_up = refused.field.find("head_dim_") != std::string::npos && named > wanted;
  // The value at the same distance on the other side, too, if it is a number of its kind.
  const int64_t distance = std::abs(wanted - named);
  const auto must_be_refused = [&](int64_t value) {
    calls::Problem nearer = problem;
    field->set(nearer, value);
    const Answer answer = asked(target(), nearer);
    // Breaking a rule of the header with another field does not count as support either.
    if (answer.status == SLUICE_OK || (answer.status == SLUICE_UNSUPPORTED && answer.field != refused.field))
      FAIL(refused.text() << " but " << value << " is nearer, and has the answer " << answer.text());
  };
  for (int64_t away = 1; away < std::min(distance, most_tried); ++away) {
    must_be_refused(named - step * away);
    if (!only_up && wanted - step * (distance - away) > 0) must_be_refused(wanted - step * (distance - away));
  }
}

/// Follows the advice of refusals to a supported problem; no refusal may lead back to itself.
void check_advice(calls::Problem problem, Answer answer) {
  std::string way;
  for (int refusals = 0; answer.status != SLUICE_OK; ++refusals) {
    way += "\n  " + answer.text();
    if (refusals == most_refusals) FAIL("the advice of refusals never reaches a supported problem:" << way);
    if (answer.field.empty() || answer.message.find(answer.field) == std::string::npos)
      FAIL("the refusal does not name its field:" << way);
    const std::optional<calls::Problem> next = advised(problem, answer.error);
    if (!next) FAIL("advice that cannot be followed:" << way);
    const Answer changed = asked(target(), *next);
    // One rule for the type of a field may follow another; the same value must not be advised again.
    if (changed == answer) FAIL("the advice changes nothing:" << way);
    const bool is_value = answer.message.find("nearest supported") != std::string::npos;
    if (is_value && changed.status != SLUICE_OK && changed.field == answer.field &&
        !answer.field.ends_with("flags"))
      FAIL("the advised problem is refused:" << way << "\n  " << changed.text());
    check_nearest(problem, answer, *next);
    problem = *next;
    answer = changed;
  }
}

/// Every answer to the same question.
Answer check_answers(const calls::Problem &problem) {
  const Answer answer = asked(device(), problem);
  require_same(answer, planned(device(), problem), "sluice_attention_plan");
  require_same(answer, planned(target(), problem), "sluice_attention_plan for a target");
  require_same(answer, asked(target(), problem), "a target");
  if (answer.status != SLUICE_OK) check_advice(problem, answer);
  return answer;
}

bool is_small(const calls::Problem &problem, const Answer &answer) {
  return problem.q_heads <= most_heads && problem.page_size <= most_page_rows &&
         answer.workspace_bytes <= most_workspace;
}

/// Calls of a supported problem give the reference's results.
void check_run(const calls::Problem &problem, uint64_t seed) {
  // A wide row is as much work as several narrow ones; some calls have more tiles than others.
  const bool wide = problem.head_dim_qk > 128 || problem.q_heads > 8;
  const Largest sizes[] = {{2, 5, 40}, {2, 20, 100}, {3, 70, 300}};
  RandomCall call(seed, problem, sizes[(wide ? 0 : 1) + (seed % 8 == 0 ? 1 : 0)]);
  for (uint32_t type : {problem.q_type, problem.k_type, problem.v_type, problem.o_type})
    REQUIRE(Elements::knows(type));
  INFO("seed " << seed << ": " << call.text());
  call.prepare();
  call.run();
  call.refer();
  const RandomCall::Difference difference = call.compare();
  INFO(difference.where);
  // Errors of rounding P and O, and of a score by the kernels' tanh; V is at most 1.5.
  const double moved = std::min(0x1p-20 * double{problem.soft_cap}, 0x1p-4);
  const double p_error = problem.q_type == SLUICE_E4M3FNUZ ? 1.5 * 0x1p-4 : 0;
  // O of FP8 is at most 3 after its division, and may be rounded the other way.
  const double o_error = problem.o_type == SLUICE_E4M3FNUZ ? 0.25 : 0;
  // Elements of V in blocks are cut to Q's type: some hundred products of at most 2 each.
  const double block_error =
      Elements::is_in_blocks(problem.k_type) ? (problem.q_type == SLUICE_F16 ? 2e-3 : 2e-2) : 0;
  CHECK(difference.o <=
        p_error + o_error + block_error + (problem.o_type == SLUICE_F16 ? 4e-3 : 2e-2) + 3 * moved);
  CHECK(difference.lse <= 1e-4 + 1.5 * moved);
}

/// The indices of a dimension's values other than the first.
template <typename Visit> void for_each_value(Visit visit) {
  for (size_t d = 0; d < problem_space().size(); ++d)
    for (size_t place = 1; place < problem_space()[d].values.size(); ++place)
      visit(d, place);
}

template <typename Visit> void for_each_pair(Visit visit) {
  uint64_t number = 0;
  for_each_value([&](size_t d, size_t place) {
    const Point first = Point().with(d, place);
    for_each_value([&](size_t other, size_t other_place) {
      // Head sizes would take up most pairs: every fifth of them.
      if (other <= d || (problem_space()[d].name == "head size" && place % 5 != 0 && place <= 80)) return;
      const Point point = first.with(other, other_place);
      INFO(point.text());
      visit(point, number++);
    });
  });
}

/// Random problems until `wanted` of them have run.
void run_sample(uint64_t seed, int wanted) {
  Numbers numbers(seed);
  for (int runs = 0; runs < wanted;) {
    // Values of a few dimensions, so that most problems are supported and several kinds of work meet.
    Point point;
    const uint32_t changes = 2 + numbers.below(6);
    for (uint32_t n = 0; n < changes; ++n) {
      const size_t d = numbers.below(uint32_t(problem_space().size()));
      point = point.with(d, numbers.below(uint32_t(problem_space()[d].values.size())));
    }
    INFO(point.text());
    const calls::Problem problem = point.problem();
    const Answer answer = check_answers(problem);
    if (answer.status != SLUICE_OK || !is_small(problem, answer)) continue;
    check_run(problem, numbers.next());
    ++runs;
  }
}

} // namespace

TEST_CASE("every single value has one answer, and supported problems run", "[support]") {
  int supported = 0, refused = 0;
  for_each_value([&](size_t d, size_t place) {
    const Point point = Point().with(d, place);
    INFO(point.text());
    const calls::Problem problem = point.problem();
    const Answer answer = check_answers(problem);
    ++(answer.status == SLUICE_OK ? supported : refused);
    // Every third head size: there are many, and every seed of the samples brings others.
    const bool skipped = problem_space()[d].name == "head size" && place % 3 != 1;
    if (answer.status == SLUICE_OK && is_small(problem, answer) && !skipped) check_run(problem, place);
  });
  CHECK(supported > 50);
  CHECK(refused > 30);
}

TEST_CASE("every two values together have one answer", "[support]") {
  for_each_pair([](const Point &point, uint64_t) { check_answers(point.problem()); });
}

TEST_CASE("head sizes of K and of V, separately and in one row", "[support]") {
  for (int32_t qk = 8; qk <= 640; qk += 8)
    for (int32_t v = 8; v <= 640; v += 24)
      for (uint32_t flags : {0u, uint32_t(calls::v_in_k)}) {
        calls::Problem problem = Point().problem();
        problem.head_dim_qk = qk;
        problem.head_dim_v = v;
        problem.flags = flags;
        INFO("head_dim_qk " << qk << " head_dim_v " << v << " flags " << flags);
        const Answer answer = asked(device(), problem);
        require_same(answer, planned(target(), problem), "sluice_attention_plan for a target");
        if (answer.status != SLUICE_OK) check_advice(problem, answer);
      }
}

TEST_CASE("all combinations of values that affect the workspace have one answer", "[support]") {
  const auto dimension = [](std::string_view name) {
    const auto &space = problem_space();
    const auto found =
        std::find_if(space.begin(), space.end(), [&](const auto &d) { return d.name == name; });
    REQUIRE(found != space.end());
    return size_t(found - space.begin());
  };
  std::vector<Point> points = {Point(), Point().with(dimension("head size"), 512 / 8)};
  for (const char *name : {"heads", "bounds", "ceiling", "invariance", "sink logits"}) {
    const size_t d = dimension(name);
    std::vector<Point> more;
    for (const Point &point : points)
      for (size_t place = 0; place < problem_space()[d].values.size(); ++place)
        more.push_back(point.with(d, place));
    points = more;
  }
  for (const Point &point : points) {
    INFO(point.text());
    check_answers(point.problem());
  }
}

TEST_CASE("values of all dimensions at once have one answer", "[support]") {
  Numbers numbers(7);
  for (int n = 0; n < 3000; ++n) {
    const Point point = Point::random(numbers);
    INFO(point.text());
    check_answers(point.problem());
  }
}

TEST_CASE("FP8 of Q goes with FP8 of K and V and a wider O", "[support]") {
  struct Row {
    uint32_t q, k, v, o;
    const char *message; // empty: supported
  };
  const Row rows[] = {
      {SLUICE_E4M3FNUZ, SLUICE_E4M3FNUZ, SLUICE_E4M3FNUZ, SLUICE_F16, ""},
      {SLUICE_E4M3FNUZ, SLUICE_E4M3FNUZ, SLUICE_E4M3FNUZ, SLUICE_BF16, ""},
      {SLUICE_E4M3FNUZ, SLUICE_E4M3FNUZ, SLUICE_E4M3FNUZ, SLUICE_F32, ""},
      {SLUICE_F16, SLUICE_E4M3FNUZ, SLUICE_E4M3FNUZ, SLUICE_F32, ""},
      {SLUICE_E4M3FNUZ, SLUICE_F16, SLUICE_E4M3FNUZ, SLUICE_F16,
       "kv.k.type is f16; nearest supported: e4m3fnuz"},
      {SLUICE_E4M3FNUZ, SLUICE_E4M3FNUZ, SLUICE_BF16, SLUICE_BF16,
       "kv.v.type is bf16; nearest supported: e4m3fnuz"},
      {SLUICE_E4M3FN, SLUICE_E4M3FNUZ, SLUICE_E4M3FNUZ, SLUICE_F16,
       "q.type is e4m3fn; nearest supported: e4m3fnuz"},
      {SLUICE_F16, SLUICE_E4M3FNUZ, SLUICE_E4M3FNUZ, SLUICE_BF16, "o.type is bf16; nearest supported: f16"},
  };
  for (const Row &row : rows) {
    INFO(row.q << " " << row.k << " " << row.v << " to " << row.o);
    calls::Problem problem = Point().problem();
    problem.q_type = row.q;
    problem.k_type = row.k;
    problem.v_type = row.v;
    problem.o_type = row.o;
    const Answer answer = asked(device(), problem);
    CHECK(answer.status == (*row.message ? SLUICE_UNSUPPORTED : SLUICE_OK));
    CHECK(answer.message == row.message);
  }
}

TEST_CASE("drawn problems that are supported run", "[support]") {
  run_sample(1, 600);
}

TEST_CASE("every two values together run where they are supported, and many more drawn problems",
          "[.][more]") {
  for_each_pair([](const Point &point, uint64_t number) {
    const calls::Problem problem = point.problem();
    const Answer answer = asked(device(), problem);
    if (answer.status == SLUICE_OK && is_small(problem, answer)) check_run(problem, number);
  });
  for (uint64_t seed = 2; seed < 12; ++seed)
    run_sample(seed, 1500);
}

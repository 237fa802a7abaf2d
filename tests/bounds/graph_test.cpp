//===- graph_test.cpp - one captured run for all lengths within its bounds ------------------------------===//
#include "bounds/batch.h"
#include "calls/values.h"

#include <algorithm>

using namespace sluice::test;
namespace calls = sluice::calls;

namespace {

struct DestroyStream {
  void operator()(void *stream) const { hip<int(void *)>("hipStreamDestroy")(stream); }
};
struct DestroyGraph {
  void operator()(void *graph) const { hip<int(void *)>("hipGraphDestroy")(graph); }
};
struct DestroyGraphExec {
  void operator()(void *graph) const { hip<int(void *)>("hipGraphExecDestroy")(graph); }
};

constexpr int capture_global = 0; // hipStreamCaptureModeGlobal: refuses what could make a capture wait

struct Captured {
  std::unique_ptr<void, DestroyGraph> graph;
  std::unique_ptr<void, DestroyGraphExec> executable;
  size_t nodes = 0;
};

/// The operations that `work` enqueues on a stream.
template <typename Work> Captured capture(void *stream, Work work) {
  REQUIRE(hip<int(void *, int)>("hipStreamBeginCapture")(stream, capture_global) == 0);
  work();
  void *graph = nullptr, *executable = nullptr;
  REQUIRE(hip<int(void *, void **)>("hipStreamEndCapture")(stream, &graph) == 0);
  Captured captured;
  captured.graph.reset(graph);
  REQUIRE(hip<int(void *, void *, size_t *)>("hipGraphGetNodes")(graph, nullptr, &captured.nodes) == 0);
  REQUIRE(hip<int(void **, void *, void *, char *, size_t)>("hipGraphInstantiate")(&executable, graph,
                                                                                   nullptr, nullptr, 0) == 0);
  captured.executable.reset(executable);
  return captured;
}

template <typename Element>
void copy_into(std::optional<Visible<Element>> &to, const std::optional<Visible<Element>> &from) {
  REQUIRE(to.has_value() == from.has_value());
  if (!to) return;
  REQUIRE(to->size() >= from->size());
  std::memcpy(to->data(), &(*from)[0], from->size() * sizeof(Element));
}

template <typename Element>
void check_front(const Visible<Element> &whole, const Visible<Element> &front, Element rest) {
  CHECK(std::equal(&front[0], &front[0] + front.size(), &whole[0]));
  CHECK(
      std::all_of(&whole[0] + front.size(), &whole[0] + whole.size(), [&](Element e) { return e == rest; }));
}

const std::vector<std::vector<Sequence>> length_sets = {
    {{1, 2000, 1}, {3, 50, 2}, {60, 90, 3}, {0, 7, 4}},          // mixed
    {{1, 700, 5}, {1, 1, 6}, {1, 2000, 7}, {1, 1030, 8}},        // decode
    {{100, 100, 9}, {33, 600, 10}, {100, 101, 11}, {70, 3, 12}}, // prefill
    {{0, 0, 13}, {0, 0, 14}, {1, 0, 15}, {0, 2, 16}},            // almost nothing
    {{100, 2000, 17}, {1, 2000, 18}, {4, 2000, 19}, {5, 2000, 20}},
};

calls::Problem bounded(uint32_t mode, bool is_invariant) {
  calls::Problem problem = problem_of({.mode = mode, .group = 4, .head_dim = 64});
  problem.max_batch = 4;
  problem.max_q_len = 100;
  problem.max_kv_len = 2000;
  if (is_invariant) problem.flags |= calls::batch_invariant;
  if (!is_invariant) {
    // With a bound on rows a decode kernel would take everything at such small sizes; with this ceiling it
    // takes only the four rows that it always takes.
    problem.max_q_len = 0;
    problem.workspace_ceiling_bytes = uint64_t(9 * 4 * 4 * problem.q_heads * (64 + 1) * 4);
  }
  return problem;
}

} // namespace

TEST_CASE("a captured run replays with all lengths within its bounds", "[bounds]") {
  void *created = nullptr;
  REQUIRE(hip<int(void **)>("hipStreamCreate")(&created) == 0);
  const std::unique_ptr<void, DestroyStream> stream(created);
  for (const uint32_t mode : {calls::dense, calls::ragged, calls::paged})
    for (const bool is_invariant : {false, true}) {
      if (is_invariant && mode != calls::paged) continue;
      const calls::Problem problem = bounded(mode, is_invariant);
      const PlanHandle plan = plan_of(problem);
      // Memory for the longest lengths; its contents during the capture do not matter.
      Batch captured(problem, {{100, 2000}, {100, 2000}, {100, 2000}, {100, 2000}});
      Visible<uint8_t> workspace(describe(plan).workspace_bytes, 0xff);
      const Captured graph = capture(stream.get(), [&] {
        sluice_launch launch;
        sluice_launch_init(&launch, sizeof launch);
        launch.stream = stream.get();
        launch.workspace = workspace.data();
        launch.workspace_bytes = workspace.size();
        sluice_error error;
        sluice_error_init(&error, sizeof error);
        const sluice_status status =
            sluice_attention_run(plan.get(), calls::ArgsValues(problem, captured.args), &launch, &error);
        INFO(error.message);
        REQUIRE(status == SLUICE_OK);
      });
      // Tiles of rows of one head, decode tiles, and the merge of their splits.
      const bool merges = workspace.size() != 0;
      CHECK(graph.nodes == (merges ? 3 : 2));
      for (size_t set = 0; set < length_sets.size(); ++set) {
        INFO("mode " << mode << ", batch-invariant " << is_invariant << ", set " << set);
        Batch eager(problem, length_sets[set], 100, 2000);
        for (auto member :
             {&Batch::q_lengths, &Batch::kv_lengths, &Batch::q_starts, &Batch::kv_starts, &Batch::table})
          copy_into(captured.*member, eager.*member);
        copy_into(captured.q, eager.q);
        copy_into(captured.k, eager.k);
        copy_into(captured.v, eager.v);
        std::fill_n(captured.o->data(), captured.o->size(), uint16_t{0x5a5a});
        std::fill_n(captured.lse->data(), captured.lse->size(), -12345.0f);
        REQUIRE(hip<int(void *, void *)>("hipGraphLaunch")(graph.executable.get(), stream.get()) == 0);
        REQUIRE(hip<int(void *)>("hipStreamSynchronize")(stream.get()) == 0);
        require_good_end();
        eager.run(plan);
        eager.compare_with_reference();
        check_front(*captured.o, *eager.o, uint16_t{0x5a5a});
        check_front(*captured.lse, *eager.lse, -12345.0f);
      }
    }
}

TEST_CASE("after a preload the first plan and run may be made while a stream captures", "[bounds]") {
  sluice_context_desc desc;
  sluice_context_desc_init(&desc, sizeof desc);
  desc.kind = SLUICE_DEVICE_EMULATED;
  void *created = nullptr;
  REQUIRE(hip<int(void **)>("hipStreamCreate")(&created) == 0);
  const std::unique_ptr<void, DestroyStream> stream(created);
  for (const bool everything : {false, true}) {
    sluice_context *made = nullptr;
    REQUIRE(sluice_context_create(&desc, &made, nullptr) == SLUICE_OK);
    const std::unique_ptr<sluice_context, DestroyContext> context(made);
    const calls::Problem problem = bounded(calls::paged, false);
    const calls::ProblemValues values(problem);
    const sluice_attention *const attention = values;
    REQUIRE(sluice_attention_preload(context.get(), everything ? nullptr : attention, nullptr) == SLUICE_OK);
    sluice_support support;
    sluice_support_init(&support, sizeof support);
    REQUIRE(sluice_attention_support(context.get(), attention, &support, nullptr) == SLUICE_OK);
    const uint64_t bytes = support.workspace_bytes;
    REQUIRE(bytes != 0);
    Visible<uint8_t> workspace(bytes, 0xff);
    Batch batch(problem, length_sets[0]);
    PlanHandle plan;
    const Captured graph = capture(stream.get(), [&] {
      sluice_plan *first = nullptr;
      REQUIRE(sluice_attention_plan(context.get(), calls::ProblemValues(problem), &first, nullptr) ==
              SLUICE_OK);
      plan.reset(first);
      sluice_launch launch;
      sluice_launch_init(&launch, sizeof launch);
      launch.stream = stream.get();
      launch.workspace = workspace.data();
      launch.workspace_bytes = bytes;
      REQUIRE(sluice_attention_run(first, calls::ArgsValues(problem, batch.args), &launch, nullptr) ==
              SLUICE_OK);
    });
    CHECK(graph.nodes == 3);
    REQUIRE(hip<int(void *, void *)>("hipGraphLaunch")(graph.executable.get(), stream.get()) == 0);
    REQUIRE(hip<int(void *)>("hipStreamSynchronize")(stream.get()) == 0);
    require_good_end();
    batch.compare_with_reference();
  }
}

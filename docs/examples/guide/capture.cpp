// One captured graph serves decode steps of all lengths up to the plan's bounds.
#include "device.h"

#include <chrono>
#include <cstdio>
#include <thread>

namespace {

using guide::Array;
using guide::hip;
using sluice::TensorView;

constexpr int64_t batch = 2, capacity = 256, q_heads = 8, kv_heads = 2, dim = 128;

/// Work of another stream that a run which does not wait for it would overtake.
void take_a_while(void *) {
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
}

/// What the reference says of these lengths.
std::vector<uint16_t> expected(const sluice_problem &problem, const sluice_args &args, Array<uint16_t> &q,
                               Array<uint16_t> &k, Array<uint16_t> &v, Array<int32_t> &lengths) {
  std::vector<uint16_t> o(batch * q_heads * dim);
  sluice_args host = args;
  host.q.data = q.host.data();
  host.k.data = k.host.data();
  host.v.data = v.host.data();
  host.o.data = o.data();
  host.kv_lengths = lengths.host.data();
  sluice::reference(problem, host).value();
  return o;
}

} // namespace

int main() try {
  const auto context = sluice::Context::create(sluice::ContextDesc(SLUICE_DEVICE_EMULATED)).value();
  Array<uint16_t> q(context, guide::numbers(batch * q_heads * dim, 1));
  Array<uint16_t> k(context, guide::numbers(batch * capacity * kv_heads * dim, 2));
  Array<uint16_t> v(context, guide::numbers(batch * capacity * kv_heads * dim, 3));
  Array<uint16_t> o(context, std::vector<uint16_t>(batch * q_heads * dim));
  Array<int32_t> lengths(context, {1, 1});

  // <plan>
  sluice::Problem problem;
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F16;
  problem.q_heads = q_heads;
  problem.kv_heads = kv_heads;
  problem.head_dim_qk = problem.head_dim_v = dim;
  problem.max_batch = batch;
  problem.max_q_len = 1;
  problem.max_kv_len = capacity; // the graph serves every length up to this one
  const sluice::Plan plan = context.plan(problem).value();
  // </plan>
  const uint64_t workspace_bytes = plan.describe().value().workspace_bytes;
  Array<uint8_t> workspace(context, std::vector<uint8_t>(workspace_bytes + 1));

  // <arguments>
  sluice::Args args;
  args.batch = batch;
  args.q_len = 1;
  args.kv_len = 0; // the plan's bound; what counts is in kv_lengths
  args.q = TensorView::bshd(q.device(), SLUICE_F16, batch, 1, q_heads, dim);
  args.k = TensorView::bshd(k.device(), SLUICE_F16, batch, capacity, kv_heads, dim);
  args.v = TensorView::bshd(v.device(), SLUICE_F16, batch, capacity, kv_heads, dim);
  args.o = TensorView::bshd(o.device(), SLUICE_F16, batch, 1, q_heads, dim);
  args.kv_lengths = lengths.device();
  // </arguments>

  // <capture>
  void *stream = nullptr, *graph = nullptr, *executable = nullptr;
  hip<void **, unsigned>(context, "hipStreamCreateWithFlags", &stream, 1u); // hipStreamNonBlocking
  sluice::Launch launch;
  launch.stream = stream;
  launch.workspace = workspace.device();
  launch.workspace_bytes = workspace_bytes;
  hip<void *, int>(context, "hipStreamBeginCapture", stream, 0); // hipStreamCaptureModeGlobal
  plan.run(args, launch).value();                                // recorded; nothing runs
  hip<void *, void **>(context, "hipStreamEndCapture", stream, &graph);
  hip<void **, void *, void *, char *, size_t>(context, "hipGraphInstantiate", &executable, graph, nullptr,
                                               nullptr, size_t{0});
  // </capture>

  for (const auto &[first, second] : {std::pair{3, 200}, std::pair{256, 17}}) {
    // <replay>
    lengths.host = {first, second}; // keys of each sequence in this step
    lengths.upload();
    hip<void *, void *>(context, "hipGraphLaunch", executable, stream);
    hip<void *>(context, "hipStreamSynchronize", stream);
    // </replay>
    o.download();
    if (guide::difference(o.host, expected(problem, args, q, k, v, lengths)) > 1e-3)
      throw std::runtime_error("the graph computes something else than the reference");
    std::printf("%d and %d keys: as the reference\n", first, second);
  }

  // <depend>
  void *other = nullptr, *event = nullptr, *done = nullptr;
  hip<void **, unsigned>(context, "hipStreamCreateWithFlags", &other, 1u);
  hip<void **, unsigned>(context, "hipEventCreateWithFlags", &event, 2u); // hipEventDisableTiming
  hip<void **, unsigned>(context, "hipEventCreateWithFlags", &done, 2u);
  hip<void *, void (*)(void *), void *>(context, "hipLaunchHostFunc", other, &take_a_while, nullptr);
  hip<void *, int, size_t, void *>(context, "hipMemsetAsync", v.device(), 0, v.host.size() * 2, other);
  sluice_dependency after = {};
  after.kind = SLUICE_DEPENDS_ON_STREAM; // all work that is on the other stream now
  after.event = event;                   // the caller's: the library creates no events
  after.stream = other;
  launch.dependencies = &after;
  launch.dependency_count = 1;
  launch.signal_event = done; // recorded after the run, for others to wait for
  plan.run(args, launch).value();
  hip<void *>(context, "hipEventSynchronize", done);
  // </depend>
  o.download();
  if (guide::difference(o.host, std::vector<uint16_t>(o.host.size())) != 0)
    throw std::runtime_error("the run did not wait for the other stream");
  std::printf("after the other stream: all zeros\n");

  hip<void *>(context, "hipGraphExecDestroy", executable);
  hip<void *>(context, "hipGraphDestroy", graph);
  for (void *each : {event, done})
    hip<void *>(context, "hipEventDestroy", each);
  for (void *each : {stream, other})
    hip<void *>(context, "hipStreamDestroy", each);
} catch (const std::exception &failed) {
  std::fprintf(stderr, "%s\n", failed.what());
  return 1;
}

// One captured graph serves decode steps of all lengths up to the plan's bounds.
#include "device.h"

#include <chrono>
#include <cstdio>
#include <thread>

namespace {

using guide::Array;
using guide::hip;

constexpr int32_t batch = 2, capacity = 256, q_heads = 8, kv_heads = 2, dim = 128;

/// Work of another stream that a run which does not wait for it would overtake.
void take_a_while(void *) {
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
}

/// What the reference says of these lengths.
std::vector<uint16_t> expected(const sluice_attention &attention, sluice_attention_args args,
                               Array<uint16_t> &q, Array<uint16_t> &k, Array<uint16_t> &v,
                               Array<int32_t> &lengths) {
  std::vector<uint16_t> o(batch * q_heads * dim);
  sluice_keys keys = *args.keys;
  sluice_kv kv = *keys.kv;
  kv.k.data = k.host.data();
  kv.v.data = v.host.data();
  keys.kv = &kv;
  keys.rows.lengths = lengths.host.data();
  args.keys = &keys;
  args.q.data = q.host.data();
  args.o.data = o.data();
  sluice::reference(attention, args).value();
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
  const sluice_kv_format format = sluice_kv_tensors(SLUICE_F16, kv_heads, dim);
  sluice_attention attention = sluice_make_attention(SLUICE_F16, q_heads, &format);
  attention.bounds = sluice_make_bounds(batch, 1, capacity); // the graph serves up to `capacity` keys
  const sluice::Plan plan = context.plan(attention).value();
  // </plan>
  const uint64_t workspace_bytes = plan.describe().value().workspace_bytes;
  Array<uint8_t> workspace(context, std::vector<uint8_t>(workspace_bytes + 1));

  // <arguments>
  const sluice_kv kv = sluice_make_kv(&format, sluice_bshd(k.device(), capacity, kv_heads, dim),
                                      sluice_bshd(v.device(), capacity, kv_heads, dim));
  sluice_keys keys = sluice_keys_of_equal(&kv, SLUICE_PLAN_BOUND);
  keys.rows.lengths = lengths.device();
  const sluice_attention_args args = sluice_make_call(batch, 1, sluice_bshd(q.device(), 1, q_heads, dim),
                                                      sluice_bshd(o.device(), 1, q_heads, dim), &keys);
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
    context.wait(stream).value();
    // </replay>
    o.download();
    if (guide::difference(o.host, expected(attention, args, q, k, v, lengths)) > 1e-3)
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

//===- hip_graph_test.cpp - graphs that are built by hand, and how they run -----------------------------===//

#include <atomic>
#include <catch2/catch.hpp>
#include <set>
#include <thread>

#include "unit/emulator/hip_fixture.h"

using namespace sluice::test;

namespace {

using Nodes = std::vector<hipGraphNode_t>;

/// A graph whose host nodes write letters, and a stream to launch it in.
struct Letters {
  hipGraph_t graph = nullptr;
  hipStream_t stream = nullptr;
  std::string order;

  Letters() {
    REQUIRE(hip.hipGraphCreate(&graph, 0) == hipSuccess);
    REQUIRE(hip.hipStreamCreateWithFlags(&stream, hipStreamNonBlocking) == hipSuccess);
  }
  ~Letters() {
    CHECK(hip.hipStreamDestroy(stream) == hipSuccess);
    if (graph) CHECK(hip.hipGraphDestroy(graph) == hipSuccess);
    CHECK(sluice_emulator_configure("defaults", "1") == SLUICE_EMULATOR_OK);
    hip.hipGetLastError();
  }
  template <char letter> static void write(void *user) { *static_cast<std::string *>(user) += letter; }

  template <char letter> hipGraphNode_t add(const Nodes &after, hipGraph_t to = nullptr) {
    hipGraphNode_t node = nullptr;
    const hipHostNodeParams call{write<letter>, &order};
    CHECK(hip.hipGraphAddHostNode(&node, to ? to : graph, after.data(), after.size(), &call) == hipSuccess);
    return node;
  }
  hipGraphExec_t instantiate() const {
    hipGraphExec_t exec = nullptr;
    REQUIRE(hip.hipGraphInstantiateWithFlags(&exec, graph, 0) == hipSuccess);
    return exec;
  }
};

/// The orders in which a graph can run between work `<` and `>` of the same stream.
template <typename Build> std::set<std::string> orders(Build &&build) {
  std::set<std::string> seen;
  for (int seed = 0; seed < 150; ++seed) {
    Letters l;
    build(l);
    const hipGraphExec_t exec = l.instantiate();
    REQUIRE(sluice_emulator_configure("stream_order", std::to_string(seed).c_str()) == SLUICE_EMULATOR_OK);
    CHECK(hip.hipLaunchHostFunc(l.stream, Letters::write<'<'>, &l.order) == hipSuccess);
    CHECK(hip.hipGraphLaunch(exec, l.stream) == hipSuccess);
    CHECK(hip.hipLaunchHostFunc(l.stream, Letters::write<'>'>, &l.order) == hipSuccess);
    CHECK(hip.hipGraphExecDestroy(exec) == hipSuccess); // the launch in flight keeps it
    CHECK(l.order.empty());
    CHECK(hip.hipDeviceSynchronize() == hipSuccess);
    seen.insert(l.order);
  }
  return seen;
}

} // namespace

TEST_CASE("a graph runs in every order that its edges allow, and in no other", "[hip][graph]") {
  CHECK(orders([](Letters &l) {
          const auto a = l.add<'a'>({});
          const auto b = l.add<'b'>({a});
          const auto c = l.add<'c'>({a});
          l.add<'d'>({b, c});
        }) == std::set<std::string>{"<abcd>", "<acbd>"});
  CHECK(orders([](Letters &l) {
          const auto a = l.add<'a'>({});
          l.add<'b'>({a});
          l.add<'c'>({});
        }) == std::set<std::string>{"<abc>", "<acb>", "<cab>"});
  // An edge from a later node to an earlier one.
  CHECK(orders([](Letters &l) {
          const auto a = l.add<'a'>({});
          const auto b = l.add<'b'>({});
          CHECK(hip.hipGraphAddDependencies(l.graph, &b, &a, 1) == hipSuccess);
        }) == std::set<std::string>{"<ba>"});
  // A child graph between two nodes, and an empty node that joins.
  CHECK(orders([](Letters &l) {
          hipGraph_t child = nullptr;
          REQUIRE(hip.hipGraphCreate(&child, 0) == hipSuccess);
          l.add<'x'>({}, child);
          l.add<'y'>({}, child);
          const auto a = l.add<'a'>({});
          hipGraphNode_t inner = nullptr, joined = nullptr;
          CHECK(hip.hipGraphAddChildGraphNode(&inner, l.graph, &a, 1, child) == hipSuccess);
          CHECK(hip.hipGraphDestroy(child) == hipSuccess); // it was copied
          CHECK(hip.hipGraphAddEmptyNode(&joined, l.graph, &inner, 1) == hipSuccess);
          l.add<'b'>({joined});
        }) == std::set<std::string>{"<axyb>", "<ayxb>"});
}

TEST_CASE("branches of a graph run at the same time", "[hip][graph]") {
  struct Meeting {
    std::atomic<int> here{0};
  } meeting;
  Letters l;
  const hipHostNodeParams meet{[](void *user) {
                                 auto &m = *static_cast<Meeting *>(user);
                                 ++m.here;
                                 while (m.here < 3)
                                   std::this_thread::yield();
                               },
                               &meeting};
  hipGraphNode_t node = nullptr;
  for (int i = 0; i < 3; ++i)
    CHECK(hip.hipGraphAddHostNode(&node, l.graph, nullptr, 0, &meet) == hipSuccess);
  const hipGraphExec_t exec = l.instantiate();
  CHECK(hip.hipGraphLaunch(exec, l.stream) == hipSuccess);
  CHECK(hip.hipStreamSynchronize(l.stream) == hipSuccess);
  CHECK(meeting.here == 3);
  CHECK(hip.hipGraphExecDestroy(exec) == hipSuccess);

  // More branches than threads, launched many times from two streams: launches of one graph never overlap.
  struct Once {
    std::atomic<int> running{0}, most{0}, calls{0};
  } once;
  hipGraph_t wide = nullptr;
  REQUIRE(hip.hipGraphCreate(&wide, 0) == hipSuccess);
  const hipHostNodeParams begin{[](void *user) {
                                  auto &o = *static_cast<Once *>(user);
                                  o.most = std::max(o.most.load(), ++o.running);
                                },
                                &once};
  const hipHostNodeParams count{[](void *user) { ++static_cast<Once *>(user)->calls; }, &once};
  const hipHostNodeParams end{[](void *user) { --static_cast<Once *>(user)->running; }, &once};
  hipGraphNode_t first = nullptr, last = nullptr;
  Nodes all(40);
  CHECK(hip.hipGraphAddHostNode(&first, wide, nullptr, 0, &begin) == hipSuccess);
  for (hipGraphNode_t &each : all)
    CHECK(hip.hipGraphAddHostNode(&each, wide, &first, 1, &count) == hipSuccess);
  CHECK(hip.hipGraphAddHostNode(&last, wide, all.data(), all.size(), &end) == hipSuccess);
  hipGraphExec_t wide_exec = nullptr;
  CHECK(hip.hipGraphInstantiate(&wide_exec, wide, nullptr, nullptr, 0) == hipSuccess);
  hipStream_t other = nullptr;
  REQUIRE(hip.hipStreamCreateWithFlags(&other, hipStreamNonBlocking) == hipSuccess);
  for (int i = 0; i < 10; ++i)
    CHECK(hip.hipGraphLaunch(wide_exec, i % 2 ? other : l.stream) == hipSuccess);
  CHECK(hip.hipDeviceSynchronize() == hipSuccess);
  CHECK(once.calls == 400);
  CHECK(once.most == 1);
  CHECK(hip.hipGraphExecDestroy(wide_exec) == hipSuccess);
  CHECK(hip.hipGraphDestroy(wide) == hipSuccess);
  CHECK(hip.hipStreamDestroy(other) == hipSuccess);
}

TEST_CASE("a graph lists its nodes and edges", "[hip][graph]") {
  Letters l;
  const auto a = l.add<'a'>({});
  const auto b = l.add<'b'>({a});
  hipGraphNode_t c = nullptr;
  const Nodes both{a, b};
  CHECK(hip.hipGraphAddEmptyNode(&c, l.graph, both.data(), 2) == hipSuccess);
  size_t count = 0;
  CHECK(hip.hipGraphGetNodes(l.graph, nullptr, &count) == hipSuccess);
  CHECK(count == 3);
  Nodes nodes(5, a);
  count = 5;
  CHECK(hip.hipGraphGetNodes(l.graph, nodes.data(), &count) == hipSuccess);
  CHECK(count == 3);
  CHECK(nodes == Nodes{a, b, c, nullptr, nullptr});
  count = 1;
  CHECK(hip.hipGraphGetRootNodes(l.graph, nodes.data(), &count) == hipSuccess);
  CHECK(count == 1);
  CHECK(nodes[0] == a);
  Nodes from(3), to(3);
  count = 3;
  CHECK(hip.hipGraphGetEdges(l.graph, from.data(), to.data(), &count) == hipSuccess);
  CHECK(count == 3);
  CHECK(from == Nodes{a, a, b});
  CHECK(to == Nodes{b, c, c});
  count = 2;
  CHECK(hip.hipGraphNodeGetDependencies(c, nodes.data(), &count) == hipSuccess);
  CHECK(count == 2);
  CHECK(nodes[1] == b);
  hipGraphNodeType type{};
  CHECK(hip.hipGraphNodeGetType(a, &type) == hipSuccess);
  CHECK(type == hipGraphNodeTypeHost);
  CHECK(hip.hipGraphNodeGetType(c, &type) == hipSuccess);
  CHECK(type == hipGraphNodeTypeEmpty);

  // Invalid edges and nodes.
  hipGraphNode_t node = nullptr;
  const Nodes twice{a, a};
  CHECK(hip.hipGraphAddEmptyNode(&node, l.graph, twice.data(), 2) == hipErrorInvalidValue);
  CHECK(hip.hipGraphAddEmptyNode(&node, l.graph, nullptr, 1) == hipErrorInvalidValue);
  CHECK(hip.hipGraphAddEmptyNode(nullptr, l.graph, nullptr, 0) == hipErrorInvalidValue);
  CHECK(hip.hipGraphAddDependencies(l.graph, &a, &b, 1) == hipErrorInvalidValue); // there already
  CHECK(hip.hipGraphAddDependencies(l.graph, &a, &a, 1) == hipErrorInvalidValue);
  hipGraph_t other = nullptr;
  CHECK(hip.hipGraphCreate(&other, 1) == hipErrorInvalidValue);
  REQUIRE(hip.hipGraphCreate(&other, 0) == hipSuccess);
  CHECK(hip.hipGraphAddEmptyNode(&node, other, &a, 1) == hipErrorInvalidValue);
  CHECK(hip.hipGraphDestroy(other) == hipSuccess);
  CHECK(hip.hipGraphDestroy(other) == hipErrorInvalidValue);

  // A cycle is found at instantiation.
  hipGraphExec_t exec = nullptr;
  CHECK(hip.hipGraphAddDependencies(l.graph, &c, &a, 1) == hipSuccess);
  CHECK(hip.hipGraphInstantiate(&exec, l.graph, nullptr, nullptr, 0) == hipErrorInvalidValue);
  CHECK(hip.hipGraphInstantiateWithFlags(&exec, l.graph, 4) == hipErrorNotSupported);
  CHECK(hip.hipGraphInstantiateWithFlags(&exec, l.graph, 16) == hipErrorInvalidValue);
  CHECK(hip.hipGraphDestroy(l.graph) == hipSuccess);
  l.graph = nullptr;
  CHECK(hip.hipGraphNodeGetType(a, &type) == hipErrorInvalidValue);
}

TEST_CASE("graphs are cloned and edited", "[hip][graph]") {
  Letters l;
  const auto a = l.add<'a'>({});
  const auto b = l.add<'b'>({a});
  const auto c = l.add<'c'>({b});
  hipGraph_t clone = nullptr;
  CHECK(hip.hipGraphClone(&clone, l.graph) == hipSuccess);
  hipGraphNode_t twin = nullptr, other = nullptr;
  CHECK(hip.hipGraphNodeFindInClone(&twin, b, clone) == hipSuccess);
  CHECK(twin != b);
  CHECK(hip.hipGraphNodeFindInClone(&other, b, l.graph) == hipErrorInvalidValue); // not a clone of itself
  CHECK(hip.hipGraphNodeFindInClone(&other, twin, clone) == hipErrorInvalidValue);
  CHECK(hip.hipGraphClone(nullptr, l.graph) == hipErrorInvalidValue);

  // The dependents of a node, one of which is destroyed with its edges: c may run first now.
  size_t count = 1;
  CHECK(hip.hipGraphNodeGetDependentNodes(a, &other, &count) == hipSuccess);
  CHECK((count == 1 && other == b));
  CHECK(hip.hipGraphDestroyNode(b) == hipSuccess);
  CHECK(hip.hipGraphDestroyNode(b) == hipErrorInvalidValue);
  CHECK(hip.hipGraphNodeGetDependentNodes(a, nullptr, &count) == hipSuccess);
  CHECK(count == 0);
  CHECK(hip.hipGraphNodeGetDependencies(c, nullptr, &count) == hipSuccess);
  CHECK(count == 0);
  CHECK(hip.hipGraphAddDependencies(l.graph, &c, &a, 1) == hipSuccess);
  CHECK(hip.hipGraphRemoveDependencies(l.graph, &a, &c, 1) == hipErrorInvalidValue); // the other way round
  const hipGraphExec_t edited = l.instantiate();
  CHECK(hip.hipGraphLaunch(edited, l.stream) == hipSuccess);
  CHECK(hip.hipStreamSynchronize(l.stream) == hipSuccess);
  CHECK(l.order == "ca");
  CHECK(hip.hipGraphRemoveDependencies(l.graph, &c, &a, 1) == hipSuccess);
  CHECK(hip.hipGraphRemoveDependencies(l.graph, &c, &a, 1) == hipErrorInvalidValue);
  CHECK(hip.hipGraphGetEdges(l.graph, nullptr, nullptr, &count) == hipSuccess);
  CHECK(count == 0);

  // The clone does not change with the original; its nodes take other work of their kind.
  l.order.clear();
  const hipHostNodeParams d{Letters::write<'d'>, &l.order};
  CHECK(hip.hipGraphHostNodeSetParams(twin, &d) == hipSuccess);
  const hipMemsetParams fill{&l, 1, 1, 0, 0, 1};
  CHECK(hip.hipGraphMemsetNodeSetParams(twin, &fill) == hipErrorInvalidValue);
  hipGraphExec_t exec = nullptr;
  CHECK(hip.hipGraphInstantiate(&exec, clone, nullptr, nullptr, 0) == hipSuccess);
  for (int seed = 0; seed < 20; ++seed) {
    l.order.clear();
    REQUIRE(sluice_emulator_configure("stream_order", std::to_string(seed).c_str()) == SLUICE_EMULATOR_OK);
    CHECK(hip.hipGraphLaunch(exec, l.stream) == hipSuccess);
    CHECK(hip.hipStreamSynchronize(l.stream) == hipSuccess);
    CHECK(l.order == "adc");
  }
  for (hipGraphExec_t each : {edited, exec})
    CHECK(hip.hipGraphExecDestroy(each) == hipSuccess);
  CHECK(hip.hipGraphDestroy(clone) == hipSuccess);
}

TEST_CASE("nodes of a graph take other work before it is instantiated again", "[hip][graph]") {
  Fixture fixture;
  Letters l;
  int *out = fixture.buffer;
  int value = 5, count = 64;
  void *parameters[] = {&out, &value, &count};
  const hipKernelNodeParams kernel{{64, 1, 1}, nullptr, fixture.fill, {1, 1, 1}, parameters, 0};
  hipMemsetParams fill{fixture.buffer + 100, 4, 1, 0, 1, 10};
  std::vector<int> back(64), other(64), third(64);
  hipGraphNode_t kernel_node = nullptr, fill_node = nullptr, copy_node = nullptr;
  CHECK(hip.hipGraphAddKernelNode(&kernel_node, l.graph, nullptr, 0, &kernel) == hipSuccess);
  CHECK(hip.hipGraphAddMemsetNode(&fill_node, l.graph, nullptr, 0, &fill) == hipSuccess);
  CHECK(hip.hipGraphAddMemcpyNode1D(&copy_node, l.graph, &kernel_node, 1, back.data(), fixture.buffer, 256,
                                    hipMemcpyDeviceToHost) == hipSuccess);
  const hipGraphExec_t before = l.instantiate();
  value = 50;
  fill.value = 2;
  CHECK(hip.hipGraphKernelNodeSetParams(kernel_node, &kernel) == hipSuccess);
  CHECK(hip.hipGraphMemsetNodeSetParams(fill_node, &fill) == hipSuccess);
  CHECK(hip.hipGraphMemcpyNodeSetParams1D(copy_node, other.data(), fixture.buffer, 256,
                                          hipMemcpyDeviceToHost) == hipSuccess);
  const hipGraphExec_t after = l.instantiate();
  for (hipGraphExec_t exec : {after, before}) {
    CHECK(hip.hipGraphLaunch(exec, l.stream) == hipSuccess);
    CHECK(hip.hipStreamSynchronize(l.stream) == hipSuccess);
    CHECK(fixture.contents()[109] == (exec == after ? 2 : 1));
  }
  CHECK(back[0] == 5);
  CHECK(other[0] == 50);

  hipMemcpy3DParms copy{};
  copy.srcPtr = {fixture.buffer, 256, 256, 1};
  copy.dstPtr = {third.data(), 256, 256, 1};
  copy.extent = {256, 1, 1};
  copy.kind = hipMemcpyDeviceToHost;
  CHECK(hip.hipGraphExecMemcpyNodeSetParams(before, copy_node, &copy) == hipSuccess);
  CHECK(hip.hipGraphLaunch(before, l.stream) == hipSuccess);
  CHECK(hip.hipStreamSynchronize(l.stream) == hipSuccess);
  CHECK(third[1] == 6);
  copy.dstPtr.ptr = back.data();
  CHECK(hip.hipGraphMemcpyNodeSetParams(copy_node, &copy) == hipSuccess);
  CHECK(hip.hipGraphMemcpyNodeSetParams(fill_node, &copy) == hipErrorInvalidValue);
  const hipGraphExec_t last = l.instantiate();
  CHECK(hip.hipGraphLaunch(last, l.stream) == hipSuccess);
  CHECK(hip.hipStreamSynchronize(l.stream) == hipSuccess);
  CHECK(back[0] == 50);
  for (hipGraphExec_t each : {before, after, last})
    CHECK(hip.hipGraphExecDestroy(each) == hipSuccess);
}

TEST_CASE("kernels, copies and fills are nodes, and take other arguments later", "[hip][graph]") {
  Fixture fixture;
  Letters l;
  int *out = fixture.buffer;
  int value = 5;
  int count = 64;
  void *parameters[] = {&out, &value, &count};
  hipKernelNodeParams kernel{{64, 1, 1}, nullptr, fixture.fill, {1, 1, 1}, parameters, 0};
  hipMemsetParams fill{fixture.buffer, 2, 1, 0, 0x0102, 400};
  std::vector<int> back(64), other(64);
  hipGraphNode_t fill_node = nullptr, kernel_node = nullptr, copy_node = nullptr;
  CHECK(hip.hipGraphAddMemsetNode(&fill_node, l.graph, nullptr, 0, &fill) == hipSuccess);
  CHECK(hip.hipGraphAddKernelNode(&kernel_node, l.graph, &fill_node, 1, &kernel) == hipSuccess);
  CHECK(hip.hipGraphAddMemcpyNode1D(&copy_node, l.graph, &kernel_node, 1, back.data(), fixture.buffer, 256,
                                    hipMemcpyDeviceToHost) == hipSuccess);
  value = 1000; // copied already
  const hipGraphExec_t exec = l.instantiate();
  CHECK(hip.hipGraphLaunch(exec, l.stream) == hipSuccess);
  CHECK(hip.hipStreamSynchronize(l.stream) == hipSuccess);
  CHECK(back[63] == 68);
  CHECK(fixture.contents()[199] == 0x01020102);
  CHECK(fixture.contents()[200] == 0);

  // A launch keeps the parameters that it was launched with.
  REQUIRE(sluice_emulator_configure("stream_order", "1") == SLUICE_EMULATOR_OK);
  CHECK(hip.hipGraphLaunch(exec, l.stream) == hipSuccess);
  CHECK(hip.hipGraphExecKernelNodeSetParams(exec, kernel_node, &kernel) == hipSuccess);
  CHECK(hip.hipGraphExecMemcpyNodeSetParams1D(exec, copy_node, other.data(), fixture.buffer, 256,
                                              hipMemcpyDeviceToHost) == hipSuccess);
  fill.value = 0;
  CHECK(hip.hipGraphExecMemsetNodeSetParams(exec, fill_node, &fill) == hipSuccess);
  CHECK(hip.hipStreamSynchronize(l.stream) == hipSuccess);
  CHECK(back[63] == 68);
  CHECK(other[0] == 0);
  CHECK(hip.hipGraphLaunch(exec, l.stream) == hipSuccess);
  CHECK(hip.hipStreamSynchronize(l.stream) == hipSuccess);
  CHECK(other[63] == 1063);
  CHECK(fixture.contents()[199] == 0);

  const hipHostNodeParams host{Letters::write<'a'>, &l.order};
  CHECK(hip.hipGraphExecHostNodeSetParams(exec, kernel_node, &host) == hipErrorInvalidValue);
  CHECK(hip.hipGraphExecKernelNodeSetParams(exec, nullptr, &kernel) == hipErrorInvalidValue);
  kernel.blockDim.x = 257;
  CHECK(hip.hipGraphExecKernelNodeSetParams(exec, kernel_node, &kernel) == hipErrorLaunchFailure);
  kernel.func = nullptr;
  CHECK(hip.hipGraphAddKernelNode(&kernel_node, l.graph, nullptr, 0, &kernel) == hipErrorInvalidValue);
  fill.width = 100000;
  CHECK(hip.hipGraphAddMemsetNode(&fill_node, l.graph, nullptr, 0, &fill) == hipErrorInvalidValue);
  fill.elementSize = 3;
  CHECK(hip.hipGraphAddMemsetNode(&fill_node, l.graph, nullptr, 0, &fill) == hipErrorInvalidValue);
  CHECK(hip.hipGraphAddMemcpyNode1D(&copy_node, l.graph, nullptr, 0, back.data(), fixture.buffer, 8000,
                                    hipMemcpyDeviceToHost) == hipErrorInvalidValue);
  CHECK(hip.hipGraphExecDestroy(exec) == hipSuccess);
}

TEST_CASE("a copy node copies rows and slices", "[hip][graph]") {
  Fixture fixture;
  Letters l;
  std::vector<char> source(4 * 3 * 5);
  for (size_t i = 0; i < source.size(); ++i)
    source[i] = char(i + 1);
  // 2 by 2 by 2 bytes at (1, 1, 2) of the source, in rows of 4 and slices of 3 rows, to rows of 8, slices
  // of 5.
  hipMemcpy3DParms copy{};
  copy.srcPtr = {source.data(), 4, 4, 3};
  copy.srcPos = {1, 1, 2};
  copy.dstPtr = {fixture.buffer, 8, 8, 5};
  copy.dstPos = {3, 0, 1};
  copy.extent = {2, 2, 2};
  copy.kind = hipMemcpyHostToDevice;
  hipGraphNode_t node = nullptr;
  CHECK(hip.hipGraphAddMemcpyNode(&node, l.graph, nullptr, 0, &copy) == hipSuccess);
  const hipGraphExec_t exec = l.instantiate();
  CHECK(hip.hipGraphLaunch(exec, l.stream) == hipSuccess);
  CHECK(hip.hipStreamSynchronize(l.stream) == hipSuccess);
  std::vector<char> expected(Fixture::elements * 4);
  for (size_t z = 0; z < 2; ++z)
    for (size_t y = 0; y < 2; ++y)
      for (size_t x = 0; x < 2; ++x)
        expected[(z + 1) * 40 + y * 8 + x + 3] = char((z + 2) * 12 + (y + 1) * 4 + x + 1 + 1);
  std::vector<char> found(expected.size());
  CHECK(hip.hipMemcpy(found.data(), fixture.buffer, found.size(), hipMemcpyDeviceToHost) == hipSuccess);
  CHECK(found == expected);
  copy.extent.width = 5; // wider than the rows it is in
  CHECK(hip.hipGraphAddMemcpyNode(&node, l.graph, nullptr, 0, &copy) == hipErrorInvalidPitchValue);
  copy.extent = {2, 4, 2}; // higher than the slices
  CHECK(hip.hipGraphAddMemcpyNode(&node, l.graph, nullptr, 0, &copy) == hipErrorInvalidValue);
  copy.extent = {2, 2, 2};
  copy.srcArray = &node;
  CHECK(hip.hipGraphAddMemcpyNode(&node, l.graph, nullptr, 0, &copy) == hipErrorNotSupported);
  CHECK(hip.hipGraphExecDestroy(exec) == hipSuccess);
}

TEST_CASE("a graph records events and waits for them", "[hip][graph]") {
  Letters l;
  hipEvent_t before = nullptr, after = nullptr;
  REQUIRE(hip.hipEventCreate(&before) == hipSuccess);
  REQUIRE(hip.hipEventCreate(&after) == hipSuccess);
  hipGraphNode_t wait = nullptr, mark = nullptr;
  CHECK(hip.hipGraphAddEventWaitNode(&wait, l.graph, nullptr, 0, before) == hipSuccess);
  const auto a = l.add<'a'>({wait});
  CHECK(hip.hipGraphAddEventRecordNode(&mark, l.graph, &a, 1, after) == hipSuccess);
  const hipGraphExec_t exec = l.instantiate();
  hipStream_t other = nullptr;
  REQUIRE(hip.hipStreamCreateWithFlags(&other, hipStreamNonBlocking) == hipSuccess);
  for (int seed = 0; seed < 20; ++seed) {
    l.order.clear();
    REQUIRE(sluice_emulator_configure("stream_order", std::to_string(seed).c_str()) == SLUICE_EMULATOR_OK);
    CHECK(hip.hipLaunchHostFunc(other, Letters::write<'1'>, &l.order) == hipSuccess);
    CHECK(hip.hipEventRecord(before, other) == hipSuccess);
    CHECK(hip.hipGraphLaunch(exec, l.stream) == hipSuccess);
    CHECK(hip.hipStreamWaitEvent(other, after, 0) == hipSuccess);
    CHECK(hip.hipLaunchHostFunc(other, Letters::write<'2'>, &l.order) == hipSuccess);
    CHECK(hip.hipStreamSynchronize(other) == hipSuccess);
    CHECK(hip.hipEventQuery(after) == hipSuccess);
    CHECK(l.order == "1a2");
  }
  CHECK(hip.hipGraphExecDestroy(exec) == hipSuccess);
  CHECK(hip.hipStreamDestroy(other) == hipSuccess);
  CHECK(hip.hipEventDestroy(before) == hipSuccess);
  CHECK(hip.hipEventDestroy(after) == hipSuccess);
}

TEST_CASE("a graph is updated from another of the same shape, or the difference is reported",
          "[hip][graph]") {
  Letters l;
  const auto a = l.add<'a'>({});
  l.add<'b'>({a});
  const hipGraphExec_t exec = l.instantiate();
  Letters same, edges, types, fewer;
  same.add<'d'>({same.add<'c'>({})});
  edges.add<'c'>({});
  edges.add<'d'>({});
  hipGraphNode_t node = nullptr;
  const auto c = types.add<'c'>({});
  CHECK(hip.hipGraphAddEmptyNode(&node, types.graph, &c, 1) == hipSuccess);
  fewer.add<'c'>({});
  auto update = [&](hipGraph_t graph) {
    hipGraphExecUpdateResult result = hipGraphExecUpdateError;
    const hipError_t error = hip.hipGraphExecUpdate(exec, graph, &node, &result);
    CHECK(error == (result == hipGraphExecUpdateSuccess ? hipSuccess : hipErrorGraphExecUpdateFailure));
    return result;
  };
  CHECK(update(edges.graph) == hipGraphExecUpdateErrorTopologyChanged);
  CHECK(update(fewer.graph) == hipGraphExecUpdateErrorTopologyChanged);
  CHECK(update(types.graph) == hipGraphExecUpdateErrorNodeTypeChanged);
  CHECK(update(same.graph) == hipGraphExecUpdateSuccess);
  CHECK(hip.hipGraphLaunch(exec, l.stream) == hipSuccess);
  CHECK(hip.hipStreamSynchronize(l.stream) == hipSuccess);
  CHECK(l.order.empty());
  CHECK(same.order == "cd");
  CHECK(hip.hipGraphExecDestroy(exec) == hipSuccess);
}

TEST_CASE("a graph launched while a stream captures is a node, and a fault in one sticks", "[hip][graph]") {
  Fixture fixture;
  Letters l;
  l.add<'a'>({});
  const hipGraphExec_t inner = l.instantiate();
  CHECK(hip.hipStreamBeginCapture(l.stream, hipStreamCaptureModeGlobal) == hipSuccess);
  CHECK(hip.hipGraphLaunch(inner, l.stream) == hipSuccess);
  CHECK(hip.hipLaunchHostFunc(l.stream, Letters::write<'b'>, &l.order) == hipSuccess);
  CHECK(hip.hipGraphLaunch(inner, l.stream) == hipSuccess);
  CHECK(fixture.launch(1, Fixture::elements + 64, l.stream) == hipSuccess);
  CHECK(hip.hipLaunchHostFunc(l.stream, Letters::write<'x'>, &l.order) == hipSuccess);
  hipGraph_t outer = nullptr;
  CHECK(hip.hipStreamEndCapture(l.stream, &outer) == hipSuccess);
  hipGraphExec_t exec = nullptr;
  CHECK(hip.hipGraphInstantiate(&exec, outer, nullptr, nullptr, 0) == hipSuccess);
  CHECK(hip.hipGraphLaunch(exec, l.stream) == hipSuccess);
  CHECK(hip.hipStreamSynchronize(l.stream) == hipErrorIllegalAddress);
  CHECK(l.order == "aba");
  CHECK(hip.hipGraphLaunch(exec, l.stream) == hipErrorIllegalAddress);
  for (hipGraphExec_t each : {inner, exec})
    CHECK(hip.hipGraphExecDestroy(each) == hipSuccess);
  CHECK(hip.hipGraphDestroy(outer) == hipSuccess);
}

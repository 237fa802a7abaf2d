//===- graph_functions.cpp - HIP's functions about graphs -----------------------------------------------===//
//
// For graphs, HIP reports wrong handles as hipErrorInvalidValue.
//
//===----------------------------------------------------------------------------------------------------===//
#include <algorithm>

#include "emulator/hip/capture.h"
#include "emulator/hip/error.h"
#include "emulator/hip/functions.h"
#include "emulator/hip/handles.h"
#include "emulator/hip/registration.h"
#include "emulator/hip/streams.h"

namespace sluice::emulator::hip {

namespace {

using GraphHandles = Handles<hipGraph_t, Graph>;
using NodeHandles = Handles<hipGraphNode_t, GraphNode>;
using ExecHandles = Handles<hipGraphExec_t, GraphExec>;
using Lock = std::lock_guard<std::mutex>;

// Ignored by hipGraphInstantiateWithFlags: free on launch, upload, launch from the device, node priorities.
constexpr unsigned long long harmless_instantiate_flags = 1 | 2 | 8;
constexpr unsigned long long device_launch_flag = 4;

std::shared_ptr<Graph> find_graph(hipGraph_t graph) {
  return GraphHandles::get().find(graph, hipErrorInvalidValue);
}

std::shared_ptr<GraphExec> find_exec(hipGraphExec_t exec) {
  return ExecHandles::get().find(exec, hipErrorInvalidValue);
}

void add(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *dependencies, size_t dependency_count,
         NodeWork work) {
  require(node != nullptr && (dependencies != nullptr || dependency_count == 0), hipErrorInvalidValue);
  const std::shared_ptr<Graph> found = find_graph(graph);
  const Lock lock(graph_mutex());
  *node = add_node(*found, std::move(work), {dependencies, dependency_count});
}

KernelLaunch kernel_work(const hipKernelNodeParams *parameters) {
  require(parameters != nullptr && parameters->func != nullptr, hipErrorInvalidValue);
  const dim3 grid = parameters->gridDim;
  const dim3 block = parameters->blockDim;
  const hipFunction_t function = Registry::get().has_kernel(parameters->func)
                                     ? Registry::get().function(parameters->func)
                                     : static_cast<hipFunction_t>(parameters->func);
  return checked_launch(function,
                        {{grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, parameters->sharedMemBytes},
                        parameters->kernelParams, parameters->extra);
}

Copy copy_work(void *to, const void *from, size_t size, hipMemcpyKind kind) {
  Copy copy = copy_of(to, from, size);
  require(!copy.empty(), hipErrorInvalidValue);
  check_copy(copy, kind);
  return copy;
}

Copy copy_work(const hipMemcpy3DParms *parameters) {
  require(parameters != nullptr, hipErrorInvalidValue);
  Copy copy = copy_of(*parameters);
  require(!copy.empty(), hipErrorInvalidValue);
  check_copy(copy, parameters->kind);
  return copy;
}

Fill fill_work(const hipMemsetParams *parameters) {
  require(parameters != nullptr, hipErrorInvalidValue);
  const hipMemsetParams &p = *parameters;
  require(p.elementSize == 1 || p.elementSize == 2 || p.elementSize == 4, hipErrorInvalidValue);
  Fill fill{static_cast<std::byte *>(p.dst), p.value, p.elementSize, p.width, p.height, p.pitch};
  require(!fill.empty(), hipErrorInvalidValue);
  check_fill(fill);
  return fill;
}

HostCall host_work(const hipHostNodeParams *parameters) {
  require(parameters != nullptr && parameters->fn != nullptr, hipErrorInvalidValue);
  return {parameters->fn, parameters->userData};
}

void replace(hipGraphExec_t exec, hipGraphNode_t node, NodeWork work) {
  const std::shared_ptr<GraphExec> found = find_exec(exec);
  const Lock lock(graph_mutex());
  found->replace(node, std::move(work));
}

/// Changes only the graph: executable graphs made from it earlier keep their work.
void set(hipGraphNode_t node, NodeWork work) {
  const std::shared_ptr<GraphNode> found = NodeHandles::get().find(node, hipErrorInvalidValue);
  const Lock lock(graph_mutex());
  require(found->work->index() == work.index(), hipErrorInvalidValue);
  found->work = std::make_shared<const NodeWork>(std::move(work));
}

/// Returns a list as HIP does: only its length, or as many entries as fit, with null after the last.
template <typename T> void give(const std::vector<T> &values, T *out, size_t count) {
  if (out == nullptr) return;
  for (size_t i = 0; i < count; ++i)
    out[i] = i < values.size() ? values[i] : nullptr;
}

void give_count(size_t there_are, const void *out, size_t *count) {
  *count = out == nullptr ? there_are : std::min(*count, there_are);
}

void give_nodes(const std::vector<hipGraphNode_t> &nodes, hipGraphNode_t *out, size_t *count) {
  require(count != nullptr, hipErrorInvalidValue);
  give(nodes, out, *count);
  give_count(nodes.size(), out, count);
}

void instantiate(hipGraphExec_t *exec, hipGraph_t graph) {
  require(exec != nullptr, hipErrorInvalidValue);
  const std::shared_ptr<Graph> found = find_graph(graph);
  const Lock lock(graph_mutex());
  *exec = ExecHandles::get().add(std::make_shared<GraphExec>(list_nodes(*found)));
}

} // namespace

hipError_t hipGraphCreate(hipGraph_t *graph, unsigned flags) {
  return call([&] {
    require(graph != nullptr && flags == 0, hipErrorInvalidValue);
    *graph = GraphHandles::get().add(std::make_shared<Graph>());
  });
}

hipError_t hipGraphDestroy(hipGraph_t graph) {
  return call([&] {
    const std::shared_ptr<Graph> found = find_graph(graph);
    const Lock lock(graph_mutex());
    require(!being_captured(*found), hipErrorInvalidValue);
    GraphHandles::get().remove(graph, hipErrorInvalidValue);
  });
}

hipError_t hipGraphAddKernelNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *dependencies,
                                 size_t dependency_count, const hipKernelNodeParams *parameters) {
  return call([&] { add(node, graph, dependencies, dependency_count, kernel_work(parameters)); });
}

hipError_t hipGraphAddMemcpyNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *dependencies,
                                 size_t dependency_count, const hipMemcpy3DParms *parameters) {
  return call([&] { add(node, graph, dependencies, dependency_count, copy_work(parameters)); });
}

hipError_t hipGraphAddMemcpyNode1D(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *dependencies,
                                   size_t dependency_count, void *to, const void *from, size_t size,
                                   hipMemcpyKind kind) {
  return call([&] { add(node, graph, dependencies, dependency_count, copy_work(to, from, size, kind)); });
}

hipError_t hipGraphAddMemsetNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *dependencies,
                                 size_t dependency_count, const hipMemsetParams *parameters) {
  return call([&] { add(node, graph, dependencies, dependency_count, fill_work(parameters)); });
}

hipError_t hipGraphAddHostNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *dependencies,
                               size_t dependency_count, const hipHostNodeParams *parameters) {
  return call([&] { add(node, graph, dependencies, dependency_count, host_work(parameters)); });
}

hipError_t hipGraphAddChildGraphNode(hipGraphNode_t *node, hipGraph_t graph,
                                     const hipGraphNode_t *dependencies, size_t dependency_count,
                                     hipGraph_t child) {
  return call([&] {
    require(graph != child, hipErrorInvalidValue);
    const std::shared_ptr<Graph> found = find_graph(child);
    ChildGraph work;
    {
      const Lock lock(graph_mutex());
      work.nodes = std::make_shared<const NodeList>(list_nodes(*found));
    }
    add(node, graph, dependencies, dependency_count, std::move(work));
  });
}

hipError_t hipGraphAddEmptyNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *dependencies,
                                size_t dependency_count) {
  return call([&] { add(node, graph, dependencies, dependency_count, EmptyNode()); });
}

hipError_t hipGraphAddEventRecordNode(hipGraphNode_t *node, hipGraph_t graph,
                                      const hipGraphNode_t *dependencies, size_t dependency_count,
                                      hipEvent_t event) {
  return call([&] { add(node, graph, dependencies, dependency_count, EventMark{find_event(event)}); });
}

hipError_t hipGraphAddEventWaitNode(hipGraphNode_t *node, hipGraph_t graph,
                                    const hipGraphNode_t *dependencies, size_t dependency_count,
                                    hipEvent_t event) {
  return call([&] { add(node, graph, dependencies, dependency_count, EventWait{find_event(event)}); });
}

hipError_t hipGraphAddDependencies(hipGraph_t graph, const hipGraphNode_t *from, const hipGraphNode_t *to,
                                   size_t count) {
  return call([&] {
    require((from != nullptr && to != nullptr) || count == 0, hipErrorInvalidValue);
    const std::shared_ptr<Graph> found = find_graph(graph);
    const Lock lock(graph_mutex());
    for (size_t i = 0; i < count; ++i) {
      for (hipGraphNode_t node : {from[i], to[i]})
        require(NodeHandles::get().find(node, hipErrorInvalidValue)->graph == found.get(),
                hipErrorInvalidValue);
      std::vector<hipGraphNode_t> &after = to[i]->after;
      require(from[i] != to[i] && std::find(after.begin(), after.end(), from[i]) == after.end(),
              hipErrorInvalidValue);
      after.push_back(from[i]);
    }
  });
}

hipError_t hipGraphRemoveDependencies(hipGraph_t graph, const hipGraphNode_t *from, const hipGraphNode_t *to,
                                      size_t count) {
  return call([&] {
    require((from != nullptr && to != nullptr) || count == 0, hipErrorInvalidValue);
    const std::shared_ptr<Graph> found = find_graph(graph);
    const Lock lock(graph_mutex());
    for (size_t i = 0; i < count; ++i) {
      const std::shared_ptr<GraphNode> later = NodeHandles::get().find(to[i], hipErrorInvalidValue);
      require(later->graph == found.get() && std::erase(later->after, from[i]) == 1, hipErrorInvalidValue);
    }
  });
}

hipError_t hipGraphDestroyNode(hipGraphNode_t node) {
  return call([&] {
    const std::shared_ptr<GraphNode> found = NodeHandles::get().find(node, hipErrorInvalidValue);
    const Lock lock(graph_mutex());
    require(!being_captured(*found->graph), hipErrorInvalidValue);
    remove_node(*found);
  });
}

hipError_t hipGraphClone(hipGraph_t *clone, hipGraph_t graph) {
  return call([&] {
    require(clone != nullptr, hipErrorInvalidValue);
    const std::shared_ptr<Graph> found = find_graph(graph);
    const Lock lock(graph_mutex());
    *clone = GraphHandles::get().add(hip::clone(*found));
  });
}

hipError_t hipGraphNodeFindInClone(hipGraphNode_t *node, hipGraphNode_t original, hipGraph_t clone) {
  return call([&] {
    require(node != nullptr, hipErrorInvalidValue);
    const std::shared_ptr<GraphNode> wanted = NodeHandles::get().find(original, hipErrorInvalidValue);
    const std::shared_ptr<Graph> found = find_graph(clone);
    const Lock lock(graph_mutex());
    for (hipGraphNode_t candidate : found->nodes)
      if (candidate->original.lock() == wanted) {
        *node = candidate;
        return;
      }
    throw Failure(hipErrorInvalidValue);
  });
}

hipError_t hipGraphGetNodes(hipGraph_t graph, hipGraphNode_t *nodes, size_t *count) {
  return call([&] {
    const std::shared_ptr<Graph> found = find_graph(graph);
    const Lock lock(graph_mutex());
    give_nodes(found->nodes, nodes, count);
  });
}

hipError_t hipGraphGetRootNodes(hipGraph_t graph, hipGraphNode_t *nodes, size_t *count) {
  return call([&] {
    const std::shared_ptr<Graph> found = find_graph(graph);
    const Lock lock(graph_mutex());
    std::vector<hipGraphNode_t> roots;
    for (hipGraphNode_t node : found->nodes)
      if (node->after.empty()) roots.push_back(node);
    give_nodes(roots, nodes, count);
  });
}

hipError_t hipGraphGetEdges(hipGraph_t graph, hipGraphNode_t *from, hipGraphNode_t *to, size_t *count) {
  return call([&] {
    require(count != nullptr && (from == nullptr) == (to == nullptr), hipErrorInvalidValue);
    const std::shared_ptr<Graph> found = find_graph(graph);
    const Lock lock(graph_mutex());
    std::vector<hipGraphNode_t> starts, ends;
    for (hipGraphNode_t node : found->nodes)
      for (hipGraphNode_t earlier : node->after) {
        starts.push_back(earlier);
        ends.push_back(node);
      }
    give(starts, from, *count);
    give(ends, to, *count);
    give_count(starts.size(), from, count);
  });
}

hipError_t hipGraphNodeGetType(hipGraphNode_t node, hipGraphNodeType *type) {
  return call([&] {
    require(type != nullptr, hipErrorInvalidValue);
    *type = hipGraphNodeType(NodeHandles::get().find(node, hipErrorInvalidValue)->work->index());
  });
}

hipError_t hipGraphNodeGetDependencies(hipGraphNode_t node, hipGraphNode_t *dependencies, size_t *count) {
  return call([&] {
    const std::shared_ptr<GraphNode> found = NodeHandles::get().find(node, hipErrorInvalidValue);
    const Lock lock(graph_mutex());
    give_nodes(found->after, dependencies, count);
  });
}

hipError_t hipGraphNodeGetDependentNodes(hipGraphNode_t node, hipGraphNode_t *dependents, size_t *count) {
  return call([&] {
    const std::shared_ptr<GraphNode> found = NodeHandles::get().find(node, hipErrorInvalidValue);
    const Lock lock(graph_mutex());
    std::vector<hipGraphNode_t> later;
    for (hipGraphNode_t other : found->graph->nodes)
      if (std::find(other->after.begin(), other->after.end(), node) != other->after.end())
        later.push_back(other);
    give_nodes(later, dependents, count);
  });
}

hipError_t hipGraphKernelNodeSetParams(hipGraphNode_t node, const hipKernelNodeParams *parameters) {
  return call([&] { set(node, kernel_work(parameters)); });
}

hipError_t hipGraphMemcpyNodeSetParams(hipGraphNode_t node, const hipMemcpy3DParms *parameters) {
  return call([&] { set(node, copy_work(parameters)); });
}

hipError_t hipGraphMemcpyNodeSetParams1D(hipGraphNode_t node, void *to, const void *from, size_t size,
                                         hipMemcpyKind kind) {
  return call([&] { set(node, copy_work(to, from, size, kind)); });
}

hipError_t hipGraphMemsetNodeSetParams(hipGraphNode_t node, const hipMemsetParams *parameters) {
  return call([&] { set(node, fill_work(parameters)); });
}

hipError_t hipGraphHostNodeSetParams(hipGraphNode_t node, const hipHostNodeParams *parameters) {
  return call([&] { set(node, host_work(parameters)); });
}

hipError_t hipGraphInstantiate(hipGraphExec_t *exec, hipGraph_t graph, hipGraphNode_t *error_node, char *log,
                               size_t log_bytes) {
  return call([&] {
    if (error_node) *error_node = nullptr;
    if (log && log_bytes) *log = '\0';
    instantiate(exec, graph);
  });
}

hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t *exec, hipGraph_t graph, unsigned long long flags) {
  return call([&] {
    require((flags & device_launch_flag) == 0, hipErrorNotSupported);
    require((flags & ~harmless_instantiate_flags) == 0, hipErrorInvalidValue);
    instantiate(exec, graph);
  });
}

hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t stream) {
  return call([&] {
    const std::shared_ptr<GraphExec> found = find_exec(exec);
    const std::shared_ptr<Stream> queue = work_stream(stream);
    if (queue->capturing) {
      ChildGraph child;
      {
        const Lock lock(graph_mutex());
        child.nodes = std::make_shared<const NodeList>(found->nodes());
      }
      if (capture(queue, std::move(child))) return;
    }
    Scheduler::get().require_no_fault(queue->device);
    const Lock lock(graph_mutex());
    found->launch(found, queue);
  });
}

hipError_t hipGraphUpload(hipGraphExec_t exec, hipStream_t stream) {
  return call([&] {
    find_exec(exec);
    refuse_while_capturing(find_stream(stream));
  });
}

hipError_t hipGraphExecDestroy(hipGraphExec_t exec) {
  return call([&] { ExecHandles::get().remove(exec, hipErrorInvalidValue); });
}

hipError_t hipGraphExecUpdate(hipGraphExec_t exec, hipGraph_t graph, hipGraphNode_t *error_node,
                              hipGraphExecUpdateResult *result) {
  return call([&] {
    require(error_node != nullptr && result != nullptr, hipErrorInvalidValue);
    const std::shared_ptr<GraphExec> found = find_exec(exec);
    const std::shared_ptr<Graph> source = find_graph(graph);
    const Lock lock(graph_mutex());
    *error_node = nullptr;
    *result = found->update(list_nodes(*source));
    require(*result == hipGraphExecUpdateSuccess, hipErrorGraphExecUpdateFailure);
  });
}

hipError_t hipGraphExecKernelNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                           const hipKernelNodeParams *parameters) {
  return call([&] { replace(exec, node, kernel_work(parameters)); });
}

hipError_t hipGraphExecMemcpyNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                           const hipMemcpy3DParms *parameters) {
  return call([&] { replace(exec, node, copy_work(parameters)); });
}

hipError_t hipGraphExecMemcpyNodeSetParams1D(hipGraphExec_t exec, hipGraphNode_t node, void *to,
                                             const void *from, size_t size, hipMemcpyKind kind) {
  return call([&] { replace(exec, node, copy_work(to, from, size, kind)); });
}

hipError_t hipGraphExecMemsetNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                           const hipMemsetParams *parameters) {
  return call([&] { replace(exec, node, fill_work(parameters)); });
}

hipError_t hipGraphExecHostNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                         const hipHostNodeParams *parameters) {
  return call([&] { replace(exec, node, host_work(parameters)); });
}

} // namespace sluice::emulator::hip

//===- graph.cpp - graphs of operations, and their executable form --------------------------------------===//
#include "emulator/hip/graph.h"

#include <algorithm>
#include <map>
#include <set>

#include "emulator/hip/device.h"
#include "emulator/hip/error.h"
#include "emulator/hip/events.h"
#include "emulator/hip/handles.h"

namespace sluice::emulator::hip {

namespace {

using NodeHandles = Handles<hipGraphNode_t, GraphNode>;

template <typename... Bodies> struct Overloaded : Bodies... {
  using Bodies::operator()...;
};

/// Appends the entries, with child graphs expanded: an empty entry marks a child's end.
void append_flat(const NodeList &graph, const std::vector<size_t> &before_all, NodeList &flat) {
  std::vector<size_t> place; // by entry: its index in `flat`
  for (const NodeList::Entry &entry : graph.entries) {
    std::vector<size_t> after;
    for (size_t earlier : entry.after)
      after.push_back(place[earlier]);
    if (after.empty()) after = before_all;
    std::shared_ptr<const NodeWork> work = entry.work;
    if (const auto *child = std::get_if<ChildGraph>(work.get())) {
      const size_t first = flat.entries.size();
      append_flat(*child->nodes, after, flat);
      for (size_t i = first; i < flat.entries.size(); ++i) {
        flat.entries[i].origin = nullptr;
        after.push_back(i);
      }
      work = std::make_shared<const NodeWork>(EmptyNode());
    }
    place.push_back(flat.entries.size());
    flat.entries.push_back({std::move(work), std::move(after), entry.origin});
  }
}

} // namespace

std::mutex &graph_mutex() {
  static std::mutex *const mutex = new std::mutex;
  return *mutex;
}

Graph::~Graph() {
  for (hipGraphNode_t node : nodes)
    NodeHandles::get().remove(node);
}

hipGraphNode_t add_node(Graph &graph, NodeWork work, std::span<const hipGraphNode_t> after) {
  for (hipGraphNode_t earlier : after) {
    require(NodeHandles::get().find(earlier, hipErrorInvalidValue)->graph == &graph, hipErrorInvalidValue);
    require(std::count(after.begin(), after.end(), earlier) == 1, hipErrorInvalidValue);
  }
  auto node = std::make_shared<GraphNode>(
      GraphNode{&graph, std::make_shared<const NodeWork>(std::move(work)), {after.begin(), after.end()}});
  graph.nodes.push_back(node.get());
  NodeHandles::get().add(node);
  return node.get();
}

void remove_node(const GraphNode &node) {
  const auto handle = const_cast<hipGraphNode_t>(&node);
  for (hipGraphNode_t other : node.graph->nodes)
    std::erase(other->after, handle);
  std::erase(node.graph->nodes, handle);
  NodeHandles::get().remove(handle);
}

std::shared_ptr<Graph> clone(const Graph &graph) {
  auto copy = std::make_shared<Graph>();
  std::map<hipGraphNode_t, hipGraphNode_t> twin;
  for (hipGraphNode_t node : graph.nodes) {
    const hipGraphNode_t made = add_node(*copy, *node->work, {});
    made->original = NodeHandles::get().find(node);
    twin[node] = made;
  }
  for (hipGraphNode_t node : graph.nodes)
    for (hipGraphNode_t earlier : node->after)
      twin[node]->after.push_back(twin[earlier]);
  return copy;
}

NodeList list_nodes(const Graph &graph) {
  NodeList list;
  std::map<const GraphNode *, size_t> place;
  while (place.size() < graph.nodes.size()) {
    const size_t before = place.size();
    for (hipGraphNode_t node : graph.nodes) {
      if (place.contains(node)) continue;
      std::vector<size_t> after;
      for (hipGraphNode_t earlier : node->after)
        if (const auto at = place.find(earlier); at != place.end()) after.push_back(at->second);
      if (after.size() < node->after.size()) continue;
      place.emplace(node, list.entries.size());
      list.entries.push_back({node->work, std::move(after), NodeHandles::get().find(node)});
    }
    require(place.size() != before, hipErrorInvalidValue); // a cycle
  }
  return list;
}

bool all_before(const Graph &graph, std::span<const hipGraphNode_t> ends) {
  std::set<hipGraphNode_t> seen(ends.begin(), ends.end());
  std::vector<hipGraphNode_t> open(seen.begin(), seen.end());
  while (!open.empty()) {
    const hipGraphNode_t node = open.back();
    open.pop_back();
    for (hipGraphNode_t earlier : node->after)
      if (seen.insert(earlier).second) open.push_back(earlier);
  }
  return seen.size() == graph.nodes.size();
}

//===--- GraphExec --------------------------------------------------------------------------------------===//

GraphExec::GraphExec(const NodeList &graph) {
  append_flat(graph, {}, list);
  // A node continues the lane of its first dependency that no other node continues yet; without one, it
  // begins a lane. So lanes add no order beyond the dependencies.
  std::vector<size_t> ends; // the last entry of each lane
  for (size_t i = 0; i < list.entries.size(); ++i) {
    size_t lane = ends.size();
    for (size_t earlier : list.entries[i].after)
      if (ends[lanes[earlier]] == earlier) lane = std::min(lane, lanes[earlier]);
    if (lane == ends.size()) ends.push_back(i);
    ends[lane] = i;
    lanes.push_back(lane);
  }
  for (size_t lane = 1; lane < ends.size(); ++lane)
    side_streams.push_back(Scheduler::get().create(current_device(), hipStreamNonBlocking, 0));
}

GraphExec::~GraphExec() {
  for (const std::shared_ptr<Stream> &stream : side_streams)
    Scheduler::get().close(stream);
}

void GraphExec::replace(hipGraphNode_t node, NodeWork work) {
  for (NodeList::Entry &entry : list.entries)
    if (node != nullptr && entry.origin.get() == node) {
      require(entry.work->index() == work.index(), hipErrorInvalidValue);
      entry.work = std::make_shared<const NodeWork>(std::move(work));
      return;
    }
  throw Failure(hipErrorInvalidValue);
}

hipGraphExecUpdateResult GraphExec::update(const NodeList &graph) {
  NodeList flat;
  append_flat(graph, {}, flat);
  if (flat.entries.size() != list.entries.size()) return hipGraphExecUpdateErrorTopologyChanged;
  for (size_t i = 0; i < flat.entries.size(); ++i) {
    if (flat.entries[i].after != list.entries[i].after) return hipGraphExecUpdateErrorTopologyChanged;
    if (flat.entries[i].work->index() != list.entries[i].work->index())
      return hipGraphExecUpdateErrorNodeTypeChanged;
  }
  for (size_t i = 0; i < flat.entries.size(); ++i)
    list.entries[i].work = flat.entries[i].work;
  return hipGraphExecUpdateSuccess;
}

void GraphExec::launch(const std::shared_ptr<GraphExec> &self, const std::shared_ptr<Stream> &stream) {
  Options now = Device::get().options();
  now.pools = nullptr; // an allocator may take back the pieces that a graph goes on using
  const auto options = std::make_shared<const Options>(std::move(now));
  std::vector<Scheduler::Piece> pieces;
  std::vector<std::pair<std::shared_ptr<Event>, std::shared_ptr<EventRecord>>> marks;
  for (size_t i = 0; i < list.entries.size(); ++i) {
    const NodeList::Entry &entry = list.entries[i];
    Scheduler::Piece piece;
    piece.lane = lanes[i];
    piece.after = entry.after;
    if (entry.after.empty() && last_launch.stream) piece.also_after.push_back(last_launch);
    std::visit(Overloaded{[](const EmptyNode &) {}, [](const ChildGraph &) {}, // expanded
                          [&](const EventWait &wait) {
                            const Event::State state = wait.event->state();
                            require(!state.capture, hipErrorCapturedEvent);
                            if (state.record) piece.also_after.push_back(state.record->ticket);
                          },
                          [&](const EventMark &mark) {
                            piece.record = std::make_shared<EventRecord>();
                            marks.emplace_back(mark.event, piece.record);
                          },
                          [](const auto &) {}},
               *entry.work);
    piece.always = piece.record != nullptr;
    piece.host_call = std::holds_alternative<HostCall>(*entry.work);
    piece.run = [work = located(entry.work), options, record = piece.record] {
      std::visit(Overloaded{[](const EmptyNode &) {}, [](const ChildGraph &) {}, [](const EventWait &) {},
                            [&](const EventMark &) { record->time = std::chrono::steady_clock::now(); },
                            [&](const auto &call) { call.run(*options); }},
                 *work);
    };
    pieces.push_back(std::move(piece));
  }
  if (pieces.empty()) return;
  last_launch = Scheduler::get().enqueue_graph(stream, side_streams, std::move(pieces), self);
  for (auto &[event, record] : marks)
    event->set({std::move(record), nullptr, {}});
}

} // namespace sluice::emulator::hip

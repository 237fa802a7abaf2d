//===- graph.h - graphs of operations, and what they are launched from ----------------------------------===//
//
// A graph is edited; a NodeList is its state at one moment, in an order that dependencies allow, and never
// changes. Instantiating makes one list of all nodes, child graphs included. One mutex guards all graphs and
// captures.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "emulator/hip/operations.h"
#include "emulator/hip/scheduler.h"

namespace sluice::emulator::hip {

struct Graph;

struct GraphNode {
  Graph *graph;
  std::shared_ptr<const NodeWork> work;
  std::vector<hipGraphNode_t> after;
  std::weak_ptr<const GraphNode> original = {}; // of a clone's node
};

struct Graph {
  Graph() = default;
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;
  ~Graph();
  std::vector<hipGraphNode_t> nodes; // in the order they were added; live in the table of handles
};

struct NodeList {
  struct Entry {
    std::shared_ptr<const NodeWork> work; // shared with launches under way; replaced, never changed
    std::vector<size_t> after;
    std::shared_ptr<const GraphNode> origin; // null: of a child graph
  };
  std::vector<Entry> entries;
};

/// Of all graphs, nodes and captures.
std::mutex &graph_mutex();

// With the mutex held. These throw Failure(hipErrorInvalidValue): for what is not a node of the graph, for an
// edge that is there already, for a circle.
hipGraphNode_t add_node(Graph &graph, NodeWork work, std::span<const hipGraphNode_t> after);
/// It leaves its graph, and its edges with it.
void remove_node(const GraphNode &node);
/// A graph of the same nodes and edges.
std::shared_ptr<Graph> clone(const Graph &graph);
NodeList list_nodes(const Graph &graph);
/// Whether each node is one of `ends` or comes before one.
bool all_before(const Graph &graph, std::span<const hipGraphNode_t> ends);

/// A graph that can be launched. Launches of one run one after the other.
class GraphExec {
public:
  explicit GraphExec(const NodeList &graph);
  ~GraphExec();
  GraphExec(const GraphExec &) = delete;
  GraphExec &operator=(const GraphExec &) = delete;

  // With the graphs' mutex held.
  const NodeList &nodes() const { return list; }
  /// Of launches from now on. The node is one of the graph that was instantiated, and does work of this type.
  void replace(hipGraphNode_t node, NodeWork work);
  /// Takes over the work of a graph of the same shape. hipSuccess, or what differs.
  hipGraphExecUpdateResult update(const NodeList &graph);
  /// `self` is this object: its launches keep it.
  void launch(const std::shared_ptr<GraphExec> &self, const std::shared_ptr<Stream> &stream);

private:
  NodeList list;
  std::vector<size_t> lanes; // of each entry
  std::vector<std::shared_ptr<Stream>> side_streams;
  Ticket last_launch;
};

} // namespace sluice::emulator::hip

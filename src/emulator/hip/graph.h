//===- graph.h - graphs of operations, and their executable form ----------------------------------------===//
//
// A graph can be edited. A NodeList is its state at one moment, in dependency order, and never changes.
// Instantiating makes one list of all nodes, including those of child graphs. One mutex guards all graphs and
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
  std::weak_ptr<const GraphNode> original = {}; // set for nodes of a clone
};

struct Graph {
  Graph() = default;
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;
  ~Graph();
  std::vector<hipGraphNode_t> nodes; // in the order of their addition; they live in the table of handles
};

struct NodeList {
  struct Entry {
    std::shared_ptr<const NodeWork> work; // shared with running launches; replaced, never changed
    std::vector<size_t> after;
    std::shared_ptr<const GraphNode> origin; // null for nodes of a child graph
  };
  std::vector<Entry> entries;
};

/// Guards all graphs, nodes and captures.
std::mutex &graph_mutex();

// Call with the mutex held. They throw Failure(hipErrorInvalidValue) for a foreign node, for an edge that
// already exists, and for a cycle.
hipGraphNode_t add_node(Graph &graph, NodeWork work, std::span<const hipGraphNode_t> after);
/// The node leaves its graph together with its edges.
void remove_node(const GraphNode &node);
/// A new graph with the same nodes and edges.
std::shared_ptr<Graph> clone(const Graph &graph);
NodeList list_nodes(const Graph &graph);
/// Whether every node is one of `ends` or precedes one.
bool all_before(const Graph &graph, std::span<const hipGraphNode_t> ends);

/// A graph that can be launched. Launches of the same one run one after another.
class GraphExec {
public:
  explicit GraphExec(const NodeList &graph);
  ~GraphExec();
  GraphExec(const GraphExec &) = delete;
  GraphExec &operator=(const GraphExec &) = delete;

  // Call with the graphs' mutex held.
  const NodeList &nodes() const { return list; }
  /// Affects later launches. The node is one of the instantiated graph, and its work has this type.
  void replace(hipGraphNode_t node, NodeWork work);
  /// Takes over the work of a graph of the same shape. Returns hipSuccess or the difference.
  hipGraphExecUpdateResult update(const NodeList &graph);
  /// `self` is this object: its launches keep it alive.
  void launch(const std::shared_ptr<GraphExec> &self, const std::shared_ptr<Stream> &stream);

private:
  NodeList list;
  std::vector<size_t> lanes; // by entry
  std::vector<std::shared_ptr<Stream>> side_streams;
  Ticket last_launch;
};

} // namespace sluice::emulator::hip

// From a request to one program per device.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/options.h"
#include "graph/analysis/frames.h"
#include "graph/graph.h"
#include "graph/partition/partition.h"
#include "graph/placement/placer.h"

namespace tagflow::graph {
class Budget;  // graph/budget.h
}

namespace tagflow::actors {

class FrozenVariables;
class StateGroups;

// What the distributions of all signatures of a session have in common. Refers
// to what it is made of.
struct SessionContext {
  const graph::Graph& graph;
  const graph::FrameMap& frames;  // of the graph
  const SessionOptions& options;
  // These are of all processes that partitions may run in.
  std::span<const graph::DeviceInfo> devices;
  const graph::KernelCatalog& kernels;
  const graph::CostModel& costs;
  // Of the graph. If they are null and the options have a state, they are
  // computed, in time that grows with the size of the graph.
  const StateGroups* groups = nullptr;
  // Asked by all stages; may be null.
  graph::Budget* budget = nullptr;
};

// A signature, resolved in its graph.
struct Request {
  std::vector<graph::Endpoint> feeds;
  std::vector<graph::Endpoint> fetches;
  std::vector<graph::Node*> targets;
  // One shape for each feed, which all runs have. Empty: the shapes that the
  // graph declares.
  std::vector<Shape> feed_shapes = {};
};

// The purpose of a distribution.
enum class Purpose : uint8_t {
  kRun,
  kFrozenRun,  // variables are constants: Note [Frozen variables]
  kExplanation,
};

// The programs of all devices.
struct Distribution {
  // In the order of the devices; a device without nodes has none.
  std::vector<graph::Partition> partitions;
  // Where each node runs, and why; its warnings include those about transfers.
  // Nodes have new ids here, not those of the original graph, and keep them
  // when the program is cut.
  graph::PlacementResult placement;
  // For an explanation only: the graph that was placed, before the cut, and the
  // reasons in words, by node id.
  std::optional<graph::Graph> placed;
  std::vector<std::string> reasons;
  // The versions of variables that a frozen run is compiled for; null for
  // others.
  std::shared_ptr<FrozenVariables> frozen;
};

// The stages, in order: the needed part of the graph is copied; its functions
// are lowered; the device constraints of its nodes are resolved (Note
// [Constraints and passes]); the passes rewrite it; its nodes are placed; it is
// cut into one partition per device that has nodes; passes rewrite the
// partitions (graph::Stage says which and when); and readers get order edges
// (Note [Readers first] in graph/partition/readers_first.h). InvalidArgument if
// a feed or fetch is inside a loop, if a function expands to an invalid graph,
// or if a node cannot run on the device that it requires.
// ResourceExhausted if it needs more nodes than the options allow, or
// DeadlineExceeded or Cancelled if the budget has ended.
// It uses the options about passes, placement and transfers. For an
// explanation, every placement is simulated, and reasons are given. The time
// depends on the needed part of the graph only. Thread-safe: several threads
// may distribute parts of one graph at once, as long as nobody changes the
// graph, its frames or the costs.
// REQUIRES: the graph of the session is valid.
Result<Distribution> distribute(const SessionContext& session,
                                const Request& request,
                                Purpose purpose = Purpose::kRun);

}  // namespace tagflow::actors

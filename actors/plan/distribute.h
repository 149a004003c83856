// From what is asked of a graph to one program per device.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/options.h"
#include "devices/device.h"
#include "graph/analysis/frames.h"
#include "graph/graph.h"
#include "graph/partition/partition.h"
#include "graph/placement/placer.h"

namespace tagflow::actors {

class FrozenVariables;
class StateGroups;

using Devices = std::span<const std::unique_ptr<devices::Device>>;

// What a signature stands for in its graph.
struct Request {
  std::vector<graph::Endpoint> feeds;
  std::vector<graph::Endpoint> fetches;
  std::vector<graph::Node*> targets;
  // One for each feed, which it fits: of all runs. Empty: what the graph says.
  std::vector<Shape> feed_shapes = {};
};

// What it is distributed for.
enum class Purpose : uint8_t {
  kRun,
  kFrozenRun,  // variables are constants: Note [Frozen variables]
  kExplanation,
};

// What each device does.
struct Distribution {
  // In the order of the devices; those that have nothing to do have none.
  std::vector<graph::Partition> partitions;
  // Where each node runs, and why; its warnings are of transfers, too. Nodes
  // have ids of their own here, not those of the graph that they come from, and
  // keep them when they are cut.
  graph::PlacementResult placement;
  // Where they were asked for: the graph that was placed, before the cut, and
  // the reasons in words, by node id.
  std::optional<graph::Graph> placed;
  std::vector<std::string> reasons;
  // What a frozen run is compiled for; null for others.
  std::shared_ptr<FrozenVariables> frozen;
};

// The stages, in order: the part of the graph that is needed is copied, its
// functions are lowered, what its nodes ask of their devices is resolved (Note
// [Constraints and passes]), the passes rewrite it, its nodes are placed, it is
// cut into one partition per device that has any, these are rewritten once
// more, readers get their turns (Note [Readers first] in
// graph/partition/readers_first.h), and layers are put together.
// InvalidArgument for a feed or fetch inside a loop, where a function expands
// to what is not valid, and where a node cannot run where it must.
// Of the options it takes the passes and what is about placement and transfers.
// For an explanation, the placement is simulated, whoever chose it, and reasons
// are given. It looks at what is needed of the graph only, and costs by that.
// Thread-safe: several threads may distribute parts of one graph at once, as
// long as nobody changes that, its frames or the costs meanwhile.
// `groups` are the graph's; where they are null and the options have a state,
// they are found, which takes time with the size of the graph.
// REQUIRES: `graph` is valid, and `frames` are its.
Result<Distribution> distribute(const graph::Graph& graph,
                                const graph::FrameMap& frames,
                                const Request& request,
                                const SessionOptions& options, Devices devices,
                                const graph::CostModel& costs,
                                Purpose purpose = Purpose::kRun,
                                const StateGroups* groups = nullptr);

}  // namespace tagflow::actors

// Simulates a run of a program: see Note [The simulation] in placer.h.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "graph/analysis/topology.h"
#include "graph/placement/placer.h"
#include "graph/placement/program_costs.h"
#include "graph/placement/timeline.h"
#include "graph/precedence.h"

namespace tagflow::graph {

// An input or control input of a node.
struct Source {
  static constexpr int kControl = -1;

  const Node* node = nullptr;
  int port = 0;
};

// Calls visit(source) for each, except for back edges.
template <class Visit>
void visit_sources(const Node& node, const Visit& visit) {
  for (size_t i = 0; i < node.inputs().size(); ++i)
    if (!is_back_edge(node, i))
      visit(Source{node.inputs()[i].node, node.inputs()[i].port});
  for (const Node* control : node.control_inputs())
    visit(Source{control, Source::kControl});
}

// The arguments of the constructor must outlive it. Thread-compatible.
class Simulation {
 public:
  Simulation(const Program& program, std::span<const DeviceInfo> devices,
             const ProgramCosts& costs);

  // Calls visit(node) for every node: each time for the one that could start
  // first among those whose sources have been visited. InvalidArgument if nodes
  // form a cycle.
  Status walk(const std::function<void(const Node&)>& visit);
  // The visited nodes, in that order.
  std::span<const NodeId> visited() const { return visited_; }

  // Runs the node on the device. REQUIRES: all its sources have been run.
  void put(const Node& node, uint32_t device);
  bool has_run(const Node& node) const { return nodes_[node.id()].has_run; }
  // REQUIRES: has_run(node).
  uint32_t device_of(const Node& node) const {
    return result_.placement.device_of[node.id()];
  }

  struct Arrival {
    double time_ns = 0;
    double bytes = 0;  // that would have to be sent
  };
  // When the device would have all inputs of the node. device_of(node) gives
  // the assumed device of nodes that have not run.
  Arrival arrival(const Node& node, uint32_t device,
                  const std::function<uint32_t(const Node&)>& device_of);
  const Timeline& timeline() const { return timeline_; }

  PlacementResult take() && { return std::move(result_); }

 private:
  struct NodeState {
    uint32_t pending = 0;  // sources that have not been visited
    uint32_t output = 0;   // the number of its first output
    bool has_run = false;
    double finish_ns = 0;  // estimated, until it has run
  };
  // A tensor on a device other than its own.
  struct Copy {
    uint32_t device = 0;
    uint32_t next = 0;  // of the same tensor, + 1; 0: none
    double arrival_ns = 0;
  };
  struct Output {
    uint32_t readers = 0;   // that have not run
    uint32_t copies = 0;    // the first, + 1
    uint32_t question = 0;  // the last arrival() call that counted it
    double bytes = 0;
  };

  void number_outputs();
  void list_readers(std::span<const Endpoint> fetches);
  void make_ready(const Node& node);
  Output& output_of(const Source& source);
  const Copy* find_copy(const Output& output, uint32_t device) const;
  // When the tensor is on the device; it is sent there if necessary.
  double bring(const Source& source, uint32_t device, double repeats);
  void hold_outputs(const Node& node, uint32_t device);
  void release(const Output& output, uint32_t device);

  const Graph& graph_;
  const ProgramCosts& costs_;
  Timeline timeline_;
  std::vector<NodeState> nodes_;  // by id
  // The outputs of each node in sequence, then one for its control edges.
  std::vector<Output> outputs_;
  std::vector<Copy> copies_;
  Precedence readers_{0, 0};  // by node id
  using Ready = std::pair<double, NodeId>;
  std::vector<Ready> ready_;  // a heap, the earliest one in front
  std::vector<NodeId> visited_;
  uint32_t question_ = 0;      // number of arrival() calls
  std::vector<double> times_;  // by device; a reused buffer
  PlacementResult result_;
};

}  // namespace tagflow::graph

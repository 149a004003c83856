// PlanBuilder: compiles the needed part of a graph into a Plan. Internal to
// plan.cpp; what it produces is described in plan.h.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/plan/plan.h"
#include "graph/analysis/frames.h"
#include "graph/hash_index.h"
#include "graph/node_set.h"

namespace tagflow::actors {

// Works backwards from the fetches and targets: a request for the source of a
// tensor creates the draft of the node that produces it, and queues this node
// to be connected. So only needed nodes exist, and there is no recursion.
class PlanBuilder {
 public:
  // Adds to `plan`, which must not be used after an error.
  PlanBuilder(const graph::Graph& graph, const graph::FrameMap& frames,
              const PlanOptions& options, const KernelLookup& kernels,
              Plan& plan);

  // REQUIRES: each feed is added once.
  Status add_feeds(const std::vector<graph::Endpoint>& feeds);
  Status add_fetches(const std::vector<graph::Endpoint>& fetches);
  // The results of the body of function `name`.
  Status add_results(const std::string& name,
                     const std::vector<graph::Endpoint>& results);
  Status add_target(graph::Node* node);
  // REQUIRES: everything else has been added.
  void add_order_edges(std::span<const graph::OrderEdge> order_edges);
  // Connects all requested nodes, and lays them out.
  Status finish();

 private:
  // Where tokens come from: a port of a node, or an arrival, of one frame. An
  // input that a loop's Merge feeds has two sources.
  struct Source {
    uint32_t frame = 0;
    bool is_arrival = false;
    uint32_t index = 0;  // of the arrival, or of the node
    uint32_t port = 0;   // kControlPort: the control output
    bool operator==(const Source&) const = default;
  };
  using Sources = boost::container::small_vector<Source, 2>;
  static constexpr uint32_t kControlPort = ~0u;

  // A value that is known now, and the nodes that its readers must wait for.
  // None of these is folded itself.
  struct Folded {
    Tensor value;
    std::span<graph::Node* const> waits;
  };

  using Edges = boost::container::small_vector<EdgeItem, 2>;
  struct DraftNode {
    DraftNode() = default;
    // Allocates nothing, although small_vector does not declare it: so a list
    // of them moves its elements when it grows.
    DraftNode(DraftNode&&) noexcept = default;

    NodeItem item;
    uint32_t waits = 0;         // inputs and control inputs awaited
    uint32_t waits_steady = 0;  // the same without loop constants
    uint32_t merge_first = 0;   // data inputs that can arrive in iteration 0
    uint32_t merge_later = 0;   // and in later ones
    boost::container::small_vector<Edges, 2> outputs;  // control last
  };
  struct DraftArrival {
    ArrivalItem item;
    Edges edges;
  };
  struct DraftFrame {
    FramePlan plan;
    std::vector<DraftNode> nodes;
    std::vector<DraftArrival> arrivals;
    std::vector<Edges> child_ends;  // per child, or none
    uint32_t next_port = 0;
  };
  // A node that must still be connected.
  struct Work {
    graph::Node* node = nullptr;
    uint32_t index = 0;     // of the draft node, if it is one
    bool is_draft = false;  // else a compiled Enter, Exit, NextIteration
  };

  // The sources of a draft node's data and control inputs, without duplicates.
  class Seen {
   public:
    // Returns whether they are new.
    bool insert(const Sources& sources);

   private:
    boost::container::small_vector<Sources, 3> list_;
    graph::HashIndex index_;  // of `list_`, if that is long
    uint32_t indexed_ = 0;
  };

  // The nodes that a Const with control inputs waits for, with folded nodes
  // replaced by what they wait for.
  struct Waits {
    boost::container::small_vector<graph::Node*, 2> nodes;
    // There are many: then the Const becomes a node, so that its readers do not
    // have to wait for each of them.
    bool too_many = false;
  };

  // How a node is executed.
  enum class Role : uint8_t {
    kNode,
    kForward,
    kTrigger,
    kSwitch,
    kMerge,
    kConst,
    kCross,
    kSend,
    kRecv,
    kCall
  };
  static Role find_role(const graph::Node& node);
  Role role_of(const graph::Node& node) const { return known_[node.id()].role; }
  bool is_alias(const graph::Node& node) const;
  bool is_compiled_merge(const graph::Node& node) const;
  bool is_compiled_cross(const graph::Node& node) const;

  uint32_t frame_index(graph::FrameId id);
  uint32_t frame_of(const graph::Node& node);
  uint32_t output_frame_of(const graph::Node& node);
  bool is_fed(const graph::Endpoint& endpoint) const;
  graph::Endpoint through_aliases(graph::Endpoint endpoint) const;
  graph::Node* constant_of(graph::Endpoint endpoint) const;
  const Waits& waits_of(graph::Node* constant);
  std::optional<Folded> fold(const graph::Endpoint& endpoint);

  Result<uint32_t> draft(graph::Node* node);
  uint32_t arrival(graph::Node* node);
  Result<Sources> sources(graph::Endpoint endpoint);
  Result<Sources> control_sources(graph::Node* node);
  Edges& edges_of(const Source& source);
  bool is_loop_constant(const Sources& sources);

  Status connect(const Work& work);
  Status connect_draft(graph::Node* node, uint32_t index);
  Status connect_input(graph::Node* node, uint32_t frame, uint32_t index,
                       int input, std::vector<graph::Node*>& controls,
                       Seen& seen);
  Status connect_controls(graph::Node* node, uint32_t frame, uint32_t index,
                          const std::vector<graph::Node*>& controls,
                          Seen& seen);
  Status connect_cross(graph::Node* node, const Sources& from);
  static uint8_t log_output_bytes(const graph::Node& node);
  Status add_call(const graph::Node& node, NodeItem& item, DraftFrame& frame);
  void connect_order_edge(const graph::OrderEdge& edge);
  static size_t num_edges(const DraftFrame& draft);
  static void lay_out(DraftFrame& draft);

  const graph::Graph& graph_;
  const graph::FrameMap& frames_;
  const PlanOptions& options_;
  const KernelLookup& kernels_;
  Plan& plan_;
  const size_t first_frame_;  // in the plan
  // Reserved for all static frames: the elements never move.
  std::vector<DraftFrame> drafts_;
  static constexpr uint32_t kNone = ~0u;
  std::vector<uint32_t> frame_index_;  // by FrameId; kNone: not created yet
  // What is known about a node.
  struct Known {
    Role role = Role::kNode;
    uint32_t index = kNone;    // of its draft
    uint32_t arrival = kNone;  // its number
    // The start of the chain of aliases that ends at this node; its node is
    // null while it is not known.
    graph::Endpoint origin;
  };
  mutable std::vector<Known> known_;  // by node id
  // For Consts with control inputs, by id; filled on request.
  std::unordered_map<graph::NodeId, Waits> waits_;
  // By FrameId: whether an Enter that is not constant starts it.
  std::vector<bool> has_start_;
  graph::NodeSet fed_;
  std::unordered_map<graph::Endpoint, uint32_t, graph::EndpointHash> feeds_;
  graph::NodeSet index_read_;  // Merges whose index somebody reads
  std::span<const graph::OrderEdge> order_edges_;
  std::vector<Work> work_;  // done as far as next_work_
  size_t next_work_ = 0;
};

}  // namespace tagflow::actors

// Analysis: the facts about a graph that making its gradient needs.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "autodiff/call_table.h"
#include "autodiff/explain.h"
#include "graph/analysis/frames.h"
#include "graph/analysis/whole_loops.h"
#include "graph/graph.h"

namespace tagflow::autodiff {

using graph::Conditions;
using graph::Endpoint;
using graph::FrameId;
using graph::Graph;
using graph::Node;

// A variable of a loop: Merge(Enter, NextIteration).
struct LoopVariable {
  Node* merge = nullptr;
  Node* enter = nullptr;
  Node* next = nullptr;

  // Whether it is the same in all iterations.
  bool is_invariant() const;
};

// The tensor from which `tensor` has its value, through Identities and
// Switches.
Endpoint value_source(Endpoint tensor);

// Merges `known` into the known shape of a tensor; has no effect if the two
// contradict each other.
void narrow_shape(Graph& graph, const Endpoint& tensor,
                  const PartialShape& known);

// A variable of int32 or int64 to which each iteration adds the same constant.
// counter_of() returns nothing for any other variable.
struct Counter {
  Endpoint first;  // the initial value
  int64_t step = 0;
};
std::optional<Counter> counter_of(const LoopVariable& variable);

// The attribute of a node whose output 0 is the flow of a TensorArray.
inline constexpr std::string_view kFlowAttr = "_tensor_array_flow";

// A loop as the graph has it.
struct Loop {
  FrameId frame = FrameId::kRoot;
  Node* loop_cond = nullptr;
  std::vector<LoopVariable> variables;
  std::vector<Node*> constants;  // Enters
  std::vector<Node*> exits;
  // Why the loop cannot be differentiated; empty if it can.
  std::string trouble;
};

// Data input `index` of `node`.
struct Use {
  Node* node = nullptr;
  size_t index = 0;
};

// It knows the nodes that the graph has when it is made, and those that are
// reported to add(). It stays valid while nodes are only added.
// Thread-compatible.
class Analysis {
 public:
  // Fails if the graph's frames are invalid. `calls` describes the functions
  // that run in frames of their own. `function` is the function whose body the
  // graph is, if any; it appears in notes. REQUIRES: `graph` and `calls`
  // outlive the result.
  static Result<std::unique_ptr<Analysis>> make(
      Graph& graph, const CallTable* calls = nullptr,
      std::string function = "");

  Graph& graph() { return graph_; }
  // The function that the node calls in a frame of its own; null if the node
  // is not such a call.
  const CalledFunction* called(const Node& node) const {
    return calls_ == nullptr ? nullptr : calls_->find(node);
  }
  // Whether the graph had the node when this was made.
  bool knows(const Node& node) const { return node.id() < end_id_; }
  std::span<const Use> uses(const Node& node) const;

  // The frames in which its inputs and its outputs arrive.
  FrameId frame_of(const Node& node) const;
  FrameId output_frame(const Node& node) const;
  // Of an Enter or Exit, the inner one of its two frames; of any other node,
  // its frame.
  FrameId inner_frame(const Node& node) const {
    return node.is_enter() ? output_frame(node) : frame_of(node);
  }
  FrameId parent(FrameId frame) const { return frames_.frame(frame).parent; }
  // `inner` is `outer` or inside it.
  bool is_within(FrameId inner, FrameId outer) const {
    return frames_.is_within(inner, outer);
  }
  const graph::StaticFrame& frame(FrameId frame) const {
    return frames_.frame(frame);
  }
  // REQUIRES: not the root.
  const Loop& loop(FrameId frame) const { return loops_[size_t(frame)]; }
  // The child of `frame` that `inner` is, or is in; kRoot if it is not below
  // `frame`.
  FrameId child_towards(FrameId frame, FrameId inner) const;

  // The conditions under which a tensor is live, or a node is computed.
  Conditions::Set live(const Endpoint& tensor);
  Conditions::Set live(const Node& node);
  Conditions& conditions() { return facts_.liveness->conditions(); }
  // The conditions under which the loop goes on, and under which it ends.
  Conditions::Set goes_on(const Loop& loop);
  Conditions::Set ends(const Loop& loop);
  // Whether the node is a Switch whose predicate is the LoopCond of its frame.
  bool is_loop_switch(const Node& node) const;
  // A tensor of `frame` with the value of the condition's source; null if no
  // Switch of the frame reads such a tensor.
  Endpoint predicate_in(FrameId frame, const graph::Condition& condition);
  Endpoint origin(const Endpoint& predicate) const {
    return facts_.liveness->origin(predicate);
  }

  // What is known of the shape of a tensor's gradient, or of its tangent.
  PartialShape derivative_shape(const Endpoint& tensor) const;
  // A list, a stack, or the flow of a TensorArray: its gradient is a variant.
  // In a copy of recomputed nodes, what stands for a flow has a kFlowAttr.
  bool is_container(const Endpoint& tensor) const;
  // Whether the handle is of a TensorArray in which TensorFlow sums gradients,
  // made by TensorArrayGradV3 or a similar op.
  bool is_gradient_array(const Endpoint& handle) const;
  // The flow of such an array after a write, or a sum of such flows.
  bool is_gradient_flow(const Endpoint& tensor) const {
    return gradient_flows_.contains(tensor);
  }
  bool has_gradient_flows() const { return !gradient_flows_.empty(); }
  // Whether data input `index` of the node decides only whether and when its
  // outputs are live, and not their values. That holds for the predicate of a
  // Switch, and for the flow of an array into its gradient array, which begins
  // with zeros.
  bool only_orders(const Node& node, size_t index) const;

  // The node that made a handle or reference. The search goes through branches,
  // into loops, and around loops that do not change the handle.
  Node* maker_of(Endpoint handle) const;
  // The variable behind the handle or reference; null if it is not found.
  const Node* variable_of(Endpoint handle) const;

  // --- Notes about the values of loops that gradients keep.
  // Whether the graph is a block of a loop that is computed again: the loop is
  // not a frame of it.
  bool is_in_loop() const { return is_in_loop_; }
  void set_in_loop(bool is_in_loop) { is_in_loop_ = is_in_loop; }

  // Sets the node whose gradient is being made.
  void set_user(const Node* node) { user_ = node; }
  // Notes a tensor of the frame that a gradient needs for the first time.
  void note(FrameId frame, const Endpoint& tensor, Kept kept);
  std::vector<KeptValue> take_notes() { return std::move(notes_); }
  void take_notes_of(Analysis& other);

  // Reports a node that was added later, with its frame and its liveness.
  void add(const Node& node, FrameId frame, Conditions::Set live);

 private:
  struct Added {
    FrameId frame;
    Conditions::Set live;
  };

  Analysis(Graph& graph, const CallTable* calls, std::string function)
      : graph_(graph),
        calls_(calls),
        function_(std::move(function)),
        end_id_(graph.end_id()) {}
  void find_uses();
  void find_loops();
  void find_predicates();
  void find_flows();
  void find_gradient_flows();

  Graph& graph_;
  const CallTable* calls_;
  const std::string function_;
  size_t end_id_;
  graph::FrameMap frames_;
  graph::GraphFacts facts_;
  std::vector<Loop> loops_;  // by frame
  std::vector<std::vector<Use>> uses_;
  std::unordered_map<graph::NodeId, Added> added_;
  // By origin, per frame: a predicate that a Switch reads there.
  std::vector<std::unordered_map<Endpoint, Endpoint, graph::EndpointHash>>
      predicates_;
  using Tensors = std::unordered_set<Endpoint, graph::EndpointHash>;
  // Adds the tensors that have the value of one of `flows`, and, if `sums` is
  // true, the sums that it is part of.
  void follow_flows(Tensors& flows, bool sums) const;
  Tensors flows_;
  Tensors gradient_flows_;
  const Node* user_ = nullptr;
  bool is_in_loop_ = false;
  std::vector<KeptValue> notes_;
};

}  // namespace tagflow::autodiff

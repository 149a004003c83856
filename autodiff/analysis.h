// Analysis: what has to be known of a graph before its gradient is made.
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
#include "graph/graph.h"
#include "graph/placement/whole_loops.h"

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

// A tensor that has the value of `tensor` wherever that is live: what is behind
// Identities and Switches.
Endpoint value_source(Endpoint tensor);

// Adds what else is known of the shape of a tensor; no effect where that
// contradicts what is known already.
void narrow_shape(Graph& graph, const Endpoint& tensor,
                  const PartialShape& known);

// Of a variable of int32 or int64 to which the same constant is added in each
// iteration; nothing of any other.
struct Counter {
  Endpoint first;  // what enters
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
  // Why it cannot be differentiated; empty where it can.
  std::string trouble;
};

// Data input `index` of `node`.
struct Use {
  Node* node = nullptr;
  size_t index = 0;
};

// Of the nodes that the graph has when this is made, and of those that are
// reported to add(). Valid as long as only nodes are added. Thread-compatible.
class Analysis {
 public:
  // An error of the graph's frames. `calls` is about what runs in frames of its
  // own; `function` is for notes: whose body the graph is, if any. REQUIRES:
  // `graph` and `calls` outlive the result.
  static Result<std::unique_ptr<Analysis>> make(
      Graph& graph, const CallTable* calls = nullptr,
      std::string function = "");

  Graph& graph() { return graph_; }
  // What is known of the function that the node calls in a frame of its own;
  // null where it is no such call.
  const CalledFunction* called(const Node& node) const {
    return calls_ == nullptr ? nullptr : calls_->find(node);
  }
  // Whether the graph had it when this was made.
  bool knows(const Node& node) const { return node.id() < end_id_; }
  std::span<const Use> uses(const Node& node) const;

  // The frames in which its inputs and its outputs arrive.
  FrameId frame_of(const Node& node) const;
  FrameId output_frame(const Node& node) const;
  // The inner one of the frames that an Enter or Exit is between; the frame of
  // any other node.
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
  // The child of `frame` that `inner` is, or is in; kRoot where it is not below
  // `frame`.
  FrameId child_towards(FrameId frame, FrameId inner) const;

  // Under which conditions a tensor is live, and a node computed.
  Conditions::Set live(const Endpoint& tensor);
  Conditions::Set live(const Node& node);
  Conditions& conditions() { return facts_.liveness->conditions(); }
  // Where the loop goes on, and where it ends.
  Conditions::Set goes_on(const Loop& loop);
  Conditions::Set ends(const Loop& loop);
  // An output of a Switch that goes by the LoopCond of the frame it is in.
  bool is_loop_switch(const Node& node) const;
  // A tensor of `frame` that has the value of the condition's source; null
  // where no Switch of the frame reads one.
  Endpoint predicate_in(FrameId frame, const graph::Condition& condition);
  Endpoint origin(const Endpoint& predicate) const {
    return facts_.liveness->origin(predicate);
  }

  // What is known of the shape of a tensor's gradient, or of its tangent.
  PartialShape derivative_shape(const Endpoint& tensor) const;
  // A list, a stack, or the flow of a TensorArray: its gradient is a variant.
  // What stands for a flow in a part of a graph says so by its kFlowAttr.
  bool is_container(const Endpoint& tensor) const;
  // Of the handle of a TensorArray: whether that is one that TensorFlow adds
  // gradients up in, made by TensorArrayGradV3 or its like.
  bool is_gradient_array(const Endpoint& handle) const;
  // The flow of such an array after a write, or a sum of such flows.
  bool is_gradient_flow(const Endpoint& tensor) const {
    return gradient_flows_.contains(tensor);
  }
  bool has_gradient_flows() const { return !gradient_flows_.empty(); }
  // Where data input `index` of the node has no part in what the node gives,
  // but for whether that is live, and when: the predicate of a Switch, and the
  // flow of an array into its gradient array, which begins with zeros.
  bool only_orders(const Node& node, size_t index) const;

  // The node that made a handle or reference, behind what hands it on: through
  // branches, into loops, and around those in which it stays the same.
  Node* maker_of(Endpoint handle) const;
  // The variable behind the handle or reference; null where that is not seen.
  const Node* variable_of(Endpoint handle) const;

  // --- Of what is kept of loops.
  // Whose gradient is being made.
  void set_user(const Node* node) { user_ = node; }
  // A tensor of the frame, which a gradient needs for the first time.
  void note(FrameId frame, const Endpoint& tensor, Kept kept);
  std::vector<KeptValue> take_notes() { return std::move(notes_); }
  void take_notes_of(Analysis& other);

  // Says where a node is that was added since, and where it is live.
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
  // Adds what has the value of one of `flows`; where `sums`, what has it added
  // to others, too.
  void follow_flows(Tensors& flows, bool sums) const;
  Tensors flows_;
  Tensors gradient_flows_;
  const Node* user_ = nullptr;
  std::vector<KeptValue> notes_;
};

}  // namespace tagflow::autodiff

// Contexts: which branch or loop the op being built is in, and how a tensor
// from outside gets there. Of the builder; users see Scope.
//
// Note [Capture]
// Every node built inside a conditional or a loop belongs to a Context; the
// contexts form a tree. An op may use tensors of its own context. One from
// further out is routed inwards, one context at a time, and the result is
// kept, so that each context has one route per tensor:
//   - into a branch, through a Switch on the branch's predicate, of which the
//     branch uses its own output: dead where the branch is not taken;
//   - into a loop, through a constant Enter: there in every iteration.
// A tensor of a branch may be used outside of it (it is dead where the branch
// is not taken); one of a loop may not, only through the loop's Exits.
//
// Note [Gating]
// An op fires as soon as all of its inputs are there. One that depends only
// on what is always there (no inputs, or loop constants alone) would run in a
// branch not taken, or in the iteration that only finds out that the loop is
// over. It gets a control edge from the context's pivot, which is dead then.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graph/graph.h"

namespace tagflow::graph {

// One branch of a conditional, or a loop. Created when its construction
// begins; stays, since ops may be added to it as long as the graph grows.
struct Context {
  enum class Kind : uint8_t { kBranch, kLoop };

  Kind kind = Kind::kBranch;
  Context* parent = nullptr;  // null: outside of all
  std::string name;           // the name scope, for messages

  // Control edge to what nothing else holds back: a branch's switch_t or
  // switch_f; in a loop the first Merge while the predicate is built, the
  // first body variable after.
  Node* pivot = nullptr;
  // Older nodes of the context do not wait for the pivot: in a loop's body,
  // those of the predicate.
  NodeId gated_from = 0;

  Endpoint predicate;  // of a branch, in the parent
  int branch = 0;      // the Switch output that the branch uses

  std::string frame_name;  // of a loop
  int64_t parallel_iterations = 10;
  // What the loop as a whole waits for: control inputs of all Enters.
  std::vector<Node*> control_inputs;

  // Routes into this context, by endpoint in the parent.
  std::map<std::pair<NodeId, int>, Endpoint> captured;
  std::map<NodeId, Node*> captured_controls;
};

// What all scopes over one graph share. Thread-compatible.
class BuilderState {
 public:
  explicit BuilderState(Graph& graph) : graph_(graph) {}

  // What to make, and where.
  struct NodeSpec {
    std::string name;  // made unique
    std::string_view op;
    std::vector<Endpoint> inputs;  // a null node: a back edge closed later
    AttrMap attrs = {};
    std::vector<Node*> control_inputs = {};
    std::string device = {};
  };

  Graph& graph() { return graph_; }
  const Status& status() const { return status_; }
  // Keeps the first error.
  void fail(Status status);

  // InvalidArgument where the node is of another graph.
  Status check_own(const Node* node, std::string_view user) const;

  // Adds a node in `context`: routes its inputs and control inputs there and
  // holds it back by the pivot where nothing else does. See Note [Capture].
  Result<Node*> add(NodeSpec spec, Context* context);
  // The tensor as seen from `context`. `user` names what is made for it.
  Result<Endpoint> route(Endpoint source, Context* context,
                         const std::string& user);
  Result<Node*> route_control(Node* source, Context* context,
                              const std::string& user);
  // Says that the outputs of `node` are of another context than its inputs:
  // those of an Enter or an Exit.
  void set_context(const Node* node, Context* context);
  // Null for what is outside of all contexts.
  Context* context_of(const Node* node) const;
  Context* new_context(Context context);
  // The id that the next node will have, or a smaller one that is free.
  NodeId next_id() const;

  // A name scope that nobody has: `prefix`, `prefix_1`, ...
  std::string unique_scope(const std::string& prefix);
  // A frame name that no Enter of the graph has.
  std::string unique_frame(const std::string& prefix);

 private:
  Result<Context*> visible_from(const Node* source, Context* context,
                                const std::string& user) const;
  Result<Endpoint> capture(Endpoint outer, Context* context,
                           const std::string& user);
  Result<Node*> capture_control(Node* outer, Context* context,
                                const std::string& user);
  bool is_gated(const Node* node, const Context* context) const;
  Result<Node*> add_here(NodeSpec spec, Context* context);
  std::string unique_node(const std::string& prefix);

  Graph& graph_;
  Status status_;
  std::vector<std::unique_ptr<Context>> contexts_;
  // By id, not address: a removed node's memory may be used again.
  std::unordered_map<NodeId, Context*> context_of_;
  std::unordered_map<std::string, int> suffixes_;  // the next to try
  std::unordered_set<std::string> scopes_;
  std::unordered_set<std::string> frames_;
  NodeId frames_seen_ = 0;  // frames_ has those of all nodes below
};

}  // namespace tagflow::graph

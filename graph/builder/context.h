// Contexts: the branch or loop in which an op is built, and the routes of outer
// tensors into it. Internal to the builder; users see Scope.
//
// Note [Capture]
// Every node built inside a conditional or a loop belongs to a Context; the
// contexts form a tree. An op may use tensors of its own context. An outer
// tensor is routed inwards, one context at a time, and the result is cached, so
// that each context has one route per tensor:
//   - into a branch, through a Switch on the branch's predicate; the branch
//     uses its own output, which is dead if the branch is not taken;
//   - into a loop, through a constant Enter: present in every iteration.
// A tensor of a branch may be used outside (it is dead if the branch is not
// taken); one of a loop is only accessible through the loop's Exits.
//
// Note [Gating]
// An op fires as soon as all of its inputs are there. An op that depends only
// on inputs that are always there (none, or only loop constants) would run in a
// branch that is not taken, or in the last iteration, where only the predicate
// should run. It gets a control edge from the context's pivot, which is dead
// then.
#pragma once

#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graph/graph.h"
#include "graph/limits.h"

namespace tagflow::graph {

// One branch of a conditional, or a loop. Created when its construction begins;
// kept afterwards, since ops may be added as long as the graph grows.
struct Context {
  enum class Kind : uint8_t { kBranch, kLoop };

  Kind kind = Kind::kBranch;
  Context* parent = nullptr;  // null: the outermost one
  std::string name;           // the name scope, for messages

  // Source of control edges for ungated ops: a branch's switch_t or switch_f;
  // in a loop the first Merge while the predicate is built, the first body
  // variable after.
  Node* pivot = nullptr;
  // Older nodes of the context do not wait for the pivot: in a loop's body,
  // those of the predicate.
  NodeId gated_from = 0;

  Endpoint predicate;  // of a branch, in the parent
  int branch = 0;      // the Switch output that the branch uses

  std::string frame_name;  // of a loop
  int64_t parallel_iterations = 10;
  // Control inputs of all Enters: the whole loop waits for them.
  std::vector<Node*> control_inputs;

  // Routes into this context, by endpoint in the parent.
  std::map<std::pair<NodeId, int>, Endpoint> captured;
  std::map<NodeId, Node*> captured_controls;
};

// The state that all scopes of one graph share. Thread-compatible.
class BuilderState {
 public:
  explicit BuilderState(Graph& graph) : graph_(graph) {}

  // A description of the node to add.
  struct NodeSpec {
    std::string name;  // made unique
    std::string_view op;
    std::vector<Endpoint> inputs;  // null node: a back edge, closed later
    AttrMap attrs = {};
    std::vector<Node*> control_inputs = {};
    std::string device = {};
  };

  Graph& graph() { return graph_; }
  const Status& status() const { return status_; }
  // Keeps the first error.
  void fail(Status status);
  // See growth.h.
  const Limits& limits() const { return limits_; }
  void set_limits(const Limits& limits) { limits_ = limits; }

  // InvalidArgument if the node is in another graph.
  Status check_own(const Node* node, std::string_view user) const;

  // Adds a node in `context`: routes its inputs and control inputs there, and
  // gates it by the pivot if nothing else does. See Note [Capture].
  Result<Node*> add(NodeSpec spec, Context* context);
  // The tensor as seen from `context`. `user` is the prefix of new names.
  Result<Endpoint> route(Endpoint source, Context* context,
                         const std::string& user);
  Result<Node*> route_control(Node* source, Context* context,
                              const std::string& user);
  // Sets the context of the outputs of `node`, an Enter or Exit, which differs
  // from that of its inputs.
  void set_context(const Node* node, Context* context);
  // Null outside of all contexts.
  Context* context_of(const Node* node) const;
  Context* new_context(Context context);
  // The id that the next node will have, or a smaller unused one.
  NodeId next_id() const;

  // An unused name scope: `prefix`, `prefix_1`, ...
  std::string unique_scope(const std::string& prefix);
  // A frame name that no Enter of the graph uses.
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
  Limits limits_{.max_nodes = std::numeric_limits<size_t>::max()};
  Status status_;
  std::vector<std::unique_ptr<Context>> contexts_;
  // By id, not address: the memory of a removed node may be reused.
  std::unordered_map<NodeId, Context*> context_of_;
  std::unordered_map<std::string, int> suffixes_;  // the next to try
  std::unordered_set<std::string> scopes_;
  std::unordered_set<std::string> frames_;
  NodeId frames_seen_ = 0;  // frames_ has those of all nodes below
};

}  // namespace tagflow::graph

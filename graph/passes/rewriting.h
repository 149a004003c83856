// Utilities of passes: queries about nodes, and redirection of edges.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "graph/analysis/frames.h"
#include "graph/program.h"

namespace tagflow::graph {

// Computing the node twice, elsewhere or not at all only affects run time: its
// op is registered, has outputs, and is not stateful or control flow; it is not
// a source of tokens, and has no reference or resource.
bool is_pure(const Node& node);

// Whether an input is a reference, whose value may change meanwhile.
bool reads_reference(const Node& node);

// Whether it returns its only input unchanged: an Identity of any op name,
// without control inputs, and not the reader of a reference.
bool is_plain_identity(const Node& node);

// A pure node of a fusible op: OpDefBuilder::fusible().
bool is_elementwise(const Node& node);

// Whether all inputs have the same shape, which is fully known.
bool has_one_known_shape(const Node& node);

// Whether the bool attribute exists and is true.
bool is_set(const Node& node, std::string_view flag);

// Whether the axis is a known scalar, and is the last one of that rank.
bool is_last_axis(const Endpoint& axis, int rank);

// Whether it is an Enter of a loop constant without control inputs.
bool is_loop_constant(const Node& node);

// Whether a control edge from the node of `source` is dead exactly if `source`
// is: false for an output of a Switch, or of a call.
bool control_tells_deadness(const Endpoint& source);

// Whether its tokens may be dead for reasons that the graph does not show, so
// that liveness of its readers is unknown: a _Recv, or a call.
bool hides_deadness(const Node& node);

// Whether the nodes have the same placement constraints: Note [Constraints and
// passes].
bool has_same_constraints(const Node& a, const Node& b);
// Whether the node has no placement constraint.
bool is_unconstrained(const Node& node);

// Unique nodes in the order in which they were added.
class NodeList {
 public:
  NodeList() = default;
  NodeList(std::initializer_list<Node*> nodes) {
    add({nodes.begin(), nodes.size()});
  }
  explicit NodeList(std::span<Node* const> nodes) { add(nodes); }

  void add(Node* node);
  void add(std::span<Node* const> nodes);
  size_t size() const { return nodes_.size(); }
  bool empty() const { return nodes_.empty(); }
  auto begin() const { return nodes_.begin(); }
  auto end() const { return nodes_.end(); }
  operator std::span<Node* const>() const { return nodes_; }

 private:
  std::vector<Node*> nodes_;
  std::unordered_set<const Node*> known_;  // for long lists only
};

// Replacing a Const with more control inputs costs more than it saves.
inline constexpr size_t kMaxControls = 16;
// Adds the control inputs that a reader of `source` needs if it no longer reads
// the value: for a constant, its control inputs, or the constant itself if it
// has more than kMaxControls of them. They keep the reader's order and
// deadness. False if no control edge can express the dependence.
bool add_dependence(NodeList& list, const Endpoint& source);

// A unique name for a node that a pass derives from `node`: its name, cut if it
// is too long, and `ending`.
std::string name_after(const Graph& graph, const Node& node,
                       std::string_view ending = "");

// Adds a node that replaces a part of `old`, with the same constraints.
Result<Node*> add_for(Graph& graph, const Node& old, std::string name,
                      std::string_view op, std::span<const Endpoint> inputs,
                      AttrMap attrs, std::span<Node* const> controls);

// Adds a loop constant of the frame with this value, with the constraints of
// `old`. REQUIRES: the value is of the frame's parent.
Result<Node*> add_constant_enter(Graph& graph, const Node& old,
                                 const StaticFrame& frame,
                                 const Endpoint& value);

// Adds an Identity of the constant that is live only if `waits` are.
Result<Node*> add_waiting(Graph& graph, const Node& old, Node* constant,
                          Node* waits);

// Redirected edges, applied in one walk over the program.
class Detour {
 public:
  explicit Detour(Program& program) : program_(program) {}

  // Redirects readers of `from` to `to`. REQUIRES: `to` is not redirected
  // later; so calls must follow the order of the data flow.
  void lead(const Endpoint& from, const Endpoint& to);
  // Nodes that wait for `from` wait for all of `to` instead. REQUIRES: as for
  // lead(), and `to` is not empty.
  void lead_control(Node* from, const NodeList& to);
  // Adds a node that replaces `old`: same outputs, deadness and constraints.
  Result<Node*> replace(Node* old, std::string_view op,
                        std::span<const Endpoint> inputs, AttrMap attrs,
                        std::span<Node* const> controls);
  bool empty() const { return leads_.empty(); }
  // The output to which readers of `from` are redirected.
  Endpoint end(const Endpoint& from) const;
  // The nodes that replace `from` in control inputs; `from` itself if none do.
  std::span<Node* const> control_ends(const Node& from) const;
  // Updates inputs, control inputs, fetches and targets. Types must agree.
  Status apply();
  // Like apply(), at the end of a pass: also removes nodes that are no longer
  // needed, and returns true.
  Result<bool> finish();

 private:
  // The redirection of one node.
  struct Lead {
    Endpoints outputs;  // by port; a null node: unchanged
    boost::container::small_vector<Node*, 1> controls;
  };
  // Null if there is none.
  const Lead* find(const Node& from) const;
  Lead& lead_of(const Node& from);
  // The final targets of the nodes.
  std::vector<Node*> ends_of(std::span<Node* const> nodes) const;

  Program& program_;
  std::vector<Lead> leads_;
  std::vector<uint32_t> lead_index_;  // by node id, + 1; 0: none
};

// Removes nodes that no feed, fetch or target needs.
void sweep(Program& program);

}  // namespace tagflow::graph

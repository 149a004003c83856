// What the passes share: questions about nodes, and edges led elsewhere.
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

// Computing it twice, elsewhere or not at all is no difference but in time: a
// registered op with outputs that is neither stateful nor control flow, no
// source of tokens, and has to do with no reference or resource.
bool is_pure(const Node& node);

// An input comes as a reference, to something that may change meanwhile.
bool reads_reference(const Node& node);

// Hands its only input on, whatever that is: an Identity by any name, without
// control inputs, and no reader of a reference.
bool is_plain_identity(const Node& node);

// A pure node of a fusible op: OpDefBuilder::fusible().
bool is_elementwise(const Node& node);

// Whether all inputs have the same shape, which is fully known.
bool has_one_known_shape(const Node& node);

// Whether the node has the bool attribute, and it is true.
bool is_set(const Node& node, std::string_view flag);

// Whether it is known to be one number, the last of so many dimensions.
bool is_last_axis(const Endpoint& axis, int rank);

// An Enter, visible in every iteration, that waits for its input only.
bool is_loop_constant(const Node& node);

// Whether a control edge from the node of `source` is as dead as `source`:
// not so for an output of a Switch, or of a call.
bool control_tells_deadness(const Endpoint& source);

// Whether its tokens may be dead where the graph does not show it, so that
// liveness says nothing of what comes after it: a _Recv, or a call.
bool hides_deadness(const Node& node);

// Whether the nodes ask for the same of where they run: Note [Constraints and
// passes].
bool has_same_constraints(const Node& a, const Node& b);
// Whether the node asks for nothing of where it runs.
bool is_unconstrained(const Node& node);

// Nodes in the order in which they were added, each once.
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
  std::unordered_set<const Node*> known_;  // where they are many
};

// A Const with more control inputs costs more than it saves.
inline constexpr size_t kMaxControls = 16;
// Adds what a reader of `source` waits for, and dies with, if it no longer
// reads the value: of a constant its control inputs, or itself where these are
// more than kMaxControls, lest each reader get them all. False where no control
// edge can say it.
bool add_dependence(NodeList& list, const Endpoint& source);

// For what a pass makes of the node: a unique name, of as much of the node's as
// there is room for, and of `ending`.
std::string name_after(const Graph& graph, const Node& node,
                       std::string_view ending = "");

// Adds a node that takes over a part of what `old` did, with its constraints.
Result<Node*> add_for(Graph& graph, const Node& old, std::string name,
                      std::string_view op, std::span<const Endpoint> inputs,
                      AttrMap attrs, std::span<Node* const> controls);

// A loop constant of the frame with this value, where `old` is asked to run.
// REQUIRES: the value is of the frame's parent.
Result<Node*> add_constant_enter(Graph& graph, const Node& old,
                                 const StaticFrame& frame,
                                 const Endpoint& value);

// An Identity of what the node makes, live where `waits` is besides.
Result<Node*> add_waiting(Graph& graph, const Node& old, Node* constant,
                          Node* waits);

// Edges to be led elsewhere, all in one walk over the program.
class Detour {
 public:
  explicit Detour(Program& program) : program_(program) {}

  // Readers of `from` read `to` instead. REQUIRES: `to` is not led elsewhere
  // later on; so ask in the order in which tokens flow.
  void lead(const Endpoint& from, const Endpoint& to);
  // What waits for `from` waits for all of `to`. REQUIRES: as for lead(), and
  // `to` is not empty.
  void lead_control(Node* from, const NodeList& to);
  // A new node for an old one, whose outputs, deadness and constraints it has.
  Result<Node*> replace(Node* old, std::string_view op,
                        std::span<const Endpoint> inputs, AttrMap attrs,
                        std::span<Node* const> controls);
  bool empty() const { return leads_.empty(); }
  // Where readers of `from` read.
  Endpoint end(const Endpoint& from) const;
  // What waits for `from` waits for all of these; for itself where none are.
  std::span<Node* const> control_ends(const Node& from) const;
  // Changes inputs, control inputs, fetches and targets. Types must agree.
  Status apply();
  // The same, at the end of a pass: removes what nobody needs any more, too,
  // and returns true.
  Result<bool> finish();

 private:
  // Where one node's edges lead.
  struct Lead {
    Endpoints outputs;  // by port; of null: as before
    boost::container::small_vector<Node*, 1> controls;
  };
  // Null where there is none.
  const Lead* find(const Node& from) const;
  Lead& lead_of(const Node& from);
  // These, led on.
  std::vector<Node*> ends_of(std::span<Node* const> nodes) const;

  Program& program_;
  std::vector<Lead> leads_;
  std::vector<uint32_t> lead_index_;  // by node id, + 1; 0: none
};

// Removes what neither a feed, fetch nor target needs.
void sweep(Program& program);

}  // namespace tagflow::graph

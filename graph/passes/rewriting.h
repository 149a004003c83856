// Utilities of passes: new nodes, and redirection of edges.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/analysis/frames.h"
#include "graph/analysis/node_list.h"
#include "graph/analysis/node_queries.h"
#include "graph/program.h"

namespace tagflow::graph {

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

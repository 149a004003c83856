// The conditions under which the nodes of a graph are live.
#pragma once

#include <optional>
#include <vector>

#include "graph/analysis/conditions.h"
#include "graph/analysis/frames.h"
#include "graph/graph.h"

namespace tagflow::graph {

// Note [Liveness]
// A node is live if all its inputs and control inputs are; for an output of a
// Switch, its predicate must also select that port:
//
//   Switch(x, p):1   the conditions of x and p, and p: 1
//   Merge(a, b)      the conditions that both share, if the others, such as
//                    p: 0 and p: 1, cover all cases; so a conditional is as
//                    live as the node before it
//   loop variable    the conditions of its Enters: see below
//   Exit             the conditions of the LoopCond, if it reads a value that
//                    is live when that is false, and nothing inside the loop
//                    can make it dead
//   ControlTrigger   none
//
// A predicate is the same behind Identities, LoopConds and constant Enters,
// unless it is a reference. Any other node is a condition of its own: that it
// is live. So two sets are equal only if the nodes are live in the same cases;
// if they differ, nothing is known.
//
// In a loop that can be cut (Note [Loops that can be cut]) this holds in each
// iteration. In other loops it holds only in the first one, but their Exits are
// conditions of their own.
//
// Thread-compatible.
class Liveness {
 public:
  // Of a graph; both outlive this. `may_be_dead` says, by body, whether a call
  // of it may have dead results.
  Liveness(const Graph& graph, const FrameMap& frames,
           const std::vector<bool>& may_be_dead);

  // REQUIRES: all nodes that the node depends on were visited, except over back
  // edges; for an Exit, end() was called for its frame.
  void visit(Node& node);
  // Sets the liveness of the frame's Exits from the LoopCond. REQUIRES: the
  // loop continues exactly if the LoopCond is true.
  void end(Node& loop_cond);

  // --- Results for visited nodes.
  Conditions::Set of(const Node& node) const { return of_[node.id()]; }
  Conditions::Set of(const Endpoint& output);
  // The conditions that the predicate is live and selects that port.
  Conditions::Set where(const Endpoint& predicate, int port, int ports);
  // The source of a predicate's conditions, behind nodes that forward it.
  Endpoint origin(const Endpoint& value) const;

  Conditions& conditions() { return conditions_; }

 private:
  Conditions::Set of_inputs(Node& node);
  Conditions::Set of_merge(Node& node);
  Conditions::Set of_exit(Node& node, Conditions::Set read);
  // The condition that the output is live.
  Conditions::Set itself(const Endpoint& output);

  struct End {
    Conditions::Set where_false = Conditions::kNone;
    Conditions::Set outside = Conditions::kNone;  // without those from inside
  };

  const FrameMap& frames_;
  const std::vector<bool>& may_be_dead_;
  Conditions conditions_;
  std::vector<Conditions::Set> of_;  // by node id
  // By node id, for forwarding nodes: the origin of the value.
  std::vector<Endpoint> origins_;
  std::vector<std::optional<End>> ends_;  // by frame
};

}  // namespace tagflow::graph

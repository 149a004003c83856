// Under which conditions the nodes of a graph are live.
#pragma once

#include <optional>
#include <vector>

#include "graph/analysis/frames.h"
#include "graph/graph.h"
#include "graph/placement/conditions.h"

namespace tagflow::graph {

// Note [Liveness]
// What a node needs to be live is what all its inputs and control inputs need,
// and an output of a Switch, besides, that its predicate takes that port:
//
//   Switch(x, p):1   what x and p need, and p: 1
//   Merge(a, b)      what both need, if the rest, as p: 0 and p: 1, leaves out
//                    no case; so a conditional is as live as what is before it
//   loop variable    what its Enters need: see below
//   Exit             what the LoopCond needs, if it reads what is live where
//                    that is false, and nothing inside the loop can kill it
//   ControlTrigger   nothing
//
// A predicate is the same one behind Identities, LoopConds and the Enters of
// constants, unless it is a reference. Whatever else comes is one condition of
// its own: that the node is live. Then two sets are equal only where the nodes
// are equally live, and where they are not, nothing is known.
//
// In a loop that can be cut (Note [Loops that can be cut]) all this is true of
// each iteration. In others it is true of the first one only, but their Exits
// are conditions of their own.
//
// Thread-compatible.
class Liveness {
 public:
  // Of a graph; both outlive this. `may_be_dead` says, by body, whether a call
  // of it may give dead results.
  Liveness(const Graph& graph, const FrameMap& frames,
           const std::vector<bool>& may_be_dead);

  // REQUIRES: what the node depends on was visited, back edges apart; of an
  // Exit, its frame was ended.
  void visit(Node& node);
  // From now on the Exits of the frame are live as the LoopCond says.
  // REQUIRES: the loop goes on just where the LoopCond is true.
  void end(Node& loop_cond);

  // --- Of what was visited.
  Conditions::Set of(const Node& node) const { return of_[node.id()]; }
  Conditions::Set of(const Endpoint& output);
  // Where the predicate is live, and takes that port.
  Conditions::Set where(const Endpoint& predicate, int port, int ports);
  // What a predicate is, behind what hands it on: the source of its conditions.
  Endpoint origin(const Endpoint& value) const;

  Conditions& conditions() { return conditions_; }

 private:
  Conditions::Set of_inputs(Node& node);
  Conditions::Set of_merge(Node& node);
  Conditions::Set of_exit(Node& node, Conditions::Set read);
  // That the output is live.
  Conditions::Set itself(const Endpoint& output);

  struct End {
    Conditions::Set where_false = Conditions::kNone;
    Conditions::Set outside = Conditions::kNone;  // without what is inside
  };

  const FrameMap& frames_;
  const std::vector<bool>& may_be_dead_;
  Conditions conditions_;
  std::vector<Conditions::Set> of_;  // by node id
  // By node id, of those that hand on what they read: where it comes from.
  std::vector<Endpoint> origins_;
  std::vector<std::optional<End>> ends_;  // by frame
};

}  // namespace tagflow::graph

// The rules that every graph keeps, as code.
#pragma once

#include "graph/analysis/frames.h"
#include "graph/graph.h"
#include "graph/limits.h"

namespace tagflow::graph {

// Checks, in this order:
//  1. the number of nodes is within the limits;
//  2. names are legal and unique;
//  3. each op is registered, or is a function of the library;
//  4. attributes are complete, typed, in range, and nest within the limits;
//  5. every input is there, is of this graph, has that port and the type that
//     the attributes say; so is every control input;
//  6. the value of a Const has the type that its attribute says;
//  7. each back edge is closed, and cycles go through one only;
//  8. static frames exist (Note [Static frames]), nest within the limits, and
//     have at most one LoopCond each;
//  9. a function is no op; its arguments, results and nodes have legal,
//     unique names; inputs, results and control outputs are of what it has.
// Passes run it on what they produce in debug builds. InvalidArgument or
// ResourceExhausted for the first rule broken, naming the nodes.
Status validate(const Graph& graph, const Limits& limits = {});
// The same, with the frames that it found.
Result<FrameMap> validated_frames(const Graph& graph,
                                  const Limits& limits = {});

// The same of a graph that grows, piece by piece: what is found to be right is
// not looked at again. Thread-compatible.
class GrowingCheck {
 public:
  explicit GrowingCheck(const Limits& limits = {}) : limits_(limits) {}

  // The result is that of validate() on the whole; it takes as long as what
  // was added since the last call that was ok. REQUIRES: it is always the same
  // graph, of which nothing that was found to be right was changed or removed;
  // as for FrameMap::extend().
  Status run(const Graph& graph);
  // Whether nothing was added since. May be called by several threads at once,
  // as may frames().
  bool covers(const Graph& graph) const;
  // After run() that was ok. Stays where it is, and grows.
  const FrameMap& frames() const { return frames_; }
  FrameMap take_frames() && { return std::move(frames_); }
  // How often it has looked at a node or a function.
  size_t num_visits() const { return num_visits_; }

 private:
  const Limits limits_;
  FrameMap frames_;            // of the nodes that are right
  size_t num_functions_ = 0;   // those that are
  size_t function_nodes_ = 0;  // of these
  size_t num_visits_ = 0;
};

}  // namespace tagflow::graph

// Validation: the invariants of every graph, as code.
#pragma once

#include "graph/analysis/frames.h"
#include "graph/graph.h"
#include "graph/limits.h"

namespace tagflow::graph {

// Checks, in this order:
//  1. the number of nodes is within the limits;
//  2. names are legal and unique;
//  3. each op is registered, or is a function of the library;
//  4. attributes are complete, have the right types and ranges, and are nested
//     within the limits;
//  5. every input exists, is in this graph, and has that port and the type
//     given by the attributes; so does every control input;
//  6. the value of a Const has the type of its attribute;
//  7. each back edge is closed, and each cycle has exactly one back edge;
//  8. static frames exist (Note [Static frames]), are nested within the limits,
//     and have at most one LoopCond each;
//  9. a function is not an op; its arguments, results and nodes have legal,
//     unique names; inputs, results and control outputs refer to these.
// In debug builds it runs after each pass. InvalidArgument or ResourceExhausted
// for the first violation, naming the nodes.
Status validate(const Graph& graph, const Limits& limits = {});
// As validate(), and returns the frames.
Result<FrameMap> validated_frames(const Graph& graph,
                                  const Limits& limits = {});

// Validates a growing graph incrementally: valid parts are not checked again.
// Thread-compatible.
class GrowingCheck {
 public:
  explicit GrowingCheck(const Limits& limits = {}) : limits_(limits) {}

  // The result is that of validate() for the whole graph; it takes time for the
  // nodes added since the last successful call. A budget that is not null takes
  // the place of that of the limits. REQUIRES: it is always the same graph, and
  // nothing that was validated has been changed or removed; as for
  // FrameMap::extend().
  Status run(const Graph& graph, Budget* budget = nullptr);
  // Whether nothing was added since. Several threads may call it at once, as
  // well as frames().
  bool covers(const Graph& graph) const;
  // Valid after a successful run(). The address is stable, the map grows.
  const FrameMap& frames() const { return frames_; }
  FrameMap take_frames() && { return std::move(frames_); }
  // How many visits of nodes and functions it has made.
  size_t num_visits() const { return num_visits_; }

 private:
  const Limits limits_;
  FrameMap frames_;            // of the validated nodes
  size_t num_functions_ = 0;   // validated ones
  size_t function_nodes_ = 0;  // of the validated functions
  size_t num_visits_ = 0;
};

}  // namespace tagflow::graph

// Orders the readers of a list before its writer.
//
// Note [Readers first]
// Lists are values: TensorListSetItem returns a new one. Its kernel changes the
// old list in place if nobody else holds it, and copies the whole list
// otherwise. A loop that reads and writes a list in each iteration takes linear
// time if the reader fires before the writer, and quadratic time if not. The
// graph does not define this order, so the plan does:
//
//   list -> TensorListGetItem -> ...
//      \            : an order edge
//       \           v
//        -> TensorListSetItem -> NextIteration
//
// An order edge is not a control edge: a dead reader also lets the writer go
// on. The nodes that may hold the same list are all readers in the iteration,
// including those behind Identities, Switches and Merges; a loop that the list
// enters holds it until the loop ends. Writers do not wait for other writers:
// if both run, one has to copy.
//
// Why there is no deadlock:
//   1. All order edges together are consistent with one order of all nodes on
//   all
//      devices that respects all dependences. If no such order allows an order
//      edge, the writer does not wait for this reader, and copies.
//   2. A writer waits only for nodes that get a token, dead or live, in each
//      iteration. So it is in no loop, or in one that could be cut (Note [Loops
//      that can be cut] in graph/analysis/whole_loops.h); the same holds for
//      everything that its readers depend on.
//   3. It waits for no reader that depends on a node that may answer at any
//      time: an asynchronous kernel, which may wait for the writer in ways that
//      the graph does not show, or a Recv for which no partition sends. The
//      list itself may depend on such a node, since the writer depends on it
//      too.
// If these rules exclude an order edge, the result is the same, but the number
// of copies depends on the order of firing.
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>

#include "graph/partition/partition.h"

namespace tagflow::graph {

// The frames whose loops could not be cut; empty unless some node of the
// program changes an input in place (OpDef::changed_input). Call it before the
// cut, which takes loops apart. REQUIRES: the program is valid, its functions
// are lowered.
Result<std::set<std::string>> find_odd_frames(const Program& program);

struct ReadersFirstOptions {
  // The result of find_odd_frames().
  std::set<std::string> odd_frames;
  // Whether the node may answer at any time. Null: no node does.
  std::function<bool(const Node&)> may_wait;
};

// Sets the order edges of all partitions of a program, and of their bodies.
// Takes time about proportional to the program, and very little if nothing in
// it changes an input in place. It must be the last rewrite. REQUIRES: the
// partitions are valid.
Status put_readers_first(std::span<Partition> partitions,
                         const ReadersFirstOptions& options);

}  // namespace tagflow::graph

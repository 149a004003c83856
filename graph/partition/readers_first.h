// Who reads a list goes before who changes it.
//
// Note [Readers first]
// Lists are values: TensorListSetItem gives a new one. Its kernel changes the
// old one in place where nobody else holds that, and copies all of it where
// somebody does: a loop that reads its list and writes to it in each iteration
// is linear if the reader has fired when the writer does, and quadratic if not.
// Nothing in the graph says which comes first, so the plan does:
//
//   list -> TensorListGetItem -> ...
//      \            : a turn
//       \           v
//        -> TensorListSetItem -> NextIteration
//
// A turn is no control edge: a reader that is dead has had its turn as well.
// What may hold the same list are all readers of what Identities, Switches and
// Merges hand on of it in the iteration; a loop that the list enters holds it
// until it is over. Other writers are not waited for: of two writers that both
// run one has to copy.
//
// Why nobody waits for ever:
//   1. All turns together agree with one order of all nodes on all devices, in
//      which each comes after what it depends on. A writer that no such order
//      has room for waits for fewer readers, and copies.
//   2. A writer waits only for what comes in each iteration, dead or alive. So
//      it is in a loop that could be cut (Note [Loops that can be cut] in
//      graph/placement/whole_loops.h), or in none; and so is all that its
//      readers depend on.
//   3. It waits for no reader that depends on what answers when it likes: an
//      asynchronous kernel, which might wait for what comes of the writer by
//      ways that no graph shows; a Recv for which no partition sends.
//      Of the list itself this may well depend: so does the writer.
// What none of this allows is as it would be without turns: right, but with as
// many copies as the order of firing makes of it.
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>

#include "graph/partition/partition.h"

namespace tagflow::graph {

// The frames whose loops could not be cut, where any node of the program
// changes an input in place (OpDef::changed_input). Asked before the cut, which
// takes loops apart. REQUIRES: the program is valid, its functions lowered.
Result<std::set<std::string>> find_odd_frames(const Program& program);

struct ReadersFirstOptions {
  // As find_odd_frames() gave them.
  std::set<std::string> odd_frames;
  // Whether the node may answer at any time. Null: none does.
  std::function<bool(const Node&)> may_wait;
};

// Sets the turns of all partitions of a program, and of their bodies. Takes
// time about proportional to the program, and hardly any where nothing in it
// changes an input in place. Another rewrite must not follow.
// REQUIRES: the partitions are valid.
Status put_readers_first(std::span<Partition> partitions,
                         const ReadersFirstOptions& options);

}  // namespace tagflow::graph

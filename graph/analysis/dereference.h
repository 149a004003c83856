// References, turned into values where a value is read.
//
// Note [References]
// A variable of TensorFlow 1 gives a reference: the token that travels along
// the edge is a handle, and what it stands for may change until somebody looks.
// An op that takes a reference, as Assign, gets the handle. Any other reads the
// value, at the moment when it fires: when all of its inputs are there, and all
// that it has to wait for is done.
//
// So the read is a node of its own, `_Dereference`, between the reference and
// its reader, which waits for all that the reader waits for:
//
//   v (float_ref) ------> _Dereference --> Add      becomes of   v --> Add
//                            ^              ^                    x --> Add
//   x -----------------------+--------------+                 init ..> Add
//   init ..................../
//
// A reader that has the same reference twice reads it once. A Merge has only
// one of its inputs: there the read waits for the reference and for the Merge's
// control inputs. Who fetches a reference gets the value of the moment when it
// comes.
//
// A loop that changes a variable sees its changes: where both the reference and
// a value read from it enter the loop as constants, the value is not that of
// the moment before the loop, but is read anew in each iteration. (In
// TensorFlow the two share memory.) A loop that gets only the value keeps it.
//
// A Gather needs a few rows of a variable that may be large. So it takes a
// reference as it is where it gets one (OpDefBuilder::takes_reference), and its
// kernel reads the rows.
//
// After this only ops that take references are fed with them. It comes before
// passes and placement: a value may be read on any device, and what reads it
// may be rewritten; the read itself is stateful, and on the variable's device.
#pragma once

#include <span>

#include "graph/program.h"

namespace tagflow::graph {

// Whether the node reads the value of what its input of that number refers to,
// instead of taking the reference itself.
bool reads_reference(const Node& node, size_t input);

// Puts the reads in, in the program's graph and those of its bodies.
// REQUIRES: the program is valid, and its functions are lowered.
Status dereference(Program& program);

// Puts in the reads of these nodes alone, for what is to know the values that
// they read. The graph runs as before. REQUIRES: a valid graph.
Status dereference(Graph& graph, std::span<Node* const> readers);

}  // namespace tagflow::graph

// Adds explicit reads of references, where a value is needed.
//
// Note [References]
// A variable of TensorFlow 1 gives a reference: the token is a handle, and the
// value that it refers to may change until it is read. An op that takes a
// reference, such as Assign, gets the handle. Any other op reads the value when
// it fires: when all of its inputs and control inputs have arrived.
//
// So the read is a separate node, `_Dereference`, between the reference and its
// reader, with the other inputs of the reader as control inputs:
//
//   v (float_ref) ------> _Dereference --> Add      becomes of   v --> Add
//                            ^              ^                    x --> Add
//   x -----------------------+--------------+                 init ..> Add
//   init ..................../
//
// A reader with the same reference twice reads it once. A Merge has only one of
// its inputs: there the read waits for the reference and for the Merge's
// control inputs. A fetch of a reference gives the value at the time when the
// token arrives.
//
// A loop that changes a variable sees its own changes: if both the reference
// and a value read from it enter the loop as constants, the value is read again
// in each iteration. (In TensorFlow the two share memory.) A loop that gets
// only the value keeps it.
//
// A Gather needs a few rows of a variable that may be large. So it accepts
// references (OpDefBuilder::takes_reference), and its kernel reads the rows.
//
// Afterwards only ops that take references have them as inputs. This rewrite
// precedes passes and placement: a value may be read on any device, and passes
// may rewrite its readers; the read itself is stateful, and on the variable's
// device.
#pragma once

#include <span>

#include "graph/program.h"

namespace tagflow::graph {

// Whether the node reads the value behind the reference at that input, instead
// of taking the reference itself.
bool reads_reference(const Node& node, size_t input);

// Inserts the reads in the program's graph and those of its bodies.
// REQUIRES: the program is valid, and its functions are lowered.
Status dereference(Program& program);

// Inserts the reads of these nodes only, for code that needs their values. The
// graph computes the same as before. REQUIRES: a valid graph.
Status dereference(Graph& graph, std::span<Node* const> readers);

}  // namespace tagflow::graph
